/*
 * Every crash point of a script.
 *
 * A run counts the points that each incarnation passes; then the script is run again with a crash
 * at each of them, and, for pairs, with a second crash at each point that the incarnation behind
 * the first one passes.  Of what a story expects, only what it expects always is judged.  Both
 * fates of the work under way are tried: it happens, or it does not.
 */
#include "agent/sim.h"

struct exhaustion {
    struct sim *sim;
    struct sim_script script; /* with the crashes that are tried now */
    struct sim_tally *tally;
    struct sim_result *result; /* of the newest run */
};

static bool run(struct exhaustion *all)
{
    sim_run(all->sim, &all->script, NULL, NULL, all->result);
    sim_count(all->tally, all->result);
    return all->result->outcome == SIM_FINE;
}

/* A second crash behind the one that the script has in the incarnation before NUMBER. */
static bool run_seconds(struct exhaustion *all, int number)
{
    uint32_t points = all->result->points[number];

    for (uint32_t point = 1; point <= points; point++) {
        all->script.cuts[number] = point;
        if (!run(all))
            return false;
    }
    all->script.cuts[number] = 0;
    return true;
}

static bool run_firsts(struct exhaustion *all, const struct sim_script *base, bool pairs)
{
    if (!run(all))
        return false;
    struct sim_result whole = *all->result;
    for (int number = 0; number < SIM_CUTS_MAX && (uint32_t)number < whole.incarnations; number++) {
        if (base->cuts[number] != 0)
            continue; /* it has its crash already */
        for (uint32_t point = 1; point <= whole.points[number]; point++) {
            all->script.cuts[number] = point;
            if (!run(all))
                return false;
            if (pairs && number + 1 < SIM_CUTS_MAX && base->cuts[number + 1] == 0 &&
                !run_seconds(all, number + 1))
                return false;
        }
        all->script.cuts[number] = 0;
    }
    return true;
}

bool sim_exhaust(struct sim *sim, struct sim_script *script, bool pairs, struct sim_tally *tally,
                 struct sim_result *ret_result)
{
    struct exhaustion all = {.sim = sim, .tally = tally, .result = ret_result};

    for (uint8_t fate = 1; fate <= 2; fate++) {
        all.script = *script;
        all.script.varied = 1;
        all.script.fate_of_cut = fate;
        if (!run_firsts(&all, script, pairs)) {
            *script = all.script;
            return false;
        }
    }
    return true;
}
