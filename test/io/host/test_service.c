/* What a service manager says and hears, played by sockets of our own. */
#include "io/service.h"

#include "test/io/scratch.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

static const char *const variables[] = {"NOTIFY_SOCKET",  "WATCHDOG_USEC",        "WATCHDOG_PID",
                                        "LISTEN_FDS",     "LISTEN_PID",           "LISTEN_FDNAMES",
                                        "JOURNAL_STREAM", "CREDENTIALS_DIRECTORY"};

static void say(const char *name, const char *value)
{
    assert_return_code(setenv(name, value, 1), errno);
}

static void say_pid(const char *name, pid_t pid)
{
    char text[16];

    (void)snprintf(text, sizeof(text), "%d", (int)pid);
    say(name, text);
}

static int start(void **state)
{
    for (size_t i = 0; i < COUNT_OF(variables); i++)
        assert_return_code(unsetenv(variables[i]), errno);
    return scratch_make(state);
}

/* A manager's socket bound to NAME, "@..." for one without a file. */
static int manager(const char *name)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    assert_true(text_copy(at.sun_path, sizeof(at.sun_path), name));
    if (name[0] == '@')
        at.sun_path[0] = '\0';
    socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));
    assert_return_code(bind(fd, (struct sockaddr *)&at, length), errno);
    return fd;
}

static const char *heard(int fd)
{
    static char text[1024];
    ssize_t length = recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT);

    text[length < 0 ? 0 : length] = '\0';
    return text;
}

static void assert_refused(struct scratch *scratch, const char *why)
{
    struct service service;

    scratch->err = (struct err){0};
    assert_int_equal(service_open(&service, &scratch->err), ERR_INVALID);
    assert_non_null(strstr(scratch->err.text, why));
    for (size_t i = 0; i < COUNT_OF(variables); i++)
        assert_null(getenv(variables[i]));
}

static void test_places_that_cannot_be_told_are_refused(void **state)
{
    char text[200] = "/";

    say("NOTIFY_SOCKET", "relative");
    assert_refused(*state, "NOTIFY_SOCKET is relative:");
    say("NOTIFY_SOCKET", "vsock:2:1234");
    assert_refused(*state, "only a path or @name");
    say("NOTIFY_SOCKET", "");
    assert_refused(*state, "NOTIFY_SOCKET is");
    say("NOTIFY_SOCKET", "@");
    assert_refused(*state, "NOTIFY_SOCKET is");
    memset(text + 1, 'x', 107); /* one more than there is room for */
    say("NOTIFY_SOCKET", text);
    assert_refused(*state, "at most 107 bytes");
}

static void test_times_that_are_none_are_refused(void **state)
{
    say("WATCHDOG_USEC", "soon");
    assert_refused(*state, "WATCHDOG_USEC is soon");
    say("WATCHDOG_USEC", "1999");
    assert_refused(*state, "no time of 2 ms or more");
    say("WATCHDOG_USEC", "-1");
    assert_refused(*state, "WATCHDOG_USEC is -1");
}

/* Descriptor 3 becomes FD, which is closed; what it was before is kept for put_back. */
static int pass(int fd)
{
    int before = fcntl(3, F_DUPFD_CLOEXEC, 100);

    assert_int_equal(dup2(fd, 3), 3);
    if (fd != 3)
        assert_return_code(close(fd), errno);
    say("LISTEN_FDS", "1");
    say_pid("LISTEN_PID", getpid());
    return before;
}

static void put_back(int before)
{
    (void)close(3); /* who was passed it may have */
    if (before >= 0) {
        assert_int_equal(dup2(before, 3), 3);
        assert_return_code(close(before), errno);
    }
}

static int tcp(bool listens, in_addr_t address)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(address)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_return_code(bind(fd, (struct sockaddr *)&at, sizeof(at)), errno);
    if (listens)
        assert_return_code(listen(fd, 1), errno);
    return fd;
}

static void test_what_cannot_be_listened_on_is_refused(void **state)
{
    int before = pass(tcp(false, INADDR_LOOPBACK));

    assert_refused(*state, "does not listen");
    put_back(before);
    before = pass(socket(AF_INET, SOCK_DGRAM, 0));
    assert_refused(*state, "is not TCP");
    put_back(before);
    before = pass(manager(at(*state, "socket")));
    assert_refused(*state, "is not TCP");
    put_back(before);
    before = pass(open("/dev/null", O_RDONLY));
    assert_refused(*state, "is no socket");
    put_back(before);
}

static void test_numbers_of_sockets_that_are_not_one_are_refused(void **state)
{
    say_pid("LISTEN_PID", getpid());
    say("LISTEN_FDS", "2");
    assert_refused(*state, "LISTEN_FDS is 2: one socket");
    say_pid("LISTEN_PID", getpid());
    say("LISTEN_FDS", "many");
    assert_refused(*state, "LISTEN_FDS is many");
}

static void test_without_a_manager_nothing_is_told(void **state)
{
    struct service service;

    assert_int_equal(service_open(&service, NULL), 0);
    assert_int_equal(service.notify_fd, -1);
    assert_int_equal(service.listen_fd, -1);
    assert_int_equal(service.watchdog_ms, 0);
    assert_false(service.logs_to_journal);
    assert_false(service_tell(&service, "READY=1"));
    assert_false(service_tell_reloading(&service));
    service_close(&service);
    (void)state;
}

static void test_what_is_said_to_another_process_is_not_ours(void **state)
{
    struct service service;

    say("LISTEN_FDS", "1"); /* and no pid */
    say("WATCHDOG_USEC", "1000000");
    say_pid("WATCHDOG_PID", getppid());
    assert_int_equal(service_open(&service, NULL), 0);
    assert_int_equal(service.listen_fd, -1);
    assert_int_equal(service.watchdog_ms, 0);
    say("LISTEN_FDS", "1");
    say_pid("LISTEN_PID", getppid());
    assert_int_equal(service_open(&service, NULL), 0);
    assert_int_equal(service.listen_fd, -1);
    (void)state;
}

static void test_a_manager_is_told(void **state)
{
    struct scratch *scratch = *state;
    int fd = manager(at(scratch, "notify"));
    struct service service;
    unsigned long long us;

    say("NOTIFY_SOCKET", at(scratch, "notify"));
    say("WATCHDOG_USEC", "30000000");
    say_pid("WATCHDOG_PID", getpid());
    assert_int_equal(service_open(&service, &scratch->err), 0);
    assert_null(getenv("NOTIFY_SOCKET"));
    assert_null(getenv("WATCHDOG_USEC"));
    assert_int_equal(service.watchdog_ms, 30000);
    assert_true(service_tell(&service, "READY=1\nSTATUS=%d run", 3));
    assert_string_equal(heard(fd), "READY=1\nSTATUS=3 run");
    assert_true(service_tell_reloading(&service));
    assert_int_equal(sscanf(heard(fd), "RELOADING=1\nMONOTONIC_USEC=%llu", &us), 1);
    struct timespec now;
    assert_return_code(clock_gettime(CLOCK_MONOTONIC, &now), errno);
    assert_in_range(now.tv_sec - (time_t)(us / 1000000), 0, 5);
    assert_return_code(close(fd), errno);
    assert_false(service_tell(&service, "READY=1")); /* it is gone, which hurts nobody */
    service_close(&service);
}

static void test_a_manager_without_a_file_is_told(void **state)
{
    struct scratch *scratch = *state;
    char name[108];
    (void)snprintf(name, sizeof(name), "@cairn-test-%d-%0*d", (int)getpid(), 85, 7);
    int fd = manager(name);
    struct service service;

    say("NOTIFY_SOCKET", name);
    assert_int_equal(service_open(&service, &scratch->err), 0);
    assert_true(service_tell(&service, "STOPPING=1"));
    assert_string_equal(heard(fd), "STOPPING=1");
    service_close(&service);
    assert_return_code(close(fd), errno);
}

static void test_a_manager_that_does_not_listen_keeps_nobody(void **state)
{
    struct scratch *scratch = *state;
    int fd = manager(at(scratch, "notify"));
    struct service service;
    int told = 0;

    say("NOTIFY_SOCKET", at(scratch, "notify"));
    assert_int_equal(service_open(&service, &scratch->err), 0);
    while (service_tell(&service, "WATCHDOG=1"))
        assert_true(++told < 100000);
    assert_string_equal(heard(fd), "WATCHDOG=1");
    assert_true(service_tell(&service, "READY=1")); /* there is room again */
    service_close(&service);
    assert_return_code(close(fd), errno);
}

static void test_a_passed_socket_is_taken(void **state)
{
    struct scratch *scratch = *state;
    struct service service;
    int before = pass(tcp(true, INADDR_LOOPBACK + 1));

    assert_int_equal(service_open(&service, &scratch->err), 0);
    assert_int_equal(service.listen_fd, 3);
    assert_string_equal(service.address, "127.0.0.2");
    assert_true(service.port > 0);
    assert_int_equal(fcntl(3, F_GETFD), FD_CLOEXEC);
    assert_true((fcntl(3, F_GETFL) & O_NONBLOCK) != 0);
    assert_null(getenv("LISTEN_FDS"));
    assert_null(getenv("LISTEN_PID"));
    service_close(&service);
    assert_int_equal(fcntl(3, F_GETFD), -1);
    put_back(before);
}

static void test_journald_is_known_by_its_stream(void **state)
{
    struct stat status;
    struct service service;
    char text[64];
    (void)state;

    assert_return_code(fstat(STDERR_FILENO, &status), errno);
    (void)snprintf(text, sizeof(text), "%llu:%llu", (unsigned long long)status.st_dev,
                   (unsigned long long)status.st_ino);
    say("JOURNAL_STREAM", text);
    assert_int_equal(service_open(&service, NULL), 0);
    assert_true(service.logs_to_journal);
    (void)snprintf(text, sizeof(text), "%llu:%llu", (unsigned long long)status.st_dev,
                   (unsigned long long)status.st_ino + 1);
    say("JOURNAL_STREAM", text); /* standard error was connected elsewhere since */
    assert_int_equal(service_open(&service, NULL), 0);
    assert_false(service.logs_to_journal);
    say("JOURNAL_STREAM", "nonsense");
    assert_int_equal(service_open(&service, NULL), 0);
    assert_false(service.logs_to_journal);
}

static void test_nothing_of_it_reaches_who_is_started(void **state)
{
    struct service service;
    (void)state;

    say("CREDENTIALS_DIRECTORY", "/run/credentials/cairn.service");
    say("LISTEN_FDNAMES", "api");
    assert_int_equal(service_open(&service, NULL), 0);
    for (size_t i = 0; i < COUNT_OF(variables); i++)
        assert_null(getenv(variables[i]));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, start, scratch_remove)
    const struct CMUnitTest tests[] = {
        T(test_places_that_cannot_be_told_are_refused),
        T(test_times_that_are_none_are_refused),
        T(test_what_cannot_be_listened_on_is_refused),
        T(test_numbers_of_sockets_that_are_not_one_are_refused),
        T(test_without_a_manager_nothing_is_told),
        T(test_what_is_said_to_another_process_is_not_ours),
        T(test_a_manager_is_told),
        T(test_a_manager_without_a_file_is_told),
        T(test_a_manager_that_does_not_listen_keeps_nobody),
        T(test_a_passed_socket_is_taken),
        T(test_journald_is_known_by_its_stream),
        T(test_nothing_of_it_reaches_who_is_started),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
