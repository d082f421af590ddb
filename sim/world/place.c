/*
 * What the stand-alone control plane places in a world, and what the journal holds of its jobs.
 *
 * Allocs come to be with the batch that assigns them: the specification in it says which alloc of
 * the script each of them is like.
 */
#include "base/list.h"
#include "sim/world/check/check.h"
#include "sim/world/jobs.h"
#include "sim/world/world.h"
#include "spec/job.h"

#include <stdlib.h>
#include <string.h>

static const char job_prefix[] = "job/default/";

/* --- what is placed --- */

static int find_group(const struct sim *sim, const char *name)
{
    for (int a = 0; a < sim->script->allocs_count; a++) {
        if (text_equal(sim->script->allocs[a].name, name))
            return a;
    }
    return -1;
}

static int find_job(const struct sim *sim, const char *name)
{
    for (int j = 0; j < sim->script->jobs_count; j++) {
        if (text_equal(sim->script->jobs[j].name, name))
            return j;
    }
    return -1;
}

static void bind(struct sim *sim, const struct journal_blob *blob)
{
    const char *id = blob->key + strlen("alloc/");
    struct machine_id machine = machine_id_make(MACHINE_ALLOC, id);
    struct alloc_spec *spec;
    struct err err;

    if (sim_find(sim, &machine).kind != MACHINE_KIND_COUNT)
        return;
    if (jobspec_decode_alloc(blob->bytes, blob->length, &spec, &err) < 0) {
        sim_violate(sim, 15, "the specification of %s cannot be read: %s", id, err.text);
        return;
    }
    int group = find_group(sim, spec->group);
    check(group >= 0);
    struct sim_alloc_state *alloc = sim_plan_placed(sim, id, group);
    alloc->job = (int16_t)find_job(sim, spec->job_id);
    alloc->index = (uint16_t)spec->index;
    check(spec->ports.count <= SIM_PORTS_MAX);
    for (size_t i = 0; i < spec->ports.count; i++)
        alloc->ports[i] = spec->ports.items[i].value;
    alloc_spec_free(spec);
    *list_more(&sim->jobs.placing) = (int)(alloc - sim->allocs);
}

void sim_jobs_bind(struct sim *sim, const struct journal_batch *batch)
{
    for (size_t i = 0; i < batch->specs_count && sim->script->jobs_count > 0; i++) {
        if (text_starts_with(batch->specs[i].key, "alloc/") && batch->specs[i].bytes != NULL)
            bind(sim, &batch->specs[i]);
    }
}

void sim_jobs_unbind(struct sim *sim)
{
    for (size_t i = 0; i < sim->jobs.placing.count; i++)
        sim_plan_forget(sim, &sim->allocs[sim->jobs.placing.items[i]]);
    sim->jobs.placing.count = 0;
}

/* --- what is stored --- */

static struct sim_job_state *stored_job(struct sim *sim, const char *key)
{
    if (!text_starts_with(key, job_prefix))
        return NULL;
    int number = find_job(sim, key + strlen(job_prefix));
    return number < 0 ? NULL : &sim->jobs.states[number];
}

void sim_job_forget(struct sim_job_state *job)
{
    json_decref(job->json);
    free(job->stored);
    job->json = NULL;
    job->stored = NULL;
    job->damaged = false;
}

static void store_job(struct sim_job_state *job, const struct journal_blob *spec)
{
    sim_job_forget(job);
    if (spec->bytes == NULL)
        return;
    job->stored = malloc(spec->length + 1);
    check(job->stored != NULL);
    memcpy(job->stored, spec->bytes, spec->length);
    job->stored[spec->length] = '\0';
    job->stored_length = spec->length;
    job->json = json_loadb(job->stored, job->stored_length, 0, NULL);
}

static void store(struct sim *sim, const struct journal_blob *spec)
{
    struct sim_job_state *job = stored_job(sim, spec->key);

    if (job != NULL) {
        store_job(job, spec);
        return;
    }
    check(text_starts_with(spec->key, "alloc/"));
    struct machine_id id = machine_id_make(MACHINE_ALLOC, spec->key + strlen("alloc/"));
    struct sim_whom whom = sim_find(sim, &id);
    if (whom.kind != MACHINE_ALLOC || spec->bytes == NULL)
        return;
    char *copy = malloc(spec->length + 1);
    check(copy != NULL);
    memcpy(copy, spec->bytes, spec->length);
    copy[spec->length] = '\0';
    *list_more(&sim->jobs.specs) = copy;
    sim_alloc_of(sim, &whom)->spec = copy;
    sim_alloc_of(sim, &whom)->spec_length = spec->length;
}

/* What the node has stored is its promise from now on. */
void sim_jobs_committed(struct sim *sim, const struct journal_batch *batch)
{
    sim->jobs.placing.count = 0;
    for (size_t i = 0; i < batch->specs_count && sim->script->jobs_count > 0; i++)
        store(sim, &batch->specs[i]);
    for (int a = sim->script->allocs_count; a < sim->allocs_count && sim->script->jobs_count > 0;
         a++) {
        struct sim_alloc_state *alloc = &sim->allocs[a];
        const struct machine *record =
            alloc->group < 0 ? NULL : sim_store_find(&sim->store, &alloc->id);
        if (record == NULL)
            continue;
        alloc->accepted = 1;
        alloc->wish = alloc_of(record)->destroy_wanted ? WISH_GONE
                      : alloc_of(record)->stop_wanted  ? WISH_STOP
                                                       : WISH_RUN;
    }
}

bool sim_placed_lives(const struct sim *sim, const struct sim_alloc_state *alloc)
{
    const struct machine *record = alloc->job < 0 ? NULL : sim_store_find(&sim->store, &alloc->id);

    return record != NULL && alloc_of(record)->ended_unix_ns == 0 && !alloc_of(record)->stop_wanted;
}

static bool job_key(const struct sim *sim, size_t number, char to[JOURNAL_KEY_SIZE])
{
    return text_format(to, JOURNAL_KEY_SIZE, "%s%s", job_prefix, sim->script->jobs[number].name);
}

void sim_jobs_each(struct sim *sim, journal_blob_cb *cb, void *ctx)
{
    char key[JOURNAL_KEY_SIZE];

    for (size_t i = 0; i < sim->script->jobs_count; i++) {
        const struct sim_job_state *job = &sim->jobs.states[i];
        if (job->stored == NULL || job->damaged)
            continue;
        (void)job_key(sim, i, key); /* fits */
        if (!cb(ctx, key, job->stored, job->stored_length))
            return;
    }
}

void sim_jobs_each_bad(struct sim *sim, journal_bad *bad, void *ctx)
{
    char key[JOURNAL_KEY_SIZE];

    for (size_t i = 0; i < sim->script->jobs_count; i++) {
        const struct sim_job_state *job = &sim->jobs.states[i];
        if (job->stored == NULL || !job->damaged)
            continue;
        (void)job_key(sim, i, key); /* fits */
        bad(ctx, "spec", key, job->stored, job->stored_length, "it is damaged");
    }
}

/* Users see that their job is lost, and want again what they wanted. */
void sim_jobs_quarantine(struct sim *sim, const char *key)
{
    struct sim_job_state *job = stored_job(sim, key);

    check(job != NULL);
    sim_say(sim, "quarantine: %s", key);
    sim_job_forget(job);
    job->lost = true;
    if (job->wish != JOB_WISH_NONE)
        sim_later(sim, 0, SE_USER, (size_t)sim->allocs_count + (size_t)(job - sim->jobs.states), 0);
}
