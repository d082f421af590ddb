/* `list` and `show`: the machines as their records are now. */
#include "inspect/part.h"

#include "io/loop.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct listing {
    struct inspect *inspect; /* first: inspect_bad finds it here */
    int64_t now_unix_ns;
    int64_t age_ns; /* of -age */
    uint64_t count;
};

/* How long the machine has been in its state; not less than 0, whatever the clocks say. */
static int64_t age_of(const struct listing *listing, const struct machine *record)
{
    int64_t age = listing->now_unix_ns - inspect_unix_ns(listing->inspect, record->entered_ms);

    return age > 0 ? age : 0;
}

static bool list_record(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct listing *listing = ctx;
    struct inspect *inspect = listing->inspect;
    const struct fsm_def *def = fsm_definition((enum machine_kind)id->kind);
    const char *state = fsm_state_name(def, record->state), *wanted = inspect->flags[FLAG_STATE];
    char name[ID_TEXT_SIZE], age[AGE_TEXT_SIZE], summary[256];

    if (!inspect_wants(inspect, id) || (wanted != NULL && !text_equal(wanted, state)) ||
        age_of(listing, record) < listing->age_ns)
        return true;
    listing->count++;
    if (inspect_flag(inspect, FLAG_JSON)) {
        record_put_json(inspect->out, id, record, !inspect_flag(inspect, FLAG_REVEAL));
        (void)fputc('\n', inspect->out);
        return true;
    }
    if (listing->count == 1)
        (void)fprintf(inspect->out, "%-7s %-28s %-13s %8s  %s\n", "KIND", "ID", "STATE", "FOR",
                      "WHAT");
    id_print(id, name);
    age_print(age_of(listing, record), age);
    record_summary(record, summary, sizeof(summary));
    (void)fprintf(inspect->out, "%-7s %-28s %-13s %8s  %s\n", def->name, name, state, age, summary);
    return true;
}

int inspect_list(struct inspect *inspect)
{
    struct listing listing = {.inspect = inspect, .now_unix_ns = loop_now_unix_ns()};
    const char *age = inspect->flags[FLAG_AGE];
    struct err err = {0};
    int code = 0;

    if (age != NULL && !text_to_duration_ns(age, &listing.age_ns))
        return inspect_usage(inspect, "-age: \"%s\" is no length of time, as 90s or 1h30m", age);
    for (int kind = MACHINE_KIND_COUNT - 1; kind >= 0 && code == 0; kind--)
        code = journal_each_record(inspect->journal, (enum machine_kind)kind, list_record,
                                   inspect_bad, &listing, &err);
    if (code < 0)
        return inspect_fail(inspect, &err);
    if (listing.count == 0 && !inspect_flag(inspect, FLAG_JSON))
        (void)fputs("no machines\n", inspect->out);
    return STATUS_OK;
}

/* --- show --- */

struct showing {
    struct inspect *inspect; /* first */
    struct machine_id id;
    uint64_t events;
    bool found;
};

static void show_value(void *ctx, const char *path, const char *text, const char *doc, bool zero)
{
    struct inspect *inspect = ctx;
    bool all = inspect_flag(inspect, FLAG_ALL);

    if (zero && !all)
        return;
    (void)fprintf(inspect->out, "  %-32s %s%s%s\n", path, text,
                  all && doc[0] != '\0' ? "    # " : "", all ? doc : "");
}

static bool show_record(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct showing *showing = ctx;
    struct inspect *inspect = showing->inspect;
    bool redact = !inspect_flag(inspect, FLAG_REVEAL);
    char summary[256], entered[TIME_TEXT_SIZE];

    if (!machine_id_equal(id, &showing->id))
        return true;
    showing->found = true;
    if (inspect_flag(inspect, FLAG_JSON)) {
        (void)fputs("\"machine\":", inspect->out);
        record_put_json(inspect->out, id, record, redact);
        return false;
    }
    record_summary(record, summary, sizeof(summary));
    time_print(inspect_unix_ns(inspect, record->entered_ms), entered);
    (void)fprintf(inspect->out, "%s %s\n  %s\n  in its state since %s\n\nrecord\n",
                  machine_kind_name((enum machine_kind)id->kind), id->text, summary, entered);
    record_walk(record, redact, show_value, inspect);
    return false;
}

static bool show_event(void *ctx, const struct journal_event *event)
{
    struct showing *showing = ctx;
    struct inspect *inspect = showing->inspect;
    char line[512], when[TIME_TEXT_SIZE];

    if (!machine_id_equal(&event->id, &showing->id))
        return true;
    if (inspect_flag(inspect, FLAG_JSON)) {
        (void)fputs(showing->events++ == 0 ? "" : ",", inspect->out);
        event_put_json(inspect->out, event, !inspect_flag(inspect, FLAG_REVEAL));
        return true;
    }
    showing->events++;
    event_describe(event, line, sizeof(line));
    time_print(event->unix_ns, when);
    /* The machine is known: the line goes on behind its kind and id. */
    const char *rest = line + strlen(machine_kind_name((enum machine_kind)event->id.kind)) + 1 +
                       strlen(event->id.text) + 1;
    (void)fprintf(inspect->out, "  %8" PRIu64 "  %s  %s\n", event->sequence, when,
                  rest < line + strlen(line) ? rest : line);
    return true;
}

static void show_spec(struct inspect *inspect, const struct machine_id *id)
{
    char key[JOURNAL_KEY_SIZE], *bytes;
    struct err err = {0};
    size_t length;

    if (id->kind != MACHINE_ALLOC || !text_format(key, sizeof(key), "alloc/%s", id->text))
        return;
    bool json = inspect_flag(inspect, FLAG_JSON);
    int code = journal_spec_read(inspect->journal, key, &bytes, &length, &err);
    if (code < 0) {
        if (!json)
            (void)fprintf(inspect->out, "\nspecification\n  none: %s\n", err.text);
        return;
    }
    json_t *spec = json_loadb(bytes, length, JSON_ALLOW_NUL, NULL);
    free(bytes);
    if (spec != NULL && !inspect_flag(inspect, FLAG_REVEAL))
        spec_redact(spec);
    char *text = json_dumps(spec, json ? JSON_COMPACT : JSON_INDENT(2));
    json_decref(spec);
    if (json)
        (void)fprintf(inspect->out, ",\"spec\":%s", text == NULL ? "null" : text);
    else if (text == NULL)
        (void)fprintf(inspect->out, "\nspecification\n  %zu bytes that are no JSON\n", length);
    else
        (void)fprintf(inspect->out, "\nspecification\n%s\n", text);
    free(text);
}

static int walk_one(struct inspect *inspect, struct showing *showing, struct err *err)
{
    bool json = inspect_flag(inspect, FLAG_JSON);
    int code = journal_each_record(inspect->journal, (enum machine_kind)showing->id.kind,
                                   show_record, inspect_bad, showing, err);

    if (code < 0)
        return code;
    if (!showing->found && json)
        (void)fputs("\"machine\":null", inspect->out);
    else if (!showing->found)
        (void)fprintf(inspect->out, "%s %s\n  gone: only its history is left\n",
                      machine_kind_name((enum machine_kind)showing->id.kind), showing->id.text);
    show_spec(inspect, &showing->id);
    (void)fputs(json ? ",\"history\":[" : "\nhistory\n", inspect->out);
    return journal_each_event(inspect->journal, inspect->first.sequence, show_event, inspect_bad,
                              showing, err);
}

int inspect_show(struct inspect *inspect)
{
    struct showing showing = {.inspect = inspect};
    bool json = inspect_flag(inspect, FLAG_JSON);
    struct err err = {0};

    if (inspect_find(inspect, inspect->args[0], &showing.id, &err) < 0)
        return inspect_fail(inspect, &err);
    if (json)
        (void)fputc('{', inspect->out);
    if (walk_one(inspect, &showing, &err) < 0)
        return inspect_fail(inspect, &err);
    if (json)
        (void)fputs("]}\n", inspect->out);
    else if (showing.events == 0)
        (void)fputs("  none: its events have been trimmed\n", inspect->out);
    return STATUS_OK;
}
