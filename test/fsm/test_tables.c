/*
 * The tables: static checks, golden matrices, and proof that the checks find what they are for.
 *
 * A changed table shows as a diff of test/golden/<machine>.matrix; `./dev golden` rewrites them,
 * the diff is the review.
 *
 *     test_tables          all tests
 *     test_tables checks   the static checks of the tables alone
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fsm/alloc.h"
#include "fsm/fsm.h"
#include "fsm/task.h"
#include "fsm/volume.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct text {
    char bytes[256 * 1024];
    size_t used;
};

static void collect(void *ctx, const char *line)
{
    struct text *text = ctx;
    size_t length = strlen(line);

    assert_true(text->used + length < sizeof(text->bytes));
    memcpy(text->bytes + text->used, line, length + 1);
    text->used += length;
}

static void test_tables_static_checks_find_nothing(void **state)
{
    static struct text text;

    (void)state;
    for (int kind = 0; kind < MACHINE_KIND_COUNT; kind++) {
        text.used = 0;
        text.bytes[0] = '\0';
        unsigned violations = fsm_check(fsm_definition((enum machine_kind)kind), collect, &text);
        if (violations > 0)
            print_error("%s", text.bytes);
        assert_int_equal(violations, 0);
    }
}

static void print_line(void *ctx, const char *line)
{
    (void)ctx;
    (void)fputs(line, stdout);
}

/* The static checks alone, for those who change tables on purpose (test/mutants). */
static int run_checks(void)
{
    unsigned violations = 0;

    for (int kind = 0; kind < MACHINE_KIND_COUNT; kind++)
        violations += fsm_check(fsm_definition((enum machine_kind)kind), print_line, NULL);
    return violations > 0;
}

static void compare_golden(const struct fsm_def *def)
{
    static struct text drawn;
    static char golden[256 * 1024];
    char path[128];

    drawn.used = 0;
    fsm_draw_matrix(def, collect, &drawn);
    (void)snprintf(path, sizeof(path), "test/golden/%s.matrix", def->name);
    if (getenv("CAIRN_GOLDEN") != NULL) {
        FILE *out = fopen(path, "w");
        assert_non_null(out);
        assert_int_equal(fwrite(drawn.bytes, 1, drawn.used, out), drawn.used);
        assert_int_equal(fclose(out), 0);
    }
    FILE *in = fopen(path, "r");
    assert_non_null(in);
    size_t length = fread(golden, 1, sizeof(golden) - 1, in);
    (void)fclose(in);
    golden[length] = '\0';
    assert_string_equal(drawn.bytes, golden);
}

static void test_tables_matrices_equal_the_golden_ones(void **state)
{
    (void)state;
    for (int kind = 0; kind < MACHINE_KIND_COUNT; kind++)
        compare_golden(fsm_definition((enum machine_kind)kind));
}

/* A copy of a table that a test may spoil. */
struct spoiled {
    struct fsm_def def;
    struct fsm_state states[64];
    struct fsm_row rows[512];
};

static struct spoiled *copy_of(const struct fsm_def *def)
{
    static struct spoiled spoiled;

    spoiled.def = *def;
    memcpy(spoiled.states, def->states, def->states_count * sizeof(def->states[0]));
    memcpy(spoiled.rows, def->rows, def->rows_count * sizeof(def->rows[0]));
    spoiled.def.states = spoiled.states;
    spoiled.def.rows = spoiled.rows;
    return &spoiled;
}

static void remove_row(struct spoiled *spoiled, uint16_t number)
{
    memmove(&spoiled->rows[number], &spoiled->rows[number + 1],
            (size_t)(spoiled->def.rows_count - number - 1) * sizeof(spoiled->rows[0]));
    spoiled->def.rows_count--;
}

static bool complains(const struct spoiled *spoiled, const char *what)
{
    static struct text text;

    text.used = 0;
    text.bytes[0] = '\0';
    (void)fsm_check(&spoiled->def, collect, &text);
    return strstr(text.bytes, what) != NULL;
}

static uint16_t row_of(const struct fsm_def *def, uint8_t state, uint8_t event)
{
    for (uint16_t r = 0; r < def->rows_count; r++) {
        if (def->rows[r].state == state && def->rows[r].event == event)
            return r;
    }
    fail_msg("no such row");
    return 0;
}

static void test_check_rows_out_of_order_is_found(void **state)
{
    struct spoiled *spoiled = copy_of(&task_def);
    struct fsm_row first = spoiled->rows[1];

    (void)state;
    spoiled->rows[1] = spoiled->rows[40];
    spoiled->rows[40] = first;
    assert_true(complains(spoiled, "check 1: "));
}

static void test_check_forgotten_event_is_found(void **state)
{
    struct spoiled *spoiled = copy_of(&task_def);

    (void)state;
    remove_row(spoiled, row_of(&task_def, T_BACKOFF, TE_KILL));
    assert_true(complains(spoiled, "check 2: BACKOFF: does not decide KILL"));
}

static void test_check_guard_hole_is_found(void **state)
{
    struct spoiled *spoiled = copy_of(&task_def);
    uint16_t row = row_of(&task_def, T_WAITING, TE_START);

    (void)state;
    remove_row(spoiled, (uint16_t)(row + 1));
    assert_true(complains(spoiled, "check 3: WAITING: has no unguarded row for START"));
}

static void test_check_trap_is_found(void **state)
{
    struct spoiled *spoiled = copy_of(&task_def);

    (void)state;
    for (uint16_t r = 0; r < spoiled->def.rows_count; r++) {
        if (spoiled->rows[r].state == T_DEAD)
            spoiled->rows[r].next = T_DEAD;
        if (spoiled->rows[r].next == T_GONE)
            spoiled->rows[r].next = T_DEAD;
    }
    assert_true(complains(spoiled, "check 4: DEAD: cannot come to an end"));
}

static void test_check_missing_restore_row_is_found(void **state)
{
    struct spoiled *spoiled = copy_of(&task_def);

    (void)state;
    remove_row(spoiled, row_of(&task_def, T_RUNNING, TE_RESTORE));
    assert_true(complains(spoiled, "check 5: RUNNING: has no row for RESTORE"));
}

static void test_check_unanswered_request_is_found(void **state)
{
    struct spoiled *spoiled = copy_of(&task_def);

    (void)state;
    remove_row(spoiled, row_of(&task_def, T_HELD, TE_SIGNAL));
    spoiled->states[T_HELD].ignored |= (uint64_t)1 << TE_SIGNAL;
    assert_true(complains(spoiled, "check 6: HELD: leaves somebody waiting who sent SIGNAL"));
}

/* The volume table's own history: a RELEASE that does not wait for the call under way. */
static void test_check_late_completion_declared_never_is_found(void **state)
{
    struct spoiled *spoiled = copy_of(&volume_def);
    uint64_t staged = (uint64_t)1 << VE_STAGED;

    (void)state;
    spoiled->rows[row_of(&volume_def, V_STAGING, VE_RELEASE)].next = V_DRAINING;
    spoiled->states[V_DRAINING].ignored &= ~staged;
    spoiled->states[V_DRAINING].never |= staged;
    assert_true(complains(spoiled, "check 7: DRAINING: may still get STAGED"));
}

static void test_check_wait_for_nothing_is_found(void **state)
{
    struct spoiled *spoiled = copy_of(&task_def);

    (void)state;
    memset(spoiled->rows[row_of(&task_def, T_REAPING, TE_TIMEOUT)].effects, 0, FSM_EFFECTS_MAX);
    assert_true(complains(spoiled, "check 8: REAPING: waits for nothing after TIMEOUT"));
}

/* The volume table's own history: two that leave one volume woke each other. */
static void test_check_calls_without_a_pause_are_found(void **state)
{
    struct spoiled *spoiled = copy_of(&volume_def);

    (void)state;
    assert_false(complains(spoiled, "check 11: "));
    spoiled->def.paced = 0; /* as if the guard did not ask for the pause */
    assert_true(complains(spoiled, "check 11: DRAINING: calls again without a pause: UNPUBLISH"));
    assert_true(complains(spoiled, "check 11: DRAINING: calls again without a pause: UNSTAGE"));
    assert_false(complains(spoiled, "check 11: IDLE: ")); /* its way leads on */

    spoiled = copy_of(&alloc_def);
    spoiled->rows[row_of(&alloc_def, A_POSTRUN, AE_HOOK_FAILED)].effects[0] = AX_HOOK;
    assert_true(complains(spoiled, "check 11: POSTRUN: calls again without a pause: HOOK"));
}

static void test_check_second_answer_is_found(void **state)
{
    struct spoiled *spoiled = copy_of(&task_def);
    uint8_t *effects = spoiled->rows[row_of(&task_def, T_RUNNING, TE_RESTART)].effects;

    (void)state;
    effects[2] = effects[1]; /* the answer */
    assert_true(complains(spoiled, "check 12: RUNNING: performs twice: REPLY_OK"));
}

static void test_check_limit_without_timeout_is_found(void **state)
{
    struct spoiled *spoiled = copy_of(&task_def);

    (void)state;
    remove_row(spoiled, row_of(&task_def, T_DELAYING, TE_TIMEOUT));
    spoiled->states[T_DELAYING].ignored |= (uint64_t)1 << TE_TIMEOUT;
    assert_true(complains(spoiled, "check 9: DELAYING: has a limit but no row for TIMEOUT"));
}

static void test_check_completion_on_a_lane_that_never_completes_is_found(void **state)
{
    static struct fsm_effect_def effects[TX_COUNT];
    struct spoiled *spoiled = copy_of(&task_def);

    (void)state;
    memcpy(effects, task_def.effects, sizeof(effects));
    effects[TX_REPLY_OK].completions = (uint64_t)1 << TE_REAPED;
    spoiled->def.effects = effects;
    assert_true(complains(spoiled, "check 10: REPLY_OK: completes"));
}

/* What a journal knows of a row leads back to it, wherever it stands in a later version; a guard
 * that is not known here leads to the row that has none. */
static void test_rows_are_found_by_what_journals_say(void **state)
{
    (void)state;
    for (int kind = 0; kind < MACHINE_KIND_COUNT; kind++) {
        const struct fsm_def *def = fsm_definition((enum machine_kind)kind);
        for (uint16_t i = 0; i < def->rows_count; i++) {
            const struct fsm_row *row = &def->rows[i];
            uint32_t mark = fsm_guard_mark(def, row->guard);
            assert_int_equal(fsm_row_marked(def, row->state, row->event, mark), i);
            uint16_t other = fsm_row_marked(def, row->state, row->event, 1);
            assert_int_equal(def->rows[other].state, row->state);
            assert_int_equal(def->rows[other].event, row->event);
            assert_int_equal(def->rows[other].guard, 0);
        }
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables_static_checks_find_nothing),
        cmocka_unit_test(test_tables_matrices_equal_the_golden_ones),
        cmocka_unit_test(test_check_rows_out_of_order_is_found),
        cmocka_unit_test(test_check_forgotten_event_is_found),
        cmocka_unit_test(test_check_guard_hole_is_found),
        cmocka_unit_test(test_check_trap_is_found),
        cmocka_unit_test(test_check_missing_restore_row_is_found),
        cmocka_unit_test(test_check_unanswered_request_is_found),
        cmocka_unit_test(test_check_late_completion_declared_never_is_found),
        cmocka_unit_test(test_check_wait_for_nothing_is_found),
        cmocka_unit_test(test_check_calls_without_a_pause_are_found),
        cmocka_unit_test(test_check_second_answer_is_found),
        cmocka_unit_test(test_check_limit_without_timeout_is_found),
        cmocka_unit_test(test_check_completion_on_a_lane_that_never_completes_is_found),
        cmocka_unit_test(test_rows_are_found_by_what_journals_say),
    };

    if (argc == 2 && strcmp(argv[1], "checks") == 0)
        return run_checks();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
