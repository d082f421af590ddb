/*
 * The way of a job file through its stations, and how problems are told.
 *
 * A job is read as far as possible and then checked as a whole, so that a user sees all that is
 * wrong at once; only a syntax error or a met bound ends it early.  A job with any problem is not a
 * job: the caller gets one or the other.
 */
#include "spec/job.h"

#include "spec/part.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- problems --- */

void jobspec_add_error(struct jobspec_work *work, const struct hcl_error *error)
{
    struct jobspec_problems *problems = work->problems;

    if (error->code == ERR_LIMIT)
        work->stopped = true;
    if (problems->count == JOBSPEC_PROBLEMS_MAX) {
        problems->dropped++;
        return;
    }
    size_t at = problems->count++, later;
    while (error->place.line > 0 && at > 0 && problems->places[at - 1].offset > error->place.offset)
        at--; /* checks come after reading, but their problems belong between */
    later = problems->count - 1 - at;
    memmove(problems->items[at + 1], problems->items[at], later * sizeof(problems->items[0]));
    memmove(&problems->places[at + 1], &problems->places[at], later * sizeof(problems->places[0]));
    hcl_error_text(error, problems->items[at], sizeof(problems->items[at]));
    problems->places[at] = error->place;
}

/* An error without a place, for JSON. */
static void complain_plainly(struct jobspec_work *work, const char *hint, const char *message)
{
    struct hcl_error error = {.code = ERR_INVALID};

    (void)text_copy(error.file, sizeof(error.file), work->name); /* cut if long */
    (void)text_copy(error.message, sizeof(error.message), message);
    (void)text_copy(error.hint, sizeof(error.hint), hint);
    for (char *byte = error.message; *byte != '\0'; byte++) {
        if ((unsigned char)*byte < 0x20u || *byte == 0x7f)
            *byte = ' ';
    }
    jobspec_add_error(work, &error);
}

static void complain(struct jobspec_work *work, struct hcl_place place, const char *hint,
                     const char *format, va_list args) __attribute__((format(printf, 4, 0)));

static void complain(struct jobspec_work *work, struct hcl_place place, const char *hint,
                     const char *format, va_list args)
{
    char text[ERR_TEXT_SIZE], message[ERR_TEXT_SIZE];
    struct hcl_error error;

    (void)vsnprintf(text, sizeof(text), format, args); /* cut if long */
    (void)text_format(message, sizeof(message), "%s%s", work->where, text);
    if (work->file == NULL) {
        complain_plainly(work, hint, message);
        return;
    }
    (void)hcl_complain(work->file, place, hint, &error, "%s", message);
    jobspec_add_error(work, &error);
}

void jobspec_complain_at(struct jobspec_work *work, struct hcl_place place, const char *hint,
                         const char *format, ...)
{
    va_list args;

    va_start(args, format);
    complain(work, place, hint, format, args);
    va_end(args);
}

/* The place of FIELD in OBJECT, else of OBJECT, else none. */
static struct hcl_place find_place(const struct jobspec_work *work, const json_t *object,
                                   const char *field)
{
    struct hcl_place found = {0};

    for (size_t i = 0; i < work->origins_count; i++) {
        const struct jobspec_origin *origin = &work->origins[i];

        if (origin->object != object)
            continue;
        if (text_equal(origin->field, field))
            return origin->place;
        if (origin->field[0] == '\0')
            found = origin->place;
    }
    return found;
}

bool jobspec_was_given(const struct jobspec_work *work, const json_t *object, const char *field)
{
    if (work->problems->count == JOBSPEC_PROBLEMS_MAX)
        return false; /* what depends on it is only counted, and that is not worth looking */
    for (size_t i = 0; i < work->origins_count; i++) {
        if (work->origins[i].object == object && text_equal(work->origins[i].field, field))
            return true;
    }
    return false;
}

void jobspec_complain(struct jobspec_work *work, const json_t *object, const char *field,
                      const char *hint, const char *format, ...)
{
    va_list args;

    if (work->problems->count == JOBSPEC_PROBLEMS_MAX) {
        work->problems->dropped++; /* not worth looking for its place */
        return;
    }
    struct hcl_place place = find_place(work, object, field);
    if (place.line == 0)
        place = find_place(work, work->part, ""); /* OBJECT is a default */
    va_start(args, format);
    complain(work, place, hint, format, args);
    va_end(args);
}

void jobspec_remember(struct jobspec_work *work, const json_t *object, const char *field,
                      struct hcl_place place)
{
    if (work->origins_count == work->origins_capacity) {
        size_t capacity = work->origins_capacity == 0 ? 64 : work->origins_capacity * 2;

        work->origins = reallocarray(work->origins, capacity, sizeof(*work->origins));
        check(work->origins != NULL);
        work->origins_capacity = capacity;
    }
    work->origins[work->origins_count++] =
        (struct jobspec_origin){.object = object, .field = field, .place = place};
}

const char *jobspec_name_of(const struct jobspec_work *work, const struct jobspec_field *field)
{
    bool hcl = field->json == NULL || (work->file != NULL && field->hcl != NULL);

    return hcl ? field->hcl : field->json;
}

void jobspec_problems_text(const struct jobspec_problems *problems, char *to, size_t size)
{
    char more[64];

    (void)text_copy(to, size, "");
    for (size_t i = 0; i < problems->count; i++) {
        (void)text_append(to, size, i == 0 ? "" : "\n");
        (void)text_append(to, size, problems->items[i]);
    }
    if (problems->dropped > 0) {
        (void)text_format(more, sizeof(more), "\nand %zu more", problems->dropped);
        (void)text_append(to, size, more);
    }
}

/* --- the way --- */

/* Takes RAW (moved, may be NULL) through defaults and checks. */
static int finish(struct jobspec_work *work, json_t *raw, json_t **ret_job)
{
    struct jobspec_problems *problems = work->problems;
    int code = ERR_INVALID;

    if (raw != NULL && !work->stopped) {
        jobspec_set_defaults(work, raw);
        jobspec_check(work, raw);
    }
    if (problems->count == 0) {
        check(raw != NULL);
        *ret_job = jobspec_arrange(&jobspec_job, raw, false);
        code = 0;
    }
    json_decref(raw);
    free(work->origins);
    return code;
}

static int parse_hcl(const struct jobspec_source *source, json_t **ret_job,
                     struct jobspec_problems *problems)
{
    struct jobspec_work work = {.name = source->name, .problems = problems};
    struct hcl_options options = {.inputs = source->inputs,
                                  .inputs_count = source->inputs_count,
                                  .base_directory = source->base_directory,
                                  .keep_unknown = true};
    struct hcl_error error;
    struct hcl_file *file;

    if (hcl_parse(source->name, source->text, source->length, &file, &error) != 0) {
        jobspec_add_error(&work, &error);
        return ERR_INVALID;
    }
    work.file = file;
    json_t *raw = NULL;
    if (hcl_context_new(file, &options, &work.context, &error) == 0)
        raw = jobspec_read_hcl(&work);
    else
        jobspec_add_error(&work, &error);
    int code = finish(&work, raw, ret_job);
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

int jobspec_from_json(const char *name, const json_t *request, json_t **ret_job,
                      struct jobspec_problems *ret_problems)
{
    struct jobspec_work work = {.name = name, .problems = ret_problems};
    const json_t *job = request, *item;
    const char *key;

    ret_problems->count = ret_problems->dropped = 0;
    json_object_foreach((json_t *)request, key, item)
    {
        if (strcasecmp(key, "Job") == 0 && json_is_object(item))
            job = item;
    }
    if (!json_is_object(job)) {
        complain_plainly(&work, NULL, "the JSON of a job is an object");
        return finish(&work, NULL, ret_job);
    }
    if (depth_of(job, HCL_NESTING_MAX + 1) > HCL_NESTING_MAX) {
        complain_plainly(&work, NULL, "the JSON is nested more than 64 levels deep");
        return finish(&work, NULL, ret_job);
    }
    return finish(&work, jobspec_read_json(&work, job), ret_job);
}

static int parse_json(const struct jobspec_source *source, json_t **ret_job,
                      struct jobspec_problems *problems)
{
    struct jobspec_work work = {.name = source->name, .problems = problems};
    char message[ERR_TEXT_SIZE];
    json_error_t error;

    if (source->length > HCL_BYTES_MAX) {
        (void)text_format(message, sizeof(message), "the file has %zu bytes; at most %d are read",
                          source->length, HCL_BYTES_MAX);
        complain_plainly(&work, NULL, message);
        return ERR_INVALID;
    }
    json_t *request = json_loadb(source->text, source->length, JSON_REJECT_DUPLICATES, &error);
    if (request == NULL) {
        (void)text_format(message, sizeof(message), "line %d, column %d: this is not JSON: %s",
                          error.line, error.column, error.text);
        complain_plainly(&work, NULL, message);
        return ERR_INVALID;
    }
    int code = jobspec_from_json(source->name, request, ret_job, problems);
    json_decref(request);
    return code;
}

int jobspec_parse(const struct jobspec_source *source, json_t **ret_job,
                  struct jobspec_problems *ret_problems)
{
    size_t start = 0;

    ret_problems->count = ret_problems->dropped = 0;
    while (start < source->length && strchr(" \t\r\n", source->text[start]) != NULL &&
           source->text[start] != '\0')
        start++;
    if (start < source->length && source->text[start] == '{')
        return parse_json(source, ret_job, ret_problems);
    return parse_hcl(source, ret_job, ret_problems);
}

/* --- small things that all parts use --- */

bool jobspec_is_empty(const json_t *value)
{
    const char *key;
    json_t *item;
    size_t i;

    if (value == NULL)
        return true;
    if (json_is_number(value))
        return json_number_value(value) == 0.0;
    if (json_is_string(value))
        return json_string_length(value) == 0;
    json_object_foreach((json_t *)value, key, item)
    {
        if (!jobspec_is_empty(item))
            return false;
    }
    json_array_foreach(value, i, item)
    {
        if (!jobspec_is_empty(item))
            return false;
    }
    return !json_is_true(value);
}

const json_t *jobspec_list(const json_t *object, const char *field)
{
    const json_t *list = json_object_get(object, field);

    return json_is_array(list) ? list : NULL; /* jansson takes NULL for an empty array */
}

const json_t *jobspec_group(const json_t *job, const char *name)
{
    const json_t *groups = jobspec_list(job, "TaskGroups");
    json_t *group;
    size_t i;

    json_array_foreach(groups, i, group)
    {
        const char *own = json_string_value(json_object_get(group, "Name"));

        if (own != NULL && text_equal(own, name))
            return group;
    }
    return NULL;
}

json_t *jobspec_arrange(const struct jobspec_schema *schema, const json_t *value, bool run_only)
{
    json_t *arranged = json_object(), *item;
    size_t j;

    for (size_t i = 0; i < schema->count; i++) {
        const struct jobspec_field *field = &schema->fields[i];
        json_t *from = field->json == NULL ? NULL : json_object_get(value, field->json), *to;

        if (from == NULL || (run_only && field->fate != FATE_RUN))
            continue;
        if (field->kind == KIND_BLOCK) {
            to = jobspec_arrange(field->block, from, run_only);
        } else if (field->kind == KIND_BLOCKS) {
            to = json_array();
            json_array_foreach(from, j, item) check(
                json_array_append_new(to, jobspec_arrange(field->block, item, run_only)) == 0);
        } else {
            to = json_incref(from);
        }
        check(json_object_set_new(arranged, field->json, to) == 0);
    }
    return arranged;
}
