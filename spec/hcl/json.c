/*
 * HCL's syntax in JSON: the same tree, from objects and arrays.
 *
 * JSON has no blocks: whether a member of an object is one, with a label or without, is what its
 * reader knows, who says so by an hcl_form.  A labelled block is an object of its bodies by their
 * labels, a repeated one an array of them; an object of arguments may be an array of its parts.
 * Text is a template.  Members named "//" are comments, save in values.
 *
 * Texts are decoded where they stand, so that a template is read in place by the parser of native
 * syntax, which sees nothing but it; what a message shows is a copy of the file as it was.  Numbers
 * are exact, and places are kept, which is why no library for JSON does this.
 *
 * Follows the JSON syntax specification (hashicorp/hcl, json/spec.md) and json/structure.go.
 */
#include "spec/hcl/number.h"
#include "spec/hcl/scan.h"

#include <stdlib.h>
#include <string.h>

/* --- tokens --- */

/* A text of JSON: where it stands, and the bytes that it is there once it is decoded. */
struct text {
    struct hcl_place place; /* with its quotes */
    uint32_t start, length; /* decoded */
};

static void skip_space(struct hcl_parser *parser)
{
    while (parser->at < parser->file->length && strchr(" \t\r\n", hcl_peek(parser, 0)) != NULL)
        hcl_step_byte(parser);
    parser->place = hcl_place_here(parser);
}

static bool fail_expected(struct hcl_parser *parser, const char *what)
{
    skip_space(parser);
    char byte = hcl_peek(parser, 0);
    if (parser->at >= parser->file->length)
        return hcl_fail(parser, parser->place, NULL, "expected %s, but the file ends", what) !=
               NULL;
    return hcl_fail(parser, parser->place,
                    byte == '}' || byte == ']' ? "nothing follows the last comma" : NULL,
                    "expected %s", what) != NULL;
}

/* Moves over the byte WANTED. */
static bool take(struct hcl_parser *parser, char wanted)
{
    skip_space(parser);
    if (hcl_peek(parser, 0) != wanted)
        return false;
    hcl_step_byte(parser);
    return true;
}

/* The four digits of \uNNNN behind the cursor, which is on the u. */
static bool read_unit(struct hcl_parser *parser, uint32_t *ret_unit)
{
    uint32_t unit = 0;

    for (uint32_t i = 1; i <= 4; i++) {
        char byte = hcl_peek(parser, i);
        const char *digits = "0123456789abcdef", *found = NULL;

        if (byte >= 'A' && byte <= 'F')
            byte = (char)(byte - 'A' + 'a');
        if (byte != '\0')
            found = strchr(digits, byte);
        if (found == NULL)
            return hcl_fail(parser, hcl_place_here(parser), NULL,
                            "\\u needs 4 hexadecimal digits") != NULL;
        unit = unit << 4 | (uint32_t)(found - digits);
    }
    *ret_unit = unit;
    return true;
}

/* \uNNNN, of which two may be one character; half of one is what stands for a broken one. */
static bool read_character(struct hcl_parser *parser, uint32_t *ret_point)
{
    uint32_t point, low;

    if (!read_unit(parser, &point))
        return false;
    hcl_step_text(parser, 5);
    if (point >= 0xD800u && point <= 0xDBFFu && hcl_peek(parser, 0) == '\\' &&
        hcl_peek(parser, 1) == 'u') {
        hcl_step_byte(parser);
        if (!read_unit(parser, &low))
            return false;
        if (low >= 0xDC00u && low <= 0xDFFFu) {
            hcl_step_text(parser, 5);
            *ret_point = 0x10000u + ((point - 0xD800u) << 10) + (low - 0xDC00u);
            return true;
        }
        parser->at--; /* it is read by itself */
        parser->column--;
    }
    *ret_point = point >= 0xD800u && point <= 0xDFFFu ? 0xFFFDu : point;
    return true;
}

/* Decodes one escape to TO, which it does not outgrow; the cursor is behind the backslash. */
static bool decode_escape(struct hcl_parser *parser, char **to)
{
    static const char codes[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    char code = hcl_peek(parser, 0);
    const char *found = code == '\0' ? NULL : strchr(codes, code);
    struct hcl_place place = hcl_place_here(parser);
    uint32_t point;

    if (found != NULL) {
        *(*to)++ = meanings[found - codes];
        hcl_step_byte(parser);
        return true;
    }
    if (code != 'u')
        return hcl_fail(parser, place, "a backslash itself is \\\\",
                        "unknown escape in this text") != NULL;
    if (!read_character(parser, &point))
        return false;
    if (point == 0)
        return hcl_fail(parser, place, NULL, "text cannot hold a NUL") != NULL;
    *to += hcl_put_character(*to, point);
    return true;
}

/* Reads the text at the cursor, which is on its quote, and decodes it in place. */
static bool read_text(struct hcl_parser *parser, struct text *ret_text)
{
    struct text text = {.place = hcl_place_here(parser)};
    char *to = parser->file->text + parser->at + 1;

    text.start = parser->at + 1;
    hcl_step_byte(parser);
    while (hcl_peek(parser, 0) != '"') {
        unsigned char byte = (unsigned char)hcl_peek(parser, 0);

        if (parser->at >= parser->file->length)
            return hcl_fail(parser, text.place, "missing closing quote",
                            "the file ends inside this text") != NULL;
        if (byte < 0x20u)
            return hcl_fail(parser, hcl_place_here(parser), "a newline within text is \\n",
                            "a control character within text") != NULL;
        hcl_step_byte(parser);
        if (byte != '\\')
            *to++ = (char)byte;
        else if (!decode_escape(parser, &to))
            return false;
    }
    hcl_step_byte(parser);
    text.length = (uint32_t)(to - parser->file->text) - text.start;
    text.place.length = parser->at - text.place.offset;
    *ret_text = text;
    return true;
}

/* TEXT's own bytes, kept by the file. */
static const char *keep(struct hcl_parser *parser, const struct text *text)
{
    return hcl_keep_text(parser->file, parser->file->text + text->start, text->length);
}

/* --- objects and arrays --- */

struct reader;
typedef bool read_member(struct hcl_parser *parser, const struct reader *reader,
                         const struct text *name);
typedef bool read_element(struct hcl_parser *parser, const struct reader *reader);

/* What is read by the functions below, which know what of it is theirs. */
struct reader {
    enum hcl_member kind;
    const void *within; /* see hcl_form */
    const char *type;   /* of the blocks */
    struct hcl_place place;
    const char *label;     /* NULL: they have none */
    struct hcl_body *body; /* that it goes into */
    struct hcl_expression ***tail;
    size_t *count;
    bool is_variable, verbatim, is_dynamic; /* what the body is of */
};

/* The members of the object at the cursor, which is on its brace. */
static bool read_members(struct hcl_parser *parser, const struct reader *reader, read_member *read)
{
    bool more = false;

    if (!hcl_enter(parser))
        return false;
    hcl_step_byte(parser);
    while (more || !take(parser, '}')) {
        struct text name;

        skip_space(parser);
        if (hcl_peek(parser, 0) != '"')
            return fail_expected(parser, "a name in double quotes");
        if (!read_text(parser, &name))
            return false;
        if (!take(parser, ':'))
            return fail_expected(parser, "\":\" behind a name");
        skip_space(parser);
        if (!read(parser, reader, &name))
            return false;
        more = take(parser, ',');
        if (!more && hcl_peek(parser, 0) != '}')
            return fail_expected(parser, "\",\" or \"}\"");
    }
    hcl_leave(parser);
    return true;
}

static bool read_elements(struct hcl_parser *parser, const struct reader *reader,
                          read_element *read)
{
    bool more = false;

    if (!hcl_enter(parser))
        return false;
    hcl_step_byte(parser);
    while (more || !take(parser, ']')) {
        skip_space(parser);
        if (!read(parser, reader))
            return false;
        more = take(parser, ',');
        if (!more && hcl_peek(parser, 0) != ']')
            return fail_expected(parser, "\",\" or \"]\"");
    }
    hcl_leave(parser);
    return true;
}

/* --- values --- */

static struct hcl_expression *read_value(struct hcl_parser *parser, bool verbatim);

/* Has PARSE read TEXT and nothing behind it. */
static struct hcl_expression *
read_within(struct hcl_parser *parser, const struct text *text,
            struct hcl_expression *(*parse)(struct hcl_parser *parser))
{
    struct hcl_file *file = parser->file;
    struct hcl_parser inner = *parser;
    size_t length = file->length;
    char *end = file->text + text->start + text->length, behind = *end;

    inner.at = text->start;
    inner.line = text->place.line;
    inner.column = text->place.column + 1;
    inner.one_line = true;
    file->length = text->start + text->length;
    *end = '\0';
    struct hcl_expression *value = parse(&inner);
    if (value != NULL && inner.at < file->length)
        value = hcl_fail(&inner, inner.place, NULL, "unexpected text behind an expression");
    file->length = length;
    *end = behind;
    parser->failed = inner.failed;
    return value;
}

static struct hcl_expression *parse_native(struct hcl_parser *parser)
{
    parser->skip_newlines = true;
    hcl_next_token(parser);
    struct hcl_expression *value = hcl_parse_expression(parser);
    if (value != NULL && parser->token != TOKEN_END)
        return hcl_fail(parser, parser->place, NULL, "unexpected text behind an expression");
    return value;
}

/* VERBATIM: it means itself, else it is a template. */
static struct hcl_expression *value_of(struct hcl_parser *parser, const struct text *text,
                                       bool verbatim)
{
    const char *bytes = parser->file->text + text->start;
    size_t length = text->length;

    if (!verbatim &&
        (memmem(bytes, length, "${", 2) != NULL || memmem(bytes, length, "%{", 2) != NULL))
        return read_within(parser, text, hcl_parse_template);
    struct hcl_expression *node = hcl_node(parser, NODE_LITERAL, text->place);
    if (node != NULL)
        node->value = hcl_keep_value(parser->file, hcl_text(bytes, length));
    return node;
}

/* An argument of the language's own blocks that is an expression in native syntax: a type, a name.
 */
static struct hcl_expression *read_native(struct hcl_parser *parser)
{
    struct text text;

    if (hcl_peek(parser, 0) != '"')
        return read_value(parser, true);
    return read_text(parser, &text) ? read_within(parser, &text, parse_native) : NULL;
}

static void append(const struct reader *reader, struct hcl_expression *part)
{
    **reader->tail = part;
    *reader->tail = &part->next;
    (*reader->count)++;
}

static bool read_part(struct hcl_parser *parser, const struct reader *reader)
{
    struct hcl_expression *part = read_value(parser, reader->verbatim);

    if (part != NULL)
        append(reader, part);
    return part != NULL;
}

static bool read_pair(struct hcl_parser *parser, const struct reader *reader,
                      const struct text *name)
{
    struct hcl_expression *key = value_of(parser, name, reader->verbatim);

    if (key == NULL)
        return false;
    if (key->kind == NODE_LITERAL && json_is_string(key->value)) {
        struct hcl_attribute *names =
            arena_more(&parser->file->arena, (void *)(uintptr_t)reader->body->attributes,
                       reader->body->attributes_count, sizeof(*names));

        reader->body->attributes = names;
        names[reader->body->attributes_count++] =
            (struct hcl_attribute){.name = json_string_value(key->value), .place = name->place};
    }
    append(reader, key);
    return read_part(parser, reader);
}

/* Those at the cursor, which is on their brace or bracket. */
static struct hcl_expression *read_parts(struct hcl_parser *parser, bool verbatim)
{
    bool object = hcl_peek(parser, 0) == '{';
    struct hcl_expression *node =
        hcl_node(parser, object ? NODE_OBJECT : NODE_LIST, hcl_place_here(parser));
    struct hcl_body names = {0};

    if (node == NULL)
        return NULL;
    node->flag = object;
    struct hcl_expression **tail = &node->parts.first;
    struct reader reader = {
        .tail = &tail, .count = &node->parts.count, .verbatim = verbatim, .body = &names};
    bool read =
        object ? read_members(parser, &reader, read_pair) && hcl_check_duplicates(parser, &names)
               : read_elements(parser, &reader, read_part);
    if (object)
        node->parts.count /= 2; /* pairs */
    return read ? node : NULL;
}

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

static bool skip_digits(struct hcl_parser *parser)
{
    bool some = is_digit(hcl_peek(parser, 0));

    while (is_digit(hcl_peek(parser, 0)))
        hcl_step_byte(parser);
    return some;
}

/* Moves over what JSON takes for a number. */
static bool skip_number(struct hcl_parser *parser)
{
    bool sound;

    if (hcl_peek(parser, 0) == '-')
        hcl_step_byte(parser);
    bool zero = hcl_peek(parser, 0) == '0' && is_digit(hcl_peek(parser, 1));
    sound = skip_digits(parser) && !zero;
    if (hcl_peek(parser, 0) == '.') {
        hcl_step_byte(parser);
        sound = skip_digits(parser) && sound;
    }
    if (hcl_peek(parser, 0) == 'e' || hcl_peek(parser, 0) == 'E') {
        hcl_step_byte(parser);
        if (hcl_peek(parser, 0) == '+' || hcl_peek(parser, 0) == '-')
            hcl_step_byte(parser);
        sound = skip_digits(parser) && sound;
    }
    return sound;
}

static struct hcl_expression *read_number(struct hcl_parser *parser)
{
    struct hcl_place place = hcl_place_here(parser);
    struct hcl_expression *node = hcl_node(parser, NODE_LITERAL, place);

    if (node == NULL)
        return NULL;
    bool sound = skip_number(parser);
    place.length = parser->at - place.offset;
    if (!sound)
        return hcl_fail(parser, place, NULL, "this is not a number of JSON");
    json_t *number = hcl_number_parse(hcl_place_text(parser, place));
    if (number == NULL)
        return hcl_fail(parser, place, NULL, "this number is too large");
    node->value = hcl_keep_value(parser->file, number);
    node->place = place;
    return node;
}

static struct hcl_expression *read_word(struct hcl_parser *parser)
{
    static const char *const words[] = {"true", "false", "null"};
    struct hcl_place place = hcl_place_here(parser);
    uint32_t length = 0;

    while ((hcl_peek(parser, length) >= 'a' && hcl_peek(parser, length) <= 'z') ||
           (hcl_peek(parser, length) >= 'A' && hcl_peek(parser, length) <= 'Z'))
        length++;
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        if (length != strlen(words[i]) ||
            memcmp(parser->file->text + parser->at, words[i], length) != 0)
            continue;
        place.length = length;
        struct hcl_expression *node = hcl_node(parser, NODE_LITERAL, place);
        if (node == NULL)
            return NULL;
        node->value = hcl_keep_value(parser->file, i == 2 ? json_null() : json_boolean(i == 0));
        hcl_step_text(parser, length);
        return node;
    }
    (void)fail_expected(parser, "a value: text, a number, true, false, null, [...] or {...}");
    return NULL;
}

/* As deep as hcl_enter() lets it. */
static struct hcl_expression *read_value(struct hcl_parser *parser, bool verbatim)
{
    struct text text;

    skip_space(parser);
    switch (hcl_peek(parser, 0)) {
    case '{':
    case '[':
        return read_parts(parser, verbatim);
    case '"':
        return read_text(parser, &text) ? value_of(parser, &text, verbatim) : NULL;
    case '-':
        return read_number(parser);
    default:
        return is_digit(hcl_peek(parser, 0)) ? read_number(parser) : read_word(parser);
    }
}

/* --- bodies --- */

static read_member read_item;

/* One part of a body that is an array. */
static bool read_items(struct hcl_parser *parser, const struct reader *reader)
{
    if (hcl_peek(parser, 0) != '{')
        return fail_expected(parser, "an object of arguments and blocks");
    return read_members(parser, reader, read_item);
}

/* Reads what is at the cursor into BODY. */
static bool read_body(struct hcl_parser *parser, struct reader reader, struct hcl_body *body)
{
    reader.body = body;
    bool read = hcl_peek(parser, 0) == '[' && reader.kind != HCL_FREE_BLOCK
                    ? read_elements(parser, &reader, read_items)
                    : read_items(parser, &reader);
    body->end = parser->place;
    return read && hcl_check_duplicates(parser, body);
}

static bool add_block(struct hcl_parser *parser, const struct reader *reader)
{
    struct hcl_body *into = reader->body;
    const char **labels = NULL;

    if (hcl_node(parser, NODE_LITERAL, reader->place) == NULL) /* blocks count, too */
        return false;
    struct hcl_block *blocks = arena_more(&parser->file->arena, (void *)(uintptr_t)into->blocks,
                                          into->blocks_count, sizeof(*blocks));
    struct hcl_block *block = &blocks[into->blocks_count];
    into->blocks = blocks;
    if (reader->label != NULL) {
        labels = hcl_allocate(parser->file, sizeof(*labels));
        *labels = reader->label;
    }
    *block = (struct hcl_block){.type = reader->type,
                                .labels = labels,
                                .labels_count = labels != NULL,
                                .place = reader->place};
    struct hcl_body body = {0};
    if (!read_body(parser, *reader, &body))
        return false;
    block->body = body;
    into->blocks_count++;
    return true;
}

/* One block, several, or none. */
static bool read_blocks(struct hcl_parser *parser, const struct reader *reader)
{
    if (hcl_peek(parser, 0) == '{')
        return add_block(parser, reader);
    if (hcl_peek(parser, 0) == '[')
        return read_elements(parser, reader, add_block);
    if (hcl_peek(parser, 0) != 'n' || read_word(parser) == NULL)
        return fail_expected(parser, "an object, or an array of them, for this block");
    return true;
}

static bool read_label(struct hcl_parser *parser, const struct reader *reader,
                       const struct text *name)
{
    struct reader labelled = *reader;

    labelled.label = keep(parser, name);
    labelled.place = name->place;
    if (reader->is_dynamic) { /* its label is the type of the blocks that its content is of */
        const void *inner = NULL;
        enum hcl_member kind = parser->form(reader->within, labelled.label, &inner);

        labelled.within = inner;
        labelled.kind = kind == HCL_NAMED_BLOCK ? HCL_BLOCK : kind;
    }
    return read_blocks(parser, &labelled);
}

static bool read_labels(struct hcl_parser *parser, const struct reader *reader)
{
    if (hcl_peek(parser, 0) != '{')
        return fail_expected(parser, "an object of blocks by their labels");
    return read_members(parser, reader, read_label);
}

static bool read_labelled(struct hcl_parser *parser, const struct reader *reader)
{
    return hcl_peek(parser, 0) == '[' ? read_elements(parser, reader, read_labels)
                                      : read_labels(parser, reader);
}

static bool read_argument(struct hcl_parser *parser, const struct reader *reader,
                          const struct text *name)
{
    struct hcl_body *body = reader->body;
    struct hcl_attribute attribute = {.name = keep(parser, name), .place = name->place};
    bool is_type = reader->is_variable && text_equal(attribute.name, "type");
    bool is_iterator = reader->is_dynamic && text_equal(attribute.name, "iterator");

    attribute.value = is_type || is_iterator
                          ? read_native(parser)
                          : read_value(parser, reader->verbatim || reader->is_variable);
    if (attribute.value == NULL)
        return false;
    struct hcl_attribute *attributes =
        arena_more(&parser->file->arena, (void *)(uintptr_t)body->attributes,
                   body->attributes_count, sizeof(*attributes));
    attributes[body->attributes_count++] = attribute;
    body->attributes = attributes;
    return true;
}

/* What NAME is in READER's body, and what reads it if it is a block. */
static enum hcl_member kind_of(struct hcl_parser *parser, const struct reader *reader,
                               const char *name, bool at_root, struct reader *ret_inner)
{
    struct reader inner = {.type = name, .body = reader->body};
    enum hcl_member kind = HCL_ARGUMENT;

    if (reader->is_dynamic) {
        inner.within = reader->within;
        if (text_equal(name, "content")) /* an unknown one is named by whoever reads it */
            kind = reader->kind == HCL_ARGUMENT ? HCL_FREE_BLOCK : reader->kind;
    } else if (reader->kind == HCL_FREE_BLOCK) {
        kind = HCL_ARGUMENT;
    } else if (at_root && text_equal(name, "variable")) {
        inner.is_variable = true;
        kind = HCL_NAMED_BLOCK;
    } else if (at_root && (text_equal(name, "variables") || text_equal(name, "locals"))) {
        inner.verbatim = text_equal(name, "variables");
        kind = HCL_FREE_BLOCK;
    } else if (reader->is_variable) {
        kind = text_equal(name, "validation") ? HCL_FREE_BLOCK : HCL_ARGUMENT;
    } else if (!at_root && text_equal(name, "dynamic")) {
        inner.within = reader->within;
        inner.is_dynamic = true;
        kind = HCL_NAMED_BLOCK;
    } else {
        kind = parser->form(reader->within, name, &inner.within);
    }
    inner.kind = kind;
    *ret_inner = inner;
    return kind;
}

static bool read_item(struct hcl_parser *parser, const struct reader *reader,
                      const struct text *name)
{
    struct reader inner;
    bool at_root = reader->body == &parser->file->root;

    if (name->length == 2 && memcmp(parser->file->text + name->start, "//", 2) == 0)
        return read_value(parser, true) != NULL; /* a comment */
    const char *type = keep(parser, name);
    enum hcl_member kind = kind_of(parser, reader, type, at_root, &inner);
    inner.place = name->place;
    switch (kind) {
    case HCL_ARGUMENT:
        return read_argument(parser, reader, name);
    case HCL_NAMED_BLOCK:
        return read_labelled(parser, &inner);
    case HCL_BLOCK:
    case HCL_FREE_BLOCK:
        return read_blocks(parser, &inner);
    }
    unreachable("a kind of member");
}

bool hcl_parse_json_file(struct hcl_parser *parser)
{
    struct hcl_file *file = parser->file;
    struct reader reader = {.kind = HCL_BLOCK};

    file->shown = malloc(file->length + 1);
    check(file->shown != NULL);
    memcpy(file->shown, file->text, file->length + 1);
    skip_space(parser);
    if (!read_body(parser, reader, &file->root))
        return false;
    skip_space(parser);
    if (parser->at < file->length)
        return hcl_fail(parser, parser->place, NULL, "unexpected text behind the file's end") !=
               NULL;
    return true;
}
