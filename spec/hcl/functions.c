/*
 * The table of functions, and what they all use.
 *
 * Names and meaning follow nomad v1.1.2 jobspec2/functions.go and the cty standard library it
 * takes them from; tostring, tonumber, tobool, tolist, toset, tomap, strlen, sum, startswith,
 * endswith, regex and regexall are those of Terraform and later Nomad.  Not made: bcrypt, cidr*,
 * convert, csvdecode, fileset, rsadecrypt, yamldecode, yamlencode.  try and can are part of the
 * evaluator.  Letters change case in ASCII only; regular expressions are POSIX extended ones with
 * \d \w \s \b added.
 */
#include "spec/hcl/tree.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct hcl_function_row *const tables[] = {
    hcl_text_functions, hcl_regex_functions,    hcl_number_functions,
    hcl_list_functions, hcl_encoding_functions, hcl_time_functions,
};

static const char *const special[] = {"can", "try"};

const struct hcl_function_row *hcl_function_find(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(tables); i++) {
        for (const struct hcl_function_row *row = tables[i]; row->name != NULL; row++) {
            if (text_equal(row->name, name))
                return row;
        }
    }
    return NULL;
}

void hcl_each_function(void (*cb)(void *ctx, const char *name), void *ctx)
{
    for (size_t i = 0; i < COUNT_OF(tables); i++) {
        for (const struct hcl_function_row *row = tables[i]; row->name != NULL; row++)
            cb(ctx, row->name);
    }
    for (size_t i = 0; i < COUNT_OF(special); i++)
        cb(ctx, special[i]);
}

struct names {
    const char *items[160];
    size_t count;
};

static void add_name(void *ctx, const char *name)
{
    struct names *names = ctx;

    check(names->count < COUNT_OF(names->items));
    names->items[names->count++] = name;
}

int hcl_function_unknown(const struct hcl_file *file, struct hcl_place place, const char *name,
                         struct hcl_error *error)
{
    static const char *const absent[] = {"bcrypt",     "cidrhost",    "cidrnetmask", "cidrsubnet",
                                         "convert",    "cidrsubnets", "csvdecode",   "fileset",
                                         "yamldecode", "rsadecrypt",  "yamlencode"};
    struct names names = {0};
    char hint[ERR_TEXT_SIZE] = "";

    for (size_t i = 0; i < COUNT_OF(absent); i++) {
        if (text_equal(absent[i], name))
            return hcl_complain(file, place, "compute the value outside and pass it with -var",
                                error, "the function %s() of Nomad is not available here", name);
    }
    hcl_each_function(add_name, &names);
    const char *closest = hcl_closest(name, names.items, names.count);
    if (closest != NULL)
        (void)text_format(hint, sizeof(hint), "did you mean %s()?", closest);
    return hcl_complain(file, place, hint, error, "unknown function %.60s()", name);
}

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
    bool whole = number != NULL && json_is_integer(number);

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
    return json_is_object(call->arguments[i]) || fail_argument(call, i, "an object");
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
