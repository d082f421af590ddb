/* The environment of a task, client-behaviour 5.1. */
#ifndef CAIRN_HOOKS_ENV_ENV_H
#define CAIRN_HOOKS_ENV_ENV_H

#include "hooks/env/map.h"
#include "hooks/part.h"

/* All layers in their order, then names cleaned.  ERR_INVALID for a name that no environment can
 * hold. */
int hooks_env_build(const struct hooks *hooks, const struct alloc_spec *alloc,
                    const struct task_spec *task, const uint8_t *results, uint32_t results_bytes,
                    struct hooks_env *env, struct err *err);

/* The same without what hooks leave, but for NETWORK, the status of the alloc's own network; NULL:
 * there is none, or it is not known yet. */
int hooks_env_build_task(const struct hooks *hooks, const struct alloc_spec *alloc,
                         const struct task_spec *task, const json_t *network, struct hooks_env *env,
                         struct err *err);

/* What can be said of ALLOC where it is no task's: in the network that its tasks share. */
int hooks_env_build_alloc(const struct hooks *hooks, const struct alloc_spec *alloc,
                          const json_t *network, struct hooks_env *env, struct err *err);

#endif
