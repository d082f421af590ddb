/*
 * The environment of a task.
 *
 * Layers and their order follow nomad v1.1.2 client/taskenv/env.go buildEnv, with what 2.x
 * changed: meta is interpolated, NOMAD_SHORT_ALLOC_ID exists, more of the agent's own secrets stay
 * behind, and a variable of the host never replaces one of Nomad's.  Where Go walks a map in
 * random order, the order is that of the spec here, so that a task starts every time with the same
 * environment, byte for byte.
 *
 * Invariant: what is built can be handed to execve: bounded, each name once, no name empty or with
 * a "=" in it.
 */
#include "hooks/env/env.h"

#include "hooks/env/expand.h"

#include "spec/names.h"

#include <stdio.h>
#include <string.h>

enum { SHORT_ID_LENGTH = 8, NUMBER_SIZE = 24 };

/* --- layers --- */

struct build {
    const struct hooks *hooks;
    const struct alloc_spec *alloc;
    const struct task_spec *task;
    struct hooks_env *env;
    struct hooks_names names;
    bool of_task;         /* for the task itself: others are told what is made of its services */
    const json_t *status; /* of the alloc's own network, as its hook left it; NULL: there is none */
    struct err *err;
};

static int set_text(struct build *build, const char *name, const char *value)
{
    if (value == NULL || value[0] == '\0')
        return 0; /* empty sources are left out, as Nomad leaves them out */
    return hooks_env_set(build->env, name, value, build->err);
}

static int set_number(struct build *build, const char *name, int64_t value)
{
    char text[NUMBER_SIZE];

    (void)text_format(text, sizeof(text), "%lld", (long long)value); /* fits */
    return hooks_env_set(build->env, name, text, build->err);
}

static int set_expanded(struct build *build, const char *name, const char *value)
{
    const char *expanded;
    int code = hooks_expand_plain(&build->names, build->env->arena, value, ENV_ENTRY_MAX, &expanded,
                                  build->err);

    if (code != 0)
        return err_wrap(build->err, "environment variable %.64s", name);
    return hooks_env_set(build->env, name, expanded, build->err);
}

static int add_directories(struct build *build)
{
    bool host_paths = hooks_driver(build->hooks, build->task->driver)->isolation == ISOLATION_NONE;
    struct hooks_paths paths;
    int code = hooks_paths(build->hooks, build->alloc->id, build->task->name, &paths, build->err);

    if (code == 0)
        code = set_text(build, "NOMAD_ALLOC_DIR", host_paths ? paths.shared : "/alloc");
    if (code == 0)
        code = set_text(build, "NOMAD_TASK_DIR", host_paths ? paths.local : "/local");
    if (code == 0)
        code = set_text(build, "NOMAD_SECRETS_DIR", host_paths ? paths.secrets : "/secrets");
    return code;
}

static int add_limits(struct build *build)
{
    const struct spec_resources *resources = &build->task->resources;
    const struct {
        const char *name;
        int64_t value;
    } limits[] = {
        {"NOMAD_MEMORY_LIMIT", resources->memory_mb},
        {"NOMAD_MEMORY_MAX_LIMIT", resources->memory_max_mb},
        {"NOMAD_CPU_LIMIT", resources->cpu_mhz},
    };
    int code = 0;

    for (size_t i = 0; code == 0 && i < COUNT_OF(limits); i++) {
        if (limits[i].value != 0)
            code = set_number(build, limits[i].name, limits[i].value);
    }
    if (code == 0 && resources->cores > 0) {
        char text[CORES_TEXT_SIZE];

        spec_cores_text(resources->core_ids, resources->cores, text);
        code = set_text(build, "NOMAD_CPU_CORES", text);
    }
    return code;
}

static int add_ids(struct build *build)
{
    const struct alloc_spec *alloc = build->alloc;
    const struct hooks_node *node = build->hooks->node;
    char short_id[SHORT_ID_LENGTH + 1];
    bool placed = node->datacenter != NULL && node->datacenter[0] != '\0';
    bool in_region = node->region != NULL && node->region[0] != '\0';
    const struct spec_pair ids[] = {
        {"NOMAD_ALLOC_ID", alloc->id},
        {"NOMAD_SHORT_ALLOC_ID", short_id},
        {"NOMAD_ALLOC_NAME", alloc->name},
        {"NOMAD_GROUP_NAME", alloc->group},
        {"NOMAD_TASK_NAME", build->task->name},
        {"NOMAD_JOB_ID", alloc->job_id},
        {"NOMAD_JOB_NAME", alloc->job_name},
        {"NOMAD_JOB_PARENT_ID", alloc->job_parent_id},
        {"NOMAD_DC", placed ? node->datacenter : alloc->datacenter},
        {"NOMAD_REGION", in_region ? node->region : alloc->region},
        {"NOMAD_NAMESPACE", alloc->namespace},
    };
    int code = set_number(build, "NOMAD_ALLOC_INDEX", alloc->index);

    (void)text_copy(short_id, sizeof(short_id), alloc->id); /* cut on purpose */
    for (size_t i = 0; code == 0 && i < COUNT_OF(ids); i++)
        code = set_text(build, ids[i].key, ids[i].value);
    return code;
}

/* --- ports (nomad v2.0.5 client/taskenv/env.go: buildPortEnv, addPort, addPorts) --- */

enum { PORT_NAME_SIZE = 32 + SPEC_NAME_SIZE + SPEC_PORT_LABEL_SIZE };

/* Sets PREFIX with the label of PORT, and with the task's name before it if NAMED. */
static int set_of_port(struct build *build, const char *prefix, bool named,
                       const struct spec_port *port, const char *value)
{
    char name[PORT_NAME_SIZE];

    (void)text_format(name, sizeof(name), "%s%s%s%s", prefix, named ? port->task : "",
                      named ? "_" : "", port->label); /* fits */
    return set_text(build, name, value);
}

static int add_port(struct build *build, const struct spec_port *port)
{
    bool of_group = port->task[0] == '\0';
    bool own = of_group || text_equal(port->task, build->task->name);
    bool six = strchr(port->host_ip, ':') != NULL;
    char number[NUMBER_SIZE], inner[NUMBER_SIZE], address[ADDRESS_SIZE + NUMBER_SIZE];
    const struct {
        const char *prefix, *value;
        bool given; /* to who may know that much of it */
    } variables[] = {
        {"NOMAD_ADDR_", address, true},
        {"NOMAD_IP_", port->host_ip, true},
        {"NOMAD_PORT_", inner, true},
        {"NOMAD_HOST_PORT_", number, own},
        {six ? "NOMAD_IPv6_" : "NOMAD_IPv4_", port->host_ip, own && !of_group},
        {"NOMAD_HOST_ADDR_", address, of_group},
        {"NOMAD_HOST_IP_", port->host_ip, of_group},
        {"NOMAD_ALLOC_PORT_", inner, of_group},
    };
    int code = 0;

    (void)text_format(number, sizeof(number), "%u", port->value); /* all of them fit */
    (void)text_format(inner, sizeof(inner), "%u",
                      of_group && port->to > 0 ? (unsigned)port->to : port->value);
    (void)text_format(address, sizeof(address), six ? "[%s]:%s" : "%s:%s", port->host_ip, number);
    for (size_t i = 0; code == 0 && i < COUNT_OF(variables); i++) {
        if (variables[i].given)
            code = set_of_port(build, variables[i].prefix, !own, port, variables[i].value);
    }
    return code;
}

/* As they are reached from tasks of the same alloc, and of others whose networks lead there
 * (nomad v2.0.5 addNomadAllocNetwork). */
static int add_inner(struct build *build, const struct spec_port *port)
{
    const char *ip = json_string_value(json_object_get(build->status, "Address"));
    const char *interface = json_string_value(json_object_get(build->status, "InterfaceName"));
    char address[ADDRESS_SIZE + NUMBER_SIZE];

    if (ip == NULL || interface == NULL || *ip == '\0' || port->task[0] != '\0')
        return 0;
    if (!text_format(address, sizeof(address), strchr(ip, ':') != NULL ? "[%s]:%d" : "%s:%d", ip,
                     port->to != 0 ? port->to : port->value))
        return err_set(build->err, ERR_CORRUPT, "the results of the task's hooks are damaged");
    int code = set_of_port(build, "NOMAD_ALLOC_INTERFACE_", false, port, interface);
    if (code == 0)
        code = set_of_port(build, "NOMAD_ALLOC_IP_", false, port, ip);
    return code == 0 ? set_of_port(build, "NOMAD_ALLOC_ADDR_", false, port, address) : code;
}

/* The task's own before those of other tasks, and these before the group's: labels are given once,
 * but "a_b" is also the port "b" of the task "a". */
static int add_ports(struct build *build)
{
    const struct spec_ports *ports = &build->alloc->ports;
    int code = 0;

    for (int pass = 0; pass < 3; pass++) {
        for (size_t i = 0; code == 0 && i < ports->count; i++) {
            const char *task = ports->items[i].task;
            int place = task[0] == '\0' ? 2 : text_equal(task, build->task->name) ? 0 : 1;

            if (place == pass)
                code = add_port(build, &ports->items[i]);
            if (place == pass && code == 0)
                code = add_inner(build, &ports->items[i]);
        }
    }
    return code;
}

/* --- upstreams of sidecars (nomad v2.0.6 buildUpstreamsEnv) --- */

/* Where a task reaches one; names are cleaned last, as of ports. */
static int add_upstream(struct build *build, const struct spec_upstream *upstream)
{
    static const char ip[] = "127.0.0.1"; /* whatever the job says it is bound to, as in Nomad */
    char number[NUMBER_SIZE], address[sizeof(ip) + NUMBER_SIZE];
    const struct spec_pair variables[] = {
        {"NOMAD_UPSTREAM_IP_", ip},
        {"NOMAD_UPSTREAM_PORT_", number},
        {"NOMAD_UPSTREAM_ADDR_", address},
    };
    int code = 0;

    (void)text_format(number, sizeof(number), "%u", upstream->port); /* both fit */
    (void)text_format(address, sizeof(address), "%s:%s", ip, number);
    for (size_t i = 0; code == 0 && i < COUNT_OF(variables); i++) {
        size_t size = strlen(variables[i].key) + strlen(upstream->name) + 1;
        char *name = arena_new(build->env->arena, size);

        (void)text_format(name, size, "%s%s", variables[i].key, upstream->name); /* made to fit */
        code = set_text(build, name, variables[i].value);
    }
    return code;
}

static int add_upstreams(struct build *build)
{
    int code = 0;

    for (size_t i = 0; i < build->alloc->services_count; i++) {
        const struct spec_connect *connect = build->alloc->services[i].connect;

        for (size_t j = 0; code == 0 && connect != NULL && j < connect->upstreams_count; j++)
            code = add_upstream(build, &connect->upstreams[j]);
    }
    return code;
}

/* --- meta --- */

/* Each key in capitals and as it was written. */
static int add_meta(struct build *build)
{
    static const char prefix[] = "NOMAD_META_";
    int code = 0;

    for (size_t i = 0; code == 0 && i < build->task->meta.count; i++) {
        const struct spec_pair *pair = &build->task->meta.items[i];
        const char *key;

        code = hooks_expand_plain(&build->names, build->env->arena, pair->key, ENV_ENTRY_MAX, &key,
                                  build->err);
        if (code != 0)
            break;
        size_t length = strlen(key) + sizeof(prefix);
        char *name = arena_new(build->env->arena, length);
        (void)text_format(name, length, "%s%s", prefix, key); /* made to fit */
        code = set_expanded(build, name, pair->value);
        for (char *at = name; *at != '\0'; at++)
            *at = *at >= 'a' && *at <= 'z' ? (char)(*at - 'a' + 'A') : *at;
        if (code == 0)
            code = set_expanded(build, name, pair->value);
    }
    return code;
}

/* nomad v2.0.5 command/agent/host/host.go DefaultEnvDenyList, which has all that 1.1.2 has. */
static bool is_denied(const char *name, size_t length)
{
    static const char *const denied[] = {
        "CONSUL_TOKEN",
        "CONSUL_HTTP_TOKEN",
        "CONSUL_HTTP_TOKEN_FILE",
        "NOMAD_TOKEN",
        "VAULT_TOKEN",
        "CONSUL_LICENSE",
        "NOMAD_LICENSE",
        "VAULT_LICENSE",
        "CONSUL_LICENSE_PATH",
        "NOMAD_LICENSE_PATH",
        "VAULT_LICENSE_PATH",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_METADATA_URL",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "GOOGLE_OAUTH_ACCESS_TOKEN",
    };

    for (size_t i = 0; i < COUNT_OF(denied); i++) {
        if (strlen(denied[i]) == length && memcmp(denied[i], name, length) == 0)
            return true;
    }
    return false;
}

static int add_host(struct build *build)
{
    const char *const *entry = build->hooks->environment;
    int code = 0;

    if (entry == NULL ||
        hooks_driver(build->hooks, build->task->driver)->isolation == ISOLATION_IMAGE)
        return 0;
    for (; code == 0 && *entry != NULL; entry++) {
        const char *end = strchr(*entry, '=');
        size_t length = end == NULL ? 0 : (size_t)(end - *entry);

        if (length == 0 || is_denied(*entry, length) ||
            hooks_env_find(build->env, *entry, length) != NULL)
            continue;
        code = set_expanded(build, arena_copy(build->env->arena, *entry, length), end + 1);
    }
    return code;
}

static int add_task(struct build *build)
{
    int code = 0;

    for (size_t i = 0; code == 0 && i < build->task->env.count; i++)
        code = set_expanded(build, build->task->env.items[i].key, build->task->env.items[i].value);
    return code;
}

static int add_results(struct build *build, const uint8_t *results, uint32_t bytes)
{
    struct result result;
    int code = 0;

    for (uint32_t at = 0; code == 0 && results_next(results, bytes, &at, &result);) {
        if (result.kind != RESULT_ENV)
            continue;
        if (result.value_length > 0 && memchr(result.value, '\0', result.value_length) != NULL)
            return err_set(build->err, ERR_CORRUPT, "variable %.64s of a hook holds a NUL",
                           result.key);
        code = set_expanded(build, result.key,
                            arena_copy(build->env->arena, result.value, result.value_length));
    }
    return code;
}

/* --- names --- */

static bool must_be_clean(const char *name)
{
    static const char *const prefixes[] = {"NOMAD_ADDR_",      "NOMAD_IP_",   "NOMAD_PORT_",
                                           "NOMAD_HOST_PORT_", "NOMAD_META_", "NOMAD_UPSTREAM_"};

    for (size_t i = 0; i < COUNT_OF(prefixes); i++) {
        if (text_starts_with(name, prefixes[i]))
            return true;
    }
    return false;
}

/* A dot stays, as in Nomad's helper.CleanEnvVar. */
static bool is_clean(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.';
}

/* NAME cleaned, or NULL if it may stay as it is. */
static char *cleaned(struct arena *arena, const char *name)
{
    size_t length = strlen(name);
    char *clean = NULL;

    for (size_t at = 0; must_be_clean(name) && at < length; at++) {
        if (is_clean(name[at]))
            continue;
        if (clean == NULL)
            clean = arena_copy(arena, name, length);
        clean[at] = '_';
    }
    return clean;
}

/* Only now: until here a value may have named a variable as it was written.  What has the clean
 * name already keeps it. */
static int clean_names(struct build *build)
{
    struct hooks_env *env = build->env;

    for (size_t i = 0; i < env->pairs.count;) {
        const struct spec_pair pair = env->pairs.items[i];
        const char *name = cleaned(env->arena, pair.key);

        if (name == NULL) {
            if (pair.key[0] == '\0' || strchr(pair.key, '=') != NULL)
                return err_set(build->err, ERR_INVALID,
                               "the name of an environment variable is empty or has a \"=\"");
            i++;
            continue;
        }
        hooks_env_drop(env, i);
        if (hooks_env_find(env, name, strlen(name)) != NULL)
            continue;
        int code = hooks_env_set(env, name, pair.value, build->err);
        if (code != 0)
            return code;
        if (strcmp(name, pair.key) < 0)
            i++; /* it went in before the ones that have not been looked at */
    }
    return 0;
}

/* Whose token it is, and where it is asked for by it. */
static int add_identity(struct build *build)
{
    const struct spec_identity *identity = &build->task->identity;
    const char *secrets =
        hooks_env_find(build->env, "NOMAD_SECRETS_DIR", sizeof("NOMAD_SECRETS_DIR") - 1);
    char address[sizeof(((struct hooks_paths *)NULL)->secrets) + 32];

    if (!identity->env)
        return 0;
    if (!text_format(address, sizeof(address), "unix://%s/api.sock", secrets))
        return err_set(build->err, ERR_LIMIT, "NOMAD_UNIX_ADDR is too long");
    int code = set_text(build, "NOMAD_TOKEN", identity->token);
    return code == 0 ? set_text(build, "NOMAD_UNIX_ADDR", address) : code;
}

static int build_task(struct build *build, const uint8_t *results, uint32_t results_bytes)
{
    int code = add_directories(build);

    if (code == 0 && build->of_task)
        code = add_identity(build);
    if (code == 0)
        code = add_limits(build);
    if (code == 0)
        code = add_ids(build);
    if (code == 0)
        code = add_ports(build);
    if (code == 0)
        code = add_upstreams(build);
    if (code == 0)
        code = add_meta(build);
    if (code == 0)
        code = add_host(build);
    if (code == 0)
        code = add_task(build);
    if (code == 0)
        code = add_results(build, results, results_bytes);
    return code == 0 ? clean_names(build) : code;
}

int hooks_env_build(const struct hooks *hooks, const struct alloc_spec *alloc,
                    const struct task_spec *task, const uint8_t *results, uint32_t results_bytes,
                    struct hooks_env *env, struct err *err)
{
    struct build build = {
        .hooks = hooks,
        .alloc = alloc,
        .task = task,
        .env = env,
        .names = {.node = hooks->node, .env = env},
        .err = err,
    };

    if (!results_valid(results, results_bytes))
        return err_set(err, ERR_CORRUPT, "the results of the task's hooks are damaged");
    json_t *status = hooks_network_status(results, results_bytes);
    build.status = status;
    build.of_task = true;
    int code = build_task(&build, results, results_bytes);
    json_decref(status);
    return code;
}

int hooks_env_build_task(const struct hooks *hooks, const struct alloc_spec *alloc,
                         const struct task_spec *task, const json_t *network, struct hooks_env *env,
                         struct err *err)
{
    struct build build = {
        .hooks = hooks,
        .alloc = alloc,
        .task = task,
        .env = env,
        .names = {.node = hooks->node, .env = env},
        .status = network,
        .err = err,
    };

    return build_task(&build, NULL, 0);
}

int hooks_env_build_alloc(const struct hooks *hooks, const struct alloc_spec *alloc,
                          const json_t *network, struct hooks_env *env, struct err *err)
{
    const struct task_spec nobody = {.name = "", .driver = "", .meta = alloc->meta};
    struct build build = {
        .hooks = hooks,
        .alloc = alloc,
        .task = &nobody,
        .env = env,
        .names = {.node = hooks->node, .env = env},
        .status = network,
        .err = err,
    };
    int code = add_ids(&build);

    if (code == 0)
        code = add_ports(&build);
    if (code == 0)
        code = add_meta(&build);
    return code == 0 ? clean_names(&build) : code;
}
