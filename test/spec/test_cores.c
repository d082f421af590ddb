/* Cores of tasks: in the text of an alloc, and as the kernel lists them. */
#include "spec/job.h"
#include "spec/names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static json_t *job_with(int first, int second)
{
    static struct jobspec_problems problems;
    json_t *job = NULL;
    json_t *raw =
        json_pack("{s:s, s:[{s:s, s:[{s:s, s:s, s:{s:i}}, {s:s, s:s, s:{s:i}}]}]}", "ID", "j",
                  "TaskGroups", "Name", "g", "Tasks", "Name", "a", "Driver", "exec", "Resources",
                  "Cores", first, "Name", "b", "Driver", "exec", "Resources", "Cores", second);

    assert_non_null(raw);
    if (jobspec_from_json("job", raw, &job, &problems) != 0)
        assert_non_null(strstr(problems.items[0], "cores of all tasks, there may be 1024"));
    json_decref(raw);
    return job;
}

static void test_cores_are_listed_as_the_kernel_does(void **state)
{
    static const uint16_t ids[] = {0, 1, 2, 7, 9, 10, 1023};
    static uint16_t odd[NODE_CORES_MAX / 2];
    char text[CORES_TEXT_SIZE];

    (void)state;
    spec_cores_text(ids, COUNT_OF(ids), text);
    assert_string_equal(text, "0-2,7,9-10,1023");
    spec_cores_text(ids, 1, text);
    assert_string_equal(text, "0");
    spec_cores_text(NULL, 0, text);
    assert_string_equal(text, "");
    for (size_t i = 0; i < COUNT_OF(odd); i++)
        odd[i] = (uint16_t)(2 * i + 1);
    spec_cores_text(odd, COUNT_OF(odd), text); /* the longest there is fits */
    assert_true(text_ends_with(text, ",1021,1023"));
}

static void test_alloc_has_the_cores_that_it_was_given(void **state)
{
    static const struct {
        const char *from, *to;
    } changes[] = {
        {"[1,2]", "[1]"},    {"[1,2]", "[2,1]"},     {"[1,2]", "[1,5]"}, {"[1,2]", "[1,1024]"},
        {"[1,2]", "[-1,2]"}, {"[1,2]", "[1,\"2\"]"}, {"[5]", "[]"},      {"ReservedCores", "Cores"},
        {"[5]", "{}"},       {"5200", "\"much\""},
    };
    struct spec_core items[] = {{"a", 1}, {"a", 2}, {"b", 5}};
    struct jobspec_placement placement = {.group = "g",
                                          .alloc_id = "0f3a3e5c-5f31-4a52-9f0e-0123456789ab",
                                          .eval_id = "",
                                          .datacenter = "dc1",
                                          .cores = {items, COUNT_OF(items), 2600}};
    json_t *job = job_with(2, 1);
    struct alloc_spec *spec = NULL;
    struct err err;
    char *text;
    size_t length;

    (void)state;
    assert_int_equal(jobspec_make_alloc(job, &placement, &text, &length, &spec, &err), 0);
    assert_int_equal(spec->tasks[0].resources.core_ids[1], 2);
    assert_int_equal(spec->tasks[1].resources.core_ids[0], 5);
    assert_int_equal(spec->tasks[0].resources.cpu_mhz, 5200);
    assert_int_equal(spec->tasks[1].resources.cpu_mhz, 2600);
    alloc_spec_free(spec);
    for (size_t i = 0; i < COUNT_OF(changes); i++) {
        char changed[4096], *found = strstr(text, changes[i].from);

        assert_non_null(found);
        int size = snprintf(changed, sizeof(changed), "%.*s%s%s", (int)(found - text), text,
                            changes[i].to, found + strlen(changes[i].from));
        assert_in_range(size, 1, sizeof(changed) - 1);
        if (jobspec_decode_alloc(changed, (size_t)size, &spec, &err) != ERR_CORRUPT)
            fail_msg("%s was accepted", changes[i].to);
    }
    free(text);
    json_decref(job);
}

static void test_number_of_cores_has_a_bound(void **state)
{
    json_t *job = job_with(1000, 24);

    (void)state;
    assert_non_null(job);
    json_decref(job);
    assert_null(job_with(1000, 25));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cores_are_listed_as_the_kernel_does),
        cmocka_unit_test(test_alloc_has_the_cores_that_it_was_given),
        cmocka_unit_test(test_number_of_cores_has_a_bound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
