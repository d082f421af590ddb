/* WebSockets: what one side says the other hears, however it is cut, and nothing that is none. */
#include "io/websocket.h"

#include "test/io/scratch.h"

enum { MESSAGE_MAX = 1000, WIRE_SIZE = 16384 };

struct side {
    struct websocket *socket;
    char wire[WIRE_SIZE]; /* that it has sent */
    size_t wire_length;
    char heard[WIRE_SIZE];
    int count;
};

static void on_send(void *ctx, const void *bytes, size_t length)
{
    struct side *side = ctx;

    assert_true(side->wire_length + length <= WIRE_SIZE);
    memcpy(side->wire + side->wire_length, bytes, length);
    side->wire_length += length;
}

static void on_message(void *ctx, const char *bytes, size_t length)
{
    struct side *side = ctx;
    size_t used = strlen(side->heard);

    assert_true(used + length + 2 <= WIRE_SIZE);
    memcpy(side->heard + used, bytes, length);
    memcpy(side->heard + used + length, ".", 2);
    side->count++;
}

struct pair {
    struct side client, server;
};

static int open_pair(void **state)
{
    struct pair *pair = calloc(1, sizeof(*pair));
    const struct websocket_calls client = {on_send, on_message, &pair->client};
    const struct websocket_calls server = {on_send, on_message, &pair->server};

    assert_non_null(pair);
    pair->client.socket = websocket_new(true, MESSAGE_MAX, &client);
    pair->server.socket = websocket_new(false, MESSAGE_MAX, &server);
    *state = pair;
    return 0;
}

static int close_pair(void **state)
{
    struct pair *pair = *state;

    websocket_free(pair->client.socket);
    websocket_free(pair->server.socket);
    free(pair);
    return 0;
}

/* Hands over what FROM has sent, in pieces of STEP bytes; true if TO goes on. */
static bool pass(struct side *from, struct side *to, size_t step)
{
    bool more = true;

    for (size_t at = 0; at < from->wire_length && more; at += step)
        more = websocket_take(to->socket, from->wire + at,
                              from->wire_length - at < step ? from->wire_length - at : step);
    from->wire_length = 0;
    return more;
}

static void test_messages_are_heard_however_they_are_cut(void **state)
{
    struct pair *pair = *state;

    for (size_t step = 1; step < 20; step += 6) {
        pair->server.heard[0] = pair->client.heard[0] = '\0';
        websocket_send(pair->client.socket, "hello", 5);
        websocket_send(pair->client.socket, "", 0);
        websocket_send(pair->client.socket, "you", 3);
        assert_true(pass(&pair->client, &pair->server, step));
        assert_string_equal(pair->server.heard, "hello..you.");
        websocket_send(pair->server.socket, "yes", 3);
        assert_true(pass(&pair->server, &pair->client, step));
        assert_string_equal(pair->client.heard, "yes.");
    }
}

static void test_a_message_of_several_frames_is_one(void **state)
{
    struct pair *pair = *state;
    /* of a server, which masks nothing: "he" to be continued, a ping in between, "llo" */
    static const char frames[] = "\x01\x02he\x89\x01?\x80\x03llo";

    assert_true(websocket_take(pair->client.socket, frames, sizeof(frames) - 1));
    assert_string_equal(pair->client.heard, "hello.");
    assert_true(pair->client.wire_length > 0); /* the pong */
    assert_int_equal((unsigned char)pair->client.wire[0], 0x8a);
}

static void test_a_message_that_is_too_long_ends_it(void **state)
{
    struct pair *pair = *state;
    char text[MESSAGE_MAX + 1] = {0}, reason[WEBSOCKET_REASON_SIZE];

    memset(text, 'x', sizeof(text));
    websocket_send(pair->client.socket, text, MESSAGE_MAX);
    assert_true(pass(&pair->client, &pair->server, 100));
    assert_int_equal(pair->server.count, 1);
    websocket_send(pair->client.socket, text, MESSAGE_MAX + 1);
    assert_false(pass(&pair->client, &pair->server, 100));
    assert_int_equal(pair->server.count, 1);
    assert_false(pass(&pair->server, &pair->client, 100));
    assert_int_equal(websocket_closed_with(pair->client.socket, reason), 1009);
}

static void test_what_is_no_frame_ends_it(void **state)
{
    struct pair *pair = *state;
    static const char *const wrong[] = {
        "\x81\x05hello", /* a client has to mask */
        "\xc1\x80"
        "aaaa", /* an extension that nobody agreed on */
        "\x83\x80"
        "aaaa", /* no such kind */
        "\x09\xfe\x01\x01"
        "aaaa", /* a ping that is too long, in parts */
        "\x80\x80"
        "aaaa", /* continues nothing */
    };

    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        void *other = NULL;

        assert_int_equal(open_pair(&other), 0);
        struct side *server = &((struct pair *)other)->server;
        bool more = websocket_take(server->socket, wrong[i], strlen(wrong[i]));
        if (more || server->count != 0)
            fail_msg("%zu is taken", i);
        assert_int_equal(close_pair(&other), 0);
    }
    assert_int_equal(pair->server.count, 0);
}

static void test_the_end_tells_why(void **state)
{
    struct pair *pair = *state;
    char reason[WEBSOCKET_REASON_SIZE];

    assert_int_equal(websocket_closed_with(pair->client.socket, reason), 1006);
    websocket_close(pair->server.socket, WEBSOCKET_REFUSED, "no such task");
    websocket_send(pair->server.socket, "late", 4);
    assert_false(pass(&pair->server, &pair->client, 3));
    assert_int_equal(websocket_closed_with(pair->client.socket, reason), WEBSOCKET_REFUSED);
    assert_string_equal(reason, "no such task");
    assert_false(pass(&pair->client, &pair->server, 100)); /* he answers as he hears it */
    assert_int_equal(websocket_closed_with(pair->server.socket, reason), WEBSOCKET_REFUSED);
    assert_int_equal(pair->client.count, 0);
}

static void test_a_long_reason_is_cut_between_characters(void **state)
{
    struct pair *pair = *state;
    char reason[WEBSOCKET_REASON_SIZE], text[200];

    memset(text, 'x', sizeof(text));
    memcpy(text + 122, "\xc3\xa4", 2); /* its second byte has no room */
    text[199] = '\0';
    websocket_close(pair->server.socket, WEBSOCKET_INTERNAL, text);
    assert_false(pass(&pair->server, &pair->client, 100));
    (void)websocket_closed_with(pair->client.socket, reason);
    assert_int_equal(strlen(reason), 122);
}

static void test_keys_are_answered_as_the_rfc_says(void **state)
{
    char accepted[WEBSOCKET_KEY_SIZE], key[WEBSOCKET_KEY_SIZE], other[WEBSOCKET_KEY_SIZE];
    (void)state;

    assert_true(websocket_accept("dGhlIHNhbXBsZSBub25jZQ==", accepted));
    assert_string_equal(accepted, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    assert_false(websocket_accept("", accepted));
    assert_false(websocket_accept("dGhlIHNhbXBsZSBub25jZQ", accepted));
    assert_false(websocket_accept("dGhlIHNhbXBsZSBub25jZQ==x", accepted));
    websocket_key(key);
    websocket_key(other);
    assert_true(websocket_accept(key, accepted));
    assert_string_not_equal(key, other);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_pair, close_pair)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_messages_are_heard_however_they_are_cut),
        TEST(test_a_message_of_several_frames_is_one),
        TEST(test_a_message_that_is_too_long_ends_it),
        TEST(test_what_is_no_frame_ends_it),
        TEST(test_the_end_tells_why),
        TEST(test_a_long_reason_is_cut_between_characters),
        TEST(test_keys_are_answered_as_the_rfc_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
