/*
 * A mount namespace with nothing in it.
 *
 * The namespace of a payload with a root of its own begins as a copy of another one.  Of the host's
 * a start would copy, and then end, each mount of the host, among them the secrets of all other
 * tasks: each hundred of them that is there would cost every start a quarter of what it costs
 * without them.  So the nursery makes one with an empty root, once, which is copied instead.
 */
#include "drivers/shim/shim.h"

#include "io/host.h"
#include "io/kernel.h"
#include "io/proc.h"
#include "io/scope.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

/* In a process that shares our descriptors, and nothing else of us but the memory: the namespace is
 * its own from its birth, and stays when it ends since we have it open. */
PROC_IN_CHILD static void make_nothing(void *ctx)
{
    static const struct mount_option empty[] = {{"mode", "0555"}, {"size", "4k"}, {NULL, NULL}};
    scoped_fd int namespace = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    scoped_fd int root =
        mount_make("tmpfs", empty,
                   MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);

    (void)ctx;
    if (namespace >= 0 && root >= 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
        move_mount(root, "", AT_FDCWD, ".", MOVE_MOUNT_F_EMPTY_PATH) == 0 && fchdir(root) == 0 &&
        syscall(SYS_pivot_root, ".", ".") == 0 && umount2(".", MNT_DETACH) == 0)
        (void)dup3(namespace, SHIM_FD_NOTHING, O_CLOEXEC); /* else a start with a root fails */
}

void nothing_open(void)
{
    pid_t pid;

    (void)dup3(0, SHIM_FD_NOTHING, O_CLOEXEC); /* its place is taken in any case */
    /* Without it nothing is lost but roots, of which a start would say why. */
    (void)proc_become(NULL, CLONE_NEWNS | CLONE_FILES, make_nothing, NULL, &pid, NULL);
}
