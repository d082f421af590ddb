/*
 * Types and conversions of values, and the growing text that makes them.
 *
 * A number is an integer whenever its value is one, so that equal numbers are equal values.
 */
#include "spec/hcl/tree.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- growing text --- */

void hcl_buffer_add(struct hcl_buffer *buffer, const char *bytes, size_t length)
{
    if (buffer->full || length > HCL_TEXT_MAX - buffer->length) {
        buffer->full = true;
        return;
    }
    buffer->bytes = list_room(buffer->bytes, &buffer->size, buffer->length + length + 1, 1);
    if (length > 0)
        memcpy(buffer->bytes + buffer->length, bytes, length);
    buffer->length += length;
    buffer->bytes[buffer->length] = '\0';
}

void hcl_buffer_free(struct hcl_buffer *buffer)
{
    free(buffer->bytes);
    *buffer = (struct hcl_buffer){0};
}

json_t *hcl_buffer_take(struct hcl_buffer *buffer)
{
    bool text =
        !buffer->full && (buffer->bytes == NULL || text_is_utf8(buffer->bytes, buffer->length));
    json_t *value =
        text ? json_stringn(buffer->bytes == NULL ? "" : buffer->bytes, buffer->length) : NULL;

    hcl_buffer_free(buffer);
    return value;
}

/* --- numbers --- */

json_t *hcl_number(double value)
{
    if (!isfinite(value))
        return NULL;
    /* 2^63 itself is not an int64. */
    if (value >= -9223372036854775808.0 && value < 9223372036854775808.0 && value == floor(value))
        return json_integer((json_int_t)value);
    return json_real(value);
}

double hcl_number_of(const json_t *value)
{
    return json_number_value(value);
}

/* VALUE in plain decimals, as few digits as read back to the same number: "0.1", not "1e-1". */
static json_t *real_text(double value)
{
    char digits[40], text[400];
    size_t length = 0, count = 0;

    for (int precision = 0; precision < 17; precision++) {
        (void)snprintf(digits, sizeof(digits), "%.*e", precision, value);
        if (strtod(digits, NULL) == value)
            break;
    }
    char *exponent_at = strchr(digits, 'e');
    check(exponent_at != NULL);
    int exponent = (int)strtol(exponent_at + 1, NULL, 10);
    *exponent_at = '\0';
    if (digits[0] == '-')
        text[length++] = '-';
    for (char *digit = digits; *digit != '\0'; digit++) {
        if (*digit >= '0' && *digit <= '9')
            digits[count++] = *digit;
    }
    if (exponent < 0) {
        text[length++] = '0';
        text[length++] = '.';
        for (int i = -1; i > exponent && length < sizeof(text) - 40; i--)
            text[length++] = '0';
    }
    for (size_t i = 0; i < count; i++) {
        text[length++] = digits[i];
        if (exponent >= 0 && (int)i == exponent && i + 1 < count)
            text[length++] = '.';
    }
    for (int i = (int)count - 1; i < exponent && length < sizeof(text) - 1; i++)
        text[length++] = '0';
    return json_stringn(text, length);
}

static json_t *text_number(const char *text)
{
    int64_t whole;
    char *end;

    if (text_to_i64(text, &whole))
        return json_integer(whole);
    if (*text == '\0' || strspn(text, "0123456789+-.eE") != strlen(text))
        return NULL;
    if (!(*text >= '0' && *text <= '9') && !(*text == '-' && text[1] >= '0' && text[1] <= '9'))
        return NULL;
    double number = strtod(text, &end);
    return *end == '\0' ? hcl_number(number) : NULL;
}

/* --- conversions --- */

json_t *hcl_convert(json_t *value, enum hcl_type type)
{
    const char *text = json_string_value(value); /* NULL for other types */
    char number[32];

    switch (type) {
    case HCL_STRING:
        if (text != NULL)
            return json_incref(value);
        if (json_is_boolean(value))
            return json_string(json_is_true(value) ? "true" : "false");
        if (json_is_real(value))
            return real_text(json_real_value(value));
        if (!json_is_integer(value))
            return NULL;
        (void)text_format(number, sizeof(number), "%lld", (long long)json_integer_value(value));
        return json_string(number);
    case HCL_NUMBER:
        if (json_is_number(value))
            return json_incref(value);
        return text == NULL ? NULL : text_number(text);
    case HCL_BOOL:
        if (json_is_boolean(value))
            return json_incref(value);
        if (text != NULL && (text_equal(text, "true") || text_equal(text, "1")))
            return json_true();
        if (text != NULL && (text_equal(text, "false") || text_equal(text, "0")))
            return json_false();
        return NULL;
    }
    unreachable("closed enum");
}

const char *hcl_type_text(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "a list";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
    case JSON_REAL:
        return "a number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "a bool";
    case JSON_NULL:
        return "null";
    }
    unreachable("closed enum");
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char **hcl_sorted_keys(const json_t *object, size_t *ret_count)
{
    size_t count = json_object_size(object), i = 0;
    const char **keys = calloc(count + 1, sizeof(*keys));
    const char *key;
    json_t *value;

    check(keys != NULL);
    json_object_foreach((json_t *)object, key, value) keys[i++] = key;
    check(i == count);
    qsort(keys, count, sizeof(*keys), compare_texts);
    *ret_count = count;
    return keys;
}

/* --- type expressions --- */

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

    if (map ? !json_is_object(value) : !json_is_array(value)) {
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
        *ret_value = result;
    else
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

    if (!json_is_object(value))
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
