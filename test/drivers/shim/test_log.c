/* Log files in a directory that its payload exchanges for links, moves and fills with surprises. */
#include "test/io/swapper.h"

#include <sys/statvfs.h>

/* What the disk says of itself. */
static struct statvfs fake_disk;

static int disk_statvfs(int fd, struct statvfs *ret)
{
    *ret = fake_disk;
    return fd < 0 ? -1 : 0;
}

#define fstatvfs disk_statvfs
#include "drivers/shim/log.c"

enum { ROUNDS = 20000, FILE_BYTES = 200, AGAIN_MS = 10000 };

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
        log_write(stream, settings, line, sizeof(line) - 1, 0);
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
    log_open(&stream, &settings, "stdout");
    say(&stream, &settings, 1); /* else the swapper may delete the directory, which is empty */
    swapper_run(&swapper, swaps, COUNT_OF(swaps));
    int rounds = 1;
    do { /* on a busy machine the swapper may not run for a while */
        for (int i = 0; i < ROUNDS;
             i++, rounds++) /* each so late that a place is looked for again */
            log_write(&stream, &settings, line, sizeof(line) - 1, (uint64_t)rounds * AGAIN_MS);
    } while ((stream.bytes_written == 0 || stream.bytes_lost == 0) && rounds < 100 * ROUNDS);
    log_close(&stream);
    swapper_stop(&swapper);
    assert_outside_untouched(&swapper);
    print_message("%llu bytes were written, %llu lost\n", (unsigned long long)stream.bytes_written,
                  (unsigned long long)stream.bytes_lost);
    assert_int_equal(stream.bytes_written + stream.bytes_lost,
                     (uint64_t)rounds * (sizeof(line) - 1));
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

/* Whoever may make files there may not see which there are: a shim that is not root's. */
static void test_directory_that_cannot_be_listed_is_written_to(void **state)
{
    struct scratch *scratch = *state;
    struct log_settings settings = settings_of(scratch);
    struct log_stream stream;

    if (geteuid() != 0) {
        print_message("skipped: needs a second user\n");
        skip();
    }
    assert_return_code(chmod(at(scratch, "a/alloc/logs"), 0333), 0);
    assert_return_code(seteuid(SWAPPER_USER), 0);
    log_open(&stream, &settings, "stdout");
    assert_return_code(seteuid(0), 0);
    assert_true(stream.file_fd >= 0);
    assert_int_equal(stream.index, 0);
    log_close(&stream);
    assert_return_code(close(settings.alloc_fd), 0);
}

/* --- what is missing --- */

enum { BLOCK = 4096, BLOCKS = 1000000, RESERVE = RESERVE_BYTES_MAX };

static void disk_has(uint64_t bytes)
{
    fake_disk = (struct statvfs){.f_frsize = BLOCK, .f_blocks = BLOCKS, .f_bavail = bytes / BLOCK};
}

static struct log_stream open_stream(const struct log_settings *settings)
{
    struct log_stream stream;

    disk_has(RESERVE * 2ull);
    log_open(&stream, settings, "stdout");
    return stream;
}

static void write_text(struct log_stream *stream, const struct log_settings *settings,
                       const char *text, uint64_t now_ms)
{
    log_write(stream, settings, text, strlen(text), now_ms);
}

static void test_reserve_of_the_disk_is_left_and_what_is_missing_told(void **state)
{
    struct scratch *scratch = *state;
    struct log_settings settings = settings_of(scratch);
    struct log_stream stream = open_stream(&settings);

    write_text(&stream, &settings, "one\ntw", 0);
    disk_has(RESERVE);
    write_text(&stream, &settings, "o\nthree\nfo", 0);
    disk_has(RESERVE + RESERVE / 8); /* more than before, and less than would last */
    write_text(&stream, &settings, "ur\nfi", 0);
    disk_has(RESERVE * 2ull);
    write_text(&stream, &settings, "ve\nsix\n", 0);
    write_text(&stream, &settings, "seven\n", 0);
    log_close(&stream);
    assert_file_is(at(scratch, "a/alloc/logs/web.stdout.0"),
                   "one\ntw\ncairn: 18 bytes of output (4 lines) are missing here: the disk is "
                   "nearly full\nsix\nseven\n");
    assert_int_equal(stream.bytes_lost, 18);
    assert_int_equal(stream.bytes_written, 6 + 10);
    assert_return_code(close(settings.alloc_fd), 0);
}

static void test_reserve_is_a_part_of_a_small_disk(void **state)
{
    struct scratch *scratch = *state;
    struct log_settings settings = settings_of(scratch);
    struct log_stream stream = open_stream(&settings);

    fake_disk = (struct statvfs){.f_frsize = BLOCK, .f_blocks = 500, .f_bavail = 10};
    write_text(&stream, &settings, "lost\n", 0);
    assert_int_equal(stream.bytes_lost, 5);
    fake_disk.f_bavail = 13; /* the reserve, a quarter of it, and what is written */
    write_text(&stream, &settings, "kept\n", 0);
    assert_int_equal(stream.bytes_lost, 5);
    fake_disk = (struct statvfs){.f_frsize = BLOCK}; /* knows nothing of itself */
    write_text(&stream, &settings, "kept\n", 0);
    assert_int_equal(stream.bytes_lost, 5);
    log_close(&stream);
    assert_return_code(close(settings.alloc_fd), 0);
}

static void test_line_without_end_is_not_dropped_for_ever(void **state)
{
    static char endless[2 * LINE_SCAN_BYTES];
    struct scratch *scratch = *state;
    struct log_settings settings = settings_of(scratch);

    settings.bytes_max = sizeof(endless) * 8;
    struct log_stream stream = open_stream(&settings);
    memset(endless, 'x', sizeof(endless));
    disk_has(0);
    write_text(&stream, &settings, "begun", 0);
    disk_has(RESERVE * 2ull);
    log_write(&stream, &settings, endless, sizeof(endless), 0);
    assert_int_equal(stream.bytes_lost, 5);
    assert_int_equal(stream.bytes_written, sizeof(endless));
    log_close(&stream);
    assert_return_code(close(settings.alloc_fd), 0);
}

static void test_missing_output_is_told_at_the_end_if_not_before(void **state)
{
    struct scratch *scratch = *state;
    struct log_settings settings = settings_of(scratch);
    struct log_stream stream = open_stream(&settings);

    disk_has(0);
    write_text(&stream, &settings, "last words\n", 0);
    disk_has(RESERVE * 2ull);
    log_close(&stream);
    assert_file_is(
        at(scratch, "a/alloc/logs/web.stdout.0"),
        "cairn: 11 bytes of output (1 lines) are missing here: the disk is nearly full\n");
    assert_return_code(close(settings.alloc_fd), 0);
}

static void test_removed_file_is_made_again_and_counted(void **state)
{
    struct scratch *scratch = *state;
    struct log_settings settings = settings_of(scratch);
    struct log_stream stream = open_stream(&settings);
    char path[PATH_SIZE];

    (void)text_copy(path, sizeof(path), at(scratch, "a/alloc/logs/web.stdout.0"));
    write_text(&stream, &settings, "seen in its place\n", 0);
    log_look(&stream, &settings, LOOK_AGAIN_MS);
    write_text(&stream, &settings, "goes\n", LOOK_AGAIN_MS);
    assert_return_code(unlink(path), 0);
    write_text(&stream, &settings, "goes, too\n", 2 * LOOK_AGAIN_MS - 1);
    write_text(&stream, &settings, "stays\n", 2 * LOOK_AGAIN_MS);
    assert_file_is(path, "cairn: 15 bytes of output (0 lines) are missing here: the log file was "
                         "removed\nstays\n");
    assert_int_equal(stream.bytes_lost, 15);
    log_close(&stream);
    assert_return_code(close(settings.alloc_fd), 0);
}

static void test_removed_directory_is_made_again_without_new_output(void **state)
{
    struct scratch *scratch = *state;
    struct log_settings settings = settings_of(scratch);
    struct log_stream stream = open_stream(&settings);
    struct stat status;

    write_text(&stream, &settings, "goes\n", 0);
    assert_return_code(unlink(at(scratch, "a/alloc/logs/web.stdout.0")), 0);
    assert_return_code(rmdir(at(scratch, "a/alloc/logs")), 0);
    log_look(&stream, &settings, LOOK_AGAIN_MS);
    assert_return_code(stat(at(scratch, "a/alloc/logs"), &status), 0);
    assert_int_equal(status.st_mode & 07777, DIRECTORY_MODE);
    assert_file_is(at(scratch, "a/alloc/logs/web.stdout.0"),
                   "cairn: 5 bytes of output (0 lines) are missing here: the log file was "
                   "removed\n");
    log_close(&stream);
    assert_return_code(close(settings.alloc_fd), 0);
}

static void test_output_goes_on_when_a_place_for_it_is_back(void **state)
{
    struct scratch *scratch = *state;
    struct log_settings settings = settings_of(scratch);
    struct log_stream stream;

    assert_return_code(rmdir(at(scratch, "a/alloc/logs")), 0);
    put_file(at(scratch, "a/alloc/logs"), "in the way");
    stream = open_stream(&settings);
    write_text(&stream, &settings, "lost\n", 0);
    assert_int_equal(stream.bytes_lost, 5);
    assert_return_code(unlink(at(scratch, "a/alloc/logs")), 0);
    write_text(&stream, &settings, "kept\n", 1);
    assert_file_is(at(scratch, "a/alloc/logs/web.stdout.0"),
                   "cairn: 5 bytes of output (1 lines) are missing here: the log file could not "
                   "be opened\nkept\n");
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
        TEST(test_directory_that_cannot_be_listed_is_written_to),
        TEST(test_reserve_of_the_disk_is_left_and_what_is_missing_told),
        TEST(test_reserve_is_a_part_of_a_small_disk),
        TEST(test_line_without_end_is_not_dropped_for_ever),
        TEST(test_missing_output_is_told_at_the_end_if_not_before),
        TEST(test_removed_file_is_made_again_and_counted),
        TEST(test_removed_directory_is_made_again_without_new_output),
        TEST(test_output_goes_on_when_a_place_for_it_is_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
