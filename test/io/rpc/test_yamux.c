/* Streams in a connection: the rules are kept on our side whatever the other does, and what breaks
 * them ends it all. */
#include "io/rpc/yamux.h"
#include "test/io/scratch.h"

#include <arpa/inet.h>

enum { TRACE_SIZE = 4096, STREAMS_MAX = 300 };
enum { DATA, UPDATE, PING, GO_AWAY };
enum { SYN = 1, ACK = 2, FIN = 4, RST = 8 };

/* Somebody who has a session, and the peer's side of it by hand. */
struct side {
    struct yamux *yamux;
    char trace[TRACE_SIZE]; /* what was told, in order */
    char said[TRACE_SIZE];  /* what the peer would hear */
    struct yamux_stream *theirs[STREAMS_MAX];
    unsigned theirs_count;
    void (*on_data)(struct side *side); /* what a test does in between */
    struct yamux_stream *victim;
    size_t data_bytes; /* that the peer was sent, ever */
    struct err err;
};

static void note(struct side *side, const char *text)
{
    assert_true(text_append(side->trace, sizeof(side->trace), text));
}

static void on_data(void *ctx, const char *bytes, size_t length)
{
    struct side *side = ctx;
    char text[64];

    if (length < 20)
        (void)text_format(text, sizeof(text), "data(%.*s) ", (int)length, bytes);
    else
        (void)text_format(text, sizeof(text), "data(%zu) ", length);
    note(side, text);
    if (side->on_data != NULL)
        side->on_data(side);
}

static void on_room(void *ctx)
{
    note(ctx, "room ");
}

static void on_end(void *ctx, enum yamux_end end)
{
    note(ctx, end == YAMUX_FIN ? "fin " : end == YAMUX_RST ? "rst " : "over ");
}

static const struct yamux_stream_calls calls = {on_data, on_room, on_end};

static void on_opened(void *ctx, struct yamux_stream *stream)
{
    struct side *side = ctx;

    note(side, "opened ");
    assert_true(side->theirs_count < STREAMS_MAX);
    side->theirs[side->theirs_count++] = stream;
    yamux_give(stream, &calls, side);
}

static int set_up(void **state)
{
    struct side *side = calloc(1, sizeof(*side));

    assert_non_null(side);
    side->yamux = yamux_new(on_opened, side);
    *state = side;
    return 0;
}

static int tear_down(void **state)
{
    struct side *side = *state;

    yamux_free(side->yamux);
    free(side);
    return 0;
}

static void head(char to[12], unsigned type, unsigned flags, uint32_t id, uint32_t length)
{
    const char begin[] = {0, (char)type, 0, (char)flags};

    id = htonl(id);
    length = htonl(length);
    memcpy(to, begin, 4);
    memcpy(to + 4, &id, 4);
    memcpy(to + 8, &length, 4);
}

/* The peer says so; ERR_*. */
static int say(struct side *side, unsigned type, unsigned flags, uint32_t id, uint32_t length)
{
    char bytes[12];

    head(bytes, type, flags, id, length);
    return yamux_take(side->yamux, bytes, sizeof(bytes), &side->err);
}

static int say_data(struct side *side, unsigned flags, uint32_t id, const char *text)
{
    int code = say(side, DATA, flags, id, (uint32_t)strlen(text));

    return code != 0 ? code : yamux_take(side->yamux, text, strlen(text), &side->err);
}

static int say_bytes(struct side *side, uint32_t id, size_t length)
{
    char *bytes = calloc(1, length);
    int code = say(side, DATA, 0, id, (uint32_t)length);

    assert_non_null(bytes);
    if (code == 0)
        code = yamux_take(side->yamux, bytes, length, &side->err);
    free(bytes);
    return code;
}

static const char *flags_text(unsigned flags)
{
    static const char *const texts[] = {"", "+syn", "+ack", "", "+fin", "", "", "", "+rst"};

    assert_true(flags < COUNT_OF(texts));
    return texts[flags];
}

/* What the peer hears by now: "update+syn 1 0, data 1 (abc)". */
static const char *heard(struct side *side)
{
    static const char *const types[] = {"data", "update", "ping", "goaway"};
    struct buffer *out;

    side->said[0] = '\0';
    while (buffer_length(out = yamux_out(side->yamux)) > 0) {
        const char *bytes = buffer_text(out);
        uint32_t id, length;
        char text[80];

        assert_true(buffer_length(out) >= 12 && bytes[0] == 0 && bytes[1] <= 3);
        memcpy(&id, bytes + 4, 4);
        memcpy(&length, bytes + 8, 4);
        length = ntohl(length);
        (void)text_format(text, sizeof(text), "%s%s %u %u, ", types[(int)bytes[1]],
                          flags_text((unsigned)bytes[3]), ntohl(id), length);
        if (bytes[1] == DATA) {
            assert_true(buffer_length(out) >= 12 + length && length <= YAMUX_FRAME_MAX);
            side->data_bytes += length;
            if (length < 20)
                (void)text_format(text, sizeof(text), "data %u (%.*s), ", ntohl(id), (int)length,
                                  bytes + 12);
        }
        buffer_drop(out, 12 + (bytes[1] == DATA ? length : 0));
        if (strlen(side->said) + strlen(text) < sizeof(side->said))
            (void)text_append(side->said, sizeof(side->said), text);
    }
    return side->said;
}

static const char *told(struct side *side)
{
    static char text[TRACE_SIZE];

    memcpy(text, side->trace, sizeof(text));
    side->trace[0] = '\0';
    return text;
}

static struct yamux_stream *open_stream(struct side *side)
{
    return yamux_open(side->yamux, &calls, side, "h", 1);
}

/* --- unhappy --- */

static void test_what_breaks_the_rules_ends_it(void **state)
{
    static const struct {
        const char *what;
        uint8_t version;
        unsigned type, flags;
        uint32_t id, length;
    } rows[] = {
        {"a version", 1, DATA, 0, 1, 0},
        {"a kind", 0, 4, 0, 1, 0},
        {"a stream with a number of ours", 0, UPDATE, SYN, 3, 0},
        {"a stream without a number", 0, UPDATE, SYN, 0, 0},
        {"a stream twice", 0, UPDATE, SYN, 2, 0},
        {"more than a window", 0, DATA, 0, 1, YAMUX_WINDOW + 1},
        {"more than a window, with its first frame", 0, DATA, SYN, 4, YAMUX_WINDOW + 1},
        {"more than a window for nobody", 0, DATA, 0, 99, YAMUX_WINDOW + 1},
        {"a window without bounds", 0, UPDATE, 0, 1, UINT32_MAX},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        void *made;
        char bytes[12];

        (void)set_up(&made);
        struct side *side = made;
        (void)open_stream(side);
        assert_int_equal(say(side, UPDATE, SYN, 2, 0), 0);
        head(bytes, rows[i].type, rows[i].flags, rows[i].id, rows[i].length);
        bytes[0] = (char)rows[i].version;
        if (yamux_take(side->yamux, bytes, sizeof(bytes), &side->err) != ERR_CORRUPT)
            fail_msg("%s is taken", rows[i].what);
        assert_int_equal(side->err.code, ERR_CORRUPT);
        (void)heard(side);
        yamux_complain(side->yamux);
        assert_string_equal(heard(side), "goaway 0 1, ");
        (void)tear_down(&made);
    }
}

static void test_a_window_is_the_sum_of_what_came(void **state)
{
    struct side *side = *state;

    (void)open_stream(side);
    yamux_hold(yamux_open(side->yamux, &calls, side, "x", 1), true);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(say_bytes(side, 3, YAMUX_WINDOW / 4), 0);
    assert_int_equal(say_bytes(side, 1, YAMUX_WINDOW), 0); /* another one's is its own */
    assert_int_equal(say_bytes(side, 3, 1), ERR_CORRUPT);
}

static void test_the_peer_ends_the_session(void **state)
{
    struct side *side = *state;

    (void)open_stream(side);
    assert_int_equal(say(side, GO_AWAY, 0, 0, 2), ERR_IO);
    assert_true(yamux_is_leaving(side->yamux));
    yamux_end(side->yamux);
    assert_string_equal(told(side), "over ");
    assert_null(open_stream(side));
}

static void test_who_leaves_takes_no_more_streams_and_ends_those_there_are(void **state)
{
    struct side *side = *state;
    struct yamux_stream *stream = open_stream(side);

    assert_int_equal(say(side, GO_AWAY, 0, 0, 0), 0);
    assert_true(yamux_is_leaving(side->yamux));
    assert_false(yamux_is_idle(side->yamux));
    assert_null(open_stream(side));
    assert_int_equal(say_data(side, 0, 1, "bye"), 0);
    assert_string_equal(told(side), "data(bye) ");
    yamux_finish(stream);
    assert_true(yamux_is_idle(side->yamux));
}

static void test_fin_is_said_once_and_answers_fin(void **state)
{
    struct side *side = *state;

    assert_int_equal(say(side, UPDATE, SYN, 2, 0), 0);
    assert_int_equal(say(side, UPDATE, FIN, 2, 0), 0);
    assert_string_equal(told(side), "opened fin ");
    assert_string_equal(heard(side), "update+ack 2 0, update+fin 2 0, ");
    /* again, and whatever else of it comes late, is for nobody */
    assert_int_equal(say(side, UPDATE, FIN, 2, 0), 0);
    assert_int_equal(say_data(side, 0, 2, "late"), 0);
    assert_int_equal(say(side, UPDATE, RST, 2, 0), 0);
    assert_int_equal(say(side, UPDATE, 0, 2, 10), 0);

    struct yamux_stream *ours = open_stream(side);
    yamux_finish(ours);
    assert_string_equal(heard(side), "update+syn 1 0, data 1 (h), update+fin 1 0, ");
    assert_int_equal(say_data(side, 0, 1, "late"), 0);
    assert_int_equal(say(side, UPDATE, FIN, 1, 0), 0);
    assert_string_equal(heard(side), "");
    assert_string_equal(told(side), "");
}

static void test_fin_comes_behind_the_data_of_its_frame(void **state)
{
    struct side *side = *state;

    assert_int_equal(say_data(side, SYN | FIN, 2, "all"), 0);
    assert_string_equal(told(side), "opened data(all) fin ");
    (void)open_stream(side);
    assert_int_equal(say(side, DATA, FIN, 1, 0), 0);
    assert_string_equal(told(side), "fin ");
}

static void test_fin_waits_for_what_is_to_be_sent_unless_nobody_takes_it(void **state)
{
    static char bytes[YAMUX_WINDOW + 100];
    struct side *side = *state;
    struct yamux_stream *first = open_stream(side), *second = open_stream(side);

    (void)yamux_send(first, bytes, sizeof(bytes));
    (void)yamux_send(second, bytes, sizeof(bytes));
    yamux_finish(first);
    yamux_finish(second);
    assert_null(strstr(heard(side), "fin"));
    assert_int_equal(say(side, UPDATE, 0, 1, 1000), 0);
    assert_string_equal(heard(side), "data 1 101, update+fin 1 0, ");
    assert_int_equal(say(side, UPDATE, FIN, 3, 0), 0);
    assert_string_equal(heard(side), "update+fin 3 0, ");
}

static void test_a_reset_is_the_end_at_once(void **state)
{
    static char bytes[YAMUX_WINDOW + 100];
    struct side *side = *state;
    struct yamux_stream *stream = open_stream(side);

    (void)yamux_send(stream, bytes, sizeof(bytes));
    assert_int_equal(say(side, UPDATE, RST, 1, 0), 0);
    assert_string_equal(told(side), "rst ");
    assert_string_equal(heard(side), "update+syn 1 0, data 1 (h), ");
    stream = open_stream(side);
    (void)yamux_send(stream, "lost", 4);
    yamux_reset(stream);
    assert_string_equal(heard(side), "update+syn 3 0, data 3 (h), update+rst 3 0, ");
    assert_string_equal(told(side), "");
}

static void test_the_peer_has_so_many_streams_and_no_more(void **state)
{
    struct side *side = *state;

    for (uint32_t i = 1; i <= YAMUX_THEIRS_MAX; i++)
        assert_int_equal(say(side, UPDATE, SYN, 2 * i, 0), 0);
    assert_int_equal(side->theirs_count, YAMUX_THEIRS_MAX);
    (void)heard(side);
    assert_int_equal(say_data(side, SYN, 2000, "one too many"), 0);
    assert_string_equal(heard(side), "update+rst 2000 0, ");
    assert_int_equal(say(side, UPDATE, FIN, 2, 0), 0);
    assert_int_equal(say(side, UPDATE, SYN, 2002, 0), 0);
    assert_string_equal(heard(side), "update+fin 2 0, update+ack 2002 0, ");
}

static void test_ours_wait_for_a_peer_that_does_not_answer(void **state)
{
    struct side *side = *state;

    for (unsigned i = 0; i < YAMUX_UNHEARD_MAX; i++)
        assert_non_null(open_stream(side));
    assert_null(open_stream(side));
    assert_int_equal(say(side, UPDATE, ACK, 1, 0), 0);
    assert_non_null(open_stream(side));
    assert_null(open_stream(side));
    assert_int_equal(say(side, UPDATE, ACK, 1, 0), 0); /* again, which changes nothing */
    assert_null(open_stream(side));
    assert_int_equal(say(side, UPDATE, RST, 3, 0), 0);
    assert_non_null(open_stream(side));
}

static void test_what_the_peer_does_not_end_is_reset(void **state)
{
    struct side *side = *state;
    struct yamux_stream *kept = open_stream(side);

    yamux_finish(open_stream(side));
    (void)heard(side);
    for (unsigned i = 0; i < YAMUX_LINGER_TICKS; i++) {
        yamux_tick(side->yamux);
        assert_string_equal(heard(side), "");
    }
    yamux_tick(side->yamux);
    assert_string_equal(heard(side), "update+rst 3 0, ");
    yamux_finish(kept);
    assert_string_equal(heard(side), "update+fin 1 0, ");
}

static void end_victim(struct side *side)
{
    if (side->victim != NULL)
        yamux_reset(side->victim);
    side->victim = NULL;
}

static void test_a_stream_may_be_ended_while_it_is_told(void **state)
{
    struct side *side = *state;

    side->on_data = end_victim;
    side->victim = open_stream(side);
    struct yamux_stream *other = open_stream(side);
    assert_int_equal(say_data(side, FIN, 1, "itself"), 0);
    assert_string_equal(told(side), "data(itself) ");
    side->victim = open_stream(side);
    yamux_hold(other, true);
    assert_int_equal(say_data(side, 0, 3, "later"), 0);
    assert_int_equal(say_data(side, 0, 5, "victim"), 0);
    side->victim = other;
    yamux_hold(other, false);
    yamux_run(side->yamux);
    assert_string_equal(told(side), "data(victim) data(later) ");
    (void)heard(side);
}

static void end_all(struct side *side)
{
    yamux_end(side->yamux);
}

static void test_all_may_end_while_one_is_told(void **state)
{
    struct side *side = *state;
    char bytes[12 + 2 + 12];

    side->on_data = end_all;
    (void)open_stream(side);
    (void)open_stream(side);
    head(bytes, DATA, FIN, 1, 2);
    memcpy(bytes + 12, "ab", 2);
    head(bytes + 14, UPDATE, SYN, 2, 0);
    assert_int_equal(yamux_take(side->yamux, bytes, sizeof(bytes), &side->err), 0);
    assert_string_equal(told(side), "data(ab) over over "); /* and nothing is opened after it */
}

/* --- happy --- */

static void test_frames_are_taken_however_they_are_cut(void **state)
{
    struct side *side = *state;
    char bytes[12 * 4 + 5];

    (void)open_stream(side);
    head(bytes, UPDATE, ACK, 1, 0);
    head(bytes + 12, DATA, 0, 1, 5);
    memcpy(bytes + 24, "hello", 5);
    head(bytes + 29, PING, SYN, 0, 77);
    head(bytes + 41, UPDATE, FIN, 1, 0);
    (void)heard(side);
    for (size_t i = 0; i < sizeof(bytes); i++)
        assert_int_equal(yamux_take(side->yamux, bytes + i, 1, &side->err), 0);
    assert_string_equal(told(side), "data(h) data(e) data(l) data(l) data(o) fin ");
    assert_string_equal(heard(side), "ping+ack 0 77, update+fin 1 0, ");
}

static void test_a_stream_begins_with_its_first_bytes(void **state)
{
    struct side *side = *state;
    struct yamux_stream *first = yamux_open(side->yamux, &calls, side, "\1abc", 4);

    (void)yamux_send(first, "def", 3);
    (void)open_stream(side);
    assert_string_equal(heard(side), "update+syn 1 0, data 1 (\1abc), update+syn 3 0, data 3 (h), "
                                     "data 1 (def), ");
}

static void test_no_more_is_sent_than_the_window_lets(void **state)
{
    static char bytes[3 * YAMUX_WINDOW];
    struct side *side = *state;
    struct yamux_stream *stream = open_stream(side);

    assert_int_equal(yamux_send(stream, bytes, sizeof(bytes)), sizeof(bytes));
    yamux_tell_room(stream, 2 * YAMUX_WINDOW - 100);
    (void)heard(side);
    assert_int_equal(side->data_bytes, YAMUX_WINDOW);
    assert_int_equal(yamux_waiting(stream), sizeof(bytes) - YAMUX_WINDOW + 1);
    assert_false(yamux_has_to_run(side->yamux));
    assert_int_equal(say(side, UPDATE, 0, 1, 200), 0);
    (void)heard(side);
    assert_int_equal(side->data_bytes, YAMUX_WINDOW + 200);
    assert_true(yamux_has_to_run(side->yamux));
    yamux_run(side->yamux);
    yamux_run(side->yamux);
    assert_string_equal(told(side), "room ");
}

static void test_streams_take_turns(void **state)
{
    static char bytes[YAMUX_WINDOW - 1];
    struct side *side = *state;
    struct yamux_stream *streams[3];
    size_t least = SIZE_MAX, most = 0;

    for (size_t i = 0; i < COUNT_OF(streams); i++) {
        streams[i] = open_stream(side);
        (void)yamux_send(streams[i], bytes, sizeof(bytes));
    }
    assert_true(buffer_length(yamux_out(side->yamux)) < 2 * YAMUX_OUT_FULL);
    for (size_t i = 0; i < COUNT_OF(streams); i++) {
        size_t waiting = yamux_waiting(streams[i]);

        least = waiting < least ? waiting : least;
        most = waiting > most ? waiting : most;
    }
    assert_true(most - least <= YAMUX_FRAME_MAX);
    (void)heard(side);
    assert_int_equal(side->data_bytes, COUNT_OF(streams) * YAMUX_WINDOW);
}

static void test_the_window_is_given_again_as_it_is_taken(void **state)
{
    struct side *side = *state;
    struct yamux_stream *stream = open_stream(side);

    (void)heard(side);
    assert_int_equal(say_bytes(side, 1, YAMUX_WINDOW / 2 - 1), 0);
    assert_string_equal(heard(side), "");
    assert_int_equal(say_bytes(side, 1, 11), 0);
    assert_string_equal(heard(side), "update 1 131082, ");
    yamux_hold(stream, true);
    assert_int_equal(say_bytes(side, 1, YAMUX_WINDOW / 2), 0);
    assert_int_equal(say_bytes(side, 1, YAMUX_WINDOW / 2), 0);
    (void)told(side);
    yamux_run(side->yamux);
    assert_string_equal(heard(side), "");
    yamux_hold(stream, false);
    assert_true(yamux_has_to_run(side->yamux));
    yamux_run(side->yamux);
    assert_string_equal(told(side), "data(262144) ");
    assert_string_equal(heard(side), "update 1 262144, ");
    assert_int_equal(say_bytes(side, 1, YAMUX_WINDOW), 0);
}

static void test_pings_go_both_ways(void **state)
{
    struct side *side = *state;

    assert_true(yamux_is_answered(side->yamux));
    yamux_ping(side->yamux);
    assert_false(yamux_is_answered(side->yamux));
    assert_int_equal(say(side, PING, ACK, 0, 0), 0); /* an older one */
    assert_false(yamux_is_answered(side->yamux));
    assert_int_equal(say(side, PING, SYN, 0, 1), 0); /* his own */
    assert_false(yamux_is_answered(side->yamux));
    assert_int_equal(say(side, PING, ACK, 0, 1), 0);
    assert_true(yamux_is_answered(side->yamux));
    assert_string_equal(heard(side), "ping+syn 0 1, ping+ack 0 1, ");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(test_what_breaks_the_rules_ends_it),
        TEST(test_a_window_is_the_sum_of_what_came),
        TEST(test_the_peer_ends_the_session),
        TEST(test_who_leaves_takes_no_more_streams_and_ends_those_there_are),
        TEST(test_fin_is_said_once_and_answers_fin),
        TEST(test_fin_comes_behind_the_data_of_its_frame),
        TEST(test_fin_waits_for_what_is_to_be_sent_unless_nobody_takes_it),
        TEST(test_a_reset_is_the_end_at_once),
        TEST(test_the_peer_has_so_many_streams_and_no_more),
        TEST(test_ours_wait_for_a_peer_that_does_not_answer),
        TEST(test_what_the_peer_does_not_end_is_reset),
        TEST(test_a_stream_may_be_ended_while_it_is_told),
        TEST(test_all_may_end_while_one_is_told),
        TEST(test_frames_are_taken_however_they_are_cut),
        TEST(test_a_stream_begins_with_its_first_bytes),
        TEST(test_no_more_is_sent_than_the_window_lets),
        TEST(test_streams_take_turns),
        TEST(test_the_window_is_given_again_as_it_is_taken),
        TEST(test_pings_go_both_ways),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
