/* Inside csi/volumes/ only: paths, what is on them, and what is known of claims. */
#ifndef CAIRN_CSI_VOLUMES_PART_H
#define CAIRN_CSI_VOLUMES_PART_H

#include "csi/volumes.h"

/* --- paths (paths.c) --- */

struct volume_paths { /* relative to the root of the plugin */
    char staging[PATH_SIZE];
    char above[PATH_SIZE]; /* the directory that the plugin makes the target in */
    char target[PATH_SIZE];
};

/* ERR_INVALID if a part of them is none of a path. */
int volume_paths_of(const struct csi_claim *claim, struct volume_paths *ret_paths, struct err *err);

/* PATH in ROOT, "" if it does not fit. */
void csi_path_in(const char *root, const char *path, char to[PATH_SIZE]);

/* --- what is on them (places.c); blocking: for the pool --- */

/* A directory of the host that a plugin has, or a negative ERR_*; ERR_GONE: there is none. */
int csi_root_open(const char *root, struct err *err);

/* Makes the directory PATH and those above it, each 0700. */
int csi_directory_make(int root_fd, const char *path, struct err *err);

/* Makes sure that the plugin can make PATH: that nothing is there but what an earlier call may have
 * made, or nothing at all if FRESH. */
int csi_target_prepare(int root_fd, const char *path, bool block, bool fresh, struct err *err);

/* 1 if something is mounted on PATH, or it is a device and BLOCK; 0 if not, or ERR_*. */
int csi_is_mounted(int root_fd, const char *path, bool block, struct err *err);

/* True if there is nothing at PATH. */
bool csi_is_missing(int root_fd, const char *path);

/* Removes what is left of PATH, on which nothing is mounted: an empty directory, or, if BLOCK, a
 * file.  Missing is success; ERR_EXISTS if somebody's files are in it, which stay. */
int csi_leftover_remove(int root_fd, const char *path, bool block, struct err *err);

/* Removes the directory PATH and those above it that are empty, LEVELS of them. */
void csi_directories_remove(int root_fd, const char *path, unsigned levels);

/* --- which mount it is (marks.c); blocking as well --- */

struct csi_mark {
    uint64_t device, inode, raw; /* RAW: the device that it is */
};

/* The file for CLAIM in DIRECTORY; ERR_LIMIT. */
int csi_mark_path(const char *directory, const struct csi_claim *claim, char to[PATH_SIZE]);

/* What is at PATH now; false: it does not say. */
bool csi_mark_look(int root_fd, const char *path, struct csi_mark *ret_mark);
bool csi_mark_is(const struct csi_mark *one, const struct csi_mark *other);

/* What was; false: it is not known. */
bool csi_mark_read(const char *file, struct csi_mark *ret_mark);
int csi_mark_write(const char *file, const struct csi_mark *mark, struct err *err);
void csi_mark_remove(const char *file);

/* --- what is known (known.c) --- */

struct csi_known {
    char *fs_type;
    char **flags;
    size_t flags_count;
    struct csi_map publish_context, volume_context;
    struct csi_secrets *secrets;
    bool recalled;
};

struct csi_knowledge; /* by claim */

struct csi_knowledge *csi_knowledge_new(void);
void csi_knowledge_free(struct csi_knowledge *knowledge);
void csi_knowledge_set(struct csi_knowledge *knowledge, const char *alloc, const char *name,
                       const struct csi_terms *terms);
void csi_knowledge_drop(struct csi_knowledge *knowledge, const char *alloc, const char *name);

/* NULL: nothing is. */
const struct csi_known *csi_knowledge_find(const struct csi_knowledge *knowledge, const char *alloc,
                                           const char *name);

#endif
