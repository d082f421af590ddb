/*
 * Who a process is, and sending signals to exactly that one.
 *
 * Invariant (I-4): no signal leaves this file for a bare pid.  A pidfd is opened first and the
 * start time read afterwards: if both belong to the identity, the pidfd does, whatever happens to
 * the number later.  Values of 1 and less never reach the kernel (R-17: kill(-1) hits everything).
 */
#include "io/proc.h"

#include "io/host/part.h"
#include "io/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { EXITING_FLAG = 4 }; /* of the kernel, for a process on its way out */

int small_file_read(int directory_fd, const char *path, char *to, size_t size)
{
    scoped_fd int fd = openat(directory_fd, path, O_RDONLY | O_CLOEXEC);
    size_t used = 0;

    check(size > 1);
    if (fd < 0)
        return -errno;
    while (used < size - 1) {
        ssize_t got = read(fd, to + used, size - 1 - used);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            break;
        used += (size_t)got;
    }
    to[used] = '\0';
    return (int)used;
}

int small_file_write(int directory_fd, const char *path, const char *text)
{
    scoped_fd int fd = openat(directory_fd, path, O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

int proc_boot_id(char to[BOOT_ID_SIZE], struct err *err)
{
    char text[BOOT_ID_SIZE + 1];
    int length = small_file_read(AT_FDCWD, "/proc/sys/kernel/random/boot_id", text, sizeof(text));

    if (length < 0)
        return err_os(err, ERR_IO, -length, "cannot read the boot id");
    text[BOOT_ID_SIZE - 1] = '\0'; /* the line's end */
    if (!uuid_is_valid(text))
        return err_set(err, ERR_CORRUPT, "the boot id is not an id");
    (void)text_copy(to, BOOT_ID_SIZE, text); /* same size */
    return 0;
}

/* The number at the FIELD-th field (from 0) behind the state in a line of /proc/<pid>/stat. */
static uint64_t number_at(const char *at, int field)
{
    uint64_t value = 0;

    for (int i = 0; i < field && *at != '\0'; i++) {
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
    for (; *at >= '0' && *at <= '9'; at++)
        value = value * 10 + (uint64_t)(*at - '0');
    return value;
}

int proc_read_stat(pid_t pid, struct proc_stat *ret_stat)
{
    char path[32], text[512];

    (void)text_format(path, sizeof(path), "/proc/%d/stat", (int)pid); /* fits */
    if (small_file_read(AT_FDCWD, path, text, sizeof(text)) <= 0)
        return ERR_GONE;

    /* The name in parentheses may itself hold spaces and parentheses: the last one ends it. */
    const char *at = strrchr(text, ')');
    if (at == NULL || at[1] != ' ')
        return ERR_GONE;
    at += 2; /* field 3 */
    *ret_stat = (struct proc_stat){.state = *at,
                                   .exiting = (number_at(at, 6) & EXITING_FLAG) != 0,
                                   .parent = (int32_t)number_at(at, 1),
                                   .session = (int32_t)number_at(at, 3),
                                   .user_ticks = number_at(at, 11),
                                   .system_ticks = number_at(at, 12),
                                   .start_ticks = number_at(at, 19),
                                   .rss_pages = number_at(at, 21)};
    return 0;
}

int proc_identify(pid_t pid, struct proc_identity *ret_identity, struct err *err)
{
    struct proc_stat stat;

    if (pid < 1)
        return err_set(err, ERR_INVALID, "%d is not a process", (int)pid);
    if (proc_read_stat(pid, &stat) != 0)
        return err_set(err, ERR_GONE, "process %d does not exist", (int)pid);

    *ret_identity = (struct proc_identity){.pid = pid, .start_ticks = stat.start_ticks};
    return 0;
}

bool proc_is_alive(const struct proc_identity *identity)
{
    struct proc_stat stat;

    return identity->pid > 0 && proc_read_stat(identity->pid, &stat) == 0 &&
           stat.start_ticks == identity->start_ticks && stat.state != 'Z' && stat.state != 'X';
}

int pidfd_of(pid_t pid)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);

    return fd < 0 ? -errno : fd;
}

int pidfd_signal(int pidfd, int signal)
{
    return syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0) < 0 ? -errno : 0;
}

int proc_open(const struct proc_identity *identity, int *ret_fd, struct err *err)
{
    struct proc_stat stat;

    if (identity->pid <= 1)
        return err_set(err, ERR_INVALID, "%d is not a process of ours", (int)identity->pid);

    scoped_fd int fd = pidfd_of(identity->pid);
    if (fd < 0 && fd != -ESRCH && fd != -EINVAL)
        return err_os(err, err_from_errno(-fd), -fd, "cannot open process %d", (int)identity->pid);
    if (fd < 0 || proc_read_stat(identity->pid, &stat) != 0 ||
        stat.start_ticks != identity->start_ticks)
        return err_set(err, ERR_GONE, "process %d is gone", (int)identity->pid);

    *ret_fd = take_fd(&fd);
    return 0;
}

int proc_signal(const struct proc_identity *identity, int signal, struct err *err)
{
    scoped_fd int fd = -1;
    char name[SIGNAL_NAME_SIZE];
    int code = proc_open(identity, &fd, err);

    if (code != 0)
        return code;
    if (!proc_is_alive(identity))
        return err_set(err, ERR_GONE, "process %d has ended", (int)identity->pid);
    code = pidfd_signal(fd, signal);
    if (code == -ESRCH)
        return err_set(err, ERR_GONE, "process %d has ended", (int)identity->pid);
    if (code != 0)
        return err_os(err, err_from_errno(-code), -code, "cannot send %s to process %d",
                      proc_signal_name(signal, name), (int)identity->pid);
    return 0;
}

/* --- names of signals --- */

/* clang-format off */
#define SIGNALS(X)                                                                                 \
    X(HUP) X(INT) X(QUIT) X(ILL) X(TRAP) X(ABRT) X(BUS) X(FPE) X(KILL) X(USR1) X(SEGV) X(USR2)     \
    X(PIPE) X(ALRM) X(TERM) X(STKFLT) X(CHLD) X(CONT) X(STOP) X(TSTP) X(TTIN) X(TTOU) X(URG)       \
    X(XCPU) X(XFSZ) X(VTALRM) X(PROF) X(WINCH) X(IO) X(PWR) X(SYS)
/* clang-format on */

enum { SIGNAL_NUMBER_MAX = 64 };

static const struct {
    int number;
    const char *name;
} signals[] = {
#define X(name) {SIG##name, "SIG" #name},
    SIGNALS(X)
#undef X
        {SIGIOT, "SIGIOT"}, /* the second names: found by name, never used as one */
    {SIGPOLL, "SIGPOLL"},
};

int proc_signal_number(const char *name)
{
    uint64_t number;

    if (text_to_u64(name, &number))
        return number <= SIGNAL_NUMBER_MAX ? (int)number : 0;
    for (size_t i = 0; i < COUNT_OF(signals); i++) {
        if (text_equal(name, signals[i].name) || text_equal(name, signals[i].name + 3))
            return signals[i].number;
    }
    return 0;
}

const char *proc_signal_name(int number, char to[SIGNAL_NAME_SIZE])
{
    const char *name = NULL;

    for (size_t i = 0; i < COUNT_OF(signals) && name == NULL; i++) {
        if (signals[i].number == number)
            name = signals[i].name;
    }
    if (name != NULL)
        (void)text_copy(to, SIGNAL_NAME_SIZE, name); /* fits */
    else
        (void)text_format(to, SIGNAL_NAME_SIZE, "signal %d", number); /* fits */
    return to;
}
