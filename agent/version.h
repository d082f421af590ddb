/* What this program calls itself. */
#ifndef CAIRN_AGENT_VERSION_H
#define CAIRN_AGENT_VERSION_H

#define CAIRN_VERSION "0.1.0"

/* The client behaviour that jobs may rely on, as attr.nomad.version. */
#define CAIRN_NOMAD_VERSION "1.1.2"

/* The same to servers: checks of their own services need 1.4, cores of one NUMA node, which they
 * choose themselves, 1.6.3, and identities 1.7.  1.8 would promise schedules of tasks and Consul's
 * transparent proxy, 1.11 deployments of system jobs and identities of nodes. */
#define CAIRN_NOMAD_CLIENT_VERSION "1.7.7"

#endif
