/*
 * Worlds that begin from a journal: `cairn sim --from DIR`.
 *
 * A journal of a daemon (live, stopped or a copy; it is only read) or of a simulated world is
 * loaded once.  Worlds then begin with these records in their journal and with a host that is as
 * the records say it may be: payloads and shims alive under the identities that were stored,
 * volumes claimed, staged and mounted, plugins up.  What a record leaves open (a start, a stop, a
 * mount under way) has happened or not, by the script's fate_of_cut or by its seed.  Then the
 * daemon starts, over the very code of a restart, and every checker goes on from there.
 *
 *     sim_start_load(path, &start, &err);
 *     sim_start_describe(start, print, ctx);
 *     sim_set_start(sim, start);
 *     script = sim_start_script(start, SIM_AWAY_NOTHING);
 *     sim_run(sim, &script, ...);                           one restart
 *     sim_exhaust_start(sim, &script, points_max, ...);     a crash at each point of it
 *     sim_start_draw(start, seed, &script); sim_run(...);   a life with faults
 *     sim_start_free(start);
 */
#ifndef CAIRN_SIM_START_H
#define CAIRN_SIM_START_H

#include "sim/sim.h"

struct sim_start;

/* Reads the journal that PATH names, as `cairn journal -dir PATH` would.  Damaged records do not
 * make it fail: worlds meet them as a restarted daemon would.  Errors: as of journal_locate and
 * journal_open; ERR_CORRUPT too when a daemon would refuse to start; ERR_LIMIT: it is too large. */
int sim_start_load(const char *path, struct sim_start **ret_start, struct err *err);
void sim_start_free(struct sim_start *start);

struct sim_start_figures {
    uint64_t sequence;                    /* of the newest event */
    uint64_t records[MACHINE_KIND_COUNT]; /* that can be read */
    uint64_t damaged;                     /* and that cannot */
    uint64_t payloads;                    /* that the records say are alive */
    bool server;                          /* a server decides, not the journal alone */
};
struct sim_start_figures sim_start_figures(const struct sim_start *start);

/* What there is, by kind and state, and what of it is damaged; some lines. */
void sim_start_describe(const struct sim_start *start, fsm_print *print, void *ctx);

/* The worlds of SIM begin from START, which is borrowed, until it is NULL again. */
void sim_set_start(struct sim *sim, const struct sim_start *start);

/* A restart, and nothing else. */
struct sim_script sim_start_script(const struct sim_start *start, enum sim_away away);

/* A restart and a life after it: crashes, faults, users, by SEED. */
void sim_start_draw(const struct sim_start *start, uint64_t seed, struct sim_script *ret_script);

/* As sim_exhaust, of a world that begins from SIM's start.  Of more than POINTS_MAX crash points
 * (0: no bound) those at even distances are taken; REACH says how many there were. */
struct sim_reach {
    uint64_t points, tried;
};
bool sim_exhaust_start(struct sim *sim, struct sim_script *script, uint64_t points_max,
                       struct sim_tally *tally, struct sim_reach *ret_reach,
                       struct sim_result *ret_result);

/* Who WHOM is, borrowed: sim_whom_id of its scripts. */
const struct machine_id *sim_start_id(const struct sim_start *start, const struct sim_whom *whom);

#endif
