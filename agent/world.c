/*
 * The real world: the life bound to the journal, the loop and the rooms.
 *
 * One turn runs before the loop sleeps, so that all events of an iteration share one commit.
 */
#include "agent/world.h"

#include "agent/crash.h"
#include "agent/perform.h"
#include "io/log.h"

#include <malloc.h>
#include <stdlib.h>

enum { IDLE_MS = 2000 }; /* after this long without a turn caches are emptied */

struct world_loop {
    struct parts *parts;
    struct rng rng;
    uint64_t turns; /* made when the idle timer was started */
    struct io_timer deadline_timer, idle_timer;
    struct io_before_sleep before_sleep;
};

/* --- the log --- */

static void line(void *ctx, enum say_level level, const char *room, const char *text)
{
    static const enum log_level levels[] = {
        [SAY_DEBUG] = LOG_DEBUG,
        [SAY_INFO] = LOG_INFO,
        [SAY_WARN] = LOG_WARN,
        [SAY_ERROR] = LOG_ERROR,
    };

    (void)ctx; /* a process has one log */
    log_line(levels[level], room, "%s", text);
}

const struct say world_say = {line, NULL};

static void trace(void *ctx, const struct journal_event *event)
{
    char text[LOG_LINE_SIZE];

    (void)ctx;
    if (!log_wants(LOG_DEBUG))
        return;
    core_describe(event, text, sizeof(text));
    log_debug("turn", "%s", text);
}

/* --- time --- */

static uint64_t now(void *ctx, int64_t *ret_unix_ns)
{
    const struct world_loop *world = ctx;

    *ret_unix_ns = loop_now_unix_ns();
    return loop_now_ms() + world->parts->node.identity.clock_offset_ms;
}

static uint64_t draw(void *ctx)
{
    struct world_loop *world = ctx;

    return rng_next(&world->rng);
}

static void deadline_reached(struct io_timer *timer)
{
    (void)timer; /* the turn before the loop sleeps looks at the clock */
}

static void arm(void *ctx, uint64_t at_ms)
{
    struct world_loop *world = ctx;
    uint64_t offset_ms = world->parts->node.identity.clock_offset_ms;

    if (at_ms == 0)
        io_timer_stop(&world->deadline_timer);
    else
        io_timer_start(world->parts->loop, &world->deadline_timer,
                       at_ms > offset_ms ? at_ms - offset_ms : 0, deadline_reached, world);
}

/* --- the journal, effects --- */

static int commit(void *ctx, const struct journal_batch *batch, struct err *err)
{
    crash_point(CRASH_BEFORE_COMMIT);
    int code = journal_commit(ctx, batch, err);
    crash_point(CRASH_AFTER_COMMIT);
    return code;
}

static void perform(void *ctx, const struct effect *effect)
{
    struct world_loop *world = ctx;

    perform_effect(world->parts, effect);
}

static void sweep(void *ctx)
{
    struct world_loop *world = ctx;

    perform_sweep(world->parts);
}

/* --- the loop --- */

static void idle_reached(struct io_timer *timer)
{
    struct world_loop *world = timer->ctx;

    specs_forget(world->parts->specs);
    journal_release_memory(world->parts->journal);
    (void)malloc_trim(0); /* whether anything could be given back does not matter */
}

static bool turn(void *ctx)
{
    struct world_loop *world = ctx;
    struct parts *parts = world->parts;
    bool more = life_turn(parts->life);
    uint64_t turns = core_figures(parts->core).turns;

    if (turns != world->turns) {
        world->turns = turns;
        io_timer_start(parts->loop, &world->idle_timer, loop_now_ms() + IDLE_MS, idle_reached,
                       world);
    }
    return more;
}

struct world_loop *world_begin(struct parts *parts, uint64_t seed)
{
    struct world_loop *world = calloc(1, sizeof(*world));

    check(world != NULL);
    check(parts->journal != NULL);
    world->parts = parts;
    world->rng = rng_init(seed);
    struct life_world life = {
        .ctx = world,
        .store = store_of_journal(parts->journal),
        .say = world_say,
        .now = now,
        .random = draw,
        .arm = arm,
        .perform = perform,
        .trace = trace,
        .sweep = sweep,
    };
    life.store.commit = commit;
    parts->life = life_new(&life);
    parts->core = life_core(parts->life);
    io_before_sleep_start(parts->loop, &world->before_sleep, turn, world);
    return world;
}

void world_end(struct world_loop *world)
{
    if (world == NULL)
        return;
    io_timer_stop(&world->deadline_timer);
    io_timer_stop(&world->idle_timer);
    io_before_sleep_stop(&world->before_sleep);
    free(world);
}
