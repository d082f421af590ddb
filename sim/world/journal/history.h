/*
 * The log of a world's journal, and the bases where it begins.
 *
 * Bounded as a node's is, by the same retention (core/retention.h), but to so few events that a
 * small world reaches the bound.  How many is the script's or follows from its seed, and no other
 * chance is touched by it.
 */
#ifndef CAIRN_SIM_WORLD_JOURNAL_HISTORY_H
#define CAIRN_SIM_WORLD_JOURNAL_HISTORY_H

#include "core/replay.h"
#include "journal/journal.h"

struct sim;

struct sim_logged {
    struct journal_event event; /* its payload is the copy below, NULL: it has none */
    void *payload;
    size_t room; /* for the payload */
};

struct sim_history {
    struct sim_logged *items; /* a ring of SIZE, a power of two */
    size_t size;
    uint64_t first, next; /* sequences: of the oldest event, and behind the newest */
    uint64_t begin;       /* of the first event that there was */
    uint64_t limit;       /* that retention is given; 0: a node's own, and ITEMS stays empty */
    struct replay *bases; /* as they are stored */
    struct replay *again; /* for who steps the log over them */
    struct {
        const struct journal_event **items; /* of a commit, for its checker: as its bases */
        size_t count, size;
    } goes;
    struct {
        struct machine_id *items; /* whose records were put aside: their bases may stay behind */
        size_t count, size;
    } aside;
};

/* An empty log in which FIRST will be the first; what was before has no bases. */
void sim_history_reset(struct sim *sim, uint64_t first);
void sim_history_free(struct sim_history *history);

/* A base for what the world begins with; before its first event. */
void sim_history_base(struct sim *sim, const struct machine_id *id, const struct machine *record);

/* The oldest event of sequence AT or later that is kept; AT is below NEXT. */
const struct journal_event *sim_history_at(const struct sim_history *history, uint64_t at);

/* The record of ID was put aside. */
void sim_history_aside(struct sim *sim, const struct machine_id *id);

/* Stores the events of BATCH, its bases, and takes away what it trims. */
void sim_history_commit(struct sim *sim, const struct journal_batch *batch);

#endif
