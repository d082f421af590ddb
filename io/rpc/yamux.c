/*
 * The rules of yamux, as Go's hashicorp/yamux keeps them: frames of 12 bytes and a length, windows
 * for data only, streams of ours odd, of the peer's even.
 *
 * A callback may end any stream, also the one that it is called for: between callbacks streams are
 * known by their number.
 */
#include "io/rpc/yamux.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER_SIZE = 12 };

enum { DATA, WINDOW_UPDATE, PING, GO_AWAY };
enum { SYN = 1, ACK = 2, FIN = 4, RST = 8 };
enum { GO_AWAY_NORMAL, GO_AWAY_PROTOCOL };

struct yamux_stream {
    struct yamux *yamux;
    uint32_t id;
    const struct yamux_stream_calls *calls; /* NULL: nobody wants to hear of it */
    void *ctx;
    uint32_t window;   /* that the peer lets us send */
    uint32_t to_come;  /* that we let him send */
    uint32_t taken;    /* of what came, and he has not been told */
    struct buffer out; /* what waits for the window */
    struct buffer in;  /* what has come while it was held */
    size_t room_at;    /* on_room comes when no more than this waits */
    bool wants_room, held, heard /* the peer knows of it */;
    bool ends, fin_sent; /* FIN is to be sent behind what waits; is sent */
    unsigned ticks;      /* since it was to end and nothing of it went */
};

struct yamux {
    void (*on_opened)(void *ctx, struct yamux_stream *stream);
    void *ctx;
    struct {
        struct yamux_stream **items;
        size_t count, size;
    } streams;
    size_t turn;      /* whose it is to send */
    uint32_t next_id; /* of ours */
    unsigned theirs;  /* how many streams are the peer's */
    unsigned unheard; /* how many of ours it has not acknowledged */
    struct buffer out;
    char header[HEADER_SIZE]; /* of the frame that comes */
    size_t header_length;
    uint32_t data_left, data_id; /* of a data frame that comes, and whose it is */
    bool data_fin;               /* it is the last */
    bool leaving, over;
    uint32_t ping, pong; /* the last that was asked and answered */
};

struct frame {
    uint8_t version, type;
    uint16_t flags;
    uint32_t id, length;
};

/* --- what we say --- */

static void say(struct yamux *yamux, uint8_t type, uint16_t flags, uint32_t id, uint32_t length)
{
    char header[HEADER_SIZE] = {0, (char)type, (char)(flags >> 8), (char)flags};

    id = htonl(id);
    length = htonl(length);
    memcpy(header + 4, &id, sizeof(id));
    memcpy(header + 8, &length, sizeof(length));
    check(buffer_append(&yamux->out, header, sizeof(header), SIZE_MAX));
}

static bool is_ours(const struct yamux_stream *stream)
{
    return stream->id % 2 == 1;
}

static struct yamux_stream *find(const struct yamux *yamux, uint32_t id)
{
    for (size_t i = 0; i < yamux->streams.count; i++) {
        if (yamux->streams.items[i]->id == id)
            return yamux->streams.items[i];
    }
    return NULL;
}

static struct yamux_stream *add_stream(struct yamux *yamux, uint32_t id)
{
    struct yamux_stream *stream = calloc(1, sizeof(*stream));

    check(stream != NULL);
    stream->yamux = yamux;
    stream->id = id;
    stream->window = stream->to_come = YAMUX_WINDOW;
    *list_more(&yamux->streams) = stream;
    return stream;
}

static void hear(struct yamux_stream *stream)
{
    if (!stream->heard && is_ours(stream))
        stream->yamux->unheard--;
    stream->heard = true;
}

static void remove_stream(struct yamux_stream *stream)
{
    struct yamux *yamux = stream->yamux;
    size_t i = 0;

    while (yamux->streams.items[i] != stream)
        i++;
    yamux->streams.items[i] = yamux->streams.items[--yamux->streams.count];
    if (is_ours(stream))
        hear(stream);
    else
        yamux->theirs--;
    buffer_close(&stream->out);
    buffer_close(&stream->in);
    free(stream);
    list_release(&yamux->streams);
}

/* It is gone, and who has it hears so. */
static void end_stream(struct yamux_stream *stream, enum yamux_end end)
{
    const struct yamux_stream_calls *calls = stream->calls;
    void *ctx = stream->ctx;

    remove_stream(stream);
    if (calls != NULL)
        calls->on_end(ctx, end);
}

static void say_fin(struct yamux_stream *stream)
{
    check(!stream->fin_sent);
    stream->fin_sent = true;
    say(stream->yamux, WINDOW_UPDATE, FIN, stream->id, 0);
}

/* Lets the peer send as much as was taken; not for every byte, and not where nothing is to come. */
static void give_window(struct yamux_stream *stream, size_t taken)
{
    stream->taken += (uint32_t)taken;
    if (stream->taken < YAMUX_WINDOW / 2 || stream->ends)
        return;
    stream->to_come += stream->taken;
    say(stream->yamux, WINDOW_UPDATE, 0, stream->id, stream->taken);
    stream->taken = 0;
}

/* A frame of what waits in STREAM; false: nothing may go. */
static bool say_some(struct yamux_stream *stream)
{
    size_t length = buffer_length(&stream->out);

    length = length < stream->window ? length : stream->window;
    length = length < YAMUX_FRAME_MAX ? length : YAMUX_FRAME_MAX;
    if (length == 0 || stream->fin_sent)
        return false;
    say(stream->yamux, DATA, 0, stream->id, (uint32_t)length);
    check(buffer_append(&stream->yamux->out, buffer_text(&stream->out), length, SIZE_MAX));
    buffer_drop(&stream->out, length);
    stream->window -= (uint32_t)length;
    stream->ticks = 0;
    if (stream->ends && buffer_length(&stream->out) == 0)
        say_fin(stream);
    return true;
}

struct buffer *yamux_out(struct yamux *yamux)
{
    size_t silent = 0;

    while (silent < yamux->streams.count && buffer_length(&yamux->out) < YAMUX_OUT_FULL) {
        yamux->turn = (yamux->turn + 1) % yamux->streams.count;
        silent = say_some(yamux->streams.items[yamux->turn]) ? 0 : silent + 1;
    }
    return &yamux->out;
}

/* --- what the peer says --- */

static int broken(struct err *err, const char *rule)
{
    return err_set(err, ERR_CORRUPT, "the peer breaks the rules of yamux: %s", rule);
}

static struct frame frame_of(const char *header)
{
    const uint8_t *bytes = (const uint8_t *)header;
    struct frame frame = {
        .version = bytes[0], .type = bytes[1], .flags = (uint16_t)(bytes[2] << 8 | bytes[3])};

    memcpy(&frame.id, header + 4, sizeof(frame.id));
    memcpy(&frame.length, header + 8, sizeof(frame.length));
    frame.id = ntohl(frame.id);
    frame.length = ntohl(frame.length);
    return frame;
}

static int take_syn(struct yamux *yamux, uint32_t id, struct err *err)
{
    if (id == 0 || id % 2 == 1)
        return broken(err, "a stream of the peer's has a number of ours");
    if (find(yamux, id) != NULL)
        return broken(err, "a stream begins twice");
    if (yamux->theirs == YAMUX_THEIRS_MAX) {
        say(yamux, WINDOW_UPDATE, RST, id, 0);
        return 0;
    }
    yamux->theirs++;
    say(yamux, WINDOW_UPDATE, ACK, id, 0);
    yamux->on_opened(yamux->ctx, add_stream(yamux, id));
    return 0;
}

static void take_fin(struct yamux_stream *stream)
{
    if (!stream->fin_sent)
        say_fin(stream);
    end_stream(stream, YAMUX_FIN);
}

static int take_window(struct yamux *yamux, const struct frame *frame, struct err *err)
{
    struct yamux_stream *stream = find(yamux, frame->id);

    if (stream == NULL)
        return 0;
    if (__builtin_add_overflow(stream->window, frame->length, &stream->window))
        return broken(err, "a window overflows");
    if ((frame->flags & FIN) != 0)
        take_fin(stream);
    return 0;
}

static int take_data_header(struct yamux *yamux, const struct frame *frame, struct err *err)
{
    struct yamux_stream *stream = find(yamux, frame->id);

    /* What is for nobody has been on its way when the stream ended, and was within a window. */
    if (frame->length > (stream == NULL ? YAMUX_WINDOW : stream->to_come))
        return broken(err, "more data than the window lets");
    yamux->data_left = frame->length;
    yamux->data_id = frame->id;
    yamux->data_fin = (frame->flags & FIN) != 0;
    if (stream != NULL)
        stream->to_come -= frame->length;
    if (stream != NULL && yamux->data_fin && frame->length == 0)
        take_fin(stream);
    return 0;
}

/* The flags that any frame of a stream may have, but for FIN, which is behind the data. */
static int take_flags(struct yamux *yamux, const struct frame *frame, struct err *err)
{
    if ((frame->flags & SYN) != 0) {
        int code = take_syn(yamux, frame->id, err);
        if (code != 0)
            return code;
    }
    struct yamux_stream *stream = find(yamux, frame->id);
    if (stream != NULL && (frame->flags & ACK) != 0)
        hear(stream);
    if (stream != NULL && (frame->flags & RST) != 0)
        end_stream(stream, YAMUX_RST);
    return 0;
}

static int take_go_away(struct yamux *yamux, const struct frame *frame, struct err *err)
{
    yamux->leaving = true;
    return frame->length == GO_AWAY_NORMAL
               ? 0
               : err_set(err, ERR_IO, "the peer ends the session, code %u", frame->length);
}

static int take_frame(struct yamux *yamux, const struct frame *frame, struct err *err)
{
    if (frame->version != 0)
        return broken(err, "a version that is not 0");
    if (frame->type == PING && (frame->flags & SYN) != 0)
        say(yamux, PING, ACK, 0, frame->length);
    else if (frame->type == PING)
        yamux->pong = frame->length;
    else if (frame->type == GO_AWAY)
        return take_go_away(yamux, frame, err);
    else if (frame->type > GO_AWAY)
        return broken(err, "a frame of no kind");
    if (frame->type == PING)
        return 0;
    int code = take_flags(yamux, frame, err);
    if (code != 0)
        return code;
    return frame->type == DATA ? take_data_header(yamux, frame, err)
                               : take_window(yamux, frame, err);
}

/* Gives BYTES to who has the stream ID, if anybody has. */
static void deliver(struct yamux *yamux, uint32_t id, const char *bytes, size_t length)
{
    struct yamux_stream *stream = find(yamux, id);

    if (stream == NULL || stream->calls == NULL)
        return; /* the window is not given again: it has an end */
    if (stream->held || buffer_length(&stream->in) > 0) {
        check(buffer_append(&stream->in, bytes, length, YAMUX_WINDOW));
        return;
    }
    stream->calls->on_data(stream->ctx, bytes, length);
    stream = find(yamux, id);
    if (stream != NULL)
        give_window(stream, length);
}

static void take_data(struct yamux *yamux, const char *bytes, size_t length)
{
    yamux->data_left -= (uint32_t)length;
    deliver(yamux, yamux->data_id, bytes, length);
    struct yamux_stream *stream = find(yamux, yamux->data_id);
    if (stream != NULL && yamux->data_left == 0 && yamux->data_fin)
        take_fin(stream);
}

int yamux_take(struct yamux *yamux, const char *bytes, size_t length, struct err *err)
{
    while (length > 0 && !yamux->over) {
        bool is_data = yamux->data_left > 0;
        size_t part = is_data ? yamux->data_left : HEADER_SIZE - yamux->header_length;

        part = part < length ? part : length;
        if (is_data) {
            take_data(yamux, bytes, part);
        } else {
            memcpy(yamux->header + yamux->header_length, bytes, part);
            yamux->header_length += part;
        }
        bytes += part;
        length -= part;
        if (is_data || yamux->header_length < HEADER_SIZE)
            continue;
        yamux->header_length = 0;
        const struct frame frame = frame_of(yamux->header);
        int code = take_frame(yamux, &frame, err);
        if (code != 0)
            return code;
    }
    return 0;
}

/* --- what happens later --- */

static bool has_room(const struct yamux_stream *stream)
{
    return stream->wants_room && buffer_length(&stream->out) <= stream->room_at;
}

static bool has_data(const struct yamux_stream *stream)
{
    return !stream->held && buffer_length(&stream->in) > 0;
}

bool yamux_has_to_run(const struct yamux *yamux)
{
    for (size_t i = 0; i < yamux->streams.count; i++) {
        if (has_room(yamux->streams.items[i]) || has_data(yamux->streams.items[i]))
            return true;
    }
    return false;
}

static void tell_data(struct yamux *yamux, struct yamux_stream *stream)
{
    struct buffer in = stream->in;
    uint32_t id = stream->id;

    stream->in = (struct buffer){0};
    deliver(yamux, id, buffer_text(&in), buffer_length(&in));
    buffer_close(&in);
}

static void tell_room(struct yamux_stream *stream)
{
    stream->wants_room = false;
    if (stream->calls != NULL)
        stream->calls->on_room(stream->ctx);
}

/* Each is told once, though what it hears may make others worth telling. */
void yamux_run(struct yamux *yamux)
{
    for (size_t i = 0; i < yamux->streams.count; i++) {
        uint32_t id = yamux->streams.items[i]->id;

        if (has_data(yamux->streams.items[i]))
            tell_data(yamux, yamux->streams.items[i]);
        struct yamux_stream *stream = find(yamux, id);
        if (stream != NULL && has_room(stream))
            tell_room(stream);
    }
}

void yamux_tick(struct yamux *yamux)
{
    for (size_t i = yamux->streams.count; i-- > 0;) {
        struct yamux_stream *stream = yamux->streams.items[i];

        if (stream->calls == NULL && stream->ends && ++stream->ticks > YAMUX_LINGER_TICKS)
            yamux_reset(stream);
    }
}

void yamux_end(struct yamux *yamux)
{
    yamux->leaving = yamux->over = true; /* nobody opens another one */
    while (yamux->streams.count > 0)
        end_stream(yamux->streams.items[yamux->streams.count - 1], YAMUX_OVER);
}

void yamux_ping(struct yamux *yamux)
{
    say(yamux, PING, SYN, 0, ++yamux->ping);
}

bool yamux_is_answered(const struct yamux *yamux)
{
    return yamux->ping == yamux->pong;
}

void yamux_complain(struct yamux *yamux)
{
    say(yamux, GO_AWAY, 0, 0, GO_AWAY_PROTOCOL);
}

bool yamux_owes(const struct yamux *yamux)
{
    return yamux->theirs > 0 || buffer_length(&yamux->out) > 0;
}

bool yamux_is_idle(const struct yamux *yamux)
{
    for (size_t i = 0; i < yamux->streams.count; i++) {
        if (is_ours(yamux->streams.items[i]) && yamux->streams.items[i]->calls != NULL)
            return false;
    }
    return true;
}

bool yamux_is_leaving(const struct yamux *yamux)
{
    return yamux->leaving;
}

/* --- streams --- */

struct yamux_stream *yamux_open(struct yamux *yamux, const struct yamux_stream_calls *calls,
                                void *ctx, const char *bytes, size_t length)
{
    /* Numbers are not used twice; a session with two thousand million calls has to end. */
    if (yamux->leaving || yamux->unheard == YAMUX_UNHEARD_MAX || yamux->next_id > UINT32_MAX - 2)
        return NULL;
    struct yamux_stream *stream = add_stream(yamux, yamux->next_id);
    yamux->next_id += 2;
    yamux->unheard++;
    yamux_give(stream, calls, ctx);
    say(yamux, WINDOW_UPDATE, SYN, stream->id, 0);
    (void)yamux_send(stream, bytes, length);
    (void)say_some(stream);
    return stream;
}

void yamux_give(struct yamux_stream *stream, const struct yamux_stream_calls *calls, void *ctx)
{
    stream->calls = calls;
    stream->ctx = ctx;
}

size_t yamux_send(struct yamux_stream *stream, const void *bytes, size_t length)
{
    check(!stream->ends);
    check(buffer_append(&stream->out, bytes, length, SIZE_MAX));
    return buffer_length(&stream->out);
}

size_t yamux_waiting(const struct yamux_stream *stream)
{
    return buffer_length(&stream->out);
}

void yamux_tell_room(struct yamux_stream *stream, size_t waiting)
{
    stream->wants_room = true;
    stream->room_at = waiting;
}

void yamux_hold(struct yamux_stream *stream, bool held)
{
    stream->held = held;
}

void yamux_finish(struct yamux_stream *stream)
{
    stream->calls = NULL;
    stream->ends = true;
    buffer_close(&stream->in);
    if (buffer_length(&stream->out) == 0)
        say_fin(stream);
}

void yamux_reset(struct yamux_stream *stream)
{
    say(stream->yamux, WINDOW_UPDATE, RST, stream->id, 0);
    remove_stream(stream);
}

struct yamux *yamux_new(void (*on_opened)(void *ctx, struct yamux_stream *stream), void *ctx)
{
    struct yamux *yamux = calloc(1, sizeof(*yamux));

    check(yamux != NULL);
    yamux->on_opened = on_opened;
    yamux->ctx = ctx;
    yamux->next_id = 1;
    return yamux;
}

void yamux_free(struct yamux *yamux)
{
    if (yamux == NULL)
        return;
    while (yamux->streams.count > 0)
        remove_stream(yamux->streams.items[yamux->streams.count - 1]);
    buffer_close(&yamux->out);
    free(yamux);
}
