/*
 * Job files: what a user writes, what is kept of it, and what one alloc needs of that.
 *
 *   HCL or JSON text -> job (jansson, Nomad's field names, defaults filled in, checked)
 *                    -> one JSON text for each alloc (the journal's `spec` table)
 *                    -> struct alloc_spec (spec/spec.h) for hooks and drivers
 *
 * A *job* here is the bare object {"ID": ..., "TaskGroups": [...]} as `nomad job run -output`
 * prints it below "Job".  Follows nomad v1.1.2 jobspec2, api/jobs.go and api/tasks.go
 * (Canonicalize), nomad/structs (Validate).  Where later versions differ they were taken for:
 * datacenters ["*"] when none are given (1.5), logs.disabled (1.5.4).
 *
 * What cairn does not act on is either kept with the job and named in its warnings (update,
 * affinity, ...), or refused by name: spec/schema/schema.c is the one table of both.  Run-time
 * interpolations (${NOMAD_...}, ${env[...]}, ${attr...}, ${meta...},
 * ${node...}) pass through as text; the hooks resolve them.
 */
#ifndef CAIRN_SPEC_JOB_H
#define CAIRN_SPEC_JOB_H

#include "base/base.h"
#include "spec/hcl.h"
#include "spec/spec.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    JOBSPEC_PROBLEMS_MAX = 20,
    SPEC_RESCHEDULED_MAX = 1000,       /* times that an alloc knows of */
    SPEC_PREEMPTED_MAX = 1000,         /* allocs that one makes give way */
    JOBSPEC_ALLOC_BYTES_MAX = 8 << 20, /* one alloc's JSON text */
};

/* --- problems --- */

/* Everything found wrong with a job, in the order of the file.  About 26 KB. */
struct jobspec_problems {
    size_t count;   /* in items; 0: nothing is wrong */
    size_t dropped; /* more that were found and not kept */
    /* Each: "file:line:column: message" (JSON: "file: message"), then perhaps the line with carets
     * and a hint on lines of their own. */
    char items[JOBSPEC_PROBLEMS_MAX][HCL_ERROR_SIZE];
    struct hcl_place places[JOBSPEC_PROBLEMS_MAX]; /* line 0: not about a place, always for JSON */
};

/* All of them as one text, a newline between two; cut at SIZE - 1. */
void jobspec_problems_text(const struct jobspec_problems *problems, char *to, size_t size);

/* --- reading --- */

struct jobspec_source {
    const char *name; /* of the file, for messages */
    const char *text;
    size_t length;
    const struct hcl_input *inputs; /* HCL: values for its variables */
    size_t inputs_count;
    const char *base_directory; /* HCL: where file() starts; NULL refuses file(), see spec/hcl.h */
};

/* Reads a job file, HCL or JSON (text that begins with a brace; with or without the {"Job": ...}
 * around it), fills in defaults and checks it.  0 and the job (owned by the caller), or ERR_INVALID
 * and at least one problem. */
int jobspec_parse(const struct jobspec_source *source, json_t **ret_job,
                  struct jobspec_problems *ret_problems);

/* The same for JSON that is parsed already, as it comes with a request; REQUEST is borrowed.  Texts
 * of templates are not read here; what whoever did notes of them is wrong with the job. */
int jobspec_from_json(const char *name, const json_t *request, json_t **ret_job,
                      struct jobspec_problems *ret_problems);

/* Reads the texts of templates in REQUEST, as jobspec_from_json takes it, and notes in its job what
 * is wrong with them: nothing else says there what this does. */
#define JOBSPEC_NOTES "cairnTemplates"
void jobspec_note_templates(json_t *request);

/* --- values of its variables --- */

enum { JOBSPEC_VALUES_MAX = 128 };

struct jobspec_values {
    struct hcl_input items[JOBSPEC_VALUES_MAX]; /* their names are owned */
    size_t count;
    json_t *held; /* array: what items point to */
};

struct jobspec_values *jobspec_values_new(void);
void jobspec_values_free(struct jobspec_values *values);

/* The next one, whose NAME is copied; NULL: there are as many as there may be. */
struct hcl_input *jobspec_values_add(struct jobspec_values *values, const char *name,
                                     size_t length);

/* Those that TEXT, a file of values in HCL or JSON, has.  ERR_INVALID, and what is wrong with it.
 */
int jobspec_read_values(const char *path, const char *text, size_t length,
                        struct jobspec_values *values, char ret_told[HCL_ERROR_SIZE]);

/* --- jobs --- */

/* What JOB says and nobody acts on, as text of several lines, which is owned by the caller; "" if
 * there is nothing. */
char *jobspec_warnings(const json_t *job);

/* True if JOB (canonical) is not run itself but what is dispatched of it; and if it is that. */
bool jobspec_is_parameterized(const json_t *job);
bool jobspec_is_dispatched(const json_t *job);

/* True if JOB is launched at times, each time as a job of its own; and if it is enabled, so that it
 * is. */
bool jobspec_is_periodic(const json_t *job);
bool jobspec_is_launched_by_time(const json_t *job);

/* True if JOB is either of these, which are not run themselves; and if it was made of one. */
bool jobspec_makes_jobs(const json_t *job);
bool jobspec_is_child(const json_t *job);

/* The zone in which the times of JOB, which is periodic, are meant: a name of the IANA's; and true
 * if nothing is launched while something that was launched before goes on. */
const char *jobspec_time_zone(const json_t *job);
bool jobspec_prohibits_overlap(const json_t *job);

/* The first time after AFTER_UNIX_S at which JOB is to be launched, CRON_NEVER: there is none. ZONE
 * is its time zone, NULL: UTC. */
struct zone;
int64_t jobspec_next_launch(const json_t *job, const struct zone *zone, int64_t after_unix_s);

/* The job that is made of JOB, which is periodic, for UNIX_S: a new reference that shares what is
 * the same.  NULL: its id would be too long. */
json_t *jobspec_launch(const json_t *job, int64_t unix_s);

/* What somebody dispatches of a job; all borrowed. */
struct jobspec_dispatch {
    const char *id;      /* that the new job is to have: jobspec_dispatched_id */
    const char *payload; /* in base64, "": none */
    json_t *meta;        /* by name, NULL: none */
    const char *token;   /* two with the same one are the same; "": it has none */
    int64_t priority;    /* 0: that of the job */
};

/* The job that DISPATCH makes of JOB, which is parameterized: a new reference that shares what is
 * the same.  ERR_INVALID in Nomad's words. */
int jobspec_dispatch(const json_t *job, const struct jobspec_dispatch *dispatch, json_t **ret_job,
                     struct err *err);

/* An id for what is dispatched of JOB; PREFIX may be "".  False: it is too long for one. */
bool jobspec_dispatched_id(const char *job, const char *prefix, int64_t unix_s, const char *uuid,
                           char ret_id[SPEC_NAME_SIZE]);

/* The payload that TEXT is in base64, owned by the caller.  False: it is none, or more than
 * SPEC_PAYLOAD_BYTES_MAX. */
bool jobspec_payload(const char *text, uint8_t **ret_bytes, size_t *ret_length);

/* The group NAME of JOB, borrowed, or NULL. */
const json_t *jobspec_group(const json_t *job, const char *name);

/* 0 if COUNT, which a group of JOB (canonical) has now, is not too many for it, nor JOB too much
 * with it; ERR_LIMIT. */
int jobspec_check_count(const json_t *job, int64_t count, struct err *err);

/* The ports that one alloc of GROUP (of a canonical job, or what is stored of one) asks for, static
 * ones first, all borrowed from it.  False: what is stored is damaged. */
bool jobspec_ports(const json_t *group, struct spec_port ret_ports[SPEC_PORTS_MAX],
                   size_t *ret_count);

/* The volumes that the alloc INDEX of GROUP (of a canonical job, or what is stored of one) asks
 * for; names are borrowed from it, and each source is in RET_SOURCES.  False: what is stored is
 * damaged. */
bool jobspec_volumes(const json_t *group, uint32_t index,
                     struct spec_volume ret_volumes[SPEC_VOLUMES_MAX],
                     char ret_sources[SPEC_VOLUMES_MAX][SPEC_SOURCE_SIZE], size_t *ret_count);

/* How many cores one alloc of GROUP asks for, all its tasks together. */
uint64_t jobspec_cores(const json_t *group);

/* True if an alloc of GROUP made from JOB_A is as good as one made from JOB_B: nothing that it runs
 * by has changed.  Count, priority and what else only places allocs does not matter; everything
 * about tasks, restarts, resources, environment and meta does.  False if one has no such group. */
bool jobspec_group_equal(const json_t *job_a, const json_t *job_b, const char *group);

/* What AFTER says otherwise than BEFORE (NULL: there was no job), both canonical, as Nomad's
 * JobDiff has it; the Updates of its groups are null, since no spec knows of allocs.  A new
 * reference. */
json_t *jobspec_diff(const json_t *before, const json_t *after);

/* The same of two versions, of which nobody asks what the newer one will do to allocs. */
json_t *jobspec_version_diff(const json_t *before, const json_t *after);

/* --- allocs --- */

struct jobspec_placement {
    const char *group;
    uint32_t index;                 /* below the group's count */
    const char *alloc_id, *eval_id; /* UUIDs; eval_id may be "" */
    const char *datacenter;         /* of the node */
    int64_t create_time_unix_ns;
    uint64_t create_index;     /* of the commit that places it, 0: none */
    const char *previous_id;   /* the alloc whose place it takes; NULL: none */
    const char *deployment_id; /* which waits to hear whether it is healthy; NULL: none */
    const struct spec_rescheduled *rescheduled;
    size_t rescheduled_count; /* at most SPEC_RESCHEDULED_MAX */
    /* What was found for all that jobspec_ports says, in that order; borrowed. */
    struct spec_ports ports;
    struct spec_cores cores; /* for each task as many as it asks for; borrowed */
    const json_t *devices;   /* by task what it is given (spec/devices.h); NULL: none; borrowed */
    /* Of each volume of type csi, by its name in the group, the id of its plugin; borrowed. */
    struct spec_pairs plugins;
};

/* What one alloc of JOB runs by, as compact JSON that needs nothing else to be understood.  The
 * text is owned by the caller (free).  ERR_GONE: no such group; ERR_LIMIT: too long. */
int jobspec_alloc_json(const json_t *job, const struct jobspec_placement *placement,
                       char **ret_text, size_t *ret_length, struct err *err);

/* The same with what jobspec_decode_alloc would make of the text, without reading it again: for one
 * who places an alloc and needs both.  RET_TEXT and RET_LENGTH may be NULL, to try whether one
 * could be placed.  ERR_CORRUPT, too, if no alloc can run by it.  Text and spec are owned by the
 * caller; after a failure there is neither. */
int jobspec_make_alloc(const json_t *job, const struct jobspec_placement *placement,
                       char **ret_text, size_t *ret_length, struct alloc_spec **ret_spec,
                       struct err *err);

/* What of GROUP, and of JOB around it, an alloc cannot take in place: where two are equal an alloc
 * made from one job goes on as one of the other.  A new reference; NULL: it has no such group. */
json_t *jobspec_essence(const json_t *job, const char *group);

/* The same of what is stored of an alloc; NULL: no alloc can run by it. */
json_t *jobspec_alloc_essence(const char *text, size_t length);

/* A newer version of what an alloc runs by. */
struct jobspec_update {
    const char *text; /* what it runs by; borrowed */
    size_t length;
    const char *eval_id;
    const char *deployment_id; /* which waits to hear whether it is healthy by it; NULL: none */
    uint64_t modify_index;     /* of the commit that stores it */
};

/* What it runs by from now on as an alloc of JOB, whose essence is the same: whatever it was given
 * when it was placed stays.  The rest as jobspec_make_alloc; ERR_CORRUPT if it cannot be read. */
int jobspec_update_alloc(const json_t *job, const struct jobspec_update *update, char **ret_text,
                         size_t *ret_length, struct alloc_spec **ret_spec, struct err *err);

/* Reads such a text.  ERR_CORRUPT with a sentence for anything that is not one; the spec with all
 * it points to is owned by the caller until alloc_spec_free. */
int jobspec_decode_alloc(const char *text, size_t length, struct alloc_spec **ret_spec,
                         struct err *err);
void alloc_spec_free(struct alloc_spec *spec);

#endif
