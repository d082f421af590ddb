/* Pictures of the tables: the golden matrix, dot, mermaid.  Generated, never drawn by hand. */
#include "fsm/fsm.h"

#include <stdio.h>

enum { LINE_SIZE = 512 };

#define SAY(...)                                                                                   \
    do {                                                                                           \
        char line_[LINE_SIZE];                                                                     \
        (void)snprintf(line_, sizeof(line_), __VA_ARGS__);                                         \
        print(ctx, line_);                                                                         \
    } while (0)

static void draw_effects(const struct fsm_def *def, const struct fsm_row *row, fsm_print *print,
                         void *ctx)
{
    for (int i = 0; i < FSM_EFFECTS_MAX && row->effects[i] != 0; i++)
        SAY(" +%s", fsm_effect_name(def, row->effects[i]));
}

static void draw_limit(const struct fsm_state *state, fsm_print *print, void *ctx)
{
    if (state->limit_ms == FSM_LIMIT_RULES)
        SAY(" limit=rules");
    else if (state->limit_ms == FSM_LIMIT_RECORD)
        SAY(" limit=record");
    else if (state->limit_ms != 0)
        SAY(" limit=%lldms", (long long)state->limit_ms);
}

void fsm_draw_matrix(const struct fsm_def *def, fsm_print *print, void *ctx)
{
    SAY("machine %s: %u states, %u events, %u rows\n", def->name, def->states_count,
        def->events_count, def->rows_count);
    for (uint8_t s = 0; s < def->states_count; s++) {
        const struct fsm_state *state = &def->states[s];
        SAY("\n%s%s%s%s", state->name, (state->flags & FSM_INITIAL) != 0 ? " initial" : "",
            (state->flags & FSM_FINAL) != 0 ? " final" : "",
            (state->flags & FSM_RESTING) != 0 ? " resting" : "");
        draw_limit(state, print, ctx);
        SAY("\n");
        for (uint8_t e = 0; e < def->events_count; e++) {
            uint64_t bit = (uint64_t)1 << e;
            if ((state->ignored & bit) != 0)
                SAY("    %-16s ignore\n", fsm_event_name(def, e));
            if ((state->never & bit) != 0)
                SAY("    %-16s never\n", fsm_event_name(def, e));
            for (uint16_t r = 0; r < def->rows_count; r++) {
                const struct fsm_row *row = &def->rows[r];
                if (row->state != s || row->event != e)
                    continue;
                SAY("    %-16s %-18s %s", fsm_event_name(def, e), fsm_guard_name(def, row->guard),
                    fsm_state_name(def, row->next));
                draw_effects(def, row, print, ctx);
                SAY("\n");
            }
        }
    }
}

/* True if no earlier row leads from the same state to the same next one by the same kind of line.
 */
static bool is_first_edge(const struct fsm_def *def, uint16_t number)
{
    const struct fsm_row *row = &def->rows[number];
    bool dotted = row->event == def->restore_event;

    for (uint16_t r = 0; r < number; r++) {
        const struct fsm_row *other = &def->rows[r];
        if (other->state == row->state && other->next == row->next &&
            (other->event == def->restore_event) == dotted)
            return false;
    }
    return row->state != row->next;
}

/* The names of all events that lead the same way as row NUMBER, once each. */
static void draw_label(const struct fsm_def *def, uint16_t number, fsm_print *print, void *ctx)
{
    const struct fsm_row *row = &def->rows[number];
    bool dotted = row->event == def->restore_event;
    int last = -1;

    for (uint16_t r = number; r < def->rows_count; r++) {
        const struct fsm_row *other = &def->rows[r];
        if (other->state != row->state || other->next != row->next || other->event == last ||
            (other->event == def->restore_event) != dotted)
            continue;
        SAY("%s%s", last < 0 ? "" : ", ", fsm_event_name(def, other->event));
        last = other->event;
    }
}

void fsm_draw_dot(const struct fsm_def *def, fsm_print *print, void *ctx)
{
    SAY("digraph %s {\n    node [shape=box, style=rounded];\n", def->name);
    for (uint8_t s = 0; s < def->states_count; s++) {
        uint8_t flags = def->states[s].flags;
        if ((flags & FSM_FINAL) != 0)
            SAY("    %s [peripheries=2];\n", def->states[s].name);
        else if ((flags & FSM_RESTING) != 0)
            SAY("    %s [style=\"rounded,bold\"];\n", def->states[s].name);
    }
    for (uint16_t r = 0; r < def->rows_count; r++) {
        if (!is_first_edge(def, r))
            continue;
        const struct fsm_row *row = &def->rows[r];
        SAY("    %s -> %s [label=\"", fsm_state_name(def, row->state),
            fsm_state_name(def, row->next));
        draw_label(def, r, print, ctx);
        SAY("\"%s];\n", row->event == def->restore_event ? ", style=dotted" : "");
    }
    SAY("}\n");
}

void fsm_draw_mermaid(const struct fsm_def *def, fsm_print *print, void *ctx)
{
    SAY("stateDiagram-v2\n");
    for (uint16_t r = 0; r < def->rows_count; r++) {
        if (!is_first_edge(def, r))
            continue;
        const struct fsm_row *row = &def->rows[r];
        bool initial = (def->states[row->state].flags & FSM_INITIAL) != 0;
        SAY("    %s --> %s: ", initial ? "[*]" : fsm_state_name(def, row->state),
            fsm_state_name(def, row->next));
        draw_label(def, r, print, ctx);
        SAY("\n");
    }
    for (uint8_t s = 0; s < def->states_count; s++) {
        if ((def->states[s].flags & FSM_FINAL) != 0)
            SAY("    %s --> [*]\n", def->states[s].name);
    }
}
