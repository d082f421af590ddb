/* What a request that dispatches brings: payloads that are none, and meta of any kind. */
#include "test/fuzz.h"

#include "spec/job.h"

#include <stdlib.h>
#include <string.h>

static json_t *parameterized(void)
{
    static struct jobspec_problems problems;
    json_t *job,
        *raw = json_pack("{s:s, s:s, s:{s:[s], s:[s, s]}, s:{s:s}, s:[{s:s, s:[{s:s, s:s}]}]}",
                         "ID", "p", "Type", "batch", "ParameterizedJob", "MetaRequired", "a",
                         "MetaOptional", "b", "c", "Meta", "b", "1", "TaskGroups", "Name", "g",
                         "Tasks", "Name", "t", "Driver", "raw_exec");

    check(raw != NULL && jobspec_from_json("job", raw, &job, &problems) == 0);
    json_decref(raw);
    return job;
}

static const char *text_of(const json_t *body, const char *name)
{
    const char *text = json_string_value(json_object_get(body, name));

    return text == NULL ? "" : text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *body = json_loadb((const char *)data, size, 0, NULL), *made = NULL;
    json_t *meta = json_object_get(body, "Meta"), *job;
    struct err err = {0};
    uint8_t *bytes;
    size_t length;

    if (body == NULL)
        return 0;
    const struct jobspec_dispatch dispatch = {
        .id = "p/dispatch-1700000000-01234567",
        .payload = text_of(body, "Payload"),
        .meta = json_is_object(meta) ? meta : NULL,
        .token = text_of(body, "Token"),
        .priority = json_integer_value(json_object_get(body, "Priority")),
    };
    job = parameterized();
    if (jobspec_dispatch(job, &dispatch, &made, &err) == 0) {
        check(jobspec_is_dispatched(made) && !jobspec_is_parameterized(made));
        check(jobspec_payload(dispatch.payload, &bytes, &length));
        check(length <= SPEC_PAYLOAD_BYTES_MAX);
        free(bytes);
    } else {
        check(err.code == ERR_INVALID && err.text[0] != '\0');
    }
    json_decref(made);
    json_decref(job);
    json_decref(body);
    return 0;
}
