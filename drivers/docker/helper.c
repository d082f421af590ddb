/*
 * Programs that know credentials: docker-credential-NAME, which is told a registry and says who
 * asks there.
 *
 * Follows nomad v2.0.6 drivers/docker/utils.go authFromHelper.  One is run on a thread of the pool,
 * as the daemon, with its environment: the node's operator has named it.  It is bounded in time and
 * in what it says, of which nothing is told to anybody but the Engine: not even when it fails.
 */
#include "drivers/docker/docker.h"

#include "io/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HELPER_MS = 30 * 1000, HELPER_ANSWER_MAX = 64 << 10 };

struct asking {
    struct io_work work;
    struct drivers *drivers; /* NULL: the room is closed */
    struct asking *next, **link;
    struct container *waiting; /* NULL: nobody does any more */
    char helper[HELPER_NAME_SIZE], registry[IMAGE_NAME_SIZE];
    char *header; /* what came of it; owned, secret; NULL: nothing */
    struct err failed;
};

/* --- on a thread --- */

/* Whether FD has something to say before AT_MS. */
static bool wait_for(int fd, uint64_t at_ms)
{
    for (;;) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        uint64_t now_ms = loop_now_ms();
        int ready = now_ms >= at_ms ? 0 : poll(&wait, 1, (int)(at_ms - now_ms));

        if (ready < 0 && errno == EINTR)
            continue;
        return ready > 0;
    }
}

/* All that comes out of FD, until its end or AT_MS; false: it has no end, or too much comes. */
static bool read_all(int fd, uint64_t at_ms, char to[HELPER_ANSWER_MAX])
{
    size_t length = 0;

    while (length < HELPER_ANSWER_MAX - 1 && wait_for(fd, at_ms)) {
        ssize_t got = read(fd, to + length, HELPER_ANSWER_MAX - 1 - length);

        if (got <= 0) {
            to[length] = '\0';
            return got == 0;
        }
        length += (size_t)got;
    }
    return false;
}

/* Runs it until it has ended, in one way or the other; its status, -1: not in time, or nobody knows
 * it. */
static int run(const struct asking *asking, char to[HELPER_ANSWER_MAX])
{
    char script[] = "exec \"docker-credential-$0\" get <&3 3<&- 2>/dev/null";
    char name[HELPER_NAME_SIZE];
    char *const argv[] = {(char[]){"sh"}, (char[]){"-c"}, script, name, NULL};
    size_t length = strlen(asking->registry);
    int in[2], out[2];
    scoped_fd int pidfd = -1;
    siginfo_t info = {0};
    pid_t pid;

    (void)text_copy(name, sizeof(name), asking->helper); /* of the same size */
    if (pipe2(in, O_CLOEXEC) != 0)
        return -1;
    scoped_fd int given = in[0];
    bool is_given = write(in[1], asking->registry, length) == (ssize_t)length; /* it has room */
    (void)close(in[1]);                                                        /* nothing more */
    if (!is_given || pipe2(out, O_CLOEXEC) != 0)
        return -1;
    scoped_fd int read_end = out[0];
    const struct proc_spawn spawn = {.path = "/bin/sh",
                                     .argv = argv,
                                     .envp = environ,
                                     .fds = &given,
                                     .fds_count = 1,
                                     .out_fd = out[1],
                                     .ends_with_us = true};
    int code = proc_spawn(&spawn, &pid, &pidfd, NULL);
    (void)close(out[1]); /* the program's */
    if (code != 0)
        return -1;
    uint64_t at_ms = loop_now_ms() + HELPER_MS;
    bool answered = read_all(read_end, at_ms, to) && wait_for(pidfd, at_ms);
    if (!answered)
        (void)kill(-pid, SIGKILL); /* it leads a session of its own, and nobody has reaped it */
    if (waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED) != 0 || !answered ||
        info.si_code != CLD_EXITED)
        return -1;
    return info.si_status;
}

static void on_pool(struct io_work *work)
{
    struct asking *asking = work->ctx;
    char *answer = calloc(1, HELPER_ANSWER_MAX);

    check(answer != NULL);
    int status = run(asking, answer);
    if (status < 0)
        (void)err_set(
            &asking->failed, ERR_REFUSED,
            "docker: docker-credential-%s get, for %.100s, could not be run, was killed, or "
            "took longer than %d s",
            asking->helper, asking->registry, HELPER_MS / 1000);
    else if (status > 0)
        (void)err_set(&asking->failed, ERR_REFUSED,
                      "docker: docker-credential-%s get, for %.100s, ended with status %d",
                      asking->helper, asking->registry, status);
    else if ((asking->header = helper_header(answer, asking->registry)) == NULL)
        (void)err_set(&asking->failed, ERR_REFUSED,
                      "docker: what docker-credential-%s says for %.100s is no credentials",
                      asking->helper, asking->registry);
    explicit_bzero(answer, HELPER_ANSWER_MAX);
    free(answer);
}

/* --- on the loop --- */

static void on_asked(struct io_work *work)
{
    struct asking *asking = work->ctx;
    struct container *container = asking->waiting;
    const struct err none = {0};

    if (container != NULL) {
        container->helper[0] = '\0';
        container->auth = asking->header;
        asking->header = NULL;
        container_wait_ends(container, container->auth_soft_fail ? &none : &asking->failed);
    }
    if (asking->drivers != NULL) {
        *asking->link = asking->next;
        if (asking->next != NULL)
            asking->next->link = asking->link;
    }
    if (asking->header != NULL)
        explicit_bzero(asking->header, strlen(asking->header));
    free(asking->header);
    free(asking);
}

void helper_begin(struct container *container)
{
    struct drivers *drivers = container->run->drivers;
    struct asking *asking = calloc(1, sizeof(*asking));

    check(asking != NULL);
    asking->drivers = drivers;
    asking->next = drivers->askings;
    asking->link = &drivers->askings;
    if (asking->next != NULL)
        asking->next->link = &asking->next;
    drivers->askings = asking;
    (void)text_copy(asking->helper, sizeof(asking->helper), container->helper); /* of its size */
    helper_registry(container->image, asking->registry);
    container_wait(container, &asking->waiting, NULL, NULL);
    io_work_submit(drivers->config.loop, &asking->work, on_pool, on_asked, asking);
}

void helpers_close(struct drivers *drivers)
{
    while (drivers->askings != NULL) {
        struct asking *asking = drivers->askings;

        drivers->askings = asking->next;
        asking->drivers = NULL; /* its thread ends it */
    }
}
