/*
 * How a rollout begins: who is replaced by the registration of a newer version itself, who waits,
 * and what the deployment says that goes on from there (rollout.c).
 */
#include "server/alone/part.h"

#include <stdlib.h>

/* --- its begin --- */

static bool is_rolled(const json_t *job, size_t g)
{
    return rollout_parallel(job, json_array_get(json_object_get(job, "TaskGroups"), g)) > 0;
}

/* How many canaries GROUP of JOB wants where somebody is replaced.  A system job, of which there is
 * one on a node, has none: nobody can be tried beside it. */
static uint32_t canaries_of(const json_t *job, const json_t *group)
{
    bool system = job_type(job) == JOB_SYSTEM;
    uint64_t wanted = system ? 0 : job_number(json_object_get(group, "Update"), "Canary");
    uint64_t count = job_number(group, "Count");

    return rollout_parallel(job, group) == 0 ? 0 : (uint32_t)(wanted < count ? wanted : count);
}

static bool is_any_updated(const struct gathering *gathering, const char *group)
{
    for (size_t a = 0; a < gathering->count; a++) {
        if (text_equal(gathering->allocs[a].group, group) && classify_is_updated(gathering, a))
            return true;
    }
    return false;
}

/* Of PLACES, which hold what is wanted: their groups that are rolled out.  Who goes on in place is
 * waited for as whoever is placed is. */
static json_t *begin_groups(const struct alone *alone, const struct gathering *gathering,
                            const struct places *places)
{
    const json_t *job = gathering->job->json, *list = json_object_get(job, "TaskGroups");
    json_t *groups = json_object();
    bool any = false;

    for (size_t g = 0; g < places->count; g++) {
        const json_t *group = json_array_get(list, g);
        const json_t *update = json_object_get(group, "Update");
        bool tries = false;

        if (!is_rolled(job, g))
            continue;
        any = any || is_any_updated(gathering, places->groups[g].name);
        for (uint32_t i = 0; i < places->groups[g].count; i++) {
            any = any || places->groups[g].place[i];
            tries = tries || places->tries[g][i];
        }
        check(json_object_set_new(
                  groups, places->groups[g].name,
                  json_pack("{s:I, s:I, s:i, s:i, s:i, s:b, s:b, s:I, s:[], s:b}", "DesiredTotal",
                            rollout_passes_over(alone, gathering->job, g)
                                ? 0
                                : (json_int_t)places->groups[g].count,
                            "ProgressDeadline", (json_int_t)job_number(update, "ProgressDeadline"),
                            "PlacedAllocs", 0, "HealthyAllocs", 0, "UnhealthyAllocs", 0,
                            "AutoRevert", json_is_true(json_object_get(update, "AutoRevert")),
                            "AutoPromote", json_is_true(json_object_get(update, "AutoPromote")),
                            "DesiredCanaries", (json_int_t)(tries ? canaries_of(job, group) : 0),
                            "PlacedCanaries", "Promoted", 0)) == 0);
    }
    if (any)
        return groups;
    json_decref(groups);
    return NULL;
}

void rollout_begin(struct alone *alone, struct change *change, const struct gathering *gathering,
                   const struct places *places, struct alone_evaluation *evaluation)
{
    json_t *groups = begin_groups(alone, gathering, places);
    const struct core *core = life_core(alone->config.life);
    int64_t now_unix_ns = life_unix_ns(alone->config.life);

    if (groups == NULL)
        return;
    for (size_t a = 0; a < gathering->count; a++) {
        const struct alloc *alloc = core_alloc(core, gathering->ids[a].text);
        int64_t taken_unix_ns = alloc == NULL ? 0 : alloc_deployed_unix_ns(alloc);

        if (gathering->created_unix_ns[a] > taken_unix_ns)
            taken_unix_ns = gathering->created_unix_ns[a];
        if (taken_unix_ns >= now_unix_ns)
            now_unix_ns = wall_add(taken_unix_ns, 1);
    }
    alone->config.new_id(alone->config.ctx, evaluation->deployment_id);
    deployment_begin(alone, change, groups, now_unix_ns, evaluation->deployment_id);
}

/* --- how far it may go at once --- */

static bool is_replaced(const struct gathering *gathering, const struct places *places, size_t g,
                        uint32_t i)
{
    int last = places->last[g][i];

    return places->groups[g].place[i] && last >= 0 && gathering->allocs[last].stop;
}

/* What a registration replaces is all that there is to be replaced; who goes on is asked only from
 * then on whether it is healthy by that, and whoever else is placed is not healthy yet. */
static struct rollout_group group_of(const struct gathering *gathering, const struct places *places,
                                     size_t g)
{
    const json_t *job = gathering->job->json;
    const json_t *json = json_array_get(json_object_get(job, "TaskGroups"), g);
    const struct reconcile_group *group = &places->groups[g];
    struct rollout_group rolled = {.parallel = (uint32_t)rollout_parallel(job, json)};

    if (rolled.parallel == 0)
        return rolled;
    rolled.canaries = canaries_of(job, json);
    rolled.count = group->count;
    rolled.places = calloc(group->count + 1, sizeof(*rolled.places));
    check(rolled.places != NULL);
    for (uint32_t i = 0; i < group->count; i++) {
        bool replaced = is_replaced(gathering, places, g, i);

        rolled.places[i].last.who = replaced ? ROLLOUT_OLDER : ROLLOUT_KEPT;
        rolled.places[i].filled = group->place[i] && !replaced;
    }
    return rolled;
}

/* Who waits for its turn, or for a canary beside it, goes on. */
static void apply_group(struct gathering *gathering, struct places *places, size_t g,
                        const struct rollout_group *rolled)
{
    struct reconcile_group *group = &places->groups[g];

    for (uint32_t i = 0; i < rolled->count; i++) {
        const struct rollout_place *place = &rolled->places[i];

        if (place->last.who != ROLLOUT_OLDER || place->replace)
            continue;
        gathering->allocs[places->last[g][i]].stop = false;
        group->place[i] = places->tries[g][i] = place->try;
    }
}

void rollout_hold(struct gathering *gathering, struct places *places)
{
    struct rollout_input input = {.count = places->count};
    struct rollout_decision decision; /* that it goes on is known */

    input.groups = calloc(places->count + 1, sizeof(*input.groups));
    check(input.groups != NULL);
    for (size_t g = 0; g < places->count; g++)
        input.groups[g] = group_of(gathering, places, g);
    policy_rollout(&input, &decision);
    for (size_t g = 0; g < places->count; g++) {
        apply_group(gathering, places, g, &input.groups[g]);
        free(input.groups[g].places);
    }
    free(input.groups);
}
