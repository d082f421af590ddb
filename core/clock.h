/*
 * Node time: milliseconds that count sleep and continue over restarts and reboots.
 *
 * It is the time since boot plus an offset.  Within one boot the offset stays; after a reboot it is
 * chosen so that node time goes on from the last event of the journal, plus the time that the wall
 * clock says has passed.  It never goes back, whatever the wall clock does (I-36).
 */
#ifndef CAIRN_CORE_CLOCK_H
#define CAIRN_CORE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* When the journal's newest event was written; all zero if there is none. */
struct clock_last {
    uint64_t now_ms; /* node time */
    int64_t unix_ns;
};

/* The offset of this incarnation, from that of the last one. */
uint64_t clock_continue(uint64_t offset_ms, bool rebooted, const struct clock_last *last,
                        uint64_t since_boot_ms, int64_t unix_ns);

#endif
