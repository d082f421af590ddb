/*
 * Counts of groups that somebody else than the job's author chooses.
 *
 * A scaling is a registration of the same job with another count, and an event beside it, in one
 * commit; a job that is stopped stays so.  Follows nomad v2.0.5 nomad/job_endpoint.go Scale and
 * nomad/state UpsertScalingEvent.
 */
#include "server/alone/part.h"

#include "spec/job.h"

#include <string.h>

enum {
    EVENTS_KEPT = 20,              /* of a group */
    EVENT_BYTES_MAX = 4 << 10,     /* of what is said with one */
    SCALING_BYTES_MAX = 128 << 10, /* of all events of a job: the oldest are forgotten */
};

/* --- events --- */

/* True if the last of LIST is to be forgotten before that of OTHER: it is older, or as old and
 * there are more. */
static bool goes_before(const json_t *list, const json_t *other)
{
    const json_t *last = json_array_get(list, json_array_size(list) - 1);
    const json_t *others = json_array_get(other, json_array_size(other) - 1);
    uint64_t index = job_number(last, "CreateIndex");
    uint64_t others_index = job_number(others, "CreateIndex");

    return index != others_index ? index < others_index
                                 : json_array_size(list) > json_array_size(other);
}

static json_t *oldest_of(json_t *events)
{
    json_t *list, *oldest = NULL;
    const char *name;

    json_object_foreach(events, name, list)
    {
        if (json_array_size(list) > 0 && (oldest == NULL || goes_before(list, oldest)))
            oldest = list;
    }
    return oldest;
}

static void forget_oldest(json_t *events)
{
    size_t bytes = json_dumpb(events, NULL, 0, JSON_COMPACT);
    json_t *list;

    while (bytes > SCALING_BYTES_MAX && (list = oldest_of(events)) != NULL) {
        size_t last = json_array_size(list) - 1;

        bytes -= json_dumpb(json_array_get(list, last), NULL, 0, JSON_COMPACT);
        check(json_array_remove(list, last) == 0);
    }
}

/* The member NAME of OBJECT, which is OTHERWISE (moved) if there was none; borrowed from it. */
static json_t *member(json_t *object, const char *name, json_t *otherwise)
{
    if (json_object_get(object, name) == NULL)
        check(json_object_set(object, name, otherwise) == 0);
    json_decref(otherwise);
    return json_object_get(object, name);
}

/* EVENT (moved) of GROUP is the newest one. */
static void add_event(struct alone *alone, struct job *job, const char *group, json_t *event)
{
    struct change change = change_begin(alone, job);
    json_t *json = json_copy(job->json), *all = scaling_kept(job->json);
    json_t *events, *list;

    check(json != NULL);
    events = member(all, "Events", json_object());
    list = member(events, group, json_array());
    check(json_array_insert_new(list, 0, event) == 0);
    while (json_array_size(list) > EVENTS_KEPT)
        check(json_array_remove(list, EVENTS_KEPT) == 0);
    forget_oldest(events);
    scaling_put(json, all);
    change_job(alone, &change, json);
    (void)change_end(alone, &change, 0); /* what 0 stays */
}

static json_t *make_event(const struct alone *alone, const struct alone_scaling *scaling,
                          uint64_t before, const char *eval_id)
{
    json_t *event =
        json_pack("{s:I, s:o, s:I, s:s, s:b, s:o, s:o, s:I}", "Time",
                  (json_int_t)life_unix_ns(alone->config.life), "Count",
                  scaling->count < 0 ? json_null() : json_integer(scaling->count), "PreviousCount",
                  (json_int_t)before, "Message", scaling->message, "Error", scaling->error, "Meta",
                  scaling->meta == NULL ? json_null() : json_deep_copy(scaling->meta), "EvalID",
                  eval_id == NULL ? json_null() : json_string(eval_id), "CreateIndex",
                  (json_int_t)life_next_index(alone->config.life));

    check(event != NULL); /* its texts came as JSON */
    return event;
}

static int check_said(const struct alone_scaling *scaling, struct err *err)
{
    size_t bytes = strlen(scaling->message) +
                   (scaling->meta == NULL ? 0 : json_dumpb(scaling->meta, NULL, 0, JSON_COMPACT));

    return bytes <= EVENT_BYTES_MAX
               ? 0
               : err_set(err, ERR_LIMIT,
                         "Message and Meta of a scaling have %zu bytes: there may be %d", bytes,
                         EVENT_BYTES_MAX);
}

/* --- scaling --- */

/* JOB whose group number G has COUNT: a new reference. */
static json_t *with_count(const json_t *job, size_t g, int64_t count)
{
    json_t *json = json_copy((json_t *)(uintptr_t)job);
    json_t *groups = json_copy(json_object_get(job, "TaskGroups"));
    json_t *group = json_copy(json_array_get(groups, g));

    check(group != NULL);
    check(json_object_set_new(group, "Count", json_integer(count)) == 0);
    check(json_array_set_new(groups, g, group) == 0);
    check(json_object_set_new(json, "TaskGroups", groups) == 0);
    version_strip(json);
    return json;
}

/* May GROUP of JOB have the count of SCALING, in Nomad's words? */
static int check_scaling(const struct job *job, const json_t *group,
                         const struct alone_scaling *scaling, struct err *err)
{
    const json_t *policy = json_object_get(group, "Scaling");
    json_int_t min = json_integer_value(json_object_get(policy, "Min"));
    json_int_t max = json_integer_value(json_object_get(policy, "Max"));
    long long count = (long long)scaling->count;

    if (policy != NULL && count < min)
        return err_set(err, ERR_INVALID,
                       "group count was less than scaling policy minimum: %lld < %lld", count,
                       (long long)min);
    if (policy != NULL && count > max)
        return err_set(err, ERR_INVALID,
                       "group count was greater than scaling policy maximum: %lld > %lld", count,
                       (long long)max);
    if (deployment_is_active(job->json))
        return err_set(err, ERR_INVALID, "job scaling blocked due to active deployment");
    if (scaling->index != 0 && scaling->index != job->public.job_modify_index)
        return err_set(err, ERR_REFUSED,
                       "Enforcing job modify index %llu: job exists with conflicting job modify "
                       "index: %llu",
                       (unsigned long long)scaling->index,
                       (unsigned long long)job->public.job_modify_index);
    return 0;
}

static int change_count(struct alone *alone, struct job *job, size_t g,
                        const struct alone_scaling *scaling, struct alone_evaluation *evaluation,
                        struct err *err)
{
    json_t *json = with_count(job->json, g, scaling->count);
    int code = jobspec_check_count(json, scaling->count, err);

    if (code < 0)
        json_decref(json);
    else
        code = register_json(alone, json, NULL, NULL, "job-scaling", evaluation, err);
    return code;
}

int alone_scale(struct alone *alone, const char *namespace, const char *job_id,
                const struct alone_scaling *scaling, struct alone_evaluation *ret_evaluation,
                struct err *err)
{
    struct job *job = job_find(alone, namespace, job_id);
    bool counts = scaling->count >= 0;
    size_t g;

    if (job == NULL || json_object_get(job->json, "cairnPurge") != NULL)
        return err_set(err, ERR_GONE, "job \"%s\" not found", job_id);
    if (counts && job_type(job->json) == JOB_SYSTEM && scaling->count > 1)
        return err_set(err, ERR_INVALID,
                       "jobs of type \"system\" can only be scaled between 0 and 1");
    const json_t *group = job_group(job, scaling->group, &g);
    if (group == NULL)
        return err_set(err, ERR_INVALID,
                       "task group \"%.90s\" specified for scaling does not exist in job",
                       scaling->group);
    uint64_t before = job_number(group, "Count");
    int code = check_said(scaling, err);
    if (code == 0 && counts)
        code = check_scaling(job, group, scaling, err);
    if (code == 0)
        code = life_check_turn(alone->config.life, 0, err);
    *ret_evaluation = (struct alone_evaluation){0};
    if (code == 0 && counts)
        code = change_count(alone, job, g, scaling, ret_evaluation, err);
    if (code == 0)
        add_event(alone, job, scaling->group,
                  make_event(alone, scaling, before, counts ? ret_evaluation->id : NULL));
    return code;
}
