/*
 * The frames of a peer, in pieces: the first byte says how they are cut, the second how many
 * streams are ours.  What comes in a stream says what its owner does: sends, waits, ends it, or
 * another.
 *
 * Whatever the peer does, what he hears are whole frames that keep the rules: a stream begins once,
 * ends once, and says nothing after its end.
 */
#include "test/fuzz.h"

#include "io/rpc/yamux.h"

#include <arpa/inet.h>

enum { STREAMS_MAX = 1024, HEADER_SIZE = 12 };
enum { DATA, UPDATE, PING, GO_AWAY };
enum { SYN = 1, ACK = 2, FIN = 4, RST = 8 };

/* What somebody has. */
struct owned {
    struct yamux_stream *stream; /* NULL: not any more */
};

static struct {
    struct owned owned[STREAMS_MAX];
    unsigned count;
    struct yamux *yamux;
    bool over;
} room;

/* What the peer has heard of a stream. */
static struct heard {
    uint32_t id;
    bool finished, reset;
} heard[STREAMS_MAX];
static unsigned heard_count;

static void on_data(void *ctx, const char *bytes, size_t length);
static void on_room(void *ctx);
static void on_end(void *ctx, enum yamux_end end);

static const struct yamux_stream_calls calls = {on_data, on_room, on_end};

static void own(struct yamux_stream *stream)
{
    if (stream == NULL)
        return;
    if (room.count == STREAMS_MAX) {
        yamux_reset(stream);
        return;
    }
    room.owned[room.count].stream = stream;
    yamux_give(stream, &calls, &room.owned[room.count++]);
}

static void finish(struct owned *owned)
{
    struct yamux_stream *stream = owned->stream;

    owned->stream = NULL;
    if (stream != NULL)
        yamux_finish(stream);
}

static void reset(struct owned *owned)
{
    struct yamux_stream *stream = owned->stream;

    owned->stream = NULL;
    if (stream != NULL)
        yamux_reset(stream);
}

static void act(struct owned *owned, char what)
{
    static const char bytes[3000];
    struct owned *other = &room.owned[(unsigned char)what % room.count];

    switch ((unsigned char)what % 10) {
    case 0:
        (void)yamux_send(owned->stream, bytes, sizeof(bytes));
        break;
    case 1:
        yamux_tell_room(owned->stream, 100);
        break;
    case 2:
        yamux_hold(owned->stream, true);
        break;
    case 3:
        finish(owned);
        break;
    case 4:
        reset(owned);
        break;
    case 5:
        finish(other);
        break;
    case 6:
        reset(other);
        break;
    case 7:
        own(yamux_open(room.yamux, &calls, NULL, "h", 1));
        break;
    case 8:
        yamux_tick(room.yamux);
        break;
    default:
        if (other->stream != NULL)
            yamux_hold(other->stream, false);
    }
}

static void on_data(void *ctx, const char *bytes, size_t length)
{
    struct owned *owned = ctx;

    check(owned->stream != NULL && length > 0);
    act(owned, bytes[length - 1]);
}

static void on_room(void *ctx)
{
    const struct owned *owned = ctx;

    check(owned->stream != NULL && yamux_waiting(owned->stream) <= 100);
}

static void on_end(void *ctx, enum yamux_end end)
{
    struct owned *owned = ctx;

    check(owned->stream != NULL);
    check(implies(end == YAMUX_OVER, room.over));
    owned->stream = NULL;
}

static void on_opened(void *ctx, struct yamux_stream *stream)
{
    (void)ctx;
    own(stream);
}

/* The last of the streams that had this number, those of the peer's may begin again. */
static struct heard *find(uint32_t id)
{
    for (unsigned i = heard_count; i-- > 0;) {
        if (heard[i].id == id)
            return &heard[i];
    }
    return NULL;
}

static void hear_stream(unsigned type, unsigned flags, uint32_t id)
{
    struct heard *stream = find(id);

    if ((flags & (SYN | ACK)) != 0 && heard_count < STREAMS_MAX) {
        check(((flags & SYN) != 0) == (id % 2 == 1));
        check(implies((flags & SYN) != 0, stream == NULL));
        heard[heard_count++] = (struct heard){.id = id};
        return;
    }
    if (stream == NULL) {
        check(flags == RST || heard_count == STREAMS_MAX); /* one too many */
        return;
    }
    check(!stream->reset || flags == RST);
    check(implies(stream->finished, type == UPDATE && (flags & FIN) == 0));
    stream->finished |= (flags & FIN) != 0;
    stream->reset |= (flags & RST) != 0;
}

static void hear(void)
{
    struct buffer *out;

    while (buffer_length(out = yamux_out(room.yamux)) > 0) {
        const uint8_t *bytes = (const uint8_t *)buffer_text(out);
        uint32_t id, length;

        check(buffer_length(out) >= HEADER_SIZE && bytes[0] == 0 && bytes[1] <= GO_AWAY);
        memcpy(&id, bytes + 4, sizeof(id));
        memcpy(&length, bytes + 8, sizeof(length));
        length = bytes[1] == DATA ? ntohl(length) : 0;
        check(length <= YAMUX_FRAME_MAX && buffer_length(out) >= HEADER_SIZE + length);
        check((id == 0) == (bytes[1] >= PING));
        if (bytes[1] < PING)
            hear_stream(bytes[1], bytes[3], ntohl(id));
        buffer_drop(out, HEADER_SIZE + length);
    }
}

int LLVMFuzzerInitialize(int *arguments_count, char ***arguments)
{
    (void)arguments_count;
    (void)arguments;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int code = 0;

    if (size < 2)
        return 0;
    memset(&room, 0, sizeof(room));
    memset(heard, 0, sizeof(heard));
    heard_count = 0;
    room.yamux = yamux_new(on_opened, NULL);
    for (unsigned i = 0; i < data[1] % 8u; i++)
        own(yamux_open(room.yamux, &calls, NULL, "h", 1));
    size_t step = data[0] > 0 ? data[0] : 1;
    for (size_t at = 2; at < size && code == 0; at += step) {
        struct err err = {0};

        code = yamux_take(room.yamux, (const char *)data + at, size - at < step ? size - at : step,
                          &err);
        check(code == err.code);
        hear();
        yamux_run(room.yamux);
    }
    room.over = true;
    yamux_end(room.yamux);
    for (unsigned i = 0; i < room.count; i++)
        check(room.owned[i].stream == NULL);
    yamux_free(room.yamux);
    return 0;
}
