/* The core's own structures.  Inside core only. */
#ifndef CAIRN_CORE_MACHINES_PART_H
#define CAIRN_CORE_MACHINES_PART_H

#include "core/machines/index.h"
#include "core/snapshot.h"

#include <uthash.h>

/* Stays, without a record, while work of a machine that has gone is under way: one that is made
 * again under the same id must not meet it. */
struct slot {
    struct machine_id id;
    struct machine *record;  /* committed; NULL until its first commit */
    struct machine *pending; /* stepped in this turn, not yet committed */
    struct lane lanes[LANE_COUNT];
    uint64_t serial;                              /* in the order in which machines came */
    struct group_member groups[INDEX_GROUPS_MAX]; /* index.h */
    struct slot *kind_prev, *kind_next;           /* of the same kind */
    size_t due_at;                                /* in the heap, or INDEX_NONE */
    bool touched;
    bool read;     /* made by the journal, or in place of what it lost, and not by this process */
    bool forsaken; /* contradicted itself in this turn: nothing more is stepped */
    UT_hash_handle hh;
};

/* An event that waits for the turn. */
struct queued {
    struct machine_id id;
    struct fsm_event event;
    bool root;         /* came from outside: waits for the next turn if the commit fails */
    bool proposal;     /* of the control plane: dropped if the commit fails */
    bool relayed;      /* when its receiver has gone on, the next who can is told (turn.c) */
    size_t payload_at; /* in the queue's bytes; SIZE_MAX: none */
    size_t payload_size;
};

struct queue {
    struct queued *items;
    size_t count, size;
    unsigned char *bytes; /* payloads; items point to them by offset */
    size_t bytes_used, bytes_size;
};

struct slot_list {
    struct slot **items;
    size_t count, size;
};

/* A machine whose record is put aside after this turn. */
struct aside {
    struct machine_id id;
    char why[ERR_TEXT_SIZE];
};

struct aside_list {
    struct aside *items;
    size_t count, size;
};

struct step_list {
    struct journal_event *items;
    size_t count, size;
};

struct origin_list {
    size_t *items;
    size_t count, size;
};

struct flight {
    uint64_t now_ms;
    uint32_t sequence, ticket;
    uint16_t row;
    uint8_t kind, event, before, after;
    char id[22]; /* as much of it as fits */
};

enum { FLIGHT_SIZE = 4096 };

/* What the next commit stores or deletes beside records. */
struct blobs {
    struct journal_blob *items;
    bool *proposed; /* of each: it is dropped with the proposal if the commit fails */
    size_t count, size;
};

/* When the committed record of a machine wants TIMEOUT. */
struct due {
    uint64_t at_ms;
    struct slot *slot;
};

struct due_list {
    struct due *items;
    size_t count, size;
};

/* The machines of one kind, in the order in which they came. */
struct kind_list {
    struct slot *first; /* kind_prev of the first is the last */
    size_t count; /* of those that are there, and not only the last record of one that ended */
};

/* Where everything ended that was there before a proposal. */
struct proposal_mark {
    size_t events, bytes, specs, metas;
};

struct core {
    struct world world;
    struct slot *machines; /* by id; groups, kinds and deadlines find them otherwise (index.h) */
    struct group *groups;
    struct kind_list kinds[MACHINE_KIND_COUNT];
    struct due_list due;
    uint64_t serials;
    struct queue queue, spare;
    struct queue held;        /* of a turn that was too large: what follows the part under way */
    size_t part;              /* how many events a part begins with; 0: turns are made whole */
    struct slot_list touched; /* by the turn under way */
    struct aside_list aside;
    struct step_list steps;
    struct origin_list origins; /* of each step: its place in the queue */
    struct blobs specs, metas;
    struct {
        struct machine **items; /* by core_put, which frees them last */
        size_t count, size;
    } replaced;
    struct machine *scratch;
    uint32_t scratch_used;
    struct core_figures figures;
    struct flight *flights; /* ring */
    uint64_t flights_count;
    bool in_turn, proposing;
    struct proposal_mark before; /* of the proposal that is being made */
    bool restored, turned;       /* what comes first comes once: records, RESTORE, turns */
    bool unswept; /* since RESTORE no sweep has answered: what is `after_sweep` waits */
};

struct slot *slot_find(const struct core *core, const struct machine_id *id);
struct slot *slot_add(struct core *core, const struct machine_id *id);
void slot_remove(struct core *core, struct slot *slot);

/* RECORD (moved, NULL: none) is the committed one from now on. */
void slot_commit(struct core *core, struct slot *slot, struct machine *record);

/* The same, and the one before is the caller's. */
struct machine *slot_exchange(struct core *core, struct slot *slot, struct machine *record);

/* The machine has gone: removes the slot as soon as nothing of it is under way. */
void slot_retire(struct core *core, struct slot *slot);

/* The newest record: of this turn, or as committed, or NULL. */
static inline const struct machine *slot_now(const struct slot *slot)
{
    return slot->pending != NULL ? slot->pending : slot->record;
}

/* Begins an effect, or lets it wait for its lane or the sweep, or renews the ticket of the same
 * work. */
void lane_issue(struct core *core, struct slot *slot, const struct fsm_issue *issue, uint64_t reply,
                const struct request *request);

/* The sweep has answered: begins what has waited for it. */
void lanes_open(struct core *core);

/* --- restore.c --- */

/* Forgets the machine ID as if its record had been damaged, and does what that makes necessary. */
void core_put_aside(struct core *core, const struct machine_id *id, const char *why);

/* --- queue.c: what waits for the turn --- */

/* How many events the turn begins with that no proposal is made of: those stay whole. */
size_t queue_begun(const struct core *core);

/* Keeps PART of them for this turn, and holds the others back until queue_resume, which puts them
 * behind what is queued then.  Timers beyond it are dropped: every turn asks for them. */
void queue_hold(struct core *core, size_t part);
void queue_resume(struct core *core);

/* ROOT: it came from outside, and waits for the next turn if the commit fails. */
void queue_add(struct core *core, const struct machine_id *id, const struct fsm_event *event,
               bool root);

/* The payload of ITEM, borrowed until QUEUE grows; NULL: none. */
const void *queue_payload(const struct queue *queue, const struct queued *item);

/* Events of one turn. */
size_t queue_events_max(const struct core *core);

/* enum fsm_payload of EVENT. */
uint8_t queue_payload_kind(const struct machine_id *id, uint8_t event);

void blobs_clear(struct blobs *blobs);

/* Only the first COUNT stay. */
void blobs_cut(struct blobs *blobs, size_t count);
void blobs_free(struct blobs *blobs);

/* The commit has failed: what belonged to a proposal goes with it, the rest waits. */
void blobs_drop_proposed(struct blobs *blobs);

/* --- flight.c --- */

void flight_note(struct core *core, const struct journal_event *event);

/* Logs what led to an assertion: the event, the state, the last transitions. */
void core_complain(const struct core *core, const struct machine_id *id,
                   const struct machine *record, const struct fsm_event *event);

#endif
