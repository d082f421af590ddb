/*
 * Interpolation, in Nomad's two languages (client-behaviour 5.2).
 *
 * Plain: ${name} with a name of A-Z a-z 0-9 _ - . is replaced, anything else and any unknown name
 * stays as it is.  There is no escape.
 *
 * Config: strings are templates of HCL, as in job files: a name is NAME, a.b, env["any name"] or
 * env[NAME]; $${ is ${ and %%{ is %{.  What is unknown or not understood is an error, as in Nomad.
 *
 * Two, because the first is no language of expressions: it replaces names and nothing else, and
 * what it does not know it leaves alone, which a template must never do.
 */
#ifndef CAIRN_HOOKS_ENV_EXPAND_H
#define CAIRN_HOOKS_ENV_EXPAND_H

#include "hooks/env/map.h"
#include "hooks/part.h"

enum { EXPAND_BYTES_MAX = ENV_BYTES_MAX };

/* What can be named: facts of the node first, then the environment. */
struct hooks_names {
    const struct hooks_node *node;
    const struct hooks_env *env;
};

/* The value of the LENGTH bytes at NAME; NULL if nothing has that name. */
const char *hooks_names_find(const struct hooks_names *names, const char *name, size_t length);

/* TEXT interpolated; it may be TEXT itself when there was nothing to do.  ERR_LIMIT when it would
 * become longer than BYTES_MAX. */
int hooks_expand_plain(const struct hooks_names *names, struct arena *arena, const char *text,
                       size_t bytes_max, const char **ret_text, struct err *err);

/* The JSON object CONFIG with each string in it (and each key below the top) interpolated.
 * ERR_INVALID, never recoverable, with Nomad's words for what is wrong.  Messages tell where and
 * which variable, and nothing else of what is in the config. */
int hooks_expand_config(const struct hooks_names *names, struct arena *arena, const char *config,
                        const char **ret_config, struct err *err);

#endif
