/*
 * What a task of a plugin uses, as its driver says it each few seconds while it runs: the last of
 * that is shown to whoever asks.  A driver that does not say it, or not any more, is asked again
 * when somebody wants to know.
 */
#include "drivers/external/external.h"

#include "io/log.h"

enum { EACH_MS = 5000 };

static bool on_message(void *ctx, const void *message, size_t length)
{
    struct external *external = ctx;
    struct driver_stats *used = &external->used;
    uint64_t user_us = used->usage.cpu_user_us, system_us = used->usage.cpu_system_us;
    uint64_t now_ms = loop_now_ms();
    double since_ms = external->used_at_ms == 0 ? 0 : (double)(now_ms - external->used_at_ms);
    struct external_usage usage;
    struct err err = {0};

    if (external_read_usage(message, length, &usage, &err) != 0) {
        log_debug("drivers", "driver %s says nothing that can be read of what a task uses: %s",
                  external->record.driver, err.text);
        return false;
    }
    *used = usage.stats;
    if (used->timestamp_unix_ns == 0)
        used->timestamp_unix_ns = loop_now_unix_ns();
    used->usage.cpu_user_us = user_us + (uint64_t)(usage.user_percent * 10 * since_ms);
    used->usage.cpu_system_us = system_us + (uint64_t)(usage.system_percent * 10 * since_ms);
    external->used_at_ms = now_ms;
    return true;
}

static void on_end(void *ctx, const struct grpc_reply *reply)
{
    struct external *external = ctx;

    (void)reply; /* it is asked again, or the task is over */
    external->measuring = NULL;
}

void usage_begin(struct external *external)
{
    struct err err = {0};

    if (external->measuring == NULL && external->step == STEP_WAIT)
        external->measuring =
            external_ask_usage(external, EACH_MS, on_message, on_end, &err); /* or later */
}

void external_look(struct run *run, struct driver_stats *ret_stats)
{
    usage_begin(run->external);
    *ret_stats = run->external->used;
}
