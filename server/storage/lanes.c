/*
 * One thing after the other is done to a volume, as CSI wants it: claims, and what callers ask for,
 * each with its calls.  A volume has a lane while there is something to do.
 */
#include "server/storage/part.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

struct lane {
    char key[SPEC_NAMESPACE_SIZE + REGISTRY_ID_SIZE];
    struct lane_task *tasks; /* the first has its turn */
    bool runs;               /* somebody further down begins what comes next */
    UT_hash_handle hh;
};

static struct lane *find_or_add(struct storage *storage, const char *namespace, const char *id)
{
    char key[sizeof(storage->lanes->key)];
    struct lane *lane;

    (void)text_format(key, sizeof(key), "%s/%s", namespace, id); /* both are bounded */
    HASH_FIND_STR(storage->lanes, key, lane);
    if (lane != NULL)
        return lane;
    lane = calloc(1, sizeof(*lane));
    check(lane != NULL);
    memcpy(lane->key, key, sizeof(key));
    HASH_ADD_STR(storage->lanes, key, lane);
    return lane;
}

/* Each may be over before its turn returns: then it is the next one's, here and not inside it. */
static void run(struct storage *storage, struct lane *lane)
{
    if (lane->runs)
        return;
    lane->runs = true;
    while (lane->tasks != NULL && !lane->tasks->has_begun) {
        lane->tasks->has_begun = true;
        lane->tasks->begin(lane->tasks);
    }
    lane->runs = false;
    if (lane->tasks != NULL)
        return;
    HASH_DEL(storage->lanes, lane);
    free(lane);
}

void lane_enter(struct lane_task *task, const char *namespace, const char *id)
{
    struct lane *lane = find_or_add(task->storage, namespace, id);
    bool is_free = lane->tasks == NULL;

    task->lane = lane;
    DL_APPEND(lane->tasks, task);
    if (is_free)
        run(task->storage, lane);
}

void lane_leave(struct lane_task *task)
{
    struct lane *lane = task->lane;

    check(lane->tasks == task);
    DL_DELETE(lane->tasks, task);
    run(task->storage, lane);
}

void lanes_free(struct storage *storage)
{
    struct lane *lane, *next;

    HASH_ITER(hh, storage->lanes, lane, next)
    {
        struct lane_task *task, *behind;

        DL_FOREACH_SAFE(lane->tasks, task, behind)
        task->drop(task);
        HASH_DEL(storage->lanes, lane);
        free(lane);
    }
}
