/*
 * A life over a store of arrays, and the stand-alone control plane in it.
 *
 * Hooks and drivers do at once what they are told; plans are trivial.  A test registers, turns, and
 * looks at allocs, at the store, and at what the last commit held.  The daemon may die
 * (small_again) and finds what the store holds.
 */
#ifndef CAIRN_TEST_SERVER_SMALL_LIFE_H
#define CAIRN_TEST_SERVER_SMALL_LIFE_H

#include "server/alone/alone.h"

#include "base/list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct stored_record {
    struct machine_id id;
    struct machine *record;
};

struct stored_blob {
    char key[JOURNAL_KEY_SIZE];
    char *bytes;
    size_t length;
};

struct stored_blobs {
    struct stored_blob *items;
    size_t count, size;
};

struct small_life;

/* A claim that is asked for, or given back. */
struct small_claiming {
    struct small_life *small;
    struct machine_id id;
};

enum { SMALL_CLAIMINGS_MAX = 64 }; /* at once */

/* Looking for what is stored already takes long when there is very much. */
enum small_store { STORE_ALL, STORE_NEW, STORE_NOTHING };

struct small_life {
    enum small_store store;
    struct life *life;
    struct alone *alone;
    struct {
        struct stored_record *items;
        size_t count, size;
    } records;
    struct stored_blobs specs, metas;
    uint64_t sequence, turn, now_ms, drawn;
    size_t kept;            /* ended allocs */
    const char *datacenter; /* of the node */
    struct spec_pairs attributes, meta;
    const char *lacks_driver; /* NULL: none */
    bool is_unknown;          /* what the node has */
    struct room room;
    struct core_set cores;
    struct alone_address addresses[3];
    struct port_range dynamic_ports;
    struct spec_node_volumes volumes;
    unsigned measures; /* how often the control plane has asked for the disk to be measured */
    bool holds_back;   /* who is told to end does not */
    bool joined;       /* servers decide what runs */
    void (*trace)(void *ctx, const struct journal_event *event); /* of what is committed, or NULL */
    void *trace_ctx;
    const struct control *control; /* NULL: the stand-alone one */
    control_call *controller;
    control_topology *topology;
    control_call *host_plugin; /* called "own" */
    unsigned hosted_changes;   /* how often the control plane told of any */
    size_t specs_read;         /* of allocs, one by one */
    struct small_claiming claimings[SMALL_CLAIMINGS_MAX];
    size_t claimings_count;          /* ever; who is killed leaves some unanswered */
    struct plugin_identity identity; /* of every storage plugin */
    unsigned plugin_probes_fail;     /* so many more */
    int commit_code;                 /* ERR_*: commits fail */
    size_t commits;
    size_t assigned, defined; /* by the last commit */
    bool job_was_saved;       /* by the last commit */
    char said[4096];          /* warnings and errors */
};

/* --- the store --- */

static inline void small_keep_record(struct small_life *small, const struct journal_record *from)
{
    size_t at = small->store == STORE_NEW ? small->records.count : 0;

    while (at < small->records.count && !machine_id_equal(&small->records.items[at].id, &from->id))
        at++;
    if (at == small->records.count)
        *list_more(&small->records) = (struct stored_record){.id = from->id};
    struct stored_record *stored = &small->records.items[at];
    free(stored->record);
    stored->record = NULL;
    if (from->record == NULL) {
        small->records.items[at] = small->records.items[--small->records.count];
        return;
    }
    stored->record = malloc(fsm_record_size(from->record));
    assert_non_null(stored->record);
    memcpy(stored->record, from->record, fsm_record_size(from->record));
    assert_null(fsm_senseless(&from->id, from->record)); /* else the next start would not take it */
}

static inline struct stored_blob *small_blob(const struct stored_blobs *blobs, const char *key)
{
    for (size_t i = 0; i < blobs->count; i++) {
        if (text_equal(blobs->items[i].key, key))
            return &blobs->items[i];
    }
    return NULL;
}

static inline struct stored_blob *small_spec(struct small_life *small, const char *key)
{
    return small_blob(&small->specs, key);
}

static inline void small_keep_blob(struct stored_blobs *blobs, const char *key, const void *bytes,
                                   size_t length)
{
    struct stored_blob *stored = small_blob(blobs, key);

    if (stored == NULL && bytes == NULL)
        return;
    if (stored == NULL) {
        stored = list_more(blobs);
        *stored = (struct stored_blob){.bytes = NULL};
        assert_true(text_copy(stored->key, sizeof(stored->key), key));
    }
    free(stored->bytes);
    if (bytes == NULL) {
        *stored = blobs->items[--blobs->count];
        return;
    }
    stored->bytes = malloc(length + 1);
    assert_non_null(stored->bytes);
    memcpy(stored->bytes, bytes, length);
    stored->bytes[length] = '\0';
    stored->length = length;
}

static inline void small_keep_spec(struct small_life *small, const char *key, const void *bytes,
                                   size_t length)
{
    small_keep_blob(&small->specs, key, bytes, length);
}

static inline int small_commit(void *ctx, const struct journal_batch *batch, struct err *err)
{
    struct small_life *small = ctx;

    if (small->commit_code < 0)
        return err_set(err, small->commit_code, "the disk is full");
    small->commits++;
    small->assigned = small->defined = 0;
    small->job_was_saved = false;
    for (size_t i = 0; i < batch->events_count; i++) {
        const struct journal_event *event = &batch->events[i];
        small->assigned += event->id.kind == MACHINE_ALLOC && event->event.kind == AE_ASSIGN;
        small->defined += event->id.kind == MACHINE_TASK && event->event.kind == TE_DEFINE;
    }
    for (size_t i = 0; i < batch->records_count && small->store != STORE_NOTHING; i++)
        small_keep_record(small, &batch->records[i]);
    for (size_t i = 0; i < batch->specs_count && small->store == STORE_ALL; i++) {
        const struct journal_blob *blob = &batch->specs[i];
        small_keep_spec(small, blob->key, blob->bytes, blob->length);
        small->job_was_saved |= text_starts_with(blob->key, "job/") && blob->bytes != NULL;
    }
    for (size_t i = 0; i < batch->metas_count; i++)
        small_keep_blob(&small->metas, batch->metas[i].key, batch->metas[i].bytes,
                        batch->metas[i].length);
    small->sequence += batch->events_count;
    small->turn++;
    return 0;
}

static inline uint64_t small_first_sequence(void *ctx)
{
    (void)ctx; /* no event is taken away */
    return 1;
}

static inline uint64_t small_next_sequence(void *ctx)
{
    return ((struct small_life *)ctx)->sequence + 1;
}

static inline int small_each_record(void *ctx, enum machine_kind kind, journal_record_cb *cb,
                                    journal_bad *bad, void *cb_ctx, struct err *err)
{
    struct small_life *small = ctx;

    (void)bad;
    (void)err;
    for (size_t i = 0; i < small->records.count; i++) {
        const struct stored_record *stored = &small->records.items[i];
        if (stored->id.kind == kind && !cb(cb_ctx, &stored->id, stored->record))
            break;
    }
    return 0;
}

static inline int small_each_spec(void *ctx, const char *prefix, journal_blob_cb *cb, void *cb_ctx,
                                  struct err *err)
{
    struct small_life *small = ctx;

    (void)err;
    for (size_t i = 0; i < small->specs.count; i++) {
        const struct stored_blob *stored = &small->specs.items[i];
        if (text_starts_with(stored->key, prefix) &&
            !cb(cb_ctx, stored->key, stored->bytes, stored->length))
            break;
    }
    return 0;
}

static inline int small_each_bad_spec(void *ctx, journal_bad *bad, void *cb_ctx, struct err *err)
{
    (void)ctx;
    (void)bad;
    (void)cb_ctx;
    (void)err;
    return 0;
}

static inline int small_read(const struct stored_blob *stored, const char *key, char **ret_bytes,
                             size_t *ret_length, struct err *err)
{
    if (stored == NULL)
        return err_set(err, ERR_GONE, "no %s", key);
    *ret_bytes = malloc(stored->length + 1);
    assert_non_null(*ret_bytes);
    memcpy(*ret_bytes, stored->bytes, stored->length + 1);
    *ret_length = stored->length;
    return 0;
}

static inline int small_spec_read(void *ctx, const char *key, char **ret_bytes, size_t *ret_length,
                                  struct err *err)
{
    ((struct small_life *)ctx)->specs_read += text_starts_with(key, "alloc/");
    return small_read(small_spec(ctx, key), key, ret_bytes, ret_length, err);
}

static inline int small_meta_read(void *ctx, const char *name, char **ret_bytes, size_t *ret_length,
                                  struct err *err)
{
    const struct small_life *small = ctx;

    return small_read(small_blob(&small->metas, name), name, ret_bytes, ret_length, err);
}

/* --- the world --- */

static inline uint64_t small_now(void *ctx, int64_t *ret_unix_ns)
{
    const struct small_life *small = ctx;

    *ret_unix_ns = (int64_t)small->now_ms * 1000000;
    return small->now_ms;
}

static inline uint64_t small_random(void *ctx)
{
    return ++((struct small_life *)ctx)->drawn;
}

/* --- storage: plugins answer at once, and volumes are mounted when they may be --- */

static inline void small_claimed(void *ctx, const struct control_claimed *claimed,
                                 const struct failure *failure)
{
    struct small_claiming *claiming = ctx;
    struct core *core = life_core(claiming->small->life);
    struct claim claim = {.external = ""};

    if (claimed != NULL)
        (void)text_copy(claim.external, sizeof(claim.external), claimed->external);
    core_done(core, &claiming->id, LANE_RPC, claimed != NULL ? VE_CLAIMED : VE_RPC_FAILED,
              claimed != NULL ? (const void *)&claim : failure);
}

static inline void small_released(void *ctx, const struct failure *failure)
{
    struct small_claiming *claiming = ctx;

    core_done(life_core(claiming->small->life), &claiming->id, LANE_RPC,
              failure == NULL ? VE_RELEASED : VE_RPC_FAILED, failure);
}

static inline void small_ask_control(struct small_life *small, const struct effect *effect)
{
    const struct control *control =
        small->control != NULL ? small->control : storage_control(alone_storage(small->alone));
    struct machine_id owner = machine_id_owner(&effect->id);
    struct small_claiming *claiming =
        &small->claimings[small->claimings_count++ % SMALL_CLAIMINGS_MAX];
    struct control_claim claim = {.alloc = owner.text,
                                  .name = machine_id_name(&effect->id),
                                  .define = &volume_of(effect->record)->define,
                                  .external = volume_of(effect->record)->external,
                                  .node_id = ""};

    *claiming = (struct small_claiming){small, effect->id};
    if (effect->kind == VX_CLAIM)
        control->claim(control->ctx, &claim, small_claimed, claiming);
    else
        control->unclaim(control->ctx, &claim, small_released, claiming);
}

static inline void small_perform_volume(struct small_life *small, const struct effect *effect)
{
    static const uint8_t answers[VX_COUNT] = {
        [VX_STAGE] = VE_STAGED,     [VX_PUBLISH] = VE_PUBLISHED, [VX_UNPUBLISH] = VE_UNPUBLISHED,
        [VX_UNSTAGE] = VE_UNSTAGED, [VX_LOOK] = VE_MOUNT_FOUND,
    };

    if (effect->kind == VX_CLAIM || effect->kind == VX_UNCLAIM)
        small_ask_control(small, effect);
    else if (answers[effect->kind] != 0)
        core_done(life_core(small->life), &effect->id, LANE_NODE, answers[effect->kind], NULL);
}

static inline void small_perform_plugin(struct small_life *small, const struct effect *effect)
{
    struct core *core = life_core(small->life);
    struct started started = {.payload_pid = 200, .payload_ticks = 1};
    struct failure failure = {.code = ERR_IO, .recoverable = 1, .text = "no answer"};

    if (effect->kind == PX_LAUNCH)
        core_done(core, &effect->id, LANE_DRIVER, PE_LAUNCHED, &started);
    if (effect->kind == PX_RECOVER)
        core_done(core, &effect->id, LANE_DRIVER, PE_RECOVERED, &started);
    if (effect->kind == PX_TERMINATE)
        core_done(core, &effect->id, LANE_DRIVER, PE_STOPPED, NULL);
    if (effect->kind == PX_PROBE && small->plugin_probes_fail > 0)
        core_done(core, &effect->id, LANE_NODE, PE_PROBE_FAILED, &failure);
    else if (effect->kind == PX_PROBE)
        core_done(core, &effect->id, LANE_NODE, PE_PROBED, NULL);
    if (effect->kind == PX_IDENTIFY)
        core_done(core, &effect->id, LANE_NODE, PE_IDENTIFIED, &small->identity);
    if (effect->kind == PX_TELL_NODE)
        alone_plugins_changed(small->alone);
}

static inline void small_perform(void *ctx, const struct effect *effect)
{
    struct small_life *small = ctx;
    struct core *core = life_core(small->life);
    struct started started = {.payload_pid = 100, .payload_ticks = 1, .shim_pid = 99};
    struct exited ended = {.known = 1, .code = 143, .signal = 15};

    if (life_perform(small->life, effect))
        return;
    if (effect->id.kind == MACHINE_ALLOC && effect->kind == AX_HOOK) {
        struct hook_outcome hook = {.hook = alloc_of(effect->record)->hook};
        core_done(core, &effect->id, LANE_HOOK, AE_HOOK_DONE, &hook);
    }
    if (effect->id.kind == MACHINE_VOLUME)
        small_perform_volume(small, effect);
    if (effect->id.kind == MACHINE_PLUGIN)
        small_perform_plugin(small, effect);
    if (effect->id.kind != MACHINE_TASK)
        return;
    if (effect->kind == TX_HOOK) {
        struct hook_outcome hook = {.hook = task_of(effect->record)->hook};
        core_done(core, &effect->id, LANE_HOOK, TE_HOOK_DONE, &hook);
    }
    if (effect->kind == TX_DRIVER_START)
        core_done(core, &effect->id, LANE_DRIVER, TE_STARTED, &started);
    if (effect->kind == TX_DRIVER_RECOVER)
        core_done(core, &effect->id, LANE_DRIVER, TE_RECOVERED, &started);
    if (effect->kind == TX_DRIVER_DESTROY)
        core_done(core, &effect->id, LANE_DRIVER, TE_REAPED, NULL);
    if (effect->kind == TX_DRIVER_STOP)
        core_done(core, &effect->id, LANE_DRIVER, TE_STOP_ACCEPTED, NULL);
    if (effect->kind == TX_DRIVER_STOP && !small->holds_back)
        core_news(core, &effect->id, effect->generation, TE_EXITED, &ended);
}

static inline void small_sweep(void *ctx)
{
    life_swept(((struct small_life *)ctx)->life, true); /* nothing is out there */
}

static inline void small_line(void *ctx, enum say_level level, const char *room, const char *text)
{
    struct small_life *small = ctx;

    (void)room;
    if (level < SAY_WARN)
        return;
    (void)text_append(small->said, sizeof(small->said), text); /* cut if too long */
    (void)text_append(small->said, sizeof(small->said), "\n");
}

/* --- plans --- */

static inline void small_plan_alloc(const struct alloc_spec *spec, struct alloc_assign *assign)
{
    (void)spec;
    assign->hooks_prerun = 1;
    assign->hooks_destroy = 1;
}

static inline void small_plan_task(void *ctx, const struct alloc_spec *spec,
                                   const struct task_spec *task, struct task_define *define)
{
    (void)ctx;
    (void)spec;
    (void)task;
    define->hooks_prestart = 1;
}

static inline int small_validate(void *ctx, const struct alloc_spec *alloc,
                                 const struct task_spec *task, struct err *err)
{
    (void)ctx;
    (void)alloc;
    return text_equal(task->driver, "raw_exec")
               ? 0
               : err_set(err, ERR_INVALID, "there is no driver \"%.40s\"", task->driver);
}

static inline void small_measure_disk(void *ctx)
{
    ((struct small_life *)ctx)->measures++;
}

static inline void small_new_id(void *ctx, char to[UUID_TEXT_SIZE])
{
    struct small_life *small = ctx;

    small->drawn++;
    uuid_format(to, hash_u64(1, small->drawn), hash_u64(2, small->drawn));
}

/* --- life --- */

static inline void small_trace(void *ctx, const struct journal_event *event)
{
    const struct small_life *small = ctx;

    if (small->trace != NULL)
        small->trace(small->trace_ctx, event);
}

/* Turns until nothing is left to do without waiting. */
static inline void small_settle(struct small_life *small)
{
    for (int turns = 0; life_turn(small->life); turns++)
        assert_in_range(turns, 0, 200);
}

static inline void small_kill(struct small_life *small)
{
    alone_free(small->alone);
    life_free(small->life);
    small->alone = NULL;
    small->life = NULL;
}

static inline bool small_has_driver(void *ctx, const char *driver)
{
    const struct small_life *small = ctx;

    return small->lacks_driver == NULL || !text_equal(small->lacks_driver, driver);
}

static inline bool small_is_known(void *ctx)
{
    return !((const struct small_life *)ctx)->is_unknown;
}

static inline bool small_has_host_plugin(void *ctx, const char *plugin)
{
    (void)ctx;
    return text_equal(plugin, "own");
}

static inline void small_hosted_changed(void *ctx)
{
    ((struct small_life *)ctx)->hosted_changes++;
}

/* The daemon begins with what the store holds; not turned yet. */
static inline void small_begin(struct small_life *small)
{
    const struct life_start how = {.last_turn = small->turn, .authority = !small->joined};
    struct err err = {0};
    struct life_world world = {
        .ctx = small,
        .store = {.ctx = small,
                  .commit = small_commit,
                  .first_sequence = small_first_sequence,
                  .next_sequence = small_next_sequence,
                  .each_record = small_each_record,
                  .each_spec = small_each_spec,
                  .each_bad_spec = small_each_bad_spec,
                  .spec_read = small_spec_read,
                  .meta_read = small_meta_read},
        .say = {small_line, small},
        .now = small_now,
        .random = small_random,
        .perform = small_perform,
        .trace = small_trace,
        .sweep = small_sweep,
    };

    small->life = life_new(&world);
    small->alone = alone_new(&(struct alone_config){
        .life = small->life,
        .say = {small_line, small},
        .ctx = small,
        .new_id = small_new_id,
        .has_driver = small_has_driver,
        .is_known = small_is_known,
        .node = {.known = {.id = "n",
                           .name = "node",
                           .datacenter = small->datacenter,
                           .class = "",
                           .pool = "default",
                           .attributes = &small->attributes,
                           .meta = &small->meta},
                 .region = "global",
                 .room = small->room,
                 .cores = small->cores,
                 .addresses = small->addresses,
                 .addresses_count = COUNT_OF(small->addresses),
                 .volumes = small->volumes,
                 .dynamic_ports = small->dynamic_ports},
        .jobs_elsewhere = small->joined,
        .allocs_kept = small->kept,
        .disk_limits = {90, 90},
        .collect_at_once = 2,
        .measure_disk = small_measure_disk,
        .controller = small->controller,
        .topology = small->topology,
        .host_plugin = small->host_plugin,
        .has_host_plugin = small_has_host_plugin,
        .hosted_changed = small_hosted_changed,
        .plans =
            {
                .kill_timeout_max_ms = 30000,
                .alloc = small_plan_alloc,
                .task = small_plan_task,
                .validate = small_validate,
            },
    });
    assert_int_equal(life_start(small->life, &how, &err), 0);
}

static inline void small_again(struct small_life *small)
{
    small_kill(small);
    small_begin(small);
    small_settle(small);
}

static inline int small_open(void **state)
{
    struct small_life *small = calloc(1, sizeof(*small));

    assert_non_null(small);
    small->now_ms = 1000;
    small->kept = 50;
    small->datacenter = "dc1";
    small->room = (struct room){UINT64_MAX, UINT64_MAX, UINT64_MAX, 0, 0};
    small->addresses[0] = (struct alone_address){.network = "default", .ip = "10.0.0.1"};
    small->addresses[1] = (struct alone_address){.network = "default", .ip = "fd00::1"};
    small->addresses[2] = (struct alone_address){.network = "lan", .ip = "10.0.0.2"};
    small->dynamic_ports = (struct port_range){20000, 32000};
    small_begin(small);
    small_settle(small);
    *state = small;
    return 0;
}

static inline int small_close(void **state)
{
    struct small_life *small = *state;

    small_kill(small);
    for (size_t i = 0; i < small->records.count; i++)
        free(small->records.items[i].record);
    for (size_t i = 0; i < small->specs.count; i++)
        free(small->specs.items[i].bytes);
    for (size_t i = 0; i < small->metas.count; i++)
        free(small->metas.items[i].bytes);
    free(small->records.items);
    free(small->specs.items);
    free(small->metas.items);
    free(small);
    return 0;
}

#define SMALL_TEST(function) cmocka_unit_test_setup_teardown(function, small_open, small_close)

/* --- jobs --- */

/* A service NAME with groups "a" and "b" of so many allocs, one task each that runs COMMAND:
 * replaced all at once. */
static inline json_t *small_job(const char *name, const char *command, int a, int b)
{
    json_t *job =
        json_pack("{s:s, s:s, s:{s:i, s:i}, s:[s],"
                  " s:[{s:s, s:i, s:[{s:s, s:s, s:{s:s}}]},"
                  " {s:s, s:i, s:[{s:s, s:s, s:{s:s}}]}]}",
                  "ID", name, "Type", "service", "Update", "MaxParallel", 0, "Stagger", 1,
                  "Datacenters", "*", "TaskGroups", "Name", "a", "Count", a, "Tasks", "Name", "web",
                  "Driver", "raw_exec", "Config", "command", command, "Name", "b", "Count", b,
                  "Tasks", "Name", "side", "Driver", "raw_exec", "Config", "command", "/bin/b");

    assert_non_null(job);
    return job;
}

/* Registers without a turn. */
static inline int small_post(struct small_life *small, const char *name, const char *command, int a,
                             int b, struct alone_evaluation *ret_evaluation)
{
    json_t *job = small_job(name, command, a, b);
    struct err err = {0};

    int code = alone_register(small->alone, job, ret_evaluation, NULL, &err);
    json_decref(job);
    return code;
}

static inline struct alone_evaluation small_run(struct small_life *small, const char *name,
                                                const char *command, int a, int b)
{
    struct alone_evaluation evaluation;

    assert_int_equal(small_post(small, name, command, a, b, &evaluation), 0);
    small_settle(small);
    return evaluation;
}

struct small_counts {
    const char *job, *group;
    size_t live, ended;
    char newest[UUID_TEXT_SIZE]; /* of the live ones */
    uint64_t indices;            /* of the live ones, one bit each */
};

static inline bool small_count_one(void *ctx, const struct machine_id *id,
                                   const struct machine *record)
{
    struct small_counts *counts = ctx;
    const struct alloc *alloc = alloc_of(record);

    if (!text_equal(alloc->assign.job_id, counts->job) ||
        (counts->group != NULL && !text_equal(alloc->assign.group, counts->group)))
        return true;
    if (alloc->ended_unix_ns != 0) {
        counts->ended++;
        return true;
    }
    counts->live++;
    counts->indices |= (uint64_t)1 << alloc->assign.index;
    (void)text_copy(counts->newest, sizeof(counts->newest), id->text); /* same size */
    return true;
}

/* The allocs of a group of a job, or of all (NULL). */
static inline struct small_counts small_count(struct small_life *small, const char *job,
                                              const char *group)
{
    struct small_counts counts = {.job = job, .group = group};

    core_each(life_core(small->life), MACHINE_ALLOC, small_count_one, &counts);
    return counts;
}

static inline const struct alone_job *small_find(struct small_life *small, const char *job)
{
    return alone_find(small->alone, "default", job);
}

static inline size_t small_specs_of(struct small_life *small, const char *prefix)
{
    size_t count = 0;

    for (size_t i = 0; i < small->specs.count; i++)
        count += text_starts_with(small->specs.items[i].key, prefix);
    return count;
}

struct small_heard {
    int count, code;
};

static inline void small_hear(void *ctx, int code, const struct err *err)
{
    struct small_heard *heard = ctx;

    (void)err;
    heard->count++;
    heard->code = code;
}

#endif
