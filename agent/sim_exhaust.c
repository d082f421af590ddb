/*
 * Every crash point of a script.
 *
 * A run counts the points that each incarnation passes; then the script is run again with a crash
 * at each of them, and, for pairs, with a second crash at each point that the incarnation behind
 * the first one passes.  Of what a story expects, only what it expects always is judged.  Both
 * fates of the work under way are tried: it happens, or it does not.
 */
#include "agent/sim.h"

static bool run(struct sim *sim, const struct sim_script *script, struct sim_exhaustion *out)
{
    sim_run(sim, script, NULL, NULL, &out->result);
    out->runs++;
    if (out->result.outcome == SIM_FINE)
        return true;
    out->worst = *script;
    return false;
}

/* A second crash behind the one that SCRIPT has in the incarnation before NUMBER. */
static bool run_seconds(struct sim *sim, struct sim_script *script, int number,
                        struct sim_exhaustion *out)
{
    uint32_t points = out->result.points[number];

    for (uint32_t point = 1; point <= points; point++) {
        script->cuts[number] = (uint16_t)point;
        if (!run(sim, script, out))
            return false;
    }
    script->cuts[number] = 0;
    return true;
}

static bool run_firsts(struct sim *sim, const struct sim_script *base, bool pairs,
                       struct sim_exhaustion *out)
{
    struct sim_script script = *base;

    if (!run(sim, &script, out))
        return false;
    struct sim_result whole = out->result;
    for (int number = 0; number < SIM_CUTS_MAX && (uint32_t)number < whole.incarnations; number++) {
        if (base->cuts[number] != 0)
            continue; /* it has its crash already */
        for (uint32_t point = 1; point <= whole.points[number]; point++) {
            script.cuts[number] = (uint16_t)point;
            if (!run(sim, &script, out))
                return false;
            if (pairs && number + 1 < SIM_CUTS_MAX && base->cuts[number + 1] == 0 &&
                !run_seconds(sim, &script, number + 1, out))
                return false;
        }
        script.cuts[number] = 0;
    }
    return true;
}

void sim_exhaust(struct sim *sim, const struct sim_script *script, bool pairs,
                 struct sim_exhaustion *ret_exhaustion)
{
    struct sim_script tried = *script;

    tried.varied = 1;
    *ret_exhaustion = (struct sim_exhaustion){.runs = 0};
    for (uint8_t fate = 1; fate <= 2; fate++) {
        tried.fate_of_cut = fate;
        if (!run_firsts(sim, &tried, pairs, ret_exhaustion))
            return;
    }
}
