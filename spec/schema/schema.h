/*
 * Inside spec only: what a job consists of, as tables.
 *
 * One row for each field that Nomad knows: how it is called in job files and in JSON, its type, its
 * range, and what becomes of it.  Reading, naming in messages, warnings, the alloc's JSON and the
 * comparison of two jobs all go by these rows.
 */
#ifndef CAIRN_SPEC_SCHEMA_H
#define CAIRN_SPEC_SCHEMA_H

#include "spec/hcl.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum jobspec_kind {
    KIND_TEXT,
    KIND_WHOLE, /* min..max */
    KIND_BOOL,
    KIND_DURATION, /* "30s" or nanoseconds; kept as nanoseconds, min..max */
    KIND_TEXTS,    /* a list of strings */
    KIND_MAP,      /* names to strings, as a block or an argument */
    KIND_LISTS,    /* names to lists of strings, in the same way */
    KIND_CONFIG,   /* a driver's block: any shape */
    KIND_BLOCK,    /* one, see `block` */
    KIND_BLOCKS,   /* any number, a list in JSON; see `block` */
    KIND_NAMED,    /* any number, in JSON an object of them by the names that they have in HCL */
    KIND_OPERAND,  /* HCL only: `regexp = "x"` for operator = "regexp", value = "x" */
    KIND_TASK,     /* HCL only: a task outside any group, which gets a group of its own */
    KIND_ANY,      /* a refused one, whatever it looks like */
};

enum jobspec_fate {
    FATE_RUN,     /* an alloc runs by it: in its JSON, and a change replaces it or goes to it */
    FATE_PLACE,   /* the control plane acts on it: whether, when and how often it places allocs */
    FATE_KEPT,    /* kept with the job and not acted on: a warning says so */
    FATE_SERVED,  /* an alloc of servers runs by it; in other jobs an error unless empty */
    FATE_SERVER,  /* JSON only: set by a server, dropped on input */
    FATE_REFUSED, /* not made yet: an error unless empty */
};

struct jobspec_schema;

struct jobspec_field {
    const char *hcl;  /* NULL: not in job files */
    const char *json; /* NULL: not in JSON */
    enum jobspec_kind kind;
    enum jobspec_fate fate;
    int64_t min, max;
    const struct jobspec_schema *block;
    /* Refused: what to do about it.  Kept: what happens instead; NULL in blocks that are kept
     * whole. Else NULL, or what of it is not acted on: a warning, too. */
    const char *advice;
};

struct jobspec_schema {
    const char *name;  /* of the block, for messages */
    const char *label; /* JSON name of the field that the block's label goes into, or NULL */
    const struct jobspec_field *fields;
    size_t count;
};

extern const struct jobspec_schema jobspec_job, jobspec_group_schema, jobspec_task, jobspec_restart,
    jobspec_resources, jobspec_logs, jobspec_lifecycle, jobspec_disk, jobspec_constraint,
    jobspec_affinity, jobspec_spread, jobspec_update, jobspec_reschedule, jobspec_migrate,
    jobspec_disconnect, jobspec_network, jobspec_port, jobspec_volume, jobspec_volume_mount,
    jobspec_scaling, jobspec_service, jobspec_service_check, jobspec_check_restart, jobspec_connect,
    jobspec_sidecar_service, jobspec_sidecar_task, jobspec_upstream, jobspec_expose_path,
    jobspec_consul;

/* The row with this name, or NULL; JSON names match in any case, as Go matches them. */
const struct jobspec_field *jobspec_by_hcl(const struct jobspec_schema *schema, const char *name);
const struct jobspec_field *jobspec_by_json(const struct jobspec_schema *schema, const char *name);

/* What NAME is in HCL's JSON: an hcl_form, in which schemas stand for blocks. */
enum hcl_member jobspec_form(const void *within, const char *name, const void **ret_inner);

/* Where a name that SCHEMA does not know would be right: "a group block", or NULL. */
const struct jobspec_schema *jobspec_home_of(const struct jobspec_schema *schema, const char *name);

#endif
