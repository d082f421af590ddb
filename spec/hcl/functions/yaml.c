/*
 * yamldecode(): libyaml reads the text, and what its plain words mean is as in Nomad, which takes
 * it from go-cty-yaml (v1.2.0 resolve.go, converter.go): YAML 1.1 with the numbers of 1.2.
 *
 * What the text says by reference (*name) is there as often as it is said: all of it is charged for
 * before it is made.
 */
#include "spec/hcl/number.h"

#include "base/list.h"
#include "spec/decimal.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <yaml.h>

#define TAG "tag:yaml.org,2002:"

/* Where scalars begin that say that they are text: libyaml's documents call all so that say nothing
 * of themselves. */
struct marked {
    size_t *items;
    size_t count, size;
};

struct decoding {
    const struct hcl_call *call;
    yaml_document_t *document;
    struct marked marked; /* in their order */
};

static json_t *decode(const struct decoding *decoding, int index, int depth);

static json_t *fail(const struct decoding *decoding, const yaml_node_t *node, const char *what)
{
    return hcl_call_failed(decoding->call, "cannot read this YAML: %s at line %zu", what,
                           node->start_mark.line + 1);
}

/* --- plain words --- */

struct word {
    const char *text;
    char meaning; /* t, f, n: null, i: not finite */
};

static const struct word words[] = {
    {"y", 't'},     {"Y", 't'},     {"yes", 't'},   {"Yes", 't'},   {"YES", 't'},   {"true", 't'},
    {"True", 't'},  {"TRUE", 't'},  {"on", 't'},    {"On", 't'},    {"ON", 't'},    {"n", 'f'},
    {"N", 'f'},     {"no", 'f'},    {"No", 'f'},    {"NO", 'f'},    {"false", 'f'}, {"False", 'f'},
    {"FALSE", 'f'}, {"off", 'f'},   {"Off", 'f'},   {"OFF", 'f'},   {"", 'n'},      {"~", 'n'},
    {"null", 'n'},  {"Null", 'n'},  {"NULL", 'n'},  {".inf", 'i'},  {".Inf", 'i'},  {".INF", 'i'},
    {"+.inf", 'i'}, {"+.Inf", 'i'}, {"+.INF", 'i'}, {"-.inf", 'i'}, {"-.Inf", 'i'}, {"-.INF", 'i'},
    {".nan", 'i'},  {".NaN", 'i'},  {".NAN", 'i'},
};

/* 0: TEXT is none of them. */
static char meaning_of(const char *text)
{
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        if (text_equal(words[i].text, text))
            return words[i].meaning;
    }
    return '\0';
}

/* NULL: it is no number, or too large a one. */
static json_t *number_of(const char *text)
{
    char plain[512];

    if (text_starts_with(text, "0o") && text[2] != '\0')
        return hcl_number_from_base(text + 2, 8);
    if (text_starts_with(text, "0x") && text[2] != '\0')
        return hcl_number_from_base(text + 2, 16);
    if (!decimal_is(text) || !text_copy(plain, sizeof(plain), text + (*text == '+')))
        return NULL;
    char *point = strchr(plain, '.');
    if (point != NULL && (point[1] < '0' || point[1] > '9'))
        memmove(point, point + 1, strlen(point)); /* 5. is 5 */
    return hcl_number_parse(plain);
}

/* A day, or a day and a time with a Z or without anything: as Go prints it by RFC 3339, which is
 * without fractions. */
static json_t *time_of(const char *text)
{
    static const char *const forms[] = {"%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%SZ",
                                        "%Y-%m-%dt%H:%M:%SZ"};
    char shown[64], whole[64];
    size_t seconds = strcspn(text, ".");

    if (strspn(text, "0123456789") != 4 || !text_copy(whole, sizeof(whole), text))
        return NULL;
    if (whole[seconds] == '.') {
        size_t digits = strspn(whole + seconds + 1, "0123456789");
        memmove(whole + seconds, text + seconds + 1 + digits, strlen(text) - seconds - digits);
    }
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        struct tm parts = {.tm_mday = 1}, normal;
        const char *end = strptime(whole, forms[i], &parts);

        if (end == NULL || *end != '\0')
            continue;
        normal = parts;
        if (timegm(&normal) == -1 || normal.tm_mday != parts.tm_mday)
            return NULL; /* there is no such day */
        check(strftime(shown, sizeof(shown), "%Y-%m-%dT%H:%M:%SZ", &parts) > 0);
        return json_string(shown);
    }
    return NULL;
}

static json_t *decode_plain(const struct decoding *decoding, const yaml_node_t *node,
                            const char *text, size_t length)
{
    json_t *value = NULL;

    switch (strlen(text) == length ? meaning_of(text) : '\0') {
    case 't':
        return json_true();
    case 'f':
        return json_false();
    case 'n':
        return json_null();
    case 'i':
        return fail(decoding, node, "a number that is not finite");
    default:
        break;
    }
    if (strlen(text) == length)
        value = time_of(text);
    if (value == NULL && strlen(text) == length)
        value = number_of(text);
    return value != NULL ? value : hcl_text(text, length);
}

static int compare_places(const void *a, const void *b)
{
    const size_t *left = a, *right = b;

    return (*left > *right) - (*left < *right);
}

static bool is_marked(const struct decoding *decoding, const yaml_node_t *node)
{
    size_t at = node->start_mark.index;

    return decoding->marked.count > 0 &&
           bsearch(&at, decoding->marked.items, decoding->marked.count, sizeof(at),
                   compare_places) != NULL;
}

static json_t *decode_scalar(const struct decoding *decoding, const yaml_node_t *node)
{
    static const char *const tags[] = {TAG "str",  TAG "binary", TAG "bool",     TAG "int",
                                       TAG "null", TAG "float",  TAG "timestamp"};
    const char *text = (const char *)node->data.scalar.value, *tag = (const char *)node->tag;
    size_t length = node->data.scalar.length, known = 0;

    while (known < COUNT_OF(tags) && !text_equal(tag, tags[known]))
        known++;
    if (known == COUNT_OF(tags))
        return fail(decoding, node, "a tag that is not supported");
    if (text_equal(tag, TAG "null"))
        return json_null();
    if (node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && !text_equal(tag, TAG "binary") &&
        !is_marked(decoding, node))
        return decode_plain(decoding, node, text, length);
    json_t *value = hcl_text(text, length);
    return value != NULL ? value : fail(decoding, node, "text that cannot be shown");
}

/* --- collections --- */

static json_t *decode_sequence(const struct decoding *decoding, const yaml_node_t *node, int depth)
{
    json_t *array = json_array();

    for (yaml_node_item_t *item = node->data.sequence.items.start;
         array != NULL && item < node->data.sequence.items.top; item++) {
        if (json_array_append_new(array, decode(decoding, *item, depth + 1)) == 0)
            continue;
        json_decref(array); /* and the error is said */
        array = NULL;
    }
    return array;
}

/* Also in quotes, as there. */
static bool is_merge(const yaml_node_t *key)
{
    return key->type == YAML_SCALAR_NODE && text_equal((const char *)key->data.scalar.value, "<<");
}

/* What is merged, an object or several, comes into OBJECT. */
static bool merge(const struct decoding *decoding, const yaml_node_t *key, int index, int depth,
                  json_t *object)
{
    json_t *value = decode(decoding, index, depth), *item;
    bool good = hcl_is_object(value) && json_object_update(object, value) == 0;
    size_t i;

    if (json_is_array(value)) {
        good = true;
        json_array_foreach(value, i, item) good =
            good && hcl_is_object(item) && json_object_update(object, item) == 0;
    }
    if (value != NULL && !good)
        (void)fail(decoding, key, "something is merged that is no mapping"); /* NULL */
    json_decref(value);
    return good;
}

static bool set_member(const struct decoding *decoding, const yaml_node_pair_t *pair, int depth,
                       json_t *object)
{
    const yaml_node_t *node = yaml_document_get_node(decoding->document, pair->key);

    if (is_merge(node))
        return merge(decoding, node, pair->value, depth, object);
    json_t *key = decode(decoding, pair->key, depth), *name = NULL;
    if (json_is_string(key))
        name = json_incref(key);
    else if (json_is_boolean(key))
        name = json_string(json_is_true(key) ? "true" : "false");
    else if (key != NULL && hcl_is_number(key))
        name = hcl_number_text(key);
    if (key != NULL && name == NULL)
        (void)fail(decoding, node, "a key that is no text"); /* NULL */
    json_t *value = name == NULL ? NULL : decode(decoding, pair->value, depth);
    bool good = value != NULL && json_object_setn(object, json_string_value(name),
                                                  json_string_length(name), value) == 0;
    json_decref(value);
    json_decref(name);
    json_decref(key);
    return good;
}

static json_t *decode_mapping(const struct decoding *decoding, const yaml_node_t *node, int depth)
{
    json_t *object = json_object();

    for (yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         object != NULL && pair < node->data.mapping.pairs.top; pair++) {
        if (set_member(decoding, pair, depth + 1, object))
            continue;
        json_decref(object); /* and the error is said */
        object = NULL;
    }
    return object;
}

/* NULL with the error said.  Each step is paid for, and one that leads into itself ends with the
 * depth. */
static json_t *decode(const struct decoding *decoding, int index, int depth)
{
    const yaml_node_t *node = yaml_document_get_node(decoding->document, index);
    const struct hcl_call *call = decoding->call;
    size_t bytes = node->type == YAML_SCALAR_NODE ? node->data.scalar.length : 0;

    if (depth > HCL_NESTING_MAX)
        return fail(decoding, node, "it is nested too deep, or in itself,");
    if (hcl_charge(call->context, call->place, 1 + bytes / HCL_BYTES_A_UNIT, call->error) != 0)
        return NULL;
    switch (node->type) {
    case YAML_SCALAR_NODE:
        return decode_scalar(decoding, node);
    case YAML_SEQUENCE_NODE:
        return text_equal((const char *)node->tag, TAG "seq")
                   ? decode_sequence(decoding, node, depth)
                   : fail(decoding, node, "a tag that is not supported");
    case YAML_MAPPING_NODE:
        return text_equal((const char *)node->tag, TAG "map")
                   ? decode_mapping(decoding, node, depth)
                   : fail(decoding, node, "a tag that is not supported");
    case YAML_NO_NODE:
        break;
    }
    unreachable("a node of a document is one of these");
}

/* --- the whole --- */

static void begin(yaml_parser_t *parser, const json_t *text)
{
    check(yaml_parser_initialize(parser) != 0); /* or there is no memory */
    yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(parser, (const unsigned char *)json_string_value(text),
                                 json_string_length(text));
}

/* As far as the text makes sense. */
static void find_marked(const json_t *text, struct marked *marked)
{
    yaml_parser_t parser;
    yaml_event_t event;
    bool ends = false;

    begin(&parser, text);
    while (!ends && yaml_parser_parse(&parser, &event)) {
        ends = event.type == YAML_STREAM_END_EVENT;
        if (event.type == YAML_SCALAR_EVENT && event.data.scalar.tag != NULL &&
            text_equal((const char *)event.data.scalar.tag, TAG "str"))
            *list_more(marked) = event.start_mark.index;
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
}

/* The next document; false with the error said. */
static bool load(const struct hcl_call *call, yaml_parser_t *parser, yaml_document_t *ret_document)
{
    if (yaml_parser_load(parser, ret_document))
        return true;
    (void)hcl_call_failed(call, "cannot read this YAML: %s at line %zu", /* NULL */
                          parser->problem == NULL ? "it makes no sense" : parser->problem,
                          parser->problem_mark.line + 1);
    return false;
}

static json_t *decode_only(const struct hcl_call *call, yaml_parser_t *parser, const json_t *text)
{
    yaml_document_t document, next;
    struct decoding decoding = {.call = call, .document = &document};
    json_t *value = NULL;

    if (!load(call, parser, &document))
        return NULL;
    if (yaml_document_get_root_node(&document) == NULL) {
        (void)hcl_call_failed(call, "cannot read this YAML: there is nothing in it"); /* NULL */
    } else if (load(call, parser, &next)) {
        find_marked(text, &decoding.marked);
        if (yaml_document_get_root_node(&next) == NULL)
            value = decode(&decoding, 1, 1);
        else
            (void)hcl_call_failed(call, "cannot read this YAML: it is more than one document");
        free(decoding.marked.items);
        yaml_document_delete(&next);
    }
    yaml_document_delete(&document);
    return value;
}

static json_t *run_yamldecode(const struct hcl_call *call)
{
    yaml_parser_t parser;
    json_t *keep;

    if (!hcl_argument_text(call, 0, &keep))
        return NULL;
    begin(&parser, keep);
    json_t *value = decode_only(call, &parser, keep);
    yaml_parser_delete(&parser);
    json_decref(keep);
    return value;
}

const struct hcl_function_row hcl_yaml_functions[] = {
    {"yamldecode", 1, 1, run_yamldecode},
    {NULL, 0, 0, NULL},
};
