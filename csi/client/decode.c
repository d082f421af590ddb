/*
 * Answers: bytes of a plugin unpacked by protobuf-c, judged, and put into cairn's structs.
 *
 * A plugin may be wrong or hostile: all that is unpacked comes out of an arena with a bound, since
 * an entry of two bytes unpacks to a hundred, and every text is bounded, UTF-8 and without NUL
 * before anybody has it.
 */
#include "csi/client/part.h"

#include "csi/client/csi.pb-c.h"

#include <string.h>

struct decoding {
    struct arena *arena;
    struct err *err;
    int code; /* of the first thing that is wrong */
    size_t bytes_left;
};

static void *bounded_alloc(void *ctx, size_t size)
{
    struct decoding *from = ctx;

    if (size > from->bytes_left) {
        from->bytes_left = 0; /* and nothing smaller either */
        return NULL;
    }
    from->bytes_left -= size;
    return arena_new(from->arena, size);
}

static void bounded_free(void *ctx, void *memory)
{
    (void)ctx; /* goes with the arena */
    (void)memory;
}

/* --- texts and maps --- */

static void refuse(struct decoding *from, int code, const char *what, const char *why)
{
    if (from->code == 0)
        from->code = err_set(from->err, code, "its answer is not valid: %s %s", what, why);
}

/* Memory for COUNT entries of BYTES each, NULL if that is too much; also for what comes later. */
static void *entries(struct decoding *from, size_t count, size_t bytes, size_t count_max,
                     const char *what)
{
    if (count > count_max) {
        refuse(from, ERR_LIMIT, what, "has more entries than are taken");
        return NULL;
    }
    return arena_new(from->arena, count * bytes);
}

static const char *text(struct decoding *from, ProtobufCBinaryData bytes, size_t bytes_max,
                        const char *what)
{
    if (bytes.len > bytes_max)
        refuse(from, ERR_LIMIT, what, "is longer than is allowed");
    else if (bytes.len > 0 && !text_is_utf8((const char *)bytes.data, bytes.len))
        refuse(from, ERR_INVALID, what, "is not UTF-8 without NUL");
    else if (bytes.len > 0)
        return arena_copy(from->arena, (const char *)bytes.data, bytes.len);
    return "";
}

static const char *needed_text(struct decoding *from, ProtobufCBinaryData bytes, size_t bytes_max,
                               const char *what)
{
    if (bytes.len == 0)
        refuse(from, ERR_INVALID, what, "is missing");
    return text(from, bytes, bytes_max, what);
}

static struct csi_map map(struct decoding *from, Csi__V1__Pair *const *pairs, size_t count,
                          const char *what)
{
    struct csi_pair *list = entries(from, count, sizeof(*list), CSI_MAP_BYTES_MAX, what);
    size_t bytes = 0;

    for (size_t i = 0; list != NULL && i < count; i++) {
        list[i].key = text(from, pairs[i]->key, CSI_MAP_BYTES_MAX, what);
        list[i].value = text(from, pairs[i]->value, CSI_MAP_BYTES_MAX, what);
        bytes += pairs[i]->key.len + pairs[i]->value.len;
        if (bytes > CSI_MAP_BYTES_MAX) {
            refuse(from, ERR_LIMIT, what, "is longer than is allowed");
            break;
        }
    }
    return from->code != 0 ? (struct csi_map){0} : (struct csi_map){list, count};
}

static int64_t size_in_bytes(struct decoding *from, int64_t bytes, const char *what)
{
    if (bytes < 0)
        refuse(from, ERR_INVALID, what, "is negative");
    return bytes;
}

/* --- what several answers have --- */

static struct csi_condition condition(struct decoding *from,
                                      const Csi__V1__VolumeCondition *message)
{
    if (message == NULL)
        return (struct csi_condition){.text = ""};
    return (struct csi_condition){
        .known = true,
        .abnormal = message->abnormal,
        .text = text(from, message->message, CSI_TEXT_MAX, "volume_condition"),
    };
}

static void volume(struct decoding *from, const Csi__V1__Volume *message, struct csi_volume *to)
{
    if (message == NULL) {
        refuse(from, ERR_INVALID, "volume", "is missing");
        return;
    }
    to->id = needed_text(from, message->volume_id, CSI_ID_MAX, "volume_id");
    to->bytes = size_in_bytes(from, message->capacity_bytes, "capacity_bytes");
    to->context = map(from, message->volume_context, message->n_volume_context, "volume_context");
    to->condition.text = "";
    const Csi__V1__VolumeContentSource *source = message->content_source;
    if (source != NULL && source->type_case == CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_SNAPSHOT)
        to->snapshot_id = text(from, source->snapshot->snapshot_id, CSI_ID_MAX, "content_source");
    if (source != NULL && source->type_case == CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_VOLUME)
        to->source_volume_id = text(from, source->volume->volume_id, CSI_ID_MAX, "content_source");

    size_t count = message->n_accessible_topology;
    struct csi_map *topologies =
        entries(from, count, sizeof(*topologies), CSI_TOPOLOGIES_MAX, "accessible_topology");
    for (size_t i = 0; topologies != NULL && i < count; i++)
        topologies[i] = map(from, message->accessible_topology[i]->segments,
                            message->accessible_topology[i]->n_segments, "accessible_topology");
    to->topologies = topologies;
    to->topologies_count = topologies == NULL ? 0 : count;
}

static void snapshot(struct decoding *from, const Csi__V1__Snapshot *message,
                     struct csi_snapshot *to)
{
    if (message == NULL) {
        refuse(from, ERR_INVALID, "snapshot", "is missing");
        return;
    }
    to->id = needed_text(from, message->snapshot_id, CSI_ID_MAX, "snapshot_id");
    to->source_volume_id = text(from, message->source_volume_id, CSI_ID_MAX, "source_volume_id");
    to->bytes = size_in_bytes(from, message->size_bytes, "size_bytes");
    to->made_unix_s = message->creation_time == NULL ? 0 : message->creation_time->seconds;
    to->ready = message->ready_to_use;
}

static void capability(struct decoding *from, const Csi__V1__VolumeCapability *message,
                       struct csi_capability *to)
{
    int32_t mode = message->access_mode == NULL ? 0 : message->access_mode->mode;

    to->access = mode > 0 && mode < CSI_ACCESS_COUNT ? (enum csi_access)mode : CSI_ACCESS_UNKNOWN;
    to->block = message->access_type_case == CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_BLOCK;
    to->fs_type = "";
    if (message->access_type_case != CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT)
        return;
    to->fs_type = text(from, message->mount->fs_type, CSI_STRING_MAX, "fs_type");
    size_t count = message->mount->n_mount_flags;
    const char **flags = entries(from, count, sizeof(*flags), CSI_MAP_BYTES_MAX, "mount_flags");
    for (size_t i = 0; flags != NULL && i < count; i++)
        flags[i] = text(from, message->mount->mount_flags[i], CSI_MAP_BYTES_MAX, "mount_flags");
    to->flags = flags;
    to->flags_count = flags == NULL ? 0 : count;
}

/* --- the answers --- */

static void read_plugin_info(struct decoding *from, const void *bytes, struct csi_answer *to)
{
    const Csi__V1__GetPluginInfoResponse *message = bytes;

    to->name = needed_text(from, message->name, CSI_PLUGIN_NAME_MAX, "name");
    to->version = text(from, message->vendor_version, CSI_STRING_MAX, "vendor_version");
    (void)map(from, message->manifest, message->n_manifest, "manifest"); /* only judged */
}

/* A number of the specification that we do not know is no capability for us. */
static void read_capabilities(struct decoding *from, const void *bytes, struct csi_answer *to)
{
    const Csi__V1__Capabilities *message = bytes;
    (void)from;

    for (size_t i = 0; i < message->n_capabilities; i++) {
        const Csi__V1__Capability *one = message->capabilities[i];

        if (one->service != NULL && one->service->type > 0 && one->service->type < 32)
            to->capabilities |= 1u << one->service->type;
        to->expands_online |= one->volume_expansion != NULL && one->volume_expansion->type == 1;
        to->expands_offline |= one->volume_expansion != NULL && one->volume_expansion->type == 2;
    }
}

static void read_probe(struct decoding *from, const void *bytes, struct csi_answer *to)
{
    const Csi__V1__ProbeResponse *message = bytes;
    (void)from;

    to->ready = message->ready == NULL || message->ready->value; /* silence is consent */
}

static void read_create_volume(struct decoding *from, const void *bytes, struct csi_answer *to)
{
    const Csi__V1__CreateVolumeResponse *message = bytes;
    struct csi_volume *made = arena_new(from->arena, sizeof(*made));

    volume(from, message->volume, made);
    to->volumes = made;
    to->volumes_count = 1;
}

static void read_controller_publish(struct decoding *from, const void *bytes, struct csi_answer *to)
{
    const Csi__V1__ControllerPublishVolumeResponse *message = bytes;

    to->publish_context =
        map(from, message->publish_context, message->n_publish_context, "publish_context");
}

static void read_validate(struct decoding *from, const void *bytes, struct csi_answer *to)
{
    const Csi__V1__ValidateVolumeCapabilitiesResponse *message = bytes;

    to->text = text(from, message->message, CSI_TEXT_MAX, "message");
    to->confirmed = message->confirmed != NULL;
    if (!to->confirmed)
        return;
    size_t count = message->confirmed->n_volume_capabilities;
    struct csi_capability *list =
        entries(from, count, sizeof(*list), CSI_CAPABILITIES_MAX, "volume_capabilities");
    for (size_t i = 0; list != NULL && i < count; i++)
        capability(from, message->confirmed->volume_capabilities[i], &list[i]);
    to->capabilities_confirmed = list;
    to->capabilities_confirmed_count = list == NULL ? 0 : count;
}

static void read_list_volumes(struct decoding *from, const void *bytes, struct csi_answer *to)
{
    const Csi__V1__ListVolumesResponse *message = bytes;
    size_t count = message->n_entries;
    struct csi_volume *list = entries(from, count, sizeof(*list), CSI_ENTRIES_MAX, "entries");

    for (size_t i = 0; list != NULL && from->code == 0 && i < count; i++) {
        const Csi__V1__ListVolumesResponse__VolumeStatus *status = message->entries[i]->status;

        volume(from, message->entries[i]->volume, &list[i]);
        if (status == NULL)
            continue;
        const char **nodes = entries(from, status->n_published_node_ids, sizeof(*nodes),
                                     CSI_ENTRIES_MAX, "published_node_ids");
        for (size_t n = 0; nodes != NULL && n < status->n_published_node_ids; n++)
            nodes[n] = text(from, status->published_node_ids[n], CSI_ID_MAX, "published_node_ids");
        list[i].node_ids = nodes;
        list[i].node_ids_count = nodes == NULL ? 0 : status->n_published_node_ids;
        list[i].condition = condition(from, status->volume_condition);
    }
    to->volumes = list;
    to->volumes_count = count;
    to->next_token = text(from, message->next_token, CSI_TOKEN_MAX, "next_token");
}

static void read_get_capacity(struct decoding *from, const void *bytes, struct csi_answer *to)
{
    const Csi__V1__GetCapacityResponse *message = bytes;

    to->bytes = size_in_bytes(from, message->available_capacity, "available_capacity");
}

static void read_create_snapshot(struct decoding *from, const void *bytes, struct csi_answer *to)
{
    const Csi__V1__CreateSnapshotResponse *message = bytes;
    struct csi_snapshot *made = arena_new(from->arena, sizeof(*made));

    snapshot(from, message->snapshot, made);
    to->snapshots = made;
    to->snapshots_count = 1;
}

static void read_list_snapshots(struct decoding *from, const void *bytes, struct csi_answer *to)
{
    const Csi__V1__ListSnapshotsResponse *message = bytes;
    size_t count = message->n_entries;
    struct csi_snapshot *list = entries(from, count, sizeof(*list), CSI_ENTRIES_MAX, "entries");

    for (size_t i = 0; list != NULL && from->code == 0 && i < count; i++)
        snapshot(from, message->entries[i]->snapshot, &list[i]);
    to->snapshots = list;
    to->snapshots_count = count;
    to->next_token = text(from, message->next_token, CSI_TOKEN_MAX, "next_token");
}

static void read_controller_expand(struct decoding *from, const void *bytes, struct csi_answer *to)
{
    const Csi__V1__ControllerExpandVolumeResponse *message = bytes;

    to->bytes = size_in_bytes(from, message->capacity_bytes, "capacity_bytes");
    to->node_expands = message->node_expansion_required;
}

static void read_stats(struct decoding *from, const void *bytes, struct csi_answer *to)
{
    enum { UNIT_BYTES = 1, UNIT_INODES };
    const Csi__V1__NodeGetVolumeStatsResponse *message = bytes;
    struct csi_usage *list =
        entries(from, message->n_usage, sizeof(*list), CSI_TOPOLOGIES_MAX, "usage");

    for (size_t i = 0; list != NULL && i < message->n_usage; i++) {
        const Csi__V1__NodeGetVolumeStatsResponse__VolumeUsage *usage = message->usage[i];

        if (usage->unit != UNIT_BYTES && usage->unit != UNIT_INODES)
            continue; /* of a later version */
        list[to->usage_count++] = (struct csi_usage){
            .available = size_in_bytes(from, usage->available, "available"),
            .total = size_in_bytes(from, usage->total, "total"),
            .used = size_in_bytes(from, usage->used, "used"),
            .inodes = usage->unit == UNIT_INODES,
        };
    }
    to->usage = list;
    to->condition = condition(from, message->volume_condition);
}

static void read_expand(struct decoding *from, const void *bytes, struct csi_answer *to)
{
    const Csi__V1__NodeExpandVolumeResponse *message = bytes;

    to->bytes = size_in_bytes(from, message->capacity_bytes, "capacity_bytes");
}

static void read_node_info(struct decoding *from, const void *bytes, struct csi_answer *to)
{
    const Csi__V1__NodeGetInfoResponse *message = bytes;

    to->node_id = needed_text(from, message->node_id, CSI_ID_MAX, "node_id");
    to->volumes_max = size_in_bytes(from, message->max_volumes_per_node, "max_volumes_per_node");
    if (message->accessible_topology != NULL)
        to->topology = map(from, message->accessible_topology->segments,
                           message->accessible_topology->n_segments, "accessible_topology");
}

/* Without a reader the answer has nothing to say. */
static const struct {
    const ProtobufCMessageDescriptor *message;
    void (*read)(struct decoding *from, const void *bytes, struct csi_answer *to);
} answers[CSI_CALL_COUNT] = {
    [CSI_PLUGIN_INFO] = {&csi__v1__get_plugin_info_response__descriptor, read_plugin_info},
    [CSI_PLUGIN_CAPABILITIES] = {&csi__v1__capabilities__descriptor, read_capabilities},
    [CSI_PROBE] = {&csi__v1__probe_response__descriptor, read_probe},
    [CSI_CREATE_VOLUME] = {&csi__v1__create_volume_response__descriptor, read_create_volume},
    [CSI_CONTROLLER_PUBLISH] = {&csi__v1__controller_publish_volume_response__descriptor,
                                read_controller_publish},
    [CSI_VALIDATE] = {&csi__v1__validate_volume_capabilities_response__descriptor, read_validate},
    [CSI_LIST_VOLUMES] = {&csi__v1__list_volumes_response__descriptor, read_list_volumes},
    [CSI_GET_CAPACITY] = {&csi__v1__get_capacity_response__descriptor, read_get_capacity},
    [CSI_CONTROLLER_CAPABILITIES] = {&csi__v1__capabilities__descriptor, read_capabilities},
    [CSI_CREATE_SNAPSHOT] = {&csi__v1__create_snapshot_response__descriptor, read_create_snapshot},
    [CSI_LIST_SNAPSHOTS] = {&csi__v1__list_snapshots_response__descriptor, read_list_snapshots},
    [CSI_CONTROLLER_EXPAND] = {&csi__v1__controller_expand_volume_response__descriptor,
                               read_controller_expand},
    [CSI_NODE_STATS] = {&csi__v1__node_get_volume_stats_response__descriptor, read_stats},
    [CSI_NODE_EXPAND] = {&csi__v1__node_expand_volume_response__descriptor, read_expand},
    [CSI_NODE_CAPABILITIES] = {&csi__v1__capabilities__descriptor, read_capabilities},
    [CSI_NODE_INFO] = {&csi__v1__node_get_info_response__descriptor, read_node_info},
};

int csi_decode(enum csi_call call, const void *bytes, size_t length, struct arena *arena,
               struct csi_answer *ret_answer, struct err *err)
{
    struct decoding from = {.arena = arena, .err = err, .bytes_left = CSI_DECODED_MAX};
    ProtobufCAllocator allocator = {bounded_alloc, bounded_free, &from};

    check((unsigned)call < CSI_CALL_COUNT);
    const ProtobufCMessageDescriptor *descriptor =
        answers[call].message == NULL ? &csi__v1__nothing__descriptor : answers[call].message;
    const ProtobufCMessage *message =
        protobuf_c_message_unpack(descriptor, &allocator, length, bytes);
    if (message == NULL && from.bytes_left == 0)
        return err_set(err, ERR_LIMIT, "its answer is larger than is taken");
    if (message == NULL)
        return err_set(err, ERR_CORRUPT, "its answer is no message of CSI");
    *ret_answer = (struct csi_answer){.name = "",
                                      .version = "",
                                      .node_id = "",
                                      .next_token = "",
                                      .text = "",
                                      .condition.text = ""};
    if (answers[call].read != NULL)
        answers[call].read(&from, message, ret_answer);
    return from.code;
}
