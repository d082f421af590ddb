/*
 * Memory that is given back all at once: a tree, a specification, a launch are some hundred small
 * things that end together.
 */
#ifndef CAIRN_SPEC_ARENA_H
#define CAIRN_SPEC_ARENA_H

#include <stddef.h>

struct arena_chunk;

/* Zeroed before first use.  May be moved. */
struct arena {
    struct arena_chunk *chunks; /* the newest first */
};

/* BYTES (bounded by the caller) of zeroed memory, aligned for anything, owned by ARENA.  Memory
 * that is not to be had ends the process. */
void *arena_new(struct arena *arena, size_t bytes);

/* A copy of LENGTH bytes of TEXT, or of all of it, with a NUL behind. */
char *arena_copy(struct arena *arena, const char *text, size_t length);
char *arena_text(struct arena *arena, const char *text);

/* ITEMS, COUNT of ITEM_BYTES each, with room for one more.  Pass what the last call returned, NULL
 * at first: there is room for the next power of two. */
void *arena_more(struct arena *arena, void *items, size_t count, size_t item_bytes);

/* ARENA is empty then and may be used again. */
void arena_free(struct arena *arena);

#endif
