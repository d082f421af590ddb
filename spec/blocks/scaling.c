/*
 * The scaling blocks of groups: between which counts whoever scales a group may choose.
 *
 * The policy in it is kept as it is said, for that scaler; nobody acts on it here.  Follows nomad
 * v2.0.5 api/tasks.go TaskGroup.Canonicalize and nomad/structs ScalingPolicy.Validate.
 */
#include "spec/blocks/blocks.h"

void jobspec_default_scaling(json_t *group)
{
    json_t *scaling = json_object_get(group, "Scaling"), *min = json_object_get(scaling, "Min");

    if (json_object_get(group, "Count") == NULL)
        check(json_object_set_new(group, "Count",
                                  min != NULL ? json_incref(min) : json_integer(1)) == 0);
    if (scaling == NULL)
        return;
    if (min == NULL)
        check(json_object_set(scaling, "Min", json_object_get(group, "Count")) == 0);
    if (json_object_get(scaling, "Enabled") == NULL)
        check(json_object_set_new(scaling, "Enabled", json_true()) == 0);
    if (jobspec_is_empty(json_object_get(scaling, "Type")))
        check(json_object_set_new(scaling, "Type", json_string("horizontal")) == 0);
}

void jobspec_check_scaling(struct jobspec_work *work, const json_t *group)
{
    const json_t *scaling = json_object_get(group, "Scaling");
    const char *type = json_string_value(json_object_get(scaling, "Type"));
    const json_t *max = json_object_get(scaling, "Max");
    json_int_t most = json_integer_value(max);
    json_int_t count = json_integer_value(json_object_get(group, "Count"));
    json_int_t least = json_integer_value(json_object_get(scaling, "Min"));

    if (scaling == NULL)
        return;
    if (type != NULL && !text_equal(type, "horizontal"))
        jobspec_complain(work, scaling, "Type", NULL,
                         "the type of a scaling policy is \"horizontal\", not \"%.40s\"", type);
    if (max == NULL) {
        if (!jobspec_was_given(work, scaling, "Max"))
            jobspec_complain(work, scaling, "", "write max = N", "a scaling policy needs a max");
        return;
    }
    if (most < least)
        jobspec_complain(work, scaling, "Max", NULL,
                         "max %lld of the scaling policy is less than its min %lld",
                         (long long)most, (long long)least);
    else if (most < count)
        jobspec_complain(work, scaling, "Max", NULL,
                         "count %lld is greater than max %lld of the scaling policy",
                         (long long)count, (long long)most);
    else if (count < least)
        jobspec_complain(work, scaling, "Min", NULL,
                         "count %lld is less than min %lld of the scaling policy", (long long)count,
                         (long long)least);
}
