/* What this program calls itself. */
#ifndef CAIRN_AGENT_VERSION_H
#define CAIRN_AGENT_VERSION_H

#define CAIRN_VERSION "0.1.0"

/* The client behaviour that jobs may rely on, as attr.nomad.version. */
#define CAIRN_NOMAD_VERSION "1.1.2"

/* The same to servers: checks of their own services need 1.4; 1.6.3 would promise memory of NUMA
 * nodes, 1.7 identities. */
#define CAIRN_NOMAD_CLIENT_VERSION "1.6.2"

#endif
