/*
 * A binary heap of borrowed timers.  Each timer knows its place (slot = index + 1), so that it can
 * be taken out without a search; slot 0 means "not armed".  Equal deadlines fire in the order in
 * which they were armed, so that a run can be told again.
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
    timers->heap[index] = timer;
    timer->slot = index + 1;
}

static void sift_up(struct timers *timers, size_t index, struct io_timer *timer)
{
    while (index > 0) {
        size_t parent = (index - 1) / 2;

        if (!earlier(timer, timers->heap[parent]))
            break;
        place(timers, index, timers->heap[parent]);
        index = parent;
    }
    place(timers, index, timer);
}

static void sift_down(struct timers *timers, size_t index, struct io_timer *timer)
{
    for (;;) {
        size_t child = 2 * index + 1;

        if (child >= timers->count)
            break;
        if (child + 1 < timers->count && earlier(timers->heap[child + 1], timers->heap[child]))
            child++;
        if (!earlier(timers->heap[child], timer))
            break;
        place(timers, index, timers->heap[child]);
        index = child;
    }
    place(timers, index, timer);
}

void timers_add(struct timers *timers, struct io_timer *timer)
{
    check(timer->slot == 0);

    if (timers->count == timers->capacity) {
        size_t capacity = timers->capacity == 0 ? 16 : timers->capacity * 2;
        struct io_timer **heap = reallocarray(timers->heap, capacity, sizeof(struct io_timer *));

        check(heap != NULL);
        timers->heap = heap;
        timers->capacity = capacity;
    }
    timer->order = timers->next_order++;
    sift_up(timers, timers->count++, timer);
}

void timers_remove(struct timers *timers, struct io_timer *timer)
{
    if (timer->slot == 0)
        return;

    size_t index = timer->slot - 1;
    check(index < timers->count);
    check(timers->heap[index] == timer);

    struct io_timer *last = timers->heap[--timers->count];
    timer->slot = 0;
    if (last == timer)
        return;
    if (index > 0 && earlier(last, timers->heap[(index - 1) / 2]))
        sift_up(timers, index, last);
    else
        sift_down(timers, index, last);
}

struct io_timer *timers_first(const struct timers *timers)
{
    return timers->count == 0 ? NULL : timers->heap[0];
}

void timers_close(struct timers *timers)
{
    for (size_t i = 0; i < timers->count; i++)
        timers->heap[i]->slot = 0;
    free(timers->heap);
    *timers = (struct timers){0};
}
