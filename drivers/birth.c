/*
 * Making shims: by the nursery, a process of the shim's program that makes one after the other.
 *
 * Who makes a process out of a daemon copies all descriptors that a daemon has, waits until the
 * program runs, and has it begin from nothing, each time.  The nursery has begun already and has
 * nothing: it gets the three descriptors that a shim inherits, and forks.  It is made with the
 * first shim and ends with the room, or with the daemon, whose end of its socket tells; what it
 * has been asked for it does first.  Shims do not depend on it, and one that is gone is made anew.
 */
#include "drivers/part.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NURSERY_END_MS = 1000 }; /* what it still has to do takes a few */

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd); /* a socket, a lock that the shim has, a record in memory */
    *fd = -1;
}

/* --- the nursery --- */

void nursery_close(struct drivers *drivers)
{
    struct nursery *nursery = &drivers->nursery;
    struct pollfd ended = {.fd = nursery->pidfd, .events = POLLIN};
    siginfo_t info;

    if (nursery->fd < 0)
        return;
    close_fd(&nursery->fd); /* it ends when it has read what it was sent */
    if (poll(&ended, 1, NURSERY_END_MS) != 1)
        (void)proc_signal(&nursery->process, SIGKILL, NULL); /* a shim that is lost is made again */
    (void)waitid(P_PIDFD, (id_t)nursery->pidfd, &info, WEXITED); /* our child */
    close_fd(&nursery->pidfd);
}

static int spawn(struct drivers *drivers, const int *fd, struct err *err)
{
    struct nursery *nursery = &drivers->nursery;
    char shims[CGROUP_NAME_SIZE], cgroup[CGROUP_NAME_SIZE + 64], room[KEY_NAME_SIZE];
    char *const argv[] = {(char[]){NURSERY_PROGRAM}, room, NULL}, *const envp[] = {NULL};

    memset(room, ' ', sizeof(room) - 1); /* for the name of each shim */
    room[sizeof(room) - 1] = '\0';
    shims_cgroup(drivers, shims);
    cgroup_directory(drivers->config.cgroup_mode, shims, cgroup, sizeof(cgroup));
    struct proc_spawn spawn = {.path = drivers->shim_path,
                               .argv = argv,
                               .envp = envp,
                               .directory = drivers->shim_dir,
                               .fds = fd,
                               .fds_count = 1,
                               .cgroup = cgroup[0] == '\0' ? NULL : cgroup,
                               .files_soft = drivers->config.files_soft};
    int code = proc_spawn(&spawn, &nursery->process.pid, &nursery->pidfd, err);
    if (code == ERR_GONE && cgroup_create(drivers->config.cgroup_mode, shims, NULL) == 0) {
        *err = (struct err){0}; /* somebody tidied up our cgroup */
        code = proc_spawn(&spawn, &nursery->process.pid, &nursery->pidfd, err);
    }
    if (code == 0)
        (void)proc_identify(nursery->process.pid, &nursery->process, NULL); /* our child */
    return code;
}

static int nursery_open(struct drivers *drivers, struct err *err)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return err_os(err, err_from_errno(errno), errno, "cannot make a socket");
    int code = spawn(drivers, &ends[1], err);
    close_fd(&ends[1]);
    if (code != 0)
        close_fd(&ends[0]);
    else
        drivers->nursery.fd = ends[0];
    return code;
}

/* Has a shim called NAME made that inherits FDS. */
static int ask(const struct nursery *nursery, const char *name, const int fds[SHIM_FDS])
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int) * SHIM_FDS)];
    } control = {.bytes = {0}};
    struct iovec text = {.iov_base = (void *)(uintptr_t)name, .iov_len = strlen(name) + 1};
    struct msghdr message = {.msg_iov = &text,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};

    control.head = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int) * SHIM_FDS),
                                    .cmsg_level = SOL_SOCKET,
                                    .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(&control.head), fds, sizeof(int) * SHIM_FDS);
    return sendmsg(nursery->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

static int make(struct drivers *drivers, const char *name, const int fds[SHIM_FDS], struct err *err)
{
    int failed = drivers->nursery.fd < 0 ? -EPIPE : ask(&drivers->nursery, name, fds);

    if (failed == -EPIPE || failed == -ECONNRESET) { /* there is none, or none any more */
        nursery_close(drivers);
        int code = nursery_open(drivers, err);
        if (code != 0)
            return code;
        failed = ask(&drivers->nursery, name, fds);
    }
    return failed == 0
               ? 0
               : err_os(err, err_from_errno(-failed), -failed, "cannot have a supervisor made");
}

/* --- a shim --- */

/* Both ends of the connection, of which ours lasts as long as the payload. */
static int connect_ends(int shim_fd, int ret_ends[2], struct err *err)
{
    int made = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ret_ends);

    if (made == 0 && fd_is_kept_back(shim_fd, ret_ends[0])) {
        made = -1;
        errno = EMFILE;
    }
    return made == 0 ? 0 : err_os(err, err_from_errno(errno), errno, "cannot make a socket");
}

int birth_begin(struct run *run, struct plan *plan, int task_fd, int *ret_fd, struct err *err)
{
    struct drivers *drivers = run->drivers;
    char name[KEY_NAME_SIZE];
    int ends[2] = {-1, -1}, launch = -1;

    check(key_name(&run->key, name, NULL) == 0);
    int code = plan_open(plan, &launch, err);
    if (code == 0)
        code = connect_ends(drivers->shim_fd, ends, err);
    if (code == 0) {
        check(shim_greet(ends[0])); /* an empty socket takes it */
        code = make(drivers, name, (int[SHIM_FDS]){task_fd, ends[1], launch}, err);
    }
    close_fd(&launch);
    close_fd(&ends[1]); /* so that a shim that ends at once is seen to have ended */
    if (code != 0) {
        close_fd(&ends[0]);
        err->recoverable = true; /* not the job's fault */
        return code;
    }
    run->is_born = true;
    drivers->births++;
    *ret_fd = ends[0];
    return 0;
}

void birth_over(struct run *run)
{
    struct drivers *drivers = run->drivers;

    if (!run->is_born)
        return;
    run->is_born = false;
    drivers->births--;
    if (drivers->begin_go_on != NULL)
        drivers->begin_go_on(drivers);
}
