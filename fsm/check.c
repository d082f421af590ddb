/*
 * The static checks of the tables (style page 3.4.3).
 *
 * Each prints a line for each violation, in words that name the check, the state and the event, so
 * that the one who changed the table knows what was forgotten.
 */
#include "fsm/fsm.h"

#include <stdio.h>
#include <string.h>

struct checker {
    const struct fsm_def *def;
    fsm_print *print;
    void *ctx;
    unsigned violations;
};

static void violation(struct checker *checker, int number, const char *state, const char *what,
                      const char *detail)
{
    char line[256];

    checker->violations++;
    (void)snprintf(line, sizeof(line), "%s: check %d: %s: %s %s\n", checker->def->name, number,
                   state, what, detail); /* a longer line is cut */
    checker->print(checker->ctx, line);
}

static const char *state_of(const struct checker *checker, unsigned state)
{
    return fsm_state_name(checker->def, state);
}

static bool has_row(const struct fsm_def *def, uint8_t state, uint8_t event)
{
    for (uint16_t r = 0; r < def->rows_count; r++) {
        if (def->rows[r].state == state && def->rows[r].event == event)
            return true;
    }
    return false;
}

static bool has_flag(const struct fsm_def *def, uint8_t state, uint8_t flag)
{
    return (def->states[state].flags & flag) != 0;
}

/* 1: rows are sorted by state, then event, and stay inside their lists. */
static void check_order(struct checker *checker)
{
    const struct fsm_def *def = checker->def;

    for (uint8_t x = 0; x < def->effects_count; x++) /* what is not awaited cannot wait */
        check((def->after_sweep >> x & 1u) == 0 || def->effects[x].lane < LANE_COUNT);
    for (uint16_t r = 0; r < def->rows_count; r++) {
        const struct fsm_row *row = &def->rows[r];
        check(row->state < def->states_count);
        check(row->next < def->states_count);
        check(row->event < def->events_count);
        check(row->guard < def->guards_count);
        for (int i = 0; i < FSM_EFFECTS_MAX; i++)
            check(row->effects[i] < def->effects_count);
        if (r == 0)
            continue;
        const struct fsm_row *before = row - 1;
        if (before->state > row->state ||
            (before->state == row->state && before->event > row->event))
            violation(checker, 1, state_of(checker, row->state),
                      "out of order:", fsm_event_name(def, row->event));
    }
}

/* 2: rows, ignored and never are disjoint and cover all events. */
static void check_total(struct checker *checker)
{
    const struct fsm_def *def = checker->def;

    for (uint8_t s = 0; s < def->states_count; s++) {
        for (uint8_t e = 0; e < def->events_count; e++) {
            int ways = has_row(def, s, e) + (int)(def->states[s].ignored >> e & 1u) +
                       (int)(def->states[s].never >> e & 1u);
            if (ways != 1)
                violation(checker, 2, state_of(checker, s),
                          ways == 0 ? "does not decide" : "decides more than once",
                          fsm_event_name(def, e));
        }
    }
}

/* 3: the last row of each (state, event) is unguarded; none follows it. */
static void check_guards(struct checker *checker)
{
    const struct fsm_def *def = checker->def;

    for (uint16_t r = 0; r < def->rows_count; r++) {
        const struct fsm_row *row = &def->rows[r], *after = row + 1;
        bool last =
            r + 1 == def->rows_count || after->state != row->state || after->event != row->event;
        if (last != (row->guard == 0))
            violation(checker, 3, state_of(checker, row->state),
                      last ? "has no unguarded row for" : "has rows behind the unguarded one for",
                      fsm_event_name(def, row->event));
    }
}

/* 4: every state is reachable; every state reaches a final one; final states have no rows. */
static void check_reach(struct checker *checker)
{
    const struct fsm_def *def = checker->def;
    bool reached[UINT8_MAX + 1] = {false}, ends[UINT8_MAX + 1] = {false};

    for (uint8_t s = 0; s < def->states_count; s++) {
        reached[s] = has_flag(def, s, FSM_INITIAL);
        ends[s] = has_flag(def, s, FSM_FINAL);
    }
    for (uint8_t round = 0; round < def->states_count; round++) {
        for (uint16_t r = 0; r < def->rows_count; r++) {
            const struct fsm_row *row = &def->rows[r];
            reached[row->next] = reached[row->next] || reached[row->state];
            ends[row->state] = ends[row->state] || ends[row->next];
        }
    }
    for (uint8_t s = 0; s < def->states_count; s++) {
        if (!reached[s])
            violation(checker, 4, state_of(checker, s), "cannot be reached", "");
        if (!ends[s])
            violation(checker, 4, state_of(checker, s), "cannot come to an end", "");
    }
    for (uint16_t r = 0; r < def->rows_count; r++) {
        if (has_flag(def, def->rows[r].state, FSM_FINAL))
            violation(checker, 4, state_of(checker, def->rows[r].state), "is final but has rows",
                      "");
    }
}

/* 5: a stored state has a RESTORE row.  6: a request is decided wherever a machine exists. */
static void check_restore_and_requests(struct checker *checker)
{
    const struct fsm_def *def = checker->def;

    for (uint8_t s = 0; s < def->states_count; s++) {
        if (has_flag(def, s, FSM_INITIAL | FSM_FINAL))
            continue;
        if (!has_row(def, s, def->restore_event))
            violation(checker, 5, state_of(checker, s), "has no row for", "RESTORE");
        for (uint8_t e = 0; e < def->events_count; e++) {
            if (def->events[e].class == FSM_REQUEST && !has_row(def, s, e))
                violation(checker, 6, state_of(checker, s), "leaves somebody waiting who sent",
                          fsm_event_name(def, e));
        }
    }
}

/* Effects that may be under way after ROW is taken with UNDER_WAY before it. */
static uint64_t after_row(const struct fsm_def *def, const struct fsm_row *row, uint64_t under_way)
{
    uint64_t after = under_way;
    uint8_t class = def->events[row->event].class;

    if (class == FSM_RESTORE)
        after = 0;
    for (uint8_t x = 1; x < def->effects_count; x++) {
        if (class == FSM_COMPLETION && (def->effects[x].completions >> row->event & 1u) != 0)
            after &= ~((uint64_t)1 << x);
    }
    for (int i = 0; i < FSM_EFFECTS_MAX && row->effects[i] != 0; i++) {
        uint8_t issued = row->effects[i];
        if (def->effects[issued].lane >= LANE_COUNT)
            continue;
        for (uint8_t x = 1; x < def->effects_count; x++) {
            if (def->effects[x].lane == def->effects[issued].lane)
                after &= ~((uint64_t)1 << x); /* superseded */
        }
        after |= (uint64_t)1 << issued;
    }
    return after;
}

/* 7: no completion that may still arrive is declared never. */
static void check_late(struct checker *checker)
{
    const struct fsm_def *def = checker->def;
    uint64_t under_way[UINT8_MAX + 1] = {0};
    bool changed = true;

    check(def->effects_count <= 64);
    while (changed) {
        changed = false;
        for (uint16_t r = 0; r < def->rows_count; r++) {
            const struct fsm_row *row = &def->rows[r];
            uint64_t after = after_row(def, row, under_way[row->state]) | under_way[row->next];
            changed = changed || after != under_way[row->next];
            under_way[row->next] = after;
        }
    }
    for (uint8_t s = 0; s < def->states_count; s++) {
        for (uint8_t x = 1; x < def->effects_count && !has_flag(def, s, FSM_FINAL); x++) {
            if ((under_way[s] >> x & 1u) == 0)
                continue;
            for (uint8_t e = 0; e < def->events_count; e++) {
                if ((def->effects[x].completions & def->states[s].never) >> e & 1u)
                    violation(checker, 7, state_of(checker, s), "may still get",
                              fsm_event_name(def, e));
            }
        }
    }
}

static bool waits_for_something(const struct fsm_def *def, const struct fsm_row *row)
{
    for (int i = 0; i < FSM_EFFECTS_MAX && row->effects[i] != 0; i++) {
        uint8_t lane = def->effects[row->effects[i]].lane;
        if (lane < LANE_COUNT || lane == LANE_CLOCK)
            return true;
    }
    return def->states[row->next].limit_ms != 0;
}

/* 8: a state entered with nothing under way and no limit must be resting.  A row that stays in its
 * state keeps what was under way; a completion, a timer or a restart that stays has used it up. */
static void check_waits(struct checker *checker)
{
    const struct fsm_def *def = checker->def;

    for (uint16_t r = 0; r < def->rows_count; r++) {
        const struct fsm_row *row = &def->rows[r];
        uint8_t class = def->events[row->event].class;
        bool used_up = class == FSM_COMPLETION || class == FSM_CLOCK || class == FSM_RESTORE;
        bool pausing = def->guards[row->guard].holds == fsm_pausing; /* a timer runs */
        bool keeps = row->state == row->next && (!used_up || pausing);
        if (keeps || has_flag(def, row->next, FSM_RESTING | FSM_FINAL))
            continue;
        if (!waits_for_something(def, row))
            violation(checker, 8, state_of(checker, row->next), "waits for nothing after",
                      fsm_event_name(def, row->event));
    }
}

/* 9: a state with a limit decides TIMEOUT; every guard, effect and event is used. */
static void check_vocabulary(struct checker *checker)
{
    const struct fsm_def *def = checker->def;
    uint64_t guards = 1, effects = 1, events = 0;

    check(def->guards_count <= 64);
    for (uint16_t r = 0; r < def->rows_count; r++) {
        const struct fsm_row *row = &def->rows[r];
        guards |= (uint64_t)1 << row->guard;
        events |= (uint64_t)1 << row->event;
        for (int i = 0; i < FSM_EFFECTS_MAX; i++) {
            effects |= (uint64_t)1 << row->effects[i];
            if (row->effects[i] != 0 && def->effects[row->effects[i]].lane == LANE_CLOCK &&
                !has_row(def, row->next, def->timeout_event))
                violation(checker, 9, state_of(checker, row->next), "backs off but ignores",
                          "TIMEOUT");
        }
    }
    for (uint8_t s = 0; s < def->states_count; s++) {
        if (def->states[s].limit_ms != 0 && !has_row(def, s, def->timeout_event))
            violation(checker, 9, state_of(checker, s), "has a limit but no row for", "TIMEOUT");
    }
    for (uint8_t g = 0; g < def->guards_count; g++) {
        if ((guards >> g & 1u) == 0)
            violation(checker, 9, "guard", "is not used:", fsm_guard_name(def, g));
    }
    for (uint8_t x = 0; x < def->effects_count; x++) {
        if ((effects >> x & 1u) == 0)
            violation(checker, 9, "effect", "is not used:", fsm_effect_name(def, x));
    }
    for (uint8_t e = 0; e < def->events_count; e++) {
        uint64_t ignored = 0;
        for (uint8_t s = 0; s < def->states_count; s++)
            ignored |= def->states[s].ignored;
        if (((events | ignored) >> e & 1u) == 0)
            violation(checker, 9, "event", "is not used:", fsm_event_name(def, e));
    }
}

/* 10: lists fit their masks, completions belong to the lane of their effect. */
static void check_sizes(struct checker *checker)
{
    const struct fsm_def *def = checker->def;

    if (def->events_count > FSM_EVENTS_MAX)
        violation(checker, 10, "events", "do not fit a mask", "");
    if (def->record_bytes > FSM_RECORD_BYTES_MAX)
        violation(checker, 10, "record", "is over its bound", "");
    for (uint8_t x = 1; x < def->effects_count; x++) {
        const struct fsm_effect_def *effect = &def->effects[x];
        if ((effect->completions != 0) != (effect->lane < LANE_COUNT))
            violation(checker, 10, effect->name, "completes if and only if", "its lane is awaited");
        for (uint8_t e = 0; e < def->events_count; e++) {
            if ((effect->completions >> e & 1u) != 0 && def->events[e].class != FSM_COMPLETION)
                violation(checker, 10, effect->name,
                          "is completed by what is no completion:", fsm_event_name(def, e));
        }
    }
}

/* --- 11 --- */

enum { NODES_MAX = 1024 };

/* A state, and the effects that may be under way in it. */
struct node {
    uint8_t state;
    bool seen;
    uint64_t under_way;
};

struct walk {
    const struct fsm_def *def;
    struct node nodes[NODES_MAX];
    size_t count;
};

static bool may_come(const struct fsm_def *def, const struct fsm_row *row, const struct node *node)
{
    bool awaited = def->events[row->event].class != FSM_COMPLETION;

    for (uint8_t x = 1; x < def->effects_count && !awaited; x++)
        awaited = (node->under_way >> x & 1u) != 0 &&
                  (def->effects[x].completions >> row->event & 1u) != 0;
    return row->state == node->state && awaited;
}

/* What follows NODE by ROW; it is added if it is new. */
static size_t follow(struct walk *walk, const struct node *node, const struct fsm_row *row)
{
    struct node next = {.state = row->next,
                        .under_way = after_row(walk->def, row, node->under_way)};
    size_t at = 0;

    while (at < walk->count &&
           (walk->nodes[at].state != next.state || walk->nodes[at].under_way != next.under_way))
        at++;
    check(at < NODES_MAX);
    if (at == walk->count)
        walk->nodes[walk->count++] = next;
    return at;
}

/* ROW may be taken again and again while no time passes: an answer or another machine leads to it,
 * and its guard holds for as often as that comes. */
static bool is_unpaced(const struct fsm_def *def, const struct fsm_row *row)
{
    uint8_t class = def->events[row->event].class;

    return (class == FSM_COMPLETION || class == FSM_MESSAGE) &&
           (def->paced >> row->guard & 1u) == 0 && (def->paced_events >> row->event & 1u) == 0;
}

static void mark_reached(struct walk *walk, size_t at)
{
    walk->nodes[at].seen = true;
    for (uint16_t r = 0; r < walk->def->rows_count; r++) {
        const struct fsm_row *row = &walk->def->rows[r];
        if (!may_come(walk->def, row, &walk->nodes[at]) || !is_unpaced(walk->def, row))
            continue;
        size_t next = follow(walk, &walk->nodes[at], row);
        if (!walk->nodes[next].seen)
            mark_reached(walk, next);
    }
}

static uint8_t call_of(const struct fsm_def *def, const struct fsm_row *row)
{
    for (int i = 0; i < FSM_EFFECTS_MAX && row->effects[i] != 0; i++) {
        if (def->effects[row->effects[i]].lane < LANE_COUNT)
            return row->effects[i];
    }
    return 0;
}

/* 11: no call is made again and again without a pause.  Every message of another machine is taken
 * to come at any time, so machines that wake each other are found in the table of one of them. */
static void check_pauses(struct checker *checker)
{
    const struct fsm_def *def = checker->def;
    struct walk room = {.def = def}, *walk = &room;

    for (uint8_t s = 0; s < def->states_count; s++) {
        if (has_flag(def, s, FSM_INITIAL))
            walk->nodes[walk->count++].state = s;
    }
    for (size_t n = 0; n < walk->count; n++) {
        for (uint16_t r = 0; r < def->rows_count; r++) {
            if (may_come(def, &def->rows[r], &walk->nodes[n]))
                (void)follow(walk, &walk->nodes[n], &def->rows[r]);
        }
    }
    for (uint16_t r = 0; r < def->rows_count; r++) {
        const struct fsm_row *row = &def->rows[r];
        uint8_t call = call_of(def, row);
        bool again = false;
        for (size_t n = 0; call != 0 && is_unpaced(def, row) && n < walk->count && !again; n++) {
            if (!may_come(def, row, &walk->nodes[n]))
                continue;
            for (size_t i = 0; i < walk->count; i++)
                walk->nodes[i].seen = false;
            mark_reached(walk, follow(walk, &walk->nodes[n], row));
            again = walk->nodes[n].seen;
        }
        if (again)
            violation(checker, 11, state_of(checker, row->state),
                      "calls again without a pause:", fsm_effect_name(def, call));
    }
}

/* 12: no row performs an effect twice: one request has one answer, one call is made once. */
static void check_twice(struct checker *checker)
{
    const struct fsm_def *def = checker->def;

    for (uint16_t r = 0; r < def->rows_count; r++) {
        const struct fsm_row *row = &def->rows[r];
        uint64_t performed = 0;
        for (int i = 0; i < FSM_EFFECTS_MAX && row->effects[i] != 0; i++) {
            if ((performed >> row->effects[i] & 1u) != 0)
                violation(checker, 12, state_of(checker, row->state),
                          "performs twice:", fsm_effect_name(def, row->effects[i]));
            performed |= (uint64_t)1 << row->effects[i];
        }
    }
}

unsigned fsm_check(const struct fsm_def *def, fsm_print *print, void *ctx)
{
    struct checker checker = {.def = def, .print = print, .ctx = ctx};

    check_order(&checker);
    check_total(&checker);
    check_guards(&checker);
    check_reach(&checker);
    check_restore_and_requests(&checker);
    check_late(&checker);
    check_waits(&checker);
    check_vocabulary(&checker);
    check_sizes(&checker);
    check_pauses(&checker);
    check_twice(&checker);
    return checker.violations;
}
