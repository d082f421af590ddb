/*
 * The journal in memory (store.c) as a life sees it: with crash points before and after each
 * commit, looked at by the checkers.
 */
#include "sim/world/check/check.h"
#include "sim/world/world.h"

#include <stdlib.h>
#include <string.h>

static int commit(void *ctx, const struct journal_batch *batch, struct err *err)
{
    struct sim *sim = ctx;
    const struct sim_history *history = &sim->store.history;
    uint64_t events = history->next - history->first;

    if (sim->dying)
        return err_set(err, ERR_CANCELED, "the daemon is dead");
    sim_jobs_bind(sim, batch);
    sim_check_batch(sim, batch);
    sim_check_trim(sim, batch);
    sim_watch_transitions(sim, batch->events, batch->events_count, SIM_BEFORE);
    if (sim_point(sim, SIM_KILL_BEFORE)) {
        sim_jobs_unbind(sim);
        return err_set(err, ERR_CANCELED, "the daemon is dead");
    }
    int code = sim_store_commit(sim, batch, err);
    sim->commit_failed = code < 0;
    if (code < 0) {
        sim_jobs_unbind(sim);
        return code;
    }
    sim_check_bound(sim, events, batch);
    sim_check_committed(sim, batch);
    sim_jobs_committed(sim, batch);
    sim_check_jobs_committed(sim, batch);
    sim_watch_transitions(sim, batch->events, batch->events_count, SIM_AFTER);
    (void)sim_point(sim, SIM_KILL_AFTER); /* what follows sees that it is dying */
    return 0;
}

static uint64_t first_sequence(void *ctx)
{
    return ((struct sim *)ctx)->store.history.first;
}

static uint64_t next_sequence(void *ctx)
{
    return ((struct sim *)ctx)->store.head.next_sequence;
}

static int each_record(void *ctx, enum machine_kind kind, journal_record_cb *cb, journal_bad *bad,
                       void *cb_ctx, struct err *err)
{
    const struct sim *sim = ctx;
    char key[JOURNAL_KEY_SIZE];

    (void)err; /* memory can be read */
    for (size_t i = 0; i < sim->store.count; i++) {
        const struct sim_stored *item = sim->store.items[i];
        if (item->id.kind != kind)
            continue;
        journal_key_of_id(&item->id, key);
        const char *why =
            sim_store_is_sound(item) ? fsm_senseless(&item->id, item->record) : "it is damaged";
        if (why != NULL)
            bad(cb_ctx, "state", key, item->record, item->size, why);
        else if (!cb(cb_ctx, &item->id, item->record))
            break;
    }
    return 0;
}

/* Whatever the world wrote before can be read again. */
static void check_damaged(struct sim *sim, const struct sim_stored *item, const char *reason)
{
    if (sim_store_is_sound(item))
        sim_violate(sim, 17, "%s is put aside: %s", item->id.text, reason);
}

static int each_event(void *ctx, uint64_t first, journal_event_cb *cb, journal_bad *bad,
                      void *cb_ctx, struct err *err)
{
    const struct sim_history *history = &((struct sim *)ctx)->store.history;

    (void)bad; /* worlds damage records, and those are what a restart reads */
    (void)err;
    for (uint64_t at = first > history->first ? first : history->first; at < history->next; at++) {
        if (!cb(cb_ctx, sim_history_at(history, at)))
            break;
    }
    return 0;
}

static int base_read(void *ctx, const struct machine_id *id, struct machine **ret_base,
                     struct err *err)
{
    const struct machine *base = replay_find(((struct sim *)ctx)->store.history.bases, id);

    if (base == NULL)
        return err_set(err, ERR_GONE, "%s has no base", id->text);
    *ret_base = malloc(fsm_record_size(base));
    check(*ret_base != NULL);
    memcpy(*ret_base, base, fsm_record_size(base));
    return 0;
}

static int quarantine(void *ctx, const char *table, const char *key, const char *reason,
                      int64_t unix_ns, struct err *err)
{
    struct sim *sim = ctx;
    struct sim_store *store = &sim->store;
    char name[JOURNAL_KEY_SIZE];
    size_t at = 0;

    (void)unix_ns;
    (void)err;
    if (text_equal(table, "spec")) {
        sim_jobs_quarantine(sim, key);
        return 0;
    }
    for (journal_key_of_id(&store->items[at]->id, name); !text_equal(name, key);
         journal_key_of_id(&store->items[at]->id, name))
        check(++at < store->count); /* it was named by each_record */
    check_damaged(sim, store->items[at], reason);
    struct machine_id id = store->items[at]->id;
    struct sim_whom whom = sim_find(sim, &id);
    sim_say(sim, "quarantine: %s %s", machine_kind_name((enum machine_kind)id.kind), id.text);
    sim_fact(sim, SIM_FACT_QUARANTINED, &whom, 0);
    if (whom.alloc >= 0)
        sim_alloc_of(sim, &whom)->damaged = 1;
    sim_store_drop(store, &id);
    replay_forget(sim->replay, &id);
    sim_history_aside(sim, &id);
    sim_write_quarantine(sim, &id);
    return 0;
}

/* Specifications are asked for by what looks for allocs that have nothing else left (I-19). */
static int each_spec(void *ctx, const char *prefix, journal_blob_cb *cb, void *cb_ctx,
                     struct err *err)
{
    struct sim *sim = ctx;
    char key[JOURNAL_KEY_SIZE];

    (void)err;
    if (text_equal(prefix, "job/")) {
        sim_jobs_each(sim, cb, cb_ctx);
        return 0;
    }
    if (!text_equal(prefix, "alloc/"))
        return 0; /* worlds with jobs have no storage, and nobody in them has a token */
    for (int a = 0; a < sim->allocs_count; a++) {
        struct sim_alloc_state *alloc = &sim->allocs[a];
        if (!alloc->specified)
            continue;
        if (core_find(sim->core, &alloc->id) == NULL) {
            if (sim->incarnation > 1 && !alloc->damaged)
                sim_violate(sim, 19, "%s is specified, and there is no such alloc", alloc->id.text);
            alloc->damaged = 1;
        }
        (void)text_format(key, sizeof(key), "alloc/%s", alloc->id.text); /* fits */
        if (!cb(cb_ctx, key, "{}", 2))
            break;
    }
    return 0;
}

/* What was placed, for what decides about it again. */
static int spec_read(void *ctx, const char *key, char **ret_bytes, size_t *ret_length,
                     struct err *err)
{
    struct sim *sim = ctx;

    for (int a = 0; a < sim->allocs_count && text_starts_with(key, "alloc/"); a++) {
        const struct sim_alloc_state *alloc = &sim->allocs[a];
        if (alloc->spec == NULL || !text_equal(alloc->id.text, key + strlen("alloc/")))
            continue;
        *ret_bytes = malloc(alloc->spec_length + 1);
        check(*ret_bytes != NULL);
        memcpy(*ret_bytes, alloc->spec, alloc->spec_length);
        (*ret_bytes)[alloc->spec_length] = '\0';
        *ret_length = alloc->spec_length;
        return 0;
    }
    return err_set(err, ERR_GONE, "no %s", key);
}

static int each_bad_spec(void *ctx, journal_bad *bad, void *cb_ctx, struct err *err)
{
    (void)err;
    sim_jobs_each_bad(ctx, bad, cb_ctx);
    return 0;
}

struct store sim_store_of(struct sim *sim)
{
    return (struct store){
        .ctx = sim,
        .commit = commit,
        .first_sequence = first_sequence,
        .next_sequence = next_sequence,
        .each_record = each_record,
        .each_event = each_event,
        .base_read = base_read,
        .each_spec = each_spec,
        .each_bad_spec = each_bad_spec,
        .spec_read = spec_read,
        .quarantine = quarantine,
    };
}
