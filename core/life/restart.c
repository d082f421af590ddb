/*
 * What a life does with the store it finds: every record as it was stored, those that cannot be
 * read into quarantine, then RESTORE to each (restore.c), then allocs of which nothing but the
 * specification is left.
 */
#include "core/life/part.h"
#include "core/lost.h"

#include <stdlib.h>

/* --- records --- */

/* One that could not be read. */
struct damaged {
    char table[16], key[JOURNAL_KEY_SIZE], reason[ERR_TEXT_SIZE];
};

struct loading {
    struct core *core;
    struct damaged *items;
    size_t count, size;
};

static bool load(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct loading *loading = ctx;

    core_load(loading->core, id, record);
    return true;
}

/* Noted during the walk, moved afterwards: the walk's read transaction must have ended. */
static void note_damaged(void *ctx, const char *table, const char *key, const void *bytes,
                         size_t length, const char *reason)
{
    struct damaged *damaged = list_more((struct loading *)ctx);

    (void)bytes; /* the quarantine reads them itself */
    (void)length;
    (void)text_copy(damaged->table, sizeof(damaged->table), table);    /* a short name */
    (void)text_copy(damaged->key, sizeof(damaged->key), key);          /* same size */
    (void)text_copy(damaged->reason, sizeof(damaged->reason), reason); /* cut if too long */
}

/* A damaged specification costs what needs it: a running payload does not. */
static int load_records(struct life *life, struct err *err)
{
    const struct store *store = &life->world.store;
    struct loading loading = {.core = life->core};
    int code = 0;

    for (int kind = 0; kind < MACHINE_KIND_COUNT && code == 0; kind++)
        code = store->each_record(store->ctx, (enum machine_kind)kind, load, note_damaged, &loading,
                                  err);
    if (code == 0)
        code = store->each_bad_spec(store->ctx, note_damaged, &loading, err);
    for (size_t i = 0; i < loading.count && code == 0; i++)
        code = life_set_aside(life, loading.items[i].table, loading.items[i].key,
                              loading.items[i].reason, err);
    free(loading.items);
    return code;
}

/* --- restore --- */

int life_each_spec(const struct life *life, const char *prefix, journal_blob_cb *cb, void *ctx,
                   struct err *err)
{
    const struct store *store = &life->world.store;

    return store->each_spec(store->ctx, prefix, cb, ctx, err);
}

int life_spec_aside(struct life *life, const char *key, const char *why, struct err *err)
{
    return life_set_aside(life, "spec", key, why, err);
}

int life_read_spec(const struct life *life, const char *key, char **ret_bytes, size_t *ret_length,
                   struct err *err)
{
    const struct store *store = &life->world.store;

    return store->spec_read(store->ctx, key, ret_bytes, ret_length, err);
}

int life_start(struct life *life, const struct life_start *how, struct err *err)
{
    const struct store *store = &life->world.store;
    check(!life->started);
    life->started = true;
    int code = load_records(life, err);
    if (code < 0)
        return code;
    check(store->next_sequence(store->ctx) > 0);
    core_continue(life->core, store->next_sequence(store->ctx), how->last_turn);
    uint64_t sequence = core_figures(life->core).sequence;
    life_index_begins(life, sequence > 0 ? sequence : 1); /* 0 is of who has seen nothing yet */
    if (life->control.load != NULL)
        code = life->control.load(life->control.ctx, err);
    if (code < 0)
        return code;
    size_t allocs = core_count(life->core, MACHINE_ALLOC);
    life->reported = core_count(life->core, MACHINE_TASK) == 0;
    if (allocs > 0)
        say(&life->world.say, SAY_INFO, "agent", "restoring allocs=%zu tasks=%zu rebooted=%s",
            allocs, core_count(life->core, MACHINE_TASK), how->rebooted ? "yes" : "no");
    core_restore(life->core, how->authority, how->rebooted);
    return lost_adopt(store, life->core, err);
}
