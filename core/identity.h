/*
 * Who a node is, as its journal says: ids, the boot it ran on, and how its clock goes on.
 *
 * Node time counts milliseconds, sleep included, and never goes back: within a boot it is the time
 * since boot plus an offset kept in the journal; after a reboot the offset is chosen so that it
 * goes on from the last event by as much as the wall clock has moved forward (I-36).
 */
#ifndef CAIRN_CORE_IDENTITY_H
#define CAIRN_CORE_IDENTITY_H

#include "core/clock.h"
#include "core/core.h"
#include "core/say.h"
#include "core/store.h"

/* The name in the store of {turn, now_ms, unix_ns}: of the last event, where the log itself is lost
 * and something else of the journal is not. */
#define IDENTITY_CLOCK "clock"

struct identity {
    char id[UUID_TEXT_SIZE];
    char secret[UUID_TEXT_SIZE];
    char boot_id[UUID_TEXT_SIZE];
    uint64_t clock_offset_ms; /* node time = time since boot + this (modulo 2^64) */
    uint64_t last_turn;       /* of the journal */
    bool rebooted;            /* another boot id than the journal remembers */
    bool changed;             /* boot id or offset are not as the journal has them */
};

/* The world as the daemon finds it at its start. */
struct identity_now {
    const char *boot_id;
    uint64_t since_boot_ms;
    int64_t unix_ns;
    uint64_t random[4]; /* what new ids are made of */
    struct say say;
};

/* Reads id and secret from the journal, or makes them where there are none or they are damaged;
 * then they are written before anything else happens (I-34).  Another identity is better than a
 * node that never starts again: what runs is found by its mark, and the clock goes on from the last
 * event. */
int identity_take(struct identity *identity, const struct store *store,
                  const struct identity_now *now, struct err *err);

/* What the journal knows of the node that wrote it, as it was then, and its newest event;
 * SAY hears of what could not be read.  ERR_GONE: no identity was ever stored. */
int identity_recall(struct identity *identity, const struct store *store, const struct say *say,
                    struct clock_last *ret_last, struct err *err);

/* The entry "node" of the journal's meta, owned by the caller. */
char *identity_encode(const struct identity *identity);

/* Lets the next commit of CORE, which must be that of the restore, take the boot id and the clock
 * along.  Not before: a daemon that died in between would forget that the host was rebooted, and a
 * full disk would keep it from starting at all. */
void identity_keep(const struct identity *identity, struct core *core);

#endif
