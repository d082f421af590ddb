/*
 * Requests as bytes: cairn's structs put into those of protobuf-c, which packs them.
 *
 * Everything between lives in an arena until the bytes are made and borrows its texts from the
 * request, so that secrets are copied once, into the bytes.
 */
#include "csi/client/part.h"

#include "csi/client/csi.pb-c.h"

#include <string.h>

struct encoding {
    struct arena arena;
    unsigned char *bytes;
    size_t length;
};

static void pack(struct encoding *to, const ProtobufCMessage *message)
{
    to->length = protobuf_c_message_get_packed_size(message);
    to->bytes = malloc(to->length + 1);
    check(to->bytes != NULL);
    check(protobuf_c_message_pack(message, to->bytes) == to->length);
}

/* A message of TYPE in the arena, as INIT has it. */
#define NEW(to, type, INIT) new_message((to), sizeof(type), &(const type)INIT)

static void *new_message(struct encoding *to, size_t size, const void *init)
{
    return memcpy(arena_new(&to->arena, size), init, size);
}

static ProtobufCBinaryData text_of(const char *text)
{
    return (ProtobufCBinaryData){text == NULL ? 0 : strlen(text), (uint8_t *)(uintptr_t)text};
}

static Csi__V1__Pair **pairs_of(struct encoding *to, const struct csi_pair *pairs, size_t count)
{
    Csi__V1__Pair **list = arena_new(&to->arena, count * sizeof(Csi__V1__Pair *));

    for (size_t i = 0; i < count; i++) {
        list[i] = NEW(to, Csi__V1__Pair, CSI__V1__PAIR__INIT);
        list[i]->key = text_of(pairs[i].key);
        list[i]->value = text_of(pairs[i].value);
    }
    return list;
}

static Csi__V1__VolumeCapability *capability_of(struct encoding *to,
                                                const struct csi_capability *from)
{
    Csi__V1__VolumeCapability *capability =
        NEW(to, Csi__V1__VolumeCapability, CSI__V1__VOLUME_CAPABILITY__INIT);

    capability->access_mode = NEW(to, Csi__V1__AccessMode, CSI__V1__ACCESS_MODE__INIT);
    capability->access_mode->mode = (int32_t)from->access;
    if (from->block) {
        capability->access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_BLOCK;
        capability->block = NEW(to, Csi__V1__Nothing, CSI__V1__NOTHING__INIT);
        return capability;
    }
    capability->access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT;
    capability->mount = NEW(to, Csi__V1__MountVolume, CSI__V1__MOUNT_VOLUME__INIT);
    capability->mount->fs_type = text_of(from->fs_type);
    capability->mount->n_mount_flags = from->flags_count;
    capability->mount->mount_flags =
        arena_new(&to->arena, from->flags_count * sizeof(ProtobufCBinaryData));
    for (size_t i = 0; i < from->flags_count; i++)
        capability->mount->mount_flags[i] = text_of(from->flags[i]);
    return capability;
}

static Csi__V1__VolumeCapability **capabilities_of(struct encoding *to,
                                                   const struct csi_request *from)
{
    Csi__V1__VolumeCapability **list =
        arena_new(&to->arena, from->capabilities_count * sizeof(Csi__V1__VolumeCapability *));

    for (size_t i = 0; i < from->capabilities_count; i++)
        list[i] = capability_of(to, &from->capabilities[i]);
    return list;
}

/* The only one, or NULL. */
static Csi__V1__VolumeCapability *one_capability_of(struct encoding *to,
                                                    const struct csi_request *from)
{
    return from->capabilities_count == 0 ? NULL : capability_of(to, &from->capabilities[0]);
}

/* NULL if nothing is wanted: a range without a bound is not valid. */
static Csi__V1__CapacityRange *range_of(struct encoding *to, const struct csi_request *from)
{
    if (from->bytes_min == 0 && from->bytes_max == 0)
        return NULL;
    Csi__V1__CapacityRange *range = NEW(to, Csi__V1__CapacityRange, CSI__V1__CAPACITY_RANGE__INIT);
    range->required_bytes = from->bytes_min;
    range->limit_bytes = from->bytes_max;
    return range;
}

static Csi__V1__VolumeContentSource *source_of(struct encoding *to, const struct csi_request *from)
{
    bool snapshot = from->snapshot_id != NULL && from->snapshot_id[0] != '\0';

    if (!snapshot && (from->source_volume_id == NULL || from->source_volume_id[0] == '\0'))
        return NULL;
    Csi__V1__VolumeContentSource *source =
        NEW(to, Csi__V1__VolumeContentSource, CSI__V1__VOLUME_CONTENT_SOURCE__INIT);
    if (snapshot) {
        source->type_case = CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_SNAPSHOT;
        source->snapshot = NEW(to, Csi__V1__SnapshotSource, CSI__V1__SNAPSHOT_SOURCE__INIT);
        source->snapshot->snapshot_id = text_of(from->snapshot_id);
    } else {
        source->type_case = CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_VOLUME;
        source->volume = NEW(to, Csi__V1__VolumeSource, CSI__V1__VOLUME_SOURCE__INIT);
        source->volume->volume_id = text_of(from->source_volume_id);
    }
    return source;
}

static Csi__V1__Topology **topologies_of(struct encoding *to, const struct csi_map *maps,
                                         size_t count)
{
    Csi__V1__Topology **list = arena_new(&to->arena, count * sizeof(Csi__V1__Topology *));

    for (size_t i = 0; i < count; i++) {
        list[i] = NEW(to, Csi__V1__Topology, CSI__V1__TOPOLOGY__INIT);
        list[i]->n_segments = maps[i].count;
        list[i]->segments = pairs_of(to, maps[i].pairs, maps[i].count);
    }
    return list;
}

static Csi__V1__TopologyRequirement *topology_of(struct encoding *to,
                                                 const struct csi_request *from)
{
    if (from->required_count == 0 && from->preferred_count == 0)
        return NULL;
    Csi__V1__TopologyRequirement *wanted =
        NEW(to, Csi__V1__TopologyRequirement, CSI__V1__TOPOLOGY_REQUIREMENT__INIT);
    wanted->n_requisite = from->required_count;
    wanted->requisite = topologies_of(to, from->required, from->required_count);
    wanted->n_preferred = from->preferred_count;
    wanted->preferred = topologies_of(to, from->preferred, from->preferred_count);
    return wanted;
}

/* A map, the secrets or the capabilities of FROM in a message that has them under these names. */
#define PUT_MAP(message, name, map)                                                                \
    ((message).n_##name = (map).count, (message).name = pairs_of(to, (map).pairs, (map).count))
#define PUT_SECRETS(message)                                                                       \
    ((message).n_secrets = csi_secrets_count(from->secrets),                                       \
     (message).secrets = pairs_of(to, csi_secrets_pairs(from->secrets), (message).n_secrets))
#define PUT_CAPABILITIES(message)                                                                  \
    ((message).n_volume_capabilities = from->capabilities_count,                                   \
     (message).volume_capabilities = capabilities_of(to, from))

/* --- Identity, and what has no fields --- */

static void pack_nothing(struct encoding *to)
{
    const Csi__V1__Nothing message = CSI__V1__NOTHING__INIT;

    pack(to, &message.base);
}

/* --- Controller --- */

static void pack_create_volume(struct encoding *to, const struct csi_request *from)
{
    Csi__V1__CreateVolumeRequest message = CSI__V1__CREATE_VOLUME_REQUEST__INIT;

    message.name = text_of(from->name);
    message.capacity_range = range_of(to, from);
    PUT_CAPABILITIES(message);
    PUT_MAP(message, parameters, from->parameters);
    PUT_SECRETS(message);
    message.volume_content_source = source_of(to, from);
    message.accessibility_requirements = topology_of(to, from);
    pack(to, &message.base);
}

static void pack_delete_volume(struct encoding *to, const struct csi_request *from)
{
    Csi__V1__DeleteVolumeRequest message = CSI__V1__DELETE_VOLUME_REQUEST__INIT;

    message.volume_id = text_of(from->volume_id);
    PUT_SECRETS(message);
    pack(to, &message.base);
}

static void pack_controller_publish(struct encoding *to, const struct csi_request *from)
{
    Csi__V1__ControllerPublishVolumeRequest message =
        CSI__V1__CONTROLLER_PUBLISH_VOLUME_REQUEST__INIT;

    message.volume_id = text_of(from->volume_id);
    message.node_id = text_of(from->node_id);
    message.volume_capability = one_capability_of(to, from);
    message.readonly = from->readonly;
    PUT_SECRETS(message);
    PUT_MAP(message, volume_context, from->volume_context);
    pack(to, &message.base);
}

static void pack_controller_unpublish(struct encoding *to, const struct csi_request *from)
{
    Csi__V1__ControllerUnpublishVolumeRequest message =
        CSI__V1__CONTROLLER_UNPUBLISH_VOLUME_REQUEST__INIT;

    message.volume_id = text_of(from->volume_id);
    message.node_id = text_of(from->node_id);
    PUT_SECRETS(message);
    pack(to, &message.base);
}

static void pack_validate(struct encoding *to, const struct csi_request *from)
{
    Csi__V1__ValidateVolumeCapabilitiesRequest message =
        CSI__V1__VALIDATE_VOLUME_CAPABILITIES_REQUEST__INIT;

    message.volume_id = text_of(from->volume_id);
    PUT_MAP(message, volume_context, from->volume_context);
    PUT_CAPABILITIES(message);
    PUT_MAP(message, parameters, from->parameters);
    PUT_SECRETS(message);
    pack(to, &message.base);
}

static void pack_list_volumes(struct encoding *to, const struct csi_request *from)
{
    Csi__V1__ListVolumesRequest message = CSI__V1__LIST_VOLUMES_REQUEST__INIT;

    message.max_entries = from->entries_max;
    message.starting_token = text_of(from->token);
    pack(to, &message.base);
}

static void pack_get_capacity(struct encoding *to, const struct csi_request *from)
{
    Csi__V1__GetCapacityRequest message = CSI__V1__GET_CAPACITY_REQUEST__INIT;

    PUT_CAPABILITIES(message);
    PUT_MAP(message, parameters, from->parameters);
    pack(to, &message.base);
}

static void pack_create_snapshot(struct encoding *to, const struct csi_request *from)
{
    Csi__V1__CreateSnapshotRequest message = CSI__V1__CREATE_SNAPSHOT_REQUEST__INIT;

    message.source_volume_id = text_of(from->source_volume_id);
    message.name = text_of(from->name);
    PUT_SECRETS(message);
    PUT_MAP(message, parameters, from->parameters);
    pack(to, &message.base);
}

static void pack_delete_snapshot(struct encoding *to, const struct csi_request *from)
{
    Csi__V1__DeleteSnapshotRequest message = CSI__V1__DELETE_SNAPSHOT_REQUEST__INIT;

    message.snapshot_id = text_of(from->snapshot_id);
    PUT_SECRETS(message);
    pack(to, &message.base);
}

static void pack_list_snapshots(struct encoding *to, const struct csi_request *from)
{
    Csi__V1__ListSnapshotsRequest message = CSI__V1__LIST_SNAPSHOTS_REQUEST__INIT;

    message.max_entries = from->entries_max;
    message.starting_token = text_of(from->token);
    message.source_volume_id = text_of(from->source_volume_id);
    message.snapshot_id = text_of(from->snapshot_id);
    PUT_SECRETS(message);
    pack(to, &message.base);
}

static void pack_controller_expand(struct encoding *to, const struct csi_request *from)
{
    Csi__V1__ControllerExpandVolumeRequest message =
        CSI__V1__CONTROLLER_EXPAND_VOLUME_REQUEST__INIT;

    message.volume_id = text_of(from->volume_id);
    message.capacity_range = range_of(to, from);
    PUT_SECRETS(message);
    message.volume_capability = one_capability_of(to, from);
    pack(to, &message.base);
}

/* --- Node --- */

static void pack_stage(struct encoding *to, const struct csi_request *from)
{
    Csi__V1__NodeStageVolumeRequest message = CSI__V1__NODE_STAGE_VOLUME_REQUEST__INIT;

    message.volume_id = text_of(from->volume_id);
    PUT_MAP(message, publish_context, from->publish_context);
    message.staging_target_path = text_of(from->staging_path);
    message.volume_capability = one_capability_of(to, from);
    PUT_SECRETS(message);
    PUT_MAP(message, volume_context, from->volume_context);
    pack(to, &message.base);
}

static void pack_unstage(struct encoding *to, const struct csi_request *from)
{
    Csi__V1__NodeUnstageVolumeRequest message = CSI__V1__NODE_UNSTAGE_VOLUME_REQUEST__INIT;

    message.volume_id = text_of(from->volume_id);
    message.staging_target_path = text_of(from->staging_path);
    pack(to, &message.base);
}

static void pack_publish(struct encoding *to, const struct csi_request *from)
{
    Csi__V1__NodePublishVolumeRequest message = CSI__V1__NODE_PUBLISH_VOLUME_REQUEST__INIT;

    message.volume_id = text_of(from->volume_id);
    PUT_MAP(message, publish_context, from->publish_context);
    message.staging_target_path = text_of(from->staging_path);
    message.target_path = text_of(from->target_path);
    message.volume_capability = one_capability_of(to, from);
    message.readonly = from->readonly;
    PUT_SECRETS(message);
    PUT_MAP(message, volume_context, from->volume_context);
    pack(to, &message.base);
}

static void pack_unpublish(struct encoding *to, const struct csi_request *from)
{
    Csi__V1__NodeUnpublishVolumeRequest message = CSI__V1__NODE_UNPUBLISH_VOLUME_REQUEST__INIT;

    message.volume_id = text_of(from->volume_id);
    message.target_path = text_of(from->target_path);
    pack(to, &message.base);
}

static void pack_stats(struct encoding *to, const struct csi_request *from)
{
    Csi__V1__NodeGetVolumeStatsRequest message = CSI__V1__NODE_GET_VOLUME_STATS_REQUEST__INIT;

    message.volume_id = text_of(from->volume_id);
    message.volume_path = text_of(from->target_path);
    message.staging_target_path = text_of(from->staging_path);
    pack(to, &message.base);
}

static void pack_expand(struct encoding *to, const struct csi_request *from)
{
    Csi__V1__NodeExpandVolumeRequest message = CSI__V1__NODE_EXPAND_VOLUME_REQUEST__INIT;

    message.volume_id = text_of(from->volume_id);
    message.volume_path = text_of(from->target_path);
    message.capacity_range = range_of(to, from);
    message.staging_target_path = text_of(from->staging_path);
    message.volume_capability = one_capability_of(to, from);
    PUT_SECRETS(message);
    pack(to, &message.base);
}

void *csi_encode(const struct csi_request *request, size_t *ret_length)
{
    static void (*const packers[CSI_CALL_COUNT])(struct encoding * to,
                                                 const struct csi_request *from) = {
        [CSI_CREATE_VOLUME] = pack_create_volume,
        [CSI_DELETE_VOLUME] = pack_delete_volume,
        [CSI_CONTROLLER_PUBLISH] = pack_controller_publish,
        [CSI_CONTROLLER_UNPUBLISH] = pack_controller_unpublish,
        [CSI_VALIDATE] = pack_validate,
        [CSI_LIST_VOLUMES] = pack_list_volumes,
        [CSI_GET_CAPACITY] = pack_get_capacity,
        [CSI_CREATE_SNAPSHOT] = pack_create_snapshot,
        [CSI_DELETE_SNAPSHOT] = pack_delete_snapshot,
        [CSI_LIST_SNAPSHOTS] = pack_list_snapshots,
        [CSI_CONTROLLER_EXPAND] = pack_controller_expand,
        [CSI_NODE_STAGE] = pack_stage,
        [CSI_NODE_UNSTAGE] = pack_unstage,
        [CSI_NODE_PUBLISH] = pack_publish,
        [CSI_NODE_UNPUBLISH] = pack_unpublish,
        [CSI_NODE_STATS] = pack_stats,
        [CSI_NODE_EXPAND] = pack_expand,
    };
    struct encoding encoding = {0};

    check((unsigned)request->call < CSI_CALL_COUNT);
    if (packers[request->call] == NULL)
        pack_nothing(&encoding);
    else
        packers[request->call](&encoding, request);
    arena_free(&encoding.arena);
    *ret_length = encoding.length;
    return encoding.bytes;
}
