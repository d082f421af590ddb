/*
 * Rolling updates: a newer version of a service takes the place of the older one so many allocs at
 * a time as max_parallel of their group says, and goes on when those are healthy.
 *
 * Who is replaced next, and when it is over, is fsm/policy/rollout.c's answer; here it gets what
 * the records and the job say, and what it answers is posted.  An alloc that goes on by the newer
 * version, in place, is its own as one that it has placed is: it has to be healthy by that, too.
 *
 * One that fails ends there: what it has not replaced yet goes on by the older version, its
 * canaries end, and what has failed of it is not tried again.  Where a group says auto_revert the
 * last version that was good is registered again, in the same commit.
 */
#include "server/alone/part.h"

#include <stdlib.h>
#include <string.h>

/* --- what the records say --- */

/* Of ALLOC, whose record is there and which is the deployment's. */
static struct rollout_alloc own_one(const struct alone *alone, const char *id,
                                    const struct alloc *alloc)
{
    const struct kept *kept = kept_find(alone, id);
    bool over = alloc->machine.state == A_TERMINAL;
    /* What ends is decided about when it has (wait.c). */
    bool ends = !over && policy_group_health(alloc) == GROUP_BROKEN;
    uint64_t deadline_ms = alloc->assign.healthy_deadline_ms;

    return (struct rollout_alloc){
        .who = ROLLOUT_OWN,
        .health = alloc->health,
        .stopped = alloc->stop_wanted,
        .over = over,
        .again = ends || (kept != NULL && kept->again),
        .begun_ms = alloc->unhealthy_at_ms == 0 ? 0 : alloc->unhealthy_at_ms - deadline_ms,
        .healthy_at_ms = alloc->healthy_at_ms,
    };
}

/* The alloc that is number A of GATHERING; below 0: none, though one was there or is to be placed.
 */
static struct rollout_alloc one_of(const struct gathering *gathering, int a)
{
    const struct alone *alone = gathering->alone;
    const struct alone_job *job = &gathering->job->public;
    const char *id = a < 0 ? NULL : gathering->ids[a].text;
    const struct alloc *alloc = id == NULL ? NULL : core_alloc(life_core(alone->config.life), id);

    if (alloc == NULL)
        return (struct rollout_alloc){.who = ROLLOUT_NOBODY};
    if (alone_in_deployment(job, alloc))
        return own_one(alone, id, alloc);
    bool older = alloc->ended_unix_ns != 0 || alloc->assign.job_version < job->version;
    return (struct rollout_alloc){.who = older ? ROLLOUT_OLDER : ROLLOUT_KEPT};
}

/* One that a user has told to end is tried again. */
static void add_canaries(const struct gathering *gathering, const struct places *places, size_t g,
                         struct rollout_group *group)
{
    for (size_t a = 0; a < gathering->count; a++) {
        const struct reconcile_alloc *alloc = &gathering->allocs[a];

        if (!alloc->canary || alloc->index >= group->count ||
            !text_equal(alloc->group, places->groups[g].name))
            continue;
        struct rollout_alloc canary = one_of(gathering, (int)a);
        if (!canary.stopped)
            group->places[alloc->index].canary = canary;
    }
}

/* Number A of GATHERING runs in a place of the group that is number G beside who came there last,
 * as one whose canary is promoted does. */
static bool is_surplus(const struct gathering *gathering, const struct places *places, size_t g,
                       size_t a)
{
    const struct reconcile_alloc *alloc = &gathering->allocs[a];
    const struct reconcile_group *group = &places->groups[g];

    return alloc->live && !alloc->canary && alloc->index < group->count &&
           text_equal(alloc->group, group->name) && places->last[g][alloc->index] != (int)a;
}

static struct rollout_group group_of(const struct gathering *gathering, const struct places *places,
                                     size_t g)
{
    const json_t *job = gathering->job->json;
    const json_t *json = json_array_get(json_object_get(job, "TaskGroups"), g);
    const json_t *update = json_object_get(json, "Update");
    struct rollout_group group = {
        .parallel = (uint32_t)rollout_parallel(job, json),
        .canaries = deployment_canaries(job, places->groups[g].name),
        .progress_ms = job_number(update, "ProgressDeadline") / 1000000,
        .auto_promote = json_is_true(json_object_get(update, "AutoPromote")),
        .auto_revert = json_is_true(json_object_get(update, "AutoRevert")),
        .places = calloc(places->groups[g].count + 1, sizeof(*group.places)),
        .count = places->groups[g].count,
    };

    check(group.places != NULL);
    for (size_t i = 0; i < group.count; i++) {
        group.places[i].last = one_of(gathering, places->last[g][i]);
        group.places[i].filled = places->groups[g].place[i];
    }
    for (size_t a = 0; a < gathering->count; a++) {
        if (is_surplus(gathering, places, g, a))
            group.places[gathering->allocs[a].index].crowded = true;
    }
    add_canaries(gathering, places, g, &group);
    return group;
}

/* --- its end --- */

static void tell_end(const struct alone *alone, const struct job *job, const char *status)
{
    say(&alone->config.say, SAY_INFO, "server", "deployment %s job=%s version=%llu", status,
        text_value(job->id), (unsigned long long)job->public.version);
}

/* Whoever is tried beside another one goes with the deployment. */
static void stop_canaries(struct alone *alone, const struct gathering *gathering)
{
    for (size_t a = 0; a < gathering->count; a++) {
        if (gathering->allocs[a].canary && gathering->allocs[a].live)
            alone_order_stop(alone, gathering->job, &gathering->ids[a],
                             "alloc not needed due to job update", 0);
    }
}

static void end(struct alone *alone, const struct gathering *gathering, const char *status,
                const char *description)
{
    struct change change = change_begin(alone, gathering->job);

    stop_canaries(alone, gathering);
    deployment_end(alone, &change, status, description);
    (void)change_end(alone, &change, 0); /* what 0 stays */
    tell_end(alone, gathering->job, status);
}

int rollout_fail(struct alone *alone, const struct gathering *gathering, const char *description,
                 bool reverts, struct alone_evaluation *evaluation, int64_t *ret_reverted,
                 struct err *err)
{
    struct job *job = gathering->job;
    const json_t *stable = reverts ? versions_stable(&job->public) : NULL;
    char text[256];
    struct outcome outcome = {.status = "failed", .description = text};

    (void)text_copy(text, sizeof(text), description); /* all of these fit */
    if (reverts && stable == NULL)
        (void)text_append(text, sizeof(text), " - no stable job version to auto revert to");
    if (stable == NULL) {
        end(alone, gathering, "failed", text);
        return 0;
    }
    uint64_t version = job_number(stable, "Version");
    if (job_is_same(job->json, stable)) {
        (void)text_format(text, sizeof(text),
                          "%s - not rolling back to stable job version %llu as current job has "
                          "same specification",
                          description, (unsigned long long)version);
        end(alone, gathering, "failed", text);
        return 0;
    }
    (void)text_format(text, sizeof(text), "%s - rolling back to job version %llu", description,
                      (unsigned long long)version);
    int code =
        version_again(alone, &job->public, stable, &outcome, "deployment-watcher", evaluation, err);
    if (code == 0)
        *ret_reverted = (int64_t)version;
    if (code == 0)
        tell_end(alone, job, "failed");
    return code;
}

/* What cannot go back fails where it is, and says why. */
static void fail_or_revert(struct alone *alone, const struct gathering *gathering,
                           const char *description, bool reverts)
{
    struct alone_evaluation evaluation;
    int64_t reverted;
    struct err err;
    char text[256];
    int code = rollout_fail(alone, gathering, description, reverts, &evaluation, &reverted, &err);

    if (code == ERR_AGAIN) {
        alone_look_later(alone, gathering->job, life_now_ms(alone->config.life) + LOOK_AGAIN_MS);
    } else if (code < 0) {
        (void)text_format(text, sizeof(text), "%s - cannot roll back: %s", description,
                          err.text); /* may be cut */
        end(alone, gathering, "failed", text);
    }
}

static void promote(struct alone *alone, struct job *job)
{
    struct change change = change_begin(alone, job);

    deployment_promote(alone, &change, NULL);
    (void)change_end(alone, &change, 0); /* what 0 stays */
}

/* --- looking --- */

/* Who is replaced, or had a canary that is promoted, is told to end. */
static bool apply_group(struct gathering *gathering, struct places *places, size_t g,
                        const struct rollout_group *from)
{
    struct reconcile_group *group = &places->groups[g];
    bool any = false;

    for (uint32_t i = 0; i < group->count; i++) {
        const struct rollout_place *place = &from->places[i];
        int last = places->last[g][i];

        if (place->replace && last >= 0)
            gathering->allocs[last].stop = gathering->allocs[last].live;
        group->place[i] = group->place[i] || place->replace || place->try;
        places->tries[g][i] = place->try;
        any = any || place->replace || place->try;
    }
    for (size_t a = 0; a < gathering->count; a++) {
        if (is_surplus(gathering, places, g, a))
            gathering->allocs[a].stop = any = true;
    }
    return any;
}

/* Posts what DECISION says but for what is placed; true if that is all there is to do. */
static bool conclude(struct alone *alone, const struct gathering *gathering,
                     const struct rollout_decision *decision)
{
    struct job *job = gathering->job;

    if (decision->answer != ROLLOUT_GOES_ON && life_check_turn(alone->config.life, 0, NULL) < 0) {
        alone_look_later(alone, job, life_now_ms(alone->config.life) + LOOK_AGAIN_MS);
        return true;
    }
    switch (decision->answer) {
    case ROLLOUT_GOES_ON:
        if (decision->look_at_ms != 0)
            alone_look_later(alone, job, decision->look_at_ms);
        return false;
    case ROLLOUT_SUCCEEDS:
        end(alone, gathering, "successful", "Deployment completed successfully");
        return true;
    case ROLLOUT_PROMOTES:
        promote(alone, job);
        return true;
    case ROLLOUT_UNHEALTHY:
        fail_or_revert(alone, gathering, "Failed due to unhealthy allocations", decision->reverts);
        return true;
    case ROLLOUT_LATE:
        fail_or_revert(alone, gathering, "Failed due to progress deadline", decision->reverts);
        return true;
    }
    unreachable("rollout answer");
}

/* Each group has its number in GROUPS; one that is not rolled out has no places there. */
static struct rollout_decision decide(const struct alone *alone, const struct gathering *gathering,
                                      const struct places *places, struct rollout_group *groups)
{
    struct rollout_input input = {
        .groups = groups,
        .count = places->count,
        .now_ms = life_now_ms(alone->config.life),
        .resumed_ms = deployment_resumed_ms(gathering->job->json),
        .paused = deployment_is_paused(gathering->job->json),
    };
    const json_t *job = gathering->job->json, *list = json_object_get(job, "TaskGroups");
    struct rollout_decision decision;

    for (size_t g = 0; g < places->count; g++) {
        if (rollout_parallel(job, json_array_get(list, g)) > 0 &&
            !rollout_passes_over(alone, gathering->job, g))
            groups[g] = group_of(gathering, places, g);
    }
    policy_rollout(&input, &decision);
    return decision;
}

enum rollout rollout_look(struct alone *alone, struct gathering *gathering, struct places *places)
{
    struct rollout_group *groups;
    bool any = false;

    if (!deployment_is_active(gathering->job->json) || !alone_is_eligible(alone))
        return ROLLOUT_NOTHING; /* nothing can take the place of what it would stop */
    groups = calloc(places->count + 1, sizeof(*groups));
    check(groups != NULL);
    struct rollout_decision decision = decide(alone, gathering, places, groups);
    bool over = conclude(alone, gathering, &decision);
    for (size_t g = 0; g < places->count; g++) {
        if (!over && groups[g].places != NULL)
            any = apply_group(gathering, places, g, &groups[g]) || any;
        free(groups[g].places);
    }
    free(groups);
    return over ? ROLLOUT_ENDED : any ? ROLLOUT_NEXT : ROLLOUT_NOTHING;
}

void alone_note_changed(void *ctx, const char *id, const struct alloc *alloc)
{
    struct alone *alone = ctx;
    struct job *job = alloc->assign.watched
                          ? job_find(alone, alloc->assign.namespace, alloc->assign.job_id)
                          : NULL;

    (void)id;
    if (job != NULL && deployment_is_active(job->json))
        alone_note_look(alone, job);
}
