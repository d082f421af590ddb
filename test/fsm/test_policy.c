/* The policies: restart rules, lifecycle order, client status, reconciling. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fsm/policy.h"

#include <stdlib.h>
#include <string.h>

/* --- restart --- */

static struct task_define service(void)
{
    return (struct task_define){
        .restart_interval_ms = 1800000,
        .restart_delay_ms = 15000,
        .restart_attempts = 2,
        .restart_on_success = 1,
    };
}

static struct restart_decision decide(const struct task_define *define, uint64_t now_ms,
                                      uint64_t interval_ms, uint32_t count, bool success,
                                      bool unrecoverable)
{
    struct restart_input input = {define, now_ms, interval_ms, 5, count, success, unrecoverable};
    struct restart_decision decision;

    policy_restart(&input, &decision);
    return decision;
}

static void test_restart_without_attempts_fails_unless_a_batch_task_succeeded(void **state)
{
    struct task_define define = service();

    (void)state;
    define.restart_attempts = 0;
    assert_int_equal(decide(&define, 0, 0, 0, true, false).answer, RESTART_EXHAUSTED);
    define.restart_on_success = 0;
    assert_int_equal(decide(&define, 0, 0, 0, true, false).answer, RESTART_SUCCEEDED);
    struct restart_decision decision = decide(&define, 0, 0, 0, false, false);
    assert_int_equal(decision.answer, RESTART_EXHAUSTED);
    assert_string_equal(decision.reason, "Policy allows no restarts");
}

static void test_restart_within_policy_waits_the_delay_with_at_most_a_quarter_more(void **state)
{
    struct task_define define = service();
    struct restart_decision decision = decide(&define, 100, 0, 0, false, false);

    (void)state;
    assert_int_equal(decision.answer, RESTART_AGAIN);
    assert_int_equal(decision.count, 1);
    assert_in_range(decision.delay_ms, 15000, 15000 + 3750);
}

static void test_restart_over_the_attempts_fails_in_mode_fail(void **state)
{
    struct task_define define = service();
    struct restart_decision decision = decide(&define, 100, 0, 2, false, false);

    (void)state;
    assert_int_equal(decision.answer, RESTART_EXHAUSTED);
    assert_string_equal(decision.reason,
                        "Exceeded allowed attempts 2 in interval 30m0s and mode is \"fail\"");
}

static void test_restart_over_the_attempts_waits_for_the_next_interval_in_mode_delay(void **state)
{
    struct task_define define = service();

    (void)state;
    define.restart_mode_delay = 1;
    struct restart_decision decision = decide(&define, 600000, 0, 2, false, false);
    assert_int_equal(decision.answer, RESTART_DELAYED);
    assert_int_equal(decision.delay_ms, 1200000);
}

static void test_restart_begins_a_new_interval_when_the_old_one_is_over(void **state)
{
    struct task_define define = service();
    struct restart_decision decision = decide(&define, 1800001, 0, 2, false, false);

    (void)state;
    assert_int_equal(decision.answer, RESTART_AGAIN);
    assert_int_equal(decision.interval_ms, 1800001);
    assert_int_equal(decision.count, 1);
}

static void test_restart_unrecoverable_error_fails_at_once(void **state)
{
    struct task_define define = service();
    struct restart_decision decision = decide(&define, 0, 0, 0, false, true);

    (void)state;
    assert_int_equal(decision.answer, RESTART_EXHAUSTED);
    assert_string_equal(decision.reason, "Error was unrecoverable");
}

static void test_backoff_grows_fourfold_up_to_its_cap(void **state)
{
    (void)state;
    assert_in_range(policy_backoff_ms(5000, 120000, 1, 1), 5000, 6250);
    assert_in_range(policy_backoff_ms(5000, 120000, 2, 1), 20000, 25000);
    assert_in_range(policy_backoff_ms(5000, 120000, 1000, 1), 120000, 150000);
}

/* --- groups --- */

struct group {
    union {
        struct alloc alloc;
        unsigned char room[sizeof(struct alloc) + 8 * sizeof(struct alloc_member)];
    };
};

static struct alloc_member *add(struct group *group, const char *name,
                                enum spec_lifecycle lifecycle, bool sidecar,
                                enum task_run_state run_state)
{
    struct alloc_member *member = &group->alloc.assign.members[group->alloc.assign.members_count++];

    member->kind = MEMBER_TASK;
    member->lifecycle = (uint8_t)lifecycle;
    member->sidecar = sidecar;
    member->run_state = (uint8_t)run_state;
    member->started = run_state != TASK_RUN_PENDING;
    (void)text_copy(member->name, sizeof(member->name), name);
    group->alloc.prepared = 1;
    return member;
}

static void test_lifecycle_main_waits_for_prestart_to_succeed(void **state)
{
    struct group group = {0};
    struct alloc_member *init = add(&group, "init", LIFECYCLE_PRESTART, false, TASK_RUN_RUNNING);
    struct alloc_member *side = add(&group, "side", LIFECYCLE_PRESTART, true, TASK_RUN_PENDING);
    struct alloc_member *web = add(&group, "web", LIFECYCLE_MAIN, false, TASK_RUN_PENDING);

    (void)state;
    assert_true(policy_may_start(&group.alloc, init));
    assert_false(policy_may_start(&group.alloc, web));
    init->run_state = TASK_RUN_DEAD;
    assert_false(policy_may_start(&group.alloc, web)); /* the sidecar has not started */
    side->started = 1;
    assert_true(policy_may_start(&group.alloc, web));
    init->failed = 1;
    assert_false(policy_may_start(&group.alloc, web));
}

static void test_lifecycle_poststart_and_poststop_wait_for_their_time(void **state)
{
    struct group group = {0};
    struct alloc_member *web = add(&group, "web", LIFECYCLE_MAIN, false, TASK_RUN_PENDING);
    struct alloc_member *after = add(&group, "after", LIFECYCLE_POSTSTART, false, TASK_RUN_PENDING);
    struct alloc_member *last = add(&group, "last", LIFECYCLE_POSTSTOP, false, TASK_RUN_PENDING);

    (void)state;
    assert_false(policy_may_start(&group.alloc, after));
    assert_false(policy_may_start(&group.alloc, last));
    web->started = 1;
    web->run_state = TASK_RUN_RUNNING;
    assert_true(policy_may_start(&group.alloc, after));
    web->run_state = after->run_state = TASK_RUN_DEAD;
    assert_true(policy_may_start(&group.alloc, last));
}

static void test_kill_goes_leader_mains_sidecars_and_spares_poststop(void **state)
{
    struct group group = {0};
    struct alloc_member *side = add(&group, "side", LIFECYCLE_PRESTART, true, TASK_RUN_RUNNING);
    struct alloc_member *web = add(&group, "web", LIFECYCLE_MAIN, false, TASK_RUN_RUNNING);
    struct alloc_member *boss = add(&group, "boss", LIFECYCLE_MAIN, false, TASK_RUN_RUNNING);
    struct alloc_member *last = add(&group, "last", LIFECYCLE_POSTSTOP, false, TASK_RUN_PENDING);

    (void)state;
    boss->leader = 1;
    assert_true(policy_must_kill(&group.alloc, boss));
    assert_false(policy_must_kill(&group.alloc, web));
    boss->run_state = TASK_RUN_DEAD;
    assert_true(policy_must_kill(&group.alloc, web));
    assert_false(policy_must_kill(&group.alloc, side));
    web->run_state = TASK_RUN_DEAD;
    assert_true(policy_must_kill(&group.alloc, side));
    side->run_state = TASK_RUN_DEAD;
    assert_false(policy_must_kill(&group.alloc, last));
    group.alloc.destroy_wanted = 1;
    assert_true(policy_must_kill(&group.alloc, last));
}

static void test_kill_reason_names_the_failed_sibling_and_the_leader_wins(void **state)
{
    struct group group = {0};
    struct alloc_member *web = add(&group, "web", LIFECYCLE_MAIN, false, TASK_RUN_RUNNING);
    struct alloc_member *boss = add(&group, "boss", LIFECYCLE_MAIN, false, TASK_RUN_RUNNING);
    struct alloc_member *bad = add(&group, "bad", LIFECYCLE_MAIN, false, TASK_RUN_DEAD);
    const char *name;

    (void)state;
    assert_int_equal(policy_kill_reason(&group.alloc, &name), TASK_EVENT_NONE);
    bad->failed = 1;
    assert_int_equal(policy_kill_reason(&group.alloc, &name), TASK_EVENT_SIBLING_FAILED);
    assert_string_equal(name, "bad");
    boss->leader = 1;
    boss->run_state = TASK_RUN_DEAD;
    assert_int_equal(policy_kill_reason(&group.alloc, &name), TASK_EVENT_LEADER_DEAD);
    web->run_state = TASK_RUN_DEAD;
    assert_int_equal(policy_kill_reason(&group.alloc, &name), TASK_EVENT_NONE);
}

static void test_kill_reason_ends_sidecars_when_the_mains_are_done(void **state)
{
    struct group group = {0};
    const char *name;

    (void)state;
    (void)add(&group, "side", LIFECYCLE_PRESTART, true, TASK_RUN_RUNNING);
    (void)add(&group, "web", LIFECYCLE_MAIN, false, TASK_RUN_DEAD);
    assert_int_equal(policy_kill_reason(&group.alloc, &name), TASK_EVENT_MAIN_DEAD);
}

static void test_client_status_follows_the_members_in_nomads_order(void **state)
{
    struct group group = {0};
    struct alloc_member *a = add(&group, "a", LIFECYCLE_MAIN, false, TASK_RUN_PENDING);
    struct alloc_member *b = add(&group, "b", LIFECYCLE_MAIN, false, TASK_RUN_PENDING);
    const char *text;

    (void)state;
    assert_int_equal(policy_client_status(&group.alloc, &text), CLIENT_PENDING);
    assert_string_equal(text, "No tasks have started");
    a->run_state = TASK_RUN_RUNNING;
    assert_int_equal(policy_client_status(&group.alloc, &text), CLIENT_RUNNING);
    b->run_state = TASK_RUN_DEAD;
    b->failed = 1;
    assert_int_equal(policy_client_status(&group.alloc, &text), CLIENT_FAILED);
    assert_string_equal(text, "Failed tasks");
    b->failed = 0;
    a->run_state = TASK_RUN_DEAD;
    assert_int_equal(policy_client_status(&group.alloc, &text), CLIENT_COMPLETE);
}

/* --- reconciling --- */

static void test_reconcile_places_what_is_missing_and_stops_what_is_too_much(void **state)
{
    struct reconcile_alloc allocs[] = {
        {.group = "web", .index = 0, .live = true, .current = true},
        {.group = "web", .index = 0, .live = true, .current = true},  /* a second one */
        {.group = "web", .index = 1, .live = true, .current = false}, /* of an old definition */
        {.group = "web", .index = 9, .live = true, .current = true},  /* beyond the count */
        {.group = "gone", .index = 0, .live = true, .current = false},
        {.group = "web", .index = 2, .live = false, .current = true}, /* has failed */
    };
    bool place[3];
    struct reconcile_group group = {"web", 3, place};

    (void)state;
    policy_reconcile(false, allocs, COUNT_OF(allocs), &group, 1);
    assert_false(allocs[0].stop);
    assert_true(allocs[1].stop);
    assert_true(allocs[2].stop);
    assert_true(allocs[3].stop);
    assert_true(allocs[4].stop);
    assert_false(allocs[5].stop);
    assert_false(place[0]);
    assert_true(place[1]);
    assert_true(place[2]);
}

/* Finished work runs again when a success does not count as there. */
static void test_reconcile_does_not_run_finished_batch_work_again(void **state)
{
    struct reconcile_alloc done = {.group = "once", .succeeded = true, .current = true};
    bool place[1];
    struct reconcile_group group = {"once", 1, place};

    (void)state;
    policy_reconcile(true, &done, 1, &group, 1);
    assert_false(place[0]);
    policy_reconcile(false, &done, 1, &group, 1);
    assert_true(place[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_restart_without_attempts_fails_unless_a_batch_task_succeeded),
        cmocka_unit_test(test_restart_within_policy_waits_the_delay_with_at_most_a_quarter_more),
        cmocka_unit_test(test_restart_over_the_attempts_fails_in_mode_fail),
        cmocka_unit_test(test_restart_over_the_attempts_waits_for_the_next_interval_in_mode_delay),
        cmocka_unit_test(test_restart_begins_a_new_interval_when_the_old_one_is_over),
        cmocka_unit_test(test_restart_unrecoverable_error_fails_at_once),
        cmocka_unit_test(test_backoff_grows_fourfold_up_to_its_cap),
        cmocka_unit_test(test_lifecycle_main_waits_for_prestart_to_succeed),
        cmocka_unit_test(test_lifecycle_poststart_and_poststop_wait_for_their_time),
        cmocka_unit_test(test_kill_goes_leader_mains_sidecars_and_spares_poststop),
        cmocka_unit_test(test_kill_reason_names_the_failed_sibling_and_the_leader_wins),
        cmocka_unit_test(test_kill_reason_ends_sidecars_when_the_mains_are_done),
        cmocka_unit_test(test_client_status_follows_the_members_in_nomads_order),
        cmocka_unit_test(test_reconcile_places_what_is_missing_and_stops_what_is_too_much),
        cmocka_unit_test(test_reconcile_does_not_run_finished_batch_work_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
