/* Routes: ids may contain slashes, and the more special path is found first. */
#include "agent/api/part.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void assert_route(const char *path, const char *route, const char *argument)
{
    char found[API_ARGUMENT_SIZE];
    const struct api_route *at = api_find_route(path, found);

    assert_non_null(at);
    assert_string_equal(at->path, route);
    assert_string_equal(found, argument);
}

static void test_route_that_does_not_exist_is_not_found(void **state)
{
    static const char *const paths[] = {
        "",
        "/",
        "/v1",
        "/v1/",
        "/v1/job/",
        "/v1/jobs/",
        "/v2/jobs",
        "/v1/node/",
        "/v1/jobsx",
        "/v1/client/fs/ls/",
        "/v1/client/allocation//stats",
    };
    char argument[API_ARGUMENT_SIZE];
    (void)state;

    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        const struct api_route *route = api_find_route(paths[i], argument);

        if (route != NULL)
            fail_msg("%s is found as %s", paths[i], route->path);
    }
}

/* What newer servers have, and what costs, is refused by its name; ids beside it are found. */
static void test_what_is_not_there_has_a_route_that_says_so(void **state)
{
    static const struct {
        const char *path, *route;
    } rows[] = {
        {"/v1/quotas", "/v1/quota*"},
        {"/v1/quota/usages", "/v1/quota*"},
        {"/v1/vars", "/v1/var*"},
        {"/v1/var/nomad/jobs", "/v1/var*"},
        {"/v1/recommendations", "/v1/recommendation*"},
        {"/v1/client/allocation/a1/pause", "/v1/client/allocation/*/pause"},
        {"/v1/node/pools", "/v1/node/pools"},
        {"/v1/node/pool/default/jobs", "/v1/node/pool/*"},
        {"/v1/namespace", "/v1/namespace"},
        {"/v1/sentinel/policies", "/v1/sentinel/*"},
    };
    char argument[API_ARGUMENT_SIZE];
    (void)state;

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct api_route *route = api_find_route(rows[i].path, argument);

        assert_non_null(route);
        assert_string_equal(route->path, rows[i].route);
        assert_ptr_equal(route->handle, api_unavailable);
    }
}

static void test_route_argument_longer_than_its_room_is_not_found(void **state)
{
    char path[2 * API_ARGUMENT_SIZE] = "/v1/job/", argument[API_ARGUMENT_SIZE];
    size_t before = strlen(path);
    (void)state;

    memset(path + before, 'x', API_ARGUMENT_SIZE);
    path[before + API_ARGUMENT_SIZE] = '\0';
    assert_null(api_find_route(path, argument));
    path[before + API_ARGUMENT_SIZE - 1] = '\0';
    assert_non_null(api_find_route(path, argument));
    assert_int_equal(strlen(argument), API_ARGUMENT_SIZE - 1);
}

static void test_route_job_ids_may_contain_slashes(void **state)
{
    (void)state;
    assert_route("/v1/job/web", "/v1/job/*", "web");
    assert_route("/v1/job/a/b", "/v1/job/*", "a/b");
    assert_route("/v1/job/a/b/allocations", "/v1/job/*/allocations", "a/b");
    assert_route("/v1/job/x/summary/summary", "/v1/job/*/summary", "x/summary");
    assert_route("/v1/job/a/b/versions/c/tag", "/v1/job/*/versions/*/tag", "a/b");
    assert_route("/v1/job/a/tag", "/v1/job/*", "a/tag");
    assert_route("/v1/job/a/versions//tag", "/v1/job/*", "a/versions//tag");
    assert_route("/v1/job/versions/c/tag", "/v1/job/*", "versions/c/tag");
}

static void test_route_each_has_a_handler_and_a_method(void **state)
{
    (void)state;
    for (size_t i = 0; i < api_routes_count; i++) {
        const char *star = strchr(api_routes[i].path, '*');

        assert_non_null(api_routes[i].handle);
        assert_int_not_equal(api_routes[i].need.scope, NEEDS_UNSAID);
        assert_true(api_routes[i].methods != 0);
        if (star != NULL && strchr(star + 1, '*') != NULL)
            assert_null(strchr(strchr(star + 1, '*') + 1, '*'));
        /* Only what reads may wait. */
        if (api_routes[i].blocks != BLOCKS_NOT)
            assert_int_equal(api_routes[i].methods, API_GET);
    }
}

/* No route is hidden by one that stands before it. */
static void test_route_each_can_be_reached(void **state)
{
    (void)state;
    for (size_t i = 0; i < api_routes_count; i++) {
        char path[256] = "", argument[API_ARGUMENT_SIZE];

        for (const char *at = api_routes[i].path; *at != '\0'; at++) {
            char letter[2] = {*at == '*' ? 'x' : *at, '\0'};
            assert_true(text_append(path, sizeof(path), letter));
        }
        const struct api_route *found = api_find_route(path, argument);
        assert_non_null(found);
        assert_string_equal(found->path, api_routes[i].path);
    }
}

static void assert_subject(const char *path, const char *namespace, enum life_subject_kind kind,
                           const char *id)
{
    char argument[API_ARGUMENT_SIZE];
    const struct api_route *route = api_find_route(path, argument);
    struct api_request request = {.argument = argument, .namespace = namespace};

    assert_non_null(route);
    struct life_subject subject = api_subject(&request, route);
    assert_int_equal(subject.kind, kind);
    if (kind == LIFE_EVERYTHING)
        return;
    assert_string_equal(subject.id, id);
    if (kind == LIFE_JOB)
        assert_string_equal(subject.namespace, namespace);
}

static void test_route_waits_for_what_its_argument_names(void **state)
{
    static const char alloc[] = "a1000001-0000-4000-8000-000000000001";
    char long_job[2 * SPEC_NAME_SIZE] = "/v1/job/", path[64];
    (void)state;

    assert_subject("/v1/jobs", "default", LIFE_EVERYTHING, NULL);
    assert_subject("/v1/allocations", "default", LIFE_EVERYTHING, NULL);
    assert_subject("/v1/job/a/b/summary", "default", LIFE_JOB, "a/b");
    assert_subject("/v1/job/web", "team", LIFE_JOB, "web");
    assert_subject("/v1/job/web/allocations", "*", LIFE_EVERYTHING, NULL);
    (void)snprintf(path, sizeof(path), "/v1/allocation/%s", alloc); /* it fits */
    assert_subject(path, "default", LIFE_ALLOC, alloc);
    assert_subject("/v1/allocation/web", "default", LIFE_EVERYTHING, NULL);
    assert_subject("/v1/evaluation/none", "default", LIFE_EVERYTHING, NULL);
    memset(long_job + strlen(long_job), 'x', SPEC_NAME_SIZE); /* no job is called so */
    assert_subject(long_job, "default", LIFE_EVERYTHING, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_route_that_does_not_exist_is_not_found),
        cmocka_unit_test(test_what_is_not_there_has_a_route_that_says_so),
        cmocka_unit_test(test_route_argument_longer_than_its_room_is_not_found),
        cmocka_unit_test(test_route_job_ids_may_contain_slashes),
        cmocka_unit_test(test_route_each_has_a_handler_and_a_method),
        cmocka_unit_test(test_route_each_can_be_reached),
        cmocka_unit_test(test_route_waits_for_what_its_argument_names),
    };

    return cmocka_run_group_tests_name("api_routes", tests, NULL, NULL);
}
