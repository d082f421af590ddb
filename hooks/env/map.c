/*
 * From name to value, ordered by name.
 *
 * An array that is searched by halves: an environment has some dozen variables, is built once and
 * then read in order.
 */
#include "hooks/env/map.h"

#include <string.h>

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
    env->pairs.items =
        arena_more(env->arena, env->pairs.items, env->pairs.count, sizeof(*env->pairs.items));
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
        env->pairs.items[at].key = arena_copy(env->arena, name, length);
    }
    env->pairs.items[at].value = arena_copy(env->arena, value, value_length);
    env->bytes += bytes - old;
    return 0;
}

void hooks_env_drop(struct hooks_env *env, size_t at)
{
    check(at < env->pairs.count);
    const struct spec_pair *pair = &env->pairs.items[at];

    env->bytes -= strlen(pair->key) + strlen(pair->value) + 2;
    env->pairs.count--;
    memmove(env->pairs.items + at, env->pairs.items + at + 1,
            (env->pairs.count - at) * sizeof(*env->pairs.items));
}
