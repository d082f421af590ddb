/*
 * Defaults and rules of a job.  Defaults follow nomad v1.1.2 api/jobs.go and api/tasks.go
 * (Canonicalize), rules nomad/structs/structs.go (Validate); stricter than Nomad are names
 * (spec/names.h).
 */
#include "spec/constraint.h"
#include "spec/job/part.h"
#include "spec/json.h"
#include "spec/names.h"

#include <stdio.h>
#include <string.h>

#define SECONDS(n) ((json_int_t)(n)*1000000000)

static bool is_type(const json_t *job, enum spec_job_type type)
{
    enum spec_job_type own;

    return spec_job_type(json_string_value(json_object_get(job, "Type")), &own) && own == type;
}

/* Its tasks are to run until it is stopped. */
static bool lasts(const json_t *job)
{
    return is_type(job, JOB_SERVICE) || is_type(job, JOB_SYSTEM);
}

/* It is one for each node, which no other node can take over. */
static bool is_of_nodes(const json_t *job)
{
    return is_type(job, JOB_SYSTEM) || is_type(job, JOB_SYSBATCH);
}

/* --- defaults --- */

static void set_missing(json_t *object, const char *field, json_t *value)
{
    if (json_object_get(object, field) == NULL)
        check(json_object_set_new(object, field, value) == 0);
    else
        json_decref(value);
}

/* Fills OBJECT's gaps from FROM (borrowed, may be NULL). */
static void fill(json_t *object, const json_t *from)
{
    if (from != NULL)
        check(json_object_update_missing(object, (json_t *)from) == 0);
}

/* As fill, with FROM moved. */
static void fill_new(json_t *object, json_t *from)
{
    check(from != NULL);
    fill(object, from);
    json_decref(from);
}

/* The object FIELD of PARENT, made if it is missing. */
static json_t *need_object(json_t *parent, const char *field)
{
    json_t *object = json_object_get(parent, field);

    if (object == NULL) {
        object = json_object();
        check(json_object_set_new(parent, field, object) == 0);
    }
    return object;
}

/* Empty maps say the same as none. */
static void drop_if_empty(json_t *object, const char *field)
{
    if (json_object_size(json_object_get(object, field)) == 0)
        (void)json_object_del(object, field); /* missing is fine */
}

static void default_operands(json_t *object)
{
    static const char *const fields[] = {"Constraints", "Affinities"};
    json_t *item;
    size_t i;

    for (size_t f = 0; f < COUNT_OF(fields); f++) {
        json_array_foreach(jobspec_list(object, fields[f]), i, item)
        {
            const char *operand = json_string_value(json_object_get(item, "Operand"));

            if (operand == NULL || *operand == '\0')
                check(json_object_set_new(item, "Operand", json_string("=")) == 0);
            if (f == 1)
                set_missing(item, "Weight", json_integer(50));
        }
    }
    json_array_foreach(jobspec_list(object, "Spreads"), i, item)
        set_missing(item, "Weight", json_integer(50));
}

static json_t *default_update(void)
{
    return json_pack("{s:I, s:i, s:s, s:I, s:I, s:I, s:b, s:b, s:i}", "Stagger", SECONDS(30),
                     "MaxParallel", 1, "HealthCheck", "checks", "MinHealthyTime", SECONDS(10),
                     "HealthyDeadline", SECONDS(300), "ProgressDeadline", SECONDS(600),
                     "AutoRevert", 0, "AutoPromote", 0, "Canary", 0);
}

static json_t *default_reschedule(bool service)
{
    if (service)
        return json_pack("{s:i, s:i, s:I, s:s, s:I, s:b}", "Attempts", 0, "Interval", 0, "Delay",
                         SECONDS(30), "DelayFunction", "exponential", "MaxDelay", SECONDS(3600),
                         "Unlimited", 1);
    return json_pack("{s:i, s:I, s:I, s:s, s:i, s:b}", "Attempts", 1, "Interval",
                     SECONDS(24 * 3600), "Delay", SECONDS(5), "DelayFunction", "constant",
                     "MaxDelay", 0, "Unlimited", 0);
}

static json_t *default_migrate(void)
{
    return json_pack("{s:i, s:s, s:I, s:I}", "MaxParallel", 1, "HealthCheck", "checks",
                     "MinHealthyTime", SECONDS(10), "HealthyDeadline", SECONDS(300));
}

json_t *jobspec_default_block(const struct jobspec_schema *schema)
{
    return schema == &jobspec_update    ? default_update()
           : schema == &jobspec_migrate ? default_migrate()
                                        : NULL;
}

static json_t *default_restart(bool service)
{
    return json_pack("{s:i, s:I, s:I, s:s}", "Attempts", service ? 2 : 3, "Interval",
                     service ? SECONDS(1800) : SECONDS(24 * 3600), "Delay", SECONDS(15), "Mode",
                     "fail");
}

static void default_resources(json_t *resources)
{
    bool cores = json_integer_value(json_object_get(resources, "Cores")) > 0;
    json_t *device;
    size_t i;

    set_missing(resources, "CPU", json_integer(cores ? 0 : 100));
    set_missing(resources, "Cores", json_integer(0));
    set_missing(resources, "MemoryMB", json_integer(300));
    set_missing(resources, "MemoryMaxMB", json_integer(0));
    json_array_foreach(jobspec_list(resources, "Devices"), i, device)
    {
        set_missing(device, "Count", json_integer(1));
        default_operands(device);
    }
    if (json_array_size(jobspec_list(resources, "Devices")) == 0)
        (void)json_object_del(resources, "Devices"); /* missing is fine */
}

static void default_task(struct jobspec_work *work, json_t *task, const json_t *restart)
{
    set_missing(task, "User", json_string(""));
    set_missing(task, "Config", json_object());
    set_missing(task, "Leader", json_false());
    set_missing(task, "KillTimeout", json_integer(SECONDS(5)));
    set_missing(task, "KillSignal", json_string(""));
    set_missing(task, "ShutdownDelay", json_integer(0));
    drop_if_empty(task, "Env");
    drop_if_empty(task, "Meta");
    fill(need_object(task, "RestartPolicy"), restart);
    default_resources(need_object(task, "Resources"));
    jobspec_default_networks(work, need_object(task, "Resources"));
    fill_new(need_object(task, "LogConfig"),
             json_pack("{s:i, s:i, s:b}", "MaxFiles", 10, "MaxFileSizeMB", 10, "Disabled", 0));
    jobspec_default_mounts(task);
    jobspec_default_csi_plugin(task);
    jobspec_default_artifacts(task);
    jobspec_default_templates(task);
    json_t *lifecycle = json_object_get(task, "Lifecycle");
    if (work->file == NULL && jobspec_is_empty(lifecycle))
        (void)json_object_del(task, "Lifecycle"); /* Go prints an unset one like this */
    else if (lifecycle != NULL)
        set_missing(lifecycle, "Sidecar", json_false());
    default_operands(task);
}

static void default_group(struct jobspec_work *work, const json_t *job, json_t *group)
{
    json_t *restart = need_object(group, "RestartPolicy"), *task;
    bool service = is_type(job, JOB_SERVICE);
    const json_t *update = json_object_get(job, "Update");
    const json_t *migrate = json_object_get(job, "Migrate");
    size_t i;

    jobspec_default_scaling(group);
    jobspec_default_services(job, group);
    jobspec_default_connect(work, group);
    json_t *disk = need_object(group, "EphemeralDisk");
    set_missing(disk, "SizeMB", json_integer(300));
    set_missing(disk, "Sticky", json_false());
    set_missing(disk, "Migrate", json_false());
    drop_if_empty(group, "Meta");
    jobspec_default_networks(work, group);
    jobspec_default_volumes(group);
    fill_new(restart, default_restart(lasts(job)));
    if (!is_of_nodes(job)) {
        fill(need_object(group, "ReschedulePolicy"), json_object_get(job, "Reschedule"));
        fill_new(need_object(group, "ReschedulePolicy"), default_reschedule(service));
    }
    if (lasts(job) || json_object_get(group, "Update") != NULL) {
        fill(need_object(group, "Update"), update);
        fill_new(need_object(group, "Update"), default_update());
    }
    if (service || json_object_get(group, "Migrate") != NULL) {
        fill(need_object(group, "Migrate"), migrate);
        fill_new(need_object(group, "Migrate"), default_migrate());
    }
    default_operands(group);
    json_array_foreach(jobspec_list(group, "Tasks"), i, task) default_task(work, task, restart);
}

/* Go prints a block that is not set as one whose fields are all zero. */
static void drop_zero_blocks(const json_t *job, json_t *object)
{
    static const char *const blocks[] = {"Update", "Migrate", "ReschedulePolicy", "Reschedule"};
    size_t count = is_of_nodes(job) ? COUNT_OF(blocks) : 2; /* elsewhere 0 times are meant */

    for (size_t i = 0; i < count; i++) {
        if (jobspec_is_empty(json_object_get(object, blocks[i])))
            (void)json_object_del(object, blocks[i]); /* missing is fine */
    }
}

void jobspec_set_defaults(struct jobspec_work *work, json_t *job)
{
    const char *id = json_string_value(json_object_get(job, "ID"));
    json_t *group;
    size_t i;

    if (work->file == NULL) {
        drop_zero_blocks(job, job);
        json_array_foreach(jobspec_list(job, "TaskGroups"), i, group) drop_zero_blocks(job, group);
    }
    set_missing(job, "ID", json_string(""));
    set_missing(job, "Name", json_string(id == NULL ? "" : id));
    set_missing(job, "ParentID", json_string(""));
    set_missing(job, "Namespace", json_string("default"));
    set_missing(job, "Region", json_string("global"));
    set_missing(job, "Type", json_string("service"));
    set_missing(job, "NodePool", json_string("default"));
    set_missing(job, "Priority", json_integer(50));
    set_missing(job, "AllAtOnce", json_false());
    if (json_array_size(json_object_get(job, "Datacenters")) == 0)
        check(json_object_set_new(job, "Datacenters", json_pack("[s]", "*")) == 0);
    drop_if_empty(job, "Meta");
    default_operands(job);
    jobspec_default_dispatch(job);
    jobspec_default_periodic(job);
    if (lasts(job))
        fill_new(need_object(job, "Update"), default_update());
    json_array_foreach(jobspec_list(job, "TaskGroups"), i, group) default_group(work, job, group);
}

/* --- rules --- */

static json_int_t whole_of(const json_t *object, const char *field)
{
    return json_integer_value(json_object_get(object, field));
}

static const char *name(const struct jobspec_work *work, const struct jobspec_schema *schema,
                        const char *json)
{
    const struct jobspec_field *field = jobspec_by_json(schema, json);

    check(field != NULL);
    return jobspec_name_of(work, field);
}

static void check_name(struct jobspec_work *work, const json_t *object, const char *field,
                       const char *what, const char *(*fault_of)(const char *text))
{
    const char *fault = fault_of(text_of(object, field));

    if (fault != NULL)
        jobspec_complain(work, object, field, NULL, "the name of a %s %s", what, fault);
}

static void check_length(struct jobspec_work *work, const json_t *object,
                         const struct jobspec_schema *schema, const char *field, size_t size)
{
    const char *text = text_of(object, field);

    if (strlen(text) >= size || strpbrk(text, "\n\r") != NULL)
        jobspec_complain(work, object, field, NULL, "%s must be one line of at most %zu bytes",
                         name(work, schema, field), size - 1);
}

/* Names of LIST's objects are given once. */
static void check_unique(struct jobspec_work *work, const json_t *list, const char *what)
{
    json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
    {
        for (size_t j = 0; j < i; j++) {
            if (!text_equal(text_of(item, "Name"), text_of(json_array_get(list, j), "Name")))
                continue;
            jobspec_complain(work, item, "Name", NULL, "a second %s \"%.60s\"", what,
                             text_of(item, "Name"));
            break;
        }
    }
}

static void check_constraints(struct jobspec_work *work, const json_t *object, bool in_task)
{
    json_t *constraint;
    size_t i;

    json_array_foreach(jobspec_list(object, "Constraints"), i, constraint)
    {
        struct err err = {0};

        if (constraint_check(constraint, in_task, &err) < 0)
            jobspec_complain(work, constraint, "", NULL, "%s", err.text);
    }
}

static void check_map(struct jobspec_work *work, const json_t *object,
                      const struct jobspec_schema *schema, const char *field, bool environment)
{
    json_t *value;
    const char *key;

    json_object_foreach(json_object_get(object, field), key, value)
    {
        if (*key == '\0' || (environment && strchr(key, '=') != NULL))
            jobspec_complain(work, object, field, NULL,
                             "\"%.60s\" in %s cannot be the name of a variable", key,
                             name(work, schema, field));
    }
}

/* As Nomad, it does not ask of a task's own that the attempts fit: where they do not, they never
 * run out. */
static void check_restart(struct jobspec_work *work, const json_t *restart, bool of_task)
{
    json_int_t attempts = whole_of(restart, "Attempts"), delay = whole_of(restart, "Delay");
    json_int_t interval = whole_of(restart, "Interval"), needed;
    const char *mode = text_of(restart, "Mode");
    char text[2][40];

    if (!text_equal(mode, "fail") && !text_equal(mode, "delay"))
        jobspec_complain(work, restart, "Mode", NULL,
                         "the restart mode must be \"fail\" or \"delay\", but is \"%.40s\"", mode);
    if (attempts == 0 && text_equal(mode, "delay"))
        jobspec_complain(work, restart, "Attempts",
                         "mode = \"fail\" with attempts = 0 never "
                         "restarts",
                         "restarts with mode \"delay\" need at least one attempt");
    if (interval < SECONDS(5))
        jobspec_complain(work, restart, "Interval", NULL,
                         "the restart interval must be at least 5s");
    else if (!of_task && (__builtin_mul_overflow(attempts, delay, &needed) || needed > interval)) {
        text_from_duration_ns(text[0], sizeof(text[0]), delay);
        text_from_duration_ns(text[1], sizeof(text[1]), interval);
        jobspec_complain(work, restart, "Interval",
                         "make the interval longer, or attempts or delay smaller",
                         "%lld restarts with a delay of %s do not fit into an interval of %s",
                         (long long)attempts, text[0], text[1]);
    }
}

/* What waiting for each of ATTEMPTS takes, as far as it is not more than LIMIT. */
static json_int_t all_delays(const json_t *reschedule, json_int_t limit)
{
    bool fibonacci = text_equal(text_of(reschedule, "DelayFunction"), "fibonacci");
    bool constant = text_equal(text_of(reschedule, "DelayFunction"), "constant");
    json_int_t delay = whole_of(reschedule, "Delay"), last = 0, sum = 0;
    json_int_t most = whole_of(reschedule, "MaxDelay");

    for (json_int_t i = whole_of(reschedule, "Attempts"); i > 0 && sum <= limit; i--) {
        json_int_t next = constant    ? delay
                          : fibonacci ? (last == 0 ? delay : delay + last)
                                      : 2 * delay;

        sum += delay;
        last = delay;
        delay = most > 0 && next > most ? most : next;
    }
    return sum;
}

static void check_reschedule(struct jobspec_work *work, const json_t *reschedule)
{
    json_int_t attempts = whole_of(reschedule, "Attempts"), delay = whole_of(reschedule, "Delay");
    json_int_t interval = whole_of(reschedule, "Interval");
    const char *function = text_of(reschedule, "DelayFunction");
    bool unlimited = json_is_true(json_object_get(reschedule, "Unlimited"));
    bool constant = text_equal(function, "constant");
    char text[40];

    if (attempts == 0 && !unlimited)
        return; /* never */
    if (attempts > 0 && unlimited)
        jobspec_complain(work, reschedule, "Unlimited", "write unlimited = false, or attempts = 0",
                         "reschedule is unlimited or has attempts, not both");
    if (!constant && !text_equal(function, "exponential") && !text_equal(function, "fibonacci"))
        jobspec_complain(work, reschedule, "DelayFunction", NULL,
                         "the delay function of reschedule must be \"constant\", \"exponential\" "
                         "or \"fibonacci\", but is \"%.40s\"",
                         function);
    if (delay < SECONDS(5))
        jobspec_complain(work, reschedule, "Delay", NULL,
                         "the delay of reschedule must be at least 5s");
    else if (!constant && whole_of(reschedule, "MaxDelay") < delay)
        jobspec_complain(work, reschedule, "MaxDelay", NULL,
                         "the longest delay of reschedule must not be less than its delay");
    else if (!unlimited && interval < SECONDS(15))
        jobspec_complain(work, reschedule, "Interval", NULL,
                         "the interval of reschedule must be at least 15s");
    else if (!unlimited && all_delays(reschedule, interval) > interval) {
        text_from_duration_ns(text, sizeof(text), interval);
        jobspec_complain(work, reschedule, "Interval",
                         "make the interval longer, or attempts or delay smaller",
                         "%lld times of rescheduling do not fit into an interval of %s",
                         (long long)attempts, text);
    }
}

/* Nobody acts on it here, and yet no server would take what is refused. */
static void check_disconnect(struct jobspec_work *work, const json_t *job, const json_t *disconnect)
{
    static const char *const reconciles[] = {"", "best_score", "longest_running", "keep_original",
                                             "keep_replacement"};
    const char *reconcile = text_of(disconnect, "Reconcile");
    bool stops = json_is_integer(json_object_get(disconnect, "StopOnClientAfter"));
    bool known = false;

    for (size_t i = 0; i < COUNT_OF(reconciles); i++)
        known |= text_equal(reconcile, reconciles[i]);
    if (!known)
        jobspec_complain(work, disconnect, "Reconcile", NULL,
                         "reconcile must be \"best_score\", \"longest_running\", "
                         "\"keep_original\" or \"keep_replacement\", but is \"%.40s\"",
                         reconcile);
    if (stops && is_of_nodes(job))
        jobspec_complain(work, disconnect, "StopOnClientAfter", "remove it",
                         "a job of type \"%s\" has no %s", text_of(job, "Type"),
                         name(work, &jobspec_disconnect, "StopOnClientAfter"));
    if (stops && whole_of(disconnect, "LostAfter") != 0)
        jobspec_complain(work, disconnect, "LostAfter", "remove one of them",
                         "disconnect has %s or %s, not both",
                         name(work, &jobspec_disconnect, "LostAfter"),
                         name(work, &jobspec_disconnect, "StopOnClientAfter"));
}

static void check_resources(struct jobspec_work *work, const json_t *resources)
{
    const struct jobspec_schema *schema = &jobspec_resources;
    json_int_t cpu = whole_of(resources, "CPU"), cores = whole_of(resources, "Cores");
    json_int_t memory = whole_of(resources, "MemoryMB");
    json_int_t memory_max = whole_of(resources, "MemoryMaxMB");

    if (cpu > 0 && cores > 0)
        jobspec_complain(work, resources, "Cores", "remove one of them",
                         "a task asks for %s or %s, not for both", name(work, schema, "CPU"),
                         name(work, schema, "Cores"));
    if (cpu == 0 && cores == 0)
        jobspec_complain(work, resources, "CPU", NULL, "%s must be at least 1",
                         name(work, schema, "CPU"));
    if (memory < 10)
        jobspec_complain(work, resources, "MemoryMB", NULL, "%s must be at least 10 MB",
                         name(work, schema, "MemoryMB"));
    if (memory_max != 0 && memory_max != SPEC_MEMORY_UNLIMITED && memory_max < memory)
        jobspec_complain(work, resources, "MemoryMaxMB", NULL,
                         "%s (%lld) must not be less than %s (%lld)",
                         name(work, schema, "MemoryMaxMB"), (long long)memory_max,
                         name(work, schema, "MemoryMB"), (long long)memory);
}

static void check_lifecycle(struct jobspec_work *work, const json_t *lifecycle)
{
    const char *hook = text_of(lifecycle, "Hook");

    if (lifecycle != NULL && !text_equal(hook, "prestart") && !text_equal(hook, "poststart") &&
        !text_equal(hook, "poststop"))
        jobspec_complain(work, lifecycle, "Hook", NULL,
                         "the lifecycle hook must be \"prestart\", \"poststart\" or \"poststop\", "
                         "but is \"%.40s\"",
                         hook);
}

static void check_task(struct jobspec_work *work, const json_t *task, const json_t *job,
                       const json_t *group)
{
    const struct jobspec_schema *schema = &jobspec_task;
    const char *signal = text_of(task, "KillSignal");
    const json_t *logs = json_object_get(task, "LogConfig");
    json_int_t log_mb = whole_of(logs, "MaxFiles") * whole_of(logs, "MaxFileSizeMB");
    json_int_t disk_mb = whole_of(json_object_get(group, "EphemeralDisk"), "SizeMB");

    check_name(work, task, "Name", "task", spec_task_name_fault);
    const json_t *driver = json_object_get(task, "Driver"); /* one that is no text is left out */
    if (*text_of(task, "Driver") == '\0' &&
        (driver != NULL || !jobspec_was_given(work, task, "Driver")))
        jobspec_complain(work, task, "Driver", "for example driver = \"raw_exec\"",
                         "a task needs a %s", name(work, schema, "Driver"));
    if (*text_of(task, "Driver") != '\0')
        check_name(work, task, "Driver", "driver", spec_group_name_fault);
    check_length(work, task, schema, "Driver", SPEC_DRIVER_SIZE);
    check_length(work, task, schema, "User", SPEC_NAME_SIZE);
    if (*signal != '\0' && !spec_is_signal(signal))
        jobspec_complain(work, task, "KillSignal", "for example \"SIGTERM\"",
                         "unknown signal \"%.40s\"", signal);
    check_map(work, task, schema, "Env", true);
    check_map(work, task, schema, "Meta", false);
    check_resources(work, json_object_get(task, "Resources"));
    jobspec_check_devices(work, json_object_get(task, "Resources"));
    if (!json_equal(json_object_get(task, "RestartPolicy"),
                    json_object_get(group, "RestartPolicy")))
        check_restart(work, json_object_get(task, "RestartPolicy"), true);
    check_lifecycle(work, json_object_get(task, "Lifecycle"));
    jobspec_check_mounts(work, group, task);
    jobspec_check_artifacts(work, task);
    jobspec_check_actions(work, task);
    jobspec_check_templates(work, task);
    jobspec_check_task_services(work, group, task);
    jobspec_check_payload_file(work, task);
    jobspec_check_identities(work, task);
    check_constraints(work, task, true);
    if (is_type(job, JOB_SYSTEM) && json_array_size(jobspec_list(task, "Affinities")) > 0)
        jobspec_complain(work, task, "Affinities", "remove it",
                         "a job of type \"system\" has no affinity block");
    if (!json_is_true(json_object_get(logs, "Disabled")) && disk_mb <= log_mb)
        jobspec_complain(work, logs, "MaxFileSizeMB",
                         "keep fewer or smaller files, or ask for a larger ephemeral_disk",
                         "the logs may take %lld MB, but the group's disk has only %lld MB",
                         (long long)log_mb, (long long)disk_mb);
}

/* Blocks of OBJECT, JOB or a part of it, that only jobs of other types have. */
static void check_blocks(struct jobspec_work *work, const json_t *job, const json_t *object)
{
    const struct {
        const char *name;
        bool refused;
    } blocks[] = {
        {"Affinities", is_type(job, JOB_SYSTEM)},
        {"Spreads", is_type(job, JOB_SYSTEM)},
        {"Update", !lasts(job)},
        {"Migrate", !is_type(job, JOB_SERVICE)},
        {"Reschedule", is_of_nodes(job)},
        {"ReschedulePolicy", is_of_nodes(job)},
    };
    const struct jobspec_schema *schema = object == job ? &jobspec_job : &jobspec_group_schema;

    for (size_t i = 0; i < COUNT_OF(blocks); i++) {
        const struct jobspec_field *field = jobspec_by_json(schema, blocks[i].name);
        const json_t *value = field == NULL ? NULL : json_object_get(object, field->json);
        bool given = json_is_array(value) ? json_array_size(value) > 0 : value != NULL;

        if (blocks[i].refused && given)
            jobspec_complain(work, object, field->json, "remove it",
                             "a job of type \"%s\" has no %s block", text_of(job, "Type"),
                             jobspec_name_of(work, field));
    }
}

static void check_limit(struct jobspec_work *work, const json_t *job, const json_t *group)
{
    const json_t *limit = json_object_get(group, "MaxRunDuration");

    if (limit == NULL)
        return;
    if (json_integer_value(limit) <= 0)
        jobspec_complain(work, group, "MaxRunDuration", NULL, "%s must be longer than nothing",
                         name(work, &jobspec_group_schema, "MaxRunDuration"));
    if (lasts(job))
        jobspec_complain(work, group, "MaxRunDuration", "remove it",
                         "a job of type \"%s\" has no %s: it runs until it is stopped",
                         text_of(job, "Type"), name(work, &jobspec_group_schema, "MaxRunDuration"));
}

static void check_group(struct jobspec_work *work, const json_t *job, const json_t *group)
{
    const json_t *tasks = jobspec_list(group, "Tasks");
    size_t count = json_array_size(tasks), leaders = 0, i;
    json_t *task;

    check_name(work, group, "Name", "group", spec_group_name_fault);
    check_map(work, group, &jobspec_group_schema, "Meta", false);
    check_constraints(work, group, false);
    check_restart(work, json_object_get(group, "RestartPolicy"), false);
    if (!is_of_nodes(job))
        check_reschedule(work, json_object_get(group, "ReschedulePolicy"));
    if (lasts(job))
        jobspec_check_update(work, json_object_get(group, "Update"));
    if (is_type(job, JOB_SERVICE))
        jobspec_check_kill_timeouts(work, group);
    jobspec_check_scaling(work, group);
    check_disconnect(work, job, json_object_get(group, "Disconnect"));
    check_blocks(work, job, group);
    check_limit(work, job, group);
    if (is_type(job, JOB_SYSTEM) && whole_of(group, "Count") > 1)
        jobspec_complain(work, group, "Count", NULL,
                         "count %lld: a system job has one alloc of each group on a node",
                         (long long)whole_of(group, "Count"));
    if (count == 0)
        jobspec_complain(work, group, "Name", "add task \"name\" { ... }", "there are no tasks");
    if (count > SPEC_TASKS_MAX) {
        jobspec_complain(work, group, "Name", NULL, "%zu tasks, there may be %d", count,
                         SPEC_TASKS_MAX);
        return;
    }
    check_unique(work, tasks, "task");
    if (jobspec_cores(group) > NODE_CORES_MAX)
        jobspec_complain(work, group, "", NULL, "%llu cores of all tasks, there may be %d",
                         (unsigned long long)jobspec_cores(group), NODE_CORES_MAX);
    jobspec_check_networks(work, group);
    jobspec_check_volumes(work, job, group);
    jobspec_check_csi_plugins(work, group);
    jobspec_check_services(work, group);
    jobspec_check_connect(work, group);
    char saved[sizeof(work->where)];
    (void)text_copy(saved, sizeof(saved), work->where);
    json_array_foreach(tasks, i, task)
    {
        work->part = task;
        (void)text_format(work->where, sizeof(work->where),
                          "group \"%.100s\", task \"%.100s\": ", text_of(group, "Name"),
                          text_of(task, "Name"));
        check_task(work, task, job, group);
        leaders += json_is_true(json_object_get(task, "Leader"));
        if (json_is_true(json_object_get(task, "Leader")) && leaders == 2)
            jobspec_complain(work, task, "Leader", NULL, "a second leader in one group");
    }
    (void)text_copy(work->where, sizeof(work->where), saved);
    work->part = group;
}

static void check_type(struct jobspec_work *work, const json_t *job)
{
    enum spec_job_type type;

    if (!spec_job_type(text_of(job, "Type"), &type))
        jobspec_complain(work, job, "Type", NULL,
                         "the type of a job is \"service\", \"batch\", \"system\" or \"sysbatch\", "
                         "not \"%.40s\"",
                         text_of(job, "Type"));
}

/* All groups together. */
struct sums {
    json_int_t allocs, tasks;
    size_t constraints;
};

static struct sums sums_of(const json_t *job)
{
    struct sums sums = {.constraints = json_array_size(jobspec_list(job, "Constraints"))};
    const json_t *group, *task;
    size_t i, t;

    json_array_foreach(jobspec_list(job, "TaskGroups"), i, group)
    {
        json_int_t count = whole_of(group, "Count");

        sums.constraints += json_array_size(jobspec_list(group, "Constraints"));
        json_array_foreach(jobspec_list(group, "Tasks"), t, task) sums.constraints +=
            json_array_size(jobspec_list(task, "Constraints"));
        if (count < 0 || count > JOB_COUNT_MAX)
            continue; /* refused by its own bound */
        sums.allocs += count;
        sums.tasks += count * (json_int_t)json_array_size(jobspec_list(group, "Tasks"));
    }
    return sums;
}

#define TOO_MANY_ALLOCS "%lld allocs, the counts of all groups together: a job may have %d"
#define TOO_MANY_TASKS "%lld tasks in all its allocs together: a job may have %d"

/* Each factor has its bound, and so have the sums of their products (fsm/limits.h). */
static void check_sums(struct jobspec_work *work, const json_t *job)
{
    struct sums sums = sums_of(job);

    if (sums.allocs > JOB_ALLOCS_MAX)
        jobspec_complain(work, job, "", "make it several jobs", TOO_MANY_ALLOCS,
                         (long long)sums.allocs, JOB_ALLOCS_MAX);
    if (sums.constraints > JOB_CONSTRAINTS_MAX)
        jobspec_complain(work, job, "", NULL,
                         "%zu constraints of the job, its groups and their tasks: there may be %d",
                         sums.constraints, JOB_CONSTRAINTS_MAX);
    if (sums.tasks > JOB_TASKS_MAX)
        jobspec_complain(work, job, "", "make it several jobs", TOO_MANY_TASKS,
                         (long long)sums.tasks, JOB_TASKS_MAX);
}

int jobspec_check_count(const json_t *job, int64_t count, struct err *err)
{
    struct sums sums = sums_of(job);

    if (count > JOB_COUNT_MAX)
        return err_set(err, ERR_LIMIT, "Count must be at most %d, but is %lld", JOB_COUNT_MAX,
                       (long long)count);
    if (sums.allocs > JOB_ALLOCS_MAX)
        return err_set(err, ERR_LIMIT, TOO_MANY_ALLOCS, (long long)sums.allocs, JOB_ALLOCS_MAX);
    if (sums.tasks > JOB_TASKS_MAX)
        return err_set(err, ERR_LIMIT, TOO_MANY_TASKS, (long long)sums.tasks, JOB_TASKS_MAX);
    return 0;
}

void jobspec_check(struct jobspec_work *work, json_t *job)
{
    const json_t *groups = jobspec_list(job, "TaskGroups");
    json_t *group, *datacenter;
    size_t i;

    work->part = job;
    check_name(work, job, "ID", "job", spec_job_id_fault);
    check_type(work, job);
    check_length(work, job, &jobspec_job, "Name", SPEC_NAME_SIZE);
    check_name(work, job, "Namespace", "namespace", spec_namespace_fault);
    check_length(work, job, &jobspec_job, "Region", SPEC_NAMESPACE_SIZE);
    if (*text_of(job, "ParentID") != '\0')
        check_name(work, job, "ParentID", "parent", spec_job_id_fault);
    check_map(work, job, &jobspec_job, "Meta", false);
    jobspec_check_dispatch(work, job);
    jobspec_check_periodic(work, job);
    check_constraints(work, job, false);
    json_array_foreach(jobspec_list(job, "Datacenters"), i, datacenter)
    {
        if (json_string_length(datacenter) == 0)
            jobspec_complain(work, job, "Datacenters", NULL,
                             "the name of a datacenter must not be empty");
    }
    check_blocks(work, job, job);
    if (json_array_size(groups) == 0)
        jobspec_complain(work, job, "", "add group \"name\" { task \"name\" { ... } }",
                         "the job has no groups");
    if (json_array_size(groups) > JOB_GROUPS_MAX) {
        jobspec_complain(work, job, "", NULL, "%zu groups, there may be %d",
                         json_array_size(groups), JOB_GROUPS_MAX);
        return;
    }
    check_unique(work, groups, "group");
    json_array_foreach(groups, i, group)
    {
        (void)text_format(work->where, sizeof(work->where),
                          "group \"%.100s\": ", text_of(group, "Name"));
        check_group(work, job, group);
        work->where[0] = '\0';
    }
    work->part = job;
    check_sums(work, job);
}
