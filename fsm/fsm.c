/*
 * The engine: one pure step over any table.
 *
 * It decides nothing by itself.  Classes say whether an event is still wanted, the table says what
 * follows, the machine's rules say what the event means to the record.  A record is changed only
 * when a row is taken.
 */
#include "fsm/fsm.h"

#include <string.h>

void fsm_absent(const struct fsm_def *def, struct machine *record)
{
    memset(record, 0, def->record_bytes);
    record->kind = def->kind;
    for (uint8_t state = 0; state < def->states_count; state++) {
        if ((def->states[state].flags & FSM_INITIAL) != 0)
            record->state = state;
    }
    check(fsm_is_absent(record));
}

uint32_t fsm_record_size(const struct machine *record)
{
    uint32_t size = fsm_definition((enum machine_kind)record->kind)->record_size(record);

    check(size >= sizeof(struct machine));
    check(size <= FSM_RECORD_BYTES_MAX);
    return size;
}

bool fsm_is_final(const struct machine *record)
{
    const struct fsm_def *def = fsm_definition((enum machine_kind)record->kind);

    return (def->states[record->state].flags & FSM_FINAL) != 0;
}

bool fsm_is_absent(const struct machine *record)
{
    const struct fsm_def *def = fsm_definition((enum machine_kind)record->kind);

    return (def->states[record->state].flags & FSM_INITIAL) != 0;
}

const char *fsm_broken(const struct machine *record)
{
    if (record->kind >= MACHINE_KIND_COUNT)
        return "unknown machine kind";
    const struct fsm_def *def = fsm_definition((enum machine_kind)record->kind);
    if (record->state >= def->states_count)
        return "unknown state";
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        uint8_t effect = record->lane_effect[lane];
        if (effect >= def->effects_count || (effect != 0 && def->effects[effect].lane != lane))
            return "a lane awaits what never runs on it";
        if (record->lane_ticket[lane] > record->tickets)
            return "a lane awaits a ticket that was never issued";
    }
    const struct fsm_state *state = &def->states[record->state];
    bool decides = ((state->never | state->ignored) >> def->timeout_event & 1u) == 0;
    if (!implies(record->deadline_ms != 0, decides))
        return "a timer in a state that waits for no time";
    if (!implies(state->limit_ms > 0, record->deadline_ms != 0))
        return "a wait with a limit, and no timer";
    return def->broken(record);
}

/* --- one step --- */

static bool is_wanted(const struct fsm_def *def, const struct machine *record,
                      const struct fsm_event *event, const struct fsm_now *now)
{
    switch ((enum fsm_class)def->events[event->kind].class) {
    case FSM_COMPLETION: {
        check(event->lane < LANE_COUNT);
        uint8_t effect = record->lane_effect[event->lane];
        return effect != 0 && record->lane_ticket[event->lane] == event->ticket &&
               (def->effects[effect].completions >> event->kind & 1u) != 0;
    }
    case FSM_NEWS:
        return record->generation == event->generation;
    case FSM_CLOCK:
        return record->deadline_ms != 0 && now->ms >= record->deadline_ms;
    case FSM_REQUEST:
    case FSM_MESSAGE:
    case FSM_RESTORE:
        return true;
    }
    unreachable("event class");
}

/* The first row of (state, event), or NULL. */
static const struct fsm_row *rows_of(const struct fsm_def *def, uint8_t state, uint8_t event)
{
    uint16_t low = 0, high = def->rows_count; /* rows are sorted, check 1 proves it */

    while (low < high) {
        uint16_t middle = (uint16_t)((low + high) / 2);
        const struct fsm_row *row = &def->rows[middle];
        if (row->state < state || (row->state == state && row->event < event))
            low = (uint16_t)(middle + 1);
        else
            high = middle;
    }
    if (low == def->rows_count || def->rows[low].state != state || def->rows[low].event != event)
        return NULL;
    return &def->rows[low];
}

uint32_t fsm_guard_mark(const struct fsm_def *def, unsigned number)
{
    const char *name = fsm_guard_name(def, number);

    return (uint32_t)hash_bytes(0, name, strlen(name));
}

uint16_t fsm_row_marked(const struct fsm_def *def, uint8_t state, uint8_t event, uint32_t mark)
{
    const struct fsm_row *row = rows_of(def, state, event);

    while (row != NULL && row->guard != 0 && fsm_guard_mark(def, row->guard) != mark)
        row++; /* the last one has none: check 3 */
    return row == NULL ? 0 : (uint16_t)(row - def->rows);
}

static const struct fsm_row *pick(const struct fsm_def *def, const struct fsm_row *row,
                                  const struct machine *record, const struct fsm_event *event,
                                  const struct fsm_now *now)
{
    check(row->state == record->state);
    check(row->event == event->kind);
    while (row->guard != 0 && !def->guards[row->guard].holds(record, event, now)) {
        row++;
        check(row->state == record->state); /* the last row is unguarded: check 3 */
        check(row->event == event->kind);
    }
    return row;
}

bool fsm_leads_on(const struct fsm_def *def, const struct machine *record,
                  const struct fsm_event *event, const struct fsm_now *now)
{
    const struct fsm_row *row = rows_of(def, record->state, event->kind);

    check(def->events[event->kind].payload == PAYLOAD_NONE); /* there is nothing to be absorbed */
    return row != NULL && pick(def, row, record, event, now)->next != record->state;
}

static void await_nothing(struct machine *record)
{
    memset(record->lane_effect, 0, sizeof(record->lane_effect));
}

static void set_limit(const struct fsm_def *def, struct machine *record, const struct fsm_now *now)
{
    int64_t limit = def->states[record->state].limit_ms;

    check(limit >= 0 || limit == FSM_LIMIT_RULES || limit == FSM_LIMIT_RECORD);
    if (limit < 0)
        record->deadline_ms = def->deadline(record, now);
    else
        record->deadline_ms = limit == 0 ? 0 : now->ms + (uint64_t)limit;
}

/* Issues the effects of ROW; true if any of them is awaited. */
static bool issue(const struct fsm_def *def, const struct machine_id *self, struct machine *record,
                  const struct fsm_row *row, const struct fsm_event *event,
                  const struct fsm_now *now, fsm_send *send, void *ctx, struct fsm_step *step)
{
    bool awaited = false;

    for (int i = 0; i < FSM_EFFECTS_MAX && row->effects[i] != 0; i++) {
        uint8_t effect = row->effects[i];
        uint8_t lane = def->effects[effect].lane;

        check(effect < def->effects_count);
        check(lane != LANE_COUNT);
        if (lane == LANE_SEND) {
            def->send(self, record, effect, event, send, ctx);
        } else if (lane == LANE_CLOCK) {
            record->attempt++;
            uint64_t pause_ms = def->backoff_ms(record, now);
            check(pause_ms > 0); /* nothing is tried again without a pause */
            record->deadline_ms = now->ms + pause_ms;
            awaited = true;
        } else {
            struct fsm_issue *issued = &step->issues[step->issues_count++];
            *issued = (struct fsm_issue){.effect = effect, .lane = lane};
            if (lane < LANE_COUNT) {
                check(def->effects[effect].completions != 0); /* or its lane would wait for ever */
                issued->ticket = ++record->tickets;
                record->lane_effect[lane] = effect;
                record->lane_ticket[lane] = issued->ticket;
            }
        }
    }
    return awaited;
}

enum fsm_verdict fsm_step(const struct fsm_def *def, const struct machine_id *self,
                          struct machine *record, const struct fsm_event *event,
                          const struct fsm_now *now, fsm_send *send, void *ctx,
                          struct fsm_step *ret_step)
{
    check(record->kind == def->kind);
    check(record->state < def->states_count);
    check(event->kind < def->events_count);
    check(self->kind == def->kind);

    const struct fsm_state *state = &def->states[record->state];
    uint8_t class = def->events[event->kind].class;
    uint64_t bit = (uint64_t)1 << event->kind;

    *ret_step = (struct fsm_step){.before = record->state, .after = record->state};
    if (!is_wanted(def, record, event, now))
        return FSM_STALE;
    if ((state->ignored & bit) != 0)
        return FSM_IGNORED;
    const struct fsm_row *row = rows_of(def, record->state, event->kind);
    if (row == NULL)
        return FSM_NEVER;

    if (class == FSM_COMPLETION) {
        check((def->effects[record->lane_effect[event->lane]].completions & bit) != 0);
        record->lane_effect[event->lane] = 0;
    }
    if (class == FSM_CLOCK)
        record->deadline_ms = 0;
    check(implies(def->events[event->kind].payload != PAYLOAD_NONE, event->payload != NULL));
    if (def->absorb != NULL)
        def->absorb(record, event, now);
    row = pick(def, row, record, event, now);
    if (class == FSM_RESTORE) {
        await_nothing(record); /* what the last incarnation awaited will not answer this one */
        record->restored = 1;
    }

    bool moved = row->next != record->state;
    if (moved) {
        record->state = row->next;
        record->entered_ms = now->ms;
        record->deadline_ms = 0;
        record->attempt = 0;
    }
    def->enter(record, row, event, now);
    check(record->state == row->next); /* rules do not choose where to go */
    if (moved || def->states[record->state].limit_ms == FSM_LIMIT_RECORD)
        set_limit(def, record, now);

    /* A limit measures one wait: it starts over when its time came or new work was issued after
     * the old had ended, and goes on unchanged over a restart. */
    bool waiting_again = class == FSM_CLOCK || class == FSM_COMPLETION;
    bool backing_off = issue(def, self, record, row, event, now, send, ctx, ret_step);
    if (!moved && !backing_off && waiting_again && record->deadline_ms == 0)
        set_limit(def, record, now);
    else if (!moved && !backing_off && class == FSM_COMPLETION && ret_step->issues_count > 0 &&
             def->states[record->state].limit_ms > 0)
        set_limit(def, record, now);

    record->revision++;
    ret_step->row = row;
    ret_step->after = record->state;
    check(ret_step->issues_count <= FSM_EFFECTS_MAX);
    check(implies(class == FSM_RESTORE, record->restored));
    check(implies((def->states[record->state].flags & FSM_FINAL) != 0, record->deadline_ms == 0));
    check((def->states[record->state].flags & FSM_INITIAL) == 0);
    check(fsm_broken(record) == NULL);
    return FSM_MOVED;
}

/* --- names --- */

const char *fsm_lane_name(enum fsm_lane lane)
{
    switch (lane) {
    case LANE_HOOK:
        return "hook";
    case LANE_DRIVER:
        return "driver";
    case LANE_RPC:
        return "rpc";
    case LANE_NODE:
        return "node";
    case LANE_WAIT:
        return "wait";
    case LANE_COUNT:
        break;
    case LANE_CLOCK:
        return "clock";
    case LANE_TELL:
        return "tell";
    case LANE_SEND:
        return "send";
    }
    return "?";
}

const char *fsm_verdict_name(enum fsm_verdict verdict)
{
    switch (verdict) {
    case FSM_MOVED:
        return "moved";
    case FSM_IGNORED:
        return "ignored";
    case FSM_STALE:
        return "stale";
    case FSM_NEVER:
        return "never";
    }
    return "?";
}

const char *fsm_state_name(const struct fsm_def *def, unsigned number)
{
    return number < def->states_count ? def->states[number].name : "?";
}

const char *fsm_event_name(const struct fsm_def *def, unsigned number)
{
    return number < def->events_count ? def->events[number].name : "?";
}

const char *fsm_effect_name(const struct fsm_def *def, unsigned number)
{
    return number < def->effects_count ? def->effects[number].name : "?";
}

const char *fsm_guard_name(const struct fsm_def *def, unsigned number)
{
    return number < def->guards_count ? def->guards[number].name : "?";
}
