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

bool job_is_purged(const struct job *job)
{
    return !job->unsaved && json_is_true(json_object_get(job->json, "cairnPurge"));
}

/* Its job was purged: it was told to go.  One that does not know was made again in place of a
 * record that was lost together with that. */
static bool has_to_go(const struct alone *alone, const struct alloc *alloc)
{
    const struct job *job = job_find(alone, alloc->assign.namespace, alloc->assign.job_id);

    return job != NULL && job_is_purged(job) && !alloc->destroy_wanted;
}

void alone_note_ended(void *ctx, const char *id, const struct alloc *alloc)
{
    struct alone *alone = ctx;
    int64_t age_ns = wall_since(alloc->ended_unix_ns, life_unix_ns(alone->config.life));

    alone_release(alone, id);
    ports_release(alone, id);
    grants_release(alone, id);
    users_release(alone, id);
    if (alloc->machine.state != A_TERMINAL)
        return; /* it is going */
    if (has_to_go(alone, alloc)) {
        struct machine_id gone = machine_id_make(MACHINE_ALLOC, id);
        core_tell(life_core(alone->config.life), &gone, AE_DESTROY, NULL);
        return;
    }
    if (kept_find(alone, id) != NULL)
        return; /* told of before */
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
