/*
 * Images of a Docker Engine that tasks of this node have used: what becomes of one.  A policy, as
 * those of policy.h; nothing else is known of an image than that it was used.
 *
 * Follows nomad v2.0.6 drivers/docker/coordinator.go.
 */
#ifndef CAIRN_FSM_IMAGES_H
#define CAIRN_FSM_IMAGES_H

#include "base/base.h"

#include <stdint.h>

enum image_state {
    IMAGE_USED,    /* a task has a container of it, or is to have one */
    IMAGE_IDLE,    /* none has, for less than the delay */
    IMAGE_LEAVING, /* the Engine has been asked to remove it */
    IMAGE_GONE,    /* which it has; nothing is kept of it */
};

enum image_event {
    IMAGE_TAKEN,   /* a task is to have a container of it */
    IMAGE_LEFT,    /* the last one that had one has none any more */
    IMAGE_DUE,     /* the time for which it was idle is over */
    IMAGE_REMOVED, /* the Engine has it no more */
    IMAGE_BUSY,    /* the Engine keeps it for a container that is not ours */
    IMAGE_FAILED,  /* the Engine could not be asked, or cannot remove it now */
    IMAGE_EVENT_COUNT,
};

enum image_act {
    IMAGE_NEVER, /* this cannot be */
    IMAGE_GO_ON,
    IMAGE_KEEP,       /* it is idle no more */
    IMAGE_WAIT,       /* for the whole delay */
    IMAGE_WAIT_AGAIN, /* the same, but for IMAGE_AGAIN_MS at least */
    IMAGE_REMOVE,     /* the Engine is asked to */
    IMAGE_HOLD,       /* who takes it waits for what comes of that, and looks again */
    IMAGE_FORGET,
};

enum { IMAGE_AGAIN_MS = 60 * 1000 };

struct image_step {
    enum image_state next;
    enum image_act act;
};

struct image_step policy_image(enum image_state state, enum image_event event);

/* When an image is due that was left at SINCE_MS: in this boot of the host if SAME_BOOT, else the
 * delay begins NOW; 0: it was in use when the daemon died. */
uint64_t policy_image_due_ms(uint64_t since_ms, bool same_boot, uint64_t now_ms, uint64_t delay_ms);

#endif
