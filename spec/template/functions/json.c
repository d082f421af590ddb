/* Functions of templates that read JSON, and write it as Go's encoding/json does. */
#include "spec/template/functions/part.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_SIZE = 400, DIGITS_MAX = 17 };

/* --- reading --- */

static json_t *run_parse_json(const struct call *call)
{
    const char *text = call_text(call, 0);
    json_error_t error;

    if (!template_charge(call->evaluating, strlen(text) / 16))
        return NULL;
    if (*text == '\0')
        return json_object();
    /* All numbers are Go's float64. */
    json_t *value = json_loads(text, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, &error);
    if (value == NULL && error.text[0] == '\0') /* there are words for all that can be wrong */
        return template_fail(call->evaluating, ERR_LIMIT, "%s: it takes too much memory",
                             call->name);
    if (value == NULL || value_is_deep(value, VALUE_DEEP)) {
        json_decref(value);
        return call_refuse(call, "invalid JSON");
    }
    return value;
}

/* --- writing --- */

struct writing {
    struct growing made;
    bool pretty, for_html; /* what means something in HTML is escaped */
};

static void add_text(struct growing *to, const char *text)
{
    growing_add(to, text, strlen(text));
}

static void put_line(struct writing *to, int depth)
{
    if (!to->pretty)
        return;
    growing_add(&to->made, "\n", 1);
    for (int i = 0; i < depth; i++)
        growing_add(&to->made, "  ", 2);
}

/* How many bytes at AT are one that is escaped, 0: none. */
static size_t take_escaped(const struct writing *to, const char *at, char escape[8])
{
    static const char names[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    const char *name = strchr(names, *at);

    if (name != NULL)
        (void)text_format(escape, 8, "\\%c", letters[name - names]); /* fits */
    else if ((unsigned char)*at < 0x20 || (to->for_html && strchr("<>&", *at) != NULL))
        (void)text_format(escape, 8, "\\u%04x", (unsigned)*at); /* fits */
    else if (text_starts_with(at, "\xe2\x80\xa8") || text_starts_with(at, "\xe2\x80\xa9"))
        (void)text_format(escape, 8, "\\u202%c", at[2] == '\xa8' ? '8' : '9'); /* fits */
    else
        return 0;
    return *at == '\xe2' ? 3 : 1;
}

static void put_string(struct writing *to, const char *text)
{
    char escape[8];

    add_text(&to->made, "\"");
    for (const char *begin = text;; begin = text) {
        size_t size = 0;

        while (*text != '\0' && (size = take_escaped(to, text, escape)) == 0)
            text++;
        growing_add(&to->made, begin, (size_t)(text - begin));
        if (*text == '\0')
            break;
        add_text(&to->made, escape);
        text += size;
    }
    add_text(&to->made, "\"");
}

/* The fewest digits that mean NUMBER, without an exponent from 1e-6 to 1e21. */
static void put_real(struct writing *to, double number)
{
    char text[NUMBER_SIZE];
    int digits = 0;

    do
        (void)snprintf(text, sizeof(text), "%.*e", digits, number); /* fits */
    while (strtod(text, NULL) != number && ++digits < DIGITS_MAX);
    char *mark = strchr(text, 'e');
    long exponent = strtol(mark + 1, NULL, 10);
    if (number == 0 || (exponent >= -6 && exponent < 21))
        (void)snprintf(text, sizeof(text), "%.*f", digits > exponent ? digits - (int)exponent : 0,
                       number); /* fits */
    else if (mark[1] == '-' && mark[2] == '0')
        memmove(mark + 2, mark + 3, strlen(mark + 2));
    add_text(&to->made, text);
}

static void put_value(struct writing *to, const json_t *value, int depth);

static void put_object(struct writing *to, const json_t *object, int depth)
{
    size_t count;
    const char **keys = value_keys(object, &count);

    add_text(&to->made, "{");
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            add_text(&to->made, ",");
        put_line(to, depth + 1);
        put_string(to, keys[i]);
        add_text(&to->made, to->pretty ? ": " : ":");
        put_value(to, json_object_get(object, keys[i]), depth + 1);
    }
    free(keys);
    if (count > 0)
        put_line(to, depth);
    add_text(&to->made, "}");
}

static void put_array(struct writing *to, const json_t *array, int depth)
{
    add_text(&to->made, "[");
    for (size_t i = 0; i < json_array_size(array); i++) {
        if (i > 0)
            add_text(&to->made, ",");
        put_line(to, depth + 1);
        put_value(to, json_array_get(array, i), depth + 1);
    }
    if (json_array_size(array) > 0)
        put_line(to, depth);
    add_text(&to->made, "]");
}

static void put_value(struct writing *to, const json_t *value, int depth)
{
    char *text;

    if (json_is_object(value)) {
        put_object(to, value, depth);
    } else if (json_is_array(value)) {
        put_array(to, value, depth);
    } else if (json_is_string(value)) {
        put_string(to, json_string_value(value));
    } else if (json_is_real(value)) {
        put_real(to, json_real_value(value));
    } else {
        text = json_dumps(value, JSON_ENCODE_ANY);
        check(text != NULL);
        add_text(&to->made, text);
        free(text);
    }
}

static json_t *run_to_json(const struct call *call)
{
    struct writing to = {.pretty = text_ends_with(call->name, "Pretty"),
                         .for_html = text_starts_with(call->name, "toJSON")};

    put_value(&to, call->arguments[0], 0);
    (void)call_charge(call, 4 * to.made.length); /* it tells */
    return call_give_grown(call, &to.made);
}

const struct function template_json_functions[] = {
    {"parseJSON", 1, 1, run_parse_json},          {"toJSON", 1, 1, run_to_json},
    {"toJSONPretty", 1, 1, run_to_json},          {"toUnescapedJSON", 1, 1, run_to_json},
    {"toUnescapedJSONPretty", 1, 1, run_to_json}, {NULL, 0, 0, NULL},
};
