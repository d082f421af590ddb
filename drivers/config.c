/*
 * A task's config block, read by the keys that its driver has.
 *
 * What a driver does not know is refused by name: a key that is ignored would be a promise broken.
 */
#include "drivers/part.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    const struct driver *driver;
    struct command *command;
    struct err *err;
};

static int set_texts(const struct reader *reader, const char *name, const json_t *list,
                     struct texts *to)
{
    size_t count = json_array_size(list);

    if (!json_is_array(list))
        return err_set(reader->err, ERR_INVALID, "%s: \"%s\" must be a list of strings",
                       reader->driver->kind.name, name);
    if (count == 0)
        return 0;
    to->items = calloc(count, sizeof(*to->items));
    check(to->items != NULL);
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(list, i);

        if (!json_is_string(item))
            return err_set(reader->err, ERR_INVALID, "%s: %s[%zu] must be a string",
                           reader->driver->kind.name, name, i);
        to->items[to->count++] = json_string_value(item);
    }
    return 0;
}

static int set_key(const struct reader *reader, const struct config_key *key, const json_t *value)
{
    void *to = (char *)reader->command + key->offset;

    if (key->kind == CONFIG_TEXTS)
        return set_texts(reader, key->name, value, to);
    if (!json_is_string(value))
        return err_set(reader->err, ERR_INVALID, "%s: \"%s\" must be a string",
                       reader->driver->kind.name, key->name);
    *(const char **)to = json_string_value(value);
    return 0;
}

static int refuse_key(const struct reader *reader, const char *name)
{
    const struct driver *driver = reader->driver;
    char known[ERR_TEXT_SIZE] = "";

    for (size_t i = 0; i < driver->keys_count; i++) {
        const char *before = i == 0 ? "" : i + 1 == driver->keys_count ? " and " : ", ";
        size_t length = strlen(known);

        (void)text_format(known + length, sizeof(known) - length, "%s\"%s\"", before,
                          driver->keys[i].name); /* fits: a driver has few keys */
    }
    return err_set(reader->err, ERR_INVALID, "%s: unknown key \"%s\" (there are %s)",
                   driver->kind.name, name, known);
}

static int read_keys(const struct reader *reader, json_t *config)
{
    const struct driver *driver = reader->driver;
    const char *name;
    json_t *value;

    if (!json_is_object(config))
        return err_set(reader->err, ERR_INVALID, "%s: the config must be a block",
                       driver->kind.name);
    json_object_foreach(config, name, value)
    {
        const struct config_key *key = driver->keys, *end = key + driver->keys_count;

        while (key < end && !text_equal(key->name, name))
            key++;
        int code = key == end ? refuse_key(reader, name) : set_key(reader, key, value);
        if (code != 0)
            return code;
    }
    if (reader->command->program == NULL || reader->command->program[0] == '\0')
        return err_set(reader->err, ERR_INVALID, "%s: \"command\" is required", driver->kind.name);
    return driver->validate == NULL ? 0 : driver->validate(reader->command, reader->err);
}

int command_read(const struct driver *driver, const struct task_spec *task,
                 struct command *ret_command, struct err *err)
{
    const char *text = task->config_json[0] == '\0' ? "{}" : task->config_json;
    struct command command = {0};
    struct reader reader = {.driver = driver, .command = &command, .err = err};
    json_error_t where;

    /* Texts with NUL are refused by the parser, so that arguments are what they seem. */
    command.config = json_loads(text, JSON_REJECT_DUPLICATES, &where);
    if (command.config == NULL)
        return err_set(err, ERR_INVALID, "%s: the config is not valid: %s", driver->kind.name,
                       where.text);

    int code = read_keys(&reader, command.config);
    if (code != 0) {
        command_close(&command);
        return code;
    }
    *ret_command = command;
    return 0;
}

int config_check_work_dir(const char *driver, const struct command *command, struct err *err)
{
    if (command->work_dir == NULL || command->work_dir[0] == '/')
        return 0;
    return err_set(err, ERR_INVALID, "%s: \"work_dir\" must be an absolute path, not \"%s\"",
                   driver, command->work_dir);
}

void command_close(struct command *command)
{
    free(command->arguments.items);
    free(command->cap_add.items);
    free(command->cap_drop.items);
    json_decref(command->config);
    *command = (struct command){0};
}
