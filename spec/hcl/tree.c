/* Making nodes: all that a tree is made of lives in the arena of its file. */
#include "spec/hcl/tree.h"

#include "spec/hcl/scan.h"

void *hcl_allocate(struct hcl_file *file, size_t size)
{
    return arena_new(&file->arena, size);
}

char *hcl_keep_text(struct hcl_file *file, const char *text, size_t length)
{
    return arena_copy(&file->arena, text, length);
}

json_t *hcl_keep_value(struct hcl_file *file, json_t *value)
{
    check(value != NULL);
    check(json_array_append_new(file->values, value) == 0);
    return value;
}

struct hcl_expression *hcl_node(struct hcl_parser *parser, enum hcl_kind kind,
                                struct hcl_place place)
{
    if (parser->failed)
        return NULL;
    if (parser->file->expressions >= HCL_EXPRESSIONS_MAX)
        return hcl_fail_limit(parser, place, "the file has more than %d expressions",
                              HCL_EXPRESSIONS_MAX);
    parser->file->expressions++;
    struct hcl_expression *node = hcl_allocate(parser->file, sizeof(*node));
    node->kind = kind;
    node->place = place;
    return node;
}
