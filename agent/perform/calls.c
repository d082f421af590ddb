#include "agent/perform/calls.h"

#include "agent/perform/perform.h"

#include <stdlib.h>

struct perform_call *perform_call_new(struct parts *parts, const struct effect *effect)
{
    struct perform_call *call = calloc(1, sizeof(*call));

    check(call != NULL);
    call->parts = parts;
    call->id = effect->id;
    call->generation = effect->generation;
    call->reply = effect->reply;
    call->begun_us = loop_now_us();
    call->effect = effect->kind;
    call->lane = effect->lane;
    call->next = parts->calls;
    call->link = &parts->calls;
    if (call->next != NULL)
        call->next->link = &call->next;
    parts->calls = call;
    return call;
}

void perform_call_free(struct perform_call *call)
{
    *call->link = call->next;
    if (call->next != NULL)
        call->next->link = call->link;
    free(call);
}

void perform_call_end(struct perform_call *call, uint8_t event, const void *payload)
{
    core_done(call->parts->core, &call->id, (enum fsm_lane)call->lane, event, payload);
    perform_call_free(call);
}

void perform_forget(struct parts *parts)
{
    while (parts->calls != NULL)
        perform_call_free(parts->calls);
}

void perform_note(struct parts *parts, const struct machine_id *id, enum task_event_type event,
                  const char *text)
{
    struct kill_order note = {.event = (uint8_t)event};

    (void)text_copy(note.text, sizeof(note.text), text); /* cut is enough */
    text_whole(note.text);
    if (core_find(parts->core, id) != NULL)
        core_tell(parts->core, id, TE_NOTE, &note);
}
