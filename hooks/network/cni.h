/*
 * Plugins that make networks (containernetworking.io), called as libcni calls them for Nomad.
 *
 * A list of configurations names its plugins.  To make a network each is run in the list's order
 * and is handed what the ones before it have made; to undo it, in the opposite order, with what had
 * been made.  Follows nomad v2.0.5 client/allocrunner/networking_cni.go and
 * networking_bridge_linux.go.
 */
#ifndef CAIRN_HOOKS_NETWORK_CNI_H
#define CAIRN_HOOKS_NETWORK_CNI_H

#include "hooks/hooks.h"

#include <jansson.h>

struct cni_call {
    const struct hooks_network *config;
    const char *container; /* an alloc's id */
    const char *netns;     /* path of its namespace, "": that is gone */
    const json_t *list;    /* the configurations */
    const char *args;      /* CNI_ARGS */
    const json_t *ports;   /* what portMappings a plugin gets that asks for them */
    int lock_fd;           /* held by each plugin */
    /* What is made so far, before the next plugin runs; 0 or ERR_* with ERR filled. */
    int (*made)(void *ctx, const json_t *result, struct err *err);
    void *ctx;
};

/* The list that MODE, "bridge" or "cni/NAME", stands for: a new reference in RET_LIST.  ERR_GONE
 * if none of the node's files has it. */
int cni_list(const struct hooks_network *config, const char *mode, json_t **ret_list,
             struct err *err);

/* Those of the node's files, as modes of networks, "cni/NAME": a new reference. */
json_t *cni_modes(const struct hooks_network *config);

/* Makes it; RET_RESULT is a new reference.  What a failed one has begun is left to cni_remove. */
int cni_add(const struct cni_call *call, json_t **ret_result, struct err *err);

/* Asks each plugin whether what it had made, RESULT, is as it was; it answers to the protocol 0.4.0
 * and later.  ERR_IO and what it misses, and no other error: one of them says no. */
int cni_check(const struct cni_call *call, const json_t *result, struct err *err);

/* Undoes it, be it all there, half of it or nothing.  RESULT is what had been made, or NULL. */
int cni_remove(const struct cni_call *call, const json_t *result, struct err *err);

/* Lets traffic through to the node's bridge, as Nomad does: an administrator's rules may forbid it
 * before these. */
int cni_admit(const struct hooks_network *config, int lock_fd, struct err *err);

/* RESULT in the words of Nomad's API (AllocNetworkStatus): a new reference, or NULL and ERR filled
 * if there is no address in it. */
json_t *cni_status(const json_t *result, struct err *err);

#endif
