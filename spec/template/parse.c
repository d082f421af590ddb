/*
 * Reading a template: text, actions between delimiters, and the tree of both.
 *
 * Follows Go's text/template/parse.  Names of functions are looked up here, so that a template that
 * asks for what there is not is refused before anything runs.
 */
#include "spec/template/tree.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistr.h>

struct reading {
    struct template *template;
    const char *at, *end;
    const char *left, *right;
    size_t left_length, right_length;
    unsigned line, depth;
    unsigned ranges; /* that are open */
    const char **variables;
    size_t variables_count; /* that are declared; the first is the data, "" */
    bool alone;             /* the node has no servers */
    bool in_action, trims;  /* the text behind the last action loses its first spaces */
    struct err *err;
    int code;
};

static void fail(struct reading *reading, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void fail(struct reading *reading, const char *format, ...)
{
    char text[ERR_TEXT_SIZE];
    va_list arguments;

    if (reading->code != 0)
        return;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments); /* may be cut */
    va_end(arguments);
    text_clean(text);
    text_whole(text);
    reading->code =
        err_set(reading->err, ERR_INVALID, "template: line %u: %s", reading->line, text);
}

static bool starts(const struct reading *reading, const char *what, size_t length)
{
    return (size_t)(reading->end - reading->at) >= length && memcmp(reading->at, what, length) == 0;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void advance(struct reading *reading, size_t length)
{
    const char *end = reading->at + length, *line;

    while ((line = memchr(reading->at, '\n', (size_t)(end - reading->at))) != NULL) {
        reading->line++;
        reading->at = line + 1;
    }
    reading->at = end;
}

static void skip_spaces(struct reading *reading)
{
    while (reading->at < reading->end && is_space(*reading->at))
        advance(reading, 1);
}

/* At the end of an action, " -}}" included. */
static size_t closing(const struct reading *reading)
{
    if (starts(reading, reading->right, reading->right_length))
        return reading->right_length;
    if (reading->at < reading->end && *reading->at == '-' && is_space(reading->at[-1]) &&
        (size_t)(reading->end - reading->at) > reading->right_length &&
        memcmp(reading->at + 1, reading->right, reading->right_length) == 0)
        return reading->right_length + 1;
    return 0;
}

static bool close_action(struct reading *reading)
{
    skip_spaces(reading);
    size_t length = closing(reading);
    if (length == 0) {
        fail(reading,
             reading->at == reading->end ? "an action is not closed"
                                         : "unexpected \"%.20s\" in an action",
             reading->at);
        return false;
    }
    reading->trims = length > reading->right_length;
    advance(reading, length);
    return true;
}

/* What is declared is known until the end of its block. */
static void declare(struct reading *reading, const char *name)
{
    if (reading->variables_count == VARIABLES_MAX)
        fail(reading, "more than %d variables", VARIABLES_MAX);
    else
        reading->variables[reading->variables_count++] = name;
}

static void check_variable(struct reading *reading, const char *name)
{
    for (size_t i = reading->variables_count; i > 0; i--) {
        if (text_equal(reading->variables[i - 1], name))
            return;
    }
    fail(reading, "undefined variable \"$%.60s\"", name);
}

static void *make(struct reading *reading, size_t bytes)
{
    return arena_new(&reading->template->arena, bytes);
}

/* --- operands --- */

static size_t name_length(const struct reading *reading)
{
    size_t length = 0;

    while (reading->at + length < reading->end &&
           (isalnum((unsigned char)reading->at[length]) || reading->at[length] == '_' ||
            (reading->at[length] & 0x80) != 0))
        length++;
    return length;
}

static const char *take_name(struct reading *reading)
{
    size_t length = name_length(reading);
    const char *name = arena_copy(&reading->template->arena, reading->at, length);

    reading->at += length;
    return name;
}

static json_t *keep(struct reading *reading, json_t *value)
{
    if (value == NULL)
        fail(reading, "a constant is no UTF-8");
    else
        check(json_array_append_new(reading->template->literals, value) == 0);
    return value;
}

/* COUNT digits of BASE at AT, of which there may be less before END: then 0, as for a NUL. */
static uint32_t digits_at(const char *at, const char *end, size_t count, uint32_t base)
{
    uint32_t value = 0;

    if ((size_t)(end - at) < count)
        return 0;
    for (size_t i = 0; i < count; i++) {
        static const char known[] = "0123456789abcdef";
        const char *digit = strchr(known, tolower((unsigned char)at[i]));

        if (at[i] == '\0' || digit == NULL || digit >= known + base)
            return 0;
        value = value * base + (uint32_t)(digit - known);
    }
    return value;
}

/* What follows the backslash before AT, into TO (as long); where it ends, NULL: nothing of Go's. */
static const char *take_escape(const char *at, const char *end, char **to)
{
    static const char names[] = "abfnrtv\\'\"", values[] = "\a\b\f\n\r\t\v\\'\"";
    const char *named = *at == '\0' ? NULL : strchr(names, *at);
    bool octal = *at >= '0' && *at <= '7';
    size_t count = octal ? 3 : *at == 'x' ? 2 : *at == 'u' ? 4 : *at == 'U' ? 8 : 0;

    if (named != NULL) {
        *(*to)++ = values[named - names];
        return at + 1;
    }
    at += !octal && at < end;
    uint32_t value = count == 0 ? 0 : digits_at(at, end, count, octal ? 8 : 16);
    if (value == 0 || (octal && value > UINT8_MAX))
        return NULL;
    int size = count > 3 ? u8_uctomb((uint8_t *)*to, value, (ptrdiff_t)count) : 1;
    if (count <= 3)
        **to = (char)value; /* a byte, and not what has its number */
    *to += size > 0 ? size : 0;
    return size > 0 ? at + count : NULL;
}

static json_t *take_quoted(struct reading *reading)
{
    char *text = make(reading, (size_t)(reading->end - reading->at)), *to = text;

    reading->at++;
    while (reading->at < reading->end && *reading->at != '"' && *reading->at != '\n') {
        if (*reading->at != '\\' || reading->at + 1 == reading->end) {
            *to++ = *reading->at++;
            continue;
        }
        const char *end = take_escape(reading->at + 1, reading->end, &to);
        if (end == NULL)
            fail(reading, "unknown escape \\%c in a string", reading->at[1]);
        reading->at = end == NULL ? reading->at + 2 : end;
    }
    if (reading->at >= reading->end || *reading->at != '"')
        fail(reading, "a string is not closed");
    else
        reading->at++;
    return keep(reading, json_stringn(text, (size_t)(to - text)));
}

static json_t *take_raw(struct reading *reading)
{
    const char *begin = reading->at + 1;
    const char *end = memchr(begin, '`', (size_t)(reading->end - begin));

    if (end == NULL) {
        fail(reading, "a string is not closed");
        return NULL;
    }
    advance(reading, (size_t)(end + 1 - reading->at));
    return keep(reading, json_stringn(begin, (size_t)(end - begin)));
}

static json_t *take_number(struct reading *reading)
{
    char digits[64], *end;
    size_t length = 0;

    while (reading->at + length < reading->end && length < sizeof(digits) - 1 &&
           (isalnum((unsigned char)reading->at[length]) ||
            strchr("+-._", reading->at[length]) != NULL))
        length++;
    (void)text_format(digits, sizeof(digits), "%.*s", (int)length, reading->at); /* fits */
    reading->at += length;
    errno = 0;
    long long whole = strtoll(digits, &end, 0);
    if (*end == '\0' && length > 0 && errno == 0)
        return keep(reading, json_integer(whole));
    double real = strtod(digits, &end);
    if (*end != '\0' || length == 0)
        fail(reading, "bad number \"%s\"", digits);
    json_t *value = json_real(real);
    if (value == NULL)
        fail(reading, "bad number \"%s\"", digits);
    return value == NULL ? NULL : keep(reading, value);
}

static void take_fields(struct reading *reading, struct operand *operand)
{
    while (reading->at + 1 < reading->end && *reading->at == '.') {
        reading->at++;
        if (name_length(reading) == 0) {
            fail(reading, "a name is missing behind \".\"");
            return;
        }
        operand->fields = arena_more(&reading->template->arena, operand->fields,
                                     operand->fields_count, sizeof(*operand->fields));
        operand->fields[operand->fields_count++] = take_name(reading);
    }
}

static void take_word(struct reading *reading, struct operand *operand)
{
    const char *name = take_name(reading), *why;

    if (text_equal(name, "true") || text_equal(name, "false")) {
        operand->value = keep(reading, json_boolean(text_equal(name, "true")));
        return;
    }
    if (text_equal(name, "nil")) {
        operand->value = keep(reading, json_null());
        return;
    }
    operand->kind = OPERAND_FUNCTION;
    operand->name = name;
    operand->function = function_find(name, reading->alone, &why);
    if (operand->function == NULL && why != NULL)
        fail(reading, "function \"%s\" %s", name, why);
    else if (operand->function == NULL)
        fail(reading, "function \"%s\" not defined", name);
}

static struct pipe *take_pipe(struct reading *reading);

static void take_parenthesis(struct reading *reading, struct operand *operand)
{
    reading->at++;
    operand->kind = OPERAND_PIPE;
    operand->pipe = take_pipe(reading);
    skip_spaces(reading);
    if (reading->code == 0 && (reading->at >= reading->end || *reading->at != ')'))
        fail(reading, "a parenthesis is not closed");
    else if (reading->code == 0)
        reading->at++;
}

static struct operand *take_operand(struct reading *reading)
{
    struct operand *operand = make(reading, sizeof(*operand));
    char c = *reading->at, next = reading->at + 1 < reading->end ? reading->at[1] : '\0';

    if (c == '"') {
        operand->value = take_quoted(reading);
    } else if (c == '`') {
        operand->value = take_raw(reading);
    } else if (c == '(') {
        take_parenthesis(reading, operand);
    } else if (c == '$') {
        reading->at++;
        operand->kind = OPERAND_VARIABLE;
        operand->name = take_name(reading);
        check_variable(reading, operand->name);
    } else if (c == '.' && !isdigit((unsigned char)next)) {
        operand->kind = OPERAND_DOT;
        if (!isalpha((unsigned char)next) && next != '_')
            reading->at++; /* alone */
    } else if (isalpha((unsigned char)c) || c == '_') {
        take_word(reading, operand);
    } else {
        operand->value = take_number(reading);
    }
    if (reading->code == 0)
        take_fields(reading, operand);
    return operand;
}

/* --- commands and pipelines --- */

static bool ends_command(const struct reading *reading)
{
    return reading->at >= reading->end || *reading->at == '|' || *reading->at == ')' ||
           closing(reading) > 0;
}

static struct command *take_command(struct reading *reading)
{
    struct command *command = make(reading, sizeof(*command));
    struct operand **last = &command->first;
    size_t count = 0;

    for (skip_spaces(reading); reading->code == 0 && !ends_command(reading); skip_spaces(reading)) {
        if (count++ > ARGUMENTS_MAX)
            fail(reading, "more than %d arguments", ARGUMENTS_MAX);
        *last = take_operand(reading);
        last = &(*last)->next;
    }
    if (command->first == NULL)
        fail(reading, "a value is missing");
    return command;
}

/* "$a :=", "$a, $b :=" or "$a =", if that is what comes. */
static void take_declaration(struct reading *reading, struct pipe *pipe)
{
    struct reading saved = *reading;
    const char *names[2] = {NULL, NULL};
    unsigned count = 0;

    while (count < 2 && reading->at < reading->end && *reading->at == '$') {
        reading->at++;
        names[count++] = take_name(reading);
        skip_spaces(reading);
        if (reading->at >= reading->end || *reading->at != ',')
            break;
        reading->at++;
        skip_spaces(reading);
    }
    bool declares = starts(reading, ":=", 2), assigns = starts(reading, "=", 1);
    if (count == 0 || (!declares && !assigns)) {
        *reading = saved;
        return;
    }
    reading->at += declares ? 2 : 1;
    pipe->assigns = assigns;
    pipe->variables_count = count;
    pipe->variables[0] = names[0];
    pipe->variables[1] = names[1];
    /* As in Go, which knows one that is only set, too, until that is done. */
    for (unsigned i = 0; i < count; i++)
        declare(reading, names[i]);
}

static struct pipe *take_pipe(struct reading *reading)
{
    struct pipe *pipe = make(reading, sizeof(*pipe));
    struct command **last = &pipe->first;

    if (++reading->depth > DEPTH_MAX)
        fail(reading, "nested more than %d deep", DEPTH_MAX);
    skip_spaces(reading);
    take_declaration(reading, pipe);
    for (;;) {
        *last = take_command(reading);
        last = &(*last)->next;
        if (reading->code != 0 || reading->at >= reading->end || *reading->at != '|')
            break;
        reading->at++;
    }
    reading->depth--;
    return pipe;
}

/* --- text and actions --- */

/* Takes the word at the begin of an action, if it is WORD. */
static bool take_keyword(struct reading *reading, const char *word)
{
    size_t length = strlen(word);

    if (name_length(reading) != length || memcmp(reading->at, word, length) != 0)
        return false;
    reading->at += length;
    return true;
}

/* Up to the next action, into which it leads; the text in between, or NULL if that is empty. */
static struct node *take_text(struct reading *reading)
{
    const char *begin = reading->at, *end = reading->end;
    unsigned line = reading->line;
    const char *found = memmem(begin, (size_t)(end - begin), reading->left, reading->left_length);

    if (found != NULL)
        end = found;
    advance(reading, (size_t)(end - begin));
    for (; reading->trims && begin < end && is_space(*begin); begin++)
        ;
    reading->trims = false;
    reading->in_action = found != NULL;
    if (reading->in_action) {
        advance(reading, reading->left_length);
        if (reading->at + 1 < reading->end && *reading->at == '-' && is_space(reading->at[1])) {
            reading->at++;
            for (; begin < end && is_space(end[-1]); end--)
                ;
        }
    }
    if (begin == end)
        return NULL;
    struct node *node = make(reading, sizeof(*node));
    *node =
        (struct node){.kind = NODE_TEXT,
                      .line = line,
                      .text = arena_copy(&reading->template->arena, begin, (size_t)(end - begin)),
                      .length = (size_t)(end - begin)};
    return node;
}

static void skip_comment(struct reading *reading)
{
    const char *end = memmem(reading->at, (size_t)(reading->end - reading->at), "*/", 2);

    if (end == NULL) {
        fail(reading, "a comment is not closed");
        return;
    }
    advance(reading, (size_t)(end + 2 - reading->at));
    (void)close_action(reading); /* it tells */
}

static const char *take_string(struct reading *reading)
{
    skip_spaces(reading);
    char c = reading->at < reading->end ? *reading->at : '\0';
    json_t *name = c == '"' ? take_quoted(reading) : c == '`' ? take_raw(reading) : NULL;

    if (name == NULL)
        fail(reading, "the name of a template is missing");
    return name == NULL ? "" : json_string_value(name);
}

enum end { END_OF_TEXT, END_END, END_ELSE };

static enum end take_list(struct reading *reading, struct node **last);

/* Behind "else": another condition, or what is otherwise. */
static void take_branches(struct reading *reading, struct node *node);

static void take_otherwise(struct reading *reading, struct node *node)
{
    static const struct {
        const char *word;
        enum node_kind kind;
    } again[] = {{"if", NODE_IF}, {"with", NODE_WITH}};

    skip_spaces(reading);
    for (size_t i = 0; i < COUNT_OF(again); i++) {
        if (node->kind != again[i].kind || !take_keyword(reading, again[i].word))
            continue;
        node->otherwise = make(reading, sizeof(*node));
        *node->otherwise = (struct node){.kind = node->kind, .line = reading->line};
        if (++reading->depth > DEPTH_MAX)
            fail(reading, "nested more than %d deep", DEPTH_MAX);
        else
            take_branches(reading, node->otherwise);
        reading->depth--;
        return;
    }
    if (close_action(reading) && take_list(reading, &node->otherwise) != END_END)
        fail(reading, "\"end\" is missing");
}

static void take_branches(struct reading *reading, struct node *node)
{
    size_t count = reading->variables_count;

    node->pipe = take_pipe(reading);
    if (reading->code != 0 || !close_action(reading))
        return;
    reading->ranges += node->kind == NODE_RANGE;
    enum end end = take_list(reading, &node->then);
    reading->ranges -= node->kind == NODE_RANGE;
    if (reading->code == 0 && end == END_ELSE)
        take_otherwise(reading, node);
    else if (end == END_OF_TEXT)
        fail(reading, "\"end\" is missing");
    reading->variables_count = count;
}

static void define(struct reading *reading, const char *name)
{
    struct template *template = reading->template;

    if (!close_action(reading))
        return;
    if (template->definitions_count == DEFINITIONS_MAX) {
        fail(reading, "more than %d templates are defined", DEFINITIONS_MAX);
        return;
    }
    struct definition *definition = &template->definitions[template->definitions_count++];
    definition->name = name;
    /* It is in no range and sees no variable but the data, wherever it stands. */
    const char *variables[VARIABLES_MAX] = {""};
    struct reading outside = *reading;
    reading->variables = variables;
    reading->variables_count = 1;
    reading->ranges = 0;
    if (take_list(reading, &definition->first) != END_END)
        fail(reading, "\"end\" is missing");
    reading->variables = outside.variables;
    reading->variables_count = outside.variables_count;
    reading->ranges = outside.ranges;
}

/* "template NAME PIPE", and of a block what it is here. */
static void take_template(struct reading *reading, struct node *node, bool is_block)
{
    node->kind = NODE_TEMPLATE;
    node->text = take_string(reading);
    skip_spaces(reading);
    if (reading->code == 0 && closing(reading) == 0)
        node->pipe = take_pipe(reading);
    if (is_block)
        define(reading, node->text);
    else
        (void)close_action(reading); /* it tells */
}

/* The action that begins; NULL: it leaves nothing. */
static struct node *take_action(struct reading *reading, enum end *ret_end)
{
    static const struct {
        const char *word;
        enum node_kind kind;
    } words[] = {{"if", NODE_IF}, {"range", NODE_RANGE}, {"with", NODE_WITH}};
    struct node *node = make(reading, sizeof(*node));

    node->line = reading->line;
    skip_spaces(reading);
    if (starts(reading, "/*", 2)) {
        skip_comment(reading);
        return NULL;
    }
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        if (take_keyword(reading, words[i].word)) {
            node->kind = words[i].kind;
            take_branches(reading, node);
            return node;
        }
    }
    if (take_keyword(reading, "end") || take_keyword(reading, "else")) {
        *ret_end = reading->at[-1] == 'd' ? END_END : END_ELSE;
        if (*ret_end == END_END)
            (void)close_action(reading); /* it tells */
        return NULL;
    }
    if (take_keyword(reading, "define")) {
        define(reading, take_string(reading));
        return NULL;
    }
    if (take_keyword(reading, "template") || take_keyword(reading, "block")) {
        take_template(reading, node, reading->at[-1] == 'k');
        return node;
    }
    if (take_keyword(reading, "break") || take_keyword(reading, "continue"))
        node->kind = reading->at[-1] == 'k' ? NODE_BREAK : NODE_CONTINUE;
    else
        node->kind = NODE_ACTION;
    if (node->kind == NODE_ACTION)
        node->pipe = take_pipe(reading);
    else if (reading->ranges == 0)
        fail(reading, "{{%s}} outside {{range}}", node->kind == NODE_BREAK ? "break" : "continue");
    if (reading->code == 0)
        (void)close_action(reading); /* it tells */
    return node;
}

static enum end take_list(struct reading *reading, struct node **last)
{
    enum end end = END_OF_TEXT;

    if (++reading->depth > DEPTH_MAX)
        fail(reading, "nested more than %d deep", DEPTH_MAX);
    while (reading->code == 0 && end == END_OF_TEXT && reading->at < reading->end) {
        struct node *text = take_text(reading);
        struct node *action = reading->in_action ? take_action(reading, &end) : NULL;

        if (text != NULL) {
            *last = text;
            last = &text->next;
        }
        if (action != NULL) {
            *last = action;
            last = &action->next;
        }
    }
    reading->depth--;
    return end;
}

int template_parse(const char *text, size_t length, const char *left, const char *right, bool alone,
                   struct template **ret_template, struct err *err)
{
    struct template *template = calloc(1, sizeof(*template));
    const char *variables[VARIABLES_MAX] = {""};
    struct reading reading = {
        .template = template,
        .variables = variables,
        .variables_count = 1,
        .left = *left == '\0' ? "{{" : left,
        .right = *right == '\0' ? "}}" : right,
        .line = 1,
        .alone = alone,
        .err = err,
    };

    check(template != NULL);
    template->literals = json_array();
    reading.left_length = strlen(reading.left);
    reading.right_length = strlen(reading.right);
    if (length > TEMPLATE_BYTES_MAX) {
        template_free(template);
        return err_set(err, ERR_LIMIT, "template: longer than %d bytes", TEMPLATE_BYTES_MAX);
    }
    /* A copy, behind which a few bytes may be looked at. */
    reading.at = arena_copy(&template->arena, text, length);
    reading.end = reading.at + length;
    if (take_list(&reading, &template->first) != END_OF_TEXT)
        fail(&reading, "\"end\" or \"else\" without a begin");
    if (reading.code != 0) {
        template_free(template);
        return reading.code;
    }
    *ret_template = template;
    return 0;
}

void template_free(struct template *template)
{
    if (template == NULL)
        return;
    json_decref(template->literals);
    arena_free(&template->arena);
    free(template);
}
