/*
 * What the peer of a session says in its WebSocket: each piece of the input is a message, the first
 * bit of the input says whether he shakes hands first.
 *
 * A session that is over is not spoken to, and whoever has shaken no hands reaches no task.
 */
#include "test/fuzz.h"

#include "agent/api/part.h"
#include "agent/launch.h"
#include "io/log.h"
#include "io/websocket.h"

static struct {
    bool runs, hangs_up, holds;
    size_t written;
} peer;

/* A command that takes what it is given, as far as there is room. */
static struct driver_session *const runs = (struct driver_session *)&peer;

static struct driver_session *fake_new(const struct drivers *drivers,
                                       const struct driver_start *start,
                                       const char *const *arguments, size_t arguments_count,
                                       bool terminal, const struct driver_session_calls *calls,
                                       const struct err *err)
{
    (void)drivers, (void)start, (void)arguments, (void)terminal, (void)err;
    check(!peer.runs && arguments_count == 0 && calls->ctx != NULL);
    peer.runs = true;
    return runs;
}

static void fake_hold(const struct driver_session *session, bool hold)
{
    (void)hold;
    check(session == runs && peer.runs);
}

static size_t fake_write(const struct driver_session *session, const char *bytes, size_t length)
{
    check(session == runs && peer.runs && (bytes != NULL || length == 0));
    peer.written += length;
    return peer.written;
}

static void fake_resize(const struct driver_session *session, uint16_t rows, uint16_t columns)
{
    (void)rows;
    (void)columns;
    check(session == runs && peer.runs);
}

static void fake_close_input(const struct driver_session *session)
{
    check(session == runs && peer.runs);
}

static void fake_end(const struct driver_session *session)
{
    check(session == runs && peer.runs);
    peer.runs = false;
}

static void fake_tunnel_end(const struct http_exchange *exchange)
{
    check(exchange != NULL && !peer.hangs_up);
    peer.hangs_up = true;
}

static void fake_tunnel_hold(const struct http_exchange *exchange, bool hold)
{
    check(exchange != NULL);
    peer.holds = hold;
}

static size_t fake_tunnel_write(const struct http_exchange *exchange, const void *bytes,
                                size_t length)
{
    check(exchange != NULL && bytes != NULL);
    return length;
}

/* One token is good. */
static const struct acl_rights *fake_rights(const struct api *api, const char *secret)
{
    check(api != NULL);
    return secret != NULL && text_equal(secret, "good") ? &acl_everything : NULL;
}

static int fake_launch(const struct parts *parts, const struct alloc_spec *alloc,
                       const struct task_spec *spec, const struct task *task, struct launch *launch,
                       const struct err *err)
{
    check(parts != NULL && alloc != NULL && spec != NULL && task != NULL && err->code == 0);
    memset(launch, 0, sizeof(*launch));
    return 0;
}

static void fake_launched(const struct launch *launch)
{
    check(launch != NULL);
}

static const struct alloc *fake_alloc(const struct core *core, const char *id)
{
    check(core == NULL && id[0] == '\0');
    return NULL;
}

static const struct task *fake_task(const struct core *core, const char *id, const char *name)
{
    static const struct task task;

    check(core == NULL && id[0] == '\0' && name[0] == '\0');
    return &task;
}

static const struct alloc_spec *fake_spec(const struct specs *specs, const char *id,
                                          const struct err *err)
{
    static const struct alloc_spec spec;

    check(specs == NULL && id[0] == '\0' && err->code == 0);
    return &spec;
}

static const struct task_spec *fake_task_spec(const struct alloc_spec *alloc, const char *name)
{
    static const struct task_spec spec;

    check(alloc != NULL && name[0] == '\0');
    return &spec;
}

static void fake_tunnel_begin(const struct http_exchange *exchange,
                              const struct http_header_line *headers, size_t headers_count,
                              const struct http_tunnel *tunnel)
{
    check(exchange != NULL && headers_count == 2 && headers != NULL && tunnel->ctx != NULL);
}

#define driver_session_new fake_new
#define driver_session_write fake_write
#define driver_session_resize fake_resize
#define driver_session_close_input fake_close_input
#define driver_session_end fake_end
#define driver_session_hold fake_hold
#define http_tunnel_begin fake_tunnel_begin
#define http_tunnel_end fake_tunnel_end
#define http_tunnel_hold fake_tunnel_hold
#define http_tunnel_write fake_tunnel_write
#define api_rights_of fake_rights
#define core_alloc fake_alloc
#define core_task fake_task
#define specs_find fake_spec
#define launch_task fake_task_spec
#define launch_open fake_launch
#define launch_close fake_launched
#include "agent/api/streams/exec.c"

static struct loop *loop;

int LLVMFuzzerInitialize(int *arguments_count, char ***arguments)
{
    (void)arguments_count;
    (void)arguments;
    check(log_init(LOG_ERROR, "/dev/null", false) == 0);
    loop = loop_new();
    return 0;
}

static void on_stop(struct io_timer *timer)
{
    (void)timer;
    loop_stop(loop);
}

static struct api_session *enter(struct api *api, bool shakes_hands)
{
    struct api_request request = {.api = api, .exchange = (struct http_exchange *)api};
    struct api_session *session = calloc(1, sizeof(*session));

    check(session != NULL);
    session->api = api;
    session->shakes_hands = shakes_hands;
    session->command = json_array();
    begin(&request, session, "key");
    return session;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data + 1, size > 0 ? size - 1 : 0};
    struct parts parts = {.loop = loop};
    struct api api = {.parts = &parts};
    struct io_timer stop = {0};
    const uint8_t *bytes;
    size_t length;

    if (size == 0)
        return 0;
    memset(&peer, 0, sizeof(peer));
    struct api_session *session = enter(&api, (data[0] & 1) != 0);
    bool entered = !session->shakes_hands;
    while (fuzz_piece(&input, &bytes, &length)) {
        entered = entered || memmem(bytes, length, "good", 4) != NULL;
        on_message(session, (const char *)bytes, length);
        check(entered || !peer.runs);
        check(!peer.hangs_up || !peer.runs);
        if (peer.holds)
            on_taken(session);
    }
    if (peer.runs && (data[0] & 2) != 0) {
        peer.runs = false;
        on_end(session, 3, NULL);
    }
    if (session->exchange != NULL) {
        on_left(session);
    } else {
        io_timer_start(loop, &stop, loop_now_ms(), on_stop, NULL);
        loop_run(loop);
    }
    check(api.sessions == NULL && api.sessions_count == 0 && !peer.runs);
    return 0;
}
