/* The stand-alone control plane, handed to simulated worlds. */
#ifndef CAIRN_AGENT_LABORATORY_H
#define CAIRN_AGENT_LABORATORY_H

#include "sim/plane.h"

extern const struct sim_plane laboratory_plane;

#endif
