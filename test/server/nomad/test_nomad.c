/* The client of servers: its session, what they want to run, and what they hear of it. */
#include "test/server/nomad/small_session.h"

/* What calls are answered with that only write. */
static json_t *index_reply(void)
{
    return json_pack("{s:i}", "Index", 11);
}

/* --- the session --- */

static void test_nothing_is_asked_before_the_node_is_registered(void **state)
{
    struct small_session *session = *state;

    pass(session, 10);
    assert_null(waits(session, "Node.GetClientAllocs"));
    assert_null(waits(session, "Node.UpdateStatus"));
    json_t *args = answer(session, "Node.Register", node_reply(1));
    json_t *node = json_object_get(args, "Node");
    assert_string_equal(json_string_value(json_object_get(args, "AuthToken")), "");
    assert_string_equal(json_string_value(json_object_get(args, "Region")), "global");
    assert_string_equal(json_string_value(json_object_get(node, "SecretID")), "s");
    assert_string_equal(json_string_value(json_object_get(node, "Status")), "initializing");
    json_decref(args);
    pass(session, 10);
    assert_non_null(waits(session, "Node.GetClientAllocs"));
    args = answer(session, "Node.UpdateStatus", node_reply(0));
    assert_string_equal(json_string_value(json_object_get(args, "AuthToken")), "s");
    json_decref(args);
    pass(session, 9999);
    assert_null(waits(session, "Node.UpdateStatus")); /* it is good for 10 s */
    pass(session, 1);
    assert_non_null(waits(session, "Node.UpdateStatus"));
}

static void test_one_that_does_not_answer_is_passed_over(void **state)
{
    struct small_session *session = *state;

    pass(session, 10);
    assert_string_equal(waits(session, "Node.Register")->server, "a:4647");
    fail_call(session, "Node.Register", ERR_AGAIN, "nobody listens");
    assert_null(waits(session, "Node.Register"));
    pass(session, 1000);
    assert_string_equal(waits(session, "Node.Register")->server, "b:4647");
    fail_call(session, "Node.Register", ERR_AGAIN, "nobody listens");
    pass(session, 1999); /* ever later */
    assert_null(waits(session, "Node.Register"));
    pass(session, 1);
    assert_string_equal(waits(session, "Node.Register")->server, "a:4647");
}

static void found(struct small_session *session, const char *first, const char *second)
{
    char places[2][NOMAD_ADDRESS_SIZE];

    assert_true(text_copy(places[0], sizeof(places[0]), first));
    assert_true(text_copy(places[1], sizeof(places[1]), second));
    nomad_found(session->nomad, places, COUNT_OF(places));
}

static void test_others_are_looked_for_when_none_has_answered(void **state)
{
    struct small_session *session = *state;

    pass(session, 10);
    fail_call(session, "Node.Register", ERR_AGAIN, "nobody listens");
    assert_int_equal(session->seeks, 0);
    pass(session, 1000);
    fail_call(session, "Node.Register", ERR_AGAIN, "nobody listens");
    assert_int_equal(session->seeks, 1);
    found(session, "c:4647", "a:4647");
    pass(session, 0);
    assert_string_equal(waits(session, "Node.Register")->server, "c:4647");
    fail_call(session, "Node.Register", ERR_AGAIN, "nobody listens");
    assert_int_equal(session->seeks, 2);
    found(session, "c:4647", "a:4647"); /* which is no news, and no hurry */
    pass(session, 1000);
    assert_null(waits(session, "Node.Register"));
}

static void test_a_node_that_knows_no_server_asks_the_first_that_is_found(void **state)
{
    struct small_session *session = *state;
    struct nomad_standing standing;

    session->servers_count = 0;
    restart(session);
    pass(session, 10);
    fail_call(session, "Node.Register", ERR_AGAIN, "no server is known");
    assert_int_equal(session->seeks, 1);
    found(session, "c:4647", "d:4647");
    pass(session, 0);
    assert_string_equal(waits(session, "Node.Register")->server, "c:4647");
    json_decref(answer(session, "Node.Register", node_reply(1)));
    nomad_describe(session->nomad, &standing);
    assert_string_equal(standing.server, "a:4647"); /* they say who they are */
    assert_int_equal(standing.servers_count, 2);
    assert_true(standing.registered);
}

/* Who has answered has said who they are: what Consul knows may be older. */
static void test_what_is_found_too_late_is_not_asked(void **state)
{
    struct small_session *session = *state;

    join(session);
    found(session, "c:4647", "d:4647");
    pass(session, 10000);
    assert_string_equal(waits(session, "Node.UpdateStatus")->server, "a:4647");
    fail_call(session, "Node.UpdateStatus", ERR_AGAIN, "nobody listens");
    found(session, "c:4647", "d:4647");
    pass(session, 0);
    assert_string_equal(waits(session, "Node.UpdateStatus")->server, "c:4647");
}

/* Whoever finds more than there is room for has the nearest. */
static void test_no_more_servers_are_known_than_there_is_room_for(void **state)
{
    struct small_session *session = *state;
    char places[NOMAD_SERVERS_MAX][NOMAD_ADDRESS_SIZE];
    struct nomad_standing standing;

    for (size_t i = 0; i < NOMAD_SERVERS_MAX; i++)
        assert_true(text_format(places[i], sizeof(places[i]), "s%zu:4647", i));
    pass(session, 10);
    fail_call(session, "Node.Register", ERR_AGAIN, "nobody listens");
    nomad_found(session->nomad, places, NOMAD_SERVERS_MAX);
    nomad_describe(session->nomad, &standing);
    assert_int_equal(standing.servers_count, NOMAD_SERVERS_MAX);
    for (size_t i = 0; i < NOMAD_SERVERS_MAX; i++)
        assert_string_equal(nomad_server(session->nomad, i), places[i]);
}

static void test_servers_that_are_said_are_asked_whoever_was_known(void **state)
{
    struct small_session *session = *state;
    char places[1][NOMAD_ADDRESS_SIZE] = {"c:4647"};
    struct nomad_standing standing;

    pass(session, 10);
    fail_call(session, "Node.Register", ERR_AGAIN, "nobody listens");
    nomad_set_servers(session->nomad, places, 1);
    pass(session, 0);
    assert_string_equal(waits(session, "Node.Register")->server, "c:4647");
    json_decref(answer(session, "Node.Register", node_reply(1)));
    pass(session, 1000);
    json_decref(answer(session, "Node.UpdateStatus", node_reply(2)));
    assert_string_equal(nomad_server(session->nomad, 0), "a:4647"); /* they say who they are */
    memcpy(places[0], "d:4647", sizeof("d:4647"));
    nomad_set_servers(session->nomad, places, 1); /* although the others answer */
    nomad_describe(session->nomad, &standing);
    assert_int_equal(standing.servers_count, 1);
    pass(session, 1000);
    assert_string_equal(waits(session, "Node.UpdateStatus")->server, "d:4647");
}

static void test_a_node_that_is_not_known_registers_again(void **state)
{
    struct small_session *session = *state;

    join(session);
    pass(session, 10000);
    fail_call(session, "Node.UpdateStatus", ERR_REFUSED, "node not found");
    pass(session, 1);
    assert_non_null(waits(session, "Node.Register"));
}

/* A newer server takes the secret of a node that was purged for nobody's, and says no more. */
static void test_a_node_that_is_denied_registers_again_and_ever_later(void **state)
{
    struct small_session *session = *state;

    join(session);
    pass(session, 10000);
    fail_call(session, "Node.UpdateStatus", ERR_REFUSED, "rpc error: Permission denied");
    pass(session, 1000);
    json_decref(answer(session, "Node.Register", node_reply(20)));
    pass(session, 10);
    fail_call(session, "Node.UpdateStatus", ERR_REFUSED, "Permission denied");
    pass(session, 1999);
    assert_null(waits(session, "Node.Register"));
    pass(session, 1);
    json_decref(answer(session, "Node.Register", node_reply(30)));
    pass(session, 10);
    json_decref(answer(session, "Node.UpdateStatus", node_reply(0)));
    pass(session, 10000);
    fail_call(session, "Node.UpdateStatus", ERR_REFUSED, "Permission denied");
    pass(session, 1000);
    assert_non_null(waits(session, "Node.Register"));
}

static void test_servers_that_name_no_time_are_not_overrun(void **state)
{
    struct small_session *session = *state;

    pass(session, 10);
    json_decref(answer(session, "Node.Register", node_reply(1)));
    pass(session, 10);
    json_decref(answer(session, "Node.UpdateStatus", json_pack("{s:i}", "HeartbeatTTL", -1)));
    pass(session, 999);
    assert_null(waits(session, "Node.UpdateStatus"));
    pass(session, 1);
    assert_non_null(waits(session, "Node.UpdateStatus"));
    list(session, 0, one, 0);
    pass(session, 4999);
    assert_null(waits(session, "Node.GetClientAllocs"));
    pass(session, 1);
    assert_non_null(waits(session, "Node.GetClientAllocs"));
}

static void test_a_heartbeat_that_fails_is_tried_again(void **state)
{
    struct small_session *session = *state;

    join(session);
    pass(session, 10000);
    fail_call(session, "Node.UpdateStatus", ERR_TIMEOUT, "no answer");
    assert_null(waits(session, "Node.UpdateStatus"));
    pass(session, 1000);
    assert_non_null(waits(session, "Node.UpdateStatus"));
    assert_null(waits(session, "Node.Register"));
}

static void test_a_node_that_has_changed_is_told_once(void **state)
{
    struct small_session *session = *state;

    join(session);
    nomad_node_changed(session->nomad); /* and has not */
    pass(session, 1000);
    assert_null(waits(session, "Node.Register"));
    session->node_name = "other"; /* it begins, and finds out what it has */
    nomad_node_changed(session->nomad);
    pass(session, 200);
    json_t *args = answer(session, "Node.Register", node_reply(1));
    json_t *node = json_object_get(args, "Node");
    assert_string_equal(json_string_value(json_object_get(node, "Name")), "other");
    assert_string_equal(json_string_value(json_object_get(node, "Status")), "ready");
    json_decref(args);
    pass(session, 10);
    json_decref(answer(session, "Node.UpdateStatus", node_reply(0)));
    pass(session, 9000);
    session->node_name = "third";
    nomad_node_changed(session->nomad);
    pass(session, 999);
    nomad_node_changed(session->nomad);
    pass(session, 1);
    json_decref(answer(session, "Node.UpdateStatus", node_reply(0)));
    assert_null(waits(session, "Node.Register"));
    pass(session, 4000);
    assert_non_null(waits(session, "Node.Register"));
}

/* --- what is to run --- */

static void test_what_is_listed_is_pulled_and_runs(void **state)
{
    struct small_session *session = *state;

    join(session);
    list(session, 10, one, 6);
    pass(session, 1);
    json_t *ids = json_object_get(waits(session, "Alloc.GetAllocs")->args, "AllocIDs");
    assert_int_equal(json_array_size(ids), 1);
    assert_string_equal(json_string_value(json_array_get(ids, 0)), one);
    give(session, alloc_json(one, 6, "run", "/bin/a"));
    assert_int_equal(here(session, one)->machine.state, A_RUNNING);
    assert_int_equal(here(session, one)->client_status, CLIENT_RUNNING);
    assert_non_null(small_spec(session->small, "alloc/11111111-1111-4111-8111-111111111111"));
    const json_t *args = waits(session, "Node.GetClientAllocs")->args;
    assert_int_equal(json_integer_value(json_object_get(args, "MinQueryIndex")), 10);
    assert_true(json_is_true(json_object_get(args, "AllowStale")));
}

static void test_who_is_stopped_ends_and_who_is_forgotten_goes(void **state)
{
    struct small_session *session = *state;

    run_one(session);
    list(session, 11, one, 7);
    give(session, alloc_json(one, 7, "stop", "/bin/a"));
    assert_int_equal(here(session, one)->machine.state, A_TERMINAL);
    assert_int_equal(here(session, one)->client_status, CLIENT_COMPLETE);
    list(session, 12, one, 0);
    pass(session, 10);
    assert_null(here(session, one));
}

static void test_who_runs_and_is_forgotten_is_ended(void **state)
{
    struct small_session *session = *state;

    run_one(session);
    list(session, 11, one, 0);
    pass(session, 10);
    assert_null(here(session, one));
}

static void test_a_server_that_lags_ends_nothing(void **state)
{
    struct small_session *session = *state;

    run_one(session);
    list(session, 9, one, 0);
    pass(session, 10);
    assert_int_equal(here(session, one)->machine.state, A_RUNNING);
}

static void test_an_answer_to_a_node_that_is_not_registered_ends_nothing(void **state)
{
    struct small_session *session = *state;

    run_one(session);
    pass(session, 10);
    assert_non_null(waits(session, "Node.GetClientAllocs"));
    pass(session, 10000);
    fail_call(session, "Node.UpdateStatus", ERR_REFUSED, "node not found");
    list(session, 50, one, 0);
    pass(session, 10);
    assert_int_equal(here(session, one)->machine.state, A_RUNNING);
}

static void test_nobody_is_asked_while_the_node_is_not_registered(void **state)
{
    struct small_session *session = *state;

    run_one(session);
    pass(session, 10000);
    fail_call(session, "Node.UpdateStatus", ERR_REFUSED, "node not found");
    fail_call(session, "Node.GetClientAllocs", ERR_IO, "the connection is lost");
    pass(session, 20000);
    assert_null(waits(session, "Node.GetClientAllocs")); /* they would list nothing */
    assert_non_null(waits(session, "Node.Register"));
}

static void test_an_alloc_as_it_was_earlier_is_missing(void **state)
{
    struct small_session *session = *state;

    join(session);
    list(session, 10, one, 8);
    give(session, alloc_json(one, 6, "run", "/bin/a")); /* of a server that lags */
    assert_null(here(session, one));
    pass(session, 2000);
    list(session, 10, one, 8);
    give(session, alloc_json(one, 8, "stop", "/bin/a"));
    assert_null(here(session, one));
    assert_non_null(waits(session, "Node.GetClientAllocs"));
}

static void test_an_alloc_that_is_missing_is_asked_for_again(void **state)
{
    struct small_session *session = *state;

    join(session);
    list(session, 10, one, 6);
    pass(session, 1);
    json_decref(answer(session, "Alloc.GetAllocs", json_pack("{s:i, s:[]}", "Index", 9, "Allocs")));
    pass(session, 2000);
    list(session, 10, one, 6);
    give(session, alloc_json(one, 6, "run", "/bin/a"));
    assert_int_equal(here(session, one)->machine.state, A_RUNNING);
}

static void test_what_is_over_for_the_servers_is_not_begun(void **state)
{
    struct small_session *session = *state;
    json_t *alloc = alloc_json(one, 6, "run", "/bin/a");

    assert_int_equal(json_object_set_new(alloc, "ClientStatus", json_string("failed")), 0);
    join(session);
    list(session, 10, one, 6);
    give(session, alloc);
    assert_null(here(session, one));
    list(session, 11, one, 6); /* and not pulled again */
    pass(session, 10);
    assert_null(waits(session, "Alloc.GetAllocs"));
    assert_non_null(waits(session, "Node.GetClientAllocs"));
}

/* --- restarts --- */

static void test_after_a_restart_it_goes_on_and_starts_anew_only_when_asked_for(void **state)
{
    struct small_session *session = *state;

    run_one(session);
    restart(session);
    assert_int_equal(here(session, one)->machine.state, A_RUNNING);
    assert_false(here(session, one)->may_start);
    join(session);
    assert_false(here(session, one)->may_start);
    list(session, 10, one, 6);
    pass(session, 10);
    assert_null(waits(session, "Alloc.GetAllocs")); /* it is as it was */
    assert_true(here(session, one)->may_start);
}

static void test_a_newer_version_is_taken_after_a_restart(void **state)
{
    struct small_session *session = *state;
    json_t *newer = alloc_json(one, 8, "run", "/bin/a");

    assert_int_equal(json_object_set_new(json_object_get(newer, "Job"), "Version", json_integer(3)),
                     0);
    run_one(session);
    restart(session);
    join(session);
    list(session, 12, one, 8);
    give(session, newer);
    assert_int_equal(here(session, one)->assign.job_version, 3);
    assert_int_equal(here(session, one)->machine.state, A_RUNNING);
    assert_true(here(session, one)->may_start);
    restart(session);
    join(session);
    list(session, 12, one, 8);
    pass(session, 10);
    assert_null(waits(session, "Alloc.GetAllocs"));
}

/* --- what they hear --- */

static const json_t *told(struct small_session *session, size_t number)
{
    const json_t *list = json_object_get(waits(session, "Node.UpdateAlloc")->args, "Alloc");

    assert_true(number < json_array_size(list));
    return json_array_get(list, number);
}

static unsigned reconnected(const struct small_session *session)
{
    const struct task *task = core_task(life_core(session->small->life), one, "web");
    unsigned times = 0;

    for (size_t i = 0; i < TASK_EVENTS_MAX; i++)
        times += task->events[i].type == TASK_EVENT_RECONNECTED;
    return times;
}

static json_t *unknown_json(int index)
{
    json_t *alloc = alloc_json(one, index, "run", "/bin/a");

    assert_int_equal(json_object_set_new(alloc, "ClientStatus", json_string("unknown")), 0);
    return alloc;
}

/* Nothing was heard of the node for so long that they do not know what it is. */
static void test_one_that_they_did_not_know_of_any_more_says_that_it_is_there(void **state)
{
    struct small_session *session = *state;

    run_one(session);
    pass(session, 200);
    json_decref(answer(session, "Node.UpdateAlloc", index_reply()));
    assert_int_equal(reconnected(session), 0);
    list(session, 20, one, 7);
    give(session, unknown_json(7));
    assert_int_equal(reconnected(session), 1);
    assert_int_equal(here(session, one)->machine.state, A_RUNNING);
    pass(session, 1000);
    json_decref(answer(session, "Node.UpdateAlloc", index_reply())); /* and they hear of it */
    restart(session);
    join(session);
    list(session, 20, one, 7);
    assert_null(waits(session, "Alloc.GetAllocs")); /* it goes by that version, and has said so */
    assert_int_equal(reconnected(session), 1);
    list(session, 30, one, 8);
    give(session, unknown_json(8));
    assert_int_equal(reconnected(session), 2);
}

static void test_they_hear_what_has_become_of_it_once(void **state)
{
    struct small_session *session = *state;

    run_one(session);
    pass(session, 200);
    assert_string_equal(word_of(told(session, 0), "ClientStatus"), "running");
    assert_string_equal(word_of(told(session, 0), "NodeID"), "n");
    json_decref(answer(session, "Node.UpdateAlloc", index_reply()));
    assert_int_equal(here(session, one)->acked_revision, here(session, one)->status_revision);
    pass(session, 5000);
    assert_null(waits(session, "Node.UpdateAlloc"));
}

static void test_what_was_not_heard_is_told_again(void **state)
{
    struct small_session *session = *state;

    run_one(session);
    pass(session, 200);
    fail_call(session, "Node.UpdateAlloc", ERR_IO, "it is gone");
    assert_int_not_equal(here(session, one)->acked_revision, here(session, one)->status_revision);
    pass(session, 4999);
    assert_null(waits(session, "Node.UpdateAlloc"));
    pass(session, 1);
    assert_string_equal(word_of(told(session, 0), "ClientStatus"), "running");
}

/* All of ONE may have changed. */
static void change(struct small_session *session, const char *word)
{
    struct journal_event event = {.id = machine_id_make(MACHINE_ALLOC, one)};

    session->alloc_word = word;
    nomad_note(session->nomad, &event);
}

static void test_a_status_whose_answer_was_lost_may_have_been_heard(void **state)
{
    struct small_session *session = *state;

    run_one(session);
    pass(session, 200);
    json_decref(answer(session, "Node.UpdateAlloc", index_reply()));
    change(session, "x");
    pass(session, 200);
    change(session, ""); /* as they have heard, if this one is lost on its way there */
    fail_call(session, "Node.UpdateAlloc", ERR_IO, "the answer is lost");
    pass(session, 5000);
    assert_string_equal(word_of(told(session, 0), "ClientDescription"), "");
}

static void test_of_one_that_cannot_run_here_they_hear_why(void **state)
{
    struct small_session *session = *state;
    json_t *alloc = alloc_json(one, 6, "run", "/bin/a");
    json_t *groups = json_object_get(json_object_get(alloc, "Job"), "TaskGroups");
    json_t *tasks = json_object_get(json_array_get(groups, 0), "Tasks");

    assert_int_equal(
        json_object_set_new(json_array_get(tasks, 0), "Vault", json_pack("{s:s}", "Role", "r")), 0);
    join(session);
    list(session, 10, one, 6);
    give(session, alloc);
    assert_null(here(session, one));
    pass(session, 200);
    assert_string_equal(word_of(told(session, 0), "ClientStatus"), "failed");
    assert_non_null(strstr(word_of(told(session, 0), "ClientDescription"), "Vault"));
    json_decref(answer(session, "Node.UpdateAlloc", index_reply()));
    pass(session, 5000);
    assert_null(waits(session, "Node.UpdateAlloc"));
}

static void test_who_had_taken_the_node_for_lost_hears_all_again(void **state)
{
    struct small_session *session = *state;

    run_one(session);
    pass(session, 200);
    json_decref(answer(session, "Node.UpdateAlloc", index_reply()));
    pass(session, 10000);
    json_decref(answer(session, "Node.UpdateStatus", node_reply(30)));
    pass(session, 200);
    assert_string_equal(word_of(told(session, 0), "ClientStatus"), "running");
    json_decref(answer(session, "Node.UpdateAlloc", json_pack("{s:i}", "Index", 31)));
    pass(session, 1);
    assert_non_null(waits(session, "Node.UpdateStatus")); /* now it is ready */
}

static void test_nothing_is_told_before_they_have_said_what_is_to_run(void **state)
{
    struct small_session *session = *state;

    run_one(session); /* and nobody has heard of it */
    restart(session);
    join(session);
    pass(session, 5000);
    assert_null(waits(session, "Node.UpdateAlloc"));
    list(session, 10, one, 6);
    pass(session, 1000);
    assert_non_null(waits(session, "Node.UpdateAlloc"));
}

static void test_after_a_restart_they_hear_nothing_that_they_have_heard(void **state)
{
    struct small_session *session = *state;

    run_one(session);
    pass(session, 200);
    json_decref(answer(session, "Node.UpdateAlloc", index_reply()));
    restart(session);
    join(session);
    list(session, 10, one, 6);
    pass(session, 5000);
    assert_null(waits(session, "Node.UpdateAlloc"));
}

static void test_the_first_question_of_a_connection_is_answered_at_once(void **state)
{
    struct small_session *session = *state;

    run_one(session);
    pass(session, 10);
    fail_call(session, "Node.GetClientAllocs", ERR_IO, "the connection is lost");
    pass(session, 5000);
    const json_t *args = waits(session, "Node.GetClientAllocs")->args;
    assert_int_equal(json_integer_value(json_object_get(args, "MinQueryIndex")), 0);
    assert_false(json_is_true(json_object_get(args, "AllowStale")));
    list(session, 9, one, 0); /* of one that lags */
    pass(session, 10);
    assert_int_equal(here(session, one)->machine.state, A_RUNNING);
    pass(session, 5000);
    list(session, 10, one, 0); /* deleted meanwhile, under the same index */
    pass(session, 10);
    assert_null(here(session, one));
}

static void test_a_connection_that_ends_between_questions_makes_the_next_a_first_one(void **state)
{
    struct small_session *session = *state;

    run_one(session);
    nomad_connection_over(session->nomad);
    list(session, 11, one, 6); /* its last answer, which is carried out only now */
    pass(session, 10);
    const json_t *args = waits(session, "Node.GetClientAllocs")->args;
    assert_int_equal(json_integer_value(json_object_get(args, "MinQueryIndex")), 0);
    list(session, 11, one, 0); /* deleted meanwhile, under the same index */
    pass(session, 10);
    assert_null(here(session, one));
    args = waits(session, "Node.GetClientAllocs")->args;
    assert_int_equal(json_integer_value(json_object_get(args, "MinQueryIndex")), 11);
}

/* It answers pings, and would keep the question for minutes. */
static void test_who_has_lost_the_other_servers_is_not_waited_for(void **state)
{
    struct small_session *session = *state;

    run_one(session);
    pass(session, 10000);
    struct waiting kept;
    json_decref(take(session, "Node.GetClientAllocs", &kept));
    assert_string_equal(kept.server, "a:4647");
    fail_call(session, "Node.UpdateStatus", ERR_REFUSED, "No cluster leader");
    pass(session, 1000);
    assert_string_equal(waits(session, "Node.UpdateStatus")->server, "b:4647");
    json_decref(answer(session, "Node.UpdateStatus", node_reply(0)));
    pass(session, 10);
    assert_string_equal(waits(session, "Node.GetClientAllocs")->server, "b:4647");
    json_t *late = json_pack("{s:i, s:{}}", "Index", 11, "Allocs");
    kept.cb(kept.ctx, late, NULL); /* what it says in the end ends nothing */
    json_decref(late);
    pass(session, 10);
    assert_int_equal(here(session, one)->machine.state, A_RUNNING);
    list(session, 12, one, 6);
}

static void test_a_heartbeat_leaves_time_for_another_server(void **state)
{
    struct small_session *session = *state;

    join(session);
    pass(session, 10000);
    assert_in_range(waits(session, "Node.UpdateStatus")->timeout_ms, 2000, 4000);
}

/* --- what is offered --- */

static void offer(struct small_session *session, const char *id, bool offered, int port)
{
    json_t *registration = json_pack("{s:s, s:s, s:s, s:i}", "ID", id, "ServiceName", "web",
                                     "Namespace", "default", "Port", port);

    nomad_offer(session->nomad, offered, registration);
    json_decref(registration);
}

/* How many services the call that waits tells of, the port of the first. */
static size_t upserted(struct small_session *session, int *ret_port)
{
    const json_t *list =
        json_object_get(waits(session, "ServiceRegistration.Upsert")->args, "Services");

    *ret_port = (int)json_integer_value(json_object_get(json_array_get(list, 0), "Port"));
    return json_array_size(list);
}

static void test_what_is_offered_is_told_once_and_withdrawn(void **state)
{
    struct small_session *session = *state;
    int port;

    run_one(session);
    offer(session, "s1", true, 80);
    offer(session, "s2", true, 81);
    pass(session, 199);
    assert_null(waits(session, "ServiceRegistration.Upsert"));
    pass(session, 1);
    assert_int_equal(upserted(session, &port), 2);
    json_decref(answer(session, "ServiceRegistration.Upsert", index_reply()));
    pass(session, 1000);
    assert_null(waits(session, "ServiceRegistration.Upsert"));
    offer(session, "s1", false, 80);
    pass(session, 200);
    json_t *args = answer(session, "ServiceRegistration.DeleteByID", index_reply());
    assert_string_equal(word_of(args, "ID"), "s1");
    assert_string_equal(word_of(args, "Namespace"), "default");
    json_decref(args);
    pass(session, 1000);
    assert_null(waits(session, "ServiceRegistration.DeleteByID"));
}

static void test_what_changes_while_it_is_told_is_told_again(void **state)
{
    struct small_session *session = *state;
    struct nomad_standing standing;
    int port;

    run_one(session);
    offer(session, "s1", true, 80);
    pass(session, 200);
    offer(session, "s1", true, 90);
    json_decref(answer(session, "ServiceRegistration.Upsert", index_reply()));
    pass(session, 200);
    assert_int_equal(upserted(session, &port), 1);
    assert_int_equal(port, 90);
    offer(session, "s1", false, 90);
    json_decref(answer(session, "ServiceRegistration.Upsert", index_reply()));
    pass(session, 200);
    fail_call(session, "ServiceRegistration.DeleteByID", ERR_REFUSED,
              "service registration not found"); /* as good as withdrawn */
    nomad_describe(session->nomad, &standing);
    assert_string_equal(standing.trouble, ""); /* the server is as it should be */
    assert_string_equal(standing.server, "a:4647");
    pass(session, 6000);
    assert_null(waits(session, "ServiceRegistration.DeleteByID"));
}

static void test_an_offer_that_was_not_heard_is_told_again(void **state)
{
    struct small_session *session = *state;
    int port;

    run_one(session);
    offer(session, "s1", true, 80);
    pass(session, 200);
    fail_call(session, "ServiceRegistration.Upsert", ERR_TIMEOUT, "no answer");
    pass(session, 4999);
    assert_null(waits(session, "ServiceRegistration.Upsert"));
    pass(session, 1);
    assert_int_equal(upserted(session, &port), 1);
    json_decref(answer(session, "ServiceRegistration.Upsert", index_reply()));
    pass(session, 5000);
    json_decref(answer(session, "Node.UpdateStatus", node_reply(30))); /* it was lost for them */
    pass(session, 200);
    assert_int_equal(upserted(session, &port), 1);
}

/* --- events of the node --- */

static void test_an_event_is_told_until_it_is_heard_and_then_no_more(void **state)
{
    struct small_session *session = *state;

    session->event_at = 7; /* of before it began */
    run_one(session);
    fail_call(session, "Node.EmitEvents", ERR_TIMEOUT, "no answer");
    pass(session, 4999);
    assert_null(waits(session, "Node.EmitEvents"));
    pass(session, 1);
    json_t *args = answer(session, "Node.EmitEvents", index_reply());
    const json_t *told = json_object_get(json_object_get(args, "NodeEvents"), "n");
    assert_int_equal(json_integer_value(json_object_get(json_array_get(told, 0), "Timestamp")), 7);
    json_decref(args);
    assert_int_equal(session->events_heard, 7);
    pass(session, 10000);
    assert_null(waits(session, "Node.EmitEvents"));
}

static void test_an_event_that_comes_while_others_are_told_is_told_next(void **state)
{
    struct small_session *session = *state;

    session->event_at = 7;
    run_one(session);
    assert_non_null(waits(session, "Node.EmitEvents"));
    session->event_at = 9;
    nomad_events_changed(session->nomad);
    pass(session, 2000);
    json_decref(answer(session, "Node.EmitEvents", index_reply()));
    assert_int_equal(session->events_heard, 7); /* and not the one that they were not told */
    pass(session, 1000);
    json_decref(answer(session, "Node.EmitEvents", index_reply()));
    assert_int_equal(session->events_heard, 9);
}

static void test_no_event_is_told_by_a_node_that_is_not_known(void **state)
{
    struct small_session *session = *state;

    session->event_at = 7;
    pass(session, 5000);
    assert_null(waits(session, "Node.EmitEvents"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SESSION_TEST(test_nothing_is_asked_before_the_node_is_registered),
        SESSION_TEST(test_one_that_does_not_answer_is_passed_over),
        SESSION_TEST(test_others_are_looked_for_when_none_has_answered),
        SESSION_TEST(test_a_node_that_knows_no_server_asks_the_first_that_is_found),
        SESSION_TEST(test_what_is_found_too_late_is_not_asked),
        SESSION_TEST(test_no_more_servers_are_known_than_there_is_room_for),
        SESSION_TEST(test_servers_that_are_said_are_asked_whoever_was_known),
        SESSION_TEST(test_a_node_that_is_not_known_registers_again),
        SESSION_TEST(test_a_node_that_is_denied_registers_again_and_ever_later),
        SESSION_TEST(test_servers_that_name_no_time_are_not_overrun),
        SESSION_TEST(test_a_heartbeat_that_fails_is_tried_again),
        SESSION_TEST(test_a_node_that_has_changed_is_told_once),
        SESSION_TEST(test_what_is_listed_is_pulled_and_runs),
        SESSION_TEST(test_who_is_stopped_ends_and_who_is_forgotten_goes),
        SESSION_TEST(test_who_runs_and_is_forgotten_is_ended),
        SESSION_TEST(test_a_server_that_lags_ends_nothing),
        SESSION_TEST(test_an_answer_to_a_node_that_is_not_registered_ends_nothing),
        SESSION_TEST(test_nobody_is_asked_while_the_node_is_not_registered),
        SESSION_TEST(test_an_alloc_as_it_was_earlier_is_missing),
        SESSION_TEST(test_an_alloc_that_is_missing_is_asked_for_again),
        SESSION_TEST(test_what_is_over_for_the_servers_is_not_begun),
        SESSION_TEST(test_after_a_restart_it_goes_on_and_starts_anew_only_when_asked_for),
        SESSION_TEST(test_a_newer_version_is_taken_after_a_restart),
        SESSION_TEST(test_one_that_they_did_not_know_of_any_more_says_that_it_is_there),
        SESSION_TEST(test_they_hear_what_has_become_of_it_once),
        SESSION_TEST(test_what_was_not_heard_is_told_again),
        SESSION_TEST(test_a_status_whose_answer_was_lost_may_have_been_heard),
        SESSION_TEST(test_of_one_that_cannot_run_here_they_hear_why),
        SESSION_TEST(test_who_had_taken_the_node_for_lost_hears_all_again),
        SESSION_TEST(test_nothing_is_told_before_they_have_said_what_is_to_run),
        SESSION_TEST(test_after_a_restart_they_hear_nothing_that_they_have_heard),
        SESSION_TEST(test_the_first_question_of_a_connection_is_answered_at_once),
        SESSION_TEST(test_a_connection_that_ends_between_questions_makes_the_next_a_first_one),
        SESSION_TEST(test_who_has_lost_the_other_servers_is_not_waited_for),
        SESSION_TEST(test_a_heartbeat_leaves_time_for_another_server),
        SESSION_TEST(test_what_is_offered_is_told_once_and_withdrawn),
        SESSION_TEST(test_what_changes_while_it_is_told_is_told_again),
        SESSION_TEST(test_an_offer_that_was_not_heard_is_told_again),
        SESSION_TEST(test_an_event_is_told_until_it_is_heard_and_then_no_more),
        SESSION_TEST(test_an_event_that_comes_while_others_are_told_is_told_next),
        SESSION_TEST(test_no_event_is_told_by_a_node_that_is_not_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
