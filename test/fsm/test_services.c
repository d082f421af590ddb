/* Services: what is offered while, checks that a deployment waits for, checks that restart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fsm/policy.h"

#include <stdlib.h>
#include <string.h>

/* Room for an alloc with one task. */
union alone {
    struct alloc alloc;
    uint8_t bytes[sizeof(struct alloc) + sizeof(struct alloc_member)];
};

/* The alloc of a task that runs, in STATE. */
static struct alloc *alloc_in(union alone *alone, enum alloc_state state)
{
    struct alloc *alloc = &alone->alloc;

    memset(alone, 0, sizeof(*alone));
    alloc->machine.kind = MACHINE_ALLOC;
    alloc->machine.state = (uint8_t)state;
    alloc->assign.members_count = 1;
    alloc->assign.members[0] = (struct alloc_member){
        .kind = MEMBER_TASK, .run_state = TASK_RUN_RUNNING, .started = 1, .up = MEMBER_UP};
    return alloc;
}

/* --- offers --- */

static void test_group_offers_from_the_start_of_its_tasks_to_the_order_to_end(void **state)
{
    union alone alone;

    (void)state;
    for (unsigned s = 0; s < A_COUNT; s++) {
        bool offers = policy_group_offers(alloc_in(&alone, (enum alloc_state)s));
        assert_int_equal(offers, s == A_RUNNING || s == A_REPLAYING);
    }
    alloc_in(&alone, A_RUNNING)->assign.condemned = 1;
    assert_false(policy_group_offers(&alone.alloc));
}

static void test_task_offers_while_its_payload_runs_and_is_not_being_ended(void **state)
{
    struct task task = {.machine = {.kind = MACHINE_TASK}};
    union alone alone;
    const struct alloc *alloc = alloc_in(&alone, A_RUNNING);

    (void)state;
    for (unsigned s = 0; s < T_COUNT; s++) {
        task.machine.state = (uint8_t)s;
        assert_int_equal(policy_task_offers(alloc, &task), s == T_RUNNING || s == T_RECOVERING);
    }
    task.machine.state = T_RECOVERING; /* it was on its way to its end when the daemon died */
    task.resume = RESUME_PREKILL;
    assert_false(policy_task_offers(alloc, &task));
    task.machine.state = T_RUNNING;
    alloc_in(&alone, A_DELAYING);
    assert_false(policy_task_offers(alloc, &task)); /* the group's delay is for those who ask */
}

/* --- checks --- */

static void test_group_is_unsettled_until_each_check_that_counts_has_passed(void **state)
{
    union alone alone;
    struct alloc *alloc = alloc_in(&alone, A_RUNNING);

    (void)state;
    alloc->assign.checks = 5;
    assert_int_equal(policy_group_health(alloc), GROUP_UNSETTLED);
    alloc->checks_ran = 7;
    alloc->checks_pass = 3; /* one that counts, and one for which nobody waits */
    assert_int_equal(policy_group_health(alloc), GROUP_UNSETTLED);
    alloc->checks_pass = 5;
    assert_int_equal(policy_group_health(alloc), GROUP_STEADY);
    alloc->assign.members[0].up = MEMBER_ASKED;
    assert_int_equal(policy_group_health(alloc), GROUP_DOUBTED);
    alloc->checks_pass = 4;
    alloc->assign.members[0].failed = 1; /* which no check can mend */
    assert_int_equal(policy_group_health(alloc), GROUP_BROKEN);
}

static void test_task_that_runs_says_which_of_both_was_late(void **state)
{
    union alone alone;
    struct alloc *alloc = alloc_in(&alone, A_RUNNING);
    char text[TASK_EVENT_TEXT_SIZE];

    (void)state;
    assert_false(policy_unhealthy_reason(alloc, &alloc->assign.members[0], text, sizeof(text)));
    alloc->assign.checks = 1;
    assert_true(policy_unhealthy_reason(alloc, &alloc->assign.members[0], text, sizeof(text)));
    assert_string_equal(text, "Services not healthy by deadline");
}

/* --- restarts --- */

static void test_check_restarts_after_so_many_failures_in_a_row(void **state)
{
    struct check_count count = {0};

    (void)state;
    assert_false(policy_check_restarts(&count, 3, false, 1));
    assert_false(policy_check_restarts(&count, 3, false, 2));
    assert_false(policy_check_restarts(&count, 3, true, 3));
    assert_false(policy_check_restarts(&count, 3, false, 4));
    assert_false(policy_check_restarts(&count, 3, false, 5));
    assert_true(policy_check_restarts(&count, 3, false, 6));
}

static void test_check_restarts_nobody_in_its_grace_and_without_a_limit(void **state)
{
    struct check_count count = {.grace_until_ms = 100};

    (void)state;
    for (uint64_t at_ms = 0; at_ms < 100; at_ms++)
        assert_false(policy_check_restarts(&count, 1, false, at_ms));
    assert_true(policy_check_restarts(&count, 1, false, 100));
    count = (struct check_count){0};
    for (uint64_t at_ms = 0; at_ms < 100; at_ms++)
        assert_false(policy_check_restarts(&count, 0, false, at_ms));
}

static void test_check_restarts_its_task_or_all_and_no_volume(void **state)
{
    const struct alloc_member task = {.kind = MEMBER_TASK, .name = "web"};
    const struct alloc_member volume = {.kind = MEMBER_VOLUME, .name = "web"};

    (void)state;
    assert_true(policy_check_is_of(&task, "web"));
    assert_true(policy_check_is_of(&task, ""));
    assert_false(policy_check_is_of(&task, "other"));
    assert_false(policy_check_is_of(&volume, "web"));
    assert_false(policy_check_is_of(&volume, ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_group_offers_from_the_start_of_its_tasks_to_the_order_to_end),
        cmocka_unit_test(test_task_offers_while_its_payload_runs_and_is_not_being_ended),
        cmocka_unit_test(test_group_is_unsettled_until_each_check_that_counts_has_passed),
        cmocka_unit_test(test_task_that_runs_says_which_of_both_was_late),
        cmocka_unit_test(test_check_restarts_after_so_many_failures_in_a_row),
        cmocka_unit_test(test_check_restarts_nobody_in_its_grace_and_without_a_limit),
        cmocka_unit_test(test_check_restarts_its_task_or_all_and_no_volume),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
