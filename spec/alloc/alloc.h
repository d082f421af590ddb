/*
 * Inside spec only: what one alloc runs by, made of a job, as the text that the journal keeps, and
 * as what is decoded of it.
 */
#ifndef CAIRN_SPEC_ALLOC_H
#define CAIRN_SPEC_ALLOC_H

#include "spec/blocks/blocks.h"

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

/* The deployment ID waits to hear of the health of ALLOC, as GROUP says; NULL or "": none does. */
void jobspec_put_deployment(json_t *alloc, const json_t *group, const char *id);

/* --- identities: tokens that servers sign for a task (identity.c) --- */

/* IDENTITY as a server sends it, with what matters here: a new reference; NULL: nobody sees it, or
 * is told of it. */
json_t *jobspec_prepare_identity(const json_t *identity, bool named);
void jobspec_check_identities(struct jobspec_work *work, const json_t *task);

/* Puts the tokens of SENT, an alloc, into ALLOC, for those tasks of GROUP that see theirs.
 * ERR_CORRUPT: one is missing, or no token. */
int jobspec_put_identities(json_t *alloc, const json_t *group, const json_t *sent, struct err *err);

#endif
