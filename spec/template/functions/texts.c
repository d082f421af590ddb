/* Functions of templates that make texts of texts, or look into them. */
#include "spec/template/functions/part.h"

#include <stdlib.h>
#include <string.h>
#include <unictype.h>
#include <unistr.h>

static const char *last_character(const char *text, const char *end)
{
    for (end--; end > text && ((unsigned char)*end & 0xC0u) == 0x80u; end--)
        ;
    return end;
}

static bool is_space(const char *at)
{
    ucs4_t character;

    return u8_strmbtouc(&character, (const uint8_t *)at) > 0 &&
           uc_is_property_white_space(character);
}

void text_trim_space(const char **text, const char **ret_end)
{
    const char *end = *text + strlen(*text);

    while (*text < end && is_space(*text))
        *text += character_size(*text);
    while (end > *text && is_space(last_character(*text, end)))
        end = last_character(*text, end);
    *ret_end = end;
}

static json_t *run_trim_space(const struct call *call)
{
    const char *text = call_text(call, 0), *end;

    text_trim_space(&text, &end);
    return call_give(call, text, (size_t)(end - text));
}

/* True if the character at AT (SIZE bytes) is in SET. */
static bool is_in_set(const char *at, size_t size, const char *set)
{
    for (; *set != '\0'; set += character_size(set)) {
        if (character_size(set) == size && memcmp(at, set, size) == 0)
            return true;
    }
    return false;
}

static json_t *run_trim(const struct call *call)
{
    const char *set = call_text(call, 0), *text = call_text(call, 1), *end = text + strlen(text);
    const char *last;

    /* A set may be long, and each character is looked for in it. */
    if (!template_charge(call->evaluating, strlen(text) / 16 * (1 + strlen(set) / 16)))
        return NULL;
    while (text < end && is_in_set(text, character_size(text), set))
        text += character_size(text);
    while (end > text && (last = last_character(text, end)) != NULL &&
           is_in_set(last, (size_t)(end - last), set))
        end = last;
    return call_give(call, text, (size_t)(end - text));
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

/* A text as one more of LIST; false: an error is told. */
static bool append(const struct call *call, json_t *list, const char *text, size_t length)
{
    json_t *part = call_give(call, text, length);

    return part != NULL && json_array_append_new(list, part) == 0;
}

/* Without spaces around all; of nothing there is nothing, and by nothing each character is one. */
static json_t *run_split(const struct call *call)
{
    const char *separator = call_text(call, 0), *text = call_text(call, 1), *end, *at;
    size_t length = strlen(separator);
    json_t *list = json_array();
    bool good = true;

    text_trim_space(&text, &end);
    if (length > 0 && text < end) {
        for (; good && (at = memmem(text, (size_t)(end - text), separator, length)) != NULL;
             text = at + length)
            good = append(call, list, text, (size_t)(at - text));
        good = good && append(call, list, text, (size_t)(end - text));
    }
    for (; length == 0 && good && text < end; text += character_size(text))
        good = append(call, list, text, character_size(text));
    if (good && call->evaluating->code == 0)
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

    for (; length == 0 && *text != '\0' && !made.full; text += character_size(text)) {
        growing_add(&made, to, strlen(to));
        growing_add(&made, text, character_size(text));
    }
    if (length == 0)
        growing_add(&made, to, strlen(to));
    for (const char *at; length > 0 && (at = strstr(text, from)) != NULL && !made.full;
         text = at + length) {
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

        for (json_int_t i = 0; i < spaces && length > 0; i++) /* nothing stays nothing */
            growing_add(&made, " ", 1);
        growing_add(&made, text, length);
        if (text[length] == '\0')
            break;
        growing_add(&made, "\n", 1);
        text += length + 1;
    }
    return call_give_grown(call, &made);
}

/* Whole numbers and others are not the same, and nothing but numbers and texts is. */
static bool is_same(const json_t *a, const json_t *b)
{
    return (json_is_number(a) || json_is_string(a)) && json_equal(a, b);
}

/* True if LIST has VALUE, or the text the part. */
static bool has(const struct call *call, const json_t *list, const json_t *value)
{
    json_t *item;
    size_t i;

    if (!template_charge(call->evaluating, 1 + json_array_size(list) / 16))
        return false;
    if (json_is_string(list) && json_is_string(value))
        return strstr(json_string_value(list), json_string_value(value)) != NULL;
    json_array_foreach(list, i, item)
    {
        if (is_same(item, value))
            return true;
    }
    return false;
}

static json_t *run_in(const struct call *call)
{
    bool turned = text_equal(call->name, "contains");

    return json_boolean(
        has(call, call->arguments[turned ? 1 : 0], call->arguments[turned ? 0 : 1]));
}

/* containsAll, containsAny, containsNone, containsNotAll: which of the first is in the second. */
static json_t *run_contains(const struct call *call)
{
    const char *which = call->name + strlen("contains");
    bool is_not = which[0] == 'N', all = text_ends_with(which, "All");
    json_t *item;
    size_t i;

    if (!json_is_array(call->arguments[0]))
        return call_refuse(call, "wrong type of argument: a list is needed");
    json_array_foreach(call->arguments[0], i, item)
    {
        if (has(call, call->arguments[1], item) != all)
            return json_boolean(all == is_not);
    }
    return json_boolean(all != is_not);
}

const struct function template_texts_functions[] = {
    {"contains", 2, 2, run_in},
    {"containsAll", 2, 2, run_contains},
    {"containsAny", 2, 2, run_contains},
    {"containsNone", 2, 2, run_contains},
    {"containsNotAll", 2, 2, run_contains},
    {"in", 2, 2, run_in},
    {"indent", 2, 2, run_indent},
    {"join", 2, 2, run_join},
    {"replaceAll", 3, 3, run_replace},
    {"split", 2, 2, run_split},
    {"trim", 2, 2, run_trim},
    {"trimPrefix", 2, 2, run_trim_end},
    {"trimSpace", 1, 1, run_trim_space},
    {"trimSuffix", 2, 2, run_trim_end},
    {NULL, 0, 0, NULL},
};
