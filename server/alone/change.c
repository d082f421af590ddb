/*
 * Changes of jobs, and what becomes of them.
 *
 * A registration writes the job, the specs of its new allocs, and the ASSIGN and DEFINE events of
 * their machines in one commit: there is no moment at which a job is accepted and its allocs are
 * not (I-14, I-15).  If that commit fails the job is what it was before.
 */
#include "server/alone/part.h"

#include <stdlib.h>
#include <string.h>

/* What JOB placed behind the first COUNT that it posted is not to be. */
static void give_back(struct alone *alone, const struct job *job, size_t count)
{
    for (size_t i = count; i < job->posted.count; i++) {
        if (job->posted.items[i].stops)
            continue;
        ports_release(alone, job->posted.items[i].id.text);
        grants_release(alone, job->posted.items[i].id.text);
        users_release(alone, job->posted.items[i].id.text);
        disks_release(alone, job->posted.items[i].id.text);
    }
}

static void forget_undo(struct alone *alone, struct job *job)
{
    json_decref(job->before);
    job->before = NULL;
    job->unsaved = false;
    posted_cut(alone, job, 0);
}

/* The job as JSON (moved) says, NULL: there was none. */
static void go_back(struct alone *alone, struct job *job, json_t *json)
{
    if (json == NULL) {
        job_free(alone, job);
        return;
    }
    job_set(alone, job, json);
    job_set_bytes(alone, job, json_dumpb(json, NULL, 0, JSON_COMPACT));
}

static void settle(struct alone *alone, struct job *job, int code)
{
    json_t *before = json_incref(job->before);

    if (code < 0)
        give_back(alone, job, 0);
    forget_undo(alone, job);
    if (code < 0 && before == NULL) {
        job_forget(alone, job);
        return;
    }
    if (code < 0) {
        go_back(alone, job, before);
        alone_look_later(alone, job, life_now_ms(alone->config.life) + LOOK_AGAIN_MS);
        return;
    }
    alone_note_look(alone, job);
    json_decref(before);
    alone_note_over(alone, job);
}

static void saved(void *ctx, int code, const struct err *err)
{
    struct alone *alone = ctx;
    struct job_list unsaved = alone->unsaved;

    (void)err; /* whoever asked for the change gets it too */
    alone->unsaved = (struct job_list){0};
    for (size_t i = 0; i < unsaved.count; i++)
        settle(alone, unsaved.items[i], code);
    free(unsaved.items);
    alone->taken = (struct demand){0};
    if (code < 0)
        alone_count_room(alone);
}

struct change change_begin(struct alone *alone, struct job *job)
{
    core_propose(life_core(alone->config.life), true);
    return (struct change){job, json_incref(job->json), job->posted.count, alone->taken};
}

void change_job(struct alone *alone, struct change *change, json_t *json)
{
    job_set(alone, change->job, json);
    job_save(alone, change->job);
}

/* Who waits to place the rest: one evaluation, for as long as something is queued. */
static void name_blocked(struct alone *alone, struct job *job, json_t *failed,
                         struct alone_evaluation *evaluation)
{
    struct alone_evaluation *blocked = &job->blocked;

    if (blocked->id[0] == '\0') {
        *blocked = evaluation_begin(alone, job, "queued-allocs");
        (void)text_copy(blocked->status, sizeof(blocked->status), "blocked");
        blocked->index = life_next_index(alone->config.life);
    }
    json_decref((json_t *)(uintptr_t)blocked->failed);
    blocked->failed = json_array_size(failed) == 0 ? NULL : json_incref(failed);
    evaluation->failed = blocked->failed;
    (void)text_copy(evaluation->blocked_id, sizeof(evaluation->blocked_id), blocked->id);
}

void change_queue(struct alone *alone, struct change *change, json_t *queue, json_t *failed,
                  struct alone_evaluation *evaluation)
{
    struct job *job = change->job;
    const json_t *before = job_queue(job);

    if (json_array_size(queue) > 0)
        name_blocked(alone, job, failed, evaluation);
    if (before == NULL ? json_array_size(queue) > 0 : !json_equal(before, queue)) {
        json_t *json = json_copy(job->json);

        check(json != NULL);
        if (json_array_size(queue) > 0)
            check(json_object_set(json, "cairnQueued", queue) == 0);
        else
            (void)json_object_del(json, "cairnQueued"); /* it was there */
        change_job(alone, change, json);
    }
    json_decref(queue);
    json_decref(failed);
}

int change_end(struct alone *alone, struct change *change, int code)
{
    struct job *job = change->job;

    if (code < 0) {
        bool posted = job->posted.count > change->posted;
        core_abandon(life_core(alone->config.life));
        give_back(alone, job, change->posted);
        posted_cut(alone, job, change->posted);
        alone->taken = change->taken;
        go_back(alone, job, change->before);
        if (posted)
            alone_count_room(alone);
        return code;
    }
    core_propose(life_core(alone->config.life), false);
    if (job->unsaved) {
        json_decref(change->before); /* of a change that goes with the same commit */
    } else {
        job->before = change->before;
        job->unsaved = true;
        *list_more(&alone->unsaved) = job;
    }
    life_after_commit(alone->config.life, saved, alone);
    struct life_subject subject = job_subject(job);
    life_changed(alone->config.life, &subject);
    return code;
}
