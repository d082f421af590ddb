/*
 * Host volumes as callers send them and as they are stored.
 *
 * Follows nomad v2.0.5 nomad/structs/host_volumes.go, whose words are used.
 */
#include "server/storage/part.h"

#include "spec/constraint.h"
#include "spec/names.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { HOSTED_BYTES_MAX = 64 << 10, CONSTRAINTS_MAX = 64 };

struct reading {
    const json_t *request;
    json_t *volume;
    char wrong[ERR_TEXT_SIZE];
};

__attribute__((format(printf, 2, 3))) static void complain(struct reading *reading,
                                                           const char *format, ...)
{
    char line[ERR_TEXT_SIZE];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(line, sizeof(line), format, arguments); /* cut if too long */
    va_end(arguments);
    text_whole(line);
    if (reading->wrong[0] != '\0')
        (void)text_append(reading->wrong, sizeof(reading->wrong), ", ");
    (void)text_append(reading->wrong, sizeof(reading->wrong), line); /* cut if too much is wrong */
}

static const json_t *given(const struct reading *reading, const char *name)
{
    const json_t *value = json_object_get(reading->request, name);

    return json_is_null(value) ? NULL : value;
}

static void keep(struct reading *reading, const char *name, json_t *value)
{
    check(json_object_set_new(reading->volume, name, value) == 0);
}

static const char *read_text(struct reading *reading, const char *name, size_t size)
{
    const json_t *value = given(reading, name);
    const char *text = json_string_value(value);

    if (value != NULL && (text == NULL || strlen(text) != json_string_length(value)))
        complain(reading, "%s is no text", name);
    else if (text != NULL && strlen(text) >= size)
        complain(reading, "%s is too long", name);
    else
        keep(reading, name, json_string(text == NULL ? "" : text));
    return registry_text(reading->volume, name);
}

static json_int_t read_bytes(struct reading *reading, const char *name)
{
    const json_t *value = given(reading, name);

    if (value != NULL && (!json_is_integer(value) || json_integer_value(value) < 0))
        complain(reading, "%s is no number of bytes", name);
    keep(reading, name, json_integer(json_integer_value(value)));
    return json_integer_value(value);
}

static bool is_one_of(const char *text, const char *const names[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (text_equal(text, names[i]))
            return true;
    }
    return false;
}

static void read_capabilities(struct reading *reading)
{
    static const char *const access_modes[] = {"single-node-reader-only", "single-node-writer",
                                               "single-node-single-writer",
                                               "single-node-multi-writer"};
    static const char *const attachments[] = {"file-system", "block-device"};
    const json_t *list = given(reading, "RequestedCapabilities"), *item;
    json_t *kept = json_array();
    size_t i;

    if (list != NULL && !json_is_array(list))
        complain(reading, "capabilities are no list of them");
    if (json_array_size(list) > REGISTRY_TERMS_MAX)
        complain(reading, "more than %d capability blocks", REGISTRY_TERMS_MAX);
    json_array_foreach(list, i, item)
    {
        const char *access = registry_text(item, "AccessMode");
        const char *attachment = registry_text(item, "AttachmentMode");

        if (!is_one_of(attachment, attachments, COUNT_OF(attachments)))
            complain(reading, "invalid attachment mode: \"%.40s\"", attachment);
        else if (!is_one_of(access, access_modes, COUNT_OF(access_modes)))
            complain(reading, "invalid access mode: \"%.40s\"", access);
        else
            check(json_array_append_new(kept, json_pack("{s:s, s:s}", "AttachmentMode", attachment,
                                                        "AccessMode", access)) == 0);
    }
    if (json_array_size(list) == 0)
        check(json_array_append_new(kept, json_pack("{s:s, s:s}", "AttachmentMode", "file-system",
                                                    "AccessMode", "single-node-writer")) == 0);
    keep(reading, "RequestedCapabilities", kept);
}

static void read_constraints(struct reading *reading)
{
    const json_t *list = given(reading, "Constraints"), *item;
    json_t *kept = json_array();
    struct err err = {0};
    size_t i;

    if ((list != NULL && !json_is_array(list)) || json_array_size(list) > CONSTRAINTS_MAX)
        complain(reading, "there may be %d constraints", CONSTRAINTS_MAX);
    json_array_foreach(list, i, item)
    {
        const char *operand = registry_text(item, "Operand");

        if (i >= CONSTRAINTS_MAX)
            break;
        if (constraint_check(item, false, &err) != 0)
            complain(reading, "invalid constraint: %s", err.text);
        else if (text_starts_with(operand, "distinct_"))
            complain(reading,
                     "invalid constraint %s: host volumes of the same name are always on distinct "
                     "hosts",
                     operand);
        else
            check(json_array_append_new(kept, json_deep_copy(item)) == 0);
    }
    keep(reading, "Constraints", kept);
}

static void read_parameters(struct reading *reading)
{
    const json_t *value = given(reading, "Parameters");

    if (!registry_is_map(value))
        complain(reading, "parameters are no texts by name");
    else
        keep(reading, "Parameters", value == NULL ? json_object() : json_deep_copy(value));
}

const char *storage_hosted_namespace(const json_t *request, const char *namespace)
{
    const char *own = registry_text(request, "Namespace");

    return own[0] == '\0' ? namespace : own;
}

static void read_names(struct reading *reading, const char *namespace)
{
    const char *in = storage_hosted_namespace(reading->request, namespace);
    const char *id = read_text(reading, "ID", UUID_TEXT_SIZE);
    const char *name = read_text(reading, "Name", SPEC_NAME_SIZE);
    const char *fault = name[0] == '\0' ? NULL : spec_volume_id_fault(name);

    if (id[0] != '\0' && !uuid_is_valid(id))
        complain(reading, "invalid ID \"%s\"", id);
    if (name[0] == '\0')
        complain(reading, "missing name");
    if (fault != NULL)
        complain(reading, "the name %s", fault);
    if (spec_namespace_fault(in) != NULL)
        complain(reading, "the namespace is none");
    else
        keep(reading, "Namespace", json_string(in));
}

static void read_path(struct reading *reading)
{
    const char *path = read_text(reading, "HostPath", sizeof(((struct spec_node_volume *)0)->path));

    if (path[0] != '\0' && path[0] != '/')
        complain(reading, "the host path has to be absolute");
    keep(reading, "Capacity", json_integer(read_bytes(reading, "CapacityBytes")));
    (void)json_object_del(reading->volume, "CapacityBytes"); /* it was put there */
}

int hosted_read(const json_t *request, const char *namespace, bool registers, json_t **ret_volume,
                struct err *err)
{
    struct reading reading = {.request = request, .volume = json_object()};

    read_names(&reading, namespace);
    (void)read_text(&reading, "PluginID", PLUGIN_NAME_SIZE); /* kept */
    (void)read_text(&reading, "NodeID", UUID_TEXT_SIZE);
    (void)read_text(&reading, "NodePool", SPEC_NAME_SIZE);
    json_int_t least = read_bytes(&reading, "RequestedCapacityMinBytes");
    json_int_t most = read_bytes(&reading, "RequestedCapacityMaxBytes");
    if (most == 0 && least > 0)
        complain(&reading, "capacity_min needs a capacity_max that is not smaller");
    else if (most < least)
        complain(&reading, "capacity_max (%lld) must be larger than capacity_min (%lld)",
                 (long long)most, (long long)least);
    read_capabilities(&reading);
    read_constraints(&reading);
    read_parameters(&reading);
    if (registers)
        read_path(&reading);
    if (json_dumpb(reading.volume, NULL, 0, JSON_COMPACT) > HOSTED_BYTES_MAX)
        complain(&reading, "it is too large");
    *ret_volume = reading.volume;
    if (reading.wrong[0] == '\0')
        return 0;
    json_decref(reading.volume);
    return err_set(err, ERR_INVALID, "volume validation failed: %s", reading.wrong);
}

const char *hosted_fault(const char *key, const json_t *json)
{
    static const char *const numbers[] = {"Capacity",    "RequestedCapacityMinBytes",
                                          "CreateIndex", "RequestedCapacityMaxBytes",
                                          "ModifyIndex", "CreateTime",
                                          "ModifyTime"};
    const char *path = registry_text(json, "HostPath");
    const json_t *change = json_object_get(json, "cairnChange");

    if (!json_is_object(json))
        return "not a volume";
    if (!registry_is_stored_as(key, HOSTED_PREFIX, json))
        return "not the volume that its key names, or neither ready nor being made or deleted";
    if (registry_text(json, "Name")[0] == '\0' ||
        strlen(registry_text(json, "Name")) >= SPEC_NAME_SIZE ||
        strlen(registry_text(json, "PluginID")) >= PLUGIN_NAME_SIZE)
        return "a volume without a name, or of no plugin";
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        const json_t *number = json_object_get(json, numbers[i]);
        if (!json_is_integer(number) || json_integer_value(number) < 0)
            return "a number that is none";
    }
    if (text_equal(registry_text(json, "cairnState"), registration_name(REGISTRATION_READY)) &&
        path[0] != '/')
        return "it is nowhere";
    if (strlen(path) >= sizeof(((struct spec_node_volume *)0)->path))
        return "a path that is too long";
    if (!registry_is_map(json_object_get(json, "Parameters")) ||
        !registry_is_map(json_object_get(change, "Parameters")))
        return "texts by name that are none";
    return NULL;
}
