/* Any message as the answer to any call: the first byte says to which. */
#include "test/fuzz.h"

#include "csi/client/part.h"

static void read_text(const char *text)
{
    check(text_is_utf8(text, strlen(text)));
}

static void read_map(const struct csi_map *map)
{
    for (size_t i = 0; i < map->count; i++) {
        read_text(map->pairs[i].key);
        read_text(map->pairs[i].value);
    }
}

static void read_volume(const struct csi_volume *volume)
{
    read_text(volume->id);
    read_map(&volume->context);
    read_text(volume->snapshot_id == NULL ? "" : volume->snapshot_id);
    read_text(volume->source_volume_id == NULL ? "" : volume->source_volume_id);
    for (size_t i = 0; i < volume->topologies_count; i++)
        read_map(&volume->topologies[i]);
    for (size_t i = 0; i < volume->node_ids_count; i++)
        read_text(volume->node_ids[i]);
    read_text(volume->condition.text);
    check(volume->id[0] != '\0' && strlen(volume->id) <= CSI_ID_MAX && volume->bytes >= 0);
}

static void read_answer(const struct csi_answer *answer)
{
    read_text(answer->name);
    read_text(answer->version);
    read_text(answer->node_id);
    read_text(answer->next_token);
    read_text(answer->text);
    read_text(answer->condition.text);
    read_map(&answer->topology);
    read_map(&answer->publish_context);
    for (size_t i = 0; i < answer->volumes_count; i++)
        read_volume(&answer->volumes[i]);
    for (size_t i = 0; i < answer->snapshots_count; i++) {
        read_text(answer->snapshots[i].id);
        read_text(answer->snapshots[i].source_volume_id);
    }
    for (size_t i = 0; i < answer->capabilities_confirmed_count; i++) {
        const struct csi_capability *capability = &answer->capabilities_confirmed[i];

        read_text(capability->fs_type);
        for (size_t n = 0; n < capability->flags_count; n++)
            read_text(capability->flags[n]);
    }
    for (size_t i = 0; i < answer->usage_count; i++)
        check(answer->usage[i].available >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = {0};
    struct csi_answer answer;
    struct err err = {0};

    if (size == 0)
        return 0;
    if (csi_decode((enum csi_call)(data[0] % CSI_CALL_COUNT), data + 1, size - 1, &arena, &answer,
                   &err) == 0)
        read_answer(&answer);
    else
        check(err.text[0] != '\0');
    arena_free(&arena);
    return 0;
}
