/* Inside spec only: reading the fields of one alloc's JSON, which may be damaged. */
#ifndef CAIRN_SPEC_DECODING_H
#define CAIRN_SPEC_DECODING_H

#include "spec/alloc/alloc.h"
#include "spec/arena.h"

struct holder {
    struct alloc_spec spec; /* first: the caller's pointer is the holder's */
    struct arena arena;
};

struct decoding {
    struct holder *holder;
    struct err *err;
    int code; /* the first mistake; later reads do nothing */
};

void decoding_damaged(struct decoding *decoding, const char *field, const char *wanted);

const json_t *decoding_object(struct decoding *decoding, const json_t *from, const char *field);

/* A text of less than SIZE bytes; missing is "". */
const char *decoding_text(struct decoding *decoding, const json_t *from, const char *field,
                          size_t size);

const char *decoding_name(struct decoding *decoding, const json_t *from, const char *field,
                          const char *(*fault_of)(const char *text));

/* A whole number from 0 to MAX, or to the largest of int32; missing is 0. */
uint64_t decoding_whole(struct decoding *decoding, const json_t *from, const char *field,
                        uint64_t max);
uint32_t decoding_u32(struct decoding *decoding, const json_t *from, const char *field);

/* Nanoseconds to milliseconds, up: a short delay stays a delay. */
uint64_t decoding_ms(struct decoding *decoding, const json_t *from, const char *field);

bool decoding_bool(struct decoding *decoding, const json_t *from, const char *field);

/* The pairs of MAPS, sorted by key; of two with one key the later map's. */
struct spec_pairs decoding_pairs(struct decoding *decoding, const json_t *const *maps,
                                 size_t maps_count, const char *what);

struct spec_texts decoding_texts(struct decoding *decoding, const json_t *from, const char *field);

/* Those of the tasks of GROUP, after the tasks (identity.c). */
void decode_identities(struct decoding *decoding, const json_t *alloc, const json_t *group,
                       struct alloc_spec *spec);

/* Those of GROUP and its tasks, after the tasks, whose names they have (services.c). */
void decode_services(struct decoding *decoding, const json_t *group, struct alloc_spec *spec);

/* How SERVICE takes part in the mesh of Consul, NULL: it does not; and what a task is to one that
 * does (connect.c). */
const struct spec_connect *decode_connect(struct decoding *decoding, const json_t *service);
void decode_kind(struct decoding *decoding, const json_t *from, struct task_spec *task);

#endif
