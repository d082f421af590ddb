/*
 * When checks run: each has a timer of its own, and runs first after half of its interval, then an
 * interval after it has ended, so never twice at once.
 */
#include "hooks/services/part.h"

#include <stdlib.h>
#include <string.h>

/* One check on its way through time: its timer is armed, or it is with the checker. */
struct running {
    struct checker_job job; /* first, so that it is its address */
    struct hooks_checks *checks;
    const struct hooks_service *service;
    struct hooks_check *check;
    struct io_timer timer;
};

struct hooks_checks {
    struct hooks *hooks; /* NULL once they are gone */
    hooks_checked *checked;
    void *ctx;
    struct hooks_checks *next, **link; /* of the hooks */
    size_t count;
    struct running items[];
};

static void arm(struct running *running, uint64_t after_ms);

static void on_answer(struct checker_job *job, const struct wire_answer *answer)
{
    struct running *running = (struct running *)(void *)job;
    struct hooks_checks *checks = running->checks;
    struct hooks_check *to = running->check;

    to->status = answer->success ? CHECK_SUCCESS : CHECK_FAILURE;
    to->code = answer->code;
    to->unix_ns = loop_now_unix_ns();
    hooks_check_say(to, answer->output);
    arm(running, to->spec->interval_ms);
    checks->checked(checks->ctx, running->service, to); /* which may end them */
}

static void on_time(struct io_timer *timer)
{
    struct running *running = timer->ctx;
    static const struct wire_answer unknown = {.output =
                                                   "nomad: the address of its group is not known"};

    if (running->job.order_length == 0)
        on_answer(&running->job, &unknown);
    else
        checker_ask(running->checks->hooks, &running->job);
}

static void arm(struct running *running, uint64_t after_ms)
{
    io_timer_start(running->checks->hooks->loop, &running->timer, loop_now_ms() + after_ms, on_time,
                   running);
}

static void begin_one(struct hooks_checks *checks, const struct services_made *made,
                      const struct hooks_service *service, struct hooks_check *of)
{
    const struct services_order *order = &made->orders[of->number];
    uint64_t timeout_ms = of->spec->timeout_ms;
    struct running *running = &checks->items[checks->count++];

    *running = (struct running){
        .job = {.order = order->text,
                .order_length = order->length,
                .timeout_ms = timeout_ms < WIRE_TIMEOUT_MS_MAX ? timeout_ms : WIRE_TIMEOUT_MS_MAX,
                .done = on_answer},
        .checks = checks,
        .service = service,
        .check = of,
    };
    arm(running, of->spec->interval_ms / 2);
}

/* Those of Consul its agent asks. */
static size_t count_checks(const struct hooks_services *services)
{
    size_t count = 0;

    for (size_t i = 0; i < services->count; i++) {
        if (services->items[i].spec->provider == PROVIDER_NOMAD)
            count += services->items[i].checks_count;
    }
    return count;
}

void hooks_checks_begin(struct hooks *hooks, struct hooks_services *services,
                        hooks_checked *checked, void *ctx, struct hooks_checks **ret_checks)
{
    const struct services_made *made = (const struct services_made *)(const void *)services;
    size_t count = count_checks(services);

    *ret_checks = NULL;
    if (count == 0)
        return;
    struct hooks_checks *checks = calloc(1, sizeof(*checks) + count * sizeof(checks->items[0]));
    check(checks != NULL);
    checks->hooks = hooks;
    checks->checked = checked;
    checks->ctx = ctx;
    checks->next = hooks->begun_checks;
    checks->link = &hooks->begun_checks;
    if (checks->next != NULL)
        checks->next->link = &checks->next;
    hooks->begun_checks = checks;
    checker_use(hooks);
    for (size_t i = 0; i < services->count; i++) {
        const struct hooks_service *service = &services->items[i];

        for (size_t j = 0; service->spec->provider == PROVIDER_NOMAD && j < service->checks_count;
             j++)
            begin_one(checks, made, service, &service->checks[j]);
    }
    *ret_checks = checks;
}

/* Nothing of them happens any more. */
static void stop(struct hooks_checks *checks)
{
    struct hooks *hooks = checks->hooks;

    for (size_t i = 0; i < checks->count; i++) {
        io_timer_stop(&checks->items[i].timer);
        checker_forget(hooks, &checks->items[i].job);
    }
    *checks->link = checks->next;
    if (checks->next != NULL)
        checks->next->link = checks->link;
    checks->hooks = NULL;
    checker_leave(hooks);
}

void hooks_checks_end(struct hooks_checks *checks)
{
    if (checks == NULL)
        return;
    if (checks->hooks != NULL)
        stop(checks);
    free(checks);
}

void hooks_services_detach(struct hooks *hooks)
{
    while (hooks->begun_checks != NULL)
        stop(hooks->begun_checks);
    checker_free(hooks);
}
