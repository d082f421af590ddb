/*
 * The disk of an alloc that has ended, for the one that takes it over on another node, as a tar:
 * /v1/client/allocation/ID/snapshot.
 *
 * cairn-fetch packs it (hooks/disk/pack.c), and what comes is handed on as fast as the peer takes
 * it: no more of it is here than what one read has brought and what the peer is to take.  Of an
 * alloc whose tasks are still being ended it is packed when they have, as servers may say of one
 * that it has failed before; Nomad packs whatever there is, while it is being written.  What breaks
 * off here breaks off there, too: the peer gets no whole answer. Follows nomad v2.0.6
 * command/agent/alloc_endpoint.go.
 */
#include "agent/api/part.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    READ_BYTES = 32 << 10,
    LOOK_AGAIN_MS = 500, /* whether the last task has ended */
};

struct api_snapshot {
    struct api_stream place;
    struct api *api;
    struct http_exchange *exchange; /* NULL: the peer is gone */
    char alloc[UUID_TEXT_SIZE];
    struct io_timer look;
    struct hooks_packing packing;
    struct io_watch bytes, end;
    bool packs, begun;
    struct api_snapshot *next, **link;
};

static void destroy(struct api_snapshot *snapshot)
{
    *snapshot->link = snapshot->next;
    if (snapshot->next != NULL)
        snapshot->next->link = snapshot->link;
    io_timer_stop(&snapshot->look);
    free(snapshot);
}

/* The exchange is given back: it has been answered, or is about to be. */
static struct http_exchange *leave(struct api_snapshot *snapshot)
{
    struct http_exchange *exchange = snapshot->exchange;

    snapshot->exchange = NULL;
    http_on_close(exchange, NULL, NULL);
    api_stream_give(&snapshot->place);
    return exchange;
}

static void refuse(struct api_snapshot *snapshot, int status, const char *text)
{
    struct api *api = snapshot->api;
    struct api_request request = {.api = api, .exchange = leave(snapshot), .namespace = "default"};

    destroy(snapshot);
    api_refuse(&request, status, "%s", text);
}

/* --- its end --- */

static void finish(struct api_snapshot *snapshot, int code)
{
    if (snapshot->exchange == NULL)
        destroy(snapshot);
    else if (!snapshot->begun)
        refuse(snapshot, code == ERR_GONE ? 404 : 500,
               code == ERR_GONE ? "the alloc has no directory any more"
                                : "the disk of the alloc cannot be packed");
    else if (code != 0)
        http_disconnect(snapshot->exchange); /* and on_closed is called */
    else {
        http_stream_end(leave(snapshot));
        destroy(snapshot);
    }
}

static void on_end(struct io_watch *watch, int events)
{
    struct api_snapshot *snapshot = watch->ctx;
    int code;

    (void)events;
    if (!hooks_packing_end(&snapshot->packing, false, &code))
        return; /* not yet */
    io_watch_stop(watch);
    snapshot->packs = false;
    finish(snapshot, code);
}

/* No more bytes come, or nobody wants them. */
static void await_end(struct api_snapshot *snapshot)
{
    io_watch_stop(&snapshot->bytes);
    io_watch_start(snapshot->api->parts->loop, &snapshot->end, snapshot->packing.pidfd, IO_READABLE,
                   on_end, snapshot);
}

static void on_closed(void *ctx)
{
    struct api_snapshot *snapshot = ctx;

    snapshot->exchange = NULL;
    api_stream_give(&snapshot->place);
    if (!snapshot->packs) {
        destroy(snapshot);
        return;
    }
    hooks_packing_stop(&snapshot->packing);
    io_watch_stop(&snapshot->end);
    await_end(snapshot);
}

void api_snapshots_close(struct api *api)
{
    while (api->snapshots != NULL) {
        struct api_snapshot *snapshot = api->snapshots;
        int code;

        io_watch_stop(&snapshot->end); /* its peer is gone, and it is told to end */
        (void)hooks_packing_end(&snapshot->packing, true, &code);
        destroy(snapshot);
    }
}

/* --- what comes --- */

static void read_on(struct api_snapshot *snapshot);

static void on_drain(void *ctx)
{
    struct api_snapshot *snapshot = ctx;

    if (snapshot->place.stalled_ms == 0)
        return;
    api_stream_stalls(&snapshot->place, false);
    read_on(snapshot);
}

static void on_bytes(struct io_watch *watch, int events)
{
    struct api_snapshot *snapshot = watch->ctx;
    char block[READ_BYTES];
    ssize_t got = read(snapshot->packing.bytes, block, sizeof(block));

    (void)events;
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        await_end(snapshot);
        return;
    }
    if (!snapshot->begun)
        http_stream_begin(snapshot->exchange, 200, "application/x-tar", api_safe_headers,
                          API_SAFE_HEADERS, on_drain, snapshot);
    snapshot->begun = true;
    if (http_stream_write(snapshot->exchange, block, (size_t)got) <= API_STREAM_QUEUE_MAX)
        return;
    io_watch_stop(watch);
    api_stream_stalls(&snapshot->place, true);
}

static void read_on(struct api_snapshot *snapshot)
{
    io_watch_start(snapshot->api->parts->loop, &snapshot->bytes, snapshot->packing.bytes,
                   IO_READABLE, on_bytes, snapshot);
}

/* --- its begin --- */

static void begin(struct api_snapshot *snapshot, const struct alloc *alloc)
{
    const char *tasks[ALLOC_MEMBERS_MAX];
    size_t count = 0;
    struct err err = {0};

    for (uint32_t i = 0; i < alloc->assign.members_count; i++) {
        if (alloc->assign.members[i].kind == MEMBER_TASK)
            tasks[count++] = alloc->assign.members[i].name;
    }
    if (hooks_disk_pack(snapshot->api->parts->hooks, snapshot->alloc, tasks, count,
                        &snapshot->packing, &err) != 0) {
        refuse(snapshot, 500, err.text);
        return;
    }
    snapshot->packs = true;
    read_on(snapshot);
}

static void look(struct api_snapshot *snapshot);

static void on_look(struct io_timer *timer)
{
    look(timer->ctx);
}

static void look(struct api_snapshot *snapshot)
{
    const struct alloc *alloc = core_alloc(snapshot->api->parts->core, snapshot->alloc);

    if (alloc == NULL || alloc->destroy_wanted)
        refuse(snapshot, 404, "Unknown allocation");
    else if (alloc_state_lets_go(alloc->machine.state))
        begin(snapshot, alloc);
    else if (alloc_state_ends(alloc->machine.state))
        io_timer_start(snapshot->api->parts->loop, &snapshot->look, loop_now_ms() + LOOK_AGAIN_MS,
                       on_look, snapshot);
    else
        refuse(snapshot, 409, "the allocation has not ended: its disk is in use");
}

void api_alloc_snapshot(struct api_request *request)
{
    struct machine_id id;

    if (api_alloc_of(request, request->argument, &id) == NULL)
        return;
    struct api_snapshot *snapshot = calloc(1, sizeof(*snapshot));
    check(snapshot != NULL);
    if (!api_stream_take(request, &snapshot->place, false)) {
        free(snapshot);
        return;
    }
    snapshot->api = request->api;
    snapshot->exchange = request->exchange;
    (void)text_copy(snapshot->alloc, sizeof(snapshot->alloc), id.text); /* a UUID */
    snapshot->next = request->api->snapshots;
    snapshot->link = &request->api->snapshots;
    if (snapshot->next != NULL)
        snapshot->next->link = &snapshot->next;
    request->api->snapshots = snapshot;
    http_on_close(snapshot->exchange, on_closed, snapshot);
    look(snapshot);
}
