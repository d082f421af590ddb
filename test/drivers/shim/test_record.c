/* Exit records as any shim may have written them, and as they are read (drivers/shim/record.h). */
#include "drivers/shim/record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

/* Sound, but with no NUL anywhere behind the text's beginning. */
static struct exit_record endless(void)
{
    struct exit_record record = {.kind = EXIT_ENDED, .code = 3};

    memset(record.message, 'x', sizeof(record.message));
    memset(&record.with_host, 'x', sizeof(record.with_host));
    record_seal(&record, RECORD_MAGIC_EXIT, sizeof(record));
    return record;
}

static void test_text_without_end_in_a_file_is_given_one(void **state)
{
    struct exit_record record = endless(), got;
    struct err err = {0};
    int fd = memfd_create("task", MFD_CLOEXEC);
    (void)state;

    assert_true(fd >= 0);
    assert_int_equal(task_file_begin(fd, &err), 0);
    assert_int_equal(exit_record_get(fd, &got, &err), ERR_GONE);
    assert_int_equal(task_file_put(fd, TASK_EXIT_AT, &record, false, &err), 0);
    assert_int_equal(exit_record_get(fd, &got, &err), 0);
    assert_int_equal(got.code, 3);
    assert_int_equal(strnlen(got.message, sizeof(got.message)), sizeof(got.message) - 1);
    assert_return_code(close(fd), 0);
}

static void test_text_without_end_in_a_message_is_given_one(void **state)
{
    struct exit_record record = endless(), got;
    (void)state;

    assert_false(exit_record_take(&record, sizeof(record) - 1, &got));
    assert_true(exit_record_take(&record, sizeof(record), &got));
    assert_int_equal(got.code, 3);
    assert_int_equal(strnlen(got.message, sizeof(got.message)), sizeof(got.message) - 1);
}

static void test_what_a_shorter_record_lacks_is_zero(void **state)
{
    struct exit_record record = endless(), got;
    (void)state;

    record_seal(&record, RECORD_MAGIC_EXIT, offsetof(struct exit_record, message));
    assert_true(exit_record_take(&record, sizeof(record), &got));
    assert_int_equal(got.code, 3);
    assert_string_equal(got.message, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_without_end_in_a_file_is_given_one),
        cmocka_unit_test(test_text_without_end_in_a_message_is_given_one),
        cmocka_unit_test(test_what_a_shorter_record_lacks_is_zero),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
