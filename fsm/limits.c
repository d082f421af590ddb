/* What follows from each other in limits.h must hold whatever its numbers are. */
#include "fsm/limits.h"

_Static_assert(JOB_ALLOCS_MAX >= JOB_COUNT_MAX, "one full group is a job");
_Static_assert(JOB_TASKS_MAX >= JOB_ALLOCS_MAX, "each alloc has a task");
_Static_assert(NODE_MEMBERS_MAX >= NODE_ALLOCS_MAX, "each alloc has a task");
_Static_assert(TURN_ASKED_A_MACHINE *NODE_MACHINES_MAX >=
                   2 * JOB_ALLOCS_MAX + JOB_TASKS_MAX + NODE_ALLOCS_MAX,
               "a registration that replaces a job fits one turn");
_Static_assert((long long)TURN_EVENTS_A_MACHINE *NODE_MACHINES_MAX < 1 << 30, "counted in 32 bits");
