/* What this program calls itself. */
#ifndef CAIRN_AGENT_VERSION_H
#define CAIRN_AGENT_VERSION_H

#define CAIRN_VERSION "0.1.0"

/* The client behaviour that jobs may rely on, as attr.nomad.version. */
#define CAIRN_NOMAD_VERSION "1.1.2"

/* The same to servers, who let jobs with checks of their own services have nodes of 1.4, with cores
 * of one NUMA node of 1.6.3, and with identities of 1.7; 1.8 would promise schedules of tasks and
 * Consul's transparent proxy, 1.11 identities of nodes. */
#define CAIRN_NOMAD_CLIENT_VERSION "1.7.7"

#endif
