/*
 * How a newer version of a service takes the place of the older one: who is replaced next, and when
 * that is done, has failed, or is too late.
 *
 * A pure function of what the records say of each place, so that a daemon that comes back goes on
 * where it was.  Follows nomad v2.0.5 nomad/deploymentwatcher (when it fails, is promoted, is late)
 * and scheduler/reconciler (who is replaced), with one difference: a canary that is unhealthy is
 * not tried again, since that is what it was to tell.
 */
#include "fsm/policy.h"

/* What there is in one place. */
enum place_state {
    PLACE_OLD,    /* to be replaced */
    PLACE_BEGUN,  /* not healthy yet, or it waits for an alloc */
    PLACE_FAILED, /* unhealthy, and no other is made in time */
    PLACE_GOOD,
};

static enum place_state state_of(const struct rollout_alloc *alloc, uint64_t progress_ms)
{
    check(alloc->health < HEALTH_COUNT);
    if (alloc->who != ROLLOUT_OWN)
        return alloc->who == ROLLOUT_KEPT ? PLACE_GOOD : PLACE_OLD;
    if (alloc->stopped)
        return PLACE_BEGUN;
    if (alloc->health == HEALTH_HEALTHY)
        return alloc->over && alloc->again ? PLACE_BEGUN : PLACE_GOOD;
    if (alloc->health == HEALTH_UNKNOWN && !alloc->over)
        return PLACE_BEGUN;
    return progress_ms > 0 && alloc->again ? PLACE_BEGUN : PLACE_FAILED;
}

/* What the places of one group have come to. */
struct progress {
    bool done, failed;
    size_t taken;         /* places that are not to be counted on */
    size_t tried, proven; /* canaries, and those that are healthy */
};

static struct progress progress_of(const struct rollout_group *group)
{
    struct progress progress = {.done = group->canaries == 0};

    for (size_t i = 0; i < group->count; i++) {
        const struct rollout_place *place = &group->places[i];
        enum place_state last = state_of(&place->last, group->progress_ms);
        enum place_state canary = state_of(&place->canary, 0);

        progress.done = progress.done && last == PLACE_GOOD && !place->filled && !place->crowded;
        progress.failed |= last == PLACE_FAILED || canary == PLACE_FAILED;
        progress.taken += last == PLACE_BEGUN || last == PLACE_FAILED || place->filled;
        progress.tried += canary != PLACE_OLD;
        progress.proven += canary == PLACE_GOOD;
    }
    return progress;
}

static bool is_proven(const struct rollout_group *group, const struct progress *progress)
{
    return group->canaries > 0 && progress->proven >= group->canaries;
}

/* --- who is next --- */

static void replace_next(struct rollout_group *group, size_t taken)
{
    for (size_t i = 0; i < group->count && taken < group->parallel; i++) {
        struct rollout_place *place = &group->places[i];

        if (place->filled || state_of(&place->last, group->progress_ms) != PLACE_OLD)
            continue;
        place->replace = true;
        taken++;
    }
}

static void try_next(struct rollout_group *group, size_t tried)
{
    for (size_t i = 0; i < group->count && tried < group->canaries; i++) {
        struct rollout_place *place = &group->places[i];

        if (place->filled || place->last.who != ROLLOUT_OLDER ||
            place->canary.who != ROLLOUT_NOBODY)
            continue;
        place->try = true;
        tried++;
    }
}

/* --- how long it may take --- */

/* The time by which another one is to be healthy, counted from what ALLOC did last. */
static void note_deadline(const struct rollout_alloc *alloc, uint64_t progress_ms,
                          uint64_t *last_ms, bool *waits)
{
    uint64_t at_ms = alloc->health == HEALTH_HEALTHY ? alloc->healthy_at_ms : alloc->begun_ms;

    if (alloc->who != ROLLOUT_OWN)
        return;
    *waits = *waits || (alloc->begun_ms == 0 && alloc->health == HEALTH_UNKNOWN);
    if (alloc->begun_ms != 0 && at_ms + progress_ms > *last_ms)
        *last_ms = at_ms + progress_ms;
}

/* When GROUP is too late, 0: never, or one of it is not begun yet. */
static uint64_t deadline_of(const struct rollout_group *group, uint64_t resumed_ms)
{
    uint64_t last_ms = 0;
    bool waits = false;

    for (size_t i = 0; i < group->count && group->progress_ms > 0; i++) {
        note_deadline(&group->places[i].last, group->progress_ms, &last_ms, &waits);
        note_deadline(&group->places[i].canary, group->progress_ms, &last_ms, &waits);
    }
    if (last_ms != 0 && resumed_ms != 0 && resumed_ms + group->progress_ms > last_ms)
        last_ms = resumed_ms + group->progress_ms;
    return waits ? 0 : last_ms;
}

/* --- all groups --- */

/* Where all of them have come to. */
struct sum {
    bool done, failed, late;
    bool reverts;          /* one that has failed or is late says so */
    bool unproven;         /* a group has yet to hear of its canaries */
    bool awaits, promotes; /* one that has, waits for its promotion; all do it by themselves */
    uint64_t look_at_ms;
};

static void add_group(const struct rollout_input *input, const struct rollout_group *group,
                      const struct progress *progress, struct sum *sum)
{
    bool proven = is_proven(group, progress), rests = progress->done || proven;
    uint64_t at_ms = rests || input->paused ? 0 : deadline_of(group, input->resumed_ms);
    bool late = at_ms != 0 && at_ms <= input->now_ms;

    sum->done = sum->done && progress->done;
    sum->failed = sum->failed || progress->failed;
    sum->late = sum->late || late;
    sum->reverts = sum->reverts || (group->auto_revert && (progress->failed || late));
    sum->unproven = sum->unproven || (group->canaries > 0 && !proven);
    sum->awaits = sum->awaits || proven;
    sum->promotes = sum->promotes && (!proven || group->auto_promote);
    if (at_ms != 0 && (sum->look_at_ms == 0 || at_ms < sum->look_at_ms))
        sum->look_at_ms = at_ms;
}

static enum rollout_answer answer_of(const struct sum *sum)
{
    if (sum->done)
        return ROLLOUT_SUCCEEDS;
    if (sum->failed)
        return ROLLOUT_UNHEALTHY;
    if (sum->late)
        return ROLLOUT_LATE;
    return sum->awaits && !sum->unproven && sum->promotes ? ROLLOUT_PROMOTES : ROLLOUT_GOES_ON;
}

void policy_rollout(struct rollout_input *input, struct rollout_decision *ret_decision)
{
    struct sum sum = {.done = true, .promotes = true};

    for (size_t g = 0; g < input->count; g++) {
        struct rollout_group *group = &input->groups[g];
        struct progress progress = progress_of(group);

        check(implies(group->count > 0, group->places != NULL));
        add_group(input, group, &progress, &sum);
        if (input->paused)
            continue;
        if (group->canaries > 0)
            try_next(group, progress.tried);
        else
            replace_next(group, progress.taken);
    }
    *ret_decision = (struct rollout_decision){
        .answer = answer_of(&sum),
        .reverts = sum.reverts,
        .awaits = sum.awaits && !sum.unproven,
        .look_at_ms = sum.look_at_ms,
    };
}
