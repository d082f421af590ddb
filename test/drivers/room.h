/*
 * A drivers room in a directory of its own, for the tests: real shims, real processes, real
 * cgroups, driven until a completion arrives.
 */
#ifndef CAIRN_TEST_DRIVERS_ROOM_H
#define CAIRN_TEST_DRIVERS_ROOM_H

#include "drivers/drivers.h"
#include "drivers/part.h"
#include "io/host.h"
#include "io/loop.h"
#include "io/proc.h"
#include "test/io/beside.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define ALLOC "0f2a91c4-1111-4222-8333-444455556666"

static const struct alloc_spec in_host
    __attribute__((unused)) = {.network_mode = "", .hostname = ""};

enum { PATIENCE_MS = 60000, EXITS_MAX = 16 };

struct room {
    char path[PATH_SIZE]; /* everything lies below */
    char state[PATH_SIZE], alloc[PATH_SIZE], task_dir[PATH_SIZE], logs[PATH_SIZE];
    char shim[PATH_SIZE];
    char node_mark[9];
    struct loop *loop;
    struct drivers *drivers;
    enum cgroup_mode cgroup_mode;
    bool no_cgroups;
    struct drivers_exec exec, java;
    struct drivers_mock mock;
    const char *allowlist, *denylist, *denied_env, *cgroup_parent;
    struct drivers_denied denied; /* of raw_exec */
    int changes;                  /* of drivers */
    bool awaits_change;

    struct spec_mount mounts[4];
    size_t mounts_count;
    const char *resolv, *hosts, *hostname;

    struct driver_result result; /* of the last call */
    int completions;
    struct driver_exit exit; /* the last on_exit */
    int exits, awaited_exits;
    int waiting_for_exits, waiting_for_completions;
    bool too_late;

    char script[2048], config[4096];
    struct spec_pair env[8];
    size_t env_count;
    struct task_spec task;
};

static inline bool room_has_enough(const struct room *room)
{
    return room->completions >= room->waiting_for_completions &&
           room->exits >= room->waiting_for_exits;
}

static inline void room_on_exit(void *ctx, const struct driver_key *key,
                                const struct driver_exit *exit)
{
    struct room *room = ctx;

    assert_string_equal(key->alloc, ALLOC);
    room->exit = *exit;
    room->exits++;
    if (room_has_enough(room))
        loop_stop(room->loop);
}

static inline void room_on_done(void *ctx, const struct driver_result *result)
{
    struct room *room = ctx;

    room->result = *result;
    room->completions++;
    if (room_has_enough(room))
        loop_stop(room->loop);
}

static inline void room_on_change(void *ctx)
{
    struct room *room = ctx;

    room->changes++;
    if (room->awaits_change)
        loop_stop(room->loop);
}

static inline void room_too_late(struct io_timer *timer)
{
    struct room *room = timer->ctx;

    room->too_late = true;
    loop_stop(room->loop);
}

/* Runs the loop until that many completions and exits have come since the room was opened. */
static inline void room_run(struct room *room, int completions, int exits)
{
    struct io_timer bound = {0};

    room->waiting_for_completions = completions;
    room->waiting_for_exits = exits;
    room->awaited_exits = exits > room->awaited_exits ? exits : room->awaited_exits;
    room->too_late = false;
    io_timer_start(room->loop, &bound, loop_now_ms() + PATIENCE_MS, room_too_late, room);
    if (!room_has_enough(room))
        loop_run(room->loop);
    io_timer_stop(&bound);
    if (room->too_late)
        fail_msg("nothing came: %d completions, %d exits", room->completions, room->exits);
}

/* Runs the loop until the drivers are something else. */
static inline void room_await_change(struct room *room)
{
    struct io_timer bound = {0};
    int changes = room->changes;

    room->too_late = false;
    room->awaits_change = true;
    io_timer_start(room->loop, &bound, loop_now_ms() + PATIENCE_MS, room_too_late, room);
    while (room->changes == changes && !room->too_late)
        loop_run(room->loop);
    room->awaits_change = false;
    io_timer_stop(&bound);
    assert_false(room->too_late);
}

/* The first that was not waited for; a task that is short may have ended before its start is told.
 */
static inline void room_await_exit(struct room *room)
{
    room_run(room, 0, room->awaited_exits + 1);
}

/* Opens the drivers, as a daemon that starts. */
/* ERR_* if the room cannot be opened. */
static inline int room_try(struct room *room, struct err *err)
{
    room->loop = loop_new();
    struct drivers_config config = {.loop = room->loop,
                                    .state_dir = room->state,
                                    .node_mark = room->node_mark,
                                    .cgroup_parent = room->cgroup_parent,
                                    .shim_path = room->shim,
                                    .cgroup_mode = room->cgroup_mode,
                                    .allowlist = room->allowlist,
                                    .denylist = room->denylist,
                                    .raw_exec_enabled = true,
                                    .raw_exec_no_cgroups = room->no_cgroups,
                                    .exec = room->exec,
                                    .java = room->java,
                                    .raw_exec_denied = room->denied,
                                    .raw_exec_denied_env = room->denied_env,
                                    .mock = room->mock,
                                    .on_exit = room_on_exit,
                                    .on_change = room_on_change,
                                    .ctx = room};
    room->exits = room->awaited_exits = room->completions = room->changes = 0;
    room->drivers = drivers_new(&config, err);
    if (room->drivers != NULL)
        return 0;
    loop_free(room->loop);
    room->loop = NULL;
    return err->code;
}

static inline void room_open(struct room *room)
{
    struct err err = {0};

    if (room_try(room, &err) != 0)
        fail_msg("%s", err.text);
}

/* An orderly end of the daemon; what runs goes on. */
static inline void room_close(struct room *room)
{
    drivers_free(room->drivers);
    loop_free(room->loop);
    room->drivers = NULL;
    room->loop = NULL;
}

static inline struct driver_key room_key(const struct room *room, uint32_t generation)
{
    struct driver_key key = {.alloc = ALLOC, .task = "web", .generation = generation};

    assert_true(text_copy(key.driver, sizeof(key.driver), room->task.driver));
    return key;
}

/* The task's command becomes `sh -c SCRIPT`. */
static inline void room_script(struct room *room, const char *script)
{
    assert_true(text_copy(room->script, sizeof(room->script), script));
    assert_true(strchr(script, '"') == NULL && strchr(script, '\\') == NULL);
    assert_true(text_format(room->config, sizeof(room->config),
                            "{\"command\": \"/bin/sh\", \"args\": [\"-c\", \"%s\"]}", script));
    room->task.config_json = room->config;
}

static inline struct driver_start room_start_of(struct room *room, uint32_t generation)
{
    struct driver_start start = {.key = room_key(room, generation),
                                 .task = &room->task,
                                 .alloc_dir = room->alloc,
                                 .task_dir = room->task_dir,
                                 .log_dir = room->logs,
                                 .env = {.items = room->env, .count = room->env_count},
                                 .mounts = {.items = room->mounts, .count = room->mounts_count},
                                 .resolv = room->resolv,
                                 .hosts = room->hosts,
                                 .hostname = room->hostname};

    return start;
}

static inline enum driver_outcome room_start(struct room *room, uint32_t generation)
{
    struct driver_start start = room_start_of(room, generation);

    driver_start(room->drivers, &start, room_on_done, room);
    room_run(room, room->completions + 1, 0);
    return room->result.outcome;
}

static inline void room_start_running(struct room *room, uint32_t generation)
{
    if (room_start(room, generation) != DRIVER_RUNNING)
        fail_msg("not running: %d %s", room->result.outcome, room->result.error.text);
    assert_true(room->result.shim.pid > 1 && room->result.payload.pid > 1);
}

static inline enum driver_outcome room_recover(struct room *room, uint32_t generation)
{
    struct driver_key key = room_key(room, generation);

    driver_recover(room->drivers, &key, room_on_done, room);
    room_run(room, room->completions + 1, 0);
    return room->result.outcome;
}

static inline enum driver_outcome room_stop(struct room *room, uint32_t generation,
                                            const char *signal, uint64_t timeout_ms)
{
    struct driver_key key = room_key(room, generation);

    driver_stop(room->drivers, &key, signal, timeout_ms, room_on_done, room);
    room_run(room, room->completions + 1, 0);
    return room->result.outcome;
}

static inline enum driver_outcome room_signal_once(struct room *room, uint32_t generation,
                                                   const char *signal, uint32_t once)
{
    struct driver_key key = room_key(room, generation);

    driver_signal(room->drivers, &key, signal, once, room_on_done, room);
    room_run(room, room->completions + 1, 0);
    return room->result.outcome;
}

static inline enum driver_outcome room_signal(struct room *room, uint32_t generation,
                                              const char *signal)
{
    return room_signal_once(room, generation, signal, 0);
}

static inline void room_destroy(struct room *room, uint32_t generation)
{
    struct driver_key key = room_key(room, generation);

    driver_destroy(room->drivers, &key, room_on_done, room);
    room_run(room, room->completions + 1, 0);
    if (room->result.outcome != DRIVER_DONE)
        fail_msg("not destroyed: %s", room->result.error.text);
}

/* The file of a task. */
static inline void room_task_file(const struct room *room, uint32_t generation, char to[PATH_SIZE])
{
    assert_true(text_format(to, PATH_SIZE, "%s/shim/" ALLOC ".web.%u", room->state, generation));
}

static inline void room_cgroup(const struct room *room, uint32_t generation,
                               char to[CGROUP_NAME_SIZE])
{
    struct driver_key key = room_key(room, generation);

    key_cgroup(room->drivers, &key, false, to);
}

/* Waits until PATH exists and is not empty: how payloads say that they are ready. */
static inline void await_file(const char *path)
{
    struct stat status;

    for (int i = 0; i < PATIENCE_MS; i++) {
        if (stat(path, &status) == 0 && status.st_size > 0)
            return;
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    fail_msg("%s never came", path);
}

static inline void await_task_file(const struct room *room, const char *name)
{
    char path[PATH_SIZE];

    assert_int_equal(path_join(path, room->task_dir, name), 0);
    await_file(path);
}

/* Waits until the shim has written how it ended. */
static inline void await_exit_record(const struct room *room, uint32_t generation)
{
    struct exit_record record;
    char path[PATH_SIZE];

    room_task_file(room, generation, path);
    for (int i = 0; i < PATIENCE_MS; i++) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        int code = fd < 0 ? ERR_GONE : exit_record_get(fd, &record, NULL);

        if (fd >= 0)
            (void)close(fd);
        if (code == 0)
            return;
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    fail_msg("no exit record in %s", path);
}

/* The content of a file, in a buffer that the next call reuses. */
static inline const char *content_of(const char *path)
{
    static char text[1 << 20];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

    if (fd >= 0)
        (void)close(fd);
    text[got > 0 ? got : 0] = '\0';
    return got < 0 ? NULL : text;
}

static inline const char *task_file(const struct room *room, const char *name)
{
    char path[PATH_SIZE];

    assert_int_equal(path_join(path, room->task_dir, name), 0);
    return content_of(path);
}

static inline const char *log_file(const struct room *room, const char *name)
{
    char path[PATH_SIZE];

    assert_int_equal(path_join(path, room->logs, name), 0);
    return content_of(path);
}

/* The number that TEXT starts with. */
static inline int number_in(const char *text)
{
    return (int)strtol(text, NULL, 10);
}

static inline void room_need_root(void)
{
    if (geteuid() != 0 || cgroup_mode() == CGROUP_NONE) {
        print_message("skipped: needs root and cgroups\n");
        skip();
    }
}

static inline void await_dead(const struct proc_identity *identity)
{
    for (int i = 0; i < PATIENCE_MS && proc_is_alive(identity); i++)
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    assert_false(proc_is_alive(identity));
}

/* For in_crashing_daemon: it dies when a stop has been accepted. */
static inline void room_stop_and_die(struct room *room)
{
    room_start_running(room, 1);
    await_task_file(room, "ready");
    assert_int_equal(room_stop(room, 1, "", 100), DRIVER_DONE);
}

/* Starts what DO does in a process of its own that then dies of SIGKILL: a daemon that crashed. */
static inline void in_crashing_daemon(struct room *room, void (*act)(struct room *room))
{
    int status;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        room_open(room);
        act(room);
        (void)kill(getpid(), SIGKILL);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
        fail_msg("the daemon did not get as far as its crash: %x", status);
}

static inline int room_make(void **state)
{
    static int count;
    struct room *room = calloc(1, sizeof(*room));
    char made[] = "/tmp/cairn-drivers-XXXXXX";
    struct err err = {0};

    assert_non_null(room);
    assert_non_null(mkdtemp(made));
    assert_non_null(realpath(made, room->path));
    assert_int_equal(path_join(room->state, room->path, "state"), 0);
    assert_int_equal(path_join(room->alloc, room->path, "alloc"), 0);
    assert_int_equal(path_join(room->task_dir, room->alloc, "web"), 0);
    assert_true(text_format(room->logs, sizeof(room->logs), "%.3000s/alloc/logs", room->alloc));
    assert_int_equal(directory_make_all(room->task_dir, 0755, &err), 0);
    assert_int_equal(directory_make_all(room->logs, 0755, &err), 0);
    beside_program(room->shim, "cairn-shim");
    (void)text_format(room->node_mark, sizeof(room->node_mark), "%06x%02x",
                      (unsigned)getpid() & 0xffffff, (unsigned)count++ & 0xff);
    room->cgroup_mode = cgroup_mode();
    room->java.disabled = true; /* nobody waits for it but its own tests */
    room->env[0] = (struct spec_pair){"PATH", "/usr/bin:/bin"};
    room->env[1] = (struct spec_pair){"GREETING", "hello there"};
    room->env_count = 2;
    room->task = (struct task_spec){.name = "web",
                                    .driver = "raw_exec",
                                    .user = "",
                                    .config_json = "",
                                    .kill_signal = "",
                                    .logs = {.max_files = 10, .max_file_size_mb = 10}};
    *state = room;
    return 0;
}

/* A helper in the shims' cgroup that is not the nursery. */
struct other_helpers {
    pid_t nursery;
    unsigned count;
};

static inline bool room_count_other(void *ctx, pid_t pid)
{
    struct other_helpers *others = ctx;

    others->count += pid != others->nursery;
    return true;
}

/* Helpers that have said their last word leave their cgroup a little later: they are no children of
 * ours, and a process that ends closes its files before. */
static inline void room_settle(const struct room *room)
{
    char shims[CGROUP_NAME_SIZE];

    assert_true(text_format(shims, sizeof(shims), "cairn/%s/shims", room->node_mark));
    for (int i = 0; i < PATIENCE_MS; i++) {
        struct other_helpers others = {
            .nursery = room->drivers == NULL ? 0 : room->drivers->nursery.process.pid};
        if (cgroup_each_process(room->cgroup_mode, shims, room_count_other, &others, NULL) != 0 ||
            others.count == 0)
            return;
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

/* Everything is gone: cgroups, shims, files of the state directory. */
static inline int room_remove(void **state)
{
    struct room *room = *state;
    char cgroup[CGROUP_NAME_SIZE], shim_dir[PATH_SIZE], absolute[CGROUP_NAME_SIZE + 64];
    struct err err = {0};
    int left = 0;

    room_settle(room);
    if (room->drivers != NULL)
        room_close(room);
    (void)text_format(cgroup, sizeof(cgroup), "cairn/%s", room->node_mark);
    if (cgroup_populated(room->cgroup_mode, cgroup, &err) != 0) {
        print_message("left behind: processes in %s\n", cgroup);
        (void)cgroup_kill(room->cgroup_mode, cgroup, &err);
        left = -1;
    }
    for (int i = 0; i < 200 && cgroup_populated(room->cgroup_mode, cgroup, &err) == 1; i++)
        (void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    (void)text_format(absolute, sizeof(absolute), "/sys/fs/cgroup/%s/%s",
                      room->cgroup_mode == CGROUP_V2   ? "."
                      : room->cgroup_mode == CGROUP_V1 ? "freezer"
                                                       : "unified",
                      cgroup);
    if (access(absolute, F_OK) == 0) {
        print_message("left behind: %s\n", absolute);
        (void)cgroup_remove(room->cgroup_mode, cgroup, &err);
        left = -1;
    }
    assert_int_equal(path_join(shim_dir, room->state, "shim"), 0);
    if (access(shim_dir, F_OK) == 0 && rmdir(shim_dir) != 0) {
        print_message("left behind: files in %s\n", shim_dir);
        left = -1;
    }
    if (tree_remove(AT_FDCWD, room->path, &err) != 0) {
        print_message("left behind: %s\n", err.text);
        left = -1;
    }
    free(room);
    return left;
}

/* --- on each kind of cgroup that this machine has --- */

/* What rooms that room_make_on makes have. */
static enum cgroup_mode room_mode __attribute__((unused));

static inline int room_make_on(void **state)
{
    int code = room_make(state);
    struct room *room = *state;

    room->cgroup_mode = room_mode;
    return code;
}

/* True if there is the first version beside the second, which is tried from now on. */
static inline bool room_tries_v1(void)
{
    if (room_mode != CGROUP_HYBRID || access("/sys/fs/cgroup/freezer/cgroup.procs", W_OK) != 0)
        return false;
    room_mode = CGROUP_V1;
    return true;
}

#endif
