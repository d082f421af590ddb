/* Lines as entries of journald, played by a socket of our own. */
#include "io/loop/journald.h"

#include "base/base.h"
#include "test/io/scratch.h"

#include <sys/socket.h>

struct reader {
    struct scratch scratch;
    int fd;
};

static int start(void **state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct reader *reader;

    assert_int_equal(scratch_make((void **)&reader), 0);
    reader = realloc(reader, sizeof(*reader));
    assert_non_null(reader);
    reader->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_true(text_copy(address.sun_path, sizeof(address.sun_path), at(&reader->scratch, "at")));
    assert_return_code(bind(reader->fd, (struct sockaddr *)&address, sizeof(address)), errno);
    *state = reader;
    return log_init(LOG_INFO, NULL, false);
}

static int finish(void **state)
{
    struct reader *reader = *state;

    assert_int_equal(log_init(LOG_INFO, NULL, false), 0);
    if (reader->fd >= 0)
        assert_return_code(close(reader->fd), errno);
    return scratch_remove(state);
}

static const char *heard(struct reader *reader)
{
    static char text[JOURNALD_ENTRY_SIZE + 1];
    ssize_t length = recv(reader->fd, text, sizeof(text) - 1, MSG_DONTWAIT);

    text[length < 0 ? 0 : length] = '\0';
    return text;
}

static const char *formatted(const char *message)
{
    static char text[JOURNALD_ENTRY_SIZE];
    const struct log_entry entry = {.level = LOG_WARN, .room = "agent", .message = message};

    size_t length = journald_format(text, &entry);
    assert_int_equal(length, strlen(text));
    return strstr(text, "MESSAGE=");
}

static void test_value_makes_no_field_of_its_own(void **state)
{
    (void)state;
    assert_string_equal(formatted("odd name=\"a PRIORITY=0 task=x\" b=1"),
                        "MESSAGE=agent: odd name=\"a PRIORITY=0 task=x\" b=1\n"
                        "CAIRN_NAME=a PRIORITY=0 task=x\nCAIRN_B=1\n");
    assert_string_equal(formatted("odd name=\"\\\" \\\\ task=x"), /* quotes that do not end */
                        "MESSAGE=agent: odd name=\"\\\" \\\\ task=x\nCAIRN_NAME=\" \\ task=x\n");
    assert_string_equal(formatted("PRIORITY=0 =1 a.b=2 \xc3\xa9=3 _= x"),
                        "MESSAGE=agent: PRIORITY=0 =1 a.b=2 \xc3\xa9=3 _= x\nCAIRN__=\n");
}

static void test_a_message_full_of_facts_stays_in_bounds(void **state)
{
    char message[LOG_LINE_SIZE] = "";
    (void)state;

    while (text_append(message, sizeof(message), "k=\"\\\"\" "))
        continue;
    const char *entry = formatted(message);
    size_t fields = 0;
    for (const char *line = strchr(entry, '\n'); line != NULL; line = strchr(line + 1, '\n'))
        fields += text_starts_with(line, "\nCAIRN_K=\"\n");
    assert_int_equal(fields, 16);

    /* The longest there can be, all of it once more as a value. */
    memset(message, 'v', sizeof(message) - 1);
    message[0] = 'k';
    message[1] = '=';
    message[sizeof(message) - 1] = '\0';
    assert_true(strlen(formatted(message)) > 2 * sizeof(message));
}

static void test_line_comes_with_its_facts(void **state)
{
    struct reader *reader = *state;

    assert_true(log_to_journald(at(&reader->scratch, "at")));
    log_error("io", "lost alloc=%s task=%s error=%s", "3f2a91c4", "web", log_value("no\nway"));
    assert_string_equal(heard(reader), "PRIORITY=3\nSYSLOG_IDENTIFIER=cairn\nCAIRN_ROOM=io\n"
                                       "MESSAGE=io: lost alloc=3f2a91c4 task=web "
                                       "error=\"no\\x0away\"\n"
                                       "ALLOC_ID=3f2a91c4\nTASK=web\nCAIRN_ERROR=no\\x0away\n");
    log_debug("io", "not wanted");
    assert_string_equal(heard(reader), "");
}

static void test_line_that_is_not_taken_goes_to_standard_error(void **state)
{
    struct reader *reader = *state;
    int kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0), ends[2];
    char text[256];

    assert_true(log_to_journald(at(&reader->scratch, "at")));
    assert_return_code(close(reader->fd), errno);
    reader->fd = -1;
    assert_return_code(pipe(ends), errno);
    assert_true(dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
    log_info("io", "still heard");
    assert_true(dup2(kept, STDERR_FILENO) == STDERR_FILENO);
    ssize_t length = read(ends[0], text, sizeof(text) - 1);
    assert_true(length > 0);
    text[length] = '\0';
    assert_non_null(strstr(text, "[INFO] io: still heard\n"));
    (void)close(ends[0]);
    (void)close(ends[1]);
    (void)close(kept);
}

static void test_place_that_is_no_address_is_not_used(void **state)
{
    char path[200];
    (void)state;

    memset(path, 'x', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    assert_false(log_to_journald(path));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, start, finish)
    const struct CMUnitTest tests[] = {
        T(test_value_makes_no_field_of_its_own),
        T(test_a_message_full_of_facts_stays_in_bounds),
        T(test_line_comes_with_its_facts),
        T(test_line_that_is_not_taken_goes_to_standard_error),
        T(test_place_that_is_no_address_is_not_used),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
