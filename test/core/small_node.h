/*
 * A node of one file: the real core over a real journal, in a world that answers at once.
 *
 * Hooks succeed, payloads start and stop as told, nothing outside is touched.  Clock, seeds and ids
 * are fixed, so that the same story gives the same journal.
 */
#ifndef CAIRN_TEST_CORE_SMALL_NODE_H
#define CAIRN_TEST_CORE_SMALL_NODE_H

#include "core/core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL_START_MS = 1000 };
static const int64_t small_start_unix_ns = 1768212000000000000; /* 2026-01-12T10:00:00Z */

struct small_node {
    struct journal *journal;
    struct core *core;
    const char *path;
    uint64_t now_ms, seed;
    int32_t pids;
    bool holds_starts; /* DRIVER_START is not answered */
    bool holds_hooks;  /* nor are hooks */
};

/* --- the world --- */

static inline int small_commit(void *ctx, const struct journal_batch *batch, struct err *err)
{
    struct small_node *node = ctx;

    return journal_commit(node->journal, batch, err);
}

/* One hook leaves a secret in the environment of later starts. */
static inline void small_hook(struct small_node *node, const struct effect *effect)
{
    const struct task *task = task_of(effect->record);
    union {
        struct hook_outcome outcome;
        uint8_t bytes[sizeof(struct hook_outcome) + 256];
    } hook = {.outcome.hook = task->hook};
    struct results results = {hook.outcome.results, 0, 256};

    if (task->hook == TASK_HOOK_TASK_DIR && task->phase == PHASE_PRESTART) {
        int code = results_set(&results, task->hook, RESULT_ENV, "TOKEN", "s3cret", 6);
        check(code == 0);
        hook.outcome.results_bytes = results.used;
    }
    core_done(node->core, &effect->id, LANE_HOOK, TE_HOOK_DONE, &hook);
}

static inline void small_task(struct small_node *node, const struct effect *effect)
{
    struct started started = {.payload_ticks = 5000, .shim_pid = 50, .shim_ticks = 4990};
    struct exited stopped = {.known = 1, .code = 143, .signal = 15};

    switch (effect->kind) {
    case TX_HOOK:
        if (!node->holds_hooks)
            small_hook(node, effect);
        break;
    case TX_DRIVER_START:
        if (node->holds_starts)
            break;
        started.payload_pid = 100 + ++node->pids;
        core_done(node->core, &effect->id, LANE_DRIVER, TE_STARTED, &started);
        break;
    case TX_DRIVER_RECOVER:
        started = task_of(effect->record)->process;
        core_done(node->core, &effect->id, LANE_DRIVER, TE_RECOVERED, &started);
        break;
    case TX_DRIVER_STOP:
        core_done(node->core, &effect->id, LANE_DRIVER, TE_STOP_ACCEPTED, NULL);
        core_news(node->core, &effect->id, effect->generation, TE_EXITED, &stopped);
        break;
    case TX_DRIVER_DESTROY:
        core_done(node->core, &effect->id, LANE_DRIVER, TE_REAPED, NULL);
        break;
    default:
        break; /* news for others, and no machine waits for it */
    }
}

/* The server and the storage plugin say yes to all. */
static inline void small_volume(struct small_node *node, const struct effect *effect)
{
    static const struct {
        uint8_t effect, lane, answer;
    } answers[] = {
        {VX_CLAIM, LANE_RPC, VE_CLAIMED},      {VX_UNCLAIM, LANE_RPC, VE_RELEASED},
        {VX_STAGE, LANE_NODE, VE_STAGED},      {VX_UNSTAGE, LANE_NODE, VE_UNSTAGED},
        {VX_PUBLISH, LANE_NODE, VE_PUBLISHED}, {VX_UNPUBLISH, LANE_NODE, VE_UNPUBLISHED},
        {VX_LOOK, LANE_NODE, VE_MOUNT_FOUND},
    };
    const struct claim claim = {.external = "vol-1"};

    for (size_t i = 0; i < COUNT_OF(answers); i++) {
        if (answers[i].effect == effect->kind)
            core_done(node->core, &effect->id, answers[i].lane, answers[i].answer,
                      answers[i].answer == VE_CLAIMED ? &claim : NULL);
    }
}

static inline void small_plugin(struct small_node *node, const struct effect *effect)
{
    const struct started started = {.payload_pid = 0};
    const struct plugin_identity identity = {
        .staging = 1, .healthy = 1, .provider = "disks.example", .version = "1.0"};

    switch (effect->kind) {
    case PX_LAUNCH:
        core_done(node->core, &effect->id, LANE_DRIVER, PE_LAUNCHED, &started);
        break;
    case PX_RECOVER:
        core_done(node->core, &effect->id, LANE_DRIVER, PE_RECOVERED, &started);
        break;
    case PX_PROBE:
        core_done(node->core, &effect->id, LANE_NODE, PE_PROBED, NULL);
        break;
    case PX_IDENTIFY:
        core_done(node->core, &effect->id, LANE_NODE, PE_IDENTIFIED, &identity);
        break;
    default:
        break; /* news for others */
    }
}

static inline void small_perform(void *ctx, const struct effect *effect)
{
    struct small_node *node = ctx;

    if (effect->id.kind == MACHINE_TASK) {
        small_task(node, effect);
    } else if (effect->id.kind == MACHINE_VOLUME) {
        small_volume(node, effect);
    } else if (effect->id.kind == MACHINE_PLUGIN) {
        small_plugin(node, effect);
    } else if (effect->id.kind == MACHINE_ALLOC && effect->kind == AX_HOOK && !node->holds_hooks) {
        struct hook_outcome hook = {.hook = alloc_of(effect->record)->hook};
        core_done(node->core, &effect->id, LANE_HOOK, AE_HOOK_DONE, &hook);
    }
}

static inline void small_refuse(void *ctx, uint64_t reply, const struct err *err)
{
    (void)ctx; /* nobody asks */
    (void)reply;
    (void)err;
}

/* An alloc's spec goes with its record, as the daemon does it. */
static inline void small_trace(void *ctx, const struct journal_event *event)
{
    struct small_node *node = ctx;
    char key[JOURNAL_KEY_SIZE];

    if (event->id.kind != MACHINE_ALLOC || event->after != A_GONE)
        return;
    (void)text_format(key, sizeof(key), "alloc/%s", event->id.text);
    core_spec(node->core, key, NULL, 0);
}

/* --- life --- */

static inline void small_turns(struct small_node *node)
{
    struct err err = {0};

    while (core_has_work(node->core)) {
        node->now_ms += 3;
        int code =
            core_turn(node->core, node->now_ms,
                      small_start_unix_ns + (int64_t)node->now_ms * 1000000, ++node->seed, &err);
        if (code < 0)
            (void)fprintf(stderr, "small node: %s\n", err.text);
        check(code == 0);
    }
}

/* Lets time pass, then what is due happen. */
static inline void small_wait(struct small_node *node, uint64_t ms)
{
    struct err err = {0};

    node->now_ms += ms;
    int code = core_turn(node->core, node->now_ms,
                         small_start_unix_ns + (int64_t)node->now_ms * 1000000, ++node->seed, &err);
    check(code == 0);
    small_turns(node);
}

static inline struct core *small_agent(struct small_node *node)
{
    struct world world = {
        .ctx = node,
        .commit = small_commit,
        .perform = small_perform,
        .refuse = small_refuse,
        .trace = small_trace,
    };

    return core_new(&world);
}

static inline void small_open(struct small_node *node, const char *path)
{
    struct err err = {0};

    *node = (struct small_node){.path = path, .now_ms = SMALL_START_MS, .seed = 1};
    int code = journal_open(path, JOURNAL_WRITE, &node->journal, &err);
    if (code < 0)
        (void)fprintf(stderr, "small node: %s\n", err.text);
    check(code == 0);
    node->core = small_agent(node);
    static const char identity[] = "{\"boot_id\":\"b0\",\"clock_offset_ms\":0,\"id\":\"n0\","
                                   "\"secret\":\"do-not-tell\"}";
    core_meta(node->core, "node", identity, sizeof(identity) - 1);
}

static inline void small_close(struct small_node *node)
{
    core_free(node->core);
    journal_close(node->journal);
    node->core = NULL;
    node->journal = NULL;
}

static inline bool small_load(void *ctx, const struct machine_id *id, const struct machine *record)
{
    core_load(ctx, id, record);
    return true;
}

/* The daemon dies, and comes back AWAY_MS later. */
static inline void small_restart(struct small_node *node, uint64_t away_ms, bool rebooted)
{
    struct err err = {0};
    uint64_t turn = core_figures(node->core).turns;
    int code = 0;

    core_free(node->core);
    node->core = small_agent(node);
    for (int kind = 0; kind < MACHINE_KIND_COUNT && code == 0; kind++)
        code = journal_each_record(node->journal, (enum machine_kind)kind, small_load, NULL,
                                   node->core, &err);
    check(code == 0);
    core_continue(node->core, journal_next_sequence(node->journal), turn);
    node->now_ms += away_ms;
    core_restore(node->core, true, rebooted);
    small_turns(node);
    core_swept(node->core, true);
    small_turns(node);
}

/* --- what it runs --- */

static inline void small_alloc_id(char to[UUID_TEXT_SIZE], unsigned number)
{
    (void)text_format(to, UUID_TEXT_SIZE, "%08x-0000-4000-8000-%012x", 0xa1000000u + number,
                      number);
}

static inline struct machine_id small_task_id(unsigned number, const char *task)
{
    char alloc[UUID_TEXT_SIZE];

    small_alloc_id(alloc, number);
    return machine_id_join(MACHINE_TASK, alloc, task);
}

static inline struct machine_id small_alloc(unsigned number)
{
    char alloc[UUID_TEXT_SIZE];

    small_alloc_id(alloc, number);
    return machine_id_make(MACHINE_ALLOC, alloc);
}

static inline void small_define(struct small_node *node, unsigned number, const char *task,
                                bool batch)
{
    struct task_define define = {
        .restart_interval_ms = 1800000,
        .restart_delay_ms = 15000,
        .kill_timeout_ms = 5000,
        .restart_attempts = 2,
        .restart_on_success = !batch,
        .hooks_prestart = 1u << TASK_HOOK_VALIDATE | 1u << TASK_HOOK_TASK_DIR,
        .may_start = 1,
        .driver = "raw_exec",
    };
    struct machine_id id = small_task_id(number, task);

    core_tell(node->core, &id, TE_DEFINE, &define);
}

static inline struct machine_id small_claim_id(unsigned number, const char *volume)
{
    char alloc[UUID_TEXT_SIZE];

    small_alloc_id(alloc, number);
    return machine_id_join(MACHINE_VOLUME, alloc, volume);
}

static inline void small_claim(struct small_node *node, unsigned number, const char *volume)
{
    struct volume_define define = {.plugin = "disks", .namespace = "default"};
    struct machine_id id = small_claim_id(number, volume);

    (void)text_copy(define.volume, sizeof(define.volume), volume);
    core_tell(node->core, &id, VE_DEFINE, &define);
}

/* The storage plugin disks, one that the configuration names; posted, not yet stepped. */
static inline void small_disks(struct small_node *node)
{
    const struct plugin_define define = {.type = PLUGIN_CSI_NODE, .plugin = "disks"};
    struct machine_id id = machine_id_make(MACHINE_PLUGIN, "csi/disks");

    core_tell(node->core, &id, PE_DEFINE, &define);
}

/* Places alloc NUMBER with the tasks TASKS ("web", or "web side"), of which "+data" is none but a
 * claim on the volume data of the plugin disks; posted, not yet stepped. */
static inline void small_place(struct small_node *node, unsigned number, const char *tasks,
                               bool batch)
{
    struct alloc_assign *assign = calloc(1, sizeof(*assign) + 4 * sizeof(assign->members[0]));
    char names[64], key[JOURNAL_KEY_SIZE], spec[320], *rest = names;
    struct machine_id id = small_alloc(number);

    check(assign != NULL);
    assign->create_unix_ns = small_start_unix_ns;
    assign->index = number;
    assign->batch = batch;
    assign->may_start = 1;
    assign->hooks_prerun = assign->hooks_destroy = 1u << ALLOC_HOOK_ALLOC_DIR;
    (void)text_copy(assign->namespace, sizeof(assign->namespace), "default");
    (void)text_copy(assign->job_id, sizeof(assign->job_id), batch ? "sums" : "shop");
    (void)text_copy(assign->group, sizeof(assign->group), "front");
    (void)text_copy(names, sizeof(names), tasks);
    for (char *name = strsep(&rest, " "); name != NULL; name = strsep(&rest, " ")) {
        struct alloc_member *member = &assign->members[assign->members_count++];
        bool is_claim = name[0] == '+';
        member->kind = is_claim ? MEMBER_VOLUME : MEMBER_TASK;
        (void)text_copy(member->name, sizeof(member->name), name + is_claim);
    }
    core_tell(node->core, &id, AE_ASSIGN, assign);
    for (uint32_t i = 0; i < assign->members_count; i++) {
        if (assign->members[i].kind == MEMBER_VOLUME)
            small_claim(node, number, assign->members[i].name);
        else
            small_define(node, number, assign->members[i].name, batch);
    }
    (void)text_format(key, sizeof(key), "alloc/%s", id.text);
    (void)text_format(
        spec, sizeof(spec),
        "{\"ID\":\"%s\",\"Tasks\":[{\"Name\":\"web\",\"Env\":{\"PASSWORD\":\"hunter2\""
        "},\"Templates\":[{\"EmbeddedTmpl\":\"key=hunter2\"}],\"Artifacts\":[{\"GetterHeaders\":"
        "{\"Authorization\":\"hunter2\"}}]}]}",
        id.text);
    core_spec(node->core, key, spec, strlen(spec));
    free(assign);
}

/* The payload of a task ends by itself. */
static inline void small_exit(struct small_node *node, unsigned number, const char *task,
                              int32_t code)
{
    struct machine_id id = small_task_id(number, task);
    struct exited exited = {
        .known = 1,
        .code = code,
        .finished_unix_ns = small_start_unix_ns + (int64_t)node->now_ms * 1000000,
    };

    core_news(node->core, &id, core_find(node->core, &id)->generation, TE_EXITED, &exited);
}

static inline void small_stop(struct small_node *node, unsigned number, bool destroy)
{
    struct request request = {.text = "job was stopped"};
    struct machine_id id = small_alloc(number);

    core_tell(node->core, &id, AE_STOP, &request);
    if (destroy)
        core_tell(node->core, &id, AE_DESTROY, NULL);
}

/* The story of most tests: a service of two tasks and a batch task; one crash, one restart of the
 * daemon, one end, one stop. */
static inline void small_story(struct small_node *node)
{
    small_place(node, 1, "web side", false);
    small_place(node, 2, "sum", true);
    small_turns(node);
    small_wait(node, 2000);
    small_exit(node, 1, "web", 1);
    small_turns(node);
    small_wait(node, 20000);
    small_restart(node, 3000, false);
    small_wait(node, 5000);
    small_exit(node, 2, "sum", 0);
    small_turns(node);
    small_wait(node, 60000);
    small_stop(node, 1, false);
    small_turns(node);
}

#endif
