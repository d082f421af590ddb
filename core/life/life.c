/*
 * A life: its turns, what follows each, and what is tried again.
 *
 * Follows the sequence of systemd's deserialize, coldplug, catchup: nothing is ended for belonging
 * to nobody before every machine has been restored and that is committed.
 */
#include "core/life.h"

#include "core/life/part.h"
#include "core/lost.h"

#include <stdlib.h>

enum {
    RETRY_COMMIT_MS = 1000,
    RETRY_SWEEP_MS = 5000,
};

/* --- the seam of the core --- */

static void around_commit(const struct life *life)
{
    if (life->world.around_commit != NULL)
        life->world.around_commit(life->world.ctx);
}

static int commit(void *ctx, const struct journal_batch *batch, struct err *err)
{
    struct life *life = ctx;
    const struct store *store = &life->world.store;
    struct journal_batch whole = *batch;

    retention_extend(life->retention, &whole);
    around_commit(life);
    int code = store->commit(store->ctx, &whole, err);
    around_commit(life);
    retention_settle(life->retention);
    return code;
}

static void perform(void *ctx, const struct effect *effect)
{
    struct life *life = ctx;

    life->world.perform(life->world.ctx, effect);
}

static void refuse(void *ctx, uint64_t token, const struct err *err)
{
    life_reply(ctx, token, err->code, err);
}

static void known(void *ctx, const char *alloc, struct alloc_assign *assign)
{
    struct life *life = ctx;

    if (life->world.known != NULL)
        life->world.known(life->world.ctx, alloc, assign);
    else
        lost_alloc(&life->world.store, alloc, assign);
}

static bool claim(void *ctx, const char *alloc, const char *name, struct volume_define *ret_define)
{
    struct life *life = ctx;

    if (life->world.claim != NULL)
        return life->world.claim(life->world.ctx, alloc, name, ret_define);
    return lost_claim(&life->world.store, alloc, name, ret_define);
}

static bool place(void *ctx, const char *alloc, unsigned nth, struct volume_define *ret_define)
{
    struct life *life = ctx;

    return life->world.place != NULL && life->world.place(life->world.ctx, alloc, nth, ret_define);
}

/* Ends what runs of it: at once, or when the sweep under way, which may have passed by, is over. */
static void want_sweep(struct life *life)
{
    if (!life->swept_once)
        return; /* the first one comes */
    if (life->sweeping)
        life->sweep_again = true;
    else
        life->sweep_at_ms = life_now_ms(life);
}

static void put_aside(void *ctx, const struct machine_id *id, const char *why)
{
    struct life *life = ctx;
    struct err err = {0};
    char key[JOURNAL_KEY_SIZE];

    journal_key_of_id(id, key);
    if (life_set_aside(life, "state", key, why, &err) < 0)
        say(&life->world.say, SAY_ERROR, "journal", "cannot be put into quarantine key=%s error=%s",
            text_value(key), text_value(err.text));
    want_sweep(life);
}

static void alloc_gone(struct life *life, const struct machine_id *id)
{
    const struct alloc *alloc = core_alloc(life->core, id->text);

    check(alloc != NULL);
    check(alloc->machine.state == A_GONE);
    if (life->control.alloc_gone != NULL)
        life->control.alloc_gone(life->control.ctx, id->text, alloc);
    life_alloc_gone(life, id->text, alloc);
}

static void trace(void *ctx, const struct journal_event *event)
{
    struct life *life = ctx;

    if (event->id.kind == MACHINE_ALLOC && event->after == A_GONE)
        alloc_gone(life, &event->id);
    life->lost += event->id.kind == MACHINE_TASK && event->event.kind == TE_LOST &&
                  event->after != T_RECOVERING; /* which looks again */
    if (life->world.trace != NULL)
        life->world.trace(life->world.ctx, event);
}

/* --- birth and end --- */

struct life *life_new(const struct life_world *from)
{
    struct life *life = calloc(1, sizeof(*life));
    struct world world = {life, commit, perform, refuse, known, trace, claim, place, put_aside};

    check(life != NULL);
    check(from->store.commit != NULL);
    check(from->now != NULL);
    check(from->random != NULL);
    check(from->perform != NULL);
    check(from->sweep != NULL);
    life->world = *from;
    life_begin_watchers(life);
    life->core = core_new(&world);
    life->retention = retention_new(&life->world.store, &life->world.say);
    if (from->events_max != 0)
        retention_limit(life->retention, from->events_max);
    return life;
}

void life_free(struct life *life)
{
    if (life == NULL)
        return;
    retention_free(life->retention);
    core_free(life->core);
    life_free_waiters(life);
    life_free_watchers(life);
    free(life);
}

struct core *life_core(struct life *life)
{
    return life->core;
}

void life_control(struct life *life, const struct life_control *control)
{
    check(!life->started);
    life->control = *control;
}

const char *life_degraded(const struct life *life)
{
    return life->degraded[0] == '\0' ? NULL : life->degraded;
}

const char *life_restriction(const struct life *life)
{
    return life->world.restriction == NULL ? NULL : life->world.restriction(life->world.ctx);
}

const char *life_trouble(const struct life *life)
{
    const char *degraded = life_degraded(life);

    return degraded != NULL ? degraded : life_restriction(life);
}

int life_check_turn(const struct life *life, size_t events, struct err *err)
{
    if (life_degraded(life) != NULL)
        return err_set(err, ERR_AGAIN, "the journal cannot be written: %s", life_degraded(life));
    if (events > core_room(life->core))
        return err_set(err, ERR_AGAIN, "too many changes wait for the next commit: try again");
    return 0;
}

uint64_t life_now_ms(const struct life *life)
{
    int64_t unix_ns;

    return life->world.now(life->world.ctx, &unix_ns);
}

int64_t life_unix_ns(const struct life *life)
{
    int64_t unix_ns;

    (void)life->world.now(life->world.ctx, &unix_ns); /* only the wall clock is wanted */
    return unix_ns;
}

/* --- when --- */

static uint64_t control_deadline_ms(const struct life *life)
{
    return life->control.deadline_ms == NULL ? 0 : life->control.deadline_ms(life->control.ctx);
}

static bool control_is_due(const struct life *life, uint64_t now_ms)
{
    uint64_t at_ms = control_deadline_ms(life);

    return at_ms != 0 && at_ms <= now_ms;
}

static bool is_due(const struct life *life, uint64_t now_ms)
{
    uint64_t deadline_ms = core_deadline_ms(life->core);

    return core_has_work(life->core) || (deadline_ms != 0 && deadline_ms <= now_ms);
}

/* A commit has failed and is not tried again yet. */
static bool waits(const struct life *life, uint64_t now_ms)
{
    return life->retry_at_ms > now_ms && life->committed.count == 0;
}

bool life_has_work(struct life *life)
{
    uint64_t now_ms = life_now_ms(life);

    return !waits(life, now_ms) && (is_due(life, now_ms) || control_is_due(life, now_ms));
}

uint64_t life_deadline_ms(const struct life *life)
{
    uint64_t at_ms = life->retry_at_ms != 0 ? life->retry_at_ms : core_deadline_ms(life->core);

    if (life->sweep_at_ms != 0 && (at_ms == 0 || life->sweep_at_ms < at_ms))
        at_ms = life->sweep_at_ms;
    uint64_t control_ms = life->retry_at_ms != 0 ? 0 : control_deadline_ms(life);
    return control_ms != 0 && (at_ms == 0 || control_ms < at_ms) ? control_ms : at_ms;
}

static void arm(struct life *life)
{
    if (life->world.arm != NULL)
        life->world.arm(life->world.ctx, life_deadline_ms(life));
}

/* --- the sweep --- */

static void sweep(struct life *life)
{
    check(life->started);
    life->sweep_at_ms = 0;
    life->swept_once = life->sweeping = true;
    life->world.sweep(life->world.ctx);
}

/* Once every machine is restored, also when there is none: an empty journal beside living things
 * of ours is no first start (I-17). */
static void sweep_once(struct life *life)
{
    if (!life->swept_once)
        sweep(life);
}

void life_swept(struct life *life, bool done)
{
    check(life->swept_once); /* it was asked for */
    bool last = done && !life->sweep_again;
    life->sweeping = false;
    core_swept(life->core, last);
    if (last)
        return;
    life->sweep_again = false;
    life->sweep_at_ms = life_now_ms(life) + (done ? 0 : RETRY_SWEEP_MS);
    arm(life);
}

/* --- the turn --- */

static void commit_failed(struct life *life, uint64_t now_ms, const struct err *err)
{
    check(err->code < 0);
    if (!text_equal(life->degraded, err->text))
        say(&life->world.say, SAY_ERROR, "journal",
            "cannot be written, nothing is changed until it can; payloads run on error=%s",
            text_value(err->text));
    (void)text_copy(life->degraded, sizeof(life->degraded), err->text); /* same size */
    life->retry_at_ms = now_ms + RETRY_COMMIT_MS;
}

static void commit_made(struct life *life)
{
    if (life->degraded[0] == '\0')
        return;
    say(&life->world.say, SAY_INFO, "journal", "can be written again");
    life->degraded[0] = '\0';
}

static bool find_recovering(void *ctx, const struct machine_id *id, const struct machine *record)
{
    (void)id;
    *(bool *)ctx |= record->state == T_RECOVERING;
    return record->state != T_RECOVERING; /* one is enough */
}

/* Says once when every task of the last incarnation has been looked for. */
static void report_restored(struct life *life)
{
    bool recovering = false;

    if (life->reported)
        return;
    core_each(life->core, MACHINE_TASK, find_recovering, &recovering);
    if (recovering)
        return;
    life->reported = true;
    if (core_count(life->core, MACHINE_TASK) > 0)
        say(&life->world.say, SAY_INFO, "agent", "restored tasks=%zu lost=%llu",
            core_count(life->core, MACHINE_TASK), (unsigned long long)life->lost);
}

static void settle(struct life *life, int code, const struct err *err)
{
    if (life->control.settled != NULL)
        life->control.settled(life->control.ctx, code, err);
    life_answer_committed(life, code, err);
}

static void tidy(struct life *life)
{
    if (life->control.tidy != NULL)
        life->control.tidy(life->control.ctx);
}

/* Nothing is to be stepped: those who wait for a commit of nothing have it.  What could not be
 * written was refused and is gone: whether the journal can be written again will be known when
 * somebody wants something, who must not be refused for ever. */
static void rest(struct life *life)
{
    life->degraded[0] = '\0';
    if (!life->swept_once)
        tidy(life); /* what the last incarnation left over may be all there is */
    sweep_once(life);
    life_answer_committed(life, 0, NULL);
    life_tell_watchers(life);
}

static void step(struct life *life, uint64_t now_ms, int64_t unix_ns)
{
    struct err err;
    int code = core_turn(life->core, now_ms, unix_ns, life->world.random(life->world.ctx), &err);

    if (code < 0) {
        commit_failed(life, now_ms, &err);
        settle(life, code, &err);
        if (code == ERR_LIMIT && core_in_parts(life->core))
            life->retry_at_ms = 0; /* a smaller one is tried at once */
        return;
    }
    if (core_in_parts(life->core)) { /* what waits for a commit waits for the last of them */
        if (life->control.settled != NULL)
            life->control.settled(life->control.ctx, 0, NULL);
        return;
    }
    commit_made(life);
    settle(life, 0, NULL);
    sweep_once(life);
    report_restored(life);
    tidy(life);
    life_tell_watchers(life);
}

bool life_turn(struct life *life)
{
    int64_t unix_ns;
    uint64_t now_ms = life->world.now(life->world.ctx, &unix_ns);

    check(life->started);
    check(now_ms >= life->turned_at_ms); /* node time never goes back (I-36) */
    life->turned_at_ms = now_ms;
    if (life->sweep_at_ms != 0 && life->sweep_at_ms <= now_ms)
        sweep(life);
    if (waits(life, now_ms)) {
        arm(life); /* a sweep may have used up what the second try was armed by */
        return false;
    }
    life->retry_at_ms = 0;
    if (control_is_due(life, now_ms))
        life->control.tidy(life->control.ctx); /* what it posts is stepped at once */
    if (is_due(life, now_ms))
        step(life, now_ms, unix_ns);
    else
        rest(life);
    arm(life);
    return life->retry_at_ms == 0 && core_has_work(life->core);
}
