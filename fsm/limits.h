/*
 * How much there may be of what machines are made of: names, tasks of a group, and when a task of a
 * group runs.
 *
 * Records have fixed sizes (fields.h), so these bounds hold for whatever is asked for (spec/).
 */
#ifndef CAIRN_FSM_LIMITS_H
#define CAIRN_FSM_LIMITS_H

enum {
    SPEC_TASKS_MAX = 64, /* tasks in one group */
    SPEC_NAME_SIZE = 96, /* job, group and task names with their NUL */
    SPEC_NAMESPACE_SIZE = 96,
    SPEC_DRIVER_SIZE = 64,
};

/* When a task runs, relative to the main tasks of its group. */
enum spec_lifecycle { LIFECYCLE_MAIN, LIFECYCLE_PRESTART, LIFECYCLE_POSTSTART, LIFECYCLE_POSTSTOP };

#endif
