/*
 * What changes that no commit has decided yet do to allocs: one is placed, one is told to end.
 *
 * Requests that share a turn see each other's here (I-14).  A list for each job, in the order in
 * which it was posted, so that a change which fails takes back the end of it; and all that is told
 * to end by its id, because that is asked of every alloc there is.
 */
#include "server/alone/part.h"

#include <stdlib.h>

struct told {
    char alloc[UUID_TEXT_SIZE];
    size_t times; /* by changes that are yet to be decided */
    UT_hash_handle hh;
};

static struct told *find(const struct alone *alone, const char *alloc)
{
    struct told *told;

    HASH_FIND_STR(alone->told, alloc, told);
    return told;
}

bool posted_to_end(const struct alone *alone, const char *alloc)
{
    return find(alone, alloc) != NULL;
}

void posted_place(struct job *job, const struct machine_id *id, const char *group, uint32_t index)
{
    struct posted *posted = list_more(&job->posted);

    *posted = (struct posted){.id = *id, .index = index};
    (void)text_copy(posted->group, sizeof(posted->group), group); /* bounded when decoded */
}

void posted_stop(struct alone *alone, struct job *job, const struct machine_id *id)
{
    struct told *told = find(alone, id->text);

    check(id->kind == MACHINE_ALLOC);
    *list_more(&job->posted) = (struct posted){.id = *id, .stops = true};
    if (told == NULL) {
        told = calloc(1, sizeof(*told));
        check(told != NULL);
        (void)text_copy(told->alloc, sizeof(told->alloc), id->text); /* a UUID */
        HASH_ADD_STR(alone->told, alloc, told);
    }
    told->times++;
}

void posted_cut(struct alone *alone, struct job *job, size_t count)
{
    struct posted_list *list = &job->posted;

    check(count <= list->count);
    while (list->count > count) {
        const struct posted *posted = &list->items[--list->count];
        struct told *told = posted->stops ? find(alone, posted->id.text) : NULL;

        check(implies(posted->stops, told != NULL)); /* by posted_stop */
        if (told == NULL || --told->times > 0)
            continue;
        HASH_DEL(alone->told, told);
        free(told);
    }
    if (count == 0) { /* there may have been thousands, and it may stay so for long */
        free(list->items);
        *list = (struct posted_list){0};
    }
}
