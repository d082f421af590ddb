/* Files of an alloc: nothing outside it is opened, no secret is read, logs go on over rotations. */
#include "agent/api/streams/files.h"
#include "test/io/scratch.h"

/* An alloc's directory `a` with a task `web`, and beside it a file that is nobody's business. */
static int set_up(void **state)
{
    static const char *const directories[] = {
        "a", "a/alloc", "a/alloc/logs", "a/web", "a/web/local", "a/web/secrets", "a/alloc/secrets",
    };
    int code = scratch_make(state);
    struct scratch *scratch = *state;

    for (size_t i = 0; i < COUNT_OF(directories); i++)
        assert_return_code(mkdir(at(scratch, directories[i]), 0755), 0);
    put_file(at(scratch, "outside"), "outside");
    put_file(at(scratch, "a/web/local/file"), "inside");
    put_file(at(scratch, "a/web/secrets/token"), "secret");
    put_file(at(scratch, "a/alloc/secrets/shared"), "shared");
    return code;
}

static int open_file(struct scratch *scratch, const char *path)
{
    char root[PATH_SIZE];
    int fd = -1;

    assert_int_equal(path_join(root, scratch->path, "a"), 0);
    int code = api_file_open(root, path, &fd, &scratch->err);
    if (code == 0)
        assert_return_code(close(fd), 0);
    else
        assert_int_equal(fd, -1); /* untouched */
    return code;
}

static void make_link(struct scratch *scratch, const char *to, const char *from)
{
    assert_return_code(symlink(to, at(scratch, from)), 0);
}

static void test_open_what_leads_outside_is_refused(void **state)
{
    struct scratch *scratch = *state;
    char absolute[PATH_SIZE];

    assert_int_equal(path_join(absolute, scratch->path, "outside"), 0);
    make_link(scratch, "../../../outside", "a/web/local/up");
    make_link(scratch, absolute, "a/web/local/absolute");
    make_link(scratch, "../../..", "a/web/local/directory");
    make_link(scratch, "/proc/self/cwd", "a/web/local/magic");
    assert_int_equal(open_file(scratch, "../outside"), ERR_REFUSED);
    assert_non_null(strstr(scratch->err.text, "escapes the alloc directory"));
    assert_int_equal(open_file(scratch, "/../outside"), ERR_REFUSED);
    assert_int_equal(open_file(scratch, "web/../../outside"), ERR_REFUSED);
    assert_int_equal(open_file(scratch, "web/local/up"), ERR_REFUSED);
    assert_int_equal(open_file(scratch, "web/local/absolute"), ERR_REFUSED);
    assert_int_equal(open_file(scratch, "web/local/directory/outside"), ERR_REFUSED);
    assert_int_equal(open_file(scratch, "web/local/magic/README.md"), ERR_REFUSED);
}

static void test_open_secret_is_refused_by_every_name(void **state)
{
    struct scratch *scratch = *state;

    make_link(scratch, "../secrets/token", "a/web/local/link");
    make_link(scratch, "secrets", "a/web/open");
    put_file(at(scratch, "a/.daemons"), "secret");
    assert_int_equal(open_file(scratch, ".daemons"), ERR_REFUSED);
    assert_int_equal(open_file(scratch, "web/../.daemons"), ERR_REFUSED);
    assert_int_equal(open_file(scratch, "web/secrets/token"), ERR_REFUSED);
    assert_non_null(strstr(scratch->err.text, "Reading secret file prohibited"));
    assert_int_equal(open_file(scratch, "/web//./secrets/token"), ERR_REFUSED);
    assert_int_equal(open_file(scratch, "alloc/../web/secrets/token"), ERR_REFUSED);
    assert_int_equal(open_file(scratch, "web/local/link"), ERR_REFUSED);
    assert_int_equal(open_file(scratch, "web/open/token"), ERR_REFUSED);
    /* Only a task's own directory of that name is one. */
    assert_int_equal(open_file(scratch, "alloc/secrets/shared"), 0);
}

static void test_open_what_is_no_file_is_refused_without_waiting(void **state)
{
    struct scratch *scratch = *state;

    assert_return_code(mkfifo(at(scratch, "a/web/local/fifo"), 0600), 0);
    assert_int_equal(open_file(scratch, "web/local/fifo"), ERR_INVALID);
    assert_int_equal(open_file(scratch, "web/local"), ERR_INVALID);
    assert_int_equal(open_file(scratch, "/"), ERR_INVALID);
    assert_int_equal(open_file(scratch, "web/none"), ERR_GONE);
    assert_int_equal(open_file(scratch, "web/local/file/below"), ERR_GONE);
}

static void test_open_links_that_stay_inside_are_followed(void **state)
{
    struct scratch *scratch = *state;

    make_link(scratch, "../web/local/file", "a/alloc/link");
    assert_int_equal(open_file(scratch, "web/local/file"), 0);
    assert_int_equal(open_file(scratch, "/alloc/link"), 0);
}

static void test_list_shows_links_and_secrets_by_name_only(void **state)
{
    struct scratch *scratch = *state;
    char root[PATH_SIZE];
    json_t *infos = NULL;

    assert_int_equal(path_join(root, scratch->path, "a"), 0);
    make_link(scratch, "/etc/passwd", "a/web/secrets/passwd");
    assert_int_equal(api_file_list(root, "web/secrets", &infos, &scratch->err), 0);
    assert_int_equal(json_array_size(infos), 2);
    const json_t *link = json_array_get(infos, 0), *file = json_array_get(infos, 1);
    assert_string_equal(json_string_value(json_object_get(link, "Name")), "passwd");
    assert_string_equal(json_string_value(json_object_get(link, "FileMode")), "Lrwxrwxrwx");
    assert_string_equal(json_string_value(json_object_get(file, "Name")), "token");
    assert_int_equal(json_integer_value(json_object_get(file, "Size")), 6);
    json_decref(infos);
    assert_int_equal(api_file_list(root, "..", &infos, &scratch->err), ERR_REFUSED);
    assert_int_equal(api_file_list(root, "web/local/file", &infos, &scratch->err), ERR_GONE);
}

static void test_stat_tells_text_from_other_bytes_but_not_of_secrets(void **state)
{
    struct scratch *scratch = *state;
    char root[PATH_SIZE];
    json_t *info = NULL;

    assert_int_equal(path_join(root, scratch->path, "a"), 0);
    put_file(at(scratch, "a/web/local/binary"), "\x7f"
                                                "ELF\xff\xfe");
    assert_int_equal(api_file_stat(root, "/web/local/file", &info, &scratch->err), 0);
    assert_string_equal(json_string_value(json_object_get(info, "Name")), "file");
    assert_string_equal(json_string_value(json_object_get(info, "ContentType")),
                        "text/plain; charset=utf-8");
    json_decref(info);
    assert_int_equal(api_file_stat(root, "web/local/binary", &info, &scratch->err), 0);
    assert_string_equal(json_string_value(json_object_get(info, "ContentType")),
                        "application/octet-stream");
    json_decref(info);
    assert_int_equal(api_file_stat(root, "web/secrets/token", &info, &scratch->err), 0);
    assert_string_equal(json_string_value(json_object_get(info, "ContentType")), "");
    json_decref(info);
    assert_int_equal(api_file_stat(root, "web/local", &info, &scratch->err), 0);
    assert_true(json_is_true(json_object_get(info, "IsDir")));
    json_decref(info);
}

/* --- logs --- */

static struct api_log make_log(struct scratch *scratch, char root[PATH_SIZE])
{
    assert_int_equal(path_join(root, scratch->path, "a"), 0);
    put_file(at(scratch, "a/alloc/logs/web.stdout.9"), "0123456789"); /* 10 bytes */
    put_file(at(scratch, "a/alloc/logs/web.stdout.10"), "abcde");     /* 5 */
    put_file(at(scratch, "a/alloc/logs/web.stdout.12"), "ABCDEFGH");  /* 8; 11 is missing */
    put_file(at(scratch, "a/alloc/logs/web.stderr.30"), "other");
    put_file(at(scratch, "a/alloc/logs/web2.stdout.40"), "other");
    put_file(at(scratch, "a/alloc/logs/web.stdout.50x"), "other");
    put_file(at(scratch, "a/alloc/logs/web.stdout."), "other");
    return (struct api_log){.root = root, .task = "web", .type = "stdout"};
}

static void test_log_that_is_not_there_is_named(void **state)
{
    struct scratch *scratch = *state;
    char root[PATH_SIZE];
    struct api_log log = make_log(scratch, root);
    struct api_log_place place;

    log.task = "none";
    assert_int_equal(api_log_find(&log, 0, false, &place, &scratch->err), ERR_GONE);
    assert_string_equal(scratch->err.text,
                        "log entry for task \"none\" and log type \"stdout\" not found");
}

static void test_log_offsets_count_over_all_files(void **state)
{
    struct scratch *scratch = *state;
    char root[PATH_SIZE];
    struct api_log log = make_log(scratch, root);
    static const struct {
        bool from_end;
        int64_t offset, number, place;
    } cases[] = {
        {false, 0, 9, 0},   {false, 9, 9, 9},   {false, 10, 10, 0},      {false, 14, 10, 4},
        {false, 15, 12, 0}, {false, 99, 12, 8}, {false, -5, 9, 0},       {true, 0, 12, 8},
        {true, 8, 12, 0},   {true, 9, 10, 4},   {true, 13, 10, 0},       {true, 14, 9, 9},
        {true, 23, 9, 0},   {true, 99, 9, 0},   {true, INT64_MAX, 9, 0},
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct api_log_place place;

        assert_int_equal(
            api_log_find(&log, cases[i].offset, cases[i].from_end, &place, &scratch->err), 0);
        assert_int_equal(place.number, cases[i].number);
        assert_int_equal(place.offset, cases[i].place);
        assert_int_equal(place.last, 12);
    }
}

static void test_log_next_skips_what_was_rotated_away(void **state)
{
    struct scratch *scratch = *state;
    char root[PATH_SIZE];
    struct api_log log = make_log(scratch, root);
    int64_t next = 0;

    assert_int_equal(api_log_next(&log, -1, &next, &scratch->err), 0);
    assert_int_equal(next, 9);
    assert_int_equal(api_log_next(&log, 10, &next, &scratch->err), 0);
    assert_int_equal(next, 12);
    assert_int_equal(api_log_next(&log, 12, &next, &scratch->err), ERR_GONE);
    assert_int_equal(next, 12); /* untouched */
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, scratch_remove)
    const struct CMUnitTest tests[] = {
        TEST(test_open_what_leads_outside_is_refused),
        TEST(test_open_secret_is_refused_by_every_name),
        TEST(test_open_what_is_no_file_is_refused_without_waiting),
        TEST(test_open_links_that_stay_inside_are_followed),
        TEST(test_list_shows_links_and_secrets_by_name_only),
        TEST(test_stat_tells_text_from_other_bytes_but_not_of_secrets),
        TEST(test_log_that_is_not_there_is_named),
        TEST(test_log_offsets_count_over_all_files),
        TEST(test_log_next_skips_what_was_rotated_away),
    };

    return cmocka_run_group_tests_name("api_files", tests, NULL, NULL);
}
