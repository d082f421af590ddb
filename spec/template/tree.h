/* Inside spec/template/ only: a template as it was read, and as it is evaluated. */
#ifndef CAIRN_SPEC_TEMPLATE_TREE_H
#define CAIRN_SPEC_TEMPLATE_TREE_H

#include "base/base.h"
#include "spec/arena.h"
#include "spec/template.h"

#include <jansson.h>

enum {
    DEPTH_MAX = 64,
    STEPS_MAX = 1000000,
    VARIABLES_MAX = 512,
    ARGUMENTS_MAX = 64,
    DEFINITIONS_MAX = 64,
};

struct evaluating;

struct call {
    struct evaluating *evaluating;
    const char *name;
    json_t *const *arguments; /* borrowed */
    size_t count;
};

/* The value as a new reference, or NULL and the error is told. */
typedef json_t *function_run(const struct call *call);

struct function {
    const char *name;
    uint8_t min, max; /* arguments */
    function_run *run;
};

/* The function NAME, or NULL; RET_WHY then says why it is not here, on a node that is ALONE or not,
 * NULL: there is no such. */
const struct function *function_find(const char *name, bool alone, const char **ret_why);

struct pipe;

enum operand_kind { OPERAND_VALUE, OPERAND_DOT, OPERAND_VARIABLE, OPERAND_FUNCTION, OPERAND_PIPE };

struct operand {
    struct operand *next;
    enum operand_kind kind;
    json_t *value;                   /* owned by the template's literals */
    const char *name;                /* of a variable, without its $; "" is the whole data */
    const struct function *function; /* that is called */
    struct pipe *pipe;               /* in parentheses */
    const char **fields;             /* .a.b behind it */
    size_t fields_count;
};

struct command {
    struct command *next;
    struct operand *first;
};

struct pipe {
    const char *variables[2]; /* that it declares or sets; the last is the value */
    unsigned variables_count;
    bool assigns;
    struct command *first;
};

enum node_kind {
    NODE_TEXT,
    NODE_ACTION,
    NODE_IF,
    NODE_RANGE,
    NODE_WITH,
    NODE_TEMPLATE,
    NODE_BREAK,
    NODE_CONTINUE,
};

struct node {
    struct node *next;
    enum node_kind kind;
    unsigned line;
    const char *text; /* or the name of a template */
    size_t length;
    struct pipe *pipe; /* NULL: none */
    struct node *then, *otherwise;
};

struct definition {
    const char *name;
    struct node *first;
};

struct template
{
    struct arena arena;
    json_t *literals;
    struct node *first;
    struct definition definitions[DEFINITIONS_MAX];
    size_t definitions_count;
};

/* --- evaluating --- */

struct variable {
    const char *name;
    json_t *value; /* owned */
};

enum leaving { LEAVING_NOT, LEAVING_BREAK, LEAVING_CONTINUE };

struct traced;

struct evaluating {
    const struct template *template;
    const struct template_world *world;
    struct variable variables[VARIABLES_MAX];
    size_t variables_count, variables_first; /* those before belong to who called */
    char *out;                               /* owned; NULL: nothing yet */
    size_t out_length, out_size;
    unsigned steps, depth, line;
    unsigned calls; /* of functions, one in the other */
    enum leaving leaving;
    struct traced *traced; /* values that came of variables of servers (variables.c) */
    bool lacks;            /* an answer that is not there yet */
    struct err *err;
    int code; /* the first error */
};

/* Tells the first error, with its line; returns NULL.  What a function shows of values, which
 * stands in quotes, is hidden once the template has seen a variable of servers: its items are
 * secrets. */
json_t *template_fail(struct evaluating *evaluating, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* One step more; false when there were too many. */
bool template_charge(struct evaluating *evaluating, size_t steps);

/* A text as a value: NULL and an error when it is too long or no UTF-8, or
 * has a NUL byte, which would end it. */
json_t *template_text(struct evaluating *evaluating, const char *text, size_t length);

/* What the template that is defined by NAME says of DOT, as a text. */
json_t *template_execute(struct evaluating *evaluating, const char *name, json_t *dot);

/* --- variables.c --- */

/* VARIABLE, as Nomad has it, was given to the template: a new reference to its items. */
json_t *variable_items(struct evaluating *evaluating, const json_t *variable);

/* The same of what a list tells of one: a new reference to its path, which is what it is printed
 * as. */
json_t *variable_listed(struct evaluating *evaluating, const json_t *metadata);

/* True if VALUE came of a variable and has NAME beside what it is: a new reference. */
bool variable_field(struct evaluating *evaluating, const json_t *value, const char *name,
                    json_t **ret_field);

void variables_forget(struct evaluating *evaluating);

/* Go's %v of VALUE, the caller's (free). */
char *template_print(const json_t *value);

bool template_truth(const json_t *value);

#endif
