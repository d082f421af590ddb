/*
 * What a user sees when a file is wrong: place, line with carets, hint.
 *
 * An error copies everything it shows, so that it outlives the file.  Text from outside is shown
 * with control characters replaced, and long lines are cut around the place.
 */
#include "spec/hcl/scan.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Characters (not bytes) in LENGTH bytes of UTF-8. */
static uint32_t characters(const char *bytes, size_t length)
{
    uint32_t count = 0;

    for (size_t i = 0; i < length; i++)
        count += ((unsigned char)bytes[i] & 0xC0u) != 0x80u;
    return count;
}

static bool is_inside_character(char byte)
{
    return ((unsigned char)byte & 0xC0u) == 0x80u;
}

/* Copies the line of PLACE, at most a screen's width of it, and says where the carets go. */
static void show_line(const struct hcl_file *file, struct hcl_place place, struct hcl_error *error)
{
    enum { BEFORE_MAX = 100, SHOWN_MAX = 150 };
    const char *text = file->shown != NULL ? file->shown : file->text;
    size_t length = file->shown != NULL ? strlen(file->shown) : file->length; /* see json.c */
    size_t at = place.offset > length ? length : place.offset;
    size_t start = at, end = at;

    /* Never looks further than it shows: a line may be the whole file. */
    while (start > 0 && text[start - 1] != '\n' && at - start <= BEFORE_MAX)
        start--;
    if (at - start > BEFORE_MAX) {
        start = at - BEFORE_MAX / 2;
        while (start < at && is_inside_character(text[start]))
            start++;
    }
    while (end < length && text[end] != '\n' && text[end] != '\r' && end - start < SHOWN_MAX)
        end++;
    while (end > at && end < length && is_inside_character(text[end]))
        end--;
    memcpy(error->source, text + start, end - start);
    error->source[end - start] = '\0';
    for (char *byte = error->source; *byte != '\0'; byte++) {
        if ((unsigned char)*byte < 0x20u || *byte == 0x7f)
            *byte = ' ';
    }
    if (at > end)
        at = end;
    size_t marked = place.length;
    if (marked > end - at)
        marked = end - at;
    error->caret = characters(text + start, at - start);
    error->caret_length = characters(text + at, marked);
    if (error->caret_length == 0)
        error->caret_length = 1;
}

static void complain(const struct hcl_file *file, struct hcl_place place, const char *hint,
                     struct hcl_error *error, const char *format, va_list args)
    __attribute__((format(printf, 5, 0)));

static void complain(const struct hcl_file *file, struct hcl_place place, const char *hint,
                     struct hcl_error *error, const char *format, va_list args)
{
    if (error == NULL)
        return;

    memset(error, 0, sizeof(*error));
    error->code = ERR_INVALID;
    error->place = place;
    (void)vsnprintf(error->message, sizeof(error->message), format, args); /* cut if long */
    text_whole(error->message);
    for (char *byte = error->message; *byte != '\0'; byte++) {
        if ((unsigned char)*byte < 0x20u || *byte == 0x7f)
            *byte = ' ';
    }
    (void)text_copy(error->hint, sizeof(error->hint), hint);
    text_whole(error->hint);
    size_t name_length = strlen(file->name);
    if (name_length < sizeof(error->file))
        (void)text_copy(error->file, sizeof(error->file), file->name);
    else
        (void)text_format(error->file, sizeof(error->file), "...%s",
                          file->name + name_length - (sizeof(error->file) - 4));
    if (place.line > 0)
        show_line(file, place, error);
}

int hcl_complain(const struct hcl_file *file, struct hcl_place place, const char *hint,
                 struct hcl_error *error, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    complain(file, place, hint, error, format, args);
    va_end(args);
    return ERR_INVALID;
}

int hcl_complain_limit(const struct hcl_file *file, struct hcl_place place, const char *hint,
                       struct hcl_error *error, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    complain(file, place, hint, error, format, args);
    va_end(args);
    if (error != NULL)
        error->code = ERR_LIMIT;
    return ERR_LIMIT;
}

void *hcl_fail(struct hcl_parser *parser, struct hcl_place place, const char *hint,
               const char *format, ...)
{
    va_list args;

    if (parser->failed)
        return NULL;
    parser->failed = true;
    va_start(args, format);
    complain(parser->file, place, hint, parser->error, format, args);
    va_end(args);
    return NULL;
}

void *hcl_fail_limit(struct hcl_parser *parser, struct hcl_place place, const char *format, ...)
{
    va_list args;

    if (parser->failed)
        return NULL;
    parser->failed = true;
    va_start(args, format);
    complain(parser->file, place, NULL, parser->error, format, args);
    va_end(args);
    if (parser->error != NULL)
        parser->error->code = ERR_LIMIT;
    return NULL;
}

void hcl_error_text(const struct hcl_error *error, char *to, size_t size)
{
    char part[96];

    (void)text_copy(to, size, error->file);
    if (error->place.line > 0) {
        (void)text_format(part, sizeof(part), ":%u:%u", error->place.line, error->place.column);
        (void)text_append(to, size, part);
    }
    (void)text_append(to, size, ": ");
    (void)text_append(to, size, error->message);
    if (error->place.line > 0) {
        (void)text_format(part, sizeof(part), "\n%5u | ", error->place.line);
        (void)text_append(to, size, part);
        (void)text_append(to, size, error->source);
        (void)text_append(to, size, "\n      | ");
        for (uint32_t i = 0; i < error->caret; i++)
            (void)text_append(to, size, " ");
        for (uint32_t i = 0; i < error->caret_length; i++)
            (void)text_append(to, size, "^");
    }
    if (error->hint[0] != '\0') {
        (void)text_append(to, size, "\n        hint: ");
        (void)text_append(to, size, error->hint);
    }
}

/* Optimal string alignment distance: insertions, deletions, substitutions, swapped neighbours. */
static size_t distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    enum { LENGTH_MAX = 40 };
    size_t row[3][LENGTH_MAX + 1];

    if (a_length > LENGTH_MAX || b_length > LENGTH_MAX)
        return SIZE_MAX;
    for (size_t j = 0; j <= b_length; j++)
        row[0][j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t *now = row[i % 3], *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];

        now[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t best = last[j - 1] + (a[i - 1] != b[j - 1]);

            if (last[j] + 1 < best)
                best = last[j] + 1;
            if (now[j - 1] + 1 < best)
                best = now[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            now[j] = best;
        }
    }
    return row[a_length % 3][b_length];
}

const char *hcl_closest(const char *word, const char *const *candidates, size_t count)
{
    size_t length = strlen(word), best = length <= 3 ? 2 : length <= 6 ? 3 : 4;
    const char *closest = NULL;

    for (size_t i = 0; i < count; i++) {
        size_t away = distance(word, length, candidates[i], strlen(candidates[i]));

        if (away < best) {
            best = away;
            closest = candidates[i];
        }
    }
    return closest;
}
