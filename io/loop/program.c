#include "io/program.h"

#include "io/loop.h"
#include "io/proc.h"
#include "io/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { STREAMS = 2 };

/* What comes out of one stream of it. */
struct stream {
    int fd; /* -1: ended */
    char *bytes;
    size_t length, size; /* of bytes, which has room for a NUL more */
    bool cut;            /* what is more is dropped */
};

bool program_find(const char *path, const char *name, char to[PATH_SIZE])
{
    struct stat status;

    while (*path != '\0') {
        size_t length = strcspn(path, ":");

        if (*path == '/' && text_format(to, PATH_SIZE, "%.*s/%s", (int)length, path, name) &&
            stat(to, &status) == 0 && S_ISREG(status.st_mode) && access(to, X_OK) == 0)
            return true;
        path += length;
        path += *path == ':';
    }
    return false;
}

/* A descriptor from which INPUT is read. */
static int open_input(const char *input, struct err *err)
{
    scoped_fd int fd = memfd_create("cairn-program", MFD_CLOEXEC);
    size_t length = strlen(input), done = 0;

    while (fd >= 0 && done < length) {
        ssize_t put = write(fd, input + done, length - done);

        if (put < 0 && errno != EINTR)
            break;
        done += put > 0 ? (size_t)put : 0;
    }
    if (fd < 0 || done < length || lseek(fd, 0, SEEK_SET) != 0)
        return err_os(err, err_from_errno(errno), errno, "cannot hand over its configuration");
    return take_fd(&fd);
}

/* Reads what is there; false: too much came. */
static bool drain(struct stream *stream)
{
    char lost[4096];
    size_t room = stream->size - stream->length;
    ssize_t got = room > 0 ? read(stream->fd, stream->bytes + stream->length, room)
                           : read(stream->fd, lost, sizeof(lost));

    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return true;
    if (got <= 0) {
        (void)close(stream->fd); /* it has ended */
        stream->fd = -1;
        return true;
    }
    if (room == 0)
        return stream->cut;
    stream->length += (size_t)got;
    return true;
}

/* Until one of the POLLS is ready; ERR_TIMEOUT, ERR_CANCELED: that is the last of them. */
static int wait_for(struct pollfd *polls, nfds_t count, uint64_t until_ms)
{
    int ready;

    do {
        uint64_t now_ms = loop_now_ms();
        ready = poll(polls, count, now_ms >= until_ms ? 0 : (int)(until_ms - now_ms));
    } while (ready < 0 && errno == EINTR);
    if (ready <= 0)
        return ERR_TIMEOUT;
    return polls[count - 1].revents != 0 ? ERR_CANCELED : 0;
}

/* Until both streams have ended; ERR_TIMEOUT, ERR_CANCELED, ERR_LIMIT. */
static int listen_to(struct stream streams[STREAMS], int cancel_fd, uint64_t until_ms)
{
    while (streams[0].fd >= 0 || streams[1].fd >= 0) {
        struct pollfd polls[STREAMS + 1] = {[STREAMS] = {.fd = cancel_fd, .events = POLLIN}};

        for (int i = 0; i < STREAMS; i++)
            polls[i] = (struct pollfd){.fd = streams[i].fd, .events = POLLIN};
        int code = wait_for(polls, COUNT_OF(polls), until_ms);
        if (code != 0)
            return code;
        for (int i = 0; i < STREAMS; i++) {
            if (polls[i].revents != 0 && !drain(&streams[i]))
                return ERR_LIMIT;
        }
    }
    return 0;
}

/* Its end, for which a program that has closed its streams may need a moment; ERR_TIMEOUT,
 * ERR_CANCELED. */
static int await_end(int pidfd, int cancel_fd, uint64_t until_ms, int *ret_status)
{
    struct pollfd polls[] = {{.fd = pidfd, .events = POLLIN}, {.fd = cancel_fd, .events = POLLIN}};
    siginfo_t info = {0};
    int code = wait_for(polls, COUNT_OF(polls), until_ms);

    if (code != 0)
        return code;
    check(waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED) == 0); /* a child of ours, and ended */
    *ret_status = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
    return 0;
}

/* Ends it with all that it has started, and takes its end. */
static void end(pid_t pid, int pidfd)
{
    struct proc_identity self;
    siginfo_t info;

    if (proc_identify(pid, &self, NULL) == 0)
        (void)proc_kill_session(&self, NULL);                      /* it may have ended by itself */
    (void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0); /* the same */
    while (waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED) != 0 && errno == EINTR) {
    }
}

static int start(const struct program_call *call, const int ends[STREAMS], pid_t *ret_pid,
                 int *ret_pidfd, struct err *err)
{
    static const char script[] = "p=$0; exec \"$p\" \"$@\" <&3 >&4 2>&5 3<&- 4>&- 5>&-";
    char *argv[32] = {(char[]){"sh"}, (char[]){"-c"}, (char *)(uintptr_t)script,
                      (char *)(uintptr_t)call->program};
    size_t count = 4;
    scoped_fd int input = open_input(call->input, err);

    if (input < 0)
        return input;
    for (size_t i = 1; call->argv != NULL && call->argv[i] != NULL; i++) {
        check(count < COUNT_OF(argv) - 1);
        argv[count++] = call->argv[i];
    }
    const int fds[] = {input, ends[0], ends[1], call->lock_fd};
    struct proc_spawn spawn = {
        .path = "/bin/sh",
        .argv = argv,
        .envp = call->environment,
        .fds = fds,
        .fds_count = call->lock_fd >= 0 ? 4 : 3,
        .ends_with_us = call->ends_with_us,
    };
    return proc_spawn(&spawn, ret_pid, ret_pidfd, err);
}

/* One line of what it complained of. */
static void tell_complaint(const struct stream *stream, char to[PROGRAM_COMPLAINT_MAX])
{
    (void)text_copy(to, PROGRAM_COMPLAINT_MAX, stream->bytes); /* of that size */
    to[strcspn(to, "\n")] = '\0';
    text_whole(to);
    text_clean(to);
}

static int not_heard(int code, const struct program_call *call, struct err *err)
{
    if (code == ERR_LIMIT)
        return err_set(err, code, "it says more than %d bytes", PROGRAM_OUTPUT_MAX);
    if (code == ERR_CANCELED)
        return err_set(err, code, "nobody waits for it any more");
    return err_set(err, code, "it has not ended within %llu s",
                   (unsigned long long)(call->limit_ms / 1000));
}

static void release(char *output)
{
    if (output != NULL)
        explicit_bzero(output, strlen(output)); /* it may be a secret */
    free(output);
}

int program_run(const struct program_call *call, struct program_answer *ret_answer, struct err *err)
{
    struct stream streams[STREAMS] = {
        {.fd = -1, .size = PROGRAM_OUTPUT_MAX},
        {.fd = -1, .size = PROGRAM_COMPLAINT_MAX - 1, .cut = true},
    };
    uint64_t until_ms = loop_now_ms() + call->limit_ms;
    int out[2], complaints[2], status = 0;
    scoped_fd int pidfd = -1;
    pid_t pid;

    if (pipe2(out, O_CLOEXEC) != 0)
        return err_os(err, err_from_errno(errno), errno, "cannot make a pipe");
    if (pipe2(complaints, O_CLOEXEC) != 0) {
        (void)close(out[0]); /* nobody has them */
        (void)close(out[1]);
        return err_os(err, err_from_errno(errno), errno, "cannot make a pipe");
    }
    streams[0].fd = out[0];
    streams[1].fd = complaints[0];
    for (int i = 0; i < STREAMS; i++) {
        streams[i].bytes = calloc(1, streams[i].size + 1);
        check(streams[i].bytes != NULL);
    }
    int code = start(call, (const int[]){out[1], call->together ? out[1] : complaints[1]}, &pid,
                     &pidfd, err);
    (void)close(out[1]); /* the program's */
    (void)close(complaints[1]);
    if (code == 0) {
        int heard = listen_to(streams, call->cancel_fd, until_ms);

        heard = heard == 0 ? await_end(pidfd, call->cancel_fd, until_ms, &status) : heard;
        if (heard != 0) {
            end(pid, pidfd);
            code = not_heard(heard, call, err);
        }
    }
    for (int i = 0; i < STREAMS; i++)
        scope_close_fd(&streams[i].fd);
    *ret_answer = (struct program_answer){.status = status};
    tell_complaint(&streams[1], ret_answer->complaint);
    free(streams[1].bytes);
    if (code == 0)
        ret_answer->output = streams[0].bytes;
    else
        release(streams[0].bytes);
    return code;
}

void program_close(struct program_answer *answer)
{
    release(answer->output);
    answer->output = NULL;
}
