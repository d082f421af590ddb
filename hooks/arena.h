/* Memory that is given back all at once: what one launch or one question about it is made of. */
#ifndef CAIRN_HOOKS_ARENA_H
#define CAIRN_HOOKS_ARENA_H

#include <stddef.h>

struct hooks_chunk;

/* Zeroed before first use. */
struct hooks_arena {
    struct hooks_chunk *chunks; /* the newest first */
};

/* BYTES (bounded by the caller) of zeroed memory, owned by ARENA; dies when there is none. */
void *hooks_arena_new(struct hooks_arena *arena, size_t bytes);

/* A terminated copy of LENGTH bytes of TEXT. */
char *hooks_arena_copy(struct hooks_arena *arena, const char *text, size_t length);

void hooks_arena_free(struct hooks_arena *arena);

#endif
