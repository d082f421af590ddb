/*
 * The nursery: makes shims for the daemon whose child it is, by forking.
 *
 * A shim that is forked has begun already: no program is loaded, no descriptors of a daemon are
 * copied and closed, and what is the same in all of them (signals, the memory's killer, cgroup,
 * directory, limits, where roots begin) was done once.  The nursery itself opens, maps and keeps
 * nothing of any task: it passes on three descriptors, and what a launch record says only the shim
 * reads that it is for.
 *
 * Its shims are not awaited, and go to whoever takes in orphans when it ends, which is as soon as
 * the daemon's end of its socket is closed and all that was sent has been read.
 */
#include "drivers/shim/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define SHIM_PROGRAM "cairn-shim"

struct order {
    char name[NURSERY_NAME_MAX];
    int fds[SHIM_FDS];
};

/* Waits for the next order; false when no more will come. */
static bool next_order(struct order *order)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(order->fds))];
    } control;
    struct iovec text = {.iov_base = order->name, .iov_len = sizeof(order->name) - 1};
    struct msghdr message = {.msg_iov = &text, .msg_iovlen = 1};
    ssize_t got;

    do {
        message.msg_control = &control;
        message.msg_controllen = sizeof(control);
        got = recvmsg(NURSERY_FD, &message, MSG_CMSG_CLOEXEC);
    } while (got < 0 && errno == EINTR);
    if (got <= 0 || message.msg_controllen < sizeof(control) ||
        control.head.cmsg_len != CMSG_LEN(sizeof(order->fds)))
        return false; /* over, or out of descriptors: the daemon makes another nursery */
    order->name[got] = '\0';
    memcpy(order->fds, CMSG_DATA(&control.head), sizeof(order->fds));
    return true;
}

/* What ps shows: the words that we were started with, of which the second is room enough. */
static void take_name(char **argv, const char *name)
{
    size_t size = (size_t)(argv[1] - argv[0]) + strlen(argv[1]) + 1;

    memset(argv[0], 0, size);
    memcpy(argv[0], SHIM_PROGRAM, sizeof(SHIM_PROGRAM));
    (void)text_copy(argv[0] + sizeof(SHIM_PROGRAM), size - sizeof(SHIM_PROGRAM), name); /* fits */
    (void)prctl(PR_SET_NAME, SHIM_PROGRAM); /* cannot fail */
}

/* The descriptors came behind the one that is given up: each moves down by one. */
static void take_places(const struct order *order)
{
    for (int i = 0; i < SHIM_FDS; i++) {
        check(order->fds[i] == SHIM_FD_TASK + i + 1);
        check(dup3(order->fds[i], SHIM_FD_TASK + i, O_CLOEXEC) >= 0);
    }
    (void)close(order->fds[SHIM_FDS - 1]); /* a copy */
}

void nursery_main(char **argv)
{
    struct order order;

    shim_withdraw();
    (void)prctl(PR_SET_NAME, NURSERY_PROGRAM); /* cannot fail */
    (void)signal(SIGCHLD, SIG_IGN);            /* nobody waits for shims; cannot fail */
    nothing_open();
    while (next_order(&order)) {
        pid_t pid = _Fork();

        if (pid == 0) {
            (void)signal(SIGCHLD, SIG_DFL); /* cannot fail */
            take_places(&order);
            take_name(argv, order.name);
            return;
        }
        if (pid < 0)
            shim_not_made(order.fds[SHIM_FD_CONTROL - SHIM_FD_TASK], errno);
        for (int i = 0; i < SHIM_FDS; i++)
            (void)close(order.fds[i]); /* the shim's now */
    }
    _exit(0);
}
