/*
 * Figures for those who watch, in both forms of the answer: JSON and the text of Prometheus.
 *
 * All of one name stand together, as Prometheus wants them: sheet_kind, and then its rows.  Inside
 * agent/api only.
 */
#ifndef CAIRN_AGENT_API_FORMAT_SHEET_H
#define CAIRN_AGENT_API_FORMAT_SHEET_H

#include "agent/api/format/write.h"

struct label {
    const char *name, *value;
};

struct sheet {
    bool is_prometheus;
    struct writer json;
    char *text; /* of the other form; owned by who began */
    size_t used, size;
};

/* What follows is of NAME, a "gauge", a "counter" or a "summary"; JSON has no need of it. */
void sheet_kind(struct sheet *sheet, const char *name, const char *kind);

void sheet_gauge(struct sheet *sheet, const char *name, const struct label *labels,
                 size_t labels_count, double value);

/* All that has come together so far; in JSON, where Nomad sums up the last ten seconds, as if it
 * had come at once. */
void sheet_counter(struct sheet *sheet, const char *name, const struct label *labels,
                   size_t labels_count, double value);

/* Of COUNT values, one at least. */
struct sheet_sample {
    uint64_t count;
    double sum, squares, min, max;
};

/* All of them so far, in JSON too; in the other form without quantiles. */
void sheet_sample(struct sheet *sheet, const char *name, const struct label *labels,
                  size_t labels_count, const struct sheet_sample *sample);

#endif
