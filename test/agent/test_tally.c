/* What is counted for those who watch (agent/tally.c): each start once, and ends for want of
 * memory, as long as a task is there; how long hooks took, with a bound. */
#include "agent/tally.h"

#include "fsm/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char TASK[] = "00000000-0000-4000-8000-000000000001/t";

/* At UNIX_NS something became known of a task that started at STARTED_NS. */
static void note(struct tally *tally, enum task_event_kind kind, enum task_state before,
                 enum task_state after, int64_t unix_ns, int64_t started_ns)
{
    struct exited exit = {.oom_killed = 0};
    struct task task = {.started_unix_ns = started_ns};
    struct journal_event event = {
        .unix_ns = unix_ns,
        .id = machine_id_make(MACHINE_TASK, TASK),
        .event = {.kind = (uint8_t)kind, .payload = kind == TE_EXITED ? &exit : NULL},
        .before = (uint8_t)before,
        .after = (uint8_t)after,
    };

    tally_note(tally, &event, after == T_GONE ? NULL : &task);
}

static void note_lack_of_memory(struct tally *tally, int64_t unix_ns)
{
    struct exited exit = {.oom_killed = 1};
    struct task task = {.started_unix_ns = 1};
    struct journal_event event = {
        .unix_ns = unix_ns,
        .id = machine_id_make(MACHINE_TASK, TASK),
        .event = {.kind = TE_EXITED, .payload = &exit},
        .before = T_RUNNING,
        .after = T_REAPING,
    };

    tally_note(tally, &event, &task);
}

static uint32_t starts(const struct tally *tally)
{
    const struct tally_task *task = tally_task(tally, TASK);

    return task != NULL ? task->starts : 0;
}

static void test_start_is_counted_once_however_it_was_seen(void **state)
{
    struct tally *tally = tally_new();
    (void)state;

    note(tally, TE_DEFINE, T_ABSENT, T_WAITING, 1, 0);
    assert_null(tally_task(tally, TASK));
    note(tally, TE_STARTED, T_STARTING, T_RUNNING, 10, 10);
    assert_int_equal(starts(tally), 1);
    note(tally, TE_EXITED, T_RUNNING, T_REAPING, 20, 10);
    assert_int_equal(starts(tally), 1);
    note(tally, TE_EXITED, T_STARTING, T_REAPING, 30, 30); /* too short to be seen alive */
    assert_int_equal(starts(tally), 2);
    note(tally, TE_RECOVERED, T_RECOVERING, T_RUNNING, 40, 40); /* the daemon died in between */
    assert_int_equal(starts(tally), 3);
    tally_free(tally);
}

static void test_payload_that_is_found_again_was_not_started(void **state)
{
    struct tally *tally = tally_new();
    (void)state;

    note(tally, TE_RECOVERED, T_RECOVERING, T_RUNNING, 50, 10);
    assert_int_equal(starts(tally), 0);
    tally_free(tally);
}

static void test_want_of_memory_is_counted_beside_other_ends(void **state)
{
    struct tally *tally = tally_new();
    (void)state;

    note_lack_of_memory(tally, 20);
    note(tally, TE_EXITED, T_RUNNING, T_REAPING, 30, 10);
    note_lack_of_memory(tally, 40);
    assert_int_equal(tally_task(tally, TASK)->oom_kills, 2);
    assert_int_equal(starts(tally), 0);
    tally_free(tally);
}

static void test_task_that_is_gone_is_forgotten(void **state)
{
    struct tally *tally = tally_new();
    (void)state;

    note(tally, TE_STARTED, T_STARTING, T_RUNNING, 10, 10);
    note(tally, TE_REMOVE, T_DEAD, T_GONE, 20, 10);
    assert_null(tally_task(tally, TASK));
    note(tally, TE_REMOVE, T_DEAD, T_GONE, 20, 10); /* that never ran */
    tally_free(tally);
}

static void test_hooks_are_summed_up_by_namespace_and_name(void **state)
{
    struct tally *tally = tally_new();
    size_t count;
    (void)state;

    assert_null(tally_hooks(tally, &count));
    assert_int_equal(count, 0);
    tally_note_hook(tally, "default", true, TASK_HOOK_LOGS, 2, false);
    tally_note_hook(tally, "default", true, TASK_HOOK_LOGS, 6, true);
    tally_note_hook(tally, "default", true, TASK_HOOK_LOGS, 4, false);
    tally_note_hook(tally, "other", true, TASK_HOOK_LOGS, 1, false);
    tally_note_hook(tally, "default", false, ALLOC_HOOK_NETWORK, 1, false);
    const struct tally_hook *hooks = tally_hooks(tally, &count);
    assert_int_equal(count, 3);
    assert_string_equal(hooks[0].namespace, "default");
    assert_true(hooks[0].of_task);
    assert_int_equal(hooks[0].done, 2);
    assert_int_equal(hooks[0].failed, 1);
    assert_true(hooks[0].sum_ms == 12 && hooks[0].squares_ms2 == 56);
    assert_true(hooks[0].min_ms == 2 && hooks[0].max_ms == 6);
    assert_string_equal(hooks[1].namespace, "other");
    assert_false(hooks[2].of_task);
    tally_free(tally);
}

static void test_namespaces_past_the_bound_are_not_counted(void **state)
{
    struct tally *tally = tally_new();
    char namespace[16];
    size_t count;
    (void)state;

    for (unsigned i = 0; i < TALLY_HOOKS_MAX + 2; i++) {
        assert_true(text_format(namespace, sizeof(namespace), "n%u", i));
        tally_note_hook(tally, namespace, true, TASK_HOOK_LOGS, 1, false);
    }
    tally_note_hook(tally, "n0", true, TASK_HOOK_LOGS, 1, false); /* is there */
    const struct tally_hook *hooks = tally_hooks(tally, &count);
    assert_int_equal(count, TALLY_HOOKS_MAX);
    assert_int_equal(hooks[0].done, 2);
    tally_free(tally);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_start_is_counted_once_however_it_was_seen),
        cmocka_unit_test(test_payload_that_is_found_again_was_not_started),
        cmocka_unit_test(test_want_of_memory_is_counted_beside_other_ends),
        cmocka_unit_test(test_task_that_is_gone_is_forgotten),
        cmocka_unit_test(test_hooks_are_summed_up_by_namespace_and_name),
        cmocka_unit_test(test_namespaces_past_the_bound_are_not_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
