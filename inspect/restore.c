/*
 * `restore`: what a restart of the daemon would do now.
 *
 * The very code of a restart (core/life.h) runs over a world in which a commit succeeds in memory
 * and an effect is only written down.
 */
#include "core/attempt.h"
#include "core/life.h"
#include "inspect/part.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A transition or an effect of the turn, in the order in which it came. */
struct foreseen {
    struct machine_id id;
    bool is_effect;
    uint16_t row;
    uint8_t effect, phase, hook;
    uint32_t generation, timeout_ms;
};

struct foresight {
    struct inspect *inspect; /* first: inspect_bad finds it here */
    struct life *life;
    struct life_start start;
    uint64_t now_ms;
    struct foreseen *items; /* owned */
    size_t count, size;
    uint64_t machines, effects, waits;
    int code; /* of the start */
    struct err err;
};

/* --- the world that only takes notes --- */

static struct foreseen *add(struct foresight *foresight, const struct machine_id *id)
{
    struct foreseen *item = list_more(foresight);

    *item = (struct foreseen){.id = *id};
    return item;
}

static int commit(void *ctx, const struct journal_batch *batch, struct err *err)
{
    (void)ctx; /* nothing is stored */
    (void)batch;
    (void)err;
    return 0;
}

/* What the restart says of damage. */
static void complain(void *ctx, enum say_level level, const char *room, const char *text)
{
    struct inspect *inspect = ((struct foresight *)ctx)->inspect;

    (void)room;
    if (level < SAY_WARN)
        return;
    inspect->damaged++;
    inspect_say(inspect, "%s", text);
}

static void perform(void *ctx, const struct effect *effect)
{
    struct foreseen *item = add(ctx, &effect->id);

    item->is_effect = true;
    item->effect = effect->kind;
    item->generation = effect->generation;
    item->timeout_ms = effect->timeout_ms;
    if (effect->record->kind == MACHINE_TASK) {
        item->phase = task_of(effect->record)->phase;
        item->hook = task_of(effect->record)->hook;
    } else if (effect->record->kind == MACHINE_ALLOC) {
        item->phase = alloc_of(effect->record)->phase;
        item->hook = alloc_of(effect->record)->hook;
    }
}

static void trace(void *ctx, const struct journal_event *event)
{
    add(ctx, &event->id)->row = event->row;
}

static uint64_t now(void *ctx, int64_t *ret_unix_ns)
{
    const struct foresight *foresight = ctx;
    const struct moment *last = &foresight->inspect->last;

    *ret_unix_ns = last->unix_ns + (int64_t)(foresight->now_ms - last->now_ms) * 1000000;
    return foresight->now_ms;
}

static uint64_t draw(void *ctx)
{
    (void)ctx; /* the same foresight each time */
    return 1;
}

static void sweep(void *ctx)
{
    const struct foresight *foresight = ctx;

    life_swept(foresight->life, true); /* nothing is there to be swept */
}

static void live(void *ctx)
{
    struct foresight *foresight = ctx;

    foresight->code = life_start(foresight->life, &foresight->start, &foresight->err);
    for (int kind = 0; kind < MACHINE_KIND_COUNT; kind++)
        foresight->machines += core_count(life_core(foresight->life), (enum machine_kind)kind);
    while (foresight->code == 0 && life_turn(foresight->life))
        continue;
}

/* --- why a machine waits --- */

static const char *reason_of(enum machine_kind kind, uint8_t state)
{
    static const struct {
        uint8_t kind, state;
        const char *reason;
    } reasons[] = {
        {MACHINE_TASK, T_WAITING, "its turn in the lifecycle of the group"},
        {MACHINE_TASK, T_HELD, "a fresh desired state, since nothing new may start before it"},
        {MACHINE_TASK, T_RUNNING, "the end of the payload"},
        {MACHINE_TASK, T_BACKOFF, "the restart delay"},
        {MACHINE_TASK, T_DELAYING, "the rest of its shutdown_delay"},
        {MACHINE_TASK, T_STOPPING, "the end of the payload, or its kill timeout"},
        {MACHINE_TASK, T_DEAD, "the removal of its alloc"},
        {MACHINE_TASK, T_OWING, "the pause before stop hooks that failed are tried again"},
        {MACHINE_ALLOC, A_MOUNTING, "its volumes"},
        {MACHINE_ALLOC, A_RUNNING, "its tasks"},
        {MACHINE_ALLOC, A_REPLAYING, "the end of its tasks, which then start again"},
        {MACHINE_ALLOC, A_KILLING, "the end of its tasks"},
        {MACHINE_ALLOC, A_POSTSTOP, "its poststop tasks"},
        {MACHINE_ALLOC, A_RELEASING, "its volumes to be unmounted and released"},
        {MACHINE_ALLOC, A_DELAYING, "the rest of the group's shutdown_delay"},
        {MACHINE_ALLOC, A_TERMINAL, "its removal; the outcome stands"},
        {MACHINE_VOLUME, V_IDLE, "its alloc to want it"},
        {MACHINE_VOLUME, V_QUEUED, "the plugin to be ready and other claims' calls to end"},
        {MACHINE_VOLUME, V_READY, "its alloc to let go"},
        {MACHINE_VOLUME, V_BROKEN, "its alloc to give up"},
        {MACHINE_VOLUME, V_DRAINING, "the plugin and other claims, on the way back"},
        {MACHINE_PLUGIN, P_READY, "the next probe"},
        {MACHINE_PLUGIN, P_UNHEALTHY, "its recovery"},
        {MACHINE_PLUGIN, P_BACKOFF, "the pause before it is launched again"},
        {MACHINE_PLUGIN, P_REJECTED, "an operator: it is not what was asked for"},
        {MACHINE_PLUGIN, P_STOPPED, "its removal"},
    };

    for (size_t i = 0; i < COUNT_OF(reasons); i++) {
        if (reasons[i].kind == kind && reasons[i].state == state)
            return reasons[i].reason;
    }
    return "";
}

static void list_completions(const struct fsm_def *def, uint8_t effect, char *to, size_t size)
{
    const char *join = "";

    to[0] = '\0';
    for (uint8_t event = 0; event < def->events_count; event++) {
        if ((def->effects[effect].completions >> event & 1u) == 0)
            continue;
        (void)text_append(to, size, join);
        (void)text_append(to, size, fsm_event_name(def, event));
        join = " or ";
    }
}

/* What it waits for beside what its state waits for, NULL: nothing. */
static const char *limit_of(const struct machine *record)
{
    if (record->kind != MACHINE_ALLOC || record->state == A_DELAYING)
        return NULL;
    return record->deadline_ms == alloc_of(record)->run_until_ms ? "its max_run_duration is over"
           : record->deadline_ms == alloc_cut_off_at_ms(alloc_of(record))
               ? "it has had no contact to servers for its stop_on_client_after"
           : record->state <= A_RUNNING || record->state == A_REPLAYING
               ? "whether it is healthy is known"
               : NULL;
}

/* Tells each thing that a record waits for; the last part of the line behind "waits for". */
typedef void wait_cb(void *ctx, const char *text);

static void each_wait(const struct foresight *foresight, const struct machine *record, wait_cb *cb,
                      void *ctx)
{
    const struct fsm_def *def = fsm_definition((enum machine_kind)record->kind);
    const char *reason = reason_of((enum machine_kind)record->kind, record->state);
    char line[256], names[128], age[AGE_TEXT_SIZE];

    for (int lane = 0; lane < LANE_COUNT; lane++) {
        uint8_t effect = record->lane_effect[lane];
        if (effect == 0)
            continue;
        list_completions(def, effect, names, sizeof(names));
        (void)text_format(line, sizeof(line), "%s of %s", names, fsm_effect_name(def, effect));
        if (def->effects[effect].timeout_ms != 0) {
            inspect_print_age((int64_t)def->effects[effect].timeout_ms * 1000000, age);
            (void)text_append(line, sizeof(line), ", at most ");
            (void)text_append(line, sizeof(line), age);
        }
        cb(ctx, line);
    }
    if (record->deadline_ms != 0) {
        uint64_t left =
            record->deadline_ms > foresight->now_ms ? record->deadline_ms - foresight->now_ms : 0;
        inspect_print_age((int64_t)left * 1000000, age);
        const char *limit = limit_of(record);
        (void)text_format(line, sizeof(line), "TIMEOUT in %s%s%s", age,
                          reason[0] == '\0' && limit == NULL ? "" : ": ",
                          limit != NULL ? limit : reason);
        cb(ctx, line);
        if (limit == NULL)
            return;
    }
    if (reason[0] != '\0')
        cb(ctx, reason);
}

/* --- telling it --- */

static void describe_row(const struct fsm_def *def, uint16_t number, char *to, size_t size)
{
    const struct fsm_row *row = &def->rows[number];
    bool guarded = row->guard != 0;

    (void)text_format(to, size, "%s -%s%s%s%s-> %s", fsm_state_name(def, row->state),
                      fsm_event_name(def, row->event), guarded ? "[" : "",
                      guarded ? fsm_guard_name(def, row->guard) : "", guarded ? "]" : "",
                      fsm_state_name(def, row->next));
}

static void describe_effect(const struct fsm_def *def, const struct foreseen *item, char *to,
                            size_t size)
{
    bool task = def->kind == MACHINE_TASK;
    char part[128];

    (void)text_format(to, size, "%s", fsm_effect_name(def, item->effect));
    if (def->effects[item->effect].lane != LANE_HOOK)
        (void)text_format(part, sizeof(part), " for generation %u", item->generation);
    else if (item->hook == HOOK_NONE)
        (void)text_format(part, sizeof(part), ", of which phase %s has none",
                          hook_phase_name(item->phase));
    else
        (void)text_format(part, sizeof(part), " %s of phase %s",
                          task ? task_hook_name(item->hook) : alloc_hook_name(item->hook),
                          hook_phase_name(item->phase));
    if (def->effects[item->effect].lane < LANE_COUNT)
        (void)text_append(to, size, part);
}

struct telling {
    struct foresight *foresight;
    const char *comma;
};

static void put_wait(void *ctx, const char *text)
{
    struct telling *telling = ctx;
    struct inspect *inspect = telling->foresight->inspect;

    telling->foresight->waits++;
    if (!inspect->options.json) {
        (void)fprintf(inspect->options.out, "  waits    %s\n", text);
        return;
    }
    (void)fputs(telling->comma, inspect->options.out);
    inspect_json_string(inspect->options.out, text);
    telling->comma = ",";
}

static void put_rows(struct foresight *foresight, const struct machine_id *id)
{
    const struct fsm_def *def = fsm_definition((enum machine_kind)id->kind);
    struct inspect *inspect = foresight->inspect;
    bool json = inspect->options.json;
    const char *comma = "";
    char line[256];

    for (size_t i = 0; i < foresight->count; i++) {
        const struct foreseen *item = &foresight->items[i];
        if (item->is_effect || !machine_id_equal(&item->id, id))
            continue;
        describe_row(def, item->row, line, sizeof(line));
        if (json) {
            (void)fprintf(inspect->options.out, "%s\"%s\"", comma, line);
            comma = ",";
        } else {
            bool restore = def->rows[item->row].event == def->restore_event;
            (void)fprintf(inspect->options.out, "  %-8s %s\n", restore ? "takes" : "then", line);
        }
    }
}

static void put_effects(struct foresight *foresight, const struct machine_id *id)
{
    const struct fsm_def *def = fsm_definition((enum machine_kind)id->kind);
    struct inspect *inspect = foresight->inspect;
    const char *comma = "";
    char line[256];

    for (size_t i = 0; i < foresight->count; i++) {
        const struct foreseen *item = &foresight->items[i];
        if (!item->is_effect || !machine_id_equal(&item->id, id))
            continue;
        foresight->effects++;
        describe_effect(def, item, line, sizeof(line));
        if (inspect->options.json)
            (void)fprintf(inspect->options.out, "%s\"%s\"", comma, line);
        else
            (void)fprintf(inspect->options.out, "  performs %s\n", line);
        comma = ",";
    }
}

static bool put_machine(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct foresight *foresight = ctx;
    struct inspect *inspect = foresight->inspect;
    struct telling telling = {foresight, ""};
    const struct fsm_def *def = fsm_definition((enum machine_kind)id->kind);
    char name[ID_TEXT_SIZE], summary[256];

    inspect_print_id(id, name);
    inspect_print_summary(record, summary, sizeof(summary));
    if (!inspect->options.json) {
        (void)fprintf(inspect->options.out, "%s %s  %s\n", def->name, name, summary);
        put_rows(foresight, id);
        put_effects(foresight, id);
        each_wait(foresight, record, put_wait, &telling);
        return true;
    }
    (void)fprintf(inspect->options.out, "{\"kind\":\"%s\",\"id\":", def->name);
    inspect_json_string(inspect->options.out, id->text);
    (void)fprintf(inspect->options.out, ",\"state\":\"%s\",\"rows\":[",
                  fsm_state_name(def, record->state));
    put_rows(foresight, id);
    (void)fputs("],\"performs\":[", inspect->options.out);
    put_effects(foresight, id);
    (void)fputs("],\"waits\":[", inspect->options.out);
    each_wait(foresight, record, put_wait, &telling);
    (void)fputs("]}\n", inspect->options.out);
    return true;
}

/* Machines that the turn brought to their end have no record any more. */
static void put_gone(struct foresight *foresight)
{
    for (size_t i = 0; i < foresight->count; i++) {
        const struct foreseen *item = &foresight->items[i];
        const struct fsm_def *def = fsm_definition((enum machine_kind)item->id.kind);
        char name[ID_TEXT_SIZE], line[256];
        if (item->is_effect || core_find(life_core(foresight->life), &item->id) != NULL ||
            (def->states[def->rows[item->row].next].flags & FSM_FINAL) == 0 ||
            foresight->inspect->options.json)
            continue;
        inspect_print_id(&item->id, name);
        describe_row(def, item->row, line, sizeof(line));
        (void)fprintf(foresight->inspect->options.out, "%s %s  forgotten\n  takes    %s\n",
                      def->name, name, line);
    }
}

static int foresee(struct foresight *foresight, struct err *err)
{
    struct inspect *inspect = foresight->inspect;
    struct life_world world = {
        .ctx = foresight,
        .store = store_of_journal(inspect->journal),
        .say = {complain, foresight},
        .now = now,
        .random = draw,
        .perform = perform,
        .trace = trace,
        .sweep = sweep,
    };
    char broken[ERR_TEXT_SIZE];

    world.store.commit = commit;
    world.store.quarantine = NULL;
    foresight->life = life_new(&world);
    if (!core_attempt(live, foresight, broken)) {
        foresight->life = NULL; /* left in mid-turn, good for nothing */
        return err_set(err, ERR_CORRUPT, "a restart would end in an assertion: %s", broken);
    }
    *err = foresight->err;
    return foresight->code;
}

static void put_all(struct foresight *foresight)
{
    struct inspect *inspect = foresight->inspect;
    char away[AGE_TEXT_SIZE];

    inspect_print_age((int64_t)(foresight->now_ms - inspect->last.now_ms) * 1000000, away);
    if (!inspect->options.json)
        (void)fprintf(inspect->options.out, "a restart %s after the last event, %s, %s:\n\n", away,
                      foresight->start.rebooted ? "the host booted since" : "on the same boot",
                      foresight->start.authority ? "the journal decides what should run"
                                                 : "servers have to be asked first");
    for (int kind = 0; kind < MACHINE_KIND_COUNT; kind++)
        core_each(life_core(foresight->life), (enum machine_kind)kind, put_machine, foresight);
    put_gone(foresight);
    if (!inspect->options.json)
        (void)fprintf(inspect->options.out,
                      "%s%" PRIu64 " machines, %" PRIu64 " effects, %" PRIu64
                      " waits; nothing was performed\n",
                      foresight->machines > 0 ? "\n" : "", foresight->machines, foresight->effects,
                      foresight->waits);
}

int inspect_restore(struct inspect *inspect, const struct inspect_restart *restart, struct err *err)
{
    int64_t away_ns = restart->away_ns >= 0 ? restart->away_ns
                                            : inspect->options.now_unix_ns - inspect->last.unix_ns;
    struct foresight foresight = {
        .inspect = inspect,
        .start = {.last_turn = inspect->last.turn,
                  .authority = !restart->servers,
                  .rebooted = restart->rebooted},
        .now_ms = inspect->last.now_ms + (away_ns > 0 ? (uint64_t)away_ns / 1000000u : 0),
    };
    int code = foresee(&foresight, err);

    if (code == 0)
        put_all(&foresight);
    life_free(foresight.life);
    free(foresight.items);
    return code;
}
