/* What a task is told of templates that say something else than they did. */
#include "fsm/policy.h"

#include <string.h>

_Static_assert(sizeof(struct rendered) * SPEC_TEMPLATES_MAX <= RESULT_VALUE_MAX,
               "all templates of a task fit one result");

static bool find_rendered(const uint8_t *bytes, uint32_t used, struct result *ret_result)
{
    for (uint32_t at = 0; results_next(bytes, used, &at, ret_result);) {
        if (ret_result->hook == TASK_HOOK_TEMPLATE && ret_result->kind == RESULT_DATA &&
            text_equal(ret_result->key, RENDERED_KEY))
            return true;
    }
    return false;
}

static void add_change(const struct rendered *now, struct rendered_change *change)
{
    if (now->mode == CHANGE_RESTART)
        change->restarts = true;
    else if (now->mode == CHANGE_SIGNAL && now->number >= 1 && now->number <= 64)
        change->signals |= (uint64_t)1 << (now->number - 1);
    else if (now->mode == CHANGE_SCRIPT && now->number < SPEC_SCRIPTS_MAX)
        change->scripts |= (uint64_t)1 << now->number;
}

void policy_change(const uint8_t *before, uint32_t before_bytes, const uint8_t *after,
                   uint32_t after_bytes, struct rendered_change *ret_change)
{
    struct result was, is;

    *ret_change = (struct rendered_change){0};
    if (!find_rendered(before, before_bytes, &was) || !find_rendered(after, after_bytes, &is) ||
        was.value_length != is.value_length)
        return;
    for (uint32_t at = 0; at + sizeof(struct rendered) <= is.value_length;
         at += (uint32_t)sizeof(struct rendered)) {
        struct rendered then, now;

        memcpy(&then, was.value + at, sizeof(then));
        memcpy(&now, is.value + at, sizeof(now));
        if (memcmp(then.digest, now.digest, sizeof(now.digest)) != 0)
            add_change(&now, ret_change);
    }
}
