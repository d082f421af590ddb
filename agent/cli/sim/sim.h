/* What the parts of `cairn sim` share. */
#ifndef CAIRN_AGENT_CLI_SIM_SIM_H
#define CAIRN_AGENT_CLI_SIM_SIM_H

#include "agent/cli/cli.h"
#include "sim/pool.h"
#include "sim/start.h"

/* What the flags ask for, and what it came to. */
struct laboratory {
    struct cli *cli;
    enum sim_profile profile; /* of worlds from seeds */
    bool shrink;
    uint64_t base;
    unsigned cores;
    uint8_t fate;                /* of work under way at a crash: 0 drawn, 1 happens, 2 does not */
    uint32_t cuts[SIM_CUTS_MAX]; /* crash points to be added */
    const char *from;            /* journal that worlds begin from, NULL: from nothing */
    struct sim_start *start;     /* and what is in it */
    struct sim_tally tally;
};

/* --- shared (part.c) --- */

extern const char *const cli_sim_away_flags[SIM_AWAY_COUNT];

void cli_sim_print_to(void *file, const char *text);

/* The script of a story of ours, or in a file; an exit status, said. */
int cli_sim_read_story(const char *name, struct sim_script *ret_script);

/* Prints what fails, made smaller, as a story. */
void cli_sim_shrink_and_print(struct sim *sim, struct sim_script *script,
                              struct sim_result *result);

/* --- many worlds (many.c, search.c); an exit status, said --- */

int cli_sim_run_seeds(struct laboratory *lab);
int cli_sim_run_stories(struct laboratory *lab);
int cli_sim_run_start(struct laboratory *lab);
int cli_sim_run_search(struct laboratory *lab);

#endif
