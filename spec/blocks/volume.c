/*
 * Volumes of groups, and where their tasks have them.
 *
 * Follows nomad v2.0.5 nomad/structs/volumes.go (VolumeRequest.Validate, VolumeMount.Validate).  A
 * volume is one of the node's configuration, by its name there, or one of a storage plugin, by the
 * id that it was registered with; with per_alloc each alloc has its own, whose name ends in the
 * alloc's index.  What is mounted where is said by each task, in paths of its root: those that
 * would cover what a task is promised are refused here already, unless only its environment tells
 * what they are.
 */
#include "spec/blocks/blocks.h"
#include "spec/json.h"
#include "spec/names.h"

#include <string.h>

static bool is_true(const json_t *object, const char *field)
{
    return json_is_true(json_object_get(object, field));
}

/* --- defaults --- */

static void set_missing(json_t *object, const char *field, json_t *value)
{
    if (json_object_get(object, field) == NULL)
        check(json_object_set(object, field, value) == 0);
    json_decref(value);
}

void jobspec_default_volumes(json_t *group)
{
    static const char *const texts[] = {"Type", "Source", "AccessMode", "AttachmentMode"};
    json_t *volumes = json_object_get(group, "Volumes"), *volume;
    const char *name;

    json_object_foreach(volumes, name, volume)
    {
        check(json_object_set_new(volume, "Name", json_string(name)) == 0);
        for (size_t i = 0; i < COUNT_OF(texts); i++)
            set_missing(volume, texts[i], json_string(""));
        set_missing(volume, "ReadOnly", json_false());
        set_missing(volume, "PerAlloc", json_false());
    }
    if (json_object_size(volumes) == 0)
        (void)json_object_del(group, "Volumes"); /* missing is fine */
}

void jobspec_default_mounts(json_t *task)
{
    json_t *mount;
    size_t i;

    json_array_foreach(jobspec_list(task, "VolumeMounts"), i, mount)
    {
        set_missing(mount, "Volume", json_string(""));
        set_missing(mount, "Destination", json_string(""));
        set_missing(mount, "ReadOnly", json_false());
        set_missing(mount, "PropagationMode",
                    json_string(spec_propagation_name(PROPAGATION_PRIVATE)));
        set_missing(mount, "SELinuxLabel", json_string(""));
    }
    if (json_array_size(json_object_get(task, "VolumeMounts")) == 0)
        (void)json_object_del(task, "VolumeMounts"); /* missing is fine */
}

/* --- what one alloc asks for --- */

/* With an index behind it the id of a volume has room enough: a name is that much shorter. */
static const char *source_fault(const json_t *volume)
{
    const char *source = text_of(volume, "Source"), *fault = spec_volume_name_fault(source);

    return fault == NULL && text_equal(text_of(volume, "Type"), "csi")
               ? spec_volume_id_fault(source)
               : fault;
}

/* What of VOLUME only those of storage plugins have; false: it is damaged. */
static bool read_claim(const json_t *volume, struct spec_volume *to)
{
    const json_t *options = json_object_get(volume, "MountOptions");
    const json_t *flags = json_object_get(options, "MountFlags"), *flag;
    size_t i;

    json_array_foreach(flags, i, flag)
    {
        if (!json_is_string(flag))
            return false;
    }
    to->type = VOLUME_CSI;
    to->fs_type = text_of(options, "FSType");
    to->has_mount_flags = json_is_array(flags);
    to->plugin = "";
    return spec_access(text_of(volume, "AccessMode"), &to->access) &&
           spec_attachment(text_of(volume, "AttachmentMode"), &to->attachment);
}

bool jobspec_volumes(const json_t *group, uint32_t index,
                     struct spec_volume ret_volumes[SPEC_VOLUMES_MAX],
                     char ret_sources[SPEC_VOLUMES_MAX][SPEC_SOURCE_SIZE], size_t *ret_count)
{
    json_t *volumes = json_object_get(group, "Volumes"), *volume;
    const char *name;
    size_t count = 0;

    *ret_count = 0;
    if (volumes != NULL && !json_is_object(volumes))
        return false;
    json_object_foreach(volumes, name, volume)
    {
        const char *source = text_of(volume, "Source"), *type = text_of(volume, "Type");
        bool is_csi = text_equal(type, "csi");
        struct spec_volume claim = {.fs_type = "", .plugin = ""};

        if (count == SPEC_VOLUMES_MAX || (!is_csi && !text_equal(type, "host")) ||
            source_fault(volume) != NULL || spec_group_name_fault(name) != NULL ||
            (is_csi && !read_claim(volume, &claim)))
            return false;
        if (is_true(volume, "PerAlloc"))
            check(text_format(ret_sources[count], SPEC_SOURCE_SIZE, "%s[%u]", source, index));
        else
            check(text_copy(ret_sources[count], SPEC_SOURCE_SIZE, source));
        claim.name = name;
        claim.source = ret_sources[count];
        claim.read_only = is_true(volume, "ReadOnly");
        ret_volumes[count++] = claim;
    }
    *ret_count = count;
    return true;
}

void jobspec_add_plugins(json_t *alloc, const struct spec_pairs *plugins)
{
    for (size_t i = 0; i < plugins->count; i++)
        check(json_object_set_new(jobspec_member(alloc, "VolumePlugins", json_object),
                                  plugins->items[i].key,
                                  json_string(plugins->items[i].value)) == 0);
}

/* --- rules of volumes --- */

static void check_type(struct jobspec_work *work, const json_t *volume, const char *name)
{
    const char *type = text_of(volume, "Type");

    if (!text_equal(type, "host") && !text_equal(type, "csi"))
        jobspec_complain(work, volume, *type == '\0' ? "" : "Type",
                         "write type = \"host\" or type = \"csi\"",
                         "volume \"%.60s\" has unrecognized type \"%.40s\"", name, type);
}

/* A volume of the host. */
static void check_host(struct jobspec_work *work, const json_t *volume, const char *name)
{
    static const char *const modes[] = {"", "single-node-reader-only", "single-node-writer",
                                        "single-node-single-writer", "single-node-multi-writer"};
    const char *mode = text_of(volume, "AccessMode");
    bool known = false;

    for (size_t i = 0; i < COUNT_OF(modes); i++)
        known = known || text_equal(mode, modes[i]);
    if (!known)
        jobspec_complain(work, volume, "AccessMode", NULL,
                         "volume \"%.60s\": host volumes cannot be mounted with %.40s access mode",
                         name, mode);
    if (text_equal(mode, "single-node-reader-only") && !is_true(volume, "ReadOnly"))
        jobspec_complain(work, volume, "AccessMode", "write read_only = true",
                         "volume \"%.60s\": %s volumes must be read-only", name, mode);
    if (json_object_get(volume, "MountOptions") != NULL)
        jobspec_complain(work, volume, "MountOptions", NULL,
                         "volume \"%.60s\": host volumes cannot have mount options", name);
}

/* How many allocs of a group may share a volume, in Nomad's words; NULL: any number. */
static const char *sharing_fault(enum csi_access access, bool read_only)
{
    switch (access) {
    case CSI_SINGLE_NODE_READER:
        return "allows only one reader";
    case CSI_SINGLE_NODE_WRITER:
        return "allows only one reader or writer";
    case CSI_MULTI_NODE_SINGLE_WRITER:
        return read_only ? NULL : "allows only one writer";
    case CSI_MULTI_NODE_READER:
    case CSI_MULTI_NODE_MULTI_WRITER:
    case CSI_ACCESS_UNKNOWN:
    case CSI_SINGLE_NODE_SINGLE_WRITER:
    case CSI_SINGLE_NODE_MULTI_WRITER:
    case CSI_ACCESS_COUNT:
        return NULL;
    }
    unreachable("access mode");
}

static void check_access(struct jobspec_work *work, const json_t *group, const json_t *volume,
                         const char *name)
{
    static const char hint[] = "there are \"single-node-reader-only\", \"single-node-writer\", "
                               "\"multi-node-reader-only\", \"multi-node-single-writer\" and "
                               "\"multi-node-multi-writer\"";
    const char *mode = text_of(volume, "AccessMode"), *fault;
    bool shared = json_integer_value(json_object_get(group, "Count")) > 1;
    enum csi_access access;

    if (!spec_access(mode, &access)) {
        jobspec_complain(work, volume, *mode == '\0' ? "" : "AccessMode", hint,
                         *mode == '\0'
                             ? "volume \"%.60s\": CSI volumes must have an access mode%.0s"
                             : "volume \"%.60s\" has an unknown access mode \"%.40s\"",
                         name, mode);
        return;
    }
    if ((access == CSI_SINGLE_NODE_READER || access == CSI_MULTI_NODE_READER) &&
        !is_true(volume, "ReadOnly"))
        jobspec_complain(work, volume, "AccessMode", "write read_only = true",
                         "volume \"%.60s\": %s volumes must be read-only", name, mode);
    fault = sharing_fault(access, is_true(volume, "ReadOnly"));
    if (fault != NULL && shared && !is_true(volume, "PerAlloc"))
        jobspec_complain(work, volume, "AccessMode",
                         "give each alloc a volume of its own with per_alloc = true, or write "
                         "count = 1",
                         "volume \"%.60s\" with %s access mode %s", name, mode, fault);
}

/* A volume of a storage plugin. */
static void check_claim(struct jobspec_work *work, const json_t *group, const json_t *volume,
                        const char *name)
{
    static const char hint[] = "there are \"file-system\" and \"block-device\"";
    const char *mode = text_of(volume, "AttachmentMode");
    enum csi_attachment attachment;

    if (*mode == '\0')
        jobspec_complain(work, volume, "", hint,
                         "volume \"%.60s\": CSI volumes must have an attachment mode", name);
    else if (!spec_attachment(mode, &attachment))
        jobspec_complain(work, volume, "AttachmentMode", hint,
                         "volume \"%.60s\" has an unknown attachment mode \"%.40s\"", name, mode);
    else if (attachment == CSI_BLOCK_DEVICE && json_object_get(volume, "MountOptions") != NULL)
        jobspec_complain(work, volume, "MountOptions", NULL,
                         "volume \"%.60s\": block devices cannot have mount options", name);
    check_access(work, group, volume, name);
}

static void check_per_alloc(struct jobspec_work *work, const json_t *job, const json_t *group,
                            const json_t *volume, const char *name)
{
    const json_t *update = json_object_get(group, "Update");
    const char *type = text_of(job, "Type");

    if (!is_true(volume, "PerAlloc"))
        return;
    if (is_true(volume, "Sticky"))
        jobspec_complain(work, volume, "Sticky", NULL,
                         "volume \"%.60s\" cannot be per_alloc and sticky at the same time", name);
    if (text_equal(type, "system") || text_equal(type, "sysbatch"))
        jobspec_complain(work, volume, "PerAlloc", NULL,
                         "volume \"%.60s\" cannot be per_alloc for system or sysbatch jobs", name);
    if (json_integer_value(json_object_get(update, "Canary")) > 0)
        jobspec_complain(work, volume, "PerAlloc", NULL,
                         "volume \"%.60s\" cannot be per_alloc when canaries are in use", name);
}

void jobspec_check_volumes(struct jobspec_work *work, const json_t *job, const json_t *group)
{
    json_t *volumes = json_object_get(group, "Volumes"), *volume;
    const char *name, *fault;
    size_t claims = 0;

    json_object_foreach(volumes, name, volume)
    {
        fault = spec_group_name_fault(name);
        if (fault != NULL)
            jobspec_complain(work, volume, "", NULL, "the name of a volume %s", fault);
        check_type(work, volume, name);
        bool is_csi = text_equal(text_of(volume, "Type"), "csi");
        fault = source_fault(volume);
        if (*text_of(volume, "Source") == '\0')
            jobspec_complain(work, volume, "",
                             is_csi ? "write source = \"id\", of a registered volume"
                                    : "write source = \"name\", of a host volume",
                             "volume \"%.60s\" has an empty source", name);
        else if (fault != NULL)
            jobspec_complain(work, volume, "Source", NULL, "volume \"%.60s\": its source %s", name,
                             fault);
        if (is_csi)
            check_claim(work, group, volume, name);
        else
            check_host(work, volume, name);
        claims += is_csi;
        check_per_alloc(work, job, group, volume, name);
    }
    if (claims > ALLOC_CLAIMS_MAX)
        jobspec_complain(work, group, "", NULL, "%zu volumes of type csi, there may be %d", claims,
                         ALLOC_CLAIMS_MAX);
    if (json_object_size(volumes) > SPEC_VOLUMES_MAX)
        jobspec_complain(work, group, "", NULL, "%zu volumes, there may be %d",
                         json_object_size(volumes), SPEC_VOLUMES_MAX);
}

/* --- rules of mounts --- */

/* True if only its environment tells where it is. */
static bool is_open(const char *destination)
{
    return strstr(destination, "${") != NULL;
}

static void check_destination(struct jobspec_work *work, const json_t *list, size_t at)
{
    const json_t *mount = json_array_get(list, at);
    const char *destination = text_of(mount, "Destination"), *fault;
    char place[SPEC_PLACE_SIZE], other[SPEC_PLACE_SIZE];

    if (strlen(destination) >= SPEC_PLACE_SIZE || !is_open(destination)) {
        fault = spec_place(destination, place);
        if (fault != NULL)
            jobspec_complain(work, mount, *destination == '\0' ? "" : "Destination", NULL,
                             "volume_mount: the destination \"%.80s\" %s", destination, fault);
        if (fault != NULL)
            return;
    }
    for (size_t i = 0; i < at && !is_open(destination); i++) {
        const char *before = text_of(json_array_get(list, i), "Destination");

        if (!is_open(before) && spec_place(before, other) == NULL && text_equal(other, place))
            jobspec_complain(work, mount, "Destination", NULL,
                             "volume_mount: a second one with the destination \"%.80s\"", place);
    }
}

static void check_mount(struct jobspec_work *work, const json_t *group, const json_t *list,
                        size_t at)
{
    static const char *const labels[] = {"", "z", "Z"};
    const json_t *mount = json_array_get(list, at);
    const char *volume = text_of(mount, "Volume"), *mode = text_of(mount, "PropagationMode");
    const char *label = text_of(mount, "SELinuxLabel");
    enum spec_propagation propagation;
    bool known = false;

    if (*volume == '\0')
        jobspec_complain(work, mount, "", "write volume = \"name\"",
                         "volume_mount references an empty volume");
    else if (json_object_get(json_object_get(group, "Volumes"), volume) == NULL)
        jobspec_complain(work, mount, "Volume",
                         "a group's volumes are its blocks volume \"name\" { ... }",
                         "volume_mount references undefined volume \"%.60s\"", volume);
    if (!spec_propagation(mode, &propagation))
        jobspec_complain(work, mount, "PropagationMode",
                         "there are \"private\", \"host-to-task\" and \"bidirectional\"",
                         "volume_mount has an invalid propagation mode: \"%.40s\"", mode);
    for (size_t i = 0; i < COUNT_OF(labels); i++)
        known = known || text_equal(label, labels[i]);
    if (!known)
        jobspec_complain(work, mount, "SELinuxLabel", "there are \"z\" and \"Z\"",
                         "volume_mount has an invalid SELinux label: \"%.40s\"", label);
    check_destination(work, list, at);
}

void jobspec_check_mounts(struct jobspec_work *work, const json_t *group, const json_t *task)
{
    const json_t *list = jobspec_list(task, "VolumeMounts");
    size_t count = json_array_size(list);

    if (count > SPEC_MOUNTS_MAX)
        jobspec_complain(work, task, "VolumeMounts", NULL, "%zu volume_mounts, there may be %d",
                         count, SPEC_MOUNTS_MAX);
    for (size_t i = 0; i < count && i < SPEC_MOUNTS_MAX; i++)
        check_mount(work, group, list, i);
}
