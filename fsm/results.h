/*
 * Hook results: what a hook made that a later start needs (environment, mounts, devices, data).
 *
 * Kept in one place, the tail of the task's record, and so in the journal: a restored task starts
 * again with everything it had (I-22, R-28).  Entries are ordered by (hook, kind, key); a setter
 * replaces what has the same three.  The packed form is bounded and has no pointers.
 */
#ifndef CAIRN_FSM_RESULTS_H
#define CAIRN_FSM_RESULTS_H

#include "base/base.h"

enum { RESULTS_BYTES_MAX = 32 * 1024, RESULT_KEY_MAX = 255, RESULT_VALUE_MAX = 8 * 1024 };

enum result_kind {
    RESULT_ENV,    /* key: variable, value: its value */
    RESULT_MOUNT,  /* key: path in the task, value: "host path\tro|rw\tpropagation", and
                    * "\tmount" behind it where the path is a mount or nothing */
    RESULT_DEVICE, /* key: path in the task, value: "host path\tpermissions" */
    RESULT_DATA,   /* the hook's own */
    RESULT_KIND_COUNT,
};

struct results {
    uint8_t *bytes; /* borrowed */
    uint32_t used;
    uint32_t size;
};

struct result {
    uint8_t hook;
    uint8_t kind;
    char key[RESULT_KEY_MAX + 1];
    const char *value; /* borrowed from the results, not terminated */
    uint32_t value_length;
};

/* Sets one entry; ERR_LIMIT when key, value or the whole would be too long. */
int results_set(struct results *results, uint8_t hook, enum result_kind kind, const char *key,
                const void *value, uint32_t length);

/* Forgets all entries of HOOK. */
void results_clear(struct results *results, uint8_t hook);

/* Takes over all entries of FROM: first clears HOOK, then sets each; ERR_LIMIT leaves RESULTS as it
 * was cleared. */
int results_take(struct results *results, uint8_t hook, const uint8_t *from, uint32_t length);

/* True if RESULTS may have BYTES of HOOK, instead of all that it has left in them. */
bool results_have_room(const struct results *results, uint8_t hook, uint32_t bytes);

/* Walks the entries: *AT starts at 0; false at the end. */
bool results_next(const uint8_t *bytes, uint32_t used, uint32_t *at, struct result *ret_result);

/* True if BYTES is a well-formed, ordered list of entries. */
bool results_valid(const uint8_t *bytes, uint32_t used);

#endif
