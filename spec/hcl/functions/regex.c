/*
 * regex, regexall and regex_replace: POSIX extended expressions on UTF-8 with \d and \D added.
 *
 * Patterns and texts come from outside and glibc's matcher has no bound of its own, so both are
 * short, groups and counted repeats few, and each call costs what the worst pattern could.
 */
#include "spec/hcl/tree.h"

#include <locale.h>
#include <regex.h>
#include <string.h>

enum { PATTERN_MAX = 512, GROUPS_MAX = 32, SUBJECT_MAX = 1024 };

/* Translates the common escapes to POSIX and refuses what would be unbounded work for regcomp and
 * regexec: long patterns, many groups, counted repeats, back-references. */
static bool translate_pattern(const struct hcl_call *call, const char *pattern,
                              struct hcl_buffer *ret_pattern)
{
    size_t groups = 0, repeats = 0;
    bool set = false;

    if (strlen(pattern) > PATTERN_MAX) {
        (void)hcl_call_failed(call, "takes patterns of at most %d characters", PATTERN_MAX);
        return false;
    }
    for (const char *at = pattern; *at != '\0'; at++) {
        if (*at == '\\' && at[1] != '\0') {
            at++;
            const char *class = *at == 'd' ? "[0-9]" : *at == 'D' ? "[^0-9]" : NULL;

            if (*at >= '1' && *at <= '9') {
                (void)hcl_call_failed(call, "knows no back-references in patterns");
                return false;
            }
            if (class != NULL && set) {
                (void)hcl_call_failed(call, "takes 0-9 inside [ ], not \\d");
                return false;
            }
            if (class != NULL)
                hcl_buffer_add(ret_pattern, class, strlen(class));
            else
                hcl_buffer_add(ret_pattern, at - 1, 2);
            continue;
        }
        if (!set && at[0] == '(' && at[1] == '?') {
            (void)hcl_call_failed(call, "knows no (?...) in patterns");
            return false;
        }
        groups += !set && *at == '(';
        repeats += !set && *at == '{';
        if (groups >= GROUPS_MAX || repeats > 1) {
            (void)hcl_call_failed(call, "takes fewer than %d groups and one counted repeat",
                                  GROUPS_MAX);
            return false;
        }
        if (*at == '[' && !set) {
            set = true;
            size_t skip = at[1] == '^' ? 1 : 0; /* a bracket that comes first is a member */

            skip += at[1 + skip] == ']';
            hcl_buffer_add(ret_pattern, at, 1 + skip);
            at += skip;
            continue;
        }
        if (*at == ']')
            set = false;
        hcl_buffer_add(ret_pattern, at, 1);
    }
    return true;
}

/* Counted repeats multiply the automaton; a small bound keeps regcomp small. */
static bool check_repeat(const struct hcl_call *call, const char *pattern)
{
    const char *open = strchr(pattern, '{');

    while (open != NULL) {
        for (const char *at = open + 1; *at >= '0' && *at <= '9'; at++) {
            if (at - open > 2) {
                (void)hcl_call_failed(call, "takes counted repeats up to 99");
                return false;
            }
        }
        const char *comma = strchr(open, ',');
        if (comma != NULL && strspn(comma + 1, "0123456789") > 2) {
            (void)hcl_call_failed(call, "takes counted repeats up to 99");
            return false;
        }
        open = strchr(open + 1, '{');
    }
    return true;
}

static bool compile(const struct hcl_call *call, const char *pattern, regex_t *ret_regex)
{
    struct hcl_buffer posix = {0};
    char reason[100];
    bool compiled = check_repeat(call, pattern) && translate_pattern(call, pattern, &posix);

    if (compiled) {
        int code = regcomp(ret_regex, posix.bytes == NULL ? "" : posix.bytes, REG_EXTENDED);

        compiled = code == 0;
        if (!compiled) {
            (void)regerror(code, ret_regex, reason, sizeof(reason));
            (void)hcl_call_failed(call, "cannot use this pattern: %s", reason);
        }
    }
    hcl_buffer_free(&posix);
    return compiled;
}

/* A compiled pattern and the locale it works in: characters are UTF-8 whatever ours is. */
struct matcher {
    regex_t regex;
    locale_t utf8, outer;
};

static void enter_utf8(struct matcher *matcher)
{
    matcher->utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    matcher->outer = matcher->utf8 == (locale_t)0 ? (locale_t)0 : uselocale(matcher->utf8);
}

static void leave_utf8(struct matcher *matcher)
{
    if (matcher->utf8 == (locale_t)0)
        return;
    (void)uselocale(matcher->outer); /* what uselocale gave us is valid */
    freelocale(matcher->utf8);
}

/* The arguments PATTERN and SUBJECT, and the compiled pattern; end with end_regex. */
static bool begin_regex(const struct hcl_call *call, size_t pattern, size_t subject,
                        struct hcl_texts *texts, struct matcher *ret_matcher)
{
    if (!hcl_texts_read(call, texts, call->count))
        return false;
    size_t length = texts->length[subject];
    bool begun = length <= SUBJECT_MAX;
    if (!begun)
        (void)hcl_call_failed(call, "looks at texts of at most %d bytes", SUBJECT_MAX);
    else /* what matching costs at worst grows with the square of the text */
        begun = hcl_charge(call->context, call->place, 200 + length * length / 8, call->error) == 0;
    enter_utf8(ret_matcher);
    begun = begun && compile(call, texts->text[pattern], &ret_matcher->regex);
    if (!begun) {
        leave_utf8(ret_matcher);
        hcl_texts_drop(texts);
    }
    return begun;
}

static void end_regex(struct hcl_texts *texts, struct matcher *matcher)
{
    regfree(&matcher->regex);
    leave_utf8(matcher);
    hcl_texts_drop(texts);
}

/* A match as regex() gives it: the text, or a list of the groups if there are any. */
static json_t *match_value(const char *text, const regmatch_t *groups, size_t count)
{
    json_t *list;

    if (count == 0)
        return json_stringn(text + groups[0].rm_so, (size_t)(groups[0].rm_eo - groups[0].rm_so));
    list = json_array();
    for (size_t i = 1; i <= count; i++) {
        const regmatch_t *group = &groups[i];
        json_t *value = group->rm_so < 0 ? json_null()
                                         : json_stringn(text + group->rm_so,
                                                        (size_t)(group->rm_eo - group->rm_so));
        (void)json_array_append_new(list, value); /* half a character is left out */
    }
    return list;
}

static json_t *run_regex(const struct hcl_call *call)
{
    regmatch_t groups[GROUPS_MAX + 1];
    struct matcher matcher;
    struct hcl_texts texts;
    json_t *value = NULL;

    if (!begin_regex(call, 0, 1, &texts, &matcher))
        return NULL;
    if (regexec(&matcher.regex, texts.text[1], GROUPS_MAX + 1, groups, 0) == 0)
        value = match_value(texts.text[1], groups, matcher.regex.re_nsub);
    if (value == NULL)
        (void)hcl_call_failed(call, "finds no match for \"%.60s\"", texts.text[0]);
    end_regex(&texts, &matcher);
    return value;
}

/* Calls CB for each match from left to right; an empty match moves on by one character. */
static void each_match(const regex_t *regex, const char *text, size_t length,
                       void (*cb)(void *ctx, const char *at, const regmatch_t *groups), void *ctx)
{
    enum { MATCHES_MAX = 4096 };
    const char *at = text, *end = text + length;
    regmatch_t groups[GROUPS_MAX + 1];

    for (int i = 0; i < MATCHES_MAX && at <= end; i++) {
        if (regexec(regex, at, GROUPS_MAX + 1, groups, at == text ? 0 : REG_NOTBOL) != 0)
            break;
        cb(ctx, at, groups);
        at += groups[0].rm_eo;
        if (groups[0].rm_eo == groups[0].rm_so) {
            if (at >= end)
                break;
            at += hcl_character_size(at, end);
        }
    }
}

struct all_matches {
    const regex_t *regex;
    json_t *list;
};

static void add_match(void *ctx, const char *at, const regmatch_t *groups)
{
    struct all_matches *all = ctx;

    /* Half a character is left out. */
    (void)json_array_append_new(all->list, match_value(at, groups, all->regex->re_nsub));
}

static json_t *run_regexall(const struct hcl_call *call)
{
    struct matcher matcher;
    struct hcl_texts texts;

    if (!begin_regex(call, 0, 1, &texts, &matcher))
        return NULL;
    struct all_matches all = {.regex = &matcher.regex, .list = json_array()};
    each_match(&matcher.regex, texts.text[1], texts.length[1], add_match, &all);
    end_regex(&texts, &matcher);
    return all.list;
}

struct replacing {
    struct hcl_buffer buffer;
    const char *done; /* copied up to here */
    const char *with;
};

/* Adds the replacement: $1, ${1} and $0 are groups, $$ is a dollar. */
static void add_replacement(void *ctx, const char *at, const regmatch_t *groups)
{
    struct replacing *replacing = ctx;
    const char *start = at + groups[0].rm_so;

    hcl_buffer_add(&replacing->buffer, replacing->done, (size_t)(start - replacing->done));
    replacing->done = at + groups[0].rm_eo;
    for (const char *with = replacing->with; *with != '\0'; with++) {
        bool braces = with[0] == '$' && with[1] == '{';
        char digit = braces ? with[2] : with[1];

        if (with[0] == '$' && digit >= '0' && digit <= '9' && (!braces || with[3] == '}')) {
            const regmatch_t *group = &groups[digit - '0'];

            if (group->rm_so >= 0)
                hcl_buffer_add(&replacing->buffer, at + group->rm_so,
                               (size_t)(group->rm_eo - group->rm_so));
            with += braces ? 3 : 1;
        } else {
            with += with[0] == '$' && with[1] == '$';
            hcl_buffer_add(&replacing->buffer, with, 1);
        }
    }
}

/* regex_replace(text, pattern, replacement) */
static json_t *run_regex_replace(const struct hcl_call *call)
{
    struct matcher matcher;
    struct hcl_texts texts;

    if (!begin_regex(call, 1, 0, &texts, &matcher))
        return NULL;
    struct replacing replacing = {.done = texts.text[0], .with = texts.text[2]};
    each_match(&matcher.regex, texts.text[0], texts.length[0], add_replacement, &replacing);
    hcl_buffer_add(&replacing.buffer, replacing.done, strlen(replacing.done));
    end_regex(&texts, &matcher);
    return hcl_call_text(call, &replacing.buffer);
}

const struct hcl_function_row hcl_regex_functions[] = {
    {"regex", 2, 2, run_regex},
    {"regex_replace", 3, 3, run_regex_replace},
    {"regexall", 2, 2, run_regexall},
    {NULL, 0, 0, NULL},
};
