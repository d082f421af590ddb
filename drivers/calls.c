/* The door's calls: each finds or makes the run of its key, adds itself, and lets the run go on. */
#include "drivers/part.h"

#include <stdlib.h>
#include <string.h>

void call_add(struct drivers *drivers, const struct driver_key *key, struct call *call)
{
    struct run *run = run_find(drivers, key);
    bool fresh = run == NULL;
    char name[KEY_NAME_SIZE];
    struct err err = {0};

    if (key_name(key, name, &err) != 0) {
        call_fail(drivers, call, &err);
        return;
    }
    if (fresh)
        run = run_new(drivers, key);
    calls_add(&run->calls, call);
    if (fresh)
        run_attach(run);
    else
        run_advance(run);
}

/* True of what was read from somewhere and nothing was ever made for: looking again changes
 * nothing, and nothing has to be ended. */
static bool is_nobodys(const struct driver_key *key, struct err *err)
{
    char name[KEY_NAME_SIZE];

    return key_name(key, name, err) != 0;
}

void driver_recover(struct drivers *drivers, const struct driver_key *key, driver_done *done,
                    void *ctx)
{
    struct call *call = call_new(CALL_RECOVER, done, ctx);
    struct err err = {0};

    if (is_nobodys(key, &err))
        call_fail(drivers, call, &err);
    else
        call_add(drivers, key, call);
}

void driver_stop(struct drivers *drivers, const struct driver_key *key, const char *signal_name,
                 uint64_t timeout_ms, driver_done *done, void *ctx)
{
    const struct driver *driver = driver_named(drivers, key->driver);
    struct call *call = call_new(CALL_STOP, done, ctx);
    const char *name = signal_name[0] != '\0' ? signal_name
                       : driver != NULL       ? driver->stop_signal
                                              : "SIGTERM";
    uint64_t now_ms = loop_now_ms();
    struct err err = {0};

    call->signal = proc_signal_number(name);
    if (call->signal == 0 && *name != '\0') { /* else the payload's own says which */
        (void)err_set(&err, ERR_INVALID, "unknown signal \"%s\"", name);
        call_fail(drivers, call, &err);
        return;
    }
    call->at_ms = timeout_ms < UINT64_MAX - now_ms ? now_ms + timeout_ms : UINT64_MAX;
    call_add(drivers, key, call);
}

void driver_signal(struct drivers *drivers, const struct driver_key *key, const char *signal_name,
                   uint32_t once, driver_done *done, void *ctx)
{
    struct call *call = call_new(CALL_SIGNAL, done, ctx);
    struct err err = {0};

    if (driver_check_signals(driver_kind(drivers, key->driver), &err) != 0) {
        call_fail(drivers, call, &err);
        return;
    }
    call->once = once;
    call->signal = proc_signal_number(signal_name);
    if (call->signal == 0) {
        (void)err_set(&err, ERR_INVALID, "unknown signal \"%s\"", signal_name);
        call_fail(drivers, call, &err);
        return;
    }
    call_add(drivers, key, call);
}

void driver_destroy(struct drivers *drivers, const struct driver_key *key, driver_done *done,
                    void *ctx)
{
    struct call *call = call_new(CALL_DESTROY, done, ctx);
    struct err err;

    if (is_nobodys(key, &err))
        call_finish(drivers, call, DRIVER_DONE);
    else
        call_add(drivers, key, call);
}

int driver_look_begin(struct drivers *drivers, const struct driver_key *key,
                      struct driver_look *ret_look, struct err *err)
{
    struct run *run = run_find(drivers, key);

    if (run == NULL || !run_is_running(run))
        return err_set(err, ERR_GONE, "the task is not running");
    *ret_look =
        (struct driver_look){.key = *key,
                             .cgroup_mode = drivers->config.cgroup_mode,
                             .payload = run->payload,
                             .is_held = run->phase == RUN_HELD || run->phase == RUN_EXTERNAL};
    if (run->phase == RUN_EXTERNAL)
        external_look(run, &ret_look->stats);
    if (run->phase == RUN_CONTAINED)
        (void)text_copy(ret_look->cgroup, sizeof(ret_look->cgroup),
                        container_cgroup(run)); /* of the same size */
    else
        key_cgroup(drivers, key, false, ret_look->cgroup);
    return 0;
}

void driver_look_read(struct driver_look *look)
{
    struct cgroup_stats *usage = &look->stats.usage;
    int code = look->is_held ? 0
               : look->cgroup[0] == '\0'
                   ? ERR_GONE
                   : cgroup_stats(look->cgroup_mode, look->cgroup, usage, &look->err);

    if (code == ERR_GONE || code == ERR_UNSUPPORTED) {
        look->err = (struct err){0};
        (void)proc_stats(&look->payload, usage, &look->err); /* its error is kept */
    }
    look->at_ms = loop_now_ms();
    if (look->stats.timestamp_unix_ns == 0)
        look->stats.timestamp_unix_ns = loop_now_unix_ns();
}

int driver_look_end(struct drivers *drivers, const struct driver_look *look,
                    struct driver_stats *ret_stats, struct err *err)
{
    struct run *run = run_find(drivers, &look->key);
    const struct driver_stats *stats = &look->stats;
    uint64_t cpu_us = stats->usage.cpu_user_us + stats->usage.cpu_system_us;

    if (run == NULL || !run_is_running(run))
        return err_set(err, ERR_GONE, "the task is not running");
    if (look->err.code != 0)
        return err_set(err, look->err.code, "%s", look->err.text);
    *ret_stats = *stats;
    if (!look->is_held && run->stats_at_ms != 0 && look->at_ms > run->stats_at_ms &&
        cpu_us > run->stats_cpu_us)
        ret_stats->cpu_percent = (double)(cpu_us - run->stats_cpu_us) /
                                 ((double)(look->at_ms - run->stats_at_ms) * 1000.0) * 100.0;
    run->stats_at_ms = look->at_ms;
    run->stats_cpu_us = cpu_us;
    return 0;
}

int driver_stats(struct drivers *drivers, const struct driver_key *key,
                 struct driver_stats *ret_stats, struct err *err)
{
    struct driver_look look;
    int code = driver_look_begin(drivers, key, &look, err);

    if (code != 0)
        return code;
    driver_look_read(&look);
    return driver_look_end(drivers, &look, ret_stats, err);
}

bool driver_was_begun(const struct drivers *drivers, const struct driver_key *key)
{
    return key_was_begun(drivers->shim_fd, key);
}
