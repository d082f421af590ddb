/*
 * csvdecode(): a table in text, as Go's encoding/csv reads it (RFC 4180).
 *
 * The first line names the columns.  Lines without anything in them are none, a field in quotes may
 * hold ends of lines, and a quote stands nowhere else.  Each row has all names of its own, so that
 * what they take together is bounded while they are made.
 */
#include "spec/hcl/tree.h"

#include <string.h>

struct reading {
    const char *at, *end;
    unsigned line, record; /* where it is, and where what it reads begins */
    size_t names, made;    /* bytes of all columns' names; of those in the rows there are */
    const char *wrong;     /* NULL: nothing yet */
};

/* How long the end of a line at the reader is; 0: there is none. */
static size_t line_end(const struct reading *reading)
{
    const char *at = reading->at;

    if (at < reading->end && *at == '\n')
        return 1;
    if (at < reading->end && *at == '\r' && (at + 1 == reading->end || at[1] == '\n'))
        return at + 1 == reading->end ? 1 : 2;
    return 0;
}

static void read_quoted(struct reading *reading, struct hcl_buffer *to)
{
    for (reading->at++; reading->at < reading->end; reading->at++) {
        size_t ends = line_end(reading);

        if (*reading->at == '"' && reading->at + 1 < reading->end && reading->at[1] == '"') {
            reading->at++;
        } else if (*reading->at == '"') {
            reading->at++;
            if (reading->at < reading->end && *reading->at != ',' && line_end(reading) == 0)
                reading->wrong = "a quote in a field is written twice";
            return;
        } else if (ends > 0) {
            reading->line++;
            reading->at += ends - 1; /* of \r\n only the second is kept */
        }
        hcl_buffer_add(to, reading->at, 1);
    }
    reading->wrong = "a quote is not closed";
}

static void read_plain(struct reading *reading, struct hcl_buffer *to)
{
    while (reading->at < reading->end && *reading->at != ',' && line_end(reading) == 0) {
        if (*reading->at == '"') {
            reading->wrong = "a quote stands in a field without quotes";
            return;
        }
        hcl_buffer_add(to, reading->at++, 1);
    }
}

/* The fields of the next line that has any, a new reference; NULL: none is left, or one is wrong.
 */
static json_t *read_line(struct reading *reading)
{
    size_t ends;

    while ((ends = line_end(reading)) > 0) {
        reading->at += ends;
        reading->line++;
    }
    if (reading->at == reading->end)
        return NULL;
    reading->record = reading->line;
    json_t *fields = json_array();
    check(fields != NULL);
    for (;;) {
        struct hcl_buffer buffer = {0};

        if (reading->at < reading->end && *reading->at == '"')
            read_quoted(reading, &buffer);
        else
            read_plain(reading, &buffer);
        json_t *field = hcl_buffer_take(&buffer);
        check(field != NULL); /* no longer than what it is read from, and cut at characters */
        check(json_array_append_new(fields, field) == 0);
        if (reading->wrong != NULL) {
            json_decref(fields);
            return NULL;
        }
        if (reading->at == reading->end || *reading->at != ',')
            break;
        reading->at++;
    }
    reading->at += line_end(reading);
    reading->line++;
    return fields;
}

/* FIELDS under the names of COLUMNS, a new reference. */
static json_t *row_of(struct reading *reading, const json_t *columns, const json_t *fields)
{
    json_t *row = json_object(), *name;
    size_t i;

    check(row != NULL);
    if (json_array_size(fields) != json_array_size(columns))
        reading->wrong = "it has not as many fields as there are columns";
    json_array_foreach(columns, i, name)
    {
        if (reading->wrong == NULL)
            check(json_object_set(row, json_string_value(name), json_array_get(fields, i)) == 0);
    }
    return row;
}

static bool are_names(struct reading *reading, const json_t *columns)
{
    json_t *names = json_object(), *name;
    size_t i;

    check(names != NULL);
    json_array_foreach(columns, i, name)
    {
        if (json_object_get(names, json_string_value(name)) != NULL)
            reading->wrong = "two columns have one name";
        check(json_object_set(names, json_string_value(name), name) == 0);
        reading->names += json_string_length(name);
    }
    json_decref(names);
    return reading->wrong == NULL;
}

static json_t *run_csvdecode(const struct hcl_call *call)
{
    json_t *keep, *columns, *fields, *rows = json_array();
    struct reading reading = {.line = 1, .record = 1};

    check(rows != NULL);
    if (!hcl_argument_text(call, 0, &keep)) {
        json_decref(rows);
        return NULL;
    }
    reading.at = json_string_value(keep);
    reading.end = reading.at + json_string_length(keep);
    columns = read_line(&reading);
    if (columns == NULL && reading.wrong == NULL)
        reading.wrong = "there is no line with the names of the columns";
    if (columns != NULL && are_names(&reading, columns)) {
        while (reading.wrong == NULL && (fields = read_line(&reading)) != NULL) {
            check(json_array_append_new(rows, row_of(&reading, columns, fields)) == 0);
            json_decref(fields);
            reading.made += reading.names;
            if (reading.made > HCL_TEXT_MAX)
                reading.wrong = "its columns' names are too long for so many rows";
        }
    }
    json_decref(columns);
    json_decref(keep);
    if (reading.wrong == NULL)
        return rows;
    json_decref(rows);
    return hcl_call_failed(call, "cannot read line %u: %s", reading.record, reading.wrong);
}

const struct hcl_function_row hcl_csv_functions[] = {
    {"csvdecode", 1, 1, run_csvdecode},
    {NULL, 0, 0, NULL},
};
