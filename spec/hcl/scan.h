/*
 * Inside spec/hcl only: the parser's state and its tokens.
 *
 * The parser reads tokens one at a time, with one held; templates (quoted text, heredocs) are read
 * byte by byte from where the held token ends.  The first mistake is kept, everything after it
 * unwinds.
 */
#ifndef CAIRN_SPEC_HCL_SCAN_H
#define CAIRN_SPEC_HCL_SCAN_H

#include "spec/hcl/tree.h"

/* Single characters stand for themselves. */
enum hcl_token {
    TOKEN_END = 256,
    TOKEN_NEWLINE,
    TOKEN_IDENTIFIER,
    TOKEN_NUMBER,
    TOKEN_HEREDOC,       /* the whole introduction, up to and with its newline */
    TOKEN_EQUAL,         /* == */
    TOKEN_UNEQUAL,       /* != */
    TOKEN_LESS_EQUAL,    /* <= */
    TOKEN_GREATER_EQUAL, /* >= */
    TOKEN_AND,           /* && */
    TOKEN_OR,            /* || */
    TOKEN_ARROW,         /* => */
    TOKEN_ELLIPSIS,      /* ... */
    TOKEN_STRIP_CLOSE,   /* ~} */
};

struct hcl_parser {
    struct hcl_file *file;
    struct hcl_error *error;
    uint32_t at, line, column;  /* the next byte */
    int token;                  /* the held token */
    struct hcl_place place;     /* of the held token */
    uint32_t token_end_of_last; /* offset behind the token before the held one */
    bool skip_newlines;         /* newlines are only space here */
    bool one_line;              /* they end no line of the file: they were escapes in it */
    int depth;
    bool failed;
    bool quoted_names; /* of arguments in blocks are fine, and commas between them */
    struct hcl_place
        suspect; /* first block closed by a brace of another indentation; line 0: none */
    const char *suspect_type;
    hcl_form *form; /* of a file in JSON */
};

/* Moves over one byte, or to the next token. */
void hcl_step_byte(struct hcl_parser *parser);
void hcl_step_text(struct hcl_parser *parser, uint32_t length); /* without a newline in it */
void hcl_next_token(struct hcl_parser *parser);

/* The byte at the cursor plus AHEAD; NUL at the end. */
char hcl_peek(const struct hcl_parser *parser, uint32_t ahead);

struct hcl_place hcl_place_here(const struct hcl_parser *parser);

/* The stretch from FROM to the end of the token before the held one. */
struct hcl_place hcl_place_since(const struct hcl_parser *parser, struct hcl_place from);

/* The text of PLACE, kept by the file. */
const char *hcl_place_text(const struct hcl_parser *parser, struct hcl_place place);

/* True if the held token is the identifier WORD. */
bool hcl_token_is(const struct hcl_parser *parser, const char *word);

/* The held token in words, for messages: `"foo"`, "the end of the line". */
void hcl_token_text(const struct hcl_parser *parser, char *to, size_t size);

/* Records the first mistake; always NULL. */
void *hcl_fail(struct hcl_parser *parser, struct hcl_place place, const char *hint,
               const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The same when a bound was met. */
void *hcl_fail_limit(struct hcl_parser *parser, struct hcl_place place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* One level deeper; false with the error set when that is too deep. */
bool hcl_enter(struct hcl_parser *parser);
void hcl_leave(struct hcl_parser *parser);

struct hcl_expression *hcl_node(struct hcl_parser *parser, enum hcl_kind kind,
                                struct hcl_place place);

/* NULL with the error set on a mistake; the held token is then meaningless. */
struct hcl_expression *hcl_parse_expression(struct hcl_parser *parser);

/* The held token is the opening quote, or the heredoc's introduction. */
struct hcl_expression *hcl_parse_quoted(struct hcl_parser *parser);
struct hcl_expression *hcl_parse_heredoc(struct hcl_parser *parser);

/* False with the error set if two arguments of BODY have one name. */
bool hcl_check_duplicates(struct hcl_parser *parser, const struct hcl_body *body);

/* The whole file, in JSON, into its root. */
bool hcl_parse_json_file(struct hcl_parser *parser);

/* The whole file is a template. */
struct hcl_expression *hcl_parse_template(struct hcl_parser *parser);

#endif
