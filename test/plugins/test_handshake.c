/* The line by which a plugin says where it answers, as plugins in Go write it and as others do. */
#include "plugins/process/part.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_line_of_a_plugin_says_where_it_answers(void **state)
{
    static const char *const lines[] = {"1|2|unix|/tmp/plugin2907505324|grpc|",
                                        "1|2|unix|/tmp/plugin2907505324|grpc",
                                        "1|2|unix|/tmp/plugin2907505324|grpc||true"};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        char socket[PROCESS_SOCKET_MAX + 1];
        struct err err;

        assert_int_equal(handshake_read(lines[i], socket, &err), 0);
        assert_string_equal(socket, "/tmp/plugin2907505324");
    }
}

static void test_any_other_line_is_refused_for_good(void **state)
{
    char longest[8192], path[256];
    const struct {
        const char *line, *why;
    } wrong[] = {
        {"", "not that of a plugin"},
        {"hello", "not that of a plugin"},
        {"1|2|unix|/tmp/p", "not that of a plugin"},
        {"2|2|unix|/tmp/p|grpc|", "another core protocol"},
        {"1|3|unix|/tmp/p|grpc|", "another protocol of applications"},
        {"1|2|tcp|127.0.0.1:80|grpc|", "another network"},
        {"1|2|unix|/tmp/p|netrpc|", "another protocol than \"grpc\""},
        {"1|2|unix|tmp/p|grpc|", "no path"},
        {"1|2|unix||grpc|", "no path"},
        {path, "no path"},
        {longest, "too long"},
    };
    (void)state;

    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    assert_true(text_format(path, sizeof(path), "1|2|unix|/%0*d|grpc|", PROCESS_SOCKET_MAX, 0));
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        char socket[PROCESS_SOCKET_MAX + 1];
        struct err err = {0};

        assert_int_equal(handshake_read(wrong[i].line, socket, &err), ERR_INVALID);
        assert_false(err.recoverable);
        assert_non_null(strstr(err.text, wrong[i].why));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_line_of_a_plugin_says_where_it_answers),
        cmocka_unit_test(test_any_other_line_is_refused_for_good),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
