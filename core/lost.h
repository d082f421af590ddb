/* Allocs whose records are lost: what their specifications still know of them. */
#ifndef CAIRN_CORE_LOST_H
#define CAIRN_CORE_LOST_H

#include "core/core.h"
#include "core/store.h"
#include "spec/spec.h"

/* What the claim of an alloc that runs by SPEC on VOLUME, one of its own, is made of. */
struct volume_define define_of_volume(const struct alloc_spec *spec,
                                      const struct spec_volume *volume);

/* What the specification of ALLOC says of its claim NAME; false: nothing, or it is lost, too. */
bool lost_claim(const struct store *store, const char *alloc, const char *name,
                struct volume_define *ret_define);

/* After core_restore: adopts each alloc of which the store has the specification and nothing
 * else.  ERR_CORRUPT: some specification cannot be read; the others have been seen to. */
int lost_adopt(const struct store *store, struct core *core, struct err *err);

/* Fills in job, namespace and group from the specification of ALLOC, and the tasks and claims it
 * had that ASSIGN does not know yet, the tasks as if they lived: what there is of them is ended by
 * the sweep.  Nothing if the specification is lost, too. */
void lost_alloc(const struct store *store, const char *alloc, struct alloc_assign *assign);

/* The same from the specification's TEXT. */
void lost_alloc_text(const char *text, size_t length, struct alloc_assign *assign);

#endif
