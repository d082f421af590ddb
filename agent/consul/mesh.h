/*
 * How tasks in the mesh of Consul come to what they need beyond this node: their tokens, from
 * servers; the sockets in the directories of their allocs by which they reach Consul's agent from
 * networks of their own; and what the agent says of Envoy.
 *
 * Nothing of it is stored.  Who has a socket follows from the machines (policy_has_mesh) and from
 * what the job says: after a restart of the daemon there are new ones in the same place.
 */
#ifndef CAIRN_AGENT_CONSUL_MESH_H
#define CAIRN_AGENT_CONSUL_MESH_H

#include "hooks/hooks.h"
#include "journal/journal.h"

struct mesh;
struct parts;

enum {
    MESH_CONNECTIONS_MAX = 32, /* of one socket */
    MESH_SOCKETS_MAX = 4096,
};

/* NULL: the configuration has no block `consul`.  PARTS are borrowed. */
struct mesh *mesh_new(struct parts *parts);
void mesh_free(struct mesh *mesh);

/* All of these take NULL. */

/* What hooks ask of it; as long as MESH is. */
const struct hooks_connect *mesh_connect(const struct mesh *mesh);

/* The agent of Consul has answered. */
void mesh_found(struct mesh *mesh, const struct spec_pairs *attributes, const char *envoy);

/* EVENT was committed.  What follows from it is done when the turn is over. */
void mesh_note(struct mesh *mesh, const struct journal_event *event);
void mesh_settle(struct mesh *mesh);

#endif
