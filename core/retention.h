/*
 * Retention: the log is bounded, and can still be verified.
 *
 * When it has more entries than allowed, each commit also takes the oldest entries away: a few more
 * than it adds, so the log shrinks to its bound without ever stopping the node.  The machines they
 * belonged to get a base record, which is the old base stepped over the entries taken away; bases
 * of machines that have ended go with their last entry.
 */
#ifndef CAIRN_CORE_RETENTION_H
#define CAIRN_CORE_RETENTION_H

#include "core/say.h"
#include "core/store.h"

enum { RETENTION_EVENTS_MAX = 1000000 };

struct retention;

/* STORE and SAY are borrowed for its life. */
struct retention *retention_new(const struct store *store, const struct say *say);
void retention_free(struct retention *retention);

/* For tests and small disks: keep EVENTS entries. */
void retention_limit(struct retention *retention, uint64_t events);

/* Adds what is to be trimmed with BATCH to it, bases in order of their ids; borrowed until
 * retention_settle. */
void retention_extend(struct retention *retention, struct journal_batch *batch);

/* The batch has been committed, or not: then what was not trimmed is found again by the next. */
void retention_settle(struct retention *retention);

#endif
