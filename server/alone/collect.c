/*
 * What is over: ended allocs beyond the configured bound are destroyed, the longest ended first;
 * jobs are forgotten that were purged, or stopped when everything was to be collected, once they
 * have no alloc left.
 */
#include "server/alone/part.h"

#include <stdlib.h>
#include <string.h>

/* --- ended allocs --- */

static int by_age(const struct kept *a, const struct kept *b)
{
    return a->ended_unix_ns < b->ended_unix_ns ? -1 : a->ended_unix_ns > b->ended_unix_ns;
}

static void collect(struct alone *alone, size_t allocs_kept, bool forced)
{
    struct core *core = life_core(alone->config.life);
    size_t excess = policy_collect(HASH_COUNT(alone->kept), allocs_kept);
    size_t room = core_room(core);

    if (excess > room)
        excess = room; /* the others when these have gone */

    if (excess > 0 && alone->kept_unsorted) {
        HASH_SRT(hh, alone->kept, by_age);
        alone->kept_unsorted = false;
    }
    for (struct kept *kept = alone->kept, *next; excess > 0 && kept != NULL; kept = next) {
        struct machine_id id = machine_id_make(MACHINE_ALLOC, kept->id);
        const struct alloc *alloc = core_alloc(core, id.text);
        next = kept->hh.next;
        if (kept->waits || disks_is_awaited(alone, kept->id, forced))
            continue; /* what is made for it knows what was before from it, or has its disk */
        if (alloc != NULL && alloc->machine.state == A_TERMINAL)
            core_tell(core, &id, AE_DESTROY, NULL);
        kept_drop(alone, kept);
        excess--;
    }
}

/* --- jobs that are over --- */

void alone_note_gone(void *ctx, const char *id, const struct alloc *alloc)
{
    struct alone *alone = ctx;
    struct kept *kept = kept_find(alone, id);
    struct job *job = job_find(alone, alloc->assign.namespace, alloc->assign.job_id);

    alone_release(alone, id);
    ports_release(alone, id);
    disks_release(alone, id);
    if (kept != NULL)
        kept_drop(alone, kept);
    if (job != NULL)
        alone_note_over(alone, job);
}

static bool stop_at_first(void *ctx, const struct machine_id *id, const struct machine *record)
{
    (void)id;
    (void)record;
    *(bool *)ctx = true;
    return false;
}

static bool has_allocs(const struct alone *alone, const struct job *job)
{
    bool any = false;

    core_each_of_job(life_core(alone->config.life), job->namespace, job->id, stop_at_first, &any);
    return any;
}

static bool is_over(const struct alone *alone, const struct job *job)
{
    /* One that is unsaved is looked at again when its commit is decided. */
    return (job_is_purged(job) || (!job->unsaved && job->forget && job->public.stop)) &&
           !has_allocs(alone, job);
}

static void forget_jobs(struct alone *alone)
{
    struct job_list over = alone->over;

    alone->over = (struct job_list){0};
    for (size_t i = 0; i < over.count; i++) {
        struct job *job = over.items[i];
        job->looked_for = false;
        if (!is_over(alone, job))
            continue;
        core_spec(life_core(alone->config.life), job->key, NULL, 0);
        job_forget(alone, job);
    }
    free(over.items);
}

/* --- when --- */

void alone_collect(struct alone *alone)
{
    struct job *job, *next;

    collect(alone, 0, true);
    HASH_ITER(hh, alone->jobs, job, next)
    {
        job->forget = job->public.stop;
        alone_note_over(alone, job);
    }
    forget_jobs(alone);
}

void alone_resume_tidy(struct alone *alone)
{
    struct job *job, *next;

    HASH_ITER(hh, alone->jobs, job, next)
    alone_note_over(alone, job);
}

void alone_tidy(void *ctx)
{
    struct alone *alone = ctx;

    alone_look(alone);
    collect(alone, alone->config.allocs_kept, false);
    forget_jobs(alone);
}

void alone_free_over(struct alone *alone)
{
    struct kept *kept, *next;

    HASH_ITER(hh, alone->kept, kept, next)
    kept_drop(alone, kept);
    free(alone->over.items);
}
