/* Where a path is that a task is given: its own directory, its alloc's, or nowhere that it may go.
 */
#include "hooks/part.h"
#include "spec/names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct hooks_view on_host = {"web", "/allocs/a1/web", "/allocs/a1/alloc"};
static const struct hooks_view isolated = {"web", "", "/alloc"};

static void assert_place(const struct hooks_view *view, const char *path, const char *wanted,
                         bool shared)
{
    struct arena arena = {0};
    struct hooks_place place = {0};

    if (!hooks_place(view, path, &arena, &place))
        fail_msg("%s is nowhere", path);
    assert_string_equal(place.path, wanted);
    assert_int_equal(place.shared, shared);
    arena_free(&arena);
}

static void assert_nowhere(const struct hooks_view *view, const char *path)
{
    struct arena arena = {0};
    struct hooks_place place = {0};

    if (hooks_place(view, path, &arena, &place))
        fail_msg("%s is at %s%s", path, place.shared ? "shared " : "", place.path);
    arena_free(&arena);
}

static void test_what_leads_elsewhere_is_nowhere(void **state)
{
    static const char *const paths[] = {
        "..",          "../",         "../..",           "../other/local", "local/../../other",
        "../../alloc", "../alloc/..", "../alloc/../x",   "../allocs",      "../web2/local",
        "../webs",     "../.",        "../../../../etc", "./.././x",
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        assert_nowhere(&on_host, paths[i]);
        assert_nowhere(&isolated, paths[i]);
    }
    assert_nowhere(&on_host, "/allocs/a1/web/../other/x");
    assert_nowhere(&on_host, "/allocs/a1/alloc/../x");
    assert_nowhere(&on_host, "/allocs/a1/alloc/../../a2/alloc");
    assert_nowhere(&isolated, "/alloc/../x");
    assert_nowhere(&isolated, "/../other/x");
}

static void test_paths_are_from_the_tasks_directory_on(void **state)
{
    (void)state;
    assert_place(&on_host, "local/a", "local/a", false);
    assert_place(&on_host, "", "", false);
    assert_place(&on_host, "./local//a/", "local/a", false);
    assert_place(&on_host, "local/../secrets/a", "secrets/a", false);
    assert_place(&on_host, "../web/local/a", "local/a", false);
    assert_place(&on_host, "/etc/passwd", "etc/passwd", false);
    assert_place(&on_host, "/allocs/a1/web/local/a", "local/a", false);
    assert_place(&on_host, "/allocs/a1/webs/a", "allocs/a1/webs/a", false);
    assert_place(&on_host, "alloc/a", "alloc/a", false);
    assert_place(&isolated, "/local/a", "local/a", false);
    assert_place(&isolated, "local/..a/...", "local/..a/...", false);
}

static void test_directory_of_the_alloc_is_reached_by_all_its_names(void **state)
{
    (void)state;
    assert_place(&on_host, "../alloc/data/a", "data/a", true);
    assert_place(&on_host, "local/../../alloc/./a", "a", true);
    assert_place(&on_host, "../alloc", "", true);
    assert_place(&on_host, "/allocs/a1/alloc/data/a", "data/a", true);
    assert_place(&on_host, "/allocs/a1/web/../alloc/a", "a", true);
    assert_place(&isolated, "../alloc/a", "a", true);
    assert_place(&isolated, "/alloc/a", "a", true);
    assert_place(&isolated, "alloc/a", "a", true); /* mounted there */
    assert_place(&isolated, "/local/../alloc/a", "a", true);
}

static void test_what_leaves_the_alloc_is_seen_in_the_job(void **state)
{
    (void)state;
    assert_false(spec_leaves_alloc("local/a"));
    assert_false(spec_leaves_alloc("../alloc/a"));
    assert_false(spec_leaves_alloc("${NOMAD_ALLOC_DIR}/../x"));
    assert_false(spec_leaves_alloc("/local/../.."));
    assert_true(spec_leaves_alloc("../.."));
    assert_true(spec_leaves_alloc("../../alloc"));
    assert_true(spec_leaves_alloc("local/../../../etc"));
    assert_true(spec_leaves_alloc("./../.././x"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_leads_elsewhere_is_nowhere),
        cmocka_unit_test(test_paths_are_from_the_tasks_directory_on),
        cmocka_unit_test(test_directory_of_the_alloc_is_reached_by_all_its_names),
        cmocka_unit_test(test_what_leaves_the_alloc_is_seen_in_the_job),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
