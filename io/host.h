/* The host: files written for good, directories, mounts, facts about the machine. */
#ifndef CAIRN_IO_HOST_H
#define CAIRN_IO_HOST_H

#include "base/base.h"
#include "base/uuid.h"
#include "io/proc.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { PATH_SIZE = 4096, NAME_SIZE = 256 /* NAME_MAX and the NUL */ };

/* Joins two path parts with one slash; ERR_LIMIT if it does not fit PATH_SIZE. */
int path_join(char to[PATH_SIZE], const char *directory, const char *name);

/* PATH as the directory it lies in ("." if it has none) and its last part, which is not empty,
 * "." or ".."; ERR_INVALID otherwise. */
int path_split(const char *path, char directory[PATH_SIZE], char name[NAME_SIZE], struct err *err);

/* Reads a whole file of at most BYTES_MAX into a new buffer (owned by the caller, one NUL byte
 * behind the data); ERR_LIMIT if it is longer, ERR_INVALID if it is no regular file. */
int file_read(const char *path, size_t bytes_max, char **ret_bytes, size_t *ret_length,
              struct err *err);

/* Replaces PATH by writing beside it (PATH.new), syncing, renaming, syncing the directory: after
 * a crash the old or the new content is there, whole.  One writer for a path at a time. */
int file_write_durable(const char *path, const void *bytes, size_t length, mode_t mode,
                       struct err *err);

/* Makes one directory with exactly MODE and owner (uid, gid -1: unchanged); existing is success
 * and gets mode and owner set; a link or a file in its place is an error. */
int directory_make(const char *path, mode_t mode, uid_t uid, gid_t gid, struct err *err);

/* As mkdir -p, new parts with exactly MODE. */
int directory_make_all(const char *path, mode_t mode, struct err *err);

/* Calls CB with the name and kind (DT_* of dirent.h) of each entry of the directory FD but "." and
 * "..", until CB returns other than 0: that is returned then, else 0 or a negative errno.  FD is
 * read from its begin.  Takes no memory but a little of the stack. */
int directory_each(int fd, int (*cb)(void *ctx, const char *name, unsigned char type), void *ctx);

/* --- beneath a directory that payloads write to ---
 *
 * There every name may become a link between two looks at it.  PATH is walked from ROOT_FD, any
 * descriptor of a directory, without links, without "..", never out of it; mounts in it are
 * entered.  A leading slash is the root's.  All results are a descriptor of the caller's own,
 * close-on-exec, or a negative errno: ELOOP for a link, EXDEV for a way out. */

/* FLAGS as in open; MODE for what O_CREAT makes. */
int beneath_open(int root_fd, const char *path, int flags, mode_t mode);

/* For reading on behalf of somebody: links and ".." are followed as long as they stay beneath the
 * root, where the kernel can promise that, and are refused elsewhere. */
int beneath_follow(int root_fd, const char *path, int flags);

enum { PLACE_PATH_SIZE = 40 };

/* A place is a descriptor opened with O_PATH, which has touched nothing yet.  Its path leads to
 * exactly that, whatever has its name by now; opens it for more; gives it exactly MODE. */
void place_path(int fd, char to[PLACE_PATH_SIZE]);
int place_open(int fd, int flags);
int place_chmod(int fd, mode_t mode);

/* --- trees and mounts ---
 *
 * PATH lies beneath DIRECTORY_FD as above, and no part of it is followed.  With AT_FDCWD it is an
 * ordinary path, for directories that payloads cannot write to: then links are followed but for
 * its last part.  Mounts are those of this namespace. */

/* Deletes a tree (or one file).  Refuses (ERR_AGAIN) if anything is mounted in or on it, then
 * nothing is deleted; never crosses a mount that comes later, never follows a link; a missing
 * tree is success (I-30).  Blocks: for the pool. */
int tree_remove(int directory_fd, const char *path, struct err *err);

/* 1 if PATH is a mount point, 0 if not or missing, ERR_* otherwise. */
int mount_is_point(int directory_fd, const char *path, struct err *err);

/* True if the kernel says so without a look at the table of mounts; PATH is an absolute one. */
bool mount_is_point_at_once(const char *path);

/* Calls CB for each mount at or below PATH, in an order in which they can be unmounted (a point
 * that carries two comes twice); CB returns false to stop.  POINT begins with PATH as given. */
int mount_each_below(int directory_fd, const char *path, bool (*cb)(void *ctx, const char *point),
                     void *ctx, struct err *err);

/* What a file system is made with: a setting, or a wish (VALUE is NULL) that a kernel which does
 * not know it leaves out. */
struct mount_option {
    const char *name, *value;
};

/* A file system of TYPE that is mounted nowhere yet, made with OPTIONS (up to one without a name)
 * and ATTRIBUTES (MOUNT_ATTR_*): a descriptor of the caller's own, or a negative errno. */
int mount_make(const char *type, const struct mount_option *options, unsigned attributes);

struct mount_tmpfs {
    uint64_t size_bytes;
    mode_t mode; /* of its root, and its owner */
    uid_t uid;
    gid_t gid;
};

/* A tmpfs of its own, nosuid, nodev, noexec, never swapped where the kernel can promise that; it is
 * whole when it appears.  A tmpfs already mounted there is success, another file system
 * ERR_EXISTS. */
int mount_tmpfs(int directory_fd, const char *path, const struct mount_tmpfs *wanted,
                struct err *err);

/* A copy, mounted nowhere, of what PROCESS sees mounted at PATH in its own root; no link on the way
 * is followed.  RET_FD is the caller's own; -1: nothing is mounted there, or it sees the mounts
 * that the caller sees.  ERR_GONE: there is no such process.  For the pool. */
int mount_seen_by(const struct proc_identity *process, const char *path, int *ret_fd,
                  struct err *err);

/* Mounts what FD is of, which is mounted nowhere yet, on the directory PATH. */
int mount_attach(int fd, int directory_fd, const char *path, struct err *err);

/* Unmounts all that is mounted on PATH; not mounted is success; ERR_AGAIN when busy. */
int mount_remove(int directory_fd, const char *path, struct err *err);

/* --- network namespaces, each kept by a mount on the file PATH --- */

/* Makes one, with its loopback up; one that is there already is success.  Blocks, and so do the
 * others: for the pool. */
int netns_make(const char *path, struct err *err);

/* 1 if PATH is a namespace, 0 if it is none or missing, ERR_* otherwise. */
int netns_is_there(const char *path, struct err *err);

/* Missing is success.  Processes that are in it stay in it. */
int netns_remove(const char *path, struct err *err);

/* 1 if INTERFACE has the IP address ADDRESS in it, 0 if not, ERR_* if it cannot be entered. */
int netns_has_address(const char *path, const char *interface, const char *address,
                      struct err *err);

/* True if the kernel makes bridges and this process may. */
bool netns_knows_bridges(void);

/* --- users --- */

struct host_user {
    uid_t uid;
    gid_t gid;            /* its first group */
    char home[NAME_SIZE]; /* "/" if it has none, or one too long */
};

/* ERR_GONE if there is no such user, recoverable when that could not be found out.  May ask the
 * network: for the pool. */
int host_user_find(const char *name, struct host_user *ret_user, struct err *err);

/* True if every user may walk to PATH; else RET_CLOSED is the first directory on the way that lets
 * others not in, or is not there. */
bool directory_is_open(const char *path, char ret_closed[PATH_SIZE]);

/* Lets a user enter the directory FD (and neither list nor change it), whatever its mode says of
 * others.  ERR_UNSUPPORTED where the file system keeps no access lists. */
int directory_admit(int fd, uid_t uid, struct err *err);

/* --- facts --- */

enum { HOST_NUMA_MAX = 64 };

/* A part of the machine whose processors have memory of their own. */
struct host_numa {
    unsigned number;
    char cores[128]; /* as the kernel lists them: "0-3,8-11" */
};

struct host_facts {
    char hostname[256];
    char kernel_name[65], kernel_version[65], arch[65];
    char os_name[64], os_version[64];
    char cpu_model[128];
    uint32_t cpu_cores;
    uint32_t cpu_mhz; /* of one core; 1000 when unknown */
    uint64_t memory_bytes;
    uint64_t disk_bytes, disk_free_bytes;        /* of the file system that holds DATA_DIR */
    char disk_device[256], disk_mountpoint[256]; /* of the same, as the mount table has them */
    char ip_address[64]; /* of the interface with the default route, else "127.0.0.1" */
    char network_interface[32];
    unsigned landlock; /* the version of it that the kernel has, 0: none */
    struct host_numa numa[HOST_NUMA_MAX];
    size_t numa_count; /* 0: the kernel does not say */
};

/* What cannot be found out keeps its documented default or is empty or 0. */
int host_read_facts(const char *data_dir, struct host_facts *ret_facts, struct err *err);

struct host_address {
    char interface[32];
    char ip[64];
    uint32_t mbits; /* of the interface; 1000 when unknown */
};

/* The addresses of all interfaces, IPv4 before IPv6; of one that has any other its link-local ones
 * are left out.  Returns how many of at most MAX there are. */
size_t host_addresses(struct host_address *ret_addresses, size_t max);

/* A file system; bytes are free that users may take. */
struct host_disk {
    uint64_t bytes_used, bytes_free;
    uint64_t inodes_used, inodes_free;
};

/* That which holds PATH. */
int host_read_disk(const char *path, struct host_disk *ret_disk, struct err *err);

enum { HOST_CPUS_MAX = 256 }; /* that are told one by one */

struct host_cpu_time {
    uint64_t user, system, idle, total; /* ticks since boot */
};

struct host_cpu_times {
    struct host_cpu_time all, each[HOST_CPUS_MAX]; /* by their numbers */
};

/* Percents; total is what was not idle. */
struct host_cpu {
    unsigned number;
    double user, system, idle, total;
};

struct host_stats {
    uint64_t memory_total, memory_available, memory_used, memory_free; /* bytes */
    uint64_t uptime_s;
    uint64_t disk_size, disk_used, disk_available; /* bytes */
    uint64_t inodes, inodes_used;
    struct host_cpu cpu; /* of all together; its number says nothing */
    struct host_cpu cpus[HOST_CPUS_MAX];
    unsigned cpus_count;
};

/* Percents are of the time since the call that left SINCE as it is, and SINCE is renewed; zeroes:
 * since boot. */
int host_read_stats(const char *data_dir, struct host_cpu_times *since,
                    struct host_stats *ret_stats, struct err *err);

/* A new id that nobody can guess: of the kernel's chance. */
void host_draw_id(char to[UUID_TEXT_SIZE]);

#endif
