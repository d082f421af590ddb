/*
 * HCL: text in its native syntax or in JSON to a tree, expressions to values.
 *
 * Follows the specifications of both syntaxes (hashicorp/hcl, hclsyntax/spec.md, json/spec.md) and,
 * where a file is a job file, the way nomad v1.1.2 jobspec2 evaluates it.  Values are jansson
 * values: null, bool, string, integer, array for lists, tuples and sets, object for maps and
 * objects; and numbers that are no integers have a shape of their own (see hcl_plain).
 *
 * Everything from outside has a bound: the file, its nesting, its number of expressions, and the
 * work and memory that evaluating it may take.  A mistake is one `struct hcl_error` with the place,
 * the line and a hint.
 *
 * Words: a *file* owns the tree; a *context* evaluates expressions of one file and knows its
 * variables and locals; a *scope* is a name that an expression sees besides, on the caller's stack.
 */
#ifndef CAIRN_SPEC_HCL_H
#define CAIRN_SPEC_HCL_H

#include "base/base.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HCL_BYTES_MAX = 4 << 20,       /* a file */
    HCL_NESTING_MAX = 64,          /* blocks, brackets, templates within each other; values too */
    HCL_EXPRESSIONS_MAX = 1 << 18, /* nodes in one file */
    HCL_ERROR_SIZE = 1280,         /* room for hcl_error_text */
};

/* A stretch of source text.  Line and column count from 1, the column in characters. */
struct hcl_place {
    uint32_t line, column;
    uint32_t offset, length; /* bytes */
};

struct hcl_error {
    int code;                     /* ERR_INVALID, or ERR_LIMIT when a bound was met */
    struct hcl_place place;       /* line 0: not about a place */
    char message[ERR_TEXT_SIZE];  /* what is wrong, one line */
    char hint[ERR_TEXT_SIZE];     /* what to do, or "" */
    char file[128];               /* the name given to hcl_parse, its end if it is long */
    char source[200];             /* the offending line, shortened around the place */
    uint32_t caret, caret_length; /* where in source, in characters */
};

/* Writes "file:line:column: message", the line with carets below it, and the hint; lines end with
 * a newline except the last. */
void hcl_error_text(const struct hcl_error *error, char *to, size_t size);

/* --- the tree --- */

struct hcl_file;
struct hcl_expression;

struct hcl_attribute {
    const char *name;
    const struct hcl_expression *value;
    struct hcl_place place; /* of the name */
};

struct hcl_block;

struct hcl_body {
    const struct hcl_attribute *attributes;
    size_t attributes_count;
    const struct hcl_block *blocks;
    size_t blocks_count;
    struct hcl_place end; /* the closing brace, or the end of the file */
};

struct hcl_block {
    const char *type;
    const char *const *labels;
    size_t labels_count;
    struct hcl_body body;
    struct hcl_place place; /* of the type */
};

/* Parses TEXT; NAME is for messages.  The file copies both; hcl_free ends everything in it. */
int hcl_parse(const char *name, const char *text, size_t length, struct hcl_file **ret_file,
              struct hcl_error *error);

/* The same for files that HCL's first version is still used for: there, the name of an argument may
 * be quoted, and arguments that stand on one line are parted by commas. */
int hcl_parse_config(const char *name, const char *text, size_t length, struct hcl_file **ret_file,
                     struct hcl_error *error);

/* What a member of an object is in JSON, which has no blocks. */
enum hcl_member {
    HCL_ARGUMENT,
    HCL_BLOCK,
    HCL_NAMED_BLOCK, /* has one label */
    HCL_FREE_BLOCK,  /* has nothing but arguments, whatever they are called */
};

/* What NAME is in the block that WITHIN stands for, NULL: at the root; RET_INNER, which is NULL at
 * first, is to stand for the block that it is itself. */
typedef enum hcl_member hcl_form(const void *within, const char *name, const void **ret_inner);

/* The same for a file in the JSON form of the language, of which FORM knows what it is made of;
 * `variable`, `variables`, `locals` and `dynamic` are known. */
int hcl_parse_json(const char *name, const char *text, size_t length, hcl_form *form,
                   struct hcl_file **ret_file, struct hcl_error *error);
void hcl_free(struct hcl_file *file);

const struct hcl_body *hcl_root(const struct hcl_file *file);

/* The attribute NAME of BODY, or NULL. */
const struct hcl_attribute *hcl_find(const struct hcl_body *body, const char *name);

struct hcl_place hcl_expression_place(const struct hcl_expression *expression);

/* Fills ERROR (may be NULL) for PLACE in FILE; HINT may be NULL.  Returns ERR_INVALID. */
int hcl_complain(const struct hcl_file *file, struct hcl_place place, const char *hint,
                 struct hcl_error *error, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* True if TEXT can stand for itself in an expression. */
bool hcl_is_name(const char *text);

/* The candidate that WORD is most likely a misspelling of, or NULL.  Borrowed from CANDIDATES. */
const char *hcl_closest(const char *word, const char *const *candidates, size_t count);

/* --- evaluation --- */

struct hcl_input {
    const char *name, *value; /* a variable's value as given with -var or NOMAD_VAR_<name> */
    json_t *given;            /* NULL, or the value itself, as a file of values has it; borrowed */
    bool optional;            /* no mistake if the file declares no such variable */
};

struct hcl_options {
    const struct hcl_input *inputs; /* values for `variable` blocks; the last one of a name wins */
    size_t inputs_count;
    const char *base_directory; /* file() and its like start here; NULL: they are refused */
    /* What an unknown variable means: true, its text stays as "${name.x}" for the run time, the
     * way Nomad's parser leaves NOMAD_*, env, attr, meta, node and device alone; false, an error.
     */
    bool keep_unknown;
    /* Only what is written out has a value, as in HCL's first version: text, numbers, bools, lists
     * and objects of them.  Names, functions and operators are refused; `variable`, `locals` and
     * `dynamic` are blocks like others. */
    bool literal;
};

struct hcl_context;

/* Evaluates the `variable`, `variables` and `locals` blocks at the root of FILE.  The context
 * borrows FILE and OPTIONS for its life. */
int hcl_context_new(const struct hcl_file *file, const struct hcl_options *options,
                    struct hcl_context **ret_context, struct hcl_error *error);
void hcl_context_free(struct hcl_context *context);

/* One more name that expressions see, on the caller's stack; VALUE is borrowed. */
struct hcl_scope {
    const struct hcl_scope *outer;
    const char *name;
    json_t *value;
};

/* The value of EXPRESSION as a new reference.  SCOPE may be NULL. */
int hcl_evaluate(struct hcl_context *context, const struct hcl_scope *scope,
                 const struct hcl_expression *expression, json_t **ret_value,
                 struct hcl_error *error);

/* Calls CB for each block of BODY, with `dynamic "type" { for_each content }` blocks replaced by
 * what they stand for.  Stops at the first result that is not 0 and returns it. */
int hcl_each_block(struct hcl_context *context, const struct hcl_scope *scope,
                   const struct hcl_body *body,
                   int (*cb)(void *ctx, const struct hcl_block *block,
                             const struct hcl_scope *scope, struct hcl_error *error),
                   void *ctx, struct hcl_error *error);

/* A body of unknown shape as one object: attributes by name; blocks of one type as an array of
 * objects, each wrapped in its labels; an attribute written as an object literal as an array of
 * that one object.  Follows nomad v1.1.2 jobspec2/hclutil/blockattrs.go (driver configuration). */
int hcl_body_value(struct hcl_context *context, const struct hcl_scope *scope,
                   const struct hcl_body *body, json_t **ret_value, struct hcl_error *error);

/* --- templates by themselves --- */

/* What a template may name and call. */
struct hcl_names {
    /* Sets RET_VALUE, borrowed until the next call, to the value of NAME: the parts of what is
     * written, joined by dots ("attr.kernel.name", for attr["kernel"].name as well).  Another
     * result than 0 ends the evaluation, which returns it. */
    int (*find)(void *ctx, const char *name, const char **ret_value);
    void *ctx;
    const char *const *functions; /* that may be called, by name, NULL-terminated */
};

/* The value of TEXT, read as if it stood in a heredoc (its only escapes are $${ and %%{), as text:
 * a new reference.  *WORK is what it may cost, in units of about one name or 16 bytes; what was
 * used is taken from it.  ERROR is filled unless FIND failed; its texts may quote TEXT and values.
 */
int hcl_expand(const char *text, size_t length, const struct hcl_names *names, uint64_t *work,
               json_t **ret_text, struct hcl_error *error);

/* --- by themselves: what plugins say of the configuration that they take --- */

/* The value of TEXT, an expression without names: a new reference. */
int hcl_literal(const char *text, json_t **ret_value, struct hcl_error *error);

/* VALUE made to be of the type that TYPE says, as in "list(map(string))": a new reference. */
int hcl_fit(const char *type, json_t *value, json_t **ret_value, struct hcl_error *error);

/* --- conversions --- */

enum hcl_type { HCL_STRING, HCL_NUMBER, HCL_BOOL };

/* VALUE converted as HCL does it ("5" to 5, true to "true"), a new reference; NULL if it cannot
 * be. */
json_t *hcl_convert(json_t *value, enum hcl_type type);

/* VALUE with plain JSON numbers in it, which may be less exact: what leaves the language.  A new
 * reference; NULL if a number is too large for that. */
json_t *hcl_plain(json_t *value);

/* "a string", "a number", ...: VALUE's type in words. */
const char *hcl_type_text(const json_t *value);

/* Calls CB with the name of each function that expressions may use, in order. */
void hcl_each_function(void (*cb)(void *ctx, const char *name), void *ctx);

#endif
