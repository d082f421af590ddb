/*
 * Files of volumes: what Nomad's `volume register` and `volume create` read.
 *
 * They are of HCL's first version, in which more may stand on one line than in a job file.  What is
 * in one and means nothing is refused by its name.  Follows nomad v2.0.5 command/volume_register.go
 * and volume_{register,create}_{csi,host}.go.
 */
#include "agent/cli/volume/volume.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- sizes --- */

bool volume_bytes(const char *text, int64_t *ret_bytes)
{
    static const struct {
        const char *unit;
        double bytes;
    } units[] = {
        {"", 1},         {"b", 1},        {"k", 1e3},      {"kb", 1e3},     {"m", 1e6},
        {"mb", 1e6},     {"g", 1e9},      {"gb", 1e9},     {"t", 1e12},     {"tb", 1e12},
        {"p", 1e15},     {"pb", 1e15},    {"ki", 0x1p10},  {"kib", 0x1p10}, {"mi", 0x1p20},
        {"mib", 0x1p20}, {"gi", 0x1p30},  {"gib", 0x1p30}, {"ti", 0x1p40},  {"tib", 0x1p40},
        {"pi", 0x1p50},  {"pib", 0x1p50},
    };
    char *end;
    double number = strtod(text, &end);

    if (end == text || !isdigit((unsigned char)text[0]))
        return false;
    end += strspn(end, " ");
    for (size_t i = 0; i < COUNT_OF(units); i++) {
        if (strcasecmp(end, units[i].unit) != 0)
            continue;
        if (!isfinite(number) || number * units[i].bytes >= 0x1p62)
            return false;
        *ret_bytes = (int64_t)(number * units[i].bytes);
        return true;
    }
    return false;
}

/* --- from the file's words to the API's --- */

struct reading {
    char *error; /* HCL_ERROR_SIZE bytes; "": nothing is wrong yet */
    const char *file;
    const struct argument *arguments; /* of a volume of its type */
    size_t arguments_count;
    json_t *to;
};

static void complain(struct reading *reading, const char *name, const char *what)
{
    if (reading->error[0] == '\0')
        (void)text_format(reading->error, HCL_ERROR_SIZE, "%s: %.60s %s", reading->file, name,
                          what); /* cut if too long */
}

static void keep(json_t *to, const char *name, json_t *value)
{
    check(json_object_set_new(to, name, value) == 0);
}

/* The blocks of VALUE, which may be one object or a list of them; NULL: it is none. */
static json_t *blocks_of(json_t *value)
{
    json_t *item;
    size_t i;

    if (json_is_object(value))
        return json_pack("[O]", value);
    if (!json_is_array(value))
        return NULL;
    json_array_foreach(value, i, item)
    {
        if (!json_is_object(item))
            return NULL;
    }
    return json_incref(value);
}

static json_t *text_from(struct reading *reading, const char *name, json_t *value)
{
    json_t *text = hcl_convert(value, HCL_STRING);

    if (text == NULL)
        complain(reading, name, "must be a text");
    return text == NULL ? json_string("") : text;
}

static json_t *bytes_from(struct reading *reading, const char *name, json_t *value)
{
    json_t *text = hcl_convert(value, HCL_STRING);
    int64_t bytes = 0;

    if (text == NULL ||
        (json_string_length(text) > 0 && !volume_bytes(json_string_value(text), &bytes)))
        complain(reading, name, "must be a number of bytes, as \"10GiB\"");
    json_decref(text);
    return json_integer(bytes);
}

/* Texts by name: of all blocks, if there are several. */
static json_t *map_from(struct reading *reading, const char *name, json_t *value)
{
    json_t *blocks = blocks_of(value), *map = json_object(), *block, *item;
    const char *key;
    size_t i;

    if (blocks == NULL)
        complain(reading, name, "must be a block of texts");
    json_array_foreach(blocks, i, block)
    {
        json_object_foreach(block, key, item) keep(map, key, text_from(reading, key, item));
    }
    json_decref(blocks);
    return map;
}

/* A list of what EACH makes of the blocks of VALUE. */
static json_t *list_from(struct reading *reading, const char *name, json_t *value,
                         json_t *(*each)(struct reading *reading, const char *name, json_t *block))
{
    json_t *blocks = blocks_of(value), *list = json_array(), *block;
    size_t i;

    if (blocks == NULL)
        complain(reading, name, "must be a block");
    json_array_foreach(blocks, i, block)
        check(json_array_append_new(list, each(reading, name, block)) == 0);
    json_decref(blocks);
    return list;
}

struct argument {
    const char *name, *to;
    json_t *(*from)(struct reading *reading, const char *name, json_t *value);
};

/* False: there is none of that NAME. */
static bool keep_argument(struct reading *reading, const struct argument *arguments, size_t count,
                          const char *name, json_t *value, json_t *to)
{
    for (size_t i = 0; i < count; i++) {
        if (text_equal(arguments[i].name, name)) {
            keep(to, arguments[i].to, arguments[i].from(reading, name, value));
            return true;
        }
    }
    return false;
}

/* What BLOCK, which is called NAME, says in ARGUMENTS and nothing else. */
static json_t *object_from(struct reading *reading, const char *name, json_t *block,
                           const struct argument *arguments, size_t count)
{
    json_t *to = json_object(), *item;
    char what[ERR_TEXT_SIZE];
    const char *key;

    (void)text_format(what, sizeof(what), "is no argument of %s", name); /* a known name */
    json_object_foreach(block, key, item)
    {
        if (!keep_argument(reading, arguments, count, key, item, to))
            complain(reading, key, what);
    }
    return to;
}

/* The same of VALUE, which is one block. */
static json_t *only_object_from(struct reading *reading, const char *name, json_t *value,
                                const struct argument *arguments, size_t count)
{
    json_t *blocks = blocks_of(value);

    if (json_array_size(blocks) != 1)
        complain(reading, name, "must be one block");
    json_t *to = object_from(reading, name, json_array_get(blocks, 0), arguments, count);
    json_decref(blocks);
    return to;
}

static json_t *capability_from(struct reading *reading, const char *name, json_t *block)
{
    static const struct argument arguments[] = {
        {"access_mode", "AccessMode", text_from},
        {"attachment_mode", "AttachmentMode", text_from},
    };

    return object_from(reading, name, block, arguments, COUNT_OF(arguments));
}

static json_t *capabilities_from(struct reading *reading, const char *name, json_t *value)
{
    return list_from(reading, name, value, capability_from);
}

static json_t *flags_from(struct reading *reading, const char *name, json_t *value)
{
    json_t *list = json_array(), *item;
    size_t i;

    if (!json_is_array(value))
        complain(reading, name, "must be a list of texts");
    json_array_foreach(value, i, item)
        check(json_array_append_new(list, text_from(reading, name, item)) == 0);
    return list;
}

static json_t *options_from(struct reading *reading, const char *name, json_t *value)
{
    static const struct argument arguments[] = {
        {"fs_type", "FSType", text_from},
        {"mount_flags", "MountFlags", flags_from},
    };

    return only_object_from(reading, name, value, arguments, COUNT_OF(arguments));
}

/* required { topology { segments { zone = "a" } } ... } */
static json_t *topologies_from(struct reading *reading, const char *name, json_t *value)
{
    json_t *blocks = blocks_of(value), *list = json_array(), *block, *topology;
    size_t i, t;

    if (blocks == NULL)
        complain(reading, name, "must be a block");
    json_array_foreach(blocks, i, block)
    {
        json_t *topologies = blocks_of(json_object_get(block, "topology"));

        if (topologies == NULL || json_object_size(block) != 1)
            complain(reading, name, "must hold topology blocks alone");
        json_array_foreach(topologies, t, topology)
        {
            json_t *segments = json_object_get(topology, "segments");

            if (segments == NULL || json_object_size(topology) != 1)
                complain(reading, "topology", "must hold a segments block alone");
            check(json_array_append_new(list, json_pack("{s:o}", "Segments",
                                                        map_from(reading, "segments", segments))) ==
                  0);
        }
        json_decref(topologies);
    }
    json_decref(blocks);
    return list;
}

static json_t *request_from(struct reading *reading, const char *name, json_t *value)
{
    static const struct argument arguments[] = {
        {"required", "Required", topologies_from},
        {"preferred", "Preferred", topologies_from},
    };

    return only_object_from(reading, name, value, arguments, COUNT_OF(arguments));
}

/* One condition on the node, written in one of the ways that a job's may be. */
static json_t *constraint_from(struct reading *reading, const char *name, json_t *block)
{
    static const struct argument arguments[] = {
        {"attribute", "LTarget", text_from},    {"value", "RTarget", text_from},
        {"operator", "Operand", text_from},     {"version", "RTarget", text_from},
        {"semver", "RTarget", text_from},       {"regexp", "RTarget", text_from},
        {"set_contains", "RTarget", text_from},
    };
    static const char *const operands[] = {"version", "semver", "regexp", "set_contains"};
    json_t *said = object_from(reading, name, block, arguments, COUNT_OF(arguments));
    json_t *to = json_pack("{s:s, s:s, s:s}", "LTarget", "", "RTarget", "", "Operand", "=");

    check(json_object_update(to, said) == 0);
    json_decref(said);
    for (size_t i = 0; i < COUNT_OF(operands); i++) {
        if (json_object_get(block, operands[i]) != NULL)
            keep(to, "Operand", json_string(operands[i]));
    }
    return to;
}

static json_t *constraints_from(struct reading *reading, const char *name, json_t *value)
{
    return list_from(reading, name, value, constraint_from);
}

static const struct argument host_arguments[] = {
    {"id", "ID", text_from},
    {"name", "Name", text_from},
    {"namespace", "Namespace", text_from},
    {"plugin_id", "PluginID", text_from},
    {"node_id", "NodeID", text_from},
    {"node_pool", "NodePool", text_from},
    {"host_path", "HostPath", text_from},
    {"capacity", "CapacityBytes", bytes_from},
    {"capacity_min", "RequestedCapacityMinBytes", bytes_from},
    {"capacity_max", "RequestedCapacityMaxBytes", bytes_from},
    {"capability", "RequestedCapabilities", capabilities_from},
    {"constraint", "Constraints", constraints_from},
    {"parameters", "Parameters", map_from},
};

static const struct argument csi_arguments[] = {
    {"id", "ID", text_from},
    {"name", "Name", text_from},
    {"namespace", "Namespace", text_from},
    {"plugin_id", "PluginID", text_from},
    {"external_id", "ExternalID", text_from},
    {"snapshot_id", "SnapshotID", text_from},
    {"clone_id", "CloneID", text_from},
    {"capacity_min", "RequestedCapacityMin", bytes_from},
    {"capacity_max", "RequestedCapacityMax", bytes_from},
    {"capability", "RequestedCapabilities", capabilities_from},
    {"mount_options", "MountOptions", options_from},
    {"topology_request", "RequestedTopologies", request_from},
    {"secrets", "Secrets", map_from},
    {"parameters", "Parameters", map_from},
    {"context", "Context", map_from},
};

static void complain_of_unknown(struct reading *reading, const char *name)
{
    const char *names[COUNT_OF(csi_arguments) + COUNT_OF(host_arguments)], *closest;
    char what[ERR_TEXT_SIZE];

    for (size_t i = 0; i < reading->arguments_count; i++)
        names[i] = reading->arguments[i].name;
    closest = hcl_closest(name, names, reading->arguments_count);
    if (text_equal(name, "access_mode") || text_equal(name, "attachment_mode"))
        (void)text_copy(what, sizeof(what), "is said in a capability block");
    else if (closest != NULL)
        (void)text_format(what, sizeof(what), "is nothing that a volume has; did you mean %s?",
                          closest);
    else
        (void)text_copy(what, sizeof(what), "is nothing that a volume has");
    complain(reading, name, what);
}

static void read_argument(struct reading *reading, const char *name, json_t *value)
{
    if (!text_equal(name, "type") &&
        !keep_argument(reading, reading->arguments, reading->arguments_count, name, value,
                       reading->to))
        complain_of_unknown(reading, name);
}

/* --- files --- */

static int parse_hcl(const char *name, const char *text, size_t length, json_t **ret_body,
                     char *error)
{
    const struct hcl_options options = {0};
    struct hcl_error wrong = {0};
    struct hcl_context *context = NULL;
    struct hcl_file *file;

    if (hcl_parse_config(name, text, length, &file, &wrong) != 0) {
        hcl_error_text(&wrong, error, HCL_ERROR_SIZE);
        return wrong.code;
    }
    int code = hcl_context_new(file, &options, &context, &wrong);
    if (code == 0)
        code = hcl_body_value(context, NULL, hcl_root(file), ret_body, &wrong);
    if (code != 0)
        hcl_error_text(&wrong, error, HCL_ERROR_SIZE);
    hcl_context_free(context);
    hcl_free(file);
    return code;
}

static int parse_json(const char *name, const char *text, size_t length, json_t **ret_body,
                      char *error)
{
    json_error_t wrong;

    *ret_body = json_loadb(text, length, JSON_REJECT_DUPLICATES, &wrong);
    if (json_is_object(*ret_body))
        return 0;
    (void)text_format(error, HCL_ERROR_SIZE, "%s:%d:%d: %s", name, wrong.line, wrong.column,
                      wrong.text);
    json_decref(*ret_body);
    return ERR_INVALID;
}

/* False: it is said what is wrong with the type. */
static bool choose_type(struct reading *reading, const json_t *body, bool *ret_is_host)
{
    const json_t *type = json_object_get(body, "type");
    const char *text = json_string_value(type);

    *ret_is_host = text != NULL && text_equal(text, "host");
    reading->arguments = *ret_is_host ? host_arguments : csi_arguments;
    reading->arguments_count = *ret_is_host ? COUNT_OF(host_arguments) : COUNT_OF(csi_arguments);
    if (type == NULL)
        complain(reading, "type", "is missing: write type = \"csi\" or type = \"host\"");
    else if (!*ret_is_host && (text == NULL || !text_equal(text, "csi")))
        complain(reading, "type", "must be \"csi\" or \"host\"");
    return reading->error[0] == '\0';
}

int volume_read(const char *name, const char *text, size_t length, json_t **ret_volume,
                bool *ret_is_host, char *error)
{
    struct reading reading = {.error = error, .file = name};
    json_t *body = NULL, *value;
    const char *key;

    error[0] = '\0';
    int code = text[strspn(text, " \t\r\n")] == '{' ? parse_json(name, text, length, &body, error)
                                                    : parse_hcl(name, text, length, &body, error);
    if (code != 0)
        return code;
    reading.to = json_object();
    if (choose_type(&reading, body, ret_is_host))
        json_object_foreach(body, key, value) read_argument(&reading, key, value);
    json_decref(body);
    if (error[0] == '\0') {
        *ret_volume = reading.to;
        return 0;
    }
    json_decref(reading.to);
    return ERR_INVALID;
}

/* --- examples --- */

const char volume_example_host_hcl[] =
    "# A volume of this machine, which tasks find by its name.\n"
    "type      = \"host\"\n"
    "name      = \"data\"\n"
    "namespace = \"default\"\n"
    "\n"
    "# Who makes it: \"mkdir\" makes a directory; others are programs in the directory\n"
    "# host_volume_plugin_dir of the agent.\n"
    "plugin_id = \"mkdir\"\n"
    "\n"
    "# How large it is to be, for plugins that can tell.\n"
    "# capacity_min = \"1GiB\"\n"
    "# capacity_max = \"10GiB\"\n"
    "\n"
    "# As what jobs may ask for it, in any number: single-node-reader-only,\n"
    "# single-node-writer, single-node-single-writer or single-node-multi-writer.\n"
    "capability {\n"
    "  access_mode     = \"single-node-writer\"\n"
    "  attachment_mode = \"file-system\"\n"
    "}\n"
    "\n"
    "# What the plugin is told beside that; mkdir knows mode, uid and gid.\n"
    "parameters {\n"
    "  mode = \"0700\"\n"
    "}\n"
    "\n"
    "# To register one that is there, instead of a plugin_id:\n"
    "# node_id   = \"...\"\n"
    "# host_path = \"/srv/data\"\n";

const char volume_example_hcl[] =
    "# A volume of a storage plugin.  Jobs ask for it by its id:\n"
    "#\n"
    "#   volume \"data\" {\n"
    "#     type            = \"csi\"\n"
    "#     source          = \"database\"\n"
    "#     access_mode     = \"single-node-writer\"\n"
    "#     attachment_mode = \"file-system\"\n"
    "#   }\n"
    "\n"
    "id        = \"database\"\n"
    "name      = \"database\"\n"
    "type      = \"csi\"\n"
    "plugin_id = \"hostpath\" # the id of a task's csi_plugin block\n"
    "\n"
    "# What the storage calls a volume that is there already: for `cairn volume register`.  Leave "
    "it\n"
    "# out for `cairn volume create`, which has the plugin make the volume.\n"
    "# external_id = \"vol-0123456789\"\n"
    "\n"
    "# What jobs may ask for: at least one.\n"
    "capability {\n"
    "  access_mode     = \"single-node-writer\"\n"
    "  attachment_mode = \"file-system\"\n"
    "}\n"
    "\n"
    "# How large it is to be made; more than before lets one that is there grow.\n"
    "capacity_min = \"1GiB\"\n"
    "capacity_max = \"2GiB\"\n"
    "\n"
    "# What it is made from, if not from nothing: one of the two.\n"
    "# snapshot_id = \"snap-0123456789\"\n"
    "# clone_id    = \"vol-0123456789\"\n"
    "\n"
    "# How it is mounted.  Flags are taken for secrets and never shown.\n"
    "# mount_options {\n"
    "#   fs_type     = \"ext4\"\n"
    "#   mount_flags = [\"noatime\"]\n"
    "# }\n"
    "\n"
    "# Where it has to be reached from; the plugin says which names and values there are.\n"
    "# topology_request {\n"
    "#   required {\n"
    "#     topology { segments { zone = \"a\" } }\n"
    "#   }\n"
    "# }\n"
    "\n"
    "# For the plugin: to make it, to work with one that is there, and what nobody may see.\n"
    "# parameters {\n"
    "#   kind = \"fast\"\n"
    "# }\n"
    "# context {\n"
    "#   endpoint = \"http://storage.example.com:9000\"\n"
    "# }\n"
    "# secrets {\n"
    "#   key = \"...\"\n"
    "# }\n";

const char volume_example_json[] = "{\n"
                                   "  \"id\": \"database\",\n"
                                   "  \"name\": \"database\",\n"
                                   "  \"type\": \"csi\",\n"
                                   "  \"plugin_id\": \"hostpath\",\n"
                                   "  \"capability\": [\n"
                                   "    {\n"
                                   "      \"access_mode\": \"single-node-writer\",\n"
                                   "      \"attachment_mode\": \"file-system\"\n"
                                   "    }\n"
                                   "  ],\n"
                                   "  \"capacity_min\": \"1GiB\",\n"
                                   "  \"capacity_max\": \"2GiB\"\n"
                                   "}\n";
