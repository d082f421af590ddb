/* One record of the `base` table: where the history of a machine begins in the log. */
#include "journal/inside.h"

#include "journal/codec.h"

#include <stdlib.h>

int journal_base_read(struct journal *journal, const struct machine_id *id,
                      struct machine **ret_record, struct err *err)
{
    struct key key = key_of_machine(id);
    struct store_txn txn;
    struct store_bytes value;
    struct machine *record = NULL;
    int code = store_read_begin(journal->store, &txn, err);

    if (code < 0)
        return code;
    code = store_get(&txn, STORE_BASE, key_bytes(&key), &value, err);
    if (code == 0) {
        record = calloc(1, FSM_RECORD_BYTES_MAX);
        check(record != NULL);
        const char *reason = codec_decode_record(value.bytes, value.length,
                                                 key_seal(STORE_BASE, key_bytes(&key)), record);
        if (reason != NULL)
            code = err_set(err, ERR_CORRUPT, "base of %s: %s", id->text, reason);
    }
    store_read_end(&txn);
    if (code < 0) {
        free(record);
        return code;
    }
    *ret_record = record;
    return 0;
}
