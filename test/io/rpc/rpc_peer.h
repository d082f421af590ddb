/* A server that follows a script, on a thread of its own, and the one who has a session with it.
 *
 * The script reads and writes blocking, keeps what it saw in a trace, and asserts nothing: that is
 * the test's, after peer_join. */
#ifndef CAIRN_TEST_IO_RPC_PEER_H
#define CAIRN_TEST_IO_RPC_PEER_H

#include "io/rpc.h"
#include "io/rpc/msgpack.h"
#include "test/io/scratch.h"

#include <arpa/inet.h>
#include <gnutls/gnutls.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>

enum { P_DATA, P_UPDATE, P_PING, P_GO_AWAY, P_END };
enum { P_SYN = 1, P_ACK = 2, P_FIN = 4, P_RST = 8 };
enum { PEER_STREAMS = 64, PEER_TRACE = 1 << 16, PEER_WINDOW = 256 << 10, PEER_MS = 20000 };

struct rpc_frame {
    unsigned type, flags;
    uint32_t id, length;
};

struct rpc_peer {
    int listens, fd;
    pthread_t thread;
    void (*script)(struct rpc_peer *peer);
    char address[32];
    gnutls_session_t tls; /* once it is begun */
    _Atomic bool over;    /* nobody has the session any more */
    struct {
        struct msgpack_reader *reader;
        bool headed;
        uint32_t window;     /* what we may send */
        size_t got;          /* bytes of data */
    } streams[PEER_STREAMS]; /* by the number of the stream */
    char trace[PEER_TRACE];
};

static inline void peer_note(struct rpc_peer *peer, const char *what, unsigned number)
{
    char text[64];

    (void)text_format(text, sizeof(text), "%s(%u) ", what, number);
    (void)text_append(peer->trace, sizeof(peer->trace), text);
}

static inline bool peer_write(struct rpc_peer *peer, const void *bytes, size_t length)
{
    while (length > 0) {
        ssize_t sent = peer->tls != NULL ? gnutls_record_send(peer->tls, bytes, length)
                                         : send(peer->fd, bytes, length, MSG_NOSIGNAL);

        if (sent <= 0)
            return false;
        bytes = (const char *)bytes + sent;
        length -= (size_t)sent;
    }
    return true;
}

static inline bool peer_read(struct rpc_peer *peer, void *bytes, size_t length)
{
    while (length > 0) {
        ssize_t got = peer->tls != NULL ? gnutls_record_recv(peer->tls, bytes, length)
                                        : recv(peer->fd, bytes, length, 0);

        if (got <= 0)
            return false;
        bytes = (char *)bytes + got;
        length -= (size_t)got;
    }
    return true;
}

static inline void peer_say(struct rpc_peer *peer, unsigned type, unsigned flags, uint32_t id,
                            uint32_t length, const void *data)
{
    char bytes[12] = {0, (char)type, 0, (char)flags};
    uint32_t there = htonl(id), long_ = htonl(length);

    memcpy(bytes + 4, &there, 4);
    memcpy(bytes + 8, &long_, 4);
    (void)peer_write(peer, bytes, sizeof(bytes));
    if (type == P_DATA)
        (void)peer_write(peer, data, length);
}

/* The first byte is what it has to be. */
static inline bool peer_begin(struct rpc_peer *peer)
{
    char first = 0;

    return peer_read(peer, &first, 1) && first == 6;
}

/* Takes a frame and does what any peer does with it; P_END at the end of the connection. */
static inline struct rpc_frame peer_frame(struct rpc_peer *peer)
{
    static const char *const flags[] = {"", "syn", "", "", "fin", "", "", "", "rst"};
    struct rpc_frame frame = {.type = P_END};
    unsigned char bytes[12];
    static _Thread_local char data[1 << 18];

    if (!peer_read(peer, bytes, sizeof(bytes)))
        return frame;
    frame = (struct rpc_frame){.type = bytes[1], .flags = bytes[3]};
    memcpy(&frame.id, bytes + 4, 4);
    memcpy(&frame.length, bytes + 8, 4);
    frame.id = ntohl(frame.id);
    frame.length = ntohl(frame.length);
    if (frame.type == P_GO_AWAY)
        peer_note(peer, "goaway", frame.length);
    if (frame.type == P_PING && (frame.flags & P_SYN) != 0)
        peer_say(peer, P_PING, P_ACK, 0, frame.length, NULL);
    if (frame.type >= P_PING || frame.id >= PEER_STREAMS)
        return frame;
    if (frame.flags < COUNT_OF(flags) && flags[frame.flags][0] != '\0')
        peer_note(peer, flags[frame.flags], frame.id);
    if (frame.flags == P_SYN) {
        peer_say(peer, P_UPDATE, P_ACK, frame.id, 0, NULL);
        peer->streams[frame.id].window = PEER_WINDOW;
    }
    if (frame.type == P_UPDATE)
        peer->streams[frame.id].window += frame.length;
    if (frame.type != P_DATA || frame.length == 0 || frame.length > sizeof(data) ||
        !peer_read(peer, data, frame.length))
        return frame;
    bool headed = peer->streams[frame.id].headed || frame.id % 2 == 0;
    if (peer->streams[frame.id].reader == NULL)
        peer->streams[frame.id].reader = msgpack_reader_new(64 << 20);
    (void)msgpack_reader_add(peer->streams[frame.id].reader, data + !headed,
                             frame.length - !headed);
    peer->streams[frame.id].headed = true;
    peer->streams[frame.id].got += frame.length;
    return frame;
}

static inline void peer_until_end(struct rpc_peer *peer)
{
    while (peer_frame(peer).type != P_END)
        continue;
}

/* The window is given again as it is used, of the stream that is read. */
static inline void peer_give_window(struct rpc_peer *peer, uint32_t id)
{
    if (peer->streams[id].got < PEER_WINDOW / 2)
        return;
    peer_say(peer, P_UPDATE, 0, id, (uint32_t)peer->streams[id].got, NULL);
    peer->streams[id].got = 0;
}

/* The next object of the stream ID; NULL: none comes. */
static inline json_t *peer_object(struct rpc_peer *peer, uint32_t id)
{
    struct err err;
    json_t *object = NULL;

    while (peer->streams[id].reader == NULL ||
           msgpack_reader_next(peer->streams[id].reader, &object, &err) != 0) {
        peer_give_window(peer, id);
        struct rpc_frame frame = peer_frame(peer);
        if (frame.type == P_END || (frame.id == id && (frame.flags & (P_FIN | P_RST)) != 0))
            return NULL;
    }
    return object;
}

static inline void peer_send(struct rpc_peer *peer, uint32_t id, const char *bytes, size_t length)
{
    while (length > 0) {
        size_t part = length < peer->streams[id].window ? length : peer->streams[id].window;

        part = part < 50000 ? part : 50000;
        if (part == 0 && peer_frame(peer).type == P_END)
            return;
        if (part == 0)
            continue;
        peer_say(peer, P_DATA, 0, id, (uint32_t)part, bytes);
        peer->streams[id].window -= (uint32_t)part;
        bytes += part;
        length -= part;
    }
}

/* Takes OBJECT. */
static inline void peer_give(struct rpc_peer *peer, uint32_t id, json_t *object)
{
    struct buffer bytes = {0};

    (void)msgpack_write(&bytes, 64 << 20, object);
    peer_send(peer, id, buffer_text(&bytes), buffer_length(&bytes));
    buffer_close(&bytes);
    json_decref(object);
}

/* Reads a call of the stream ID, notes it, and gives its header. */
static inline json_t *peer_call(struct rpc_peer *peer, uint32_t id)
{
    json_t *header = peer_object(peer, id), *args = header == NULL ? NULL : peer_object(peer, id);
    const char *method = json_string_value(json_object_get(header, "ServiceMethod"));

    peer_note(peer, method == NULL ? "nothing" : method, id);
    json_decref(args);
    return header;
}

/* Answers what HEADER asks; takes both. */
static inline void peer_answer(struct rpc_peer *peer, uint32_t id, json_t *header,
                               const char *error, json_t *reply)
{
    (void)json_object_set_new(header, "Error", json_string(error));
    peer_give(peer, id, header);
    peer_give(peer, id, reply);
}

/* A call is answered with its own name. */
static inline void peer_serve(struct rpc_peer *peer, uint32_t id)
{
    json_t *header = peer_call(peer, id);

    if (header != NULL)
        peer_answer(peer, id, header, "",
                    json_pack("{s:O}", "Was", json_object_get(header, "ServiceMethod")));
}

/* Opens the stream ID with the byte HEAD. */
static inline void peer_open(struct rpc_peer *peer, uint32_t id, char head)
{
    peer->streams[id].window = PEER_WINDOW;
    peer_say(peer, P_UPDATE, P_SYN, id, 0, NULL);
    peer_send(peer, id, &head, 1);
}

static inline void peer_ask(struct rpc_peer *peer, uint32_t id, const char *method)
{
    peer_give(peer, id, json_pack("{s:s,s:i}", "ServiceMethod", method, "Seq", 70));
    peer_give(peer, id, json_pack("{s:s}", "For", method));
}

/* Tells the test, which notes "done", and waits for the end. */
static inline void peer_done(struct rpc_peer *peer)
{
    peer_open(peer, PEER_STREAMS - 2, 1);
    peer_ask(peer, PEER_STREAMS - 2, "done");
    while (peer_frame(peer).type != P_END)
        continue;
}

/* The answer of the node, as text: "error|reply". */
static inline void peer_note_answer(struct rpc_peer *peer, uint32_t id)
{
    json_t *header = peer_object(peer, id), *reply = header == NULL ? NULL : peer_object(peer, id);
    const char *error = json_string_value(json_object_get(header, "Error"));
    char *text = json_dumps(reply, JSON_ENCODE_ANY | JSON_COMPACT);

    (void)text_append(peer->trace, sizeof(peer->trace), error == NULL ? "nothing" : error);
    (void)text_append(peer->trace, sizeof(peer->trace), "|");
    (void)text_append(peer->trace, sizeof(peer->trace), text == NULL ? "" : text);
    (void)text_append(peer->trace, sizeof(peer->trace), " ");
    free(text);
    json_decref(header);
    json_decref(reply);
}

static inline void *peer_run(void *ctx)
{
    struct rpc_peer *peer = ctx;

    peer->fd = accept(peer->listens, NULL, NULL);
    if (peer->fd >= 0)
        peer->script(peer);
    if (peer->tls != NULL)
        gnutls_deinit(peer->tls);
    peer->tls = NULL;
    if (peer->fd >= 0)
        close(peer->fd);
    return NULL;
}

static inline void peer_start(struct rpc_peer *peer, void (*script)(struct rpc_peer *peer))
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(at);

    peer->script = script;
    peer->over = false;
    peer->fd = -1;
    peer->listens = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_return_code(bind(peer->listens, (struct sockaddr *)&at, length), 0);
    assert_return_code(getsockname(peer->listens, (struct sockaddr *)&at, &length), 0);
    assert_return_code(listen(peer->listens, 1), 0);
    (void)text_format(peer->address, sizeof(peer->address), "127.0.0.1:%u", ntohs(at.sin_port));
    assert_int_equal(pthread_create(&peer->thread, NULL, peer_run, peer), 0);
}

/* Waits for the end of the script: what it has noted is the test's now. */
static inline const char *peer_join(struct rpc_peer *peer)
{
    if (peer->listens < 0)
        return peer->trace;
    peer->over = true;
    (void)shutdown(peer->listens, SHUT_RDWR); /* if nobody has come */
    assert_int_equal(pthread_join(peer->thread, NULL), 0);
    close(peer->listens);
    peer->listens = -1;
    for (size_t i = 0; i < PEER_STREAMS; i++)
        msgpack_reader_free(peer->streams[i].reader);
    return peer->trace;
}

/* --- who has the session --- */

struct rpc_room {
    struct loop *loop;
    struct rpc *rpc;
    struct rpc_peer peer;
    struct io_timer guard;
    char trace[PEER_TRACE];
    unsigned noted, awaited;                /* loop_run ends when as many things have been noted */
    void (*on_note)(struct rpc_room *room); /* what a test does then */
    struct rpc_called *called;              /* the last one */
    struct rpc_stream *stream;
    struct err last;
    size_t reply_bytes; /* of a long one */
};

static inline void room_note(struct rpc_room *room, const char *text)
{
    assert_true(text_append(room->trace, sizeof(room->trace), text));
    assert_true(text_append(room->trace, sizeof(room->trace), " "));
    if (++room->noted == room->awaited)
        loop_stop(room->loop);
    if (room->on_note != NULL)
        room->on_note(room);
}

static inline void room_on_guard(struct io_timer *timer)
{
    struct rpc_room *room = timer->ctx;

    fail_msg("it waits for ever; so far: %s", room->trace);
}

/* Runs until COUNT more things are noted than were waited for so far. */
static inline const char *room_wait(struct rpc_room *room, unsigned count)
{
    room->awaited += count;
    io_timer_start(room->loop, &room->guard, loop_now_ms() + PEER_MS, room_on_guard, room);
    if (room->noted < room->awaited)
        loop_run(room->loop);
    io_timer_stop(&room->guard);
    return room->trace;
}

static inline void room_on_reply(void *ctx, const json_t *reply, const struct err *err)
{
    struct rpc_room *room = ctx;
    const json_t *was = json_object_get(reply, "Was");

    if (err != NULL)
        room->last = *err;
    room->reply_bytes = json_string_length(json_object_get(reply, "Long"));
    room_note(room, err != NULL   ? err_text(err->code)
                    : was == NULL ? "reply"
                                  : json_string_value(was));
}

static inline void room_on_called(void *ctx, struct rpc_called *called, const char *method,
                                  const json_t *args)
{
    struct rpc_room *room = ctx;

    assert_string_equal(json_string_value(json_object_get(args, "For")), method);
    if (text_equal(method, "done"))
        rpc_answer(called, NULL);
    else
        room->called = called;
    room_note(room, method);
}

static inline bool room_streams(void *ctx, const char *method)
{
    (void)ctx;
    return text_starts_with(method, "Known.");
}

static inline void room_on_input(void *ctx, const json_t *object)
{
    room_note(ctx, json_string_value(json_object_get(object, "Say")));
}

static inline void room_on_room(void *ctx)
{
    room_note(ctx, "room");
}

static inline void room_on_end(void *ctx)
{
    struct rpc_room *room = ctx;

    room->stream = NULL;
    room_note(room, "end");
}

static inline void room_on_opened(void *ctx, struct rpc_stream *stream, const char *method,
                                  const json_t *args)
{
    const struct rpc_stream_calls calls = {room_on_input, room_on_room, room_on_end, ctx};
    struct rpc_room *room = ctx;

    assert_true(json_is_object(args));
    rpc_stream_take(stream, &calls);
    room->stream = stream;
    room_note(room, method);
}

static inline void room_on_ended(void *ctx, const struct err *why)
{
    struct rpc_room *room = ctx;
    char text[64];

    room->last = *why;
    (void)text_format(text, sizeof(text), "ended:%s", err_text(why->code));
    room_note(room, text);
}

static inline struct rpc_config room_config(struct rpc_room *room)
{
    return (struct rpc_config){.loop = room->loop,
                               .address = room->peer.address,
                               .called = room_on_called,
                               .streams = room_streams,
                               .opened = room_on_opened,
                               .ended = room_on_ended,
                               .ctx = room};
}

static inline void room_begin(struct rpc_room *room, void (*script)(struct rpc_peer *peer))
{
    struct err err = {0};

    peer_start(&room->peer, script);
    const struct rpc_config config = room_config(room);
    room->rpc = rpc_open(&config, &err);
    if (room->rpc == NULL)
        fail_msg("%s", err.text);
}

static inline struct rpc_call *room_call(struct rpc_room *room, const char *method)
{
    return rpc_call(room->rpc, method, NULL, PEER_MS, room_on_reply, room);
}

/* Closes the session, and gives what the script has seen. */
static inline const char *room_end(struct rpc_room *room)
{
    rpc_close(room->rpc);
    room->rpc = NULL;
    return peer_join(&room->peer);
}

static inline int room_set_up(void **state)
{
    struct rpc_room *room = calloc(1, sizeof(*room));

    assert_non_null(room);
    room->loop = loop_new();
    room->peer.listens = -1;
    *state = room;
    return 0;
}

static inline int room_tear_down(void **state)
{
    struct rpc_room *room = *state;

    room->on_note = NULL;
    (void)room_end(room);
    loop_free(room->loop);
    free(room);
    return 0;
}

#endif
