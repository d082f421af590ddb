/* The restart policy.  First match wins; texts are Nomad's (client-behaviour 2.5). */
#include "fsm/policy.h"

static void answer(struct restart_decision *decision, enum restart_answer what, uint64_t delay_ms,
                   const char *reason)
{
    decision->answer = what;
    decision->delay_ms = delay_ms;
    check(text_copy(decision->reason, sizeof(decision->reason), reason)); /* constants */
}

static void exceeded(struct restart_decision *decision, const struct task_define *define)
{
    char interval[48];

    text_from_duration_ns(interval, sizeof(interval),
                          (int64_t)define->restart_interval_ms * 1000000);
    decision->answer = RESTART_EXHAUSTED;
    (void)text_format(decision->reason, sizeof(decision->reason),
                      "Exceeded allowed attempts %u in interval %s and mode is \"fail\"",
                      define->restart_attempts, interval);
}

void policy_restart(const struct restart_input *input, struct restart_decision *ret_decision)
{
    const struct task_define *define = input->define;
    bool ends_well = input->success && !define->restart_on_success;

    *ret_decision = (struct restart_decision){
        .interval_ms = input->interval_ms,
        .count = input->count,
    };
    if (define->restart_attempts == 0) {
        if (ends_well)
            answer(ret_decision, RESTART_SUCCEEDED, 0, "");
        else
            answer(ret_decision, RESTART_EXHAUSTED, 0, "Policy allows no restarts");
        return;
    }
    if (input->now_ms > input->interval_ms + define->restart_interval_ms) {
        ret_decision->interval_ms = input->now_ms;
        ret_decision->count = 0;
    }
    ret_decision->count++;
    if (input->unrecoverable) {
        answer(ret_decision, RESTART_EXHAUSTED, 0, "Error was unrecoverable");
    } else if (ends_well) {
        answer(ret_decision, RESTART_SUCCEEDED, 0, "");
    } else if (ret_decision->count > define->restart_attempts && !define->restart_mode_delay) {
        exceeded(ret_decision, define);
    } else if (ret_decision->count > define->restart_attempts) {
        answer(ret_decision, RESTART_DELAYED,
               ret_decision->interval_ms + define->restart_interval_ms - input->now_ms,
               "Exceeded allowed attempts, applying a delay");
    } else {
        struct rng rng = rng_init(input->seed);
        uint64_t jitter = rng_below(&rng, define->restart_delay_ms / 4 + 1);
        answer(ret_decision, RESTART_AGAIN, define->restart_delay_ms + jitter,
               "Restart within policy");
    }
}

uint64_t policy_backoff_ms(uint64_t base_ms, uint64_t cap_ms, uint32_t attempt, uint64_t seed)
{
    check(attempt > 0);
    check(base_ms > 0);
    check(cap_ms >= base_ms);

    uint64_t delay = base_ms;
    for (uint32_t i = 1; i < attempt && delay < cap_ms; i++)
        delay *= 4;
    if (delay > cap_ms)
        delay = cap_ms;
    check(delay >= base_ms);
    struct rng rng = rng_init(seed);
    return delay + rng_below(&rng, delay / 4 + 1);
}

bool policy_restarts_on_success(bool batch, enum spec_lifecycle lifecycle, bool sidecar)
{
    switch (lifecycle) {
    case LIFECYCLE_MAIN:
        return !batch;
    case LIFECYCLE_PRESTART:
    case LIFECYCLE_POSTSTART:
        return sidecar;
    case LIFECYCLE_POSTSTOP:
        return false;
    }
    unreachable("lifecycle");
}
