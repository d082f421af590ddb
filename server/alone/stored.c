/*
 * What is believed of a stored job, and of what its allocs were placed by.
 *
 * All that registering has seen to and that is relied on here without another look: names that are
 * there, counts within their bounds, lists of what they are lists of.  Not the whole check of a
 * registration, which an older version's job might not pass any more: what an alloc runs by is
 * looked at again when one is made (spec/alloc/decode.c).
 */
#include "server/alone/part.h"

#include "spec/cron.h"
#include "spec/job.h"
#include "spec/names.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t duration_ns_max = DURATION_MS_MAX * 1000000;

/* A whole number up to MAX, or nothing, in each of NAMES, which NULL ends. */
static bool are_whole(const json_t *object, const char *const *names, uint64_t max)
{
    for (; *names != NULL; names++) {
        const json_t *value = json_object_get(object, *names);
        json_int_t number = json_integer_value(value);

        if (value != NULL && !json_is_null(value) &&
            (!json_is_integer(value) || number < 0 || (uint64_t)number > max))
            return false;
    }
    return true;
}

/* A list of values of TYPE, or nothing. */
static bool is_list(const json_t *list, json_type type)
{
    const json_t *item;
    size_t i;

    if (list != NULL && !json_is_null(list) && !json_is_array(list))
        return false;
    json_array_foreach(list, i, item)
    {
        if (json_typeof(item) != type)
            return false;
    }
    return true;
}

static const char *fault_of_group(const json_t *group)
{
    static const char *const counts[] = {"Count", NULL};
    static const char *const sizes[] = {"SizeMB", NULL};
    static const char *const rooms[] = {"CPU", "Cores", "MemoryMB", NULL};
    static const char *const attempts[] = {"Attempts", NULL};
    static const char *const delays[] = {"Interval", "Delay", "MaxDelay", NULL};
    static const char *const parallels[] = {"MaxParallel", "Canary", NULL};
    static const char *const deadlines[] = {"ProgressDeadline", NULL};
    static const char *const bounds[] = {"Min", "Max", NULL};
    const char *name = json_string_value(json_object_get(group, "Name"));
    const json_t *tasks = json_object_get(group, "Tasks"), *task;
    const json_t *reschedule = json_object_get(group, "ReschedulePolicy");
    struct spec_port ports[SPEC_PORTS_MAX];
    struct spec_volume volumes[SPEC_VOLUMES_MAX];
    char sources[SPEC_VOLUMES_MAX][SPEC_SOURCE_SIZE];
    size_t t, ports_count, volumes_count;

    if (name == NULL || spec_group_name_fault(name) != NULL)
        return "a group has no name";
    if (!are_whole(group, counts, JOB_COUNT_MAX))
        return "a group's count is none";
    if (!are_whole(reschedule, attempts, INT32_MAX) ||
        !are_whole(reschedule, delays, duration_ns_max))
        return "a group is rescheduled by what is no number";
    if (!are_whole(json_object_get(group, "Update"), parallels, INT32_MAX) ||
        !are_whole(json_object_get(group, "Update"), deadlines, duration_ns_max))
        return "a group is updated by what is no number";
    if (!are_whole(json_object_get(group, "Scaling"), bounds, INT32_MAX))
        return "a group is scaled by what is no number";
    if (!are_whole(json_object_get(group, "EphemeralDisk"), sizes, INT32_MAX) ||
        !is_list(tasks, JSON_OBJECT))
        return "a group's tasks or disk are none";
    json_array_foreach(tasks, t, task)
    {
        if (!are_whole(json_object_get(task, "Resources"), rooms, INT32_MAX))
            return "a task asks for what is no number";
    }
    if (!jobspec_ports(group, ports, &ports_count))
        return "a group asks for ports that are none";
    return jobspec_volumes(group, 0, volumes, sources, &volumes_count)
               ? NULL
               : "a group asks for volumes that are none";
}

/* What a deployment says of its job, or nothing. */
static bool is_deployment(const json_t *deployment)
{
    static const char *const numbers[] = {"JobVersion", "CreateIndex", "ModifyIndex", NULL};
    static const char *const times[] = {"CreateTime", "ModifyTime", NULL};
    static const char *const counts[] = {"DesiredTotal",    "PlacedAllocs",    "HealthyAllocs",
                                         "UnhealthyAllocs", "DesiredCanaries", NULL};
    static const char *const delays[] = {"ProgressDeadline", NULL};
    static const char *const limits[] = {"RequireProgressBy", NULL};
    static const char *const resumed[] = {"cairnResumedMs", NULL};
    const char *id = json_string_value(json_object_get(deployment, "ID"));
    json_t *groups = json_object_get(deployment, "TaskGroups"), *group;
    const char *name;

    if (deployment == NULL)
        return true;
    if (id == NULL || !uuid_is_valid(id) ||
        !json_is_string(json_object_get(deployment, "Status")) ||
        !json_is_string(json_object_get(deployment, "StatusDescription")) ||
        !are_whole(deployment, numbers, NUMBER_MAX) || !are_whole(deployment, times, INT64_MAX) ||
        !are_whole(deployment, resumed, NUMBER_MAX) || !json_is_object(groups))
        return false;
    json_object_foreach(groups, name, group)
    {
        if (!json_is_object(group) || !are_whole(group, counts, NUMBER_MAX) ||
            !are_whole(group, delays, duration_ns_max) || !are_whole(group, limits, INT64_MAX) ||
            !is_list(json_object_get(group, "PlacedCanaries"), JSON_STRING))
            return false;
    }
    return true;
}

static bool has_twins(const json_t *groups)
{
    for (size_t g = 0; g < json_array_size(groups); g++) {
        for (size_t i = 0; i < g; i++) {
            if (json_equal(json_object_get(json_array_get(groups, g), "Name"),
                           json_object_get(json_array_get(groups, i), "Name")))
                return true;
        }
    }
    return false;
}

/* What is kept of policies and of what was said of counts, or nothing. */
static bool is_scaling(const json_t *scaling)
{
    static const char *const indexes[] = {"CreateIndex", "ModifyIndex", NULL};
    json_t *policies = json_object_get(scaling, "Policies"), *one;
    json_t *events = json_object_get(scaling, "Events");
    const char *name;

    if (scaling != NULL && !json_is_object(scaling))
        return false;
    if ((policies != NULL && !json_is_object(policies)) ||
        (events != NULL && !json_is_object(events)))
        return false;
    json_object_foreach(policies, name, one)
    {
        const char *id = json_string_value(json_object_get(one, "ID"));
        if (id == NULL || !uuid_is_valid(id) || !are_whole(one, indexes, NUMBER_MAX))
            return false;
    }
    json_object_foreach(events, name, one)
    {
        const json_t *event;
        size_t i;
        if (!is_list(one, JSON_OBJECT))
            return false;
        json_array_foreach(one, i, event)
        {
            if (!are_whole(event, indexes, NUMBER_MAX))
                return false;
        }
    }
    return true;
}

/* What is kept of the deployments and the versions before. */
static const char *fault_of_past(const char *key, const json_t *json)
{
    const json_t *deployments = json_object_get(json, "cairnDeployments"), *one;
    const json_t *versions = json_object_get(json, "cairnVersions");
    size_t i;

    if (!is_deployment(json_object_get(json, "cairnDeployment")))
        return "a deployment that is none";
    if (!is_scaling(json_object_get(json, "cairnScaling")))
        return "a scaling that is none";
    if (!is_list(deployments, JSON_OBJECT) || !is_list(versions, JSON_OBJECT))
        return "a list of what it may not hold";
    json_array_foreach(deployments, i, one)
    {
        if (!is_deployment(one))
            return "a deployment that is none";
    }
    json_array_foreach(versions, i, one)
    {
        if (json_object_get(one, "cairnVersions") != NULL || job_fault(key, one) != NULL)
            return "a version that is none";
    }
    return NULL;
}

/* What is dispatched of a job, or with what it was dispatched, or nothing. */
static bool is_dispatch(const json_t *json)
{
    const json_t *block = json_object_get(json, "ParameterizedJob");
    const json_t *meta = json_object_get(json, "Meta");
    const json_t *token = json_object_get(json, "DispatchIdempotencyToken");

    return (block == NULL || json_is_null(block) || json_is_object(block)) &&
           is_list(json_object_get(block, "MetaRequired"), JSON_STRING) &&
           is_list(json_object_get(block, "MetaOptional"), JSON_STRING) &&
           (block == NULL || meta == NULL || json_is_object(meta)) &&
           (token == NULL || json_string_length(token) < SPEC_NAME_SIZE);
}

/* When it is launched, and was last, or nothing. */
static bool is_periodic(const json_t *json)
{
    static const char *const times[] = {PERIODIC_LAUNCHED, NULL};
    const json_t *block = json_object_get(json, "Periodic");
    const json_t *line = json_object_get(block, "Spec"), *zone = json_object_get(block, "TimeZone");

    return (block == NULL || json_is_null(block) || json_is_object(block)) &&
           is_list(json_object_get(block, "Specs"), JSON_STRING) &&
           (line == NULL || json_is_string(line)) &&
           (zone == NULL ||
            (json_is_string(zone) && zone_name_fault(json_string_value(zone)) == NULL)) &&
           are_whole(json, times, NUMBER_MAX);
}

const char *job_fault(const char *key, const json_t *json)
{
    static const char *const numbers[] = {"Version", "CreateIndex", "ModifyIndex", "JobModifyIndex",
                                          NULL};
    static const char *const sources[] = {"cairnSource", NULL};
    const char *namespace = json_string_value(json_object_get(json, "Namespace"));
    const char *id = json_string_value(json_object_get(json, "ID")), *fault = NULL;
    const json_t *groups = json_object_get(json, "TaskGroups"), *group;
    char own_key[JOURNAL_KEY_SIZE];
    size_t g;

    if (!json_is_object(json))
        return "not a job";
    if (namespace == NULL || id == NULL || id[0] == '\0' || strlen(id) >= SPEC_NAME_SIZE ||
        strlen(namespace) >= SPEC_NAMESPACE_SIZE ||
        !text_format(own_key, sizeof(own_key), "job/%s/%s", namespace, id) ||
        !text_equal(own_key, key))
        return "not the job that its key names";
    if (!json_is_string(json_object_get(json, "Type")))
        return "a job of no type";
    if (!are_whole(json, numbers, NUMBER_MAX))
        return "its version or index is more than anything ever counted";
    if (!are_whole(json, sources, JOB_SOURCE_BYTES_MAX))
        return "its source is more than any has";
    if (!is_dispatch(json))
        return "it is dispatched by what is none";
    if (!is_periodic(json))
        return "it is launched at times that are none";
    if (!is_list(json_object_get(json, "Datacenters"), JSON_STRING) ||
        !is_list(json_object_get(json, "cairnQueued"), JSON_INTEGER) ||
        !is_list(groups, JSON_OBJECT) || has_twins(groups))
        return "a list of what it may not hold";
    fault = fault_of_past(key, json);
    json_array_foreach(groups, g, group) if (fault == NULL) fault = fault_of_group(group);
    return fault;
}

/* --- allocs --- */

struct alloc_spec *alone_read_spec(const struct alone *alone, const char *alloc)
{
    char key[JOURNAL_KEY_SIZE], *text;
    struct alloc_spec *spec = NULL;
    size_t length;

    if (!text_format(key, sizeof(key), "alloc/%s", alloc) ||
        life_read_spec(alone->config.life, key, &text, &length, NULL) < 0)
        return NULL;
    (void)jobspec_decode_alloc(text, length, &spec, NULL); /* NULL says so */
    free(text);
    return spec;
}
