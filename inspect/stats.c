/* `stats` and `compact`: the journal's figures, and a copy without its gaps. */
#include "inspect/part.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { STATES_MAX = 32, ROWS_MAX = 512 };

struct counting {
    struct inspect *inspect; /* first: inspect_bad finds it here */
    uint64_t events[MACHINE_KIND_COUNT][FSM_EVENTS_MAX];
    uint64_t records[MACHINE_KIND_COUNT][STATES_MAX];
    bool rows[MACHINE_KIND_COUNT][ROWS_MAX];
    uint64_t turns, previous_turn, restarts, restart_turn, record_bytes;
};

static bool count_event(void *ctx, const struct journal_event *event)
{
    struct counting *counting = ctx;
    const struct fsm_def *def = fsm_definition((enum machine_kind)event->id.kind);

    counting->events[event->id.kind][event->event.kind]++;
    counting->rows[event->id.kind][event->row % ROWS_MAX] = true;
    if (event->turn != counting->previous_turn)
        counting->turns++;
    counting->previous_turn = event->turn;
    if (def->events[event->event.kind].class == FSM_RESTORE &&
        event->turn != counting->restart_turn) {
        counting->restart_turn = event->turn;
        counting->restarts++;
    }
    return true;
}

static bool count_record(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct counting *counting = ctx;

    counting->records[id->kind][record->state % STATES_MAX]++;
    counting->record_bytes += fsm_record_size(record);
    return true;
}

static void put_count(struct inspect *inspect, const char *group, const char *name, uint64_t count)
{
    if (inspect->options.json)
        (void)fprintf(inspect->options.out,
                      "{\"group\":\"%s\",\"name\":\"%s\",\"count\":%" PRIu64 "}\n", group, name,
                      count);
    else
        (void)fprintf(inspect->options.out, "  %-20s %12" PRIu64 "\n", name, count);
}

static void put_group(struct inspect *inspect, const char *title)
{
    if (!inspect->options.json)
        (void)fprintf(inspect->options.out, "%s\n", title);
}

static void put_figures(struct counting *counting, const struct journal_figures *figures)
{
    struct inspect *inspect = counting->inspect;

    put_group(inspect, "journal");
    put_count(inspect, "journal", "schema", figures->schema);
    put_count(inspect, "journal", "bytes of the file", figures->bytes_file);
    put_count(inspect, "journal", "bytes in use", figures->bytes_used);
    put_count(inspect, "journal", "bytes of the map", figures->bytes_map);
    put_count(inspect, "journal", "readers", figures->readers);
    put_count(inspect, "journal", "events", figures->events);
    put_count(inspect, "journal", "records", figures->states);
    put_count(inspect, "journal", "bytes of records", counting->record_bytes);
    put_count(inspect, "journal", "base records", figures->bases);
    put_count(inspect, "journal", "specifications", figures->specs);
    put_count(inspect, "journal", "quarantined", figures->quarantined);
}

static void put_log(struct counting *counting, const struct journal_figures *figures)
{
    struct inspect *inspect = counting->inspect;
    char first[TIME_TEXT_SIZE], last[TIME_TEXT_SIZE], length[AGE_TEXT_SIZE];
    int64_t ns = (int64_t)(inspect->last.now_ms - inspect->first.now_ms) * 1000000;

    put_group(inspect, "log");
    put_count(inspect, "log", "first sequence", inspect->first.sequence);
    put_count(inspect, "log", "last sequence", inspect->last.sequence);
    put_count(inspect, "log", "turns", counting->turns);
    put_count(inspect, "log", "restarts", counting->restarts);
    if (inspect->options.json || counting->turns == 0)
        return;
    inspect_print_time(inspect->first.unix_ns, first);
    inspect_print_time(inspect->last.unix_ns, last);
    inspect_print_age(ns, length);
    (void)fprintf(inspect->options.out,
                  "  from %s to %s, %s\n  %.1f events a turn, %.1f a minute\n", first, last, length,
                  (double)figures->events / (double)counting->turns,
                  ns > 0 ? (double)figures->events * 60e9 / (double)ns : 0.0);
}

static void put_kind(struct counting *counting, enum machine_kind kind)
{
    const struct fsm_def *def = fsm_definition(kind);
    struct inspect *inspect = counting->inspect;
    uint64_t rows = 0, sum = 0;
    char title[64];

    for (uint16_t row = 0; row < def->rows_count && row < ROWS_MAX; row++)
        rows += counting->rows[kind][row];
    for (int i = 0; i < STATES_MAX; i++)
        sum += counting->records[kind][i];
    for (int i = 0; i < FSM_EVENTS_MAX; i++)
        sum += counting->events[kind][i];
    if (sum == 0)
        return;
    (void)text_format(title, sizeof(title), "%s records", def->name); /* fits */
    put_group(inspect, title);
    for (uint8_t state = 0; state < def->states_count && state < STATES_MAX; state++) {
        if (counting->records[kind][state] > 0)
            put_count(inspect, title, fsm_state_name(def, state), counting->records[kind][state]);
    }
    (void)text_format(title, sizeof(title), "%s events", def->name); /* fits */
    put_group(inspect, title);
    for (uint8_t event = 0; event < def->events_count; event++) {
        if (counting->events[kind][event] > 0)
            put_count(inspect, title, fsm_event_name(def, event), counting->events[kind][event]);
    }
    if (inspect->options.json)
        put_count(inspect, title, "rows taken", rows);
    else
        (void)fprintf(inspect->options.out, "  %" PRIu64 " of %u rows of the table were taken\n",
                      rows, def->rows_count);
}

static int count_all(struct counting *counting, struct journal_figures *figures, struct err *err)
{
    struct journal *journal = counting->inspect->journal;
    int code = journal_figures(journal, figures, err);

    for (int kind = 0; kind < MACHINE_KIND_COUNT && code == 0; kind++)
        code = journal_each_record(journal, (enum machine_kind)kind, count_record, inspect_bad,
                                   counting, err);
    if (code == 0)
        code = journal_each_event(journal, 0, count_event, inspect_bad, counting, err);
    return code;
}

int inspect_stats(struct inspect *inspect, struct err *err)
{
    struct counting *counting = calloc(1, sizeof(*counting));
    struct journal_figures figures;

    check(counting != NULL);
    counting->inspect = inspect;
    int code = count_all(counting, &figures, err);
    if (code == 0) {
        put_figures(counting, &figures);
        put_log(counting, &figures);
        for (int kind = MACHINE_KIND_COUNT - 1; kind >= 0; kind--)
            put_kind(counting, (enum machine_kind)kind);
    }
    free(counting);
    return code;
}

int inspect_compact(struct inspect *inspect, const char *path, struct err *err)
{
    struct journal_figures figures, copied;
    struct journal *copy;

    int code = journal_figures(inspect->journal, &figures, err);
    if (code == 0)
        code = journal_copy(inspect->journal, path, err);
    if (code == 0)
        code = journal_open(path, JOURNAL_READ, &copy, err);
    if (code < 0)
        return code;
    code = journal_figures(copy, &copied, err);
    journal_close(copy);
    if (code < 0)
        return code;
    if (inspect->options.json)
        (void)fprintf(inspect->options.out,
                      "{\"bytes\":%" PRIu64 ",\"bytes_before\":%" PRIu64 "}\n", copied.bytes_file,
                      figures.bytes_file);
    else
        (void)fprintf(inspect->options.out, "%s: %" PRIu64 " bytes, before %" PRIu64 "\n", path,
                      copied.bytes_file, figures.bytes_file);
    return 0;
}
