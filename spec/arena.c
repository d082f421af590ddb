/*
 * Bump allocation in chunks.
 *
 * The first chunk is small, because most specifications are; each further one is twice as large, so
 * that a file of some megabytes is not made of thousands.
 */
#include "spec/arena.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK_FIRST = 1 << 10, CHUNK_MAX = 64 << 10, ALIGNMENT = 16 };

struct arena_chunk {
    struct arena_chunk *next;
    size_t used, size;
    _Alignas(ALIGNMENT) char bytes[];
};

/* A new chunk with room for BYTES. */
static struct arena_chunk *add_chunk(struct arena *arena, size_t bytes)
{
    size_t size = arena->chunks == NULL ? (size_t)CHUNK_FIRST : arena->chunks->size * 2;

    size = size > CHUNK_MAX ? (size_t)CHUNK_MAX : size;
    size = size < bytes ? bytes : size;
    struct arena_chunk *chunk = calloc(1, sizeof(*chunk) + size);
    check(chunk != NULL);
    chunk->size = size;
    chunk->next = arena->chunks;
    arena->chunks = chunk;
    return chunk;
}

void *arena_new(struct arena *arena, size_t bytes)
{
    struct arena_chunk *chunk = arena->chunks;
    size_t need = (bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);

    check(need >= bytes);
    if (chunk == NULL || chunk->size - chunk->used < need)
        chunk = add_chunk(arena, need);
    void *memory = chunk->bytes + chunk->used;
    chunk->used += need;
    return memory;
}

char *arena_copy(struct arena *arena, const char *text, size_t length)
{
    char *copy = arena_new(arena, length + 1);

    memcpy(copy, text, length);
    return copy;
}

char *arena_text(struct arena *arena, const char *text)
{
    return arena_copy(arena, text, strlen(text));
}

void *arena_more(struct arena *arena, void *items, size_t count, size_t item_bytes)
{
    if (count != 0 && (count & (count - 1)) != 0)
        return items;

    check(count <= SIZE_MAX / 2 / item_bytes);
    void *larger = arena_new(arena, (count == 0 ? 1 : count * 2) * item_bytes);
    if (count > 0)
        memcpy(larger, items, count * item_bytes);
    return larger;
}

void arena_free(struct arena *arena)
{
    while (arena->chunks != NULL) {
        struct arena_chunk *chunk = arena->chunks;

        arena->chunks = chunk->next;
        free(chunk);
    }
}
