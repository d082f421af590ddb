#include "plugins/device/device.h"

#include "plugins/protocol/plugin.pb-c.h"
#include "plugins/protocol/read.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    STATS_MAX = 1024, /* in one object */
    ENVS_MAX = 128,
    MOUNTS_MAX = SPEC_MOUNTS_MAX,
    PATH_BYTES_MAX = 1023,
    VALUE_BYTES_MAX = 4096,
};

/* --- devices --- */

static json_t *instance(struct reading *from, const Wire__Device *message)
{
    const char *bus = message->locality == NULL ? ""
                                                : reading_text(from, message->locality->pci_bus_id,
                                                               DEVICE_WORD_MAX, "a bus");
    json_t *made = json_pack("{s:s, s:b}", "ID", reading_word(from, message->id, "a device's ID"),
                             "Healthy", message->healthy);

    check(made != NULL);
    check(json_object_set_new(made, "HealthDescription",
                              reading_words(message->health_description)) == 0);
    check(json_object_set_new(made, "Locality",
                              bus[0] == '\0' ? json_null() : json_pack("{s:s}", "PciBusID", bus)) ==
          0);
    return made;
}

static int compare_ids(const void *a, const void *b)
{
    const json_t *const *left = a, *const *right = b;

    return strcmp(json_string_value(json_object_get(*left, "ID")),
                  json_string_value(json_object_get(*right, "ID")));
}

/* ARRAY (moved) in the order of its IDs, in which plugins do not keep them. */
static json_t *in_order(struct reading *from, json_t *array)
{
    size_t count = json_array_size(array);
    json_t **items = arena_new(from->arena, (count + 1) * sizeof(json_t *)),
           *ordered = json_array();

    for (size_t i = 0; i < count; i++)
        items[i] = json_array_get(array, i);
    qsort(items, count, sizeof(json_t *), compare_ids);
    for (size_t i = 0; i < count; i++)
        check(json_array_append(ordered, items[i]) == 0);
    json_decref(array);
    return ordered;
}

/* No ID comes twice. */
static json_t *instances(struct reading *from, const Wire__DeviceGroup *message)
{
    json_t *made = json_array(), *seen = json_object();

    if (reading_may_have(from, message->n_devices, NODE_DEVICES_MAX, "devices")) {
        for (size_t i = 0; i < message->n_devices && from->code == 0; i++) {
            json_t *one = instance(from, message->devices[i]);
            const char *id = json_string_value(json_object_get(one, "ID"));

            if (json_object_get(seen, id) != NULL)
                reading_refuse(from, ERR_INVALID, "a device's ID", "comes twice");
            check(json_object_set_new(seen, id, json_true()) == 0);
            check(json_array_append_new(made, one) == 0);
        }
    }
    json_decref(seen);
    return in_order(from, made);
}

static json_t *group(struct reading *from, const Wire__DeviceGroup *message)
{
    json_t *made =
        json_pack("{s:s, s:s, s:s}", "Vendor", reading_word(from, message->vendor, "a vendor"),
                  "Type", reading_word(from, message->type, "a type"), "Name",
                  reading_word(from, message->name, "a name"));

    check(made != NULL);
    check(json_object_set_new(made, "Instances", instances(from, message)) == 0);
    check(json_object_set_new(
              made, "Attributes",
              reading_attributes(from, message->attributes, message->n_attributes)) == 0);
    return made;
}

json_t *device_read_groups(const void *bytes, size_t length, struct err *err)
{
    struct arena arena = {0};
    struct reading from = reading_begin(&arena, err);
    const Wire__FingerprintAnswer *message =
        reading_unpack(&from, &wire__fingerprint_answer__descriptor, bytes, length);
    json_t *made = json_array();

    if (message != NULL &&
        reading_may_have(&from, message->n_groups, DEVICE_GROUPS_MAX, "groups of devices")) {
        for (size_t i = 0; i < message->n_groups && from.code == 0; i++)
            check(json_array_append_new(made, group(&from, message->groups[i])) == 0);
    }
    arena_free(&arena);
    if (from.code == 0)
        return made;
    json_decref(made);
    return NULL;
}

/* --- reservations --- */

char *device_ask_reserve(const json_t *ids, size_t *ret_length)
{
    size_t count = json_array_size(ids);
    Wire__ReserveRequest request = WIRE__RESERVE_REQUEST__INIT;
    ProtobufCBinaryData *list = calloc(count + 1, sizeof(*list));

    check(list != NULL);
    for (size_t i = 0; i < count; i++) {
        const json_t *id = json_array_get(ids, i);

        list[i].data = (uint8_t *)(uintptr_t)json_string_value(id);
        list[i].len = json_string_length(id);
    }
    request.ids = list;
    request.n_ids = count;
    *ret_length = wire__reserve_request__get_packed_size(&request);
    char *bytes = malloc(*ret_length + 1);
    check(bytes != NULL);
    check(wire__reserve_request__pack(&request, (uint8_t *)bytes) == *ret_length);
    free(list);
    return bytes;
}

static const char *path(struct reading *from, ProtobufCBinaryData bytes, const char *what)
{
    const char *text = reading_needed(from, bytes, PATH_BYTES_MAX, what);

    if (text[0] != '\0' && (text[0] != '/' || strpbrk(text, "\t\n") != NULL))
        reading_refuse(from, ERR_INVALID, what, "is no absolute path on one line");
    return text;
}

static void read_envs(struct reading *from, const Wire__Reservation *message,
                      struct spec_reservation *reservation)
{
    size_t count = message->n_envs;

    if (!reading_may_have(from, count, ENVS_MAX, "variables"))
        return;
    reservation->envs.items = arena_new(from->arena, (count + 1) * sizeof(struct spec_pair));
    reservation->envs.count = count;
    for (size_t i = 0; i < count; i++) {
        const char *key = reading_word(from, message->envs[i]->key, "a variable's name");

        if (strchr(key, '=') != NULL)
            reading_refuse(from, ERR_INVALID, "a variable's name", "has a =");
        reservation->envs.items[i] = (struct spec_pair){
            key, reading_text(from, message->envs[i]->value, VALUE_BYTES_MAX, "a variable")};
    }
}

static void read_mount(struct reading *from, const Wire__ReservedMount *message,
                       struct spec_reserved *mount)
{
    *mount = (struct spec_reserved){
        .inside = path(from, message->task_path, "a mount's path in the task"),
        .host = path(from, message->host_path, "a mount's path on the host"),
        .read_only = message->read_only,
    };
}

static void read_node(struct reading *from, const Wire__ReservedDevice *message,
                      struct spec_reserved *node)
{
    const char *permissions =
        reading_text(from, message->permissions, DEVICE_WORD_MAX, "permissions");

    if (strspn(permissions, "rwm") != strlen(permissions))
        reading_refuse(from, ERR_INVALID, "permissions", "are of r, w and m");
    *node = (struct spec_reserved){
        .inside = path(from, message->task_path, "a device's path in the task"),
        .host = path(from, message->host_path, "a device's path on the host"),
        .permissions = permissions[0] == '\0' ? "rwm" : permissions,
    };
}

static void read_items(struct reading *from, const Wire__Reservation *message,
                       struct spec_reservation *reservation)
{
    size_t mounts = message->n_mounts, nodes = message->n_devices;

    if (!reading_may_have(from, mounts, MOUNTS_MAX, "mounts") ||
        !reading_may_have(from, nodes, MOUNTS_MAX, "nodes of devices"))
        return;
    reservation->items = arena_new(from->arena, (mounts + nodes + 1) * sizeof(*reservation->items));
    reservation->count = mounts + nodes;
    for (size_t i = 0; i < mounts; i++)
        read_mount(from, message->mounts[i], &reservation->items[i]);
    for (size_t i = 0; i < nodes; i++)
        read_node(from, message->devices[i], &reservation->items[mounts + i]);
}

int device_read_reservation(const void *bytes, size_t length, struct arena *arena,
                            struct spec_reservation *ret_reservation, struct err *err)
{
    struct reading from = reading_begin(arena, err);
    const Wire__ReserveAnswer *message =
        reading_unpack(&from, &wire__reserve_answer__descriptor, bytes, length);

    *ret_reservation = (struct spec_reservation){.count = 0};
    if (message == NULL || message->reservation == NULL)
        return from.code;
    read_envs(&from, message->reservation, ret_reservation);
    read_items(&from, message->reservation, ret_reservation);
    return from.code;
}

/* --- statistics --- */

static void set_new(json_t *object, const char *field, json_t *value)
{
    check(json_object_set_new(object, field, value) == 0);
}

static json_t *stat_value(struct reading *from, const Wire__StatValue *message)
{
    json_t *made = json_object();

    if (message->float_numerator != NULL)
        set_new(made, "FloatNumeratorVal", reading_number(from, message->float_numerator->value));
    if (message->float_denominator != NULL)
        set_new(made, "FloatDenominatorVal",
                reading_number(from, message->float_denominator->value));
    if (message->int_numerator != NULL)
        set_new(made, "IntNumeratorVal", json_integer(message->int_numerator->value));
    if (message->int_denominator != NULL)
        set_new(made, "IntDenominatorVal", json_integer(message->int_denominator->value));
    if (message->string_value != NULL)
        set_new(made, "StringVal", reading_words(message->string_value->value));
    if (message->bool_value != NULL)
        set_new(made, "BoolVal", json_boolean(message->bool_value->value));
    if (message->unit.len > 0)
        set_new(made, "Unit", reading_words(message->unit));
    if (message->description.len > 0)
        set_new(made, "Desc", reading_words(message->description));
    return made;
}

static json_t *stat_object(struct reading *from, ProtobufCBinaryData bytes, unsigned depth)
{
    const Wire__StatObject *message =
        reading_unpack(from, &wire__stat_object__descriptor, bytes.data, bytes.len);
    json_t *nested = json_object(), *values = json_object();

    if (depth > READ_DEPTH_MAX)
        reading_refuse(from, ERR_LIMIT, "its statistics", "are too deep");
    if (message != NULL && from->code == 0 &&
        reading_may_have(from, message->n_nested + message->n_attributes, STATS_MAX,
                         "its statistics")) {
        for (size_t i = 0; i < message->n_nested && from->code == 0; i++)
            set_new(nested, reading_word(from, message->nested[i]->key, "a name in its statistics"),
                    stat_object(from, message->nested[i]->value, depth + 1));
        for (size_t i = 0; i < message->n_attributes && from->code == 0; i++) {
            ProtobufCBinaryData value = message->attributes[i]->value;
            const char *key =
                reading_word(from, message->attributes[i]->key, "a name in its statistics");
            const Wire__StatValue *stat =
                reading_unpack(from, &wire__stat_value__descriptor, value.data, value.len);

            if (stat != NULL)
                set_new(values, key, stat_value(from, stat));
        }
    }
    json_t *made = json_pack("{s:o, s:o}", "Nested", nested, "Attributes", values);
    check(made != NULL);
    return made;
}

static json_t *timestamp(const Wire__Duration *message)
{
    char text[64], whole[40];
    struct tm broken;
    time_t seconds = message == NULL ? 0 : (time_t)message->seconds;

    /* What is before 1970 is the zero time of Go. */
    if (message == NULL || message->seconds < 0 || message->seconds > 253402300799 ||
        message->nanos < 0 || message->nanos > 999999999 || gmtime_r(&seconds, &broken) == NULL)
        return json_string("0001-01-01T00:00:00Z");
    check(strftime(whole, sizeof(whole), "%Y-%m-%dT%H:%M:%S", &broken) > 0);
    (void)text_format(text, sizeof(text), "%s.%09dZ", whole, (int)message->nanos); /* fits */
    return json_string(text);
}

static json_t *instance_stats(struct reading *from, ProtobufCBinaryData bytes)
{
    const Wire__InstanceStats *message =
        reading_unpack(from, &wire__instance_stats__descriptor, bytes.data, bytes.len);

    if (message == NULL)
        return json_null();
    json_t *made = json_pack(
        "{s:o, s:o, s:o}", "Summary",
        message->summary == NULL ? json_null() : stat_value(from, message->summary), "Stats",
        stat_object(from, message->stats, 0), "Timestamp", timestamp(message->timestamp));
    check(made != NULL);
    return made;
}

static json_t *group_stats(struct reading *from, const Wire__GroupStats *message)
{
    json_t *all = json_object();

    if (reading_may_have(from, message->n_instances, NODE_DEVICES_MAX, "devices")) {
        for (size_t i = 0; i < message->n_instances && from->code == 0; i++) {
            const char *id = reading_word(from, message->instances[i]->key, "a device's ID");

            set_new(all, id, instance_stats(from, message->instances[i]->value));
        }
    }
    json_t *made =
        json_pack("{s:s, s:s, s:s, s:o}", "Vendor", reading_word(from, message->vendor, "a vendor"),
                  "Type", reading_word(from, message->type, "a type"), "Name",
                  reading_word(from, message->name, "a name"), "InstanceStats", all);
    check(made != NULL);
    return made;
}

json_t *device_read_stats(const void *bytes, size_t length, struct err *err)
{
    struct arena arena = {0};
    struct reading from = reading_begin(&arena, err);
    const Wire__StatsAnswer *message =
        reading_unpack(&from, &wire__stats_answer__descriptor, bytes, length);
    json_t *made = json_array();

    if (message != NULL &&
        reading_may_have(&from, message->n_groups, DEVICE_GROUPS_MAX, "groups of devices")) {
        for (size_t i = 0; i < message->n_groups && from.code == 0; i++)
            check(json_array_append_new(made, group_stats(&from, message->groups[i])) == 0);
    }
    arena_free(&arena);
    if (from.code == 0)
        return made;
    json_decref(made);
    return NULL;
}
