#include "base/quote.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

static size_t character_length(const char *at)
{
    unsigned char lead = (unsigned char)*at;
    size_t length = lead < 0x80 ? 1 : lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;

    if (strnlen(at, length) < length || !text_is_utf8(at, length))
        return 0;
    /* U+0080 to U+009F are control characters, too; some terminals obey them. */
    if (lead < 0x20 || lead == 0x7F || (lead == 0xC2 && (unsigned char)at[1] < 0xA0))
        return 0;
    return length;
}

bool text_append_clean(char *to, size_t size, const char *text, const char *quoted)
{
    size_t used = strlen(to);

    for (const char *at = text; *at != '\0';) {
        size_t length = character_length(at);
        char piece[8];

        if (length == 0) {
            (void)text_format(piece, sizeof(piece), "\\x%02x", (unsigned char)*at); /* fits */
            at++;
        } else if (length == 1 && strchr(quoted, *at) != NULL) {
            (void)text_format(piece, sizeof(piece), "\\%c", *at); /* fits */
            at++;
        } else {
            memcpy(piece, at, length);
            piece[length] = '\0';
            at += length;
        }
        if (used + strlen(piece) >= size)
            return false;
        memcpy(to + used, piece, strlen(piece) + 1);
        used += strlen(piece);
    }
    return true;
}

static bool is_word(const char *text)
{
    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        bool letter = (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z');
        if (!letter && strchr("0123456789_-./:@%+,*", *text) == NULL)
            return false;
    }
    return true;
}

const char *text_quote(char to[TEXT_VALUE_SIZE], const char *text)
{
    static const char CUT[] = "...";

    if (text == NULL)
        text = "";
    if (is_word(text) && strlen(text) < TEXT_VALUE_SIZE)
        return text_copy(to, TEXT_VALUE_SIZE, text) ? to : "";

    (void)text_copy(to, TEXT_VALUE_SIZE, "\""); /* fits */
    bool whole = text_append_clean(to, TEXT_VALUE_SIZE - sizeof(CUT), text, "\"\\");
    (void)text_append(to, TEXT_VALUE_SIZE, whole ? "\"" : "...\""); /* fits by the size above */
    return to;
}
