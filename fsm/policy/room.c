/*
 * Placement on one node: what an alloc asks for, and whether it is there.
 *
 * Follows nomad v1.1.2 nomad/structs: AllocatedResources.Comparable, which knows that prestart and
 * poststop tasks do not run beside the mains, and ComparableResources.Superset.
 */
#include "fsm/policy.h"

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static struct room larger_room(const struct room *a, const struct room *b)
{
    return (struct room){
        .cpu_mhz = larger(a->cpu_mhz, b->cpu_mhz),
        .memory_mb = larger(a->memory_mb, b->memory_mb),
        .disk_mb = larger(a->disk_mb, b->disk_mb),
        .cores = larger(a->cores, b->cores),
        .memory_most_mb = larger(a->memory_most_mb, b->memory_most_mb),
    };
}

void room_add(struct room *to, const struct room *more)
{
    to->cpu_mhz += more->cpu_mhz;
    to->memory_mb += more->memory_mb;
    to->disk_mb += more->disk_mb;
    to->cores += more->cores;
    to->memory_most_mb += more->memory_most_mb;
}

void room_drop(struct room *from, const struct room *less)
{
    from->cpu_mhz -= less->cpu_mhz;
    from->memory_mb -= less->memory_mb;
    from->disk_mb -= less->disk_mb;
    from->cores -= less->cores;
    from->memory_most_mb -= less->memory_most_mb;
}

void policy_ask_task(struct room_sum *sum, enum spec_lifecycle lifecycle, bool sidecar,
                     const struct room *task)
{
    switch (lifecycle) {
    case LIFECYCLE_MAIN:
    case LIFECYCLE_POSTSTART: /* beside the mains, for however long */
        room_add(&sum->mains, task);
        return;
    case LIFECYCLE_PRESTART:
        if (sidecar)
            room_add(&sum->sidecars, task);
        else
            room_add(&sum->before, task); /* they start at once */
        return;
    case LIFECYCLE_POSTSTOP:
        room_add(&sum->after, task);
        return;
    }
    unreachable("lifecycle");
}

struct room policy_ask(const struct room_sum *sum, uint64_t disk_mb)
{
    struct room ask = larger_room(&sum->mains, &sum->before);

    ask = larger_room(&ask, &sum->after);
    room_add(&ask, &sum->sidecars);
    ask.disk_mb = disk_mb;
    return ask;
}

/* True if ASK more than USED is within TOTAL, without a sum that could overflow. */
static bool fits(uint64_t total, uint64_t used, uint64_t ask)
{
    return ask <= total && used <= total - ask;
}

const char *policy_exhausted(const struct room *total, const struct room *used,
                             const struct room *ask)
{
    if (ask->cores > 0 && !fits(total->cores, used->cores, ask->cores))
        return "cores";
    if (!fits(total->cpu_mhz, used->cpu_mhz, ask->cpu_mhz))
        return "cpu";
    if (!fits(total->memory_mb, used->memory_mb, ask->memory_mb))
        return "memory";
    if (!fits(total->disk_mb, used->disk_mb, ask->disk_mb))
        return "disk";
    return NULL;
}

bool policy_matches(const char *pattern, const char *name)
{
    const char *star = NULL, *behind = name; /* the last *, and what it stands for ends here */

    while (*name != '\0') {
        if (*pattern == '*') {
            star = pattern++;
            behind = name;
        } else if (*pattern == *name) {
            pattern++;
            name++;
        } else if (star != NULL) {
            pattern = star + 1;
            name = ++behind;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}
