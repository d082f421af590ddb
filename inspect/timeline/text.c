/*
 * The timeline for a terminal: one line for each machine, then what happened in words.
 *
 * Time runs to the right, but not evenly: only moments at which something happened take room, and
 * the gaps between them grow with their logarithm, so that both milliseconds and days fit a line.
 */
#include "inspect/timeline/timeline.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    LABEL_COLUMNS = 34,
    COLUMNS_MIN = 60,
    COLUMNS_MAX = 400,
    COLUMNS_USUAL = 100,
    TICK_COLUMNS = 12,
    LANES_MAX = 200,
    NOTES_MAX = 400,
};

struct drawing {
    const struct timeline *timeline;
    uint64_t *moments; /* node times at which something happened, ascending, each once */
    double *places;    /* of each, from 0 to 1 */
    size_t moments_count;
    int columns;
};

/* --- time to columns --- */

static int by_time(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* Weight of a gap: about 1 for a few milliseconds, 10 for a minute, 20 for a day. */
static double weight(uint64_t gap_ms)
{
    return 1.0 + log2(1.0 + (double)gap_ms / 50.0);
}

static void place_moments(struct drawing *drawing)
{
    const struct timeline *timeline = drawing->timeline;
    size_t count = 0;
    double sum = 0;

    drawing->moments =
        calloc(timeline->steps_count + timeline->restarts.count + 2, sizeof(*drawing->moments));
    check(drawing->moments != NULL);
    drawing->moments[count++] = timeline->begin_ms;
    drawing->moments[count++] = timeline->end_ms;
    for (const struct timeline_lane *lane = timeline->lanes; lane != NULL; lane = lane->hh.next) {
        for (size_t i = 0; i < lane->steps.count; i++)
            drawing->moments[count++] = lane->steps.items[i].ms;
    }
    for (size_t i = 0; i < timeline->restarts.count; i++)
        drawing->moments[count++] = timeline->restarts.items[i].ms;
    qsort(drawing->moments, count, sizeof(*drawing->moments), by_time);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || drawing->moments[i] != drawing->moments[drawing->moments_count - 1])
            drawing->moments[drawing->moments_count++] = drawing->moments[i];
    }
    drawing->places = calloc(drawing->moments_count, sizeof(*drawing->places));
    check(drawing->places != NULL);
    for (size_t i = 1; i < drawing->moments_count; i++) {
        sum += weight(drawing->moments[i] - drawing->moments[i - 1]);
        drawing->places[i] = sum;
    }
    for (size_t i = 1; i < drawing->moments_count; i++)
        drawing->places[i] /= sum;
}

/* The column of the last moment that is not later than MS. */
static int column_of(const struct drawing *drawing, uint64_t ms)
{
    size_t low = 0, high = drawing->moments_count;

    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (drawing->moments[middle] <= ms)
            low = middle;
        else
            high = middle;
    }
    return (int)(drawing->places[low] * (drawing->columns - 1) + 0.5);
}

/* The time that a column stands for: of the last moment not to the right of it. */
static uint64_t time_of(const struct drawing *drawing, int column)
{
    size_t low = 0, high = drawing->moments_count;

    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if ((int)(drawing->places[middle] * (drawing->columns - 1) + 0.5) <= column)
            low = middle;
        else
            high = middle;
    }
    return drawing->moments[low];
}

/* --- lines --- */

static void put_line(const struct drawing *drawing, const char *label, const char *line)
{
    int length = (int)strlen(line);

    while (length > 0 && line[length - 1] == ' ')
        length--;
    (void)fprintf(drawing->timeline->inspect->options.out, "%-*.*s %.*s\n", LABEL_COLUMNS,
                  LABEL_COLUMNS, label, length, line);
}

static void put_axis(const struct drawing *drawing)
{
    char line[COLUMNS_MAX + AGE_TEXT_SIZE + 2], tick[AGE_TEXT_SIZE];

    memset(line, ' ', sizeof(line));
    for (int column = 0; column < drawing->columns; column += TICK_COLUMNS) {
        uint64_t ms = time_of(drawing, column) - drawing->timeline->begin_ms;
        inspect_print_age((int64_t)ms * 1000000, tick);
        if (strlen(tick) < TICK_COLUMNS)
            memcpy(line + column, tick, strlen(tick));
    }
    line[drawing->columns + TICK_COLUMNS] = '\0';
    put_line(drawing, "", line);
}

static void put_daemon(const struct drawing *drawing)
{
    const struct timeline *timeline = drawing->timeline;
    char line[COLUMNS_MAX + 1];

    memset(line, '=', sizeof(line));
    line[drawing->columns] = '\0';
    for (size_t i = 0; i < timeline->restarts.count; i++)
        line[column_of(drawing, timeline->restarts.items[i].ms)] =
            timeline->restarts.items[i].rebooted ? 'B' : 'R';
    put_line(drawing, "daemon", line);
}

static char fill_of(const struct fsm_def *def, uint8_t state)
{
    bool alive = (def->kind == MACHINE_TASK && state == T_RUNNING) ||
                 (def->kind == MACHINE_ALLOC && state == A_RUNNING) ||
                 (def->kind == MACHINE_VOLUME && state == V_READY) ||
                 (def->kind == MACHINE_PLUGIN && state == P_READY);
    bool over = (def->kind == MACHINE_TASK && (state == T_DEAD || state == T_OWING)) ||
                (def->kind == MACHINE_ALLOC && state == A_TERMINAL) ||
                (def->kind == MACHINE_PLUGIN && state == P_STOPPED);

    if ((def->states[state].flags & (FSM_INITIAL | FSM_FINAL)) != 0)
        return ' ';
    return alive ? '=' : over ? '.' : '-';
}

/* One state from column FROM to column TO, its name in it as far as there is room. */
static void draw_state(char *line, int from, int to, const struct fsm_def *def, uint8_t state)
{
    char fill = fill_of(def, state);
    const char *name = fsm_state_name(def, state);
    int length = (int)strlen(name), room = to - from - 1;

    if (to <= from)
        return;
    memset(line + from, fill, (size_t)(to - from));
    if (fill == ' ')
        return;
    line[from] = '|';
    if (room >= length)
        memcpy(line + from + 1, name, (size_t)length);
}

static void draw_lane(const struct drawing *drawing, const struct timeline_lane *lane, char *line)
{
    static const char marks[] = {[NOTE_ENDED] = 'o', [NOTE_CRASHED] = 'x', [NOTE_FAILED] = '!'};
    const struct fsm_def *def = fsm_definition((enum machine_kind)lane->id.kind);
    int from = column_of(drawing, lane->born_ms);
    uint8_t state = lane->first_state;

    for (size_t i = 0; i < lane->steps.count; i++) {
        int at = column_of(drawing, lane->steps.items[i].ms);
        uint8_t next = timeline_state(lane, i);
        if (next == state)
            continue;
        draw_state(line, from, at, def, state);
        from = at;
        state = next;
    }
    draw_state(line, from, drawing->columns, def, state);
    if ((def->states[state].flags & FSM_FINAL) != 0)
        line[from] = '|';
    for (size_t i = 0; i < lane->steps.count; i++) {
        uint8_t note = lane->steps.items[i].note;
        if (note < sizeof(marks) && marks[note] != '\0')
            line[column_of(drawing, lane->steps.items[i].ms)] = marks[note];
    }
}

static void put_lane(const struct drawing *drawing, const struct timeline_lane *lane)
{
    char line[COLUMNS_MAX + 1], label[ID_TEXT_SIZE + 160], name[ID_TEXT_SIZE];
    const char *slash = strchr(lane->id.text, '/');

    memset(line, ' ', sizeof(line));
    line[drawing->columns] = '\0';
    draw_lane(drawing, lane, line);
    inspect_print_id(&lane->id, name);
    if (lane->id.kind == MACHINE_ALLOC)
        (void)text_format(label, sizeof(label), "alloc %s %s", name, lane->what);
    else if (slash != NULL)
        (void)text_format(label, sizeof(label), "  %s %s",
                          machine_kind_name((enum machine_kind)lane->id.kind), slash + 1);
    else
        (void)text_format(label, sizeof(label), "%s %s",
                          machine_kind_name((enum machine_kind)lane->id.kind), name);
    text_clean(label);
    put_line(drawing, label, line);
}

/* --- words --- */

struct happening {
    uint64_t sequence, ms;
    const struct timeline_lane *lane; /* NULL: the daemon */
    const struct timeline_restart *restart;
    const char *text;
};

static int by_sequence(const void *a, const void *b)
{
    const struct happening *x = a, *y = b;

    if (x->sequence != y->sequence)
        return x->sequence < y->sequence ? -1 : 1;
    return (x->lane != NULL) - (y->lane != NULL); /* the restart before what it led to */
}

static void put_happening(const struct timeline *timeline, const struct happening *happening)
{
    char when[AGE_TEXT_SIZE], away[AGE_TEXT_SIZE], name[ID_TEXT_SIZE];
    FILE *out = timeline->inspect->options.out;

    inspect_print_age((int64_t)(happening->ms - timeline->begin_ms) * 1000000, when);
    if (happening->restart != NULL) {
        inspect_print_age((int64_t)happening->restart->away_ms * 1000000, away);
        (void)fprintf(out, "%8" PRIu64 "  +%-9s daemon came back%s; last event %s before\n",
                      happening->sequence, when,
                      happening->restart->rebooted ? ", the host had been booted" : "", away);
        return;
    }
    inspect_print_id(&happening->lane->id, name);
    (void)fprintf(out, "%8" PRIu64 "  +%-9s %s %s: %s\n", happening->sequence, when,
                  machine_kind_name((enum machine_kind)happening->lane->id.kind), name,
                  happening->text);
}

static void put_words(const struct timeline *timeline)
{
    size_t count = 0;
    struct happening *list =
        calloc(timeline->steps_count + timeline->restarts.count + 1, sizeof(*list));

    check(list != NULL);
    for (size_t i = 0; i < timeline->restarts.count; i++)
        list[count++] = (struct happening){
            .sequence = timeline->restarts.items[i].sequence,
            .ms = timeline->restarts.items[i].ms,
            .restart = &timeline->restarts.items[i],
        };
    for (const struct timeline_lane *lane = timeline->lanes; lane != NULL; lane = lane->hh.next) {
        for (size_t i = 0; i < lane->steps.count; i++) {
            const struct step *step = &lane->steps.items[i];
            if (step->text != NULL)
                list[count++] = (struct happening){
                    .sequence = step->sequence,
                    .ms = step->ms,
                    .lane = lane,
                    .text = step->text,
                };
        }
    }
    qsort(list, count, sizeof(*list), by_sequence);
    size_t from = count > NOTES_MAX ? count - NOTES_MAX : 0;
    if (from > 0)
        (void)fprintf(timeline->inspect->options.out, "(%zu earlier ones left out; see -since)\n",
                      from);
    for (size_t i = from; i < count; i++)
        put_happening(timeline, &list[i]);
    free(list);
}

/* --- all of it --- */

/* Of the drawing alone, without its labels. */
static int columns_within(int64_t wanted)
{
    int64_t columns = wanted == 0 ? COLUMNS_USUAL : wanted;

    columns = columns < COLUMNS_MIN ? COLUMNS_MIN : columns;
    columns = columns > COLUMNS_MAX ? COLUMNS_MAX : columns;
    return (int)columns - LABEL_COLUMNS - 1;
}

static void put_head(const struct timeline *timeline)
{
    char begin[TIME_TEXT_SIZE], length[AGE_TEXT_SIZE];

    inspect_print_time(timeline->begin_unix_ns, begin);
    inspect_print_age((int64_t)(timeline->end_ms - timeline->begin_ms) * 1000000, length);
    (void)fprintf(timeline->inspect->options.out,
                  "%s and %s from there: %" PRIu64 " events, %u machines, %zu restarts\n\n", begin,
                  length, timeline->steps_count, HASH_COUNT(timeline->lanes),
                  timeline->restarts.count);
}

void timeline_put_text(struct timeline *timeline, int64_t columns)
{
    struct drawing drawing = {
        .timeline = timeline,
        .columns = columns_within(columns),
    };
    unsigned number = 0;

    put_head(timeline);
    place_moments(&drawing);
    put_axis(&drawing);
    put_daemon(&drawing);
    for (const struct timeline_lane *lane = timeline->lanes; lane != NULL; lane = lane->hh.next) {
        if (++number <= LANES_MAX)
            put_lane(&drawing, lane);
    }
    if (number > LANES_MAX)
        (void)fprintf(timeline->inspect->options.out,
                      "(%u more; see -alloc, -kind, -since, -html)\n", number - LANES_MAX);
    (void)fputs("\n= alive  . over  x crashed  o ended as it should  ! failed  R daemon came back  "
                "B host was booted\n\n",
                timeline->inspect->options.out);
    put_words(timeline);
    free(drawing.moments);
    free(drawing.places);
}
