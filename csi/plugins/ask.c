/*
 * What is asked of an instance: whether somebody listens, whether it is ready, who it is.
 *
 * A question is one call, or those that identify a plugin, one behind the other; the first that
 * fails is the answer.
 */
#include "csi/plugins/part.h"

#include "io/scope.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { LOOK_MS = 50, LOOK_MS_MAX = 1000 };

static void answer(struct waiting *waiting, const struct plugin_identity *identity,
                   const struct err *err)
{
    struct waiting told = *waiting;

    *waiting = (struct waiting){0}; /* it may ask again */
    if (told.cb != NULL)
        told.cb(told.ctx, identity, err);
}

static void refuse(csi_asked *cb, void *ctx, const char *alloc, const char *task)
{
    struct err err;

    (void)err_set(&err, ERR_GONE, "no plugin is known of alloc %.40s, task %.100s", alloc, task);
    cb(ctx, NULL, &err);
}

/* --- somebody listens --- */

/* It asks nothing, so that it says no more than that. */
static bool listens(const struct instance *instance)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    scoped_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    _Static_assert(sizeof(address.sun_path) > CSI_SOCKET_MAX, "its path fits");
    check(text_copy(address.sun_path, sizeof(address.sun_path), instance->socket));
    if (fd < 0)
        return false;
    return connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 ||
           errno == EAGAIN; /* more wait for it than it takes */
}

static void look(struct io_timer *timer)
{
    struct instance *instance = timer->ctx;
    struct err err = {0};

    if (csi_instance_reach(instance, &err) == 0 && listens(instance)) {
        answer(&instance->awaits, NULL, NULL);
        return;
    }
    instance->pause_ms =
        instance->pause_ms * 2 < LOOK_MS_MAX ? instance->pause_ms * 2 : LOOK_MS_MAX;
    io_timer_start(instance->plugins->config.loop, &instance->timer,
                   loop_now_ms() + instance->pause_ms, look, instance);
}

void csi_plugins_await(struct csi_plugins *plugins, const char *alloc, const char *task,
                       csi_asked *cb, void *ctx)
{
    struct instance *instance = csi_instance_find(plugins, alloc, task);

    if (instance == NULL) {
        refuse(cb, ctx, alloc, task);
        return;
    }
    check(instance->awaits.cb == NULL); /* one at a time */
    instance->awaits = (struct waiting){cb, ctx};
    instance->pause_ms = LOOK_MS;
    io_timer_start(plugins->config.loop, &instance->timer, loop_now_ms(), look, instance);
}

/* --- questions --- */

/* The calls that identify a plugin, by what it has to be. */
static const struct {
    enum csi_call call;
    unsigned role;
} steps[] = {
    {CSI_PLUGIN_INFO, CSI_ROLE_NODE | CSI_ROLE_CONTROLLER},
    {CSI_PLUGIN_CAPABILITIES, CSI_ROLE_NODE | CSI_ROLE_CONTROLLER},
    {CSI_NODE_INFO, CSI_ROLE_NODE},
    {CSI_NODE_CAPABILITIES, CSI_ROLE_NODE},
    {CSI_CONTROLLER_CAPABILITIES, CSI_ROLE_CONTROLLER},
};

static void skip_steps(struct instance *instance)
{
    while (instance->step < COUNT_OF(steps) &&
           (steps[instance->step].role & instance->shown.roles) == 0)
        instance->step++;
}

static void conclude(struct instance *instance, const struct err *err)
{
    struct plugin_identity identity = instance->identity;

    instance->operation = NULL;
    answer(&instance->asks, instance->identifies && err == NULL ? &identity : NULL, err);
}

static void keep_topology(struct instance *instance, const struct csi_map *from)
{
    struct csi_pair *pairs;

    arena_free(&instance->arena);
    instance->arena = (struct arena){0};
    instance->shown.topology = (struct csi_map){0};
    if (from->count == 0)
        return;
    pairs = arena_new(&instance->arena, from->count * sizeof(*pairs));
    for (size_t i = 0; i < from->count; i++)
        pairs[i] = (struct csi_pair){arena_text(&instance->arena, from->pairs[i].key),
                                     arena_text(&instance->arena, from->pairs[i].value)};
    instance->shown.topology = (struct csi_map){pairs, from->count};
}

/* Takes what one call of several has answered. */
static void take(struct instance *instance, enum csi_call call, const struct csi_answer *from)
{
    struct plugin_identity *identity = &instance->identity;

    if (call == CSI_PLUGIN_INFO) { /* texts for people: cut is enough */
        (void)text_copy(identity->provider, sizeof(identity->provider), from->name);
        (void)text_copy(identity->version, sizeof(identity->version), from->version);
        text_whole(identity->version);
    } else if (call == CSI_PLUGIN_CAPABILITIES) {
        identity->plugin_capabilities = from->capabilities;
    } else if (call == CSI_NODE_INFO) {
        check(text_copy(identity->node, sizeof(identity->node), from->node_id)); /* CSI_ID_MAX */
        identity->volumes_max = from->volumes_max;
        keep_topology(instance, &from->topology);
    } else if (call == CSI_NODE_CAPABILITIES) {
        identity->node_capabilities = from->capabilities;
        identity->staging = (from->capabilities & CSI_NODE_STAGES) != 0;
    } else {
        identity->controller_capabilities = from->capabilities;
    }
}

static void ask(struct instance *instance, enum csi_call call);

static void on_result(void *ctx, const struct csi_result *result)
{
    struct instance *instance = ctx;
    struct err err;

    if (result->answer == NULL) {
        conclude(instance, &result->error);
        return;
    }
    if (!instance->identifies) {
        (void)err_set(&err, ERR_AGAIN, "plugin %s: it is not ready yet", instance->plugin);
        conclude(instance, result->answer->ready ? NULL : &err);
        return;
    }
    take(instance, result->call, result->answer);
    instance->step++;
    skip_steps(instance);
    if (instance->step == COUNT_OF(steps))
        conclude(instance, NULL);
    else
        ask(instance, steps[instance->step].call);
}

static void ask(struct instance *instance, enum csi_call call)
{
    struct csi_request request = {.call = call};
    struct err err = {0};

    if (csi_instance_reach(instance, &err) == 0)
        instance->operation = csi_start(instance->client, &request, on_result, instance, &err);
    if (err.code != 0)
        conclude(instance, &err);
}

static void begin(struct csi_plugins *plugins, const char *alloc, const char *task, bool identifies,
                  csi_asked *cb, void *ctx)
{
    struct instance *instance = csi_instance_find(plugins, alloc, task);

    if (instance == NULL) {
        refuse(cb, ctx, alloc, task);
        return;
    }
    check(instance->asks.cb == NULL); /* one at a time */
    instance->asks = (struct waiting){cb, ctx};
    instance->identifies = identifies;
    instance->identity = (struct plugin_identity){0};
    instance->step = 0;
    ask(instance, identifies ? steps[0].call : CSI_PROBE);
}

void csi_plugins_probe(struct csi_plugins *plugins, const char *alloc, const char *task,
                       csi_asked *cb, void *ctx)
{
    begin(plugins, alloc, task, false, cb, ctx);
}

void csi_plugins_identify(struct csi_plugins *plugins, const char *alloc, const char *task,
                          csi_asked *cb, void *ctx)
{
    begin(plugins, alloc, task, true, cb, ctx);
}

/* --- the end --- */

void csi_instance_silence(struct instance *instance, const struct err *err)
{
    struct waiting awaits = instance->awaits, asks = instance->asks;

    io_timer_stop(&instance->timer);
    instance->awaits = instance->asks = (struct waiting){0};
    if (instance->operation != NULL)
        csi_cancel(instance->operation); /* conclude() finds nobody who waits */
    if (err != NULL)
        answer(&awaits, NULL, err);
    if (err != NULL)
        answer(&asks, NULL, err);
}

void csi_plugins_ended(struct csi_plugins *plugins, const char *alloc, const char *task)
{
    struct instance *instance = csi_instance_find(plugins, alloc, task);
    struct err err;

    if (instance == NULL)
        return;
    (void)err_set(&err, ERR_CANCELED, "plugin %s: its task has ended", instance->plugin);
    csi_instance_silence(instance, &err);
}
