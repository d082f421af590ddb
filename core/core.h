/*
 * core: events in, one commit, effects out.
 *
 * The core holds the machines of this node and runs the turn:
 *
 *     take all events -> step their machines -> one commit -> perform effects, answer callers
 *
 * Below it is a seam of two calls, `commit` and `perform`, and one way up, core_done and
 * core_news.  The daemon binds LMDB and the rooms to the seam (agent/world.c,
 * agent/perform/); the simulator binds a model of the world (sim/world/world.c).  Turn, lanes,
 * restore and replay are the same code in both.
 *
 * A commit that fails performs nothing (I-18): the turn's records are forgotten, requests are
 * refused, all other events wait in the queue for the next try.
 */
#ifndef CAIRN_CORE_CORE_H
#define CAIRN_CORE_CORE_H

#include "base/base.h"
#include "fsm/alloc.h"
#include "fsm/fsm.h"
#include "fsm/plugin.h"
#include "fsm/task.h"
#include "fsm/volume.h"
#include "journal/journal.h"

struct core;

/* --- the seam --- */

/* One effect to be performed.  Borrowed for the call. */
struct effect {
    struct machine_id id;
    uint8_t kind;                  /* in the machine's effect list */
    uint8_t lane;                  /* effects below LANE_COUNT end with exactly one core_done */
    uint32_t generation;           /* with ID the key of the work in the outside world */
    uint32_t timeout_ms;           /* the world answers, with a failure, by then; 0: it knows */
    uint64_t reply;                /* of the request that led here, 0: nobody waits */
    const struct machine *record;  /* the machine as it was committed */
    const struct request *request; /* payload of that request, or NULL */
};

struct world {
    void *ctx;
    /* Makes the batch durable, whole or not at all. */
    int (*commit)(void *ctx, const struct journal_batch *batch, struct err *err);
    /* Begins one effect.  May call core_done before it returns. */
    void (*perform)(void *ctx, const struct effect *effect);
    /* Tells whoever waits for REPLY that the request was not taken; ERR says why. */
    void (*refuse)(void *ctx, uint64_t reply, const struct err *err);
    /* Of an alloc whose record is lost, from its specification: fills in job, namespace and group,
     * and adds the members that ASSIGN lacks (there is room for ALLOC_MEMBERS_MAX).  Tasks among
     * them count as alive until core_swept.  Leaves ASSIGN as it is if the specification is lost,
     * too.  May be NULL. */
    void (*known)(void *ctx, const char *alloc, struct alloc_assign *assign);
    /* A transition has been committed: for logs, traces, coverage.  May be NULL. */
    void (*trace)(void *ctx, const struct journal_event *event);
    /* What the specification of ALLOC says of its claim NAME, whose record is lost; false if that
     * is lost, too.  May be NULL: there are no claims. */
    bool (*claim)(void *ctx, const char *alloc, const char *name, struct volume_define *ret_define);
    /* What its place says of a volume that is mounted for ALLOC and of which there is no record,
     * the NTH of them; false: there are no more.  Asked for claims whose specification is lost,
     * too: one is as good as another, as all of them are undone.  May be NULL. */
    bool (*place)(void *ctx, const char *alloc, unsigned nth, struct volume_define *ret_define);
    /* What was read of ID cannot be true, WHY says why: it contradicts another record or, later,
     * itself.  It has to be taken out of what is stored; the core goes on as if it had been
     * damaged, and what runs of it must be ended before core_swept is told again.  Called after a
     * commit, or by core_restore.  NULL: a machine that contradicts itself is our own mistake. */
    void (*put_aside)(void *ctx, const struct machine_id *id, const char *why);
};

struct core *core_new(const struct world *world);
void core_free(struct core *core);

/* --- events in --- */

/* Queues an event for the machine ID (copied with its payload).  It is stepped by the next turn. */
void core_post(struct core *core, const struct machine_id *id, const struct fsm_event *event);

/* A message or request without a payload struct of its own, the common case. */
void core_tell(struct core *core, const struct machine_id *id, uint8_t event, const void *payload);
void core_ask(struct core *core, const struct machine_id *id, uint8_t event, const void *payload,
              uint64_t reply);

/* How many events callers may still post before the next turn: who posts for a stranger asks first,
 * and refuses what does not fit. */
size_t core_room(const struct core *core);

/* The effect that runs on LANE of ID has ended with the completion EVENT.  Frees the lane and
 * begins what waited behind it.  Nothing happens if the machine is gone. */
void core_done(struct core *core, const struct machine_id *id, enum fsm_lane lane, uint8_t event,
               const void *payload);

/* News about the work of one generation. */
void core_news(struct core *core, const struct machine_id *id, uint32_t generation, uint8_t event,
               const void *payload);

/* Stores (BYTES) or deletes (NULL) a blob together with the events of the next turn.  The
 * specification "alloc/<id>" is deleted by the turn that removes the alloc's record. */
void core_spec(struct core *core, const char *key, const void *bytes, size_t length);
void core_meta(struct core *core, const char *key, const void *bytes, size_t length);

/* Between true and false: what is posted and stored is one proposal of the control plane, which
 * is dropped whole if its commit fails (the caller then says that it was refused). */
void core_propose(struct core *core, bool on);

/* Instead of core_propose(false): the proposal is taken back, nothing of it was ever posted. */
void core_abandon(struct core *core);

/* --- the turn --- */

/* Steps everything that is queued and every timer that is due, commits, performs.  Returns 0 or
 * the commit's error, whose events then wait for the next turn.  After ERR_LIMIT the next turns
 * begin with half as many, and an event that is too large by itself is given up, as ERR says: it
 * would keep all others waiting.  Times as in struct fsm_now. */
int core_turn(struct core *core, uint64_t now_ms, int64_t unix_ns, uint64_t seed, struct err *err);

/* True while a turn that was too large for one commit is made in parts: what was queued before it
 * is not all durable yet. */
bool core_in_parts(const struct core *core);

/* True if a turn would find something to do without any timer. */
bool core_has_work(const struct core *core);

/* Gives back the room that turns have needed; between two of them.  A large one has made it large,
 * and small ones are cheap to make it for again. */
void core_release_memory(struct core *core);

/* Node time of the next timer, 0 if there is none. */
uint64_t core_deadline_ms(const struct core *core);

/* --- the machines --- */

/* The committed record of ID, or NULL; borrowed until the next turn. */
const struct machine *core_find(const struct core *core, const struct machine_id *id);
const struct task *core_task(const struct core *core, const char *alloc, const char *task);
const struct alloc *core_alloc(const struct core *core, const char *alloc);
const struct volume *core_volume(const struct core *core, const char *alloc, const char *name);

/* Those whose ephemeral disk ALLOC takes over, the last first: the one before it, and, where that
 * ended before it had all of what it was to take over itself, the one before that.  Ids, borrowed
 * until the next turn, NULL-terminated; at most DISK_OWNERS_MAX. */
enum { DISK_OWNERS_MAX = 64 };
void core_disk_owners(const struct core *core, const struct alloc *alloc,
                      const char *ret_owners[DISK_OWNERS_MAX + 1]);

/* Each machine of KIND in the order in which they came; a callback that returns false ends it. */
typedef bool core_each_cb(void *ctx, const struct machine_id *id, const struct machine *record);
void core_each(const struct core *core, enum machine_kind kind, core_each_cb *cb, void *ctx);
size_t core_count(const struct core *core, enum machine_kind kind);

/* The same for the allocs of one job. */
void core_each_of_job(const struct core *core, const char *namespace, const char *job,
                      core_each_cb *cb, void *ctx);

/* The same for the claims on one volume of a plugin, and for the instances of a plugin. */
void core_each_of_volume(const struct core *core, const struct volume_define *volume,
                         core_each_cb *cb, void *ctx);
void core_each_of_plugin(const struct core *core, const char *plugin, core_each_cb *cb, void *ctx);

struct core_figures {
    uint64_t turns, events, ignored, stale, unknown, commits_failed, effects;
    uint64_t sequence; /* of the last committed event */
};
struct core_figures core_figures(const struct core *core);

/* --- restore --- */

/* Takes a record as it was stored; before core_restore and the first turn. */
void core_load(struct core *core, const struct machine_id *id, const struct machine *record);

/* Where numbering goes on: the sequence of the next event and the turn.  Before the first turn. */
void core_continue(struct core *core, uint64_t next_sequence, uint64_t turn);

/* Posts RESTORE to every loaded machine, plugins first, allocs last, and then what damaged or
 * missing records make necessary (restore.c).  Once, before the first turn.  AUTHORITY: the journal
 * decides what should run. */
void core_restore(struct core *core, bool authority, bool rebooted);

/* After core_restore: there is a specification of ALLOC.  If nothing else of it is left, its
 * records were lost: it is made again, in order to end it (I-17). */
void core_adopt(struct core *core, const char *alloc);

/* A sweep has answered.  DONE: whatever carries our mark and belongs to no machine has been ended,
 * tasks whose records were lost are dead, and their allocs may go on.  The first answer since
 * core_restore, whichever it is, lets begin what waited for it (fsm_def.after_sweep): one thing
 * that cannot be ended must not keep all others from running, and whoever starts a task looks for
 * what is left of that one, too. */
void core_swept(struct core *core, bool done);

/* --- flight recorder --- */

/* Prints the last transitions, oldest first. */
void core_flight_print(const struct core *core, fsm_print *print, void *ctx);

/* One line about a transition: "task 3f2a91c4/web STARTING -STARTED-> RUNNING +SEND_CHANGED". */
void core_describe(const struct journal_event *event, char *to, size_t size);

#endif
