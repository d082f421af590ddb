/*
 * Commands in running tasks, seen from whoever feeds them: input that waits is told of when it has
 * been taken, whoever emptied the queue.  How a command runs is tried by
 * test/live/agent/test_ways_in.py.
 */
#include "test/drivers/room.h"

enum { MUCH = 256 << 10 };

/* A session of the room's task, and what was told of it. */
struct talk {
    struct room *room;
    struct driver_session *session; /* NULL: it is over */
    size_t out_length;
    int taken, code;
    bool failed;
    size_t awaited_length;
};

static void on_output(void *ctx, bool is_stderr, const char *bytes, size_t length)
{
    struct talk *talk = ctx;

    (void)bytes;
    assert_false(is_stderr);
    talk->out_length += length;
    if (talk->out_length >= talk->awaited_length)
        loop_stop(talk->room->loop);
}

static void on_closed(void *ctx, bool is_stderr)
{
    (void)ctx;
    (void)is_stderr;
}

static void on_taken(void *ctx)
{
    struct talk *talk = ctx;

    talk->taken++;
}

static void on_end(void *ctx, int code, const struct err *err)
{
    struct talk *talk = ctx;

    talk->session = NULL;
    talk->code = code;
    talk->failed = err != NULL;
    loop_stop(talk->room->loop);
}

/* Runs the loop until so much was written, or the session is over. */
static void talk_await(struct talk *talk, size_t out_length)
{
    struct io_timer bound = {0};

    talk->awaited_length = out_length;
    talk->room->too_late = false;
    io_timer_start(talk->room->loop, &bound, loop_now_ms() + PATIENCE_MS, room_too_late,
                   talk->room);
    while (!talk->room->too_late && talk->session != NULL && talk->out_length < out_length)
        loop_run(talk->room->loop);
    io_timer_stop(&bound);
    assert_false(talk->room->too_late);
}

static void talk_begin(struct talk *talk, struct room *room, const char *script)
{
    const char *const arguments[] = {"sh", "-c", script};
    const struct driver_session_calls calls = {.on_output = on_output,
                                               .on_closed = on_closed,
                                               .on_taken = on_taken,
                                               .on_end = on_end,
                                               .ctx = talk};
    struct driver_start start = room_start_of(room, 1);
    struct err err = {0};

    *talk = (struct talk){.room = room};
    talk->session = driver_session_new(room->drivers, &start, arguments, COUNT_OF(arguments), false,
                                       &calls, &err);
    if (talk->session == NULL)
        fail_msg("%s", err.text);
}

/* The command reads nothing before it is let, so that some of it waits; and then the loop does not
 * turn: nothing but the next bytes can find that there is room. */
static void test_input_that_the_next_bytes_make_room_for_is_told_of(void **state)
{
    static char much[MUCH];
    char gate[PATH_SIZE + 8], script[PATH_SIZE + 64];
    struct room *room = *state;
    struct talk talk;
    size_t waits = 1;

    room_need_root();
    room_open(room);
    room_script(room, "exec sleep 1000");
    room_start_running(room, 1);
    (void)snprintf(gate, sizeof(gate), "%s/gate", room->path);
    assert_return_code(mkfifo(gate, 0600), errno);
    (void)snprintf(script, sizeof(script), "echo; : <%s; exec cat >/dev/null", gate);
    talk_begin(&talk, room, script);
    talk_await(&talk, 1);
    assert_true(driver_session_write(talk.session, much, sizeof(much)) > 0);
    int taken = talk.taken;
    int opened = open(gate, O_WRONLY | O_CLOEXEC); /* waits for who is about to read */
    assert_return_code(opened, errno);
    assert_return_code(close(opened), errno);
    for (int i = 0; i < PATIENCE_MS && waits > 0; i++) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        waits = driver_session_write(talk.session, "x", 1);
    }
    assert_int_equal(waits, 0);
    assert_true(talk.taken > taken);
    driver_session_close_input(talk.session);
    talk_await(&talk, SIZE_MAX);
    assert_false(talk.failed);
    assert_int_equal(talk.code, 0);
    room_destroy(room, 1);
}

/* What comes before the command runs waits for it, and is told of then. */
static void test_input_before_the_command_is_told_of(void **state)
{
    static char much[MUCH];
    struct room *room = *state;
    struct talk talk;

    room_need_root();
    room_open(room);
    room_script(room, "exec sleep 1000");
    room_start_running(room, 1);
    talk_begin(&talk, room, "cat");
    assert_int_equal(driver_session_write(talk.session, much, 9), 9);
    assert_int_equal(talk.taken, 0);
    talk_await(&talk, 9);
    assert_true(talk.taken > 0);
    driver_session_close_input(talk.session);
    talk_await(&talk, SIZE_MAX);
    assert_int_equal(talk.code, 0);
    room_destroy(room, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, room_make, room_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_input_that_the_next_bytes_make_room_for_is_told_of),
        TEST(test_input_before_the_command_is_told_of),
    };

    return cmocka_run_group_tests_name("sessions", tests, NULL, NULL);
}
