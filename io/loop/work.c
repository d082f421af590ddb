/*
 * A pool of at most four threads for calls that block: syncing, deleting, mounting, archives.
 *
 * A thread is started when work waits and nobody is idle, and then stays, asleep on a condition
 * without a timeout: an idle pool costs no CPU.  Threads block every signal, have small stacks and
 * a umask of their own, and touch nothing but the request they were given.  The loop learns of
 * finished work from one event descriptor, written once for a batch.
 */
#include "io/loop/work.h"

#include "base/base.h"
#include "io/log.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

/* Enough for a job file and for JSON nested as deep as they may be, for name resolution and
 * libarchive; the default of 8 MiB would be charged as locked memory under mlockall and makes the
 * address space hard to read. */
enum { STACK_BYTES = 1 << 20, AHEAD_IN_A_ROW = 8 };

struct work_list {
    struct io_work *first, **end;
    size_t count;
};

struct work_pool {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct work_list ahead, waiting, finished;
    unsigned ahead_in_a_row; /* taken while others waited */
    unsigned idle;
    bool stopping;
    int event_fd;
    unsigned threads_count;
    pthread_t threads[WORK_THREADS_MAX];
};

static void list_init(struct work_list *list)
{
    list->first = NULL;
    list->end = &list->first;
    list->count = 0;
}

static void list_add(struct work_list *list, struct io_work *work)
{
    work->next = NULL;
    *list->end = work;
    list->end = &work->next;
    list->count++;
}

static struct io_work *list_take_first(struct work_list *list)
{
    struct io_work *work = list->first;

    list->first = work->next;
    if (list->first == NULL)
        list->end = &list->first;
    list->count--;
    work->next = NULL;
    return work;
}

static size_t waiting_count(const struct work_pool *pool)
{
    return pool->ahead.count + pool->waiting.count;
}

/* What is ahead, but now and then one of those that wait behind: they come to an end, too. */
static struct io_work *take_next(struct work_pool *pool)
{
    bool behind = pool->ahead.first == NULL ||
                  (pool->waiting.first != NULL && pool->ahead_in_a_row >= AHEAD_IN_A_ROW);

    pool->ahead_in_a_row = behind ? 0 : pool->ahead_in_a_row + 1;
    return list_take_first(behind ? &pool->waiting : &pool->ahead);
}

static void lock(struct work_pool *pool)
{
    check(pthread_mutex_lock(&pool->lock) == 0);
}

static void unlock(struct work_pool *pool)
{
    check(pthread_mutex_unlock(&pool->lock) == 0);
}

/* Called with the lock held, so that a batch the loop has not taken yet is announced once. */
static void finish(struct work_pool *pool, struct io_work *work)
{
    bool announce = pool->finished.first == NULL;

    list_add(&pool->finished, work);
    if (announce)
        check(eventfd_write(pool->event_fd, 1) == 0);
}

/* No guard of the loop's thread stands on this one. */
static void on_check_failed(void *ctx, const char *file, int line, const char *text)
{
    (void)ctx; /* a thread of the pool has nothing to add */
    log_error("io", "assertion failed in a worker thread at=%s:%d check=%s", file, line,
              log_value(text));
}

static _Thread_local bool unmasked;

bool io_work_is_unmasked(void)
{
    return unmasked;
}

static void *thread_main(void *ctx)
{
    struct work_pool *pool = ctx;
    struct check_guard guard;

    unmasked = unshare(CLONE_FS) == 0; /* a filter of system calls may keep it from us */
    if (unmasked)
        (void)umask(0); /* cannot fail */
    check_guard_push(&guard, on_check_failed, NULL);
    lock(pool);
    for (;;) {
        while (waiting_count(pool) == 0 && !pool->stopping) {
            pool->idle++;
            check(pthread_cond_wait(&pool->wake, &pool->lock) == 0);
            pool->idle--;
        }
        if (waiting_count(pool) == 0)
            break;

        struct io_work *work = take_next(pool);
        unlock(pool);
        work->run(work);
        lock(pool);
        finish(pool, work);
    }
    unlock(pool);
    check_guard_pop(&guard);
    return NULL;
}

/* Called with the lock held.  Fewer threads than wanted only make the queue slower; none at all
 * would stop it for good. */
static void start_thread(struct work_pool *pool)
{
    pthread_attr_t attributes;
    sigset_t all, before;

    check(sigfillset(&all) == 0);
    check(pthread_attr_init(&attributes) == 0);
    check(pthread_attr_setstacksize(&attributes, STACK_BYTES) == 0);
    check(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
    int failed =
        pthread_create(&pool->threads[pool->threads_count], &attributes, thread_main, pool);
    check(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
    check(pthread_attr_destroy(&attributes) == 0);

    if (failed == 0)
        pool->threads_count++;
    check(pool->threads_count > 0);
}

struct work_pool *work_pool_new(void)
{
    struct work_pool *pool = calloc(1, sizeof(*pool));

    check(pool != NULL);
    check(pthread_mutex_init(&pool->lock, NULL) == 0);
    check(pthread_cond_init(&pool->wake, NULL) == 0);
    list_init(&pool->ahead);
    list_init(&pool->waiting);
    list_init(&pool->finished);
    pool->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    check(pool->event_fd >= 0);
    return pool;
}

struct io_work *work_pool_free(struct work_pool *pool)
{
    if (pool == NULL)
        return NULL;

    lock(pool);
    pool->stopping = true;
    check(pthread_cond_broadcast(&pool->wake) == 0);
    unlock(pool);
    for (unsigned i = 0; i < pool->threads_count; i++)
        check(pthread_join(pool->threads[i], NULL) == 0);

    struct io_work *left = pool->finished.first;
    check(waiting_count(pool) == 0);
    check(close(pool->event_fd) == 0);
    check(pthread_cond_destroy(&pool->wake) == 0);
    check(pthread_mutex_destroy(&pool->lock) == 0);
    free(pool);
    return left;
}

int work_pool_descriptor(const struct work_pool *pool)
{
    return pool->event_fd;
}

void work_pool_submit(struct work_pool *pool, struct io_work *work, bool ahead)
{
    lock(pool);
    list_add(ahead ? &pool->ahead : &pool->waiting, work);
    /* A thread that was woken and has not run yet still counts as idle, so does its work. */
    if (waiting_count(pool) > pool->idle && pool->threads_count < WORK_THREADS_MAX)
        start_thread(pool);
    check(pthread_cond_signal(&pool->wake) == 0);
    unlock(pool);
}

struct io_work *work_pool_take(struct work_pool *pool)
{
    eventfd_t ignored;

    lock(pool);
    struct io_work *batch = pool->finished.first;
    list_init(&pool->finished);
    (void)eventfd_read(pool->event_fd, &ignored); /* empty when an earlier batch took it */
    unlock(pool);
    return batch;
}
