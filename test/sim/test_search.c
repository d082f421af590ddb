/*
 * The search over all reachable states: that it finds what is broken, by the shortest way; that
 * what it leaves out of a state changes nothing; that it is complete, and the same every time.
 * (`cairn sim -search` makes the large ones.)
 *
 * Built as debug, clang-asan: same_worlds.py says that builds do the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fsm/task/rules.h"
#include "fsm/volume/rules.h"
#include "sim/search/part.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* What an assertion stopped in the middle is left alone: it does not count as lost. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:sim_search\n";
}

enum { WALKS = 200, WALK_STEPS = 100 };

static char story[256 * 1024];
static size_t story_used;

static void collect(void *ctx, const char *text)
{
    size_t length = strlen(text);

    (void)ctx;
    assert_true(story_used + length < sizeof(story));
    memcpy(story + story_used, text, length + 1);
    story_used += length;
}

/* Bounds that are searched in a second or two, one kind of fault at a time. */
static struct sim_search bounded(enum sim_bound bound, uint8_t times)
{
    struct sim_search search = sim_search_default();

    memset(search.bounds, 0, sizeof(search.bounds));
    search.bounds[SIM_BOUND_TOGETHER] = 1;
    search.bounds[SIM_BOUND_FAULTS] = times;
    search.bounds[bound] = times;
    return search;
}

static void run(struct sim_search *search)
{
    story_used = 0;
    story[0] = '\0';
    sim_search(search, collect, NULL);
}

/* --- spoiled tables --- */

struct spoiled {
    struct fsm_def def;
    struct fsm_state states[64];
    struct fsm_row rows[512];
    struct fsm_guard_def guards[64];
};

static struct spoiled copy_of(const struct fsm_def *def)
{
    struct spoiled spoiled = {.def = *def};

    memcpy(spoiled.states, def->states, def->states_count * sizeof(def->states[0]));
    memcpy(spoiled.rows, def->rows, def->rows_count * sizeof(def->rows[0]));
    memcpy(spoiled.guards, def->guards, def->guards_count * sizeof(def->guards[0]));
    return spoiled;
}

/* Definitions are constants: the pages they are on are made writable for the test. */
static void put(const struct fsm_def *at, const struct fsm_def *what)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t from = (uintptr_t)at & ~(page - 1);
    uintptr_t behind = ((uintptr_t)(at + 1) + page - 1) & ~(page - 1);

    assert_int_equal(mprotect((void *)from, behind - from, PROT_READ | PROT_WRITE), 0);
    memcpy((void *)(uintptr_t)at, what, sizeof(*what));
}

/* Searches with the definition of KIND spoiled. */
static void search_spoiled(struct sim_search *search, enum machine_kind kind,
                           struct spoiled *spoiled)
{
    const struct fsm_def *def = fsm_definition(kind);
    struct fsm_def whole = *def;

    spoiled->def.states = spoiled->states;
    spoiled->def.rows = spoiled->rows;
    spoiled->def.guards = spoiled->guards;
    put(def, &spoiled->def);
    run(search);
    put(def, &whole);
}

static struct fsm_row *row_of(struct spoiled *spoiled, uint8_t state, uint8_t event)
{
    for (uint16_t r = 0; r < spoiled->def.rows_count; r++) {
        if (spoiled->rows[r].state == state && spoiled->rows[r].event == event)
            return &spoiled->rows[r];
    }
    fail_msg("no such row");
    return NULL;
}

/* From now on the state ignores the event. */
static void ignore(struct spoiled *spoiled, uint8_t state, uint8_t event)
{
    spoiled->states[state].ignored |= (uint64_t)1 << event;
}

static bool never(const struct machine *record, const struct fsm_event *event,
                  const struct fsm_now *now)
{
    (void)record;
    (void)event;
    (void)now;
    return false;
}

static void enter_without_generation(struct machine *record, const struct fsm_row *row,
                                     const struct fsm_event *event, const struct fsm_now *now)
{
    uint32_t generation = record->generation;

    task_enter(record, row, event, now);
    if (generation > 0)
        record->generation = generation;
}

/* The violation, and a trace of at most LENGTH moves that ends with it. */
static void assert_found(const struct sim_search *search, enum sim_outcome outcome,
                         const char *text, uint32_t length)
{
    char move[16];

    if (search->outcome != outcome || strstr(search->text, text) == NULL ||
        search->trace_length > length)
        (void)fputs(story, stderr); /* cmocka's own print is cut */
    assert_int_equal(search->outcome, outcome);
    assert_non_null(strstr(search->text, text));
    assert_in_range(search->trace_length, 1, length);
    assert_non_null(strstr(story, "\nVIOLATED "));
    (void)snprintf(move, sizeof(move), "\n%4u  ", search->trace_length);
    assert_non_null(strstr(story, move));
    (void)snprintf(move, sizeof(move), "\n%4u  ", search->trace_length + 1);
    assert_null(strstr(story, move));
    assert_true(outcome == SIM_LIVENESS || !search->complete);
}

static void test_search_finds_a_start_without_a_look(void **state)
{
    struct sim_search search = bounded(SIM_BOUND_CRASH, 1);
    struct spoiled spoiled = copy_of(&task_def);
    struct fsm_row *row = row_of(&spoiled, T_RUNNING, TE_RESTORE);

    (void)state;
    row->next = T_PRESTART;
    row->effects[0] = TX_HOOK;
    search_spoiled(&search, MACHINE_TASK, &spoiled);
    assert_found(&search, SIM_SAFETY, "I-23: ", 17);
}

static void test_search_finds_a_start_without_a_look_at_the_volume(void **state)
{
    struct sim_search search = bounded(SIM_BOUND_CRASH, 0);
    struct spoiled spoiled = copy_of(&task_def);

    (void)state;
    spoiled.guards[TG_HAS_MOUNTS].holds = never;
    search_spoiled(&search, MACHINE_TASK, &spoiled);
    assert_found(&search, SIM_SAFETY, "I-31: ", 10);
}

static void test_search_finds_a_key_that_is_used_again(void **state)
{
    struct sim_search search = bounded(SIM_BOUND_CRASH, 0);
    struct spoiled spoiled = copy_of(&task_def);

    (void)state;
    spoiled.def.enter = enter_without_generation;
    search_spoiled(&search, MACHINE_TASK, &spoiled);
    assert_found(&search, SIM_SAFETY, "I-2: ", 21);
}

static void test_search_finds_a_dead_task_that_comes_back(void **state)
{
    struct sim_search search = bounded(SIM_BOUND_CRASH, 1);
    struct spoiled spoiled = copy_of(&task_def);

    (void)state;
    row_of(&spoiled, T_DEAD, TE_RESTORE)->next = T_PRESTART;
    search_spoiled(&search, MACHINE_TASK, &spoiled);
    /* Its record says so itself, before anything of it could start. */
    assert_found(&search, SIM_ASSERTION, "fsm_broken(record) == NULL", 6);
}

static void test_search_finds_a_start_before_the_server_has_spoken(void **state)
{
    struct sim_search search = bounded(SIM_BOUND_CRASH, 1);
    struct spoiled spoiled = copy_of(&task_def);
    struct fsm_row *row = row_of(&spoiled, T_PRESTART, TE_RESTORE);

    (void)state;
    search.server = true;
    row[1].next = T_PRESTART; /* behind the row that asks */
    row[1].effects[0] = TX_HOOK;
    search_spoiled(&search, MACHINE_TASK, &spoiled);
    assert_found(&search, SIM_SAFETY, "I-12: ", 14); /* the start waits for the sweep */
}

static void test_search_finds_a_claim_that_is_released_early(void **state)
{
    struct sim_search search = bounded(SIM_BOUND_CRASH, 0);
    struct spoiled spoiled = copy_of(&volume_def);

    (void)state;
    spoiled.guards[VG_BACK_UNPUBLISH].holds = never;
    spoiled.guards[VG_AGAIN_UNPUBLISH].holds = never;
    spoiled.guards[VG_BACK_UNSTAGE].holds = never;
    spoiled.guards[VG_AGAIN_UNSTAGE].holds = never;
    spoiled.guards[VG_BACK_WAIT].holds = never;
    search_spoiled(&search, MACHINE_VOLUME, &spoiled);
    assert_found(&search, SIM_ASSERTION, "fsm_broken(record) == NULL", 13);
}

static void test_search_finds_a_volume_that_stays_staged(void **state)
{
    struct sim_search search = bounded(SIM_BOUND_CRASH, 0);
    struct spoiled spoiled = copy_of(&volume_def);

    (void)state;
    spoiled.guards[VG_BACK_UNSTAGE].holds = never;
    spoiled.guards[VG_AGAIN_UNSTAGE].holds = never;
    spoiled.guards[VG_BACK_WAIT].holds = never;
    search_spoiled(&search, MACHINE_VOLUME, &spoiled);
    assert_found(&search, SIM_SAFETY, "I-26: ", 13);
}

static void test_search_finds_a_restart_that_forgets_a_machine(void **state)
{
    struct sim_search search = bounded(SIM_BOUND_CRASH, 1);
    struct spoiled spoiled = copy_of(&task_def);

    (void)state;
    search.shape = SIM_SHAPE_POSTSTOP;
    ignore(&spoiled, T_REAPING, TE_RESTORE);
    search_spoiled(&search, MACHINE_TASK, &spoiled);
    assert_found(&search, SIM_LIVENESS, "I-9: no rest can be reached any more", 17);
}

static void test_search_finds_a_failure_that_is_not_tried_again(void **state)
{
    struct sim_search search = bounded(SIM_BOUND_CALL, 1);
    struct spoiled spoiled = copy_of(&task_def);

    (void)state;
    search.shape = SIM_SHAPE_POSTSTOP;
    memset(row_of(&spoiled, T_REAPING, TE_REAP_FAILED)->effects, 0, FSM_EFFECTS_MAX);
    search_spoiled(&search, MACHINE_TASK, &spoiled);
    assert_found(&search, SIM_LIVENESS, "I-9: no rest can be reached any more", 16);
}

static void test_search_finds_a_stop_that_is_forgotten(void **state)
{
    struct sim_search search = bounded(SIM_BOUND_CRASH, 0);
    struct spoiled spoiled = copy_of(&task_def);

    (void)state;
    search.shape = SIM_SHAPE_POSTSTOP;
    spoiled.guards[TG_KILL_WANTED].holds = never;
    search_spoiled(&search, MACHINE_TASK, &spoiled);
    assert_found(&search, SIM_LIVENESS, "I-9: no rest can be reached any more", 16);
}

static void test_search_finds_a_restart_that_ends_the_task(void **state)
{
    struct sim_search search = bounded(SIM_BOUND_REQUEST, 1);
    struct spoiled spoiled = copy_of(&task_def);

    (void)state;
    search.shape = SIM_SHAPE_POSTSTOP;
    search.bounds[SIM_BOUND_FAULTS] = 0;
    spoiled.guards[TG_RESTART_NOW].holds = never;
    search_spoiled(&search, MACHINE_TASK, &spoiled);
    assert_found(&search, SIM_SAFETY, "I-9: a/one is to start again, and is ended", 18);
}

/* The volume table's own history: a RELEASE that does not wait for the call under way. */
static void test_search_finds_an_event_that_can_come_after_all(void **state)
{
    struct sim_search search = bounded(SIM_BOUND_CRASH, 0);
    struct spoiled spoiled = copy_of(&volume_def);
    uint64_t staged = (uint64_t)1 << VE_STAGED;

    (void)state;
    row_of(&spoiled, V_STAGING, VE_RELEASE)->next = V_DRAINING;
    spoiled.states[V_DRAINING].ignored &= ~staged;
    spoiled.states[V_DRAINING].never |= staged;
    search_spoiled(&search, MACHINE_VOLUME, &spoiled);
    assert_found(&search, SIM_ASSERTION, "an event that its state declares never", 11);
}

/* --- the tables as they are --- */

static void search_is_fine(struct sim_search *search)
{
    run(search);
    if (search->outcome != SIM_FINE)
        (void)fputs(story, stderr);
    assert_int_equal(search->outcome, SIM_FINE);
    assert_string_equal(search->text, "");
    assert_true(search->complete);
    assert_int_equal(search->frontier, 0);
    assert_true(search->ends > 0);
}

static void test_search_without_faults_is_complete_and_fine(void **state)
{
    (void)state;
    for (int shape = 0; shape < SIM_SHAPE_COUNT; shape++) {
        struct sim_search search = bounded(SIM_BOUND_CRASH, 0);
        search.shape = (enum sim_shape)shape;
        search_is_fine(&search);
        assert_true(search.states > 300);
    }
}

static void test_search_with_one_fault_is_complete_and_fine(void **state)
{
    (void)state;
    for (int bound = SIM_BOUND_FAULTS + 1; bound < SIM_BOUND_REQUEST; bound++) {
        struct sim_search search = bounded((enum sim_bound)bound, 1);
        search.shape = SIM_SHAPE_POSTSTOP;
        search.server = bound % 2 == 0;
        search_is_fine(&search);
        assert_true(search.states > 500);
    }
}

static void test_search_twice_is_the_same(void **state)
{
    struct sim_search first = bounded(SIM_BOUND_PLUGIN, 1), second = first;

    (void)state;
    first.server = second.server = true;
    first.shape = second.shape = SIM_SHAPE_POSTSTOP;
    search_is_fine(&first);
    search_is_fine(&second);
    assert_int_equal(first.states, second.states);
    assert_int_equal(first.transitions, second.transitions);
    assert_int_equal(first.depth, second.depth);
    assert_int_equal(first.ends, second.ends);
    assert_memory_equal(first.rows, second.rows, sizeof(first.rows));
}

static void test_search_that_is_cut_off_says_so(void **state)
{
    struct sim_search search = bounded(SIM_BOUND_CRASH, 1);

    (void)state;
    search.states_max = 1000;
    run(&search);
    assert_int_equal(search.outcome, SIM_FINE);
    assert_false(search.complete);
    assert_true(search.frontier > 0);
}

/* --- what is left out of a state changes nothing --- */

/* Two worlds side by side take the same moves: one is made anew from the form of its state before
 * each, the other is never touched.  They must stay the same. */
static void walk(uint64_t seed, struct sim_search *asked)
{
    struct search *search = search_new(asked);
    struct core *whole = search_core(search), *reduced = search->core;
    struct search_world whole_world = search->world;
    struct search_form form = search_form(search);
    struct rng rng = rng_init(seed);
    struct search_move moves[SEARCH_MOVES_MAX], others[SEARCH_MOVES_MAX];
    char text[256];

    if (setjmp(search->failed) != 0)
        fail_msg("walk %llu: %s", (unsigned long long)seed, asked->text);
    for (int step = 0; step < WALK_STEPS; step++) {
        search_load(search, &form);
        size_t count = search_moves(search, moves);
        if (count == 0)
            break; /* all is gone, the plugin as well */
        struct search_move move = moves[rng_below(&rng, count)];
        search_describe(search, &move, text, sizeof(text));
        search_make(search, &move);
        form = search_form(search);
        struct search_world world = search->world;

        search->core = whole;
        search->world = whole_world;
        search_see(search);
        assert_int_equal(search_moves(search, others), count);
        assert_memory_equal(others, moves, count * sizeof(moves[0]));
        search_make(search, &move);
        struct search_form other = search_form(search);
        if (memcmp(&form, &other, sizeof(form)) != 0)
            fail_msg("walk %llu: %s: it is not the same in step %d", (unsigned long long)seed, text,
                     step);
        whole_world = search->world;
        search->core = reduced;
        search->world = world;
    }
    core_free(whole);
    search_free(search);
}

static void test_states_that_look_the_same_are_the_same(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= WALKS; seed++) {
        struct sim_search asked = sim_search_default();
        memset(asked.bounds, 3, sizeof(asked.bounds));
        asked.bounds[SIM_BOUND_FAULTS] = (uint8_t)(seed / SIM_SHAPE_COUNT % 4);
        asked.bounds[SIM_BOUND_TOGETHER] = (uint8_t)(1 + seed % 2);
        asked.shape = (enum sim_shape)(seed % SIM_SHAPE_COUNT);
        asked.server = seed / SIM_SHAPE_COUNT % 2 != 0;
        walk(seed, &asked);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_search_finds_a_start_without_a_look),
        cmocka_unit_test(test_search_finds_a_start_without_a_look_at_the_volume),
        cmocka_unit_test(test_search_finds_a_key_that_is_used_again),
        cmocka_unit_test(test_search_finds_a_dead_task_that_comes_back),
        cmocka_unit_test(test_search_finds_a_start_before_the_server_has_spoken),
        cmocka_unit_test(test_search_finds_a_claim_that_is_released_early),
        cmocka_unit_test(test_search_finds_a_volume_that_stays_staged),
        cmocka_unit_test(test_search_finds_a_restart_that_forgets_a_machine),
        cmocka_unit_test(test_search_finds_a_failure_that_is_not_tried_again),
        cmocka_unit_test(test_search_finds_a_stop_that_is_forgotten),
        cmocka_unit_test(test_search_finds_a_restart_that_ends_the_task),
        cmocka_unit_test(test_search_finds_an_event_that_can_come_after_all),
        cmocka_unit_test(test_states_that_look_the_same_are_the_same),
        cmocka_unit_test(test_search_without_faults_is_complete_and_fine),
        cmocka_unit_test(test_search_with_one_fault_is_complete_and_fine),
        cmocka_unit_test(test_search_twice_is_the_same),
        cmocka_unit_test(test_search_that_is_cut_off_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
