/*
 * Functions on text.  Positions and lengths count characters as a reader sees them (unicode.c), not
 * bytes.
 */
#include "spec/hcl/tree.h"

#include <stdlib.h>
#include <string.h>

/* --- characters --- */

/* True if the character at AT (SIZE bytes) is in SET. */
static bool is_in_set(const char *at, size_t size, const char *set, size_t set_length)
{
    for (const char *member = set; member < set + set_length;) {
        size_t member_size = hcl_character_size(member, set + set_length);

        if (member_size == size && memcmp(at, member, size) == 0)
            return true;
        member += member_size;
    }
    return false;
}

/* --- case, trimming --- */

static json_t *change_case(const struct hcl_call *call, enum hcl_case to)
{
    struct hcl_texts texts;

    if (!hcl_texts_read(call, &texts, 1))
        return NULL;
    json_t *value = hcl_change_case(texts.text[0], texts.length[0], to);
    hcl_texts_drop(&texts);
    return value;
}

static json_t *run_upper(const struct hcl_call *call)
{
    return change_case(call, HCL_UPPER);
}

static json_t *run_lower(const struct hcl_call *call)
{
    return change_case(call, HCL_LOWER);
}

static json_t *run_title(const struct hcl_call *call)
{
    return change_case(call, HCL_TITLE);
}

static json_t *run_trimspace(const struct hcl_call *call)
{
    struct hcl_texts texts;

    if (!hcl_texts_read(call, &texts, 1))
        return NULL;
    const char *start = texts.text[0], *end = start + texts.length[0];
    hcl_trim_space(&start, &end);
    json_t *value = json_stringn(start, (size_t)(end - start));
    hcl_texts_drop(&texts);
    return value;
}

/* trim("?!hi?", "!?"): characters of the set are taken off both ends. */
static json_t *run_trim(const struct hcl_call *call)
{
    struct hcl_texts texts;

    if (!hcl_texts_read(call, &texts, 2))
        return NULL;
    const char *start = texts.text[0], *end = start + texts.length[0];
    while (start < end) {
        size_t size = hcl_character_size(start, end);

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
    hcl_texts_drop(&texts);
    return value;
}

static json_t *run_trimprefix(const struct hcl_call *call)
{
    struct hcl_texts texts;

    if (!hcl_texts_read(call, &texts, 2))
        return NULL;
    size_t cut = text_starts_with(texts.text[0], texts.text[1]) ? texts.length[1] : 0;
    json_t *value = json_stringn(texts.text[0] + cut, texts.length[0] - cut);
    hcl_texts_drop(&texts);
    return value;
}

static json_t *run_trimsuffix(const struct hcl_call *call)
{
    struct hcl_texts texts;

    if (!hcl_texts_read(call, &texts, 2))
        return NULL;
    size_t cut = text_ends_with(texts.text[0], texts.text[1]) ? texts.length[1] : 0;
    json_t *value = json_stringn(texts.text[0], texts.length[0] - cut);
    hcl_texts_drop(&texts);
    return value;
}

static json_t *run_startswith(const struct hcl_call *call)
{
    struct hcl_texts texts;

    if (!hcl_texts_read(call, &texts, 2))
        return NULL;
    json_t *value = json_boolean(text_starts_with(texts.text[0], texts.text[1]));
    hcl_texts_drop(&texts);
    return value;
}

static json_t *run_endswith(const struct hcl_call *call)
{
    struct hcl_texts texts;

    if (!hcl_texts_read(call, &texts, 2))
        return NULL;
    json_t *value = json_boolean(text_ends_with(texts.text[0], texts.text[1]));
    hcl_texts_drop(&texts);
    return value;
}

static json_t *run_chomp(const struct hcl_call *call)
{
    struct hcl_texts texts;

    if (!hcl_texts_read(call, &texts, 1))
        return NULL;
    size_t length = texts.length[0];
    while (length > 0 && (texts.text[0][length - 1] == '\n' || texts.text[0][length - 1] == '\r'))
        length--;
    json_t *value = json_stringn(texts.text[0], length);
    hcl_texts_drop(&texts);
    return value;
}

/* --- parts --- */

static json_t *run_strlen(const struct hcl_call *call)
{
    struct hcl_texts texts;

    if (!hcl_texts_read(call, &texts, 1))
        return NULL;
    json_t *value = json_integer((json_int_t)hcl_grapheme_count(texts.text[0], texts.length[0]));
    hcl_texts_drop(&texts);
    return value;
}

json_t *hcl_run_strrev(const struct hcl_call *call)
{
    struct hcl_texts texts;

    if (!hcl_texts_read(call, &texts, 1))
        return NULL;
    char *copy = malloc(texts.length[0] + 1);
    check(copy != NULL);
    const char *end = texts.text[0] + texts.length[0];
    size_t left = texts.length[0];
    for (const char *at = texts.text[0]; at < end;) {
        size_t size = hcl_grapheme_size(at, end);

        left -= size;
        memcpy(copy + left, at, size);
        at += size;
    }
    json_t *value = hcl_text(copy, texts.length[0]);
    free(copy);
    hcl_texts_drop(&texts);
    return value;
}

/* substr(text, offset, length): a negative offset counts from the end, length -1 is the rest. */
static json_t *run_substr(const struct hcl_call *call)
{
    struct hcl_texts texts;
    int64_t offset, wanted;

    if (!hcl_argument_integer(call, 1, &offset) || !hcl_argument_integer(call, 2, &wanted) ||
        !hcl_texts_read(call, &texts, 1))
        return NULL;
    int64_t count = (int64_t)hcl_grapheme_count(texts.text[0], texts.length[0]);
    if (offset < 0)
        offset = offset < -count ? 0 : offset + count;
    if (offset > count)
        offset = count;
    if (wanted < 0 || wanted > count - offset)
        wanted = count - offset;
    const char *start = texts.text[0], *end = texts.text[0] + texts.length[0];
    for (int64_t i = 0; i < offset; i++)
        start += hcl_grapheme_size(start, end);
    const char *stop = start;
    for (int64_t i = 0; i < wanted; i++)
        stop += hcl_grapheme_size(stop, end);
    json_t *value = json_stringn(start, (size_t)(stop - start));
    hcl_texts_drop(&texts);
    return value;
}

static json_t *run_replace(const struct hcl_call *call)
{
    struct hcl_buffer buffer = {0};
    struct hcl_texts texts;

    if (!hcl_texts_read(call, &texts, 3))
        return NULL;
    const char *at = texts.text[0], *found;
    while (texts.length[1] > 0 && !buffer.full && (found = strstr(at, texts.text[1])) != NULL) {
        hcl_buffer_add(&buffer, at, (size_t)(found - at));
        hcl_buffer_add(&buffer, texts.text[2], texts.length[2]);
        at = found + texts.length[1];
    }
    hcl_buffer_add(&buffer, at, strlen(at));
    hcl_texts_drop(&texts);
    return hcl_call_text(call, &buffer);
}

static json_t *run_split(const struct hcl_call *call)
{
    struct hcl_texts texts;

    if (!hcl_texts_read(call, &texts, 2))
        return NULL;
    json_t *list = json_array();
    const char *at = texts.text[1], *end = at + texts.length[1];
    if (texts.length[0] == 0) {
        while (at < end) {
            size_t size = hcl_character_size(at, end);

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
    hcl_texts_drop(&texts);
    return list;
}

/* join(separator, list, ...) */
static json_t *run_join(const struct hcl_call *call)
{
    struct hcl_buffer buffer = {0};
    struct hcl_texts texts;
    bool first = true;

    for (size_t i = 1; i < call->count; i++) {
        if (!hcl_argument_list(call, i))
            return NULL;
    }
    if (!hcl_texts_read(call, &texts, 1))
        return NULL;
    for (size_t i = 1; i < call->count; i++) {
        json_t *item;
        size_t j;

        json_array_foreach(call->arguments[i], j, item)
        {
            json_t *text = hcl_convert(item, HCL_STRING);

            if (text == NULL) {
                hcl_buffer_free(&buffer);
                hcl_texts_drop(&texts);
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
    hcl_texts_drop(&texts);
    return hcl_call_text(call, &buffer);
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
    return hcl_call_text(call, &buffer);
}

const struct hcl_function_row hcl_text_functions[] = {
    {"chomp", 1, 1, run_chomp},         {"endswith", 2, 2, run_endswith},
    {"indent", 2, 2, run_indent},       {"join", 2, SIZE_MAX, run_join},
    {"lower", 1, 1, run_lower},         {"replace", 3, 3, run_replace},
    {"split", 2, 2, run_split},         {"startswith", 2, 2, run_startswith},
    {"strlen", 1, 1, run_strlen},       {"strrev", 1, 1, hcl_run_strrev},
    {"substr", 3, 3, run_substr},       {"title", 1, 1, run_title},
    {"trim", 2, 2, run_trim},           {"trimprefix", 2, 2, run_trimprefix},
    {"trimspace", 1, 1, run_trimspace}, {"trimsuffix", 2, 2, run_trimsuffix},
    {"upper", 1, 1, run_upper},         {NULL, 0, 0, NULL},
};
