/* What makes a journal from what another one held, beside journal_commit: the numbering of its log,
 * and its quarantine (journal.h). */
#include "journal/part.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int write_next(struct store_txn *txn, void *ctx, struct err *err)
{
    const uint64_t *next = ctx;
    struct key name = key_of_text(META_SEQUENCE);
    char text[24];

    text_format(text, sizeof(text), "%llu", (unsigned long long)*next);
    return value_put(txn, STORE_META, &name, text, strlen(text), err);
}

int journal_continue(struct journal *journal, uint64_t next, struct err *err)
{
    bool empty = journal->first == journal->next;

    if (journal->mode != JOURNAL_WRITE)
        return err_set(err, ERR_REFUSED, "the journal is open for reading only");
    if (next < journal->next || next > NUMBER_BEGIN_MAX)
        return err_set(err, ERR_INVALID, "the log goes on at %llu, not at %llu",
                       (unsigned long long)journal->next, (unsigned long long)next);
    int code = store_write(journal->store, write_next, &next, err);
    if (code < 0)
        return code;
    journal->next = next;
    if (empty)
        journal->first = next;
    check(journal->first <= journal->next);
    return 0;
}

static int write_item(struct store_txn *txn, void *ctx, struct err *err)
{
    const struct journal_quarantined *item = ctx;
    struct key key = key_of_number(item->number);
    char head[sizeof(item->unix_ns) + sizeof(item->table) + sizeof(item->key) +
              sizeof(item->reason)];
    size_t used = sizeof(item->unix_ns);

    memcpy(head, &item->unix_ns, used);
    const char *texts[] = {item->table, item->key, item->reason};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        check(used + strlen(texts[i]) + 1 <= sizeof(head));
        memcpy(head + used, texts[i], strlen(texts[i]) + 1);
        used += strlen(texts[i]) + 1;
    }
    char *value = malloc(used + item->length);
    check(value != NULL);
    memcpy(value, head, used);
    if (item->length > 0)
        memcpy(value + used, item->bytes, item->length);
    int code = value_put(txn, STORE_QUARANTINE, &key, value, used + item->length, err);
    free(value);
    return code;
}

int journal_quarantine_put(struct journal *journal, const struct journal_quarantined *item,
                           struct err *err)
{
    struct journal_quarantined copy = *item;

    if (journal->mode != JOURNAL_WRITE)
        return err_set(err, ERR_REFUSED, "the journal is open for reading only");
    if (item->number == 0 || item->number > NUMBER_BEGIN_MAX ||
        item->length > JOURNAL_VALUE_BYTES_MAX)
        return err_set(err, ERR_INVALID, "not an entry of the quarantine");
    return store_write(journal->store, write_item, &copy, err);
}
