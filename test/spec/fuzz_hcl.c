/*
 * libFuzzer harness for everything that reads text from outside in spec and spec/hcl:
 * files, their evaluation, templates by themselves, job files, job JSON, and the journal's alloc
 * text.  The first byte chooses.
 *
 * test/spec/fuzz_hcl.sh builds it with clang and runs it on test/spec/jobs; what it found is kept
 * as cases in test_hcl.c and test_job.c.
 */
#include "spec/job.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_file(const char *text, size_t length)
{
    const struct hcl_input inputs[] = {
        {.name = "x", .value = "[1, {a = \"${b}\"}]", .optional = true}};
    struct hcl_options options = {.inputs = inputs, .inputs_count = 1, .keep_unknown = true};
    char message[HCL_ERROR_SIZE];
    struct hcl_context *context;
    struct hcl_error error;
    struct hcl_file *file;
    json_t *value;

    if (hcl_parse("fuzz", text, length, &file, &error) != 0) {
        hcl_error_text(&error, message, sizeof(message));
        check(text_is_utf8(message, strlen(message)) || !text_is_utf8(text, length));
        return;
    }
    if (hcl_context_new(file, &options, &context, &error) == 0) {
        if (hcl_body_value(context, NULL, hcl_root(file), &value, &error) == 0) {
            char *dumped = json_dumps(value, JSON_COMPACT);

            check(dumped != NULL);
            free(dumped);
            json_decref(value);
        }
        hcl_context_free(context);
    }
    hcl_free(file);
}

/* A job that is accepted gives an alloc text that is accepted, and reads again as itself. */
static void fuzz_job(const char *text, size_t length)
{
    static struct jobspec_problems problems;
    struct jobspec_source source = {.name = "fuzz", .text = text, .length = length};
    json_t *job, *again;

    if (jobspec_parse(&source, &job, &problems) != 0) {
        check(problems.count > 0);
        return;
    }
    check(jobspec_from_json("again", job, &again, &problems) == 0);
    check(json_equal(job, again));
    json_decref(again);
    const json_t *group = json_array_get(json_object_get(job, "TaskGroups"), 0);
    struct jobspec_placement placement = {
        .group = json_string_value(json_object_get(group, "Name")),
        .alloc_id = "0f3a3e5c-5f31-4a52-9f0e-0123456789ab",
        .eval_id = "",
        .datacenter = "dc1",
    };
    struct alloc_spec *spec;
    struct err err;
    char *alloc;
    size_t alloc_length;
    check(jobspec_group_equal(job, job, placement.group));
    check(jobspec_alloc_json(job, &placement, &alloc, &alloc_length, &err) == 0);
    check(jobspec_decode_alloc(alloc, alloc_length, &spec, &err) == 0);
    alloc_spec_free(spec);
    free(alloc);
    json_decref(job);
}

static void fuzz_alloc(const char *text, size_t length)
{
    struct alloc_spec *spec;
    struct err err;

    if (jobspec_decode_alloc(text, length, &spec, &err) == 0)
        alloc_spec_free(spec);
    else
        check(err.code == ERR_CORRUPT);
}

static int find_name(void *ctx, const char *name, const char **ret_value)
{
    (void)ctx;
    *ret_value = "value";
    return name[0] == 'x' ? ERR_INVALID : 0;
}

static void fuzz_template(const char *text, size_t length)
{
    static const char *const functions[] = {"jsondecode", "reverse", "substr", NULL};
    const struct hcl_names names = {.find = find_name, .functions = functions};
    struct hcl_error error;
    uint64_t work = 1 << 20;
    json_t *value;

    if (hcl_expand(text, length, &names, &work, &value, &error) == 0) {
        check(json_is_string(value));
        json_decref(value);
    }
    check(work <= 1 << 20);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    const char *text = (const char *)data + 1;

    switch (data[0] % 4) {
    case 0:
        fuzz_file(text, size - 1);
        break;
    case 1:
        fuzz_job(text, size - 1);
        break;
    case 2:
        fuzz_template(text, size - 1);
        break;
    default:
        fuzz_alloc(text, size - 1);
        break;
    }
    return 0;
}
