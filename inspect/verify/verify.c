/*
 * Verify: every event stepped again from its base, every record compared (inspect.h).
 *
 * A machine whose history is found wrong is not stepped any further: one cause, one finding.  Its
 * stored record is still compared with the digest that its last event left.  Stepping is pure, so
 * an assertion that a forged event breaks is caught and becomes a finding, too.
 */
#include "inspect/verify/verify.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* So many events at a time; between two strides the pages of the last one are given back. */
enum { STRIDE_EVENTS = 1 << 16 };

/* --- the machines whose history is wrong --- */

static void wrong_add(struct verifying *verifying, const struct journal_event *event)
{
    const struct fsm_def *def = fsm_definition((enum machine_kind)event->id.kind);
    struct wrong *wrong = verify_wrong(verifying, &event->id);

    if (wrong == NULL) {
        wrong = calloc(1, sizeof(*wrong));
        check(wrong != NULL);
        wrong->id = event->id;
        HASH_ADD(hh, verifying->wrong, id, sizeof(wrong->id), wrong);
    }
    wrong->digest = event->digest;
    wrong->ended = (def->states[event->after].flags & FSM_FINAL) != 0;
}

/* --- quarantine --- */

static bool is_quarantined(struct verifying *verifying, const struct machine_id *id)
{
    const struct present *present =
        verifying->put_aside == 0 ? NULL : verify_present(verifying, id);

    return present != NULL && present->quarantined;
}

static bool note_put_aside(void *ctx, const struct journal_quarantined *item)
{
    struct verifying *verifying = ctx;
    struct machine_id id;

    if (text_equal(item->table, "state") && journal_id_of_key(item->key, &id)) {
        verify_present_add(verifying, &id)->quarantined = true;
        verifying->put_aside++;
    }
    return true;
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

static void check_clocks(struct verifying *verifying, const struct journal_event *event)
{
    const struct moment *previous = &verifying->previous;
    struct finding finding = verify_finding(FINDING_TIME_BACK);

    if (event->turn >= previous->turn && event->now_ms >= previous->now_ms)
        return;
    finding.sequence = event->sequence;
    (void)text_format(finding.where, sizeof(finding.where), "event %" PRIu64, event->sequence);
    (void)text_format(finding.details, sizeof(finding.details),
                      "turn %" PRIu64 " behind %" PRIu64 ", node time %" PRIu64
                      " ms behind %" PRIu64 " ms",
                      event->turn, previous->turn, event->now_ms, previous->now_ms);
    verify_tell(verifying, &finding);
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
    struct finding finding = verify_finding(kind);
    char line[440];

    finding.sequence = event->sequence;
    finding.id = event->id;
    core_describe(event, line, sizeof(line));
    (void)text_format(finding.where, sizeof(finding.where), "event %" PRIu64 ", %s",
                      event->sequence, line);
    describe_outcome(verifying, event, kind, before, finding.details, sizeof(finding.details));
    verify_tell(verifying, &finding);
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
    if (!replay_try(verifying->replay, event, &result, verifying->broken)) {
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
    verify_gap(verifying, event->sequence);
    check_clocks(verifying, event);
    *previous = (struct moment){event->sequence, event->turn, event->now_ms, event->unix_ns};
    if (verify_wrong(verifying, &event->id) != NULL) {
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
        code = journal_each_base(verifying->journal, (enum machine_kind)kind, note_base, verify_bad,
                                 verifying, err);
    while (code == 0 && verifying->stride == 0) {
        uint64_t behind = verifying->previous.sequence;
        verifying->stride = STRIDE_EVENTS;
        code = journal_each_event(verifying->journal, behind == 0 ? 0 : behind + 1, note_event,
                                  verify_bad, verifying, err);
        journal_release_memory(verifying->journal);
    }
    if (code == 0 && verifying->previous.sequence != 0)
        verify_gap(verifying, journal_next_sequence(verifying->journal));
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
        free(present->alloc);
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
        code = verify_records(&verifying, err);
    free_all(&verifying);
    if (code == 0)
        *ret_verdict = verifying.verdict;
    return code;
}
