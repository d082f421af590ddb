/*
 * Templates by themselves: the language of files for texts that are evaluated where they are used.
 *
 * Names mean what the caller says, and no others are known: a template sees no variables, no locals
 * and no files.
 */
#include "spec/hcl/scan.h"

/* The template in FILE as a value. */
static int evaluate(struct hcl_file *file, const struct hcl_names *names, uint64_t *work,
                    json_t **ret_text, struct hcl_error *error)
{
    static const struct hcl_options options = {0};
    struct hcl_context context = {
        .file = file,
        .options = &options,
        .names = names,
        .budget = *work,
    };
    struct hcl_parser parser = {.file = file, .error = error, .line = 1, .column = 1};
    const struct hcl_expression *template = hcl_parse_template(&parser);

    if (template == NULL)
        return error->code;
    int code = hcl_evaluate_as(&context, NULL, template, HCL_STRING, "what is put into text",
                               ret_text, error);
    *work = context.budget;
    return code;
}

int hcl_expand(const char *text, size_t length, const struct hcl_names *names, uint64_t *work,
               json_t **ret_text, struct hcl_error *error)
{
    bool readable = length <= HCL_BYTES_MAX && text_is_utf8(text, length);
    struct hcl_file *file = hcl_file_new("template", text, readable ? length : 0);
    int code;

    if (readable) {
        code = evaluate(file, names, work, ret_text, error);
    } else {
        code = hcl_complain(file, (struct hcl_place){0}, NULL, error,
                            "this is not UTF-8 text of at most %d bytes", HCL_BYTES_MAX);
    }
    hcl_free(file);
    return code;
}
