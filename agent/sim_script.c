/*
 * Scripts as text: one line for each thing that is or happens.
 *
 * The same lists that make the enums give the words, so what can be scripted can be written and
 * read again.  Printing a script and reading it gives the same script.
 */
#include "agent/sim_script.h"

#include "fsm/alloc.h"
#include "fsm/plugin.h"
#include "fsm/task.h"
#include "fsm/volume.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- names --- */

const char *sim_fault_name(unsigned fault)
{
    static const char *const names[SIM_FAULT_COUNT] = {"none",
#define X(name, text, place, what) [SIM_##name] = text,
                                                       SIM_FAULTS(X)
#undef X
    };

    return fault < SIM_FAULT_COUNT ? names[fault] : "?";
}

const char *sim_fault_what(unsigned fault)
{
    static const char *const whats[SIM_FAULT_COUNT] = {"",
#define X(name, text, place, what) [SIM_##name] = what,
                                                       SIM_FAULTS(X)
#undef X
    };

    return fault < SIM_FAULT_COUNT ? whats[fault] : "?";
}

enum sim_place sim_fault_place(unsigned fault)
{
    static const uint8_t places[SIM_FAULT_COUNT] = {0,
#define X(name, text, place, what) [SIM_##name] = SIM_PLACE_##place,
                                                    SIM_FAULTS(X)
#undef X
    };

    check(fault < SIM_FAULT_COUNT);
    return (enum sim_place)places[fault];
}

enum takes { TAKES_NONE, TAKES_ALLOC, TAKES_TASK, TAKES_CLAIM, TAKES_PLUGIN, TAKES_RECORD };

static const struct action {
    const char *name;
    enum takes takes;
} actions[SIM_ACTION_COUNT] = {
#define X(name, takes, text) {text, TAKES_##takes},
    SIM_ACTIONS(X)
#undef X
};

const char *sim_action_name(unsigned action)
{
    return action < SIM_ACTION_COUNT ? actions[action].name : "?";
}

bool sim_action_names_one(unsigned action)
{
    check(action < SIM_ACTION_COUNT);
    return actions[action].takes != TAKES_NONE;
}

static const char *const server_names[SIM_SERVER_COUNT] = {"up",    "down",    "blackhole",
                                                           "stale", "partial", "slow"};
static const char *const moment_names[] = {"at", "before", "after", "then"};
static const char *const lifecycle_names[] = {"main", "prestart", "poststart", "poststop"};
static const char *const cut_names[] = {"drawn", "happens", "not"};
static const char *const mode_names[] = {"alone", "server"};

const char *sim_server_name(unsigned server)
{
    return server < SIM_SERVER_COUNT ? server_names[server] : "?";
}

struct machine_id sim_whom_id(const struct sim_script *script, const struct sim_whom *whom)
{
    if (whom->kind == MACHINE_PLUGIN)
        return machine_id_join(MACHINE_PLUGIN, "csi", script->plugins[(unsigned)whom->member].name);
    const struct sim_alloc *alloc = &script->allocs[(unsigned)whom->alloc];
    if (whom->kind == MACHINE_ALLOC)
        return machine_id_make(MACHINE_ALLOC, alloc->name);
    if (whom->kind == MACHINE_TASK)
        return machine_id_join(MACHINE_TASK, alloc->name,
                               alloc->tasks[(unsigned)whom->member].name);
    return machine_id_join(MACHINE_VOLUME, alloc->name, alloc->claims[(unsigned)whom->member].name);
}

void sim_whom_name(const struct sim_script *script, const struct sim_whom *whom, char *to,
                   size_t size)
{
    struct machine_id id = sim_whom_id(script, whom);

    (void)text_format(to, size, "%s",
                      whom->kind == MACHINE_PLUGIN ? machine_id_name(&id) : id.text); /* bounded */
}

/* --- defaults: what a line does not say --- */

struct sim_task sim_task_default(const char *name)
{
    struct sim_task task = {
        .dies_ms = 5,
        .interval_ms = 60000,
        .backoff_ms = 1000,
        .kill_ms = 2000,
        .attempts = 1,
        .hooks = {(1u << TASK_HOOK_COUNT) - 1, 0, 0, 0, 1u << TASK_HOOK_TASK_DIR},
    };

    (void)text_copy(task.name, sizeof(task.name), name); /* cut: then not found again */
    return task;
}

struct sim_alloc sim_alloc_default(const char *name)
{
    struct sim_alloc alloc = {
        .hooks = {1u << ALLOC_HOOK_ALLOC_DIR, 0, 0, 1u << ALLOC_HOOK_ALLOC_DIR},
    };

    (void)text_copy(alloc.name, sizeof(alloc.name), name); /* cut: then not found again */
    return alloc;
}

static struct sim_script script_default(void)
{
    return (struct sim_script){.seed = 1, .heal_ms = 60000, .cut_down_ms = 100};
}

/* --- reading --- */

enum { WORDS_MAX = 32, LINE_MAX_BYTES = 256 };

struct reader {
    struct sim_script *script;
    char line[LINE_MAX_BYTES];
    char *words[WORDS_MAX];
    int count, at;
    bool failed;
};

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

static uint64_t next_count(struct reader *reader)
{
    int64_t value = next_number(reader);

    reader->failed |= value < 0;
    return value < 0 ? 0 : (uint64_t)value;
}

/* The place of WORD in a list of names. */
static unsigned in_list(struct reader *reader, const char *word, const char *const *names,
                        size_t count)
{
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
    char name[LINE_MAX_BYTES];

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

static void read_masks(struct reader *reader, uint32_t *masks, int count)
{
    for (int i = 0; i < count; i++)
        masks[i] = (uint32_t)next_count(reader);
}

static void read_alloc(struct reader *reader)
{
    struct sim_script *script = reader->script;
    struct sim_alloc alloc = sim_alloc_default(next_word(reader));

    while (reader->at < reader->count && !reader->failed) {
        if (accept(reader, "batch"))
            alloc.batch = 1;
        else if (accept(reader, "after"))
            alloc.after = (uint8_t)(find_alloc(reader, next_word(reader)) + 1);
        else if (accept(reader, "delay"))
            alloc.delay_ms = next_count(reader);
        else if (accept(reader, "hooks"))
            read_masks(reader, alloc.hooks, COUNT_OF(alloc.hooks));
        else
            reader->failed = true;
    }
    reader->failed |= script->allocs_count == SIM_ALLOCS_MAX;
    if (!reader->failed)
        script->allocs[script->allocs_count++] = alloc;
}

static void read_task_word(struct reader *reader, struct sim_task *task)
{
    if (accept(reader, "runs"))
        task->runs_ms = next_count(reader);
    else if (accept(reader, "dies"))
        task->dies_ms = next_count(reader);
    else if (accept(reader, "exits"))
        task->exits = (int32_t)next_number(reader);
    else if (accept(reader, "signal"))
        task->signal = (int32_t)next_number(reader);
    else if (accept(reader, "attempts"))
        task->attempts = (uint32_t)next_count(reader);
    else if (accept(reader, "interval"))
        task->interval_ms = next_count(reader);
    else if (accept(reader, "backoff"))
        task->backoff_ms = next_count(reader);
    else if (accept(reader, "kill"))
        task->kill_ms = next_count(reader);
    else if (accept(reader, "delay"))
        task->delay_ms = next_count(reader);
    else if (accept(reader, "lifecycle"))
        task->lifecycle =
            (uint8_t)in_list(reader, next_word(reader), lifecycle_names, COUNT_OF(lifecycle_names));
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
        read_masks(reader, task->hooks, COUNT_OF(task->hooks));
    else
        reader->failed = true;
}

/* "a/name": the alloc, and the name of something new in it. */
static struct sim_alloc *next_member(struct reader *reader, char *ret_name, size_t size)
{
    char word[LINE_MAX_BYTES];

    (void)text_copy(word, sizeof(word), next_word(reader)); /* a line is no longer */
    char *slash = strchr(word, '/');
    if (slash == NULL) {
        reader->failed = true;
        return &reader->script->allocs[0];
    }
    *slash = '\0';
    reader->failed |= !text_copy(ret_name, size, slash + 1);
    return &reader->script->allocs[(unsigned)find_alloc(reader, word)];
}

static void read_task(struct reader *reader)
{
    char name[SIM_NAME_SIZE] = "";
    struct sim_alloc *alloc = next_member(reader, name, sizeof(name));
    struct sim_task task = sim_task_default(name);

    while (reader->at < reader->count && !reader->failed)
        read_task_word(reader, &task);
    reader->failed |= alloc->tasks_count == SIM_TASKS_MAX;
    if (!reader->failed)
        alloc->tasks[alloc->tasks_count++] = task;
}

static void read_claim(struct reader *reader)
{
    struct sim_claim claim = {.name = ""};
    struct sim_alloc *alloc = next_member(reader, claim.name, sizeof(claim.name));

    reader->failed |= !accept(reader, "plugin");
    claim.plugin = (uint8_t)find_plugin(reader, next_word(reader));
    reader->failed |= !accept(reader, "disk");
    claim.disk = (uint8_t)next_count(reader);
    claim.exclusive = accept(reader, "exclusive");
    reader->failed |= alloc->claims_count == SIM_VOLUMES_MAX || claim.disk >= SIM_DISKS_MAX;
    if (!reader->failed)
        alloc->claims[alloc->claims_count++] = claim;
}

static void read_plugin(struct reader *reader)
{
    struct sim_script *script = reader->script;
    struct sim_plugin plugin = {.name = ""};

    reader->failed |= !text_copy(plugin.name, sizeof(plugin.name), next_word(reader));
    plugin.stages = accept(reader, "stages");
    reader->failed |= script->plugins_count == SIM_PLUGINS_MAX;
    if (!reader->failed)
        script->plugins[script->plugins_count++] = plugin;
}

static void read_action(struct reader *reader, struct sim_step *step)
{
    const char *word = next_word(reader);
    unsigned action = 0;

    while (action < SIM_ACTION_COUNT && !text_equal(actions[action].name, word))
        action++;
    if (action == SIM_ACTION_COUNT) {
        reader->failed = true;
        return;
    }
    step->action = (uint8_t)action;
    switch (actions[action].takes) {
    case TAKES_NONE:
        break;
    case TAKES_ALLOC:
        step->whom = whom_of(reader, MACHINE_ALLOC, next_word(reader));
        break;
    case TAKES_TASK:
        step->whom = whom_of(reader, MACHINE_TASK, next_word(reader));
        break;
    case TAKES_CLAIM:
        step->whom = whom_of(reader, MACHINE_VOLUME, next_word(reader));
        break;
    case TAKES_PLUGIN:
        step->whom = whom_of(reader, MACHINE_PLUGIN, next_word(reader));
        break;
    case TAKES_RECORD:
        step->whom = next_machine(reader);
        break;
    }
    if (action == SIM_DO_SERVER)
        step->number = in_list(reader, next_word(reader), server_names, COUNT_OF(server_names));
    else if (reader->at < reader->count)
        step->number = next_number(reader);
}

static void add_step(struct reader *reader, const struct sim_step *step)
{
    struct sim_script *script = reader->script;

    reader->failed |= script->steps_count == SIM_STEPS_MAX;
    if (!reader->failed)
        script->steps[script->steps_count++] = *step;
}

static void read_at(struct reader *reader)
{
    struct sim_step step = {.moment = SIM_AT, .at_ms = next_count(reader)};

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
        step.nth = (uint8_t)next_count(reader);
    step.moment = (uint8_t)in_list(reader, next_word(reader), moment_names, COUNT_OF(moment_names));
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

    fate.whom = next_machine(reader);
    if (reader->failed)
        return;
    fate.effect = next_effect(reader, fate.whom.kind);
    fate.nth = (uint16_t)next_count(reader);
    if (accept(reader, "ms"))
        fate.ms = (uint32_t)next_count(reader);
    reader->failed |= script->fates_count == SIM_FATES_MAX;
    if (!reader->failed)
        script->fates[script->fates_count++] = fate;
}

/* "die 3 0 17": the first incarnation at its 3rd crash point, the third at its 17th. */
static void read_cuts(struct reader *reader)
{
    for (int i = 0; i < SIM_CUTS_MAX && reader->at < reader->count; i++)
        reader->script->cuts[i] = (uint16_t)next_count(reader);
}

static void read_line(struct reader *reader)
{
    struct sim_script *script = reader->script;

    if (accept(reader, "mode"))
        script->server =
            (uint8_t)in_list(reader, next_word(reader), mode_names, COUNT_OF(mode_names));
    else if (accept(reader, "seed"))
        reader->failed |= !text_to_u64(next_word(reader), &script->seed);
    else if (accept(reader, "heal"))
        script->heal_ms = next_count(reader);
    else if (accept(reader, "latency"))
        script->latency = text_equal(next_word(reader), "drawn");
    else if (accept(reader, "batching"))
        script->batching = text_equal(next_word(reader), "drawn");
    else if (accept(reader, "cut"))
        script->fate_of_cut =
            (uint8_t)in_list(reader, next_word(reader), cut_names, COUNT_OF(cut_names));
    else if (accept(reader, "down"))
        script->cut_down_ms = (uint32_t)next_count(reader);
    else if (accept(reader, "die"))
        read_cuts(reader);
    else if (accept(reader, "rate")) {
        unsigned fault = next_fault(reader);
        script->rates[fault] = (uint16_t)next_count(reader);
    } else if (accept(reader, "alloc"))
        read_alloc(reader);
    else if (accept(reader, "task"))
        read_task(reader);
    else if (accept(reader, "claim"))
        read_claim(reader);
    else if (accept(reader, "plugin"))
        read_plugin(reader);
    else if (accept(reader, "at"))
        read_at(reader);
    else if (accept(reader, "when"))
        read_when(reader);
    else if (accept(reader, "fate"))
        read_fate(reader);
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
    struct sim_script script = script_default();
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
        read_line(&reader);
        if (reader.failed)
            return err_set(err, ERR_INVALID, "line %d (\"%s ...\") is not understood at word %d",
                           line, reader.words[0], reader.at);
    }
    *ret_script = script;
    return 0;
}

/* --- printing --- */

#define SAY(...)                                                                                   \
    do {                                                                                           \
        char line_[LINE_MAX_BYTES];                                                                \
        (void)snprintf(line_, sizeof(line_), __VA_ARGS__);                                         \
        print(ctx, line_);                                                                         \
    } while (0)

static void print_task(const struct sim_alloc *alloc, const struct sim_task *task, fsm_print *print,
                       void *ctx)
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
        SAY(" lifecycle %s", lifecycle_names[task->lifecycle]);
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
    if (memcmp(alloc->hooks, usual.hooks, sizeof(usual.hooks)) != 0)
        SAY(" hooks %u %u %u %u", alloc->hooks[0], alloc->hooks[1], alloc->hooks[2],
            alloc->hooks[3]);
    SAY("\n");
    for (unsigned i = 0; i < alloc->tasks_count; i++)
        print_task(alloc, &alloc->tasks[i], print, ctx);
    for (unsigned i = 0; i < alloc->claims_count; i++)
        SAY("claim %s/%s plugin %s disk %u%s\n", alloc->name, alloc->claims[i].name,
            script->plugins[alloc->claims[i].plugin].name, alloc->claims[i].disk,
            alloc->claims[i].exclusive ? " exclusive" : "");
}

static void print_step(const struct sim_script *script, const struct sim_step *step,
                       fsm_print *print, void *ctx)
{
    const struct action *action = &actions[step->action];
    char name[2 * SIM_NAME_SIZE + 2];

    if (step->moment == SIM_AT) {
        SAY("at %llu", (unsigned long long)step->at_ms);
    } else {
        const struct fsm_def *def = fsm_definition((enum machine_kind)step->when.kind);
        sim_whom_name(script, &step->when, name, sizeof(name));
        SAY("when %s %s %s", def->name, name, fsm_state_name(def, step->state));
        if (step->nth != 1)
            SAY(" nth %u", step->nth);
        SAY(" %s", moment_names[step->moment]);
    }
    SAY(" %s", action->name);
    if (action->takes != TAKES_NONE) {
        sim_whom_name(script, &step->whom, name, sizeof(name));
        if (action->takes == TAKES_RECORD)
            SAY(" %s", machine_kind_name((enum machine_kind)step->whom.kind));
        SAY(" %s", name);
    }
    if (step->action == SIM_DO_SERVER)
        SAY(" %s", sim_server_name((unsigned)step->number));
    else if (step->number != 0)
        SAY(" %lld", (long long)step->number);
    SAY("\n");
}

void sim_script_print(const struct sim_script *script, fsm_print *print, void *ctx)
{
    char name[2 * SIM_NAME_SIZE + 2];

    SAY("mode %s\n", mode_names[script->server]);
    SAY("seed %llu\nheal %llu\n", (unsigned long long)script->seed,
        (unsigned long long)script->heal_ms);
    if (script->latency)
        SAY("latency drawn\n");
    if (script->batching)
        SAY("batching drawn\n");
    if (script->fate_of_cut != 0)
        SAY("cut %s\n", cut_names[script->fate_of_cut]);
    if (script->cut_down_ms != 100)
        SAY("down %u\n", script->cut_down_ms);
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
        SAY("plugin %s%s\n", script->plugins[i].name, script->plugins[i].stages ? " stages" : "");
    for (unsigned i = 0; i < script->allocs_count; i++)
        print_alloc(script, &script->allocs[i], print, ctx);
    for (unsigned i = 0; i < script->steps_count; i++)
        print_step(script, &script->steps[i], print, ctx);
    for (unsigned i = 0; i < script->fates_count; i++) {
        const struct sim_fate *fate = &script->fates[i];
        const struct fsm_def *def = fsm_definition((enum machine_kind)fate->whom.kind);
        sim_whom_name(script, &fate->whom, name, sizeof(name));
        SAY("fate %s %s %s %s %u", sim_fault_name(fate->fault), def->name, name,
            fsm_effect_name(def, fate->effect), fate->nth);
        if (fate->ms != 0)
            SAY(" ms %u", fate->ms);
        SAY("\n");
    }
}
