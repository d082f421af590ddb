/*
 * Periodic jobs: what they say, when they are launched, and the jobs that are launched of them.
 *
 * A periodic job is never run itself.  At each of its times a job of its own is made of it, which
 * is the same but for its name.  Follows nomad v2.0.5 nomad/periodic.go deriveJob and
 * nomad/structs/structs.go PeriodicConfig.
 */
#include "spec/blocks/blocks.h"
#include "spec/cron.h"
#include "spec/json.h"
#include "spec/names.h"

#include <string.h>

/* What is behind the id of a periodic job in those of its children. */
#define LAUNCH_SUFFIX "/periodic-"
enum {
    LAUNCH_ID_BYTES = sizeof(LAUNCH_SUFFIX "1700000000") - 1,
    LINES_MAX = 32, /* each is asked for the next time */
};

static const json_t *block_of(const json_t *job)
{
    return json_object_get(job, "Periodic");
}

bool jobspec_is_periodic(const json_t *job)
{
    return json_is_object(block_of(job));
}

bool jobspec_is_launched_by_time(const json_t *job)
{
    return jobspec_is_periodic(job) && json_is_true(json_object_get(block_of(job), "Enabled"));
}

bool jobspec_makes_jobs(const json_t *job)
{
    return jobspec_is_parameterized(job) || jobspec_is_periodic(job);
}

bool jobspec_is_child(const json_t *job)
{
    const char *parent = text_of(job, "ParentID");
    size_t length = strlen(parent);

    return jobspec_is_dispatched(job) ||
           (length > 0 && strncmp(text_of(job, "ID"), parent, length) == 0 &&
            text_starts_with(text_of(job, "ID") + length, LAUNCH_SUFFIX));
}

const char *jobspec_time_zone(const json_t *job)
{
    return text_of(block_of(job), "TimeZone");
}

bool jobspec_prohibits_overlap(const json_t *job)
{
    return json_is_true(json_object_get(block_of(job), "ProhibitOverlap"));
}

/* --- what a job says --- */

void jobspec_default_periodic(json_t *job)
{
    json_t *block = json_object_get(job, "Periodic");

    if (!json_is_object(block))
        return;
    if (json_object_get(block, "Enabled") == NULL)
        check(json_object_set_new(block, "Enabled", json_true()) == 0);
    if (json_object_get(block, "ProhibitOverlap") == NULL)
        check(json_object_set_new(block, "ProhibitOverlap", json_false()) == 0);
    if (*text_of(block, "SpecType") == '\0')
        check(json_object_set_new(block, "SpecType", json_string("cron")) == 0);
    if (*text_of(block, "TimeZone") == '\0')
        check(json_object_set_new(block, "TimeZone", json_string("UTC")) == 0);
}

static void check_line(struct jobspec_work *work, const json_t *block, const char *field,
                       const char *text)
{
    struct cron cron;
    struct err err = {0};

    if (cron_parse(text, &cron, &err) < 0)
        jobspec_complain(work, block, field,
                         "write minute, hour, day of month, month and day of week: \"15 3 * * *\"",
                         "invalid cron spec \"%.60s\": %s", text, err.text);
}

static void check_lines(struct jobspec_work *work, const json_t *block)
{
    const json_t *list = json_object_get(block, "Specs"), *line;
    bool one = *text_of(block, "Spec") != '\0', many = json_array_size(list) > 0;
    size_t i;

    if (one && many)
        jobspec_complain(work, block, "Specs", NULL, "only cron or crons may be used");
    if (!one && !many)
        jobspec_complain(work, block, "", "write cron = \"@hourly\"",
                         "a periodic job needs a cron line");
    if (json_array_size(list) > LINES_MAX)
        jobspec_complain(work, block, "Specs", NULL, "%zu cron lines, there may be %d",
                         json_array_size(list), LINES_MAX);
    if (one)
        check_line(work, block, "Spec", text_of(block, "Spec"));
    json_array_foreach(list, i, line)
    {
        if (i < LINES_MAX)
            check_line(work, block, "Specs", json_string_value(line));
    }
}

void jobspec_check_periodic(struct jobspec_work *work, const json_t *job)
{
    const json_t *block = block_of(job);
    const char *type = text_of(job, "Type"), *fault;

    if (!json_is_object(block))
        return;
    if (!text_equal(type, "batch") && !text_equal(type, "sysbatch"))
        jobspec_complain(work, block, "", "write type = \"batch\"",
                         "a periodic job has type \"batch\" or \"sysbatch\", not \"%.40s\"", type);
    if (json_is_object(json_object_get(job, "ParameterizedJob")))
        jobspec_complain(work, block, "", NULL,
                         "a job is either launched at times or dispatched: it has both a periodic "
                         "and a parameterized block");
    if (strlen(text_of(job, "ID")) + LAUNCH_ID_BYTES > SPEC_NAME_MAX)
        jobspec_complain(work, job, "ID", NULL,
                         "the id of a periodic job has at most %d bytes, as those of what is "
                         "launched are longer",
                         SPEC_NAME_MAX - LAUNCH_ID_BYTES);
    if (!text_equal(text_of(block, "SpecType"), "cron"))
        jobspec_complain(work, block, "SpecType", NULL,
                         "unknown periodic specification type \"%.40s\"",
                         text_of(block, "SpecType"));
    if (!json_is_true(json_object_get(block, "Enabled")))
        return; /* as there: nobody asks it for a time */
    fault = zone_name_fault(text_of(block, "TimeZone"));
    if (fault != NULL)
        jobspec_complain(work, block, "TimeZone", "write time_zone = \"Europe/Berlin\"",
                         "the time zone \"%.60s\" %s", text_of(block, "TimeZone"), fault);
    check_lines(work, block);
}

/* --- launching --- */

static int64_t next_of(const char *text, const struct zone *zone, int64_t after_unix_s)
{
    struct cron cron;

    return cron_parse(text, &cron, NULL) < 0 ? CRON_NEVER : cron_next(&cron, zone, after_unix_s);
}

int64_t jobspec_next_launch(const json_t *job, const struct zone *zone, int64_t after_unix_s)
{
    const json_t *block = block_of(job), *line;
    const char *one = text_of(block, "Spec");
    int64_t first = *one == '\0' ? CRON_NEVER : next_of(one, zone, after_unix_s);
    size_t i;

    json_array_foreach(json_object_get(block, "Specs"), i, line)
    {
        const char *text = json_string_value(line);
        int64_t next =
            text == NULL || i >= LINES_MAX ? CRON_NEVER : next_of(text, zone, after_unix_s);
        first = next < first ? next : first;
    }
    return first;
}

json_t *jobspec_launch(const json_t *job, int64_t unix_s)
{
    json_t *made = json_copy((json_t *)(uintptr_t)job);
    char id[SPEC_NAME_SIZE];

    check(made != NULL);
    if (!text_format(id, sizeof(id), "%s" LAUNCH_SUFFIX "%lld", text_of(job, "ID"),
                     (long long)unix_s)) {
        json_decref(made);
        return NULL;
    }
    check(json_object_set_new(made, "ParentID", json_string(text_of(job, "ID"))) == 0);
    check(json_object_set_new(made, "ID", json_string(id)) == 0);
    check(json_object_set_new(made, "Name", json_string(id)) == 0);
    (void)json_object_del(made, "Periodic"); /* it was there */
    return made;
}
