/*
 * An older copy of the journal that is put back while the daemon is down.
 *
 * The world stays as it is: payloads, directories, and what a server or a user was told.  What the
 * simulator keeps in mind of the journal itself (who was dead, whose end was told, how often a task
 * was tried) is part of the copy and goes back with it: what the journal has forgotten may be told,
 * decided and done again.  Nothing else is excused, least of all two payloads of one task.
 */
#include "base/list.h"
#include "sim/world/world.h"

#include <stdlib.h>
#include <string.h>

static void forget_records(struct sim_copy *copy)
{
    for (size_t i = 0; i < copy->count; i++)
        free(copy->items[i].record);
    copy->count = 0;
}

static void *keep_array(void *old, const void *from, size_t count, size_t size)
{
    void *kept = realloc(old, (count + 1) * size);

    check(kept != NULL);
    if (count > 0)
        memcpy(kept, from, count * size);
    return kept;
}

void sim_older_copy(struct sim *sim)
{
    struct sim_copy *copy = &sim->copy;
    const struct sim_store *store = &sim->store;

    forget_records(copy);
    for (size_t i = 0; i < store->count; i++) {
        const struct sim_stored *item = store->items[i];
        struct sim_copied *copied = list_more(copy);
        *copied = (struct sim_copied){.id = item->id};
        if (item->damaged)
            continue;
        copied->record = malloc(item->size);
        check(copied->record != NULL);
        memcpy(copied->record, item->record, item->size);
    }
    copy->head = store->head;
    copy->allocs =
        keep_array(copy->allocs, sim->allocs, (size_t)sim->allocs_count, sizeof(*sim->allocs));
    copy->tasks =
        keep_array(copy->tasks, sim->tasks, (size_t)sim->tasks_count, sizeof(*sim->tasks));
    copy->told = realloc(copy->told, sim->attempts.count + 1);
    check(copy->told != NULL);
    for (size_t i = 0; i < sim->attempts.count; i++)
        copy->told[i] = sim->attempts.items[i].told;
    copy->attempts_count = sim->attempts.count;
    copy->made = true;
}

static void put_records(struct sim *sim)
{
    const struct sim_copy *copy = &sim->copy;

    while (sim->store.count > 0) {
        struct machine_id id = sim->store.items[0]->id;
        sim_store_drop(&sim->store, &id);
    }
    sim->store.head = copy->head;
    sim->first_sequence = copy->head.next_sequence;
    sim->first_turn = copy->head.turn;
    replay_clear(sim->replay);
    sim_history_reset(sim, copy->head.next_sequence);
    for (size_t i = 0; i < copy->count; i++) {
        const struct sim_copied *copied = &copy->items[i];
        sim_store_put(&sim->store, &copied->id, copied->record);
        if (copied->record == NULL)
            continue;
        replay_base(sim->replay, &copied->id, copied->record);
        sim_history_base(sim, &copied->id, copied->record);
    }
}

/* A user who wants something of it looks again whether it is so. */
static void put_alloc(struct sim *sim, int a)
{
    struct sim_alloc_state *alloc = &sim->allocs[a];
    const struct sim_alloc_state *then = &sim->copy.allocs[a];

    alloc->specified = then->specified;
    alloc->damaged = then->damaged; /* what has come over its records since is undone */
    alloc->ended_turn = then->ended_turn;
    alloc->accepted = then->accepted;
    alloc->ended = then->ended;
    alloc->unasked = then->unasked;
    alloc->gone = then->gone;
    alloc->fresh = then->fresh;
    alloc->asked_ms = then->asked_ms;
    alloc->checks_pass = then->checks_pass;
    alloc->follows = then->follows;
    alloc->offered_index = then->offered_index;
    alloc->seen_index = then->seen_index;
    alloc->pushed_digest = then->pushed_digest;
    alloc->pushed_revision = then->pushed_revision;
    alloc->confirmed_digest = then->confirmed_digest;
    alloc->acked_digest = then->acked_digest;
    alloc->older = 1;
    alloc->unknown = !sim_store_has(&sim->store, &alloc->id);
    if (!sim->script->server && alloc->wish != WISH_NONE)
        sim_later(sim, 0, SE_USER, (size_t)a, 0);
}

static void put_task(struct sim_task_state *task, const struct sim_task_state *then)
{
    task->dead = then->dead;
    task->hooked = then->hooked;
    task->prestarted = then->prestarted;
    task->tries = then->tries;
}

static void put_others(struct sim *sim)
{
    for (int c = 0; c < sim->claims_count; c++)
        sim->claims[c].made_turn = sim->claims[c].unstaging_turn = 0; /* long ago */
    for (int p = 0; p < sim->plugins_count; p++)
        sim->plugins[p].launched = 0; /* its numbers may be used again, too */
}

/* Their numbers may be used again, once nothing is left of them. */
static void put_attempt(struct sim *sim, size_t number)
{
    struct sim_attempt *attempt = &sim->attempts.items[number];

    attempt->told = number < sim->copy.attempts_count ? sim->copy.told[number] : 0;
    attempt->forgotten = 1;
    if (!sim_attempt_exists(attempt))
        sim_attempt_remove(attempt);
}

void sim_older_put(struct sim *sim)
{
    check(!sim->up);
    sim->copy.wanted = false;
    sim_say(sim, "the journal is the copy behind event %llu",
            (unsigned long long)sim->copy.head.next_sequence - 1);
    sim_mix(sim, sim->copy.head.next_sequence);
    put_records(sim);
    for (int a = 0; a < sim->allocs_count; a++)
        put_alloc(sim, a);
    for (int t = 0; t < sim->tasks_count; t++)
        put_task(&sim->tasks[t], &sim->copy.tasks[t]);
    put_others(sim);
    for (size_t i = 0; i < sim->attempts.count; i++)
        put_attempt(sim, i);
    sim->copy.was_put = true;
}

void sim_older_free(struct sim *sim)
{
    forget_records(&sim->copy);
    free(sim->copy.items);
    free(sim->copy.allocs);
    free(sim->copy.tasks);
    free(sim->copy.told);
}
