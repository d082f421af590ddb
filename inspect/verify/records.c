/*
 * Verify, the second half: the records as they are now (verify.h).
 *
 * Each is compared with what its history gave; then what they say of each other is checked by the
 * rules that a restart goes by (core/restore.c).
 */
#include "inspect/verify/verify.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* --- records against their history --- */

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
    inspect_compare(expected, record, true, note_difference, &difference);
    if (difference.count > 3) {
        (void)text_format(part, sizeof(part), "; and %zu more", difference.count - 3);
        (void)text_append(details, sizeof(details), part);
    }
    verify_tell_machine(verifying, FINDING_STATE_DIFFERS, id, details);
}

static struct machine *copy_of(const struct machine *record)
{
    struct machine *copy = malloc(fsm_record_size(record));

    check(copy != NULL);
    memcpy(copy, record, fsm_record_size(record));
    return copy;
}

static bool note_record(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct verifying *verifying = ctx;
    const struct machine *expected = replay_find(verifying->replay, id);
    const struct wrong *wrong = verify_wrong(verifying, id);

    struct present *present = verify_present_add(verifying, id);

    verifying->verdict.machines++;
    present->record = true;
    if (id->kind == MACHINE_ALLOC)
        present->alloc = copy_of(record);
    if (wrong != NULL && wrong->ended)
        verify_tell_machine(verifying, FINDING_STATE_STRAY, id, "its last event ended it");
    else if (wrong != NULL && wrong->digest != fsm_digest(record))
        verify_tell_machine(verifying, FINDING_STATE_DIFFERS, id,
                            "its digest is not the one that its last event left");
    else if (wrong == NULL && expected == NULL)
        verify_tell_machine(verifying, FINDING_STATE_STRAY, id,
                            "neither a base record nor an event makes it");
    else if (wrong == NULL)
        compare_record(verifying, id, record, expected);
    return true;
}

static bool note_leftover(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct verifying *verifying = ctx;
    const struct present *present = verify_present(verifying, id);
    char details[128];

    if (present != NULL && (present->record || present->damaged || present->quarantined))
        return true; /* what was put aside is told by its entry in quarantine */
    (void)text_format(details, sizeof(details), "it should be in state %s",
                      fsm_state_name(fsm_definition((enum machine_kind)id->kind), record->state));
    verify_tell_machine(verifying, FINDING_STATE_MISSING, id, details);
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
        if (!verify_has_record(verifying, &owner))
            verify_tell_machine(verifying, FINDING_ORPHAN, id, "no record of its alloc");
    }
    return true;
}

static const char *name_of(enum alloc_belief belief)
{
    switch (belief) {
    case BELIEVE_ALLOC:
        return "the alloc's is believed";
    case BELIEVE_TASK:
        return "the task's is believed";
    case BELIEVE_NEITHER:
        return "neither is believed";
    case BELIEVE_BOTH:
        break;
    }
    unreachable("two that contradict each other");
}

static bool check_task(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct verifying *verifying = ctx;
    struct machine_id owner = machine_id_owner(id);
    const struct present *present = verify_present(verifying, &owner);
    char details[256];
    const char *why;

    if (present == NULL || present->alloc == NULL)
        return check_owner(ctx, id, record);
    enum alloc_belief belief =
        alloc_believe(alloc_of(present->alloc), machine_id_name(id), task_of(record), &why);
    if (belief != BELIEVE_BOTH) {
        (void)text_format(details, sizeof(details), "%s; %s", why, name_of(belief)); /* fits */
        verify_tell_machine(verifying, FINDING_CONTRADICTION, id, details);
    }
    return true;
}

static bool check_members(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct verifying *verifying = ctx;
    const struct alloc *alloc = alloc_of(record);
    const struct present *present = verify_present(verifying, id);
    char details[256];

    for (uint32_t i = 0; i < alloc->assign.members_count; i++) {
        const struct alloc_member *member = &alloc->assign.members[i];
        bool task = member->kind == MEMBER_TASK;
        bool over = task ? member->run_state == TASK_RUN_DEAD : member->gone != 0;
        if (over || strlen(id->text) + 1 + strlen(member->name) >= sizeof(id->text))
            continue;
        struct machine_id other =
            machine_id_join(task ? MACHINE_TASK : MACHINE_VOLUME, id->text, member->name);
        if (verify_has_record(verifying, &other))
            continue;
        (void)text_format(details, sizeof(details), "%s %s has no record", task ? "task" : "volume",
                          member->name); /* fits */
        const struct present *aside = verify_present(verifying, &other);
        verify_tell_machine(verifying,
                            aside != NULL && aside->quarantined ? FINDING_MEMBER_ASIDE
                                                                : FINDING_LOST_MEMBER,
                            id, details);
    }
    bool live = record->state != A_TERMINAL && record->state != A_DESTROYING;
    if (live && !alloc->assign.condemned && present != NULL && !present->spec)
        verify_tell_machine(verifying, FINDING_NO_SPEC, id, "no entry of table spec");
    return true;
}

static bool note_spec(void *ctx, const char *key, const void *bytes, size_t length)
{
    struct verifying *verifying = ctx;
    struct finding finding = verify_finding(FINDING_STRAY_SPEC);
    struct machine_id id = {.kind = MACHINE_ALLOC};

    (void)bytes; /* what they say is the control plane's */
    if (!text_starts_with(key, "alloc/") ||
        !text_copy(id.text, sizeof(id.text), key + strlen("alloc/")))
        return true;
    if (verify_has_record(verifying, &id)) {
        verify_present_add(verifying, &id)->spec = true;
        return true;
    }
    finding.id = id;
    (void)text_format(finding.where, sizeof(finding.where), "table spec, entry %s", key);
    (void)text_format(finding.details, sizeof(finding.details), "%zu bytes", length);
    verify_tell(verifying, &finding);
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
    struct finding finding = verify_finding(FINDING_QUARANTINED);

    (void)text_format(finding.where, sizeof(finding.where), "quarantine %" PRIu64 ": table %s, %s",
                      item->number, item->table, item->key);
    (void)text_copy(finding.details, sizeof(finding.details), item->reason);
    verify_tell(verifying, &finding);
    return true;
}

/* Walks without a callback for damage tell it by their result. */
static int damage_of_walk(struct verifying *verifying, int code, enum finding_kind kind,
                          const struct err *err)
{
    struct finding finding = verify_finding(kind);

    if (code != ERR_CORRUPT)
        return code;
    (void)text_copy(finding.where, sizeof(finding.where), "one or more entries");
    (void)text_copy(finding.details, sizeof(finding.details), err->text);
    verify_tell(verifying, &finding);
    return 0;
}

/* --- all of it --- */

static int check_records(struct verifying *verifying, struct err *err)
{
    int code = 0;

    for (int kind = 0; kind < MACHINE_KIND_COUNT && code == 0; kind++)
        code = journal_each_record(verifying->journal, (enum machine_kind)kind, note_record,
                                   verify_bad, verifying, err);
    if (code < 0)
        return code;
    for (int kind = 0; kind < MACHINE_KIND_COUNT; kind++)
        replay_each(verifying->replay, (enum machine_kind)kind, note_leftover, verifying);
    code = journal_each_spec(verifying->journal, "", note_spec, verifying, err);
    code = damage_of_walk(verifying, code, FINDING_DAMAGED_SPEC, err);
    if (code == 0)
        code = journal_each_record(verifying->journal, MACHINE_ALLOC, check_members, inspect_ignore,
                                   verifying, err);
    if (code == 0)
        code = journal_each_record(verifying->journal, MACHINE_TASK, check_task, inspect_ignore,
                                   verifying, err);
    if (code == 0)
        code = journal_each_record(verifying->journal, MACHINE_VOLUME, check_owner, inspect_ignore,
                                   verifying, err);
    return code;
}

static int check_rest(struct verifying *verifying, struct err *err)
{
    int code = journal_each_meta(verifying->journal, pass_over, verifying, err);

    code = damage_of_walk(verifying, code, FINDING_DAMAGED_META, err);
    if (code < 0)
        return code;
    return journal_each_quarantined(verifying->journal, note_quarantined, verifying, err);
}

int verify_records(struct verifying *verifying, struct err *err)
{
    int code = check_records(verifying, err);

    return code < 0 ? code : check_rest(verifying, err);
}
