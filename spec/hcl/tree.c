/* Making nodes: all that a tree is made of lives in the arena of its file. */
#include "spec/hcl/tree.h"

#include "spec/hcl/scan.h"

#include <stdlib.h>
#include <string.h>

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

static int compare_names(const void *a, const void *b)
{
    const struct hcl_attribute *const *left = a, *const *right = b;
    int order = strcmp((*left)->name, (*right)->name);

    return order != 0 ? order : (*left)->place.offset < (*right)->place.offset ? -1 : 1;
}

bool hcl_check_duplicates(struct hcl_parser *parser, const struct hcl_body *body)
{
    if (body->attributes_count < 2)
        return true;

    const struct hcl_attribute **sorted = calloc(body->attributes_count, sizeof(const void *));
    const struct hcl_attribute *first = NULL, *second = NULL;

    check(sorted != NULL);
    for (size_t i = 0; i < body->attributes_count; i++)
        sorted[i] = &body->attributes[i];
    qsort(sorted, body->attributes_count, sizeof(const void *), compare_names);
    for (size_t i = 1; i < body->attributes_count && second == NULL; i++) {
        if (text_equal(sorted[i - 1]->name, sorted[i]->name)) {
            first = sorted[i - 1];
            second = sorted[i];
        }
    }
    free(sorted);
    if (second == NULL)
        return true;
    return hcl_fail(parser, second->place, "remove one of them",
                    "the argument \"%.60s\" is given twice, first at line %u", second->name,
                    first->place.line) != NULL;
}
