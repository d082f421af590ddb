/*
 * Snapshots (core/machines/snapshot.c): a core that is put back goes on as if nothing had happened,
 * and one that is put back changed goes on from there.
 */
#include "test/core/seam.h"

#include "base/list.h"
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

static bool note_id(void *ctx, const struct machine_id *id, const struct machine *record)
{
    (void)record; /* only the order counts */
    (void)text_append(ctx, 64, id->text);
    (void)text_append(ctx, 64, " ");
    return true;
}

static void assert_order(const struct seam *seam, const char *tasks, const char *allocs)
{
    char kind[64] = "", job[64] = "";

    core_each(seam->core, MACHINE_TASK, note_id, kind);
    assert_string_equal(kind, tasks);
    core_each_of_job(seam->core, "default", "job", note_id, job);
    assert_string_equal(job, allocs);
}

static void swap(struct core_snapshot *snapshot, size_t one, size_t other)
{
    struct core_machine kept = snapshot->machines.items[one];

    snapshot->machines.items[one] = snapshot->machines.items[other];
    snapshot->machines.items[other] = kept;
}

/* Slots that can stay do: what is found through them is in the order of the snapshot all the same,
 * whatever came, went or changed places. */
static void test_core_that_is_put_back_is_in_the_order_of_the_snapshot(void **state)
{
    unsigned char room[sizeof(struct alloc) + 4096] __attribute__((aligned(16)));
    struct alloc *alloc = (struct alloc *)(void *)room;
    struct core_snapshot snapshot = {0};
    struct seam *seam = *state;

    begin_start(seam);
    core_save(seam->core, &snapshot);
    struct core_machine task = *machine_of(&snapshot, MACHINE_TASK);
    struct core_machine first = *machine_of(&snapshot, MACHINE_ALLOC);
    memcpy(room, first.record, fsm_record_size(first.record));
    (void)text_copy(alloc->assign.namespace, sizeof(alloc->assign.namespace), "default");
    (void)text_copy(alloc->assign.job_id, sizeof(alloc->assign.job_id), "job");
    first.record = &alloc->machine;
    struct core_machine second = first, other = task;
    second.id = machine_id_make(MACHINE_ALLOC, "b");
    other.id = machine_id_make(MACHINE_TASK, "b/web");
    snapshot.machines.count = 0;
    *list_more(&snapshot.machines) = task;
    *list_more(&snapshot.machines) = other;
    *list_more(&snapshot.machines) = first;
    *list_more(&snapshot.machines) = second;
    core_put(seam->core, &snapshot);
    assert_order(seam, "a/web b/web ", "a b ");

    core_save(seam->core, &snapshot);
    swap(&snapshot, 2, 3); /* the allocs */
    core_put(seam->core, &snapshot);
    assert_order(seam, "a/web b/web ", "b a ");

    core_save(seam->core, &snapshot);
    swap(&snapshot, 0, 1); /* the tasks, and one alloc goes */
    snapshot.machines.count--;
    core_put(seam->core, &snapshot);
    assert_order(seam, "b/web a/web ", "b ");

    core_save(seam->core, &snapshot);
    (void)text_copy(alloc->assign.job_id, sizeof(alloc->assign.job_id), "another");
    snapshot.machines.items[2].record = &alloc->machine;
    core_put(seam->core, &snapshot);
    assert_order(seam, "b/web a/web ", "");
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

static void test_start_that_waits_for_the_sweep_is_put_back_so(void **state)
{
    struct core_snapshot snapshot = {0};
    struct seam *seam = *state;

    seam_place(seam, "a", "web");
    seam_turn(seam);
    seam_hook_done(seam, MACHINE_ALLOC, "a");
    seam_turn(seam);
    seam_load(seam);
    core_restore(seam->core, true, false);
    seam_turn(seam);
    seam_hook_done(seam, MACHINE_TASK, "a/web");
    seam_turn(seam);
    seam_forget(seam);
    core_save(seam->core, &snapshot);
    assert_true(snapshot.unswept);
    core_swept(seam->core, true);
    seam_crossed(seam, "perform task a/web DRIVER_START\n");

    core_put(seam->core, &snapshot);
    core_snapshot_free(&snapshot);
    seam_crossed(seam, "");
    core_swept(seam->core, true);
    seam_crossed(seam, "perform task a/web DRIVER_START\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SEAM_TEST(test_core_that_is_put_back_goes_on),
        SEAM_TEST(test_core_remembers_what_is_under_way),
        SEAM_TEST(test_start_that_waits_for_the_sweep_is_put_back_so),
        SEAM_TEST(test_core_that_is_put_back_changed_goes_on_from_there),
        SEAM_TEST(test_core_that_is_put_back_is_in_the_order_of_the_snapshot),
        SEAM_TEST(test_core_that_is_put_back_has_nothing_to_store),
        SEAM_TEST(test_core_of_another_daemon_is_restored),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
