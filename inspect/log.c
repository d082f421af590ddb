/* `log`: the events, one on each line, and what comes next. */
#include "inspect/part.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FOLLOW_POLL_MS = 250 };

struct reading {
    struct inspect *inspect; /* first: inspect_bad finds it here */
    uint64_t next, last;     /* what to read next, and no further than */
    char **lines;            /* ring of the last ones, NULL if all are wanted */
    uint64_t lines_max, lines_count;
};

static bool is_wanted(const struct inspect *inspect, const struct journal_event *event)
{
    const struct fsm_def *def = fsm_definition((enum machine_kind)event->id.kind);
    const char *state = inspect->options.state, *name = inspect->options.event;

    return inspect_wants(inspect, &event->id) &&
           (state == NULL || text_equal(state, fsm_state_name(def, event->after))) &&
           (name == NULL || text_equal(name, fsm_event_name(def, event->event.kind)));
}

static void print_event(struct inspect *inspect, FILE *to, const struct journal_event *event)
{
    char line[512], when[TIME_TEXT_SIZE];

    if (inspect->options.json) {
        inspect_json_event(to, event, !inspect->options.reveal);
        (void)fputc('\n', to);
        return;
    }
    inspect_print_event(event, line, sizeof(line));
    inspect_print_time(event->unix_ns, when);
    (void)fprintf(to, "%8" PRIu64 "  %s  %s\n", event->sequence, when, line);
}

static void keep_line(struct reading *reading, const struct journal_event *event)
{
    char **place = &reading->lines[reading->lines_count++ % reading->lines_max];
    size_t size;

    free(*place);
    *place = NULL;
    FILE *memory = open_memstream(place, &size);
    check(memory != NULL);
    print_event(reading->inspect, memory, event);
    int code = fclose(memory);
    check(code == 0); /* memory only */
}

static bool read_event(void *ctx, const struct journal_event *event)
{
    struct reading *reading = ctx;

    if (event->sequence > reading->last)
        return false;
    reading->next = event->sequence + 1;
    if (!is_wanted(reading->inspect, event))
        return true;
    if (reading->lines != NULL)
        keep_line(reading, event);
    else
        print_event(reading->inspect, reading->inspect->options.out, event);
    return !ferror(reading->inspect->options.out);
}

static void flush_lines(struct reading *reading)
{
    uint64_t from =
        reading->lines_count > reading->lines_max ? reading->lines_count - reading->lines_max : 0;

    for (uint64_t i = from; i < reading->lines_count; i++)
        (void)fputs(reading->lines[i % reading->lines_max], reading->inspect->options.out);
}

static void free_lines(struct reading *reading)
{
    for (uint64_t i = 0; reading->lines != NULL && i < reading->lines_max; i++)
        free(reading->lines[i]);
    free(reading->lines);
    reading->lines = NULL;
}

/* What the daemon adds; a poll that finds nothing new is one short read of the log's end. */
static int follow(struct reading *reading, struct err *err)
{
    const struct timespec pause = {.tv_nsec = FOLLOW_POLL_MS * 1000000};
    struct inspect *inspect = reading->inspect;
    int code = 0;

    while (code == 0 && reading->next <= reading->last && fflush(inspect->options.out) == 0) {
        uint64_t end = journal_next_sequence(inspect->journal);
        if (end <= reading->next) {
            (void)nanosleep(&pause, NULL); /* a signal ends the program or shortens one pause */
            continue;
        }
        code = journal_each_event(inspect->journal, reading->next, read_event, inspect_bad, reading,
                                  err);
        if (reading->next < end)
            reading->next = end; /* the last ones are damaged */
    }
    return code;
}

static int read_log(struct reading *reading, struct err *err)
{
    struct inspect *inspect = reading->inspect;
    int code = inspect_range(inspect, &reading->next, &reading->last, err);

    if (code == 0)
        code = journal_each_event(inspect->journal, reading->next, read_event, inspect_bad, reading,
                                  err);
    if (code < 0)
        return code;
    if (reading->next == 0)
        reading->next = 1;
    if (reading->lines != NULL)
        flush_lines(reading);
    free_lines(reading);
    return inspect->options.follow ? follow(reading, err) : 0;
}

int inspect_log(struct inspect *inspect, uint64_t lines, struct err *err)
{
    struct reading reading = {.inspect = inspect, .lines_max = lines};

    check(lines <= INSPECT_LINES_MAX);
    if (lines != 0) {
        reading.lines = calloc(lines, sizeof(*reading.lines));
        check(reading.lines != NULL);
    }
    int code = read_log(&reading, err);
    free_lines(&reading);
    return code;
}
