/*
 * `cairn sim`: the command line of the restore laboratory.
 *
 * One world is told (-seed, -story), or many are run on all cores (-exhaustive, -search, -seeds, in
 * this order and all of them if all are asked for), and what they covered is added up.  A failure
 * ends the run, prints the one command that shows it again, and is the exit status: 127 an
 * assertion, 128 something that never happens, 129 a broken invariant.
 */
#include "agent/cli/sim/sim.h"

#include "agent/laboratory.h"
#include "sim/cover.h"

#include "journal/journal.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* --- reading flags --- */

static int read_cuts(struct laboratory *lab, const char *text)
{
    char copy[128], *save = NULL;
    int count = 0;

    if (!text_copy(copy, sizeof(copy), text))
        return cli_fail(CLI_USAGE, "-die: the list is too long");
    for (char *word = strtok_r(copy, ",", &save); word != NULL; word = strtok_r(NULL, ",", &save)) {
        uint64_t point;
        if (!text_to_u64(word, &point) || point > UINT32_MAX || count == SIM_CUTS_MAX)
            return cli_fail(CLI_USAGE,
                            "-die takes up to %d numbers of crash points, for instance 0,17; "
                            "not \"%.60s\"",
                            SIM_CUTS_MAX, text);
        lab->cuts[count++] = (uint32_t)point;
    }
    return 0;
}

static int read_flags(struct laboratory *lab)
{
    struct timespec now;
    int64_t cores = sysconf(_SC_NPROCESSORS_ONLN), base = 0;
    const char *fate = cli_text(lab->cli, "fate", "drawn"), *die = cli_text(lab->cli, "die", NULL);

    (void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail for this clock */
    base = now.tv_sec;
    if (cli_number(lab->cli, "j", &cores) != 0 || cli_number(lab->cli, "base", &base) != 0)
        return CLI_USAGE;
    if (cores < 1 || cores > SIM_CORES_MAX)
        return cli_fail(CLI_USAGE, "-j takes a number of cores from 1 to %d", SIM_CORES_MAX);
    while (lab->fate < COUNT_OF(sim_cut_words) && !text_equal(sim_cut_words[lab->fate], fate))
        lab->fate++;
    if (lab->fate == COUNT_OF(sim_cut_words))
        return cli_fail(CLI_USAGE, "-fate is happens, not or drawn; not \"%.60s\"", fate);
    lab->base = (uint64_t)base;
    lab->cores = (unsigned)cores;
    if (cli_switch(lab->cli, "control"))
        lab->profile = SIM_CONTROL;
    else if (cli_switch(lab->cli, "large"))
        lab->profile = SIM_LARGE;
    lab->shrink = cli_switch(lab->cli, "shrink");
    return die == NULL ? 0 : read_cuts(lab, die);
}

static void apply_cuts(const struct laboratory *lab, struct sim_script *script)
{
    for (int i = 0; i < SIM_CUTS_MAX; i++) {
        if (lab->cuts[i] == 0)
            continue;
        script->cuts[i] = lab->cuts[i];
        script->varied = 1;
    }
    if (lab->fate == 0)
        return;
    script->fate_of_cut = lab->fate;
    script->varied = 1; /* as every run of -exhaustive, which prints this flag */
}

/* --- one world --- */

static void print_end(const struct sim_result *result, FILE *to)
{
    if (result->outcome != SIM_FINE)
        (void)fprintf(to, "\n%s\n", result->text);
    (void)fprintf(to,
                  "\n%s: %llu events in %llu turns, %u starts of the daemon, %.3f s of its time, "
                  "hash %016llx\n",
                  result->outcome == SIM_FINE ? "fine" : "failed",
                  (unsigned long long)result->events, (unsigned long long)result->turns,
                  result->incarnations, (double)result->simulated_ms / 1000,
                  (unsigned long long)result->hash);
}

/* The journal that a world writes; it must not be there yet. */
static int open_journal(const char *path, struct journal **ret_journal)
{
    struct err err = {0};

    if (access(path, F_OK) == 0)
        return cli_fail(CLI_FAILED, "%.200s is there already; -journal makes a new one", path);
    if (journal_open(path, JOURNAL_WRITE, ret_journal, &err) < 0)
        return cli_fail(CLI_FAILED, "%.200s: %s", path, err.text);
    return CLI_OK;
}

static int run_told(const struct laboratory *lab, struct sim *sim, struct sim_script *script)
{
    const char *path = cli_text(lab->cli, "journal", NULL);
    struct journal *journal = NULL;
    struct sim_result result;

    if (path != NULL && open_journal(path, &journal) != 0)
        return CLI_FAILED;
    sim_set_journal(sim, journal, 0);
    sim_run(sim, script, lab->shrink ? NULL : cli_sim_print_to, stdout, &result);
    sim_set_journal(sim, NULL, 0);
    if (journal != NULL)
        journal_close(journal);
    if (!lab->shrink)
        print_end(&result, stdout);
    else if (result.outcome == SIM_FINE)
        (void)printf("nothing fails: there is nothing to make smaller\n");
    else
        cli_sim_shrink_and_print(sim, script, &result);
    return (int)result.outcome;
}

/* Tells one world, or prints its script. */
static int tell(const struct laboratory *lab, struct sim_script *script)
{
    struct sim *sim = sim_new();
    int status = CLI_OK;

    apply_cuts(lab, script);
    sim_set_plane(sim, &laboratory_plane);
    sim_set_start(sim, lab->start);
    if (cli_switch(lab->cli, "script"))
        sim_script_print(script, cli_sim_print_to, stdout);
    else
        status = run_told(lab, sim, script);
    sim_free(sim);
    return status;
}

static int tell_seed(struct laboratory *lab)
{
    struct sim_script script;
    int64_t seed = 0;

    if (cli_number(lab->cli, "seed", &seed) != 0)
        return CLI_USAGE;
    if (lab->start != NULL)
        sim_start_draw(lab->start, (uint64_t)seed, &script);
    else
        sim_draw((uint64_t)seed, lab->profile, &script);
    return tell(lab, &script);
}

static int tell_story(struct laboratory *lab)
{
    struct sim_script script;
    int status = cli_sim_read_story(cli_text(lab->cli, "story", ""), &script);

    return status != 0 ? status : tell(lab, &script);
}

static int tell_restart(struct laboratory *lab)
{
    const char *word = cli_text(lab->cli, "away", "");
    struct sim_script script;
    unsigned away = 0;

    while (away < SIM_AWAY_COUNT && !text_equal(cli_sim_away_flags[away], word))
        away++;
    if (away == SIM_AWAY_COUNT)
        return cli_fail(CLI_USAGE, "-away is nothing, exits, reboot or drawn; not \"%.60s\"", word);
    script = sim_start_script(lab->start, (enum sim_away)away);
    return tell(lab, &script);
}

/* --- what there is --- */

static int list(void)
{
    struct cli_table table = {0};

    (void)printf("Stories\n");
    for (size_t i = 0; sim_story_name(i) != NULL; i++)
        cli_row(&table, cli_format("  %s", sim_story_name(i)), sim_story_about(sim_story_name(i)));
    cli_table_print(&table, stdout);
    (void)printf("\nFaults\n");
    for (unsigned i = 1; i < SIM_FAULT_COUNT; i++)
        cli_row(&table, cli_format("  %s", sim_fault_name(i)), sim_fault_what(i));
    cli_table_print(&table, stdout);
    (void)printf("\nShapes of a search\n");
    for (unsigned i = 0; i < SIM_SHAPE_COUNT; i++)
        cli_row(&table, cli_format("  %s", sim_shape_name((enum sim_shape)i)),
                sim_shape_about((enum sim_shape)i));
    cli_table_print(&table, stdout);
    (void)printf("\nBounds of a search\n");
    for (unsigned i = 0; i < SIM_BOUND_COUNT; i++)
        cli_row(&table, cli_format("  %s", sim_bound_name((enum sim_bound)i)),
                sim_bound_about((enum sim_bound)i));
    cli_table_print(&table, stdout);
    (void)printf("\nInvariants\n");
    for (unsigned i = 1; i <= 40; i++) {
        const struct sim_invariant *invariant = sim_invariant(i);
        cli_row(&table, cli_format("  I-%u", i), invariant->title,
                invariant->checked != NULL ? invariant->checked
                                           : cli_format("not here: %s", invariant->elsewhere));
    }
    cli_table_print(&table, stdout);
    return CLI_OK;
}

/* --- the verb --- */

/* What was covered by all that ran; not all of it need be. */
static int print_cover(struct laboratory *lab)
{
    bool strict = cli_switch(lab->cli, "rows");
    struct sim_cover cover = sim_cover_look(&lab->tally, strict ? cli_sim_print_to : NULL, stdout);
    unsigned met = 0, faults = SIM_FAULT_COUNT - 1;

    for (unsigned i = 1; i < SIM_FAULT_COUNT; i++)
        met += lab->tally.faults[i] > 0;
    (void)printf("covered: %u of %u rows of the tables (%u cannot be, for a reason that is known), "
                 "%u of %u faults\n",
                 cover.taken, cover.rows, cover.excused, met, faults);
    if (strict && cover.taken + cover.excused < cover.rows)
        return cli_fail(CLI_FAILED, "%u rows are neither taken nor excused",
                        cover.rows - cover.taken - cover.excused);
    return CLI_OK;
}

/* Flags that belong together. */
static int check_flags(const struct cli *cli)
{
    bool one = cli_text(cli, "seed", NULL) != NULL || cli_text(cli, "story", NULL) != NULL ||
               cli_text(cli, "away", NULL) != NULL;

    if (cli_text(cli, "away", NULL) != NULL && cli_text(cli, "from", NULL) == NULL)
        return cli_fail(CLI_USAGE, "-away says what happened before a restart: -from names the "
                                   "journal of it");
    if (cli_text(cli, "journal", NULL) != NULL && !one)
        return cli_fail(CLI_USAGE, "-journal is written by one world: by -seed or -story");
    if (cli_text(cli, "journal", NULL) != NULL && cli_text(cli, "from", NULL) != NULL)
        return cli_fail(CLI_USAGE, "-journal is written by a world that begins from nothing");
    if (cli_text(cli, "from", NULL) != NULL &&
        (cli_text(cli, "story", NULL) != NULL || cli_text(cli, "exhaustive", NULL) != NULL))
        return cli_fail(CLI_USAGE, "a story begins from nothing, not -from a journal");
    return CLI_OK;
}

static int run_many(struct laboratory *lab)
{
    bool stories = cli_text(lab->cli, "exhaustive", NULL) != NULL;
    bool seeds = cli_text(lab->cli, "seeds", NULL) != NULL;
    bool search = cli_text(lab->cli, "search", NULL) != NULL;
    int status = CLI_OK;

    if (lab->start != NULL)
        return cli_sim_run_start(lab);
    if (!stories && !seeds && !search)
        return cli_fail(CLI_USAGE, "nothing to do; for instance: cairn sim -seeds 10000; see: "
                                   "cairn sim -h");
    if (stories)
        status = cli_sim_run_stories(lab);
    if (status == CLI_OK && search)
        status = cli_sim_run_search(lab);
    if (status == CLI_OK && seeds)
        status = cli_sim_run_seeds(lab);
    return status == CLI_OK ? print_cover(lab) : status;
}

static int run_lab(struct laboratory *lab)
{
    if (cli_text(lab->cli, "seed", NULL) != NULL)
        return tell_seed(lab);
    if (cli_text(lab->cli, "story", NULL) != NULL)
        return tell_story(lab);
    if (cli_text(lab->cli, "away", NULL) != NULL)
        return tell_restart(lab);
    return run_many(lab);
}

static int run(struct cli *cli)
{
    struct laboratory lab = {.cli = cli, .from = cli_text(cli, "from", NULL)};
    struct err err = {0};
    int status = read_flags(&lab);

    if (status == CLI_OK)
        status = check_flags(cli);
    if (status != CLI_OK)
        return status;
    if (cli_switch(cli, "list"))
        return list();
    if (lab.from != NULL && sim_start_load(lab.from, &lab.start, &err) < 0)
        return cli_fail(CLI_FAILED, "%s", err.text);
    status = run_lab(&lab);
    if (lab.start != NULL)
        sim_start_free(lab.start);
    return status;
}

static const struct cli_flag flags[] = {
    {"seeds", FLAG_NUMBER, "N", "run N worlds, each drawn from a seed of its own"},
    {"base", FLAG_NUMBER, "SEED", "the first of these seeds; default: the time"},
    {"large", FLAG_SWITCH, NULL, "draw larger worlds: more allocs, more time, more trouble"},
    {"control", FLAG_SWITCH, NULL, "draw worlds with jobs, run by the stand-alone control plane"},
    {"exhaustive", FLAG_TEXT, "STORY", "run a story with a crash at every crash point; or all"},
    {"search", FLAG_TEXT, "SEARCH", "visit all reachable states within bounds; or all searches"},
    {"from", FLAG_TEXT, "JOURNAL", "begin from a node's journal, live, stopped or copied"},
    {"rows", FLAG_SWITCH, NULL, "list the rows that nothing took; fail if one has no reason"},
    {"j", FLAG_NUMBER, "CORES", "how many to use; default: all"},
    {"seed", FLAG_NUMBER, "SEED", "tell the world of one seed"},
    {"story", FLAG_TEXT, "STORY", "tell a story, by name or from a file"},
    {"away", FLAG_TEXT, "WORD", "-from: tell a restart after nothing, exits, reboot or drawn"},
    {"die", FLAG_TEXT, "POINTS", "add crashes: 0,17 is the second start's 17th crash point"},
    {"fate", FLAG_TEXT, "WORD", "work under way at a crash happens, does not, or is drawn"},
    {"shrink", FLAG_SWITCH, NULL, "print what fails as a story as small as possible"},
    {"script", FLAG_SWITCH, NULL, "print the world's script instead of running it"},
    {"journal", FLAG_TEXT, "DIR", "write the world's journal, for cairn journal to read"},
    {"list", FLAG_SWITCH, NULL, "list stories, faults, searches and invariants"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

const struct cli_verb cli_sim = {
    .group = "",
    .name = "sim",
    .arguments = "",
    .is_local = true,
    .summary = "Try restores and crashes in simulated worlds",
    .help =
        "  The daemon's own tables, turn and restore run against simulated servers, plugins,\n"
        "  processes, mounts, disks and clocks with every fault there is, and crash wherever a\n"
        "  crash can be.  After each turn the invariants are checked.  The same seed is always\n"
        "  the same world.  Nothing outside the process is touched.\n"
        "\n"
        "    $ cairn sim -seeds 20000\n"
        "    $ cairn sim -seed 4711\n"
        "    $ cairn sim -seed 4711 -shrink > found.story\n"
        "    $ cairn sim -story found.story\n"
        "    $ cairn sim -exhaustive all\n"
        "    $ cairn sim -seeds 20000 -control\n"
        "\n"
        "  -search lets one alloc with two tasks, a volume and a plugin do whatever can happen\n"
        "  next, as often as the bounds allow, and judges each state that can be reached.\n"
        "\n"
        "    $ cairn sim -search all\n"
        "    $ cairn sim -search leader,server,faults=2,crashes=2\n"
        "\n"
        "  -from tries this version on a node's journal, which is only read: restarts after\n"
        "  nothing, after all payloads have ended and after a reboot, crashes in each of them,\n"
        "  then as many lives with faults as -seeds says.\n"
        "\n"
        "    $ cairn sim -from /var/lib/cairn\n"
        "    $ cairn sim -from /var/lib/cairn -away reboot -die 9 -fate not\n"
        "\n"
        "  Exit status: 0 nothing failed, 1 it could not be done, 3 usage, 127 an assertion,\n"
        "  128 something that never happens, 129 an invariant is broken.",
    .flags = flags,
    .run = run,
};
