/*
 * A world of arrays for tests of the core: everything that crosses the seam is written down.
 *
 * A test posts events, makes turns, and compares what has crossed, line by line:
 *
 *     commit                          one line for each commit, "commit fails" if it is to fail,
 *       task a/web START PRESTART     then one for each event with the state it led to,
 *       spec alloc/a                  then what is stored beside records ("no spec": deleted)
 *     perform task a/web HOOK         an effect, with "for 7" if somebody waits for a reply
 *     refuse 7: the disk is full      a request that was not taken
 *
 * The journal of this world is a list of records.  What the core remembers must equal it after
 * every turn, and what it hands to an effect must be what was stored.
 */
#ifndef CAIRN_TEST_CORE_SEAM_H
#define CAIRN_TEST_CORE_SEAM_H

#include "core/core.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { SEAM_BYTES_MAX = 64 << 10, SEAM_RECORDS_MAX = 512 };

struct seam_record {
    struct machine_id id;
    struct machine *record; /* NULL: deleted */
};

struct seam {
    struct core *core;
    char crossed[SEAM_BYTES_MAX]; /* since the last look at it */
    struct seam_record journal[SEAM_RECORDS_MAX];
    size_t journal_count;
    uint64_t sequence, turn; /* of the last commit */
    uint64_t now_ms, seed;
    struct task_define task; /* of tasks that are placed */
    const char *known;       /* tasks that the specification of any alloc tells of, or NULL */
    void (*looks)(struct seam *seam, const struct journal_batch *batch); /* at each commit */
    void (*performs)(struct seam *seam, const struct effect *effect);    /* at each effect */
    int commit_code;                                                     /* ERR_*: commits fail */
    size_t commit_max; /* commits of more events are too large; 0: none is */
    bool answers;      /* hooks and drivers do at once what they are told */
    bool traces;       /* transitions are written down, too */
    bool claims;       /* specifications tell of claims */
    unsigned places;   /* mounts that no machine has */
};

/* --- the world --- */

static inline void seam_write(struct seam *seam, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static inline void seam_write(struct seam *seam, const char *format, ...)
{
    size_t used = strlen(seam->crossed);
    va_list arguments;

    va_start(arguments, format);
    int length = vsnprintf(seam->crossed + used, sizeof(seam->crossed) - used, format, arguments);
    va_end(arguments);
    assert_in_range(length, 0, sizeof(seam->crossed) - used - 1);
}

static inline struct seam_record *seam_stored(struct seam *seam, const struct machine_id *id)
{
    for (size_t i = 0; i < seam->journal_count; i++) {
        if (machine_id_equal(&seam->journal[i].id, id))
            return &seam->journal[i];
    }
    assert_true(seam->journal_count < SEAM_RECORDS_MAX);
    struct seam_record *stored = &seam->journal[seam->journal_count++];
    stored->id = *id;
    return stored;
}

static inline void seam_store(struct seam *seam, const struct journal_record *record)
{
    struct seam_record *stored = seam_stored(seam, &record->id);

    free(stored->record);
    stored->record = NULL;
    if (record->record == NULL)
        return;
    stored->record = malloc(fsm_record_size(record->record));
    assert_non_null(stored->record);
    memcpy(stored->record, record->record, fsm_record_size(record->record));
}

/* Each record once; each as the last event about its machine left it. */
static inline void seam_check_records(const struct journal_batch *batch)
{
    for (size_t r = 0; r < batch->records_count; r++) {
        const struct journal_record *record = &batch->records[r];
        const struct journal_event *last = NULL;
        for (size_t i = 0; i < r; i++)
            assert_false(machine_id_equal(&batch->records[i].id, &record->id));
        for (size_t i = 0; i < batch->events_count; i++) {
            if (machine_id_equal(&batch->events[i].id, &record->id))
                last = &batch->events[i];
        }
        assert_non_null(last);
        if (record->record != NULL) {
            assert_null(fsm_broken(record->record));
            assert_int_equal(fsm_digest(record->record), last->digest);
        }
    }
}

static inline int seam_commit(void *ctx, const struct journal_batch *batch, struct err *err)
{
    struct seam *seam = ctx;

    bool too_large = seam->commit_max != 0 && batch->events_count > seam->commit_max;
    seam_write(seam, seam->commit_code < 0 || too_large ? "commit fails\n" : "commit\n");
    for (size_t i = 0; i < batch->events_count; i++) {
        const struct journal_event *event = &batch->events[i];
        const struct fsm_def *def = fsm_definition((enum machine_kind)event->id.kind);
        seam_write(seam, "  %s %s %s %s\n", def->name, event->id.text,
                   fsm_event_name(def, event->event.kind), fsm_state_name(def, event->after));
        assert_int_equal(event->sequence, seam->sequence + 1 + i);
        assert_int_equal(event->turn, seam->turn + 1);
        assert_int_equal(event->now_ms, seam->now_ms);
        assert_int_equal(event->event.payload != NULL,
                         def->events[event->event.kind].payload != PAYLOAD_NONE);
    }
    for (size_t i = 0; i < batch->specs_count; i++)
        seam_write(seam, "  %s %s\n", batch->specs[i].bytes != NULL ? "spec" : "no spec",
                   batch->specs[i].key);
    for (size_t i = 0; i < batch->metas_count; i++)
        seam_write(seam, "  meta %s\n", batch->metas[i].key);
    seam_check_records(batch);
    if (seam->looks != NULL)
        seam->looks(seam, batch);
    if (seam->commit_code < 0)
        return err_set(err, seam->commit_code, "the disk is full");
    if (too_large)
        return err_set(err, ERR_LIMIT, "too large");

    for (size_t i = 0; i < batch->records_count; i++)
        seam_store(seam, &batch->records[i]);
    seam->sequence += batch->events_count;
    seam->turn++;
    return 0;
}

static inline void seam_answer_task(struct seam *seam, const struct effect *effect)
{
    const struct task *task = task_of(effect->record);
    struct started started = {.payload_pid = 100, .payload_ticks = 1, .shim_pid = 99};
    struct exited ended = {.known = 1, .code = 143, .signal = 15};
    struct hook_outcome hook = {.hook = task->hook};

    if (effect->kind == TX_HOOK)
        core_done(seam->core, &effect->id, LANE_HOOK, TE_HOOK_DONE, &hook);
    if (effect->kind == TX_DRIVER_START)
        core_done(seam->core, &effect->id, LANE_DRIVER, TE_STARTED, &started);
    if (effect->kind == TX_DRIVER_RECOVER)
        core_done(seam->core, &effect->id, LANE_DRIVER, TE_RECOVERED, &started);
    if (effect->kind == TX_DRIVER_DESTROY)
        core_done(seam->core, &effect->id, LANE_DRIVER, TE_REAPED, NULL);
    if (effect->kind == TX_DRIVER_STOP) {
        core_done(seam->core, &effect->id, LANE_DRIVER, TE_STOP_ACCEPTED, NULL);
        core_news(seam->core, &effect->id, effect->generation, TE_EXITED, &ended);
    }
}

static inline void seam_perform(void *ctx, const struct effect *effect)
{
    struct seam *seam = ctx;
    const struct fsm_def *def = fsm_definition((enum machine_kind)effect->id.kind);
    const struct machine *record = effect->record;
    bool ended = fsm_is_final(record); /* then nothing is stored any more */
    const struct seam_record *stored = seam_stored(seam, &effect->id);

    seam_write(seam, "perform %s %s %s", def->name, effect->id.text,
               fsm_effect_name(def, effect->kind));
    if (effect->request != NULL && effect->request->signal[0] != '\0')
        seam_write(seam, " %s", effect->request->signal);
    if (effect->reply != 0)
        seam_write(seam, " for %llu", (unsigned long long)effect->reply);
    seam_write(seam, "\n");
    assert_int_equal(ended, stored->record == NULL);
    if (!ended)
        assert_memory_equal(record, stored->record, fsm_record_size(stored->record));
    assert_int_equal(effect->lane, def->effects[effect->kind].lane);
    assert_int_equal(effect->generation, record->generation);
    assert_int_equal(effect->timeout_ms, def->effects[effect->kind].timeout_ms);
    if (effect->lane < LANE_COUNT)
        assert_int_equal(record->lane_effect[effect->lane], effect->kind);
    if (seam->performs != NULL)
        seam->performs(seam, effect);
    if (!seam->answers)
        return;
    if (effect->id.kind == MACHINE_TASK)
        seam_answer_task(seam, effect);
    if (effect->id.kind == MACHINE_ALLOC && effect->kind == AX_HOOK) {
        struct hook_outcome hook = {.hook = alloc_of(record)->hook};
        core_done(seam->core, &effect->id, LANE_HOOK, AE_HOOK_DONE, &hook);
    }
}

static inline void seam_refuse(void *ctx, uint64_t reply, const struct err *err)
{
    assert_true(err->code < 0);
    seam_write(ctx, "refuse %llu: %s\n", (unsigned long long)reply, err->text);
}

static inline void seam_trace(void *ctx, const struct journal_event *event)
{
    struct seam *seam = ctx;

    if (seam->traces)
        seam_write(seam, "trace %llu %s\n", (unsigned long long)event->sequence, event->id.text);
}

/* Adds a task unless ASSIGN has it. */
static inline void seam_know(struct alloc_assign *assign, const char *name)
{
    for (uint32_t i = 0; i < assign->members_count; i++) {
        if (text_equal(assign->members[i].name, name))
            return;
    }
    assert_true(assign->members_count < ALLOC_MEMBERS_MAX);
    struct alloc_member *member = &assign->members[assign->members_count++];
    *member = (struct alloc_member){.kind = MEMBER_TASK};
    assert_true(text_copy(member->name, sizeof(member->name), name));
}

static inline void seam_known(void *ctx, const char *alloc, struct alloc_assign *assign)
{
    const struct seam *seam = ctx;
    char names[64], *rest;

    (void)alloc; /* all are alike */
    if (seam->known == NULL)
        return;
    assert_true(text_copy(assign->job_id, sizeof(assign->job_id), "job"));
    assert_true(text_copy(names, sizeof(names), seam->known));
    for (char *name = strtok_r(names, " ", &rest); name != NULL; name = strtok_r(NULL, " ", &rest))
        seam_know(assign, name);
}

static inline bool seam_claim(void *ctx, const char *alloc, const char *name,
                              struct volume_define *ret_define)
{
    const struct seam *seam = ctx;

    (void)alloc; /* all are alike */
    if (!seam->claims)
        return false;
    *ret_define = (struct volume_define){.plugin = "disks"};
    assert_true(text_copy(ret_define->volume, sizeof(ret_define->volume), name));
    return true;
}

static inline bool seam_find(void *ctx, const char *alloc, unsigned nth,
                             struct volume_define *ret_define)
{
    const struct seam *seam = ctx;

    (void)alloc; /* all are alike */
    if (nth >= seam->places)
        return false;
    *ret_define = (struct volume_define){.plugin = "disks"};
    assert_true(text_format(ret_define->volume, sizeof(ret_define->volume), "found-%u", nth));
    return true;
}

/* --- life --- */

static inline void seam_new_agent(struct seam *seam)
{
    struct world world = {
        .ctx = seam,
        .commit = seam_commit,
        .perform = seam_perform,
        .refuse = seam_refuse,
        .known = seam_known,
        .trace = seam_trace,
        .claim = seam_claim,
        .place = seam_find,
    };

    core_free(seam->core);
    seam->core = core_new(&world);
}

static inline int seam_open(void **state)
{
    struct seam *seam = calloc(1, sizeof(*seam));

    assert_non_null(seam);
    seam->now_ms = 1000;
    seam->task = (struct task_define){
        .restart_interval_ms = 60000,
        .restart_delay_ms = 5000,
        .restart_attempts = 2,
        .kill_timeout_ms = 3000,
        .may_start = 1,
        .driver = "mock",
    };
    seam_new_agent(seam);
    *state = seam;
    return 0;
}

static inline int seam_close(void **state)
{
    struct seam *seam = *state;

    core_free(seam->core);
    for (size_t i = 0; i < seam->journal_count; i++)
        free(seam->journal[i].record);
    free(seam);
    return 0;
}

#define SEAM_TEST(function) cmocka_unit_test_setup_teardown(function, seam_open, seam_close)

/* What the core remembers is what the last commit stored, nothing more and nothing less. */
static inline void seam_same(struct seam *seam)
{
    size_t stored[MACHINE_KIND_COUNT] = {0};

    for (size_t i = 0; i < seam->journal_count; i++) {
        const struct seam_record *item = &seam->journal[i];
        const struct machine *record = core_find(seam->core, &item->id);
        stored[item->id.kind] += item->record != NULL;
        assert_int_equal(record == NULL, item->record == NULL);
        if (record != NULL)
            assert_memory_equal(record, item->record, fsm_record_size(item->record));
    }
    for (int kind = 0; kind < MACHINE_KIND_COUNT; kind++)
        assert_int_equal(core_count(seam->core, (enum machine_kind)kind), stored[kind]);
    assert_int_equal(core_figures(seam->core).sequence, seam->sequence);
    assert_int_equal(core_figures(seam->core).turns, seam->turn);
}

/* One turn, at the time it is. */
static inline void seam_turn(struct seam *seam)
{
    struct err err = {0};
    uint64_t commits = seam->turn;
    int code =
        core_turn(seam->core, seam->now_ms, (int64_t)seam->now_ms * 1000000, ++seam->seed, &err);

    if (code < 0) {
        assert_int_equal(code, seam->commit_code);
        assert_int_equal(err.code, code);
        assert_int_equal(seam->turn, commits);
    }
    seam_same(seam);
}

/* Turns until nothing is left to do without waiting. */
static inline void seam_settle(struct seam *seam)
{
    for (int turns = 0; core_has_work(seam->core); turns++) {
        assert_in_range(turns, 0, 100);
        seam_turn(seam);
    }
}

/* Everything that has crossed since the last look. */
#define seam_crossed(seam, lines)                                                                  \
    do {                                                                                           \
        assert_string_equal((seam)->crossed, (lines));                                             \
        (seam)->crossed[0] = '\0';                                                                 \
    } while (0)

static inline void seam_forget(struct seam *seam)
{
    seam->crossed[0] = '\0';
}

/* The daemon has died: a new core with the records of the journal, the last ones first, before
 * core_restore. */
static inline void seam_load(struct seam *seam)
{
    seam_new_agent(seam);
    for (size_t i = seam->journal_count; i > 0; i--) {
        const struct seam_record *item = &seam->journal[i - 1];
        if (item->record != NULL)
            core_load(seam->core, &item->id, item->record);
    }
    core_continue(seam->core, seam->sequence + 1, seam->turn);
    seam_same(seam);
}

/* Whether ACT fails an assertion of the core; it runs in a process of its own. */
static inline bool seam_asserts(struct seam *seam, void (*act)(struct seam *seam))
{
    const struct rlimit no_core = {0, 0};
    int status;

    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)setrlimit(RLIMIT_CORE, &no_core);
        if (freopen("/dev/null", "w", stderr) == NULL)
            _exit(1);
        act(seam);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

/* --- events --- */

static inline struct machine_id seam_id(enum machine_kind kind, const char *text)
{
    return machine_id_make(kind, text);
}

static inline void seam_tell(struct seam *seam, enum machine_kind kind, const char *text,
                             uint8_t event, const void *payload)
{
    struct machine_id id = seam_id(kind, text);

    core_tell(seam->core, &id, event, payload);
}

static inline void seam_ask(struct seam *seam, enum machine_kind kind, const char *text,
                            uint8_t event, uint64_t reply)
{
    struct machine_id id = seam_id(kind, text);
    struct request request = {.signal = "", .text = "asked"};
    bool wants = fsm_definition(kind)->events[event].payload == PAYLOAD_REQUEST;

    core_ask(seam->core, &id, event, wants ? &request : NULL, reply);
}

static inline void seam_done(struct seam *seam, enum machine_kind kind, const char *text,
                             enum fsm_lane lane, uint8_t event, const void *payload)
{
    struct machine_id id = seam_id(kind, text);

    core_done(seam->core, &id, lane, event, payload);
}

/* The hook that an alloc or task awaits has ended well. */
static inline void seam_hook_done(struct seam *seam, enum machine_kind kind, const char *text)
{
    struct machine_id id = seam_id(kind, text);
    const struct machine *record = core_find(seam->core, &id);
    bool task = kind == MACHINE_TASK;
    struct hook_outcome hook = {0};

    assert_non_null(record);
    hook.hook = task ? task_of(record)->hook : alloc_of(record)->hook;
    core_done(seam->core, &id, LANE_HOOK, task ? TE_HOOK_DONE : AE_HOOK_DONE, &hook);
}

static inline void seam_started(struct seam *seam, const char *task)
{
    const struct started started = {.payload_pid = 100, .payload_ticks = 1, .shim_pid = 99};

    seam_done(seam, MACHINE_TASK, task, LANE_DRIVER, TE_STARTED, &started);
}

/* The payload of a GENERATION has ended. */
static inline void seam_exited(struct seam *seam, const char *task, uint32_t generation,
                               int32_t code)
{
    struct machine_id id = seam_id(MACHINE_TASK, task);
    struct exited exited = {.known = 1, .code = code};

    core_news(seam->core, &id, generation, TE_EXITED, &exited);
}

/* --- what is placed --- */

static inline void seam_define(struct seam *seam, const char *alloc, const char *task)
{
    struct machine_id id = machine_id_join(MACHINE_TASK, alloc, task);

    core_tell(seam->core, &id, TE_DEFINE, &seam->task);
}

/* An alloc with TASKS ("web side"), its specification, and PREVIOUS to wait for, or NULL. */
static inline void seam_place_after(struct seam *seam, const char *alloc, const char *tasks,
                                    const char *previous)
{
    struct alloc_assign *assign = calloc(1, sizeof(*assign) + 8 * sizeof(assign->members[0]));
    char names[64], key[64], *rest;

    assert_non_null(assign);
    assign->may_start = 1;
    assert_true(text_copy(assign->job_id, sizeof(assign->job_id), "job"));
    if (previous != NULL)
        assert_true(text_copy(assign->previous, sizeof(assign->previous), previous));
    assert_true(text_copy(names, sizeof(names), tasks));
    for (char *name = strtok_r(names, " ", &rest); name != NULL;
         name = strtok_r(NULL, " ", &rest)) {
        struct alloc_member *member = &assign->members[assign->members_count++];
        assert_true(text_copy(member->name, sizeof(member->name), name));
    }
    seam_tell(seam, MACHINE_ALLOC, alloc, AE_ASSIGN, assign);
    for (uint32_t i = 0; i < assign->members_count; i++)
        seam_define(seam, alloc, assign->members[i].name);
    assert_true(text_format(key, sizeof(key), "alloc/%s", alloc));
    core_spec(seam->core, key, "{}", 2);
    free(assign);
}

static inline void seam_place(struct seam *seam, const char *alloc, const char *tasks)
{
    seam_place_after(seam, alloc, tasks, NULL);
}

/* The same, up to running payloads; nothing of it has to be looked at. */
static inline void seam_run(struct seam *seam, const char *alloc, const char *tasks)
{
    bool answers = seam->answers;

    seam->answers = true;
    seam_place(seam, alloc, tasks);
    seam_settle(seam);
    seam->answers = answers;
    seam_forget(seam);
}

/* The same, stopped again: the alloc is TERMINAL, its tasks are DEAD. */
static inline void seam_end(struct seam *seam, const char *alloc, const char *tasks)
{
    bool answers = seam->answers;

    seam_run(seam, alloc, tasks);
    seam->answers = true;
    seam_ask(seam, MACHINE_ALLOC, alloc, AE_STOP, 0);
    seam_settle(seam);
    seam->answers = answers;
    seam_forget(seam);
}

static inline const struct task *seam_task(struct seam *seam, const char *text)
{
    struct machine_id id = seam_id(MACHINE_TASK, text);
    const struct machine *record = core_find(seam->core, &id);

    return record == NULL ? NULL : task_of(record);
}

static inline uint8_t seam_state(struct seam *seam, enum machine_kind kind, const char *text)
{
    struct machine_id id = seam_id(kind, text);
    const struct machine *record = core_find(seam->core, &id);

    assert_non_null(record);
    return record->state;
}

#endif
