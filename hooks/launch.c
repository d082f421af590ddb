/*
 * A task as its driver gets it: spec, node, environment and the results of hooks put together.
 *
 * Invariant: a launch points at nothing but itself, so the spec it was made of may go.
 */
#include "hooks/env/env.h"
#include "hooks/env/expand.h"
#include "hooks/network/network.h"
#include "hooks/part.h"

#include <stdlib.h>
#include <string.h>

enum { USER_BYTES_MAX = HOOKS_USER_SIZE - 1 };

struct launch {
    struct hooks_launch shown; /* what the caller has: first, so that it is the launch's address */
    struct arena arena;        /* everything it points to */
};

static struct spec_pairs copy_pairs(struct arena *arena, const struct spec_pairs *from)
{
    struct spec_pairs pairs = {.count = from->count};

    if (from->count > 0)
        pairs.items = arena_new(arena, from->count * sizeof(*from->items));
    for (size_t i = 0; i < from->count; i++) {
        pairs.items[i].key = arena_text(arena, from->items[i].key);
        pairs.items[i].value = arena_text(arena, from->items[i].value);
    }
    return pairs;
}

/* The spec's texts that nothing is interpolated in, and those that have been, made the launch's. */
static void copy_task(struct arena *arena, const struct task_spec *from,
                      const struct spec_pairs *env, struct task_spec *to)
{
    *to = *from;
    to->name = arena_text(arena, from->name);
    to->driver = arena_text(arena, from->driver);
    to->devices_json = from->devices_json == NULL ? NULL : arena_text(arena, from->devices_json);
    to->kill_signal = arena_text(arena, from->kill_signal);
    to->meta = copy_pairs(arena, &from->meta);
    if (from->resources.cores > 0) {
        size_t bytes = from->resources.cores * sizeof(*from->resources.core_ids);
        uint16_t *ids = arena_new(arena, bytes);

        memcpy(ids, from->resources.core_ids, bytes);
        to->resources.core_ids = ids;
    }
    to->env = *env;
}

/* Whose TASK is: as it says, else as its driver does. */
static int expand_user(const struct hooks *hooks, const struct hooks_names *names,
                       struct arena *arena, const struct task_spec *task, const char **ret_user,
                       struct err *err)
{
    const char *user = task->user[0] != '\0' ? task->user : hooks_driver(hooks, task->driver)->user;
    int code = hooks_expand_plain(names, arena, user, USER_BYTES_MAX, ret_user, err);

    if (code == 0 && strlen(*ret_user) > USER_BYTES_MAX)
        code = err_set(err, ERR_INVALID, "longer than %d bytes", USER_BYTES_MAX);
    return code == 0 ? 0 : err_wrap(err, "the task's user");
}

static const char *path_of(struct launch *launch, const struct hooks *hooks, const char *alloc,
                           void (*path)(const struct hooks_network *config, const char *alloc,
                                        char to[PATH_SIZE]))
{
    char text[PATH_SIZE];

    path(hooks->network, alloc, text);
    return arena_text(&launch->arena, text);
}

/* What its network hook has made for the task. */
static int add_network(const struct hooks *hooks, const struct alloc_spec *alloc,
                       struct launch *launch, const uint8_t *results, uint32_t results_bytes,
                       struct err *err)
{
    struct hooks_launch *shown = &launch->shown;
    struct alloc_spec expanded;

    shown->network = shown->resolv = shown->hosts = shown->hostname = "";
    if (hooks->network == NULL)
        return 0;
    json_t *status = hooks_network_status(results, results_bytes);
    const char *address = json_string_value(json_object_get(status, "Address"));
    bool is_reached = address != NULL && *address != '\0';
    bool has_names = alloc->has_dns || json_is_object(json_object_get(status, "DNS"));

    json_decref(status);
    if (has_names)
        shown->resolv = path_of(launch, hooks, alloc->id, network_resolv);
    if (!spec_has_namespace(alloc))
        return 0;
    shown->network = path_of(launch, hooks, alloc->id, network_namespace);
    if (*alloc->hostname == '\0')
        return 0;
    if (is_reached)
        shown->hosts = path_of(launch, hooks, alloc->id, network_hosts);
    int code = hooks_network_expand(hooks, alloc, &launch->arena, &expanded, err);
    if (code == 0)
        shown->hostname = arena_text(&launch->arena, expanded.hostname);
    return code;
}

/* The image of a sidecar is named by the node's metadata, where nothing else is interpolated. */
static const char *put_envoy(struct arena *arena, const struct hooks_env *env, const char *config)
{
    static const char variable[] = "${NOMAD_envoy_version}", name[] = "NOMAD_envoy_version";
    const char *version = hooks_env_find(env, name, sizeof(name) - 1);
    const char *at = version == NULL ? NULL : strstr(config, variable);

    while (at != NULL) {
        size_t size = strlen(config) + strlen(version) + 1;
        char *made = arena_new(arena, size);

        (void)text_format(made, size, "%.*s%s%s", (int)(at - config), config, version,
                          at + strlen(variable)); /* made to fit */
        at = strstr(made + (at - config) + strlen(version), variable);
        config = made;
    }
    return config;
}

/* That of its own identity, or that of a service that is in the mesh by this task itself; what the
 * job gives it goes before. */
static int add_tokens(const struct hooks *hooks, const struct alloc_spec *alloc,
                      const struct task_spec *task, struct hooks_env *env, struct err *err)
{
    static const char *const names[] = {"CONSUL_HTTP_TOKEN", "CONSUL_TOKEN"};
    char token[CONNECT_TOKEN_SIZE];
    int code = 0;
    bool own = task->has_consul_token && hooks_task_token(hooks, alloc->id, task->name, token);
    bool has = own || (task->connect == CONNECT_NATIVE &&
                       hooks_read_token(hooks, alloc->id, task->name, token));

    for (size_t i = 0; has && code == 0 && i < (own ? COUNT_OF(names) : 1); i++) {
        if (hooks_env_find(env, names[i], strlen(names[i])) == NULL)
            code = hooks_env_set(env, names[i], arena_text(env->arena, token), err);
    }
    explicit_bzero(token, sizeof(token));
    return code;
}

int hooks_prepare(const struct hooks *hooks, const struct alloc_spec *alloc,
                  const struct task_spec *task, const uint8_t *results, uint32_t results_bytes,
                  struct hooks_launch **ret_launch, struct err *err)
{
    struct launch *launch = calloc(1, sizeof(*launch));
    check(launch != NULL);
    struct hooks_launch *shown = &launch->shown;
    struct hooks_env env = {.arena = &launch->arena};
    struct hooks_names names = {.node = hooks->node, .env = &env};
    const char *user = "", *config = "";

    int code = hooks_env_build(hooks, alloc, task, results, results_bytes, &env, err);
    if (code == 0)
        code = expand_user(hooks, &names, &launch->arena, task, &user, err);
    if (code == 0)
        code = hooks_expand_config(&names, &launch->arena, task->config_json, &config, err);
    if (code == 0 && task->connect == CONNECT_PROXY)
        config = put_envoy(&launch->arena, &env, config);
    if (code == 0)
        code = add_tokens(hooks, alloc, task, &env, err);
    if (code == 0)
        code = hooks_mounts(&launch->arena, results, results_bytes, &shown->mounts, err);
    if (code == 0)
        code = add_network(hooks, alloc, launch, results, results_bytes, err);
    if (code != 0) {
        hooks_launch_free(shown);
        return code;
    }
    copy_task(&launch->arena, task, &env.pairs, &shown->task);
    shown->task.user = arena_text(&launch->arena, user);
    shown->task.config_json = arena_text(&launch->arena, config);
    shown->env = env.pairs;
    *ret_launch = shown;
    return 0;
}

void hooks_launch_free(struct hooks_launch *launch)
{
    struct launch *whole = (struct launch *)(void *)launch;

    if (whole == NULL)
        return;
    arena_free(&whole->arena);
    free(whole);
}

int hooks_user(const struct hooks *hooks, const struct hook_run *asked,
               char ret_user[HOOKS_USER_SIZE], struct err *err)
{
    struct arena arena = {0};
    struct hooks_env env = {.arena = &arena};
    struct hooks_names names = {.node = hooks->node, .env = &env};
    const char *user = "";
    int code = 0;

    ret_user[0] = '\0';
    if (hooks_driver(hooks, asked->task->driver)->isolation == ISOLATION_IMAGE)
        return 0; /* who that is the image says */
    if (strstr(asked->task->user, "${") != NULL)
        code = hooks_env_build(hooks, asked->alloc, asked->task, asked->results,
                               asked->results_bytes, &env, err);
    if (code == 0)
        code = expand_user(hooks, &names, &arena, asked->task, &user, err);
    if (code == 0)
        check(text_copy(ret_user, HOOKS_USER_SIZE, user));
    arena_free(&arena);
    return code;
}
