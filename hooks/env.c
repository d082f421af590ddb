/*
 * The environment of a task.
 *
 * Layers and their order follow nomad v1.1.2 client/taskenv/env.go buildEnv, with what 2.x
 * changed: meta is interpolated, NOMAD_SHORT_ALLOC_ID exists, more of the agent's own secrets stay
 * behind, and a variable of the host never replaces one of Nomad's.  Where Go walks a map in
 * random order, the order is that of the spec here, so that a task starts every time with the same
 * environment, byte for byte.
 *
 * Invariant: what the map holds can be handed to execve: bounded, each name once, no name empty or
 * with a "=" in it.
 */
#include "hooks/env.h"

#include "hooks/expand.h"

#include <stdio.h>
#include <string.h>

enum { FIRST_CAPACITY = 64, SHORT_ID_LENGTH = 8, NUMBER_SIZE = 24 };

/* --- the map --- */

static int compare_name(const char *name, size_t length, const char *key)
{
    int order = strncmp(name, key, length);

    return order != 0 ? order : key[length] == '\0' ? 0 : -1;
}

/* Where NAME is, or where it would have to be. */
static size_t place_of(const struct hooks_env *env, const char *name, size_t length,
                       bool *ret_found)
{
    size_t low = 0, high = env->pairs.count;

    *ret_found = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare_name(name, length, env->pairs.items[middle].key);

        if (order == 0) {
            *ret_found = true;
            return middle;
        }
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

const char *hooks_env_find(const struct hooks_env *env, const char *name, size_t length)
{
    bool found;
    size_t at = place_of(env, name, length, &found);

    return found ? env->pairs.items[at].value : NULL;
}

static void make_room(struct hooks_env *env, size_t at)
{
    if (env->pairs.count == env->capacity) {
        size_t capacity = env->capacity == 0 ? (size_t)FIRST_CAPACITY : env->capacity * 2;
        struct spec_pair *items = hooks_arena_new(env->arena, capacity * sizeof(*items));

        if (env->pairs.count > 0)
            memcpy(items, env->pairs.items, env->pairs.count * sizeof(*items));
        env->pairs.items = items;
        env->capacity = capacity;
    }
    memmove(env->pairs.items + at + 1, env->pairs.items + at,
            (env->pairs.count - at) * sizeof(*env->pairs.items));
    env->pairs.count++;
}

int hooks_env_set(struct hooks_env *env, const char *name, const char *value, struct err *err)
{
    size_t length = strlen(name), value_length = strlen(value), bytes = length + value_length + 2;
    bool found;

    if (bytes - 1 > ENV_ENTRY_MAX)
        return err_set(err, ERR_LIMIT, "environment variable %.64s is longer than %d bytes", name,
                       ENV_ENTRY_MAX);
    size_t at = place_of(env, name, length, &found);
    size_t old = found ? length + strlen(env->pairs.items[at].value) + 2 : 0;
    if (env->bytes - old + bytes > ENV_BYTES_MAX || env->pairs.count >= ENV_COUNT_MAX)
        return err_set(err, ERR_LIMIT,
                       "the environment has more than %d bytes or %d variables at %.64s",
                       ENV_BYTES_MAX, ENV_COUNT_MAX, name);

    if (!found) {
        make_room(env, at);
        env->pairs.items[at].key = hooks_arena_copy(env->arena, name, length);
    }
    env->pairs.items[at].value = hooks_arena_copy(env->arena, value, value_length);
    env->bytes += bytes - old;
    return 0;
}

static void drop(struct hooks_env *env, size_t at)
{
    const struct spec_pair *pair = &env->pairs.items[at];

    env->bytes -= strlen(pair->key) + strlen(pair->value) + 2;
    env->pairs.count--;
    memmove(env->pairs.items + at, env->pairs.items + at + 1,
            (env->pairs.count - at) * sizeof(*env->pairs.items));
}

/* --- layers --- */

struct build {
    const struct hooks *hooks;
    const struct alloc_spec *alloc;
    const struct task_spec *task;
    struct hooks_env *env;
    struct hooks_names names;
    struct err *err;
};

static int set_text(struct build *build, const char *name, const char *value)
{
    if (value == NULL || value[0] == '\0')
        return 0; /* empty sources are left out, as Nomad leaves them out */
    return hooks_env_set(build->env, name, value, build->err);
}

static int set_number(struct build *build, const char *name, uint64_t value)
{
    char text[NUMBER_SIZE];

    (void)text_format(text, sizeof(text), "%llu", (unsigned long long)value); /* fits */
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
    bool host_paths = hooks_driver(build->task->driver)->isolation == ISOLATION_NONE;
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
        uint32_t value;
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
        char *name = hooks_arena_new(build->env->arena, length);
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

    if (entry == NULL || hooks_driver(build->task->driver)->isolation == ISOLATION_IMAGE)
        return 0;
    for (; code == 0 && *entry != NULL; entry++) {
        const char *end = strchr(*entry, '=');
        size_t length = end == NULL ? 0 : (size_t)(end - *entry);

        if (length == 0 || is_denied(*entry, length) ||
            hooks_env_find(build->env, *entry, length) != NULL)
            continue;
        code = set_expanded(build, hooks_arena_copy(build->env->arena, *entry, length), end + 1);
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

    if (!results_valid(results, bytes))
        return err_set(build->err, ERR_CORRUPT, "the results of the task's hooks are damaged");
    for (uint32_t at = 0; code == 0 && results_next(results, bytes, &at, &result);) {
        if (result.kind != RESULT_ENV)
            continue;
        if (result.value_length > 0 && memchr(result.value, '\0', result.value_length) != NULL)
            return err_set(build->err, ERR_CORRUPT, "variable %.64s of a hook holds a NUL",
                           result.key);
        code = set_expanded(build, result.key,
                            hooks_arena_copy(build->env->arena, result.value, result.value_length));
    }
    return code;
}

/* --- names --- */

static bool must_be_clean(const char *name)
{
    static const char *const prefixes[] = {"NOMAD_ADDR_", "NOMAD_IP_", "NOMAD_PORT_",
                                           "NOMAD_HOST_PORT_", "NOMAD_META_"};

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
static char *cleaned(struct hooks_arena *arena, const char *name)
{
    size_t length = strlen(name);
    char *clean = NULL;

    for (size_t at = 0; must_be_clean(name) && at < length; at++) {
        if (is_clean(name[at]))
            continue;
        if (clean == NULL)
            clean = hooks_arena_copy(arena, name, length);
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
        drop(env, i);
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
    int code = add_directories(&build);

    if (code == 0)
        code = add_limits(&build);
    if (code == 0)
        code = add_ids(&build);
    if (code == 0)
        code = add_meta(&build);
    if (code == 0)
        code = add_host(&build);
    if (code == 0)
        code = add_task(&build);
    if (code == 0)
        code = add_results(&build, results, results_bytes);
    if (code == 0)
        code = clean_names(&build);
    return code;
}
