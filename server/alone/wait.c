/*
 * What is placed later: allocs for which there was no room, and those that take the place of failed
 * ones when it is time.
 *
 * A job that may miss something is looked at after the turn in which that was seen, and when the
 * next time comes.  A look compares what the job's JSON and the records say, which is all that a
 * crash leaves, and posts what is due as one proposal; if that cannot be committed it looks again.
 */
#include "server/alone/part.h"

#include <stdlib.h>
#include <string.h>

enum { FOLLOW_UP_WINDOW_MS = 5000 };

uint64_t alone_look_deadline_ms(void *ctx)
{
    const struct alone *alone = ctx;
    const uint64_t times[] = {alone->look_at_ms, storage_deadline_ms(alone->storage),
                              storage_deadline_ms(alone->hosted), drain_deadline_ms(alone),
                              periodic_deadline_ms(alone)};
    uint64_t first_ms = 0;

    for (size_t i = 0; i < COUNT_OF(times); i++) {
        if (times[i] != 0 && (first_ms == 0 || times[i] < first_ms))
            first_ms = times[i];
    }
    return first_ms;
}

/* --- looking at one job --- */

/* The evaluation that makes another for KEPT, which is due then by itself: the last that was named,
 * if that comes only a little earlier, as in Nomad (v2.0.5 scheduler/reconciler,
 * createRescheduleLaterEvals). */
static void name_follow_up(struct alone *alone, struct job *job, struct kept *kept, int64_t due_ms)
{
    struct follow_up *last = &job->follow_up;
    int64_t now_ms = (int64_t)life_now_ms(alone->config.life);
    bool joins = last->id[0] != '\0' && last->due_ms > now_ms && due_ms >= last->due_ms &&
                 due_ms - last->due_ms < FOLLOW_UP_WINDOW_MS;

    kept->leads = !joins;
    if (!joins) {
        alone->config.new_id(alone->config.ctx, last->id);
        last->due_ms = due_ms;
    }
    kept->follow_up = *last;
}

/* When another is due for the last alloc of a place, which has failed; then what makes it into
 * RET_FOLLOW_UP, if it was named. */
static bool is_due(struct alone *alone, struct job *job, struct kept *kept,
                   struct follow_up *ret_follow_up)
{
    int64_t now_ms = (int64_t)life_now_ms(alone->config.life);
    int64_t due_ms =
        kept->delay_ms > INT64_MAX / 2 ? INT64_MAX : kept->ended_ms + (int64_t)kept->delay_ms;
    bool named = kept->follow_up.id[0] != '\0';

    if (due_ms > now_ms && !named)
        name_follow_up(alone, job, kept, due_ms);
    if (due_ms <= now_ms || kept->follow_up.due_ms <= now_ms) {
        if (named && ret_follow_up->id[0] == '\0')
            *ret_follow_up = kept->follow_up;
        kept->follow_up = (struct follow_up){.id = ""};
        kept->waits = true; /* until another one is there: let_go(), stop_waiting() */
        return true;
    }
    kept->waits = true;
    job->waiting++;
    alone_look_later(alone, job, (uint64_t)kept->follow_up.due_ms);
    return false;
}

/* True if something of JOB is to be placed now: then PLACES says what, and RET_FOLLOW_UP by which
 * evaluation, if that was named. */
static bool want(struct alone *alone, struct job *job, const struct gathering *gathering,
                 struct places *places, struct follow_up *ret_follow_up)
{
    const json_t *list = json_object_get(job->json, "TaskGroups"), *place;
    bool any = false;
    size_t i;

    json_array_foreach(job_queue(job), i, place)
    {
        size_t number = (size_t)json_integer_value(place);
        size_t g = number / JOB_COUNT_MAX, index = number % JOB_COUNT_MAX;

        if (g >= places->count || index >= places->groups[g].count)
            continue;
        int last = places->last[g][index];
        places->groups[g].place[index] = last < 0 || !gathering->allocs[last].live;
        any = true;
    }
    for (size_t g = 0; g < places->count; g++) {
        for (uint32_t index = 0; index < places->groups[g].count; index++) {
            int last = places->last[g][index];
            struct kept *kept = last < 0 ? NULL : kept_find(alone, gathering->ids[last].text);
            const struct alloc *alloc =
                kept == NULL ? NULL : core_alloc(life_core(alone->config.life), kept->id);
            if (alloc == NULL || alloc->client_status != CLIENT_FAILED || alloc->stop_wanted ||
                deployment_gave_up(job, alloc))
                continue;
            alone_decide(alone, job, json_array_get(list, g), kept);
            if (places->groups[g].place[index] || !kept->again ||
                !is_due(alone, job, kept, ret_follow_up))
                continue;
            places->groups[g].place[index] = any = true;
        }
    }
    return any;
}

static void stop_waiting(struct alone *alone, struct job *job, const struct gathering *gathering)
{
    job->waiting = 0;
    alone_look_never(alone, job);
    for (size_t a = 0; a < gathering->count; a++) {
        struct kept *kept = kept_find(alone, gathering->ids[a].text);
        if (kept != NULL)
            kept->waits = false;
    }
}

/* What was due is to be no more: it may be collected. */
static void let_go(struct alone *alone, const struct gathering *gathering)
{
    for (size_t a = 0; a < gathering->count; a++) {
        struct kept *kept = kept_find(alone, gathering->ids[a].text);
        if (kept != NULL && kept->follow_up.id[0] == '\0')
            kept->waits = false;
    }
}

/* Nothing is queued any more. */
static void end_blocked(struct alone *alone, struct job *job)
{
    if (job->blocked.id[0] == '\0' || job_queue(job) != NULL)
        return;
    (void)text_copy(job->blocked.status, sizeof(job->blocked.status), "complete");
    evaluation_keep(alone, &job->blocked);
    json_decref((json_t *)(uintptr_t)job->blocked.failed);
    job->blocked = (struct alone_evaluation){.id = ""};
}

/* FOLLOW_UP: what was said to make it, id "": nothing was.  False if it could not be done now, and
 * is tried again. */
static bool place_due(struct alone *alone, struct job *job, const struct gathering *gathering,
                      struct places *places, bool rolls, const struct follow_up *follow_up)
{
    bool named = follow_up->id[0] != '\0';
    const char *why = !named && job_queue(job) != NULL ? "queued-allocs"
                      : !named && rolls                ? "deployment-watcher"
                                                       : "alloc-reschedule";
    struct alone_evaluation evaluation = evaluation_begin(alone, job, why);
    struct change change = change_begin(alone, job);
    const char *deployment_id = rolls ? alone_deployment_id(&job->public) : "";
    struct err err = {0};
    bool partly = false;

    if (named)
        (void)text_copy(evaluation.id, sizeof(evaluation.id), follow_up->id);
    (void)text_copy(evaluation.deployment_id, sizeof(evaluation.deployment_id), deployment_id);
    int code = alone_place(alone, &change, gathering, places, &evaluation, &partly, &err);

    if (code == 0 && evaluation.placed + evaluation.stopped == 0 && !job->unsaved &&
        json_equal(change.before, job->json) != 0)
        code = ERR_AGAIN; /* nothing has changed: there is nothing to commit */
    if (change_end(alone, &change, code) < 0) {
        if (err.code != 0)
            alone_look_later(alone, job, life_now_ms(alone->config.life) + LOOK_AGAIN_MS);
        return err.code == 0;
    }
    if (partly) {
        job->look_again_ms = 0;
        alone_look_later(alone, job, life_now_ms(alone->config.life) + 1);
    }
    if (evaluation.placed == 0)
        return true;
    evaluation_keep(alone, &evaluation);
    say(&alone->config.say, SAY_INFO, "server", "job placed again job=%s placed=%u queued=%zu",
        text_value(job->id), evaluation.placed, json_array_size(job_queue(job)));
    return true;
}

/* It reads all allocs of the job.  One whose thousands come up one by one would be read for each
 * of them: what it costs bounds how often it is done. */
static void look(struct alone *alone, struct job *job)
{
    struct gathering gathering = {.alone = alone, .job = job};
    uint64_t now_ms = life_now_ms(alone->config.life);
    struct follow_up follow_up = {.id = ""};
    struct places places;

    if (job->unsaved) {
        alone_note_look(alone, job); /* when that is decided */
        return;
    }
    if (now_ms < job->look_again_ms) {
        alone_look_later(alone, job, job->look_again_ms);
        return;
    }
    gathering_fill(&gathering);
    job->look_again_ms = now_ms + gathering.count / LOOK_ALLOCS_PER_MS;
    stop_waiting(alone, job, &gathering);
    places_begin(&places, &gathering);
    bool due = !job->public.stop && want(alone, job, &gathering, &places, &follow_up);
    enum rollout rollout =
        job->public.stop ? ROLLOUT_NOTHING : rollout_look(alone, &gathering, &places);
    bool done = true;
    if (rollout != ROLLOUT_ENDED && (due || rollout == ROLLOUT_NEXT)) {
        done = life_check_turn(alone->config.life, 0, NULL) == 0;
        if (!done)
            alone_look_later(alone, job, life_now_ms(alone->config.life) + LOOK_AGAIN_MS);
        else
            done = place_due(alone, job, &gathering, &places, rollout == ROLLOUT_NEXT, &follow_up);
    }
    if (done && !job->unsaved) /* else it is looked at when that is decided */
        let_go(alone, &gathering);
    end_blocked(alone, job);
    places_end(alone, &places);
    gathering_free(&gathering);
}

/* --- looking at all --- */

static int by_priority(const void *a, const void *b)
{
    const struct job *left = *(const struct job *const *)a, *right = *(const struct job *const *)b;
    uint64_t first = job_number(left->json, "Priority"),
             second = job_number(right->json, "Priority");

    if (first != second)
        return first > second ? -1 : 1;
    return left->public.create_index != right->public.create_index
               ? (left->public.create_index < right->public.create_index ? -1 : 1)
               : strcmp(left->key, right->key);
}

/* Each of them once, and nobody else is asked.  TIMELY: the first time that one waits for is here.
 */
static void take_looks(struct alone *alone, bool timely, struct job_list *ret_jobs)
{
    uint64_t now_ms = life_now_ms(alone->config.life);

    for (struct job *job = timely ? alone->timed : NULL; job != NULL; job = job->timed_next) {
        if (job->look_at_ms <= now_ms)
            alone_note_look(alone, job);
    }
    for (struct job *job = alone->room_freed ? alone->queued : NULL; job != NULL;
         job = job->queued_next)
        alone_note_look(alone, job);
    *ret_jobs = alone->looks;
    alone->looks = (struct job_list){0}; /* a look may ask for another one */
    alone->room_freed = false;
    for (size_t i = 0; i < ret_jobs->count; i++)
        ret_jobs->items[i]->look = false;
}

void alone_look(struct alone *alone)
{
    bool timely = alone->look_at_ms != 0 && alone->look_at_ms <= life_now_ms(alone->config.life);
    struct job_list jobs;

    take_looks(alone, timely, &jobs);
    if (jobs.count == 0 && !timely)
        return;
    if (jobs.count > 0)
        qsort(jobs.items, jobs.count, sizeof(struct job *), by_priority);
    for (size_t i = 0; i < jobs.count; i++)
        look(alone, jobs.items[i]);
    free(jobs.items);
    alone->look_at_ms = 0;
    for (const struct job *job = alone->timed; job != NULL; job = job->timed_next) {
        if (alone->look_at_ms == 0 || job->look_at_ms < alone->look_at_ms)
            alone->look_at_ms = job->look_at_ms;
    }
}
