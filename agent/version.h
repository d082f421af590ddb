/* What this program calls itself. */
#ifndef CAIRN_AGENT_VERSION_H
#define CAIRN_AGENT_VERSION_H

#define CAIRN_VERSION "0.1.0"

/* The client behaviour that jobs may rely on, as attr.nomad.version. */
#define CAIRN_NOMAD_VERSION "1.1.2"

#endif
