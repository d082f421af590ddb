/* Inside spec/hcl only: nodes of the tree, the evaluator's state, the function table. */
#ifndef CAIRN_SPEC_HCL_TREE_H
#define CAIRN_SPEC_HCL_TREE_H

#include "spec/arena.h"
#include "spec/hcl.h"

enum hcl_kind {
    NODE_LITERAL,  /* value */
    NODE_TEMPLATE, /* parts: concatenated as text */
    NODE_VARIABLE, /* name, then steps of constant attributes and indexes */
    NODE_INDEX,    /* operand[key], operand.name */
    NODE_SPLAT,    /* operand[*]: `key` is evaluated for each element, which is named "*" in it */
    NODE_CALL,     /* name(parts), the last one spread if `flag` */
    NODE_LIST,     /* parts */
    NODE_OBJECT,   /* pairs of parts: key, value, key, value */
    NODE_FOR,      /* see struct hcl_for */
    NODE_NOT,      /* operand */
    NODE_NEGATE,   /* operand */
    NODE_BINARY,   /* operand OPERATOR other */
    NODE_CONDITIONAL, /* condition ? operand : other, also %{ if } */
};

enum hcl_operator {
    OP_OR,
    OP_AND,
    OP_EQUAL,
    OP_UNEQUAL,
    OP_LESS,
    OP_LESS_EQUAL,
    OP_GREATER,
    OP_GREATER_EQUAL,
    OP_ADD,
    OP_SUBTRACT,
    OP_MULTIPLY,
    OP_DIVIDE,
    OP_MODULO,
};

/* One constant step of a variable: .name or [key]. */
struct hcl_step {
    struct hcl_step *next;
    json_t *key; /* owned by the file; a string, or an integer */
    struct hcl_place place;
};

struct hcl_for {
    const char *key_name; /* NULL: only the value has a name */
    const char *value_name;
    struct hcl_expression *collection;
    struct hcl_expression *key; /* NULL: makes a list */
    struct hcl_expression *value;
    struct hcl_expression *condition; /* NULL: every element */
    bool grouped;                     /* `...` after the value */
    bool text;                        /* %{ for }: elements are joined as text */
};

struct hcl_expression {
    enum hcl_kind kind;
    struct hcl_place place;
    struct hcl_expression *next; /* in a list of parts */
    bool flag;                   /* call: the last argument is spread; variable: was in parentheses;
                                  * literal in a template: it came from ${...}; object: of JSON */
    union {
        json_t *value; /* owned by the file */
        struct {
            struct hcl_expression *first;
            size_t count;
        } parts;
        struct {
            const char *name;
            struct hcl_step *steps, *last;
        } variable;
        struct {
            const char *name;
            struct hcl_expression *first;
            size_t count;
            struct hcl_place name_place;
        } call;
        struct {
            struct hcl_expression *condition, *operand, *other;
            enum hcl_operator op;
        } operation;
        struct {
            struct hcl_expression *operand, *key;
        } access;
        struct hcl_for *loop;
    };
};

struct hcl_file {
    char *name;
    char *text; /* with a NUL behind it */
    size_t length;
    char *shown; /* JSON: the text as it was, for messages; NULL: that is `text` */
    struct arena arena;
    json_t *values; /* array: keeps the literals of the tree alive */
    struct hcl_body root;
    uint32_t expressions;
};

/* A file without a tree, with copies of NAME and TEXT; for hcl_free. */
struct hcl_file *hcl_file_new(const char *name, const char *text, size_t length);

/* Zeroed memory that lives as long as FILE. */
void *hcl_allocate(struct hcl_file *file, size_t size);
char *hcl_keep_text(struct hcl_file *file, const char *text, size_t length);

/* Gives VALUE (moved) to FILE and returns it borrowed. */
json_t *hcl_keep_value(struct hcl_file *file, json_t *value);

/* As hcl_complain, when a bound was met: ERR_LIMIT. */
int hcl_complain_limit(const struct hcl_file *file, struct hcl_place place, const char *hint,
                       struct hcl_error *error, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* --- evaluator --- */

/* A `variable` or a local; values are made when first asked for. */
struct hcl_symbol {
    const char *name;
    struct hcl_place place;
    const struct hcl_attribute *attribute; /* local: its expression; NULL for variables */
    json_t *value;                         /* owned; NULL: not evaluated yet */
    bool busy;                             /* being evaluated: asking again is a cycle */
};

struct hcl_symbols {
    struct hcl_symbol *items; /* owned */
    size_t count, size;
};

struct hcl_context {
    const struct hcl_file *file;
    const struct hcl_options *options;
    const struct hcl_names *names; /* a template's; NULL: names are var and local */
    struct hcl_symbols variables, locals;
    uint64_t budget; /* units of work left */
    int depth;       /* hcl_evaluate within itself */
};

enum { HCL_BYTES_A_UNIT = 16 };

/* Takes UNITS from the budget; ERR_LIMIT when it is used up. */
int hcl_charge(struct hcl_context *context, struct hcl_place place, uint64_t units,
               struct hcl_error *error);

/* Charges for all that VALUE holds and bounds its nesting. */
int hcl_charge_value(struct hcl_context *context, struct hcl_place place, const json_t *value,
                     struct hcl_error *error);

/* EXPRESSION converted to TYPE; WHAT it is for goes into the message. */
int hcl_evaluate_as(struct hcl_context *context, const struct hcl_scope *scope,
                    const struct hcl_expression *expression, enum hcl_type type, const char *what,
                    json_t **ret_value, struct hcl_error *error);
int hcl_evaluate_bool(struct hcl_context *context, const struct hcl_scope *scope,
                      const struct hcl_expression *expression, const char *what, bool *ret_true,
                      struct hcl_error *error);

/* Nodes of these kinds: names, indexes, && ||, == !=, the other binary operators, ! and -, calls.
 */
typedef int hcl_evaluate_kind(struct hcl_context *context, const struct hcl_scope *scope,
                              const struct hcl_expression *expression, json_t **ret_value,
                              struct hcl_error *error);
hcl_evaluate_kind hcl_evaluate_variable, hcl_evaluate_index, hcl_evaluate_logic,
    hcl_evaluate_equality, hcl_evaluate_numbers, hcl_evaluate_unary, hcl_evaluate_call;

/* The value of a traversal's root `var` or `local`: one member, or all for NAME NULL. */
int hcl_symbol_value(struct hcl_context *context, struct hcl_symbols *symbols, const char *name,
                     struct hcl_place place, json_t **ret_value, struct hcl_error *error);

/* Converts VALUE to the type expression TYPE (string, list(number), object({...}), ...). */
int hcl_convert_to(struct hcl_context *context, const struct hcl_expression *type, json_t *value,
                   json_t **ret_value, struct hcl_error *error);

/* The distinct elements of LIST in order: a set. */
json_t *hcl_set(const json_t *list);

/* A text that equal values share, owned by the caller; the elements of LIST by it; and such an
 * object as a set. */
char *hcl_identity(const json_t *value);
json_t *hcl_elements(const json_t *list);
json_t *hcl_set_of(const json_t *elements);

/* VALUE as compact JSON with its keys in order, as Go writes it: exact numbers, and < > & as
 * escapes.  Owned by the caller. */
char *hcl_json(json_t *value);

/* What VALUE looks like in decimals as a number (number.h); NULL if it is not finite. */
json_t *hcl_number(double value);
/* The nearest to VALUE, which is a number. */
double hcl_number_of(const json_t *value);

/* The keys of OBJECT, sorted by bytes; the array is owned by the caller, the texts borrowed. */
const char **hcl_sorted_keys(const json_t *object, size_t *ret_count);

/* --- functions --- */

struct hcl_buffer;

struct hcl_call {
    struct hcl_context *context;
    const char *name;
    json_t *const *arguments; /* borrowed */
    size_t count;
    struct hcl_place place;
    struct hcl_error *error;
};

/* Returns a new reference, or NULL with the error set (hcl_call_failed). */
typedef json_t *hcl_function(const struct hcl_call *call);

struct hcl_function_row {
    const char *name;
    size_t arguments_min, arguments_max; /* SIZE_MAX: any number */
    hcl_function *run;
};

extern const struct hcl_function_row hcl_text_functions[], hcl_regex_functions[],
    hcl_number_functions[], hcl_list_functions[], hcl_encoding_functions[], hcl_time_functions[],
    hcl_yaml_functions[], hcl_csv_functions[], hcl_network_functions[], hcl_file_functions[];

/* strrev(), which reverse() of a text is, too. */
hcl_function hcl_run_strrev;

/* The row of NAME, or NULL. */
const struct hcl_function_row *hcl_function_find(const char *name);

/* Complains about a misspelt function at PLACE. */
int hcl_function_unknown(const struct hcl_file *file, struct hcl_place place, const char *name,
                         struct hcl_error *error);

/* Sets the error of CALL; always NULL, so that one line sets and returns. */
json_t *hcl_call_failed(const struct hcl_call *call, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Argument I as text, number, whole number; false with the error set.  Text is converted into
 * *KEEP (owned by the caller), which holds what RET_TEXT points to. */
bool hcl_argument_text(const struct hcl_call *call, size_t i, json_t **ret_keep);
bool hcl_argument_number(const struct hcl_call *call, size_t i, double *ret_number);
bool hcl_argument_integer(const struct hcl_call *call, size_t i, int64_t *ret_integer);
bool hcl_argument_list(const struct hcl_call *call, size_t i);
bool hcl_argument_object(const struct hcl_call *call, size_t i);

/* Text arguments from the first on, kept until hcl_texts_drop. */
struct hcl_texts {
    json_t *keep[3];
    const char *text[3];
    size_t length[3];
    size_t count;
};

bool hcl_texts_read(const struct hcl_call *call, struct hcl_texts *texts, size_t count);
void hcl_texts_drop(struct hcl_texts *texts);

/* What BUFFER holds as the call's result; NULL with the error set if it grew too long. */
json_t *hcl_call_text(const struct hcl_call *call, struct hcl_buffer *buffer);

/* Writes the character POINT in UTF-8, up to 4 bytes; returns how many. */
size_t hcl_put_character(char *to, uint32_t point);

/* Bytes of the character at AT, which ends before END. */
size_t hcl_character_size(const char *at, const char *end);

/* --- text (unicode.c) --- */

/* LENGTH bytes of TEXT in Unicode's NFC, as all strings of the language are; NULL if they are not
 * UTF-8. */
json_t *hcl_text(const char *text, size_t length);

/* The character that TEXT, which is UTF-8, begins with; and its bytes if a name may have it, or
 * FIRST: begin with it, as Unicode has that (UAX 31), 0: it may not. */
uint32_t hcl_character(const char *text);
size_t hcl_name_character(const char *text, bool first);

/* Bytes of what a reader takes for the character at AT, which ends before END; and how many of them
 * TEXT has. */
size_t hcl_grapheme_size(const char *at, const char *end);

/* Leaves out white space, as Unicode has it, at both ends of the text between the two. */
void hcl_trim_space(const char **start, const char **end);

size_t hcl_grapheme_count(const char *text, size_t length);

/* Letter by letter, as Go does it: no letter becomes two. */
enum hcl_case { HCL_UPPER, HCL_LOWER, HCL_TITLE };
json_t *hcl_change_case(const char *text, size_t length, enum hcl_case to);

/* --- types that must be one (unify.c) --- */

/* VALUE as the type that it has in common with OTHER: a new reference, NULL if there is none. */
json_t *hcl_unify(json_t *value, const json_t *other);

/* LIST with all its elements strings, if one of them is, or one of those of the COUNT OTHERS; a new
 * reference. */
json_t *hcl_unify_list(json_t *list, json_t *const *others, size_t count);

/* --- growing text --- */

struct hcl_buffer {
    char *bytes;
    size_t length, size;
    bool full; /* more was added than HCL_TEXT_MAX bytes */
};

enum { HCL_TEXT_MAX = 2 * HCL_BYTES_MAX };

void hcl_buffer_add(struct hcl_buffer *buffer, const char *bytes, size_t length);
void hcl_buffer_free(struct hcl_buffer *buffer);

/* The text as a value (new reference), the buffer emptied; NULL if it is full or not UTF-8. */
json_t *hcl_buffer_take(struct hcl_buffer *buffer);

#endif
