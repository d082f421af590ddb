/*
 * The stand-alone control plane as simulated worlds know it.
 *
 * It stands on the same floor as the laboratory, so that whoever stands above both hands it in
 * (agent/laboratory.c).  A world whose script has jobs runs it in each life of its daemon.
 */
#ifndef CAIRN_SIM_PLANE_H
#define CAIRN_SIM_PLANE_H

#include "core/life.h"
#include "spec/spec.h"

/* What a world gives to the control plane of one incarnation; as struct alone_config. */
struct sim_plane_world {
    struct life *life; /* not started yet; borrowed */
    void *ctx;
    void (*new_id)(void *ctx, char to[UUID_TEXT_SIZE]);
    void (*plan_alloc)(const struct alloc_spec *alloc, struct alloc_assign *assign);
    void (*plan_task)(void *ctx, const struct alloc_spec *alloc, const struct task_spec *task,
                      struct task_define *define);
    size_t allocs_kept;
};

/* Requests return 0 when they are posted, or an error; jobs are of the default namespace. */
struct sim_plane {
    void *(*begin)(const struct sim_plane_world *world);
    void (*end)(void *plane); /* before its life ends */
    /* JOB is Nomad's JSON; borrowed. */
    int (*register_job)(void *plane, const char *job, struct err *err);
    int (*deregister)(void *plane, const char *job_id, bool purge, struct err *err);
    int (*stop_alloc)(void *plane, const char *alloc, struct err *err);
    void (*collect)(void *plane);
};

#endif
