/*
 * How long starts, recoveries and stops of many tasks take, and what a supervisor and the daemon's
 * side of it cost while they run.  `bench_raw_exec [TASKS]`, as root; prints a table.
 *
 * The raw limit, measured in the same run: as many spawns of the shim (which ends at once, for
 * want of a lock) and of the payload, without files, cgroups or anything said between them.
 */
#include "drivers/drivers.h"
#include "io/host.h"
#include "io/loop.h"
#include "io/proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TASKS_MAX = 5000, IDLE_MS = 2000 };

struct bench {
    struct loop *loop;
    struct drivers *drivers;
    char path[64], state[128], alloc[128], task_dir[160], logs[160], shim[PATH_SIZE];
    int tasks, completions, exits, wanted_completions, wanted_exits;
    struct proc_identity *shims;
};

static uint64_t now_us(void)
{
    struct timespec now;

    check(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

static void row(const char *what, double value, const char *unit)
{
    printf("%-44s %10.2f %s\n", what, value, unit);
}

static void stop_when_all_came(struct bench *bench)
{
    if (bench->completions >= bench->wanted_completions && bench->exits >= bench->wanted_exits)
        loop_stop(bench->loop);
}

static void on_done(void *ctx, const struct driver_result *result)
{
    struct bench *bench = ctx;

    if (result->outcome == DRIVER_FAILED) {
        fprintf(stderr, "failed: %s\n", result->error.text);
        exit(1);
    }
    if (result->outcome == DRIVER_RUNNING)
        bench->shims[bench->completions] = result->shim;
    bench->completions++;
    stop_when_all_came(bench);
}

static void on_exit_of_task(void *ctx, const struct driver_key *key, const struct driver_exit *exit)
{
    struct bench *bench = ctx;

    (void)key;
    (void)exit;
    bench->exits++;
    stop_when_all_came(bench);
}

static void on_idle_over(struct io_timer *timer)
{
    loop_stop(timer->ctx);
}

static void run_until(struct bench *bench, int completions, int exits)
{
    bench->completions = bench->exits = 0;
    bench->wanted_completions = completions;
    bench->wanted_exits = exits;
    loop_run(bench->loop);
}

static void open_drivers(struct bench *bench)
{
    struct err err = {0};
    struct drivers_config config = {.loop = bench->loop,
                                    .state_dir = bench->state,
                                    .node_mark = "be000c4a",
                                    .shim_path = bench->shim,
                                    .raw_exec_enabled = true,
                                    .java = {.disabled = true},
                                    .on_exit = on_exit_of_task,
                                    .ctx = bench};

    bench->drivers = drivers_new(&config, &err);
    if (bench->drivers == NULL) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
}

static struct driver_key key_of(int i)
{
    struct driver_key key = {.task = "web", .driver = "raw_exec", .generation = 1};

    uuid_format(key.alloc, 0x1111111111111111u, (uint64_t)i);
    return key;
}

static double bare_spawns(struct bench *bench)
{
    char *const shim_argv[] = {(char[]){"cairn-shim"}, (char[]){"x"}, NULL};
    char *const sleep_argv[] = {(char[]){"sleep"}, (char[]){"1000"}, NULL};
    char *const envp[] = {NULL};
    struct proc_spawn shim = {.path = bench->shim, .argv = shim_argv, .envp = envp};
    struct proc_spawn payload = {.path = "/bin/sleep", .argv = sleep_argv, .envp = envp};
    pid_t *pids = calloc((size_t)bench->tasks * 2, sizeof(*pids));
    struct err err = {0};
    uint64_t begin = now_us();

    check(pids != NULL);
    for (int i = 0; i < bench->tasks; i++) {
        if (proc_spawn(&shim, &pids[2 * i], NULL, &err) != 0 ||
            proc_spawn(&payload, &pids[2 * i + 1], NULL, &err) != 0) {
            fprintf(stderr, "%s\n", err.text);
            exit(1);
        }
    }
    double taken_ms = (double)(now_us() - begin) / 1000.0;
    for (int i = 0; i < bench->tasks; i++) {
        (void)kill(pids[2 * i + 1], SIGKILL);
        (void)waitpid(pids[2 * i], NULL, 0);
        (void)waitpid(pids[2 * i + 1], NULL, 0);
    }
    free(pids);
    return taken_ms;
}

static double start_all(struct bench *bench)
{
    struct spec_pair env[] = {{"PATH", "/usr/bin:/bin"}};
    struct task_spec task = {.name = "web",
                             .driver = "raw_exec",
                             .user = "",
                             .kill_signal = "",
                             .config_json = "{\"command\": \"/bin/sleep\", \"args\": [\"1000\"]}",
                             .logs = {.max_files = 10, .max_file_size_mb = 10}};
    uint64_t begin = now_us();

    for (int i = 0; i < bench->tasks; i++) {
        struct driver_start start = {.key = key_of(i),
                                     .task = &task,
                                     .alloc_dir = bench->alloc,
                                     .task_dir = bench->task_dir,
                                     .log_dir = bench->logs,
                                     .env = {.items = env, .count = COUNT_OF(env)}};

        driver_start(bench->drivers, &start, on_done, bench);
    }
    run_until(bench, bench->tasks, 0);
    return (double)(now_us() - begin) / 1000.0;
}

static double recover_all(struct bench *bench)
{
    uint64_t begin = now_us();

    open_drivers(bench);
    for (int i = 0; i < bench->tasks; i++) {
        struct driver_key key = key_of(i);

        driver_recover(bench->drivers, &key, on_done, bench);
    }
    run_until(bench, bench->tasks, 0);
    return (double)(now_us() - begin) / 1000.0;
}

static double stop_all(struct bench *bench)
{
    uint64_t begin = now_us();

    for (int i = 0; i < bench->tasks; i++) {
        struct driver_key key = key_of(i);

        driver_stop(bench->drivers, &key, "SIGTERM", 5000, on_done, bench);
    }
    run_until(bench, bench->tasks, bench->tasks);
    return (double)(now_us() - begin) / 1000.0;
}

static double destroy_all(struct bench *bench)
{
    uint64_t begin = now_us();

    for (int i = 0; i < bench->tasks; i++) {
        struct driver_key key = key_of(i);

        driver_destroy(bench->drivers, &key, on_done, bench);
    }
    run_until(bench, bench->tasks, 0);
    return (double)(now_us() - begin) / 1000.0;
}

/* The number behind NAME in a file of /proc. */
static long number_in(const char *path, const char *name)
{
    char line[256];
    long value = -1;
    FILE *file = fopen(path, "re");

    while (file != NULL && value < 0 && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, name, strlen(name)) == 0)
            value = strtol(line + strlen(name), NULL, 10);
    }
    if (file != NULL)
        (void)fclose(file); /* only read from */
    return value;
}

static long switches_of(pid_t pid)
{
    char path[64];

    (void)text_format(path, sizeof(path), "/proc/%d/status", (int)pid);
    return number_in(path, "voluntary_ctxt_switches:");
}

static long switches_of_shims(const struct bench *bench)
{
    long sum = 0;

    for (int i = 0; i < bench->tasks; i++)
        sum += switches_of(bench->shims[i].pid);
    return sum;
}

static void measure_memory(const struct bench *bench)
{
    long sum = 0, largest = 0;

    for (int i = 0; i < bench->tasks; i++) {
        char path[64];

        (void)text_format(path, sizeof(path), "/proc/%d/smaps_rollup", bench->shims[i].pid);
        long pss = number_in(path, "Pss:");
        sum += pss;
        largest = pss > largest ? pss : largest;
    }
    row("PSS of a shim, mean", (double)sum / bench->tasks, "kB");
    row("PSS of a shim, largest", (double)largest, "kB");
}

static void measure_idle(struct bench *bench)
{
    struct io_timer timer = {0};
    long shims = switches_of_shims(bench), own = switches_of(getpid());

    io_timer_start(bench->loop, &timer, loop_now_ms() + IDLE_MS, on_idle_over, bench->loop);
    loop_run(bench->loop);
    row("wake-ups of all shims in 2 s", (double)(switches_of_shims(bench) - shims), "");
    row("wake-ups of the daemon in 2 s (1 is the timer)", (double)(switches_of(getpid()) - own),
        "");
}

static void make_place(struct bench *bench)
{
    char self[PATH_SIZE], *slash;
    struct err err = {0};
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

    check(length > 0);
    self[length] = '\0';
    for (int i = 0; i < 3 && (slash = strrchr(self, '/')) != NULL; i++)
        *slash = '\0';
    check(path_join(bench->shim, self, "cairn-shim") == 0);
    (void)text_copy(bench->path, sizeof(bench->path), "/tmp/cairn-bench-XXXXXX");
    check(mkdtemp(bench->path) != NULL);
    check(text_format(bench->state, sizeof(bench->state), "%s/state", bench->path));
    check(text_format(bench->alloc, sizeof(bench->alloc), "%s/alloc", bench->path));
    check(text_format(bench->task_dir, sizeof(bench->task_dir), "%s/web", bench->alloc));
    check(text_format(bench->logs, sizeof(bench->logs), "%s/alloc/logs", bench->alloc));
    check(directory_make_all(bench->task_dir, 0755, &err) == 0);
    check(directory_make_all(bench->logs, 0755, &err) == 0);
}

int main(int argc, char **argv)
{
    struct bench bench = {.tasks = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 300};
    struct rlimit files;
    struct err err = {0};

    if (geteuid() != 0 || bench.tasks < 1 || bench.tasks > TASKS_MAX) {
        fprintf(stderr, "usage: bench_raw_exec [TASKS], as root\n");
        return 2;
    }
    check(getrlimit(RLIMIT_NOFILE, &files) == 0);
    files.rlim_cur = files.rlim_max;
    check(setrlimit(RLIMIT_NOFILE, &files) == 0);
    make_place(&bench);
    bench.shims = calloc((size_t)bench.tasks, sizeof(*bench.shims));
    check(bench.shims != NULL);
    bench.loop = loop_new();
    open_drivers(&bench);

    printf("%d tasks, cgroups: %s\n", bench.tasks, cgroup_mode_name(cgroup_mode()));
    double bare_ms = bare_spawns(&bench);
    row("bare spawn of shims and payloads", bare_ms, "ms");
    long before_kb = number_in("/proc/self/status", "VmRSS:");
    double start_ms = start_all(&bench);
    row("start to last payload running", start_ms, "ms");
    row("  of the bare spawn", start_ms / bare_ms, "times");
    row("daemon's memory for a running task",
        (double)(number_in("/proc/self/status", "VmRSS:") - before_kb) / bench.tasks, "kB");
    measure_memory(&bench);
    measure_idle(&bench);
    drivers_free(bench.drivers);
    row("restart to last payload found", recover_all(&bench), "ms");
    row("stop to last exit", stop_all(&bench), "ms");
    row("destroy", destroy_all(&bench), "ms");

    drivers_free(bench.drivers);
    loop_free(bench.loop);
    free(bench.shims);
    return tree_remove(AT_FDCWD, bench.path, &err) == 0 ? 0 : 1;
}
