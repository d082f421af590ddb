/* Directories that payloads have in their hands: made and opened by name in their parent, never
 * through a link.  ERR is never NULL here. */
#ifndef CAIRN_HOOKS_DIRECTORY_H
#define CAIRN_HOOKS_DIRECTORY_H

#include "hooks/part.h"
#include "io/host.h"

/* Opens the directory that holds all allocs. */
int hooks_open_parent(const struct hook_request *request, int *ret_fd, struct err *err);

/* Opens the alloc's root as a place (O_PATH).  ERR_GONE, never recoverable, if it is missing: a
 * directory that was made once and is lost is never silently made again. */
int hooks_open_root(const struct hook_request *request, int *ret_fd, struct err *err);

/* Opens directory NAME in PARENT_FD as a place; ERR_EXISTS if a link or a file is in its way.
 * SHOWN is how messages call it. */
int hooks_directory_open(int parent_fd, const char *name, const char *shown, int *ret_fd,
                         struct err *err);

/* Makes directory NAME in PARENT_FD with exactly MODE and OWNER (NULL: the daemon's user), or
 * finishes one that was left half made; one that is whole keeps what its payload made of it.
 * RET_FD may be NULL. */
int hooks_directory_make(int parent_fd, const char *name, mode_t mode,
                         const struct host_user *owner, const char *shown, int *ret_fd,
                         struct err *err);

/* What is to be written into the directory of the task of ASKED, a new reference, and writing it;
 * NULL: nothing. */
json_t *hooks_payload_order(const struct hook_run *asked);
int hooks_payload_write(const struct hook_request *request, const json_t *order, int task_fd,
                        const struct host_user *owner, struct err *err);
json_t *hooks_identity_order(const struct hook_run *asked);
int hooks_identity_write(const struct hook_request *request, const json_t *order, int task_fd,
                         const struct host_user *owner, struct err *err);

/* TOKEN becomes the file PATH below the directory of the task, for OWNER alone to read. */
int hooks_token_write(const struct hook_request *request, const char *path, const char *token,
                      size_t length, int task_fd, const struct host_user *owner, struct err *err);

/* The user of the task; the daemon's own if it names none, or cannot be given anything anyway. */
int hooks_owner(const struct hook_request *request, struct host_user *ret_owner, struct err *err);

#endif
