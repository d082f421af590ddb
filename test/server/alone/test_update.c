/* A new version that replaces nothing goes to the allocs that run, whole and in one commit. */
#include "test/server/small_life.h"

#include "spec/job.h"

/* Of group "a" of JOB, its only task. */
static json_t *task_of_a(json_t *job)
{
    const json_t *group = json_array_get(json_object_get(job, "TaskGroups"), 0);

    return json_array_get(json_object_get(group, "Tasks"), 0);
}

static json_t *group_a(json_t *job)
{
    return json_array_get(json_object_get(job, "TaskGroups"), 0);
}

/* The job "j" whose tasks of "a" are ended after so many seconds. */
static json_t *job_with_timeout(int a, int b, int seconds)
{
    json_t *job = small_job("j", "/bin/a", a, b);

    assert_int_equal(json_object_set_new(task_of_a(job), "KillTimeout",
                                         json_integer((json_int_t)seconds * 1000000000)),
                     0);
    return job;
}

static struct alone_evaluation post(struct small_life *small, json_t *job)
{
    struct alone_evaluation evaluation;
    struct err err = {0};

    if (alone_register(small->alone, job, &evaluation, NULL, &err) < 0)
        fail_msg("%s", err.text);
    json_decref(job);
    return evaluation;
}

static struct alone_evaluation run(struct small_life *small, json_t *job)
{
    struct alone_evaluation evaluation = post(small, job);

    small_settle(small);
    return evaluation;
}

static void expect(const struct alone_evaluation *evaluation, unsigned placed, unsigned stopped,
                   unsigned updated)
{
    assert_int_equal(evaluation->placed, placed);
    assert_int_equal(evaluation->stopped, stopped);
    assert_int_equal(evaluation->updated, updated);
}

/* What is stored of what ALLOC runs by. */
static struct alloc_spec *spec_of(struct small_life *small, const char *alloc)
{
    char key[JOURNAL_KEY_SIZE];
    struct alloc_spec *spec;
    struct err err = {0};

    assert_true(text_format(key, sizeof(key), "alloc/%s", alloc));
    const struct stored_blob *stored = small_spec(small, key);
    assert_non_null(stored);
    if (jobspec_decode_alloc(stored->bytes, stored->length, &spec, &err) != 0)
        fail_msg("%s", err.text);
    return spec;
}

/* ALLOC, its task WEB and what is stored of it are of that version and wait so long. */
static void expect_version(struct small_life *small, const char *alloc, uint64_t version,
                           uint64_t timeout_ms)
{
    struct alloc_spec *spec = spec_of(small, alloc);
    const struct core *core = life_core(small->life);

    assert_int_equal(core_alloc(core, alloc)->assign.job_version, version);
    assert_int_equal(core_task(core, alloc, "web")->define.kill_timeout_ms, timeout_ms);
    assert_int_equal(core_task(core, alloc, "web")->machine.generation, 1); /* started once */
    assert_int_equal(spec->job_version, version);
    assert_int_equal(spec->tasks[0].kill_timeout_ms, timeout_ms);
    alloc_spec_free(spec);
}

static void test_newer_version_goes_to_each_alloc_in_one_commit(void **state)
{
    struct small_life *small = *state;

    (void)run(small, job_with_timeout(2, 1, 5));
    struct small_counts before = small_count(small, "j", "a");
    struct alloc_spec *first = spec_of(small, before.newest);
    size_t commits = small->commits;
    struct alone_evaluation evaluation = post(small, job_with_timeout(2, 1, 9));
    expect(&evaluation, 0, 0, 3); /* of the other group it is another version, too */
    expect_version(small, before.newest, 0, 5000);
    (void)life_turn(small->life); /* nothing has to follow */
    assert_int_equal(small->commits, commits + 1);
    assert_true(small->job_was_saved);
    small_settle(small);

    assert_int_equal(small_find(small, "j")->version, 1);
    assert_string_equal(small_count(small, "j", "a").newest, before.newest);
    assert_int_equal(small_count(small, "j", NULL).ended, 0);
    expect_version(small, before.newest, 1, 9000);
    struct alloc_spec *second = spec_of(small, before.newest);
    assert_string_not_equal(second->eval_id, first->eval_id);
    assert_string_equal(second->eval_id, evaluation.id);
    assert_int_equal(second->create_index, first->create_index);
    assert_int_equal(second->create_time_unix_ns, first->create_time_unix_ns);
    assert_int_equal(first->modify_index, 0);
    assert_true(second->modify_index > second->create_index);
    alloc_spec_free(first);
    alloc_spec_free(second);
    small_again(small);
    expect_version(small, before.newest, 1, 9000);
}

static void test_failed_commit_leaves_the_old_version_whole(void **state)
{
    struct small_life *small = *state;

    (void)run(small, job_with_timeout(1, 0, 5));
    struct small_counts before = small_count(small, "j", "a");
    small->commit_code = ERR_IO;
    (void)run(small, job_with_timeout(1, 0, 9));
    small->commit_code = 0;
    small->now_ms += 2000;
    small_settle(small);
    assert_int_equal(small_find(small, "j")->version, 0);
    expect_version(small, before.newest, 0, 5000);
    struct alone_evaluation again = run(small, job_with_timeout(1, 0, 9));
    expect(&again, 0, 0, 1);
    expect_version(small, before.newest, 1, 9000);
}

static void test_same_job_again_changes_nothing(void **state)
{
    struct small_life *small = *state;

    (void)run(small, job_with_timeout(1, 0, 5));
    struct alone_evaluation again = run(small, job_with_timeout(1, 0, 5));
    expect(&again, 0, 0, 0);
    expect_version(small, small_count(small, "j", "a").newest, 0, 5000);
}

static void test_other_counts_leave_who_stays_as_it_is(void **state)
{
    struct small_life *small = *state;

    (void)run(small, job_with_timeout(1, 0, 5));
    struct small_counts before = small_count(small, "j", "a");
    struct alone_evaluation more = run(small, job_with_timeout(3, 0, 5));
    expect(&more, 2, 0, 1);
    expect_version(small, before.newest, 1, 5000);
    struct alone_evaluation fewer = run(small, job_with_timeout(1, 0, 5));
    expect(&fewer, 0, 2, 1);
    expect_version(small, before.newest, 2, 5000);
}

static void test_one_group_is_replaced_and_the_other_goes_on(void **state)
{
    struct small_life *small = *state;

    (void)run(small, small_job("j", "/bin/a", 2, 1));
    struct small_counts a = small_count(small, "j", "a"), b = small_count(small, "j", "b");
    struct alone_evaluation evaluation = run(small, small_job("j", "/bin/new", 2, 1));
    expect(&evaluation, 2, 2, 1);
    assert_string_not_equal(small_count(small, "j", "a").newest, a.newest);
    assert_string_equal(small_count(small, "j", "b").newest, b.newest);
    assert_int_equal(core_alloc(life_core(small->life), b.newest)->assign.job_version, 1);
}

static void test_ports_stay_with_who_goes_on(void **state)
{
    struct small_life *small = *state;

    for (int seconds = 5; seconds < 7; seconds++) {
        json_t *job = job_with_timeout(1, 0, seconds);
        json_t *network =
            json_pack("[{s:[{s:s}, {s:s}]}]", "DynamicPorts", "Label", "http", "Label", "admin");
        static struct spec_port ports[2];

        assert_int_equal(json_object_set_new(group_a(job), "Networks", network), 0);
        (void)run(small, job);
        struct alloc_spec *spec = spec_of(small, small_count(small, "j", "a").newest);
        assert_int_equal(spec->ports.count, 2);
        for (size_t i = 0; i < COUNT_OF(ports); i++) {
            assert_true(spec->ports.items[i].value >= 20000);
            if (seconds > 5)
                assert_int_equal(spec->ports.items[i].value, ports[i].value);
            ports[i] = spec->ports.items[i];
        }
        alloc_spec_free(spec);
    }
    assert_int_equal(small_count(small, "j", "a").ended, 0);
}

static void test_who_cannot_say_what_it_runs_by_is_replaced(void **state)
{
    struct small_life *small = *state;
    char key[JOURNAL_KEY_SIZE];

    (void)run(small, job_with_timeout(2, 0, 5));
    struct small_counts before = small_count(small, "j", "a");
    assert_true(text_format(key, sizeof(key), "alloc/%s", before.newest));
    char *stored = small_spec(small, key)->bytes; /* whole but for one number */
    memcpy(strstr(stored, "\"Schema\":1"), "\"Schema\":7", strlen("\"Schema\":1"));
    struct alone_evaluation evaluation = run(small, job_with_timeout(2, 0, 9));
    expect(&evaluation, 1, 1, 1);
    assert_int_equal(core_alloc(life_core(small->life), before.newest)->stop_wanted, 1);
    assert_int_equal(small_count(small, "j", "a").live, 2);
}

static void test_who_may_not_be_here_any_more_does_not_go_on(void **state)
{
    struct small_life *small = *state;
    json_t *job = job_with_timeout(1, 0, 9);

    (void)run(small, job_with_timeout(1, 0, 5));
    assert_int_equal(json_object_set_new(job, "Datacenters", json_pack("[s]", "elsewhere")), 0);
    struct alone_evaluation evaluation = run(small, job);
    expect(&evaluation, 0, 1, 0);
    assert_int_equal(small_count(small, "j", NULL).live, 0);
}

/* As after its start, when drivers have not been asked yet. */
static void test_who_runs_goes_on_where_it_is_not_known_what_there_is(void **state)
{
    struct small_life *small = *state;

    (void)run(small, job_with_timeout(1, 0, 5));
    struct small_counts before = small_count(small, "j", "a");
    small_kill(small);
    small->lacks_driver = "raw_exec";
    small->is_unknown = true;
    small_begin(small);
    small_settle(small);
    (void)run(small, job_with_timeout(1, 0, 9));
    assert_string_equal(small_count(small, "j", "a").newest, before.newest);
    json_t *job = job_with_timeout(1, 0, 10); /* of this nobody has to be asked */
    assert_int_equal(json_object_set_new(job, "Datacenters", json_pack("[s]", "elsewhere")), 0);
    (void)run(small, job);
    assert_int_equal(small_count(small, "j", NULL).live, 0);
}

static void test_two_versions_in_one_turn_are_the_newer_one(void **state)
{
    struct small_life *small = *state;

    (void)run(small, job_with_timeout(1, 0, 5));
    struct small_counts before = small_count(small, "j", "a");
    (void)post(small, job_with_timeout(1, 0, 9));
    struct alone_evaluation evaluation = run(small, job_with_timeout(1, 0, 7));
    expect(&evaluation, 0, 0, 1);
    expect_version(small, before.newest, 2, 7000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SMALL_TEST(test_newer_version_goes_to_each_alloc_in_one_commit),
        SMALL_TEST(test_failed_commit_leaves_the_old_version_whole),
        SMALL_TEST(test_same_job_again_changes_nothing),
        SMALL_TEST(test_other_counts_leave_who_stays_as_it_is),
        SMALL_TEST(test_one_group_is_replaced_and_the_other_goes_on),
        SMALL_TEST(test_ports_stay_with_who_goes_on),
        SMALL_TEST(test_who_cannot_say_what_it_runs_by_is_replaced),
        SMALL_TEST(test_who_may_not_be_here_any_more_does_not_go_on),
        SMALL_TEST(test_who_runs_goes_on_where_it_is_not_known_what_there_is),
        SMALL_TEST(test_two_versions_in_one_turn_are_the_newer_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
