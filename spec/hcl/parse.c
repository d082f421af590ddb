/*
 * The structural half of the parser: files, bodies, blocks, attributes.
 *
 * Nesting is bounded by hcl_enter, the number of nodes by hcl_node; both before anything is built.
 */
#include "spec/hcl/scan.h"

#include <stdlib.h>
#include <string.h>

/* --- bodies --- */

static bool parse_body(struct hcl_parser *parser, const struct hcl_block *block,
                       struct hcl_body *ret_body);

/* A quoted label: escapes are fine, templates are not. */
static const char *parse_name(struct hcl_parser *parser)
{
    struct hcl_place place = parser->place;

    if (parser->token == TOKEN_IDENTIFIER) {
        const char *name = hcl_place_text(parser, place);
        hcl_next_token(parser);
        return name;
    }
    struct hcl_expression *text = hcl_parse_quoted(parser);
    if (text == NULL)
        return NULL;
    if (text->kind != NODE_LITERAL || !json_is_string(text->value))
        return hcl_fail(parser, place, "write the name as it is, without ${...}",
                        "a block's label cannot be computed");
    return json_string_value(text->value);
}

/* Columns of indentation of the line that PLACE is in. */
static uint32_t indentation(const struct hcl_parser *parser, struct hcl_place place)
{
    const char *text = parser->file->text;
    size_t start = place.offset;

    while (start > 0 && text[start - 1] != '\n')
        start--;
    uint32_t count = 0;
    while (text[start + count] == ' ' || text[start + count] == '\t')
        count++;
    return count;
}

/* Remembers the first block whose brace is closed on a line of another indentation: when a brace
 * is missing at the end of the file, that is most likely where. */
static void note_brace(struct hcl_parser *parser, const struct hcl_block *block)
{
    uint32_t indented = indentation(parser, parser->place);

    if (parser->suspect.line == 0 && parser->place.column == indented + 1 &&
        indented != indentation(parser, block->place)) {
        parser->suspect = block->place;
        parser->suspect_type = block->type;
    }
}

static bool parse_block(struct hcl_parser *parser, struct hcl_place place, const char *type,
                        struct hcl_block *ret_block)
{
    *ret_block = (struct hcl_block){.type = type, .place = place};
    const char **labels = NULL;

    while (parser->token == '"' || parser->token == TOKEN_IDENTIFIER) {
        if (ret_block->labels_count == 8)
            return hcl_fail(parser, parser->place, NULL, "a block has at most 8 labels") != NULL;
        const char *label = parse_name(parser);
        if (label == NULL)
            return false;
        labels = arena_more(&parser->file->arena, labels, ret_block->labels_count, sizeof(*labels));
        labels[ret_block->labels_count++] = label;
    }
    ret_block->labels = labels;
    if (parser->token != '{') {
        char found[64];

        hcl_token_text(parser, found, sizeof(found));
        return hcl_fail(parser, parser->place,
                        ret_block->labels_count == 0 ? "an argument is written name = value, a "
                                                       "block name { ... }"
                                                     : "the brace is on the same line as the name",
                        "expected %s after \"%.60s\", found %s",
                        ret_block->labels_count == 0 ? "\"=\" or \"{\"" : "\"{\"", type,
                        found) != NULL;
    }
    if (!hcl_enter(parser))
        return false;
    bool parsed = parse_body(parser, ret_block, &ret_block->body);
    if (parsed)
        hcl_leave(parser);
    return parsed;
}

static bool parse_attribute(struct hcl_parser *parser, struct hcl_place place, const char *name,
                            struct hcl_attribute *ret_attribute)
{
    bool colon = parser->token == ':';

    if (colon)
        return hcl_fail(parser, parser->place, "write name = value", "unexpected \":\"") != NULL;
    hcl_next_token(parser);
    struct hcl_expression *value = hcl_parse_expression(parser);
    if (value == NULL)
        return false;
    *ret_attribute = (struct hcl_attribute){.name = name, .value = value, .place = place};
    return true;
}

static bool fail_unclosed(struct hcl_parser *parser, const struct hcl_block *block)
{
    char hint[ERR_TEXT_SIZE];

    if (parser->suspect.line != 0)
        (void)text_format(hint, sizeof(hint),
                          "missing closing brace, probably for the block \"%.40s\" opened at line "
                          "%u: the brace that closes it has another indentation",
                          parser->suspect_type, parser->suspect.line);
    else
        (void)text_format(hint, sizeof(hint),
                          "missing closing brace for the block \"%.40s\" opened at line %u",
                          block->type, block->place.line);
    return hcl_fail(parser, parser->place, hint, "the file ends inside the block \"%.60s\"",
                    block->type) != NULL;
}

/* HCL's first version has dots in names: driver.raw_exec.enable = "1". */
static const char *parse_dotted(struct hcl_parser *parser)
{
    const char *name = parse_name(parser);
    size_t length;

    while (name != NULL && parser->quoted_names && parser->token == '.') {
        hcl_next_token(parser);
        if (parser->token != TOKEN_IDENTIFIER)
            return hcl_fail(parser, parser->place, NULL, "a name goes on behind a dot");
        const char *rest = parse_name(parser);
        if (rest == NULL)
            return NULL;
        length = strlen(name) + strlen(rest) + 2;
        char *both = arena_new(&parser->file->arena, length);
        check(text_format(both, length, "%s.%s", name, rest));
        name = both;
    }
    return name;
}

/* One attribute or block; the held token is its name, or begins it. */
static bool parse_item(struct hcl_parser *parser, struct hcl_body *body)
{
    struct hcl_place place = parser->place;
    const char *name = parse_dotted(parser);
    bool parsed;

    if (name == NULL)
        return false;
    if (parser->token == '=' || parser->token == ':') {
        struct hcl_attribute *attributes =
            arena_more(&parser->file->arena, (void *)body->attributes, body->attributes_count,
                       sizeof(*attributes));
        body->attributes = attributes;
        parsed = parse_attribute(parser, place, name, &attributes[body->attributes_count]);
        body->attributes_count += parsed;
    } else {
        if (hcl_node(parser, NODE_LITERAL, place) == NULL) /* blocks count, too */
            return false;
        struct hcl_block *blocks = arena_more(&parser->file->arena, (void *)body->blocks,
                                              body->blocks_count, sizeof(*blocks));
        body->blocks = blocks;
        parsed = parse_block(parser, place, name, &blocks[body->blocks_count]);
        body->blocks_count += parsed;
    }
    return parsed;
}

/* Reads to the closing brace of BLOCK, or for NULL to the end of the file, and past it. */
static bool parse_body(struct hcl_parser *parser, const struct hcl_block *block,
                       struct hcl_body *ret_body)
{
    struct hcl_body body = {0};
    bool one_line = block != NULL;

    if (block != NULL)
        hcl_next_token(parser); /* the brace */
    for (;;) {
        if (parser->failed)
            return false;
        if (parser->token == TOKEN_NEWLINE) {
            one_line = false;
            hcl_next_token(parser);
            continue;
        }
        if (parser->token == TOKEN_END && block != NULL)
            return fail_unclosed(parser, block);
        if (parser->token == TOKEN_END || (parser->token == '}' && block != NULL))
            break;
        if (parser->token == '}')
            return hcl_fail(parser, parser->place,
                            "remove it, or look for a brace that closes a "
                            "block too early above",
                            "this brace closes nothing") != NULL;
        bool is_name =
            parser->token == TOKEN_IDENTIFIER || (parser->token == '"' && parser->quoted_names);
        if (!is_name) {
            char found[64];

            hcl_token_text(parser, found, sizeof(found));
            return hcl_fail(parser, parser->place,
                            parser->token == '"' && block == NULL
                                ? "a JSON file begins with a brace"
                                : "an argument is written name = value, a block name { ... }",
                            "expected the name of an argument or block, found %s", found) != NULL;
        }
        if (!parse_item(parser, &body))
            return false;
        if (parser->token == '}' && one_line)
            continue;
        if (parser->token == ',' && parser->quoted_names) { /* HCL's first version lets them */
            hcl_next_token(parser);
            continue;
        }
        if (parser->quoted_names && (parser->token == TOKEN_IDENTIFIER || parser->token == '"'))
            continue; /* and has the next on the same line */
        if (parser->token != TOKEN_NEWLINE && parser->token != TOKEN_END) {
            char found[64];

            hcl_token_text(parser, found, sizeof(found));
            return hcl_fail(parser, parser->place, "each argument and block has a line of its own",
                            "unexpected %s", found) != NULL;
        }
    }
    if (!hcl_check_duplicates(parser, &body))
        return false;
    body.end = parser->place;
    if (block != NULL) {
        note_brace(parser, block);
        hcl_next_token(parser);
    }
    *ret_body = body;
    return !parser->failed;
}

/* --- files --- */

/* The first byte that is not UTF-8 text, for the message. */
static size_t damaged_at(const char *text, size_t length)
{
    size_t at = 0;

    while (at < length) {
        size_t size = 1;

        while (size < 4 && at + size < length && ((unsigned char)text[at + size] & 0xC0u) == 0x80u)
            size++;
        if (!text_is_utf8(text + at, size))
            return at;
        at += size;
    }
    return at;
}

static int check_text(struct hcl_parser *parser)
{
    struct hcl_file *file = parser->file;

    if (!text_is_utf8(file->text, file->length)) {
        size_t bad = damaged_at(file->text, file->length);

        while (parser->at < bad)
            hcl_step_byte(parser);
        unsigned byte = (unsigned char)file->text[bad];
        (void)hcl_fail(
            parser, hcl_place_here(parser), "save the file as UTF-8",
            byte == 0 ? "the file contains a NUL byte" : "the byte 0x%02x is not UTF-8 text", byte);
        return ERR_INVALID;
    }
    if (file->length >= 3 && memcmp(file->text, "\xef\xbb\xbf", 3) == 0) {
        (void)hcl_fail(parser, hcl_place_here(parser), "save the file without it",
                       "the file begins with a byte order mark");
        return ERR_INVALID;
    }
    return 0;
}

struct hcl_file *hcl_file_new(const char *name, const char *text, size_t length)
{
    struct hcl_file *file = calloc(1, sizeof(*file));

    check(file != NULL && length <= HCL_BYTES_MAX);
    file->length = length;
    file->name = strdup(name);
    file->text = malloc(length + 1);
    file->values = json_array();
    check(file->name != NULL && file->text != NULL && file->values != NULL);
    memcpy(file->text, text, length);
    file->text[length] = '\0';
    return file;
}

static bool parse_native(struct hcl_parser *parser)
{
    hcl_next_token(parser);
    return parse_body(parser, NULL, &parser->file->root);
}

/* PARSER says what kind of file it is. */
static int parse_file(const char *name, const char *text, size_t length, struct hcl_parser parser,
                      struct hcl_file **ret_file, struct hcl_error *error)
{
    static const char mark[] = "\xef\xbb\xbf"; /* of the order of bytes, which UTF-8 has none of */
    size_t skip =
        length >= strlen(mark) && memcmp(text, mark, strlen(mark)) == 0 ? strlen(mark) : 0;
    bool fits = length <= HCL_BYTES_MAX;

    text += skip;
    length -= skip;
    struct hcl_file *file = hcl_file_new(name, text, fits ? length : 0);
    parser.file = file;
    parser.error = error;
    parser.line = parser.column = 1;
    int code = 0;

    if (!fits) {
        code = hcl_complain_limit(file, (struct hcl_place){0}, NULL, error,
                                  "the file has %zu bytes; at most %d are read", length,
                                  HCL_BYTES_MAX);
    } else {
        code = check_text(&parser);
        bool parsed = code == 0 &&
                      (parser.form != NULL ? hcl_parse_json_file(&parser) : parse_native(&parser));
        if (code == 0 && !parsed)
            code = error != NULL ? error->code : ERR_INVALID;
    }
    if (code != 0) {
        hcl_free(file);
        return code;
    }
    *ret_file = file;
    return 0;
}

int hcl_parse(const char *name, const char *text, size_t length, struct hcl_file **ret_file,
              struct hcl_error *error)
{
    return parse_file(name, text, length, (struct hcl_parser){0}, ret_file, error);
}

int hcl_parse_config(const char *name, const char *text, size_t length, struct hcl_file **ret_file,
                     struct hcl_error *error)
{
    struct hcl_parser parser = {.quoted_names = true};

    return parse_file(name, text, length, parser, ret_file, error);
}

int hcl_parse_json(const char *name, const char *text, size_t length, hcl_form *form,
                   struct hcl_file **ret_file, struct hcl_error *error)
{
    struct hcl_parser parser = {.form = form};

    return parse_file(name, text, length, parser, ret_file, error);
}

void hcl_free(struct hcl_file *file)
{
    if (file == NULL)
        return;
    arena_free(&file->arena);
    json_decref(file->values);
    free(file->text);
    free(file->shown);
    free(file->name);
    free(file);
}

const struct hcl_body *hcl_root(const struct hcl_file *file)
{
    return &file->root;
}

const struct hcl_attribute *hcl_find(const struct hcl_body *body, const char *name)
{
    for (size_t i = 0; i < body->attributes_count; i++) {
        if (text_equal(body->attributes[i].name, name))
            return &body->attributes[i];
    }
    return NULL;
}

struct hcl_place hcl_expression_place(const struct hcl_expression *expression)
{
    return expression->place;
}
