/* What becomes of a call of CSI that has ended, by call and by status. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"
#include "fsm/csi.h"

enum {
    NOT_FOUND = 5,
    ALREADY_EXISTS = 6,
    RESOURCE_EXHAUSTED = 8,
    FAILED_PRECONDITION = 9,
    ABORTED = 10
};

static enum csi_verdict verdict(enum csi_call call, unsigned status)
{
    return policy_csi_outcome(call, status, true, true).verdict;
}

/* A row for each status: asks (NodeGetInfo), makes (CreateSnapshot), undoes (DeleteVolume). */
static void test_verdicts_follow_the_specification(void **state)
{
    static const char rows[CSI_STATUS_COUNT][4] = {
        "ddd", "rrr", "???", "xxx", "rrr", "xxd", "xxx", "xxx", "rrr",
        "xrr", "rrr", "xxx", "xxx", "???", "rrr", "???", "xxx",
    };
    static const enum csi_call calls[] = {CSI_NODE_INFO, CSI_CREATE_SNAPSHOT, CSI_DELETE_VOLUME};
    static const char letters[] = {
        [CSI_DONE] = 'd', [CSI_REPEAT] = 'r', [CSI_DOUBT] = '?', [CSI_REFUSED] = 'x'};

    (void)state;
    for (unsigned status = 0; status < CSI_STATUS_COUNT; status++) {
        for (size_t i = 0; i < COUNT_OF(calls); i++) {
            char is = letters[verdict(calls[i], status)];
            if (is != rows[status][i])
                fail_msg("status %u, call %zu: %c and not %c", status, i, is, rows[status][i]);
        }
    }
}

static void test_undoing_what_is_not_there_is_done(void **state)
{
    static const enum csi_call undoes[] = {CSI_DELETE_VOLUME, CSI_CONTROLLER_UNPUBLISH,
                                           CSI_DELETE_SNAPSHOT, CSI_NODE_UNSTAGE,
                                           CSI_NODE_UNPUBLISH};
    static const enum csi_call makes[] = {CSI_CONTROLLER_PUBLISH, CSI_NODE_STAGE, CSI_NODE_PUBLISH,
                                          CSI_NODE_EXPAND, CSI_CREATE_SNAPSHOT};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(undoes); i++)
        assert_int_equal(verdict(undoes[i], NOT_FOUND), CSI_DONE);
    for (size_t i = 0; i < COUNT_OF(makes); i++)
        assert_int_equal(verdict(makes[i], NOT_FOUND), CSI_REFUSED);
}

static void test_calls_with_rules_of_their_own(void **state)
{
    (void)state;
    assert_int_equal(verdict(CSI_NODE_PUBLISH, FAILED_PRECONDITION), CSI_STAGE_FIRST);
    assert_int_equal(verdict(CSI_NODE_PUBLISH, ALREADY_EXISTS), CSI_UNDO_FIRST);
    assert_int_equal(verdict(CSI_NODE_STAGE, FAILED_PRECONDITION), CSI_REFUSED);
    assert_int_equal(verdict(CSI_CREATE_VOLUME, RESOURCE_EXHAUSTED), CSI_REFUSED);
    assert_int_equal(verdict(CSI_NODE_EXPAND, FAILED_PRECONDITION), CSI_REFUSED);
    assert_int_equal(verdict(CSI_CONTROLLER_PUBLISH, FAILED_PRECONDITION), CSI_REPEAT);
    assert_int_equal(verdict(CSI_PROBE, FAILED_PRECONDITION), CSI_REPEAT);
    assert_int_equal(verdict(CSI_NODE_STAGE, ALREADY_EXISTS), CSI_REFUSED);
}

static void test_outcome_that_nobody_knows_is_never_a_failure(void **state)
{
    (void)state;
    for (unsigned status = 1; status < CSI_STATUS_COUNT; status++) {
        /* What was not heard of does not run, what was and has no answer may. */
        assert_false(policy_csi_outcome(CSI_NODE_STAGE, status, false, false).may_run);
        assert_true(policy_csi_outcome(CSI_NODE_STAGE, status, true, false).may_run);
        assert_false(policy_csi_outcome(CSI_PROBE, status, true, false).may_run); /* asks only */
    }
    for (unsigned status = 0; status < CSI_STATUS_COUNT; status++) {
        bool may = status == 1 || status == 4 || status == ABORTED || status == 14;
        assert_int_equal(policy_csi_outcome(CSI_NODE_STAGE, status, true, true).may_run, may);
    }
    assert_int_equal(policy_csi_outcome(CSI_NODE_STAGE, 4, true, false).verdict, CSI_REPEAT);
    assert_int_equal(policy_csi_outcome(CSI_NODE_STAGE, 14, false, false).verdict, CSI_REPEAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verdicts_follow_the_specification),
        cmocka_unit_test(test_undoing_what_is_not_there_is_done),
        cmocka_unit_test(test_calls_with_rules_of_their_own),
        cmocka_unit_test(test_outcome_that_nobody_knows_is_never_a_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
