/*
 * Operators: logic, equality, comparison, arithmetic.
 *
 * Whole numbers are counted exactly and become real numbers only when they must.  && and || do not
 * evaluate a right side that cannot matter.
 */
#include "spec/hcl/tree.h"

#include <math.h>

static json_t *whole_result(enum hcl_operator op, int64_t a, int64_t b)
{
    int64_t result;
    bool overflow;

    switch ((int)op) {
    case OP_ADD:
        overflow = __builtin_add_overflow(a, b, &result);
        break;
    case OP_SUBTRACT:
        overflow = __builtin_sub_overflow(a, b, &result);
        break;
    case OP_MULTIPLY:
        overflow = __builtin_mul_overflow(a, b, &result);
        break;
    case OP_DIVIDE:
        overflow = (a == INT64_MIN && b == -1) || a % b != 0;
        result = overflow ? 0 : a / b;
        break;
    default:
        overflow = false;
        result = b == -1 ? 0 : a % b; /* INT64_MIN % -1 would trap */
        break;
    }
    return overflow ? NULL : json_integer(result);
}

/* NULL if the result is not a finite number; a divisor is not zero. */
static json_t *arithmetic(enum hcl_operator op, const json_t *left, const json_t *right)
{
    if (json_is_integer(left) && json_is_integer(right)) {
        json_t *whole = whole_result(op, json_integer_value(left), json_integer_value(right));

        if (whole != NULL)
            return whole;
    }
    double a = hcl_number_of(left), b = hcl_number_of(right);
    switch ((int)op) {
    case OP_ADD:
        return hcl_number(a + b);
    case OP_SUBTRACT:
        return hcl_number(a - b);
    case OP_MULTIPLY:
        return hcl_number(a * b);
    case OP_DIVIDE:
        return hcl_number(a / b);
    default:
        return hcl_number(fmod(a, b));
    }
}

static bool compare(enum hcl_operator op, const json_t *left, const json_t *right)
{
    int order;

    if (json_is_integer(left) && json_is_integer(right)) {
        json_int_t a = json_integer_value(left), b = json_integer_value(right);
        order = (a > b) - (a < b);
    } else {
        double a = hcl_number_of(left), b = hcl_number_of(right);
        order = (a > b) - (a < b);
    }
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
    else if ((op == OP_DIVIDE || op == OP_MODULO) && hcl_number_of(right) == 0.0)
        result = NULL;
    else
        result = arithmetic(op, left, right);
    if (result == NULL)
        code = hcl_complain(context->file, expression->operation.other->place, NULL, error,
                            op == OP_DIVIDE || op == OP_MODULO ? "division by zero"
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
    *ret_value = arithmetic(OP_SUBTRACT, zero, value);
    check(*ret_value != NULL); /* the negative of a finite number is finite */
    json_decref(zero);
    json_decref(value);
    return 0;
}
