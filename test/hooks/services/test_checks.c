/* Checks as the process beside the daemon runs them: what each answer comes to, when it is asked
 * again, and what is left of it all. */
#include "test/hooks/fixture.h"
#include "test/hooks/services/listener.h"

#include "hooks/services.h"
#include "hooks/services/wire.h"

#include <dirent.h>

enum { LIMIT_MS = 60000, OFTEN_MS = 5, SOON_MS = 20 };

/* Services with one check each, and what their checks have said. */
struct asked {
    struct fixture *fixture;
    struct listener listener;
    char program[PATH_SIZE];
    struct hooks_fetch fetch;
    struct spec_port port;
    struct spec_check checks[SPEC_SERVICES_MAX];
    struct spec_service services[SPEC_SERVICES_MAX];
    struct hooks_services *made;
    struct hooks_checks *begun;
    unsigned count;   /* that were told */
    unsigned wanted;  /* the loop stops at so many */
    bool ends_within; /* who is told ends them */
    bool inside;      /* of a call */
    unsigned told[SPEC_SERVICES_MAX];
    bool (*until)(void);
    size_t descriptors; /* before there was any check */
};

static struct asked checked;

static size_t count_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    size_t count = 0;

    assert_non_null(directory);
    while (readdir(directory) != NULL)
        count++;
    assert_return_code(closedir(directory), errno);
    return count;
}

static void offer(size_t number, enum spec_check_type type, const char *path)
{
    checked.checks[number] = (struct spec_check){
        .type = type,
        .name = "alive",
        .task = "",
        .port = "",
        .path = path,
        .method = "",
        .protocol = "",
        .body = "",
        .interval_ms = SOON_MS,
        .timeout_ms = LIMIT_MS,
    };
    checked.services[number] = (struct spec_service){
        .task = "",
        .name = "web",
        .port = "http",
        .address = "",
        .identity = "",
        .checks = &checked.checks[number],
        .checks_count = 1,
    };
}

static int make(void **state)
{
    int code = fixture_make(state);
    struct fixture *fixture = *state;

    memset(&checked, 0, sizeof(checked));
    checked.fixture = fixture;
    listener_start(&checked.listener);
    beside_program(checked.program, "cairn-fetch");
    checked.fetch = (struct hooks_fetch){.program = checked.program, .variables = ""};
    fixture->fetch = &checked.fetch;
    start_hooks(fixture, NULL);
    checked.port = (struct spec_port){.label = "http",
                                      .task = "",
                                      .host_network = "",
                                      .host_ip = "127.0.0.1",
                                      .value = checked.listener.port};
    fixture->alloc.ports = (struct spec_ports){&checked.port, 1};
    fixture->alloc.services = checked.services;
    fixture->alloc.services_count = 1;
    offer(0, CHECK_HTTP, "/ok");
    checked.descriptors = count_descriptors();
    return code;
}

static void on_checked(void *ctx, const struct hooks_service *service, const struct hooks_check *of)
{
    size_t number = (size_t)(service->spec - checked.services);

    assert_ptr_equal(ctx, &checked);
    assert_false(checked.inside);
    assert_non_null(checked.begun);
    assert_true(of->number <= number);
    assert_true(of->unix_ns > 0);
    assert_true(of->status != CHECK_PENDING);
    assert_true(text_is_utf8(of->output, strlen(of->output)));
    checked.told[number]++;
    checked.count++;
    if (checked.ends_within) {
        hooks_checks_end(checked.begun);
        checked.begun = NULL;
    }
    if (checked.count == checked.wanted)
        loop_stop(checked.fixture->loop);
}

static void begin(void)
{
    int code = hooks_services_make(checked.fixture->hooks, &checked.fixture->alloc, false, NULL,
                                   &checked.made, &checked.fixture->scratch.err);

    assert_int_equal(code, 0);
    checked.inside = true;
    hooks_checks_begin(checked.fixture->hooks, checked.made, on_checked, &checked, &checked.begun);
    checked.inside = false;
    assert_non_null(checked.begun);
}

static void end(void)
{
    hooks_checks_end(checked.begun);
    checked.begun = NULL;
    hooks_services_free(checked.made);
    checked.made = NULL;
}

/* --- waiting for what is asserted --- */

static void on_limit(struct io_timer *timer)
{
    (void)timer;
    fail_msg("it does not come");
}

static void on_often(struct io_timer *timer)
{
    if (checked.until())
        loop_stop(timer->loop);
    else
        io_timer_start(timer->loop, timer, loop_now_ms() + OFTEN_MS, on_often, NULL);
}

/* UNTIL is NULL: until the loop is stopped. */
static void wait_until(bool (*until)(void))
{
    struct io_timer limit = {0}, often = {0};
    struct loop *loop = checked.fixture->loop;

    io_timer_start(loop, &limit, loop_now_ms() + LIMIT_MS, on_limit, NULL);
    checked.until = until;
    if (until != NULL)
        io_timer_start(loop, &often, loop_now_ms(), on_often, NULL);
    loop_run(loop);
    io_timer_stop(&often);
    io_timer_stop(&limit);
}

/* Until COUNT more were told. */
static void wait_for(unsigned count)
{
    checked.wanted = checked.count + count;
    wait_until(NULL);
    assert_true(checked.count >= checked.wanted);
    checked.wanted = 0;
}

static pid_t found;

static void on_child(void *ctx, pid_t pid)
{
    (void)ctx;
    if (pid != checked.listener.pid)
        found = pid;
}

/* The process that checks, or what is left of it; 0: there is none. */
static pid_t checker(void)
{
    found = 0;
    proc_each_child(getpid(), on_child, NULL);
    return found;
}

static bool is_gone(void)
{
    return checker() == 0;
}

static bool is_hanging(void)
{
    return atomic_load(&checked.listener.seen->hanging) > 0;
}

static int clear(void **state)
{
    if (checked.made != NULL)
        end();
    wait_until(is_gone);
    assert_int_equal(count_descriptors(), checked.descriptors);
    listener_stop(&checked.listener);
    return fixture_remove(state);
}

static const struct hooks_check *result(void)
{
    return &checked.made->items[0].checks[0];
}

/* Runs the check number 0 until it was told once. */
static void run_check(void)
{
    begin();
    wait_for(1);
}

static void assert_result(enum check_status status, int code, const char *output)
{
    assert_string_equal(result()->output, output);
    assert_int_equal(result()->status, status);
    assert_int_equal(result()->code, code);
}

/* What %s of FORMAT is: the listener. */
static void assert_failed(int code, const char *format)
{
    char address[32], expected[512] = "";
    const char *at = strstr(format, "%s");

    assert_true(text_format(address, sizeof(address), "127.0.0.1:%u", checked.listener.port));
    assert_true(text_format(expected, sizeof(expected), "%.*s%s%s",
                            at == NULL ? (int)strlen(format) : (int)(at - format), format,
                            at == NULL ? "" : address, at == NULL ? "" : at + 2));
    assert_result(CHECK_FAILURE, code, expected);
}

/* --- what does not go well --- */

static void test_who_refuses_fails(void **state)
{
    (void)state;
    checked.port.value = 1;
    run_check();
    assert_failed(0, "nomad: Get \"http://127.0.0.1:1/ok\": dial tcp 127.0.0.1:1: connect: "
                     "connection refused");
    end();
    offer(0, CHECK_TCP, "");
    run_check();
    assert_failed(0, "dial tcp 127.0.0.1:1: connect: connection refused");
}

static void test_who_says_nothing_fails_in_time(void **state)
{
    (void)state;
    offer(0, CHECK_HTTP, "/hang");
    checked.checks[0].timeout_ms = 100;
    checked.checks[0].method = "PUT";
    run_check();
    assert_failed(0, "nomad: Put \"http://%s/hang\": context deadline exceeded");
}

static void test_who_closes_at_once_fails(void **state)
{
    (void)state;
    offer(0, CHECK_HTTP, "/close");
    run_check();
    assert_failed(0, "nomad: Get \"http://%s/close\": EOF");
}

static void test_what_is_no_http_fails(void **state)
{
    (void)state;
    offer(0, CHECK_HTTP, "/garbage");
    run_check();
    assert_int_equal(result()->status, CHECK_FAILURE);
    assert_int_equal(result()->code, 0);
    assert_true(text_starts_with(result()->output, "nomad: Get "));
}

static void test_a_bad_status_fails_with_the_body(void **state)
{
    (void)state;
    offer(0, CHECK_HTTP, "/missing");
    run_check();
    assert_failed(404, "it is not here");
}

static void test_a_body_that_stops_fails_with_its_status(void **state)
{
    (void)state;
    offer(0, CHECK_HTTP, "/unfinished");
    checked.checks[0].timeout_ms = 100;
    run_check();
    assert_failed(503, "nomad: context deadline exceeded");
}

static void test_a_large_body_is_cut(void **state)
{
    (void)state;
    offer(0, CHECK_HTTP, "/large");
    run_check();
    assert_int_equal(result()->status, CHECK_FAILURE);
    assert_int_equal(result()->code, 500);
    assert_int_equal(strlen(result()->output), CHECK_OUTPUT_SIZE - 1);
    assert_int_equal(strspn(result()->output, "x"), CHECK_OUTPUT_SIZE - 1);
}

static void test_what_is_no_utf8_is_shown_as_such(void **state)
{
    (void)state;
    offer(0, CHECK_HTTP, "/bytes");
    run_check();
    assert_failed(404, "a\xef\xbf\xbd\xef\xbf\xbd\xc3\xa4\xef\xbf\xbd\xef\xbf\xbd");
}

static void test_a_loop_of_redirects_fails(void **state)
{
    (void)state;
    offer(0, CHECK_HTTP, "/loop");
    run_check();
    assert_failed(0, "nomad: Get \"http://%s/loop\": stopped after 10 redirects");
    assert_int_equal(atomic_load(&checked.listener.seen->asked), 10);
}

static void test_who_leads_astray_fails(void **state)
{
    (void)state;
    offer(0, CHECK_HTTP, "/astray");
    run_check();
    assert_int_equal(result()->status, CHECK_FAILURE);
    assert_int_equal(result()->code, 0);
    assert_true(text_starts_with(result()->output, "nomad: Get \"http://127.0.0.1:1/x\": "));
}

static void test_a_name_that_nobody_has_fails(void **state)
{
    (void)state;
    checked.services[0].address = "nobody.invalid";
    offer(0, CHECK_TCP, "");
    checked.services[0].address = "nobody.invalid";
    checked.checks[0].timeout_ms = 2000;
    run_check();
    assert_int_equal(result()->status, CHECK_FAILURE);
    assert_true(text_starts_with(result()->output, "dial tcp"));
}

static void test_without_tls_https_fails(void **state)
{
    (void)state;
    offer(0, CHECK_HTTP, "/garbage");
    checked.checks[0].protocol = "https";
    checked.checks[0].timeout_ms = 2000;
    run_check();
    assert_int_equal(result()->status, CHECK_FAILURE);
    assert_int_equal(result()->code, 0);
}

/* --- what goes well --- */

static void test_who_is_well_is_not_shown(void **state)
{
    (void)state;
    run_check();
    assert_result(CHECK_SUCCESS, 200, "nomad: http ok");
    end();
    offer(0, CHECK_HTTP, "/lead");
    run_check();
    assert_result(CHECK_SUCCESS, 200, "nomad: http ok");
    end();
    offer(0, CHECK_TCP, "");
    run_check();
    assert_result(CHECK_SUCCESS, 0, "nomad: tcp ok");
}

static void test_it_asks_what_it_is_told(void **state)
{
    struct spec_pair headers[] = {{"X-Two", "a"}, {"X-Two", "b"}, {"Host", "other.example"}};

    (void)state;
    offer(0, CHECK_HTTP, "/echo");
    checked.checks[0].method = "POST";
    checked.checks[0].body = "some body";
    checked.checks[0].headers = (struct spec_pairs){headers, COUNT_OF(headers)};
    run_check();
    assert_int_equal(result()->status, CHECK_SUCCESS);
    assert_int_equal(result()->code, 201);
    static const char *const parts[] = {
        "POST /echo HTTP/1.1\r\n", "X-Two: a\r\n",          "X-Two: b\r\n",
        "Host: other.example\r\n", "User-Agent: cairn\r\n", "Content-Length: 9\r\n",
        "\r\n\r\nsome body"};
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        assert_non_null(strstr(result()->output, parts[i]));
    assert_null(strstr(result()->output, "Content-Type"));
    assert_null(strstr(result()->output, "Expect"));
}

static void test_each_method_is_asked(void **state)
{
    static const char *const methods[] = {"GET", "HEAD", "PUT", "DELETE", "OPTIONS"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(methods); i++) {
        offer(0, CHECK_HTTP, "/echo");
        checked.checks[0].method = methods[i];
        run_check();
        assert_int_equal(result()->code, 201);
        assert_true(text_equal(methods[i], "HEAD") ||
                    text_starts_with(result()->output, methods[i]));
        end();
    }
}

static void test_it_is_asked_again_after_its_end(void **state)
{
    (void)state;
    offer(0, CHECK_HTTP, "/hang");
    checked.checks[0].interval_ms = 2;
    checked.checks[0].timeout_ms = 50;
    begin();
    wait_for(5);
    /* Never two at once; on a busy machine some are over before they are let in. */
    assert_in_range(atomic_load(&checked.listener.seen->hanging), 1, 6);
}

/* --- by TLS, where there is an openssl --- */

static void run_openssl(struct fixture *fixture, pid_t *ret_pid, const char *const *arguments)
{
    pid_t pid = fork();

    assert_return_code(pid, errno);
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR);

        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int i = 0; i < 3; i++)
            (void)dup2(null, i); /* it is open */
        if (chdir(fixture->scratch.path) == 0)
            (void)execvp("openssl", (char *const *)(uintptr_t)arguments);
        _exit(127);
    }
    *ret_pid = pid;
}

static void make_certificate(struct fixture *fixture)
{
    const char *const arguments[] = {"openssl",
                                     "req",
                                     "-x509",
                                     "-newkey",
                                     "ec",
                                     "-pkeyopt",
                                     "ec_paramgen_curve:P-256",
                                     "-nodes",
                                     "-days",
                                     "2",
                                     "-keyout",
                                     "key",
                                     "-out",
                                     "certificate",
                                     "-subj",
                                     "/CN=a.example",
                                     NULL};
    int status;
    pid_t pid;

    run_openssl(fixture, &pid, arguments);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
        print_message("skipped: there is no openssl\n");
        skip();
    }
    assert_int_equal(status, 0);
}

/* It takes the listener's place: its number is told, and its port. */
static pid_t serve_tls(struct fixture *fixture)
{
    char address[32];
    const char *const arguments[] = {"openssl",     "s_server", "-accept", address, "-cert",
                                     "certificate", "-key",     "key",     "-www",  NULL};
    pid_t pid;

    checked.port.value = checked.listener.port;
    assert_true(text_format(address, sizeof(address), "127.0.0.1:%u", checked.listener.port));
    listener_stop(&checked.listener);
    run_openssl(fixture, &pid, arguments);
    return pid;
}

static void test_who_has_no_trust_fails_unless_that_is_fine(void **state)
{
    struct fixture *fixture = *state;

    make_certificate(fixture);
    pid_t pid = checked.listener.pid = serve_tls(fixture);
    offer(0, CHECK_HTTP, "/");
    checked.checks[0].protocol = "https";
    checked.checks[0].tls_skip_verify = true;
    checked.checks[0].timeout_ms = 5000;
    begin();
    while (result()->status != CHECK_SUCCESS) /* it listens in a moment */
        wait_for(1);
    assert_result(CHECK_SUCCESS, 200, "nomad: http ok");
    end();
    checked.checks[0].tls_skip_verify = false;
    run_check();
    assert_int_equal(result()->status, CHECK_FAILURE);
    assert_int_equal(result()->code, 0);
    assert_non_null(strstr(result()->output, "certificate"));
    end();
    assert_return_code(kill(pid, SIGKILL), errno);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    listener_start(&checked.listener); /* for who clears up */
}

/* --- its process --- */

static void test_many_are_asked_at_once(void **state)
{
    struct fixture *fixture = *state;

    for (size_t i = 0; i < SPEC_CHECKS_MAX; i++)
        offer(i, CHECK_HTTP, i % 2 == 0 ? "/ok" : "/hang");
    fixture->alloc.services_count = SPEC_CHECKS_MAX;
    begin();
    wait_for(1);
    pid_t pid = checker();
    wait_for(2 * SPEC_CHECKS_MAX); /* those that hang keep nobody waiting */
    assert_int_equal(checker(), pid);
    for (size_t i = 0; i < SPEC_CHECKS_MAX; i++)
        assert_true(i % 2 == 0 || checked.told[i] == 0);
    wait_until(is_hanging);
}

static void test_more_than_it_takes_wait(void **state)
{
    enum { ALLOCS = WIRE_AT_ONCE / SPEC_CHECKS_MAX + 1 };
    struct fixture *fixture = *state;
    struct hooks_services *made[ALLOCS];
    struct hooks_checks *begun[ALLOCS];

    for (size_t i = 0; i < SPEC_CHECKS_MAX; i++) {
        offer(i, CHECK_HTTP, "/hang");
        checked.checks[i].timeout_ms = 200;
    }
    fixture->alloc.services_count = SPEC_CHECKS_MAX;
    for (size_t i = 0; i < ALLOCS; i++) {
        begin();
        made[i] = checked.made;
        begun[i] = checked.begun;
    }
    wait_for(2 * ALLOCS * SPEC_CHECKS_MAX);
    for (size_t i = 0; i < ALLOCS; i++) {
        for (size_t j = 0; j < SPEC_CHECKS_MAX; j++)
            assert_int_equal(made[i]->items[j].checks[0].status, CHECK_FAILURE);
    }
    for (size_t i = 0; i + 1 < ALLOCS; i++) { /* the last is ended by who clears up */
        hooks_checks_end(begun[i]);
        hooks_services_free(made[i]);
    }
}

static void kill_checker(void)
{
    pid_t pid = checker();

    assert_true(pid > 0);
    assert_return_code(kill(pid, SIGKILL), errno);
}

static void test_what_is_asked_fails_with_the_process(void **state)
{
    struct fixture *fixture = *state;

    offer(0, CHECK_HTTP, "/hang");
    offer(1, CHECK_HTTP, "/ok");
    fixture->alloc.services_count = 2;
    checked.checks[1].interval_ms = 100;
    begin();
    wait_until(is_hanging);
    kill_checker();
    while (checked.told[0] == 0)
        wait_for(1);
    assert_result(CHECK_FAILURE, 0, "nomad: the process that checks has ended");
    checked.told[1] = 0;
    while (checked.told[1] < 2) /* no check is lost */
        wait_for(1);
    const struct hooks_check *other = &checked.made->items[1].checks[0];
    assert_int_equal(other->status, CHECK_SUCCESS);
    assert_true(checker() > 0);
}

static void write_program(struct fixture *fixture, const char *script)
{
    char *path = checked.program;

    assert_true(text_copy(checked.program, sizeof(checked.program), at(&fixture->scratch, "p")));
    assert_int_equal(file_write_durable(path, script, strlen(script), 0755, &fixture->scratch.err),
                     0);
}

static void test_a_process_that_says_what_it_should_not_is_another(void **state)
{
    struct fixture *fixture = *state;
    char script[PATH_SIZE + 64];

    assert_true(
        text_format(script, sizeof(script), "#!/bin/sh\nexec '%s' \"$@\"\n", checked.program));
    write_program(fixture, "#!/bin/sh\nprintf 'what is this' >&3\nexec sleep 1000\n");
    run_check();
    assert_result(CHECK_FAILURE, 0, "nomad: the process that checks has ended");
    write_program(fixture, script);
    while (result()->status != CHECK_SUCCESS)
        wait_for(1);
}

static void test_a_process_that_cannot_start_fails_what_waits(void **state)
{
    struct fixture *fixture = *state;
    char program[PATH_SIZE];

    memcpy(program, checked.program, sizeof(program));
    assert_true(text_copy(checked.program, sizeof(checked.program), at(&fixture->scratch, "none")));
    run_check();
    assert_int_equal(result()->status, CHECK_FAILURE);
    assert_true(text_starts_with(result()->output, "nomad: cannot check: "));
    memcpy(checked.program, program, sizeof(program));
    while (result()->status != CHECK_SUCCESS) /* it is tried again */
        wait_for(1);
}

static void test_the_process_has_no_rights(void **state)
{
    char path[64], *text;
    size_t length;

    (void)state;
    run_check();
    assert_true(text_format(path, sizeof(path), "/proc/%d/status", checker()));
    assert_int_equal(file_read(path, 1 << 16, &text, &length, &checked.fixture->scratch.err), 0);
    assert_non_null(strstr(text, "NoNewPrivs:\t1\n"));
    assert_non_null(strstr(text, "Seccomp:\t2\n"));
    assert_non_null(strstr(text, "CapPrm:\t0000000000000000\n"));
    assert_null(strstr(text, "Uid:\t0\t"));
    free(text);
}

/* --- its end --- */

static void test_who_has_ended_is_not_told(void **state)
{
    struct fixture *fixture = *state;

    offer(0, CHECK_HTTP, "/hang");
    begin();
    wait_until(is_hanging);
    pid_t pid = checker();
    struct hooks_services *made = checked.made;
    struct hooks_checks *begun = checked.begun;
    offer(1, CHECK_HTTP, "/ok");
    fixture->alloc.services = &checked.services[1];
    begin();
    hooks_checks_end(begun);
    wait_for(3); /* of the others: the process goes on */
    assert_int_equal(checked.told[0], 0);
    assert_int_equal(checked.told[1], 3);
    assert_int_equal(made->items[0].checks[0].status, CHECK_PENDING);
    assert_int_equal(checker(), pid);
    hooks_services_free(made);
}

static void test_who_is_told_may_end_them(void **state)
{
    (void)state;
    checked.ends_within = true;
    run_check();
    assert_null(checked.begun);
    wait_until(is_gone);
    assert_int_equal(checked.count, 1);
}

static void test_those_who_fail_with_the_process_may_end_them(void **state)
{
    struct fixture *fixture = *state;

    for (size_t i = 0; i < 3; i++)
        offer(i, CHECK_HTTP, "/hang");
    fixture->alloc.services_count = 3;
    checked.ends_within = true;
    begin();
    wait_until(is_hanging);
    kill_checker();
    wait_for(1);
    assert_int_equal(checked.count, 1);
}

static void test_hooks_that_go_end_them(void **state)
{
    struct fixture *fixture = *state;

    offer(0, CHECK_HTTP, "/hang");
    begin();
    wait_until(is_hanging);
    assert_true(checker() > 0);
    hooks_free(fixture->hooks);
    fixture->hooks = NULL;
    assert_true(is_gone());
}

static void test_without_checks_there_is_no_process(void **state)
{
    struct fixture *fixture = *state;
    struct hooks_checks *begun;

    checked.services[0].checks_count = 0;
    int code = hooks_services_make(fixture->hooks, &fixture->alloc, false, NULL, &checked.made,
                                   &fixture->scratch.err);
    assert_int_equal(code, 0);
    hooks_checks_begin(fixture->hooks, checked.made, on_checked, &checked, &begun);
    assert_null(begun);
    hooks_checks_end(begun);
    assert_true(is_gone());
}

static void test_what_nobody_can_reach_yet_fails(void **state)
{
    struct fixture *fixture = *state;

    fixture->alloc.network_mode = "bridge";
    checked.checks[0].has_address_mode = true;
    checked.checks[0].address_mode = ADDRESS_ALLOC;
    run_check();
    assert_result(CHECK_FAILURE, 0, "nomad: the address of its group is not known");
    assert_true(is_gone());
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, clear)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_who_refuses_fails),
        TEST(test_who_says_nothing_fails_in_time),
        TEST(test_who_closes_at_once_fails),
        TEST(test_what_is_no_http_fails),
        TEST(test_a_bad_status_fails_with_the_body),
        TEST(test_a_body_that_stops_fails_with_its_status),
        TEST(test_a_large_body_is_cut),
        TEST(test_what_is_no_utf8_is_shown_as_such),
        TEST(test_a_loop_of_redirects_fails),
        TEST(test_who_leads_astray_fails),
        TEST(test_a_name_that_nobody_has_fails),
        TEST(test_without_tls_https_fails),
        TEST(test_who_is_well_is_not_shown),
        TEST(test_it_asks_what_it_is_told),
        TEST(test_each_method_is_asked),
        TEST(test_it_is_asked_again_after_its_end),
        TEST(test_who_has_no_trust_fails_unless_that_is_fine),
        TEST(test_many_are_asked_at_once),
        TEST(test_more_than_it_takes_wait),
        TEST(test_what_is_asked_fails_with_the_process),
        TEST(test_a_process_that_says_what_it_should_not_is_another),
        TEST(test_a_process_that_cannot_start_fails_what_waits),
        TEST(test_the_process_has_no_rights),
        TEST(test_who_has_ended_is_not_told),
        TEST(test_who_is_told_may_end_them),
        TEST(test_those_who_fail_with_the_process_may_end_them),
        TEST(test_hooks_that_go_end_them),
        TEST(test_without_checks_there_is_no_process),
        TEST(test_what_nobody_can_reach_yet_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
