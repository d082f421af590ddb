/*
 * Expressions to values.
 *
 * Every step is paid for (budget.c).  Recursion is bounded by EVALUATE_DEPTH_MAX whatever shape the
 * tree has; a chain of operators is as deep as it is long.
 *
 * The branch of a conditional that is not taken is evaluated for its type alone.
 */
#include "spec/hcl/number.h"

#include <stdlib.h>
#include <string.h>

enum { EVALUATE_DEPTH_MAX = 512 };

int hcl_evaluate_as(struct hcl_context *context, const struct hcl_scope *scope,
                    const struct hcl_expression *expression, enum hcl_type type, const char *what,
                    json_t **ret_value, struct hcl_error *error)
{
    static const char *const names[] = {
        [HCL_STRING] = "a string", [HCL_NUMBER] = "a number", [HCL_BOOL] = "a bool"};
    json_t *value, *converted;
    int code = hcl_evaluate(context, scope, expression, &value, error);

    if (code != 0)
        return code;
    converted = hcl_convert(value, type);
    if (converted == NULL)
        code =
            hcl_complain(context->file, expression->place, NULL, error,
                         "%s must be %s, but this is %s", what, names[type], hcl_type_text(value));
    else
        *ret_value = converted;
    json_decref(value);
    return code;
}

int hcl_evaluate_bool(struct hcl_context *context, const struct hcl_scope *scope,
                      const struct hcl_expression *expression, const char *what, bool *ret_true,
                      struct hcl_error *error)
{
    json_t *value;
    int code = hcl_evaluate_as(context, scope, expression, HCL_BOOL, what, &value, error);

    if (code == 0) {
        *ret_true = json_is_true(value);
        json_decref(value);
    }
    return code;
}

static int evaluate_splat(struct hcl_context *context, const struct hcl_scope *scope,
                          const struct hcl_expression *expression, json_t **ret_value,
                          struct hcl_error *error)
{
    json_t *value, *items, *item, *result;
    size_t i;
    int code = hcl_evaluate(context, scope, expression->access.operand, &value, error);

    if (code != 0)
        return code;
    if (json_is_array(value))
        items = json_incref(value);
    else {
        items = json_array(); /* null is no element, anything else one */
        if (!json_is_null(value))
            check(json_array_append(items, value) == 0);
    }
    result = json_array();
    json_array_foreach(items, i, item)
    {
        struct hcl_scope inner = {.outer = scope, .name = "*", .value = item};
        json_t *element;

        code = hcl_evaluate(context, &inner, expression->access.key, &element, error);
        if (code != 0)
            break;
        check(json_array_append_new(result, element) == 0);
    }
    if (code == 0)
        code = hcl_charge_value(context, expression->place, result, error);
    if (code == 0)
        *ret_value = result;
    else
        json_decref(result);
    json_decref(items);
    json_decref(value);
    return code;
}

/* --- collections, templates --- */

static int evaluate_template(struct hcl_context *context, const struct hcl_scope *scope,
                             const struct hcl_expression *expression, json_t **ret_value,
                             struct hcl_error *error)
{
    struct hcl_buffer buffer = {0};
    int code = 0;

    for (const struct hcl_expression *part = expression->parts.first; part != NULL && code == 0;
         part = part->next) {
        json_t *text;

        code = hcl_evaluate_as(context, scope, part, HCL_STRING, "what is put into text", &text,
                               error);
        if (code != 0)
            break;
        size_t length = json_string_length(text);
        code = hcl_charge(context, part->place, 1 + length / HCL_BYTES_A_UNIT, error);
        if (code == 0)
            hcl_buffer_add(&buffer, json_string_value(text), length);
        json_decref(text);
    }
    if (code == 0 && buffer.full)
        code = hcl_charge(context, expression->place, UINT64_MAX, error);
    if (code != 0) {
        hcl_buffer_free(&buffer);
        return code;
    }
    *ret_value = hcl_buffer_take(&buffer);
    check(*ret_value != NULL);
    return 0;
}

static int evaluate_list(struct hcl_context *context, const struct hcl_scope *scope,
                         const struct hcl_expression *expression, json_t **ret_value,
                         struct hcl_error *error)
{
    json_t *list = json_array(), *item;
    int code = 0;

    for (const struct hcl_expression *part = expression->parts.first; part != NULL && code == 0;
         part = part->next) {
        code = hcl_evaluate(context, scope, part, &item, error);
        if (code == 0)
            check(json_array_append_new(list, item) == 0);
    }
    if (code == 0)
        code = hcl_charge_value(context, expression->place, list, error);
    if (code == 0)
        *ret_value = list;
    else
        json_decref(list);
    return code;
}

static int evaluate_object(struct hcl_context *context, const struct hcl_scope *scope,
                           const struct hcl_expression *expression, json_t **ret_value,
                           struct hcl_error *error)
{
    json_t *object = json_object(), *key, *item;
    int code = 0;

    for (const struct hcl_expression *part = expression->parts.first; part != NULL && code == 0;
         part = part->next->next) {
        code = hcl_evaluate_as(context, scope, part, HCL_STRING, "the name of an attribute", &key,
                               error);
        if (code != 0)
            break;
        code = hcl_evaluate(context, scope, part->next, &item, error);
        if (code == 0)
            check(json_object_set_new(object, json_string_value(key), item) == 0);
        json_decref(key);
    }
    if (code == 0)
        code = hcl_charge_value(context, expression->place, object, error);
    if (code == 0)
        *ret_value = object;
    else
        json_decref(object);
    return code;
}

/* --- for --- */

/* What a for expression makes: one of the three. */
struct collected {
    json_t *list, *object;
    struct hcl_buffer text;
};

static int collect_pair(struct hcl_context *context, const struct hcl_scope *scope,
                        const struct hcl_expression *expression, struct collected *collected,
                        struct hcl_error *error)
{
    const struct hcl_for *loop = expression->loop;
    json_t *key, *value;
    int code = hcl_evaluate_as(context, scope, loop->key, HCL_STRING, "the key", &key, error);

    if (code != 0)
        return code;
    const char *name = json_string_value(key);
    json_t *present = json_object_get(collected->object, name);
    code = hcl_evaluate(context, scope, loop->value, &value, error);
    if (code == 0 && loop->grouped) {
        if (present == NULL) {
            present = json_array();
            check(json_object_set_new(collected->object, name, present) == 0);
        }
        check(json_array_append_new(present, value) == 0);
    } else if (code == 0 && present != NULL) {
        code = hcl_complain(context->file, loop->key->place,
                            "put ... after the value to group the values of one key", error,
                            "the key \"%.60s\" comes twice", name);
        json_decref(value);
    } else if (code == 0)
        check(json_object_set_new(collected->object, name, value) == 0);
    json_decref(key);
    return code;
}

static int collect_element(struct hcl_context *context, const struct hcl_scope *scope,
                           const struct hcl_expression *expression, struct collected *collected,
                           struct hcl_error *error)
{
    const struct hcl_for *loop = expression->loop;
    json_t *value;
    bool wanted = true;
    int code = 0;

    if (loop->condition != NULL)
        code = hcl_evaluate_bool(context, scope, loop->condition, "a condition", &wanted, error);
    if (code != 0 || !wanted)
        return code;
    if (loop->key != NULL)
        return collect_pair(context, scope, expression, collected, error);
    if (!loop->text) {
        code = hcl_evaluate(context, scope, loop->value, &value, error);
        if (code == 0)
            check(json_array_append_new(collected->list, value) == 0);
        return code;
    }
    code = hcl_evaluate_as(context, scope, loop->value, HCL_STRING, "what is put into text", &value,
                           error);
    if (code != 0)
        return code;
    size_t length = json_string_length(value);
    code = hcl_charge(context, expression->place, 1 + length / HCL_BYTES_A_UNIT, error);
    if (code == 0)
        hcl_buffer_add(&collected->text, json_string_value(value), length);
    json_decref(value);
    return code;
}

static int for_each(struct hcl_context *context, const struct hcl_scope *scope,
                    const struct hcl_expression *expression, json_t *collection,
                    struct collected *collected, struct hcl_error *error)
{
    const struct hcl_for *loop = expression->loop;
    bool object = hcl_is_object(collection);
    size_t count = object ? 0 : json_array_size(collection);
    const char **keys = object ? hcl_sorted_keys(collection, &count) : NULL;
    int code = 0;

    for (size_t i = 0; i < count && code == 0; i++) {
        json_t *key = object ? json_string(keys[i]) : json_integer((json_int_t)i);
        struct hcl_scope outer = {.outer = scope, .name = loop->key_name, .value = key};
        struct hcl_scope inner = {
            .outer = loop->key_name == NULL ? scope : &outer,
            .name = loop->value_name,
            .value = object ? json_object_get(collection, keys[i]) : json_array_get(collection, i),
        };

        code = hcl_charge(context, expression->place, 1, error);
        if (code == 0)
            code = collect_element(context, &inner, expression, collected, error);
        json_decref(key);
    }
    free(keys);
    return code;
}

static int evaluate_for(struct hcl_context *context, const struct hcl_scope *scope,
                        const struct hcl_expression *expression, json_t **ret_value,
                        struct hcl_error *error)
{
    const struct hcl_for *loop = expression->loop;
    struct collected collected = {.list = json_array(), .object = json_object()};
    json_t *collection, *result = NULL;
    int code = hcl_evaluate(context, scope, loop->collection, &collection, error);

    if (code == 0 && !json_is_array(collection) && !hcl_is_object(collection))
        code = hcl_complain(context->file, loop->collection->place, NULL, error,
                            "a for expression needs a list or an object, but this is %s",
                            hcl_type_text(collection));
    else if (code == 0)
        code = for_each(context, scope, expression, collection, &collected, error);
    else
        collection = NULL;
    if (code == 0 && loop->text) {
        result = hcl_buffer_take(&collected.text);
        if (result == NULL)
            code = hcl_charge(context, expression->place, UINT64_MAX, error);
    } else if (code == 0)
        result = json_incref(loop->key != NULL ? collected.object : collected.list);
    if (code == 0)
        code = hcl_charge_value(context, expression->place, result, error);
    if (code == 0)
        *ret_value = result;
    else
        json_decref(result);
    json_decref(collection);
    json_decref(collected.list);
    json_decref(collected.object);
    hcl_buffer_free(&collected.text);
    return code;
}

/* --- all --- */

/* What EXPRESSION, a conditional, is if its condition is TRUTH: as the type that both branches have
 * in common.  What the other comes to does not matter, and if it fails, it has no type. */
static int evaluate_branch(struct hcl_context *context, const struct hcl_scope *scope,
                           const struct hcl_expression *expression, bool truth, json_t **ret_value,
                           struct hcl_error *error)
{
    const struct hcl_expression *operand = expression->operation.operand;
    const struct hcl_expression *other = expression->operation.other;
    json_t *value, *beside = NULL;
    int code = hcl_evaluate(context, scope, truth ? operand : other, &value, error);

    if (code != 0)
        return code;
    if (hcl_evaluate(context, scope, truth ? other : operand, &beside, NULL) == 0)
        *ret_value = hcl_unify(value, beside);
    else
        *ret_value = json_incref(value);
    if (*ret_value == NULL)
        code = hcl_complain(context->file, expression->place, "make them alike", error,
                            "both results of a condition must be of one type, but are %s and %s",
                            hcl_type_text(value), hcl_type_text(beside));
    json_decref(value);
    json_decref(beside);
    return code;
}

static int evaluate(struct hcl_context *context, const struct hcl_scope *scope,
                    const struct hcl_expression *expression, json_t **ret_value,
                    struct hcl_error *error)
{
    bool truth = false;
    int code;

    switch (expression->kind) {
    case NODE_LITERAL:
        *ret_value = json_incref(expression->value);
        return 0;
    case NODE_TEMPLATE:
        return evaluate_template(context, scope, expression, ret_value, error);
    case NODE_VARIABLE:
        return hcl_evaluate_variable(context, scope, expression, ret_value, error);
    case NODE_INDEX:
        return hcl_evaluate_index(context, scope, expression, ret_value, error);
    case NODE_SPLAT:
        return evaluate_splat(context, scope, expression, ret_value, error);
    case NODE_CALL:
        return hcl_evaluate_call(context, scope, expression, ret_value, error);
    case NODE_LIST:
        return evaluate_list(context, scope, expression, ret_value, error);
    case NODE_OBJECT:
        return evaluate_object(context, scope, expression, ret_value, error);
    case NODE_FOR:
        return evaluate_for(context, scope, expression, ret_value, error);
    case NODE_NOT:
    case NODE_NEGATE:
        return hcl_evaluate_unary(context, scope, expression, ret_value, error);
    case NODE_BINARY:
        if (expression->operation.op <= OP_AND)
            return hcl_evaluate_logic(context, scope, expression, ret_value, error);
        if (expression->operation.op <= OP_UNEQUAL)
            return hcl_evaluate_equality(context, scope, expression, ret_value, error);
        return hcl_evaluate_numbers(context, scope, expression, ret_value, error);
    case NODE_CONDITIONAL:
        code = hcl_evaluate_bool(context, scope, expression->operation.condition, "a condition",
                                 &truth, error);
        if (code != 0)
            return code;
        return evaluate_branch(context, scope, expression, truth, ret_value, error);
    }
    unreachable("closed enum");
}

/* What a template is made of is looked at part by part. */
static bool is_written_out(const struct hcl_expression *expression)
{
    return expression->kind == NODE_LITERAL || expression->kind == NODE_TEMPLATE ||
           expression->kind == NODE_LIST || expression->kind == NODE_OBJECT;
}

int hcl_evaluate(struct hcl_context *context, const struct hcl_scope *scope,
                 const struct hcl_expression *expression, json_t **ret_value,
                 struct hcl_error *error)
{
    json_t *value = NULL;
    int code = hcl_charge(context, expression->place, 1, error);

    if (code == 0 && context->options->literal && !is_written_out(expression))
        code = hcl_complain(context->file, expression->place, NULL, error,
                            "nothing is computed here: write the value itself");
    if (code == 0 && context->depth >= EVALUATE_DEPTH_MAX)
        code = hcl_complain_limit(context->file, expression->place, NULL, error,
                                  "this expression is too deep to evaluate");
    if (code != 0)
        return code;
    context->depth++;
    code = evaluate(context, scope, expression, &value, error);
    context->depth--;
    check((code == 0) == (value != NULL));
    if (code == 0)
        *ret_value = value;
    return code;
}
