/*
 * Restore (core/restore.c): records as they were stored, RESTORE to each, then what damage makes
 * necessary.
 *
 * First what must not be done twice or too late, then records that are lost, then the order of
 * things, and what goes on where it stood.
 */
#include "test/core/seam.h"

/* --- the daemon's way up --- */

static void restart(struct seam *seam)
{
    seam_load(seam);
    core_restore(seam->core, true, false);
}

/* The record of a machine is damaged: it is not there after the restart. */
static void lose(struct seam *seam, enum machine_kind kind, const char *text)
{
    struct machine_id id = seam_id(kind, text);
    struct seam_record *stored = seam_stored(seam, &id);

    assert_non_null(stored->record);
    free(stored->record);
    stored->record = NULL;
}

static bool said(const struct seam *seam, const char *line)
{
    return strstr(seam->crossed, line) != NULL;
}

static enum client_status status_of(struct seam *seam, const char *alloc)
{
    const struct alloc *record = core_alloc(seam->core, alloc);

    assert_non_null(record);
    return (enum client_status)record->client_status;
}

static const struct alloc_member *member_of(struct seam *seam, const char *alloc, const char *name)
{
    const struct alloc *record = core_alloc(seam->core, alloc);

    assert_non_null(record);
    for (uint32_t i = 0; i < record->assign.members_count; i++) {
        if (text_equal(record->assign.members[i].name, name))
            return &record->assign.members[i];
    }
    fail_msg("alloc %s has no %s", alloc, name);
    return NULL;
}

/* --- once, and first --- */

static void load_twice(struct seam *seam)
{
    seam_load(seam);
    core_load(seam->core, &seam->journal[0].id, seam->journal[0].record);
}

static void load_nonsense(struct seam *seam)
{
    seam->journal[0].record->state = 99;
    seam_load(seam);
}

static void load_after_restore(struct seam *seam)
{
    struct machine_id other = seam_id(MACHINE_ALLOC, "other");

    restart(seam);
    core_load(seam->core, &other, seam->journal[0].record);
}

static void load_after_a_turn(struct seam *seam)
{
    struct machine_id other = seam_id(MACHINE_ALLOC, "other");

    seam_load(seam);
    seam_turn(seam);
    core_load(seam->core, &other, seam->journal[0].record);
}

static void restore_twice(struct seam *seam)
{
    restart(seam);
    core_restore(seam->core, true, false);
}

static void restore_after_a_turn(struct seam *seam)
{
    seam_load(seam);
    seam_turn(seam);
    core_restore(seam->core, true, false);
}

static void continue_after_a_turn(struct seam *seam)
{
    restart(seam);
    seam_turn(seam);
    core_continue(seam->core, seam->sequence + 1, seam->turn);
}

static void adopt_before_restore(struct seam *seam)
{
    seam_load(seam);
    core_adopt(seam->core, "b");
}

static void sweep_before_restore(struct seam *seam)
{
    seam_load(seam);
    core_swept(seam->core, true);
}

static void restore_once(struct seam *seam)
{
    restart(seam);
    core_adopt(seam->core, "b");
    seam_turn(seam);
    core_swept(seam->core, true);
    seam_turn(seam);
}

static void test_order_of_calls_is_asserted(void **state)
{
    struct seam *seam = *state;

    seam_place(seam, "a", "web");
    seam_turn(seam);
    assert_false(seam_asserts(seam, restore_once));
    assert_true(seam_asserts(seam, load_twice));
    assert_true(seam_asserts(seam, load_nonsense));
    assert_true(seam_asserts(seam, load_after_restore));
    assert_true(seam_asserts(seam, load_after_a_turn));
    assert_true(seam_asserts(seam, restore_twice));
    assert_true(seam_asserts(seam, restore_after_a_turn));
    assert_true(seam_asserts(seam, continue_after_a_turn));
    assert_true(seam_asserts(seam, adopt_before_restore));
    assert_true(seam_asserts(seam, sweep_before_restore));
}

/* --- a task is lost --- */

/* The journal may be an older copy: a later attempt of the task, of which it knows nothing, may
 * still run. */
static void test_start_waits_for_the_first_answer_of_the_sweep(void **state)
{
    struct seam *seam = *state;

    seam_place(seam, "a", "web");
    seam_turn(seam);
    seam_hook_done(seam, MACHINE_ALLOC, "a");
    seam_turn(seam);
    restart(seam);
    seam_turn(seam);
    seam_forget(seam);
    seam_hook_done(seam, MACHINE_TASK, "a/web");
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  task a/web HOOK_DONE STARTING\n");
    core_swept(seam->core, false);
    seam_crossed(seam, "perform task a/web DRIVER_START\n");
    core_swept(seam->core, true);
    seam_crossed(seam, "");
    seam_started(seam, "a/web");
    seam_turn(seam);
    assert_int_equal(seam_state(seam, MACHINE_TASK, "a/web"), T_RUNNING);
}

/* Its payload may still run: until the sweep nothing is said of it. */
static void test_lost_task_fails_its_alloc_once_it_is_swept(void **state)
{
    struct seam *seam = *state;

    seam_run(seam, "a", "web side");
    lose(seam, MACHINE_TASK, "a/side");
    seam->answers = true;
    restart(seam);
    seam_settle(seam);
    assert_int_equal(seam_state(seam, MACHINE_ALLOC, "a"), A_RUNNING);
    assert_int_equal(seam_state(seam, MACHINE_TASK, "a/web"), T_RUNNING);
    assert_false(said(seam, "MEMBER_LOST"));
    seam_forget(seam);

    core_swept(seam->core, true);
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  alloc a MEMBER_LOST KILLING\n"
                       "  task a/web KILL STOPPING\n"
                       "  alloc a TASK_CHANGED KILLING\n"
                       "perform alloc a TELL_STATUS\n"
                       "perform task a/web DRIVER_STOP\n"
                       "perform alloc a TELL_STATUS\n");
    seam_settle(seam);
    assert_int_equal(seam_state(seam, MACHINE_ALLOC, "a"), A_TERMINAL);
    assert_int_equal(seam_state(seam, MACHINE_TASK, "a/web"), T_DEAD);
    assert_int_equal(status_of(seam, "a"), CLIENT_FAILED);
}

static void test_lost_task_that_was_over_is_not_missed(void **state)
{
    struct seam *seam = *state;

    seam_end(seam, "a", "web");
    lose(seam, MACHINE_TASK, "a/web");
    seam->answers = true;
    restart(seam);
    core_swept(seam->core, true);
    seam_settle(seam);
    assert_false(said(seam, "MEMBER_LOST"));
    assert_int_equal(seam_state(seam, MACHINE_ALLOC, "a"), A_TERMINAL);
    assert_int_equal(status_of(seam, "a"), CLIENT_COMPLETE);
}

/* --- a volume is lost --- */

/* Alloc a, condemned by the loss of its own record, with a volume that is there; then the volume's
 * record is lost, too. */
static void lose_volume(struct seam *seam)
{
    const struct volume_define define = {.plugin = "disks", .volume = "data"};

    seam_run(seam, "a", "web");
    seam_tell(seam, MACHINE_VOLUME, "a/data", VE_DEFINE, &define);
    seam_tell(seam, MACHINE_VOLUME, "a/data", VE_WANT, NULL);
    seam_turn(seam);
    lose(seam, MACHINE_ALLOC, "a");
    restart(seam);
    seam_turn(seam);
    assert_int_equal(core_alloc(seam->core, "a")->assign.members_count, 2);
    lose(seam, MACHINE_VOLUME, "a/data");
    seam_forget(seam);
}

static void test_lost_volume_is_adopted_when_the_specification_knows_it(void **state)
{
    struct seam *seam = *state;
    struct machine_id id = seam_id(MACHINE_VOLUME, "a/data");

    lose_volume(seam);
    seam->claims = true;
    restart(seam);
    seam_turn(seam);
    assert_true(said(seam, "  volume a/data ADOPT BROKEN\n"));
    assert_true(said(seam, "  alloc a MEMBER_LOST KILLING\n"));
    const struct volume *volume = volume_of(core_find(seam->core, &id));
    assert_string_equal(volume->define.plugin, "disks");
    assert_true(volume->claimed); /* it may be: it is undone (I-28) */
    assert_true(volume->published);
}

static void test_lost_volume_is_adopted_where_it_is_mounted(void **state)
{
    struct seam *seam = *state;
    struct machine_id id = seam_id(MACHINE_VOLUME, "a/data");

    lose_volume(seam);
    seam->places = 1;
    restart(seam);
    seam_turn(seam);
    assert_true(said(seam, "  volume a/data ADOPT BROKEN\n"));
    assert_true(said(seam, "  alloc a MEMBER_LOST KILLING\n"));
    assert_false(said(seam, "VOLUME_GONE"));
    const struct volume *volume = volume_of(core_find(seam->core, &id));
    assert_string_equal(volume->define.volume, "found-0");
    assert_true(volume->published);
}

/* Its specification comes first. */
static void test_lost_volume_that_is_specified_is_not_looked_for(void **state)
{
    struct seam *seam = *state;
    struct machine_id id = seam_id(MACHINE_VOLUME, "a/data");

    lose_volume(seam);
    seam->claims = true;
    seam->places = 1;
    restart(seam);
    seam_turn(seam);
    assert_string_equal(volume_of(core_find(seam->core, &id))->define.volume, "data");
}

static void test_lost_volume_of_which_nothing_is_known_is_gone(void **state)
{
    struct seam *seam = *state;

    lose_volume(seam);
    restart(seam);
    seam_turn(seam);
    assert_false(said(seam, "ADOPT"));
    assert_true(said(seam, "  alloc a VOLUME_GONE KILLING\n"));
    assert_true(said(seam, "  alloc a MEMBER_LOST KILLING\n"));
    assert_true(member_of(seam, "a", "data")->gone);
    struct machine_id id = seam_id(MACHINE_ALLOC, "a");
    const struct alloc *alloc = alloc_of(core_find(seam->core, &id));
    assert_non_null(strstr(alloc->failure, "nothing says what it has mounted: look for it"));
}

/* --- an alloc is lost --- */

/* What the members tell is enough to end it, failed and clean. */
static void test_lost_alloc_is_made_again_from_its_members_and_ended(void **state)
{
    struct seam *seam = *state;

    seam_run(seam, "a", "web side");
    lose(seam, MACHINE_ALLOC, "a");
    seam->known = "web side";
    restart(seam);
    core_adopt(seam->core, "a"); /* it is seen to already */
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  task a/side RESTORE RECOVERING\n"
                       "  task a/web RESTORE RECOVERING\n"
                       "  alloc a ASSIGN KILLING\n"
                       "  task a/side KILL RECOVERING\n"
                       "  task a/web KILL RECOVERING\n"
                       "perform task a/side DRIVER_RECOVER\n"
                       "perform task a/web DRIVER_RECOVER\n"
                       "perform alloc a TELL_STATUS\n");
    assert_int_equal(core_figures(seam->core).ignored, 0); /* it was made once for both */
    const struct alloc *alloc = core_alloc(seam->core, "a");
    assert_true(alloc->assign.condemned);
    assert_string_equal(alloc->assign.job_id, "job");
    assert_int_equal(member_of(seam, "a", "web")->run_state, TASK_RUN_RUNNING);

    seam->answers = true;
    seam_done(seam, MACHINE_TASK, "a/web", LANE_DRIVER, TE_RECOVERED, &(struct started){0});
    seam_done(seam, MACHINE_TASK, "a/side", LANE_DRIVER, TE_RECOVERED, &(struct started){0});
    seam_settle(seam);
    assert_int_equal(seam_state(seam, MACHINE_ALLOC, "a"), A_POSTRUN);
    assert_false(said(seam, "perform alloc a HOOK\n")); /* what was lost of it may run */
    core_swept(seam->core, true);
    seam_settle(seam);
    assert_int_equal(seam_state(seam, MACHINE_ALLOC, "a"), A_TERMINAL);
    assert_int_equal(seam_state(seam, MACHINE_TASK, "a/web"), T_DEAD);
    assert_int_equal(seam_state(seam, MACHINE_TASK, "a/side"), T_DEAD);
    assert_int_equal(status_of(seam, "a"), CLIENT_FAILED);
    assert_true(said(seam, "perform task a/web DRIVER_DESTROY\n"));
    assert_true(said(seam, "perform alloc a HOOK\n")); /* after its tasks */
    assert_string_equal(core_alloc(seam->core, "a")->failure,
                        "the alloc's record in the journal was damaged");
}

static void test_lost_alloc_with_all_its_tasks_is_adopted_and_ended_after_the_sweep(void **state)
{
    struct seam *seam = *state;

    seam_run(seam, "a", "web side");
    lose(seam, MACHINE_ALLOC, "a");
    lose(seam, MACHINE_TASK, "a/web");
    lose(seam, MACHINE_TASK, "a/side");
    seam->known = "web side";
    seam->answers = true;
    restart(seam);
    assert_false(core_has_work(seam->core));
    core_adopt(seam->core, "a");
    seam_settle(seam);
    seam_crossed(seam, "commit\n"
                       "  alloc a ASSIGN KILLING\n"
                       "perform alloc a TELL_STATUS\n");

    core_swept(seam->core, true);
    seam_settle(seam);
    assert_true(said(seam, "  alloc a MEMBER_LOST POSTRUN\n"));
    assert_int_equal(seam_state(seam, MACHINE_ALLOC, "a"), A_TERMINAL);
    assert_int_equal(status_of(seam, "a"), CLIENT_FAILED);

    seam_ask(seam, MACHINE_ALLOC, "a", AE_DESTROY, 0);
    seam_forget(seam);
    seam_settle(seam);
    assert_true(said(seam, "perform alloc a HOOK\n")); /* its directory */
    assert_true(said(seam, "  no spec alloc/a\n"));
    assert_null(core_alloc(seam->core, "a"));
}

/* Adopted while one of its tasks is there: the specification adds the other. */
static void test_lost_alloc_with_one_of_its_tasks_has_both(void **state)
{
    struct seam *seam = *state;

    seam_run(seam, "a", "web side");
    lose(seam, MACHINE_ALLOC, "a");
    lose(seam, MACHINE_TASK, "a/side");
    seam->known = "web side";
    seam->answers = true;
    restart(seam);
    seam_settle(seam);
    assert_int_equal(core_alloc(seam->core, "a")->assign.members_count, 2);
    assert_int_equal(seam_state(seam, MACHINE_TASK, "a/web"), T_DEAD);
    assert_int_equal(seam_state(seam, MACHINE_ALLOC, "a"), A_KILLING);
    core_swept(seam->core, true);
    seam_settle(seam);
    assert_int_equal(seam_state(seam, MACHINE_ALLOC, "a"), A_TERMINAL);
}

/* Nothing is left of it but a directory that its hooks clean up. */
static void test_lost_alloc_of_which_nothing_is_known_ends_at_once(void **state)
{
    struct seam *seam = *state;

    restart(seam);
    core_adopt(seam->core, "a");
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  alloc a ASSIGN POSTRUN\n"
                       "perform alloc a TELL_STATUS\n");
    assert_int_equal(status_of(seam, "a"), CLIENT_FAILED);
    core_swept(seam->core, true);
    seam_crossed(seam, "perform alloc a HOOK\n");
}

static void test_adopt_leaves_an_alloc_alone_that_is_there(void **state)
{
    struct seam *seam = *state;

    seam_run(seam, "a", "web");
    lose(seam, MACHINE_TASK, "a/web");
    restart(seam);
    core_adopt(seam->core, "a");
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  alloc a RESTORE RUNNING\n");
    assert_int_equal(core_figures(seam->core).ignored, 0);
}

/* The alloc was removed while a stop hook of its task was under way: the task ends by itself, and
 * nobody makes the alloc again (I-19). */
static void test_removed_alloc_is_not_made_again_for_a_task_that_is_left(void **state)
{
    struct seam *seam = *state;

    seam_end(seam, "a", "web");
    restart(seam);
    seam_turn(seam);
    core_swept(seam->core, true);
    assert_int_equal(seam_state(seam, MACHINE_TASK, "a/web"), T_CLEANUP);
    seam_ask(seam, MACHINE_ALLOC, "a", AE_DESTROY, 0);
    seam_turn(seam);
    seam_hook_done(seam, MACHINE_ALLOC, "a");
    seam_turn(seam);
    seam_hook_done(seam, MACHINE_ALLOC, "a");
    seam_turn(seam);
    assert_null(core_alloc(seam->core, "a"));
    assert_int_equal(seam_state(seam, MACHINE_TASK, "a/web"), T_CLEANUP);
    seam_forget(seam);

    seam->answers = true;
    restart(seam);
    core_adopt(seam->core, "a"); /* as if its specification had come to light */
    seam_settle(seam);
    seam_crossed(seam, "commit\n"
                       "  task a/web RESTORE CLEANUP\n"
                       "perform task a/web HOOK\n"
                       "commit\n"
                       "  task a/web HOOK_DONE GONE\n");
}

/* --- all is there --- */

/* Loaded the other way round: the kinds decide. */
static void test_restore_reaches_plugins_then_volumes_then_tasks_then_allocs(void **state)
{
    struct seam *seam = *state;
    const struct plugin_define plugin = {.type = PLUGIN_CSI_NODE, .plugin = "disks"};
    const struct volume_define volume = {.plugin = "disks", .volume = "data"};

    seam_tell(seam, MACHINE_PLUGIN, "csi/disks", PE_DEFINE, &plugin);
    seam_tell(seam, MACHINE_VOLUME, "a/data", VE_DEFINE, &volume);
    seam_turn(seam);
    seam_run(seam, "a", "web");
    seam_load(seam); /* compares each record with the journal's */
    core_restore(seam->core, true, false);
    seam_crossed(seam, "");
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  plugin csi/disks RESTORE RECOVERING\n"
                       "  volume a/data RESTORE IDLE\n"
                       "  task a/web RESTORE RECOVERING\n"
                       "  alloc a RESTORE RUNNING\n"
                       "  volume a/data RELEASE GONE\n" /* its alloc has no such member */
                       "  alloc a VOLUME_GONE RUNNING\n"
                       "perform plugin csi/disks RECOVER\n"
                       "perform task a/web DRIVER_RECOVER\n");
}

/* Nobody would ever say that its task is over. */
static void test_plugin_of_a_lost_task_is_removed(void **state)
{
    struct seam *seam = *state;
    const struct plugin_define of_task = {
        .type = PLUGIN_CSI_NODE, .supervised = 1, .plugin = "disks"};
    const struct plugin_define own = {.type = PLUGIN_CSI_NODE, .plugin = "disks"};

    seam_tell(seam, MACHINE_PLUGIN, "a/web", PE_DEFINE, &of_task);
    seam_tell(seam, MACHINE_PLUGIN, "b/lost", PE_DEFINE, &of_task);
    seam_tell(seam, MACHINE_PLUGIN, "csi/disks", PE_DEFINE, &own);
    seam_turn(seam);
    seam_run(seam, "a", "web");
    seam_load(seam);
    core_restore(seam->core, true, false);
    seam_turn(seam);
    struct machine_id id = machine_id_make(MACHINE_PLUGIN, "b/lost");
    assert_int_equal(core_find(seam->core, &id)->state, P_STOPPING);
    id = machine_id_make(MACHINE_PLUGIN, "a/web");
    assert_int_equal(core_find(seam->core, &id)->state, P_RECOVERING);
    id = machine_id_make(MACHINE_PLUGIN, "csi/disks");
    assert_int_equal(core_find(seam->core, &id)->state, P_RECOVERING);
}

static void test_restore_nothing_is_performed_before_its_commit(void **state)
{
    struct seam *seam = *state;

    seam_run(seam, "a", "web");
    restart(seam);
    assert_true(core_has_work(seam->core));
    seam->commit_code = ERR_FULL;
    seam_turn(seam);
    seam->commit_code = 0;
    seam_turn(seam);
    seam_crossed(seam, "commit fails\n"
                       "  task a/web RESTORE RECOVERING\n"
                       "  alloc a RESTORE RUNNING\n"
                       "commit\n"
                       "  task a/web RESTORE RECOVERING\n"
                       "  alloc a RESTORE RUNNING\n"
                       "perform task a/web DRIVER_RECOVER\n");
}

/* What the last incarnation had under way does not occupy a lane of this one. */
static void test_restore_work_under_way_is_begun_again_under_its_key(void **state)
{
    struct seam *seam = *state;

    seam_place(seam, "a", "web");
    seam_turn(seam);
    seam_forget(seam);
    restart(seam);
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  task a/web RESTORE WAITING\n"
                       "  alloc a RESTORE PREPARING\n");
    core_swept(seam->core, true);
    seam_crossed(seam, "perform alloc a HOOK\n");
    seam_hook_done(seam, MACHINE_ALLOC, "a");
    seam_turn(seam);
    seam_crossed(seam, "commit\n"
                       "  alloc a HOOK_DONE RUNNING\n"
                       "  task a/web START PRESTART\n"
                       "perform task a/web HOOK\n");
}

static void test_restore_ended_allocs_and_tasks_are_cleaned_up_again(void **state)
{
    struct seam *seam = *state;

    seam_end(seam, "a", "web");
    int64_t ended_unix_ns = core_alloc(seam->core, "a")->ended_unix_ns;
    seam->now_ms += 5000;
    seam->answers = true;
    restart(seam);
    seam_turn(seam);
    core_swept(seam->core, true);
    seam_settle(seam);
    seam_crossed(seam, "commit\n"
                       "  task a/web RESTORE CLEANUP\n"
                       "  alloc a RESTORE POSTRUN\n"
                       "perform task a/web HOOK\n"
                       "perform alloc a HOOK\n"
                       "commit\n"
                       "  task a/web HOOK_DONE DEAD\n"
                       "  alloc a HOOK_DONE TERMINAL\n"
                       "perform alloc a TELL_STATUS\n"
                       "perform alloc a TELL_ENDED\n");
    assert_int_equal(core_alloc(seam->core, "a")->ended_unix_ns, ended_unix_ns);
    assert_int_equal(status_of(seam, "a"), CLIENT_COMPLETE);
}

static void test_restore_without_authority_starts_nothing_new(void **state)
{
    struct seam *seam = *state;

    seam_place(seam, "a", "web");
    seam_turn(seam);
    seam_load(seam);
    core_restore(seam->core, false, false);
    seam->answers = true;
    seam_turn(seam);
    core_swept(seam->core, true);
    seam_settle(seam);
    assert_int_equal(seam_state(seam, MACHINE_TASK, "a/web"), T_HELD);
    seam_tell(seam, MACHINE_ALLOC, "a", AE_AUTHORIZED, NULL);
    seam_settle(seam);
    assert_int_equal(seam_state(seam, MACHINE_TASK, "a/web"), T_RUNNING);
}

static void test_restore_timers_go_on(void **state)
{
    struct seam *seam = *state;

    seam_run(seam, "a", "web");
    seam->answers = true;
    seam_exited(seam, "a/web", 1, 1);
    seam_settle(seam);
    uint64_t due_ms = core_deadline_ms(seam->core);
    assert_int_not_equal(due_ms, 0);

    seam->now_ms = due_ms - 1;
    restart(seam);
    seam_settle(seam);
    assert_int_equal(seam_state(seam, MACHINE_TASK, "a/web"), T_BACKOFF);
    assert_int_equal(core_deadline_ms(seam->core), due_ms);
    seam->now_ms = due_ms + 60000; /* it passed while the daemon was away */
    restart(seam);
    seam_settle(seam);
    core_swept(seam->core, true);
    seam_turn(seam);
    seam_settle(seam);
    assert_int_equal(seam_state(seam, MACHINE_TASK, "a/web"), T_RUNNING);
    assert_int_equal(seam_task(seam, "a/web")->machine.generation, 2);
}

/* Each event and turn is compared with the world's own count. */
static void test_restore_numbers_go_on(void **state)
{
    struct seam *seam = *state;

    seam_run(seam, "a", "web");
    seam->sequence = 1000; /* histories of machines that have gone */
    seam->turn = 70;
    restart(seam);
    assert_int_equal(core_figures(seam->core).sequence, 1000);
    seam_turn(seam);
    assert_int_equal(seam->sequence, 1002);
    assert_int_equal(core_figures(seam->core).sequence, 1002);
    assert_int_equal(core_figures(seam->core).turns, 71);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        SEAM_TEST(test_order_of_calls_is_asserted),
        SEAM_TEST(test_start_waits_for_the_first_answer_of_the_sweep),
        SEAM_TEST(test_lost_task_fails_its_alloc_once_it_is_swept),
        SEAM_TEST(test_lost_task_that_was_over_is_not_missed),
        SEAM_TEST(test_lost_volume_is_adopted_when_the_specification_knows_it),
        SEAM_TEST(test_lost_volume_is_adopted_where_it_is_mounted),
        SEAM_TEST(test_lost_volume_that_is_specified_is_not_looked_for),
        SEAM_TEST(test_lost_volume_of_which_nothing_is_known_is_gone),
        SEAM_TEST(test_lost_alloc_is_made_again_from_its_members_and_ended),
        SEAM_TEST(test_lost_alloc_with_all_its_tasks_is_adopted_and_ended_after_the_sweep),
        SEAM_TEST(test_lost_alloc_with_one_of_its_tasks_has_both),
        SEAM_TEST(test_lost_alloc_of_which_nothing_is_known_ends_at_once),
        SEAM_TEST(test_adopt_leaves_an_alloc_alone_that_is_there),
        SEAM_TEST(test_removed_alloc_is_not_made_again_for_a_task_that_is_left),
        SEAM_TEST(test_restore_reaches_plugins_then_volumes_then_tasks_then_allocs),
        SEAM_TEST(test_plugin_of_a_lost_task_is_removed),
        SEAM_TEST(test_restore_nothing_is_performed_before_its_commit),
        SEAM_TEST(test_restore_work_under_way_is_begun_again_under_its_key),
        SEAM_TEST(test_restore_ended_allocs_and_tasks_are_cleaned_up_again),
        SEAM_TEST(test_restore_without_authority_starts_nothing_new),
        SEAM_TEST(test_restore_timers_go_on),
        SEAM_TEST(test_restore_numbers_go_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
