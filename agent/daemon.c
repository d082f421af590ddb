/*
 * The daemon: loop, turn, commit, timers, answers.
 *
 * One turn runs before the loop sleeps, so that all events of an iteration share one commit.  When
 * the journal cannot be written the node says so, leaves payloads alone, refuses requests, and
 * tries again every second (I-18).
 */
#include "agent/daemon.h"

#include "agent/api.h"
#include "agent/crash.h"
#include "agent/lost.h"
#include "agent/perform.h"
#include "agent/retention.h"
#include "agent/standalone.h"
#include "io/http.h"
#include "io/log.h"
#include "server/jobspec.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include <uthash.h>

enum {
    RETRY_COMMIT_MS = 1000,
    RETRY_SWEEP_MS = 5000,
    IDLE_MS = 2000, /* after this long without a turn caches are emptied */
    SPECS_CACHED_MAX = 2048,
    WATCHERS_MAX = 1024,
};

struct waiting {
    uint64_t token;
    daemon_answer *answer;
    void *ctx;
    UT_hash_handle hh;
};

struct committed {
    daemon_answer *answer;
    void *ctx;
};

struct cached {
    char alloc[UUID_TEXT_SIZE];
    struct alloc_spec *spec;
    UT_hash_handle hh;
};

struct watcher {
    void (*cb)(void *ctx);
    void *ctx;
};

struct previous {
    struct machine_id id;
    char alloc[UUID_TEXT_SIZE];
};

struct daemon {
    const struct config *config;
    struct loop *loop;
    struct journal *journal;
    struct agent *core;
    struct drivers *drivers;
    struct hooks *hooks;
    struct standalone *standalone;
    struct retention *retention;
    struct api *api;
    struct node node;
    struct waiting *waiting; /* by token */
    uint64_t tokens;
    struct committed *committed;
    size_t committed_count, committed_size;
    struct cached *specs;
    struct watcher *watchers;
    size_t watchers_count;
    struct previous *previous;
    size_t previous_count, previous_size;
    struct io_timer deadline_timer, retry_timer, idle_timer, sweep_timer;
    struct rng rng;
    uint64_t index;
    bool restored, reported, changed, waits_for_retry;
    uint64_t lost; /* tasks whose payload was not found after the restart */
    char degraded[ERR_TEXT_SIZE];
};

struct loop *daemon_loop(struct daemon *daemon)
{
    return daemon->loop;
}

struct agent *daemon_core(struct daemon *daemon)
{
    return daemon->core;
}

struct drivers *daemon_drivers(struct daemon *daemon)
{
    return daemon->drivers;
}

struct hooks *daemon_hooks(struct daemon *daemon)
{
    return daemon->hooks;
}

struct standalone *daemon_standalone(struct daemon *daemon)
{
    return daemon->standalone;
}

struct journal *daemon_journal(struct daemon *daemon)
{
    return daemon->journal;
}

const struct config *daemon_config(const struct daemon *daemon)
{
    return daemon->config;
}

const struct node *daemon_node(const struct daemon *daemon)
{
    return &daemon->node;
}

uint64_t daemon_now_ms(const struct daemon *daemon)
{
    return loop_now_ms() + daemon->node.clock_offset_ms;
}

uint64_t daemon_index(const struct daemon *daemon)
{
    return daemon->index;
}

const char *daemon_degraded(const struct daemon *daemon)
{
    return daemon->degraded[0] == '\0' ? NULL : daemon->degraded;
}

/* --- answers --- */

void daemon_ask(struct daemon *daemon, const struct machine_id *id, uint8_t event,
                const struct request *request, daemon_answer *answer, void *ctx)
{
    struct waiting *waiting = calloc(1, sizeof(*waiting));

    check(waiting != NULL);
    waiting->token = ++daemon->tokens;
    waiting->answer = answer;
    waiting->ctx = ctx;
    HASH_ADD(hh, daemon->waiting, token, sizeof(waiting->token), waiting);
    agent_ask(daemon->core, id, event, request, waiting->token);
}

void daemon_reply(struct daemon *daemon, uint64_t token, int code, const struct err *err)
{
    struct waiting *waiting;
    struct err none = {0};

    HASH_FIND(hh, daemon->waiting, &token, sizeof(token), waiting);
    if (waiting == NULL)
        return;
    HASH_DEL(daemon->waiting, waiting);
    waiting->answer(waiting->ctx, code, err != NULL ? err : &none);
    free(waiting);
}

void daemon_after_commit(struct daemon *daemon, daemon_answer *answer, void *ctx)
{
    if (daemon->committed_count == daemon->committed_size) {
        daemon->committed_size = daemon->committed_size == 0 ? 8 : daemon->committed_size * 2;
        daemon->committed =
            realloc(daemon->committed, daemon->committed_size * sizeof(*daemon->committed));
        check(daemon->committed != NULL);
    }
    daemon->committed[daemon->committed_count++] = (struct committed){answer, ctx};
}

static void answer_committed(struct daemon *daemon, int code, const struct err *err)
{
    struct committed *list = daemon->committed;
    size_t count = daemon->committed_count;

    daemon->committed = NULL; /* an answer may ask again */
    daemon->committed_count = daemon->committed_size = 0;
    for (size_t i = 0; i < count; i++)
        list[i].answer(list[i].ctx, code, err);
    free(list);
}

/* --- watchers --- */

void daemon_watch(struct daemon *daemon, void (*cb)(void *ctx), void *ctx)
{
    daemon->watchers =
        realloc(daemon->watchers, (daemon->watchers_count + 1) * sizeof(*daemon->watchers));
    check(daemon->watchers != NULL);
    check(daemon->watchers_count < WATCHERS_MAX); /* the API bounds its callers below this */
    daemon->watchers[daemon->watchers_count++] = (struct watcher){cb, ctx};
}

void daemon_unwatch(struct daemon *daemon, void (*cb)(void *ctx), void *ctx)
{
    for (size_t i = 0; i < daemon->watchers_count; i++) {
        if (daemon->watchers[i].cb == cb && daemon->watchers[i].ctx == ctx) {
            daemon->watchers[i] = daemon->watchers[--daemon->watchers_count];
            return;
        }
    }
}

void daemon_changed(struct daemon *daemon)
{
    daemon->changed = true;
}

static void tell_watchers(struct daemon *daemon)
{
    if (!daemon->changed)
        return;
    daemon->changed = false;
    daemon->index = agent_figures(daemon->core).sequence;
    for (size_t i = daemon->watchers_count; i > 0; i--) {
        struct watcher watcher = daemon->watchers[i - 1];
        watcher.cb(watcher.ctx);
        if (i > daemon->watchers_count + 1)
            i = daemon->watchers_count + 1; /* some have gone */
    }
}

/* --- allocs that wait for others --- */

static bool has_ended(struct daemon *daemon, const char *alloc)
{
    const struct alloc *record = agent_alloc(daemon->core, alloc);

    return record == NULL || record->ended_unix_ns != 0;
}

void daemon_watch_previous(struct daemon *daemon, const struct machine_id *id, const char *previous)
{
    if (has_ended(daemon, previous)) {
        agent_done(daemon->core, id, LANE_WAIT, AE_PREVIOUS_ENDED, NULL);
        return;
    }
    if (daemon->previous_count == daemon->previous_size) {
        daemon->previous_size = daemon->previous_size == 0 ? 8 : daemon->previous_size * 2;
        daemon->previous =
            realloc(daemon->previous, daemon->previous_size * sizeof(*daemon->previous));
        check(daemon->previous != NULL);
    }
    struct previous *entry = &daemon->previous[daemon->previous_count++];
    entry->id = *id;
    (void)text_copy(entry->alloc, sizeof(entry->alloc), previous); /* a UUID */
}

void daemon_alloc_ended(struct daemon *daemon, const char *alloc)
{
    for (size_t i = daemon->previous_count; i > 0; i--) {
        struct previous entry = daemon->previous[i - 1];
        if (!text_equal(entry.alloc, alloc))
            continue;
        daemon->previous[i - 1] = daemon->previous[--daemon->previous_count];
        agent_done(daemon->core, &entry.id, LANE_WAIT, AE_PREVIOUS_ENDED, NULL);
    }
    standalone_alloc_ended(daemon->standalone);
    daemon->changed = true;
}

/* --- specs --- */

int daemon_alloc_spec(struct daemon *daemon, const char *alloc, struct alloc_spec **ret_spec,
                      struct err *err)
{
    char key[JOURNAL_KEY_SIZE], *text;
    size_t length;

    if (!text_format(key, sizeof(key), "alloc/%s", alloc))
        return err_set(err, ERR_INVALID, "not an alloc id");
    int code = journal_spec_read(daemon->journal, key, &text, &length, err);
    if (code < 0)
        return code;
    code = jobspec_decode_alloc(text, length, ret_spec, err);
    free(text);
    return code;
}

const struct alloc_spec *daemon_cached_spec(struct daemon *daemon, const char *alloc,
                                            struct err *err)
{
    struct cached *cached;

    HASH_FIND_STR(daemon->specs, alloc, cached);
    if (cached != NULL)
        return cached->spec;
    struct alloc_spec *spec;
    if (daemon_alloc_spec(daemon, alloc, &spec, err) < 0)
        return NULL;
    if (HASH_COUNT(daemon->specs) >= SPECS_CACHED_MAX) {
        struct cached *oldest = daemon->specs;
        HASH_DEL(daemon->specs, oldest);
        alloc_spec_free(oldest->spec);
        free(oldest);
    }
    cached = calloc(1, sizeof(*cached));
    check(cached != NULL);
    (void)text_copy(cached->alloc, sizeof(cached->alloc), alloc); /* it was found by this id */
    cached->spec = spec;
    HASH_ADD_STR(daemon->specs, alloc, cached);
    return spec;
}

static void forget_specs(struct daemon *daemon)
{
    struct cached *cached, *next;

    HASH_ITER(hh, daemon->specs, cached, next)
    {
        HASH_DEL(daemon->specs, cached);
        alloc_spec_free(cached->spec);
        free(cached);
    }
}

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
        standalone_alloc_ended(daemon->standalone);
        daemon->changed = true;
    }
    daemon->lost += event->id.kind == MACHINE_TASK && event->event.kind == TE_LOST;
    if (!log_wants(LOG_DEBUG))
        return;
    agent_describe(event, line, sizeof(line));
    log_debug("turn", "%s", line);
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

    forget_specs(daemon);
    journal_release_memory(daemon->journal);
    (void)malloc_trim(0); /* whether anything could be given back does not matter */
}

static void arm_deadline(struct daemon *daemon)
{
    uint64_t deadline_ms = agent_deadline_ms(daemon->core);

    if (deadline_ms == 0) {
        io_timer_stop(&daemon->deadline_timer);
        return;
    }
    uint64_t offset = daemon->node.clock_offset_ms;
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
    agent_each(daemon->core, MACHINE_TASK, count_recovering, &recovering);
    if (recovering > 0)
        return;
    daemon->reported = true;
    if (agent_count(daemon->core, MACHINE_TASK) > 0)
        log_info("agent", "restored tasks=%zu lost=%llu", agent_count(daemon->core, MACHINE_TASK),
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

static bool turn(void *ctx)
{
    struct daemon *daemon = ctx;
    uint64_t now_ms = daemon_now_ms(daemon), deadline_ms = agent_deadline_ms(daemon->core);
    bool due = deadline_ms != 0 && deadline_ms <= now_ms;
    struct err err;

    if (daemon->waits_for_retry && daemon->committed_count == 0)
        return false;
    if (!agent_has_work(daemon->core) && !due) {
        sweep_once(daemon);
        answer_committed(daemon, 0, NULL);
        tell_watchers(daemon);
        return agent_has_work(daemon->core);
    }

    int code = agent_turn(daemon->core, now_ms, loop_now_unix_ns(), rng_next(&daemon->rng), &err);
    if (code < 0) {
        commit_failed(daemon, &err);
        answer_committed(daemon, code, &err);
        return false;
    }
    if (daemon->degraded[0] != '\0') {
        log_info("journal", "can be written again");
        daemon->degraded[0] = '\0';
    }
    answer_committed(daemon, 0, NULL);
    sweep_once(daemon);
    report_restored(daemon);
    standalone_tidy(daemon->standalone);
    tell_watchers(daemon);
    arm_deadline(daemon);
    io_timer_start(daemon->loop, &daemon->idle_timer, loop_now_ms() + IDLE_MS, idle_reached,
                   daemon);
    return agent_has_work(daemon->core);
}

/* --- restore --- */

static bool load(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct daemon *daemon = ctx;

    agent_load(daemon->core, id, record);
    return true;
}

struct damaged {
    struct daemon *daemon;
    struct {
        char table[16], key[JOURNAL_KEY_SIZE], reason[ERR_TEXT_SIZE];
    } * items;
    size_t count;
};

/* Noted during the walk, moved afterwards: the walk's read transaction must have ended. */
static void note_damaged(void *ctx, const char *table, const char *key, const void *bytes,
                         size_t length, const char *reason)
{
    struct damaged *damaged = *(struct damaged **)ctx;

    (void)bytes;
    (void)length;
    damaged->items = realloc(damaged->items, (damaged->count + 1) * sizeof(*damaged->items));
    check(damaged->items != NULL);
    (void)text_copy(damaged->items[damaged->count].table, 16, table);
    (void)text_copy(damaged->items[damaged->count].key, JOURNAL_KEY_SIZE, key);
    (void)text_copy(damaged->items[damaged->count].reason, ERR_TEXT_SIZE, reason);
    damaged->count++;
}

struct loading {
    struct damaged *damaged; /* first: note_damaged finds it here */
    struct daemon *daemon;
};

static bool load_noting(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct loading *loading = ctx;

    return load(loading->daemon, id, record);
}

/* Allocs of which the journal has the specification and nothing else. */
struct bereft {
    const struct agent *core;
    char (*ids)[UUID_TEXT_SIZE];
    size_t count;
};

static bool note_bereft(void *ctx, const char *key, const void *bytes, size_t length)
{
    struct bereft *bereft = ctx;
    const char *id = key + strlen("alloc/");

    (void)bytes;
    (void)length;
    if (!uuid_is_valid(id) || agent_alloc(bereft->core, id) != NULL)
        return true;
    bereft->ids = realloc(bereft->ids, (bereft->count + 1) * sizeof(*bereft->ids));
    check(bereft->ids != NULL);
    (void)text_copy(bereft->ids[bereft->count++], UUID_TEXT_SIZE, id); /* a UUID */
    return true;
}

static int adopt_bereft(struct daemon *daemon, struct err *err)
{
    struct bereft bereft = {.core = daemon->core};
    int code = journal_each_spec(daemon->journal, "alloc/", note_bereft, &bereft, err);

    for (size_t i = 0; i < bereft.count && code == 0; i++)
        agent_adopt(daemon->core, bereft.ids[i]);
    free(bereft.ids);
    return code;
}

static int restore(struct daemon *daemon, struct err *err)
{
    struct damaged damaged = {.daemon = daemon};
    struct loading loading = {&damaged, daemon};
    int code = 0;

    for (int kind = 0; kind < MACHINE_KIND_COUNT && code == 0; kind++)
        code = journal_each_record(daemon->journal, (enum machine_kind)kind, load_noting,
                                   note_damaged, &loading, err);
    for (size_t i = 0; i < damaged.count && code == 0; i++) {
        log_error("journal", "record is damaged, put into quarantine table=%s key=%s reason=%s",
                  damaged.items[i].table, log_value(damaged.items[i].key),
                  log_value(damaged.items[i].reason));
        code = journal_quarantine(daemon->journal, damaged.items[i].table, damaged.items[i].key,
                                  damaged.items[i].reason, loop_now_unix_ns(), err);
    }
    free(damaged.items);
    if (code < 0)
        return code;

    agent_continue(daemon->core, journal_next_sequence(daemon->journal), daemon->node.last_turn);
    daemon->index = agent_figures(daemon->core).sequence;
    code = standalone_load(daemon->standalone, err);
    if (code < 0)
        return code;
    size_t allocs = agent_count(daemon->core, MACHINE_ALLOC);
    daemon->reported = agent_count(daemon->core, MACHINE_TASK) == 0;
    if (allocs > 0)
        log_info("agent", "restoring allocs=%zu tasks=%zu rebooted=%s", allocs,
                 agent_count(daemon->core, MACHINE_TASK), daemon->node.rebooted ? "yes" : "no");
    node_keep(&daemon->node, daemon->core);
    agent_restore(daemon->core, true, daemon->node.rebooted);
    return adopt_bereft(daemon, err);
}

/* --- life --- */

static void on_signal(void *ctx, int signal)
{
    struct daemon *daemon = ctx;

    if (signal == SIGHUP) {
        int code = log_reopen();
        log_info("agent", "log reopened result=%d", code);
        return;
    }
    log_info("agent", "stopping; payloads run on signal=%d", signal);
    loop_stop(daemon->loop);
}

static void print_flight(void *ctx, const char *text)
{
    (void)ctx;
    (void)fputs(text, stderr); /* the process is about to end */
}

static struct daemon *failing; /* for the assertion hook, which has no context */

static void on_check_failed(const char *file, int line, const char *text)
{
    if (failing != NULL)
        agent_flight_print(failing->core, print_flight, NULL);
    (void)fprintf(stderr, "cairn: assertion failed: %s:%d: %s\n", file, line, text);
}

static int open_parts(struct daemon *daemon, struct err *err)
{
    const struct config *config = daemon->config;
    char path[PATH_SIZE];
    struct world world = {
        .ctx = daemon,
        .commit = commit,
        .perform = perform_effect,
        .refuse = refuse,
        .known = known,
        .trace = trace,
    };

    int code = directory_make_all(config->state_dir, 0700, err);
    if (code == 0)
        code = path_join(path, config->state_dir, "journal");
    if (code == 0)
        code = journal_open(path, JOURNAL_WRITE, &daemon->journal, err);
    if (code < 0)
        return code;
    journal_clear_readers(daemon->journal);
    code = node_init(&daemon->node, daemon->journal, config, err);
    if (code < 0)
        return code;

    struct drivers_config drivers = {
        .loop = daemon->loop,
        .state_dir = config->state_dir,
        .node_mark = daemon->node.mark,
        .shim_path = config->shim_path,
        .raw_exec_enabled = config->raw_exec_enabled,
        .raw_exec_no_cgroups = config->raw_exec_no_cgroups,
        .on_exit = perform_exit,
        .ctx = daemon,
    };
    static const char *const denied[] = {"root", "Administrator", NULL};
    struct hooks_config hooks = {
        .loop = daemon->loop,
        .alloc_dir = config->alloc_dir,
        .node = &daemon->node.known,
        .environment = (const char *const *)environ,
        .user_denylist = denied,
    };
    daemon->drivers = drivers_new(&drivers, err);
    if (daemon->drivers == NULL)
        return err->code;
    daemon->hooks = hooks_new(&hooks, err);
    if (daemon->hooks == NULL)
        return err->code;
    daemon->core = agent_new(&world);
    daemon->standalone = standalone_new(daemon);
    daemon->retention = retention_new(daemon->journal);
    return 0;
}

static void close_parts(struct daemon *daemon)
{
    struct waiting *waiting, *next;

    api_free(daemon->api);
    HASH_ITER(hh, daemon->waiting, waiting, next)
    {
        HASH_DEL(daemon->waiting, waiting);
        free(waiting); /* the API has closed every exchange */
    }
    standalone_free(daemon->standalone);
    retention_free(daemon->retention);
    drivers_free(daemon->drivers);
    hooks_free(daemon->hooks);
    forget_specs(daemon);
    agent_free(daemon->core);
    node_free(&daemon->node);
    journal_close(daemon->journal);
    io_timer_stop(&daemon->deadline_timer);
    io_timer_stop(&daemon->retry_timer);
    io_timer_stop(&daemon->idle_timer);
    io_timer_stop(&daemon->sweep_timer);
    loop_free(daemon->loop);
    free(daemon->committed);
    free(daemon->watchers);
    free(daemon->previous);
}

int daemon_run(const struct config *config)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP, 0};
    struct daemon daemon = {.config = config};
    struct err err = {0};
    uint64_t seed = 0;

    (void)mallopt(M_ARENA_MAX, 2); /* worker threads allocate little; keep the heap in one piece */
    (void)mallopt(M_TRIM_THRESHOLD, 1 << 20);
    crash_init();
    if (getrandom(&seed, sizeof(seed), 0) < 0)
        seed = (uint64_t)loop_now_unix_ns();
    daemon.rng = rng_init(seed);
    daemon.loop = loop_new();
    loop_on_signals(daemon.loop, signals, on_signal, &daemon);
    loop_before_sleep(daemon.loop, turn, &daemon);

    int code = open_parts(&daemon, &err);
    if (code == 0) {
        failing = &daemon;
        check_on_failure(on_check_failed);
        code = restore(&daemon, &err);
    }
    if (code == 0)
        code = api_new(&daemon, &daemon.api, &err);
    if (code < 0) {
        log_error("agent", "cannot start error=%s", log_value(err.text));
        (void)fprintf(stderr, "cairn: %s\n", err.text);
        failing = NULL;
        close_parts(&daemon);
        return 1;
    }
    log_info("agent", "started node=%s name=%s data_dir=%s http=%s", daemon.node.id,
             log_value(config->name), log_value(config->data_dir), api_address(daemon.api));
    loop_run(daemon.loop);
    failing = NULL;
    close_parts(&daemon);
    return 0;
}
