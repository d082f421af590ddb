/* What is read of the answers of a driver that is a plugin. */
#include "drivers/external/external.h"
#include "drivers/external/task.pb-c.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static ProtobufCBinaryData text(const char *text)
{
    return (ProtobufCBinaryData){strlen(text), (uint8_t *)(uintptr_t)text};
}

static void test_start_without_a_handle_is_none(void **state)
{
    Task__StartAnswer answer = TASK__START_ANSWER__INIT;
    char *handle = NULL;
    uint8_t bytes[64];
    size_t length = 0;
    struct err err = {0};
    (void)state;

    assert_int_equal(external_read_handle("", 0, &handle, &length, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "handle is missing"));
    answer.handle = text("h");
    answer.result = 2;
    assert_int_equal(external_read_handle(bytes, task__start_answer__pack(&answer, bytes), &handle,
                                          &length, &err),
                     ERR_REFUSED);
    answer.result = 0;
    assert_int_equal(external_read_handle(bytes, task__start_answer__pack(&answer, bytes), &handle,
                                          &length, &err),
                     0);
    assert_int_equal(length, 1);
    assert_memory_equal(handle, "h", 1);
    free(handle);
}

static void test_end_that_a_driver_could_not_see_has_no_code(void **state)
{
    Task__Exit exit = TASK__EXIT__INIT;
    Task__WaitAnswer answer = TASK__WAIT_ANSWER__INIT;
    struct external_status status;
    uint8_t bytes[128];
    struct err err = {0};
    (void)state;

    exit.code = 143;
    exit.signal = 15;
    answer.result = &exit;
    assert_int_equal(
        external_read_wait(bytes, task__wait_answer__pack(&answer, bytes), &status, &err), 0);
    assert_true(status.has_ended && status.has_result);
    assert_int_equal(status.code, 143);
    assert_int_equal(status.signal, 15);
    /* A code that comes with a reason why it is none is none. */
    answer.error = text("the executor\nis gone");
    assert_int_equal(
        external_read_wait(bytes, task__wait_answer__pack(&answer, bytes), &status, &err), 0);
    assert_true(status.has_ended && !status.has_result);
    assert_null(strchr(status.error, '\n'));
    assert_non_null(strstr(status.error, "is gone"));
    /* No such signal. */
    answer.error.len = 0;
    exit.signal = 4096;
    assert_int_equal(
        external_read_wait(bytes, task__wait_answer__pack(&answer, bytes), &status, &err), 0);
    assert_int_equal(status.signal, 0);
}

static void test_state_is_what_a_driver_says(void **state)
{
    Task__Exit exit = TASK__EXIT__INIT;
    Task__Duration completed = TASK__DURATION__INIT;
    Task__Status said = TASK__STATUS__INIT;
    Task__InspectAnswer answer = TASK__INSPECT_ANSWER__INIT;
    struct external_status status;
    uint8_t bytes[128];
    struct err err = {0};
    (void)state;

    assert_int_equal(external_read_status("", 0, &status, &err), ERR_INVALID);
    said.state = 1;
    said.result = &exit; /* of one that runs it means nothing */
    answer.task = &said;
    assert_int_equal(
        external_read_status(bytes, task__inspect_answer__pack(&answer, bytes), &status, &err), 0);
    assert_true(status.runs && !status.has_ended && !status.has_result);
    said.state = 2;
    exit.code = 3;
    completed.seconds = 1600000000;
    completed.nanos = 5;
    said.completed = &completed;
    assert_int_equal(
        external_read_status(bytes, task__inspect_answer__pack(&answer, bytes), &status, &err), 0);
    assert_true(!status.runs && status.has_ended && status.has_result);
    assert_int_equal(status.code, 3);
    assert_int_equal(status.finished_unix_ns, INT64_C(1600000000000000005));
    completed.seconds = -62135596800; /* Go's zero time */
    assert_int_equal(
        external_read_status(bytes, task__inspect_answer__pack(&answer, bytes), &status, &err), 0);
    assert_int_equal(status.finished_unix_ns, 0);
}

static void test_what_a_task_uses_is_what_makes_sense_of_what_is_said(void **state)
{
    Task__CpuUsage cpu = TASK__CPU_USAGE__INIT;
    Task__MemoryUsage memory = TASK__MEMORY_USAGE__INIT;
    Task__Used all = TASK__USED__INIT;
    Task__Duration at = TASK__DURATION__INIT;
    Task__Usage usage = TASK__USAGE__INIT;
    Task__UsageAnswer answer = TASK__USAGE_ANSWER__INIT;
    struct external_usage used;
    uint8_t bytes[128];
    struct err err = {0};
    (void)state;

    assert_int_equal(external_read_usage("", 0, &used, &err), ERR_INVALID);
    answer.usage = &usage;
    usage.all = &all;
    assert_int_equal(
        external_read_usage(bytes, task__usage_answer__pack(&answer, bytes), &used, &err), 0);
    assert_int_equal(used.stats.timestamp_unix_ns, 0);
    at.seconds = 1700000000;
    at.nanos = 7;
    usage.at = &at;
    cpu.percent = 250;
    cpu.user_percent = 200;
    cpu.system_percent = 50;
    cpu.throttled_periods = 3;
    cpu.throttled_ns = 5000;
    all.cpu = &cpu;
    memory.rss = 11;
    memory.cache = 12;
    memory.usage_max = 13;
    memory.usage = 14;
    memory.swap = 15;
    all.memory = &memory;
    assert_int_equal(
        external_read_usage(bytes, task__usage_answer__pack(&answer, bytes), &used, &err), 0);
    assert_int_equal(used.stats.timestamp_unix_ns, INT64_C(1700000000000000007));
    assert_true(used.stats.cpu_percent == 250);
    assert_true(used.user_percent == 200 && used.system_percent == 50);
    assert_int_equal(used.stats.usage.throttled_periods, 3);
    assert_int_equal(used.stats.usage.throttled_us, 5);
    assert_int_equal(used.stats.usage.memory_rss_bytes, 11);
    assert_int_equal(used.stats.usage.memory_cache_bytes, 12);
    assert_int_equal(used.stats.usage.memory_usage_bytes_max, 13);
    assert_int_equal(used.stats.usage.memory_usage_bytes, 14);
    assert_int_equal(used.stats.usage.memory_swap_bytes, 15);
    for (int i = 0; i < 3; i++) {
        cpu.percent = cpu.user_percent = (double[]){-1, 0.0 / 0.0, 1e300}[i];
        at.nanos = (int32_t[]){-1, 1000000000, 7}[i];
        assert_int_equal(
            external_read_usage(bytes, task__usage_answer__pack(&answer, bytes), &used, &err), 0);
        assert_true(used.stats.cpu_percent == 0 && used.user_percent == 0);
        assert_int_equal(used.stats.timestamp_unix_ns == 0, i < 2);
    }
}

/* Whether it is said that trying again may help. */
static bool is_recoverable(const char *type, bool recoverable)
{
    Task__Recoverable said = TASK__RECOVERABLE__INIT;
    Task__Any any = TASK__ANY__INIT, *details[] = {&any};
    Task__ErrorStatus status = TASK__ERROR_STATUS__INIT;
    uint8_t inner[8], bytes[256];
    struct grpc_reply reply = {.status = GRPC_FAILED_PRECONDITION,
                               .answered = true,
                               .sent = true,
                               .detail = "no luck",
                               .more = bytes};
    struct err err;

    said.recoverable = recoverable;
    any.type = text(type);
    any.value = (ProtobufCBinaryData){task__recoverable__pack(&said, inner), inner};
    status.details = details;
    status.n_details = 1;
    reply.more_length = task__error_status__pack(&status, bytes);
    (void)err_set(&reply.error, ERR_REFUSED, "FAILED_PRECONDITION: no luck");
    external_fault(&reply, "d", &err);
    assert_string_equal(err.text, "no luck");
    return err.recoverable;
}

static void test_only_what_a_driver_calls_recoverable_is(void **state)
{
    static const char type[] =
        "type.googleapis.com/hashicorp.nomad.plugins.shared.structs.RecoverableError";
    struct grpc_reply reply = {
        .status = GRPC_UNKNOWN, .answered = true, .sent = true, .detail = "x"};
    struct err err;
    (void)state;

    assert_true(is_recoverable(type, true));
    assert_false(is_recoverable(type, false));
    assert_false(is_recoverable("type.googleapis.com/google.rpc.DebugInfo", true));
    (void)err_set(&reply.error, ERR_IO, "UNKNOWN: x");
    reply.error.recoverable = true; /* whatever the status is */
    external_fault(&reply, "d", &err);
    assert_false(err.recoverable);
    /* Nobody has answered: that is no answer of the driver's. */
    reply.answered = false;
    external_fault(&reply, "d", &err);
    assert_true(err.recoverable);
    assert_non_null(strstr(err.text, "driver d"));
}

static void test_only_what_a_driver_says_it_does_not_know_is_unknown(void **state)
{
    struct grpc_reply reply = {.status = GRPC_UNKNOWN, .answered = true, .detail = ""};
    (void)state;

    assert_false(external_is_unknown(&reply));
    reply.detail = "rpc error: task not found for given id";
    assert_true(external_is_unknown(&reply));
    reply.answered = false;
    assert_false(external_is_unknown(&reply));
    reply = (struct grpc_reply){.status = GRPC_NOT_FOUND, .answered = true, .detail = ""};
    assert_true(external_is_unknown(&reply));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_start_without_a_handle_is_none),
        cmocka_unit_test(test_end_that_a_driver_could_not_see_has_no_code),
        cmocka_unit_test(test_state_is_what_a_driver_says),
        cmocka_unit_test(test_what_a_task_uses_is_what_makes_sense_of_what_is_said),
        cmocka_unit_test(test_only_what_a_driver_calls_recoverable_is),
        cmocka_unit_test(test_only_what_a_driver_says_it_does_not_know_is_unknown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
