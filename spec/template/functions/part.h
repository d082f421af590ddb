/* Inside spec/template/functions/ only: what functions share, and their tables. */
#ifndef CAIRN_SPEC_TEMPLATE_FUNCTIONS_PART_H
#define CAIRN_SPEC_TEMPLATE_FUNCTIONS_PART_H

#include "spec/template/tree.h"

enum { ANY = ARGUMENTS_MAX + 1 };

/* Tells why the function cannot; returns NULL. */
json_t *call_refuse(const struct call *call, const char *why);

/* The argument AT as a text, "" and an error if it is none. */
const char *call_text(const struct call *call, size_t at);

/* A text as what the function gives, NULL where an error is told. */
json_t *call_give(const struct call *call, const char *text, size_t length);
json_t *call_give_text(const struct call *call, const char *text);

/* A text that grows, bounded as each is. */
struct growing {
    char *text;
    size_t length, size;
    bool full;
};

void growing_add(struct growing *to, const char *text, size_t length);
json_t *call_give_grown(const struct call *call, struct growing *grown); /* which is freed */

extern const struct function template_world_functions[], template_texts_functions[],
    template_encodings_functions[], template_values_functions[], template_print_functions[];

#endif
