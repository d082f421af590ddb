/* What a caller asks of a volume: from its turn at it, over what is stored, to its answer. */
#include "server/storage/operation.h"

#include <stdlib.h>
#include <string.h>

enum { RETRY_MS_MAX = 5 * 60 * 1000 };

static void operation_free(struct operation *operation)
{
    json_decref(operation->wanted);
    json_decref(operation->volume);
    json_decref(operation->grown);
    storage_wipe(operation->secret);
    storage_wipe(operation->hidden);
    free(operation);
}

static void drop_operation(struct lane_task *task)
{
    operation_free((struct operation *)(void *)task);
}

struct operation *operation_new(struct storage *storage, const char *namespace, const char *id,
                                void (*begin)(struct lane_task *task))
{
    struct operation *operation = calloc(1, sizeof(*operation));

    check(operation != NULL);
    operation->task =
        (struct lane_task){.storage = storage, .begin = begin, .drop = drop_operation};
    (void)text_copy(operation->namespace, sizeof(operation->namespace), namespace);
    (void)text_copy(operation->id, sizeof(operation->id), id);
    return operation;
}

/* --- what callers ask of volumes of either kind --- */

static void ask(struct storage *storage, const char *namespace, const json_t *request, bool creates,
                storage_volume_answer *answer, void *ctx)
{
    struct operation *operation;
    struct err err = {0};
    int code = storage->kind->read(storage, namespace, request, creates, &operation, &err);

    if (code < 0) {
        answer(ctx, code, &err, NULL);
        return;
    }
    operation->creates = creates;
    operation->answer = answer;
    operation->ctx = ctx;
    storage->kind->enter(&operation->task, operation->wanted);
}

void storage_register_volume(struct storage *storage, const char *namespace, const json_t *request,
                             storage_volume_answer *answer, void *ctx)
{
    ask(storage, namespace, request, false, answer, ctx);
}

void storage_create_volume(struct storage *storage, const char *namespace, const json_t *request,
                           storage_volume_answer *answer, void *ctx)
{
    ask(storage, namespace, request, true, answer, ctx);
}

void storage_delete_volume(struct storage *storage, const char *namespace, const char *id,
                           const json_t *secrets, storage_volume_answer *answer, void *ctx)
{
    const struct registered *volume = registry_find(storage, namespace, id);
    struct operation *operation =
        operation_new(storage, namespace, id, storage->kind->begin_delete);

    if (json_object_size(secrets) > 0)
        operation->secret = json_pack("{s:o}", "Secrets", json_deep_copy(secrets));
    operation->answer = answer;
    operation->ctx = ctx;
    storage->kind->enter(&operation->task, volume == NULL ? NULL : volume->json);
}

/* --- the end --- */

void operation_finish(struct operation *operation, const json_t *answer)
{
    struct registered *volume =
        registry_find(operation->task.storage, operation->namespace, operation->id);
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

bool operation_refused(struct operation *operation, int code)
{
    check(code == operation->err.code);
    operation_finish(operation, NULL);
    return false;
}

void operation_retry_at(struct storage *storage, uint64_t at_ms)
{
    if (storage->provision_at_ms == 0 || at_ms < storage->provision_at_ms)
        storage->provision_at_ms = at_ms;
}

/* It is not known what came of a call: it is made again when the pause is over. */
static void retry_later(struct storage *storage, struct registered *volume)
{
    uint64_t now_ms = life_now_ms(storage->config.life);

    volume->failures++;
    volume->retry_at_ms =
        now_ms + policy_backoff_ms(OPERATION_RETRY_MS, RETRY_MS_MAX, volume->failures, now_ms);
    operation_retry_at(storage, volume->retry_at_ms);
}

/* --- storing --- */

void operation_stamp(struct operation *operation, enum registration_state state)
{
    struct storage *storage = operation->task.storage;
    json_int_t index = (json_int_t)life_next_index(storage->config.life);
    json_t *to = operation->volume;

    if (json_object_get(to, "CreateIndex") == NULL)
        check(json_object_update_new(
                  to, json_pack("{s:I, s:I}", "CreateIndex", index, "CreateTime",
                                (json_int_t)life_unix_ns(storage->config.life))) == 0);
    if (json_object_get(to, "Capacity") == NULL)
        check(json_object_set_new(to, "Capacity", json_integer(0)) == 0);
    check(
        json_object_update_new(to, json_pack("{s:I, s:I, s:s}", "ModifyIndex", index, "ModifyTime",
                                             (json_int_t)life_unix_ns(storage->config.life),
                                             "cairnState", registration_name(state))) == 0);
    if (operation->err.code != 0)
        check(json_object_set_new(to, "cairnFailure", json_string(operation->err.text)) == 0);
    else
        (void)json_object_del(to, "cairnFailure"); /* missing is fine */
}

bool operation_is_open(const struct registered *volume)
{
    return volume->public.state != REGISTRATION_READY || registry_grows(volume->json);
}

/* The journal took nothing: the volume is as it was, and what was open of it is so still. */
static void not_stored(struct operation *operation)
{
    struct storage *storage = operation->task.storage;
    struct registered *volume = registry_find(storage, operation->namespace, operation->id);

    check(operation->err.code < 0);
    if (volume != NULL && storage->kind->is_open(volume))
        retry_later(storage, volume);
    operation_finish(operation, NULL);
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
    not_stored(operation);
}

void operation_store(struct operation *operation, const json_t *secret,
                     void (*stored)(struct operation *operation))
{
    struct storage *storage = operation->task.storage;
    int code = life_check_turn(storage->config.life, 0, &operation->err);

    if (code < 0) {
        not_stored(operation);
        return;
    }
    /* A copy: what the next step changes is nobody's to see before it is stored in turn. */
    json_t *copy = json_deep_copy(operation->volume);
    check((copy == NULL) == (operation->volume == NULL));
    operation->stored = stored;
    registry_store(storage, operation->namespace, operation->id, copy, secret, on_stored,
                   operation);
}

void operation_store_as(struct operation *operation, enum registration_state state,
                        const json_t *secret, void (*stored)(struct operation *operation))
{
    operation_stamp(operation, state);
    operation_store(operation, secret, stored);
}

void operation_done(struct operation *operation)
{
    struct registered *volume =
        registry_find(operation->task.storage, operation->namespace, operation->id);

    if (volume != NULL) {
        volume->retry_at_ms = 0;
        volume->failures = 0;
    }
    operation_finish(operation, operation->volume);
}

void operation_doubt(struct operation *operation)
{
    struct storage *storage = operation->task.storage;
    struct registered *volume = registry_find(storage, operation->namespace, operation->id);

    check(volume != NULL); /* it has its turn until it ends */
    retry_later(storage, volume);
    say(&storage->config.say, SAY_WARN, "server",
        "a plugin was asked and nobody knows what came of it, asking again volume=%s error=%s",
        text_value(operation->id), text_value(operation->err.text));
    operation_finish(operation, NULL);
}

void operation_forget(struct operation *operation)
{
    json_decref(operation->volume);
    operation->volume = NULL;
    operation_store(operation, NULL, operation_done);
}

void operation_deleted(void *ctx, const struct control_answer *answer)
{
    struct operation *operation = ctx;

    if (answer->answer == NULL && answer->outcome.verdict != CSI_DONE)
        operation->err = answer->error;
    switch (policy_registration(REGISTRATION_DELETING, CSI_DELETE_VOLUME, &answer->outcome,
                                answer->answered)) {
    case REGISTRATION_IS_FORGOTTEN:
        operation_forget(operation);
        return;
    case REGISTRATION_BECOMES_READY:
        operation->task.storage->kind->keep(operation);
        return;
    case REGISTRATION_CALLS_AGAIN:
        operation_store_as(operation, REGISTRATION_DELETING, NULL, operation_doubt);
        return;
    case REGISTRATION_CALLS_NEXT:
        break;
    }
    unreachable("a step of a deletion");
}

void operation_later(struct operation *operation)
{
    struct storage *storage = operation->task.storage;
    struct registered *volume = registry_find(storage, operation->namespace, operation->id);

    check(volume != NULL); /* it has its turn until it ends */
    retry_later(storage, volume);
    operation_finish(operation, operation->volume);
}

/* --- plugins --- */

bool operation_has_plugin(struct operation *operation, const json_t *volume,
                          struct control_plugin *ret_plugin)
{
    const char *id = registry_text(volume, "PluginID");

    if (!registry_plugin(operation->task.storage, id, ret_plugin))
        return operation_refused(operation,
                                 ret_plugin->has_stopped
                                     ? registry_plugin_stopped(id, &operation->err)
                                     : err_set(&operation->err, ERR_INVALID,
                                               "no CSI plugin named: %s could be found", id));
    if (ret_plugin->needs_controller && !ret_plugin->controller_ready)
        return operation_refused(operation, registry_no_controller(id, &operation->err));
    return true;
}

bool operation_can(struct operation *operation, const struct control_plugin *plugin,
                   uint32_t capability, const char *lack)
{
    if (!plugin->needs_controller)
        return operation_refused(operation,
                                 err_set(&operation->err, ERR_REFUSED, "plugin has no controller"));
    if ((plugin->controller_capabilities & capability) == 0)
        return operation_refused(operation, err_set(&operation->err, ERR_REFUSED, "%s", lack));
    return true;
}

void operation_note_plugin(json_t *volume, const struct control_plugin *plugin)
{
    bool attaches = (plugin->controller_capabilities & CSI_CONTROLLER_PUBLISHES) != 0;

    check(json_object_update_new(
              volume, json_pack("{s:s, s:s, s:b, s:b}", "Provider", plugin->provider,
                                "ProviderVersion", plugin->version, "ControllerRequired",
                                plugin->needs_controller, "cairnAttaches", attaches)) == 0);
}

void operation_call(struct operation *operation, enum csi_call which, json_t *request,
                    control_answer_cb *answered)
{
    struct storage *storage = operation->task.storage;
    json_t *secrets = json_object_get(operation->hidden, "Secrets");

    check(request != NULL);
    if (json_object_size(secrets) > 0)
        check(json_object_set(request, "Secrets", secrets) == 0);
    storage->config.controller(storage->config.controller_ctx,
                               registry_text(operation->volume, "PluginID"), which, request,
                               answered, operation);
    json_decref(request);
}

bool operation_gather_secrets(struct operation *operation, const struct registered *volume)
{
    json_t *stored =
        volume == NULL ? json_object() : registry_secret(operation->task.storage, volume);
    const char *const names[] = {"Secrets", "MountFlags"};

    if (stored == NULL)
        return operation_refused(operation, err_set(&operation->err, ERR_CORRUPT,
                                                    "the volume's secrets cannot be read"));
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        json_t *given = json_object_get(operation->secret, names[i]);
        if (given != NULL)
            check(json_object_set_new(stored, names[i], json_deep_copy(given)) == 0);
    }
    storage_wipe(operation->hidden);
    operation->hidden = stored;
    return true;
}
