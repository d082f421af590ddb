/*
 * What allocs, and the node itself, offer by Consul, between the catalogue, which knows what is
 * offered, and the agent of Consul (hooks/consul/consul.h): services go there, and what is found
 * comes back, of checks to the catalogue, of the agent itself to the node's attributes.
 *
 * It holds nothing that is not in the catalogue or the configuration.
 */
#ifndef CAIRN_AGENT_CONSUL_REGISTRAR_H
#define CAIRN_AGENT_CONSUL_REGISTRAR_H

struct parts;
struct registrar;

/* NULL: the configuration has no block `consul`.  PARTS, whose catalogue is there, are borrowed;
 * to be made before the first event. */
struct registrar *registrar_new(struct parts *parts);

/* All others take NULL. */

/* The node offers its own API, at ADDRESS ("host:port"), if the configuration says so. */
void registrar_advertise(struct registrar *registrar, const char *address);

/* Everything stays registered: what is offered runs on. */
void registrar_free(struct registrar *registrar);

#endif
