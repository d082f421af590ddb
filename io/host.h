/* The host: files written for good, directories, mounts, facts about the machine. */
#ifndef CAIRN_IO_HOST_H
#define CAIRN_IO_HOST_H

#include "base/base.h"

#include <stdint.h>
#include <sys/types.h>

enum { PATH_SIZE = 4096 };

/* Joins two path parts with one slash; ERR_LIMIT if it does not fit PATH_SIZE. */
int path_join(char to[PATH_SIZE], const char *directory, const char *name);

/* Reads at most BYTES_MAX of a whole file into a new buffer (owned by the caller, one NUL byte
 * behind the data); ERR_LIMIT if it is longer. */
int file_read(const char *path, size_t bytes_max, char **ret_bytes, size_t *ret_length,
              struct err *err);

/* Replaces PATH by writing beside it, syncing, renaming, syncing the directory. */
int file_write_durable(const char *path, const void *bytes, size_t length, mode_t mode,
                       struct err *err);

/* Makes one directory with exactly MODE and owner (uid -1: unchanged); existing is success and
 * gets mode and owner set. */
int directory_make(const char *path, mode_t mode, uid_t uid, gid_t gid, struct err *err);

/* As mkdir -p, new parts with MODE. */
int directory_make_all(const char *path, mode_t mode, struct err *err);

/* Deletes a tree.  Refuses (ERR_AGAIN) if anything is mounted in or on it, never crosses a file
 * system, never follows a link; a missing tree is success (I-30). */
int tree_remove(const char *path, struct err *err);

/* --- mounts --- */

/* 1 if PATH is a mount point in this namespace, 0 if not, ERR_* otherwise. */
int mount_is_point(const char *path, struct err *err);

/* Calls CB for each mount point at or below PATH, deepest first; CB returns false to stop. */
int mount_each_below(const char *path, bool (*cb)(void *ctx, const char *point), void *ctx,
                     struct err *err);

/* A private tmpfs of SIZE_BYTES, nosuid, nodev, noexec; already mounted there is success. */
int mount_tmpfs(const char *path, uint64_t size_bytes, mode_t mode, struct err *err);

/* Unmounts PATH; not mounted is success; ERR_AGAIN when busy. */
int mount_remove(const char *path, struct err *err);

/* --- facts --- */

struct host_facts {
    char hostname[256];
    char kernel_name[65], kernel_version[65], arch[65];
    char os_name[64], os_version[64];
    char cpu_model[128];
    uint32_t cpu_cores;
    uint32_t cpu_mhz;           /* of one core; 1000 when unknown */
    uint64_t memory_bytes;
    uint64_t disk_bytes, disk_free_bytes;   /* of the file system that holds DATA_DIR */
    char ip_address[64];        /* of the interface with the default route, else "127.0.0.1" */
    char network_interface[32];
};

int host_read_facts(const char *data_dir, struct host_facts *ret_facts, struct err *err);

struct host_stats {
    uint64_t memory_total, memory_available, memory_used, memory_free;      /* bytes */
    uint64_t uptime_s;
    uint64_t disk_size, disk_used, disk_available;                          /* bytes */
    uint64_t inodes, inodes_used;
    double cpu_user_percent, cpu_system_percent, cpu_idle_percent, cpu_total_percent;
};

int host_read_stats(const char *data_dir, struct host_stats *ret_stats, struct err *err);

#endif
