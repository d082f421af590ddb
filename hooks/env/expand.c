/*
 * Plain interpolation, and the names that both languages know.
 *
 * Follows nomad v1.1.2 helper/args/args.go ReplaceEnv and client/taskenv/env.go setNode.
 */
#include "hooks/env/expand.h"

#include <stdlib.h>
#include <string.h>

static const char name_characters[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";

/* --- names --- */

static const char *known(const char *value)
{
    return value == NULL ? "" : value;
}

static bool is_name(const char *name, size_t length, const char *expected)
{
    return strlen(expected) == length && memcmp(name, expected, length) == 0;
}

static const char *find_pair(const struct spec_pairs *pairs, const char *name, size_t length)
{
    for (size_t i = 0; i < pairs->count; i++) {
        if (is_name(name, length, pairs->items[i].key))
            return known(pairs->items[i].value);
    }
    return NULL;
}

static const char *find_node(const struct hooks_node *node, const char *name, size_t length)
{
    const struct spec_pair facts[] = {
        {"node.unique.id", node->id},          {"node.unique.name", node->name},
        {"node.datacenter", node->datacenter}, {"node.class", node->class},
        {"node.region", node->region},         {"node.pool", node->pool},
    };

    for (size_t i = 0; i < COUNT_OF(facts); i++) {
        if (is_name(name, length, facts[i].key))
            return known(facts[i].value);
    }
    if (length > 5 && memcmp(name, "attr.", 5) == 0)
        return find_pair(&node->attributes, name + 5, length - 5);
    if (length > 5 && memcmp(name, "meta.", 5) == 0)
        return find_pair(&node->meta, name + 5, length - 5);
    return NULL;
}

const char *hooks_names_find(const struct hooks_names *names, const char *name, size_t length)
{
    const char *value = find_node(names->node, name, length);

    return value != NULL ? value : hooks_env_find(names->env, name, length);
}

/* --- plain --- */

/* A text that grows up to MAX bytes while it is put together. */
struct growing {
    char *bytes; /* owned; terminated once something was added */
    size_t used, size, max;
};

/* False, and nothing added, when it would become too long. */
static bool add(struct growing *text, const char *bytes, size_t length)
{
    if (length > text->max || text->used > text->max - length)
        return false;
    text->bytes = list_room(text->bytes, &text->size, text->used + length + 1, 1);
    memcpy(text->bytes + text->used, bytes, length);
    text->used += length;
    text->bytes[text->used] = '\0';
    return true;
}

static void close_growing(const struct growing *text)
{
    free(text->bytes);
}

int hooks_expand_plain(const struct hooks_names *names, struct arena *arena, const char *text,
                       size_t bytes_max, const char **ret_text, struct err *err)
{
    __attribute__((cleanup(close_growing))) struct growing made = {.max = bytes_max};
    const char *from = text; /* what has not been copied yet */
    bool fits = true;

    for (const char *at = strstr(text, "${"); at != NULL && fits; at = strstr(at, "${")) {
        size_t length = strspn(at + 2, name_characters);
        const char *value =
            length > 0 && at[2 + length] == '}' ? hooks_names_find(names, at + 2, length) : NULL;

        if (value == NULL) {
            at += 2;
            continue;
        }
        fits = add(&made, from, (size_t)(at - from)) && add(&made, value, strlen(value));
        at += length + 3;
        from = at;
    }
    if (from == text) {
        *ret_text = text;
        return 0;
    }
    if (!fits || !add(&made, from, strlen(from)))
        return err_set(err, ERR_LIMIT, "longer than %zu bytes when interpolated", bytes_max);
    *ret_text = arena_copy(arena, made.bytes, made.used);
    return 0;
}
