/*
 * The real world under a life: the journal, the clock of the loop, effects in the rooms, the log.
 */
#ifndef CAIRN_AGENT_WORLD_H
#define CAIRN_AGENT_WORLD_H

#include "agent/parts.h"

struct world_loop;

/* Where rooms that see no io say their lines. */
extern const struct say world_say;

/* A life over PARTS (whose loop, journal and node are there), called by the loop before each sleep.
 * PARTS is borrowed for its life; SEED is what the turns' chance comes from. */
struct world_loop *world_begin(struct parts *parts, uint64_t seed);
void world_end(struct world_loop *world);

/* Prints to standard error what the node did last, for whom it may concern after an assertion;
 * nothing when it has been called before. */
void world_tell(struct world_loop *world);

#endif
