/*
 * Making a failing script smaller.
 *
 * First all that was drawn is written down (which call met which fault), so that nothing hangs on
 * chance any more; then everything that can be left out is left out, one after the other, for as
 * long as the same invariant is violated.  What remains is a story.
 */
#include "sim/world/world.h"

#include <string.h>

struct shrinking {
    struct sim *sim;
    struct sim_script *best;
    struct sim_result *result; /* of the best one */
    struct sim_script trial;
    bool smaller; /* something could be left out in this round */
};

static bool same_failure(const struct sim_result *a, const struct sim_result *b)
{
    if (a->outcome != b->outcome || a->invariant != b->invariant)
        return false;
    bool by_words = a->outcome == SIM_ASSERTION || a->invariant == 0;
    return !by_words || text_equal(a->text, b->text);
}

/* Keeps the trial if it fails in the same way. */
static bool keep(struct shrinking *shrinking)
{
    struct sim_result result;

    if (memcmp(&shrinking->trial, shrinking->best, sizeof(shrinking->trial)) == 0)
        return false;
    sim_run(shrinking->sim, &shrinking->trial, NULL, NULL, &result);
    if (!same_failure(&result, shrinking->result))
        return false;
    *shrinking->best = shrinking->trial;
    *shrinking->result = result;
    shrinking->smaller = true;
    return true;
}

static struct sim_script *again(struct shrinking *shrinking)
{
    shrinking->trial = *shrinking->best;
    return &shrinking->trial;
}

/* --- what was drawn becomes a list --- */

static void write_down(struct shrinking *shrinking)
{
    struct sim *sim = shrinking->sim;
    struct sim_result result;

    sim_run(sim, shrinking->best, NULL, NULL, &result);
    struct sim_script *trial = again(shrinking);
    memset(trial->rates, 0, sizeof(trial->rates));
    memcpy(trial->fates, sim->told.met, sim->told.met_count * sizeof(*sim->told.met));
    trial->fates_count = (uint8_t)sim->told.met_count;
    (void)keep(shrinking); /* if the list was cut it may not fail any more */
}

/* --- leaving out --- */

static void drop_step(struct sim_script *script, unsigned at)
{
    memmove(&script->steps[at], &script->steps[at + 1],
            (script->steps_count - at - 1u) * sizeof(script->steps[0]));
    script->steps_count--;
    memset(&script->steps[script->steps_count], 0, sizeof(script->steps[0]));
}

static void drop_fate(struct sim_script *script, unsigned at)
{
    memmove(&script->fates[at], &script->fates[at + 1],
            (script->fates_count - at - 1u) * sizeof(script->fates[0]));
    script->fates_count--;
    memset(&script->fates[script->fates_count], 0, sizeof(script->fates[0]));
}

static void drop_expect(struct sim_script *script, unsigned at)
{
    memmove(&script->expects[at], &script->expects[at + 1],
            (script->expects_count - at - 1u) * sizeof(script->expects[0]));
    script->expects_count--;
    memset(&script->expects[script->expects_count], 0, sizeof(script->expects[0]));
}

static void leave_out_expects(struct shrinking *shrinking)
{
    for (unsigned i = shrinking->best->expects_count; i > 0; i--) {
        drop_expect(again(shrinking), i - 1);
        (void)keep(shrinking);
    }
    again(shrinking)->varied = 0;
    (void)keep(shrinking);
}

static void leave_out_steps(struct shrinking *shrinking)
{
    for (unsigned i = shrinking->best->steps_count; i > 0; i--) {
        drop_step(again(shrinking), i - 1);
        (void)keep(shrinking);
    }
}

static void leave_out_fates(struct shrinking *shrinking)
{
    for (unsigned i = shrinking->best->fates_count; i > 0; i--) {
        drop_fate(again(shrinking), i - 1);
        (void)keep(shrinking);
    }
    for (unsigned fault = 1; fault < SIM_FAULT_COUNT; fault++) {
        again(shrinking)->rates[fault] = 0;
        (void)keep(shrinking);
    }
}

static void leave_out_cuts(struct shrinking *shrinking)
{
    for (int i = 0; i < SIM_CUTS_MAX; i++) {
        again(shrinking)->cuts[i] = 0;
        (void)keep(shrinking);
    }
}

/* WHOM as it is called when member AT (or, for -1, alloc ALLOC) of KIND has been left out.  False:
 * it went with it. */
static bool rename_whom(struct sim_whom *whom, uint8_t kind, int alloc, int at)
{
    if (kind == MACHINE_ALLOC && whom->kind != MACHINE_PLUGIN) {
        if (whom->alloc == alloc)
            return false;
        whom->alloc = (int8_t)(whom->alloc - (whom->alloc > alloc));
        return true;
    }
    if (whom->kind != kind || whom->alloc != alloc)
        return true;
    if (whom->member == at)
        return false;
    whom->member = (int8_t)(whom->member - (whom->member > at));
    return true;
}

static bool rename_fact(struct sim_fact *fact, uint8_t question, uint8_t kind, int alloc, int at)
{
    bool counted = question == SIM_ASKS_COUNT || question == SIM_ASKS_ORDER;

    return (counted && fact->kind == SIM_FACT_DAEMONS) || rename_whom(&fact->whom, kind, alloc, at);
}

static void rename_all(struct sim_script *script, uint8_t kind, int alloc, int at)
{
    for (unsigned i = script->steps_count; i > 0; i--) {
        struct sim_step *step = &script->steps[i - 1];
        bool stays =
            !sim_action_names_one(step->action) || rename_whom(&step->whom, kind, alloc, at);
        if (step->moment != SIM_AT)
            stays = rename_whom(&step->when, kind, alloc, at) && stays;
        if (!stays)
            drop_step(script, i - 1);
    }
    for (unsigned i = script->fates_count; i > 0; i--) {
        struct sim_fate *fate = &script->fates[i - 1];
        if (fate->whom.kind != MACHINE_KIND_COUNT && !rename_whom(&fate->whom, kind, alloc, at))
            drop_fate(script, i - 1);
    }
    for (unsigned i = script->expects_count; i > 0; i--) {
        struct sim_expect *expect = &script->expects[i - 1];
        bool stays = rename_fact(&expect->fact, expect->question, kind, alloc, at);
        if (expect->question == SIM_ASKS_ORDER)
            stays = rename_fact(&expect->then, expect->question, kind, alloc, at) && stays;
        if (!stays)
            drop_expect(script, i - 1);
    }
}

static void drop_alloc(struct sim_script *script, int alloc)
{
    memmove(&script->allocs[alloc], &script->allocs[alloc + 1],
            (size_t)(script->allocs_count - alloc - 1) * sizeof(script->allocs[0]));
    script->allocs_count--;
    memset(&script->allocs[script->allocs_count], 0, sizeof(script->allocs[0]));
    for (int i = 0; i < script->allocs_count; i++) {
        uint8_t *after = &script->allocs[i].after;
        if (*after == alloc + 1)
            *after = 0;
        else if (*after > alloc + 1)
            (*after)--;
    }
    rename_all(script, MACHINE_ALLOC, alloc, -1);
}

static void drop_task(struct sim_script *script, int number, int task)
{
    struct sim_alloc *alloc = &script->allocs[number];

    memmove(&alloc->tasks[task], &alloc->tasks[task + 1],
            (size_t)(alloc->tasks_count - task - 1) * sizeof(alloc->tasks[0]));
    alloc->tasks_count--;
    memset(&alloc->tasks[alloc->tasks_count], 0, sizeof(alloc->tasks[0]));
    rename_all(script, MACHINE_TASK, number, task);
}

static void drop_claim(struct sim_script *script, int number, int claim)
{
    struct sim_alloc *alloc = &script->allocs[number];

    memmove(&alloc->claims[claim], &alloc->claims[claim + 1],
            (size_t)(alloc->claims_count - claim - 1) * sizeof(alloc->claims[0]));
    alloc->claims_count--;
    memset(&alloc->claims[alloc->claims_count], 0, sizeof(alloc->claims[0]));
    rename_all(script, MACHINE_VOLUME, number, claim);
}

static bool is_plugin_used(const struct sim_script *script, int plugin)
{
    for (int a = 0; a < script->allocs_count; a++) {
        for (int c = 0; c < script->allocs[a].claims_count; c++) {
            if (script->allocs[a].claims[c].plugin == plugin)
                return true;
        }
        for (int t = 0; t < script->allocs[a].tasks_count; t++) {
            if (script->allocs[a].tasks[t].serves == plugin + 1)
                return true;
        }
    }
    return false;
}

static void leave_out_things(struct shrinking *shrinking)
{
    for (int a = shrinking->best->allocs_count - 1; a >= 0; a--) {
        if (shrinking->best->allocs_count > 1 && shrinking->best->jobs_count == 0) {
            drop_alloc(again(shrinking), a);
            if (keep(shrinking))
                continue;
        }
        for (int t = shrinking->best->allocs[a].tasks_count - 1; t >= 0; t--) {
            if (shrinking->best->allocs[a].tasks_count == 1)
                break;
            drop_task(again(shrinking), a, t);
            (void)keep(shrinking);
        }
        for (int c = shrinking->best->allocs[a].claims_count - 1; c >= 0; c--) {
            drop_claim(again(shrinking), a, c);
            (void)keep(shrinking);
        }
    }
    int last = shrinking->best->plugins_count - 1;
    if (last >= 0 && !is_plugin_used(shrinking->best, last)) {
        struct sim_script *trial = again(shrinking);
        rename_all(trial, MACHINE_PLUGIN, -1, last);
        memset(&trial->plugins[last], 0, sizeof(trial->plugins[last]));
        trial->plugins_count--;
        (void)keep(shrinking);
    }
}

/* --- making what remains plain --- */

static void plain_tasks(struct shrinking *shrinking)
{
    for (int a = 0; a < shrinking->best->allocs_count; a++) {
        for (int t = 0; t < shrinking->best->allocs[a].tasks_count; t++) {
            const struct sim_task *best = &shrinking->best->allocs[a].tasks[t];
            struct sim_task usual = sim_task_default(best->name);
            struct sim_task *task = &again(shrinking)->allocs[a].tasks[t];
            *task = usual;
            if (keep(shrinking))
                continue;
#define PLAIN(field)                                                                               \
    do {                                                                                           \
        task = &again(shrinking)->allocs[a].tasks[t];                                              \
        memcpy(&task->field, &usual.field, sizeof(usual.field));                                   \
        (void)keep(shrinking);                                                                     \
    } while (0)
            PLAIN(runs_ms);
            PLAIN(dies_ms);
            PLAIN(interval_ms);
            PLAIN(backoff_ms);
            PLAIN(kill_ms);
            PLAIN(delay_ms);
            PLAIN(attempts);
            PLAIN(hooks);
            PLAIN(exits);
            PLAIN(signal);
            PLAIN(lifecycle);
            PLAIN(sidecar);
            PLAIN(leader);
            PLAIN(mode_delay);
            PLAIN(ignores_term);
            PLAIN(forks);
#undef PLAIN
        }
    }
}

static void plain_world(struct shrinking *shrinking)
{
    again(shrinking)->latency = 0;
    (void)keep(shrinking);
    again(shrinking)->batching = 0;
    (void)keep(shrinking);
    again(shrinking)->server = 0;
    (void)keep(shrinking);
    again(shrinking)->cut_down_ms = 100;
    (void)keep(shrinking);
    for (uint8_t fate = 1; fate <= 2 && shrinking->best->fate_of_cut == 0; fate++) {
        again(shrinking)->fate_of_cut = fate;
        (void)keep(shrinking);
    }
    again(shrinking)->seed = 1;
    (void)keep(shrinking);
    for (int a = 0; a < shrinking->best->allocs_count; a++) {
        struct sim_alloc usual = sim_alloc_default("");
        again(shrinking)->allocs[a].batch = 0;
        (void)keep(shrinking);
        again(shrinking)->allocs[a].after = 0;
        (void)keep(shrinking);
        again(shrinking)->allocs[a].delay_ms = 0;
        (void)keep(shrinking);
        again(shrinking)->allocs[a].limit_ms = 0;
        (void)keep(shrinking);
        again(shrinking)->allocs[a].min_healthy_ms = 0;
        again(shrinking)->allocs[a].healthy_deadline_ms = 0;
        again(shrinking)->allocs[a].checks = 0;
        (void)keep(shrinking);
        again(shrinking)->allocs[a].checks = 0;
        (void)keep(shrinking);
        again(shrinking)->allocs[a].stop_after_ms = 0;
        (void)keep(shrinking);
        again(shrinking)->allocs[a].sticky = 0;
        (void)keep(shrinking);
        memcpy(again(shrinking)->allocs[a].hooks, usual.hooks, sizeof(usual.hooks));
        (void)keep(shrinking);
        for (int c = 0; c < shrinking->best->allocs[a].claims_count; c++) {
            again(shrinking)->allocs[a].claims[c].exclusive = 0;
            (void)keep(shrinking);
        }
    }
}

void sim_shrink(struct sim *sim, struct sim_script *script, struct sim_result *result)
{
    struct shrinking shrinking = {.sim = sim, .best = script, .result = result};

    check(result->outcome != SIM_FINE);
    write_down(&shrinking);
    do {
        shrinking.smaller = false;
        leave_out_expects(&shrinking);
        leave_out_things(&shrinking);
        leave_out_steps(&shrinking);
        leave_out_fates(&shrinking);
        leave_out_cuts(&shrinking);
        plain_world(&shrinking);
        plain_tasks(&shrinking);
    } while (shrinking.smaller);
}
