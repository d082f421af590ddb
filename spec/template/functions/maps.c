/* Functions of templates that make maps of maps and of texts. */
#include "spec/template/functions/part.h"

#include <stdlib.h>
#include <string.h>

/* MADE, which is taken, unless it is nested too deep or an error is told. */
static json_t *give_made(const struct call *call, json_t *made)
{
    if (call->evaluating->code == 0 && value_is_deep(made, VALUE_DEEP))
        (void)template_fail(call->evaluating, ERR_LIMIT, "%s: nested more than %d deep", call->name,
                            VALUE_DEEP - 1);
    if (call->evaluating->code == 0)
        return made;
    json_decref(made);
    return NULL;
}

/* --- explodeMap --- */

/* The map KEY (of LENGTH bytes) of MAP, which it gets if there is none; a copy of it where it came
 * with what was given, which is not changed.  NULL: that is none. */
static json_t *map_below(json_t *map, const char *key, size_t length, const json_t *given)
{
    json_t *below = json_object_getn(map, key, length);

    if (below == NULL || (json_is_object(below) && below == json_object_getn(given, key, length))) {
        below = below == NULL ? json_object() : json_copy(below);
        check(json_object_setn_new(map, key, length, below) == 0);
    }
    return json_is_object(below) ? below : NULL;
}

/* VALUE comes where KEY leads: "a/b" is b of a. */
static void explode(const struct call *call, json_t *map, const char *key, json_t *value)
{
    const json_t *given = call->arguments[0];

    for (const char *end; (end = strchr(key, '/')) != NULL; key = end + 1) {
        if (!template_charge(call->evaluating, 1 + json_object_size(map)))
            return;
        json_t *below = map_below(map, key, (size_t)(end - key), given);
        if (below == NULL) {
            (void)template_fail(call->evaluating, ERR_INVALID,
                                "%s: not a map: \"%.60s\" already has a value", call->name, key);
            return;
        }
        /* What is further below and was given is known by where it was. */
        given = given == NULL ? NULL : json_object_getn(given, key, (size_t)(end - key));
        map = below;
    }
    if (*key != '\0')
        check(json_object_set(map, key, value) == 0);
}

static json_t *run_explode_map(const struct call *call)
{
    const json_t *given = call->arguments[0];
    size_t count;

    if (json_is_null(given))
        return json_object();
    if (!json_is_object(given))
        return call_refuse(call, "wrong type of argument: a map is needed");
    const char **keys = value_keys(given, &count);
    json_t *made = json_object();
    for (size_t i = 0; i < count && template_charge(call->evaluating, 1); i++)
        explode(call, made, keys[i], json_object_get(given, keys[i]));
    free(keys);
    return give_made(call, made);
}

/* --- mergeMap --- */

/* As mergo: what is empty counts as missing. */
static json_t *merge(const struct call *call, const json_t *first, const json_t *second, bool over)
{
    json_t *made = json_copy((json_t *)first), *value;
    const char *key;

    check(made != NULL);
    if (!template_charge(call->evaluating, json_object_size(first) + json_object_size(second)))
        return made;
    json_object_foreach((json_t *)second, key, value)
    {
        json_t *old = json_object_get(made, key);
        bool is_empty = old == NULL || !template_truth(old);

        if (json_is_object(value) && json_is_object(old) && !is_empty)
            check(json_object_set_new(made, key, merge(call, old, value, over)) == 0);
        else if (over || (is_empty && !json_is_null(value)))
            check(json_object_set(made, key, value) == 0);
    }
    return made;
}

static json_t *run_merge_map(const struct call *call)
{
    const json_t *first = call->arguments[0], *second = call->arguments[1];

    if (!json_is_object(first) || !json_is_object(second))
        return call_refuse(call, "wrong type of argument: maps are needed");
    return give_made(call,
                     merge(call, first, second, text_equal(call->name, "mergeMapWithOverride")));
}

/* --- splitToMap --- */

static void add_pair(const struct call *call, json_t *map, const char *text, size_t length)
{
    const char *between = call_text(call, 1);
    const char *at = memmem(text, length, between, strlen(between));

    if (at == NULL)
        return;
    const char *rest = at + strlen(between);
    json_t *key = call_give(call, text, (size_t)(at - text));
    json_t *value = key == NULL ? NULL : call_give(call, rest, (size_t)(text + length - rest));
    if (value != NULL)
        check(json_object_set(map, json_string_value(key), value) == 0);
    json_decref(key);
    json_decref(value);
}

static json_t *run_split_to_map(const struct call *call)
{
    const char *separator = call_text(call, 0), *text = call_text(call, 2), *end;
    size_t length = strlen(separator);
    json_t *map = json_object();

    text_trim_space(&text, &end);
    if (text == end)
        return map;
    while (text != NULL && call->evaluating->code == 0) {
        const char *at = length == 0 ? text + character_size(text)
                                     : memmem(text, (size_t)(end - text), separator, length);

        at = at == NULL ? end : at;
        add_pair(call, map, text, (size_t)(at - text));
        text = at == end ? NULL : at + length;
    }
    return give_made(call, map);
}

const struct function template_maps_functions[] = {
    {"explodeMap", 1, 1, run_explode_map},
    {"mergeMap", 2, 2, run_merge_map},
    {"mergeMapWithOverride", 2, 2, run_merge_map},
    {"splitToMap", 3, 3, run_split_to_map},
    {NULL, 0, 0, NULL},
};
