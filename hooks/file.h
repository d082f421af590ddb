/*
 * Files that hooks write into a task's directory.
 *
 * The directory is the task's to change: all is opened beneath it and by no link, and what is
 * written gets its name last.
 */
#ifndef CAIRN_HOOKS_FILE_H
#define CAIRN_HOOKS_FILE_H

#include "hooks/directory.h"

#include <sys/stat.h>

/* Opens each directory of PATH, which is beneath PLACE, but the last name; one that is missing is
 * made, for OWNER (NULL: the daemon's user).  RET_NAME is that name. */
int hooks_file_enter(int place, const char *path, const struct host_user *owner,
                     char ret_name[NAME_SIZE], int *ret_fd, struct err *err);

/* BYTES become the file NAME of DIRECTORY, with the mode of WANTED; and its owner and group, if it
 * GIVES them away. */
int hooks_file_replace(int directory, const char *name, const void *bytes, size_t length,
                       const struct stat *wanted, bool gives, struct err *err);

#endif
