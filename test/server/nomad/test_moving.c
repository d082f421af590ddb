/* Where the disk is that an alloc takes over from another node: as servers say it, or not. */
#include "test/server/nomad/small_session.h"

static const char other[] = "33333333-3333-4333-8333-333333333333";
static const char node[] = "55555555-5555-4555-8555-555555555555";

/* What was answered. */
static struct {
    unsigned times;
    bool known, tls;
    char address[64], token[64], why[ERR_TEXT_SIZE];
} told;

static void on_disk(void *ctx, const struct spec_disk_place *place, const struct err *err)
{
    (void)ctx;
    told.times++;
    told.known = place != NULL;
    if (place == NULL) {
        assert_true(text_copy(told.why, sizeof(told.why), err->text));
        return;
    }
    assert_string_equal(place->node, node);
    told.tls = place->tls;
    assert_true(text_copy(told.address, sizeof(told.address), place->address));
    assert_true(text_copy(told.token, sizeof(told.token), place->token));
}

static void ask(struct small_session *session)
{
    memset(&told, 0, sizeof(told));
    nomad_find_disk(session->nomad, one, other, on_disk, NULL);
    pass(session, 1);
}

/* The servers have said what is to run: ONE, with a token. */
static void list_with_token(struct small_session *session)
{
    pass(session, 10);
    json_decref(answer(session, "Node.GetClientAllocs",
                       json_pack("{s:i, s:{s:i}, s:{s:s}}", "Index", 10, "Allocs", one, 6,
                                 "MigrateTokens", one, "a token")));
    give(session, alloc_json(one, 6, "run", "/bin/a"));
}

static json_t *alloc_on(const char *where)
{
    return json_pack("{s:i, s:{s:s, s:s}}", "Index", 20, "Alloc", "ID", other, "NodeID", where);
}

static json_t *node_at(const char *address)
{
    return json_pack("{s:i, s:{s:s, s:s, s:b}}", "Index", 20, "Node", "ID", node, "HTTPAddr",
                     address, "TLSEnabled", 1);
}

static void test_it_is_found_with_its_token(void **state)
{
    struct small_session *session = *state;

    join(session);
    list_with_token(session);
    ask(session);
    assert_string_equal(word_of(waits(session, "Alloc.GetAlloc")->args, "AllocID"), other);
    json_decref(answer(session, "Alloc.GetAlloc", alloc_on(node)));
    pass(session, 1);
    assert_string_equal(word_of(waits(session, "Node.GetNode")->args, "NodeID"), node);
    assert_string_equal(word_of(waits(session, "Node.GetNode")->args, "AuthToken"), "s");
    json_decref(answer(session, "Node.GetNode", node_at("10.0.0.2:4646")));
    assert_int_equal(told.times, 1);
    assert_true(told.known && told.tls);
    assert_string_equal(told.address, "10.0.0.2:4646");
    assert_string_equal(told.token, "a token");
}

static void assert_unknown(struct small_session *session, json_t *alloc, json_t *of_node,
                           const char *why)
{
    ask(session);
    json_decref(answer(session, "Alloc.GetAlloc", alloc));
    pass(session, 1);
    if (of_node != NULL)
        json_decref(answer(session, "Node.GetNode", of_node));
    assert_int_equal(told.times, 1);
    assert_false(told.known);
    assert_string_equal(told.why, why);
}

static void test_what_is_gone_is_told_at_once(void **state)
{
    struct small_session *session = *state;

    join(session);
    list_with_token(session);
    assert_unknown(session, json_pack("{s:i, s:n}", "Index", 20, "Alloc"), NULL,
                   "the servers know it no more");
    assert_unknown(session, alloc_on("n"), NULL, "the servers know it no more"); /* no id */
    assert_unknown(session, alloc_on(node), json_pack("{s:i, s:n}", "Index", 20, "Node"),
                   "the servers know its node no more");
    assert_unknown(session, alloc_on(node), node_at(""), "its node answers nobody");
    ask(session);
    fail_call(session, "Alloc.GetAlloc", ERR_REFUSED, "rpc error: Permission denied");
    assert_false(told.known);
    assert_string_equal(told.why, "rpc error: Permission denied");
}

/* Not for ever: the alloc is to begin. */
static void test_servers_that_do_not_say_are_asked_again_for_a_while(void **state)
{
    struct small_session *session = *state;

    join(session);
    list_with_token(session);
    ask(session);
    fail_call(session, "Alloc.GetAlloc", ERR_IO, "the connection is lost");
    pass(session, 30000);
    json_decref(answer(session, "Alloc.GetAlloc", alloc_on(node)));
    pass(session, 1);
    for (int i = 0; i < 9; i++) {
        assert_int_equal(told.times, 0);
        fail_call(session, "Node.GetNode", ERR_REFUSED, "No cluster leader");
        pass(session, 30000);
    }
    assert_int_equal(told.times, 1);
    assert_false(told.known);
    assert_string_equal(told.why, "No cluster leader");
}

/* Before they know this node they tell it nothing, and have given no token. */
static void test_nobody_is_asked_before_they_have_said_what_is_to_run(void **state)
{
    struct small_session *session = *state;

    join(session);
    ask(session);
    assert_null(waits(session, "Alloc.GetAlloc"));
    list_with_token(session);
    pass(session, 1);
    assert_non_null(waits(session, "Alloc.GetAlloc"));
}

static void test_a_session_that_ends_tells_nobody(void **state)
{
    struct small_session *session = *state;

    join(session);
    list_with_token(session);
    ask(session);
    restart(session);
    assert_int_equal(told.times, 0);
}

/* --- whose it is --- */

static json_t *after(const char *disk)
{
    json_t *alloc = alloc_json(one, 6, "run", "/bin/a");
    json_t *group = json_array_get(json_object_get(json_object_get(alloc, "Job"), "TaskGroups"), 0);

    assert_int_equal(json_object_set_new(alloc, "PreviousAllocation", json_string(other)), 0);
    json_t *given = json_object_get(json_object_get(alloc, "AllocatedResources"), "Shared");
    assert_int_equal(json_object_set_new(given, "DiskMB", json_integer(300)), 0);
    assert_int_equal(json_object_set_new(group, "EphemeralDisk",
                                         json_pack("{s:b, s:i}", disk, 1, "SizeMB", 300)),
                     0);
    return alloc;
}

static void assert_takes(struct small_session *session, const char *disk, const char *from)
{
    join(session);
    list(session, 10, one, 6);
    give(session, after(disk));
    assert_int_equal(here(session, one)->machine.state, A_WAITING);
    assert_string_equal(here(session, one)->assign.disk_from, from);
    assert_string_equal(here(session, one)->assign.previous, other);
    json_decref(answer(session, "Alloc.GetAlloc",
                       json_pack("{s:i, s:{s:s, s:s}}", "Index", 20, "Alloc", "ID", other,
                                 "ClientStatus", "complete")));
    assert_int_not_equal(here(session, one)->machine.state, A_WAITING);
}

static void test_one_that_migrates_comes_from_another_node(void **state)
{
    assert_takes(*state, "Migrate", other);
}

static void test_one_that_is_sticky_stays_there(void **state)
{
    assert_takes(*state, "Sticky", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SESSION_TEST(test_it_is_found_with_its_token),
        SESSION_TEST(test_what_is_gone_is_told_at_once),
        SESSION_TEST(test_servers_that_do_not_say_are_asked_again_for_a_while),
        SESSION_TEST(test_nobody_is_asked_before_they_have_said_what_is_to_run),
        SESSION_TEST(test_a_session_that_ends_tells_nobody),
        SESSION_TEST(test_one_that_migrates_comes_from_another_node),
        SESSION_TEST(test_one_that_is_sticky_stays_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
