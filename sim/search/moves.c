/*
 * The moves: what may happen next in a state.
 *
 * Whatever can be done at any time is a move; a move that posts events is followed by the turn that
 * takes them (or by the next move, where events may come together).  Faults are paid for from what
 * is left of the bounds.
 */
#include "sim/search/part.h"

#include <string.h>

static const struct {
    const char *about;
    uint8_t price;
    bool posts, heals;
} kinds[SEARCH_MOVE_COUNT] = {
#define X(name, text, price, posts, heals) [MOVE_##name] = {text, SIM_BOUND_##price, posts, heals},
    SEARCH_MOVES(X)
#undef X
};

bool search_heals(const struct search *search, const struct search_move *move)
{
    /* A payload need not end before it is told to, unless that is what it is for. */
    bool last = move->who == WHO_TASK_B && (search->asked->shape == SIM_SHAPE_POSTSTOP ||
                                            search->asked->shape == SIM_SHAPE_HOOKS);
    bool early = move->kind == MOVE_EXIT && search_how(move->how) != ENDS_KILLED && !last;

    return kinds[move->kind].heals && move->fate != FATE_LOSE && !early;
}

/* --- bounds --- */

enum sim_bound search_price(enum search_move_kind kind)
{
    return (enum sim_bound)kinds[kind].price;
}

static bool is_fault(enum sim_bound bound)
{
    return bound != SIM_BOUND_REQUEST && bound != SIM_BOUND_TOGETHER;
}

/* What cannot happen any more is the same, however much of it was allowed. */
static void clamp(struct search_world *world)
{
    for (int bound = 0; bound < SIM_BOUND_COUNT; bound++) {
        if (is_fault((enum sim_bound)bound) && world->left[bound] > world->left[SIM_BOUND_FAULTS])
            world->left[bound] = world->left[SIM_BOUND_FAULTS];
    }
}

void search_pay(struct search_world *world, enum sim_bound bound)
{
    if (bound == SIM_BOUND_COUNT)
        return;
    check(world->left[bound] > 0);
    world->left[bound]--;
    if (!is_fault(bound))
        return;
    world->left[SIM_BOUND_FAULTS]--;
    clamp(world);
}

void search_begin(struct search *search)
{
    memset(&search->world, 0, sizeof(search->world));
    memcpy(search->world.left, search->asked->bounds, sizeof(search->world.left));
    search->world.left[SIM_BOUND_TOGETHER] = 0; /* not used up */
    clamp(&search->world);
}

/* --- which moves there are --- */

struct listing {
    struct search *search;
    struct search_move *moves;
    size_t count;
};

static void add_one(struct listing *list, unsigned kind, unsigned who, unsigned how,
                    enum search_fate fate)
{
    check(list->count < SEARCH_MOVES_MAX);
    list->moves[list->count++] = (struct search_move){
        .kind = (uint8_t)kind, .who = (uint8_t)who, .how = (uint8_t)how, .fate = (uint8_t)fate};
}

static void add(struct listing *list, enum search_move_kind kind, unsigned who, unsigned how)
{
    const struct search_world *world = &list->search->world;
    enum sim_bound price = search_price(kind);

    if (price != SIM_BOUND_COUNT && world->left[price] == 0)
        return;
    add_one(list, kind, who, how, FATE_TURN);
    /* That it was the last try is not kept. */
    if (!kinds[kind].posts || (kind == MOVE_FAIL && search_how(how) == HOW_LAST))
        return;
    /* The turn asks for timers by itself; an alloc comes with a blob, which is not kept. */
    bool alone =
        kind == MOVE_TURN || kind == MOVE_TIMER || kind == MOVE_OVERDUE || kind == MOVE_ASSIGN;
    if (!alone &&
        list->search->seen.events.count + 1 < list->search->asked->bounds[SIM_BOUND_TOGETHER])
        add_one(list, kind, who, how, FATE_WAIT);
    if (world->left[SIM_BOUND_COMMIT] > (price != SIM_BOUND_COUNT && is_fault(price)))
        add_one(list, kind, who, how, FATE_LOSE);
}

/* Death, with every part of the work that is open happening or not. */
static void add_deaths(struct listing *list)
{
    unsigned open = 0;

    for (unsigned who = 0; who < WHO_COUNT; who++) {
        bool driver =
            (who == WHO_TASK_A || who == WHO_TASK_B) && search_driver_is_open(list->search, who);
        if (driver || search_call_is_open(list->search, who))
            open |= 1u << who;
    }
    unsigned happens = 0;
    do { /* each part of it, beginning with none */
        add(list, MOVE_DIE, 0, happens);
        happens = (happens - open) & open;
    } while (happens != 0);
}

static bool has_marks(const struct search_world *world)
{
    for (unsigned t = 0; t < SEARCH_TASKS; t++) {
        for (unsigned i = 0; i < SEARCH_ATTEMPTS; i++) {
            const struct search_attempt *attempt = &world->tasks[t].attempts[i];
            if (attempt->begun && !attempt->answered && attempt->record == NO_RECORD)
                return true;
        }
    }
    return false;
}

static void add_calls(struct listing *list, unsigned who)
{
    struct search *search = list->search;
    bool task = who == WHO_TASK_A || who == WHO_TASK_B;

    for (unsigned number = 0; number < LANE_COUNT; number++) {
        const struct lane *lane = search_lane(search, who, (enum fsm_lane)number);
        if (lane->effect == 0)
            continue;
        bool driver = task && number == LANE_DRIVER;
        unsigned at = number << SEARCH_SHIFT;
        bool ready = driver ? search_driver_ready(search, who)
                            : search_call_ready(search, who, (enum fsm_lane)number);
        if (ready)
            add(list, MOVE_DONE, who, at);
        const struct search_attempt *attempt =
            driver ? search_attempt(search, who_task(who), lane->generation) : NULL;
        if (driver && lane->effect == TX_DRIVER_START && (attempt == NULL || !attempt->begun))
            add(list, MOVE_SPAWN, who, at);
        unsigned fails = search_call_fails(search, who, (enum fsm_lane)number);
        for (unsigned how = 0; how < HOW_COUNT; how++) {
            if ((fails >> how & 1u) != 0)
                add(list, MOVE_FAIL, who, at | how);
        }
    }
}

/* Its timer is that of a call which was given up, and by then that is over. */
static bool is_outwaited(const struct search *search, const struct volume *volume)
{
    unsigned makes = 1u << VX_STAGE | 1u << VX_PUBLISH, late = search->world.late;

    if (volume->machine.state != V_DRAINING)
        return false;
    if (volume->makes_until_ms > SEARCH_NOW_MS)
        return (late & makes) != 0;
    return volume->retry_at_ms == 0 && volume->undoes_until_ms > SEARCH_NOW_MS &&
           (late >> VX_UNSTAGE & 1u) != 0;
}

/* A call is bounded, and so is the wait for it: both are over at the same time only by accident. */
static void add_timer(struct listing *list, unsigned who)
{
    const struct machine *record = search_record(list->search, who);
    bool awaits = false;

    if (record == NULL || record->deadline_ms == 0)
        return;
    for (int lane = 0; lane < LANE_COUNT; lane++)
        awaits |= search_lane(list->search, who, (enum fsm_lane)lane)->effect != 0;
    if (who == WHO_VOLUME && is_outwaited(list->search, volume_of(record)))
        return;
    bool patient = who == WHO_VOLUME && record->state == V_QUEUED;
    bool watch = who == WHO_PLUGIN && record->state == P_READY;
    /* A plugin that answers each time is where it was. */
    if (watch && !awaits && list->search->world.left[SIM_BOUND_CALL] == 0 &&
        list->search->world.plugin_generation == record->generation)
        return;
    add(list, awaits || patient ? MOVE_OVERDUE : MOVE_TIMER, who, 0);
}

static void add_processes(struct listing *list, unsigned who)
{
    const struct search *search = list->search;

    for (unsigned i = 0; i < SEARCH_ATTEMPTS; i++) {
        const struct search_attempt *attempt = &search->world.tasks[who_task(who)].attempts[i];
        unsigned at = i << SEARCH_SHIFT;
        bool shim = attempt->shim == SHIM_IS_ALIVE;
        if (attempt->shim == SHIM_IS_STARTING) {
            add(list, MOVE_RUN, who, at);
            add(list, MOVE_UNFIT, who, at);
            add(list, MOVE_SHIM, who, at);
        }
        if (attempt->payload == PAYLOAD_LIVES && attempt->stopping) {
            add(list, MOVE_EXIT, who, at | ENDS_KILLED);
        } else if (attempt->payload == PAYLOAD_LIVES) {
            add(list, MOVE_EXIT, who, at | ENDS_WELL);
            add(list, MOVE_EXIT, who, at | ENDS_BADLY);
        }
        if (attempt->payload == PAYLOAD_LIVES && shim) {
            add(list, MOVE_FORGET, who, at);
            add(list, MOVE_SHIM, who, at);
        }
        if (search->world.up && attempt->reported && attempt->shim == SHIM_HAS_ENDED)
            add(list, MOVE_SEE, who, at);
    }
}

static void add_control(struct listing *list)
{
    const struct search *search = list->search;
    const struct machine *record = search_record(search, WHO_ALLOC);

    if (record == NULL) {
        if (!search->world.assigned && search->seen.events.count == 0)
            add(list, MOVE_ASSIGN, WHO_ALLOC, 0);
        return;
    }
    const struct alloc *alloc = alloc_of(record);
    if (search->asked->server && !search->world.fresh && !alloc->destroy_wanted)
        add(list, MOVE_CONFIRM, WHO_ALLOC, 0);
    /* Once it ends, being told to changes nothing that follows. */
    if (!alloc->destroy_wanted && (!alloc->stop_wanted || alloc_state_ends(record->state)))
        add(list, MOVE_STOP, WHO_ALLOC, 0);
    if (!alloc->destroy_wanted)
        add(list, MOVE_DESTROY, WHO_ALLOC, 0);
}

/* Requests that change nothing are made as long as others may be. */
static void add_requests(struct listing *list)
{
    const struct search *search = list->search;
    const struct machine *alloc = search_record(search, WHO_ALLOC);

    if (search->world.left[SIM_BOUND_REQUEST] == 0)
        return;
    if (alloc != NULL)
        add(list, alloc->state == A_RUNNING ? MOVE_RESTART : MOVE_VAIN, WHO_ALLOC, 0);
    if (alloc != NULL && alloc->state == A_RUNNING)
        add(list, MOVE_REPLAY, WHO_ALLOC, 0);
    if (alloc != NULL && search->asked->shape == SIM_SHAPE_HOOKS) {
        bool over = alloc_state_ends(alloc->state) && alloc->state > A_KILLING;
        if (over || !alloc_of(alloc)->at_once)
            add(list, MOVE_HURRY, WHO_ALLOC, 0);
        add(list, MOVE_CHECK, WHO_ALLOC, 0);
    }
    if (alloc != NULL) {
        add(list, MOVE_UPDATE, WHO_ALLOC, 0);
        add(list, MOVE_HEALTHY, WHO_ALLOC, 0);
        add(list, MOVE_UNHEALTHY, WHO_ALLOC, 0);
    }
    for (unsigned who = WHO_TASK_A; who <= WHO_TASK_B; who++) {
        const struct machine *task = search_record(search, who);
        if (task == NULL)
            continue;
        add(list, task->state == T_RUNNING ? MOVE_RESTART : MOVE_VAIN, who, 0);
        add(list, MOVE_SIGNAL, who, 0);
    }
    if (search_record(search, WHO_VOLUME) != NULL)
        add(list, MOVE_DETACH, WHO_VOLUME, 0);
    if (search_record(search, WHO_PLUGIN) != NULL) {
        add(list, MOVE_UNPLUG, WHO_PLUGIN, 0);
        add(list, MOVE_REMOVE, WHO_PLUGIN, 0);
    }
}

static void add_damages(struct listing *list)
{
    for (unsigned who = 0; who < WHO_COUNT; who++) {
        if (search_record(list->search, who) != NULL)
            add(list, MOVE_TEAR, who, 0);
    }
}

size_t search_moves(struct search *search, struct search_move *moves)
{
    struct listing list = {search, moves, 0};
    const struct search_world *world = &search->world;

    if (world->up && search->seen.events.count > 0)
        add(&list, MOVE_TURN, 0, 0);
    if (world->unswept)
        add(&list, MOVE_SWEEP, 0, 0);
    for (unsigned who = 0; world->up && who < WHO_COUNT; who++) {
        add_calls(&list, who);
        add_timer(&list, who);
    }
    add_processes(&list, WHO_TASK_A);
    add_processes(&list, WHO_TASK_B);
    for (unsigned effect = 1; effect < VX_COUNT; effect++) {
        if ((world->late >> effect & 1u) != 0) {
            add(&list, MOVE_LATE, WHO_VOLUME, effect);
            add(&list, MOVE_VANISH, WHO_VOLUME, effect);
        }
    }
    if (world->plugin_generation != 0)
        add(&list, MOVE_PLUGIN, WHO_PLUGIN, 0);
    if (world->mounted)
        add(&list, MOVE_SNATCH, WHO_VOLUME, 0);
    add(&list, MOVE_BOOT, 0, 0);
    if (has_marks(world))
        add(&list, MOVE_BOOT, 0, 1);
    add_damages(&list);
    if (world->up) {
        add_control(&list);
        add_requests(&list);
        add_deaths(&list);
    } else {
        add(&list, MOVE_START, 0, 0);
    }
    return list.count;
}

/* --- telling --- */

void search_describe(const struct search *search, const struct search_move *move, char *to,
                     size_t size)
{
    static const char *const hows[HOW_COUNT] = {"", ", for good", ", for the last time",
                                                ", and is done or will be"};
    static const char *const ends[SEARCH_ENDS] = {" well", " badly", " by a signal"};
    const struct machine_id *id = &search->ids[move->who];
    const struct fsm_def *def = fsm_definition((enum machine_kind)id->kind);
    unsigned lane = search_place(move->how), how = search_how(move->how);
    bool call = move->kind == MOVE_DONE || move->kind == MOVE_FAIL;
    bool late = move->kind == MOVE_LATE || move->kind == MOVE_VANISH;
    bool daemon = move->kind == MOVE_START || move->kind == MOVE_DIE || move->kind == MOVE_BOOT ||
                  move->kind == MOVE_TURN || move->kind == MOVE_SWEEP;

    to[0] = '\0';
    if (!daemon)
        (void)text_format(to, size, "%s %s: ", def->name, id->text);
    if (call)
        (void)text_append(
            to, size,
            fsm_effect_name(def, search_lane(search, move->who, (enum fsm_lane)lane)->effect));
    if (late)
        (void)text_append(to, size, fsm_effect_name(def, move->how));
    if (call || late)
        (void)text_append(to, size, ", ");
    (void)text_append(to, size, kinds[move->kind].about);
    if (move->kind == MOVE_FAIL)
        (void)text_append(to, size, hows[how]);
    if (move->kind == MOVE_EXIT)
        (void)text_append(to, size, ends[how]);
    for (unsigned who = 0; move->kind == MOVE_DIE && who < WHO_COUNT; who++) {
        if ((move->how >> who & 1u) == 0)
            continue;
        (void)text_append(to, size, "; the call of ");
        (void)text_append(to, size, search->ids[who].text);
        (void)text_append(to, size, " happens all the same");
    }
    if (move->kind == MOVE_BOOT && move->how != 0)
        (void)text_append(to, size, ", unsynced marks are gone");
    if (move->fate == FATE_WAIT)
        (void)text_append(to, size, " (more comes in the same turn)");
    if (move->fate == FATE_LOSE)
        (void)text_append(to, size, " (the commit fails)");
}
