/*
 * Evaluations: what was decided when, by this incarnation, and what waits to be decided.
 */
#include "server/alone/part.h"

#include <stdlib.h>
#include <string.h>

enum { EVALUATIONS_MAX = 256 };

void alone_begin_evaluations(struct alone *alone)
{
    alone->evaluations = calloc(EVALUATIONS_MAX, sizeof(*alone->evaluations));
    check(alone->evaluations != NULL);
}

void alone_free_evaluations(struct alone *alone)
{
    for (size_t i = 0; i < EVALUATIONS_MAX; i++)
        json_decref((json_t *)(uintptr_t)alone->evaluations[i].failed);
    free(alone->evaluations);
}

static struct alone_evaluation evaluation_of(const struct alone *alone, const struct job *job,
                                             const char *why)
{
    struct alone_evaluation evaluation = {.create_unix_ns = life_unix_ns(alone->config.life)};
    const char *type = json_string_value(json_object_get(job->json, "Type"));

    (void)text_copy(evaluation.job_id, sizeof(evaluation.job_id), job->id);
    (void)text_copy(evaluation.namespace, sizeof(evaluation.namespace), job->namespace);
    (void)text_copy(evaluation.type, sizeof(evaluation.type), type);
    (void)text_copy(evaluation.triggered_by, sizeof(evaluation.triggered_by), why);
    (void)text_copy(evaluation.status, sizeof(evaluation.status), "complete");
    return evaluation;
}

struct alone_evaluation evaluation_begin(const struct alone *alone, const struct job *job,
                                         const char *why)
{
    struct alone_evaluation evaluation = evaluation_of(alone, job, why);

    alone->config.new_id(alone->config.ctx, evaluation.id);
    return evaluation;
}

void evaluation_keep(struct alone *alone, struct alone_evaluation *evaluation)
{
    struct alone_evaluation *kept =
        &alone->evaluations[alone->evaluations_count++ % EVALUATIONS_MAX];

    evaluation->index = life_next_index(alone->config.life);
    json_decref((json_t *)(uintptr_t)kept->failed);
    *kept = *evaluation;
    json_incref((json_t *)(uintptr_t)kept->failed);
}

/* --- those that wait --- */

static bool follow_up_of(const struct alone *alone, const struct kept *kept,
                         struct alone_evaluation *ret_evaluation)
{
    const struct alloc *record =
        kept->waits ? core_alloc(life_core(alone->config.life), kept->id) : NULL;
    const struct job *job =
        record == NULL ? NULL : job_find(alone, record->assign.namespace, record->assign.job_id);

    if (job == NULL)
        return false;
    struct alone_evaluation evaluation = evaluation_of(alone, job, "alloc-reschedule");
    (void)text_copy(evaluation.id, sizeof(evaluation.id), kept->follow_up.id);
    (void)text_copy(evaluation.status, sizeof(evaluation.status), "pending");
    evaluation.create_unix_ns = kept->ended_unix_ns;
    evaluation.wait_until_unix_ns = wall_add(
        kept->ended_unix_ns, kept->leads ? (int64_t)kept->delay_ns
                                         : (kept->follow_up.due_ms - kept->ended_ms) * 1000000);
    evaluation.index = job->public.modify_index;
    *ret_evaluation = evaluation;
    return true;
}

bool alone_follow_up(const struct alone *alone, const char *alloc,
                     struct alone_evaluation *ret_evaluation)
{
    const struct kept *kept = kept_find(alone, alloc);

    return kept != NULL && follow_up_of(alone, kept, ret_evaluation);
}

/* --- looking --- */

/* Newest first. */
static void each_made(const struct alone *alone, alone_evaluation_cb *cb, void *ctx)
{
    for (uint64_t i = 0; i < EVALUATIONS_MAX && i < alone->evaluations_count; i++) {
        uint64_t at = (alone->evaluations_count - 1 - i) % EVALUATIONS_MAX;
        if (!cb(ctx, &alone->evaluations[at]))
            return;
    }
}

void alone_each_evaluation(struct alone *alone, alone_evaluation_cb *cb, void *ctx)
{
    struct kept *kept, *next;

    for (const struct job *job = alone->jobs; job != NULL; job = job->hh.next) {
        if (job->blocked.id[0] != '\0' && !cb(ctx, &job->blocked))
            return;
    }
    HASH_ITER(hh, alone->kept, kept, next)
    {
        if (kept->leads && follow_up_of(alone, kept, &alone->shown) && !cb(ctx, &alone->shown))
            return;
    }
    each_made(alone, cb, ctx);
}

struct finding {
    const char *id_prefix;
    const struct alone_evaluation *found;
};

static bool find(void *ctx, const struct alone_evaluation *evaluation)
{
    struct finding *finding = ctx;

    if (text_starts_with(evaluation->id, finding->id_prefix))
        finding->found = evaluation;
    return finding->found == NULL;
}

uint64_t alone_placed_at(const struct alone *alone, const char *evaluation_id)
{
    struct finding finding = {.id_prefix = evaluation_id};

    if (uuid_is_valid(evaluation_id))
        each_made(alone, find, &finding);
    return finding.found == NULL ? 0 : finding.found->index;
}

const struct alone_evaluation *alone_evaluation(struct alone *alone, const char *id_prefix)
{
    struct finding finding = {.id_prefix = id_prefix};

    if (uuid_is_valid(id_prefix)) /* no prefix: it is mostly asked for one that was just made */
        each_made(alone, find, &finding);
    if (finding.found == NULL)
        alone_each_evaluation(alone, find, &finding);
    return finding.found;
}
