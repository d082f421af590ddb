/*
 * Starts: waiting for what is in their way, then beginning, some at a time.
 *
 * One generation of a task at a time, whatever the journal says.  Within one life of the daemon the
 * task's machine sees to that: it starts the next generation when the last one has been destroyed.
 * Here a start ends what an earlier life left of its task, and waits until each has been seen
 * empty; it waits in the same way for a destroy of its own generation that is under way.
 */
#include "drivers/part.h"

#include <stdlib.h>
#include <string.h>

/* --- beginning --- */

/* A job may start thousands of tasks in one turn.  Those that do not fit into BEGIN_MS wait for the
 * next iteration of the loop, which between two of them hears of other things; those that would
 * make more than BIRTHS_MAX processes at once wait for one of these. */
static void begin_some(struct io_timer *timer)
{
    struct drivers *drivers = timer->ctx;

    drivers->begin_until_ms = 0;
    if (drivers->begin_first == NULL || drivers->births >= BIRTHS_MAX)
        return;
    uint64_t until_ms = loop_now_ms() + BEGIN_MS;
    do {
        struct run *run = drivers->begin_first;

        drivers->begin_first = run->begin_next;
        run_attach(run);
    } while (drivers->begin_first != NULL && drivers->births < BIRTHS_MAX &&
             loop_now_ms() < until_ms);
    drivers->begin_until_ms = until_ms;
    io_timer_start(drivers->config.loop, timer, 0, begin_some, drivers);
}

/* Arms the end of this iteration, if nothing has begun in it. */
static void begin_iteration(struct drivers *drivers, uint64_t now_ms)
{
    if (drivers->begin_until_ms != 0)
        return;
    drivers->begin_until_ms = now_ms + BEGIN_MS;
    io_timer_start(drivers->config.loop, &drivers->begin, 0, begin_some, drivers);
}

static void go_on_beginning(struct drivers *drivers)
{
    if (drivers->begin_first != NULL)
        begin_iteration(drivers, loop_now_ms());
}

/* May free the run. */
static void begin(struct run *run)
{
    struct drivers *drivers = run->drivers;
    uint64_t now_ms = loop_now_ms();

    check(run->phase == RUN_NEW);
    begin_iteration(drivers, now_ms);
    if (drivers->begin_first == NULL && drivers->births < BIRTHS_MAX &&
        now_ms < drivers->begin_until_ms) {
        run_attach(run);
        return;
    }
    if (drivers->begin_first == NULL)
        drivers->begin_end = &drivers->begin_first;
    drivers->begin_go_on = go_on_beginning;
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

struct plan *plan_make(const struct drivers *drivers, const struct driver_start *start,
                       const struct texts *instead, struct err *err)
{
    const struct driver *driver = driver_named(drivers, start->key.driver);
    struct command command;
    struct driver_info info;

    if (driver == NULL ? external_may_come(drivers, start->key.driver)
                       : driver->way == WAY_PLUGIN) {
        const char *denied = manager_denial(&drivers->config, start->key.driver);

        if (denied == NULL)
            return plan_new_external(drivers, start, err);
        (void)err_set(err, ERR_REFUSED, "driver %s cannot be used on this node: %s",
                      start->key.driver, denied);
        return NULL;
    }
    if (driver == NULL) {
        (void)err_set(err, ERR_INVALID, "unknown driver \"%s\"", start->key.driver);
        return NULL;
    }
    if (!manager_look(drivers, driver, &info)) {
        (void)err_set(err, ERR_REFUSED, "driver %s cannot be used on this node: %s",
                      driver->kind.name, info.description);
        return NULL;
    }
    if (command_read(driver, start->task, &command, err) != 0)
        return NULL;
    if (driver->prepare(drivers, manager_probed(drivers, driver), &command, err) != 0) {
        command_close(&command);
        return NULL;
    }
    struct command run = command; /* what is in it stays the other's */
    if (instead != NULL) {
        run.program = instead->items[0];
        run.arguments = (struct texts){instead->items + 1, instead->count - 1};
    }
    struct plan *plan = driver->way == WAY_HELD ? plan_new_held(drivers, start, err)
                        : driver->way == WAY_CONTAINED
                            ? plan_new_contained(drivers, start, &run, err)
                            : plan_new(drivers, start, &run, err);
    command_close(&command);
    return plan;
}

/* CALL and PLAN are moved.  PLAN is NULL if the start is not possible: CALL says why, and what was
 * done under this key before may still be found. */
static void start_begin(struct drivers *drivers, const struct driver_key *key, struct call *call,
                        struct plan *plan)
{
    if (run_find(drivers, key) != NULL) { /* asked for by somebody else, while this one waited */
        plan_free(plan);
        call_add(drivers, key, call);
        return;
    }
    struct run *run = run_new(drivers, key);
    calls_add(&run->calls, call);
    run->plan = plan;
    if (plan == NULL || plan->user[0] == '\0') {
        begin(run);
        return;
    }
    plan->run = run;
    plan->looking = true;
    io_work_submit(drivers->config.loop, &plan->work, plan_look_up_user, on_user, plan);
}

/* --- waiting --- */

static void go_on(struct waiting_start *waiting)
{
    struct call *call = waiting->call;
    struct plan *plan = waiting->plan;
    struct drivers *drivers = waiting->drivers;
    struct driver_key key = waiting->key;

    if (waiting->error.code != 0 && call->result.error.code == 0) {
        call->result.error = waiting->error;
        plan_free(plan);
        plan = NULL;
    }
    waiting->call = NULL;
    waiting->plan = NULL;
    waiting_free(waiting);
    start_begin(drivers, &key, call, plan);
}

static void on_ended(void *ctx, const struct driver_result *result)
{
    struct waiting_start *waiting = ctx;

    if (result->outcome == DRIVER_FAILED) {
        waiting->error = result->error;
        waiting->error.recoverable = true;
        (void)err_wrap(&waiting->error, "an earlier attempt of the task is still there");
    }
    if (--waiting->blockers == 0)
        go_on(waiting);
}

static void end_first(struct waiting_start *waiting, const struct driver_key *key)
{
    waiting->blockers++;
    driver_destroy(waiting->drivers, key, on_ended, waiting);
}

static void start_when_alone(struct drivers *drivers, const struct driver_key *key,
                             struct call *call, struct plan *plan)
{
    const struct run *own = run_find(drivers, key);
    struct waiting_start *waiting = waiting_new(drivers, key, call, plan);
    struct driver_key other;
    size_t at = 0;

    if (own != NULL && run_has(own, CALL_DESTROY))
        end_first(waiting, key);
    while (generations_other(drivers, key, &at, &other))
        end_first(waiting, &other);
    if (waiting->blockers == 0)
        go_on(waiting);
}

void driver_start(struct drivers *drivers, const struct driver_start *start, driver_done *done,
                  void *ctx)
{
    const struct run *run = run_find(drivers, &start->key);
    struct call *call = call_new(CALL_START, done, ctx);
    char name[KEY_NAME_SIZE];

    if ((run != NULL && !run_has(run, CALL_DESTROY)) || key_name(&start->key, name, NULL) != 0) {
        call_add(drivers, &start->key, call);
        return;
    }
    /* A start that is not possible now may still have been done before: its reason is kept. */
    struct plan *plan = plan_make(drivers, start, NULL, &call->result.error);
    start_when_alone(drivers, &start->key, call, plan);
}
