/* A bounded map from the names of variables to their values. */
#ifndef CAIRN_HOOKS_ENV_MAP_H
#define CAIRN_HOOKS_ENV_MAP_H

#include "base/base.h"
#include "spec/arena.h"
#include "spec/spec.h"

enum {
    ENV_COUNT_MAX = 4096,
    ENV_ENTRY_MAX = 128 * 1024 - 1, /* "name=value"; the kernel's MAX_ARG_STRLEN with its NUL */
    ENV_BYTES_MAX = 1024 * 1024,    /* of all entries: half of what execve takes by default */
};

/* Zeroed before first use, but for the arena. */
struct hooks_env {
    struct arena *arena;     /* owns names and values; borrowed */
    struct spec_pairs pairs; /* ordered by name */
    size_t bytes;            /* of all entries with their NULs */
};

/* The value of the variable whose name is LENGTH bytes at NAME; NULL if there is none. */
const char *hooks_env_find(const struct hooks_env *env, const char *name, size_t length);

/* Copies both; a name that is there already gets the new value.  ERR_LIMIT; messages tell the name
 * and never the value. */
int hooks_env_set(struct hooks_env *env, const char *name, const char *value, struct err *err);

/* Takes out the pair number AT. */
void hooks_env_drop(struct hooks_env *env, size_t at);

#endif
