/*
 * Follows nomad v2.0.6 plugins/drivers/proto/driver.proto.
 *
 * Attributes of a node are taken as they are named there, "driver.NAME" and what is below it: what
 * a driver says of anything else, as of the node's processor, the node knows itself.
 */
#include "plugins/driver/driver.h"

#include "plugins/protocol/plugin.pb-c.h"
#include "plugins/protocol/read.h"
#include "plugins/protocol/schema.h"
#include "spec/hcl.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum {
    UNDETECTED = 0,
    HEALTHY = 2,
    FS_CHROOT = 1,
    FS_IMAGE = 2,
    NETWORK_GROUP = 1,
    MODES_MAX = 16,
    PREFIX_SIZE = SPEC_DRIVER_SIZE + 8,
};

bool driver_name_is_good(const char *name)
{
    size_t length = strlen(name);

    if (length == 0 || length >= SPEC_DRIVER_SIZE)
        return false;
    for (const char *at = name; *at != '\0'; at++) {
        if (!isalnum((unsigned char)*at) && (at == name || strchr("_-", *at) == NULL))
            return false;
    }
    return true;
}

int driver_read_capabilities(const void *bytes, size_t length,
                             struct plugin_capabilities *ret_capabilities, struct err *err)
{
    struct arena arena = {0};
    struct reading from = reading_begin(&arena, err);
    const Wire__CapabilitiesAnswer *answer =
        reading_unpack(&from, &wire__capabilities_answer__descriptor, bytes, length);
    struct plugin_capabilities read = {.isolation = ISOLATION_NONE};

    if (answer != NULL && answer->capabilities != NULL &&
        reading_may_have(&from, answer->capabilities->n_network_modes, MODES_MAX,
                         "modes of networks")) {
        const Wire__Capabilities *said = answer->capabilities;

        read.signals = said->send_signals;
        read.runs_commands = said->exec;
        read.makes_network = said->must_create_network;
        read.keeps_output = said->disable_log_collection;
        read.isolation = said->fs_isolation == FS_CHROOT  ? ISOLATION_CHROOT
                         : said->fs_isolation == FS_IMAGE ? ISOLATION_IMAGE
                                                          : ISOLATION_NONE;
        for (size_t i = 0; i < said->n_network_modes; i++)
            read.enters_network |= said->network_modes[i] == NETWORK_GROUP;
    }
    arena_free(&arena);
    if (from.code == 0)
        *ret_capabilities = read;
    return from.code;
}

int driver_read_schema(const void *bytes, size_t length, char **ret_schema, size_t *ret_length,
                       struct err *err)
{
    struct arena arena = {0};
    struct reading from = reading_begin(&arena, err);
    const Wire__SchemaAnswer *answer =
        reading_unpack(&from, &wire__schema_answer__descriptor, bytes, length);

    if (answer != NULL && answer->spec.len > SCHEMA_BYTES_MAX)
        reading_refuse(&from, ERR_LIMIT, "the schema of its tasks", "is longer than is taken");
    if (from.code == 0) {
        *ret_schema = malloc(answer->spec.len + 1);
        check(*ret_schema != NULL);
        if (answer->spec.len > 0)
            memcpy(*ret_schema, answer->spec.data, answer->spec.len);
        *ret_length = answer->spec.len;
    }
    arena_free(&arena);
    return from.code;
}

/* --- how it is --- */

/* ATTRIBUTE, as the API has it, as a text; a new reference, NULL: it says nothing. */
static json_t *as_text(const json_t *attribute)
{
    const json_t *truth = json_object_get(attribute, "Bool");
    const char *unit = json_string_value(json_object_get(attribute, "Unit"));
    json_t *value = json_object_get(attribute, "String"), *text = NULL;

    if (json_is_null(value))
        value = json_object_get(attribute, "Int");
    if (json_is_null(value))
        value = json_object_get(attribute, "Float");
    if (json_is_boolean(truth))
        return json_string(json_is_true(truth) ? "true" : "false");
    json_t *plain = json_is_string(value) ? json_incref(value) : hcl_convert(value, HCL_STRING);
    if (json_string_length(plain) > 0)
        text = json_sprintf("%s%s", json_string_value(plain), unit);
    json_decref(plain);
    return text;
}

static json_t *own_attributes(const json_t *all, const char *name)
{
    json_t *own = json_object(), *attribute;
    char prefix[PREFIX_SIZE];
    const char *key;

    check(text_format(prefix, sizeof(prefix), "driver.%s.", name));
    json_object_foreach((json_t *)(uintptr_t)all, key, attribute)
    {
        json_t *text = text_starts_with(key, prefix) ? as_text(attribute) : NULL;

        if (text != NULL)
            check(json_object_set_new(own, key, text) == 0);
    }
    return own;
}

int driver_read_state(const void *bytes, size_t length, const char *name,
                      struct driver_state *ret_state, struct err *err)
{
    struct arena arena = {0};
    struct reading from = reading_begin(&arena, err);
    const Wire__DriverState *said =
        reading_unpack(&from, &wire__driver_state__descriptor, bytes, length);
    json_t *all = said == NULL ? json_object()
                               : reading_attributes(&from, said->attributes, said->n_attributes);

    if (from.code == 0) {
        json_t *words = reading_words(said->error.len > 0 ? said->error : said->description);

        *ret_state = (struct driver_state){
            .detected = said->health != UNDETECTED,
            .healthy = said->health == HEALTHY && said->error.len == 0,
            .attributes = own_attributes(all, name),
        };
        (void)text_copy(ret_state->description, sizeof(ret_state->description),
                        json_string_value(words)); /* cut is enough */
        text_whole(ret_state->description);
        json_decref(words);
    }
    json_decref(all);
    arena_free(&arena);
    return from.code;
}
