/*
 * Versions of a job before the newest one, and the way back to them.
 *
 * They are kept with the job, in the commit that stores the next one, so many and so large as one
 * value of the journal has room for; the newest of those whose deployment succeeded is never the
 * one that is left out, as it is what a deployment that fails may go back to.  Nor is one that
 * somebody gave a name to, a tag, until that is taken away: a job whose versions with tags leave no
 * room for another is refused.
 */
#include "server/alone/part.h"

#include <stdlib.h>
#include <string.h>

enum {
    VERSIONS_KEPT = 5, /* before the newest one, without tags; Nomad's 6 count that, too */
    TAGS_MAX = 16,
    DESCRIPTION_BYTES_MAX = 1024,
};

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

static bool is_tagged(const json_t *version)
{
    return json_is_object(json_object_get(version, "VersionTag"));
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

/* Those of LIST that have tags. */
static size_t bytes_of_tagged(const json_t *list)
{
    const json_t *version;
    size_t bytes = 0, i;

    json_array_foreach(list, i, version) bytes += is_tagged(version) ? bytes_of(version) : 0;
    return bytes;
}

int versions_check(const json_t *job, size_t room, struct err *err)
{
    json_t *all = all_of(job);
    size_t bytes = bytes_of_tagged(all);

    json_decref(all);
    return bytes <= room ? 0
                         : err_set(err, ERR_LIMIT,
                                   "the versions of the job that have tags have %zu bytes, and "
                                   "leave no room for another: take a tag away",
                                   bytes);
}

json_t *versions_before_next(const json_t *job, size_t room)
{
    json_t *all = all_of(job), *kept = json_array(), *version;
    const json_t *stable = newest_stable(all);
    size_t tagged = bytes_of_tagged(all), used = 0, others = VERSIONS_KEPT, i;

    room = tagged < room ? room - tagged : 0; /* of those without */
    room = room < JOB_VERSIONS_BYTES_MAX ? room : JOB_VERSIONS_BYTES_MAX;
    if (stable != NULL && (is_tagged(stable) || bytes_of(stable) > room))
        stable = NULL; /* it is kept anyhow, or cannot be */
    if (stable != NULL) {
        used = bytes_of(stable);
        others--;
    }
    json_array_foreach(all, i, version)
    {
        bool is_kept = version == stable || is_tagged(version);
        size_t bytes = is_kept ? 0 : bytes_of(version);

        if (!is_kept && (others == 0 || used + bytes > room))
            continue;
        used += bytes;
        others -= !is_kept;
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

/* --- tags --- */

static const char *tag_of(const json_t *version)
{
    return json_string_value(json_object_get(json_object_get(version, "VersionTag"), "Name"));
}

/* That which is called NAME, NULL: none is; how many have tags. */
static const json_t *find_tag(const json_t *all, const char *name, size_t *ret_count)
{
    const json_t *version, *found = NULL;
    size_t i;

    *ret_count = 0;
    json_array_foreach(all, i, version)
    {
        const char *own = tag_of(version);

        *ret_count += own != NULL;
        if (own != NULL && text_equal(own, name))
            found = version;
    }
    return found;
}

/* JOB as it is, but that its version NUMBER has TAG (moved): a new reference. */
static json_t *with_tag(struct alone *alone, const json_t *job, uint64_t number, json_t *tag)
{
    json_t *json = json_copy((json_t *)(uintptr_t)job), *versions, *version = json;
    size_t i;

    check(json != NULL);
    if (job_number(job, "Version") != number) {
        versions = json_copy(json_object_get(job, "cairnVersions"));
        json_array_foreach(versions, i, version)
        {
            if (job_number(version, "Version") == number)
                break;
        }
        version = json_copy(version);
        check(json_array_set_new(versions, i, version) == 0);
        check(json_object_set_new(json, "cairnVersions", versions) == 0);
    }
    json_t *index = json_integer((json_int_t)life_next_index(alone->config.life));
    check(json_object_set_new(version, "VersionTag", tag) == 0);
    check(json_object_set(version, "ModifyIndex", index) == 0);
    check(json_object_set_new(json, "ModifyIndex", index) == 0);
    return json;
}

static int check_tag(const struct job *job, const struct alone_tag *tag, uint64_t number,
                     struct err *err)
{
    json_t *all = job == NULL ? NULL : all_of(job->json);
    size_t count;
    const json_t *named = find_tag(all, tag->name, &count);
    bool is_other = named != NULL && job_number(named, "Version") != number;
    bool is_there = job != NULL &&
                    (number == job->public.version || versions_find(&job->public, number) != NULL);
    int code = 0;

    if (!is_there)
        code = err_set(err, ERR_GONE, "job \"%s\" version %llu not found", tag->job_id,
                       (unsigned long long)number);
    else if (is_other)
        code = err_set(err, ERR_INVALID,
                       "tag \"%s\" already exists on a different version of job \"%s\"", tag->name,
                       tag->job_id);
    else if (named == NULL && count >= TAGS_MAX)
        code =
            err_set(err, ERR_LIMIT, "%d versions of the job have tags, as many as may", TAGS_MAX);
    else if (tag->name[0] == '\0' || strlen(tag->name) >= SPEC_NAME_SIZE)
        code = err_set(err, ERR_INVALID, "a tag has a name of 1 to %d bytes", SPEC_NAME_SIZE - 1);
    else if (strlen(tag->description) > DESCRIPTION_BYTES_MAX)
        code = err_set(err, ERR_LIMIT, "the description of a tag has %d bytes at most",
                       DESCRIPTION_BYTES_MAX);
    json_decref(all);
    return code;
}

static void put_tag(struct alone *alone, struct job *job, uint64_t number, json_t *tag)
{
    struct change change = change_begin(alone, job);

    change_job(alone, &change, with_tag(alone, job->json, number, tag));
    (void)change_end(alone, &change, 0); /* what 0 stays */
}

int alone_tag(struct alone *alone, const struct alone_tag *tag, json_t **ret_tag, struct err *err)
{
    struct job *job = job_find(alone, tag->namespace, tag->job_id);
    uint64_t number = tag->latest && job != NULL ? job->public.version : tag->version;
    int code = check_tag(job, tag, number, err);

    if (code == 0)
        code = life_check_turn(alone->config.life, 0, err);
    if (code < 0)
        return code;
    json_t *json = json_pack("{s:s, s:s, s:I}", "Name", tag->name, "Description", tag->description,
                             "TaggedTime", (json_int_t)life_unix_ns(alone->config.life));
    check(json != NULL); /* its texts came as JSON */
    *ret_tag = json_incref(json);
    put_tag(alone, job, number, json);
    return 0;
}

int alone_untag(struct alone *alone, const char *namespace, const char *job_id, const char *name,
                struct err *err)
{
    struct job *job = job_find(alone, namespace, job_id);
    json_t *all = job == NULL ? NULL : all_of(job->json);
    size_t count;
    const json_t *named = find_tag(all, name, &count);
    uint64_t number = job_number(named, "Version");
    bool is_there = named != NULL;

    json_decref(all);
    if (!is_there)
        return err_set(err, ERR_GONE, "tag \"%s\" not found on job \"%s\"", name, job_id);
    int code = life_check_turn(alone->config.life, 0, err);
    if (code == 0)
        put_tag(alone, job, number, json_null());
    return code;
}
