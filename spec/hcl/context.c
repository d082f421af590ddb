/*
 * Variables and locals.
 *
 * Follows nomad v1.1.2 jobspec2 (types.variables.go, types.config.go) with one difference: a local
 * is evaluated when it is first needed, so locals may refer to each other in any order and a cycle
 * is named.
 */
#include "spec/hcl/number.h"

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

/* What is given from outside for the variable NAME, or NULL. */
static const struct hcl_input *input_of(const struct hcl_options *options, const char *name)
{
    const struct hcl_input *found = NULL;

    for (size_t i = 0; i < options->inputs_count; i++) {
        if (text_equal(options->inputs[i].name, name))
            found = &options->inputs[i];
    }
    return found;
}

/* A declared variable: what is known of its type. */
struct declared {
    const char *name;
    struct hcl_place place;
    const struct hcl_expression *type; /* NULL: that of its default */
    json_t *fallback;                  /* its default, converted to its type; NULL: it has none */
};

/* Text that stands for itself, without quotes: for strings, numbers, and what has no type at all,
 * as in Nomad. */
static bool is_plain(const struct declared *variable)
{
    const struct hcl_expression *type = variable->type;

    if (type != NULL)
        return type->kind == NODE_VARIABLE && (text_equal(type->variable.name, "string") ||
                                               text_equal(type->variable.name, "number"));
    return variable->fallback == NULL || json_is_string(variable->fallback) ||
           hcl_is_number(variable->fallback);
}

/* TEXT, given from outside, as an expression. */
static int evaluate_input(struct hcl_context *context, const struct declared *variable,
                          const char *text, json_t **ret_value, struct hcl_error *error)
{
    static const char start[] = "value = ";
    char name[128];
    struct hcl_file *file;

    (void)text_format(name, sizeof(name), "<value for var.%.60s>", variable->name);
    size_t length = strlen(text) + sizeof(start);
    if (length > HCL_BYTES_MAX)
        return hcl_complain(context->file, variable->place, NULL, error,
                            "the value given for variable \"%.60s\" is too long", variable->name);
    char *source = malloc(length);
    check(source != NULL);
    (void)text_format(source, length, "%s%s", start, text);
    int code = hcl_parse(name, source, length - 1, &file, error);
    free(source);
    if (code != 0)
        return code;
    const struct hcl_attribute *value = hcl_find(&file->root, "value");
    const struct hcl_file *outer = context->file;
    const struct hcl_options *options = context->options;
    struct hcl_options bare = *options;
    bare.keep_unknown = false; /* [a,b] is a mistake, and nothing for the run time */
    context->file = file;      /* for messages */
    context->options = &bare;
    if (value == NULL || file->root.attributes_count != 1 || file->root.blocks_count != 0)
        code = hcl_complain(outer, variable->place, NULL, error,
                            "the value given for variable \"%.60s\" is not one expression",
                            variable->name);
    else
        code = hcl_evaluate(context, NULL, value->value, ret_value, error);
    context->options = options;
    context->file = outer;
    hcl_free(file);
    return code;
}

static int input_value(struct hcl_context *context, const struct declared *variable,
                       const struct hcl_input *input, json_t **ret_value, struct hcl_error *error)
{
    if (input->given != NULL) {
        int code = hcl_charge_value(context, variable->place, input->given, error);

        if (code == 0)
            *ret_value = json_incref(input->given);
        return code;
    }
    if (!is_plain(variable))
        return evaluate_input(context, variable, input->value, ret_value, error);
    *ret_value = hcl_text(input->value, strlen(input->value));
    if (*ret_value == NULL)
        return hcl_complain(context->file, variable->place, NULL, error,
                            "the value given for variable \"%.60s\" is not UTF-8 text",
                            variable->name);
    return 0;
}

/* VALUE as the default EXAMPLE is, where that says what it is; NULL if it cannot be.  As deep as
 * both, which are bounded. */
static json_t *fit(const json_t *example, json_t *value)
{
    size_t size = json_array_size(example), i;
    json_t *fitted, *item;
    const char *key;

    if (json_is_null(example) || json_is_null(value))
        return json_incref(value);
    if (json_is_string(example))
        return hcl_convert(value, HCL_STRING);
    if (json_is_boolean(example))
        return hcl_convert(value, HCL_BOOL);
    if (hcl_is_number(example))
        return hcl_convert(value, HCL_NUMBER);
    if (json_typeof(example) != json_typeof(value) || hcl_is_number(value))
        return NULL;
    fitted = json_copy(value);
    json_array_foreach(json_is_array(value) ? value : NULL, i, item)
    {
        /* A longer list goes on as it began. */
        json_t *shape = size == 0 ? NULL : json_array_get(example, i < size ? i : 0);
        json_t *made = shape == NULL ? json_incref(item) : fit(shape, item);

        if (made == NULL || json_array_set_new(fitted, i, made) != 0) {
            json_decref(fitted);
            return NULL;
        }
    }
    json_object_foreach(value, key, item)
    {
        json_t *shape = json_object_get(example, key);
        json_t *made = shape == NULL ? json_incref(item) : fit(shape, item);

        if (made == NULL || json_object_set_new(fitted, key, made) != 0) {
            json_decref(fitted);
            return NULL;
        }
    }
    return fitted;
}

/* VALUE (moved), given from outside, as VARIABLE's type or default says. */
static int convert_input(struct hcl_context *context, const struct declared *variable,
                         json_t *value, json_t **ret_value, struct hcl_error *error)
{
    int code = 0;

    if (variable->type != NULL) {
        code = hcl_convert_to(context, variable->type, value, ret_value, error);
    } else if (variable->fallback == NULL) {
        *ret_value = json_incref(value);
    } else {
        *ret_value = fit(variable->fallback, value);
        if (*ret_value == NULL)
            code = hcl_complain(
                context->file, variable->place, "a default says what type it has", error,
                "the value given for variable \"%.60s\" is %s, its default is %s", variable->name,
                hcl_type_text(value), hcl_type_text(variable->fallback));
    }
    json_decref(value);
    return code;
}

/* The value of VARIABLE before its validation. */
static int variable_value(struct hcl_context *context, const struct declared *variable,
                          json_t **ret_value, struct hcl_error *error)
{
    const struct hcl_input *input = input_of(context->options, variable->name);
    char hint[ERR_TEXT_SIZE];
    json_t *value;

    if (input != NULL) {
        int code = input_value(context, variable, input, &value, error);
        return code != 0 ? code : convert_input(context, variable, value, ret_value, error);
    }
    if (variable->fallback != NULL) {
        *ret_value = json_incref(variable->fallback);
        return 0;
    }
    (void)text_format(hint, sizeof(hint),
                      "give one with -var %.40s=VALUE or NOMAD_VAR_%.40s, or add a default",
                      variable->name, variable->name);
    return hcl_complain(context->file, variable->place, hint, error,
                        "variable \"%.60s\" has no value", variable->name);
}

/* The value of the one that BLOCK declares. */
static int block_value(struct hcl_context *context, const struct hcl_block *block,
                       json_t **ret_value, struct hcl_error *error)
{
    const struct hcl_attribute *type = hcl_find(&block->body, "type");
    const struct hcl_attribute *fallback = hcl_find(&block->body, "default");
    struct declared variable = {.name = block->labels[0], .place = block->place};
    json_t *value;
    int code = 0;

    if (fallback != NULL)
        code = hcl_evaluate(context, NULL, fallback->value, &variable.fallback, error);
    if (code == 0 && type != NULL) {
        variable.type = type->value;
        value = variable.fallback;
        variable.fallback = NULL;
        if (value != NULL)
            code = hcl_convert_to(context, type->value, value, &variable.fallback, error);
        json_decref(value);
    }
    if (code == 0)
        code = variable_value(context, &variable, ret_value, error);
    json_decref(variable.fallback);
    return code;
}

/* The same for one of a `variables` block. */
static int attribute_value(struct hcl_context *context, const struct hcl_attribute *attribute,
                           json_t **ret_value, struct hcl_error *error)
{
    struct declared variable = {.name = attribute->name, .place = attribute->place};
    int code = hcl_evaluate(context, NULL, attribute->value, &variable.fallback, error);

    if (code == 0)
        code = variable_value(context, &variable, ret_value, error);
    json_decref(variable.fallback);
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
    if (!hcl_is_name(block->labels[0]))
        return hcl_complain(context->file, block->place, NULL, error,
                            "the name of a variable begins with a letter or an underscore, and has "
                            "letters, digits, \"_\" and \"-\"");
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
                code = block_value(context, block, &value, error);
            if (code == 0)
                add_symbol(&made, block->labels[0], block->place)->value = value;
        } else if (text_equal(block->type, "variables")) {
            for (size_t j = 0; j < block->body.attributes_count && code == 0; j++) {
                const struct hcl_attribute *attribute = &block->body.attributes[j];

                code = attribute_value(context, attribute, &value, error);
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
    int code = options->literal ? 0 : make_variables(context, error);
    if (code == 0 && !options->literal)
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
