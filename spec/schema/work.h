/* Inside spec only: the work of reading one job by the tables, what is wrong with it, and values as
 * they are read. */
#ifndef CAIRN_SPEC_SCHEMA_WORK_H
#define CAIRN_SPEC_SCHEMA_WORK_H

#include "spec/job.h"
#include "spec/schema/schema.h"

/* Where in the file a field of an object came from. */
struct jobspec_origin {
    const json_t *object;
    const char *field; /* JSON name; "" for the object itself */
    struct hcl_place place;
    bool told; /* what is there could not be computed, which is among the problems */
};

struct jobspec_origins {
    struct jobspec_origin *items; /* owned */
    size_t count, size;
};

struct jobspec_work {
    const char *name;            /* of the file */
    const struct hcl_file *file; /* NULL: the job came as JSON */
    struct hcl_context *context;
    struct jobspec_problems *problems;
    struct jobspec_origins origins;
    char where[256];      /* `group "a", task "b": ` while such a part is being read or checked */
    const json_t *part;   /* what `where` names; a problem without a place is shown there */
    bool stopped;         /* a bound was met: reading on would only repeat it */
    bool reads_templates; /* their texts, too */
    bool served;          /* as a server sends it: all fields of Go are there, most say nothing */
    bool refused;         /* among the problems is something that is not made yet */
    json_t *notes;        /* what is wrong with those, as who has read them told; owned, or NULL */
};

/* Adds a problem that spec/hcl found. */
void jobspec_add_error(struct jobspec_work *work, const struct hcl_error *error);

/* Adds a problem at PLACE (line 0: no place), or about FIELD (JSON name, or "" for all of it) of
 * OBJECT.  HINT may be NULL. */
void jobspec_complain_at(struct jobspec_work *work, struct hcl_place place, const char *hint,
                         const char *format, ...) __attribute__((format(printf, 4, 5)));
void jobspec_complain(struct jobspec_work *work, const json_t *object, const char *field,
                      const char *hint, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Adds a problem that belongs to no place, as all of JSON's.  HINT may be NULL. */
void jobspec_complain_plainly(struct jobspec_work *work, const char *hint, const char *message);

/* How a user knows the field: its HCL name for job files, its JSON name for JSON. */
const char *jobspec_name_of(const struct jobspec_work *work, const struct jobspec_field *field);

/* Notes where FIELD (JSON name, borrowed for the work) of OBJECT was given, or for "" OBJECT. */
void jobspec_remember(struct jobspec_work *work, const json_t *object, const char *field,
                      struct hcl_place place);

/* True if FIELD was given, also when its value was refused: then it is not missing. */
bool jobspec_was_given(const struct jobspec_work *work, const json_t *object, const char *field);

/* True if what FIELD is could not be computed: then nobody tells that it is missing as well. */
bool jobspec_was_told(const struct jobspec_work *work, const json_t *object, const char *field);

/* True for null, false, 0, "", and lists and objects with nothing else in them. */
bool jobspec_is_empty(const json_t *value);

/* --- values (value.c) --- */

/* VALUE with the fields of SCHEMA in the table's order, all or only what allocs run by.  New
 * reference. */
json_t *jobspec_arrange(const struct jobspec_schema *schema, const json_t *value, bool run_only);

/* "task" objects of a group and so on: the elements of an array field, or an empty array. */
const json_t *jobspec_list(const json_t *object, const char *field);

/* A word of a job file and the value of the enumeration that it stands for. */
struct jobspec_word {
    const char *text;
    int value;
};

/* False if TEXT is none of the COUNT WORDS. */
bool jobspec_word_value(const struct jobspec_word *words, size_t count, const char *text,
                        int *ret_value);

/* The member NAME of OBJECT, which MAKE makes if there is none; borrowed from OBJECT. */
json_t *jobspec_member(json_t *object, const char *name, json_t *(*make)(void));

#endif
