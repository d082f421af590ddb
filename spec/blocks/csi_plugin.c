/*
 * The csi_plugin block of a task: what is not given, and what is wrong.
 *
 * Follows nomad v2.0.5 api/tasks.go TaskCSIPluginConfig and nomad/structs/structs.go Task.Validate.
 * What Nomad would only fail at later is refused here: an id that no directory can have, and a
 * second plugin in the group, whose socket would be the first one's.
 */
#include "spec/blocks/blocks.h"

#include "fsm/fields.h"
#include "spec/json.h"
#include "spec/names.h"

#include <string.h>

#define HEALTH_TIMEOUT_NS INT64_C(30000000000)

static void set_missing(json_t *object, const char *field, json_t *value)
{
    if (json_object_get(object, field) == NULL)
        check(json_object_set(object, field, value) == 0);
    json_decref(value);
}

static void set_default(json_t *object, const char *field, const char *text)
{
    if (*text_of(object, field) == '\0')
        check(json_object_set_new(object, field, json_string(text)) == 0);
}

void jobspec_default_csi_plugin(json_t *task)
{
    json_t *plugin = json_object_get(task, "CSIPluginConfig");

    if (plugin == NULL)
        return;
    set_missing(plugin, "ID", json_string(""));
    set_missing(plugin, "Type", json_string(""));
    set_default(plugin, "MountDir", "/csi");
    set_default(plugin, "StagePublishBaseDir", "/local/csi");
    if (json_integer_value(json_object_get(plugin, "HealthTimeout")) == 0)
        check(json_object_set_new(plugin, "HealthTimeout", json_integer(HEALTH_TIMEOUT_NS)) == 0);
}

bool spec_plugin_type(const char *text, enum plugin_type *ret_type)
{
    static const struct jobspec_word types[] = {{"node", PLUGIN_CSI_NODE},
                                                {"controller", PLUGIN_CSI_CONTROLLER},
                                                {"monolith", PLUGIN_CSI_MONOLITH}};
    int type;

    if (!jobspec_word_value(types, COUNT_OF(types), text, &type))
        return false;
    *ret_type = (enum plugin_type)type;
    return true;
}

const char *spec_plugin_fault(const char *id)
{
    if (strlen(id) >= PLUGIN_NAME_SIZE)
        return "is longer than 127 bytes";
    if (id[0] == '.' || strchr(id, '/') != NULL)
        return "cannot be the name of a directory";
    for (const char *at = id; *at != '\0'; at++) {
        if ((unsigned char)*at < ' ' || *at == 0x7f)
            return "has a control character";
    }
    return NULL;
}

/* DIRECTORY is ABOVE, or in it; both are plain. */
static bool is_within(const char *directory, const char *above)
{
    size_t length = strlen(above);

    return text_starts_with(directory, above) &&
           (directory[length] == '\0' || directory[length] == '/' || text_equal(above, "/"));
}

static bool check_place(struct jobspec_work *work, const json_t *plugin, const char *field,
                        char place[SPEC_PLACE_SIZE])
{
    const char *fault = spec_place(text_of(plugin, field), place);

    if (fault != NULL)
        jobspec_complain(work, plugin, field, NULL, "csi_plugin: the directory \"%.80s\" %s",
                         text_of(plugin, field), fault);
    return fault == NULL;
}

static void check_plugin(struct jobspec_work *work, const json_t *plugin)
{
    const char *id = text_of(plugin, "ID"), *type = text_of(plugin, "Type");
    const char *fault = spec_plugin_fault(id);
    char mount[SPEC_PLACE_SIZE], base[SPEC_PLACE_SIZE];
    enum plugin_type known;

    if (*id == '\0')
        jobspec_complain(work, plugin, "", "write id = \"name\"",
                         "CSIPluginConfig must have a non-empty PluginID");
    else if (fault != NULL)
        jobspec_complain(work, plugin, "ID", NULL, "the id of a plugin %s", fault);
    if (!spec_plugin_type(type, &known))
        jobspec_complain(work, plugin, *type == '\0' ? "" : "Type", NULL,
                         "CSIPluginConfig PluginType must be one of 'node', 'controller', or "
                         "'monolith', got: \"%.40s\"",
                         type);
    bool plain = check_place(work, plugin, "MountDir", mount);
    plain = check_place(work, plugin, "StagePublishBaseDir", base) && plain;
    if (plain && is_within(base, mount))
        jobspec_complain(work, plugin, "StagePublishBaseDir", NULL,
                         "CSIPluginConfig StagePublishBaseDir must not be a subdirectory of "
                         "MountDir, got: StagePublishBaseDir=\"%.80s\" MountDir=\"%.80s\"",
                         base, mount);
}

void jobspec_check_csi_plugins(struct jobspec_work *work, const json_t *group)
{
    const json_t *task, *first = NULL;
    size_t i;

    json_array_foreach(jobspec_list(group, "Tasks"), i, task)
    {
        const json_t *plugin = json_object_get(task, "CSIPluginConfig");

        if (plugin == NULL)
            continue;
        check_plugin(work, plugin);
        if (first != NULL)
            jobspec_complain(work, plugin, "", "give each its own group",
                             "a group has one task that is a CSI plugin: task \"%.60s\" is one",
                             text_of(first, "Name"));
        else
            first = task;
    }
}
