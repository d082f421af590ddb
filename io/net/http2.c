/*
 * Calls over HTTP/2: a session of nghttp2, which has no I/O, and a socket on our loop, for each.
 *
 * Invariant: a request is in exactly one list of its client, by what it waits for: a connection, or
 * its peer.  While the library is on the stack (`inside`) a request that has been delivered is not
 * freed; whoever called the library does that.
 */
#include "io/net/http2.h"

#include "io/loop/guest.h"
#include "io/net/buffer.h"

#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <utlist.h>

enum {
    STREAM = 1, /* the only one of its connection */
    HEADERS_COUNT_MAX = 8,
    WINDOW = 1 << 20, /* that the peer may send before it hears from us */
    READ_BYTES = 16 << 10,
    READS = 8,                   /* in a turn of the loop */
    FULL_MS = 20,                /* until a listener whose queue is full is tried again */
    FULL_LONGEST_MS = 10 * 1000, /* that it may be */
};

struct http2_client {
    struct loop_guest guest;
    struct loop *loop;
    struct io_before_sleep turn; /* somebody may be connected */
    /* By whether they last: who waits for a connection, in the order of coming, and who has one. */
    struct http2_request *waiting[2], *open[2];
    size_t open_count[2];
};

struct http2_request {
    struct http2_client *client;
    struct http2_request *prev, *next;
    bool lasts, is_open;
    struct sockaddr_un at;
    int fd; /* -1: none */
    struct io_watch watch;
    struct io_timer again; /* the queue of its listener is full */
    uint64_t queued_ms;    /* since when, 0: it is not */

    nghttp2_session *session;
    const uint8_t *out; /* of the session, to be sent */
    size_t out_length;
    struct buffer body;
    bool has_all;  /* no more of the body comes */
    bool is_fed;   /* some of it came that on_sent does not know of */
    bool is_mute;  /* the peer hears nothing more */
    bool held;     /* the peer is not read */
    bool is_http2; /* it has said so */
    bool was_reset, was_sent_away;
    unsigned inside;

    int status;
    struct buffer reply_headers, reply_body;
    size_t body_received, body_bytes_max;
    bool done, delivered;
    enum http2_end end; /* when it is done */
    struct err error;

    void (*on_sent)(void *ctx);
    bool (*on_data)(void *ctx, const char *bytes, size_t length);
    void (*cb)(void *ctx, const struct http2_reply *reply);
    void *ctx;
};

/* --- its end --- */

static void plan_turn(struct http2_client *client);

static void request_free(struct http2_request *request)
{
    nghttp2_session_del(request->session);
    buffer_close(&request->reply_headers);
    buffer_close(&request->reply_body);
    if (request->body.bytes != NULL)
        explicit_bzero(request->body.bytes, request->body.capacity);
    buffer_close(&request->body);
    free(request);
}

/* Says how REQUEST has ended, once; it is told by whoever is not inside the library. */
static void finish(struct http2_request *request, enum http2_end end, int code, const char *text)
{
    if (request->done)
        return;
    request->done = true;
    request->end = end;
    if (code != 0)
        (void)err_set(&request->error, code, "%s", text); /* only to be filled */
}

static void deliver(struct http2_request *request)
{
    struct http2_client *client = request->client;
    const struct http2_reply reply = {.end = request->end,
                                      .status = request->status,
                                      .headers = buffer_text(&request->reply_headers),
                                      .body = buffer_text(&request->reply_body),
                                      .body_length = buffer_length(&request->reply_body),
                                      .error = request->error};

    check(request->done && !request->delivered);
    request->delivered = true;
    io_watch_stop(&request->watch);
    io_timer_stop(&request->again);
    if (request->fd >= 0)
        close(request->fd);
    request->fd = -1;
    if (request->is_open) {
        DL_DELETE(client->open[request->lasts], request);
        client->open_count[request->lasts]--;
        plan_turn(client);
    } else
        DL_DELETE(client->waiting[request->lasts], request);
    request->inside++;
    request->cb(request->ctx, &reply);
    request->inside--;
    if (request->inside == 0)
        request_free(request);
}

/* --- what the library hears --- */

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_length, const uint8_t *value, size_t value_length, uint8_t flags,
                     void *ctx)
{
    static const char status[] = ":status";
    struct http2_request *request = ctx;
    (void)session;
    (void)flags;

    if (request->done || frame->hd.stream_id != STREAM)
        return 0;
    if (name_length == strlen(status) && memcmp(name, status, name_length) == 0) {
        buffer_close(&request->reply_headers); /* an interim answer went before */
        request->status = 0;
        for (size_t i = 0; i < value_length; i++) /* three digits: the library has looked */
            request->status = request->status * 10 + (value[i] - '0');
        return 0;
    }
    if (!buffer_append(&request->reply_headers, name, name_length, HTTP2_HEADERS_MAX) ||
        !buffer_append(&request->reply_headers, ": ", 2, HTTP2_HEADERS_MAX) ||
        !buffer_append(&request->reply_headers, value, value_length, HTTP2_HEADERS_MAX) ||
        !buffer_append(&request->reply_headers, "\r\n", 2, HTTP2_HEADERS_MAX)) {
        finish(request, HTTP2_OURS, ERR_LIMIT, "the headers of the answer are too large");
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *bytes,
                   size_t length, void *ctx)
{
    struct http2_request *request = ctx;
    (void)session;
    (void)flags;

    if (request->done || stream != STREAM)
        return 0;
    if (length > request->body_bytes_max - request->body_received)
        finish(request, HTTP2_OURS, ERR_LIMIT, "the answer is too large");
    else if (request->on_data != NULL && request->status / 100 == 2) {
        if (!request->on_data(request->ctx, (const char *)bytes, length))
            finish(request, HTTP2_OURS, ERR_CANCELED, "canceled");
    } else if (!buffer_append(&request->reply_body, bytes, length, request->body_bytes_max))
        finish(request, HTTP2_OURS, ERR_LIMIT, "no memory for the answer");
    request->body_received += length;
    return request->done ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
    struct http2_request *request = ctx;
    bool is_ours = frame->hd.stream_id == STREAM;
    (void)session;

    switch (frame->hd.type) {
    case NGHTTP2_HEADERS:
    case NGHTTP2_DATA:
        /* However much of ours is not sent: the peer has said all it will. */
        if (is_ours && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0)
            finish(request, HTTP2_WHOLE, 0, NULL);
        break;
    case NGHTTP2_RST_STREAM:
        request->was_reset |= is_ours;
        break;
    case NGHTTP2_SETTINGS:
        request->is_http2 = true;
        break;
    case NGHTTP2_GOAWAY:
        request->was_sent_away = true;
        break;
    default:
        break;
    }
    return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t stream, uint32_t error, void *ctx)
{
    struct http2_request *request = ctx;
    const char *how = nghttp2_http2_strerror(error);
    (void)session;

    if (stream != STREAM)
        return 0;
    if (error == NGHTTP2_REFUSED_STREAM)
        finish(request, HTTP2_NOT_TAKEN, ERR_AGAIN, request->was_sent_away ? "GOAWAY" : how);
    else
        finish(request, request->was_reset ? HTTP2_RESET : HTTP2_UNRULY, ERR_IO, how);
    return 0;
}

/* The library closes a connection by GOAWAY when it has heard what it cannot make sense of. */
static int on_said(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
    struct http2_request *request = ctx;
    (void)session;

    if (frame->hd.type == NGHTTP2_GOAWAY)
        finish(request, request->is_http2 ? HTTP2_UNRULY : HTTP2_STRANGE, ERR_IO,
               nghttp2_http2_strerror(frame->goaway.error_code));
    return 0;
}

/* The library wants more of the body. */
static ssize_t on_want(nghttp2_session *session, int32_t stream, uint8_t *to, size_t size,
                       uint32_t *flags, nghttp2_data_source *source, void *ctx)
{
    struct http2_request *request = ctx;
    size_t have = buffer_length(&request->body), length = have < size ? have : size;
    (void)session;
    (void)stream;
    (void)source;

    if (length == 0 && !request->has_all)
        return NGHTTP2_ERR_DEFERRED;
    if (length > 0) {
        char *from = request->body.bytes + request->body.start;

        memcpy(to, from, length);
        explicit_bzero(from, length);
        buffer_drop(&request->body, length);
    }
    if (length == have && request->has_all)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)length;
}

/* --- its connection --- */

static void on_ready(struct io_watch *watch, int events);

static void watch_again(struct http2_request *request)
{
    bool wants = !request->is_mute &&
                 (request->out_length > 0 || nghttp2_session_want_write(request->session) != 0);
    int events = (request->held ? 0 : IO_READABLE) | (wants ? IO_WRITABLE : 0);

    if (request->fd < 0 || request->queued_ms != 0)
        return; /* it is not connected */
    if (events == 0)
        io_watch_stop(&request->watch);
    else
        io_watch_start(request->client->loop, &request->watch, request->fd, events, on_ready,
                       request);
}

/* Goes on with REQUEST after the library has run, in the last line of whoever let it. */
static void settle(struct http2_request *request)
{
    nghttp2_session *session = request->session;

    check(request->inside == 0);
    if (nghttp2_session_want_read(session) == 0 && nghttp2_session_want_write(session) == 0)
        finish(request, HTTP2_NOT_TAKEN, ERR_AGAIN, "GOAWAY"); /* before it was sent */
    if (request->delivered)
        request_free(request);
    else if (request->done)
        deliver(request);
    else
        watch_again(request);
}

/* What a peer that is gone does not hear is thrown away: it may have answered before it went. */
static void send_out(struct http2_request *request)
{
    while (!request->delivered) {
        if (request->out_length == 0) {
            ssize_t length = nghttp2_session_mem_send(request->session, &request->out);

            check(length >= 0); /* only memory can be lacking */
            request->out_length = (size_t)length;
        }
        if (request->out_length == 0)
            break;
        ssize_t sent = request->is_mute ? (ssize_t)request->out_length
                                        : send(request->fd, request->out, request->out_length,
                                               MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (sent < 0) {
            request->is_mute = true;
            continue;
        }
        request->out += sent;
        request->out_length -= (size_t)sent;
    }
    if (request->is_fed && !request->done && buffer_length(&request->body) == 0) {
        request->is_fed = false;
        if (request->on_sent != NULL)
            request->on_sent(request->ctx);
    }
}

static void read_in(struct http2_request *request)
{
    uint8_t bytes[READ_BYTES];

    for (unsigned i = 0; i < READS && !request->done && !request->held; i++) {
        ssize_t got = recv(request->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (got <= 0) {
            finish(request, HTTP2_BROKEN_OFF, ERR_IO, "the connection is closed");
            return;
        }
        ssize_t used = nghttp2_session_mem_recv(request->session, bytes, (size_t)got);
        if (used < 0)
            finish(request, request->is_http2 ? HTTP2_UNRULY : HTTP2_STRANGE, ERR_IO,
                   nghttp2_strerror((int)used));
        else
            send_out(request); /* what the library makes of it */
    }
}

static void on_ready(struct io_watch *watch, int events)
{
    struct http2_request *request = watch->ctx;

    request->inside++;
    if ((events & IO_WRITABLE) != 0)
        send_out(request);
    if ((events & IO_READABLE) != 0)
        read_in(request);
    request->inside--;
    settle(request);
}

static void connect_now(struct http2_request *request);

static void on_again(struct io_timer *timer)
{
    connect_now(timer->ctx);
}

static void connect_now(struct http2_request *request)
{
    uint64_t now_ms = loop_now_ms();

    if (request->fd < 0)
        request->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (request->fd >= 0 &&
        connect(request->fd, (const struct sockaddr *)&request->at, sizeof(request->at)) == 0) {
        request->queued_ms = 0;
        request->inside++;
        send_out(request);
        request->inside--;
        settle(request);
        return;
    }
    int os = errno;
    bool is_queued = request->fd >= 0 && (os == EAGAIN || os == EINTR);
    if (is_queued && (request->queued_ms == 0 || now_ms < request->queued_ms + FULL_LONGEST_MS)) {
        request->queued_ms = request->queued_ms == 0 ? now_ms : request->queued_ms;
        io_timer_start(request->client->loop, &request->again, now_ms + FULL_MS, on_again, request);
        return;
    }
    finish(request, HTTP2_UNCONNECTED, ERR_AGAIN, strerror(os));
    request->error.os = os;
    deliver(request);
}

/* --- who comes next --- */

static struct http2_request *next_of(const struct http2_client *client, bool lasts)
{
    size_t most = lasts ? HTTP2_LASTING_MAX : HTTP2_CALLS_MAX;

    return client->open_count[lasts] < most ? client->waiting[lasts] : NULL;
}

static bool on_turn(void *ctx)
{
    struct http2_client *client = ctx;
    struct http2_request *request;

    for (int lasts = 0; lasts < 2; lasts++) {
        while ((request = next_of(client, lasts != 0)) != NULL) {
            DL_DELETE(client->waiting[lasts], request);
            DL_APPEND(client->open[lasts], request);
            client->open_count[lasts]++;
            request->is_open = true;
            connect_now(request);
        }
    }
    if (next_of(client, false) != NULL || next_of(client, true) != NULL)
        return true; /* somebody came while others were told of their end */
    io_before_sleep_stop(&client->turn);
    return false;
}

static void plan_turn(struct http2_client *client)
{
    if (client->turn.loop == NULL)
        io_before_sleep_start(client->loop, &client->turn, on_turn, client);
}

static void client_close(struct loop_guest *guest)
{
    struct http2_client *client = (struct http2_client *)(void *)guest; /* its first member */

    for (int lasts = 0; lasts < 2; lasts++) {
        while (client->waiting[lasts] != NULL || client->open[lasts] != NULL)
            http2_cancel(client->waiting[lasts] != NULL ? client->waiting[lasts]
                                                        : client->open[lasts]);
    }
    io_before_sleep_stop(&client->turn);
    free(client);
}

static struct http2_client *client_of(struct loop *loop)
{
    struct http2_client *client =
        (struct http2_client *)(void *)loop_guest_find(loop, client_close);

    if (client != NULL)
        return client;
    client = calloc(1, sizeof(*client));
    check(client != NULL);
    client->guest.close = client_close;
    client->loop = loop;
    loop_guest_add(loop, &client->guest);
    return client;
}

/* --- starting --- */

static nghttp2_nv pair(const char *name, const char *value)
{
    return (nghttp2_nv){.name = (uint8_t *)(uintptr_t)name,
                        .namelen = strlen(name),
                        .value = (uint8_t *)(uintptr_t)value,
                        .valuelen = strlen(value)};
}

/* The request as the library has it before it is connected; it copies all. */
static void open_session(struct http2_request *request, const struct http2_call *call)
{
    static const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HTTP2_HEADERS_MAX},
    };
    nghttp2_nv pairs[4 + HEADERS_COUNT_MAX] = {pair(":method", "POST"), pair(":scheme", "http"),
                                               pair(":authority", "localhost"),
                                               pair(":path", call->path)};
    const nghttp2_data_provider body = {.read_callback = on_want};
    nghttp2_session_callbacks *callbacks;

    check(nghttp2_session_callbacks_new(&callbacks) == 0);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_said);
    check(nghttp2_session_client_new(&request->session, callbacks, request) == 0);
    nghttp2_session_callbacks_del(callbacks);
    check(call->headers_count <= HEADERS_COUNT_MAX);
    for (size_t i = 0; i < call->headers_count; i++)
        pairs[4 + i] = pair(call->headers[i].name, call->headers[i].value);
    check(nghttp2_submit_settings(request->session, NGHTTP2_FLAG_NONE, settings,
                                  COUNT_OF(settings)) == 0);
    check(nghttp2_session_set_local_window_size(request->session, NGHTTP2_FLAG_NONE, 0, WINDOW) ==
          0);
    check(nghttp2_submit_request(request->session, NULL, pairs, 4 + call->headers_count, &body,
                                 NULL) == STREAM);
}

struct http2_request *http2_start(struct loop *loop, const struct http2_call *call)
{
    struct http2_request *request = calloc(1, sizeof(*request));

    check(request != NULL);
    check(call->cb != NULL);
    request->client = client_of(loop);
    request->lasts = call->lasts;
    request->fd = -1;
    request->at.sun_family = AF_UNIX;
    check(text_copy(request->at.sun_path, sizeof(request->at.sun_path), call->unix_socket));
    request->has_all = !call->sends_more;
    request->is_fed = true;
    request->body_bytes_max = call->body_bytes_max;
    request->on_sent = call->on_sent;
    request->on_data = call->on_data;
    request->cb = call->cb;
    request->ctx = call->ctx;
    check(buffer_append(&request->body, call->body, call->body_length, SIZE_MAX));
    open_session(request, call);
    DL_APPEND(request->client->waiting[request->lasts], request);
    plan_turn(request->client);
    return request;
}

/* --- more of a call --- */

/* The library looks again for what is to be sent. */
static void go_on(struct http2_request *request)
{
    (void)nghttp2_session_resume_data(request->session, STREAM); /* fails if it did not wait */
    if (request->inside == 0)
        watch_again(request);
}

size_t http2_send(struct http2_request *request, const void *bytes, size_t length)
{
    check(!request->has_all);
    request->is_fed |= buffer_append(&request->body, bytes, length, HTTP2_SEND_MAX);
    go_on(request);
    return buffer_length(&request->body);
}

void http2_send_end(struct http2_request *request)
{
    request->has_all = true;
    go_on(request);
}

void http2_hold(struct http2_request *request, bool hold)
{
    request->held = hold;
    if (request->inside == 0)
        watch_again(request);
}

void http2_cancel(struct http2_request *request)
{
    finish(request, HTTP2_OURS, ERR_CANCELED, "canceled");
    deliver(request);
}
