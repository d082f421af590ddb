/*
 * What is placed later: what did not fit this node, and what takes the place of what has failed.
 * The daemon may die at any moment in between; nothing of it is in its memory only.
 */
#include "test/server/small_life.h"

#define DELAY_MS 10000

/* The job JSON (moved). */
static int post_job(struct small_life *small, json_t *job, struct alone_evaluation *ret_evaluation)
{
    struct err err = {0};

    assert_non_null(job);
    int code = alone_register(small->alone, job, ret_evaluation, NULL, &err);
    if (code < 0)
        fail_msg("%s", err.text);
    json_decref(job);
    return code;
}

/* A service "j" with one group of so many allocs, each of MEMORY_MB. */
static int post(struct small_life *small, const char *name, const char *datacenter, int count,
                int memory_mb, int priority, json_t *reschedule,
                struct alone_evaluation *ret_evaluation)
{
    json_t *job =
        json_pack("{s:s, s:s, s:i, s:[s], s:[{s:s, s:i, s:{s:i, s:s}, s:o, s:[{s:s, s:s, s:{s:s}, "
                  "s:{s:i}}]}]}",
                  "ID", name, "Type", "service", "Priority", priority, "Datacenters", datacenter,
                  "TaskGroups", "Name", "g", "Count", count, "RestartPolicy", "Attempts", 0, "Mode",
                  "fail", "ReschedulePolicy", reschedule, "Tasks", "Name", "t", "Driver",
                  "raw_exec", "Config", "command", "/bin/a", "Resources", "MemoryMB", memory_mb);

    return post_job(small, job, ret_evaluation);
}

static json_t *never(void)
{
    return json_pack("{s:i, s:b}", "Attempts", 0, "Unlimited", 0);
}

static json_t *limited(int attempts)
{
    return json_pack("{s:i, s:b, s:I, s:I, s:s}", "Attempts", attempts, "Unlimited", 0, "Interval",
                     (json_int_t)3600000000000, "Delay", (json_int_t)DELAY_MS * 1000000,
                     "DelayFunction", "constant");
}

static struct alone_evaluation run(struct small_life *small, const char *name, int count,
                                   int memory_mb, int priority, json_t *reschedule)
{
    struct alone_evaluation evaluation;

    assert_int_equal(post(small, name, "dc1", count, memory_mb, priority, reschedule, &evaluation),
                     0);
    small_settle(small);
    return evaluation;
}

/* The newest live alloc of JOB fails. */
static void fail_one(struct small_life *small, const char *job)
{
    struct small_counts counts = small_count(small, job, NULL);
    const struct task *task = core_task(life_core(small->life), counts.newest, "t");
    struct machine_id id = machine_id_join(MACHINE_TASK, counts.newest, "t");
    struct exited ended = {.known = 1, .code = 1};

    assert_non_null(task);
    core_news(life_core(small->life), &id, task->machine.generation, TE_EXITED, &ended);
    small_settle(small);
}

static void pass(struct small_life *small, uint64_t ms)
{
    small->now_ms += ms;
    small_settle(small);
}

static const char *status_of(struct small_life *small, const char *job)
{
    return alone_job_status(small->alone, small_find(small, job));
}

/* --- room --- */

static void have_memory(struct small_life *small, uint64_t memory_mb)
{
    small->room.memory_mb = memory_mb;
    small_again(small);
}

static void test_what_does_not_fit_waits_and_says_why(void **state)
{
    struct small_life *small = *state;

    have_memory(small, 1000);
    struct alone_evaluation evaluation = run(small, "j", 5, 300, 50, never());
    assert_int_equal(small_count(small, "j", NULL).live, 3);
    assert_int_equal(evaluation.placed, 3);
    assert_int_equal(alone_queued(small_find(small, "j"), 0), 2);
    const struct alone_evaluation *blocked = alone_evaluation(small->alone, evaluation.blocked_id);
    assert_non_null(blocked);
    assert_string_equal(blocked->status, "blocked");
    const json_t *failed = json_array_get(blocked->failed, 0);
    assert_string_equal(json_string_value(json_object_get(failed, "What")), "memory");
    assert_int_equal(json_integer_value(json_object_get(failed, "Count")), 2);
    assert_string_equal(status_of(small, "j"), "running");
}

static void test_what_waits_is_placed_when_room_appears(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;
    struct err err;

    have_memory(small, 1000);
    (void)run(small, "a", 1, 900, 50, never());
    (void)run(small, "b", 2, 400, 50, never());
    assert_int_equal(small_count(small, "b", NULL).live, 0);
    assert_string_equal(status_of(small, "b"), "running"); /* its deployment is */
    assert_int_equal(alone_deregister(small->alone, "default", "a", 0, &evaluation, &err), 0);
    small_settle(small);
    assert_int_equal(small_count(small, "b", NULL).live, 2);
    assert_int_equal(alone_queued(small_find(small, "b"), 0), 0);
    assert_string_equal(status_of(small, "b"), "running");
}

static void test_what_waits_survives_the_daemon(void **state)
{
    struct small_life *small = *state;

    have_memory(small, 1000);
    (void)run(small, "j", 4, 300, 50, never());
    small_again(small);
    assert_int_equal(small_count(small, "j", NULL).live, 3);
    assert_int_equal(alone_queued(small_find(small, "j"), 0), 1);
    have_memory(small, 2000);
    assert_int_equal(small_count(small, "j", NULL).live, 4);
    assert_int_equal(alone_queued(small_find(small, "j"), 0), 0);
}

static void test_more_important_jobs_are_placed_first(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;
    struct err err;

    have_memory(small, 1000);
    (void)run(small, "full", 1, 1000, 50, never());
    (void)run(small, "low", 1, 800, 20, never());
    (void)run(small, "high", 1, 800, 80, never());
    assert_int_equal(alone_deregister(small->alone, "default", "full", 0, &evaluation, &err), 0);
    small_settle(small);
    assert_int_equal(small_count(small, "high", NULL).live, 1);
    assert_int_equal(small_count(small, "low", NULL).live, 0);
}

static void test_new_version_has_the_room_of_the_old_one(void **state)
{
    struct small_life *small = *state;

    have_memory(small, 1000);
    (void)run(small, "j", 2, 500, 50, never());
    (void)run(small, "j", 2, 450, 50, never());
    assert_int_equal(small_count(small, "j", NULL).live, 2);
    assert_int_equal(alone_queued(small_find(small, "j"), 0), 0);
}

static void test_two_requests_of_one_turn_do_not_get_the_same_room(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;

    have_memory(small, 1000);
    (void)post(small, "a", "dc1", 1, 600, 50, never(), &evaluation);
    (void)post(small, "b", "dc1", 1, 600, 50, never(), &evaluation);
    small_settle(small);
    assert_int_equal(small_count(small, "a", NULL).live, 1);
    assert_int_equal(small_count(small, "b", NULL).live, 0);
}

static void test_failed_commit_gives_the_room_back(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;

    have_memory(small, 1000);
    small->commit_code = ERR_FULL;
    (void)post(small, "a", "dc1", 1, 900, 50, never(), &evaluation);
    small_settle(small);
    small->commit_code = 0;
    pass(small, 2000);
    (void)run(small, "b", 1, 900, 50, never());
    assert_int_equal(small_count(small, "b", NULL).live, 1);
}

static void test_stopped_job_waits_for_nothing(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;
    struct err err;

    have_memory(small, 100);
    (void)run(small, "j", 1, 300, 50, never());
    assert_int_equal(alone_deregister(small->alone, "default", "j", 0, &evaluation, &err), 0);
    small_settle(small);
    assert_string_equal(status_of(small, "j"), "dead");
    have_memory(small, 1000);
    assert_int_equal(small_count(small, "j", NULL).live, 0);
}

static void test_other_datacenter_waits(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;

    (void)post(small, "j", "dc9", 1, 300, 50, never(), &evaluation);
    small_settle(small);
    assert_int_equal(small_count(small, "j", NULL).live, 0);
    const json_t *failed = json_array_get(evaluation.failed, 0);
    assert_string_equal(json_string_value(json_object_get(failed, "Why")), "datacenter");
    (void)post(small, "k", "d*1", 1, 300, 50, never(), &evaluation);
    small_settle(small);
    assert_int_equal(small_count(small, "k", NULL).live, 1);
    small_kill(small);
    small->datacenter = "dc9"; /* the node moves */
    small_begin(small);
    small_settle(small);
    assert_int_equal(small_count(small, "j", NULL).live, 1);
}

/* --- drivers --- */

static void test_what_has_no_driver_here_waits_until_there_is_one(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;

    small_kill(small);
    small->lacks_driver = "raw_exec";
    small_begin(small);
    (void)post(small, "j", "dc1", 1, 300, 50, never(), &evaluation);
    small_settle(small);
    assert_int_equal(small_count(small, "j", NULL).live, 0);
    const json_t *failed = json_array_get(evaluation.failed, 0);
    assert_string_equal(json_string_value(json_object_get(failed, "Why")), "constraint");
    assert_string_equal(json_string_value(json_object_get(failed, "What")), "missing drivers");
    alone_node_changed(small->alone); /* and what waits for is still missing */
    small_settle(small);
    assert_int_equal(small_count(small, "j", NULL).live, 0);
    small->lacks_driver = NULL;
    alone_node_changed(small->alone);
    small_settle(small);
    assert_int_equal(small_count(small, "j", NULL).live, 1);
    small->lacks_driver = "raw_exec";
    alone_node_changed(small->alone); /* what runs is left alone */
    small_settle(small);
    assert_int_equal(small_count(small, "j", NULL).live, 1);
}

/* --- constraints --- */

static struct spec_pair rack = {"rack", "r1"};

/* The node comes back with its only attribute at VALUE. */
static void move_to_rack(struct small_life *small, const char *value)
{
    small_kill(small);
    rack.value = value;
    small->attributes = (struct spec_pairs){&rack, 1};
    small_begin(small);
    small_settle(small);
}

/* A service "j" of COUNT allocs in its group "a", and as many in "b", with CONSTRAINTS (moved) of
 * the job and of "a". */
static struct alone_evaluation run_constrained(struct small_life *small, int count, json_t *of_job,
                                               json_t *of_group)
{
    json_t *job = small_job("j", "/bin/a", count, count);
    json_t *group = json_array_get(json_object_get(job, "TaskGroups"), 0);
    struct alone_evaluation evaluation;
    struct err err = {0};

    assert_int_equal(json_object_set_new(job, "Constraints", of_job), 0);
    assert_int_equal(json_object_set_new(group, "Constraints", of_group), 0);
    if (alone_register(small->alone, job, &evaluation, NULL, &err) < 0)
        fail_msg("%s", err.text);
    json_decref(job);
    small_settle(small);
    return evaluation;
}

static json_t *one_constraint(const char *target, const char *operand, const char *value)
{
    return json_pack("[{s:s, s:s, s:s}]", "LTarget", target, "Operand", operand, "RTarget", value);
}

static void check_why(const struct alone_evaluation *evaluation, const char *group, int count,
                      const char *what)
{
    const json_t *failed = json_array_get(evaluation->failed, 0);

    assert_int_equal(json_array_size(evaluation->failed), 1);
    assert_string_equal(json_string_value(json_object_get(failed, "Group")), group);
    assert_string_equal(json_string_value(json_object_get(failed, "Why")), "constraint");
    assert_string_equal(json_string_value(json_object_get(failed, "What")), what);
    assert_int_equal(json_integer_value(json_object_get(failed, "Count")), count);
}

static void test_unmet_constraint_waits_until_the_node_fulfils_it(void **state)
{
    struct small_life *small = *state;

    move_to_rack(small, "r1");
    struct alone_evaluation evaluation =
        run_constrained(small, 2, json_array(), one_constraint("${attr.rack}", "=", "r2"));
    check_why(&evaluation, "a", 2, "${attr.rack} = r2");
    assert_int_equal(small_count(small, "j", "a").live, 0);
    assert_int_equal(small_count(small, "j", "b").live, 2);
    assert_int_equal(alone_queued(small_find(small, "j"), 0), 2);
    small_again(small);
    assert_int_equal(small_count(small, "j", "a").live, 0);
    move_to_rack(small, "r2");
    assert_int_equal(small_count(small, "j", "a").live, 2);
    assert_int_equal(alone_queued(small_find(small, "j"), 0), 0);
}

static void test_constraint_that_a_change_brings_ends_what_does_not_fulfil_it(void **state)
{
    struct small_life *small = *state;

    move_to_rack(small, "r1");
    (void)run_constrained(small, 1, json_array(), one_constraint("${attr.rack}", "=", "r1"));
    assert_int_equal(small_count(small, "j", "a").live, 1);
    move_to_rack(small, "r2"); /* what runs is left alone, also by the same job again */
    (void)run_constrained(small, 1, json_array(), one_constraint("${attr.rack}", "=", "r1"));
    assert_int_equal(small_count(small, "j", "a").live, 1);
    (void)run_constrained(small, 1, json_array(), one_constraint("${attr.rack}", "=", "r3"));
    assert_int_equal(small_count(small, "j", "a").live, 0);
    assert_int_equal(small_count(small, "j", "b").live, 1);
    assert_int_equal(alone_queued(small_find(small, "j"), 0), 1);
    (void)run_constrained(small, 1, json_array(), one_constraint("${attr.rack}", "=", "r2"));
    assert_int_equal(small_count(small, "j", "a").live, 1);
}

static void test_distinct_allocs_are_not_together_on_this_node(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;
    struct err err;

    evaluation = run_constrained(small, 2, json_array(), one_constraint("", "distinct_hosts", ""));
    check_why(&evaluation, "a", 1, "distinct_hosts");
    assert_int_equal(small_count(small, "j", "a").live, 1);
    assert_int_equal(small_count(small, "j", "b").live, 2);
    struct small_counts counts = small_count(small, "j", "a");
    assert_int_equal(alone_stop_alloc(small->alone, counts.newest, 0, &evaluation, &err), 0);
    small_settle(small); /* one takes its place, and not two */
    assert_int_equal(small_count(small, "j", "a").live, 1);
    evaluation = run_constrained(small, 2, one_constraint("", "distinct_hosts", ""), json_array());
    assert_int_equal(small_count(small, "j", NULL).live, 3); /* what is here stays */
    assert_int_equal(alone_queued(small_find(small, "j"), 0), 1);
}

static void test_property_is_shared_by_as_many_as_it_says(void **state)
{
    struct small_life *small = *state;

    move_to_rack(small, "r1");
    struct alone_evaluation evaluation = run_constrained(
        small, 3, one_constraint("${attr.rack}", "distinct_property", "5"), json_array());
    check_why(&evaluation, "b", 1, "distinct_property: ${attr.rack}=r1 used by 5 allocs");
    assert_int_equal(small_count(small, "j", "a").live, 3);
    assert_int_equal(small_count(small, "j", "b").live, 2);
}

/* --- rescheduling --- */

/* ALLOC has failed, and another one has its place. */
static void check_relieved(struct small_life *small, const char *alloc, const char *why)
{
    const struct alloc *record = core_alloc(life_core(small->life), alloc);

    assert_int_equal(record->client_status, CLIENT_FAILED);
    assert_true(record->stop_wanted);
    assert_string_equal(record->desired_description, why);
}

static void test_failed_alloc_is_replaced_after_its_delay(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation followed;

    (void)run(small, "j", 1, 300, 50, limited(2));
    struct small_counts first = small_count(small, "j", NULL);
    fail_one(small, "j");
    assert_int_equal(small_count(small, "j", NULL).live, 0);
    assert_string_equal(status_of(small, "j"), "running"); /* its deployment is */
    assert_true(alone_follow_up(small->alone, first.newest, &followed));
    assert_string_equal(followed.status, "pending");
    assert_int_equal(followed.wait_until_unix_ns, ((int64_t)small->now_ms + DELAY_MS) * 1000000);
    pass(small, DELAY_MS - 1);
    assert_int_equal(small_count(small, "j", NULL).live, 0);
    assert_int_equal(life_deadline_ms(small->life), small->now_ms + 1);
    pass(small, 1);
    struct small_counts second = small_count(small, "j", NULL);
    assert_int_equal(second.live, 1);
    struct alone_evaluation none;
    assert_false(alone_follow_up(small->alone, first.newest, &none));
    check_relieved(small, first.newest, "alloc was rescheduled because it failed");
    const struct alone_evaluation *made = alone_evaluation(small->alone, followed.id);
    assert_string_equal(made->status, "complete"); /* it is the one that was named */
    assert_string_equal(made->triggered_by, "alloc-reschedule");
    assert_int_equal(made->placed, 1);

    char key[JOURNAL_KEY_SIZE], *text;
    (void)snprintf(key, sizeof(key), "alloc/%s", second.newest);
    size_t length;
    struct err err;
    assert_int_equal(life_read_spec(small->life, key, &text, &length, &err), 0);
    assert_non_null(strstr(text, first.newest));
    assert_non_null(strstr(text, followed.id));
    free(text);
}

static bool count_pending(void *ctx, const struct alone_evaluation *evaluation)
{
    *(size_t *)ctx += text_equal(evaluation->status, "pending");
    return true;
}

static size_t pending(struct small_life *small)
{
    size_t count = 0;

    alone_each_evaluation(small->alone, count_pending, &count);
    return count;
}

static void test_failures_close_to_each_other_are_made_good_at_once(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation of[3];
    struct small_counts failed[3];

    (void)run(small, "j", 3, 100, 50, limited(2));
    for (size_t i = 0; i < 3; i++) {
        failed[i] = small_count(small, "j", NULL);
        fail_one(small, "j");
        assert_true(alone_follow_up(small->alone, failed[i].newest, &of[i]));
        pass(small, 4000);
    }
    assert_string_equal(of[0].id, of[1].id);
    assert_int_equal(of[0].wait_until_unix_ns, of[1].wait_until_unix_ns);
    assert_string_not_equal(of[0].id, of[2].id);
    assert_int_equal(pending(small), 1); /* the first two are due, and made good */
    assert_int_equal(small_count(small, "j", NULL).live, 2);
    assert_int_equal(alone_evaluation(small->alone, of[0].id)->placed, 2);
    pass(small, DELAY_MS - 4000);
    assert_int_equal(pending(small), 0);
    assert_int_equal(small_count(small, "j", NULL).live, 3);
    assert_int_equal(alone_evaluation(small->alone, of[2].id)->placed, 1);
}

static void test_attempts_within_the_interval_are_counted_over_lives(void **state)
{
    struct small_life *small = *state;

    (void)run(small, "j", 1, 300, 50, limited(2));
    for (int tries = 0; tries < 2; tries++) {
        fail_one(small, "j");
        small_again(small);
        pass(small, DELAY_MS);
        assert_int_equal(small_count(small, "j", NULL).live, 1);
        small_again(small);
    }
    fail_one(small, "j");
    small_again(small);
    pass(small, 100 * DELAY_MS);
    assert_int_equal(small_count(small, "j", NULL).live, 0);
    assert_int_equal(small_count(small, "j", NULL).ended, 3);
    assert_string_equal(status_of(small, "j"), "dead");
}

static void test_deadline_is_that_of_the_failure_not_of_the_restart(void **state)
{
    struct small_life *small = *state;

    (void)run(small, "j", 1, 300, 50, limited(1));
    fail_one(small, "j");
    small->now_ms += DELAY_MS - 1000;
    small_again(small);
    assert_int_equal(small_count(small, "j", NULL).live, 0);
    pass(small, 1000);
    assert_int_equal(small_count(small, "j", NULL).live, 1);
}

static void test_replacement_whose_commit_fails_is_tried_again(void **state)
{
    struct small_life *small = *state;

    (void)run(small, "j", 1, 300, 50, limited(1));
    fail_one(small, "j");
    small->commit_code = ERR_FULL;
    pass(small, DELAY_MS);
    assert_int_equal(small_count(small, "j", NULL).live, 0);
    pass(small, 2000);
    small->commit_code = 0;
    pass(small, 2000);
    pass(small, 2000);
    assert_int_equal(small_count(small, "j", NULL).live, 1);
}

static void test_stopped_or_replaced_alloc_is_not_rescheduled(void **state)
{
    struct small_life *small = *state;

    (void)run(small, "j", 1, 300, 50, limited(1));
    struct small_counts first = small_count(small, "j", NULL);
    fail_one(small, "j");
    (void)run(small, "j", 1, 300, 50, limited(1)); /* a user wants it at once */
    check_relieved(small, first.newest, "alloc was rescheduled because it failed");
    assert_int_equal(small_count(small, "j", NULL).live, 1);
    pass(small, 2 * DELAY_MS);
    assert_int_equal(small_count(small, "j", NULL).live, 1);
    assert_int_equal(small_count(small, "j", NULL).ended, 1);
}

static void test_newer_version_takes_the_place_of_what_has_failed(void **state)
{
    struct small_life *small = *state;

    (void)run(small, "j", 1, 300, 50, limited(1));
    struct small_counts first = small_count(small, "j", NULL);
    fail_one(small, "j");
    (void)run(small, "j", 1, 200, 50, limited(1));
    check_relieved(small, first.newest, "alloc is being updated due to job update");
    assert_int_equal(small_count(small, "j", NULL).live, 1);
}

/* --- evaluating --- */

static struct alone_evaluation evaluate(struct small_life *small, bool force)
{
    struct alone_evaluation evaluation = {0};
    struct err err = {0};

    if (alone_evaluate(small->alone, "default", "j", force, &evaluation, &err) < 0)
        fail_msg("%s", err.text);
    small_settle(small);
    return evaluation;
}

static void test_evaluation_leaves_failed_allocs_to_their_time(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation followed;
    struct err err;

    (void)run(small, "j", 2, 300, 50, limited(1));
    struct small_counts first = small_count(small, "j", NULL);
    fail_one(small, "j");
    assert_true(alone_follow_up(small->alone, first.newest, &followed));
    assert_int_equal(evaluate(small, false).placed, 0);
    struct small_counts second = small_count(small, "j", NULL);
    assert_int_equal(alone_stop_alloc(small->alone, second.newest, 0, &followed, &err), 0);
    small_settle(small); /* in whose place another comes, and in no other */
    assert_int_equal(small_count(small, "j", NULL).live, 1);
    pass(small, DELAY_MS);
    assert_int_equal(small_count(small, "j", NULL).live, 2);
}

static void test_forced_evaluation_tries_again_at_once(void **state)
{
    struct small_life *small = *state;

    (void)run(small, "j", 1, 300, 50, limited(1));
    struct small_counts first = small_count(small, "j", NULL);
    fail_one(small, "j");
    assert_int_equal(evaluate(small, true).placed, 1); /* before its time */
    check_relieved(small, first.newest, "alloc was rescheduled because it failed");
    assert_int_equal(evaluate(small, true).placed, 0); /* it is there */
    fail_one(small, "j");                              /* and with it its deployment */
    assert_int_equal(evaluate(small, true).placed, 0);
}

static void test_forced_evaluation_does_not_mind_what_was_tried(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;
    json_t *job = json_pack("{s:s, s:s, s:[{s:s, s:{s:i, s:s}, s:o, s:[{s:s, s:s, s:{s:s}}]}]}",
                            "ID", "j", "Type", "batch", "TaskGroups", "Name", "g", "RestartPolicy",
                            "Attempts", 0, "Mode", "fail", "ReschedulePolicy", limited(1), "Tasks",
                            "Name", "t", "Driver", "raw_exec", "Config", "command", "/bin/a");

    assert_int_equal(post_job(small, job, &evaluation), 0);
    small_settle(small);
    fail_one(small, "j");
    pass(small, DELAY_MS);
    fail_one(small, "j"); /* that was its one attempt */
    assert_int_equal(evaluate(small, false).placed, 0);
    assert_int_equal(evaluate(small, true).placed, 1);
    fail_one(small, "j");
    pass(small, 10 * DELAY_MS); /* what was forced counts, too */
    assert_int_equal(small_count(small, "j", NULL).live, 0);
}

static void test_nothing_is_forced_that_is_never_to_be_tried_again(void **state)
{
    struct small_life *small = *state;

    (void)run(small, "j", 1, 300, 50, never());
    fail_one(small, "j");
    assert_int_equal(evaluate(small, true).placed, 0);
    assert_string_equal(status_of(small, "j"), "dead");
}

static void test_evaluation_leaves_what_waits_for_room_where_it_is(void **state)
{
    struct small_life *small = *state;

    have_memory(small, 1000);
    (void)run(small, "j", 1, 600, 50, never());
    fail_one(small, "j");
    (void)run(small, "other", 1, 600, 50, never());
    (void)run(small, "j", 1, 600, 50, never()); /* which is to be there again */
    assert_int_equal(alone_queued(small_find(small, "j"), 0), 1);
    assert_int_equal(evaluate(small, false).placed, 0);
    assert_int_equal(alone_queued(small_find(small, "j"), 0), 1);
}

static void test_what_cannot_be_evaluated_is_refused(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;
    struct err err;

    assert_int_equal(alone_evaluate(small->alone, "default", "j", false, &evaluation, &err),
                     ERR_GONE);
    (void)run(small, "j", 1, 300, 50, never());
    assert_int_equal(alone_deregister(small->alone, "default", "j", 0, &evaluation, &err), 0);
    small_settle(small);
    assert_int_equal(evaluate(small, true).placed, 0); /* it is stopped */
}

/* A job of TYPE, which no node can take over, is asked for. */
static struct alone_evaluation run_of_node(struct small_life *small, const char *type,
                                           const char *command)
{
    struct alone_evaluation evaluation;
    json_t *job =
        json_pack("{s:s, s:s, s:[{s:s, s:{s:i, s:s}, s:[{s:s, s:s, s:{s:s}}]}]}", "ID", "j", "Type",
                  type, "TaskGroups", "Name", "g", "RestartPolicy", "Attempts", 0, "Mode", "fail",
                  "Tasks", "Name", "t", "Driver", "raw_exec", "Config", "command", command);

    assert_int_equal(post_job(small, job, &evaluation), 0);
    small_settle(small);
    return evaluation;
}

static void test_failed_alloc_of_a_system_job_is_replaced_only_when_asked(void **state)
{
    struct small_life *small = *state;

    assert_int_equal(run_of_node(small, "system", "/bin/a").placed, 1);
    struct small_counts first = small_count(small, "j", NULL);
    fail_one(small, "j");
    pass(small, (uint64_t)365 * 24 * 3600 * 1000);
    small_again(small);
    assert_int_equal(small_count(small, "j", NULL).live, 0);
    assert_string_equal(status_of(small, "j"), "running");
    assert_int_equal(run_of_node(small, "system", "/bin/a").placed, 1);
    assert_int_equal(small_count(small, "j", NULL).live, 1);
    assert_false(core_alloc(life_core(small->life), first.newest)->stop_wanted);
    fail_one(small, "j");
    assert_int_equal(evaluate(small, false).placed, 1);
}

static void test_ended_alloc_of_a_sysbatch_job_is_replaced_only_by_a_new_version(void **state)
{
    struct small_life *small = *state;

    (void)run_of_node(small, "sysbatch", "/bin/a");
    fail_one(small, "j");
    assert_string_equal(status_of(small, "j"), "dead");
    assert_int_equal(run_of_node(small, "sysbatch", "/bin/a").placed, 0);
    small_again(small);
    assert_int_equal(run_of_node(small, "sysbatch", "/bin/a").placed, 0);
    assert_int_equal(run_of_node(small, "sysbatch", "/bin/b").placed, 1);
    assert_string_equal(status_of(small, "j"), "running");
}

static void test_failed_alloc_is_not_collected_before_it_is_replaced(void **state)
{
    struct small_life *small = *state;

    small->kept = 0;
    small_again(small);
    (void)run(small, "j", 1, 300, 50, limited(1));
    fail_one(small, "j");
    assert_int_equal(small_count(small, "j", NULL).ended, 1);
    alone_collect(small->alone);
    small_settle(small);
    assert_int_equal(small_count(small, "j", NULL).ended, 1);
    pass(small, DELAY_MS);
    small_settle(small);
    assert_int_equal(small_count(small, "j", NULL).live, 1);
    assert_int_equal(small_count(small, "j", NULL).ended, 0);
}

static void test_replacement_waits_for_room_too(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;
    struct err err;

    have_memory(small, 1000);
    (void)run(small, "j", 1, 600, 50, limited(1));
    fail_one(small, "j");
    (void)run(small, "other", 1, 600, 50, never());
    pass(small, DELAY_MS);
    assert_int_equal(small_count(small, "j", NULL).live, 0);
    assert_int_equal(alone_queued(small_find(small, "j"), 0), 1);
    small_again(small);
    assert_int_equal(alone_deregister(small->alone, "default", "other", 0, &evaluation, &err), 0);
    small_settle(small);
    assert_int_equal(small_count(small, "j", NULL).live, 1);
    fail_one(small, "j");
    pass(small, 10 * DELAY_MS);
    assert_int_equal(small_count(small, "j", NULL).live, 0); /* that was its one attempt */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SMALL_TEST(test_what_does_not_fit_waits_and_says_why),
        SMALL_TEST(test_what_waits_is_placed_when_room_appears),
        SMALL_TEST(test_what_waits_survives_the_daemon),
        SMALL_TEST(test_more_important_jobs_are_placed_first),
        SMALL_TEST(test_new_version_has_the_room_of_the_old_one),
        SMALL_TEST(test_two_requests_of_one_turn_do_not_get_the_same_room),
        SMALL_TEST(test_failed_commit_gives_the_room_back),
        SMALL_TEST(test_stopped_job_waits_for_nothing),
        SMALL_TEST(test_other_datacenter_waits),
        SMALL_TEST(test_what_has_no_driver_here_waits_until_there_is_one),
        SMALL_TEST(test_unmet_constraint_waits_until_the_node_fulfils_it),
        SMALL_TEST(test_constraint_that_a_change_brings_ends_what_does_not_fulfil_it),
        SMALL_TEST(test_distinct_allocs_are_not_together_on_this_node),
        SMALL_TEST(test_property_is_shared_by_as_many_as_it_says),
        SMALL_TEST(test_failed_alloc_is_replaced_after_its_delay),
        SMALL_TEST(test_failures_close_to_each_other_are_made_good_at_once),
        SMALL_TEST(test_attempts_within_the_interval_are_counted_over_lives),
        SMALL_TEST(test_deadline_is_that_of_the_failure_not_of_the_restart),
        SMALL_TEST(test_replacement_whose_commit_fails_is_tried_again),
        SMALL_TEST(test_stopped_or_replaced_alloc_is_not_rescheduled),
        SMALL_TEST(test_newer_version_takes_the_place_of_what_has_failed),
        SMALL_TEST(test_evaluation_leaves_failed_allocs_to_their_time),
        SMALL_TEST(test_forced_evaluation_tries_again_at_once),
        SMALL_TEST(test_forced_evaluation_does_not_mind_what_was_tried),
        SMALL_TEST(test_nothing_is_forced_that_is_never_to_be_tried_again),
        SMALL_TEST(test_evaluation_leaves_what_waits_for_room_where_it_is),
        SMALL_TEST(test_what_cannot_be_evaluated_is_refused),
        SMALL_TEST(test_failed_alloc_of_a_system_job_is_replaced_only_when_asked),
        SMALL_TEST(test_ended_alloc_of_a_sysbatch_job_is_replaced_only_by_a_new_version),
        SMALL_TEST(test_failed_alloc_is_not_collected_before_it_is_replaced),
        SMALL_TEST(test_replacement_waits_for_room_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
