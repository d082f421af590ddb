/* The calls of Linux 5.2 and 5.12 that make mounts and bring them to their places, and statx, which
 * tells what is one.  glibc has them; musl, which cairn-shim is linked with (drivers/SConscript),
 * has not yet. */
#ifndef CAIRN_IO_KERNEL_H
#define CAIRN_IO_KERNEL_H

#include <sys/mount.h>
#include <sys/stat.h>

#ifndef __GLIBC__
#include <linux/mount.h>
#include <linux/stat.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline int fsopen(const char *type, unsigned flags)
{
    return (int)syscall(SYS_fsopen, type, flags);
}

static inline int fsconfig(int fd, unsigned command, const char *key, const void *value, int aux)
{
    return (int)syscall(SYS_fsconfig, fd, command, key, value, aux);
}

static inline int fsmount(int fd, unsigned flags, unsigned attributes)
{
    return (int)syscall(SYS_fsmount, fd, flags, attributes);
}

static inline int open_tree(int directory_fd, const char *path, unsigned flags)
{
    return (int)syscall(SYS_open_tree, directory_fd, path, flags);
}

static inline int move_mount(int from_fd, const char *from, int to_fd, const char *to,
                             unsigned flags)
{
    return (int)syscall(SYS_move_mount, from_fd, from, to_fd, to, flags);
}

static inline int mount_setattr(int directory_fd, const char *path, unsigned flags,
                                struct mount_attr *change, size_t size)
{
    return (int)syscall(SYS_mount_setattr, directory_fd, path, flags, change, size);
}

static inline int statx(int directory_fd, const char *path, int flags, unsigned mask,
                        struct statx *ret_status)
{
    return (int)syscall(SYS_statx, directory_fd, path, flags, mask, ret_status);
}
#endif

#endif
