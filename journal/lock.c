/*
 * The lock file (lock.h): an open-file-description lock, which unlike flock(2) can be looked at
 * without being taken, and unlike fcntl's older locks is not lost when another descriptor of the
 * file is closed.
 */
#include "journal/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

enum {
    DYING_BOUND_MS = 5000, /* a killed holder drops the lock by then */
    LOOK_AGAIN_MS = 5,
    LIVING_MS = 200, /* after the last sign of dying a holder is taken to live */
};

static int open_lock(const char *directory, int flags)
{
    char path[PATH_MAX];

    if (!text_format(path, sizeof(path), "%s/lock", directory)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
}

/* --- who holds it --- */

/* What tells one process from a later one of the same number, and the living from the dying. */
struct holder {
    int pid;
    uint64_t start_ticks; /* field 22 of its stat, 0 if it cannot be read */
};

/* Reads /proc/<pid>/NAME; false if there is no such process. */
static bool read_about(int pid, const char *name, char *to, size_t size)
{
    char path[64];

    (void)text_format(path, sizeof(path), "/proc/%d/%s", pid, name); /* fits */
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t length = read(fd, to, size - 1);
    (void)close(fd); /* only read from */
    to[length > 0 ? length : 0] = '\0';
    return length > 0;
}

/* The text of field NUMBER, 3 or later, of a process' stat; "" if there is none. */
static const char *stat_field(const char *stat, int number)
{
    const char *at = strrchr(stat, ')'); /* the name before it may hold anything */

    for (int field = 2; at != NULL && field < number; field++)
        at = strchr(at + 1, ' ');
    return at != NULL ? at + 1 : "";
}

static uint64_t own_ticks(void)
{
    char stat[1024];

    return read_about((int)getpid(), "stat", stat, sizeof(stat))
               ? strtoull(stat_field(stat, 22), NULL, 10)
               : 0;
}

/* True if SIGKILL is on its way to the main thread. */
static bool is_killed(int pid)
{
    char status[4096];

    if (!read_about(pid, "status", status, sizeof(status)))
        return true;
    const char *pending = strstr(status, "\nSigPnd:");
    return pending != NULL &&
           (strtoull(pending + strlen("\nSigPnd:"), NULL, 16) >> (SIGKILL - 1) & 1u) != 0;
}

/* True if HOLDER has been killed or is gone, so that the kernel is about to drop the lock: a
 * process gives back its memory first, and its files only when its last thread has ended. */
static bool is_dying(const struct holder *holder)
{
    enum { EXITING = 4 }; /* a flag in field 9: it has begun to end */
    char stat[1024];

    if (!read_about(holder->pid, "stat", stat, sizeof(stat)) ||
        strtoull(stat_field(stat, 22), NULL, 10) != holder->start_ticks)
        return true;
    char state = stat_field(stat, 3)[0];
    return state == 'Z' || state == 'X' ||
           (strtoull(stat_field(stat, 9), NULL, 10) & EXITING) != 0 || is_killed(holder->pid);
}

static void write_holder(int fd)
{
    char text[128], since[32];
    time_t now = time(NULL);
    struct tm parts;

    if (gmtime_r(&now, &parts) == NULL ||
        strftime(since, sizeof(since), "%Y-%m-%dT%H:%M:%SZ", &parts) == 0)
        text_copy(since, sizeof(since), "?");
    text_format(text, sizeof(text), "pid %d start %llu since %s\n", (int)getpid(),
                (unsigned long long)own_ticks(), since);
    /* For people and messages only; the lock holds without it, even on a full disk. */
    if (ftruncate(fd, 0) == 0 && pwrite(fd, text, strlen(text), 0) < 0)
        return;
}

/* Who holds it, and in words: "process 17, since ..."; false if that is not known. */
static bool read_holder(int fd, struct holder *ret_holder, char *to, size_t size)
{
    char text[128], since[32];
    unsigned long long ticks;
    ssize_t length = pread(fd, text, sizeof(text) - 1, 0);

    text[length > 0 ? length : 0] = '\0';
    if (sscanf(text, "pid %d start %llu since %31s", &ret_holder->pid, &ticks, since) != 3) {
        text_copy(to, size, "a process that has not said its number yet");
        return false;
    }
    ret_holder->start_ticks = ticks;
    text_format(to, size, "process %d, since %s", ret_holder->pid, since);
    return true;
}

/* --- taking it --- */

static int64_t now_ms(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail */
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Takes the lock of FD, waiting for a holder that is dying but for no other.  0, or errno; then
 * HOLDER says who has it.  Between the signal that kills it and its end a process looks alive for a
 * moment: so it counts as living when it has been seen so for a while. */
static int take(int fd, char *holder, size_t size)
{
    const struct timespec pause = {.tv_nsec = LOOK_AGAIN_MS * 1000000L};
    int64_t start_ms = now_ms(), dying_ms = start_ms; /* the last sign */

    for (;;) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        struct holder who = {.pid = 0};

        if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
            return 0;
        if (errno != EAGAIN && errno != EACCES)
            return errno;
        if (!read_holder(fd, &who, holder, size))
            return EAGAIN;
        int64_t now = now_ms();
        if (is_dying(&who))
            dying_ms = now;
        if (now - dying_ms >= LIVING_MS || now - start_ms >= DYING_BOUND_MS)
            return EAGAIN;
        (void)nanosleep(&pause, NULL); /* woken early it looks early */
    }
}

int lock_take(const char *directory, int *ret_fd, struct err *err)
{
    char holder[ERR_TEXT_SIZE];
    int fd = open_lock(directory, O_RDWR | O_CREAT);

    if (fd < 0)
        return err_os(err, err_from_errno(errno), errno, "open the lock file in %s", directory);
    int os = take(fd, holder, sizeof(holder));
    if (os == 0) {
        write_holder(fd);
        *ret_fd = fd;
        return 0;
    }
    (void)close(fd); /* nothing was written */
    if (os == EAGAIN)
        return err_set(err, ERR_EXISTS, "the journal in %s is in use by %s", directory, holder);
    return err_os(err, ERR_IO, os, "lock the journal in %s", directory);
}

int lock_share(const char *directory, int *ret_fd, struct err *err)
{
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    int fd = open_lock(directory, O_RDONLY);

    if (fd < 0)
        return err_os(err, err_from_errno(errno), errno, "open the lock file in %s", directory);
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fcntl(fd, F_OFD_SETLK, &lock) == 0) {
        *ret_fd = fd;
        return 0;
    }
    int os = errno;
    (void)close(fd); /* only read from */
    if (os == EAGAIN || os == EACCES)
        return err_set(err, ERR_EXISTS, "the journal in %s is in use", directory);
    return err_os(err, ERR_IO, os, "lock the journal in %s", directory);
}

void lock_release(int fd)
{
    struct flock lock = {.l_type = F_UNLCK, .l_whence = SEEK_SET};

    (void)fcntl(fd, F_OFD_SETLK, &lock); /* else it ends with the last copy of FD */
    (void)flock(fd, LOCK_UN);
    (void)close(fd); /* nothing was written */
}

bool lock_is_held(const char *directory)
{
    /* Who shares it only watches, in memory, and keeps nobody from reading. */
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    int fd = open_lock(directory, O_RDONLY);

    if (fd < 0)
        return false;
    bool held = fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
    (void)close(fd); /* OFD locks of other descriptions do not care */
    return held;
}
