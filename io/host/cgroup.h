/*
 * What the files of the cgroup part share.
 *
 * A cgroup is a directory; below here it is a path in one hierarchy.  Buffers are small and on the
 * stack: the shim uses this code and keeps every stack page it ever touched.
 */
#ifndef CAIRN_IO_HOST_CGROUP_H
#define CAIRN_IO_HOST_CGROUP_H

#include "io/proc.h"

enum { CGROUP_PATH_SIZE = CGROUP_NAME_SIZE + 64 };

struct cgroup_path {
    char text[CGROUP_PATH_SIZE];
};

#define CGROUP_ROOT "/sys/fs/cgroup"

/* True if PATH is a file system of the kind MAGIC that we may write to. */
bool cgroup_is_mounted(const char *path, unsigned long magic);

/* The root of the hierarchy that tracks processes in MODE. */
const char *cgroup_root(enum cgroup_mode mode);

/* The path of NAME in the hierarchy that tracks processes in MODE; ERR_INVALID for names that are
 * absolute, empty, too long or climb. */
int cgroup_path_of(enum cgroup_mode mode, const char *name, struct cgroup_path *ret_path,
                   struct err *err);

/* The v1 controllers besides the freezer that a limit or a statistic may live in. */
enum cgroup_controller {
    CONTROLLER_MEMORY,
    CONTROLLER_CPU,
    CONTROLLER_CPUACCT,
    CONTROLLER_CPUSET,
    CONTROLLER_COUNT
};

/* The path of NAME in a v1 controller's hierarchy; false in mode V2 and NONE. */
bool cgroup_controller_path(enum cgroup_mode mode, enum cgroup_controller controller,
                            const char *name, struct cgroup_path *ret_path);

/* Calls CB with a descriptor of the directory and of each below it, however deep they lie: it takes
 * two descriptors and a little of the stack.  One that is made or removed meanwhile may be missed,
 * or its neighbours be seen twice.  CB returns 0 or a negative errno, which ends the walk. */
int cgroup_walk(int directory_fd, int (*cb)(void *ctx, int fd), void *ctx);

/* Removes all below the directory, in the same way; -EBUSY when something lives there. */
int cgroup_remove_below(int directory_fd);

/* Calls CB for each process listed in the cgroup DIRECTORY_FD, not below. */
int cgroup_walk_processes(int directory_fd, bool (*cb)(void *ctx, pid_t pid), void *ctx);

/* Kills what is in the cgroup at PATH and below without cgroup.kill. */
int cgroup_kill_frozen(enum cgroup_mode mode, const char *name, const struct cgroup_path *path,
                       struct err *err);

#endif
