/*
 * Templates in the language of Go's text/template, with consul-template's functions, as far as they
 * need neither Consul nor Vault: those that do are refused by name.
 *
 * Pure: what a template may see of the world it is handed.  Texts come from outside and all of it
 * is bounded: nesting, steps, the length of every text made on the way.
 */
#ifndef CAIRN_SPEC_TEMPLATE_H
#define CAIRN_SPEC_TEMPLATE_H

#include "base/err.h"
#include "spec/question.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TEMPLATE_BYTES_MAX = 1 << 20 }; /* of a template, of what is rendered, of a file read */

struct template;

/* Reads TEXT, whose actions are between LEFT and RIGHT ("": {{ and }}), for a node that is ALONE or
 * has servers, which some functions need.  ERR_INVALID or ERR_LIMIT: the text of ERR says where and
 * why.  RET_TEMPLATE is the caller's, and borrows nothing. */
int template_parse(const char *text, size_t length, const char *left, const char *right, bool alone,
                   struct template **ret_template, struct err *err);
void template_free(struct template *template);

/* What a template sees. */
struct template_world {
    void *ctx;
    /* The value of NAME (of LENGTH bytes) in the environment, or NULL. */
    const char *(*find)(void *ctx, const char *name, size_t length);
    /* All of a file that it may read, with a NUL behind it, which the caller frees. */
    int (*read)(void *ctx, const char *path, char **ret_text, size_t *ret_length, struct err *err);
    /* The answer to a question, whose namespace is "" for that of the alloc, borrowed until the
     * template is rendered.  NEEDED: a variable that is not there, and a list of none, are no
     * answer.  NULL and ERR, which is ERR_AGAIN if there is no answer yet. */
    const json_t *(*ask)(void *ctx, const struct spec_question *question, bool needed,
                         struct err *err);
    int64_t now_unix_ns;
    bool *asks_time; /* set where what it says depends on that; NULL: nobody asks */
    bool strict;     /* what a map does not have is an error, and not "<no value>" */
};

/* RET_TEXT is the caller's (free), with a NUL behind it.  ERR_INVALID: TEMPLATE makes no sense of
 * what it sees; ERR_LIMIT; whatever reading a file or asking gave; ERR_AGAIN: something that it has
 * asked for is not known yet, whatever else went wrong but for a limit.  By then it has asked for
 * all that it can. */
int template_render(const struct template *template, const struct template_world *world,
                    char **ret_text, size_t *ret_length, struct err *err);

#endif
