/*
 * Allocs of a job: made, and told to end, until they are what the job wants.
 *
 * What is placed and stopped is fsm/policy/reconcile.c's answer, and what may be placed here that
 * of feasible.c: the rest is queued with the job, in the same commit.
 */
#include "server/alone/part.h"

#include "spec/job.h"

#include <stdlib.h>
#include <string.h>

/* --- placing --- */

/* One alloc to be made. */
struct placing {
    const json_t *group;
    uint32_t index;
    const char *previous;     /* in whose place, or NULL */
    int64_t previous_unix_ns; /* when that one was made */
    bool rescheduled;         /* that one has failed, and this is the next try */
    struct spec_ports *ports; /* offered; kept once it is placed */
};

static int make(struct alone *alone, struct job *job, const struct placing *placing,
                const struct jobspec_placement *placement, struct err *err)
{
    struct core *core = life_core(alone->config.life);
    struct room ask = alone_ask(alone, placing->group);
    const char *awaited = ports_awaited(alone, placing->ports);
    char holder[UUID_TEXT_SIZE];
    const char *disk_from = disks_source(alone, placing->group, placing->previous);
    struct alloc_spec *spec;
    char key[JOURNAL_KEY_SIZE], *text;
    size_t length;

    int code = jobspec_make_alloc(job->json, placement, &text, &length, &spec, err);
    if (code < 0)
        return code;
    claims_awaited(alone, job->namespace, placing->group, placing->index, holder);
    const char *before = awaited[0] != '\0' ? awaited : holder;
    code = alone_take_spec(alone, length, err);
    if (code == 0) {
        (void)text_format(key, sizeof(key), "alloc/%s", placement->alloc_id); /* fits */
        core_spec(core, key, text, length);
        assign_alloc(core, &alone->config.plans, spec, before, disk_from);
        struct machine_id id = machine_id_make(MACHINE_ALLOC, placement->alloc_id);
        posted_place(job, &id, placement->group, placement->index);
        alone_hold(alone, placement->alloc_id, &ask, &placement->cores);
        ports_keep(alone, placement, awaited, placing->ports);
        users_keep(alone, spec);
        grants_keep(alone, spec);
        if (disk_from[0] != '\0')
            disks_keep(alone, placement->alloc_id, disk_from);
    }
    free(text);
    if (code == 0 && alone->config.placed != NULL)
        alone->config.placed(alone->config.ctx, spec);
    else
        alloc_spec_free(spec);
    return code;
}

static int place(struct alone *alone, struct job *job, const struct placing *placing,
                 const char *eval_id, struct err *err)
{
    char alloc_id[UUID_TEXT_SIZE];
    int64_t now_unix_ns = life_unix_ns(alone->config.life);
    int64_t began_unix_ns = rollout_began_unix_ns(job);
    struct rescheduled rescheduled = {0};
    struct spec_core cores[NODE_CORES_MAX];
    char lack[DEVICES_WHY_SIZE];
    json_t *held = grants_held(alone);
    struct claims claims;
    struct jobspec_placement placement = {
        .group = json_string_value(json_object_get(placing->group, "Name")),
        .index = placing->index,
        .alloc_id = alloc_id,
        .eval_id = eval_id,
        .datacenter = alone->config.node.known.datacenter,
        .create_index = life_next_index(alone->config.life),
        /* Later than the one before, whatever the clock says: that is what tells the last one. */
        .create_time_unix_ns = now_unix_ns > placing->previous_unix_ns
                                   ? now_unix_ns
                                   : wall_add(placing->previous_unix_ns, 1),
        .previous_id = placing->previous,
        .deployment_id = rollout_id(job, placing->group),
        .ports = *placing->ports,
        .cores = alone_pick_cores(alone, placing->group, cores),
    };

    claims_find(alone, job->namespace, placing->group, placing->index, &claims);
    placement.plugins = (struct spec_pairs){claims.plugins, claims.count};
    if (placement.create_time_unix_ns < began_unix_ns)
        placement.create_time_unix_ns = began_unix_ns;
    if (placing->rescheduled)
        alone_history(alone, placing->group, placing->previous, &rescheduled);
    placement.rescheduled = rescheduled.items;
    placement.rescheduled_count = rescheduled.count;
    alone->config.new_id(alone->config.ctx, alloc_id);
    json_t *devices = grants_pick(alone, placing->group, alloc_id, held, lack);
    json_decref(held);
    placement.devices = devices; /* NULL: they were there when it was chosen */
    int code = devices == NULL ? err_set(err, ERR_AGAIN, "devices: %s", lack)
                               : make(alone, job, placing, &placement, err);
    json_decref(devices);
    rescheduled_free(&rescheduled);
    return code;
}

/* --- reconciling --- */

static void grow(struct gathering *gathering)
{
    size_t size = gathering->size == 0 ? 16 : 2 * gathering->size;

    gathering->allocs = realloc(gathering->allocs, size * sizeof(*gathering->allocs));
    gathering->ids = realloc(gathering->ids, size * sizeof(*gathering->ids));
    gathering->created_unix_ns =
        realloc(gathering->created_unix_ns, size * sizeof(*gathering->created_unix_ns));
    check(gathering->allocs != NULL);
    check(gathering->ids != NULL);
    check(gathering->created_unix_ns != NULL);
    gathering->size = size;
}

static void add_gathered(struct gathering *gathering, const struct machine_id *id,
                         const struct reconcile_alloc *alloc, int64_t created_unix_ns)
{
    if (gathering->count == gathering->size)
        grow(gathering);
    gathering->created_unix_ns[gathering->count] = created_unix_ns;
    gathering->ids[gathering->count] = *id;
    gathering->allocs[gathering->count++] = *alloc;
}

static bool is_canary(const struct gathering *gathering, const char *alloc, const char *group)
{
    return deployment_tries(gathering->job->public.job, group, alloc);
}

static bool gather(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct gathering *gathering = ctx;
    const struct alloc *alloc = alloc_of(record);

    bool stopped = alloc->stop_wanted || posted_to_end(gathering->alone, id->text);
    add_gathered(gathering, id,
                 &(struct reconcile_alloc){
                     .group = alloc->assign.group,
                     .index = alloc->assign.index,
                     .live = alloc->ended_unix_ns == 0 && !stopped,
                     .ended = alloc->ended_unix_ns != 0 && !stopped,
                     .succeeded = alloc->client_status == CLIENT_COMPLETE && !stopped,
                     .awaited = !stopped && alone_awaits_next(gathering, alloc),
                     .current = classify_goes_on(gathering, id->text, alloc->assign.group),
                     .canary = is_canary(gathering, id->text, alloc->assign.group),
                 },
                 alloc->assign.create_unix_ns);
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
                         .live = !posted_to_end(gathering->alone, placed->id.text),
                         .current = classify_goes_on_posted(gathering, placed->group),
                         .canary = is_canary(gathering, placed->id.text, placed->group),
                     },
                     life_unix_ns(gathering->alone->config.life));
    }
}

void gathering_fill(struct gathering *gathering)
{
    classify_begin(gathering);
    core_each_of_job(life_core(gathering->alone->config.life), gathering->job->namespace,
                     gathering->job->id, gather, gathering);
    gathering->stored_count = gathering->count;
    gather_posted(gathering);
}

void gathering_free(struct gathering *gathering)
{
    classify_end(gathering);
    free(gathering->allocs);
    free(gathering->ids);
    free(gathering->created_unix_ns);
}

void alone_order_stop(struct alone *alone, struct job *job, const struct machine_id *id,
                      const char *why, unsigned how)
{
    struct request request = {.at_once = (how & ALONE_AT_ONCE) != 0};

    (void)text_copy(request.text, sizeof(request.text), why); /* fits */
    core_tell(life_core(alone->config.life), id, AE_STOP, &request);
    if ((how & ALONE_PURGE) != 0)
        core_tell(life_core(alone->config.life), id, AE_DESTROY, NULL);
    posted_stop(alone, job, id);
    alone_release(alone, id->text);
}

/* --- places --- */

/* The alloc that is number A came to its place after B; who lives is there, whoever was tried
 * beside him later and has ended. */
static bool is_later(const struct gathering *gathering, size_t a, size_t b)
{
    bool lives = gathering->allocs[a].live;

    return lives != gathering->allocs[b].live
               ? lives
               : gathering->created_unix_ns[a] > gathering->created_unix_ns[b];
}

void places_begin(struct places *places, const struct gathering *gathering)
{
    const json_t *list = json_object_get(gathering->job->json, "TaskGroups");
    size_t count = json_array_size(list);

    *places = (struct places){.groups = calloc(count + 1, sizeof(*places->groups)),
                              .last = calloc(count + 1, sizeof(*places->last)),
                              .tries = calloc(count + 1, sizeof(*places->tries)),
                              .ports = calloc(count + 1, sizeof(*places->ports)),
                              .count = count};
    check(places->groups != NULL);
    check(places->last != NULL);
    check(places->tries != NULL);
    check(places->ports != NULL);
    for (size_t g = 0; g < count; g++) {
        struct reconcile_group *group = &places->groups[g];
        group->name = json_string_value(json_object_get(json_array_get(list, g), "Name"));
        group->count = (uint32_t)job_number(json_array_get(list, g), "Count");
        group->place = calloc(group->count + 1, sizeof(*group->place));
        places->last[g] = malloc((group->count + 1) * sizeof(**places->last));
        places->tries[g] = calloc(group->count + 1, sizeof(**places->tries));
        places->ports[g] = calloc(group->count + 1, sizeof(**places->ports));
        check(group->place != NULL);
        check(places->last[g] != NULL);
        check(places->tries[g] != NULL);
        check(places->ports[g] != NULL);
        for (uint32_t i = 0; i < group->count; i++)
            places->last[g][i] = -1;
    }
    for (size_t a = 0; a < gathering->count; a++) {
        const struct reconcile_alloc *alloc = &gathering->allocs[a];
        size_t g = 0;

        while (g < count && !text_equal(places->groups[g].name, alloc->group))
            g++;
        if (g == count || alloc->index >= places->groups[g].count || alloc->canary)
            continue;
        int *last = &places->last[g][alloc->index];
        if (*last < 0 || is_later(gathering, a, (size_t)*last))
            *last = (int)a;
    }
}

void places_end(struct alone *alone, struct places *places)
{
    for (size_t g = 0; g < places->count; g++) {
        for (uint32_t i = 0; i < places->groups[g].count; i++)
            ports_return(alone, &places->ports[g][i]);
        free(places->ports[g]);
        free(places->groups[g].place);
        free(places->last[g]);
        free(places->tries[g]);
    }
    free(places->groups);
    free(places->last);
    free(places->tries);
    free(places->ports);
}

/* --- bringing them there --- */

/* The one that is number LAST of GATHERING, below 0: none, is told that another takes its place. */
static bool is_relieved(const struct gathering *gathering, int last)
{
    const struct core *core = life_core(gathering->alone->config.life);
    const struct alloc *alloc = last < 0 ? NULL : core_alloc(core, gathering->ids[last].text);

    return alloc != NULL && policy_is_relieved(job_type(gathering->job->json), alloc) &&
           !posted_to_end(gathering->alone, gathering->ids[last].text);
}

/* In the place INDEX of the group that is number G; below 0: nobody was, or is to be left. */
static int last_of(const struct places *places, size_t g, uint32_t index)
{
    return places->tries[g][index] ? -1 : places->last[g][index];
}

/* What bringing them to PLACES makes. */
static struct demand demand_of(const struct gathering *gathering, const struct places *places)
{
    const json_t *list = json_object_get(gathering->job->json, "TaskGroups");
    struct demand demand = {0}; /* tasks: and claims */

    for (size_t a = 0; a < gathering->count; a++)
        demand.stops += gathering->allocs[a].stop;
    for (size_t g = 0; g < places->count; g++) {
        size_t tasks = json_array_size(json_object_get(json_array_get(list, g), "Tasks")) +
                       claims_count(json_array_get(list, g));
        for (uint32_t i = 0; i < places->groups[g].count; i++) {
            demand.allocs += places->groups[g].place[i];
            demand.tasks += places->groups[g].place[i] ? tasks : 0;
            demand.stops +=
                places->groups[g].place[i] && is_relieved(gathering, last_of(places, g, i));
        }
    }
    return demand;
}

/* Number A is the one in a place that there is, so that another one takes it. */
static bool has_place(const struct gathering *gathering, const struct places *places, size_t a)
{
    const struct reconcile_alloc *alloc = &gathering->allocs[a];

    for (size_t g = 0; g < places->count; g++) {
        const struct reconcile_group *group = &places->groups[g];

        if (text_equal(group->name, alloc->group) && alloc->index < group->count)
            return places->last[g][alloc->index] == (int)a;
    }
    return false;
}

static void stop_unwanted(struct alone *alone, struct job *job, const struct gathering *gathering,
                          const struct places *places, struct alone_evaluation *evaluation)
{
    for (size_t a = 0; a < gathering->count; a++) {
        if (!gathering->allocs[a].stop)
            continue;
        alone_order_stop(alone, job, &gathering->ids[a],
                         has_place(gathering, places, a)
                             ? "alloc is being updated due to job update"
                             : "alloc not needed due to job update",
                         0);
        evaluation->stopped++;
    }
}

/* In the place INDEX of the group that is number G, or beside who is there. */
static int place_one(struct alone *alone, const struct gathering *gathering,
                     const struct places *places, size_t g, uint32_t index, const char *eval_id,
                     struct err *err)
{
    const json_t *list = json_object_get(gathering->job->json, "TaskGroups");
    int last = last_of(places, g, index);
    struct placing placing = {
        .group = json_array_get(list, g), .index = index, .ports = &places->ports[g][index]};

    if (last >= 0) {
        const struct kept *kept = kept_find(alone, gathering->ids[last].text);
        placing.previous = gathering->ids[last].text;
        placing.previous_unix_ns = gathering->created_unix_ns[last];
        placing.rescheduled =
            kept != NULL && (gathering->wanted == NULL ? kept->again
                                                       : gathering->evaluates == EVALUATE_FORCED &&
                                                             is_relieved(gathering, last));
    }
    int code = place(alone, gathering->job, &placing, eval_id, err);
    if (code == 0 && is_relieved(gathering, last))
        alone_order_stop(alone, gathering->job, &gathering->ids[last],
                         gathering->changed ? "alloc is being updated due to job update"
                                            : "alloc was rescheduled because it failed",
                         0);
    return code;
}

/* The alloc that JOB has posted last is a canary of GROUP. */
static void note_canary(json_t *canaries, const char *group, const struct job *job)
{
    const struct posted *posted = &job->posted.items[job->posted.count - 1];

    check(!posted->stops); /* it takes nobody's place */
    if (json_object_get(canaries, group) == NULL)
        check(json_object_set_new(canaries, group, json_array()) == 0);
    check(json_array_append_new(json_object_get(canaries, group), json_string(posted->id.text)) ==
          0);
}

static int place_missing(struct alone *alone, const struct gathering *gathering,
                         const struct places *places, struct alone_evaluation *evaluation,
                         json_t *canaries, struct err *err)
{
    for (size_t g = 0; g < places->count; g++) {
        for (uint32_t i = 0; i < places->groups[g].count; i++) {
            if (!places->groups[g].place[i])
                continue;
            int code = place_one(alone, gathering, places, g, i, evaluation->id, err);
            if (code < 0)
                return code;
            if (places->tries[g][i])
                note_canary(canaries, places->groups[g].name, gathering->job);
            places->groups[g].place[i] = false;
            evaluation->placed++;
        }
    }
    return 0;
}

int alone_place(struct alone *alone, struct change *change, const struct gathering *gathering,
                struct places *places, struct alone_evaluation *evaluation, bool *partly,
                struct err *err)
{
    json_t *canaries = json_object();
    struct refusal refusal;

    alone_choose(alone, gathering, places, &refusal);
    struct demand demand = demand_of(gathering, places);
    int code = alone_take(alone, &demand, err);
    if (code == 0) {
        stop_unwanted(alone, change->job, gathering, places, evaluation);
        code = place_missing(alone, gathering, places, evaluation, canaries, err);
    }
    if (code == ERR_LIMIT && partly != NULL && evaluation->placed > 0) {
        *partly = true;
        code = 0;
    }
    if (code == 0)
        deployment_note_canaries(alone, change, canaries);
    json_decref(canaries);
    if (code < 0) {
        json_decref(refusal.queue);
        json_decref(refusal.failed);
        return code;
    }
    for (size_t g = 0; partly != NULL && *partly && g < places->count; g++) {
        for (uint32_t i = 0; i < places->groups[g].count; i++) {
            if (places->groups[g].place[i])
                check(json_array_append_new(
                          refusal.queue, json_integer((json_int_t)(g * JOB_COUNT_MAX + i))) == 0);
        }
    }
    alone_want_disk(alone, refusal.disk_mb);
    change_queue(alone, change, refusal.queue, refusal.failed, evaluation);
    return 0;
}

/* Where a job is changed, its allocs are looked at anew: what may not be here any more is replaced,
 * and waits if there is nowhere else.  A daemon that has just begun does not know yet what there
 * is.
 */
static void displace(const struct alone *alone, struct gathering *gathering,
                     const struct places *places)
{
    const struct alone_config *config = &alone->config;
    bool here = alone_in_datacenter(alone, gathering->job->json);
    bool known = config->is_known == NULL || config->is_known(config->ctx);

    for (size_t a = 0; gathering->changed && a < gathering->count; a++) {
        for (size_t g = 0; g < places->count; g++) {
            if (text_equal(places->groups[g].name, gathering->allocs[a].group) &&
                (!here || (known && alone_unmet(alone, gathering->job, g) != NULL)))
                gathering->allocs[a].current = false;
        }
    }
}

/* Where the job is changed the deployment that tries them is over. */
static void end_canaries(struct gathering *gathering)
{
    for (size_t a = 0; gathering->changed && a < gathering->count; a++)
        gathering->allocs[a].stop |= gathering->allocs[a].canary && gathering->allocs[a].live;
}

void places_want(const struct alone *alone, struct gathering *gathering, struct places *places)
{
    places_begin(places, gathering);
    displace(alone, gathering, places);
    policy_reconcile(job_type(gathering->job->json), gathering->allocs, gathering->count,
                     places->groups, places->count);
    end_canaries(gathering);
    rollout_hold(gathering, places);
}

/* What runs would be stopped, and nothing could be placed for it. */
static int check_replaced(const struct alone *alone, const struct gathering *gathering,
                          const struct places *places, struct err *err)
{
    if (!gathering->changed || alone_is_eligible(alone))
        return 0;
    for (size_t a = 0; a < gathering->count; a++) {
        const struct reconcile_alloc *alloc = &gathering->allocs[a];

        for (size_t g = 0; alloc->stop && g < places->count; g++) {
            const struct reconcile_group *group = &places->groups[g];
            if (text_equal(group->name, alloc->group) && alloc->index < group->count &&
                group->place[alloc->index])
                return err_set(err, ERR_AGAIN,
                               "the node is not eligible for scheduling: allocs of group \"%s\" "
                               "would be stopped, and none placed; see: cairn node eligibility",
                               group->name);
        }
    }
    return 0;
}

int alone_reconcile(struct alone *alone, struct change *change, struct gathering *gathering,
                    struct alone_evaluation *evaluation, struct err *err)
{
    struct places places;

    places_want(alone, gathering, &places);
    int code = check_replaced(alone, gathering, &places, err);
    if (code == 0 && gathering->begins)
        rollout_begin(alone, change, gathering, &places, evaluation);
    if (code == 0)
        code = alone_update(alone, gathering, evaluation, err);
    if (code == 0)
        code = alone_place(alone, change, gathering, &places, evaluation, NULL, err);
    places_end(alone, &places);
    return code;
}
