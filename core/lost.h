/* Allocs whose records are lost: what their specifications still know of them. */
#ifndef CAIRN_CORE_LOST_H
#define CAIRN_CORE_LOST_H

#include "core/core.h"
#include "core/store.h"

/* After core_restore: adopts each alloc of which the store has the specification and nothing
 * else.  ERR_CORRUPT: some specification cannot be read; the others have been seen to. */
int lost_adopt(const struct store *store, struct core *core, struct err *err);

/* Fills in job, namespace and group from the specification of ALLOC, and the tasks it had that
 * ASSIGN does not know yet, as if they lived: what there is of them is ended by the sweep.  Nothing
 * if the specification is lost, too. */
void lost_alloc(const struct store *store, const char *alloc, struct alloc_assign *assign);

/* The same from the specification's TEXT. */
void lost_alloc_text(const char *text, size_t length, struct alloc_assign *assign);

#endif
