/*
 * The real world: the life bound to the journal, the loop and the rooms.
 *
 * One turn runs before the loop sleeps, so that all events of an iteration share one commit.
 */
#include "agent/world.h"

#include "agent/consul/mesh.h"
#include "agent/node/cores.h"
#include "agent/perform/perform.h"
#include "agent/perform/strays.h"
#include "agent/services/catalogue.h"
#include "agent/tasks/tasks.h"
#include "io/log.h"
#include "server/nomad/nomad.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

enum { IDLE_MS = 2000 }; /* after this long without a turn caches are emptied */

struct world_loop {
    struct parts *parts;
    struct rng rng;
    bool told;      /* of a failed check */
    bool tight;     /* it was said that the disk is full */
    uint64_t turns; /* made when the idle timer was started */
    struct cores_shared cores;
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

static void note_task(const struct parts *parts, const struct journal_event *event)
{
    const struct machine *record = core_find(parts->core, &event->id);

    tally_note(parts->tally, event, record != NULL ? task_of(record) : NULL);
}

static void trace(void *ctx, const struct journal_event *event)
{
    const struct world_loop *world = ctx;
    char text[LOG_LINE_SIZE];

    if (event->id.kind == MACHINE_ALLOC && event->after == A_GONE)
        specs_drop(world->parts->specs, event->id.text);
    else if (event->id.kind == MACHINE_ALLOC && event->event.kind == AE_UPDATE)
        specs_renew(world->parts->specs, event->id.text);
    catalogue_note(world->parts->catalogue, event);
    nomad_note(world->parts->nomad, event);
    task_api_note(world->parts->task_api, event);
    mesh_note(world->parts->mesh, event);
    if (world->parts->config->publishes_allocs && event->id.kind == MACHINE_TASK)
        note_task(world->parts, event);
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

/* --- commits, effects --- */

static void around_commit(void *ctx)
{
    struct world_loop *world = ctx;

    crash_point(&world->parts->crash);
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

static bool place(void *ctx, const char *alloc, unsigned nth, struct volume_define *ret_define)
{
    struct world_loop *world = ctx;

    return strays_find_place(world->parts, alloc, nth, ret_define);
}

/* --- trouble --- */

static const char *restriction(void *ctx)
{
    const struct world_loop *world = ctx;

    if (world->parts->is_volatile)
        return "the journal's file system is read-only; what runs is watched and can be stopped, "
               "but that is forgotten with this daemon: make it writable and restart the daemon";
    if (journal_is_tight(world->parts->journal))
        return "no space is left on the journal's disk, and what is kept in reserve is for stops "
               "and exits: free some";
    return NULL;
}

/* --- a failed check --- */

static void print_flight(void *ctx, const char *text)
{
    (void)ctx;
    (void)fputs(text, stderr); /* the process is about to end */
}

void world_tell(struct world_loop *world)
{
    struct parts *parts = world->parts;

    if (world->told || parts->core == NULL)
        return;
    world->told = true;
    (void)fprintf(stderr, "cairn: node %s did last:\n", parts->node.identity.id);
    core_flight_print(parts->core, print_flight, NULL);
}

static void on_check_failed(void *ctx, const char *file, int line, const char *text)
{
    (void)file; /* whoever is told last says where it was */
    (void)line;
    (void)text;
    world_tell(ctx);
}

/* --- the loop --- */

static void idle_reached(struct io_timer *timer)
{
    struct world_loop *world = timer->ctx;

    specs_forget(world->parts->specs, world->parts->core);
    core_release_memory(world->parts->core);
    journal_release_memory(world->parts->journal);
    (void)malloc_trim(0); /* whether anything could be given back does not matter */
}

static void tell_tight(struct world_loop *world)
{
    bool tight = !world->parts->is_volatile && journal_is_tight(world->parts->journal);

    if (tight == world->tight)
        return;
    world->tight = tight;
    if (tight)
        log_error("journal", "no space is left on its disk: nothing new is started, stops and "
                             "exits go on in what is kept in reserve");
    else
        log_info("journal", "there is space on its disk again");
}

static bool turn(void *ctx)
{
    struct world_loop *world = ctx;
    struct parts *parts = world->parts;
    struct check_guard guard;

    check_guard_push(&guard, on_check_failed, world);
    bool more = life_turn(parts->life);
    catalogue_settle(parts->catalogue);
    mesh_settle(parts->mesh);
    nomad_settle(parts->nomad);
    check_guard_pop(&guard);
    uint64_t turns = core_figures(parts->core).turns;

    tell_tight(world);
    cores_share(&world->cores, parts);
    /* Who only reads has no turn, and specifications are kept for it all the same. */
    if (turns != world->turns || (world->idle_timer.slot == 0 && specs_hold_any(parts->specs))) {
        world->turns = turns;
        io_timer_start(parts->loop, &world->idle_timer, loop_now_ms() + IDLE_MS, idle_reached,
                       world);
    }
    return more || life_has_work(parts->life);
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
        .events_max = parts->config->journal_max_events,
        .now = now,
        .random = draw,
        .arm = arm,
        .perform = perform,
        .around_commit = around_commit,
        .trace = trace,
        .sweep = sweep,
        .restriction = restriction,
        .place = place,
    };

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
