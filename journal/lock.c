/*
 * The lock file (lock.h): an open-file-description lock, which unlike flock(2) can be looked at
 * without being taken, and unlike fcntl's older locks is not lost when another descriptor of the
 * file is closed.
 */
#include "journal/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int open_lock(const char *directory, int flags)
{
    char path[PATH_MAX];

    if (!text_format(path, sizeof(path), "%s/lock", directory)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
}

/* Start time of this process in clock ticks, field 22 of its stat; 0 if it cannot be read. */
static uint64_t own_ticks(void)
{
    char text[1024];
    uint64_t ticks = 0;
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return 0;
    ssize_t length = read(fd, text, sizeof(text) - 1);
    (void)close(fd); /* only read from */
    if (length <= 0)
        return 0;
    text[length] = '\0';
    const char *at = strrchr(text, ')'); /* the name before it may hold anything */
    for (int field = 2; at != NULL && field < 22; field++)
        at = strchr(at + 1, ' ');
    if (at != NULL)
        ticks = strtoull(at + 1, NULL, 10);
    return ticks;
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

/* "process 17, since ...", or that it is not known. */
static void read_holder(int fd, char *to, size_t size)
{
    char text[128], since[32];
    int pid;
    ssize_t length = pread(fd, text, sizeof(text) - 1, 0);

    text[length > 0 ? length : 0] = '\0';
    if (sscanf(text, "pid %d start %*u since %31s", &pid, since) == 2)
        text_format(to, size, "process %d, since %s", pid, since);
    else
        text_copy(to, size, "a process that has not said its number yet");
}

int lock_take(const char *directory, int *ret_fd, struct err *err)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char holder[ERR_TEXT_SIZE];
    int fd = open_lock(directory, O_RDWR | O_CREAT);

    if (fd < 0)
        return err_os(err, err_from_errno(errno), errno, "open the lock file in %s", directory);
    if (fcntl(fd, F_OFD_SETLK, &lock) == 0) {
        write_holder(fd);
        *ret_fd = fd;
        return 0;
    }
    int os = errno;
    if (os == EAGAIN || os == EACCES)
        read_holder(fd, holder, sizeof(holder));
    (void)close(fd); /* nothing was written */
    if (os == EAGAIN || os == EACCES)
        return err_set(err, ERR_EXISTS, "the journal in %s is in use by %s", directory, holder);
    return err_os(err, ERR_IO, os, "lock the journal in %s", directory);
}

bool lock_is_held(const char *directory)
{
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    int fd = open_lock(directory, O_RDONLY);

    if (fd < 0)
        return false;
    bool held = fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
    (void)close(fd); /* OFD locks of other descriptions do not care */
    return held;
}
