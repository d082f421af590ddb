/*
 * What a cgroup uses: the controllers' counts where it has controllers, else the sum over its
 * processes.  Follows nomad v1.1.2 drivers/shared/executor/pid_collector.go for raw_exec.
 */
#include "io/host/cgroup.h"

#include "io/host/part.h"
#include "io/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* The number behind "KEY " at the start of a line of TEXT; false if there is no such line. */
static bool number_of(const char *text, const char *key, uint64_t *ret_value)
{
    size_t length = strlen(key);

    for (const char *line = text; line != NULL && *line != '\0';) {
        if (strncmp(line, key, length) == 0 && line[length] == ' ') {
            uint64_t value = 0;

            for (const char *at = line + length + 1; *at >= '0' && *at <= '9'; at++)
                value = value * 10 + (uint64_t)(*at - '0');
            *ret_value = value;
            return true;
        }
        line = strchr(line, '\n');
        line = line == NULL ? NULL : line + 1;
    }
    return false;
}

static bool file_number(int directory_fd, const char *file, uint64_t *ret_value)
{
    char text[64] = "_ ";

    return small_file_read(directory_fd, file, text + 2, sizeof(text) - 2) > 0 && text[2] >= '0' &&
           text[2] <= '9' && number_of(text, "_", ret_value);
}

/* VmSwap of /proc/<pid>/status, which gives it in kB. */
static uint64_t swap_bytes(pid_t pid)
{
    char path[32], text[2048];

    (void)text_format(path, sizeof(path), "/proc/%d/status", (int)pid); /* fits */
    if (small_file_read(AT_FDCWD, path, text, sizeof(text)) <= 0)
        return 0;

    const char *at = strstr(text, "VmSwap:");
    uint64_t value = 0;
    for (at = at == NULL ? "" : at + strlen("VmSwap:"); *at == ' ' || *at == '\t'; at++)
        continue;
    for (; *at >= '0' && *at <= '9'; at++)
        value = value * 10 + (uint64_t)(*at - '0');
    return value * 1024;
}

void proc_add_stats(pid_t pid, struct cgroup_stats *stats)
{
    uint64_t tick_us = 1000000u / (uint64_t)sysconf(_SC_CLK_TCK);
    struct proc_stat stat;

    if (proc_read_stat(pid, &stat) != 0)
        return;
    stats->processes++;
    stats->memory_rss_bytes += stat.rss_pages * (uint64_t)sysconf(_SC_PAGESIZE);
    stats->memory_swap_bytes += swap_bytes(pid);
    stats->cpu_user_us += stat.user_ticks * tick_us;
    stats->cpu_system_us += stat.system_ticks * tick_us;
}

int proc_stats(const struct proc_identity *identity, struct cgroup_stats *ret_stats,
               struct err *err)
{
    struct cgroup_stats stats = {0};

    if (!proc_is_alive(identity))
        return err_set(err, ERR_GONE, "process %d is gone", (int)identity->pid);
    proc_add_stats(identity->pid, &stats);
    *ret_stats = stats;
    return 0;
}

static bool add_process(void *ctx, pid_t pid)
{
    proc_add_stats(pid, ctx);
    return true;
}

static int add_processes(void *ctx, int fd)
{
    return cgroup_walk_processes(fd, add_process, ctx);
}

/* The counts that v2 keeps; the memory ones only where the controller was handed down. */
static void take_v2_counts(int fd, struct cgroup_stats *stats)
{
    char text[4096];
    uint64_t value;

    if (small_file_read(fd, "cpu.stat", text, sizeof(text)) > 0) {
        (void)number_of(text, "user_usec", &stats->cpu_user_us); /* keeps the sum if missing */
        (void)number_of(text, "system_usec", &stats->cpu_system_us);
        (void)number_of(text, "nr_throttled", &stats->throttled_periods);
        (void)number_of(text, "throttled_usec", &stats->throttled_us);
    }
    if (small_file_read(fd, "memory.stat", text, sizeof(text)) > 0) {
        (void)number_of(text, "anon", &stats->memory_rss_bytes);
        (void)number_of(text, "file", &stats->memory_cache_bytes);
        (void)number_of(text, "file_mapped", &stats->memory_mapped_bytes);
    }
    (void)file_number(fd, "memory.swap.current", &stats->memory_swap_bytes);
    if (file_number(fd, "memory.current", &value)) {
        stats->memory_usage_bytes = value;
        stats->memory_usage_bytes_max = value;
    }
    (void)file_number(fd, "memory.peak", &stats->memory_usage_bytes_max); /* since 5.19 */
}

/* The counts of the v1 controllers in which the cgroup exists, which is where it has limits. */
static void take_v1_counts(enum cgroup_mode mode, const char *name, struct cgroup_stats *stats)
{
    struct cgroup_path path;
    char text[4096];

    if (!cgroup_controller_path(mode, CONTROLLER_MEMORY, name, &path))
        return;
    scoped_fd int memory = open(path.text, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (memory >= 0 && small_file_read(memory, "memory.stat", text, sizeof(text)) > 0) {
        (void)number_of(text, "total_rss", &stats->memory_rss_bytes);
        (void)number_of(text, "total_cache", &stats->memory_cache_bytes);
        (void)number_of(text, "total_swap", &stats->memory_swap_bytes);
        (void)number_of(text, "total_mapped_file", &stats->memory_mapped_bytes);
    }
    if (memory >= 0) {
        (void)file_number(memory, "memory.usage_in_bytes", &stats->memory_usage_bytes);
        (void)file_number(memory, "memory.max_usage_in_bytes", &stats->memory_usage_bytes_max);
    }
    if (!cgroup_controller_path(mode, CONTROLLER_CPU, name, &path))
        return;
    scoped_fd int cpu = open(path.text, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (cpu >= 0 && small_file_read(cpu, "cpu.stat", text, sizeof(text)) > 0) {
        uint64_t throttled_ns = 0;

        (void)number_of(text, "nr_throttled", &stats->throttled_periods);
        (void)number_of(text, "throttled_time", &throttled_ns);
        stats->throttled_us = throttled_ns / 1000;
    }
}

int cgroup_stats(enum cgroup_mode mode, const char *name, struct cgroup_stats *ret_stats,
                 struct err *err)
{
    struct cgroup_stats stats = {0};
    struct cgroup_path path;
    int code = cgroup_path_of(mode, name, &path, err);

    if (code != 0)
        return code;
    if (mode == CGROUP_NONE)
        return err_set(err, ERR_UNSUPPORTED, "there are no cgroups here");

    scoped_fd int fd = open(path.text, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    code = fd < 0 ? -errno : cgroup_walk(fd, add_processes, &stats);
    if (code != 0)
        return err_os(err, err_from_errno(-code), -code, "cannot measure the cgroup %s", name);
    if (mode != CGROUP_V1)
        take_v2_counts(fd, &stats);
    take_v1_counts(mode, name, &stats);
    if (stats.memory_usage_bytes == 0)
        stats.memory_usage_bytes = stats.memory_rss_bytes + stats.memory_cache_bytes;
    if (stats.memory_usage_bytes_max < stats.memory_usage_bytes)
        stats.memory_usage_bytes_max = stats.memory_usage_bytes;
    stats.oom_killed = cgroup_oom_killed(mode, name);
    *ret_stats = stats;
    return 0;
}

bool cgroup_oom_killed(enum cgroup_mode mode, const char *name)
{
    struct cgroup_path path;
    char text[512];
    uint64_t kills = 0;
    const char *file = "memory.events";

    if (mode == CGROUP_NONE || cgroup_path_of(mode, name, &path, NULL) != 0)
        return false;
    if (cgroup_controller_path(mode, CONTROLLER_MEMORY, name, &path))
        file = "memory.oom_control"; /* counts kills since Linux 4.13 */
    scoped_fd int fd = open(path.text, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 && small_file_read(fd, file, text, sizeof(text)) > 0 &&
           number_of(text, "oom_kill", &kills) && kills > 0;
}
