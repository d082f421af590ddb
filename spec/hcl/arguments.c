/* What all functions use: their arguments as they need them, and how they fail. */
#include "spec/hcl/number.h"

#include <stdarg.h>
#include <stdio.h>

json_t *hcl_call_failed(const struct hcl_call *call, const char *format, ...)
{
    char message[ERR_TEXT_SIZE];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(message, sizeof(message), format, args); /* cut if long */
    va_end(args);
    (void)hcl_complain(call->context->file, call->place, NULL, call->error, "%s() %s", call->name,
                       message);
    return NULL;
}

static bool fail_argument(const struct hcl_call *call, size_t i, const char *wanted)
{
    (void)hcl_call_failed(call, "needs %s as argument %zu, but got %s", wanted, i + 1,
                          hcl_type_text(call->arguments[i]));
    return false;
}

bool hcl_argument_text(const struct hcl_call *call, size_t i, json_t **ret_keep)
{
    json_t *text = hcl_convert(call->arguments[i], HCL_STRING);

    if (text == NULL)
        return fail_argument(call, i, "a string");
    *ret_keep = text;
    return true;
}

bool hcl_argument_number(const struct hcl_call *call, size_t i, double *ret_number)
{
    json_t *number = hcl_convert(call->arguments[i], HCL_NUMBER);

    if (number == NULL)
        return fail_argument(call, i, "a number");
    *ret_number = hcl_number_of(number);
    json_decref(number);
    return true;
}

bool hcl_argument_integer(const struct hcl_call *call, size_t i, int64_t *ret_integer)
{
    json_t *number = hcl_convert(call->arguments[i], HCL_NUMBER);
    bool whole = json_is_integer(number); /* one that is larger chooses or counts nothing */

    if (whole)
        *ret_integer = json_integer_value(number);
    json_decref(number);
    return whole || fail_argument(call, i, "a whole number");
}

bool hcl_argument_list(const struct hcl_call *call, size_t i)
{
    return json_is_array(call->arguments[i]) || fail_argument(call, i, "a list");
}

bool hcl_argument_object(const struct hcl_call *call, size_t i)
{
    return hcl_is_object(call->arguments[i]) || fail_argument(call, i, "an object");
}

/* --- texts --- */

size_t hcl_character_size(const char *at, const char *end)
{
    size_t size = 1;

    while (at + size < end && ((unsigned char)at[size] & 0xC0u) == 0x80u)
        size++;
    return size;
}

bool hcl_texts_read(const struct hcl_call *call, struct hcl_texts *texts, size_t count)
{
    *texts = (struct hcl_texts){0};
    for (size_t i = 0; i < count; i++) {
        if (!hcl_argument_text(call, i, &texts->keep[i])) {
            for (size_t j = 0; j < i; j++)
                json_decref(texts->keep[j]);
            return false;
        }
        texts->text[i] = json_string_value(texts->keep[i]);
        texts->length[i] = json_string_length(texts->keep[i]);
    }
    texts->count = count;
    return true;
}

void hcl_texts_drop(struct hcl_texts *texts)
{
    for (size_t i = 0; i < texts->count; i++)
        json_decref(texts->keep[i]);
}

json_t *hcl_call_text(const struct hcl_call *call, struct hcl_buffer *buffer)
{
    json_t *value = hcl_buffer_take(buffer);

    return value != NULL ? value : hcl_call_failed(call, "makes a text that is too long");
}
