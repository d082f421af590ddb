/* The times of a session, which are short here: a server that is silent, or takes nothing, is left;
 * one that answers is kept. */
#include "io/rpc.h"

#define RPC_PING_MS 400
#define RPC_PONG_MS 200
#define RPC_STALL_MS 100
#include "io/rpc/session.c"

#include "test/io/rpc/rpc_peer.h"

#include <poll.h>

static void read_only(struct rpc_peer *peer)
{
    char byte;

    while (peer_read(peer, &byte, 1))
        continue;
}

static void test_who_answers_no_ping_is_left(void **state)
{
    struct rpc_room *room = *state;

    room_begin(room, read_only);
    (void)room_call(room, "Any.Call");
    assert_string_equal(room_wait(room, 2), "input or output failed ended:timed out ");
    assert_string_equal(room->last.text, "the peer does not answer pings");
}

enum { FAR = 16 << 20 }; /* more than sockets hold */

static void let_and_read_nothing(struct rpc_peer *peer)
{
    char first;

    if (!peer_read(peer, &first, 1)) /* then the stream is there, too */
        return;
    peer_say(peer, P_UPDATE, 0, 1, FAR, NULL);
    while (!peer->over)
        (void)poll(NULL, 0, 1); /* the end of what is not read does not come */
}

static void test_who_takes_nothing_is_left(void **state)
{
    struct rpc_room *room = *state;
    char *text = malloc(FAR + 1);

    assert_non_null(text);
    memset(text, 'x', FAR);
    text[FAR] = '\0';
    json_t *args = json_pack("{s:s}", "Long", text);
    free(text);
    room_begin(room, let_and_read_nothing);
    (void)rpc_call(room->rpc, "Long.Call", args, PEER_MS, room_on_reply, room);
    json_decref(args);
    assert_string_equal(room_wait(room, 2), "input or output failed ended:timed out ");
    assert_string_equal(room->last.text, "the peer takes nothing any more");
}

static void count_pings(struct rpc_peer *peer)
{
    unsigned count = 0;

    if (!peer_begin(peer))
        return;
    while (count < 3) {
        struct rpc_frame frame = peer_frame(peer); /* which answers */

        count += frame.type == P_PING && frame.flags == P_SYN;
        if (frame.type == P_END)
            return;
    }
    peer_done(peer);
}

static void test_who_answers_pings_is_kept(void **state)
{
    struct rpc_room *room = *state;

    room_begin(room, count_pings);
    assert_string_equal(room_wait(room, 1), "done ");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, room_set_up, room_tear_down)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(test_who_answers_no_ping_is_left),
        TEST(test_who_takes_nothing_is_left),
        TEST(test_who_answers_pings_is_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
