/*
 * A node that is drained: what runs on it ends, job by job, and is placed again when it may be.
 *
 * Looked at when something has ended, and when its deadline is over.  What is to end follows from
 * the records and from what standing.c has stored, so a crash changes nothing of it.
 */
#include "server/alone/part.h"

#include "base/list.h"

#include <stdlib.h>
#include <string.h>

/* The allocs of all jobs. */
struct draining {
    struct drain_alloc *allocs;
    struct drained {
        struct job *job;
        struct machine_id id;
    } * owners; /* of each */
    size_t count, allocs_size, owners_size;
};

static bool has_plugin(const json_t *job)
{
    const json_t *group, *task;
    size_t g, t;

    json_array_foreach(json_object_get(job, "TaskGroups"), g, group)
    {
        json_array_foreach(json_object_get(group, "Tasks"), t, task)
        {
            if (json_is_object(json_object_get(task, "CSIPluginConfig")))
                return true;
        }
    }
    return false;
}

static void add_job(struct alone *alone, struct job *job, struct draining *draining)
{
    struct gathering gathering = {.alone = alone, .job = job};
    bool plugin = has_plugin(job->json);

    gathering_fill(&gathering);
    for (size_t a = 0; a < gathering.count; a++) {
        const struct alloc *record =
            core_alloc(life_core(alone->config.life), gathering.ids[a].text);
        size_t at = draining->count;

        draining->allocs =
            list_room(draining->allocs, &draining->allocs_size, at + 1, sizeof(*draining->allocs));
        draining->owners =
            list_room(draining->owners, &draining->owners_size, at + 1, sizeof(*draining->owners));
        draining->allocs[at] =
            (struct drain_alloc){.type = job_type(job->json),
                                 .plugin = plugin,
                                 .live = gathering.allocs[a].live,
                                 .ended = record != NULL && record->ended_unix_ns != 0};
        draining->owners[at] = (struct drained){job, gathering.ids[a]};
        draining->count++;
    }
    gathering_free(&gathering);
}

/* Those of the job of number FIRST, which are beside each other, up to END. */
static int stop_job(struct alone *alone, const struct draining *draining, size_t first, size_t end,
                    struct err *err)
{
    struct job *job = draining->owners[first].job;
    struct gathering gathering = {.alone = alone, .job = job, .wanted = job->json};
    struct alone_evaluation evaluation = evaluation_begin(alone, job, "node-drain");
    struct change change = change_begin(alone, job);
    int code = 0;

    for (size_t a = first; a < end; a++) {
        if (!draining->allocs[a].stop)
            continue;
        alone_order_stop(alone, job, &draining->owners[a].id, "alloc is being migrated", 0);
        evaluation.stopped++;
    }
    gathering_fill(&gathering); /* without them */
    if (!job->public.stop)
        code =
            alone_reconcile(alone, &change, &gathering, &evaluation, err); /* which queues them */
    code = change_end(alone, &change, code);
    gathering_free(&gathering);
    if (code == 0)
        evaluation_keep(alone, &evaluation);
    return code;
}

static int stop_marked(struct alone *alone, const struct draining *draining, struct err *err)
{
    size_t first = 0, stops = 0;

    for (size_t a = 0; a < draining->count; a++)
        stops += draining->allocs[a].stop;
    int code = stops == 0 ? 0 : life_check_turn(alone->config.life, stops, err);
    while (code == 0 && first < draining->count) {
        size_t end = first, marked = 0;

        for (; end < draining->count && draining->owners[end].job == draining->owners[first].job;
             end++)
            marked += draining->allocs[end].stop;
        if (marked > 0 && draining->owners[first].job->unsaved)
            return err_set(err, ERR_AGAIN, "the job is being changed");
        if (marked > 0)
            code = stop_job(alone, draining, first, end, err);
        first = end;
    }
    return code;
}

static uint64_t force_ms(const json_t *drain)
{
    return (uint64_t)json_integer_value(json_object_get(drain, "ForceMs"));
}

uint64_t drain_deadline_ms(const struct alone *alone)
{
    const json_t *drain = standing_drain(alone);
    uint64_t force = force_ms(drain), again = alone->standing.drain_at_ms;

    if (drain == NULL)
        return 0;
    if (again != 0)
        return again;
    return alone->standing.drained_past == force ? 0 : force;
}

void drain_tidy(struct alone *alone)
{
    const json_t *drain = standing_drain(alone);
    uint64_t now_ms = life_now_ms(alone->config.life), force = force_ms(drain);
    struct standing *standing = &alone->standing;
    struct draining draining = {0};
    struct err err = {0};

    if (drain == NULL || standing->drain_at_ms > now_ms)
        return;
    bool late = force != 0 && force <= now_ms;
    struct drain asked = {
        .over = late || json_integer_value(json_object_get(drain, "Deadline")) < 0,
        .ignore_system = json_is_true(json_object_get(drain, "IgnoreSystemJobs")),
    };
    standing->drain_at_ms = 0;
    for (struct job *job = alone->jobs; job != NULL; job = job->hh.next)
        add_job(alone, job, &draining);
    bool complete = policy_drain(&asked, draining.allocs, draining.count);
    int code = stop_marked(alone, &draining, &err);
    if (code == 0 && late)
        standing->drained_past = force;
    if (code < 0)
        standing->drain_at_ms = now_ms + LOOK_AGAIN_MS;
    else if (complete && life_check_turn(alone->config.life, 0, NULL) == 0)
        standing_drained(alone, late);
    free(draining.allocs);
    free(draining.owners);
}
