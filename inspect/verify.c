/*
 * Verify: every event stepped again from its base, every record compared (inspect.h).
 *
 * A machine whose history is found wrong is not stepped any further: one cause, one finding.  Its
 * stored record is still compared with the digest that its last event left.  Stepping is pure, so
 * an assertion that a forged event breaks is caught and becomes a finding, too.
 */
#include "inspect/verify.h"
#include "inspect/step.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* So many events at a time; between two strides the pages of the last one are given back. */
enum { STRIDE_EVENTS = 1 << 16 };

struct finding verifying_finding(enum finding_kind kind)
{
    static const struct finding findings[FINDING_COUNT] = {
#define X(name, bad_, what_, cost_, advice_)                                                       \
    [FINDING_##name] = {                                                                           \
        .kind = FINDING_##name,                                                                    \
        .bad = bad_,                                                                               \
        .what = what_,                                                                             \
        .cost = cost_,                                                                             \
        .advice = advice_,                                                                         \
    },
        FINDING_LIST(X)
#undef X
    };

    return findings[kind];
}

void verifying_tell(struct verifying *verifying, struct finding *finding)
{
    text_clean(finding->where);
    text_clean(finding->details);
    if (finding->bad)
        verifying->verdict.bad++;
    else
        verifying->verdict.notes++;
    verifying->cb(verifying->ctx, finding);
}

void verifying_tell_machine(struct verifying *verifying, enum finding_kind kind,
                            const struct machine_id *id, const char *details)
{
    struct finding finding = verifying_finding(kind);

    finding.id = *id;
    (void)text_format(finding.where, sizeof(finding.where), "%s %s",
                      machine_kind_name((enum machine_kind)id->kind), id->text); /* fits */
    (void)text_copy(finding.details, sizeof(finding.details), details);
    verifying_tell(verifying, &finding);
}

/* --- the machines known to be wrong, the ids known to be there --- */

struct wrong *verifying_wrong(struct verifying *verifying, const struct machine_id *id)
{
    struct wrong *wrong = NULL;

    if (verifying->wrong != NULL) /* the common case costs no hash */
        HASH_FIND(hh, verifying->wrong, id, sizeof(*id), wrong);
    return wrong;
}

static void wrong_add(struct verifying *verifying, const struct journal_event *event)
{
    const struct fsm_def *def = fsm_definition((enum machine_kind)event->id.kind);
    struct wrong *wrong = verifying_wrong(verifying, &event->id);

    if (wrong == NULL) {
        wrong = calloc(1, sizeof(*wrong));
        check(wrong != NULL);
        wrong->id = event->id;
        HASH_ADD(hh, verifying->wrong, id, sizeof(wrong->id), wrong);
    }
    wrong->digest = event->digest;
    wrong->ended = (def->states[event->after].flags & FSM_FINAL) != 0;
}

struct present *verifying_present(struct verifying *verifying, const struct machine_id *id)
{
    struct present *present;

    HASH_FIND(hh, verifying->present, id, sizeof(*id), present);
    return present;
}

struct present *verifying_present_add(struct verifying *verifying, const struct machine_id *id)
{
    struct present *present = verifying_present(verifying, id);

    if (present == NULL) {
        present = calloc(1, sizeof(*present));
        check(present != NULL);
        present->id = *id;
        HASH_ADD(hh, verifying->present, id, sizeof(present->id), present);
    }
    return present;
}

bool verifying_has_record(struct verifying *verifying, const struct machine_id *id)
{
    const struct present *present = verifying_present(verifying, id);

    return present != NULL && (present->record || present->damaged);
}

/* --- quarantine --- */

static bool is_quarantined(struct verifying *verifying, const struct machine_id *id)
{
    const struct present *present =
        verifying->put_aside == 0 ? NULL : verifying_present(verifying, id);

    return present != NULL && present->quarantined;
}

static bool note_put_aside(void *ctx, const struct journal_quarantined *item)
{
    struct verifying *verifying = ctx;
    struct machine_id id;

    if (text_equal(item->table, "state") && inspect_id_of_key(item->key, &id)) {
        verifying_present_add(verifying, &id)->quarantined = true;
        verifying->put_aside++;
    }
    return true;
}

/* --- damage --- */

bool inspect_id_of_key(const char *key, struct machine_id *ret_id)
{
    for (int kind = 0; kind < MACHINE_KIND_COUNT; kind++) {
        const char *name = machine_kind_name((enum machine_kind)kind);
        size_t length = strlen(name);
        if (strncmp(key, name, length) != 0 || key[length] != '/')
            continue;
        *ret_id = (struct machine_id){.kind = (uint8_t)kind};
        return text_copy(ret_id->text, sizeof(ret_id->text), key + length + 1);
    }
    return false;
}

static void check_gap(struct verifying *verifying, uint64_t sequence);

void verifying_bad(void *ctx, const char *table, const char *key, const void *bytes, size_t length,
                   const char *reason)
{
    struct verifying *verifying = ctx;
    enum finding_kind kind = FINDING_DAMAGED_EVENT;
    struct machine_id id;
    uint64_t sequence;

    (void)bytes; /* their number is enough to name them */
    if (text_equal(table, "state"))
        kind = FINDING_DAMAGED_RECORD;
    else if (text_equal(table, "base"))
        kind = FINDING_DAMAGED_BASE;
    struct finding finding = verifying_finding(kind);
    (void)text_format(finding.where, sizeof(finding.where), "table %s, entry %s", table, key);
    (void)text_format(finding.details, sizeof(finding.details), "%zu bytes: %s", length, reason);
    if (kind == FINDING_DAMAGED_EVENT && text_to_u64(key, &sequence)) {
        check_gap(verifying, sequence);
        finding.sequence = verifying->hole = verifying->previous.sequence = sequence;
    }
    if (kind == FINDING_DAMAGED_RECORD && inspect_id_of_key(key, &id)) {
        finding.id = id;
        verifying_present_add(verifying, &id)->damaged = true;
    }
    verifying_tell(verifying, &finding);
}

/* --- stepping --- */

static bool carry_over(void *ctx, const struct machine_id *id, const struct machine *record)
{
    replay_base(ctx, id, record);
    return true;
}

/* A replay with the same machines and nothing left of a step that was broken off. */
static void renew_replay(struct verifying *verifying)
{
    struct replay *fresh = replay_new();

    for (int kind = 0; kind < MACHINE_KIND_COUNT; kind++)
        replay_each(verifying->replay, (enum machine_kind)kind, carry_over, fresh);
    replay_free(verifying->replay);
    verifying->replay = fresh;
}

static void check_gap(struct verifying *verifying, uint64_t sequence)
{
    uint64_t expected = verifying->previous.sequence + 1;
    struct finding finding = verifying_finding(FINDING_GAP);

    if (verifying->previous.sequence == 0 || sequence == expected)
        return;
    finding.sequence = expected;
    (void)text_format(finding.where, sizeof(finding.where), "table log, behind entry %" PRIu64,
                      verifying->previous.sequence);
    (void)text_format(finding.details, sizeof(finding.details),
                      "%" PRIu64 " to %" PRIu64 " are not there", expected, sequence - 1);
    verifying->hole = sequence - 1;
    verifying_tell(verifying, &finding);
}

static void check_clocks(struct verifying *verifying, const struct journal_event *event)
{
    const struct moment *previous = &verifying->previous;
    struct finding finding = verifying_finding(FINDING_TIME_BACK);

    if (event->turn >= previous->turn && event->now_ms >= previous->now_ms)
        return;
    finding.sequence = event->sequence;
    (void)text_format(finding.where, sizeof(finding.where), "event %" PRIu64, event->sequence);
    (void)text_format(finding.details, sizeof(finding.details),
                      "turn %" PRIu64 " behind %" PRIu64 ", node time %" PRIu64
                      " ms behind %" PRIu64 " ms",
                      event->turn, previous->turn, event->now_ms, previous->now_ms);
    verifying_tell(verifying, &finding);
}

static enum finding_kind kind_of_result(enum replay_result result)
{
    switch (result) {
    case REPLAY_SAME:
        break;
    case REPLAY_NO_ROW:
        return FINDING_NO_ROW;
    case REPLAY_OTHER_ROW:
        return FINDING_OTHER_ROW;
    case REPLAY_DIGEST:
        return FINDING_DIGEST;
    }
    unreachable("a result that is no finding");
}

/* What stepping EVENT gave, if it gave a record. */
static void describe_outcome(struct verifying *verifying, const struct journal_event *event,
                             enum finding_kind kind, const char *before, char *to, size_t size)
{
    const struct fsm_def *def = fsm_definition((enum machine_kind)event->id.kind);
    const struct machine *after = replay_find(verifying->replay, &event->id);
    char part[128];

    (void)text_format(to, size, "state before: %s stored, %s computed",
                      fsm_state_name(def, event->before), before);
    if (kind == FINDING_ASSERTION) {
        (void)text_append(to, size, "; ");
        (void)text_append(to, size, verifying->broken);
    } else if (kind != FINDING_NO_ROW) {
        (void)text_format(part, sizeof(part), "; after: %s stored, %s computed",
                          fsm_state_name(def, event->after),
                          after == NULL ? "gone" : fsm_state_name(def, after->state));
        (void)text_append(to, size, part);
    }
    if (kind == FINDING_DIGEST && after != NULL) {
        (void)text_format(part, sizeof(part),
                          "; digest: %016" PRIx64 " stored, %016" PRIx64 " computed", event->digest,
                          fsm_digest(after));
        (void)text_append(to, size, part);
    }
    if (verifying->hole != 0) {
        (void)text_format(part, sizeof(part),
                          "; perhaps because an event before it, as %" PRIu64 ", is not there",
                          verifying->hole);
        (void)text_append(to, size, part);
    }
}

static void tell_event(struct verifying *verifying, const struct journal_event *event,
                       enum finding_kind kind, const char *before)
{
    struct finding finding = verifying_finding(kind);
    char line[440];

    finding.sequence = event->sequence;
    finding.id = event->id;
    core_describe(event, line, sizeof(line));
    (void)text_format(finding.where, sizeof(finding.where), "event %" PRIu64 ", %s",
                      event->sequence, line);
    describe_outcome(verifying, event, kind, before, finding.details, sizeof(finding.details));
    verifying_tell(verifying, &finding);
    wrong_add(verifying, event);
    replay_forget(verifying->replay, &event->id);
}

static void step_event(struct verifying *verifying, const struct journal_event *event)
{
    const struct fsm_def *def = fsm_definition((enum machine_kind)event->id.kind);
    const struct machine *record = replay_find(verifying->replay, &event->id);
    bool initial = (def->states[event->before].flags & FSM_INITIAL) != 0;
    enum replay_result result;

    if (record != NULL && initial && is_quarantined(verifying, &event->id)) {
        replay_forget(verifying->replay, &event->id); /* and was made again, to be ended */
        record = NULL;
    }
    const char *before = record == NULL ? "ABSENT" : fsm_state_name(def, record->state);
    if (record == NULL && !initial) {
        tell_event(verifying, event, FINDING_MISSING_BASE, before);
        return;
    }
    if (!inspect_step(verifying->replay, event, &result, verifying->broken)) {
        replay_forget(verifying->replay, &event->id);
        renew_replay(verifying);
        tell_event(verifying, event, FINDING_ASSERTION, before);
    } else if (result != REPLAY_SAME) {
        tell_event(verifying, event, kind_of_result(result), before);
    }
}

static bool note_event(void *ctx, const struct journal_event *event)
{
    struct verifying *verifying = ctx;
    struct moment *previous = &verifying->previous;

    verifying->verdict.events++;
    if (verifying->verdict.first == 0)
        verifying->verdict.first = event->sequence;
    verifying->verdict.last = event->sequence;
    check_gap(verifying, event->sequence);
    check_clocks(verifying, event);
    *previous = (struct moment){event->sequence, event->turn, event->now_ms, event->unix_ns};
    if (verifying_wrong(verifying, &event->id) != NULL) {
        verifying->verdict.unchecked++;
        wrong_add(verifying, event);
    } else {
        step_event(verifying, event);
    }
    return --verifying->stride > 0;
}

/* --- all of it --- */

static bool note_base(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct verifying *verifying = ctx;

    replay_base(verifying->replay, id, record);
    return true;
}

static int verify_history(struct verifying *verifying, struct err *err)
{
    int code = 0;

    for (int kind = 0; kind < MACHINE_KIND_COUNT && code == 0; kind++)
        code = journal_each_base(verifying->journal, (enum machine_kind)kind, note_base,
                                 verifying_bad, verifying, err);
    while (code == 0 && verifying->stride == 0) {
        uint64_t behind = verifying->previous.sequence;
        verifying->stride = STRIDE_EVENTS;
        code = journal_each_event(verifying->journal, behind == 0 ? 0 : behind + 1, note_event,
                                  verifying_bad, verifying, err);
        journal_release_memory(verifying->journal);
    }
    if (code == 0 && verifying->previous.sequence != 0)
        check_gap(verifying, journal_next_sequence(verifying->journal));
    return code;
}

static void free_all(struct verifying *verifying)
{
    struct wrong *wrong, *wrong_next;
    struct present *present, *present_next;

    HASH_ITER(hh, verifying->wrong, wrong, wrong_next)
    {
        HASH_DEL(verifying->wrong, wrong);
        free(wrong);
    }
    HASH_ITER(hh, verifying->present, present, present_next)
    {
        HASH_DEL(verifying->present, present);
        free(present);
    }
    replay_free(verifying->replay);
}

int inspect_verify(struct journal *journal, inspect_finding_cb *cb, void *ctx,
                   struct inspect_verdict *ret_verdict, struct err *err)
{
    struct verifying verifying = {
        .journal = journal,
        .cb = cb,
        .ctx = ctx,
        .replay = replay_new(),
    };
    int code = journal_each_quarantined(journal, note_put_aside, &verifying, err);

    if (code == 0 || code == ERR_CORRUPT) /* what cannot be read of it is told with the rest */
        code = verify_history(&verifying, err);
    if (code == 0)
        code = verifying_records(&verifying, err);
    free_all(&verifying);
    if (code == 0)
        *ret_verdict = verifying.verdict;
    return code;
}
