/*
 * What evaluating a file may cost.
 *
 * A unit for each node evaluated, one more for each HCL_BYTES_A_UNIT of text, and for a list or
 * object all that it holds, because values share their parts and what is small in memory may be
 * huge when written out.
 */
#include "spec/hcl/tree.h"

#include <string.h>

int hcl_charge(struct hcl_context *context, struct hcl_place place, uint64_t units,
               struct hcl_error *error)
{
    if (units <= context->budget) {
        context->budget -= units;
        return 0;
    }
    context->budget = 0;
    return hcl_complain_limit(context->file, place, "make the file's expressions simpler", error,
                              "evaluating this file takes too much work or memory");
}

static int charge_value(struct hcl_context *context, struct hcl_place place, const json_t *value,
                        int depth, struct hcl_error *error)
{
    uint64_t units = 1 + json_string_length(value) / HCL_BYTES_A_UNIT;
    const char *key;
    json_t *item;
    size_t i;
    int code = hcl_charge(context, place, units, error);

    if (code == 0 && depth > HCL_NESTING_MAX)
        code = hcl_complain_limit(context->file, place, NULL, error,
                                  "this value is nested more than %d levels deep", HCL_NESTING_MAX);
    if (code == 0 && json_is_array(value)) {
        json_array_foreach(value, i, item)
        {
            code = charge_value(context, place, item, depth + 1, error);
            if (code != 0)
                break;
        }
    } else if (code == 0 && json_is_object(value)) {
        json_object_foreach((json_t *)value, key, item)
        {
            code = hcl_charge(context, place, strlen(key) / HCL_BYTES_A_UNIT, error);
            if (code == 0)
                code = charge_value(context, place, item, depth + 1, error);
            if (code != 0)
                break;
        }
    }
    return code;
}

int hcl_charge_value(struct hcl_context *context, struct hcl_place place, const json_t *value,
                     struct hcl_error *error)
{
    return charge_value(context, place, value, 0, error);
}
