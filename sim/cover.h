/*
 * sim_cover: which rows of the tables have been taken, and why the others cannot be.
 *
 * A row that no story, world or search takes is either dead or not looked at by any checker.
 */
#ifndef CAIRN_SIM_COVER_H
#define CAIRN_SIM_COVER_H

#include "sim/sim.h"

struct sim_cover {
    unsigned rows, taken; /* of all tables */
    unsigned excused;     /* not taken, and listed with the reason */
    unsigned unlikely;    /* taken although there is a reason why that should not be */
};

/* PRINT (may be NULL) gets a line for each row that was not taken, and for each reason that does
 * not hold. */
struct sim_cover sim_cover_look(const struct sim_tally *tally, fsm_print *print, void *ctx);

/* Why row ROW of KIND is not taken by any world, or NULL. */
const char *sim_cover_reason(enum machine_kind kind, unsigned row);

/* The first reason that is given for no row of the tables, or NULL. */
const char *sim_cover_stale(void);

#endif
