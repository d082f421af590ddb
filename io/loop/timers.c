/*
 * A binary heap of borrowed timers, and the list of those that are being called.  Each timer knows
 * its place in one of the two (slot = index + 1), so that it can be taken out without a search;
 * slot 0 means "not armed".  Equal deadlines fire in the order in which they were armed, so that a
 * run can be told again.
 *
 * What is due is collected before any of it is called (follows libuv src/timer.c): a timer that
 * arms itself again at a time past comes behind everything that was due with it.
 */
#include "io/loop/timers.h"

#include "base/base.h"

#include <stdlib.h>

static bool earlier(const struct io_timer *a, const struct io_timer *b)
{
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->order < b->order;
}

static void place(struct timers *timers, size_t index, struct io_timer *timer)
{
    timers->heap.items[index] = timer;
    timer->slot = index + 1;
}

static void sift_up(struct timers *timers, size_t index, struct io_timer *timer)
{
    while (index > 0) {
        size_t parent = (index - 1) / 2;

        if (!earlier(timer, timers->heap.items[parent]))
            break;
        place(timers, index, timers->heap.items[parent]);
        index = parent;
    }
    place(timers, index, timer);
}

static void sift_down(struct timers *timers, size_t index, struct io_timer *timer)
{
    for (;;) {
        size_t child = 2 * index + 1;

        if (child >= timers->heap.count)
            break;
        if (child + 1 < timers->heap.count &&
            earlier(timers->heap.items[child + 1], timers->heap.items[child]))
            child++;
        if (!earlier(timers->heap.items[child], timer))
            break;
        place(timers, index, timers->heap.items[child]);
        index = child;
    }
    place(timers, index, timer);
}

void timers_add(struct timers *timers, struct io_timer *timer)
{
    check(timer->slot == 0);

    timer->order = timers->next_order++;
    *list_more(&timers->heap) = timer;
    sift_up(timers, timers->heap.count - 1, timer);
}

static void remove_due(struct timers *timers, struct io_timer *timer)
{
    size_t index = timer->slot - 1;

    check(index >= timers->due_next);
    check(index < timers->due.count);
    check(timers->due.items[index] == timer);
    timers->due.items[index] = NULL; /* passed over when it is its turn */
    timer->slot = 0;
    timer->due = false;
}

static void remove_waiting(struct timers *timers, struct io_timer *timer)
{
    size_t index = timer->slot - 1;
    check(index < timers->heap.count);
    check(timers->heap.items[index] == timer);

    struct io_timer *last = timers->heap.items[--timers->heap.count];
    timer->slot = 0;
    if (last == timer)
        return;
    if (index > 0 && earlier(last, timers->heap.items[(index - 1) / 2]))
        sift_up(timers, index, last);
    else
        sift_down(timers, index, last);
}

void timers_remove(struct timers *timers, struct io_timer *timer)
{
    if (timer->slot == 0)
        return;
    if (timer->due)
        remove_due(timers, timer);
    else
        remove_waiting(timers, timer);
}

struct io_timer *timers_first(const struct timers *timers)
{
    return timers->heap.count == 0 ? NULL : timers->heap.items[0];
}

void timers_collect(struct timers *timers, uint64_t now_ms)
{
    struct io_timer *first;

    check(timers->due_next == timers->due.count); /* the last round is over */
    timers->due.count = 0;
    timers->due_next = 0;
    while ((first = timers_first(timers)) != NULL && first->at_ms <= now_ms) {
        remove_waiting(timers, first);
        *list_more(&timers->due) = first;
        first->slot = timers->due.count;
        first->due = true;
    }
}

struct io_timer *timers_next_due(struct timers *timers)
{
    while (timers->due_next < timers->due.count) {
        struct io_timer *timer = timers->due.items[timers->due_next];

        if (timer != NULL)
            return timer;
        timers->due_next++;
    }
    return NULL;
}

void timers_close(struct timers *timers)
{
    for (size_t i = 0; i < timers->heap.count; i++)
        timers->heap.items[i]->slot = 0;
    for (struct io_timer *due; (due = timers_next_due(timers)) != NULL;)
        remove_due(timers, due);
    free(timers->heap.items);
    free(timers->due.items);
    *timers = (struct timers){0};
}
