/*
 * Jobs: as they are stored, and found.
 */
#include "server/alone/part.h"

#include "spec/job.h"
#include "spec/names.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

/* Nothing that is to be looked at later may point to what is freed. */
static void leave(struct job_list *list, const struct job *job)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i] == job)
            list->items[i--] = list->items[--list->count];
    }
}

static void set_queued(struct alone *alone, struct job *job, bool queued)
{
    if (job->queued == queued)
        return;
    job->queued = queued;
    if (queued)
        DL_APPEND2(alone->queued, job, queued_prev, queued_next);
    else
        DL_DELETE2(alone->queued, job, queued_prev, queued_next);
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

/* Of what all versions of JOB (may be NULL) were read of. */
static size_t sources_bytes(const json_t *job)
{
    size_t bytes = (size_t)job_number(job, "cairnSource"), i;
    const json_t *version;

    json_array_foreach(json_object_get(job, "cairnVersions"), i, version) bytes +=
        (size_t)job_number(version, "cairnSource");
    return bytes;
}

void job_free(struct alone *alone, struct job *job)
{
    if (job->looked_for)
        leave(&alone->over, job);
    if (job->look)
        leave(&alone->looks, job);
    set_queued(alone, job, false);
    alone_look_never(alone, job);
    job_forget_token(alone, job);
    periodic_forget(alone, job);
    check(!job->unsaved);
    HASH_DEL(alone->jobs, job);
    alone->jobs_bytes -= job->bytes;
    alone->sources_bytes -= sources_bytes(job->json);
    json_decref(job->json);
    json_decref(job->before);
    json_decref(job->unmet);
    json_decref((json_t *)(uintptr_t)job->blocked.failed);
    posted_cut(alone, job, 0);
    free(job);
}

/* --- as they are stored --- */

struct job *job_find(const struct alone *alone, const char *namespace, const char *id)
{
    char key[JOURNAL_KEY_SIZE];
    struct job *job;

    /* Looked for so often that printf would be seen. */
    if (!text_copy(key, sizeof(key), "job/") || !text_append(key, sizeof(key), namespace) ||
        !text_append(key, sizeof(key), "/") || !text_append(key, sizeof(key), id))
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

enum spec_job_type job_type(const json_t *job)
{
    enum spec_job_type type = JOB_SERVICE;

    (void)spec_job_type(json_string_value(json_object_get(job, "Type")), &type);
    return type;
}

const json_t *job_queue(const struct job *job)
{
    const json_t *queue = json_object_get(job->json, "cairnQueued");

    return json_array_size(queue) == 0 ? NULL : queue;
}

size_t alone_queued(const struct alone_job *job, size_t group)
{
    const json_t *place;
    size_t i, count = 0;

    json_array_foreach(json_object_get(job->job, "cairnQueued"), i, place) count +=
        (size_t)json_integer_value(place) / JOB_COUNT_MAX == group;
    return count;
}

const json_t *job_group(const struct job *job, const char *name, size_t *ret_number)
{
    const json_t *groups = json_object_get(job->json, "TaskGroups");

    for (size_t g = 0; g < json_array_size(groups); g++) {
        const json_t *group = json_array_get(groups, g);

        *ret_number = g;
        if (text_equal(json_string_value(json_object_get(group, "Name")), name))
            return group;
    }
    return NULL;
}

/* A job whose queue alone has changed shares all of this with what it was. */
static bool same_constraints(const json_t *a, const json_t *b)
{
    return json_object_get(a, "TaskGroups") == json_object_get(b, "TaskGroups") &&
           json_object_get(a, "Constraints") == json_object_get(b, "Constraints");
}

void job_set(struct alone *alone, struct job *job, json_t *json)
{
    if (!same_constraints(job->json, json)) {
        json_decref(job->unmet);
        job->unmet = NULL;
    }
    alone->sources_bytes += sources_bytes(json) - sources_bytes(job->json);
    json_decref(job->json);
    job->json = json;
    job_note_token(alone, job);
    set_queued(alone, job, job_queue(job) != NULL);
    job->public.job = json;
    alone->revision++;
    job->public.version = job_number(json, "Version");
    job->public.create_index = job_number(json, "CreateIndex");
    job->public.modify_index = job_number(json, "ModifyIndex");
    job->public.job_modify_index = job_number(json, "JobModifyIndex");
    job->public.submit_unix_ns = (int64_t)job_number(json, "SubmitTime");
    job->public.stop = json_is_true(json_object_get(json, "Stop"));
    periodic_note(alone, job);
}

void job_set_bytes(struct alone *alone, struct job *job, size_t bytes)
{
    alone->jobs_bytes += bytes - job->bytes;
    job->bytes = bytes;
}

void job_save(struct alone *alone, struct job *job)
{
    char *text = json_dumps(job->json, JSON_COMPACT | JSON_SORT_KEYS);

    check(text != NULL);
    job_set_bytes(alone, job, strlen(text));
    core_spec(life_core(alone->config.life), job->key, text, job->bytes);
    free(text);
}

/* Keys of jobs that cannot be believed: moved after the walk. */
struct disbelieved {
    char key[JOURNAL_KEY_SIZE];
    const char *why;
};

struct loading {
    struct alone *alone;
    struct disbelieved *items;
    size_t count, size;
};

static bool load_job(void *ctx, const char *key, const void *bytes, size_t length)
{
    struct loading *loading = ctx;
    struct alone *alone = loading->alone;
    json_t *json = json_loadb(bytes, length, 0, NULL);
    const char *fault = job_fault(key, json);

    if (fault != NULL) {
        struct disbelieved *disbelieved = list_more(loading);
        (void)text_copy(disbelieved->key, sizeof(disbelieved->key), key); /* same size */
        disbelieved->why = fault;
        json_decref(json);
        return true;
    }
    struct job *job = job_add(alone, json_string_value(json_object_get(json, "Namespace")),
                              json_string_value(json_object_get(json, "ID")));
    job_set(alone, job, json);
    job_set_bytes(alone, job, length);
    alone_note_look(alone, job);
    life_index_follows(alone->config.life, job->public.modify_index);
    life_index_follows(alone->config.life, job->public.job_modify_index);
    life_index_follows(alone->config.life,
                       job_number(json_object_get(json, "cairnDeployment"), "ModifyIndex"));
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
    job_set(alone, job, json);
    job_save(alone, job);
    return true;
}

int alone_load_jobs(struct alone *alone, struct err *err)
{
    struct loading loading = {.alone = alone};
    int code = life_each_spec(alone->config.life, "job/", load_job, &loading, err);

    for (size_t i = 0; i < loading.count && code == 0; i++) {
        say(&alone->config.say, SAY_ERROR, "server",
            "a stored job cannot be read; its allocs go on key=%s",
            text_value(loading.items[i].key));
        code = life_spec_aside(alone->config.life, loading.items[i].key, loading.items[i].why, err);
    }
    free(loading.items);
    if (code == 0 && alone->config.jobs_elsewhere && alone->jobs != NULL)
        return err_set(err, ERR_REFUSED,
                       "there are jobs of its own on this node: stop and purge them (without "
                       "client.servers) before it joins servers, or give it another data_dir");
    if (code == 0 && !alone->config.jobs_elsewhere)
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

void alone_note_look(struct alone *alone, struct job *job)
{
    if (job->look)
        return;
    job->look = true;
    *list_more(&alone->looks) = job;
}

void alone_look_later(struct alone *alone, struct job *job, uint64_t at_ms)
{
    check(at_ms != 0);
    if (job->look_at_ms == 0)
        DL_APPEND2(alone->timed, job, timed_prev, timed_next);
    if (job->look_at_ms == 0 || at_ms < job->look_at_ms)
        job->look_at_ms = at_ms;
    if (alone->look_at_ms == 0 || at_ms < alone->look_at_ms)
        alone->look_at_ms = at_ms;
}

void alone_look_never(struct alone *alone, struct job *job)
{
    if (job->look_at_ms != 0)
        DL_DELETE2(alone->timed, job, timed_prev, timed_next);
    job->look_at_ms = 0;
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

uint64_t alone_revision(const struct alone *alone)
{
    return alone->revision;
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
