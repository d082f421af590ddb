/*
 * What an alloc asks of its network, with its variables replaced.
 *
 * Follows nomad v2.0.5 client/taskenv/network.go; the names are those of the alloc and of the node,
 * for all tasks of the alloc share what comes of it.
 */
#include "hooks/env/env.h"
#include "hooks/env/expand.h"
#include "hooks/network/network.h"
#include "hooks/part.h"
#include "spec/names.h"

#include <string.h>

struct expanding {
    struct hooks_names names;
    struct arena *arena;
    struct err *err;
};

static int expand(const struct expanding *expanding, const char **text, size_t bytes_max)
{
    return hooks_expand_plain(&expanding->names, expanding->arena, *text, bytes_max, text,
                              expanding->err);
}

static int expand_texts(const struct expanding *expanding, struct spec_texts *texts)
{
    const char **items = arena_new(expanding->arena, (texts->count + 1) * sizeof(*items));
    int code = 0;

    for (size_t i = 0; code == 0 && i < texts->count; i++) {
        items[i] = texts->items[i];
        code = expand(expanding, &items[i], ENV_ENTRY_MAX);
    }
    texts->items = items;
    return code;
}

static int expand_arguments(const struct expanding *expanding, struct spec_pairs *arguments)
{
    struct spec_pair *items = arena_new(expanding->arena, (arguments->count + 1) * sizeof(*items));
    int code = 0;

    for (size_t i = 0; code == 0 && i < arguments->count; i++) {
        items[i] = arguments->items[i];
        code = expand(expanding, &items[i].value, ENV_ENTRY_MAX);
    }
    arguments->items = items;
    return code;
}

int hooks_network_expand(const struct hooks *hooks, const struct alloc_spec *alloc,
                         struct arena *arena, struct alloc_spec *ret_alloc, struct err *err)
{
    struct hooks_env env = {.arena = arena};
    struct expanding expanding = {
        .names = {.node = hooks->node, .env = &env}, .arena = arena, .err = err};
    int code = hooks_env_build_alloc(hooks, alloc, NULL, &env, err);

    *ret_alloc = *alloc;
    if (!spec_has_namespace(alloc))
        ret_alloc->hostname = "";
    if (code == 0)
        code = expand(&expanding, &ret_alloc->hostname, SPEC_HOSTNAME_TEXT_SIZE - 1);
    if (code == 0)
        code = expand_texts(&expanding, &ret_alloc->dns_servers);
    if (code == 0)
        code = expand_texts(&expanding, &ret_alloc->dns_searches);
    if (code == 0)
        code = expand_texts(&expanding, &ret_alloc->dns_options);
    if (code == 0)
        code = expand_arguments(&expanding, &ret_alloc->cni_args);
    if (code != 0)
        return err_wrap(err, "the network of the group");

    const char *fault =
        *ret_alloc->hostname == '\0' ? NULL : spec_hostname_fault(ret_alloc->hostname);
    return fault == NULL
               ? 0
               : err_set(err, ERR_INVALID, "the hostname \"%s\" %s", ret_alloc->hostname, fault);
}

int hooks_network_begin(const struct hooks *hooks, const struct hook_run *asked, char **ret_order,
                        struct err *err)
{
    struct arena arena = {0};
    struct alloc_spec expanded;
    int code = 0;

    if (hooks->network != NULL)
        code = hooks_network_expand(hooks, asked->alloc, &arena, &expanded, err);
    if (code == 0)
        *ret_order = hooks->network == NULL ? strdup("") : network_order(hooks->network, &expanded);
    arena_free(&arena);
    check(code != 0 || *ret_order != NULL);
    return code;
}
