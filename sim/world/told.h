/* What is told of a world: its story, its hash, and what is kept in mind of it. */
#ifndef CAIRN_SIM_WORLD_TOLD_H
#define CAIRN_SIM_WORLD_TOLD_H

#include "sim/script/script.h"

struct sim;

enum { SIM_FACTS_MAX = 8192 }; /* kept in mind for what a story expects */

/* What happened, and in which incarnation. */
struct sim_noted {
    struct sim_fact fact;
    uint32_t incarnation;
};

struct sim_told {
    struct sim_noted *facts;
    size_t facts_count;
    bool stepped[SIM_STEPS_MAX], struck[SIM_FATES_MAX]; /* they have come about */
    struct sim_fate met[SIM_FATES_MAX];                 /* drawn or scripted; cut at the bound */
    size_t met_count;
};

void sim_say(struct sim *sim, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sim_mix(struct sim *sim, uint64_t value);
void sim_count_fault(struct sim *sim, enum sim_fault fault);
/* A call or commit meets a fate; what was met so far is kept, for shrinking. */
void sim_note_fate(struct sim *sim, const struct sim_fate *fate);

/* Keeps in mind that WHOM (NULL: nobody) did what the fact says, if a story expects something. */
void sim_fact(struct sim *sim, enum sim_fact_kind kind, const struct sim_whom *whom,
              unsigned detail);

#endif
