/*
 * JSON written as it is thought of: values go to their place in the text at once, no tree is built.
 *
 *     struct writer to = {.pretty = pretty};
 *     put_object(&to, NULL);
 *     put_text(&to, "ID", id);
 *     put_end(&to);
 *
 * NAME is that of a member; NULL: an element of an array, or the whole.  The text has the form of
 * jansson's, compact or with JSON_INDENT(4).
 */
#ifndef CAIRN_AGENT_API_FORMAT_WRITE_H
#define CAIRN_AGENT_API_FORMAT_WRITE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WRITE_DEPTH_MAX = 64 }; /* of objects and arrays; deeper trees are jansson's to write */

struct writer {
    char *bytes; /* owned by who began; not ended by a NUL */
    size_t used, size;
    bool pretty;
    bool wired; /* times are {"$time": unix_ns}, as io/rpc.h has them */
    unsigned depth;
    uint64_t arrays; /* a bit for each depth: what is open there is no object */
    bool filled;     /* what is open has a value already */
};

/* Begin an object or an array; put_end ends the one begun last. */
void put_object(struct writer *to, const char *name);
void put_array(struct writer *to, const char *name);
void put_end(struct writer *to);

/* TEXT as api_text makes it: NULL is "", bytes that are no UTF-8 become question marks. */
void put_text(struct writer *to, const char *name, const char *text);
void put_number(struct writer *to, const char *name, int64_t number);
void put_number_text(struct writer *to, const char *name, int64_t number); /* in quotes */
void put_bool(struct writer *to, const char *name, bool value);
void put_null(struct writer *to, const char *name);

/* Wall clock time as api_time prints it. */
void put_time(struct writer *to, const char *name, int64_t unix_ns);

/* A tree; the second frees it. */
void put_json(struct writer *to, const char *name, json_t *value);
void put_json_new(struct writer *to, const char *name, json_t *value);

#endif
