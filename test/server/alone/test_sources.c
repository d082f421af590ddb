/* What people wrote of jobs: kept with the version that was read of it, and gone with that. */
#include "test/server/small_life.h"

#define KEPT "secret/source/"

/* Registers NAME with COUNT allocs, read of TEXT (NULL: of none); what there is to remark, "" if
 * nothing, is good until the next one. */
static const char *submit(struct small_life *small, const char *name, int count, const char *text)
{
    static char remark[ERR_TEXT_SIZE];
    json_t *job = small_job(name, "/bin/a", count, 0);
    json_t *submission =
        text == NULL ? NULL
                     : json_pack("{s:s, s:s, s:s, s:{s:s}}", "Source", text, "Format", "hcl2",
                                 "Variables", "", "VariableFlags", "key", "hunter2");
    struct alone_evaluation evaluation;
    struct alone_wanted wanted;
    struct err err = {0};

    assert_int_equal(alone_read_job(alone_plans(small->alone), job, &wanted, NULL, &err), 0);
    assert_int_equal(alone_read_source(submission, &wanted, &err), 0);
    assert_int_equal(alone_register_read(small->alone, &wanted, &evaluation, &err), 0);
    (void)text_copy(remark, sizeof(remark), wanted.remark);
    alone_wanted_free(&wanted);
    json_decref(submission);
    json_decref(job);
    small_settle(small);
    return remark;
}

static void assert_source(struct small_life *small, const char *name, uint64_t version,
                          const char *text)
{
    json_t *source = alone_source(small->alone, small_find(small, name), version);

    if (text == NULL) {
        assert_null(source);
        return;
    }
    assert_non_null(source);
    assert_string_equal(json_string_value(json_object_get(source, "Source")), text);
    assert_string_equal(json_string_value(json_object_get(source, "Format")), "hcl2");
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(source, "VariableFlags"), "key")),
        "hunter2");
    assert_string_equal(json_string_value(json_object_get(source, "JobID")), name);
    assert_string_equal(json_string_value(json_object_get(source, "Namespace")), "default");
    assert_int_equal(json_integer_value(json_object_get(source, "Version")), version);
    json_decref(source);
}

static void test_each_version_has_its_own(void **state)
{
    struct small_life *small = *state;

    assert_string_equal(submit(small, "a/b", 1, "one"), "");
    assert_string_equal(submit(small, "a/b", 2, NULL), "");
    assert_string_equal(submit(small, "a/b", 3, "three"), "");
    for (int lives = 0; lives < 2; lives++) {
        assert_source(small, "a/b", 0, "one");
        assert_source(small, "a/b", 1, NULL);
        assert_source(small, "a/b", 2, "three");
        assert_source(small, "a/b", 3, NULL);
        assert_int_equal(small_specs_of(small, KEPT), 2);
        small_again(small);
        small_settle(small);
    }
}

/* As in Nomad: who submits the same job again has made no other version. */
static void test_same_job_keeps_its_first(void **state)
{
    struct small_life *small = *state;

    (void)submit(small, "j", 1, "first");
    (void)submit(small, "j", 1, "second");
    assert_source(small, "j", 0, "first");
    assert_int_equal(small_find(small, "j")->version, 0);
}

static void test_versions_that_are_not_kept_take_theirs_along(void **state)
{
    struct small_life *small = *state;
    char text[16];

    for (int i = 1; i <= 9; i++) {
        (void)text_format(text, sizeof(text), "text %d", i);
        (void)submit(small, "j", i, text);
    }
    assert_source(small, "j", 2, NULL);
    assert_source(small, "j", 3, "text 4");
    assert_source(small, "j", 8, "text 9");
    assert_int_equal(small_specs_of(small, KEPT), 6);
}

static void test_version_that_comes_again_has_the_same(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;
    struct err err = {0};

    (void)submit(small, "j", 1, "one");
    (void)submit(small, "j", 2, NULL);
    assert_int_equal(alone_revert(small->alone, small_find(small, "j"), 0, &evaluation, &err), 0);
    small_settle(small);
    assert_source(small, "j", 1, NULL);
    assert_source(small, "j", 2, "one");
}

/* Not a byte longer than it was, or a job would have more than any may and not be believed. */
static void test_largest_comes_again_as_it_was(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;
    struct err err = {0};
    static const char beside[] = "{\"Source\":\"\",\"Format\":\"hcl2\",\"Variables\":\"\","
                                 "\"VariableFlags\":{\"key\":\"hunter2\"}}";
    size_t length = JOB_SOURCE_BYTES_MAX - strlen(beside);
    char *large = malloc(length + 1);

    assert_non_null(large);
    memset(large, 'x', length);
    large[length] = '\0';
    assert_string_equal(submit(small, "j", 1, large), "");
    (void)submit(small, "j", 2, NULL);
    assert_int_equal(alone_revert(small->alone, small_find(small, "j"), 0, &evaluation, &err), 0);
    small_settle(small);
    small_again(small);
    small_settle(small);
    assert_source(small, "j", 2, large);
    free(large);
}

static void test_purged_job_leaves_none(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;
    struct err err = {0};

    (void)submit(small, "j", 1, "one");
    (void)submit(small, "j", 2, "two");
    assert_int_equal(small_specs_of(small, KEPT), 2);
    assert_int_equal(alone_deregister(small->alone, "default", "j", ALONE_PURGE, &evaluation, &err),
                     0);
    small_settle(small);
    assert_null(alone_find(small->alone, "default", "j"));
    assert_int_equal(small_specs_of(small, KEPT), 0);
}

static void test_failed_commit_keeps_what_was(void **state)
{
    struct small_life *small = *state;

    (void)submit(small, "j", 1, "one");
    small->commit_code = ERR_IO;
    (void)submit(small, "j", 2, "two");
    small->commit_code = 0;
    small->now_ms += 2000;
    small_settle(small);
    assert_source(small, "j", 0, "one");
    assert_source(small, "j", 1, NULL);
    assert_int_equal(small_specs_of(small, KEPT), 1);
}

/* A journal whose job was lost, or is older than what lies beside it. */
static void test_stray_ones_go_at_the_next_start(void **state)
{
    static const char *const strays[] = {KEPT "default/7/j", KEPT "default/0/gone",
                                         KEPT "default/x/j", KEPT "default", KEPT "other/0/j"};
    struct small_life *small = *state;

    (void)submit(small, "j", 1, "one");
    for (size_t i = 0; i < COUNT_OF(strays); i++)
        small_keep_spec(small, strays[i], "{}", 2);
    small_again(small);
    small_settle(small);
    assert_int_equal(small_specs_of(small, KEPT), 1);
    assert_source(small, "j", 0, "one");
}

/* Damage, or an import that leaves secrets out. */
static void test_one_that_is_lost_is_none(void **state)
{
    static const char *const damaged[] = {"", "[]", "{"};
    struct small_life *small = *state;

    (void)submit(small, "j", 1, "one");
    for (size_t i = 0; i < COUNT_OF(damaged); i++) {
        small_keep_spec(small, KEPT "default/0/j", damaged[i], strlen(damaged[i]));
        assert_source(small, "j", 0, NULL);
    }
    small_keep_spec(small, KEPT "default/0/j", NULL, 0);
    assert_source(small, "j", 0, NULL);
}

/* The job is what somebody asked for, with or without it. */
static void test_too_large_one_is_not_kept(void **state)
{
    struct small_life *small = *state;
    char *large = malloc(JOB_SOURCE_BYTES_MAX + 1);

    assert_non_null(large);
    memset(large, 'x', JOB_SOURCE_BYTES_MAX);
    large[JOB_SOURCE_BYTES_MAX] = '\0';
    assert_non_null(strstr(submit(small, "j", 1, large), "is not kept"));
    assert_int_equal(small_find(small, "j")->version, 0);
    assert_source(small, "j", 0, NULL);
    large[JOB_SOURCE_BYTES_MAX - 200] = '\0';
    assert_string_equal(submit(small, "j", 2, large), "");
    assert_source(small, "j", 1, large);

    /* As many as there is room for. */
    size_t kept = 1;
    char name[16];
    for (int i = 0; i < 300; i++) {
        (void)text_format(name, sizeof(name), "j%d", i);
        const char *remark = submit(small, name, 0, large);
        kept += remark[0] == '\0';
    }
    assert_int_equal(kept, NODE_SOURCES_BYTES_MAX / JOB_SOURCE_BYTES_MAX);
    assert_int_equal(small_specs_of(small, KEPT), kept);
    free(large);
}

static void test_what_is_none_is_refused(void **state)
{
    static const char *const texts[] = {"[]",
                                        "5",
                                        "\"text\"",
                                        "{\"Source\":5}",
                                        "{\"Source\":\"a\",\"Format\":{}}",
                                        "{\"Source\":\"a\",\"Variables\":[]}",
                                        "{\"Source\":\"a\",\"VariableFlags\":[]}",
                                        "{\"Source\":\"a\",\"VariableFlags\":{\"a\":5}}"};
    struct alone_wanted wanted = {0};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        json_t *submission = json_loads(texts[i], JSON_DECODE_ANY, NULL);
        struct err err = {0};

        assert_int_equal(alone_read_source(submission, &wanted, &err), ERR_INVALID);
        assert_non_null(strstr(err.text, "Submission"));
        json_decref(submission);
    }
    json_t *empty = json_pack("{s:s, s:n}", "Source", "", "VariableFlags");
    struct err err = {0};
    assert_int_equal(alone_read_source(empty, &wanted, &err), 0);
    assert_null(wanted.source);
    json_decref(empty);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SMALL_TEST(test_each_version_has_its_own),
        SMALL_TEST(test_same_job_keeps_its_first),
        SMALL_TEST(test_versions_that_are_not_kept_take_theirs_along),
        SMALL_TEST(test_version_that_comes_again_has_the_same),
        SMALL_TEST(test_largest_comes_again_as_it_was),
        SMALL_TEST(test_purged_job_leaves_none),
        SMALL_TEST(test_failed_commit_keeps_what_was),
        SMALL_TEST(test_stray_ones_go_at_the_next_start),
        SMALL_TEST(test_one_that_is_lost_is_none),
        SMALL_TEST(test_too_large_one_is_not_kept),
        SMALL_TEST(test_what_is_none_is_refused),
    };

    return cmocka_run_group_tests_name("sources", tests, NULL, NULL);
}
