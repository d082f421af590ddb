/*
 * The machines of a node and the flight recorder (core/machines/machines.c): who is there, and what
 * the last transitions were.
 */
#include "test/core/seam.h"

/* --- who is there --- */

static void test_find_what_no_id_can_be_finds_nothing(void **state)
{
    const struct seam *seam = *state;
    char long_text[300];

    memset(long_text, 'x', sizeof(long_text) - 1);
    long_text[sizeof(long_text) - 1] = '\0';
    assert_null(core_alloc(seam->core, long_text));
    assert_null(core_task(seam->core, long_text, "web"));
    assert_null(core_task(seam->core, "a", long_text));
    assert_null(core_alloc(seam->core, "a"));
}

static void test_find_sees_what_is_committed_and_nothing_before(void **state)
{
    struct seam *seam = *state;

    seam_place(seam, "a", "web");
    assert_null(core_alloc(seam->core, "a"));
    seam_turn(seam);
    assert_non_null(core_alloc(seam->core, "a"));
    assert_non_null(core_task(seam->core, "a", "web"));
    assert_null(core_task(seam->core, "a", "side"));
    assert_null(core_task(seam->core, "web", "a"));
}

struct walk {
    char seen[64];
    int left;
};

static bool note(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct walk *walk = ctx;

    assert_int_equal(record->kind, id->kind);
    assert_true(text_append(walk->seen, sizeof(walk->seen), id->text));
    assert_true(text_append(walk->seen, sizeof(walk->seen), " "));
    return --walk->left > 0;
}

static void test_each_walks_one_kind_in_the_order_of_arrival_until_it_is_told_to_end(void **state)
{
    struct seam *seam = *state;
    struct walk all = {.left = 100}, two = {.left = 2};

    seam_place(seam, "c", "web");
    seam_place(seam, "a", "web");
    seam_place(seam, "b", "web side");
    seam_turn(seam);
    core_each(seam->core, MACHINE_ALLOC, note, &all);
    assert_string_equal(all.seen, "c a b ");
    core_each(seam->core, MACHINE_TASK, note, &two);
    assert_string_equal(two.seen, "c/web a/web ");
    assert_int_equal(core_count(seam->core, MACHINE_TASK), 4);
    assert_int_equal(core_count(seam->core, MACHINE_PLUGIN), 0);
}

static void expect_gone(struct seam *seam, const struct effect *effect)
{
    struct walk walk = {.left = 100};

    if (effect->id.kind != MACHINE_TASK || effect->kind != TX_DRIVER_SIGNAL)
        return;
    core_each(seam->core, MACHINE_ALLOC, note, &walk);
    assert_string_equal(walk.seen, "b ");
    assert_int_equal(core_count(seam->core, MACHINE_ALLOC), 1);
}

/* In the turn that removes a machine, while effects are performed, it is no longer there. */
static void test_each_passes_over_what_the_last_commit_removed(void **state)
{
    struct seam *seam = *state;

    seam_end(seam, "a", "web");
    seam_run(seam, "b", "web");
    seam_ask(seam, MACHINE_ALLOC, "a", AE_DESTROY, 0);
    seam_turn(seam);
    seam->performs = expect_gone;
    seam_hook_done(seam, MACHINE_ALLOC, "a");
    seam_ask(seam, MACHINE_TASK, "b/web", TE_SIGNAL, 0);
    seam_forget(seam);
    seam_turn(seam);
    assert_non_null(strstr(seam->crossed, "alloc a HOOK_DONE GONE\n"));
    assert_non_null(strstr(seam->crossed, "perform task b/web DRIVER_SIGNAL\n"));
}

/* --- the flight recorder --- */

struct flights {
    char first[512], last[512];
    size_t count;
};

static void take(void *ctx, const char *text)
{
    struct flights *flights = ctx;

    if (flights->count++ == 0)
        (void)text_copy(flights->first, sizeof(flights->first), text); /* same size */
    (void)text_copy(flights->last, sizeof(flights->last), text);
}

static void test_flight_recorder_is_empty_until_something_is_committed(void **state)
{
    struct seam *seam = *state;
    struct flights flights = {.count = 0};

    seam_place(seam, "a", "web");
    seam->commit_code = ERR_FULL;
    seam_turn(seam);
    core_flight_print(seam->core, take, &flights);
    assert_int_equal(flights.count, 0);
}

static void test_flight_recorder_tells_the_last_transitions_the_oldest_first(void **state)
{
    struct seam *seam = *state;
    struct flights flights = {.count = 0};

    seam->now_ms = 61007;
    seam_place(seam, "a", "web");
    seam_turn(seam);
    core_flight_print(seam->core, take, &flights);
    assert_int_equal(flights.count, 2);
    assert_string_equal(flights.first, "1 61.007 alloc a ABSENT -ASSIGN-> PREPARING +HOOK\n");
    assert_string_equal(flights.last, "2 61.007 task a/web ABSENT -DEFINE-> WAITING\n");
}

/* It is a ring: what is long past has gone. */
static void test_flight_recorder_keeps_4096(void **state)
{
    struct seam *seam = *state;
    struct flights flights = {.count = 0};
    char expected[64];

    seam_run(seam, "a", "web");
    for (int i = 0; i < 5000; i++) {
        seam_ask(seam, MACHINE_TASK, "a/web", TE_SIGNAL, 0);
        seam_turn(seam);
        seam_forget(seam);
    }
    core_flight_print(seam->core, take, &flights);
    assert_int_equal(flights.count, 4096);
    (void)text_format(expected, sizeof(expected), "%llu ",
                      (unsigned long long)(seam->sequence - 4095));
    assert_true(text_starts_with(flights.first, expected));
    (void)text_format(expected, sizeof(expected), "%llu ", (unsigned long long)seam->sequence);
    assert_true(text_starts_with(flights.last, expected));
}

static void describe(struct seam *seam, const struct journal_batch *batch)
{
    char line[256], cut[12];

    for (size_t i = 0; i < batch->events_count; i++) {
        core_describe(&batch->events[i], line, sizeof(line));
        seam_write(seam, "  = %s\n", line);
        core_describe(&batch->events[i], cut, sizeof(cut)); /* never over the end */
        assert_true(strlen(cut) < sizeof(cut));
    }
}

/* State, event, guard, next state, effects, and the ticket that it answers. */
static void test_describe_says_which_row_was_taken(void **state)
{
    struct seam *seam = *state;

    seam_place(seam, "a", "web");
    seam_turn(seam);
    seam_forget(seam);
    seam->looks = describe;
    seam_hook_done(seam, MACHINE_ALLOC, "a");
    seam_turn(seam);
    seam_crossed(seam,
                 "commit\n"
                 "  alloc a HOOK_DONE RUNNING\n"
                 "  task a/web START PRESTART\n"
                 "  = alloc a PREPARING -HOOK_DONE-> RUNNING +SEND_REMARK +SEND_START ticket=1\n"
                 "  = task a/web WAITING -START[MAY_START]-> PRESTART +HOOK\n"
                 "perform task a/web HOOK\n");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        SEAM_TEST(test_find_what_no_id_can_be_finds_nothing),
        SEAM_TEST(test_find_sees_what_is_committed_and_nothing_before),
        SEAM_TEST(test_each_walks_one_kind_in_the_order_of_arrival_until_it_is_told_to_end),
        SEAM_TEST(test_each_passes_over_what_the_last_commit_removed),
        SEAM_TEST(test_flight_recorder_is_empty_until_something_is_committed),
        SEAM_TEST(test_flight_recorder_tells_the_last_transitions_the_oldest_first),
        SEAM_TEST(test_flight_recorder_keeps_4096),
        SEAM_TEST(test_describe_says_which_row_was_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
