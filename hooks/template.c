/*
 * A driver's config: JSON whose strings are templates, the language of job files (spec/hcl.h).
 *
 * Follows nomad v1.1.2 helper/pluginutils/hclutils ParseHclInterface (and its functions) and
 * client/taskenv AllValues.  A name is looked up whole before it is taken for an object, so
 * attr.driver.qemu can be had beside attr.driver.qemu.version.  What is wrong with a name is told
 * in the words of hashicorp/hcl's diagnostics.
 *
 * Invariant: what the config says never gets into a message, but for the names of variables and
 * of the config's own keys: the rest may be a password.  So of what spec/hcl finds wrong only the
 * place is told.
 */
#include "hooks/env/expand.h"

#include "spec/hcl.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEPTH_MAX = 32,                  /* of the JSON */
    WORK_MAX = 4 * EXPAND_BYTES_MAX, /* what all of a config's templates may cost */
    SHOWN_SIZE = 65,                 /* of a name in a message */
    PLACE_SIZE = 97,                 /* of where in the config, likewise */
};

/* Where in the config, for messages. */
struct place {
    const struct place *up;
    const char *key; /* NULL: an item of a list */
    size_t index;
};

struct template
{
    const struct hooks_names *names;
    struct arena *arena;
    const struct place *place;
    uint64_t work;     /* left, of WORK_MAX */
    size_t bytes_left; /* of all strings together */
    unsigned depth;
    bool failed; /* err is filled */
    char shown[SHOWN_SIZE];
    struct err *err;
};

/* --- messages --- */

static void show_place(const struct place *place, char *to, size_t size)
{
    char part[PLACE_SIZE];

    if (place == NULL)
        return;
    show_place(place->up, to, size);
    if (place->key == NULL)
        (void)text_format(part, sizeof(part), "[%zu]", place->index); /* fits */
    else
        (void)text_format(part, sizeof(part), "%s%s", place->up == NULL ? "" : ".", place->key);
    (void)text_append(to, size, part); /* what fits is enough to find it */
}

__attribute__((format(printf, 2, 3))) static int fail(struct template *template, const char *format,
                                                      ...)
{
    char place[PLACE_SIZE] = "", what[ERR_TEXT_SIZE];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(what, sizeof(what), format, arguments); /* what fits is enough */
    va_end(arguments);
    show_place(template->place, place, sizeof(place));
    template->failed = true;
    return err_set(template->err, ERR_INVALID, "failed to parse config: %s: %s", place, what);
}

/* Name as a message has it, cut between characters. */
static const char *show(struct template *template, const char *name)
{
    (void)text_copy(template->shown, sizeof(template->shown), name); /* what fits is enough */
    return template->shown;
}

/* --- names --- */

static bool has_below(const struct spec_pairs *pairs, const char *name)
{
    size_t length = strlen(name);

    for (size_t i = 0; i < pairs->count; i++) {
        const char *key = pairs->items[i].key;
        if (strncmp(key, name, length) == 0 && key[length] == '.')
            return true;
    }
    return false;
}

/* True if NAME is an object: names with a dot make one. */
static bool is_object(const struct hooks_names *names, const char *name)
{
    const struct hooks_node *node = names->node;

    if (text_equal(name, "env") || text_equal(name, "node") || text_equal(name, "node.unique"))
        return true;
    if (text_equal(name, "attr") || text_equal(name, "meta"))
        return (name[0] == 'a' ? &node->attributes : &node->meta)->count > 0;
    if (text_starts_with(name, "attr."))
        return has_below(&node->attributes, name + 5);
    if (text_starts_with(name, "meta."))
        return has_below(&node->meta, name + 5);
    return has_below(&names->env->pairs, name);
}

/* Says what is wrong with PATH, which names nothing: no word of the config's but names. */
static int fail_unknown(struct template *template, const char *path, const char *name)
{
    size_t length = strcspn(path, ".");
    char *root = arena_copy(template->arena, path, length);

    if (is_object(template->names, name))
        return fail(template, "Incorrect value type: \"%s\" is an object, not a text.",
                    show(template, path));
    if (is_object(template->names, root) && path[length] == '.')
        return fail(template,
                    "Unsupported attribute: This object does not have an attribute named \"%s\".",
                    show(template, path + length + 1));
    return fail(template, "Unknown variable: There is no variable named \"%s\".",
                show(template, root));
}

/* hcl_names: the value of the variable PATH, whose parts are joined by dots. */
static int find_variable(void *ctx, const char *path, const char **ret_value)
{
    struct template *template = ctx;
    const char *name = path, *value;

    if (text_starts_with(path, "env.")) {
        value = hooks_env_find(template->names->env, path + 4, strlen(path + 4));
        if (value == NULL)
            return fail(template,
                        "Missing map element: This map does not have an element with the key "
                        "\"%s\".",
                        show(template, path + 4));
    } else {
        if (text_starts_with(path, "node.attr.") || text_starts_with(path, "node.meta."))
            name = path + 5;
        value = hooks_names_find(template->names, name, strlen(name));
        if (value == NULL)
            return fail_unknown(template, path, name);
    }
    if (!text_is_utf8(value, strlen(value)))
        return fail(template, "Invalid text: a variable's value is not UTF-8.");
    *ret_value = value;
    return 0;
}

/* --- JSON --- */

static bool holds_template(const char *text)
{
    return strstr(text, "${") != NULL || strstr(text, "%{") != NULL;
}

static int fail_expression(struct template *template, const struct hcl_error *error)
{
    if (error->code == ERR_LIMIT)
        return fail(template, "Too long or too deep: this template takes too much to evaluate.");
    return fail(template,
                "Invalid expression at %u:%u: ${...} takes the name of a variable, such as "
                "NOMAD_TASK_NAME, attr.kernel.name or env[\"PATH\"], or an expression of such.",
                error->place.line, error->place.column);
}

/* Interpolates LENGTH bytes of TEXT into a new value. */
static int expand(struct template *template, const char *text, size_t length, json_t **ret_text)
{
    static const char *const functions[] = {
        "abs", "coalesce", "concat",  "jsondecode", "jsonencode", "length", "lower",
        "max", "min",      "reverse", "strlen",     "substr",     "upper",  NULL};
    const struct hcl_names names = {.find = find_variable, .ctx = template, .functions = functions};
    struct hcl_error error;
    json_t *made;
    int code = 0;

    if (strlen(text) != length)
        return fail(template, "Invalid text: a NUL character cannot be passed to a driver.");
    if (holds_template(text))
        code = hcl_expand(text, length, &names, &template->work, &made, &error);
    else
        made = json_stringn(text, length);
    if (code != 0)
        return template->failed ? code : fail_expression(template, &error);
    check(made != NULL);
    if (json_string_length(made) > template->bytes_left) {
        json_decref(made);
        return fail(template, "Too long: an interpolated config has at most %d bytes.",
                    EXPAND_BYTES_MAX);
    }
    template->bytes_left -= json_string_length(made);
    *ret_text = made;
    return 0;
}

static int expand_value(struct template *template, json_t *value, json_t **ret_value);

static int expand_array(struct template *template, json_t *array, json_t **ret_value)
{
    struct place place = {.up = template->place};
    json_t *made = json_array(), *item = NULL;
    int code = 0;

    check(made != NULL);
    template->place = &place;
    for (; code == 0 && place.index < json_array_size(array); place.index++) {
        code = expand_value(template, json_array_get(array, place.index), &item);
        if (code == 0)
            check(json_array_append_new(made, item) == 0);
    }
    template->place = place.up;
    if (code != 0)
        json_decref(made);
    else
        *ret_value = made;
    return code;
}

/* Keys below the top are templates too, as HCL has it for objects in JSON. */
static int expand_member(struct template *template, const char *key, json_t *value, json_t *made)
{
    json_t *name = NULL, *item = NULL;
    int code = 0;

    if (template->depth > 1)
        code = expand(template, key, strlen(key), &name);
    const char *final = name != NULL ? json_string_value(name) : key;
    if (code == 0 && json_object_get(made, final) != NULL)
        code = fail(template, "Duplicate object attribute.");
    if (code == 0)
        code = expand_value(template, value, &item);
    if (code == 0)
        check(json_object_set_new(made, final, item) == 0);
    json_decref(name);
    return code;
}

static int expand_object(struct template *template, json_t *object, json_t **ret_value)
{
    struct place place = {.up = template->place};
    json_t *made = json_object(), *value;
    int code = 0;

    check(made != NULL);
    template->place = &place;
    json_object_foreach(object, place.key, value)
    {
        code = expand_member(template, place.key, value, made);
        if (code != 0)
            break;
    }
    template->place = place.up;
    if (code != 0)
        json_decref(made);
    else
        *ret_value = made;
    return code;
}

/* A new value; what is neither text nor made of texts is shared. */
static int expand_value(struct template *template, json_t *value, json_t **ret_value)
{
    int code;

    if (++template->depth > DEPTH_MAX)
        return fail(template, "Too deep: a config nests at most %d times.", DEPTH_MAX);
    if (json_is_string(value)) {
        code = expand(template, json_string_value(value), json_string_length(value), ret_value);
    } else if (json_is_array(value)) {
        code = expand_array(template, value, ret_value);
    } else if (json_is_object(value)) {
        code = expand_object(template, value, ret_value);
    } else {
        *ret_value = json_incref(value);
        code = 0;
    }
    template->depth--;
    return code;
}

/* False if no string of CONFIG can hold a template: the usual case, not worth a parse.  The
 * characters of a template may be written as \u00xx. */
static bool needs_expanding(const char *config)
{
    return holds_template(config) || strstr(config, "\\u00") != NULL;
}

int hooks_expand_config(const struct hooks_names *names, struct arena *arena, const char *config,
                        const char **ret_config, struct err *err)
{
    struct template template = {.names = names,
                                .arena = arena,
                                .work = WORK_MAX,
                                .bytes_left = EXPAND_BYTES_MAX,
                                .err = err};
    size_t length = strlen(config);
    json_error_t where;
    json_t *made = NULL;

    if (length > EXPAND_BYTES_MAX)
        return err_set(err, ERR_INVALID, "failed to parse config: longer than %d bytes",
                       EXPAND_BYTES_MAX);
    if (!needs_expanding(config)) {
        *ret_config = config;
        return 0;
    }
    json_t *read = json_loadb(config, length, JSON_ALLOW_NUL, &where);
    if (read == NULL || !json_is_object(read)) {
        json_decref(read);
        return err_set(err, ERR_INVALID, "failed to parse config: not a JSON object (line %d)",
                       read == NULL ? where.line : 1);
    }

    int code = expand_value(&template, read, &made);
    json_decref(read);
    if (code != 0)
        return code;
    char *text = json_dumps(made, JSON_COMPACT | JSON_REAL_PRECISION(17));
    json_decref(made);
    check(text != NULL);
    *ret_config = arena_text(arena, text);
    free(text);
    return 0;
}
