/*
 * Tokens of identities, one for each mode of a change: as hooks/signing.c and hooks/renewal.c have
 * them signed, and write them, before their machine hears of it.
 *
 * Servers always answer, and when it is time to renew one the script says: what is looked at here
 * is that what was left is there for each start, and that the task is told of what it has, once,
 * whenever the daemon dies.
 */
#include "sim/answer.h"
#include "sim/world/world.h"

#include "fsm/policy.h"

static int leave(const struct sim_task_state *state, struct results *results)
{
    struct rendered said[CHANGE_SCRIPT] = {{0}};

    for (uint8_t mode = 0; mode < COUNT_OF(said); mode++) {
        said[mode] = (struct rendered){.mode = mode, .number = 1};
        memcpy(said[mode].digest, &state->tokens[mode], sizeof(state->tokens[mode]));
    }
    return results_set(results, TASK_HOOK_IDENTITY, RESULT_DATA, RENDERED_KEY, said, sizeof(said));
}

/* The numbers of the tokens that its machine knows; false: it knows none. */
static bool recall(const struct task *task, uint32_t ret_tokens[CHANGE_SCRIPT])
{
    struct result result;

    for (uint32_t at = 0; results_next(task->results, task->results_bytes, &at, &result);) {
        struct rendered said[CHANGE_SCRIPT];

        if (result.hook != TASK_HOOK_IDENTITY || !text_equal(result.key, RENDERED_KEY) ||
            result.value_length != sizeof(said))
            continue;
        memcpy(said, result.value, sizeof(said));
        for (unsigned mode = 0; mode < COUNT_OF(said); mode++)
            memcpy(&ret_tokens[mode], said[mode].digest, sizeof(ret_tokens[mode]));
        return true;
    }
    return false;
}

bool sim_tokens_are_told(const struct sim_task_state *state, const struct task *task)
{
    uint32_t known[CHANGE_SCRIPT];

    return !recall(task, known) || memcmp(known, state->tokens, sizeof(known)) == 0;
}

int sim_tokens_leave(struct sim *sim, const struct sim_whom *whom, struct results *results)
{
    struct sim_task_state *state = sim_task_of(sim, whom);
    const struct machine *record = sim_record(sim, whom);

    if (record == NULL || !recall(task_of(record), state->tokens)) {
        for (unsigned mode = 0; mode < CHANGE_SCRIPT; mode++)
            state->tokens[mode] = ++state->signings[mode];
    }
    return leave(state, results);
}

static void tell(struct sim *sim, const struct sim_whom *whom)
{
    const struct sim_task_state *state = sim_task_of(sim, whom);
    uint8_t room[sizeof(struct hook_outcome) + 512] __attribute__((aligned(8))) = {0};
    struct hook_outcome *outcome = (struct hook_outcome *)(void *)room;
    struct results results = {outcome->results, 0, 512};

    outcome->hook = TASK_HOOK_IDENTITY;
    int code = results_set(&results, TASK_HOOK_IDENTITY, RESULT_ENV,
                           task_hook_name(TASK_HOOK_IDENTITY), "made", 4);
    if (code == 0)
        code = leave(state, &results);
    check(code == 0); /* fits */
    outcome->results_bytes = results.used;
    core_news(sim->core, &state->id, sim_record(sim, whom)->generation, TE_CHANGED, outcome);
}

static bool is_renewed(struct sim *sim, const struct sim_whom *whom)
{
    return sim->up && !sim->dying && sim_task_of(sim, whom)->renewed == sim->incarnation &&
           sim_record(sim, whom) != NULL;
}

void sim_tokens_renew(struct sim *sim, const struct sim_whom *whom, unsigned mode, bool tells)
{
    struct sim_task_state *state = sim_task_of(sim, whom);

    check(mode < CHANGE_SCRIPT);
    if (!is_renewed(sim, whom))
        return;
    state->tokens[mode] = ++state->signings[mode];
    if (tells)
        tell(sim, whom);
}

void sim_tokens_begin(struct sim *sim, const struct sim_whom *whom)
{
    struct sim_task_state *state = sim_task_of(sim, whom);

    if (!is_renewed(sim, whom) || sim_tokens_are_told(state, task_of(sim_record(sim, whom))))
        return;
    for (unsigned mode = 0; mode < CHANGE_SCRIPT; mode++)
        state->tokens[mode] = ++state->signings[mode];
    tell(sim, whom);
}
