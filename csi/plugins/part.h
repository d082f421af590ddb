/* Inside csi/plugins: an instance, and what is asked of it. */
#ifndef CAIRN_CSI_PLUGINS_PART_H
#define CAIRN_CSI_PLUGINS_PART_H

#include "csi/plugins.h"
#include "spec/arena.h"
#include "spec/names.h"

/* Somebody waits for an answer; not if cb is NULL. */
struct waiting {
    csi_asked *cb;
    void *ctx;
};

struct instance {
    struct csi_plugins *plugins;
    struct instance *next;
    char plugin[PLUGIN_NAME_SIZE], alloc[UUID_TEXT_SIZE], task[SPEC_NAME_SIZE];
    char inside[SPEC_PLACE_SIZE]; /* "": as the host has it */
    struct csi_paths paths;
    int directory_fd;                /* of a socket whose path is too long for a socket, or -1 */
    char socket[CSI_SOCKET_MAX + 1]; /* by which it is reached, "": not known yet */
    struct csi_client *client;       /* NULL before it is first needed */
    struct arena arena;              /* of its topology */
    struct csi_instance shown;

    struct waiting awaits; /* that it listens */
    struct io_timer timer; /* of the next look */
    uint64_t pause_ms;

    struct waiting asks; /* one question, of one or more calls */
    struct csi_operation *operation;
    bool identifies;
    size_t step; /* of the calls that identify it */
    struct plugin_identity identity;
};

struct csi_plugins {
    struct csi_plugins_config config;
    char state_dir[PATH_SIZE];
    struct instance *instances; /* in no order */
};

/* NULL: it is not known. */
struct instance *csi_instance_find(struct csi_plugins *plugins, const char *alloc,
                                   const char *task);

/* How it is reached, from now on. */
int csi_instance_reach(struct instance *instance, struct err *err);

/* Whoever waits hears ERR, if it is not NULL, and is heard of no more. */
void csi_instance_silence(struct instance *instance, const struct err *err);

#endif
