/* The stand-alone control plane: its parts, and its last evaluations. */
#include "server/alone/part.h"

#include <stdlib.h>
#include <string.h>

enum { EVALUATIONS_MAX = 256 };

static int load(void *ctx, struct err *err)
{
    int code = alone_load_jobs(ctx, err);

    alone_resume_tidy(ctx); /* the last incarnation may have died before it did */
    return code;
}

struct alone *alone_new(const struct alone_config *config)
{
    struct alone *alone = calloc(1, sizeof(*alone));

    check(alone != NULL);
    check(config->life != NULL);
    check(config->new_id != NULL);
    alone->config = *config;
    alone->evaluations = calloc(EVALUATIONS_MAX, sizeof(*alone->evaluations));
    check(alone->evaluations != NULL);
    life_control(config->life, &(struct life_control){.ctx = alone,
                                                      .load = load,
                                                      .alloc_ended = alone_note_ended,
                                                      .alloc_gone = alone_note_gone,
                                                      .tidy = alone_tidy});
    return alone;
}

void alone_free(struct alone *alone)
{
    struct job *job, *next;

    if (alone == NULL)
        return;
    alone_free_over(alone);
    free(alone->unsaved.items);
    HASH_ITER(hh, alone->jobs, job, next)
    {
        job->unsaved = job->looked_for = false; /* nobody asks any more */
        job_free(alone, job);
    }
    free(alone->evaluations);
    free(alone);
}

/* --- evaluations --- */

struct alone_evaluation evaluation_begin(const struct alone *alone, const struct job *job,
                                         const char *why)
{
    struct alone_evaluation evaluation = {.create_unix_ns = life_unix_ns(alone->config.life)};
    const char *type = json_string_value(json_object_get(job->json, "Type"));

    alone->config.new_id(alone->config.ctx, evaluation.id);
    (void)text_copy(evaluation.job_id, sizeof(evaluation.job_id), job->id);
    (void)text_copy(evaluation.namespace, sizeof(evaluation.namespace), job->namespace);
    (void)text_copy(evaluation.type, sizeof(evaluation.type), type);
    (void)text_copy(evaluation.triggered_by, sizeof(evaluation.triggered_by), why);
    return evaluation;
}

void evaluation_keep(struct alone *alone, struct alone_evaluation *evaluation)
{
    evaluation->index = core_figures(life_core(alone->config.life)).sequence + 1;
    alone->evaluations[alone->evaluations_count++ % EVALUATIONS_MAX] = *evaluation;
}

const struct alone_evaluation *alone_evaluation(const struct alone *alone, const char *id_prefix)
{
    for (uint64_t i = 0; i < EVALUATIONS_MAX && i < alone->evaluations_count; i++) {
        uint64_t at = (alone->evaluations_count - 1 - i) % EVALUATIONS_MAX;
        if (text_starts_with(alone->evaluations[at].id, id_prefix))
            return &alone->evaluations[at];
    }
    return NULL;
}

void alone_each_evaluation(const struct alone *alone, alone_evaluation_cb *cb, void *ctx)
{
    for (uint64_t i = 0; i < EVALUATIONS_MAX && i < alone->evaluations_count; i++) {
        uint64_t at = (alone->evaluations_count - 1 - i) % EVALUATIONS_MAX;
        if (!cb(ctx, &alone->evaluations[at]))
            return;
    }
}
