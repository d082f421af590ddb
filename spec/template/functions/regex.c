/* Functions of templates that look for patterns, by spec/regex.h; a match costs what it took. */
#include "spec/template/functions/part.h"

#include "spec/regex.h"

#include <stdlib.h>
#include <string.h>
#include <unictype.h>
#include <unistr.h>

enum { STEPS_A_STEP = 16 }; /* of a match, for one of a template */

struct search {
    const struct call *call;
    struct regex *regex;
    const char *text;
    size_t length;
    struct regex_span spans[REGEX_GROUPS_MAX + 1]; /* of the last match */
};

/* For the first argument in the text of the argument AT; false with the error told, or to be ended
 * with regex_free. */
static bool begin_search(const struct call *call, size_t at, struct search *search)
{
    const char *pattern = call_text(call, 0), *text = call_text(call, at);
    struct err err = {0};

    *search = (struct search){.call = call, .text = text, .length = strlen(text)};
    search->regex = regex_new(pattern, strlen(pattern), &err);
    if (search->regex == NULL)
        (void)call_refuse(call, err.text);
    return search->regex != NULL;
}

/* 1: found, 0: nothing more, below 0: the error is told. */
static int find(struct search *search, size_t from)
{
    struct evaluating *evaluating = search->call->evaluating;
    uint64_t before = regex_steps(search->regex);
    struct err err = {0};
    int found = regex_find(search->regex, search->text, search->length, from, search->spans, &err);
    uint64_t steps = (regex_steps(search->regex) - before) / STEPS_A_STEP;

    if (found < 0)
        (void)call_refuse(search->call, err.text);
    else if (!template_charge(evaluating, 1 + (size_t)steps))
        found = ERR_LIMIT;
    return found;
}

static json_t *run_regex_match(const struct call *call)
{
    struct search search;

    if (!begin_search(call, 1, &search))
        return NULL;
    int found = find(&search, 0);
    regex_free(search.regex);
    return found < 0 ? NULL : json_boolean(found == 1);
}

/* Letters, digits and _ of all languages. */
static size_t reference_length(const char *name)
{
    const char *at = name;
    ucs4_t character;

    for (; u8_strmbtouc(&character, (const uint8_t *)at) > 0; at += character_size(at)) {
        if (character != '_' && !uc_is_general_category(character, UC_LETTER) &&
            !uc_is_general_category(character, UC_DECIMAL_DIGIT_NUMBER))
            break;
    }
    return (size_t)(at - name);
}

/* The group that $NAME or ${NAME} at WITH means, which is so many bytes long; a name is as long as
 * it can be, and one that there is not means nothing.  0 bytes: it is no such thing. */
static size_t read_reference(const struct regex *regex, const char *with, size_t *ret_group)
{
    bool braces = with[1] == '{';
    const char *name = with + 1 + braces;
    size_t length = reference_length(name), digits = strspn(name, "0123456789");

    if (length == 0 || (braces && name[length] != '}'))
        return 0;
    *ret_group = SIZE_MAX;
    if (digits == length && !(digits > 1 && *name == '0') && length < 4) {
        *ret_group = strtoul(name, NULL, 10);
    } else if (digits < length && regex_group(regex, name, length) > 0) {
        *ret_group = regex_group(regex, name, length);
    }
    return 1 + length + 2 * (size_t)braces;
}

static void add_replacement(struct growing *to, const struct search *search, const char *with)
{
    const struct regex_span *spans = search->spans;
    size_t group, length;

    for (; *with != '\0' && !to->full; with += length) {
        if (with[0] == '$' && with[1] == '$') {
            growing_add(to, "$", 1);
            length = 2;
            continue;
        }
        length = with[0] == '$' ? read_reference(search->regex, with, &group) : 0;
        if (length == 0) {
            length = 1 + strcspn(with + 1, "$");
            growing_add(to, with, length);
        } else if (group <= regex_groups(search->regex) && spans[group].begin != SIZE_MAX) {
            growing_add(to, search->text + spans[group].begin,
                        spans[group].end - spans[group].begin);
        }
    }
}

/* All matches from left to right; as in Go an empty one counts unless it is where the one before it
 * ended. */
static json_t *run_regex_replace_all(const struct call *call)
{
    const char *with = call_text(call, 1);
    size_t from = 0, done = 0, last_end = SIZE_MAX;
    struct growing made = {0};
    struct search search;
    int found = 1;

    if (!begin_search(call, 2, &search))
        return NULL;
    while (from <= search.length && !made.full && (found = find(&search, from)) == 1) {
        const struct regex_span *whole = &search.spans[0];

        if (whole->end > whole->begin || whole->begin != last_end) {
            growing_add(&made, search.text + done, whole->begin - done);
            add_replacement(&made, &search, with);
            done = whole->end;
        }
        last_end = from = whole->end;
        if (whole->end == whole->begin)
            from += from < search.length ? character_size(search.text + from) : 1;
    }
    growing_add(&made, search.text + done, search.length - done);
    regex_free(search.regex);
    return call_give_grown(call, &made); /* NULL where an error is told */
}

const struct function template_regex_functions[] = {
    {"regexMatch", 2, 2, run_regex_match},
    {"regexReplaceAll", 3, 3, run_regex_replace_all},
    {NULL, 0, 0, NULL},
};
