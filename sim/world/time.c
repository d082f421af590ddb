/*
 * Chance, the story with its hash, and time.
 *
 * Chance is a hash of the seed and of what is drawn, never a stream: what one draw is for does not
 * hang on how many others there were.  What will happen is a heap ordered by (time, sequence).
 */
#include "sim/world/world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

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

/* --- the story and the hash --- */

void sim_mix(struct sim *sim, uint64_t value)
{
    sim->result->hash = hash_u64(sim->result->hash, value);
}

void sim_say(struct sim *sim, const char *format, ...)
{
    char line[640];
    va_list arguments;

    if (sim->print == NULL)
        return;
    int used =
        snprintf(line, sizeof(line), "%7llu.%03llu  ", (unsigned long long)(sim->now_ms / 1000),
                 (unsigned long long)(sim->now_ms % 1000));
    va_start(arguments, format);
    (void)vsnprintf(line + used, sizeof(line) - (size_t)used - 1, format, arguments); /* cut */
    va_end(arguments);
    (void)text_append(line, sizeof(line), "\n"); /* one byte was left for it */
    sim->print(sim->print_ctx, line);
}

void sim_count_fault(struct sim *sim, enum sim_fault fault)
{
    sim->result->faults[fault]++;
    sim_mix(sim, fault);
}

void sim_note_fate(struct sim *sim, const struct sim_fate *fate)
{
    if (sim->met_count < SIM_FATES_MAX)
        sim->met[sim->met_count++] = *fate;
}

void sim_fact(struct sim *sim, enum sim_fact_kind kind, const struct sim_whom *whom,
              unsigned detail)
{
    if (sim->script->expects_count == 0)
        return;
    check(sim->facts_count < SIM_FACTS_MAX);
    struct sim_noted *kept = &sim->facts[sim->facts_count++];
    *kept = (struct sim_noted){
        .fact = {.kind = (uint8_t)kind, .detail = (uint8_t)detail},
        .incarnation = sim->incarnation,
    };
    if (whom != NULL)
        kept->fact.whom = *whom;
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
        .sequence = ++sim->heap_sequence,
        .stamp = stamp,
        .index = (uint32_t)index,
        .kind = (uint8_t)kind,
    };

    check(index <= UINT32_MAX);
    if (sim->heap_count == sim->heap_room) {
        sim->heap_room = sim->heap_room == 0 ? 256 : sim->heap_room * 2;
        sim->heap = realloc(sim->heap, sim->heap_room * sizeof(*sim->heap));
        check(sim->heap != NULL);
    }
    size_t at = sim->heap_count++;
    while (at > 0 && is_before(&event, &sim->heap[(at - 1) / 2])) {
        sim->heap[at] = sim->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    sim->heap[at] = event;
}

struct sim_event sim_next(struct sim *sim)
{
    check(sim->heap_count > 0);
    struct sim_event first = sim->heap[0], last = sim->heap[--sim->heap_count];
    size_t at = 0;

    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= sim->heap_count)
            break;
        if (child + 1 < sim->heap_count && is_before(&sim->heap[child + 1], &sim->heap[child]))
            child++;
        if (!is_before(&sim->heap[child], &last))
            break;
        sim->heap[at] = sim->heap[child];
        at = child;
    }
    sim->heap[at] = last;
    return first;
}
