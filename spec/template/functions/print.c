/* Functions of templates that print, as Go's fmt does. */
#include "spec/template/functions/part.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Go puts spaces between what are no texts (print), or between all (println). */
static json_t *run_print(const struct call *call)
{
    bool lines = text_equal(call->name, "println");
    struct growing made = {0};

    for (size_t i = 0; i < call->count; i++) {
        char *text = template_print(call->arguments[i]);

        if (i > 0 && (lines || (!json_is_string(call->arguments[i - 1]) &&
                                !json_is_string(call->arguments[i]))))
            growing_add(&made, " ", 1);
        growing_add(&made, text, strlen(text));
        free(text);
    }
    if (lines)
        growing_add(&made, "\n", 1);
    return call_give_grown(call, &made);
}

static void add_padded(struct growing *to, const char *text, long width, bool left, bool zero)
{
    long missing = width - (long)strlen(text);

    for (long i = 0; i < missing && !left; i++)
        growing_add(to, zero ? "0" : " ", 1);
    growing_add(to, text, strlen(text));
    for (long i = 0; i < missing && left; i++)
        growing_add(to, " ", 1);
}

/* One verb of a format at AT (behind the %), with its argument; where it ends, NULL: no such. */
static const char *add_verb(const struct call *call, const char *at, const json_t *argument,
                            struct growing *made)
{
    bool left = false, zero = false;
    long width = 0, precision = -1;
    char number[400], *text = template_print(argument);
    char *end = (char *)at;

    for (; *at == '-' || *at == '0'; at++) {
        left = left || *at == '-';
        zero = zero || *at == '0';
    }
    width = *at >= '1' && *at <= '9' ? strtol(at, &end, 10) : 0;
    at = width > 0 ? end : at;
    if (*at == '.') {
        precision = strtol(at + 1, &end, 10);
        at = end;
    }
    bool good = width <= 1000 && precision <= 60;
    const char *shown = text;
    if (*at == 'd' && json_is_integer(argument)) {
        shown = text;
    } else if (*at == 'x' && json_is_integer(argument)) {
        (void)snprintf(number, sizeof(number), "%llx",
                       (unsigned long long)json_integer_value(argument));
        shown = number;
    } else if (*at == 'f' && json_is_number(argument)) {
        (void)snprintf(number, sizeof(number), "%.*f", precision < 0 ? 6 : (int)precision,
                       json_number_value(argument));
        shown = number;
    } else if (*at == 'q' && json_is_string(argument)) {
        free(text);
        text = json_dumps(argument, JSON_ENCODE_ANY);
        check(text != NULL);
        shown = text;
    } else {
        good = good && (*at == 'v' || (*at == 's' && json_is_string(argument)) ||
                        (*at == 't' && json_is_boolean(argument)));
    }
    if (good)
        add_padded(made, shown, width, left, zero && !left);
    free(text);
    (void)call;
    return good ? at + 1 : NULL;
}

static json_t *run_printf(const struct call *call)
{
    const char *at = call_text(call, 0);
    struct growing made = {0};
    size_t used = 1;

    while (at != NULL && *at != '\0') {
        size_t length = strcspn(at, "%");

        growing_add(&made, at, length);
        at += length;
        if (*at == '\0')
            break;
        if (at[1] == '%') {
            growing_add(&made, "%", 1);
            at += 2;
        } else {
            at = used < call->count ? add_verb(call, at + 1, call->arguments[used++], &made) : NULL;
        }
    }
    json_t *value = call_give_grown(call, &made);
    if (at != NULL && used == call->count)
        return value;
    json_decref(value);
    return call_refuse(call, "its format and its arguments do not fit");
}

/* --- for other readers --- */

/* What `print` says, for HTML or a URL. */
static json_t *run_escape(const struct call *call)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~";
    json_t *printed = run_print(call);
    struct growing made = {0};
    char escape[8];

    if (printed == NULL)
        return NULL;
    for (const char *at = json_string_value(printed); *at != '\0'; at++) {
        if (text_equal(call->name, "urlquery") && *at == ' ')
            growing_add(&made, "+", 1);
        else if (text_equal(call->name, "urlquery") && strchr(plain, *at) == NULL)
            growing_add(&made, escape,
                        (size_t)snprintf(escape, sizeof(escape), "%%%02X", (unsigned char)*at));
        else if (text_equal(call->name, "html") && (*at == '"' || *at == '\''))
            growing_add(&made, *at == '"' ? "&#34;" : "&#39;", 5);
        else if (text_equal(call->name, "html") && (*at == '<' || *at == '>'))
            growing_add(&made, *at == '<' ? "&lt;" : "&gt;", 4);
        else if (text_equal(call->name, "html") && *at == '&')
            growing_add(&made, "&amp;", 5);
        else
            growing_add(&made, at, 1);
    }
    json_decref(printed);
    return call_give_grown(call, &made);
}

const struct function template_print_functions[] = {
    {"html", 1, ANY, run_escape},     {"print", 0, ANY, run_print},
    {"printf", 1, ANY, run_printf},   {"println", 0, ANY, run_print},
    {"urlquery", 1, ANY, run_escape}, {NULL, 0, 0, NULL},
};
