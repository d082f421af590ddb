/* What a specification becomes on its way into the core. */
#include "test/server/small_life.h"

static const struct task *only_task(struct small_life *small, const char *job, const char *name)
{
    struct small_counts counts = small_count(small, job, NULL);
    const struct task *task = core_task(life_core(small->life), counts.newest, name);

    assert_non_null(task);
    return task;
}

/* A job named as its TYPE with one task in group "a", whose FIELD is VALUE. */
static const struct task *run_with(struct small_life *small, const char *type, const char *field,
                                   json_t *value)
{
    json_t *job = small_job(type, "/bin/a", 1, 0);
    json_t *group = json_array_get(json_object_get(job, "TaskGroups"), 0);
    json_t *task = json_array_get(json_object_get(group, "Tasks"), 0);
    struct alone_evaluation evaluation;
    struct err err = {0};

    assert_int_equal(json_object_set_new(job, "Type", json_string(type)), 0);
    assert_int_equal(json_object_del(job, "Update"), 0); /* only those that last have one */
    assert_int_equal(json_object_set_new(task, field, value), 0);
    if (alone_register(small->alone, job, &evaluation, NULL, &err) < 0)
        fail_msg("%s", err.text);
    small_settle(small);
    json_decref(job);
    return only_task(small, type, "web");
}

static void test_alloc_knows_its_job_group_index_and_members(void **state)
{
    struct small_life *small = *state;

    small->now_ms = 7000;
    small_run(small, "j", "/bin/a", 0, 1);
    const struct alloc *alloc =
        core_alloc(life_core(small->life), small_count(small, "j", NULL).newest);
    assert_string_equal(alloc->assign.job_id, "j");
    assert_string_equal(alloc->assign.namespace, "default");
    assert_string_equal(alloc->assign.group, "b");
    assert_int_equal(alloc->assign.index, 0);
    assert_int_equal(alloc->assign.create_unix_ns, 7000000000);
    assert_int_equal(alloc->assign.may_start, 1);
    assert_int_equal(alloc->assign.batch, 0);
    assert_int_equal(alloc->assign.hooks_prerun, 1); /* of the plan */
    assert_int_equal(alloc->assign.members_count, 1);
    assert_string_equal(alloc->assign.members[0].name, "side");
    assert_int_equal(alloc->assign.members[0].kind, MEMBER_TASK);
}

static void test_task_has_its_policy_and_the_plan_of_others(void **state)
{
    struct small_life *small = *state;
    const struct task *task = run_with(small, "service", "KillSignal", json_string("SIGINT"));

    assert_string_equal(task->define.driver, "raw_exec");
    assert_string_equal(task->define.kill_signal, "SIGINT");
    assert_int_equal(task->define.hooks_prestart, 1);
    assert_int_equal(task->define.may_start, 1);
    assert_int_equal(task->define.restart_attempts, 2); /* Nomad's, of a service */
    assert_int_equal(task->define.restart_interval_ms, 30 * 60 * 1000);
    assert_int_equal(task->define.restart_delay_ms, 15000);
    assert_int_equal(task->define.restart_on_success, 1);
}

static void test_task_of_a_batch_job_does_not_start_again_after_success(void **state)
{
    struct small_life *small = *state;
    const struct task *task = run_with(small, "batch", "Leader", json_true());

    assert_int_equal(task->define.restart_on_success, 0);
    assert_int_equal(task->define.leader, 1);
    task = run_with(small, "sysbatch", "Leader", json_true());
    assert_int_equal(task->define.restart_on_success, 0);
    task = run_with(small, "system", "Leader", json_true());
    assert_int_equal(task->define.restart_on_success, 1);
}

static void test_kill_timeout_is_cut_at_the_nodes_bound(void **state)
{
    struct small_life *small = *state;
    const struct task *task = run_with(small, "service", "KillTimeout", json_integer(29000000000));

    assert_int_equal(task->define.kill_timeout_ms, 29000);
    task = run_with(small, "service", "KillTimeout", json_integer(31000000000));
    assert_int_equal(task->define.kill_timeout_ms, 30000);
}

/* Bits of the checks that the alloc of job NAME awaits; HEALTH is that of its update, NULL:
 * Nomad's. The group's service has two checks, of which one is for readiness only, its task's has
 * one. */
static uint64_t awaited(struct small_life *small, const char *name, const char *health)
{
    json_t *job = small_job(name, "/bin/a", 1, 0);
    json_t *group = json_array_get(json_object_get(job, "TaskGroups"), 0);
    json_t *task = json_array_get(json_object_get(group, "Tasks"), 0);
    json_t *of_group =
        json_pack("[{s:s, s:s, s:s, s:[{s:s, s:s, s:s, s:I, s:I}, {s:s, s:s, s:I, s:I}]}]", "Name",
                  "group", "Provider", "nomad", "PortLabel", "80", "Checks", "Name", "ready",
                  "Type", "tcp", "OnUpdate", "ignore", "Interval", (json_int_t)1000000000,
                  "Timeout", (json_int_t)1000000000, "Name", "healthy", "Type", "tcp", "Interval",
                  (json_int_t)1000000000, "Timeout", (json_int_t)1000000000);
    json_t *of_task =
        json_pack("[{s:s, s:s, s:s, s:[{s:s, s:s, s:I, s:I}]}]", "Name", "task", "Provider",
                  "nomad", "PortLabel", "${NOMAD_META_port}", "Checks", "Name", "own", "Type",
                  "tcp", "Interval", (json_int_t)1000000000, "Timeout", (json_int_t)1000000000);
    struct alone_evaluation evaluation;
    struct err err = {0};

    assert_int_equal(json_object_set_new(group, "Services", of_group), 0);
    assert_int_equal(json_object_set_new(task, "Services", of_task), 0);
    assert_int_equal(
        json_object_set_new(json_object_get(job, "Update"), "MaxParallel", json_integer(1)),
        0); /* 0: there is no deployment whatever else it says */
    if (health != NULL)
        assert_int_equal(
            json_object_set_new(json_object_get(job, "Update"), "HealthCheck", json_string(health)),
            0);
    if (alone_register(small->alone, job, &evaluation, NULL, &err) < 0)
        fail_msg("%s", err.text);
    small_settle(small);
    json_decref(job);
    const struct alloc *alloc =
        core_alloc(life_core(small->life), small_count(small, name, NULL).newest);
    assert_non_null(alloc);
    return alloc->assign.checks;
}

static void test_alloc_awaits_checks_but_those_that_say_who_is_ready(void **state)
{
    struct small_life *small = *state;

    assert_int_equal(awaited(small, "checks", NULL), 1u << 1 | 1u << 2);
    assert_int_equal(awaited(small, "asked", "checks"), 1u << 1 | 1u << 2);
    assert_int_equal(awaited(small, "states", "task_states"), 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        SMALL_TEST(test_alloc_knows_its_job_group_index_and_members),
        SMALL_TEST(test_task_has_its_policy_and_the_plan_of_others),
        SMALL_TEST(test_task_of_a_batch_job_does_not_start_again_after_success),
        SMALL_TEST(test_kill_timeout_is_cut_at_the_nodes_bound),
        SMALL_TEST(test_alloc_awaits_checks_but_those_that_say_who_is_ready),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
