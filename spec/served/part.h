/* Inside spec only: what a server says of an alloc. */
#ifndef CAIRN_SPEC_SERVED_PART_H
#define CAIRN_SPEC_SERVED_PART_H

#include "spec/job/part.h"

/* The job of the server's ALLOC, of which it was GIVEN this, with its own group only, as
 * jobspec_from_json has it: a new reference.  Errors as of served_alloc_read. */
int jobspec_read_served(const json_t *alloc, const json_t *given, json_t **ret_job,
                        struct err *err);

/* --- what it gave (given.c) --- */

/* AllocatedResources of the server's ALLOC, wherever it has them: a new reference. */
json_t *jobspec_given(const json_t *alloc);

/* Puts into RESOURCES of a task what TASK of GIVEN says (NULL: nothing) of processors and memory.
 */
void jobspec_put_given(json_t *resources, const json_t *task);

/* As jobspec_add_cores, of all tasks of GIVEN that have any. */
void jobspec_add_given_cores(json_t *alloc, const json_t *given);

/* Fills in what GIVEN says of PORTS, as they were asked for; borrowed from it.  ERR_CORRUPT: one
 * was not given. */
int jobspec_take_ports(const json_t *given, struct spec_ports *ports, struct err *err);

/* --- payloads (snappy.c) --- */

/* The bytes of which BYTES of LENGTH are Snappy's block, owned by the caller.  False: they are
 * none, or of more than MAX. */
bool jobspec_unpack(const uint8_t *bytes, size_t length, size_t max, uint8_t **ret_bytes,
                    size_t *ret_length);

#endif
