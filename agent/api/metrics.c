/*
 * Figures for those who watch: of the node, what it has given away, its jobs (jobs/figures.c), and,
 * where that is configured, each task that runs.
 *
 * Names, labels and units are those of Nomad's client (client/client.go,
 * client/allocrunner/hookstats/hookstats.go and client/allocrunner/taskrunner/task_runner.go of
 * 2.0), so that its dashboards go on; what only we have begins with "cairn".  A figure is a row.
 */
#include "agent/api/format/format.h"
#include "agent/api/format/sheet.h"
#include "agent/api/part.h"

#include "base/list.h"
#include "server/alone/alone.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- the node --- */

enum { NODE_LABELS_MAX = 8 };

/* Those of whatever is of the node; those behind them are the caller's.  Returns how many. */
static size_t label_base(const struct api *api, struct label labels[NODE_LABELS_MAX])
{
    const struct config *config = api->parts->config;
    const struct label found[] = {
        {"node_id", api->parts->node.identity.id},
        {"datacenter", config->datacenter},
        {"node_class", config->node_class[0] != '\0' ? config->node_class : "none"},
        {"node_pool", config->node_pool},
    };

    _Static_assert(COUNT_OF(found) + 4 <= NODE_LABELS_MAX, "there is room for four more");
    memcpy(labels, found, sizeof(found));
    return COUNT_OF(found);
}

/* The same with how the node is, and one more. */
static size_t label_node(const struct api *api, struct label labels[NODE_LABELS_MAX])
{
    size_t count = label_base(api, labels);
    const char *eligibility = api_eligibility(alone_standing(api->parts->alone));

    labels[count++] = (struct label){"node_status", "ready"};
    labels[count++] = (struct label){"node_scheduling_eligibility", eligibility};
    labels[count++] = (struct label){"host", api->parts->config->name};
    return count;
}

struct counts {
    uint32_t blocked, migrating, pending, running, terminal;
    uint32_t tasks[TASK_RUN_DEAD + 1];
};

static bool count_alloc(void *ctx, const struct machine_id *id, const struct machine *record)
{
    const struct alloc *alloc = alloc_of(record);
    struct counts *counts = ctx;
    (void)id;

    counts->blocked += record->state == A_WAITING;
    counts->migrating += record->state == A_PREPARING && alloc->hook == ALLOC_HOOK_MIGRATE_DISK;
    switch ((enum client_status)alloc->client_status) {
    case CLIENT_PENDING:
        counts->pending++;
        break;
    case CLIENT_RUNNING:
        counts->running++;
        break;
    case CLIENT_COMPLETE:
    case CLIENT_FAILED:
        counts->terminal++;
        break;
    }
    return true;
}

static bool count_task(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct counts *counts = ctx;
    (void)id;

    counts->tasks[task_of(record)->run_state]++;
    return true;
}

/* Resident memory of this process in bytes, 0 if it cannot be read. */
static uint64_t resident_bytes(void)
{
    char *text;
    size_t length;
    uint64_t pages = 0;

    if (file_read("/proc/self/statm", 256, &text, &length, NULL) != 0)
        return 0;
    char *second = strchr(text, ' ');
    if (second != NULL) {
        second[1 + strcspn(second + 1, " \n")] = '\0';
        (void)text_to_u64(second + 1, &pages); /* 0 otherwise */
    }
    free(text);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static double percent(uint64_t part, uint64_t whole)
{
    return whole == 0 ? 0 : 100 * (double)part / (double)whole;
}

/* More is given away than there is when the node was configured anew. */
static double rest(uint64_t whole, uint64_t part)
{
    return (double)whole - (double)part;
}

struct gauge {
    const char *name;
    double value;
};

static void put_gauges(struct sheet *sheet, const struct label *labels, size_t labels_count,
                       const struct gauge *gauges, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        sheet_kind(sheet, gauges[i].name, "gauge");
        sheet_gauge(sheet, gauges[i].name, labels, labels_count, gauges[i].value);
    }
}

static void put_allocs(struct sheet *sheet, const struct api *api, const struct label *labels,
                       size_t labels_count)
{
    const struct room *room = &api->parts->node.room, *used = alone_used(api->parts->alone);
    struct counts counts = {0};

    core_each(api->parts->core, MACHINE_ALLOC, count_alloc, &counts);
    core_each(api->parts->core, MACHINE_TASK, count_task, &counts);
    const struct gauge gauges[] = {
        {"nomad.client.allocations.blocked", counts.blocked},
        {"nomad.client.allocations.migrating", counts.migrating},
        {"nomad.client.allocations.pending", counts.pending},
        {"nomad.client.allocations.running", counts.running},
        {"nomad.client.allocations.terminal", counts.terminal},
        {"nomad.client.tasks.pending", counts.tasks[TASK_RUN_PENDING]},
        {"nomad.client.tasks.running", counts.tasks[TASK_RUN_RUNNING]},
        {"nomad.client.tasks.dead", counts.tasks[TASK_RUN_DEAD]},
        {"nomad.client.allocated.cpu", (double)used->cpu_mhz},
        {"nomad.client.allocated.memory", (double)used->memory_mb},
        {"nomad.client.allocated.max_memory", (double)used->memory_most_mb},
        {"nomad.client.allocated.disk", (double)used->disk_mb},
        {"nomad.client.unallocated.cpu", rest(room->cpu_mhz, used->cpu_mhz)},
        {"nomad.client.unallocated.memory", rest(room->memory_mb, used->memory_mb)},
        {"nomad.client.unallocated.disk", rest(room->disk_mb, used->disk_mb)},
    };
    put_gauges(sheet, labels, labels_count, gauges, COUNT_OF(gauges));
}

/* Each of them; the label behind LABELS is its own. */
static void put_cpus(struct sheet *sheet, const struct host_stats *host, double mhz,
                     struct label *labels, size_t labels_count)
{
    static const char *const names[] = {
        "nomad.client.host.cpu.total",       "nomad.client.host.cpu.total_percent",
        "nomad.client.host.cpu.total_ticks", "nomad.client.host.cpu.user",
        "nomad.client.host.cpu.system",      "nomad.client.host.cpu.idle",
    };
    char label[24];

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        sheet_kind(sheet, names[i], "gauge");
        for (unsigned c = 0; c < host->cpus_count; c++) {
            const struct host_cpu *cpu = &host->cpus[c];
            const double values[] = {cpu->total, cpu->total,  cpu->total / 100 * mhz,
                                     cpu->user,  cpu->system, cpu->idle};

            _Static_assert(COUNT_OF(values) == COUNT_OF(names), "each has its name");
            (void)text_format(label, sizeof(label), "cpu%u", cpu->number); /* fits */
            labels[labels_count] = (struct label){"cpu", label};
            sheet_gauge(sheet, names[i], labels, labels_count + 1, values[i]);
        }
    }
}

/* What was seen last; nothing was, if the file system of the data directory never answered. */
static void put_host(struct sheet *sheet, const struct api *api, const struct host_stats *host,
                     struct label *labels, size_t labels_count)
{
    const struct gauge plain[] = {
        {"nomad.client.uptime", (double)host->uptime_s},
        {"nomad.client.host.memory.total", (double)host->memory_total},
        {"nomad.client.host.memory.available", (double)host->memory_available},
        {"nomad.client.host.memory.used", (double)host->memory_used},
        {"nomad.client.host.memory.free", (double)host->memory_free},
    };
    const struct gauge disk[] = {
        {"nomad.client.host.disk.size", (double)host->disk_size},
        {"nomad.client.host.disk.used", (double)host->disk_used},
        {"nomad.client.host.disk.available", (double)host->disk_available},
        {"nomad.client.host.disk.used_percent",
         percent(host->disk_used, host->disk_used + host->disk_available)},
        {"nomad.client.host.disk.inodes_percent", percent(host->inodes_used, host->inodes)},
    };

    put_gauges(sheet, labels, labels_count, plain, COUNT_OF(plain));
    put_cpus(sheet, host, api->parts->node.facts.cpu_mhz, labels, labels_count);
    labels[labels_count] = (struct label){"disk", api_device(api)};
    put_gauges(sheet, labels, labels_count + 1, disk, COUNT_OF(disk));
}

static void put_daemon(struct sheet *sheet, const struct api *api, uint64_t age_ms)
{
    struct core *core = api->parts->core;
    const struct label labels[] = {{"node_id", api->parts->node.identity.id}};
    struct core_figures figures = core_figures(core);
    struct journal_figures journal = {0};

    (void)journal_figures(api->parts->journal, &journal, NULL); /* else 0 */
    const struct gauge gauges[] = {
        {"nomad.runtime.resident_bytes", (double)resident_bytes()},
        {"cairn.host.age_seconds", (double)age_ms / 1000},
        {"cairn.machines.allocs", (double)core_count(core, MACHINE_ALLOC)},
        {"cairn.machines.tasks", (double)core_count(core, MACHINE_TASK)},
        {"cairn.machines.volumes", (double)core_count(core, MACHINE_VOLUME)},
        {"cairn.machines.plugins", (double)core_count(core, MACHINE_PLUGIN)},
        {"cairn.turns", (double)figures.turns},
        {"cairn.events", (double)figures.events},
        {"cairn.effects", (double)figures.effects},
        {"cairn.commits_failed", (double)figures.commits_failed},
        {"cairn.journal.events", (double)journal.events},
        {"cairn.journal.bytes_used", (double)journal.bytes_used},
        {"cairn.journal.quarantined", (double)journal.quarantined},
        {"cairn.degraded", life_trouble(api->parts->life) != NULL ? 1 : 0},
        {"cairn.cpu_cores", api->parts->node.facts.cpu_cores},
    };
    put_gauges(sheet, labels, COUNT_OF(labels), gauges, COUNT_OF(gauges));
}

/* --- plugins --- */

static const char *const loads[] = {"cairn.csi.calls", "cairn.csi.calls_waiting",
                                    "cairn.csi.calls_gave_up"};

struct of_plugins {
    struct sheet *sheet;
    const struct api *api;
    size_t number; /* of loads */
};

static bool put_load(void *ctx, const struct machine_id *id, const struct machine *record)
{
    const struct of_plugins *of = ctx;
    struct machine_id owner = machine_id_owner(id);
    const struct csi_instance *instance =
        csi_plugins_of(of->api->parts->plugins, owner.text, machine_id_name(id));
    struct csi_load load = {0};
    (void)record;

    if (instance == NULL)
        return true; /* it is no plugin of CSI */
    if (instance->client != NULL)
        csi_client_load(instance->client, &load);
    const unsigned values[] = {load.calls, load.waiting, load.gave_up};
    const struct label labels[] = {{"plugin_id", instance->plugin}, {"alloc_id", instance->alloc}};
    _Static_assert(COUNT_OF(values) == COUNT_OF(loads), "each has its name");
    sheet_gauge(of->sheet, loads[of->number], labels, COUNT_OF(labels), values[of->number]);
    return true;
}

static void put_plugins(struct sheet *sheet, const struct api *api)
{
    struct of_plugins of = {.sheet = sheet, .api = api};

    if (core_count(api->parts->core, MACHINE_PLUGIN) == 0)
        return;
    for (; of.number < COUNT_OF(loads); of.number++) {
        sheet_kind(sheet, loads[of.number], "gauge");
        core_each(api->parts->core, MACHINE_PLUGIN, put_load, &of);
    }
}

/* --- tasks --- */

/* One that runs, as it was when somebody asked: it may be gone when the pool has looked. */
struct watched {
    char namespace[SPEC_NAMESPACE_SIZE], job[SPEC_NAME_SIZE], group[SPEC_NAME_SIZE];
    uint32_t cpu_mhz, memory_mb; /* that it was given */
    int32_t memory_max_mb;       /* or SPEC_MEMORY_UNLIMITED */
    struct driver_look look;
    struct driver_stats stats; /* if USES */
    bool uses;
};

/*    name                                     of TASK, whose stats are USED */
#define TASK_GAUGES(X)                                                                             \
    X("nomad.client.allocs.cpu.allocated", task->cpu_mhz)                                          \
    X("nomad.client.allocs.cpu.total_percent", task->stats.cpu_percent)                            \
    X("nomad.client.allocs.cpu.total_ticks", task->stats.cpu_percent / 100 * mhz)                  \
    X("nomad.client.allocs.cpu.user", task->stats.cpu_percent *user_share(used))                   \
    X("nomad.client.allocs.cpu.system", task->stats.cpu_percent *(1 - user_share(used)))           \
    X("nomad.client.allocs.cpu.throttled_periods", (double)used->throttled_periods)                \
    X("nomad.client.allocs.cpu.throttled_time", (double)used->throttled_us * 1000)                 \
    X("nomad.client.allocs.memory.allocated", MIB * task->memory_mb)                               \
    X("nomad.client.allocs.memory.max_allocated", MIB * task->memory_max_mb)                       \
    X("nomad.client.allocs.memory.rss", (double)used->memory_rss_bytes)                            \
    X("nomad.client.allocs.memory.cache", (double)used->memory_cache_bytes)                        \
    X("nomad.client.allocs.memory.swap", (double)used->memory_swap_bytes)                          \
    X("nomad.client.allocs.memory.usage", (double)used->memory_usage_bytes)                        \
    X("nomad.client.allocs.memory.max_usage", (double)used->memory_usage_bytes_max)

#define X(name, value) +1
enum { TASK_GAUGES_COUNT = 0 TASK_GAUGES(X) };
#undef X
#define X(name, value) name,
static const char *const task_gauges[] = {TASK_GAUGES(X)};
#undef X

static const double MIB = 1 << 20;

/* As the time since the start is parted. */
static double user_share(const struct cgroup_stats *used)
{
    uint64_t all_us = used->cpu_user_us + used->cpu_system_us;

    return all_us == 0 ? 0 : (double)used->cpu_user_us / (double)all_us;
}

static void read_gauges(const struct watched *task, uint32_t mhz, double to[TASK_GAUGES_COUNT])
{
    const struct cgroup_stats *used = &task->stats.usage;
#define X(name, value) value,
    const double found[] = {TASK_GAUGES(X)};
#undef X

    memcpy(to, found, sizeof(found));
}

/* The answer, and the tasks that the pool looks at for it. */
struct metrics {
    struct api_aside aside;
    struct api *api;
    struct host_stats host;
    bool host_known;
    uint64_t host_age_ms;
    struct watched *items;
    size_t count, size;
};

static bool watch(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct metrics *metrics = ctx;
    struct parts *parts = metrics->api->parts;
    struct machine_id owner = machine_id_owner(id);
    const struct alloc *alloc = core_alloc(parts->core, owner.text);
    const struct task *task = task_of(record);
    struct driver_key key = {.generation = record->generation};

    if (task->run_state != TASK_RUN_RUNNING || alloc == NULL)
        return true;
    (void)text_copy(key.alloc, sizeof(key.alloc), owner.text);            /* these fit: they */
    (void)text_copy(key.task, sizeof(key.task), machine_id_name(id));     /* come from fields */
    (void)text_copy(key.driver, sizeof(key.driver), task->define.driver); /* of these sizes */
    struct watched *watched = list_more(metrics);
    memset(watched, 0, sizeof(*watched));
    if (driver_look_begin(parts->drivers, &key, &watched->look, NULL) != 0) {
        metrics->count--; /* it is not running any more */
        return true;
    }
    (void)text_copy(watched->namespace, sizeof(watched->namespace), alloc->assign.namespace);
    (void)text_copy(watched->job, sizeof(watched->job), alloc->assign.job_id);
    (void)text_copy(watched->group, sizeof(watched->group), alloc->assign.group);
    const struct alloc_spec *spec = specs_find(parts->specs, owner.text, NULL);
    for (size_t i = 0; spec != NULL && i < spec->tasks_count; i++) {
        const struct spec_resources *asked = &spec->tasks[i].resources;
        if (!text_equal(spec->tasks[i].name, key.task))
            continue;
        watched->cpu_mhz = asked->cpu_mhz;
        watched->memory_mb = asked->memory_mb;
        watched->memory_max_mb = asked->memory_max_mb;
    }
    return true;
}

enum { TASK_LABELS = 6 };

static void label_task(const struct api *api, const struct watched *task,
                       struct label labels[TASK_LABELS])
{
    const struct label found[] = {
        {"alloc_id", task->look.key.alloc},
        {"host", api->parts->config->name},
        {"job", task->job},
        {"namespace", task->namespace},
        {"task", task->look.key.task},
        {"task_group", task->group},
    };

    _Static_assert(COUNT_OF(found) == TASK_LABELS, "all of them");
    memcpy(labels, found, sizeof(found));
}

static void put_tasks(struct sheet *sheet, struct metrics *metrics)
{
    uint32_t mhz = metrics->api->parts->node.facts.cpu_mhz;
    struct label labels[TASK_LABELS];
    double values[TASK_GAUGES_COUNT];

    for (size_t i = 0; i < metrics->count; i++) {
        struct watched *task = &metrics->items[i];
        task->uses =
            driver_look_end(metrics->api->parts->drivers, &task->look, &task->stats, NULL) == 0;
    }
    for (size_t gauge = 0; gauge < TASK_GAUGES_COUNT && metrics->count > 0; gauge++) {
        sheet_kind(sheet, task_gauges[gauge], "gauge");
        for (size_t i = 0; i < metrics->count; i++) {
            const struct watched *task = &metrics->items[i];

            if (!task->uses)
                continue;
            label_task(metrics->api, task, labels);
            read_gauges(task, mhz, values);
            sheet_gauge(sheet, task_gauges[gauge], labels, TASK_LABELS, values[gauge]);
        }
    }
}

/* --- what only grows --- */

static const char HOST_TICKS[] = "nomad.client.host.cpu.total_ticks_count";
static const char TASK_TICKS[] = "nomad.client.allocs.cpu.total_ticks_count";

/* Of each processor: what it has worked since the host was booted, in millions of its ticks. */
static void put_host_ticks(struct sheet *sheet, const struct metrics *metrics, struct label *labels,
                           size_t labels_count)
{
    const struct host_cpu_times *times = &metrics->api->host.cpu;
    double mhz = metrics->api->parts->node.facts.cpu_mhz, per_s = (double)sysconf(_SC_CLK_TCK);
    char label[24];

    sheet_kind(sheet, HOST_TICKS, "counter");
    for (unsigned c = 0; c < metrics->host.cpus_count; c++) {
        unsigned number = metrics->host.cpus[c].number;
        const struct host_cpu_time *time = &times->each[number];

        (void)text_format(label, sizeof(label), "cpu%u", number); /* fits */
        labels[labels_count] = (struct label){"cpu", label};
        sheet_counter(sheet, HOST_TICKS, labels, labels_count + 1,
                      (double)(time->total - time->idle) / per_s * mhz);
    }
}

/* Of each task that runs, since it was started. */
static void put_task_ticks(struct sheet *sheet, const struct metrics *metrics)
{
    double mhz = metrics->api->parts->node.facts.cpu_mhz;
    struct label labels[TASK_LABELS];

    if (metrics->count > 0)
        sheet_kind(sheet, TASK_TICKS, "counter");
    for (size_t i = 0; i < metrics->count; i++) {
        const struct watched *task = &metrics->items[i];
        const struct cgroup_stats *used = &task->stats.usage;

        label_task(metrics->api, task, labels);
        if (task->uses)
            sheet_counter(sheet, TASK_TICKS, labels, TASK_LABELS,
                          (double)(used->cpu_user_us + used->cpu_system_us) / 1e6 * mhz);
    }
}

/*    name, of TASK, of which something was SEEN since the daemon began */
#define TASK_COUNTERS(X)                                                                           \
    X("nomad.client.allocs.running", seen->starts)                                                 \
    X("nomad.client.allocs.oom_killed", seen->oom_kills)                                           \
    X("nomad.client.allocs.restart", task->restarts)                                               \
    X("nomad.client.allocs.complete", task->run_state == TASK_RUN_DEAD && !task->failed)           \
    X("nomad.client.allocs.failed", task->run_state == TASK_RUN_DEAD && task->failed)

#define X(name, value) name,
static const char *const task_counters[] = {TASK_COUNTERS(X)};
#undef X

static const struct tally_task never;

struct counting {
    struct sheet *sheet;
    const struct api *api;
    size_t number; /* of task_counters */
    bool any;
};

static bool put_counted(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct counting *counting = ctx;
    struct machine_id owner = machine_id_owner(id);
    const struct alloc *alloc = core_alloc(counting->api->parts->core, owner.text);
    const struct task *task = task_of(record);
    const struct tally_task *found = tally_task(counting->api->parts->tally, id->text);
    const struct tally_task *seen = found != NULL ? found : &never;
#define X(name, value) value,
    const uint32_t counted[] = {TASK_COUNTERS(X)};
#undef X
    uint32_t count = counted[counting->number];

    if (alloc == NULL || count == 0)
        return true;
    const struct label labels[] = {
        {"alloc_id", owner.text},      {"host", counting->api->parts->config->name},
        {"job", alloc->assign.job_id}, {"namespace", alloc->assign.namespace},
        {"task", machine_id_name(id)}, {"task_group", alloc->assign.group},
    };
    if (!counting->any)
        sheet_kind(counting->sheet, task_counters[counting->number], "counter");
    counting->any = true;
    sheet_counter(counting->sheet, task_counters[counting->number], labels, COUNT_OF(labels),
                  count);
    return true;
}

/* --- hooks --- */

/*    of the hooks     of an alloc                            of a task */
#define HOOK_NAMES(X)                                                                              \
    X(HOOKS_TOOK, "nomad.client.alloc_hook.prerun.elapsed",                                        \
      "nomad.client.task_hook.prestart.elapsed")                                                   \
    X(HOOKS_FAILED, "nomad.client.alloc_hook.prerun.failed",                                       \
      "nomad.client.task_hook.prestart.failed")                                                    \
    X(HOOKS_DONE, "nomad.client.alloc_hook.prerun.success",                                        \
      "nomad.client.task_hook.prestart.success")

enum hook_figure {
#define X(figure, of_alloc, of_task) figure,
    HOOK_NAMES(X)
#undef X
};

static const char *const hook_names[][2] = {
#define X(figure, of_alloc, of_task) [figure] = {of_alloc, of_task},
    HOOK_NAMES(X)
#undef X
};

static uint32_t hook_count(const struct tally_hook *hook, enum hook_figure figure)
{
    switch (figure) {
    case HOOKS_TOOK:
        return hook->done + hook->failed;
    case HOOKS_FAILED:
        return hook->failed;
    case HOOKS_DONE:
        return hook->done;
    }
    unreachable("all figures are named");
}

/* FIGURE of all hooks of tasks, or of allocs, that have one. */
static void put_hook_figure(struct sheet *sheet, const struct metrics *metrics,
                            enum hook_figure figure, bool of_task)
{
    const char *name = hook_names[figure][of_task];
    struct label labels[NODE_LABELS_MAX];
    size_t labels_count = label_base(metrics->api, labels), count;
    const char *host = metrics->api->parts->config->name;
    const struct tally_hook *hooks = tally_hooks(metrics->api->parts->tally, &count);
    bool any = false;

    for (size_t i = 0; i < count; i++) {
        const struct tally_hook *hook = &hooks[i];
        uint32_t times = hook_count(hook, figure);
        const char *hook_name = of_task ? task_hook_name(hook->hook) : alloc_hook_name(hook->hook);

        if (hook->of_task != of_task || times == 0)
            continue;
        if (!any)
            sheet_kind(sheet, name, figure == HOOKS_TOOK ? "summary" : "counter");
        any = true;
        labels[labels_count] = (struct label){"host", host};
        labels[labels_count + 1] = (struct label){"namespace", hook->namespace};
        labels[labels_count + 2] = (struct label){"hook_name", hook_name};
        if (figure == HOOKS_TOOK)
            sheet_sample(sheet, name, labels, labels_count + 3,
                         &(struct sheet_sample){times, hook->sum_ms, hook->squares_ms2,
                                                hook->min_ms, hook->max_ms});
        else
            sheet_counter(sheet, name, labels, labels_count + 3, times);
    }
}

static void put_hooks(struct sheet *sheet, const struct metrics *metrics, enum hook_figure figure)
{
    if (metrics->api->parts->config->hides_hooks)
        return;
    put_hook_figure(sheet, metrics, figure, false);
    put_hook_figure(sheet, metrics, figure, true);
}

static void put_counters(struct sheet *sheet, const struct metrics *metrics)
{
    const struct config *config = metrics->api->parts->config;
    struct label labels[NODE_LABELS_MAX];
    size_t count = label_node(metrics->api, labels);

    if (config->publishes_node && metrics->host_known)
        put_host_ticks(sheet, metrics, labels, count);
    put_hooks(sheet, metrics, HOOKS_DONE);
    put_hooks(sheet, metrics, HOOKS_FAILED);
    if (!config->publishes_allocs)
        return;
    put_task_ticks(sheet, metrics);
    for (size_t i = 0; i < COUNT_OF(task_counters); i++) {
        struct counting counting = {.sheet = sheet, .api = metrics->api, .number = i};

        core_each(metrics->api->parts->core, MACHINE_TASK, put_counted, &counting);
    }
}

/* --- the answer --- */

static void run_looks(struct api_aside *aside)
{
    struct metrics *metrics = (struct metrics *)aside;

    for (size_t i = 0; i < metrics->count; i++)
        driver_look_read(&metrics->items[i].look);
}

static void free_metrics(struct api_aside *aside)
{
    struct metrics *metrics = (struct metrics *)aside;

    free(metrics->items);
    free(metrics); /* the first member of what was allocated */
}

static bool wants_prometheus(const struct api_request *request)
{
    const char *form = http_query(request->exchange, "format");

    return form != NULL && text_equal(form, "prometheus");
}

static void put_all(struct sheet *sheet, struct metrics *metrics)
{
    struct label labels[NODE_LABELS_MAX];
    size_t count = label_node(metrics->api, labels);

    if (metrics->api->parts->config->publishes_node) {
        put_allocs(sheet, metrics->api, labels, count);
        if (metrics->host_known)
            put_host(sheet, metrics->api, &metrics->host, labels, count);
    }
    api_put_job_figures(sheet, metrics->api);
    put_daemon(sheet, metrics->api, metrics->host_age_ms);
    put_plugins(sheet, metrics->api);
    put_tasks(sheet, metrics);
}

static void answer_metrics(struct api_request *request, struct api_aside *aside)
{
    struct sheet sheet = {.is_prometheus = wants_prometheus(request), .json = api_writer(request)};
    if (sheet.is_prometheus) {
        put_all(&sheet, (struct metrics *)aside);
        put_counters(&sheet, (struct metrics *)aside);
        put_hooks(&sheet, (struct metrics *)aside, HOOKS_TOOK);
        http_respond(request->exchange, 200, "text/plain; version=0.0.4; charset=utf-8",
                     api_safe_headers, API_SAFE_HEADERS, sheet.text, sheet.used);
        free(sheet.text);
        return;
    }
    put_object(&sheet.json, NULL);
    put_time(&sheet.json, "Timestamp", loop_now_unix_ns());
    put_array(&sheet.json, "Gauges");
    put_all(&sheet, (struct metrics *)aside);
    put_end(&sheet.json);
    put_array(&sheet.json, "Counters");
    put_counters(&sheet, (struct metrics *)aside);
    put_end(&sheet.json);
    put_array(&sheet.json, "Samples");
    put_hooks(&sheet, (struct metrics *)aside, HOOKS_TOOK);
    put_end(&sheet.json);
    put_array(&sheet.json, "Points");
    put_end(&sheet.json);
    put_end(&sheet.json);
    api_reply_written(request, &sheet.json);
}

static void give_metrics(struct api_request *request, const struct api_host_view *view)
{
    struct metrics *metrics = calloc(1, sizeof(*metrics));

    check(metrics != NULL);
    metrics->api = request->api;
    metrics->host_known = view->stats != NULL;
    if (metrics->host_known)
        metrics->host = *view->stats;
    metrics->host_age_ms = view->age_ms;
    metrics->aside =
        (struct api_aside){.run = run_looks, .answer = answer_metrics, .free = free_metrics};
    if (request->api->parts->config->publishes_allocs)
        core_each(request->api->parts->core, MACHINE_TASK, watch, metrics);
    api_aside_start(request, &metrics->aside);
}

void api_metrics(struct api_request *request)
{
    if (wants_prometheus(request) && !request->api->parts->config->publishes_prometheus) {
        api_refuse(request, 415, "Prometheus is not enabled");
        return;
    }
    api_host_ask(request, give_metrics);
}
