/*
 * The expression half of the parser.  Follows the specification's grammar; the one addition is
 * that a conditional may have its branches on the next lines inside brackets, as usual there.
 *
 * Newlines are space between ( ) and [ ], and inside ${ }; between { } of an object they separate
 * items.  Whoever changes that restores it before reading past the closing token.
 */
#include "spec/hcl/number.h"
#include "spec/hcl/scan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Appends PART to the list whose last link is *TAIL. */
static void append(struct hcl_expression ***tail, struct hcl_expression *part)
{
    **tail = part;
    *tail = &part->next;
}

static struct hcl_expression *fail_expected(struct hcl_parser *parser, const char *what,
                                            const char *hint)
{
    char found[64];

    hcl_token_text(parser, found, sizeof(found));
    return hcl_fail(parser, parser->place, hint, "expected %s, found %s", what, found);
}

static struct hcl_expression *parse_number(struct hcl_parser *parser)
{
    const char *text = hcl_place_text(parser, parser->place);
    struct hcl_expression *node = hcl_node(parser, NODE_LITERAL, parser->place);

    if (node == NULL)
        return NULL;
    json_t *number = hcl_number_parse(text);
    if (number == NULL)
        return hcl_fail(parser, parser->place, NULL, "this number is too large");
    node->value = hcl_keep_value(parser->file, number);
    hcl_next_token(parser);
    return node;
}

/* The rest of `(arguments)`; the held token is the parenthesis. */
static struct hcl_expression *parse_call(struct hcl_parser *parser, struct hcl_place name)
{
    struct hcl_expression *call = hcl_node(parser, NODE_CALL, name);
    bool outer = parser->skip_newlines;

    if (call == NULL)
        return NULL;
    call->call.name = hcl_place_text(parser, name);
    call->call.name_place = name;
    struct hcl_expression **tail = &call->call.first;
    parser->skip_newlines = true;
    hcl_next_token(parser);
    while (parser->token != ')') {
        struct hcl_expression *argument = hcl_parse_expression(parser);
        if (argument == NULL)
            return NULL;
        append(&tail, argument);
        call->call.count++;
        if (parser->token == TOKEN_ELLIPSIS) {
            call->flag = true;
            hcl_next_token(parser);
            if (parser->token != ')')
                return fail_expected(parser, "\")\" after \"...\"",
                                     "only the last argument can be spread");
        } else if (parser->token == ',') {
            hcl_next_token(parser);
        } else if (parser->token != ')') {
            return fail_expected(parser, "\",\" or \")\" in the arguments", NULL);
        }
    }
    parser->skip_newlines = outer;
    hcl_next_token(parser);
    call->place = hcl_place_since(parser, name);
    return call;
}

/* `for k, v in collection :` and what follows, up to the closing CLOSE which stays held. */
static struct hcl_expression *parse_for(struct hcl_parser *parser, struct hcl_place open, int close)
{
    struct hcl_expression *node = hcl_node(parser, NODE_FOR, open);

    if (node == NULL)
        return NULL;
    struct hcl_for *loop = hcl_allocate(parser->file, sizeof(*loop));
    node->loop = loop;
    hcl_next_token(parser); /* for */
    for (int names = 0;; names++) {
        if (parser->token != TOKEN_IDENTIFIER)
            return fail_expected(parser, "a name after \"for\"",
                                 "a for expression is [for item in list : value]");
        loop->key_name = loop->value_name;
        loop->value_name = hcl_place_text(parser, parser->place);
        hcl_next_token(parser);
        if (parser->token != ',' || names == 1)
            break;
        hcl_next_token(parser);
    }
    if (!hcl_token_is(parser, "in"))
        return fail_expected(parser, "\"in\"", "a for expression is [for item in list : value]");
    hcl_next_token(parser);
    loop->collection = hcl_parse_expression(parser);
    if (loop->collection == NULL)
        return NULL;
    if (parser->token != ':')
        return fail_expected(parser, "\":\"", "a for expression is [for item in list : value]");
    hcl_next_token(parser);
    loop->value = hcl_parse_expression(parser);
    if (loop->value == NULL)
        return NULL;
    if (close == '}') {
        if (parser->token != TOKEN_ARROW)
            return fail_expected(parser, "\"=>\"",
                                 "a for expression in braces is {for k, v in map : k => v}");
        hcl_next_token(parser);
        loop->key = loop->value;
        loop->value = hcl_parse_expression(parser);
        if (loop->value == NULL)
            return NULL;
        if (parser->token == TOKEN_ELLIPSIS) {
            loop->grouped = true;
            hcl_next_token(parser);
        }
    }
    if (hcl_token_is(parser, "if")) {
        hcl_next_token(parser);
        loop->condition = hcl_parse_expression(parser);
        if (loop->condition == NULL)
            return NULL;
    }
    if (parser->token != close)
        return fail_expected(parser, close == '}' ? "\"}\"" : "\"]\"", NULL);
    return node;
}

static struct hcl_expression *parse_list(struct hcl_parser *parser)
{
    struct hcl_place open = parser->place;
    bool outer = parser->skip_newlines;
    struct hcl_expression *list;

    parser->skip_newlines = true;
    hcl_next_token(parser);
    if (hcl_token_is(parser, "for")) {
        list = parse_for(parser, open, ']');
        if (list == NULL)
            return NULL;
    } else {
        list = hcl_node(parser, NODE_LIST, open);
        if (list == NULL)
            return NULL;
        struct hcl_expression **tail = &list->parts.first;
        while (parser->token != ']') {
            struct hcl_expression *item = hcl_parse_expression(parser);
            if (item == NULL)
                return NULL;
            append(&tail, item);
            list->parts.count++;
            if (parser->token == ',')
                hcl_next_token(parser);
            else if (parser->token == TOKEN_END)
                return hcl_fail(parser, open, NULL, "this list is not closed");
            else if (parser->token != ']')
                return fail_expected(parser, "\",\" or \"]\" in the list", NULL);
        }
    }
    parser->skip_newlines = outer;
    hcl_next_token(parser);
    list->place = hcl_place_since(parser, open);
    return list;
}

/* The key of an object item: a bare name stands for itself, and so does a bare null. */
static struct hcl_expression *parse_key(struct hcl_parser *parser)
{
    bool is_null = hcl_token_is(parser, "null");
    struct hcl_expression *key = hcl_parse_expression(parser);

    if (key != NULL && is_null && key->kind == NODE_LITERAL)
        key->value = hcl_keep_value(parser->file, json_string("null"));
    if (key == NULL || key->kind != NODE_VARIABLE || key->flag)
        return key;
    if (key->variable.steps != NULL)
        return hcl_fail(parser, key->place,
                        "write it in parentheses if it is a reference, in quotes if it is a name",
                        "this key of an object is ambiguous");
    key->kind = NODE_LITERAL;
    key->value = hcl_keep_value(parser->file, json_string(key->variable.name));
    return key;
}

static bool parse_items(struct hcl_parser *parser, struct hcl_expression *object)
{
    struct hcl_expression **tail = &object->parts.first;

    for (;;) {
        while (parser->token == TOKEN_NEWLINE)
            hcl_next_token(parser);
        if (parser->token == '}')
            return true;
        if (parser->token == TOKEN_END)
            return hcl_fail(parser, object->place, NULL, "this object is not closed") != NULL;
        struct hcl_expression *key = parse_key(parser);
        if (key == NULL)
            return false;
        if (parser->token != '=' && parser->token != ':')
            return fail_expected(parser, "\"=\" after the name in this object", NULL) != NULL;
        hcl_next_token(parser);
        while (parser->token == TOKEN_NEWLINE)
            hcl_next_token(parser);
        struct hcl_expression *value = hcl_parse_expression(parser);
        if (value == NULL)
            return false;
        append(&tail, key);
        append(&tail, value);
        object->parts.count++;
        if (parser->token == ',')
            hcl_next_token(parser);
        else if (parser->token != TOKEN_NEWLINE && parser->token != '}' &&
                 parser->token != TOKEN_END)
            return fail_expected(parser, "\",\", the end of the line or \"}\" in the object",
                                 NULL) != NULL;
    }
}

static struct hcl_expression *parse_object(struct hcl_parser *parser)
{
    struct hcl_place open = parser->place;
    bool outer = parser->skip_newlines;
    struct hcl_expression *object;

    parser->skip_newlines = false;
    hcl_next_token(parser);
    while (parser->token == TOKEN_NEWLINE)
        hcl_next_token(parser);
    if (hcl_token_is(parser, "for")) {
        parser->skip_newlines = true;
        object = parse_for(parser, open, '}');
        if (object == NULL)
            return NULL;
    } else {
        object = hcl_node(parser, NODE_OBJECT, open);
        if (object == NULL || !parse_items(parser, object))
            return NULL;
    }
    parser->skip_newlines = outer;
    hcl_next_token(parser);
    object->place = hcl_place_since(parser, open);
    return object;
}

static struct hcl_expression *parse_parentheses(struct hcl_parser *parser)
{
    struct hcl_place open = parser->place;
    bool outer = parser->skip_newlines;

    parser->skip_newlines = true;
    hcl_next_token(parser);
    struct hcl_expression *inner = hcl_parse_expression(parser);
    if (inner == NULL)
        return NULL;
    if (parser->token != ')')
        return fail_expected(parser, "\")\"", NULL);
    parser->skip_newlines = outer;
    hcl_next_token(parser);
    if (inner->kind == NODE_VARIABLE)
        inner->flag = true; /* its place stays: it is the text an unknown variable keeps */
    else
        inner->place = hcl_place_since(parser, open);
    return inner;
}

static struct hcl_expression *parse_name(struct hcl_parser *parser)
{
    struct hcl_place place = parser->place;
    bool is_true = hcl_token_is(parser, "true"), is_false = hcl_token_is(parser, "false");

    if (is_true || is_false || hcl_token_is(parser, "null")) {
        struct hcl_expression *node = hcl_node(parser, NODE_LITERAL, place);
        if (node == NULL)
            return NULL;
        node->value = is_true ? json_true() : is_false ? json_false() : json_null();
        hcl_next_token(parser);
        return node;
    }
    const char *name = hcl_place_text(parser, place);
    hcl_next_token(parser);
    if (parser->token == '(')
        return parse_call(parser, place);
    struct hcl_expression *node = hcl_node(parser, NODE_VARIABLE, place);
    if (node != NULL)
        node->variable.name = name;
    return node;
}

static struct hcl_expression *parse_term(struct hcl_parser *parser)
{
    switch (parser->token) {
    case TOKEN_NUMBER:
        return parse_number(parser);
    case TOKEN_IDENTIFIER:
        return parse_name(parser);
    case '"':
        return hcl_parse_quoted(parser);
    case TOKEN_HEREDOC:
        return hcl_parse_heredoc(parser);
    case '[':
        return parse_list(parser);
    case '{':
        return parse_object(parser);
    case '(':
        return parse_parentheses(parser);
    default:
        return fail_expected(parser, "a value", NULL);
    }
}

/* OPERAND with one more step KEY: kept flat on a variable, so that its text is one stretch. */
static struct hcl_expression *add_step(struct hcl_parser *parser, struct hcl_expression *operand,
                                       struct hcl_expression *key)
{
    bool constant =
        key->kind == NODE_LITERAL && (json_is_string(key->value) || json_is_integer(key->value));

    if (operand->kind == NODE_VARIABLE && !operand->flag && constant) {
        struct hcl_step *step = hcl_allocate(parser->file, sizeof(*step));

        step->key = key->value;
        step->place = key->place;
        if (operand->variable.last == NULL)
            operand->variable.steps = step;
        else
            operand->variable.last->next = step;
        operand->variable.last = step;
        operand->place = hcl_place_since(parser, operand->place);
        return operand;
    }
    struct hcl_expression *index = hcl_node(parser, NODE_INDEX, operand->place);
    if (index == NULL)
        return NULL;
    index->place = hcl_place_since(parser, operand->place);
    index->access.operand = operand;
    index->access.key = key;
    return index;
}

/* `.name`, `.0`: the held token is what follows the dot. */
static struct hcl_expression *parse_dot(struct hcl_parser *parser, struct hcl_expression *operand)
{
    struct hcl_expression *key;

    if (parser->token == TOKEN_NUMBER) {
        const char *text = hcl_place_text(parser, parser->place);

        if (text[strspn(text, "0123456789")] != '\0') /* "0.0" is one number */
            return hcl_fail(parser, parser->place, "use brackets: [0][0]",
                            "an index behind a dot is a whole number, and not two of them");
        key = parse_number(parser);
    } else if (parser->token == TOKEN_IDENTIFIER) {
        key = hcl_node(parser, NODE_LITERAL, parser->place);
        if (key != NULL) {
            key->value =
                hcl_keep_value(parser->file, json_string(hcl_place_text(parser, parser->place)));
            hcl_next_token(parser);
        }
    } else
        key = fail_expected(parser, "a name after \".\"", NULL);
    return key == NULL ? NULL : add_step(parser, operand, key);
}

static struct hcl_expression *parse_postfix(struct hcl_parser *parser,
                                            struct hcl_expression *operand, bool dots_only);

/* The rest of `[*]` or `.*`: what follows applies to each element. */
static struct hcl_expression *parse_splat(struct hcl_parser *parser, struct hcl_expression *operand,
                                          bool dots_only)
{
    struct hcl_expression *splat = hcl_node(parser, NODE_SPLAT, operand->place);
    struct hcl_expression *each = hcl_node(parser, NODE_VARIABLE, parser->place);

    if (splat == NULL || each == NULL)
        return NULL;
    each->variable.name = "*";
    each = parse_postfix(parser, each, dots_only);
    if (each == NULL)
        return NULL;
    splat->access.operand = operand;
    splat->access.key = each;
    splat->place = hcl_place_since(parser, operand->place);
    return splat;
}

static struct hcl_expression *parse_brackets(struct hcl_parser *parser,
                                             struct hcl_expression *operand)
{
    bool outer = parser->skip_newlines;

    parser->skip_newlines = true;
    hcl_next_token(parser);
    if (parser->token == '*') {
        hcl_next_token(parser);
        if (parser->token != ']')
            return fail_expected(parser, "\"]\"", NULL);
        parser->skip_newlines = outer;
        hcl_next_token(parser);
        return parse_splat(parser, operand, false);
    }
    struct hcl_expression *key = hcl_parse_expression(parser);
    if (key == NULL)
        return NULL;
    if (parser->token != ']')
        return fail_expected(parser, "\"]\"", NULL);
    parser->skip_newlines = outer;
    hcl_next_token(parser);
    return add_step(parser, operand, key);
}

/* Splats nest through parse_splat, one level of the nesting bound each. */
static struct hcl_expression *parse_postfix(struct hcl_parser *parser,
                                            struct hcl_expression *operand, bool dots_only)
{
    if (!hcl_enter(parser))
        return NULL;
    while (operand != NULL && !parser->failed) {
        if (parser->token == '.') {
            hcl_next_token(parser);
            if (parser->token == '*') {
                if (dots_only)
                    return hcl_fail(parser, parser->place, "use [*]",
                                    "\".*\" cannot follow another \".*\"");
                hcl_next_token(parser);
                operand = parse_splat(parser, operand, true);
            } else
                operand = parse_dot(parser, operand);
        } else if (parser->token == '[' && !dots_only)
            operand = parse_brackets(parser, operand);
        else
            break;
    }
    hcl_leave(parser);
    return parser->failed ? NULL : operand;
}

static struct hcl_expression *parse_unary(struct hcl_parser *parser)
{
    struct hcl_place place = parser->place;

    if (parser->token != '!' && parser->token != '-') {
        struct hcl_expression *term = parse_term(parser);
        return term == NULL ? NULL : parse_postfix(parser, term, false);
    }
    struct hcl_expression *node =
        hcl_node(parser, parser->token == '!' ? NODE_NOT : NODE_NEGATE, place);
    if (node == NULL || !hcl_enter(parser))
        return NULL;
    hcl_next_token(parser);
    node->operation.operand = parse_unary(parser);
    if (node->operation.operand == NULL)
        return NULL;
    hcl_leave(parser);
    node->place = hcl_place_since(parser, place);
    return node;
}

/* The level and operator of a token; level 0 for anything else. */
static int operator_level(int token, enum hcl_operator *ret_operator)
{
    static const struct {
        int token, level;
        enum hcl_operator op;
    } operators[] = {
        {TOKEN_OR, 1, OP_OR},       {TOKEN_AND, 2, OP_AND},
        {TOKEN_EQUAL, 3, OP_EQUAL}, {TOKEN_UNEQUAL, 3, OP_UNEQUAL},
        {'<', 4, OP_LESS},          {TOKEN_LESS_EQUAL, 4, OP_LESS_EQUAL},
        {'>', 4, OP_GREATER},       {TOKEN_GREATER_EQUAL, 4, OP_GREATER_EQUAL},
        {'+', 5, OP_ADD},           {'-', 5, OP_SUBTRACT},
        {'*', 6, OP_MULTIPLY},      {'/', 6, OP_DIVIDE},
        {'%', 6, OP_MODULO},
    };

    for (size_t i = 0; i < COUNT_OF(operators); i++) {
        if (operators[i].token == token) {
            *ret_operator = operators[i].op;
            return operators[i].level;
        }
    }
    return 0;
}

/* Operators of at least LEVEL, left to right.  Recursion is at most one call for each level. */
static struct hcl_expression *parse_operators(struct hcl_parser *parser, int level)
{
    struct hcl_expression *left = parse_unary(parser);
    enum hcl_operator op;
    int found;

    while (left != NULL && (found = operator_level(parser->token, &op)) >= level) {
        struct hcl_expression *node = hcl_node(parser, NODE_BINARY, left->place);
        if (node == NULL)
            return NULL;
        hcl_next_token(parser);
        struct hcl_expression *right = parse_operators(parser, found + 1);
        if (right == NULL)
            return NULL;
        node->operation.operand = left;
        node->operation.other = right;
        node->operation.op = op;
        node->place = hcl_place_since(parser, left->place);
        left = node;
    }
    return left;
}

struct hcl_expression *hcl_parse_expression(struct hcl_parser *parser)
{
    if (!hcl_enter(parser))
        return NULL;
    struct hcl_expression *first = parse_operators(parser, 1);
    if (first == NULL || parser->failed)
        return NULL;
    if (parser->token == '?') {
        struct hcl_expression *node = hcl_node(parser, NODE_CONDITIONAL, first->place);
        if (node == NULL)
            return NULL;
        hcl_next_token(parser);
        node->operation.condition = first;
        node->operation.operand = hcl_parse_expression(parser);
        if (node->operation.operand == NULL)
            return NULL;
        if (parser->token != ':')
            return fail_expected(parser, "\":\"", "a conditional is condition ? this : that");
        hcl_next_token(parser);
        node->operation.other = hcl_parse_expression(parser);
        if (node->operation.other == NULL)
            return NULL;
        node->place = hcl_place_since(parser, first->place);
        first = node;
    }
    hcl_leave(parser);
    return first;
}
