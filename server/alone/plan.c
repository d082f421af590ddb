/*
 * What registering a job would do: the same questions as in place.c, about a job that is in no
 * list, and nothing posted.
 */
#include "server/alone/part.h"

#include "spec/job.h"

#include <stdlib.h>

/* In Nomad's words, of its API and of its diffs. */
static const struct {
    const char *name, *shown;
} kinds[] = {
    {"Ignore", "ignore"},
    {"Place", "create"},
    {"Migrate", "migrate"},
    {"Stop", "destroy"},
    {"InPlaceUpdate", "in-place update"},
    {"DestructiveUpdate", "create/destroy update"},
    {"Canary", "canary"},
    {"Preemptions", NULL},
};

/* What of the group NAME is done; made if it is not there. */
static json_t *update_of(json_t *updates, const char *name)
{
    json_t *update = json_object_get(updates, name);

    if (update != NULL)
        return update;
    update = json_object();
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        check(json_object_set_new(update, kinds[i].name, json_integer(0)) == 0);
    check(json_object_set_new(updates, name, update) == 0);
    return update;
}

static void count(json_t *updates, const char *group, const char *kind)
{
    json_t *number = json_object_get(update_of(updates, group), kind);

    check(json_integer_set(number, json_integer_value(number) + 1) == 0);
}

/* Takes the place of ALLOC, which is to stop, out of PLACES if another is wanted there. */
static bool is_replaced(struct places *places, const struct reconcile_alloc *alloc)
{
    for (size_t g = 0; g < places->count; g++) {
        struct reconcile_group *group = &places->groups[g];

        if (!text_equal(group->name, alloc->group) || alloc->index >= group->count ||
            !group->place[alloc->index])
            continue;
        group->place[alloc->index] = false;
        return true;
    }
    return false;
}

/* Uses up PLACES. */
static json_t *count_updates(const struct gathering *gathering, struct places *places)
{
    json_t *updates = json_object();

    for (size_t g = 0; g < places->count; g++)
        (void)update_of(updates, places->groups[g].name); /* also of one that stays as it is */
    for (size_t a = 0; a < gathering->count; a++) {
        const struct reconcile_alloc *alloc = &gathering->allocs[a];

        if (!alloc->live)
            continue;
        if (alloc->canary && !alloc->stop)
            continue; /* it is not one of those that are wanted */
        if (alloc->stop)
            count(updates, alloc->group,
                  !alloc->canary && is_replaced(places, alloc) ? "DestructiveUpdate" : "Stop");
        else
            count(updates, alloc->group,
                  gathering->changed && alloc->current ? "InPlaceUpdate" : "Ignore");
    }
    for (size_t g = 0; g < places->count; g++) {
        for (uint32_t i = 0; i < places->groups[g].count; i++) {
            if (places->groups[g].place[i])
                count(updates, places->groups[g].name, places->tries[g][i] ? "Canary" : "Place");
        }
    }
    return updates;
}

/* With the Updates of its groups, of which those that are 0 are not shown. */
json_t *alone_plan_diff(const struct alone_plan *plan)
{
    json_t *diff = jobspec_diff(plan->before, plan->after), *group;
    size_t g;

    json_array_foreach(json_object_get(diff, "TaskGroups"), g, group)
    {
        const char *name = json_string_value(json_object_get(group, "Name"));
        const json_t *update = json_object_get(plan->updates, name);
        json_t *shown = json_object();

        for (size_t i = 0; i < COUNT_OF(kinds); i++) {
            json_t *number = json_object_get(update, kinds[i].name);
            if (json_integer_value(number) > 0 && kinds[i].shown != NULL)
                check(json_object_set(shown, kinds[i].shown, number) == 0);
        }
        check(json_object_set_new(group, "Updates", shown) == 0);
    }
    return diff;
}

/* What JOB, which is in no list, would come to. */
static void foresee(struct alone *alone, struct job *job, const json_t *json, bool changed,
                    struct alone_plan *plan)
{
    struct gathering gathering = {.alone = alone, .job = job, .wanted = json, .changed = changed};
    struct refusal refusal;
    struct places places;

    if (jobspec_makes_jobs(json)) {
        plan->updates = json_object(); /* it is not run itself */
        plan->failed = json_array();
        return;
    }
    gathering_fill(&gathering);
    job->json = (json_t *)(uintptr_t)json; /* borrowed: what it says from now on */
    places_want(alone, &gathering, &places);
    alone_choose(alone, &gathering, &places, &refusal);
    plan->failed = refusal.failed;
    json_decref(refusal.queue);
    places_end(alone, &places);
    places_want(alone, &gathering, &places); /* what is wanted, whether there is room or not */
    plan->updates = count_updates(&gathering, &places);
    places_end(alone, &places);
    gathering_free(&gathering);
    json_decref(job->unmet);
}

int alone_plan(struct alone *alone, struct alone_wanted *wanted, struct alone_plan *ret_plan,
               struct err *err)
{
    json_t *json = wanted->job;
    const char *namespace = json_string_value(json_object_get(json, "Namespace"));
    const char *id = json_string_value(json_object_get(json, "ID"));
    const struct job *before = job_find(alone, namespace, id);
    struct job *job = calloc(1, sizeof(*job));

    check(job != NULL);
    *wanted = (struct alone_wanted){.bytes = wanted->bytes};
    int code = alone_check_names(alone, json, err);
    if (code == 0)
        code = periodic_check(alone, json, err);
    if (code == 0)
        code = alone_check_job(alone, before, wanted->bytes, err);
    if (code == 0) {
        json_t *old = before == NULL ? NULL : before->json;
        (void)text_copy(job->namespace, sizeof(job->namespace), namespace); /* they were checked */
        (void)text_copy(job->id, sizeof(job->id), id);
        job->public.job = old;
        if (before != NULL)
            job->posted = before->posted; /* borrowed */
        *ret_plan = (struct alone_plan){
            .job_modify_index = before == NULL ? 0 : before->public.job_modify_index,
            .before = json_incref(old),
            .after = json_incref(json),
        };
        foresee(alone, job, json, old != NULL && !job_is_same(old, json), ret_plan);
    }
    free(job);
    json_decref(json);
    return code;
}

void alone_plan_free(struct alone_plan *plan)
{
    json_decref(plan->updates);
    json_decref(plan->failed);
    json_decref(plan->before);
    json_decref(plan->after);
    *plan = (struct alone_plan){0};
}
