/*
 * Functions on lists, sets and objects.  A set is a list whose elements are distinct; functions
 * that make one sort it, so that equal sets are equal values.
 */
#include "spec/hcl/number.h"

#include <stdlib.h>
#include <string.h>

static json_t *run_length(const struct hcl_call *call)
{
    const json_t *value = call->arguments[0];
    size_t count = 0;

    if (json_is_array(value))
        count = json_array_size(value);
    else if (hcl_is_object(value))
        count = json_object_size(value);
    else if (json_is_string(value))
        count = hcl_grapheme_count(json_string_value(value), json_string_length(value));
    else
        return hcl_call_failed(call, "needs a list, an object or a string, but got %s",
                               hcl_type_text(value));
    return json_integer((json_int_t)count);
}

/* --- objects --- */

static json_t *run_keys(const struct hcl_call *call)
{
    size_t count;

    if (!hcl_argument_object(call, 0))
        return NULL;
    const char **keys = hcl_sorted_keys(call->arguments[0], &count);
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        check(json_array_append_new(list, json_string(keys[i])) == 0);
    free(keys);
    return list;
}

static json_t *run_values(const struct hcl_call *call)
{
    size_t count;

    if (!hcl_argument_object(call, 0))
        return NULL;
    const char **keys = hcl_sorted_keys(call->arguments[0], &count);
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        check(json_array_append(list, json_object_get(call->arguments[0], keys[i])) == 0);
    free(keys);
    return list;
}

static json_t *run_lookup(const struct hcl_call *call)
{
    json_t *key, *value;

    if (!hcl_argument_object(call, 0) || !hcl_argument_text(call, 1, &key))
        return NULL;
    value = json_object_get(call->arguments[0], json_string_value(key));
    if (value == NULL && call->count == 3)
        value = call->arguments[2];
    if (value == NULL)
        (void)hcl_call_failed(call, "finds no \"%.60s\" and has no default",
                              json_string_value(key));
    json_decref(key);
    return json_incref(value);
}

static json_t *run_merge(const struct hcl_call *call)
{
    json_t *merged = json_object();

    for (size_t i = 0; i < call->count; i++) {
        if (json_is_null(call->arguments[i]))
            continue;
        if (!hcl_argument_object(call, i)) {
            json_decref(merged);
            return NULL;
        }
        check(json_object_update(merged, call->arguments[i]) == 0);
    }
    return merged;
}

static json_t *run_zipmap(const struct hcl_call *call)
{
    json_t *object, *key;
    size_t i;

    if (!hcl_argument_list(call, 0) || !hcl_argument_list(call, 1))
        return NULL;
    if (json_array_size(call->arguments[0]) != json_array_size(call->arguments[1]))
        return hcl_call_failed(call, "needs as many keys as values, but got %zu and %zu",
                               json_array_size(call->arguments[0]),
                               json_array_size(call->arguments[1]));
    object = json_object();
    json_array_foreach(call->arguments[0], i, key)
    {
        json_t *name = hcl_convert(key, HCL_STRING);

        if (name == NULL) {
            json_decref(object);
            return hcl_call_failed(call, "needs strings as keys");
        }
        check(json_object_set(object, json_string_value(name),
                              json_array_get(call->arguments[1], i)) == 0);
        json_decref(name);
    }
    return object;
}

static json_t *run_tomap(const struct hcl_call *call)
{
    return hcl_argument_object(call, 0) ? json_incref(call->arguments[0]) : NULL;
}

/* --- elements --- */

/* As in cty, index() is what [ ] does; Terraform's index() is another function. */
static json_t *run_index(const struct hcl_call *call)
{
    json_t *collection = call->arguments[0], *found = NULL, *key;
    int64_t i;

    if (hcl_is_object(collection)) {
        if (!hcl_argument_text(call, 1, &key))
            return NULL;
        found = json_object_get(collection, json_string_value(key));
        json_decref(key);
    } else {
        if (!hcl_argument_list(call, 0) || !hcl_argument_integer(call, 1, &i))
            return NULL;
        if (i >= 0)
            found = json_array_get(collection, (size_t)i);
    }
    return found != NULL ? json_incref(found) : hcl_call_failed(call, "finds no such element");
}

static json_t *run_element(const struct hcl_call *call)
{
    int64_t i;

    if (!hcl_argument_list(call, 0) || !hcl_argument_integer(call, 1, &i))
        return NULL;
    size_t count = json_array_size(call->arguments[0]);
    if (count == 0 || i < 0)
        return hcl_call_failed(call, count == 0 ? "cannot choose from an empty list"
                                                : "counts from 0 up");
    return json_incref(json_array_get(call->arguments[0], (size_t)i % count));
}

static json_t *run_contains(const struct hcl_call *call)
{
    json_t *item;
    size_t i;

    if (!hcl_argument_list(call, 0))
        return NULL;
    json_array_foreach(call->arguments[0], i, item)
    {
        if (json_equal(item, call->arguments[1]))
            return json_true();
    }
    return json_false();
}

/* The first that is there, as the type that all of them have in common. */
static json_t *run_coalesce(const struct hcl_call *call)
{
    size_t first = 0;

    while (first < call->count && json_is_null(call->arguments[first]))
        first++;
    if (first == call->count)
        return hcl_call_failed(call, "got only null");
    json_t *value = json_incref(call->arguments[first]);
    for (size_t i = 0; i < call->count && value != NULL; i++) {
        json_t *unified = hcl_unify(value, call->arguments[i]);
        json_decref(value);
        value = unified;
    }
    return value != NULL ? value : hcl_call_failed(call, "needs arguments of one type");
}

static json_t *run_coalescelist(const struct hcl_call *call)
{
    for (size_t i = 0; i < call->count; i++) {
        if (json_is_array(call->arguments[i]) && json_array_size(call->arguments[i]) > 0)
            return json_incref(call->arguments[i]);
    }
    return hcl_call_failed(call, "got only empty lists");
}

/* --- lists from lists --- */

static json_t *run_concat(const struct hcl_call *call)
{
    json_t *list = json_array();

    for (size_t i = 0; i < call->count; i++) {
        if (!hcl_argument_list(call, i)) {
            json_decref(list);
            return NULL;
        }
        check(json_array_extend(list, call->arguments[i]) == 0);
    }
    return list;
}

static json_t *run_compact(const struct hcl_call *call)
{
    json_t *list, *item;
    size_t i;

    if (!hcl_argument_list(call, 0))
        return NULL;
    list = json_array();
    json_array_foreach(call->arguments[0], i, item)
    {
        json_t *text = json_is_null(item) ? NULL : hcl_convert(item, HCL_STRING);

        if (text == NULL && !json_is_null(item)) {
            json_decref(list);
            return hcl_call_failed(call, "needs a list of strings, but one of them is %s",
                                   hcl_type_text(item));
        }
        if (json_string_length(text) > 0)
            check(json_array_append(list, text) == 0);
        json_decref(text);
    }
    return list;
}

/* Recursion is as deep as the value, which hcl_charge_value has bounded. */
static void flatten_into(json_t *list, const json_t *value)
{
    json_t *item;
    size_t i;

    json_array_foreach(value, i, item)
    {
        if (json_is_array(item))
            flatten_into(list, item);
        else
            check(json_array_append(list, item) == 0);
    }
}

static json_t *run_flatten(const struct hcl_call *call)
{
    if (!hcl_argument_list(call, 0))
        return NULL;
    json_t *list = json_array();
    flatten_into(list, call->arguments[0]);
    return list;
}

static json_t *run_slice(const struct hcl_call *call)
{
    int64_t start, end;

    if (!hcl_argument_list(call, 0) || !hcl_argument_integer(call, 1, &start) ||
        !hcl_argument_integer(call, 2, &end))
        return NULL;
    if (start < 0 || end < start || (uint64_t)end > json_array_size(call->arguments[0]))
        return hcl_call_failed(call, "goes from %lld to %lld, but the list has %zu elements",
                               (long long)start, (long long)end,
                               json_array_size(call->arguments[0]));
    json_t *list = json_array();
    for (int64_t i = start; i < end; i++)
        check(json_array_append(list, json_array_get(call->arguments[0], (size_t)i)) == 0);
    return list;
}

static json_t *run_chunklist(const struct hcl_call *call)
{
    json_t *list, *chunk = NULL, *item;
    int64_t size;
    size_t i;

    if (!hcl_argument_list(call, 0) || !hcl_argument_integer(call, 1, &size))
        return NULL;
    if (size < 1)
        return hcl_call_failed(call, "needs chunks of at least 1 element");
    list = json_array();
    json_array_foreach(call->arguments[0], i, item)
    {
        if (i % (size_t)size == 0) {
            chunk = json_array();
            check(json_array_append_new(list, chunk) == 0);
        }
        check(json_array_append(chunk, item) == 0);
    }
    return list;
}

/* reverse(list), and as in Nomad reverse(text). */
static json_t *run_reverse(const struct hcl_call *call)
{
    if (!json_is_array(call->arguments[0]))
        return hcl_run_strrev(call);
    json_t *list = json_array();
    for (size_t i = json_array_size(call->arguments[0]); i > 0; i--)
        check(json_array_append(list, json_array_get(call->arguments[0], i - 1)) == 0);
    return list;
}

/* The numbers from START towards END. */
static json_t *count_up(const struct hcl_call *call, json_t *start, const json_t *end,
                        const json_t *step)
{
    enum { NUMBERS_MAX = 1024 }; /* as in cty */
    json_t *list = json_array(), *zero = json_integer(0);
    int direction = hcl_number_compare(step, zero);

    json_decref(zero);
    for (json_t *number = json_incref(start); number != NULL;) {
        json_t *next = NULL;

        if (hcl_number_compare(end, number) == direction) {
            if (json_array_size(list) == NUMBERS_MAX) {
                json_decref(number);
                json_decref(list);
                return hcl_call_failed(call, "makes at most %d numbers", NUMBERS_MAX);
            }
            check(json_array_append(list, number) == 0);
            next = hcl_number_combine(OP_ADD, number, step);
        }
        json_decref(number);
        number = next;
    }
    return list;
}

/* range(end), range(start, end), range(start, end, step) */
static json_t *run_range(const struct hcl_call *call)
{
    json_t *given[3] = {0}, *zero = json_integer(0), *list = NULL;
    bool good = true;

    for (size_t i = 0; i < call->count && good; i++) {
        given[i] = hcl_convert(call->arguments[i], HCL_NUMBER);
        good = given[i] != NULL;
        if (!good)
            (void)hcl_call_failed(call, "needs a number as argument %zu, but got %s", i + 1,
                                  hcl_type_text(call->arguments[i]));
    }
    if (good) {
        json_t *start = call->count == 1 ? zero : given[0];
        json_t *end = call->count == 1 ? given[0] : given[1];
        int order = hcl_number_compare(end, start);
        json_t *step = call->count == 3 ? json_incref(given[2]) : json_integer(order < 0 ? -1 : 1);

        if (order == 0)
            list = json_array();
        else if (hcl_number_compare(step, zero) != order)
            (void)hcl_call_failed(call, "needs a step that leads from %g to %g",
                                  hcl_number_of(start), hcl_number_of(end));
        else
            list = count_up(call, start, end, step);
        json_decref(step);
    }
    for (size_t i = 0; i < COUNT_OF(given); i++)
        json_decref(given[i]);
    json_decref(zero);
    return list;
}

/* --- sets --- */

static int compare_values(const void *a, const void *b)
{
    const json_t *const *left = a, *const *right = b;

    return strcmp(json_string_value(*left), json_string_value(*right));
}

static json_t *run_sort(const struct hcl_call *call)
{
    json_t *list, *item;
    size_t count, i;

    if (!hcl_argument_list(call, 0))
        return NULL;
    count = json_array_size(call->arguments[0]);
    json_t **texts = calloc(count + 1, sizeof(*texts));
    check(texts != NULL);
    json_array_foreach(call->arguments[0], i, item)
    {
        texts[i] = hcl_convert(item, HCL_STRING);
        if (texts[i] != NULL)
            continue;
        for (size_t j = 0; j < i; j++)
            json_decref(texts[j]);
        free(texts);
        return hcl_call_failed(call, "sorts strings, but element %zu is %s", i,
                               hcl_type_text(item));
    }
    qsort(texts, count, sizeof(const json_t *), compare_values);
    list = json_array();
    for (i = 0; i < count; i++)
        check(json_array_append_new(list, texts[i]) == 0);
    free(texts);
    return list;
}

/* Appends the elements of FROM that SEEN does not have yet; WANTED, if given, must have them. */
static void add_distinct(json_t *list, json_t *seen, const json_t *from, const json_t *wanted)
{
    json_t *item;
    size_t i;

    json_array_foreach(from, i, item)
    {
        char *text = hcl_identity(item);

        if (json_object_get(seen, text) == NULL &&
            (wanted == NULL || json_object_get(wanted, text) != NULL)) {
            check(json_object_set_new(seen, text, json_true()) == 0);
            check(json_array_append(list, item) == 0);
        }
        free(text);
    }
}

static json_t *run_distinct(const struct hcl_call *call)
{
    if (!hcl_argument_list(call, 0))
        return NULL;
    json_t *list = json_array(), *seen = json_object();
    json_t *unified = hcl_unify_list(call->arguments[0], NULL, 0);
    add_distinct(list, seen, unified, NULL);
    json_decref(seen);
    json_decref(unified);
    return list;
}

static json_t *run_setunion(const struct hcl_call *call)
{
    json_t *all = json_object();

    for (size_t i = 0; i < call->count; i++) {
        if (!hcl_argument_list(call, i)) {
            json_decref(all);
            return NULL;
        }
        json_t *unified = hcl_unify_list(call->arguments[i], call->arguments, call->count);
        json_t *elements = hcl_elements(unified);
        json_decref(unified);
        check(json_object_update(all, elements) == 0);
        json_decref(elements);
    }
    json_t *set = hcl_set_of(all);
    json_decref(all);
    return set;
}

static json_t *run_setintersection(const struct hcl_call *call)
{
    json_t *common = NULL, *set;

    for (size_t i = 0; i < call->count; i++) {
        if (!hcl_argument_list(call, i)) {
            json_decref(common);
            return NULL;
        }
        json_t *unified = hcl_unify_list(call->arguments[i], call->arguments, call->count);
        json_t *elements = hcl_elements(unified), *both = json_object(), *item;
        json_decref(unified);
        const char *key;
        json_object_foreach(elements, key, item)
        {
            if (common == NULL || json_object_get(common, key) != NULL)
                check(json_object_set(both, key, item) == 0);
        }
        json_decref(elements);
        json_decref(common);
        common = both;
    }
    set = hcl_set_of(common);
    json_decref(common);
    return set;
}

static json_t *run_toset(const struct hcl_call *call)
{
    return hcl_argument_list(call, 0) ? run_setunion(call) : NULL;
}

static json_t *run_tolist(const struct hcl_call *call)
{
    return hcl_argument_list(call, 0) ? json_incref(call->arguments[0]) : NULL;
}

static json_t *run_setproduct(const struct hcl_call *call)
{
    enum { PRODUCTS_MAX = 65536 };
    size_t total = 1;

    for (size_t i = 0; i < call->count; i++) {
        if (!hcl_argument_list(call, i))
            return NULL;
        size_t size = json_array_size(call->arguments[i]);
        if (size > PRODUCTS_MAX || (total *= size) > PRODUCTS_MAX)
            return hcl_call_failed(call, "makes at most %d combinations", PRODUCTS_MAX);
    }
    if (hcl_charge(call->context, call->place, total * call->count, call->error) != 0)
        return NULL;
    json_t *list = json_array();
    for (size_t n = 0; n < total; n++) {
        json_t *one = json_array();
        size_t rest = n, below = total;

        for (size_t i = 0; i < call->count; i++) {
            below /= json_array_size(call->arguments[i]);
            check(json_array_append(one, json_array_get(call->arguments[i], rest / below)) == 0);
            rest %= below;
        }
        check(json_array_append_new(list, one) == 0);
    }
    return list;
}

const struct hcl_function_row hcl_list_functions[] = {
    {"chunklist", 2, 2, run_chunklist},
    {"coalesce", 1, SIZE_MAX, run_coalesce},
    {"coalescelist", 1, SIZE_MAX, run_coalescelist},
    {"compact", 1, 1, run_compact},
    {"concat", 1, SIZE_MAX, run_concat},
    {"contains", 2, 2, run_contains},
    {"distinct", 1, 1, run_distinct},
    {"element", 2, 2, run_element},
    {"flatten", 1, 1, run_flatten},
    {"index", 2, 2, run_index},
    {"keys", 1, 1, run_keys},
    {"length", 1, 1, run_length},
    {"lookup", 2, 3, run_lookup},
    {"merge", 0, SIZE_MAX, run_merge},
    {"range", 1, 3, run_range},
    {"reverse", 1, 1, run_reverse},
    {"setintersection", 1, SIZE_MAX, run_setintersection},
    {"setproduct", 2, SIZE_MAX, run_setproduct},
    {"setunion", 1, SIZE_MAX, run_setunion},
    {"slice", 3, 3, run_slice},
    {"sort", 1, 1, run_sort},
    {"tolist", 1, 1, run_tolist},
    {"tomap", 1, 1, run_tomap},
    {"toset", 1, 1, run_toset},
    {"values", 1, 1, run_values},
    {"zipmap", 2, 2, run_zipmap},
    {NULL, 0, 0, NULL},
};
