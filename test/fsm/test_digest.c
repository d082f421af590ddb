/*
 * What the digest of a record goes by, which the journal keeps with each event: names of fields and
 * what is in them, so that a version with more fields verifies what one with fewer has left.
 */
#include "fsm/alloc.h"
#include "fsm/fsm.h"
#include "fsm/plugin.h"
#include "fsm/task.h"
#include "fsm/volume.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { MEMBERS = 2, RESULTS = 5 };

static union {
    struct machine machine;
    struct task task;
    struct alloc alloc;
    struct volume volume;
    struct plugin plugin;
    uint8_t bytes[FSM_RECORD_BYTES_MAX];
} record;

/* --- every field counts --- */

/* Changes FIELD of LENGTH bytes, and looks at what that does; those behind the end of a text are
 * always zero. */
static void expect_counted(void *field, const char *name)
{
    uint64_t before = fsm_digest(&record.machine);
    uint8_t *first = field;

    *first ^= 1;
    if (fsm_digest(&record.machine) == before)
        fail_msg("%s does not count", name);
    *first ^= 1;
    assert_int_equal(fsm_digest(&record.machine), before);
}

#define COUNTED(kind, name, size, doc) COUNTED_##kind(name)
#define COUNTED_ANY(name) expect_counted(&at->name, #name);
#define COUNTED_U64(name) COUNTED_ANY(name)
#define COUNTED_I64(name) COUNTED_ANY(name)
#define COUNTED_U32(name) COUNTED_ANY(name)
#define COUNTED_I32(name) COUNTED_ANY(name)
#define COUNTED_U8(name) COUNTED_ANY(name)
#define COUNTED_FLAG(name) COUNTED_ANY(name)
#define COUNTED_TEXT(name) COUNTED_ANY(name)
#define COUNTED_NAME(name) COUNTED_ANY(name)
#define COUNTED_PAD(name)

#define EXPECT_COUNTED(type, FIELDS, place)                                                        \
    {                                                                                              \
        struct type *at = place;                                                                   \
        FIELDS(COUNTED)                                                                            \
    }

static void expect_machine_counted(void)
{
    struct machine *at = &record.machine;

    COUNTED_ANY(revision)
    COUNTED_ANY(entered_ms)
    COUNTED_ANY(deadline_ms)
    COUNTED_ANY(generation)
    COUNTED_ANY(tickets)
    COUNTED_ANY(attempt)
    COUNTED_ANY(state)
    COUNTED_ANY(restored)
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        COUNTED_ANY(lane_ticket[lane])
        COUNTED_ANY(lane_effect[lane])
    }
}

static void begin(enum machine_kind kind)
{
    memset(&record, 0, sizeof(record));
    record.machine.kind = (uint8_t)kind;
}

static void make_task(void)
{
    begin(MACHINE_TASK);
    record.task.events_count = TASK_EVENTS_MAX;
    record.task.results_bytes = RESULTS;
    memcpy(record.task.results, "12345", RESULTS);
}

static void make_alloc(void)
{
    begin(MACHINE_ALLOC);
    record.alloc.assign.members_count = MEMBERS;
}

static void test_each_field_of_a_task_counts(void **state)
{
    (void)state;
    make_task();
    expect_machine_counted();
    EXPECT_COUNTED(task_define, TASK_DEFINE_FIELDS, &record.task.define)
    EXPECT_COUNTED(started, STARTED_FIELDS, &record.task.process)
    EXPECT_COUNTED(exited, EXITED_FIELDS, &record.task.exit)
    for (int i = 0; i < TASK_EVENTS_MAX; i++)
        EXPECT_COUNTED(task_event, TASK_EVENT_FIELDS, &record.task.events[i])
    for (int i = 0; i < RESULTS; i++)
        expect_counted(&record.task.results[i], "a result of a hook");
    record.task.events_count = 0;
    EXPECT_COUNTED(task, TASK_FIELDS, &record.task)
}

static void test_each_field_of_an_alloc_counts(void **state)
{
    (void)state;
    make_alloc();
    expect_machine_counted();
    EXPECT_COUNTED(alloc, ALLOC_FIELDS, &record.alloc)
    EXPECT_COUNTED(alloc_assign, ALLOC_ASSIGN_FIELDS, &record.alloc.assign)
    for (int i = 0; i < MEMBERS; i++)
        EXPECT_COUNTED(alloc_member, ALLOC_MEMBER_FIELDS, &record.alloc.assign.members[i])
}

static void test_each_field_of_a_volume_and_a_plugin_counts(void **state)
{
    (void)state;
    begin(MACHINE_VOLUME);
    expect_machine_counted();
    EXPECT_COUNTED(volume, VOLUME_FIELDS, &record.volume)
    EXPECT_COUNTED(volume_define, VOLUME_DEFINE_FIELDS, &record.volume.define)
    begin(MACHINE_PLUGIN);
    expect_machine_counted();
    EXPECT_COUNTED(plugin, PLUGIN_FIELDS, &record.plugin)
    EXPECT_COUNTED(plugin_define, PLUGIN_DEFINE_FIELDS, &record.plugin.define)
    EXPECT_COUNTED(plugin_identity, PLUGIN_IDENTITY_FIELDS, &record.plugin.identity)
    EXPECT_COUNTED(started, STARTED_FIELDS, &record.plugin.process)
}

/* --- and where it stands --- */

static void test_the_same_elsewhere_is_something_else(void **state)
{
    (void)state;
    make_alloc();
    record.alloc.assign.members[0].told = 3;
    uint64_t first = fsm_digest(&record.machine);
    record.alloc.assign.members[0].told = 0;
    record.alloc.assign.members[1].told = 3;
    assert_int_not_equal(fsm_digest(&record.machine), first);

    make_task();
    record.task.process.payload_pid = 77;
    first = fsm_digest(&record.machine);
    record.task.process.payload_pid = 0;
    record.task.process.shim_pid = 77;
    assert_int_not_equal(fsm_digest(&record.machine), first);

    begin(MACHINE_VOLUME);
    first = fsm_digest(&record.machine);
    begin(MACHINE_PLUGIN);
    assert_int_not_equal(fsm_digest(&record.machine), first);
}

/* --- the format --- */

static void fill_machine(void)
{
    record.machine.revision = 12;
    record.machine.entered_ms = 3456;
    record.machine.lane_ticket[LANE_DRIVER] = 7;
    record.machine.lane_effect[LANE_DRIVER] = 2;
    record.machine.tickets = 9;
    record.machine.state = 3;
}

/* What journals hold.  A field that is added is zero in these records and changes nothing; whoever
 * has to change a number here gives another name to a field, and `journal verify` calls all that
 * was written before wrong. */
static void test_digests_are_those_of_all_versions(void **state)
{
    (void)state;
    make_task();
    fill_machine();
    record.task.events_count = 1;
    record.task.status_revision = 5;
    record.task.run_state = TASK_RUN_RUNNING;
    record.task.define.kill_timeout_ms = 5000;
    memcpy(record.task.define.driver, "raw_exec", 9);
    record.task.process.payload_pid = 4711;
    record.task.exit.code = -1;
    record.task.events[0].time_unix_ns = 1700000000000000000;
    memcpy(record.task.events[0].text, "Task started", 13);
    assert_int_equal(fsm_digest(&record.machine), 0xda9875b9392f8014u);

    make_alloc();
    fill_machine();
    record.alloc.status_revision = 5;
    record.alloc.assign.hooks_prerun = 3;
    memcpy(record.alloc.assign.job_id, "demo", 5);
    memcpy(record.alloc.assign.members[1].name, "web", 4);
    record.alloc.assign.members[1].run_state = TASK_RUN_DEAD;
    assert_int_equal(fsm_digest(&record.machine), 0x31d415540fef4322u);

    begin(MACHINE_VOLUME);
    fill_machine();
    record.volume.claimed = 1;
    memcpy(record.volume.define.plugin, "disks", 6);
    assert_int_equal(fsm_digest(&record.machine), 0x7183961f1ba122c7u);

    begin(MACHINE_PLUGIN);
    fill_machine();
    record.plugin.failures = 2;
    record.plugin.define.supervised = 1;
    memcpy(record.plugin.identity.provider, "org.example", 12);
    assert_int_equal(fsm_digest(&record.machine), 0xa2770a7433cd6d15u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_field_of_a_task_counts),
        cmocka_unit_test(test_each_field_of_an_alloc_counts),
        cmocka_unit_test(test_each_field_of_a_volume_and_a_plugin_counts),
        cmocka_unit_test(test_the_same_elsewhere_is_something_else),
        cmocka_unit_test(test_digests_are_those_of_all_versions),
    };

    return cmocka_run_group_tests_name("digest", tests, NULL, NULL);
}
