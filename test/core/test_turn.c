/*
 * The turn (core/turn.c): events in, one commit, effects out.  What a commit that fails must not
 * do is in test_turn_fails.c.
 *
 * First events for nobody and without consequence, then what one commit holds, what follows it and
 * in which order, whom messages reach, and timers.
 */
#include "test/core/seam.h"

/* --- nobody there --- */

static void test_request_to_nobody_is_refused_at_once(void **state)
{
    struct seam *seam = *state;

    seam_ask(seam, MACHINE_TASK, "a/web", TE_RESTART, 9);
    seam_ask(seam, MACHINE_ALLOC, "a", AE_STOP, 10);
    seam_turn(seam);
    seam_crossed(seam, "refuse 9: no task a/web on this node\n"
                       "refuse 10: no alloc a on this node\n");
    assert_int_equal(core_figures(seam->core).unknown, 2);
    assert_int_equal(core_count(seam->core, MACHINE_TASK), 0);
}

static void test_request_to_nobody_is_refused_once_also_when_the_commit_fails(void **state)
{
    struct seam *seam = *state;

    seam_place(seam, "b", "");
    seam_ask(seam, MACHINE_TASK, "a/web", TE_RESTART, 9);
    seam->commit_code = ERR_FULL;
    seam_turn(seam);
    seam->commit_code = 0;
    seam_turn(seam);
    seam_crossed(seam, "refuse 9: no task a/web on this node\n"
                       "commit fails\n"
                       "  alloc b ASSIGN PREPARING\n"
                       "  spec alloc/b\n"
                       "commit\n"
                       "  alloc b ASSIGN PREPARING\n"
                       "  spec alloc/b\n"
                       "perform alloc b HOOK\n");
}

static void test_request_to_a_machine_that_ends_in_this_turn_is_refused(void **state)
{
    struct seam *seam = *state;

    seam_end(seam, "a", "web");
    seam_tell(seam, MACHINE_TASK, "a/web", TE_REMOVE, NULL);
    seam_ask(seam, MACHINE_TASK, "a/web", TE_RESTART, 11);
    seam_tell(seam, MACHINE_TASK, "a/web", TE_REMOVE, NULL);
    seam_turn(seam);
    seam_crossed(seam, "refuse 11: no task a/web on this node\n"
                       "commit\n"
                       "  task a/web REMOVE GONE\n");
}

static void test_message_to_nobody_changes_nothing(void **state)
{
    struct seam *seam = *state;
    struct kill_order order = {.event = TASK_EVENT_NONE};

    seam_tell(seam, MACHINE_TASK, "a/web", TE_KILL, &order);
    seam_exited(seam, "a/web", 1, 0);
    seam_turn(seam);
    seam_crossed(seam, "");
    assert_int_equal(core_figures(seam->core).unknown, 2);
    assert_false(core_has_work(seam->core));
}

/* --- nothing to store --- */

static void test_turn_without_change_commits_nothing(void **state)
{
    struct seam *seam = *state;

    seam_turn(seam); /* without any event */
    seam_run(seam, "a", "web");
    struct core_figures before = core_figures(seam->core);
    seam_define(seam, "a", "web");                            /* ignored: it is defined */
    seam_tell(seam, MACHINE_TASK, "a/web", TE_START, NULL);   /* ignored: it has started */
    seam_exited(seam, "a/web", 2, 1);                         /* stale: another generation */
    seam_tell(seam, MACHINE_TASK, "a/web", TE_TIMEOUT, NULL); /* stale: no timer runs */
    seam_turn(seam);
    seam_crossed(seam, "");
    struct core_figures after = core_figures(seam->core);
    assert_int_equal(after.ignored - before.ignored, 2);
    assert_int_equal(after.stale - before.stale, 2);
    assert_int_equal(after.events - before.events, 4);
    assert_int_equal(after.turns, before.turns);
    assert_false(core_has_work(seam->core));
}

/* An idle node gives back the room of its turns, but not what is in it already. */
static void test_room_that_was_given_back_is_there_again(void **state)
{
    struct seam *seam = *state;

    seam_place(seam, "a", "");
    core_release_memory(seam->core);
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  alloc a ASSIGN PREPARING\n"
                       "  spec alloc/a\n"
                       "perform alloc a HOOK\n");
    core_release_memory(seam->core);
    core_release_memory(seam->core);
    seam_place(seam, "b", "");
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  alloc b ASSIGN PREPARING\n"
                       "  spec alloc/b\n"
                       "perform alloc b HOOK\n");
}

static void remove_what_runs(struct seam *seam)
{
    seam_tell(seam, MACHINE_TASK, "a/web", TE_REMOVE, NULL); /* while it runs */
    seam_turn(seam);
}

static void test_event_that_can_never_come_is_our_mistake(void **state)
{
    seam_run(*state, "a", "web");
    assert_true(seam_asserts(*state, remove_what_runs));
}

static void turn_again(struct seam *seam, const struct effect *effect)
{
    (void)effect; /* any will do */
    seam_turn(seam);
}

static void turn_within_a_turn(struct seam *seam)
{
    seam->performs = turn_again;
    seam_place(seam, "a", "web");
    seam_turn(seam);
}

static void test_turn_within_a_turn_is_our_mistake(void **state)
{
    assert_true(seam_asserts(*state, turn_within_a_turn));
}

/* --- one turn, one commit --- */

static void test_assign_all_machines_are_made_in_one_commit(void **state)
{
    struct seam *seam = *state;

    seam_place(seam, "a", "web side log");
    assert_true(core_has_work(seam->core));
    assert_null(core_alloc(seam->core, "a")); /* not before the turn */
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  alloc a ASSIGN PREPARING\n"
                       "  task a/web DEFINE WAITING\n"
                       "  task a/side DEFINE WAITING\n"
                       "  task a/log DEFINE WAITING\n"
                       "  spec alloc/a\n"
                       "perform alloc a HOOK\n");
    assert_int_equal(core_count(seam->core, MACHINE_TASK), 3);
}

static void test_message_to_another_machine_is_in_the_same_commit(void **state)
{
    struct seam *seam = *state;

    seam_place(seam, "a", "web");
    seam_turn(seam);
    seam_hook_done(seam, MACHINE_ALLOC, "a");
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  alloc a ASSIGN PREPARING\n"
                       "  task a/web DEFINE WAITING\n"
                       "  spec alloc/a\n"
                       "perform alloc a HOOK\n"
                       "commit\n"
                       "  alloc a HOOK_DONE RUNNING\n"
                       "  task a/web START PRESTART\n"
                       "perform task a/web HOOK\n");
}

static void test_remove_alloc_tasks_and_specification_go_in_one_commit(void **state)
{
    struct seam *seam = *state;

    seam_end(seam, "a", "web side");
    seam_ask(seam, MACHINE_ALLOC, "a", AE_DESTROY, 0);
    seam_turn(seam);
    seam_forget(seam);
    seam_hook_done(seam, MACHINE_ALLOC, "a");
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  alloc a HOOK_DONE GONE\n"
                       "  task a/web REMOVE GONE\n"
                       "  task a/side REMOVE GONE\n"
                       "  no spec alloc/a\n");
    assert_int_equal(core_count(seam->core, MACHINE_ALLOC), 0);
}

static void count_members(struct seam *seam, const struct journal_batch *batch)
{
    for (size_t i = 0; i < batch->events_count; i++) {
        const struct alloc_assign *assign = batch->events[i].event.payload;
        char job[16];
        assert_int_equal(batch->events[i].event.kind, AE_ASSIGN);
        (void)text_format(job, sizeof(job), "job%zu", i); /* fits */
        assert_string_equal(assign->job_id, job);
        assert_int_equal(assign->index, i);
    }
    assert_int_equal(batch->events_count, 300);
    (void)seam; /* the batch is enough */
}

/* The queue grows, and moves, while it is filled and while it is stepped. */
static void test_payload_of_each_event_is_there_at_the_commit(void **state)
{
    struct seam *seam = *state;
    struct alloc_assign *assign = calloc(1, sizeof(*assign));
    char text[16];

    assert_non_null(assign);
    for (uint32_t i = 0; i < 300; i++) {
        (void)text_format(text, sizeof(text), "a%u", i); /* fits */
        (void)text_format(assign->job_id, sizeof(assign->job_id), "job%u", i);
        assign->index = i;
        seam_tell(seam, MACHINE_ALLOC, text, AE_ASSIGN, assign);
    }
    free(assign);
    seam->looks = count_members;
    seam_turn(seam);
    assert_int_equal(core_count(seam->core, MACHINE_ALLOC), 300);
    assert_int_equal(core_alloc(seam->core, "a299")->assign.index, 299);
}

/* --- after the commit --- */

static void test_effects_follow_the_commit_in_the_order_of_events_and_rows(void **state)
{
    struct seam *seam = *state;

    seam->task.hooks_prekill = 1;
    seam_run(seam, "a", "web");
    seam_run(seam, "b", "web");
    seam_ask(seam, MACHINE_TASK, "b/web", TE_RESTART, 5);
    seam_ask(seam, MACHINE_TASK, "a/web", TE_SIGNAL, 6);
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  task b/web RESTART PREKILL\n"
                       "  task a/web SIGNAL RUNNING\n"
                       "  alloc b TASK_CHANGED RUNNING\n"
                       "  alloc a TASK_CHANGED RUNNING\n"
                       "perform task b/web HOOK\n"
                       "perform task b/web REPLY_OK for 5\n"
                       "perform task a/web DRIVER_SIGNAL for 6\n"
                       "perform alloc b TELL_STATUS\n"
                       "perform alloc a TELL_STATUS\n");
}

static void test_request_comes_with_its_effect(void **state)
{
    struct seam *seam = *state;
    struct machine_id id = seam_id(MACHINE_TASK, "a/web");
    struct request request = {.signal = "SIGHUP"};

    seam_run(seam, "a", "web");
    core_ask(seam->core, &id, TE_SIGNAL, &request, 12);
    memset(&request, 0, sizeof(request)); /* it was copied */
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  task a/web SIGNAL RUNNING\n"
                       "  alloc a TASK_CHANGED RUNNING\n"
                       "perform task a/web DRIVER_SIGNAL SIGHUP for 12\n"
                       "perform alloc a TELL_STATUS\n");
}

static void test_trace_each_event_before_its_effects_and_only_once_committed(void **state)
{
    struct seam *seam = *state;

    seam->traces = true;
    seam_place(seam, "a", "web");
    seam->commit_code = ERR_FULL;
    seam_turn(seam);
    seam->commit_code = 0;
    seam_turn(seam);
    seam_crossed(seam, "commit fails\n"
                       "  alloc a ASSIGN PREPARING\n"
                       "  task a/web DEFINE WAITING\n"
                       "  spec alloc/a\n"
                       "commit\n"
                       "  alloc a ASSIGN PREPARING\n"
                       "  task a/web DEFINE WAITING\n"
                       "  spec alloc/a\n"
                       "trace 1 a\n"
                       "perform alloc a HOOK\n"
                       "trace 2 a/web\n");
}

static void test_effect_superseded_in_the_same_turn_is_never_begun(void **state)
{
    struct seam *seam = *state;

    seam_run(seam, "a", "web");
    seam_ask(seam, MACHINE_TASK, "a/web", TE_RESTART, 4);
    seam_exited(seam, "a/web", 1, 1); /* before it could be stopped */
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  task a/web RESTART STOPPING\n"
                       "  task a/web EXITED REAPING\n"
                       "  alloc a TASK_CHANGED RUNNING\n"
                       "  alloc a TASK_CHANGED RUNNING\n"
                       "perform task a/web REPLY_OK for 4\n"
                       "perform task a/web DRIVER_DESTROY\n"
                       "perform alloc a TELL_STATUS\n"
                       "perform alloc a TELL_STATUS\n");
}

/* A world that answers at once is heard by the next turn, not by this one. */
static void test_effect_that_ends_at_once_is_heard_by_the_next_turn(void **state)
{
    struct seam *seam = *state;

    seam->answers = true;
    seam_place(seam, "a", "");
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  alloc a ASSIGN PREPARING\n"
                       "  spec alloc/a\n"
                       "perform alloc a HOOK\n");
    assert_true(core_has_work(seam->core));
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  alloc a HOOK_DONE RUNNING\n");
    assert_false(core_has_work(seam->core));
}

/* --- messages to many --- */

/* The machine ID serves the plugin NAME; it is ready after the next turn. */
static void define_instance(struct seam *seam, const char *id, const char *name,
                            enum plugin_type type, bool staging)
{
    struct plugin_define define = {.type = (uint8_t)type, .supervised = 1};
    const struct plugin_identity identity = {.staging = staging};
    const struct started started = {.payload_pid = 7};

    (void)text_copy(define.plugin, sizeof(define.plugin), name); /* fits */
    seam_tell(seam, MACHINE_PLUGIN, id, PE_DEFINE, &define);
    seam_turn(seam);
    seam_done(seam, MACHINE_PLUGIN, id, LANE_DRIVER, PE_LAUNCHED, &started);
    seam_turn(seam);
    seam_done(seam, MACHINE_PLUGIN, id, LANE_NODE, PE_PROBED, NULL);
    seam_turn(seam);
    seam_done(seam, MACHINE_PLUGIN, id, LANE_NODE, PE_IDENTIFIED, &identity);
}

static void define_plugin(struct seam *seam, const char *name, bool staging)
{
    char id[64];

    (void)text_format(id, sizeof(id), "csi/%s", name);
    define_instance(seam, id, name, PLUGIN_CSI_NODE, staging);
}

/* A claim that waits for its plugin. */
static void claim_volume(struct seam *seam, const char *id, const char *plugin, const char *volume)
{
    struct volume_define define = {.read_only = 0};
    const struct claim claim = {.external = "vol"};

    (void)text_copy(define.plugin, sizeof(define.plugin), plugin); /* fits */
    (void)text_copy(define.volume, sizeof(define.volume), volume); /* fits */
    seam_tell(seam, MACHINE_VOLUME, id, VE_DEFINE, &define);
    seam_tell(seam, MACHINE_VOLUME, id, VE_WANT, NULL);
    seam_turn(seam);
    seam_done(seam, MACHINE_VOLUME, id, LANE_RPC, VE_CLAIMED, &claim);
    seam_turn(seam);
    assert_int_equal(seam_state(seam, MACHINE_VOLUME, id), V_QUEUED);
    seam_forget(seam);
}

static void note_peers(struct seam *seam, const struct journal_batch *batch)
{
    for (size_t i = 0; i < batch->events_count; i++)
        seam_write(seam, "  peers %x\n", batch->events[i].peers);
}

/* Of three claims two wait for the plugin that comes up, and of these the second sees, as the first
 * has stepped before it in this very turn, that it has to wait. */
static void
test_news_of_a_plugin_reach_its_users_only_and_each_sees_the_others_as_they_are(void **state)
{
    struct seam *seam = *state;

    claim_volume(seam, "a/data", "disks", "data");
    claim_volume(seam, "b/data", "disks", "data");
    claim_volume(seam, "c/data", "other", "data");
    define_plugin(seam, "disks", true);
    seam_forget(seam);
    seam->looks = note_peers;
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  plugin csi/disks IDENTIFIED READY\n"
                       "  volume a/data PLUGIN_UP STAGING\n"
                       "  volume b/data PLUGIN_UP QUEUED\n"
                       "  peers 0\n"
                       "  peers c0001\n" /* one user; the plugin is ready and stages */
                       "  peers d0001\n" /* and that user has a call under way */
                       "perform plugin csi/disks TELL_NODE\n"
                       "perform volume a/data STAGE\n");
    seam->looks = NULL;
    claim_volume(seam, "d/data", "other", "more"); /* and waits: its plugin is not there */
}

/* The claim ID is wanted and held, and comes to be in STATE. */
static void want_volume(struct seam *seam, const char *id, enum volume_state state)
{
    struct volume_define define = {.plugin = "disks"};
    const struct claim claim = {.external = "vol"};

    (void)text_copy(define.volume, sizeof(define.volume), id); /* fits */
    seam_tell(seam, MACHINE_VOLUME, id, VE_DEFINE, &define);
    seam_tell(seam, MACHINE_VOLUME, id, VE_WANT, NULL);
    seam_turn(seam);
    seam_done(seam, MACHINE_VOLUME, id, LANE_RPC, VE_CLAIMED, &claim);
    seam_turn(seam);
    assert_int_equal(seam_state(seam, MACHINE_VOLUME, id), state);
}

/* Of the instances that serve nodes the newest that is ready counts, also after it has come and
 * gone, and one that is a controller only does not count. */
static void test_newest_instance_of_a_plugin_counts(void **state)
{
    struct seam *seam = *state;

    define_instance(seam, "x/control", "disks", PLUGIN_CSI_CONTROLLER, false);
    seam_turn(seam);
    want_volume(seam, "a/none", V_QUEUED);
    define_instance(seam, "x/older", "disks", PLUGIN_CSI_NODE, true);
    seam_turn(seam);
    assert_int_equal(seam_state(seam, MACHINE_VOLUME, "a/none"), V_STAGING);
    define_instance(seam, "x/newer", "disks", PLUGIN_CSI_NODE, false);
    seam_turn(seam);
    want_volume(seam, "a/newer", V_PUBLISHING);
    seam_tell(seam, MACHINE_PLUGIN, "x/newer", PE_REMOVE, NULL);
    seam_turn(seam);
    want_volume(seam, "a/older", V_STAGING);
    seam_tell(seam, MACHINE_PLUGIN, "x/older", PE_REMOVE, NULL);
    seam_turn(seam);
    want_volume(seam, "a/gone", V_QUEUED);
    seam_forget(seam);
}

/* Turns are offered to the other claims on the same volume, never to the one that offers. */
static void test_news_of_a_volume_reach_the_other_claims_on_it_only(void **state)
{
    struct seam *seam = *state;

    claim_volume(seam, "a/data", "disks", "data");
    claim_volume(seam, "b/data", "disks", "data");
    claim_volume(seam, "c/logs", "disks", "logs");
    define_plugin(seam, "disks", false);
    seam_turn(seam);
    assert_int_equal(seam_state(seam, MACHINE_VOLUME, "a/data"), V_PUBLISHING);
    seam_done(seam, MACHINE_VOLUME, "a/data", LANE_NODE, VE_PUBLISHED, NULL);
    seam_forget(seam);
    struct core_figures before = core_figures(seam->core);
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  volume a/data PUBLISHED READY\n"
                       "  volume b/data TURN PUBLISHING\n"
                       "perform volume b/data PUBLISH\n");
    struct core_figures after = core_figures(seam->core);
    assert_int_equal(after.ignored, before.ignored);   /* nobody else was told */
    assert_int_equal(after.events - before.events, 3); /* with READY to its alloc */
}

/* Turns that were told of in a commit, and those of them that led nobody on. */
static unsigned turns_told, turns_idle;

static void note_turns(struct seam *seam, const struct journal_batch *batch)
{
    (void)seam;
    for (size_t i = 0; i < batch->events_count; i++) {
        const struct journal_event *event = &batch->events[i];
        bool is_turn = event->id.kind == MACHINE_VOLUME && event->event.kind == VE_TURN;
        turns_told += is_turn;
        turns_idle += is_turn && event->before == event->after;
    }
}

/* The one claim on the volume that has a call under way. */
static void caller_of(struct seam *seam, char ret_id[8])
{
    int found = 0;

    for (char letter = 'a'; letter < 'a' + 8; letter++) {
        char id[8];
        (void)text_format(id, sizeof(id), "%c/data", letter); /* fits */
        uint8_t state = seam_state(seam, MACHINE_VOLUME, id);
        if (state != V_PUBLISHING && state != V_UNPUBLISHING)
            continue;
        (void)text_copy(ret_id, 8, id); /* same size */
        found++;
    }
    assert_int_equal(found, 1);
}

/* Eight claims on one volume come and go, one call at a time: each call that ends tells the one
 * that is next, and nobody is told in vain. */
static void test_turn_of_many_claims_is_told_to_who_goes_on(void **state)
{
    struct seam *seam = *state;
    char id[8];

    for (char letter = 'a'; letter < 'a' + 8; letter++) {
        (void)text_format(id, sizeof(id), "%c/data", letter); /* fits */
        claim_volume(seam, id, "disks", "data");
    }
    turns_told = turns_idle = 0;
    seam->looks = note_turns;
    define_plugin(seam, "disks", false);
    seam_turn(seam);
    for (int i = 0; i < 8; i++) {
        caller_of(seam, id);
        seam_done(seam, MACHINE_VOLUME, id, LANE_NODE, VE_PUBLISHED, NULL);
        seam_turn(seam);
    }
    assert_int_equal(turns_told, 7);
    for (char letter = 'a'; letter < 'a' + 8; letter++) {
        (void)text_format(id, sizeof(id), "%c/data", letter); /* fits */
        seam_tell(seam, MACHINE_VOLUME, id, VE_RELEASE, NULL);
    }
    seam_turn(seam);
    for (int i = 0; i < 8; i++) {
        caller_of(seam, id);
        seam_done(seam, MACHINE_VOLUME, id, LANE_NODE, VE_UNPUBLISHED, NULL);
        seam_turn(seam);
    }
    assert_int_equal(turns_told, 14);
    assert_int_equal(turns_idle, 0);
    seam_forget(seam);
}

/* --- chance and time come from outside --- */

/* The same events at the same times with the same seeds lead to the same journal. */
static void test_turn_is_a_function_of_events_time_and_seed(void **state)
{
    struct seam *seam = *state;
    uint64_t digests[2], deadlines[3];

    for (int i = 0; i < 3; i++) {
        void *other;
        assert_int_equal(seam_open(&other), 0);
        struct seam *again = other;
        again->seed = i < 2 ? 17 : 18;
        seam_run(again, "a", "web");
        again->answers = true;
        seam_exited(again, "a/web", 1, 1);
        seam_settle(again);
        deadlines[i] = core_deadline_ms(again->core);
        if (i < 2)
            digests[i] = fsm_digest(&seam_task(again, "a/web")->machine);
        assert_int_equal(seam_close(&other), 0);
    }
    assert_int_equal(digests[0], digests[1]);
    assert_int_equal(deadlines[0], deadlines[1]);
    assert_int_not_equal(deadlines[0], deadlines[2]); /* the jitter of the restart delay */
    (void)seam;                                       /* has nothing to do */
}

/* --- timers --- */

/* A task whose restart delay runs. */
static uint64_t back_off(struct seam *seam, const char *alloc, const char *task)
{
    bool answers = seam->answers;

    seam_run(seam, alloc, "web");
    seam->answers = true;
    seam_exited(seam, task, 1, 1);
    seam_settle(seam);
    seam->answers = answers;
    seam_forget(seam);
    assert_int_equal(seam_state(seam, MACHINE_TASK, task), T_BACKOFF);
    return seam_task(seam, task)->machine.deadline_ms;
}

static void test_timer_fires_when_it_is_due_and_not_before(void **state)
{
    struct seam *seam = *state;

    assert_int_equal(core_deadline_ms(seam->core), 0);
    uint64_t due_ms = back_off(seam, "a", "a/web");
    assert_in_range(due_ms, seam->now_ms + 1, UINT64_MAX);
    assert_int_equal(core_deadline_ms(seam->core), due_ms);
    assert_false(core_has_work(seam->core)); /* time is none */

    seam->now_ms = due_ms - 1;
    seam_turn(seam);
    seam_crossed(seam, "");
    seam->now_ms = due_ms;
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  task a/web TIMEOUT PRESTART\n"
                       "perform task a/web HOOK\n");
    assert_int_equal(core_deadline_ms(seam->core), 0);
}

static void test_timer_of_a_failed_turn_fires_once_in_the_next(void **state)
{
    struct seam *seam = *state;

    seam->now_ms = back_off(seam, "a", "a/web");
    seam->commit_code = ERR_FULL;
    seam_turn(seam);
    assert_int_equal(core_deadline_ms(seam->core), seam->now_ms);
    assert_false(core_has_work(seam->core)); /* it is the clock's, not the queue's */
    seam_turn(seam);
    seam_forget(seam);
    seam->commit_code = 0;
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  task a/web TIMEOUT PRESTART\n"
                       "perform task a/web HOOK\n");
    assert_false(core_has_work(seam->core));
}

static void test_timers_the_earliest_is_the_deadline_and_all_due_fire_together(void **state)
{
    struct seam *seam = *state;

    uint64_t first_ms = back_off(seam, "a", "a/web");
    seam->task.restart_delay_ms = 60000;
    uint64_t second_ms = back_off(seam, "b", "b/web");
    uint64_t third_ms = back_off(seam, "c", "c/web");
    assert_in_range(second_ms, first_ms + 1, UINT64_MAX);
    assert_in_range(third_ms, first_ms + 1, UINT64_MAX);
    assert_int_equal(core_deadline_ms(seam->core), first_ms);

    seam->now_ms = first_ms;
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  task a/web TIMEOUT PRESTART\n"
                       "perform task a/web HOOK\n");
    assert_int_equal(core_figures(seam->core).stale, 0); /* the others were not asked */
    bool in_order = second_ms < third_ms;
    assert_int_equal(core_deadline_ms(seam->core), in_order ? second_ms : third_ms);
    seam->now_ms = in_order ? third_ms : second_ms;
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  task b/web TIMEOUT PRESTART\n"
                       "  task c/web TIMEOUT PRESTART\n"
                       "perform task b/web HOOK\n"
                       "perform task c/web HOOK\n");
}

static void test_clock_that_goes_back_fires_nothing_early_and_loses_nothing(void **state)
{
    struct seam *seam = *state;
    uint64_t due_ms = back_off(seam, "a", "a/web"), now_ms = seam->now_ms;

    seam->now_ms = 1;
    seam_turn(seam);
    seam_place(seam, "b", "");
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  alloc b ASSIGN PREPARING\n"
                       "  spec alloc/b\n"
                       "perform alloc b HOOK\n");
    assert_int_equal(core_deadline_ms(seam->core), due_ms);
    seam->now_ms = now_ms;
    seam_turn(seam);
    seam_crossed(seam, "");
    seam->now_ms = due_ms;
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  task a/web TIMEOUT PRESTART\n"
                       "perform task a/web HOOK\n");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        SEAM_TEST(test_request_to_nobody_is_refused_at_once),
        SEAM_TEST(test_request_to_nobody_is_refused_once_also_when_the_commit_fails),
        SEAM_TEST(test_request_to_a_machine_that_ends_in_this_turn_is_refused),
        SEAM_TEST(test_message_to_nobody_changes_nothing),
        SEAM_TEST(test_turn_without_change_commits_nothing),
        SEAM_TEST(test_room_that_was_given_back_is_there_again),
        SEAM_TEST(test_event_that_can_never_come_is_our_mistake),
        SEAM_TEST(test_turn_within_a_turn_is_our_mistake),
        SEAM_TEST(test_assign_all_machines_are_made_in_one_commit),
        SEAM_TEST(test_message_to_another_machine_is_in_the_same_commit),
        SEAM_TEST(test_remove_alloc_tasks_and_specification_go_in_one_commit),
        SEAM_TEST(test_payload_of_each_event_is_there_at_the_commit),
        SEAM_TEST(test_effects_follow_the_commit_in_the_order_of_events_and_rows),
        SEAM_TEST(test_request_comes_with_its_effect),
        SEAM_TEST(test_trace_each_event_before_its_effects_and_only_once_committed),
        SEAM_TEST(test_effect_superseded_in_the_same_turn_is_never_begun),
        SEAM_TEST(test_effect_that_ends_at_once_is_heard_by_the_next_turn),
        SEAM_TEST(test_news_of_a_plugin_reach_its_users_only_and_each_sees_the_others_as_they_are),
        SEAM_TEST(test_newest_instance_of_a_plugin_counts),
        SEAM_TEST(test_news_of_a_volume_reach_the_other_claims_on_it_only),
        SEAM_TEST(test_turn_of_many_claims_is_told_to_who_goes_on),
        SEAM_TEST(test_turn_is_a_function_of_events_time_and_seed),
        SEAM_TEST(test_timer_fires_when_it_is_due_and_not_before),
        SEAM_TEST(test_timer_of_a_failed_turn_fires_once_in_the_next),
        SEAM_TEST(test_timers_the_earliest_is_the_deadline_and_all_due_fire_together),
        SEAM_TEST(test_clock_that_goes_back_fires_nothing_early_and_loses_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
