/*
 * Who waits in a life: callers for an answer, allocs for the end of others.  Watchers of changes
 * are in watchers.c.
 *
 * A caller that asked one machine waits under a token until an effect replies or the core refuses
 * it; one that posted a change of its own waits for the commit.  Either hears exactly once (I-14).
 */
#include "core/life/part.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

struct waiting {
    uint64_t token;
    life_answer *answer;
    void *ctx;
    UT_hash_handle hh;
};

/* --- answers --- */

void life_ask(struct life *life, const struct machine_id *id, uint8_t event,
              const struct request *request, life_answer *answer, void *ctx)
{
    struct err err;

    check(answer != NULL);
    if (HASH_COUNT(life->waiting) >= CALLERS_MAX || core_room(life->core) == 0) {
        int code = err_set(&err, ERR_AGAIN, "too many requests wait already: try again");
        answer(ctx, code, &err);
        return;
    }
    struct waiting *waiting = calloc(1, sizeof(*waiting));
    check(waiting != NULL);
    waiting->token = ++life->tokens;
    waiting->answer = answer;
    waiting->ctx = ctx;
    HASH_ADD(hh, life->waiting, token, sizeof(waiting->token), waiting);
    core_ask(life->core, id, event, request, waiting->token);
}

void life_reply(struct life *life, uint64_t token, int code, const struct err *err)
{
    struct waiting *waiting;
    struct err none = {0};

    check(code <= 0);
    HASH_FIND(hh, life->waiting, &token, sizeof(token), waiting);
    if (waiting == NULL)
        return;
    HASH_DEL(life->waiting, waiting);
    waiting->answer(waiting->ctx, code, err != NULL ? err : &none);
    free(waiting);
}

void life_after_commit(struct life *life, life_answer *answer, void *ctx)
{
    check(answer != NULL);
    *list_more(&life->committed) = (struct committed){answer, ctx};
}

void life_answer_committed(struct life *life, int code, const struct err *err)
{
    struct committed_list list = life->committed;

    check(implies(code < 0, err != NULL));        /* who is refused hears why */
    life->committed = (struct committed_list){0}; /* an answer may ask again */
    for (size_t i = 0; i < list.count; i++)
        list.items[i].answer(list.items[i].ctx, code, err);
    free(list.items);
}

/* --- allocs that wait for others --- */

static bool has_ended(const struct life *life, const char *alloc)
{
    const struct alloc *record = core_alloc(life->core, alloc);

    return record == NULL || record->ended_unix_ns != 0;
}

/* Of those whose disk is taken over with that of ALLOC the last that has not ended; "": all have.
 */
static const char *last_of_disk(const struct life *life, const char *alloc)
{
    for (int step = 0; step < DISK_OWNERS_MAX; step++) {
        const struct alloc *record = core_alloc(life->core, alloc);

        if (record == NULL || (record->ended_unix_ns != 0 && record->disk == DISK_HERE))
            return "";
        if (record->ended_unix_ns == 0)
            return alloc;
        alloc = record->assign.disk_from;
    }
    return "";
}

/* Sets who is awaited still, of PREVIOUS and DISK_FROM (UUIDs or ""), which may be its own. */
static void look_again(const struct life *life, struct successor *successor, const char *previous,
                       const char *disk_from)
{
    const char *last = last_of_disk(life, disk_from);

    if (has_ended(life, previous))
        previous = "";
    memmove(successor->previous, previous, strlen(previous) + 1);
    memmove(successor->disk_from, last, strlen(last) + 1);
}

/* One that is to end, or is gone, waits for nobody. */
static bool waits(const struct life *life, const struct successor *successor)
{
    const struct alloc *alloc = core_alloc(life->core, successor->id.text);

    if (alloc == NULL || alloc->machine.state != A_WAITING)
        return false;
    return successor->previous[0] != '\0' || successor->disk_from[0] != '\0' ||
           (life->others != NULL && life->others(life->others_ctx, successor->id.text));
}

void life_others(struct life *life, bool (*waits_for)(void *ctx, const char *alloc), void *ctx)
{
    life->others = waits_for;
    life->others_ctx = ctx;
}

static void wait_for(struct life *life, const struct machine_id *id,
                     const struct alloc_assign *assign)
{
    struct successor successor = {.id = *id};

    check(id->kind == MACHINE_ALLOC);
    look_again(life, &successor, assign->previous, assign->disk_from);
    if (waits(life, &successor))
        *list_more(&life->successors) = successor;
    else
        core_done(life->core, id, LANE_WAIT, AE_PREVIOUS_ENDED, NULL);
}

/* The successor number AT goes on, if all have ended by now. */
static void look_at(struct life *life, size_t at)
{
    struct successor_list *list = &life->successors;
    struct successor *successor = &list->items[at];

    look_again(life, successor, successor->previous, successor->disk_from);
    if (waits(life, successor))
        return;
    struct machine_id id = successor->id;
    *successor = list->items[--list->count];
    core_done(life->core, &id, LANE_WAIT, AE_PREVIOUS_ENDED, NULL);
}

void life_look_again(struct life *life, const char *alloc)
{
    for (size_t i = life->successors.count; i > 0; i--) {
        if (text_equal(life->successors.items[i - 1].id.text, alloc))
            look_at(life, i - 1);
    }
}

static void alloc_ended(struct life *life, const struct effect *effect)
{
    const struct successor_list *list = &life->successors;

    for (size_t i = list->count; i > 0; i--) {
        const struct successor *successor = &list->items[i - 1];
        if (life->others != NULL || text_equal(successor->previous, effect->id.text) ||
            text_equal(successor->disk_from, effect->id.text))
            look_at(life, i - 1);
    }
    if (life->control.alloc_ended != NULL)
        life->control.alloc_ended(life->control.ctx, effect->id.text, alloc_of(effect->record));
}

/* --- effects that only tell --- */

static void refuse_not_running(struct life *life, const struct effect *effect)
{
    struct err err;
    int code = err_set(&err, ERR_REFUSED, "%s not running",
                       effect->id.kind == MACHINE_TASK ? "Task" : "Alloc");

    life_reply(life, effect->reply, code, &err);
}

static void refuse_busy(struct life *life, const struct effect *effect)
{
    struct err err;
    int code = err_set(&err, ERR_AGAIN, "the volume is busy");

    life_reply(life, effect->reply, code, &err);
}

static void reply_ok(struct life *life, const struct effect *effect)
{
    life_reply(life, effect->reply, 0, NULL);
}

static void tell_status(struct life *life, const struct effect *effect)
{
    if (life->control.alloc_changed != NULL)
        life->control.alloc_changed(life->control.ctx, effect->id.text, alloc_of(effect->record));
    life_alloc_changed(life, effect->id.text, alloc_of(effect->record));
}

static void tell_ended(struct life *life, const struct effect *effect)
{
    alloc_ended(life, effect);
    life_alloc_changed(life, effect->id.text, alloc_of(effect->record));
}

static void watch_previous(struct life *life, const struct effect *effect)
{
    wait_for(life, &effect->id, &alloc_of(effect->record)->assign);
}

typedef void tell_function(struct life *life, const struct effect *effect);

static tell_function *const alloc_functions[AX_COUNT] = {
    [AX_WATCH_PREVIOUS] = watch_previous,
    [AX_TELL_STATUS] = tell_status,
    [AX_TELL_ENDED] = tell_ended,
    [AX_REPLY_OK] = reply_ok,
    [AX_REPLY_NOT_RUNNING] = refuse_not_running,
};

static tell_function *const task_functions[TX_COUNT] = {
    [TX_REPLY_OK] = reply_ok,
    [TX_REPLY_NOT_RUNNING] = refuse_not_running,
};

static tell_function *const volume_functions[VX_COUNT] = {
    [VX_REPLY_OK] = reply_ok,
    [VX_REPLY_BUSY] = refuse_busy,
};

static tell_function *const plugin_functions[PX_COUNT] = {
    [PX_REPLY_OK] = reply_ok,
};

bool life_perform(struct life *life, const struct effect *effect)
{
    static tell_function *const *const functions[] = {
        [MACHINE_ALLOC] = alloc_functions,
        [MACHINE_TASK] = task_functions,
        [MACHINE_VOLUME] = volume_functions,
        [MACHINE_PLUGIN] = plugin_functions,
    };
    tell_function *function = functions[effect->id.kind][effect->kind];

    if (function == NULL)
        return false;
    function(life, effect);
    return true;
}

/* --- the end --- */

void life_forget_callers(struct life *life)
{
    struct waiting *waiting, *next;

    HASH_ITER(hh, life->waiting, waiting, next)
    {
        HASH_DEL(life->waiting, waiting);
        free(waiting);
    }
}

void life_free_waiters(struct life *life)
{
    life_forget_callers(life);
    free(life->committed.items);
    free(life->successors.items);
}
