/* Allocs that have ended and were not told to go. */
#include "server/alone/part.h"

#include <stdlib.h>

struct kept *kept_find(const struct alone *alone, const char *id)
{
    struct kept *kept;

    HASH_FIND_STR(alone->kept, id, kept);
    return kept;
}

void kept_drop(struct alone *alone, struct kept *kept)
{
    HASH_DEL(alone->kept, kept);
    free(kept);
}

void alone_note_ended(void *ctx, const char *id, const struct alloc *alloc)
{
    struct alone *alone = ctx;
    int64_t age_ns = life_unix_ns(alone->config.life) - alloc->ended_unix_ns;

    alone_release(alone, id);
    if (alloc->machine.state != A_TERMINAL || kept_find(alone, id) != NULL)
        return; /* it is going, or was told of before */
    struct kept *kept = calloc(1, sizeof(*kept));
    check(kept != NULL);
    (void)text_copy(kept->id, sizeof(kept->id), id); /* a UUID */
    kept->ended_unix_ns = alloc->ended_unix_ns;
    /* A wall clock that was set back since does not make it end later than now. */
    kept->ended_ms = (int64_t)life_now_ms(alone->config.life) - (age_ns > 0 ? age_ns / 1000000 : 0);
    struct job *job = job_find(alone, alloc->assign.namespace, alloc->assign.job_id);
    if (job != NULL && alloc->client_status == CLIENT_FAILED && !alloc->stop_wanted)
        alone_note_look(alone, job);
    HASH_ADD_STR(alone->kept, id, kept);
    const struct kept *before = kept->hh.prev;
    alone->kept_unsorted |= before != NULL && before->ended_unix_ns > kept->ended_unix_ns;
}
