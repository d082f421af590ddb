/* The policies: restart rules, lifecycle order, client status, reconciling. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fsm/images.h"
#include "fsm/policy.h"
#include "fsm/task/part.h"

#include <stdlib.h>
#include <string.h>

/* --- templates --- */

static uint8_t said_bytes[2][512];

/* Results that say of three templates, of mode noop, signal and restart, what TEXTS are,
 * and of a fourth, of mode script, if they are four. */
static struct results saying(unsigned which, const char *texts, size_t count)
{
    struct results results = {said_bytes[which], 0, sizeof(said_bytes[which])};
    struct rendered said[4] = {{.mode = CHANGE_NOOP, .number = 1, .digest = {(uint8_t)texts[0]}},
                               {.mode = CHANGE_SIGNAL, .number = 10, .digest = {(uint8_t)texts[1]}},
                               {.mode = CHANGE_RESTART, .digest = {(uint8_t)texts[2]}},
                               {.mode = CHANGE_SCRIPT, .number = 63}};

    said[3].digest[0] = (uint8_t)texts[count == 4 ? 3 : 0];

    assert_int_equal(results_set(&results, TASK_HOOK_TEMPLATE, RESULT_ENV, "A", "b", 1), 0);
    assert_int_equal(results_set(&results, TASK_HOOK_TEMPLATE, RESULT_DATA, RENDERED_KEY, said,
                                 (uint32_t)(count * sizeof(said[0]))),
                     0);
    return results;
}

static struct rendered_change changed(const char *before, const char *after)
{
    struct results was = saying(0, before, strlen(before)), is = saying(1, after, strlen(after));
    struct rendered_change change;

    policy_change(TASK_HOOK_TEMPLATE, was.bytes, was.used, is.bytes, is.used, &change);
    return change;
}

static void test_change_asks_for_what_each_template_does(void **state)
{
    (void)state;
    assert_false(changed("xyz", "xyz").restarts);
    assert_int_equal(changed("xyz", "xyz").signals, 0);
    assert_false(changed("xyz", "ayz").restarts);
    assert_int_equal(changed("xyz", "ayz").signals, 0);
    assert_false(changed("xyz", "aaz").restarts);
    assert_int_equal(changed("xyz", "aaz").signals, 1u << 9);
    assert_true(changed("xyz", "xya").restarts);
    assert_int_equal(changed("xyz", "xya").signals, 0);
    assert_int_equal(changed("wxyz", "axyz").scripts, 0);
    assert_int_equal(changed("wxyz", "wxya").scripts, (uint64_t)1 << 63);
    assert_int_equal(changed("wxyz", "waya").signals, 1u << 9);
    assert_int_equal(changed("wxyz", "waya").scripts, (uint64_t)1 << 63);
}

static void test_change_of_what_nobody_knows_is_none(void **state)
{
    struct results fewer = saying(0, "abc", 2), is = saying(1, "xyz", 3);
    struct rendered_change change = {.restarts = true};

    (void)state;
    policy_change(TASK_HOOK_TEMPLATE, fewer.bytes, fewer.used, is.bytes, is.used, &change);
    assert_false(change.restarts);
    policy_change(TASK_HOOK_TEMPLATE, NULL, 0, is.bytes, is.used, &change);
    assert_false(change.restarts || change.signals != 0);
    policy_change(TASK_HOOK_TEMPLATE, is.bytes, is.used, NULL, 0, &change);
    assert_false(change.restarts || change.signals != 0);
}

/* What another hook says is its own. */
static void test_change_is_of_one_hook(void **state)
{
    struct results was = saying(0, "xyz", 3), is = saying(1, "xya", 3);
    struct rendered_change change = {.restarts = true};

    (void)state;
    policy_change(TASK_HOOK_IDENTITY, was.bytes, was.used, is.bytes, is.used, &change);
    assert_false(change.restarts);
}

/* --- hooks --- */

/* Whatever their numbers are: what others read is there before them. */
static void test_hooks_of_a_task_have_their_turn(void **state)
{
    struct task task = {0};
    size_t place[TASK_HOOK_COUNT] = {0}, count = 0;

    (void)state;
    task.define.hooks_prestart = (1u << TASK_HOOK_COUNT) - 1;
    for (uint8_t hook = task_hook_first(&task, PHASE_PRESTART); hook != HOOK_NONE;
         hook = task_hook_after(&task, PHASE_PRESTART, hook)) {
        assert_in_range(hook, 0, TASK_HOOK_COUNT - 1);
        assert_int_equal(place[hook], 0);
        place[hook] = ++count;
    }
    assert_int_equal(count, TASK_HOOK_COUNT);
    assert_true(place[TASK_HOOK_IDENTITY] > place[TASK_HOOK_TASK_DIR]);
    assert_true(place[TASK_HOOK_IDENTITY] < place[TASK_HOOK_ARTIFACTS]);
    assert_true(place[TASK_HOOK_IDENTITY] < place[TASK_HOOK_TEMPLATE]);
    task.define.hooks_prestart = 1u << TASK_HOOK_IDENTITY | 1u << TASK_HOOK_DEVICES;
    assert_int_equal(task_hook_first(&task, PHASE_PRESTART), TASK_HOOK_IDENTITY);
    assert_int_equal(task_hook_after(&task, PHASE_PRESTART, TASK_HOOK_IDENTITY), TASK_HOOK_DEVICES);
    assert_int_equal(task_hook_after(&task, PHASE_PRESTART, TASK_HOOK_DEVICES), HOOK_NONE);
    assert_int_equal(task_hook_after(&task, PHASE_PRESTART, HOOK_NONE), HOOK_NONE);
    assert_int_equal(task_hook_first(&task, PHASE_EXITED), HOOK_NONE);
}

/* What hooks leave together has a bound: one that leaves too much while its task runs changes
 * nothing. */
static void test_a_change_that_does_not_fit_is_told_and_not_taken(void **state)
{
    static uint8_t room[sizeof(struct task) + RESULTS_BYTES_MAX] __attribute__((aligned(8)));
    static uint8_t value[RESULT_VALUE_MAX],
        left[sizeof(struct hook_outcome) + RESULTS_BYTES_MAX] __attribute__((aligned(8)));
    struct task *task = (struct task *)(void *)room;
    struct hook_outcome *outcome = (struct hook_outcome *)(void *)left;
    struct results had = {task->results, 0, RESULTS_BYTES_MAX};
    struct results come = {outcome->results, 0, RESULTS_BYTES_MAX};
    const struct fsm_event event = {.kind = TE_CHANGED, .payload = outcome};
    const struct fsm_now now = {0};

    (void)state;
    task->machine.kind = MACHINE_TASK;
    task->machine.state = T_RUNNING;
    task->define.hooks_poststart = 1u << TASK_HOOK_IDENTITY;
    outcome->hook = TASK_HOOK_IDENTITY;
    for (char key[2] = "A"; key[0] < 'D'; key[0]++)
        assert_int_equal(
            results_set(&had, TASK_HOOK_DEVICES, RESULT_ENV, key, value, sizeof(value)), 0);
    assert_int_equal(results_set(&had, TASK_HOOK_IDENTITY, RESULT_DATA, "a", "old", 3), 0);
    task->results_bytes = had.used;
    assert_int_equal(results_set(&come, TASK_HOOK_IDENTITY, RESULT_DATA, "a", value, 7000), 0);
    assert_int_equal(results_set(&come, TASK_HOOK_IDENTITY, RESULT_DATA, "b", value, 2000), 0);
    outcome->results_bytes = come.used;
    task_absorb(&task->machine, &event, &now);
    assert_int_equal(task->results_bytes, had.used);
    assert_int_equal(task->events_count, 1);
    assert_int_equal(task->events[0].type, TASK_EVENT_HOOK_FAILED);
    assert_string_equal(task->events[0].text, "identity: what it leaves is too long");
    results_clear(&come, TASK_HOOK_IDENTITY);
    assert_int_equal(results_set(&come, TASK_HOOK_IDENTITY, RESULT_DATA, "a", value, 7000), 0);
    outcome->results_bytes = come.used;
    task_absorb(&task->machine, &event, &now);
    assert_int_equal(task->results_bytes, had.used + 7000 - 3);
    assert_int_equal(task->events_count, 1);
}

/* --- tokens --- */

enum { SECOND = 1000000000 };

static void test_a_token_is_renewed_at_half_of_its_time(void **state)
{
    const int64_t now = INT64_C(1795861938) * SECOND;

    (void)state;
    assert_int_equal(policy_renew_after_ms(now + INT64_C(3600) * SECOND, now, 0), 1800000);
    assert_int_equal(policy_renew_after_ms(now + INT64_C(3600) * SECOND, now, 179999), 1979999);
    assert_int_equal(policy_renew_after_ms(now + INT64_C(3600) * SECOND, now, 180000), 1800000);
    assert_int_equal(policy_renew_after_ms(now + INT64_C(20) * SECOND, now, 1), 10001);
    assert_int_equal(policy_renew_after_ms(now + INT64_C(15) * SECOND, now, 0), 10000);
    assert_int_equal(policy_renew_after_ms(now + 1, now, 0), 0); /* as good as gone */
    assert_int_equal(policy_renew_after_ms(now, now, 999), 0);
    assert_int_equal(policy_renew_after_ms(1, now, 7), 0);
}

static void test_a_renewal_that_fails_is_tried_ever_later(void **state)
{
    (void)state;
    assert_int_equal(policy_renew_again_ms(1, 0), 20000);
    assert_int_equal(policy_renew_again_ms(2, 9999), 49999);
    assert_int_equal(policy_renew_again_ms(8, 0), 2560000);
    assert_int_equal(policy_renew_again_ms(9, 0), 3600000);
    assert_int_equal(policy_renew_again_ms(UINT32_MAX, 10000), 3600000);
}

static void test_nobody_starts_with_a_token_that_is_about_to_expire(void **state)
{
    const int64_t now = INT64_C(1795861938) * SECOND;

    (void)state;
    assert_true(policy_token_lasts(0, now));
    assert_true(policy_token_lasts(now + INT64_C(10001) * 1000000, now));
    assert_false(policy_token_lasts(now + INT64_C(10000) * 1000000, now));
    assert_false(policy_token_lasts(now - 1, now));
}

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

static void test_rewind_takes_who_runs_in_the_order_of_a_kill_and_all_others_at_once(void **state)
{
    struct group group = {0};
    struct alloc_member *init = add(&group, "init", LIFECYCLE_PRESTART, false, TASK_RUN_DEAD);
    struct alloc_member *side = add(&group, "side", LIFECYCLE_PRESTART, true, TASK_RUN_RUNNING);
    struct alloc_member *web = add(&group, "web", LIFECYCLE_MAIN, false, TASK_RUN_RUNNING);
    struct alloc_member *late = add(&group, "late", LIFECYCLE_POSTSTART, true, TASK_RUN_PENDING);
    struct alloc_member *last = add(&group, "last", LIFECYCLE_POSTSTOP, false, TASK_RUN_PENDING);

    (void)state;
    assert_true(policy_must_rewind(&group.alloc, init));
    assert_true(policy_must_rewind(&group.alloc, web));
    assert_true(policy_must_rewind(&group.alloc, late)); /* or it would start beside nobody */
    assert_false(policy_must_rewind(&group.alloc, side));
    assert_false(policy_must_rewind(&group.alloc, last));
    init->rewound = web->rewound = late->rewound = 1;
    assert_true(policy_must_rewind(&group.alloc, side));
    assert_false(policy_must_rewind(&group.alloc, web));
    assert_false(policy_is_rewound(&group.alloc));
    side->rewound = 1;
    assert_true(policy_is_rewound(&group.alloc)); /* poststop tasks wait in any case */
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

static void test_alloc_that_ran_out_is_complete_once_its_tasks_are_dead(void **state)
{
    struct group group = {0};
    struct alloc_member *a = add(&group, "a", LIFECYCLE_MAIN, false, TASK_RUN_RUNNING);
    struct alloc_member *b = add(&group, "b", LIFECYCLE_POSTSTOP, false, TASK_RUN_PENDING);
    const char *text;

    (void)state;
    group.alloc.prepared = 1;
    assert_true(policy_runs_poststop(&group.alloc));
    group.alloc.ran_out = 1;
    assert_false(policy_runs_poststop(&group.alloc));
    assert_int_equal(policy_client_status(&group.alloc, &text), CLIENT_RUNNING);
    a->run_state = TASK_RUN_DEAD;
    a->failed = 1; /* it answered the signal badly */
    assert_int_equal(policy_client_status(&group.alloc, &text), CLIENT_PENDING);
    b->run_state = TASK_RUN_DEAD;
    assert_int_equal(policy_client_status(&group.alloc, &text), CLIENT_COMPLETE);
    assert_string_equal(text, "allocation exceeded max_run_duration");
}

/* --- health --- */

static void test_health_is_that_of_all_tasks_that_are_to_run(void **state)
{
    struct group group = {0};
    struct alloc_member *before =
        add(&group, "before", LIFECYCLE_PRESTART, false, TASK_RUN_PENDING);
    struct alloc_member *a = add(&group, "a", LIFECYCLE_MAIN, false, TASK_RUN_RUNNING);
    struct alloc_member *side = add(&group, "side", LIFECYCLE_POSTSTART, true, TASK_RUN_RUNNING);
    struct alloc_member *after = add(&group, "after", LIFECYCLE_POSTSTOP, false, TASK_RUN_PENDING);

    (void)state;
    a->up = side->up = MEMBER_UP;
    assert_int_equal(policy_group_health(&group.alloc), GROUP_UNSETTLED);
    before->run_state = TASK_RUN_DEAD;
    assert_int_equal(policy_group_health(&group.alloc), GROUP_STEADY);
    a->up = MEMBER_ASKED;
    assert_int_equal(policy_group_health(&group.alloc), GROUP_DOUBTED);
    side->up = MEMBER_DOWN; /* it is being restarted: that is no doubt */
    assert_int_equal(policy_group_health(&group.alloc), GROUP_UNSETTLED);
    side->run_state = TASK_RUN_DEAD; /* it has ended well */
    a->up = MEMBER_UP;
    assert_int_equal(policy_group_health(&group.alloc), GROUP_STEADY);
    group.alloc.machine.state = A_REPLAYING;
    assert_int_equal(policy_group_health(&group.alloc), GROUP_UNSETTLED);
    group.alloc.machine.state = A_RUNNING;
    side->failed = 1;
    assert_int_equal(policy_group_health(&group.alloc), GROUP_BROKEN);
    side->failed = 0;
    after->failed = 1; /* nobody waits for it */
    assert_int_equal(policy_group_health(&group.alloc), GROUP_STEADY);
    a->run_state = TASK_RUN_DEAD; /* a service is to go on */
    a->up = MEMBER_DOWN;
    assert_int_equal(policy_group_health(&group.alloc), GROUP_BROKEN);
}

static void test_health_ends_with_the_leader_and_with_the_set_up(void **state)
{
    struct group group = {0};
    struct alloc_member *a = add(&group, "a", LIFECYCLE_MAIN, false, TASK_RUN_RUNNING);
    struct alloc_member *leader =
        add(&group, "leader", LIFECYCLE_POSTSTART, false, TASK_RUN_RUNNING);

    (void)state;
    a->up = leader->up = MEMBER_UP;
    assert_int_equal(policy_group_health(&group.alloc), GROUP_STEADY);
    group.alloc.setup_failed = 1;
    assert_int_equal(policy_group_health(&group.alloc), GROUP_BROKEN);
    group.alloc.setup_failed = 0;
    leader->leader = 1;
    leader->run_state = TASK_RUN_DEAD;
    leader->up = MEMBER_DOWN;
    assert_int_equal(policy_group_health(&group.alloc), GROUP_BROKEN);
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
    policy_reconcile(JOB_SERVICE, allocs, COUNT_OF(allocs), &group, 1);
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
    policy_reconcile(JOB_BATCH, &done, 1, &group, 1);
    assert_false(place[0]);
    policy_reconcile(JOB_SERVICE, &done, 1, &group, 1);
    assert_true(place[0]);
}

/* Only a user brings another before its time, and only where others are made at all. */
static void test_successor_is_awaited_unless_it_is_asked_for(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits < 16; bits++) {
        struct succession succession = {
            .queued = bits & 1, .gave_up = bits & 2, .forced = bits & 4, .reschedules = bits & 8};
        static const bool awaited[16] = {
            /* nothing, queued, gave_up, both; forced; reschedules; both */
            true, false, true, false, true,  false, true, false,
            true, false, true, false, false, false, true, false,
        };

        assert_int_equal(policy_awaits_next(&succession), awaited[bits]);
    }
}

static void test_reconcile_runs_a_sysbatch_once_and_a_system_job_until_it_fails(void **state)
{
    struct reconcile_alloc failed = {.group = "once", .ended = true, .current = true};
    bool place[1];
    struct reconcile_group group = {"once", 1, place};

    (void)state;
    policy_reconcile(JOB_SYSBATCH, &failed, 1, &group, 1);
    assert_false(place[0]);
    policy_reconcile(JOB_BATCH, &failed, 1, &group, 1);
    assert_true(place[0]);
    policy_reconcile(JOB_SYSTEM, &failed, 1, &group, 1); /* when it is asked for anew */
    assert_true(place[0]);
    failed.current = false;
    policy_reconcile(JOB_SYSBATCH, &failed, 1, &group, 1);
    assert_true(place[0]);
}

static void test_system_job_runs_until_it_is_stopped(void **state)
{
    (void)state;
    assert_int_equal(policy_job_status(&(struct job_standing){.type = JOB_SYSTEM}), JOB_RUNNING);
    assert_int_equal(policy_job_status(&(struct job_standing){.type = JOB_SYSTEM, .waits = true}),
                     JOB_RUNNING);
    assert_int_equal(policy_job_status(&(struct job_standing){.type = JOB_SYSTEM, .stop = true}),
                     JOB_DEAD);
    assert_int_equal(
        policy_job_status(&(struct job_standing){.type = JOB_SYSTEM, .stop = true, .live = 1}),
        JOB_RUNNING);
    assert_int_equal(policy_job_status(&(struct job_standing){.type = JOB_SYSBATCH}), JOB_DEAD);
    assert_int_equal(
        policy_job_status(&(struct job_standing){.type = JOB_BATCH, .makes_jobs = true}),
        JOB_RUNNING);
    assert_int_equal(policy_job_status(&(struct job_standing){
                         .type = JOB_BATCH, .makes_jobs = true, .stop = true}),
                     JOB_DEAD);
}

static void test_job_that_waits_is_pending_and_a_stopped_one_dead(void **state)
{
    (void)state;
    assert_int_equal(policy_job_status(&(struct job_standing){.type = JOB_SERVICE, .waits = true}),
                     JOB_PENDING);
    assert_int_equal(policy_job_status(&(struct job_standing){.type = JOB_SERVICE}), JOB_DEAD);
    assert_int_equal(
        policy_job_status(&(struct job_standing){.type = JOB_SERVICE, .stop = true, .waits = true}),
        JOB_DEAD);
    assert_int_equal(
        policy_job_status(&(struct job_standing){.type = JOB_SERVICE, .live = 2, .waits = true}),
        JOB_RUNNING);
    assert_int_equal(
        policy_job_status(&(struct job_standing){.type = JOB_SERVICE, .stop = true, .live = 1}),
        JOB_RUNNING);
    assert_int_equal(policy_job_status(&(struct job_standing){
                         .type = JOB_SERVICE, .waits = true, .deploys = true}),
                     JOB_RUNNING);
    assert_int_equal(policy_job_status(&(struct job_standing){
                         .type = JOB_SERVICE, .stop = true, .deploys = true}),
                     JOB_DEAD);
}

/* --- rescheduling --- */

#define SECOND UINT64_C(1000000000)
#define AT(s) ((int64_t)(1000000 + (s)) * (int64_t)SECOND)

/* Of one that failed at the second FAILED after those of EVENTS (second, delay). */
static struct reschedule_decision reschedule(const struct reschedule_policy *policy,
                                             const int (*events)[2], size_t count, int failed)
{
    struct reschedule_event made[16];
    struct reschedule_decision decision;

    assert_in_range(count, 0, COUNT_OF(made));
    for (size_t i = 0; i < count; i++)
        made[i] = (struct reschedule_event){AT(events[i][0]), (uint64_t)events[i][1] * SECOND};
    policy_reschedule(
        &(struct reschedule_input){
            .policy = policy, .events = made, .events_count = count, .failed_unix_ns = AT(failed)},
        &decision);
    return decision;
}

static const struct reschedule_policy service_default = {.unlimited = true,
                                                         .delay_ns = 30 * SECOND,
                                                         .max_delay_ns = 3600 * SECOND,
                                                         .function = RESCHEDULE_EXPONENTIAL};
static const struct reschedule_policy batch_default = {
    .attempts = 1, .interval_ns = 24 * 3600 * SECOND, .delay_ns = 5 * SECOND};

static void test_reschedule_of_a_batch_job_is_made_once_a_day(void **state)
{
    static const int before[][2] = {{0, 5}};

    (void)state;
    assert_true(reschedule(&batch_default, NULL, 0, 0).again);
    assert_int_equal(reschedule(&batch_default, NULL, 0, 0).delay_ns, 5 * SECOND);
    assert_false(reschedule(&batch_default, before, 1, 60).again);
    assert_int_equal(reschedule(&batch_default, before, 1, 60).attempted, 1);
    assert_true(reschedule(&batch_default, before, 1, 24 * 3600).again);
}

static void test_reschedule_of_a_service_waits_twice_as_long_up_to_an_hour(void **state)
{
    static const int one[][2] = {{0, 30}}, late[][2] = {{0, 1920}}, most[][2] = {{0, 3600}};

    (void)state;
    assert_true(reschedule(&service_default, NULL, 0, 0).again);
    assert_int_equal(reschedule(&service_default, NULL, 0, 0).delay_ns, 30 * SECOND);
    assert_int_equal(reschedule(&service_default, one, 1, 10).delay_ns, 60 * SECOND);
    assert_int_equal(reschedule(&service_default, late, 1, 10).delay_ns, 3600 * SECOND);
    assert_int_equal(reschedule(&service_default, most, 1, 10).delay_ns, 3600 * SECOND);
    assert_true(reschedule(&service_default, most, 1, 10).again);
    /* It ran for longer than it would wait: from the beginning. */
    assert_int_equal(reschedule(&service_default, most, 1, 3600).delay_ns, 3600 * SECOND);
    assert_int_equal(reschedule(&service_default, most, 1, 3601).delay_ns, 30 * SECOND);
}

static void test_reschedule_by_fibonacci_adds_the_last_two(void **state)
{
    static const int events[][2] = {{0, 30}, {60, 30}, {200, 60}};
    static const int met[][2] = {{0, 100}, {500, 30}};
    const struct reschedule_policy policy = {.unlimited = true,
                                             .delay_ns = 30 * SECOND,
                                             .max_delay_ns = 100 * SECOND,
                                             .function = RESCHEDULE_FIBONACCI};

    (void)state;
    assert_int_equal(reschedule(&policy, events, 1, 10).delay_ns, 30 * SECOND);
    assert_int_equal(reschedule(&policy, events, 2, 70).delay_ns, 60 * SECOND);
    assert_int_equal(reschedule(&policy, events, 3, 210).delay_ns, 90 * SECOND);
    assert_int_equal(reschedule(&policy, met, 2, 510).delay_ns, 30 * SECOND); /* a new series */
}

static void test_reschedule_whose_delay_exceeds_the_interval_is_not_made(void **state)
{
    static const int events[][2] = {{0, 30}};
    const struct reschedule_policy policy = {.attempts = 9,
                                             .interval_ns = 45 * SECOND,
                                             .delay_ns = 30 * SECOND,
                                             .max_delay_ns = 3600 * SECOND,
                                             .function = RESCHEDULE_EXPONENTIAL};
    const struct reschedule_policy off = {.delay_ns = 5 * SECOND};

    (void)state;
    assert_true(reschedule(&policy, NULL, 0, 0).again);
    assert_false(reschedule(&policy, events, 1, 10).again);
    assert_false(reschedule(&off, NULL, 0, 0).again);
}

/* A clock that was set back makes no attempt forgotten. */
static void test_reschedule_counts_attempts_of_the_future(void **state)
{
    static const int events[][2] = {{1000, 5}};

    (void)state;
    assert_false(reschedule(&batch_default, events, 1, 0).again);
}

static void test_reschedule_goes_on_to_count_what_is_within_the_interval(void **state)
{
    struct reschedule_event events[7];

    (void)state;
    for (int i = 0; i < 7; i++)
        events[i] = (struct reschedule_event){AT(i * 3600), 5 * SECOND};
    assert_int_equal(policy_reschedule_kept(&service_default, events, 7, AT(0)), 5);
    assert_int_equal(policy_reschedule_kept(&service_default, events, 3, AT(0)), 3);
    assert_int_equal(policy_reschedule_kept(&batch_default, events, 7, AT(26 * 3600)), 5);
    assert_int_equal(policy_reschedule_kept(&batch_default, events, 7, AT(40 * 3600)), 0);
}

/* --- room --- */

static void test_ask_is_what_runs_at_once_at_most(void **state)
{
    static const struct room small = {.cpu_mhz = 100, .memory_mb = 64, .memory_most_mb = 70},
                             large = {.cpu_mhz = 500, .memory_mb = 128, .memory_most_mb = 256};
    struct room_sum sum = {0};

    (void)state;
    policy_ask_task(&sum, LIFECYCLE_MAIN, false, &small);
    policy_ask_task(&sum, LIFECYCLE_POSTSTART, false, &small);
    struct room ask = policy_ask(&sum, 300);
    assert_int_equal(ask.cpu_mhz, 200);
    assert_int_equal(ask.memory_mb, 128);
    assert_int_equal(ask.memory_most_mb, 140);
    assert_int_equal(ask.disk_mb, 300);
    policy_ask_task(&sum, LIFECYCLE_PRESTART, false, &large);
    policy_ask_task(&sum, LIFECYCLE_POSTSTOP, false, &small);
    ask = policy_ask(&sum, 300);
    assert_int_equal(ask.cpu_mhz, 500);
    assert_int_equal(ask.memory_mb, 128);
    policy_ask_task(&sum, LIFECYCLE_PRESTART, true, &small);
    ask = policy_ask(&sum, 300);
    assert_int_equal(ask.cpu_mhz, 600);
    assert_int_equal(ask.memory_mb, 192);
    assert_int_equal(ask.memory_most_mb, 256 + 70);
}

static void test_room_is_exhausted_by_the_first_thing_that_lacks(void **state)
{
    static const struct room total = {1000, 1000, 1000, 4, 0}, used = {900, 900, 900, 3, 0};

    (void)state;
    /* How far memory may go needs not be there. */
    assert_null(policy_exhausted(&total, &used, &(struct room){100, 100, 100, 1, UINT64_MAX}));
    assert_string_equal(policy_exhausted(&total, &used, &(struct room){101, 101, 101, 1, 0}),
                        "cpu");
    assert_string_equal(policy_exhausted(&total, &used, &(struct room){100, 101, 101, 0, 0}),
                        "memory");
    assert_string_equal(policy_exhausted(&total, &used, &(struct room){100, 100, 101, 0, 0}),
                        "disk");
    assert_string_equal(policy_exhausted(&total, &used, &(struct room){UINT64_MAX, 0, 0, 0, 0}),
                        "cpu");
    /* More is used than there is: a node that has shrunk. */
    assert_string_equal(policy_exhausted(&used, &total, &(struct room){1, 0, 0, 0, 0}), "cpu");
    assert_string_equal(policy_exhausted(&total, &used, &(struct room){101, 0, 0, 2, 0}), "cores");
}

/* --- ports --- */

/* Every port of the range is given out once, from whatever place it begins, and then none. */
static void test_ports_of_a_range_are_given_out_once_each(void **state)
{
    static const struct port_range ranges[] = {
        {20000, 20130}, {1, 3}, {65530, 65535}, {64, 64}, {1, 65535}};
    (void)state;

    for (size_t r = 0; r < COUNT_OF(ranges); r++) {
        struct port_set taken = {{0}};
        unsigned count = ranges[r].last - ranges[r].first + 1u;

        for (unsigned i = 0; i < count; i++) {
            uint16_t port = policy_pick_port(&taken, &ranges[r], i * UINT64_C(0x9e3779b97f4a7c15));
            assert_in_range(port, ranges[r].first, ranges[r].last);
            assert_false(port_set_has(&taken, port));
            port_set_add(&taken, port);
        }
        assert_int_equal(policy_pick_port(&taken, &ranges[r], 7), 0);
        port_set_drop(&taken, ranges[r].last);
        assert_int_equal(policy_pick_port(&taken, &ranges[r], 7), ranges[r].last);
    }
}

static void test_ports_outside_the_range_do_not_matter(void **state)
{
    struct port_set taken = {{0}};
    struct port_range range = {100, 200};
    (void)state;

    for (unsigned port = 0; port <= UINT16_MAX; port++)
        port_set_add(&taken, (uint16_t)port);
    assert_int_equal(policy_pick_port(&taken, &range, 0), 0);
    port_set_drop(&taken, 99);
    port_set_drop(&taken, 201);
    assert_int_equal(policy_pick_port(&taken, &range, 3), 0);
    port_set_drop(&taken, 150);
    for (uint64_t seed = 0; seed < 300; seed++)
        assert_int_equal(policy_pick_port(&taken, &range, seed), 150);
    assert_int_equal(policy_pick_port(&taken, &(struct port_range){0, 0}, 0), 0);
    assert_int_equal(policy_pick_port(&taken, &(struct port_range){9, 8}, 0), 0);
}

static void test_ports_of_other_seeds_are_others(void **state)
{
    struct port_set none = {{0}};
    struct port_range range = {20000, 32000};
    (void)state;

    assert_int_equal(policy_pick_port(&none, &range, 0), 20000);
    assert_int_equal(policy_pick_port(&none, &range, 12000), 32000);
    assert_int_equal(policy_pick_port(&none, &range, 12001), 20000);
    assert_int_equal(policy_pick_port(&none, &range, UINT64_MAX),
                     20000 + UINT64_MAX % UINT64_C(12001));
}

static void test_names_match_patterns_as_nomad_has_them(void **state)
{
    static const struct {
        const char *pattern, *name;
        bool matches;
    } rows[] = {
        {"dc1", "dc1", true},     {"dc1", "dc2", false},
        {"*", "dc1", true},       {"*", "", true},
        {"", "", true},           {"", "dc1", false},
        {"dc*", "dc1", true},     {"dc*", "dc", true},
        {"*1", "dc1", true},      {"d*1", "dc11", true},
        {"d*1", "dc12", false},   {"*a*b", "xaayab", true},
        {"*a*b", "xaaya", false}, {"us-*-1", "us-east-1", true},
        {"dc1", "dc", false},     {"d?1", "dc1", false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (policy_matches(rows[i].pattern, rows[i].name) != rows[i].matches)
            fail_msg("%s and %s", rows[i].pattern, rows[i].name);
    }
}

static void test_unhealthy_alloc_has_a_reason_of_each_task_that_made_it_so(void **state)
{
    static const struct {
        struct alloc_member member;
        bool late; /* all ran, and not for long enough */
        const char *reason;
    } rows[] = {
        {{.run_state = TASK_RUN_DEAD, .failed = 1}, false, "Unhealthy because of failed task"},
        {{.run_state = TASK_RUN_PENDING, .failed = 1}, false, "Unhealthy because of failed task"},
        {{.run_state = TASK_RUN_DEAD}, false, "Unhealthy because of dead task"},
        {{.run_state = TASK_RUN_DEAD, .lifecycle = LIFECYCLE_PRESTART}, false, NULL},
        {{.run_state = TASK_RUN_PENDING}, false, "Task not running by healthy_deadline of 5m0s"},
        {{.run_state = TASK_RUN_PENDING, .started = 1},
         false,
         "Task not running for min_healthy_time of 10s by healthy_deadline of 5m0s"},
        {{.run_state = TASK_RUN_RUNNING, .started = 1}, false, NULL},
        {{.run_state = TASK_RUN_RUNNING, .started = 1},
         true,
         "Task not running for min_healthy_time of 10s by healthy_deadline of 5m0s"},
        {{.run_state = TASK_RUN_PENDING, .lifecycle = LIFECYCLE_POSTSTOP}, false, NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct alloc alloc = {.unhealthy_at_ms = 5000,
                              .healthy_at_ms = rows[i].late ? 5001 : 0,
                              .assign = {.min_healthy_ms = 10000, .healthy_deadline_ms = 300000}};
        char reason[DESCRIPTION_SIZE] = "";
        bool has = policy_unhealthy_reason(&alloc, &rows[i].member, reason, sizeof(reason));

        if (has != (rows[i].reason != NULL) || (has && strcmp(reason, rows[i].reason) != 0))
            fail_msg("row %zu: %s", i, reason);
    }
}

/* --- periodic jobs --- */

static void test_periodic_jobs_are_launched_when_they_are_due(void **state)
{
    static const struct {
        struct periodic periodic;
        enum launching verdict;
        int64_t at_s;
    } cases[] = {
        {{.due_s = 100, .then_s = 160, .now_s = 99}, LAUNCH_LATER, 100},
        {{.due_s = 100, .then_s = 160, .now_s = 100}, LAUNCH_NOW, 100},
        {{.due_s = 100, .then_s = 160, .now_s = 159}, LAUNCH_NOW, 100},
        {{.due_s = 100, .then_s = 160, .now_s = 160}, LAUNCH_NOW, 160}, /* two come to one */
        {{.due_s = 100, .then_s = 160, .now_s = 101, .away = true}, LAUNCH_NOW, 101},
        {{.due_s = 100, .then_s = 160, .now_s = 99, .away = true}, LAUNCH_LATER, 100},
        {{.due_s = 100, .then_s = 160, .now_s = 100, .goes_on = true}, LAUNCH_NOW, 100},
        {{.due_s = 100, .then_s = 160, .now_s = 100, .goes_on = true, .prohibits_overlap = true},
         LAUNCH_SKIPPED,
         100},
        {{.due_s = LAUNCH_NEVER, .then_s = LAUNCH_NEVER, .now_s = 100}, LAUNCH_LATER, LAUNCH_NEVER},
    };
    int64_t at_s;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(policy_launch(&cases[i].periodic, &at_s), cases[i].verdict);
        assert_int_equal(at_s, cases[i].at_s);
    }
    assert_int_equal(policy_launched_since(100, 200), 100);
    assert_int_equal(policy_launched_since(200 + LAUNCH_AHEAD_MAX_S, 200),
                     200 + LAUNCH_AHEAD_MAX_S);
    assert_int_equal(policy_launched_since(201 + LAUNCH_AHEAD_MAX_S, 200), 200);
}

/* --- what servers say of a claim --- */

static void test_claims_are_asked_for_again_when_that_may_help(void **state)
{
    static const struct {
        int code;
        const char *text;
        enum claim_trouble trouble;
    } rows[] = {
        {ERR_AGAIN, "nobody listens", CLAIM_TROUBLE_SERVERS},
        {ERR_TIMEOUT, "volume not found: x", CLAIM_TROUBLE_SERVERS}, /* not their word */
        {ERR_REFUSED, "No cluster leader", CLAIM_TROUBLE_SERVERS},
        {ERR_REFUSED, "rpc error: No cluster leader", CLAIM_TROUBLE_SERVERS},
        {ERR_REFUSED, "rpc error: failed to get conn: dial tcp 127.0.0.1:4647: connect: x",
         CLAIM_TROUBLE_SERVERS},
        {ERR_REFUSED, "dial tcp 10.0.0.1:4647: connect: connection refused", CLAIM_TROUBLE_SERVERS},
        {ERR_REFUSED, "alloc \"a\" failed to claim volume \"v\": volume max claims reached",
         CLAIM_TROUBLE_PASSES},
        {ERR_REFUSED, "volume is currently unschedulable", CLAIM_TROUBLE_PASSES},
        {ERR_REFUSED, "controller publish: CSI client error (retryable): FailedPrecondition",
         CLAIM_TROUBLE_PASSES},
        {ERR_REFUSED, "controller publish: plugin not found: hp", CLAIM_TROUBLE_PASSES},
        {ERR_REFUSED, "controller publish: volume not found: v", CLAIM_TROUBLE_GONE},
        {ERR_REFUSED, "no such volume", CLAIM_TROUBLE_GONE},
        {ERR_REFUSED, "Unknown allocation: a", CLAIM_TROUBLE_GONE},
        {ERR_REFUSED, "Permission denied", CLAIM_TROUBLE_PASSES},
        {ERR_REFUSED, "missing volume ID", CLAIM_TROUBLE_STAYS},
        {ERR_REFUSED, "", CLAIM_TROUBLE_STAYS},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (policy_claim_trouble(rows[i].code, rows[i].text) != rows[i].trouble)
            fail_msg("\"%s\": %d", rows[i].text,
                     (int)policy_claim_trouble(rows[i].code, rows[i].text));
    }
}

static void test_who_is_awaited_elsewhere_is_over_by_the_servers_own_words_only(void **state)
{
    static const struct {
        int code;
        const char *text;
        bool in_vain;
    } rows[] = {
        {ERR_REFUSED, "Permission denied", true},
        {ERR_REFUSED, "rpc error: Permission denied", true},
        {ERR_REFUSED, "Unknown allocation \"a\"", true},
        {ERR_REFUSED, "No cluster leader", false},
        {ERR_IO, "Permission denied", false}, /* not their word */
        {ERR_TIMEOUT, "Unknown allocation", false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (policy_awaits_in_vain(rows[i].code, rows[i].text) != rows[i].in_vain)
            fail_msg("%d \"%s\"", rows[i].code, rows[i].text);
    }
    assert_true(policy_is_over_for_others("complete"));
    assert_true(policy_is_over_for_others("unknown"));
    assert_false(policy_is_over_for_others("pending"));
    assert_false(policy_is_over_for_others("running"));
    assert_false(policy_is_over_for_others(""));
    assert_int_equal(policy_await_again_ms(0), 30000);
    assert_int_equal(policy_await_again_ms(30000), 60000);
    assert_int_equal(policy_fact_again_ms(1, 0), 250);
    assert_int_equal(policy_fact_again_ms(3, 251), 1000);
    assert_int_equal(policy_fact_again_ms(3, 250), 1250);
    assert_int_equal(policy_fact_again_ms(9, 0), 60000);
    assert_int_equal(policy_fact_again_ms(UINT32_MAX, 15000), 75000);
    assert_false(policy_fact_is_refused(12));
    assert_true(policy_fact_is_refused(13));
}

/* --- images --- */

static void test_image_is_left_removed_and_held_while_it_goes(void **state)
{
    static const struct {
        enum image_state from;
        enum image_event event;
        enum image_state to;
        enum image_act act;
    } steps[] = {
        {IMAGE_USED, IMAGE_TAKEN, IMAGE_USED, IMAGE_GO_ON},
        {IMAGE_USED, IMAGE_LEFT, IMAGE_IDLE, IMAGE_WAIT},
        {IMAGE_IDLE, IMAGE_TAKEN, IMAGE_USED, IMAGE_KEEP},
        {IMAGE_IDLE, IMAGE_DUE, IMAGE_LEAVING, IMAGE_REMOVE},
        {IMAGE_LEAVING, IMAGE_TAKEN, IMAGE_LEAVING, IMAGE_HOLD},
        {IMAGE_LEAVING, IMAGE_REMOVED, IMAGE_GONE, IMAGE_FORGET},
        {IMAGE_LEAVING, IMAGE_BUSY, IMAGE_IDLE, IMAGE_WAIT_AGAIN},
        {IMAGE_LEAVING, IMAGE_FAILED, IMAGE_IDLE, IMAGE_WAIT_AGAIN},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        struct image_step step = policy_image(steps[i].from, steps[i].event);

        assert_int_equal(step.next, steps[i].to);
        assert_int_equal(step.act, steps[i].act);
    }
}

static void test_image_is_due_a_delay_after_it_was_left_in_this_boot(void **state)
{
    (void)state;
    assert_int_equal(policy_image_due_ms(1000, true, 1500, 180), 1180);
    assert_int_equal(policy_image_due_ms(1000, false, 1500, 180), 1680);
    assert_int_equal(policy_image_due_ms(0, true, 1500, 180), 1680);
    assert_int_equal(policy_image_due_ms(1501, true, 1500, 180), 1680);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_is_awaited_elsewhere_is_over_by_the_servers_own_words_only),
        cmocka_unit_test(test_claims_are_asked_for_again_when_that_may_help),
        cmocka_unit_test(test_periodic_jobs_are_launched_when_they_are_due),
        cmocka_unit_test(test_change_asks_for_what_each_template_does),
        cmocka_unit_test(test_hooks_of_a_task_have_their_turn),
        cmocka_unit_test(test_a_change_that_does_not_fit_is_told_and_not_taken),
        cmocka_unit_test(test_change_is_of_one_hook),
        cmocka_unit_test(test_a_token_is_renewed_at_half_of_its_time),
        cmocka_unit_test(test_a_renewal_that_fails_is_tried_ever_later),
        cmocka_unit_test(test_nobody_starts_with_a_token_that_is_about_to_expire),
        cmocka_unit_test(test_change_of_what_nobody_knows_is_none),
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
        cmocka_unit_test(test_rewind_takes_who_runs_in_the_order_of_a_kill_and_all_others_at_once),
        cmocka_unit_test(test_kill_reason_names_the_failed_sibling_and_the_leader_wins),
        cmocka_unit_test(test_kill_reason_ends_sidecars_when_the_mains_are_done),
        cmocka_unit_test(test_client_status_follows_the_members_in_nomads_order),
        cmocka_unit_test(test_alloc_that_ran_out_is_complete_once_its_tasks_are_dead),
        cmocka_unit_test(test_health_is_that_of_all_tasks_that_are_to_run),
        cmocka_unit_test(test_health_ends_with_the_leader_and_with_the_set_up),
        cmocka_unit_test(test_unhealthy_alloc_has_a_reason_of_each_task_that_made_it_so),
        cmocka_unit_test(test_reconcile_places_what_is_missing_and_stops_what_is_too_much),
        cmocka_unit_test(test_reconcile_does_not_run_finished_batch_work_again),
        cmocka_unit_test(test_reconcile_runs_a_sysbatch_once_and_a_system_job_until_it_fails),
        cmocka_unit_test(test_successor_is_awaited_unless_it_is_asked_for),
        cmocka_unit_test(test_system_job_runs_until_it_is_stopped),
        cmocka_unit_test(test_job_that_waits_is_pending_and_a_stopped_one_dead),
        cmocka_unit_test(test_reschedule_of_a_batch_job_is_made_once_a_day),
        cmocka_unit_test(test_reschedule_of_a_service_waits_twice_as_long_up_to_an_hour),
        cmocka_unit_test(test_reschedule_by_fibonacci_adds_the_last_two),
        cmocka_unit_test(test_reschedule_whose_delay_exceeds_the_interval_is_not_made),
        cmocka_unit_test(test_reschedule_counts_attempts_of_the_future),
        cmocka_unit_test(test_reschedule_goes_on_to_count_what_is_within_the_interval),
        cmocka_unit_test(test_ask_is_what_runs_at_once_at_most),
        cmocka_unit_test(test_room_is_exhausted_by_the_first_thing_that_lacks),
        cmocka_unit_test(test_ports_of_a_range_are_given_out_once_each),
        cmocka_unit_test(test_ports_outside_the_range_do_not_matter),
        cmocka_unit_test(test_ports_of_other_seeds_are_others),
        cmocka_unit_test(test_names_match_patterns_as_nomad_has_them),
        cmocka_unit_test(test_image_is_left_removed_and_held_while_it_goes),
        cmocka_unit_test(test_image_is_due_a_delay_after_it_was_left_in_this_boot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
