/*
 * Lists that grow: any struct with `items`, `count` and `size`.
 *
 *     struct names { char **items; size_t count, size; };
 *     *list_more(&names) = name;
 *
 * Memory that is not to be had ends the process: what comes from outside is bounded before it is
 * listed.  Header only, so that base itself links no allocator.
 */
#ifndef CAIRN_BASE_LIST_H
#define CAIRN_BASE_LIST_H

#include "base/check.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* ITEMS with room for NEED of ITEM_BYTES each; *SIZE is how many there is room for.  At least
 * doubles, so that adding one by one costs the same for each. */
static inline void *list_room(void *items, size_t *size, size_t need, size_t item_bytes)
{
    size_t larger = *size < 8 ? 8 : *size;

    if (need <= *size)
        return items;
    while (larger < need)
        larger *= 2;
    check(larger <= SIZE_MAX / item_bytes);
    void *moved = realloc(items, larger * item_bytes);
    check(moved != NULL);
    *size = larger;
    return moved;
}

/* A place for one more at the end of LIST, not yet filled. */
#define list_more(list)                                                                            \
    ((list)->items =                                                                               \
         list_room((list)->items, &(list)->size, (list)->count + 1, sizeof(*(list)->items)),       \
     &(list)->items[(list)->count++])

/* Gives back what LIST has room for, if it is empty. */
#define list_release(list)                                                                         \
    ((list)->count == 0 ? (free((list)->items), (list)->items = NULL, (void)((list)->size = 0))    \
                        : (void)0)

#endif
