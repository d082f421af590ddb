/* The runs there are, found by key, and what each of them holds: a watch, a timer, calls. */
#include "drivers/part.h"

#include <stdlib.h>
#include <unistd.h>

enum { BUCKETS_FIRST = 64 };

/* --- what a run holds --- */

void run_on_watch(struct run *run, int fd, int events, void (*cb)(struct io_watch *, int))
{
    check(run->fd < 0);
    run->fd = fd;
    io_watch_start(run->drivers->config.loop, &run->watch, fd, events | IO_CROWD, cb, run);
}

void run_off_watch(struct run *run)
{
    if (run->fd < 0)
        return;
    birth_over(run);
    io_watch_stop(&run->watch);
    (void)close(run->fd); /* a connection, a pidfd, an event file: nothing to lose */
    run->fd = -1;
}

void run_at(struct run *run, uint64_t delay_ms, void (*cb)(struct io_timer *timer))
{
    io_timer_start(run->drivers->config.loop, &run->timer, loop_now_ms() + delay_ms, cb, run);
}

void run_retry(struct run *run, uint32_t first_ms, uint32_t longest_ms,
               void (*cb)(struct io_timer *timer))
{
    run->retry_ms = run->retry_ms == 0 ? first_ms : run->retry_ms * 2;
    if (run->retry_ms > longest_ms)
        run->retry_ms = longest_ms;
    run_at(run, run->retry_ms, cb);
}

bool run_has(const struct run *run, enum call_kind kind)
{
    for (const struct call *call = run->calls.first; call != NULL; call = call->next) {
        if (call->kind == kind)
            return true;
    }
    return false;
}

void run_say(const struct run *run, const char *text)
{
    const struct drivers_config *config = &run->drivers->config;

    if (config->on_said != NULL)
        config->on_said(config->ctx, &run->key, text);
}

void run_fail_calls(struct run *run, const struct err *err)
{
    struct call_list calls = run->calls;

    if (calls.first == NULL)
        return;
    calls_init(&run->calls);
    for (struct call *call; (call = calls_take(&calls)) != NULL;) {
        if (call->kind == CALL_DESTROY)
            calls_add(&run->calls, call);
        else
            call_fail(run->drivers, call, err);
    }
}

void run_fail_all(struct run *run, const struct err *err)
{
    for (struct call *call; (call = calls_take(&run->calls)) != NULL;)
        call_fail(run->drivers, call, err);
}

/* --- all of them --- */

static struct run **bucket_of(const struct drivers *drivers, uint64_t digest)
{
    return &drivers->buckets[digest & (drivers->buckets_count - 1)];
}

static void grow(struct drivers *drivers)
{
    struct run **old = drivers->buckets;
    size_t old_count = drivers->buckets_count;

    drivers->buckets_count = old_count == 0 ? BUCKETS_FIRST : old_count * 2;
    drivers->buckets = calloc(drivers->buckets_count, sizeof(struct run *));
    check(drivers->buckets != NULL);
    for (size_t i = 0; i < old_count; i++) {
        while (old[i] != NULL) {
            struct run *run = old[i], **to = bucket_of(drivers, run->digest);

            old[i] = run->next;
            run->next = *to;
            *to = run;
        }
    }
    free(old);
}

struct run *run_find(const struct drivers *drivers, const struct driver_key *key)
{
    uint64_t digest = key_digest(key);
    struct run *run = drivers->buckets_count == 0 ? NULL : *bucket_of(drivers, digest);

    while (run != NULL && !(run->digest == digest && key_equal(&run->key, key)))
        run = run->next;
    return run;
}

struct run *run_new(struct drivers *drivers, const struct driver_key *key)
{
    struct run *run = calloc(1, sizeof(*run)), **bucket;

    check(run != NULL);
    check(run_find(drivers, key) == NULL);
    if (drivers->runs_count >= drivers->buckets_count)
        grow(drivers);
    run->drivers = drivers;
    run->key = *key;
    run->digest = key_digest(key);
    run->fd = -1;
    calls_init(&run->calls);
    bucket = bucket_of(drivers, run->digest);
    run->next = *bucket;
    *bucket = run;
    drivers->runs_count++;
    return run;
}

void run_free(struct run *run)
{
    struct drivers *drivers = run->drivers;
    struct run **at = bucket_of(drivers, run->digest);

    check(run->calls.first == NULL);
    while (*at != run)
        at = &(*at)->next;
    *at = run->next;
    drivers->runs_count--;
    run_off_watch(run);
    io_timer_stop(&run->timer);
    mock_free(run->mock);
    container_free(run->container);
    external_free(run->external);
    if (run->plan != NULL && run->plan->looking)
        run->plan->run = NULL; /* freed when the look-up comes back */
    else
        plan_free(run->plan);
    free(run);
}

/* --- starts that have no run yet --- */

struct waiting_start *waiting_new(struct drivers *drivers, const struct driver_key *key,
                                  struct call *call, struct plan *plan)
{
    struct waiting_start *waiting = calloc(1, sizeof(*waiting));

    check(waiting != NULL);
    *waiting = (struct waiting_start){.next = drivers->waiting,
                                      .link = &drivers->waiting,
                                      .drivers = drivers,
                                      .key = *key,
                                      .call = call,
                                      .plan = plan};
    if (waiting->next != NULL)
        waiting->next->link = &waiting->next;
    drivers->waiting = waiting;
    return waiting;
}

void waiting_free(struct waiting_start *waiting)
{
    *waiting->link = waiting->next;
    if (waiting->next != NULL)
        waiting->next->link = waiting->link;
    plan_free(waiting->plan);
    free(waiting->call);
    free(waiting);
}

void runs_close(struct drivers *drivers)
{
    for (size_t i = 0; i < drivers->buckets_count; i++) {
        while (drivers->buckets[i] != NULL) {
            calls_drop(&drivers->buckets[i]->calls);
            run_free(drivers->buckets[i]);
        }
    }
    free(drivers->buckets);
    while (drivers->waiting != NULL)
        waiting_free(drivers->waiting);
}
