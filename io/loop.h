/*
 * The event loop: descriptors, files, timers, signals, work for other threads.
 *
 * One loop, one thread.  Callbacks run on it, never inside the call that arms them.  Embedded
 * structs (io_watch, io_change, io_timer, io_before_sleep, io_work) belong to the caller, must stay
 * where they are while armed, and are zeroed before first use; stopping one that is not armed does
 * nothing.
 * Timers run on CLOCK_BOOTTIME, which counts sleep: a deadline that passed while the host slept
 * fires at once after it wakes.  Only io/loop/loop.c knows libev.
 */
#ifndef CAIRN_IO_LOOP_H
#define CAIRN_IO_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loop;

/* A new loop with its pool of at most 4 worker threads (started at first use); dies on failure. */
struct loop *loop_new(void);

/* Cancels what HTTP has in flight, waits for submitted work and calls its done(), disarms timers,
 * gives signals back to their former mask.  A process that must not wait just exits. */
void loop_free(struct loop *loop);

/* Runs until loop_stop, which also counts when it came before.  Returns when nothing can wake it
 * any more, too. */
void loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

/* Milliseconds of CLOCK_BOOTTIME, microseconds of it, and nanoseconds of the wall clock, read
 * now. */
uint64_t loop_now_ms(void);
uint64_t loop_now_us(void);
int64_t loop_now_unix_ns(void);

/* The loop's own implementation handle (a struct ev_loop *), for libraries with a libev plug-in. */
void *loop_native(struct loop *loop);

/* --- descriptors --- */

/* IO_URGENT is what poll calls POLLPRI (cgroup.events, mountinfo) and stands alone.  IO_CROWD is
 * said beside the others: this is one of thousands that may have news all at once.  Of each
 * iteration those who come have IO_CROWD_MS together, and those who wait, in the order of coming,
 * as much; everybody else is heard in between. */
enum { IO_READABLE = 1, IO_WRITABLE = 2, IO_URGENT = 4, IO_CROWD = 8 };
enum { IO_CROWD_MS = 20 };

struct io_watch {
    void (*cb)(struct io_watch *watch, int events);
    void *ctx;
    int fd;
    int events; /* private: what is waited for, 0 when not armed */
    struct loop *loop;
    bool crowd;                         /* private */
    int late_events;                    /* private: what it waits to tell */
    struct io_watch *late, **late_link; /* private: who waits behind it; NULL: it does not wait */
    char impl[64] __attribute__((aligned(8))); /* private: the library's watcher */
};

/* Watches FD for EVENTS until io_watch_stop; calling it again changes them.  CB gets those that
 * hold, again in each iteration while they do; an error or hang-up on FD counts as all of them.
 * Stop before closing FD. */
void io_watch_start(struct loop *loop, struct io_watch *watch, int fd, int events,
                    void (*cb)(struct io_watch *watch, int events), void *ctx);
void io_watch_stop(struct io_watch *watch);

/* --- files --- */

struct io_change {
    void (*cb)(struct io_change *change);
    void *ctx;
    struct io_changes *changes;     /* private */
    struct io_change_entry *entry;  /* private: NULL when not armed */
    struct io_change *next, **link; /* private */
};

/* Calls CB after each write to the file FD, and when it is cut, renamed or deleted; or, if FD is a
 * directory, when something has come into it; until io_change_stop.  Many changes may be one call.
 * FD may be one of O_PATH, and may be closed meanwhile.  False: the system gives no more of these
 * (fs.inotify.max_user_watches), nobody will tell. */
bool io_change_start(struct loop *loop, struct io_change *change, int fd,
                     void (*cb)(struct io_change *change), void *ctx);
void io_change_stop(struct io_change *change);

/* --- timers --- */

struct io_timer {
    void (*cb)(struct io_timer *timer);
    void *ctx;
    uint64_t at_ms; /* CLOCK_BOOTTIME */
    struct loop *loop;
    size_t slot;    /* private: its place among those that wait or are due + 1, 0: not armed */
    bool due;       /* private: which of the two */
    uint64_t order; /* private: equal deadlines fire in the order of arming */
};

/* Fires once at AT_MS (loop_now_ms() + delay); arming an armed timer moves it.  All that is due at
 * one moment is called before anything that its callbacks arm, and between two such rounds the
 * descriptors have their turn: one that arms itself again at once starves nobody. */
void io_timer_start(struct loop *loop, struct io_timer *timer, uint64_t at_ms,
                    void (*cb)(struct io_timer *timer), void *ctx);
void io_timer_stop(struct io_timer *timer);

/* --- the end of each iteration --- */

struct io_before_sleep {
    bool (*cb)(void *ctx);
    void *ctx;
    struct loop *loop;                    /* private: NULL when not armed */
    struct io_before_sleep *next, **link; /* private */
};

/* Calls CB once an iteration, after all other callbacks and before the loop sleeps, until
 * io_before_sleep_stop; those of one loop in the order of arming.  When one returns true there is
 * more to do: the loop polls without sleeping and calls all again. */
void io_before_sleep_start(struct loop *loop, struct io_before_sleep *before, bool (*cb)(void *ctx),
                           void *ctx);
void io_before_sleep_stop(struct io_before_sleep *before);

/* --- signals: delivered to the loop instead of interrupting it --- */

/* CB gets each SIGNAL of the zero-terminated list SIGNALS, from now until loop_free.  They are
 * blocked in the calling thread: call it before any other thread is started. */
void loop_on_signals(struct loop *loop, const int *signals, void (*cb)(void *ctx, int signal),
                     void *ctx);

/* --- blocking work, on the pool --- */

struct io_work {
    void (*run)(struct io_work *work);  /* on a worker thread: may block, sees only its request */
    void (*done)(struct io_work *work); /* on the loop thread, afterwards, always */
    void *ctx;
    struct io_work *next; /* private */
    struct loop *loop;    /* private */
};

/* Queues WORK behind what waits already; the struct is borrowed until its done().  Any number may
 * wait, each in its own struct. */
void io_work_submit(struct loop *loop, struct io_work *work, void (*run)(struct io_work *work),
                    void (*done)(struct io_work *work), void *ctx);

/* The same, ahead of all that was not submitted so: for what is short and somebody waits for.  Who
 * uses it bounds how much of it there is. */
void io_work_submit_ahead(struct loop *loop, struct io_work *work,
                          void (*run)(struct io_work *work), void (*done)(struct io_work *work),
                          void *ctx);

/* True on a thread of the pool whose umask is its own and none, as it is wherever it may have one:
 * what is made there has at once the mode that is asked for. */
bool io_work_is_unmasked(void);

#endif
