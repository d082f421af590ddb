/*
 * What makes no sense of what was read (fsm/sense.c): each record here is whole and sealed well
 * enough, and no table could have written it.
 */
#include "fsm/alloc.h"
#include "fsm/plugin.h"
#include "fsm/task.h"
#include "fsm/volume.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static union {
    struct machine head;
    struct task task;
    struct alloc alloc;
    struct volume volume;
    struct plugin plugin;
    uint8_t bytes[FSM_RECORD_BYTES_MAX];
} record;

static void expect(const char *id, const char *why)
{
    struct machine_id is = machine_id_make((enum machine_kind)record.head.kind, id);
    const char *told = fsm_senseless(&is, &record.head);

    if (why == NULL)
        assert_null(told);
    else if (told == NULL)
        fail_msg("%s is believed, though: %s", id, why);
    else
        assert_string_equal(told, why);
}

/* A task that runs. */
static struct task *a_task(void)
{
    memset(&record, 0, sizeof(record));
    record.head = (struct machine){
        .kind = MACHINE_TASK, .state = T_RUNNING, .generation = 1, .tickets = 3, .entered_ms = 900};
    record.task.phase = PHASE_POSTSTART;
    record.task.hook = HOOK_NONE;
    record.task.run_state = TASK_RUN_RUNNING;
    record.task.ran = 1;
    record.task.define.kill_timeout_ms = 5000;
    expect("a/web", NULL);
    return &record.task;
}

/* An alloc that runs one. */
static struct alloc *an_alloc(void)
{
    memset(&record, 0, sizeof(record));
    record.head = (struct machine){.kind = MACHINE_ALLOC, .state = A_RUNNING, .entered_ms = 900};
    record.alloc.prepared = 1;
    record.alloc.client_status = CLIENT_RUNNING;
    record.alloc.assign.members_count = 1;
    record.alloc.assign.members[0] = (struct alloc_member){
        .kind = MEMBER_TASK, .run_state = TASK_RUN_RUNNING, .started = 1, .name = "web"};
    expect("a", NULL);
    return &record.alloc;
}

static struct volume *a_volume(void)
{
    memset(&record, 0, sizeof(record));
    record.head = (struct machine){.kind = MACHINE_VOLUME, .state = V_READY, .generation = 1};
    record.volume.claimed = record.volume.published = 1;
    record.volume.define = (struct volume_define){.plugin = "disks", .volume = "data"};
    expect("a/data", NULL);
    return &record.volume;
}

static void test_states_that_are_never_stored(void **state)
{
    (void)state;
    for (int kind = 0; kind < MACHINE_KIND_COUNT; kind++) {
        const struct fsm_def *def = fsm_definition((enum machine_kind)kind);
        for (uint8_t s = 0; s < def->states_count; s++) {
            memset(&record, 0, sizeof(record));
            record.head = (struct machine){.kind = (uint8_t)kind, .state = s, .generation = 1};
            struct machine_id id =
                machine_id_make((enum machine_kind)kind, kind == MACHINE_ALLOC ? "a" : "a/b");
            bool stored = (def->states[s].flags & (FSM_INITIAL | FSM_FINAL)) == 0;
            if (!stored)
                assert_non_null(fsm_senseless(&id, &record.head));
        }
    }
    a_task()->machine.state = T_COUNT;
    expect("a/web", "unknown state");
}

static void test_counters_without_room(void **state)
{
    (void)state;
    a_task()->machine.tickets = UINT32_MAX;
    expect("a/web", "tickets is more than anything ever counted");
    a_task()->machine.generation = UINT32_MAX;
    expect("a/web", "generation is more than anything ever counted");
    a_task()->machine.attempt = UINT32_MAX;
    expect("a/web", "attempt is more than anything ever counted");
    a_task()->restarts = UINT32_MAX;
    expect("a/web", "restarts is more than anything ever counted");
    an_alloc()->machine.revision = UINT64_MAX;
    expect("a", "revision is more than anything ever counted");
}

static void test_times_that_nobody_asked_for(void **state)
{
    struct task *task = a_task();

    (void)state;
    task->machine.deadline_ms = 5;
    expect("a/web", "a timer in a state that waits for no time");
    a_task()->define.kill_timeout_ms = (uint64_t)1 << 63;
    expect("a/web", "a length of time that no job may ask for");
    a_task()->interval_ms = 901;
    expect("a/web", "its restart interval has not begun yet");
    task = a_task();
    task->machine.state = T_STOPPING;
    task->machine.deadline_ms = 900 + 5000 + 10000;
    task->kill_at_ms = 900 + 5000;
    expect("a/web", NULL);
    task->machine.deadline_ms++;
    expect("a/web", "its timer is set to another time than it waits for");
    task->machine.deadline_ms++;
    task->kill_at_ms += 2;
    expect("a/web", "a wait is longer than was asked for");
    task->older_wait_ms = 5001;
    expect("a/web", "a wait is longer than was asked for");
    task->older_wait_ms = 5002; /* by the version that it was stopped by */
    expect("a/web", NULL);
    task->older_wait_ms = 3 * DURATION_MS_MAX + 1;
    expect("a/web", "a length of time that no job may ask for");
    task->older_wait_ms = 0;
    task->machine.deadline_ms = 0;
    expect("a/web", "stopping without a deadline");
    struct alloc *alloc = an_alloc();
    alloc->machine.state = A_DELAYING;
    alloc->assign.shutdown_delay_ms = 10;
    alloc->machine.deadline_ms = alloc->delay_until_ms = 911;
    expect("a", "a wait is longer than was asked for");
    alloc->machine.deadline_ms = alloc->delay_until_ms = 910;
    expect("a", NULL);
}

static void test_contacts_that_nobody_counts_on(void **state)
{
    struct alloc *alloc = an_alloc();

    (void)state;
    alloc->assign.stop_after_ms = 5000;
    alloc->contact_ms = 2000; /* it was heard of since it runs */
    alloc->machine.deadline_ms = 7000;
    expect("a", NULL);
    alloc->machine.deadline_ms = 7001;
    expect("a", "its timer is set to another time than it waits for");
    alloc->machine.deadline_ms = 7000;
    alloc->cut_off = 1;
    expect("a", "at the end of a time that it does not have");
    alloc = an_alloc();
    alloc->contact_ms = 2000;
    expect("a", "at the end of a time that it does not have");
    alloc->assign.stop_after_ms = DURATION_MS_MAX + 1;
    expect("a", "a length of time that no job may ask for");
}

static void test_texts_that_are_none(void **state)
{
    struct alloc *alloc = an_alloc();

    (void)state;
    memcpy(alloc->assign.namespace, "\xff\xfe", 2);
    expect("a", "namespace is not a name");
    memcpy(an_alloc()->assign.job_id, "a\x1b[31m", 6);
    expect("a", "job_id is not a name");
    memset(an_alloc()->assign.group, 'g', SPEC_NAME_SIZE);
    expect("a", "group is not a name");
    memcpy(an_alloc()->assign.members[0].name, "w\xc3", 3);
    expect("a", "name is not a name");
    memcpy(an_alloc()->assign.members[0].name, "../..", 6);
    expect("a", "no member has such a name");
    memset(an_alloc()->failure, 'f', DESCRIPTION_SIZE);
    expect("a", "failure is not a text");
    a_task()->define.driver[9] = 'x'; /* behind the end */
    expect("a/web", "driver is not a name");
    memcpy(a_task()->exit.message, "\xff", 2); /* a payload may say what it likes */
    expect("a/web", NULL);
    alloc = an_alloc();
    alloc->assign.members_count = 2;
    alloc->assign.members[1] = alloc->assign.members[0];
    expect("a", "two members of one name");
}

static void test_flags_and_enums(void **state)
{
    (void)state;
    a_task()->kill_wanted = 2;
    expect("a/web", "kill_wanted is neither 0 nor 1");
    a_task()->verdict = 200;
    expect("a/web", "unknown lifecycle, state, phase, hook, verdict or way to resume");
    a_task()->phase = PHASE_POSTRUN;
    expect("a/web", "unknown lifecycle, state, phase, hook, verdict or way to resume");
    a_task()->phase = PHASE_STOP;
    expect("a/web", "running hooks of another phase than its state's");
    a_task()->hook = 0;
    expect("a/web", "running a hook that it does not have");
    an_alloc()->machine.restored = 7;
    expect("a", "restored is neither 0 nor 1");
}

static void test_lives_that_contradict_themselves(void **state)
{
    struct task *task = a_task();
    struct alloc *alloc = an_alloc();

    (void)state;
    task = a_task();
    task->run_state = TASK_RUN_DEAD;
    expect("a/web", "alive, but not shown running");
    a_task()->remove_wanted = 1;
    expect("a/web", "to be forgotten before it is over");
    task = a_task();
    task->machine.state = T_PRESTART;
    task->phase = PHASE_PRESTART;
    expect("a/web", "about to start, but not shown pending");
    a_task()->told_revision = 1;
    expect("a/web", "its alloc was told what never was");
    an_alloc()->machine.state = A_TERMINAL;
    expect("a", "being torn down while a task lives");
    an_alloc()->client_status = CLIENT_COMPLETE;
    expect("a", "complete while a task lives");
    an_alloc()->ended_unix_ns = 1;
    expect("a", "ended before its end");
    alloc = an_alloc();
    alloc->machine.state = A_MOUNTING;
    expect("a", "its tasks were begun before it was set up");
    alloc->assign.members[0].run_state = TASK_RUN_PENDING;
    alloc->assign.members[0].started = 0;
    alloc->client_status = CLIENT_PENDING;
    expect("a", "mounting where there is nothing to be mounted");
    an_alloc()->assign.members[0].run_state = TASK_RUN_DEAD;
    expect("a", "running, and all of its tasks are dead");
    struct volume *volume = a_volume();
    volume->machine.state = V_DRAINING;
    volume->machine.deadline_ms = 5;
    expect("a/data", "on the way back, but nobody has let go");
    volume->release_wanted = 1;
    expect("a/data", NULL);
}

static void test_ids_that_name_no_machine(void **state)
{
    static const char *const of_allocs[] = {
        "", "..", "../etc", "A", "a/b", "a b", "\xff", "0123456789012345678901234567890123456"};
    static const char *const of_tasks[] = {"web",       "/web",  "a/",     "a/..",
                                           "a/.hidden", "a/b/c", "../web", "a/alloc",
                                           "a/\xff",    "a/\n",  "A/web"};

    (void)state;
    an_alloc();
    for (size_t i = 0; i < COUNT_OF(of_allocs); i++)
        expect(of_allocs[i], "no machine has such an id");
    a_task();
    for (size_t i = 0; i < COUNT_OF(of_tasks); i++)
        expect(of_tasks[i], "no machine has such an id");
    expect("a/Web server", NULL);
    struct machine_id id = machine_id_make(MACHINE_ALLOC, "a");
    assert_string_equal(fsm_senseless(&id, &record.head),
                        "a record of another kind than its id says");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_states_that_are_never_stored),
        cmocka_unit_test(test_counters_without_room),
        cmocka_unit_test(test_times_that_nobody_asked_for),
        cmocka_unit_test(test_contacts_that_nobody_counts_on),
        cmocka_unit_test(test_texts_that_are_none),
        cmocka_unit_test(test_flags_and_enums),
        cmocka_unit_test(test_lives_that_contradict_themselves),
        cmocka_unit_test(test_ids_that_name_no_machine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
