/*
 * The hooks as one thing, and running one of them.
 *
 * A run is one block of memory that carries copies of all its step needs, so that the thread which
 * works on it sees nothing else and the spec may go at once.  Its answer comes on the loop, from
 * the pool or from a timer that is already due, never from inside hook_run.
 */
#include "hooks/fetching.h"
#include "hooks/part.h"
#include "hooks/render/render.h"
#include "hooks/signing.h"

#include "io/host.h"

#include <stdlib.h>
#include <string.h>

enum {
    ALLOC_DIR_MAX = 360, /* an id, a task's name and "/secrets" fit behind it in hooks_paths */
    FETCHES_MAX = 8,     /* processes at once for artifacts, and for disks; more wait */
    BEGUN_MAX = 64,      /* hooks of allocs on the pool: what it does in a long commit */
};

/* Nomad's own, client/config/config.go DefaultUserDenylist. */

struct hooks_run {
    struct hook_request request; /* what the step sees */
    struct io_work work;
    struct io_timer timer;
    struct hooks *hooks; /* NULL once they are gone: then nobody is told */
    struct hooks_run *next, **link;
    struct hooks_run *behind; /* in the line */
    hook_function *function, *finish;
    hook_done *done;
    void *ctx;
    struct err err;
    struct hook_outcome *outcome; /* with what the hook leaves; owned, NULL: nothing */
    uint8_t hook;
    uint32_t room;                  /* for what it leaves */
    struct hooks_fetching fetching; /* of one that a process carries out */
    hook_ask *ask;                  /* of one that others carry out; else NULL */
    struct hooks_asking *asking;    /* once they are asked, until they answer */
    bool on_pool, in_line, by_process, of_alloc;
    bool aborted; /* nobody waits for it */
    char texts[]; /* of the request */
};

static void run_free(struct hooks_run *run)
{
    if (run->by_process)
        fetching_close(&run->fetching);
    free(run->outcome);
    free(run);
}

/* --- the hooks --- */

static void begin_checks(struct hooks *hooks);

struct hooks *hooks_new(const struct hooks_config *config, struct err *err)
{
    size_t length = strlen(config->alloc_dir);

    if (config->alloc_dir[0] != '/') {
        (void)err_set(err, ERR_INVALID, "alloc_dir is not an absolute path"); /* NULL says it */
        return NULL;
    }
    if (length > ALLOC_DIR_MAX) {
        (void)err_set(err, ERR_LIMIT, "alloc_dir is longer than %d bytes", ALLOC_DIR_MAX);
        return NULL;
    }
    /* Ids are hard to guess and the directory does not list: who may enter an alloc's directory
     * must know its name.  nomad v1.1.2 client/client.go init. */
    if (directory_make_all(config->alloc_dir, 0711, err) != 0)
        return NULL;

    struct hooks *hooks = calloc(1, sizeof(*hooks) + length + 1);
    check(hooks != NULL);
    hooks->loop = config->loop;
    hooks->node = config->node;
    hooks->environment = config->environment;
    hooks->driver = config->driver;
    hooks->driver_ctx = config->driver_ctx;
    hooks->volumes = config->volumes;
    hooks->user_denylist = config->user_denylist != NULL ? config->user_denylist : "";
    hooks->privileged = geteuid() == 0;
    hooks->network = config->network;
    hooks->plugins = config->plugins;
    hooks->devices = config->devices;
    hooks->signer = config->signer;
    hooks->connect = config->connect;
    hooks->fetch = config->fetch;
    hooks->disks = config->disks;
    hooks->templates = config->templates;
    hooks->parser = config->parser;
    hooks->facts = config->facts;
    hooks->watches = watches_new(hooks);
    hooks->renewals = renewals_new(hooks);
    hooks->begin_checks = begin_checks;
    memcpy(hooks->alloc_dir, config->alloc_dir, length + 1);
    return hooks;
}

static void unlink_run(struct hooks_run *run)
{
    if (run->next != NULL)
        run->next->link = run->link;
    *run->link = run->next;
}

/* What is on the pool cannot be called back: it finishes and is forgotten. */
void hooks_free(struct hooks *hooks)
{
    if (hooks == NULL)
        return;
    hooks_forget_plugins(hooks);
    watches_free(hooks->watches);
    renewals_free(hooks->renewals);
    hooks_services_detach(hooks);
    while (hooks->runs != NULL) {
        struct hooks_run *run = hooks->runs;

        unlink_run(run);
        run->hooks = NULL;
        if (!run->on_pool) {
            io_timer_stop(&run->timer);
            if (run->asking != NULL)
                run->asking->forget(run->asking);
            run_free(run);
        }
    }
    signings_free(hooks);
    asks_free(hooks);
    hooks_disk_forget(hooks);
    free(hooks);
}

/* --- one run --- */

static void finish(struct hooks_run *run)
{
    struct hook_outcome plain = {0}, *outcome = run->outcome != NULL ? run->outcome : &plain;

    outcome->code = run->err.code;
    outcome->hook = run->hook;
    outcome->recoverable = run->err.recoverable;
    if (run->hooks != NULL) {
        unlink_run(run);
        (void)text_copy(outcome->text, sizeof(outcome->text), run->err.text); /* cut is enough */
        run->done(run->ctx, outcome);
    }
    run_free(run);
}

/* What a step met and got over is nobody's business, unless it says so. */
static void settle(struct hooks_run *run, int code)
{
    check(code >= 0 || code == run->err.code);
    if (code == 0)
        run->err = (struct err){0};
    if (code == HOOK_REMARK)
        run->err.code = 0;
}

/* What a step leaves has to be there until the answer. */
static void keep_results(struct hooks_run *run, const struct results *results)
{
    free(run->outcome);
    run->outcome = NULL;
    if (results->used == 0 || run->err.code != 0)
        return;
    if (results->used > run->room) {
        (void)err_set(&run->err, ERR_LIMIT, "what it leaves is too long: %u bytes, with %u left",
                      results->used, run->room); /* only to be filled */
        return;
    }
    run->outcome = calloc(1, sizeof(*run->outcome) + results->used);
    check(run->outcome != NULL);
    run->outcome->results_bytes = results->used;
    memcpy(run->outcome->results, results->bytes, results->used);
}

static void perform(struct hooks_run *run)
{
    struct results results = {.bytes = calloc(1, RESULTS_BYTES_MAX), .size = RESULTS_BYTES_MAX};

    check(results.bytes != NULL);
    if (run->outcome != NULL) { /* what was answered, to be done something with */
        results.used = run->outcome->results_bytes;
        memcpy(results.bytes, run->outcome->results, results.used);
    }
    run->request.results = &results;
    run->request.fetching = &run->fetching;
    settle(run, run->function(&run->request, &run->err));
    run->request.results = NULL;
    keep_results(run, &results);
    free(results.bytes);
}

static void on_timer(struct io_timer *timer)
{
    finish(timer->ctx);
}

static void submit(struct hooks_run *run);

static void on_answer(void *ctx, const struct results *results, const struct err *err)
{
    struct hooks_run *run = ctx;

    run->asking = NULL;
    if (err != NULL)
        run->err = *err;
    else
        keep_results(run, results);
    if (run->err.code == 0 && run->function != NULL)
        submit(run);
    else
        finish(run);
}

static void on_pool(struct io_work *work)
{
    struct hooks_run *run = work->ctx;
    perform(run);
}

/* A job may have thousands of allocs.  Were all of them sent to the pool at once, the first task
 * would start behind the directories of the last alloc, and nothing but directories would be made
 * until then. */
static void begin_some(struct hooks *hooks)
{
    while (hooks->to_begin != NULL && hooks->begun < BEGUN_MAX) {
        struct hooks_run *run = hooks->to_begin;

        hooks->to_begin = run->behind;
        run->behind = NULL;
        hooks->begun++;
        submit(run);
    }
}

static void begin_alloc(struct hooks_run *run)
{
    struct hooks *hooks = run->hooks;

    run->of_alloc = true;
    if (hooks->to_begin == NULL)
        hooks->begin_end = &hooks->to_begin;
    *hooks->begin_end = run;
    hooks->begin_end = &run->behind;
    begin_some(hooks);
}

static void leave_pool(struct hooks_run *run)
{
    run->on_pool = false;
    if (!run->of_alloc || run->hooks == NULL)
        return;
    run->of_alloc = false;
    run->hooks->begun--;
    begin_some(run->hooks);
}

static void on_pool_done(struct io_work *work)
{
    struct hooks_run *run = work->ctx;

    leave_pool(run);
    finish(run);
}

/* Runs wait in lists, by `behind`. */
static void wait_behind(struct hooks_run **last, struct hooks_run *run)
{
    while (*last != NULL)
        last = &(*last)->behind;
    *last = run;
}

/* --- by a process --- */

static void begin_fetching(struct hooks *hooks, struct hooks_fetches *fetches);

/* Of a task, or of an alloc: its disk. */
static struct hooks_fetches *fetches_of(const struct hooks_run *run)
{
    return run->request.task[0] != '\0' ? &run->hooks->fetches : &run->hooks->disk_fetches;
}

static void finish_on_pool(struct io_work *work)
{
    struct hooks_run *run = work->ctx;

    settle(run, run->finish(&run->request, &run->err));
}

/* What the step left counts only if the process did what it was told. */
static void conclude(struct hooks_run *run, const struct err *err)
{
    run->err = *err;
    if (err->code != 0) {
        free(run->outcome);
        run->outcome = NULL;
    }
    run->on_pool = run->finish != NULL;
    if (run->on_pool)
        io_work_submit(run->hooks->loop, &run->work, finish_on_pool, on_pool_done, run);
    else
        io_timer_start(run->hooks->loop, &run->timer, loop_now_ms(), on_timer, run);
}

static void on_fetched(void *ctx, const struct err *err)
{
    struct hooks_run *run = ctx;
    struct hooks_fetches *fetches = fetches_of(run);

    fetches->count--;
    conclude(run, err);
    begin_fetching(run->hooks, fetches);
}

static void begin_fetching(struct hooks *hooks, struct hooks_fetches *fetches)
{
    while (fetches->waiting != NULL && fetches->count < FETCHES_MAX) {
        struct hooks_run *run = fetches->waiting;

        fetches->waiting = run->behind;
        run->behind = NULL;
        int code = run->aborted ? err_set(&run->err, ERR_CANCELED, "nobody waits for it any more")
                                : fetching_start(&run->fetching, hooks, on_fetched, run, &run->err);
        fetches->count++;
        if (code != 0) {
            struct err err = run->err;
            on_fetched(run, &err);
            return; /* which has begun what waits */
        }
    }
}

/* One that waits for a process is told at once that it gets none. */
static void drop_waiting(struct hooks_run *run)
{
    struct hooks_run **link = &fetches_of(run)->waiting;
    struct err err = {0};

    while (*link != NULL && *link != run)
        link = &(*link)->behind;
    if (*link == NULL)
        return;
    *link = run->behind;
    run->behind = NULL;
    (void)err_set(&err, ERR_CANCELED, "nobody waits for it any more"); /* only to be filled */
    conclude(run, &err);
}

/* Ready to be carried out, if there is anything to do. */
static void on_prepared(struct io_work *work)
{
    struct hooks_run *run = work->ctx;

    leave_pool(run);
    if (run->hooks == NULL || run->err.code != 0 || !run->fetching.is_needed) {
        finish(run);
        return;
    }
    wait_behind(&fetches_of(run)->waiting, run);
    begin_fetching(run->hooks, fetches_of(run));
}

static bool is_of(const struct hooks_run *run, const char *alloc_id, const char *task)
{
    return text_equal(run->request.alloc, alloc_id) && text_equal(run->request.task, task);
}

void hooks_abort(struct hooks *hooks, const char *alloc_id, const char *task)
{
    struct hooks_run *next;

    for (struct hooks_run *run = hooks->runs; run != NULL; run = next) {
        next = run->next;
        if (!is_of(run, alloc_id, task) || (!run->by_process && run->ask == NULL))
            continue;
        run->aborted = true;
        if (run->asking != NULL && run->asking->stop != NULL) {
            run->asking->stop(run->asking);
            continue;
        }
        if (run->asking != NULL) {
            run->asking->abandon(run->asking);
            run->asking = NULL;
            (void)err_set(&run->err, ERR_CANCELED, "nobody waits for it any more");
            io_timer_start(hooks->loop, &run->timer, loop_now_ms(), on_timer, run);
            continue;
        }
        if (run->fetching.pid != 0)
            fetching_stop(&run->fetching);
        else if (run->by_process && !run->on_pool)
            drop_waiting(run);
    }
}

/* --- in line --- */

/* Out of the line; who is next may begin. */
static void on_line_done(struct io_work *work)
{
    struct hooks_run *run = work->ctx;
    struct hooks *hooks = run->hooks;

    if (hooks != NULL) {
        hooks->line = run->behind;
        if (hooks->line != NULL)
            submit(hooks->line);
    }
    finish(run);
}

static void submit(struct hooks_run *run)
{
    run->on_pool = true;
    io_work_submit(run->hooks->loop, &run->work, on_pool,
                   run->in_line      ? on_line_done
                   : run->by_process ? on_prepared
                                     : on_pool_done,
                   run);
}

static void resume(void *ctx)
{
    submit(ctx);
}

/* Its tokens are written no more when its secrets are taken away: what came then would be on the
 * disk below them. */
static bool strips_behind_renewal(struct hooks_run *run, const struct hook_run *asked)
{
    return asked->task != NULL && asked->phase == PHASE_STOP && asked->hook == TASK_HOOK_TASK_DIR &&
           renewals_end(run->hooks->renewals, run->request.alloc, run->request.task, resume, run);
}

static void ask(void *ctx)
{
    struct hooks_run *run = ctx;

    if (!run->aborted) {
        run->asking = run->ask(run->hooks, &run->request, on_answer, run);
        return;
    }
    (void)err_set(&run->err, ERR_CANCELED, "nobody waits for it any more"); /* only to be filled */
    io_timer_start(run->hooks->loop, &run->timer, loop_now_ms(), on_timer, run);
}

/* Its tokens are renewed no more when they are asked for by a start, and its templates are rendered
 * no more by what watches them. */
static bool waits_for_others(struct hooks_run *run, const struct hook_run *asked)
{
    if (asked->task != NULL && asked->hook == TASK_HOOK_IDENTITY)
        return renewals_end(run->hooks->renewals, run->request.alloc, run->request.task, ask, run);
    return asked->task != NULL && asked->hook == TASK_HOOK_TEMPLATE &&
           watches_end(run->hooks->watches, run->request.alloc, run->request.task, ask, run);
}

static void line_up(struct hooks_run *run)
{
    wait_behind(&run->hooks->line, run);
    run->in_line = true;
    if (run->hooks->line == run)
        submit(run);
}

static char *add_text(char **at, const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = *at;

    memcpy(copy, text, bytes);
    *at += bytes;
    return copy;
}

/* The names that a hook of an alloc may need, one behind the other. */
static size_t names_bytes(const struct hook_run *asked)
{
    size_t bytes = 2;

    for (size_t i = 0; asked->task == NULL && i < asked->alloc->tasks_count; i++)
        bytes += strlen(asked->alloc->tasks[i].name) + 1;
    for (size_t i = 0; asked->disk_from != NULL && asked->disk_from[i] != NULL; i++)
        bytes += strlen(asked->disk_from[i]) + 1;
    return bytes;
}

static void add_names(const struct hook_run *asked, char **at, struct hook_request *request)
{
    request->tasks = *at;
    for (size_t i = 0; asked->task == NULL && i < asked->alloc->tasks_count; i++)
        (void)add_text(at, asked->alloc->tasks[i].name);
    (void)add_text(at, "");
    request->disk_from = *at;
    for (size_t i = 0; asked->disk_from != NULL && asked->disk_from[i] != NULL; i++)
        (void)add_text(at, asked->disk_from[i]);
    (void)add_text(at, "");
}

/* What other hooks have left stays. */
static uint32_t room_of(const struct hook_run *asked)
{
    uint32_t others = 0;
    struct result result;

    for (uint32_t at = 0, before = 0;
         results_next(asked->results, asked->results_bytes, &at, &result); before = at) {
        if (result.hook != asked->hook)
            others += at - before;
    }
    return RESULTS_BYTES_MAX - others;
}

static struct hooks_run *new_run(struct hooks *hooks, const struct hook_run *asked,
                                 const char *user, const char *order)
{
    const char *task = asked->task != NULL ? asked->task->name : "";
    size_t bytes = strlen(hooks->alloc_dir) + strlen(asked->alloc->id) + strlen(task) +
                   strlen(user) + strlen(order) + 5 + names_bytes(asked);
    struct hooks_run *run = calloc(1, sizeof(*run) + bytes);

    check(run != NULL);
    char *at = run->texts;
    run->request = (struct hook_request){
        .alloc_dir = add_text(&at, hooks->alloc_dir),
        .alloc = add_text(&at, asked->alloc->id),
        .task = add_text(&at, task),
        .user = add_text(&at, user),
        .order = add_text(&at, order),
        .network = hooks->network,
        .disks = hooks->disks,
        .parser = hooks->parser,
        .is_image = asked->task != NULL &&
                    hooks_driver(hooks, asked->task->driver)->isolation == ISOLATION_IMAGE,
        .privileged = hooks->privileged,
        .asks_plugins = hooks->asks_plugins,
    };
    add_names(asked, &at, &run->request);
    run->hooks = hooks;
    run->hook = asked->hook;
    run->room = room_of(asked);
    run->next = hooks->runs;
    run->link = &hooks->runs;
    if (run->next != NULL)
        run->next->link = &run->next;
    hooks->runs = run;
    return run;
}

/* The step of what was asked for; NULL when there is nothing to do. */
static const struct hook_step *step_of(const struct hook_run *asked)
{
    check(asked->phase < PHASE_COUNT);
    if (asked->hook == HOOK_NONE)
        return NULL;
    return &hooks_row(asked->task != NULL, asked->hook)->steps[asked->phase];
}

void hook_run(struct hooks *hooks, const struct hook_run *asked, hook_done *done, void *ctx)
{
    const struct hook_step *step = step_of(asked);
    const char *task = asked->task != NULL ? asked->task->name : NULL;
    char user[HOOKS_USER_SIZE] = "";
    struct hooks_paths paths;
    struct err err = {0};

    /* The steps build paths of these names, as root: a bad one must not get that far. */
    bool valid = step == NULL || hooks_paths(hooks, asked->alloc->id, task, &paths, &err) == 0;
    if (valid && step != NULL && task != NULL && asked->phase == PHASE_PRESTART)
        valid = hooks_user(hooks, asked, user, &err) == 0;
    scoped_string char *order = NULL;
    if (valid && step != NULL && step->begin != NULL)
        valid = step->begin(hooks, asked, &order, &err) == 0;
    struct hooks_run *run = new_run(hooks, asked, user, order != NULL ? order : "");
    run->err = err;
    run->done = done;
    run->ctx = ctx;
    if (!valid && (asked->phase == PHASE_STOP || asked->phase == PHASE_POSTRUN ||
                   asked->phase == PHASE_DESTROY))
        run->err = (struct err){0}; /* nothing was ever made under such a name */
    if (valid && step != NULL && step->where != HOOK_ABSENT)
        run->function = step->run;
    if (run->function != NULL && step->where == HOOK_BY_PROCESS) {
        run->by_process = true;
        run->finish = step->finish;
        fetching_init(&run->fetching);
    }
    if (valid && step != NULL && step->ask != NULL && (!run->by_process || order != NULL)) {
        run->ask = step->ask;
        if (!waits_for_others(run, asked))
            ask(run);
        return;
    }
    if (run->function != NULL && (step->where == HOOK_ON_POOL || step->where == HOOK_BY_PROCESS)) {
        if (task == NULL)
            begin_alloc(run);
        else if (!strips_behind_renewal(run, asked))
            submit(run);
        return;
    }
    if (run->function != NULL && step->where == HOOK_IN_LINE) {
        line_up(run);
        return;
    }
    if (run->function != NULL) {
        run->request.hooks = hooks;
        run->request.asked = asked;
        perform(run);
        run->request.asked = NULL;
    }
    io_timer_start(hooks->loop, &run->timer, loop_now_ms(), on_timer, run);
}

bool hooks_has_secrets(const struct hooks *hooks, const char *alloc_id, const char *task)
{
    struct hooks_paths paths;

    return !hooks->privileged || (hooks_paths(hooks, alloc_id, task, &paths, NULL) == 0 &&
                                  mount_is_point_at_once(paths.secrets));
}

void hooks_mend_secrets(struct hooks *hooks, const struct alloc_spec *alloc,
                        const struct task_spec *task, const struct proc_identity *payload,
                        hook_done *done, void *ctx)
{
    const struct hook_run asked = {
        .phase = PHASE_PRESTART, .hook = TASK_HOOK_TASK_DIR, .alloc = alloc, .task = task};
    char user[HOOKS_USER_SIZE] = "";
    struct hooks_paths paths;
    struct err err = {0};
    int code = hooks_paths(hooks, alloc->id, task->name, &paths, &err);

    if (code == 0)
        code = hooks_user(hooks, &asked, user, &err);
    struct hooks_run *run = new_run(hooks, &asked, user, "");
    run->err = err;
    run->done = done;
    run->ctx = ctx;
    run->request.payload = *payload;
    run->request.has_own_root = hooks_driver(hooks, task->driver)->isolation != ISOLATION_NONE;
    run->function = hooks_task_dir_mend;
    if (code == 0)
        submit(run);
    else
        io_timer_start(hooks->loop, &run->timer, loop_now_ms(), on_timer, run);
}

/* What plugins can say is known: those that waited for it begin. */
static void begin_checks(struct hooks *hooks)
{
    struct hooks_run *run, *next = hooks->checks;

    hooks->checks = NULL;
    while ((run = next) != NULL) {
        next = run->behind;
        run->behind = NULL;
        run->request.asks_plugins = hooks->asks_plugins;
        line_up(run);
    }
}

void hooks_check_network(struct hooks *hooks, const char *alloc_id, hook_done *done, void *ctx)
{
    const struct alloc_spec alloc = {.id = alloc_id};
    const struct hook_run asked = {.alloc = &alloc};
    struct hooks_run *run = new_run(hooks, &asked, "", "");

    check(uuid_is_valid(alloc_id));
    run->done = done;
    run->ctx = ctx;
    run->function = hooks_network_check;
    if (hooks_await_plugins(hooks))
        wait_behind(&hooks->checks, run);
    else
        line_up(run);
}
