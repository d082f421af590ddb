/*
 * Nomad's servers, as this daemon speaks to them: server/nomad with connections, a timer, and what
 * the API says of node and allocs.
 *
 * A node without servers has none of this: each call takes NULL, and does nothing.
 */
#ifndef CAIRN_AGENT_SERVERS_H
#define CAIRN_AGENT_SERVERS_H

#include "agent/api/api.h"
#include "server/nomad/nomad.h"

struct servers;

/* PARTS and API are borrowed; the life has started.  NULL: there are no servers. */
struct servers *servers_new(struct parts *parts, struct api *api, const struct assign_plans *plans);
void servers_free(struct servers *servers);

/* As of nomad.h. */
void servers_note(struct servers *servers, const struct journal_event *event);
void servers_settle(struct servers *servers);
void servers_node_changed(struct servers *servers);

/* NULL: there are none. */
const struct nomad *servers_session(const struct servers *servers);

#endif
