/*
 * The network of an alloc that is not the host's, which its containers are to be in.
 *
 * An Engine takes no path of a namespace, but lets a container share the network of another one: of
 * whatever that one's first process is in when the container starts.  So beside each container that
 * is in such a network there is a second one, of the same image, in which cairn-shim enters the
 * namespace (shim/network.h).  That the namespace is the right one is seen by what it is, not by
 * whether a process could have entered it by now: a container that starts a moment too soon would
 * be in an empty network for its whole life.
 */
#include "drivers/docker/docker.h"

#include <stdio.h>
#include <sys/stat.h>

enum { ENTER_BOUND_MS = 10000, ENTER_AGAIN_MS = 5 };

static void look(struct container *container);

/* The start is given up; what is there of it goes with the task. */
static bool is_over(struct container *container, const struct http_reply *reply)
{
    struct run *run = container->run;

    if (reply->status == 0 || reply->status >= 500 || reply->status / 100 == 4)
        (void)engine_fault(reply, &container->failed);
    if (container->failed.code == 0 &&
        (run_has(run, CALL_DESTROY) || container->record.stop_ms != 0))
        (void)err_set(&container->failed, ERR_CANCELED, "the task was stopped before it started");
    if (container->failed.code == 0)
        return false;
    if (container->failed.code != ERR_CANCELED) {
        container->failed.recoverable = true;
        (void)err_wrap(&container->failed, "the container that shares its network");
    }
    container_fail(container);
    return true;
}

/* Whether the first process of a container has the network of this one. */
static bool has_entered(const struct container *container, pid_t pid)
{
    struct stat wanted, found;
    char path[64];

    check(text_format(path, sizeof(path), "/proc/%d/ns/net", (int)pid));
    return pid > 1 && stat(container->namespace, &wanted) == 0 && stat(path, &found) == 0 &&
           wanted.st_dev == found.st_dev && wanted.st_ino == found.st_ino;
}

static void on_time(struct io_timer *timer)
{
    struct run *run = timer->ctx;

    look(run->container);
}

static void on_looked(void *ctx, const struct http_reply *reply)
{
    struct container *container = ctx;
    struct container_state state;

    container->request = NULL;
    if (container->run == NULL || is_over(container, reply))
        return;
    struct run *run = container->run;
    bool is_read =
        engine_read_state(reply, run->drivers->node_mark, &run->key, &state) && state.ours;
    if (is_read && state.runs && has_entered(container, state.pid)) {
        container_create(container);
        return;
    }
    if (is_read && state.runs && loop_now_ms() < run->bound_ms) {
        run_at(run, ENTER_AGAIN_MS, on_time);
        return;
    }
    (void)err_set(&container->failed, ERR_IO, "the container that shares its network %s",
                  !is_read      ? "is another one"
                  : !state.runs ? "has ended"
                                : "does not enter it");
    container->failed.recoverable = true;
    container_fail(container);
}

static void look(struct container *container)
{
    char name[SHARER_NAME_SIZE];

    sharer_name(&container->run->key, name);
    container_ask(container, STEP_NETWORK, "GET", name, "/json", NULL, on_looked);
}

static void on_started(void *ctx, const struct http_reply *reply)
{
    struct container *container = ctx;

    container->request = NULL;
    if (container->run == NULL || is_over(container, reply))
        return;
    container->run->bound_ms = loop_now_ms() + ENTER_BOUND_MS;
    look(container);
}

static void on_created(void *ctx, const struct http_reply *reply)
{
    struct container *container = ctx;
    char name[SHARER_NAME_SIZE];

    container->request = NULL;
    if (container->run == NULL || is_over(container, reply))
        return;
    sharer_name(&container->run->key, name);
    container_ask(container, STEP_NETWORK, "POST", name, "/start", NULL, on_started);
}

void network_share(struct container *container)
{
    char name[SHARER_NAME_SIZE], more[SHARER_NAME_SIZE + 16];

    sharer_name(&container->run->key, name);
    check(text_format(more, sizeof(more), "?name=%s", name));
    container_ask(container, STEP_NETWORK, "POST", "create", more, container->sharer, on_created);
}
