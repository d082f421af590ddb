/*
 * Which of the records that were found is the machine as it was.
 *
 * The log is the judge: each event says what the record was after it.  A record from the trees of
 * the last commit needs no judge.  Any other is taken only if the last event of its machine left
 * it, or if stepping that machine's events leads there, and if no later event can be missing; one
 * that the log says is gone stays gone; one that the log does not know is taken if a tree led to
 * it.  So an old copy of a record never
 * makes finished work run again: what is not certain is lost, and what it ran is ended.
 */
#include "core/replay.h"
#include "inspect/salvage/salvage.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static struct machine *copy_of(const struct machine *record)
{
    uint32_t size = fsm_record_size(record);
    struct machine *copy = malloc(size);

    check(copy != NULL);
    memcpy(copy, record, size);
    return copy;
}

/* --- stepping what there is --- */

struct stepping {
    struct salvage *salvage;
    struct replay *replay;
    void *payload;
    size_t history; /* the first event behind which each machine could be stepped */
};

static bool carry_over(void *ctx, const struct machine_id *id, const struct machine *record)
{
    replay_base(ctx, id, record);
    return true;
}

/* False if EVENT does not follow from what there is; then there is nothing of its machine. */
static bool step(struct stepping *stepping, const struct journal_event *event)
{
    char broken[ERR_TEXT_SIZE];
    enum replay_result result;

    bool whole = replay_try(stepping->replay, event, &result, broken);
    if (whole && result == REPLAY_SAME)
        return true;
    replay_forget(stepping->replay, &event->id);
    if (!whole) { /* the step was broken off, and what it left is good for nothing */
        struct replay *fresh = replay_new();
        for (int kind = 0; kind < MACHINE_KIND_COUNT; kind++)
            replay_each(stepping->replay, (enum machine_kind)kind, carry_over, fresh);
        replay_free(stepping->replay);
        stepping->replay = fresh;
    }
    return false;
}

/* From one of the records that were found EVENT may have begun; that one is its base then. */
static bool step_from_any(struct stepping *stepping, struct found_machine *machine,
                          const struct journal_event *event)
{
    for (size_t i = 0; i < machine->records.count; i++) {
        const struct machine *record = machine->records.items[i].record;
        if (record->state != event->before)
            continue;
        replay_base(stepping->replay, &event->id, record);
        if (step(stepping, event)) {
            free(machine->base);
            machine->base = copy_of(record);
            return true;
        }
    }
    return false;
}

/* The record that EVENT left, if it was found. */
static const struct machine *left_by(const struct found_machine *machine, uint64_t digest)
{
    for (size_t i = 0; i < machine->records.count; i++) {
        if (machine->records.items[i].digest == digest)
            return machine->records.items[i].record;
    }
    return NULL;
}

static void step_event(struct stepping *stepping, size_t number)
{
    const struct found_event *found = &stepping->salvage->events.items[number];
    struct found_machine *machine = salvage_machine(stepping->salvage, &found->id);
    struct journal_event event;

    check(machine != NULL);
    salvage_event(found, &event, stepping->payload);
    bool known = replay_find(stepping->replay, &event.id) != NULL;
    if ((known || found->initial) && step(stepping, &event))
        return;
    if (!found->initial && step_from_any(stepping, machine, &event)) {
        if (known) /* something is missing between this event and the one before */
            stepping->history = number;
        return;
    }
    stepping->history = number + 1;
    const struct machine *after = found->final ? NULL : left_by(machine, found->digest);
    if (after != NULL)
        replay_base(stepping->replay, &event.id, after);
}

static void begin_stepping(struct stepping *stepping, struct salvage *salvage)
{
    *stepping = (struct stepping){.salvage = salvage, .replay = replay_new()};
    stepping->payload = malloc(FSM_PAYLOAD_BYTES_MAX);
    check(stepping->payload != NULL);
}

static void end_stepping(struct stepping *stepping)
{
    replay_free(stepping->replay);
    free(stepping->payload);
}

/* --- what each machine is --- */

static const struct machine *best_record(const struct found_machine *machine,
                                         enum journal_trust least)
{
    const struct found_record *best = NULL;

    for (size_t i = 0; i < machine->records.count; i++) {
        const struct found_record *record = &machine->records.items[i];
        if (record->trust >= least && !record->base &&
            (best == NULL || record->trust > best->trust ||
             (record->trust == best->trust && record->record->revision > best->record->revision)))
            best = record;
    }
    return best == NULL ? NULL : best->record;
}

/* Without a judge, what belongs to the last commit for all that is known. */
static const struct machine *unjudged(const struct salvage *salvage,
                                      const struct found_machine *machine)
{
    bool trusted = salvage->file.certain || salvage->file.has_tail;

    return trusted ? best_record(machine, JOURNAL_REACHED) : NULL;
}

static const struct machine *state_of(const struct salvage *salvage,
                                      const struct found_machine *machine,
                                      const struct replay *replay)
{
    const struct machine *record = best_record(machine, JOURNAL_CURRENT);

    if (record != NULL)
        return record;
    if (!machine->has_event)
        return unjudged(salvage, machine);
    if (machine->ended)
        return NULL;
    if (!salvage->file.has_tail || machine->before_hole)
        return salvage->file.certain ? unjudged(salvage, machine) : NULL;
    record = left_by(machine, machine->digest);
    if (record != NULL)
        return record;
    record = replay_find(replay, &machine->id);
    return record != NULL && fsm_digest(record) == machine->digest ? record : NULL;
}

static void decide_machines(struct salvage *salvage, const struct replay *replay)
{
    struct found_machine *machine, *next;

    HASH_ITER(hh, salvage->machines, machine, next)
    {
        const struct machine *state = state_of(salvage, machine, replay);
        if (state != NULL) {
            machine->state = copy_of(state);
            salvage->result.machines++;
        } else if (machine->has_event && !machine->ended) {
            salvage->result.lost++;
            salvage_say(salvage, "%s %s: its record cannot be read; what it runs is ended",
                        machine_kind_name((enum machine_kind)machine->id.kind), machine->id.text);
        } else if (!machine->has_event) {
            salvage->result.doubtful++;
        }
    }
}

/* --- texts --- */

static bool is_live_alloc_of(const struct found_machine *machine, const char *job)
{
    char key[JOURNAL_KEY_SIZE];

    if (machine->state == NULL || machine->id.kind != MACHINE_ALLOC)
        return false;
    const struct alloc *alloc = (const void *)machine->state;
    return alloc->ended_unix_ns == 0 &&
           text_format(key, sizeof(key), "job/%s/%s", alloc->assign.namespace,
                       alloc->assign.job_id) &&
           text_equal(key, job);
}

/* Of texts that nothing leads to only those are taken that something living needs: a job that was
 * stopped or purged since must not begin again. */
static bool is_needed(const struct salvage *salvage, const struct found_blob *blob)
{
    const char *key = blob->key + 1;
    struct machine_id id = {.kind = MACHINE_ALLOC};

    if (blob->trust >= JOURNAL_REACHED || blob->key[0] == 'm')
        return true;
    if (text_starts_with(key, "alloc/") &&
        text_copy(id.text, sizeof(id.text), key + strlen("alloc/"))) {
        const struct found_machine *alloc = salvage_machine(salvage, &id);
        return alloc != NULL && (alloc->state != NULL || (alloc->has_event && !alloc->ended));
    }
    for (const struct found_machine *machine = salvage->machines; machine != NULL;
         machine = machine->hh.next) {
        if (is_live_alloc_of(machine, key))
            return true;
    }
    return false;
}

static void decide_blobs(struct salvage *salvage)
{
    struct found_blob *blob, *next;

    HASH_ITER(hh, salvage->blobs, blob, next)
    {
        blob->wanted = is_needed(salvage, blob);
        salvage->result.texts += blob->wanted;
        salvage->result.doubtful += !blob->wanted;
    }
}

/* --- history --- */

/* The first event behind the last hole. */
static size_t behind_holes(const struct salvage *salvage)
{
    size_t at = salvage->events.count;

    if (at > 0 && salvage->events.items[at - 1].sequence + 1 != salvage->file.next)
        return at; /* the newest are missing */
    while (at > 1 &&
           salvage->events.items[at - 2].sequence + 1 == salvage->events.items[at - 1].sequence)
        at--;
    return at == 0 ? 0 : at - 1;
}

static bool note_base(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct found_machine *machine = salvage_machine(ctx, id);

    check(machine != NULL);
    free(machine->base);
    machine->base = copy_of(record);
    return true;
}

/* Where the history that is brought over begins, and what each machine was then. */
static void begin_history(struct salvage *salvage, size_t history)
{
    struct found_machine *machine, *next;
    struct stepping stepping;

    begin_stepping(&stepping, salvage);
    for (size_t i = 0; i < history; i++)
        step_event(&stepping, i);
    HASH_ITER(hh, salvage->machines, machine, next)
    {
        free(machine->base);
        machine->base = NULL;
        machine->in_history = false;
    }
    for (int kind = 0; kind < MACHINE_KIND_COUNT; kind++)
        replay_each(stepping.replay, (enum machine_kind)kind, note_base, salvage);
    for (size_t i = history; i < salvage->events.count; i++) {
        step_event(&stepping, i);
        salvage_machine(salvage, &salvage->events.items[i].id)->in_history = true;
    }
    end_stepping(&stepping);
    salvage->history = history;
}

void salvage_decide(struct salvage *salvage)
{
    struct stepping stepping;
    size_t history = behind_holes(salvage);

    for (size_t i = 0; i < salvage->events.count; i++)
        salvage_machine(salvage, &salvage->events.items[i].id)->before_hole = i < history;
    begin_stepping(&stepping, salvage);
    for (size_t i = 0; i < salvage->events.count; i++)
        step_event(&stepping, i);
    decide_machines(salvage, stepping.replay);
    if (stepping.history > history)
        history = stepping.history;
    end_stepping(&stepping);
    decide_blobs(salvage);
    begin_history(salvage, history);
}
