/* What the files of this room share.  No allocation: buffers are the caller's. */
#ifndef CAIRN_IO_HOST_PART_H
#define CAIRN_IO_HOST_PART_H

#include "io/host.h"
#include "io/proc.h"

#include <stddef.h>

/* Where PATH lies: its directory, opened as a place and owned by the caller, and its last part,
 * which is not looked at.  PATH is beneath DIRECTORY_FD, or an ordinary one with AT_FDCWD.
 * ERR_GONE: there is no such directory. */
int place_find(int directory_fd, const char *path, char name[NAME_SIZE], int *ret_fd,
               struct err *err);

/* Reads the start of a small kernel file, NUL-terminated, relative to DIRECTORY_FD or absolute.
 * Returns the length or a negative errno. */
int small_file_read(int directory_fd, const char *path, char *to, size_t size);

/* As directory_each (io/host.h), with the inode that the entry names. */
int entries_each(int fd, int (*cb)(void *ctx, const char *name, unsigned char type, uint64_t inode),
                 void *ctx);

/* Writes TEXT into an existing kernel file in one call; 0 or a negative errno. */
int small_file_write(int directory_fd, const char *path, const char *text);

/* The parts of /proc/<pid>/stat that we use. */
struct proc_stat {
    char state;   /* 'Z': a zombie, 'X': being reaped */
    bool exiting; /* on the way there: no member of its cgroups any more */
    int32_t parent, session;
    uint64_t user_ticks, system_ticks, start_ticks, rss_pages;
};

/* 0, or ERR_GONE. */
int proc_read_stat(pid_t pid, struct proc_stat *ret_stat);

/* Adds what one process uses to STATS; one that is gone adds nothing. */
void proc_add_stats(pid_t pid, struct cgroup_stats *stats);

/* Sends a signal through a pidfd; 0 or a negative errno. */
int pidfd_signal(int pidfd, int signal);
int pidfd_of(pid_t pid); /* close-on-exec, or a negative errno */

#endif
