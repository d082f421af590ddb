/*
 * Hook volumes: what of the host a task is to see, and where.
 *
 * Follows nomad v2.0.5 client/allocrunner/taskrunner/volume_hook.go.  Nothing is mounted here: each
 * mount is one result (RESULT_MOUNT), and so in the journal, and the driver makes it when it makes
 * the task's root.  Whatever hook leaves such results, its mounts are made in the same way.
 *
 * It runs before every start, since a node may have lost a volume of its configuration since, and
 * that is no reason to run without it (there, too).  Where volumes of storage plugins are mounted,
 * and those of the host that are not of the configuration, is told with each run; that the former
 * are is seen to by their machines.
 */
#include "hooks/env/env.h"
#include "hooks/env/expand.h"
#include "hooks/part.h"

#include "io/host.h"

#include "spec/names.h"

#include <stdlib.h>
#include <string.h>

enum { MOUNT_TEXT_SIZE = PATH_SIZE + 32 };

struct mounting {
    const struct hook_request *request;
    struct hooks_names names;
    struct arena *arena;
    struct err *err;
    char places[SPEC_MOUNTS_MAX][SPEC_PLACE_SIZE]; /* so far */
    size_t count;
};

static const struct spec_node_volume *find_on_node(const struct hooks *hooks, const char *name)
{
    for (size_t i = 0; i < hooks->volumes.count; i++) {
        if (text_equal(hooks->volumes.items[i].name, name))
            return &hooks->volumes.items[i];
    }
    return NULL;
}

static const struct spec_volume *find_in_group(const struct alloc_spec *alloc, const char *name)
{
    for (size_t i = 0; i < alloc->volumes_count; i++) {
        if (text_equal(alloc->volumes[i].name, name))
            return &alloc->volumes[i];
    }
    return NULL;
}

/* One that is not of the node's configuration, NULL: it is. */
static const struct hook_claim *find_claim(const struct hook_request *request,
                                           const struct spec_volume *volume)
{
    const struct hook_run *asked = request->asked;

    for (size_t i = 0; i < asked->claims_count; i++) {
        if (text_equal(asked->claims[i].volume, volume->name))
            return &asked->claims[i];
    }
    return NULL;
}

/* All that the group asks for has to be here, whichever task has it. */
static int look_for_all(const struct hook_request *request, struct err *err)
{
    const struct alloc_spec *alloc = request->asked->alloc;

    for (size_t i = 0; i < alloc->volumes_count; i++) {
        const struct spec_volume *volume = &alloc->volumes[i];

        const struct hook_claim *claim = find_claim(request, volume);
        bool is_here = claim != NULL ? claim->path != NULL
                                     : find_on_node(request->hooks, volume->source) != NULL;
        if (volume->type == VOLUME_HOST && !is_here)
            return err_set(err, ERR_GONE, "host volume validation error: missing %s",
                           volume->source);
    }
    return 0;
}

/* Where VOLUME is on the host; it is here, or NULL. */
static const char *host_path(const struct hook_request *request, const struct spec_volume *volume)
{
    const struct hook_claim *claim = find_claim(request, volume);

    if (claim != NULL)
        return claim->path;
    return volume->type == VOLUME_HOST ? find_on_node(request->hooks, volume->source)->path : NULL;
}

/* For every task, whoever has it mounted. */
static bool is_read_only(const struct hook_request *request, const struct spec_volume *volume)
{
    return volume->read_only ||
           (volume->type == VOLUME_HOST && find_claim(request, volume) == NULL &&
            find_on_node(request->hooks, volume->source)->read_only);
}

/* Where the task is to have MOUNT, into the next of the places. */
static int find_place(struct mounting *mounting, const struct spec_volume_mount *mount)
{
    char *place = mounting->places[mounting->count];
    const char *text, *fault;
    int code = hooks_expand_plain(&mounting->names, mounting->arena, mount->destination,
                                  SPEC_PLACE_SIZE, &text, mounting->err);

    if (code != 0)
        return err_wrap(mounting->err, "the destination of volume %s", mount->volume);
    fault = spec_place(text, place);
    for (size_t i = 0; fault == NULL && i < mounting->count; i++) {
        if (text_equal(mounting->places[i], place))
            fault = "is that of two volume_mounts";
    }
    if (fault != NULL)
        return err_set(mounting->err, ERR_INVALID, "the destination \"%.200s\" %s", text, fault);
    mounting->count++;
    return 0;
}

static int mount_one(struct mounting *mounting, const struct spec_volume_mount *mount)
{
    const struct hook_request *request = mounting->request;
    const struct spec_volume *volume = find_in_group(request->asked->alloc, mount->volume);
    char text[MOUNT_TEXT_SIZE];

    if (volume == NULL)
        return err_set(mounting->err, ERR_INVALID, "the group has no volume \"%.100s\"",
                       mount->volume);
    const char *path = host_path(request, volume);
    if (path == NULL)
        return err_set(mounting->err, ERR_GONE, "No CSI Mount Point found for volume: %s",
                       volume->name);
    int code = find_place(mounting, mount);
    if (code != 0)
        return code;
    bool read_only = is_read_only(request, volume) || mount->read_only;
    check(text_format(text, sizeof(text), "%s\t%s\t%s%s", path, read_only ? "ro" : "rw",
                      spec_propagation_name(mount->propagation),
                      volume->type == VOLUME_CSI ? "\tmount" : ""));
    code = results_set(request->results, TASK_HOOK_VOLUMES, RESULT_MOUNT,
                       mounting->places[mounting->count - 1], text, (uint32_t)strlen(text));
    return code == 0 ? 0 : err_set(mounting->err, code, "too many mounts with long paths");
}

static int mount_all(struct mounting *mounting)
{
    const struct hook_run *asked = mounting->request->asked;
    const struct task_spec *task = asked->task;
    int code = 0;

    for (size_t i = 0; code == 0 && i < task->volume_mounts_count; i++)
        code = mount_one(mounting, &task->volume_mounts[i]);
    return code;
}

int hooks_volumes(const struct hook_request *request, struct err *err)
{
    const struct hook_run *asked = request->asked;
    const struct task_spec *task = asked->task;
    struct arena arena = {0};
    struct hooks_env env = {.arena = &arena};
    struct mounting mounting = {.request = request,
                                .names = {.node = request->hooks->node, .env = &env},
                                .arena = &arena,
                                .err = err};
    int code = look_for_all(request, err);

    if (code != 0 || task->volume_mounts_count == 0)
        return code;
    if (!hooks_driver(request->hooks, task->driver)->mounts)
        return err_set(
            err, ERR_REFUSED, "task driver \"%s\" for \"%s\" does not support %s", task->driver,
            task->name,
            spec_mounts_claim(asked->alloc, task) ? "CSI" : "host volumes"); /* as Nomad says it */
    code = hooks_env_build(request->hooks, asked->alloc, task, asked->results, asked->results_bytes,
                           &env, err);
    if (code == 0)
        code = mount_all(&mounting);
    arena_free(&arena);
    return code;
}

/* --- what a driver is told of all that --- */

/* Takes VALUE apart, in place. */
static bool read_mount(char *value, struct spec_mount *mount)
{
    char *host = strsep(&value, "\t"), *access = strsep(&value, "\t");
    char *propagation = strsep(&value, "\t");

    if (propagation == NULL || host[0] != '/' ||
        !spec_propagation(propagation, &mount->propagation) ||
        (value != NULL && !text_equal(value, "mount")))
        return false;
    mount->host = host;
    mount->is_mount = value != NULL;
    mount->read_only = text_equal(access, "ro");
    return mount->read_only || text_equal(access, "rw");
}

/* A node of a device, with what may be done to it: who may not write to it has it read-only.  That
 * one may make other nodes of it is nothing that a mount could say. */
static bool read_node(char *value, struct spec_mount *mount)
{
    char *host = strsep(&value, "\t");

    if (value == NULL || host[0] != '/' || strspn(value, "rwm") != strlen(value))
        return false;
    mount->host = host;
    mount->read_only = strchr(value, 'w') == NULL;
    mount->is_node = true;
    return true;
}

/* A storage plugin has the devices of the host, which a job cannot ask for. */
static bool is_dev(const struct result *result)
{
    return result->hook == TASK_HOOK_CSI_PLUGIN && text_equal(result->key, "/dev");
}

static bool read_place(const struct result *result, char place[SPEC_PLACE_SIZE])
{
    if (is_dev(result))
        return text_copy(place, SPEC_PLACE_SIZE, result->key);
    return spec_place(result->key, place) == NULL;
}

int hooks_mounts(struct arena *arena, const uint8_t *results, uint32_t bytes,
                 struct spec_mounts *ret_mounts, struct err *err)
{
    struct spec_mounts mounts = {0};
    struct result result;

    for (uint32_t at = 0; results_next(results, bytes, &at, &result);)
        mounts.count += result.kind == RESULT_MOUNT || result.kind == RESULT_DEVICE;
    mounts.items =
        mounts.count == 0 ? NULL : arena_new(arena, mounts.count * sizeof(*mounts.items));
    mounts.count = 0;
    for (uint32_t at = 0; results_next(results, bytes, &at, &result);) {
        char place[SPEC_PLACE_SIZE];

        if (result.kind != RESULT_MOUNT && result.kind != RESULT_DEVICE)
            continue;
        struct spec_mount *mount = &mounts.items[mounts.count];
        if (result.kind == RESULT_DEVICE) {
            if (!read_node(arena_copy(arena, result.value, result.value_length), mount))
                return err_set(err, ERR_CORRUPT,
                               "a device among the results of the hooks is damaged");
            mount->inside = arena_text(arena, result.key);
            mounts.count++;
            continue;
        }
        if (!read_place(&result, place) ||
            !read_mount(arena_copy(arena, result.value, result.value_length), mount))
            return err_set(err, ERR_CORRUPT, "a mount among the results of the hooks is damaged");
        mount->inside = arena_text(arena, place);
        mount->has_devices = is_dev(&result);
        mounts.count++;
    }
    *ret_mounts = mounts;
    return 0;
}
