/*
 * What callers ask of volumes: to be registered, made, changed, deleted, forgotten.
 *
 * Each is done in its turn at the volume (lanes.c), in steps: what is wanted is stored; then the
 * plugin is asked; then what it answered is stored, and the caller told.  A daemon that comes back
 * between two steps, or a plugin that dies in the second, leaves a volume that says what is open,
 * and the second step is made again: its calls can be repeated (csi.md 2.10).
 *
 * Follows nomad v2.0.5 nomad/csi_endpoint.go, whose words are used.
 */
#include "server/alone/registry.h"

#include <stdlib.h>
#include <string.h>

enum { RETRY_MS = 1000, RETRY_MS_MAX = 5 * 60 * 1000 };

struct operation {
    struct lane_task task;
    char namespace[SPEC_NAMESPACE_SIZE], id[REGISTRY_ID_SIZE];
    json_t *wanted; /* the volume of a request */
    json_t *secret; /* and what of it is secret, or what goes with a deletion */
    json_t *volume; /* what is stored next */
    json_t *hidden; /* all secrets that the plugin is given */
    bool creates;   /* not only registers */
    bool force;
    bool is_new;
    struct err err; /* told to the caller when what is known has been stored */
    void (*stored)(struct operation *operation);
    alone_volume_answer *answer; /* NULL: nobody waits for it */
    void *ctx;
};

static void operation_free(struct operation *operation)
{
    json_decref(operation->wanted);
    json_decref(operation->volume);
    alone_wipe(operation->secret);
    alone_wipe(operation->hidden);
    free(operation);
}

static void drop_operation(struct lane_task *task)
{
    operation_free((struct operation *)(void *)task);
}

static struct operation *operation_new(struct alone *alone, const char *namespace, const char *id,
                                       void (*begin)(struct lane_task *task))
{
    struct operation *operation = calloc(1, sizeof(*operation));

    check(operation != NULL);
    operation->task = (struct lane_task){.alone = alone, .begin = begin, .drop = drop_operation};
    (void)text_copy(operation->namespace, sizeof(operation->namespace), namespace);
    (void)text_copy(operation->id, sizeof(operation->id), id);
    return operation;
}

/* --- the end --- */

static void finish(struct operation *operation, const json_t *answer)
{
    struct registered *volume =
        registry_find(operation->task.alone, operation->namespace, operation->id);
    json_t *held = json_incref((json_t *)(uintptr_t)answer);

    if (volume != NULL)
        volume->resumes = false;
    lane_leave(&operation->task);
    if (operation->answer != NULL && operation->err.code != 0)
        operation->answer(operation->ctx, operation->err.code, &operation->err, NULL);
    else if (operation->answer != NULL)
        operation->answer(operation->ctx, 0, NULL, held);
    json_decref(held);
    operation_free(operation);
}

/* Ends OPERATION with its error, whose code is CODE: false. */
static bool refused(struct operation *operation, int code)
{
    check(code == operation->err.code);
    finish(operation, NULL);
    return false;
}

static void provision_at(struct alone *alone, uint64_t at_ms)
{
    if (alone->provision_at_ms == 0 || at_ms < alone->provision_at_ms)
        alone->provision_at_ms = at_ms;
}

/* It is not known what came of a call: it is made again when the pause is over. */
static void retry_later(struct alone *alone, struct registered *volume)
{
    uint64_t now_ms = life_now_ms(alone->config.life);

    volume->failures++;
    volume->retry_at_ms =
        now_ms + policy_backoff_ms(RETRY_MS, RETRY_MS_MAX, volume->failures, now_ms);
    provision_at(alone, volume->retry_at_ms);
}

/* --- storing --- */

static void stamp(struct operation *operation, enum registration_state state)
{
    struct alone *alone = operation->task.alone;
    json_int_t index = (json_int_t)core_figures(life_core(alone->config.life)).sequence + 1;
    json_t *to = operation->volume;

    if (json_object_get(to, "CreateIndex") == NULL)
        check(json_object_update_new(to, json_pack("{s:I, s:I}", "CreateIndex", index, "CreateTime",
                                                   (json_int_t)life_unix_ns(alone->config.life))) ==
              0);
    if (json_object_get(to, "Capacity") == NULL)
        check(json_object_set_new(to, "Capacity", json_integer(0)) == 0);
    check(
        json_object_update_new(to, json_pack("{s:I, s:I, s:s}", "ModifyIndex", index, "ModifyTime",
                                             (json_int_t)life_unix_ns(alone->config.life),
                                             "cairnState", registration_name(state))) == 0);
}

static void on_stored(void *ctx, int code, const struct err *err)
{
    struct operation *operation = ctx;

    if (code == 0) {
        operation->stored(operation);
        return;
    }
    operation->err = *err;
    operation->err.code = code;
    finish(operation, NULL);
}

/* operation->volume is stored, NULL: it is forgotten; then goes on with STORED. */
static void store(struct operation *operation, const json_t *secret,
                  void (*stored)(struct operation *operation))
{
    struct alone *alone = operation->task.alone;
    int code = alone_check_turn(alone, 0, &operation->err);

    if (code < 0) {
        finish(operation, NULL);
        return;
    }
    operation->stored = stored;
    registry_store(alone, operation->namespace, operation->id, json_incref(operation->volume),
                   secret, on_stored, operation);
}

static void store_as(struct operation *operation, enum registration_state state,
                     const json_t *secret, void (*stored)(struct operation *operation))
{
    stamp(operation, state);
    store(operation, secret, stored);
}

/* What was asked for has come about, or has failed for good. */
static void done(struct operation *operation)
{
    struct registered *volume =
        registry_find(operation->task.alone, operation->namespace, operation->id);

    if (volume != NULL) {
        volume->retry_at_ms = 0;
        volume->failures = 0;
    }
    finish(operation, operation->volume);
}

/* It is stored that nobody knows. */
static void doubtful(struct operation *operation)
{
    struct alone *alone = operation->task.alone;
    struct registered *volume = registry_find(alone, operation->namespace, operation->id);

    check(volume != NULL); /* it has its turn until it ends */
    retry_later(alone, volume);
    say(&alone->config.say, SAY_WARN, "server",
        "a plugin was asked and nobody knows what came of it, asking again volume=%s error=%s",
        text_value(operation->id), text_value(operation->err.text));
    finish(operation, NULL);
}

/* --- plugins --- */

/* True if the plugin of VOLUME is there, and its controller if it has one; else it has failed. */
static bool has_plugin(struct operation *operation, const json_t *volume,
                       struct control_plugin *ret_plugin)
{
    const char *id = registry_text(volume, "PluginID");

    if (!registry_plugin(operation->task.alone, id, ret_plugin))
        return refused(operation, err_set(&operation->err, ERR_INVALID,
                                          "no CSI plugin named: %s could be found", id));
    if (ret_plugin->needs_controller && !ret_plugin->controller_ready)
        return refused(operation, err_set(&operation->err, ERR_AGAIN,
                                          "no healthy controllers for CSI plugin: %s", id));
    return true;
}

static bool has_capability(struct operation *operation, const struct control_plugin *plugin,
                           uint32_t capability, const char *lack)
{
    if (!plugin->needs_controller)
        return refused(operation,
                       err_set(&operation->err, ERR_REFUSED, "plugin has no controller"));
    if ((plugin->controller_capabilities & capability) == 0)
        return refused(operation, err_set(&operation->err, ERR_REFUSED, "%s", lack));
    return true;
}

static void note_plugin(json_t *volume, const struct control_plugin *plugin)
{
    bool attaches = (plugin->controller_capabilities & CSI_CONTROLLER_PUBLISHES) != 0;

    check(json_object_update_new(
              volume, json_pack("{s:s, s:s, s:b, s:b}", "Provider", plugin->provider,
                                "ProviderVersion", plugin->version, "ControllerRequired",
                                plugin->needs_controller, "cairnAttaches", attaches)) == 0);
}

static void call(struct operation *operation, enum csi_call which, json_t *request,
                 control_answer_cb *answered)
{
    struct alone *alone = operation->task.alone;
    json_t *secrets = json_object_get(operation->hidden, "Secrets");

    check(request != NULL);
    if (json_object_size(secrets) > 0)
        check(json_object_set(request, "Secrets", secrets) == 0);
    alone->config.controller(alone->config.ctx, registry_text(operation->volume, "PluginID"), which,
                             request, answered, operation);
    json_decref(request);
}

/* The secrets that are stored, and those of the request, which come over them. */
static bool gather_secrets(struct operation *operation, const struct registered *volume)
{
    json_t *stored =
        volume == NULL ? json_object() : registry_secret(operation->task.alone, volume);
    const char *const names[] = {"Secrets", "MountFlags"};

    if (stored == NULL)
        return refused(operation, err_set(&operation->err, ERR_CORRUPT,
                                          "the volume's secrets cannot be read"));
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        json_t *given = json_object_get(operation->secret, names[i]);
        if (given != NULL)
            check(json_object_set_new(stored, names[i], json_deep_copy(given)) == 0);
    }
    alone_wipe(operation->hidden);
    operation->hidden = stored;
    return true;
}

/* --- expanding --- */

/* The volume is asked to have so much: RET_CALLS, and its plugin has to be asked for that. */
static int plan_capacity(struct operation *operation, bool *ret_calls)
{
    json_int_t min = json_integer_value(json_object_get(operation->wanted, "RequestedCapacityMin"));
    json_int_t max = json_integer_value(json_object_get(operation->wanted, "RequestedCapacityMax"));
    json_t *volume = operation->volume;
    json_int_t has = json_integer_value(json_object_get(volume, "Capacity"));

    *ret_calls = false;
    if ((min == 0 && max == 0) ||
        (min == json_integer_value(json_object_get(volume, "RequestedCapacityMin")) &&
         max == json_integer_value(json_object_get(volume, "RequestedCapacityMax"))))
        return 0;
    if (max > 0 && max < min)
        return err_set(&operation->err, ERR_INVALID,
                       "unable to update volume: max requested capacity (%lld B) less than or "
                       "equal to min (%lld B)",
                       (long long)max, (long long)min);
    if (max > 0 && max < has)
        return err_set(&operation->err, ERR_INVALID,
                       "unable to update volume: max requested capacity (%lld B) less than or "
                       "equal to current (%lld B)",
                       (long long)max, (long long)has);
    *ret_calls = min > has;
    check(json_object_update_new(volume, *ret_calls
                                             ? json_pack("{s:[I, I]}", "cairnExpands", min, max)
                                             : json_pack("{s:I, s:I}", "RequestedCapacityMin", min,
                                                         "RequestedCapacityMax", max)) == 0);
    return 0;
}

static void expanded(void *ctx, const struct control_answer *answer)
{
    struct operation *operation = ctx;
    json_t *asked = json_object_get(operation->volume, "cairnExpands");
    const json_t *bytes = json_object_get(answer->answer, "CapacityBytes");

    if (answer->answer == NULL) {
        operation->err = answer->error;
        (void)err_wrap(&operation->err, "unable to expand volume");
    }
    if (answer->answer == NULL && !policy_is_settled(&answer->outcome, answer->answered)) {
        store_as(operation, REGISTRATION_READY, NULL, doubtful);
        return;
    }
    if (answer->answer != NULL) {
        check(json_object_set(operation->volume, "RequestedCapacityMin",
                              json_array_get(asked, 0)) == 0);
        check(json_object_set(operation->volume, "RequestedCapacityMax",
                              json_array_get(asked, 1)) == 0);
        check(json_object_set_new(operation->volume, "Capacity",
                                  json_integer(json_integer_value(bytes))) == 0);
    }
    (void)json_object_del(operation->volume, "cairnExpands"); /* it is there */
    store_as(operation, REGISTRATION_READY, NULL, done);
}

static void call_expand(struct operation *operation)
{
    json_t *asked = json_object_get(operation->volume, "cairnExpands");
    json_t *request = json_pack(
        "{s:s, s:{s:O, s:O}, s:{s:s}, s:O}", "ExternalVolumeID",
        registry_remote_id(operation->volume), "CapacityRange", "RequiredBytes",
        json_array_get(asked, 0), "LimitBytes", json_array_get(asked, 1), "MountOptions",
        "Filesystem", registry_text(json_object_get(operation->volume, "MountOptions"), "FSType"),
        "VolumeCapabilities", json_object_get(operation->volume, "RequestedCapabilities"));

    call(operation, CSI_CONTROLLER_EXPAND, request, expanded);
}

/* --- registering --- */

/* The fields of what is registered that a request may not change, and the words for that. */
static const struct {
    const char *name, *wrong;
    bool may_be_empty; /* then it is as it was */
} fixed[] = {
    {"Name", "volume name cannot be updated", true},
    {"ExternalID", "volume external ID cannot be updated", true},
    {"PluginID", "volume plugin ID cannot be updated", false},
    {"CloneID", "volume clone ID cannot be updated", true},
    {"SnapshotID", "volume snapshot ID cannot be updated", true},
};

static bool is_used_as(const json_t *capabilities, const struct alone_claims *claims)
{
    struct claim_terms terms[REGISTRY_TERMS_MAX];
    json_t *probe = json_pack("{s:O}", "RequestedCapabilities", capabilities);
    size_t count = registry_terms(probe, terms);
    bool found = claims->readers + claims->writers == 0;

    json_decref(probe);
    for (size_t i = 0; i < count; i++)
        found |= terms[i].access == claims->access && terms[i].attachment == claims->attachment;
    return found;
}

/* The registered VOLUME as operation->wanted changes it, into operation->volume. */
static int merge(struct operation *operation, const struct registered *volume)
{
    const struct alone_claims claims = alone_claims_of(operation->task.alone, &volume->public);
    const bool used = claims.readers + claims.writers > 0;
    json_t *to = json_deep_copy(volume->json), *from = operation->wanted, *given;
    const char *wrong = NULL;

    check(to != NULL);
    operation->volume = to;
    for (size_t i = 0; i < COUNT_OF(fixed); i++) {
        const char *text = registry_text(from, fixed[i].name);
        if (!text_equal(text, registry_text(to, fixed[i].name)) &&
            !(fixed[i].may_be_empty && text[0] == '\0'))
            wrong = fixed[i].wrong;
    }
    given = json_object_get(from, "RequestedCapabilities");
    if (!is_used_as(given, &claims))
        wrong = "volume requested capabilities update was not compatible with existing capability "
                "in use";
    check(json_object_set(to, "RequestedCapabilities", given) == 0);
    if (json_array_size(json_object_get(to, "Topologies")) > 0 &&
        !json_equal(json_object_get(to, "RequestedTopologies"),
                    json_object_get(from, "RequestedTopologies")))
        wrong = "volume topology request update was not compatible with existing topology";
    given = json_object_get(from, "MountOptions");
    if (used && (!json_equal(given, json_object_get(to, "MountOptions")) ||
                 !json_equal(json_object_get(from, "cairnMountFlags"),
                             json_object_get(to, "cairnMountFlags"))))
        wrong = "can not update mount options while volume is in use";
    check(json_object_set(to, "MountOptions", given) == 0);
    check(json_object_set(to, "cairnMountFlags", json_object_get(from, "cairnMountFlags")) == 0);
    given = json_object_get(from, "Parameters");
    if (json_object_size(given) > 0 && !json_equal(given, json_object_get(to, "Parameters")))
        wrong = "volume parameters cannot be updated";
    given = json_object_get(from, "Context");
    if (json_object_size(given) > 0)
        check(json_object_set(to, "Context", given) == 0);
    return wrong == NULL
               ? 0
               : err_set(&operation->err, ERR_INVALID, "unable to update volume: %s", wrong);
}

static void validated(void *ctx, const struct control_answer *answer)
{
    struct operation *operation = ctx;

    if (answer->answer == NULL) {
        operation->err = answer->error;
        finish(operation, NULL);
        return;
    }
    store_as(operation, REGISTRATION_READY, operation->secret, done);
}

static json_t *mount_options(const struct operation *operation)
{
    json_t *options =
        json_pack("{s:s}", "Filesystem",
                  registry_text(json_object_get(operation->volume, "MountOptions"), "FSType"));
    json_t *flags = json_object_get(operation->hidden, "MountFlags");

    if (flags != NULL)
        check(json_object_set(options, "MountFlags", flags) == 0);
    return options;
}

/* What is registered is what the plugin confirms; one without a controller is believed. */
static void validate(struct operation *operation)
{
    const json_t *volume = operation->volume;

    if (!json_is_true(json_object_get(volume, "ControllerRequired"))) {
        store_as(operation, REGISTRATION_READY, operation->secret, done);
        return;
    }
    call(operation, CSI_VALIDATE,
         json_pack("{s:s, s:O, s:o, s:O, s:O}", "VolumeID", registry_remote_id(volume),
                   "VolumeCapabilities", json_object_get(volume, "RequestedCapabilities"),
                   "MountOptions", mount_options(operation), "Parameters",
                   json_object_get(volume, "Parameters"), "Context",
                   json_object_get(volume, "Context")),
         validated);
}

static void change(struct operation *operation, const struct registered *volume,
                   const struct control_plugin *plugin)
{
    bool calls;

    if (merge(operation, volume) < 0 || plan_capacity(operation, &calls) < 0) {
        finish(operation, NULL);
        return;
    }
    note_plugin(operation->volume, plugin);
    if (!calls) {
        validate(operation);
        return;
    }
    if (has_capability(operation, plugin, CSI_CONTROLLER_EXPANDS,
                       "unable to update volume: expand is not implemented by this controller "
                       "plugin"))
        store_as(operation, REGISTRATION_READY, operation->secret, call_expand);
}

/* --- creating --- */

static bool learn(struct operation *operation, const json_t *answer)
{
    const char *external = registry_text(answer, "ExternalVolumeID");
    json_t *topologies = json_object_get(answer, "Topologies");
    json_t *context = json_object_get(answer, "VolumeContext");
    json_t *bytes = json_object_get(answer, "CapacityBytes");

    check(json_object_set_new(operation->volume, "ExternalID", json_string(external)) == 0);
    (void)json_object_del(operation->volume, "cairnNameless"); /* missing is fine */
    if (context != NULL)
        check(json_object_set(operation->volume, "Context", context) == 0);
    if (json_array_size(topologies) > 0)
        check(json_object_set(operation->volume, "Topologies", topologies) == 0);
    check(json_object_set_new(operation->volume, "Capacity",
                              json_integer(json_integer_value(bytes))) == 0);
    if (external[0] != '\0' && strlen(external) < sizeof(((struct claim *)0)->external))
        return true;
    (void)err_set(&operation->err, ERR_UNSUPPORTED,
                  "the plugin gives the volume an id that no claim can hold: it is deleted again");
    return false;
}

static void call_delete(struct operation *operation);

static void forget(struct operation *operation)
{
    json_decref(operation->volume);
    operation->volume = NULL;
    store(operation, NULL, done);
}

static void created(void *ctx, const struct control_answer *answer)
{
    struct operation *operation = ctx;
    bool deletes = text_equal(registry_text(operation->volume, "cairnState"), "deleting");
    enum registration_state state = deletes ? REGISTRATION_DELETING : REGISTRATION_CREATING;
    bool learned = answer->answer == NULL || learn(operation, answer->answer);

    if (answer->answer == NULL)
        operation->err = answer->error;
    switch (policy_registration(state, CSI_CREATE_VOLUME, &answer->outcome, answer->answered)) {
    case REGISTRATION_BECOMES_READY:
        if (learned)
            store_as(operation, REGISTRATION_READY, NULL, done);
        else
            store_as(operation, REGISTRATION_DELETING, NULL, call_delete);
        return;
    case REGISTRATION_CALLS_NEXT:
        store_as(operation, REGISTRATION_DELETING, NULL, call_delete);
        return;
    case REGISTRATION_IS_FORGOTTEN:
        if (deletes)
            operation->err = (struct err){0}; /* there is nothing to delete */
        forget(operation);
        return;
    case REGISTRATION_CALLS_AGAIN:
        store_as(operation, state, NULL, doubtful);
        return;
    }
    unreachable("a step of a registration");
}

static void call_create(struct operation *operation)
{
    static const char *const kept[] = {"Name", "Parameters", "SnapshotID", "CloneID",
                                       "RequestedTopologies"};
    const json_t *volume = operation->volume;
    json_t *request = json_pack("{s:O, s:O, s:O, s:o}", "VolumeCapabilities",
                                json_object_get(volume, "RequestedCapabilities"), "CapacityMin",
                                json_object_get(volume, "RequestedCapacityMin"), "CapacityMax",
                                json_object_get(volume, "RequestedCapacityMax"), "MountOptions",
                                mount_options(operation));

    for (size_t i = 0; i < COUNT_OF(kept); i++)
        check(json_object_set(request, kept[i], json_object_get(volume, kept[i])) == 0);
    call(operation, CSI_CREATE_VOLUME, request, created);
}

/* A new one, or one of which nobody knows yet whether it was made as another request wanted it. */
static void create(struct operation *operation, const struct registered *before,
                   const struct control_plugin *plugin)
{
    static const char *const kept[] = {"CreateIndex", "CreateTime"};

    if (!has_capability(operation, plugin, CSI_CONTROLLER_CREATES,
                        "plugin does not support creating volumes"))
        return;
    operation->volume = json_incref(operation->wanted);
    if (registry_text(operation->volume, "Name")[0] == '\0')
        check(json_object_set_new(operation->volume, "Name", json_string(operation->id)) == 0);
    for (size_t i = 0; before != NULL && i < COUNT_OF(kept); i++)
        check(json_object_set(operation->volume, kept[i], json_object_get(before->json, kept[i])) ==
              0);
    note_plugin(operation->volume, plugin);
    store_as(operation, REGISTRATION_CREATING, operation->secret, call_create);
}

static void enlist(struct operation *operation, const struct control_plugin *plugin)
{
    json_t *topologies = json_object_get(operation->wanted, "RequestedTopologies");
    json_t *required = json_object_get(topologies, "Required");

    operation->volume = json_incref(operation->wanted);
    if (json_array_size(required) > 0)
        check(json_object_set(operation->volume, "Topologies", required) == 0);
    note_plugin(operation->volume, plugin);
    validate(operation);
}

static void begin_register(struct lane_task *task)
{
    struct operation *operation = (struct operation *)(void *)task;
    const struct registered *volume =
        registry_find(task->alone, operation->namespace, operation->id);
    struct control_plugin plugin;

    if (volume == NULL && HASH_COUNT(task->alone->volumes) >= NODE_VOLUMES_MAX) {
        (void)refused(operation,
                      err_set(&operation->err, ERR_LIMIT,
                              "there may be %d volumes, and so many there are", NODE_VOLUMES_MAX));
        return;
    }
    if (!has_plugin(operation, operation->wanted, &plugin) || !gather_secrets(operation, volume))
        return;
    if (volume != NULL && volume->public.state == REGISTRATION_READY)
        change(operation, volume, &plugin);
    else if (volume != NULL &&
             !(operation->creates && volume->public.state == REGISTRATION_CREATING))
        (void)refused(operation,
                      err_set(&operation->err, ERR_AGAIN, "the volume is being %s",
                              volume->public.state == REGISTRATION_CREATING ? "made" : "deleted"));
    else if (operation->creates)
        create(operation, volume, &plugin);
    else
        enlist(operation, &plugin);
}

static void ask_register(struct alone *alone, const char *namespace, const json_t *request,
                         bool creates, alone_volume_answer *answer, void *ctx)
{
    json_t *wanted, *secret;
    struct err err = {0};

    if (registry_read(request, namespace, &wanted, &secret, &err) < 0) {
        answer(ctx, err.code, &err, NULL);
        return;
    }
    struct operation *operation = operation_new(alone, registry_text(wanted, "Namespace"),
                                                registry_text(wanted, "ID"), begin_register);
    operation->wanted = wanted;
    operation->secret = secret;
    operation->creates = creates;
    operation->answer = answer;
    operation->ctx = ctx;
    lane_enter(&operation->task, operation->namespace, operation->id);
}

void alone_register_volume(struct alone *alone, const char *namespace, const json_t *request,
                           alone_volume_answer *answer, void *ctx)
{
    ask_register(alone, namespace, request, false, answer, ctx);
}

void alone_create_volume(struct alone *alone, const char *namespace, const json_t *request,
                         alone_volume_answer *answer, void *ctx)
{
    ask_register(alone, namespace, request, true, answer, ctx);
}

/* --- deleting --- */

static void deleted(void *ctx, const struct control_answer *answer)
{
    struct operation *operation = ctx;

    if (answer->answer == NULL && answer->outcome.verdict != CSI_DONE)
        operation->err = answer->error;
    switch (policy_registration(REGISTRATION_DELETING, CSI_DELETE_VOLUME, &answer->outcome,
                                answer->answered)) {
    case REGISTRATION_IS_FORGOTTEN:
        forget(operation);
        return;
    case REGISTRATION_BECOMES_READY:
        store_as(operation, REGISTRATION_READY, NULL, done);
        return;
    case REGISTRATION_CALLS_AGAIN:
        store_as(operation, REGISTRATION_DELETING, NULL, doubtful);
        return;
    case REGISTRATION_CALLS_NEXT:
        break;
    }
    unreachable("a step of a deletion");
}

static void call_delete(struct operation *operation)
{
    if (json_is_true(json_object_get(operation->volume, "cairnNameless"))) {
        call_create(operation); /* its answer says what there is to delete */
        return;
    }
    call(operation, CSI_DELETE_VOLUME,
         json_pack("{s:s}", "ExternalVolumeID", registry_remote_id(operation->volume)), deleted);
}

static bool is_there(struct operation *operation, const struct registered *volume)
{
    return volume != NULL || refused(operation, err_set(&operation->err, ERR_GONE,
                                                        "volume not found: %s", operation->id));
}

static bool is_in_use(struct operation *operation, const struct registered *volume)
{
    const struct alone_claims claims = alone_claims_of(operation->task.alone, &volume->public);

    if (claims.readers + claims.writers == 0)
        return false;
    (void)refused(operation,
                  err_set(&operation->err, ERR_REFUSED, "volume in use: %s", operation->id));
    return true;
}

static void begin_delete(struct lane_task *task)
{
    struct operation *operation = (struct operation *)(void *)task;
    const struct registered *volume =
        registry_find(task->alone, operation->namespace, operation->id);
    struct control_plugin plugin;

    if (!is_there(operation, volume))
        return;
    if (is_in_use(operation, volume) || !has_plugin(operation, volume->json, &plugin) ||
        !has_capability(operation, &plugin, CSI_CONTROLLER_CREATES,
                        "plugin does not support deleting volumes") ||
        !gather_secrets(operation, volume))
        return;
    operation->volume = json_deep_copy(volume->json);
    if (volume->public.state == REGISTRATION_CREATING)
        check(json_object_set_new(operation->volume, "cairnNameless", json_true()) == 0);
    store_as(operation, REGISTRATION_DELETING, operation->hidden, call_delete);
}

void alone_delete_volume(struct alone *alone, const char *namespace, const char *id,
                         const json_t *secrets, alone_volume_answer *answer, void *ctx)
{
    struct operation *operation = operation_new(alone, namespace, id, begin_delete);

    if (json_object_size(secrets) > 0)
        operation->secret = json_pack("{s:o}", "Secrets", json_deep_copy(secrets));
    operation->answer = answer;
    operation->ctx = ctx;
    lane_enter(&operation->task, namespace, id);
}

/* --- forgetting --- */

struct finding_live {
    const struct core *core;
    bool found;
};

static bool find_live(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct finding_live *finding = ctx;
    struct machine_id owner = machine_id_owner(id);
    const struct alloc *alloc = core_alloc(finding->core, owner.text);

    (void)record;
    finding->found |= alloc != NULL && alloc->ended_unix_ns == 0;
    return !finding->found;
}

static void begin_deregister(struct lane_task *task)
{
    struct operation *operation = (struct operation *)(void *)task;
    const struct registered *volume =
        registry_find(task->alone, operation->namespace, operation->id);
    struct finding_live finding = {.core = life_core(task->alone->config.life)};

    if (!is_there(operation, volume))
        return;
    if (operation->force)
        alone_each_claim(task->alone, &volume->public, find_live, &finding);
    if (operation->force && !finding.found)
        forget(operation);
    else if (!is_in_use(operation, volume))
        forget(operation);
}

void alone_deregister_volume(struct alone *alone, const char *namespace, const char *id, bool force,
                             alone_volume_answer *answer, void *ctx)
{
    struct operation *operation = operation_new(alone, namespace, id, begin_deregister);

    operation->force = force;
    operation->answer = answer;
    operation->ctx = ctx;
    lane_enter(&operation->task, namespace, id);
}

/* --- taking off the node --- */

static void detached(void *ctx, const struct control_answer *answer)
{
    struct operation *operation = ctx;

    if (answer->answer == NULL && answer->outcome.verdict != CSI_DONE)
        operation->err = answer->error;
    finish(operation, NULL);
}

static void begin_detach(struct lane_task *task)
{
    struct operation *operation = (struct operation *)(void *)task;
    const struct registered *volume =
        registry_find(task->alone, operation->namespace, operation->id);
    struct finding_live finding = {.core = life_core(task->alone->config.life)};
    struct control_plugin plugin;

    if (!is_there(operation, volume))
        return;
    alone_each_claim(task->alone, &volume->public, find_live, &finding);
    if (finding.found) {
        (void)refused(operation, err_set(&operation->err, ERR_REFUSED,
                                         "volume in use: %s; stop the allocs that have it first",
                                         operation->id));
        return;
    }
    const struct alone_claims claims = alone_claims_of(task->alone, &volume->public);
    if (claims.readers + claims.writers > 0) {
        (void)refused(operation,
                      err_set(&operation->err, ERR_AGAIN,
                              "volume %s is still being unmounted after its allocs have ended",
                              operation->id));
        return;
    }
    (void)registry_plugin(task->alone, registry_text(volume->json, "PluginID"), &plugin);
    if (!plugin.controller_ready || plugin.node_id[0] == '\0' ||
        (plugin.controller_capabilities & CSI_CONTROLLER_PUBLISHES) == 0) {
        finish(operation, NULL); /* nobody attaches it to nodes, or could take it off */
        return;
    }
    if (!gather_secrets(operation, volume))
        return;
    operation->volume = json_incref(volume->json);
    call(operation, CSI_CONTROLLER_UNPUBLISH,
         json_pack("{s:s, s:s}", "VolumeID", registry_remote_id(volume->json), "ClientCSINodeID",
                   plugin.node_id),
         detached);
}

void alone_detach_volume(struct alone *alone, const char *namespace, const char *id,
                         alone_volume_answer *answer, void *ctx)
{
    struct operation *operation = operation_new(alone, namespace, id, begin_detach);

    operation->answer = answer;
    operation->ctx = ctx;
    lane_enter(&operation->task, namespace, id);
}

/* --- going on --- */

static bool is_open(const struct registered *volume)
{
    return volume->public.state != REGISTRATION_READY ||
           json_object_get(volume->json, "cairnExpands") != NULL;
}

/* Whoever had his turn before may have seen to it. */
static void begin_resume(struct lane_task *task)
{
    struct operation *operation = (struct operation *)(void *)task;
    struct registered *volume = registry_find(task->alone, operation->namespace, operation->id);
    struct control_plugin plugin;

    if (volume == NULL || !is_open(volume)) {
        finish(operation, NULL);
        return;
    }
    registry_plugin(task->alone, registry_text(volume->json, "PluginID"), &plugin);
    if (!plugin.controller_ready) {
        finish(operation, NULL); /* alone_plugins_changed tells when it is */
        return;
    }
    if (!gather_secrets(operation, volume))
        return;
    operation->volume = json_deep_copy(volume->json);
    if (volume->public.state == REGISTRATION_CREATING)
        call_create(operation);
    else if (volume->public.state == REGISTRATION_DELETING)
        call_delete(operation);
    else
        call_expand(operation);
}

void provision_tidy(struct alone *alone)
{
    struct registered *volume, *next;
    uint64_t now_ms = life_now_ms(alone->config.life);

    if (alone->provision_at_ms == 0 || alone->provision_at_ms > now_ms)
        return;
    alone->provision_at_ms = 0;
    HASH_ITER(hh, alone->volumes, volume, next)
    {
        if (volume->retry_at_ms == 0 || volume->resumes)
            continue;
        if (volume->retry_at_ms > now_ms) {
            provision_at(alone, volume->retry_at_ms);
            continue;
        }
        volume->retry_at_ms = 0;
        volume->resumes = true;
        struct operation *operation =
            operation_new(alone, volume->namespace, volume->id, begin_resume);
        lane_enter(&operation->task, operation->namespace, operation->id);
    }
}

/* What is open is looked at by the next tidy. */
void provision_resume(struct alone *alone)
{
    for (struct registered *volume = alone->volumes; volume != NULL; volume = volume->hh.next) {
        if (!is_open(volume) || volume->resumes)
            continue;
        volume->retry_at_ms = 1;
        provision_at(alone, 1);
    }
}

void alone_plugins_changed(struct alone *alone)
{
    if (alone == NULL)
        return;
    alone_node_changed(alone);
    provision_resume(alone);
}
