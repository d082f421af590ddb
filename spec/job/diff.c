/*
 * What one job says otherwise than another, as Nomad tells it (v1.1.2 nomad/structs/diff.go,
 * scheduler/annotate.go).
 *
 * It goes by the tables: plain fields and maps of a block are its Fields, blocks in it its Objects.
 * Both jobs are canonical, so what is not there is zero.
 */
#include "spec/job/part.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { CALLED_SIZE = 40 };

enum change { CHANGE_NONE, CHANGE_ADDED, CHANGE_DELETED, CHANGE_EDITED };

static json_t *name_of(enum change change)
{
    static const char *const names[] = {"None", "Added", "Deleted", "Edited"};

    return json_string(names[change]);
}

static enum change change_of(const json_t *before, const json_t *after)
{
    if (before == NULL)
        return after == NULL ? CHANGE_NONE : CHANGE_ADDED;
    if (after == NULL)
        return CHANGE_DELETED;
    return json_equal(before, after) ? CHANGE_NONE : CHANGE_EDITED;
}

static void put(json_t *to, const char *name, json_t *value)
{
    check(json_object_set_new(to, name, value) == 0);
}

static void add(json_t *list, json_t *item)
{
    if (item != NULL)
        check(json_array_append_new(list, item) == 0);
}

/* --- flat fields: names to texts --- */

/* True if a canonical job may have it. */
static bool is_told(const struct jobspec_field *field)
{
    return field->json != NULL && field->fate != FATE_REFUSED && field->fate != FATE_SERVER;
}

/* True if FIELD is what a block of SCHEMA is told from others by. */
static bool is_label(const struct jobspec_schema *schema, const struct jobspec_field *field)
{
    const char *label = schema == &jobspec_job      ? "ID"
                        : schema == &jobspec_volume ? NULL /* a diff has no other place for it */
                                                    : schema->label;

    return label != NULL && text_equal(field->json, label);
}

/* True if it is only what the job's groups inherit, where it is told. */
static bool is_of_groups(const struct jobspec_schema *schema, const struct jobspec_field *field)
{
    return schema == &jobspec_job && field->kind == KIND_BLOCK &&
           (field->block == &jobspec_update || field->block == &jobspec_reschedule ||
            field->block == &jobspec_migrate);
}

static json_t *text_of_bool(const json_t *value)
{
    return json_string(json_is_true(value) ? "true" : "false");
}

static json_t *text_of(const struct jobspec_field *field, const json_t *value)
{
    if (field->kind == KIND_TEXT)
        return json_string(json_is_string(value) ? json_string_value(value) : "");
    if (field->kind == KIND_BOOL)
        return text_of_bool(value);
    return json_sprintf("%" PRId64, (int64_t)json_integer_value(value));
}

/* All of VALUE, of a driver's block; the recursion is bounded as values of jobs are. */
static void flatten_any(json_t *to, const char *name, const json_t *value)
{
    const char *key;
    json_t *item, *part;
    size_t i;
    char *text;

    json_object_foreach((json_t *)(uintptr_t)value, key, item)
    {
        part = name[0] == '\0' ? json_string(key) : json_sprintf("%s[%s]", name, key);
        flatten_any(to, json_string_value(part), item);
        json_decref(part);
    }
    json_array_foreach(value, i, item)
    {
        part = json_sprintf("%s[%zu]", name, i);
        flatten_any(to, json_string_value(part), item);
        json_decref(part);
    }
    if (json_is_object(value) || json_is_array(value))
        return;
    if (json_is_string(value)) {
        check(json_object_set(to, name, (json_t *)(uintptr_t)value) == 0);
        return;
    }
    text = json_dumps(value, JSON_ENCODE_ANY);
    check(text != NULL);
    put(to, name, json_string(text));
    free(text);
}

/* What only Consul's services have, and Nomad tells of others as well. */
static void flatten_others(json_t *to, const struct jobspec_schema *schema)
{
    static const struct {
        const struct jobspec_schema *schema;
        const char *name, *text;
    } others[] = {
        {&jobspec_service_check, "Expose", "false"},
        {&jobspec_service_check, "FailuresBeforeCritical", "0"},
        {&jobspec_service_check, "FailuresBeforeWarning", "0"},
        {&jobspec_service_check, "SuccessBeforePassing", "0"},
        {&jobspec_service_check, "TLSServerName", ""},
        {&jobspec_check_restart, "IgnoreWarnings", "false"},
    };

    for (size_t i = 0; i < COUNT_OF(others); i++) {
        if (others[i].schema == schema)
            put(to, others[i].name, json_string(others[i].text));
    }
}

/* The plain fields and maps of VALUE, a block of SCHEMA, without what names it; none of NULL. */
static json_t *flatten(const struct jobspec_schema *schema, const json_t *value)
{
    static const char *const by_a_server[] = {"Dispatched", "Stop"}; /* what Nomad tells of that */
    json_t *to = json_object(), *item;
    const char *key;

    for (size_t i = 0; value != NULL && i < schema->count; i++) {
        const struct jobspec_field *field = &schema->fields[i];
        const json_t *said = json_object_get(value, field->json);

        if (!is_told(field) || is_label(schema, field))
            continue;
        if (field->kind == KIND_TEXT || field->kind == KIND_BOOL || field->kind == KIND_WHOLE ||
            field->kind == KIND_DURATION)
            put(to, field->json, text_of(field, said));
        json_object_foreach(field->kind == KIND_MAP ? (json_t *)(uintptr_t)said : NULL, key, item)
        {
            json_t *name = json_sprintf("%s[%s]", field->json, key);
            check(json_object_set(to, json_string_value(name), item) == 0);
            json_decref(name);
        }
    }
    if (value != NULL)
        flatten_others(to, schema);
    for (size_t i = 0; schema == &jobspec_job && value != NULL && i < COUNT_OF(by_a_server); i++)
        put(to, by_a_server[i], text_of_bool(json_object_get(value, by_a_server[i])));
    return to;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names of both, sorted; borrowed from them, the list is owned by the caller. */
static const char **names_of(const json_t *before, const json_t *after, size_t *ret_count)
{
    const char **names =
        calloc(json_object_size(before) + json_object_size(after) + 1, sizeof(*names));
    const char *name;
    json_t *value;
    size_t count = 0;

    check(names != NULL);
    json_object_foreach((json_t *)(uintptr_t)before, name, value) names[count++] = name;
    json_object_foreach((json_t *)(uintptr_t)after, name, value)
    {
        if (json_object_get(before, name) == NULL)
            names[count++] = name;
    }
    qsort(names, count, sizeof(*names), by_text);
    *ret_count = count;
    return names;
}

static json_t *field_diff(const char *name, const char *before, const char *after)
{
    enum change change = text_equal(before, after) ? CHANGE_NONE
                         : before[0] == '\0'       ? CHANGE_ADDED
                         : after[0] == '\0'        ? CHANGE_DELETED
                                                   : CHANGE_EDITED;
    json_t *diff = json_pack("{s:o, s:s, s:s, s:s, s:n}", "Type", name_of(change), "Name", name,
                             "Old", before, "New", after, "Annotations");

    check(diff != NULL);
    return diff;
}

/* What differs between flat BEFORE and AFTER (both moved), and with ALL what does not, too. */
static json_t *field_diffs(json_t *before, json_t *after, bool all)
{
    json_t *list = json_array();
    size_t count;
    const char **names = names_of(before, after, &count);

    for (size_t i = 0; i < count; i++) {
        const char *old = json_string_value(json_object_get(before, names[i]));
        const char *new = json_string_value(json_object_get(after, names[i]));

        old = old == NULL ? "" : old;
        new = new == NULL ? "" : new;
        if (all || !text_equal(old, new))
            add(list, field_diff(names[i], old, new));
    }
    free(names);
    json_decref(before);
    json_decref(after);
    return list;
}

/* --- objects --- */

/* What FIELDS (an array) come to. */
static enum change sum_of(const json_t *fields)
{
    bool added = false, deleted = false;
    json_t *field;
    size_t i;

    json_array_foreach(fields, i, field)
    {
        const char *type = json_string_value(json_object_get(field, "Type"));

        if (text_equal(type, "Edited"))
            return CHANGE_EDITED;
        added |= text_equal(type, "Added");
        deleted |= text_equal(type, "Deleted");
    }
    if (added && deleted)
        return CHANGE_EDITED;
    return added ? CHANGE_ADDED : deleted ? CHANGE_DELETED : CHANGE_NONE;
}

/* An object NAME of FIELDS (moved) that comes to CHANGE; NULL if that is nothing. */
static json_t *object_of(const char *name, enum change change, json_t *fields)
{
    if (change != CHANGE_NONE)
        return json_pack("{s:o, s:s, s:o, s:n}", "Type", name_of(change), "Name", name, "Fields",
                         fields, "Objects");
    json_decref(fields);
    return NULL;
}

static json_t *object_diffs(const struct jobspec_schema *schema, const json_t *before,
                            const json_t *after);

static json_t *config_diff(const char *name, const json_t *before, const json_t *after)
{
    json_t *old = json_object(), *new = json_object(), *fields;

    if (before != NULL)
        flatten_any(old, "", before);
    if (after != NULL)
        flatten_any(new, "", after);
    fields = field_diffs(old, new, true);
    return object_of(name, sum_of(fields), fields);
}

/* With the policy, which belongs to whoever scales, in it. */
static json_t *scaling_diff(const json_t *before, const json_t *after)
{
    json_t *policy =
        config_diff("Policy", json_object_get(before, "Policy"), json_object_get(after, "Policy"));
    json_t *old = flatten(&jobspec_scaling, before), *new = flatten(&jobspec_scaling, after);
    enum change change = change_of(before, after);

    (void)json_object_del(old, "Type"); /* there is one */
    (void)json_object_del(new, "Type");
    json_t *diff = object_of("Scaling", change, field_diffs(old, new, false));
    if (diff != NULL && policy != NULL)
        put(diff, "Objects", json_pack("[O]", policy));
    json_decref(policy);
    return diff;
}

static json_t *block_diff(const char *name, const struct jobspec_schema *schema,
                          const json_t *before, const json_t *after)
{
    json_t *fields = field_diffs(flatten(schema, before), flatten(schema, after), true);

    return object_of(name, sum_of(fields), fields);
}

/* As block_diff, and with the blocks in it, of one that is there or is not: what names it may be
 * all that it says. */
static json_t *whole_diff(const char *name, const struct jobspec_schema *schema,
                          const json_t *before, const json_t *after)
{
    json_t *fields = field_diffs(flatten(schema, before), flatten(schema, after), true);
    json_t *diff = object_of(name, change_of(before, after), fields), *objects;

    if (diff == NULL)
        return NULL;
    objects = object_diffs(schema, before, after);
    if (json_array_size(objects) > 0)
        put(diff, "Objects", objects);
    else
        json_decref(objects);
    return diff;
}

/* The members of LIST by what they say: what stands there twice is there once. */
static json_t *set_of(const json_t *list)
{
    json_t *set = json_object(), *item;
    size_t i;

    json_array_foreach(list, i, item)
    {
        char *text = json_dumps(item, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);

        check(text != NULL);
        check(json_object_set(set, text, item) == 0);
        free(text);
    }
    return set;
}

/* "VolumeMount" of "volume_mount", as Nomad calls one of VolumeMounts. */
static void call_one(const struct jobspec_schema *schema, char to[CALLED_SIZE])
{
    bool begins = true;
    size_t length = 0;

    for (const char *at = schema->name; *at != '\0' && length + 1 < CALLED_SIZE; at++) {
        if (*at != '_')
            to[length++] = begins && *at >= 'a' && *at <= 'z' ? (char)(*at - 'a' + 'A') : *at;
        begins = *at == '_';
    }
    to[length] = '\0';
}

/* Lists of blocks are sets: a changed member is one that went and one that came. */
static void set_diff(json_t *to, const struct jobspec_field *field, const json_t *before,
                     const json_t *after)
{
    json_t *old = set_of(before), *new = set_of(after);
    size_t count;
    const char **names = names_of(old, new, &count);
    char called[CALLED_SIZE];

    if (field->block == &jobspec_upstream)
        (void)text_copy(called, sizeof(called), "ConsulUpstreams"); /* fits */
    else
        call_one(field->block, called);
    for (size_t i = 0; i < count; i++) {
        const json_t *was = json_object_get(old, names[i]), *is = json_object_get(new, names[i]);

        if ((was == NULL) != (is == NULL))
            add(to, block_diff(called, field->block, was, is));
    }
    free(names);
    json_decref(old);
    json_decref(new);
}

/* Blocks that have names: one that says something else is edited. */
static void named_blocks_diff(json_t *to, const struct jobspec_field *field, const json_t *before,
                              const json_t *after)
{
    size_t count;
    const char **names = names_of(before, after, &count);
    char called[CALLED_SIZE];

    call_one(field->block, called);
    for (size_t i = 0; i < count; i++)
        add(to, block_diff(called, field->block, json_object_get(before, names[i]),
                           json_object_get(after, names[i])));
    free(names);
}

static json_t *texts_diff(const char *name, const json_t *before, const json_t *after)
{
    json_t *old = set_of(before), *new = set_of(after), *fields = json_array();
    size_t count;
    const char **names = names_of(old, new, &count);

    for (size_t i = 0; i < count; i++) {
        const char *was = json_string_value(json_object_get(old, names[i]));
        const char *is = json_string_value(json_object_get(new, names[i]));

        add(fields, field_diff(name, was == NULL ? "" : was, is == NULL ? "" : is));
    }
    free(names);
    json_decref(old);
    json_decref(new);
    return object_of(name, sum_of(fields), fields);
}

/* LIST by the names of its objects. */
static json_t *by_name(const json_t *list)
{
    json_t *named = json_object(), *item;
    size_t i;

    json_array_foreach(list, i, item)
        check(json_object_set(named, json_string_value(json_object_get(item, "Name")), item) == 0);
    return named;
}

/* Services have no id of their own: the one that is meant has the same name, or the same port, at
 * best both (findServiceMatch).  TAKEN: those that are another one's.  SIZE_MAX: none is. */
static size_t match_service(const json_t *service, size_t at, const json_t *list, const bool *taken)
{
    static const char *const fields[] = {"PortLabel", "Name"};
    size_t best = SIZE_MAX, i;
    int highest = 2;
    const json_t *other;

    json_array_foreach(list, i, other)
    {
        int score = i == at;

        for (int f = 0; f < 2; f++)
            score +=
                json_equal(json_object_get(service, fields[f]), json_object_get(other, fields[f]))
                    ? 2 + f
                    : 0;
        if (taken[i] || score <= highest)
            continue;
        highest = score;
        best = i;
    }
    return best;
}

static void services_diff(json_t *to, const json_t *before, const json_t *after)
{
    bool *taken = calloc(json_array_size(after) + 1, sizeof(*taken));
    bool only = json_array_size(before) == 1 && json_array_size(after) == 1;
    json_t *service;
    size_t i;

    check(taken != NULL);
    json_array_foreach(before, i, service)
    {
        size_t match = only ? 0 : match_service(service, i, after, taken);

        if (match != SIZE_MAX)
            taken[match] = true;
        add(to, whole_diff("Service", &jobspec_service, service,
                           match == SIZE_MAX ? NULL : json_array_get(after, match)));
    }
    json_array_foreach(after, i, service)
    {
        if (!taken[i])
            add(to, whole_diff("Service", &jobspec_service, NULL, service));
    }
    free(taken);
}

static void checks_diff(json_t *to, const json_t *before, const json_t *after)
{
    json_t *old = by_name(before), *new = by_name(after);
    size_t count;
    const char **names = names_of(old, new, &count);

    for (size_t i = 0; i < count; i++)
        add(to, whole_diff("Check", &jobspec_service_check, json_object_get(old, names[i]),
                           json_object_get(new, names[i])));
    free(names);
    json_decref(old);
    json_decref(new);
}

/* Blocks of Consul's mesh are told with those in them: how Nomad calls FIELD, NULL: it is none. */
static const char *name_in_mesh(const struct jobspec_field *field)
{
    static const char *const names[][2] = {{"Connect", "ConsulConnect"},
                                           {"SidecarService", "SidecarService"},
                                           {"SidecarTask", "SidecarTask"},
                                           {"Proxy", "ConsulProxy"},
                                           {"Expose", "Expose"}};

    for (size_t i = 0; field->kind == KIND_BLOCK && i < COUNT_OF(names); i++) {
        if (text_equal(field->json, names[i][0]))
            return names[i][1];
    }
    return NULL;
}

static json_t *object_diffs(const struct jobspec_schema *schema, const json_t *before,
                            const json_t *after)
{
    json_t *list = json_array();

    for (size_t i = 0; i < schema->count; i++) {
        const struct jobspec_field *field = &schema->fields[i];
        const json_t *was = json_object_get(before, field->json);
        const json_t *is = json_object_get(after, field->json);

        if (!is_told(field) || is_of_groups(schema, field))
            continue;
        if (field->block == &jobspec_service)
            services_diff(list, was, is);
        else if (field->block == &jobspec_service_check)
            checks_diff(list, was, is);
        else if (field->block == &jobspec_scaling)
            add(list, scaling_diff(was, is));
        else if (name_in_mesh(field) != NULL)
            add(list, whole_diff(name_in_mesh(field), field->block, was, is));
        else if (field->kind == KIND_BLOCK)
            add(list, block_diff(field->json, field->block, was, is));
        else if (field->kind == KIND_CONFIG || field->kind == KIND_LISTS)
            add(list, config_diff(field->json, was, is));
        else if (field->kind == KIND_TEXTS)
            add(list, texts_diff(field->json, was, is));
        else if (field->kind == KIND_BLOCKS && field->block->label == NULL)
            set_diff(list, field, was, is);
        else if (field->kind == KIND_NAMED)
            named_blocks_diff(list, field, was, is);
    }
    return list;
}

/* --- tasks, groups, the job --- */

static void annotate(json_t *diff, const char *text)
{
    put(diff, "Annotations", json_pack("[s]", text));
}

/* A count that grows makes allocs, and one that shrinks ends some. */
static void annotate_count(json_t *fields)
{
    json_t *field;
    size_t i;
    int64_t before, after;

    json_array_foreach(fields, i, field)
    {
        const char *old = json_string_value(json_object_get(field, "Old"));
        const char *new = json_string_value(json_object_get(field, "New"));

        if (!text_equal(json_string_value(json_object_get(field, "Name")), "Count"))
            continue;
        before = text_to_i64(old, &before) ? before : 0;
        after = text_to_i64(new, &after) ? after : 0;
        if (before != after)
            annotate(field, before < after ? "forces create" : "forces destroy");
    }
}

static json_t *part_diff(const struct jobspec_schema *schema, const char *name,
                         const json_t *before, const json_t *after)
{
    json_t *diff = json_object();

    put(diff, "Type", name_of(change_of(before, after)));
    put(diff, schema == &jobspec_job ? "ID" : "Name", json_string(name));
    put(diff, "Fields", field_diffs(flatten(schema, before), flatten(schema, after), false));
    put(diff, "Objects", object_diffs(schema, before, after));
    return diff;
}

static json_t *task_diff(const char *name, const json_t *before, const json_t *after)
{
    json_t *diff = part_diff(&jobspec_task, name, before, after);
    enum change change = change_of(before, after);

    put(diff, "Annotations", json_null());
    if (change == CHANGE_ADDED)
        annotate(diff, "forces create");
    else if (change == CHANGE_DELETED)
        annotate(diff, "forces destroy");
    else if (change == CHANGE_EDITED)
        annotate(diff, jobspec_task_replaces(before, after) ? "forces create/destroy update"
                                                            : "forces in-place update");
    return diff;
}

/* What DIFF makes of each name in the lists FIELD of BEFORE and AFTER, sorted. */
static json_t *named_diffs(const char *field, const json_t *before, const json_t *after,
                           json_t *(*diff)(const char *name, const json_t *before,
                                           const json_t *after))
{
    json_t *old = by_name(json_object_get(before, field)), *list = json_array();
    json_t *new = by_name(json_object_get(after, field));
    size_t count;
    const char **names = names_of(old, new, &count);

    for (size_t i = 0; i < count; i++)
        add(list, diff(names[i], json_object_get(old, names[i]), json_object_get(new, names[i])));
    free(names);
    json_decref(old);
    json_decref(new);
    return list;
}

static json_t *group_diff(const char *name, const json_t *before, const json_t *after)
{
    json_t *diff = part_diff(&jobspec_group_schema, name, before, after);

    annotate_count(json_object_get(diff, "Fields"));
    put(diff, "Tasks", named_diffs("Tasks", before, after, task_diff));
    put(diff, "Updates", json_null());
    return diff;
}

json_t *jobspec_diff(const json_t *before, const json_t *after)
{
    json_t *diff =
        part_diff(&jobspec_job, json_string_value(json_object_get(after, "ID")), before, after);
    json_t *groups = named_diffs("TaskGroups", before, after, group_diff), *group;
    bool edited = json_array_size(json_object_get(diff, "Fields")) > 0 ||
                  json_array_size(json_object_get(diff, "Objects")) > 0;
    size_t i;

    json_array_foreach(groups, i, group) edited |=
        !text_equal(json_string_value(json_object_get(group, "Type")), "None");
    put(diff, "TaskGroups", groups);
    if (before != NULL) /* what a server adds is no difference */
        put(diff, "Type", name_of(edited ? CHANGE_EDITED : CHANGE_NONE));
    return diff;
}

/* What its items come to is left out of LIST. */
static void strip_annotations(const json_t *list)
{
    json_t *item;
    size_t i;

    json_array_foreach(list, i, item) put(item, "Annotations", json_null());
}

json_t *jobspec_version_diff(const json_t *before, const json_t *after)
{
    json_t *diff = jobspec_diff(before, after), *group;
    size_t i;

    json_array_foreach(json_object_get(diff, "TaskGroups"), i, group)
    {
        strip_annotations(json_object_get(group, "Fields"));
        strip_annotations(json_object_get(group, "Tasks"));
    }
    return diff;
}
