/*
 * Volumes of the host that allocs mount: of the node's configuration, or made since, which come
 * before those of the same name; and who has them.
 *
 * Who has one is not counted: it is asked for seldom, and each alloc's specification says it.
 * Follows nomad v2.0.5 scheduler/feasible/feasible.go HostVolumeChecker.
 */
#include "server/alone/part.h"
#include "server/storage/storage.h"

#include "spec/job.h"

#include <stdlib.h>

/* --- who has one --- */

struct asking {
    const struct alone *alone;
    const char *namespace, *name;
    bool only_writers;
    json_t *users;
};

static bool is_of(const struct asking *asking, const struct spec_volume *volume)
{
    return volume->type == VOLUME_HOST && text_equal(volume->source, asking->name) &&
           !(asking->only_writers && volume->read_only);
}

static void note(struct asking *asking, const char *alloc)
{
    check(json_array_append_new(asking->users, json_string(alloc)) == 0);
}

static bool look_at_alloc(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct asking *asking = ctx;
    const struct alloc *alloc = alloc_of(record);
    bool going = alloc->stop_wanted || posted_to_end(asking->alone, id->text);

    /* Whoever only waits for its end is made to wait by the order of allocs, not here. */
    if (alloc->ended_unix_ns != 0 || (asking->only_writers && going) ||
        !text_equal(alloc->assign.namespace, asking->namespace))
        return true;
    struct alloc_spec *spec = alone_read_spec(asking->alone, id->text);
    for (size_t i = 0; spec != NULL && i < spec->volumes_count; i++) {
        if (is_of(asking, &spec->volumes[i])) {
            note(asking, id->text);
            break;
        }
    }
    alloc_spec_free(spec);
    return true;
}

static bool group_has(const struct asking *asking, const json_t *group, uint32_t index)
{
    struct spec_volume volumes[SPEC_VOLUMES_MAX];
    char sources[SPEC_VOLUMES_MAX][SPEC_SOURCE_SIZE];
    size_t count = 0;

    (void)jobspec_volumes(group, index, volumes, sources, &count); /* of a job that was checked */
    for (size_t i = 0; i < count; i++) {
        if (is_of(asking, &volumes[i]))
            return true;
    }
    return false;
}

/* What the next commit places. */
static void look_at_posted(struct asking *asking, const struct job *job,
                           const struct posted *posted)
{
    const json_t *group = NULL, *groups = json_object_get(job->json, "TaskGroups"), *one;
    size_t g;

    json_array_foreach(groups, g, one)
    {
        const char *name = json_string_value(json_object_get(one, "Name"));
        if (name != NULL && text_equal(name, posted->group))
            group = one;
    }
    if (posted->stops || group == NULL || !text_equal(job->namespace, asking->namespace))
        return;
    if (group_has(asking, group, posted->index))
        note(asking, posted->id.text);
}

/* Those of the same evaluation, which have no ids yet. */
static bool is_chosen(const struct asking *asking, const struct hosted_place *place)
{
    const json_t *groups = json_object_get(place->gathering->job->json, "TaskGroups");

    for (size_t g = 0; g <= place->group; g++) {
        const struct reconcile_group *group = &place->places->groups[g];

        for (uint32_t i = 0; i < group->count && (g < place->group || i < place->index); i++) {
            if (group->place[i] && group_has(asking, json_array_get(groups, g), i))
                return true;
        }
    }
    return false;
}

static json_t *users_of(struct asking *asking)
{
    const struct alone *alone = asking->alone;

    asking->users = json_array();
    core_each(life_core(alone->config.life), MACHINE_ALLOC, look_at_alloc, asking);
    for (const struct job *job = alone->jobs; job != NULL; job = job->hh.next) {
        for (size_t i = 0; i < job->posted.count; i++)
            look_at_posted(asking, job, &job->posted.items[i]);
    }
    return asking->users;
}

json_t *alone_hosted_users(void *ctx, const char *namespace, const char *name)
{
    struct asking asking = {.alone = ctx, .namespace = namespace, .name = name};

    return users_of(&asking);
}

/* --- whether one is to be had --- */

static const char *text_of(const json_t *json, const char *name)
{
    const char *text = json_string_value(json_object_get(json, name));

    return text == NULL ? "" : text;
}

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
    struct asking asking = {.alone = place->alone,
                            .namespace = volume->namespace,
                            .name = asked->source,
                            .only_writers = true};
    json_t *users = users_of(&asking);
    bool free_now = json_array_size(users) == 0 && !is_chosen(&asking, place);
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
