/* What a journal holds for worlds to begin from, in words and figures (start.h). */
#include "sim/script/started.h"
#include "sim/script/words.h"

enum { SIM_TASKS_LOOSE = 256 }; /* with more, a turn for each thing that happens takes too long */

#define SAY(...) sim_print(print, ctx, __VA_ARGS__)

static bool is_alive(const struct machine *record)
{
    const struct task *task = record->kind == MACHINE_TASK ? task_of(record) : NULL;

    return task != NULL && task_holds_work(task) && task->ran && !task->exit_seen;
}

struct sim_start_figures sim_start_figures(const struct sim_start *start)
{
    struct sim_start_figures figures = {
        .sequence = start->next_sequence - 1,
        .server = start->server,
    };

    for (size_t i = 0; i < start->kept.count; i++) {
        const struct sim_past *kept = &start->kept.items[i];
        if (kept->record == NULL) {
            figures.damaged++;
            continue;
        }
        figures.records[kept->id.kind]++;
        figures.payloads += is_alive(kept->record);
    }
    return figures;
}

/* "12 tasks: 10 RUNNING, 2 DEAD" */
static void describe_kind(const struct sim_start *start, enum machine_kind kind, uint64_t count,
                          fsm_print *print, void *ctx)
{
    const struct fsm_def *def = fsm_definition(kind);
    uint64_t states[FSM_EVENTS_MAX] = {0};
    const char *join = ":";

    for (size_t i = 0; i < start->kept.count; i++) {
        const struct machine *record = start->kept.items[i].record;
        if (record != NULL && record->kind == kind)
            states[record->state]++;
    }
    SAY("%llu %s%s", (unsigned long long)count, def->name, count == 1 ? "" : "s");
    for (unsigned state = 0; state < def->states_count; state++) {
        if (states[state] == 0)
            continue;
        SAY("%s %llu %s", join, (unsigned long long)states[state], fsm_state_name(def, state));
        join = ",";
    }
    SAY("\n");
}

void sim_start_describe(const struct sim_start *start, fsm_print *print, void *ctx)
{
    struct sim_start_figures figures = sim_start_figures(start);

    SAY("journal up to event %llu, %s\n", (unsigned long long)figures.sequence,
        figures.server ? "a server decides what runs" : "it decides by itself what runs");
    for (int kind = MACHINE_KIND_COUNT - 1; kind >= 0; kind--) {
        if (figures.records[kind] > 0)
            describe_kind(start, (enum machine_kind)kind, figures.records[kind], print, ctx);
    }
    SAY("%llu payload%s should be alive\n", (unsigned long long)figures.payloads,
        figures.payloads == 1 ? "" : "s");
    for (size_t i = 0; i < start->kept.count; i++) {
        const struct sim_past *kept = &start->kept.items[i];
        if (kept->record == NULL)
            SAY("damaged: %s %s: its alloc is brought to an end%s\n",
                machine_kind_name((enum machine_kind)kept->id.kind), kept->id.text,
                kept->id.kind == MACHINE_VOLUME ? ", what it has mounted stays" : "");
    }
}

struct sim_script sim_start_script(const struct sim_start *start, enum sim_away away)
{
    struct sim_script script = sim_script_default();

    script.start = start;
    script.server = start->server;
    script.away = (uint8_t)away;
    script.batching = start->tasks.count > SIM_TASKS_LOOSE;
    return script;
}
