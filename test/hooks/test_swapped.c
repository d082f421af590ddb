/* Hooks run as root in directories whose owner exchanges every name for a link all the while: what
 * they do may fail, and touches nothing outside the alloc's directory. */
#include "test/hooks/fixture.h"
#include "test/io/swapper.h"

enum { ROUNDS = 4000, ROUNDS_OF_ONE_ALLOC = 50 };

static void test_links_swapped_in_meanwhile_lead_nowhere(void **state)
{
    struct fixture *fixture = *state;
    struct swapper swapper = {.pid = 0};
    char shared[PATH_SIZE], task[PATH_SIZE];
    const struct swap swaps[] = {{shared, "logs"}, {shared, "data"},  {shared, "tmp"},
                                 {task, "local"},  {task, "secrets"}, {task, "tmp"}};
    unsigned worked = 0, failed = 0;

    need_root();
    fixture->task.user = "nobody";
    swapper_open(&swapper, &fixture->scratch);
    (void)text_copy(shared, sizeof(shared), in_alloc(fixture, "alloc"));
    (void)text_copy(task, sizeof(task), in_alloc(fixture, "web"));
    swapper_run(&swapper, swaps, COUNT_OF(swaps));
    for (unsigned round = 0; round < ROUNDS; round++) {
        if (round % ROUNDS_OF_ONE_ALLOC == 0 && destroy_alloc(fixture) == 0)
            (void)build_alloc(fixture);
        (void)prepare_logs(fixture);
        int code = build_task(fixture);
        worked += code == 0;
        failed += code != 0;
        (void)strip_task(fixture);
    }
    swapper_stop(&swapper);
    assert_outside_untouched(&swapper);
    print_message("%u of %d task directories were made, %u were not\n", worked, ROUNDS, failed);
    assert_true(worked > 0);
    assert_true(failed > 0); /* else nobody was in the way */
    assert_int_equal(destroy_alloc(fixture), 0);
    assert_outside_untouched(&swapper);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_links_swapped_in_meanwhile_lead_nowhere, fixture_make,
                                        fixture_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
