/*
 * The HTTP API: Nomad's routes and JSON for what exists here.
 *
 * `nomad` 1.1.2 and `cairn` both speak to it.  It reads machines through the core, never changes
 * them itself, and answers a change only after the commit that made it durable.  Bounded: bodies,
 * connections, parked queries, streams; a slow reader is waited for, not buffered for.
 */
#ifndef CAIRN_AGENT_API_API_H
#define CAIRN_AGENT_API_API_H

#include "agent/parts.h"
#include "io/http.h"

struct api;

/* Listens on bind_addr and ports.http of the daemon's configuration and answers from now on. */
int api_new(struct parts *parts, struct api **ret_api, struct err *err);

/* Closes all connections.  Not from a callback of the API; no answer of the daemon may come
 * afterwards. */
void api_free(struct api *api);

/* True if only this machine reaches the numeric ADDRESS. */
bool api_is_loopback(const char *address);

/* Where it listens, with the port that port 0 became: "127.0.0.1:4646". */
const char *api_address(const struct api *api);

enum { API_ADDRESS_SIZE = 120 };

/* Where other programs on the network reach it, "host:port"; "": nobody does. */
void api_advertised(const struct api *api, char to[API_ADDRESS_SIZE]);

/* What servers are told of the node, and of ALLOC, in the form of io/rpc.h: new references; NULL:
 * there is no such alloc. */
json_t *api_describe_node(struct api *api);
json_t *api_describe_alloc(struct api *api, const char *alloc);

/* The same of EVENTS, as agent/node/health.h has them: a new reference. */
json_t *api_describe_events(const json_t *events);

/* Answers EXCHANGE, of somebody whom a server has let do what he asks for. */
void api_serve(struct api *api, struct http_exchange *exchange);

/* Reads the certificates again that the configuration, which has some, names. */
int api_renew(struct api *api, struct err *err);

#endif
