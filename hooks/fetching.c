/*
 * The process that fetches: started with all that it may know, and heard when it has ended.
 *
 * It cannot outlive the daemon: it ends with the thread that started it, which is the loop's.  What
 * it says is shown to users, and no more is believed of it than its exit code.
 */
#include "hooks/fetching.h"

#include "base/list.h"
#include "io/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { REPORT_BYTES_MAX = 64 * 1024, DESCRIPTORS = 256, EXIT_USAGE = 2, ID_SIZE = 16 };

void fetching_init(struct hooks_fetching *fetching)
{
    *fetching = (struct hooks_fetching){
        .order = -1, .place = -1, .shared = -1, .pidfd = -1, .report = -1, .failing = ""};
}

int fetching_order(struct hooks_fetching *fetching, const char *text, struct err *err)
{
    scoped_fd int fd = memfd_create("order", MFD_CLOEXEC);
    size_t length = strlen(text);

    if (fd < 0 || write(fd, text, length) != (ssize_t)length || lseek(fd, 0, SEEK_SET) != 0)
        return err_os(err, ERR_IO, errno, "cannot hand over what is to be fetched");
    fetching->order = take_fd(&fd);
    return 0;
}

static void close_one(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd); /* nothing was written through it */
    *fd = -1;
}

/* --- its environment --- */

struct variables {
    char **items;
    size_t count, size;
};

static bool is_listed(const char *names, const char *variable)
{
    size_t length = strcspn(variable, "=");

    while (*names != '\0') {
        size_t listed = strcspn(names, ", ");

        if (listed == length && memcmp(names, variable, length) == 0)
            return true;
        names += listed + (names[listed] != '\0');
    }
    return false;
}

/* Nothing of the daemon's but what its configuration names. */
static void choose_variables(const struct hooks *hooks, struct variables *variables)
{
    static const char *const always[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/nonexistent",
                                         "GIT_TERMINAL_PROMPT=0", "LC_ALL=C.UTF-8"};

    for (size_t i = 0; hooks->environment != NULL && hooks->environment[i] != NULL; i++) {
        if (is_listed(hooks->fetch->variables, hooks->environment[i]))
            *list_more(variables) = (char *)hooks->environment[i];
    }
    for (size_t i = 0; i < COUNT_OF(always); i++)
        *list_more(variables) = (char *)always[i];
    *list_more(variables) = NULL;
}

/* --- its end --- */

/* The last line of what it said. */
static void read_report(const struct hooks_fetching *fetching, char *to, size_t size)
{
    static const char unsaid[] = "cairn-fetch did not say why";
    char *text = calloc(1, REPORT_BYTES_MAX + 1);
    size_t length = 0;

    check(text != NULL);
    for (;;) {
        ssize_t got = read(fetching->report, text + length, REPORT_BYTES_MAX - length);

        if (got <= 0 && !(got < 0 && errno == EINTR))
            break;
        length += got > 0 ? (size_t)got : 0;
    }
    char *line = strrchr(text, '\n');
    line = line == NULL ? text : line + 1;
    bool is_said = *line != '\0' && text_is_utf8(line, strlen(line));
    (void)text_format(to, size, "%s%s", is_said ? "" : fetching->failing, is_said ? line : unsaid);
    text_clean(to); /* cut is enough */
    text_whole(to);
    free(text);
}

static void on_end(struct io_watch *watch, int events)
{
    struct hooks_fetching *fetching = watch->ctx;
    struct err err = {0};
    siginfo_t info = {0};

    (void)events;
    if (waitid(P_PIDFD, (id_t)fetching->pidfd, &info, WEXITED | WNOHANG) == 0 && info.si_pid == 0)
        return; /* not yet */
    bool exited = info.si_code == CLD_EXITED;
    if (!exited)
        (void)err_set(&err, ERR_CANCELED, "%scairn-fetch was killed", fetching->failing);
    else if (info.si_status == EXIT_USAGE)
        (void)err_set(&err, ERR_UNSUPPORTED, "%scairn-fetch is of another version",
                      fetching->failing);
    else if (info.si_status != 0) {
        err.code = ERR_IO;
        read_report(fetching, err.text, sizeof(err.text));
    }
    err.recoverable = err.code != 0; /* all of it may be otherwise the next time, as in Nomad */
    fetching->pid = 0;
    io_watch_stop(watch);
    fetching->done(fetching->ctx, &err);
}

/* --- its begin --- */

int fetching_start(struct hooks_fetching *fetching, const struct hooks *hooks,
                   void (*done)(void *ctx, const struct err *err), void *ctx, struct err *err)
{
    struct variables variables = {0};
    char uid[ID_SIZE], gid[ID_SIZE];
    char *const argv[] = {(char[]){"cairn-fetch"}, uid, gid, NULL};
    int report[2];

    if (pipe2(report, O_CLOEXEC | O_NONBLOCK) != 0)
        return err_os(err, ERR_IO, errno, "cannot make a pipe");
    (void)text_format(uid, sizeof(uid), "%u", (unsigned)fetching->uid); /* fits, and below */
    (void)text_format(gid, sizeof(gid), "%u", (unsigned)fetching->gid);
    choose_variables(hooks, &variables);
    const int fds[] = {fetching->order, fetching->place, report[1],
                       fetching->shared >= 0 ? fetching->shared : fetching->place};
    const struct proc_spawn spawn = {
        .path = hooks->fetch->program,
        .argv = argv,
        .envp = variables.items,
        .directory = "/",
        .fds = fds,
        .fds_count = COUNT_OF(fds),
        .files_soft = DESCRIPTORS,
    };
    int code = proc_spawn(&spawn, &fetching->pid, &fetching->pidfd, err);
    free(variables.items);
    (void)close(report[1]); /* it has its own */
    fetching->report = report[0];
    if (code != 0) {
        fetching->pid = 0;
        return code;
    }
    fetching->done = done;
    fetching->ctx = ctx;
    io_watch_start(hooks->loop, &fetching->watch, fetching->pidfd, IO_READABLE, on_end, fetching);
    return 0;
}

void fetching_stop(const struct hooks_fetching *fetching)
{
    if (fetching->pid != 0)
        (void)syscall(SYS_pidfd_send_signal, fetching->pidfd, SIGKILL, NULL, 0); /* or ended */
}

void fetching_close(struct hooks_fetching *fetching)
{
    if (fetching->pid != 0) {
        fetching_stop(fetching);
        io_watch_stop(&fetching->watch);
        (void)waitid(P_PIDFD, (id_t)fetching->pidfd, NULL, WEXITED); /* it is killed */
        fetching->pid = 0;
    }
    close_one(&fetching->order);
    close_one(&fetching->place);
    close_one(&fetching->shared);
    close_one(&fetching->pidfd);
    close_one(&fetching->report);
}
