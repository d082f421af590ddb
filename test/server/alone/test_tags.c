/* Tags: names of versions, by which they are kept whatever comes after them. */
#include "test/server/small_life.h"

static int tag(struct small_life *small, const char *name, uint64_t version, struct err *err)
{
    json_t *tag = NULL;
    int code = alone_tag(small->alone,
                         &(struct alone_tag){.namespace = "default",
                                             .job_id = "j",
                                             .name = name,
                                             .description = "words",
                                             .version = version},
                         &tag, err);

    if (code == 0) {
        assert_string_equal(json_string_value(json_object_get(tag, "Name")), name);
        assert_string_equal(json_string_value(json_object_get(tag, "Description")), "words");
        assert_true(json_integer_value(json_object_get(tag, "TaggedTime")) > 0);
    }
    json_decref(tag);
    return code;
}

static void assert_refused(struct small_life *small, const char *name, uint64_t version, int code,
                           const char *words)
{
    struct err err = {0};

    assert_int_equal(tag(small, name, version, &err), code);
    if (strstr(err.text, words) == NULL)
        fail_msg("%s", err.text);
}

/* The numbers of the versions that are kept, the newest first, each with its tag: "3 1=a". */
static const char *kept(struct small_life *small)
{
    static char text[512];
    struct alone_job version;

    text[0] = '\0';
    for (size_t i = 0; alone_version(small_find(small, "j"), i, &version); i++) {
        const json_t *own = json_object_get(version.job, "VersionTag");
        const char *name = json_string_value(json_object_get(own, "Name"));
        char one[160];

        assert_true(text_format(one, sizeof(one), "%s%llu%s%s", i > 0 ? " " : "",
                                (unsigned long long)version.version, name == NULL ? "" : "=",
                                name == NULL ? "" : name));
        assert_true(text_append(text, sizeof(text), one));
    }
    return text;
}

/* Versions of "j" up to NUMBER, each by another count. */
static void run_up_to(struct small_life *small, uint64_t number)
{
    while (alone_find(small->alone, "default", "j") == NULL ||
           small_find(small, "j")->version < number) {
        const struct alone_job *job = alone_find(small->alone, "default", "j");
        small_run(small, "j", "/bin/a", job == NULL ? 1 : (int)job->version + 2, 0);
    }
}

static void test_version_with_one_is_kept(void **state)
{
    struct small_life *small = *state;
    struct err err = {0};

    run_up_to(small, 1);
    assert_int_equal(tag(small, "first", 0, &err), 0);
    assert_int_equal(tag(small, "second", 1, &err), 0);
    small_settle(small);
    assert_string_equal(kept(small), "1=second 0=first");
    run_up_to(small, 9);
    for (int lives = 0; lives < 2; lives++) {
        assert_string_equal(kept(small), "9 8 7 6 5 4 1=second 0=first");
        small_again(small);
        small_settle(small);
    }
    assert_int_equal(alone_untag(small->alone, "default", "j", "first", &err), 0);
    small_settle(small);
    assert_string_equal(kept(small), "9 8 7 6 5 4 1=second 0");
    run_up_to(small, 10);
    assert_string_equal(kept(small), "10 9 8 7 6 5 1=second");
}

/* Neither the next version, nor the one that comes again, nor the same job once more has the name
 * of the one before. */
static void test_name_is_of_one_version(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;
    struct err err = {0};

    run_up_to(small, 1);
    assert_int_equal(tag(small, "golden", 0, &err), 0);
    small_settle(small);
    assert_refused(small, "golden", 1, ERR_INVALID,
                   "tag \"golden\" already exists on a different version of job \"j\"");
    assert_int_equal(tag(small, "golden", 0, &err), 0);
    assert_int_equal(tag(small, "other", 0, &err), 0); /* in the place of that */
    small_settle(small);
    assert_string_equal(kept(small), "1 0=other");
    assert_int_equal(alone_revert(small->alone, small_find(small, "j"), 0, &evaluation, &err), 0);
    small_settle(small);
    assert_string_equal(kept(small), "2 1 0=other");
    assert_int_equal(tag(small, "newest", 2, &err), 0);
    small_settle(small);
    small_run(small, "j", "/bin/a", 1, 0); /* as it is */
    assert_string_equal(kept(small), "2=newest 1 0=other");
    small_run(small, "j", "/bin/b", 1, 0);
    assert_string_equal(kept(small), "3 2=newest 1 0=other");
}

static void test_newest_is_named_without_its_number(void **state)
{
    struct small_life *small = *state;
    struct alone_tag latest = {
        .namespace = "default", .job_id = "j", .name = "last", .description = "", .latest = true};
    struct err err = {0};
    json_t *said;

    run_up_to(small, 2);
    assert_int_equal(alone_tag(small->alone, &latest, &said, &err), 0);
    json_decref(said);
    small_settle(small);
    assert_string_equal(kept(small), "2=last 1 0");
}

static void test_what_is_not_there_has_no_name(void **state)
{
    struct small_life *small = *state;
    char name[SPEC_NAME_SIZE + 1];
    struct err err = {0};

    assert_refused(small, "a", 0, ERR_GONE, "job \"j\" version 0 not found");
    run_up_to(small, 0);
    assert_refused(small, "a", 1, ERR_GONE, "job \"j\" version 1 not found");
    assert_refused(small, "", 0, ERR_INVALID, "1 to 95 bytes");
    memset(name, 'x', SPEC_NAME_SIZE);
    name[SPEC_NAME_SIZE] = '\0';
    assert_refused(small, name, 0, ERR_INVALID, "1 to 95 bytes");
    assert_int_equal(alone_untag(small->alone, "default", "j", "a", &err), ERR_GONE);
    assert_string_equal(err.text, "tag \"a\" not found on job \"j\"");
    assert_int_equal(alone_untag(small->alone, "default", "other", "a", &err), ERR_GONE);
}

static void test_so_many_have_one(void **state)
{
    struct small_life *small = *state;
    char name[16];
    struct err err = {0};

    for (uint64_t i = 0; i < 16; i++) {
        run_up_to(small, i);
        (void)text_format(name, sizeof(name), "t%llu", (unsigned long long)i);
        assert_int_equal(tag(small, name, i, &err), 0);
    }
    small_settle(small);
    run_up_to(small, 16);
    assert_refused(small, "t16", 16, ERR_LIMIT, "16 versions of the job have tags");
    assert_int_equal(tag(small, "t0", 0, &err), 0); /* it has it */
}

/* A job of about a MiB, each version another one. */
static int post_large(struct small_life *small, int number, struct err *err)
{
    char *word = malloc((1 << 20) + 1);
    struct alone_evaluation evaluation;

    assert_non_null(word);
    memset(word, 'a' + number, 1 << 20);
    word[1 << 20] = '\0';
    json_t *job = small_job("j", "/bin/a", 1, 0);
    assert_int_equal(json_object_set_new(job, "Meta", json_pack("{s:s}", "word", word)), 0);
    int code = alone_register(small->alone, job, &evaluation, NULL, err);
    json_decref(job);
    free(word);
    small_settle(small);
    return code;
}

/* Nothing that was to be kept is forgotten: who wants more takes a name away. */
static void test_job_whose_named_versions_leave_no_room_is_refused(void **state)
{
    struct small_life *small = *state;
    struct err err = {0};
    int number = 0;

    for (; post_large(small, number, &err) == 0; number++) {
        assert_int_equal(tag(small, (char[]){(char)('a' + number), '\0'}, (uint64_t)number, &err),
                         0);
        small_settle(small);
    }
    assert_non_null(strstr(err.text, "leave no room for another: take a tag away"));
    assert_string_equal(kept(small), "2=c 1=b 0=a");
    assert_int_equal(alone_untag(small->alone, "default", "j", "b", &err), 0);
    small_settle(small);
    assert_int_equal(post_large(small, number, &err), 0);
    assert_string_equal(kept(small), "3 2=c 0=a");
}

static void test_failed_commit_names_nothing(void **state)
{
    struct small_life *small = *state;
    struct err err = {0};

    run_up_to(small, 1);
    small->commit_code = ERR_IO;
    assert_int_equal(tag(small, "a", 0, &err), 0);
    small_settle(small);
    small->commit_code = 0;
    small->now_ms += 2000;
    small_settle(small);
    assert_string_equal(kept(small), "1 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SMALL_TEST(test_version_with_one_is_kept),
        SMALL_TEST(test_name_is_of_one_version),
        SMALL_TEST(test_newest_is_named_without_its_number),
        SMALL_TEST(test_what_is_not_there_has_no_name),
        SMALL_TEST(test_so_many_have_one),
        SMALL_TEST(test_job_whose_named_versions_leave_no_room_is_refused),
        SMALL_TEST(test_failed_commit_names_nothing),
    };

    return cmocka_run_group_tests_name("tags", tests, NULL, NULL);
}
