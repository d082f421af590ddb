/*
 * A world's journal as a real one: every commit goes to LMDB, too.
 *
 * Records and events are the core's own and go as they are.  What the model of the node keeps short
 * for itself is written as a daemon would: the node's identity, and specifications as the job file
 * of a user leads to them (spec/job.h).
 */
#include "core/identity.h"
#include "sim/world/check/check.h"
#include "sim/world/world.h"

#include "spec/job.h"

#include <stdlib.h>
#include <string.h>

enum { NODE_NUMBER = 0x51 };

/* --- specifications --- */

static const char *const hook_words[] = {
    [LIFECYCLE_PRESTART] = "prestart",
    [LIFECYCLE_POSTSTART] = "poststart",
    [LIFECYCLE_POSTSTOP] = "poststop",
};

static json_t *task_json(const struct sim_task_state *task)
{
    json_t *json = json_pack("{s:s, s:s, s:{s:s}}", "Name", machine_id_name(&task->id), "Driver",
                             "raw_exec", "Config", "command", "/bin/true");
    const struct sim_task *plan = task->plan;

    if (plan->lifecycle != LIFECYCLE_MAIN)
        json_object_set_new(json, "Lifecycle",
                            json_pack("{s:s, s:b}", "Hook", hook_words[plan->lifecycle], "Sidecar",
                                      (int)plan->sidecar));
    return json;
}

/* The job that a user would have written for ALLOC; owned by the caller. */
static json_t *job_of(const struct sim_alloc_state *alloc)
{
    json_t *tasks = json_array(), *job = NULL;
    struct jobspec_problems problems;

    for (int t = 0; t < alloc->tasks_count; t++)
        json_array_append_new(tasks, task_json(&alloc->tasks[t]));
    json_t *file =
        json_pack("{s:s, s:s, s:s, s:[s], s:[{s:s, s:i, s:o}]}", "ID", alloc->id.text, "Name",
                  alloc->id.text, "Type", alloc->plan->batch ? "batch" : "service", "Datacenters",
                  "dc1", "TaskGroups", "Name", "group", "Count", 1, "Tasks", tasks);
    int code = jobspec_from_json("world", file, &job, &problems);
    check(code == 0); /* names and lifecycles of a world are those of a job */
    json_decref(file);
    return job;
}

/* Owned by the caller. */
static char *spec_of(const struct sim *sim, const struct sim_alloc_state *alloc, size_t *ret_length)
{
    char id[UUID_TEXT_SIZE], *text;
    uint64_t digest = hash_bytes(1, alloc->id.text, strlen(alloc->id.text));
    struct jobspec_placement placement = {
        .group = "group",
        .alloc_id = alloc->id.text,
        .eval_id = "",
        .datacenter = "dc1",
        .create_time_unix_ns = sim_unix_ns(sim),
    };
    struct err err;

    if (!uuid_is_valid(alloc->id.text)) { /* the allocs of scripts have short names */
        uuid_format(id, digest, hash_u64(digest, 1));
        placement.alloc_id = id;
    }
    json_t *job = job_of(alloc);
    int code = jobspec_alloc_json(job, &placement, &text, ret_length, &err);
    check(code == 0);
    json_decref(job);
    return text;
}

/* --- the node --- */

static char *identity_of(const struct sim *sim, const struct sim_node *stored)
{
    struct identity node = {.clock_offset_ms = stored->clock_offset_ms};
    const struct sim_start *start = sim->start;

    uuid_format(node.id, NODE_NUMBER, 1);
    uuid_format(node.secret, NODE_NUMBER, 2);
    uuid_format(node.boot_id, NODE_NUMBER, 2 + stored->boot);
    if (start != NULL && start->known) {
        (void)text_copy(node.id, sizeof(node.id), start->node_id); /* same sizes */
        (void)text_copy(node.secret, sizeof(node.secret), start->secret);
        if (stored->boot == SIM_FIRST_BOOT)
            (void)text_copy(node.boot_id, sizeof(node.boot_id), start->boot_id);
    }
    return identity_encode(&node);
}

/* --- a batch --- */

static bool is_written(const struct sim *sim)
{
    return sim->sink.journal != NULL && !sim->copy.was_put &&
           (sim->sink.incarnations == 0 || sim->incarnation <= sim->sink.incarnations);
}

static void send(struct sim *sim, const struct journal_batch *batch)
{
    struct err err;

    if (journal_commit(sim->sink.journal, batch, &err) < 0)
        sim_violate(sim, 0, "the world's journal cannot be written: %s", err.text);
}

static struct journal_blob *copy_blobs(const struct journal_blob *from, size_t count)
{
    struct journal_blob *blobs = calloc(count + 1, sizeof(*blobs));

    check(blobs != NULL);
    if (count > 0)
        memcpy(blobs, from, count * sizeof(*blobs));
    return blobs;
}

static void write_spec(struct sim *sim, struct journal_blob *blob)
{
    struct machine_id id = machine_id_make(MACHINE_ALLOC, blob->key + strlen("alloc/"));
    struct sim_whom whom = sim_find(sim, &id);

    if (blob->bytes == NULL)
        return;
    check(whom.kind == MACHINE_ALLOC);
    blob->bytes = spec_of(sim, sim_alloc_of(sim, &whom), &blob->length);
}

static void write_meta(struct sim *sim, struct journal_blob *blob)
{
    struct sim_node node;

    if (!text_equal(blob->key, "node")) {
        char *bytes = malloc(blob->length + 1);
        check(bytes != NULL);
        memcpy(bytes, blob->bytes, blob->length);
        blob->bytes = bytes;
        return;
    }
    memcpy(&node, blob->bytes, sizeof(node));
    blob->bytes = identity_of(sim, &node);
    blob->length = strlen(blob->bytes);
}

static void free_blobs(struct journal_blob *blobs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free((void *)(uintptr_t)blobs[i].bytes); /* made here, const only for readers */
    free(blobs);
}

void sim_write(struct sim *sim, const struct journal_batch *batch)
{
    if (!is_written(sim))
        return;
    struct journal_batch whole = *batch;
    struct journal_blob *specs = copy_blobs(batch->specs, batch->specs_count);
    struct journal_blob *metas = copy_blobs(batch->metas, batch->metas_count);

    for (size_t i = 0; i < batch->specs_count; i++)
        write_spec(sim, &specs[i]);
    for (size_t i = 0; i < batch->metas_count; i++)
        write_meta(sim, &metas[i]);
    whole.specs = specs;
    whole.metas = metas;
    if (sim->script->log_max == 0) { /* a world's whole history is wanted, unless it says so */
        whole.bases_count = 0;
        whole.trim_below = 0;
    }
    send(sim, &whole);
    free_blobs(specs, batch->specs_count);
    free_blobs(metas, batch->metas_count);
}

void sim_write_identity(struct sim *sim)
{
    struct journal_blob meta = {.key = "node"};
    struct journal_batch batch = {.metas = &meta, .metas_count = 1};

    if (!is_written(sim))
        return;
    char *text = identity_of(sim, &sim->store.head.node);
    meta.bytes = text;
    meta.length = strlen(text);
    send(sim, &batch);
    free(text);
}

void sim_write_quarantine(struct sim *sim, const struct machine_id *id)
{
    char key[JOURNAL_KEY_SIZE];
    struct err err;

    if (!is_written(sim))
        return;
    (void)text_format(key, sizeof(key), "%s/%s", machine_kind_name((enum machine_kind)id->kind),
                      id->text); /* fits */
    if (journal_quarantine(sim->sink.journal, "state", key, "damaged in the world",
                           sim_unix_ns(sim), &err) < 0)
        sim_violate(sim, 0, "the world's journal cannot be written: %s", err.text);
}

void sim_set_journal(struct sim *sim, struct journal *journal, uint32_t incarnations)
{
    sim->sink.journal = journal;
    sim->sink.incarnations = incarnations;
}
