/* Servers: when they are tried again, and what their answer means for an alloc. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fsm/policy.h"

static const uint64_t draws[] = {0, 1, 999, 12345, UINT64_MAX / 2, UINT64_MAX};

static void test_registering_waits_ever_longer_and_never_long(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(draws); i++) {
        assert_in_range(policy_register_again_ms(1, draws[i]), 1000, 2000);
        assert_in_range(policy_register_again_ms(2, draws[i]), 2000, 4000);
        assert_in_range(policy_register_again_ms(4, draws[i]), 8000, 16000);
        assert_in_range(policy_register_again_ms(UINT32_MAX, draws[i]), 15000, 30000);
    }
}

static void test_others_are_looked_for_when_each_has_had_its_turn(void **state)
{
    (void)state;
    assert_true(policy_seeks_servers(1, 0));
    assert_true(policy_seeks_servers(1, 1));
    assert_false(policy_seeks_servers(2, 3));
    assert_true(policy_seeks_servers(3, 3));
    assert_true(policy_seeks_servers(4, 3)); /* and again */
}

static void test_a_heartbeat_is_tried_again_as_soon_as_it_is_missed(void **state)
{
    const struct heartbeat never = {.heard_ms = 0}, last = {.heard_ms = 100000, .ttl_ms = 12000},
                           leaderless = {.heard_ms = 100000, .ttl_ms = 12000, .leaderless = true};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(draws); i++) {
        assert_in_range(policy_beat_again_ms(&never, 5, draws[i]), 15000, 30000);
        assert_in_range(policy_beat_again_ms(&leaderless, 112000, draws[i]), 15000, 30000);
        assert_in_range(policy_beat_again_ms(&last, 112000, draws[i]), 1000, 2000);
        assert_in_range(policy_beat_again_ms(&last, 141999, draws[i]), 1000, 2000);
        /* Before its time there is that, and long after it nobody is in a hurry. */
        assert_in_range(policy_beat_again_ms(&last, 104000, draws[i]), 1000, 8000);
        assert_in_range(policy_beat_again_ms(&last, 100000000, draws[i]), 1000, 30000);
    }
}

static void test_one_server_has_a_part_of_the_time_only(void **state)
{
    const struct heartbeat never = {.heard_ms = 0}, quick = {.heard_ms = 1, .ttl_ms = 1000},
                           usual = {.heard_ms = 1, .ttl_ms = 15000},
                           slow = {.heard_ms = 1, .ttl_ms = 600000};

    (void)state;
    assert_int_equal(policy_beat_limit_ms(&never), 10000);
    assert_int_equal(policy_beat_limit_ms(&quick), 2000);
    assert_int_equal(policy_beat_limit_ms(&usual), 5000);
    assert_int_equal(policy_beat_limit_ms(&slow), 10000);
    assert_int_equal(policy_beat_every_ms(INT64_MIN), 1000);
    assert_int_equal(policy_beat_every_ms(0), 1000);
    assert_int_equal(policy_beat_every_ms(INT64_C(15000000000)), 15000);
}

static void test_what_is_new_is_told_before_what_changes(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(draws); i++) {
        assert_true(policy_tell_node_ms(true, draws[i]) < 1000);
        assert_in_range(policy_tell_node_ms(false, draws[i]), 5000, 10000);
        assert_in_range(policy_ask_again_ms(draws[i]), 5000, 10000);
        assert_in_range(policy_push_again_ms(draws[i]), 5000, 10000);
    }
    assert_true(policy_push_after_ms(STATUS_URGENT) < policy_push_after_ms(STATUS_LAZY));
}

static void test_what_is_wanted_of_an_alloc_follows_from_what_it_is(void **state)
{
    enum { NOWHERE, RUNS, STOPS, ENDED };
    static const struct {
        int is;
        struct wanted wanted; /* it goes by version 5 */
        enum wanted_order order;
    } rows[] = {
        {NOWHERE, {.run = true, .index = 5}, WANTED_ASSIGN},
        {NOWHERE, {.run = true, .over = true, .index = 5}, WANTED_IGNORED},
        {NOWHERE, {.index = 5}, WANTED_IGNORED},
        {RUNS, {.run = true, .index = 5}, WANTED_GO_ON},
        {RUNS, {.run = true, .index = 4}, WANTED_GO_ON},
        {RUNS, {.run = true, .index = 6}, WANTED_UPDATE},
        {RUNS, {.run = true, .unknown = true, .index = 6}, WANTED_RECONNECT},
        {RUNS, {.run = true, .unknown = true, .index = 5}, WANTED_GO_ON}, /* it has said so */
        {RUNS, {.unknown = true, .index = 6}, WANTED_STOP},
        {RUNS, {.index = 6}, WANTED_STOP},
        {STOPS, {.index = 6}, WANTED_IGNORED},
        {ENDED, {.run = true, .index = 6}, WANTED_GO_ON},
        {ENDED, {.index = 6}, WANTED_STOP},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct alloc alloc = {.stop_wanted = rows[i].is == STOPS,
                              .ended_unix_ns = rows[i].is == ENDED};

        assert_int_equal(policy_wanted(rows[i].is == NOWHERE ? NULL : &alloc, 5, &rows[i].wanted),
                         rows[i].order);
    }
}

static void test_what_a_refusal_says_of_the_node(void **state)
{
    static const struct {
        int code;
        const char *text;
        enum node_trouble trouble;
    } rows[] = {
        {ERR_REFUSED, "rpc error: node not found", NODE_TROUBLE_UNKNOWN},
        {ERR_REFUSED, "node secret ID does not match", NODE_TROUBLE_UNKNOWN},
        {ERR_REFUSED, "Permission denied", NODE_TROUBLE_DENIED},
        {ERR_REFUSED, "No cluster leader", NODE_TROUBLE_NONE},
        {ERR_IO, "node not found", NODE_TROUBLE_NONE}, /* nobody has said so */
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_int_equal(policy_node_trouble(rows[i].code, rows[i].text), rows[i].trouble);
    assert_true(policy_is_withdrawn(ERR_REFUSED, "service registration not found"));
    assert_false(policy_is_withdrawn(ERR_REFUSED, "node not found"));
    assert_false(policy_is_withdrawn(ERR_IO, "service registration not found"));
}

static void test_what_servers_say_is_an_answer_or_none(void **state)
{
    static const struct {
        int code;
        const char *text;
        bool denied, not_asked, later;
    } rows[] = {
        {ERR_REFUSED, "rpc error: Permission denied", true, false, false},
        {ERR_REFUSED, "rpc error: ACL token not found", true, false, false},
        {ERR_REFUSED, "ACL token expired", true, false, false},
        {ERR_REFUSED, "a task \"Permission denied\" is unknown", false, false, false},
        {ERR_REFUSED, "No cluster leader", false, false, true},
        {ERR_REFUSED, "rpc: can't find method Node.DeriveSIToken", false, true, false},
        {ERR_IO, "Permission denied", false, false, true}, /* nobody has said so */
        {ERR_TIMEOUT, "rpc: can't find method Node.DeriveSIToken", false, false, true},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_int_equal(policy_is_denied(rows[i].code, rows[i].text), rows[i].denied);
        assert_int_equal(policy_is_not_asked(rows[i].code, rows[i].text), rows[i].not_asked);
        assert_int_equal(policy_may_answer_later(rows[i].code, rows[i].text), rows[i].later);
    }
}

/* A payload that may run has it; one that is being looked for has its secrets mended first, and one
 * that is gone would keep them busy. */
static void test_a_task_has_a_socket_while_its_payload_may_run(void **state)
{
    static const uint8_t have[] = {T_STARTING, T_RUNNING, T_PREKILL, T_DELAYING, T_STOPPING};

    (void)state;
    for (uint8_t at = 0; at < T_COUNT; at++)
        assert_int_equal(policy_has_task_api(at), memchr(have, at, sizeof(have)) != NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_registering_waits_ever_longer_and_never_long),
        cmocka_unit_test(test_others_are_looked_for_when_each_has_had_its_turn),
        cmocka_unit_test(test_a_heartbeat_is_tried_again_as_soon_as_it_is_missed),
        cmocka_unit_test(test_one_server_has_a_part_of_the_time_only),
        cmocka_unit_test(test_what_is_new_is_told_before_what_changes),
        cmocka_unit_test(test_what_is_wanted_of_an_alloc_follows_from_what_it_is),
        cmocka_unit_test(test_what_a_refusal_says_of_the_node),
        cmocka_unit_test(test_what_servers_say_is_an_answer_or_none),
        cmocka_unit_test(test_a_task_has_a_socket_while_its_payload_may_run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
