/*
 * Templates: quoted text, heredocs and whole files with ${...} and %{...}.
 *
 * Read byte by byte; an interpolation hands over to the expression parser and takes over again
 * behind its brace.  A heredoc's end is found first, by its marker alone, so nothing inside can
 * hide it.  Literals of a heredoc are one part for each line that a strip marker (~) may reach, as
 * it reaches to the line's end only.  `<<-` takes the common indentation off those that begin a
 * line when the markers have done their work: what follows a newline that was stripped begins none.
 * All as in hashicorp/hcl's parser_template.go.
 */
#include "spec/hcl/scan.h"

#include <stdlib.h>
#include <string.h>

/* A part of a heredoc in the order of its text, whatever it is nested in. */
struct piece {
    struct piece *next;
    struct hcl_expression *literal; /* NULL: the beginning of ${ or %{ */
};

struct template
{
    struct hcl_parser *parser;
    struct hcl_place open; /* for messages: where the template begins */
    bool heredoc;
    uint32_t end;   /* heredoc: offset of the line with the marker */
    bool flush;     /* a heredoc that loses its indentation */
    bool trim_next; /* the literal that follows loses its leading space */
    struct piece *pieces, *last_piece;
    char stop[8]; /* the directive that ended a list of parts: else, endif, endfor */
    struct hcl_place stop_place;
};

struct parts {
    struct hcl_expression *first, *last;
    size_t count;
};

static void add_part(struct parts *parts, struct hcl_expression *part)
{
    if (parts->last == NULL)
        parts->first = part;
    else
        parts->last->next = part;
    parts->last = part;
    parts->count++;
}

static bool is_space(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

/* Bytes of the space character (Unicode's, as Go has it) that TEXT begins with; 0: none. */
static size_t space_size(const char *text, size_t length)
{
    static const char *const wide[] = {
        "\xc2\x85",     "\xc2\xa0",     "\xe1\x9a\x80", "\xe2\x80\x80", "\xe2\x80\x81",
        "\xe2\x80\x82", "\xe2\x80\x83", "\xe2\x80\x84", "\xe2\x80\x85", "\xe2\x80\x86",
        "\xe2\x80\x87", "\xe2\x80\x88", "\xe2\x80\x89", "\xe2\x80\x8a", "\xe2\x80\xa8",
        "\xe2\x80\xa9", "\xe2\x80\xaf", "\xe2\x81\x9f", "\xe3\x80\x80",
    };

    if (length > 0 && (is_space(*text) || *text == '\v' || *text == '\f'))
        return 1;
    for (size_t i = 0; i < COUNT_OF(wide); i++) {
        size_t size = strlen(wide[i]);

        if (length >= size && memcmp(text, wide[i], size) == 0)
            return size;
    }
    return 0;
}

static bool is_at_end(const struct template *template)
{
    const struct hcl_parser *parser = template->parser;

    if (template->heredoc)
        return parser->at >= template->end;
    return parser->at >= parser->file->length;
}

/* --- literals --- */

/* \uNNNN or \UNNNNNNNN behind the backslash. */
static bool parse_unicode(struct hcl_parser *parser, struct hcl_place place, int digits,
                          struct hcl_buffer *buffer)
{
    uint32_t point = 0;
    char bytes[4];

    hcl_step_byte(parser);
    for (int i = 0; i < digits; i++) {
        char byte = hcl_peek(parser, 0);
        uint32_t digit = byte >= '0' && byte <= '9'   ? (uint32_t)(byte - '0')
                         : byte >= 'a' && byte <= 'f' ? (uint32_t)(byte - 'a') + 10
                         : byte >= 'A' && byte <= 'F' ? (uint32_t)(byte - 'A') + 10
                                                      : 16;
        if (digit == 16) {
            (void)hcl_fail(parser, place, NULL, "this escape needs %d hexadecimal digits", digits);
            return false;
        }
        point = point << 4 | digit;
        hcl_step_byte(parser);
    }
    if (point == 0 || point > 0x10FFFFu || (point >= 0xD800u && point <= 0xDFFFu)) {
        (void)hcl_fail(parser, place, NULL, "U+%04X is not a character that text can hold", point);
        return false;
    }
    hcl_buffer_add(buffer, bytes, hcl_put_character(bytes, point));
    return true;
}

static bool parse_escape(struct hcl_parser *parser, struct hcl_buffer *buffer)
{
    static const char codes[] = "nrt\"\\", meanings[] = "\n\r\t\"\\";
    struct hcl_place place = hcl_place_here(parser);

    place.length = 2;
    hcl_step_byte(parser);
    char code = hcl_peek(parser, 0);
    if (code == 'u' || code == 'U')
        return parse_unicode(parser, place, code == 'u' ? 4 : 8, buffer);
    const char *found = code == '\0' ? NULL : strchr(codes, code);
    if (found == NULL) {
        (void)hcl_fail(parser, place,
                       "escapes are \\n \\r \\t \\\" \\\\ \\uNNNN \\UNNNNNNNN; a backslash itself "
                       "is \\\\",
                       "unknown escape in this string");
        return false;
    }
    hcl_buffer_add(buffer, &meanings[found - codes], 1);
    hcl_step_byte(parser);
    return true;
}

/* The start of ${ or %{ at the cursor; 0 for none, also for the escapes $${ and %%{. */
static char opening(const struct hcl_parser *parser)
{
    char byte = hcl_peek(parser, 0);

    return (byte == '$' || byte == '%') && hcl_peek(parser, 1) == '{' ? byte : '\0';
}

/* Moves over text that means itself, at once, since it is most of what files hold. */
static void read_plain(const struct template *template, struct hcl_buffer *buffer)
{
    struct hcl_parser *parser = template->parser;
    const char *text = parser->file->text + parser->at;
    size_t end = template->heredoc ? template->end : parser->file->length;
    size_t left = parser->at < end ? end - parser->at : 0;
    size_t length = strcspn(text, "$%\"\\\n\r");

    if (length > left)
        length = left;
    hcl_buffer_add(buffer, text, length);
    hcl_step_text(parser, (uint32_t)length);
}

/* True if the heredoc's line at the cursor is a literal of its own: it may lose its indentation, or
 * a marker in it, or where the next one begins, may strip it and nothing before it. */
static bool is_apart(const struct template *template)
{
    const char *line = template->parser->file->text + template->parser->at;
    const char *end = line + strcspn(line, "$%\n");

    return template->flush || template->trim_next || *end != '\n' || end[1] == '$' || end[1] == '%';
}

/* Reads text up to what ends it: an opening, the closing quote, the end of a heredoc's line that
 * has to be known as one. */
static bool read_literal(struct template *template, struct hcl_buffer *buffer)
{
    struct hcl_parser *parser = template->parser;

    for (;;) {
        read_plain(template, buffer);
        if (is_at_end(template) || opening(parser) != '\0')
            return true;
        char byte = hcl_peek(parser, 0);
        if (!template->heredoc && byte == '"')
            return true;
        if (!template->heredoc && (byte == '\n' || byte == '\r')) {
            (void)hcl_fail(parser, template->open,
                           "missing closing quote; text of several lines is written as a heredoc, "
                           "<<EOF",
                           "this string does not end on its line");
            return false;
        }
        if (!template->heredoc && byte == '\\') {
            if (!parse_escape(parser, buffer))
                return false;
            continue;
        }
        if ((byte == '$' || byte == '%') && hcl_peek(parser, 1) == byte &&
            hcl_peek(parser, 2) == '{') {
            hcl_step_byte(parser); /* $${ is ${ */
            hcl_buffer_add(buffer, &parser->file->text[parser->at], 2);
            hcl_step_byte(parser);
            hcl_step_byte(parser);
            continue;
        }
        hcl_buffer_add(buffer, &byte, 1);
        hcl_step_byte(parser);
        if (template->heredoc && byte == '\n' && is_apart(template))
            return true;
    }
}

static void add_piece(struct template *template, struct hcl_expression *literal)
{
    struct piece *piece;

    if (!template->flush)
        return;
    piece = hcl_allocate(template->parser->file, sizeof(*piece));
    piece->literal = literal;
    if (template->last_piece == NULL)
        template->pieces = piece;
    else
        template->last_piece->next = piece;
    template->last_piece = piece;
}

static bool parse_literal(struct template *template, struct parts *parts)
{
    struct hcl_parser *parser = template->parser;
    struct hcl_place place = hcl_place_here(parser);
    struct hcl_buffer buffer = {0};

    if (!read_literal(template, &buffer)) {
        hcl_buffer_free(&buffer);
        return false;
    }
    size_t skipped = 0;
    if (template->trim_next) {
        size_t size;

        while ((size = space_size(buffer.bytes + skipped, buffer.length - skipped)) > 0)
            skipped += size;
        template->trim_next = false;
    }
    struct hcl_expression *node = hcl_node(parser, NODE_LITERAL, place);
    if (node != NULL) {
        /* The file was looked at: it is UTF-8. */
        json_t *text = json_stringn_nocheck(buffer.bytes == NULL ? "" : buffer.bytes + skipped,
                                            buffer.length - skipped);
        node->value = hcl_keep_value(parser->file, text);
        add_part(parts, node);
    }
    if (node != NULL)
        add_piece(template, node);
    hcl_buffer_free(&buffer);
    return node != NULL;
}

/* Takes trailing space off the literal before a strip marker. */
static void trim_last(struct template *template, struct parts *parts)
{
    struct hcl_expression *last = parts->last;

    if (last == NULL || last->kind != NODE_LITERAL || last->flag)
        return;
    const char *text = json_string_value(last->value);
    size_t length = json_string_length(last->value);
    while (length > 0 && is_space(text[length - 1]))
        length--;
    last->value = hcl_keep_value(template->parser->file, json_stringn(text, length));
}

/* Characters of space that LITERAL begins with, SIZE_MAX if it is a blank line, which has no
 * indentation. */
static size_t indentation_of(const struct hcl_expression *literal)
{
    const char *text = json_string_value(literal->value);
    size_t length = json_string_length(literal->value), at = 0, count = 0, size;

    while ((size = space_size(text + at, length - at)) > 0) {
        at += size;
        count++;
    }
    return at == length && length > 0 && text[length - 1] == '\n' ? SIZE_MAX : count;
}

static void cut_spaces(struct hcl_parser *parser, struct hcl_expression *literal, size_t count)
{
    const char *text = json_string_value(literal->value);
    size_t length = json_string_length(literal->value), at = 0;

    for (size_t i = 0; i < count; i++)
        at += space_size(text + at, length - at);
    literal->value = hcl_keep_value(parser->file, json_stringn(text + at, length - at));
}

static bool ends_line(const struct piece *piece)
{
    const char *text = piece->literal == NULL ? "" : json_string_value(piece->literal->value);
    size_t length = strlen(text);

    return length > 0 && text[length - 1] == '\n';
}

static void take_indentation(struct template *template)
{
    size_t least = SIZE_MAX;
    bool begins = true;

    for (const struct piece *piece = template->pieces; piece != NULL; piece = piece->next) {
        size_t own = !begins                  ? SIZE_MAX
                     : piece->literal == NULL ? 0
                                              : indentation_of(piece->literal);

        least = own < least ? own : least;
        begins = ends_line(piece);
    }
    begins = true;
    for (const struct piece *piece = template->pieces; piece != NULL; piece = piece->next) {
        bool indented = begins && piece->literal != NULL && least != SIZE_MAX &&
                        indentation_of(piece->literal) != SIZE_MAX;

        begins = ends_line(piece);
        if (indented)
            cut_spaces(template->parser, piece->literal, least);
    }
}

/* --- parts --- */

static bool parse_parts(struct template *template, struct parts *ret_parts);

/* PARTS as one expression.  UNWRAP: a single interpolation is its own value, not text. */
static struct hcl_expression *join_parts(struct template *template, struct parts *parts,
                                         struct hcl_place place, bool unwrap)
{
    struct hcl_parser *parser = template->parser;
    bool constant = unwrap || !template->flush; /* else it may still lose its indentation */

    for (struct hcl_expression *part = parts->first; part != NULL; part = part->next)
        constant = constant && part->kind == NODE_LITERAL && json_is_string(part->value);
    if (parts->count == 1 && unwrap && !constant) {
        if (parts->first->kind == NODE_VARIABLE)
            parts->first->flag = true; /* never a bare name */
        return parts->first;
    }
    struct hcl_expression *node = hcl_node(parser, constant ? NODE_LITERAL : NODE_TEMPLATE, place);
    if (node == NULL)
        return NULL;
    if (constant) {
        struct hcl_buffer buffer = {0};

        for (struct hcl_expression *part = parts->first; part != NULL; part = part->next)
            hcl_buffer_add(&buffer, json_string_value(part->value),
                           json_string_length(part->value));
        node->value = hcl_keep_value(parser->file, hcl_buffer_take(&buffer));
    } else {
        node->parts.first = parts->first;
        node->parts.count = parts->count;
    }
    return node;
}

/* Reads past the brace that closes ${ or %{; the held token is that brace. */
static bool parse_closing(struct template *template, struct hcl_place open)
{
    struct hcl_parser *parser = template->parser;
    bool inside = !template->heredoc || parser->at <= template->end;

    if ((parser->token == '}' || parser->token == TOKEN_STRIP_CLOSE) && inside) {
        template->trim_next = parser->token == TOKEN_STRIP_CLOSE;
        return true;
    }
    bool interpolation = parser->file->text[open.offset] == '$';
    if (parser->token == TOKEN_END || !inside)
        (void)hcl_fail(parser, open, NULL, "this \"%s\" is not closed with \"}\"",
                       interpolation ? "${" : "%{");
    else {
        char found[64];

        hcl_token_text(parser, found, sizeof(found));
        (void)hcl_fail(parser, parser->place,
                       interpolation ? "to keep ${ as it is, for a shell, write $${"
                                     : "to keep %{ as it is write %%{",
                       "expected \"}\" to end the \"%s\", found %s", interpolation ? "${" : "%{",
                       found);
    }
    return false;
}

static bool parse_interpolation(struct template *template, struct hcl_place open,
                                struct parts *parts)
{
    struct hcl_expression *value = hcl_parse_expression(template->parser);

    if (value == NULL || !parse_closing(template, open))
        return false;
    if (value->kind == NODE_LITERAL)
        value->flag = true; /* a value, not template text: strip markers leave it alone */
    add_part(parts, value);
    return true;
}

static bool parse_if(struct template *template, struct hcl_place open, struct parts *parts)
{
    struct hcl_parser *parser = template->parser;
    struct hcl_expression *node = hcl_node(parser, NODE_CONDITIONAL, open);
    struct parts then = {0}, otherwise = {0};

    if (node == NULL)
        return false;
    hcl_next_token(parser);
    node->operation.condition = hcl_parse_expression(parser);
    if (node->operation.condition == NULL || !parse_closing(template, open) ||
        !parse_parts(template, &then))
        return false;
    if (text_equal(template->stop, "else") && !parse_parts(template, &otherwise))
        return false;
    if (!text_equal(template->stop, "endif"))
        return hcl_fail(parser, open, NULL, "this %%{ if } has no %%{ endif }") != NULL;
    node->operation.operand = join_parts(template, &then, open, false);
    node->operation.other = join_parts(template, &otherwise, open, false);
    add_part(parts, node);
    return !parser->failed;
}

static bool parse_for(struct template *template, struct hcl_place open, struct parts *parts)
{
    struct hcl_parser *parser = template->parser;
    struct hcl_expression *node = hcl_node(parser, NODE_FOR, open);
    struct parts body = {0};

    if (node == NULL)
        return false;
    struct hcl_for *loop = hcl_allocate(parser->file, sizeof(*loop));
    node->loop = loop;
    loop->text = true;
    do {
        hcl_next_token(parser);
        if (parser->token != TOKEN_IDENTIFIER || loop->key_name != NULL)
            return hcl_fail(parser, parser->place, "a loop is %{ for item in list }",
                            "expected a name in %%{ for }") != NULL;
        loop->key_name = loop->value_name;
        loop->value_name = hcl_place_text(parser, parser->place);
        hcl_next_token(parser);
    } while (parser->token == ',');
    if (!hcl_token_is(parser, "in"))
        return hcl_fail(parser, parser->place, "a loop is %{ for item in list }",
                        "expected \"in\" in %%{ for }") != NULL;
    hcl_next_token(parser);
    loop->collection = hcl_parse_expression(parser);
    if (loop->collection == NULL || !parse_closing(template, open) || !parse_parts(template, &body))
        return false;
    if (!text_equal(template->stop, "endfor"))
        return hcl_fail(parser, open, NULL, "this %%{ for } has no %%{ endfor }") != NULL;
    loop->value = join_parts(template, &body, open, false);
    add_part(parts, node);
    return !parser->failed;
}

/* The held token is the directive's name.  True also for one that ends the list of parts. */
static bool parse_directive(struct template *template, struct hcl_place open, struct parts *parts)
{
    static const char *const ends[] = {"else", "endif", "endfor"};
    struct hcl_parser *parser = template->parser;
    bool parsed = false;

    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        if (!hcl_token_is(parser, ends[i]))
            continue;
        (void)text_copy(template->stop, sizeof(template->stop), ends[i]);
        template->stop_place = open;
        hcl_next_token(parser);
        return parse_closing(template, open);
    }
    if (!hcl_enter(parser))
        return false;
    if (hcl_token_is(parser, "if"))
        parsed = parse_if(template, open, parts);
    else if (hcl_token_is(parser, "for"))
        parsed = parse_for(template, open, parts);
    else
        (void)hcl_fail(parser, parser->place, "to keep %{ as it is write %%{",
                       "a %%{ } directive is if, else, endif, for or endfor");
    template->stop[0] = '\0'; /* it ended the inner list */
    hcl_leave(parser);
    return parsed;
}

static bool parse_sequence(struct template *template, struct parts *parts)
{
    struct hcl_parser *parser = template->parser;
    struct hcl_place open = hcl_place_here(parser);
    bool directive = hcl_peek(parser, 0) == '%', outer = parser->skip_newlines;

    add_piece(template, NULL);
    open.length = 2;
    hcl_step_byte(parser);
    hcl_step_byte(parser);
    if (hcl_peek(parser, 0) == '~') {
        hcl_step_byte(parser);
        trim_last(template, parts);
    }
    template->trim_next = false;
    parser->skip_newlines = true;
    hcl_next_token(parser);
    bool parsed = directive ? parse_directive(template, open, parts)
                            : parse_interpolation(template, open, parts);
    parser->skip_newlines = outer;
    return parsed && !parser->failed;
}

/* Reads to the end of the template, or past a directive that ends this list (see `stop`). */
static bool parse_parts(struct template *template, struct parts *ret_parts)
{
    struct hcl_parser *parser = template->parser;

    template->stop[0] = '\0';
    while (template->stop[0] == '\0') {
        bool parsed = true;

        if (is_at_end(template) || (!template->heredoc && hcl_peek(parser, 0) == '"'))
            return true;
        parsed = opening(parser) != '\0' ? parse_sequence(template, ret_parts)
                                         : parse_literal(template, ret_parts);
        if (!parsed)
            return false;
    }
    return true;
}

static struct hcl_expression *parse_all(struct template *template)
{
    struct parts parts = {0};

    if (!parse_parts(template, &parts))
        return NULL;
    if (template->stop[0] != '\0')
        return hcl_fail(template->parser, template->stop_place, NULL, "this %%{ %s } ends nothing",
                        template->stop);
    take_indentation(template);
    return join_parts(template, &parts, template->open, true);
}

struct hcl_expression *hcl_parse_quoted(struct hcl_parser *parser)
{
    struct template template = {.parser = parser, .open = parser->place};
    struct hcl_expression *value;

    if (!hcl_enter(parser))
        return NULL;
    value = parse_all(&template);
    if (value == NULL)
        return NULL;
    if (hcl_peek(parser, 0) != '"' || parser->at >= parser->file->length)
        return hcl_fail(parser, template.open, "missing closing quote",
                        "the file ends inside this string");
    hcl_step_byte(parser);
    hcl_next_token(parser);
    hcl_leave(parser);
    if (value->kind == NODE_LITERAL || value->kind == NODE_TEMPLATE)
        value->place = hcl_place_since(parser, template.open);
    return value;
}

/* The offset of the line that holds only MARKER (and space), or UINT32_MAX. */
static uint32_t find_marker(const struct hcl_file *file, uint32_t at, const char *marker,
                            size_t marker_length)
{
    while (at < file->length) {
        const char *newline = memchr(file->text + at, '\n', file->length - at);
        size_t end = newline == NULL ? file->length : (size_t)(newline - file->text);
        const char *first = file->text + at, *last = file->text + end;

        hcl_trim_space(&first, &last);
        if ((size_t)(last - first) == marker_length && memcmp(first, marker, marker_length) == 0)
            return at;
        if (newline == NULL)
            break;
        at = (uint32_t)end + 1;
    }
    return UINT32_MAX;
}

struct hcl_expression *hcl_parse_heredoc(struct hcl_parser *parser)
{
    struct hcl_place open = parser->place;
    const char *intro = parser->file->text + open.offset;
    bool flush = intro[2] == '-';
    const char *marker = intro + (flush ? 3 : 2);
    size_t marker_length = strcspn(marker, "\r\n");

    open.length = (uint32_t)(marker - intro) + (uint32_t)marker_length;
    uint32_t end = find_marker(parser->file, parser->at, marker, marker_length);
    if (end == UINT32_MAX) {
        char hint[ERR_TEXT_SIZE];

        (void)text_format(hint, sizeof(hint), "end it with %.*s on a line of its own",
                          marker_length > 60 ? 60 : (int)marker_length, marker);
        return hcl_fail(parser, open, hint, "this heredoc does not end");
    }
    if (!hcl_enter(parser))
        return NULL;
    struct template template = {
        .parser = parser, .open = open, .heredoc = true, .end = end, .flush = flush};
    struct hcl_expression *value = parse_all(&template);
    if (value == NULL)
        return NULL;
    check(parser->at == end);
    const char *line = parser->file->text + end, *first = line;
    const char *last = parser->file->text + parser->file->length;
    hcl_trim_space(&first, &last);
    for (size_t i = 0; i < (size_t)(first - line) + marker_length; i++)
        hcl_step_byte(parser);
    hcl_next_token(parser);
    hcl_leave(parser);
    return value;
}

struct hcl_expression *hcl_parse_template(struct hcl_parser *parser)
{
    struct template template = {.parser = parser,
                                .open = hcl_place_here(parser),
                                .heredoc = true,
                                .end = (uint32_t)parser->file->length};

    return parse_all(&template);
}
