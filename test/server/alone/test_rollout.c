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

static bool any_alloc(void *ctx, const struct machine_id *id, const struct machine *record)
{
    const struct alloc **ret_alloc = ctx;

    (void)id;
    *ret_alloc = alloc_of(record);
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

/* Of the only group of JOB: NAME of its update block is VALUE (moved). */
static json_t *with(json_t *job, const char *name, json_t *value)
{
    json_t *group = json_array_get(json_object_get(job, "TaskGroups"), 0);

    assert_int_equal(json_object_set_new(json_object_get(group, "Update"), name, value), 0);
    return job;
}

static json_t *again_for_ever(json_t *job)
{
    json_t *group = json_array_get(json_object_get(job, "TaskGroups"), 0);

    assert_int_equal(json_object_set_new(group, "ReschedulePolicy",
                                         json_pack("{s:b, s:I, s:s}", "Unlimited", 1, "Delay",
                                                   6000 * ms, "DelayFunction", "constant")),
                     0);
    return job;
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

static json_t *system_job(const char *command)
{
    json_t *job = job_of(command, 1, 1);

    assert_int_equal(json_object_set_new(job, "Type", json_string("system")), 0);
    (void)json_object_del(json_array_get(json_object_get(job, "TaskGroups"), 0),
                          "ReschedulePolicy");
    return job;
}

static void test_system_job_is_rolled_out_likewise(void **state)
{
    struct small_life *small = *state;

    (void)run(small, system_job("/bin/a"));
    expect_deployment(small, 0, "running", 1, 0, 0);
    pass(small, HEALTHY_MS);
    expect_deployment(small, 0, "successful", 1, 1, 0);
    struct alone_evaluation evaluation = run(small, system_job("/bin/b"));
    assert_int_equal(evaluation.placed, 1);
    assert_int_equal(evaluation.stopped, 1);
    expect_versions(small, 0, 1, 0);
    small_again(small);
    expect_deployment(small, 1, "running", 1, 0, 0);
    pass(small, HEALTHY_MS);
    expect_deployment(small, 1, "successful", 1, 1, 0);
}

/* On a node where it may not be there is nothing to wait for, until the node is another one. */
static void test_system_job_waits_for_nobody_where_it_may_not_be(void **state)
{
    struct small_life *small = *state;
    json_t *job = system_job("/bin/a");

    assert_int_equal(json_object_set_new(job, "Constraints",
                                         json_pack("[{s:s, s:s, s:s}]", "LTarget", "${attr.rack}",
                                                   "RTarget", "r1", "Operand", "=")),
                     0);
    (void)run(small, job);
    expect_versions(small, 0, 0, 0);
    expect_deployment(small, 0, "successful", 0, 0, 0);
    small->attributes.items = (struct spec_pair[]){{"rack", "r1"}};
    small->attributes.count = 1;
    alone_node_changed(small->alone);
    pass(small, 1);
    expect_versions(small, 1, 0, 0);
    small->attributes.count = 0;
}

/* Without a reschedule block nothing but its deployment brings back what was good. */
static void test_system_job_goes_back_when_it_fails(void **state)
{
    struct small_life *small = *state;

    (void)run(small, system_job("/bin/a"));
    pass(small, HEALTHY_MS);
    (void)run(small, with(system_job("/bin/b"), "AutoRevert", json_true()));
    expect_versions(small, 0, 1, 0);
    fail_newest(small);
    expect_deployment(small, 2, "running", 1, 0, 0);
    expect_versions(small, 0, 0, 1);
    pass(small, HEALTHY_MS);
    expect_deployment(small, 2, "successful", 1, 1, 0);
}

static void test_system_job_has_no_canaries(void **state)
{
    struct small_life *small = *state;

    (void)run(small, system_job("/bin/a"));
    pass(small, HEALTHY_MS);
    (void)run(small, with(system_job("/bin/b"), "Canary", json_integer(1)));
    expect_versions(small, 0, 1, 0);
    pass(small, HEALTHY_MS);
    expect_deployment(small, 1, "successful", 1, 1, 0);
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
    json_t *job = again_for_ever(job_of("/bin/b", 2, 1)); /* after six seconds */

    begin(small, 2, 1);
    job = with(job, "MinHealthyTime", json_integer(1000 * ms));
    job = with(job, "HealthyDeadline", json_integer(2000 * ms));
    (void)run(small, with(job, "ProgressDeadline", json_integer(5000 * ms)));
    fail_newest(small);
    pass(small, 4999);
    expect_deployment(small, 1, "running", 1, 0, 1);
    pass(small, 1);
    expect_deployment(small, 1, "failed", 1, 0, 1);
    pass(small, HEALTHY_MS);
    expect_versions(small, 1, 0, 0);
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
    assert_int_equal(alone_deregister(small->alone, "default", "j", 0, &evaluation, &err), 0);
    small_settle(small);
    expect_deployment(small, 1, "cancelled", 1, 0, 0);
    expect_versions(small, 0, 0, 0);
    (void)run(small, job_of("/bin/b", 2, 1)); /* all are placed, as the first time */
    expect_deployment(small, 1, "running", 2, 0, 0);
    pass(small, HEALTHY_MS);
    expect_deployment(small, 1, "successful", 2, 2, 0);
    assert_int_equal(alone_deregister(small->alone, "default", "j", ALONE_PURGE, &evaluation, &err),
                     0);
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
    expect_deployment(small, 1, "running", 4, 0, 0);
    pass(small, HEALTHY_MS);
    expect_deployment(small, 1, "successful", 4, 4, 0); /* who went on was asked, too */
    struct alone_evaluation down = run(small, job_of("/bin/a", 1, 1));
    assert_int_equal(down.stopped, 3);
    expect_deployment(small, 2, "running", 1, 0, 0);
    pass(small, HEALTHY_MS);
    expect_deployment(small, 2, "successful", 1, 1, 0);
}

/* --- who goes on in place is to be healthy by the newer version, too --- */

/* With another restart policy, which replaces nobody. */
static json_t *tuned(json_t *job, int attempts)
{
    json_t *group = json_array_get(json_object_get(job, "TaskGroups"), 0);

    assert_int_equal(
        json_object_set_new(group, "RestartPolicy",
                            json_pack("{s:i, s:I, s:I, s:s}", "Attempts", attempts, "Interval",
                                      600000 * ms, "Delay", 1000 * ms, "Mode", "fail")),
        0);
    return job;
}

static void test_who_goes_on_in_place_is_asked_anew(void **state)
{
    struct small_life *small = *state;

    begin(small, 2, 1);
    pass(small, 10 * DEADLINE_MS);
    struct alone_evaluation evaluation = run(small, tuned(job_of("/bin/a", 2, 1), 3));
    assert_int_equal(evaluation.updated, 2);
    assert_true(uuid_is_valid(evaluation.deployment_id));
    expect_versions(small, 0, 2, 0);
    expect_deployment(small, 1, "running", 2, 0, 0);
    pass(small, HEALTHY_MS - 1);
    small_again(small);
    expect_deployment(small, 1, "running", 2, 0, 0);
    pass(small, 1);
    expect_deployment(small, 1, "successful", 2, 2, 0);
    json_t *all = alone_deployments(small->alone, small_find(small, "j"));
    const char *first = json_string_value(json_object_get(json_array_get(all, 1), "ID"));
    struct versions versions = count_versions(small);
    const struct alloc *alloc = NULL;
    core_each(life_core(small->life), MACHINE_ALLOC, any_alloc, &alloc);
    assert_int_equal(versions.count[1], 2);
    assert_true(alone_placed_by(small_find(small, "j"), evaluation.deployment_id, alloc));
    assert_false(alone_placed_by(small_find(small, "j"), first, alloc)); /* but by the new one */
    json_decref(all);
}

static void test_who_goes_on_in_place_may_turn_out_unhealthy(void **state)
{
    struct small_life *small = *state;

    begin(small, 2, 1);
    run(small, with(tuned(job_of("/bin/a", 2, 1), 0), "AutoRevert", json_true()));
    expect_deployment(small, 1, "running", 2, 0, 0);
    fail_newest(small);
    assert_int_equal(small_find(small, "j")->version, 2); /* back, in place, and asked again */
    expect_versions(small, 0, 0, 2);
    expect_deployment(small, 2, "running", 2, 0, 0);
    pass(small, HEALTHY_MS);
    expect_deployment(small, 2, "successful", 2, 2, 0);
}

/* A job that is not rolled out any more has nobody who asks. */
static void test_who_goes_on_without_a_deployment_is_not_asked(void **state)
{
    struct small_life *small = *state;
    const struct alloc *alloc = NULL;

    begin(small, 1, 1);
    (void)run(small, job_of("/bin/a", 1, 0));
    core_each(life_core(small->life), MACHINE_ALLOC, any_alloc, &alloc);
    assert_non_null(alloc);
    assert_false(alloc->assign.watched);
    assert_int_equal(alloc->health, HEALTH_UNKNOWN);
    assert_int_equal(alloc->unhealthy_at_ms, 0);
    pass(small, 10 * DEADLINE_MS);
    expect_deployment(small, 0, "successful", 1, 1, 0);
}

static void test_without_max_parallel_all_are_replaced_at_once(void **state)
{
    struct small_life *small = *state;

    (void)run(small, job_of("/bin/a", 3, 0));
    assert_int_equal(run(small, job_of("/bin/b", 3, 0)).placed, 3);
    expect_versions(small, 0, 3, 0);
    assert_null(alone_deployment(small->alone, small_find(small, "j")));
}

/* --- what fails goes no further, and may go back --- */

static void expect_description(struct small_life *small, const char *description)
{
    json_t *deployment = alone_deployment(small->alone, small_find(small, "j"));

    assert_string_equal(json_string_value(json_object_get(deployment, "StatusDescription")),
                        description);
    json_decref(deployment);
}

static void test_what_has_failed_is_not_tried_again(void **state)
{
    struct small_life *small = *state;

    begin(small, 2, 1);
    (void)run(small,
              with(again_for_ever(job_of("/bin/b", 2, 1)), "ProgressDeadline", json_integer(0)));
    fail_newest(small);
    expect_deployment(small, 1, "failed", 1, 0, 1);
    pass(small, 100000);
    expect_versions(small, 1, 0, 0);
    small_again(small);
    pass(small, 100000);
    expect_versions(small, 1, 0, 0);
}

static void test_job_goes_back_to_the_last_version_that_was_good(void **state)
{
    struct small_life *small = *state;
    const struct alone_job *job;

    begin(small, 3, 1);
    (void)run(small, with(job_of("/bin/b", 3, 1), "AutoRevert", json_true()));
    expect_versions(small, 2, 1, 0);
    fail_newest(small);
    job = small_find(small, "j");
    assert_int_equal(job->version, 2); /* in the same commit */
    json_t *list = alone_deployments(small->alone, job);
    assert_int_equal(json_array_size(list), 3);
    const json_t *failed = json_array_get(list, 1);
    assert_string_equal(json_string_value(json_object_get(failed, "Status")), "failed");
    assert_string_equal(json_string_value(json_object_get(failed, "StatusDescription")),
                        "Failed due to unhealthy allocations - rolling back to job version 0");
    json_decref(list);
    expect_versions(small, 0, 0, 3); /* two go on as they are, and are asked again */
    expect_deployment(small, 2, "running", 3, 0, 0);
    pass(small, HEALTHY_MS);
    expect_deployment(small, 2, "successful", 3, 3, 0);
    assert_true(json_is_true(json_object_get(small_find(small, "j")->job, "Stable")));
    small_again(small);
    expect_deployment(small, 2, "successful", 3, 3, 0);
}

static void test_job_without_a_good_version_goes_nowhere(void **state)
{
    struct small_life *small = *state;

    (void)run(small, with(job_of("/bin/a", 2, 1), "AutoRevert", json_true()));
    fail_newest(small);
    expect_deployment(small, 0, "failed", 2, 0, 1);
    expect_description(small, "Failed due to unhealthy allocations - no stable job version to auto "
                              "revert to");
}

static void test_good_version_that_fails_later_is_not_gone_back_to(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;
    struct err err = {0};

    (void)run(small, with(job_of("/bin/a", 2, 1), "AutoRevert", json_true()));
    pass(small, HEALTHY_MS);
    expect_deployment(small, 0, "successful", 2, 2, 0);
    assert_int_equal(alone_deregister(small->alone, "default", "j", 0, &evaluation, &err), 0);
    small_settle(small);
    (void)run(small, with(job_of("/bin/a", 2, 1), "AutoRevert", json_true()));
    fail_newest(small);
    expect_deployment(small, 0, "failed", 2, 0, 1);
    expect_description(small,
                       "Failed due to unhealthy allocations - not rolling back to stable job "
                       "version 0 as current job has same specification");
}

static void test_way_back_that_cannot_be_committed_is_tried_again(void **state)
{
    struct small_life *small = *state;

    begin(small, 2, 1);
    (void)run(small, with(job_of("/bin/b", 2, 1), "AutoRevert", json_true()));
    pass(small, DEADLINE_MS / 2 - HEALTHY_MS);
    fail_newest(small);
    assert_int_equal(small_find(small, "j")->version, 2);
    (void)run(small, with(job_of("/bin/c", 2, 1), "AutoRevert", json_true()));
    small->commit_code = ERR_IO;
    pass(small, PROGRESS_MS);
    small->commit_code = 0;
    pass(small, 2000);
    /* The alloc of version 3 was healthy before anything could be stored. */
    assert_int_equal(small_find(small, "j")->version, 3);
}

static void test_versions_are_kept_and_can_be_run_again(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;
    struct alone_job version;
    struct err err = {0};
    char command[] = "/bin/0";
    size_t kept = 0;

    for (char c = '0'; c <= '8'; c++) {
        command[5] = c;
        (void)run(small, job_of(command, 1, 0));
    }
    while (alone_version(small_find(small, "j"), kept, &version))
        kept++;
    assert_int_equal(kept, 6);
    assert_int_equal(alone_revert(small->alone, small_find(small, "j"), 8, &evaluation, &err),
                     ERR_INVALID);
    assert_string_equal(err.text, "can't revert to current version");
    assert_int_equal(alone_revert(small->alone, small_find(small, "j"), 2, &evaluation, &err),
                     ERR_GONE);
    assert_int_equal(alone_revert(small->alone, small_find(small, "j"), 3, &evaluation, &err), 0);
    small_settle(small);
    assert_int_equal(small_find(small, "j")->version, 9);
    small_again(small);
    assert_true(alone_version(small_find(small, "j"), 5, &version));
    assert_int_equal(version.version, 4);
    assert_null(json_object_get(version.job, "cairnVersions"));
}

static void test_newest_good_version_is_kept_however_many_come_after_it(void **state)
{
    struct small_life *small = *state;
    struct alone_job version = {0};
    char command[] = "/bin/0";

    begin(small, 1, 1);
    for (char c = '0'; c <= '8'; c++) {
        command[5] = c;
        (void)run(small, job_of(command, 1, 0)); /* nothing that waits to hear whether it is good */
    }
    for (size_t i = 0; alone_version(small_find(small, "j"), i, &version);)
        i++;
    assert_int_equal(version.version, 0);
    assert_true(json_is_true(json_object_get(version.job, "Stable")));
}

/* --- users steer it --- */

static char *deployment_id(struct small_life *small)
{
    static char id[UUID_TEXT_SIZE];

    assert_true(text_copy(id, sizeof(id), alone_deployment_id(small_find(small, "j"))));
    return id;
}

static void test_paused_one_goes_on_when_it_is_resumed(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;
    struct err err = {0};

    begin(small, 3, 1);
    (void)run(small, job_of("/bin/b", 3, 1));
    assert_int_equal(alone_pause(small->alone, deployment_id(small), true, &evaluation, &err), 0);
    small_settle(small);
    expect_deployment(small, 1, "paused", 1, 0, 0);
    small_again(small);
    pass(small, 10 * PROGRESS_MS);
    expect_deployment(small, 1, "paused", 1, 1, 0);
    expect_versions(small, 2, 1, 0);
    assert_int_equal(alone_pause(small->alone, deployment_id(small), false, &evaluation, &err), 0);
    small_settle(small);
    expect_description(small, "Deployment is running");
    expect_versions(small, 1, 2, 0); /* it had waited for longer than progress_deadline */
    pass(small, HEALTHY_MS);
    pass(small, HEALTHY_MS);
    expect_deployment(small, 1, "successful", 3, 3, 0);
    assert_int_equal(alone_pause(small->alone, deployment_id(small), true, &evaluation, &err),
                     ERR_INVALID);
    assert_string_equal(err.text, "can't pause terminal deployment");
    assert_int_equal(alone_pause(small->alone, "nobody", true, &evaluation, &err), ERR_GONE);
}

static void test_failed_by_a_user_goes_no_further(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;
    struct err err = {0};
    int64_t reverted;

    begin(small, 3, 1);
    (void)run(small, job_of("/bin/b", 3, 1));
    assert_int_equal(
        alone_fail_deployment(small->alone, deployment_id(small), &evaluation, &reverted, &err), 0);
    small_settle(small);
    assert_int_equal(reverted, -1);
    pass(small, 10 * PROGRESS_MS);
    expect_deployment(small, 1, "failed", 1, 0, 0);
    expect_description(small, "Deployment marked as failed");
    expect_versions(small, 2, 1, 0);
    (void)run(small, with(job_of("/bin/c", 3, 1), "AutoRevert", json_true()));
    assert_int_equal(
        alone_fail_deployment(small->alone, deployment_id(small), &evaluation, &reverted, &err), 0);
    small_settle(small);
    assert_int_equal(reverted, 0);
    assert_int_equal(small_find(small, "j")->version, 3);
    assert_string_equal(evaluation.triggered_by, "deployment-watcher");
}

/* --- canaries --- */

static json_t *tried(const char *command, int count, int canaries)
{
    return with(job_of(command, count, 1), "Canary", json_integer(canaries));
}

/* Canaries that are to run, by what the control plane says of them. */
struct canaries {
    const struct alone_job *job;
    size_t count;
};

static bool count_canary(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct canaries *canaries = ctx;
    const struct alloc *alloc = alloc_of(record);

    canaries->count +=
        alone_is_canary(canaries->job, alloc->assign.group, id->text) && alloc->ended_unix_ns == 0;
    return true;
}

static void expect_canaries(struct small_life *small, size_t count)
{
    struct canaries canaries = {.job = small_find(small, "j")};

    core_each(life_core(small->life), MACHINE_ALLOC, count_canary, &canaries);
    assert_int_equal(canaries.count, count);
}

static void test_canaries_run_beside_the_others_until_they_are_promoted(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;
    struct err err = {0};

    begin(small, 3, 1);
    evaluation = run(small, tried("/bin/b", 3, 2));
    assert_int_equal(evaluation.placed, 2);
    assert_int_equal(evaluation.stopped, 0);
    expect_versions(small, 3, 2, 0);
    expect_canaries(small, 2);
    expect_description(small, "Deployment is running but requires manual promotion");
    assert_int_equal(alone_promote(small->alone, deployment_id(small), NULL, &evaluation, &err),
                     ERR_INVALID);
    assert_string_equal(err.text, "Task group \"g\" has 0/2 healthy allocations");
    pass(small, HEALTHY_MS);
    pass(small, 10 * PROGRESS_MS); /* it is not late: it waits for its users */
    small_again(small);
    pass(small, 10 * PROGRESS_MS);
    expect_versions(small, 3, 2, 0);
    expect_canaries(small, 2);
    expect_deployment(small, 1, "running", 2, 2, 0);
    assert_int_equal(alone_promote(small->alone, deployment_id(small), NULL, &evaluation, &err), 0);
    small_settle(small);
    expect_canaries(small, 0);
    expect_versions(small, 0, 3, 0); /* two places have theirs, and the third is next */
    expect_description(small, "Deployment is running");
    pass(small, HEALTHY_MS);
    expect_deployment(small, 1, "successful", 3, 3, 0);
    expect_versions(small, 0, 3, 0);
    assert_string_equal(small->said, "");
}

static void test_canaries_in_every_place_leave_nobody_beside_them(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;
    struct err err = {0};

    begin(small, 2, 2);
    (void)run(small, tried("/bin/b", 2, 2));
    expect_versions(small, 2, 2, 0);
    pass(small, HEALTHY_MS);
    assert_int_equal(alone_promote(small->alone, deployment_id(small), NULL, &evaluation, &err), 0);
    small_settle(small);
    expect_versions(small, 0, 2, 0);
    expect_deployment(small, 1, "successful", 2, 2, 0);
    small_again(small);
    expect_versions(small, 0, 2, 0);
}

static void test_daemon_that_dies_behind_a_promotion_goes_on(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;
    struct err err = {0};

    begin(small, 2, 1);
    (void)run(small, tried("/bin/b", 2, 1));
    pass(small, HEALTHY_MS);
    assert_int_equal(alone_promote(small->alone, deployment_id(small), NULL, &evaluation, &err), 0);
    small->holds_back = true; /* who is told to end does not, yet */
    small_settle(small);
    small->holds_back = false;
    small_again(small);
    pass(small, HEALTHY_MS);
    pass(small, HEALTHY_MS);
    expect_versions(small, 0, 2, 0);
    expect_deployment(small, 1, "successful", 2, 2, 0);
}

static void test_canaries_promote_themselves_if_they_may(void **state)
{
    struct small_life *small = *state;

    begin(small, 3, 1);
    (void)run(small, with(tried("/bin/b", 3, 1), "AutoPromote", json_true()));
    expect_description(small, "Deployment is running pending automatic promotion");
    expect_versions(small, 3, 1, 0);
    pass(small, HEALTHY_MS - 1);
    expect_versions(small, 3, 1, 0);
    pass(small, 1);
    expect_versions(small, 1, 2, 0);
    pass(small, HEALTHY_MS);
    pass(small, HEALTHY_MS);
    expect_deployment(small, 1, "successful", 3, 3, 0);
}

static void test_canary_that_fails_leaves_everything_as_it_was(void **state)
{
    struct small_life *small = *state;

    begin(small, 3, 1);
    (void)run(small, again_for_ever(tried("/bin/b", 3, 2)));
    fail_newest(small);
    expect_deployment(small, 1, "failed", 2, 0, 1);
    expect_versions(small, 3, 0, 0); /* the other canary goes, too */
    pass(small, 100 * PROGRESS_MS);
    small_again(small);
    pass(small, 100 * PROGRESS_MS);
    expect_versions(small, 3, 0, 0);
}

/* Who the canaries of the deployment before the newest one were. */
static size_t older_canaries(struct small_life *small)
{
    json_t *all = alone_deployments(small->alone, small_find(small, "j"));
    const json_t *groups = json_object_get(json_array_get(all, 1), "TaskGroups");
    size_t count = json_array_size(json_object_get(json_object_get(groups, "g"), "PlacedCanaries"));

    json_decref(all);
    return count;
}

static void test_canary_that_fails_takes_its_job_back(void **state)
{
    struct small_life *small = *state;

    begin(small, 2, 1);
    (void)run(small, with(tried("/bin/b", 2, 1), "AutoRevert", json_true()));
    fail_newest(small);
    assert_int_equal(small_find(small, "j")->version, 2);
    expect_deployment(small, 2, "running", 2, 0, 0);
    assert_int_equal(older_canaries(small), 1); /* who has failed is to be found */
    pass(small, HEALTHY_MS);
    expect_versions(small, 0, 0, 2);
    expect_canaries(small, 0);
    expect_deployment(small, 2, "successful", 2, 2, 0);
    assert_int_equal(older_canaries(small), 1);
}

static void test_of_very_many_canaries_it_is_not_kept_who_they_were(void **state)
{
    struct small_life *small = *state;

    (void)run(small, job_of("/bin/a", 65, 65));
    (void)run(small, tried("/bin/b", 65, 64));
    (void)run(small, tried("/bin/c", 65, 65));
    assert_int_equal(older_canaries(small), 64);
    (void)run(small, tried("/bin/d", 65, 1));
    assert_int_equal(older_canaries(small), 0);
}

static void test_newer_version_ends_the_canaries_of_the_last(void **state)
{
    struct small_life *small = *state;

    begin(small, 2, 1);
    (void)run(small, tried("/bin/b", 2, 2));
    expect_versions(small, 2, 2, 0);
    (void)run(small, tried("/bin/c", 2, 1));
    expect_versions(small, 2, 0, 1);
    expect_canaries(small, 1);
    (void)run(small, tried("/bin/c", 2, 1)); /* nothing is new */
    expect_versions(small, 2, 0, 1);
    expect_canaries(small, 1);
}

static void test_canary_that_a_user_stops_comes_again(void **state)
{
    struct small_life *small = *state;
    struct versions versions;
    struct alone_evaluation evaluation;
    struct err err = {0};

    begin(small, 2, 1);
    (void)run(small, tried("/bin/b", 2, 1));
    versions = count_versions(small);
    assert_int_equal(alone_stop_alloc(small->alone, versions.newest, 0, &evaluation, &err), 0);
    small_settle(small);
    pass(small, 1);
    expect_versions(small, 2, 1, 0);
    expect_canaries(small, 1);
}

/* The allocs that the deployment has placed, as an array of ids that the caller owns. */
static bool add_own(void *ctx, const struct machine_id *id, const struct machine *record)
{
    json_t *ids = ctx;

    if (alloc_of(record)->assign.job_version == 1 && alloc_of(record)->health == HEALTH_UNKNOWN)
        assert_int_equal(json_array_append_new(ids, json_string(id->text)), 0);
    return true;
}

static json_t *own_ids(struct small_life *small)
{
    json_t *ids = json_array();

    core_each(life_core(small->life), MACHINE_ALLOC, add_own, ids);
    return ids;
}

static int say_health(struct small_life *small, json_t *healthy, json_t *unhealthy, struct err *err)
{
    struct alone_evaluation evaluation;
    char id[UUID_TEXT_SIZE];

    assert_true(text_copy(id, sizeof(id), alone_deployment_id(small_find(small, "j"))));
    int code = alone_say_health(small->alone, id, healthy, unhealthy, &evaluation, err);
    json_decref(healthy);
    json_decref(unhealthy);
    small_settle(small);
    return code;
}

static json_t *by_hand(const char *command)
{
    return with(job_of(command, 2, 1), "HealthCheck", json_string("manual"));
}

static void test_where_a_user_says_it_nobody_else_does(void **state)
{
    struct small_life *small = *state;
    struct err err = {0};

    begin(small, 2, 1);
    run(small, by_hand("/bin/b"));
    pass(small, 2 * DEADLINE_MS);
    expect_versions(small, 1, 1, 0);
    expect_deployment(small, 1, "running", 1, 0, 0);
    small_again(small);
    assert_int_equal(say_health(small, own_ids(small), NULL, &err), 0);
    expect_versions(small, 0, 2, 0);
    expect_deployment(small, 1, "running", 2, 1, 0);
    small_again(small);
    assert_int_equal(say_health(small, own_ids(small), NULL, &err), 0);
    expect_deployment(small, 1, "successful", 2, 2, 0);
    assert_true(say_health(small, json_pack("[s]", "x"), NULL, &err) < 0);
    assert_string_equal(err.text, "can't set health of allocations for a terminal deployment");
}

static void test_what_a_user_finds_unhealthy_stops_it(void **state)
{
    struct small_life *small = *state;
    struct err err = {0};

    begin(small, 2, 1);
    run(small, by_hand("/bin/b"));
    assert_int_equal(say_health(small, NULL, own_ids(small), &err), 0);
    expect_deployment(small, 1, "failed", 1, 0, 1);
    expect_versions(small, 1, 1, 0);
}

static void test_user_who_says_nothing_is_too_late(void **state)
{
    struct small_life *small = *state;

    begin(small, 2, 1);
    run(small, by_hand("/bin/b"));
    pass(small, PROGRESS_MS);
    expect_deployment(small, 1, "failed", 1, 0, 0);
}

static void test_health_of_allocs_of_others_is_not_said(void **state)
{
    struct small_life *small = *state;
    struct err err = {0};
    struct versions versions;

    begin(small, 2, 1);
    versions = count_versions(small);
    assert_int_equal(versions.count[0], 2);
    run(small, by_hand("/bin/b"));
    assert_int_equal(say_health(small, NULL, NULL, &err), ERR_INVALID);
    assert_string_equal(err.text, "must specify at least one healthy/unhealthy allocation ID");
    assert_int_equal(say_health(small, json_pack("[i]", 7), NULL, &err), ERR_INVALID);
    assert_string_equal(err.text, "unknown alloc \"\"");
    assert_int_equal(
        say_health(small, json_pack("[s]", "00000000-0000-4000-8000-00000000ffff"), NULL, &err),
        ERR_INVALID);
    assert_int_equal(say_health(small, own_ids(small), json_pack("[s]", "y"), &err), ERR_INVALID);
    expect_deployment(small, 1, "running", 1, 0, 0); /* nothing of it was done */
}

static json_int_t progress_by(struct small_life *small)
{
    json_t *deployment = alone_deployment(small->alone, small_find(small, "j"));
    const json_t *group = json_object_get(json_object_get(deployment, "TaskGroups"), "g");
    json_int_t by_ns = json_integer_value(json_object_get(group, "RequireProgressBy"));

    json_decref(deployment);
    return by_ns;
}

static void test_what_is_healthy_gives_the_next_its_time(void **state)
{
    struct small_life *small = *state;
    int64_t begun_ns, now_ns;

    begin(small, 2, 1);
    (void)small_now(small, &begun_ns);
    run(small, job_of("/bin/b", 2, 1));
    json_int_t first_ns = progress_by(small);
    assert_in_range(first_ns, begun_ns + PROGRESS_MS * ms, begun_ns + (PROGRESS_MS + 1000) * ms);
    small_again(small);
    assert_int_equal(progress_by(small), first_ns);
    pass(small, HEALTHY_MS);
    (void)small_now(small, &now_ns);
    assert_in_range(progress_by(small), first_ns + 1, now_ns + PROGRESS_MS * ms);
    pass(small, HEALTHY_MS);
    expect_deployment(small, 1, "successful", 2, 2, 0);
    assert_true(progress_by(small) > first_ns); /* as it was at the end */
    small_again(small);
    assert_true(progress_by(small) > first_ns);
}

static void test_first_version_has_no_canaries(void **state)
{
    struct small_life *small = *state;

    assert_int_equal(run(small, tried("/bin/a", 3, 2)).placed, 3);
    expect_canaries(small, 0);
    expect_description(small, "Deployment is running");
    pass(small, HEALTHY_MS);
    expect_deployment(small, 0, "successful", 3, 3, 0);
}

static void test_canary_without_room_waits_for_it(void **state)
{
    struct small_life *small = *state;

    small->room.memory_mb = 3 * 300;
    small_again(small);
    begin(small, 3, 1);
    assert_int_equal(run(small, tried("/bin/b", 3, 1)).placed, 0);
    expect_versions(small, 3, 0, 0);
    pass(small, 10 * PROGRESS_MS);
    expect_versions(small, 3, 0, 0);
    expect_deployment(small, 1, "running", 0, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SMALL_TEST(test_no_more_than_max_parallel_are_replaced_before_they_are_healthy),
        SMALL_TEST(test_system_job_is_rolled_out_likewise),
        SMALL_TEST(test_system_job_waits_for_nobody_where_it_may_not_be),
        SMALL_TEST(test_system_job_goes_back_when_it_fails),
        SMALL_TEST(test_system_job_has_no_canaries),
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
        SMALL_TEST(test_who_goes_on_in_place_is_asked_anew),
        SMALL_TEST(test_who_goes_on_in_place_may_turn_out_unhealthy),
        SMALL_TEST(test_who_goes_on_without_a_deployment_is_not_asked),
        SMALL_TEST(test_without_max_parallel_all_are_replaced_at_once),
        SMALL_TEST(test_what_has_failed_is_not_tried_again),
        SMALL_TEST(test_job_goes_back_to_the_last_version_that_was_good),
        SMALL_TEST(test_job_without_a_good_version_goes_nowhere),
        SMALL_TEST(test_good_version_that_fails_later_is_not_gone_back_to),
        SMALL_TEST(test_way_back_that_cannot_be_committed_is_tried_again),
        SMALL_TEST(test_versions_are_kept_and_can_be_run_again),
        SMALL_TEST(test_newest_good_version_is_kept_however_many_come_after_it),
        SMALL_TEST(test_paused_one_goes_on_when_it_is_resumed),
        SMALL_TEST(test_failed_by_a_user_goes_no_further),
        SMALL_TEST(test_canaries_run_beside_the_others_until_they_are_promoted),
        SMALL_TEST(test_canaries_in_every_place_leave_nobody_beside_them),
        SMALL_TEST(test_daemon_that_dies_behind_a_promotion_goes_on),
        SMALL_TEST(test_canaries_promote_themselves_if_they_may),
        SMALL_TEST(test_canary_that_fails_leaves_everything_as_it_was),
        SMALL_TEST(test_canary_that_fails_takes_its_job_back),
        SMALL_TEST(test_of_very_many_canaries_it_is_not_kept_who_they_were),
        SMALL_TEST(test_newer_version_ends_the_canaries_of_the_last),
        SMALL_TEST(test_canary_that_a_user_stops_comes_again),
        SMALL_TEST(test_where_a_user_says_it_nobody_else_does),
        SMALL_TEST(test_what_a_user_finds_unhealthy_stops_it),
        SMALL_TEST(test_user_who_says_nothing_is_too_late),
        SMALL_TEST(test_health_of_allocs_of_others_is_not_said),
        SMALL_TEST(test_what_is_healthy_gives_the_next_its_time),
        SMALL_TEST(test_first_version_has_no_canaries),
        SMALL_TEST(test_canary_without_room_waits_for_it),
    };
    return cmocka_run_group_tests_name("server/rollout", tests, NULL, NULL);
}
