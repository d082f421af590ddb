/*
 * Workers of the restore laboratory: processes that take items from a shared counter.
 *
 * The parent only looks: now and then at the counters, for the progress line, and at who has
 * ended.  A worker that dies or stands still has failed the item it was at.
 */
#include "sim/pool.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_MS = 50, LINE_EVERY_S = 10 };

/* Written by one worker, read by the parent. */
struct worker {
    pid_t pid;             /* 0: has ended, and was waited for */
    uint64_t seen_runs;    /* parent: when it looked last */
    int64_t seen_ms;       /* parent: and when that had changed */
    _Atomic uint64_t item; /* the one it is at */
    _Atomic uint32_t has_failed;
    struct sim_tally tally;
    struct sim_failure failure;
};

/* Shared by all. */
struct board {
    _Atomic uint64_t next; /* item to be taken */
    _Atomic uint64_t end;  /* items at and behind it need not be done */
    struct worker workers[];
};

struct progress {
    int64_t begun_ms, said_ms;
    bool is_terminal, has_line;
};

static int64_t clock_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail for this clock */
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* --- in the child --- */

static void lower_end(struct board *board, uint64_t item)
{
    uint64_t end = atomic_load(&board->end);

    while (item < end && !atomic_compare_exchange_weak(&board->end, &end, item))
        ;
}

_Noreturn static void work(const struct sim_pool *pool, struct board *board, struct worker *worker)
{
    struct sim *sim = sim_new();

    for (;;) {
        uint64_t item = atomic_fetch_add(&board->next, 1);
        if (item >= atomic_load(&board->end))
            break;
        atomic_store(&worker->item, item);
        worker->failure.item = item;
        if (pool->work(pool->ctx, sim, item, &worker->tally, &worker->failure))
            continue;
        worker->failure.has_run = true;
        atomic_store(&worker->has_failed, 1);
        lower_end(board, item);
        break; /* items are taken in order: all that it could take are behind this one */
    }
    sim_free(sim);
    _exit(0); /* what the parent has buffered is the parent's to write */
}

static bool hire(const struct sim_pool *pool, struct board *board, struct worker *worker)
{
    pid_t parent = getpid();

    atomic_store(&worker->item, UINT64_MAX);
    worker->seen_ms = clock_ms();
    pid_t child = fork();
    if (child > 0)
        worker->pid = child; /* the memory is shared: only the parent writes here */
    if (child != 0)
        return child > 0;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* at worst it works on for nobody */
    if (getppid() != parent)
        _exit(0);
    work(pool, board, worker);
}

/* --- in the parent --- */

/* A worker has ended without a word, or was ended by us: its item has failed. */
static void blame(struct board *board, struct worker *worker, const char *text,
                  enum sim_outcome outcome)
{
    uint64_t item = atomic_load(&worker->item);

    if (item == UINT64_MAX)
        item = 0; /* it had not begun yet */
    memset(&worker->failure, 0, sizeof(worker->failure));
    worker->failure.item = item;
    worker->failure.result.outcome = outcome;
    (void)text_copy(worker->failure.result.text, sizeof(worker->failure.result.text), text);
    atomic_store(&worker->has_failed, 1);
    lower_end(board, item);
}

static void look_at(const struct sim_pool *pool, struct board *board, struct worker *worker)
{
    int status = 0;
    char text[128];

    if (worker->pid == 0)
        return;
    if (waitpid(worker->pid, &status, WNOHANG) == worker->pid) {
        worker->pid = 0;
        if (WIFSIGNALED(status)) {
            (void)text_format(text, sizeof(text), "the process died: %s",
                              strsignal(WTERMSIG(status))); /* fits */
            blame(board, worker, text, SIM_ASSERTION);
        } else if (WEXITSTATUS(status) != 0) {
            blame(board, worker, "the process ended by itself", SIM_ASSERTION);
        }
        return;
    }
    int64_t now_ms = clock_ms();
    if (worker->tally.runs != worker->seen_runs) {
        worker->seen_runs = worker->tally.runs;
        worker->seen_ms = now_ms;
    } else if (now_ms - worker->seen_ms > (int64_t)pool->stall_s * 1000) {
        (void)kill(worker->pid, SIGKILL); /* our child, not yet waited for: the pid is its own */
        (void)waitpid(worker->pid, &status, 0);
        worker->pid = 0;
        (void)text_format(text, sizeof(text), "no world has ended for %u s", pool->stall_s);
        blame(board, worker, text, SIM_LIVENESS);
    }
}

static void say_progress(const struct sim_pool *pool, struct board *board,
                         struct progress *progress, bool is_last)
{
    int64_t now_ms = clock_ms();
    uint64_t runs = 0, taken = atomic_load(&board->next);
    double seconds = (double)(now_ms - progress->begun_ms) / 1000;

    if (!progress->is_terminal && (is_last || now_ms < progress->said_ms + LINE_EVERY_S * 1000))
        return;
    progress->said_ms = now_ms;
    for (unsigned i = 0; i < pool->cores; i++)
        runs += board->workers[i].tally.runs;
    if (taken > pool->items)
        taken = pool->items;
    (void)fprintf(stderr, "%s%s %llu of %llu, %llu worlds, %.0f a second%s",
                  progress->is_terminal ? "\r\033[K" : "", pool->what, (unsigned long long)taken,
                  (unsigned long long)pool->items, (unsigned long long)runs,
                  seconds > 0 ? (double)runs / seconds : 0.0, progress->is_terminal ? "" : "\n");
    progress->has_line = progress->is_terminal;
    if (is_last && progress->has_line)
        (void)fputs("\r\033[K", stderr);
    (void)fflush(stderr);
}

static bool anybody_works(const struct sim_pool *pool, const struct board *board)
{
    for (unsigned i = 0; i < pool->cores; i++) {
        if (board->workers[i].pid > 0)
            return true;
    }
    return false;
}

static bool gather(const struct sim_pool *pool, const struct board *board, struct sim_tally *tally,
                   struct sim_failure *ret_failure)
{
    const struct worker *first = NULL;

    for (unsigned i = 0; i < pool->cores; i++) {
        const struct worker *worker = &board->workers[i];
        sim_tally_add(tally, &worker->tally);
        if (atomic_load(&worker->has_failed) &&
            (first == NULL || worker->failure.item < first->failure.item))
            first = worker;
    }
    if (first != NULL)
        *ret_failure = first->failure;
    return first == NULL;
}

bool sim_pool_run(const struct sim_pool *pool, struct sim_tally *tally,
                  struct sim_failure *ret_failure)
{
    size_t size = sizeof(struct board) + pool->cores * sizeof(struct worker);
    struct progress progress = {clock_ms(), clock_ms(), isatty(STDERR_FILENO) == 1, false};

    check(pool->cores > 0);
    check(pool->cores <= SIM_CORES_MAX);
    struct board *board =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(board != MAP_FAILED);
    atomic_store(&board->end, pool->items);
    (void)fflush(NULL); /* so that no child has text of ours to write again */
    for (unsigned i = 0; i < pool->cores; i++) {
        if (!hire(pool, board, &board->workers[i]))
            blame(board, &board->workers[i], "no process can be made", SIM_ASSERTION);
    }
    while (anybody_works(pool, board)) {
        (void)poll(NULL, 0, LOOK_MS); /* nothing to wait for but time */
        for (unsigned i = 0; i < pool->cores; i++)
            look_at(pool, board, &board->workers[i]);
        say_progress(pool, board, &progress, false);
    }
    say_progress(pool, board, &progress, true);
    bool fine = gather(pool, board, tally, ret_failure);
    (void)munmap(board, size); /* ours, as mapped above */
    return fine;
}
