/*
 * Looking, and what is found wrong: what all files of the search ask for.
 */
#include "sim/search/part.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* --- the core --- */

unsigned search_who(const struct search *search, const struct machine_id *id)
{
    unsigned who = 0;

    while (!machine_id_equal(&search->ids[who], id)) {
        who++;
        check(who < WHO_COUNT);
    }
    return who;
}

void search_see(struct search *search)
{
    const struct core_snapshot *seen = &search->seen;

    core_save(search->core, &search->seen);
    memset(search->places, 0, sizeof(search->places));
    for (size_t i = 0; i < seen->machines.count; i++)
        search->places[search_who(search, &seen->machines.items[i].id)] = (uint8_t)(i + 1);
}

void search_put(struct search *search)
{
    core_put(search->core, &search->seen);
    search_see(search);
}

struct core_machine *search_machine(const struct search *search, unsigned who)
{
    unsigned place = search->places[who];

    return place == 0 ? NULL : &search->seen.machines.items[place - 1];
}

const struct machine *search_record(const struct search *search, unsigned who)
{
    const struct core_machine *machine = search_machine(search, who);

    return machine == NULL ? NULL : machine->record;
}

const struct lane *search_lane(const struct search *search, unsigned who, enum fsm_lane number)
{
    static const struct lane idle;
    const struct core_machine *machine = search_machine(search, who);

    return machine == NULL ? &idle : &machine->lanes[number];
}

/* --- the world --- */

struct search_attempt *search_attempt(struct search *search, unsigned task, uint32_t generation)
{
    for (unsigned i = 0; generation != 0 && i < SEARCH_ATTEMPTS; i++) {
        struct search_attempt *attempt = &search->world.tasks[task].attempts[i];
        if (attempt->generation == generation)
            return attempt;
    }
    return NULL;
}

bool search_exists(const struct search_attempt *attempt)
{
    return attempt->begun || attempt->payload == PAYLOAD_LIVES ||
           attempt->shim == SHIM_IS_STARTING || attempt->shim == SHIM_IS_ALIVE;
}

bool search_alloc_lives(const struct search *search)
{
    for (unsigned t = 0; t < SEARCH_TASKS; t++) {
        for (unsigned i = 0; i < SEARCH_ATTEMPTS; i++) {
            if (search->world.tasks[t].attempts[i].payload == PAYLOAD_LIVES)
                return true;
        }
    }
    return false;
}

/* --- violations --- */

void search_violate(struct search *search, enum sim_outcome outcome, unsigned invariant,
                    const char *format, ...)
{
    char text[SIM_VIOLATION_SIZE - 16];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments); /* cut if too long */
    va_end(arguments);
    search->asked->outcome = outcome;
    search->asked->invariant = (uint8_t)invariant;
    (void)text_format(search->asked->text, sizeof(search->asked->text), "I-%u: %s", invariant,
                      text);
    longjmp(search->failed, 1);
}
