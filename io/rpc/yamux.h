/*
 * yamux (spec of hashicorp/yamux), the side that has connected: many streams in one connection.
 *
 * A machine without a descriptor or a clock: bytes of the peer go in by yamux_take, what is for him
 * waits in yamux_out, time passes by yamux_tick.  No more goes into a stream than the peer's window
 * lets, what does not fit waits in it; no more comes out of one than was taken of it.  FIN of the
 * peer is the end of a stream both ways and is answered by ours: nobody here speaks on to somebody
 * who has closed.
 *
 * Callbacks come from yamux_take, yamux_run and yamux_end only, and may call everything but
 * yamux_free.
 */
#ifndef CAIRN_IO_RPC_YAMUX_H
#define CAIRN_IO_RPC_YAMUX_H

#include "base/base.h"
#include "io/net/buffer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    YAMUX_WINDOW = 256 << 10,   /* of each stream, each way, when it begins */
    YAMUX_THEIRS_MAX = 256,     /* streams that the peer has opened; more are reset */
    YAMUX_UNHEARD_MAX = 256,    /* of ours that it has not acknowledged */
    YAMUX_OUT_FULL = 256 << 10, /* bytes: as long as more wait, streams are not asked for theirs */
    YAMUX_FRAME_MAX = 32 << 10, /* bytes of data in one of ours, so that streams take turns */
    YAMUX_LINGER_TICKS = 3,     /* for the peer to end what we have ended; then it is reset */
};

struct yamux;
struct yamux_stream;

enum yamux_end { YAMUX_FIN, YAMUX_RST, YAMUX_OVER /* all of it */ };

struct yamux_stream_calls {
    void (*on_data)(void *ctx, const char *bytes, size_t length);
    void (*on_room)(void *ctx);                    /* or NULL: see yamux_tell_room */
    void (*on_end)(void *ctx, enum yamux_end end); /* the last; the stream is gone */
};

/* ON_OPENED: the peer has opened STREAM, which has to be given to somebody (yamux_give) or ended.
 */
struct yamux *yamux_new(void (*on_opened)(void *ctx, struct yamux_stream *stream), void *ctx);
void yamux_free(struct yamux *yamux); /* tells nobody */

/* Bytes of the peer.  Other than 0: he has broken the rules (ERR_CORRUPT) or ended the session
 * (ERR_IO), nothing is to be taken any more. */
int yamux_take(struct yamux *yamux, const char *bytes, size_t length, struct err *err);

/* What is for the peer; whoever sends it drops it there.  Asks streams for what they have. */
struct buffer *yamux_out(struct yamux *yamux);

/* Tells streams what came while they were held, and of room: after each yamux_out. */
void yamux_run(struct yamux *yamux);
bool yamux_has_to_run(const struct yamux *yamux);

/* Resets what has been ended long ago; every half a minute or so. */
void yamux_tick(struct yamux *yamux);

/* Ends all streams, each with YAMUX_OVER. */
void yamux_end(struct yamux *yamux);

/* Asks the peer for an answer; true when he has given that to the last one. */
void yamux_ping(struct yamux *yamux);
bool yamux_is_answered(const struct yamux *yamux);

/* Says that we leave because he has broken the rules.  True if he has said that he takes no new
 * streams. */
void yamux_complain(struct yamux *yamux);
bool yamux_is_leaving(const struct yamux *yamux);

/* True if nobody has a stream that we have opened. */
bool yamux_is_idle(const struct yamux *yamux);
/* True if the peer has opened a stream that is not over, or something waits to be sent. */
bool yamux_owes(const struct yamux *yamux);

/* --- streams --- */

/* A stream of ours, whose first bytes go with its SYN; NULL: the peer does not keep up, or is
 * leaving. */
struct yamux_stream *yamux_open(struct yamux *yamux, const struct yamux_stream_calls *calls,
                                void *ctx, const char *bytes, size_t length);

/* CALLS is borrowed for as long as the stream lives. */
void yamux_give(struct yamux_stream *stream, const struct yamux_stream_calls *calls, void *ctx);

/* Queues BYTES, however many.  Returns how many wait. */
size_t yamux_send(struct yamux_stream *stream, const void *bytes, size_t length);
size_t yamux_waiting(const struct yamux_stream *stream);

/* on_room comes when no more than WAITING bytes wait. */
void yamux_tell_room(struct yamux_stream *stream, size_t waiting);

/* While HELD, on_data is not called, and what comes is not counted as taken. */
void yamux_hold(struct yamux_stream *stream, bool held);

/* Sends all that waits, then FIN; or ends it now.  The caller hears nothing of it any more. */
void yamux_finish(struct yamux_stream *stream);
void yamux_reset(struct yamux_stream *stream);

#endif
