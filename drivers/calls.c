/* The door's calls: each finds or makes the run of its key, adds itself, and lets the run go on. */
#include "drivers/part.h"

#include <stdlib.h>
#include <string.h>

/* Adds CALL to the run of KEY, which is made if there is none. */
static void add_call(struct drivers *drivers, const struct driver_key *key, struct call *call)
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

/* --- beginning --- */

/* A job may start thousands of tasks in one turn, and each start makes a process.  Those that do
 * not fit into BEGIN_MS wait for the next iteration of the loop, which between two of them hears of
 * other things. */
static void begin_some(struct io_timer *timer)
{
    struct drivers *drivers = timer->ctx;

    drivers->begin_until_ms = 0;
    if (drivers->begin_first == NULL)
        return;
    uint64_t until_ms = loop_now_ms() + BEGIN_MS;
    do {
        struct run *run = drivers->begin_first;

        drivers->begin_first = run->begin_next;
        run_attach(run);
    } while (drivers->begin_first != NULL && loop_now_ms() < until_ms);
    drivers->begin_until_ms = until_ms;
    io_timer_start(drivers->config.loop, timer, 0, begin_some, drivers);
}

/* May free the run. */
static void begin(struct run *run)
{
    struct drivers *drivers = run->drivers;
    uint64_t now_ms = loop_now_ms();

    check(run->phase == RUN_NEW);
    if (drivers->begin_until_ms == 0) {
        drivers->begin_until_ms = now_ms + BEGIN_MS;
        io_timer_start(drivers->config.loop, &drivers->begin, 0, begin_some, drivers);
    }
    if (drivers->begin_first == NULL && now_ms < drivers->begin_until_ms) {
        run_attach(run);
        return;
    }
    if (drivers->begin_first == NULL)
        drivers->begin_end = &drivers->begin_first;
    *drivers->begin_end = run;
    drivers->begin_end = &run->begin_next;
}

static void on_user(struct io_work *work)
{
    struct plan *plan = work->ctx;
    struct run *run = plan->run;

    plan->looking = false;
    if (run == NULL) {
        plan_free(plan);
        return;
    }
    if (plan->error.code == 0) {
        plan_add_user(plan);
    } else {
        for (struct call *call = run->calls.first; call != NULL; call = call->next) {
            if (call->kind == CALL_START)
                call->result.error = plan->error;
        }
        run->plan = NULL;
        plan_free(plan);
    }
    begin(run);
}

/* What START asks for as a launch record, or the reason why it cannot be. */
static struct plan *make_plan(const struct drivers *drivers, const struct driver_start *start,
                              struct err *err)
{
    const struct driver *driver = driver_named(start->key.driver);
    struct command command;

    if (driver == NULL) {
        (void)err_set(err, ERR_INVALID, "unknown driver \"%s\"", start->key.driver);
        return NULL;
    }
    if (!driver->is_enabled(&drivers->config)) {
        (void)err_set(err, ERR_REFUSED, "driver %s is disabled on this node", driver->name);
        return NULL;
    }
    if (driver->read_config(start->task, &command, err) != 0)
        return NULL;
    command.has_cgroup = driver->has_cgroup(&drivers->config);
    struct plan *plan = plan_new(drivers, start, &command, err);
    command_close(&command);
    return plan;
}

void driver_start(struct drivers *drivers, const struct driver_start *start, driver_done *done,
                  void *ctx)
{
    struct call *call = call_new(CALL_START, done, ctx);
    char name[KEY_NAME_SIZE];

    if (run_find(drivers, &start->key) != NULL || key_name(&start->key, name, NULL) != 0) {
        add_call(drivers, &start->key, call);
        return;
    }
    struct run *run = run_new(drivers, &start->key);
    calls_add(&run->calls, call);
    /* A start that is not possible now may still have been done before: its reason is kept. */
    run->plan = make_plan(drivers, start, &call->result.error);
    if (run->plan == NULL || run->plan->user[0] == '\0') {
        begin(run);
        return;
    }
    run->plan->run = run;
    run->plan->looking = true;
    io_work_submit(drivers->config.loop, &run->plan->work, plan_look_up_user, on_user, run->plan);
}

void driver_recover(struct drivers *drivers, const struct driver_key *key, driver_done *done,
                    void *ctx)
{
    add_call(drivers, key, call_new(CALL_RECOVER, done, ctx));
}

void driver_stop(struct drivers *drivers, const struct driver_key *key, const char *signal_name,
                 uint64_t timeout_ms, driver_done *done, void *ctx)
{
    const struct driver *driver = driver_named(key->driver);
    struct call *call = call_new(CALL_STOP, done, ctx);
    const char *name = signal_name[0] != '\0' ? signal_name
                       : driver != NULL       ? driver->stop_signal
                                              : "SIGTERM";
    uint64_t now_ms = loop_now_ms();
    struct err err = {0};

    call->signal = proc_signal_number(name);
    if (call->signal == 0) {
        (void)err_set(&err, ERR_INVALID, "unknown signal \"%s\"", name);
        call_fail(drivers, call, &err);
        return;
    }
    call->at_ms = timeout_ms < UINT64_MAX - now_ms ? now_ms + timeout_ms : UINT64_MAX;
    add_call(drivers, key, call);
}

void driver_signal(struct drivers *drivers, const struct driver_key *key, const char *signal_name,
                   driver_done *done, void *ctx)
{
    struct call *call = call_new(CALL_SIGNAL, done, ctx);
    struct err err = {0};

    call->signal = proc_signal_number(signal_name);
    if (call->signal == 0) {
        (void)err_set(&err, ERR_INVALID, "unknown signal \"%s\"", signal_name);
        call_fail(drivers, call, &err);
        return;
    }
    add_call(drivers, key, call);
}

void driver_destroy(struct drivers *drivers, const struct driver_key *key, driver_done *done,
                    void *ctx)
{
    add_call(drivers, key, call_new(CALL_DESTROY, done, ctx));
}

int driver_look_begin(struct drivers *drivers, const struct driver_key *key,
                      struct driver_look *ret_look, struct err *err)
{
    const struct run *run = run_find(drivers, key);

    if (run == NULL || run->phase != RUN_RUNNING)
        return err_set(err, ERR_GONE, "the task is not running");
    *ret_look = (struct driver_look){
        .key = *key, .cgroup_mode = drivers->config.cgroup_mode, .payload = run->payload};
    key_cgroup(drivers->node_mark, key, ret_look->cgroup);
    return 0;
}

void driver_look_read(struct driver_look *look)
{
    struct cgroup_stats *usage = &look->stats.usage;
    int code = cgroup_stats(look->cgroup_mode, look->cgroup, usage, &look->err);

    if (code == ERR_GONE || code == ERR_UNSUPPORTED) {
        look->err = (struct err){0};
        (void)proc_stats(&look->payload, usage, &look->err); /* its error is kept */
    }
    look->at_ms = loop_now_ms();
    look->stats.timestamp_unix_ns = loop_now_unix_ns();
}

int driver_look_end(struct drivers *drivers, const struct driver_look *look,
                    struct driver_stats *ret_stats, struct err *err)
{
    struct run *run = run_find(drivers, &look->key);
    const struct driver_stats *stats = &look->stats;
    uint64_t cpu_us = stats->usage.cpu_user_us + stats->usage.cpu_system_us;

    if (run == NULL || run->phase != RUN_RUNNING)
        return err_set(err, ERR_GONE, "the task is not running");
    if (look->err.code != 0)
        return err_set(err, look->err.code, "%s", look->err.text);
    *ret_stats = *stats;
    if (run->stats_at_ms != 0 && look->at_ms > run->stats_at_ms && cpu_us > run->stats_cpu_us)
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
