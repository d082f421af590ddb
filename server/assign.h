/*
 * What every alloc goes through on its way into the core, whoever decided that it should run.
 */
#ifndef CAIRN_SERVER_ASSIGN_H
#define CAIRN_SERVER_ASSIGN_H

#include "core/core.h"
#include "spec/spec.h"

/* What other rooms make of an alloc before it is known to the machines; each called once for each
 * alloc or task, with nothing to be kept. */
struct assign_plans {
    uint64_t kill_timeout_max_ms; /* longer ones are cut */
    void (*alloc)(const struct alloc_spec *alloc, struct alloc_assign *assign);
    void (*task)(void *ctx, const struct alloc_spec *alloc, const struct task_spec *task,
                 struct task_define *define);
    /* ERR_INVALID: its driver cannot run TASK, ERR says why. */
    int (*validate)(void *ctx, const struct alloc_spec *alloc, const struct task_spec *task,
                    struct err *err);
    void *ctx;
};

/* Posts ASSIGN to the alloc of SPEC and DEFINE to each of its tasks.  Nothing of it is begun before
 * the alloc AWAITED has ended; "": none is waited for; nor before DISK_FROM has, whose ephemeral
 * disk it takes over; "": nobody's. */
void assign_alloc(struct core *core, const struct assign_plans *plans,
                  const struct alloc_spec *spec, const char *awaited, const char *disk_from);

/* Posts UPDATE to the alloc of SPEC, which is there, and to each of its tasks: they go on as they
 * are, and by this version of what they were asked to be.  SPEC says nothing else of what would
 * have to be replaced.  The deployment that waits to hear of its health, if any, took it then. */
void update_alloc(struct core *core, const struct assign_plans *plans,
                  const struct alloc_spec *spec, int64_t deployed_unix_ns);

#endif
