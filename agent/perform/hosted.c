/*
 * Host volumes: requests to their plugins as Nomad's servers name the fields of theirs, and back;
 * and where tasks find them.
 *
 * Nothing is decided: what an answer means for a volume is up to who asked.  A task whose volume
 * has not been asked for again since the daemon began waits for that: its plugin may have to mount
 * it first.
 */
#include "agent/perform/hosted.h"

#include "agent/perform/perform.h"

#include "hooks/hosted/hosted.h"

#include <stdlib.h>
#include <string.h>

/* --- to plugins and back --- */

/* One call, and its text. */
struct host_call {
    control_answer_cb *cb;
    void *ctx;
    char *parameters;
    bool is_registered; /* how large it is was told by who has made it */
};

static const char *text_of(const json_t *request, const char *name)
{
    const char *text = json_string_value(json_object_get(request, name));

    return text == NULL ? "" : text;
}

static int64_t number_of(const json_t *request, const char *name)
{
    return json_integer_value(json_object_get(request, name));
}

/* What came of it, in the words of storage plugins: a program that exits has had its say. */
static struct csi_outcome outcome_of(const struct hosted_answer *answer)
{
    if (answer->code == 0)
        return (struct csi_outcome){.verdict = CSI_DONE};
    if (answer->is_odd)
        return (struct csi_outcome){.verdict = CSI_LIES};
    return (struct csi_outcome){.verdict = answer->is_known ? CSI_REFUSED : CSI_REPEAT,
                                .may_run = !answer->is_known};
}

static void answered(void *ctx, const struct hosted_answer *answer)
{
    struct host_call *call = ctx;
    json_t *body = answer->code != 0 ? NULL
                                     : json_pack("{s:s, s:I}", "HostPath", answer->path, "Capacity",
                                                 (json_int_t)answer->bytes);
    struct control_answer told = {
        .answer = body, .outcome = outcome_of(answer), .answered = answer->is_known};

    if (call->is_registered)
        (void)json_object_del(body, "Capacity"); /* there is none if it failed */
    if (answer->code != 0)
        (void)err_set(&told.error, answer->code, "%s", answer->text);
    call->cb(call->ctx, &told);
    json_decref(body);
    free(call->parameters);
    free(call);
}

void hosted_ask_plugin(void *ctx, const char *plugin, enum csi_call which, const json_t *request,
                       control_answer_cb *cb, void *cb_ctx)
{
    struct parts *parts = ctx;
    struct host_call *call = calloc(1, sizeof(*call));
    bool is_there = json_is_true(json_object_get(request, "Registered"));
    json_t *parameters = json_object_get(request, "Parameters");

    check(call != NULL);
    check(which == CSI_CREATE_VOLUME || which == CSI_DELETE_VOLUME);
    call->is_registered = is_there;
    call->cb = cb;
    call->ctx = cb_ctx;
    call->parameters = parameters == NULL ? strdup("{}") : json_dumps(parameters, JSON_COMPACT);
    check(call->parameters != NULL);
    const struct hosted_ask ask = {
        .deletes = which == CSI_DELETE_VOLUME,
        .plugin = is_there && which == CSI_CREATE_VOLUME ? "" : plugin,
        .id = text_of(request, "ID"),
        .name = text_of(request, "Name"),
        .namespace = text_of(request, "Namespace"),
        .path = text_of(request, "HostPath"),
        .bytes_min = number_of(request, "RequestedCapacityMinBytes"),
        .bytes_max = number_of(request, "RequestedCapacityMaxBytes"),
        .parameters = call->parameters,
    };
    hosted_call(parts->hosted, &ask, answered, call);
}

bool hosted_has_plugin(void *ctx, const char *plugin)
{
    const struct parts *parts = ctx;

    return hosted_has(parts->hosted, plugin);
}

/* --- for tasks --- */

static const struct storage_volume *find(const struct parts *parts, const struct alloc_spec *alloc,
                                         const struct spec_volume *volume)
{
    const struct storage_volume *found =
        volume->type == VOLUME_HOST && parts->alone != NULL
            ? storage_find_hosted(parts->host_volumes, volume->source)
            : NULL;

    return found != NULL && text_equal(found->namespace, alloc->namespace) ? found : NULL;
}

void hosted_find_mounted(const struct parts *parts, const struct alloc_spec *alloc,
                         struct volumes_mounted *mounted)
{
    for (size_t i = 0; i < alloc->volumes_count; i++) {
        const struct storage_volume *volume = find(parts, alloc, &alloc->volumes[i]);

        if (volume == NULL)
            continue;
        check(mounted->count < COUNT_OF(mounted->claims));
        struct hook_claim *claim = &mounted->claims[mounted->count];
        *claim = (struct hook_claim){.volume = alloc->volumes[i].name};
        if (storage_hosted_is_here(volume) &&
            text_copy(mounted->paths[mounted->count], PATH_SIZE, text_of(volume->json, "HostPath")))
            claim->path = mounted->paths[mounted->count];
        mounted->count++;
    }
}

/* --- waiting for them --- */

struct held {
    struct effect effect;
    struct held *next;
};

bool hosted_holds(struct parts *parts, const struct effect *effect, const struct alloc_spec *alloc)
{
    bool waits = false;

    for (size_t i = 0; i < alloc->volumes_count; i++) {
        const struct storage_volume *volume = find(parts, alloc, &alloc->volumes[i]);
        waits = waits || (volume != NULL && storage_hosted_settles(volume));
    }
    if (!waits)
        return false;
    struct held *held = calloc(1, sizeof(*held));
    check(held != NULL);
    held->effect = *effect;
    held->effect.record = NULL; /* it is read again */
    held->effect.request = NULL;
    held->next = parts->held;
    parts->held = held;
    return true;
}

/* What still waits is held anew. */
void hosted_changed(void *ctx)
{
    struct parts *parts = ctx;
    struct held *held, *next = parts->held;

    parts->held = NULL;
    while ((held = next) != NULL) {
        next = held->next;
        held->effect.record = core_find(parts->core, &held->effect.id);
        if (held->effect.record != NULL)
            perform_effect(parts, &held->effect);
        free(held);
    }
}

void hosted_forget(struct parts *parts)
{
    while (parts->held != NULL) {
        struct held *held = parts->held;
        parts->held = held->next;
        free(held);
    }
}
