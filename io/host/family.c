/*
 * Ending processes by where they come from, for those that left the cgroup they were born in.
 *
 * A process may change its group, its session and, with the right to, its cgroup.  It cannot choose
 * its parent: when that dies, the nearest ancestor that asked for orphans takes it in.  And it is
 * in its session until it makes one of its own.
 *
 * Invariant (I-4): a pidfd is opened first, the proof of kinship read afterwards, and whoever it
 * is proved by is looked at last: had one of the numbers passed on meanwhile, either a start time
 * would differ or the pidfd be that of a process which is gone.
 */
#include "io/proc.h"

#include "io/host.h"
#include "io/host/part.h"
#include "io/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

/* Generations looked at in one go.  What is deeper moves up when what is above it has ended. */
enum { DEPTH_MAX = 16 };

/* --- down --- */

struct children {
    pid_t parent;
    void (*cb)(void *ctx, pid_t pid);
    void *ctx;
};

static int children_of_thread(void *ctx, const char *name, unsigned char type)
{
    const struct children *children = ctx;
    char path[64], text[256];
    pid_t pid = 0;
    ssize_t got;

    (void)type;
    if (!text_format(path, sizeof(path), "/proc/%d/task/%s/children", (int)children->parent, name))
        return 0;
    scoped_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && (got = read(fd, text, sizeof(text))) > 0) {
        for (ssize_t i = 0; i < got; i++) {
            if (text[i] >= '0' && text[i] <= '9') {
                pid = pid * 10 + (text[i] - '0');
            } else {
                if (pid > 1)
                    children->cb(children->ctx, pid);
                pid = 0;
            }
        }
    }
    return 0;
}

void proc_each_child(pid_t parent, void (*cb)(void *ctx, pid_t pid), void *ctx)
{
    struct children children = {parent, cb, ctx};
    char path[32];

    (void)text_format(path, sizeof(path), "/proc/%d/task", (int)parent); /* fits */
    scoped_fd int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        (void)directory_each(fd, children_of_thread, &children); /* ended meanwhile: it has none */
}

/* Who was counted: one that is stopped and killed may be listed again under its new parent before
 * it is gone.  With more of them than that the count is a little too high now and then. */
enum { COUNTED_MAX = 64 };

struct tally {
    bool (*is_counted)(void *ctx, pid_t pid);
    void *ctx;
    struct proc_identity counted[COUNTED_MAX];
    size_t count;
};

struct hunt {
    struct proc_identity parent;
    int depth;
    struct tally *tally;
};

static void tally_add(struct tally *tally, const struct proc_identity *identity)
{
    size_t known = tally->count < COUNTED_MAX ? tally->count : COUNTED_MAX;
    struct proc_stat stat;

    for (size_t i = 0; i < known; i++) {
        if (tally->counted[i].pid == identity->pid &&
            tally->counted[i].start_ticks == identity->start_ticks)
            return;
    }
    if (tally->is_counted != NULL && !tally->is_counted(tally->ctx, identity->pid))
        return;
    /* Looked at afterwards: who is on the way out has left its cgroup, and for no other reason. */
    if (proc_read_stat(identity->pid, &stat) != 0 || stat.state == 'Z' || stat.exiting)
        return;
    if (tally->count < COUNTED_MAX)
        tally->counted[tally->count] = *identity;
    tally->count++;
}

static bool is_still(const struct proc_identity *identity)
{
    struct proc_stat stat;

    return proc_read_stat(identity->pid, &stat) == 0 && stat.start_ticks == identity->start_ticks;
}

/* A process whose first thread has ended looks like a zombie and may be none: it is signalled all
 * the same, which does no harm to a true one. */
static void hunt_child(void *ctx, pid_t pid)
{
    struct hunt *hunt = ctx;
    scoped_fd int fd = pidfd_of(pid);
    struct proc_stat stat;

    if (fd < 0 || proc_read_stat(pid, &stat) != 0 || stat.parent != hunt->parent.pid ||
        !is_still(&hunt->parent))
        return;
    struct hunt below = {{pid, stat.start_ticks}, hunt->depth + 1, hunt->tally};
    if (stat.state != 'Z' && !stat.exiting)
        tally_add(hunt->tally, &below.parent);
    (void)pidfd_signal(fd, SIGSTOP); /* so that it makes no more of them */
    if (hunt->depth < DEPTH_MAX)
        proc_each_child(pid, hunt_child, &below);
    (void)pidfd_signal(fd, SIGKILL); /* gone is what we want */
}

size_t proc_kill_descendants(const struct proc_identity *ancestor,
                             bool (*is_counted)(void *ctx, pid_t pid), void *ctx)
{
    struct tally tally = {.is_counted = is_counted, .ctx = ctx};
    struct hunt hunt = {.parent = *ancestor, .tally = &tally};

    if (ancestor->pid > 1)
        proc_each_child(ancestor->pid, hunt_child, &hunt);
    return tally.count;
}

/* --- sideways --- */

struct session {
    int32_t number;
    struct proc_identity member;
};

static int kill_of_session(void *ctx, const char *name, unsigned char type)
{
    const struct session *session = ctx;
    struct proc_stat stat;
    uint64_t number;

    (void)type;
    if (!text_to_u64(name, &number) || number <= 1 || number > INT32_MAX ||
        (pid_t)number == session->member.pid)
        return 0;
    scoped_fd int fd = pidfd_of((pid_t)number);
    if (fd >= 0 && proc_read_stat((pid_t)number, &stat) == 0 && stat.session == session->number &&
        is_still(&session->member))
        (void)pidfd_signal(fd, SIGKILL); /* gone is what we want */
    return 0;
}

int proc_kill_session(const struct proc_identity *member, struct err *err)
{
    struct session session = {.member = *member};
    struct proc_stat stat;
    int code = proc_signal(member, SIGSTOP, err);

    if (code != 0)
        return code;
    if (proc_read_stat(member->pid, &stat) == 0 && stat.session > 1 && stat.session != getsid(0)) {
        scoped_fd int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        session.number = stat.session;
        if (fd >= 0)
            (void)directory_each(fd, kill_of_session, &session); /* the member goes in any case */
    }
    return proc_signal(member, SIGKILL, err);
}
