/*
 * Tasks and allocs as Nomad's JSON.
 *
 * Follows nomad v1.1.2 api/tasks.go, api/allocations.go and nomad/structs (TaskEvent, whose old
 * fields repeat what is in Details).
 */
#include "agent/api/format/format.h"

#include "fsm/policy.h"
#include "hooks/hooks.h"
#include "spec/names.h"

#include <sys/stat.h>

/* --- task events --- */

/* Where the text of each type goes: its old field and its key in Details. */
static void text_fields(enum task_event_type type, const char **ret_field, const char **ret_detail)
{
    static const struct {
        enum task_event_type type;
        const char *field, *detail;
    } rows[] = {
        {TASK_EVENT_TERMINATED, "Message", "exit_message"},
        {TASK_EVENT_SETUP_FAILURE, "SetupError", "setup_error"},
        {TASK_EVENT_FAILED_VALIDATION, "ValidationError", "validation_error"},
        {TASK_EVENT_DRIVER_FAILURE, "DriverError", "driver_error"},
        {TASK_EVENT_DRIVER, "DriverMessage", "driver_message"},
        {TASK_EVENT_DOWNLOAD_FAILED, "DownloadError", "download_error"},
        {TASK_EVENT_RESTARTING, "RestartReason", "restart_reason"},
        {TASK_EVENT_NOT_RESTARTING, "RestartReason", "restart_reason"},
        {TASK_EVENT_RESTART_SIGNALED, "RestartReason", "restart_reason"},
        {TASK_EVENT_KILLING, "KillReason", "kill_reason"},
        {TASK_EVENT_KILLED, "KillError", "kill_error"},
        {TASK_EVENT_SIGNALING, "", "signal"}, /* in no old field */
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

static int64_t kill_timeout_of(const struct task_event *event)
{
    return event->type == TASK_EVENT_KILLING && event->number > 0 ? event->number : 0;
}

/* The old fields: one for each text and number that some type has, empty in all others. */
static void put_old_fields(struct writer *to, const struct task_event *event, const char *field)
{
    static const char *const texts[] = {
        "Message",    "RestartReason",    "SetupError",    "DriverError",     "DriverMessage",
        "KillReason", "KillError",        "DownloadError", "ValidationError", "FailedSibling",
        "VaultError", "TaskSignalReason", "TaskSignal",    "GenericSource",
    };
    bool ended = event->type == TASK_EVENT_TERMINATED;

    for (size_t i = 0; i < COUNT_OF(texts); i++)
        put_text(to, texts[i], text_equal(texts[i], field) ? event->text : "");
    put_number(to, "ExitCode", ended ? event->number : 0);
    put_number(to, "Signal", ended ? event->signal : 0);
    put_number(to, "KillTimeout", kill_timeout_of(event));
    put_number(to, "StartDelay", event->type == TASK_EVENT_RESTARTING ? event->number : 0);
    put_number(to, "DiskLimit", 0);
    put_number(to, "DiskSize", 0);
}

/* In it all is text. */
static void put_details(struct writer *to, const struct task_event *event, const char *detail)
{
    char timeout[40];

    put_object(to, "Details");
    if (event->fails)
        put_text(to, "fails_task", "true");
    if (event->type == TASK_EVENT_TERMINATED) {
        put_number_text(to, "exit_code", event->number);
        put_number_text(to, "signal", event->signal);
        put_text(to, "oom_killed", event->oom_killed ? "true" : "false");
    }
    if (event->text[0] != '\0' || event->type == TASK_EVENT_RESTARTING)
        put_text(to, detail, event->text); /* "": a user asked, and it is there all the same */
    if (event->type == TASK_EVENT_RESTARTING)
        put_number_text(to, "start_delay", event->number);
    if (kill_timeout_of(event) > 0) {
        text_from_duration_ns(timeout, sizeof(timeout), kill_timeout_of(event));
        put_text(to, "kill_timeout", timeout);
    }
    put_end(to);
}

void api_format_event(struct writer *to, const struct task_event *event)
{
    const char *field, *detail;
    char message[2 * TASK_EVENT_TEXT_SIZE];

    text_fields((enum task_event_type)event->type, &field, &detail);
    task_event_message(event, message, sizeof(message));
    put_object(to, NULL);
    put_old_fields(to, event, field);
    put_text(to, "Type", task_event_type_name(event->type));
    put_number(to, "Time", event->time_unix_ns);
    put_text(to, "DisplayMessage", message);
    put_bool(to, "FailsTask", event->fails);
    put_details(to, event, detail);
    put_end(to);
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

/* What ends before it was seen alive has not run for less than no time. */
static int64_t finished_ns(const struct task *task)
{
    bool before = task->finished_unix_ns != 0 && task->finished_unix_ns < task->started_unix_ns;

    return before ? task->started_unix_ns : task->finished_unix_ns;
}

void api_format_task_state(struct writer *to, const char *name, const struct task *task)
{
    put_object(to, name);
    put_text(to, "State", run_state_name(task->run_state));
    put_bool(to, "Failed", task->failed != 0);
    put_number(to, "Restarts", task->restarts);
    put_time(to, "LastRestart", task->last_restart_unix_ns);
    put_time(to, "StartedAt", task->started_unix_ns);
    put_time(to, "FinishedAt", finished_ns(task));
    put_array(to, "Events");
    for (size_t i = 0; i < task->events_count; i++)
        api_format_event(to, &task->events[i]);
    put_end(to);
    put_null(to, "TaskHandle");
    put_end(to);
}

/* --- allocs --- */

static void put_task_states(struct writer *to, const struct api_alloc_view *view)
{
    const struct alloc_assign *assign = &view->alloc->assign;

    put_object(to, "TaskStates");
    for (size_t i = 0; i < assign->members_count; i++) {
        const struct alloc_member *member = &assign->members[i];
        struct task lost = {.run_state = member->run_state, .failed = member->failed};

        if (member->kind == MEMBER_TASK)
            api_format_task_state(to, member->name,
                                  view->tasks[i] != NULL ? view->tasks[i] : &lost);
    }
    put_end(to);
}

/* --- ports --- */

static void put_port(struct writer *to, const struct spec_port *port)
{
    put_object(to, NULL);
    put_text(to, "Label", port->label);
    put_number(to, "Value", port->value);
    put_number(to, "To", port->to);
    put_text(to, "HostNetwork", port->host_network);
    put_bool(to, "IgnoreCollision", false);
    put_end(to);
}

static void put_ports_of(struct writer *to, const char *name, const struct alloc_spec *spec,
                         const char *task, bool are_static)
{
    put_array(to, name);
    for (size_t i = 0; i < spec->ports.count; i++) {
        const struct spec_port *port = &spec->ports.items[i];

        if (text_equal(port->task, task) && port->is_static == are_static)
            put_port(to, port);
    }
    put_end(to);
}

/* The network of TASK, "" is that of the group, as a list of one; null if it has none. */
static void put_network(struct writer *to, const struct alloc_spec *spec, const char *task,
                        const char *mode)
{
    const char *ip = "";

    for (size_t i = 0; i < spec->ports.count && *ip == '\0'; i++) {
        if (text_equal(spec->ports.items[i].task, task))
            ip = spec->ports.items[i].host_ip;
    }
    if (*ip == '\0' && !(*task == '\0' && spec->has_network)) {
        put_null(to, "Networks");
        return;
    }
    put_array(to, "Networks");
    put_object(to, NULL);
    put_text(to, "Mode", mode);
    put_text(to, "Device", "");
    put_text(to, "CIDR", "");
    put_text(to, "IP", ip);
    put_number(to, "MBits", 0);
    put_null(to, "DNS");
    put_ports_of(to, "ReservedPorts", spec, task, true);
    put_ports_of(to, "DynamicPorts", spec, task, false);
    put_end(to);
    put_end(to);
}

/* Those of the group, null if it has none. */
static void put_ports(struct writer *to, const struct alloc_spec *spec)
{
    bool any = false;

    for (size_t i = 0; i < spec->ports.count; i++) {
        const struct spec_port *port = &spec->ports.items[i];

        if (*port->task != '\0')
            continue;
        if (!any)
            put_array(to, "Ports");
        any = true;
        put_object(to, NULL);
        put_text(to, "Label", port->label);
        put_number(to, "Value", port->value);
        put_number(to, "To", port->to);
        put_text(to, "HostIP", port->host_ip);
        put_bool(to, "IgnoreCollision", false);
        put_end(to);
    }
    if (any)
        put_end(to);
    else
        put_null(to, "Ports");
}

/* --- resources --- */

static void put_cores(struct writer *to, const struct spec_resources *resources)
{
    if (resources->cores == 0) {
        put_null(to, "ReservedCores");
        return;
    }
    put_array(to, "ReservedCores");
    for (uint32_t i = 0; i < resources->cores; i++)
        put_number(to, NULL, resources->core_ids[i]);
    put_end(to);
}

/* The form of nomad 0.9 and later. */
static void put_allocated(struct writer *to, const struct alloc_spec *spec)
{
    put_object(to, "AllocatedResources");
    put_object(to, "Tasks");
    for (size_t i = 0; i < spec->tasks_count; i++) {
        const struct spec_resources *resources = &spec->tasks[i].resources;

        put_object(to, spec->tasks[i].name);
        put_object(to, "Cpu");
        put_number(to, "CpuShares", resources->cpu_mhz);
        put_cores(to, resources);
        put_end(to);
        put_object(to, "Memory");
        put_number(to, "MemoryMB", resources->memory_mb);
        put_number(to, "MemoryMaxMB", resources->memory_max_mb);
        put_end(to);
        put_network(to, spec, spec->tasks[i].name, "");
        const char *given = spec->tasks[i].devices_json;
        json_t *devices = given == NULL ? NULL : json_loads(given, 0, NULL);
        put_json_new(to, "Devices", devices != NULL ? devices : json_null());
        put_end(to);
    }
    put_end(to);
    put_object(to, "Shared");
    put_number(to, "DiskMB", spec->ephemeral_disk_mb);
    put_network(to, spec, "", spec->network_mode);
    put_ports(to, spec);
    put_end(to);
    put_end(to);
}

/* The older form, which the command-line tool still reads; the network is that of TASK. */
static void put_old_resources(struct writer *to, const char *name, const struct alloc_spec *spec,
                              const struct spec_resources *resources, int64_t disk,
                              const char *task)
{
    put_object(to, name);
    put_number(to, "CPU", resources->cpu_mhz);
    put_number(to, "Cores", resources->cores);
    put_number(to, "MemoryMB", resources->memory_mb);
    put_number(to, "MemoryMaxMB", resources->memory_max_mb);
    put_number(to, "DiskMB", disk);
    put_number(to, "IOPS", 0);
    put_network(to, spec, task, *task == '\0' ? spec->network_mode : "");
    put_null(to, "Devices");
    put_null(to, "NUMA");
    put_number(to, "SecretsMB", 0);
    put_end(to);
}

static void add_resources(struct spec_resources *sum, const struct spec_resources *part)
{
    bool unlimited =
        sum->memory_max_mb == SPEC_MEMORY_UNLIMITED || part->memory_max_mb == SPEC_MEMORY_UNLIMITED;

    sum->cpu_mhz += part->cpu_mhz;
    sum->cores += part->cores;
    sum->memory_mb += part->memory_mb;
    sum->memory_max_mb =
        unlimited ? SPEC_MEMORY_UNLIMITED : sum->memory_max_mb + part->memory_max_mb;
}

static void put_resources(struct writer *to, const struct alloc_spec *spec)
{
    const struct spec_resources none = {0};
    struct spec_resources sum = {0};

    for (size_t i = 0; i < spec->tasks_count; i++)
        add_resources(&sum, &spec->tasks[i].resources);
    put_old_resources(to, "Resources", spec, &sum, spec->ephemeral_disk_mb, "");
    put_old_resources(to, "SharedResources", spec, &none, spec->ephemeral_disk_mb, "");
    put_object(to, "TaskResources");
    for (size_t i = 0; i < spec->tasks_count; i++) {
        const struct task_spec *task = &spec->tasks[i];

        put_old_resources(to, task->name, spec, &task->resources, 0, task->name);
    }
    put_end(to);
    put_allocated(to, spec);
}

/* All times before, on this very node. */
static void put_rescheduled(struct writer *to, const struct api_alloc_view *view)
{
    if (view->spec == NULL || view->spec->rescheduled_count == 0) {
        put_null(to, "RescheduleTracker");
        return;
    }
    put_object(to, "RescheduleTracker");
    put_array(to, "Events");
    for (size_t i = 0; i < view->spec->rescheduled_count; i++) {
        const struct spec_rescheduled *one = &view->spec->rescheduled[i];

        put_object(to, NULL);
        put_number(to, "RescheduleTime", one->unix_ns);
        put_text(to, "PrevAllocID", one->alloc_id);
        put_text(to, "PrevNodeID", view->node_id);
        put_number(to, "Delay", (int64_t)one->delay_ns);
        put_end(to);
    }
    put_end(to);
    put_text(to, "LastReschedule", "ok"); /* here it is */
    put_end(to);
}

/* Of the newest version of what it runs by. */
static uint64_t version_index(const struct api_alloc_view *view)
{
    return view->update_index != 0 ? view->update_index : view->create_index;
}

/* What its deployment waits for, once it is known; and that it is a canary. */
static void put_health(struct writer *to, const struct api_alloc_view *view)
{
    const struct alloc *alloc = view->alloc;

    if (alloc->health == HEALTH_UNKNOWN && !view->canary) {
        put_null(to, "DeploymentStatus");
        return;
    }
    put_object(to, "DeploymentStatus");
    if (alloc->health == HEALTH_UNKNOWN)
        put_null(to, "Healthy");
    else
        put_bool(to, "Healthy", alloc->health == HEALTH_HEALTHY);
    put_time(to, "Timestamp", alloc->health_unix_ns);
    put_bool(to, "Canary", view->canary);
    put_number(to, "ModifyIndex", (int64_t)alloc->status_revision);
    put_end(to);
}

static void put_client_status(struct writer *to, const struct api_alloc_view *view)
{
    const char *description;

    (void)policy_client_status(view->alloc, &description); /* the record has the status itself */
    put_text(to, "ClientStatus",
             client_status_name((enum client_status)view->alloc->client_status));
    put_text(to, "ClientDescription", view->waits[0] != '\0' ? view->waits : description);
}

/* What an entry of a list and the whole alloc have in common. */
static void put_common(struct writer *to, const struct api_alloc_view *view)
{
    const struct alloc *alloc = view->alloc;
    const struct alloc_assign *assign = &alloc->assign;
    char name[SPEC_ALLOC_NAME_SIZE];

    spec_alloc_name(name, assign->job_id, assign->group, assign->index);
    put_text(to, "ID", view->id);
    put_text(to, "EvalID", view->eval_id);
    put_text(to, "Name", name);
    put_text(to, "Namespace", assign->namespace);
    put_text(to, "NodeID", view->node_id);
    put_text(to, "NodeName", view->node_name);
    put_text(to, "JobID", assign->job_id);
    put_text(to, "TaskGroup", assign->group);
    put_text(to, "DesiredStatus", alloc->stop_wanted ? "stop" : "run");
    put_text(to, "DesiredDescription", alloc->desired_description);
    put_client_status(to, view);
    put_health(to, view);
    put_text(to, "FollowupEvalID", view->follow_up_id);
    put_text(to, "NextAllocation", view->next_id);
    put_rescheduled(to, view);
    put_null(to, "PreemptedAllocations");
    put_text(to, "PreemptedByAllocation", "");
    put_number(to, "CreateIndex", (int64_t)view->create_index);
    put_number(to, "ModifyIndex", (int64_t)(version_index(view) + alloc->status_revision));
    put_number(to, "CreateTime", assign->create_unix_ns);
    put_number(to, "ModifyTime",
               alloc->modify_unix_ns > 0 ? alloc->modify_unix_ns : assign->create_unix_ns);
}

void api_format_alloc_stub(struct writer *to, const struct api_alloc_view *view)
{
    put_object(to, NULL);
    put_common(to, view);
    put_text(to, "JobType", view->job_type);
    put_number(to, "JobVersion", (int64_t)view->alloc->assign.job_version);
    if (view->task_states)
        put_task_states(to, view);
    else
        put_null(to, "TaskStates");
    if (view->resources && view->spec != NULL)
        put_allocated(to, view->spec);
    put_end(to);
}

/* Why the only node was chosen. */
static void put_metrics(struct writer *to, const struct api_alloc_view *view)
{
    static const char *const none[] = {"ClassExhausted", "DimensionExhausted", "QuotaExhausted",
                                       "ResourcesExhausted"};

    put_object(to, "Metrics");
    put_number(to, "NodesEvaluated", 1);
    put_number(to, "NodesFiltered", 0);
    put_number(to, "NodesInPool", 1);
    put_text(to, "NodePool", view->pool);
    put_object(to, "NodesAvailable");
    put_number(to, view->datacenter, 1);
    put_end(to);
    put_null(to, "ClassFiltered");
    put_null(to, "ConstraintFiltered");
    put_number(to, "NodesExhausted", 0);
    for (size_t i = 0; i < COUNT_OF(none); i++)
        put_null(to, none[i]);
    put_number(to, "AllocationTime", 0);
    put_number(to, "CoalescedFailures", 0);
    put_null(to, "ScoreMetaData");
    put_end(to);
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

static void put_job(struct writer *to, const struct api_alloc_view *view)
{
    if (view->job != NULL)
        api_put_job(to, "Job", view->job);
    else
        put_json_new(to, "Job",
                     view->spec != NULL ? api_format_spec_job(view->spec)
                                        : format_record_job(view));
}

/* As a task that runs has found it, or else one that did: after a reboot it may be another. */
static void put_network_status(struct writer *to, const struct api_alloc_view *view)
{
    const struct alloc_assign *assign = &view->alloc->assign;
    json_t *found = NULL;

    for (size_t i = 0; i < assign->members_count; i++) {
        const struct task *task = view->tasks[i];
        bool is_better = task != NULL && (found == NULL || task->run_state != TASK_RUN_DEAD);
        json_t *status =
            is_better ? hooks_network_status(task->results, task->results_bytes) : NULL;

        if (status == NULL)
            continue;
        json_decref(found);
        found = status;
    }
    if (found != NULL) {
        put_json_new(to, "NetworkStatus", found);
        return;
    }
    put_object(to, "NetworkStatus"); /* in the host's network there is no other */
    put_text(to, "InterfaceName", "");
    put_text(to, "Address", "");
    put_text(to, "AddressIPv6", "");
    put_null(to, "DNS");
    put_end(to);
}

void api_format_alloc_status(struct writer *to, const struct api_alloc_view *view)
{
    put_object(to, NULL);
    put_text(to, "ID", view->id);
    put_client_status(to, view);
    put_task_states(to, view);
    put_health(to, view);
    put_network_status(to, view);
    put_end(to);
}

void api_format_alloc(struct writer *to, const struct api_alloc_view *view)
{
    put_object(to, NULL);
    put_common(to, view);
    put_job(to, view);
    put_task_states(to, view);
    if (view->spec != NULL)
        put_resources(to, view->spec);
    put_null(to, "Services");
    put_metrics(to, view);
    put_object(to, "DesiredTransition");
    put_null(to, "Migrate");
    put_null(to, "Reschedule");
    put_end(to);
    put_text(to, "DeploymentID", view->spec != NULL ? view->spec->deployment_id : "");
    put_text(to, "PreviousAllocation", view->previous_id);
    put_network_status(to, view);
    put_number(to, "AllocModifyIndex", (int64_t)version_index(view));
    put_end(to);
}

/* --- usage --- */

void api_usage_add(struct api_usage *sum, const struct api_usage *part)
{
    struct cgroup_stats *to = &sum->stats;
    const struct cgroup_stats *from = &part->stats;

    to->memory_rss_bytes += from->memory_rss_bytes;
    to->memory_cache_bytes += from->memory_cache_bytes;
    to->memory_swap_bytes += from->memory_swap_bytes;
    to->memory_mapped_bytes += from->memory_mapped_bytes;
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
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:[sss]}", "RSS",
        (json_int_t)stats->memory_rss_bytes, "Cache", (json_int_t)stats->memory_cache_bytes, "Swap",
        (json_int_t)stats->memory_swap_bytes, "MappedFile", (json_int_t)stats->memory_mapped_bytes,
        "Usage", (json_int_t)stats->memory_usage_bytes, "MaxUsage",
        (json_int_t)stats->memory_usage_bytes_max, "KernelUsage", (json_int_t)0, "KernelMaxUsage",
        (json_int_t)0, "Measured", "RSS", "Swap", "Usage");
    /* Modes are percentages like the whole, parted as the time since the start is. */
    json_t *cpu =
        json_pack("{s:f, s:f, s:f, s:I, s:I, s:f, s:[sss]}", "SystemMode",
                  usage->cpu_percent * (1 - user_share), "UserMode",
                  usage->cpu_percent * user_share, "TotalTicks", usage->cpu_percent / 100 * cpu_mhz,
                  "ThrottledPeriods", (json_int_t)stats->throttled_periods, "ThrottledTime",
                  (json_int_t)(stats->throttled_us * 1000), "Percent", usage->cpu_percent,
                  "Measured", "System Mode", "User Mode", "Percent");

    return json_pack("{s:o, s:o, s:n}", "MemoryStats", memory, "CpuStats", cpu, "DeviceStats");
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
