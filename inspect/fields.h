/*
 * Shapes: what the structs of the journal are made of, as data.
 *
 * Made from the X-lists of fsm/, so that printing, JSON (both ways) and comparing know every field
 * that the codec knows, and nothing about a field is written twice.
 */
#ifndef CAIRN_INSPECT_FIELDS_H
#define CAIRN_INSPECT_FIELDS_H

#include "core/core.h"

#include <jansson.h>
#include <stdio.h>

enum value_kind {
    VALUE_U64,
    VALUE_I64,
    VALUE_U32,
    VALUE_I32,
    VALUE_U8,
    VALUE_TEXT,
    VALUE_PAD,
    VALUE_FLAG = VALUE_U8, /* these are shown and read alike; fsm_senseless tells them apart */
    VALUE_NAME = VALUE_TEXT,
};

struct field {
    const char *name;
    const char *doc;
    uint16_t offset, size; /* size: of a text */
    uint8_t kind;
};

/* How many of a part there are; the number stands in the struct itself. */
enum part_count { PART_ONE, PART_U8, PART_U32, PART_RESULTS };

struct shape;

struct part {
    const char *name;
    const struct shape *shape; /* NULL: packed hook results, count_at holds their bytes */
    uint32_t offset, count_at, max;
    uint8_t count;
};

struct shape {
    const char *name;
    const struct field *fields;
    const struct part *parts;
    uint16_t fields_count, parts_count;
    uint32_t size;
};

/* A record without its head, and its head. */
const struct shape *shape_of_record(enum machine_kind kind);
const struct shape *shape_of_head(void);
const struct shape *shape_of_payload(enum fsm_payload kind); /* NULL for PAYLOAD_NONE */

/* The numbers of PART at BASE: its elements, or its bytes for results. */
uint32_t shape_part_length(const struct part *part, const void *base);

/* The value of FIELD, which is a number, of the struct at BASE; a signed one with its sign. */
uint64_t shape_number(const struct field *field, const void *base, bool *ret_signed);

/* The name of an enum's VALUE in this field, or NULL. */
const char *shape_value_name(const struct shape *shape, const struct field *field, unsigned value);

/* --- JSON (json.c) --- */

/* Writes LENGTH bytes as a JSON string.  Bytes that are no UTF-8 become '?'; '<' is escaped, so
 * that the text may stand in a page. */
void inspect_json_text(FILE *to, const char *text, size_t length);
void inspect_json_string(FILE *to, const char *text);
void inspect_json_hex(FILE *to, const void *bytes, size_t length);

/* One object; REDACT hides the values of hook results. */
void inspect_json_record(FILE *to, const struct machine_id *id, const struct machine *record,
                         bool redact);
void inspect_json_event(FILE *to, const struct journal_event *event, bool redact);

/* And back (parse.c).  RECORD and PAYLOAD are zeroed and have room for FSM_RECORD_BYTES_MAX
 * and FSM_PAYLOAD_BYTES_MAX bytes. */
int inspect_read_record(const json_t *json, struct machine_id *ret_id, struct machine *record,
                        struct err *err);
int inspect_read_event(const json_t *json, struct journal_event *ret_event, void *payload,
                       struct err *err);
int inspect_read_hex(const char *text, void *to, size_t size, size_t *ret_length);

/* --- flat: one call for each value (flat.c) --- */

/* PATH is "define.driver" or "events[2].text"; TEXT is the value as people read it, DOC what its
 * list says of it; ZERO: it is 0 or empty. */
typedef void flat_cb(void *ctx, const char *path, const char *text, const char *doc, bool zero);
void inspect_walk(const struct machine *record, bool redact, flat_cb *cb, void *ctx);

/* Each path at which the two records differ; either may be NULL, then all that is not zero. */
typedef void difference_cb(void *ctx, const char *path, const char *before, const char *after);
void inspect_compare(const struct machine *before, const struct machine *after, bool redact,
                     difference_cb *cb, void *ctx);

/* RFC 3339 in UTC with milliseconds (words.c). */
enum { TIME_TEXT_SIZE = 32 };
void inspect_print_time(int64_t unix_ns, char to[TIME_TEXT_SIZE]);

#endif
