/*
 * Every crash point of a script.
 *
 * A run counts the points that each incarnation passes; then the script is run again with a crash
 * at each of them, and, for pairs, with a second crash at each point that the incarnation behind
 * the first one passes.  Both fates of the work under way are tried: it happens, or it does not.
 */
#include "agent/sim_start.h"

struct exhausting {
    struct sim *sim;
    bool pairs;
    uint64_t runs_max; /* of one fate, 0: no bound */
    struct sim_exhaustion *out;
};

static bool run(struct exhausting *exhausting, const struct sim_script *script)
{
    struct sim_exhaustion *out = exhausting->out;

    sim_run(exhausting->sim, script, NULL, NULL, &out->result);
    out->runs++;
    if (out->result.outcome == SIM_FINE)
        return true;
    out->worst = *script;
    return false;
}

/* A second crash behind the one that SCRIPT has in the incarnation before NUMBER. */
static bool run_seconds(struct exhausting *exhausting, struct sim_script *script, int number)
{
    uint32_t points = exhausting->out->result.cuttable[number];

    for (uint32_t point = 1; point <= points; point++) {
        script->cuts[number] = point;
        if (!run(exhausting, script))
            return false;
    }
    script->cuts[number] = 0;
    return true;
}

/* How far apart the points are that are tried. */
static uint32_t distance_of(const struct exhausting *exhausting, const struct sim_script *base,
                            const struct sim_result *whole)
{
    uint64_t points = 0;

    for (int number = 0; number < SIM_CUTS_MAX; number++)
        points += base->cuts[number] == 0 ? whole->cuttable[number] : 0;
    exhausting->out->points += points;
    if (exhausting->runs_max == 0 || points <= exhausting->runs_max)
        return 1;
    return (uint32_t)((points + exhausting->runs_max - 1) / exhausting->runs_max);
}

static bool run_firsts(struct exhausting *exhausting, const struct sim_script *base)
{
    struct sim_script script = *base;

    if (!run(exhausting, &script))
        return false;
    struct sim_result whole = exhausting->out->result;
    uint32_t distance = distance_of(exhausting, base, &whole);
    for (int number = 0; number < SIM_CUTS_MAX; number++) {
        if (base->cuts[number] != 0)
            continue; /* it has its crash already */
        for (uint32_t point = 1; point <= whole.cuttable[number]; point += distance) {
            script.cuts[number] = point;
            exhausting->out->tried++;
            if (!run(exhausting, &script))
                return false;
            if (exhausting->pairs && number + 1 < SIM_CUTS_MAX && base->cuts[number + 1] == 0 &&
                !run_seconds(exhausting, &script, number + 1))
                return false;
        }
        script.cuts[number] = 0;
    }
    return true;
}

static void run_fates(struct exhausting *exhausting, const struct sim_script *script)
{
    struct sim_script tried = *script;

    *exhausting->out = (struct sim_exhaustion){.runs = 0};
    for (uint8_t fate = 1; fate <= 2; fate++) {
        tried.fate_of_cut = fate;
        if (!run_firsts(exhausting, &tried))
            return;
    }
}

void sim_exhaust(struct sim *sim, const struct sim_script *script, bool pairs,
                 struct sim_exhaustion *ret_exhaustion)
{
    struct exhausting exhausting = {.sim = sim, .pairs = pairs, .out = ret_exhaustion};

    run_fates(&exhausting, script);
}

void sim_exhaust_start(struct sim *sim, const struct sim_script *script, uint64_t runs_max,
                       struct sim_exhaustion *ret_exhaustion)
{
    struct exhausting exhausting = {
        .sim = sim,
        .runs_max = runs_max == 0 ? 0 : (runs_max + 1) / 2,
        .out = ret_exhaustion,
    };

    run_fates(&exhausting, script);
}
