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

bool config_is_open(const struct command *command, const char *text)
{
    return command->as_written && text != NULL && strstr(text, "${") != NULL;
}

/* As few digits as tell VALUE from all others; NULL: it is not told without an exponent. */
static json_t *text_of_real(double value)
{
    char text[40];
    int digits = 1;

    do
        (void)text_format(text, sizeof(text), "%.*g", digits, value); /* fits */
    while (strtod(text, NULL) != value && ++digits <= 17);
    return strchr(text, 'e') == NULL ? json_string(text) : NULL;
}

/* What number I of LIST says, where something else than a text is meant as one: a port among the
 * arguments; NULL: it is none. */
static const char *text_at(json_t *list, size_t i)
{
    const json_t *item = json_array_get(list, i);
    json_t *text = json_is_integer(item)
                       ? json_sprintf("%" JSON_INTEGER_FORMAT, json_integer_value(item))
                   : json_is_real(item)    ? text_of_real(json_real_value(item))
                   : json_is_boolean(item) ? json_string(json_is_true(item) ? "true" : "false")
                                           : NULL;

    if (text != NULL)
        check(json_array_set_new(list, i, text) == 0);
    return json_string_value(json_array_get(list, i));
}

static int set_texts(const struct reader *reader, const char *name, json_t *list, struct texts *to)
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
        const char *item = text_at(list, i);

        if (item == NULL)
            return err_set(reader->err, ERR_INVALID, "%s: %s[%zu] must be a string",
                           reader->driver->kind.name, name, i);
        if (!config_is_open(reader->command, item))
            to->items[to->count++] = item;
    }
    return 0;
}

static int must_be(const struct reader *reader, const char *name, const char *what)
{
    return err_set(reader->err, ERR_INVALID, "%s: \"%s\" must be %s", reader->driver->kind.name,
                   name, what);
}

static int set_number(const struct reader *reader, const char *name, const json_t *value,
                      int64_t *to)
{
    uint64_t number;

    if (json_is_integer(value))
        *to = json_integer_value(value);
    else if (json_is_string(value) && text_to_u64(json_string_value(value), &number) &&
             number <= INT64_MAX)
        *to = (int64_t)number; /* what was interpolated is a text */
    else
        return must_be(reader, name, "a whole number");
    return 0;
}

static int set_bool(const struct reader *reader, const char *name, const json_t *value, bool *to)
{
    const char *text = json_string_value(value);
    bool is_true = json_is_true(value) || (text != NULL && text_equal(text, "true"));

    if (!is_true && !json_is_false(value) && (text == NULL || !text_equal(text, "false")))
        return must_be(reader, name, "true or false");
    *to = is_true;
    return 0;
}

static int set_duration(const struct reader *reader, const char *name, const json_t *value,
                        uint64_t *to)
{
    int64_t ns;

    if (!json_is_string(value) || !text_to_duration_ns(json_string_value(value), &ns) || ns < 0)
        return must_be(reader, name, "a duration as \"30s\" or \"5m\"");
    *to = (uint64_t)ns / 1000000;
    return 0;
}

/* What may be written as a list of some, as HCL has blocks. */
static json_t *list_of(json_t *value)
{
    return json_is_array(value) ? json_incref(value) : json_pack("[O]", value);
}

/* Adds what PART says to MAP; numbers and truths are texts there. */
static bool add_to_map(json_t *map, json_t *part)
{
    const char *name;
    json_t *item;

    json_object_foreach(part, name, item)
    {
        json_t *one = json_pack("[O]", item);
        const char *text = text_at(one, 0);

        if (text != NULL)
            check(json_object_set_new(map, name, json_string(text)) == 0);
        json_decref(one);
        if (text == NULL)
            return false;
    }
    return json_is_object(part);
}

static int set_map(const struct reader *reader, const char *name, json_t *value, json_t **to)
{
    json_t *parts = list_of(value), *map = json_object();
    bool good = true;

    for (size_t i = 0; good && i < json_array_size(parts); i++)
        good = add_to_map(map, json_array_get(parts, i));
    json_decref(parts);
    check(json_array_append_new(reader->command->made, map) == 0);
    *to = map;
    return good ? 0 : must_be(reader, name, "a map of strings");
}

static int set_blocks(const struct reader *reader, const char *name, json_t *value, json_t **to)
{
    json_t *blocks = list_of(value);

    check(json_array_append_new(reader->command->made, blocks) == 0);
    *to = blocks;
    for (size_t i = 0; i < json_array_size(blocks); i++) {
        if (!json_is_object(json_array_get(blocks, i)))
            return must_be(reader, name, "a block, or some");
    }
    return 0;
}

static int read_block(const struct reader *reader, const struct config_key *key, json_t *value,
                      bool *to);

static int set_key(const struct reader *reader, const struct config_key *key, json_t *value)
{
    void *to = (char *)reader->command + key->offset;

    if (key->kind != CONFIG_TEXT && key->kind != CONFIG_REFUSED &&
        config_is_open(reader->command, json_string_value(value)))
        return 0;
    switch (key->kind) {
    case CONFIG_TEXT:
        if (!json_is_string(value))
            return must_be(reader, key->name, "a string");
        *(const char **)to = json_string_value(value);
        return 0;
    case CONFIG_TEXTS:
        return set_texts(reader, key->name, value, to);
    case CONFIG_NUMBER:
        return set_number(reader, key->name, value, to);
    case CONFIG_BOOL:
        return set_bool(reader, key->name, value, to);
    case CONFIG_DURATION:
        return set_duration(reader, key->name, value, to);
    case CONFIG_BLOCK:
        return read_block(reader, key, value, to);
    case CONFIG_MAP:
        return set_map(reader, key->name, value, to);
    case CONFIG_BLOCKS:
        return set_blocks(reader, key->name, value, to);
    case CONFIG_REFUSED:
        return err_set(reader->err, ERR_INVALID, "%s: \"%s\" is not available in this release: %s",
                       reader->driver->kind.name, key->name, key->why);
    }
    unreachable("a kind of key");
}

static int refuse_key(const struct reader *reader, const char *name)
{
    const struct driver *driver = reader->driver;
    char known[ERR_TEXT_SIZE] = "";

    for (size_t i = 0; i < driver->keys_count; i++) {
        const char *before = i == 0 ? "" : i + 1 == driver->keys_count ? " and " : ", ";
        size_t length = strlen(known);

        (void)text_format(known + length, sizeof(known) - length, "%s\"%s\"", before,
                          driver->keys[i].name); /* cut where a driver has many */
    }
    return err_set(reader->err, ERR_INVALID, "%s: unknown key \"%s\" (there are %s)",
                   driver->kind.name, name, known);
}

static int read_key(const struct reader *reader, const char *name, json_t *value)
{
    const struct driver *driver = reader->driver;
    const struct config_key *key = driver->keys, *end = key + driver->keys_count;

    while (key < end && !text_equal(key->name, name))
        key++;
    return key == end ? refuse_key(reader, name) : set_key(reader, key, value);
}

/* A block may be written as a list with one. */
static int read_block(const struct reader *reader, const struct config_key *key, json_t *value,
                      bool *to)
{
    json_t *block = json_is_array(value) ? json_array_get(value, 0) : value;
    char name[64];
    const char *inner;
    json_t *item;

    if (!json_is_object(block) || (json_is_array(value) && json_array_size(value) != 1))
        return must_be(reader, key->name, "a block, once");
    json_object_foreach(block, inner, item)
    {
        bool fits = text_format(name, sizeof(name), "%s.%s", key->name, inner);
        int code = fits ? read_key(reader, name, item) : refuse_key(reader, inner);
        if (code != 0)
            return code;
    }
    *to = true;
    return 0;
}

static int read_keys(const struct reader *reader, json_t *config)
{
    const char *name;
    json_t *value;

    if (!json_is_object(config))
        return err_set(reader->err, ERR_INVALID, "%s: the config must be a block",
                       reader->driver->kind.name);
    json_object_foreach(config, name, value)
    {
        int code =
            strchr(name, '.') != NULL ? refuse_key(reader, name) : read_key(reader, name, value);
        if (code != 0)
            return code;
    }
    return reader->driver->validate(reader->command, reader->err);
}

static int read_command(const struct driver *driver, const struct task_spec *task, bool as_written,
                        struct command *ret_command, struct err *err)
{
    const char *text = task->config_json[0] == '\0' ? "{}" : task->config_json;
    struct command command = {.as_written = as_written};
    struct reader reader = {.driver = driver, .command = &command, .err = err};
    json_error_t where;

    /* Texts with NUL are refused by the parser, so that arguments are what they seem. */
    command.config = json_loads(text, JSON_REJECT_DUPLICATES, &where);
    if (command.config == NULL)
        return err_set(err, ERR_INVALID, "%s: the config is not valid: %s", driver->kind.name,
                       where.text);

    command.made = json_array();
    int code = read_keys(&reader, command.config);
    if (code != 0) {
        command_close(&command);
        return code;
    }
    *ret_command = command;
    return 0;
}

int command_read(const struct driver *driver, const struct task_spec *task,
                 struct command *ret_command, struct err *err)
{
    return read_command(driver, task, false, ret_command, err);
}

int command_check(const struct driver *driver, const struct task_spec *task, struct err *err)
{
    struct command command;
    int code = read_command(driver, task, true, &command, err);

    if (code == 0)
        command_close(&command);
    return code;
}

int config_check_program(const char *driver, const struct command *command, struct err *err)
{
    if (command->program != NULL && command->program[0] != '\0')
        return 0;
    return err_set(err, ERR_INVALID, "%s: \"command\" is required", driver);
}

int config_check_work_dir(const char *driver, const struct command *command, struct err *err)
{
    if (command->work_dir == NULL || command->work_dir[0] == '/' ||
        config_is_open(command, command->work_dir))
        return 0;
    return err_set(err, ERR_INVALID, "%s: \"work_dir\" must be an absolute path, not \"%s\"",
                   driver, command->work_dir);
}

static void docker_config_close(struct docker_config *config)
{
    struct texts *const lists[] = {
        &config->entrypoint,  &config->dns_servers,    &config->dns_searches, &config->dns_options,
        &config->extra_hosts, &config->group_add,      &config->ports,        &config->security_opt,
        &config->volumes,     &config->network_aliases};

    for (size_t i = 0; i < COUNT_OF(lists); i++)
        free(lists[i]->items);
}

void command_close(struct command *command)
{
    free(command->arguments.items);
    free(command->cap_add.items);
    free(command->cap_drop.items);
    free(command->denied_env.items);
    free(command->jvm_options.items);
    docker_config_close(&command->docker);
    json_decref(command->made);
    json_decref(command->config);
    *command = (struct command){0};
}
