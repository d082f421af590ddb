/* Inside spec only: from what a user writes to a job. */
#ifndef CAIRN_SPEC_JOB_PART_H
#define CAIRN_SPEC_JOB_PART_H

#include "spec/alloc/alloc.h"

/* Reads the job block of a file, or a JSON object, by the tables: known fields only, each with its
 * type.  New reference; fields with problems are left out. */
json_t *jobspec_read_hcl(struct jobspec_work *work);
json_t *jobspec_read_json(struct jobspec_work *work, const json_t *value);

/* Fills in what is not given. */
void jobspec_set_defaults(struct jobspec_work *work, json_t *job);

/* What a block of SCHEMA says that is not given, for those that only some jobs have: a new
 * reference, or NULL. */
json_t *jobspec_default_block(const struct jobspec_schema *schema);

/* Finds what is wrong beyond types. */
void jobspec_check(struct jobspec_work *work, json_t *job);

/* Takes RAW (moved, may be NULL) through defaults and checks, and gives back what WORK holds. */
int jobspec_finish(struct jobspec_work *work, json_t *raw, json_t **ret_job);

/* True if VALUE is nested deeper than anything here follows. */
bool jobspec_is_deep(const json_t *value);

#endif
