/*
 * Figures of jobs for those who watch: how many allocs of each group are how, and how many jobs.
 *
 * Names and labels are those of Nomad's leader (nomad/leader.go of 2.0).
 */
#include "agent/api/format/format.h"
#include "agent/api/format/sheet.h"
#include "agent/api/part.h"

#include "base/list.h"
#include "server/alone/alone.h"
#include "spec/job.h"

#include <stdlib.h>
#include <string.h>

/* One group of a job. */
struct figure {
    const struct alone_job *job;
    struct api_job_counts counts;
};

struct figures {
    struct api *api;
    struct api_counting counting;
    struct figure *items;
    size_t count, size;
    uint32_t pending, running, dead; /* jobs */
};

static bool note_job(void *ctx, const struct alone_job *job)
{
    struct figures *figures = ctx;
    const char *status = alone_job_status(figures->api->parts->alone, job);

    figures->pending += text_equal(status, "pending");
    figures->running += text_equal(status, "running");
    figures->dead += text_equal(status, "dead");
    if (figures->api->parts->config->hides_dispatched && jobspec_is_dispatched(job->job))
        return true;
    api_count_job(figures->api, job, &figures->counting);
    for (size_t i = 0; i < figures->counting.count; i++) {
        struct figure *figure = list_more(figures);
        *figure = (struct figure){.job = job, .counts = figures->counting.groups[i]};
    }
    return true;
}

/*    of the allocs of COUNTS that are so */
#define STATES(X)                                                                                  \
    X("nomad.nomad.job_summary.queued", counts->queued)                                            \
    X("nomad.nomad.job_summary.starting", counts->starting)                                        \
    X("nomad.nomad.job_summary.running", counts->running)                                          \
    X("nomad.nomad.job_summary.complete", counts->complete)                                        \
    X("nomad.nomad.job_summary.failed", counts->failed)                                            \
    X("nomad.nomad.job_summary.lost", 0)                                                           \
    X("nomad.nomad.job_summary.unknown", 0)

#define X(name, value) name,
static const char *const states[] = {STATES(X)};
#undef X

enum { JOB_LABELS_MAX = 6 };

/* A child's id is its parent's, what made it and what it is called: "report/dispatch-1-ab". */
static size_t label_job(const struct api *api, const struct figure *figure, char *parent,
                        size_t parent_size, struct label labels[JOB_LABELS_MAX])
{
    static const struct {
        const char *infix, *label;
    } kinds[] = {{"/dispatch-", "dispatch_id"}, {"/periodic-", "periodic_id"}};
    const struct label found[] = {
        {"host", api->parts->config->name},
        {"job", figure->job->id},
        {"task_group", figure->counts.group},
        {"namespace", figure->job->namespace},
    };
    size_t count = COUNT_OF(found);

    memcpy(labels, found, sizeof(found));
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        const char *at = strstr(figure->job->id, kinds[i].infix);

        if (at == NULL ||
            !text_format(parent, parent_size, "%.*s", (int)(at - figure->job->id), figure->job->id))
            continue;
        labels[count++] = (struct label){"parent_id", parent};
        labels[count++] = (struct label){kinds[i].label, at + strlen(kinds[i].infix)};
        break;
    }
    return count;
}

static void put_group(struct sheet *sheet, const struct api *api, const struct figure *figure,
                      size_t state)
{
    const struct api_job_counts *counts = &figure->counts;
    struct label labels[JOB_LABELS_MAX];
    char parent[SPEC_NAME_SIZE];
#define X(name, value) value,
    const uint32_t values[] = {STATES(X)};
#undef X
    size_t count = label_job(api, figure, parent, sizeof(parent), labels);

    sheet_gauge(sheet, states[state], labels, count, values[state]);
}

void api_put_job_figures(struct sheet *sheet, struct api *api)
{
    struct figures figures = {.api = api};
    const struct label host = {"host", api->parts->config->name};

    alone_each(api->parts->alone, note_job, &figures);
    for (size_t state = 0; state < COUNT_OF(states) && figures.count > 0; state++) {
        sheet_kind(sheet, states[state], "gauge");
        for (size_t i = 0; i < figures.count; i++)
            put_group(sheet, api, &figures.items[i], state);
    }
    const struct {
        const char *name;
        uint32_t jobs;
    } statuses[] = {
        {"nomad.nomad.job_status.pending", figures.pending},
        {"nomad.nomad.job_status.running", figures.running},
        {"nomad.nomad.job_status.dead", figures.dead},
    };
    for (size_t i = 0; i < COUNT_OF(statuses); i++) {
        sheet_kind(sheet, statuses[i].name, "gauge");
        sheet_gauge(sheet, statuses[i].name, &host, 1, statuses[i].jobs);
    }
    free(figures.items);
    free(figures.counting.groups);
}
