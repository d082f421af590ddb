/* What an import needs beside commits: a log that begins in mid-life or has holes, and entries of
 * the quarantine under their own numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "test/journal/scratch.h"

#include <errno.h>

static void add_event(struct journal *journal, uint64_t sequence)
{
    static unsigned char payload[FSM_PAYLOAD_BYTES_MAX];
    struct rng rng = rng_init(sequence);
    struct journal_event event;
    struct journal_batch batch = {.events = &event, .events_count = 1};
    struct err err;

    make_event(&rng, sequence, MACHINE_TASK, TE_STARTED, payload, &event);
    assert_int_equal(journal_commit(journal, &batch, &err), 0);
}

static bool note_sequence(void *ctx, const struct journal_event *event)
{
    uint64_t *numbers = ctx;

    numbers[++numbers[0]] = event->sequence;
    return true;
}

static void test_continue_numbers_what_comes_next(void **state)
{
    struct journal *journal = open_journal(JOURNAL_WRITE);
    uint64_t numbers[8] = {0};
    struct err err = {0};

    (void)state;
    assert_int_equal(journal_continue(journal, 1000, &err), 0);
    assert_int_equal(journal_first_sequence(journal), 1000);
    add_event(journal, 1000);
    add_event(journal, 1001);
    assert_int_equal(journal_continue(journal, 1005, &err), 0);
    add_event(journal, 1005);
    assert_int_equal(journal_continue(journal, 1010, &err), 0);
    journal_close(journal);

    journal = open_journal(JOURNAL_READ);
    assert_int_equal(journal_first_sequence(journal), 1000);
    assert_int_equal(journal_next_sequence(journal), 1010);
    assert_int_equal(journal_each_event(journal, 0, note_sequence, NULL, numbers, &err), 0);
    assert_int_equal(numbers[0], 3);
    assert_int_equal(numbers[1], 1000);
    assert_int_equal(numbers[3], 1005);
    journal_close(journal);
}

static void test_continue_where_events_are_is_refused(void **state)
{
    struct journal *journal = open_journal(JOURNAL_WRITE);
    struct err err = {0};

    (void)state;
    add_event(journal, 1);
    add_event(journal, 2);
    assert_int_equal(journal_continue(journal, 2, &err), ERR_INVALID);
    assert_int_equal(journal_next_sequence(journal), 3);
    assert_int_equal(journal_continue(journal, 3, &err), 0);
    journal_inject(journal, ENOSPC, 0, 1);
    assert_int_equal(journal_continue(journal, 9, &err), ERR_FULL);
    assert_int_equal(journal_next_sequence(journal), 3);
    journal_close(journal);
    journal = open_journal(JOURNAL_READ);
    assert_int_equal(journal_continue(journal, 9, &err), ERR_REFUSED);
    journal_close(journal);
}

static bool note_item(void *ctx, const struct journal_quarantined *item)
{
    struct journal_quarantined *found = ctx;

    *found = *item;
    assert_int_equal(item->length, 4);
    assert_memory_equal(item->bytes, "\0abc", 4);
    return true;
}

static void test_quarantine_put_keeps_the_entry_and_its_number(void **state)
{
    struct journal_quarantined item = {
        .number = 7,
        .unix_ns = -5,
        .table = "state",
        .key = "task/a/b",
        .reason = "bad",
        .bytes = "\0abc",
        .length = 4,
    };
    struct journal *journal = open_journal(JOURNAL_WRITE);
    struct journal_quarantined found = {0};
    struct err err = {0};

    (void)state;
    assert_int_equal(journal_quarantine_put(journal, &item, &err), 0);
    assert_int_equal(journal_each_quarantined(journal, note_item, &found, &err), 0);
    assert_int_equal(found.number, 7);
    assert_int_equal(found.unix_ns, -5);
    assert_string_equal(found.table, "state");
    assert_string_equal(found.key, "task/a/b");
    assert_string_equal(found.reason, "bad");
    item.number = 0;
    assert_int_equal(journal_quarantine_put(journal, &item, &err), ERR_INVALID);
    journal_close(journal);
    journal = open_journal(JOURNAL_READ);
    assert_int_equal(journal_quarantine_put(journal, &found, &err), ERR_REFUSED);
    journal_close(journal);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_continue_numbers_what_comes_next),
        TEST(test_continue_where_events_are_is_refused),
        TEST(test_quarantine_put_keeps_the_entry_and_its_number),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
