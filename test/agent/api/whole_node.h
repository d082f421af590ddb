/*
 * A node with everything that the API reads, and none of the outside world: a real life, control
 * plane and journal, effects that are answered at once (test/core/small_node.h), the API on a port
 * of its own.
 */
#ifndef CAIRN_TEST_AGENT_API_WHOLE_NODE_H
#define CAIRN_TEST_AGENT_API_WHOLE_NODE_H

#include "agent/api/api.h"
#include "agent/services/catalogue.h"
#include "test/core/small_node.h"

#include <ftw.h>
#include <unistd.h>

#define WHOLE_NODE_ID "b1000001-0000-4000-8000-000000000001"

struct whole_node {
    char directory[64];
    struct config config;
    struct parts parts;
    struct small_node small; /* answers effects */
    struct api *api;
    struct io_before_sleep before_sleep;
    uint64_t ids;
};

static inline uint64_t whole_now(void *ctx, int64_t *ret_unix_ns)
{
    (void)ctx;
    *ret_unix_ns = loop_now_unix_ns();
    return loop_now_ms();
}

static inline uint64_t whole_random(void *ctx)
{
    (void)ctx;
    return 1;
}

static inline void whole_perform(void *ctx, const struct effect *effect)
{
    struct whole_node *node = ctx;

    if (!life_perform(node->parts.life, effect))
        small_perform(&node->small, effect);
}

static inline void whole_trace(void *ctx, const struct journal_event *event)
{
    struct whole_node *node = ctx;

    catalogue_note(node->parts.catalogue, event);
    if (event->id.kind == MACHINE_ALLOC &&
        (event->after == A_GONE || event->event.kind == AE_UPDATE))
        specs_drop(node->parts.specs, event->id.text);
}

static inline void whole_sweep(void *ctx)
{
    life_swept(((struct whole_node *)ctx)->parts.life, true); /* nothing of ours is outside */
}

static inline void whole_new_id(void *ctx, char to[UUID_TEXT_SIZE])
{
    struct whole_node *node = ctx;

    uuid_format(to, 0xa1000000, ++node->ids);
}

static inline void whole_placed(void *ctx, struct alloc_spec *spec)
{
    struct whole_node *node = ctx;

    specs_placed(node->parts.specs, spec);
}

static inline void whole_plan_alloc(const struct alloc_spec *spec, struct alloc_assign *assign)
{
    assign->hooks_prerun = assign->hooks_destroy = 1u << ALLOC_HOOK_ALLOC_DIR;
    if (spec->services_count > 0)
        assign->hooks_prerun |= 1u << ALLOC_HOOK_SERVICES;
}

static inline void whole_plan_task(void *ctx, const struct alloc_spec *spec,
                                   const struct task_spec *task, struct task_define *define)
{
    (void)ctx;
    (void)spec;
    (void)task;
    define->hooks_prestart = 1u << TASK_HOOK_VALIDATE | 1u << TASK_HOOK_TASK_DIR;
}

static inline int whole_validate(void *ctx, const struct alloc_spec *alloc,
                                 const struct task_spec *task, struct err *err)
{
    (void)ctx;
    (void)alloc;
    (void)task;
    (void)err;
    return 0;
}

static inline void whole_exit(void *ctx, const struct driver_key *key,
                              const struct driver_exit *exit)
{
    (void)ctx; /* nothing is ever started */
    (void)key;
    (void)exit;
}

/* The parser and who asks it as one. */
static inline int whole_parse(const char *program, enum parse_kind kind, const char *text,
                              size_t length, json_t **ret_value, char **ret_refusal,
                              struct err *err)
{
    size_t answer_length;
    uint8_t *answer = parse_answer(kind, text, length, &answer_length);
    int code = parsed_read(answer, answer_length, ret_value, ret_refusal, err);

    (void)program;
    free(answer);
    return code;
}

static inline const struct spec_driver *whole_driver(void *ctx, const char *name)
{
    const struct parts *parts = ctx;

    return driver_kind(parts->drivers, name);
}

/* Directories of allocs, which nobody fills but tests, and drivers that start nothing. */
static inline void whole_open_rooms(struct whole_node *node)
{
    struct parts *parts = &node->parts;
    struct err err = {0};
    struct hooks_config hooks = {
        .loop = parts->loop,
        .alloc_dir = node->config.alloc_dir,
        .node = &parts->node.known,
        .driver = whole_driver,
        .driver_ctx = parts,
    };
    struct drivers_config drivers = {
        .loop = parts->loop,
        .state_dir = node->directory,
        .node_mark = "00000000",
        .shim_path = "/nowhere",
        .cgroup_mode = CGROUP_NONE,
        .raw_exec_enabled = true,
        .java = {.disabled = true},
        .on_exit = whole_exit,
    };

    parts->hooks = hooks_new(&hooks, &err);
    check(parts->hooks != NULL);
    parts->drivers = drivers_new(&drivers, &err);
    check(parts->drivers != NULL);
}

static inline void whole_changed(void *ctx)
{
    alone_node_changed(((struct parts *)ctx)->alone);
}

/* Turns until there is nothing more to do. */
static inline void whole_turns(struct whole_node *node)
{
    while (life_has_work(node->parts.life)) {
        (void)life_turn(node->parts.life); /* asked again in the condition */
        catalogue_settle(node->parts.catalogue);
    }
    (void)life_turn(node->parts.life); /* answers what waits for nothing */
}

static inline bool whole_turn(void *ctx)
{
    struct whole_node *node = ctx;

    bool more = life_turn(node->parts.life);

    catalogue_settle(node->parts.catalogue);
    return more || life_has_work(node->parts.life);
}

/* Everything but the loop runs: whole_turns, or loop_run(node->parts.loop). */
static inline void whole_open(struct whole_node *node)
{
    struct parts *parts = &node->parts;
    struct err err = {0};

    *node = (struct whole_node){.directory = "/tmp/whole-node-XXXXXX"};
    check(mkdtemp(node->directory) != NULL);
    (void)text_copy(node->config.bind_address, sizeof(node->config.bind_address), "127.0.0.1");
    (void)text_copy(node->config.datacenter, sizeof(node->config.datacenter), "dc1");
    (void)text_copy(node->config.node_pool, sizeof(node->config.node_pool), "default");
    (void)text_copy(node->config.name, sizeof(node->config.name), "node-1");
    (void)text_copy(node->config.region, sizeof(node->config.region), "global");
    (void)text_format(node->config.alloc_dir, sizeof(node->config.alloc_dir), "%s/allocs",
                      node->directory);
    (void)text_copy(node->config.data_dir, sizeof(node->config.data_dir), node->directory);
    (void)text_copy(parts->node.identity.id, sizeof(parts->node.identity.id), WHOLE_NODE_ID);
    parts->node.known.id = parts->node.identity.id;
    node->config.publishes_node = node->config.publishes_prometheus = true;
    parts->config = &node->config;
    parts->parse = whole_parse;
    parts->loop = loop_new();
    int code = journal_open(node->directory, JOURNAL_WRITE, &parts->journal, &err);
    check(code == 0);
    struct store store = store_of_journal(parts->journal);
    parts->node.meta =
        (struct node_meta){.configured = &node->config.meta, .merged = &parts->node.known.meta};
    code = node_meta_read(&parts->node.meta, &store, NULL, 0, &err);
    check(code == 0);
    parts->specs = specs_new(parts->journal);
    parts->tally = tally_new();
    parts->catalogue = catalogue_new(parts);
    whole_open_rooms(node);
    struct life_world world = {
        .ctx = node,
        .store = store,
        .now = whole_now,
        .random = whole_random,
        .perform = whole_perform,
        .trace = whole_trace,
        .sweep = whole_sweep,
    };
    parts->life = life_new(&world);
    parts->core = node->small.core = life_core(parts->life);
    struct alone_config alone = {
        .life = parts->life,
        .ctx = node,
        .new_id = whole_new_id,
        .placed = whole_placed,
        .node = {.known = {.id = "",
                           .name = "",
                           .datacenter = "dc1",
                           .class = "",
                           .pool = "default",
                           .meta = &parts->node.known.meta},
                 .region = "global",
                 .room = {.cpu_mhz = UINT64_MAX, .memory_mb = UINT64_MAX, .disk_mb = UINT64_MAX}},
        .allocs_kept = 50,
        .plans = {.kill_timeout_max_ms = 30000,
                  .alloc = whole_plan_alloc,
                  .task = whole_plan_task,
                  .validate = whole_validate},
    };
    parts->alone = alone_new(&alone);
    parts->storage = alone_storage(parts->alone);
    parts->host_volumes = alone_hosted(parts->alone);
    node_meta_begin(&parts->node.meta, parts->life, whole_changed, parts);
    code = life_start(parts->life, &(struct life_start){.authority = true}, &err);
    check(code == 0);
    whole_turns(node);
    code = api_new(parts, &node->api, &err);
    check(code == 0);
    io_before_sleep_start(parts->loop, &node->before_sleep, whole_turn, node);
}

static inline int whole_remove(const char *path, const struct stat *stat, int type,
                               struct FTW *where)
{
    (void)stat;
    (void)type;
    (void)where;
    return remove(path);
}

static inline void whole_close(struct whole_node *node)
{
    io_before_sleep_stop(&node->before_sleep);
    api_free(node->api);
    catalogue_free(node->parts.catalogue);
    life_forget_callers(node->parts.life);
    alone_free(node->parts.alone);
    drivers_free(node->parts.drivers);
    hooks_free(node->parts.hooks);
    specs_free(node->parts.specs);
    tally_free(node->parts.tally);
    life_free(node->parts.life);
    node_meta_free(&node->parts.node.meta);
    journal_close(node->parts.journal);
    loop_free(node->parts.loop);
    /* What cannot be removed is left in /tmp. */
    (void)nftw(node->directory, whole_remove, 8, FTW_DEPTH | FTW_PHYS);
}

/* Registers JOB (moved). */
static inline void whole_register_job(struct whole_node *node, json_t *job)
{
    struct alone_evaluation evaluation;
    struct err err = {0};

    check(job != NULL);
    int code = alone_register(node->parts.alone, job, &evaluation, NULL, &err);
    if (code != 0)
        (void)fprintf(stderr, "whole node: %s\n", err.text);
    check(code == 0);
    json_decref(job);
}

/* Registers ID in the default namespace: one group "g" of COUNT with one task "t". */
static inline void whole_register(struct whole_node *node, const char *id, int count)
{
    whole_register_job(node,
                       json_pack("{s:s, s:s, s:s, s:[s], s:[{s:s, s:i, s:[{s:s, s:s, s:{s:s}}]}]}",
                                 "ID", id, "Name", id, "Type", "service", "Datacenters", "dc1",
                                 "TaskGroups", "Name", "g", "Count", count, "Tasks", "Name", "t",
                                 "Driver", "raw_exec", "Config", "command", "/bin/true"));
}

#endif
