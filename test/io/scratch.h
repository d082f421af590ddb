/* A directory of its own for each test, gone afterwards whatever is in it. */
#ifndef CAIRN_TEST_IO_SCRATCH_H
#define CAIRN_TEST_IO_SCRATCH_H

#include "io/host.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct scratch {
    char path[PATH_SIZE];
    char text[PATH_SIZE]; /* where at() builds a path, until the next call */
    struct err err;
};

static inline bool scratch_sees(void *ctx, const char *point)
{
    (void)ctx;
    (void)point;
    return false;
}

static inline int scratch_make(void **state)
{
    struct scratch *scratch = calloc(1, sizeof(*scratch));
    char made[] = "/tmp/cairn-test-XXXXXX";

    assert_non_null(scratch);
    assert_non_null(mkdtemp(made));
    assert_non_null(realpath(made, scratch->path));
    /* What a process opens once, the mount table, is open before anybody counts descriptors. */
    assert_int_equal(mount_each_below(AT_FDCWD, made, scratch_sees, NULL, &scratch->err), 0);
    *state = scratch;
    return 0;
}

static inline int scratch_remove(void **state)
{
    struct scratch *scratch = *state;
    int code = tree_remove(AT_FDCWD, scratch->path, &scratch->err);

    if (code != 0)
        print_message("left behind: %s\n", scratch->err.text);
    free(scratch);
    return code;
}

static inline const char *at(struct scratch *scratch, const char *name)
{
    assert_int_equal(path_join(scratch->text, scratch->path, name), 0);
    return scratch->text;
}

static inline void put_file(const char *path, const char *content)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, content, strlen(content)), strlen(content));
    assert_return_code(close(fd), 0);
}

static inline int mount_small(const char *path, uint64_t size_bytes, mode_t mode, struct err *err)
{
    const struct mount_tmpfs wanted = {.size_bytes = size_bytes, .mode = mode};

    return mount_tmpfs(AT_FDCWD, path, &wanted, err);
}

static inline bool exists(const char *path)
{
    struct stat status;

    return lstat(path, &status) == 0;
}

static inline mode_t mode_of(const char *path)
{
    struct stat status;

    assert_return_code(lstat(path, &status), 0);
    return status.st_mode & 07777u;
}

static inline void assert_file_is(const char *path, const char *content)
{
    struct err err = {0};
    char *bytes = NULL;
    size_t length = 0;

    assert_int_equal(file_read(path, 1 << 20, &bytes, &length, &err), 0);
    assert_int_equal(length, strlen(content));
    assert_string_equal(bytes, content);
    free(bytes);
}

#endif
