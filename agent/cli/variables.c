/*
 * Values for the variables of a job file, in the order in which the later wins: NOMAD_VAR_<name>,
 * files of values, -var NAME=VALUE.
 */
#include "agent/cli/cli.h"

#include "io/host.h"
#include "spec/job.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The next one, or NULL after saying that there are too many; NAME is copied. */
static struct hcl_input *add(struct jobspec_values *values, const char *name, size_t length)
{
    struct hcl_input *input = jobspec_values_add(values, name, length);

    if (input == NULL)
        (void)cli_fail(CLI_USAGE, "more than %zu variables", COUNT_OF(values->items));
    return input;
}

/* What was given, as agents keep it: Nomad's names (v2.0.5 jobspec2/parse.go submissionFromJob). */
static void note_value(json_t *given, const struct hcl_input *input)
{
    json_t *flags = json_object_get(given, "VariableFlags"), *value = json_string(input->value);

    if (value != NULL) /* what is no UTF-8 is the value of nothing */
        (void)json_object_set_new(flags, input->name, value);
}

static void note_file(json_t *given, const char *text, size_t length)
{
    const char *before = json_string_value(json_object_get(given, "Variables"));
    json_t *all = json_sprintf("%s%.*s\n", before, (int)length, text);

    check(all != NULL && json_object_set_new(given, "Variables", all) == 0); /* it was read */
}

static int read_file(const char *path, struct jobspec_values *values, json_t *given)
{
    char told[HCL_ERROR_SIZE];
    struct err err = {0};
    size_t length;
    char *text;

    if (file_read(path, HCL_BYTES_MAX, &text, &length, &err) != 0)
        return cli_fail(CLI_FAILED, "%s", err.text);
    int code = jobspec_read_values(path, text, length, values, told);
    if (code == 0)
        note_file(given, text, length);
    free(text);
    return code == 0 ? 0 : cli_fail(CLI_FAILED, "%s", told);
}

static int read_environment(struct jobspec_values *values, json_t *given)
{
    static const char prefix[] = "NOMAD_VAR_";

    for (char **at = environ; *at != NULL; at++) {
        const char *equals = strchr(*at, '='), *name = *at + strlen(prefix);

        if (!text_starts_with(*at, prefix) || equals == NULL)
            continue;
        struct hcl_input *input = add(values, name, (size_t)(equals - name));
        if (input == NULL)
            return CLI_USAGE;
        input->value = equals + 1;
        input->optional = true;
        note_value(given, input);
    }
    return 0;
}

static int read_flags(const struct cli *cli, struct jobspec_values *values, json_t *given)
{
    const char *text;

    for (size_t i = 0; (text = cli_text_again(cli, "var", i)) != NULL; i++) {
        const char *equals = strchr(text, '=');

        if (equals == NULL || equals == text)
            return cli_fail(CLI_USAGE, "-var takes NAME=VALUE, not \"%.60s\"", text);
        struct hcl_input *input = add(values, text, (size_t)(equals - text));
        if (input == NULL)
            return CLI_USAGE;
        input->value = equals + 1;
        note_value(given, input);
    }
    return 0;
}

int cli_read_variables(const struct cli *cli, struct jobspec_values **ret_values,
                       json_t **ret_given)
{
    struct jobspec_values *values = jobspec_values_new();
    json_t *given = json_pack("{s:{}, s:s}", "VariableFlags", "Variables", "");
    const char *path;

    check(given != NULL);
    *ret_values = values;
    *ret_given = given;
    int status = read_environment(values, given);
    for (size_t i = 0; status == 0 && (path = cli_text_again(cli, "var-file", i)) != NULL; i++)
        status = read_file(path, values, given);
    if (status == 0)
        status = read_flags(cli, values, given);
    if (status != 0)
        json_decref(given);
    return status;
}
