/*
 * fsm: decisions.  Machines are tables; one pure engine steps them.
 *
 *     event -> fsm_step -> record, effects, messages      (core/turn.c commits and performs)
 *
 * A machine is an instance of one of four lifecycles.  Its record is all there is to know about it:
 * a flat struct without pointers or hidden padding, so that equal machines are equal bytes.  A step
 * reads the record, the event and the time that came with it, nothing else; stepping a journal
 * again gives the same records, byte for byte.
 *
 * Words.  Row: {state, event, guard, next, effects}.  Lane: effects of one machine on one lane run
 * one at a time, in order.  Ticket: matches a completion to the issue of its effect.  Key: machine
 * id + generation, names the work in the outside world.  Node time: milliseconds that count sleep
 * and continue over restarts and reboots (core/clock.c).
 *
 * Follows DESIGN section 1 and the style page, 3.4.
 */
#ifndef CAIRN_FSM_FSM_H
#define CAIRN_FSM_FSM_H

#include "base/base.h"
#include "fsm/fields.h"

/* In the order in which a restart brings them back. */
enum machine_kind {
    MACHINE_PLUGIN,
    MACHINE_VOLUME,
    MACHINE_TASK,
    MACHINE_ALLOC,
    MACHINE_KIND_COUNT,
};

enum {
    MACHINE_ID_SIZE = 135,
    FSM_EVENTS_MAX = 64, /* width of an event mask */
    FSM_EFFECTS_MAX = 6, /* effects of one row */
    FSM_RECORD_BYTES_MAX = 48 * 1024,
    FSM_PAYLOAD_BYTES_MAX = 40 * 1024,
};

/* alloc: its UUID.  task, volume, plugin: "<alloc>/<name>", or "<type>/<name>" for a plugin that
 * belongs to the node. */
struct machine_id {
    uint8_t kind;
    char text[MACHINE_ID_SIZE];
};

struct machine_id machine_id_make(enum machine_kind kind, const char *text);
struct machine_id machine_id_join(enum machine_kind kind, const char *alloc, const char *name);
/* The alloc that a task, volume or plugin "<alloc>/<name>" belongs to, and the name. */
struct machine_id machine_id_owner(const struct machine_id *id);
const char *machine_id_name(const struct machine_id *id);

bool machine_id_equal(const struct machine_id *a, const struct machine_id *b);
/* Below, at or above 0: by kind, then by text. */
int machine_id_order(const struct machine_id *a, const struct machine_id *b);
/* Of what an id says, and not of the zeros behind it: for tables in memory. */
unsigned machine_id_hash(const struct machine_id *id);

/* True if a machine may have the id ID, which is from outside: it says whose it is, and what it
 * names in the file system stays there. */
bool machine_id_is_sound(const struct machine_id *id);
const char *machine_kind_name(enum machine_kind kind);

/* --- lanes --- */

enum fsm_lane {
    LANE_HOOK,   /* hooks of an alloc or task */
    LANE_DRIVER, /* processes */
    LANE_RPC,    /* calls to the server */
    LANE_NODE,   /* calls to a plugin, mounts, commands in a task */
    LANE_WAIT,   /* waiting for another alloc */
    LANE_COUNT,  /* lanes above are awaited; those below never complete */
    LANE_CLOCK,  /* the machine's own timer */
    LANE_TELL,   /* news and answers to the outside */
    LANE_SEND,   /* messages to other machines, in the same turn */
};

const char *fsm_lane_name(enum fsm_lane lane);

/* --- records --- */

/* Head of every record. */
struct machine {
    uint64_t revision;    /* events applied so far */
    uint64_t entered_ms;  /* node time at which the state was entered */
    uint64_t deadline_ms; /* node time of the next TIMEOUT, 0: none */
    uint32_t generation;  /* of the outside work; grows when new work begins */
    uint32_t tickets;     /* tickets issued so far */
    uint32_t attempt;     /* failed tries since the state was entered */
    uint32_t lane_ticket[LANE_COUNT];
    uint8_t lane_effect[LANE_COUNT]; /* the awaited effect of each lane, 0: none */
    uint8_t kind;                    /* enum machine_kind */
    uint8_t state;
    uint8_t restored; /* was brought back since it was defined */
};

/* --- events --- */

enum fsm_class {
    FSM_COMPLETION, /* of an effect: its lane must await its ticket, else it is stale */
    FSM_NEWS,       /* from the world, about one generation: another generation is stale */
    FSM_REQUEST,    /* from outside, somebody waits for an answer */
    FSM_MESSAGE,    /* from another machine or the control plane */
    FSM_CLOCK,      /* the deadline has passed: stale if it has been moved or cut */
    FSM_RESTORE,    /* the daemon has come back */
};

struct fsm_event {
    uint8_t kind;        /* in the machine's event list */
    uint8_t lane;        /* completions: enum fsm_lane */
    uint32_t ticket;     /* completions */
    uint32_t generation; /* news */
    uint64_t reply;      /* requests: who waits; not journaled, 0 for nobody */
    const void *payload; /* struct of the event's payload kind, NULL for none */
};

/* What comes with every step: time, chance, and what the core knows of the machine's peers. */
struct fsm_now {
    uint64_t ms;     /* node time */
    int64_t unix_ns; /* wall clock, for reports only; decides nothing */
    uint64_t seed;   /* chance for this one step */
    uint32_t peers;  /* FSM_PEER_* and a count, see volume.h; 0 for others */
};

/* --- tables --- */

enum fsm_state_flags {
    FSM_INITIAL = 1, /* no record exists */
    FSM_FINAL = 2,   /* the record is deleted by the commit that reaches it */
    FSM_RESTING = 4, /* may wait for ever */
};

enum {
    FSM_LIMIT_RULES = -1, /* the state's limit is computed by the machine's rules, when it begins */
    FSM_LIMIT_RECORD = -2, /* and after every step, from the record alone */
};

struct fsm_state {
    const char *name;
    int64_t limit_ms; /* 0: none; FSM_LIMIT_*; else TIMEOUT after this long */
    uint64_t ignored; /* late or repeated: counted, changes nothing */
    uint64_t never;   /* arrival is our own mistake */
    uint8_t flags;
};

struct fsm_row {
    uint8_t state, event, guard, next;
    uint8_t effects[FSM_EFFECTS_MAX]; /* performed in order after the commit; 0 ends the list */
};

struct fsm_event_def {
    const char *name;
    uint8_t class;   /* enum fsm_class */
    uint8_t payload; /* enum fsm_payload, fields.h */
};

struct fsm_effect_def {
    const char *name;
    uint8_t lane;
    uint64_t completions; /* mask of the events that can end it */
    uint32_t timeout_ms;  /* after which the router reports it failed; 0: never */
};

typedef bool fsm_guard(const struct machine *record, const struct fsm_event *event,
                       const struct fsm_now *now);

struct fsm_guard_def {
    const char *name;
    fsm_guard *holds; /* NULL: always */
};

/* Who gets a message. */
enum fsm_audience {
    TO_MACHINE,        /* the one named */
    TO_VOLUME_NEXT,    /* of the other claims on its volume that wait, one by one: who can go on */
    TO_VOLUME_HEIRS,   /* every other one that has to learn that the sender leaves it staged */
    TO_PLUGIN_WAITING, /* every claim that waits for the sending plugin */
};

struct fsm_message {
    enum fsm_audience audience;
    struct machine_id to;
    struct fsm_event event; /* payload copied by the receiver of the call */
};

typedef void fsm_send(void *ctx, const struct fsm_message *message);

/* One lifecycle. */
struct fsm_def {
    const char *name;
    const struct fsm_state *states;
    const struct fsm_row *rows;
    const struct fsm_event_def *events;
    const struct fsm_effect_def *effects; /* [0] is no effect */
    const struct fsm_guard_def *guards;   /* [0] is ALWAYS */
    uint16_t rows_count;
    uint8_t kind;
    uint8_t states_count, events_count, effects_count, guards_count;
    uint8_t timeout_event, restore_event;
    uint64_t paced; /* guards, a bit each: one holds a bounded number of times before a timer, a
                     * request or news of the world comes between; check 11 counts on them */
    uint64_t after_sweep;  /* effects, a bit each: after a restart they begin only when the node has
                            * looked for what runs and belongs to nobody (core_swept) */
    uint32_t record_bytes; /* of a record without its tail */
    uint64_t paced_events; /* the same of messages, a bit each: who sends them pauses */

    /* Rules, pure like everything here; see <machine>/rules.c. */
    void (*absorb)(struct machine *record, const struct fsm_event *event,
                   const struct fsm_now *now);
    void (*enter)(struct machine *record, const struct fsm_row *row, const struct fsm_event *event,
                  const struct fsm_now *now);
    uint64_t (*deadline)(const struct machine *record, const struct fsm_now *now);
    uint64_t (*backoff_ms)(const struct machine *record, const struct fsm_now *now);
    void (*send)(const struct machine_id *self, struct machine *record, uint8_t effect,
                 const struct fsm_event *event, fsm_send *send, void *ctx);
    uint32_t (*record_size)(const struct machine *record);
    const char *(*broken)(const struct machine *record); /* the violated invariant, or NULL */
    /* Of a record that was read: the wait that nobody has asked for, or NULL.  May be NULL. */
    const char *(*mistimed)(const struct machine *record);
};

/* The definition of a kind; never NULL. */
const struct fsm_def *fsm_definition(enum machine_kind kind);

/* --- the engine --- */

enum fsm_verdict {
    FSM_MOVED,   /* a row was taken; the record has changed */
    FSM_IGNORED, /* the state ignores this event */
    FSM_STALE,   /* a completion nobody awaits, news of another generation, an old timer */
    FSM_NEVER,   /* our own mistake: the caller asserts */
};

const char *fsm_verdict_name(enum fsm_verdict verdict);

struct fsm_issue {
    uint8_t effect;
    uint8_t lane;
    uint32_t ticket; /* 0 on lanes that never complete */
};

struct fsm_step {
    const struct fsm_row *row; /* NULL unless FSM_MOVED */
    uint8_t before, after;     /* states */
    uint8_t issues_count;
    struct fsm_issue issues[FSM_EFFECTS_MAX]; /* LANE_SEND and LANE_CLOCK effects left out */
};

/* Steps RECORD of the machine SELF.  RECORD has room for FSM_RECORD_BYTES_MAX bytes and is zeroed
 * beyond its size; it is changed only when the verdict is FSM_MOVED.  Messages go to SEND while it
 * runs.  Pure. */
enum fsm_verdict fsm_step(const struct fsm_def *def, const struct machine_id *self,
                          struct machine *record, const struct fsm_event *event,
                          const struct fsm_now *now, fsm_send *send, void *ctx,
                          struct fsm_step *ret_step);

/* True if EVENT, which has no payload, would lead RECORD into another state.  Pure. */
bool fsm_leads_on(const struct fsm_def *def, const struct machine *record,
                  const struct fsm_event *event, const struct fsm_now *now);

/* Makes the record of a machine that does not exist yet: initial state, zeroes.  RECORD has room
 * for FSM_RECORD_BYTES_MAX bytes. */
void fsm_absent(const struct fsm_def *def, struct machine *record);

/* Bytes of the record in use, its tail included. */
uint32_t fsm_record_size(const struct machine *record);

/* Digest of the record, as the journal keeps it with each event: of its fields that are not zero,
 * so that a field that a later version adds changes nothing of it (digest.c). */
uint64_t fsm_digest(const struct machine *record);

bool fsm_is_final(const struct machine *record);
bool fsm_is_absent(const struct machine *record);

/* The violated invariant of RECORD, or NULL: what holds after each step, counts and enums in range,
 * the tail inside bounds. */
const char *fsm_broken(const struct machine *record);

/* Why RECORD, read as that of ID, was written by nobody who went by these tables, or NULL: its
 * invariant is violated, or it has what no step checks since none makes it.  What is not senseless
 * can be stepped.  For each record from outside, before anything is done with it (sense.c). */
const char *fsm_senseless(const struct machine_id *id, const struct machine *record);

/* A guard for RESTORE: a pause before the next try is under way.  It goes on over a restart of the
 * daemon, which is neither a failed try nor a reason to try earlier. */
bool fsm_pausing(const struct machine *record, const struct fsm_event *event,
                 const struct fsm_now *now);

/* Name of the state, event, effect or guard NUMBER; "?" when out of range. */
const char *fsm_state_name(const struct fsm_def *def, unsigned number);
const char *fsm_event_name(const struct fsm_def *def, unsigned number);
const char *fsm_effect_name(const struct fsm_def *def, unsigned number);
const char *fsm_guard_name(const struct fsm_def *def, unsigned number);

/* What a journal calls the guard NUMBER: a number made of its name, since others may be added. */
uint32_t fsm_guard_mark(const struct fsm_def *def, unsigned number);

/* The index of the row of STATE and EVENT whose guard has MARK.  Where this version has none, which
 * the journal of another one may name, that of the row that is taken when no guard holds; where
 * nothing follows EVENT in STATE, 0. */
uint16_t fsm_row_marked(const struct fsm_def *def, uint8_t state, uint8_t event, uint32_t mark);

/* --- over the tables: checks and pictures --- */

typedef void fsm_print(void *ctx, const char *text);

/* Runs the static checks 1 to 10 of the style page, 3.4.3, and 11: nothing is done again and again
 * without a pause, whatever other machines say; prints a line for each violation and
 * returns how many there are. */
unsigned fsm_check(const struct fsm_def *def, fsm_print *print, void *ctx);

/* State x event, the golden form. */
void fsm_draw_matrix(const struct fsm_def *def, fsm_print *print, void *ctx);
void fsm_draw_dot(const struct fsm_def *def, fsm_print *print, void *ctx);
void fsm_draw_mermaid(const struct fsm_def *def, fsm_print *print, void *ctx);

#endif
