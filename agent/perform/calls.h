/* Effects under way: where the answer to each goes.  Inside agent/perform only. */
#ifndef CAIRN_AGENT_PERFORM_CALLS_H
#define CAIRN_AGENT_PERFORM_CALLS_H

#include "agent/parts.h"

struct perform_call {
    struct parts *parts;
    struct perform_call *next, **link; /* all of them, PARTS->calls */
    struct machine_id id;
    uint32_t generation;
    uint64_t reply, begun_us;
    uint8_t effect, lane;
    uint8_t phase;  /* of a hook */
    bool untouched; /* nothing was there under the key when we began to look */
};

/* Whoever is called has it as its context, and frees it when it has answered. */
struct perform_call *perform_call_new(struct parts *parts, const struct effect *effect);
void perform_call_free(struct perform_call *call);

/* Answers: EVENT for the machine, on the lane of the effect; and frees it. */
void perform_call_end(struct perform_call *call, uint8_t event, const void *payload);

/* The task ID, if there is one, has an EVENT that says TEXT. */
void perform_note(struct parts *parts, const struct machine_id *id, enum task_event_type event,
                  const char *text);

#endif
