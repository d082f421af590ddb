/*
 * What is at the places where plugins mount volumes.
 *
 * All that is below the root of a plugin is its own to write to: paths are walked without links, in
 * one call of the kernel (io/host.h), and nothing is removed but empty directories, or a file where
 * a device was.
 */
#include "csi/volumes/part.h"

#include "io/scope.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

enum { MAKE_TRIES = 8 }; /* while another claim of the same alloc removes what is above */

int csi_root_open(const char *root, struct err *err)
{
    int fd = open(root, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd >= 0)
        return fd;
    err->recoverable = true;
    return err_os(err, err_from_errno(errno), errno, "cannot open the plugin's directory %s", root);
}

/* Opens the directory that PATH lies in; its last part is RET_NAME. */
static int open_above(int root_fd, const char *path, char ret_name[NAME_SIZE], struct err *err)
{
    char directory[PATH_SIZE];
    int code = path_split(path, directory, ret_name, err);

    if (code != 0)
        return code;
    int fd = beneath_open(root_fd, directory, O_PATH | O_DIRECTORY, 0);
    return fd >= 0 ? fd : err_os(err, err_from_errno(-fd), -fd, "cannot open %s", directory);
}

/* One pass; a negative errno. */
static int make_all(int root_fd, const char *path)
{
    char part[PATH_SIZE];
    const char *at = path;

    do {
        at += strcspn(at, "/");
        memcpy(part, path, (size_t)(at - path));
        part[at - path] = '\0';
        char above[PATH_SIZE], name[NAME_SIZE];
        if (path_split(part, above, name, NULL) != 0)
            return -EINVAL;
        scoped_fd int fd = beneath_open(root_fd, above, O_PATH | O_DIRECTORY, 0);
        if (fd < 0)
            return fd;
        if (mkdirat(fd, name, 0700) != 0 && errno != EEXIST)
            return -errno;
    } while (*at++ != '\0');
    scoped_fd int made = beneath_open(root_fd, path, O_PATH | O_DIRECTORY, 0);
    return made < 0 ? made : 0;
}

int csi_directory_make(int root_fd, const char *path, struct err *err)
{
    int code = -ENOENT;

    for (int tries = 0; code == -ENOENT && tries < MAKE_TRIES; tries++)
        code = make_all(root_fd, path);
    return code == 0
               ? 0
               : err_os(err, err_from_errno(-code), -code, "cannot make the directory %s", path);
}

static int stop_at_first(void *ctx, const char *name, unsigned char type)
{
    (void)ctx;
    (void)name;
    (void)type;
    return 1;
}

/* 1 if there is nothing in the directory NAME of ABOVE_FD, 0 if there is, or a negative errno. */
static int is_empty(int above_fd, const char *name)
{
    scoped_fd int fd = beneath_open(above_fd, name, O_RDONLY | O_DIRECTORY, 0);

    if (fd < 0)
        return fd;
    int code = directory_each(fd, stop_at_first, NULL);
    return code < 0 ? code : code == 0 ? 1 : 0;
}

static int look(int above_fd, const char *name, struct stat *ret_status)
{
    return fstatat(above_fd, name, ret_status, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) == 0 ? 0
                                                                                           : -errno;
}

int csi_target_prepare(int root_fd, const char *path, bool block, bool fresh, struct err *err)
{
    char name[NAME_SIZE];
    struct stat status;
    scoped_fd int above = open_above(root_fd, path, name, err);

    if (above < 0)
        return above;
    int mounted = csi_is_mounted(root_fd, path, block, err);
    if (mounted < 0)
        return mounted;
    if (mounted == 1 && fresh)
        return err_set(err, ERR_EXISTS,
                       "its target is a mount already, of somebody else: unmount %s", path);
    int code = mounted == 1 ? -ENOENT : look(above, name, &status);
    if (code == -ENOENT)
        return 0;
    if (code != 0)
        return err_os(err, err_from_errno(-code), -code, "cannot look at %s", path);
    if (block && S_ISREG(status.st_mode) && status.st_size == 0 && !fresh)
        return 0; /* what a device is mounted on, made by an earlier try */
    if (!S_ISDIR(status.st_mode))
        return err_set(err, ERR_EXISTS, "its target is a file already: move away %s", path);
    if (is_empty(above, name) == 0)
        return err_set(err, ERR_EXISTS, "its target is not empty: move away what is in %s", path);
    /* To make it is the plugin's. */
    return unlinkat(above, name, AT_REMOVEDIR) == 0 || errno == ENOENT
               ? 0
               : err_os(err, err_from_errno(errno), errno, "cannot remove %s", path);
}

int csi_is_mounted(int root_fd, const char *path, bool block, struct err *err)
{
    char name[NAME_SIZE];
    struct stat status;
    int mounted = mount_is_point(root_fd, path, err);

    if (mounted != 0 || !block)
        return mounted;
    scoped_fd int above = open_above(root_fd, path, name, NULL);
    return above >= 0 && look(above, name, &status) == 0 && S_ISBLK(status.st_mode) ? 1 : 0;
}

bool csi_is_missing(int root_fd, const char *path)
{
    char name[NAME_SIZE];
    struct stat status;
    struct err err = {0};
    scoped_fd int above = open_above(root_fd, path, name, &err);

    return above < 0 ? err.code == ERR_GONE : look(above, name, &status) == -ENOENT;
}

int csi_leftover_remove(int root_fd, const char *path, bool block, struct err *err)
{
    char name[NAME_SIZE];
    struct stat status;
    scoped_fd int above = open_above(root_fd, path, name, err);

    if (above < 0)
        return above == ERR_GONE ? 0 : above;
    int code = look(above, name, &status);
    if (code == -ENOENT)
        return 0;
    bool is_file = code == 0 && !S_ISDIR(status.st_mode);
    if (is_file && (!block || status.st_size > 0))
        return err_set(err, ERR_EXISTS, "%s is a file, and stays", path);
    if (unlinkat(above, name, is_file ? 0 : AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    if (errno == ENOTEMPTY || errno == EEXIST)
        return err_set(err, ERR_EXISTS, "%s is not mounted and not empty, and stays", path);
    return err_os(err, err_from_errno(errno), errno, "cannot remove %s", path);
}

void csi_directories_remove(int root_fd, const char *path, unsigned levels)
{
    char here[PATH_SIZE], above[PATH_SIZE], name[NAME_SIZE];

    (void)text_copy(here, sizeof(here), path); /* fits, as all paths do */
    for (; levels > 0; levels--) {
        if (path_split(here, above, name, NULL) != 0)
            return;
        scoped_fd int fd = beneath_open(root_fd, above, O_PATH | O_DIRECTORY, 0);
        int code = fd < 0 ? fd : unlinkat(fd, name, AT_REMOVEDIR) == 0 ? 0 : -errno;
        if (code != 0 && code != -ENOENT) /* which it is if its maker died between two of them */
            return;                       /* others are in it */
        (void)text_copy(here, sizeof(here), above);
    }
}
