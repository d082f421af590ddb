/* What a task is told of templates that say something else than they did, and of new tokens; and
 * when those are asked for. */
#include "fsm/policy.h"

#include <string.h>

enum {
    RENEW_LEAST_MS = 10 * 1000, /* nomad v2.0.6 client/widmgr/widmgr.go minWait */
    RENEW_MOST_MS = 3600 * 1000,
};

_Static_assert(sizeof(struct rendered) * SPEC_TEMPLATES_MAX <= RESULT_VALUE_MAX,
               "all templates of a task fit one result");

static bool find_rendered(uint8_t hook, const uint8_t *bytes, uint32_t used,
                          struct result *ret_result)
{
    for (uint32_t at = 0; results_next(bytes, used, &at, ret_result);) {
        if (ret_result->hook == hook && ret_result->kind == RESULT_DATA &&
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

void policy_change(uint8_t hook, const uint8_t *before, uint32_t before_bytes, const uint8_t *after,
                   uint32_t after_bytes, struct rendered_change *ret_change)
{
    struct result was, is;

    *ret_change = (struct rendered_change){0};
    if (!find_rendered(hook, before, before_bytes, &was) ||
        !find_rendered(hook, after, after_bytes, &is) || was.value_length != is.value_length)
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

static int64_t left_ms(int64_t expires_unix_ns, int64_t now_unix_ns)
{
    return expires_unix_ns > now_unix_ns ? (expires_unix_ns - now_unix_ns) / 1000000 : 0;
}

/* At half of what is left, spread a little (helper.ExpiryToRenewTime). */
uint64_t policy_renew_after_ms(int64_t expires_unix_ns, int64_t now_unix_ns, uint64_t draw)
{
    uint64_t left = (uint64_t)left_ms(expires_unix_ns, now_unix_ns);

    if (left == 0)
        return 0;
    if (left / 2 < RENEW_LEAST_MS)
        return RENEW_LEAST_MS + draw % (RENEW_LEAST_MS / 10);
    return left / 2 + draw % (left / 20);
}

uint64_t policy_renew_again_ms(uint32_t tries, uint64_t draw)
{
    uint64_t wait_ms = RENEW_LEAST_MS;

    for (; tries > 0 && wait_ms < RENEW_MOST_MS; tries--)
        wait_ms *= 2;
    return (wait_ms < RENEW_MOST_MS ? wait_ms : RENEW_MOST_MS) + draw % RENEW_LEAST_MS;
}

bool policy_token_lasts(int64_t expires_unix_ns, int64_t now_unix_ns)
{
    return expires_unix_ns == 0 || left_ms(expires_unix_ns, now_unix_ns) > RENEW_LEAST_MS;
}
