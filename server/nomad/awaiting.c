/*
 * For whom an alloc waits before it begins: those that made room for it, and the one whose place it
 * takes.
 *
 * Of those that are here the records say when they have ended.  One that is on another node ends
 * there, and the servers hear of it: they are asked for it, by a question that waits until it has
 * changed, first the leader and then whoever answers, until it has ended, is gone, or is none of
 * this node's business.  What is awaited follows from what the alloc is to run by, so that nothing
 * of it is kept: after a restart its machine begins to wait again, and the servers are asked anew.
 * While none of them answers it waits on: two of it at once would be worse than none.
 *
 * Follows nomad v2.0.6 client/allocwatcher, which after a restart of its client waits for nobody.
 */
#include "server/nomad/part.h"

#include "spec/job.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

enum {
    ASKED_MAX = 64,          /* questions that wait at once; one call in four of a connection */
    CROWDED_BLOCK_MS = 5000, /* for which one waits when there are more */
    AT_LEAST_MS = 1000,      /* an answer that says nothing new and comes sooner was no wait */
};

struct awaiting {
    struct nomad *nomad;
    char id[UUID_TEXT_SIZE];           /* who waits */
    char previous[UUID_TEXT_SIZE];     /* whose place it takes; "": that has ended */
    char (*preempted)[UUID_TEXT_SIZE]; /* owned */
    size_t preempted_count;
    uint64_t index; /* of the last answer; 0: there was none */
    uint64_t at_ms; /* node time of the next question; 0: none is wanted now */
    uint64_t asked_at_ms;
    bool asked;                  /* an answer is waited for */
    bool unheard;                /* the last question was not heard: it is asked when servers are */
    bool dropped;                /* and to be forgotten when the answer comes */
    char trouble[ERR_TEXT_SIZE]; /* why there was none, or "" */
    struct awaiting *prev, *next; /* the one that was asked last is the last */
    UT_hash_handle hh;            /* by id, but for those that are dropped */
};

static void forget(struct awaiting *awaiting)
{
    if (!awaiting->dropped)
        HASH_DEL(awaiting->nomad->awaited_by, awaiting);
    DL_DELETE(awaiting->nomad->awaiting, awaiting);
    free(awaiting->preempted);
    free(awaiting);
}

/* Nobody waits by it any more. */
static void drop(struct awaiting *awaiting)
{
    if (!awaiting->asked) {
        forget(awaiting);
        return;
    }
    HASH_DEL(awaiting->nomad->awaited_by, awaiting);
    awaiting->dropped = true;
    awaiting->at_ms = 0;
}

static struct awaiting *find(const struct nomad *nomad, const char *id)
{
    struct awaiting *awaiting;

    HASH_FIND_STR(nomad->awaited_by, id, awaiting);
    return awaiting;
}

/* --- who waits for whom --- */

static const struct alloc *record_of(const struct nomad *nomad, const char *id)
{
    return core_alloc(life_core(nomad->config.life), id);
}

static bool ends_elsewhere(const struct awaiting *awaiting)
{
    return awaiting->previous[0] != '\0' && record_of(awaiting->nomad, awaiting->previous) == NULL;
}

/* Those who made room were here: one of which nothing is known any more has ended. */
static bool lives(const struct nomad *nomad, const char *id)
{
    const struct alloc *record = record_of(nomad, id);

    return record != NULL && record->ended_unix_ns == 0;
}

static bool is_over(const struct awaiting *awaiting)
{
    if (ends_elsewhere(awaiting) || lives(awaiting->nomad, awaiting->previous))
        return false;
    for (size_t i = 0; i < awaiting->preempted_count; i++) {
        if (lives(awaiting->nomad, awaiting->preempted[i]))
            return false;
    }
    return true;
}

static void read_others(struct awaiting *awaiting, const struct alloc_spec *spec)
{
    (void)text_copy(awaiting->previous, UUID_TEXT_SIZE, spec->previous_id); /* a UUID or "" */
    awaiting->preempted = calloc(spec->preempted.count + 1, UUID_TEXT_SIZE);
    check(awaiting->preempted != NULL);
    for (size_t i = 0; i < spec->preempted.count; i++)
        (void)text_copy(awaiting->preempted[awaiting->preempted_count++], UUID_TEXT_SIZE,
                        spec->preempted.items[i]); /* UUIDs */
}

/* Without what it is to run by it waits for the one that its record names, and then fails. */
static void find_others(struct awaiting *awaiting)
{
    const struct alloc *alloc = record_of(awaiting->nomad, awaiting->id);
    char key[JOURNAL_KEY_SIZE], *text = NULL;
    struct alloc_spec *spec = NULL;
    size_t length;

    check(text_format(key, sizeof(key), "alloc/%s", awaiting->id));
    if (life_read_spec(awaiting->nomad->config.life, key, &text, &length, NULL) == 0 &&
        jobspec_decode_alloc(text, length, &spec, NULL) == 0)
        read_others(awaiting, spec);
    else if (alloc != NULL)
        (void)text_copy(awaiting->previous, UUID_TEXT_SIZE, alloc->assign.previous); /* the same */
    alloc_spec_free(spec);
    free(text);
}

static struct awaiting *begin(struct nomad *nomad, const char *id)
{
    struct awaiting *awaiting = calloc(1, sizeof(*awaiting));

    check(awaiting != NULL);
    awaiting->nomad = nomad;
    (void)text_copy(awaiting->id, sizeof(awaiting->id), id); /* a UUID */
    find_others(awaiting);
    if (ends_elsewhere(awaiting))
        awaiting->at_ms = nomad_now_ms(nomad);
    DL_APPEND(nomad->awaiting, awaiting);
    HASH_ADD_STR(nomad->awaited_by, id, awaiting);
    return awaiting;
}

/* As life_others has it. */
static bool waits_for(void *ctx, const char *alloc)
{
    struct nomad *nomad = ctx;
    struct awaiting *awaiting = find(nomad, alloc);

    if (awaiting == NULL)
        awaiting = begin(nomad, alloc);
    if (!is_over(awaiting))
        return true;
    drop(awaiting);
    return false;
}

void awaiting_open(struct nomad *nomad)
{
    life_others(nomad->config.life, waits_for, nomad);
}

void awaiting_settle(struct nomad *nomad)
{
    struct awaiting *awaiting, *next;

    DL_FOREACH_SAFE(nomad->awaiting, awaiting, next)
    {
        const struct alloc *alloc = record_of(nomad, awaiting->id);

        if (awaiting->dropped || (alloc != NULL && alloc->machine.state == A_WAITING))
            continue;
        life_look_again(nomad->config.life, awaiting->id); /* it is told to end */
        drop(awaiting);
    }
}

void awaiting_end(struct nomad *nomad)
{
    life_others(nomad->config.life, NULL, NULL);
    while (nomad->awaiting != NULL)
        forget(nomad->awaiting);
}

/* --- answers --- */

static void ask_in(struct awaiting *awaiting, uint64_t wait_ms)
{
    awaiting->at_ms = nomad_now_ms(awaiting->nomad) + wait_ms;
}

static uint64_t draw(const struct awaiting *awaiting)
{
    return awaiting->nomad->config.random(awaiting->nomad->config.ctx);
}

/* The one that was elsewhere is awaited no longer. */
static void over(struct awaiting *awaiting, const char *why)
{
    struct nomad *nomad = awaiting->nomad;
    char id[UUID_TEXT_SIZE];

    say(&nomad->config.say, SAY_INFO, "server",
        "an alloc on another node is awaited no longer alloc=%s previous=%s why=%s", awaiting->id,
        awaiting->previous, text_value(why));
    memcpy(id, awaiting->id, sizeof(id));
    awaiting->previous[0] = '\0';
    life_look_again(nomad->config.life, id); /* AWAITING may be no more */
}

static void told(struct awaiting *awaiting, const json_t *reply)
{
    const json_t *alloc = json_object_get(reply, "Alloc");
    const json_t *status = json_object_get(alloc, "ClientStatus");
    uint64_t index = (uint64_t)json_integer_value(json_object_get(reply, "Index"));
    uint64_t took_ms = nomad_now_ms(awaiting->nomad) - awaiting->asked_at_ms;
    bool is_new = index > awaiting->index;

    awaiting->trouble[0] = '\0';
    if (index < awaiting->index) { /* of a server that lags */
        ask_in(awaiting, policy_await_again_ms(draw(awaiting)));
        return;
    }
    awaiting->index = index;
    if (!json_is_object(alloc))
        over(awaiting, "the servers know it no more");
    else if (json_is_string(status) && policy_is_over_for_others(json_string_value(status)))
        over(awaiting, json_string_value(status));
    else if (is_new || took_ms >= AT_LEAST_MS)
        ask_in(awaiting, 0);
    else
        ask_in(awaiting, policy_await_again_ms(draw(awaiting)));
}

static void not_told(struct awaiting *awaiting, const struct err *err)
{
    if (policy_awaits_in_vain(err->code, err->text)) {
        over(awaiting, err->text);
        return;
    }
    awaiting->unheard = err->code != ERR_REFUSED;
    (void)text_copy(awaiting->trouble, sizeof(awaiting->trouble), err->text); /* as long */
    ask_in(awaiting, policy_await_again_ms(draw(awaiting)));
}

static void answered(void *ctx, const json_t *reply, const struct err *err)
{
    struct awaiting *awaiting = ctx;

    awaiting->asked = false;
    if (awaiting->dropped)
        forget(awaiting);
    else if (reply != NULL)
        told(awaiting, reply);
    else
        not_told(awaiting, err);
}

/* --- questions --- */

static void ask(struct awaiting *awaiting, uint64_t block_ms)
{
    struct nomad *nomad = awaiting->nomad;
    json_t *args = json_pack("{s:s, s:I, s:I, s:b}", "AllocID", awaiting->previous, "MinQueryIndex",
                             (json_int_t)awaiting->index, "MaxQueryTime",
                             (json_int_t)block_ms * 1000000, "AllowStale", awaiting->index != 0);

    check(args != NULL);
    awaiting->at_ms = 0;
    awaiting->asked = true;
    awaiting->unheard = false;
    awaiting->asked_at_ms = nomad_now_ms(nomad);
    DL_DELETE(nomad->awaiting, awaiting); /* behind all others, who may have waited for longer */
    DL_APPEND(nomad->awaiting, awaiting);
    servers_call(nomad, "Alloc.GetAlloc", args, false, NOMAD_BLOCKED_CALL_MS, answered, awaiting);
}

/* Servers that do not know this node tell it nothing. */
static bool may_ask(const struct nomad *nomad, size_t *ret_asked, size_t *ret_count)
{
    const struct awaiting *awaiting;

    *ret_asked = *ret_count = 0;
    DL_FOREACH(nomad->awaiting, awaiting)
    {
        *ret_asked += awaiting->asked;
        *ret_count += awaiting->asked || awaiting->at_ms != 0;
    }
    return nomad->registered && nomad->synced && *ret_asked < ASKED_MAX;
}

void awaiting_wake(struct nomad *nomad)
{
    size_t asked, count, left;
    struct awaiting *awaiting = nomad->awaiting, *next;
    bool may = may_ask(nomad, &asked, &count);

    for (left = count; may && awaiting != NULL && left > 0; awaiting = next) {
        next = awaiting->next;
        left -= awaiting->asked || awaiting->at_ms != 0;
        if (awaiting->at_ms == 0 || awaiting->at_ms > nomad_now_ms(nomad) || asked >= ASKED_MAX)
            continue;
        asked++;
        ask(awaiting, count > ASKED_MAX ? CROWDED_BLOCK_MS : NOMAD_BLOCK_MS);
    }
}

uint64_t awaiting_at_ms(const struct nomad *nomad)
{
    const struct awaiting *awaiting;
    size_t asked, count;
    uint64_t at_ms = 0;

    if (!may_ask(nomad, &asked, &count))
        return 0;
    DL_FOREACH(nomad->awaiting, awaiting)
    {
        if (awaiting->at_ms != 0 && (at_ms == 0 || awaiting->at_ms < at_ms))
            at_ms = awaiting->at_ms;
    }
    return at_ms;
}

void awaiting_elsewhere(struct nomad *nomad)
{
    servers_abandon(nomad, "Alloc.GetAlloc");
}

void awaiting_heard(struct nomad *nomad)
{
    struct awaiting *awaiting;

    DL_FOREACH(nomad->awaiting, awaiting)
    {
        if (awaiting->unheard)
            ask_in(awaiting, 0);
    }
}

/* --- what is seen of it --- */

bool nomad_awaits(const struct nomad *nomad, const char *alloc, char *to, size_t size)
{
    const struct awaiting *awaiting = nomad == NULL ? NULL : find(nomad, alloc);

    if (awaiting == NULL || !ends_elsewhere(awaiting))
        return false;
    (void)text_format(to, size, "Waiting for alloc %.8s on another node to end%s%s",
                      awaiting->previous,
                      awaiting->trouble[0] != '\0'         ? ", of which the servers do not tell: "
                      : nomad->registered && nomad->synced ? ""
                                                           : ", of which no server tells yet",
                      awaiting->trouble); /* may be cut */
    return true;
}
