/*
 * Containers of this node that nobody knows: made by a request that was still under way when its
 * task was given up, or left when the files of tasks were lost.
 *
 * Only by label, never by looking like ours: one that carries this node's mark and a key of which
 * there is no file.  A file is written before its container is asked for, and goes when that has
 * gone.
 */
#include "drivers/docker/docker.h"

#include "io/log.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { LOOK_SOON_MS = 1000 };

struct stray {
    struct drivers *drivers; /* NULL: the room is closed */
    struct stray *next, **link;
    struct http_request *request;
    char name[SHARER_NAME_SIZE]; /* "": it is the list of them */
};

static void on_time(struct io_timer *timer)
{
    strays_look(timer->ctx);
}

static void look_after(struct drivers *drivers, uint64_t delay_ms)
{
    io_timer_start(drivers->config.loop, &drivers->dangling, loop_now_ms() + delay_ms, on_time,
                   drivers);
}

static void stray_free(struct stray *stray)
{
    *stray->link = stray->next;
    if (stray->next != NULL)
        stray->next->link = stray->link;
    free(stray);
}

static struct stray *stray_new(struct drivers *drivers)
{
    struct stray *stray = calloc(1, sizeof(*stray));

    check(stray != NULL);
    *stray = (struct stray){.drivers = drivers, .next = drivers->strays, .link = &drivers->strays};
    if (stray->next != NULL)
        stray->next->link = &stray->next;
    drivers->strays = stray;
    return stray;
}

static void on_removed(void *ctx, const struct http_reply *reply)
{
    struct stray *stray = ctx;

    if (stray->drivers == NULL)
        return;
    if (reply->status / 100 == 2)
        log_warn("drivers", "a container that belongs to no task was removed name=%s",
                 log_value(stray->name));
    stray_free(stray); /* what could not be removed is seen again */
}

static void remove_stray(struct drivers *drivers, const char *name)
{
    char path[SHARER_NAME_SIZE + 32];
    struct stray *stray = stray_new(drivers);

    (void)text_copy(stray->name, sizeof(stray->name), name); /* of the same size */
    check(text_format(path, sizeof(path), "/containers/%s?force=1&v=1", name));
    const struct engine_ask ask = {
        .method = "DELETE", .path = path, .cb = on_removed, .ctx = stray};
    stray->request = engine_ask(drivers, &ask, NULL);
    if (stray->request == NULL)
        stray_free(stray);
}

static bool is_known(const struct drivers *drivers, const struct driver_key *key)
{
    char name[KEY_NAME_SIZE];
    struct stat status;

    return key_name(key, name, NULL) != 0 ||
           fstatat(drivers->shim_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 ||
           run_find(drivers, key) != NULL;
}

/* True of a container that has not been there for long, as the Engine says when it was made. */
static bool is_new(const struct drivers *drivers, const json_t *container)
{
    int64_t made_s = json_integer_value(json_object_get(container, "Created"));
    int64_t grace_s = (int64_t)(drivers->config.docker.strays.grace_ms / 1000);

    return grace_s > 0 && loop_now_unix_ns() / 1000000000 - made_s < grace_s;
}

static void on_listed(void *ctx, const struct http_reply *reply)
{
    struct stray *stray = ctx;
    struct drivers *drivers = stray->drivers;

    if (drivers == NULL)
        return;
    json_t *list =
        reply->status == 200 ? json_loadb(reply->body, reply->body_length, 0, NULL) : NULL;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i), *labels = json_object_get(one, "Labels");
        char name[SHARER_NAME_SIZE];
        struct driver_key key;

        if (!container_key(labels, drivers->node_mark, &key) || is_known(drivers, &key) ||
            is_new(drivers, one))
            continue;
        if (labels_are_sharers(labels))
            sharer_name(&key, name);
        else
            container_name(&key, name);
        if (drivers->config.docker.strays.are_only_said)
            log_warn("drivers", "a container belongs to no task, and is left as it is name=%s",
                     log_value(name));
        else
            remove_stray(drivers, name);
    }
    json_decref(list);
    stray_free(stray);
}

void strays_look(struct drivers *drivers)
{
    char path[256];
    struct stray *stray;

    const struct driver_probed *probed = manager_probed(drivers, &docker_driver);

    if (drivers->config.docker.socket == NULL || drivers->config.docker.strays.are_left)
        return;
    look_after(drivers, probed->done ? drivers->config.docker.strays.period_ms : LOOK_SOON_MS);
    if (!probed->found)
        return; /* who never answered has nothing of ours */
    check(text_format(path, sizeof(path),
                      "/containers/json?all=1&filters=%%7B%%22label%%22%%3A%%5B%%22cairn.node%%3D%s"
                      "%%22%%5D%%7D",
                      drivers->node_mark));
    stray = stray_new(drivers);
    const struct engine_ask ask = {.method = "GET", .path = path, .cb = on_listed, .ctx = stray};
    stray->request = engine_ask(drivers, &ask, NULL);
    if (stray->request == NULL)
        stray_free(stray);
}

void strays_close(struct drivers *drivers)
{
    io_timer_stop(&drivers->dangling);
    while (drivers->strays != NULL) {
        struct stray *stray = drivers->strays;

        drivers->strays = stray->next;
        stray->drivers = NULL;
        http_cancel(stray->request);
        free(stray);
    }
}
