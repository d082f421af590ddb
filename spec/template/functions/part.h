/* Inside spec/template/functions/ only: what functions share, and their tables. */
#ifndef CAIRN_SPEC_TEMPLATE_FUNCTIONS_PART_H
#define CAIRN_SPEC_TEMPLATE_FUNCTIONS_PART_H

#include "spec/template/tree.h"

enum {
    ANY = ARGUMENTS_MAX + 1,
    VALUE_DEEP = 64, /* so deep no value is nested that is read or made */
};

/* Tells why the function cannot; returns NULL. */
json_t *call_refuse(const struct call *call, const char *why);

/* The argument AT as a text, "" and an error if it is none. */
const char *call_text(const struct call *call, size_t at);

/* What looking at BYTES one by one costs; false where that is too much, which is told. */
bool call_charge(const struct call *call, size_t bytes);

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

/* The answer to what KIND and NAME ask for in NAMESPACE, "": that of the alloc; borrowed.  NULL: it
 * is not known yet, or an error is told. */
const json_t *call_ask(const struct call *call, enum spec_question_kind kind, const char *namespace,
                       const char *name, bool needed);

/* True if REGION, "": any, is that of the node; else an error is told. */
bool call_check_region(const struct call *call, const char *region);

#define WORD "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

/* True if the LENGTH bytes of TEXT, one at least, are all among CHARACTERS. */
bool text_is_of(const char *text, size_t length, const char *characters);

/* MADE, or NULL where an error is told. */
json_t *call_give_made(const struct call *call, json_t *made);

/* The bytes of the character at AT, which is not at the end of a text. */
size_t character_size(const char *at);

/* What of *TEXT is between spaces, and its end. */
void text_trim_space(const char **text, const char **ret_end);

/* True if VALUE is nested DEPTH deep. */
bool value_is_deep(const json_t *value, int depth);

/* The keys of MAP in their order, borrowed; the list is the caller's (free). */
const char **value_keys(const json_t *map, size_t *ret_count);

/* printf (printf.c). */
json_t *template_printf(const struct call *call);

extern const struct function template_world_functions[], template_services_functions[],
    template_texts_functions[], template_cases_functions[], template_encodings_functions[],
    template_json_functions[], template_maps_functions[], template_print_functions[],
    template_regex_functions[], template_time_functions[], template_values_functions[],
    template_variables_functions[], template_yaml_functions[];

#endif
