/*
 * The process that asks: cairn-fetch, one for the node, there as long as somebody has checks.
 *
 * What it reads are the words of strangers, so of itself nothing is believed: an answer that is
 * none, or does not come in time, ends it.  Then what it was asked has failed, and after a pause,
 * which grows with each such end, the next one is asked what waits.  It cannot outlive the daemon:
 * it ends with the thread that started it, which is the loop's, and with its socket.
 */
#include "hooks/services/part.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum {
    DESCRIPTORS = 4 * WIRE_AT_ONCE,
    GRACE_MS = 10000, /* that an answer may come later than it should */
    LOOK_MS = 5000,   /* how often such are looked for */
    PAUSE_MS_MIN = 1000,
    PAUSE_MS_MAX = 30000,
    WELL_MS = 60000, /* after so long an end is as good as the first */
};

enum checker_state {
    CHECKER_NONE,
    CHECKER_RUNS,
    CHECKER_ENDS,   /* it was told to, or has ended and is to be reaped */
    CHECKER_PAUSES, /* there is none until the pause is over */
};

/* An order that the process has. */
struct slot {
    uint64_t number; /* 0: free */
    uint64_t until_ms;
    struct checker_job *job; /* NULL: nobody waits for it any more */
};

struct checker {
    struct hooks *hooks;
    unsigned users;
    enum checker_state state;
    bool was_wanted; /* it ends though it was to go on */
    pid_t pid;
    int pidfd, socket;
    int hears; /* what of the socket, as IO_* */
    struct io_watch hear, end;
    struct io_timer pause, look;
    uint64_t began_ms, pause_ms;
    uint64_t number; /* of the last order */
    struct checker_job *waiting, **waiting_end;
    unsigned flying; /* orders with the process */
    struct slot slots[WIRE_AT_ONCE];
};

static void give_orders(struct checker *checker);

/* --- jobs --- */

static void append(struct checker *checker, struct checker_job *job)
{
    job->next = NULL;
    job->link = checker->waiting_end;
    *checker->waiting_end = job;
    checker->waiting_end = &job->next;
}

static void take_out(struct checker *checker, struct checker_job *job)
{
    *job->link = job->next;
    if (job->next != NULL)
        job->next->link = job->link;
    else
        checker->waiting_end = job->link;
    job->link = NULL;
}

static void fail(struct checker_job *job, const char *text)
{
    const struct wire_answer answer = {.output = text};

    job->done(job, &answer);
}

/* Those that are asked for meanwhile wait on. */
static void fail_waiting(struct checker *checker, const char *text)
{
    uint64_t last = 0;

    for (struct checker_job *job = checker->waiting; job != NULL; job = job->next)
        last++;
    for (; last > 0 && checker->waiting != NULL; last--) {
        struct checker_job *job = checker->waiting;

        take_out(checker, job);
        fail(job, text);
    }
}

static struct checker_job *empty_slot(struct checker *checker, struct slot *slot)
{
    struct checker_job *job = slot->job;

    *slot = (struct slot){0};
    checker->flying--;
    if (job != NULL)
        job->slot = 0;
    return job;
}

static void fail_flying(struct checker *checker)
{
    for (size_t i = 0; i < WIRE_AT_ONCE; i++) {
        struct checker_job *job =
            checker->slots[i].number != 0 ? empty_slot(checker, &checker->slots[i]) : NULL;

        if (job != NULL)
            fail(job, "nomad: the process that checks has ended");
    }
}

/* --- its end --- */

static void free_if_idle(struct checker *checker)
{
    if (checker->users > 0 || checker->state == CHECKER_RUNS || checker->state == CHECKER_ENDS)
        return;
    io_timer_stop(&checker->pause);
    checker->hooks->checker = NULL;
    free(checker);
}

/* No word of it is heard any more, and it is reaped soon. */
static void finish(struct checker *checker, bool was_wanted)
{
    if (checker->state != CHECKER_RUNS)
        return;
    checker->state = CHECKER_ENDS;
    checker->was_wanted = was_wanted;
    io_timer_stop(&checker->look);
    io_watch_stop(&checker->hear);
    (void)close(checker->socket);                                           /* it reads that */
    (void)syscall(SYS_pidfd_send_signal, checker->pidfd, SIGKILL, NULL, 0); /* or it has ended */
}

static void start(struct checker *checker);

static void pause_over(struct io_timer *timer)
{
    struct checker *checker = timer->ctx;

    checker->state = CHECKER_NONE;
    if (checker->waiting != NULL)
        start(checker);
}

static void take_pause(struct checker *checker)
{
    uint64_t now_ms = loop_now_ms();

    if (checker->pause_ms == 0 || now_ms - checker->began_ms >= WELL_MS)
        checker->pause_ms = PAUSE_MS_MIN;
    checker->state = CHECKER_PAUSES;
    io_timer_start(checker->hooks->loop, &checker->pause, now_ms + checker->pause_ms, pause_over,
                   checker);
    checker->pause_ms = 2 * checker->pause_ms < PAUSE_MS_MAX ? 2 * checker->pause_ms : PAUSE_MS_MAX;
}

static void on_end(struct io_watch *watch, int events)
{
    struct checker *checker = watch->ctx;
    siginfo_t info = {0};

    (void)events;
    if (waitid(P_PIDFD, (id_t)checker->pidfd, &info, WEXITED | WNOHANG) == 0 && info.si_pid == 0)
        return; /* not yet */
    finish(checker, true);
    io_watch_stop(&checker->end);
    (void)close(checker->pidfd); /* nothing was written to it */
    checker->state = CHECKER_NONE;
    if (checker->was_wanted && checker->users > 0)
        take_pause(checker);
    checker->users++; /* those who are told may be the last */
    fail_flying(checker);
    checker->users--;
    if (checker->state == CHECKER_NONE && checker->waiting != NULL)
        start(checker);
    else
        free_if_idle(checker);
}

/* --- what it says --- */

static struct slot *find_slot(struct checker *checker, uint64_t number)
{
    for (size_t i = 0; i < WIRE_AT_ONCE; i++) {
        if (checker->slots[i].number == number && number != 0)
            return &checker->slots[i];
    }
    return NULL;
}

/* False: it is gone, or says what it should not. */
static bool hear_one(struct checker *checker)
{
    char message[WIRE_ANSWER_MAX + 1];
    struct wire_answer answer;
    ssize_t length = recv(checker->socket, message, sizeof(message) - 1, MSG_DONTWAIT | MSG_TRUNC);

    if (length < 0)
        return errno == EINTR;
    struct slot *slot = length > WIRE_ANSWER_MAX || length == 0 ||
                                !wire_answer_read(message, (size_t)length, &answer)
                            ? NULL
                            : find_slot(checker, answer.number);
    if (slot == NULL) {
        finish(checker, true);
        return false;
    }
    struct checker_job *job = empty_slot(checker, slot);
    if (job != NULL)
        job->done(job, &answer);
    return checker->state == CHECKER_RUNS;
}

static void on_socket(struct io_watch *watch, int events)
{
    struct checker *checker = watch->ctx;
    bool goes_on = true;

    (void)events;
    checker->users++; /* those who are told may be the last */
    for (int i = 0; goes_on && i < WIRE_AT_ONCE; i++)
        goes_on = hear_one(checker);
    checker->users--;
    if (checker->users == 0)
        finish(checker, false);
    give_orders(checker);
}

/* --- what it is told --- */

/* False: not now, or never. */
static bool tell(struct checker *checker, uint64_t number, const char *order, size_t length)
{
    uint8_t head[WIRE_NUMBER];
    struct iovec parts[] = {{head, sizeof(head)}, {(void *)(uintptr_t)order, length}};
    const struct msghdr message = {.msg_iov = parts, .msg_iovlen = COUNT_OF(parts)};

    wire_number(head, number);
    if (sendmsg(checker->socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
        return true;
    if (errno != EAGAIN && errno != EINTR)
        finish(checker, true);
    return false;
}

static void on_look(struct io_timer *timer)
{
    struct checker *checker = timer->ctx;
    uint64_t now_ms = loop_now_ms();

    for (size_t i = 0; i < WIRE_AT_ONCE; i++) {
        if (checker->slots[i].number != 0 && now_ms > checker->slots[i].until_ms) {
            finish(checker, true); /* it is stuck */
            return;
        }
    }
    if (checker->flying > 0)
        io_timer_start(checker->hooks->loop, &checker->look, now_ms + LOOK_MS, on_look, checker);
}

static struct slot *free_slot(struct checker *checker)
{
    for (size_t i = 0; i < WIRE_AT_ONCE; i++) {
        if (checker->slots[i].number == 0)
            return &checker->slots[i];
    }
    return NULL;
}

static bool give_order(struct checker *checker, struct checker_job *job)
{
    struct slot *slot = checker->flying < WIRE_AT_ONCE ? free_slot(checker) : NULL;
    uint64_t now_ms = loop_now_ms();

    if (slot == NULL || !tell(checker, checker->number + 1, job->order, job->order_length))
        return false;
    if (checker->flying == 0)
        io_timer_start(checker->hooks->loop, &checker->look, now_ms + LOOK_MS, on_look, checker);
    take_out(checker, job);
    *slot = (struct slot){
        .number = ++checker->number, .until_ms = now_ms + job->timeout_ms + GRACE_MS, .job = job};
    job->slot = (unsigned)(slot - checker->slots) + 1;
    checker->flying++;
    return true;
}

/* As many as it takes; whatever an error is, it ends then. */
static void give_orders(struct checker *checker)
{
    if (checker->state != CHECKER_RUNS)
        return;
    while (checker->waiting != NULL && give_order(checker, checker->waiting)) {
    }
    bool is_full = checker->waiting != NULL && checker->flying < WIRE_AT_ONCE;
    int events = is_full ? IO_READABLE | IO_WRITABLE : IO_READABLE;
    if (checker->state == CHECKER_RUNS && checker->hears != events)
        io_watch_start(checker->hooks->loop, &checker->hear, checker->socket, events, on_socket,
                       checker);
    checker->hears = events;
}

/* --- its begin --- */

static int spawn(struct checker *checker, int socket, struct err *err)
{
    char *const argv[] = {(char[]){"cairn-fetch"}, (char[]){WIRE_MODE}, NULL};
    char *const envp[] = {(char[]){"PATH=/usr/local/bin:/usr/bin:/bin"}, (char[]){"LC_ALL=C.UTF-8"},
                          NULL};

    if (checker->hooks->fetch == NULL)
        return err_set(err, ERR_UNSUPPORTED, "there is no cairn-fetch");
    const struct proc_spawn spawn = {
        .path = checker->hooks->fetch->program,
        .argv = argv,
        .envp = envp,
        .directory = "/",
        .fds = &socket,
        .fds_count = 1,
        .files_soft = DESCRIPTORS,
    };
    return proc_spawn(&spawn, &checker->pid, &checker->pidfd, err);
}

static void start(struct checker *checker)
{
    struct err err = {0};
    int sockets[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0)
        (void)err_os(&err, ERR_IO, errno, "cannot make a socket");
    else {
        int code = spawn(checker, sockets[1], &err);
        (void)close(sockets[1]); /* it has its own */
        if (code != 0)
            (void)close(sockets[0]); /* nothing was sent */
    }
    checker->began_ms = loop_now_ms();
    if (err.code != 0) {
        char text[sizeof(err.text) + 40];

        (void)text_format(text, sizeof(text), "nomad: cannot check: %s", err.text); /* fits */
        take_pause(checker);
        checker->users++; /* those who are told may be the last */
        fail_waiting(checker, text);
        checker->users--;
        free_if_idle(checker);
        return;
    }
    checker->state = CHECKER_RUNS;
    checker->hears = 0;
    checker->socket = sockets[0];
    io_watch_start(checker->hooks->loop, &checker->end, checker->pidfd, IO_READABLE, on_end,
                   checker);
    give_orders(checker);
}

/* --- who uses it --- */

void checker_use(struct hooks *hooks)
{
    struct checker *checker = hooks->checker;

    if (checker == NULL) {
        checker = calloc(1, sizeof(*checker));
        check(checker != NULL);
        checker->hooks = hooks;
        checker->waiting_end = &checker->waiting;
        hooks->checker = checker;
    }
    checker->users++;
}

void checker_leave(struct hooks *hooks)
{
    struct checker *checker = hooks->checker;

    check(checker != NULL && checker->users > 0);
    if (--checker->users > 0)
        return;
    check(checker->waiting == NULL);
    finish(checker, false);
    free_if_idle(checker);
}

void checker_ask(struct hooks *hooks, struct checker_job *job)
{
    struct checker *checker = hooks->checker;

    append(checker, job);
    if (checker->state == CHECKER_NONE)
        start(checker);
    else
        give_orders(checker);
}

void checker_forget(struct hooks *hooks, struct checker_job *job)
{
    struct checker *checker = hooks->checker;

    if (job->link != NULL)
        take_out(checker, job);
    if (job->slot == 0)
        return;
    struct slot *slot = &checker->slots[job->slot - 1];
    slot->job = NULL;
    job->slot = 0;
    if (checker->state == CHECKER_RUNS)
        (void)tell(checker, slot->number, NULL, 0); /* else it answers later */
}

void checker_free(struct hooks *hooks)
{
    struct checker *checker = hooks->checker;

    if (checker == NULL)
        return;
    finish(checker, false);
    if (checker->state == CHECKER_ENDS) {
        io_watch_stop(&checker->end);
        (void)waitid(P_PIDFD, (id_t)checker->pidfd, NULL, WEXITED); /* it is killed */
        (void)close(checker->pidfd);
    }
    io_timer_stop(&checker->pause);
    free(checker);
    hooks->checker = NULL;
}
