/*
 * The way of a job file through its stations.
 *
 * A job is read as far as possible and then checked as a whole, so that a user sees all that is
 * wrong at once; only a syntax error or a met bound ends it early.  A job with any problem is not a
 * job: the caller gets one or the other.
 */
#include "spec/job.h"

#include "spec/job/part.h"

#include <stdlib.h>
#include <string.h>

int jobspec_finish(struct jobspec_work *work, json_t *raw, json_t **ret_job)
{
    const json_t *note;
    size_t i;

    struct jobspec_problems *problems = work->problems;
    int code = ERR_INVALID;

    if (raw != NULL && !work->stopped) {
        jobspec_set_defaults(work, raw);
        jobspec_check(work, raw);
    }
    json_array_foreach(work->notes, i, note)
    {
        if (json_is_string(note))
            jobspec_complain_plainly(work, NULL, json_string_value(note));
    }
    if (problems->count == 0) {
        check(raw != NULL);
        *ret_job = jobspec_arrange(&jobspec_job, raw, false);
        code = 0;
    }
    json_decref(raw);
    json_decref(work->notes);
    free(work->origins.items);
    return code;
}

/* In the language's native syntax, or in its JSON. */
static int parse_hcl(const struct jobspec_source *source, bool json, json_t **ret_job,
                     struct jobspec_problems *problems)
{
    struct jobspec_work work = {
        .name = source->name, .problems = problems, .reads_templates = true};
    struct hcl_options options = {.inputs = source->inputs,
                                  .inputs_count = source->inputs_count,
                                  .base_directory = source->base_directory,
                                  .keep_unknown = true};
    struct hcl_error error;
    struct hcl_file *file;

    if ((json ? hcl_parse_json(source->name, source->text, source->length, jobspec_form, &file,
                               &error)
              : hcl_parse(source->name, source->text, source->length, &file, &error)) != 0) {
        jobspec_add_error(&work, &error);
        return ERR_INVALID;
    }
    work.file = file;
    json_t *raw = NULL;
    if (hcl_context_new(file, &options, &work.context, &error) == 0)
        raw = jobspec_read_hcl(&work);
    else
        jobspec_add_error(&work, &error);
    int code = jobspec_finish(&work, raw, ret_job);
    hcl_context_free(work.context);
    hcl_free(file);
    return code;
}

/* Depth of VALUE, counted up to LIMIT. */
static int depth_of(const json_t *value, int limit)
{
    const char *key;
    json_t *item;
    size_t i;
    int deepest = 0;

    if (limit == 0 || json_is_string(value))
        return 0;
    json_object_foreach((json_t *)value, key, item)
    {
        int depth = depth_of(item, limit - 1);

        deepest = depth > deepest ? depth : deepest;
    }
    json_array_foreach(value, i, item)
    {
        int depth = depth_of(item, limit - 1);

        deepest = depth > deepest ? depth : deepest;
    }
    return 1 + deepest;
}

bool jobspec_is_deep(const json_t *value)
{
    return depth_of(value, HCL_NESTING_MAX + 1) > HCL_NESTING_MAX;
}

/* {"web": {"datacenters": ...}}: the label of a block stands where fields do. */
static bool is_hcl_as_json(const json_t *job)
{
    void *only = json_object_iter((json_t *)(uintptr_t)job);

    return json_object_size(job) == 1 &&
           jobspec_by_json(&jobspec_job, json_object_iter_key(only)) == NULL &&
           (json_is_object(json_object_iter_value(only)) ||
            json_is_array(json_object_iter_value(only)));
}

/* The job that comes with REQUEST, or is it. */
static json_t *job_of(json_t *request)
{
    json_t *job = request, *item;
    const char *key;

    json_object_foreach(request, key, item)
    {
        if (strcasecmp(key, "Job") == 0 && json_is_object(item))
            job = item;
    }
    return job;
}

/* JOB with known fields only; NULL: it is none at all. */
static json_t *read_json(struct jobspec_work *work, const json_t *job)
{
    if (!json_is_object(job)) {
        jobspec_complain_plainly(work, NULL, "the JSON of a job is an object");
        return NULL;
    }
    if (is_hcl_as_json(job)) {
        jobspec_complain_plainly(work,
                                 "write it in HCL itself, or as `nomad job run -output` prints it",
                                 "this is a job in the JSON form of HCL, which is not read here");
        return NULL;
    }
    if (jobspec_is_deep(job)) {
        jobspec_complain_plainly(work, NULL, "the JSON is nested more than 64 levels deep");
        return NULL;
    }
    return jobspec_read_json(work, job);
}

int jobspec_from_json(const char *name, const json_t *request, json_t **ret_job,
                      struct jobspec_problems *ret_problems)
{
    const json_t *job = job_of((json_t *)(uintptr_t)request); /* only read */
    struct jobspec_work work = {.name = name,
                                .problems = ret_problems,
                                .notes = json_incref(json_object_get(job, JOBSPEC_NOTES))};
    json_t *bare = work.notes == NULL ? NULL : json_copy((json_t *)(uintptr_t)job);

    ret_problems->count = ret_problems->dropped = 0;
    if (bare != NULL)
        check(json_object_del(bare, JOBSPEC_NOTES) == 0);
    int code = jobspec_finish(&work, read_json(&work, bare != NULL ? bare : job), ret_job);
    json_decref(bare);
    return code;
}

void jobspec_note_templates(json_t *request)
{
    struct jobspec_problems *problems = calloc(1, sizeof(*problems));
    struct jobspec_work work = {.problems = problems};
    json_t *job = job_of(request), *notes = json_array();

    check(problems != NULL && notes != NULL);
    (void)json_object_del(job, JOBSPEC_NOTES); /* whoever wrote it, it was not here */
    json_t *raw = read_json(&work, job);
    jobspec_read_templates(raw, notes);
    if (json_array_size(notes) > 0)
        check(json_object_set(job, JOBSPEC_NOTES, notes) == 0);
    json_decref(notes);
    json_decref(raw);
    free(work.origins.items);
    free(problems); /* they are told by who reads all of it */
}

/* {"job": {"web": {...}}}: the members of a job of the API are not all bodies. */
static bool is_hcl_file(const json_t *file)
{
    const json_t *job = json_object_get(file, "job"), *item;
    const char *key;

    json_object_foreach((json_t *)(uintptr_t)(json_is_object(job) ? job : NULL), key, item)
    {
        if (!json_is_object(item) && !json_is_array(item) && !text_equal(key, "//"))
            return false;
    }
    return json_is_array(job) ||
           (json_object_size(job) > 0 && json_object_get(job, "TaskGroups") == NULL);
}

static int parse_json(const struct jobspec_source *source, json_t **ret_job,
                      struct jobspec_problems *problems)
{
    struct jobspec_work work = {
        .name = source->name, .problems = problems, .reads_templates = true};
    char message[ERR_TEXT_SIZE];
    json_error_t error;

    if (source->length > HCL_BYTES_MAX) {
        (void)text_format(message, sizeof(message), "the file has %zu bytes; at most %d are read",
                          source->length, HCL_BYTES_MAX);
        jobspec_complain_plainly(&work, NULL, message);
        return ERR_INVALID;
    }
    /* In HCL's JSON blocks may be repeated as members of one name. */
    json_t *request = json_loadb(source->text, source->length, 0, &error);
    bool hcl = is_hcl_file(request);
    if (request != NULL && !hcl) {
        json_decref(request);
        request = json_loadb(source->text, source->length, JSON_REJECT_DUPLICATES, &error);
    }
    if (request == NULL) {
        (void)text_format(message, sizeof(message), "line %d, column %d: this is not JSON: %s",
                          error.line, error.column, error.text);
        jobspec_complain_plainly(&work, NULL, message);
        return ERR_INVALID;
    }
    int code = hcl ? parse_hcl(source, true, ret_job, problems)
                   : jobspec_finish(&work, read_json(&work, job_of(request)), ret_job);
    json_decref(request);
    return code;
}

int jobspec_parse(const struct jobspec_source *source, json_t **ret_job,
                  struct jobspec_problems *ret_problems)
{
    static const char mark[] = "\xef\xbb\xbf"; /* as in hcl_parse */
    struct jobspec_source plain = *source;
    size_t start = 0;

    if (source->length >= strlen(mark) && memcmp(source->text, mark, strlen(mark)) == 0) {
        plain.text += strlen(mark);
        plain.length -= strlen(mark);
    }
    source = &plain;
    ret_problems->count = ret_problems->dropped = 0;
    while (start < source->length && strchr(" \t\r\n", source->text[start]) != NULL &&
           source->text[start] != '\0')
        start++;
    if (start < source->length && source->text[start] == '{')
        return parse_json(source, ret_job, ret_problems);
    return parse_hcl(source, false, ret_job, ret_problems);
}
