/* Functions of templates that make texts of texts, or look into them. */
#include "spec/template/functions/part.h"

#include "spec/regex.h"

#include <stdlib.h>
#include <string.h>

/* --- texts --- */

static json_t *run_case(const struct call *call)
{
    const char *text = call_text(call, 0);
    bool upper = text_equal(call->name, "toUpper");
    struct growing made = {0};

    for (; *text != '\0'; text++) {
        char c = *text;

        if (upper && c >= 'a' && c <= 'z')
            c = (char)(c - 'a' + 'A');
        if (!upper && c >= 'A' && c <= 'Z')
            c = (char)(c - 'A' + 'a');
        growing_add(&made, &c, 1);
    }
    return call_give_grown(call, &made);
}

static json_t *run_trim_space(const struct call *call)
{
    static const char spaces[] = " \t\n\v\f\r";
    const char *text = call_text(call, 0);

    text += strspn(text, spaces);
    size_t length = strlen(text);
    while (length > 0 && strchr(spaces, text[length - 1]) != NULL)
        length--;
    return call_give(call, text, length);
}

static json_t *run_trim(const struct call *call)
{
    const char *set = call_text(call, 0), *text = call_text(call, 1);

    text += strspn(text, set);
    size_t length = strlen(text);
    while (length > 0 && strchr(set, text[length - 1]) != NULL)
        length--;
    return call_give(call, text, length);
}

static json_t *run_trim_end(const struct call *call)
{
    const char *end = call_text(call, 0), *text = call_text(call, 1);
    bool prefix = text_equal(call->name, "trimPrefix");

    if (prefix && text_starts_with(text, end))
        return call_give_text(call, text + strlen(end));
    if (!prefix && text_ends_with(text, end))
        return call_give(call, text, strlen(text) - strlen(end));
    return json_incref(call->arguments[1]);
}

static json_t *run_split(const struct call *call)
{
    const char *separator = call_text(call, 0), *text = call_text(call, 1);
    size_t length = strlen(separator);
    json_t *list = json_array();

    /* As consul-template: of nothing there is nothing. */
    while (call->evaluating->code == 0 && *text != '\0') {
        const char *end = length == 0 ? text + 1 : strstr(text, separator);
        json_t *part = call_give(call, text, end == NULL ? strlen(text) : (size_t)(end - text));

        if (part != NULL)
            check(json_array_append_new(list, part) == 0);
        if (end != NULL && length > 0 && end[length] == '\0') /* it ends with one */
            check(json_array_append_new(list, json_string("")) == 0);
        text = end == NULL ? "" : end + length;
    }
    if (call->evaluating->code == 0)
        return list;
    json_decref(list);
    return NULL;
}

static json_t *run_join(const struct call *call)
{
    const char *separator = call_text(call, 0);
    struct growing made = {0};
    json_t *item;
    size_t i;

    if (!json_is_array(call->arguments[1]))
        return call_refuse(call, "wrong type of argument: a list is needed");
    json_array_foreach(call->arguments[1], i, item)
    {
        char *text = template_print(item);

        if (i > 0)
            growing_add(&made, separator, strlen(separator));
        growing_add(&made, text, strlen(text));
        free(text);
    }
    return call_give_grown(call, &made);
}

static json_t *run_replace(const struct call *call)
{
    const char *from = call_text(call, 0), *to = call_text(call, 1), *text = call_text(call, 2);
    size_t length = strlen(from);
    struct growing made = {0};

    if (length == 0)
        return json_incref(call->arguments[2]);
    for (const char *at; (at = strstr(text, from)) != NULL && !made.full; text = at + length) {
        growing_add(&made, text, (size_t)(at - text));
        growing_add(&made, to, strlen(to));
    }
    growing_add(&made, text, strlen(text));
    return call_give_grown(call, &made);
}

static json_t *run_indent(const struct call *call)
{
    json_int_t spaces = json_integer_value(call->arguments[0]);
    const char *text = call_text(call, 1);
    struct growing made = {0};

    if (!json_is_integer(call->arguments[0]) || spaces < 0 || spaces > 1000)
        return call_refuse(call, "indent value must be a number from 0 to 1000");
    for (;;) {
        size_t length = strcspn(text, "\n");

        for (json_int_t i = 0; i < spaces; i++)
            growing_add(&made, " ", 1);
        growing_add(&made, text, length);
        if (text[length] == '\0')
            break;
        growing_add(&made, "\n", 1);
        text += length + 1;
    }
    return call_give_grown(call, &made);
}

/* True if LIST has VALUE, or the text the part. */
static json_t *run_in(const struct call *call)
{
    bool turned = text_equal(call->name, "contains");
    const json_t *list = call->arguments[turned ? 1 : 0], *value = call->arguments[turned ? 0 : 1];
    json_t *item;
    size_t i;

    if (json_is_string(list) && json_is_string(value))
        return json_boolean(strstr(json_string_value(list), json_string_value(value)) != NULL);
    json_array_foreach(list, i, item)
    {
        if (json_equal(item, value))
            return json_true();
    }
    return json_false();
}

/* --- regular expressions --- */

static struct regex *regex_of(const struct call *call, const char *pattern)
{
    struct err err = {0};
    struct regex *regex = regex_new(pattern, strlen(pattern), &err);

    if (regex == NULL)
        (void)call_refuse(call, err.text);
    return regex;
}

static json_t *run_regex_match(const struct call *call)
{
    const char *pattern = call_text(call, 0), *text = call_text(call, 1);
    struct regex_span spans[REGEX_GROUPS_MAX + 1];
    struct regex *regex = regex_of(call, pattern);
    struct err err = {0};

    if (regex == NULL)
        return NULL;
    int found = regex_find(regex, text, strlen(text), 0, spans, &err);
    (void)template_charge(call->evaluating, (size_t)(regex_steps(regex) / 16)); /* it tells */
    regex_free(regex);
    return found < 0 ? call_refuse(call, err.text) : json_boolean(found == 1);
}

const struct function template_texts_functions[] = {
    {"contains", 2, 2, run_in},
    {"in", 2, 2, run_in},
    {"indent", 2, 2, run_indent},
    {"join", 2, 2, run_join},
    {"regexMatch", 2, 2, run_regex_match},
    {"replaceAll", 3, 3, run_replace},
    {"split", 2, 2, run_split},
    {"toLower", 1, 1, run_case},
    {"toUpper", 1, 1, run_case},
    {"trim", 2, 2, run_trim},
    {"trimPrefix", 2, 2, run_trim_end},
    {"trimSpace", 1, 1, run_trim_space},
    {"trimSuffix", 2, 2, run_trim_end},
    {NULL, 0, 0, NULL},
};
