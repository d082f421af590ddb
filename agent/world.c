/*
 * The daemon's turn: the core bound to the journal and the rooms, and the clock that drives it.
 *
 * One turn runs before the loop sleeps, so that all events of an iteration share one commit.  When
 * the journal cannot be written the node says so, leaves payloads alone, refuses requests, and
 * tries again every second (I-18).
 */
#include "agent/part.h"

#include "agent/crash.h"
#include "core/lost.h"
#include "core/retention.h"
#include "io/log.h"
#include "server/alone/alone.h"

#include <malloc.h>

enum {
    RETRY_COMMIT_MS = 1000,
    RETRY_SWEEP_MS = 5000,
    IDLE_MS = 2000, /* after this long without a turn caches are emptied */
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

const struct say daemon_say = {line, NULL};

/* --- the seam --- */

static int commit(void *ctx, const struct journal_batch *batch, struct err *err)
{
    struct daemon *daemon = ctx;
    struct journal_batch whole = *batch;

    retention_extend(daemon->retention, &whole);
    crash_point(CRASH_BEFORE_COMMIT);
    int code = journal_commit(daemon->journal, &whole, err);
    crash_point(CRASH_AFTER_COMMIT);
    retention_settle(daemon->retention, code == 0);
    return code;
}

static void refuse(void *ctx, uint64_t token, const struct err *err)
{
    daemon_reply(ctx, token, err->code, err);
}

static void known(void *ctx, const char *alloc, struct alloc_assign *assign)
{
    struct daemon *daemon = ctx;

    lost_alloc(daemon->journal, alloc, assign);
}

static void trace(void *ctx, const struct journal_event *event)
{
    struct daemon *daemon = ctx;
    char line[LOG_LINE_SIZE];

    if (event->id.kind == MACHINE_ALLOC && event->after == A_GONE) {
        alone_alloc_ended(daemon->alone);
        daemon->changed = true;
    }
    daemon->lost += event->id.kind == MACHINE_TASK && event->event.kind == TE_LOST;
    if (!log_wants(LOG_DEBUG))
        return;
    core_describe(event, line, sizeof(line));
    log_debug("turn", "%s", line);
}

struct core *daemon_new_core(struct daemon *daemon)
{
    struct world world = {
        .ctx = daemon,
        .commit = commit,
        .perform = perform_effect,
        .refuse = refuse,
        .known = known,
        .trace = trace,
    };

    return core_new(&world);
}

/* --- the turn --- */

static void deadline_reached(struct io_timer *timer)
{
    (void)timer; /* the turn before the loop sleeps looks at the clock */
}

static void retry_reached(struct io_timer *timer)
{
    struct daemon *daemon = timer->ctx;

    daemon->waits_for_retry = false;
}

static void idle_reached(struct io_timer *timer)
{
    struct daemon *daemon = timer->ctx;

    daemon_forget_specs(daemon);
    journal_release_memory(daemon->journal);
    (void)malloc_trim(0); /* whether anything could be given back does not matter */
}

static void arm_deadline(struct daemon *daemon)
{
    uint64_t deadline_ms = core_deadline_ms(daemon->core);

    if (deadline_ms == 0) {
        io_timer_stop(&daemon->deadline_timer);
        return;
    }
    uint64_t offset = daemon->node.identity.clock_offset_ms;
    uint64_t at_ms = deadline_ms > offset ? deadline_ms - offset : 0;
    io_timer_start(daemon->loop, &daemon->deadline_timer, at_ms, deadline_reached, daemon);
}

static void commit_failed(struct daemon *daemon, const struct err *err)
{
    if (!text_equal(daemon->degraded, err->text))
        log_error("journal",
                  "cannot be written, nothing is changed until it can; payloads run on error=%s",
                  log_value(err->text));
    (void)text_copy(daemon->degraded, sizeof(daemon->degraded), err->text); /* same size */
    daemon->waits_for_retry = true;
    io_timer_start(daemon->loop, &daemon->retry_timer, loop_now_ms() + RETRY_COMMIT_MS,
                   retry_reached, daemon);
}

static bool count_recovering(void *ctx, const struct machine_id *id, const struct machine *record)
{
    (void)id;
    *(size_t *)ctx += record->state == T_RECOVERING;
    return true;
}

/* Says once when every task of the last incarnation has been looked for. */
static void report_restored(struct daemon *daemon)
{
    size_t recovering = 0;

    if (daemon->reported)
        return;
    core_each(daemon->core, MACHINE_TASK, count_recovering, &recovering);
    if (recovering > 0)
        return;
    daemon->reported = true;
    if (core_count(daemon->core, MACHINE_TASK) > 0)
        log_info("agent", "restored tasks=%zu lost=%llu", core_count(daemon->core, MACHINE_TASK),
                 (unsigned long long)daemon->lost);
}

/* Once every machine is restored, also when there is none: an empty journal beside living things
 * of ours is no first start (I-17). */
static void sweep_once(struct daemon *daemon)
{
    if (daemon->restored)
        return;
    daemon->restored = true;
    perform_sweep(daemon);
}

static void sweep_reached(struct io_timer *timer)
{
    perform_sweep(timer->ctx);
}

void daemon_sweep_again(struct daemon *daemon)
{
    io_timer_start(daemon->loop, &daemon->sweep_timer, loop_now_ms() + RETRY_SWEEP_MS,
                   sweep_reached, daemon);
}

bool daemon_turn(void *ctx)
{
    struct daemon *daemon = ctx;
    uint64_t now_ms = daemon_now_ms(daemon), deadline_ms = core_deadline_ms(daemon->core);
    bool due = deadline_ms != 0 && deadline_ms <= now_ms;
    struct err err;

    if (daemon->waits_for_retry && daemon->committed_count == 0)
        return false;
    if (!core_has_work(daemon->core) && !due) {
        sweep_once(daemon);
        daemon_answer_committed(daemon, 0, NULL);
        daemon_tell_watchers(daemon);
        return core_has_work(daemon->core);
    }

    int code = core_turn(daemon->core, now_ms, loop_now_unix_ns(), rng_next(&daemon->rng), &err);
    if (code < 0) {
        commit_failed(daemon, &err);
        daemon_answer_committed(daemon, code, &err);
        return false;
    }
    if (daemon->degraded[0] != '\0') {
        log_info("journal", "can be written again");
        daemon->degraded[0] = '\0';
    }
    daemon_answer_committed(daemon, 0, NULL);
    sweep_once(daemon);
    report_restored(daemon);
    alone_tidy(daemon->alone);
    daemon_tell_watchers(daemon);
    arm_deadline(daemon);
    io_timer_start(daemon->loop, &daemon->idle_timer, loop_now_ms() + IDLE_MS, idle_reached,
                   daemon);
    return core_has_work(daemon->core);
}
