/*
 * From text to fields: HCL blocks or a JSON object, read by the tables of schema.c.
 *
 * What comes out has known fields only, each of its type and in its range.  Unknown names, wrong
 * types and refused fields become problems, and reading goes on.
 */
#include "spec/job/part.h"

#include <string.h>

enum { BLOCKS_MAX = 1000 }; /* of one kind in one place; keeps later loops short */

/* --- values, whatever they came from --- */

/* Why a value does not fit. */
struct mismatch {
    const char *wanted;
    const json_t *found; /* borrowed from the value; NULL: not told */
    const char *key;     /* of a map: whose value it is */
};

static json_t *convert_whole(json_t *value, const char *wanted, struct mismatch *ret_mismatch)
{
    json_t *number = hcl_convert(value, HCL_NUMBER);

    if (number != NULL && json_is_integer(number))
        return number;
    json_decref(number);
    *ret_mismatch = (struct mismatch){.wanted = wanted, .found = value};
    return NULL;
}

static json_t *convert_duration(json_t *value, struct mismatch *ret_mismatch)
{
    static const char wanted[] = "a duration like \"30s\" or \"1h15m\"";
    int64_t ns;

    if (!json_is_string(value))
        return convert_whole(value, wanted, ret_mismatch);
    if (text_to_duration_ns(json_string_value(value), &ns))
        return json_integer(ns);
    *ret_mismatch = (struct mismatch){.wanted = wanted, .found = value};
    return NULL;
}

static json_t *convert_texts(json_t *value, struct mismatch *ret_mismatch)
{
    static const char wanted[] = "a list of strings";
    json_t *list = json_array(), *item;
    bool fits = json_is_array(value);
    size_t i;

    *ret_mismatch = (struct mismatch){.wanted = wanted, .found = value};
    json_array_foreach(value, i, item)
    {
        json_t *text = hcl_convert(item, HCL_STRING);

        if (text != NULL) {
            check(json_array_append_new(list, text) == 0);
            continue;
        }
        fits = false;
        ret_mismatch->found = item;
    }
    if (fits)
        return list;
    json_decref(list);
    return NULL;
}

static json_t *convert_map(json_t *value, struct mismatch *ret_mismatch)
{
    json_t *map = json_object(), *item;
    bool fits = json_is_object(value);
    const char *key;

    *ret_mismatch = (struct mismatch){.wanted = "a map of strings", .found = value};
    json_object_foreach(value, key, item)
    {
        json_t *text = hcl_convert(item, HCL_STRING);

        if (text != NULL) {
            check(json_object_set_new(map, key, text) == 0);
            continue;
        }
        fits = false;
        *ret_mismatch = (struct mismatch){.wanted = "a string", .found = item, .key = key};
    }
    if (fits)
        return map;
    json_decref(map);
    return NULL;
}

static json_t *convert_lists(json_t *value, struct mismatch *ret_mismatch)
{
    json_t *map = json_object(), *item;
    bool fits = json_is_object(value);
    const char *key;

    *ret_mismatch = (struct mismatch){.wanted = "a map of lists of strings", .found = value};
    json_object_foreach(value, key, item)
    {
        struct mismatch inner;
        json_t *list = json_is_null(item) ? json_array() : convert_texts(item, &inner);

        if (list != NULL) {
            check(json_object_set_new(map, key, list) == 0);
            continue;
        }
        fits = false;
        *ret_mismatch = inner;
        ret_mismatch->key = key;
    }
    if (fits)
        return map;
    json_decref(map);
    return NULL;
}

/* VALUE as FIELD has it, a new reference, or NULL. */
static json_t *convert(const struct jobspec_field *field, json_t *value,
                       struct mismatch *ret_mismatch)
{
    ret_mismatch->found = value;
    switch (field->kind) {
    case KIND_TEXT:
    case KIND_OPERAND:
        ret_mismatch->wanted = "a string";
        return hcl_convert(value, HCL_STRING);
    case KIND_BOOL:
        ret_mismatch->wanted = "true or false";
        return hcl_convert(value, HCL_BOOL);
    case KIND_WHOLE:
        return convert_whole(value, "a whole number", ret_mismatch);
    case KIND_DURATION:
        return convert_duration(value, ret_mismatch);
    case KIND_TEXTS:
        return convert_texts(value, ret_mismatch);
    case KIND_MAP:
        return convert_map(value, ret_mismatch);
    case KIND_LISTS:
        return convert_lists(value, ret_mismatch);
    case KIND_CONFIG:
        ret_mismatch->wanted = "an object";
        if (!json_is_object(value))
            return NULL;
        /* JSON has larger numbers, and its readers have not. */
        *ret_mismatch = (struct mismatch){.wanted = "without numbers over 1.8e308"};
        return hcl_plain(value);
    case KIND_BLOCK:
    case KIND_BLOCKS:
    case KIND_NAMED:
    case KIND_TASK:
    case KIND_ANY:
        break;
    }
    unreachable("blocks are read, not converted");
}

static void complain_mismatch(struct jobspec_work *work, const struct jobspec_field *field,
                              const struct mismatch *mismatch, struct hcl_place place)
{
    char found[80], key[80] = "";

    if (mismatch->found == NULL) {
        jobspec_complain_at(work, place, NULL, "%s must be %s", jobspec_name_of(work, field),
                            mismatch->wanted);
        return;
    }
    json_t *number = text_equal(hcl_type_text(mismatch->found), "a number")
                         ? hcl_convert((json_t *)mismatch->found, HCL_STRING)
                         : NULL;

    if (json_is_string(mismatch->found))
        (void)text_format(found, sizeof(found), "\"%.60s\"", json_string_value(mismatch->found));
    else if (number != NULL)
        (void)text_format(found, sizeof(found), "%.60s", json_string_value(number));
    else
        (void)text_copy(found, sizeof(found), hcl_type_text(mismatch->found));
    json_decref(number);
    if (mismatch->key != NULL)
        (void)text_format(key, sizeof(key), "\"%.60s\" in ", mismatch->key);
    jobspec_complain_at(work, place, NULL, "%s%s must be %s, but is %s", key,
                        jobspec_name_of(work, field), mismatch->wanted, found);
}

/* True if VALUE (a whole number or a duration) is in the field's range. */
static bool check_range(struct jobspec_work *work, const struct jobspec_field *field,
                        const json_t *value, struct hcl_place place)
{
    json_int_t number = json_integer_value(value);
    const char *name = jobspec_name_of(work, field);

    if ((field->kind != KIND_WHOLE && field->kind != KIND_DURATION) ||
        (number >= field->min && number <= field->max))
        return true;
    if (field->kind == KIND_DURATION)
        jobspec_complain_at(work, place, NULL, "%s must %s", name,
                            number < 0 ? "not be negative" : "be shorter than 100 years");
    else if (number < field->min)
        jobspec_complain_at(work, place, NULL, "%s must be at least %lld, but is %lld", name,
                            (long long)field->min, (long long)number);
    else
        jobspec_complain_at(work, place, NULL, "%s must be at most %lld, but is %lld", name,
                            (long long)field->max, (long long)number);
    return false;
}

/* Sets FIELD of OBJECT from VALUE (borrowed), or complains. */
static void set_field(struct jobspec_work *work, const struct jobspec_field *field, json_t *object,
                      json_t *value, struct hcl_place place)
{
    struct mismatch mismatch = {0};

    if (json_is_null(value))
        return;
    if (field->json != NULL)
        jobspec_remember(work, object, field->json, place);
    json_t *converted = convert(field, value, &mismatch);
    if (converted == NULL) {
        complain_mismatch(work, field, &mismatch, place);
        return;
    }
    if (!check_range(work, field, converted, place)) {
        json_decref(converted);
        return;
    }
    if (field->kind == KIND_OPERAND) {
        bool property = text_equal(field->hcl, "distinct_property");
        bool hosts = text_equal(field->hcl, "distinct_hosts");
        bool plainly = hosts && text_equal(json_string_value(converted), "true");

        check(json_object_set_new(object, "Operand", json_string(field->hcl)) == 0);
        if (!plainly)
            check(json_object_set(object, property ? "LTarget" : "RTarget", converted) == 0);
        json_decref(converted);
        return;
    }
    check(json_object_set_new(object, field->json, converted) == 0);
}

static void refuse(struct jobspec_work *work, const struct jobspec_field *field,
                   struct hcl_place place, bool block)
{
    const char *name = jobspec_name_of(work, field);

    work->refused = true;
    if (field->fate == FATE_SERVED)
        jobspec_complain_at(work, place, field->advice,
                            block ? "the block \"%s\" is for jobs of servers only"
                                  : "%s is for jobs of servers only",
                            name);
    else if (block)
        jobspec_complain_at(work, place, field->advice, "the block \"%s\" is not supported yet",
                            name);
    else
        jobspec_complain_at(work, place, field->advice, "%s is not supported yet", name);
}

/* Extends `where` by a part of the job; SAVED gets the old text for leave_part. */
static void enter_part(struct jobspec_work *work, const struct jobspec_schema *schema,
                       const char *name, char saved[sizeof(work->where)])
{
    (void)text_copy(saved, sizeof(work->where), work->where);
    if (schema != &jobspec_group_schema && schema != &jobspec_task)
        return;
    size_t length = strlen(work->where);
    if (length >= 2)
        (void)text_copy(work->where + length - 2, sizeof(work->where) - length + 2, ", ");
    (void)text_append(work->where, sizeof(work->where), schema->name);
    if (name != NULL) {
        char quoted[110];

        (void)text_format(quoted, sizeof(quoted), " \"%.100s\"", name);
        (void)text_append(work->where, sizeof(work->where), quoted);
    }
    if (!text_append(work->where, sizeof(work->where), ": "))
        (void)text_copy(work->where + sizeof(work->where) - 3, 3, ": ");
}

static void leave_part(struct jobspec_work *work, const char saved[sizeof(work->where)])
{
    (void)text_copy(work->where, sizeof(work->where), saved);
}

/* --- HCL --- */

struct reading {
    struct jobspec_work *work;
    const struct jobspec_schema *schema;
    json_t *object;
    json_t *alone; /* job: groups made of tasks outside groups; NULL elsewhere */
};

static json_t *read_body(struct jobspec_work *work, const struct hcl_scope *scope,
                         const struct jobspec_schema *schema, const struct hcl_block *block);

static bool is_block_kind(enum jobspec_kind kind)
{
    return kind == KIND_BLOCK || kind == KIND_BLOCKS || kind == KIND_NAMED || kind == KIND_TASK ||
           kind == KIND_CONFIG;
}

/* NAME is nothing that SCHEMA knows: what might have been meant? */
static void complain_unknown(struct jobspec_work *work, const struct jobspec_schema *schema,
                             const char *name, struct hcl_place place, bool block)
{
    const char *names[64];
    size_t count = 0;
    char hint[ERR_TEXT_SIZE] = "";

    if (work->problems->count == JOBSPEC_PROBLEMS_MAX) {
        work->problems->dropped++; /* not worth looking for what was meant */
        return;
    }
    for (size_t i = 0; i < schema->count && count < COUNT_OF(names); i++) {
        const char *own = work->file != NULL ? schema->fields[i].hcl : schema->fields[i].json;

        if (own != NULL)
            names[count++] = own;
    }
    const char *closest = hcl_closest(name, names, count);
    const struct jobspec_schema *home = jobspec_home_of(schema, name);
    if (home != NULL && work->file != NULL)
        (void)text_format(hint, sizeof(hint), "\"%.60s\" belongs in the block \"%s\"", name,
                          home->name);
    else if (closest != NULL)
        (void)text_format(hint, sizeof(hint), "did you mean \"%s\"?", closest);
    jobspec_complain_at(work, place, hint, "unknown %s \"%.60s\" in the block \"%s\"",
                        work->file == NULL ? "field"
                        : block            ? "block"
                                           : "argument",
                        name, schema->name);
}

static void read_attribute(struct jobspec_work *work, const struct hcl_scope *scope,
                           const struct jobspec_schema *schema, json_t *object,
                           const struct hcl_attribute *attribute)
{
    const struct jobspec_field *field = jobspec_by_hcl(schema, attribute->name);
    struct hcl_error error;
    json_t *value;

    if (field == NULL) {
        complain_unknown(work, schema, attribute->name, attribute->place, false);
        return;
    }
    if (is_block_kind(field->kind)) {
        char hint[ERR_TEXT_SIZE];

        (void)text_format(hint, sizeof(hint), "write %s { ... } without the =", field->hcl);
        jobspec_complain_at(work, attribute->place, hint, "\"%s\" is a block, not an argument",
                            field->hcl);
        return;
    }
    if (hcl_evaluate(work->context, scope, attribute->value, &value, &error) != 0) {
        jobspec_add_error(work, &error);
        if (field->json != NULL) {
            jobspec_remember(work, object, field->json, attribute->place);
            work->origins.items[work->origins.count - 1].told = true;
        }
        return;
    }
    if (field->fate == FATE_REFUSED || field->fate == FATE_SERVED) {
        if (!jobspec_is_empty(value))
            refuse(work, field, attribute->place, false);
    } else {
        set_field(work, field, object, value, hcl_expression_place(attribute->value));
    }
    json_decref(value);
}

static bool is_map(enum jobspec_kind kind)
{
    return kind == KIND_MAP || kind == KIND_LISTS;
}

/* A map or a driver's configuration written as a block. */
static void read_free_block(struct jobspec_work *work, const struct hcl_scope *scope,
                            const struct jobspec_field *field, json_t *object,
                            const struct hcl_block *block)
{
    struct hcl_error error;
    json_t *value;

    if (block->labels_count > 0) {
        jobspec_complain_at(work, block->place, NULL, "a block \"%s\" has no label", field->hcl);
        return;
    }
    if (is_map(field->kind) && block->body.blocks_count > 0) {
        jobspec_complain_at(work, block->body.blocks[0].place, "write name = \"value\"",
                            "the block \"%s\" holds names and values only", field->hcl);
        return;
    }
    if (hcl_body_value(work->context, scope, &block->body, &value, &error) != 0) {
        jobspec_add_error(work, &error);
        return;
    }
    set_field(work, field, object, value, block->place);
    json_decref(value);
}

static bool check_labels(struct jobspec_work *work, const struct jobspec_schema *schema,
                         const struct hcl_block *block)
{
    size_t wanted = schema->label == NULL ? 0 : 1;
    char hint[ERR_TEXT_SIZE];

    if (block->labels_count == wanted)
        return true;
    (void)text_format(hint, sizeof(hint),
                      wanted == 1 ? "write %.40s \"name\" { ... }" : "write %.40s { ... }",
                      block->type);
    jobspec_complain_at(work, block->place, hint,
                        wanted == 1 ? "a block \"%.40s\" has one label, its name"
                                    : "a block \"%.40s\" has no label",
                        block->type);
    return false;
}

static void add_block(struct reading *reading, const struct jobspec_field *field,
                      const struct hcl_block *block, json_t *value)
{
    json_t *list = json_object_get(reading->object, field->json);

    if (field->kind == KIND_BLOCK) {
        jobspec_remember(reading->work, reading->object, field->json, block->place);
        check(json_object_set_new(reading->object, field->json, value) == 0);
        return;
    }
    if (list == NULL) {
        list = json_array();
        check(json_object_set_new(reading->object, field->json, list) == 0);
    }
    if (json_array_size(list) >= BLOCKS_MAX) {
        jobspec_complain_at(reading->work, block->place, NULL, "more than %d blocks \"%s\"",
                            BLOCKS_MAX, field->hcl);
        reading->work->stopped = true;
        json_decref(value);
        return;
    }
    check(json_array_append_new(list, value) == 0);
}

/* Adds VALUE (moved) under its name, of which there was none. */
static void add_named(struct reading *reading, const struct jobspec_field *field,
                      const struct hcl_block *block, json_t *value)
{
    json_t *named = json_object_get(reading->object, field->json);

    if (named == NULL) {
        named = json_object();
        check(json_object_set_new(reading->object, field->json, named) == 0);
    }
    check(json_object_set_new(named, block->labels[0], value) == 0);
}

/* True if BLOCK may be added so. */
static bool may_add_named(struct reading *reading, const struct jobspec_field *field,
                          const struct hcl_block *block)
{
    const json_t *named = json_object_get(reading->object, field->json);
    bool is_second = json_object_get(named, block->labels[0]) != NULL;

    if (is_second)
        jobspec_complain_at(reading->work, block->place, "remove one of them",
                            "a second %s \"%.60s\"", field->hcl, block->labels[0]);
    else if (json_object_size(named) >= BLOCKS_MAX)
        jobspec_complain_at(reading->work, block->place, NULL, "more than %d blocks \"%s\"",
                            BLOCKS_MAX, field->hcl);
    return !is_second && json_object_size(named) < BLOCKS_MAX;
}

/* A task outside any group gets a group of its own name, as in Nomad. */
static void add_lone_task(struct reading *reading, const struct hcl_block *block, json_t *task)
{
    json_t *group = json_object(), *tasks = json_array();

    check(json_array_append_new(tasks, task) == 0);
    check(json_object_set(group, "Name", json_object_get(task, "Name")) == 0);
    check(json_object_set_new(group, "Tasks", tasks) == 0);
    jobspec_remember(reading->work, group, "", block->place);
    if (json_array_size(reading->alone) < BLOCKS_MAX)
        check(json_array_append(reading->alone, group) == 0);
    json_decref(group);
}

static int read_block(void *ctx, const struct hcl_block *block, const struct hcl_scope *scope,
                      struct hcl_error *error)
{
    struct reading *reading = ctx;
    struct jobspec_work *work = reading->work;
    const struct jobspec_field *field = jobspec_by_hcl(reading->schema, block->type);

    (void)error; /* problems are collected instead */
    if (work->stopped)
        return 0;
    if (field == NULL) {
        complain_unknown(work, reading->schema, block->type, block->place, true);
        return 0;
    }
    if (field->fate == FATE_REFUSED || field->fate == FATE_SERVED) {
        refuse(work, field, block->place, true);
        return 0;
    }
    if (!is_block_kind(field->kind) && !is_map(field->kind)) {
        char hint[ERR_TEXT_SIZE];

        (void)text_format(hint, sizeof(hint), "write %s = ...", field->hcl);
        jobspec_complain_at(work, block->place, hint, "\"%s\" is an argument, not a block",
                            field->hcl);
        return 0;
    }
    if (field->json != NULL && field->kind != KIND_BLOCKS && field->kind != KIND_NAMED &&
        json_object_get(reading->object, field->json) != NULL) {
        jobspec_complain_at(work, block->place, "remove one of them", "\"%s\" is given twice",
                            field->hcl);
        return 0;
    }
    if (is_map(field->kind) || field->kind == KIND_CONFIG) {
        read_free_block(work, scope, field, reading->object, block);
        return 0;
    }
    if (!check_labels(work, field->block, block) ||
        (field->kind == KIND_NAMED && !may_add_named(reading, field, block)))
        return 0;
    json_t *value = read_body(work, scope, field->block, block);
    if (field->kind == KIND_TASK)
        add_lone_task(reading, block, value);
    else if (field->kind == KIND_NAMED)
        add_named(reading, field, block, value);
    else
        add_block(reading, field, block, value);
    return 0;
}

/* The recursion follows the tables, which nest six deep. */
static json_t *read_body(struct jobspec_work *work, const struct hcl_scope *scope,
                         const struct jobspec_schema *schema, const struct hcl_block *block)
{
    struct reading reading = {.work = work, .schema = schema, .object = json_object()};
    struct hcl_error error;
    char saved[sizeof(work->where)];

    enter_part(work, schema, block->labels_count > 0 ? block->labels[0] : NULL, saved);
    jobspec_remember(work, reading.object, "", block->place);
    if (schema->label != NULL && block->labels_count > 0)
        check(json_object_set_new(reading.object, schema->label, json_string(block->labels[0])) ==
              0);
    if (schema == &jobspec_job)
        reading.alone = json_array();
    for (size_t i = 0; i < block->body.attributes_count && !work->stopped; i++)
        read_attribute(work, scope, schema, reading.object, &block->body.attributes[i]);
    if (!work->stopped &&
        hcl_each_block(work->context, scope, &block->body, read_block, &reading, &error) != 0)
        jobspec_add_error(work, &error);
    if (json_array_size(reading.alone) > 0) {
        json_t *groups = json_object_get(reading.object, "TaskGroups");

        check(groups == NULL || json_array_extend(reading.alone, groups) == 0);
        check(json_object_set(reading.object, "TaskGroups", reading.alone) == 0);
    }
    json_decref(reading.alone);
    leave_part(work, saved);
    return reading.object;
}

json_t *jobspec_read_hcl(struct jobspec_work *work)
{
    static const char *const known[] = {"job", "locals", "variable", "variables"};
    const struct hcl_body *root = hcl_root(work->file);
    const struct hcl_block *job = NULL;

    for (size_t i = 0; i < root->attributes_count; i++)
        jobspec_complain_at(work, root->attributes[i].place,
                            "a job file is job \"name\" { ... }, with variable and locals blocks",
                            "unexpected argument \"%.60s\" outside the job",
                            root->attributes[i].name);
    for (size_t i = 0; i < root->blocks_count; i++) {
        const struct hcl_block *block = &root->blocks[i];
        bool found = false;

        for (size_t j = 0; j < COUNT_OF(known); j++)
            found = found || text_equal(block->type, known[j]);
        if (!found) {
            const char *closest = hcl_closest(block->type, known, COUNT_OF(known));
            char hint[ERR_TEXT_SIZE] = "";

            if (closest != NULL)
                (void)text_format(hint, sizeof(hint), "did you mean \"%s\"?", closest);
            jobspec_complain_at(work, block->place, hint,
                                "unexpected block \"%.60s\" outside the job", block->type);
        } else if (text_equal(block->type, "job") && job != NULL) {
            jobspec_complain_at(work, block->place, "write one file for each job",
                                "a second job in one file, the first is at line %u",
                                job->place.line);
        } else if (text_equal(block->type, "job")) {
            job = block;
        }
    }
    if (job == NULL && work->problems->count == 0)
        jobspec_complain_at(work, root->end, "write job \"name\" { ... }",
                            "there is no job in this file");
    if (job == NULL || !check_labels(work, &jobspec_job, job))
        return NULL;
    json_t *object = read_body(work, NULL, &jobspec_job, job);
    if (json_object_get(object, "Name") == NULL) /* its label, whatever its id */
        check(json_object_set_new(object, "Name", json_string(job->labels[0])) == 0);
    return object;
}

/* --- JSON --- */

static json_t *read_object(struct jobspec_work *work, const struct jobspec_schema *schema,
                           const json_t *value);

static void read_objects(struct jobspec_work *work, const struct jobspec_field *field,
                         json_t *object, const json_t *value)
{
    json_t *list, *item;
    size_t i;

    if (!json_is_array(value) || json_array_size(value) > BLOCKS_MAX) {
        jobspec_complain_at(work, (struct hcl_place){0}, NULL,
                            "%s must be a list of at most %d objects", field->json, BLOCKS_MAX);
        return;
    }
    list = json_array();
    json_array_foreach(value, i, item)
    {
        if (json_is_object(item))
            check(json_array_append_new(list, read_object(work, field->block, item)) == 0);
        else
            jobspec_complain_at(work, (struct hcl_place){0}, NULL,
                                "%s[%zu] must be an object, but this is %s", field->json, i,
                                hcl_type_text(item));
    }
    check(json_object_set_new(object, field->json, list) == 0);
}

static void read_named(struct jobspec_work *work, const struct jobspec_field *field, json_t *object,
                       json_t *value)
{
    json_t *named, *item;
    const char *name;

    if (!json_is_object(value) || json_object_size(value) > BLOCKS_MAX) {
        jobspec_complain_at(work, (struct hcl_place){0}, NULL,
                            "%s must be an object of at most %d objects by their names",
                            field->json, BLOCKS_MAX);
        return;
    }
    named = json_object();
    json_object_foreach(value, name, item)
    {
        if (json_is_object(item))
            check(json_object_set_new(named, name, read_object(work, field->block, item)) == 0);
        else
            jobspec_complain_at(work, (struct hcl_place){0}, NULL,
                                "%s \"%.60s\" must be an object, but this is %s", field->json, name,
                                hcl_type_text(item));
    }
    check(json_object_set_new(object, field->json, named) == 0);
}

/* What of a served job is nobody's business here: servers alone act on it, or nobody does.  Of
 * services and restarts other fields get it as theirs, and there is one Consul. */
static bool is_of_servers(const struct jobspec_schema *schema, const struct jobspec_field *field)
{
    return field->fate == FATE_KEPT ||
           (field->fate == FATE_PLACE && schema != &jobspec_service && schema != &jobspec_consul &&
            field->block != &jobspec_restart && field->block != &jobspec_consul);
}

/* Go has a value for all that nobody said.  Numbers are as they are meant, and so are lists of
 * texts and the place of an artifact, where "" is one. */
static bool is_unsaid(const struct jobspec_field *field, const json_t *value)
{
    switch (field->kind) {
    case KIND_TEXT:
        return json_is_string(value) && json_string_length(value) == 0 &&
               !text_equal(field->json, "RelativeDest");
    case KIND_BOOL:
        return json_is_false(value);
    case KIND_MAP:
    case KIND_LISTS:
    case KIND_CONFIG:
    case KIND_NAMED:
        return json_is_object(value) && json_object_size(value) == 0;
    case KIND_BLOCKS:
        return json_is_array(value) && json_array_size(value) == 0;
    case KIND_WHOLE:
    case KIND_DURATION:
    case KIND_TEXTS:
    case KIND_BLOCK:
    case KIND_OPERAND:
    case KIND_TASK:
    case KIND_ANY:
        return false;
    }
    unreachable("closed enum");
}

/* A field that no table has. */
static void read_unknown(struct jobspec_work *work, const struct jobspec_schema *schema,
                         const char *key, const json_t *value)
{
    struct hcl_place nowhere = {0};

    if (!work->served) {
        complain_unknown(work, schema, key, nowhere, false);
    } else if (!jobspec_is_empty(value)) {
        work->refused = true;
        jobspec_complain_at(work, nowhere, NULL, "%.60s of the %s is not known here", key,
                            schema->name);
    }
}

static void read_member(struct jobspec_work *work, const struct jobspec_schema *schema,
                        json_t *object, const char *key, json_t *value)
{
    const struct jobspec_field *field = jobspec_by_json(schema, key);
    struct hcl_place nowhere = {0};

    if (field == NULL) {
        read_unknown(work, schema, key, value);
        return;
    }
    if (json_is_null(value) || field->fate == FATE_SERVER)
        return;
    if (work->served && (is_of_servers(schema, field) || is_unsaid(field, value)))
        return;
    if (field->fate == FATE_REFUSED || (field->fate == FATE_SERVED && !work->served)) {
        if (!jobspec_is_empty(value))
            refuse(work, field, nowhere, false);
    } else if (json_object_get(object, field->json) != NULL) {
        jobspec_complain_at(work, nowhere, NULL, "%s is given twice, in different case",
                            field->json);
    } else if (field->kind == KIND_BLOCKS) {
        read_objects(work, field, object, value);
    } else if (field->kind == KIND_NAMED) {
        read_named(work, field, object, value);
    } else if (field->kind == KIND_BLOCK && json_is_object(value)) {
        check(json_object_set_new(object, field->json, read_object(work, field->block, value)) ==
              0);
    } else if (field->kind == KIND_BLOCK) {
        jobspec_complain_at(work, nowhere, NULL, "%s must be an object, but this is %s",
                            field->json, hcl_type_text(value));
    } else {
        set_field(work, field, object, value, nowhere);
    }
}

static json_t *read_object(struct jobspec_work *work, const struct jobspec_schema *schema,
                           const json_t *value)
{
    json_t *object = json_object(), *item;
    char saved[sizeof(work->where)];
    const char *key;

    enter_part(work, schema, json_string_value(json_object_get(value, "Name")), saved);
    json_object_foreach((json_t *)value, key, item)
    {
        if (!work->stopped)
            read_member(work, schema, object, key, item);
    }
    leave_part(work, saved);
    return object;
}

json_t *jobspec_read_json(struct jobspec_work *work, const json_t *value)
{
    return read_object(work, &jobspec_job, value);
}
