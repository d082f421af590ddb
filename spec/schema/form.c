/* What in a job file in HCL's JSON is a block: the tables know. */
#include "spec/schema/schema.h"

#include "base/base.h"

/* Names and values that are one argument of these blocks are a block in others, which matters to
 * lists of them only. */
static bool has_maps_as_arguments(const struct jobspec_schema *schema)
{
    return schema == &jobspec_job || schema == &jobspec_group_schema || schema == &jobspec_task;
}

enum hcl_member jobspec_form(const void *within, const char *name, const void **ret_inner)
{
    const struct jobspec_schema *schema = within;
    bool is_job = schema == NULL && text_equal(name, "job");
    const struct jobspec_field *field = schema == NULL ? NULL : jobspec_by_hcl(schema, name);

    if (is_job)
        *ret_inner = &jobspec_job;
    if (field == NULL)
        return is_job ? HCL_NAMED_BLOCK : HCL_ARGUMENT;
    *ret_inner = field->block;
    switch (field->kind) {
    case KIND_MAP:
        return has_maps_as_arguments(schema) ? HCL_ARGUMENT : HCL_FREE_BLOCK;
    case KIND_LISTS:
    case KIND_CONFIG:
        return HCL_FREE_BLOCK;
    case KIND_BLOCK:
    case KIND_BLOCKS:
    case KIND_NAMED:
    case KIND_TASK:
        return field->block->label == NULL ? HCL_BLOCK : HCL_NAMED_BLOCK;
    case KIND_TEXT:
    case KIND_WHOLE:
    case KIND_BOOL:
    case KIND_DURATION:
    case KIND_TEXTS:
    case KIND_OPERAND:
    case KIND_ANY:
        return HCL_ARGUMENT;
    }
    unreachable("closed enum");
}
