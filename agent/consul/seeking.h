/* Servers are looked for in Consul when none that is known answers (consul.client_auto_join). */
#ifndef CAIRN_AGENT_CONSUL_SEEKING_H
#define CAIRN_AGENT_CONSUL_SEEKING_H

struct parts;
struct seeking;

/* NULL: the configuration does not want that.  PARTS are borrowed. */
struct seeking *seeking_new(struct parts *parts);
void seeking_free(struct seeking *seeking);

/* Looks with SEEKING, a struct seeking; what is found goes to the client of servers
 * (server/nomad/nomad.h), never from inside.  Whoever was told nothing begins again. */
void seeking_begin(void *seeking);

#endif
