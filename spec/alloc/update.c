/*
 * Newer versions of a job: which allocs go on by them, and what these run by then.
 *
 * Most of what an alloc runs by is made once, when it is set up or when its tasks start: if that is
 * to be otherwise another alloc has to take its place.  The rest is taken in place.  Follows nomad
 * v2.0.5 scheduler/util.go tasksUpdated, with two exceptions: who changes the lifecycle of a task
 * or its leader gets an alloc that goes by it, where Nomad's goes on by the old one.
 */
#include "spec/alloc/alloc.h"

#include <stdlib.h>
#include <string.h>

/* What allocs run by and take in place; nothing else of FATE_RUN is. */
static const struct {
    const struct jobspec_schema *schema;
    const char *field; /* JSON name */
} taken_in_place[] = {
    {&jobspec_job, "Name"},
    {&jobspec_job, "ParentID"},
    {&jobspec_job, "Region"},
    {&jobspec_group_schema, "ShutdownDelay"},
    {&jobspec_group_schema, "MaxRunDuration"},
    {&jobspec_group_schema, "Services"},
    {&jobspec_task, "Actions"},
    {&jobspec_task, "RestartPolicy"},
    {&jobspec_task, "Services"},
    {&jobspec_task, "KillSignal"},
    {&jobspec_task, "KillTimeout"},
    {&jobspec_task, "ShutdownDelay"},
    {&jobspec_logs, "MaxFiles"},
    {&jobspec_logs, "MaxFileSizeMB"},
};

static bool is_taken_in_place(const struct jobspec_schema *schema, const char *field)
{
    for (size_t i = 0; i < COUNT_OF(taken_in_place); i++) {
        if (taken_in_place[i].schema == schema && text_equal(taken_in_place[i].field, field))
            return true;
    }
    return false;
}

/* Takes out of VALUE what can be taken in place. */
static void keep_essence(const struct jobspec_schema *schema, json_t *value)
{
    const char *key;
    json_t *item;
    size_t i;

    for (size_t f = 0; schema != NULL && f < schema->count; f++) {
        const struct jobspec_field *field = &schema->fields[f];
        json_t *inner = field->json == NULL ? NULL : json_object_get(value, field->json);

        /* An empty text says nothing, and an older version may not have had it at all. */
        bool is_empty = json_is_string(inner) && json_string_length(inner) == 0;
        if (inner != NULL && (is_empty || is_taken_in_place(schema, field->json))) {
            (void)json_object_del(value, field->json); /* it is there */
            continue;
        }
        if (field->kind == KIND_BLOCK)
            keep_essence(field->block, inner);
        if (field->kind == KIND_BLOCKS)
            json_array_foreach(inner, i, item) keep_essence(field->block, item);
        if (field->kind == KIND_NAMED)
            json_object_foreach(inner, key, item) keep_essence(field->block, item);
    }
}

bool jobspec_task_replaces(const json_t *before, const json_t *after)
{
    json_t *was = jobspec_arrange(&jobspec_task, before, true);
    json_t *is = jobspec_arrange(&jobspec_task, after, true);

    keep_essence(&jobspec_task, was);
    keep_essence(&jobspec_task, is);
    bool replaces = !json_equal(was, is);
    json_decref(was);
    json_decref(is);
    return replaces;
}

/* All that a task of GROUP is given as its meta, wherever the job says it; a new reference. */
static json_t *whole_meta(const json_t *job, const json_t *group, const json_t *task)
{
    const json_t *const levels[] = {job, group, task};
    json_t *meta = json_object();

    for (size_t i = 0; i < COUNT_OF(levels); i++) {
        json_t *level = json_object_get(levels[i], "Meta");

        if (json_is_object(level))
            check(json_object_update(meta, level) == 0);
    }
    return meta;
}

/* Of a job, or of as much of it as an alloc's specification says; a new reference. */
static json_t *essence_of(const json_t *job, const json_t *group)
{
    json_t *whole = jobspec_job_fields(job), *by_name = json_object();
    json_t *part = jobspec_arrange(&jobspec_group_schema, group, true), *task;
    size_t i;

    json_array_foreach(jobspec_list(part, "Tasks"), i, task)
    {
        const char *name = json_string_value(json_object_get(task, "Name"));

        check(json_object_set_new(task, "Meta", whole_meta(whole, part, task)) == 0);
        keep_essence(&jobspec_task, task);
        if (name != NULL) /* their order does not matter */
            check(json_object_set(by_name, name, task) == 0);
    }
    keep_essence(&jobspec_group_schema, part);
    keep_essence(&jobspec_job, whole);
    (void)json_object_del(part, "Meta"); /* missing is fine */
    (void)json_object_del(whole, "Meta");
    check(json_object_set_new(part, "Tasks", by_name) == 0);
    check(json_object_set_new(whole, "TaskGroups", part) == 0);
    return whole;
}

json_t *jobspec_essence(const json_t *job, const char *group)
{
    const json_t *found = jobspec_group(job, group);

    return found == NULL ? NULL : essence_of(job, found);
}

/* The specification TEXT as a new reference, or NULL. */
static json_t *read_alloc(const char *text, size_t length)
{
    json_t *alloc = length > JOBSPEC_ALLOC_BYTES_MAX
                        ? NULL
                        : json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);

    if (json_is_object(json_object_get(alloc, "Job")) &&
        json_is_object(json_object_get(alloc, "Group")))
        return alloc;
    json_decref(alloc);
    return NULL;
}

json_t *jobspec_alloc_essence(const char *text, size_t length)
{
    json_t *alloc = read_alloc(text, length), *essence = NULL;
    struct alloc_spec *spec;
    struct err err;

    if (alloc != NULL && jobspec_decode_value(alloc, &spec, &err) == 0) {
        essence = essence_of(json_object_get(alloc, "Job"), json_object_get(alloc, "Group"));
        alloc_spec_free(spec);
    }
    json_decref(alloc);
    return essence;
}

int jobspec_update_alloc(const json_t *job, const struct jobspec_update *update, char **ret_text,
                         size_t *ret_length, struct alloc_spec **ret_spec, struct err *err)
{
    json_t *alloc = read_alloc(update->text, update->length);
    const char *name = json_string_value(json_object_get(json_object_get(alloc, "Group"), "Name"));
    const json_t *group = name == NULL ? NULL : jobspec_group(job, name);

    if (alloc == NULL || group == NULL) {
        json_decref(alloc);
        return err_set(err, ERR_CORRUPT, "no specification of an alloc of this job");
    }
    check(json_object_set_new(alloc, "Job", jobspec_job_part(job)) == 0);
    check(json_object_set_new(alloc, "Group",
                              jobspec_arrange(&jobspec_group_schema, group, true)) == 0);
    check(json_object_set_new(alloc, "EvalID", json_string(update->eval_id)) == 0);
    jobspec_put_deployment(alloc, group, update->deployment_id);
    check(json_object_set_new(alloc, "ModifyIndex",
                              json_integer((json_int_t)update->modify_index)) == 0);
    int code = jobspec_write_alloc(alloc, ret_text, ret_length, ret_spec, err);
    json_decref(alloc);
    return code;
}
