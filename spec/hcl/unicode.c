/*
 * Text as cty has it, by libunistring: each string in Unicode's form NFC, and characters as a
 * reader counts them (grapheme clusters).  ASCII, which most text is, is seen and left alone.
 */
#include "spec/hcl/tree.h"

#include <stdlib.h>
#include <string.h>
#include <unicase.h>
#include <unictype.h>
#include <unigbrk.h>
#include <uninorm.h>
#include <unistr.h>

static bool is_ascii(const char *text, size_t length)
{
    uint64_t word, high = 0;
    size_t i = 0;

    for (; i + sizeof(word) <= length; i += sizeof(word)) {
        memcpy(&word, text + i, sizeof(word));
        high |= word;
    }
    for (; i < length; i++)
        high |= (unsigned char)text[i];
    return (high & UINT64_C(0x8080808080808080)) == 0;
}

json_t *hcl_text(const char *text, size_t length)
{
    size_t normal_length = 0;
    uint8_t *normal;
    json_t *value;

    if (is_ascii(text, length))
        return json_stringn_nocheck(text, length);
    if (!text_is_utf8(text, length))
        return json_stringn(text, length); /* which may have NUL */
    normal = u8_normalize(UNINORM_NFC, (const uint8_t *)text, length, NULL, &normal_length);
    check(normal != NULL); /* it is UTF-8: memory alone could be missing */
    value = json_stringn_nocheck((const char *)normal, normal_length);
    free(normal);
    return value;
}

uint32_t hcl_character(const char *text)
{
    ucs4_t character = 0;

    (void)u8_strmbtouc(&character, (const uint8_t *)text); /* it is UTF-8 */
    return character;
}

size_t hcl_name_character(const char *text, bool first)
{
    ucs4_t character;
    int size = u8_strmbtouc(&character, (const uint8_t *)text);
    bool fits = size > 0 && (first ? uc_is_property_id_start(character)
                                   : uc_is_property_id_continue(character));

    return fits ? (size_t)size : 0;
}

/* True if a picture stands at AT and is tied to what ends before it, which libunistring, looking at
 * two characters at a time, does not see. */
static bool is_tied(const char *from, const char *at, const char *end)
{
    static const char joiner[] = "\xe2\x80\x8d";
    ucs4_t first, next;

    if (at == end || (size_t)(at - from) <= strlen(joiner) ||
        memcmp(at - strlen(joiner), joiner, strlen(joiner)) != 0)
        return false;
    (void)u8_mbtouc(&first, (const uint8_t *)from, (size_t)(end - from)); /* they are UTF-8 */
    (void)u8_mbtouc(&next, (const uint8_t *)at, (size_t)(end - at));
    return uc_is_property_extended_pictographic(first) &&
           uc_is_property_extended_pictographic(next);
}

size_t hcl_grapheme_size(const char *at, const char *end)
{
    const char *next = at;

    do {
        next = (const char *)u8_grapheme_next((const uint8_t *)next, (const uint8_t *)end);
        next = next == NULL ? end : next;
    } while (is_tied(at, next, end));
    return (size_t)(next - at);
}

size_t hcl_grapheme_count(const char *text, size_t length)
{
    const char *end = text + length;
    size_t count = 0;

    for (const char *at = text; at < end; at += hcl_grapheme_size(at, end))
        count++;
    return count;
}

void hcl_trim_space(const char **start, const char **end)
{
    ucs4_t character;

    while (*start < *end) {
        int size = u8_mbtouc(&character, (const uint8_t *)*start, (size_t)(*end - *start));
        if (!uc_is_property_white_space(character))
            break;
        *start += size;
    }
    while (*start < *end) {
        const uint8_t *last = u8_prev(&character, (const uint8_t *)*end, (const uint8_t *)*start);
        if (last == NULL || !uc_is_property_white_space(character))
            break;
        *end = (const char *)last;
    }
}

/* As Go's strings.Title: neither letters nor digits nor _ divide words, nor does what is not ASCII
 * and no space. */
static bool divides(ucs4_t character)
{
    if (character < 0x80)
        return !uc_is_alnum(character) && character != '_';
    return uc_is_property_white_space(character);
}

json_t *hcl_change_case(const char *text, size_t length, enum hcl_case to)
{
    size_t room = 2 * length, used = 0; /* no letter has one of twice its bytes */
    uint8_t *changed = malloc(room + 1);
    bool begins = true;

    check(changed != NULL);
    for (size_t at = 0; at < length;) {
        ucs4_t character;
        int size = u8_mbtouc(&character, (const uint8_t *)text + at, length - at);
        ucs4_t other = to == HCL_UPPER   ? uc_toupper(character)
                       : to == HCL_LOWER ? uc_tolower(character)
                       : begins          ? uc_totitle(character)
                                         : character;
        int other_size = u8_uctomb(changed + used, other, (ptrdiff_t)(room - used));

        check(size > 0 && other_size > 0);
        begins = divides(character);
        at += (size_t)size;
        used += (size_t)other_size;
    }
    json_t *value = hcl_text((const char *)changed, used);
    free(changed);
    return value;
}
