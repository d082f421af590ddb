/*
 * Parameterized jobs: what they say, and the jobs that are dispatched of them.
 *
 * A parameterized job is never run itself.  Each dispatch makes a job of its own of it, with what
 * the dispatch brings: values of meta, and a payload that tasks find in a file.  Follows nomad
 * v2.0.5 nomad/job_endpoint.go Dispatch and validateDispatchRequest, and nomad/structs/structs.go
 * ParameterizedJobConfig and DispatchPayloadConfig; but a payload is kept as it came, in base64,
 * where Nomad compresses it.
 */
#include "spec/blocks/blocks.h"
#include "spec/json.h"
#include "spec/names.h"

#include <nettle/base64.h>
#include <stdlib.h>
#include <string.h>

/* What is behind the id of a parameterized job in those of its children. */
#define LAUNCH_SUFFIX "/dispatch-"
enum { LAUNCH_ID_BYTES = sizeof(LAUNCH_SUFFIX "1700000000-01234567") - 1 };

static bool has_text(const json_t *list, const char *text)
{
    const json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
    {
        if (text_equal(json_string_value(item), text))
            return true;
    }
    return false;
}

bool jobspec_is_parameterized(const json_t *job)
{
    return json_is_object(json_object_get(job, "ParameterizedJob")) && !jobspec_is_dispatched(job);
}

bool jobspec_is_dispatched(const json_t *job)
{
    return json_is_true(json_object_get(job, "Dispatched"));
}

/* --- payloads --- */

bool jobspec_payload(const char *text, uint8_t **ret_bytes, size_t *ret_length)
{
    size_t length = strlen(text), most = BASE64_DECODE_LENGTH(length);
    struct base64_decode_ctx context;
    uint8_t *bytes = malloc(most + 1);

    check(bytes != NULL);
    base64_decode_init(&context);
    if (base64_decode_update(&context, &most, bytes, length, text) == 1 &&
        base64_decode_final(&context) == 1 && most <= SPEC_PAYLOAD_BYTES_MAX) {
        *ret_bytes = bytes;
        *ret_length = most;
        return true;
    }
    free(bytes);
    return false;
}

/* --- what a job says --- */

void jobspec_default_dispatch(json_t *job)
{
    json_t *block = json_object_get(job, "ParameterizedJob");

    if (block != NULL && *text_of(block, "Payload") == '\0')
        check(json_object_set_new(block, "Payload", json_string("optional")) == 0);
}

static void check_keys(struct jobspec_work *work, const json_t *block, const char *field)
{
    const json_t *key;
    size_t i;

    json_array_foreach(json_object_get(block, field), i, key)
    {
        if (json_string_length(key) == 0)
            jobspec_complain(work, block, field, NULL, "the name of a meta key must not be empty");
    }
}

void jobspec_check_dispatch(struct jobspec_work *work, const json_t *job)
{
    static const char *const payloads[] = {"optional", "required", "forbidden"};
    const json_t *block = json_object_get(job, "ParameterizedJob"), *key;
    const char *payload = text_of(block, "Payload");
    bool known = false;
    size_t i;

    if (block == NULL)
        return;
    if (!text_equal(text_of(job, "Type"), "batch") && !text_equal(text_of(job, "Type"), "sysbatch"))
        jobspec_complain(work, block, "", "write type = \"batch\"",
                         "a parameterized job has type \"batch\" or \"sysbatch\", not \"%.40s\"",
                         text_of(job, "Type"));
    if (strlen(text_of(job, "ID")) + LAUNCH_ID_BYTES > SPEC_NAME_MAX)
        jobspec_complain(work, job, "ID", NULL,
                         "the id of a parameterized job has at most %d bytes, as those of what is "
                         "dispatched are longer",
                         SPEC_NAME_MAX - LAUNCH_ID_BYTES);
    for (i = 0; i < COUNT_OF(payloads); i++)
        known |= text_equal(payload, payloads[i]);
    if (!known)
        jobspec_complain(work, block, "Payload", NULL,
                         "the payload of a dispatch is \"optional\", \"required\" or "
                         "\"forbidden\", not \"%.40s\"",
                         payload);
    check_keys(work, block, "MetaRequired");
    check_keys(work, block, "MetaOptional");
    json_array_foreach(json_object_get(block, "MetaRequired"), i, key)
    {
        if (has_text(json_object_get(block, "MetaOptional"), json_string_value(key)))
            jobspec_complain(work, block, "MetaOptional", NULL,
                             "meta key \"%.60s\" cannot be both required and optional",
                             json_string_value(key));
    }
}

const char *spec_payload_fault(const char *file)
{
    return spec_file_fault(file, "escapes the directory \"local\" of the task");
}

const char *spec_file_fault(const char *file, const char *escapes)
{
    if (strlen(file) >= SPEC_PLACE_SIZE)
        return "is too long";
    if (file[0] == '\0' || text_ends_with(file, "/"))
        return "names no file";
    while (*file != '\0') {
        size_t length = strcspn(file, "/");

        if (length == 2 && memcmp(file, "..", 2) == 0)
            return escapes;
        file += length + (file[length] == '/');
    }
    return NULL;
}

void jobspec_check_payload_file(struct jobspec_work *work, const json_t *task)
{
    const json_t *block = json_object_get(task, "DispatchPayload");
    const char *file = text_of(block, "File"), *fault = spec_payload_fault(file);

    if (block != NULL && *file != '\0' && fault != NULL)
        jobspec_complain(work, block, "File", "write a path in \"local\", as in \"input.json\"",
                         "the file of a dispatch_payload %s: \"%.80s\"", fault, file);
}

/* --- dispatching --- */

/* Names of LIST as Go prints a list. */
static void print_list(const json_t *list, char *to, size_t size)
{
    const json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
    {
        (void)text_append(to, size, i > 0 ? " " : ""); /* cut is enough */
        (void)text_append(to, size, json_string_value(item));
    }
    text_whole(to);
}

/* Each value of META is wanted, and all that has to be there is. */
static int check_meta(const json_t *block, json_t *meta, struct err *err)
{
    const json_t *required = json_object_get(block, "MetaRequired"), *name;
    json_t *wrong = json_array(), *missing = json_array(), *value;
    char names[ERR_TEXT_SIZE] = "";
    const char *key;
    size_t i;
    int code = 0;

    json_object_foreach(meta, key, value)
    {
        if (!json_is_string(value))
            code = err_set(err, ERR_INVALID, "the value of meta key \"%.60s\" is no text", key);
        if (!has_text(required, key) && !has_text(json_object_get(block, "MetaOptional"), key))
            check(json_array_append_new(wrong, json_string(key)) == 0);
    }
    json_array_foreach(required, i, name)
    {
        if (json_object_get(meta, json_string_value(name)) == NULL)
            check(json_array_append(missing, (json_t *)(uintptr_t)name) == 0);
    }
    if (json_array_size(wrong) > 0) {
        print_list(wrong, names, sizeof(names));
        code = err_set(err, ERR_INVALID,
                       "Dispatch request included unpermitted metadata keys: [%s]", names);
    } else if (json_array_size(missing) > 0) {
        print_list(missing, names, sizeof(names));
        code =
            err_set(err, ERR_INVALID, "Dispatch did not provide required meta keys: [%s]", names);
    }
    json_decref(wrong);
    json_decref(missing);
    return code;
}

static int check_payload(const json_t *block, const char *text, struct err *err)
{
    const char *wanted = text_of(block, "Payload");
    size_t length = strlen(text);
    uint8_t *bytes;

    if (text_equal(wanted, "required") && length == 0)
        return err_set(err, ERR_INVALID,
                       "Payload is not provided but required by parameterized job");
    if (text_equal(wanted, "forbidden") && length > 0)
        return err_set(err, ERR_INVALID, "Payload provided but forbidden by parameterized job");
    if (jobspec_payload(text, &bytes, &length)) {
        free(bytes);
        return 0;
    }
    if (length < BASE64_ENCODE_RAW_LENGTH(SPEC_PAYLOAD_BYTES_MAX))
        return err_set(err, ERR_INVALID, "Payload is not in base64");
    return err_set(err, ERR_INVALID, "Payload exceeds maximum size; %zu > %d",
                   length / 4 * 3 - (length - strcspn(text, "=")), SPEC_PAYLOAD_BYTES_MAX);
}

/* What the job has, over that what META says, and "" for what may be left out and is. */
static json_t *merge_meta(const json_t *job, json_t *meta)
{
    json_t *all = json_object(), *name, *own = json_object_get(job, "Meta");
    const json_t *block = json_object_get(job, "ParameterizedJob");
    size_t i;

    json_array_foreach(json_object_get(block, "MetaOptional"), i, name)
        check(json_object_set_new(all, json_string_value(name), json_string("")) == 0);
    if (own != NULL)
        check(json_object_update(all, own) == 0);
    if (meta != NULL)
        check(json_object_update(all, meta) == 0);
    return all;
}

static int check_dispatch(const json_t *job, const struct jobspec_dispatch *dispatch,
                          struct err *err)
{
    const json_t *block = json_object_get(job, "ParameterizedJob");
    const char *fault = spec_job_id_fault(dispatch->id);
    int code = check_payload(block, dispatch->payload, err);

    if (code == 0)
        code = check_meta(block, dispatch->meta, err);
    if (code == 0 && (dispatch->priority < 0 || dispatch->priority > 100))
        code = err_set(err, ERR_INVALID, "dispatch job priority must be between [1, 100]");
    if (code == 0 && strlen(dispatch->token) >= SPEC_NAME_SIZE)
        code = err_set(err, ERR_INVALID, "the idempotency token is longer than %d bytes",
                       SPEC_NAME_MAX);
    if (code == 0 && fault != NULL)
        code = err_set(err, ERR_INVALID, "the id of the dispatched job %s", fault);
    return code;
}

int jobspec_dispatch(const json_t *job, const struct jobspec_dispatch *dispatch, json_t **ret_job,
                     struct err *err)
{
    int code = check_dispatch(job, dispatch, err);

    if (code < 0)
        return code;
    json_t *made = json_copy((json_t *)(uintptr_t)job);
    check(made != NULL);
    json_t *said =
        json_pack("{s:s, s:s, s:O, s:s, s:b, s:o}", "ID", dispatch->id, "Name", dispatch->id,
                  "ParentID", json_object_get(job, "ID"), "Payload", dispatch->payload,
                  "Dispatched", 1, "Meta", merge_meta(job, dispatch->meta));
    check(said != NULL); /* all of it came as JSON */
    check(json_object_update(made, said) == 0);
    json_decref(said);
    if (dispatch->token[0] != '\0')
        check(json_object_set_new(made, "DispatchIdempotencyToken", json_string(dispatch->token)) ==
              0);
    if (dispatch->priority > 0)
        check(json_object_set_new(made, "Priority", json_integer(dispatch->priority)) == 0);
    *ret_job = made;
    return 0;
}

bool jobspec_dispatched_id(const char *job, const char *prefix, int64_t unix_s, const char *uuid,
                           char ret_id[SPEC_NAME_SIZE])
{
    return text_format(ret_id, SPEC_NAME_SIZE, "%s" LAUNCH_SUFFIX "%s%s%lld-%.8s", job, prefix,
                       prefix[0] == '\0' ? "" : "-", (long long)unix_s, uuid);
}
