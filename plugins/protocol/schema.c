/*
 * Configuration by a schema (hclspec), as nomad v2.0.5 helper/pluginutils/hclspecutils and hcldec
 * have it: what is named in the schema and nothing else, converted to the types that it names, with
 * its defaults, and null for what was not said.
 *
 * A schema is a tree that a stranger has made: it is unpacked node by node, at most
 * READ_DEPTH_MAX deep, since a message that holds itself would else lead as deep as it likes.
 */
#include "plugins/protocol/schema.h"

#include "plugins/protocol/plugin.pb-c.h"
#include "plugins/protocol/read.h"
#include "spec/hcl.h"

#include <msgpack.h>
#include <stdlib.h>
#include <string.h>

/* --- values by a schema --- */

enum { NAME_MAX_BYTES = 256, TYPE_MAX_BYTES = 4096 };

/* The body that names are looked for in. */
struct body {
    const json_t *value; /* an object */
    json_t *known;       /* names that the schema has for it */
};

struct filling {
    struct reading reading;
    unsigned depth;
};

static json_t *fill(struct filling *filling, ProtobufCBinaryData spec, struct body *body,
                    const char *implied);

static void complain(struct filling *filling, const char *name, const char *why)
{
    if (filling->reading.code == 0)
        filling->reading.code =
            err_set(filling->reading.err, ERR_INVALID, "configuration: %.100s: %.200s", name, why);
}

static const char *name_of(struct filling *filling, ProtobufCBinaryData name, const char *implied)
{
    if (name.len == 0 && implied != NULL)
        return implied;
    return reading_needed(&filling->reading, name, NAME_MAX_BYTES, "a name of its schema");
}

/* What BODY has under NAME; NULL: nothing, or null. */
static json_t *find(struct body *body, const char *name)
{
    json_t *found = json_object_get(body->value, name);

    check(json_object_set_new(body->known, name, json_true()) == 0);
    return json_is_null(found) ? NULL : found;
}

static json_t *fit(struct filling *filling, const char *name, const char *type, json_t *value)
{
    struct hcl_error error = {0};
    json_t *fitted = NULL;

    if (hcl_fit(type, value, &fitted, &error) == 0)
        return fitted;
    complain(filling, name, error.message);
    return json_null();
}

static json_t *fill_attribute(struct filling *filling, const Wire__SpecAttribute *spec,
                              struct body *body, const char *implied)
{
    const char *name = name_of(filling, spec->name, implied);
    const char *type =
        reading_needed(&filling->reading, spec->type, TYPE_MAX_BYTES, "a type of its schema");
    json_t *value = find(body, name);

    if (filling->reading.code != 0)
        return json_null();
    if (value != NULL)
        return fit(filling, name, type, value);
    if (spec->required)
        complain(filling, name, "is required");
    return json_null();
}

/* A block is an object, several are an array of them; NUMBER of them, or NULL beyond the last. */
static const json_t *block_at(const json_t *value, size_t number)
{
    return json_is_array(value) ? json_array_get(value, number) : number == 0 ? value : NULL;
}

static size_t blocks_count(struct filling *filling, const char *name, const json_t *value)
{
    size_t count = value == NULL ? 0 : json_is_array(value) ? json_array_size(value) : 1;

    for (size_t i = 0; i < count; i++) {
        if (!json_is_object(block_at(value, i)))
            complain(filling, name, "is a block, and no argument");
    }
    return filling->reading.code == 0 ? count : 0;
}

/* What NESTED makes of the block VALUE, in which nothing else is. */
static json_t *fill_block(struct filling *filling, ProtobufCBinaryData nested, const json_t *value)
{
    struct body body = {.value = value, .known = json_object()};
    json_t *made = fill(filling, nested, &body, NULL), *item;
    const char *key;

    json_object_foreach((json_t *)value, key, item)
    {
        if (json_object_get(body.known, key) == NULL && !text_equal(key, "//"))
            complain(filling, key, "there is no such argument or block");
    }
    json_decref(body.known);
    return made;
}

static json_t *fill_block_value(struct filling *filling, const Wire__SpecBlock *spec,
                                struct body *body, const char *implied)
{
    const char *name = name_of(filling, spec->name, implied);
    const json_t *value = find(body, name);
    size_t count = blocks_count(filling, name, value);

    if (count > 1)
        complain(filling, name, "there may be one such block");
    if (count == 0 && spec->required)
        complain(filling, name, "is required");
    return count == 1 && filling->reading.code == 0
               ? fill_block(filling, spec->nested, block_at(value, 0))
               : json_null();
}

static json_t *fill_block_attributes(struct filling *filling, const Wire__SpecAttribute *spec,
                                     struct body *body, const char *implied)
{
    const char *name = name_of(filling, spec->name, implied);
    const char *type =
        reading_needed(&filling->reading, spec->type, TYPE_MAX_BYTES, "a type of its schema");
    const json_t *value = find(body, name);
    size_t count = blocks_count(filling, name, value);
    char map[TYPE_MAX_BYTES + 8];

    if (count > 1)
        complain(filling, name, "there may be one such block");
    if (count == 0 && spec->required)
        complain(filling, name, "is required");
    if (count != 1 || filling->reading.code != 0)
        return json_null();
    check(text_format(map, sizeof(map), "map(%s)", type));
    return fit(filling, name, map, (json_t *)block_at(value, 0));
}

static json_t *fill_block_list(struct filling *filling, const Wire__SpecBlockList *spec,
                               struct body *body, const char *implied, bool is_set)
{
    const char *name = name_of(filling, spec->name, implied);
    const json_t *value = find(body, name);
    size_t count = blocks_count(filling, name, value);
    json_t *list = json_array();

    if (count < spec->min_items || (spec->max_items > 0 && count > spec->max_items))
        complain(filling, name, "there are too few or too many such blocks");
    for (size_t i = 0; i < count && filling->reading.code == 0; i++) {
        json_t *made = fill_block(filling, spec->nested, block_at(value, i));
        bool twice = false;

        for (size_t k = 0; is_set && k < json_array_size(list); k++)
            twice |= json_equal(json_array_get(list, k), made);
        if (twice)
            json_decref(made);
        else
            check(json_array_append_new(list, made) == 0);
    }
    return list;
}

/* VALUE, which has a level of objects for each label from LABEL on. */
static json_t *fill_labels(struct filling *filling, const Wire__SpecBlockMap *spec,
                           const char *name, const json_t *value, size_t label)
{
    size_t count = blocks_count(filling, name, value);
    json_t *map = json_object(), *inner;
    const char *key;

    for (size_t i = 0; i < count; i++) {
        json_object_foreach((json_t *)block_at(value, i), key, inner)
        {
            bool last = label + 1 == spec->n_labels;

            if (filling->reading.code == 0 && (json_object_get(map, key) != NULL ||
                                               (last && blocks_count(filling, key, inner) != 1)))
                complain(filling, key, "there may be one block of that name");
            if (filling->reading.code != 0)
                return map;
            json_t *made = last ? fill_block(filling, spec->nested, block_at(inner, 0))
                                : fill_labels(filling, spec, key, inner, label + 1);
            check(json_object_set_new(map, key, made) == 0);
        }
    }
    return map;
}

static json_t *fill_block_map(struct filling *filling, const Wire__SpecBlockMap *spec,
                              struct body *body, const char *implied)
{
    const char *name = name_of(filling, spec->name, implied);

    if (spec->n_labels == 0 || spec->n_labels > READ_DEPTH_MAX)
        reading_refuse(&filling->reading, ERR_INVALID, "a block of its schema",
                       "has no labels, or too many");
    const json_t *value = find(body, name);
    return filling->reading.code == 0 ? fill_labels(filling, spec, name, value, 0) : json_object();
}

static json_t *fill_object(struct filling *filling, const Wire__SpecObject *spec, struct body *body)
{
    json_t *object = json_object();

    for (size_t i = 0; i < spec->n_attributes && filling->reading.code == 0; i++) {
        const char *key = reading_needed(&filling->reading, spec->attributes[i]->key,
                                         NAME_MAX_BYTES, "a key of its schema");
        json_t *made = fill(filling, spec->attributes[i]->value, body, key);

        check(json_object_set_new(object, key, made) == 0);
    }
    return object;
}

static json_t *fill_array(struct filling *filling, const Wire__SpecArray *spec, struct body *body)
{
    json_t *array = json_array();

    for (size_t i = 0; i < spec->n_values && filling->reading.code == 0; i++)
        check(json_array_append_new(array, fill(filling, spec->values[i], body, NULL)) == 0);
    return array;
}

/* Both are looked at, since both name what may be said. */
static json_t *fill_default(struct filling *filling, const Wire__SpecDefault *spec,
                            struct body *body)
{
    json_t *primary = fill(filling, spec->primary, body, NULL);
    bool is_said = !json_is_null(primary);
    struct err unheard = {0}, *err = filling->reading.err;

    if (filling->reading.code != 0)
        return primary;
    if (is_said)
        filling->reading.err = &unheard;
    json_t *fallback = fill(filling, spec->fallback, body, NULL);
    if (is_said) { /* what a default lacks is nobody's loss then */
        filling->reading.code = 0;
        filling->reading.err = err;
    }
    json_decref(is_said ? fallback : primary);
    return is_said ? primary : fallback;
}

static json_t *fill_literal(struct filling *filling, const Wire__SpecLiteral *spec)
{
    const char *text =
        reading_needed(&filling->reading, spec->value, TYPE_MAX_BYTES, "a literal of its schema");
    struct hcl_error error = {0};
    json_t *value = NULL;

    if (filling->reading.code != 0)
        return json_null();
    if (hcl_literal(text, &value, &error) == 0)
        return value;
    reading_refuse(&filling->reading, ERR_INVALID, "a literal of its schema", "is no value");
    return json_null();
}

static json_t *fill_node(struct filling *filling, const Wire__Spec *spec, struct body *body,
                         const char *implied)
{
    switch (spec->block_case) {
    case WIRE__SPEC__BLOCK_OBJECT:
        return fill_object(filling, spec->object, body);
    case WIRE__SPEC__BLOCK_ARRAY:
        return fill_array(filling, spec->array, body);
    case WIRE__SPEC__BLOCK_ATTRIBUTE:
        return fill_attribute(filling, spec->attribute, body, implied);
    case WIRE__SPEC__BLOCK_BLOCK_VALUE:
        return fill_block_value(filling, spec->block_value, body, implied);
    case WIRE__SPEC__BLOCK_BLOCK_ATTRIBUTES:
        return fill_block_attributes(filling, spec->block_attributes, body, implied);
    case WIRE__SPEC__BLOCK_BLOCK_LIST:
        return fill_block_list(filling, spec->block_list, body, implied, false);
    case WIRE__SPEC__BLOCK_BLOCK_SET:
        return fill_block_list(filling, spec->block_set, body, implied, true);
    case WIRE__SPEC__BLOCK_BLOCK_MAP:
        return fill_block_map(filling, spec->block_map, body, implied);
    case WIRE__SPEC__BLOCK_FALLBACK:
        return fill_default(filling, spec->fallback, body);
    case WIRE__SPEC__BLOCK_LITERAL:
        return fill_literal(filling, spec->literal);
    case WIRE__SPEC__BLOCK__NOT_SET:
    case _WIRE__SPEC__BLOCK__CASE_IS_INT_SIZE:
        break;
    }
    reading_refuse(&filling->reading, ERR_UNSUPPORTED, "a part of its schema",
                   "is of a kind that is not known here");
    return json_null();
}

/* Never NULL; what is returned of a reading that has failed is of no use. */
static json_t *fill(struct filling *filling, ProtobufCBinaryData spec, struct body *body,
                    const char *implied)
{
    json_t *made = NULL;

    if (filling->depth == READ_DEPTH_MAX)
        reading_refuse(&filling->reading, ERR_LIMIT, "its schema", "is too deep");
    filling->depth++;
    const Wire__Spec *node =
        reading_unpack(&filling->reading, &wire__spec__descriptor, spec.data, spec.len);
    if (node != NULL)
        made = fill_node(filling, node, body, implied);
    filling->depth--;
    return made == NULL ? json_null() : made;
}

/* --- as msgpack, as cty writes it --- */

struct writing {
    msgpack_packer packer;
};

static int put_value(struct writing *to, const json_t *value);

/* A number that a double is exactly is one, any other goes as its decimals. */
static int put_number(struct writing *to, const json_t *value)
{
    enum { EXACT_BYTES = 1100 + 320 };
    json_t *text = hcl_convert((json_t *)value, HCL_STRING);
    const char *decimals = json_string_value(text);
    char exact[EXACT_BYTES] = "";
    int code;

    check(decimals != NULL);
    double number = strtod(decimals, NULL);
    if (number < 1e300 && number > -1e300) {
        check(text_format(exact, sizeof(exact), "%.1080f", number)); /* the longest ends there */
        for (size_t length = strlen(exact); length > 0 && exact[length - 1] == '0'; length--)
            exact[length - 1] = '\0';
        if (exact[0] != '\0' && exact[strlen(exact) - 1] == '.')
            exact[strlen(exact) - 1] = '\0';
    }
    if (text_equal(exact, decimals))
        code = msgpack_pack_double(&to->packer, number);
    else
        code = msgpack_pack_str_with_body(&to->packer, decimals, strlen(decimals));
    json_decref(text);
    return code;
}

static int compare_keys(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int put_object(struct writing *to, const json_t *value)
{
    size_t count = json_object_size(value), i = 0;
    const char **keys = calloc(count + 1, sizeof(*keys)), *key;
    json_t *item;

    check(keys != NULL);
    json_object_foreach((json_t *)value, key, item) keys[i++] = key;
    qsort(keys, count, sizeof(*keys), compare_keys);
    int code = msgpack_pack_map(&to->packer, count);
    for (i = 0; i < count && code == 0; i++) {
        code = msgpack_pack_str_with_body(&to->packer, keys[i], strlen(keys[i]));
        if (code == 0)
            code = put_value(to, json_object_get(value, keys[i]));
    }
    free(keys);
    return code;
}

static int put_array(struct writing *to, const json_t *value)
{
    int code = msgpack_pack_array(&to->packer, json_array_size(value));

    for (size_t i = 0; i < json_array_size(value) && code == 0; i++)
        code = put_value(to, json_array_get(value, i));
    return code;
}

/* As deep as values of HCL are. */
static int put_value(struct writing *to, const json_t *value)
{
    if (json_is_integer(value))
        return msgpack_pack_int64(&to->packer, json_integer_value(value));
    if (text_equal(hcl_type_text(value), "a number"))
        return put_number(to, value);
    if (json_is_object(value))
        return put_object(to, value);
    if (json_is_array(value))
        return put_array(to, value);
    if (json_is_string(value))
        return msgpack_pack_str_with_body(&to->packer, json_string_value(value),
                                          json_string_length(value));
    if (json_is_boolean(value))
        return json_is_true(value) ? msgpack_pack_true(&to->packer)
                                   : msgpack_pack_false(&to->packer);
    return msgpack_pack_nil(&to->packer);
}

int schema_encode(const void *spec, size_t spec_length, const json_t *config, char **ret_bytes,
                  size_t *ret_length, struct err *err)
{
    struct arena arena = {0};
    struct filling filling = {.reading = reading_begin(&arena, err)};
    json_t *nothing = json_object();
    const ProtobufCBinaryData bytes = {spec_length, (uint8_t *)(uintptr_t)spec};
    json_t *value = fill_block(&filling, bytes, config == NULL ? nothing : config);
    int code = filling.reading.code;

    if (code == 0) {
        msgpack_sbuffer buffer;
        struct writing to;

        msgpack_sbuffer_init(&buffer);
        msgpack_packer_init(&to.packer, &buffer, msgpack_sbuffer_write);
        check(put_value(&to, value) == 0); /* it fails for want of memory alone */
        if (buffer.size > SCHEMA_CONFIG_BYTES_MAX)
            code = err_set(err, ERR_LIMIT, "configuration: it is longer than %d bytes",
                           SCHEMA_CONFIG_BYTES_MAX);
        *ret_length = buffer.size;
        *ret_bytes = msgpack_sbuffer_release(&buffer);
        if (code != 0)
            free(*ret_bytes);
    }
    json_decref(value);
    json_decref(nothing);
    arena_free(&arena);
    return code;
}
