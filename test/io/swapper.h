/* An unprivileged process that exchanges names for links while the test works there as root, and an
 * outside that must not notice. */
#ifndef CAIRN_TEST_IO_SWAPPER_H
#define CAIRN_TEST_IO_SWAPPER_H

#include "test/io/scratch.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { SWAPPER_USER = 65534 };

/* DIRECTORY/NAME is a directory now and a link to the outside then. */
struct swap {
    const char *directory, *name;
};

struct swapper {
    char outside[PATH_SIZE]; /* root's alone, with a file "canary" in it */
    pid_t pid;
};

static inline void swapper_open(struct swapper *swapper, struct scratch *scratch)
{
    char canary[PATH_SIZE];

    assert_int_equal(path_join(swapper->outside, scratch->path, "outside"), 0);
    assert_return_code(chmod(scratch->path, 0711), 0);
    assert_return_code(mkdir(swapper->outside, 0700), 0);
    assert_int_equal(path_join(canary, swapper->outside, "canary"), 0);
    put_file(canary, "alive");
    assert_return_code(chmod(canary, 0600), 0);
}

static inline void swapper_exchange(const struct swapper *swapper, const struct swap *swap)
{
    char name[PATH_SIZE], link[PATH_SIZE];

    if (!text_format(name, sizeof(name), "%s/%s", swap->directory, swap->name) ||
        !text_format(link, sizeof(link), "%s/.%s", swap->directory, swap->name))
        _exit(1);
    (void)rmdir(link); /* what was exchanged last time, when it is of no more use */
    (void)!symlink(swapper->outside, link);
    (void)renameat2(AT_FDCWD, name, AT_FDCWD, link, RENAME_EXCHANGE);
}

/* Begins to exchange the COUNT names. */
static inline void swapper_run(struct swapper *swapper, const struct swap *swaps, size_t count)
{
    swapper->pid = fork();
    assert_true(swapper->pid >= 0);
    if (swapper->pid > 0)
        return;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 ||
        setresgid(SWAPPER_USER, SWAPPER_USER, SWAPPER_USER) != 0 ||
        setresuid(SWAPPER_USER, SWAPPER_USER, SWAPPER_USER) != 0)
        _exit(1);
    for (;;) {
        for (size_t i = 0; i < count; i++)
            swapper_exchange(swapper, &swaps[i]);
    }
}

static inline void swapper_stop(struct swapper *swapper)
{
    int status;

    assert_return_code(kill(swapper->pid, SIGKILL), 0);
    assert_int_equal(waitpid(swapper->pid, &status, 0), swapper->pid);
    assert_true(WIFSIGNALED(status)); /* it had been at work */
}

static inline int swapper_see(void *ctx, const char *name, unsigned char type)
{
    (void)type;
    if (!text_equal(name, "canary"))
        print_error("made outside: %s\n", name);
    return text_equal(name, "canary") ? (*(int *)ctx)++, 0 : -EEXIST;
}

static inline bool swapper_see_mount(void *ctx, const char *point)
{
    (void)ctx;
    print_error("mounted outside: %s\n", point);
    return false;
}

static inline void assert_outside_untouched(const struct swapper *swapper)
{
    char canary[PATH_SIZE];
    struct stat status;
    struct err err = {0};
    int seen = 0;
    int fd = open(swapper->outside, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_return_code(fstat(fd, &status), 0);
    assert_int_equal(status.st_mode & 07777u, 0700);
    assert_int_equal(status.st_uid, 0);
    assert_int_equal(directory_each(fd, swapper_see, &seen), 0);
    assert_int_equal(seen, 1);
    assert_return_code(close(fd), 0);
    assert_int_equal(mount_is_point(AT_FDCWD, swapper->outside, &err), 0);
    assert_int_equal(mount_each_below(AT_FDCWD, swapper->outside, swapper_see_mount, NULL, &err),
                     0);
    assert_int_equal(path_join(canary, swapper->outside, "canary"), 0);
    assert_file_is(canary, "alive");
    assert_int_equal(mode_of(canary), 0600);
}

#endif
