/*
 * `cairn sim` over many worlds: seeds, every crash point of stories, restarts from a journal.
 *
 * Each is a pool of items (sim/pool.h).  A failure prints the one command that shows it again.
 */
#include "agent/cli/sim/sim.h"

#include "agent/laboratory.h"

#include <string.h>
#include <time.h>

enum {
    PAIRS_POINTS_MAX = 64, /* a story is small if no incarnation passes more crash points */
    STALL_S = 60,
    /* A large node takes a fraction of a second for each world: what is tried of it by default. */
    START_MACHINES = 240000, /* machines times crash points of one restart */
    START_POINTS_MIN = 200,
    START_LIVES_MACHINES = 60000, /* machines times lives, unless -seeds says how many */
    START_LIVES_MIN = 50,
    START_LIVES_MAX = 1000,
    COMMAND_SIZE = 1024,
};

static double now_s(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail for this clock */
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Runs the pool's items and adds them to what was covered. */
static bool run_pool(struct laboratory *lab, const struct sim_pool *pool,
                     struct sim_tally *ret_tally, struct sim_failure *ret_failure,
                     double *ret_seconds)
{
    double begun_s = now_s();

    *ret_tally = (struct sim_tally){0};
    bool fine = sim_pool_run(pool, ret_tally, ret_failure);
    *ret_seconds = now_s() - begun_s;
    sim_tally_add(&lab->tally, ret_tally);
    return fine;
}

/* --- failures --- */

/* " -die 0,17 -fate not": the crashes of SCRIPT as flags. */
static void add_cuts(char command[COMMAND_SIZE], const struct sim_script *script)
{
    int last = SIM_CUTS_MAX - 1;
    char part[32];

    while (last >= 0 && script->cuts[last] == 0)
        last--;
    for (int i = 0; i <= last; i++) {
        (void)text_format(part, sizeof(part), "%s%u", i == 0 ? " -die " : ",",
                          script->cuts[i]);             /* fits */
        (void)text_append(command, COMMAND_SIZE, part); /* cut only for a very long path */
    }
    (void)text_append(command, COMMAND_SIZE, " -fate ");
    (void)text_append(command, COMMAND_SIZE, sim_cut_words[script->fate_of_cut]);
}

/* Says what failed, and the command that shows it again. */
static int report(const struct laboratory *lab, const struct sim_failure *failure,
                  const char *command)
{
    (void)fflush(stdout);
    (void)fprintf(stderr, "cairn: %s\n  show it:         cairn sim %s\n", failure->result.text,
                  command);
    if (!lab->shrink) {
        (void)fprintf(stderr, "  make it smaller: cairn sim %s -shrink\n", command);
    } else if (failure->has_run) {
        struct sim *sim = sim_new();
        struct sim_script script = failure->script;
        struct sim_result result = failure->result;
        sim_set_plane(sim, &laboratory_plane);
        sim_set_start(sim, lab->start);
        cli_sim_shrink_and_print(sim, &script, &result);
        sim_free(sim);
    }
    return (int)failure->result.outcome;
}

/* --- seeds --- */

static uint64_t machines_of(const struct sim_start *start)
{
    struct sim_start_figures figures = sim_start_figures(start);
    uint64_t machines = 0;

    for (int kind = 0; kind < MACHINE_KIND_COUNT; kind++)
        machines += figures.records[kind];
    return machines;
}

static int64_t lives_of(const struct sim_start *start)
{
    uint64_t lives = START_LIVES_MACHINES / (1 + machines_of(start));

    return lives < START_LIVES_MIN   ? START_LIVES_MIN
           : lives > START_LIVES_MAX ? START_LIVES_MAX
                                     : (int64_t)lives;
}

static bool run_seed(void *ctx, struct sim *sim, uint64_t item, struct sim_tally *tally,
                     struct sim_failure *ret_failure)
{
    const struct laboratory *lab = ctx;

    if (lab->start != NULL)
        sim_start_draw(lab->start, lab->base + item, &ret_failure->script);
    else
        sim_draw(lab->base + item, lab->profile, &ret_failure->script);
    sim_set_plane(sim, &laboratory_plane);
    sim_set_start(sim, lab->start);
    sim_run(sim, &ret_failure->script, NULL, NULL, &ret_failure->result);
    sim_count(tally, &ret_failure->result);
    return ret_failure->result.outcome == SIM_FINE;
}

static const char *const profile_flags[] = {
    [SIM_SMALL] = "",
    [SIM_LARGE] = " -large",
    [SIM_CONTROL] = " -control",
};

static const char *const profile_names[] = {
    [SIM_SMALL] = "",
    [SIM_LARGE] = " (large)",
    [SIM_CONTROL] = " (control)",
};

int cli_sim_run_seeds(struct laboratory *lab)
{
    struct sim_failure failure;
    struct sim_tally tally;
    int64_t count = lab->start != NULL ? lives_of(lab->start) : 0;
    double seconds;
    char command[COMMAND_SIZE];

    if (cli_number(lab->cli, "seeds", &count) != 0)
        return CLI_USAGE;
    struct sim_pool pool = {"seeds", (uint64_t)count, lab->cores, STALL_S, run_seed, lab};
    bool fine = run_pool(lab, &pool, &tally, &failure, &seconds);
    (void)printf("seeds: %llu worlds from base %llu%s in %.1f s, %.0f a second on %u cores; "
                 "%llu events, %llu starts of the daemon, %.1f days of their time; hash %016llx\n",
                 (unsigned long long)tally.runs, (unsigned long long)lab->base,
                 profile_names[lab->profile], seconds, (double)tally.runs / seconds, lab->cores,
                 (unsigned long long)tally.events, (unsigned long long)tally.incarnations,
                 (double)tally.simulated_ms / 86400000, (unsigned long long)tally.hash);
    if (fine)
        return CLI_OK;
    (void)text_format(command, sizeof(command), "%s%s%s-seed %llu%s",
                      lab->from != NULL ? "-from " : "", lab->from != NULL ? lab->from : "",
                      lab->from != NULL ? " " : "", (unsigned long long)(lab->base + failure.item),
                      profile_flags[lab->profile]); /* cut only for a very long path */
    return report(lab, &failure, command);
}

/* --- every crash point of stories --- */

/* Stories by number; a single one that was asked for by name is in LONE. */
struct stories {
    struct sim_script lone;
    const char *lone_name;
};

static bool is_small(const struct sim_result *result)
{
    for (int i = 0; i < SIM_CUTS_MAX; i++) {
        if (result->points[i] > PAIRS_POINTS_MAX)
            return false;
    }
    return true;
}

static bool exhaust_story(void *ctx, struct sim *sim, uint64_t item, struct sim_tally *tally,
                          struct sim_failure *ret_failure)
{
    const struct stories *stories = ctx;
    struct sim_script *script = &ret_failure->script;
    struct err err;

    sim_set_plane(sim, &laboratory_plane);
    *script = stories->lone;
    if (stories->lone_name == NULL &&
        sim_script_read(sim_story_text(sim_story_name(item)), script, &err) < 0) {
        ret_failure->result.outcome = SIM_ASSERTION; /* the tests read all of them */
        (void)text_copy(ret_failure->result.text, sizeof(ret_failure->result.text), err.text);
        return false;
    }
    sim_run(sim, script, NULL, NULL, &ret_failure->result);
    sim_count(tally, &ret_failure->result);
    return ret_failure->result.outcome == SIM_FINE &&
           sim_exhaust(sim, script, is_small(&ret_failure->result), tally, &ret_failure->result);
}

int cli_sim_run_stories(struct laboratory *lab)
{
    struct stories stories = {.lone_name = NULL};
    const char *name = cli_text(lab->cli, "exhaustive", "");
    struct sim_failure failure;
    struct sim_tally tally;
    size_t count = 1;
    double seconds;
    char command[COMMAND_SIZE];

    if (text_equal(name, "all")) {
        for (count = 0; sim_story_name(count) != NULL;)
            count++;
    } else {
        stories.lone_name = name;
        int status = cli_sim_read_story(name, &stories.lone);
        if (status != 0)
            return status;
    }
    struct sim_pool pool = {"stories", count, lab->cores, STALL_S, exhaust_story, &stories};
    bool fine = run_pool(lab, &pool, &tally, &failure, &seconds);
    (void)printf("stories: %zu, a crash at each crash point, pairs in the small ones: %llu worlds "
                 "in %.1f s; hash %016llx\n",
                 count, (unsigned long long)tally.runs, seconds, (unsigned long long)tally.hash);
    if (fine)
        return CLI_OK;
    (void)text_format(command, sizeof(command), "-story %s",
                      stories.lone_name != NULL ? name : sim_story_name(failure.item)); /* cut */
    if (failure.script.varied)
        add_cuts(command, &failure.script);
    return report(lab, &failure, command);
}

/* --- restarts from a journal --- */

static bool exhaust_start(void *ctx, struct sim *sim, uint64_t item, struct sim_tally *tally,
                          struct sim_failure *ret_failure)
{
    const struct laboratory *lab = ctx;
    uint64_t points_max = START_MACHINES / (1 + machines_of(lab->start));
    struct sim_reach reach;

    if (points_max < START_POINTS_MIN)
        points_max = START_POINTS_MIN;
    ret_failure->script = sim_start_script(lab->start, (enum sim_away)item);
    sim_set_plane(sim, &laboratory_plane);
    sim_set_start(sim, lab->start);
    bool fine = sim_exhaust_start(sim, &ret_failure->script, points_max, tally, &reach,
                                  &ret_failure->result);
    tally->points += reach.points;
    tally->tried += reach.tried;
    return fine;
}

static int run_restarts(struct laboratory *lab)
{
    static const char *const abouts[SIM_AWAY_DRAWN] = {
        [SIM_AWAY_NOTHING] = "a restart",
        [SIM_AWAY_EXITS] = "a restart after all payloads have ended",
        [SIM_AWAY_REBOOT] = "a restart after a reboot",
    };
    struct sim_failure failure;
    struct sim_tally tally;
    double seconds;
    char command[COMMAND_SIZE];
    struct sim_pool pool = {"restarts", SIM_AWAY_DRAWN, lab->cores, STALL_S, exhaust_start, lab};

    bool fine = run_pool(lab, &pool, &tally, &failure, &seconds);
    for (uint64_t i = 0; i < (fine ? (uint64_t)SIM_AWAY_DRAWN : failure.item); i++)
        (void)printf("%s, then with crashes in it: fine\n", abouts[i]);
    if (fine)
        (void)printf(
            "%llu restarts in %.1f s: at %llu of %llu crash points, with the work under way "
            "done and undone\n",
            (unsigned long long)tally.runs, seconds, (unsigned long long)tally.tried,
            (unsigned long long)tally.points);
    if (fine)
        return CLI_OK;
    (void)text_format(command, sizeof(command), "-from %s -away %s", lab->from,
                      cli_sim_away_flags[failure.item]); /* cut only for a very long path */
    add_cuts(command, &failure.script);
    (void)printf("%s: failed\n", abouts[failure.item]);
    return report(lab, &failure, command);
}

int cli_sim_run_start(struct laboratory *lab)
{
    sim_start_describe(lab->start, cli_sim_print_to, stdout);
    int status = run_restarts(lab);
    if (status == CLI_OK)
        status = cli_sim_run_seeds(lab);
    if (status == CLI_OK)
        (void)printf("this version restores this node: %llu machines\n",
                     (unsigned long long)machines_of(lab->start));
    else
        (void)printf("this version does not always restore this node: see above\n");
    return status;
}
