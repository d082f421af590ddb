/* Volumes of storage plugins: effects of volume machines, and where tasks find what is mounted. */
#ifndef CAIRN_AGENT_PERFORM_VOLUMES_H
#define CAIRN_AGENT_PERFORM_VOLUMES_H

#include "agent/parts.h"
#include "csi/volumes.h"

struct volumes;

/* NULL and ERR: the paths of volumes would be too long. */
struct volumes *volumes_new(struct parts *parts, struct err *err);

/* Nobody is told any more; before the plugins are freed. */
void volumes_free(struct volumes *volumes);

/* Effects of volume machines. */
void volumes_perform(struct parts *parts, const struct effect *effect);

/* As csi_volumes_unmount. */
void volumes_unmount(struct parts *parts, const struct csi_found *found, csi_step_done *done,
                     void *ctx);

/* As csi_volumes_hide. */
void volumes_hide(const struct parts *parts, const char *alloc, const char *name,
                  struct csi_request *request);

/* Where the volumes are that ALLOC has claims on, by their names in the group. */
struct volumes_mounted {
    struct hook_claim claims[SPEC_VOLUMES_MAX];
    char paths[SPEC_VOLUMES_MAX][PATH_SIZE];
    size_t count;
};

void volumes_find_mounted(const struct parts *parts, const struct alloc_spec *alloc,
                          struct volumes_mounted *ret_mounted);

#endif
