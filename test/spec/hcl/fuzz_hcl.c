/* The language by itself: a file, its values, and its text as a template. */
#include "test/fuzz.h"

#include "spec/hcl.h"

static void evaluate(const char *text, size_t length)
{
    const struct hcl_input inputs[] = {
        {.name = "x", .value = "[1, {a = \"$${b}\"}]", .optional = true}};
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

static int find_name(void *ctx, const char *name, const char **ret_value)
{
    (void)ctx;
    *ret_value = "value";
    return name[0] == 'x' ? ERR_INVALID : 0;
}

static void expand(const char *text, size_t length)
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
    evaluate((const char *)data, size);
    expand((const char *)data, size);
    return 0;
}
