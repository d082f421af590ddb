/*
 * Every crash point of a script.
 *
 * A run counts the points that each incarnation passes; then the script is run again with a crash
 * at each of them, and, for pairs, with a second crash at each point that the incarnation behind
 * the first one passes.  Of what a story expects, only what it expects always is judged.  Both
 * fates of the work under way are tried: it happens, or it does not.
 */
#include "agent/sim_start.h"

struct exhaustion {
    struct sim *sim;
    struct sim_script script; /* with the crashes that are tried now */
    struct sim_tally *tally;
    struct sim_result *result; /* of the newest run */
    uint64_t runs_max;         /* of one fate, about; 0: no bound */
    struct sim_sample *sample; /* NULL: nobody asks */
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

/* How far apart the points are that are tried. */
static uint32_t distance_of(const struct exhaustion *all, const struct sim_script *base)
{
    uint64_t points = 0;

    for (int number = 0; number < SIM_CUTS_MAX; number++)
        points += base->cuts[number] == 0 ? all->result->points[number] : 0;
    if (all->sample != NULL)
        all->sample->points += points;
    if (all->runs_max == 0 || points <= all->runs_max)
        return 1;
    return (uint32_t)((points + all->runs_max - 1) / all->runs_max);
}

static bool run_firsts(struct exhaustion *all, const struct sim_script *base, bool pairs)
{
    if (!run(all))
        return false;
    struct sim_result whole = *all->result;
    uint32_t distance = distance_of(all, base);
    for (int number = 0; number < SIM_CUTS_MAX && (uint32_t)number < whole.incarnations; number++) {
        if (base->cuts[number] != 0)
            continue; /* it has its crash already */
        for (uint32_t point = 1; point <= whole.points[number]; point += distance) {
            all->script.cuts[number] = point;
            if (all->sample != NULL)
                all->sample->tried++;
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

static bool run_fates(struct exhaustion *all, struct sim_script *script, bool pairs)
{
    for (uint8_t fate = 1; fate <= 2; fate++) {
        all->script = *script;
        all->script.varied = 1;
        all->script.fate_of_cut = fate;
        if (!run_firsts(all, script, pairs)) {
            *script = all->script;
            return false;
        }
    }
    return true;
}

bool sim_exhaust(struct sim *sim, struct sim_script *script, bool pairs, struct sim_tally *tally,
                 struct sim_result *ret_result)
{
    struct exhaustion all = {.sim = sim, .tally = tally, .result = ret_result};

    return run_fates(&all, script, pairs);
}

bool sim_exhaust_start(struct sim *sim, struct sim_script *script, uint64_t runs_max,
                       struct sim_tally *tally, struct sim_sample *ret_sample,
                       struct sim_result *ret_result)
{
    struct exhaustion all = {
        .sim = sim,
        .tally = tally,
        .result = ret_result,
        .runs_max = runs_max == 0 ? 0 : (runs_max + 1) / 2,
        .sample = ret_sample,
    };

    *ret_sample = (struct sim_sample){.points = 0};
    return run_fates(&all, script, false);
}
