/* An alloc whose record is lost: what its specification still knows of it. */
#ifndef CAIRN_AGENT_LOST_H
#define CAIRN_AGENT_LOST_H

#include "journal/journal.h"

/* Fills in job, namespace and group from the specification of ALLOC, and the tasks it had that
 * ASSIGN does not know yet, as if they lived: what there is of them is ended by the sweep.  Nothing
 * if the specification is lost, too. */
void lost_alloc(struct journal *journal, const char *alloc, struct alloc_assign *assign);

#endif
