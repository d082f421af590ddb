/*
 * One turn does all: read what is there and hand it on, send what there is, tell who waits, and arm
 * what makes the next turn.  Whoever uses a session from elsewhere only wakes it, so that callbacks
 * come from a turn and from nowhere else.
 *
 * Nothing is read while a peer does not take what is for him: what he makes us say has a bound.
 */
#include "io/rpc/session.h"

#include <stdlib.h>

enum {
    READ_SIZE = 64 << 10,
    READS_MAX = 16,               /* in one turn */
    OUT_MAX = 4 * YAMUX_OUT_FULL, /* waits to be sent: nothing is read */
};

struct session {
    struct loop *loop;
    struct session_calls calls;
    struct channel *channel; /* owned; NULL when it is over */
    struct yamux *yamux;     /* owned */
    bool up, over, closed, told_leaving, stalls;
    unsigned turns; /* on the stack: what they use is not freed */
    bool more;      /* there was more to read than a turn does */
    uint64_t sent;  /* bytes, ever */
    struct err why; /* it is over; code 0: not said */
    struct io_timer wake, stall, ping;
};

static void turn(struct session *session);

static void begin(struct session *session)
{
    session->turns++;
}

static void end(struct session *session)
{
    if (--session->turns > 0 || !session->closed)
        return;
    session->calls.on_gone(session->calls.ctx);
    yamux_free(session->yamux);
    free(session);
}

/* --- the end --- */

static void stop(struct session *session)
{
    io_timer_stop(&session->wake);
    io_timer_stop(&session->stall);
    io_timer_stop(&session->ping);
    channel_close(session->channel);
    session->channel = NULL;
    session->up = false;
    session->over = true;
}

static void give_up(struct session *session, const struct err *why)
{
    if (session->over)
        return;
    session->why = *why;
    stop(session);
    yamux_end(session->yamux);
    if (!session->closed)
        session->calls.on_over(session->calls.ctx, &session->why);
}

static void give_up_for(struct session *session, int code, const char *text)
{
    struct err err = {0};

    begin(session);
    (void)err_set(&err, code, "%s", text);
    give_up(session, &err);
    end(session);
}

void session_close(struct session *session)
{
    if (session == NULL)
        return;
    begin(session);
    session->closed = true;
    if (!session->over) {
        stop(session);
        yamux_end(session->yamux);
    }
    end(session);
}

/* --- time --- */

static void on_wake(struct io_timer *timer)
{
    turn(timer->ctx);
}

static void on_stall(struct io_timer *timer)
{
    give_up_for(timer->ctx, ERR_TIMEOUT, "the peer takes nothing any more");
}

static void on_ping(struct io_timer *timer);

static void on_pong_due(struct io_timer *timer)
{
    struct session *session = timer->ctx;

    if (!yamux_is_answered(session->yamux))
        give_up_for(session, ERR_TIMEOUT, "the peer does not answer pings");
    else
        io_timer_start(session->loop, &session->ping, loop_now_ms() + RPC_PING_MS - RPC_PONG_MS,
                       on_ping, session);
}

static void on_ping(struct io_timer *timer)
{
    struct session *session = timer->ctx;

    yamux_ping(session->yamux);
    yamux_tick(session->yamux);
    session_wake(session);
    io_timer_start(session->loop, &session->ping, loop_now_ms() + RPC_PONG_MS, on_pong_due,
                   session);
}

void session_wake(struct session *session)
{
    if (session->up)
        io_timer_start(session->loop, &session->wake, loop_now_ms(), on_wake, session);
}

/* --- a turn --- */

/* 0: all that may be sent is, or nothing goes now. */
static int send_all(struct session *session, struct err *err)
{
    struct buffer *out = yamux_out(session->yamux);
    uint64_t before = session->sent;
    int code = 0;

    while (code == 0 && buffer_length(out) > 0) {
        size_t sent = 0;

        code = channel_send(session->channel, buffer_text(out), buffer_length(out), &sent, err);
        if (code == 0) {
            buffer_drop(out, sent);
            session->sent += sent;
            out = yamux_out(session->yamux);
        }
    }
    if (buffer_length(out) == 0)
        io_timer_stop(&session->stall);
    else if (session->sent != before || !session->stalls)
        io_timer_start(session->loop, &session->stall, loop_now_ms() + RPC_STALL_MS, on_stall,
                       session);
    session->stalls = buffer_length(out) > 0;
    return code == ERR_AGAIN ? 0 : code;
}

/* Says what was wrong, if he still hears; what he did is the error whatever comes of it. */
static int complain(struct session *session, int code)
{
    struct err unheard = {0};

    if (code == ERR_CORRUPT) {
        yamux_complain(session->yamux);
        (void)send_all(session, &unheard);
    }
    return code;
}

static int read_all(struct session *session, struct err *err)
{
    char bytes[READ_SIZE];

    session->more = false;
    for (unsigned i = 0; i < READS_MAX; i++) {
        size_t got = 0;

        if (buffer_length(yamux_out(session->yamux)) > OUT_MAX)
            return 0; /* goes on when some of it was sent */
        int code = channel_recv(session->channel, bytes, sizeof(bytes), &got, err);
        if (code != 0)
            return code == ERR_AGAIN ? 0 : code;
        if (got == 0)
            return err_set(err, ERR_IO, "the peer has closed the connection");
        code = yamux_take(session->yamux, bytes, got, err);
        if (code != 0)
            return complain(session, code);
        if (session->over)
            return 0;
    }
    session->more = true;
    return 0;
}

static void tell_leaving(struct session *session)
{
    if (!session->told_leaving && yamux_is_leaving(session->yamux)) {
        session->told_leaving = true;
        session->calls.on_leaving(session->calls.ctx);
    }
}

static void arm(struct session *session)
{
    size_t waits = buffer_length(yamux_out(session->yamux));

    channel_wait(session->channel,
                 (waits > OUT_MAX ? 0 : IO_READABLE) | (waits > 0 ? IO_WRITABLE : 0));
    if (session->more || yamux_has_to_run(session->yamux))
        session_wake(session);
}

/* False: it is over. */
static bool do_turn(struct session *session, struct err *err)
{
    if (read_all(session, err) != 0)
        return false;
    if (!session->over)
        yamux_run(session->yamux);
    if (!session->over)
        tell_leaving(session);
    if (session->over)
        return true; /* and all of that was told */
    if (send_all(session, err) != 0)
        return false;
    if (yamux_is_leaving(session->yamux) && yamux_is_idle(session->yamux)) {
        (void)err_set(err, ERR_AGAIN, "the peer takes no more calls");
        return false;
    }
    arm(session);
    return true;
}

static void turn(struct session *session)
{
    struct err err = {0};

    begin(session);
    if (!do_turn(session, &err))
        give_up(session, &err);
    end(session);
}

/* --- the channel --- */

static void on_ready(void *ctx)
{
    turn(ctx);
}

static void on_up(void *ctx)
{
    struct session *session = ctx;

    session->up = true;
    io_timer_start(session->loop, &session->ping, loop_now_ms() + RPC_PING_MS, on_ping, session);
    turn(session);
}

static void on_failed(void *ctx, const struct err *why)
{
    struct session *session = ctx;

    begin(session);
    give_up(session, why);
    end(session);
}

static void on_opened(void *ctx, struct yamux_stream *stream)
{
    const struct session *session = ctx;

    session->calls.on_opened(session->calls.ctx, stream);
}

/* --- the door --- */

struct session *session_open(struct loop *loop, const char *address, const struct rpc_tls *tls,
                             char first, const struct session_calls *calls, struct err *err)
{
    struct session *session = calloc(1, sizeof(*session));

    check(session != NULL);
    const struct channel_calls channel_calls = {on_up, on_failed, on_ready, session};
    session->loop = loop;
    session->calls = *calls;
    session->channel = channel_open(loop, address, tls, &channel_calls, err);
    if (session->channel == NULL) {
        free(session);
        return NULL;
    }
    session->yamux = yamux_new(on_opened, session);
    check(buffer_append(yamux_out(session->yamux), &first, 1, SIZE_MAX));
    return session;
}

struct loop *session_loop(const struct session *session)
{
    return session->loop;
}

struct yamux *session_yamux(const struct session *session)
{
    return session->yamux;
}

bool session_is_up(const struct session *session)
{
    return session->up;
}

const struct err *session_why(const struct session *session)
{
    return session->over && session->why.code != 0 ? &session->why : NULL;
}

uint64_t session_mark(const struct session *session)
{
    return session->sent + buffer_length(yamux_out(session->yamux));
}

bool session_has_sent(const struct session *session, uint64_t mark)
{
    return session->sent > mark;
}
