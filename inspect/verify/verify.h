/* Verifying: what its two halves share, the history and the records. */
#ifndef CAIRN_INSPECT_VERIFY_VERIFY_H
#define CAIRN_INSPECT_VERIFY_VERIFY_H

#include "core/replay.h"
#include "inspect/part.h"

#include <uthash.h>

/* A machine whose history is wrong. */
struct wrong {
    struct machine_id id;
    uint64_t digest; /* of its record after its last event */
    bool ended;      /* by its last event */
    UT_hash_handle hh;
};

/* What the state, spec or quarantine table holds under an id. */
struct present {
    struct machine_id id;
    struct machine *alloc; /* the record of one, owned */
    bool record, damaged, spec;
    bool quarantined; /* a record of it was put aside: its history ended there, or began anew */
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
    uint64_t put_aside;         /* records in quarantine */
    char broken[ERR_TEXT_SIZE]; /* the last assertion that a step broke */
    struct moment previous;
    uint64_t hole; /* the newest event that is missing or cannot be read, 0: none */
    uint32_t stride;
};

/* --- telling (notes.c) --- */

struct finding verify_finding(enum finding_kind kind);
void verify_tell(struct verifying *verifying, struct finding *finding);
void verify_tell_machine(struct verifying *verifying, enum finding_kind kind,
                         const struct machine_id *id, const char *details);

/* Tells of the hole if SEQUENCE is not what comes behind the previous event. */
void verify_gap(struct verifying *verifying, uint64_t sequence);

/* A journal_bad: what cannot be read is a finding. */
void verify_bad(void *ctx, const char *table, const char *key, const void *bytes, size_t length,
                const char *reason);

/* --- what is known of machines (notes.c); NULL if nothing is --- */

struct wrong *verify_wrong(struct verifying *verifying, const struct machine_id *id);
struct present *verify_present(struct verifying *verifying, const struct machine_id *id);
struct present *verify_present_add(struct verifying *verifying, const struct machine_id *id);
bool verify_has_record(struct verifying *verifying, const struct machine_id *id);

/* --- the second half (records.c) --- */

/* After the history: records against it, references between them, specifications, the rest. */
int verify_records(struct verifying *verifying, struct err *err);

#endif
