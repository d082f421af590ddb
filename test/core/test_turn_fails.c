/*
 * The turn (core/turn.c) when its commit fails: nothing is performed, nobody hears of success, and
 * nothing is lost (I-18).
 *
 * Records are as the last commit left them, callers are refused with the reason, a proposal of the
 * control plane is dropped whole, and all other events come again, in order, with the next turn.
 */
#include "test/core/seam.h"

static void test_commit_fails_nothing_is_performed_and_nothing_remembered(void **state)
{
    struct seam *seam = *state;

    seam_place(seam, "a", "web");
    seam->commit_code = ERR_FULL;
    seam_turn(seam);
    seam_crossed(seam, "commit fails\n"
                       "  alloc a ASSIGN PREPARING\n"
                       "  task a/web DEFINE WAITING\n"
                       "  spec alloc/a\n");
    assert_null(core_alloc(seam->core, "a"));
    assert_null(core_task(seam->core, "a", "web"));
    assert_int_equal(core_figures(seam->core).commits_failed, 1);
    assert_int_equal(core_figures(seam->core).effects, 0);
}

static void test_commit_fails_records_are_as_the_last_commit_left_them(void **state)
{
    struct seam *seam = *state;

    seam_run(seam, "a", "web");
    seam->commit_code = ERR_IO;
    seam_exited(seam, "a/web", 1, 1);
    seam_turn(seam); /* compares each record with the journal's */
    seam_crossed(seam, "commit fails\n"
                       "  task a/web EXITED REAPING\n"
                       "  alloc a TASK_CHANGED RUNNING\n");
    assert_int_equal(seam_state(seam, MACHINE_TASK, "a/web"), T_RUNNING);
    assert_false(seam_task(seam, "a/web")->exit_seen);
}

static void test_commit_fails_the_next_turn_takes_the_same_events_in_order(void **state)
{
    struct seam *seam = *state;

    seam_place(seam, "a", "web");
    seam->commit_code = ERR_FULL;
    seam_turn(seam);
    seam_place(seam, "b", "");
    seam_turn(seam);
    seam_forget(seam);
    assert_true(core_has_work(seam->core));

    seam->commit_code = 0;
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  alloc a ASSIGN PREPARING\n"
                       "  task a/web DEFINE WAITING\n"
                       "  alloc b ASSIGN PREPARING\n"
                       "  spec alloc/a\n"
                       "  spec alloc/b\n"
                       "perform alloc a HOOK\n"
                       "perform alloc b HOOK\n");
    assert_false(core_has_work(seam->core));
    assert_int_equal(core_figures(seam->core).commits_failed, 2);
    assert_string_equal(seam_task(seam, "a/web")->define.driver, "mock");
    assert_string_equal(core_alloc(seam->core, "a")->assign.members[0].name, "web");
}

static void test_commit_fails_a_completion_and_news_are_not_lost(void **state)
{
    struct seam *seam = *state;

    seam_run(seam, "a", "web");
    seam_place(seam, "b", "");
    seam_turn(seam);
    seam_forget(seam);

    seam->commit_code = ERR_FULL;
    seam_hook_done(seam, MACHINE_ALLOC, "b");
    seam_exited(seam, "a/web", 1, 3);
    seam_turn(seam);
    seam->commit_code = 0;
    seam_forget(seam);
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  alloc b HOOK_DONE RUNNING\n"
                       "  task a/web EXITED REAPING\n"
                       "  alloc a TASK_CHANGED RUNNING\n"
                       "perform task a/web DRIVER_DESTROY\n"
                       "perform alloc a TELL_STATUS\n");
    assert_int_equal(seam_task(seam, "a/web")->exit.code, 3);
}

/* What the failed turn's machines told each other is told again, once. */
static void test_commit_fails_messages_between_machines_are_not_doubled(void **state)
{
    struct seam *seam = *state;

    seam_place(seam, "a", "web side");
    seam_turn(seam);
    seam->commit_code = ERR_FULL;
    seam_hook_done(seam, MACHINE_ALLOC, "a");
    seam_turn(seam);
    seam_turn(seam);
    seam->commit_code = 0;
    seam_forget(seam);
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  alloc a HOOK_DONE RUNNING\n"
                       "  task a/web START PRESTART\n"
                       "  task a/side START PRESTART\n"
                       "perform task a/web HOOK\n"
                       "perform task a/side HOOK\n");
    seam_turn(seam);
    seam_crossed(seam, "");
}

static void test_commit_fails_a_request_is_refused_with_the_reason_and_not_tried_again(void **state)
{
    struct seam *seam = *state;

    seam_run(seam, "a", "web");
    seam->commit_code = ERR_FULL;
    seam_ask(seam, MACHINE_TASK, "a/web", TE_RESTART, 7);
    seam_exited(seam, "a/web", 1, 1);
    seam_turn(seam);
    seam_crossed(seam, "commit fails\n"
                       "  task a/web RESTART STOPPING\n"
                       "  task a/web EXITED REAPING\n"
                       "  alloc a TASK_CHANGED RUNNING\n"
                       "  alloc a TASK_CHANGED RUNNING\n"
                       "refuse 7: the disk is full\n");

    seam->commit_code = 0;
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  task a/web EXITED REAPING\n"
                       "  alloc a TASK_CHANGED RUNNING\n"
                       "perform task a/web DRIVER_DESTROY\n"
                       "perform alloc a TELL_STATUS\n");
}

/* A request that the control plane makes by itself waits for nobody's answer, and is kept. */
static void test_commit_fails_a_request_without_a_caller_is_tried_again(void **state)
{
    struct seam *seam = *state;

    seam_run(seam, "a", "web");
    seam->commit_code = ERR_FULL;
    seam_ask(seam, MACHINE_TASK, "a/web", TE_SIGNAL, 0);
    seam_turn(seam);
    seam->commit_code = 0;
    seam_forget(seam);
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  task a/web SIGNAL RUNNING\n"
                       "  alloc a TASK_CHANGED RUNNING\n"
                       "perform task a/web DRIVER_SIGNAL\n"
                       "perform alloc a TELL_STATUS\n");
}

static void test_commit_fails_a_proposal_is_dropped_whole(void **state)
{
    struct seam *seam = *state;

    seam_run(seam, "a", "web");
    core_propose(seam->core, true);
    seam_place(seam, "b", "web");
    core_meta(seam->core, "proposed", "1", 1);
    core_propose(seam->core, false);
    core_meta(seam->core, "kept", "1", 1);
    seam_exited(seam, "a/web", 1, 1);
    seam->commit_code = ERR_FULL;
    seam_turn(seam);
    seam_crossed(seam, "commit fails\n"
                       "  alloc b ASSIGN PREPARING\n"
                       "  task b/web DEFINE WAITING\n"
                       "  task a/web EXITED REAPING\n"
                       "  alloc a TASK_CHANGED RUNNING\n"
                       "  spec alloc/b\n"
                       "  meta proposed\n"
                       "  meta kept\n");

    seam_turn(seam);
    seam_forget(seam);
    seam->commit_code = 0;
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  task a/web EXITED REAPING\n"
                       "  alloc a TASK_CHANGED RUNNING\n"
                       "  meta kept\n"
                       "perform task a/web DRIVER_DESTROY\n"
                       "perform alloc a TELL_STATUS\n");
    assert_null(core_alloc(seam->core, "b"));
}

static void test_commit_fails_a_proposal_alone_leaves_no_work(void **state)
{
    struct seam *seam = *state;

    core_propose(seam->core, true);
    seam_place(seam, "a", "web");
    core_propose(seam->core, false);
    seam->commit_code = ERR_FULL;
    seam_turn(seam);
    assert_false(core_has_work(seam->core));

    /* Proposed again, it is as if it had never been. */
    seam->commit_code = 0;
    seam_forget(seam);
    seam_place(seam, "a", "web");
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  alloc a ASSIGN PREPARING\n"
                       "  task a/web DEFINE WAITING\n"
                       "  spec alloc/a\n"
                       "perform alloc a HOOK\n");
}

static void test_commit_fails_a_removal_the_alloc_and_its_specification_stay(void **state)
{
    struct seam *seam = *state;

    seam_end(seam, "a", "web");
    seam_ask(seam, MACHINE_ALLOC, "a", AE_DESTROY, 0);
    seam_turn(seam);
    assert_int_equal(seam_state(seam, MACHINE_ALLOC, "a"), A_DESTROYING);
    seam_hook_done(seam, MACHINE_ALLOC, "a");
    seam_forget(seam);

    seam->commit_code = ERR_FULL;
    seam_turn(seam);
    seam_turn(seam);
    assert_int_equal(seam_state(seam, MACHINE_ALLOC, "a"), A_DESTROYING);
    seam->commit_code = 0;
    seam_forget(seam);
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  alloc a HOOK_DONE GONE\n"
                       "  task a/web REMOVE GONE\n"
                       "  no spec alloc/a\n");
    assert_null(core_alloc(seam->core, "a"));
}

static void test_commit_fails_blobs_alone_are_stored_by_the_next(void **state)
{
    struct seam *seam = *state;

    core_spec(seam->core, "job/default/j", "{}", 2);
    core_spec(seam->core, "job/default/old", NULL, 0);
    seam->commit_code = ERR_FULL;
    seam_turn(seam);
    seam->commit_code = 0;
    assert_true(core_has_work(seam->core));
    seam_turn(seam);
    seam_crossed(seam, "commit fails\n"
                       "  spec job/default/j\n"
                       "  no spec job/default/old\n"
                       "commit\n"
                       "  spec job/default/j\n"
                       "  no spec job/default/old\n");
    assert_false(core_has_work(seam->core));
}

static void test_proposal_taken_back_was_never_posted(void **state)
{
    struct seam *seam = *state;

    seam_run(seam, "a", "web");
    core_meta(seam->core, "kept", "1", 1);
    seam_exited(seam, "a/web", 1, 1);
    core_propose(seam->core, true);
    seam_place(seam, "b", "web");
    core_meta(seam->core, "proposed", "1", 1);
    core_abandon(seam->core);
    core_spec(seam->core, "job/default/j", "{}", 2);
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  task a/web EXITED REAPING\n"
                       "  alloc a TASK_CHANGED RUNNING\n"
                       "  spec job/default/j\n"
                       "  meta kept\n"
                       "perform task a/web DRIVER_DESTROY\n"
                       "perform alloc a TELL_STATUS\n");
    assert_null(core_alloc(seam->core, "b"));
}

static void test_proposal_taken_back_leaves_no_work(void **state)
{
    struct seam *seam = *state;

    core_propose(seam->core, true);
    seam_place(seam, "a", "web");
    core_abandon(seam->core);
    assert_false(core_has_work(seam->core));
    core_propose(seam->core, true); /* it has ended: another may begin */
    core_propose(seam->core, false);
}

static void propose_twice(struct seam *seam)
{
    core_propose(seam->core, true);
    core_propose(seam->core, true);
}

static void test_proposals_do_not_nest(void **state)
{
    assert_true(seam_asserts(*state, propose_twice));
}

/* --- a turn that is too large for one commit --- */

static void run_tasks(struct seam *seam, const char *const *allocs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        seam_run(seam, allocs[i], "web");
    seam_forget(seam);
}

static void turn_too_large(struct seam *seam, const char *expected)
{
    struct err err;

    assert_int_equal(core_turn(seam->core, ++seam->now_ms, 1, 1, &err), ERR_LIMIT);
    assert_non_null(strstr(err.text, expected));
    seam_forget(seam);
}

static void test_turn_too_large_is_made_in_parts_in_order(void **state)
{
    static const char *const allocs[] = {"a", "b", "c", "d", "e"};
    struct seam *seam = *state;

    run_tasks(seam, allocs, COUNT_OF(allocs));
    seam->commit_max = 4;
    for (size_t i = 0; i < COUNT_OF(allocs); i++) {
        char task[16];
        (void)text_format(task, sizeof(task), "%s/web", allocs[i]);
        seam_exited(seam, task, 1, 1);
    }
    turn_too_large(seam, "too large");
    assert_true(core_in_parts(seam->core));
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  task a/web EXITED REAPING\n"
                       "  task b/web EXITED REAPING\n"
                       "  alloc a TASK_CHANGED RUNNING\n"
                       "  alloc b TASK_CHANGED RUNNING\n"
                       "perform task a/web DRIVER_DESTROY\n"
                       "perform task b/web DRIVER_DESTROY\n"
                       "perform alloc a TELL_STATUS\n"
                       "perform alloc b TELL_STATUS\n");
    assert_true(core_in_parts(seam->core));
    seam_exited(seam, "a/web", 1, 1); /* comes behind what is held back, and says nothing new */
    seam_turn(seam);
    assert_int_equal(seam_state(seam, MACHINE_TASK, "d/web"), T_REAPING);
    assert_int_equal(seam_state(seam, MACHINE_TASK, "e/web"), T_RUNNING);
    seam_turn(seam);
    assert_int_equal(seam_state(seam, MACHINE_TASK, "e/web"), T_REAPING);
    assert_false(core_in_parts(seam->core));
    assert_false(core_has_work(seam->core));
}

/* Nothing waits for ever behind an event that no commit takes. */
static void test_event_too_large_by_itself_is_given_up(void **state)
{
    static const char *const allocs[] = {"a", "b"};
    struct seam *seam = *state;

    run_tasks(seam, allocs, COUNT_OF(allocs));
    seam->commit_max = 1; /* an exit takes two */
    seam_exited(seam, "a/web", 1, 1);
    seam_ask(seam, MACHINE_TASK, "b/web", TE_SIGNAL, 0);
    turn_too_large(seam, "too large");
    turn_too_large(seam, "EXITED of task a/web is too large to be stored");
    assert_int_equal(seam_state(seam, MACHINE_TASK, "a/web"), T_RUNNING);
    seam->commit_max = 2;
    seam_turn(seam);
    assert_non_null(strstr(seam->crossed, "perform task b/web DRIVER_SIGNAL\n"));
    assert_false(core_in_parts(seam->core));
    assert_false(core_has_work(seam->core));
}

/* A proposal stays whole, also among parts. */
static void test_proposal_among_parts_is_taken_whole(void **state)
{
    static const char *const allocs[] = {"a", "b", "c", "d"};
    struct seam *seam = *state;

    run_tasks(seam, allocs, COUNT_OF(allocs));
    seam->commit_max = 6;
    for (size_t i = 0; i < COUNT_OF(allocs); i++) {
        char task[16];
        (void)text_format(task, sizeof(task), "%s/web", allocs[i]);
        seam_exited(seam, task, 1, 1);
    }
    turn_too_large(seam, "too large");
    core_propose(seam->core, true);
    seam_place(seam, "p", "web");
    core_propose(seam->core, false);
    seam_turn(seam);
    assert_int_equal(seam_state(seam, MACHINE_TASK, "b/web"), T_REAPING);
    assert_int_equal(seam_state(seam, MACHINE_TASK, "c/web"), T_RUNNING);
    assert_non_null(core_alloc(seam->core, "p"));
    assert_non_null(core_task(seam->core, "p", "web"));
    seam_turn(seam);
    assert_int_equal(seam_state(seam, MACHINE_TASK, "d/web"), T_REAPING);
    assert_false(core_in_parts(seam->core));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        SEAM_TEST(test_commit_fails_nothing_is_performed_and_nothing_remembered),
        SEAM_TEST(test_commit_fails_records_are_as_the_last_commit_left_them),
        SEAM_TEST(test_commit_fails_the_next_turn_takes_the_same_events_in_order),
        SEAM_TEST(test_commit_fails_a_completion_and_news_are_not_lost),
        SEAM_TEST(test_commit_fails_messages_between_machines_are_not_doubled),
        SEAM_TEST(test_commit_fails_a_request_is_refused_with_the_reason_and_not_tried_again),
        SEAM_TEST(test_commit_fails_a_request_without_a_caller_is_tried_again),
        SEAM_TEST(test_commit_fails_a_proposal_is_dropped_whole),
        SEAM_TEST(test_commit_fails_a_proposal_alone_leaves_no_work),
        SEAM_TEST(test_commit_fails_a_removal_the_alloc_and_its_specification_stay),
        SEAM_TEST(test_commit_fails_blobs_alone_are_stored_by_the_next),
        SEAM_TEST(test_proposal_taken_back_was_never_posted),
        SEAM_TEST(test_proposal_taken_back_leaves_no_work),
        SEAM_TEST(test_proposals_do_not_nest),
        SEAM_TEST(test_turn_too_large_is_made_in_parts_in_order),
        SEAM_TEST(test_event_too_large_by_itself_is_given_up),
        SEAM_TEST(test_proposal_among_parts_is_taken_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
