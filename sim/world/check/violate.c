/*
 * The end of a world in which something was violated: the first violation stands.
 */
#include "sim/world/check/check.h"
#include "sim/world/world.h"

#include <stdarg.h>
#include <stdio.h>

__attribute__((format(printf, 4, 0))) static void report(struct sim *sim, enum sim_outcome outcome,
                                                         unsigned invariant, const char *format,
                                                         va_list arguments)
{
    char text[SIM_VIOLATION_SIZE - 16];

    if (sim->over)
        return;
    sim->over = true;
    (void)vsnprintf(text, sizeof(text), format, arguments); /* cut if too long */
    sim->result->outcome = outcome;
    sim->result->invariant = (uint8_t)invariant;
    if (invariant == 0)
        (void)text_copy(sim->result->text, sizeof(sim->result->text), text); /* fits */
    else
        (void)text_format(sim->result->text, sizeof(sim->result->text), "I-%u: %s", invariant,
                          text); /* fits */
    sim_say(sim, "VIOLATED %s", sim->result->text);
}

void sim_violate(struct sim *sim, unsigned invariant, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    report(sim, SIM_SAFETY, invariant, format, arguments);
    va_end(arguments);
}

void sim_stuck(struct sim *sim, unsigned invariant, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    report(sim, SIM_LIVENESS, invariant, format, arguments);
    va_end(arguments);
}
