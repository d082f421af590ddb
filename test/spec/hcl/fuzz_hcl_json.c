/* The language in JSON: a file, and its values. */
#include "test/fuzz.h"

#include "spec/hcl.h"

/* Blocks by the first letters of their names. */
static enum hcl_member form(const void *within, const char *name, const void **ret_inner)
{
    *ret_inner = name;
    return name[0] == 'b'                     ? HCL_BLOCK
           : name[0] == 'l'                   ? HCL_NAMED_BLOCK
           : name[0] == 'f' && within != NULL ? HCL_FREE_BLOCK
                                              : HCL_ARGUMENT;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct hcl_input inputs[] = {
        {.name = "x", .value = "[1, {a = \"${b}\"}]", .optional = true}};
    struct hcl_options options = {.inputs = inputs, .inputs_count = 1, .keep_unknown = true};
    const char *text = (const char *)data;
    char message[HCL_ERROR_SIZE];
    struct hcl_context *context;
    struct hcl_error error;
    struct hcl_file *file;
    json_t *value;

    if (hcl_parse_json("fuzz", text, size, form, &file, &error) != 0) {
        hcl_error_text(&error, message, sizeof(message));
        check(text_is_utf8(message, strlen(message)) || !text_is_utf8(text, size));
        return 0;
    }
    /* What is read is JSON for others, too, save what they cannot hold. */
    bool strange = memmem(data, size, "\\u", 2) != NULL || memchr(data, 'e', size) != NULL ||
                   memchr(data, 'E', size) != NULL || size > 300;
    value = json_loadb(text, size, JSON_DECODE_INT_AS_REAL, NULL);
    check(value != NULL || strange || memcmp(data, "\xef\xbb\xbf", 3) == 0);
    json_decref(value);
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
    return 0;
}
