/*
 * A session: a command that is run in a task beside what the task runs.
 *
 * The helper is not one of the task's processes: it stays in the daemon's namespaces, in the shims'
 * cgroup, and ends with the daemon, whose end of the socket tells.  The command gets the root, the
 * namespaces, the user and the rights of the payload, and a cgroup below the task's, so that
 * whoever ends the task ends it, too.
 *
 * Invariant: when the helper has ended by itself, nothing of the session is alive.  One that was
 * killed takes the command along (PR_SET_PDEATHSIG), and the daemon finds the rest by its cgroup.
 */
#include "drivers/shim/session.h"

#include "drivers/shim/shim.h"
#include "io/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ENDS = 3, END_TRIES = 100, END_PAUSE_MS = 20, KILLED_BASE = 128 };

struct session {
    struct proc_identity self;
    enum cgroup_mode mode;
    char cgroup[CGROUP_NAME_SIZE], task_cgroup[CGROUP_NAME_SIZE]; /* "": there is none */
    int children_fd;
    pid_t pid;                 /* 0: none, or reaped */
    int ours[ENDS], its[ENDS]; /* of the pipes; with a terminal only ours[0], its other side */
    int pair[2];               /* by which a terminal comes from where it is opened */
    struct session_said last;
};

/* What the child was doing when it failed. */
struct failure {
    int32_t os;
    char what[STEP_TEXT_SIZE];
};

static void say(const struct session_said *said, const int *fds, size_t count)
{
    struct iovec part = {(void *)(uintptr_t)said, sizeof(*said)};
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(ENDS * sizeof(int))];
    } control = {{0}};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    if (count > 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = (socklen_t)CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = (socklen_t)CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(head), fds, count * sizeof(int));
    }
    (void)sendmsg(SESSION_FD_CONTROL, &message, MSG_NOSIGNAL); /* nobody there: then we end */
}

/* --- the child, from fork to exec --- */

static bool send_terminal(int pair, int master)
{
    char byte = 0;
    struct iovec part = {&byte, 1};
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {{0}};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes)};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);

    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &master, sizeof(int));
    return sendmsg(pair, &message, MSG_NOSIGNAL) == 1;
}

/* The task's own, so that its name is one in the task's /dev; it becomes the controlling one. */
static bool take_terminal(const struct session *session, const struct launch *launch)
{
    int unlocked = 0, master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    int slave = master < 0 || ioctl(master, TIOCSPTLCK, &unlocked) != 0
                    ? -1
                    : ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);

    if (slave < 0 || !send_terminal(session->pair[1], master))
        return false;
    if (launch->switch_user)
        (void)fchown(slave, launch->user_id, (gid_t)-1); /* else it cannot be opened by name */
    if (ioctl(slave, TIOCSCTTY, 0) != 0)
        return false;
    return dup2(slave, 0) == 0 && dup2(slave, 1) == 1 && dup2(slave, 2) == 2;
}

static bool take_streams(const struct session *session, const struct launch *launch)
{
    if (launch->terminal != 0)
        return take_terminal(session, launch);
    for (int i = 0; i < ENDS; i++) {
        if (dup2(session->its[i], i) != i)
            return false;
    }
    return true;
}

static bool enter_cgroups(const struct session *session)
{
    if (session->cgroup[0] == '\0')
        return true;
    if (session->mode == CGROUP_V1 && cgroup_enter(session->mode, session->cgroup, 0, NULL) != 0)
        return false;
    return session->mode == CGROUP_V2 ||
           cgroup_enter_controllers(session->mode, session->task_cgroup, 0, NULL) == 0;
}

static uint64_t namespaces_of(const struct launch *launch)
{
    return payload_namespaces(launch) | (launch->network != NULL ? CLONE_NEWNET : 0u);
}

/* What could not be done, NULL if the program runs; errno says why. */
static const char *become(const struct session *session, struct launch *launch, int directory_fd)
{
    uint64_t others = namespaces_of(launch) & ~(uint64_t)CLONE_NEWPID;
    bool own_root = (launch->isolation & LAUNCH_OWN_ROOT) != 0;

    if (!enter_cgroups(session))
        return "enter the task's cgroup";
    if (setsid() < 0)
        return "make a session";
    shim_reset_signals();
    payload_set_oom_score(launch->oom_score_adj);
    if (others != 0 && setns(SESSION_FD_TASK, (int)others) != 0)
        return "enter the task's namespaces";
    if (own_root)
        directory_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (directory_fd < 0)
        return "open the task's directory";
    if (!take_streams(session, launch))
        return launch->terminal != 0 ? "make a terminal" : "set up its streams";
    if (!payload_find_program(launch, directory_fd)) {
        errno = ENOENT;
        return "find the command";
    }
    int code = isolate_user(launch);
    errno = -code;
    if (code != 0)
        return "switch to the task's user";
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) /* what changes the user takes it away */
        return "be ended with its helper";
    if ((launch->work_dir == NULL ? fchdir(directory_fd) : chdir(launch->work_dir)) != 0)
        return "change to its working directory";
    (void)syscall(SYS_close_range, 3, ~0u, CLOSE_RANGE_CLOEXEC);
    (void)execve(launch->program, launch->argv, launch->envp);
    return "run it";
}

static _Noreturn void run_child(const struct session *session, struct launch *launch,
                                int directory_fd, int report_fd)
{
    struct failure failure = {0};
    const char *what = become(session, launch, directory_fd);

    failure.os = errno;
    (void)text_copy(failure.what, sizeof(failure.what), what);
    (void)!write(report_fd, &failure, sizeof(failure)); /* a pipe of ours: fits, one reader */
    _exit(127);
}

/* --- the helper's side --- */

static int open_ends(struct session *session, const struct launch *launch, struct err *err)
{
    if (launch->terminal != 0)
        return socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, session->pair) == 0
                   ? 0
                   : err_os(err, ERR_LIMIT, errno, "cannot make a socket");
    for (int i = 0; i < ENDS; i++) {
        int fds[2];

        if (pipe2(fds, O_CLOEXEC) != 0)
            return err_os(err, ERR_LIMIT, errno, "cannot make a pipe");
        session->ours[i] = fds[i == 0 ? 1 : 0];
        session->its[i] = fds[i == 0 ? 0 : 1];
    }
    return 0;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd); /* ends of pipes that others have */
    *fd = -1;
}

static int receive_terminal(struct session *session)
{
    char byte;
    struct iovec part = {&byte, 1};
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes)};

    if (recvmsg(session->pair[0], &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != 1)
        return -1;
    const struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    if (head == NULL || head->cmsg_type != SCM_RIGHTS || head->cmsg_len != CMSG_LEN(sizeof(int)))
        return -1;
    memcpy(&session->ours[0], CMSG_DATA(head), sizeof(int));
    return 0;
}

static int fail_start(const struct failure *failure, const struct launch *launch, struct err *err)
{
    if (failure->os == ESRCH)
        return err_set(err, ERR_GONE, "the task is not running");
    if (text_equal(failure->what, "find the command"))
        return err_set(err, ERR_INVALID, "command \"%s\" not found in the task", launch->command);
    return err_os(err, err_from_errno(failure->os), failure->os,
                  "cannot run command \"%s\": could not %s", launch->command, failure->what);
}

/* Waits until the program runs, or could not be run, or nobody is there any more who asked. */
static int await_exec(struct session *session, const struct launch *launch, int report_fd,
                      struct err *err)
{
    struct pollfd fds[] = {{.fd = report_fd, .events = POLLIN}, {.fd = SESSION_FD_CONTROL}};
    struct failure failure;

    while (poll(fds, COUNT_OF(fds), -1) < 0 && errno == EINTR)
        continue;
    if (fds[0].revents == 0)
        return err_set(err, ERR_CANCELED, "nobody waits for it any more");
    ssize_t got = read(report_fd, &failure, sizeof(failure));
    if (got == (ssize_t)sizeof(failure)) {
        failure.what[sizeof(failure.what) - 1] = '\0';
        return fail_start(&failure, launch, err);
    }
    if (launch->terminal != 0 && receive_terminal(session) != 0)
        return err_set(err, ERR_IO, "its terminal was lost");
    return 0;
}

static int start(struct session *session, struct launch *launch, struct err *err)
{
    char directory[CGROUP_NAME_SIZE + 64] = "";
    scoped_fd int directory_fd = -1;
    int report[2];
    uint64_t own_pids = namespaces_of(launch) & CLONE_NEWPID;
    bool own_root = (launch->isolation & LAUNCH_OWN_ROOT) != 0;
    int code = own_root ? 0 : payload_open_task(launch, &directory_fd, err);

    if (code == 0 && session->cgroup[0] != '\0')
        code = cgroup_create(session->mode, session->cgroup, err);
    if (code == 0)
        code = open_ends(session, launch, err);
    if (code != 0)
        return code;
    if (own_pids != 0 && setns(SESSION_FD_TASK, CLONE_NEWPID) != 0)
        return errno == ESRCH ? err_set(err, ERR_GONE, "the task is not running")
                              : err_os(err, err_from_errno(errno), errno,
                                       "cannot enter the task's namespaces");
    if (pipe2(report, O_CLOEXEC) != 0)
        return err_os(err, ERR_LIMIT, errno, "cannot make a pipe");
    if (session->cgroup[0] != '\0')
        cgroup_directory(session->mode, session->cgroup, directory, sizeof(directory));
    code = proc_fork(directory[0] == '\0' ? NULL : directory, 0, &session->pid, err);
    if (code == 0 && session->pid == 0)
        run_child(session, launch, directory_fd, report[1]);
    (void)close(report[1]); /* the child's copy is what counts */
    for (int i = 0; i < ENDS; i++)
        close_fd(&session->its[i]);
    close_fd(&session->pair[1]);
    if (code == 0)
        code = await_exec(session, launch, report[0], err);
    (void)close(report[0]); /* has told what it had to tell */
    return code;
}

/* Takes in what has ended; true if that is all. */
static bool reap(struct session *session)
{
    struct signalfd_siginfo ignored;

    (void)!read(session->children_fd, &ignored, sizeof(ignored)); /* only that it is time to look */
    for (;;) {
        siginfo_t info = {0};

        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG) != 0)
            return errno == ECHILD;
        if (info.si_pid == 0)
            return false;
        if (info.si_pid != session->pid)
            continue;
        bool by_signal = info.si_code != CLD_EXITED;
        session->pid = 0;
        if (session->last.kind != SESSION_ENDED)
            continue; /* it never ran */
        session->last.code = by_signal ? KILLED_BASE + info.si_status : info.si_status;
        session->last.signal = by_signal ? info.si_status : 0;
    }
}

static bool is_populated(const struct session *session)
{
    return session->cgroup[0] != '\0' &&
           cgroup_populated(session->mode, session->cgroup, NULL) == 1;
}

/* Ends all that came of the command, as far as that can be done. */
static void end_rest(struct session *session)
{
    for (int i = 0; i < END_TRIES; i++) {
        bool childless = reap(session);

        if (childless && !is_populated(session))
            break;
        if (is_populated(session))
            (void)cgroup_kill(session->mode, session->cgroup, NULL); /* done again if it failed */
        if (!childless)
            (void)proc_kill_descendants(&session->self, NULL, NULL); /* how many there were */
        if (session->pid > 1)
            (void)kill(session->pid, SIGKILL); /* our child, not reaped */
        if (i > 0)
            (void)poll(NULL, 0, END_PAUSE_MS);
    }
    if (session->cgroup[0] != '\0')
        (void)cgroup_remove(session->mode, session->cgroup, NULL); /* else with the task's */
}

static void supervise(struct session *session)
{
    struct pollfd fds[] = {{.fd = session->children_fd, .events = POLLIN},
                           {.fd = SESSION_FD_CONTROL, .events = POLLIN},
                           {.fd = SESSION_FD_TASK, .events = POLLIN}};

    while (session->pid != 0) {
        if (poll(fds, COUNT_OF(fds), -1) < 0)
            continue; /* interrupted */
        if (fds[0].revents != 0)
            (void)reap(session); /* whether that is all is asked at the end */
        if (session->pid == 0 || fds[1].revents != 0)
            return;
        if (fds[2].revents != 0) {
            session->last.is_gone = 1;
            return;
        }
    }
}

static int begin(struct session *session, struct launch *launch, struct err *err)
{
    sigset_t children;
    int code = proc_identify(getpid(), &session->self, err);

    check(sigemptyset(&children) == 0);
    check(sigaddset(&children, SIGCHLD) == 0);
    check(sigprocmask(SIG_BLOCK, &children, NULL) == 0);
    session->children_fd = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    if (code == 0 && session->children_fd < 0)
        code = err_os(err, ERR_LIMIT, errno, "cannot hear of children");
    if (code == 0)
        code = launch_open(launch, err);
    if (code != 0)
        return code;
    session->mode = (enum cgroup_mode)launch->cgroup_mode;
    if (launch->cgroup != NULL &&
        (!text_copy(session->task_cgroup, sizeof(session->task_cgroup), launch->cgroup) ||
         !text_format(session->cgroup, sizeof(session->cgroup), "%s/" SESSION_CGROUP_PREFIX "%d",
                      launch->cgroup, getpid())))
        return err_set(err, ERR_LIMIT, "the name of the cgroup is too long");
    return start(session, launch, err);
}

_Noreturn void session_main(void)
{
    struct session session = {
        .children_fd = -1, .ours = {-1, -1, -1}, .its = {-1, -1, -1}, .pair = {-1, -1}};
    struct launch launch = {0};
    struct err err = {0};

    for (int fd = SESSION_FD_TASK; fd <= SESSION_FD_LAUNCH; fd++)
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC); /* what is missing fails when it is used */
    shim_withdraw();
    shim_stand_alone();
    int code = begin(&session, &launch, &err);
    if (code == 0) {
        const struct session_said runs = {.kind = SESSION_RUNS};

        say(&runs, session.ours, launch.terminal != 0 ? 1 : ENDS);
        session.last.kind = SESSION_ENDED;
    } else {
        session.last =
            (struct session_said){.kind = SESSION_FAILED, .code = code, .signal = err.os};
        (void)text_copy(session.last.message, sizeof(session.last.message), err.text);
    }
    for (int i = 0; i < ENDS; i++)
        close_fd(&session.ours[i]);
    launch_close(&launch);
    if (code == 0)
        supervise(&session);
    if (session.pid == 0 && !is_populated(&session)) {
        say(&session.last, NULL, 0); /* at once: usually nothing is left */
        end_rest(&session);
        _exit(0);
    }
    end_rest(&session);
    say(&session.last, NULL, 0);
    _exit(0); /* as the shim: what a library would do at the end, it would do in the task */
}
