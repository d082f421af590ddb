/* Bump allocation in chunks: a launch is some hundred small texts that end together. */
#include "hooks/arena.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK_BYTES = 8 * 1024, ALIGN = 16 };

struct hooks_chunk {
    struct hooks_chunk *next;
    size_t used, size;
    _Alignas(ALIGN) char bytes[];
};

void *hooks_arena_new(struct hooks_arena *arena, size_t bytes)
{
    struct hooks_chunk *chunk = arena->chunks;
    size_t need = (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);

    check(need >= bytes);
    if (chunk == NULL || chunk->size - chunk->used < need) {
        size_t size = need > CHUNK_BYTES ? need : (size_t)CHUNK_BYTES;

        chunk = calloc(1, sizeof(*chunk) + size);
        check(chunk != NULL);
        chunk->size = size;
        chunk->next = arena->chunks;
        arena->chunks = chunk;
    }
    void *memory = chunk->bytes + chunk->used;
    chunk->used += need;
    return memory;
}

char *hooks_arena_copy(struct hooks_arena *arena, const char *text, size_t length)
{
    char *copy = hooks_arena_new(arena, length + 1);

    memcpy(copy, text, length);
    return copy;
}

void hooks_arena_free(struct hooks_arena *arena)
{
    while (arena->chunks != NULL) {
        struct hooks_chunk *chunk = arena->chunks;

        arena->chunks = chunk->next;
        free(chunk);
    }
}
