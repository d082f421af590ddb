/*
 * What is over: ended allocs beyond the configured bound, or on a disk that is too full, are
 * destroyed, the longest ended first; jobs are forgotten that were purged, made of another one, or
 * stopped when everything was to be collected, once they have no alloc left.
 */
#include "server/alone/part.h"

#include "spec/job.h"

#include <stdlib.h>
#include <string.h>

/* --- ended allocs --- */

static int by_age(const struct kept *a, const struct kept *b)
{
    return a->ended_unix_ns < b->ended_unix_ns ? -1 : a->ended_unix_ns > b->ended_unix_ns;
}

/* Up to COUNT of them; returns how many. */
static size_t collect(struct alone *alone, size_t count, bool forced)
{
    struct core *core = life_core(alone->config.life);
    size_t room = core_room(core),
           left = count < room ? count : room; /* else when these are gone */
    size_t collected = 0;

    if (left > 0 && alone->kept_unsorted) {
        HASH_SRT(hh, alone->kept, by_age);
        alone->kept_unsorted = false;
    }
    for (struct kept *kept = alone->kept, *next; collected < left && kept != NULL; kept = next) {
        struct machine_id id = machine_id_make(MACHINE_ALLOC, kept->id);
        const struct alloc *alloc = core_alloc(core, id.text);
        next = kept->hh.next;
        if (kept->waits || disks_is_awaited(alone, kept->id, forced))
            continue; /* what is made for it knows what was before from it, or has its disk */
        if (alloc != NULL && alloc->machine.state == A_TERMINAL)
            core_tell(core, &id, AE_DESTROY, NULL);
        kept_drop(alone, kept);
        collected++;
    }
    return collected;
}

/* --- a full disk --- */

static void look_at_queued(struct alone *alone)
{
    for (struct job *job = alone->queued; job != NULL; job = job->queued_next)
        alone_look_later(alone, job, life_now_ms(alone->config.life));
}

static void make_room(struct alone *alone, const char *full)
{
    uint64_t now_ms = life_now_ms(alone->config.life);

    if (policy_awaits_leaving(&alone->leaving, now_ms))
        return;
    size_t collected = collect(alone, alone->config.collect_at_once, false);

    if (collected > 0)
        say(&alone->config.say, SAY_INFO, "server", "ended allocs are collected why=%s allocs=%zu",
            full, collected);
    else if (!alone->disk_told)
        say(&alone->config.say, SAY_WARN, "server",
            "no ended alloc is left to be collected: free some space or raise "
            "client.gc_%s_usage_threshold",
            full);
    alone->leaving = (struct disk_leaving){.allocs = collected, .since_ms = now_ms};
    alone->disk_told = collected == 0;
    if (collected == 0 && alone->disk_wanted_mb > 0) {
        alone->disk_wanted_mb = 0;
        alone->disk_given_up = true;
        look_at_queued(alone);
    }
}

void alone_disk_measured(struct alone *alone, const struct disk_use *use)
{
    if (alone == NULL)
        return;
    const char *full = policy_too_full(use, &alone->config.disk_limits);
    alone->disk = *use;
    alone->disk_given_up = false;
    if (alone->queued == NULL)
        alone->disk_wanted_mb = 0; /* who waited for it does not any more */
    if (full == NULL && alone->disk_wanted_mb > use->bytes_free >> 20)
        full = "disk";
    if (full != NULL) {
        make_room(alone, full);
        return;
    }
    alone->disk_told = false;
    if (alone->disk_wanted_mb > 0)
        look_at_queued(alone);
    alone->disk_wanted_mb = 0;
}

/* --- jobs that are over --- */

void alone_note_gone(void *ctx, const char *id, const struct alloc *alloc)
{
    struct alone *alone = ctx;
    struct kept *kept = kept_find(alone, id);
    struct job *job = job_find(alone, alloc->assign.namespace, alloc->assign.job_id);

    alone_release(alone, id);
    ports_release(alone, id);
    grants_release(alone, id);
    users_release(alone, id);
    disks_release(alone, id);
    if (kept != NULL)
        kept_drop(alone, kept);
    if (job != NULL)
        alone_note_over(alone, job);
    alone->leaving.allocs -= alone->leaving.allocs > 0;
    alone->leaving.since_ms = life_now_ms(alone->config.life);
    if (alone->config.measure_disk != NULL &&
        (alone->disk_wanted_mb > 0 ||
         policy_too_full(&alone->disk, &alone->config.disk_limits) != NULL))
        alone->config.measure_disk(alone->config.ctx);
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

/* What was made of another job goes with the last of its allocs: it is never run again. */
static bool has_been_run(const struct job *job)
{
    return jobspec_is_child(job->json) && job_queue(job) == NULL && job->waiting == 0;
}

static bool is_over(const struct alone *alone, const struct job *job)
{
    bool forgotten = (job->forget && job->public.stop) || has_been_run(job);

    /* One that is unsaved is looked at again when its commit is decided. */
    return (job_is_purged(job) || (!job->unsaved && forgotten)) && !has_allocs(alone, job);
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
        sources_drop(alone, job);
        job_forget(alone, job);
    }
    free(over.items);
}

/* --- when --- */

void alone_collect(struct alone *alone)
{
    struct job *job, *next;

    (void)collect(alone, HASH_COUNT(alone->kept), true);
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

    alone->revision++;
    storage_tidy(alone->storage);
    storage_tidy(alone->hosted);
    drain_tidy(alone);
    periodic_tidy(alone);
    alone_look(alone);
    (void)collect(alone, policy_collect(HASH_COUNT(alone->kept), alone->config.allocs_kept), false);
    forget_jobs(alone);
}

void alone_free_over(struct alone *alone)
{
    struct kept *kept, *next;

    HASH_ITER(hh, alone->kept, kept, next)
    kept_drop(alone, kept);
    free(alone->over.items);
}
