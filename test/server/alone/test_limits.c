/*
 * What a node takes: up to each limit, not one more, also when many ask within one turn.
 *
 * Built as debug, clang-asan: full nodes are large, and what fills them is tried small in all
 * builds.
 */
#include "server/alone/part.h"
#include "test/server/small_life.h"

enum { LARGE = 2 * JOB_COUNT_MAX }; /* allocs of the largest job that small_job makes */

/* Registers a job of COUNT allocs; the refusal is compared with EXPECTED, NULL: it is taken. */
static void post(struct small_life *small, const char *name, int count, const char *expected)
{
    int a = count < JOB_COUNT_MAX ? count : JOB_COUNT_MAX;
    json_t *job = small_job(name, "/bin/a", a, count - a);
    struct alone_evaluation evaluation;
    struct err err = {0};

    int code = alone_register(small->alone, job, &evaluation, NULL, &err);
    json_decref(job);
    assert_string_equal(err.text, expected == NULL ? "" : expected);
    assert_int_equal(code, expected == NULL ? 0 : ERR_LIMIT);
    if (expected == NULL)
        assert_int_equal(evaluation.placed, count);
}

/* Registers jobs until there is room for LEFT allocs. */
static void fill(struct small_life *small, int left)
{
    int allocs = NODE_ALLOCS_MAX - left;
    char name[8] = "full-a";

    for (; allocs > 0; allocs -= LARGE, name[5]++)
        post(small, name, allocs < LARGE ? allocs : LARGE, NULL);
}

/* --- allocs --- */

static void test_what_one_turn_has_accepted_is_there(void **state)
{
    struct small_life *small = *state;

    fill(small, 1);
    post(small, "two", 2,
         "there is no room for 2 more allocs: the node has 16383 of at most 16384, ended ones with "
         "them");
    assert_null(small_find(small, "two"));
    post(small, "one", 1, NULL);
    post(small, "none", 1,
         "there is no room for 1 more allocs: the node has 16384 of at most 16384, ended ones with "
         "them");
    post(small, "empty", 0, NULL);
}

static void test_what_no_commit_took_gives_its_room_back(void **state)
{
    struct small_life *small = *state;

    fill(small, 0);
    small->commit_code = ERR_FULL;
    (void)life_turn(small->life);
    small->commit_code = 0;
    small->now_ms += 2000;
    small_settle(small);
    assert_int_equal(core_count(life_core(small->life), MACHINE_ALLOC), 0);
    fill(small, 0);
}

static void test_what_is_committed_is_there_until_it_is_gone(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;

    small->store = STORE_NOTHING;
    fill(small, 0);
    small_settle(small);
    assert_int_equal(core_count(life_core(small->life), MACHINE_ALLOC), NODE_ALLOCS_MAX);
    assert_int_equal(core_count(life_core(small->life), MACHINE_TASK), NODE_ALLOCS_MAX);
    post(small, "more", 1,
         "there is no room for 1 more allocs: the node has 16384 of at most 16384, ended ones with "
         "them");
    /* One that takes the place of another is there beside it for a while. */
    assert_int_equal(small_post(small, "full-e", "/bin/new", 384, 0, &evaluation), ERR_LIMIT);
    assert_int_equal(small_find(small, "full-e")->version, 0);
    assert_int_equal(
        alone_deregister(small->alone, "default", "full-e", ALONE_PURGE, &evaluation, NULL), 0);
    small_settle(small);
    post(small, "more", 384, NULL);
    post(small, "most", 1,
         "there is no room for 1 more allocs: the node has 16384 of at most 16384, ended ones with "
         "them");
}

/* --- tasks --- */

static json_t *job_of_tasks(const char *name, int count, int tasks)
{
    json_t *list = json_array();
    char task[8];

    for (int i = 0; i < tasks; i++) {
        (void)text_format(task, sizeof(task), "t%d", i); /* fits */
        json_t *item = json_pack("{s:s, s:s, s:{s:s}}", "Name", task, "Driver", "raw_exec",
                                 "Config", "command", "/bin/a");
        assert_int_equal(json_array_append_new(list, item), 0);
    }
    return json_pack("{s:s, s:[{s:s, s:i, s:{s:i}, s:o}]}", "ID", name, "TaskGroups", "Name", "g",
                     "Count", count, "EphemeralDisk", "SizeMB", 100000, "Tasks", list);
}

static void test_tasks_have_a_limit_of_their_own(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;
    char name[] = "full-a";
    struct err err = {0};
    json_t *job;

    for (int left = NODE_MEMBERS_MAX; left > 0; left -= JOB_TASKS_MAX, name[5]++) {
        job = job_of_tasks(name, JOB_TASKS_MAX / SPEC_TASKS_MAX, SPEC_TASKS_MAX);
        assert_int_equal(alone_register(small->alone, job, &evaluation, NULL, &err), 0);
        json_decref(job);
    }
    job = job_of_tasks("more", 1, 3);
    assert_int_equal(alone_register(small->alone, job, &evaluation, NULL, &err), ERR_LIMIT);
    assert_string_equal(err.text,
                        "there is no room for 3 more tasks: the node has 32768 of at most "
                        "32768, those of ended allocs with them");
    json_decref(job);
}

/* --- jobs --- */

static void test_jobs_have_a_limit(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;
    struct err err = {0};

    post(small, "j", 0, NULL);
    size_t bytes = small->alone->jobs_bytes;
    small->alone->jobs_bytes += NODE_JOBS_BYTES_MAX - bytes; /* as if there were many */
    json_t *job = small_job("k", "/bin/a", 0, 0);
    assert_int_equal(alone_register(small->alone, job, &evaluation, NULL, &err), ERR_LIMIT);
    assert_non_null(strstr(err.text, "more bytes of jobs: the node has 268435456 of at most "
                                     "268435456, those of stopped ones with them"));
    json_decref(job);
    post(small, "j", 0, NULL); /* it takes its own place */
    small_settle(small);
    assert_int_equal(alone_deregister(small->alone, "default", "j", ALONE_PURGE, &evaluation, NULL),
                     0);
    small_settle(small);
    assert_in_range(small->alone->jobs_bytes, NODE_JOBS_BYTES_MAX - 2 * bytes,
                    NODE_JOBS_BYTES_MAX - bytes);
    post(small, "k", 0, NULL);
}

/* --- one commit --- */

static json_t *job_of_bytes(int count, size_t bytes)
{
    json_t *job = small_job("large", "/bin/a", count, 0);
    char *text = malloc(bytes + 1);

    assert_non_null(text);
    memset(text, 'x', bytes);
    text[bytes] = '\0';
    assert_int_equal(json_object_set_new(job, "Meta", json_pack("{s:s}", "large", text)), 0);
    free(text);
    return job;
}

static void test_specifications_of_one_commit_have_a_limit(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;
    struct err err = {0};
    json_t *job = job_of_bytes(22, 3 << 20);

    assert_int_equal(alone_register(small->alone, job, &evaluation, NULL, &err), ERR_LIMIT);
    assert_string_equal(err.text, "the specifications of all allocs that are placed at once have "
                                  "more than 64 MiB");
    assert_null(small_find(small, "large"));
    assert_false(life_has_work(small->life));
    json_decref(job);
    job = job_of_bytes(20, 3 << 20);
    assert_int_equal(alone_register(small->alone, job, &evaluation, NULL, &err), 0);
    json_decref(job);
}

static void test_more_than_a_turn_takes_comes_again(void **state)
{
    struct small_life *small = *state;
    struct core *core = life_core(small->life);
    struct machine_id nobody = machine_id_make(MACHINE_ALLOC, "nobody");
    struct alone_evaluation evaluation;
    struct err err = {0};

    small_run(small, "j", "/bin/a", 2, 0);
    while (core_room(core) > 2)
        core_tell(core, &nobody, AE_DESTROY, NULL);
    assert_int_equal(alone_deregister(small->alone, "default", "j", ALONE_PURGE, &evaluation, &err),
                     ERR_AGAIN);
    assert_string_equal(err.text, "too many changes wait for the next commit: try again");
    assert_int_equal(small_post(small, "k", "/bin/a", 2, 0, &evaluation), ERR_AGAIN);
    assert_null(small_find(small, "k"));
    assert_int_equal(alone_deregister(small->alone, "default", "j", 0, &evaluation, &err), 0);
    assert_int_equal(core_room(core), 0);
    small_settle(small);
    assert_int_equal(small_post(small, "k", "/bin/a", 2, 0, &evaluation), 0);
}

/* --- a journal with more --- */

/* Stores what is stored once more, as allocs with other ids. */
static void double_records(struct small_life *small, size_t at)
{
    size_t count = small->records.count;

    for (size_t i = 0; i < count; i++) {
        struct stored_record *stored = list_more(&small->records);
        const struct stored_record *from = &small->records.items[i];
        uint32_t size = fsm_record_size(from->record);

        *stored = (struct stored_record){.id = from->id, .record = malloc(size)};
        assert_non_null(stored->record);
        memcpy(stored->record, from->record, size);
        stored->id.text[at] = 'x'; /* which no id has that was drawn */
    }
}

static void test_a_journal_with_more_is_restored_and_can_be_emptied(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;

    small->store = STORE_NEW;
    post(small, "j", LARGE, NULL);
    (void)life_turn(small->life);
    double_records(small, 0);
    double_records(small, 1);
    double_records(small, 2);
    assert_true(small->records.count > NODE_MACHINES_MAX);
    small->store = STORE_NOTHING;
    small_again(small);
    size_t allocs = core_count(life_core(small->life), MACHINE_ALLOC);
    assert_true(allocs > NODE_ALLOCS_MAX);
    assert_int_equal(small_post(small, "k", "/bin/a", 1, 0, &evaluation), ERR_LIMIT);
    assert_int_equal(alone_deregister(small->alone, "default", "j", ALONE_PURGE, &evaluation, NULL),
                     0);
    assert_int_equal(evaluation.stopped, allocs);
    small_settle(small);
    assert_int_equal(core_count(life_core(small->life), MACHINE_ALLOC), 0);
    assert_int_equal(small_post(small, "k", "/bin/a", 1, 0, &evaluation), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SMALL_TEST(test_what_one_turn_has_accepted_is_there),
        SMALL_TEST(test_what_no_commit_took_gives_its_room_back),
        SMALL_TEST(test_what_is_committed_is_there_until_it_is_gone),
        SMALL_TEST(test_tasks_have_a_limit_of_their_own),
        SMALL_TEST(test_jobs_have_a_limit),
        SMALL_TEST(test_specifications_of_one_commit_have_a_limit),
        SMALL_TEST(test_more_than_a_turn_takes_comes_again),
        SMALL_TEST(test_a_journal_with_more_is_restored_and_can_be_emptied),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
