/* For whom an alloc of servers waits: on other nodes, here, and when nobody says. */
#include "test/server/nomad/small_session.h"

static const char other[] = "33333333-3333-4333-8333-333333333333";
static const char third[] = "44444444-4444-4444-8444-444444444444";

/* --- what servers say --- */

static json_t *after(json_t *alloc, const char *previous)
{
    assert_int_equal(json_object_set_new(alloc, "PreviousAllocation", json_string(previous)), 0);
    return alloc;
}

static json_t *state_of(int index, const char *status)
{
    return json_pack("{s:i, s:{s:s, s:s}}", "Index", index, "Alloc", "ID", other, "ClientStatus",
                     status);
}

/* ONE is to take the place of OTHER, which is on another node. */
static void take_its_place(struct small_session *session)
{
    join(session);
    list(session, 10, one, 6);
    give(session, after(alloc_json(one, 6, "run", "/bin/a"), other));
}

static void assert_waits(struct small_session *session)
{
    assert_int_equal(here(session, one)->machine.state, A_WAITING);
}

static void assert_runs(struct small_session *session)
{
    assert_int_equal(here(session, one)->machine.state, A_RUNNING);
    assert_null(waits(session, "Alloc.GetAlloc"));
}

/* What the question that waits now was asked with. */
static void assert_asked(struct small_session *session, int index, bool stale)
{
    const struct waiting *call = waits(session, "Alloc.GetAlloc");

    assert_non_null(call);
    assert_string_equal(word_of(call->args, "AllocID"), other);
    assert_string_equal(word_of(call->args, "AuthToken"), "s");
    assert_int_equal(json_integer_value(json_object_get(call->args, "MinQueryIndex")), index);
    assert_int_equal(json_is_true(json_object_get(call->args, "AllowStale")), stale);
}

/* --- another node --- */

static void test_one_that_ends_elsewhere_is_awaited(void **state)
{
    struct small_session *session = *state;

    take_its_place(session);
    assert_waits(session);
    assert_asked(session, 0, false);
    pass(session, 5000);
    json_decref(answer(session, "Alloc.GetAlloc", state_of(20, "running")));
    assert_waits(session);
    assert_asked(session, 20, true);
    pass(session, 100);
    json_decref(answer(session, "Alloc.GetAlloc", state_of(21, "running")));
    assert_asked(session, 21, true);
    json_decref(answer(session, "Alloc.GetAlloc", state_of(22, "complete")));
    assert_runs(session);
}

static void test_whoever_the_servers_know_no_more_is_awaited_no_longer(void **state)
{
    struct small_session *session = *state;

    take_its_place(session);
    json_decref(answer(session, "Alloc.GetAlloc", json_pack("{s:i, s:n}", "Index", 20, "Alloc")));
    assert_runs(session);
}

static void test_whoever_is_none_of_this_nodes_business_is_awaited_no_longer(void **state)
{
    struct small_session *session = *state;

    take_its_place(session);
    fail_call(session, "Alloc.GetAlloc", ERR_REFUSED, "rpc error: Permission denied");
    assert_runs(session);
    assert_string_equal(session->small->said, ""); /* the server has answered as it should */
}

static void test_while_no_server_tells_it_waits_and_says_so(void **state)
{
    struct small_session *session = *state;
    char text[256];

    take_its_place(session);
    assert_true(nomad_awaits(session->nomad, one, text, sizeof(text)));
    assert_string_equal(text, "Waiting for alloc 33333333 on another node to end");
    fail_call(session, "Alloc.GetAlloc", ERR_REFUSED, "No cluster leader");
    assert_waits(session);
    assert_true(nomad_awaits(session->nomad, one, text, sizeof(text)));
    assert_string_equal(text, "Waiting for alloc 33333333 on another node to end, of which the "
                              "servers do not tell: No cluster leader");
    pass(session, 29999);
    assert_null(waits(session, "Alloc.GetAlloc"));
    pass(session, 1);
    assert_asked(session, 0, false);
    json_decref(answer(session, "Alloc.GetAlloc", state_of(20, "lost")));
    assert_runs(session);
    assert_false(nomad_awaits(session->nomad, one, text, sizeof(text)));
}

static void test_servers_that_are_back_are_asked_at_once(void **state)
{
    struct small_session *session = *state;

    take_its_place(session);
    fail_call(session, "Alloc.GetAlloc", ERR_IO, "the connection is lost");
    assert_waits(session);
    assert_null(waits(session, "Alloc.GetAlloc"));
    pass(session, 10000);
    json_decref(answer(session, "Node.UpdateStatus", node_reply(0)));
    pass(session, 1);
    assert_asked(session, 0, false);
}

static void test_a_question_is_not_left_with_a_server_that_beats_no_more(void **state)
{
    struct small_session *session = *state;

    take_its_place(session);
    assert_string_equal(waits(session, "Alloc.GetAlloc")->server, "a:4647");
    pass(session, 10000);
    fail_call(session, "Node.UpdateStatus", ERR_TIMEOUT, "no answer");
    pass(session, 2000);
    json_decref(answer(session, "Node.UpdateStatus", node_reply(0)));
    pass(session, 1);
    json_decref(answer(session, "Alloc.GetAlloc", state_of(30, "complete"))); /* too late */
    assert_waits(session);
    assert_string_equal(waits(session, "Alloc.GetAlloc")->server, "b:4647");
}

static void test_a_server_that_lags_ends_no_waiting(void **state)
{
    struct small_session *session = *state;

    take_its_place(session);
    json_decref(answer(session, "Alloc.GetAlloc", state_of(20, "running")));
    json_decref(answer(session, "Alloc.GetAlloc", state_of(19, "complete")));
    assert_waits(session);
    pass(session, 30000);
    assert_asked(session, 20, true);
}

static void test_a_server_that_does_not_wait_is_not_overrun(void **state)
{
    struct small_session *session = *state;

    take_its_place(session);
    json_decref(answer(session, "Alloc.GetAlloc", state_of(20, "running")));
    json_decref(answer(session, "Alloc.GetAlloc", state_of(20, "running")));
    assert_null(waits(session, "Alloc.GetAlloc"));
    pass(session, 30000);
    assert_asked(session, 20, true);
}

/* --- restarts and ends --- */

static void test_after_a_restart_it_waits_on(void **state)
{
    struct small_session *session = *state;

    take_its_place(session);
    json_decref(answer(session, "Alloc.GetAlloc", state_of(20, "running")));
    restart(session);
    pass(session, 0);
    assert_waits(session);
    assert_null(waits(session, "Alloc.GetAlloc")); /* they do not know this node yet */
    join(session);
    list(session, 10, one, 6);
    pass(session, 10);
    assert_asked(session, 0, false);
    json_decref(answer(session, "Alloc.GetAlloc", state_of(21, "complete")));
    assert_runs(session);
}

static void test_one_that_is_stopped_waits_no_more(void **state)
{
    struct small_session *session = *state;
    char text[256];

    take_its_place(session);
    list(session, 11, one, 7);
    give(session, after(alloc_json(one, 7, "stop", "/bin/a"), other));
    assert_int_equal(here(session, one)->machine.state, A_TERMINAL);
    assert_false(nomad_awaits(session->nomad, one, text, sizeof(text)));
    json_decref(answer(session, "Alloc.GetAlloc", state_of(20, "running")));
    pass(session, 60000);
    assert_null(waits(session, "Alloc.GetAlloc"));
    assert_int_equal(here(session, one)->machine.state, A_TERMINAL);
}

static void test_one_that_is_forgotten_waits_no_more(void **state)
{
    struct small_session *session = *state;

    take_its_place(session);
    fail_call(session, "Alloc.GetAlloc", ERR_REFUSED, "No cluster leader");
    list(session, 11, one, 0);
    pass(session, 60000);
    assert_null(here(session, one));
    assert_null(waits(session, "Alloc.GetAlloc"));
}

static void test_a_newer_version_waits_on(void **state)
{
    struct small_session *session = *state;

    take_its_place(session);
    list(session, 11, one, 7);
    give(session, after(alloc_json(one, 7, "run", "/bin/a"), other));
    assert_waits(session);
    json_decref(answer(session, "Alloc.GetAlloc", state_of(20, "complete")));
    assert_runs(session);
}

/* --- several --- */

/* The servers list the COUNT allocs of IDS, and say what they are. */
static void run_all(struct small_session *session, int at, const char *const *ids, json_t **allocs,
                    size_t count)
{
    json_t *listed = json_object(), *pulled = json_array();

    for (size_t i = 0; i < count; i++) {
        json_t *index = json_object_get(allocs[i], "AllocModifyIndex");
        assert_int_equal(json_object_set(listed, ids[i], index), 0);
        assert_int_equal(json_array_append_new(pulled, allocs[i]), 0);
    }
    pass(session, 10);
    json_decref(answer(session, "Node.GetClientAllocs",
                       json_pack("{s:i, s:o}", "Index", at, "Allocs", listed)));
    pass(session, 10);
    json_decref(
        answer(session, "Alloc.GetAllocs", json_pack("{s:i, s:o}", "Index", at, "Allocs", pulled)));
    pass(session, 10);
}

/* ONE takes the place of OTHER, and TWO and THIRD make room for it. */
static json_t *preempting(void)
{
    json_t *alloc = after(alloc_json(one, 6, "run", "/bin/a"), other);

    assert_int_equal(
        json_object_set_new(alloc, "PreemptedAllocations", json_pack("[s, s]", two, third)), 0);
    return alloc;
}

static void test_all_who_made_room_are_awaited_and_whose_place_it_takes(void **state)
{
    struct small_session *session = *state;
    const char *ids[] = {two, third, one};

    join(session);
    run_all(
        session, 10, ids,
        (json_t *[]){alloc_json(two, 6, "run", "/bin/a"), alloc_json(third, 6, "run", "/bin/a")},
        2);
    run_all(session, 11, ids,
            (json_t *[]){alloc_json(two, 6, "run", "/bin/a"), alloc_json(third, 6, "run", "/bin/a"),
                         preempting()},
            3);
    assert_waits(session);
    run_all(session, 12, ids,
            (json_t *[]){alloc_json(two, 8, "evict", "/bin/a"),
                         alloc_json(third, 6, "run", "/bin/a"), preempting()},
            3);
    assert_int_equal(here(session, two)->machine.state, A_TERMINAL);
    json_decref(answer(session, "Alloc.GetAlloc", state_of(20, "complete")));
    assert_waits(session);
    restart(session);
    join(session);
    run_all(session, 13, ids,
            (json_t *[]){alloc_json(two, 8, "evict", "/bin/a"),
                         alloc_json(third, 9, "evict", "/bin/a"), preempting()},
            3);
    assert_int_equal(here(session, third)->machine.state, A_TERMINAL);
    assert_waits(session); /* what it heard before is not kept */
    json_decref(answer(session, "Alloc.GetAlloc", state_of(20, "complete")));
    assert_runs(session);
}

static void test_whoever_is_over_for_the_servers_is_awaited_no_longer(void **state)
{
    struct small_session *session = *state;
    static const char *const words[] = {"complete", "failed", "lost", "unknown"};
    char texts[COUNT_OF(words)][UUID_TEXT_SIZE];
    const char *ids[COUNT_OF(words)];
    json_t *allocs[COUNT_OF(words)];

    for (size_t i = 0; i < COUNT_OF(words); i++) {
        uuid_format(texts[i], hash_u64(1, i), hash_u64(2, i));
        ids[i] = texts[i];
        allocs[i] = after(alloc_json(ids[i], 6, "run", "/bin/a"), other);
    }
    join(session);
    run_all(session, 10, ids, allocs, COUNT_OF(words));
    for (size_t i = COUNT_OF(words); i > 0; i--) { /* the last was looked at first */
        assert_int_equal(here(session, ids[i - 1])->machine.state, A_WAITING);
        json_decref(answer(session, "Alloc.GetAlloc", state_of(20, words[i - 1])));
        assert_int_equal(here(session, ids[i - 1])->machine.state, A_RUNNING);
    }
}

enum { MANY = 80, AT_ONCE = 64 };

/* None of them waits for ever to be asked for, however many are before it. */
static void test_many_are_asked_for_in_turns(void **state)
{
    struct small_session *session = *state;
    char texts[MANY][UUID_TEXT_SIZE], previous[MANY][UUID_TEXT_SIZE];
    const char *ids[MANY];
    json_t *allocs[MANY], *first = json_object();

    for (size_t i = 0; i < MANY; i++) {
        uuid_format(texts[i], hash_u64(1, i), hash_u64(2, i));
        uuid_format(previous[i], hash_u64(3, i), hash_u64(4, i));
        ids[i] = texts[i];
        allocs[i] = after(alloc_json(ids[i], 6, "run", "/bin/a"), previous[i]);
    }
    join(session);
    run_all(session, 10, ids, allocs, MANY);
    for (size_t i = 0; i < session->calls_count; i++) {
        const json_t *args = session->calls[i].args;
        if (!text_equal(session->calls[i].method, "Alloc.GetAlloc"))
            continue;
        assert_int_equal(json_object_set_new(first, word_of(args, "AllocID"), json_true()), 0);
        assert_int_equal(json_integer_value(json_object_get(args, "MaxQueryTime")), 5000000000);
    }
    assert_int_equal(json_object_size(first), AT_ONCE);
    pass(session, 4000);
    for (size_t i = 0; i < AT_ONCE; i++)
        json_decref(answer(session, "Alloc.GetAlloc", state_of(20, "running")));
    for (size_t i = 0; i < MANY - AT_ONCE; i++)
        json_decref(answer(session, "Alloc.GetAlloc", state_of(20, "complete")));
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(here(session, ids[i])->machine.state,
                         json_object_get(first, previous[i]) != NULL ? A_WAITING : A_RUNNING);
    json_decref(first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SESSION_TEST(test_one_that_ends_elsewhere_is_awaited),
        SESSION_TEST(test_whoever_is_over_for_the_servers_is_awaited_no_longer),
        SESSION_TEST(test_whoever_the_servers_know_no_more_is_awaited_no_longer),
        SESSION_TEST(test_whoever_is_none_of_this_nodes_business_is_awaited_no_longer),
        SESSION_TEST(test_while_no_server_tells_it_waits_and_says_so),
        SESSION_TEST(test_servers_that_are_back_are_asked_at_once),
        SESSION_TEST(test_a_question_is_not_left_with_a_server_that_beats_no_more),
        SESSION_TEST(test_a_server_that_lags_ends_no_waiting),
        SESSION_TEST(test_a_server_that_does_not_wait_is_not_overrun),
        SESSION_TEST(test_after_a_restart_it_waits_on),
        SESSION_TEST(test_one_that_is_stopped_waits_no_more),
        SESSION_TEST(test_one_that_is_forgotten_waits_no_more),
        SESSION_TEST(test_a_newer_version_waits_on),
        SESSION_TEST(test_all_who_made_room_are_awaited_and_whose_place_it_takes),
        SESSION_TEST(test_many_are_asked_for_in_turns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
