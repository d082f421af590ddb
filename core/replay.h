/*
 * Replay: machines made again from what the journal stored.
 *
 * Steps stored events over stored bases with the same fsm_step that wrote them and compares what
 * comes out: row, states, effects with tickets, digest.  Used to verify a journal, to see a node as
 * it was at a sequence number, and to move bases forward when history is trimmed.
 */
#ifndef CAIRN_CORE_REPLAY_H
#define CAIRN_CORE_REPLAY_H

#include "core/core.h"

struct replay;

struct replay *replay_new(void);
void replay_free(struct replay *replay);
/* Forgets every machine. */
void replay_clear(struct replay *replay);

/* Takes a record as the machine's state before the first event of it that follows. */
void replay_base(struct replay *replay, const struct machine_id *id, const struct machine *record);

enum replay_result {
    REPLAY_SAME,
    REPLAY_NO_ROW,    /* the stored event is not a transition of the tables */
    REPLAY_OTHER_ROW, /* another row, state or effect than stored */
    REPLAY_DIGEST,    /* same transition, but the record differs */
};
const char *replay_result_name(enum replay_result result);

/* Steps EVENT.  On anything but REPLAY_SAME the machine goes on from what was computed. */
enum replay_result replay_step(struct replay *replay, const struct journal_event *event);

/* The same for an event that nobody's tables need have given: false if it broke an assertion, whose
 * text is then in RET_BROKEN, and the machine is as it was. */
bool replay_try(struct replay *replay, const struct journal_event *event,
                enum replay_result *ret_result, char ret_broken[ERR_TEXT_SIZE]);

/* The record as it is after the events so far; NULL if there is none (absent or final). */
const struct machine *replay_find(const struct replay *replay, const struct machine_id *id);
void replay_forget(struct replay *replay, const struct machine_id *id);

typedef bool replay_each_cb(void *ctx, const struct machine_id *id, const struct machine *record);
void replay_each(const struct replay *replay, enum machine_kind kind, replay_each_cb *cb,
                 void *ctx);

#endif
