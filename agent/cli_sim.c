/*
 * `cairn sim`: the command line of the restore laboratory.
 *
 * One world is told (-seed, -story), or many are run on all cores (-exhaustive, -search, -seeds, in
 * this order and all of them if all are asked for), and what they covered is added up.  A failure
 * ends the run, prints the one command that shows it again, and is the exit status: 127 an
 * assertion, 128 something that never happens, 129 a broken invariant.
 */
#include "agent/cli.h"
#include "agent/sim_cover.h"
#include "agent/sim_pool.h"

#include "io/host.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    STORY_BYTES_MAX = 256 * 1024,
    PAIRS_POINTS_MAX = 64, /* a story is small if no incarnation passes more crash points */
    STALL_S = 60,
};

/* What the flags ask for. */
struct laboratory {
    struct cli *cli;
    bool large, shrink;
    uint64_t base;
    unsigned cores;
    uint8_t fate;
    uint32_t cuts[SIM_CUTS_MAX];
    struct sim_tally tally;
};

static void print_to(void *ctx, const char *text)
{
    (void)fputs(text, ctx);
}

static double now_s(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail for this clock */
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* --- reading flags --- */

static const char *const fate_words[] = {"drawn", "happens", "not"};

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
    while (lab->fate < COUNT_OF(fate_words) && !text_equal(fate_words[lab->fate], fate))
        lab->fate++;
    if (lab->fate == COUNT_OF(fate_words))
        return cli_fail(CLI_USAGE, "-fate is happens, not or drawn; not \"%.60s\"", fate);
    lab->base = (uint64_t)base;
    lab->cores = (unsigned)cores;
    lab->large = cli_switch(lab->cli, "large");
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
    if (lab->fate != 0)
        script->fate_of_cut = lab->fate;
}

/* The script of a story of ours, or in a file. */
static int read_story(const char *name, struct sim_script *ret_script)
{
    const char *text = sim_story_text(name);
    char *bytes = NULL;
    size_t length = 0;
    struct err err = {0};

    if (text == NULL) {
        if (strchr(name, '/') == NULL && access(name, R_OK) != 0)
            return cli_fail(CLI_FAILED,
                            "there is no story and no file \"%.200s\"; cairn sim -list names the "
                            "stories",
                            name);
        if (file_read(name, STORY_BYTES_MAX, &bytes, &length, &err) < 0)
            return cli_fail(CLI_FAILED, "%s", err.text);
        text = bytes;
    }
    int code = sim_script_read(text, ret_script, &err);
    free(bytes);
    return code < 0 ? cli_fail(CLI_FAILED, "%.200s: %s", name, err.text) : 0;
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

/* Makes what failed smaller and prints it as a story. */
static void shrink_and_print(struct sim *sim, struct sim_script *script, struct sim_result *result)
{
    sim_shrink(sim, script, result);
    (void)printf("# %s\n", result->text);
    sim_script_print(script, print_to, stdout);
}

static int tell(const struct laboratory *lab, struct sim_script *script)
{
    struct sim *sim = sim_new();
    struct sim_result result;

    apply_cuts(lab, script);
    if (cli_switch(lab->cli, "script")) {
        sim_script_print(script, print_to, stdout);
        sim_free(sim);
        return CLI_OK;
    }
    sim_run(sim, script, lab->shrink ? NULL : print_to, stdout, &result);
    if (!lab->shrink)
        print_end(&result, stdout);
    else if (result.outcome == SIM_FINE)
        (void)printf("nothing fails: there is nothing to make smaller\n");
    else
        shrink_and_print(sim, script, &result);
    sim_free(sim);
    return (int)result.outcome;
}

static int tell_seed(struct laboratory *lab)
{
    struct sim_script script;
    int64_t seed = 0;

    if (cli_number(lab->cli, "seed", &seed) != 0)
        return CLI_USAGE;
    sim_draw((uint64_t)seed, lab->large ? SIM_LARGE : SIM_SMALL, &script);
    return tell(lab, &script);
}

static int tell_story(struct laboratory *lab)
{
    struct sim_script script;
    int status = read_story(cli_text(lab->cli, "story", ""), &script);

    return status != 0 ? status : tell(lab, &script);
}

/* --- many worlds --- */

/* Says what failed in ITEM, and the command that shows it again. */
static int report(const struct laboratory *lab, const struct sim_failure *failure,
                  const char *command)
{
    (void)fflush(stdout);
    (void)fprintf(stderr, "cairn: %s\n  show it:         cairn sim %s\n", failure->result.text,
                  command);
    if (!lab->shrink) {
        (void)fprintf(stderr, "  make it smaller: cairn sim %s -shrink\n", command);
    } else if (failure->script.allocs_count > 0) {
        struct sim *sim = sim_new();
        struct sim_script script = failure->script;
        struct sim_result result = failure->result;
        shrink_and_print(sim, &script, &result);
        sim_free(sim);
    }
    return (int)failure->result.outcome;
}

static bool run_seed(void *ctx, struct sim *sim, uint64_t item, struct sim_tally *tally,
                     struct sim_failure *ret_failure)
{
    const struct laboratory *lab = ctx;

    sim_draw(lab->base + item, lab->large ? SIM_LARGE : SIM_SMALL, &ret_failure->script);
    sim_run(sim, &ret_failure->script, NULL, NULL, &ret_failure->result);
    sim_count(tally, &ret_failure->result);
    return ret_failure->result.outcome == SIM_FINE;
}

static int run_seeds(struct laboratory *lab)
{
    struct sim_failure failure;
    struct sim_tally tally = {0};
    int64_t count = 0;

    if (cli_number(lab->cli, "seeds", &count) != 0)
        return CLI_USAGE;
    struct sim_pool pool = {"seeds", (uint64_t)count, lab->cores, STALL_S, run_seed, lab};
    double begun_s = now_s();
    bool fine = sim_pool_run(&pool, &tally, &failure);
    double seconds = now_s() - begun_s;
    (void)printf("seeds: %llu worlds from base %llu%s in %.1f s, %.0f a second on %u cores; "
                 "%llu events, %llu starts of the daemon, %.1f days of their time; hash %016llx\n",
                 (unsigned long long)tally.runs, (unsigned long long)lab->base,
                 lab->large ? " (large)" : "", seconds, (double)tally.runs / seconds, lab->cores,
                 (unsigned long long)tally.events, (unsigned long long)tally.incarnations,
                 (double)tally.simulated_ms / 86400000, (unsigned long long)tally.hash);
    sim_tally_add(&lab->tally, &tally);
    if (fine)
        return CLI_OK;
    char command[64];
    (void)text_format(command, sizeof(command), "-seed %llu%s",
                      (unsigned long long)(lab->base + failure.item),
                      lab->large ? " -large" : ""); /* fits */
    return report(lab, &failure, command);
}

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
    struct sim_script script = stories->lone;
    struct err err;

    if (stories->lone_name == NULL &&
        sim_script_read(sim_story_text(sim_story_name(item)), &script, &err) < 0) {
        ret_failure->result.outcome = SIM_ASSERTION;
        (void)text_copy(ret_failure->result.text, sizeof(ret_failure->result.text), err.text);
        return false;
    }
    sim_run(sim, &script, NULL, NULL, &ret_failure->result);
    bool fine = ret_failure->result.outcome == SIM_FINE;
    bool pairs = is_small(&ret_failure->result);
    if (fine)
        fine = sim_exhaust(sim, &script, pairs, tally, &ret_failure->result);
    if (!fine)
        ret_failure->script = script;
    return fine;
}

static int run_exhaustive(struct laboratory *lab)
{
    struct stories stories = {.lone_name = NULL};
    const char *name = cli_text(lab->cli, "exhaustive", "");
    struct sim_failure failure;
    struct sim_tally tally = {0};
    size_t count = 1;

    if (text_equal(name, "all")) {
        for (count = 0; sim_story_name(count) != NULL;)
            count++;
    } else {
        stories.lone_name = name;
        int status = read_story(name, &stories.lone);
        if (status != 0)
            return status;
    }
    struct sim_pool pool = {"stories", count, lab->cores, STALL_S, exhaust_story, &stories};
    double begun_s = now_s();
    bool fine = sim_pool_run(&pool, &tally, &failure);
    (void)printf("stories: %zu, every crash point, pairs of the small ones: %llu worlds in %.1f s; "
                 "hash %016llx\n",
                 count, (unsigned long long)tally.runs, now_s() - begun_s,
                 (unsigned long long)tally.hash);
    sim_tally_add(&lab->tally, &tally);
    if (fine)
        return CLI_OK;
    const uint32_t *cuts = failure.script.cuts;
    char command[256];
    (void)text_format(command, sizeof(command), "-story %s",
                      stories.lone_name != NULL ? name : sim_story_name(failure.item));
    for (int i = 0; i < SIM_CUTS_MAX; i++) {
        char part[32];
        bool more = false;
        for (int j = i; j < SIM_CUTS_MAX; j++)
            more |= cuts[j] != 0;
        if (!more)
            break;
        (void)text_format(part, sizeof(part), "%s%u", i == 0 ? " -die " : ",", cuts[i]); /* fits */
        (void)text_append(command, sizeof(command), part); /* cut only for a very long path */
    }
    (void)text_append(command, sizeof(command), " -fate ");
    (void)text_append(command, sizeof(command), fate_words[failure.script.fate_of_cut % 3]);
    return report(lab, &failure, command);
}

/* --- what there is --- */

static int list(void)
{
    struct cli_table table = {0};

    (void)printf("Stories\n");
    for (size_t i = 0; sim_story_name(i) != NULL; i++)
        cli_row(&table, "", sim_story_name(i), sim_story_about(sim_story_name(i)));
    cli_table_print(&table, stdout);
    (void)printf("\nFaults\n");
    for (unsigned i = 1; i < SIM_FAULT_COUNT; i++)
        cli_row(&table, "", sim_fault_name(i), sim_fault_what(i));
    cli_table_print(&table, stdout);
    (void)printf("\nInvariants\n");
    for (unsigned i = 1; i <= 40; i++) {
        const struct sim_invariant *invariant = sim_invariant(i);
        cli_row(&table, "", cli_format("I-%u", i), invariant->title,
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
    struct sim_cover cover = sim_cover_look(&lab->tally, strict ? print_to : NULL, stdout);
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

static int run(struct cli *cli)
{
    struct laboratory lab = {.cli = cli};
    int status = read_flags(&lab);

    if (status != 0)
        return status;
    if (cli_switch(cli, "list"))
        return list();
    if (cli_text(cli, "seed", NULL) != NULL)
        return tell_seed(&lab);
    if (cli_text(cli, "story", NULL) != NULL)
        return tell_story(&lab);
    bool stories = cli_text(cli, "exhaustive", NULL) != NULL;
    bool seeds = cli_text(cli, "seeds", NULL) != NULL;
    if (!stories && !seeds)
        return cli_fail(CLI_USAGE, "nothing to do; for instance: cairn sim -seeds 10000; see: "
                                   "cairn sim -h");
    if (status == 0 && stories)
        status = run_exhaustive(&lab);
    if (status == 0 && seeds)
        status = run_seeds(&lab);
    return status == 0 ? print_cover(&lab) : status;
}

static const struct cli_flag flags[] = {
    {"seeds", FLAG_NUMBER, "N", "run N worlds, each drawn from a seed of its own"},
    {"base", FLAG_NUMBER, "SEED", "the first of these seeds; default: the time"},
    {"large", FLAG_SWITCH, NULL, "draw larger worlds: more allocs, more time, more trouble"},
    {"exhaustive", FLAG_TEXT, "STORY", "run a story with a crash at every crash point; or all"},
    {"rows", FLAG_SWITCH, NULL, "list the rows that nothing took; fail if one has no reason"},
    {"j", FLAG_NUMBER, "CORES", "how many to use; default: all"},
    {"seed", FLAG_NUMBER, "SEED", "tell the world of one seed"},
    {"story", FLAG_TEXT, "STORY", "tell a story, by name or from a file"},
    {"die", FLAG_TEXT, "POINTS", "add crashes: 0,17 is the second start's 17th crash point"},
    {"fate", FLAG_TEXT, "WORD", "work under way at a crash happens, does not, or is drawn"},
    {"shrink", FLAG_SWITCH, NULL, "print what fails as a story as small as possible"},
    {"script", FLAG_SWITCH, NULL, "print the world's script instead of running it"},
    {"list", FLAG_SWITCH, NULL, "list stories, faults and invariants"},
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
        "\n"
        "  Exit status: 0 nothing failed, 1 it could not be done, 3 usage, 127 an assertion,\n"
        "  128 something that never happens, 129 an invariant is broken.",
    .flags = flags,
    .run = run,
};
