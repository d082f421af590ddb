/*
 * Every crash point of a script.
 *
 * A run counts the points that each incarnation passes; then the script is run again with a crash
 * at each of them, and, for pairs, with a second crash at each point that the incarnation behind
 * the first one passes.  Of what a story expects, only what it expects always is judged.  Both
 * fates of the work under way are tried where there is some: it happens, or it does not.
 */
#include "sim/start.h"

struct exhaustion {
    struct sim *sim;
    struct sim_script script; /* with the crashes that are tried now */
    struct sim_tally *tally;
    struct sim_result *result; /* of the newest run */
    bool pairs;
    uint64_t points_max; /* of one fate; 0: no bound */
    struct sim_reach reach;
};

typedef bool behind_run(struct exhaustion *all, int number);

/* Runs the script, and what is BEHIND it, in either fate; in one if that decides nothing: the world
 * of the other is the same then, and what is behind it may decide for itself. */
static bool run(struct exhaustion *all, behind_run *behind, int number)
{
    uint8_t given = all->script.fate_of_cut;

    for (uint8_t fate = given == 0 ? 1 : given; fate <= (given == 0 ? 2 : given); fate++) {
        all->script.fate_of_cut = fate;
        sim_run(all->sim, &all->script, NULL, NULL, all->result);
        sim_count(all->tally, all->result);
        if (all->result->outcome != SIM_FINE)
            return false;
        bool decided = all->result->decided > 0;
        if (!decided)
            all->script.fate_of_cut = given;
        if (behind != NULL && !behind(all, number))
            return false;
        if (!decided)
            break;
    }
    all->script.fate_of_cut = given;
    return true;
}

/* A second crash behind the one that the script has in the incarnation before NUMBER. */
static bool run_seconds(struct exhaustion *all, int number)
{
    uint32_t points = all->result->points[number];

    for (uint32_t point = 1; point <= points; point++) {
        all->script.cuts[number] = point;
        if (!run(all, NULL, 0))
            return false;
    }
    all->script.cuts[number] = 0;
    return true;
}

/* How far apart the points are that are tried. */
static uint32_t distance_of(struct exhaustion *all, const struct sim_result *whole)
{
    uint64_t points = 0;

    for (int number = 0; number < SIM_CUTS_MAX; number++)
        points += all->script.cuts[number] == 0 ? whole->points[number] : 0;
    all->reach.points += points;
    if (all->points_max == 0 || points <= all->points_max)
        return 1;
    return (uint32_t)((points + all->points_max - 1) / all->points_max);
}

static bool run_firsts(struct exhaustion *all, int unused)
{
    struct sim_result whole = *all->result;
    uint32_t distance = distance_of(all, &whole);

    (void)unused;
    for (int number = 0; number < SIM_CUTS_MAX; number++) {
        if (all->script.cuts[number] != 0)
            continue; /* it has its crash already */
        bool pairs = all->pairs && number + 1 < SIM_CUTS_MAX && all->script.cuts[number + 1] == 0;
        for (uint32_t point = 1; point <= whole.points[number]; point += distance) {
            all->script.cuts[number] = point;
            all->reach.tried++;
            if (!run(all, pairs ? run_seconds : NULL, number + 1))
                return false;
        }
        all->script.cuts[number] = 0;
    }
    return true;
}

static bool run_all(struct exhaustion *all, struct sim_script *script)
{
    all->script = *script;
    all->script.varied = 1;
    all->script.fate_of_cut = 0;
    if (run(all, run_firsts, 0))
        return true;
    *script = all->script;
    return false;
}

bool sim_exhaust(struct sim *sim, struct sim_script *script, bool pairs, struct sim_tally *tally,
                 struct sim_result *ret_result)
{
    struct exhaustion all = {.sim = sim, .tally = tally, .result = ret_result, .pairs = pairs};

    return run_all(&all, script);
}

bool sim_exhaust_start(struct sim *sim, struct sim_script *script, uint64_t points_max,
                       struct sim_tally *tally, struct sim_reach *ret_reach,
                       struct sim_result *ret_result)
{
    struct exhaustion all = {
        .sim = sim,
        .tally = tally,
        .result = ret_result,
        .points_max = points_max == 0 ? 0 : (points_max + 1) / 2,
    };

    bool fine = run_all(&all, script);
    *ret_reach = all.reach;
    return fine;
}
