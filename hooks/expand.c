/*
 * Plain interpolation, and the names that both languages know.
 *
 * Follows nomad v1.1.2 helper/args/args.go ReplaceEnv and client/taskenv/env.go setNode.
 */
#include "hooks/expand.h"

#include <stdlib.h>
#include <string.h>

static const char name_characters[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";

/* --- a text that grows --- */

bool hooks_text_add(struct hooks_text *text, const char *bytes, size_t length)
{
    if (length > text->max || text->used > text->max - length)
        return false;
    if (text->used + length + 1 > text->size) {
        size_t size = 2 * (text->used + length + 1) + 64;

        text->bytes = realloc(text->bytes, size);
        check(text->bytes != NULL);
        text->size = size;
    }
    memcpy(text->bytes + text->used, bytes, length);
    text->used += length;
    text->bytes[text->used] = '\0';
    return true;
}

void hooks_text_close(const struct hooks_text *text)
{
    free(text->bytes);
}

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
        {"node.region", node->region},
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

int hooks_expand_plain(const struct hooks_names *names, struct arena *arena, const char *text,
                       size_t bytes_max, const char **ret_text, struct err *err)
{
    __attribute__((cleanup(hooks_text_close))) struct hooks_text made = {.max = bytes_max};
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
        fits = hooks_text_add(&made, from, (size_t)(at - from)) &&
               hooks_text_add(&made, value, strlen(value));
        at += length + 3;
        from = at;
    }
    if (from == text) {
        *ret_text = text;
        return 0;
    }
    if (!fits || !hooks_text_add(&made, from, strlen(from)))
        return err_set(err, ERR_LIMIT, "longer than %zu bytes when interpolated", bytes_max);
    *ret_text = arena_copy(arena, made.bytes, made.used);
    return 0;
}
