/*
 * The loop, on libev; nobody else includes ev.h.
 *
 * An iteration of libev is: prepare watchers, sleep in epoll, callbacks.  Our one prepare watcher
 * has the lowest priority, so that it runs last before the sleep: there the agent takes its turn,
 * and there the one timer descriptor is set to the first deadline.  An idle watcher that does
 * nothing keeps the loop from sleeping while the agent has more to do.
 *
 * Invariant: an idle loop does not wake.  libev itself wakes each minute to look for jumps of the
 * wall clock, unless it has a timer descriptor that tells it; it makes one as soon as there is a
 * periodic watcher, so there is one that never fires.
 */
#include "io/loop.h"

#include "base/base.h"
#include "io/loop/guest.h"
#include "io/loop/timers.h"
#include "io/loop/work.h"

#include <ev.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* Seconds of the wall clock that the kernel cannot be set to (it ends after 292 years). */
#define NEVER_UNIX_S 1e15

struct signal_watch {
    ev_io io;
    sigset_t before; /* the mask to go back to */
    void (*cb)(void *ctx, int signal);
    void *ctx;
    struct signal_watch *next;
};

struct loop {
    struct ev_loop *ev;
    bool running, stop;

    ev_prepare prepare;
    ev_check woken; /* behind all events of an iteration */
    ev_idle more;
    ev_periodic never;
    struct io_before_sleep *before_sleep; /* in the order of arming */
    struct io_before_sleep *next_before;  /* to be called now: it may go while another one is */
    bool before_armed;                    /* one of them has not been called yet */

    struct timers timers;
    ev_io timer_io;
    uint64_t timer_set_ms; /* what the timer descriptor is set to, 0: disarmed */
    bool timer_is_due;     /* the first timer is for now, which needs no descriptor */

    uint64_t crowd_until_ms; /* of this iteration, 0: nobody of the crowd has come */
    struct io_watch *late, **late_end;

    ev_io urgent_io; /* an epoll descriptor of its own, made at first use */
    size_t urgent_count;

    struct signal_watch *signals;
    struct work_pool *pool; /* made at first use */
    ev_io work_io;
    struct loop_guest *guests;
};

/* A deadline that has moved away leaves it as it is: it wakes the loop once for nothing, at most as
 * often as it would have been set, and who puts off a deadline with each request costs no call. */
static void set_timer_descriptor(struct loop *loop)
{
    const struct io_timer *first = timers_first(&loop->timers);
    uint64_t at_ms = first == NULL ? 0 : first->at_ms;

    if (at_ms == loop->timer_set_ms || (loop->timer_set_ms != 0 && at_ms > loop->timer_set_ms))
        return;
    struct itimerspec spec = {.it_value = {.tv_sec = (time_t)(at_ms / 1000u),
                                           .tv_nsec = (long)(at_ms % 1000u) * 1000000L}};
    check(timerfd_settime(loop->timer_io.fd, TFD_TIMER_ABSTIME, &spec, NULL) == 0);
    loop->timer_set_ms = at_ms;
}

/* --- the crowd --- */

static bool crowd_has_time(struct loop *loop)
{
    uint64_t now_ms = loop_now_ms();

    if (loop->crowd_until_ms == 0)
        loop->crowd_until_ms = now_ms + IO_CROWD_MS;
    return now_ms < loop->crowd_until_ms;
}

static void late_add(struct loop *loop, struct io_watch *watch, int events)
{
    watch->late_events |= events;
    if (watch->late_link != NULL)
        return;
    watch->late_link = loop->late_end;
    *loop->late_end = watch;
    loop->late_end = &watch->late;
}

static void late_remove(struct io_watch *watch)
{
    if (watch->late_link == NULL)
        return;
    *watch->late_link = watch->late;
    if (watch->late != NULL)
        watch->late->late_link = watch->late_link;
    else
        watch->loop->late_end = watch->late_link;
    watch->late = NULL;
    watch->late_link = NULL;
    watch->late_events = 0;
}

static void call_late(struct loop *loop)
{
    while (loop->late != NULL && crowd_has_time(loop)) {
        struct io_watch *watch = loop->late;
        int events = watch->late_events & watch->events;

        late_remove(watch);
        watch->cb(watch, events);
    }
}

/* --- the end of an iteration --- */

static void on_prepare(struct ev_loop *ev, ev_prepare *prepare, int events)
{
    struct loop *loop = prepare->data;
    (void)events; /* EV_PREPARE only */

    loop->crowd_until_ms = 0; /* whoever comes now has not kept those from it who wait */
    call_late(loop);
    loop->crowd_until_ms = 0;
    bool more = loop->late != NULL;
    loop->before_armed = false;
    for (struct io_before_sleep *before = loop->before_sleep; before != NULL;
         before = loop->next_before) {
        loop->next_before = before->next;
        more |= before->cb(before->ctx);
    }
    const struct io_timer *first = timers_first(&loop->timers);
    loop->timer_is_due = first != NULL && first->at_ms == 0;
    if (more || loop->before_armed || loop->timer_is_due)
        ev_idle_start(ev, &loop->more);
    else
        ev_idle_stop(ev, &loop->more);
    if (!loop->timer_is_due)
        set_timer_descriptor(loop);
}

static void on_nothing(struct ev_loop *ev, ev_idle *idle, int events)
{
    (void)ev; /* being active is all it is for */
    (void)idle;
    (void)events;
}

static void on_never(struct ev_loop *ev, ev_periodic *periodic, int events)
{
    (void)ev;
    (void)periodic;
    (void)events;
    unreachable("a time that the clock cannot show has come");
}

void io_before_sleep_start(struct loop *loop, struct io_before_sleep *before, bool (*cb)(void *ctx),
                           void *ctx)
{
    struct io_before_sleep **end = &loop->before_sleep;

    check(cb != NULL);
    io_before_sleep_stop(before);
    while (*end != NULL)
        end = &(*end)->next;
    *before = (struct io_before_sleep){.cb = cb, .ctx = ctx, .loop = loop, .link = end};
    *end = before;
    loop->before_armed = true;
}

void io_before_sleep_stop(struct io_before_sleep *before)
{
    if (before->loop == NULL)
        return;
    if (before->loop->next_before == before)
        before->loop->next_before = before->next;
    if (before->next != NULL)
        before->next->link = before->link;
    *before->link = before->next;
    *before = (struct io_before_sleep){0};
}

/* --- timers --- */

/* One armed by these very callbacks waits for the next iteration: no callback can keep the loop
 * from its descriptors, nor from the other timers. */
static void call_due(struct loop *loop)
{
    timers_collect(&loop->timers, loop_now_ms());
    for (struct io_timer *timer; (timer = timers_next_due(&loop->timers)) != NULL;) {
        io_timer_stop(timer);
        timer->cb(timer);
    }
}

static void on_timer(struct ev_loop *ev, ev_io *io, int events)
{
    struct loop *loop = io->data;
    uint64_t expirations;
    (void)ev;
    (void)events;

    if (read(io->fd, &expirations, sizeof(expirations)) == (ssize_t)sizeof(expirations))
        loop->timer_set_ms = 0; /* it was one shot */
    call_due(loop);
}

static void on_woken(struct ev_loop *ev, ev_check *woken, int events)
{
    struct loop *loop = woken->data;
    (void)ev;
    (void)events;

    if (loop->timer_is_due)
        call_due(loop);
}

void io_timer_start(struct loop *loop, struct io_timer *timer, uint64_t at_ms,
                    void (*cb)(struct io_timer *timer), void *ctx)
{
    check(cb != NULL);
    io_timer_stop(timer);

    timer->cb = cb;
    timer->ctx = ctx;
    timer->at_ms = at_ms;
    timer->loop = loop;
    timers_add(&loop->timers, timer);
    ev_ref(loop->ev);
}

void io_timer_stop(struct io_timer *timer)
{
    if (timer->slot == 0)
        return;
    timers_remove(&timer->loop->timers, timer);
    ev_unref(timer->loop->ev);
}

/* --- descriptors --- */

_Static_assert(sizeof(ev_io) <= sizeof(((struct io_watch *)0)->impl), "impl holds an ev_io");

static ev_io *watch_io(struct io_watch *watch)
{
    return (ev_io *)(void *)watch->impl;
}

static void on_watch(struct ev_loop *ev, ev_io *io, int events)
{
    struct io_watch *watch = io->data;
    int ours =
        ((events & EV_READ) != 0 ? IO_READABLE : 0) | ((events & EV_WRITE) != 0 ? IO_WRITABLE : 0);
    (void)ev;

    check((events & EV_ERROR) == 0); /* a descriptor closed while it is watched */
    if (watch->crowd && (watch->loop->late != NULL || !crowd_has_time(watch->loop)))
        late_add(watch->loop, watch, ours & watch->events);
    else
        watch->cb(watch, ours & watch->events);
}

/* libev has no word for POLLPRI, so such descriptors sit in an epoll set of their own, which is
 * readable while one of them has news.  One is taken at a time: its callback may stop the next. */
static void on_urgent(struct ev_loop *ev, ev_io *io, int events)
{
    struct loop *loop = io->data;
    struct epoll_event event;
    (void)ev;
    (void)events;

    while (crowd_has_time(loop) && epoll_wait(io->fd, &event, 1, 0) == 1) {
        struct io_watch *watch = event.data.ptr;

        watch->cb(watch, IO_URGENT);
    }
}

static void urgent_start(struct loop *loop, struct io_watch *watch)
{
    struct epoll_event event = {.events = EPOLLPRI, .data.ptr = watch};

    if (loop->urgent_io.fd < 0) {
        int fd = epoll_create1(EPOLL_CLOEXEC);

        check(fd >= 0);
        ev_io_init(&loop->urgent_io, on_urgent, fd, EV_READ);
        loop->urgent_io.data = loop;
    }
    check(epoll_ctl(loop->urgent_io.fd, EPOLL_CTL_ADD, watch->fd, &event) == 0);
    if (loop->urgent_count++ == 0)
        ev_io_start(loop->ev, &loop->urgent_io);
}

static void urgent_stop(struct loop *loop, struct io_watch *watch)
{
    check(epoll_ctl(loop->urgent_io.fd, EPOLL_CTL_DEL, watch->fd, NULL) == 0);
    if (--loop->urgent_count == 0)
        ev_io_stop(loop->ev, &loop->urgent_io);
}

void io_watch_start(struct loop *loop, struct io_watch *watch, int fd, int events,
                    void (*cb)(struct io_watch *watch, int events), void *ctx)
{
    bool crowd = (events & IO_CROWD) != 0;

    events &= ~IO_CROWD;
    check(fd >= 0);
    check(events == IO_URGENT || (events > 0 && events <= (IO_READABLE | IO_WRITABLE)));
    check(cb != NULL);
    io_watch_stop(watch);

    watch->crowd = crowd;
    watch->cb = cb;
    watch->ctx = ctx;
    watch->fd = fd;
    watch->loop = loop;
    watch->events = events;
    if (events == IO_URGENT) {
        urgent_start(loop, watch);
        return;
    }
    ev_io_init(watch_io(watch), on_watch, fd,
               ((events & IO_READABLE) != 0 ? EV_READ : 0) |
                   ((events & IO_WRITABLE) != 0 ? EV_WRITE : 0));
    watch_io(watch)->data = watch;
    ev_io_start(loop->ev, watch_io(watch));
}

void io_watch_stop(struct io_watch *watch)
{
    if (watch->events == 0)
        return;
    if (watch->events == IO_URGENT)
        urgent_stop(watch->loop, watch);
    else
        ev_io_stop(watch->loop->ev, watch_io(watch));
    late_remove(watch);
    watch->events = 0;
}

/* --- signals --- */

static void on_signal(struct ev_loop *ev, ev_io *io, int events)
{
    struct signal_watch *watch = io->data;
    struct signalfd_siginfo info;
    (void)ev;
    (void)events;

    if (read(io->fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        watch->cb(watch->ctx, (int)info.ssi_signo);
}

void loop_on_signals(struct loop *loop, const int *signals, void (*cb)(void *ctx, int signal),
                     void *ctx)
{
    struct signal_watch *watch = calloc(1, sizeof(*watch));
    sigset_t set;

    check(watch != NULL);
    check(sigemptyset(&set) == 0);
    for (; *signals != 0; signals++)
        check(sigaddset(&set, *signals) == 0);
    check(pthread_sigmask(SIG_BLOCK, &set, &watch->before) == 0);
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    check(fd >= 0);

    watch->cb = cb;
    watch->ctx = ctx;
    watch->next = loop->signals;
    loop->signals = watch;
    ev_io_init(&watch->io, on_signal, fd, EV_READ);
    watch->io.data = watch;
    ev_io_start(loop->ev, &watch->io);
}

static void signals_free(struct loop *loop)
{
    while (loop->signals != NULL) {
        struct signal_watch *watch = loop->signals;

        loop->signals = watch->next;
        check(close(watch->io.fd) == 0);
        check(pthread_sigmask(SIG_SETMASK, &watch->before, NULL) == 0);
        free(watch);
    }
}

/* --- work --- */

static void call_done(struct io_work *work)
{
    while (work != NULL) {
        struct io_work *next = work->next; /* done() may free or submit it again */

        work->next = NULL;
        ev_unref(work->loop->ev);
        work->done(work);
        work = next;
    }
}

static void on_work(struct ev_loop *ev, ev_io *io, int events)
{
    struct loop *loop = io->data;
    (void)ev;
    (void)events;

    call_done(work_pool_take(loop->pool));
}

/* Watchers that must not keep loop_run from returning are started without being counted. */
static void start_uncounted(struct loop *loop, ev_io *io)
{
    io->data = loop;
    ev_io_start(loop->ev, io);
    ev_unref(loop->ev);
}

static void submit(struct loop *loop, struct io_work *work, void (*run)(struct io_work *work),
                   void (*done)(struct io_work *work), void *ctx, bool ahead)
{
    check(run != NULL);
    check(done != NULL);

    if (loop->pool == NULL) {
        loop->pool = work_pool_new();
        ev_io_init(&loop->work_io, on_work, work_pool_descriptor(loop->pool), EV_READ);
        start_uncounted(loop, &loop->work_io);
    }
    work->run = run;
    work->done = done;
    work->ctx = ctx;
    work->loop = loop;
    ev_ref(loop->ev);
    work_pool_submit(loop->pool, work, ahead);
}

void io_work_submit(struct loop *loop, struct io_work *work, void (*run)(struct io_work *work),
                    void (*done)(struct io_work *work), void *ctx)
{
    submit(loop, work, run, done, ctx, false);
}

void io_work_submit_ahead(struct loop *loop, struct io_work *work,
                          void (*run)(struct io_work *work), void (*done)(struct io_work *work),
                          void *ctx)
{
    submit(loop, work, run, done, ctx, true);
}

static void work_free(struct loop *loop)
{
    while (loop->pool != NULL) { /* done() may submit again, which makes a new pool */
        struct work_pool *pool = loop->pool;

        ev_ref(loop->ev);
        ev_io_stop(loop->ev, &loop->work_io);
        loop->pool = NULL;
        call_done(work_pool_free(pool));
    }
}

/* --- guests --- */

struct loop_guest *loop_guest_find(const struct loop *loop, void (*close)(struct loop_guest *guest))
{
    for (struct loop_guest *guest = loop->guests; guest != NULL; guest = guest->next) {
        if (guest->close == close)
            return guest;
    }
    return NULL;
}

void loop_guest_add(struct loop *loop, struct loop_guest *guest)
{
    guest->next = loop->guests;
    loop->guests = guest;
}

/* --- the loop --- */

struct loop *loop_new(void)
{
    struct loop *loop = calloc(1, sizeof(*loop));

    check(loop != NULL);
    loop->ev = ev_loop_new(EVFLAG_NOENV | EVBACKEND_EPOLL);
    check(loop->ev != NULL);

    ev_prepare_init(&loop->prepare, on_prepare);
    ev_set_priority(&loop->prepare, EV_MINPRI);
    loop->prepare.data = loop;
    ev_prepare_start(loop->ev, &loop->prepare);
    ev_unref(loop->ev);

    ev_check_init(&loop->woken, on_woken);
    ev_set_priority(&loop->woken, EV_MINPRI);
    loop->woken.data = loop;
    ev_check_start(loop->ev, &loop->woken);
    ev_unref(loop->ev);

    ev_idle_init(&loop->more, on_nothing);
    ev_set_priority(&loop->more, EV_MINPRI);

    ev_periodic_init(&loop->never, on_never, NEVER_UNIX_S, 0, NULL);
    ev_periodic_start(loop->ev, &loop->never);
    ev_unref(loop->ev);

    int fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    check(fd >= 0);
    ev_io_init(&loop->timer_io, on_timer, fd, EV_READ);
    start_uncounted(loop, &loop->timer_io);
    loop->urgent_io.fd = -1;
    loop->late_end = &loop->late;
    return loop;
}

void loop_free(struct loop *loop)
{
    if (loop == NULL)
        return;

    while (loop->guests != NULL) {
        struct loop_guest *guest = loop->guests;

        loop->guests = guest->next;
        guest->close(guest);
    }
    work_free(loop);
    signals_free(loop);
    timers_close(&loop->timers);
    check(close(loop->timer_io.fd) == 0);
    if (loop->urgent_io.fd >= 0)
        check(close(loop->urgent_io.fd) == 0);
    ev_loop_destroy(loop->ev);
    free(loop);
}

void loop_run(struct loop *loop)
{
    check(!loop->running);

    loop->running = true;
    if (!loop->stop)
        (void)ev_run(loop->ev, 0); /* whether watchers are left is of no interest */
    loop->running = false;
    loop->stop = false;
}

void loop_stop(struct loop *loop)
{
    loop->stop = true;
    ev_break(loop->ev, EVBREAK_ONE);
}

void *loop_native(struct loop *loop)
{
    return loop->ev;
}
