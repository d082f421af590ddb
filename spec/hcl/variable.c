/* Names, and what is chosen from what they stand for. */
#include "spec/hcl/number.h"

#include <stdlib.h>
#include <string.h>

static int fail_no_key(struct hcl_context *context, struct hcl_place place, const json_t *object,
                       const char *key, struct hcl_error *error)
{
    char hint[ERR_TEXT_SIZE] = "";
    size_t count;
    const char **keys = hcl_sorted_keys(object, &count);
    const char *closest = hcl_closest(key, keys, count > 64 ? 64 : count);

    if (closest != NULL)
        (void)text_format(hint, sizeof(hint), "did you mean \"%s\"?", closest);
    free(keys);
    return hcl_complain(context->file, place, hint, error, "there is no \"%.60s\" in this object",
                        key);
}

/* VALUE[KEY] as a new reference. */
static int index_value(struct hcl_context *context, struct hcl_place place, json_t *value,
                       json_t *key, json_t **ret_value, struct hcl_error *error)
{
    if (json_is_array(value)) {
        json_t *number = hcl_convert(key, HCL_NUMBER);
        size_t size = json_array_size(value);

        if (number == NULL || !json_is_integer(number)) {
            json_decref(number);
            return hcl_complain(context->file, place, NULL, error,
                                "elements of a list are chosen by a whole number");
        }
        json_int_t i = json_integer_value(number);
        json_decref(number);
        if (i < 0 || (uint64_t)i >= size)
            return hcl_complain(context->file, place, NULL, error,
                                "the list has %zu elements, there is no number %lld", size,
                                (long long)i);
        *ret_value = json_incref(json_array_get(value, (size_t)i));
        return 0;
    }
    if (hcl_is_object(value)) {
        json_t *name = hcl_convert(key, HCL_STRING);

        if (name == NULL)
            return hcl_complain(context->file, place, NULL, error,
                                "attributes of an object are chosen by a string");
        json_t *found = json_object_get(value, json_string_value(name));
        int code =
            found != NULL ? 0 : fail_no_key(context, place, value, json_string_value(name), error);
        if (code == 0)
            *ret_value = json_incref(found);
        json_decref(name);
        return code;
    }
    return hcl_complain(context->file, place, NULL, error,
                        "%s has no elements or attributes to choose from", hcl_type_text(value));
}

/* Applies STEPS to VALUE (moved). */
static int walk(struct hcl_context *context, const struct hcl_step *steps, json_t *value,
                json_t **ret_value, struct hcl_error *error)
{
    int code = 0;

    for (const struct hcl_step *step = steps; step != NULL && code == 0; step = step->next) {
        json_t *next = NULL;

        code = hcl_charge(context, step->place, 1, error);
        if (code == 0)
            code = index_value(context, step->place, value, step->key, &next, error);
        json_decref(value);
        value = next;
    }
    if (code == 0)
        *ret_value = value;
    return code;
}

/* The variable's own text, for the run time: ${name.x["y"]}. */
static int keep_unknown(struct hcl_context *context, const struct hcl_expression *expression,
                        json_t **ret_value, struct hcl_error *error)
{
    struct hcl_place place = expression->place;
    struct hcl_buffer buffer = {0};
    int code = hcl_charge(context, place, 1 + place.length / HCL_BYTES_A_UNIT, error);

    if (code != 0)
        return code;
    hcl_buffer_add(&buffer, "${", 2);
    hcl_buffer_add(&buffer, context->file->text + place.offset, place.length);
    hcl_buffer_add(&buffer, "}", 1);
    *ret_value = hcl_buffer_take(&buffer);
    check(*ret_value != NULL); /* a part of the file's text */
    return 0;
}

/* --- names of a template --- */

/* True if EXPRESSION is a variable that is none of SCOPE, or an index of one: a name to be looked
 * up whole. */
static bool is_name(const struct hcl_scope *scope, const struct hcl_expression *expression)
{
    for (int i = 0; i < HCL_NESTING_MAX && expression->kind == NODE_INDEX; i++)
        expression = expression->access.operand;
    if (expression->kind != NODE_VARIABLE)
        return false;
    for (; scope != NULL; scope = scope->outer) {
        if (text_equal(scope->name, expression->variable.name))
            return false;
    }
    return true;
}

/* Adds a dot and KEY, a text or a whole number. */
static int add_part(struct hcl_context *context, struct hcl_place place, json_t *key,
                    struct hcl_buffer *name, struct hcl_error *error)
{
    json_t *text = hcl_convert(key, HCL_STRING);

    check(text != NULL);
    int code = hcl_charge(context, place, 1 + json_string_length(text) / HCL_BYTES_A_UNIT, error);
    if (code == 0) {
        hcl_buffer_add(name, ".", 1);
        hcl_buffer_add(name, json_string_value(text), json_string_length(text));
    }
    json_decref(text);
    return code;
}

/* Adds what EXPRESSION (see is_name) is called.  As deep as is_name() looked. */
static int add_name(struct hcl_context *context, const struct hcl_scope *scope,
                    const struct hcl_expression *expression, struct hcl_buffer *name,
                    struct hcl_error *error)
{
    int code = 0;

    if (expression->kind == NODE_INDEX) {
        json_t *key;

        code = add_name(context, scope, expression->access.operand, name, error);
        if (code == 0)
            code = hcl_evaluate_as(context, scope, expression->access.key, HCL_STRING,
                                   "what is in brackets", &key, error);
        if (code == 0) {
            code = add_part(context, expression->place, key, name, error);
            json_decref(key);
        }
        return code;
    }
    hcl_buffer_add(name, expression->variable.name, strlen(expression->variable.name));
    for (const struct hcl_step *step = expression->variable.steps; step != NULL && code == 0;
         step = step->next)
        code = add_part(context, step->place, step->key, name, error);
    return code;
}

/* The value of the name EXPRESSION, as the context's names have it. */
static int find_name(struct hcl_context *context, const struct hcl_scope *scope,
                     const struct hcl_expression *expression, json_t **ret_value,
                     struct hcl_error *error)
{
    struct hcl_buffer name = {0};
    const char *value = NULL;
    int code = add_name(context, scope, expression, &name, error);

    if (code == 0 && name.full)
        code = hcl_charge(context, expression->place, UINT64_MAX, error);
    if (code == 0)
        code = context->names->find(context->names->ctx, name.bytes, &value);
    if (code == 0)
        code = hcl_charge(context, expression->place, strlen(value) / HCL_BYTES_A_UNIT, error);
    if (code == 0 && (*ret_value = json_string(value)) == NULL)
        code = hcl_complain(context->file, expression->place, NULL, error,
                            "the value of this name is not UTF-8 text");
    hcl_buffer_free(&name);
    return code;
}

/* --- nodes --- */

int hcl_evaluate_variable(struct hcl_context *context, const struct hcl_scope *scope,
                          const struct hcl_expression *expression, json_t **ret_value,
                          struct hcl_error *error)
{
    const char *name = expression->variable.name;
    const struct hcl_step *steps = expression->variable.steps;

    for (; scope != NULL; scope = scope->outer) {
        if (text_equal(scope->name, name))
            return walk(context, steps, json_incref(scope->value), ret_value, error);
    }
    if (context->names != NULL)
        return find_name(context, NULL, expression, ret_value, error);
    bool variable = text_equal(name, "var");
    if (!variable && !text_equal(name, "local")) {
        if (context->options->keep_unknown)
            return keep_unknown(context, expression, ret_value, error);
        return hcl_complain(context->file, expression->place,
                            "known are var.name and local.name; text is written in double quotes",
                            error, "unknown variable \"%.60s\"", name);
    }
    struct hcl_symbols *symbols = variable ? &context->variables : &context->locals;
    json_t *value;
    int code;
    if (steps != NULL && json_is_string(steps->key)) {
        code = hcl_symbol_value(context, symbols, json_string_value(steps->key), steps->place,
                                &value, error);
        steps = steps->next;
    } else
        code = hcl_symbol_value(context, symbols, NULL, expression->place, &value, error);
    return code != 0 ? code : walk(context, steps, value, ret_value, error);
}

int hcl_evaluate_index(struct hcl_context *context, const struct hcl_scope *scope,
                       const struct hcl_expression *expression, json_t **ret_value,
                       struct hcl_error *error)
{
    json_t *value, *key;

    if (context->names != NULL && is_name(scope, expression))
        return find_name(context, scope, expression, ret_value, error);
    int code = hcl_evaluate(context, scope, expression->access.operand, &value, error);
    if (code != 0)
        return code;
    code = hcl_evaluate(context, scope, expression->access.key, &key, error);
    if (code == 0) {
        code = index_value(context, expression->access.key->place, value, key, ret_value, error);
        json_decref(key);
    }
    json_decref(value);
    return code;
}
