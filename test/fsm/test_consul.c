/* What is told to Consul and when: every case of the one question, and restarts by its checks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fsm/policy.h"

enum { JUST_BEGUN_MS = 59999, PROVEN_MS = 60000, ALL = 64 };

static struct consul_entry entry_of(unsigned bits)
{
    return (struct consul_entry){
        .wanted = (bits & 1) != 0,
        .there = (bits & 2) != 0,
        .same = (bits & 4) != 0,
        .ours = (bits & 8) != 0,
        .known = (bits & 16) != 0,
        .of_another = (bits & 32) != 0,
    };
}

static enum consul_call at(unsigned bits, uint64_t up_ms)
{
    struct consul_entry entry = entry_of(bits);

    return policy_consul_call(&entry, up_ms);
}

static void test_what_is_wanted_is_registered_unless_it_is_there_as_it_should_be(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits < ALL; bits++) {
        struct consul_entry entry = entry_of(bits);
        bool well = entry.there && entry.same && entry.ours;

        if (!entry.wanted)
            continue;
        assert_int_equal(at(bits, 0), well ? CONSUL_LEAVE : CONSUL_REGISTER);
        assert_int_equal(at(bits, PROVEN_MS), at(bits, 0));
    }
}

static void test_what_is_not_ours_is_never_taken_away(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits < ALL; bits++) {
        struct consul_entry entry = entry_of(bits);

        if (entry.wanted || (entry.there && entry.ours && !entry.of_another))
            continue;
        assert_int_equal(at(bits, JUST_BEGUN_MS), CONSUL_LEAVE);
        assert_int_equal(at(bits, PROVEN_MS), CONSUL_LEAVE);
    }
}

static void
test_what_is_ours_and_ended_goes_at_once_and_what_nobody_knows_after_probation(void **state)
{
    struct consul_entry known = {.there = true, .ours = true, .known = true};
    struct consul_entry strange = {.there = true, .ours = true};

    (void)state;
    assert_int_equal(policy_consul_call(&known, 0), CONSUL_DEREGISTER);
    assert_int_equal(policy_consul_call(&strange, JUST_BEGUN_MS), CONSUL_LEAVE);
    assert_int_equal(policy_consul_call(&strange, PROVEN_MS), CONSUL_DEREGISTER);
}

static void test_failures_wait_longer_and_never_longer_than_ten_seconds(void **state)
{
    uint64_t last_ms = 0;

    (void)state;
    assert_int_equal(policy_consul_after_ms(0, false), 30000);
    assert_int_equal(policy_consul_after_ms(0, true), 1000);
    for (unsigned failures = 1; failures < 100; failures++) {
        uint64_t after_ms = policy_consul_after_ms(failures, failures % 2 == 0);

        assert_true(after_ms >= last_ms && after_ms >= 1000 && after_ms <= 10000);
        last_ms = after_ms;
    }
    assert_int_equal(policy_consul_after_ms(UINT32_MAX, false), 10000);
}

static void test_warnings_pass_for_who_lets_them(void **state)
{
    (void)state;
    assert_true(policy_consul_passes(CONSUL_PASSING, false));
    assert_true(policy_consul_passes(CONSUL_WARNING, true));
    assert_false(policy_consul_passes(CONSUL_WARNING, false));
    assert_false(policy_consul_passes(CONSUL_CRITICAL, true));
}

static void test_a_restart_is_due_when_so_many_checks_could_have_failed(void **state)
{
    struct check_count count = {.grace_until_ms = 10000};

    (void)state;
    assert_false(policy_consul_restarts(&count, 3, 5000, false, 9999)); /* grace */
    assert_false(policy_consul_restarts(&count, 3, 5000, false, 10000));
    assert_false(policy_consul_restarts(&count, 3, 5000, false, 19999));
    assert_true(policy_consul_restarts(&count, 3, 5000, false, 20000));
}

static void test_one_that_passes_begins_anew_and_one_without_a_limit_restarts_nobody(void **state)
{
    struct check_count count = {0};

    (void)state;
    assert_false(policy_consul_restarts(&count, 2, 5000, false, 1));
    assert_false(policy_consul_restarts(&count, 2, 5000, true, 5000));
    assert_false(policy_consul_restarts(&count, 2, 5000, false, 5001));
    assert_false(policy_consul_restarts(&count, 2, 5000, false, 10000));
    assert_true(policy_consul_restarts(&count, 2, 5000, false, 10001));
    assert_false(policy_consul_restarts(&count, 0, 5000, false, 100000));
    count = (struct check_count){0};
    assert_true(policy_consul_restarts(&count, 1, 5000, false, 1)); /* the first one is enough */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_wanted_is_registered_unless_it_is_there_as_it_should_be),
        cmocka_unit_test(test_what_is_not_ours_is_never_taken_away),
        cmocka_unit_test(
            test_what_is_ours_and_ended_goes_at_once_and_what_nobody_knows_after_probation),
        cmocka_unit_test(test_failures_wait_longer_and_never_longer_than_ten_seconds),
        cmocka_unit_test(test_warnings_pass_for_who_lets_them),
        cmocka_unit_test(test_a_restart_is_due_when_so_many_checks_could_have_failed),
        cmocka_unit_test(test_one_that_passes_begins_anew_and_one_without_a_limit_restarts_nobody),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
