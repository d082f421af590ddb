/*
 * Variables and locals.
 *
 * Follows nomad v1.1.2 jobspec2 (types.variables.go, types.config.go) with one difference: a local
 * is evaluated when it is first needed, so locals may refer to each other in any order and a cycle
 * is named.
 */
#include "spec/hcl/tree.h"

#include <stdlib.h>
#include <string.h>

enum { BUDGET_BASE = 1 << 21, BUDGET_A_BYTE = 4, INPUTS_MAX = 1024 };

/* --- symbols --- */

static int compare_symbols(const void *a, const void *b)
{
    const struct hcl_symbol *left = a, *right = b;

    int order = strcmp(left->name, right->name);

    /* By place, too, so that of two with one name the later is the one complained about. */
    return order != 0 ? order
                      : (left->place.offset > right->place.offset) -
                            (left->place.offset < right->place.offset);
}

static struct hcl_symbol *find_symbol(const struct hcl_symbols *symbols, const char *name)
{
    size_t low = 0, high = symbols->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, symbols->items[middle].name);

        if (order == 0)
            return &symbols->items[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

static struct hcl_symbol *add_symbol(struct hcl_symbols *symbols, const char *name,
                                     struct hcl_place place)
{
    struct hcl_symbol *symbol = list_more(symbols);

    *symbol = (struct hcl_symbol){.name = name, .place = place};
    return symbol;
}

static int evaluate_symbol(struct hcl_context *context, struct hcl_symbol *symbol,
                           struct hcl_place place, struct hcl_error *error)
{
    if (symbol->value != NULL)
        return 0;
    if (symbol->busy)
        return hcl_complain(context->file, place, NULL, error,
                            "local.%.60s depends on itself, through line %u", symbol->name,
                            symbol->place.line);
    check(symbol->attribute != NULL);
    symbol->busy = true;
    int code = hcl_evaluate(context, NULL, symbol->attribute->value, &symbol->value, error);
    symbol->busy = false;
    return code;
}

static int fail_unknown_symbol(struct hcl_context *context, const struct hcl_symbols *symbols,
                               const char *name, struct hcl_place place, struct hcl_error *error)
{
    bool variable = symbols == &context->variables;
    size_t count = symbols->count > 64 ? 64 : symbols->count;
    const char *names[64], *closest;
    char hint[ERR_TEXT_SIZE];

    for (size_t i = 0; i < count; i++)
        names[i] = symbols->items[i].name;
    closest = hcl_closest(name, names, count);
    if (closest != NULL)
        (void)text_format(hint, sizeof(hint), "did you mean %s.%s?", variable ? "var" : "local",
                          closest);
    else
        (void)text_format(hint, sizeof(hint),
                          variable ? "declare it with a block: variable \"%.60s\" {}"
                                   : "define it in a block: locals { %.60s = ... }",
                          name);
    return hcl_complain(context->file, place, hint, error, "there is no %s \"%.60s\"",
                        variable ? "variable" : "local", name);
}

int hcl_symbol_value(struct hcl_context *context, struct hcl_symbols *symbols, const char *name,
                     struct hcl_place place, json_t **ret_value, struct hcl_error *error)
{
    int code = 0;

    if (name != NULL) {
        struct hcl_symbol *symbol = find_symbol(symbols, name);

        if (symbol == NULL)
            return fail_unknown_symbol(context, symbols, name, place, error);
        code = evaluate_symbol(context, symbol, place, error);
        if (code == 0)
            *ret_value = json_incref(symbol->value);
        return code;
    }
    json_t *all = json_object();
    for (size_t i = 0; i < symbols->count && code == 0; i++) {
        code = hcl_charge(context, place, 1, error);
        if (code == 0)
            code = evaluate_symbol(context, &symbols->items[i], place, error);
        if (code == 0)
            check(json_object_set(all, symbols->items[i].name, symbols->items[i].value) == 0);
    }
    if (code == 0)
        *ret_value = all;
    else
        json_decref(all);
    return code;
}

/* --- variables --- */

/* The value given from outside for the variable NAME, or NULL. */
static const char *input_of(const struct hcl_options *options, const char *name)
{
    const char *found = NULL;

    for (size_t i = 0; i < options->inputs_count; i++) {
        if (text_equal(options->inputs[i].name, name))
            found = options->inputs[i].value;
    }
    return found;
}

/* A value given from outside: text for string, number and untyped variables, else an expression. */
static int input_value(struct hcl_context *context, const struct hcl_block *block,
                       const struct hcl_expression *type, const char *text, json_t **ret_value,
                       struct hcl_error *error)
{
    static const char start[] = "value = ";
    char name[128];
    struct hcl_file *file;
    bool plain = type == NULL ||
                 (type->kind == NODE_VARIABLE && (text_equal(type->variable.name, "string") ||
                                                  text_equal(type->variable.name, "number")));

    (void)text_format(name, sizeof(name), "<value for var.%.60s>", block->labels[0]);
    if (plain) {
        *ret_value = json_string(text);
        if (*ret_value == NULL)
            return hcl_complain(context->file, block->place, NULL, error,
                                "the value given for variable \"%.60s\" is not UTF-8 text",
                                block->labels[0]);
        return 0;
    }
    size_t length = strlen(text) + sizeof(start);
    if (length > HCL_BYTES_MAX)
        return hcl_complain(context->file, block->place, NULL, error,
                            "the value given for variable \"%.60s\" is too long", block->labels[0]);
    char *source = malloc(length);
    check(source != NULL);
    (void)text_format(source, length, "%s%s", start, text);
    int code = hcl_parse(name, source, length - 1, &file, error);
    free(source);
    if (code != 0)
        return code;
    const struct hcl_attribute *value = hcl_find(&file->root, "value");
    const struct hcl_file *outer = context->file;
    context->file = file; /* for messages and the text of unknown variables */
    if (value == NULL || file->root.attributes_count != 1 || file->root.blocks_count != 0)
        code = hcl_complain(outer, block->place, NULL, error,
                            "the value given for variable \"%.60s\" is not one expression",
                            block->labels[0]);
    else
        code = hcl_evaluate(context, NULL, value->value, ret_value, error);
    context->file = outer;
    hcl_free(file);
    return code;
}

/* The value of the variable in BLOCK before its validation. */
static int variable_value(struct hcl_context *context, const struct hcl_block *block,
                          json_t **ret_value, struct hcl_error *error)
{
    const struct hcl_attribute *type = hcl_find(&block->body, "type");
    const struct hcl_attribute *fallback = hcl_find(&block->body, "default");
    const char *input = input_of(context->options, block->labels[0]);
    json_t *value, *converted;
    int code;

    if (input != NULL)
        code = input_value(context, block, type == NULL ? NULL : type->value, input, &value, error);
    else if (fallback != NULL)
        code = hcl_evaluate(context, NULL, fallback->value, &value, error);
    else {
        char hint[ERR_TEXT_SIZE];

        (void)text_format(hint, sizeof(hint),
                          "give one with -var %.40s=VALUE or NOMAD_VAR_%.40s, or add a default",
                          block->labels[0], block->labels[0]);
        return hcl_complain(context->file, block->place, hint, error,
                            "variable \"%.60s\" has no value", block->labels[0]);
    }
    if (code != 0 || type == NULL) {
        if (code == 0)
            *ret_value = value;
        return code;
    }
    code = hcl_convert_to(context, type->value, value, &converted, error);
    json_decref(value);
    if (code == 0)
        *ret_value = converted;
    return code;
}

static int validate_variable(struct hcl_context *context, const struct hcl_block *block,
                             struct hcl_error *error)
{
    for (size_t i = 0; i < block->body.blocks_count; i++) {
        const struct hcl_block *rule = &block->body.blocks[i];
        const struct hcl_attribute *condition = hcl_find(&rule->body, "condition");
        const struct hcl_attribute *message = hcl_find(&rule->body, "error_message");
        json_t *holds, *converted, *text = NULL;

        if (!text_equal(rule->type, "validation"))
            return hcl_complain(context->file, rule->place, "a variable has validation blocks only",
                                error, "unknown block \"%.60s\" in a variable", rule->type);
        if (condition == NULL || message == NULL)
            return hcl_complain(context->file, rule->place, NULL, error,
                                "a validation needs condition and error_message");
        int code = hcl_evaluate(context, NULL, condition->value, &holds, error);
        if (code != 0)
            return code;
        converted = hcl_convert(holds, HCL_BOOL);
        json_decref(holds);
        if (converted == NULL)
            return hcl_complain(context->file, hcl_expression_place(condition->value), NULL, error,
                                "a condition must be a bool");
        bool valid = json_is_true(converted);
        json_decref(converted);
        if (valid)
            continue;
        code = hcl_evaluate(context, NULL, message->value, &text, error);
        if (code != 0)
            return code;
        code = hcl_complain(context->file, block->place,
                            json_is_string(text) ? json_string_value(text) : NULL, error,
                            "the value of variable \"%.60s\" is refused by its validation",
                            block->labels[0]);
        json_decref(text);
        return code;
    }
    return 0;
}

static int check_variable_block(struct hcl_context *context, const struct hcl_block *block,
                                struct hcl_error *error)
{
    static const char *const known[] = {"default", "description", "sensitive", "type"};

    if (block->labels_count != 1)
        return hcl_complain(context->file, block->place, "write variable \"name\" { ... }", error,
                            "a variable block has one label, its name");
    for (size_t i = 0; i < block->body.attributes_count; i++) {
        const struct hcl_attribute *attribute = &block->body.attributes[i];
        bool found = false;

        for (size_t j = 0; j < COUNT_OF(known); j++)
            found = found || text_equal(attribute->name, known[j]);
        if (!found)
            return hcl_complain(context->file, attribute->place,
                                "a variable has type, default and description", error,
                                "unknown argument \"%.60s\" in a variable", attribute->name);
    }
    return 0;
}

static int check_names(struct hcl_context *context, struct hcl_symbols *symbols, const char *what,
                       struct hcl_error *error)
{
    if (symbols->count == 0)
        return 0;
    qsort(symbols->items, symbols->count, sizeof(*symbols->items), compare_symbols);
    for (size_t i = 1; i < symbols->count; i++) {
        const struct hcl_symbol *symbol = &symbols->items[i];

        if (text_equal(symbols->items[i - 1].name, symbol->name))
            return hcl_complain(context->file, symbol->place, "remove one of them", error,
                                "the %s \"%.60s\" is defined twice", what, symbol->name);
    }
    return 0;
}

static int check_inputs(struct hcl_context *context, struct hcl_error *error)
{
    for (size_t i = 0; i < context->options->inputs_count; i++) {
        const struct hcl_input *input = &context->options->inputs[i];

        if (!input->optional && find_symbol(&context->variables, input->name) == NULL)
            return fail_unknown_symbol(context, &context->variables, input->name,
                                       (struct hcl_place){0}, error);
    }
    return 0;
}

/* Variables see no other variables or locals; their validation sees all variables. */
static int make_variables(struct hcl_context *context, struct hcl_error *error)
{
    const struct hcl_body *root = &context->file->root;
    struct hcl_symbols made = {0};
    int code = 0;

    if (context->options->inputs_count > INPUTS_MAX)
        return hcl_complain(context->file, (struct hcl_place){0}, NULL, error,
                            "more than %d values for variables", INPUTS_MAX);
    for (size_t i = 0; i < root->blocks_count && code == 0; i++) {
        const struct hcl_block *block = &root->blocks[i];
        json_t *value;

        if (text_equal(block->type, "variable")) {
            code = check_variable_block(context, block, error);
            if (code == 0)
                code = variable_value(context, block, &value, error);
            if (code == 0)
                add_symbol(&made, block->labels[0], block->place)->value = value;
        } else if (text_equal(block->type, "variables")) {
            for (size_t j = 0; j < block->body.attributes_count && code == 0; j++) {
                const struct hcl_attribute *attribute = &block->body.attributes[j];
                const char *input = input_of(context->options, attribute->name);

                if (input == NULL)
                    code = hcl_evaluate(context, NULL, attribute->value, &value, error);
                else if ((value = json_string(input)) == NULL)
                    code = hcl_complain(context->file, attribute->place, NULL, error,
                                        "the value given for it is not UTF-8 text");
                if (code == 0)
                    add_symbol(&made, attribute->name, attribute->place)->value = value;
            }
        }
    }
    context->variables = made;
    if (code == 0)
        code = check_names(context, &context->variables, "variable", error);
    if (code == 0)
        code = check_inputs(context, error);
    for (size_t i = 0; i < root->blocks_count && code == 0; i++) {
        if (text_equal(root->blocks[i].type, "variable"))
            code = validate_variable(context, &root->blocks[i], error);
    }
    return code;
}

static int make_locals(struct hcl_context *context, struct hcl_error *error)
{
    const struct hcl_body *root = &context->file->root;

    for (size_t i = 0; i < root->blocks_count; i++) {
        const struct hcl_block *block = &root->blocks[i];

        if (!text_equal(block->type, "locals"))
            continue;
        if (block->body.blocks_count > 0)
            return hcl_complain(context->file, block->body.blocks[0].place, "write name = value",
                                error, "locals has no blocks");
        for (size_t j = 0; j < block->body.attributes_count; j++) {
            const struct hcl_attribute *attribute = &block->body.attributes[j];

            add_symbol(&context->locals, attribute->name, attribute->place)->attribute = attribute;
        }
    }
    int code = check_names(context, &context->locals, "local", error);
    /* In the file's order, so that a local that builds on the one before finds it evaluated. */
    for (size_t i = 0; i < root->blocks_count && code == 0; i++) {
        const struct hcl_body *body = &root->blocks[i].body;

        if (!text_equal(root->blocks[i].type, "locals"))
            continue;
        for (size_t j = 0; j < body->attributes_count && code == 0; j++)
            code = evaluate_symbol(context, find_symbol(&context->locals, body->attributes[j].name),
                                   body->attributes[j].place, error);
    }
    return code;
}

int hcl_context_new(const struct hcl_file *file, const struct hcl_options *options,
                    struct hcl_context **ret_context, struct hcl_error *error)
{
    struct hcl_context *context = calloc(1, sizeof(*context));

    check(context != NULL);
    context->file = file;
    context->options = options;
    context->budget = BUDGET_BASE + (uint64_t)file->length * BUDGET_A_BYTE;
    int code = make_variables(context, error);
    if (code == 0)
        code = make_locals(context, error);
    if (code != 0) {
        hcl_context_free(context);
        return code;
    }
    *ret_context = context;
    return 0;
}

static void free_symbols(struct hcl_symbols *symbols)
{
    for (size_t i = 0; i < symbols->count; i++)
        json_decref(symbols->items[i].value);
    free(symbols->items);
}

void hcl_context_free(struct hcl_context *context)
{
    if (context == NULL)
        return;
    free_symbols(&context->variables);
    free_symbols(&context->locals);
    free(context);
}
