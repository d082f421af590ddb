/*
 * What servers ask of storage plugins here: calls to their controllers, and that this node lets go
 * of a volume or tells that one has grown.
 *
 * Names and fields are those of agent/perform/controller.c but for a few, which are put right here,
 * and errors are worded so that a server knows what to do: try a controller elsewhere, or take it
 * for done.  A server may ask the same twice, at once too, and hears the same twice.  A call that a
 * plugin cannot take just now is made again a few times, as Nomad's client does it, before whoever
 * waits hears of that.  Follows nomad v1.1.2 to v2.0.5 client/csi_endpoint.go.
 *
 * To let go of a volume is never done under its tasks, whatever a server says (I-26): it is the
 * machine of the claim that knows, and it is asked until it has let go of all, or time is over.
 * Then the server asks again.
 */
#include "agent/servers/part.h"

#include "agent/perform/controller.h"
#include "agent/world.h"
#include "spec/json.h"
#include "spec/names.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

enum {
    CALL_TRIES = 4, /* one, and three more */
    CALL_AGAIN_MS = 100,
    CALL_LIMIT_MS = 120 * 1000,
    DETACH_AGAIN_MS = 500,
    DETACH_LIMIT_MS = 60 * 1000,
};

#define RETRYABLE "CSI client error (retryable)"

/* clang-format off */
static const struct {
    const char *method;
    enum csi_call call;
    bool of_node;
} rows[] = {
    {"CSI.ControllerValidateVolume", CSI_VALIDATE, false},
    {"CSI.ControllerAttachVolume", CSI_CONTROLLER_PUBLISH, false},
    {"CSI.ControllerDetachVolume", CSI_CONTROLLER_UNPUBLISH, false},
    {"CSI.ControllerCreateVolume", CSI_CREATE_VOLUME, false},
    {"CSI.ControllerDeleteVolume", CSI_DELETE_VOLUME, false},
    {"CSI.ControllerExpandVolume", CSI_CONTROLLER_EXPAND, false},
    {"CSI.ControllerListVolumes", CSI_LIST_VOLUMES, false},
    {"CSI.ControllerCreateSnapshot", CSI_CREATE_SNAPSHOT, false},
    {"CSI.ControllerDeleteSnapshot", CSI_DELETE_SNAPSHOT, false},
    {"CSI.ControllerListSnapshots", CSI_LIST_SNAPSHOTS, false},
    {"CSI.NodeExpandVolume", CSI_NODE_EXPAND, true},
};
/* clang-format on */

static const char detach_method[] = "CSI.NodeDetachVolume";

/* A call that is not answered yet. */
struct storage_call {
    struct storage_calls *calls;
    struct rpc_called *called;
    json_t *args;
    const char *method;
    enum csi_call call;
    bool of_node;
    uint32_t tries;
    uint64_t until_ms; /* monotonic */
    struct io_timer timer;
    struct storage_call *prev, *next;
};

/* --- the end of one --- */

static void forget(struct storage_call *call)
{
    io_timer_stop(&call->timer);
    DL_DELETE(call->calls->items, call);
    json_decref(call->args);
    free(call);
}

static void answer(struct storage_call *call, const json_t *reply)
{
    rpc_answer(call->called, reply);
    forget(call);
}

static void refuse(struct storage_call *call, bool retryable, const char *why)
{
    char text[2 * ERR_TEXT_SIZE];

    (void)text_format(text, sizeof(text), "%s: %s%s", call->method, retryable ? RETRYABLE ": " : "",
                      why); /* may be cut */
    text_whole(text);
    rpc_refuse(call->called, text);
    forget(call);
}

static void again(struct storage_call *call, uint64_t wait_ms, void (*due)(struct io_timer *timer))
{
    io_timer_start(call->calls->parts->loop, &call->timer, loop_now_ms() + wait_ms, due, call);
}

/* --- fields --- */

/* Nomad has two names for a file system. */
static void name_file_system(json_t *args)
{
    json_t *options = json_object_get(args, "MountOptions");
    json_t *type = json_object_get(options, "FSType");

    if (type == NULL || json_object_get(options, "Filesystem") != NULL)
        return;
    options = json_copy(options);
    check(options != NULL);
    check(json_object_set(options, "Filesystem", type) == 0);
    check(json_object_set_new(args, "MountOptions", options) == 0);
}

/* How the volume that is to grow is used, in numbers of CSI, as modes. */
static void name_modes(json_t *args)
{
    enum { BLOCK = 1 };
    const json_t *from = json_object_get(args, "VolumeCapability");
    json_int_t access = json_integer_value(json_object_get(from, "AccessMode"));
    bool block = json_integer_value(json_object_get(from, "AccessType")) == BLOCK;
    json_t *options = json_object_get(from, "MountVolume");

    if (!json_is_object(from) || access <= 0 || access >= CSI_ACCESS_COUNT)
        return;
    check(json_object_set_new(args, "AccessMode",
                              json_string(spec_access_name((enum csi_access)access))) == 0);
    check(json_object_set_new(
              args, "AttachmentMode",
              json_string(spec_attachment_name(block ? CSI_BLOCK_DEVICE : CSI_FILE_SYSTEM))) == 0);
    if (json_is_object(options))
        check(json_object_set(args, "MountOptions", options) == 0);
}

/* ARGS as a request of the controller's; what is nil in it is left out. */
static json_t *request_of(const struct storage_call *call)
{
    json_t *args = json_copy(call->args), *value;
    const char *name;
    void *next;

    check(args != NULL);
    json_object_foreach_safe(args, next, name, value)
    {
        if (json_is_null(value))
            (void)json_object_del(args, name);
    }
    if (call->call == CSI_CONTROLLER_EXPAND)
        name_modes(args);
    name_file_system(args);
    return args;
}

/* --- calls of plugins --- */

static void ask_plugin(struct storage_call *call);

static void ask_plugin_again(struct io_timer *timer)
{
    ask_plugin(timer->ctx);
}

static void answered(void *ctx, const struct control_answer *said)
{
    struct storage_call *call = ctx;
    bool passes = said->outcome.verdict == CSI_REPEAT;

    if (said->answer != NULL || said->outcome.verdict == CSI_DONE)
        answer(call, said->answer);
    else if (passes && call->tries < CALL_TRIES && loop_now_ms() < call->until_ms)
        again(call, (uint64_t)CALL_AGAIN_MS << call->tries, ask_plugin_again);
    else
        refuse(call, passes && call->call == CSI_CONTROLLER_PUBLISH, said->error.text);
}

static void ask_plugin(struct storage_call *call)
{
    struct parts *parts = call->calls->parts;
    const char *plugin = text_of(call->args, "PluginID");
    char why[ERR_TEXT_SIZE];

    if (csi_plugins_find(parts->plugins, plugin,
                         call->of_node ? CSI_ROLE_NODE : CSI_ROLE_CONTROLLER) == NULL) {
        (void)text_format(why, sizeof(why), "plugin %s for type csi-%s not found", plugin,
                          call->of_node ? "node" : "controller"); /* may be cut */
        refuse(call, true, why);
        return;
    }
    json_t *request = request_of(call);
    call->tries++;
    controller_call(parts, plugin, call->call, request, answered, call);
    json_decref(request);
}

/* --- letting go --- */

/* Of the claims of an alloc on a volume the one that has most of it still. */
struct finding_holder {
    const json_t *args;
    struct machine_id id;
    bool found, holds;
};

static bool find_holder(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct finding_holder *finding = ctx;
    const struct volume *volume = volume_of(record);
    struct machine_id owner = machine_id_owner(id);
    const char *namespace = text_of(finding->args, "VolumeNamespace");

    if (!text_equal(owner.text, text_of(finding->args, "AllocID")) ||
        !text_equal(volume->define.volume, text_of(finding->args, "VolumeID")) ||
        (namespace[0] != '\0' && !text_equal(volume->define.namespace, namespace)))
        return true;
    finding->id = *id;
    finding->found = true;
    finding->holds = record->state != V_RELEASING;
    return !finding->holds;
}

static void ask_holder(struct storage_call *call);

static void ask_holder_again(struct io_timer *timer)
{
    ask_holder(timer->ctx);
}

static void detached(void *ctx, int code, const struct err *err)
{
    struct storage_call *call = ctx;

    if (code == 0 || code == ERR_GONE)
        answer(call, NULL);
    else if (loop_now_ms() < call->until_ms)
        again(call, DETACH_AGAIN_MS, ask_holder_again);
    else
        refuse(call, false, err->text);
}

static void ask_holder(struct storage_call *call)
{
    struct life *life = call->calls->parts->life;
    struct finding_holder finding = {.args = call->args};

    core_each(life_core(life), MACHINE_VOLUME, find_holder, &finding);
    if (finding.found)
        life_ask(life, &finding.id, VE_DETACH, NULL, detached, call);
    else
        answer(call, NULL); /* it was let go long ago */
}

/* --- the door --- */

static struct storage_call *add(struct storage_calls *calls, struct rpc_called *called,
                                const json_t *args, const char *method, uint64_t limit_ms)
{
    struct storage_call *call = calloc(1, sizeof(*call));

    check(call != NULL);
    call->calls = calls;
    call->called = called;
    call->method = method;
    call->args = json_incref((json_t *)(uintptr_t)args);
    call->until_ms = loop_now_ms() + limit_ms;
    DL_APPEND(calls->items, call);
    return call;
}

bool storage_calls_begin(struct storage_calls *calls, struct rpc_called *called, const char *method,
                         const json_t *args)
{
    size_t row = 0;

    if (text_equal(method, detach_method)) {
        ask_holder(add(calls, called, args, detach_method, DETACH_LIMIT_MS));
        return true;
    }
    while (row < COUNT_OF(rows) && !text_equal(rows[row].method, method))
        row++;
    if (row == COUNT_OF(rows))
        return false;
    struct storage_call *call = add(calls, called, args, rows[row].method, CALL_LIMIT_MS);
    call->call = rows[row].call;
    call->of_node = rows[row].of_node;
    ask_plugin(call);
    return true;
}

void storage_calls_end(struct storage_calls *calls)
{
    while (calls->items != NULL)
        refuse(calls->items, true, "the node is stopping");
}
