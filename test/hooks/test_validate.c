/* Users no task may run as: for the drivers that isolate, under whatever name they come. */
#include "test/hooks/fixture.h"

static int validate(struct fixture *fixture, const char *driver, const char *user)
{
    fixture->task.driver = driver;
    fixture->task.user = user;
    return run_hook(fixture, PHASE_PRESTART, TASK_HOOK_VALIDATE, &fixture->task);
}

static bool is_planned(struct fixture *fixture, const char *driver)
{
    struct task_define define = {0};

    fixture->task.driver = driver;
    hooks_plan_task(&fixture->alloc, &fixture->task, fixture_driver(NULL, fixture->task.driver),
                    &define);
    return (define.hooks_prestart >> TASK_HOOK_VALIDATE & 1u) != 0;
}

static void test_validate_refuses_users_of_the_list(void **state)
{
    struct fixture *fixture = *state;

    start_hooks(fixture, "root,Administrator");
    assert_int_equal(validate(fixture, "exec", "root"), ERR_REFUSED);
    assert_outcome(fixture, ERR_REFUSED, false, "running as user \"root\" is disallowed");
    assert_int_equal(validate(fixture, "checked", "Administrator"), ERR_REFUSED);
    assert_int_equal(validate(fixture, "exec", "root2"), 0);
    assert_int_equal(validate(fixture, "exec", ""), 0);
}

static void test_validate_refuses_what_a_variable_hides(void **state)
{
    struct fixture *fixture = *state;
    struct spec_pair meta = {"who", "root"};

    start_hooks(fixture, "root,Administrator");
    fixture->task.meta = (struct spec_pairs){&meta, 1};
    assert_int_equal(validate(fixture, "exec", "${NOMAD_META_who}"), ERR_REFUSED);
    assert_outcome(fixture, ERR_REFUSED, false, "running as user \"root\" is disallowed");
    meta.value = "daemon";
    assert_int_equal(validate(fixture, "exec", "${NOMAD_META_who}"), 0);
}

static void test_validate_takes_the_list_it_is_given(void **state)
{
    struct fixture *fixture = *state;

    start_hooks(fixture, "bin, daemon ,games");
    assert_int_equal(validate(fixture, "exec", "daemon"), ERR_REFUSED);
    assert_int_equal(validate(fixture, "exec", "root"), 0);
    start_hooks(fixture, "");
    assert_int_equal(validate(fixture, "exec", "daemon"), 0);
}

static void test_validate_is_for_the_drivers_that_isolate(void **state)
{
    struct fixture *fixture = *state;

    assert_true(is_planned(fixture, "exec"));
    assert_true(is_planned(fixture, "checked"));
    assert_false(is_planned(fixture, "raw_exec"));
    assert_false(is_planned(fixture, "docker"));
    assert_false(is_planned(fixture, "somebody-else's"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_make, fixture_remove)
        TEST(test_validate_refuses_users_of_the_list),
        TEST(test_validate_refuses_what_a_variable_hides),
        TEST(test_validate_takes_the_list_it_is_given),
        TEST(test_validate_is_for_the_drivers_that_isolate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
