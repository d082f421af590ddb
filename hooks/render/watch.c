/*
 * Watches on what templates of running tasks read.
 *
 * A watch renders once when it begins, since nobody looked before, and again when what it has
 * marked changes.  What differs from what its machine was told last is handed over when the splay
 * is over; a crash before that is noticed by the first rendering of the next watch.  One that has
 * read nothing is over at once.
 *
 * The kernel is listened to ten times a second at most, however much a task writes.  What others
 * know is not watched here: they tell when it is another (asks.h).  As long as something of it is
 * lacking, as after a restart of the daemon, all is as it was rendered last.
 *
 * What could not be rendered for a reason that may go away by itself, such as a full disk, is tried
 * again after a pause that grows, for as long as the task runs (Nomad's pauses for what its
 * templates read, nomad v2.0.5 client/config DefaultTemplateConfig).  The task is told once for
 * each reason.
 */
#include "hooks/render/render.h"

#include "base/hash.h"
#include "base/list.h"
#include "base/rng.h"
#include "io/proc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>
#include <uthash.h>

enum { DEAF_MS = 100, NEWS_BYTES = 16 * 1024, RETRY_MS = 250, RETRY_MS_MAX = 60000 };

struct settling {
    uint64_t ms, max_ms;
};

struct watch {
    struct watches *watches;
    struct watch *next, **link;
    struct hook_request request; /* of its rendering; texts below are its own */
    char *alloc, *task, *user, *order, *alloc_dir;
    struct results told;  /* what its machine knows */
    struct results said;  /* what is to be told when the splay is over; nothing: none is */
    struct results fresh; /* of the rendering under way */
    struct hooks_rerender again;
    struct {
        struct render_mark *items;
        size_t count, size;
    } marks; /* of the last one */
    struct io_work work;
    struct err err;
    struct io_timer settling, splaying, retrying;
    uint32_t failures;              /* one behind the other that may be over the next time */
    char failure[DESCRIPTION_SIZE]; /* what was told of the last of them */
    struct settling files, facts;   /* of which what changes is left alone */
    uint64_t first_ms;              /* of what settles, 0: nothing does */
    bool working;                   /* on the pool */
    bool changed, news;             /* since it began to: files, and what others know */
    bool lacks;                     /* something that others know */
    bool ended;                     /* to be freed when it is done */
    void (*resume)(void *ctx);
    void *resume_ctx;
};

/* Who has marked what the kernel tells of under this number. */
struct marked {
    UT_hash_handle hh;
    int wd;
    struct {
        struct watch **items;
        size_t count, size;
    } watches;
};

struct watches {
    struct hooks *hooks;
    struct watch *first;
    struct marked *marked;
    struct io_watch kernel;
    struct io_timer deaf;
    int inotify;     /* -1: nothing is watched yet */
    unsigned pooled; /* renderings under way */
    bool gone;       /* freed when these are done */
};

/* --- marks --- */

static struct marked *find_marked(const struct watches *watches, int wd)
{
    struct marked *marked;

    HASH_FIND_INT(watches->marked, &wd, marked);
    return marked;
}

static void add_mark(struct watch *watch, int wd)
{
    struct marked *marked = find_marked(watch->watches, wd);

    if (marked == NULL) {
        marked = calloc(1, sizeof(*marked));
        check(marked != NULL);
        marked->wd = wd;
        HASH_ADD_INT(watch->watches->marked, wd, marked);
    }
    for (size_t i = 0; i < marked->watches.count; i++) {
        if (marked->watches.items[i] == watch)
            return;
    }
    *list_more(&marked->watches) = watch;
}

static void remove_mark(struct watch *watch, int wd)
{
    struct marked *marked = find_marked(watch->watches, wd);

    if (marked == NULL)
        return; /* it has several of the same */
    for (size_t i = 0; i < marked->watches.count; i++) {
        if (marked->watches.items[i] == watch)
            marked->watches.items[i--] = marked->watches.items[--marked->watches.count];
    }
    if (marked->watches.count > 0)
        return;
    (void)inotify_rm_watch(watch->watches->inotify, wd); /* or what it was on is gone */
    HASH_DEL(watch->watches->marked, marked);
    free(marked->watches.items);
    free(marked);
}

static bool has_mark(const struct watch *watch, int wd)
{
    for (size_t i = 0; i < watch->again.marks.count; i++) {
        if (watch->again.marks.items[i].wd == wd)
            return true;
    }
    return false;
}

/* Those of the last rendering take the place of those before. */
static void take_marks(struct watch *watch)
{
    for (size_t i = 0; i < watch->again.marks.count; i++)
        add_mark(watch, watch->again.marks.items[i].wd);
    for (size_t i = 0; i < watch->marks.count; i++) {
        if (!has_mark(watch, watch->marks.items[i].wd))
            remove_mark(watch, watch->marks.items[i].wd);
    }
    free(watch->marks.items);
    watch->marks.items = watch->again.marks.items;
    watch->marks.count = watch->again.marks.count;
    watch->marks.size = watch->again.marks.size;
    memset(&watch->again.marks, 0, sizeof(watch->again.marks));
}

/* --- the end of one --- */

static void free_watch(struct watch *watch)
{
    free(watch->told.bytes);
    free(watch->said.bytes);
    free(watch->fresh.bytes);
    free(watch->again.marks.items);
    free(watch->marks.items);
    free(watch->alloc);
    free(watch->task);
    free(watch->user);
    free(watch->order);
    free(watch->alloc_dir);
    free(watch);
}

static void free_all(struct watches *watches)
{
    if (watches->inotify >= 0)
        (void)close(watches->inotify);
    free(watches);
}

/* Out of the list; freed by now, or when the pool is done with it. */
static void end_watch(struct watch *watch)
{
    io_timer_stop(&watch->settling);
    io_timer_stop(&watch->splaying);
    io_timer_stop(&watch->retrying);
    asks_close(watch->request.asks);
    for (size_t i = 0; i < watch->marks.count; i++)
        remove_mark(watch, watch->marks.items[i].wd);
    watch->marks.count = 0;
    *watch->link = watch->next;
    if (watch->next != NULL)
        watch->next->link = watch->link;
    watch->ended = true;
    if (!watch->working)
        free_watch(watch);
}

bool watches_end(struct watches *watches, const char *alloc, const char *task,
                 void (*resume)(void *ctx), void *ctx)
{
    struct watch *watch = watches->first;

    while (watch != NULL && !(text_equal(watch->alloc, alloc) && text_equal(watch->task, task)))
        watch = watch->next;
    if (watch == NULL)
        return false;
    bool working = watch->working;
    watch->resume = resume;
    watch->resume_ctx = ctx;
    end_watch(watch); /* and gone, if it was not working */
    return working && resume != NULL;
}

int hooks_watch_end(const struct hook_request *request, struct err *err)
{
    (void)err; /* there is nothing that could fail */
    (void)watches_end(request->hooks->watches, request->alloc, request->task, NULL, NULL);
    asks_end(request->hooks->watches->hooks, request->alloc, request->task);
    return 0;
}

/* --- telling --- */

static void tell(struct watch *watch, const struct results *results, const char *text, int code)
{
    const struct hooks_templates *templates = watch->watches->hooks->templates;
    struct hook_outcome *outcome = calloc(1, sizeof(*outcome) + results->used);

    check(outcome != NULL);
    outcome->hook = TASK_HOOK_TEMPLATE;
    outcome->code = code;
    outcome->results_bytes = results->used;
    if (results->used > 0)
        memcpy(outcome->results, results->bytes, results->used);
    (void)text_copy(outcome->text, sizeof(outcome->text), text); /* cut is enough */
    templates->changed(templates->ctx, watch->alloc, watch->task, outcome);
    free(outcome);
}

/* Nothing that it says can change any more while the daemon runs. */
static void end_if_idle(struct watch *watch)
{
    if (watch->marks.count == 0 && watch->said.used == 0 && !watch->working && !watch->changed &&
        watch->failures == 0 && watch->request.asks->list.count == 0)
        end_watch(watch);
}

static void move_results(struct results *to, struct results *from)
{
    free(to->bytes);
    *to = *from;
    *from = (struct results){0};
}

static void on_splay(struct io_timer *timer)
{
    struct watch *watch = timer->ctx;
    char text[DESCRIPTION_SIZE] = "", name[SIGNAL_NAME_SIZE];
    struct rendered_change change;

    if (watch->working)
        return; /* it will say something newer */
    policy_change(TASK_HOOK_TEMPLATE, watch->told.bytes, watch->told.used, watch->said.bytes,
                  watch->said.used, &change);
    for (int number = 1; number <= 64; number++) {
        if ((change.signals >> (number - 1) & 1u) == 0)
            continue;
        (void)text_append(text, sizeof(text), text[0] == '\0' ? "" : ", "); /* cut is enough */
        (void)text_append(text, sizeof(text), proc_signal_name(number, name));
    }
    tell(watch, &watch->said, text, 0);
    move_results(&watch->told, &watch->said);
    end_if_idle(watch);
}

/* --- rendering --- */

static void render_later(struct watch *watch);
static void render_now(struct watch *watch);

/* Only as large as it has to be, since it is kept. */
static void shrink(struct results *results)
{
    uint8_t *less = realloc(results->bytes, results->used + 1);

    check(less != NULL);
    results->bytes = less;
    results->size = results->used;
}

static void on_pool(struct io_work *work)
{
    struct watch *watch = work->ctx;
    int code = hooks_render(&watch->request, &watch->err);

    check(code == 0 || code == watch->err.code);
}

/* What it says now is told now, later, or never. */
static void settle(struct watch *watch)
{
    struct loop *loop = watch->watches->hooks->loop;
    uint64_t splay_ms = watch->again.splay_ms, now_ms = loop_now_ms();
    bool waits = watch->said.used != 0 && watch->splaying.at_ms > now_ms &&
                 watch->splaying.at_ms <= now_ms + splay_ms; /* else for what was taken back */
    struct rendered_change change;

    shrink(&watch->fresh);
    policy_change(TASK_HOOK_TEMPLATE, watch->told.bytes, watch->told.used, watch->fresh.bytes,
                  watch->fresh.used, &change);
    if (!change.restarts && change.signals == 0 && change.scripts == 0) {
        io_timer_stop(&watch->splaying); /* it is as it was again */
        free(watch->said.bytes);
        watch->said = (struct results){0};
        move_results(&watch->told, &watch->fresh);
        return;
    }
    move_results(&watch->said, &watch->fresh);
    if (waits)
        return;
    struct rng rng =
        rng_init(hash_bytes((uint64_t)loop_now_unix_ns(), watch->alloc, strlen(watch->alloc)));
    io_timer_start(loop, &watch->splaying, now_ms + (splay_ms == 0 ? 0 : rng_below(&rng, splay_ms)),
                   on_splay, watch);
}

/* Nobody waits for it: what it has marked is marked by nobody else. */
static void forget_rendering(struct watch *watch)
{
    struct watches *watches = watch->watches;

    for (size_t i = 0; !watches->gone && i < watch->again.marks.count; i++) {
        int wd = watch->again.marks.items[i].wd;
        if (find_marked(watches, wd) == NULL)
            (void)inotify_rm_watch(watches->inotify, wd); /* or it was done already */
    }
    if (watch->resume != NULL)
        watch->resume(watch->resume_ctx);
    if (watches->gone && watches->pooled == 0)
        free_all(watches);
    free_watch(watch);
}

static void on_retry(struct io_timer *timer);

/* It is told why, unless it was just now; and what may be over by then is tried again. */
static void fail(struct watch *watch)
{
    struct loop *loop = watch->watches->hooks->loop;
    const struct results none = {0};
    uint64_t now_ms = loop_now_ms();

    if (!text_starts_with(watch->err.text, watch->failure) || watch->failures == 0)
        tell(watch, &none, watch->err.text, watch->err.code);
    watch->failures = watch->err.recoverable ? watch->failures + 1 : 0;
    if (watch->failures == 0)
        return;
    (void)text_copy(watch->failure, sizeof(watch->failure), watch->err.text); /* cut is enough */
    io_timer_start(loop, &watch->retrying,
                   now_ms + policy_backoff_ms(RETRY_MS, RETRY_MS_MAX, watch->failures, now_ms),
                   on_retry, watch);
}

/* It lacked something, and may still. */
static void look(struct watch *watch)
{
    switch (asks_state(watch->request.asks, &watch->err)) {
    case ASKS_READY:
        render_now(watch);
        break;
    case ASKS_IN_VAIN:
        watch->err.recoverable = false; /* who knows says when it is another thing */
        fail(watch);
        break;
    case ASKS_COMPLETE:
        fail(watch); /* it is something else that is to be tried again */
        break;
    case ASKS_LACKING:
        break;
    }
}

static void on_facts(void *ctx);

static void on_rendered(struct io_work *work)
{
    struct watch *watch = work->ctx;
    const struct results none = {0};

    watch->working = false;
    watch->watches->pooled--;
    asks_settle(watch->request.asks);
    if (watch->ended) {
        forget_rendering(watch);
        return;
    }
    take_marks(watch);
    watch->lacks = watch->err.code == ERR_AGAIN;
    if (watch->lacks) {
        look(watch);
    } else if (watch->err.code != 0) {
        fail(watch);
    } else {
        watch->failures = 0;
        settle(watch);
    }
    if (watch->again.blind)
        tell(watch, &none, "not all files that templates read can be watched", ERR_LIMIT);
    if (watch->working)
        return; /* again: what it lacked was known by then */
    if (watch->changed)
        render_later(watch);
    if (watch->news)
        on_facts(watch);
    end_if_idle(watch);
}

static void render_now(struct watch *watch)
{
    struct result result;

    io_timer_stop(&watch->retrying);
    watch->working = true;
    watch->changed = false;
    watch->watches->pooled++;
    watch->first_ms = 0;
    watch->err = (struct err){0};
    free(watch->fresh.bytes);
    watch->fresh = (struct results){malloc(RESULTS_BYTES_MAX), 0, RESULTS_BYTES_MAX};
    check(watch->fresh.bytes != NULL);
    watch->again.before = NULL;
    watch->again.before_count = 0;
    watch->again.blind = false;
    watch->again.splay_ms = 0;
    watch->news = false;
    asks_begin(watch->request.asks);
    for (uint32_t at = 0; results_next(watch->told.bytes, watch->told.used, &at, &result);) {
        if (result.hook != TASK_HOOK_TEMPLATE || result.kind != RESULT_DATA ||
            !text_equal(result.key, RENDERED_KEY))
            continue;
        watch->again.before = (const struct rendered *)(const void *)result.value;
        watch->again.before_count = result.value_length / sizeof(struct rendered);
    }
    io_work_submit(watch->watches->hooks->loop, &watch->work, on_pool, on_rendered, watch);
}

static void on_settled(struct io_timer *timer)
{
    struct watch *watch = timer->ctx;

    if (watch->working)
        watch->changed = true;
    else
        render_now(watch);
}

/* It does not work: rendering stops the timer. */
static void on_retry(struct io_timer *timer)
{
    render_now(timer->ctx);
}

static void settle_first(struct watch *watch, const struct settling *settling)
{
    uint64_t now_ms = loop_now_ms(), at_ms = now_ms + settling->ms;

    if (watch->first_ms == 0)
        watch->first_ms = now_ms;
    if (at_ms > watch->first_ms + settling->max_ms)
        at_ms = watch->first_ms + settling->max_ms;
    io_timer_start(watch->watches->hooks->loop, &watch->settling, at_ms, on_settled, watch);
}

static void render_later(struct watch *watch)
{
    if (watch->working)
        watch->changed = true;
    else
        settle_first(watch, &watch->files);
}

/* --- others' news --- */

static void on_facts(void *ctx)
{
    struct watch *watch = ctx;

    if (watch->working)
        watch->news = true;
    else if (watch->lacks)
        look(watch);
    else
        settle_first(watch, &watch->facts);
}

/* --- the kernel's news --- */

static void all_changed(struct watches *watches, bool working)
{
    for (struct watch *watch = watches->first; watch != NULL; watch = watch->next) {
        if (!working || watch->working)
            render_later(watch);
    }
}

static bool is_meant(const struct watch *watch, int wd, const char *name)
{
    for (size_t i = 0; i < watch->marks.count; i++) {
        if (watch->marks.items[i].wd == wd && text_equal(watch->marks.items[i].name, name))
            return true;
    }
    return false;
}

static void on_news(struct watches *watches, const struct inotify_event *event)
{
    const struct marked *marked = find_marked(watches, event->wd);
    const char *name = event->len > 0 ? event->name : "";

    if ((event->mask & IN_Q_OVERFLOW) != 0) {
        all_changed(watches, false);
        return;
    }
    if (marked == NULL && (event->mask & IN_IGNORED) == 0)
        all_changed(watches, true); /* marked just now by one that renders */
    for (size_t i = 0; marked != NULL && i < marked->watches.count; i++) {
        if (marked->watches.items[i]->working ||
            is_meant(marked->watches.items[i], event->wd, name))
            render_later(marked->watches.items[i]);
    }
}

static void on_kernel(struct io_watch *kernel, int events);

static void on_heard(struct io_timer *timer)
{
    struct watches *watches = timer->ctx;

    io_watch_start(watches->hooks->loop, &watches->kernel, watches->inotify, IO_READABLE, on_kernel,
                   watches);
}

static void on_kernel(struct io_watch *kernel, int events)
{
    struct watches *watches = kernel->ctx;
    char news[NEWS_BYTES] __attribute__((aligned(8)));
    ssize_t got = read(watches->inotify, news, sizeof(news));

    (void)events;
    for (ssize_t at = 0; at < got;) {
        const struct inotify_event *event = (const void *)(news + at);
        on_news(watches, event);
        at += (ssize_t)(sizeof(*event) + event->len);
    }
    io_watch_stop(kernel);
    io_timer_start(watches->hooks->loop, &watches->deaf, loop_now_ms() + DEAF_MS, on_heard,
                   watches);
}

static int listen_to_kernel(struct watches *watches, struct err *err)
{
    if (watches->inotify >= 0)
        return 0;
    watches->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (watches->inotify < 0)
        return err_os(err, err_from_errno(errno), errno, "cannot watch files");
    io_watch_start(watches->hooks->loop, &watches->kernel, watches->inotify, IO_READABLE, on_kernel,
                   watches);
    return 0;
}

/* --- the begin of one --- */

static char *copy_of(const char *text)
{
    char *copy = strdup(text);

    check(copy != NULL);
    return copy;
}

static struct settling read_settling(const json_t *order, const char *field)
{
    const json_t *times = json_object_get(order, field);

    return (struct settling){(uint64_t)json_integer_value(json_array_get(times, 0)),
                             (uint64_t)json_integer_value(json_array_get(times, 1))};
}

static void read_order(struct watch *watch)
{
    json_t *order = json_loads(watch->order, 0, NULL);

    check(order != NULL);
    watch->files = read_settling(order, "settle");
    watch->facts = read_settling(order, "settle_facts");
    watch->request.asks = asks_open(watch->watches->hooks, watch->alloc, watch->task,
                                    json_object_get(order, "asker"), on_facts, watch);
    json_decref(order);
}

int hooks_watch(const struct hook_request *request, struct err *err)
{
    struct watches *watches = request->hooks->watches;
    const struct hook_run *asked = request->asked;
    char user[HOOKS_USER_SIZE];

    (void)watches_end(watches, request->alloc, request->task, NULL, NULL);
    if (request->hooks->templates == NULL)
        return 0;
    int code = hooks_user(request->hooks, asked, user, err);
    if (code == 0)
        code = listen_to_kernel(watches, err);
    if (code != 0)
        return code;
    struct watch *watch = calloc(1, sizeof(*watch));
    check(watch != NULL);
    watch->watches = watches;
    watch->alloc = copy_of(request->alloc);
    watch->task = copy_of(request->task);
    watch->user = copy_of(user);
    watch->order = copy_of(request->order);
    watch->alloc_dir = copy_of(request->alloc_dir);
    watch->told = (struct results){malloc(asked->results_bytes + 1), asked->results_bytes,
                                   asked->results_bytes};
    check(watch->told.bytes != NULL);
    if (asked->results_bytes > 0)
        memcpy(watch->told.bytes, asked->results, asked->results_bytes);
    watch->again.inotify = watches->inotify;
    watch->request = (struct hook_request){
        .alloc_dir = watch->alloc_dir,
        .alloc = watch->alloc,
        .task = watch->task,
        .user = watch->user,
        .order = watch->order,
        .parser = request->parser,
        .privileged = request->privileged,
        .results = &watch->fresh,
        .again = &watch->again,
    };
    read_order(watch);
    watch->next = watches->first;
    watch->link = &watches->first;
    if (watch->next != NULL)
        watch->next->link = &watch->next;
    watches->first = watch;
    render_now(watch);
    return 0;
}

/* --- all of them --- */

struct watches *watches_new(struct hooks *hooks)
{
    struct watches *watches = calloc(1, sizeof(*watches));

    check(watches != NULL);
    watches->hooks = hooks;
    watches->inotify = -1;
    return watches;
}

void watches_free(struct watches *watches)
{
    while (watches->first != NULL) {
        struct watch *watch = watches->first;

        watch->resume = NULL;
        end_watch(watch);
    }
    if (watches->inotify >= 0) {
        io_watch_stop(&watches->kernel);
        io_timer_stop(&watches->deaf);
    }
    watches->gone = true;
    if (watches->pooled == 0)
        free_all(watches);
}
