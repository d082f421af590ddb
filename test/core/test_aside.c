/*
 * A machine that was read and contradicts itself later (core/turn.c, core_put_aside): nothing of
 * the event that shows it is kept, its record is put aside after the commit, its alloc ends and
 * what runs of it with it, and nobody else notices.  One that this process made is our own mistake.
 */
#include "test/core/seam.h"

static size_t asides;

static void put_aside(void *ctx, const struct machine_id *id, const char *why)
{
    struct seam *seam = ctx;
    struct seam_record *stored = seam_stored(seam, id);

    assert_non_null(stored->record);
    free(stored->record);
    stored->record = NULL;
    seam_write(seam, "aside %s: %s\n", id->text, why);
    asides++;
}

static void run_two(struct seam *seam)
{
    asides = 0;
    seam->known = "web side";
    seam_run(seam, "a", "web side");
    seam_run(seam, "b", "web");
}

/* All of it is read by a new daemon. */
static void read_back(struct seam *seam)
{
    struct world world = {
        .ctx = seam,
        .commit = seam_commit,
        .perform = seam_perform,
        .refuse = seam_refuse,
        .known = seam_known,
        .put_aside = put_aside,
    };

    core_free(seam->core);
    seam->core = core_new(&world);
    for (size_t i = 0; i < seam->journal_count; i++)
        core_load(seam->core, &seam->journal[i].id, seam->journal[i].record);
    core_continue(seam->core, seam->sequence + 1, seam->turn);
    core_restore(seam->core, true, false);
    seam->answers = true;
    seam_settle(seam);
}

/* Two allocs run, and all of it has been read. */
static void read_two(struct seam *seam)
{
    run_two(seam);
    read_back(seam);
    seam_forget(seam);
}

/* What no daemon was told: an order that never comes in this state. */
static void order_removal(struct seam *seam, const char *task)
{
    seam_tell(seam, MACHINE_TASK, task, TE_REMOVE, NULL);
}

/* A task that its alloc has never heard of breaks an assertion of the rules. */
static void tell_of_nobody(struct seam *seam, const char *alloc)
{
    const struct task_changed changed = {.name = "nobody", .run_state = TASK_RUN_DEAD};

    seam_tell(seam, MACHINE_ALLOC, alloc, AE_TASK_CHANGED, &changed);
}

static bool said(const struct seam *seam, const char *text)
{
    return strstr(seam->crossed, text) != NULL;
}

static void assert_neighbour(struct seam *seam)
{
    assert_int_equal(seam_state(seam, MACHINE_ALLOC, "b"), A_RUNNING);
    assert_int_equal(seam_state(seam, MACHINE_TASK, "b/web"), T_RUNNING);
    assert_int_equal(core_task(seam->core, "b", "web")->machine.generation, 1);
    assert_false(said(seam, " b/web"));
}

static void test_task_that_contradicts_itself_fails_its_alloc_after_the_sweep(void **state)
{
    struct seam *seam = *state;

    read_two(seam);
    order_removal(seam, "a/web");
    seam_settle(seam);
    assert_int_equal(asides, 1);
    assert_true(said(seam, "aside a/web: REMOVE never comes in state RUNNING\n"));
    assert_null(core_task(seam->core, "a", "web"));
    assert_int_equal(seam_state(seam, MACHINE_ALLOC, "a"), A_RUNNING); /* it may still run */
    core_swept(seam->core, true);
    seam_settle(seam);
    assert_int_equal(core_alloc(seam->core, "a")->client_status, CLIENT_FAILED);
    assert_int_equal(seam_state(seam, MACHINE_TASK, "a/side"), T_DEAD);
    assert_neighbour(seam);
}

static void test_alloc_that_contradicts_itself_is_made_again_and_ended(void **state)
{
    struct seam *seam = *state;

    read_two(seam);
    tell_of_nobody(seam, "a");
    seam_settle(seam);
    assert_int_equal(asides, 1);
    assert_true(said(seam, "aside a: "));
    const struct alloc *alloc = core_alloc(seam->core, "a");
    assert_non_null(alloc);
    assert_true(alloc->assign.condemned);
    assert_int_equal(alloc->client_status, CLIENT_FAILED);
    assert_int_equal(seam_state(seam, MACHINE_TASK, "a/web"), T_DEAD);
    assert_int_equal(seam_state(seam, MACHINE_TASK, "a/side"), T_DEAD);
    assert_neighbour(seam);
}

/* One record of two says what was never written: the task lives, so its alloc is not believed. */
static void test_records_that_contradict_each_other_are_not_both_believed(void **state)
{
    struct seam *seam = *state;
    struct machine_id side = machine_id_join(MACHINE_TASK, "a", "side");

    run_two(seam);
    ((struct task *)(void *)seam_stored(seam, &side)->record)->define.leader = 1;
    seam_forget(seam);
    read_back(seam);
    assert_int_equal(asides, 1);
    assert_true(said(seam, "aside a: it has another place in its group than its alloc knows\n"));
    core_swept(seam->core, true);
    seam_settle(seam);
    assert_true(core_alloc(seam->core, "a")->assign.condemned);
    assert_int_equal(seam_state(seam, MACHINE_TASK, "a/side"), T_DEAD);
    assert_int_equal(seam_state(seam, MACHINE_ALLOC, "b"), A_RUNNING);
}

/* Of the turn in which it is found only what the others did is stored, and first of all. */
static void test_others_of_the_same_turn_go_on_and_are_committed_first(void **state)
{
    struct seam *seam = *state;

    read_two(seam);
    tell_of_nobody(seam, "a");
    seam_ask(seam, MACHINE_ALLOC, "b", AE_STOP, 0);
    seam_turn(seam);
    const char *committed = strstr(seam->crossed, "  alloc b STOP KILLING\n");
    const char *aside = strstr(seam->crossed, "aside a: ");
    assert_non_null(committed);
    assert_non_null(aside);
    assert_true(committed < aside);
    assert_false(said(seam, "  alloc a TASK_CHANGED"));
}

static void test_caller_is_told_and_not_left_waiting(void **state)
{
    struct seam *seam = *state;

    read_two(seam);
    seam_ask(seam, MACHINE_TASK, "a/web", TE_REMOVE, 7);
    seam_settle(seam);
    assert_true(said(seam, "refuse 7: the record of a/web contradicts itself and is put aside\n"));
}

/* Nothing is taken out of a journal that takes nothing: the next commit that works shows it anew.
 */
static void test_failed_commit_puts_nothing_aside(void **state)
{
    struct seam *seam = *state;

    read_two(seam);
    seam->commit_code = ERR_FULL;
    tell_of_nobody(seam, "a");
    seam_ask(seam, MACHINE_ALLOC, "b", AE_STOP, 0);
    seam_turn(seam);
    assert_int_equal(asides, 0);
    assert_int_equal(seam_state(seam, MACHINE_ALLOC, "a"), A_RUNNING);
    seam->commit_code = 0;
    seam_settle(seam);
    assert_int_equal(asides, 1); /* what nobody asked for comes again */
}

static void contradict_a_new_one(struct seam *seam)
{
    seam_settle(seam);
    order_removal(seam, "a/web");
    seam_turn(seam);
}

static void test_machine_of_this_process_is_our_own_mistake(void **state)
{
    struct seam *seam = *state;

    seam_run(seam, "a", "web");
    assert_true(seam_asserts(seam, contradict_a_new_one));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        SEAM_TEST(test_task_that_contradicts_itself_fails_its_alloc_after_the_sweep),
        SEAM_TEST(test_alloc_that_contradicts_itself_is_made_again_and_ended),
        SEAM_TEST(test_records_that_contradict_each_other_are_not_both_believed),
        SEAM_TEST(test_others_of_the_same_turn_go_on_and_are_committed_first),
        SEAM_TEST(test_caller_is_told_and_not_left_waiting),
        SEAM_TEST(test_failed_commit_puts_nothing_aside),
        SEAM_TEST(test_machine_of_this_process_is_our_own_mistake),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
