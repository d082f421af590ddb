/*
 * Host volumes: requests to their plugins as Nomad's servers name the fields of theirs, and back;
 * and where tasks find them.
 *
 * Nothing is decided: what an answer means for a volume is up to who asked.  A task whose volume
 * has not been asked for again since the daemon began waits for that: its plugin may have to mount
 * it first.  It waits as long as the table lets an effect take (fsm/task.h TASK_EFFECTS), and not
 * beyond its row's TX_HOOK_ABORT.
 */
#include "agent/perform/hosted.h"

#include "hooks/hosted/hosted.h"
#include "spec/json.h"

#include <stdlib.h>
#include <string.h>

/* --- to plugins and back --- */

/* One call, and its text. */
struct host_call {
    struct host_call *next, **link; /* all of them, PARTS->host_calls */
    control_answer_cb *cb;
    void *ctx;
    char *parameters;
    bool is_registered; /* how large it is was told by who has made it */
};

static void call_free(struct host_call *call)
{
    *call->link = call->next;
    if (call->next != NULL)
        call->next->link = call->link;
    free(call->parameters);
    free(call);
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
    call_free(call);
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
    call->next = parts->host_calls;
    call->link = &parts->host_calls;
    if (call->next != NULL)
        call->next->link = &call->next;
    parts->host_calls = call;
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

/* An effect under way that waits.  Its record is found again when it goes on. */
struct held {
    struct parts *parts;
    const struct hosted_wait *wait;
    struct effect effect;
    uint8_t phase, hook;
    char namespace[SPEC_NAMESPACE_SIZE], volume[SPEC_SOURCE_SIZE]; /* that it waits for */
    struct io_timer limit;
    struct held *next, **link;
};

static void let_go(struct held *held)
{
    io_timer_stop(&held->limit);
    *held->link = held->next;
    if (held->next != NULL)
        held->next->link = held->link;
    free(held);
}

static void give_up(struct held *held, const struct err *err)
{
    struct parts *parts = held->parts;
    struct effect effect = held->effect;
    const struct hosted_wait *wait = held->wait;
    uint8_t phase = held->phase, hook = held->hook;

    let_go(held);
    wait->failed(parts, &effect, phase, hook, err);
}

static void on_limit(struct io_timer *timer)
{
    struct held *held = timer->ctx;
    struct err err = {0};

    (void)err_set(&err, ERR_TIMEOUT,
                  "host volume \"%s\" is asked for again since the daemon began, and nobody knows "
                  "after %u s whether it is here",
                  held->volume, held->effect.timeout_ms / 1000);
    err.recoverable = true;
    give_up(held, &err);
}

/* A volume of ALLOC of which it is about to be known where it is, NULL: there is none. */
static const struct spec_volume *settling(const struct parts *parts, const struct alloc_spec *alloc)
{
    for (size_t i = 0; i < alloc->volumes_count; i++) {
        const struct storage_volume *volume = find(parts, alloc, &alloc->volumes[i]);

        if (volume != NULL && storage_hosted_settles(volume))
            return &alloc->volumes[i];
    }
    return NULL;
}

static void wait_for(struct held *held, const struct alloc_spec *alloc,
                     const struct spec_volume *volume)
{
    (void)text_copy(held->namespace, sizeof(held->namespace), alloc->namespace); /* same size */
    (void)text_copy(held->volume, sizeof(held->volume), volume->source);         /* likewise */
}

bool hosted_holds(struct parts *parts, const struct effect *effect, const struct alloc_spec *alloc,
                  const struct hosted_wait *wait)
{
    const struct spec_volume *volume = settling(parts, alloc);

    if (volume == NULL)
        return false;
    struct held *held = calloc(1, sizeof(*held));
    check(held != NULL);
    check(effect->timeout_ms != 0);
    held->parts = parts;
    held->wait = wait;
    held->effect = *effect;
    held->effect.record = NULL;
    held->effect.request = NULL;
    held->phase = task_of(effect->record)->phase;
    held->hook = task_of(effect->record)->hook;
    wait_for(held, alloc, volume);
    held->next = parts->held;
    held->link = &parts->held;
    if (held->next != NULL)
        held->next->link = &held->next;
    parts->held = held;
    io_timer_start(parts->loop, &held->limit, loop_now_ms() + effect->timeout_ms, on_limit, held);
    return true;
}

static void cancel(struct held *held)
{
    struct err err = {0};

    (void)err_set(&err, ERR_CANCELED, "nobody waits for it any more");
    give_up(held, &err);
}

void hosted_abort(struct parts *parts, const struct machine_id *id)
{
    struct held *held = parts->held;

    while (held != NULL && !machine_id_equal(&held->effect.id, id))
        held = held->next;
    if (held != NULL)
        cancel(held);
}

/* Specifications are looked at again only by those whose volume is known to be here or not. */
static bool still_waits(struct held *held)
{
    struct parts *parts = held->parts;
    const struct storage_volume *awaited = storage_find_hosted(parts->host_volumes, held->volume);
    struct machine_id owner = machine_id_owner(&held->effect.id);
    struct err err = {0};

    if (awaited != NULL && text_equal(awaited->namespace, held->namespace) &&
        storage_hosted_settles(awaited))
        return true;
    const struct alloc_spec *alloc = specs_find(parts->specs, owner.text, &err);
    const struct spec_volume *volume = alloc == NULL ? NULL : settling(parts, alloc);
    if (volume == NULL)
        return false;
    wait_for(held, alloc, volume);
    return true;
}

/* Once more, if its machine is where it was. */
static void go_on(struct held *held)
{
    const struct machine *record = core_find(held->parts->core, &held->effect.id);
    struct parts *parts = held->parts;
    const struct hosted_wait *wait = held->wait;
    struct effect effect = held->effect;

    if (record == NULL || record->generation != effect.generation ||
        task_of(record)->phase != held->phase || task_of(record)->hook != held->hook) {
        cancel(held);
        return;
    }
    let_go(held);
    effect.record = record;
    wait->again(parts, &effect);
}

void hosted_changed(void *ctx)
{
    struct parts *parts = ctx;
    struct held *held, *next = parts->held;

    while ((held = next) != NULL) {
        next = held->next;
        if (!still_waits(held))
            go_on(held);
    }
}

void hosted_forget(struct parts *parts)
{
    while (parts->held != NULL)
        let_go(parts->held);
    while (parts->host_calls != NULL)
        call_free(parts->host_calls);
}
