/*
 * Types and values that are written by themselves, in no file: what plugins say of the
 * configuration that they take (hclspec).
 */
#include "spec/hcl/tree.h"

#include <stdlib.h>
#include <string.h>

/* TEXT as the value of the one attribute of a file. */
static int parse(const char *text, struct hcl_file **ret_file, struct hcl_error *error)
{
    static const char start[] = "value = ";
    size_t length = strlen(text), whole = sizeof(start) + length;
    char *line = malloc(whole + 1);

    check(line != NULL);
    check(text_format(line, whole + 1, "%s%s\n", start, text));
    int code = hcl_parse("schema", line, whole, ret_file, error);
    free(line);
    if (code == 0 && hcl_root(*ret_file)->attributes_count == 1 &&
        hcl_root(*ret_file)->blocks_count == 0)
        return 0;
    if (code == 0) {
        hcl_free(*ret_file);
        *error = (struct hcl_error){.code = ERR_INVALID};
        (void)text_copy(error->message, sizeof(error->message), "this is more than one value");
    }
    return ERR_INVALID;
}

int hcl_literal(const char *text, json_t **ret_value, struct hcl_error *error)
{
    const struct hcl_options options = {.literal = true};
    struct hcl_context *context = NULL;
    struct hcl_file *file;

    if (parse(text, &file, error) != 0)
        return ERR_INVALID;
    int code = hcl_context_new(file, &options, &context, error);
    if (code == 0)
        code = hcl_evaluate(context, NULL, hcl_root(file)->attributes[0].value, ret_value, error);
    hcl_context_free(context);
    hcl_free(file);
    return code;
}

int hcl_fit(const char *type, json_t *value, json_t **ret_value, struct hcl_error *error)
{
    const struct hcl_options options = {.literal = true};
    struct hcl_context *context = NULL;
    struct hcl_file *file;

    if (parse(type, &file, error) != 0)
        return ERR_INVALID;
    int code = hcl_context_new(file, &options, &context, error);
    if (code == 0)
        code =
            hcl_convert_to(context, hcl_root(file)->attributes[0].value, value, ret_value, error);
    hcl_context_free(context);
    hcl_free(file);
    return code;
}
