/*
 * What is over: ended allocs beyond the configured bound are destroyed, jobs are forgotten that
 * were purged and have no alloc left.
 */
#include "server/alone/part.h"

#include <stdlib.h>

struct ended {
    struct machine_id id;
    int64_t ended_unix_ns;
};

struct ended_list {
    struct ended *items;
    size_t count, size;
};

static bool note_ended(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct ended_list *list = ctx;

    if (record->state != A_TERMINAL)
        return true;
    *list_more(list) = (struct ended){*id, alloc_of(record)->ended_unix_ns};
    return true;
}

static int by_age(const void *a, const void *b)
{
    int64_t left = ((const struct ended *)a)->ended_unix_ns;
    int64_t right = ((const struct ended *)b)->ended_unix_ns;

    return left < right ? -1 : left > right;
}

static bool count_alloc(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct gathering *gathering = ctx;
    const struct alloc *alloc = alloc_of(record);

    (void)id;
    if (text_equal(alloc->assign.job_id, gathering->job->id) &&
        text_equal(alloc->assign.namespace, gathering->job->namespace))
        gathering->count++;
    return true;
}

/* Forgets jobs without allocs that were purged, or are stopped if ALL_STOPPED.  True if that was
 * wanted and a stopped job still has allocs. */
static bool forget_jobs(struct alone *alone, bool all_stopped)
{
    struct job *job, *next;
    bool more = false;

    HASH_ITER(hh, alone->jobs, job, next)
    {
        bool purged = json_is_true(json_object_get(job->json, "cairnPurge"));
        struct gathering gathering = {.alone = alone, .job = job};
        if (job->unsaved || !(purged || (all_stopped && job->public.stop)))
            continue;
        core_each(life_core(alone->config.life), MACHINE_ALLOC, count_alloc, &gathering);
        if (gathering.count > 0) {
            more = all_stopped;
            continue;
        }
        core_spec(life_core(alone->config.life), job->key, NULL, 0);
        job_free(alone, job);
        life_changed(alone->config.life);
    }
    return more;
}

static void collect(struct alone *alone, size_t kept)
{
    struct ended_list list = {0};

    core_each(life_core(alone->config.life), MACHINE_ALLOC, note_ended, &list);
    size_t excess = policy_collect(list.count, kept);
    size_t room = core_room(life_core(alone->config.life));
    if (excess > room)
        excess = room; /* the others when these have gone */
    if (excess > 0)
        qsort(list.items, list.count, sizeof(*list.items), by_age);
    for (size_t i = 0; i < excess; i++)
        core_tell(life_core(alone->config.life), &list.items[i].id, AE_DESTROY, NULL);
    free(list.items);
}

void alone_collect(struct alone *alone)
{
    collect(alone, 0);
    alone->forget_stopped = forget_jobs(alone, true);
}

void alone_resume_tidy(struct alone *alone)
{
    (void)forget_jobs(alone, false);
    alone->tidy_wanted = true;
}

void alone_note_ended(void *ctx)
{
    struct alone *alone = ctx;

    alone->tidy_wanted = true; /* once for all that end in one turn */
}

void alone_tidy(void *ctx)
{
    struct alone *alone = ctx;

    if (!alone->tidy_wanted)
        return;
    alone->tidy_wanted = false;
    collect(alone, alone->config.allocs_kept);
    alone->forget_stopped = forget_jobs(alone, alone->forget_stopped);
}
