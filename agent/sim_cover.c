/* Coverage of rows: what was taken, what was not, and the reasons for what cannot be. */
#include "agent/sim_cover.h"

static const struct reason {
    uint8_t kind;
    const char *state, *event, *guard;
    const char *why;
} reasons[] = {
    {MACHINE_ALLOC, "?", "?", "?", "?"},
};

static bool is_about(const struct reason *reason, enum machine_kind kind, const struct fsm_row *row)
{
    const struct fsm_def *def = fsm_definition(kind);

    return reason->kind == kind && text_equal(reason->state, fsm_state_name(def, row->state)) &&
           text_equal(reason->event, fsm_event_name(def, row->event)) &&
           text_equal(reason->guard, fsm_guard_name(def, row->guard));
}

const char *sim_cover_reason(enum machine_kind kind, unsigned row)
{
    check(row < fsm_definition(kind)->rows_count);
    for (size_t i = 0; i < COUNT_OF(reasons); i++) {
        if (is_about(&reasons[i], kind, &fsm_definition(kind)->rows[row]))
            return reasons[i].why;
    }
    return NULL;
}

const char *sim_cover_stale(void)
{
    for (size_t i = 0; i < COUNT_OF(reasons); i++) {
        const struct fsm_def *def = fsm_definition((enum machine_kind)reasons[i].kind);
        bool found = false;
        for (unsigned row = 0; row < def->rows_count; row++)
            found |= is_about(&reasons[i], (enum machine_kind)reasons[i].kind, &def->rows[row]);
        if (!found)
            return reasons[i].why;
    }
    return NULL;
}

static void print_row(const struct fsm_def *def, unsigned number, fsm_print *print, void *ctx)
{
    const struct fsm_row *row = &def->rows[number];
    const char *why = sim_cover_reason((enum machine_kind)def->kind, number);
    const char *guard = row->guard == 0 ? NULL : fsm_guard_name(def, row->guard);
    char line[256];

    (void)text_format(line, sizeof(line), "  %s %s -%s%s%s%s-> %s: %s\n", def->name,
                      fsm_state_name(def, row->state), fsm_event_name(def, row->event),
                      guard == NULL ? "" : "[", guard == NULL ? "" : guard,
                      guard == NULL ? "" : "]", fsm_state_name(def, row->next),
                      why != NULL ? why : "not taken, and no reason is known"); /* cut */
    print(ctx, line);
}

struct sim_cover sim_cover_look(const struct sim_tally *tally, fsm_print *print, void *ctx)
{
    struct sim_cover cover = {0};

    for (int kind = 0; kind < MACHINE_KIND_COUNT; kind++) {
        const struct fsm_def *def = fsm_definition((enum machine_kind)kind);
        cover.rows += def->rows_count;
        for (unsigned row = 0; row < def->rows_count; row++) {
            if ((tally->rows[kind][row / 64] >> row % 64 & 1) != 0) {
                cover.taken++;
                continue;
            }
            cover.excused += sim_cover_reason((enum machine_kind)kind, row) != NULL;
            if (print != NULL)
                print_row(def, row, print, ctx);
        }
    }
    return cover;
}
