/*
 * The HTTP API: Nomad's routes and JSON for what exists here.
 *
 * `nomad` 1.1.2 and `cairn` both speak to it.  It reads machines through daemon.h, never changes
 * them itself, and answers a change only after the commit that made it durable.  Bounded: bodies,
 * connections, parked queries, streams; a slow reader is waited for, not buffered for.
 */
#ifndef CAIRN_AGENT_API_H
#define CAIRN_AGENT_API_H

#include "agent/daemon.h"

struct api;

/* Listens on bind_addr and ports.http of the daemon's configuration and answers from now on; NULL
 * with ERR if it cannot. */
struct api *api_new(struct daemon *daemon, struct err *err);

/* Closes all connections.  Not from a callback of the API; no answer of the daemon may come
 * afterwards. */
void api_free(struct api *api);

/* Where it listens, after the system has chosen a port for 0. */
uint16_t api_port(const struct api *api);

#endif
