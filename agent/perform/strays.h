/* Volumes that are mounted and that nothing in the journal names. */
#ifndef CAIRN_AGENT_PERFORM_STRAYS_H
#define CAIRN_AGENT_PERFORM_STRAYS_H

#include "agent/parts.h"

struct strays;

struct strays *strays_new(struct parts *parts);

/* Before the volumes are freed. */
void strays_free(struct strays *strays);

/* life_world.place: of what is mounted for ALLOC, and no machine has. */
bool strays_find_place(const struct parts *parts, const char *alloc, unsigned nth,
                       struct volume_define *ret_define);

/* Payloads of allocs that nobody knows have been ended: what is mounted for them is unmounted after
 * a while.  Once in a life; again does nothing. */
void strays_swept(struct parts *parts);

#endif
