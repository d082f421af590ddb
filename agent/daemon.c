/*
 * The daemon: its parts, from their making to their end.
 *
 * What runs between the two is in world.c, started by the loop; a signal ends it.
 */
#include "agent/part.h"

#include "agent/api/api.h"
#include "agent/crash.h"
#include "core/retention.h"
#include "io/log.h"
#include "server/alone/alone.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

struct loop *daemon_loop(struct daemon *daemon)
{
    return daemon->loop;
}

struct core *daemon_core(struct daemon *daemon)
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

struct alone *daemon_alone(struct daemon *daemon)
{
    return daemon->alone;
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

static void on_check_failed(void *ctx, const char *file, int line, const char *text)
{
    struct daemon *daemon = ctx;

    if (daemon->core != NULL)
        core_flight_print(daemon->core, print_flight, NULL);
    (void)fprintf(stderr, "cairn: assertion failed: %s:%d: %s\n", file, line, text);
}

static int open_parts(struct daemon *daemon, struct err *err)
{
    const struct config *config = daemon->config;
    char path[PATH_SIZE];

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
        .cgroup_mode = cgroup_mode(),
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
    daemon->core = daemon_new_core(daemon);
    daemon->alone = alone_new(daemon);
    daemon->retention = retention_new(daemon->journal);
    return 0;
}

static void close_parts(struct daemon *daemon)
{
    api_free(daemon->api);
    daemon_forget_callers(daemon);
    alone_free(daemon->alone);
    retention_free(daemon->retention);
    drivers_free(daemon->drivers);
    hooks_free(daemon->hooks);
    daemon_forget_specs(daemon);
    core_free(daemon->core);
    daemon->core = NULL; /* its recorder is gone, should the rest fail */
    node_free(&daemon->node);
    journal_close(daemon->journal);
    io_timer_stop(&daemon->deadline_timer);
    io_timer_stop(&daemon->retry_timer);
    io_timer_stop(&daemon->idle_timer);
    io_timer_stop(&daemon->sweep_timer);
    loop_free(daemon->loop);
    daemon_free_answers(daemon);
}

int daemon_run(const struct config *config)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP, 0};
    struct daemon daemon = {.config = config};
    struct check_guard guard;
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
    loop_before_sleep(daemon.loop, daemon_turn, &daemon);

    check_guard_push(&guard, on_check_failed, &daemon);
    int code = open_parts(&daemon, &err);
    if (code == 0)
        code = daemon_restore(&daemon, &err);
    if (code == 0)
        code = api_new(&daemon, &daemon.api, &err);
    if (code < 0) {
        log_error("agent", "cannot start error=%s", log_value(err.text));
        (void)fprintf(stderr, "cairn: %s\n", err.text);
        close_parts(&daemon);
        check_guard_pop(&guard);
        return 1;
    }
    log_info("agent", "started node=%s name=%s data_dir=%s http=%s", daemon.node.id,
             log_value(config->name), log_value(config->data_dir), api_address(daemon.api));
    loop_run(daemon.loop);
    close_parts(&daemon);
    check_guard_pop(&guard);
    return 0;
}
