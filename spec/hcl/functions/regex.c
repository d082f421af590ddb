/* regex, regexall and regex_replace, by spec/regex.h; each match costs what it took. */
#include "spec/regex.h"
#include "spec/hcl/tree.h"

#include <string.h>

enum {
    SUBJECT_MAX = 64 << 10,
    COMPILE_UNITS = 200,
    STEPS_A_UNIT = 8,
};

/* A compiled pattern and the text it is looked for in. */
struct search {
    const struct hcl_call *call;
    struct hcl_texts texts;
    struct regex *regex;
    const char *text;
    size_t length;
    struct regex_span spans[REGEX_GROUPS_MAX + 1]; /* of the last match */
};

static void end_search(struct search *search)
{
    regex_free(search->regex);
    hcl_texts_drop(&search->texts);
}

/* Of the arguments PATTERN and SUBJECT; false with the error set, or to be ended with end_search.
 */
static bool begin_search(const struct hcl_call *call, size_t pattern, size_t subject,
                         struct search *search)
{
    struct err err = {0};

    *search = (struct search){.call = call};
    if (!hcl_texts_read(call, &search->texts, call->count))
        return false;
    search->text = search->texts.text[subject];
    search->length = search->texts.length[subject];
    if (search->length > SUBJECT_MAX)
        (void)hcl_call_failed(call, "looks at texts of at most %d bytes", SUBJECT_MAX);
    else if (hcl_charge(call->context, call->place, COMPILE_UNITS, call->error) == 0) {
        search->regex = regex_new(search->texts.text[pattern], search->texts.length[pattern], &err);
        if (search->regex == NULL)
            (void)hcl_call_failed(call, "cannot use this pattern: %s", err.text);
    }
    if (search->regex == NULL)
        end_search(search);
    return search->regex != NULL;
}

/* 1: found, 0: nothing more, below 0: the error is set. */
static int find(struct search *search, size_t from)
{
    uint64_t before = regex_steps(search->regex);
    struct err err = {0};
    int found = regex_find(search->regex, search->text, search->length, from, search->spans, &err);
    uint64_t units = (regex_steps(search->regex) - before) / STEPS_A_UNIT;

    if (found < 0)
        (void)hcl_call_failed(search->call, "cannot use this pattern: %s", err.text);
    else if (hcl_charge(search->call->context, search->call->place, units, search->call->error) < 0)
        found = ERR_LIMIT;
    return found;
}

static json_t *span_value(const struct search *search, size_t group)
{
    const struct regex_span *span = &search->spans[group];

    return span->begin == SIZE_MAX
               ? json_null()
               : json_stringn(search->text + span->begin, span->end - span->begin);
}

/* A match as regex() gives it: the text; or its groups, a list of those without names or an object
 * of those with. */
static json_t *match_value(const struct search *search)
{
    size_t groups = regex_groups(search->regex);
    bool named = groups > 0 && regex_name(search->regex, 1) != NULL;
    json_t *value = named ? json_object() : json_array();

    if (groups == 0) {
        json_decref(value);
        return span_value(search, 0);
    }
    for (size_t i = 1; i <= groups; i++) {
        if (named)
            check(json_object_set_new(value, regex_name(search->regex, i), span_value(search, i)) ==
                  0);
        else
            check(json_array_append_new(value, span_value(search, i)) == 0);
    }
    return value;
}

static bool groups_are_alike(const struct search *search)
{
    size_t groups = regex_groups(search->regex), named = 0;

    for (size_t i = 1; i <= groups; i++)
        named += regex_name(search->regex, i) != NULL;
    if (named != 0 && named != groups)
        (void)hcl_call_failed(search->call, "takes groups with names or without, not both");
    return named == 0 || named == groups;
}

static json_t *run_regex(const struct hcl_call *call)
{
    struct search search;
    json_t *value = NULL;

    if (!begin_search(call, 0, 1, &search))
        return NULL;
    int found = groups_are_alike(&search) ? find(&search, 0) : ERR_INVALID;
    if (found == 1)
        value = match_value(&search);
    else if (found == 0)
        (void)hcl_call_failed(call, "finds no match for \"%.60s\"", search.texts.text[0]);
    end_search(&search);
    return value;
}

/* Calls CB for each match from left to right; as in Go an empty one counts unless it is where the
 * one before it ended.  False with the error set. */
static bool each_match(struct search *search, void (*cb)(void *ctx, const struct search *search),
                       void *ctx)
{
    size_t from = 0, last_end = SIZE_MAX;
    int found;

    while (from <= search->length && (found = find(search, from)) != 0) {
        const struct regex_span *whole = &search->spans[0];

        if (found < 0)
            return false;
        if (whole->end > whole->begin || whole->begin != last_end)
            cb(ctx, search);
        last_end = from = whole->end;
        if (whole->end == whole->begin)
            from += from < search->length
                        ? hcl_character_size(search->text + from, search->text + search->length)
                        : 1;
    }
    return true;
}

static void add_match(void *ctx, const struct search *search)
{
    check(json_array_append_new(ctx, match_value(search)) == 0);
}

static json_t *run_regexall(const struct hcl_call *call)
{
    struct search search;
    json_t *list = json_array();

    if (!begin_search(call, 0, 1, &search)) {
        json_decref(list);
        return NULL;
    }
    bool done = groups_are_alike(&search) && each_match(&search, add_match, list);
    end_search(&search);
    if (done)
        return list;
    json_decref(list);
    return NULL;
}

struct replacing {
    struct hcl_buffer buffer;
    size_t done; /* bytes of the text that are copied, or replaced */
    const char *with;
};

/* The group that $NAME or ${NAME} at WITH means, which is LENGTH bytes long; a name is as long as
 * it can be, and one that there is not means nothing.  0 bytes: it is no such thing. */
static size_t read_reference(const struct regex *regex, const char *with, size_t *ret_group)
{
    static const char in_names[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                   "0123456789_";
    bool braces = with[1] == '{';
    const char *name = with + 1 + braces;
    size_t length = strspn(name, in_names), digits = strspn(name, "0123456789");

    if (length == 0 || (braces && name[length] != '}'))
        return 0;
    *ret_group = SIZE_MAX;
    if (digits == length && length < 4) {
        *ret_group = 0;
        for (size_t i = 0; i < length; i++)
            *ret_group = *ret_group * 10 + (size_t)(name[i] - '0');
    } else if (digits < length && regex_group(regex, name, length) > 0) {
        *ret_group = regex_group(regex, name, length);
    }
    return 1 + length + 2 * (size_t)braces;
}

static void add_replacement(void *ctx, const struct search *search)
{
    struct replacing *replacing = ctx;
    const struct regex_span *spans = search->spans;
    size_t group, length;

    hcl_buffer_add(&replacing->buffer, search->text + replacing->done,
                   spans[0].begin - replacing->done);
    replacing->done = spans[0].end;
    for (const char *with = replacing->with; *with != '\0';) {
        if (with[0] == '$' && with[1] == '$') {
            hcl_buffer_add(&replacing->buffer, "$", 1);
            with += 2;
            continue;
        }
        length = with[0] == '$' ? read_reference(search->regex, with, &group) : 0;
        if (length == 0) {
            hcl_buffer_add(&replacing->buffer, with++, 1);
            continue;
        }
        if (group <= regex_groups(search->regex) && spans[group].begin != SIZE_MAX)
            hcl_buffer_add(&replacing->buffer, search->text + spans[group].begin,
                           spans[group].end - spans[group].begin);
        with += length;
    }
}

/* regex_replace(text, pattern, replacement) */
static json_t *run_regex_replace(const struct hcl_call *call)
{
    struct replacing replacing = {.done = 0};
    struct search search;

    if (!begin_search(call, 1, 0, &search))
        return NULL;
    replacing.with = search.texts.text[2];
    bool done = each_match(&search, add_replacement, &replacing);
    hcl_buffer_add(&replacing.buffer, search.text + replacing.done, search.length - replacing.done);
    end_search(&search);
    if (done)
        return hcl_call_text(call, &replacing.buffer);
    hcl_buffer_free(&replacing.buffer);
    return NULL;
}

const struct hcl_function_row hcl_regex_functions[] = {
    {"regex", 2, 2, run_regex},
    {"regex_replace", 3, 3, run_regex_replace},
    {"regexall", 2, 2, run_regexall},
    {NULL, 0, 0, NULL},
};
