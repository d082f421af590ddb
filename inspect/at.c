/*
 * `at` and `diff`: the node as it was, made again from the bases and the events up to there.
 */
#include "core/replay.h"
#include "inspect/part.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct rewinding {
    struct inspect *inspect; /* first: inspect_bad finds it here */
    struct replay *replay;
    struct moment reached;
    uint64_t last;     /* to be stepped */
    uint64_t diverged; /* events that did not give what they once gave */
};

static bool take_base(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct rewinding *rewinding = ctx;

    replay_base(rewinding->replay, id, record);
    return true;
}

static bool take_event(void *ctx, const struct journal_event *event)
{
    struct rewinding *rewinding = ctx;
    enum replay_result result;
    char broken[ERR_TEXT_SIZE]; /* verify tells what */

    if (event->sequence > rewinding->last)
        return false;
    rewinding->reached = (struct moment){
        .sequence = event->sequence,
        .turn = event->turn,
        .now_ms = event->now_ms,
        .unix_ns = event->unix_ns,
    };
    if (!replay_try(rewinding->replay, event, &result, broken)) {
        replay_free(rewinding->replay); /* it was left in the middle of a step */
        rewinding->replay = NULL;
        return false;
    }
    rewinding->diverged += result != REPLAY_SAME;
    return true;
}

static int load_bases(struct rewinding *rewinding, struct err *err)
{
    int code = 0;

    rewinding->replay = replay_new();
    for (int kind = 0; kind < MACHINE_KIND_COUNT && code == 0; kind++)
        code = journal_each_base(rewinding->inspect->journal, (enum machine_kind)kind, take_base,
                                 inspect_bad, rewinding, err);
    return code;
}

/* Steps from the event behind what was reached up to SEQUENCE. */
static int step_to(struct rewinding *rewinding, uint64_t sequence, struct err *err)
{
    struct inspect *inspect = rewinding->inspect;
    uint64_t from = rewinding->reached.sequence;

    if (sequence > inspect->last.sequence)
        return err_set(err, ERR_INVALID, "the log ends at %" PRIu64, inspect->last.sequence);
    if (sequence + 1 < inspect->first.sequence)
        return err_set(err, ERR_INVALID, "history begins at %" PRIu64 ", earlier events are gone",
                       inspect->first.sequence);
    rewinding->last = sequence;
    int code = journal_each_event(inspect->journal, from == 0 ? inspect->first.sequence : from + 1,
                                  take_event, inspect_bad, rewinding, err);
    if (code == 0 && rewinding->replay == NULL)
        return err_set(err, ERR_CORRUPT,
                       "event %" PRIu64 " cannot be stepped; see: cairn journal verify",
                       rewinding->reached.sequence);
    return code;
}

static int read_moment(struct inspect *inspect, const char *text, uint64_t *ret_sequence,
                       struct err *err)
{
    int code = inspect_when(inspect, text, ret_sequence, err);

    if (code == 0 && *ret_sequence == 0 && inspect->first.sequence > 1)
        *ret_sequence = inspect->first.sequence - 1; /* as far back as the bases lead */
    return code;
}

static void warn_diverged(const struct rewinding *rewinding)
{
    if (rewinding->diverged > 0)
        inspect_say(rewinding->inspect,
                    "%" PRIu64 " events do not give what they once gave; see: cairn journal verify",
                    rewinding->diverged);
}

/* --- machines in the order of their ids --- */

struct held {
    struct machine_id id;
    const struct machine *record;
};

struct holding {
    struct inspect *inspect;
    struct held *items; /* owned */
    size_t count, size;
};

static bool hold(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct holding *holding = ctx;

    if (!inspect_wants(holding->inspect, id))
        return true;
    *list_more(holding) = (struct held){*id, record};
    return true;
}

static int by_id(const void *a, const void *b)
{
    const struct held *x = a, *y = b;

    if (x->id.kind != y->id.kind)
        return y->id.kind - x->id.kind; /* allocs first */
    return strcmp(x->id.text, y->id.text);
}

static struct holding hold_all(struct inspect *inspect, const struct replay *replay)
{
    struct holding holding = {.inspect = inspect};

    for (int kind = 0; kind < MACHINE_KIND_COUNT; kind++)
        replay_each(replay, (enum machine_kind)kind, hold, &holding);
    if (holding.count > 0)
        qsort(holding.items, holding.count, sizeof(*holding.items), by_id);
    return holding;
}

/* --- at --- */

static void put_value(void *ctx, const char *path, const char *text, const char *doc, bool zero)
{
    struct inspect *inspect = ctx;

    (void)doc; /* show -all tells it, for one machine */
    if (!zero)
        (void)fprintf(inspect->options.out, "    %-32s %s\n", path, text);
}

static void put_machine(struct inspect *inspect, const struct held *held)
{
    const struct fsm_def *def = fsm_definition((enum machine_kind)held->id.kind);
    const char *state = fsm_state_name(def, held->record->state);
    const char *wanted = inspect->options.state;
    bool redact = !inspect->options.reveal;
    char name[ID_TEXT_SIZE], summary[256];

    if (wanted != NULL && !text_equal(wanted, state))
        return;
    if (inspect->options.json) {
        inspect_json_record(inspect->options.out, &held->id, held->record, redact);
        (void)fputc('\n', inspect->options.out);
        return;
    }
    inspect_print_id(&held->id, name);
    inspect_print_summary(held->record, summary, sizeof(summary));
    (void)fprintf(inspect->options.out, "%-7s %-28s %-13s %s\n", def->name, name, state, summary);
    if (inspect->options.all)
        inspect_walk(held->record, redact, put_value, inspect);
}

static int show_at(struct rewinding *rewinding, const char *moment, struct err *err)
{
    struct inspect *inspect = rewinding->inspect;
    char when[TIME_TEXT_SIZE];
    uint64_t sequence;
    int code = read_moment(inspect, moment, &sequence, err);

    if (code == 0)
        code = load_bases(rewinding, err);
    if (code == 0)
        code = step_to(rewinding, sequence, err);
    if (code < 0)
        return code;
    inspect_print_time(rewinding->reached.unix_ns, when);
    if (!inspect->options.json)
        (void)fprintf(inspect->options.out, "after event %" PRIu64 "%s%s\n", sequence,
                      rewinding->reached.sequence != 0 ? ", " : "",
                      rewinding->reached.sequence != 0 ? when : "");
    struct holding holding = hold_all(inspect, rewinding->replay);
    for (size_t i = 0; i < holding.count; i++)
        put_machine(inspect, &holding.items[i]);
    if (holding.count == 0 && !inspect->options.json)
        (void)fputs("no machines\n", inspect->options.out);
    free(holding.items);
    warn_diverged(rewinding);
    return 0;
}

int inspect_at(struct inspect *inspect, const char *moment, struct err *err)
{
    struct rewinding rewinding = {.inspect = inspect};
    int code = show_at(&rewinding, moment, err);

    replay_free(rewinding.replay);
    return code;
}

/* --- diff --- */

struct differing {
    struct inspect *inspect;
    const struct machine_id *id;
    bool named;
    uint64_t machines, fields;
};

static void name_machine(struct differing *differing, char sign, const char *state)
{
    char name[ID_TEXT_SIZE];

    if (differing->named)
        return;
    differing->named = true;
    differing->machines++;
    if (differing->inspect->options.json)
        return;
    inspect_print_id(differing->id, name);
    (void)fprintf(differing->inspect->options.out, "%c %s %s%s%s\n", sign,
                  machine_kind_name((enum machine_kind)differing->id->kind), name,
                  state[0] == '\0' ? "" : " ", state);
}

static void put_json_text(FILE *to, const char *name, const char *text)
{
    (void)fprintf(to, ",\"%s\":", name);
    if (text == NULL)
        (void)fputs("null", to);
    else
        inspect_json_string(to, text);
}

static void put_difference(void *ctx, const char *path, const char *before, const char *after)
{
    struct differing *differing = ctx;
    FILE *out = differing->inspect->options.out;

    name_machine(differing, ' ', "");
    differing->fields++;
    if (!differing->inspect->options.json) {
        (void)fprintf(out, "    %-32s %s -> %s\n", path, before == NULL ? "(none)" : before,
                      after == NULL ? "(none)" : after);
        return;
    }
    (void)fprintf(
        out, "{\"kind\":\"%s\",\"id\":", machine_kind_name((enum machine_kind)differing->id->kind));
    inspect_json_string(out, differing->id->text);
    put_json_text(out, "path", path);
    put_json_text(out, "before", before);
    put_json_text(out, "after", after);
    (void)fputs("}\n", out);
}

static void put_whole(struct differing *differing, const struct machine *before,
                      const struct machine *after)
{
    const struct machine *record = before != NULL ? before : after;
    const struct fsm_def *def = fsm_definition((enum machine_kind)record->kind);

    name_machine(differing, before != NULL ? '-' : '+', fsm_state_name(def, record->state));
    inspect_compare(before, after, !differing->inspect->options.reveal, put_difference, differing);
}

static void compare_all(struct differing *differing, const struct holding *a,
                        const struct holding *b)
{
    size_t i = 0, j = 0;

    while (i < a->count || j < b->count) {
        int order = i == a->count ? 1 : j == b->count ? -1 : by_id(&a->items[i], &b->items[j]);
        differing->named = false;
        differing->id = order <= 0 ? &a->items[i].id : &b->items[j].id;
        if (order < 0)
            put_whole(differing, a->items[i++].record, NULL);
        else if (order > 0)
            put_whole(differing, NULL, b->items[j++].record);
        else
            inspect_compare(a->items[i++].record, b->items[j++].record,
                            !differing->inspect->options.reveal, put_difference, differing);
    }
}

static bool copy_machine(void *ctx, const struct machine_id *id, const struct machine *record)
{
    replay_base(ctx, id, record);
    return true;
}

static int diff(struct rewinding *rewinding, struct replay *before, const char *from,
                const char *to, struct err *err)
{
    struct inspect *inspect = rewinding->inspect;
    struct differing differing = {.inspect = inspect};
    uint64_t a, b;
    int code = read_moment(inspect, from, &a, err);

    if (code == 0)
        code = read_moment(inspect, to, &b, err);
    if (code == 0 && a > b)
        code = err_set(err, ERR_INVALID, "%" PRIu64 " is later than %" PRIu64, a, b);
    if (code == 0)
        code = load_bases(rewinding, err);
    if (code == 0)
        code = step_to(rewinding, a, err);
    if (code < 0)
        return code;
    for (int kind = 0; kind < MACHINE_KIND_COUNT; kind++)
        replay_each(rewinding->replay, (enum machine_kind)kind, copy_machine, before);
    code = step_to(rewinding, b, err);
    if (code < 0)
        return code;
    struct holding was = hold_all(inspect, before), is = hold_all(inspect, rewinding->replay);
    if (!inspect->options.json)
        (void)fprintf(inspect->options.out, "from event %" PRIu64 " to event %" PRIu64 "\n", a, b);
    compare_all(&differing, &was, &is);
    if (!inspect->options.json)
        (void)fprintf(inspect->options.out, "%" PRIu64 " machines, %" PRIu64 " fields\n",
                      differing.machines, differing.fields);
    free(was.items);
    free(is.items);
    warn_diverged(rewinding);
    return 0;
}

int inspect_diff(struct inspect *inspect, const char *from, const char *to, struct err *err)
{
    struct rewinding rewinding = {.inspect = inspect};
    struct replay *before = replay_new();
    int code = diff(&rewinding, before, from, to, err);

    replay_free(before);
    replay_free(rewinding.replay);
    return code;
}
