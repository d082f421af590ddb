/* The timers of one loop: those that wait, ordered by deadline, then by the order of arming; and
 * those that were due when it was last looked, which are called one after the other. */
#ifndef CAIRN_IO_LOOP_TIMERS_H
#define CAIRN_IO_LOOP_TIMERS_H

#include "io/loop.h"

struct timer_list {
    struct io_timer **items; /* owned array of borrowed timers */
    size_t count, size;
};

struct timers {
    struct timer_list heap;
    struct timer_list due; /* NULL: stopped meanwhile */
    size_t due_next;       /* whose turn it is */
    uint64_t next_order;
};

/* Lets TIMER, whose at_ms is set, wait; dies when memory is out. */
void timers_add(struct timers *timers, struct io_timer *timer);

/* Takes TIMER out, whether it waits or is due; does nothing if it is not in. */
void timers_remove(struct timers *timers, struct io_timer *timer);

/* The timer that waits for the first deadline, or NULL; not taken out. */
struct io_timer *timers_first(const struct timers *timers);

/* Those whose time is NOW_MS or before are due from now on, and those armed later are not, whatever
 * their time.  None may be left from the last time. */
void timers_collect(struct timers *timers, uint64_t now_ms);

/* The next one of those that are due, in order, or NULL; not taken out. */
struct io_timer *timers_next_due(struct timers *timers);

void timers_close(struct timers *timers);

#endif
