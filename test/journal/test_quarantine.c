/* One bad record costs one machine: it is reported, set aside, and all others are read (I-17). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "journal/part.h"
#include "test/journal/scratch.h"

static struct turn_batch turn;

static struct journal *make_journal(void)
{
    struct journal *journal = open_journal(JOURNAL_WRITE);
    struct err err;

    for (uint64_t number = 1; number <= 3; number++) {
        turn_make(&turn, number);
        assert_int_equal(journal_commit(journal, &turn.batch, &err), 0);
    }
    return journal;
}

/* --- damage, from below --- */

struct damage {
    enum store_table table;
    bool to_base; /* copied to that table instead */
    struct key key;
    struct key moved_to; /* length 0: stays where it is */
    bool flips;
};

static int do_damage(struct store_txn *txn, void *ctx, struct err *err)
{
    const struct damage *damage = ctx;
    const struct key *to = damage->moved_to.length > 0 ? &damage->moved_to : &damage->key;
    struct store_bytes value;
    unsigned char bytes[16 * 1024];

    int code = store_get(txn, damage->table, key_bytes(&damage->key), &value, err);
    assert_int_equal(code, 0);
    assert_true(value.length <= sizeof(bytes));
    memcpy(bytes, value.bytes, value.length);
    if (damage->flips)
        bytes[value.length / 2] ^= 4;
    if (to != &damage->key)
        assert_int_equal(store_delete(txn, damage->table, key_bytes(&damage->key), err), 0);
    return store_put(txn, damage->to_base ? STORE_BASE : damage->table, key_bytes(to),
                     (struct store_bytes){.bytes = bytes, .length = value.length}, err);
}

static void flip(struct journal *journal, enum store_table table, struct key key)
{
    struct damage damage = {.table = table, .key = key, .flips = true};
    struct err err;

    assert_int_equal(store_write(journal->store, do_damage, &damage, &err), 0);
}

static void rename_key(struct journal *journal, enum store_table table, struct key from,
                       struct key to)
{
    struct damage damage = {.table = table, .key = from, .moved_to = to};
    struct err err;

    assert_int_equal(store_write(journal->store, do_damage, &damage, &err), 0);
}

/* --- what readers see --- */

struct seen {
    unsigned good, bad;
    char table[16], key[JOURNAL_KEY_SIZE], reason[ERR_TEXT_SIZE];
    size_t length;
};

static bool see_record(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct seen *seen = ctx;

    assert_int_equal(id->kind, record->kind);
    seen->good++;
    return true;
}

static bool see_event(void *ctx, const struct journal_event *event)
{
    struct seen *seen = ctx;

    assert_true(event->sequence > 0);
    seen->good++;
    return true;
}

static bool see_blob(void *ctx, const char *key, const void *bytes, size_t length)
{
    struct seen *seen = ctx;

    (void)key, (void)bytes, (void)length; /* only counted */
    seen->good++;
    return true;
}

static void see_bad(void *ctx, const char *table, const char *key, const void *bytes, size_t length,
                    const char *reason)
{
    struct seen *seen = ctx;

    assert_non_null(bytes);
    text_copy(seen->table, sizeof(seen->table), table);
    text_copy(seen->key, sizeof(seen->key), key);
    text_copy(seen->reason, sizeof(seen->reason), reason);
    seen->length = length;
    seen->bad++;
}

static struct seen see_states(struct journal *journal)
{
    struct seen seen = {0};
    struct err err;

    for (int kind = 0; kind < MACHINE_KIND_COUNT; kind++)
        assert_int_equal(
            journal_each_record(journal, (enum machine_kind)kind, see_record, see_bad, &seen, &err),
            0);
    return seen;
}

struct item {
    unsigned count;
    uint64_t number;
    int64_t unix_ns;
    char table[16], key[JOURNAL_KEY_SIZE], reason[ERR_TEXT_SIZE];
    size_t length;
};

static bool see_item(void *ctx, const struct journal_quarantined *item)
{
    struct item *seen = ctx;

    seen->count++;
    seen->number = item->number;
    seen->unix_ns = item->unix_ns;
    text_copy(seen->table, sizeof(seen->table), item->table);
    text_copy(seen->key, sizeof(seen->key), item->key);
    text_copy(seen->reason, sizeof(seen->reason), item->reason);
    seen->length = item->length;
    return true;
}

static struct item see_items(struct journal *journal)
{
    struct item item = {0};
    struct err err;

    assert_int_equal(journal_each_quarantined(journal, see_item, &item, &err), 0);
    return item;
}

/* --- tests --- */

static void test_damaged_record_is_reported_set_aside_and_dropped(void **state)
{
    struct journal *journal = make_journal();
    struct machine_id id = turn_machine(2);
    struct err err;

    (void)state;
    flip(journal, STORE_STATE, key_of_machine(&id));
    struct seen seen = see_states(journal);
    assert_int_equal(seen.bad, 1);
    assert_int_equal(seen.good, TURN_MACHINES - 1);
    assert_string_equal(seen.table, "state");
    assert_true(text_starts_with(seen.key, "task/"));
    assert_string_equal(seen.key + 5, id.text);

    assert_int_equal(journal_quarantine(journal, seen.table, seen.key, seen.reason, 42, &err), 0);
    assert_int_equal(journal_quarantine(journal, seen.table, seen.key, seen.reason, 42, &err),
                     ERR_GONE);
    journal_close(journal);
    journal = open_journal(JOURNAL_WRITE);
    struct seen after = see_states(journal);
    assert_int_equal(after.bad, 0);
    assert_int_equal(after.good, TURN_MACHINES - 1);
    struct item item = see_items(journal);
    assert_int_equal(item.count, 1);
    assert_int_equal(item.unix_ns, 42);
    assert_string_equal(item.table, "state");
    assert_string_equal(item.key, seen.key);
    assert_string_equal(item.reason, seen.reason);
    assert_int_equal(item.length, seen.length);

    assert_int_equal(journal_quarantine_drop(journal, item.number, &err), 0);
    assert_int_equal(journal_quarantine_drop(journal, item.number, &err), ERR_GONE);
    assert_int_equal(see_items(journal).count, 0);
    journal_close(journal);
}

/* Each kind of damage to a key: other machine, other kind, no kind, no text. */
static void test_damaged_key_is_reported_and_set_aside(void **state)
{
    struct machine_id id = turn_machine(2);
    struct key right = key_of_machine(&id);
    struct key wrong[4] = {right, right, right, right};
    struct err err;

    (void)state;
    wrong[0].bytes[20] ^= 1;
    wrong[1].bytes[0] = MACHINE_ALLOC;
    wrong[2].bytes[0] = 200;
    wrong[3].bytes[right.length - 1] = 0xFF; /* other tasks come behind it */
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct journal *journal = i == 0 ? make_journal() : open_journal(JOURNAL_WRITE);
        rename_key(journal, STORE_STATE, right, wrong[i]);
        struct seen seen = see_states(journal);
        assert_int_equal(seen.bad, 1);
        assert_int_equal(seen.good, TURN_MACHINES - 1);
        assert_int_equal(journal_quarantine(journal, seen.table, seen.key, seen.reason, 1, &err),
                         0);
        seen = see_states(journal);
        assert_int_equal(seen.bad, 0);
        assert_int_equal(see_items(journal).count, i + 1);
        turn.batch =
            (struct journal_batch){.records = turn.records, .records_count = TURN_MACHINES};
        assert_int_equal(journal_commit(journal, &turn.batch, &err), 0); /* whole again */
        journal_close(journal);
    }
}

static void test_damaged_event_is_passed_over(void **state)
{
    struct journal *journal = make_journal();
    struct seen seen = {0};
    struct err err;

    (void)state;
    flip(journal, STORE_LOG, key_of_number(5));
    assert_int_equal(journal_each_event(journal, 0, see_event, see_bad, &seen, &err), 0);
    assert_int_equal(seen.good, 3 * TURN_EVENTS - 1);
    assert_int_equal(seen.bad, 1);
    assert_string_equal(seen.table, "log");
    assert_string_equal(seen.key, "5");
    seen = (struct seen){0};
    assert_int_equal(journal_each_event(journal, 0, see_event, NULL, &seen, &err), ERR_CORRUPT);
    assert_int_equal(seen.good, 3 * TURN_EVENTS - 1);
    assert_non_null(strstr(err.text, "log 5: "));
    assert_int_equal(journal_quarantine(journal, "log", "5", "test", 1, &err), 0);
    seen = (struct seen){0};
    assert_int_equal(journal_each_event(journal, 0, see_event, NULL, &seen, &err), 0);
    journal_close(journal);
}

/* A key far ahead must not make the numbers jump: they would never come back. */
static void test_damaged_last_key_does_not_move_the_sequence(void **state)
{
    struct journal *journal = make_journal();

    (void)state;
    rename_key(journal, STORE_LOG, key_of_number(3 * TURN_EVENTS),
               key_of_number(UINT64_C(1) << 63));
    journal_close(journal);
    journal = open_journal(JOURNAL_WRITE);
    assert_int_equal(journal_next_sequence(journal), 3 * TURN_EVENTS);
    assert_int_equal(journal_first_sequence(journal), 1);
    journal_close(journal);
}

static void test_damaged_blob_is_an_error_for_itself_only(void **state)
{
    struct journal *journal = make_journal();
    struct journal_blob spec = {.key = "job/other", .bytes = "abc", .length = 3};
    struct journal_batch batch = {.specs = &spec, .specs_count = 1};
    struct seen seen = {0};
    struct err err;
    char *bytes;
    size_t length;

    (void)state;
    assert_int_equal(journal_commit(journal, &batch, &err), 0);
    flip(journal, STORE_SPEC, key_of_text("alloc/turn"));
    assert_int_equal(journal_spec_read(journal, "alloc/turn", &bytes, &length, &err), ERR_CORRUPT);
    assert_int_equal(journal_each_spec(journal, "", see_blob, &seen, &err), ERR_CORRUPT);
    assert_int_equal(seen.good, 1);
    assert_int_equal(journal_each_bad_spec(journal, see_bad, &seen, &err), 0);
    assert_int_equal(seen.bad, 1);
    assert_string_equal(seen.key, "alloc/turn");
    assert_int_equal(journal_quarantine(journal, "spec", "alloc/turn", "test", 1, &err), 0);
    assert_int_equal(journal_spec_read(journal, "alloc/turn", &bytes, &length, &err), ERR_GONE);
    assert_int_equal(journal_each_spec(journal, "", see_blob, &seen, &err), 0);
    journal_close(journal);
}

static void test_value_of_another_table_or_machine_is_not_believed(void **state)
{
    struct journal *journal = make_journal();
    struct machine_id id = turn_machine(0);
    struct key base = key_of_machine(&id), other = base;
    struct seen seen = {0};
    struct err err;

    (void)state;
    other.bytes[other.length - 1] ^= 1; /* a sound record of this kind, of somebody else */
    rename_key(journal, STORE_BASE, base, other);
    assert_int_equal(journal_each_base(journal, MACHINE_TASK, see_record, see_bad, &seen, &err), 0);
    assert_int_equal(seen.good, 0);
    assert_int_equal(seen.bad, 1);
    assert_string_equal(seen.reason, "the bytes do not match their check");
    struct machine *record;
    text_copy(id.text, sizeof(id.text), seen.key + strlen("task/"));
    assert_int_equal(journal_base_read(journal, &id, &record, &err), ERR_CORRUPT);

    struct damage copied = {.table = STORE_STATE, .key = base, .to_base = true};
    seen = (struct seen){0};
    assert_int_equal(store_write(journal->store, do_damage, &copied, &err), 0);
    assert_int_equal(journal_each_base(journal, MACHINE_TASK, see_record, see_bad, &seen, &err), 0);
    assert_int_equal(seen.good, 0);
    assert_int_equal(seen.bad, 2);
    journal_close(journal);
}

static void test_damaged_quarantine_is_still_shown(void **state)
{
    struct journal *journal = make_journal();
    struct err err;

    (void)state;
    assert_int_equal(journal_quarantine(journal, "log", "1", "test", 1, &err), 0);
    flip(journal, STORE_QUARANTINE, key_of_number(1));
    struct item item = see_items(journal);
    assert_int_equal(item.count, 1);
    assert_string_equal(item.table, "quarantine");
    assert_string_equal(item.key, "1");
    journal_close(journal);
}

static void test_unknown_table_or_entry_is_gone(void **state)
{
    struct journal *journal = make_journal();
    struct err err;

    (void)state;
    assert_int_equal(journal_quarantine(journal, "nothing", "1", "test", 1, &err), ERR_GONE);
    assert_int_equal(journal_quarantine(journal, "log", "1000", "test", 1, &err), ERR_GONE);
    assert_int_equal(journal_quarantine(journal, "quarantine", "1", "test", 1, &err), ERR_GONE);
    assert_int_equal(turn_verify(journal), 3);
    journal_close(journal);
}

/* --- whole entries under numbers that nobody counts to --- */

struct odd_entry {
    enum store_table table;
    struct key key;
    const void *bytes;
    size_t length;
};

static int do_put(struct store_txn *txn, void *ctx, struct err *err)
{
    const struct odd_entry *odd = ctx;

    return value_put(txn, odd->table, &odd->key, odd->bytes, odd->length, err);
}

struct odd_event {
    struct journal *journal;
    struct journal_event event;
};

static int do_put_event(struct store_txn *txn, void *ctx, struct err *err)
{
    const struct odd_event *odd = ctx;
    struct key key = key_of_number(odd->event.sequence);
    struct codec_value value =
        codec_encode_event(odd->journal->codec, &odd->event, key_seal(STORE_LOG, key_bytes(&key)));

    return store_put(txn, STORE_LOG, key_bytes(&key),
                     (struct store_bytes){.bytes = value.bytes, .length = value.length}, err);
}

/* The log goes on behind what was counted, and takes commits. */
static void test_odd_numbers_do_not_move_the_sequence(void **state)
{
    const uint64_t numbers[] = {UINT64_MAX, UINT64_MAX - 1, 1ull << 63, NUMBER_MAX + 1,
                                NUMBER_BEGIN_MAX + 1};
    struct journal *journal = make_journal();
    uint64_t next = journal_next_sequence(journal);
    struct seen seen = {0};
    struct err err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        struct odd_event odd = {journal, turn.events[0]};
        odd.event.sequence = numbers[i];
        assert_int_equal(store_write(journal->store, do_put_event, &odd, &err), 0);
    }
    struct odd_entry odd = {STORE_META, key_of_text("journal/sequence"), "18446744073709551615",
                            20};
    assert_int_equal(store_write(journal->store, do_put, &odd, &err), 0);
    for (int i = 0; i < 2; i++) {
        journal_close(journal);
        journal = open_journal(JOURNAL_WRITE);
        assert_int_equal(journal_next_sequence(journal), next);
        turn_make(&turn, 4 + (uint64_t)i);
        for (size_t k = 0; k < TURN_EVENTS; k++)
            turn.events[k].sequence = next + k;
        assert_int_equal(journal_commit(journal, &turn.batch, &err), 0);
        next += TURN_EVENTS;
    }
    assert_int_equal(journal_each_event(journal, 0, see_event, see_bad, &seen, &err), 0);
    assert_int_equal(seen.good, 5 * TURN_EVENTS + 1); /* what may be read is not gone on from */
    assert_int_equal(seen.bad, COUNT_OF(numbers) - 1);
    assert_non_null(strstr(seen.reason, "more than anything ever counted"));
    journal_close(journal);
}

static bool count_item(void *ctx, const struct journal_quarantined *item)
{
    (void)item;
    ++*(unsigned *)ctx;
    return true;
}

/* None takes the place of another. */
static void test_odd_number_in_quarantine_loses_nothing(void **state)
{
    struct journal *journal = make_journal();
    struct odd_entry odd = {STORE_QUARANTINE, key_of_number(UINT64_MAX), "x", 1};
    unsigned count = 0;
    struct err err;

    (void)state;
    assert_int_equal(store_write(journal->store, do_put, &odd, &err), 0);
    assert_int_equal(journal_quarantine(journal, "log", "1", "test", 1, &err), 0);
    assert_int_equal(journal_quarantine(journal, "log", "2", "test", 1, &err), 0);
    assert_int_equal(journal_each_quarantined(journal, count_item, &count, &err), 0);
    assert_int_equal(count, 3);
    assert_int_equal(journal_quarantine_drop(journal, 2, &err), 0);
    assert_int_equal(journal_quarantine_drop(journal, UINT64_MAX, &err), 0);
    journal_close(journal);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_damaged_record_is_reported_set_aside_and_dropped),
        TEST(test_damaged_key_is_reported_and_set_aside),
        TEST(test_damaged_event_is_passed_over),
        TEST(test_damaged_last_key_does_not_move_the_sequence),
        TEST(test_damaged_blob_is_an_error_for_itself_only),
        TEST(test_value_of_another_table_or_machine_is_not_believed),
        TEST(test_damaged_quarantine_is_still_shown),
        TEST(test_unknown_table_or_entry_is_gone),
        TEST(test_odd_numbers_do_not_move_the_sequence),
        TEST(test_odd_number_in_quarantine_loses_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
