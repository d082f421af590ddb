/*
 * Lanes (core/machines/lanes.c): effects of one machine on one lane run one at a time, in the order
 * of issue.
 *
 * First ends that nobody waits for, then work whose machine has gone, then what waits, what is the
 * same work, and what runs side by side.
 */
#include "test/core/seam.h"

/* --- how the tests get there --- */

/* A task whose driver has been told to start it. */
static void begin_start(struct seam *seam, const char *alloc, const char *task)
{
    seam_place(seam, alloc, "web");
    seam_turn(seam);
    seam_hook_done(seam, MACHINE_ALLOC, alloc);
    seam_turn(seam);
    seam_hook_done(seam, MACHINE_TASK, task);
    seam_turn(seam);
    seam_forget(seam);
    assert_int_equal(seam_state(seam, MACHINE_TASK, task), T_STARTING);
}

/* A task that runs, while its poststart hook still does. */
static void begin_poststart(struct seam *seam, const char *alloc, const char *task)
{
    seam->task.hooks_poststart = seam->task.hooks_prekill = 1u << TASK_HOOK_LOGS;
    begin_start(seam, alloc, task);
    seam_started(seam, task);
    seam_turn(seam);
    seam_forget(seam);
    assert_int_equal(seam_state(seam, MACHINE_TASK, task), T_RUNNING);
}

static void define_volume(struct seam *seam, const char *id)
{
    const struct volume_define define = {.plugin = "disks", .volume = "data"};

    seam_tell(seam, MACHINE_VOLUME, id, VE_DEFINE, &define);
    seam_tell(seam, MACHINE_VOLUME, id, VE_WANT, NULL);
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  volume a/data DEFINE IDLE\n"
                       "  volume a/data WANT CLAIMING\n"
                       "perform volume a/data CLAIM\n");
}

/* --- ends that nobody waits for --- */

static void test_done_on_a_lane_where_nothing_runs_changes_nothing(void **state)
{
    struct seam *seam = *state;

    begin_start(seam, "a", "a/web");
    seam_started(seam, "a/web");
    seam_turn(seam);
    seam_forget(seam);
    seam_started(seam, "a/web"); /* once more */
    assert_false(core_has_work(seam->core));
    seam_started(seam, "b/web"); /* of a machine that never was */
    assert_false(core_has_work(seam->core));
    seam_crossed(seam, "");
}

static void test_done_of_a_superseded_effect_is_stale(void **state)
{
    struct seam *seam = *state;

    begin_start(seam, "a", "a/web");
    seam_exited(seam, "a/web", 1, 1);
    seam_turn(seam);
    seam_started(seam, "a/web");
    seam_forget(seam);
    seam_turn(seam);
    seam_crossed(seam, "");
    assert_int_equal(core_figures(seam->core).stale, 1);
    assert_int_equal(seam_task(seam, "a/web")->process.payload_pid, 0);
}

static void test_news_of_an_older_generation_is_stale(void **state)
{
    struct seam *seam = *state;

    seam_run(seam, "a", "web");
    seam->answers = true;
    seam_ask(seam, MACHINE_TASK, "a/web", TE_RESTART, 0);
    seam_settle(seam);
    seam_forget(seam);
    assert_int_equal(seam_task(seam, "a/web")->machine.generation, 2);

    seam_exited(seam, "a/web", 1, 1);
    seam_turn(seam);
    seam_crossed(seam, "");
    assert_int_equal(seam_state(seam, MACHINE_TASK, "a/web"), T_RUNNING);
}

static void end_start_as_stop(struct seam *seam)
{
    seam_done(seam, MACHINE_TASK, "a/web", LANE_DRIVER, TE_STOP_ACCEPTED, NULL);
}

static void test_done_with_an_end_that_its_effect_has_not_is_our_mistake(void **state)
{
    begin_start(*state, "a", "a/web");
    assert_true(seam_asserts(*state, end_start_as_stop));
}

static void end_on_the_clock(struct seam *seam)
{
    seam_done(seam, MACHINE_TASK, "a/web", (enum fsm_lane)LANE_CLOCK, TE_TIMEOUT, NULL);
}

static void test_done_on_a_lane_that_never_completes_is_our_mistake(void **state)
{
    begin_start(*state, "a", "a/web");
    assert_true(seam_asserts(*state, end_on_the_clock));
}

/* --- work whose machine has gone --- */

/* Alloc b waited for another, and was removed; the wait is still under way. */
static void remove_waiting(struct seam *seam)
{
    seam->answers = true;
    seam_place_after(seam, "b", "web", "a");
    seam_settle(seam);
    assert_non_null(strstr(seam->crossed, "perform alloc b WATCH_PREVIOUS\n"));
    seam_ask(seam, MACHINE_ALLOC, "b", AE_DESTROY, 0);
    seam_settle(seam);
    seam_forget(seam);
    seam->answers = false;
    assert_null(core_alloc(seam->core, "b"));
    assert_int_equal(core_count(seam->core, MACHINE_ALLOC), 0);
}

static void end_wait(struct seam *seam, const char *alloc)
{
    seam_done(seam, MACHINE_ALLOC, alloc, LANE_WAIT, AE_PREVIOUS_ENDED, NULL);
}

static void test_gone_the_end_of_its_work_is_told_to_nobody(void **state)
{
    struct seam *seam = *state;

    remove_waiting(seam);
    end_wait(seam, "b");
    assert_false(core_has_work(seam->core));
    end_wait(seam, "b");
    assert_false(core_has_work(seam->core));
    seam_crossed(seam, "");
}

static void test_gone_its_successor_does_not_meet_its_work(void **state)
{
    struct seam *seam = *state;

    remove_waiting(seam);
    seam_place_after(seam, "b", "web", "a");
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  alloc b ASSIGN WAITING\n"
                       "  task b/web DEFINE WAITING\n"
                       "  spec alloc/b\n");

    end_wait(seam, "b"); /* the predecessor's */
    seam_crossed(seam, "perform alloc b WATCH_PREVIOUS\n");
    assert_false(core_has_work(seam->core));

    end_wait(seam, "b"); /* its own */
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  alloc b PREVIOUS_ENDED PREPARING\n"
                       "perform alloc b HOOK\n");
}

static void test_gone_its_work_is_remembered_when_its_successor_cannot_be_stored(void **state)
{
    struct seam *seam = *state;

    remove_waiting(seam);
    seam->commit_code = ERR_FULL;
    core_propose(seam->core, true);
    seam_place_after(seam, "b", "web", "a");
    core_propose(seam->core, false);
    seam_turn(seam);
    seam->commit_code = 0;
    seam_forget(seam);

    seam_place_after(seam, "b", "web", "a");
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  alloc b ASSIGN WAITING\n"
                       "  task b/web DEFINE WAITING\n"
                       "  spec alloc/b\n");
    end_wait(seam, "b");
    seam_crossed(seam, "perform alloc b WATCH_PREVIOUS\n");
    assert_false(core_has_work(seam->core));
}

static void test_gone_and_its_work_has_ended_its_successor_begins_at_once(void **state)
{
    struct seam *seam = *state;

    remove_waiting(seam);
    end_wait(seam, "b");
    seam_place_after(seam, "b", "web", "a");
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  alloc b ASSIGN WAITING\n"
                       "  task b/web DEFINE WAITING\n"
                       "  spec alloc/b\n"
                       "perform alloc b WATCH_PREVIOUS\n");
}

/* --- one at a time --- */

static void test_effect_waits_until_the_call_before_it_has_ended(void **state)
{
    struct seam *seam = *state;

    begin_start(seam, "a", "a/web");
    seam_exited(seam, "a/web", 1, 1);
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  task a/web EXITED REAPING\n"
                       "  alloc a TASK_CHANGED RUNNING\n"
                       "perform alloc a TELL_STATUS\n");

    seam_started(seam, "a/web"); /* the call returns at last */
    seam_crossed(seam, "perform task a/web DRIVER_DESTROY\n");
    seam_done(seam, MACHINE_TASK, "a/web", LANE_DRIVER, TE_REAPED, NULL);
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  task a/web REAPED BACKOFF\n"
                       "  alloc a TASK_CHANGED RUNNING\n"
                       "perform alloc a TELL_STATUS\n");
}

/* It ends before core_done has returned, and what ends is told in the order in which it did. */
static void test_effect_that_waited_may_end_at_once(void **state)
{
    struct seam *seam = *state;

    begin_start(seam, "a", "a/web");
    seam_exited(seam, "a/web", 1, 1);
    seam_turn(seam);
    seam_forget(seam);
    seam->answers = true;
    seam_started(seam, "a/web");
    seam_turn(seam);
    seam_crossed(seam, "perform task a/web DRIVER_DESTROY\n"
                       "commit\n"
                       "  task a/web REAPED BACKOFF\n"
                       "  alloc a TASK_CHANGED RUNNING\n"
                       "perform alloc a TELL_STATUS\n");
}

static void expect_prestart(struct seam *seam, const struct effect *effect)
{
    if (effect->id.kind == MACHINE_TASK && effect->kind == TX_HOOK)
        assert_int_equal(task_of(effect->record)->phase, PHASE_PRESTART);
    (void)seam; /* the effect is enough */
}

/* Of two that wait for the lane only the newer one is ever begun. */
static void test_effect_superseded_while_it_waited_is_never_begun(void **state)
{
    struct seam *seam = *state;

    begin_poststart(seam, "a", "a/web");
    seam_ask(seam, MACHINE_TASK, "a/web", TE_RESTART, 0);
    seam_turn(seam);
    assert_int_equal(seam_state(seam, MACHINE_TASK, "a/web"), T_PREKILL); /* its hook waits */
    seam_exited(seam, "a/web", 1, 1);
    seam_turn(seam);
    seam_done(seam, MACHINE_TASK, "a/web", LANE_DRIVER, TE_REAPED, NULL);
    seam_turn(seam);
    assert_int_equal(seam_state(seam, MACHINE_TASK, "a/web"), T_PRESTART); /* another waits */
    assert_null(strstr(seam->crossed, "HOOK\n"));
    seam_forget(seam);

    struct hook_outcome poststart = {.hook = TASK_HOOK_LOGS};
    seam->performs = expect_prestart;
    seam_done(seam, MACHINE_TASK, "a/web", LANE_HOOK, TE_HOOK_DONE, &poststart);
    seam_crossed(seam, "perform task a/web HOOK\n");
    seam_turn(seam); /* the poststart hook's end is stale */
    seam_crossed(seam, "");
    seam_hook_done(seam, MACHINE_TASK, "a/web");
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  task a/web HOOK_DONE STARTING\n"
                       "perform task a/web DRIVER_START\n");
}

/* --- the same work --- */

static void test_same_work_again_is_not_begun_twice_and_its_end_counts(void **state)
{
    struct seam *seam = *state;
    const struct claim claim = {.external = "vol-1"};

    define_volume(seam, "a/data");
    seam->now_ms = core_deadline_ms(seam->core);
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  volume a/data TIMEOUT CLAIMING\n");
    seam_done(seam, MACHINE_VOLUME, "a/data", LANE_RPC, VE_CLAIMED, &claim);
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  volume a/data CLAIMED QUEUED\n");
}

/* The same effect kind, but another hook: the stop hooks are no second try of the prestart hook. */
static void test_another_hook_is_not_the_same_work(void **state)
{
    struct seam *seam = *state;
    struct kill_order order = {.event = TASK_EVENT_NONE};

    seam_place(seam, "a", "web");
    seam_turn(seam);
    seam_hook_done(seam, MACHINE_ALLOC, "a");
    seam_turn(seam);
    seam_forget(seam);
    seam_tell(seam, MACHINE_TASK, "a/web", TE_KILL, &order);
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  task a/web KILL CLEANUP\n"
                       "perform task a/web HOOK_ABORT\n");

    seam_hook_done(seam, MACHINE_TASK, "a/web"); /* the prestart hook */
    seam_crossed(seam, "perform task a/web HOOK\n");
    seam_turn(seam);
    seam_crossed(seam, "");
    seam_hook_done(seam, MACHINE_TASK, "a/web"); /* the stop hook */
    seam_turn(seam);
    assert_int_equal(seam_state(seam, MACHINE_TASK, "a/web"), T_DEAD);
}

/* The same effect kind for the next generation waits for the one before it, and its end is not
 * taken for the other's. */
static void test_the_next_generation_is_not_the_same_work(void **state)
{
    struct seam *seam = *state;
    const struct plugin_define define = {.type = PLUGIN_CSI_NODE, .plugin = "disks"};
    const struct exited exited = {.known = 1, .code = 1};
    const struct started started = {.payload_pid = 7};
    struct machine_id id = seam_id(MACHINE_PLUGIN, "csi/disks");

    seam_tell(seam, MACHINE_PLUGIN, "csi/disks", PE_DEFINE, &define);
    seam_turn(seam);
    core_news(seam->core, &id, 1, PE_EXITED, &exited);
    seam_turn(seam);
    seam->now_ms = core_deadline_ms(seam->core);
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  plugin csi/disks DEFINE LAUNCHING\n"
                       "perform plugin csi/disks LAUNCH\n"
                       "commit\n"
                       "  plugin csi/disks EXITED BACKOFF\n"
                       "perform plugin csi/disks TELL_NODE\n"
                       "commit\n"
                       "  plugin csi/disks TIMEOUT LAUNCHING\n");

    seam_done(seam, MACHINE_PLUGIN, "csi/disks", LANE_DRIVER, PE_LAUNCHED, &started);
    seam_turn(seam);
    seam_crossed(seam, "perform plugin csi/disks LAUNCH\n");
    seam_done(seam, MACHINE_PLUGIN, "csi/disks", LANE_DRIVER, PE_LAUNCHED, &started);
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  plugin csi/disks LAUNCHED PROBING\n"
                       "perform plugin csi/disks PROBE\n");
}

/* --- side by side --- */

static void test_lanes_of_one_machine_do_not_wait_for_each_other(void **state)
{
    struct seam *seam = *state;

    seam->task.hooks_poststart = 1u << TASK_HOOK_LOGS;
    begin_start(seam, "a", "a/web");
    seam_started(seam, "a/web");
    seam_turn(seam);
    seam_forget(seam);
    seam_ask(seam, MACHINE_TASK, "a/web", TE_RESTART, 3); /* while the poststart hook runs */
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  task a/web RESTART STOPPING\n"
                       "  alloc a TASK_CHANGED RUNNING\n"
                       "perform task a/web DRIVER_STOP\n"
                       "perform task a/web REPLY_OK for 3\n"
                       "perform alloc a TELL_STATUS\n");
}

static void test_machines_do_not_wait_for_each_other(void **state)
{
    struct seam *seam = *state;

    begin_start(seam, "a", "a/web");
    begin_start(seam, "b", "b/web"); /* while a's start is under way */
    seam_exited(seam, "b/web", 1, 1);
    seam_started(seam, "a/web");
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  task b/web EXITED REAPING\n"
                       "  task a/web STARTED RUNNING\n"
                       "  alloc b TASK_CHANGED RUNNING\n"
                       "  alloc a TASK_CHANGED RUNNING\n"
                       "perform alloc b TELL_STATUS\n"
                       "perform alloc a TELL_STATUS\n");
    seam_started(seam, "b/web");
    seam_crossed(seam, "perform task b/web DRIVER_DESTROY\n");
}

static void end_wait_of_b(struct seam *seam, const struct effect *effect)
{
    if (effect->id.kind == MACHINE_ALLOC && effect->kind == AX_TELL_ENDED)
        end_wait(seam, "b");
}

/* As the daemon does it: the end of one alloc is the end of another's wait. */
static void test_performing_one_effect_may_end_that_of_another_machine(void **state)
{
    struct seam *seam = *state;

    seam_place_after(seam, "b", "web", "a");
    seam_turn(seam);
    seam->performs = end_wait_of_b;
    seam_end(seam, "a", "web");
    assert_int_equal(seam_state(seam, MACHINE_ALLOC, "a"), A_TERMINAL);
    assert_in_range(seam_state(seam, MACHINE_ALLOC, "b"), A_PREPARING, A_RUNNING);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        SEAM_TEST(test_done_on_a_lane_where_nothing_runs_changes_nothing),
        SEAM_TEST(test_done_of_a_superseded_effect_is_stale),
        SEAM_TEST(test_news_of_an_older_generation_is_stale),
        SEAM_TEST(test_done_with_an_end_that_its_effect_has_not_is_our_mistake),
        SEAM_TEST(test_done_on_a_lane_that_never_completes_is_our_mistake),
        SEAM_TEST(test_gone_the_end_of_its_work_is_told_to_nobody),
        SEAM_TEST(test_gone_its_successor_does_not_meet_its_work),
        SEAM_TEST(test_gone_its_work_is_remembered_when_its_successor_cannot_be_stored),
        SEAM_TEST(test_gone_and_its_work_has_ended_its_successor_begins_at_once),
        SEAM_TEST(test_effect_waits_until_the_call_before_it_has_ended),
        SEAM_TEST(test_effect_that_waited_may_end_at_once),
        SEAM_TEST(test_effect_superseded_while_it_waited_is_never_begun),
        SEAM_TEST(test_same_work_again_is_not_begun_twice_and_its_end_counts),
        SEAM_TEST(test_another_hook_is_not_the_same_work),
        SEAM_TEST(test_the_next_generation_is_not_the_same_work),
        SEAM_TEST(test_lanes_of_one_machine_do_not_wait_for_each_other),
        SEAM_TEST(test_machines_do_not_wait_for_each_other),
        SEAM_TEST(test_performing_one_effect_may_end_that_of_another_machine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
