/*
 * What update blocks may say.  Follows nomad v2.0.5 nomad/structs UpdateStrategy.Validate and
 * Task.Validate; numbers below zero are refused by the schema.
 */
#include "spec/blocks/blocks.h"

static json_int_t number(const json_t *object, const char *field)
{
    return json_integer_value(json_object_get(object, field));
}

static void check_times(struct jobspec_work *work, const json_t *update)
{
    json_int_t healthy = number(update, "HealthyDeadline");
    json_int_t progress = number(update, "ProgressDeadline");

    if (number(update, "Stagger") <= 0)
        jobspec_complain(work, update, "Stagger", NULL, "stagger must be greater than zero");
    if (healthy <= 0)
        jobspec_complain(work, update, "HealthyDeadline", NULL,
                         "healthy_deadline must be greater than zero");
    else if (number(update, "MinHealthyTime") >= healthy)
        jobspec_complain(work, update, "MinHealthyTime", NULL,
                         "min_healthy_time must be less than healthy_deadline, or no alloc can be "
                         "healthy in time");
    if (progress != 0 && healthy >= progress)
        jobspec_complain(work, update, "HealthyDeadline",
                         "write progress_deadline = \"0\" for none",
                         "healthy_deadline must be less than progress_deadline");
}

void jobspec_check_kill_timeouts(struct jobspec_work *work, const json_t *group)
{
    json_int_t progress = number(json_object_get(group, "Update"), "ProgressDeadline");
    const json_t *task;
    size_t i;

    json_array_foreach(jobspec_list(group, "Tasks"), i, task)
    {
        if (progress > 0 && number(task, "KillTimeout") > progress)
            jobspec_complain(work, task, "KillTimeout",
                             "a rollout would be late before the old task has ended",
                             "kill_timeout must not be longer than progress_deadline of the group");
    }
}

void jobspec_check_update(struct jobspec_work *work, const json_t *update)
{
    const char *health = json_string_value(json_object_get(update, "HealthCheck"));
    bool promotes = json_is_true(json_object_get(update, "AutoPromote"));

    if (health == NULL || (!text_equal(health, "checks") && !text_equal(health, "task_states") &&
                           !text_equal(health, "manual")))
        jobspec_complain(work, update, "HealthCheck", NULL,
                         "health_check must be \"checks\", \"task_states\" or \"manual\", but is "
                         "\"%.40s\"",
                         health == NULL ? "" : health);
    if (promotes && number(update, "Canary") == 0)
        jobspec_complain(work, update, "AutoPromote", "write canary = 1, or remove auto_promote",
                         "auto_promote requires a canary count greater than zero");
    check_times(work, update);
}
