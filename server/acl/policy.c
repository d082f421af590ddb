/*
 * Rights, read from the text of a policy.
 *
 * HCL and JSON are walked alike, as values: blocks of a type are a list of objects, each wrapped in
 * its label.  Nothing in it is computed: a policy is read on the loop, and again at each start, and
 * costs what it is long.  Nothing is ignored; what means something only where there are servers,
 * namespaces, node pools or variables is looked at and grants nothing here.
 */
#include "server/acl/part.h"

#include "spec/hcl.h"

#include <stdlib.h>
#include <string.h>

static const char *const capability_names[ACL_CAPABILITIES] = {
    [ACL_DENY] = "deny",
    [ACL_LIST_JOBS] = "list-jobs",
    [ACL_PARSE_JOB] = "parse-job",
    [ACL_READ_JOB] = "read-job",
    [ACL_SUBMIT_JOB] = "submit-job",
    [ACL_DISPATCH_JOB] = "dispatch-job",
    [ACL_READ_LOGS] = "read-logs",
    [ACL_READ_FS] = "read-fs",
    [ACL_ALLOC_EXEC] = "alloc-exec",
    [ACL_ALLOC_NODE_EXEC] = "alloc-node-exec",
    [ACL_ALLOC_LIFECYCLE] = "alloc-lifecycle",
    [ACL_SENTINEL_OVERRIDE] = "sentinel-override",
    [ACL_CSI_REGISTER_PLUGIN] = "csi-register-plugin",
    [ACL_CSI_WRITE_VOLUME] = "csi-write-volume",
    [ACL_CSI_READ_VOLUME] = "csi-read-volume",
    [ACL_CSI_LIST_VOLUME] = "csi-list-volume",
    [ACL_CSI_MOUNT_VOLUME] = "csi-mount-volume",
    [ACL_HOST_VOLUME_CREATE] = "host-volume-create",
    [ACL_HOST_VOLUME_REGISTER] = "host-volume-register",
    [ACL_HOST_VOLUME_READ] = "host-volume-read",
    [ACL_HOST_VOLUME_WRITE] = "host-volume-write",
    [ACL_HOST_VOLUME_DELETE] = "host-volume-delete",
    [ACL_LIST_SCALING_POLICIES] = "list-scaling-policies",
    [ACL_READ_SCALING_POLICY] = "read-scaling-policy",
    [ACL_READ_JOB_SCALING] = "read-job-scaling",
    [ACL_SCALE_JOB] = "scale-job",
    [ACL_SUBMIT_RECOMMENDATION] = "submit-recommendation",
    [ACL_REGISTER_JOB] = "register-job",
    [ACL_REVERT_JOB] = "revert-job",
    [ACL_DEREGISTER_JOB] = "deregister-job",
    [ACL_PURGE_JOB] = "purge-job",
    [ACL_EVALUATE_JOB] = "evaluate-job",
    [ACL_PLAN_JOB] = "plan-job",
    [ACL_TAG_JOB_VERSION] = "tag-job-version",
    [ACL_STABLE_JOB] = "stable-job",
    [ACL_FAIL_DEPLOYMENT] = "fail-deployment",
    [ACL_PAUSE_DEPLOYMENT] = "pause-deployment",
    [ACL_PROMOTE_DEPLOYMENT] = "promote-deployment",
    [ACL_UNBLOCK_DEPLOYMENT] = "unblock-deployment",
    [ACL_CANCEL_DEPLOYMENT] = "cancel-deployment",
    [ACL_SET_ALLOC_HEALTH_DEPLOYMENT] = "set-alloc-health-deployment",
    [ACL_GC_ALLOCATION] = "gc-allocation",
    [ACL_PAUSE_ALLOCATION] = "pause-allocation",
    [ACL_FORCE_PERIODIC_JOB] = "force-periodic-job",
    [ACL_DELETE_SERVICE_REGISTRATION] = "delete-service-registration",
};

static const char *const volume_names[] = {
    [ACL_VOLUME_DENY] = "deny",
    [ACL_MOUNT_READONLY] = "mount-readonly",
    [ACL_MOUNT_READWRITE] = "mount-readwrite",
};

/* What is looked at only. */
static const char *const pool_names[] = {"deny", "delete", "read", "write"};
static const char *const variable_names[] = {"deny", "list", "read", "write", "destroy"};
static const char *const operator_names[] = {"deny",         "snapshot-save",  "license-read",
                                             "keyring-read", "keyring-rotate", "keyring-delete"};
static const char *const sentinel_names[] = {"deny", "sentinel-read", "sentinel-submit",
                                             "sentinel-delete"};

enum {
    OF_VOLUMES = ACL_BIT(ACL_HOST_VOLUME_CREATE) | ACL_BIT(ACL_HOST_VOLUME_READ),
    OF_SCALING = ACL_BIT(ACL_LIST_SCALING_POLICIES) | ACL_BIT(ACL_READ_SCALING_POLICY) |
                 ACL_BIT(ACL_READ_JOB_SCALING),
    TO_READ = OF_SCALING | ACL_BIT(ACL_LIST_JOBS) | ACL_BIT(ACL_PARSE_JOB) | ACL_BIT(ACL_READ_JOB) |
              ACL_BIT(ACL_CSI_LIST_VOLUME) | ACL_BIT(ACL_CSI_READ_VOLUME) |
              ACL_BIT(ACL_HOST_VOLUME_READ),
    TO_WRITE = TO_READ | ACL_BIT(ACL_SCALE_JOB) | ACL_BIT(ACL_SUBMIT_JOB) |
               ACL_BIT(ACL_DISPATCH_JOB) | ACL_BIT(ACL_READ_LOGS) | ACL_BIT(ACL_READ_FS) |
               ACL_BIT(ACL_ALLOC_EXEC) | ACL_BIT(ACL_ALLOC_LIFECYCLE) |
               ACL_BIT(ACL_CSI_MOUNT_VOLUME) | ACL_BIT(ACL_CSI_WRITE_VOLUME) |
               ACL_BIT(ACL_SUBMIT_RECOMMENDATION) | ACL_BIT(ACL_HOST_VOLUME_CREATE),
    TO_SCALE = OF_SCALING | ACL_BIT(ACL_SCALE_JOB) | ACL_BIT(ACL_READ_JOB) |
               ACL_BIT(ACL_SUBMIT_RECOMMENDATION),
};

/* The words of `policy = `; a place says which of them it knows, and what each grants there. */
enum word { WORD_DENY, WORD_LIST, WORD_READ, WORD_SCALE, WORD_WRITE, WORDS };

static const char *const words[WORDS] = {"deny", "list", "read", "scale", "write"};

/* What stands in a policy, by the name of its blocks. */
struct kind {
    const char *name;
    bool has_label, may_have_variables;
    uint64_t granted[WORDS];         /* by `policy`; 0: the word means nothing there */
    const char *const *capabilities; /* NULL: it has none */
    size_t capabilities_count;
    size_t rules;       /* where those go in struct acl_rights, 0: nowhere */
    enum acl_area area; /* or what has this, ACL_AREAS: nothing */
};

#define NAMES(list) list, COUNT_OF(list)
#define NONE NULL, 0
#define DENIED ACL_BIT(ACL_DENY)
#define RULES(member) offsetof(struct acl_rights, member)
/* For areas a word grants its level. */
#define LEVELS                                                                                     \
    {                                                                                              \
        [WORD_DENY] = ACL_DENIED, [WORD_READ] = ACL_READ, [WORD_WRITE] = ACL_WRITE                 \
    }

/* clang-format off */
static const struct kind kinds[] = {
    {"namespace", true, true, {DENIED, 0, TO_READ, TO_SCALE, TO_WRITE}, NAMES(capability_names),
     RULES(namespaces), ACL_AREAS},
    {"host_volume", true, false,
     {DENIED, 0, ACL_BIT(ACL_MOUNT_READONLY), 0,
      ACL_BIT(ACL_MOUNT_READONLY) | ACL_BIT(ACL_MOUNT_READWRITE)},
     NAMES(volume_names), RULES(volumes), ACL_AREAS},
    {"node_pool", true, false, {DENIED, 0, 1, 0, 1}, NAMES(pool_names), 0, ACL_AREAS},
    {"agent", false, false, LEVELS, NONE, 0, ACL_AGENT},
    {"node", false, false, LEVELS, NONE, 0, ACL_NODE},
    {"operator", false, false, LEVELS, NAMES(operator_names), 0, ACL_OPERATOR},
    {"quota", false, false, LEVELS, NONE, 0, ACL_QUOTA},
    {"plugin", false, false,
     {ACL_DENIED, ACL_LIST, ACL_READ, 0, ACL_WRITE}, NONE, 0, ACL_PLUGIN},
    {"sentinel", false, false, LEVELS, NAMES(sentinel_names), 0, ACL_SENTINEL},
};
/* clang-format on */

struct reading {
    struct acl_rights *rights;
    size_t rules; /* so far */
    struct err *err;
};

/* --- one block --- */

static bool name_is_valid(const struct kind *kind, const char *name)
{
    size_t length = strlen(name);

    if (length == 0 || length >= ACL_NAME_SIZE)
        return false;
    for (const char *at = name; *at != '\0'; at++) {
        bool plain = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
                     (*at >= '0' && *at <= '9') || *at == '-' || *at == '*';
        if (!plain && !(*at == '_' && text_equal(kind->name, "node_pool")))
            return false;
    }
    return true;
}

/* Adds to RET_BITS the place of each of LIST among NAMES. */
static int read_names(struct reading *reading, const char *where, const json_t *list,
                      const char *const *names, size_t count, uint64_t *ret_bits)
{
    const json_t *item;
    size_t i;

    if (!json_is_array(list))
        return err_set(reading->err, ERR_INVALID, "%s: capabilities must be a list of names",
                       where);
    json_array_foreach(list, i, item)
    {
        const char *name = json_string_value(item);
        size_t at = 0;

        while (name != NULL && at < count && !text_equal(names[at], name))
            at++;
        if (name == NULL || at == count)
            return err_set(reading->err, ERR_INVALID, "%s: there is no capability '%.60s'", where,
                           name == NULL ? "(no text)" : name);
        *ret_bits |= ACL_BIT(at);
    }
    return 0;
}

/* Some capabilities bring others with them. */
static uint64_t with_what_follows(uint64_t granted)
{
    const uint64_t write = ACL_BIT(ACL_HOST_VOLUME_WRITE);
    const uint64_t registers = ACL_BIT(ACL_HOST_VOLUME_REGISTER);

    if ((granted & write) != 0)
        granted |= registers | ACL_BIT(ACL_HOST_VOLUME_DELETE) | OF_VOLUMES;
    if ((granted & registers) != 0)
        granted |= OF_VOLUMES;
    if ((granted & ACL_BIT(ACL_HOST_VOLUME_CREATE)) != 0)
        granted |= OF_VOLUMES;
    return granted;
}

typedef int block_reader(struct reading *reading, const struct kind *kind, const char *label,
                         const json_t *block);

/* Calls READ for each block in VALUE: an object, or a list of such. */
static int each_block(struct reading *reading, const struct kind *kind, const char *label,
                      const json_t *value, block_reader *read)
{
    const json_t *item;
    int code = 0;
    size_t i;

    if (json_is_object(value))
        return read(reading, kind, label, value);
    if (!json_is_array(value) || json_array_size(value) == 0)
        return err_set(reading->err, ERR_INVALID, "%s must be a block", kind->name);
    json_array_foreach(value, i, item)
    {
        if (code == 0 && !json_is_object(item))
            code = err_set(reading->err, ERR_INVALID, "%s must be a block", kind->name);
        if (code == 0)
            code = read(reading, kind, label, item);
    }
    return code;
}

static int count_rule(struct reading *reading)
{
    return ++reading->rules <= ACL_RULES_MAX
               ? 0
               : err_set(reading->err, ERR_INVALID, "a policy has at most %d rules", ACL_RULES_MAX);
}

/* A path of variables, which there are none of. */
static int read_path(struct reading *reading, const struct kind *kind, const char *label,
                     const json_t *block)
{
    const json_t *list = json_object_get(block, "capabilities");
    uint64_t ignored = 0;
    char where[200];

    (void)kind;
    (void)text_format(where, sizeof(where), "variables path '%.100s'", label); /* may be cut */
    if (list == NULL || json_object_size(block) != 1)
        return err_set(reading->err, ERR_INVALID, "%s has capabilities and nothing else", where);
    int code = count_rule(reading);
    return code != 0 ? code : read_names(reading, where, list, NAMES(variable_names), &ignored);
}

static int each_label(struct reading *reading, const struct kind *kind, const char *label,
                      const json_t *block);

static int read_variables(struct reading *reading, const struct kind *kind, const char *label,
                          const json_t *block)
{
    static const struct kind path = {.name = "path", .has_label = true};
    const json_t *paths = json_object_get(block, "path");

    (void)kind;
    (void)label;
    if (paths == NULL || json_object_size(block) != 1)
        return err_set(reading->err, ERR_INVALID, "variables has path blocks and nothing else");
    return each_block(reading, &path, "", paths, each_label);
}

static int grant(struct reading *reading, const struct kind *kind, const char *label,
                 uint64_t granted)
{
    if (kind->rules != 0)
        rights_grant((struct acl_rules *)((char *)reading->rights + kind->rules), label, granted);
    return 0;
}

static int read_block(struct reading *reading, const struct kind *kind, const char *label,
                      const json_t *block)
{
    const json_t *policy = json_object_get(block, "policy"), *value;
    const json_t *capabilities = json_object_get(block, "capabilities");
    uint64_t granted = 0;
    char where[200];
    const char *key;
    size_t word = 0;
    int code = count_rule(reading);

    (void)text_format(where, sizeof(where), kind->has_label ? "%s '%.130s'" : "%s%s", kind->name,
                      label); /* it fits */
    json_object_foreach((json_t *)block, key, value)
    {
        if (code == 0 && !text_equal(key, "policy") &&
            !(kind->capabilities != NULL && text_equal(key, "capabilities")) &&
            !(kind->may_have_variables && text_equal(key, "variables")))
            code = err_set(reading->err, ERR_INVALID, "%s has no key '%.60s'", where, key);
    }
    if (code == 0 && policy != NULL) {
        const char *name = json_is_string(policy) ? json_string_value(policy) : "(no text)";

        while (word < WORDS && (!text_equal(words[word], name) || kind->granted[word] == 0))
            word++;
        if (word == WORDS)
            return err_set(reading->err, ERR_INVALID, "%s: there is no policy '%.60s'", where,
                           name);
        granted = kind->granted[word];
    }
    if (code == 0 && kind->area < ACL_AREAS)
        rights_grant_area(reading->rights, kind->area, (enum acl_level)granted);
    if (code == 0 && capabilities != NULL)
        code = read_names(reading, where, capabilities, kind->capabilities,
                          kind->capabilities_count, &granted);
    if (code == 0 && json_object_get(block, "variables") != NULL)
        code = each_block(reading, kind, "", json_object_get(block, "variables"), read_variables);
    if (code != 0)
        return code;
    if (json_object_size(block) == 0)
        return err_set(reading->err, ERR_INVALID, "%s grants nothing", where);
    if (text_equal(kind->name, "namespace"))
        granted = with_what_follows(granted);
    return grant(reading, kind, label, granted);
}

/* Labels of blocks of KIND, each with what it is about. */
static int each_label(struct reading *reading, const struct kind *kind, const char *label,
                      const json_t *block)
{
    bool is_path = text_equal(kind->name, "path");
    const json_t *value;
    const char *name;
    int code = 0;

    (void)label;
    json_object_foreach((json_t *)block, name, value)
    {
        if (code == 0 && !is_path && !name_is_valid(kind, name))
            code = err_set(reading->err, ERR_INVALID, "%s '%.60s': no such name can be", kind->name,
                           name);
        if (code == 0)
            code = each_block(reading, kind, name, value, is_path ? read_path : read_block);
    }
    return code;
}

/* --- the whole --- */

static int read_value(struct reading *reading, const json_t *value)
{
    const json_t *blocks;
    const char *name;
    int code = 0;

    if (!json_is_object(value) || json_object_size(value) == 0)
        return err_set(reading->err, ERR_INVALID, "a policy has at least one rule");
    json_object_foreach((json_t *)value, name, blocks)
    {
        size_t k = 0;

        while (k < COUNT_OF(kinds) && !text_equal(kinds[k].name, name))
            k++;
        if (code == 0 && k == COUNT_OF(kinds))
            code = err_set(reading->err, ERR_INVALID, "a policy has no '%.60s'", name);
        if (code == 0)
            code = each_block(reading, &kinds[k], "", blocks,
                              kinds[k].has_label ? each_label : read_block);
    }
    return code;
}

static int parse_hcl(const char *text, size_t length, json_t **ret_value, struct err *err)
{
    const struct hcl_options options = {.literal = true};
    struct hcl_context *context = NULL;
    struct hcl_file *file = NULL;
    struct hcl_error error;

    int code = hcl_parse_config("policy", text, length, &file, &error);
    if (code == 0)
        code = hcl_context_new(file, &options, &context, &error);
    if (code == 0)
        code = hcl_body_value(context, NULL, hcl_root(file), ret_value, &error);
    if (code != 0)
        (void)err_set(err, ERR_INVALID, "line %u: %s", error.place.line, error.message);
    hcl_context_free(context);
    hcl_free(file);
    return code == 0 ? 0 : ERR_INVALID;
}

int acl_read_policy(const char *text, size_t length, struct acl_rights **ret_rights,
                    struct err *err)
{
    struct reading reading = {.rights = rights_new(), .err = err};
    size_t blank = 0;
    json_t *value = NULL;
    json_error_t error;
    int code = 0;

    while (blank < length && strchr(" \t\r\n", text[blank]) != NULL && text[blank] != '\0')
        blank++;
    if (length > ACL_RULES_BYTES_MAX) {
        code = err_set(err, ERR_INVALID, "the rules of a policy have at most %d bytes",
                       ACL_RULES_BYTES_MAX);
    } else if (blank < length && text[blank] == '{') {
        value = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
        if (value == NULL)
            code = err_set(err, ERR_INVALID, "line %d: %s", error.line, error.text);
    } else {
        code = parse_hcl(text, length, &value, err);
    }
    if (code == 0)
        code = read_value(&reading, value);
    json_decref(value);
    if (code != 0) {
        acl_rights_free(reading.rights);
        return ERR_INVALID;
    }
    *ret_rights = reading.rights;
    return 0;
}
