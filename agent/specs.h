/*
 * What allocs were asked to be: specifications from the journal, decoded, and a cache of them.
 *
 * Hooks and drivers ask for the same few again and again while an alloc is set up; an idle daemon
 * keeps none.
 */
#ifndef CAIRN_AGENT_SPECS_H
#define CAIRN_AGENT_SPECS_H

#include "spec/spec.h"

struct err;
struct journal;
struct specs;

/* JOURNAL is borrowed for its life. */
struct specs *specs_new(struct journal *journal);
void specs_free(struct specs *specs);

/* The spec of an alloc, decoded from the journal; ERR_GONE if there is none.  The caller frees it
 * with alloc_spec_free. */
int specs_read(struct specs *specs, const char *alloc, struct alloc_spec **ret_spec,
               struct err *err);

/* The same from the cache, borrowed until the loop goes on; NULL with ERR. */
const struct alloc_spec *specs_find(struct specs *specs, const char *alloc, struct err *err);

/* Empties the cache. */
void specs_forget(struct specs *specs);

#endif
