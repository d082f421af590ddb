/* What a variable's `type` says, and values made to be of it. */
#include "spec/hcl/number.h"

static int fail_type(struct hcl_context *context, const struct hcl_expression *type,
                     struct hcl_error *error)
{
    return hcl_complain(context->file, type->place,
                        "types are string, number, bool, any, list(T), set(T), map(T), "
                        "tuple([T, ...]) and object({name = T, ...})",
                        error, "this is not a type");
}

static int fail_convert(struct hcl_context *context, const struct hcl_expression *type,
                        const json_t *value, struct hcl_error *error)
{
    return hcl_complain(context->file, type->place, NULL, error,
                        "%s does not fit the type asked for here", hcl_type_text(value));
}

static int convert_primitive(struct hcl_context *context, const struct hcl_expression *type,
                             json_t *value, json_t **ret_value, struct hcl_error *error)
{
    static const struct {
        const char *name;
        enum hcl_type type;
    } primitives[] = {{"string", HCL_STRING}, {"number", HCL_NUMBER}, {"bool", HCL_BOOL}};

    if (text_equal(type->variable.name, "any")) {
        *ret_value = json_incref(value);
        return 0;
    }
    for (size_t i = 0; i < COUNT_OF(primitives); i++) {
        if (!text_equal(type->variable.name, primitives[i].name))
            continue;
        json_t *converted = hcl_convert(value, primitives[i].type);
        if (converted == NULL)
            return fail_convert(context, type, value, error);
        *ret_value = converted;
        return 0;
    }
    return fail_type(context, type, error);
}

/* list(T), set(T), map(T): every element to T. */
static int convert_elements(struct hcl_context *context, const struct hcl_expression *type,
                            const struct hcl_expression *element, json_t *value, json_t **ret_value,
                            struct hcl_error *error)
{
    bool map = text_equal(type->call.name, "map");
    json_t *result = map ? json_object() : json_array(), *item, *converted;
    const char *key;
    size_t i;
    int code = 0;

    if (map ? !hcl_is_object(value) : !json_is_array(value)) {
        json_decref(result);
        return fail_convert(context, type, value, error);
    }
    if (map) {
        json_object_foreach(value, key, item)
        {
            code = hcl_convert_to(context, element, item, &converted, error);
            if (code != 0)
                break;
            check(json_object_set_new(result, key, converted) == 0);
        }
    } else {
        json_array_foreach(value, i, item)
        {
            code = hcl_convert_to(context, element, item, &converted, error);
            if (code != 0)
                break;
            check(json_array_append_new(result, converted) == 0);
        }
    }
    if (code == 0)
        *ret_value = text_equal(type->call.name, "set") ? hcl_set(result) : json_incref(result);
    json_decref(result);
    return code;
}

static int convert_tuple(struct hcl_context *context, const struct hcl_expression *type,
                         const struct hcl_expression *types, json_t *value, json_t **ret_value,
                         struct hcl_error *error)
{
    json_t *result = json_array(), *converted;
    const struct hcl_expression *element = types->parts.first;
    int code = 0;

    if (!json_is_array(value) || json_array_size(value) != types->parts.count)
        code = fail_convert(context, type, value, error);
    for (size_t i = 0; code == 0 && element != NULL; i++, element = element->next) {
        code = hcl_convert_to(context, element, json_array_get(value, i), &converted, error);
        if (code == 0)
            check(json_array_append_new(result, converted) == 0);
    }
    if (code == 0)
        *ret_value = result;
    else
        json_decref(result);
    return code;
}

static int convert_object(struct hcl_context *context, const struct hcl_expression *type,
                          const struct hcl_expression *types, json_t *value, json_t **ret_value,
                          struct hcl_error *error)
{
    json_t *result = json_object(), *converted;
    int code = 0;

    if (!hcl_is_object(value))
        code = fail_convert(context, type, value, error);
    for (const struct hcl_expression *key = types->parts.first; code == 0 && key != NULL;
         key = key->next->next) {
        const char *name = key->kind == NODE_LITERAL ? json_string_value(key->value) : NULL;
        json_t *item = name == NULL ? NULL : json_object_get(value, name);

        if (name == NULL)
            code = fail_type(context, key, error);
        else if (item == NULL)
            code = hcl_complain(context->file, key->place, NULL, error,
                                "the value has no attribute \"%.60s\"", name);
        else
            code = hcl_convert_to(context, key->next, item, &converted, error);
        if (code == 0)
            check(json_object_set_new(result, name, converted) == 0);
    }
    if (code == 0)
        *ret_value = result;
    else
        json_decref(result);
    return code;
}

int hcl_convert_to(struct hcl_context *context, const struct hcl_expression *type, json_t *value,
                   json_t **ret_value, struct hcl_error *error)
{
    int code = hcl_charge(context, type->place, 1, error);

    if (code != 0)
        return code;
    if (json_is_null(value)) {
        *ret_value = json_null();
        return 0;
    }
    if (type->kind == NODE_VARIABLE && type->variable.steps == NULL)
        return convert_primitive(context, type, value, ret_value, error);
    if (type->kind != NODE_CALL || type->call.count != 1)
        return fail_type(context, type, error);
    const char *name = type->call.name;
    const struct hcl_expression *inner = type->call.first;
    if (text_equal(name, "list") || text_equal(name, "set") || text_equal(name, "map"))
        return convert_elements(context, type, inner, value, ret_value, error);
    if (text_equal(name, "tuple") && inner->kind == NODE_LIST)
        return convert_tuple(context, type, inner, value, ret_value, error);
    if (text_equal(name, "object") && inner->kind == NODE_OBJECT)
        return convert_object(context, type, inner, value, ret_value, error);
    return fail_type(context, type, error);
}
