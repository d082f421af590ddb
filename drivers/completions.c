/*
 * Calls under way, and the one place from which completions leave.
 *
 * Completions wait in a queue until the loop's next iteration: a driver_* call never completes
 * inside itself, a callback may make new calls or end this room's work on its key, and what
 * happened first is told first (running before exited).
 */
#include "drivers/part.h"

#include <stdlib.h>

void calls_init(struct call_list *list)
{
    list->first = NULL;
    list->end = &list->first;
}

void calls_add(struct call_list *list, struct call *call)
{
    call->next = NULL;
    *list->end = call;
    list->end = &call->next;
}

struct call *calls_take(struct call_list *list)
{
    struct call *call = list->first;

    if (call == NULL)
        return NULL;
    list->first = call->next;
    if (list->first == NULL)
        list->end = &list->first;
    return call;
}

void calls_drop(struct call_list *list)
{
    for (struct call *call; (call = calls_take(list)) != NULL;)
        free(call);
}

struct call *call_new(enum call_kind kind, driver_done *done, void *ctx)
{
    struct call *call = calloc(1, sizeof(*call));

    check(call != NULL);
    call->kind = kind;
    call->done = done;
    call->ctx = ctx;
    return call;
}

static void deliver(struct io_timer *timer)
{
    struct drivers *drivers = timer->ctx;
    struct call_list due = drivers->due;

    calls_init(&drivers->due); /* what a callback adds comes in the next iteration */
    for (struct call *call; (call = calls_take(&due)) != NULL; free(call)) {
        if (call->kind == CALL_EXIT)
            drivers->config.on_exit(drivers->config.ctx, &call->key, &call->result.exit);
        else
            call->done(call->ctx, &call->result);
    }
}

void call_finish(struct drivers *drivers, struct call *call, enum driver_outcome outcome)
{
    call->result.outcome = outcome;
    calls_add(&drivers->due, call);
    if (drivers->due.first == call)
        io_timer_start(drivers->config.loop, &drivers->deliver, 0, deliver, drivers);
}

void call_fail(struct drivers *drivers, struct call *call, const struct err *err)
{
    check(err->code != 0);
    call->result.error = *err;
    call_finish(drivers, call, DRIVER_FAILED);
}
