/* Functions of templates that compute and compare, and look into lists and maps. */
#include "spec/template/functions/part.h"

#include <stdlib.h>
#include <string.h>

/* --- numbers --- */

static json_t *run_parse_number(const struct call *call)
{
    const char *text = call_text(call, 0);
    char *end;
    int64_t whole;

    if (text_equal(call->name, "parseBool")) {
        static const char yes[] = "1,t,T,true,TRUE,True", no[] = "0,f,F,false,FALSE,False";

        if (*text == '\0' || text_lists(no, text))
            return json_false();
        return text_lists(yes, text) ? json_true() : call_refuse(call, "no bool");
    }
    if (text_equal(call->name, "parseFloat")) {
        double real = strtod(text, &end);
        json_t *value = *end == '\0' ? json_real(real) : NULL;

        return value != NULL ? value : call_refuse(call, "no number");
    }
    if (*text == '\0')
        return json_integer(0);
    if (!text_to_i64(text, &whole) || (text_equal(call->name, "parseUint") && whole < 0))
        return call_refuse(call, "no whole number");
    return json_integer(whole);
}

static json_t *calculate_whole(const struct call *call, json_int_t b, json_int_t a)
{
    json_int_t result = 0;
    char what = call->name[0];
    bool over = false;

    if ((what == 'd' || call->name[1] == 'o') && (b == 0 || (b == -1 && a == INT64_MIN)))
        return call_refuse(call, "division by zero");
    if (what == 'a')
        over = __builtin_add_overflow(a, b, &result);
    else if (what == 's')
        over = __builtin_sub_overflow(a, b, &result);
    else if (what == 'd')
        result = a / b;
    else if (call->name[1] == 'u')
        over = __builtin_mul_overflow(a, b, &result);
    else if (call->name[1] == 'o')
        result = a % b;
    else
        result = (call->name[1] == 'a') == (a > b) ? a : b;
    return over ? call_refuse(call, "the number is too large") : json_integer(result);
}

/* The first argument is the second of the operation: {{ 5 | subtract 2 }} is 3. */
static json_t *run_calculate(const struct call *call)
{
    const json_t *b = call->arguments[0], *a = call->arguments[1];
    double x = json_number_value(a), y = json_number_value(b), result;
    char what = call->name[0];

    if (!json_is_number(a) || !json_is_number(b))
        return call_refuse(call, "wrong type of argument: numbers are needed");
    if (json_is_integer(a) && json_is_integer(b))
        return calculate_whole(call, json_integer_value(b), json_integer_value(a));
    if (call->name[1] == 'o')
        return call_refuse(call, "whole numbers are needed");
    result = what == 'a'            ? x + y
             : what == 's'          ? x - y
             : what == 'd'          ? x / y
             : call->name[1] == 'u' ? x * y
             : call->name[1] == 'a' ? (x > y ? x : y)
                                    : (x < y ? x : y);
    json_t *value = json_real(result);
    return value != NULL ? value : call_refuse(call, "no number comes of it");
}

static json_t *run_loop(const struct call *call)
{
    json_int_t first = call->count == 2 ? json_integer_value(call->arguments[0]) : 0;
    json_int_t last = json_integer_value(call->arguments[call->count - 1]);
    json_t *list = json_array();

    for (json_int_t i = first; i < last && template_charge(call->evaluating, 1); i++)
        check(json_array_append_new(list, json_integer(i)) == 0);
    return list;
}

/* --- comparing --- */

static bool is_equal(const json_t *a, const json_t *b)
{
    if (json_is_number(a) && json_is_number(b))
        return json_number_value(a) == json_number_value(b);
    return json_equal(a, b);
}

static json_t *run_equal(const struct call *call)
{
    bool equal = false;

    for (size_t i = 1; i < call->count; i++)
        equal = equal || is_equal(call->arguments[0], call->arguments[i]);
    return json_boolean(equal != text_equal(call->name, "ne"));
}

static json_t *run_compare(const struct call *call)
{
    const json_t *a = call->arguments[0], *b = call->arguments[1];
    double x = json_number_value(a), y = json_number_value(b);
    bool less, same;

    if (json_is_string(a) && json_is_string(b)) {
        int order = strcmp(json_string_value(a), json_string_value(b));

        less = order < 0;
        same = order == 0;
    } else if (json_is_number(a) && json_is_number(b)) {
        less = x < y;
        same = x == y;
    } else {
        return call_refuse(call, "incompatible types for comparison");
    }
    bool or_same = call->name[1] == 'e', is_less = call->name[0] == 'l';
    return json_boolean((or_same && same) || (!same && less == is_less));
}

static json_t *run_and_or(const struct call *call)
{
    return json_incref(call->arguments[call->count - 1]); /* none before it decided */
}

static json_t *run_not(const struct call *call)
{
    return json_boolean(!template_truth(call->arguments[0]));
}

/* --- lists and maps --- */

static json_t *run_len(const struct call *call)
{
    const json_t *value = call->arguments[0];

    if (json_is_string(value))
        return json_integer((json_int_t)json_string_length(value));
    if (json_is_array(value))
        return json_integer((json_int_t)json_array_size(value));
    if (json_is_object(value))
        return json_integer((json_int_t)json_object_size(value));
    return call_refuse(call, "this has no length");
}

static json_t *run_index(const struct call *call)
{
    json_t *value = call->arguments[0];

    for (size_t i = 1; i < call->count && value != NULL; i++) {
        const json_t *key = call->arguments[i];

        if (json_is_array(value) && json_is_integer(key) && json_integer_value(key) >= 0)
            value = json_array_get(value, (size_t)json_integer_value(key));
        else if (json_is_object(value) && json_is_string(key))
            value = json_object_get(value, json_string_value(key));
        else
            return call_refuse(call, "cannot index this");
        if (value == NULL && json_is_integer(key))
            return call_refuse(call, "index out of range");
        if (value == NULL && call->evaluating->world->strict)
            return call_refuse(call, "map has no such entry");
    }
    return value == NULL ? json_null() : json_incref(value);
}

/* From the second argument, if there is one, up to the third; texts count in bytes. */
static json_t *run_slice(const struct call *call)
{
    const json_t *value = call->arguments[0];
    bool is_text = json_is_string(value);
    size_t ends[2] = {0, is_text ? json_string_length(value) : json_array_size(value)};
    size_t length = ends[1];
    json_t *list;

    if (!is_text && !json_is_array(value))
        return call_refuse(call, "can't slice this");
    for (size_t i = 1; i < call->count; i++) {
        json_int_t at = json_integer_value(call->arguments[i]);

        if (!json_is_integer(call->arguments[i]) || at < 0 || (size_t)at > length)
            return call_refuse(call, "index out of range");
        ends[i - 1] = (size_t)at;
    }
    if (ends[0] > ends[1])
        return call_refuse(call, "the end is before the begin");
    if (is_text)
        return call_give(call, json_string_value(value) + ends[0], ends[1] - ends[0]);
    list = json_array();
    for (size_t i = ends[0]; i < ends[1] && template_charge(call->evaluating, 1); i++)
        check(json_array_append(list, json_array_get(value, i)) == 0);
    return list;
}

const struct function template_values_functions[] = {
    {"add", 2, 2, run_calculate},
    {"and", 1, ANY, run_and_or},
    {"divide", 2, 2, run_calculate},
    {"eq", 2, ANY, run_equal},
    {"ge", 2, 2, run_compare},
    {"gt", 2, 2, run_compare},
    {"index", 2, ANY, run_index},
    {"le", 2, 2, run_compare},
    {"len", 1, 1, run_len},
    {"loop", 1, 2, run_loop},
    {"lt", 2, 2, run_compare},
    {"maximum", 2, 2, run_calculate},
    {"minimum", 2, 2, run_calculate},
    {"modulo", 2, 2, run_calculate},
    {"multiply", 2, 2, run_calculate},
    {"ne", 2, 2, run_equal},
    {"not", 1, 1, run_not},
    {"or", 1, ANY, run_and_or},
    {"parseBool", 1, 1, run_parse_number},
    {"parseFloat", 1, 1, run_parse_number},
    {"parseInt", 1, 1, run_parse_number},
    {"parseUint", 1, 1, run_parse_number},
    {"slice", 1, 3, run_slice},
    {"subtract", 2, 2, run_calculate},
    {NULL, 0, 0, NULL},
};
