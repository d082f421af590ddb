/*
 * Jobs: as they are stored, and what becomes of a change.
 *
 * A registration writes the job, the specs of its new allocs, and the ASSIGN and DEFINE events of
 * their machines in one commit: there is no moment at which a job is accepted and its allocs are
 * not (I-14, I-15).  If that commit fails the job is what it was before.
 */
#include "server/alone/part.h"

#include <stdlib.h>
#include <string.h>

/* Nothing that is to be looked at later may point to what is freed. */
static void leave(struct job_list *list, const struct job *job)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i] == job)
            list->items[i--] = list->items[--list->count];
    }
}

struct life_subject job_subject(const struct job *job)
{
    return (struct life_subject){LIFE_JOB, job->namespace, job->id};
}

void job_forget(struct alone *alone, struct job *job)
{
    struct life_subject subject = job_subject(job);

    life_gone(alone->config.life, &subject);
    job_free(alone, job);
}

void job_free(struct alone *alone, struct job *job)
{
    if (job->looked_for)
        leave(&alone->over, job);
    check(!job->unsaved);
    HASH_DEL(alone->jobs, job);
    alone->jobs_bytes -= job->bytes;
    json_decref(job->json);
    json_decref(job->before);
    free(job->posted.items);
    free(job);
}

/* --- as they are stored --- */

struct job *job_find(const struct alone *alone, const char *namespace, const char *id)
{
    char key[JOURNAL_KEY_SIZE];
    struct job *job;

    if (!text_format(key, sizeof(key), "job/%s/%s", namespace, id))
        return NULL;
    HASH_FIND_STR(alone->jobs, key, job);
    return job;
}

struct job *job_add(struct alone *alone, const char *namespace, const char *id)
{
    struct job *job = calloc(1, sizeof(*job));

    check(job != NULL);
    (void)text_format(job->key, sizeof(job->key), "job/%s/%s", namespace, id); /* bounded names */
    (void)text_copy(job->namespace, sizeof(job->namespace), namespace);
    (void)text_copy(job->id, sizeof(job->id), id);
    job->public.namespace = job->namespace;
    job->public.id = job->id;
    HASH_ADD_KEYPTR(hh, alone->jobs, job->key, strlen(job->key), job);
    alone->jobs_unsorted = true;
    return job;
}

uint64_t job_number(const json_t *object, const char *name)
{
    return (uint64_t)json_integer_value(json_object_get(object, name));
}

static void set_json(struct job *job, json_t *json)
{
    json_decref(job->json);
    job->json = json;
    job->public.job = json;
    job->public.version = job_number(json, "Version");
    job->public.create_index = job_number(json, "CreateIndex");
    job->public.modify_index = job_number(json, "ModifyIndex");
    job->public.job_modify_index = job_number(json, "JobModifyIndex");
    job->public.submit_unix_ns = (int64_t)job_number(json, "SubmitTime");
    job->public.stop = json_is_true(json_object_get(json, "Stop"));
}

static void set_bytes(struct alone *alone, struct job *job, size_t bytes)
{
    alone->jobs_bytes += bytes - job->bytes;
    job->bytes = bytes;
}

static void save(struct alone *alone, struct job *job)
{
    char *text = json_dumps(job->json, JSON_COMPACT | JSON_SORT_KEYS);

    check(text != NULL);
    set_bytes(alone, job, strlen(text));
    core_spec(life_core(alone->config.life), job->key, text, job->bytes);
    free(text);
}

static bool load_job(void *ctx, const char *key, const void *bytes, size_t length)
{
    struct alone *alone = ctx;
    json_t *json = json_loadb(bytes, length, 0, NULL);
    const char *namespace = json_string_value(json_object_get(json, "Namespace"));
    const char *id = json_string_value(json_object_get(json, "ID"));

    if (namespace == NULL || id == NULL || strlen(id) >= SPEC_NAME_SIZE ||
        strlen(namespace) >= SPEC_NAMESPACE_SIZE) {
        say(&alone->config.say, SAY_ERROR, "server",
            "a stored job cannot be read; its allocs go on key=%s", text_value(key));
        json_decref(json);
        return true;
    }
    struct job *job = job_add(alone, namespace, id);
    set_json(job, json);
    set_bytes(alone, job, length);
    return true;
}

/* Something must answer for allocs whose job was lost: a stopped job without groups, which can be
 * purged with them, or registered again. */
static bool adopt_job(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct alone *alone = ctx;
    const struct alloc_assign *assign = &alloc_of(record)->assign;

    (void)id;
    if (assign->job_id[0] == '\0' || job_find(alone, assign->namespace, assign->job_id) != NULL)
        return true;
    say(&alone->config.say, SAY_ERROR, "server",
        "a job is lost; its allocs go on until it is purged or registered job=%s",
        text_value(assign->job_id));
    json_t *json = json_pack("{s:s, s:s, s:s, s:s, s:b, s:I, s:[], s:[]}", "ID", assign->job_id,
                             "Name", assign->job_id, "Namespace", assign->namespace, "Type",
                             assign->batch ? "batch" : "service", "Stop", 1, "Version",
                             (json_int_t)assign->job_version, "Datacenters", "TaskGroups");
    check(json != NULL);
    struct job *job = job_add(alone, assign->namespace, assign->job_id);
    set_json(job, json);
    save(alone, job);
    return true;
}

int alone_load_jobs(struct alone *alone, struct err *err)
{
    int code = life_each_spec(alone->config.life, "job/", load_job, alone, err);

    if (code == 0)
        core_each(life_core(alone->config.life), MACHINE_ALLOC, adopt_job, alone);
    return code;
}

void alone_note_over(struct alone *alone, struct job *job)
{
    if (job->looked_for)
        return;
    job->looked_for = true;
    *list_more(&alone->over) = job;
}

/* --- changes --- */

static void forget_undo(struct job *job)
{
    json_decref(job->before);
    job->before = NULL;
    job->unsaved = false;
    job->posted.count = 0;
}

/* The job as JSON (moved) says, NULL: there was none. */
static void go_back(struct alone *alone, struct job *job, json_t *json)
{
    if (json == NULL) {
        job_free(alone, job);
        return;
    }
    set_json(job, json);
    set_bytes(alone, job, json_dumpb(json, NULL, 0, JSON_COMPACT));
}

static void settle(struct alone *alone, struct job *job, int code)
{
    json_t *before = json_incref(job->before);

    forget_undo(job);
    if (code < 0 && before == NULL) {
        job_forget(alone, job);
        return;
    }
    if (code < 0) {
        go_back(alone, job, before);
        return;
    }
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
}

struct change change_begin(struct alone *alone, struct job *job)
{
    core_propose(life_core(alone->config.life), true);
    return (struct change){job, json_incref(job->json), job->posted.count, alone->taken};
}

void change_job(struct alone *alone, struct change *change, json_t *json)
{
    set_json(change->job, json);
    save(alone, change->job);
}

int change_end(struct alone *alone, struct change *change, int code)
{
    struct job *job = change->job;

    if (code < 0) {
        core_abandon(life_core(alone->config.life));
        job->posted.count = change->posted;
        alone->taken = change->taken;
        go_back(alone, job, change->before);
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

/* --- looking --- */

const struct alone_job *alone_find(const struct alone *alone, const char *namespace,
                                   const char *job_id)
{
    const struct job *job = job_find(alone, namespace, job_id);

    return job == NULL ? NULL : &job->public;
}

/* Lists of jobs are the same before and after a restart. */
static int by_key(const struct job *a, const struct job *b)
{
    return strcmp(a->key, b->key);
}

void alone_each(struct alone *alone, alone_each_cb *cb, void *ctx)
{
    const struct job *next;

    if (alone->jobs_unsorted)
        HASH_SRT(hh, alone->jobs, by_key);
    alone->jobs_unsorted = false;

    for (const struct job *job = alone->jobs; job != NULL; job = next) {
        next = job->hh.next;
        if (!cb(ctx, &job->public))
            return;
    }
}

struct counting {
    size_t live, pending;
};

static bool count_live(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct counting *counting = ctx;
    const struct alloc *alloc = alloc_of(record);

    (void)id;
    bool live = alloc->client_status == CLIENT_PENDING || alloc->client_status == CLIENT_RUNNING;
    counting->live += live;
    counting->pending += alloc->client_status == CLIENT_PENDING;
    return true;
}

const char *alone_job_status(const struct alone *alone, const struct alone_job *job)
{
    struct counting counting = {0};

    core_each_of_job(life_core(alone->config.life), job->namespace, job->id, count_live, &counting);
    return job_status_name(policy_job_status(job->stop, counting.live, counting.pending));
}
