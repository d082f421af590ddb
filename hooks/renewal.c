/*
 * Hook identity, while the task runs: tokens that expire are signed again at half of their time.
 *
 * One timer for each task that has such identities, until the task starts again or its directory is
 * stripped; those of one task are renewed together, the first that expires says when.  What was
 * signed is written, and then told to the task's machine, which decides what it means to the task
 * and keeps it.  A crash between the two leaves a token that nobody has told the task of: whoever
 * begins looks at the files, and has all renewed at once if they are others.  Nobody who fails to
 * answer ends it: it is tried again, ever later, for as long as the task runs, and told once for
 * each reason.
 */
#include "hooks/signing.h"

#include "base/rng.h"
#include "hooks/directory.h"

#include <stdlib.h>
#include <string.h>

#include <uthash.h>

struct renewal {
    UT_hash_handle hh;
    struct machine_id id;
    struct renewals *renewals;
    struct hook_request request; /* of the writing; texts are its own */
    char *alloc_dir, *task, *user, *text;
    struct signing_order order; /* with the tokens that the machine knows */
    struct results told, fresh; /* what it knows, and what it will */
    struct io_timer timer;
    struct io_work work;
    struct err err;
    uint32_t tries;                 /* one behind the other that have failed */
    char failure[DESCRIPTION_SIZE]; /* what was told of the last of them */
    bool asking, writing;           /* or looking at what is written: */
    bool looks, differs;
    bool ended; /* to be freed when it is neither */
    void (*resume)(void *ctx);
    void *resume_ctx;
    struct renewal *next, **link; /* of those that have ended and are not freed yet */
};

struct renewals {
    struct hooks *hooks;
    struct renewal *by_id;
    struct renewal *ending;
    struct rng rng;
    unsigned writing;
    bool gone; /* freed when nobody writes any more */
};

/* --- the end of one --- */

static void free_renewal(struct renewal *renewal)
{
    signing_close(&renewal->order);
    free(renewal->told.bytes);
    free(renewal->fresh.bytes);
    free(renewal->alloc_dir);
    free(renewal->task);
    free(renewal->user);
    free(renewal->text);
    free(renewal);
}

static void leave_ending(struct renewal *renewal)
{
    *renewal->link = renewal->next;
    if (renewal->next != NULL)
        renewal->next->link = renewal->link;
    free_renewal(renewal);
}

static void end(struct renewal *renewal)
{
    struct renewals *renewals = renewal->renewals;

    io_timer_stop(&renewal->timer);
    HASH_DEL(renewals->by_id, renewal);
    if (!renewal->asking && !renewal->writing) {
        free_renewal(renewal);
        return;
    }
    renewal->ended = true;
    renewal->next = renewals->ending;
    renewal->link = &renewals->ending;
    if (renewal->next != NULL)
        renewal->next->link = &renewal->next;
    renewals->ending = renewal;
}

static struct renewal *find(struct renewals *renewals, const char *alloc, const char *task)
{
    struct machine_id id = machine_id_join(MACHINE_TASK, alloc, task);
    struct renewal *renewal;

    HASH_FIND_STR(renewals->by_id, id.text, renewal);
    return renewal;
}

bool renewals_end(struct renewals *renewals, const char *alloc, const char *task,
                  void (*resume)(void *ctx), void *ctx)
{
    struct renewal *renewal = find(renewals, alloc, task);

    if (renewal == NULL)
        return false;
    bool writing = renewal->writing;
    renewal->resume = writing ? resume : NULL;
    renewal->resume_ctx = ctx;
    end(renewal); /* and gone, if nobody works for it */
    return writing && resume != NULL;
}

/* --- telling --- */

static void tell(const struct renewal *renewal, const struct results *results, const char *text,
                 int code)
{
    const struct hooks_templates *who = renewal->renewals->hooks->templates;
    struct hook_outcome *outcome = calloc(1, sizeof(*outcome) + results->used);

    check(outcome != NULL);
    outcome->hook = TASK_HOOK_IDENTITY;
    outcome->code = code;
    outcome->results_bytes = results->used;
    if (results->used > 0)
        memcpy(outcome->results, results->bytes, results->used);
    (void)text_copy(outcome->text, sizeof(outcome->text), text); /* cut is enough */
    if (who != NULL)
        who->changed(who->ctx, renewal->order.alloc, renewal->task, outcome);
    free(outcome);
}

/* Which identities restart the task, or else the signals that it is sent. */
static void describe(const struct renewal *renewal, char text[DESCRIPTION_SIZE])
{
    const json_t *list = json_object_get(renewal->order.order, "Identities"), *identity;
    struct rendered_change change;
    char name[SIGNAL_NAME_SIZE];
    size_t i;

    text[0] = '\0';
    policy_change(TASK_HOOK_IDENTITY, renewal->told.bytes, renewal->told.used, renewal->fresh.bytes,
                  renewal->fresh.used, &change);
    json_array_foreach(list, i, identity)
    {
        if (!change.restarts || !renewal->order.expiring[i] ||
            json_integer_value(json_object_get(identity, "Change")) != CHANGE_RESTART)
            continue;
        (void)text_append(text, DESCRIPTION_SIZE, text[0] == '\0' ? "" : ", "); /* cut is enough */
        (void)text_append(text, DESCRIPTION_SIZE, renewal->order.bearers[i].identity);
    }
    for (int number = 1; number <= 64 && !change.restarts; number++) {
        if ((change.signals >> (number - 1) & 1u) == 0)
            continue;
        (void)text_append(text, DESCRIPTION_SIZE, text[0] == '\0' ? "" : ", "); /* likewise */
        (void)text_append(text, DESCRIPTION_SIZE, proc_signal_name(number, name));
    }
}

/* --- one after the other --- */

static void on_time(struct io_timer *timer);

static void again_in(struct renewal *renewal, uint64_t wait_ms)
{
    io_timer_start(renewal->renewals->hooks->loop, &renewal->timer, loop_now_ms() + wait_ms,
                   on_time, renewal);
}

static uint64_t draw(struct renewal *renewal)
{
    return rng_next(&renewal->renewals->rng);
}

/* 0: none does. */
static int64_t first_expires(const struct renewal *renewal)
{
    int64_t first = 0;

    for (size_t i = 0; i < renewal->order.count; i++) {
        int64_t expires = renewal->order.tokens[i].expires_unix_ns;

        if (renewal->order.expiring[i] && expires > 0 && (first == 0 || expires < first))
            first = expires;
    }
    return first;
}

/* At half of the time of the first that expires; one that expires no more is good for ever. */
static void wait_for_half(struct renewal *renewal)
{
    int64_t first = first_expires(renewal);

    if (first != 0)
        again_in(renewal, policy_renew_after_ms(first, loop_now_unix_ns(), draw(renewal)));
}

static void fail(struct renewal *renewal, const struct err *err)
{
    const struct results none = {0};

    if (renewal->tries == 0 || !text_starts_with(err->text, renewal->failure))
        tell(renewal, &none, err->text, err->code);
    (void)text_copy(renewal->failure, sizeof(renewal->failure), err->text); /* cut is enough */
    renewal->tries++;
    again_in(renewal, policy_renew_again_ms(renewal->tries, draw(renewal)));
}

static void on_pool(struct io_work *work)
{
    struct renewal *renewal = work->ctx;

    if (renewal->looks)
        renewal->differs = signing_differs(&renewal->request);
    else
        (void)hooks_identities_write(&renewal->request, &renewal->err); /* it fills that */
}

/* It is read again of what was told, in the same words. */
static void take_fresh(struct renewal *renewal)
{
    uint8_t *less = realloc(renewal->fresh.bytes, renewal->fresh.used + 1); /* it is kept */

    check(less != NULL);
    free(renewal->told.bytes);
    renewal->told = (struct results){less, renewal->fresh.used, renewal->fresh.used};
    renewal->fresh = (struct results){0};
    signing_read(&renewal->order, renewal->told.bytes, renewal->told.used);
}

static void on_written(struct io_work *work)
{
    struct renewal *renewal = work->ctx;
    struct renewals *renewals = renewal->renewals;
    char text[DESCRIPTION_SIZE];

    renewal->writing = false;
    renewals->writing--;
    if (renewal->ended) {
        void (*resume)(void *ctx) = renewals->gone ? NULL : renewal->resume;
        void *ctx = renewal->resume_ctx;

        leave_ending(renewal);
        if (resume != NULL)
            resume(ctx);
        if (renewals->gone && renewals->writing == 0)
            free(renewals);
        return;
    }
    if (renewal->looks) {
        if (renewal->differs)
            again_in(renewal, 0);
        else
            wait_for_half(renewal);
        return;
    }
    if (renewal->err.code != 0) {
        fail(renewal, &renewal->err);
        return;
    }
    renewal->tries = 0;
    describe(renewal, text);
    tell(renewal, &renewal->fresh, text, 0);
    take_fresh(renewal);
    wait_for_half(renewal);
}

/* The timer waits for nothing meanwhile. */
static void begin_work(struct renewal *renewal, bool looks)
{
    renewal->looks = looks;
    renewal->request.results = looks ? &renewal->told : &renewal->fresh;
    renewal->writing = true;
    renewal->renewals->writing++;
    io_work_submit(renewal->renewals->hooks->loop, &renewal->work, on_pool, on_written, renewal);
}

/* TOKENS are of those that expire; the others stay. */
static int merge(struct renewal *renewal, const struct spec_signed *tokens, struct err *err)
{
    struct spec_signed all[SPEC_IDENTITIES_MAX];
    size_t next = 0;

    for (size_t i = 0; i < renewal->order.count; i++)
        all[i] = renewal->order.expiring[i] ? tokens[next++] : renewal->order.tokens[i];
    free(renewal->fresh.bytes);
    renewal->fresh = (struct results){calloc(1, RESULTS_BYTES_MAX), 0, RESULTS_BYTES_MAX};
    check(renewal->fresh.bytes != NULL);
    return signing_results(&renewal->order, all, &renewal->fresh, err);
}

static void on_signed(void *ctx, const struct spec_signed *tokens, const struct err *err)
{
    struct renewal *renewal = ctx;
    struct err why = {0};

    renewal->asking = false;
    if (renewal->ended) {
        leave_ending(renewal);
        return;
    }
    if (tokens == NULL)
        why = *err;
    else
        (void)merge(renewal, tokens, &why); /* it fills that */
    if (why.code != 0) {
        (void)err_wrap(&why, "error renewing workload identities"); /* only to be filled */
        fail(renewal, &why);
        return;
    }
    renewal->err = (struct err){0};
    begin_work(renewal, false);
}

static void on_time(struct io_timer *timer)
{
    struct renewal *renewal = timer->ctx;
    const struct hooks_signer *signer = renewal->renewals->hooks->signer;
    struct spec_bearer bearers[SPEC_IDENTITIES_MAX];
    size_t count = 0;

    for (size_t i = 0; i < renewal->order.count; i++) {
        if (renewal->order.expiring[i])
            bearers[count++] = renewal->order.bearers[i];
    }
    renewal->asking = true;
    signer->sign(signer->ctx, renewal->order.alloc, renewal->order.index, bearers, count, on_signed,
                 renewal);
}

/* --- the beginning --- */

static char *copy(const char *text)
{
    char *own = strdup(text);

    check(own != NULL);
    return own;
}

int hooks_renew(const struct hook_request *request, struct err *err)
{
    struct renewals *renewals = request->hooks->renewals;
    const struct hook_run *asked = request->asked;
    struct renewal *renewal = calloc(1, sizeof(*renewal));
    char user[HOOKS_USER_SIZE];
    int code = hooks_user(request->hooks, asked, user, err);

    check(renewal != NULL);
    (void)renewals_end(renewals, request->alloc, request->task, NULL, NULL);
    if (code != 0) {
        free(renewal);
        return code;
    }
    renewal->renewals = renewals;
    renewal->alloc_dir = copy(request->alloc_dir);
    renewal->task = copy(request->task);
    renewal->user = copy(user);
    renewal->text = copy(request->order);
    signing_open(&renewal->order, renewal->text);
    renewal->request = (struct hook_request){.alloc_dir = renewal->alloc_dir,
                                             .alloc = renewal->order.alloc,
                                             .task = renewal->task,
                                             .user = renewal->user,
                                             .order = renewal->text,
                                             .is_image = request->is_image,
                                             .privileged = request->privileged};
    renewal->told = (struct results){malloc(asked->results_bytes + 1), asked->results_bytes,
                                     asked->results_bytes + 1};
    check(renewal->told.bytes != NULL);
    if (asked->results_bytes > 0)
        memcpy(renewal->told.bytes, asked->results, asked->results_bytes);
    renewal->id = machine_id_join(MACHINE_TASK, request->alloc, request->task);
    HASH_ADD_STR(renewals->by_id, id.text, renewal);
    if (first_expires(renewal) != 0)
        begin_work(renewal, true);
    else
        end(renewal);
    return 0;
}

struct renewals *renewals_new(struct hooks *hooks)
{
    struct renewals *renewals = calloc(1, sizeof(*renewals));

    check(renewals != NULL);
    renewals->hooks = hooks;
    renewals->rng = rng_init((uint64_t)loop_now_unix_ns());
    return renewals;
}

void renewals_free(struct renewals *renewals)
{
    struct renewal *renewal, *next;

    renewals->gone = true;
    HASH_ITER(hh, renewals->by_id, renewal, next)
    {
        renewal->asking = false; /* nobody answers any more */
        end(renewal);
    }
    for (renewal = renewals->ending; renewal != NULL; renewal = next) {
        next = renewal->next;
        if (!renewal->writing)
            leave_ending(renewal);
    }
    if (renewals->writing == 0)
        free(renewals);
}
