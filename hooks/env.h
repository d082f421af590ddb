/* The environment of a task, client-behaviour 5.1: a bounded map from name to value. */
#ifndef CAIRN_HOOKS_ENV_H
#define CAIRN_HOOKS_ENV_H

#include "hooks/arena.h"
#include "hooks/part.h"

enum {
    ENV_COUNT_MAX = 4096,
    ENV_ENTRY_MAX = 128 * 1024 - 1, /* "name=value"; the kernel's MAX_ARG_STRLEN with its NUL */
    ENV_BYTES_MAX = 1024 * 1024,    /* of all entries: half of what execve takes by default */
};

/* Zeroed before first use, but for the arena. */
struct hooks_env {
    struct hooks_arena *arena; /* owns names and values; borrowed */
    struct spec_pairs pairs;   /* ordered by name */
    size_t capacity, bytes;
};

/* The value of the variable whose name is LENGTH bytes at NAME; NULL if there is none. */
const char *hooks_env_find(const struct hooks_env *env, const char *name, size_t length);

/* Copies both; a name that is there already gets the new value.  ERR_LIMIT; messages tell the name
 * and never the value. */
int hooks_env_set(struct hooks_env *env, const char *name, const char *value, struct err *err);

/* All layers in their order, then names cleaned.  ERR_INVALID for a name that no environment can
 * hold. */
int hooks_env_build(const struct hooks *hooks, const struct alloc_spec *alloc,
                    const struct task_spec *task, const uint8_t *results, uint32_t results_bytes,
                    struct hooks_env *env, struct err *err);

#endif
