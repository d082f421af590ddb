/* Log files in a directory that its payload exchanges for links, moves and fills with surprises. */
#include "test/io/swapper.h"

#include "drivers/shim/log.c"

enum { ROUNDS = 20000, FILE_BYTES = 200 };

static const char line[] = "thirty-two bytes of what is said\n";

static struct log_settings settings_of(struct scratch *scratch)
{
    struct log_settings settings = {
        .directory = "alloc/logs", .name = "web", .files_max = 3, .bytes_max = FILE_BYTES};

    assert_int_equal(directory_make_all(at(scratch, "a/alloc/logs"), 0777, &scratch->err), 0);
    settings.alloc_fd = open(at(scratch, "a"), O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_true(settings.alloc_fd >= 0);
    return settings;
}

static void say(struct log_stream *stream, const struct log_settings *settings, int times)
{
    for (int i = 0; i < times; i++)
        log_write(stream, settings, line, sizeof(line) - 1);
}

static void test_links_swapped_in_meanwhile_are_not_written_through(void **state)
{
    struct scratch *scratch = *state;
    struct log_settings settings = settings_of(scratch);
    struct swapper swapper = {.pid = 0};
    char shared[PATH_SIZE];
    const struct swap swaps[] = {{shared, "logs"}};
    struct log_stream stream;

    if (geteuid() != 0) {
        print_message("skipped: needs a second user\n");
        skip();
    }
    swapper_open(&swapper, scratch);
    (void)text_copy(shared, sizeof(shared), at(scratch, "a/alloc"));
    assert_return_code(chown(shared, SWAPPER_USER, SWAPPER_USER), 0);
    swapper_run(&swapper, swaps, COUNT_OF(swaps));
    log_open(&stream, &settings, "stdout");
    say(&stream, &settings, ROUNDS);
    log_close(&stream);
    swapper_stop(&swapper);
    assert_outside_untouched(&swapper);
    print_message("%llu bytes were written, %llu lost\n", (unsigned long long)stream.bytes_written,
                  (unsigned long long)stream.bytes_lost);
    assert_int_equal(stream.bytes_written + stream.bytes_lost, ROUNDS * (sizeof(line) - 1));
    assert_true(stream.bytes_written > 0);
    assert_true(stream.bytes_lost > 0); /* else nobody was in the way */
    assert_return_code(close(settings.alloc_fd), 0);
}

/* A file of somebody else's that the payload gave a name of ours. */
static void test_file_with_another_name_is_not_written_to(void **state)
{
    struct scratch *scratch = *state;
    struct log_settings settings = settings_of(scratch);
    char other[PATH_SIZE];
    struct log_stream stream;

    put_file(at(scratch, "other"), "whole");
    (void)text_copy(other, sizeof(other), at(scratch, "other"));
    assert_return_code(link(other, at(scratch, "a/alloc/logs/web.stdout.0")), 0);
    log_open(&stream, &settings, "stdout");
    say(&stream, &settings, 1);
    assert_file_is(other, "whole");
    assert_int_equal(stream.bytes_lost, sizeof(line) - 1);
    log_close(&stream);
    assert_return_code(close(settings.alloc_fd), 0);
}

static void test_directory_moved_elsewhere_gets_no_new_files(void **state)
{
    struct scratch *scratch = *state;
    struct log_settings settings = settings_of(scratch);
    char moved[PATH_SIZE];
    struct log_stream stream;

    log_open(&stream, &settings, "stdout");
    (void)text_copy(moved, sizeof(moved), at(scratch, "moved"));
    assert_return_code(rename(at(scratch, "a/alloc/logs"), moved), 0);
    assert_return_code(mkdir(at(scratch, "a/alloc/logs"), 0777), 0);
    say(&stream, &settings, FILE_BYTES / (int)(sizeof(line) - 1) + 1);
    assert_true(exists(at(scratch, "a/alloc/logs/web.stdout.1")));
    assert_true(exists(at(scratch, "moved/web.stdout.0")));
    assert_false(exists(at(scratch, "moved/web.stdout.1")));
    log_close(&stream);
    assert_return_code(close(settings.alloc_fd), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)
    const struct CMUnitTest tests[] = {
        TEST(test_links_swapped_in_meanwhile_are_not_written_through),
        TEST(test_file_with_another_name_is_not_written_to),
        TEST(test_directory_moved_elsewhere_gets_no_new_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
