/*
 * What is told of a world: its story line by line, the hash of everything that happens, what has
 * come up how often, and the facts that a story's expectations are judged by.
 */
#include "sim/world/world.h"

#include <stdarg.h>
#include <stdio.h>

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
    if (sim->told.met_count < SIM_FATES_MAX)
        sim->told.met[sim->told.met_count++] = *fate;
}

void sim_fact(struct sim *sim, enum sim_fact_kind kind, const struct sim_whom *whom,
              unsigned detail)
{
    if (sim->script->expects_count == 0)
        return;
    check(sim->told.facts_count < SIM_FACTS_MAX);
    struct sim_noted *kept = &sim->told.facts[sim->told.facts_count++];
    *kept = (struct sim_noted){
        .fact = {.kind = (uint8_t)kind, .detail = (uint8_t)detail},
        .incarnation = sim->incarnation,
    };
    if (whom != NULL)
        kept->fact.whom = sim_role(sim, whom);
}
