/*
 * snapshot: all that decides what a core does next, to be looked at, changed and put back.
 *
 * For who goes with one core from state to state (sim/search): the machines with their committed
 * records, what is under way on their lanes, and the events that wait for the turn.  Counters and
 * the flight recorder are not part of it, and neither is what the next commit stores beside
 * records: a core that is put back has nothing of that to store.
 *
 *     core_save(core, &snapshot);
 *     snapshot.machines.items[0].record = changed;
 *     core_put(core, &snapshot);
 *     core_snapshot_free(&snapshot);
 */
#ifndef CAIRN_CORE_SNAPSHOT_H
#define CAIRN_CORE_SNAPSHOT_H

#include "core/core.h"

/* What runs on one lane of one machine, and what waits behind it.  Lives only in memory: after a
 * restart RESTORE rows issue again what has to be. */
struct lane {
    uint32_t ticket; /* of the newest issue of the work under way */
    uint32_t generation;
    uint32_t next_ticket;
    uint8_t effect;      /* under way, 0: none */
    uint8_t phase, hook; /* of a hook */
    uint8_t next_effect; /* waiting, 0: none */
    bool orphaned;       /* its machine has gone: the end of the work is told to nobody */
};

struct core_machine {
    struct machine_id id;
    const struct machine *record; /* NULL: it has gone, and work of it is under way */
    struct lane lanes[LANE_COUNT];
};

struct core_event {
    struct machine_id id;
    struct fsm_event event;
    bool proposal; /* of the control plane (core_propose) */
};

struct core_snapshot {
    struct {
        struct core_machine *items;
        size_t count, size;
    } machines; /* in the order in which they came */
    struct {
        struct core_event *items;
        size_t count, size;
    } events;     /* in the order in which they were posted, by whoever is outside */
    bool begun;   /* RESTORE was posted and turns were made: nothing is loaded any more */
    bool unswept; /* and no sweep has answered since: starts wait */
};

/* Takes the state of CORE out, between two turns.  SNAPSHOT, zeroed before its first use, owns its
 * lists; records and payloads are borrowed until something happens in CORE. */
void core_save(const struct core *core, struct core_snapshot *snapshot);

/* CORE is as SNAPSHOT says, whatever it was, between two turns.  Everything is copied; SNAPSHOT may
 * have been taken from CORE itself, whose part of it is then no longer to be looked at. */
void core_put(struct core *core, const struct core_snapshot *snapshot);

void core_snapshot_free(struct core_snapshot *snapshot);

#endif
