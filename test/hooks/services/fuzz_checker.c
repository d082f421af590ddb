/* Whatever the process that checks may say, and when it ends, to a daemon that asks it, changes its
 * mind and asks again. */
#include "test/fuzz.h"

#include "hooks/part.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { JOBS = 6, FAKE_FD = 1000 };

static struct fuzz_input said;
static bool is_alive, takes;

static int fake_spawn(const struct proc_spawn *spawn, pid_t *ret_pid, int *ret_pidfd,
                      struct err *err)
{
    check(!is_alive && spawn->fds_count == 1);
    (void)err;
    is_alive = true;
    *ret_pid = FAKE_FD;
    *ret_pidfd = FAKE_FD;
    return 0;
}

static int fake_socketpair(int sockets[2])
{
    sockets[0] = sockets[1] = FAKE_FD;
    return 0;
}

/* One message: how long it is, and the rest. */
static ssize_t fake_recv(char *to, size_t size)
{
    size_t length;

    if (said.left == 0) {
        errno = EAGAIN;
        return -1;
    }
    length = said.at[0] | (size_t)(said.at[0] & 0xf0) << 5; /* of some it is too long */
    said.at++;
    said.left--;
    if (length > said.left)
        length = said.left;
    memcpy(to, said.at, length < size ? length : size);
    said.at += length;
    said.left -= length;
    return (ssize_t)length;
}

static ssize_t fake_send(void)
{
    check(is_alive);
    errno = EAGAIN;
    return takes ? 1 : -1;
}

static int fake_wait(siginfo_t *info)
{
    if (info != NULL)
        info->si_pid = FAKE_FD;
    is_alive = false;
    return 0;
}

static void no_watch(const struct io_watch *watch)
{
    check(watch != NULL);
}

static void fake_timer(struct io_timer *timer, void (*cb)(struct io_timer *timer), void *ctx)
{
    timer->cb = cb;
    timer->ctx = ctx;
    timer->slot = 1;
}

#define proc_spawn(...) fake_spawn(__VA_ARGS__)
#define socketpair(domain, type, protocol, sockets) fake_socketpair(sockets)
#define recv(fd, to, size, flags) fake_recv(to, size)
#define sendmsg(fd, message, flags) ((void)(message), fake_send())
#define waitid(type, id, info, options) fake_wait(info)
#define close(fd) ((void)(fd), 0)
#define syscall(...) 0L
#define io_watch_start(loop, watch, fd, events, callback, context)                                 \
    ((watch)->cb = (callback), (watch)->ctx = (context))
#define io_watch_stop(watch) no_watch(watch)
#define io_timer_start(loop, timer, at, cb, ctx) fake_timer(timer, cb, ctx)
#define io_timer_stop(timer) ((timer)->slot = 0)
#include "hooks/services/checker.c"

static struct checker_job jobs[JOBS];
static bool asked[JOBS];

static void on_done(struct checker_job *job, const struct wire_answer *answer)
{
    size_t number = (size_t)(job - jobs);

    check(asked[number] && job->link == NULL && job->slot == 0);
    check(answer->code <= 999 && text_is_utf8(answer->output, strlen(answer->output)));
    check(strlen(answer->output) <= WIRE_OUTPUT_MAX);
    asked[number] = false;
}

static void toggle(struct hooks *hooks, size_t number)
{
    struct checker_job *job = &jobs[number];

    if (asked[number]) {
        asked[number] = false;
        checker_forget(hooks, job);
        check(job->link == NULL && job->slot == 0);
        return;
    }
    *job = (struct checker_job){.order = "{}", .order_length = 2, .timeout_ms = 1, .done = on_done};
    asked[number] = true;
    checker_ask(hooks, job);
}

static void step(struct hooks *hooks, uint8_t what, const struct fuzz_input *bytes)
{
    struct checker *checker = hooks->checker;

    takes = (what & 0x80) == 0;
    if ((what & 0x7f) < JOBS)
        toggle(hooks, what & 0x7f);
    else if ((what & 0x7f) == JOBS && is_alive)
        on_end(&checker->end, IO_READABLE);
    else if ((what & 0x7f) == JOBS + 1 && checker->pause.slot != 0) {
        checker->pause.slot = 0;
        pause_over(&checker->pause);
    } else if (checker->state == CHECKER_RUNS) {
        said = *bytes;
        on_socket(&checker->hear, IO_READABLE);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct hooks_fetch fetch = {.program = "/none"};
    struct hooks hooks = {.fetch = &fetch};

    memset(asked, 0, sizeof(asked));
    is_alive = false;
    checker_use(&hooks);
    while (size >= 2) {
        size_t length = data[1] < size - 2 ? data[1] : size - 2;
        const struct fuzz_input bytes = {data + 2, length};

        step(&hooks, data[0], &bytes);
        data += 2 + length;
        size -= 2 + length;
    }
    for (size_t i = 0; i < JOBS; i++) {
        if (asked[i])
            toggle(&hooks, i);
    }
    checker_leave(&hooks);
    if (is_alive)
        on_end(&hooks.checker->end, IO_READABLE);
    check(hooks.checker == NULL && !is_alive);
    return 0;
}
