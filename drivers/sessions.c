/*
 * Sessions as the daemon sees them: a helper process (drivers/shim/session.c), its socket, and the
 * terminal or the pipes of the command, which the loop reads and writes itself.
 *
 * Nothing of it is durable.  The helper ends all when our end of the socket goes, whoever closes
 * it; when it is the helper that was killed, we end what is in the session's cgroup.  A session
 * that is told to end stays until its helper has been reaped.
 */
#include "drivers/docker/docker.h"
#include "drivers/mock/mock.h"
#include "drivers/mock/pretended.h"
#include "drivers/shim/session.h"
#include "io/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { READ_SIZE = 16 << 10, STREAMS = 2, LAST_WORDS_MS = 1000, INHERITED = 3 };

struct stream {
    struct driver_session *session;
    struct io_watch watch;
    int fd; /* -1: over, or not there yet */
    bool is_stderr;
};

struct driver_session {
    struct drivers *drivers;       /* NULL: the room is closed */
    const struct session_way *way; /* NULL: a helper of ours; else who looks after it, and */
    void *others;                  /* what that knows of it; owned */
    struct driver_session_calls calls;
    bool over; /* nobody is told of anything any more */
    struct driver_session *next, **link;

    /* While the helper is being made only its work touches these. */
    struct io_work work;
    bool working;
    struct plan *plan; /* owned, as what follows */
    struct proc_identity payload;
    int pidfd, helper_fds[INHERITED];
    pid_t pid;
    char *path, shims[CGROUP_NAME_SIZE], cgroup[CGROUP_NAME_SIZE];
    enum cgroup_mode cgroup_mode;
    uint64_t files_soft;
    struct err err;

    struct io_watch control_watch, pidfd_watch, input_watch;
    int control, input_fd;
    struct stream outputs[STREAMS];
    bool terminal, held, input_closed, said, ended;
    char *queue; /* of input, owned */
    size_t queue_used, queue_size;
    uint16_t rows, columns; /* 0: not told */
    int code;
    struct io_timer last_words;
};

/* --- ends --- */

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd); /* sockets, pipes, terminals, and what was only looked at */
    *fd = -1;
}

static void close_input(struct driver_session *session)
{
    io_watch_stop(&session->input_watch);
    close_fd(&session->input_fd);
    free(session->queue);
    session->queue = NULL;
    session->queue_used = session->queue_size = 0;
}

static void close_all(struct driver_session *session)
{
    io_timer_stop(&session->last_words);
    io_watch_stop(&session->control_watch);
    close_fd(&session->control);
    close_input(session);
    for (int i = 0; i < STREAMS; i++) {
        io_watch_stop(&session->outputs[i].watch);
        close_fd(&session->outputs[i].fd);
    }
}

static void session_free(struct driver_session *session)
{
    if (session->others != NULL)
        session->way->end(session->others);
    close_all(session);
    io_watch_stop(&session->pidfd_watch);
    close_fd(&session->pidfd);
    for (int i = 0; i < INHERITED; i++)
        close_fd(&session->helper_fds[i]);
    plan_free(session->plan);
    if (session->drivers != NULL) {
        *session->link = session->next;
        if (session->next != NULL)
            session->next->link = session->link;
    }
    free(session->path);
    free(session);
}

static void on_helper_gone(struct io_watch *watch, int events)
{
    struct driver_session *session = watch->ctx;
    char cgroup[CGROUP_NAME_SIZE];
    siginfo_t info;
    (void)events;

    (void)waitid(P_PIDFD, (id_t)session->pidfd, &info, WEXITED | WNOHANG); /* it has ended */
    io_watch_stop(watch);
    if (session->cgroup[0] != '\0' &&
        text_format(cgroup, sizeof(cgroup), "%s/" SESSION_CGROUP_PREFIX "%d", session->cgroup,
                    session->pid) &&
        cgroup_populated(session->cgroup_mode, cgroup, NULL) == 1)
        (void)cgroup_kill(session->cgroup_mode, cgroup, NULL); /* the rest goes with the task */
    if (session->over)
        session_free(session);
    else
        close_fd(&session->pidfd);
}

/* Nobody is told any more; it goes when its helper has gone. */
static void retire(struct driver_session *session)
{
    session->over = true;
    close_all(session);
    if (!session->working && session->pidfd < 0)
        session_free(session);
}

static void tell_end(struct driver_session *session, int code, const struct err *err)
{
    struct driver_session_calls calls = session->calls;

    retire(session);
    calls.on_end(calls.ctx, code, err);
}

static void on_last_words(struct io_timer *timer)
{
    struct driver_session *session = timer->ctx;

    tell_end(session, session->code, NULL);
}

/* The command has ended; what it wrote is passed on before that is told. */
static void end_if_silent(struct driver_session *session)
{
    if (!session->ended || session->over)
        return;
    for (int i = 0; i < STREAMS; i++) {
        if (session->outputs[i].fd >= 0) {
            if (session->last_words.slot == 0 && !session->held)
                io_timer_start(session->drivers->config.loop, &session->last_words,
                               loop_now_ms() + LAST_WORDS_MS, on_last_words, session);
            return;
        }
    }
    tell_end(session, session->code, NULL);
}

/* --- output --- */

static void on_output(struct io_watch *watch, int events)
{
    struct stream *stream = watch->ctx;
    struct driver_session *session = stream->session;
    char bytes[READ_SIZE];
    ssize_t got = read(stream->fd, bytes, sizeof(bytes));
    (void)events;

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got > 0) {
        session->calls.on_output(session->calls.ctx, stream->is_stderr, bytes, (size_t)got);
        return;
    }
    io_watch_stop(watch); /* a terminal that nobody has open any more fails */
    close_fd(&stream->fd);
    session->calls.on_closed(session->calls.ctx, stream->is_stderr);
    end_if_silent(session);
}

static void watch_outputs(struct driver_session *session)
{
    for (int i = 0; i < STREAMS; i++) {
        struct stream *stream = &session->outputs[i];

        if (stream->fd < 0)
            continue;
        if (session->held)
            io_watch_stop(&stream->watch);
        else
            io_watch_start(session->drivers->config.loop, &stream->watch, stream->fd, IO_READABLE,
                           on_output, stream);
    }
}

void driver_session_hold(struct driver_session *session, bool hold)
{
    if (session->way != NULL) {
        session->way->hold(session->others, hold);
        return;
    }
    session->held = hold;
    io_timer_stop(&session->last_words);
    watch_outputs(session);
    if (!hold && session->ended)
        io_timer_start(session->drivers->config.loop, &session->last_words,
                       loop_now_ms() + LAST_WORDS_MS, on_last_words, session);
}

/* --- input --- */

static void on_input(struct io_watch *watch, int events);

/* What is queued goes where there is room for it now.  Whoever emptied the queue, be it the next
 * bytes that came, a producer that holds back hears of it. */
static void pass_input(struct driver_session *session)
{
    size_t done = 0;

    if (session->input_fd < 0)
        return;
    while (done < session->queue_used) {
        ssize_t put = write(session->input_fd, session->queue + done, session->queue_used - done);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0 && errno == EAGAIN)
            break;
        if (put < 0) { /* nobody reads it any more */
            close_input(session);
            done = session->queue_used;
            break;
        }
        done += (size_t)put;
    }
    session->queue_used -= done;
    if (session->queue_used > 0) {
        memmove(session->queue, session->queue + done, session->queue_used);
        io_watch_start(session->drivers->config.loop, &session->input_watch, session->input_fd,
                       IO_WRITABLE, on_input, session);
        return;
    }
    io_watch_stop(&session->input_watch);
    if (session->input_closed && !session->terminal)
        close_input(session);
    if (session->calls.on_taken != NULL)
        session->calls.on_taken(session->calls.ctx);
}

static void on_input(struct io_watch *watch, int events)
{
    (void)events;

    pass_input(watch->ctx);
}

static void add_input(struct driver_session *session, const char *bytes, size_t length)
{
    size_t room = DRIVER_SESSION_QUEUE_MAX - session->queue_used;

    if (length > room)
        length = room;
    if (length == 0 || (session->said && session->input_fd < 0))
        return;
    session->queue =
        list_room(session->queue, &session->queue_size, session->queue_used + length, 1);
    memcpy(session->queue + session->queue_used, bytes, length);
    session->queue_used += length;
    pass_input(session);
}

size_t driver_session_write(struct driver_session *session, const char *bytes, size_t length)
{
    if (session->way != NULL)
        return session->way->write == NULL || session->input_closed
                   ? 0
                   : session->way->write(session->others, bytes, length);
    if (!session->input_closed)
        add_input(session, bytes, length);
    return session->queue_used;
}

void driver_session_close_input(struct driver_session *session)
{
    static const char end_of_input[] = {4};

    if (session->input_closed)
        return;
    if (session->way != NULL) {
        session->input_closed = true;
        if (session->way->close_input != NULL)
            session->way->close_input(session->others);
        return;
    }
    if (session->terminal)
        add_input(session, end_of_input, sizeof(end_of_input));
    session->input_closed = true;
    pass_input(session);
}

void driver_session_resize(struct driver_session *session, uint16_t rows, uint16_t columns)
{
    struct winsize size = {.ws_row = rows, .ws_col = columns};

    if (session->way != NULL && session->way->resize != NULL)
        session->way->resize(session->others, rows, columns);
    session->rows = rows;
    session->columns = columns;
    if (session->terminal && session->input_fd >= 0)
        (void)ioctl(session->input_fd, TIOCSWINSZ, &size); /* it has ended: nobody looks */
}

/* --- what the helper says --- */

static void take_ends(struct driver_session *session, const int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++)
        (void)fcntl(fds[i], F_SETFL, fcntl(fds[i], F_GETFL) | O_NONBLOCK); /* cannot fail */
    session->input_fd = fds[0];
    if (session->terminal) {
        session->outputs[0].fd = fcntl(fds[0], F_DUPFD_CLOEXEC, 0);
    } else {
        session->outputs[0].fd = fds[1];
        session->outputs[1].fd = fds[2];
    }
    if (session->rows != 0)
        driver_session_resize(session, session->rows, session->columns);
    watch_outputs(session);
    pass_input(session);
}

/* The descriptors of MESSAGE into TO; how many there are. */
static size_t descriptors_of(struct msghdr *message, int to[INHERITED])
{
    const struct cmsghdr *head = CMSG_FIRSTHDR(message);

    if (head == NULL || head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
        return 0;
    size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    check(count <= INHERITED);
    memcpy(to, CMSG_DATA(head), count * sizeof(int));
    return count;
}

static void helper_lost(struct driver_session *session)
{
    struct err err = {0};

    (void)err_set(&err, ERR_IO, "the session was lost: its helper has ended");
    tell_end(session, -1, &err);
}

static void on_said(struct driver_session *session, struct session_said *said, const int *fds,
                    size_t count)
{
    struct err err = {0};

    if (said->kind == SESSION_RUNS && count == (session->terminal ? 1u : 3u) && !session->said) {
        session->said = true;
        take_ends(session, fds, count);
        return;
    }
    for (size_t i = 0; i < count; i++)
        (void)close(fds[i]); /* not asked for */
    said->message[sizeof(said->message) - 1] = '\0';
    if (said->kind == SESSION_ENDED && said->is_gone == 0) {
        session->ended = true;
        session->code = said->code;
        io_watch_stop(&session->control_watch);
        end_if_silent(session);
    } else if (said->kind == SESSION_ENDED) {
        (void)err_set(&err, ERR_GONE, "the task has ended, and the session with it");
        tell_end(session, -1, &err);
    } else if (said->kind == SESSION_FAILED) {
        (void)err_set(&err, said->code, "%s", said->message);
        tell_end(session, -1, &err);
    } else {
        helper_lost(session);
    }
}

static void on_control(struct io_watch *watch, int events)
{
    struct driver_session *session = watch->ctx;
    struct session_said said;
    struct iovec part = {&said, sizeof(said)};
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(INHERITED * sizeof(int))];
    } control;
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes)};
    int fds[INHERITED];
    (void)events;

    ssize_t got = recvmsg(session->control, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got != (ssize_t)sizeof(said)) {
        helper_lost(session);
        return;
    }
    size_t count = descriptors_of(&message, fds);
    on_said(session, &said, fds, count);
}

/* --- what others look after --- */

static void on_others_output(void *ctx, bool is_stderr, const char *bytes, size_t length)
{
    struct driver_session *session = ctx;

    session->calls.on_output(session->calls.ctx, is_stderr, bytes, length);
}

static void on_others_closed(void *ctx, bool is_stderr)
{
    struct driver_session *session = ctx;

    session->calls.on_closed(session->calls.ctx, is_stderr);
}

static void on_others_taken(void *ctx)
{
    struct driver_session *session = ctx;

    if (session->calls.on_taken != NULL)
        session->calls.on_taken(session->calls.ctx);
}

static void on_others_end(void *ctx, int code, const struct err *err)
{
    tell_end(ctx, code, err);
}

/* --- making the helper --- */

static int open_ends(struct driver_session *session)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return err_os(&session->err, ERR_LIMIT, errno, "cannot make a socket");
    session->control = ends[0];
    session->helper_fds[1] = ends[1];
    int code = proc_open(&session->payload, &session->helper_fds[0], &session->err);
    return code != 0 ? code : plan_open(session->plan, &session->helper_fds[2], &session->err);
}

static void make_helper(struct io_work *work)
{
    struct driver_session *session = work->ctx;
    struct plan *plan = session->plan;
    struct io_work look = {.ctx = plan};
    char cgroup[CGROUP_NAME_SIZE + 64];
    char *const argv[] = {(char[]){SESSION_PROGRAM}, NULL}, *const envp[] = {NULL};

    if (plan->user[0] != '\0') {
        plan_look_up_user(&look);
        session->err = plan->error;
        if (plan->error.code != 0)
            return;
        plan_add_user(plan);
    }
    if (open_ends(session) != 0)
        return;
    cgroup_directory(session->cgroup_mode, session->shims, cgroup, sizeof(cgroup));
    struct proc_spawn spawn = {.path = session->path,
                               .argv = argv,
                               .envp = envp,
                               .directory = "/",
                               .fds = session->helper_fds,
                               .fds_count = INHERITED,
                               .cgroup = cgroup[0] == '\0' ? NULL : cgroup,
                               .files_soft = session->files_soft};
    (void)proc_spawn(&spawn, &session->pid, &session->pidfd, &session->err); /* which says it */
    for (int i = 0; i < INHERITED; i++)
        close_fd(&session->helper_fds[i]); /* so that a helper that ends is seen to */
}

static void on_made(struct io_work *work)
{
    struct driver_session *session = work->ctx;

    session->working = false;
    plan_free(session->plan);
    session->plan = NULL;
    if (session->drivers == NULL) {
        session_free(session);
        return;
    }
    if (session->pidfd >= 0)
        io_watch_start(session->drivers->config.loop, &session->pidfd_watch, session->pidfd,
                       IO_READABLE, on_helper_gone, session);
    if (session->over) {
        retire(session); /* it was ended while it was made */
    } else if (session->err.code != 0) {
        struct err err = session->err;

        tell_end(session, -1, &err);
    } else {
        io_watch_start(session->drivers->config.loop, &session->control_watch, session->control,
                       IO_READABLE, on_control, session);
    }
}

/* --- the door --- */

static void link_session(struct driver_session *session)
{
    struct drivers *drivers = session->drivers;

    session->next = drivers->sessions;
    session->link = &drivers->sessions;
    if (session->next != NULL)
        session->next->link = &session->next;
    drivers->sessions = session;
}

/* One that has no helper; what it is to others, they say. */
static struct driver_session *session_of_others(struct drivers *drivers,
                                                const struct driver_session_calls *calls)
{
    struct driver_session *session = calloc(1, sizeof(*session));

    check(session != NULL);
    *session = (struct driver_session){
        .drivers = drivers,
        .calls = *calls,
        .pidfd = -1,
        .helper_fds = {-1, -1, -1},
        .control = -1,
        .input_fd = -1,
        .outputs = {{.fd = -1}, {.fd = -1}},
    };
    link_session(session);
    return session;
}

static struct driver_session_calls calls_of_others(struct driver_session *session)
{
    return (struct driver_session_calls){.on_output = on_others_output,
                                         .on_closed = on_others_closed,
                                         .on_taken = on_others_taken,
                                         .on_end = on_others_end,
                                         .ctx = session};
}

/* In a task that has no process. */
static struct driver_session *pretend(struct drivers *drivers, const struct run *run,
                                      const struct driver_session_calls *calls, struct err *err)
{
    struct driver_session *session = session_of_others(drivers, calls);
    struct driver_session_calls passed = calls_of_others(session);

    session->way = &pretended_way;
    session->others = pretended_new(drivers, run, &passed, err);
    if (session->others != NULL)
        return session;
    session_free(session);
    return NULL;
}

/* In a container, or in a task of a plugin. */
static struct driver_session *ask_other(struct run *run, const struct texts *command, bool terminal,
                                        const struct driver_session_calls *calls, struct err *err)
{
    struct driver_session *session = session_of_others(run->drivers, calls);
    struct driver_session_calls passed = calls_of_others(session);
    bool external = run->phase == RUN_EXTERNAL;

    session->way = external ? &external_session_way : &container_session_way;
    session->others = external ? external_session_new(run, command, terminal, &passed, err)
                               : container_session_new(run, command, terminal, &passed, err);
    if (session->others != NULL)
        return session;
    session_free(session);
    return NULL;
}

struct driver_session *driver_session_new(struct drivers *drivers, const struct driver_start *start,
                                          const char *const *arguments, size_t arguments_count,
                                          bool terminal, const struct driver_session_calls *calls,
                                          struct err *err)
{
    struct run *run = run_find(drivers, &start->key);
    struct texts instead = {(const char **)(uintptr_t)arguments, arguments_count};

    if (arguments_count == 0 || arguments_count > DRIVER_SESSION_ARGUMENTS_MAX ||
        arguments[0][0] == '\0') {
        (void)err_set(err, ERR_INVALID, "a command has 1 to %d words",
                      DRIVER_SESSION_ARGUMENTS_MAX);
        return NULL;
    }
    if (driver_check_commands(driver_kind(drivers, start->key.driver), err) != 0)
        return NULL;
    if (run != NULL && run->phase == RUN_HELD && loop_now_ms() >= mock_begin_ms(run->mock))
        return pretend(drivers, run, calls, err);
    if (run == NULL || run->phase == RUN_HELD || !run_is_running(run)) {
        (void)err_set(err, ERR_GONE, "task \"%s\" is not running", start->key.task);
        return NULL;
    }
    if (run->phase == RUN_CONTAINED || run->phase == RUN_EXTERNAL)
        return ask_other(run, &instead, terminal, calls, err);
    struct plan *plan = plan_make(drivers, start, &instead, err);
    if (plan == NULL)
        return NULL;
    if (terminal)
        plan_add_terminal(plan);
    found_sweep(run); /* before there is one of ours */
    struct driver_session *session = calloc(1, sizeof(*session));
    check(session != NULL);
    *session = (struct driver_session){.drivers = drivers,
                                       .calls = *calls,
                                       .plan = plan,
                                       .payload = run->payload,
                                       .pidfd = -1,
                                       .helper_fds = {-1, -1, -1},
                                       .path = strdup(drivers->shim_path),
                                       .cgroup_mode = drivers->config.cgroup_mode,
                                       .files_soft = drivers->config.files_soft,
                                       .control = -1,
                                       .input_fd = -1,
                                       .terminal = terminal,
                                       .working = true};
    check(session->path != NULL);
    for (int i = 0; i < STREAMS; i++)
        session->outputs[i] = (struct stream){.session = session, .fd = -1, .is_stderr = i == 1};
    link_session(session);
    shims_cgroup(drivers, session->shims);
    key_cgroup(drivers, &start->key, start->task->resources.cores > 0, session->cgroup);
    io_work_submit_ahead(drivers->config.loop, &session->work, make_helper, on_made, session);
    return session;
}

void driver_session_end(struct driver_session *session)
{
    retire(session);
}

void sessions_close(struct drivers *drivers)
{
    while (drivers->sessions != NULL) {
        struct driver_session *session = drivers->sessions;

        drivers->sessions = session->next;
        session->drivers = NULL;
        session->over = true;
        close_all(session);
        io_watch_stop(&session->pidfd_watch);
        if (!session->working)
            session_free(session);
    }
    container_sessions_close(drivers);
}
