/*
 * Jobs, evaluations and the node as Nomad's JSON.
 *
 * Follows nomad v1.1.2 api/jobs.go, api/evaluations.go, api/nodes.go.  The command-line tool
 * follows pointers in these without looking (Resources, Reserved, JobSummary): they are never null.
 */
#include "agent/api/format.h"

#include "spec/job.h"

#include <stdlib.h>
#include <string.h>

static void set(json_t *object, const char *name, json_t *value)
{
    check(json_object_set_new(object, name, value) == 0);
}

static void set_text(json_t *object, const char *name, const char *text)
{
    set(object, name, api_text(text));
}

static void set_number(json_t *object, const char *name, uint64_t number)
{
    set(object, name, json_integer((json_int_t)number));
}

/* Field NAME of JOB as it is, or OTHERWISE (moved). */
static void carry(json_t *to, const json_t *job, const char *name, json_t *otherwise)
{
    json_t *value = json_object_get(job, name);

    set(to, name,
        json_is_null(value) || value == NULL ? json_incref(otherwise) : json_incref(value));
    json_decref(otherwise);
}

/* --- jobs --- */

json_t *api_format_job(const struct alone_job *job, const char *status)
{
    json_t *to = json_copy((json_t *)job->job); /* its fields are shared, not changed */

    check(to != NULL);
    set_text(to, "ID", job->id);
    set_text(to, "Namespace", job->namespace);
    carry(to, job->job, "Name", api_text(job->id));
    carry(to, job->job, "Region", api_text("global"));
    carry(to, job->job, "Type", api_text("service"));
    carry(to, job->job, "NodePool", api_text("default"));
    carry(to, job->job, "Priority", json_integer(50));
    set(to, "Stop", json_boolean(job->stop));
    set_text(to, "Status", status);
    set_text(to, "StatusDescription", "");
    carry(to, job->job, "Stable", json_false());
    set_number(to, "Version", job->version);
    set(to, "SubmitTime", json_integer((json_int_t)job->submit_unix_ns));
    set_number(to, "CreateIndex", job->create_index);
    set_number(to, "ModifyIndex", job->modify_index);
    set_number(to, "JobModifyIndex", job->job_modify_index);
    (void)json_object_del(to, "cairnQueued"); /* our own, and mostly missing, as are the others */
    (void)json_object_del(to, "cairnPurge");
    (void)json_object_del(to, "cairnDeployment");
    (void)json_object_del(to, "cairnDeployments");
    (void)json_object_del(to, "cairnVersions");
    (void)json_object_del(to, "cairnScaling");
    (void)json_object_del(to, "cairnLaunched");
    char *warnings = jobspec_warnings(job->job);
    set_text(to, "Warnings", warnings);
    free(warnings);
    return to;
}

static json_t *format_spec_task(const struct task_spec *task)
{
    static const char *const hooks[] = {
        [LIFECYCLE_PRESTART] = "prestart",
        [LIFECYCLE_POSTSTART] = "poststart",
        [LIFECYCLE_POSTSTOP] = "poststop",
    };
    json_t *config = json_loads(task->config_json, 0, NULL);
    json_t *to = json_object();

    set_text(to, "Name", task->name);
    set_text(to, "Driver", task->driver);
    set_text(to, "User", task->user);
    set(to, "Config", config != NULL ? config : json_null());
    set(to, "Env", api_pairs(&task->env));
    set(to, "Meta", api_pairs(&task->meta));
    set(to, "Leader", json_boolean(task->leader));
    set_text(to, "KillSignal", task->kill_signal);
    set_number(to, "KillTimeout", task->kill_timeout_ms * 1000000);
    set_number(to, "ShutdownDelay", task->shutdown_delay_ms * 1000000);
    set(to, "Resources",
        json_pack("{s:I, s:I, s:I}", "CPU", (json_int_t)task->resources.cpu_mhz, "MemoryMB",
                  (json_int_t)task->resources.memory_mb, "MemoryMaxMB",
                  (json_int_t)task->resources.memory_max_mb));
    set(to, "LogConfig",
        json_pack("{s:I, s:I}", "MaxFiles", (json_int_t)task->logs.max_files, "MaxFileSizeMB",
                  (json_int_t)task->logs.max_file_size_mb));
    if (task->lifecycle != LIFECYCLE_MAIN)
        set(to, "Lifecycle",
            json_pack("{s:s, s:b}", "Hook", hooks[task->lifecycle], "Sidecar", task->sidecar));
    return to;
}

json_t *api_format_spec_job(const struct alloc_spec *spec)
{
    json_t *tasks = json_array(), *to = json_object();

    for (size_t i = 0; i < spec->tasks_count; i++)
        check(json_array_append_new(tasks, format_spec_task(&spec->tasks[i])) == 0);
    set_text(to, "ID", spec->job_id);
    set_text(to, "Name", spec->job_name);
    set_text(to, "ParentID", spec->job_parent_id);
    set_text(to, "Namespace", spec->namespace);
    set_text(to, "Region", spec->region);
    set_text(to, "Type", spec->job_type);
    set_number(to, "Version", spec->job_version);
    set(to, "Datacenters", json_pack("[o]", api_text(spec->datacenter)));
    json_t *group =
        json_pack("{s:o, s:{s:I, s:b, s:b}, s:I, s:o}", "Name", api_text(spec->group),
                  "EphemeralDisk", "SizeMB", (json_int_t)spec->ephemeral_disk_mb, "Sticky",
                  spec->disk_sticky, "Migrate", spec->disk_migrate, "ShutdownDelay",
                  (json_int_t)(spec->group_shutdown_delay_ms * 1000000), "Tasks", tasks);
    if (spec->max_run_ms != 0)
        set_number(group, "MaxRunDuration", spec->max_run_ms * 1000000);
    set(to, "TaskGroups", json_pack("[o]", group));
    return to;
}

/* Field NAME of JOB as it is; false if there is none. */
static bool put_own(struct writer *to, const struct alone_job *job, const char *name)
{
    json_t *value = json_object_get(job->job, name);

    if (value == NULL || json_is_null(value))
        return false;
    put_json(to, name, value);
    return true;
}

static void put_own_text(struct writer *to, const struct alone_job *job, const char *name,
                         const char *otherwise)
{
    if (!put_own(to, job, name))
        put_text(to, name, otherwise);
}

void api_format_job_stub(struct writer *to, const struct alone_job *job, const char *status,
                         const struct api_job_counts *counts, size_t groups,
                         struct api_job_children children)
{
    put_object(to, NULL);
    put_text(to, "ID", job->id);
    put_own_text(to, job, "ParentID", "");
    put_own_text(to, job, "Name", job->id);
    put_text(to, "Namespace", job->namespace);
    if (!put_own(to, job, "Datacenters")) {
        put_array(to, "Datacenters");
        put_end(to);
    }
    put_own_text(to, job, "NodePool", "default");
    put_own_text(to, job, "Type", "service");
    if (!put_own(to, job, "Priority"))
        put_number(to, "Priority", 50);
    put_bool(to, "Periodic", jobspec_is_periodic(job->job));
    put_bool(to, "ParameterizedJob", jobspec_is_parameterized(job->job));
    put_bool(to, "Stop", job->stop);
    put_text(to, "Status", status);
    put_text(to, "StatusDescription", "");
    api_format_summary(to, "JobSummary", job, counts, groups, children);
    put_number(to, "CreateIndex", (int64_t)job->create_index);
    put_number(to, "ModifyIndex", (int64_t)job->modify_index);
    put_number(to, "JobModifyIndex", (int64_t)job->job_modify_index);
    put_number(to, "SubmitTime", job->submit_unix_ns);
    put_end(to);
}

void api_format_summary(struct writer *to, const char *name, const struct alone_job *job,
                        const struct api_job_counts *counts, size_t groups,
                        struct api_job_children children)
{
    put_object(to, name);
    put_text(to, "JobID", job->id);
    put_text(to, "Namespace", job->namespace);
    put_object(to, "Summary");
    for (size_t i = 0; i < groups; i++) {
        put_object(to, counts[i].group);
        put_number(to, "Queued", counts[i].queued);
        put_number(to, "Complete", counts[i].complete);
        put_number(to, "Failed", counts[i].failed);
        put_number(to, "Running", counts[i].running);
        put_number(to, "Starting", counts[i].starting);
        put_number(to, "Lost", 0);
        put_end(to);
    }
    put_end(to);
    put_object(to, "Children");
    put_number(to, "Pending", children.pending);
    put_number(to, "Running", children.running);
    put_number(to, "Dead", children.dead);
    put_end(to);
    put_number(to, "CreateIndex", (int64_t)job->create_index);
    put_number(to, "ModifyIndex", (int64_t)job->modify_index);
    put_end(to);
}

/* --- evaluations --- */

/* {NAME: 1} if IT, else null: what Nomad counts nodes by, and there is one. */
static json_t *count_of_one(bool it, const char *name)
{
    json_t *counts = it && name != NULL && name[0] != '\0' ? json_object() : json_null();

    if (json_is_object(counts))
        set(counts, name, json_integer(1));
    return counts;
}

/* What Nomad counts about one group that could not be placed. */
static json_t *format_failed(const json_t *failed, const struct constraint_node *node)
{
    const json_t *what = json_object_get(failed, "What");
    const char *why = json_string_value(json_object_get(failed, "Why"));
    bool exhausted = text_equal(why, "exhausted"), filtered = text_equal(why, "constraint");
    bool here = exhausted || filtered;
    json_t *available = here ? count_of_one(true, node->datacenter) : json_object(), *name;
    json_int_t count = json_integer_value(json_object_get(failed, "Count"));
    size_t i;

    json_array_foreach(here ? NULL : what, i, name)
        set(available, json_string_value(name), json_integer(0));
    return json_pack("{s:i, s:i, s:o, s:o, s:o, s:i, s:o, s:o, s:n, s:n, s:n, s:n, s:i, s:I}",
                     "NodesEvaluated", here, "NodesFiltered", filtered, "NodesAvailable", available,
                     "ClassFiltered", count_of_one(filtered, node->class), "ConstraintFiltered",
                     count_of_one(filtered, json_string_value(what)), "NodesExhausted", exhausted,
                     "ClassExhausted", count_of_one(exhausted, node->class), "DimensionExhausted",
                     count_of_one(exhausted, json_string_value(what)), "QuotaExhausted",
                     "ResourcesExhausted", "Scores", "ScoreMetaData", "AllocationTime", 0,
                     "CoalescedFailures", count - 1);
}

json_t *api_format_failed(const json_t *failed, const struct constraint_node *node)
{
    json_t *groups = json_object(), *one;
    size_t i;

    json_array_foreach(failed, i, one)
        set(groups, json_string_value(json_object_get(one, "Group")), format_failed(one, node));
    if (json_object_size(groups) > 0)
        return groups;
    json_decref(groups);
    return json_null();
}

static void set_failed(json_t *to, const struct alone_evaluation *evaluation,
                       const struct constraint_node *node)
{
    json_t *queued = json_object(), *failed;
    size_t i;

    json_array_foreach(evaluation->failed, i, failed)
        check(json_object_set(queued, json_string_value(json_object_get(failed, "Group")),
                              json_object_get(failed, "Count")) == 0);
    set(to, "FailedTGAllocs", api_format_failed(evaluation->failed, node));
    set(to, "QueuedAllocations", queued);
}

/* Why there is one that is not over, in Nomad's words. */
static const char *reason_of(const struct alone_evaluation *evaluation)
{
    return text_equal(evaluation->status, "pending")   ? "created for delayed rescheduling"
           : text_equal(evaluation->status, "blocked") ? "created to place remaining allocations"
                                                       : "";
}

json_t *api_format_evaluation(const struct alone_evaluation *evaluation, int64_t priority,
                              const struct constraint_node *node)
{
    static const char *const empty[] = {
        "NodeID",
        "NextEval",
        "PreviousEval",
    };
    json_t *to = json_object();
    char until[API_TIME_SIZE];

    api_time(until, evaluation->wait_until_unix_ns);
    set_text(to, "WaitUntil", until);
    set_text(to, "BlockedEval", evaluation->blocked_id);
    set_text(to, "DeploymentID", evaluation->deployment_id);
    set_failed(to, evaluation, node);

    for (size_t i = 0; i < COUNT_OF(empty); i++)
        set_text(to, empty[i], "");
    set_text(to, "ID", evaluation->id);
    set(to, "Priority", json_integer((json_int_t)priority));
    set_text(to, "Type", evaluation->type);
    set_text(to, "TriggeredBy", evaluation->triggered_by);
    set_text(to, "Namespace", evaluation->namespace);
    set_text(to, "JobID", evaluation->job_id);
    set_number(to, "JobModifyIndex", evaluation->index);
    set_text(to, "Status", evaluation->status);
    set_text(to, "StatusDescription", reason_of(evaluation));
    set_number(to, "Wait", 0);
    set_number(to, "CreateIndex", evaluation->index);
    set_number(to, "ModifyIndex", evaluation->index);
    set(to, "CreateTime", json_integer((json_int_t)evaluation->create_unix_ns));
    set(to, "ModifyTime", json_integer((json_int_t)evaluation->create_unix_ns));
    return to;
}

/* --- the node --- */

static json_t *format_drivers(const struct api_node_view *view)
{
    json_t *drivers = json_object();
    char since[API_TIME_SIZE], attribute[160];

    for (size_t i = 0; i < view->drivers_count; i++) {
        const struct driver_info *info = &view->drivers[i];
        json_t *attributes = json_object();

        api_time(since, info->since_unix_ns);
        (void)text_format(attribute, sizeof(attribute), "driver.%s", info->name); /* it fits */
        if (info->detected)
            set_text(attributes, attribute, "true");
        for (size_t a = 0; a < info->attributes_count; a++)
            set_text(attributes, info->attributes[a].name, info->attributes[a].value);
        set(drivers, info->name,
            json_pack("{s:o, s:b, s:b, s:o, s:s}", "Attributes", attributes, "Detected",
                      info->detected, "Healthy", info->healthy, "HealthDescription",
                      api_text(info->description), "UpdateTime", since));
    }
    return drivers;
}

/* As Nomad's clients tell of a volume. */
static json_t *volume_details(const json_t *event)
{
    json_t *error = json_object_get(event, "error");
    bool failed = json_string_value(error)[0] != '\0';
    json_t *details = json_pack("{s:O, s:s}", "volume_id", json_object_get(event, "volume"),
                                "success", failed ? "false" : "true");

    if (failed)
        check(json_object_set(details, "error", error) == 0);
    return details;
}

static json_t *time_of(const json_t *object, const char *name)
{
    char time[API_TIME_SIZE];

    api_time(time, json_integer_value(json_object_get(object, name)));
    return json_string(time);
}

/* What became of a driver, or of a volume. */
static json_t *seen_event(const json_t *event)
{
    json_t *driver = json_object_get(event, "driver");
    json_t *details = driver != NULL ? json_pack("{s:O}", "driver", driver) : volume_details(event);

    return json_pack("{s:O, s:s, s:o, s:o, s:i}", "Message", json_object_get(event, "message"),
                     "Subsystem", driver != NULL ? "Driver" : "Storage", "Details", details,
                     "Timestamp", time_of(event, "time"), "CreateIndex", 0);
}

static json_t *said_event(const json_t *event)
{
    return json_pack("{s:O, s:O, s:O, s:o, s:i}", "Message", json_object_get(event, "Message"),
                     "Subsystem", json_object_get(event, "Subsystem"), "Details",
                     json_object_get(event, "Details"), "Timestamp", time_of(event, "Time"),
                     "CreateIndex", 0);
}

/* What was seen and what an operator has said, in the order in which it was. */
static json_t *format_node_events(const struct api_node_view *view)
{
    const json_t *said = json_object_get(view->standing, "Events");
    size_t told = 0, count = json_array_size(said);
    json_t *to = json_array();
    const json_t *event;
    size_t i;

    json_array_foreach(view->events, i, event)
    {
        json_int_t time = json_integer_value(json_object_get(event, "time"));

        for (; told < count &&
               json_integer_value(json_object_get(json_array_get(said, told), "Time")) <= time;
             told++)
            check(json_array_append_new(to, said_event(json_array_get(said, told))) == 0);
        check(json_array_append_new(to, seen_event(event)) == 0);
    }
    for (; told < count; told++)
        check(json_array_append_new(to, said_event(json_array_get(said, told))) == 0);
    return to;
}

const char *api_eligibility(const json_t *standing)
{
    const char *eligibility = json_string_value(json_object_get(standing, "Eligibility"));

    return eligibility != NULL ? eligibility : "eligible";
}

static json_t *format_drain(const json_t *drain)
{
    if (!json_is_object(drain))
        return json_null();
    return json_pack("{s:O, s:O, s:o, s:o}", "Deadline", json_object_get(drain, "Deadline"),
                     "IgnoreSystemJobs", json_object_get(drain, "IgnoreSystemJobs"),
                     "ForceDeadline", time_of(drain, "ForceAt"), "StartedAt",
                     time_of(drain, "StartedAt"));
}

static json_t *format_last_drain(const json_t *last)
{
    if (!json_is_object(last))
        return json_null();
    return json_pack("{s:o, s:o, s:O, s:s, s:O}", "StartedAt", time_of(last, "StartedAt"),
                     "UpdatedAt", time_of(last, "UpdatedAt"), "Status",
                     json_object_get(last, "Status"), "AccessorID", "", "Meta",
                     json_object_get(last, "Meta"));
}

static json_int_t cpu_total(const struct host_facts *facts)
{
    return (json_int_t)facts->cpu_cores * facts->cpu_mhz;
}

static json_t *format_network(const char *device, const char *ip)
{
    json_t *cidr = json_sprintf(strchr(ip, ':') != NULL ? "%s/128" : "%s/32", ip);

    return json_pack("{s:s, s:o, s:o, s:o, s:I}", "Mode", "host", "Device", api_text(device),
                     "CIDR", cidr, "IP", api_text(ip), "MBits", (json_int_t)0);
}

/* Each address of the host network "default"; of a node that has none, what it is known by. */
static json_t *format_networks(const struct node *node)
{
    json_t *list = json_array();

    for (size_t i = 0; i < node->addresses_count; i++) {
        if (text_equal(node->addresses[i].network, "default"))
            check(json_array_append_new(
                      list, format_network(node->interfaces[i], node->addresses[i].ip)) == 0);
    }
    if (json_array_size(list) == 0)
        check(json_array_append_new(list, format_network(node->facts.network_interface,
                                                         node->facts.ip_address)) == 0);
    return list;
}

/* The ports that are given to nobody on the addresses of NETWORK. */
static const char *reserved_of(const struct api_node_view *view, const char *network)
{
    const struct config *config = view->config;

    for (size_t i = 0; i < config->host_networks_count; i++) {
        if (text_equal(config->host_networks[i].name, network))
            return config->host_networks[i].reserved_ports;
    }
    return "";
}

/* By interface, as Nomad has them. */
static json_t *format_node_networks(const struct api_node_view *view)
{
    const struct node *node = view->node;
    json_t *list = json_array(), *by_interface = json_object();

    for (size_t i = 0; i < node->addresses_count; i++) {
        const struct alone_address *address = &node->addresses[i];
        json_t *one = json_object_get(by_interface, node->interfaces[i]);

        if (one == NULL) {
            one =
                json_pack("{s:s, s:o, s:s, s:i, s:[]}", "Mode", "host", "Device",
                          api_text(node->interfaces[i]), "MacAddress", "", "Speed", 0, "Addresses");
            check(json_object_set(by_interface, node->interfaces[i], one) == 0);
            check(json_array_append_new(list, one) == 0);
        }
        check(json_array_append_new(
                  json_object_get(one, "Addresses"),
                  json_pack("{s:s, s:o, s:s, s:o, s:s}", "Family",
                            strchr(address->ip, ':') != NULL ? "ipv6" : "ipv4", "Alias",
                            api_text(address->network), "Address", address->ip, "ReservedPorts",
                            api_text(reserved_of(view, address->network)), "Gateway", "")) == 0);
    }
    json_decref(by_interface);
    return list;
}

static json_t *format_cores(const struct core_set *set)
{
    json_t *ids = json_array();

    for (uint16_t core = 0; core < NODE_CORES_MAX; core++) {
        if (core_set_has(set, core))
            check(json_array_append_new(ids, json_integer(core)) == 0);
    }
    return ids;
}

static json_t *format_node_resources(const struct api_node_view *view)
{
    const struct host_facts *facts = &view->node->facts;

    return json_pack("{s:{s:I, s:I, s:o}, s:{s:I}, s:{s:I}, s:o, s:o, s:i, s:i, s:[]}", "Cpu",
                     "CpuShares", cpu_total(facts), "TotalCpuCores", (json_int_t)facts->cpu_cores,
                     "ReservableCpuCores", format_cores(&view->node->cores), "Memory", "MemoryMB",
                     (json_int_t)(facts->memory_bytes >> 20), "Disk", "DiskMB",
                     (json_int_t)(facts->disk_free_bytes >> 20), "Networks",
                     format_networks(view->node), "NodeNetworks", format_node_networks(view),
                     "MinDynamicPort", view->config->min_dynamic_port, "MaxDynamicPort",
                     view->config->max_dynamic_port, "Devices");
}

static json_t *format_reserved(const struct config *config)
{
    struct core_set reserved = {{0}};

    (void)config_cores(config->reserved_cores, &reserved); /* it was checked when it was read */
    return json_pack("{s:{s:i, s:o}, s:{s:i}, s:{s:i}, s:{s:o}}", "Cpu", "CpuShares", 0,
                     "ReservedCpuCores", format_cores(&reserved), "Memory", "MemoryMB", 0, "Disk",
                     "DiskMB", 0, "Networks", "ReservedHostPorts",
                     api_text(config->reserved_ports));
}

/* As the operator wrote them. */
static json_t *format_host_networks(const struct config *config)
{
    json_t *networks = json_object();

    for (size_t i = 0; i < config->host_networks_count; i++) {
        const struct host_network *network = &config->host_networks[i];

        set(networks, network->name,
            json_pack("{s:s, s:o, s:o, s:o}", "Name", network->name, "CIDR",
                      api_text(network->cidr), "Interface", api_text(network->interface),
                      "ReservedPorts", api_text(network->reserved_ports)));
    }
    return networks;
}

static bool add_host_volume(void *ctx, const struct storage_volume *volume)
{
    const char *name = json_string_value(json_object_get(volume->json, "Name"));

    if (storage_hosted_is_here(volume))
        set(ctx, name,
            json_pack("{s:s, s:s, s:O, s:b}", "ID", volume->id, "Name", name, "Path",
                      json_object_get(volume->json, "HostPath"), "ReadOnly", false));
    return true;
}

/* Those that were made come in the place of those of the configuration. */
static json_t *format_host_volumes(const struct config *config, struct storage *host_volumes)
{
    json_t *volumes = json_object();

    for (size_t i = 0; i < config->host_volumes.count; i++) {
        const struct spec_node_volume *volume = &config->host_volumes.items[i];

        set(volumes, volume->name,
            json_pack("{s:s, s:s, s:o, s:b}", "ID", "", "Name", volume->name, "Path",
                      api_text(volume->path), "ReadOnly", volume->read_only));
    }
    if (host_volumes != NULL)
        storage_each_volume(host_volumes, add_host_volume, volumes);
    return volumes;
}

json_t *api_format_node_stub(const struct api_node_view *view, bool resources)
{
    const struct node *node = view->node;
    json_t *to = json_object();

    set_text(to, "ID", node->identity.id);
    set_text(to, "Address", node->facts.ip_address);
    set_text(to, "Datacenter", node->known.datacenter);
    set_text(to, "Name", node->known.name);
    set_text(to, "NodeClass", node->known.class);
    set_text(to, "NodePool", "default");
    set_text(to, "Version", "");
    for (size_t i = 0; i < node->known.attributes.count; i++) {
        if (text_equal(node->known.attributes.items[i].key, "nomad.version"))
            set_text(to, "Version", node->known.attributes.items[i].value);
    }
    set(to, "Drain", json_boolean(json_is_object(json_object_get(view->standing, "Drain"))));
    set_text(to, "SchedulingEligibility", api_eligibility(view->standing));
    set_text(to, "Status", "ready");
    set_text(to, "StatusDescription", view->description);
    set(to, "Drivers", format_drivers(view));
    set(to, "HostVolumes", format_host_volumes(view->config, view->host_volumes));
    set(to, "LastDrain", format_last_drain(json_object_get(view->standing, "LastDrain")));
    set_number(to, "CreateIndex", 1);
    set_number(to, "ModifyIndex", view->index);
    if (resources) {
        set(to, "NodeResources", format_node_resources(view));
        set(to, "ReservedResources", format_reserved(view->config));
    }
    return to;
}

static json_t *plugins_or_none(json_t *plugins)
{
    return plugins != NULL ? json_incref(plugins) : json_object();
}

json_t *api_format_node(const struct api_node_view *view)
{
    const struct host_facts *facts = &view->node->facts;
    json_t *to = api_format_node_stub(view, true);

    (void)json_object_del(to, "Address"); /* was just made; lists have it, the node has not */
    (void)json_object_del(to, "Version");
    set_text(to, "HTTPAddr", view->http_address);
    set(to, "TLSEnabled", json_boolean(view->config->tls_http));
    set(to, "Attributes", api_pairs(&view->node->known.attributes));
    set(to, "Meta", api_pairs(&view->node->known.meta));
    set(to, "Links", json_object());
    set(to, "Resources",
        json_pack("{s:I, s:I, s:I, s:I, s:o}", "CPU", cpu_total(facts), "MemoryMB",
                  (json_int_t)(facts->memory_bytes >> 20), "DiskMB",
                  (json_int_t)(facts->disk_free_bytes >> 20), "IOPS", (json_int_t)0, "Networks",
                  format_networks(view->node)));
    set(to, "HostNetworks", format_host_networks(view->config));
    set(to, "Reserved",
        json_pack("{s:i, s:i, s:i, s:i, s:n}", "CPU", 0, "MemoryMB", 0, "DiskMB", 0, "IOPS", 0,
                  "Networks"));
    set(to, "DrainStrategy", format_drain(json_object_get(view->standing, "Drain")));
    set(to, "StatusUpdatedAt", json_integer((json_int_t)(view->since_unix_ns / 1000000000)));
    set(to, "Events", format_node_events(view));
    set(to, "CSIControllerPlugins", plugins_or_none(view->controller_plugins));
    set(to, "CSINodePlugins", plugins_or_none(view->node_plugins));
    return to;
}

static json_t *format_cpus(const struct host_stats *stats, double mhz)
{
    json_t *list = json_array();
    char name[24];

    for (unsigned i = 0; i < stats->cpus_count; i++) {
        const struct host_cpu *cpu = &stats->cpus[i];

        (void)text_format(name, sizeof(name), "cpu%u", cpu->number); /* fits */
        json_t *one =
            json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:f}", "CPU", name, "User", cpu->user,
                      "System", cpu->system, "Idle", cpu->idle, "Total", cpu->total, "TotalPercent",
                      cpu->total, "TotalTicks", cpu->total / 100 * mhz);
        check(json_array_append_new(list, one) == 0);
    }
    return list;
}

json_t *api_format_host_stats(const struct host_stats *stats, const struct host_facts *facts,
                              const char *device, int64_t unix_ns)
{
    uint64_t usable = stats->disk_used + stats->disk_available; /* the rest is root's */
    double disk = usable > 0 ? 100.0 * (double)stats->disk_used / (double)usable : 0;
    double inodes =
        stats->inodes > 0 ? 100.0 * (double)stats->inodes_used / (double)stats->inodes : 0;
    double ticks = stats->cpu.total / 100 * (double)cpu_total(facts);
    json_t *to = json_object();

    set(to, "Memory",
        json_pack("{s:I, s:I, s:I, s:I}", "Total", (json_int_t)stats->memory_total, "Available",
                  (json_int_t)stats->memory_available, "Used", (json_int_t)stats->memory_used,
                  "Free", (json_int_t)stats->memory_free));
    set(to, "CPU", format_cpus(stats, facts->cpu_mhz));
    json_t *space =
        json_pack("{s:o, s:s, s:I, s:I, s:I, s:f, s:f}", "Device", api_text(device), "Mountpoint",
                  facts->disk_mountpoint, "Size", (json_int_t)stats->disk_size, "Used",
                  (json_int_t)stats->disk_used, "Available", (json_int_t)stats->disk_available,
                  "UsedPercent", disk, "InodesUsedPercent", inodes);
    set(to, "DiskStats", json_pack("[O]", space));
    set(to, "AllocDirStats", space);
    set(to, "DeviceStats", json_null());
    set_number(to, "Uptime", stats->uptime_s);
    set(to, "Timestamp", json_integer((json_int_t)unix_ns));
    set(to, "CPUTicksConsumed", json_real(ticks));
    return to;
}
