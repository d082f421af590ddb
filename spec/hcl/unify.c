/*
 * What values of several types come to where one is wanted, as cty's convert.Unify: a string, if
 * there is one among strings, numbers and bools; lists and objects in their parts.
 *
 * Values have no types of their own here: where cty would say what an empty list is a list of, or
 * make a map of an object, nothing is to be done.
 */
#include "spec/hcl/number.h"

/* What a list, or an object in its values, consists of. */
struct mixture {
    size_t strings, numbers, bools, others;
};

static bool is_primitive(const json_t *value)
{
    return json_is_string(value) || json_is_boolean(value) || hcl_is_number(value);
}

static void mix(struct mixture *mixture, const json_t *value)
{
    mixture->strings += json_is_string(value);
    mixture->bools += json_is_boolean(value);
    mixture->numbers += hcl_is_number(value);
    mixture->others += !is_primitive(value) && !json_is_null(value);
}

static void mix_all(struct mixture *mixture, const json_t *values)
{
    const char *key;
    json_t *item;
    size_t i;

    json_array_foreach(values, i, item) mix(mixture, item);
    json_object_foreach(json_is_object(values) ? (json_t *)(uintptr_t)values : NULL, key, item)
        mix(mixture, item);
}

/* VALUE among what MIXTURE says: a new reference, or NULL if there is no type for all of them. */
static json_t *convert_among(json_t *value, const struct mixture *mixture)
{
    if (json_is_null(value))
        return json_incref(value);
    if (mixture->others > 0) /* lists and objects, whose parts are not looked at */
        return mixture->strings + mixture->numbers + mixture->bools > 0 ? NULL : json_incref(value);
    if (mixture->strings > 0)
        return hcl_convert(value, HCL_STRING);
    return mixture->numbers > 0 && mixture->bools > 0 ? NULL : json_incref(value);
}

/* VALUE with its parts converted: among what MIXTURE says, or without one (NULL) each as what
 * stands in its place in OTHER.  NULL if one of them cannot be. */
static json_t *each_part(json_t *value, const json_t *other, const struct mixture *mixture)
{
    bool is_list = json_is_array(value);
    json_t *made = is_list ? json_array() : json_object(), *item, *part = made;
    const char *key;
    size_t i;

    json_array_foreach(value, i, item)
    {
        part = mixture == NULL ? hcl_unify(item, json_array_get(other, i))
                               : convert_among(item, mixture);
        if (part == NULL)
            break;
        check(json_array_append_new(made, part) == 0);
    }
    json_object_foreach(is_list ? NULL : value, key, item)
    {
        part = mixture == NULL ? hcl_unify(item, json_object_get(other, key))
                               : convert_among(item, mixture);
        if (part == NULL)
            break;
        check(json_object_set_new(made, key, part) == 0);
    }
    if (part != NULL)
        return made;
    json_decref(made);
    return NULL;
}

static bool same_places(const json_t *value, const json_t *other)
{
    const char *key;
    json_t *item;

    if (json_is_array(value))
        return json_array_size(value) == json_array_size(other);
    json_object_foreach((json_t *)(uintptr_t)value, key, item)
    {
        if (json_object_get(other, key) == NULL)
            return false;
    }
    return json_object_size(value) == json_object_size(other);
}

json_t *hcl_unify(json_t *value, const json_t *other)
{
    struct mixture mixture = {0};

    if (json_is_null(value) || json_is_null(other))
        return json_incref(value);
    if (is_primitive(value) || is_primitive(other)) {
        mix(&mixture, value);
        mix(&mixture, other);
        return convert_among(value, &mixture);
    }
    if (json_is_array(value) != json_is_array(other))
        return NULL;
    if (same_places(value, other))
        return each_part(value, other, NULL);
    mix_all(&mixture, value);
    mix_all(&mixture, other);
    return each_part(value, NULL, &mixture);
}

json_t *hcl_unify_list(json_t *list, json_t *const *others, size_t count)
{
    struct mixture mixture = {0};

    mix_all(&mixture, list);
    for (size_t i = 0; i < count; i++)
        mix_all(&mixture, others[i]);
    if (mixture.strings == 0 || mixture.others > 0)
        return json_incref(list); /* as it is, or none of what a list could be of */
    return each_part(list, NULL, &mixture);
}
