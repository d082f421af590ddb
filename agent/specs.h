/*
 * What allocs were asked to be: their specifications, decoded, and what lists show of them.
 *
 * The spec of an alloc that is placed is handed over decoded (specs_placed); after a restart it is
 * read from the journal when it is first asked for.  Hooks and drivers ask for the same few again
 * and again while an alloc is set up; an idle daemon keeps none, but of each a stub, for the life
 * of the alloc.
 */
#ifndef CAIRN_AGENT_SPECS_H
#define CAIRN_AGENT_SPECS_H

#include "base/base.h"
#include "spec/spec.h"

struct core;
struct journal;
struct specs;

/* JOURNAL is borrowed for its life. */
struct specs *specs_new(struct journal *journal);
void specs_free(struct specs *specs);

/* What lists of allocs show and their records do not say. */
struct alloc_stub {
    char eval_id[UUID_TEXT_SIZE];
    char job_type[16];
    char previous_id[UUID_TEXT_SIZE]; /* whose place it took, or "" */
    bool rescheduled;                 /* some before it had failed */
    uint64_t create_index;            /* of the commit that placed it, 0: it does not say */
    uint64_t modify_index;            /* of the one that stored its newest version, 0: the first */
    bool looked_up;                   /* the reader's, false at first: both are as well as known */
};

/* That of ALLOC, without decoding anything if it was decoded once; NULL: its spec is lost.
 * Borrowed until the alloc is gone. */
struct alloc_stub *specs_stub(struct specs *specs, const char *alloc);

/* SPEC (moved) is what an alloc runs by that is about to be born. */
void specs_placed(struct specs *specs, struct alloc_spec *spec);

/* Who took the place of an alloc. */
struct alloc_next {
    char id[UUID_TEXT_SIZE];
    char follow_up_id[UUID_TEXT_SIZE]; /* the evaluation that made it because the other had failed;
                                          "": that is not so, or not known any more */
};

/* That of ALLOC, NULL: nobody did.  The first question about a job's reads what its allocs were
 * placed by.  Borrowed until the loop goes on. */
const struct alloc_next *specs_next(struct specs *specs, struct core *core, const char *alloc);

/* ALLOC runs by another version from now on. */
void specs_renew(struct specs *specs, const char *alloc);

/* ALLOC is gone: nobody will ask for it. */
void specs_drop(struct specs *specs, const char *alloc);

/* The spec of an alloc, decoded from the journal; ERR_GONE if there is none.  The caller frees it
 * with alloc_spec_free. */
int specs_read(struct specs *specs, const char *alloc, struct alloc_spec **ret_spec,
               struct err *err);

/* The same from the cache, borrowed until the loop goes on; NULL with ERR. */
const struct alloc_spec *specs_find(struct specs *specs, const char *alloc, struct err *err);

/* True if the cache has any. */
bool specs_hold_any(const struct specs *specs);

/* Empties the cache of specs; what was placed, but is no alloc of CORE because its commit has
 * failed, is forgotten whole. */
void specs_forget(struct specs *specs, const struct core *core);

#endif
