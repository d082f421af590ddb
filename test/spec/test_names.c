/* What may be called how: each rule at its limit and one past it. */
#include "spec/names.h"

#include "base/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

typedef const char *fault_function(const char *text);

struct row {
    const char *text, *fault; /* NULL: a good name */
};

static void check_rows(fault_function *fault_of, const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *fault = fault_of(rows[i].text);

        if ((fault == NULL) != (rows[i].fault == NULL) ||
            (fault != NULL && strstr(fault, rows[i].fault) == NULL))
            fail_msg("\"%s\": %s, not %s", rows[i].text, fault == NULL ? "good" : fault,
                     rows[i].fault == NULL ? "good" : rows[i].fault);
    }
}

/* 95 bytes are a name, 96 are none, and the message tells the limit. */
static void check_length(fault_function *fault_of)
{
    char name[SPEC_NAME_MAX + 2];

    memset(name, 'a', sizeof(name));
    name[SPEC_NAME_MAX] = '\0';
    assert_null(fault_of(name));
    name[SPEC_NAME_MAX] = 'a';
    name[SPEC_NAME_MAX + 1] = '\0';
    assert_string_equal(fault_of(name), "is too long, it may have 95 bytes");
    assert_string_equal(fault_of(""), "must not be empty");
}

static void test_ids_of_jobs(void **state)
{
    static const struct row rows[] = {
        {"web", NULL},
        {"sync/periodic-1600000000", NULL},
        {"sync/dispatch-1633114568-bb3ee0a3", NULL},
        {"team/web/allocations", NULL},
        {"/", NULL},
        {"a\\b", NULL},
        {".web", NULL},
        {"a..b/...", NULL},
        {"gr\xc3\xbc\xc3\x9f"
         "e",
         NULL},
        {"two words", "spaces"},
        {".", "part"},
        {"..", "part"},
        {"a/./b", "part"},
        {"../b", "part"},
        {"a/..", "part"},
        {"a\tb", "control"},
        {"a\x7f", "control"},
    };

    (void)state;
    check_rows(spec_job_id_fault, rows, COUNT_OF(rows));
    check_length(spec_job_id_fault);
}

static void test_names_of_groups(void **state)
{
    static const struct row rows[] = {
        {"web", NULL}, {"two words", NULL}, {"a/b", NULL}, {"..", NULL}, {"a\nb", "control"},
    };

    (void)state;
    check_rows(spec_group_name_fault, rows, COUNT_OF(rows));
    check_length(spec_group_name_fault);
}

static void test_names_of_tasks(void **state)
{
    static const struct row rows[] = {
        {"web", NULL},      {"two words", NULL}, {"web.", NULL},         {"a..b", NULL},
        {"allocs", NULL},   {".web", "dot"},     {".", "dot"},           {"..", "dot"},
        {"a/b", "slashes"}, {"a\\b", "slashes"}, {"alloc", "\"alloc\""}, {"a\x1f", "control"},
        {"a\x20", NULL},
    };

    (void)state;
    check_rows(spec_task_name_fault, rows, COUNT_OF(rows));
    check_length(spec_task_name_fault);
}

static void test_names_of_namespaces(void **state)
{
    static const struct row rows[] = {
        {"default", NULL},        {"Team-7", NULL},           {"-", NULL},
        {"a/b", "letters"},       {"a_b", "letters"},         {"a.b", "letters"},
        {"two words", "letters"}, {"gr\xc3\xbcn", "letters"},
    };

    (void)state;
    check_rows(spec_namespace_fault, rows, COUNT_OF(rows));
    check_length(spec_namespace_fault);
}

static void test_hostnames(void **state)
{
    static const struct row rows[] = {
        {"a", NULL},
        {"web-1.example.COM", NULL},
        {"1", NULL},
        {"", "is letters"},
        {".", "is letters"},
        {"a.", "is letters"},
        {"a..b", "is letters"},
        {"-a", "is letters"},
        {"a-.b", "is letters"},
        {"a_b", "is letters"},
        {"a b", "is letters"},
        {"${meta.x}", "is letters"},
        {"a23456789012345678901234567890123456789012345678901234567890123", NULL},
        {"a234567890123456789012345678901234567890123456789012345678901234", "is letters"},
        {"a2345678901234567890123456789012345678901.3456789012345678901234", NULL},
        {"a2345678901234567890123456789012345678901.34567890123456789012345", "64 bytes"},
    };

    (void)state;
    check_rows(spec_hostname_fault, rows, COUNT_OF(rows));
}

static void test_the_longest_name_of_an_alloc_fits(void **state)
{
    char longest[SPEC_NAME_SIZE], name[SPEC_ALLOC_NAME_SIZE];

    (void)state;
    memset(longest, 'a', SPEC_NAME_MAX);
    longest[SPEC_NAME_MAX] = '\0';
    spec_alloc_name(name, longest, longest, UINT32_MAX);
    assert_true(text_ends_with(name, "a[4294967295]"));
    spec_alloc_name(name, "a/b", "g", 0);
    assert_string_equal(name, "a/b.g[0]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids_of_jobs),
        cmocka_unit_test(test_names_of_groups),
        cmocka_unit_test(test_names_of_tasks),
        cmocka_unit_test(test_names_of_namespaces),
        cmocka_unit_test(test_hostnames),
        cmocka_unit_test(test_the_longest_name_of_an_alloc_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
