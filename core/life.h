/*
 * The life of a node, once: what the daemon, the laboratory and the inspector all run.
 *
 *     load what the journal holds -> RESTORE -> turn, answers, turn, answers ...
 *                                          \-> after the first turn: end what belongs to nobody
 *
 * A life owns the core, who waits for what, and the bounds of the log.  What differs is the world
 * that is handed in: where things are written down (store.h), what time it is, who performs
 * effects. A commit that fails is tried again after a second; until then requests are refused and
 * payloads left alone (I-18).  Every answer to a caller is given after the commit that made it
 * true, or says why it was refused (I-14).
 */
#ifndef CAIRN_CORE_LIFE_H
#define CAIRN_CORE_LIFE_H

#include "core/core.h"
#include "core/say.h"
#include "core/store.h"

struct life;

struct life_world {
    void *ctx;
    struct store store;
    struct say say;
    uint64_t events_max; /* that the log keeps; 0: RETENTION_EVENTS_MAX */
    /* Node time, as fsm_now.ms, and the wall clock. */
    uint64_t (*now)(void *ctx, int64_t *ret_unix_ns);
    /* Random bits for the turn that begins. */
    uint64_t (*random)(void *ctx);
    /* life_turn wants to be called at this node time even if nothing is posted; 0: it does not.
     * NULL: the caller looks at life_deadline_ms. */
    void (*arm)(void *ctx, uint64_t at_ms);
    /* Begins one effect; calls life_perform first, which sees to those that are the life's own. */
    void (*perform)(void *ctx, const struct effect *effect);
    /* Called right before and right after each commit, whose middle it cannot see.  May be NULL. */
    void (*around_commit)(void *ctx);
    /* A transition has been committed.  May be NULL. */
    void (*trace)(void *ctx, const struct journal_event *event);
    /* Begins to end whatever carries our mark and belongs to no machine (I-1), which ends with one
     * life_swept, within a bound: no task is started before the first. */
    void (*sweep)(void *ctx);
    /* As in struct world; NULL: what the store's specification of the alloc says. */
    void (*known)(void *ctx, const char *alloc, struct alloc_assign *assign);
    /* Why nothing new may be started at the moment though the journal takes what there is to write,
     * or NULL.  May be NULL. */
    const char *(*restriction)(void *ctx);
    /* As in struct world; may be NULL. */
    bool (*claim)(void *ctx, const char *alloc, const char *name, struct volume_define *ret_define);
    bool (*place)(void *ctx, const char *alloc, unsigned nth, struct volume_define *ret_define);
};

/* Nothing is read before life_start. */
struct life *life_new(const struct life_world *world);

/* Whoever still waits is not told. */
void life_free(struct life *life);

/* Borrowed for its life. */
struct core *life_core(struct life *life);

/* --- who decides what runs --- */

/* Told by the life; each member may be NULL. */
struct life_control {
    void *ctx;
    /* Machines are loaded, nothing is restored yet. */
    int (*load)(void *ctx, struct err *err);
    /* A commit was made, or has failed with CODE, ERR says why, and took all proposals with it. */
    void (*settled)(void *ctx, int code, const struct err *err);
    /* An alloc has ended, for the first time or again after a restart; or it has gone, and ALLOC is
     * the last record of it.  Borrowed. */
    void (*alloc_ended)(void *ctx, const char *id, const struct alloc *alloc);
    void (*alloc_gone)(void *ctx, const char *id, const struct alloc *alloc);
    /* What users see of an alloc has changed: its status, its health.  Borrowed. */
    void (*alloc_changed)(void *ctx, const char *id, const struct alloc *alloc);
    /* A turn is over; what is posted now is work for the next one. */
    void (*tidy)(void *ctx);
    /* Node time at which tidy wants to be called though nothing has happened; 0: it does not. */
    uint64_t (*deadline_ms)(void *ctx);
};

/* Before life_start. */
void life_control(struct life *life, const struct life_control *control);

/* --- start --- */

struct life_start {
    uint64_t last_turn; /* of the journal */
    bool authority;     /* the journal decides what should run: no server is asked first */
    bool rebooted;
};

/* Loads every record as it was stored, puts what cannot be read into quarantine, and posts RESTORE
 * to each machine, and what else damage makes necessary.  ERR_CORRUPT: some specification of an
 * alloc without a record cannot be read; the others have been seen to. */
int life_start(struct life *life, const struct life_start *how, struct err *err);

/* Each stored specification whose key begins with PREFIX; as journal_each_spec. */
int life_each_spec(const struct life *life, const char *prefix, journal_blob_cb *cb, void *ctx,
                   struct err *err);

/* Puts the specification KEY, which is wrong as WHY says, into quarantine.  Not during a walk. */
int life_spec_aside(struct life *life, const char *key, const char *why, struct err *err);

/* One of them; both owned by the caller.  ERR_GONE: there is none. */
int life_read_spec(const struct life *life, const char *key, char **ret_bytes, size_t *ret_length,
                   struct err *err);

/* --- turns --- */

/* One turn if there is anything to do, then answers and whatever else follows a commit.  True:
 * there is more to do at once. */
bool life_turn(struct life *life);

/* True if life_turn would step machines now. */
bool life_has_work(struct life *life);

/* Node time at which life_turn wants to be called though nothing is posted, 0: never. */
uint64_t life_deadline_ms(const struct life *life);

/* The sweep is over: DONE, or it has failed and is made again after a while.  After a restart tasks
 * are started from the first answer on. */
void life_swept(struct life *life, bool done);

/* Why the journal cannot be written at the moment, or NULL: the node is degraded (I-18). */
const char *life_degraded(const struct life *life);

/* Why nothing new is started at the moment, or NULL: what runs is watched, and can be stopped. */
const char *life_restriction(const struct life *life);

/* Either of the two, for those who are told how the node is. */
const char *life_trouble(const struct life *life);

/* 0; or ERR_AGAIN if EVENTS more cannot be posted in this turn, as the node is degraded or too many
 * have been. */
int life_check_turn(const struct life *life, size_t events, struct err *err);

/* --- time --- */

uint64_t life_now_ms(const struct life *life);
int64_t life_unix_ns(const struct life *life);

/* --- effects that are the life's own --- */

/* Performs EFFECT if it only tells somebody who waits here; false: it is for the world. */
bool life_perform(struct life *life, const struct effect *effect);

/* --- asking --- */

/* CODE is 0, or ERR_* with ERR saying why.  Called once, after the commit that made it so; a
 * refusal may come at once. */
typedef void life_answer(void *ctx, int code, const struct err *err);

/* Asks one machine; EVENT is a request of its kind.  If too many wait already, ANSWER is called
 * with ERR_AGAIN before this returns. */
void life_ask(struct life *life, const struct machine_id *id, uint8_t event,
              const struct request *request, life_answer *answer, void *ctx);

/* Gives their answer to whoever waits under TOKEN (effect.reply); 0 is nobody. */
void life_reply(struct life *life, uint64_t token, int code, const struct err *err);

/* Calls ANSWER after the commit that makes durable what has been posted so far, or when that commit
 * has failed and all of it was dropped.  Somebody waits: a commit that failed before is tried again
 * at once. */
void life_after_commit(struct life *life, life_answer *answer, void *ctx);

/* --- waiting for others --- */

/* WAITS_FOR is asked of an alloc in A_WAITING whether those that it waits for are more than its
 * record names, and have not all ended; before the first turn.  NULL: of none they are. */
void life_others(struct life *life, bool (*waits_for)(void *ctx, const char *alloc), void *ctx);

/* What it says of ALLOC may be otherwise by now. */
void life_look_again(struct life *life, const char *alloc);

/* --- watching --- */

/* What a watcher wants to hear of. */
enum life_subject_kind { LIFE_EVERYTHING, LIFE_JOB, LIFE_ALLOC };

struct life_subject {
    enum life_subject_kind kind;
    const char *namespace; /* of a job; borrowed, as ID is */
    const char *id;        /* of a job or an alloc */
};

/* Something users see of SUBJECT has changed, and so has everything.  A job's allocs are part of
 * it; their changes the life knows itself. */
void life_changed(struct life *life, const struct life_subject *subject);

/* SUBJECT is no more, or it is forgotten. */
void life_gone(struct life *life, const struct life_subject *subject);

/* The sequence of the last commit that changed something users see of SUBJECT, or a later one;
 * after a restart that of the start.  It never decreases, and is never more than that of
 * everything. */
uint64_t life_index(const struct life *life, const struct life_subject *subject);

/* What is changed now is stored with this index: more than life_index of anything, and no more than
 * that of what this turn's commit changes, though that may have no event. */
uint64_t life_next_index(const struct life *life);

/* Something that is loaded has INDEX, of before the restart: what is changed from now on has more.
 * One that nothing can ever have had is passed over. */
void life_index_follows(struct life *life, uint64_t index);

/* CB is called after each commit that changed something users see of SUBJECT, of which there need
 * not be one.  It may watch and unwatch. */
void life_watch(struct life *life, const struct life_subject *subject, void (*cb)(void *ctx),
                void *ctx);
void life_unwatch(struct life *life, const struct life_subject *subject, void (*cb)(void *ctx),
                  void *ctx);

/* CB is told of each subject, but for everything, that has changed by a commit, with that commit's
 * INDEX, and last of LIFE_EVERYTHING; before those who watch.  There is one listener; NULL: none.
 * It changes nothing, and what it gets is borrowed. */
void life_listen(struct life *life,
                 void (*cb)(void *ctx, uint64_t index, const struct life_subject *subject),
                 void *ctx);

/* --- the end --- */

/* The callers' end comes first: nobody who waits is told any more. */
void life_forget_callers(struct life *life);

#endif
