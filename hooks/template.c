/*
 * A driver's config: JSON whose strings are templates.
 *
 * Follows nomad v1.1.2 helper/pluginutils/hclutils ParseHclInterface and client/taskenv
 * AllValues, with the words of hashicorp/hcl's diagnostics.  Of HCL's expressions only those that
 * name a variable are here; functions, operators and directives are refused with a message, never
 * passed on as if they were text.  A name is looked up whole before it is taken for an object, so
 * attr.driver.qemu can be had beside attr.driver.qemu.version.
 *
 * Invariant: what the config says never gets into a message, but for the names of variables and
 * of the config's own keys: the rest may be a password.
 */
#include "hooks/expand.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEPTH_MAX = 32, /* of the JSON */
    NESTED_MAX = 8, /* of expressions in expressions */
    NAME_BYTES_MAX = 1024,
    SHOWN_SIZE = 65, /* of a name in a message */
    PLACE_SIZE = 97, /* of where in the config, likewise */
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
    const struct place *place;
    size_t bytes_left; /* of all strings together */
    unsigned depth, nested;
    char shown[SHOWN_SIZE];
    struct err *err;
};

#define scoped_text __attribute__((cleanup(hooks_text_close))) struct hooks_text

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
    return err_set(template->err, ERR_INVALID, "failed to parse config: %s: %s", place, what);
}

static int fail_unsupported(struct template *template)
{
    return fail(template, "Unsupported expression: ${...} takes the name of a variable, such as "
                          "NOMAD_TASK_NAME, attr.kernel.name or env[\"PATH\"].");
}

/* Name as a message has it, cut between characters. */
static const char *show(struct template *template, const char *name)
{
    (void)text_copy(template->shown, sizeof(template->shown), name); /* what fits is enough */
    return template->shown;
}

static int add(struct template *template, struct hooks_text *to, const char *bytes, size_t length)
{
    if (hooks_text_add(to, bytes, length))
        return 0;
    return fail(template, "Too long: an interpolated config has at most %d bytes, a name %d.",
                EXPAND_BYTES_MAX, NAME_BYTES_MAX);
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

/* Adds the value of the variable PATH, whose parts are joined by dots. */
static int add_variable(struct template *template, const char *path, struct hooks_text *to)
{
    const char *value, *name = path;
    char root[NAME_BYTES_MAX + 1];

    if (text_starts_with(path, "env.")) {
        value = hooks_env_find(template->names->env, path + 4, strlen(path + 4));
        if (value == NULL)
            return fail(template,
                        "Missing map element: This map does not have an element with the key "
                        "\"%s\".",
                        show(template, path + 4));
        return add(template, to, value, strlen(value));
    }
    if (text_starts_with(path, "node.attr.") || text_starts_with(path, "node.meta."))
        name = path + 5;
    value = hooks_names_find(template->names, name, strlen(name));
    if (value != NULL)
        return add(template, to, value, strlen(value));

    (void)text_copy(root, sizeof(root), path); /* fits: so long is a name at most */
    root[strcspn(root, ".")] = '\0';
    if (is_object(template->names, name))
        return fail(template, "Incorrect value type: \"%s\" is an object, not a text.",
                    show(template, path));
    if (is_object(template->names, root) && path[strlen(root)] == '.')
        return fail(template,
                    "Unsupported attribute: This object does not have an attribute named \"%s\".",
                    show(template, path + strlen(root) + 1));
    return fail(template, "Unknown variable: There is no variable named \"%s\".",
                show(template, root));
}

/* --- expressions --- */

static bool starts_name(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' || (unsigned char)c >= 0x80;
}

static bool continues_name(char c)
{
    return starts_name(c) || (c >= '0' && c <= '9') || c == '-';
}

static const char *skip_spaces(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

static int take_expression(struct template *template, const char **at, struct hooks_text *to);
static int take_text(struct template *template, const char **at, char end, struct hooks_text *to);

static int take_name(struct template *template, const char **at, struct hooks_text *path)
{
    const char *from = *at;

    while (continues_name(**at))
        (*at)++;
    return *at == from ? fail_unsupported(template)
                       : add(template, path, from, (size_t)(*at - from));
}

/* What stands between brackets: a part of the path, computed. */
static int take_index(struct template *template, const char **at, struct hooks_text *path)
{
    int code = take_expression(template, at, path);

    if (code != 0)
        return code;
    *at = skip_spaces(*at);
    if (**at != ']')
        return fail_unsupported(template);
    (*at)++;
    return 0;
}

static int take_variable(struct template *template, const char **at, struct hooks_text *to)
{
    scoped_text path = {.max = NAME_BYTES_MAX};
    int code = take_name(template, at, &path);

    while (code == 0) {
        const char *next = skip_spaces(*at);

        if (*next != '.' && *next != '[')
            break;
        *at = skip_spaces(next + 1);
        code = add(template, &path, ".", 1);
        if (code == 0)
            code = *next == '.' ? take_name(template, at, &path) : take_index(template, at, &path);
    }
    if (code != 0)
        return code;
    const char *next = skip_spaces(*at);
    if (*next != '}' && *next != ']') /* a call, an operator: no name to look up */
        return fail_unsupported(template);
    return add_variable(template, path.bytes, to);
}

static int take_quoted(struct template *template, const char **at, struct hooks_text *to)
{
    (*at)++;
    int code = take_text(template, at, '"', to);
    if (code == 0)
        (*at)++;
    return code;
}

/* Adds the value of the expression at *AT, which is moved behind it. */
static int take_expression(struct template *template, const char **at, struct hooks_text *to)
{
    int code;

    if (++template->nested > NESTED_MAX)
        return fail(template, "Too deep: expressions nest at most %d times.", NESTED_MAX);
    *at = skip_spaces(*at);
    if (**at == '"')
        code = take_quoted(template, at, to);
    else if (starts_name(**at))
        code = take_variable(template, at, to);
    else
        code = fail_unsupported(template);
    template->nested--;
    return code;
}

static int take_interpolation(struct template *template, const char **at, struct hooks_text *to)
{
    if (strchr(*at, '}') == NULL)
        return fail(template, "Unclosed template interpolation sequence: There is no closing brace "
                              "for this interpolation sequence before the end of the template.");
    int code = take_expression(template, at, to);
    if (code != 0)
        return code;
    *at = skip_spaces(*at);
    if (**at != '}')
        return fail_unsupported(template);
    (*at)++;
    return 0;
}

/* An escape of a quoted string; JSON has taken away those outside of one. */
static int take_escape(struct template *template, const char **at, struct hooks_text *to)
{
    static const char letters[] = "nrt\"\\", meant[] = "\n\r\t\"\\";
    const char *letter = (*at)[1] == '\0' ? NULL : strchr(letters, (*at)[1]);

    if (letter == NULL)
        return fail(template, "Invalid escape sequence in a quoted string.");
    *at += 2;
    return add(template, to, &meant[letter - letters], 1);
}

/* Adds the template at *AT up to END, where *AT is left. */
static int take_text(struct template *template, const char **at, char end, struct hooks_text *to)
{
    const char *stop = end == '"' ? "$%\"\\" : "$%";
    int code = 0;

    while (code == 0) {
        size_t plain = strcspn(*at, stop);
        const char *here = *at + plain;

        code = add(template, to, *at, plain);
        *at = here;
        if (code != 0 || *here == end)
            return code;
        if (*here == '\0')
            return fail(template, "Unclosed quoted string.");
        if (*here == '\\') {
            code = take_escape(template, at, to);
        } else if (here[1] == here[0] && here[2] == '{') {
            code = add(template, to, here + 1, 2);
            *at += 3;
        } else if (here[1] != '{') {
            code = add(template, to, here, 1);
            *at += 1;
        } else if (*here == '%') {
            return fail(template, "Unsupported template: %%{...} is not available, write %%%%{ for "
                                  "a percent sign and a brace.");
        } else {
            *at += 2;
            code = take_interpolation(template, at, to);
        }
    }
    return code;
}

/* --- JSON --- */

/* Interpolates LENGTH bytes of TEXT into *RET_TEXT, which the caller closes. */
static int expand(struct template *template, const char *text, size_t length,
                  struct hooks_text *ret_text)
{
    *ret_text = (struct hooks_text){.max = template->bytes_left};
    if (strlen(text) != length)
        return fail(template, "Invalid text: a NUL character cannot be passed to a driver.");
    template->nested = 0;
    int code = take_text(template, &text, '\0', ret_text);
    if (code != 0)
        return code;
    template->bytes_left -= ret_text->used;
    if (!text_is_utf8(ret_text->bytes, ret_text->used))
        return fail(template, "Invalid text: a variable's value is not UTF-8.");
    return 0;
}

static int expand_value(struct template *template, json_t *value, json_t **ret_value);

static int expand_string(struct template *template, json_t *value, json_t **ret_value)
{
    scoped_text text = {0};
    int code = expand(template, json_string_value(value), json_string_length(value), &text);

    if (code != 0)
        return code;
    *ret_value = json_stringn(text.bytes, text.used);
    check(*ret_value != NULL);
    return 0;
}

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
    scoped_text name = {0};
    json_t *item = NULL;
    int code = 0;

    if (template->depth > 1)
        code = expand(template, key, strlen(key), &name);
    const char *final = name.bytes != NULL ? name.bytes : key;
    if (code == 0 && json_object_get(made, final) != NULL)
        code = fail(template, "Duplicate object attribute.");
    if (code == 0)
        code = expand_value(template, value, &item);
    if (code == 0)
        check(json_object_set_new(made, final, item) == 0);
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
        code = expand_string(template, value, ret_value);
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
    return strstr(config, "${") != NULL || strstr(config, "%{") != NULL ||
           strstr(config, "\\u00") != NULL;
}

int hooks_expand_config(const struct hooks_names *names, struct arena *arena, const char *config,
                        const char **ret_config, struct err *err)
{
    struct template template = {.names = names, .bytes_left = EXPAND_BYTES_MAX, .err = err};
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
    *ret_config = arena_copy(arena, text, strlen(text));
    free(text);
    return 0;
}
