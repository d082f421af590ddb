/*
 * Images that tasks have used: when the Engine is asked to remove one.
 *
 * A task takes an image before its container is made, and leaves it when that is gone.  Who takes
 * one that is being removed waits for the answer: it may be there or not, and is looked for again.
 */
#include "fsm/images.h"

/* clang-format off */
static const struct image_step steps[IMAGE_GONE][IMAGE_EVENT_COUNT] = {
    [IMAGE_USED] = {
        [IMAGE_TAKEN]   = {IMAGE_USED,    IMAGE_GO_ON}, /* by one more */
        [IMAGE_LEFT]    = {IMAGE_IDLE,    IMAGE_WAIT},
    },
    [IMAGE_IDLE] = {
        [IMAGE_TAKEN]   = {IMAGE_USED,    IMAGE_KEEP},
        [IMAGE_DUE]     = {IMAGE_LEAVING, IMAGE_REMOVE},
    },
    [IMAGE_LEAVING] = {
        [IMAGE_TAKEN]   = {IMAGE_LEAVING, IMAGE_HOLD},
        [IMAGE_REMOVED] = {IMAGE_GONE,    IMAGE_FORGET},
        [IMAGE_BUSY]    = {IMAGE_IDLE,    IMAGE_WAIT_AGAIN},
        [IMAGE_FAILED]  = {IMAGE_IDLE,    IMAGE_WAIT_AGAIN},
    },
};
/* clang-format on */

struct image_step policy_image(enum image_state state, enum image_event event)
{
    check(state < IMAGE_GONE);
    check(event < IMAGE_EVENT_COUNT);
    const struct image_step *step = &steps[state][event];

    check(step->act != IMAGE_NEVER);
    return *step;
}

uint64_t policy_image_due_ms(uint64_t since_ms, bool same_boot, uint64_t now_ms, uint64_t delay_ms)
{
    bool is_known = since_ms != 0 && same_boot && since_ms <= now_ms;

    return (is_known ? since_ms : now_ms) + delay_ms;
}
