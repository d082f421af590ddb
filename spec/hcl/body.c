/*
 * Bodies: dynamic blocks expanded, and bodies of unknown shape as values.  Follows nomad v1.1.2
 * jobspec2/hclutil/blockattrs.go and hashicorp/hcl's ext/dynblock.
 */
#include "spec/hcl/number.h"

#include <stdlib.h>

/* --- dynamic blocks --- */

struct dynamic {
    const struct hcl_block *block, *content;
    const struct hcl_attribute *labels;
    const char *iterator;
};

static int read_dynamic(struct hcl_context *context, const struct hcl_block *block,
                        struct dynamic *ret_dynamic, struct hcl_error *error)
{
    struct dynamic dynamic = {.block = block, .labels = hcl_find(&block->body, "labels")};
    const struct hcl_attribute *iterator = hcl_find(&block->body, "iterator");

    if (block->labels_count != 1 || hcl_find(&block->body, "for_each") == NULL ||
        block->body.blocks_count != 1 || !text_equal(block->body.blocks[0].type, "content"))
        return hcl_complain(context->file, block->place,
                            "write dynamic \"type\" { for_each = ...  content { ... } }", error,
                            "a dynamic block needs one label, for_each and content");
    dynamic.content = &block->body.blocks[0];
    dynamic.iterator = block->labels[0];
    if (iterator != NULL) {
        if (iterator->value->kind != NODE_VARIABLE || iterator->value->variable.steps != NULL)
            return hcl_complain(context->file, iterator->place, NULL, error,
                                "iterator must be a plain name");
        dynamic.iterator = iterator->value->variable.name;
    }
    *ret_dynamic = dynamic;
    return 0;
}

typedef int block_cb(void *ctx, const struct hcl_block *block, const struct hcl_scope *scope,
                     struct hcl_error *error);

/* One block made from the content of DYNAMIC; its labels live for the call. */
static int expand_one(struct hcl_context *context, const struct hcl_scope *scope,
                      const struct dynamic *dynamic, block_cb *cb, void *ctx,
                      struct hcl_error *error)
{
    const char *labels[8];
    json_t *texts[COUNT_OF(labels)] = {0};
    struct hcl_block block = {.type = dynamic->block->labels[0],
                              .labels = labels,
                              .body = dynamic->content->body,
                              .place = dynamic->block->place};
    json_t *names = NULL, *name;
    size_t i;
    int code = 0;

    if (dynamic->labels != NULL)
        code = hcl_evaluate(context, scope, dynamic->labels->value, &names, error);
    if (code == 0 && names != NULL) {
        if (!json_is_array(names) || json_array_size(names) > COUNT_OF(labels))
            code = hcl_complain(context->file, dynamic->labels->place, NULL, error,
                                "labels must be a list of at most %zu strings", COUNT_OF(labels));
        else
            json_array_foreach(names, i, name)
            {
                texts[i] = hcl_convert(name, HCL_STRING);
                if (texts[i] == NULL)
                    code = hcl_complain(context->file, dynamic->labels->place, NULL, error,
                                        "labels must be a list of strings");
                labels[block.labels_count++] = json_string_value(texts[i]);
            }
    }
    if (code == 0)
        code = cb(ctx, &block, scope, error);
    for (i = 0; i < COUNT_OF(texts); i++)
        json_decref(texts[i]);
    json_decref(names);
    return code;
}

static int expand(struct hcl_context *context, const struct hcl_scope *scope,
                  const struct hcl_block *block, block_cb *cb, void *ctx, struct hcl_error *error)
{
    struct dynamic dynamic = {0};
    json_t *collection;
    int code = read_dynamic(context, block, &dynamic, error);

    if (code != 0)
        return code;
    const struct hcl_expression *each = hcl_find(&block->body, "for_each")->value;
    code = hcl_evaluate(context, scope, each, &collection, error);
    if (code != 0)
        return code;
    bool object = hcl_is_object(collection);
    if (!object && !json_is_array(collection))
        code = hcl_complain(context->file, each->place, NULL, error,
                            "for_each needs a list or an object, but this is %s",
                            hcl_type_text(collection));
    size_t count = object ? 0 : json_array_size(collection);
    const char **keys = object ? hcl_sorted_keys(collection, &count) : NULL;
    for (size_t i = 0; i < count && code == 0; i++) {
        json_t *item =
            object ? json_object_get(collection, keys[i]) : json_array_get(collection, i);
        json_t *pair = json_object();

        check(json_object_set_new(
                  pair, "key", object ? json_string(keys[i]) : json_integer((json_int_t)i)) == 0);
        check(json_object_set(pair, "value", item) == 0);
        struct hcl_scope inner = {.outer = scope, .name = dynamic.iterator, .value = pair};
        code = hcl_charge(context, block->place, 1, error);
        if (code == 0)
            code = expand_one(context, &inner, &dynamic, cb, ctx, error);
        json_decref(pair);
    }
    free(keys);
    json_decref(collection);
    return code;
}

int hcl_each_block(struct hcl_context *context, const struct hcl_scope *scope,
                   const struct hcl_body *body, block_cb *cb, void *ctx, struct hcl_error *error)
{
    for (size_t i = 0; i < body->blocks_count; i++) {
        const struct hcl_block *block = &body->blocks[i];
        int code = text_equal(block->type, "dynamic") && !context->options->literal
                       ? expand(context, scope, block, cb, ctx, error)
                       : cb(ctx, block, scope, error);

        if (code != 0)
            return code;
    }
    return 0;
}

/* --- bodies as values --- */

struct body_value {
    struct hcl_context *context;
    json_t *object;
};

static int add_block_value(void *ctx, const struct hcl_block *block, const struct hcl_scope *scope,
                           struct hcl_error *error)
{
    struct body_value *into = ctx;
    json_t *list = json_object_get(into->object, block->type), *value;

    if (list != NULL && !json_is_array(list))
        return hcl_complain(into->context->file, block->place, NULL, error,
                            "\"%.60s\" is given as an argument and as a block", block->type);
    int code = hcl_charge(into->context, block->place, 1, error);
    if (code == 0)
        code = hcl_body_value(into->context, scope, &block->body, &value, error);
    if (code != 0)
        return code;
    for (size_t i = block->labels_count; i > 0; i--) {
        json_t *labelled = json_object(), *wrapped = json_array();

        check(json_array_append_new(wrapped, value) == 0);
        check(json_object_set_new(labelled, block->labels[i - 1], wrapped) == 0);
        value = labelled;
    }
    if (list == NULL) {
        list = json_array();
        check(json_object_set_new(into->object, block->type, list) == 0);
    }
    check(json_array_append_new(list, value) == 0);
    return 0;
}

int hcl_body_value(struct hcl_context *context, const struct hcl_scope *scope,
                   const struct hcl_body *body, json_t **ret_value, struct hcl_error *error)
{
    struct body_value into = {.context = context, .object = json_object()};
    int code = hcl_each_block(context, scope, body, add_block_value, &into, error);

    for (size_t i = 0; i < body->attributes_count && code == 0; i++) {
        const struct hcl_attribute *attribute = &body->attributes[i];
        json_t *value;

        if (json_object_get(into.object, attribute->name) != NULL) {
            code =
                hcl_complain(context->file, attribute->place, NULL, error,
                             "\"%.60s\" is given as an argument and as a block", attribute->name);
            break;
        }
        code = hcl_evaluate(context, scope, attribute->value, &value, error);
        if (code != 0)
            break;
        if (json_is_null(value)) { /* as if it were not there */
            json_decref(value);
            continue;
        }
        if (attribute->value->kind == NODE_OBJECT && !attribute->value->flag) {
            json_t *wrapped = json_array();

            check(json_array_append_new(wrapped, value) == 0);
            value = wrapped;
        }
        check(json_object_set_new(into.object, attribute->name, value) == 0);
    }
    if (code == 0)
        *ret_value = into.object;
    else
        json_decref(into.object);
    return code;
}
