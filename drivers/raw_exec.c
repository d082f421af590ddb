/*
 * The driver raw_exec: a program of the host, without isolation.
 *
 * Follows nomad v1.1.2 drivers/rawexec/driver.go: config keys `command` and `args`; stops with
 * SIGINT unless the task says otherwise.
 */
#include "drivers/part.h"

#include <jansson.h>
#include <stdlib.h>

static int read_arguments(const json_t *list, struct command *command, struct err *err)
{
    size_t count = json_array_size(list);

    if (!json_is_array(list))
        return err_set(err, ERR_INVALID, "raw_exec: \"args\" must be a list of strings");
    if (count == 0)
        return 0;
    command->arguments = calloc(count, sizeof(*command->arguments));
    check(command->arguments != NULL);
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(list, i);

        if (!json_is_string(item))
            return err_set(err, ERR_INVALID, "raw_exec: args[%zu] must be a string", i);
        command->arguments[command->arguments_count++] = json_string_value(item);
    }
    return 0;
}

static int read_fields(json_t *config, struct command *command, struct err *err)
{
    const char *name;
    json_t *value;

    if (!json_is_object(config))
        return err_set(err, ERR_INVALID, "raw_exec: the config must be a block");
    json_object_foreach(config, name, value)
    {
        if (text_equal(name, "command")) {
            if (!json_is_string(value))
                return err_set(err, ERR_INVALID, "raw_exec: \"command\" must be a string");
            command->program = json_string_value(value);
        } else if (text_equal(name, "args")) {
            int code = read_arguments(value, command, err);

            if (code != 0)
                return code;
        } else {
            return err_set(err, ERR_INVALID,
                           "raw_exec: unknown key \"%s\" (there are \"command\" and \"args\")",
                           name);
        }
    }
    if (command->program == NULL || command->program[0] == '\0')
        return err_set(err, ERR_INVALID, "raw_exec: \"command\" is required");
    return 0;
}

static int read_config(const struct task_spec *task, struct command *ret_command, struct err *err)
{
    struct command command = {0};
    json_error_t where;
    const char *text = task->config_json[0] == '\0' ? "{}" : task->config_json;

    /* Texts with NUL are refused by the parser, so that arguments are what they seem. */
    command.config = json_loads(text, JSON_REJECT_DUPLICATES, &where);
    if (command.config == NULL)
        return err_set(err, ERR_INVALID, "raw_exec: the config is not valid: %s", where.text);

    int code = read_fields(command.config, &command, err);
    if (code != 0) {
        command_close(&command);
        return code;
    }
    *ret_command = command;
    return 0;
}

static bool is_enabled(const struct drivers_config *config)
{
    return config->raw_exec_enabled;
}

static bool has_cgroup(const struct drivers_config *config)
{
    return !config->raw_exec_no_cgroups;
}

const struct driver raw_exec_driver = {
    .name = "raw_exec",
    .stop_signal = "SIGINT",
    .read_config = read_config,
    .is_enabled = is_enabled,
    .has_cgroup = has_cgroup,
};
