/*
 * Verify: every event stepped again from its base, every record compared (inspect.h).
 *
 * A machine whose history is found wrong is not stepped any further: one cause, one finding.  Its
 * stored record is still compared with the digest that its last event left.  Stepping is pure, so
 * an assertion that a forged event breaks is caught and becomes a finding, too.
 */
#include "agent/inspect_part.h"
#include "agent/inspect_step.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

/* A machine whose history is wrong. */
struct wrong {
    struct machine_id id;
    uint64_t digest; /* of its record after its last event */
    bool ended;      /* by its last event */
    UT_hash_handle hh;
};

/* What the state or spec table holds under an id. */
struct present {
    struct machine_id id;
    bool record, damaged, spec;
    UT_hash_handle hh;
};

struct verifying {
    struct journal *journal;
    inspect_finding_cb *cb;
    void *ctx;
    struct inspect_verdict verdict;
    struct replay *replay;
    struct wrong *wrong;
    struct present *present;
    struct moment previous;
    uint64_t hole; /* the newest event that is missing or cannot be read, 0: none */
    uint32_t stride;
};

/* So many events at a time; between two strides the pages of the last one are given back. */
enum { STRIDE_EVENTS = 1 << 16 };

static struct finding finding_of(enum finding_kind kind)
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

static void tell(struct verifying *verifying, struct finding *finding)
{
    text_clean(finding->where);
    text_clean(finding->details);
    if (finding->bad)
        verifying->verdict.bad++;
    else
        verifying->verdict.notes++;
    verifying->cb(verifying->ctx, finding);
}

static void tell_machine(struct verifying *verifying, enum finding_kind kind,
                         const struct machine_id *id, const char *details)
{
    struct finding finding = finding_of(kind);

    finding.id = *id;
    (void)text_format(finding.where, sizeof(finding.where), "%s %s",
                      machine_kind_name((enum machine_kind)id->kind), id->text); /* fits */
    (void)text_copy(finding.details, sizeof(finding.details), details);
    tell(verifying, &finding);
}

/* --- the machines known to be wrong, the ids known to be there --- */

static struct wrong *wrong_find(struct verifying *verifying, const struct machine_id *id)
{
    struct wrong *wrong = NULL;

    if (verifying->wrong != NULL) /* the common case costs no hash */
        HASH_FIND(hh, verifying->wrong, id, sizeof(*id), wrong);
    return wrong;
}

static void wrong_add(struct verifying *verifying, const struct journal_event *event)
{
    const struct fsm_def *def = fsm_definition((enum machine_kind)event->id.kind);
    struct wrong *wrong = wrong_find(verifying, &event->id);

    if (wrong == NULL) {
        wrong = calloc(1, sizeof(*wrong));
        check(wrong != NULL);
        wrong->id = event->id;
        HASH_ADD(hh, verifying->wrong, id, sizeof(wrong->id), wrong);
    }
    wrong->digest = event->digest;
    wrong->ended = (def->states[event->after].flags & FSM_FINAL) != 0;
}

static struct present *present_at(struct verifying *verifying, const struct machine_id *id)
{
    struct present *present;

    HASH_FIND(hh, verifying->present, id, sizeof(*id), present);
    return present;
}

static struct present *present_add(struct verifying *verifying, const struct machine_id *id)
{
    struct present *present = present_at(verifying, id);

    if (present == NULL) {
        present = calloc(1, sizeof(*present));
        check(present != NULL);
        present->id = *id;
        HASH_ADD(hh, verifying->present, id, sizeof(present->id), present);
    }
    return present;
}

static bool has_record(struct verifying *verifying, const struct machine_id *id)
{
    const struct present *present = present_at(verifying, id);

    return present != NULL && (present->record || present->damaged);
}

/* --- damage --- */

/* "task/<id>", as the journal names the keys of records. */
static bool id_of_key(const char *key, struct machine_id *ret_id)
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

static void note_bad(void *ctx, const char *table, const char *key, const void *bytes,
                     size_t length, const char *reason)
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
    struct finding finding = finding_of(kind);
    (void)text_format(finding.where, sizeof(finding.where), "table %s, entry %s", table, key);
    (void)text_format(finding.details, sizeof(finding.details), "%zu bytes: %s", length, reason);
    if (kind == FINDING_DAMAGED_EVENT && text_to_u64(key, &sequence)) {
        check_gap(verifying, sequence);
        finding.sequence = verifying->hole = verifying->previous.sequence = sequence;
    }
    if (kind == FINDING_DAMAGED_RECORD && id_of_key(key, &id)) {
        finding.id = id;
        present_add(verifying, &id)->damaged = true;
    }
    tell(verifying, &finding);
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
    struct finding finding = finding_of(FINDING_GAP);

    if (verifying->previous.sequence == 0 || sequence == expected)
        return;
    finding.sequence = expected;
    (void)text_format(finding.where, sizeof(finding.where), "table log, behind entry %" PRIu64,
                      verifying->previous.sequence);
    (void)text_format(finding.details, sizeof(finding.details),
                      "%" PRIu64 " to %" PRIu64 " are not there", expected, sequence - 1);
    verifying->hole = sequence - 1;
    tell(verifying, &finding);
}

static void check_clocks(struct verifying *verifying, const struct journal_event *event)
{
    const struct moment *previous = &verifying->previous;
    struct finding finding = finding_of(FINDING_TIME_BACK);

    if (event->turn >= previous->turn && event->now_ms >= previous->now_ms)
        return;
    finding.sequence = event->sequence;
    (void)text_format(finding.where, sizeof(finding.where), "event %" PRIu64, event->sequence);
    (void)text_format(finding.details, sizeof(finding.details),
                      "turn %" PRIu64 " behind %" PRIu64 ", node time %" PRIu64
                      " ms behind %" PRIu64 " ms",
                      event->turn, previous->turn, event->now_ms, previous->now_ms);
    tell(verifying, &finding);
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
        (void)text_append(to, size, inspect_assertion());
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
    struct finding finding = finding_of(kind);
    char line[440];

    finding.sequence = event->sequence;
    finding.id = event->id;
    agent_describe(event, line, sizeof(line));
    (void)text_format(finding.where, sizeof(finding.where), "event %" PRIu64 ", %s",
                      event->sequence, line);
    describe_outcome(verifying, event, kind, before, finding.details, sizeof(finding.details));
    tell(verifying, &finding);
    wrong_add(verifying, event);
    replay_forget(verifying->replay, &event->id);
}

static void step_event(struct verifying *verifying, const struct journal_event *event)
{
    const struct fsm_def *def = fsm_definition((enum machine_kind)event->id.kind);
    const struct machine *record = replay_find(verifying->replay, &event->id);
    const char *before = record == NULL ? "ABSENT" : fsm_state_name(def, record->state);
    enum replay_result result;

    if (record == NULL && (def->states[event->before].flags & FSM_INITIAL) == 0) {
        tell_event(verifying, event, FINDING_MISSING_BASE, before);
        return;
    }
    if (!inspect_step(verifying->replay, event, &result)) {
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
    if (wrong_find(verifying, &event->id) != NULL) {
        verifying->verdict.unchecked++;
        wrong_add(verifying, event);
    } else {
        step_event(verifying, event);
    }
    return --verifying->stride > 0;
}

/* --- the records as they are now --- */

static bool note_base(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct verifying *verifying = ctx;

    replay_base(verifying->replay, id, record);
    return true;
}

struct difference {
    char *to;
    size_t size, count;
};

static void note_difference(void *ctx, const char *path, const char *before, const char *after)
{
    struct difference *difference = ctx;
    char part[256];

    if (++difference->count > 3)
        return;
    (void)text_format(part, sizeof(part), "%s%s: %s by its history, %s stored",
                      difference->count > 1 ? "; " : "", path, before == NULL ? "none" : before,
                      after == NULL ? "none" : after);
    (void)text_append(difference->to, difference->size, part);
}

static void compare_record(struct verifying *verifying, const struct machine_id *id,
                           const struct machine *record, const struct machine *expected)
{
    char details[512] = "", part[64];
    struct difference difference = {details, sizeof(details), 0};

    if (fsm_record_size(record) == fsm_record_size(expected) &&
        memcmp(record, expected, fsm_record_size(record)) == 0)
        return;
    record_compare(expected, record, true, note_difference, &difference);
    if (difference.count > 3) {
        (void)text_format(part, sizeof(part), "; and %zu more", difference.count - 3);
        (void)text_append(details, sizeof(details), part);
    }
    tell_machine(verifying, FINDING_STATE_DIFFERS, id, details);
}

static bool note_record(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct verifying *verifying = ctx;
    const struct machine *expected = replay_find(verifying->replay, id);
    const struct wrong *wrong = wrong_find(verifying, id);

    verifying->verdict.machines++;
    present_add(verifying, id)->record = true;
    if (wrong != NULL && wrong->ended)
        tell_machine(verifying, FINDING_STATE_STRAY, id, "its last event ended it");
    else if (wrong != NULL && wrong->digest != fsm_digest(record))
        tell_machine(verifying, FINDING_STATE_DIFFERS, id,
                     "its digest is not the one that its last event left");
    else if (wrong == NULL && expected == NULL)
        tell_machine(verifying, FINDING_STATE_STRAY, id,
                     "neither a base record nor an event makes it");
    else if (wrong == NULL)
        compare_record(verifying, id, record, expected);
    return true;
}

static bool note_leftover(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct verifying *verifying = ctx;
    char details[128];

    if (has_record(verifying, id))
        return true;
    (void)text_format(details, sizeof(details), "it should be in state %s",
                      fsm_state_name(fsm_definition((enum machine_kind)id->kind), record->state));
    tell_machine(verifying, FINDING_STATE_MISSING, id, details);
    return true;
}

/* --- references --- */

static bool check_owner(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct verifying *verifying = ctx;
    struct machine_id owner;

    (void)record; /* its id says whose it is */
    if (strchr(id->text, '/') != NULL) {
        owner = machine_id_owner(id);
        if (!has_record(verifying, &owner))
            tell_machine(verifying, FINDING_ORPHAN, id, "no record of its alloc");
    }
    return true;
}

static bool check_members(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct verifying *verifying = ctx;
    const struct alloc *alloc = alloc_of(record);
    const struct present *present = present_at(verifying, id);
    char details[256];

    for (uint32_t i = 0; i < alloc->assign.members_count; i++) {
        const struct alloc_member *member = &alloc->assign.members[i];
        bool task = member->kind == MEMBER_TASK;
        bool over = task ? member->run_state == TASK_RUN_DEAD : member->gone != 0;
        if (over || strlen(id->text) + 1 + strlen(member->name) >= sizeof(id->text))
            continue;
        struct machine_id other =
            machine_id_join(task ? MACHINE_TASK : MACHINE_VOLUME, id->text, member->name);
        if (has_record(verifying, &other))
            continue;
        (void)text_format(details, sizeof(details), "%s %s has no record", task ? "task" : "volume",
                          member->name); /* fits */
        tell_machine(verifying, FINDING_LOST_MEMBER, id, details);
    }
    bool live = record->state != A_TERMINAL && record->state != A_DESTROYING;
    if (live && !alloc->assign.condemned && present != NULL && !present->spec)
        tell_machine(verifying, FINDING_NO_SPEC, id, "no entry of table spec");
    return true;
}

static bool note_spec(void *ctx, const char *key, const void *bytes, size_t length)
{
    struct verifying *verifying = ctx;
    struct finding finding = finding_of(FINDING_STRAY_SPEC);
    struct machine_id id = {.kind = MACHINE_ALLOC};

    (void)bytes; /* what they say is the control plane's */
    if (!text_starts_with(key, "alloc/") ||
        !text_copy(id.text, sizeof(id.text), key + strlen("alloc/")))
        return true;
    if (has_record(verifying, &id)) {
        present_add(verifying, &id)->spec = true;
        return true;
    }
    finding.id = id;
    (void)text_format(finding.where, sizeof(finding.where), "table spec, entry %s", key);
    (void)text_format(finding.details, sizeof(finding.details), "%zu bytes", length);
    tell(verifying, &finding);
    return true;
}

static bool pass_over(void *ctx, const char *key, const void *bytes, size_t length)
{
    (void)ctx; /* only whether it can be read matters */
    (void)key;
    (void)bytes;
    (void)length;
    return true;
}

static bool note_quarantined(void *ctx, const struct journal_quarantined *item)
{
    struct verifying *verifying = ctx;
    struct finding finding = finding_of(FINDING_QUARANTINED);

    (void)text_format(finding.where, sizeof(finding.where), "quarantine %" PRIu64 ": table %s, %s",
                      item->number, item->table, item->key);
    (void)text_copy(finding.details, sizeof(finding.details), item->reason);
    tell(verifying, &finding);
    return true;
}

/* Walks without a callback for damage tell it by their result. */
static int damage_of_walk(struct verifying *verifying, int code, enum finding_kind kind,
                          const struct err *err)
{
    struct finding finding = finding_of(kind);

    if (code != ERR_CORRUPT)
        return code;
    (void)text_copy(finding.where, sizeof(finding.where), "one or more entries");
    (void)text_copy(finding.details, sizeof(finding.details), err->text);
    tell(verifying, &finding);
    return 0;
}

/* --- all of it --- */

typedef int each_call(struct journal *journal, enum machine_kind kind, journal_record_cb *cb,
                      journal_bad *bad, void *ctx, struct err *err);

static int each_kind(struct verifying *verifying, each_call *each, journal_record_cb *cb,
                     journal_bad *bad, struct err *err)
{
    int code = 0;

    for (int kind = 0; kind < MACHINE_KIND_COUNT && code == 0; kind++)
        code = each(verifying->journal, (enum machine_kind)kind, cb, bad, verifying, err);
    return code;
}

static void told_before(void *ctx, const char *table, const char *key, const void *bytes,
                        size_t length, const char *reason)
{
    (void)ctx; /* the first walk over the table has told it */
    (void)table;
    (void)key;
    (void)bytes;
    (void)length;
    (void)reason;
}

static int verify_history(struct verifying *verifying, struct err *err)
{
    int code = each_kind(verifying, journal_each_base, note_base, note_bad, err);

    while (code == 0 && verifying->stride == 0) {
        uint64_t behind = verifying->previous.sequence;
        verifying->stride = STRIDE_EVENTS;
        code = journal_each_event(verifying->journal, behind == 0 ? 0 : behind + 1, note_event,
                                  note_bad, verifying, err);
        journal_release_memory(verifying->journal);
    }
    if (code == 0 && verifying->previous.sequence != 0)
        check_gap(verifying, journal_next_sequence(verifying->journal));
    return code;
}

static int verify_records(struct verifying *verifying, struct err *err)
{
    int code = each_kind(verifying, journal_each_record, note_record, note_bad, err);

    if (code < 0)
        return code;
    for (int kind = 0; kind < MACHINE_KIND_COUNT; kind++)
        replay_each(verifying->replay, (enum machine_kind)kind, note_leftover, verifying);
    code = journal_each_spec(verifying->journal, "", note_spec, verifying, err);
    code = damage_of_walk(verifying, code, FINDING_DAMAGED_SPEC, err);
    if (code == 0)
        code = journal_each_record(verifying->journal, MACHINE_ALLOC, check_members, told_before,
                                   verifying, err);
    if (code == 0)
        code = journal_each_record(verifying->journal, MACHINE_TASK, check_owner, told_before,
                                   verifying, err);
    if (code == 0)
        code = journal_each_record(verifying->journal, MACHINE_VOLUME, check_owner, told_before,
                                   verifying, err);
    return code;
}

static int verify_rest(struct verifying *verifying, struct err *err)
{
    int code = journal_each_meta(verifying->journal, pass_over, verifying, err);

    code = damage_of_walk(verifying, code, FINDING_DAMAGED_META, err);
    if (code < 0)
        return code;
    return journal_each_quarantined(verifying->journal, note_quarantined, verifying, err);
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
    int code = verify_history(&verifying, err);

    if (code == 0)
        code = verify_records(&verifying, err);
    if (code == 0)
        code = verify_rest(&verifying, err);
    free_all(&verifying);
    if (code == 0)
        *ret_verdict = verifying.verdict;
    return code;
}
