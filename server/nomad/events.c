/*
 * What has happened to the node, drivers and volumes, told to the servers as the node's events.
 *
 * The node keeps its last events, and until when the servers have heard of them; both survive it.
 * What was told and not answered is told again, so that one may be there twice, and none is missing
 * but those that the node itself has forgotten.
 */
#include "server/nomad/part.h"

static void events_in(struct nomad *nomad, uint64_t wait_ms)
{
    nomad->event_at_ms = nomad_now_ms(nomad) + wait_ms;
}

void nomad_events_changed(struct nomad *nomad)
{
    if (nomad == NULL || nomad->event_at_ms != 0)
        return;
    events_in(nomad, policy_push_after_ms(STATUS_LAZY));
}

static void told(void *ctx, const json_t *reply, const struct err *err)
{
    struct nomad *nomad = ctx;

    (void)err; /* whatever it is, they have to hear it */
    nomad->telling_events = false;
    if (reply != NULL)
        nomad->config.events_heard(nomad->config.ctx, nomad->events_until_unix_ns);
    events_in(nomad, reply != NULL ? policy_push_after_ms(STATUS_LAZY)
                                   : policy_push_again_ms(nomad->config.random(nomad->config.ctx)));
}

void events_wake(struct nomad *nomad)
{
    if (nomad->event_at_ms == 0 || nomad->event_at_ms > nomad_now_ms(nomad) ||
        nomad->telling_events || !nomad->registered)
        return;
    nomad->event_at_ms = 0;
    json_t *events = nomad->config.unheard_events(nomad->config.ctx, &nomad->events_until_unix_ns);
    if (events == NULL)
        return;
    nomad->telling_events = true;
    servers_call(nomad, "Node.EmitEvents",
                 json_pack("{s:{s:o}}", "NodeEvents", nomad->config.node_id, events), false,
                 NOMAD_CALL_MS, told, nomad);
}

void events_begin(struct nomad *nomad)
{
    events_in(nomad, 1);
}
