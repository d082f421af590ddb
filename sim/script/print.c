/*
 * Scripts in their text form.  What is as the defaults have it is not printed.
 */
#include "sim/script/words.h"

#include "fsm/plugin.h"
#include "fsm/task.h"
#include "fsm/volume.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SAY(...) sim_print(print, ctx, __VA_ARGS__)

void sim_print(fsm_print *print, void *ctx, const char *format, ...)
{
    char line[SIM_LINE_BYTES];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(line, sizeof(line), format, arguments); /* cut if too long */
    va_end(arguments);
    print(ctx, line);
}

static void print_task(const struct sim_script *script, const struct sim_alloc *alloc,
                       const struct sim_task *task, fsm_print *print, void *ctx)
{
    struct sim_task usual = sim_task_default(task->name);

    SAY("task %s/%s", alloc->name, task->name);
#define NUMBER(field, word)                                                                        \
    if (task->field != usual.field)                                                                \
        SAY(" " word " %lld", (long long)task->field);
#define FLAG(field, word)                                                                          \
    if (task->field)                                                                               \
        SAY(" " word);
    NUMBER(runs_ms, "runs")
    NUMBER(dies_ms, "dies")
    NUMBER(exits, "exits")
    NUMBER(signal, "signal")
    NUMBER(attempts, "attempts")
    NUMBER(interval_ms, "interval")
    NUMBER(backoff_ms, "backoff")
    NUMBER(kill_ms, "kill")
    NUMBER(delay_ms, "delay")
    if (task->lifecycle != LIFECYCLE_MAIN)
        SAY(" lifecycle %s", sim_lifecycle_words[task->lifecycle]);
    FLAG(sidecar, "sidecar")
    FLAG(leader, "leader")
    FLAG(mode_delay, "mode_delay")
    FLAG(ignores_term, "ignores_term")
    FLAG(forks, "forks")
#undef NUMBER
#undef FLAG
    if (memcmp(task->hooks, usual.hooks, sizeof(usual.hooks)) != 0)
        SAY(" hooks %u %u %u %u %u", task->hooks[0], task->hooks[1], task->hooks[2], task->hooks[3],
            task->hooks[4]);
    if (task->serves != 0)
        SAY(" serves %s", script->plugins[task->serves - 1].name);
    if (task->health_ms != 0)
        SAY(" health %llu", (unsigned long long)task->health_ms);
    SAY("\n");
}

static void print_alloc(const struct sim_script *script, const struct sim_alloc *alloc,
                        fsm_print *print, void *ctx)
{
    struct sim_alloc usual = sim_alloc_default(alloc->name);

    SAY("alloc %s%s", alloc->name, alloc->batch ? " batch" : "");
    if (alloc->after != 0)
        SAY(" after %s", script->allocs[alloc->after - 1].name);
    if (alloc->delay_ms != 0)
        SAY(" delay %llu", (unsigned long long)alloc->delay_ms);
    if (alloc->sticky)
        SAY(" sticky");
    if (alloc->limit_ms != 0)
        SAY(" limit %llu", (unsigned long long)alloc->limit_ms);
    if (alloc->healthy_deadline_ms != 0)
        SAY(" healthy %llu %llu", (unsigned long long)alloc->min_healthy_ms,
            (unsigned long long)alloc->healthy_deadline_ms);
    if (alloc->manual)
        SAY(" manual");
    if (alloc->checks != 0)
        SAY(" checks %u", alloc->checks);
    if (alloc->stop_after_ms != 0)
        SAY(" stop_after %llu", (unsigned long long)alloc->stop_after_ms);
    if (memcmp(alloc->hooks, usual.hooks, sizeof(usual.hooks)) != 0)
        SAY(" hooks %u %u %u %u", alloc->hooks[0], alloc->hooks[1], alloc->hooks[2],
            alloc->hooks[3]);
    SAY("\n");
    for (unsigned i = 0; i < alloc->tasks_count; i++)
        print_task(script, alloc, &alloc->tasks[i], print, ctx);
    for (unsigned i = 0; i < alloc->claims_count; i++)
        SAY("claim %s/%s plugin %s disk %u%s\n", alloc->name, alloc->claims[i].name,
            script->plugins[alloc->claims[i].plugin].name, alloc->claims[i].disk,
            alloc->claims[i].exclusive ? " exclusive" : "");
}

static void print_whom(const struct sim_script *script, const struct sim_whom *whom,
                       enum sim_takes takes, fsm_print *print, void *ctx)
{
    char name[2 * SIM_NAME_SIZE + 2];

    if (takes == TAKES_NONE)
        return;
    sim_whom_name(script, whom, name, sizeof(name));
    if (takes == TAKES_RECORD)
        SAY(" %s", machine_kind_name((enum machine_kind)whom->kind));
    SAY(" %s", name);
}

void sim_step_what(const struct sim_script *script, const struct sim_step *step, char *to,
                   size_t size)
{
    enum sim_takes takes = sim_action_takes(step->action);
    char whom[2 * SIM_NAME_SIZE + 2] = "", number[32] = "";
    const char *kind = "";

    if (takes != TAKES_NONE)
        sim_whom_name(script, &step->whom, whom, sizeof(whom));
    if (takes == TAKES_RECORD)
        kind = machine_kind_name((enum machine_kind)step->whom.kind);
    if (step->action == SIM_DO_SERVER)
        (void)text_copy(number, sizeof(number), sim_server_name((unsigned)step->number)); /* fits */
    else if (step->number != 0)
        (void)text_format(number, sizeof(number), "%lld", (long long)step->number); /* fits */
    (void)text_format(to, size, "%s%s%s%s%s%s%s", sim_action_name(step->action),
                      kind[0] != '\0' ? " " : "", kind, whom[0] != '\0' ? " " : "", whom,
                      number[0] != '\0' ? " " : "", number); /* no longer than a line */
}

void sim_step_print(const struct sim_script *script, const struct sim_step *step, fsm_print *print,
                    void *ctx)
{
    char name[2 * SIM_NAME_SIZE + 2], what[SIM_LINE_BYTES - 4];

    if (step->moment == SIM_AT) {
        SAY("at %llu", (unsigned long long)step->at_ms);
    } else {
        const struct fsm_def *def = fsm_definition((enum machine_kind)step->when.kind);
        sim_whom_name(script, &step->when, name, sizeof(name));
        SAY("when %s %s %s", def->name, name, fsm_state_name(def, step->state));
        if (step->nth != 1)
            SAY(" nth %u", step->nth);
        SAY(" %s", sim_moment_words[step->moment]);
    }
    sim_step_what(script, step, what, sizeof(what));
    SAY(" %s\n", what);
}

void sim_fate_print(const struct sim_script *script, const struct sim_fate *fate, fsm_print *print,
                    void *ctx)
{
    char name[2 * SIM_NAME_SIZE + 2];

    if (fate->whom.kind == MACHINE_KIND_COUNT) {
        SAY("fate %s commit %u\n", sim_fault_name(fate->fault), fate->nth);
        return;
    }
    const struct fsm_def *def = fsm_definition((enum machine_kind)fate->whom.kind);
    sim_whom_name(script, &fate->whom, name, sizeof(name));
    SAY("fate %s %s %s %s %u", sim_fault_name(fate->fault), def->name, name,
        fsm_effect_name(def, fate->effect), fate->nth);
    if (fate->ms != 0)
        SAY(" ms %u", fate->ms);
    SAY("\n");
}

static void print_fact(const struct sim_script *script, const struct sim_fact *fact,
                       fsm_print *print, void *ctx)
{
    const struct sim_fact_word *word = &sim_fact_words[fact->kind];

    SAY(" %s", word->word);
    print_whom(script, &fact->whom, word->takes, print, ctx);
    switch (word->detail) {
    case DETAIL_NONE:
        return;
    case DETAIL_STATE:
        SAY(" %s", fsm_state_name(fsm_definition(fact->whom.kind), fact->detail));
        return;
    case DETAIL_EFFECT:
        SAY(" %s", fsm_effect_name(fsm_definition(fact->whom.kind), fact->detail));
        return;
    case DETAIL_EVENT:
        SAY(" %s", fsm_event_name(fsm_definition(fact->whom.kind), fact->detail));
        return;
    case DETAIL_STATUS:
        SAY(" %s", sim_status_words[fact->detail]);
        return;
    case DETAIL_NOTE:
        SAY(" %s", sim_note_words[fact->detail]);
        return;
    }
}

static void print_answer(const struct sim_expect *expect, fsm_print *print, void *ctx)
{
    long long number = (long long)expect->number;

    switch ((enum sim_question)expect->question) {
    case SIM_ASKS_COUNT:
        if (expect->relation != SIM_EXACTLY)
            SAY(" %s", sim_relation_words[expect->relation]);
        SAY(" %lld", number);
        if (expect->since != 0)
            SAY(" since %u", expect->since);
        return;
    case SIM_ASKS_ORDER:
        return;
    case SIM_ASKS_STATE:
        SAY(" %s", number < 0
                       ? "absent"
                       : fsm_state_name(fsm_definition(expect->fact.whom.kind), (unsigned)number));
        return;
    case SIM_ASKS_EXIT:
        if (number < 0)
            SAY(" unknown");
        else
            SAY(" %lld", number);
        return;
    case SIM_ASKS_STATUS:
        SAY(" %s", sim_status_words[number]);
        return;
    case SIM_ASKS_HEALTH:
        SAY(" %s", sim_health_words[number]);
        return;
    case SIM_ASKS_ALIVE:
    case SIM_ASKS_MOUNTED:
    case SIM_ASKS_STAGED:
    case SIM_ASKS_CLAIMED:
        SAY(" %s", number != 0 ? "yes" : "no");
        return;
    case SIM_ASKS_LIVE:
    case SIM_ASKS_KEPT:
    case SIM_ASKS_JOB:
        SAY(" %lld", number);
        return;
    case SIM_QUESTION_COUNT:
        break;
    }
    unreachable("question");
}

void sim_expect_print(const struct sim_script *script, const struct sim_expect *expect,
                      fsm_print *print, void *ctx)
{
    const struct sim_question_word *question = &sim_question_words[expect->question];
    bool facts = expect->question == SIM_ASKS_COUNT || expect->question == SIM_ASKS_ORDER;

    SAY("%s", expect->always ? "always" : "expect");
    if (question->word[0] != '\0')
        SAY(" %s", question->word);
    print_whom(script, &expect->fact.whom, question->takes, print, ctx);
    if (facts)
        print_fact(script, &expect->fact, print, ctx);
    if (expect->question == SIM_ASKS_ORDER) {
        SAY(" then");
        print_fact(script, &expect->then, print, ctx);
    }
    print_answer(expect, print, ctx);
    SAY("\n");
}

static void print_job(const struct sim_script *script, const struct sim_job *job, fsm_print *print,
                      void *ctx)
{
    SAY("job %s", job->name);
    for (unsigned i = 0; i < script->allocs_count; i++) {
        if ((job->groups >> i & 1u) != 0)
            SAY(" %s", script->allocs[i].name);
    }
    SAY(" count %u", job->count);
    if (job->again > 0)
        SAY(" again %u", job->again);
    if (job->parallel > 0)
        SAY(" parallel %u", job->parallel);
    if (job->system)
        SAY(" system");
    SAY("\n");
}

void sim_script_print(const struct sim_script *script, fsm_print *print, void *ctx)
{
    SAY("mode %s\n", sim_mode_words[script->server]);
    SAY("seed %llu\nheal %llu\n", (unsigned long long)script->seed,
        (unsigned long long)script->heal_ms);
    if (script->latency)
        SAY("latency drawn\n");
    if (script->batching)
        SAY("batching drawn\n");
    if (script->fate_of_cut != 0)
        SAY("cut %s\n", sim_cut_words[script->fate_of_cut]);
    if (script->varied)
        SAY("varied\n");
    if (script->cut_down_ms != 100)
        SAY("down %u\n", script->cut_down_ms);
    if (script->log_max != 0)
        SAY("log %u\n", script->log_max);
    int cuts = SIM_CUTS_MAX;
    while (cuts > 0 && script->cuts[cuts - 1] == 0)
        cuts--;
    for (int i = 0; i < cuts; i++)
        SAY("%s%u%s", i == 0 ? "die " : " ", script->cuts[i], i + 1 == cuts ? "\n" : "");
    for (unsigned i = 1; i < SIM_FAULT_COUNT; i++) {
        if (script->rates[i] != 0)
            SAY("rate %s %u\n", sim_fault_name(i), script->rates[i]);
    }
    for (unsigned i = 0; i < script->plugins_count; i++)
        SAY("plugin %s%s%s%s\n", script->plugins[i].name, script->plugins[i].of != 0 ? " of " : "",
            script->plugins[i].of != 0 ? script->plugins[script->plugins[i].of - 1].name : "",
            script->plugins[i].stages ? " stages" : "");
    for (unsigned i = 0; i < script->allocs_count; i++)
        print_alloc(script, &script->allocs[i], print, ctx);
    if (script->kept != 0)
        SAY("kept %u\n", script->kept);
    for (unsigned i = 0; i < script->jobs_count; i++)
        print_job(script, &script->jobs[i], print, ctx);
    for (unsigned i = 0; i < script->steps_count; i++)
        sim_step_print(script, &script->steps[i], print, ctx);
    for (unsigned i = 0; i < script->fates_count; i++)
        sim_fate_print(script, &script->fates[i], print, ctx);
    for (unsigned i = 0; i < script->expects_count; i++)
        sim_expect_print(script, &script->expects[i], print, ctx);
}
