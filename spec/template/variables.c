/*
 * Variables of servers in templates: what consul-template's types NomadVarItems, NomadVarItem,
 * NomadVariable and NomadVarMeta have beside what they are.
 *
 * Items are a map of texts, an item is a text and what is listed is the text of its path, for all
 * that looks at values.  What more they have is found by where the value is in memory, as it is
 * never copied on its way through a template.  Follows consul-template v0.42
 * dependency/nomad_var_structs.go; methods come before items of their names, as in Go.
 */
#include "spec/template/tree.h"

#include "spec/json.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <uthash.h>

enum trace { TRACE_ITEMS, TRACE_ITEM, TRACE_VARIABLE, TRACE_METADATA };

enum { TIME_SIZE = 64 };

struct traced {
    const json_t *value; /* found by it */
    json_t *kept;        /* the same, or what it is in; owned */
    json_t *about;       /* its variable, or what is told of one; owned */
    const char *key;     /* of an item, borrowed from what is kept */
    enum trace kind;
    UT_hash_handle hh;
};

static const struct traced *find(const struct evaluating *evaluating, const json_t *value)
{
    struct traced *traced;

    HASH_FIND_PTR(evaluating->traced, &value, traced);
    return traced;
}

static void trace(struct evaluating *evaluating, enum trace kind, const json_t *value, json_t *kept,
                  json_t *about, const char *key)
{
    struct traced *traced = calloc(1, sizeof(*traced));

    check(traced != NULL);
    *traced = (struct traced){.value = value,
                              .kept = json_incref(kept),
                              .about = json_incref(about),
                              .key = key,
                              .kind = kind};
    HASH_ADD_PTR(evaluating->traced, value, traced);
}

void variables_forget(struct evaluating *evaluating)
{
    struct traced *traced, *next;

    HASH_ITER(hh, evaluating->traced, traced, next)
    {
        HASH_DEL(evaluating->traced, traced);
        json_decref(traced->kept);
        json_decref(traced->about);
        free(traced);
    }
}

/* --- what they are --- */

/* As Go prints it in UTC. */
static json_t *time_of(const json_t *value)
{
    int64_t ns = json_integer_value(value);
    time_t seconds = (time_t)(ns / 1000000000);
    char text[TIME_SIZE], fraction[16];
    struct tm tm;

    if (ns < 0 || gmtime_r(&seconds, &tm) == NULL)
        return json_string("");
    (void)text_format(fraction, sizeof(fraction), ".%09u", (unsigned)(ns % 1000000000)); /* fits */
    size_t length = strlen(fraction);
    while (length > 0 && (fraction[length - 1] == '0' || fraction[length - 1] == '.'))
        length--;
    (void)text_format(text, sizeof(text), "%04d-%02d-%02d %02d:%02d:%02d%.*s +0000 UTC",
                      tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min,
                      tm.tm_sec, (int)length, fraction); /* likewise */
    return json_string(text);
}

static json_t *metadata_of(const json_t *from)
{
    json_t *made =
        json_pack("{s:s, s:s, s:I, s:I, s:o, s:o}", "Namespace", text_of(from, "Namespace"), "Path",
                  text_of(from, "Path"), "CreateIndex",
                  json_integer_value(json_object_get(from, "CreateIndex")), "ModifyIndex",
                  json_integer_value(json_object_get(from, "ModifyIndex")), "CreateTime",
                  time_of(json_object_get(from, "CreateTime")), "ModifyTime",
                  time_of(json_object_get(from, "ModifyTime")));

    check(made != NULL);
    return made;
}

static json_t *told_by_its_path(struct evaluating *evaluating, json_t *about)
{
    json_t *path = json_string(text_of(about, "Path"));

    check(path != NULL);
    trace(evaluating, TRACE_METADATA, path, path, about, NULL);
    return path;
}

json_t *variable_listed(struct evaluating *evaluating, const json_t *metadata)
{
    json_t *about = metadata_of(metadata), *path = told_by_its_path(evaluating, about);

    json_decref(about);
    return path;
}

json_t *variable_items(struct evaluating *evaluating, const json_t *variable)
{
    json_t *items = json_object_get(variable, "Items"), *item;
    const char *key;

    if (find(evaluating, items) != NULL)
        return json_incref(items);
    json_t *about = metadata_of(variable);
    check(json_object_set(about, "Items", items) == 0);
    trace(evaluating, TRACE_ITEMS, items, items, about, NULL);
    trace(evaluating, TRACE_VARIABLE, about, about, about, NULL);
    json_object_foreach(items, key, item) trace(evaluating, TRACE_ITEM, item, items, about, key);
    json_decref(about);
    return json_incref(items);
}

/* --- what they have --- */

static int by_key(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Keys, Values or Tuples of ITEMS, by the order of the keys. */
static json_t *list_of(const json_t *items, const char *name)
{
    size_t count = 0, size = json_object_size(items);
    const char **keys = calloc(size + 1, sizeof(*keys)), *key;
    json_t *list = json_array(), *item;

    check(keys != NULL);
    json_object_foreach((json_t *)(uintptr_t)items, key, item) keys[count++] = key;
    qsort(keys, count, sizeof(*keys), by_key);
    for (size_t i = 0; i < count; i++) {
        item = json_object_get(items, keys[i]);
        json_t *made = *name == 'K'   ? json_string(keys[i])
                       : *name == 'V' ? json_incref(item)
                                      : json_pack("{s:s, s:O}", "K", keys[i], "V", item);
        check(json_array_append_new(list, made) == 0);
    }
    free(keys);
    return list;
}

/* What is told of the variable that OF came of, without its items. */
static json_t *told_of(struct evaluating *evaluating, const struct traced *of)
{
    json_t *about = json_copy(of->about);

    check(about != NULL);
    (void)json_object_del(about, "Items"); /* there are some */
    json_t *path = told_by_its_path(evaluating, about);
    json_decref(about);
    return path;
}

static bool is_one_of(const char *name, const char *names)
{
    return text_lists(names, name);
}

static json_t *field_of(struct evaluating *evaluating, const struct traced *traced,
                        const char *name)
{
    switch (traced->kind) {
    case TRACE_ITEMS:
        if (is_one_of(name, "Keys,Values,Tuples"))
            return list_of(traced->value, name);
        if (text_equal(name, "ItemsMap"))
            return json_copy(traced->kept);
        break;
    case TRACE_ITEM:
        if (text_equal(name, "Key"))
            return json_string(traced->key);
        if (is_one_of(name, "Value,String"))
            return json_incref(json_object_get(traced->kept, traced->key));
        break;
    case TRACE_VARIABLE:
        return text_equal(name, "Metadata") ? told_of(evaluating, traced) : NULL;
    case TRACE_METADATA:
        return text_equal(name, "String") ? json_incref(traced->kept)
                                          : json_incref(json_object_get(traced->about, name));
    }
    if (text_equal(name, "Parent"))
        return json_incref(traced->about);
    return text_equal(name, "Metadata") ? told_of(evaluating, traced) : NULL;
}

bool variable_field(struct evaluating *evaluating, const json_t *value, const char *name,
                    json_t **ret_field)
{
    const struct traced *traced = find(evaluating, value);
    json_t *field = traced == NULL ? NULL : field_of(evaluating, traced, name);

    if (field != NULL)
        *ret_field = field;
    return field != NULL;
}
