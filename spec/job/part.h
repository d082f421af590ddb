/* Inside spec only: the work of reading one job. */
#ifndef CAIRN_SPEC_PART_H
#define CAIRN_SPEC_PART_H

#include "spec/job.h"
#include "spec/job/schema.h"

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

/* Reads the job block of a file, or a JSON object, by the tables: known fields only, each with its
 * type.  New reference; fields with problems are left out. */
json_t *jobspec_read_hcl(struct jobspec_work *work);
json_t *jobspec_read_json(struct jobspec_work *work, const json_t *value);

/* Fills in what is not given. */
void jobspec_set_defaults(struct jobspec_work *work, json_t *job);

/* What a block of SCHEMA says that is not given, for those that only some jobs have: a new
 * reference, or NULL. */
json_t *jobspec_default_block(const struct jobspec_schema *schema);

/* The network blocks of a group or of a task's resources: what is not given, and what is wrong. */
void jobspec_default_networks(const struct jobspec_work *work, json_t *object);
void jobspec_check_networks(struct jobspec_work *work, const json_t *group);

/* What ALLOC says beside its job: which ports it was given. */
void jobspec_add_ports(json_t *alloc, const struct spec_ports *ports);

void jobspec_add_cores(json_t *alloc, const struct spec_cores *cores);

/* The deployment ID waits to hear of the health of ALLOC, as GROUP says; NULL or "": none does. */
void jobspec_put_deployment(json_t *alloc, const json_t *group, const char *id);

/* Whose the volumes of storage plugins are. */
void jobspec_add_plugins(json_t *alloc, const struct spec_pairs *plugins);

/* --- what a server gave (given.c) --- */

/* AllocatedResources of the server's ALLOC, wherever it has them: a new reference. */
json_t *jobspec_given(const json_t *alloc);

/* Puts into RESOURCES of a task what TASK of GIVEN says (NULL: nothing) of processors and memory.
 */
void jobspec_put_given(json_t *resources, const json_t *task);

/* Complains of what a task says of devices. */
void jobspec_check_devices(struct jobspec_work *work, const json_t *resources);

/* What a task was given, LIST of its AllocatedResources, as a text of its own (free); "" if there
 * is none, NULL if it is damaged. */
char *jobspec_devices_text(const json_t *list);

/* The same of devices: by task, as in a placement; NULL: none. */
void jobspec_add_devices(json_t *alloc, const json_t *devices);

/* As jobspec_add_devices, of all tasks of GIVEN that have any. */
void jobspec_add_given_devices(json_t *alloc, const json_t *given);

/* As jobspec_add_cores, of all tasks of GIVEN that have any. */
void jobspec_add_given_cores(json_t *alloc, const json_t *given);

/* Fills in what GIVEN says of PORTS, as they were asked for; borrowed from it.  ERR_CORRUPT: one
 * was not given. */
int jobspec_take_ports(const json_t *given, struct spec_ports *ports, struct err *err);

/* The job of the server's ALLOC, of which it was GIVEN this, with its own group only, as
 * jobspec_from_json has it: a new reference.  Errors as of served_alloc_read. */
int jobspec_read_served(const json_t *alloc, const json_t *given, json_t **ret_job,
                        struct err *err);

/* The volumes of a group and the mounts of its tasks, in the same way. */
void jobspec_default_volumes(json_t *group);
void jobspec_default_mounts(json_t *task);
void jobspec_check_volumes(struct jobspec_work *work, const json_t *job, const json_t *group);
void jobspec_check_mounts(struct jobspec_work *work, const json_t *group, const json_t *task);

/* --- update blocks (rollout.c) --- */

void jobspec_check_update(struct jobspec_work *work, const json_t *update);

/* How long tasks of GROUP, a service's, may take to end. */
void jobspec_check_kill_timeouts(struct jobspec_work *work, const json_t *group);

/* The count of a group, and its scaling block, in the same way. */
void jobspec_default_scaling(json_t *group);
void jobspec_check_scaling(struct jobspec_work *work, const json_t *group);

/* The services of JOB's GROUP and of its tasks, in the same way. */
void jobspec_default_services(const json_t *job, json_t *group);
void jobspec_check_services(struct jobspec_work *work, const json_t *group);
void jobspec_check_task_services(struct jobspec_work *work, const json_t *group,
                                 const json_t *task);
bool spec_address_mode(const char *text, enum spec_address_mode *ret_mode);
bool spec_check_type(const char *text, enum spec_check_type *ret_type);

/* How services of GROUP, which have their names, take part in the mesh of Consul (connect.c): their
 * sidecars, with ports, before those get their defaults; and what is wrong. */
void jobspec_default_connect(const struct jobspec_work *work, json_t *group);
void jobspec_check_connect(struct jobspec_work *work, const json_t *group);

/* The csi_plugin blocks of tasks, in the same way. */
void jobspec_default_csi_plugin(json_t *task);
void jobspec_check_csi_plugins(struct jobspec_work *work, const json_t *group);

/* The action blocks of tasks (action.c). */
void jobspec_check_actions(struct jobspec_work *work, const json_t *task);

/* The artifact blocks of tasks, in the same way. */
void jobspec_default_artifacts(json_t *task);
void jobspec_check_artifacts(struct jobspec_work *work, const json_t *task);
bool spec_artifact_mode(const char *text, enum spec_artifact_mode *ret_mode);

/* The template blocks of tasks, in the same way. */
void jobspec_default_templates(json_t *task);
void jobspec_check_templates(struct jobspec_work *work, const json_t *task);

/* Adds to NOTES what is wrong with the texts of JOB's templates. */
void jobspec_read_templates(const json_t *job, json_t *notes);
bool spec_mode(const char *text, uint32_t *ret_mode);             /* "0644", at most 0777 */
bool spec_change(const char *text, enum spec_change *ret_change); /* "": restart */

/* The parameterized block of a job, in the same way; and the dispatch_payload block of a task. */
void jobspec_default_dispatch(json_t *job);
void jobspec_check_dispatch(struct jobspec_work *work, const json_t *job);
void jobspec_check_payload_file(struct jobspec_work *work, const json_t *task);
const char *spec_payload_fault(const char *file); /* NULL: it is one */

/* Why FILE is no path of a file beneath a directory; ESCAPES: if it leads out of it. */
const char *spec_file_fault(const char *file, const char *escapes);

/* --- identities: tokens that servers sign for a task (identity.c) --- */

/* IDENTITY as a server sends it, with what matters here: a new reference; NULL: nobody sees it, or
 * is told of it. */
json_t *jobspec_prepare_identity(const json_t *identity, bool named);
void jobspec_check_identities(struct jobspec_work *work, const json_t *task);

/* Puts the tokens of SENT, an alloc, into ALLOC, for those tasks of GROUP that see theirs.
 * ERR_CORRUPT: one is missing, or no token. */
int jobspec_put_identities(json_t *alloc, const json_t *group, const json_t *sent, struct err *err);

/* The periodic block of a job, in the same way. */
void jobspec_default_periodic(json_t *job);
void jobspec_check_periodic(struct jobspec_work *work, const json_t *job);

/* Finds what is wrong beyond types. */
void jobspec_check(struct jobspec_work *work, json_t *job);

/* Takes RAW (moved, may be NULL) through defaults and checks, and gives back what WORK holds. */
int jobspec_finish(struct jobspec_work *work, json_t *raw, json_t **ret_job);

/* True if VALUE is nested deeper than anything here follows. */
bool jobspec_is_deep(const json_t *value);

/* VALUE with the fields of SCHEMA in the table's order, all or only what allocs run by.  New
 * reference. */
json_t *jobspec_arrange(const struct jobspec_schema *schema, const json_t *value, bool run_only);

/* What an alloc's specification says of JOB, without its groups: a new reference. */
json_t *jobspec_job_part(const json_t *job);

/* The job's fields of FATE_RUN without the groups: a new reference. */
json_t *jobspec_job_fields(const json_t *job);

/* True if a task that says AFTER cannot be BEFORE, which goes on (update.c). */
bool jobspec_task_replaces(const json_t *before, const json_t *after);

/* What jobspec_alloc_json makes a text of, as a new reference. */
int jobspec_alloc_value(const json_t *job, const struct jobspec_placement *placement,
                        json_t **ret_alloc, struct err *err);

/* ALLOC, borrowed, as text and decoded; as jobspec_make_alloc. */
int jobspec_write_alloc(const json_t *alloc, char **ret_text, size_t *ret_length,
                        struct alloc_spec **ret_spec, struct err *err);

/* What jobspec_decode_alloc makes of a text, from what the text says; ALLOC is borrowed for the
 * call and only read. */
int jobspec_decode_value(const json_t *alloc, struct alloc_spec **ret_spec, struct err *err);

/* "task" objects of a group and so on: the elements of an array field, or an empty array. */
const json_t *jobspec_list(const json_t *object, const char *field);

/* The bytes of which BYTES of LENGTH are Snappy's block, owned by the caller.  False: they are
 * none, or of more than MAX. */
bool jobspec_unpack(const uint8_t *bytes, size_t length, size_t max, uint8_t **ret_bytes,
                    size_t *ret_length);

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
