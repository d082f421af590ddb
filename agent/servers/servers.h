/*
 * Connections to Nomad's servers, for server/nomad, which is told of what happens here as the
 * daemon's part `nomad`.
 */
#ifndef CAIRN_AGENT_SERVERS_SERVERS_H
#define CAIRN_AGENT_SERVERS_SERVERS_H

#include "agent/api/api.h"
#include "server/assign.h"

struct servers;

/* How servers are looked for when none that is known answers; all zero: they are not. */
struct servers_seek {
    void (*begin)(void *ctx);
    void *ctx;
};

/* PARTS and API are borrowed; the life has started.  NULL: there are no servers. */
struct servers *servers_new(struct parts *parts, struct api *api, const struct assign_plans *plans,
                            const struct servers_seek *how);
void servers_free(struct servers *servers);

#endif
