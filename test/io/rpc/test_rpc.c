/* Sessions: whatever a server does, each call has one end, and the session one. */
#include "test/io/rpc/rpc_peer.h"

#define ROOM struct rpc_room *room = *state

/* --- unhappy --- */

static void test_an_address_that_is_none_is_told_at_once(void **state)
{
    static const char *const wrong[] = {"",        "host",   ":4647",  "host:", "host:0",
                                        "h:70000", "h:http", "::1:80", "[::1]", "[]:80"};
    ROOM;
    struct rpc_config config = room_config(room);

    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct err err = {0};

        config.address = wrong[i];
        if (rpc_open(&config, &err) != NULL || err.code != ERR_INVALID)
            fail_msg("%s is an address", wrong[i]);
    }
}

static void test_nobody_listens(void **state)
{
    static const char *const addresses[] = {"127.0.0.1:1", "[::1]:1", "localhost:1",
                                            "nobody.invalid:1"};
    ROOM;

    for (size_t i = 0; i < COUNT_OF(addresses); i++) {
        struct rpc_config config = room_config(room);
        struct err err = {0};

        room->trace[0] = '\0';
        config.address = addresses[i];
        room->rpc = rpc_open(&config, &err);
        assert_non_null(room->rpc);
        assert_false(rpc_is_up(room->rpc));
        (void)room_call(room, "Status.Ping");
        assert_string_equal(room_wait(room, 2), "try again later ended:try again later ");
        (void)room_call(room, "Status.Ping"); /* later, too */
        assert_string_equal(room_wait(room, 1),
                            "try again later ended:try again later try again later ");
        assert_string_not_equal(room->last.text, "");
        rpc_close(room->rpc);
        room->rpc = NULL;
    }
}

static void hang_up(struct rpc_peer *peer)
{
    (void)peer;
}

static void read_one_and_hang_up(struct rpc_peer *peer)
{
    if (peer_begin(peer))
        json_decref(peer_call(peer, 1));
}

static void test_the_end_of_the_session_is_the_end_of_its_calls(void **state)
{
    ROOM;

    room_begin(room, read_one_and_hang_up);
    (void)room_call(room, "First.Call");
    (void)room_call(room, "Second.Call");
    assert_string_equal(room_wait(room, 3), "input or output failed input or output failed "
                                            "ended:input or output failed ");
    assert_string_equal(room_end(room), "syn(1) First.Call(1) ");
}

static void test_a_server_that_hangs_up_at_once(void **state)
{
    ROOM;

    room_begin(room, hang_up);
    assert_string_equal(room_wait(room, 1), "ended:input or output failed ");
}

static void break_the_rules(struct rpc_peer *peer)
{
    if (!peer_begin(peer))
        return;
    json_decref(peer_call(peer, 1));
    peer_say(peer, P_UPDATE, P_SYN, 7, 0, NULL);
    peer_until_end(peer);
}

static void test_a_server_that_breaks_the_rules_is_told_so(void **state)
{
    ROOM;

    room_begin(room, break_the_rules);
    (void)room_call(room, "Any.Call");
    assert_string_equal(room_wait(room, 2), "input or output failed ended:damaged data ");
    assert_string_equal(room_end(room), "syn(1) Any.Call(1) goaway(1) ");
}

static void refuse(struct rpc_peer *peer)
{
    if (!peer_begin(peer))
        return;
    peer_answer(peer, 1, peer_call(peer, 1), "No cluster leader", json_object());
    peer_serve(peer, 3);
    peer_until_end(peer);
}

static void test_an_error_is_in_the_words_of_the_server_and_ends_its_stream(void **state)
{
    ROOM;

    room_begin(room, refuse);
    (void)room_call(room, "Any.Call");
    assert_string_equal(room_wait(room, 1), "refused ");
    assert_string_equal(room->last.text, "No cluster leader");
    (void)room_call(room, "Next.Call");
    assert_string_equal(room_wait(room, 1), "refused Next.Call ");
    assert_string_equal(room_end(room), "syn(1) Any.Call(1) fin(1) syn(3) Next.Call(3) ");
}

/* Answers the first call when the second one has come. */
static void answer_late(struct rpc_peer *peer)
{
    if (!peer_begin(peer))
        return;
    json_t *late = peer_call(peer, 1);
    json_t *next = peer_call(peer, 3);
    if (late == NULL || next == NULL)
        return;
    peer_answer(peer, 1, late, "", json_pack("{s:s}", "Was", "late"));
    peer_answer(peer, 3, next, "", json_pack("{s:s}", "Was", "in time"));
    peer_until_end(peer);
}

static void test_no_answer_in_time_is_an_end_and_a_late_one_is_nobodys(void **state)
{
    ROOM;

    room_begin(room, answer_late);
    (void)rpc_call(room->rpc, "Late.Call", NULL, 20, room_on_reply, room);
    assert_string_equal(room_wait(room, 1), "timed out ");
    (void)room_call(room, "Next.Call");
    assert_string_equal(room_wait(room, 1), "timed out in time ");
    assert_non_null(strstr(room_end(room), "rst(1)"));
}

static void test_a_canceled_call_ends_from_inside_and_a_late_answer_is_nobodys(void **state)
{
    ROOM;

    room_begin(room, answer_late);
    struct rpc_call *call = room_call(room, "Late.Call");
    assert_string_equal(room->trace, "");
    rpc_cancel(call);
    assert_string_equal(room->trace, "canceled ");
    (void)room_call(room, "Next.Call");
    assert_string_equal(room_wait(room, 2), "canceled in time ");
}

static void answer_nonsense(struct rpc_peer *peer)
{
    if (!peer_begin(peer))
        return;
    json_decref(peer_call(peer, 1));
    peer_send(peer, 1, "\xc1", 1);
    json_t *header = peer_call(peer, 3); /* of another call */
    (void)json_object_set_new(header, "Seq", json_integer(1));
    peer_answer(peer, 3, header, "", json_object());
    json_decref(peer_call(peer, 5)); /* no header */
    peer_give(peer, 5, json_pack("[i]", 1));
    json_decref(peer_call(peer, 7));
    peer_give(peer, 7, json_pack("{s:i}", "Error", 5));
    header = peer_call(peer, 9); /* more than an answer: right, but nothing to go on with */
    peer_give(peer, 9, json_pack("{s:O,s:s}", "Seq", json_object_get(header, "Seq"), "Error", ""));
    peer_give(peer, 9, json_pack("[{s:s}]", "Was", "half"));
    peer_send(peer, 9, "\x81", 1);
    json_decref(header);
    peer_serve(peer, 11);
    peer_until_end(peer);
}

static void test_an_answer_that_is_none_ends_its_call_alone(void **state)
{
    static const char *const methods[] = {"A.A", "B.B", "C.C", "D.D", "E.E", "F.F"};
    ROOM;

    room_begin(room, answer_nonsense);
    for (size_t i = 0; i < COUNT_OF(methods); i++) {
        (void)room_call(room, methods[i]);
        (void)room_wait(room, 1);
    }
    assert_string_equal(room->trace,
                        "damaged data damaged data damaged data damaged data reply F.F ");
    assert_non_null(strstr(room_end(room), "rst(1) "));
    assert_non_null(strstr(room->peer.trace, "rst(7) "));
}

static void go_away(struct rpc_peer *peer)
{
    if (!peer_begin(peer))
        return;
    json_t *header = peer_call(peer, 1);
    peer_say(peer, P_GO_AWAY, 0, 0, 0, NULL);
    peer_open(peer, 2, 1);
    peer_ask(peer, 2, "Last.Call");
    peer_note_answer(peer, 2);
    peer_answer(peer, 1, header, "", json_pack("{s:s}", "Was", "first"));
    peer_until_end(peer);
}

static void answer_called(struct rpc_room *room)
{
    struct rpc_called *called = room->called;

    room->called = NULL;
    if (called != NULL)
        rpc_answer(called, NULL);
}

static void test_a_server_that_leaves_ends_what_it_has_begun(void **state)
{
    ROOM;

    room_begin(room, go_away);
    (void)room_call(room, "First.Call");
    assert_string_equal(room_wait(room, 1), "Last.Call ");
    assert_false(rpc_is_up(room->rpc));
    (void)room_call(room, "Second.Call");
    assert_string_equal(room_wait(room, 1), "Last.Call try again later ");
    answer_called(room);
    assert_string_equal(room_wait(room, 2),
                        "Last.Call try again later first ended:try again later ");
    assert_non_null(strstr(room_end(room), "|{} "));
}

static void test_more_than_can_be_is_refused_here(void **state)
{
    ROOM;
    char *text = malloc(RPC_MESSAGE_MAX + 1);

    assert_non_null(text);
    memset(text, 'x', RPC_MESSAGE_MAX);
    text[RPC_MESSAGE_MAX] = '\0';
    json_t *args = json_pack("{s:s}", "Long", text);
    room_begin(room, peer_until_end);
    (void)rpc_call(room->rpc, "Long.Call", args, PEER_MS, room_on_reply, room);
    assert_string_equal(room->trace, "");
    assert_string_equal(room_wait(room, 1), "over a limit ");
    json_decref(args);
    free(text);
    for (unsigned i = 0; i < RPC_CALLS_MAX; i++)
        (void)room_call(room, "Any.Call");
    (void)room_call(room, "One.More");
    assert_string_equal(room_wait(room, 1), "over a limit over a limit ");
}

static void test_closing_cancels_from_inside(void **state)
{
    ROOM;

    room_begin(room, peer_until_end);
    (void)room_call(room, "First.Call");
    (void)room_call(room, "Second.Call");
    rpc_close(room->rpc);
    room->rpc = NULL;
    assert_string_equal(room->trace, "canceled canceled ");
}

static void close_room(struct rpc_room *room)
{
    struct rpc *rpc = room->rpc;

    room->rpc = NULL;
    rpc_close(rpc);
}

static void serve_all_kinds(struct rpc_peer *peer)
{
    if (!peer_begin(peer))
        return;
    peer_serve(peer, 1);
    peer_open(peer, 2, 1);
    peer_ask(peer, 2, "A.Method");
    peer_open(peer, 4, 5);
    peer_give(peer, 4, json_pack("{s:s}", "Method", "Known.Stream"));
    peer_give(peer, 4, json_pack("{}"));
    peer_give(peer, 4, json_pack("{s:s}", "Say", "hello"));
    peer_give(peer, 4, json_pack("{s:s}", "Say", "you"));
    peer_say(peer, P_UPDATE, P_FIN, 4, 0, NULL);
    peer_until_end(peer);
}

static unsigned close_at; /* how many notes from now */

static void close_when_it_is_time(struct rpc_room *room)
{
    if (close_at > 0 && --close_at == 0)
        close_room(room);
}

static void test_it_may_be_closed_from_any_callback(void **state)
{
    ROOM;

    for (unsigned at = 1; at <= 6; at++) {
        memset(room->trace, 0, sizeof(room->trace));
        room->peer = (struct rpc_peer){.listens = -1};
        room->called = NULL;
        room->noted = room->awaited = 0;
        close_at = at;
        room->on_note = close_when_it_is_time;
        room_begin(room, serve_all_kinds);
        (void)room_call(room, "First.Call");
        const char *trace = room_wait(room, at);
        assert_null(room->rpc);
        assert_true(text_starts_with("First.Call A.Method Known.Stream hello you end ", trace) ||
                    text_ends_with(trace, " end "));
        (void)peer_join(&room->peer);
        answer_called(room); /* for whom nobody waits */
    }
}

static void test_it_may_be_closed_when_it_has_ended(void **state)
{
    ROOM;

    room->on_note = close_when_it_is_time;
    close_at = 2;
    room_begin(room, read_one_and_hang_up);
    (void)room_call(room, "First.Call");
    assert_string_equal(room_wait(room, 2), "input or output failed ended:input or output failed ");
    assert_null(room->rpc);
}

/* --- calls --- */

static void serve_many(struct rpc_peer *peer)
{
    static const uint32_t order[] = {5, 1, 3, 7};

    if (!peer_begin(peer))
        return;
    for (size_t i = 0; i < COUNT_OF(order); i++)
        peer_serve(peer, order[i]);
    for (;;) { /* then whatever is used again */
        struct rpc_frame frame = peer_frame(peer);

        if (frame.type == P_END)
            return;
        if (frame.type == P_DATA)
            peer_serve(peer, frame.id);
    }
}

static void test_calls_wait_for_each_other_in_nothing(void **state)
{
    ROOM;

    room_begin(room, serve_many);
    (void)room_call(room, "A.One");
    (void)room_call(room, "A.Two");
    (void)room_call(room, "A.Three");
    (void)room_call(room, "A.Four");
    assert_string_equal(room_wait(room, 4), "A.Three A.One A.Two A.Four ");
    assert_true(rpc_is_up(room->rpc));
    (void)room_call(room, "B.One"); /* two streams are kept, and no more */
    (void)room_call(room, "B.Two");
    (void)room_call(room, "B.Three");
    (void)room_wait(room, 3);
    const char *seen = room_end(room);
    assert_non_null(strstr(seen, "fin(3) "));
    assert_non_null(strstr(seen, "fin(7) "));
    assert_non_null(strstr(seen, "syn(9) "));
    assert_null(strstr(seen, "syn(11) "));
    assert_null(strstr(seen, "fin(1) "));
    assert_null(strstr(seen, "fin(5) "));
}

enum { LONG = 3 << 20 };

static json_t *long_object(const char *name)
{
    char *text = malloc(LONG + 1);

    check(text != NULL);
    memset(text, 'x', LONG);
    text[LONG] = '\0';
    json_t *object = json_pack("{s:s}", name, text);
    free(text);
    return object;
}

static void answer_at_length(struct rpc_peer *peer)
{
    if (!peer_begin(peer))
        return;
    json_t *header = peer_object(peer, 1), *args = peer_object(peer, 1);
    peer_note(peer, "bytes", (unsigned)json_string_length(json_object_get(args, "Long")));
    json_decref(args);
    if (header != NULL)
        peer_answer(peer, 1, header, "", long_object("Long"));
    peer_until_end(peer);
}

static void test_long_calls_and_answers_keep_to_the_windows(void **state)
{
    ROOM;
    json_t *args = long_object("Long");

    room_begin(room, answer_at_length);
    (void)rpc_call(room->rpc, "Long.Call", args, PEER_MS, room_on_reply, room);
    json_decref(args);
    assert_false(rpc_is_idle(room->rpc));
    assert_string_equal(room_wait(room, 1), "reply ");
    assert_true(rpc_is_idle(room->rpc));
    assert_int_equal(room->reply_bytes, LONG);
    assert_string_equal(room_end(room), "syn(1) bytes(3145728) ");
}

/* --- calls of the server's --- */

static void ask_the_node(struct rpc_peer *peer)
{
    if (!peer_begin(peer))
        return;
    peer_open(peer, 2, 1);
    peer_ask(peer, 2, "First.Method");
    peer_ask(peer, 2, "Second.Method"); /* which waits for the first */
    peer_note_answer(peer, 2);
    peer_note_answer(peer, 2);
    peer_ask(peer, 2, "Third.Method");
    peer_note_answer(peer, 2);
    peer_say(peer, P_UPDATE, P_FIN, 2, 0, NULL);
    peer_open(peer, 4, 1);
    peer_ask(peer, 4, "Fourth.Method");
    peer_note_answer(peer, 4);
    peer_open(peer, 6, 1);
    peer_ask(peer, 6, "Fifth.Method");
    peer_note_answer(peer, 6);
    peer_done(peer);
}

static void test_the_server_is_answered_now_or_later(void **state)
{
    ROOM;
    json_t *reply = json_pack("{s:i}", "N", 1);

    room_begin(room, ask_the_node);
    assert_false(rpc_is_idle(room->rpc)); /* not connected yet */
    assert_string_equal(room_wait(room, 1), "First.Method ");
    assert_false(rpc_is_idle(room->rpc));
    rpc_answer(room->called, reply);
    room->called = NULL;
    room->on_note = answer_called; /* from inside */
    (void)room_wait(room, 1);
    room->on_note = NULL;
    (void)room_wait(room, 1);
    rpc_answer(room->called, NULL);
    (void)room_wait(room, 1);
    rpc_refuse(room->called, "Unknown allocation");
    (void)room_wait(room, 1);
    rpc_refuse_unknown(room->called);
    (void)room_wait(room, 1);
    assert_string_equal(room->trace,
                        "First.Method Second.Method Third.Method Fourth.Method Fifth.Method done ");
    json_decref(reply);
    assert_string_equal(room_end(room), "|{\"N\":1} |{} |{} fin(2) Unknown allocation|{} fin(4) "
                                        "rpc: can't find method Fifth.Method|{} fin(6) ");
}

static void ask_and_leave(struct rpc_peer *peer)
{
    if (!peer_begin(peer))
        return;
    peer_open(peer, 2, 1);
    peer_ask(peer, 2, "First.Method");
    peer_say(peer, P_UPDATE, P_FIN, 2, 0, NULL);
    peer_open(peer, 4, 1);
    peer_ask(peer, 4, "Second.Method");
    peer_say(peer, P_UPDATE, P_RST, 4, 0, NULL);
    peer_done(peer);
}

static struct rpc_called *first_called;

static void keep_first(struct rpc_room *room)
{
    if (first_called == NULL)
        first_called = room->called;
}

static void test_who_does_not_wait_is_answered_nothing(void **state)
{
    ROOM;

    first_called = NULL;
    room->on_note = keep_first;
    room_begin(room, ask_and_leave);
    assert_string_equal(room_wait(room, 3), "First.Method Second.Method done ");
    rpc_answer(first_called, NULL);
    rpc_refuse(room->called, "too late");
    assert_string_equal(room_end(room), "fin(2) ");
}

static void ask_nonsense(struct rpc_peer *peer)
{
    char name[RPC_METHOD_SIZE + 1] = {0};

    if (!peer_begin(peer))
        return;
    memset(name, 'x', RPC_METHOD_SIZE);
    peer_open(peer, 2, 9); /* no such head */
    peer_open(peer, 4, 1);
    peer_send(peer, 4, "\xc1", 1);
    peer_open(peer, 6, 1);
    peer_give(peer, 6, json_pack("{s:s}", "ServiceMethod", "No.Number"));
    peer_open(peer, 8, 1);
    peer_give(peer, 8, json_pack("{s:i, s:i}", "ServiceMethod", 1, "Seq", 1));
    peer_open(peer, 10, 1);
    peer_ask(peer, 10, name);
    peer_open(peer, 12, 5);
    peer_give(peer, 12, json_pack("{s:i}", "Method", 1));
    peer_open(peer, 14, 5);
    peer_give(peer, 14, json_pack("{s:s}", "Method", name));
    peer_open(peer, 16, 5);
    peer_give(peer, 16, json_pack("{s:s}", "Method", "Known.Stream"));
    peer_give(peer, 16, json_pack("[]"));
    peer_open(peer, 18, 5);
    peer_send(peer, 18, "\xc1", 1);
    peer_done(peer);
}

static void test_what_is_no_call_ends_its_stream_alone(void **state)
{
    ROOM;

    room_begin(room, ask_nonsense);
    assert_string_equal(room_wait(room, 1), "done ");
    (void)room_end(room);
    for (unsigned id = 2; id <= 18; id += 2) {
        char text[16];

        (void)text_format(text, sizeof(text), "rst(%u) ", id);
        if (strstr(room->peer.trace, text) == NULL)
            fail_msg("stream %u goes on: %s", id, room->peer.trace);
    }
}

/* --- streaming calls --- */

static void open_streams(struct rpc_peer *peer)
{
    if (!peer_begin(peer))
        return;
    peer_open(peer, 2, 5);
    peer_give(peer, 2, json_pack("{s:s}", "Method", "Strange.Stream"));
    json_t *answer = peer_object(peer, 2);
    const char *error = json_string_value(json_object_get(answer, "Error"));
    (void)text_append(peer->trace, sizeof(peer->trace), error == NULL ? "?" : error);
    (void)text_append(peer->trace, sizeof(peer->trace), " ");
    json_decref(answer);
    (void)peer_object(peer, 2); /* its end */
    peer_open(peer, 4, 5);
    peer_give(peer, 4, json_pack("{s:s}", "Method", "Known.Stream"));
    answer = peer_object(peer, 4);
    peer_note(peer, "acknowledged", (unsigned)json_string_length(json_object_get(answer, "Error")));
    json_decref(answer);
    peer_give(peer, 4, json_pack("{s:s}", "For", "me"));
    while ((answer = peer_object(peer, 4)) != NULL) {
        peer_note(peer, "n", (unsigned)json_integer_value(json_object_get(answer, "N")));
        json_decref(answer);
    }
    peer_say(peer, P_UPDATE, P_FIN, 4, 0, NULL);
    peer_done(peer);
}

static void test_a_stream_is_opened_written_to_and_ended(void **state)
{
    ROOM;

    room_begin(room, open_streams);
    assert_string_equal(room_wait(room, 1), "Known.Stream ");
    for (int i = 0; i < 3; i++) {
        json_t *object = json_pack("{s:i}", "N", i);

        assert_true(rpc_stream_send(room->stream, object));
        json_decref(object);
    }
    rpc_stream_end(room->stream);
    assert_string_equal(room_wait(room, 1), "Known.Stream done ");
    assert_string_equal(room_end(room), "Unknown rpc method: \"Strange.Stream\" fin(2) "
                                        "acknowledged(0) n(0) n(1) n(2) fin(4) ");
}

static void leave_streams(struct rpc_peer *peer)
{
    if (!peer_begin(peer))
        return;
    for (uint32_t id = 2; id <= 4; id += 2) {
        peer_open(peer, id, 5);
        peer_give(peer, id, json_pack("{s:s}", "Method", "Known.Stream"));
        peer_give(peer, id, json_pack("{}"));
        peer_give(peer, id, json_pack("{s:s}", "Say", "hello"));
        peer_say(peer, P_UPDATE, id == 2 ? P_FIN : P_RST, id, 0, NULL);
    }
    peer_done(peer);
}

static void test_a_server_that_leaves_a_stream_is_told_and_answered(void **state)
{
    ROOM;

    room_begin(room, leave_streams);
    assert_string_equal(room_wait(room, 7), "Known.Stream hello end Known.Stream hello end done ");
    assert_string_equal(room_end(room), "fin(2) ");
}

static void open_and_read_when_asked(struct rpc_peer *peer)
{
    json_t *object;
    unsigned count = 0;

    if (!peer_begin(peer))
        return;
    peer_open(peer, 2, 5);
    peer_give(peer, 2, json_pack("{s:s}", "Method", "Known.Stream"));
    peer_give(peer, 2, json_pack("{}"));
    peer_serve(peer, 1); /* nothing more of the stream than the window lets */
    json_decref(peer_object(peer, 2));
    while ((object = peer_object(peer, 2)) != NULL) {
        json_decref(object);
        count++;
    }
    peer_note(peer, "objects", count);
    peer_done(peer);
}

static json_t *object_of(size_t bytes)
{
    char *text = malloc(bytes + 1);

    check(text != NULL);
    memset(text, 'x', bytes);
    text[bytes] = '\0';
    json_t *object = json_pack("{s:s}", "Payload", text);
    free(text);
    return object;
}

static unsigned send_until_full(struct rpc_room *room, const json_t *object)
{
    unsigned count = 1;

    while (rpc_stream_send(room->stream, object))
        assert_true(++count < 1000);
    return count;
}

static void test_who_sends_waits_for_room(void **state)
{
    ROOM;
    json_t *object = object_of(60000);
    char text[32];

    room_begin(room, open_and_read_when_asked);
    assert_string_equal(room_wait(room, 1), "Known.Stream ");
    unsigned count = send_until_full(room, object);
    assert_string_equal(room_wait(room, 1), "Known.Stream room "); /* the window takes it */
    count += send_until_full(room, object);
    (void)room_call(room, "Go.On");
    assert_string_equal(room_wait(room, 2), "Known.Stream room Go.On room ");
    rpc_stream_end(room->stream);
    json_decref(object);
    (void)room_wait(room, 1);
    (void)text_format(text, sizeof(text), "objects(%u) ", count);
    assert_non_null(strstr(room_end(room), text));
}

static void test_who_does_not_wait_loses_the_stream(void **state)
{
    ROOM;
    json_t *object = object_of(1 << 20);

    room_begin(room, open_and_read_when_asked);
    assert_string_equal(room_wait(room, 1), "Known.Stream ");
    for (unsigned i = 0; i < 6; i++)
        (void)rpc_stream_send(room->stream, object);
    assert_string_equal(room->trace, "Known.Stream "); /* never from inside */
    assert_string_equal(room_wait(room, 1), "Known.Stream end ");
    json_decref(object);
}

static void say_much(struct rpc_peer *peer)
{
    if (!peer_begin(peer))
        return;
    peer_open(peer, 2, 5);
    peer_give(peer, 2, json_pack("{s:s}", "Method", "Known.Stream"));
    peer_give(peer, 2, json_pack("{}"));
    for (unsigned i = 0; i < 20; i++)
        peer_give(peer, 2, json_pack("{s:s, s:o}", "Say", "x", "Beside", object_of(50000)));
    peer_done(peer);
}

static void hold_stream(struct rpc_room *room)
{
    if (room->stream != NULL)
        rpc_stream_hold(room->stream, true);
}

static void test_who_is_held_waits_and_loses_nothing(void **state)
{
    ROOM;

    room->on_note = hold_stream; /* after each object */
    room_begin(room, say_much);
    assert_string_equal(room_wait(room, 1), "Known.Stream ");
    for (unsigned i = 0; i < 21; i++) {
        rpc_stream_hold(room->stream, false);
        (void)room_wait(room, 1);
    }
    unsigned count = 0;
    for (const char *at = room->trace; (at = strstr(at, " x")) != NULL; at++)
        count++;
    assert_int_equal(count, 20);
    rpc_stream_end(room->stream);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, room_set_up, room_tear_down)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(test_an_address_that_is_none_is_told_at_once),
        TEST(test_nobody_listens),
        TEST(test_the_end_of_the_session_is_the_end_of_its_calls),
        TEST(test_a_server_that_hangs_up_at_once),
        TEST(test_a_server_that_breaks_the_rules_is_told_so),
        TEST(test_an_error_is_in_the_words_of_the_server_and_ends_its_stream),
        TEST(test_no_answer_in_time_is_an_end_and_a_late_one_is_nobodys),
        TEST(test_a_canceled_call_ends_from_inside_and_a_late_answer_is_nobodys),
        TEST(test_an_answer_that_is_none_ends_its_call_alone),
        TEST(test_a_server_that_leaves_ends_what_it_has_begun),
        TEST(test_more_than_can_be_is_refused_here),
        TEST(test_closing_cancels_from_inside),
        TEST(test_it_may_be_closed_from_any_callback),
        TEST(test_it_may_be_closed_when_it_has_ended),
        TEST(test_calls_wait_for_each_other_in_nothing),
        TEST(test_long_calls_and_answers_keep_to_the_windows),
        TEST(test_the_server_is_answered_now_or_later),
        TEST(test_who_does_not_wait_is_answered_nothing),
        TEST(test_what_is_no_call_ends_its_stream_alone),
        TEST(test_a_stream_is_opened_written_to_and_ended),
        TEST(test_a_server_that_leaves_a_stream_is_told_and_answered),
        TEST(test_who_sends_waits_for_room),
        TEST(test_who_does_not_wait_loses_the_stream),
        TEST(test_who_is_held_waits_and_loses_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
