/*
 * What is kept of scaling with a job: the policies of its groups, which have ids that stay theirs
 * while the group has one, and what was said of counts (scaling.c).
 *
 * Follows nomad v2.0.5 nomad/state UpsertScalingPoliciesTxn.
 */
#include "server/alone/part.h"

#include "spec/job.h"

static const char kept[] = "cairnScaling";

static const json_t *policies_of(const json_t *job)
{
    return json_object_get(json_object_get(job, kept), "Policies");
}

/* What is kept of the policy of GROUP: what was, or a policy of its own. */
static json_t *policy_of(struct alone *alone, const json_t *before, const json_t *group)
{
    const char *name = json_string_value(json_object_get(group, "Name"));
    json_int_t index = (json_int_t)life_next_index(alone->config.life);
    const json_t *old = json_object_get(policies_of(before), name);
    const json_t *was = json_object_get(jobspec_group(before, name), "Scaling");
    char id[UUID_TEXT_SIZE];
    json_t *policy;

    if (old == NULL) {
        alone->config.new_id(alone->config.ctx, id);
        policy = json_pack("{s:s, s:I, s:I}", "ID", id, "CreateIndex", index, "ModifyIndex", index);
    } else {
        policy = json_copy((json_t *)(uintptr_t)old);
        if (!json_equal(was, json_object_get(group, "Scaling")))
            check(json_object_set_new(policy, "ModifyIndex", json_integer(index)) == 0);
    }
    check(policy != NULL);
    return policy;
}

void scaling_put(json_t *json, json_t *all)
{
    check(all != NULL);
    if (json_object_size(all) == 0)
        (void)json_object_del(json, kept); /* mostly missing */
    else
        check(json_object_set(json, kept, all) == 0);
    json_decref(all);
}

void scaling_carry(struct alone *alone, const json_t *before, json_t *json)
{
    json_t *policies = json_object(), *all = json_object(), *group;
    json_t *events = json_object_get(json_object_get(before, kept), "Events");
    size_t g;

    json_array_foreach(json_object_get(json, "TaskGroups"), g, group)
    {
        const char *name = json_string_value(json_object_get(group, "Name"));

        if (json_object_get(group, "Scaling") != NULL)
            check(json_object_set_new(policies, name, policy_of(alone, before, group)) == 0);
    }
    if (json_object_size(policies) > 0)
        check(json_object_set(all, "Policies", policies) == 0);
    if (events != NULL)
        check(json_object_set(all, "Events", events) == 0);
    json_decref(policies);
    scaling_put(json, all);
}

const json_t *alone_scaling_policy(const struct alone_job *job, const char *group)
{
    return json_object_get(policies_of(job->job), group);
}

const json_t *alone_scaling_events(const struct alone_job *job, const char *group)
{
    return json_object_get(json_object_get(json_object_get(job->job, kept), "Events"), group);
}

json_t *scaling_kept(const json_t *job)
{
    json_t *all = json_deep_copy(json_object_get(job, kept));

    return all == NULL ? json_object() : all;
}
