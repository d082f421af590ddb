/* Looking at a job's JSON by its tables: for reading, checking and making allocs alike. */
#include "spec/schema/work.h"

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

bool jobspec_word_value(const struct jobspec_word *words, size_t count, const char *text,
                        int *ret_value)
{
    for (size_t i = 0; i < count; i++) {
        if (text_equal(text, words[i].text)) {
            *ret_value = words[i].value;
            return true;
        }
    }
    return false;
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
    const char *name;
    size_t j;

    for (size_t i = 0; i < schema->count; i++) {
        const struct jobspec_field *field = &schema->fields[i];
        json_t *from = field->json == NULL ? NULL : json_object_get(value, field->json), *to;

        if (from == NULL || (run_only && field->fate != FATE_RUN && field->fate != FATE_SERVED))
            continue;
        if (field->kind == KIND_BLOCK) {
            to = jobspec_arrange(field->block, from, run_only);
        } else if (field->kind == KIND_BLOCKS) {
            to = json_array();
            json_array_foreach(from, j, item) check(
                json_array_append_new(to, jobspec_arrange(field->block, item, run_only)) == 0);
        } else if (field->kind == KIND_NAMED) {
            to = json_object();
            json_object_foreach(from, name, item) check(
                json_object_set_new(to, name, jobspec_arrange(field->block, item, run_only)) == 0);
        } else {
            to = json_incref(from);
        }
        check(json_object_set_new(arranged, field->json, to) == 0);
    }
    return arranged;
}

json_t *jobspec_member(json_t *object, const char *name, json_t *(*make)(void))
{
    json_t *value = json_object_get(object, name);

    if (value == NULL) {
        value = make();
        check(json_object_set_new(object, name, value) == 0);
    }
    return value;
}
