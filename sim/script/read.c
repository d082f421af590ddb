/*
 * Reading a script: one line for each thing that is or happens.
 *
 * The same lists that make the enums give the words, so whatever can be scripted can be written and
 * read again.  Printing a script and reading it gives the same script.
 */
#include "sim/script/words.h"

#include "fsm/fsm.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WORDS_MAX = 32,
    HOUR_MS = 3600 * 1000, /* a world is given four of them to come to rest */
    DAY_MS = 24 * HOUR_MS,
};
#define JUMP_MAX_MS (INT64_C(20) * 365 * DAY_MS)

struct reader {
    struct sim_script *script;
    char line[SIM_LINE_BYTES];
    char *words[WORDS_MAX];
    int count, at, number; /* words of the line, the next one, which line it is */
    struct sim_lines lines;
    bool failed;
    char why[ERR_TEXT_SIZE]; /* it failed, "": only that it is not understood */
};

__attribute__((format(printf, 2, 3))) static void refuse(struct reader *reader, const char *format,
                                                         ...)
{
    va_list arguments;

    if (!reader->failed) {
        va_start(arguments, format);
        (void)vsnprintf(reader->why, sizeof(reader->why), format, arguments); /* cut if too long */
        va_end(arguments);
    }
    reader->failed = true;
}

static const char *next_word(struct reader *reader)
{
    if (reader->at == reader->count) {
        reader->failed = true;
        return "";
    }
    return reader->words[reader->at++];
}

static bool accept(struct reader *reader, const char *word)
{
    bool same = reader->at < reader->count && text_equal(reader->words[reader->at], word);

    reader->at += same;
    return same;
}

static int64_t next_number(struct reader *reader)
{
    int64_t value = 0;

    reader->failed |= !text_to_i64(next_word(reader), &value);
    return value;
}

/* What a world can count with, and an hour is more than its end is put off for. */
static int64_t next_within(struct reader *reader, int64_t least, int64_t most)
{
    int64_t value = next_number(reader);

    if (value < least || value > most)
        refuse(reader, "%lld is not from %lld to %lld", (long long)value, (long long)least,
               (long long)most);
    return value < least || value > most ? least : value;
}

static uint64_t next_count(struct reader *reader, uint64_t most)
{
    return (uint64_t)next_within(reader, 0, (int64_t)most);
}

/* Names become ids of machines and names of files. */
static void next_name(struct reader *reader, const char *word, char *ret_name)
{
    size_t length = strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "0123456789-_");

    if (length == 0 || word[length] != '\0' || !text_copy(ret_name, SIM_NAME_SIZE, word))
        refuse(reader, "\"%.64s\" is no name: up to %d letters, digits, - and _", word,
               SIM_NAME_SIZE - 1);
}

static void is_new(struct reader *reader, const char *what, const char *name, const char *other,
                   int line)
{
    if (text_equal(name, other))
        refuse(reader, "%s \"%s\" is there already, of line %d", what, name, line);
}

/* The place of the next word in a list of names. */
static unsigned next_of(struct reader *reader, const char *const *names, size_t count)
{
    const char *word = next_word(reader);

    for (unsigned i = 0; i < count; i++) {
        if (text_equal(names[i], word))
            return i;
    }
    reader->failed = true;
    return 0;
}

static int8_t find_alloc(struct reader *reader, const char *name)
{
    for (int8_t i = 0; i < reader->script->allocs_count; i++) {
        if (text_equal(reader->script->allocs[i].name, name))
            return i;
    }
    reader->failed = true;
    return 0;
}

static int8_t find_plugin(struct reader *reader, const char *name)
{
    for (int8_t i = 0; i < reader->script->plugins_count; i++) {
        if (text_equal(reader->script->plugins[i].name, name))
            return i;
    }
    reader->failed = true;
    return 0;
}

/* "a/main" or "a". */
static struct sim_whom whom_of(struct reader *reader, enum machine_kind kind, const char *word)
{
    struct sim_whom whom = {.kind = (uint8_t)kind, .alloc = -1, .member = -1};
    char name[SIM_LINE_BYTES];

    (void)text_copy(name, sizeof(name), word); /* a line is no longer */
    if (kind == MACHINE_PLUGIN) {
        whom.member = find_plugin(reader, name);
        return whom;
    }
    char *slash = strchr(name, '/');
    reader->failed |= (slash == NULL) != (kind == MACHINE_ALLOC);
    if (slash != NULL)
        *slash++ = '\0';
    whom.alloc = find_alloc(reader, name);
    if (slash == NULL || reader->failed)
        return whom;
    const struct sim_alloc *alloc = &reader->script->allocs[(unsigned)whom.alloc];
    for (int8_t i = 0; kind == MACHINE_TASK && i < alloc->tasks_count; i++) {
        if (text_equal(alloc->tasks[i].name, slash))
            whom.member = i;
    }
    for (int8_t i = 0; kind == MACHINE_VOLUME && i < alloc->claims_count; i++) {
        if (text_equal(alloc->claims[i].name, slash))
            whom.member = i;
    }
    reader->failed |= whom.member < 0;
    return whom;
}

/* "task a/main" */
static struct sim_whom next_machine(struct reader *reader)
{
    const char *kind = next_word(reader);

    for (int i = 0; i < MACHINE_KIND_COUNT; i++) {
        if (text_equal(machine_kind_name((enum machine_kind)i), kind))
            return whom_of(reader, (enum machine_kind)i, next_word(reader));
    }
    reader->failed = true;
    return (struct sim_whom){0};
}

static uint8_t next_state(struct reader *reader, uint8_t kind)
{
    const struct fsm_def *def = fsm_definition((enum machine_kind)kind);
    const char *word = next_word(reader);

    for (uint8_t i = 0; i < def->states_count; i++) {
        if (text_equal(def->states[i].name, word))
            return i;
    }
    reader->failed = true;
    return 0;
}

static uint8_t next_effect(struct reader *reader, uint8_t kind)
{
    const struct fsm_def *def = fsm_definition((enum machine_kind)kind);
    const char *word = next_word(reader);

    for (uint8_t i = 1; i < def->effects_count; i++) {
        if (text_equal(def->effects[i].name, word))
            return i;
    }
    reader->failed = true;
    return 0;
}

/* A bit for each of HOOKS. */
static void read_masks(struct reader *reader, uint32_t *masks, int count, unsigned hooks)
{
    for (int i = 0; i < count; i++)
        masks[i] = (uint32_t)next_count(reader, (1u << hooks) - 1);
}

/* For how long it runs before it is, and by when. */
static void read_healthy(struct reader *reader, struct sim_alloc *alloc)
{
    alloc->min_healthy_ms = next_count(reader, DAY_MS);
    alloc->healthy_deadline_ms = next_count(reader, DAY_MS);
    reader->failed |= alloc->healthy_deadline_ms == 0;
}

static void read_alloc(struct reader *reader)
{
    struct sim_script *script = reader->script;
    char name[SIM_NAME_SIZE] = "";

    next_name(reader, next_word(reader), name);
    for (unsigned i = 0; i < script->allocs_count; i++)
        is_new(reader, "alloc", name, script->allocs[i].name, reader->lines.allocs[i]);
    struct sim_alloc alloc = sim_alloc_default(name);
    while (reader->at < reader->count && !reader->failed) {
        if (accept(reader, "batch"))
            alloc.batch = 1;
        else if (accept(reader, "after"))
            alloc.after = (uint8_t)(find_alloc(reader, next_word(reader)) + 1);
        else if (accept(reader, "delay"))
            alloc.delay_ms = next_count(reader, HOUR_MS);
        else if (accept(reader, "sticky"))
            alloc.sticky = 1;
        else if (accept(reader, "limit"))
            alloc.limit_ms = next_count(reader, DAY_MS);
        else if (accept(reader, "stop_after"))
            alloc.stop_after_ms = next_count(reader, DAY_MS);
        else if (accept(reader, "healthy"))
            read_healthy(reader, &alloc);
        else if (alloc.healthy_deadline_ms != 0 && accept(reader, "manual"))
            alloc.manual = 1;
        else if (alloc.healthy_deadline_ms != 0 && accept(reader, "checks"))
            alloc.checks = (uint8_t)next_count(reader, SIM_CHECKS_MAX);
        else if (accept(reader, "hooks"))
            read_masks(reader, alloc.hooks, COUNT_OF(alloc.hooks), ALLOC_HOOK_COUNT);
        else
            reader->failed = true;
    }
    if (script->allocs_count == SIM_ALLOCS_MAX)
        refuse(reader, "there are %d allocs already", SIM_ALLOCS_MAX);
    if (reader->failed)
        return;
    reader->lines.allocs[script->allocs_count] = reader->number;
    script->allocs[script->allocs_count++] = alloc;
}

static void read_task_word(struct reader *reader, struct sim_task *task)
{
    if (accept(reader, "runs"))
        task->runs_ms = next_count(reader, DAY_MS);
    else if (accept(reader, "dies"))
        task->dies_ms = next_count(reader, HOUR_MS);
    else if (accept(reader, "exits"))
        task->exits = (int32_t)next_within(reader, 0, 255);
    else if (accept(reader, "signal"))
        task->signal = (int32_t)next_within(reader, 0, 64);
    else if (accept(reader, "attempts"))
        task->attempts = (uint32_t)next_count(reader, UINT16_MAX);
    else if (accept(reader, "interval"))
        task->interval_ms = next_count(reader, HOUR_MS);
    else if (accept(reader, "backoff"))
        task->backoff_ms = next_count(reader, HOUR_MS);
    else if (accept(reader, "kill"))
        task->kill_ms = next_count(reader, HOUR_MS);
    else if (accept(reader, "delay"))
        task->delay_ms = next_count(reader, HOUR_MS);
    else if (accept(reader, "lifecycle"))
        task->lifecycle =
            (uint8_t)next_of(reader, sim_lifecycle_words, COUNT_OF(sim_lifecycle_words));
    else if (accept(reader, "sidecar"))
        task->sidecar = 1;
    else if (accept(reader, "leader"))
        task->leader = 1;
    else if (accept(reader, "mode_delay"))
        task->mode_delay = 1;
    else if (accept(reader, "ignores_term"))
        task->ignores_term = 1;
    else if (accept(reader, "forks"))
        task->forks = 1;
    else if (accept(reader, "hooks"))
        read_masks(reader, task->hooks, COUNT_OF(task->hooks), TASK_HOOK_COUNT);
    else if (accept(reader, "serves"))
        task->serves = (uint8_t)(find_plugin(reader, next_word(reader)) + 1);
    else if (task->serves != 0 && accept(reader, "health"))
        task->health_ms = next_count(reader, HOUR_MS);
    else
        reader->failed = true;
}

/* "a/name": the alloc, and the name of something new in it. */
static struct sim_alloc *next_member(struct reader *reader, char *ret_name)
{
    char word[SIM_LINE_BYTES];

    (void)text_copy(word, sizeof(word), next_word(reader)); /* a line is no longer */
    char *slash = strchr(word, '/');
    if (slash == NULL) {
        reader->failed = true;
        return &reader->script->allocs[0];
    }
    *slash = '\0';
    next_name(reader, slash + 1, ret_name);
    return &reader->script->allocs[(unsigned)find_alloc(reader, word)];
}

static void read_task(struct reader *reader)
{
    char name[SIM_NAME_SIZE] = "";
    struct sim_alloc *alloc = next_member(reader, name);
    struct sim_task task = sim_task_default(name);
    size_t a = (size_t)(alloc - reader->script->allocs);

    for (unsigned i = 0; i < alloc->tasks_count; i++)
        is_new(reader, "task", name, alloc->tasks[i].name, reader->lines.tasks[a][i]);
    while (reader->at < reader->count && !reader->failed)
        read_task_word(reader, &task);
    struct sim_whom other;
    if (!reader->failed && task.serves != 0 &&
        sim_plugin_task(reader->script, task.serves - 1, &other))
        refuse(reader, "plugin \"%s\" is another task's",
               reader->script->plugins[task.serves - 1].name);
    if (alloc->tasks_count == SIM_TASKS_MAX)
        refuse(reader, "the alloc has %d tasks already", SIM_TASKS_MAX);
    if (reader->failed)
        return;
    reader->lines.tasks[a][alloc->tasks_count] = reader->number;
    alloc->tasks[alloc->tasks_count++] = task;
}

static void read_claim(struct reader *reader)
{
    struct sim_claim claim = {.name = ""};
    struct sim_alloc *alloc = next_member(reader, claim.name);

    for (unsigned i = 0; i < alloc->claims_count; i++) {
        if (text_equal(claim.name, alloc->claims[i].name))
            refuse(reader, "claim \"%s\" is there already", claim.name);
    }
    reader->failed |= !accept(reader, "plugin");
    claim.plugin = (uint8_t)find_plugin(reader, next_word(reader));
    if (!reader->failed && reader->script->plugins[claim.plugin].of != 0)
        refuse(reader, "claim \"%s\" names an instance, and not its plugin", claim.name);
    reader->failed |= !accept(reader, "disk");
    claim.disk = (uint8_t)next_count(reader, SIM_DISKS_MAX - 1);
    claim.exclusive = accept(reader, "exclusive");
    if (alloc->claims_count == SIM_VOLUMES_MAX)
        refuse(reader, "the alloc has %d claims already", SIM_VOLUMES_MAX);
    if (!reader->failed)
        alloc->claims[alloc->claims_count++] = claim;
}

/* "job j a b count 2 again 1 system parallel 1": the groups are allocs that come before it. */
static void read_job(struct reader *reader)
{
    struct sim_script *script = reader->script;
    struct sim_job job = {.count = 1};

    next_name(reader, next_word(reader), job.name);
    for (unsigned i = 0; i < script->jobs_count; i++)
        is_new(reader, "job", job.name, script->jobs[i].name, reader->lines.jobs[i]);
    while (reader->at < reader->count && !reader->failed) {
        if (accept(reader, "count"))
            job.count = (uint8_t)next_count(reader, SIM_COUNT_MAX);
        else if (accept(reader, "again"))
            job.again = (uint8_t)next_count(reader, UINT8_MAX);
        else if (accept(reader, "system"))
            job.system = 1;
        else if (accept(reader, "parallel"))
            job.parallel = (uint8_t)next_count(reader, SIM_COUNT_MAX);
        else
            job.groups |= (uint8_t)(1u << (unsigned)find_alloc(reader, next_word(reader)));
    }
    for (unsigned i = 0, first = 0; i < script->allocs_count; i++) {
        if (((unsigned)job.groups >> i & 1u) == 0)
            continue;
        first = first == 0 ? i + 1 : first;
        if (script->allocs[i].batch != script->allocs[first - 1].batch)
            refuse(reader, "one of its groups is batch, another is not");
    }
    if (script->jobs_count == SIM_JOBS_MAX)
        refuse(reader, "there are %d jobs already", SIM_JOBS_MAX);
    if (job.groups == 0)
        refuse(reader, "the job has no group: name the allocs that it is of");
    if (reader->failed)
        return;
    reader->lines.jobs[script->jobs_count] = reader->number;
    script->jobs[script->jobs_count++] = job;
}

static void read_plugin(struct reader *reader)
{
    struct sim_script *script = reader->script;
    struct sim_plugin plugin = {.name = ""};

    next_name(reader, next_word(reader), plugin.name);
    for (unsigned i = 0; i < script->plugins_count; i++) {
        if (text_equal(plugin.name, script->plugins[i].name))
            refuse(reader, "plugin \"%s\" is there already", plugin.name);
    }
    if (accept(reader, "of"))
        plugin.of = (uint8_t)(find_plugin(reader, next_word(reader)) + 1);
    plugin.stages = accept(reader, "stages");
    if (!reader->failed && plugin.of != 0 && script->plugins[plugin.of - 1].of != 0)
        refuse(reader, "plugin \"%s\" is an instance of an instance", plugin.name);
    if (script->plugins_count == SIM_PLUGINS_MAX)
        refuse(reader, "there are %d plugins already", SIM_PLUGINS_MAX);
    if (!reader->failed)
        script->plugins[script->plugins_count++] = plugin;
}

static struct sim_whom find_job(struct reader *reader, const char *name)
{
    struct sim_whom whom = {.kind = MACHINE_KIND_COUNT, .alloc = -1, .member = -1};

    for (int8_t i = 0; i < reader->script->jobs_count; i++) {
        if (text_equal(reader->script->jobs[i].name, name))
            whom.member = i;
    }
    reader->failed |= whom.member < 0;
    return whom;
}

static struct sim_whom next_whom(struct reader *reader, enum sim_takes takes)
{
    switch (takes) {
    case TAKES_NONE:
        break;
    case TAKES_ALLOC:
        return whom_of(reader, MACHINE_ALLOC, next_word(reader));
    case TAKES_TASK:
        return whom_of(reader, MACHINE_TASK, next_word(reader));
    case TAKES_CLAIM:
        return whom_of(reader, MACHINE_VOLUME, next_word(reader));
    case TAKES_PLUGIN:
        return whom_of(reader, MACHINE_PLUGIN, next_word(reader));
    case TAKES_RECORD:
        return next_machine(reader);
    case TAKES_JOB:
        return find_job(reader, next_word(reader));
    }
    return (struct sim_whom){0};
}

/* The argument of ACTION, from a world that it leaves fit to come to rest. */
static int64_t next_argument(struct reader *reader, unsigned action)
{
    if (action == SIM_DO_JUMP)
        return next_within(reader, -JUMP_MAX_MS, JUMP_MAX_MS);
    return next_within(reader, 0,
                       action == SIM_DO_EXIT     ? 255
                       : action == SIM_DO_COUNT  ? SIM_COUNT_MAX
                       : action == SIM_DO_UPDATE ? SIM_TIMES_MAX
                       : action == SIM_DO_TUNE   ? SIM_TIMES_MAX
                       : action == SIM_DO_CHECK  ? (1 << SIM_CHECKS_MAX) - 1
                                                 : HOUR_MS);
}

static void read_action(struct reader *reader, struct sim_step *step)
{
    const char *word = next_word(reader);
    unsigned action = 0;

    while (action < SIM_ACTION_COUNT && !text_equal(sim_action_name(action), word))
        action++;
    if (action == SIM_ACTION_COUNT) {
        reader->failed = true;
        return;
    }
    step->action = (uint8_t)action;
    step->whom = next_whom(reader, sim_action_takes(action));
    if (action == SIM_DO_SERVER)
        step->number = next_of(reader, sim_server_words, COUNT_OF(sim_server_words));
    else if (reader->at < reader->count)
        step->number = next_argument(reader, action);
}

static void add_step(struct reader *reader, const struct sim_step *step)
{
    struct sim_script *script = reader->script;

    if (script->steps_count == SIM_STEPS_MAX)
        refuse(reader, "there are %d steps already", SIM_STEPS_MAX);
    if (reader->failed)
        return;
    reader->lines.steps[script->steps_count] = reader->number;
    script->steps[script->steps_count++] = *step;
}

static void read_at(struct reader *reader)
{
    struct sim_step step = {.moment = SIM_AT, .at_ms = next_count(reader, DAY_MS)};

    read_action(reader, &step);
    add_step(reader, &step);
}

static void read_when(struct reader *reader)
{
    struct sim_step step = {.when = next_machine(reader), .nth = 1};

    if (reader->failed)
        return;
    step.state = next_state(reader, step.when.kind);
    if (accept(reader, "nth"))
        step.nth = (uint8_t)next_within(reader, 1, UINT8_MAX);
    step.moment = (uint8_t)next_of(reader, sim_moment_words, COUNT_OF(sim_moment_words));
    reader->failed |= step.moment == SIM_AT;
    read_action(reader, &step);
    add_step(reader, &step);
}

static unsigned next_fault(struct reader *reader)
{
    const char *word = next_word(reader);

    for (unsigned i = 1; i < SIM_FAULT_COUNT; i++) {
        if (text_equal(sim_fault_name(i), word))
            return i;
    }
    reader->failed = true;
    return 0;
}

static void read_fate(struct reader *reader)
{
    struct sim_script *script = reader->script;
    struct sim_fate fate = {.fault = (uint8_t)next_fault(reader)};

    if (accept(reader, "commit")) {
        fate.whom = (struct sim_whom){MACHINE_KIND_COUNT, -1, -1};
        reader->failed |= sim_fault_place(fate.fault) != SIM_PLACE_COMMIT;
    } else {
        fate.whom = next_machine(reader);
        if (reader->failed)
            return;
        fate.effect = next_effect(reader, fate.whom.kind);
        reader->failed |= !sim_can_meet(fate.whom.kind, fate.effect, fate.fault);
    }
    fate.nth = (uint16_t)next_count(reader, UINT16_MAX);
    if (accept(reader, "ms"))
        fate.ms = (uint32_t)next_count(reader, HOUR_MS);
    if (script->fates_count == SIM_FATES_MAX)
        refuse(reader, "there are %d fates already", SIM_FATES_MAX);
    if (!reader->failed)
        script->fates[script->fates_count++] = fate;
}

static uint8_t next_event(struct reader *reader, uint8_t kind)
{
    const struct fsm_def *def = fsm_definition((enum machine_kind)kind);
    const char *word = next_word(reader);

    for (uint8_t i = 0; i < def->events_count; i++) {
        if (text_equal(def->events[i].name, word))
            return i;
    }
    reader->failed = true;
    return 0;
}

/* Messages between machines and their own timers stay in the core. */
static bool is_performed(uint8_t kind, uint8_t effect)
{
    uint8_t lane = fsm_definition((enum machine_kind)kind)->effects[effect].lane;

    return lane != LANE_SEND && lane != LANE_CLOCK;
}

/* "enters task a/main DEAD" */
static struct sim_fact next_fact(struct reader *reader)
{
    struct sim_fact fact = {.kind = 0};
    const char *word = next_word(reader);

    while (fact.kind < SIM_FACT_COUNT && !text_equal(sim_fact_words[fact.kind].word, word))
        fact.kind++;
    reader->failed |= fact.kind == SIM_FACT_COUNT;
    if (reader->failed)
        return (struct sim_fact){0};
    fact.whom = next_whom(reader, sim_fact_words[fact.kind].takes);
    if (reader->failed)
        return fact;
    switch (sim_fact_words[fact.kind].detail) {
    case DETAIL_NONE:
        break;
    case DETAIL_STATE:
        fact.detail = next_state(reader, fact.whom.kind);
        break;
    case DETAIL_EFFECT:
        fact.detail = next_effect(reader, fact.whom.kind);
        reader->failed |= !is_performed(fact.whom.kind, fact.detail);
        break;
    case DETAIL_EVENT:
        fact.detail = next_event(reader, fact.whom.kind);
        break;
    case DETAIL_STATUS:
        fact.detail = (uint8_t)next_of(reader, sim_status_words, COUNT_OF(sim_status_words));
        break;
    case DETAIL_NOTE:
        fact.detail = (uint8_t)next_of(reader, sim_note_words, COUNT_OF(sim_note_words));
        break;
    }
    return fact;
}

static void read_count(struct reader *reader, struct sim_expect *expect)
{
    expect->fact = next_fact(reader);
    if (accept(reader, sim_relation_words[SIM_AT_MOST]))
        expect->relation = SIM_AT_MOST;
    else if (accept(reader, sim_relation_words[SIM_AT_LEAST]))
        expect->relation = SIM_AT_LEAST;
    expect->number = (int64_t)next_count(reader, UINT32_MAX);
    if (accept(reader, "since"))
        expect->since = (uint8_t)next_count(reader, UINT8_MAX);
}

/* What follows the question and whom it is about. */
static void read_answer(struct reader *reader, struct sim_expect *expect)
{
    switch ((enum sim_question)expect->question) {
    case SIM_ASKS_COUNT:
        read_count(reader, expect);
        return;
    case SIM_ASKS_ORDER:
        expect->fact = next_fact(reader);
        reader->failed |= !accept(reader, "then");
        expect->then = next_fact(reader);
        return;
    case SIM_ASKS_STATE:
        expect->number = accept(reader, "absent") ? -1 : next_state(reader, expect->fact.whom.kind);
        return;
    case SIM_ASKS_EXIT:
        expect->number = accept(reader, "unknown") ? -1 : (int64_t)next_count(reader, 255);
        return;
    case SIM_ASKS_STATUS:
        expect->number = next_of(reader, sim_status_words, COUNT_OF(sim_status_words));
        return;
    case SIM_ASKS_HEALTH:
        expect->number = next_of(reader, sim_health_words, COUNT_OF(sim_health_words));
        return;
    case SIM_ASKS_ALIVE:
    case SIM_ASKS_MOUNTED:
    case SIM_ASKS_STAGED:
    case SIM_ASKS_CLAIMED:
        expect->number = accept(reader, "yes");
        reader->failed |= expect->number == 0 && !accept(reader, "no");
        return;
    case SIM_ASKS_LIVE:
    case SIM_ASKS_KEPT:
    case SIM_ASKS_JOB:
        expect->number = next_number(reader);
        return;
    case SIM_QUESTION_COUNT:
        break;
    }
    unreachable("question");
}

static void read_expect(struct reader *reader, bool always)
{
    struct sim_script *script = reader->script;
    struct sim_expect expect = {.question = SIM_ASKS_ORDER, .always = always};

    while (expect.question < SIM_QUESTION_COUNT &&
           !accept(reader, sim_question_words[expect.question].word))
        expect.question++;
    if (expect.question == SIM_QUESTION_COUNT)
        expect.question = SIM_ASKS_COUNT; /* it begins with the fact */
    expect.fact.whom = next_whom(reader, sim_question_words[expect.question].takes);
    if (script->expects_count == SIM_EXPECTS_MAX)
        refuse(reader, "there are %d expectations already", SIM_EXPECTS_MAX);
    if (reader->failed)
        return;
    read_answer(reader, &expect);
    reader->lines.expects[script->expects_count] = reader->number;
    script->expects[script->expects_count++] = expect;
}

/* "die 3 0 17": the first incarnation at its 3rd crash point, the third at its 17th. */
static void read_cuts(struct reader *reader)
{
    for (int i = 0; i < SIM_CUTS_MAX && reader->at < reader->count; i++)
        reader->script->cuts[i] = (uint32_t)next_count(reader, UINT32_MAX);
}

static void read_line(struct reader *reader)
{
    struct sim_script *script = reader->script;

    if (accept(reader, "mode"))
        script->server = (uint8_t)next_of(reader, sim_mode_words, COUNT_OF(sim_mode_words));
    else if (accept(reader, "seed"))
        reader->failed |= !text_to_u64(next_word(reader), &script->seed);
    else if (accept(reader, "heal"))
        script->heal_ms = next_count(reader, DAY_MS);
    else if (accept(reader, "latency"))
        script->latency = text_equal(next_word(reader), "drawn");
    else if (accept(reader, "batching"))
        script->batching = text_equal(next_word(reader), "drawn");
    else if (accept(reader, "cut"))
        script->fate_of_cut = (uint8_t)next_of(reader, sim_cut_words, COUNT_OF(sim_cut_words));
    else if (accept(reader, "varied"))
        script->varied = 1;
    else if (accept(reader, "down"))
        script->cut_down_ms = (uint32_t)next_count(reader, HOUR_MS);
    else if (accept(reader, "die"))
        read_cuts(reader);
    else if (accept(reader, "rate")) {
        unsigned fault = next_fault(reader);
        script->rates[fault] = (uint16_t)next_count(reader, 1024);
    } else if (accept(reader, "alloc"))
        read_alloc(reader);
    else if (accept(reader, "task"))
        read_task(reader);
    else if (accept(reader, "claim"))
        read_claim(reader);
    else if (accept(reader, "plugin"))
        read_plugin(reader);
    else if (accept(reader, "job"))
        read_job(reader);
    else if (accept(reader, "kept"))
        script->kept = (uint8_t)next_count(reader, UINT8_MAX);
    else if (accept(reader, "log"))
        script->log_max = (uint16_t)next_within(reader, 1, UINT16_MAX);
    else if (accept(reader, "at"))
        read_at(reader);
    else if (accept(reader, "when"))
        read_when(reader);
    else if (accept(reader, "fate"))
        read_fate(reader);
    else if (accept(reader, "expect"))
        read_expect(reader, false);
    else if (accept(reader, "always"))
        read_expect(reader, true);
    else
        reader->failed = true;
    reader->failed |= reader->at != reader->count;
}

static void split(struct reader *reader)
{
    char *save = NULL;

    reader->count = reader->at = 0;
    for (char *word = strtok_r(reader->line, " \t", &save);
         word != NULL && word[0] != '#' && reader->count < WORDS_MAX;
         word = strtok_r(NULL, " \t", &save))
        reader->words[reader->count++] = word;
}

int sim_script_read(const char *text, struct sim_script *ret_script, struct err *err)
{
    struct sim_script script = sim_script_default();
    struct reader reader = {.script = &script};

    for (int line = 1; *text != '\0'; line++) {
        size_t length = strcspn(text, "\n");
        if (length >= sizeof(reader.line))
            return err_set(err, ERR_INVALID, "line %d is too long", line);
        memcpy(reader.line, text, length);
        reader.line[length] = '\0';
        text += length + (text[length] == '\n');
        split(&reader);
        if (reader.count == 0)
            continue;
        reader.number = line;
        read_line(&reader);
        if (reader.failed && reader.why[0] != '\0')
            return err_set(err, ERR_INVALID, "line %d: %s", line, reader.why);
        if (reader.failed)
            return err_set(err, ERR_INVALID, "line %d (\"%s ...\") is not understood at word %d",
                           line, reader.words[0], reader.at);
    }
    int code = sim_script_sound(&script, &reader.lines, err);
    if (code == 0)
        *ret_script = script;
    return code;
}
