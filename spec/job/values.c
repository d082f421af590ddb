/*
 * Values for the variables of a job file, as files of values say them: name = value, in HCL or
 * JSON.
 */
#include "spec/job.h"

#include <stdlib.h>
#include <string.h>

struct jobspec_values *jobspec_values_new(void)
{
    struct jobspec_values *values = calloc(1, sizeof(*values));

    check(values != NULL);
    values->held = json_array();
    return values;
}

void jobspec_values_free(struct jobspec_values *values)
{
    for (size_t i = 0; values != NULL && i < values->count; i++)
        free((char *)(uintptr_t)values->items[i].name);
    if (values != NULL)
        json_decref(values->held);
    free(values);
}

struct hcl_input *jobspec_values_add(struct jobspec_values *values, const char *name, size_t length)
{
    if (values->count == COUNT_OF(values->items))
        return NULL;
    char *copy = strndup(name, length);
    check(copy != NULL);
    struct hcl_input *input = &values->items[values->count++];
    *input = (struct hcl_input){.name = copy};
    return input;
}

/* --- files --- */

static int read_json(const char *path, const char *text, size_t length,
                     struct jobspec_values *values, char ret_told[HCL_ERROR_SIZE])
{
    json_error_t error;
    json_t *all = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error), *value;
    const char *name;

    if (all == NULL) {
        (void)text_format(ret_told, HCL_ERROR_SIZE, "%s:%d:%d: this is not JSON: %s", path,
                          error.line, error.column, error.text); /* cut if long */
        return ERR_INVALID;
    }
    check(json_array_append_new(values->held, all) == 0);
    json_object_foreach(all, name, value)
    {
        struct hcl_input *input = jobspec_values_add(values, name, strlen(name));

        if (input == NULL) {
            (void)text_format(ret_told, HCL_ERROR_SIZE, "%s: more than %zu variables", path,
                              COUNT_OF(values->items)); /* likewise */
            return ERR_INVALID;
        }
        input->given = value;
    }
    return 0;
}

/* Each attribute at the root of FILE; it may call functions, and knows no names. */
static int read_attributes(const struct hcl_file *file, struct hcl_context *context,
                           struct jobspec_values *values, struct hcl_error *error)
{
    const struct hcl_body *root = hcl_root(file);

    if (root->blocks_count > 0)
        return hcl_complain(file, root->blocks[0].place, "write name = value", error,
                            "a file of values has no blocks");
    for (size_t i = 0; i < root->attributes_count; i++) {
        const struct hcl_attribute *attribute = &root->attributes[i];
        json_t *value;
        int code = hcl_evaluate(context, NULL, attribute->value, &value, error);

        if (code != 0)
            return code;
        check(json_array_append_new(values->held, value) == 0);
        struct hcl_input *input =
            jobspec_values_add(values, attribute->name, strlen(attribute->name));
        if (input == NULL)
            return hcl_complain(file, attribute->place, NULL, error, "more than %zu variables",
                                COUNT_OF(values->items));
        input->given = value;
    }
    return 0;
}

static int read_hcl(const char *path, const char *text, size_t length,
                    struct jobspec_values *values, char ret_told[HCL_ERROR_SIZE])
{
    struct hcl_options options = {.keep_unknown = false};
    struct hcl_context *context = NULL;
    struct hcl_file *file = NULL;
    struct hcl_error error;

    int code = hcl_parse(path, text, length, &file, &error);
    if (code == 0)
        code = hcl_context_new(file, &options, &context, &error);
    if (code == 0)
        code = read_attributes(file, context, values, &error);
    if (code != 0)
        hcl_error_text(&error, ret_told, HCL_ERROR_SIZE);
    hcl_context_free(context);
    hcl_free(file);
    return code == 0 ? 0 : ERR_INVALID;
}

int jobspec_read_values(const char *path, const char *text, size_t length,
                        struct jobspec_values *values, char ret_told[HCL_ERROR_SIZE])
{
    size_t blank = 0;

    while (blank < length && strchr(" \t\r\n", text[blank]) != NULL && text[blank] != '\0')
        blank++;
    return blank < length && text[blank] == '{' ? read_json(path, text, length, values, ret_told)
                                                : read_hcl(path, text, length, values, ret_told);
}
