/*
 * Calls of functions, and the two that are not functions: try and can, which evaluate their
 * arguments themselves.
 */
#include "spec/hcl/tree.h"

#include <stdlib.h>

enum { UNITS_A_FAILURE = 64 }; /* what telling a mistake costs that try then forgets */

/* try(a, b, ...): the first that evaluates; can(a): whether it does. */
static int evaluate_try(struct hcl_context *context, const struct hcl_scope *scope,
                        const struct hcl_expression *expression, json_t **ret_value,
                        struct hcl_error *error)
{
    bool can = text_equal(expression->call.name, "can");
    int code = ERR_INVALID;

    if (expression->call.first == NULL || expression->flag || (can && expression->call.count != 1))
        return hcl_complain(context->file, expression->place, NULL, error,
                            can ? "can() takes one expression" : "try() takes expressions to try");
    for (const struct hcl_expression *part = expression->call.first; part != NULL;
         part = part->next) {
        json_t *value;

        code = hcl_evaluate(context, scope, part, &value, error);
        if (code == 0 && can)
            json_decref(value);
        else if (code == 0)
            *ret_value = value;
        if (code == 0 || code == ERR_LIMIT)
            break;
        int charged = hcl_charge(context, part->place, UNITS_A_FAILURE, error);
        if (charged != 0)
            return charged;
    }
    if (can && code != ERR_LIMIT) {
        *ret_value = json_boolean(code == 0);
        code = 0;
    }
    return code;
}

/* The call's arguments as a list, the last one spread if it says so. */
static int evaluate_arguments(struct hcl_context *context, const struct hcl_scope *scope,
                              const struct hcl_expression *expression, json_t **ret_list,
                              struct hcl_error *error)
{
    json_t *list = json_array(), *value;
    int code = 0;

    for (const struct hcl_expression *part = expression->call.first; part != NULL && code == 0;
         part = part->next) {
        code = hcl_evaluate(context, scope, part, &value, error);
        if (code == 0)
            code = hcl_charge_value(context, part->place, value, error);
        else
            value = NULL;
        if (code == 0 && part->next == NULL && expression->flag) {
            if (!json_is_array(value))
                code = hcl_complain(context->file, part->place, NULL, error,
                                    "only a list can be spread with ...");
            else
                check(json_array_extend(list, value) == 0);
        } else if (code == 0)
            check(json_array_append(list, value) == 0);
        json_decref(value);
    }
    if (code == 0)
        *ret_list = list;
    else
        json_decref(list);
    return code;
}

static int run_function(struct hcl_context *context, const struct hcl_expression *expression,
                        const struct hcl_function_row *row, json_t *list, json_t **ret_value,
                        struct hcl_error *error)
{
    size_t count = json_array_size(list), i;
    json_t **arguments = calloc(count + 1, sizeof(*arguments)), *item, *result = NULL;
    struct hcl_error local;
    struct hcl_call call = {.context = context,
                            .name = row->name,
                            .arguments = arguments,
                            .count = count,
                            .place = expression->place,
                            .error = error == NULL ? &local : error};
    int code = 0;

    check(arguments != NULL);
    json_array_foreach(list, i, item) arguments[i] = item;
    call.error->code = 0;
    if (count < row->arguments_min || count > row->arguments_max) {
        const char *bound = row->arguments_min == row->arguments_max ? ""
                            : count < row->arguments_min             ? "at least "
                                                                     : "at most ";
        size_t right = count < row->arguments_min ? row->arguments_min : row->arguments_max;

        (void)hcl_call_failed(&call, "takes %s%zu argument%s, but got %zu", bound, right,
                              right == 1 ? "" : "s", count);
    } else
        result = row->run(&call);
    free(arguments);
    if (result == NULL) {
        code = call.error->code;
        check(code != 0);
        return code;
    }
    code = hcl_charge_value(context, expression->place, result, error);
    if (code == 0)
        *ret_value = result;
    else
        json_decref(result);
    return code;
}

static bool may_call(const struct hcl_context *context, const char *name)
{
    if (context->names == NULL)
        return true;
    for (size_t i = 0; context->names->functions[i] != NULL; i++) {
        if (text_equal(context->names->functions[i], name))
            return true;
    }
    return false;
}

int hcl_evaluate_call(struct hcl_context *context, const struct hcl_scope *scope,
                      const struct hcl_expression *expression, json_t **ret_value,
                      struct hcl_error *error)
{
    const char *name = expression->call.name;
    json_t *arguments;

    if (!may_call(context, name))
        return hcl_complain(context->file, expression->call.name_place, NULL, error,
                            "the function %.60s() is not available here", name);
    if (text_equal(name, "try") || text_equal(name, "can"))
        return evaluate_try(context, scope, expression, ret_value, error);
    const struct hcl_function_row *row = hcl_function_find(name);
    if (row == NULL)
        return hcl_function_unknown(context->file, expression->call.name_place, name, error);
    int code = evaluate_arguments(context, scope, expression, &arguments, error);
    if (code != 0)
        return code;
    code = run_function(context, expression, row, arguments, ret_value, error);
    json_decref(arguments);
    return code;
}
