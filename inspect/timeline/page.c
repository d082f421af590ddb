/*
 * The timeline as JSON, and as one page that holds it: no network, nothing loaded, nothing sent.
 *
 * The tables of the machines go along, so that the page draws the state diagrams of the very
 * program that wrote it.  Payloads do not: no secret can get into a page that is passed around.
 */
#include "inspect/timeline/timeline.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

static const char placeholder[] = "@TIMELINE@";

static const char *note_name(uint8_t note)
{
    static const char *const names[] = {
        [NOTE_NONE] = "",       [NOTE_STARTED] = "started", [NOTE_FOUND] = "found",
        [NOTE_ENDED] = "ended", [NOTE_CRASHED] = "crashed", [NOTE_FAILED] = "failed",
        [NOTE_ORDER] = "order",
    };

    return names[note];
}

/* --- tables --- */

static void put_states(FILE *to, const struct fsm_def *def)
{
    (void)fputs("\"states\":[", to);
    for (uint8_t i = 0; i < def->states_count; i++) {
        uint8_t state_flags = def->states[i].flags;
        (void)fprintf(to, "%s{\"name\":\"%s\"%s%s%s}", i > 0 ? "," : "", def->states[i].name,
                      (state_flags & FSM_INITIAL) != 0 ? ",\"initial\":true" : "",
                      (state_flags & FSM_FINAL) != 0 ? ",\"final\":true" : "",
                      (state_flags & FSM_RESTING) != 0 ? ",\"resting\":true" : "");
    }
    (void)fputs("]", to);
}

static void put_rows(FILE *to, const struct fsm_def *def)
{
    (void)fputs("\"rows\":[", to);
    for (uint16_t i = 0; i < def->rows_count; i++) {
        const struct fsm_row *row = &def->rows[i];
        (void)fprintf(to, "%s{\"state\":%u,\"event\":\"%s\",\"next\":%u", i > 0 ? "," : "",
                      row->state, fsm_event_name(def, row->event), row->next);
        if (row->guard != 0)
            (void)fprintf(to, ",\"guard\":\"%s\"", fsm_guard_name(def, row->guard));
        if (def->events[row->event].class == FSM_RESTORE)
            (void)fputs(",\"restore\":true", to);
        if (row->effects[0] != 0)
            (void)fputs(",\"effects\":[", to);
        for (int k = 0; k < FSM_EFFECTS_MAX && row->effects[k] != 0; k++)
            (void)fprintf(to, "%s\"%s\"", k > 0 ? "," : "", fsm_effect_name(def, row->effects[k]));
        (void)fputs(row->effects[0] != 0 ? "]}" : "}", to);
    }
    (void)fputs("]", to);
}

static void put_tables(FILE *to)
{
    (void)fputs("\"machines\":{", to);
    for (int kind = 0; kind < MACHINE_KIND_COUNT; kind++) {
        const struct fsm_def *def = fsm_definition((enum machine_kind)kind);
        (void)fprintf(to, "%s\"%s\":{", kind > 0 ? ",\n" : "", def->name);
        put_states(to, def);
        (void)fputs(",", to);
        put_rows(to, def);
        (void)fputs("}", to);
    }
    (void)fputs("}", to);
}

/* --- lanes --- */

static void put_step(FILE *to, const struct timeline *timeline, const struct timeline_lane *lane,
                     const struct step *step)
{
    const struct fsm_def *def = fsm_definition((enum machine_kind)lane->id.kind);
    const struct fsm_row *row = &def->rows[step->row];

    (void)fprintf(to, "{\"sequence\":%" PRIu64 ",\"ms\":%" PRIu64 ",\"unix_ms\":%" PRId64,
                  step->sequence, step->ms - timeline->begin_ms, step->unix_ns / 1000000);
    (void)fprintf(to, ",\"row\":%u,\"event\":\"%s\",\"state\":\"%s\"", step->row,
                  fsm_event_name(def, row->event), fsm_state_name(def, row->next));
    if (step->note != NOTE_NONE) {
        (void)fprintf(to, ",\"note\":\"%s\",\"text\":", note_name(step->note));
        inspect_json_string(to, step->text);
    }
    (void)fputc('}', to);
}

static void put_lane(FILE *to, const struct timeline *timeline, const struct timeline_lane *lane)
{
    const struct fsm_def *def = fsm_definition((enum machine_kind)lane->id.kind);
    char name[ID_TEXT_SIZE];

    inspect_print_id(&lane->id, name);
    (void)fprintf(to, "{\"kind\":\"%s\",\"id\":", def->name);
    inspect_json_string(to, lane->id.text);
    (void)fputs(",\"name\":", to);
    inspect_json_string(to, name);
    (void)fputs(",\"what\":", to);
    inspect_json_string(to, lane->what);
    (void)fprintf(to, ",\"born_ms\":%" PRIu64 ",\"state\":\"%s\",\"steps\":[",
                  lane->born_ms - timeline->begin_ms, fsm_state_name(def, lane->first_state));
    for (size_t i = 0; i < lane->steps.count; i++) {
        (void)fputs(i > 0 ? "," : "", to);
        put_step(to, timeline, lane, &lane->steps.items[i]);
    }
    (void)fputs("]}", to);
}

void timeline_put_json(struct timeline *timeline, FILE *to)
{
    char begin[TIME_TEXT_SIZE];
    const char *comma = "";

    inspect_print_time(timeline->begin_unix_ns, begin);
    (void)fprintf(to, "{\"begin\":\"%s\",\"begin_unix_ms\":%" PRId64 ",\"length_ms\":%" PRIu64,
                  begin, timeline->begin_unix_ns / 1000000, timeline->end_ms - timeline->begin_ms);
    (void)fprintf(to, ",\"cut\":%s,\"restarts\":[", timeline->cut ? "true" : "false");
    for (size_t i = 0; i < timeline->restarts.count; i++) {
        const struct timeline_restart *restart = &timeline->restarts.items[i];
        (void)fprintf(to,
                      "%s{\"sequence\":%" PRIu64 ",\"ms\":%" PRIu64 ",\"unix_ms\":%" PRId64
                      ",\"away_ms\":%" PRIu64 ",\"rebooted\":%s}",
                      i > 0 ? "," : "", restart->sequence, restart->ms - timeline->begin_ms,
                      restart->unix_ns / 1000000, restart->away_ms,
                      restart->rebooted ? "true" : "false");
    }
    (void)fputs("],\"lanes\":[", to);
    for (const struct timeline_lane *lane = timeline->lanes; lane != NULL; lane = lane->hh.next) {
        (void)fputs(comma, to);
        put_lane(to, timeline, lane);
        comma = ",\n";
    }
    (void)fputs("],", to);
    put_tables(to);
    (void)fputc('}', to);
}

/* --- the page --- */

int timeline_put_html(struct timeline *timeline, const char *path, struct err *err)
{
    const char *place =
        memmem(timeline_page, timeline_page_length, placeholder, strlen(placeholder));
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);

    check(place != NULL); /* the page is ours */
    if (fd < 0)
        return err_os(err, err_from_errno(errno), errno, "write %s", path);
    FILE *to = fdopen(fd, "w");
    check(to != NULL);
    const char *rest = place + strlen(placeholder);
    (void)fwrite(timeline_page, 1, (size_t)(place - timeline_page), to);
    timeline_put_json(timeline, to);
    (void)fwrite(rest, 1, timeline_page_length - (size_t)(rest - timeline_page), to);
    bool failed = ferror(to) != 0;
    failed = fclose(to) != 0 || failed;
    if (failed)
        return err_os(err, ERR_IO, errno, "write %s", path);
    (void)fprintf(timeline->inspect->options.out, "%s: open it in any browser\n", path);
    return 0;
}
