/* What is over goes: ended allocs beyond the bound, dead jobs; and what comes back of jobs. */
#include "test/server/small_life.h"

static void deregister(struct small_life *small, const char *job)
{
    struct alone_evaluation evaluation;
    struct err err;

    assert_int_equal(alone_deregister(small->alone, "default", job, 0, &evaluation, &err), 0);
    small_settle(small);
}

/* A job of one alloc that has ended; which one it was. */
static struct machine_id end_one(struct small_life *small, const char *job)
{
    small->now_ms += 1000;
    small_run(small, job, "/bin/a", 1, 0);
    struct small_counts counts = small_count(small, job, NULL);
    deregister(small, job);
    return machine_id_make(MACHINE_ALLOC, counts.newest);
}

static bool is_kept(struct small_life *small, const struct machine_id *alloc)
{
    return core_find(life_core(small->life), alloc) != NULL;
}

/* --- ended allocs --- */

static void test_ended_allocs_beyond_the_bound_go_oldest_first(void **state)
{
    struct small_life *small = *state;
    struct machine_id ids[5];

    small->kept = 3;
    small_again(small);
    for (int i = 0; i < 5; i++) {
        char job[] = {(char)('a' + i), '\0'};
        ids[i] = end_one(small, job);
    }
    assert_int_equal(core_count(life_core(small->life), MACHINE_ALLOC), 3);
    for (int i = 0; i < 5; i++)
        assert_int_equal(is_kept(small, &ids[i]), i >= 2);
    assert_int_equal(small_specs_of(small, "alloc/"), 3);
    assert_non_null(small_find(small, "a")); /* a job that is stopped stays without allocs */
}

static void test_smaller_bound_counts_from_the_next_start_on(void **state)
{
    struct small_life *small = *state;

    for (int i = 0; i < 4; i++)
        (void)end_one(small, "j");
    assert_int_equal(core_count(life_core(small->life), MACHINE_ALLOC), 4);
    small->kept = 1;
    small_again(small);
    assert_int_equal(core_count(life_core(small->life), MACHINE_ALLOC), 1);
}

static void test_collect_takes_all_that_ended_and_dead_jobs(void **state)
{
    struct small_life *small = *state;

    (void)end_one(small, "dead");
    small_run(small, "alive", "/bin/a", 2, 0);
    small_run(small, "alive", "/bin/a", 1, 0);
    alone_collect(small->alone);
    small_settle(small);
    assert_null(small_find(small, "dead"));
    assert_non_null(small_find(small, "alive"));
    assert_int_equal(small_count(small, "alive", NULL).live, 1);
    assert_int_equal(small_count(small, "alive", NULL).ended, 0);
    assert_int_equal(small->specs.count, 2);
}

static void test_collect_waits_for_a_stop_that_is_not_committed(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;
    struct err err;

    small_run(small, "j", "/bin/a", 0, 0);
    small->commit_code = ERR_FULL;
    assert_int_equal(alone_deregister(small->alone, "default", "j", 0, &evaluation, &err), 0);
    alone_collect(small->alone);
    small_settle(small);
    small->commit_code = 0;
    small->now_ms += 2000;
    small_settle(small);
    assert_false(small_find(small, "j")->stop);
    assert_non_null(small_spec(small, "job/default/j"));
}

/* --- a full disk --- */

static void measure(struct small_life *small, uint64_t used_mb, uint64_t free_mb)
{
    struct disk_use use = {.bytes_used = used_mb << 20, .bytes_free = free_mb << 20};

    small->measures = 0;
    alone_disk_measured(small->alone, &use);
    small_settle(small);
}

static void test_full_disk_takes_few_at_once_and_asks_again(void **state)
{
    struct small_life *small = *state;
    struct machine_id ids[5];

    for (int i = 0; i < 5; i++)
        ids[i] = end_one(small, "j");
    measure(small, 900, 100); /* as full as it may be */
    assert_int_equal(core_count(life_core(small->life), MACHINE_ALLOC), 5);
    assert_int_equal(small->measures, 0);
    measure(small, 901, 99);
    for (int i = 0; i < 5; i++)
        assert_int_equal(is_kept(small, &ids[i]), i >= 2);
    assert_int_not_equal(small->measures, 0); /* when they had gone */
    measure(small, 800, 200);
    assert_int_equal(core_count(life_core(small->life), MACHINE_ALLOC), 3);
    assert_int_equal(small->measures, 0);
    small->said[0] = '\0';
    for (int i = 0; i < 4; i++)
        measure(small, 950, 50);
    assert_int_equal(core_count(life_core(small->life), MACHINE_ALLOC), 0);
    const char *told = strstr(small->said, "no ended alloc is left to be collected");
    assert_non_null(told); /* once */
    assert_null(strstr(told + 1, "no ended alloc is left to be collected"));
}

static void test_full_disk_awaits_what_is_leaving_it_but_not_for_ever(void **state)
{
    struct small_life *small = *state;
    struct disk_use use = {.bytes_used = (uint64_t)95 << 20, .bytes_free = (uint64_t)5 << 20};

    for (int i = 0; i < 7; i++)
        (void)end_one(small, "j");
    for (int look = 0; look < 3; look++) {
        alone_disk_measured(small->alone, &use); /* neither of the first two has gone yet */
        small->now_ms += 60000 - 1;
    }
    small_settle(small);
    assert_int_equal(core_count(life_core(small->life), MACHINE_ALLOC), 5);
    for (int look = 0; look < 2; look++) {
        alone_disk_measured(small->alone, &use);
        small->now_ms += 180000;
    }
    small_settle(small);
    assert_int_equal(core_count(life_core(small->life), MACHINE_ALLOC), 1);
}

static void test_without_inodes_ended_allocs_go_too(void **state)
{
    struct small_life *small = *state;
    struct disk_use use = {.bytes_used = 1, .bytes_free = 99, .inodes_used = 91, .inodes_free = 9};

    (void)end_one(small, "j");
    alone_disk_measured(small->alone, &use);
    small_settle(small);
    assert_int_equal(core_count(life_core(small->life), MACHINE_ALLOC), 0);
}

static void test_what_has_no_room_on_the_disk_waits_for_garbage_to_go(void **state)
{
    struct small_life *small = *state;

    for (int i = 0; i < 3; i++)
        (void)end_one(small, "old");
    measure(small, 100, 299); /* the default asks for 300 */
    assert_int_equal(core_count(life_core(small->life), MACHINE_ALLOC), 3);
    small_run(small, "new", "/bin/a", 1, 0);
    assert_int_equal(small_count(small, "new", NULL).live, 0);
    assert_int_not_equal(small->measures, 0);
    measure(small, 100, 299);
    assert_int_equal(core_count(life_core(small->life), MACHINE_ALLOC), 1);
    assert_int_equal(small_count(small, "new", NULL).live, 0);
    measure(small, 99, 300);
    assert_int_equal(small_count(small, "new", NULL).live, 1);
    assert_int_equal(small_count(small, "old", NULL).ended, 1); /* it was enough */
}

static void test_nothing_is_collected_for_who_lacks_something_else(void **state)
{
    struct small_life *small = *state;

    (void)end_one(small, "old");
    small->lacks_driver = "raw_exec";
    measure(small, 100, 299);
    small_run(small, "new", "/bin/a", 1, 0);
    assert_int_equal(small_count(small, "new", NULL).live, 0);
    measure(small, 100, 299);
    assert_int_equal(small_count(small, "old", NULL).ended, 1);
}

static void test_nothing_is_collected_for_who_waits_no_more(void **state)
{
    struct small_life *small = *state;

    for (int i = 0; i < 3; i++)
        (void)end_one(small, "old");
    measure(small, 100, 299);
    small_run(small, "new", "/bin/a", 1, 0);
    deregister(small, "new");
    measure(small, 100, 299);
    assert_int_equal(small_count(small, "old", NULL).ended, 3);
}

static void test_what_waits_is_placed_when_no_garbage_is_left(void **state)
{
    struct small_life *small = *state;

    (void)end_one(small, "old");
    measure(small, 2, 1);
    small_run(small, "new", "/bin/a", 1, 0);
    assert_int_equal(small_count(small, "new", NULL).live, 0);
    for (int i = 0; i < 3; i++)
        measure(small, 2, 1);
    assert_int_equal(small_count(small, "old", NULL).ended, 0);
    assert_int_equal(small_count(small, "new", NULL).live, 1);
}

/* --- what comes back --- */

static void test_damaged_job_answers_for_its_allocs(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;
    struct err err;

    small_run(small, "j", "/bin/a", 2, 0);
    small_spec(small, "job/default/j")->bytes[0] = 'x';
    small_again(small);
    assert_non_null(strstr(small->said, "a stored job cannot be read; its allocs go on"));
    assert_non_null(strstr(small->said, "a job is lost"));
    assert_int_equal(small_count(small, "j", NULL).live, 2);
    assert_true(small_find(small, "j")->stop);
    assert_int_equal(alone_deregister(small->alone, "default", "j", ALONE_PURGE, &evaluation, &err),
                     0);
    small_settle(small);
    assert_null(small_find(small, "j"));
    assert_int_equal(small->specs.count, 0);
    assert_int_equal(small->records.count, 0);
}

/* What registering has seen to is looked at again, since it is relied on. */
static void test_job_that_no_registration_would_take_is_put_aside(void **state)
{
    static const char *const odd[] = {
        "{\"ID\":\"j\",\"Namespace\":\"default\"}",
        "{\"ID\":\"other\",\"Namespace\":\"default\",\"Type\":\"service\"}",
        "{\"ID\":\"j\",\"Namespace\":\"default\",\"Type\":\"service\",\"Version\":-1}",
        "{\"ID\":\"j\",\"Namespace\":\"default\",\"Type\":\"service\",\"Datacenters\":[1]}",
        "{\"ID\":\"j\",\"Namespace\":\"default\",\"Type\":\"service\",\"TaskGroups\":[{}]}",
        "{\"ID\":\"j\",\"Namespace\":\"default\",\"Type\":\"service\",\"TaskGroups\":"
        "[{\"Name\":\"g\",\"Count\":4294967295}]}",
        "{\"ID\":\"j\",\"Namespace\":\"default\",\"Type\":\"service\",\"TaskGroups\":"
        "[{\"Name\":\"g\",\"Count\":1},{\"Name\":\"g\",\"Count\":1}]}",
        "{\"ID\":\"j\",\"Namespace\":\"default\",\"Type\":\"service\",\"TaskGroups\":"
        "[{\"Name\":\"g\",\"Tasks\":[{\"Resources\":{\"CPU\":-1}}]}]}",
    };
    struct small_life *small = *state;

    for (size_t i = 0; i < COUNT_OF(odd); i++) {
        small->said[0] = '\0';
        small_keep_spec(small, "job/default/j", odd[i], strlen(odd[i]));
        small_again(small);
        assert_non_null(strstr(small->said, "a stored job cannot be read"));
        assert_null(small_find(small, "j"));
    }
    small_run(small, "j", "/bin/a", 2, 0);
    small_again(small);
    assert_int_equal(small_count(small, "j", NULL).live, 2);
}

static void test_lost_job_is_adopted_and_registered_again(void **state)
{
    struct small_life *small = *state;

    small_run(small, "j", "/bin/a", 2, 0);
    small_keep_spec(small, "job/default/j", NULL, 0);
    small_again(small);
    assert_non_null(small_spec(small, "job/default/j"));
    struct alone_evaluation again = small_run(small, "j", "/bin/a", 2, 0);
    assert_int_equal(again.updated, 2); /* each says itself what it runs by */
    assert_int_equal(again.placed, 0);
    assert_int_equal(again.stopped, 0);
    assert_int_equal(small_count(small, "j", NULL).live, 2);
    assert_false(small_find(small, "j")->stop);
}

/* --- evaluations --- */

static bool count_evaluation(void *ctx, const struct alone_evaluation *evaluation)
{
    assert_string_equal(evaluation->job_id, "j");
    return ++*(size_t *)ctx < 300;
}

static void test_last_evaluations_are_found_newest_first(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation first = small_run(small, "j", "/bin/a", 0, 0), last = first;
    size_t count = 0;

    for (int i = 0; i < 255; i++)
        last = small_run(small, "j", "/bin/a", 0, 0);
    assert_non_null(alone_evaluation(small->alone, first.id));
    assert_string_equal(alone_evaluation(small->alone, "")->id, last.id);
    small_run(small, "j", "/bin/a", 0, 0);
    assert_null(alone_evaluation(small->alone, first.id));
    assert_string_equal(alone_evaluation(small->alone, last.id)->triggered_by, "job-register");
    alone_each_evaluation(small->alone, count_evaluation, &count);
    assert_int_equal(count, 256);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        SMALL_TEST(test_ended_allocs_beyond_the_bound_go_oldest_first),
        SMALL_TEST(test_smaller_bound_counts_from_the_next_start_on),
        SMALL_TEST(test_collect_takes_all_that_ended_and_dead_jobs),
        SMALL_TEST(test_collect_waits_for_a_stop_that_is_not_committed),
        SMALL_TEST(test_full_disk_takes_few_at_once_and_asks_again),
        SMALL_TEST(test_full_disk_awaits_what_is_leaving_it_but_not_for_ever),
        SMALL_TEST(test_without_inodes_ended_allocs_go_too),
        SMALL_TEST(test_what_has_no_room_on_the_disk_waits_for_garbage_to_go),
        SMALL_TEST(test_nothing_is_collected_for_who_lacks_something_else),
        SMALL_TEST(test_nothing_is_collected_for_who_waits_no_more),
        SMALL_TEST(test_what_waits_is_placed_when_no_garbage_is_left),
        SMALL_TEST(test_damaged_job_answers_for_its_allocs),
        SMALL_TEST(test_job_that_no_registration_would_take_is_put_aside),
        SMALL_TEST(test_lost_job_is_adopted_and_registered_again),
        SMALL_TEST(test_last_evaluations_are_found_newest_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
