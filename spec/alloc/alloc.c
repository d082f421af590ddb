/*
 * What one alloc runs by, as JSON for the journal, and whether two jobs agree about it.
 *
 * Both take exactly the fields of FATE_RUN; which of them an alloc takes in place says update.c.
 * The text is compact and its keys sorted: equal allocs of equal jobs differ only in their
 * placement.
 */
#include "spec/alloc/alloc.h"

#include <stdlib.h>
#include <string.h>

/* All of them would be arranged for the sake of each of them. */
json_t *jobspec_job_fields(const json_t *job)
{
    json_t *bare = json_copy((json_t *)(uintptr_t)job);

    check(bare != NULL);
    (void)json_object_del(bare, "TaskGroups"); /* missing is fine */
    json_t *fields = jobspec_arrange(&jobspec_job, bare, true);
    json_decref(bare);
    return fields;
}

/* The job's own part: its fields, and what it was dispatched with, which no job file says. */
json_t *jobspec_job_part(const json_t *job)
{
    json_t *part = jobspec_job_fields(job);
    json_t *version = json_object_get(job, "Version"), *payload = json_object_get(job, "Payload");

    if (json_string_length(payload) > 0)
        check(json_object_set(part, "Payload", payload) == 0);
    check(json_object_set_new(
              part, "Version",
              json_integer(json_is_integer(version) ? json_integer_value(version) : 0)) == 0);
    return part;
}

/* What leads to an alloc that takes another's place; only then, so that others are as they were. */
static void add_history(json_t *alloc, const struct jobspec_placement *placement)
{
    json_t *events = json_array();

    check(placement->rescheduled_count <= SPEC_RESCHEDULED_MAX);
    for (size_t i = 0; i < placement->rescheduled_count; i++) {
        const struct spec_rescheduled *one = &placement->rescheduled[i];
        json_t *event = json_pack("{s:I, s:I, s:s}", "RescheduleTime", (json_int_t)one->unix_ns,
                                  "Delay", (json_int_t)one->delay_ns, "PrevAllocID", one->alloc_id);

        check(json_array_append_new(events, event) == 0);
    }
    if (placement->previous_id != NULL && placement->previous_id[0] != '\0')
        check(json_object_set_new(alloc, "PreviousAllocation",
                                  json_string(placement->previous_id)) == 0);
    if (placement->rescheduled_count > 0)
        check(json_object_set_new(alloc, "RescheduleTracker",
                                  json_pack("{s:O}", "Events", events)) == 0);
    json_decref(events);
}

void jobspec_put_deployment(json_t *alloc, const json_t *group, const char *id)
{
    static const char *const keys[] = {"DeploymentID", "MinHealthyTime", "HealthyDeadline",
                                       "ManualHealth", "TaskHealth"};
    const json_t *update = json_object_get(group, "Update");
    json_int_t min_ns = json_integer_value(json_object_get(update, "MinHealthyTime"));
    json_int_t deadline_ns = json_integer_value(json_object_get(update, "HealthyDeadline"));
    const char *said = json_string_value(json_object_get(update, "HealthCheck"));
    const char *health = said == NULL ? "" : said;

    for (size_t i = 0; i < COUNT_OF(keys); i++)
        (void)json_object_del(alloc, keys[i]); /* of the one before, if any */
    if (id == NULL || id[0] == '\0')
        return;
    check(json_object_set_new(alloc, "DeploymentID", json_string(id)) == 0);
    check(json_object_set_new(alloc, "MinHealthyTime", json_integer(min_ns)) == 0);
    check(json_object_set_new(alloc, "HealthyDeadline", json_integer(deadline_ns)) == 0);
    if (text_equal(health, "manual"))
        check(json_object_set_new(alloc, "ManualHealth", json_true()) == 0);
    if (text_equal(health, "task_states"))
        check(json_object_set_new(alloc, "TaskHealth", json_true()) == 0);
}

int jobspec_alloc_value(const json_t *job, const struct jobspec_placement *placement,
                        json_t **ret_alloc, struct err *err)
{
    const json_t *group = jobspec_group(job, placement->group);

    check(uuid_is_valid(placement->alloc_id));
    if (group == NULL)
        return err_set(err, ERR_GONE, "job has no group \"%.90s\"", placement->group);
    *ret_alloc = json_pack(
        "{s:i, s:s, s:s, s:I, s:s, s:I, s:o, s:o}", "Schema", 1, "ID", placement->alloc_id,
        "EvalID", placement->eval_id, "Index", (json_int_t)placement->index, "Datacenter",
        placement->datacenter, "CreateTime", (json_int_t)placement->create_time_unix_ns, "Job",
        jobspec_job_part(job), "Group", jobspec_arrange(&jobspec_group_schema, group, true));
    if (*ret_alloc == NULL)
        return err_set(err, ERR_INVALID, "alloc's placement is not UTF-8 text");
    if (placement->create_index != 0)
        check(json_object_set_new(*ret_alloc, "CreateIndex",
                                  json_integer((json_int_t)placement->create_index)) == 0);
    add_history(*ret_alloc, placement);
    jobspec_put_deployment(*ret_alloc, group, placement->deployment_id);
    jobspec_add_ports(*ret_alloc, &placement->ports);
    jobspec_add_cores(*ret_alloc, &placement->cores);
    jobspec_add_devices(*ret_alloc, placement->devices);
    jobspec_add_plugins(*ret_alloc, &placement->plugins);
    return 0;
}

static int alloc_text(const json_t *alloc, char **ret_text, size_t *ret_length, struct err *err)
{
    char *text = json_dumps(alloc, JSON_COMPACT | JSON_SORT_KEYS);

    check(text != NULL);
    size_t length = strlen(text);
    if (length > JOBSPEC_ALLOC_BYTES_MAX) {
        free(text);
        return err_set(err, ERR_LIMIT, "alloc's specification has %zu bytes, there may be %d",
                       length, JOBSPEC_ALLOC_BYTES_MAX);
    }
    *ret_text = text;
    *ret_length = length;
    return 0;
}

int jobspec_alloc_json(const json_t *job, const struct jobspec_placement *placement,
                       char **ret_text, size_t *ret_length, struct err *err)
{
    json_t *alloc;
    int code = jobspec_alloc_value(job, placement, &alloc, err);

    if (code != 0)
        return code;
    code = alloc_text(alloc, ret_text, ret_length, err);
    json_decref(alloc);
    return code;
}

int jobspec_write_alloc(const json_t *alloc, char **ret_text, size_t *ret_length,
                        struct alloc_spec **ret_spec, struct err *err)
{
    char *text = NULL;
    size_t length = 0;
    int code = alloc_text(alloc, &text, &length, err);

    if (code == 0)
        code = jobspec_decode_value(alloc, ret_spec, err);
    if (code == 0 && ret_length != NULL)
        *ret_length = length;
    if (code == 0 && ret_text != NULL)
        *ret_text = text;
    else
        free(text);
    return code;
}

int jobspec_make_alloc(const json_t *job, const struct jobspec_placement *placement,
                       char **ret_text, size_t *ret_length, struct alloc_spec **ret_spec,
                       struct err *err)
{
    json_t *alloc;
    int code = jobspec_alloc_value(job, placement, &alloc, err);

    if (code != 0)
        return code;
    code = jobspec_write_alloc(alloc, ret_text, ret_length, ret_spec, err);
    json_decref(alloc);
    return code;
}

/* --- comparison --- */

/* GROUP's part with its tasks by name, for their order does not matter. */
static json_t *group_part(const json_t *group)
{
    json_t *part = jobspec_arrange(&jobspec_group_schema, group, true), *by_name = json_object();
    json_t *task;
    size_t i;

    json_array_foreach(jobspec_list(part, "Tasks"), i, task)
    {
        const char *name = json_string_value(json_object_get(task, "Name"));

        if (name != NULL)
            check(json_object_set(by_name, name, task) == 0);
    }
    check(json_object_set_new(part, "Tasks", by_name) == 0);
    return part;
}

bool jobspec_group_equal(const json_t *job_a, const json_t *job_b, const char *group)
{
    const json_t *group_a = jobspec_group(job_a, group), *group_b = jobspec_group(job_b, group);

    if (group_a == NULL || group_b == NULL)
        return false;
    json_t *parts[] = {jobspec_job_part(job_a), jobspec_job_part(job_b), group_part(group_a),
                       group_part(group_b)};
    (void)json_object_del(parts[0], "Version"); /* grows with each submission */
    (void)json_object_del(parts[1], "Version");
    bool equal = json_equal(parts[0], parts[1]) && json_equal(parts[2], parts[3]);
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        json_decref(parts[i]);
    return equal;
}
