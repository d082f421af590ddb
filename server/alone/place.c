/*
 * Allocs of a job: made, and told to end, until they are what the job wants.
 *
 * What is placed and stopped is fsm/policy/reconcile.c's answer.
 */
#include "server/alone/part.h"

#include "spec/job.h"

#include <stdlib.h>
#include <string.h>

/* --- what is posted --- */

static void note_posted(struct job *job, const struct posted *posted, const char *group)
{
    struct posted *noted = list_more(&job->posted);

    *noted = *posted;
    (void)text_copy(noted->group, sizeof(noted->group), group); /* bounded when decoded */
}

static bool is_told_to_end(const struct job *job, const struct machine_id *id)
{
    for (size_t i = 0; i < job->posted.count; i++) {
        if (job->posted.items[i].stops && machine_id_equal(&job->posted.items[i].id, id))
            return true;
    }
    return false;
}

/* --- placing --- */

static int place(struct alone *alone, struct job *job, const char *group, uint32_t index,
                 const char *eval_id, struct err *err)
{
    char alloc_id[UUID_TEXT_SIZE], key[JOURNAL_KEY_SIZE], *text;
    struct jobspec_placement placement = {
        .group = group,
        .index = index,
        .alloc_id = alloc_id,
        .eval_id = eval_id,
        .datacenter = alone->config.datacenter,
        .create_time_unix_ns = life_unix_ns(alone->config.life),
    };
    struct core *core = life_core(alone->config.life);
    struct alloc_spec *spec;
    size_t length;

    alone->config.new_id(alone->config.ctx, alloc_id);
    int code = jobspec_make_alloc(job->json, &placement, &text, &length, &spec, err);
    if (code < 0)
        return code;
    code = alone_take_spec(alone, length, err);
    if (code == 0) {
        (void)text_format(key, sizeof(key), "alloc/%s", alloc_id); /* fits */
        core_spec(core, key, text, length);
        assign_alloc(core, &alone->config.plans, spec);
        note_posted(
            job, &(struct posted){.id = machine_id_make(MACHINE_ALLOC, alloc_id), .index = index},
            group);
    }
    free(text);
    if (code == 0 && alone->config.placed != NULL)
        alone->config.placed(alone->config.ctx, spec);
    else
        alloc_spec_free(spec);
    return code;
}

/* --- reconciling --- */

static bool is_current(const struct gathering *gathering, const char *group)
{
    const struct alone_job *before = &gathering->job->public;

    if (gathering->wanted == NULL || before->job == NULL)
        return false;
    /* An alloc of an older version was kept because it was as good as the version after it. */
    return jobspec_group_equal(before->job, gathering->wanted, group);
}

static void add_gathered(struct gathering *gathering, const struct machine_id *id,
                         const struct reconcile_alloc *alloc)
{
    size_t room = gathering->count + 1;

    gathering->allocs = realloc(gathering->allocs, room * sizeof(*gathering->allocs));
    gathering->ids = realloc(gathering->ids, room * sizeof(*gathering->ids));
    check(gathering->allocs != NULL);
    check(gathering->ids != NULL);
    gathering->ids[gathering->count] = *id;
    gathering->allocs[gathering->count++] = *alloc;
}

static bool gather(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct gathering *gathering = ctx;
    const struct alloc *alloc = alloc_of(record);

    bool stopped = alloc->stop_wanted || is_told_to_end(gathering->job, id);
    add_gathered(gathering, id,
                 &(struct reconcile_alloc){
                     .group = alloc->assign.group,
                     .index = alloc->assign.index,
                     .live = alloc->ended_unix_ns == 0 && !stopped,
                     .succeeded = alloc->client_status == CLIENT_COMPLETE && !stopped,
                     .current = is_current(gathering, alloc->assign.group),
                 });
    return true;
}

/* What another request of this turn has placed is as good as there. */
static void gather_posted(struct gathering *gathering)
{
    const struct posted_list *posted = &gathering->job->posted;

    for (size_t i = 0; i < posted->count; i++) {
        const struct posted *placed = &posted->items[i];
        if (placed->stops)
            continue;
        add_gathered(gathering, &placed->id,
                     &(struct reconcile_alloc){
                         .group = placed->group,
                         .index = placed->index,
                         .live = !is_told_to_end(gathering->job, &placed->id),
                         .current = is_current(gathering, placed->group),
                     });
    }
}

void gathering_fill(struct gathering *gathering)
{
    core_each_of_job(life_core(gathering->alone->config.life), gathering->job->namespace,
                     gathering->job->id, gather, gathering);
    gather_posted(gathering);
}

void gathering_free(struct gathering *gathering)
{
    free(gathering->allocs);
    free(gathering->ids);
}

void alone_order_stop(struct alone *alone, struct job *job, const struct machine_id *id,
                      const char *why, bool destroy)
{
    struct request request = {.signal = ""};

    (void)text_copy(request.text, sizeof(request.text), why); /* fits */
    core_tell(life_core(alone->config.life), id, AE_STOP, &request);
    if (destroy)
        core_tell(life_core(alone->config.life), id, AE_DESTROY, NULL);
    note_posted(job, &(struct posted){.id = *id, .stops = true}, "");
}

/* What bringing them to GROUPS makes, as policy_reconcile has answered. */
static struct demand demand_of(const struct gathering *gathering,
                               const struct reconcile_group *groups, const json_t *list)
{
    struct demand demand = {0};

    for (size_t a = 0; a < gathering->count; a++)
        demand.stops += gathering->allocs[a].stop;
    for (size_t g = 0; g < json_array_size(list); g++) {
        size_t tasks = json_array_size(json_object_get(json_array_get(list, g), "Tasks"));
        for (uint32_t i = 0; i < groups[g].count; i++) {
            demand.allocs += groups[g].place[i];
            demand.tasks += groups[g].place[i] ? tasks : 0;
        }
    }
    return demand;
}

static void stop_unwanted(struct alone *alone, struct job *job, const struct gathering *gathering,
                          struct alone_evaluation *evaluation)
{
    for (size_t a = 0; a < gathering->count; a++) {
        if (!gathering->allocs[a].stop)
            continue;
        alone_order_stop(alone, job, &gathering->ids[a], "alloc is being updated due to job update",
                         false);
        evaluation->stopped++;
    }
}

static int place_missing(struct alone *alone, struct job *job, const struct reconcile_group *groups,
                         size_t count, struct alone_evaluation *evaluation, struct err *err)
{
    for (size_t g = 0; g < count; g++) {
        for (uint32_t i = 0; i < groups[g].count; i++) {
            if (!groups[g].place[i])
                continue;
            int code = place(alone, job, groups[g].name, i, evaluation->id, err);
            if (code < 0)
                return code;
            evaluation->placed++;
        }
    }
    return 0;
}

int alone_reconcile(struct alone *alone, struct job *job, struct gathering *gathering,
                    struct alone_evaluation *evaluation, struct err *err)
{
    const json_t *list = json_object_get(job->json, "TaskGroups");
    size_t count = json_array_size(list);
    struct reconcile_group *groups = calloc(count + 1, sizeof(*groups));
    bool batch = text_equal(json_string_value(json_object_get(job->json, "Type")), "batch");

    check(groups != NULL);
    for (size_t g = 0; g < count; g++) {
        const json_t *group = json_array_get(list, g);
        groups[g].name = json_string_value(json_object_get(group, "Name"));
        groups[g].count = (uint32_t)job_number(group, "Count");
        groups[g].place = calloc(groups[g].count + 1, sizeof(*groups[g].place));
        check(groups[g].place != NULL);
    }
    policy_reconcile(batch, gathering->allocs, gathering->count, groups, count);
    struct demand demand = demand_of(gathering, groups, list);
    int code = alone_take(alone, &demand, err);
    if (code == 0) {
        stop_unwanted(alone, job, gathering, evaluation);
        code = place_missing(alone, job, groups, count, evaluation, err);
    }
    for (size_t g = 0; g < count; g++)
        free(groups[g].place);
    free(groups);
    return code;
}
