/*
 * Chance and time.
 *
 * Chance is a hash of the seed and of what is drawn, never a stream: what one draw is for does not
 * hang on how many others there were.  What will happen is a heap ordered by (time, sequence).
 */
#include "sim/world/world.h"

#include "base/list.h"

/* --- chance --- */

uint64_t sim_chance(const struct sim *sim, uint64_t what, uint64_t which, uint64_t nth)
{
    struct rng rng = rng_init(hash_u64(hash_u64(sim->script->seed, what << 56 | which), nth));

    return rng_next(&rng);
}

uint64_t sim_below(uint64_t chance, uint64_t bound)
{
    return (uint64_t)(((__uint128_t)chance * bound) >> 64);
}

/* --- time --- */

int64_t sim_unix_ns(const struct sim *sim)
{
    return ((int64_t)SIM_UNIX_BASE_S * 1000 + (int64_t)sim->now_ms + sim->jump_ms) * 1000000;
}

uint64_t sim_since_boot_ms(const struct sim *sim)
{
    return sim->now_ms - sim->boot_at_ms + sim->uptime_ms;
}

uint64_t sim_node_ms(const struct sim *sim)
{
    return sim_since_boot_ms(sim) + sim->clock_offset_ms;
}

static bool is_before(const struct sim_event *a, const struct sim_event *b)
{
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->sequence < b->sequence;
}

void sim_later(struct sim *sim, uint64_t delay_ms, enum sim_event_kind kind, size_t index,
               uint32_t stamp)
{
    struct sim_event event = {
        .at_ms = sim->now_ms + delay_ms,
        .sequence = ++sim->heap.sequence,
        .stamp = stamp,
        .index = (uint32_t)index,
        .kind = (uint8_t)kind,
    };

    check(index <= UINT32_MAX);
    (void)list_more(&sim->heap); /* the place is found below */
    size_t at = sim->heap.count - 1;
    while (at > 0 && is_before(&event, &sim->heap.items[(at - 1) / 2])) {
        sim->heap.items[at] = sim->heap.items[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    sim->heap.items[at] = event;
}

struct sim_event sim_next(struct sim *sim)
{
    check(sim->heap.count > 0);
    struct sim_event first = sim->heap.items[0], last = sim->heap.items[--sim->heap.count];
    size_t at = 0;

    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= sim->heap.count)
            break;
        if (child + 1 < sim->heap.count &&
            is_before(&sim->heap.items[child + 1], &sim->heap.items[child]))
            child++;
        if (!is_before(&sim->heap.items[child], &last))
            break;
        sim->heap.items[at] = sim->heap.items[child];
        at = child;
    }
    sim->heap.items[at] = last;
    return first;
}
