/*
 * Values for the variables of a job file, in the order in which the later wins: NOMAD_VAR_<name>,
 * files of values, -var NAME=VALUE.
 */
#include "agent/cli/cli.h"

#include "io/host.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The next one, or NULL after saying that there are too many; NAME is copied. */
static struct hcl_input *add(struct cli_variables *variables, const char *name, size_t length)
{
    char *copy;

    if (variables->count == COUNT_OF(variables->items)) {
        (void)cli_fail(CLI_USAGE, "more than %zu variables", COUNT_OF(variables->items));
        return NULL;
    }
    copy = strndup(name, length);
    check(copy != NULL);
    struct hcl_input *input = &variables->items[variables->count++];
    *input = (struct hcl_input){.name = copy};
    return input;
}

/* --- files --- */

static int read_json(const char *path, const char *text, size_t length,
                     struct cli_variables *variables)
{
    json_error_t error;
    json_t *values = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error), *value;
    const char *name;

    if (values == NULL)
        return cli_fail(CLI_FAILED, "%s:%d:%d: this is not JSON: %s", path, error.line,
                        error.column, error.text);
    check(json_array_append_new(variables->values, values) == 0);
    json_object_foreach(values, name, value)
    {
        struct hcl_input *input = add(variables, name, strlen(name));

        if (input == NULL)
            return CLI_USAGE;
        input->given = value;
    }
    return 0;
}

/* Each attribute at the root of FILE; it may call functions, and knows no names. */
static int read_attributes(const struct hcl_file *file, struct hcl_context *context,
                           struct cli_variables *variables, struct hcl_error *error)
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
        check(json_array_append_new(variables->values, value) == 0);
        struct hcl_input *input = add(variables, attribute->name, strlen(attribute->name));
        if (input == NULL)
            return hcl_complain(file, attribute->place, NULL, error, "this is one too many");
        input->given = value;
    }
    return 0;
}

static int read_hcl(const char *path, const char *text, size_t length,
                    struct cli_variables *variables)
{
    struct hcl_options options = {.keep_unknown = false};
    struct hcl_context *context = NULL;
    struct hcl_file *file = NULL;
    struct hcl_error error;
    char told[HCL_ERROR_SIZE];

    int code = hcl_parse(path, text, length, &file, &error);
    if (code == 0)
        code = hcl_context_new(file, &options, &context, &error);
    if (code == 0)
        code = read_attributes(file, context, variables, &error);
    if (code != 0)
        hcl_error_text(&error, told, sizeof(told));
    hcl_context_free(context);
    hcl_free(file);
    return code == 0 ? 0 : cli_fail(CLI_FAILED, "%s", told);
}

static int read_values(const char *path, struct cli_variables *variables)
{
    struct err err = {0};
    size_t length;
    char *text;

    if (file_read(path, HCL_BYTES_MAX, &text, &length, &err) != 0)
        return cli_fail(CLI_FAILED, "%s", err.text);
    int status = text[strspn(text, " \t\r\n")] == '{' ? read_json(path, text, length, variables)
                                                      : read_hcl(path, text, length, variables);
    free(text);
    return status;
}

/* --- all --- */

static int read_environment(struct cli_variables *variables)
{
    static const char prefix[] = "NOMAD_VAR_";

    for (char **at = environ; *at != NULL; at++) {
        const char *equals = strchr(*at, '='), *name = *at + strlen(prefix);

        if (!text_starts_with(*at, prefix) || equals == NULL)
            continue;
        struct hcl_input *input = add(variables, name, (size_t)(equals - name));
        if (input == NULL)
            return CLI_USAGE;
        input->value = equals + 1;
        input->optional = true;
    }
    return 0;
}

static int read_flags(const struct cli *cli, struct cli_variables *variables)
{
    const char *text;

    for (size_t i = 0; (text = cli_text_again(cli, "var", i)) != NULL; i++) {
        const char *equals = strchr(text, '=');

        if (equals == NULL || equals == text)
            return cli_fail(CLI_USAGE, "-var takes NAME=VALUE, not \"%.60s\"", text);
        struct hcl_input *input = add(variables, text, (size_t)(equals - text));
        if (input == NULL)
            return CLI_USAGE;
        input->value = equals + 1;
    }
    return 0;
}

int cli_read_variables(const struct cli *cli, struct cli_variables **ret_variables)
{
    struct cli_variables *variables = calloc(1, sizeof(*variables));
    const char *path;

    check(variables != NULL);
    variables->values = json_array();
    *ret_variables = variables;
    int status = read_environment(variables);
    for (size_t i = 0; status == 0 && (path = cli_text_again(cli, "var-file", i)) != NULL; i++)
        status = read_values(path, variables);
    return status == 0 ? read_flags(cli, variables) : status;
}

void cli_free_variables(struct cli_variables *variables)
{
    for (size_t i = 0; i < variables->count; i++)
        free((char *)(uintptr_t)variables->items[i].name);
    json_decref(variables->values);
    free(variables);
}
