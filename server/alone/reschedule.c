/*
 * Whether another alloc is made for one that has failed, and what it knows of those before it.
 *
 * The answer is fsm/policy/reschedule.c's; here it gets what the journal holds.
 */
#include "server/alone/part.h"

#include "spec/job.h"

#include <stdlib.h>
#include <string.h>

static struct reschedule_policy policy_of(const json_t *group)
{
    const json_t *block = json_object_get(group, "ReschedulePolicy");
    const char *function = json_string_value(json_object_get(block, "DelayFunction"));

    return (struct reschedule_policy){
        .attempts = (uint32_t)job_number(block, "Attempts"),
        .unlimited = json_is_true(json_object_get(block, "Unlimited")),
        .interval_ns = job_number(block, "Interval"),
        .delay_ns = job_number(block, "Delay"),
        .max_delay_ns = job_number(block, "MaxDelay"),
        .function = function == NULL                      ? RESCHEDULE_CONSTANT
                    : text_equal(function, "exponential") ? RESCHEDULE_EXPONENTIAL
                    : text_equal(function, "fibonacci")   ? RESCHEDULE_FIBONACCI
                                                          : RESCHEDULE_CONSTANT,
    };
}

bool alone_may_reschedule(const json_t *group)
{
    struct reschedule_policy policy = policy_of(group);

    return policy.unlimited || policy.attempts > 0;
}

/* The rescheduled of SPEC (may be NULL) as the policy knows them; owned by the caller. */
static struct reschedule_event *events_of(const struct alloc_spec *spec, size_t *ret_count)
{
    size_t count = spec == NULL ? 0 : spec->rescheduled_count;
    struct reschedule_event *events = calloc(count + 1, sizeof(*events));

    check(events != NULL);
    for (size_t i = 0; i < count; i++)
        events[i] =
            (struct reschedule_event){spec->rescheduled[i].unix_ns, spec->rescheduled[i].delay_ns};
    *ret_count = count;
    return events;
}

void alone_decide(struct alone *alone, const struct job *job, const json_t *group,
                  struct kept *kept)
{
    struct reschedule_policy policy = policy_of(group);
    struct reschedule_input input = {.policy = &policy, .failed_unix_ns = kept->ended_unix_ns};
    struct reschedule_decision decision;

    if (kept->decided_index == job->public.job_modify_index && kept->decided_index != 0)
        return;
    kept->decided_index = job->public.job_modify_index;
    kept->follow_up = (struct follow_up){.id = ""};
    kept->again = alone_may_reschedule(group);
    if (!kept->again)
        return; /* its specification is not worth reading: there may be thousands */
    struct alloc_spec *spec = alone_read_spec(alone, kept->id);
    struct reschedule_event *events = events_of(spec, &input.events_count);
    input.events = events;
    policy_reschedule(&input, &decision);
    kept->again = decision.again;
    kept->delay_ns = decision.delay_ns;
    kept->delay_ms = decision.delay_ns / 1000000 + (decision.delay_ns % 1000000 != 0);
    free(events);
    if (spec != NULL)
        alloc_spec_free(spec);
}

/* The place of ALLOC waits for room. */
static bool is_queued(const struct job *job, const struct alloc *alloc)
{
    const json_t *place;
    size_t g, i;

    if (job_group(job, alloc->assign.group, &g) == NULL)
        return false;
    json_array_foreach(job_queue(job), i, place)
    {
        if ((size_t)json_integer_value(place) == g * JOB_COUNT_MAX + alloc->assign.index)
            return true;
    }
    return false;
}

bool alone_awaits_next(const struct gathering *gathering, const struct alloc *alloc)
{
    const struct job *job = gathering->job;

    if (gathering->evaluates == EVALUATE_NOT || !policy_is_relieved(job_type(job->json), alloc))
        return false;
    struct succession succession = {
        .queued = is_queued(job, alloc),
        .gave_up = deployment_gave_up(job, alloc),
        .forced = gathering->evaluates == EVALUATE_FORCED,
        .reschedules = alone_may_reschedule(jobspec_group(job->json, alloc->assign.group)),
    };
    return policy_awaits_next(&succession);
}

void alone_history(struct alone *alone, const json_t *group, const char *alloc,
                   struct rescheduled *ret_rescheduled)
{
    struct reschedule_policy policy = policy_of(group);
    const struct kept *kept = kept_find(alone, alloc);
    int64_t now_unix_ns = life_unix_ns(alone->config.life);
    size_t count;

    check(kept != NULL);
    struct alloc_spec *before = alone_read_spec(alone, alloc);
    struct reschedule_event *events = events_of(before, &count);
    size_t keep = policy_reschedule_kept(&policy, events, count, now_unix_ns);
    free(events);
    keep = keep < SPEC_RESCHEDULED_MAX - 1 ? keep : SPEC_RESCHEDULED_MAX - 1;
    *ret_rescheduled = (struct rescheduled){
        .items = calloc(keep + 1, sizeof(*ret_rescheduled->items)),
        .count = keep + 1,
        .before = before,
    };
    check(ret_rescheduled->items != NULL);
    if (keep > 0)
        memcpy(ret_rescheduled->items, before->rescheduled + count - keep,
               keep * sizeof(*ret_rescheduled->items));
    ret_rescheduled->items[keep] = (struct spec_rescheduled){
        .unix_ns = now_unix_ns, .delay_ns = kept->delay_ns, .alloc_id = kept->id};
}

void rescheduled_free(struct rescheduled *rescheduled)
{
    free(rescheduled->items);
    if (rescheduled->before != NULL)
        alloc_spec_free(rescheduled->before);
}
