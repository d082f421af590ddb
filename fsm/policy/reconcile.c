/* What the stand-alone control plane wants, as pure functions over what there is. */
#include "fsm/policy.h"

#include <string.h>

static struct reconcile_group *find(struct reconcile_group *groups, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (text_equal(groups[i].name, name))
            return &groups[i];
    }
    return NULL;
}

void policy_reconcile(enum spec_job_type type, struct reconcile_alloc *allocs, size_t allocs_count,
                      struct reconcile_group *groups, size_t groups_count)
{
    for (size_t g = 0; g < groups_count; g++) {
        check(implies(groups[g].count > 0, groups[g].place != NULL));
        for (uint32_t i = 0; i < groups[g].count; i++)
            groups[g].place[i] = true;
    }
    for (size_t a = 0; a < allocs_count; a++) {
        struct reconcile_alloc *alloc = &allocs[a];
        struct reconcile_group *group = find(groups, groups_count, alloc->group);
        bool wanted = group != NULL && alloc->index < group->count && alloc->current;
        /* A second live alloc for one index: the first one found fills it, this one goes. */
        bool needed = wanted && group->place[alloc->index];
        bool done =
            (type == JOB_BATCH && alloc->succeeded) || (type == JOB_SYSBATCH && alloc->ended);
        bool fills = alloc->live || done;

        if (needed && fills && !alloc->canary)
            group->place[alloc->index] = false;
        alloc->stop = alloc->live && !needed && !alloc->canary;
    }
    for (size_t a = 0; a < allocs_count; a++) {
        struct reconcile_group *group = find(groups, groups_count, allocs[a].group);

        if (group != NULL && allocs[a].awaited && allocs[a].index < group->count)
            group->place[allocs[a].index] = false;
    }
}

bool policy_is_relieved(enum spec_job_type type, const struct alloc *alloc)
{
    return (type == JOB_SERVICE || type == JOB_BATCH) && alloc->ended_unix_ns != 0 &&
           alloc->client_status == CLIENT_FAILED && !alloc->stop_wanted && !alloc->destroy_wanted;
}

bool policy_awaits_next(const struct succession *succession)
{
    bool wanted = succession->forced && succession->reschedules && !succession->gave_up;

    return !succession->queued && !wanted;
}

enum job_status policy_job_status(const struct job_standing *standing)
{
    bool stays = standing->type == JOB_SYSTEM || standing->makes_jobs || standing->deploys;

    if (standing->live > 0 || (stays && !standing->stop))
        return JOB_RUNNING;
    return !standing->stop && standing->waits ? JOB_PENDING : JOB_DEAD;
}

const char *job_status_name(enum job_status status)
{
    switch (status) {
    case JOB_PENDING:
        return "pending";
    case JOB_RUNNING:
        return "running";
    case JOB_DEAD:
        return "dead";
    }
    return "?";
}

size_t policy_collect(size_t ended, size_t kept)
{
    return ended > kept ? ended - kept : 0;
}

static bool is_beyond(uint64_t used, uint64_t free, uint32_t percent)
{
    double all = (double)used + (double)free;

    return (double)used * 100 > all * percent;
}

const char *policy_too_full(const struct disk_use *use, const struct disk_limits *limits)
{
    if (is_beyond(use->bytes_used, use->bytes_free, limits->bytes_percent))
        return "disk";
    return is_beyond(use->inodes_used, use->inodes_free, limits->inodes_percent) ? "inode" : NULL;
}

bool policy_awaits_leaving(const struct disk_leaving *leaving, uint64_t now_ms)
{
    static const uint64_t PATIENCE_MS = 180000; /* three looks at a disk, by default */

    return leaving->allocs > 0 && now_ms < leaving->since_ms + PATIENCE_MS;
}
