/*
 * Versions of a job before the newest one, and the way back to them.
 *
 * They are kept with the job, in the commit that stores the next one, so many and so large as one
 * value of the journal has room for; the newest of those whose deployment succeeded is never the
 * one that is left out, as it is what a deployment that fails may go back to.
 */
#include "server/alone/part.h"

#include <stdlib.h>
#include <string.h>

enum { VERSIONS_KEPT = 5 }; /* before the newest one; Nomad's 6 count that, too */

void version_strip(json_t *json)
{
    static const char *const own[] = {"cairnQueued",      "cairnPurge",    "cairnDeployment",
                                      "cairnDeployments", "cairnVersions", "cairnScaling",
                                      "cairnLaunched"};

    for (size_t i = 0; i < COUNT_OF(own); i++)
        (void)json_object_del(json, own[i]); /* mostly missing */
}

static bool is_stable(const json_t *version)
{
    return json_is_true(json_object_get(version, "Stable"));
}

static size_t bytes_of(const json_t *version)
{
    return json_dumpb(version, NULL, 0, JSON_COMPACT);
}

/* JOB, as JSON, and all before it, the newest first: a new reference. */
static json_t *all_of(const json_t *job)
{
    json_t *newest = json_copy((json_t *)(uintptr_t)job), *list;
    const json_t *before = json_object_get(job, "cairnVersions");

    check(newest != NULL);
    version_strip(newest);
    list = json_pack("[o]", newest);
    check(list != NULL);
    if (before != NULL)
        check(json_array_extend(list, (json_t *)(uintptr_t)before) == 0);
    return list;
}

static const json_t *newest_stable(const json_t *list)
{
    const json_t *version;
    size_t i;

    json_array_foreach(list, i, version)
    {
        if (is_stable(version))
            return version;
    }
    return NULL;
}

json_t *versions_before_next(const json_t *job, size_t room)
{
    json_t *all = all_of(job), *kept = json_array(), *version;
    const json_t *stable = newest_stable(all);
    size_t used = stable == NULL ? 0 : bytes_of(stable), others = VERSIONS_KEPT, i;

    room = room < JOB_VERSIONS_BYTES_MAX ? room : JOB_VERSIONS_BYTES_MAX;
    if (used > room) {
        stable = NULL;
        used = 0;
    }
    others -= stable != NULL;
    json_array_foreach(all, i, version)
    {
        size_t bytes = version == stable ? 0 : bytes_of(version);

        if (version != stable && (others == 0 || used + bytes > room))
            continue;
        used += bytes;
        others -= version != stable;
        check(json_array_append(kept, version) == 0);
    }
    json_decref(all);
    return kept;
}

const json_t *versions_find(const struct alone_job *job, uint64_t version)
{
    const json_t *one;
    size_t i;

    json_array_foreach(json_object_get(job->job, "cairnVersions"), i, one)
    {
        if (job_number(one, "Version") == version)
            return one;
    }
    return NULL;
}

const json_t *versions_stable(const struct alone_job *job)
{
    return is_stable(job->job) ? job->job
                               : newest_stable(json_object_get(job->job, "cairnVersions"));
}

bool alone_version(const struct alone_job *job, size_t nth, struct alone_job *ret_version)
{
    const json_t *json =
        nth == 0 ? job->job : json_array_get(json_object_get(job->job, "cairnVersions"), nth - 1);

    if (json == NULL)
        return false;
    *ret_version = *job;
    ret_version->job = json;
    ret_version->version = job_number(json, "Version");
    ret_version->modify_index = job_number(json, "ModifyIndex");
    ret_version->job_modify_index = job_number(json, "JobModifyIndex");
    ret_version->submit_unix_ns = (int64_t)job_number(json, "SubmitTime");
    ret_version->stop = json_is_true(json_object_get(json, "Stop"));
    return true;
}
