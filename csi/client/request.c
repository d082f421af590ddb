/*
 * What each call has, and whether a request is one that may be sent.
 *
 * One row for each call: what it must be told and what it may be.  Beyond this a request is judged
 * by the bounds of the specification, so that no plugin sees what it need not expect.
 */
#include "csi/client/part.h"

#include <string.h>

#define FIELDS(X)                                                                                  \
    X(VOLUME, "volume id")                                                                         \
    X(NAME, "name")                                                                                \
    X(NODE, "node id")                                                                             \
    X(SNAPSHOT, "snapshot id")                                                                     \
    X(SOURCE, "source volume id")                                                                  \
    X(STAGING, "staging path")                                                                     \
    X(TARGET, "target path")                                                                       \
    X(CAPABILITY, "capability")                                                                    \
    X(MANY, "more capabilities than one")                                                          \
    X(READONLY, "\"read only\"")                                                                   \
    X(PUBLISH_CONTEXT, "publish context")                                                          \
    X(VOLUME_CONTEXT, "volume context")                                                            \
    X(PARAMETERS, "parameters")                                                                    \
    X(SECRETS, "secrets")                                                                          \
    X(CAPACITY, "capacity")                                                                        \
    X(ENTRIES, "number of entries")                                                                \
    X(TOKEN, "token")                                                                              \
    X(TOPOLOGY, "topology")

enum field_number {
#define X(name, text) NUMBER_##name,
    FIELDS(X)
#undef X
        FIELD_COUNT,
};

enum field {
#define X(name, text) F_##name = 1 << NUMBER_##name,
    FIELDS(X)
#undef X
};

static const char *const field_names[] = {
#define X(name, text) text,
    FIELDS(X)
#undef X
};

static const struct {
    unsigned must, may;
} calls[CSI_CALL_COUNT] = {
    [CSI_CREATE_VOLUME] = {F_NAME | F_CAPABILITY, F_MANY | F_CAPACITY | F_PARAMETERS | F_SECRETS |
                                                      F_SNAPSHOT | F_SOURCE | F_TOPOLOGY},
    [CSI_DELETE_VOLUME] = {F_VOLUME, F_SECRETS},
    [CSI_CONTROLLER_PUBLISH] = {F_VOLUME | F_NODE | F_CAPABILITY,
                                F_READONLY | F_SECRETS | F_VOLUME_CONTEXT},
    /* Without a node it would be detached from all. */
    [CSI_CONTROLLER_UNPUBLISH] = {F_VOLUME | F_NODE, F_SECRETS},
    [CSI_VALIDATE] = {F_VOLUME | F_CAPABILITY,
                      F_MANY | F_VOLUME_CONTEXT | F_PARAMETERS | F_SECRETS},
    [CSI_LIST_VOLUMES] = {0, F_ENTRIES | F_TOKEN},
    [CSI_GET_CAPACITY] = {0, F_CAPABILITY | F_MANY | F_PARAMETERS},
    [CSI_CREATE_SNAPSHOT] = {F_SOURCE | F_NAME, F_SECRETS | F_PARAMETERS},
    [CSI_DELETE_SNAPSHOT] = {F_SNAPSHOT, F_SECRETS},
    [CSI_LIST_SNAPSHOTS] = {0, F_ENTRIES | F_TOKEN | F_SOURCE | F_SNAPSHOT | F_SECRETS},
    [CSI_CONTROLLER_EXPAND] = {F_VOLUME | F_CAPACITY, F_SECRETS | F_CAPABILITY},
    [CSI_NODE_STAGE] = {F_VOLUME | F_STAGING | F_CAPABILITY,
                        F_PUBLISH_CONTEXT | F_VOLUME_CONTEXT | F_SECRETS},
    [CSI_NODE_UNSTAGE] = {F_VOLUME | F_STAGING, 0},
    [CSI_NODE_PUBLISH] = {F_VOLUME | F_TARGET | F_CAPABILITY, F_STAGING | F_READONLY |
                                                                  F_PUBLISH_CONTEXT |
                                                                  F_VOLUME_CONTEXT | F_SECRETS},
    [CSI_NODE_UNPUBLISH] = {F_VOLUME | F_TARGET, 0},
    [CSI_NODE_STATS] = {F_VOLUME | F_TARGET, F_STAGING},
    [CSI_NODE_EXPAND] = {F_VOLUME | F_TARGET, F_STAGING | F_CAPACITY | F_CAPABILITY | F_SECRETS},
};

static bool is_said(const char *text)
{
    return text != NULL && text[0] != '\0';
}

static unsigned fields_of(const struct csi_request *request)
{
    return (is_said(request->volume_id) ? F_VOLUME : 0u) | (is_said(request->name) ? F_NAME : 0u) |
           (is_said(request->node_id) ? F_NODE : 0u) |
           (is_said(request->snapshot_id) ? F_SNAPSHOT : 0u) |
           (is_said(request->source_volume_id) ? F_SOURCE : 0u) |
           (is_said(request->staging_path) ? F_STAGING : 0u) |
           (is_said(request->target_path) ? F_TARGET : 0u) |
           (request->capabilities_count > 0 ? F_CAPABILITY : 0u) |
           (request->capabilities_count > 1 ? F_MANY : 0u) | (request->readonly ? F_READONLY : 0u) |
           (request->publish_context.count > 0 ? F_PUBLISH_CONTEXT : 0u) |
           (request->volume_context.count > 0 ? F_VOLUME_CONTEXT : 0u) |
           (request->parameters.count > 0 ? F_PARAMETERS : 0u) |
           (csi_secrets_count(request->secrets) > 0 ? F_SECRETS : 0u) |
           (request->bytes_min != 0 || request->bytes_max != 0 ? F_CAPACITY : 0u) |
           (request->entries_max != 0 ? F_ENTRIES : 0u) | (is_said(request->token) ? F_TOKEN : 0u) |
           (request->required_count > 0 || request->preferred_count > 0 ? F_TOPOLOGY : 0u);
}

static int check_text(const char *what, const char *text, size_t bytes_max, struct err *err)
{
    size_t length = text == NULL ? 0 : strlen(text);

    if (length > bytes_max)
        return err_set(err, ERR_LIMIT, "its %s has %zu bytes, and %zu are allowed", what, length,
                       bytes_max);
    if (length > 0 && !text_is_utf8(text, length))
        return err_set(err, ERR_INVALID, "its %s is not UTF-8", what);
    return 0;
}

static int check_path(const char *what, const char *path, struct err *err)
{
    int code = check_text(what, path, CSI_PATH_MAX, err);

    if (code == 0 && is_said(path) && path[0] != '/')
        return err_set(err, ERR_INVALID, "its %s is not absolute", what);
    return code;
}

static int check_map(const char *what, const struct csi_map *map, struct err *err)
{
    size_t bytes = 0;

    for (size_t i = 0; i < map->count; i++) {
        const struct csi_pair *pair = &map->pairs[i];
        int code = check_text(what, pair->key, CSI_MAP_BYTES_MAX, err);

        if (code == 0)
            code = check_text(what, pair->value, CSI_MAP_BYTES_MAX, err);
        if (code != 0)
            return code;
        bytes += strlen(pair->key) + strlen(pair->value);
        if (bytes > CSI_MAP_BYTES_MAX)
            return err_set(err, ERR_LIMIT, "its %s has more than %d bytes", what,
                           CSI_MAP_BYTES_MAX);
    }
    return 0;
}

static int check_capability(const struct csi_capability *capability, struct err *err)
{
    size_t bytes = 0;
    int code = check_text("type of file system", capability->fs_type, CSI_STRING_MAX, err);

    if (code != 0)
        return code;
    if (capability->access <= CSI_ACCESS_UNKNOWN || capability->access >= CSI_ACCESS_COUNT)
        return err_set(err, ERR_INVALID, "it has no access mode");
    if (capability->block && (is_said(capability->fs_type) || capability->flags_count > 0))
        return err_set(err, ERR_INVALID, "a block device is not mounted with options");
    for (size_t i = 0; i < capability->flags_count; i++) {
        code = check_text("mount option", capability->flags[i], CSI_MAP_BYTES_MAX, err);
        if (code != 0)
            return code;
        bytes += strlen(capability->flags[i]);
    }
    if (bytes > CSI_MAP_BYTES_MAX)
        return err_set(err, ERR_LIMIT, "its mount options have more than %d bytes",
                       CSI_MAP_BYTES_MAX);
    return 0;
}

static int check_texts(const struct csi_request *request, struct err *err)
{
    const struct {
        const char *what, *text;
        size_t bytes_max;
    } texts[] = {
        {"volume id", request->volume_id, CSI_ID_MAX},
        {"name", request->name, CSI_STRING_MAX},
        {"node id", request->node_id, CSI_ID_MAX},
        {"snapshot id", request->snapshot_id, CSI_ID_MAX},
        {"source volume id", request->source_volume_id, CSI_ID_MAX},
        {"token", request->token, CSI_TOKEN_MAX},
    };

    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        int code = check_text(texts[i].what, texts[i].text, texts[i].bytes_max, err);
        if (code != 0)
            return code;
    }
    int code = check_path("staging path", request->staging_path, err);
    return code != 0 ? code : check_path("target path", request->target_path, err);
}

static int check_maps(const struct csi_request *request, struct err *err)
{
    int code = check_map("publish context", &request->publish_context, err);

    if (code == 0)
        code = check_map("volume context", &request->volume_context, err);
    if (code == 0)
        code = check_map("parameters", &request->parameters, err);
    if (code == 0 && (request->required_count > CSI_TOPOLOGIES_MAX ||
                      request->preferred_count > CSI_TOPOLOGIES_MAX))
        code = err_set(err, ERR_LIMIT, "it names more than %d topologies", CSI_TOPOLOGIES_MAX);
    for (size_t i = 0; code == 0 && i < request->required_count; i++)
        code = check_map("topology", &request->required[i], err);
    for (size_t i = 0; code == 0 && i < request->preferred_count; i++)
        code = check_map("topology", &request->preferred[i], err);
    if (code == 0 && request->capabilities_count > CSI_CAPABILITIES_MAX)
        code = err_set(err, ERR_LIMIT, "it has more than %d capabilities", CSI_CAPABILITIES_MAX);
    for (size_t i = 0; code == 0 && i < request->capabilities_count; i++)
        code = check_capability(&request->capabilities[i], err);
    return code;
}

int csi_check_request(const struct csi_request *request, struct err *err)
{
    check((unsigned)request->call < CSI_CALL_COUNT);
    unsigned said = fields_of(request), must = calls[request->call].must,
             may = calls[request->call].may;

    for (int i = 0; i < FIELD_COUNT; i++) {
        unsigned field = 1u << i;

        if ((must & field) != 0 && (said & field) == 0)
            return err_set(err, ERR_INVALID, "it needs this: %s", field_names[i]);
        if (((must | may) & field) == 0 && (said & field) != 0)
            return err_set(err, ERR_INVALID, "it does not have this: %s", field_names[i]);
    }
    if ((said & F_SNAPSHOT) != 0 && (said & F_SOURCE) != 0 && request->call == CSI_CREATE_VOLUME)
        return err_set(err, ERR_INVALID, "a volume is made from a snapshot or from a volume");
    if (request->bytes_min < 0 || request->bytes_max < 0 || request->entries_max < 0 ||
        (request->bytes_max > 0 && request->bytes_min > request->bytes_max))
        return err_set(err, ERR_INVALID, "its numbers make no sense");
    int code = check_texts(request, err);
    return code != 0 ? code : check_maps(request, err);
}
