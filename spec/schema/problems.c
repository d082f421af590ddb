/*
 * How problems are told: in the order of the file, each at its place, a bounded number of them.
 *
 * Reading and checking know objects and fields; where those came from is remembered here, so that a
 * rule that fails long after its field was read still shows the line.
 */
#include "spec/schema/work.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void jobspec_add_error(struct jobspec_work *work, const struct hcl_error *error)
{
    struct jobspec_problems *problems = work->problems;

    if (error->code == ERR_LIMIT)
        work->stopped = true;
    if (problems->count == JOBSPEC_PROBLEMS_MAX) {
        problems->dropped++;
        return;
    }
    size_t at = problems->count++, later;
    while (error->place.line > 0 && at > 0 && problems->places[at - 1].offset > error->place.offset)
        at--; /* checks come after reading, but their problems belong between */
    later = problems->count - 1 - at;
    memmove(problems->items[at + 1], problems->items[at], later * sizeof(problems->items[0]));
    memmove(&problems->places[at + 1], &problems->places[at], later * sizeof(problems->places[0]));
    hcl_error_text(error, problems->items[at], sizeof(problems->items[at]));
    problems->places[at] = error->place;
}

void jobspec_complain_plainly(struct jobspec_work *work, const char *hint, const char *message)
{
    struct hcl_error error = {.code = ERR_INVALID};

    (void)text_copy(error.file, sizeof(error.file), work->name); /* cut if long */
    (void)text_copy(error.message, sizeof(error.message), message);
    text_whole(error.message);
    (void)text_copy(error.hint, sizeof(error.hint), hint);
    text_whole(error.hint);
    for (char *byte = error.message; *byte != '\0'; byte++) {
        if ((unsigned char)*byte < 0x20u || *byte == 0x7f)
            *byte = ' ';
    }
    jobspec_add_error(work, &error);
}

static void complain(struct jobspec_work *work, struct hcl_place place, const char *hint,
                     const char *format, va_list args) __attribute__((format(printf, 4, 0)));

static void complain(struct jobspec_work *work, struct hcl_place place, const char *hint,
                     const char *format, va_list args)
{
    char text[ERR_TEXT_SIZE], message[ERR_TEXT_SIZE];
    struct hcl_error error;

    (void)vsnprintf(text, sizeof(text), format, args); /* cut if long */
    (void)text_format(message, sizeof(message), "%s%s", work->where, text);
    if (work->file == NULL) {
        jobspec_complain_plainly(work, hint, message);
        return;
    }
    (void)hcl_complain(work->file, place, hint, &error, "%s", message);
    jobspec_add_error(work, &error);
}

void jobspec_complain_at(struct jobspec_work *work, struct hcl_place place, const char *hint,
                         const char *format, ...)
{
    va_list args;

    va_start(args, format);
    complain(work, place, hint, format, args);
    va_end(args);
}

/* The place of FIELD in OBJECT, else of OBJECT, else none. */
static struct hcl_place find_place(const struct jobspec_work *work, const json_t *object,
                                   const char *field)
{
    struct hcl_place found = {0};

    for (size_t i = 0; i < work->origins.count; i++) {
        const struct jobspec_origin *origin = &work->origins.items[i];

        if (origin->object != object)
            continue;
        if (text_equal(origin->field, field))
            return origin->place;
        if (origin->field[0] == '\0')
            found = origin->place;
    }
    return found;
}

static const struct jobspec_origin *find_origin(const struct jobspec_work *work,
                                                const json_t *object, const char *field)
{
    if (work->problems->count == JOBSPEC_PROBLEMS_MAX)
        return NULL; /* what depends on it is only counted, and that is not worth looking */
    for (size_t i = 0; i < work->origins.count; i++) {
        const struct jobspec_origin *origin = &work->origins.items[i];

        if (origin->object == object && text_equal(origin->field, field))
            return origin;
    }
    return NULL;
}

bool jobspec_was_given(const struct jobspec_work *work, const json_t *object, const char *field)
{
    return find_origin(work, object, field) != NULL;
}

bool jobspec_was_told(const struct jobspec_work *work, const json_t *object, const char *field)
{
    const struct jobspec_origin *origin = find_origin(work, object, field);

    return origin != NULL && origin->told;
}

void jobspec_complain(struct jobspec_work *work, const json_t *object, const char *field,
                      const char *hint, const char *format, ...)
{
    va_list args;

    if (work->problems->count == JOBSPEC_PROBLEMS_MAX) {
        work->problems->dropped++; /* not worth looking for its place */
        return;
    }
    struct hcl_place place = find_place(work, object, field);
    if (place.line == 0)
        place = find_place(work, work->part, ""); /* OBJECT is a default */
    va_start(args, format);
    complain(work, place, hint, format, args);
    va_end(args);
}

void jobspec_remember(struct jobspec_work *work, const json_t *object, const char *field,
                      struct hcl_place place)
{
    *list_more(&work->origins) =
        (struct jobspec_origin){.object = object, .field = field, .place = place};
}

const char *jobspec_name_of(const struct jobspec_work *work, const struct jobspec_field *field)
{
    bool hcl = field->json == NULL || (work->file != NULL && field->hcl != NULL);

    return hcl ? field->hcl : field->json;
}

void jobspec_problems_text(const struct jobspec_problems *problems, char *to, size_t size)
{
    char more[64];

    (void)text_copy(to, size, "");
    for (size_t i = 0; i < problems->count; i++) {
        (void)text_append(to, size, i == 0 ? "" : "\n");
        (void)text_append(to, size, problems->items[i]);
    }
    if (problems->dropped > 0) {
        (void)text_format(more, sizeof(more), "\nand %zu more", problems->dropped);
        (void)text_append(to, size, more);
    }
}
