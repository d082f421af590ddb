/* The flight recorder: the last transitions in memory, for who asks what led to an assertion. */
#include "core/machines/part.h"

#include <stdio.h>

void flight_note(struct core *core, const struct journal_event *event)
{
    struct flight *flight = &core->flights[core->flights_count++ % FLIGHT_SIZE];

    *flight = (struct flight){
        .now_ms = event->now_ms,
        .sequence = (uint32_t)event->sequence,
        .ticket = event->event.ticket,
        .row = event->row,
        .kind = event->id.kind,
        .event = event->event.kind,
        .before = event->before,
        .after = event->after,
    };
    (void)text_copy(flight->id, sizeof(flight->id), event->id.text); /* cut: a hint is enough */
}

static void describe(const struct fsm_def *def, const char *id, uint16_t row, uint32_t ticket,
                     char *to, size_t size)
{
    const struct fsm_row *taken = &def->rows[row];

    (void)text_format(to, size, "%s %s %s -%s", def->name, id, fsm_state_name(def, taken->state),
                      fsm_event_name(def, taken->event));
    if (taken->guard != 0) {
        (void)text_append(to, size, "[");
        (void)text_append(to, size, fsm_guard_name(def, taken->guard));
        (void)text_append(to, size, "]");
    }
    (void)text_append(to, size, "-> ");
    (void)text_append(to, size, fsm_state_name(def, taken->next));
    for (int i = 0; i < FSM_EFFECTS_MAX && taken->effects[i] != 0; i++) {
        (void)text_append(to, size, " +");
        (void)text_append(to, size, fsm_effect_name(def, taken->effects[i]));
    }
    if (ticket != 0) {
        char number[24];
        (void)text_format(number, sizeof(number), " ticket=%u", ticket);
        (void)text_append(to, size, number);
    }
}

void core_describe(const struct journal_event *event, char *to, size_t size)
{
    const struct fsm_def *def = fsm_definition((enum machine_kind)event->id.kind);

    check(event->row < def->rows_count);
    const struct fsm_row *row = &def->rows[event->row];
    if (row->state == event->before && row->event == event->event.kind)
        describe(def, event->id.text, event->row, event->event.ticket, to, size);
    else /* of another version, or forged */
        (void)text_format(to, size, "%s %s %s -%s-> %s", def->name, event->id.text,
                          fsm_state_name(def, event->before),
                          fsm_event_name(def, event->event.kind),
                          fsm_state_name(def, event->after));
}

void core_flight_print(const struct core *core, fsm_print *print, void *ctx)
{
    uint64_t first = core->flights_count > FLIGHT_SIZE ? core->flights_count - FLIGHT_SIZE : 0;
    char line[512], text[440];

    for (uint64_t i = first; i < core->flights_count; i++) {
        const struct flight *flight = &core->flights[i % FLIGHT_SIZE];
        const struct fsm_def *def = fsm_definition((enum machine_kind)flight->kind);
        describe(def, flight->id, flight->row, flight->ticket, text, sizeof(text));
        (void)text_format(line, sizeof(line), "%u %llu.%03llu %s\n", flight->sequence,
                          (unsigned long long)(flight->now_ms / 1000),
                          (unsigned long long)(flight->now_ms % 1000), text);
        print(ctx, line);
    }
}

static void print_error(void *ctx, const char *text)
{
    (void)ctx; /* always to standard error: the process is about to end */
    (void)fputs(text, stderr);
}

void core_complain(const struct core *core, const struct machine_id *id,
                   const struct machine *record, const struct fsm_event *event)
{
    const struct fsm_def *def = fsm_definition((enum machine_kind)id->kind);

    core_flight_print(core, print_error, NULL);
    (void)fprintf(stderr, "%s %s in state %s got %s, which its table says can never come\n",
                  def->name, id->text,
                  record == NULL ? "(none)" : fsm_state_name(def, record->state),
                  fsm_event_name(def, event->kind));
}
