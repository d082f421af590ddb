/*
 * plugin "NAME" { args = [...]  config { ... } }: programs of plugin_dir.
 *
 * What may be in `config` is the plugin's own to say, when it is asked for its schema.
 */
#include "agent/config/read.h"

#include "base/list.h"

#include <stdlib.h>
#include <string.h>

enum { ARGUMENTS_MAX = 256 };

static void clear(struct config_plugin *plugin)
{
    for (size_t i = 0; plugin->arguments != NULL && plugin->arguments[i] != NULL; i++)
        free(plugin->arguments[i]);
    free(plugin->arguments);
    json_decref(plugin->config);
    *plugin = (struct config_plugin){.name = ""};
}

void config_free_plugins(struct config *config)
{
    for (size_t i = 0; i < config->plugins.count; i++)
        clear(&config->plugins.items[i]);
    free(config->plugins.items);
    config->plugins = (struct config_plugins){0};
}

static int take_arguments(struct reader *reader, struct config_plugin *plugin,
                          struct hcl_place place, const json_t *value)
{
    const json_t *argument;
    size_t i;

    if (!json_is_array(value) || json_array_size(value) > ARGUMENTS_MAX)
        return reader_complain(reader, place, "as in [\"-v\"]",
                               "args must be a list of at most %d strings", ARGUMENTS_MAX);
    plugin->arguments = calloc(json_array_size(value) + 1, sizeof(char *));
    check(plugin->arguments != NULL);
    json_array_foreach(value, i, argument)
    {
        if (!json_is_string(argument))
            return reader_complain(reader, place, NULL, "args[%zu] must be a string, not %s", i,
                                   hcl_type_text(argument));
        plugin->arguments[i] = strdup(json_string_value(argument));
        check(plugin->arguments[i] != NULL);
    }
    return 0;
}

static int take_config(struct reader *reader, struct config_plugin *plugin, struct hcl_place place,
                       json_t *value)
{
    if (json_is_array(value) && json_array_size(value) == 1) /* as JSON writes blocks, too */
        value = json_array_get(value, 0);
    if (!json_is_object(value) || plugin->config != NULL)
        return reader_complain(reader, place, NULL, "a plugin has one block config");
    plugin->config = json_incref(value);
    return 0;
}

static int take(struct reader *reader, struct config_plugin *plugin, const char *key,
                struct hcl_place place, json_t *value)
{
    if (text_equal(key, "args") && plugin->arguments == NULL)
        return take_arguments(reader, plugin, place, value);
    if (text_equal(key, "config"))
        return take_config(reader, plugin, place, value);
    return reader_complain(reader, place, "it has args and config",
                           "plugin \"%.60s\" has no key \"%.60s\"", plugin->name, key);
}

static int read_body(struct reader *reader, struct config_plugin *plugin,
                     const struct hcl_body *body)
{
    struct hcl_error error = {0};
    int code = 0;

    for (size_t i = 0; i < body->attributes_count && code == 0; i++) {
        const struct hcl_attribute *attribute = &body->attributes[i];
        json_t *value = NULL;

        if (hcl_evaluate(reader->context, NULL, attribute->value, &value, &error) != 0)
            return reader_take_error(reader, &error);
        code = take(reader, plugin, attribute->name, attribute->place, value);
        json_decref(value);
    }
    for (size_t i = 0; i < body->blocks_count && code == 0; i++) {
        const struct hcl_block *block = &body->blocks[i];
        json_t *value = NULL;

        if (!text_equal(block->type, "config") || block->labels_count > 0)
            return reader_complain(reader, block->place, "it has args and config",
                                   "plugin \"%.60s\" has no block %.60s", plugin->name,
                                   block->type);
        if (hcl_body_value(reader->context, NULL, &block->body, &value, &error) != 0)
            return reader_take_error(reader, &error);
        code = take(reader, plugin, block->type, block->place, value);
        json_decref(value);
    }
    return code;
}

static int read_value(struct reader *reader, struct config_plugin *plugin, struct hcl_place place,
                      json_t *value)
{
    const char *key;
    json_t *inside;
    int code = 0;

    if (json_is_array(value) && json_array_size(value) == 1)
        value = json_array_get(value, 0);
    if (!json_is_object(value))
        return reader_complain(reader, place, NULL, "plugin must be a block, not %s",
                               hcl_type_text(value));
    json_object_foreach(value, key, inside)
    {
        if (code == 0)
            code = take(reader, plugin, key, place, inside);
    }
    return code;
}

int reader_plugin(struct reader *reader, const char *name, struct hcl_place place,
                  const struct hcl_body *body, json_t *value)
{
    static const char *const drivers[] = {"qemu"};
    struct config_plugins *plugins = &reader->config->plugins;
    const char *fault = name[0] == '\0' ? "must not be empty" : spec_plugin_fault(name);
    struct config_plugin *plugin;
    size_t at = 0;

    for (size_t i = 0; i < COUNT_OF(drivers); i++) {
        if (text_equal(name, drivers[i]))
            return reader_complain(reader, place, "remove it",
                                   "there is no plugin \"%s\" in this release: it is a driver of "
                                   "Nomad's, and no program",
                                   name);
    }
    if (fault != NULL || name[0] == '.' || strchr(name, '/') != NULL)
        return reader_complain(reader, place, NULL, "the name of a plugin %s",
                               fault != NULL ? fault : "is that of its file in plugin_dir");
    while (at < plugins->count && !text_equal(plugins->items[at].name, name))
        at++;
    if (at == PLUGINS_MAX)
        return reader_complain(reader, place, NULL, "more than %d plugins", PLUGINS_MAX);
    if (at < plugins->count)
        clear(&plugins->items[at]);
    plugin = at < plugins->count ? &plugins->items[at] : list_more(plugins);
    *plugin = (struct config_plugin){.name = ""};
    (void)text_copy(plugin->name, sizeof(plugin->name), name); /* checked */
    int code =
        body != NULL ? read_body(reader, plugin, body) : read_value(reader, plugin, place, value);
    if (plugin->arguments == NULL) {
        plugin->arguments = calloc(1, sizeof(char *));
        check(plugin->arguments != NULL);
    }
    return code;
}
