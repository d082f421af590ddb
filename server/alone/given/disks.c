/*
 * Ephemeral disks that go on with the next alloc (sticky, migrate): whose is taken over by whom.
 *
 * An alloc takes over the disk of the one in whose place it comes, and begins when that has ended.
 * Until it has it, the directory of the one before it is not collected: not while it waits, and not
 * when it ended before it came so far, for then the next one still looks there.  That it has it is
 * in its record (fsm/alloc.h enum alloc_disk).
 */
#include "server/alone/part.h"

#include <stdlib.h>

/* Allocs that are to have one disk; the last of them will. */
struct disk {
    char of[UUID_TEXT_SIZE]; /* who had it */
    struct heir *heirs;
    UT_hash_handle hh;
};

struct heir {
    char alloc[UUID_TEXT_SIZE];
    struct disk *disk;
    struct heir *next;
    UT_hash_handle hh;
};

struct disks {
    struct disk *by_owner;
    struct heir *by_heir;
};

void disks_begin(struct alone *alone)
{
    alone->disks = calloc(1, sizeof(*alone->disks));
    check(alone->disks != NULL);
}

void disks_release(struct alone *alone, const char *alloc)
{
    struct heir *heir;

    HASH_FIND_STR(alone->disks->by_heir, alloc, heir);
    if (heir == NULL)
        return;
    struct disk *disk = heir->disk;
    struct heir **at = &disk->heirs;
    while (*at != heir)
        at = &(*at)->next;
    *at = heir->next;
    HASH_DEL(alone->disks->by_heir, heir);
    free(heir);
    if (disk->heirs != NULL)
        return;
    HASH_DEL(alone->disks->by_owner, disk);
    free(disk);
}

void disks_end(struct alone *alone)
{
    struct heir *heir, *next;

    HASH_ITER(hh, alone->disks->by_heir, heir, next)
    disks_release(alone, heir->alloc);
    check(alone->disks->by_owner == NULL);
    free(alone->disks);
    alone->disks = NULL;
}

void disks_keep(struct alone *alone, const char *alloc, const char *from)
{
    struct heir *heir = calloc(1, sizeof(*heir));
    struct disk *disk;

    check(heir != NULL);
    HASH_FIND_STR(alone->disks->by_owner, from, disk);
    if (disk == NULL) {
        disk = calloc(1, sizeof(*disk));
        check(disk != NULL);
        (void)text_copy(disk->of, sizeof(disk->of), from); /* both are UUIDs */
        HASH_ADD_STR(alone->disks->by_owner, of, disk);
    }
    (void)text_copy(heir->alloc, sizeof(heir->alloc), alloc);
    heir->disk = disk;
    heir->next = disk->heirs;
    disk->heirs = heir;
    HASH_ADD_STR(alone->disks->by_heir, alloc, heir);
}

static bool keep_stored(void *ctx, const struct machine_id *id, const struct machine *record)
{
    const struct alloc *alloc = alloc_of(record);

    if (alloc->disk != DISK_HERE)
        disks_keep(ctx, id->text, alloc->assign.disk_from);
    return true;
}

void disks_load(struct alone *alone)
{
    core_each(life_core(alone->config.life), MACHINE_ALLOC, keep_stored, alone);
}

static bool is_awaited(const struct alone *alone, const char *alloc, bool forced, int steps);

/* True while HEIR may still look for its disk.  FORCED: one that has ended does so only for whoever
 * is to have its disk, who looks there, too. */
static bool looks_for_it(const struct alone *alone, const struct heir *heir, bool forced, int steps)
{
    const struct alloc *alloc = core_alloc(life_core(alone->config.life), heir->alloc);

    if (alloc == NULL)
        return true; /* its commit is to come */
    if (alloc->disk == DISK_HERE)
        return false;
    return !forced || alloc->ended_unix_ns == 0 || is_awaited(alone, heir->alloc, true, steps - 1);
}

static bool is_awaited(const struct alone *alone, const char *alloc, bool forced, int steps)
{
    struct disk *disk = NULL;

    if (steps > 0)
        HASH_FIND_STR(alone->disks->by_owner, alloc, disk);
    for (const struct heir *heir = disk == NULL ? NULL : disk->heirs; heir != NULL;
         heir = heir->next) {
        if (looks_for_it(alone, heir, forced, steps))
            return true;
    }
    return false;
}

bool disks_is_awaited(const struct alone *alone, const char *alloc, bool forced)
{
    return is_awaited(alone, alloc, forced, DISK_OWNERS_MAX);
}

bool alone_disk_is_awaited(const struct alone *alone, const char *alloc)
{
    return disks_is_awaited(alone, alloc, true);
}

/* True if ALLOC, which has ended or is told to end now, never looks for the disk that it was to
 * take over: there would be ever more to be looked at by the last of many that come and go while
 * one ends.  One that waits hears of that end only when it was committed, and so after its own. */
static bool never_looks(const struct alone *alone, const struct alloc *alloc)
{
    const struct alloc *owner = core_alloc(life_core(alone->config.life), alloc->assign.disk_from);

    return alloc->disk == DISK_AWAY &&
           (alloc->ended_unix_ns != 0 ||
            (alloc->machine.state == A_WAITING && owner != NULL && owner->ended_unix_ns == 0));
}

const char *disks_source(const struct alone *alone, const json_t *group, const char *previous)
{
    const json_t *disk = json_object_get(group, "EphemeralDisk");
    const char *source = previous;

    if (previous == NULL || (!json_is_true(json_object_get(disk, "Sticky")) &&
                             !json_is_true(json_object_get(disk, "Migrate"))))
        return "";
    for (int step = 0; step < DISK_OWNERS_MAX; step++) {
        const struct alloc *alloc = core_alloc(life_core(alone->config.life), source);

        if (alloc == NULL)
            return text_equal(source, previous) ? source : ""; /* its commit is to come, or it is
                                                                  gone */
        if (!never_looks(alone, alloc))
            return alloc->destroy_wanted ? "" : source;
        source = alloc->assign.disk_from;
    }
    return ""; /* no such chain was ever made */
}
