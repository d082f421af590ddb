/*
 * What happens when a move is made: the seam under the core, the daemon's life and death, and who
 * asks for what.
 */
#include "sim/search/part.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPLY_TOKEN = 1, TRIES_EXHAUSTED = 1000 };

void search_say(struct search *search, const char *format, ...)
{
    char line[SIM_VIOLATION_SIZE + 64];
    va_list arguments;

    if (search->print == NULL)
        return;
    va_start(arguments, format);
    (void)vsnprintf(line, sizeof(line), format, arguments); /* cut if too long */
    va_end(arguments);
    search->print(search->print_ctx, line);
    search->print(search->print_ctx, "\n");
}

/* --- the seam --- */

static int commit(void *ctx, const struct journal_batch *batch, struct err *err)
{
    struct search *search = ctx;

    if (search->lose)
        return err_set(err, ERR_FULL, "no space left");
    search_check_batch(search, batch);
    for (size_t i = 0; i < batch->records_count; i++) {
        const struct journal_record *item = &batch->records[i];
        unsigned who = search_who(search, &item->id);
        search->revisions[who] = item->record == NULL ? 0 : item->record->revision;
        search->finals |= item->record == NULL ? 1u << who : 0;
    }
    for (size_t i = 0; i < batch->specs_count; i++)
        search->world.spec = batch->specs[i].bytes != NULL;
    search_check_committed(search, batch);
    search->committed = true;
    return 0;
}

static bool is_answer(const struct effect *effect)
{
    switch ((enum machine_kind)effect->id.kind) {
    case MACHINE_TASK:
        return effect->kind == TX_REPLY_OK || effect->kind == TX_REPLY_NOT_RUNNING ||
               effect->kind == TX_DRIVER_SIGNAL || effect->kind == TX_HOOK_ABORT;
    case MACHINE_ALLOC:
        return effect->kind == AX_REPLY_OK || effect->kind == AX_REPLY_NOT_RUNNING;
    case MACHINE_VOLUME:
        return effect->kind == VX_REPLY_OK || effect->kind == VX_REPLY_BUSY;
    case MACHINE_PLUGIN:
        return effect->kind == PX_REPLY_OK;
    case MACHINE_KIND_COUNT:
        break;
    }
    unreachable("machine kind");
}

static void perform(void *ctx, const struct effect *effect)
{
    struct search *search = ctx;
    unsigned who = search_who(search, &effect->id);

    search_check_effect(search, effect, who);
    if (effect->lane >= LANE_COUNT) {
        search->answered += effect->reply != 0 && is_answer(effect);
        return;
    }
    check(effect->lane != LANE_WAIT); /* there is no other alloc */
    if (effect->id.kind == MACHINE_TASK && effect->kind == TX_DRIVER_RECOVER) {
        const struct search_attempt *attempt =
            search_attempt(search, who_task(who), effect->generation);
        search->world.tasks[who_task(who)].untouched = attempt == NULL || !attempt->begun;
    }
}

static void refuse(void *ctx, uint64_t reply, const struct err *err)
{
    struct search *search = ctx;

    (void)err; /* nobody reads it */
    search->answered += reply != 0;
}

static void trace(void *ctx, const struct journal_event *event)
{
    struct search *search = ctx;
    char line[512];

    check(event->row < SIM_ROWS_MAX);
    search->asked->rows[event->id.kind][event->row / 64] |= (uint64_t)1 << event->row % 64;
    if (search->print == NULL)
        return;
    core_describe(event, line, sizeof(line));
    search_say(search, "        %s", line);
}

struct core *search_core(struct search *search)
{
    struct world world = {
        .ctx = search,
        .commit = commit,
        .perform = perform,
        .refuse = refuse,
        .known = search_known,
        .trace = trace,
        .claim = search_claim_known,
    };

    return core_new(&world);
}

static void turn(struct search *search)
{
    const struct core_snapshot *seen = &search->seen;
    struct err err;
    uint32_t asked = 0;

    search_see(search);
    for (size_t i = 0; i < seen->events.count; i++)
        asked += seen->events.items[i].event.reply != 0;
    search->committed = false;
    search->answered = search->finals = 0;
    search->in_turn = true;
    int code = core_turn(search->core, SEARCH_NOW_MS, 1, 1, &err);
    search->in_turn = false;
    search_see(search);
    check(code == 0 || search->lose);
    if (search->answered != asked)
        search_violate(search, SIM_SAFETY, 14, "%u of %u requests are answered", search->answered,
                       asked);
}

/* --- making a move --- */

static void start(struct search *search)
{
    struct search_world *world = &search->world;
    bool rebooted = world->booted;

    world->up = 1;
    world->booted = 0;
    core_restore(search->core, !search->asked->server, rebooted);
    if (world->spec)
        core_adopt(search->core, "a");
    search_define_plugin(search);
    turn(search);
    world->unswept = world->torn || search_may_sweep(search);
    if (!world->unswept)
        search_sweep(search);
}

/* What the daemon had in memory is gone. */
static void forget_memory(struct search *search)
{
    struct core_snapshot *seen = &search->seen;
    struct core_machine left[WHO_COUNT];
    size_t count = 0;

    for (unsigned who = 0; who < WHO_COUNT; who++) { /* what is left is read in this order */
        const struct core_machine *machine = search_machine(search, who);
        if (machine != NULL && machine->record != NULL)
            left[count++] = (struct core_machine){.id = machine->id, .record = machine->record};
    }
    if (count > 0)
        memcpy(seen->machines.items, left, count * sizeof(*left));
    seen->machines.count = count;
    seen->events.count = 0;
    seen->begun = seen->unswept = false;
    search_put(search);
    search->world.up = search->world.fresh = search->world.unswept = 0;
    for (unsigned t = 0; t < SEARCH_TASKS; t++) {
        search->world.tasks[t].untouched = 0;
        for (unsigned i = 0; i < SEARCH_ATTEMPTS; i++)
            search->world.tasks[t].attempts[i].reported = 0;
    }
}

static void die(struct search *search, unsigned happens)
{
    for (unsigned who = 0; who < WHO_COUNT; who++) {
        bool task = who == WHO_TASK_A || who == WHO_TASK_B;
        if ((happens >> who & 1u) == 0)
            continue;
        if (task && search_driver_is_open(search, who))
            search_driver_cut(search, who);
        search_call_cut(search, who);
    }
    search_calls_orphan(search);
    forget_memory(search);
}

static void reboot(struct search *search, bool marks_go)
{
    struct search_world *world = &search->world;

    if (world->up)
        search_calls_orphan(search);
    forget_memory(search);
    search_processes_reboot(search, marks_go);
    world->plugin_generation = 0;
    world->mounted = world->staged = world->snatched = 0;
    world->late &= 1u << VX_CLAIM | 1u << VX_UNCLAIM; /* the server goes on */
    world->booted = 1;
}

/* What a volume has waited for until its timer. */
static void pass_time(struct volume *volume)
{
    if (volume->machine.state != V_DRAINING)
        return;
    if (volume->makes_until_ms > SEARCH_NOW_MS)
        volume->makes_until_ms = SEARCH_NOW_MS;
    else if (volume->retry_at_ms != 0)
        volume->retry_at_ms = SEARCH_NOW_MS;
    else if (volume->undoes_until_ms != 0)
        volume->undoes_until_ms = SEARCH_NOW_MS;
    else if (volume->plugin_until_ms != 0)
        volume->plugin_until_ms = SEARCH_NOW_MS;
}

/* The record of WHO has come to have that timer and that number of tries. */
static void change_record(struct search *search, unsigned who, uint64_t deadline_ms,
                          uint32_t attempt)
{
    struct core_machine *machine = search_machine(search, who);
    uint32_t size = fsm_record_size(machine->record);
    struct machine *changed = malloc(size);

    check(changed != NULL);
    memcpy(changed, machine->record, size);
    changed->deadline_ms = deadline_ms;
    changed->attempt = attempt;
    if (changed->kind == MACHINE_PLUGIN && attempt == TRIES_EXHAUSTED)
        ((struct plugin *)(void *)changed)->due_ms = SEARCH_NOW_MS;
    if (who == WHO_VOLUME && deadline_ms == SEARCH_NOW_MS)
        pass_time((struct volume *)(void *)changed);
    machine->record = changed;
    search_put(search);
    free(changed);
}

static void done(struct search *search, const struct search_move *move)
{
    enum fsm_lane lane = (enum fsm_lane)search_place(move->how);
    bool task = move->who == WHO_TASK_A || move->who == WHO_TASK_B;

    if (task && lane == LANE_DRIVER)
        search_driver_done(search, move->who);
    else
        search_call_done(search, move->who, lane);
}

static void fail(struct search *search, const struct search_move *move)
{
    enum fsm_lane lane = (enum fsm_lane)search_place(move->how);
    enum search_how how = (enum search_how)search_how(move->how);
    bool task = move->who == WHO_TASK_A || move->who == WHO_TASK_B;
    const struct machine *record = search_record(search, move->who);

    if (how == HOW_LAST && record != NULL)
        change_record(search, move->who, record->deadline_ms, TRIES_EXHAUSTED);
    if (task && lane == LANE_DRIVER)
        search_driver_fail(search, move->who, how);
    else
        search_call_fail(search, move->who, lane, how);
}

static void plugin_dies(struct search *search)
{
    struct exited exited = {.known = 1, .code = 1};
    uint32_t generation = search->world.plugin_generation;

    search->world.plugin_generation = 0;
    if (search->world.up)
        core_news(search->core, &search->ids[WHO_PLUGIN], generation, PE_EXITED, &exited);
}

/* The timer of WHO is due at AT_MS. */
static void set_timer(struct search *search, unsigned who, uint64_t at_ms)
{
    change_record(search, who, at_ms, search_record(search, who)->attempt);
}

/* One of them passes, or does not any more. */
static void find_check(struct search *search)
{
    struct checked checked = {.ran = 1,
                              .pass = !alloc_of(search_record(search, WHO_ALLOC))->checks_pass};

    core_tell(search->core, &search->ids[WHO_ALLOC], AE_CHECKED, &checked);
}

static void ask(struct search *search, const struct search_move *move)
{
    static const uint8_t events[SEARCH_MOVE_COUNT] = {
        [MOVE_STOP] = AE_STOP,     [MOVE_DESTROY] = AE_DESTROY, [MOVE_RESTART] = TE_RESTART,
        [MOVE_VAIN] = TE_RESTART,  [MOVE_SIGNAL] = TE_SIGNAL,   [MOVE_DETACH] = VE_DETACH,
        [MOVE_HURRY] = AE_STOP,    [MOVE_REPLAY] = AE_REPLAY,   [MOVE_UNPLUG] = PE_STOP,
        [MOVE_REMOVE] = PE_REMOVE, [MOVE_HEALTHY] = AE_HEALTHY, [MOVE_UNHEALTHY] = AE_UNHEALTHY,
    };
    const struct machine_id *id = &search->ids[move->who];
    bool restart = move->kind == MOVE_RESTART || move->kind == MOVE_VAIN;
    uint8_t event = restart && move->who == WHO_ALLOC ? AE_RESTART : events[move->kind];
    const struct fsm_def *def = fsm_definition((enum machine_kind)id->kind);
    struct request why = {.text = "asked for", .at_once = move->kind == MOVE_HURRY};
    bool empty = def->events[event].payload == PAYLOAD_NONE;
    bool request = def->events[event].class == FSM_REQUEST;

    core_ask(search->core, id, event, empty ? NULL : &why, request ? REPLY_TOKEN : 0);
    if (events[move->kind] == AE_STOP && move->who == WHO_ALLOC && search->asked->server &&
        !search->world.fresh)
        core_tell(search->core, id, AE_AUTHORIZED, NULL); /* one answer says both */
}

/* Nobody sees it before the next start. */
static void tear(struct search *search, unsigned who)
{
    search_machine(search, who)->record = NULL;
    if (search->world.up)
        search_calls_orphan(search);
    forget_memory(search);
    if (who != WHO_PLUGIN)
        search->world.torn = 1;
    else if (search->world.plugin_generation != 0)
        search->world.plugin_generation = 2; /* counting starts again, and it is not the first */
}

static void process_move(struct search *search, const struct search_move *move)
{
    struct search_move plain = *move;
    unsigned which = search_place(move->how);

    plain.how = (uint8_t)search_how(move->how);
    search_process(search, &plain, &search->world.tasks[who_task(move->who)].attempts[which]);
}

static void make(struct search *search, const struct search_move *move)
{
    switch ((enum search_move_kind)move->kind) {
    case MOVE_START:
        start(search);
        return;
    case MOVE_SWEEP:
        search_sweep(search);
        return;
    case MOVE_DIE:
        die(search, move->how);
        return;
    case MOVE_BOOT:
        reboot(search, move->how != 0);
        return;
    case MOVE_DONE:
        done(search, move);
        return;
    case MOVE_FAIL:
        fail(search, move);
        return;
    case MOVE_SPAWN:
        search_spawn(search, move->who);
        return;
    case MOVE_RUN:
    case MOVE_UNFIT:
    case MOVE_EXIT:
    case MOVE_FORGET:
    case MOVE_SHIM:
    case MOVE_SEE:
        process_move(search, move);
        return;
    case MOVE_LATE:
        search_call_late(search, move->how);
        return;
    case MOVE_VANISH:
        search->world.late &= (uint8_t) ~(1u << move->how);
        return;
    case MOVE_PLUGIN:
        plugin_dies(search);
        return;
    case MOVE_SNATCH:
        search->world.mounted = 0;
        search->world.snatched = 1;
        return;
    case MOVE_TIMER:
    case MOVE_OVERDUE:
        set_timer(search, move->who, SEARCH_NOW_MS);
        return;
    case MOVE_ASSIGN:
        search_assign(search);
        return;
    case MOVE_UPDATE:
        search_update(search);
        return;
    case MOVE_CONFIRM:
        core_tell(search->core, &search->ids[WHO_ALLOC], AE_AUTHORIZED, NULL);
        return;
    case MOVE_CHECK:
        find_check(search);
        return;
    case MOVE_STOP:
    case MOVE_HURRY:
    case MOVE_HEALTHY:
    case MOVE_UNHEALTHY:
    case MOVE_DESTROY:
    case MOVE_RESTART:
    case MOVE_REPLAY:
    case MOVE_VAIN:
    case MOVE_SIGNAL:
    case MOVE_DETACH:
    case MOVE_UNPLUG:
    case MOVE_REMOVE:
        ask(search, move);
        return;
    case MOVE_TEAR:
        tear(search, move->who);
        return;
    case MOVE_TURN:
    case MOVE_NOTHING:
    case SEARCH_MOVE_COUNT:
        return;
    }
}

void search_make(struct search *search, const struct search_move *move)
{
    bool due = move->kind == MOVE_TIMER || move->kind == MOVE_OVERDUE;

    search_pay(&search->world, search_price((enum search_move_kind)move->kind));
    if (move->fate == FATE_LOSE)
        search_pay(&search->world, SIM_BOUND_COMMIT);
    search->lose = move->fate == FATE_LOSE;
    search->in_turn = false;
    make(search, move);
    if (search->world.up && move->fate != FATE_WAIT && (core_has_work(search->core) || due))
        turn(search);
    search_see(search);
    if (due && search->lose)
        set_timer(search, move->who, SEARCH_FAR_MS); /* it stays due, and comes when it comes */
    search_check_state(search);
}
