/*
 * Bytes to tokens, and the parser's small helpers.  Follows the specification's lexical elements.
 */
#include "spec/hcl/scan.h"

#include <string.h>

char hcl_peek(const struct hcl_parser *parser, uint32_t ahead)
{
    size_t at = (size_t)parser->at + ahead;

    return at < parser->file->length ? parser->file->text[at] : '\0';
}

void hcl_step_byte(struct hcl_parser *parser)
{
    check(parser->at < parser->file->length);
    unsigned char byte = (unsigned char)parser->file->text[parser->at++];

    if (byte == '\n' && !parser->one_line) {
        parser->line++;
        parser->column = 1;
    } else if (parser->at >= parser->file->length ||
               ((unsigned char)parser->file->text[parser->at] & 0xC0u) != 0x80u) {
        parser->column++; /* the next byte begins a character */
    }
}

void hcl_step_text(struct hcl_parser *parser, uint32_t length)
{
    const char *next = parser->file->text + parser->at + 1; /* there is a NUL behind it */
    uint64_t word;
    uint32_t i = 0;

    check(length <= parser->file->length - parser->at);
    while (i < length) {
        bool many = length - i >= sizeof(word);

        if (many)
            memcpy(&word, next + i, sizeof(word));
        if (many && (word & UINT64_C(0x8080808080808080)) == 0) { /* ASCII, as most of it is */
            parser->column += sizeof(word);
            i += sizeof(word);
        } else {
            parser->column += ((unsigned char)next[i++] & 0xC0u) != 0x80u;
        }
    }
    parser->at += length;
}

struct hcl_place hcl_place_here(const struct hcl_parser *parser)
{
    return (struct hcl_place){parser->line, parser->column, parser->at, 1};
}

struct hcl_place hcl_place_since(const struct hcl_parser *parser, struct hcl_place from)
{
    if (parser->token_end_of_last > from.offset)
        from.length = parser->token_end_of_last - from.offset;
    return from;
}

const char *hcl_place_text(const struct hcl_parser *parser, struct hcl_place place)
{
    return hcl_keep_text(parser->file, parser->file->text + place.offset, place.length);
}

bool hcl_token_is(const struct hcl_parser *parser, const char *word)
{
    return parser->token == TOKEN_IDENTIFIER && strlen(word) == parser->place.length &&
           memcmp(parser->file->text + parser->place.offset, word, parser->place.length) == 0;
}

void hcl_token_text(const struct hcl_parser *parser, char *to, size_t size)
{
    int shown = parser->place.length > 40 ? 40 : (int)parser->place.length;

    if (parser->token == TOKEN_END)
        (void)text_copy(to, size, parser->one_line ? "the end of the text" : "the end of the file");
    else if (parser->token == TOKEN_NEWLINE)
        (void)text_copy(to, size, "the end of the line");
    else if (parser->token == '"')
        (void)text_copy(to, size, "a string");
    else if (parser->token == TOKEN_HEREDOC)
        (void)text_copy(to, size, "a heredoc");
    else
        (void)text_format(to, size, "\"%.*s\"", shown, parser->file->text + parser->place.offset);
}

bool hcl_enter(struct hcl_parser *parser)
{
    if (parser->depth >= HCL_NESTING_MAX) {
        (void)hcl_fail_limit(parser, parser->place, "nested more than %d levels deep",
                             HCL_NESTING_MAX);
        return false;
    }
    parser->depth++;
    return true;
}

void hcl_leave(struct hcl_parser *parser)
{
    check(parser->depth > 0);
    parser->depth--;
}

/* --- tokens --- */

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

/* Bytes of the character of a name that TEXT, which is UTF-8, begins with; 0: there is none. FIRST:
 * it begins the name, too. */
static uint32_t name_character(const char *text, bool first)
{
    char byte = *text;

    if ((byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_')
        return 1;
    if ((unsigned char)byte >= 0x80u)
        return (uint32_t)hcl_name_character(text, first);
    return !first && (is_digit(byte) || byte == '-') ? 1 : 0;
}

/* Of the name that TEXT begins with, 0: there is none. */
static uint32_t name_length(const char *text)
{
    uint32_t length = name_character(text, true), more = length;

    while (more > 0) {
        more = name_character(text + length, false);
        length += more;
    }
    return length;
}

bool hcl_is_name(const char *text)
{
    uint32_t length = name_length(text);

    return length > 0 && text[length] == '\0';
}

size_t hcl_put_character(char *to, uint32_t point)
{
    size_t length = 0;

    if (point < 0x80u) {
        to[length++] = (char)point;
    } else if (point < 0x800u) {
        to[length++] = (char)(0xC0u | point >> 6);
        to[length++] = (char)(0x80u | (point & 0x3Fu));
    } else if (point < 0x10000u) {
        to[length++] = (char)(0xE0u | point >> 12);
        to[length++] = (char)(0x80u | (point >> 6 & 0x3Fu));
        to[length++] = (char)(0x80u | (point & 0x3Fu));
    } else {
        to[length++] = (char)(0xF0u | point >> 18);
        to[length++] = (char)(0x80u | (point >> 12 & 0x3Fu));
        to[length++] = (char)(0x80u | (point >> 6 & 0x3Fu));
        to[length++] = (char)(0x80u | (point & 0x3Fu));
    }
    return length;
}

static void skip_line_comment(struct hcl_parser *parser)
{
    while (parser->at < parser->file->length && hcl_peek(parser, 0) != '\n' &&
           !(hcl_peek(parser, 0) == '\r' && hcl_peek(parser, 1) == '\n'))
        hcl_step_byte(parser);
}

static bool skip_block_comment(struct hcl_parser *parser)
{
    struct hcl_place start = hcl_place_here(parser);

    start.length = 2;
    hcl_step_byte(parser);
    hcl_step_byte(parser);
    while (parser->at < parser->file->length) {
        if (hcl_peek(parser, 0) == '*' && hcl_peek(parser, 1) == '/') {
            hcl_step_byte(parser);
            hcl_step_byte(parser);
            return true;
        }
        hcl_step_byte(parser);
    }
    (void)hcl_fail(parser, start, "close it with */", "this comment is not closed");
    return false;
}

/* Moves to the first byte of the next token. */
static bool skip_space(struct hcl_parser *parser)
{
    for (;;) {
        char byte = hcl_peek(parser, 0);

        if (byte == ' ' || byte == '\t')
            hcl_step_byte(parser);
        else if (parser->skip_newlines && (byte == '\n' || byte == '\r'))
            hcl_step_byte(parser);
        else if (byte == '#' || (byte == '/' && hcl_peek(parser, 1) == '/'))
            skip_line_comment(parser);
        else if (byte == '/' && hcl_peek(parser, 1) == '*') {
            if (!skip_block_comment(parser))
                return false;
        } else
            return true;
    }
}

static int scan_number(struct hcl_parser *parser)
{
    while (is_digit(hcl_peek(parser, 0)))
        hcl_step_byte(parser);
    if (hcl_peek(parser, 0) == '.' && is_digit(hcl_peek(parser, 1))) {
        hcl_step_byte(parser);
        while (is_digit(hcl_peek(parser, 0)))
            hcl_step_byte(parser);
    }
    if (hcl_peek(parser, 0) == 'e' || hcl_peek(parser, 0) == 'E') {
        uint32_t sign = hcl_peek(parser, 1) == '+' || hcl_peek(parser, 1) == '-' ? 1 : 0;

        if (is_digit(hcl_peek(parser, 1 + sign))) {
            for (uint32_t i = 0; i < 1 + sign; i++)
                hcl_step_byte(parser);
            while (is_digit(hcl_peek(parser, 0)))
                hcl_step_byte(parser);
        }
    }
    return TOKEN_NUMBER;
}

/* `<<NAME` or `<<-NAME` and its newline; anything else is the operator `<`. */
static int scan_heredoc(struct hcl_parser *parser)
{
    uint32_t length = hcl_peek(parser, 2) == '-' ? 3 : 2;
    uint32_t name = name_length(parser->file->text + parser->at + length);

    if (name == 0)
        return 0;
    length += name;
    if (hcl_peek(parser, length) == '\r')
        length++;
    if (hcl_peek(parser, length) != '\n') {
        struct hcl_place place = hcl_place_here(parser);

        place.length = length;
        (void)hcl_fail(parser, place, "the text begins on the next line",
                       "the name of a heredoc must be the last thing on its line");
        return 0;
    }
    for (uint32_t i = 0; i <= length; i++)
        hcl_step_byte(parser);
    return TOKEN_HEREDOC;
}

static int scan_operator(struct hcl_parser *parser)
{
    static const struct {
        char text[4];
        int token;
    } operators[] = {
        {"...", TOKEN_ELLIPSIS},  {"==", TOKEN_EQUAL},         {"!=", TOKEN_UNEQUAL},
        {"<=", TOKEN_LESS_EQUAL}, {">=", TOKEN_GREATER_EQUAL}, {"&&", TOKEN_AND},
        {"||", TOKEN_OR},         {"=>", TOKEN_ARROW},         {"~}", TOKEN_STRIP_CLOSE},
    };

    char byte = hcl_peek(parser, 0);

    for (size_t i = 0; i < COUNT_OF(operators); i++) {
        if (operators[i].text[0] != byte)
            continue;
        uint32_t length = (uint32_t)strlen(operators[i].text), same = 0;

        while (same < length && hcl_peek(parser, same) == operators[i].text[same])
            same++;
        if (same < length)
            continue;
        for (uint32_t j = 0; j < length; j++)
            hcl_step_byte(parser);
        return operators[i].token;
    }
    if (strchr("{}[]()=,.:?+-*/%!<>\"", byte) == NULL)
        return 0;
    hcl_step_byte(parser);
    return byte;
}

static void fail_character(struct hcl_parser *parser)
{
    char byte = hcl_peek(parser, 0);
    const char *hint = NULL;

    if (byte == '\'')
        hint = "text is written in double quotes";
    else if (byte == '$')
        hint = "${...} belongs inside double quotes";
    else if (byte == '&' || byte == '|')
        hint = "the logical operators are && and ||";
    else if (byte == ';')
        hint = "arguments end with their line";
    if ((unsigned char)byte >= 0x80u)
        (void)hcl_fail(parser, hcl_place_here(parser), "names have letters, digits, - and _",
                       "unexpected character U+%04X",
                       hcl_character(parser->file->text + parser->at));
    else if ((unsigned char)byte < 0x20u)
        (void)hcl_fail(parser, hcl_place_here(parser), hint, "unexpected control character 0x%02x",
                       (unsigned)byte);
    else
        (void)hcl_fail(parser, hcl_place_here(parser), hint, "unexpected character \"%c\"", byte);
}

void hcl_next_token(struct hcl_parser *parser)
{
    parser->token_end_of_last = parser->at;
    if (parser->failed || !skip_space(parser)) {
        parser->token = TOKEN_END;
        return;
    }
    struct hcl_place place = hcl_place_here(parser);
    char byte = hcl_peek(parser, 0);
    uint32_t name = name_length(parser->file->text + parser->at);
    int token;

    if (parser->at >= parser->file->length) {
        token = TOKEN_END;
    } else if (byte == '\n' || (byte == '\r' && hcl_peek(parser, 1) == '\n')) {
        if (byte == '\r')
            hcl_step_byte(parser);
        hcl_step_byte(parser);
        token = TOKEN_NEWLINE;
    } else if (is_digit(byte)) {
        token = scan_number(parser);
    } else if (name > 0) {
        hcl_step_text(parser, name);
        token = TOKEN_IDENTIFIER;
    } else {
        token = byte == '<' && hcl_peek(parser, 1) == '<' ? scan_heredoc(parser) : 0;
        if (token == 0 && !parser->failed)
            token = scan_operator(parser);
        if (token == 0 && !parser->failed)
            fail_character(parser);
        if (parser->failed)
            token = TOKEN_END;
    }
    place.length = parser->at - place.offset;
    parser->token = token;
    parser->place = place;
}
