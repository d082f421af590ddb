/*
 * The network of an alloc: a namespace of its own, what plugins make in it, and its resolv.conf.
 *
 * What is to be undone is written down first, so that whoever comes after a crash finds all of it:
 *   <state_dir>/<alloc>.json    what plugins are, or were, asked to make, and what they have made
 *   <state_dir>/<alloc>.resolv  how its tasks find names, if the job or a plugin says so
 *   <state_dir>/<alloc>.hosts   the name of its own that they have, if the job gives them one
 *   <run_dir>/cairn-<mark>-<alloc>  the namespace
 * and goes last.  All of this blocks, and is done by one thread at a time.
 */
#ifndef CAIRN_HOOKS_NETWORK_NETWORK_H
#define CAIRN_HOOKS_NETWORK_NETWORK_H

#include "hooks/hooks.h"
#include "io/host.h"

#include <jansson.h>

/* What ALLOC, interpolated, asks of it, as the text that network_make reads; owned by the caller.
 */
char *network_order(const struct hooks_network *config, const struct alloc_spec *alloc);

/* Makes what is not there of the network of ALLOC, a uuid, which asks for ORDER: the first time,
 * after a crash in it, and after a reboot.  RET_STATUS is what it is in the words of Nomad's API
 * (AllocNetworkStatus): a new reference. */
int network_make(const struct hooks_network *config, const char *alloc, const char *order,
                 json_t **ret_status, struct err *err);

/* Looks whether what is there of the network of ALLOC is as it was made, and mends it where its
 * tasks have it; makes none where there is none.  ASKS: plugins can be asked.  RET_REMARK is what
 * somebody should know, "": nothing.  ERR_GONE: the tasks that run have none any more, or one that
 * cannot be mended; who starts gets another. */
int network_check(const struct hooks_network *config, const char *alloc, bool asks,
                  char ret_remark[ERR_TEXT_SIZE], struct err *err);

/* Removes all of it, whatever there is; nothing is success. */
int network_remove(const struct hooks_network *config, const char *alloc, struct err *err);

/* Calls CB for each alloc, by its id, of which something is there; some may come more than once. */
int network_each(const struct hooks_network *config, void (*cb)(void *ctx, const char *alloc),
                 void *ctx, struct err *err);

/* Where the namespace of ALLOC is, its resolv.conf and its /etc/hosts. */
void network_namespace(const struct hooks_network *config, const char *alloc, char to[PATH_SIZE]);
void network_resolv(const struct hooks_network *config, const char *alloc, char to[PATH_SIZE]);
void network_hosts(const struct hooks_network *config, const char *alloc, char to[PATH_SIZE]);

#endif
