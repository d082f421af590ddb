/*
 * Attempts: what exists under each key (alloc, task, generation), and what has.
 *
 * They are the world's truth about processes.  None is ever taken away: what became of a payload is
 * asked long after its end.
 */
#include "sim/world/world.h"

int32_t sim_planned_code(const struct sim_task *plan)
{
    return plan->signal != 0 ? SIGNAL_BASE + plan->signal : plan->exits;
}

struct sim_attempt *sim_attempt(struct sim *sim, int alloc, int task, uint32_t generation)
{
    int32_t at = sim->allocs[alloc].tasks[task].newest;

    while (at >= 0 && sim->attempts.items[at].generation != generation)
        at = sim->attempts.items[at].next;
    return at < 0 ? NULL : &sim->attempts.items[at];
}

size_t sim_attempt_number(const struct sim *sim, const struct sim_attempt *attempt)
{
    return (size_t)(attempt - sim->attempts.items);
}

struct sim_attempt *sim_attempt_of(struct sim *sim, const struct sim_call *call)
{
    return sim_attempt(sim, call->whom.alloc, call->whom.member, call->generation);
}

struct sim_attempt *sim_attempt_new(struct sim *sim, const struct sim_whom *whom,
                                    uint32_t generation)
{
    struct sim_task_state *task = sim_task_of(sim, whom);

    check(sim->attempts.count < sim->attempts.max);
    struct sim_attempt *attempt = &sim->attempts.items[sim->attempts.count];
    *attempt = (struct sim_attempt){
        .generation = generation,
        .alloc = whom->alloc,
        .task = whom->member,
        .next = task->newest,
    };
    task->newest = (int32_t)sim->attempts.count++;
    return attempt;
}

bool sim_attempt_is_given_up(const struct sim_attempt *attempt, const struct task *task)
{
    enum { LOOKS = 5, LOOKS_ENDING = 3 }; /* the fewest after which a task gives up */

    return attempt->blind >= (task->kill_wanted ? LOOKS_ENDING : LOOKS);
}

bool sim_attempt_lives(const struct sim_attempt *attempt)
{
    return attempt->payload == PAYLOAD_RUNNING || attempt->descendants;
}

bool sim_attempt_was_begun(const struct sim_attempt *attempt)
{
    return attempt->mark == MARK_BEGUN || attempt->shim == SHIM_STARTING;
}

bool sim_attempt_exists(const struct sim_attempt *attempt)
{
    return sim_attempt_lives(attempt) || attempt->mark != MARK_NONE ||
           attempt->shim == SHIM_STARTING || attempt->shim == SHIM_ALIVE;
}

bool sim_alloc_lives(const struct sim *sim, int alloc)
{
    for (int t = 0; t < sim->allocs[alloc].tasks_count; t++) {
        for (int32_t at = sim->allocs[alloc].tasks[t].newest; at >= 0;
             at = sim->attempts.items[at].next) {
            if (sim_attempt_lives(&sim->attempts.items[at]))
                return true;
        }
    }
    return false;
}

const struct sim_task *sim_attempt_plan(const struct sim *sim, const struct sim_attempt *attempt)
{
    return sim->allocs[attempt->alloc].tasks[attempt->task].plan;
}

const struct machine_id *sim_attempt_id(const struct sim *sim, const struct sim_attempt *attempt)
{
    return &sim->allocs[attempt->alloc].tasks[attempt->task].id;
}

void sim_attempt_note(struct sim *sim, enum sim_fact_kind kind, const struct sim_attempt *attempt)
{
    struct sim_whom whom = {MACHINE_TASK, attempt->alloc, attempt->task};

    sim_fact(sim, kind, &whom, 0);
}

/* Such an end is as good as any other. */
static bool has_finished(const struct sim *sim, const struct sim_attempt *attempt)
{
    const struct sim_task *plan = sim_attempt_plan(sim, attempt);

    return attempt->code == 0 &&
           !policy_restarts_on_success(sim->allocs[attempt->alloc].plan->batch,
                                       (enum spec_lifecycle)plan->lifecycle, plan->sidecar);
}

void sim_processes_shutdown(struct sim *sim)
{
    for (size_t i = 0; i < sim->attempts.count; i++) {
        struct sim_attempt *attempt = &sim->attempts.items[i];
        const struct sim_task *plan = sim_attempt_plan(sim, attempt);

        /* Whoever does not listen is killed together with his shim. */
        if (attempt->payload != PAYLOAD_RUNNING || attempt->shim != SHIM_ALIVE ||
            attempt->record_lost || plan->ignores_term)
            continue;
        attempt->payload = PAYLOAD_ENDED;
        attempt->code = sim_planned_code(plan);
        attempt->signal = plan->signal;
        attempt->finished_unix_ns = sim_unix_ns(sim);
        attempt->record = RECORD_ENDED;
        attempt->written = attempt->with_host = 1;
        attempt->by_boot = !has_finished(sim, attempt);
        sim_attempt_note(sim, SIM_FACT_ENDS, attempt);
    }
}

void sim_processes_reboot(struct sim *sim)
{
    for (size_t i = 0; i < sim->attempts.count; i++) {
        struct sim_attempt *attempt = &sim->attempts.items[i];
        attempt->epoch++;
        attempt->reported = 0;
        attempt->descendants = 0;
        if (attempt->shim == SHIM_ALIVE || attempt->shim == SHIM_STARTING)
            attempt->shim = SHIM_ENDED;
        if (attempt->payload == PAYLOAD_RUNNING) {
            attempt->payload = PAYLOAD_ENDED;
            attempt->code = SIGNAL_BASE + SIGKILL_NUMBER;
            attempt->signal = SIGKILL_NUMBER;
            attempt->by_boot = 1;
            sim_attempt_note(sim, SIM_FACT_ENDS, attempt);
        }
        /* The mark of a start is not synced (drivers/launch.c): the reboot may take it with it,
         * unless it was reported long ago. */
        if (attempt->mark == MARK_BEGUN && !attempt->answered && attempt->record == RECORD_NONE) {
            sim->result->decided++;
            if (sim->script->fate_of_cut != 1 &&
                (sim_chance(sim, LUCK_CUT, i, sim->boot) & 1) != 0) {
                attempt->mark = MARK_NONE;
                attempt->starts = 0;
            }
        }
    }
    sim->attempts.next_pid = 1000; /* the next boot's pids are those of the last one (PIDREUSE) */
    sim_count_fault(sim, SIM_PIDREUSE);
}

void sim_attempt_remove(struct sim_attempt *attempt)
{
    if (attempt->forgotten)
        *attempt = (struct sim_attempt){.generation = attempt->generation,
                                        .epoch = attempt->epoch,
                                        .alloc = attempt->alloc,
                                        .task = attempt->task,
                                        .code = attempt->code, /* its end may yet be told */
                                        .signal = attempt->signal,
                                        .next = attempt->next};
    attempt->mark = attempt->record = 0;
    attempt->shim = SHIM_NONE;
    attempt->epoch++;
}

struct started sim_process_new(struct sim *sim)
{
    int32_t pid = ++sim->attempts.next_pid;
    uint64_t ticks = sim->boot << 32 | (uint32_t)pid;

    return (struct started){
        .payload_pid = pid,
        .payload_ticks = ticks,
        .shim_pid = pid - 1,
        .shim_ticks = ticks,
    };
}
