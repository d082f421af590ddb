/*
 * Functions on text.  Positions and lengths count characters (code points), as a user sees them,
 * not bytes.
 */
#include "io/hcl_tree.h"

#include <locale.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

/* --- characters --- */

static size_t character_size(const char *at, const char *end)
{
    size_t size = 1;

    while (at + size < end && ((unsigned char)at[size] & 0xC0u) == 0x80u)
        size++;
    return size;
}

static size_t count_characters(const char *text, size_t length)
{
    size_t count = 0;

    for (size_t i = 0; i < length; i++)
        count += ((unsigned char)text[i] & 0xC0u) != 0x80u;
    return count;
}

static bool is_space(char byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

/* True if the character at AT (SIZE bytes) is in SET. */
static bool is_in_set(const char *at, size_t size, const char *set, size_t set_length)
{
    for (const char *member = set; member < set + set_length;) {
        size_t member_size = character_size(member, set + set_length);

        if (member_size == size && memcmp(at, member, size) == 0)
            return true;
        member += member_size;
    }
    return false;
}

/* Two or three text arguments, all kept until the end. */
struct texts {
    json_t *keep[3];
    const char *text[3];
    size_t length[3];
    size_t count;
};

static bool read_texts(const struct hcl_call *call, struct texts *texts, size_t count)
{
    *texts = (struct texts){0};
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

static void drop_texts(struct texts *texts)
{
    for (size_t i = 0; i < texts->count; i++)
        json_decref(texts->keep[i]);
}

static json_t *finish(const struct hcl_call *call, struct hcl_buffer *buffer)
{
    json_t *value = hcl_buffer_take(buffer);

    return value != NULL ? value : hcl_call_failed(call, "makes a text that is too long");
}

/* --- case, trimming --- */

static json_t *change_case(const struct hcl_call *call, char from, bool titles)
{
    struct texts texts;
    bool start = true;

    if (!read_texts(call, &texts, 1))
        return NULL;
    char *copy = malloc(texts.length[0] + 1);
    check(copy != NULL);
    for (size_t i = 0; i < texts.length[0]; i++) {
        char byte = texts.text[0][i];
        bool letter = byte >= from && byte <= from + ('z' - 'a');

        copy[i] = letter && (!titles || start) ? (char)(byte ^ 0x20) : byte;
        start = is_space(byte);
    }
    json_t *value = json_stringn(copy, texts.length[0]);
    free(copy);
    drop_texts(&texts);
    return value;
}

static json_t *run_upper(const struct hcl_call *call)
{
    return change_case(call, 'a', false);
}

static json_t *run_lower(const struct hcl_call *call)
{
    return change_case(call, 'A', false);
}

static json_t *run_title(const struct hcl_call *call)
{
    return change_case(call, 'a', true);
}

static json_t *run_trimspace(const struct hcl_call *call)
{
    struct texts texts;

    if (!read_texts(call, &texts, 1))
        return NULL;
    const char *start = texts.text[0], *end = start + texts.length[0];
    while (start < end && is_space(*start))
        start++;
    while (end > start && is_space(end[-1]))
        end--;
    json_t *value = json_stringn(start, (size_t)(end - start));
    drop_texts(&texts);
    return value;
}

/* trim("?!hi?", "!?"): characters of the set are taken off both ends. */
static json_t *run_trim(const struct hcl_call *call)
{
    struct texts texts;

    if (!read_texts(call, &texts, 2))
        return NULL;
    const char *start = texts.text[0], *end = start + texts.length[0];
    while (start < end) {
        size_t size = character_size(start, end);

        if (!is_in_set(start, size, texts.text[1], texts.length[1]))
            break;
        start += size;
    }
    while (end > start) {
        const char *last = end - 1;

        while (last > start && ((unsigned char)*last & 0xC0u) == 0x80u)
            last--;
        if (!is_in_set(last, (size_t)(end - last), texts.text[1], texts.length[1]))
            break;
        end = last;
    }
    json_t *value = json_stringn(start, (size_t)(end - start));
    drop_texts(&texts);
    return value;
}

static json_t *run_trimprefix(const struct hcl_call *call)
{
    struct texts texts;

    if (!read_texts(call, &texts, 2))
        return NULL;
    size_t cut = text_starts_with(texts.text[0], texts.text[1]) ? texts.length[1] : 0;
    json_t *value = json_stringn(texts.text[0] + cut, texts.length[0] - cut);
    drop_texts(&texts);
    return value;
}

static json_t *run_trimsuffix(const struct hcl_call *call)
{
    struct texts texts;

    if (!read_texts(call, &texts, 2))
        return NULL;
    size_t cut = text_ends_with(texts.text[0], texts.text[1]) ? texts.length[1] : 0;
    json_t *value = json_stringn(texts.text[0], texts.length[0] - cut);
    drop_texts(&texts);
    return value;
}

static json_t *run_startswith(const struct hcl_call *call)
{
    struct texts texts;

    if (!read_texts(call, &texts, 2))
        return NULL;
    json_t *value = json_boolean(text_starts_with(texts.text[0], texts.text[1]));
    drop_texts(&texts);
    return value;
}

static json_t *run_endswith(const struct hcl_call *call)
{
    struct texts texts;

    if (!read_texts(call, &texts, 2))
        return NULL;
    json_t *value = json_boolean(text_ends_with(texts.text[0], texts.text[1]));
    drop_texts(&texts);
    return value;
}

static json_t *run_chomp(const struct hcl_call *call)
{
    struct texts texts;

    if (!read_texts(call, &texts, 1))
        return NULL;
    size_t length = texts.length[0];
    while (length > 0 && (texts.text[0][length - 1] == '\n' || texts.text[0][length - 1] == '\r'))
        length--;
    json_t *value = json_stringn(texts.text[0], length);
    drop_texts(&texts);
    return value;
}

/* --- parts --- */

static json_t *run_strlen(const struct hcl_call *call)
{
    struct texts texts;

    if (!read_texts(call, &texts, 1))
        return NULL;
    json_t *value = json_integer((json_int_t)count_characters(texts.text[0], texts.length[0]));
    drop_texts(&texts);
    return value;
}

static json_t *run_strrev(const struct hcl_call *call)
{
    struct texts texts;

    if (!read_texts(call, &texts, 1))
        return NULL;
    char *copy = malloc(texts.length[0] + 1);
    check(copy != NULL);
    const char *end = texts.text[0] + texts.length[0];
    size_t left = texts.length[0];
    for (const char *at = texts.text[0]; at < end;) {
        size_t size = character_size(at, end);

        left -= size;
        memcpy(copy + left, at, size);
        at += size;
    }
    json_t *value = json_stringn(copy, texts.length[0]);
    free(copy);
    drop_texts(&texts);
    return value;
}

/* substr(text, offset, length): a negative offset counts from the end, length -1 is the rest. */
static json_t *run_substr(const struct hcl_call *call)
{
    struct texts texts;
    int64_t offset, wanted;

    if (!hcl_argument_integer(call, 1, &offset) || !hcl_argument_integer(call, 2, &wanted) ||
        !read_texts(call, &texts, 1))
        return NULL;
    int64_t count = (int64_t)count_characters(texts.text[0], texts.length[0]);
    if (offset < 0)
        offset = offset < -count ? 0 : offset + count;
    if (offset > count)
        offset = count;
    if (wanted < 0 || wanted > count - offset)
        wanted = count - offset;
    const char *start = texts.text[0], *end = texts.text[0] + texts.length[0];
    for (int64_t i = 0; i < offset; i++)
        start += character_size(start, end);
    const char *stop = start;
    for (int64_t i = 0; i < wanted; i++)
        stop += character_size(stop, end);
    json_t *value = json_stringn(start, (size_t)(stop - start));
    drop_texts(&texts);
    return value;
}

static json_t *run_replace(const struct hcl_call *call)
{
    struct hcl_buffer buffer = {0};
    struct texts texts;

    if (!read_texts(call, &texts, 3))
        return NULL;
    const char *at = texts.text[0], *found;
    while (texts.length[1] > 0 && !buffer.full && (found = strstr(at, texts.text[1])) != NULL) {
        hcl_buffer_add(&buffer, at, (size_t)(found - at));
        hcl_buffer_add(&buffer, texts.text[2], texts.length[2]);
        at = found + texts.length[1];
    }
    hcl_buffer_add(&buffer, at, strlen(at));
    drop_texts(&texts);
    return finish(call, &buffer);
}

static json_t *run_split(const struct hcl_call *call)
{
    struct texts texts;

    if (!read_texts(call, &texts, 2))
        return NULL;
    json_t *list = json_array();
    const char *at = texts.text[1], *end = at + texts.length[1];
    if (texts.length[0] == 0) {
        while (at < end) {
            size_t size = character_size(at, end);

            check(json_array_append_new(list, json_stringn(at, size)) == 0);
            at += size;
        }
    } else {
        const char *found;

        while ((found = strstr(at, texts.text[0])) != NULL) {
            check(json_array_append_new(list, json_stringn(at, (size_t)(found - at))) == 0);
            at = found + texts.length[0];
        }
        check(json_array_append_new(list, json_string(at)) == 0);
    }
    drop_texts(&texts);
    return list;
}

/* join(separator, list, ...) */
static json_t *run_join(const struct hcl_call *call)
{
    struct hcl_buffer buffer = {0};
    struct texts texts;
    bool first = true;

    for (size_t i = 1; i < call->count; i++) {
        if (!hcl_argument_list(call, i))
            return NULL;
    }
    if (!read_texts(call, &texts, 1))
        return NULL;
    for (size_t i = 1; i < call->count; i++) {
        json_t *item;
        size_t j;

        json_array_foreach(call->arguments[i], j, item)
        {
            json_t *text = hcl_convert(item, HCL_STRING);

            if (text == NULL) {
                hcl_buffer_free(&buffer);
                drop_texts(&texts);
                return hcl_call_failed(call, "joins strings, but element %zu is %s", j,
                                       hcl_type_text(item));
            }
            if (!first)
                hcl_buffer_add(&buffer, texts.text[0], texts.length[0]);
            first = false;
            hcl_buffer_add(&buffer, json_string_value(text), json_string_length(text));
            json_decref(text);
        }
    }
    drop_texts(&texts);
    return finish(call, &buffer);
}

/* indent(n, text): all lines but the first get N spaces. */
static json_t *run_indent(const struct hcl_call *call)
{
    enum { SPACES_MAX = 256 };
    struct hcl_buffer buffer = {0};
    char spaces[SPACES_MAX];
    json_t *keep;
    int64_t count;

    if (!hcl_argument_integer(call, 0, &count))
        return NULL;
    if (count < 0 || count > SPACES_MAX)
        return hcl_call_failed(call, "takes 0 to %d spaces", SPACES_MAX);
    if (!hcl_argument_text(call, 1, &keep))
        return NULL;
    memset(spaces, ' ', sizeof(spaces));
    for (const char *at = json_string_value(keep); *at != '\0' && !buffer.full; at++) {
        hcl_buffer_add(&buffer, at, 1);
        if (*at == '\n')
            hcl_buffer_add(&buffer, spaces, (size_t)count);
    }
    json_decref(keep);
    return finish(call, &buffer);
}

/* --- regular expressions --- */

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
                        struct texts *texts, struct matcher *ret_matcher)
{
    if (!read_texts(call, texts, call->count))
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
        drop_texts(texts);
    }
    return begun;
}

static void end_regex(struct texts *texts, struct matcher *matcher)
{
    regfree(&matcher->regex);
    leave_utf8(matcher);
    drop_texts(texts);
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
    struct texts texts;
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
            at += character_size(at, end);
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
    struct texts texts;

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
    struct texts texts;

    if (!begin_regex(call, 1, 0, &texts, &matcher))
        return NULL;
    struct replacing replacing = {.done = texts.text[0], .with = texts.text[2]};
    each_match(&matcher.regex, texts.text[0], texts.length[0], add_replacement, &replacing);
    hcl_buffer_add(&replacing.buffer, replacing.done, strlen(replacing.done));
    end_regex(&texts, &matcher);
    return finish(call, &replacing.buffer);
}

const struct hcl_function_row hcl_text_functions[] = {
    {"chomp", 1, 1, run_chomp},
    {"endswith", 2, 2, run_endswith},
    {"indent", 2, 2, run_indent},
    {"join", 2, SIZE_MAX, run_join},
    {"lower", 1, 1, run_lower},
    {"regex", 2, 2, run_regex},
    {"regex_replace", 3, 3, run_regex_replace},
    {"regexall", 2, 2, run_regexall},
    {"replace", 3, 3, run_replace},
    {"split", 2, 2, run_split},
    {"startswith", 2, 2, run_startswith},
    {"strlen", 1, 1, run_strlen},
    {"strrev", 1, 1, run_strrev},
    {"substr", 3, 3, run_substr},
    {"title", 1, 1, run_title},
    {"trim", 2, 2, run_trim},
    {"trimprefix", 2, 2, run_trimprefix},
    {"trimspace", 1, 1, run_trimspace},
    {"trimsuffix", 2, 2, run_trimsuffix},
    {"upper", 1, 1, run_upper},
    {NULL, 0, 0, NULL},
};
