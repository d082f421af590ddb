/* Verifying: telling what was found, and what its two halves know of machines (verify.h). */
#include "inspect/verify/verify.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* --- telling --- */

struct finding verify_finding(enum finding_kind kind)
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

void verify_tell(struct verifying *verifying, struct finding *finding)
{
    text_clean(finding->where);
    text_clean(finding->details);
    if (finding->bad)
        verifying->verdict.bad++;
    else
        verifying->verdict.notes++;
    verifying->cb(verifying->ctx, finding);
}

void verify_tell_machine(struct verifying *verifying, enum finding_kind kind,
                         const struct machine_id *id, const char *details)
{
    struct finding finding = verify_finding(kind);

    finding.id = *id;
    (void)text_format(finding.where, sizeof(finding.where), "%s %s",
                      machine_kind_name((enum machine_kind)id->kind), id->text); /* fits */
    (void)text_copy(finding.details, sizeof(finding.details), details);
    verify_tell(verifying, &finding);
}

/* --- machines known to be wrong, ids known to be there --- */

struct wrong *verify_wrong(struct verifying *verifying, const struct machine_id *id)
{
    struct wrong *wrong = NULL;

    if (verifying->wrong != NULL) /* the common case costs no hash */
        HASH_FIND(hh, verifying->wrong, id, sizeof(*id), wrong);
    return wrong;
}

struct present *verify_present(struct verifying *verifying, const struct machine_id *id)
{
    struct present *present;

    HASH_FIND(hh, verifying->present, id, sizeof(*id), present);
    return present;
}

struct present *verify_present_add(struct verifying *verifying, const struct machine_id *id)
{
    struct present *present = verify_present(verifying, id);

    if (present == NULL) {
        present = calloc(1, sizeof(*present));
        check(present != NULL);
        present->id = *id;
        HASH_ADD(hh, verifying->present, id, sizeof(present->id), present);
    }
    return present;
}

bool verify_has_record(struct verifying *verifying, const struct machine_id *id)
{
    const struct present *present = verify_present(verifying, id);

    return present != NULL && (present->record || present->damaged);
}

/* --- damage --- */

void verify_gap(struct verifying *verifying, uint64_t sequence)
{
    uint64_t expected = verifying->previous.sequence + 1;
    struct finding finding = verify_finding(FINDING_GAP);

    if (verifying->previous.sequence == 0 || sequence == expected)
        return;
    finding.sequence = expected;
    (void)text_format(finding.where, sizeof(finding.where), "table log, behind entry %" PRIu64,
                      verifying->previous.sequence);
    (void)text_format(finding.details, sizeof(finding.details),
                      "%" PRIu64 " to %" PRIu64 " are not there", expected, sequence - 1);
    verifying->hole = sequence - 1;
    verify_tell(verifying, &finding);
}

void verify_bad(void *ctx, const char *table, const char *key, const void *bytes, size_t length,
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
    struct finding finding = verify_finding(kind);
    (void)text_format(finding.where, sizeof(finding.where), "table %s, entry %s", table, key);
    (void)text_format(finding.details, sizeof(finding.details), "%zu bytes: %s", length, reason);
    if (kind == FINDING_DAMAGED_EVENT && text_to_u64(key, &sequence)) {
        verify_gap(verifying, sequence);
        finding.sequence = verifying->hole = verifying->previous.sequence = sequence;
    }
    if (kind == FINDING_DAMAGED_RECORD && journal_id_of_key(key, &id)) {
        finding.id = id;
        verify_present_add(verifying, &id)->damaged = true;
    }
    verify_tell(verifying, &finding);
}
