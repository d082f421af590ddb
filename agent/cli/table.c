/*
 * Output: aligned tables, headings, and values of the API's JSON as people read them.
 *
 * Columns are aligned by characters, not bytes.  Control characters from outside are shown as "?",
 * so that a job's name cannot drive the terminal.
 */
#include "agent/cli/cli.h"

#include "io/loop.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* --- tables --- */

static size_t characters(const char *text)
{
    size_t count = 0;

    for (; *text != '\0'; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80 ? 1 : 0;
    return count;
}

static char *clean_copy(const char *text)
{
    char *copy = strdup(text);

    check(copy != NULL);
    text_clean(copy);
    return copy;
}

void cli_table_row(struct cli_table *table, const char *const *cells)
{
    size_t columns = 0;

    while (cells[columns] != NULL)
        columns++;
    check(table->columns == 0 || table->columns == columns);
    table->columns = columns;
    for (size_t i = 0; i < columns; i++)
        *list_more(table) = clean_copy(cells[i][0] != '\0' ? cells[i] : "<none>");
}

static void print_rows(struct cli_table *table, const char *between, FILE *to)
{
    size_t *widths = calloc(table->columns + 1, sizeof(*widths));

    check(widths != NULL);
    for (size_t i = 0; i < table->count; i++) {
        size_t width = characters(table->items[i]), *column = &widths[i % table->columns];

        *column = width > *column ? width : *column;
    }
    for (size_t i = 0; i < table->count; i++) {
        size_t column = i % table->columns;
        bool last = column + 1 == table->columns;
        size_t pad = last ? 0 : widths[column] - characters(table->items[i]);

        (void)fprintf(to, "%s%*s%s", table->items[i], (int)pad, "", last ? "\n" : between);
        free(table->items[i]);
    }
    free(widths);
    free(table->items);
    *table = (struct cli_table){0};
}

void cli_table_print(struct cli_table *table, FILE *to)
{
    print_rows(table, "  ", to);
}

void cli_table_print_pairs(struct cli_table *table, FILE *to)
{
    print_rows(table, " = ", to);
}

void cli_title(const struct cli *cli, const char *text)
{
    (void)printf(cli->color ? "\033[1m%s\033[0m\n" : "%s\n", text);
}

void cli_heading(const struct cli *cli, const char *text)
{
    (void)putchar('\n');
    cli_title(cli, text);
}

void cli_progress(const char *mark, const char *text)
{
    (void)printf("%s%s: %s\n", mark, cli_time(loop_now_unix_ns()), text);
    (void)fflush(stdout); /* it is for now */
}

void cli_print_json(const json_t *value)
{
    char *text = json_dumps(value, JSON_INDENT(4) | JSON_ENCODE_ANY);

    check(text != NULL);
    (void)puts(text);
    free(text);
}

/* --- values --- */

enum { TEXTS_COUNT = 64, TEXT_SIZE = 256 };

static char *next_text(void)
{
    static char texts[TEXTS_COUNT][TEXT_SIZE];
    static size_t next;

    return texts[next++ % TEXTS_COUNT];
}

const char *cli_format(const char *format, ...)
{
    char *text = next_text();
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, TEXT_SIZE, format, arguments); /* cut where a line is too long */
    va_end(arguments);
    return text;
}

const char *cli_value(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);

    if (json_is_string(value))
        return json_string_value(value);
    if (json_is_integer(value))
        return cli_format("%lld", (long long)json_integer_value(value));
    if (json_is_boolean(value))
        return json_is_true(value) ? "true" : "false";
    return "";
}

const char *cli_short(const struct cli *cli, const char *id)
{
    return cli_is_on(cli, "verbose") ? id : cli_format("%.*s", CLI_SHORT_ID, id);
}

/* The two largest units, as Nomad shows a stretch of time. */
const char *cli_ago(int64_t unix_ns, int64_t now_unix_ns)
{
    static const struct {
        int64_t seconds;
        const char *name;
    } units[] = {{365 * 86400, "y"}, {30 * 86400, "mo"}, {86400, "d"},
                 {3600, "h"},        {60, "m"},          {1, "s"}};
    int64_t seconds = wall_since(unix_ns, now_unix_ns) / 1000000000;
    char text[64] = "";

    if (unix_ns <= 0)
        return "";
    if (seconds <= 0)
        return "0s ago";
    for (size_t i = 0, shown = 0; i < COUNT_OF(units) && shown < 2; i++) {
        if (seconds < units[i].seconds && shown == 0)
            continue;
        shown++;
        if (seconds >= units[i].seconds)
            (void)text_append(text, sizeof(text),
                              cli_format("%lld%s", (long long)(seconds / units[i].seconds),
                                         units[i].name)); /* it fits */
        seconds %= units[i].seconds;
    }
    return cli_format("%s ago", text);
}

const char *cli_time(int64_t unix_ns)
{
    time_t seconds = (time_t)(unix_ns / 1000000000);
    struct tm parts;
    char *text = next_text();

    if (unix_ns <= 0 || localtime_r(&seconds, &parts) == NULL ||
        strftime(text, TEXT_SIZE, "%Y-%m-%dT%H:%M:%S%z", &parts) == 0)
        return "N/A";
    size_t length = strlen(text); /* "+0100" becomes "+01:00", "+0000" becomes "Z" */
    if (text_ends_with(text, "+0000")) {
        (void)text_copy(text + length - 5, 6, "Z"); /* it fits */
    } else {
        memmove(text + length - 1, text + length - 2, 3);
        text[length - 2] = ':';
    }
    return text;
}

const char *cli_segments(const json_t *topology)
{
    json_t *segments = json_object_get(topology, "Segments"), *value;
    char *text = next_text();
    const char *key;

    *text = '\0';
    json_object_foreach(segments, key, value)
    {
        (void)text_append(text, TEXT_SIZE, *text != '\0' ? "," : ""); /* a cut list is enough */
        (void)text_append(text, TEXT_SIZE, key);
        (void)text_append(text, TEXT_SIZE, "=");
        (void)text_append(text, TEXT_SIZE, json_string_value(value));
    }
    return text;
}

const char *cli_bytes(uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double value = (double)bytes;
    size_t unit = 0;

    while (value >= 1024 && unit + 1 < COUNT_OF(units)) {
        value /= 1024;
        unit++;
    }
    return cli_format(value < 10 && unit > 0 ? "%.1f %s" : "%.0f %s", value, units[unit]);
}
