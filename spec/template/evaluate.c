/*
 * Evaluating a template: values are JSON's, as consul-template's functions make them.
 *
 * Follows Go's text/template/exec: a pipeline hands each value on as the last argument of the next
 * command, variables live until the end of their block, `and` and `or` look no further than they
 * must.
 */
#include "spec/template/tree.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is in quotes, which may be cut, and so may what is behind it. */
static void hide_quoted(char *text)
{
    char *quote = strchr(text, '"');

    if (quote != NULL && (size_t)(quote - text) < ERR_TEXT_SIZE - sizeof("[hidden]"))
        memcpy(quote, "[hidden]", sizeof("[hidden]"));
}

json_t *template_fail(struct evaluating *evaluating, int code, const char *format, ...)
{
    char text[ERR_TEXT_SIZE];
    va_list arguments;

    if (evaluating->code != 0)
        return NULL;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments); /* may be cut */
    va_end(arguments);
    if (evaluating->traced != NULL && evaluating->calls > 0)
        hide_quoted(text);
    text_clean(text);
    text_whole(text);
    evaluating->code =
        err_set(evaluating->err, code, "template: line %u: %s", evaluating->line, text);
    return NULL;
}

bool template_charge(struct evaluating *evaluating, size_t steps)
{
    if (evaluating->code == 0 && steps > STEPS_MAX - evaluating->steps)
        (void)template_fail(evaluating, ERR_LIMIT, "it takes more than %d steps", STEPS_MAX);
    else if (evaluating->code == 0)
        evaluating->steps += (unsigned)steps;
    return evaluating->code == 0;
}

json_t *template_text(struct evaluating *evaluating, const char *text, size_t length)
{
    /* What is made costs, so that making is bounded in all. */
    if (length > TEMPLATE_BYTES_MAX)
        return template_fail(evaluating, ERR_LIMIT, "a text is longer than %d bytes",
                             TEMPLATE_BYTES_MAX);
    if (!template_charge(evaluating, 1 + length / 256))
        return NULL;
    if (length > 0 && memchr(text, '\0', length) != NULL) /* what uses it would end there */
        return template_fail(evaluating, ERR_INVALID, "a text has a NUL byte");
    json_t *value = json_stringn(text, length);
    return value != NULL ? value : template_fail(evaluating, ERR_INVALID, "a text is no UTF-8");
}

bool template_truth(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return json_object_size(value) > 0;
    case JSON_ARRAY:
        return json_array_size(value) > 0;
    case JSON_STRING:
        return json_string_length(value) > 0;
    case JSON_INTEGER:
        return json_integer_value(value) != 0;
    case JSON_REAL:
        return json_real_value(value) != 0;
    case JSON_TRUE:
        return true;
    case JSON_FALSE:
    case JSON_NULL:
        break;
    }
    return false;
}

/* --- what is rendered --- */

static void put(struct evaluating *evaluating, const char *text, size_t length)
{
    size_t need = evaluating->out_length + length + 1;

    if (length > TEMPLATE_BYTES_MAX - evaluating->out_length) {
        (void)template_fail(evaluating, ERR_LIMIT, "it renders more than %d bytes",
                            TEMPLATE_BYTES_MAX);
        return;
    }
    if (need > evaluating->out_size) {
        size_t size = need * 2;

        evaluating->out = realloc(evaluating->out, size);
        check(evaluating->out != NULL);
        evaluating->out_size = size;
    }
    memcpy(evaluating->out + evaluating->out_length, text, length);
    evaluating->out_length += length;
    evaluating->out[evaluating->out_length] = '\0';
}

/* --- variables --- */

static void declare(struct evaluating *evaluating, const char *name, json_t *value)
{
    if (evaluating->variables_count == VARIABLES_MAX) {
        (void)template_fail(evaluating, ERR_LIMIT, "more than %d variables", VARIABLES_MAX);
        return;
    }
    evaluating->variables[evaluating->variables_count++] =
        (struct variable){.name = name, .value = json_incref(value)};
}

static void forget(struct evaluating *evaluating, size_t count)
{
    while (evaluating->variables_count > count)
        json_decref(evaluating->variables[--evaluating->variables_count].value);
}

static struct variable *find_variable(struct evaluating *evaluating, const char *name)
{
    for (size_t i = evaluating->variables_count; i > evaluating->variables_first; i--) {
        if (text_equal(evaluating->variables[i - 1].name, name))
            return &evaluating->variables[i - 1];
    }
    (void)template_fail(evaluating, ERR_INVALID, "undefined variable \"$%.60s\"", name);
    return NULL;
}

/* --- values --- */

static json_t *evaluate_pipe(struct evaluating *evaluating, const struct pipe *pipe, json_t *dot);

/* Takes VALUE over; a field of nothing is nothing. */
static json_t *get_fields(struct evaluating *evaluating, const struct operand *operand,
                          json_t *value)
{
    for (size_t i = 0; i < operand->fields_count && value != NULL; i++) {
        const char *name = operand->fields[i];
        json_t *field = json_object_get(value, name);

        if (variable_field(evaluating, value, name, &field)) {
            json_decref(value);
            value = field;
            continue;
        }
        if (!json_is_object(value) && !json_is_null(value))
            (void)template_fail(evaluating, ERR_INVALID, "can't evaluate field %.60s", name);
        else if (field == NULL && evaluating->world->strict)
            (void)template_fail(evaluating, ERR_INVALID, "map has no entry for key \"%.60s\"",
                                name);
        json_incref(field);
        json_decref(value);
        value = field == NULL && evaluating->code == 0 ? json_null() : field;
    }
    return value;
}

static json_t *call_function(struct evaluating *evaluating, const struct operand *operand,
                             json_t *const *arguments, size_t count)
{
    const struct function *function = operand->function;
    const struct call call = {evaluating, function->name, arguments, count};

    if (count < function->min || count > function->max)
        return template_fail(evaluating, ERR_INVALID, "%s takes %s%u argument%s, not %zu",
                             function->name,
                             function->min == function->max ? ""
                             : count < function->min        ? "at least "
                                                            : "at most ",
                             count < function->min ? function->min : function->max,
                             function->max == 1 ? "" : "s", count);
    evaluating->calls++;
    json_t *value = template_charge(evaluating, 1) ? function->run(&call) : NULL;
    evaluating->calls--;
    return value;
}

/* OPERAND alone, without arguments. */
static json_t *evaluate_operand(struct evaluating *evaluating, const struct operand *operand,
                                json_t *dot)
{
    struct variable *variable;
    json_t *value = NULL;

    if (!template_charge(evaluating, 1))
        return NULL;
    switch (operand->kind) {
    case OPERAND_VALUE:
        value = json_incref(operand->value);
        break;
    case OPERAND_DOT:
        value = json_incref(dot);
        break;
    case OPERAND_VARIABLE:
        variable = find_variable(evaluating, operand->name);
        value = variable == NULL ? NULL : json_incref(variable->value);
        break;
    case OPERAND_FUNCTION:
        value = call_function(evaluating, operand, NULL, 0);
        break;
    case OPERAND_PIPE:
        value = evaluate_pipe(evaluating, operand->pipe, dot);
        break;
    }
    return get_fields(evaluating, operand, value);
}

/* True if what is known decides already: the rest of `and` and `or` is not looked at. */
static bool is_decided(const struct operand *function, const json_t *value)
{
    return (text_equal(function->name, "and") && !template_truth(value)) ||
           (text_equal(function->name, "or") && template_truth(value));
}

/* Takes LAST over: the value of the command before, NULL: this is the first. */
static json_t *call_command(struct evaluating *evaluating, const struct command *command,
                            json_t *last, json_t *dot)
{
    json_t *arguments[ARGUMENTS_MAX + 2], *value = NULL;
    size_t count = 0;
    bool decided = false;

    for (const struct operand *operand = command->first->next;
         operand != NULL && evaluating->code == 0 && !decided; operand = operand->next) {
        json_t *argument = evaluate_operand(evaluating, operand, dot);

        if (argument != NULL)
            arguments[count++] = argument;
        decided = argument != NULL && is_decided(command->first, argument);
    }
    if (last != NULL)
        arguments[count++] = last;
    if (evaluating->code == 0 && decided)
        value = json_incref(arguments[last != NULL ? count - 2 : count - 1]);
    else if (evaluating->code == 0)
        value = call_function(evaluating, command->first, arguments, count);
    for (size_t i = 0; i < count; i++)
        json_decref(arguments[i]);
    return get_fields(evaluating, command->first, value);
}

static json_t *evaluate_command(struct evaluating *evaluating, const struct command *command,
                                json_t *last, json_t *dot)
{
    if (command->first->kind == OPERAND_FUNCTION)
        return call_command(evaluating, command, last, dot);
    if (last != NULL || command->first->next != NULL) {
        json_decref(last);
        return template_fail(evaluating, ERR_INVALID, "a value that is no function has arguments");
    }
    return evaluate_operand(evaluating, command->first, dot);
}

static json_t *evaluate_pipe(struct evaluating *evaluating, const struct pipe *pipe, json_t *dot)
{
    json_t *value = NULL;

    if (++evaluating->depth > 4 * DEPTH_MAX)
        (void)template_fail(evaluating, ERR_LIMIT, "nested more than %d deep", 4 * DEPTH_MAX);
    for (const struct command *command = pipe->first; command != NULL && evaluating->code == 0;
         command = command->next)
        value = evaluate_command(evaluating, command, value, dot);
    evaluating->depth--;
    if (evaluating->code != 0) {
        json_decref(value);
        return NULL;
    }
    return value;
}

/* What PIPE declares or sets. */
static void set_variables(struct evaluating *evaluating, const struct pipe *pipe, json_t *value)
{
    struct variable *variable;

    if (pipe->variables_count == 0)
        return;
    const char *name = pipe->variables[pipe->variables_count - 1];
    if (!pipe->assigns) {
        declare(evaluating, name, value);
        return;
    }
    variable = find_variable(evaluating, name);
    if (variable != NULL) {
        json_incref(value);
        json_decref(variable->value);
        variable->value = value;
    }
}

/* --- nodes --- */

static void walk(struct evaluating *evaluating, const struct node *node, json_t *dot);

static void run_action(struct evaluating *evaluating, const struct node *node, json_t *dot)
{
    json_t *value = evaluate_pipe(evaluating, node->pipe, dot);

    if (value == NULL)
        return;
    set_variables(evaluating, node->pipe, value);
    if (node->pipe->variables_count == 0 && json_is_null(value)) {
        put(evaluating, "<no value>", 10);
    } else if (node->pipe->variables_count == 0) {
        char *text = template_print(value);

        put(evaluating, text, strlen(text));
        free(text);
    }
    json_decref(value);
}

static void run_condition(struct evaluating *evaluating, const struct node *node, json_t *dot)
{
    size_t count = evaluating->variables_count;
    json_t *value = evaluate_pipe(evaluating, node->pipe, dot);

    if (value == NULL)
        return;
    set_variables(evaluating, node->pipe, value);
    if (template_truth(value))
        walk(evaluating, node->then, node->kind == NODE_WITH ? value : dot);
    else
        walk(evaluating, node->otherwise, dot);
    forget(evaluating, count);
    json_decref(value);
}

/* One turn of a range; false: it was the last. */
static bool run_turn(struct evaluating *evaluating, const struct node *node, json_t *key,
                     json_t *value)
{
    const struct pipe *pipe = node->pipe;
    size_t count = evaluating->variables_count;

    if (pipe->variables_count == 2)
        declare(evaluating, pipe->variables[0], key);
    if (pipe->variables_count > 0)
        declare(evaluating, pipe->variables[pipe->variables_count - 1], value);
    if (template_charge(evaluating, 1))
        walk(evaluating, node->then, value);
    forget(evaluating, count);
    bool goes_on = evaluating->code == 0 && evaluating->leaving != LEAVING_BREAK;
    evaluating->leaving = LEAVING_NOT;
    return goes_on;
}

static int compare_keys(const void *a, const void *b)
{
    const char *const *left = a, *const *right = b;

    return strcmp(*left, *right);
}

/* By the order of the keys, as in Go. */
static void range_over_map(struct evaluating *evaluating, const struct node *node, json_t *map)
{
    const char **keys = calloc(json_object_size(map) + 1, sizeof(*keys)), *key;
    size_t count = 0;
    bool goes_on = true;
    json_t *value;

    check(keys != NULL);
    json_object_foreach(map, key, value) keys[count++] = key;
    qsort(keys, count, sizeof(*keys), compare_keys);
    for (size_t i = 0; i < count && goes_on; i++) {
        json_t *name = json_string(keys[i]);

        check(name != NULL);
        goes_on = run_turn(evaluating, node, name, json_object_get(map, keys[i]));
        json_decref(name);
    }
    free(keys);
}

static void range_over_list(struct evaluating *evaluating, const struct node *node, json_t *list)
{
    bool goes_on = true;

    for (size_t i = 0; i < json_array_size(list) && goes_on; i++) {
        json_t *index = json_integer((json_int_t)i);

        goes_on = run_turn(evaluating, node, index, json_array_get(list, i));
        json_decref(index);
    }
}

static void range_over_number(struct evaluating *evaluating, const struct node *node,
                              json_int_t end)
{
    bool goes_on = true;

    for (json_int_t i = 0; i < end && goes_on; i++) {
        json_t *number = json_integer(i);

        goes_on = run_turn(evaluating, node, number, number);
        json_decref(number);
    }
}

static void run_range(struct evaluating *evaluating, const struct node *node, json_t *dot)
{
    json_t *value = evaluate_pipe(evaluating, node->pipe, dot);

    if (value == NULL)
        return;
    if (!json_is_object(value) && !json_is_array(value) && !json_is_null(value) &&
        !json_is_integer(value))
        (void)template_fail(evaluating, ERR_INVALID, "range can't iterate over this");
    else if (json_is_integer(value) && node->pipe->variables_count == 2)
        (void)template_fail(evaluating, ERR_INVALID, "range over a number has one variable");
    else if (!template_truth(value) || json_integer_value(value) < 0)
        walk(evaluating, node->otherwise, dot);
    else if (json_is_integer(value))
        range_over_number(evaluating, node, json_integer_value(value));
    else if (json_is_object(value))
        range_over_map(evaluating, node, value);
    else
        range_over_list(evaluating, node, value);
    json_decref(value);
}

/* The last that was defined by NAME is it; it sees DOT, and no variables but that. */
static void run_defined(struct evaluating *evaluating, const char *name, json_t *dot)
{
    const struct template *template = evaluating->template;
    size_t count = evaluating->variables_count, first = evaluating->variables_first;

    for (size_t i = template->definitions_count; i > 0; i--) {
        if (!text_equal(template->definitions[i - 1].name, name))
            continue;
        evaluating->variables_first = count;
        declare(evaluating, "", dot);
        walk(evaluating, template->definitions[i - 1].first, dot);
        evaluating->variables_first = first;
        forget(evaluating, count);
        return;
    }
    (void)template_fail(evaluating, ERR_INVALID, "template \"%.60s\" not defined", name);
}

static void run_template(struct evaluating *evaluating, const struct node *node, json_t *dot)
{
    json_t *value = node->pipe == NULL ? json_null() : evaluate_pipe(evaluating, node->pipe, dot);

    if (value == NULL)
        return;
    run_defined(evaluating, node->text, value);
    json_decref(value);
}

json_t *template_execute(struct evaluating *evaluating, const char *name, json_t *dot)
{
    char *out = evaluating->out;
    size_t length = evaluating->out_length, size = evaluating->out_size;
    json_t *value = NULL;

    evaluating->out = NULL;
    evaluating->out_length = evaluating->out_size = 0;
    put(evaluating, "", 0);
    run_defined(evaluating, name, dot);
    if (evaluating->code == 0)
        value = template_text(evaluating, evaluating->out, evaluating->out_length);
    free(evaluating->out);
    evaluating->out = out;
    evaluating->out_length = length;
    evaluating->out_size = size;
    return value;
}

static void run_node(struct evaluating *evaluating, const struct node *node, json_t *dot)
{
    switch (node->kind) {
    case NODE_TEXT:
        put(evaluating, node->text, node->length);
        break;
    case NODE_ACTION:
        run_action(evaluating, node, dot);
        break;
    case NODE_IF:
    case NODE_WITH:
        run_condition(evaluating, node, dot);
        break;
    case NODE_RANGE:
        run_range(evaluating, node, dot);
        break;
    case NODE_TEMPLATE:
        run_template(evaluating, node, dot);
        break;
    case NODE_BREAK:
        evaluating->leaving = LEAVING_BREAK;
        break;
    case NODE_CONTINUE:
        evaluating->leaving = LEAVING_CONTINUE;
        break;
    }
}

static void walk(struct evaluating *evaluating, const struct node *node, json_t *dot)
{
    if (++evaluating->depth > 4 * DEPTH_MAX)
        (void)template_fail(evaluating, ERR_LIMIT, "nested more than %d deep", 4 * DEPTH_MAX);
    for (; node != NULL && evaluating->code == 0 && evaluating->leaving == LEAVING_NOT;
         node = node->next) {
        evaluating->line = node->line;
        if (template_charge(evaluating, 1))
            run_node(evaluating, node, dot);
    }
    evaluating->depth--;
}

int template_render(const struct template *template, const struct template_world *world,
                    char **ret_text, size_t *ret_length, struct err *err)
{
    struct evaluating *evaluating = calloc(1, sizeof(*evaluating));

    check(evaluating != NULL);
    evaluating->template = template;
    evaluating->world = world;
    evaluating->err = err;
    put(evaluating, "", 0); /* nothing is a text, too */
    declare(evaluating, "", json_null());
    walk(evaluating, template->first, json_null());
    forget(evaluating, 0);
    variables_forget(evaluating);
    int code = evaluating->lacks && evaluating->code != ERR_LIMIT
                   ? err_set(err, ERR_AGAIN, "template: it lacks what it asks for")
                   : evaluating->code;
    if (code == 0) {
        *ret_text = evaluating->out;
        *ret_length = evaluating->out_length;
    } else {
        free(evaluating->out);
    }
    free(evaluating);
    return code;
}
