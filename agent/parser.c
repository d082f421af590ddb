#include "agent/parser.h"

#include "base/list.h"
#include "io/loop.h"
#include "io/proc.h"
#include "io/scope.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { LIMIT_MS = 5000, CHUNK = 64 << 10, EXIT_WALLS = 3 };

struct asked {
    int socket;
    uint64_t until_ms;
    uint8_t *answer; /* as far as it came */
    size_t length, size;
};

/* False: not in time. */
static bool await(const struct asked *asked, int fd, short events)
{
    struct pollfd wanted = {.fd = fd, .events = events};
    int ready;

    do {
        uint64_t now_ms = loop_now_ms();
        ready = now_ms >= asked->until_ms ? 0 : poll(&wanted, 1, (int)(asked->until_ms - now_ms));
    } while (ready < 0 && errno == EINTR);
    return ready > 0;
}

static bool send_all(const struct asked *asked, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t sent = send(asked->socket, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (sent < 0 && errno != EAGAIN && errno != EINTR)
            return false;
        bytes += sent > 0 ? sent : 0;
        length -= sent > 0 ? (size_t)sent : 0;
        if (sent < 0 && !await(asked, asked->socket, POLLOUT))
            return false;
    }
    return true;
}

/* To its end, or as far as it may be. */
static void receive_all(struct asked *asked)
{
    while (asked->length <= PARSED_BYTES_MAX && await(asked, asked->socket, POLLIN)) {
        asked->answer = list_room(asked->answer, &asked->size, asked->length + CHUNK, 1);
        ssize_t got = recv(asked->socket, asked->answer + asked->length,
                           asked->size - asked->length, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
            return;
        asked->length += got > 0 ? (size_t)got : 0;
    }
}

/* Its end, which it comes to by itself when it has answered, or is brought to. */
static int reap(const struct asked *asked, pid_t pid, int pidfd, struct err *err)
{
    bool ends = asked->length <= PARSED_BYTES_MAX && await(asked, pidfd, POLLIN);
    siginfo_t info = {0};

    if (!ends)
        (void)kill(pid, SIGKILL); /* ours, and not reaped yet */
    while (waitid(P_PID, (id_t)pid, &info, WEXITED) != 0 && errno == EINTR) {
    }
    if (!ends)
        return err_set(err, ERR_TIMEOUT, "cairn-parse took too long, or said too much");
    if (info.si_code != CLD_EXITED)
        return err_set(err, ERR_IO, "cairn-parse ended by signal %d", info.si_status);
    if (info.si_status == EXIT_WALLS)
        return err_set(err, ERR_UNSUPPORTED,
                       "cairn-parse cannot lay down its privileges here, and so reads nothing");
    return info.si_status == 0 ? 0
                               : err_set(err, ERR_UNSUPPORTED, "cairn-parse is of another version");
}

static int start(const char *program, int socket, pid_t *ret_pid, int *ret_pidfd, struct err *err)
{
    char *const argv[] = {(char[]){"cairn-parse"}, NULL}, *const envp[] = {NULL};
    const struct proc_spawn spawn = {
        .path = program,
        .argv = argv,
        .envp = envp,
        .directory = "/",
        .fds = &socket,
        .fds_count = 1,
    };

    if (proc_spawn(&spawn, ret_pid, ret_pidfd, err) == 0)
        return 0;
    err->code = ERR_IO; /* whatever it was: nothing of what was asked for */
    return ERR_IO;
}

int parser_ask(const char *program, enum parse_kind kind, const char *text, size_t length,
               json_t **ret_value, char **ret_refusal, struct err *err)
{
    const char order = (char)kind;
    scoped_fd int pidfd = -1;
    int sockets[2];
    pid_t pid;

    *ret_value = NULL;
    *ret_refusal = NULL;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
        return err_os(err, ERR_IO, errno, "cannot make a socket");
    struct asked asked = {.socket = sockets[0], .until_ms = loop_now_ms() + LIMIT_MS};
    int code = start(program, sockets[1], &pid, &pidfd, err);
    (void)close(sockets[1]); /* it has its own */
    if (code == 0) {
        /* Who does not listen any more has ended, or will answer what cannot be read. */
        if (send_all(&asked, &order, 1) && send_all(&asked, text, length))
            (void)shutdown(asked.socket, SHUT_WR); /* or it is gone */
        receive_all(&asked);
        code = reap(&asked, pid, pidfd, err);
    }
    (void)close(sockets[0]);
    if (code == 0)
        code = parsed_read(asked.answer, asked.length, ret_value, ret_refusal, err);
    free(asked.answer);
    return code;
}
