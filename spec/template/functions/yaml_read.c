/*
 * parseYAML: libyaml reads the text, and what it means is as gopkg.in/yaml.v2 has it (v2.4.0
 * decode.go): of several documents the first counts.  Keys are texts here, and others refused.
 *
 * What the text says by reference (*name) is there as often as it is said: each time is paid for.
 */
#include "spec/template/functions/yaml.h"

#include "base/list.h"

#include <nettle/base64.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#define TAG "tag:yaml.org,2002:"

enum { ANCHORS_MAX = 1000, BYTES_A_STEP = 16 };

struct anchor {
    char *name;
    json_t *value; /* NULL: it is still read */
};

struct anchors {
    struct anchor *items;
    size_t count, size;
};

struct decoding {
    const struct call *call;
    yaml_parser_t parser;
    struct anchors anchors;
};

static json_t *refuse(const struct decoding *decoding, const yaml_event_t *event, const char *why)
{
    return template_fail(decoding->call->evaluating, ERR_INVALID, "%s: %s at line %zu",
                         decoding->call->name, why, event->start_mark.line + 1);
}

/* False with the error told. */
static bool next(struct decoding *decoding, yaml_event_t *ret_event)
{
    const yaml_parser_t *parser = &decoding->parser;

    if (yaml_parser_parse(&decoding->parser, ret_event))
        return true;
    (void)template_fail(decoding->call->evaluating, ERR_INVALID, "%s: %s at line %zu", /* NULL */
                        decoding->call->name,
                        parser->problem == NULL ? "it makes no sense" : parser->problem,
                        parser->problem_mark.line + 1);
    return false;
}

/* --- anchors --- */

static struct anchor *find_anchor(struct decoding *decoding, const char *name)
{
    struct anchors *anchors = &decoding->anchors;

    for (size_t i = anchors->count; i > 0; i--) {
        if (text_equal(anchors->items[i - 1].name, name))
            return &anchors->items[i - 1];
    }
    return NULL;
}

/* Where the value that EVENT begins has its name, SIZE_MAX: it has none, or an error is told. */
static size_t begin_anchor(struct decoding *decoding, const yaml_event_t *event,
                           const yaml_char_t *name)
{
    if (name == NULL)
        return SIZE_MAX;
    if (decoding->anchors.count == ANCHORS_MAX) {
        (void)refuse(decoding, event, "too many anchors"); /* NULL */
        return SIZE_MAX;
    }
    struct anchor *anchor = list_more(&decoding->anchors);
    *anchor = (struct anchor){.name = strdup((const char *)name)};
    check(anchor->name != NULL);
    return decoding->anchors.count - 1;
}

/* A value as often as it is said costs as often. */
static void charge_again(const struct decoding *decoding, const json_t *value)
{
    const char *key;
    json_t *item;
    size_t i;

    if (!template_charge(decoding->call->evaluating, 1 + json_string_length(value) / BYTES_A_STEP))
        return;
    json_object_foreach((json_t *)value, key, item)
    {
        if (template_charge(decoding->call->evaluating, strlen(key) / BYTES_A_STEP))
            charge_again(decoding, item);
    }
    json_array_foreach(value, i, item) charge_again(decoding, item);
}

static json_t *decode_alias(struct decoding *decoding, const yaml_event_t *event)
{
    const struct anchor *anchor = find_anchor(decoding, (const char *)event->data.alias.anchor);

    if (anchor == NULL)
        return refuse(decoding, event, "an unknown anchor is referenced");
    if (anchor->value == NULL)
        return refuse(decoding, event, "the value of an anchor contains itself");
    charge_again(decoding, anchor->value);
    if (decoding->call->evaluating->code != 0)
        return NULL;
    json_t *value = json_deep_copy(anchor->value);
    check(value != NULL);
    return value;
}

/* --- scalars --- */

static json_t *decode_binary(const struct decoding *decoding, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    size_t length = event->data.scalar.length, written = BASE64_DECODE_LENGTH(length);
    uint8_t *bytes = malloc(written + 1);
    struct base64_decode_ctx context;

    check(bytes != NULL);
    base64_decode_init(&context);
    bool good = strpbrk(text, " \t\v\f") == NULL &&
                base64_decode_update(&context, &written, bytes, length, text) == 1 &&
                base64_decode_final(&context) == 1;
    json_t *value = good ? call_give(decoding->call, (const char *)bytes, written)
                         : refuse(decoding, event, "!!binary that is no base64");
    free(bytes);
    return value;
}

/* What a tag asks for; a whole number is a real one, too. */
static bool fits(const char *tag, enum yaml_meaning meaning, json_t **value)
{
    static const struct {
        const char *tag;
        enum yaml_meaning meaning;
    } tags[] = {{TAG "null", YAML_IS_NULL},
                {TAG "bool", YAML_IS_BOOL},
                {TAG "int", YAML_IS_WHOLE},
                {TAG "float", YAML_IS_REAL},
                {TAG "timestamp", YAML_IS_TIME}};

    for (size_t i = 0; i < COUNT_OF(tags); i++) {
        if (!text_equal(tags[i].tag, tag))
            continue;
        if (tags[i].meaning != YAML_IS_REAL || meaning != YAML_IS_WHOLE)
            return tags[i].meaning == meaning;
        double number = json_number_value(*value);
        json_decref(*value);
        *value = json_real(number);
        break;
    }
    return true;
}

/* A tag of YAML's own that asks for what words mean; those of others mean text. */
static bool is_resolved(const char *tag)
{
    static const char *const tags[] = {TAG "bool", TAG "int", TAG "float", TAG "null",
                                       TAG "timestamp"};

    for (size_t i = 0; i < COUNT_OF(tags); i++) {
        if (text_equal(tag, tags[i]))
            return true;
    }
    return false;
}

static json_t *decode_scalar(const struct decoding *decoding, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    const char *tag = (const char *)event->data.scalar.tag;
    size_t length = event->data.scalar.length;
    enum yaml_meaning meaning = YAML_IS_TEXT;
    json_t *value = NULL;

    if (text_equal(tag == NULL ? "" : tag, TAG "binary"))
        return decode_binary(decoding, event);
    if (tag == NULL ? event->data.scalar.plain_implicit != 0 : is_resolved(tag))
        meaning = strlen(text) == length ? yaml_resolve(text, &value) : YAML_IS_TEXT;
    if (meaning == YAML_IS_STRANGE)
        return refuse(decoding, event, "a number that is too large, or not finite");
    if (tag != NULL && is_resolved(tag) && !fits(tag, meaning, &value)) {
        json_decref(value);
        return refuse(decoding, event, "a value that is not what its tag says");
    }
    return value != NULL ? value : call_give(decoding->call, text, length);
}

/* --- collections --- */

static json_t *decode(struct decoding *decoding, const yaml_event_t *event, int depth);

/* The next value; NULL: the error is told, or the collection ends, which *RET_END says. */
static json_t *decode_next(struct decoding *decoding, int depth, bool *ret_end)
{
    yaml_event_t event;
    json_t *value = NULL;

    if (!next(decoding, &event))
        return NULL;
    *ret_end = event.type == YAML_SEQUENCE_END_EVENT || event.type == YAML_MAPPING_END_EVENT;
    if (!*ret_end)
        value = decode(decoding, &event, depth);
    yaml_event_delete(&event);
    return value;
}

static json_t *decode_sequence(struct decoding *decoding, int depth)
{
    json_t *array = json_array(), *item;
    bool end = false;

    while ((item = decode_next(decoding, depth + 1, &end)) != NULL)
        check(json_array_append_new(array, item) == 0);
    if (end)
        return array;
    json_decref(array);
    return NULL;
}

/* What is merged, a map or several of which the first count most, comes into MAP. */
static bool merge(struct decoding *decoding, const yaml_event_t *key, json_t *map, int depth)
{
    bool end = false;
    json_t *value = decode_next(decoding, depth, &end);
    bool good = json_is_object(value) || json_is_array(value);

    if (json_is_object(value))
        check(json_object_update(map, value) == 0);
    for (size_t i = json_array_size(value); i > 0 && good; i--) {
        good = json_is_object(json_array_get(value, i - 1));
        if (good)
            check(json_object_update(map, json_array_get(value, i - 1)) == 0);
    }
    if (value != NULL && !good)
        (void)refuse(decoding, key, "something is merged that is no map"); /* NULL */
    json_decref(value);
    return good;
}

static bool is_merge(const yaml_event_t *key)
{
    const char *tag = (const char *)key->data.scalar.tag;

    return key->type == YAML_SCALAR_EVENT &&
           text_equal((const char *)key->data.scalar.value, "<<") &&
           (key->data.scalar.plain_implicit != 0 || (tag != NULL && text_equal(tag, TAG "merge")));
}

static bool decode_member(struct decoding *decoding, const yaml_event_t *event, json_t *map,
                          int depth)
{
    bool end = false;

    if (is_merge(event))
        return merge(decoding, event, map, depth);
    json_t *key = decode(decoding, event, depth), *value = NULL;
    if (key != NULL && !json_is_string(key))
        (void)refuse(decoding, event, "a key that is no text (put it in quotes)"); /* NULL */
    else if (key != NULL)
        value = decode_next(decoding, depth, &end);
    if (value != NULL)
        check(json_object_set(map, json_string_value(key), value) == 0);
    json_decref(key);
    json_decref(value);
    return value != NULL;
}

static json_t *decode_mapping(struct decoding *decoding, int depth)
{
    json_t *map = json_object();
    bool good = true, end = false;
    yaml_event_t event;

    while (good && !end) {
        good = next(decoding, &event);
        if (!good)
            break;
        end = event.type == YAML_MAPPING_END_EVENT;
        good = end || decode_member(decoding, &event, map, depth + 1);
        yaml_event_delete(&event);
    }
    if (good)
        return map;
    json_decref(map);
    return NULL;
}

/* NULL with the error told. */
static json_t *decode(struct decoding *decoding, const yaml_event_t *event, int depth)
{
    const yaml_char_t *name = NULL;
    json_t *value;

    if (depth >= VALUE_DEEP)
        return refuse(decoding, event, "it is nested too deep");
    if (!template_charge(decoding->call->evaluating, 1))
        return NULL;
    if (event->type == YAML_ALIAS_EVENT)
        return decode_alias(decoding, event);
    if (event->type == YAML_SCALAR_EVENT)
        name = event->data.scalar.anchor;
    else if (event->type == YAML_SEQUENCE_START_EVENT)
        name = event->data.sequence_start.anchor;
    else if (event->type == YAML_MAPPING_START_EVENT)
        name = event->data.mapping_start.anchor;
    size_t at = begin_anchor(decoding, event, name);
    if (event->type == YAML_SCALAR_EVENT)
        value = decode_scalar(decoding, event);
    else if (event->type == YAML_SEQUENCE_START_EVENT)
        value = decode_sequence(decoding, depth);
    else
        value = decode_mapping(decoding, depth);
    if (at != SIZE_MAX)
        decoding->anchors.items[at].value = json_incref(value);
    return value;
}

/* --- the whole --- */

/* The first document, all of which must make sense, and which may be nothing. */
static json_t *decode_first(struct decoding *decoding)
{
    yaml_event_t event;
    json_t *value = NULL;

    for (bool found = false; !found && next(decoding, &event); yaml_event_delete(&event)) {
        found = event.type != YAML_STREAM_START_EVENT && event.type != YAML_DOCUMENT_START_EVENT;
        if (event.type == YAML_STREAM_END_EVENT)
            value = json_null();
        else if (found)
            value = decode(decoding, &event, 0);
    }
    if (value != NULL && next(decoding, &event))
        yaml_event_delete(&event); /* it ends there */
    return value;
}

static json_t *run_parse_yaml(const struct call *call)
{
    const char *text = call_text(call, 0);
    struct decoding decoding = {.call = call};

    if (!template_charge(call->evaluating, strlen(text) / BYTES_A_STEP))
        return NULL;
    if (*text == '\0')
        return json_object();
    check(yaml_parser_initialize(&decoding.parser) != 0); /* or there is no memory */
    yaml_parser_set_encoding(&decoding.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&decoding.parser, (const unsigned char *)text, strlen(text));
    json_t *value = decode_first(&decoding);
    yaml_parser_delete(&decoding.parser);
    for (size_t i = 0; i < decoding.anchors.count; i++) {
        free(decoding.anchors.items[i].name);
        json_decref(decoding.anchors.items[i].value);
    }
    free(decoding.anchors.items);
    if (value == NULL || call->evaluating->code == 0)
        return value;
    json_decref(value);
    return NULL;
}

const struct function template_yaml_functions[] = {
    {"parseYAML", 1, 1, run_parse_yaml},
    {"toYAML", 1, 1, yaml_write},
    {NULL, 0, 0, NULL},
};
