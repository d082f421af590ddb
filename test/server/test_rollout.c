/*
 * A newer version of a service takes the place of the older one step by step.  The daemon may die
 * at any moment in between; nothing of it is in its memory only.
 */
#include "test/server/small_life.h"

#define HEALTHY_MS 5000
#define DEADLINE_MS 20000
#define PROGRESS_MS 60000

static const json_int_t ms = 1000000;

/* A service "j" whose group "g" has so many allocs, of which PARALLEL are replaced at a time. */
static json_t *job_of(const char *command, int count, int parallel)
{
    json_t *job = json_pack(
        "{s:s, s:s, s:[s], s:[{s:s, s:i, s:{s:i, s:s}, s:{s:i, s:b}, s:{s:i, s:I, s:I, s:I, s:I},"
        " s:[{s:s, s:s, s:{s:s}}]}]}",
        "ID", "j", "Type", "service", "Datacenters", "*", "TaskGroups", "Name", "g", "Count", count,
        "RestartPolicy", "Attempts", 0, "Mode", "fail", "ReschedulePolicy", "Attempts", 0,
        "Unlimited", 0, "Update", "MaxParallel", parallel, "Stagger", ms, "MinHealthyTime",
        HEALTHY_MS * ms, "HealthyDeadline", DEADLINE_MS * ms, "ProgressDeadline", PROGRESS_MS * ms,
        "Tasks", "Name", "t", "Driver", "raw_exec", "Config", "command", command);

    assert_non_null(job);
    return job;
}

static struct alone_evaluation run(struct small_life *small, json_t *job)
{
    struct alone_evaluation evaluation;
    struct err err = {0};

    if (alone_register(small->alone, job, &evaluation, NULL, &err) < 0)
        fail_msg("%s", err.text);
    json_decref(job);
    small_settle(small);
    return evaluation;
}

/* The allocs of "j" that live, by the version that they are of. */
struct versions {
    size_t count[4];
    char newest[UUID_TEXT_SIZE];
};

static bool count_version(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct versions *versions = ctx;
    const struct alloc *alloc = alloc_of(record);

    if (alloc->ended_unix_ns != 0)
        return true;
    assert_in_range(alloc->assign.job_version, 0, 3);
    if (alloc->health == HEALTH_UNKNOWN)
        (void)text_copy(versions->newest, sizeof(versions->newest), id->text); /* same size */
    versions->count[alloc->assign.job_version]++;
    return true;
}

static struct versions count_versions(struct small_life *small)
{
    struct versions versions = {0};

    core_each(life_core(small->life), MACHINE_ALLOC, count_version, &versions);
    return versions;
}

static void expect_versions(struct small_life *small, size_t first, size_t second, size_t third)
{
    struct versions versions = count_versions(small);

    assert_int_equal(versions.count[0], first);
    assert_int_equal(versions.count[1], second);
    assert_int_equal(versions.count[2], third);
}

static void expect_deployment(struct small_life *small, uint64_t version, const char *status,
                              int placed, int healthy, int unhealthy)
{
    json_t *deployment = alone_deployment(small->alone, small_find(small, "j"));
    const json_t *group = json_object_get(json_object_get(deployment, "TaskGroups"), "g");

    assert_non_null(deployment);
    assert_string_equal(json_string_value(json_object_get(deployment, "Status")), status);
    assert_int_equal(json_integer_value(json_object_get(deployment, "JobVersion")), version);
    assert_int_equal(json_integer_value(json_object_get(group, "PlacedAllocs")), placed);
    assert_int_equal(json_integer_value(json_object_get(group, "HealthyAllocs")), healthy);
    assert_int_equal(json_integer_value(json_object_get(group, "UnhealthyAllocs")), unhealthy);
    json_decref(deployment);
}

static void pass(struct small_life *small, uint64_t time_ms)
{
    small->now_ms += time_ms;
    small_settle(small);
}

/* The task of the alloc that is not known to be healthy ends by itself. */
static void fail_newest(struct small_life *small)
{
    struct versions versions = count_versions(small);
    struct machine_id id = machine_id_join(MACHINE_TASK, versions.newest, "t");
    const struct task *task = core_task(life_core(small->life), versions.newest, "t");
    struct exited ended = {.known = 1, .code = 1};

    assert_non_null(task);
    core_news(life_core(small->life), &id, task->machine.generation, TE_EXITED, &ended);
    small_settle(small);
}

static void begin(struct small_life *small, int count, int parallel)
{
    struct alone_evaluation evaluation = run(small, job_of("/bin/a", count, parallel));

    assert_int_equal(evaluation.placed, count); /* nothing is there that could be kept */
    assert_true(uuid_is_valid(evaluation.deployment_id));
    expect_deployment(small, 0, "running", count, 0, 0);
    pass(small, HEALTHY_MS);
    expect_deployment(small, 0, "successful", count, count, 0);
}

static void test_no_more_than_max_parallel_are_replaced_before_they_are_healthy(void **state)
{
    struct small_life *small = *state;

    begin(small, 5, 2);
    struct alone_evaluation evaluation = run(small, job_of("/bin/b", 5, 2));
    assert_int_equal(evaluation.placed, 2);
    assert_int_equal(evaluation.stopped, 2);
    expect_versions(small, 3, 2, 0);
    pass(small, HEALTHY_MS - 1);
    expect_versions(small, 3, 2, 0);
    expect_deployment(small, 1, "running", 2, 0, 0);
    pass(small, 1);
    expect_versions(small, 1, 4, 0);
    expect_deployment(small, 1, "running", 4, 2, 0);
    pass(small, HEALTHY_MS);
    expect_versions(small, 0, 5, 0);
    expect_deployment(small, 1, "running", 5, 4, 0);
    pass(small, HEALTHY_MS);
    expect_deployment(small, 1, "successful", 5, 5, 0);
    assert_string_equal(small->said, "");
}

static void test_unhealthy_one_stops_it(void **state)
{
    struct small_life *small = *state;

    begin(small, 3, 1);
    (void)run(small, job_of("/bin/b", 3, 1));
    pass(small, HEALTHY_MS);
    expect_versions(small, 1, 2, 0);
    fail_newest(small);
    expect_deployment(small, 1, "failed", 2, 1, 1);
    pass(small, 10 * PROGRESS_MS);
    expect_versions(small, 1, 1, 0); /* the old one goes on */
    small_again(small);
    expect_versions(small, 1, 1, 0);
    expect_deployment(small, 1, "failed", 2, 1, 1);
}

/* Nomad replaces it while its group may be rescheduled, until progress_deadline is over. */
static void test_one_that_is_rescheduled_may_still_become_healthy(void **state)
{
    struct small_life *small = *state;
    json_t *job = job_of("/bin/b", 2, 1);
    json_t *group = json_array_get(json_object_get(job, "TaskGroups"), 0);

    begin(small, 2, 1);
    assert_int_equal(json_object_set_new(group, "ReschedulePolicy",
                                         json_pack("{s:b, s:I, s:s}", "Unlimited", 1, "Delay",
                                                   6000 * ms, "DelayFunction", "constant")),
                     0);
    (void)run(small, job);
    fail_newest(small);
    expect_deployment(small, 1, "running", 1, 0, 1);
    pass(small, 6000);
    expect_versions(small, 1, 1, 0); /* nobody else is replaced meanwhile */
    expect_deployment(small, 1, "running", 2, 0, 1);
    pass(small, HEALTHY_MS);
    expect_versions(small, 0, 2, 0);
    pass(small, HEALTHY_MS);
    expect_deployment(small, 1, "successful", 3, 2, 1);
}

static void test_it_fails_when_nothing_becomes_healthy_in_time(void **state)
{
    struct small_life *small = *state;
    json_t *job = job_of("/bin/b", 2, 1);
    json_t *update =
        json_object_get(json_array_get(json_object_get(job, "TaskGroups"), 0), "Update");

    begin(small, 2, 1);
    assert_int_equal(json_object_set_new(update, "ProgressDeadline", json_integer(3000 * ms)), 0);
    (void)run(small, job);
    pass(small, 2999);
    expect_deployment(small, 1, "running", 1, 0, 0);
    pass(small, 1);
    expect_deployment(small, 1, "failed", 1, 0, 0);
    pass(small, HEALTHY_MS);
    expect_versions(small, 1, 1, 0);
}

static void test_daemon_that_dies_goes_on_with_it(void **state)
{
    struct small_life *small = *state;

    begin(small, 3, 1);
    (void)run(small, job_of("/bin/b", 3, 1));
    for (size_t healthy = 0; healthy < 3; healthy++) {
        expect_versions(small, 2 - healthy, healthy + 1, 0);
        small_again(small);
        expect_versions(small, 2 - healthy, healthy + 1, 0);
        pass(small, HEALTHY_MS);
    }
    expect_versions(small, 0, 3, 0);
    expect_deployment(small, 1, "successful", 3, 3, 0);
}

static void test_newer_version_takes_its_place(void **state)
{
    struct small_life *small = *state;

    begin(small, 3, 1);
    struct alone_evaluation second = run(small, job_of("/bin/b", 3, 1));
    struct alone_evaluation third = run(small, job_of("/bin/c", 3, 1));
    assert_string_not_equal(second.deployment_id, third.deployment_id);
    expect_deployment(small, 2, "running", 1, 0, 0);
    for (int i = 0; i < 3; i++)
        pass(small, HEALTHY_MS);
    expect_versions(small, 0, 0, 3);
    expect_deployment(small, 2, "successful", 3, 3, 0);
}

static void test_same_version_again_goes_on_with_it(void **state)
{
    struct small_life *small = *state;

    begin(small, 3, 1);
    (void)run(small, job_of("/bin/b", 3, 1));
    struct alone_evaluation again = run(small, job_of("/bin/b", 3, 1));
    assert_int_equal(again.placed + again.stopped, 0);
    expect_versions(small, 2, 1, 0);
    pass(small, HEALTHY_MS);
    expect_versions(small, 1, 2, 0);
    expect_deployment(small, 1, "running", 2, 1, 0);
}

static void test_stopped_job_has_no_deployment_that_runs(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;
    struct err err = {0};

    begin(small, 2, 1);
    (void)run(small, job_of("/bin/b", 2, 1));
    assert_int_equal(alone_deregister(small->alone, "default", "j", false, &evaluation, &err), 0);
    small_settle(small);
    expect_deployment(small, 1, "cancelled", 1, 0, 0);
    expect_versions(small, 0, 0, 0);
    (void)run(small, job_of("/bin/b", 2, 1)); /* all are placed, as the first time */
    expect_deployment(small, 1, "running", 2, 0, 0);
    pass(small, HEALTHY_MS);
    expect_deployment(small, 1, "successful", 2, 2, 0);
    assert_int_equal(alone_deregister(small->alone, "default", "j", true, &evaluation, &err), 0);
    small_settle(small);
    assert_null(small_find(small, "j"));
}

static void test_failed_commit_leaves_no_deployment(void **state)
{
    struct small_life *small = *state;

    begin(small, 2, 1);
    small->commit_code = ERR_IO;
    (void)run(small, job_of("/bin/b", 2, 1));
    small->commit_code = 0;
    pass(small, 2000);
    expect_versions(small, 2, 0, 0);
    expect_deployment(small, 0, "successful", 2, 2, 0);
}

static void test_failed_commit_of_a_step_is_made_again(void **state)
{
    struct small_life *small = *state;

    begin(small, 2, 1);
    (void)run(small, job_of("/bin/b", 2, 1));
    pass(small, HEALTHY_MS - 1);
    small->commit_code = ERR_IO;
    pass(small, 1);
    expect_versions(small, 1, 1, 0);
    small->commit_code = 0;
    pass(small, 3000);
    expect_versions(small, 0, 2, 0);
    pass(small, HEALTHY_MS + 3000);
    expect_deployment(small, 1, "successful", 2, 2, 0);
}

static void test_higher_count_is_placed_at_once_and_lower_stopped(void **state)
{
    struct small_life *small = *state;

    begin(small, 2, 1);
    struct alone_evaluation up = run(small, job_of("/bin/a", 4, 1));
    assert_int_equal(up.placed, 2);
    assert_int_equal(up.updated, 2);
    expect_deployment(small, 1, "running", 2, 0, 0);
    pass(small, HEALTHY_MS);
    expect_deployment(small, 1, "successful", 2, 2, 0); /* who went on is not asked again */
    struct alone_evaluation down = run(small, job_of("/bin/a", 1, 1));
    assert_int_equal(down.stopped, 3);
    expect_deployment(small, 1, "successful", 2, 2, 0); /* nothing is to be waited for */
}

static void test_without_max_parallel_all_are_replaced_at_once(void **state)
{
    struct small_life *small = *state;

    (void)run(small, job_of("/bin/a", 3, 0));
    assert_int_equal(run(small, job_of("/bin/b", 3, 0)).placed, 3);
    expect_versions(small, 0, 3, 0);
    assert_null(alone_deployment(small->alone, small_find(small, "j")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SMALL_TEST(test_no_more_than_max_parallel_are_replaced_before_they_are_healthy),
        SMALL_TEST(test_unhealthy_one_stops_it),
        SMALL_TEST(test_one_that_is_rescheduled_may_still_become_healthy),
        SMALL_TEST(test_it_fails_when_nothing_becomes_healthy_in_time),
        SMALL_TEST(test_daemon_that_dies_goes_on_with_it),
        SMALL_TEST(test_newer_version_takes_its_place),
        SMALL_TEST(test_same_version_again_goes_on_with_it),
        SMALL_TEST(test_stopped_job_has_no_deployment_that_runs),
        SMALL_TEST(test_failed_commit_leaves_no_deployment),
        SMALL_TEST(test_failed_commit_of_a_step_is_made_again),
        SMALL_TEST(test_higher_count_is_placed_at_once_and_lower_stopped),
        SMALL_TEST(test_without_max_parallel_all_are_replaced_at_once),
    };
    return cmocka_run_group_tests_name("server/rollout", tests, NULL, NULL);
}
