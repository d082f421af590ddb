/* Files that change: told once there is something, to all who watch, and to nobody afterwards. */
#include "io/loop.h"

#include "test/io/scratch.h"

#include <fcntl.h>
#include <sys/stat.h>

struct heard {
    struct loop *loop;
    struct io_change change, *stops;
    int count;
};

static void on_change(struct io_change *change)
{
    struct heard *heard = change->ctx;

    heard->count++;
    if (heard->stops != NULL)
        io_change_stop(heard->stops);
    loop_stop(heard->loop);
}

static void on_late(struct io_timer *timer)
{
    loop_stop(timer->ctx);
}

/* All that is there to be told has been. */
static void hear_all(struct loop *loop)
{
    struct io_timer timer = {0};

    io_timer_start(loop, &timer, loop_now_ms() + 1, on_late, loop);
    loop_run(loop);
    io_timer_stop(&timer);
}

static int open_file(struct scratch *scratch, const char *name, int flags)
{
    int fd = open(at(scratch, name), flags | O_CLOEXEC, 0644);

    assert_true(fd >= 0);
    return fd;
}

static void test_what_happens_to_a_file_is_told(void **state)
{
    struct loop *loop = loop_new();
    struct heard one = {.loop = loop}, other = {.loop = loop};
    int fd = open_file(*state, "file", O_RDWR | O_CREAT);

    assert_true(io_change_start(loop, &one.change, fd, on_change, &one));
    assert_true(io_change_start(loop, &other.change, fd, on_change, &other));
    assert_int_equal(write(fd, "a", 1), 1);
    loop_run(loop);
    assert_int_equal(one.count, 1);
    assert_int_equal(other.count, 1);
    io_change_stop(&other.change);
    io_change_stop(&other.change);
    assert_return_code(ftruncate(fd, 0), 0);
    loop_run(loop);
    assert_return_code(unlink(at(*state, "file")), 0); /* it is open: only its names are fewer */
    one.count = 0;
    loop_run(loop);
    assert_true(one.count > 0);
    assert_int_equal(other.count, 1);
    io_change_stop(&one.change);
    one.count = 0;
    assert_int_equal(write(fd, "b", 1), 1);
    hear_all(loop);
    assert_int_equal(one.count, 0);
    close(fd);
    loop_free(loop);
}

static void test_what_comes_into_a_directory_is_told(void **state)
{
    struct loop *loop = loop_new();
    struct heard heard = {.loop = loop};
    int directory = open_file(*state, "", O_PATH | O_DIRECTORY);

    assert_true(io_change_start(loop, &heard.change, directory, on_change, &heard));
    close(directory);
    close(open_file(*state, "new", O_RDWR | O_CREAT));
    loop_run(loop);
    assert_true(heard.count > 0);
    io_change_stop(&heard.change);
    loop_free(loop);
}

static void test_one_may_stop_another_while_they_are_told(void **state)
{
    struct loop *loop = loop_new();
    struct heard first = {.loop = loop}, second = {.loop = loop};
    int fd = open_file(*state, "file", O_RDWR | O_CREAT);

    first.stops = &second.change;
    second.stops = &first.change;
    assert_true(io_change_start(loop, &first.change, fd, on_change, &first));
    assert_true(io_change_start(loop, &second.change, fd, on_change, &second));
    assert_int_equal(write(fd, "a", 1), 1);
    loop_run(loop);
    hear_all(loop);
    assert_int_equal(first.count + second.count, 1);
    io_change_stop(&first.change);
    io_change_stop(&second.change);
    close(fd);
    loop_free(loop);
}

static void test_one_that_stops_itself_is_told_once(void **state)
{
    struct loop *loop = loop_new();
    struct heard heard = {.loop = loop};
    int fd = open_file(*state, "file", O_RDWR | O_CREAT);

    heard.stops = &heard.change;
    assert_true(io_change_start(loop, &heard.change, fd, on_change, &heard));
    assert_int_equal(write(fd, "a", 1), 1);
    assert_return_code(ftruncate(fd, 0), 0);
    loop_run(loop);
    hear_all(loop);
    assert_int_equal(heard.count, 1);
    close(fd);
    loop_free(loop);
}

static void test_loop_may_go_before_those_who_watch(void **state)
{
    struct loop *loop = loop_new();
    struct heard one = {.loop = loop}, other = {.loop = loop};
    int fd = open_file(*state, "file", O_RDWR | O_CREAT);
    int directory = open_file(*state, "", O_PATH | O_DIRECTORY);

    assert_true(io_change_start(loop, &one.change, fd, on_change, &one));
    assert_true(io_change_start(loop, &other.change, directory, on_change, &other));
    loop_free(loop);
    io_change_stop(&one.change);
    io_change_stop(&other.change);
    close(fd);
    close(directory);
}

static void test_what_is_no_file_is_not_watched(void **state)
{
    struct loop *loop = loop_new();
    struct heard heard = {.loop = loop};
    (void)state;

    assert_false(io_change_start(loop, &heard.change, -1, on_change, &heard));
    io_change_stop(&heard.change);
    loop_free(loop);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_what_happens_to_a_file_is_told),
        TEST(test_what_comes_into_a_directory_is_told),
        TEST(test_one_may_stop_another_while_they_are_told),
        TEST(test_one_that_stops_itself_is_told_once),
        TEST(test_loop_may_go_before_those_who_watch),
        TEST(test_what_is_no_file_is_not_watched),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
