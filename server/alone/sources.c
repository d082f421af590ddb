/*
 * Sources of jobs: the file that people wrote, and the values that they gave for its variables.
 *
 * They are in the journal alone, each under "secret/source/<namespace>/<version>/<id>" since values
 * may be secret, and are written and taken away with the version that was read from them: that says
 * in "cairnSource" how many bytes there are.  A version of a job that nobody wrote, as one that was
 * scaled, has none.
 */
#include "server/alone/part.h"

#include "spec/json.h"

#include <stdlib.h>
#include <string.h>

#define PREFIX "secret/source/"

enum { VERSION_DIGITS = 20 };

_Static_assert(sizeof(PREFIX) + SPEC_NAMESPACE_SIZE + VERSION_DIGITS + 1 + SPEC_NAME_SIZE <=
                   JOURNAL_KEY_SIZE,
               "a key has room for all names");

static void put_key(char key[JOURNAL_KEY_SIZE], const char *namespace, uint64_t version,
                    const char *id)
{
    (void)text_format(key, JOURNAL_KEY_SIZE, PREFIX "%s/%llu/%s", namespace,
                      (unsigned long long)version, id); /* it fits */
}

/* --- reading what callers send --- */

static bool is_text(const json_t *source, const char *name)
{
    const json_t *value = json_object_get(source, name);

    return value == NULL || json_is_null(value) || json_is_string(value);
}

static bool are_texts(const json_t *flags)
{
    const char *name;
    json_t *value;

    if (flags != NULL && !json_is_null(flags) && !json_is_object(flags))
        return false;
    json_object_foreach((json_t *)(uintptr_t)flags, name, value)
    {
        if (!json_is_string(value))
            return false;
    }
    return true;
}

int alone_read_source(const json_t *submission, struct alone_wanted *wanted, struct err *err)
{
    const json_t *flags = json_object_get(submission, "VariableFlags");

    if (submission == NULL || json_is_null(submission))
        return 0;
    if (!json_is_object(submission) || !is_text(submission, "Source") ||
        !is_text(submission, "Format") || !is_text(submission, "Variables") || !are_texts(flags))
        return err_set(err, ERR_INVALID,
                       "Submission must have texts as Source, Format and Variables, and an object "
                       "of texts as VariableFlags");
    if (text_of(submission, "Source")[0] == '\0')
        return 0;
    json_t *source = json_pack("{s:s, s:s, s:s, s:O?}", "Source", text_of(submission, "Source"),
                               "Format", text_of(submission, "Format"), "Variables",
                               text_of(submission, "Variables"), "VariableFlags",
                               json_object_size(flags) == 0 ? NULL : (json_t *)(uintptr_t)flags);
    check(source != NULL);
    size_t bytes = json_dumpb(source, NULL, 0, JSON_COMPACT);
    if (bytes <= JOB_SOURCE_BYTES_MAX) {
        wanted->source = source;
        wanted->source_bytes = bytes;
        return 0;
    }
    json_decref(source);
    (void)text_format(wanted->remark, sizeof(wanted->remark),
                      "the source of the job has %zu bytes, of at most %d, and is not kept", bytes,
                      JOB_SOURCE_BYTES_MAX);
    return 0;
}

void source_fit(const struct alone *alone, struct alone_wanted *wanted)
{
    size_t room = NODE_SOURCES_BYTES_MAX - alone->sources_bytes;

    if (alone->sources_bytes <= NODE_SOURCES_BYTES_MAX && wanted->source_bytes <= room)
        return;
    json_decref(wanted->source);
    wanted->source = NULL;
    (void)text_format(wanted->remark, sizeof(wanted->remark),
                      "the sources of all jobs have %zu bytes, of at most %d, and this one is not "
                      "kept",
                      alone->sources_bytes, NODE_SOURCES_BYTES_MAX);
}

/* --- keeping --- */

/* The version NUMBER of JOB, NULL: it is not kept. */
static const json_t *version_of(const json_t *job, uint64_t number)
{
    const json_t *version;
    size_t i;

    if (job != NULL && job_number(job, "Version") == number)
        return job;
    json_array_foreach(json_object_get(job, "cairnVersions"), i, version)
    {
        if (job_number(version, "Version") == number)
            return version;
    }
    return NULL;
}

static bool has_source(const json_t *job, uint64_t number)
{
    return job_number(version_of(job, number), "cairnSource") > 0;
}

static void drop(struct alone *alone, const struct job *job, uint64_t number)
{
    char key[JOURNAL_KEY_SIZE];

    put_key(key, job->namespace, number, job->id);
    core_spec(life_core(alone->config.life), key, NULL, 0);
}

/* Those that BEFORE had and NOW (NULL: none) has not. */
static void drop_others(struct alone *alone, const struct job *job, const json_t *before,
                        const json_t *now)
{
    const json_t *version = before;
    size_t i = 0;

    while (version != NULL) {
        uint64_t number = job_number(version, "Version");
        if (has_source(before, number) && !has_source(now, number))
            drop(alone, job, number);
        version = json_array_get(json_object_get(before, "cairnVersions"), i++);
    }
}

void source_stamp(const struct job *job, json_t *json, bool changed, const json_t *source)
{
    uint64_t had = changed ? 0 : job_number(job->json, "cairnSource");
    size_t bytes = had > 0          ? (size_t)had
                   : source != NULL ? json_dumpb(source, NULL, 0, JSON_COMPACT)
                                    : 0;

    (void)json_object_del(json, "cairnSource"); /* of the version that it was made of */
    if (bytes > 0)
        check(json_object_set_new(json, "cairnSource", json_integer((json_int_t)bytes)) == 0);
}

void source_keep(struct alone *alone, const struct job *job, const json_t *before,
                 const json_t *source)
{
    uint64_t number = job->public.version;
    char key[JOURNAL_KEY_SIZE];

    drop_others(alone, job, before, job->json);
    if (source == NULL || !has_source(job->json, number) || has_source(before, number))
        return;
    char *text = json_dumps(source, JSON_COMPACT);
    check(text != NULL);
    put_key(key, job->namespace, number, job->id);
    core_spec(life_core(alone->config.life), key, text, strlen(text));
    free(text);
}

void sources_drop(struct alone *alone, const struct job *job)
{
    drop_others(alone, job, job->json, NULL);
}

/* --- looking --- */

json_t *source_read(const struct alone *alone, const struct alone_job *job, uint64_t number)
{
    char key[JOURNAL_KEY_SIZE], *text;
    size_t length;

    put_key(key, job->namespace, number, job->id);
    if (!has_source(job->job, number) ||
        life_read_spec(alone->config.life, key, &text, &length, NULL) < 0)
        return NULL;
    json_t *source = json_loadb(text, length, 0, NULL);
    free(text);
    if (!json_is_object(source)) {
        json_decref(source);
        return NULL;
    }
    return source;
}

json_t *alone_source(const struct alone *alone, const struct alone_job *job, uint64_t number)
{
    const json_t *version = version_of(job->job, number);
    json_t *source = source_read(alone, job, number);

    if (source == NULL)
        return NULL;
    json_t *of =
        json_pack("{s:s, s:s, s:I, s:O}", "Namespace", job->namespace, "JobID", job->id, "Version",
                  (json_int_t)number, "JobModifyIndex", json_object_get(version, "JobModifyIndex"));
    check(of != NULL && json_object_update(source, of) == 0);
    json_decref(of);
    return source;
}

/* Keys that belong to no version. */
struct stray_sources {
    const struct alone *alone;
    struct {
        char key[JOURNAL_KEY_SIZE];
    } * items;
    size_t count, size;
};

static bool note_stray(void *ctx, const char *key, const void *bytes, size_t length)
{
    struct stray_sources *strays = ctx;
    const char *namespace = key + strlen(PREFIX), *number, *id = NULL;
    char name[SPEC_NAMESPACE_SIZE], digits[VERSION_DIGITS + 1];
    uint64_t version = 0;
    const struct job *job = NULL;

    (void)bytes;
    (void)length;
    number = strchr(namespace, '/');
    if (number != NULL)
        id = strchr(number + 1, '/');
    if (id != NULL &&
        text_format(name, sizeof(name), "%.*s", (int)(number - namespace), namespace) &&
        text_format(digits, sizeof(digits), "%.*s", (int)(id - number - 1), number + 1) &&
        text_to_u64(digits, &version))
        job = job_find(strays->alone, name, id + 1);
    if (job == NULL || !has_source(job->json, version))
        (void)text_copy(list_more(strays)->key, JOURNAL_KEY_SIZE, key); /* same size */
    return true;
}

int sources_sweep(struct alone *alone, struct err *err)
{
    struct stray_sources strays = {.alone = alone};
    int code = life_each_spec(alone->config.life, PREFIX, note_stray, &strays, err);

    for (size_t i = 0; i < strays.count && code == 0; i++)
        core_spec(life_core(alone->config.life), strays.items[i].key, NULL, 0);
    free(strays.items);
    return code;
}
