/*
 * Sets: lists whose elements are distinct and in order, so that equal sets are equal values.
 */
#include "spec/hcl/number.h"

#include <stdlib.h>
#include <string.h>

char *hcl_identity(const json_t *value)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS);

    check(text != NULL);
    return text;
}

json_t *hcl_elements(const json_t *list)
{
    json_t *object = json_object(), *item;
    size_t i;

    json_array_foreach(list, i, item)
    {
        char *text = hcl_identity(item);

        check(json_object_set(object, text, item) == 0);
        free(text);
    }
    return object;
}

static int compare_elements(const void *a, const void *b)
{
    const json_t *left = *(const json_t *const *)a, *right = *(const json_t *const *)b;

    if (json_is_string(left) && json_is_string(right))
        return strcmp(json_string_value(left), json_string_value(right));
    if (hcl_is_number(left) && hcl_is_number(right))
        return hcl_number_compare(left, right);
    if (json_is_boolean(left) && json_is_boolean(right))
        return json_is_true(left) - json_is_true(right);
    char *texts[] = {hcl_identity(left), hcl_identity(right)};
    int order = strcmp(texts[0], texts[1]);
    free(texts[0]);
    free(texts[1]);
    return order;
}

/* The elements of OBJECT (identity to value) as a set: in their order, which is cty's where they
 * are of one primitive type. */
json_t *hcl_set_of(const json_t *object)
{
    size_t count;
    const char **keys = hcl_sorted_keys(object, &count);
    json_t **items = calloc(count + 1, sizeof(*items)), *list = json_array();

    check(items != NULL);
    for (size_t i = 0; i < count; i++)
        items[i] = json_object_get(object, keys[i]);
    qsort(items, count, sizeof(const json_t *), compare_elements);
    for (size_t i = 0; i < count; i++)
        check(json_array_append(list, items[i]) == 0);
    free(items);
    free(keys);
    return list;
}

json_t *hcl_set(const json_t *list)
{
    json_t *elements = hcl_elements(list), *set = hcl_set_of(elements);

    json_decref(elements);
    return set;
}
