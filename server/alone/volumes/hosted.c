/*
 * Volumes of the host that allocs mount: of the node's configuration, or made since, which come
 * before those of the same name.
 *
 * Follows nomad v2.0.5 scheduler/feasible/feasible.go HostVolumeChecker.
 */
#include "server/alone/part.h"
#include "server/storage/storage.h"

#include "spec/job.h"
#include "spec/json.h"

#include <stdlib.h>

/* --- who is about to have one --- */

static bool group_writes(const json_t *group, uint32_t index, const char *name)
{
    struct spec_volume volumes[SPEC_VOLUMES_MAX];
    char sources[SPEC_VOLUMES_MAX][SPEC_SOURCE_SIZE];
    size_t count = 0;

    (void)jobspec_volumes(group, index, volumes, sources, &count); /* of a job that was checked */
    for (size_t i = 0; i < count; i++) {
        if (volumes[i].type == VOLUME_HOST && text_equal(volumes[i].source, name) &&
            !volumes[i].read_only)
            return true;
    }
    return false;
}

/* Those of the same evaluation that come before the one at PLACE have no ids yet. */
static bool is_chosen(const struct hosted_place *place, const char *name)
{
    const json_t *groups = json_object_get(place->gathering->job->json, "TaskGroups");

    for (size_t g = 0; g <= place->group; g++) {
        const struct reconcile_group *group = &place->places->groups[g];

        for (uint32_t i = 0; i < group->count && (g < place->group || i < place->index); i++) {
            if (group->place[i] && group_writes(json_array_get(groups, g), i, name))
                return true;
        }
    }
    return false;
}

/* --- whether one is to be had --- */

static bool has_capability(const json_t *volume, const char *access, const char *attachment)
{
    const json_t *capability;
    size_t i;

    json_array_foreach(json_object_get(volume, "RequestedCapabilities"), i, capability)
    {
        if (text_equal(text_of(capability, "AccessMode"), access) &&
            text_equal(text_of(capability, "AttachmentMode"), attachment))
            return true;
    }
    return false;
}

/* WANTED is what the group says of it. */
static json_t *dynamic_missing(const struct hosted_place *place,
                               const struct storage_volume *volume, const json_t *wanted,
                               const struct spec_volume *asked)
{
    const char *access = text_of(wanted, "AccessMode");
    const char *attachment = text_of(wanted, "AttachmentMode");

    if (!text_equal(volume->namespace, place->gathering->job->namespace))
        return json_sprintf("missing compatible host volumes: there is no \"%s\"", asked->source);
    if (!storage_hosted_is_here(volume))
        return json_sprintf("missing compatible host volumes: \"%s\" is %s", asked->source,
                            storage_hosted_state(volume));
    if (access[0] == '\0')
        access = asked->read_only ? "single-node-reader-only" : "single-node-writer";
    if (attachment[0] == '\0')
        attachment = "file-system";
    if (!has_capability(volume->json, access, attachment))
        return json_sprintf("missing compatible host volumes: \"%s\" has no capability %s, %s",
                            asked->source, access, attachment);
    if (text_equal(access, "single-node-writer") && asked->read_only)
        return json_sprintf("missing compatible host volumes: \"%s\" is asked for read-only as %s",
                            asked->source, access);
    if (!text_equal(access, "single-node-single-writer") || asked->read_only)
        return NULL;
    json_t *users = users_of_volume(place->alone, volume->namespace, asked->source, true);
    bool free_now = json_array_size(users) == 0 && !is_chosen(place, asked->source);
    json_decref(users);
    return free_now ? NULL
                    : json_sprintf("missing compatible host volumes: \"%s\" has its writer",
                                   asked->source);
}

json_t *hosted_missing(const struct hosted_place *place, const json_t *json,
                       const struct spec_volume *volume)
{
    const struct spec_node_volumes *here = &place->alone->config.node.volumes;
    const struct storage_volume *dynamic =
        storage_find_hosted(place->alone->hosted, volume->source);
    size_t at = 0;

    if (dynamic != NULL)
        return dynamic_missing(place, dynamic, json, volume);
    while (at < here->count && !text_equal(here->items[at].name, volume->source))
        at++;
    if (at == here->count)
        return json_sprintf("missing compatible host volumes: there is no \"%s\"", volume->source);
    if (json_is_true(json_object_get(json, "Sticky")))
        return json_sprintf("missing compatible host volumes: \"%s\" is of the node's "
                            "configuration, and can be no sticky one",
                            volume->source);
    if (here->items[at].read_only && !volume->read_only)
        return json_sprintf("missing compatible host volumes: \"%s\" is read-only", volume->source);
    return NULL;
}
