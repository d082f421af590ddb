/*
 * Values, tasks and allocs as Nomad's JSON.
 *
 * Follows nomad v1.1.2 api/tasks.go, api/allocations.go and nomad/structs (TaskEvent, whose old
 * fields repeat what is in Details).
 */
#include "agent/api/format.h"

#include "fsm/policy.h"
#include "spec/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* --- values --- */

json_t *api_text(const char *text)
{
    json_t *value = json_string(text == NULL ? "" : text);

    if (value != NULL)
        return value;
    char *clean = strdup(text);
    check(clean != NULL);
    for (unsigned char *at = (unsigned char *)clean; *at != '\0'; at++)
        *at = *at >= 0x80 ? '?' : *at;
    value = json_string(clean);
    check(value != NULL);
    free(clean);
    return value;
}

void api_time(char to[API_TIME_SIZE], int64_t unix_ns)
{
    time_t seconds = (time_t)(unix_ns / 1000000000);
    int64_t rest = unix_ns % 1000000000;
    struct tm parts;
    char fraction[16] = "";

    if (unix_ns <= 0) {
        (void)text_copy(to, API_TIME_SIZE, "0001-01-01T00:00:00Z"); /* it fits */
        return;
    }
    (void)gmtime_r(&seconds, &parts); /* of times within our range: always succeeds */
    if (rest > 0) {
        (void)text_format(fraction, sizeof(fraction), ".%09" PRId64, rest); /* it fits */
        for (size_t end = strlen(fraction); fraction[end - 1] == '0'; end--)
            fraction[end - 1] = '\0';
    }
    (void)text_format(to, API_TIME_SIZE, "%04d-%02d-%02dT%02d:%02d:%02d%sZ", parts.tm_year + 1900,
                      parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                      fraction); /* it fits */
}

json_t *api_pairs(const struct spec_pairs *pairs)
{
    json_t *object = json_object();

    for (size_t i = 0; i < pairs->count; i++)
        (void)json_object_set_new_nocheck(object, pairs->items[i].key,
                                          api_text(pairs->items[i].value)); /* memory only */
    return object;
}

/* Setting fails only without memory, which ends the process inside the library's caller. */
static void set(json_t *object, const char *name, json_t *value)
{
    check(json_object_set_new(object, name, value) == 0);
}

static void set_text(json_t *object, const char *name, const char *text)
{
    set(object, name, api_text(text));
}

static void set_number(json_t *object, const char *name, int64_t number)
{
    set(object, name, json_integer((json_int_t)number));
}

static void set_time(json_t *object, const char *name, int64_t unix_ns)
{
    char text[API_TIME_SIZE];

    api_time(text, unix_ns);
    set_text(object, name, text);
}

static void set_null(json_t *object, const char *name)
{
    set(object, name, json_null());
}

/* --- task events --- */

/* The number of an event under its two names, in Details as text. */
static void set_figure(json_t *event, json_t *details, const char *name, const char *detail,
                       int64_t number)
{
    char text[24];

    set_number(event, name, number);
    (void)text_format(text, sizeof(text), "%" PRId64, number); /* it fits */
    set_text(details, detail, text);
}

static void set_terminated(json_t *event, json_t *details, const struct task_event *from)
{
    set_figure(event, details, "ExitCode", "exit_code", from->number);
    set_figure(event, details, "Signal", "signal", from->signal);
    set_text(details, "oom_killed", from->oom_killed ? "true" : "false");
    if (from->text[0] == '\0')
        return;
    set_text(event, "Message", from->text);
    set_text(details, "exit_message", from->text);
}

static void set_kill_timeout(json_t *event, json_t *details, int64_t ns)
{
    char text[40];

    if (ns <= 0)
        return;
    text_from_duration_ns(text, sizeof(text), ns);
    set_number(event, "KillTimeout", ns);
    set_text(details, "kill_timeout", text);
}

/* Where the text of each type goes: its old field and its key in Details. */
static void text_fields(enum task_event_type type, const char **ret_field, const char **ret_detail)
{
    static const struct {
        enum task_event_type type;
        const char *field, *detail;
    } rows[] = {
        {TASK_EVENT_SETUP_FAILURE, "SetupError", "setup_error"},
        {TASK_EVENT_FAILED_VALIDATION, "ValidationError", "validation_error"},
        {TASK_EVENT_DRIVER_FAILURE, "DriverError", "driver_error"},
        {TASK_EVENT_RESTARTING, "RestartReason", "restart_reason"},
        {TASK_EVENT_NOT_RESTARTING, "RestartReason", "restart_reason"},
        {TASK_EVENT_RESTART_SIGNALED, "RestartReason", "restart_reason"},
        {TASK_EVENT_KILLING, "KillReason", "kill_reason"},
        {TASK_EVENT_KILLED, "KillError", "kill_error"},
        {TASK_EVENT_SIGNALING, "TaskSignalReason", "task_signal_reason"},
        {TASK_EVENT_SIBLING_FAILED, "FailedSibling", "failed_sibling"},
    };

    *ret_field = "Message";
    *ret_detail = "message";
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (rows[i].type == type) {
            *ret_field = rows[i].field;
            *ret_detail = rows[i].detail;
        }
    }
}

static json_t *empty_event(void)
{
    static const char *const texts[] = {
        "Message",    "RestartReason",    "SetupError",    "DriverError",     "DriverMessage",
        "KillReason", "KillError",        "DownloadError", "ValidationError", "FailedSibling",
        "VaultError", "TaskSignalReason", "TaskSignal",    "GenericSource",
    };
    static const char *const numbers[] = {
        "ExitCode", "Signal", "KillTimeout", "StartDelay", "DiskLimit", "DiskSize",
    };
    json_t *event = json_object();

    for (size_t i = 0; i < COUNT_OF(texts); i++)
        set_text(event, texts[i], "");
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        set_number(event, numbers[i], 0);
    return event;
}

json_t *api_format_event(const struct task_event *event)
{
    json_t *to = empty_event(), *details = json_object();
    const char *field, *detail;
    char message[2 * TASK_EVENT_TEXT_SIZE];

    task_event_message(event, message, sizeof(message));
    set_text(to, "Type", task_event_type_name(event->type));
    set_number(to, "Time", event->time_unix_ns);
    set_text(to, "DisplayMessage", message);
    set(to, "FailsTask", json_boolean(event->fails));
    if (event->fails)
        set_text(details, "fails_task", "true");
    text_fields((enum task_event_type)event->type, &field, &detail);
    if (event->type == TASK_EVENT_TERMINATED) {
        set_terminated(to, details, event);
    } else if (event->text[0] != '\0') {
        set_text(to, field, event->text);
        set_text(details, detail, event->text);
    }
    if (event->type == TASK_EVENT_RESTARTING)
        set_figure(to, details, "StartDelay", "start_delay", event->number);
    if (event->type == TASK_EVENT_KILLING)
        set_kill_timeout(to, details, event->number);
    set(to, "Details", details);
    return to;
}

static const char *run_state_name(unsigned state)
{
    static const char *const names[] = {
        [TASK_RUN_PENDING] = "pending",
        [TASK_RUN_RUNNING] = "running",
        [TASK_RUN_DEAD] = "dead",
    };

    check(state < COUNT_OF(names));
    return names[state];
}

static json_t *format_state(unsigned run_state, bool failed)
{
    json_t *state = json_object();

    set_text(state, "State", run_state_name(run_state));
    set(state, "Failed", json_boolean(failed));
    set_number(state, "Restarts", 0);
    set_time(state, "LastRestart", 0);
    set_time(state, "StartedAt", 0);
    set_time(state, "FinishedAt", 0);
    set(state, "Events", json_array());
    set_null(state, "TaskHandle");
    return state;
}

json_t *api_format_task_state(const struct task *task)
{
    json_t *state = format_state(task->run_state, task->failed != 0);

    set_number(state, "Restarts", task->restarts);
    set_time(state, "LastRestart", task->last_restart_unix_ns);
    set_time(state, "StartedAt", task->started_unix_ns);
    set_time(state, "FinishedAt", task->finished_unix_ns);
    for (size_t i = 0; i < task->events_count; i++)
        check(json_array_append_new(json_object_get(state, "Events"),
                                    api_format_event(&task->events[i])) == 0);
    return state;
}

/* --- allocs --- */

static json_t *format_task_states(const struct api_alloc_view *view)
{
    const struct alloc_assign *assign = &view->alloc->assign;
    json_t *states = json_object();

    for (size_t i = 0; i < assign->members_count; i++) {
        const struct alloc_member *member = &assign->members[i];

        if (member->kind != MEMBER_TASK)
            continue;
        set(states, member->name,
            view->tasks[i] != NULL ? api_format_task_state(view->tasks[i])
                                   : format_state(member->run_state, member->failed != 0));
    }
    return states;
}

/* The form of nomad 0.9 and later. */
static json_t *format_allocated(const struct alloc_spec *spec)
{
    json_t *tasks = json_object();

    for (size_t i = 0; i < spec->tasks_count; i++) {
        const struct spec_resources *resources = &spec->tasks[i].resources;

        set(tasks, spec->tasks[i].name,
            json_pack("{s:{s:I,s:n}, s:{s:I,s:I}, s:n, s:n}", "Cpu", "CpuShares",
                      (json_int_t)resources->cpu_mhz, "ReservedCores", "Memory", "MemoryMB",
                      (json_int_t)resources->memory_mb, "MemoryMaxMB",
                      (json_int_t)resources->memory_max_mb, "Networks", "Devices"));
    }
    return json_pack("{s:o, s:{s:I,s:n,s:n}}", "Tasks", tasks, "Shared", "DiskMB",
                     (json_int_t)spec->ephemeral_disk_mb, "Networks", "Ports");
}

/* The older form, which the command-line tool still reads. */
static json_t *format_resources(int64_t cpu, int64_t memory, int64_t memory_max, int64_t disk)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:n, s:n}", "CPU", (json_int_t)cpu, "MemoryMB",
                     (json_int_t)memory, "MemoryMaxMB", (json_int_t)memory_max, "DiskMB",
                     (json_int_t)disk, "IOPS", (json_int_t)0, "Networks", "Devices");
}

static void set_resources(json_t *to, const struct alloc_spec *spec)
{
    json_t *tasks = json_object();
    int64_t cpu = 0, memory = 0, memory_max = 0;

    for (size_t i = 0; i < spec->tasks_count; i++) {
        const struct spec_resources *part = &spec->tasks[i].resources;

        cpu += part->cpu_mhz;
        memory += part->memory_mb;
        memory_max += part->memory_max_mb;
        set(tasks, spec->tasks[i].name,
            format_resources(part->cpu_mhz, part->memory_mb, part->memory_max_mb, 0));
    }
    set(to, "Resources", format_resources(cpu, memory, memory_max, spec->ephemeral_disk_mb));
    set(to, "TaskResources", tasks);
    set(to, "AllocatedResources", format_allocated(spec));
}

/* What an entry of a list and the whole alloc have in common. */
static json_t *format_common(const struct api_alloc_view *view)
{
    const struct alloc *alloc = view->alloc;
    const struct alloc_assign *assign = &alloc->assign;
    const char *description;
    char name[SPEC_ALLOC_NAME_SIZE];
    json_t *to = json_object();

    (void)policy_client_status(alloc, &description); /* the record has the status itself */
    spec_alloc_name(name, assign->job_id, assign->group, assign->index);
    set_text(to, "ID", view->id);
    set_text(to, "EvalID", view->spec != NULL ? view->spec->eval_id : "");
    set_text(to, "Name", name);
    set_text(to, "Namespace", assign->namespace);
    set_text(to, "NodeID", view->node_id);
    set_text(to, "NodeName", view->node_name);
    set_text(to, "JobID", assign->job_id);
    set_text(to, "TaskGroup", assign->group);
    set_text(to, "DesiredStatus", alloc->stop_wanted ? "stop" : "run");
    set_text(to, "DesiredDescription", alloc->desired_description);
    set_text(to, "ClientStatus", client_status_name((enum client_status)alloc->client_status));
    set_text(to, "ClientDescription", description);
    set_null(to, "DeploymentStatus");
    set_text(to, "FollowupEvalID", "");
    set_null(to, "RescheduleTracker");
    set_null(to, "PreemptedAllocations");
    set_text(to, "PreemptedByAllocation", "");
    set_number(to, "CreateIndex", (int64_t)view->create_index);
    set_number(to, "ModifyIndex", (int64_t)(view->create_index + alloc->status_revision));
    set_number(to, "CreateTime", assign->create_unix_ns);
    set_number(to, "ModifyTime",
               alloc->modify_unix_ns > 0 ? alloc->modify_unix_ns : assign->create_unix_ns);
    return to;
}

json_t *api_format_alloc_stub(const struct api_alloc_view *view)
{
    json_t *to = format_common(view);

    set_text(to, "JobType", view->job_type);
    set_number(to, "JobVersion", (int64_t)view->alloc->assign.job_version);
    set(to, "TaskStates", view->task_states ? format_task_states(view) : json_null());
    if (view->resources && view->spec != NULL)
        set(to, "AllocatedResources", format_allocated(view->spec));
    return to;
}

/* Why the only node was chosen. */
static json_t *format_metrics(void)
{
    return json_pack("{s:i, s:i, s:n, s:n, s:n, s:i, s:n, s:n, s:n, s:n, s:i, s:i, s:n}",
                     "NodesEvaluated", 1, "NodesFiltered", 0, "NodesAvailable", "ClassFiltered",
                     "ConstraintFiltered", "NodesExhausted", 0, "ClassExhausted",
                     "DimensionExhausted", "QuotaExhausted", "ResourcesExhausted", "AllocationTime",
                     0, "CoalescedFailures", 0, "ScoreMetaData");
}

/* A job of which nothing is left but what the alloc's record says. */
static json_t *format_record_job(const struct api_alloc_view *view)
{
    const struct alloc_assign *assign = &view->alloc->assign;
    json_t *tasks = json_array();

    for (size_t i = 0; i < assign->members_count; i++) {
        if (assign->members[i].kind == MEMBER_TASK)
            check(json_array_append_new(tasks,
                                        json_pack("{s:s}", "Name", assign->members[i].name)) == 0);
    }
    return json_pack("{s:s, s:s, s:s, s:s, s:I, s:[{s:s, s:o}]}", "ID", assign->job_id, "Name",
                     assign->job_id, "Namespace", assign->namespace, "Type", view->job_type,
                     "Version", (json_int_t)assign->job_version, "TaskGroups", "Name",
                     assign->group, "Tasks", tasks);
}

static json_t *job_of(const struct api_alloc_view *view)
{
    if (view->job != NULL)
        return json_deep_copy(view->job);
    return view->spec != NULL ? api_format_spec_job(view->spec) : format_record_job(view);
}

json_t *api_format_alloc(const struct api_alloc_view *view)
{
    json_t *to = format_common(view);

    set(to, "Job", job_of(view));
    set(to, "TaskStates", format_task_states(view));
    if (view->spec != NULL)
        set_resources(to, view->spec);
    set_null(to, "Services");
    set(to, "Metrics", format_metrics());
    set(to, "DesiredTransition", json_pack("{s:n, s:n}", "Migrate", "Reschedule"));
    set_text(to, "DeploymentID", "");
    set_text(to, "PreviousAllocation", view->alloc->assign.previous);
    set_text(to, "NextAllocation", "");
    set_null(to, "NetworkStatus");
    set_number(to, "AllocModifyIndex", (int64_t)view->create_index);
    return to;
}

/* --- usage --- */

void api_usage_add(struct api_usage *sum, const struct api_usage *part)
{
    struct cgroup_stats *to = &sum->stats;
    const struct cgroup_stats *from = &part->stats;

    to->memory_rss_bytes += from->memory_rss_bytes;
    to->memory_cache_bytes += from->memory_cache_bytes;
    to->memory_swap_bytes += from->memory_swap_bytes;
    to->memory_usage_bytes += from->memory_usage_bytes;
    to->memory_usage_bytes_max += from->memory_usage_bytes_max;
    to->cpu_user_us += from->cpu_user_us;
    to->cpu_system_us += from->cpu_system_us;
    to->throttled_periods += from->throttled_periods;
    to->throttled_us += from->throttled_us;
    to->processes += from->processes;
    sum->cpu_percent += part->cpu_percent;
    if (part->unix_ns > sum->unix_ns)
        sum->unix_ns = part->unix_ns;
}

json_t *api_format_usage(const struct api_usage *usage, uint32_t cpu_mhz)
{
    const struct cgroup_stats *stats = &usage->stats;
    uint64_t cpu_us = stats->cpu_user_us + stats->cpu_system_us;
    double user_share = cpu_us > 0 ? (double)stats->cpu_user_us / (double)cpu_us : 0;
    json_t *memory = json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:[sss]}", "RSS", (json_int_t)stats->memory_rss_bytes,
        "Cache", (json_int_t)stats->memory_cache_bytes, "Swap",
        (json_int_t)stats->memory_swap_bytes, "Usage", (json_int_t)stats->memory_usage_bytes,
        "MaxUsage", (json_int_t)stats->memory_usage_bytes_max, "KernelUsage", (json_int_t)0,
        "KernelMaxUsage", (json_int_t)0, "Measured", "RSS", "Swap", "Usage");
    /* Modes are percentages like the whole, parted as the time since the start is. */
    json_t *cpu =
        json_pack("{s:f, s:f, s:f, s:I, s:I, s:f, s:[sss]}", "SystemMode",
                  usage->cpu_percent * (1 - user_share), "UserMode",
                  usage->cpu_percent * user_share, "TotalTicks", usage->cpu_percent / 100 * cpu_mhz,
                  "ThrottledPeriods", (json_int_t)stats->throttled_periods, "ThrottledTime",
                  (json_int_t)(stats->throttled_us * 1000), "Percent", usage->cpu_percent,
                  "Measured", "System Mode", "User Mode", "Percent");

    return json_pack("{s:o, s:o, s:[]}", "MemoryStats", memory, "CpuStats", cpu, "DeviceStats");
}

/* --- files --- */

void api_mode(char to[API_MODE_SIZE], uint32_t mode)
{
    static const struct {
        uint32_t type;
        const char *letters;
    } types[] = {
        {S_IFDIR, "d"},  {S_IFLNK, "L"}, {S_IFIFO, "p"},
        {S_IFSOCK, "S"}, {S_IFBLK, "D"}, {S_IFCHR, "Dc"},
    };

    (void)text_copy(to, API_MODE_SIZE, ""); /* at most 5 letters and 9 bits follow */
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        if ((mode & S_IFMT) == types[i].type)
            (void)text_append(to, API_MODE_SIZE, types[i].letters);
    }
    if ((mode & S_ISUID) != 0)
        (void)text_append(to, API_MODE_SIZE, "u");
    if ((mode & S_ISGID) != 0)
        (void)text_append(to, API_MODE_SIZE, "g");
    if ((mode & S_ISVTX) != 0)
        (void)text_append(to, API_MODE_SIZE, "t");
    if (to[0] == '\0')
        (void)text_append(to, API_MODE_SIZE, "-");
    for (int bit = 8; bit >= 0; bit--) {
        char letter[2] = {(mode >> bit & 1) != 0 ? "xwr"[bit % 3] : '-', '\0'};
        (void)text_append(to, API_MODE_SIZE, letter);
    }
}
