/*
 * Volumes as callers send them and as they are stored.
 *
 * Follows nomad v2.0.5 nomad/structs/csi.go (CSIVolume.Validate).  Fields that Nomad fills in by
 * itself are passed over: whoever changes what a GET has shown him sends them back.
 */
#include "server/storage/part.h"

#include "spec/names.h"

#include <string.h>

enum {
    VALUES_BYTES_MAX = 64 << 10, /* of one volume, all texts together */
    VALUES_MAX = 256,            /* of one list or map */
    FLAGS_MAX = 64,
    SECRETS_BYTES_MAX = 4096, /* as the specification of CSI bounds them */
    ID_SIZE = 257,            /* of what plugins name: 256 bytes */
    EXTERNAL_SIZE = sizeof(((struct claim *)0)->external),
};

#define SECRET_NAME "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."

static const char *const registration_names[REGISTRATION_STATE_COUNT] = {
    [REGISTRATION_READY] = "ready",
    [REGISTRATION_CREATING] = "creating",
    [REGISTRATION_DELETING] = "deleting",
};

const char *registration_name(enum registration_state state)
{
    check((unsigned)state < REGISTRATION_STATE_COUNT);
    return registration_names[state];
}

const char *registry_text(const json_t *volume, const char *name)
{
    const char *text = json_string_value(json_object_get(volume, name));

    return text == NULL ? "" : text;
}

const char *registry_remote_id(const json_t *volume)
{
    const char *external = registry_text(volume, "ExternalID");

    return external[0] == '\0' ? registry_text(volume, "ID") : external;
}

/* --- secrets --- */

static void wipe_texts(json_t *value)
{
    json_t *item;
    const char *name;
    size_t i;

    json_object_foreach(value, name, item) wipe_texts(item);
    json_array_foreach(value, i, item) wipe_texts(item);
    if (json_is_string(value))
        explicit_bzero((char *)(uintptr_t)json_string_value(value), json_string_length(value));
}

void storage_wipe(json_t *secrets)
{
    wipe_texts(secrets);
    json_decref(secrets);
}

/* --- what callers send --- */

/* All that is wrong is told at once. */
struct reading {
    const json_t *request;
    json_t *volume;
    char wrong[ERR_TEXT_SIZE];
};

static void complain(struct reading *reading, const char *what)
{
    if (reading->wrong[0] != '\0')
        (void)text_append(reading->wrong, sizeof(reading->wrong), ", ");
    (void)text_append(reading->wrong, sizeof(reading->wrong), what); /* cut if too much is wrong */
}

static void complain_of(struct reading *reading, const char *name, const char *what)
{
    char line[ERR_TEXT_SIZE];

    (void)text_format(line, sizeof(line), "%s %s", name, what); /* fits */
    complain(reading, line);
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

static void read_text(struct reading *reading, const char *name, size_t size)
{
    const json_t *value = given(reading, name);
    const char *text = json_string_value(value);

    if (value != NULL && (text == NULL || strlen(text) != json_string_length(value)))
        complain_of(reading, name, "is no text");
    else if (text != NULL && strlen(text) >= size)
        complain_of(reading, name, "is too long");
    else
        keep(reading, name, json_string(text == NULL ? "" : text));
}

static void read_bytes(struct reading *reading, const char *name)
{
    const json_t *value = given(reading, name);

    if (value != NULL && (!json_is_integer(value) || json_integer_value(value) < 0))
        complain_of(reading, name, "is no number of bytes");
    else
        keep(reading, name, json_integer(json_integer_value(value)));
}

bool registry_is_map(const json_t *value)
{
    json_t *item;
    const char *name;

    if (value != NULL && (!json_is_object(value) || json_object_size(value) > VALUES_MAX))
        return false;
    json_object_foreach((json_t *)(uintptr_t)value, name, item)
    {
        if (!json_is_string(item) || strlen(json_string_value(item)) != json_string_length(item))
            return false;
    }
    return true;
}

static void read_map(struct reading *reading, const char *name)
{
    const json_t *value = given(reading, name);

    if (!registry_is_map(value))
        complain_of(reading, name, "are no texts by name");
    else
        keep(reading, name, value == NULL ? json_object() : json_deep_copy(value));
}

static bool is_topologies(const json_t *list)
{
    const json_t *item;
    size_t i;

    if (list != NULL && !json_is_null(list) &&
        (!json_is_array(list) || json_array_size(list) > VALUES_MAX))
        return false;
    json_array_foreach(list, i, item)
    {
        const json_t *segments = json_object_get(item, "Segments");
        if (!json_is_object(segments) || json_object_size(segments) == 0 ||
            !registry_is_map(segments))
            return false;
    }
    return true;
}

static void read_topologies(struct reading *reading)
{
    static const char *const names[] = {"Required", "Preferred"};
    const json_t *request = given(reading, "RequestedTopologies");
    json_t *kept = json_object();

    if (request != NULL && !json_is_object(request))
        complain_of(reading, "RequestedTopologies", "is no block");
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        json_t *list = json_object_get(request, names[i]);
        if (!is_topologies(list))
            complain_of(reading, i == 0 ? "required" : "preferred",
                        "topology is missing segments field");
        else if (json_array_size(list) > 0)
            check(json_object_set_new(kept, names[i], json_deep_copy(list)) == 0);
    }
    keep(reading, "RequestedTopologies", json_object_size(kept) == 0 ? json_null() : kept);
    if (json_object_size(kept) == 0)
        json_decref(kept);
}

/* Nomad's words for what a volume can be claimed as. */
static bool read_term(const json_t *item, struct claim_terms *ret_term)
{
    enum csi_access access;
    enum csi_attachment attachment;

    if (!spec_access(registry_text(item, "AccessMode"), &access) ||
        !spec_attachment(registry_text(item, "AttachmentMode"), &attachment))
        return false;
    *ret_term = (struct claim_terms){.access = (uint8_t)access, .attachment = (uint8_t)attachment};
    return true;
}

static void complain_of_term(struct reading *reading, const json_t *item)
{
    const char *mode = registry_text(item, "AccessMode"), *name = "access_mode",
               *modes = "single-node-reader-only, single-node-writer, multi-node-reader-only, "
                        "multi-node-single-writer, multi-node-multi-writer";
    enum csi_access access;
    char line[ERR_TEXT_SIZE];

    if (spec_access(mode, &access)) {
        mode = registry_text(item, "AttachmentMode");
        name = "attachment_mode";
        modes = "file-system, block-device";
    }
    if (mode[0] == '\0')
        (void)text_format(line, sizeof(line), "a capability block has no %s", name); /* fits */
    else
        (void)text_format(line, sizeof(line), "%s \"%.40s\" is none of %s", name, mode, modes);
    complain(reading, line);
}

static void read_capabilities(struct reading *reading)
{
    const json_t *list = given(reading, "RequestedCapabilities"), *item;
    struct claim_terms term;
    json_t *kept = json_array();
    size_t i;

    if (json_array_size(list) == 0)
        complain(reading, "must include at least one capability block");
    if (json_array_size(list) > REGISTRY_TERMS_MAX)
        complain(reading, "has too many capability blocks");
    json_array_foreach(list, i, item)
    {
        if (!read_term(item, &term)) {
            complain_of_term(reading, item);
            continue;
        }
        check(json_array_append_new(
                  kept, json_pack("{s:s, s:s}", "AccessMode",
                                  spec_access_name((enum csi_access)term.access), "AttachmentMode",
                                  spec_attachment_name((enum csi_attachment)term.attachment))) ==
              0);
    }
    keep(reading, "RequestedCapabilities", kept);
}

static bool is_flags(const json_t *flags)
{
    const json_t *flag;
    size_t i;

    if (flags != NULL && !json_is_null(flags) &&
        (!json_is_array(flags) || json_array_size(flags) > FLAGS_MAX))
        return false;
    json_array_foreach(flags, i, flag)
    {
        if (!json_is_string(flag) || strlen(json_string_value(flag)) != json_string_length(flag))
            return false;
    }
    return true;
}

/* True if plugins can be given SECRETS: they have names of letters, digits and "-_.". */
static bool are_secrets(json_t *secrets)
{
    const char *name;
    json_t *value;
    size_t bytes = 0;

    if (!registry_is_map(secrets))
        return false;
    json_object_foreach(secrets, name, value)
    {
        if (name[0] == '\0' || name[strspn(name, SECRET_NAME)] != '\0')
            return false;
        bytes += strlen(name) + json_string_length(value);
    }
    return bytes <= SECRETS_BYTES_MAX;
}

/* Mount options may hold passwords: of the flags is kept here only that there are some. */
static void read_secrets(struct reading *reading, json_t *secret)
{
    const json_t *options = given(reading, "MountOptions");
    json_t *secrets = json_object_get(reading->request, "Secrets");
    json_t *flags = json_object_get(options, "MountFlags");
    json_t *fs_type = json_object_get(options, "FSType");

    if (options != NULL && !json_is_object(options))
        complain_of(reading, "MountOptions", "is no block");
    if (fs_type != NULL && !json_is_null(fs_type) && !json_is_string(fs_type))
        complain_of(reading, "fs_type", "is no text");
    keep(reading, "MountOptions", json_pack("{s:s}", "FSType", registry_text(options, "FSType")));
    if (!is_flags(flags))
        complain_of(reading, "mount_flags", "is no list of texts");
    else if (json_array_size(flags) > 0)
        check(json_object_set_new(secret, "MountFlags", json_deep_copy(flags)) == 0);
    keep(reading, "cairnMountFlags", json_boolean(json_array_size(flags) > 0));
    if (json_is_null(secrets))
        secrets = NULL;
    if (!are_secrets(secrets))
        complain(reading, "secrets have names of letters, digits, \"-\", \"_\" and \".\", and "
                          "together at most 4096 bytes");
    else if (json_object_size(secrets) > 0)
        check(json_object_set_new(secret, "Secrets", json_deep_copy(secrets)) == 0);
}

/* An id is part of paths here and of the API's addresses. */
static void read_id(struct reading *reading, const char *namespace)
{
    const char *id = registry_text(reading->request, "ID");
    const char *own = registry_text(reading->request, "Namespace");
    const char *fault = id[0] == '\0' ? NULL : spec_volume_id_fault(id);

    read_text(reading, "ID", REGISTRY_ID_SIZE);
    if (id[0] == '\0')
        complain(reading, "missing volume id");
    if (fault != NULL)
        complain_of(reading, "the volume's id", fault);
    if (registry_text(reading->request, "PluginID")[0] == '\0')
        complain(reading, "missing plugin id");
    keep(reading, "Namespace", json_string(own[0] == '\0' ? namespace : own));
    if (spec_namespace_fault(own[0] == '\0' ? namespace : own) != NULL)
        complain_of(reading, "the namespace", "is none");
}

int registry_read(const json_t *request, const char *namespace, json_t **ret_volume,
                  json_t **ret_secret, struct err *err)
{
    struct reading reading = {.request = request, .volume = json_object()};
    json_t *secret = json_object();

    read_id(&reading, namespace);
    read_text(&reading, "Name", ID_SIZE);
    read_text(&reading, "ExternalID", EXTERNAL_SIZE);
    read_text(&reading, "PluginID", PLUGIN_NAME_SIZE);
    read_text(&reading, "CloneID", ID_SIZE);
    read_text(&reading, "SnapshotID", ID_SIZE);
    if (registry_text(request, "CloneID")[0] != '\0' &&
        registry_text(request, "SnapshotID")[0] != '\0')
        complain(&reading, "only one of snapshot_id and clone_id is allowed");
    read_capabilities(&reading);
    read_topologies(&reading);
    read_bytes(&reading, "RequestedCapacityMin");
    read_bytes(&reading, "RequestedCapacityMax");
    read_map(&reading, "Parameters");
    read_map(&reading, "Context");
    read_secrets(&reading, secret);
    if (json_dumpb(reading.volume, NULL, 0, JSON_COMPACT) > VALUES_BYTES_MAX ||
        json_dumpb(secret, NULL, 0, JSON_COMPACT) > VALUES_BYTES_MAX)
        complain(&reading, "it is too large");
    *ret_volume = reading.volume;
    *ret_secret = secret;
    if (reading.wrong[0] == '\0')
        return 0;
    json_decref(reading.volume);
    storage_wipe(secret);
    return err_set(err, ERR_INVALID, "validation: %s", reading.wrong);
}

/* --- what is stored --- */

struct volume_define registry_define(const json_t *volume)
{
    struct volume_define define = {0};

    (void)text_copy(define.plugin, sizeof(define.plugin), registry_text(volume, "PluginID"));
    (void)text_copy(define.namespace, sizeof(define.namespace), registry_text(volume, "Namespace"));
    (void)text_copy(define.volume, sizeof(define.volume), registry_text(volume, "ID"));
    return define;
}

size_t registry_terms(const json_t *volume, struct claim_terms ret_terms[REGISTRY_TERMS_MAX])
{
    const json_t *item;
    size_t i, count = 0;

    json_array_foreach(json_object_get(volume, "RequestedCapabilities"), i, item)
    {
        if (count < REGISTRY_TERMS_MAX && read_term(item, &ret_terms[count]))
            count++;
    }
    return count;
}

bool registry_grows(const json_t *volume)
{
    return json_object_get(volume, "cairnExpands") != NULL || registry_grows_on_node(volume);
}

bool registry_grows_on_node(const json_t *volume)
{
    return json_object_get(volume, "cairnExpands") == NULL &&
           json_object_get(volume, "cairnGrows") != NULL;
}

static bool is_range(const json_t *range)
{
    const json_t *min = json_array_get(range, 0), *max = json_array_get(range, 1);

    return range == NULL || (json_is_integer(min) && json_is_integer(max) &&
                             json_integer_value(min) >= 0 && json_integer_value(max) >= 0);
}

static bool is_state(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(registration_names); i++) {
        if (text_equal(name, registration_names[i]))
            return true;
    }
    return false;
}

bool registry_is_stored_as(const char *key, const char *prefix, const json_t *json)
{
    const char *id = registry_text(json, "ID"), *namespace = registry_text(json, "Namespace");
    char own_key[JOURNAL_KEY_SIZE];

    return id[0] != '\0' && strlen(id) < REGISTRY_ID_SIZE &&
           strlen(namespace) < SPEC_NAMESPACE_SIZE &&
           text_format(own_key, sizeof(own_key), "%s/%s/%s", prefix, namespace, id) &&
           text_equal(own_key, key) && is_state(registry_text(json, "cairnState"));
}

const char *registry_fault(const char *key, const json_t *json)
{
    static const char *const numbers[] = {
        "Capacity",    "RequestedCapacityMin", "CreateIndex", "RequestedCapacityMax",
        "ModifyIndex", "CreateTime",           "ModifyTime"};

    if (!json_is_object(json))
        return "not a volume";
    if (!registry_is_stored_as(key, REGISTRY_PREFIX, json))
        return "not the volume that its key names, or neither ready nor being made or deleted";
    if (registry_text(json, "PluginID")[0] == '\0' ||
        strlen(registry_text(json, "PluginID")) >= PLUGIN_NAME_SIZE ||
        strlen(registry_text(json, "ExternalID")) >= EXTERNAL_SIZE)
        return "a volume of no plugin";
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        const json_t *number = json_object_get(json, numbers[i]);
        if (!json_is_integer(number) || json_integer_value(number) < 0)
            return "a number that is none";
    }
    if (!registry_is_map(json_object_get(json, "Context")) ||
        !registry_is_map(json_object_get(json, "Parameters")))
        return "texts by name that are none";
    if (!is_range(json_object_get(json, "cairnExpands")) ||
        !is_range(json_object_get(json, "cairnGrows")))
        return "it is to have a size that is none";
    return NULL;
}
