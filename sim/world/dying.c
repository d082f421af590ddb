/*
 * Where and how the daemon dies.  What becomes of what it had is world.c's.
 */
#include "sim/world/world.h"

void sim_die(struct sim *sim, uint64_t down_ms)
{
    if (!sim->up || sim->dying)
        return;
    sim->dying = true;
    sim->down_ms = down_ms;
}

bool sim_point(struct sim *sim, enum sim_fault kind)
{
    check(sim_fault_place(kind) == SIM_PLACE_POINT);
    if (sim->dying)
        return true;
    if (!sim->up || sim->healed)
        return false;
    sim->points++;
    uint32_t number = sim->incarnation - 1;
    if (number >= SIM_CUTS_MAX || sim->script->cuts[number] != sim->points)
        return false;
    sim_count_fault(sim, kind);
    sim_say(sim, "%s, point %u", sim_fault_name(kind), sim->points);
    sim_die(sim, sim->script->cut_down_ms);
    return true;
}
