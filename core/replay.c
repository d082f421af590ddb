#include "core/replay.h"
#include "core/attempt.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

struct replayed {
    struct machine_id id;
    struct machine *record;
    uint32_t size; /* allocated */
    UT_hash_handle hh;
};

struct replay {
    struct replayed *machines;
    struct replayed *last; /* events of one machine often come together */
    struct machine *scratch;
    uint32_t scratch_used;
};

struct replay *replay_new(void)
{
    struct replay *replay = calloc(1, sizeof(*replay));

    check(replay != NULL);
    replay->scratch = calloc(1, FSM_RECORD_BYTES_MAX);
    check(replay->scratch != NULL);
    return replay;
}

static void drop(struct replay *replay, struct replayed *machine)
{
    if (replay->last == machine)
        replay->last = NULL;
    HASH_DEL(replay->machines, machine);
    free(machine->record);
    free(machine);
}

void replay_clear(struct replay *replay)
{
    struct replayed *machine, *next;

    HASH_ITER(hh, replay->machines, machine, next)
    drop(replay, machine);
}

void replay_free(struct replay *replay)
{
    if (replay == NULL)
        return;
    replay_clear(replay);
    free(replay->scratch);
    free(replay);
}

static struct replayed *find(const struct replay *replay, const struct machine_id *id)
{
    struct replayed *machine;

    if (replay->last != NULL && machine_id_equal(&replay->last->id, id))
        return replay->last;
    HASH_FIND_BYHASHVALUE(hh, replay->machines, id, sizeof(*id), machine_id_hash(id), machine);
    return machine;
}

static void keep(struct replay *replay, const struct machine_id *id, const struct machine *record)
{
    struct replayed *machine = find(replay, id);
    uint32_t size = fsm_record_size(record);

    if (machine == NULL) {
        machine = calloc(1, sizeof(*machine));
        check(machine != NULL);
        machine->id = *id;
        HASH_ADD_BYHASHVALUE(hh, replay->machines, id, sizeof(machine->id), machine_id_hash(id),
                             machine);
    }
    if (machine->size < size) {
        machine->record = realloc(machine->record, size);
        check(machine->record != NULL);
        machine->size = size;
    }
    memcpy(machine->record, record, size);
    replay->last = machine;
}

void replay_base(struct replay *replay, const struct machine_id *id, const struct machine *record)
{
    keep(replay, id, record);
}

const char *replay_result_name(enum replay_result result)
{
    switch (result) {
    case REPLAY_SAME:
        return "same";
    case REPLAY_NO_ROW:
        return "not a transition of the tables";
    case REPLAY_OTHER_ROW:
        return "another transition than the tables give";
    case REPLAY_DIGEST:
        return "another record than the transition gives";
    }
    return "?";
}

static void no_messages(void *ctx, const struct fsm_message *message)
{
    (void)ctx; /* what a message led to is an event of its own in the journal */
    (void)message;
}

static bool is_same_step(const struct fsm_def *def, const struct journal_event *event,
                         const struct fsm_step *step)
{
    if (fsm_guard_mark(def, step->row->guard) != event->guard || step->before != event->before ||
        step->after != event->after || step->issues_count != event->issues_count)
        return false;
    for (uint8_t i = 0; i < step->issues_count; i++) {
        if (step->issues[i].effect != event->issues[i].effect ||
            step->issues[i].ticket != event->issues[i].ticket)
            return false;
    }
    return true;
}

static void load_scratch(struct replay *replay, const struct fsm_def *def,
                         const struct replayed *machine)
{
    uint32_t size = def->record_bytes;

    if (machine == NULL) {
        memset(replay->scratch, 0, replay->scratch_used);
        fsm_absent(def, replay->scratch);
    } else {
        size = fsm_record_size(machine->record);
        memcpy(replay->scratch, machine->record, size);
        if (replay->scratch_used > size)
            memset((char *)replay->scratch + size, 0, replay->scratch_used - size);
    }
    replay->scratch_used = size;
}

enum replay_result replay_step(struct replay *replay, const struct journal_event *event)
{
    const struct fsm_def *def = fsm_definition((enum machine_kind)event->id.kind);
    struct replayed *machine = find(replay, &event->id);
    struct fsm_now now = {
        .ms = event->now_ms,
        .unix_ns = event->unix_ns,
        .seed = event->seed,
        .peers = event->peers,
    };
    struct fsm_step step;

    load_scratch(replay, def, machine);
    if (event->event.kind >= def->events_count)
        return REPLAY_NO_ROW;
    enum fsm_verdict verdict =
        fsm_step(def, &event->id, replay->scratch, &event->event, &now, no_messages, NULL, &step);
    if (verdict != FSM_MOVED)
        return REPLAY_NO_ROW;
    uint32_t size = fsm_record_size(replay->scratch);
    check(size <= FSM_RECORD_BYTES_MAX); /* whatever the event carried */
    check(replay->scratch->kind == event->id.kind);
    if (size > replay->scratch_used)
        replay->scratch_used = size;
    uint64_t digest = fsm_digest(replay->scratch);
    if (!fsm_is_final(replay->scratch))
        keep(replay, &event->id, replay->scratch);
    else if (machine != NULL)
        drop(replay, machine);
    if (!is_same_step(def, event, &step))
        return REPLAY_OTHER_ROW;
    return digest == event->digest ? REPLAY_SAME : REPLAY_DIGEST;
}

struct trial {
    struct replay *replay;
    const struct journal_event *event;
    enum replay_result result;
};

static void try_step(void *ctx)
{
    struct trial *trial = ctx;

    trial->result = replay_step(trial->replay, trial->event);
}

bool replay_try(struct replay *replay, const struct journal_event *event,
                enum replay_result *ret_result, char ret_broken[ERR_TEXT_SIZE])
{
    struct trial trial = {replay, event, REPLAY_NO_ROW};

    if (!core_attempt(try_step, &trial, ret_broken)) {
        replay->scratch_used = FSM_RECORD_BYTES_MAX; /* how much was written nobody knows */
        return false;
    }
    *ret_result = trial.result;
    return true;
}

const struct machine *replay_find(const struct replay *replay, const struct machine_id *id)
{
    const struct replayed *machine = find(replay, id);

    return machine == NULL ? NULL : machine->record;
}

void replay_forget(struct replay *replay, const struct machine_id *id)
{
    struct replayed *machine = find(replay, id);

    if (machine != NULL)
        drop(replay, machine);
}

void replay_each(const struct replay *replay, enum machine_kind kind, replay_each_cb *cb, void *ctx)
{
    const struct replayed *next;

    for (const struct replayed *machine = replay->machines; machine != NULL; machine = next) {
        next = machine->hh.next;
        if (machine->id.kind == kind && !cb(ctx, &machine->id, machine->record))
            return;
    }
}
