/* What storage plugins answer, as Nomad's servers name the fields of it. */
#include "agent/perform/answers.h"

json_t *answers_map(const struct csi_map *map)
{
    json_t *object = json_object();

    for (size_t i = 0; i < map->count; i++)
        check(json_object_set_new(object, map->pairs[i].key, json_string(map->pairs[i].value)) ==
              0);
    return object;
}

static json_t *created(const struct csi_volume *volume)
{
    json_t *topologies = json_array();

    for (size_t i = 0; i < volume->topologies_count; i++)
        check(json_array_append_new(topologies, json_pack("{s:o}", "Segments",
                                                          answers_map(&volume->topologies[i]))) ==
              0);
    return json_pack("{s:s, s:I, s:o, s:o}", "ExternalVolumeID", volume->id, "CapacityBytes",
                     (json_int_t)volume->bytes, "VolumeContext", answers_map(&volume->context),
                     "Topologies", topologies);
}

static json_t *listed_volume(const struct csi_volume *volume)
{
    json_t *nodes = json_array();

    for (size_t i = 0; i < volume->node_ids_count; i++)
        check(json_array_append_new(nodes, json_string(volume->node_ids[i])) == 0);
    return json_pack("{s:s, s:I, s:o, s:s, s:s, s:o, s:b, s:s}", "ExternalID", volume->id,
                     "CapacityBytes", (json_int_t)volume->bytes, "VolumeContext",
                     answers_map(&volume->context), "CloneID",
                     volume->source_volume_id == NULL ? "" : volume->source_volume_id, "SnapshotID",
                     volume->snapshot_id == NULL ? "" : volume->snapshot_id,
                     "PublishedExternalNodeIDs", nodes, "IsAbnormal", volume->condition.abnormal,
                     "Status", volume->condition.text == NULL ? "" : volume->condition.text);
}

static json_t *snapshot(const struct csi_snapshot *from)
{
    return json_pack("{s:s, s:s, s:I, s:I, s:b}", "ID", from->id, "ExternalSourceVolumeID",
                     from->source_volume_id, "SizeBytes", (json_int_t)from->bytes, "CreateTime",
                     (json_int_t)from->made_unix_s, "IsReady", from->ready);
}

static json_t *list(const struct csi_answer *answer, bool snapshots)
{
    json_t *entries = json_array();

    for (size_t i = 0; !snapshots && i < answer->volumes_count; i++)
        check(json_array_append_new(entries, listed_volume(&answer->volumes[i])) == 0);
    for (size_t i = 0; snapshots && i < answer->snapshots_count; i++)
        check(json_array_append_new(entries, snapshot(&answer->snapshots[i])) == 0);
    return json_pack("{s:o, s:s}", "Entries", entries, "NextToken", answer->next_token);
}

static json_t *stats(const struct csi_answer *answer)
{
    json_t *to = json_object();

    for (size_t i = 0; i < answer->usage_count; i++) {
        const struct csi_usage *usage = &answer->usage[i];

        check(json_object_set_new(to, usage->inodes ? "Inodes" : "Bytes",
                                  json_pack("{s:I, s:I, s:I}", "Total", (json_int_t)usage->total,
                                            "Used", (json_int_t)usage->used, "Available",
                                            (json_int_t)usage->available)) == 0);
    }
    if (answer->condition.known)
        check(json_object_update_new(to, json_pack("{s:b, s:s}", "IsAbnormal",
                                                   answer->condition.abnormal, "Status",
                                                   answer->condition.text)) == 0);
    return to;
}

json_t *answers_format(enum csi_call call, const struct csi_answer *answer)
{
    if (call == CSI_CREATE_VOLUME)
        return created(&answer->volumes[0]);
    if (call == CSI_CONTROLLER_PUBLISH)
        return json_pack("{s:o}", "PublishContext", answers_map(&answer->publish_context));
    if (call == CSI_CONTROLLER_EXPAND)
        return json_pack("{s:I, s:b}", "CapacityBytes", (json_int_t)answer->bytes,
                         "NodeExpansionRequired", answer->node_expands);
    if (call == CSI_NODE_EXPAND)
        return json_pack("{s:I}", "CapacityBytes", (json_int_t)answer->bytes);
    if (call == CSI_NODE_STATS)
        return stats(answer);
    if (call == CSI_GET_CAPACITY)
        return json_pack("{s:I}", "AvailableBytes", (json_int_t)answer->bytes);
    if (call == CSI_CREATE_SNAPSHOT)
        return snapshot(&answer->snapshots[0]);
    if (call == CSI_LIST_VOLUMES || call == CSI_LIST_SNAPSHOTS)
        return list(answer, call == CSI_LIST_SNAPSHOTS);
    return json_object(); /* the others have nothing to say */
}
