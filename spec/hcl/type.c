/*
 * Types and conversions of values, and the growing text that makes them.
 */
#include "spec/hcl/number.h"

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
        text ? hcl_text(buffer->bytes == NULL ? "" : buffer->bytes, buffer->length) : NULL;

    hcl_buffer_free(buffer);
    return value;
}

/* --- conversions --- */

json_t *hcl_convert(json_t *value, enum hcl_type type)
{
    const char *text = json_string_value(value); /* NULL for other types */

    switch (type) {
    case HCL_STRING:
        if (text != NULL)
            return json_incref(value);
        if (json_is_boolean(value))
            return json_string(json_is_true(value) ? "true" : "false");
        return hcl_is_number(value) ? hcl_number_text(value) : NULL;
    case HCL_NUMBER:
        if (hcl_is_number(value))
            return json_incref(value);
        return text == NULL ? NULL : hcl_number_parse(text);
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

/* As deep as the value, which is bounded when it is made. */
json_t *hcl_plain(json_t *value)
{
    json_t *copy, *item, *part = value;
    const char *key;
    size_t i;

    if (!json_is_integer(value) && hcl_is_number(value))
        return json_real(hcl_number_of(value)); /* NULL: not finite */
    if (!json_is_object(value) && !json_is_array(value))
        return json_incref(value);
    copy = json_is_object(value) ? json_object() : json_array();
    json_object_foreach(json_is_object(value) ? value : NULL, key, item)
    {
        part = hcl_plain(item);
        if (part == NULL)
            break;
        check(json_object_set_new(copy, key, part) == 0);
    }
    json_array_foreach(value, i, item)
    {
        part = hcl_plain(item);
        if (part == NULL)
            break;
        check(json_array_append_new(copy, part) == 0);
    }
    if (part != NULL)
        return copy;
    json_decref(copy);
    return NULL;
}

const char *hcl_type_text(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return hcl_is_number(value) ? "a number" : "an object";
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
