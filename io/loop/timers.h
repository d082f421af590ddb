/* The timers of one loop: a binary heap ordered by deadline, then by the order of arming. */
#ifndef CAIRN_IO_LOOP_TIMERS_H
#define CAIRN_IO_LOOP_TIMERS_H

#include "io/loop.h"

struct timers {
    struct io_timer **heap; /* owned array of borrowed timers */
    size_t count, capacity;
    uint64_t next_order;
};

/* Puts TIMER, whose at_ms is set, into the heap; dies when memory is out. */
void timers_add(struct timers *timers, struct io_timer *timer);

/* Takes TIMER out; does nothing if it is not in. */
void timers_remove(struct timers *timers, struct io_timer *timer);

/* The timer with the first deadline, or NULL; still in the heap. */
struct io_timer *timers_first(const struct timers *timers);

void timers_close(struct timers *timers);

#endif
