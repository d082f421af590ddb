/*
 * Processors of tasks that ask for none: all but those that others have for themselves.
 *
 * As nomad v2.0.5 client/lib/cgroupslib/partition.go has it, tasks are parted into those that share
 * and those that reserve.  On v2 all that share are below cairn/<mark>, whose processors they get,
 * and the others beside it.  In the hierarchy for processors of v1 those that share are in one
 * cgroup, cairn/<mark>/share.  It costs each start something there, so it is made when it is first
 * needed, and filled with whoever runs by then.
 *
 * Nothing is kept of it: a daemon is told anew what is shared, and the kernel keeps what was said.
 * What cannot be done is told once and harms nobody but those who have to share.
 */
#include "drivers/part.h"

#include "io/log.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GATHER_ROUNDS_MAX = 8 };

/* One change of what is shared, on the pool. */
struct share_work {
    struct io_work work;
    struct drivers *drivers; /* NULL once they are gone */
    enum cgroup_mode mode;
    bool restricted;
    char parent[CGROUP_NAME_SIZE], share[CGROUP_NAME_SIZE];
    char cpus[CORES_TEXT_SIZE];
    bool moved; /* by the round under way */
    struct err err;
    char task[CGROUP_NAME_SIZE]; /* looked at */
};

void share_cgroup(const struct drivers *drivers, char to[CGROUP_NAME_SIZE])
{
    bool is_v2 = drivers->config.cgroup_mode == CGROUP_V2;

    check(text_format(to, CGROUP_NAME_SIZE, is_v2 ? "%s/%s" : "%s/%s/share", drivers->cgroup_parent,
                      drivers->node_mark));
}

/* --- on the pool --- */

static bool gather_process(void *ctx, pid_t pid)
{
    struct share_work *change = ctx;

    if (!cgroup_has_cpus_of(change->share, pid) &&
        cgroup_enter_controllers(change->mode, change->share, pid, NULL) == 0)
        change->moved = true; /* else it has ended, or it is told below */
    return true;
}

static bool gather_task(void *ctx, const char *name)
{
    struct share_work *change = ctx;
    struct driver_key key;

    if (!key_from_name(name, &key) ||
        !text_format(change->task, sizeof(change->task), "%s/%s", change->parent, name) ||
        cgroup_has_own_cpus(change->mode, change->task))
        return true;
    /* What is gone meanwhile has nobody to gather. */
    (void)cgroup_each_process(change->mode, change->task, gather_process, change, NULL);
    return true;
}

/* Who forks meanwhile is found in the next round. */
static int gather(struct share_work *change)
{
    int code = 0;

    change->moved = true;
    for (int round = 0; code == 0 && change->moved && round < GATHER_ROUNDS_MAX; round++) {
        change->moved = false;
        code = cgroup_each_child(change->mode, change->parent, gather_task, change, &change->err);
    }
    return code;
}

static void change_share(struct io_work *work)
{
    struct share_work *change = work->ctx;
    const struct cgroup_limits limits = {.cpus = change->cpus};

    if (!change->restricted && !cgroup_has_own_cpus(change->mode, change->share))
        return; /* nobody was ever restricted */
    if (cgroup_limit(change->mode, change->share, &limits, &change->err) == 0 &&
        change->restricted && change->mode != CGROUP_V2)
        (void)gather(change); /* the error tells it */
}

/* --- on the loop --- */

static void start_change(struct drivers *drivers);

static void changed(struct io_work *work)
{
    struct share_work *change = work->ctx;
    struct drivers *drivers = change->drivers;

    if (drivers != NULL) {
        drivers->share.work = NULL;
        if (change->err.code != 0 && !drivers->share.told)
            log_warn("drivers",
                     "tasks that ask for no cores are not kept off those of others error=%s",
                     log_value(change->err.text));
        drivers->share.told = change->err.code != 0;
        if (drivers->share.again)
            start_change(drivers);
    }
    free(change);
}

static void start_change(struct drivers *drivers)
{
    struct share_work *change = calloc(1, sizeof(*change));

    check(change != NULL);
    drivers->share.again = false;
    drivers->share.work = change;
    change->drivers = drivers;
    change->mode = drivers->config.cgroup_mode;
    change->restricted = drivers->share.restricted;
    share_cgroup(drivers, change->share);
    (void)keys_cgroup(drivers, false, change->parent); /* which is used everywhere */
    (void)text_copy(change->cpus, sizeof(change->cpus), drivers->share.cpus); /* of that size */
    io_work_submit_ahead(drivers->config.loop, &change->work, change_share, changed, change);
}

void drivers_share_cores(struct drivers *drivers, const char *cpus, bool restricted)
{
    if (drivers->config.cgroup_mode == CGROUP_NONE || *cpus == '\0' ||
        (text_equal(drivers->share.cpus, cpus) && drivers->share.restricted == restricted))
        return;
    (void)text_copy(drivers->share.cpus, sizeof(drivers->share.cpus), cpus); /* of that size */
    drivers->share.restricted = restricted;
    if (drivers->share.work == NULL)
        start_change(drivers);
    else
        drivers->share.again = true;
}

void share_close(struct drivers *drivers)
{
    char share[CGROUP_NAME_SIZE];

    if (drivers->share.work != NULL)
        drivers->share.work->drivers = NULL;
    share_cgroup(drivers, share);
    /* It stays while tasks live in it. */
    if (drivers->config.cgroup_mode != CGROUP_V2)
        (void)cgroup_remove(drivers->config.cgroup_mode, share, NULL);
}
