/*
 * The job that comes with an alloc of a server, as jobs are here: what is wrong with it is told in
 * one sentence.
 *
 * Only the group of the alloc is looked at; others may be for nodes that do more.  What a server
 * adds to a job, or has judged already, is taken off before it is read, and Go's zero values say
 * nothing (read.c).
 */
#include "spec/json.h"
#include "spec/names.h"
#include "spec/served/part.h"

#include <nettle/base64.h>
#include <stdlib.h>
#include <string.h>

static void drop(json_t *object, const char *const *fields, size_t count)
{
    for (size_t i = 0; i < count; i++)
        (void)json_object_del(object, fields[i]); /* missing is fine */
}

/* A copy of OBJECT that shares what is in it. */
static json_t *copy_of(const json_t *object)
{
    json_t *copy = json_copy((json_t *)(uintptr_t)object);

    check(copy != NULL);
    return copy;
}

/* --- what is not of the job's file --- */

/* What nobody sees of them servers have for themselves, but for the one by which the task gets a
 * token of Consul. */
static void prepare_identities(json_t *task)
{
    bool of_consul = false;
    json_t *all = json_object_get(task, "Identities"), *kept = json_array(), *identity;
    json_t *own = jobspec_prepare_identity(json_object_get(task, "Identity"), false);
    size_t i;

    json_array_foreach(all, i, identity)
    {
        json_t *seen = jobspec_prepare_identity(identity, true);

        of_consul |= text_equal(text_of(identity, "Name"), SPEC_CONSUL_IDENTITY);
        if (seen != NULL)
            check(json_array_append_new(kept, seen) == 0);
    }
    check(json_object_set_new(task, "Identities", kept) == 0);
    check(json_object_set_new(task, "Identity", own == NULL ? json_null() : own) == 0);
    if (of_consul)
        check(json_object_set_new(task, "ConsulIdentity", json_true()) == 0);
}

/* Paths of checks that were to be exposed are among those of the proxy.  Of an identity its name is
 * what a token of Consul is asked for by; nobody asks by one of Nomad's own services. */
static json_t *prepare_service(const json_t *service)
{
    json_t *copy = copy_of(service), *checks = json_array(), *one;
    json_t *identity = json_object_get(json_object_get(service, "Identity"), "Name");
    size_t i;

    (void)json_object_del(copy, "Identity"); /* missing is fine */
    if (identity != NULL && !text_equal(text_of(service, "Provider"), "nomad"))
        check(json_object_set_new(copy, "Identity", json_pack("{s:O}", "Name", identity)) == 0);

    json_array_foreach(json_object_get(service, "Checks"), i, one)
    {
        json_t *prepared = json_is_object(one) ? copy_of(one) : json_incref(one);

        if (json_is_object(one))
            (void)json_object_del(prepared, "Expose"); /* missing is fine */
        check(json_array_append_new(checks, prepared) == 0);
    }
    check(json_object_set_new(copy, "Checks", checks) == 0);
    return copy;
}

/* Those of OWNER, the copy of a group or of a task. */
static void prepare_services(json_t *owner)
{
    const json_t *list = json_object_get(owner, "Services"), *service;
    json_t *services = json_array();
    size_t i;

    json_array_foreach(list, i, service)
    {
        json_t *prepared = json_is_object(service) ? prepare_service(service)
                                                   : json_incref((json_t *)(uintptr_t)service);

        check(json_array_append_new(services, prepared) == 0);
    }
    if (json_is_array(list))
        check(json_object_set(owner, "Services", services) == 0);
    json_decref(services);
}

/* TASK as it may be read, with what it was given; a new reference. */
static json_t *prepare_task(const json_t *task, const json_t *given)
{
    static const char *const of_servers[] = {"ScalingPolicies"};
    static const char *const decided[] = {"NUMA"}; /* by the cores and devices that it was given */
    const json_t *own = json_object_get(json_object_get(given, "Tasks"), text_of(task, "Name"));
    const json_t *resources = json_object_get(task, "Resources");
    json_t *copy = copy_of(task);

    drop(copy, of_servers, COUNT_OF(of_servers));
    prepare_identities(copy);
    prepare_services(copy);
    if (resources == NULL || json_is_null(resources) || json_is_object(resources)) {
        json_t *all = json_is_object(resources) ? copy_of(resources) : json_object();

        drop(all, decided, COUNT_OF(decided));
        jobspec_put_given(all, own);
        check(json_object_set_new(copy, "Resources", all) == 0);
    }
    return copy;
}

/* The disk of GROUP, which is its copy, as it was given. */
static void put_disk(json_t *group, const json_t *given)
{
    const json_t *disk = json_object_get(group, "EphemeralDisk");
    json_t *size_mb = json_object_get(json_object_get(given, "Shared"), "DiskMB");

    if (json_integer_value(size_mb) <= 0 || !json_is_object(disk))
        return;
    json_t *copy = copy_of(disk);
    check(json_object_set(copy, "SizeMB", size_mb) == 0);
    check(json_object_set_new(group, "EphemeralDisk", copy) == 0);
}

static json_t *prepare_group(const json_t *group, const json_t *given)
{
    json_t *copy = copy_of(group), *tasks = json_array();
    const json_t *list = json_object_get(group, "Tasks"), *task;
    size_t i;

    put_disk(copy, given);
    prepare_services(copy);
    json_array_foreach(list, i, task)
    {
        json_t *prepared = json_is_object(task) ? prepare_task(task, given)
                                                : json_incref((json_t *)(uintptr_t)task);

        check(json_array_append_new(tasks, prepared) == 0);
    }
    if (json_is_array(list))
        check(json_object_set(copy, "Tasks", tasks) == 0);
    json_decref(tasks);
    return copy;
}

/* JOB with GROUP alone, as it may be read; a new reference. */
static json_t *prepare_job(const json_t *job, const json_t *group, const json_t *given)
{
    static const char *const of_servers[] = {"Stop", "Dispatched", "ParameterizedJob", "Payload",
                                             "Multiregion"};
    json_t *copy = copy_of(job);

    drop(copy, of_servers, COUNT_OF(of_servers));
    check(json_object_set_new(copy, "TaskGroups", json_pack("[o]", prepare_group(group, given))) ==
          0);
    return copy;
}

/* --- the payload --- */

/* BYTES as the wire has them, owned by the caller. */
static bool wire_bytes(const json_t *value, uint8_t **ret_bytes, size_t *ret_length)
{
    const json_t *coded = json_object_get(value, "$bytes");
    const char *text = json_string_value(json_is_string(coded) ? coded : value);
    size_t length = json_string_length(json_is_string(coded) ? coded : value);
    size_t most = BASE64_DECODE_LENGTH(length);
    struct base64_decode_ctx context;
    uint8_t *bytes;

    if (text == NULL)
        return false;
    bytes = malloc((most > length ? most : length) + 1);
    check(bytes != NULL);
    base64_decode_init(&context);
    if (!json_is_string(coded)) {
        memcpy(bytes, text, length);
        most = length;
    } else if (base64_decode_update(&context, &most, bytes, length, text) != 1 ||
               base64_decode_final(&context) != 1) {
        free(bytes);
        return false;
    }
    *ret_bytes = bytes;
    *ret_length = most;
    return true;
}

/* Puts what the job was dispatched with into JOB, in base64, as dispatch.c has it. */
static int put_payload(const json_t *from, json_t *job, struct err *err)
{
    const json_t *value = json_object_get(from, "Payload");
    uint8_t *packed = NULL, *bytes = NULL;
    size_t packed_length, length;
    char *text;

    if (value == NULL || jobspec_is_empty(value))
        return 0;
    if (!wire_bytes(value, &packed, &packed_length) ||
        !jobspec_unpack(packed, packed_length, SPEC_PAYLOAD_BYTES_MAX, &bytes, &length)) {
        free(packed);
        return err_set(err, ERR_CORRUPT, "the payload of the job is damaged, or over %d bytes",
                       SPEC_PAYLOAD_BYTES_MAX);
    }
    text = calloc(1, BASE64_ENCODE_RAW_LENGTH(length) + 1);
    check(text != NULL);
    base64_encode_raw(text, length, bytes);
    check(json_object_set_new(job, "Payload", json_string(text)) == 0);
    free(text);
    free(bytes);
    free(packed);
    return 0;
}

/* --- reading --- */

/* What ITEM tells, without the file and the group, which whoever reads it knows. */
static void one_problem(const char *item, const char *group, char *to, size_t size)
{
    char prefix[2][130];

    (void)text_format(prefix[0], sizeof(prefix[0]), "group \"%.100s\", ", group);
    (void)text_format(prefix[1], sizeof(prefix[1]), "group \"%.100s\": ", group);
    if (text_starts_with(item, "job: "))
        item += strlen("job: ");
    for (size_t i = 0; i < COUNT_OF(prefix); i++) {
        if (text_starts_with(item, prefix[i])) {
            item += strlen(prefix[i]);
            break;
        }
    }
    (void)text_copy(to, size, item); /* cut if long */
    to[strcspn(to, "\n")] = '\0';    /* without its hint, which is for files */
    text_whole(to);
}

/* All PROBLEMS in one sentence, and how many of them found no room in it. */
static int tell(const struct jobspec_work *work, const char *group, struct err *err)
{
    enum { MORE = sizeof(" and 1000000 more") };
    const struct jobspec_problems *problems = work->problems;
    char text[ERR_TEXT_SIZE] = "", one[ERR_TEXT_SIZE], more[MORE + 1] = "";
    size_t told = 0;

    for (; told < problems->count; told++) {
        one_problem(problems->items[told], group, one, sizeof(one));
        if (told > 0 && strlen(text) + strlen(one) + 2 + MORE >= sizeof(text))
            break;
        (void)text_append(text, sizeof(text) - MORE, told > 0 ? "; " : "");
        (void)text_append(text, sizeof(text) - MORE, one);
    }
    size_t left = problems->count - told + problems->dropped;
    if (left > 0)
        (void)text_format(more, sizeof(more), " and %zu more", left);
    return err_set(err, work->refused ? ERR_UNSUPPORTED : ERR_INVALID, "%s%s", text, more);
}

/* A deployment is paced elsewhere: it is no reason to refuse a long kill_timeout here. */
static void set_update(json_t *raw)
{
    json_t *group = json_array_get(json_object_get(raw, "TaskGroups"), 0);
    enum spec_job_type type = JOB_SERVICE; /* what is not said */

    if (group != NULL && spec_job_type(text_of(raw, "Type"), &type) &&
        (type == JOB_SERVICE || type == JOB_SYSTEM))
        check(json_object_set_new(
                  group, "Update",
                  json_pack("{s:i, s:i}", "MaxParallel", 1, "ProgressDeadline", 0)) == 0);
}

static int read_prepared(const json_t *prepared, const char *group, json_t **ret_job,
                         struct err *err)
{
    struct jobspec_problems *problems = calloc(1, sizeof(*problems));
    struct jobspec_work work = {.name = "job", .problems = problems, .served = true};

    check(problems != NULL);
    json_t *raw = jobspec_read_json(&work, prepared);
    set_update(raw);
    int code = jobspec_finish(&work, raw, ret_job);
    if (code != 0)
        code = tell(&work, group, err);
    free(problems);
    return code;
}

int jobspec_read_served(const json_t *alloc, const json_t *given, json_t **ret_job, struct err *err)
{
    const json_t *job = json_object_get(alloc, "Job"), *group;
    const char *name = text_of(alloc, "TaskGroup");

    if (!json_is_object(job))
        return err_set(err, ERR_CORRUPT, "the server sent the alloc without its job");
    if (jobspec_is_deep(job))
        return err_set(err, ERR_INVALID, "the job is nested more than %d levels deep",
                       HCL_NESTING_MAX);
    group = jobspec_group(job, name);
    if (group == NULL)
        return err_set(err, ERR_CORRUPT, "the job has no group \"%.90s\", of which the alloc is",
                       name);
    json_t *prepared = prepare_job(job, group, given), *read = NULL;
    int code = read_prepared(prepared, name, &read, err);
    if (code == 0)
        code = put_payload(job, read, err);
    if (code == 0) {
        json_t *version = json_object_get(job, "Version");

        if (json_is_integer(version))
            check(json_object_set(read, "Version", version) == 0);
        *ret_job = json_incref(read);
    }
    json_decref(read);
    json_decref(prepared);
    return code;
}
