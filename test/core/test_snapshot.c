/*
 * Snapshots (core/machines/snapshot.c): a core that is put back goes on as if nothing had happened,
 * and one that is put back changed goes on from there.
 */
#include "test/core/seam.h"

#include "core/snapshot.h"

/* A task whose driver has been told to start it. */
static void begin_start(struct seam *seam)
{
    seam_place(seam, "a", "web");
    seam_turn(seam);
    seam_hook_done(seam, MACHINE_ALLOC, "a");
    seam_turn(seam);
    seam_hook_done(seam, MACHINE_TASK, "a/web");
    seam_turn(seam);
    seam_forget(seam);
    assert_int_equal(seam_state(seam, MACHINE_TASK, "a/web"), T_STARTING);
}

static struct core_machine *machine_of(struct core_snapshot *snapshot, enum machine_kind kind)
{
    for (size_t i = 0; i < snapshot->machines.count; i++) {
        if (snapshot->machines.items[i].id.kind == kind)
            return &snapshot->machines.items[i];
    }
    fail_msg("no machine of kind %d", (int)kind);
    return NULL;
}

static void test_core_that_is_put_back_goes_on(void **state)
{
    struct core_snapshot snapshot = {0};
    struct seam *seam = *state;

    begin_start(seam);
    seam_started(seam, "a/web");
    seam_ask(seam, MACHINE_TASK, "a/web", TE_SIGNAL, 7);
    core_save(seam->core, &snapshot);
    assert_int_equal(snapshot.machines.count, 2);
    assert_int_equal(snapshot.events.count, 2);
    assert_true(snapshot.begun);
    core_put(seam->core, &snapshot);
    core_snapshot_free(&snapshot);
    seam_same(seam);

    seam_turn(seam);
    assert_int_equal(seam_task(seam, "a/web")->process.payload_pid, 100);
    assert_non_null(strstr(seam->crossed, "  task a/web STARTED RUNNING\n"));
    assert_non_null(strstr(seam->crossed, "perform task a/web DRIVER_SIGNAL for 7\n"));
}

static void test_core_remembers_what_is_under_way(void **state)
{
    struct core_snapshot snapshot = {0};
    struct seam *seam = *state;

    begin_start(seam);
    core_save(seam->core, &snapshot);
    assert_int_equal(machine_of(&snapshot, MACHINE_TASK)->lanes[LANE_DRIVER].effect,
                     TX_DRIVER_START);
    core_put(seam->core, &snapshot);
    seam_started(seam, "a/web");
    assert_true(core_has_work(seam->core));

    core_save(seam->core, &snapshot);
    snapshot.events.count = 0; /* the call is over, and nobody was told */
    core_put(seam->core, &snapshot);
    seam_started(seam, "a/web");
    assert_false(core_has_work(seam->core));
    core_snapshot_free(&snapshot);
}

static void test_core_that_is_put_back_changed_goes_on_from_there(void **state)
{
    unsigned char room[sizeof(struct task) + RESULTS_BYTES_MAX] __attribute__((aligned(16)));
    struct machine *changed = (struct machine *)(void *)room;
    struct core_snapshot snapshot = {0};
    struct seam *seam = *state;

    begin_start(seam);
    core_save(seam->core, &snapshot);
    struct core_machine *machine = machine_of(&snapshot, MACHINE_TASK);
    memcpy(room, machine->record, fsm_record_size(machine->record));
    changed->deadline_ms = 1234;
    machine->record = changed;
    core_put(seam->core, &snapshot);
    assert_int_equal(core_deadline_ms(seam->core), 1234);
    assert_int_equal(core_find(seam->core, &machine->id)->deadline_ms, 1234);
    core_snapshot_free(&snapshot);
}

static void test_core_that_is_put_back_has_nothing_to_store(void **state)
{
    struct core_snapshot snapshot = {0};
    struct seam *seam = *state;

    begin_start(seam);
    core_meta(seam->core, "node", "x", 1);
    core_save(seam->core, &snapshot);
    core_put(seam->core, &snapshot);
    assert_false(core_has_work(seam->core));
    core_snapshot_free(&snapshot);
}

/* As after a death: records only, and RESTORE may come. */
static void test_core_of_another_daemon_is_restored(void **state)
{
    struct core_snapshot snapshot = {0};
    struct seam *seam = *state;

    begin_start(seam);
    core_save(seam->core, &snapshot);
    for (size_t i = 0; i < snapshot.machines.count; i++)
        memset(snapshot.machines.items[i].lanes, 0, sizeof(snapshot.machines.items[i].lanes));
    snapshot.begun = false;
    core_put(seam->core, &snapshot);
    core_snapshot_free(&snapshot);
    core_restore(seam->core, true, false);
    seam_turn(seam);
    assert_non_null(strstr(seam->crossed, "perform task a/web DRIVER_RECOVER\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SEAM_TEST(test_core_that_is_put_back_goes_on),
        SEAM_TEST(test_core_remembers_what_is_under_way),
        SEAM_TEST(test_core_that_is_put_back_changed_goes_on_from_there),
        SEAM_TEST(test_core_that_is_put_back_has_nothing_to_store),
        SEAM_TEST(test_core_of_another_daemon_is_restored),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
