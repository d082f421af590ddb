/* The pool of threads behind io_work_submit.  Knows no loop: it hands finished work back through
 * a descriptor that becomes readable. */
#ifndef CAIRN_IO_LOOP_WORK_H
#define CAIRN_IO_LOOP_WORK_H

#include "io/loop.h"

enum { WORK_THREADS_MAX = 4 };

struct work_pool;

/* A pool without threads yet; dies on failure. */
struct work_pool *work_pool_new(void);

/* Runs what is still queued to its end, joins the threads, frees the pool; returns the finished
 * work that was not taken. */
struct io_work *work_pool_free(struct work_pool *pool);

/* Readable while there is finished work to take. */
int work_pool_descriptor(const struct work_pool *pool);

/* WORK waits in a list through itself: the pool holds no memory for it and has no bound that a
 * caller could overrun.  AHEAD: before all that waits without it. */
void work_pool_submit(struct work_pool *pool, struct io_work *work, bool ahead);

/* All work finished since the last call, linked by `next` in the order in which it finished. */
struct io_work *work_pool_take(struct work_pool *pool);

#endif
