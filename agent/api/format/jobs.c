/*
 * Jobs and evaluations as Nomad's JSON.
 *
 * Follows nomad v1.1.2 api/jobs.go, api/evaluations.go.  The command-line tool follows pointers in
 * these without looking (JobSummary): they are never null.
 */
#include "agent/api/format/format.h"

#include "spec/job.h"

#include <stdlib.h>
#include <string.h>

/* --- jobs --- */

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

/* Told by us, whatever the job says. */
static const char *const told[] = {
    "ID",         "Namespace",          "Name",        "Region",
    "Type",       "NodePool",           "Priority",    "Stop",
    "Status",     "StatusDescription",  "Stable",      "Version",
    "SubmitTime", "CreateIndex",        "ModifyIndex", "JobModifyIndex",
    "Warnings",   "NextPeriodicLaunch",
};

/* Our own begin with a word that no field of Nomad's does. */
static bool is_told_already(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(told); i++) {
        if (text_equal(told[i], name))
            return true;
    }
    return text_starts_with(name, "cairn");
}

void api_put_job(struct writer *to, const char *name, const struct api_job_view *view)
{
    const struct alone_job *job = view->job;
    char *warnings = jobspec_warnings(job->job);
    const char *field;
    json_t *value;

    put_object(to, name);
    put_text(to, "ID", job->id);
    put_text(to, "Namespace", job->namespace);
    put_own_text(to, job, "Name", job->id);
    put_own_text(to, job, "Region", "global");
    put_own_text(to, job, "Type", "service");
    put_own_text(to, job, "NodePool", "default");
    if (!put_own(to, job, "Priority"))
        put_number(to, "Priority", 50);
    put_bool(to, "Stop", job->stop);
    put_text(to, "Status", view->status);
    put_text(to, "StatusDescription", "");
    if (!put_own(to, job, "Stable"))
        put_bool(to, "Stable", false);
    put_number(to, "Version", (int64_t)job->version);
    put_number(to, "SubmitTime", job->submit_unix_ns);
    put_number(to, "CreateIndex", (int64_t)job->create_index);
    put_number(to, "ModifyIndex", (int64_t)job->modify_index);
    put_number(to, "JobModifyIndex", (int64_t)job->job_modify_index);
    if (view->launch_unix_ns != 0)
        put_time(to, "NextPeriodicLaunch", view->launch_unix_ns);
    json_object_foreach((json_t *)(uintptr_t)job->job, field, value)
    {
        if (!is_told_already(field))
            put_json(to, field, value);
    }
    put_text(to, "Warnings", warnings);
    put_end(to);
    free(warnings);
}

json_t *api_format_job(const struct api_job_view *view)
{
    struct writer to = {.pretty = false};

    api_put_job(&to, NULL, view);
    json_t *job = json_loadb(to.bytes, to.used, 0, NULL);
    check(job != NULL);
    free(to.bytes);
    return job;
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

    api_set_text(to, "Name", task->name);
    api_set_text(to, "Driver", task->driver);
    api_set_text(to, "User", task->user);
    api_set(to, "Config", config != NULL ? config : json_null());
    api_set(to, "Env", api_pairs(&task->env));
    api_set(to, "Meta", api_pairs(&task->meta));
    api_set(to, "Leader", json_boolean(task->leader));
    api_set_text(to, "KillSignal", task->kill_signal);
    api_set_number(to, "KillTimeout", task->kill_timeout_ms * 1000000);
    api_set_number(to, "ShutdownDelay", task->shutdown_delay_ms * 1000000);
    api_set(to, "Resources",
            json_pack("{s:I, s:I, s:I}", "CPU", (json_int_t)task->resources.cpu_mhz, "MemoryMB",
                      (json_int_t)task->resources.memory_mb, "MemoryMaxMB",
                      (json_int_t)task->resources.memory_max_mb));
    api_set(to, "LogConfig",
            json_pack("{s:I, s:I}", "MaxFiles", (json_int_t)task->logs.max_files, "MaxFileSizeMB",
                      (json_int_t)task->logs.max_file_size_mb));
    if (task->lifecycle != LIFECYCLE_MAIN)
        api_set(to, "Lifecycle",
                json_pack("{s:s, s:b}", "Hook", hooks[task->lifecycle], "Sidecar", task->sidecar));
    return to;
}

json_t *api_format_spec_job(const struct alloc_spec *spec)
{
    json_t *tasks = json_array(), *to = json_object();

    for (size_t i = 0; i < spec->tasks_count; i++)
        check(json_array_append_new(tasks, format_spec_task(&spec->tasks[i])) == 0);
    api_set_text(to, "ID", spec->job_id);
    api_set_text(to, "Name", spec->job_name);
    api_set_text(to, "ParentID", spec->job_parent_id);
    api_set_text(to, "Namespace", spec->namespace);
    api_set_text(to, "Region", spec->region);
    api_set_text(to, "Type", spec->job_type);
    api_set_number(to, "Version", spec->job_version);
    api_set(to, "Datacenters", json_pack("[o]", api_text(spec->datacenter)));
    json_t *group =
        json_pack("{s:o, s:{s:I, s:b, s:b}, s:I, s:o}", "Name", api_text(spec->group),
                  "EphemeralDisk", "SizeMB", (json_int_t)spec->ephemeral_disk_mb, "Sticky",
                  spec->disk_sticky, "Migrate", spec->disk_migrate, "ShutdownDelay",
                  (json_int_t)(spec->group_shutdown_delay_ms * 1000000), "Tasks", tasks);
    if (spec->max_run_ms != 0)
        api_set_number(group, "MaxRunDuration", spec->max_run_ms * 1000000);
    api_set(to, "TaskGroups", json_pack("[o]", group));
    return to;
}

void api_format_job_stub(struct writer *to, const struct alone_job *job, const char *status,
                         const struct api_job_counts *counts, size_t groups,
                         struct api_job_children children, bool meta)
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
    if (meta)
        (void)put_own(to, job, "Meta"); /* one that has none shows none */
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
        api_set(counts, name, json_integer(1));
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
        api_set(available, json_string_value(name), json_integer(0));
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
        api_set(groups, json_string_value(json_object_get(one, "Group")), format_failed(one, node));
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
    api_set(to, "FailedTGAllocs", api_format_failed(evaluation->failed, node));
    api_set(to, "QueuedAllocations", queued);
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
    api_set_text(to, "WaitUntil", until);
    api_set_text(to, "BlockedEval", evaluation->blocked_id);
    api_set_text(to, "DeploymentID", evaluation->deployment_id);
    set_failed(to, evaluation, node);

    for (size_t i = 0; i < COUNT_OF(empty); i++)
        api_set_text(to, empty[i], "");
    api_set_text(to, "ID", evaluation->id);
    api_set(to, "Priority", json_integer((json_int_t)priority));
    api_set_text(to, "Type", evaluation->type);
    api_set_text(to, "TriggeredBy", evaluation->triggered_by);
    api_set_text(to, "Namespace", evaluation->namespace);
    api_set_text(to, "JobID", evaluation->job_id);
    api_set_number(to, "JobModifyIndex", evaluation->index);
    api_set_text(to, "Status", evaluation->status);
    api_set_text(to, "StatusDescription", reason_of(evaluation));
    api_set_number(to, "Wait", 0);
    api_set_number(to, "CreateIndex", evaluation->index);
    api_set_number(to, "ModifyIndex", evaluation->index);
    api_set(to, "CreateTime", json_integer((json_int_t)evaluation->create_unix_ns));
    api_set(to, "ModifyTime", json_integer((json_int_t)evaluation->create_unix_ns));
    return to;
}
