/* A plugin whose process is a task: its health has a time, its task is told, restarts of the daemon
 * change neither. */
#include "fsm/plugin.h"
#include "fsm/task.h"
#include "fsm/volume.h"

#include <setjmp.h> /* before cmocka.h, which needs it */
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TIMEOUT_MS = 20000, SAID_MAX = 8 };

/* One machine, the time, and what it has said since `said` was set to 0. */
struct stand {
    struct machine_id id;
    struct fsm_now now;
    size_t said;
    struct {
        uint8_t kind; /* of machine */
        uint8_t event;
        struct kill_order order;
    } messages[SAID_MAX];
    struct fsm_step step;
    union {
        struct machine machine;
        struct plugin plugin;
        uint8_t bytes[FSM_RECORD_BYTES_MAX];
    } record;
};

static void hear(void *ctx, const struct fsm_message *message)
{
    struct stand *stand = ctx;

    assert_true(stand->said < SAID_MAX);
    stand->messages[stand->said].kind =
        message->audience == TO_PLUGIN_WAITING ? MACHINE_VOLUME : message->to.kind;
    stand->messages[stand->said].event = message->event.kind;
    if (message->audience == TO_MACHINE)
        stand->messages[stand->said].order = *(const struct kill_order *)message->event.payload;
    stand->said++;
}

static void step(struct stand *stand, uint8_t event, const void *payload)
{
    const struct machine *record = &stand->record.machine;
    struct fsm_event posted = {.kind = event, .payload = payload};

    for (uint8_t lane = 0; lane < LANE_COUNT; lane++) {
        uint8_t effect = record->lane_effect[lane];
        if (effect != 0 && (plugin_def.effects[effect].completions >> event & 1) != 0)
            posted.lane = lane, posted.ticket = record->lane_ticket[lane];
    }
    posted.generation = record->generation;
    assert_int_equal(fsm_step(&plugin_def, &stand->id, &stand->record.machine, &posted, &stand->now,
                              hear, stand, &stand->step),
                     FSM_MOVED);
}

static void refuse(struct stand *stand, uint8_t event)
{
    struct failure failure = {.code = ERR_AGAIN, .text = "nobody answers"}; /* not recoverable */

    step(stand, event, &failure);
}

/* The timer of the record comes. */
static void pass_time(struct stand *stand)
{
    assert_int_not_equal(stand->record.machine.deadline_ms, 0);
    if (stand->now.ms < stand->record.machine.deadline_ms)
        stand->now.ms = stand->record.machine.deadline_ms;
    step(stand, PE_TIMEOUT, NULL);
}

static void define(struct stand *stand, enum plugin_type type)
{
    struct plugin_define define = {
        .type = (uint8_t)type, .supervised = 1, .health_timeout_ms = TIMEOUT_MS, .plugin = "disks"};

    step(stand, PE_DEFINE, &define);
}

static void begin(struct stand *stand, enum plugin_type type)
{
    *stand = (struct stand){.id = machine_id_make(MACHINE_PLUGIN, "a/plugin"),
                            .now = {.ms = 1000, .seed = 1}};
    fsm_absent(&plugin_def, &stand->record.machine);
    define(stand, type);
}

static void make_ready(struct stand *stand)
{
    static const struct started started;
    const struct plugin_identity identity = {.provider = "p", .healthy = 1};

    step(stand, PE_LAUNCHED, &started);
    step(stand, PE_PROBED, NULL);
    step(stand, PE_IDENTIFIED, &identity);
    assert_int_equal(stand->record.machine.state, P_READY);
}

static void restore(struct stand *stand)
{
    static const struct started started;
    const struct restore restore = {.authority = 1};

    step(stand, PE_RESTORE, &restore);
    step(stand, PE_RECOVERED, &started);
}

static bool says(const struct stand *stand, size_t at, enum machine_kind kind, uint8_t event)
{
    return at < stand->said && stand->messages[at].kind == kind &&
           stand->messages[at].event == event;
}

static void test_what_never_listens_has_its_time_and_then_its_task_is_told(void **state)
{
    struct stand stand;

    (void)state;
    begin(&stand, PLUGIN_CSI_NODE);
    pass_time(&stand);
    assert_int_equal(stand.now.ms, 1000 + TIMEOUT_MS);
    assert_int_equal(stand.record.machine.state, P_LAUNCHING);
    assert_true(says(&stand, 0, MACHINE_TASK, TE_NOTE));
    assert_int_equal(stand.messages[0].order.event, TASK_EVENT_PLUGIN_UNHEALTHY);
    assert_true(says(&stand, 1, MACHINE_TASK, TE_UNWELL));
    assert_string_equal(stand.messages[1].order.text,
                        "CSI plugin did not become healthy before configured 20s health timeout");
    stand.said = 0;
    pass_time(&stand); /* it may not have heard */
    assert_int_equal(stand.now.ms, 1000 + 2 * TIMEOUT_MS);
    assert_true(says(&stand, 1, MACHINE_TASK, TE_UNWELL));
}

/* Its task hears why it is not healthy yet, and nothing else: that is taken off the list. */
static bool hears_early(struct stand *stand)
{
    bool early = stand->said == 1 && says(stand, 0, MACHINE_TASK, TE_NOTE) &&
                 stand->messages[0].order.event == TASK_EVENT_PLUGIN_UNHEALTHY;

    if (early) {
        assert_string_equal(stand->messages[0].order.text, "Error: nobody answers");
        stand->said = 0;
    }
    return early;
}

static void test_hung_probes_take_no_longer_than_one(void **state)
{
    static const struct started started;
    struct stand stand;

    (void)state;
    begin(&stand, PLUGIN_CSI_NODE);
    step(&stand, PE_LAUNCHED, &started);
    int early = 0;
    for (int probe = 0; probe < 12 && stand.said == 0; probe++) {
        stand.now.ms += 5000;
        refuse(&stand, PE_PROBE_FAILED);
        early += hears_early(&stand);
        if (stand.said == 0)
            pass_time(&stand);
    }
    assert_int_equal(early, 1);
    assert_true(says(&stand, 1, MACHINE_TASK, TE_UNWELL));
    assert_in_range(stand.now.ms, 1000 + TIMEOUT_MS, 1000 + TIMEOUT_MS + 5000);
}

static void test_the_time_goes_on_over_a_restart_with_one_look_more(void **state)
{
    struct stand stand;

    (void)state;
    begin(&stand, PLUGIN_CSI_NODE);
    stand.now.ms += 3000;
    restore(&stand);
    assert_int_equal(stand.record.plugin.due_ms, 1000 + TIMEOUT_MS);
    stand.now.ms = 1000 + 10 * TIMEOUT_MS; /* away for long */
    restore(&stand);
    assert_int_equal(stand.said, 0);
    assert_int_equal(stand.record.machine.state, P_PROBING);
    assert_true(stand.record.plugin.due_ms > stand.now.ms + 5000); /* a probe has that long */
}

static void test_its_task_hears_what_is_news(void **state)
{
    struct stand stand;

    (void)state;
    begin(&stand, PLUGIN_CSI_NODE);
    make_ready(&stand);
    assert_int_equal(stand.said, 2);
    assert_true(says(&stand, 0, MACHINE_VOLUME, VE_PLUGIN_UP));
    assert_true(says(&stand, 1, MACHINE_TASK, TE_NOTE));
    assert_string_equal(stand.messages[1].order.text, "plugin: disks");
    restore(&stand);
    stand.said = 0;
    step(&stand, PE_PROBED, NULL);
    const struct plugin_identity identity = {.provider = "p", .healthy = 1};
    step(&stand, PE_IDENTIFIED, &identity);
    assert_int_equal(stand.said, 1); /* users wait for the word, nothing is new to the task */
    assert_true(says(&stand, 0, MACHINE_VOLUME, VE_PLUGIN_UP));
    stand.said = 0;
    pass_time(&stand);
    refuse(&stand, PE_PROBE_FAILED);
    assert_int_equal(stand.record.machine.state, P_UNHEALTHY);
    assert_true(says(&stand, 1, MACHINE_TASK, TE_NOTE));
    assert_string_equal(stand.messages[1].order.text, "Error: nobody answers");
    assert_int_equal(stand.record.plugin.due_ms, stand.now.ms + TIMEOUT_MS);
}

static void test_one_that_was_healthy_and_is_not_found_so_is_unhealthy(void **state)
{
    struct stand stand;

    (void)state;
    begin(&stand, PLUGIN_CSI_NODE);
    make_ready(&stand);
    restore(&stand);
    assert_true(stand.record.plugin.identity.healthy); /* until it is known better */
    stand.said = 0;
    refuse(&stand, PE_PROBE_FAILED);
    assert_int_equal(stand.record.machine.state, P_UNHEALTHY);
    assert_false(stand.record.plugin.identity.healthy);
    assert_true(says(&stand, 0, MACHINE_TASK, TE_NOTE));
}

static void test_a_controller_is_no_news_for_volumes(void **state)
{
    struct stand stand;

    (void)state;
    begin(&stand, PLUGIN_CSI_CONTROLLER);
    make_ready(&stand);
    assert_int_equal(stand.said, 1);
    assert_true(says(&stand, 0, MACHINE_TASK, TE_NOTE));
}

static void test_it_waits_for_its_task_and_begins_anew_with_it(void **state)
{
    static const struct exited exited;
    struct stand stand;

    (void)state;
    begin(&stand, PLUGIN_CSI_NODE);
    make_ready(&stand);
    step(&stand, PE_EXITED, &exited);
    assert_int_equal(stand.record.machine.state, P_STOPPED);
    assert_int_equal(stand.record.machine.deadline_ms, 0);
    assert_false(stand.record.plugin.identity.healthy);
    stand.now.ms += 10 * TIMEOUT_MS; /* a pause of the task's is not the plugin's fault */
    stand.said = 0;
    define(&stand, PLUGIN_CSI_NODE);
    assert_int_equal(stand.record.plugin.due_ms, stand.now.ms + TIMEOUT_MS);
    assert_int_equal(stand.record.machine.generation, 2);
    assert_int_equal(stand.record.plugin.defined_ms, 1000);
    make_ready(&stand);
    assert_true(says(&stand, 1, MACHINE_TASK, TE_NOTE));
}

static void test_one_that_cannot_say_who_it_is_is_asked_less_often_and_not_for_ever(void **state)
{
    static const struct started started;
    uint64_t pauses_ms[3];
    struct stand stand;

    (void)state;
    begin(&stand, PLUGIN_CSI_NODE);
    step(&stand, PE_LAUNCHED, &started);
    for (int i = 0; i < 3; i++) {
        step(&stand, PE_PROBED, NULL);
        refuse(&stand, PE_IDENTIFY_FAILED); /* that is permanent, but not for a task */
        assert_int_equal(hears_early(&stand), i == 1);
        assert_int_equal(stand.record.machine.state, P_PROBING);
        pauses_ms[i] = stand.record.machine.deadline_ms - stand.now.ms;
        pass_time(&stand);
    }
    assert_true(pauses_ms[0] < pauses_ms[1] || pauses_ms[1] < pauses_ms[2]);
    while (stand.said == 0) {
        step(&stand, PE_PROBED, NULL);
        refuse(&stand, PE_IDENTIFY_FAILED);
        pass_time(&stand);
    }
    assert_true(says(&stand, 1, MACHINE_TASK, TE_UNWELL));
    assert_int_equal(stand.now.ms, 1000 + TIMEOUT_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_never_listens_has_its_time_and_then_its_task_is_told),
        cmocka_unit_test(test_hung_probes_take_no_longer_than_one),
        cmocka_unit_test(test_the_time_goes_on_over_a_restart_with_one_look_more),
        cmocka_unit_test(test_its_task_hears_what_is_news),
        cmocka_unit_test(test_one_that_was_healthy_and_is_not_found_so_is_unhealthy),
        cmocka_unit_test(test_a_controller_is_no_news_for_volumes),
        cmocka_unit_test(test_it_waits_for_its_task_and_begins_anew_with_it),
        cmocka_unit_test(test_one_that_cannot_say_who_it_is_is_asked_less_often_and_not_for_ever),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
