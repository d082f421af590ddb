/*
 * What a task runs with, as hooks have made it ready and drivers want to be told: filled in once,
 * for whoever starts the task or runs something beside it.
 */
#ifndef CAIRN_AGENT_LAUNCH_H
#define CAIRN_AGENT_LAUNCH_H

#include "drivers/drivers.h"
#include "hooks/hooks.h"
#include "spec/spec.h"

struct parts;
struct task;

struct launch {
    struct driver_start start; /* borrows from the rest, and so must not be copied */
    struct hooks_launch *ready;
    struct hooks_paths paths;
};

/* The task NAME of ALLOC, or NULL. */
const struct task_spec *launch_task(const struct alloc_spec *alloc, const char *name);

/* For the generation of TASK, whose spec is SPEC of ALLOC; to be closed if it returns 0. */
int launch_open(struct parts *parts, const struct alloc_spec *alloc, const struct task_spec *spec,
                const struct task *task, struct launch *launch, struct err *err);
void launch_close(struct launch *launch);

#endif
