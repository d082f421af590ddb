/* `list` and `show`: the machines as their records are now. */
#include "inspect/part.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct listing {
    struct inspect *inspect; /* first: inspect_bad finds it here */
    int64_t age_ns;          /* at least */
    uint64_t count;
};

/* How long the machine has been in its state; not less than 0, whatever the clocks say. */
static int64_t age_of(const struct listing *listing, const struct machine *record)
{
    int64_t age = listing->inspect->options.now_unix_ns -
                  inspect_unix_ns(listing->inspect, record->entered_ms);

    return age > 0 ? age : 0;
}

static bool list_record(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct listing *listing = ctx;
    struct inspect *inspect = listing->inspect;
    const struct fsm_def *def = fsm_definition((enum machine_kind)id->kind);
    const char *state = fsm_state_name(def, record->state), *wanted = inspect->options.state;
    char name[ID_TEXT_SIZE], age[AGE_TEXT_SIZE], summary[256];

    if (!inspect_wants(inspect, id) || (wanted != NULL && !text_equal(wanted, state)) ||
        age_of(listing, record) < listing->age_ns)
        return true;
    listing->count++;
    if (inspect->options.json) {
        inspect_json_record(inspect->options.out, id, record, !inspect->options.reveal);
        (void)fputc('\n', inspect->options.out);
        return true;
    }
    if (listing->count == 1)
        (void)fprintf(inspect->options.out, "%-7s %-28s %-13s %8s  %s\n", "KIND", "ID", "STATE",
                      "FOR", "WHAT");
    inspect_print_id(id, name);
    inspect_print_age(age_of(listing, record), age);
    inspect_print_summary(record, summary, sizeof(summary));
    (void)fprintf(inspect->options.out, "%-7s %-28s %-13s %8s  %s\n", def->name, name, state, age,
                  summary);
    return true;
}

int inspect_list(struct inspect *inspect, int64_t age_ns, struct err *err)
{
    struct listing listing = {.inspect = inspect, .age_ns = age_ns};
    int code = 0;

    for (int kind = MACHINE_KIND_COUNT - 1; kind >= 0 && code == 0; kind--)
        code = journal_each_record(inspect->journal, (enum machine_kind)kind, list_record,
                                   inspect_bad, &listing, err);
    if (code == 0 && listing.count == 0 && !inspect->options.json)
        (void)fputs("no machines\n", inspect->options.out);
    return code;
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
    bool all = inspect->options.all;

    if (zero && !all)
        return;
    (void)fprintf(inspect->options.out, "  %-32s %s%s%s\n", path, text,
                  all && doc[0] != '\0' ? "    # " : "", all ? doc : "");
}

static bool show_record(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct showing *showing = ctx;
    struct inspect *inspect = showing->inspect;
    bool redact = !inspect->options.reveal;
    char summary[256], entered[TIME_TEXT_SIZE];

    if (!machine_id_equal(id, &showing->id))
        return true;
    showing->found = true;
    if (inspect->options.json) {
        (void)fputs("\"machine\":", inspect->options.out);
        inspect_json_record(inspect->options.out, id, record, redact);
        return false;
    }
    inspect_print_summary(record, summary, sizeof(summary));
    inspect_print_time(inspect_unix_ns(inspect, record->entered_ms), entered);
    (void)fprintf(inspect->options.out, "%s %s\n  %s\n  in its state since %s\n\nrecord\n",
                  machine_kind_name((enum machine_kind)id->kind), id->text, summary, entered);
    inspect_walk(record, redact, show_value, inspect);
    return false;
}

static bool show_event(void *ctx, const struct journal_event *event)
{
    struct showing *showing = ctx;
    struct inspect *inspect = showing->inspect;
    char line[512], when[TIME_TEXT_SIZE];

    if (!machine_id_equal(&event->id, &showing->id))
        return true;
    if (inspect->options.json) {
        (void)fputs(showing->events++ == 0 ? "" : ",", inspect->options.out);
        inspect_json_event(inspect->options.out, event, !inspect->options.reveal);
        return true;
    }
    showing->events++;
    inspect_print_event(event, line, sizeof(line));
    inspect_print_time(event->unix_ns, when);
    /* The machine is known: the line goes on behind its kind and id. */
    const char *rest = line + strlen(machine_kind_name((enum machine_kind)event->id.kind)) + 1 +
                       strlen(event->id.text) + 1;
    (void)fprintf(inspect->options.out, "  %8" PRIu64 "  %s  %s\n", event->sequence, when,
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
    bool json = inspect->options.json;
    int code = journal_spec_read(inspect->journal, key, &bytes, &length, &err);
    if (code < 0) {
        if (!json)
            (void)fprintf(inspect->options.out, "\nspecification\n  none: %s\n", err.text);
        return;
    }
    json_t *spec = json_loadb(bytes, length, JSON_ALLOW_NUL, NULL);
    free(bytes);
    if (spec != NULL && !inspect->options.reveal)
        inspect_redact(spec);
    char *text = json_dumps(spec, json ? JSON_COMPACT : JSON_INDENT(2));
    json_decref(spec);
    if (json)
        (void)fprintf(inspect->options.out, ",\"spec\":%s", text == NULL ? "null" : text);
    else if (text == NULL)
        (void)fprintf(inspect->options.out, "\nspecification\n  %zu bytes that are no JSON\n",
                      length);
    else
        (void)fprintf(inspect->options.out, "\nspecification\n%s\n", text);
    free(text);
}

static int walk_one(struct inspect *inspect, struct showing *showing, struct err *err)
{
    bool json = inspect->options.json;
    int code = journal_each_record(inspect->journal, (enum machine_kind)showing->id.kind,
                                   show_record, inspect_bad, showing, err);

    if (code < 0)
        return code;
    if (!showing->found && json)
        (void)fputs("\"machine\":null", inspect->options.out);
    else if (!showing->found)
        (void)fprintf(inspect->options.out, "%s %s\n  gone: only its history is left\n",
                      machine_kind_name((enum machine_kind)showing->id.kind), showing->id.text);
    show_spec(inspect, &showing->id);
    (void)fputs(json ? ",\"history\":[" : "\nhistory\n", inspect->options.out);
    return journal_each_event(inspect->journal, inspect->first.sequence, show_event, inspect_bad,
                              showing, err);
}

int inspect_show(struct inspect *inspect, const char *name, struct err *err)
{
    struct showing showing = {.inspect = inspect};
    bool json = inspect->options.json;
    int code = inspect_find(inspect, name, &showing.id, err);

    if (code < 0)
        return code;
    if (json)
        (void)fputc('{', inspect->options.out);
    code = walk_one(inspect, &showing, err);
    if (code < 0)
        return code;
    if (json)
        (void)fputs("]}\n", inspect->options.out);
    else if (showing.events == 0)
        (void)fputs("  none: its events have been trimmed\n", inspect->options.out);
    return 0;
}
