/*
 * Digests of records (fsm/digest.c) stay what they were once, since journals hold them, whatever
 * fields records get; and each field counts.
 */
#include "fsm/digest.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static union {
    struct machine head;
    struct task task;
    struct alloc alloc;
    struct volume volume;
    struct plugin plugin;
    uint8_t bytes[FSM_RECORD_BYTES_MAX];
} record;

static void begin(enum machine_kind kind, uint8_t state)
{
    memset(&record, 0, sizeof(record));
    record.head = (struct machine){.kind = (uint8_t)kind,
                                   .state = state,
                                   .revision = 7,
                                   .entered_ms = 900,
                                   .deadline_ms = 1000,
                                   .generation = 2,
                                   .tickets = 5,
                                   .attempt = 1,
                                   .lane_ticket[LANE_DRIVER] = 5,
                                   .lane_effect[LANE_DRIVER] = 1,
                                   .restored = 1};
}

/* --- what was digested once --- */

/* These numbers are in journals of releases: they stay, whatever is added to records. */
static void test_digests_of_releases_stay(void **state)
{
    (void)state;
    begin(MACHINE_TASK, T_RUNNING);
    record.task.restart_at_ms = UINT64_MAX;
    record.task.started_unix_ns = -1;
    record.task.failed = 1;
    memcpy(record.task.define.driver, "raw_exec", 8);
    record.task.process.payload_pid = 4711;
    record.task.exit.code = -9;
    record.task.events_count = 2;
    record.task.events[0].type = TASK_EVENT_RECEIVED;
    record.task.events[1].type = TASK_EVENT_DRIVER_FAILURE;
    memcpy(record.task.events[1].text, "it failed", 9);
    record.task.results_bytes = 3;
    memcpy(record.task.results, "\1\0\2", 3);
    assert_int_equal(fsm_digest(&record.head), 0xcb8cd0983f666cc6);

    begin(MACHINE_ALLOC, A_RUNNING);
    record.alloc.status_revision = 3;
    memcpy(record.alloc.kill_text, "stopped", 7);
    record.alloc.assign.batch = 1;
    record.alloc.assign.members_count = 2;
    memcpy(record.alloc.assign.members[0].name, "web", 3);
    memcpy(record.alloc.assign.members[1].name, "data", 4);
    record.alloc.assign.members[1].kind = MEMBER_VOLUME;
    assert_int_equal(fsm_digest(&record.head), 0x9b8d770a39b8144d);

    begin(MACHINE_VOLUME, V_QUEUED);
    record.volume.tries = 1;
    memcpy(record.volume.define.volume, "disk", 4);
    assert_int_equal(fsm_digest(&record.head), 0x3e6e747fb52d3eaf);

    begin(MACHINE_PLUGIN, P_READY);
    record.plugin.told_healthy = 1;
    memcpy(record.plugin.define.plugin, "disks", 5);
    record.plugin.identity.volumes_max = 12;
    record.plugin.process.shim_pid = 1;
    assert_int_equal(fsm_digest(&record.head), 0x1017364788deec4b);
}

/* --- what a later version adds --- */

#define OLDER_FIELDS(X)                                                                            \
    X(U64, count, 0, "")                                                                           \
    X(I32, code, 0, "")                                                                            \
    X(FLAG, failed, 0, "")                                                                         \
    X(PAD, pad, 3, "")                                                                             \
    X(TEXT, text, 16, "")
struct older {
    OLDER_FIELDS(FIELD)
};
SUMMED(older, OLDER_FIELDS)

/* Fields before, between and behind those, and those moved and with more room. */
#define NEWER_FIELDS(X)                                                                            \
    X(U64, added, 0, "")                                                                           \
    X(I64, code, 0, "")                                                                            \
    X(U64, count, 0, "")                                                                           \
    X(U8, added_too, 0, "")                                                                        \
    X(U8, failed, 0, "")                                                                           \
    X(PAD, pad, 6, "")                                                                             \
    X(TEXT, added_text, 8, "")                                                                     \
    X(NAME, text, 64, "")
struct newer {
    NEWER_FIELDS(FIELD)
};
SUMMED(newer, NEWER_FIELDS)

static void test_fields_that_a_later_version_adds_change_nothing(void **state)
{
    struct older older = {.count = 5, .code = -3, .failed = 1, .text = "it failed"};
    struct newer newer = {.count = 5, .code = -3, .failed = 1, .text = "it failed"};
    uint64_t before = older_fields(&older);

    (void)state;
    assert_true(newer_fields(&newer) == before);
    newer.added = 1;
    assert_true(newer_fields(&newer) != before);
    newer.added = 0;
    newer.added_too = 1;
    assert_true(newer_fields(&newer) != before);
    newer.added_too = 0;
    newer.added_text[0] = 'x';
    assert_true(newer_fields(&newer) != before);
}

/* --- each field counts --- */

enum { SEEN_MAX = 1024 };

static struct {
    uint64_t digests[SEEN_MAX];
    size_t count;
} seen;

/* DIGEST is of a record that none before it was like. */
static void see(uint64_t digest, const char *what)
{
    for (size_t i = 0; i < seen.count; i++) {
        if (seen.digests[i] == digest)
            fail_msg("%s does not count, or as another field does", what);
    }
    assert_true(seen.count < SEEN_MAX);
    seen.digests[seen.count++] = digest;
}

#define SEE(kind, name, size, doc) SEE_##kind(name)
#define SEE_U64(name)                                                                              \
    at->name++;                                                                                    \
    see(fsm_digest(&record.head), #name);                                                          \
    at->name--;
#define SEE_I64(name) SEE_U64(name)
#define SEE_U32(name) SEE_U64(name)
#define SEE_I32(name) SEE_U64(name)
#define SEE_U8(name) SEE_U64(name)
#define SEE_FLAG(name) SEE_U64(name)
#define SEE_TEXT(name)                                                                             \
    memset(at->name, 'x', sizeof(at->name) - 1);                                                   \
    see(fsm_digest(&record.head), #name);                                                          \
    at->name[sizeof(at->name) - 2]++;                                                              \
    see(fsm_digest(&record.head), #name);                                                          \
    memset(at->name, 0, sizeof(at->name));
#define SEE_NAME(name) SEE_TEXT(name)
#define SEE_PAD(name)

#define SEEN(type, FIELDS)                                                                         \
    static void see_##type(struct type *at)                                                        \
    {                                                                                              \
        FIELDS(SEE)                                                                                \
    }
SEEN(task_define, TASK_DEFINE_FIELDS)
SEEN(started, STARTED_FIELDS)
SEEN(exited, EXITED_FIELDS)
SEEN(task_event, TASK_EVENT_FIELDS)
SEEN(alloc_member, ALLOC_MEMBER_FIELDS)
SEEN(volume_define, VOLUME_DEFINE_FIELDS)
SEEN(volume, VOLUME_FIELDS)
SEEN(plugin_define, PLUGIN_DEFINE_FIELDS)
SEEN(plugin_identity, PLUGIN_IDENTITY_FIELDS)
SEEN(plugin, PLUGIN_FIELDS)
SEEN(task, TASK_FIELDS)
SEEN(alloc, ALLOC_FIELDS)
SEEN(alloc_assign, ALLOC_ASSIGN_FIELDS)

static void see_machine(struct machine *at)
{
    SEE_U64(revision)
    SEE_U64(entered_ms)
    SEE_U64(deadline_ms)
    SEE_U32(generation)
    SEE_U32(tickets)
    SEE_U32(attempt)
    for (unsigned lane = 0; lane < LANE_COUNT; lane++) {
        SEE_U32(lane_ticket[lane])
        SEE_U8(lane_effect[lane])
    }
    SEE_U8(state)
    SEE_FLAG(restored)
}

static void test_each_field_counts_as_itself(void **state)
{
    (void)state;
    begin(MACHINE_TASK, T_RUNNING);
    record.task.events_count = TASK_EVENTS_MAX - 1; /* one more and one less are fine */
    seen.count = 0;
    see(fsm_digest(&record.head), "nothing");
    see_machine(&record.head);
    see_task(&record.task);
    see_task_define(&record.task.define);
    see_started(&record.task.process);
    see_exited(&record.task.exit);
    for (unsigned i = 0; i < record.task.events_count; i++)
        see_task_event(&record.task.events[i]);
    record.task.results_bytes = 2;
    see(fsm_digest(&record.head), "results");
    record.task.results[1] = 1;
    see(fsm_digest(&record.head), "results");

    begin(MACHINE_ALLOC, A_RUNNING);
    record.alloc.assign.members_count = 3;
    seen.count = 0;
    see(fsm_digest(&record.head), "nothing");
    see_machine(&record.head);
    see_alloc(&record.alloc);
    see_alloc_assign(&record.alloc.assign);
    for (unsigned i = 0; i < record.alloc.assign.members_count; i++)
        see_alloc_member(&record.alloc.assign.members[i]);

    begin(MACHINE_VOLUME, V_QUEUED);
    seen.count = 0;
    see(fsm_digest(&record.head), "nothing");
    see_machine(&record.head);
    see_volume(&record.volume);
    see_volume_define(&record.volume.define);

    begin(MACHINE_PLUGIN, P_READY);
    seen.count = 0;
    see(fsm_digest(&record.head), "nothing");
    see_machine(&record.head);
    see_plugin(&record.plugin);
    see_plugin_define(&record.plugin.define);
    see_plugin_identity(&record.plugin.identity);
    see_started(&record.plugin.process);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_digests_of_releases_stay),
        cmocka_unit_test(test_fields_that_a_later_version_adds_change_nothing),
        cmocka_unit_test(test_each_field_counts_as_itself),
    };

    return cmocka_run_group_tests_name("digests", tests, NULL, NULL);
}
