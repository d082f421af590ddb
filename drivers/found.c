/*
 * Runs that an earlier life of the daemon left.
 *
 * A held lock and what the shim wrote when its program ran say all that a recovery asks for: thus a
 * node of thousands knows what runs on it before a single shim has been woken.  The connection,
 * over which a payload's end is heard, is made a little later, by and by, or when there is
 * something to say.  An end in between is no other than one while there was no daemon: found in the
 * task's file.  Of a shim that wrote less, being older, or that we could not speak with, nothing is
 * said before it has answered.
 */
#include "drivers/part.h"
#include "drivers/shim/session.h"

#include <string.h>

enum {
    CONNECT_AFTER_MS = 200, /* what was found is in the journal by then */
    CONNECTS_A_MS = 10,
};

static bool end_session(void *ctx, const char *child)
{
    const struct run *run = ctx;
    char task[CGROUP_NAME_SIZE], cgroup[CGROUP_NAME_SIZE];

    key_cgroup(run->drivers, &run->key, false, task);
    if (!text_starts_with(child, SESSION_CGROUP_PREFIX) ||
        !text_format(cgroup, sizeof(cgroup), "%s/%s", task, child))
        return true;
    (void)cgroup_kill(run->drivers->config.cgroup_mode, cgroup, NULL);   /* else it goes with */
    (void)cgroup_remove(run->drivers->config.cgroup_mode, cgroup, NULL); /* the task, as this */
    return true;
}

/* Their helpers end them with the daemon; only of one that was killed, too, something is there. */
void found_sweep(struct run *run)
{
    char task[CGROUP_NAME_SIZE];

    if (!run->is_found)
        return;
    run->is_found = false;
    key_cgroup(run->drivers, &run->key, false, task);
    (void)cgroup_each_child(run->drivers->config.cgroup_mode, task, end_session, run,
                            NULL); /* what cannot be looked at is gone */
}

static bool wants_to_know_only(const struct run *run)
{
    for (const struct call *call = run->calls.first; call != NULL; call = call->next) {
        if (call->kind != CALL_RECOVER)
            return false;
    }
    return true;
}

/* True of what was written in this boot, by a shim that we could speak with. */
static bool is_ours(const struct run *run, const struct started_record *started)
{
    return started->key_digest == run->digest && started->protocol_newest >= SHIM_PROTOCOL_OLDEST &&
           started->protocol_oldest <= SHIM_PROTOCOL_NEWEST &&
           memcmp(started->boot_id, run->drivers->boot_id, BOOT_ID_SIZE) == 0;
}

static void on_time_to_connect(struct io_timer *timer)
{
    run_attach(timer->ctx);
}

bool found_take_up(struct run *run, int task_fd)
{
    struct started_record started;

    if (run->phase != RUN_NEW || run->plan != NULL || !wants_to_know_only(run) ||
        !task_file_runs(task_fd, &started) || !is_ours(run, &started))
        return false;
    run->phase = RUN_FOUND;
    run->is_found = true;
    run->shim = (struct proc_identity){started.shim_pid, started.shim_ticks};
    run->payload = (struct proc_identity){started.payload_pid, started.payload_ticks};
    run_tell_running(run);
    run_at(run, CONNECT_AFTER_MS + run->drivers->found_count++ / CONNECTS_A_MS, on_time_to_connect);
    return true;
}

void found_advance(struct run *run)
{
    run_tell_running(run);
    if (run->calls.first != NULL)
        run_attach(run); /* there is something to say */
}
