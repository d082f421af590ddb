#include "agent/api/format/sheet.h"

#include "base/base.h"
#include "base/list.h"

#include <math.h>
#include <string.h>

static void add(struct sheet *sheet, const char *bytes, size_t length)
{
    sheet->text = list_room(sheet->text, &sheet->size, sheet->used + length, 1);
    memcpy(sheet->text + sheet->used, bytes, length);
    sheet->used += length;
}

static void add_text(struct sheet *sheet, const char *text)
{
    add(sheet, text, strlen(text));
}

/* As Prometheus names it: dots and dashes are its own. */
static void add_name(struct sheet *sheet, const char *name)
{
    for (const char *at = name; *at != '\0'; at++)
        add(sheet, *at == '.' || *at == '-' ? "_" : at, 1);
}

static void add_value_of_label(struct sheet *sheet, const char *value)
{
    for (const char *at = value; *at != '\0'; at++) {
        if (*at == '\\' || *at == '"')
            add(sheet, "\\", 1);
        if (*at == '\n')
            add(sheet, "\\n", 2);
        else
            add(sheet, at, 1);
    }
}

void sheet_kind(struct sheet *sheet, const char *name, const char *kind)
{
    if (!sheet->is_prometheus)
        return;
    add_text(sheet, "# TYPE ");
    add_name(sheet, name);
    add_text(sheet, " ");
    add_text(sheet, kind);
    add_text(sheet, "\n");
}

/* SUFFIX is of what is one of several lines of NAME. */
static void put_line(struct sheet *sheet, const char *name, const char *suffix,
                     const struct label *labels, size_t labels_count, double value)
{
    char number[32];

    add_name(sheet, name);
    add_text(sheet, suffix);
    for (size_t i = 0; i < labels_count; i++) {
        add_text(sheet, i == 0 ? "{" : ",");
        add_text(sheet, labels[i].name);
        add_text(sheet, "=\"");
        add_value_of_label(sheet, labels[i].value);
        add_text(sheet, "\"");
    }
    check(text_format(number, sizeof(number), "} %.17g\n", value));
    add_text(sheet, number);
}

static void put_labels(struct writer *json, const struct label *labels, size_t labels_count)
{
    put_object(json, "Labels");
    for (size_t i = 0; i < labels_count; i++)
        put_text(json, labels[i].name, labels[i].value);
    put_end(json);
}

void sheet_gauge(struct sheet *sheet, const char *name, const struct label *labels,
                 size_t labels_count, double value)
{
    if (sheet->is_prometheus) {
        put_line(sheet, name, "", labels, labels_count, value);
        return;
    }
    put_object(&sheet->json, NULL);
    put_text(&sheet->json, "Name", name);
    put_json_new(&sheet->json, "Value", json_real(value));
    put_labels(&sheet->json, labels, labels_count);
    put_end(&sheet->json);
}

static void put_sampled(struct sheet *sheet, const char *name, const struct label *labels,
                        size_t labels_count, const struct sheet_sample *sample)
{
    double count = (double)sample->count, mean = sample->sum / count;
    double spread = sample->count < 2 ? 0 : (sample->squares - mean * sample->sum) / (count - 1);
    const struct {
        const char *name;
        double value;
    } values[] = {
        {"Sum", sample->sum},
        {"Min", sample->min},
        {"Max", sample->max},
        {"Mean", mean},
        {"Stddev", spread > 0 ? sqrt(spread) : 0}, /* below 0 by rounding alone */
    };

    put_object(&sheet->json, NULL);
    put_text(&sheet->json, "Name", name);
    put_number(&sheet->json, "Count", (int64_t)sample->count);
    for (size_t i = 0; i < COUNT_OF(values); i++)
        put_json_new(&sheet->json, values[i].name, json_real(values[i].value));
    put_labels(&sheet->json, labels, labels_count);
    put_end(&sheet->json);
}

void sheet_counter(struct sheet *sheet, const char *name, const struct label *labels,
                   size_t labels_count, double value)
{
    const struct sheet_sample once = {1, value, value * value, value, value};

    if (sheet->is_prometheus)
        put_line(sheet, name, "", labels, labels_count, value);
    else
        put_sampled(sheet, name, labels, labels_count, &once);
}

void sheet_sample(struct sheet *sheet, const char *name, const struct label *labels,
                  size_t labels_count, const struct sheet_sample *sample)
{
    check(sample->count > 0);
    if (!sheet->is_prometheus) {
        put_sampled(sheet, name, labels, labels_count, sample);
        return;
    }
    put_line(sheet, name, "_sum", labels, labels_count, sample->sum);
    put_line(sheet, name, "_count", labels, labels_count, (double)sample->count);
}
