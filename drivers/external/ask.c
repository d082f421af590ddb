/*
 * What a plugin is asked about a task, and what is read of its answers.
 *
 * Follows nomad v2.0.6 plugins/drivers/proto/driver.proto, server.go and client.go.
 */
#include "drivers/external/external.h"

#include "drivers/external/task.pb-c.h"
#include "plugins/protocol/read.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MAX (UINT64_C(1) << 50)

enum {
    START_MS = 3600 * 1000, /* it may have to fetch what it starts */
    ASK_MS = 30 * 1000,
    STOP_GRACE_MS = 15 * 1000, /* behind the kill timeout, for it to say so */
    STOP_LONGEST_MS = 24 * 3600 * 1000,
    PERCENT_MAX = 100 * 65536, /* of so many processors */
    ANSWER_BYTES_MAX = HANDLE_BYTES_MAX + 4096,
};

/* What a message says when it begins: of a task that the plugin does not know. */
static const char not_found[] = "task not found for given id";

static ProtobufCBinaryData text(const char *text)
{
    return (ProtobufCBinaryData){strlen(text), (uint8_t *)(uintptr_t)text};
}

/* Asks METHOD with MESSAGE; MESSAGE is copied. */
static struct grpc_request *ask(struct external *external, const char *method,
                                const ProtobufCMessage *message, const struct grpc_call *more,
                                struct err *err)
{
    size_t size = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = malloc(size + 1);
    struct grpc_call call = *more;

    check(bytes != NULL);
    check(protobuf_c_message_pack(message, bytes) == size);
    call.message = bytes;
    call.message_length = size;
    call.answer_bytes_max = ANSWER_BYTES_MAX;
    call.ctx = external;
    struct grpc_request *request = plugins_ask(external->run->drivers->config.plugins,
                                               external->record.driver, method, &call, err);
    explicit_bzero(bytes, size);
    free(bytes);
    return request;
}

struct grpc_request *external_ask(struct external *external, const char *method,
                                  uint64_t timeout_ms,
                                  void (*cb)(void *ctx, const struct grpc_reply *reply),
                                  struct err *err)
{
    Task__OfTask request = TASK__OF_TASK__INIT;
    const struct grpc_call call = {.timeout_ms = timeout_ms != 0 ? timeout_ms : ASK_MS, .cb = cb};

    request.id = text(external->record.id);
    return ask(external, method, &request.base, &call, err);
}

struct grpc_request *external_ask_start(struct external *external, const char *config,
                                        size_t length,
                                        void (*cb)(void *ctx, const struct grpc_reply *reply),
                                        struct err *err)
{
    Task__Config own = TASK__CONFIG__INIT;
    Task__StartRequest request = TASK__START_REQUEST__INIT;
    const struct grpc_call call = {.timeout_ms = START_MS, .lasts = true, .cb = cb};

    const struct {
        const char *host, *inside;
    } files[] = {{external->resolv, "/etc/resolv.conf"}, {external->hosts, "/etc/hosts"}};
    Task__Mount mounts[COUNT_OF(files)], *list[COUNT_OF(files)];
    const struct spec_driver *kind = driver_kind(external->run->drivers, external->record.driver);

    for (size_t i = 0; i < COUNT_OF(files); i++) {
        if (files[i].host[0] == '\0' || kind == NULL || kind->isolation == ISOLATION_NONE)
            continue;
        mounts[i] = (Task__Mount)TASK__MOUNT__INIT;
        mounts[i].task_path = text(files[i].inside);
        mounts[i].host_path = text(files[i].host);
        mounts[i].read_only = true;
        mounts[i].propagation = text("private");
        list[own.n_mounts++] = &mounts[i];
    }
    own.mounts = list;
    own.driver_config = (ProtobufCBinaryData){length, (uint8_t *)(uintptr_t)config};
    size_t size = protobuf_c_message_get_packed_size(&own.base);
    uint8_t *whole = malloc(external->task_length + size + 1);
    check(whole != NULL);
    memcpy(whole, external->task, external->task_length);
    check(protobuf_c_message_pack(&own.base, whole + external->task_length) == size);
    request.task = (ProtobufCBinaryData){external->task_length + size, whole};
    struct grpc_request *started = ask(external, "StartTask", &request.base, &call, err);
    explicit_bzero(whole, request.task.len);
    free(whole);
    return started;
}

struct grpc_request *external_ask_recover(struct external *external, const char *handle,
                                          void (*cb)(void *ctx, const struct grpc_reply *reply),
                                          struct err *err)
{
    Task__RecoverRequest request = TASK__RECOVER_REQUEST__INIT;
    const struct grpc_call call = {.timeout_ms = ASK_MS, .cb = cb};

    request.id = text(external->record.id);
    request.handle =
        (ProtobufCBinaryData){external->record.handle_length, (uint8_t *)(uintptr_t)handle};
    return ask(external, "RecoverTask", &request.base, &call, err);
}

/* A stream of one message, since there is no time by which it has to come. */
struct grpc_request *
external_ask_wait(struct external *external,
                  bool (*on_message)(void *ctx, const void *message, size_t length),
                  void (*cb)(void *ctx, const struct grpc_reply *reply), struct err *err)
{
    Task__OfTask request = TASK__OF_TASK__INIT;
    const struct grpc_call call = {.lasts = true, .on_message = on_message, .cb = cb};

    request.id = text(external->record.id);
    return ask(external, "WaitTask", &request.base, &call, err);
}

struct grpc_request *
external_ask_usage(struct external *external, uint64_t interval_ms,
                   bool (*on_message)(void *ctx, const void *message, size_t length),
                   void (*cb)(void *ctx, const struct grpc_reply *reply), struct err *err)
{
    Task__UsageRequest request = TASK__USAGE_REQUEST__INIT;
    Task__Duration interval = TASK__DURATION__INIT;
    const struct grpc_call call = {.lasts = true, .on_message = on_message, .cb = cb};

    interval.seconds = (int64_t)(interval_ms / 1000);
    interval.nanos = (int32_t)(interval_ms % 1000 * 1000000);
    request.id = text(external->record.id);
    request.interval = &interval;
    return ask(external, "TaskStats", &request.base, &call, err);
}

struct grpc_request *external_ask_stop(struct external *external, uint64_t timeout_ms,
                                       void (*cb)(void *ctx, const struct grpc_reply *reply),
                                       struct err *err)
{
    Task__StopRequest request = TASK__STOP_REQUEST__INIT;
    Task__Duration timeout = TASK__DURATION__INIT;
    char name[SIGNAL_NAME_SIZE] = "";
    uint64_t most_ms = timeout_ms < STOP_LONGEST_MS ? timeout_ms : STOP_LONGEST_MS;
    const struct grpc_call call = {.timeout_ms = most_ms + STOP_GRACE_MS, .lasts = true, .cb = cb};

    if (external->record.stop_signal != 0)
        (void)proc_signal_name(external->record.stop_signal, name); /* it was one's number */
    timeout.seconds = (int64_t)(most_ms / 1000);
    timeout.nanos = (int32_t)(most_ms % 1000 * 1000000);
    request.id = text(external->record.id);
    request.timeout = &timeout;
    request.signal = text(name);
    return ask(external, "StopTask", &request.base, &call, err);
}

struct grpc_request *external_ask_signal(struct external *external, int signal,
                                         void (*cb)(void *ctx, const struct grpc_reply *reply),
                                         struct err *err)
{
    Task__SignalRequest request = TASK__SIGNAL_REQUEST__INIT;
    const struct grpc_call call = {.timeout_ms = ASK_MS, .cb = cb};
    char name[SIGNAL_NAME_SIZE];

    request.id = text(external->record.id);
    request.signal = text(proc_signal_name(signal, name));
    return ask(external, "SignalTask", &request.base, &call, err);
}

struct grpc_request *external_ask_destroy(struct external *external,
                                          void (*cb)(void *ctx, const struct grpc_reply *reply),
                                          struct err *err)
{
    Task__DestroyRequest request = TASK__DESTROY_REQUEST__INIT;
    const struct grpc_call call = {.timeout_ms = ASK_MS, .cb = cb};

    request.id = text(external->record.id);
    request.force = true;
    return ask(external, "DestroyTask", &request.base, &call, err);
}

/* --- answers --- */

int external_read_handle(const void *bytes, size_t length, char **ret_handle, size_t *ret_length,
                         struct err *err)
{
    struct arena arena = {0};
    struct reading from = reading_begin(&arena, err);
    const Task__StartAnswer *answer =
        reading_unpack(&from, &task__start_answer__descriptor, bytes, length);

    if (answer != NULL && answer->result != 0) /* which no driver says so */
        from.code = err_set(err, ERR_REFUSED, "the driver has not started it");
    else if (answer != NULL && (answer->handle.len == 0 || answer->handle.len > HANDLE_BYTES_MAX))
        reading_refuse(&from, ERR_INVALID, "the task's handle", "is missing, or too long");
    if (from.code == 0) {
        *ret_handle = malloc(answer->handle.len);
        check(*ret_handle != NULL);
        memcpy(*ret_handle, answer->handle.data, answer->handle.len);
        *ret_length = answer->handle.len;
    }
    arena_free(&arena);
    return from.code;
}

static void take_exit(const Task__Exit *exit, struct external_status *status)
{
    if (exit == NULL)
        return;
    status->has_result = true;
    status->code = exit->code;
    status->signal = exit->signal > 0 && exit->signal < NSIG ? exit->signal : 0;
    status->oom_killed = exit->oom_killed;
}

int external_read_wait(const void *bytes, size_t length, struct external_status *ret_status,
                       struct err *err)
{
    struct arena arena = {0};
    struct reading from = reading_begin(&arena, err);
    const Task__WaitAnswer *answer =
        reading_unpack(&from, &task__wait_answer__descriptor, bytes, length);
    struct external_status status = {.has_ended = true};

    if (answer != NULL && answer->error.len == 0) {
        take_exit(answer->result, &status);
    } else if (answer != NULL) {
        json_t *words = reading_words(answer->error);

        (void)text_copy(status.error, sizeof(status.error), json_string_value(words)); /* cut */
        text_whole(status.error);
        json_decref(words);
    }
    arena_free(&arena);
    if (from.code == 0)
        *ret_status = status;
    return from.code;
}

/* 0: it was not said. */
static int64_t time_of(const Task__Duration *at)
{
    bool is_one = at != NULL && at->seconds > 0 && at->seconds < INT64_MAX / 1000000000 - 1 &&
                  at->nanos >= 0 && at->nanos < 1000000000;

    return is_one ? at->seconds * 1000000000 + at->nanos : 0;
}

int external_read_status(const void *bytes, size_t length, struct external_status *ret_status,
                         struct err *err)
{
    enum { RUNNING = 1, EXITED = 2 };
    struct arena arena = {0};
    struct reading from = reading_begin(&arena, err);
    const Task__InspectAnswer *answer =
        reading_unpack(&from, &task__inspect_answer__descriptor, bytes, length);
    struct external_status status = {.runs = false};

    if (answer != NULL && answer->task == NULL)
        reading_refuse(&from, ERR_INVALID, "the task's state", "is missing");
    if (from.code == 0) {
        status.runs = answer->task->state == RUNNING;
        status.has_ended = answer->task->state == EXITED;
        if (status.has_ended)
            take_exit(answer->task->result, &status);
        status.finished_unix_ns = time_of(answer->task->completed);
    }
    arena_free(&arena);
    if (from.code == 0)
        *ret_status = status;
    return from.code;
}

/* What makes no sense is nothing. */
static double percent_of(double said)
{
    return said > 0 && said < PERCENT_MAX ? said : 0;
}

static uint64_t bytes_of(uint64_t said)
{
    return said < BYTES_MAX ? said : 0;
}

int external_read_usage(const void *bytes, size_t length, struct external_usage *ret_usage,
                        struct err *err)
{
    struct arena arena = {0};
    struct reading from = reading_begin(&arena, err);
    const Task__UsageAnswer *answer =
        reading_unpack(&from, &task__usage_answer__descriptor, bytes, length);
    const Task__Used *all = answer == NULL || answer->usage == NULL ? NULL : answer->usage->all;
    struct external_usage usage = {.user_percent = 0};

    if (answer != NULL && all == NULL)
        reading_refuse(&from, ERR_INVALID, "what the task uses", "is missing");
    if (from.code == 0 && all->cpu != NULL) {
        usage.stats.cpu_percent = percent_of(all->cpu->percent);
        usage.user_percent = percent_of(all->cpu->user_percent);
        usage.system_percent = percent_of(all->cpu->system_percent);
        usage.stats.usage.throttled_periods = all->cpu->throttled_periods;
        usage.stats.usage.throttled_us = all->cpu->throttled_ns / 1000;
    }
    if (from.code == 0 && all->memory != NULL) {
        usage.stats.usage.memory_rss_bytes = bytes_of(all->memory->rss);
        usage.stats.usage.memory_cache_bytes = bytes_of(all->memory->cache);
        usage.stats.usage.memory_swap_bytes = bytes_of(all->memory->swap);
        usage.stats.usage.memory_usage_bytes = bytes_of(all->memory->usage);
        usage.stats.usage.memory_usage_bytes_max = bytes_of(all->memory->usage_max);
    }
    if (from.code == 0)
        usage.stats.timestamp_unix_ns = time_of(answer->usage->at);
    arena_free(&arena);
    if (from.code == 0)
        *ret_usage = usage;
    return from.code;
}

/* Whether the driver says that trying again may help, which it does by what comes with an error. */
static bool is_recoverable(const struct grpc_reply *reply)
{
    static const char type[] =
        "type.googleapis.com/hashicorp.nomad.plugins.shared.structs.RecoverableError";
    struct arena arena = {0};
    struct err unheard = {0};
    struct reading from = reading_begin(&arena, &unheard);
    const Task__ErrorStatus *status = reply->more == NULL
                                          ? NULL
                                          : reading_unpack(&from, &task__error_status__descriptor,
                                                           reply->more, reply->more_length);
    bool recoverable = false;

    if (status != NULL && status->n_details > 0 && status->details[0]->type.len == strlen(type) &&
        memcmp(status->details[0]->type.data, type, strlen(type)) == 0) {
        const Task__Recoverable *said =
            reading_unpack(&from, &task__recoverable__descriptor, status->details[0]->value.data,
                           status->details[0]->value.len);
        recoverable = said != NULL && said->recoverable;
    }
    arena_free(&arena);
    return recoverable;
}

void external_fault(const struct grpc_reply *reply, const char *driver, struct err *ret_err)
{
    char said[ERR_TEXT_SIZE];

    if (!reply->answered) {
        *ret_err = reply->error;
        ret_err->recoverable = true;
        (void)err_wrap(ret_err, "driver %s", driver);
        return;
    }
    (void)text_copy(said, sizeof(said), reply->detail); /* may be cut */
    text_whole(said);
    text_clean(said);
    (void)err_set(ret_err, reply->error.code, "%s",
                  said[0] != '\0' ? said : reply->error.text); /* only to be filled */
    ret_err->recoverable = is_recoverable(reply);
}

bool external_is_unknown(const struct grpc_reply *reply)
{
    return reply->answered &&
           (reply->status == GRPC_NOT_FOUND || strstr(reply->detail, not_found) != NULL);
}
