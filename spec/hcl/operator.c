/*
 * Operators: logic, equality, comparison, arithmetic.
 *
 * && and || do not evaluate a right side that cannot matter.
 */
#include "spec/hcl/number.h"

static bool compare(enum hcl_operator op, const json_t *left, const json_t *right)
{
    int order = hcl_number_compare(left, right);

    switch ((int)op) {
    case OP_LESS:
        return order < 0;
    case OP_LESS_EQUAL:
        return order <= 0;
    case OP_GREATER:
        return order > 0;
    default:
        return order >= 0;
    }
}

int hcl_evaluate_logic(struct hcl_context *context, const struct hcl_scope *scope,
                       const struct hcl_expression *expression, json_t **ret_value,
                       struct hcl_error *error)
{
    const char *what = "what && and || combine";
    bool value = false;
    int code =
        hcl_evaluate_bool(context, scope, expression->operation.operand, what, &value, error);

    if (code == 0 && value == (expression->operation.op == OP_AND))
        code = hcl_evaluate_bool(context, scope, expression->operation.other, what, &value, error);
    if (code == 0)
        *ret_value = json_boolean(value);
    return code;
}

int hcl_evaluate_equality(struct hcl_context *context, const struct hcl_scope *scope,
                          const struct hcl_expression *expression, json_t **ret_value,
                          struct hcl_error *error)
{
    json_t *left, *right;
    int code = hcl_evaluate(context, scope, expression->operation.operand, &left, error);

    if (code != 0)
        return code;
    code = hcl_evaluate(context, scope, expression->operation.other, &right, error);
    if (code == 0) {
        code = hcl_charge_value(context, expression->place, left, error);
        if (code == 0)
            *ret_value = json_boolean((json_equal(left, right) != 0) ==
                                      (expression->operation.op == OP_EQUAL));
        json_decref(right);
    }
    json_decref(left);
    return code;
}

int hcl_evaluate_numbers(struct hcl_context *context, const struct hcl_scope *scope,
                         const struct hcl_expression *expression, json_t **ret_value,
                         struct hcl_error *error)
{
    enum hcl_operator op = expression->operation.op;
    const char *what = "what this operator combines";
    json_t *left, *right, *result;
    int code = hcl_evaluate_as(context, scope, expression->operation.operand, HCL_NUMBER, what,
                               &left, error);

    if (code != 0)
        return code;
    code = hcl_evaluate_as(context, scope, expression->operation.other, HCL_NUMBER, what, &right,
                           error);
    if (code != 0) {
        json_decref(left);
        return code;
    }
    if (op < OP_ADD)
        result = json_boolean(compare(op, left, right));
    else if (op == OP_DIVIDE && hcl_number_is_zero(right))
        result = NULL;
    else
        result = hcl_number_combine(op, left, right);
    if (result == NULL)
        code =
            hcl_complain(context->file, expression->operation.other->place, NULL, error,
                         op == OP_DIVIDE && hcl_number_is_zero(right) ? "division by zero"
                                                                      : "the result is too large");
    else
        *ret_value = result;
    json_decref(left);
    json_decref(right);
    return code;
}

int hcl_evaluate_unary(struct hcl_context *context, const struct hcl_scope *scope,
                       const struct hcl_expression *expression, json_t **ret_value,
                       struct hcl_error *error)
{
    json_t *zero, *value;
    bool truth = false;
    int code;

    if (expression->kind == NODE_NOT) {
        code = hcl_evaluate_bool(context, scope, expression->operation.operand, "what ! negates",
                                 &truth, error);
        if (code == 0)
            *ret_value = json_boolean(!truth);
        return code;
    }
    code = hcl_evaluate_as(context, scope, expression->operation.operand, HCL_NUMBER,
                           "what - negates", &value, error);
    if (code != 0)
        return code;
    zero = json_integer(0);
    *ret_value = hcl_number_combine(OP_SUBTRACT, zero, value);
    check(*ret_value != NULL); /* as large as it was */
    json_decref(zero);
    json_decref(value);
    return 0;
}
