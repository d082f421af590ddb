/* Functions of templates that print, as Go's fmt does; printf is in printf.c. */
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
    {"html", 1, ANY, run_escape},        {"print", 0, ANY, run_print},
    {"printf", 1, ANY, template_printf}, {"println", 0, ANY, run_print},
    {"urlquery", 1, ANY, run_escape},    {NULL, 0, 0, NULL},
};
