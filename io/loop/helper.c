#include "io/helper.h"

#include "base/base.h"
#include "io/loop.h"
#include "io/proc.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

int helper_start(const char *program, const char *name, const char *argument, uint64_t until_ms,
                 struct helper *ret_helper, struct err *err)
{
    char *const argv[] = {(char *)(uintptr_t)name, (char *)(uintptr_t)argument, NULL};
    char *const envp[] = {NULL};
    struct helper helper = {.name = name, .until_ms = until_ms};
    int sockets[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
        return err_os(err, ERR_IO, errno, "cannot make a socket");
    const struct proc_spawn spawn = {
        .path = program,
        .argv = argv,
        .envp = envp,
        .directory = "/",
        .fds = &sockets[1],
        .fds_count = 1,
    };
    int code = proc_spawn(&spawn, &helper.pid, &helper.pidfd, err);
    (void)close(sockets[1]); /* it has its own */
    if (code != 0) {
        (void)close(sockets[0]); /* nothing was sent */
        err->code = ERR_IO;      /* whatever it was: nothing of what was asked for */
        return ERR_IO;
    }
    helper.socket = sockets[0];
    *ret_helper = helper;
    return 0;
}

/* False: not in time. */
static bool await(const struct helper *helper, int fd, short events)
{
    struct pollfd wanted = {.fd = fd, .events = events};
    int ready;

    do {
        uint64_t now_ms = loop_now_ms();
        ready = now_ms >= helper->until_ms ? 0 : poll(&wanted, 1, (int)(helper->until_ms - now_ms));
    } while (ready < 0 && errno == EINTR);
    return ready > 0;
}

bool helper_send(const struct helper *helper, const void *bytes, size_t length)
{
    const char *at = bytes;

    while (length > 0) {
        ssize_t sent = send(helper->socket, at, length, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (sent < 0 && errno != EAGAIN && errno != EINTR)
            return false;
        at += sent > 0 ? sent : 0;
        length -= sent > 0 ? (size_t)sent : 0;
        if (sent < 0 && !await(helper, helper->socket, POLLOUT))
            return false;
    }
    return true;
}

void helper_send_end(const struct helper *helper)
{
    (void)shutdown(helper->socket, SHUT_WR); /* or it is gone */
}

size_t helper_receive(const struct helper *helper, void *to, size_t length)
{
    while (await(helper, helper->socket, POLLIN)) {
        ssize_t got = recv(helper->socket, to, length, MSG_DONTWAIT);

        if (got >= 0)
            return (size_t)got;
        if (errno != EAGAIN && errno != EINTR)
            break;
    }
    return 0;
}

int helper_end(struct helper *helper, bool awaits, struct err *err)
{
    bool ends = awaits && await(helper, helper->pidfd, POLLIN);
    siginfo_t info = {0};

    if (!ends)
        (void)kill(helper->pid, SIGKILL); /* ours, and not reaped yet */
    while (waitid(P_PID, (id_t)helper->pid, &info, WEXITED) != 0 && errno == EINTR) {
    }
    (void)close(helper->socket);
    (void)close(helper->pidfd);
    if (!ends || (info.si_code != CLD_EXITED && info.si_status == SIGXCPU)) {
        (void)err_set(err, ERR_TIMEOUT, "%s took too long, or said too much", helper->name);
        err->recoverable = !ends; /* it may have been the machine's fault */
        return ERR_TIMEOUT;
    }
    if (info.si_code != CLD_EXITED)
        return err_set(err, ERR_IO, "%s ended by signal %d", helper->name, info.si_status);
    if (info.si_status == HELPER_EXIT_WALLS)
        return err_set(err, ERR_UNSUPPORTED,
                       "%s cannot lay down its privileges here, and so reads nothing",
                       helper->name);
    return info.si_status == 0
               ? 0
               : err_set(err, ERR_UNSUPPORTED, "%s is of another version", helper->name);
}
