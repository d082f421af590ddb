/*
 * The hook that renders, and its watches on what templates of a running task read.  Whoever is told
 * here stops the loop.
 */
#include "test/hooks/fixture.h"

#include "fsm/policy.h"

struct rendered_task {
    struct spec_template templates[3];
    struct hooks_templates told;
    struct hook_run run;
    uint8_t results[4096]; /* what the machine knows */
    uint32_t results_bytes;
    unsigned tellings;
    int code;
    char text[DESCRIPTION_SIZE];
    bool restarts;
    uint64_t signals;
    const char *registered; /* a JSON list of what is, in the namespace of the alloc */
    unsigned questions;     /* what it is was asked so often */
};

static struct rendered_task rendered;

static void take(const struct hook_outcome *outcome)
{
    assert_true(outcome->results_bytes <= sizeof(rendered.results));
    memcpy(rendered.results, outcome->results, outcome->results_bytes);
    rendered.results_bytes = outcome->results_bytes;
}

static void on_changed(void *ctx, const char *alloc, const char *task,
                       const struct hook_outcome *outcome)
{
    struct fixture *fixture = ctx;
    struct rendered_change change = {0};

    assert_string_equal(alloc, ALLOC_ID);
    assert_string_equal(task, "web");
    assert_int_equal(outcome->hook, TASK_HOOK_TEMPLATE);
    rendered.tellings++;
    rendered.code = outcome->code;
    (void)text_copy(rendered.text, sizeof(rendered.text), outcome->text); /* same size */
    if (outcome->code == 0) {
        policy_change(TASK_HOOK_TEMPLATE, rendered.results, rendered.results_bytes,
                      outcome->results, outcome->results_bytes, &change);
        take(outcome);
    }
    rendered.restarts = change.restarts;
    rendered.signals = change.signals;
    loop_stop(fixture->loop);
}

static void on_rendered(void *ctx, const struct hook_outcome *outcome)
{
    struct fixture *fixture = ctx;

    fixture->answered = true;
    fixture->outcome = *outcome;
    (void)text_copy(fixture->text, sizeof(fixture->text), outcome->text); /* same size */
    if (outcome->results_bytes > 0)
        take(outcome);
    loop_stop(fixture->loop);
}

static int run_template(struct fixture *fixture, enum hook_phase phase)
{
    const struct hook_run run = {
        .phase = phase,
        .hook = TASK_HOOK_TEMPLATE,
        .alloc = &fixture->alloc,
        .task = &fixture->task,
        .results = rendered.results,
        .results_bytes = rendered.results_bytes,
    };

    fixture->answered = false;
    hook_run(fixture->hooks, &run, on_rendered, fixture);
    while (!fixture->answered)
        loop_run(fixture->loop);
    return fixture->outcome.code;
}

static void put(struct fixture *fixture, const char *name, const char *content)
{
    char path[PATH_SIZE];

    assert_true(text_format(path, sizeof(path), "%s/web/local/%s", fixture->root, name));
    assert_int_equal(
        file_write_durable(path, content, strlen(content), 0644, &fixture->scratch.err), 0);
}

/* True if the file is CONTENT, but for what time it is behind it. */
static bool says(struct fixture *fixture, const char *name, const char *content)
{
    char path[PATH_SIZE], *bytes;
    size_t length;

    assert_true(text_format(path, sizeof(path), "%s/web/local/%s", fixture->root, name));
    assert_int_equal(file_read(path, 1024, &bytes, &length, &fixture->scratch.err), 0);
    bool equal = text_starts_with(bytes, content) &&
                 (bytes[strlen(content)] == '\0' || bytes[strlen(content)] == ' ');
    free(bytes);
    return equal;
}

static void assert_says(struct fixture *fixture, const char *name, const char *content)
{
    assert_true(says(fixture, name, content));
}

static void on_moment(struct io_timer *timer)
{
    loop_stop(timer->ctx);
}

static void run_for_a_moment(struct fixture *fixture)
{
    struct io_timer moment = {0};

    io_timer_start(fixture->loop, &moment, loop_now_ms() + 10, on_moment, fixture->loop);
    loop_run(fixture->loop);
    io_timer_stop(&moment);
}

static void await_telling(struct fixture *fixture, unsigned count)
{
    while (rendered.tellings < count)
        loop_run(fixture->loop);
    assert_int_equal(rendered.tellings, count);
}

/* Whatever could be told by now was, since what is changed now is: NAME, which changes for
 * nothing else. */
static void assert_quiet(struct fixture *fixture, unsigned count, const char *name)
{
    static unsigned witness;
    char text[16];

    (void)text_format(text, sizeof(text), "w%u", ++witness); /* fits */
    put(fixture, name, text);
    await_telling(fixture, count + 1);
    assert_int_equal(rendered.restarts, *name == 'c');
    assert_int_equal(rendered.signals, *name == 'b' ? 1u << 9 : 0);
    rendered.tellings--;
}

static struct spec_template template_of(const char *data, const char *destination,
                                        enum spec_change change)
{
    return (struct spec_template){
        .source = "",
        .data = data,
        .destination = destination,
        .left = "{{",
        .right = "}}",
        .mode = 0644,
        .uid = -1,
        .gid = -1,
        .change = change,
        .signal = "SIGUSR1",
        .wait_max_ms = 1,
    };
}

static json_t *tell_services(void *ctx, const char *namespace)
{
    const struct fixture *fixture = ctx;
    json_t *list = json_loads(rendered.registered, 0, NULL);

    assert_string_equal(namespace, fixture->alloc.namespace);
    assert_non_null(list);
    rendered.questions++;
    return list;
}

static int make(void **state)
{
    int code = fixture_make(state);
    struct fixture *fixture = *state;

    rendered =
        (struct rendered_task){.told = {.ctx = fixture, .changed = on_changed}, .registered = "[]"};
    fixture->services = tell_services;
    fixture->templates = &rendered.told;
    start_hooks(fixture, NULL);
    rendered.templates[0] = template_of("{{ file \"local/a\" }}", "local/noop", SPEC_CHANGE_NOOP);
    rendered.templates[1] =
        template_of("{{ file \"local/b\" }}", "local/signal", SPEC_CHANGE_SIGNAL);
    rendered.templates[2] =
        template_of("{{ file \"local/c\" }} {{ timestamp }}", "local/restart", SPEC_CHANGE_RESTART);
    fixture->task.templates = rendered.templates;
    fixture->task.templates_count = 3;
    assert_int_equal(build_alloc(fixture), 0);
    assert_int_equal(build_task(fixture), 0);
    put(fixture, "a", "1");
    put(fixture, "b", "1");
    put(fixture, "c", "1");
    return code;
}

static int end(void **state)
{
    struct fixture *fixture = *state;

    fixture->task.templates_count = 0;
    (void)strip_task(fixture);
    return fixture_remove(state);
}

static void start(struct fixture *fixture)
{
    assert_int_equal(run_template(fixture, PHASE_PRESTART), 0);
    assert_int_equal(run_template(fixture, PHASE_POSTSTART), 0);
}

/* A daemon that comes back: nothing of the one before is under way any more. */
static void come_back(struct fixture *fixture)
{
    hooks_free(fixture->hooks);
    fixture->hooks = NULL;
    loop_free(fixture->loop);
    fixture->loop = loop_new();
    start_hooks(fixture, NULL);
}

static ino_t number_of(struct fixture *fixture, const char *name)
{
    struct stat status;
    char path[PATH_SIZE];

    assert_true(text_format(path, sizeof(path), "%s/web/local/%s", fixture->root, name));
    assert_return_code(lstat(path, &status), 0);
    return status.st_ino;
}

static void test_nothing_is_written_or_told_where_nothing_has_changed(void **state)
{
    struct fixture *fixture = *state;

    start(fixture);
    ino_t noop = number_of(fixture, "noop"), restart = number_of(fixture, "restart");
    put(fixture, "a", "1");
    put(fixture, "c", "1");
    put(fixture, "else", "of no interest");
    assert_quiet(fixture, 0, "b");
    come_back(fixture);
    assert_int_equal(run_template(fixture, PHASE_POSTSTART), 0);
    assert_quiet(fixture, 0, "b");
    assert_true(number_of(fixture, "noop") == noop);
    assert_true(number_of(fixture, "restart") == restart);
}

static void test_each_change_is_told_once_and_as_it_asks(void **state)
{
    struct fixture *fixture = *state;

    start(fixture);
    put(fixture, "a", "2");
    put(fixture, "b", "2");
    await_telling(fixture, 1);
    assert_int_equal(rendered.code, 0);
    assert_false(rendered.restarts);
    assert_int_equal(rendered.signals, 1u << 9);
    assert_string_equal(rendered.text, "SIGUSR1");
    assert_says(fixture, "signal", "2");
    assert_quiet(fixture, 1, "c");
    assert_says(fixture, "noop", "2");
}

static void test_change_while_nobody_looked_is_told(void **state)
{
    struct fixture *fixture = *state;

    start(fixture);
    come_back(fixture);
    put(fixture, "b", "2");
    assert_int_equal(run_template(fixture, PHASE_POSTSTART), 0);
    await_telling(fixture, 1);
    assert_int_equal(rendered.signals, 1u << 9);
    come_back(fixture);
    assert_int_equal(run_template(fixture, PHASE_POSTSTART), 0);
    assert_quiet(fixture, 1, "c");
}

static void test_file_that_is_gone_leaves_all_as_it_is_until_it_is_back(void **state)
{
    struct fixture *fixture = *state;
    char path[PATH_SIZE];

    start(fixture);
    assert_true(text_format(path, sizeof(path), "%s/web/local/b", fixture->root));
    assert_return_code(unlink(path), 0);
    await_telling(fixture, 1);
    assert_int_equal(rendered.code, ERR_GONE);
    assert_says(fixture, "signal", "1");
    put(fixture, "b", "3");
    await_telling(fixture, 2);
    assert_int_equal(rendered.signals, 1u << 9);
    assert_says(fixture, "signal", "3");
}

static void test_change_that_is_taken_back_within_the_splay_is_none(void **state)
{
    struct fixture *fixture = *state;

    rendered.templates[1].splay_ms = 1000000000;
    start(fixture);
    put(fixture, "b", "2");
    put(fixture, "b", "1"); /* whether it was rendered meanwhile or not */
    assert_quiet(fixture, 0, "c");
    assert_says(fixture, "signal", "1");
}

/* One rendering has seen both, the next one what is left: that is told when its own time comes. */
static void test_splay_of_what_was_taken_back_holds_up_nothing(void **state)
{
    struct fixture *fixture = *state;

    rendered.templates[1].splay_ms = 1000000000;
    start(fixture);
    put(fixture, "b", "2");
    put(fixture, "c", "with it");
    while (!says(fixture, "signal", "2") || !says(fixture, "restart", "with it"))
        run_for_a_moment(fixture);
    put(fixture, "b", "1");
    await_telling(fixture, 1);
    assert_true(rendered.restarts);
    assert_int_equal(rendered.signals, 0);
}

static void test_start_and_end_of_the_task_end_its_watch(void **state)
{
    struct fixture *fixture = *state;

    start(fixture);
    assert_int_equal(run_template(fixture, PHASE_PRESTART), 0); /* while it renders */
    put(fixture, "b", "2");
    assert_int_equal(run_template(fixture, PHASE_POSTSTART), 0);
    await_telling(fixture, 1);
    assert_quiet(fixture, 1, "c");
    assert_int_equal(run_template(fixture, PHASE_STOP), 0);
    put(fixture, "b", "3");
    assert_int_equal(run_template(fixture, PHASE_STOP), 0); /* there is none */
    start(fixture);
    assert_quiet(fixture, 1, "c");
}

static void test_template_that_is_rendered_once_is_left(void **state)
{
    struct fixture *fixture = *state;

    rendered.templates[1].once = true;
    start(fixture);
    put(fixture, "b", "2");
    put(fixture, "a", "2");
    while (!says(fixture, "noop", "2"))
        run_for_a_moment(fixture);
    assert_quiet(fixture, 0, "c");
    assert_says(fixture, "signal", "1");
}

static void write_shared(struct fixture *fixture, const char *name, const char *content)
{
    char path[PATH_SIZE];

    assert_true(text_format(path, sizeof(path), "%s/alloc/data/%s", fixture->root, name));
    assert_int_equal(
        file_write_durable(path, content, strlen(content), 0644, &fixture->scratch.err), 0);
}

static void test_templates_reach_the_directory_of_the_alloc(void **state)
{
    struct fixture *fixture = *state;
    char path[PATH_SIZE];

    rendered.templates[1].source = "../alloc/data/b.tpl";
    rendered.templates[1].data = "";
    rendered.templates[0].destination = "${NOMAD_ALLOC_DIR}/data/made/noop";
    write_shared(fixture, "b.tpl", "1 {{ env \"NOMAD_TASK_NAME\" }}");
    start(fixture);
    assert_says(fixture, "signal", "1 web");
    assert_says(fixture, "../../alloc/data/made/noop", "1");
    write_shared(fixture, "b.tpl", "2");
    await_telling(fixture, 1);
    assert_int_equal(rendered.signals, 1u << 9);
    assert_says(fixture, "signal", "2");
    /* What others put there leads nowhere. */
    assert_true(text_format(path, sizeof(path), "%s/alloc/data/link", fixture->root));
    assert_return_code(symlink("/tmp", path), errno);
    rendered.templates[0].destination = "../alloc/data/link/cairn-noop";
    assert_int_not_equal(run_template(fixture, PHASE_PRESTART), 0);
    assert_int_not_equal(access("/tmp/cairn-noop", F_OK), 0);
    rendered.templates[0].destination = "local/noop";
    rendered.templates[1].source = "../alloc/data/link/b.tpl";
    assert_int_not_equal(run_template(fixture, PHASE_PRESTART), 0);
    rendered.templates[1].source = "../other/b.tpl";
    assert_int_equal(run_template(fixture, PHASE_PRESTART), ERR_INVALID);
    assert_non_null(strstr(fixture->text, "escapes the directories of the task"));
}

static void test_files_of_the_alloc_are_no_files_for_templates(void **state)
{
    struct fixture *fixture = *state;

    write_shared(fixture, "a", "1");
    rendered.templates[0].data = "{{ file \"../alloc/data/a\" }}";
    assert_int_not_equal(run_template(fixture, PHASE_PRESTART), 0);
    assert_non_null(strstr(fixture->text, "it is not in the directory of the task"));
}

#define WEB(port)                                                                                  \
    "{\"ID\": \"i" port "\", \"ServiceName\": \"web\", \"Address\": \"10.0.0.1\", \"Port\": " port \
    "}"

static void ask_for_web(unsigned number)
{
    rendered.templates[number].data =
        "{{ range nomadService \"web\" }}{{ .Port }},{{ else }}none{{ end }}";
}

static void test_services_are_told_to_who_asks_for_them(void **state)
{
    struct fixture *fixture = *state;

    start(fixture);
    assert_int_equal(rendered.questions, 0); /* nobody does */
    hooks_services_changed(fixture->hooks, "default");
    assert_quiet(fixture, 0, "b");
    assert_int_equal(rendered.questions, 0);
    ask_for_web(0);
    rendered.registered = "[" WEB("8080") "," WEB("80") "]";
    assert_int_equal(run_template(fixture, PHASE_PRESTART), 0);
    assert_int_equal(rendered.questions, 1);
    assert_says(fixture, "noop", "80,8080,"); /* in the order of their ids */
}

static void test_services_that_others_know_cannot_be_asked_for(void **state)
{
    struct fixture *fixture = *state;

    fixture->services = NULL;
    come_back(fixture);
    ask_for_web(0);
    assert_int_equal(run_template(fixture, PHASE_PRESTART), ERR_REFUSED);
}

static void test_change_of_services_is_told_as_their_template_asks(void **state)
{
    struct fixture *fixture = *state;

    ask_for_web(1);
    start(fixture);
    assert_says(fixture, "signal", "none");
    rendered.registered = "[" WEB("80") "]";
    hooks_services_changed(fixture->hooks, "default");
    await_telling(fixture, 1);
    assert_int_equal(rendered.signals, 1u << 9);
    assert_says(fixture, "signal", "80,");
    unsigned questions = rendered.questions;
    rendered.registered = "[{\"ServiceName\": \"other\"}," WEB("80") "]";
    hooks_services_changed(fixture->hooks, "default");
    while (rendered.questions == questions)
        run_for_a_moment(fixture);
    assert_quiet(fixture, 1, "c"); /* it says the same */
    rendered.registered = "[]";
    hooks_services_changed(fixture->hooks, "other"); /* whatever that is */
    hooks_services_changed(fixture->hooks, "default");
    await_telling(fixture, 2);
    assert_says(fixture, "signal", "none");
}

/* Nothing else keeps the watch, and what is written in a file is only known when it is read. */
static void test_services_alone_are_watched_whoever_asks(void **state)
{
    struct fixture *fixture = *state;

    put(fixture, "asks.tpl", "{{ range nomadServices }}{{ .Name }}{{ end }}");
    rendered.templates[0] = rendered.templates[1];
    rendered.templates[0].data = "";
    rendered.templates[0].source = "local/asks.tpl";
    rendered.templates[1] = template_of("{{ range nomadServices }}{{ .Name }}{{ end }}",
                                        "local/alone", SPEC_CHANGE_NOOP);
    fixture->task.templates_count = 2;
    start(fixture);
    assert_says(fixture, "signal", "");
    rendered.registered = "[" WEB("80") "]";
    come_back(fixture);
    assert_int_equal(run_template(fixture, PHASE_POSTSTART), 0);
    await_telling(fixture, 1);
    assert_says(fixture, "signal", "web");
    assert_says(fixture, "alone", "web");
    rendered.templates[0] = rendered.templates[1];
    fixture->task.templates_count = 1;
    rendered.templates[0].change = SPEC_CHANGE_SIGNAL;
    rendered.results_bytes = 0;
    start(fixture);
    rendered.registered = "[{\"ServiceName\": \"db\"}]";
    hooks_services_changed(fixture->hooks, "default");
    await_telling(fixture, 2);
    assert_says(fixture, "alone", "db");
}

/* Puts a program in the place of the renderer. */
static void replace_renderer(struct fixture *fixture, const char *script)
{
    assert_int_equal(path_join(fixture->parser, fixture->scratch.path, "renderer"), 0);
    assert_int_equal(
        file_write_durable(fixture->parser, script, strlen(script), 0755, &fixture->scratch.err),
        0);
}

static void test_renderer_that_fails_fails_what_it_renders(void **state)
{
    static const struct {
        const char *script;
        int code;
        const char *text;
        bool recoverable;
    } rows[] = {
        {"#!/bin/sh\nkill -SEGV $$\n", ERR_IO, "cairn-parse ended by signal 11", false},
        {"#!/bin/sh\nkill -XCPU $$\n", ERR_TIMEOUT, "too long", false},
        {"#!/bin/sh\nexit 3\n", ERR_UNSUPPORTED, "privileges", true},
        {"#!/bin/sh\nexit 0\n", ERR_CORRUPT, "as it should", true},
        {"#!/bin/sh\nexec yes >&3\n", ERR_CORRUPT, "as it should", true},
        {"#!/bin/sh\nprintf 's\\1\\0\\20\\0' >&3; exec sleep 1000\n", ERR_CORRUPT, "as it should",
         true},
        {"#!/bin/sh\nprintf 'x\\2\\0\\0\\0\\100a' >&3; exec sleep 1000\n", ERR_CORRUPT,
         "as it should", true},
        {"#!/bin/sh\nprintf 'x\\3\\0\\0\\0\\11a\\001' >&3; exec sleep 1000\n", ERR_INVALID,
         "local/noop: a?", false},
        {"#!/bin/sh\nprintf 'a\\2\\0\\0\\0a\\0' >&3; exec sleep 1000\n", ERR_CORRUPT,
         "as it should", true},
        {"#!/bin/sh\nprintf 's\\2\\0\\0' >&3; kill -ABRT $$\n", ERR_IO, "signal 6", false},
        {"#!/bin/sh\nprintf 'c\\1\\0\\0\\0a' >&3; exec sleep 1000\n", ERR_CORRUPT, "as it should",
         true},
    };
    struct fixture *fixture = *state;

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        replace_renderer(fixture, rows[i].script);
        assert_int_equal(run_template(fixture, PHASE_PRESTART), rows[i].code);
        assert_true(text_starts_with(fixture->text, "local/noop: "));
        assert_non_null(strstr(fixture->text, rows[i].text));
        assert_int_equal(fixture->outcome.recoverable, rows[i].recoverable);
    }
    beside_program(fixture->parser, "cairn-parse");
    assert_int_equal(run_template(fixture, PHASE_PRESTART), 0);
    assert_says(fixture, "noop", "1");
    assert_int_equal(path_join(fixture->parser, fixture->scratch.path, "none"), 0);
    assert_int_equal(run_template(fixture, PHASE_PRESTART), ERR_IO);
    assert_true(fixture->outcome.recoverable);
}

/* How often FILE was written to. */
static size_t lines_of(struct fixture *fixture, const char *name)
{
    char path[PATH_SIZE], *bytes;
    size_t length, lines = 0;

    assert_int_equal(path_join(path, fixture->scratch.path, name), 0);
    if (file_read(path, 1024, &bytes, &length, NULL) != 0)
        return 0;
    for (const char *at = bytes; (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    free(bytes);
    return lines;
}

/* Told once, however often it is tried, until it is over without anybody's doing. */
static void test_failure_that_may_be_over_is_tried_again(void **state)
{
    struct fixture *fixture = *state;
    char script[3 * PATH_SIZE], real[PATH_SIZE], works[PATH_SIZE];

    (void)text_copy(real, sizeof(real), fixture->parser); /* same size */
    assert_int_equal(path_join(works, fixture->scratch.path, "works"), 0);
    assert_int_equal(run_template(fixture, PHASE_PRESTART), 0);
    assert_true(text_format(script, sizeof(script),
                            "#!/bin/sh\n[ -e %s ] && exec %s templates\necho >> %s/tries\n", works,
                            real, fixture->scratch.path));
    replace_renderer(fixture, script);
    come_back(fixture);
    put(fixture, "b", "2");
    assert_int_equal(run_template(fixture, PHASE_POSTSTART), 0);
    await_telling(fixture, 1);
    assert_int_equal(rendered.code, ERR_CORRUPT);
    while (lines_of(fixture, "tries") < 3)
        run_for_a_moment(fixture);
    assert_int_equal(rendered.tellings, 1);
    assert_says(fixture, "signal", "1");
    assert_int_equal(file_write_durable(works, "", 0, 0644, &fixture->scratch.err), 0);
    await_telling(fixture, 2);
    assert_int_equal(rendered.code, 0);
    assert_int_equal(rendered.signals, 1u << 9);
    assert_says(fixture, "signal", "2");
    assert_quiet(fixture, 2, "c");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, make, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_nothing_is_written_or_told_where_nothing_has_changed),
        TEST(test_each_change_is_told_once_and_as_it_asks),
        TEST(test_change_while_nobody_looked_is_told),
        TEST(test_file_that_is_gone_leaves_all_as_it_is_until_it_is_back),
        TEST(test_change_that_is_taken_back_within_the_splay_is_none),
        TEST(test_splay_of_what_was_taken_back_holds_up_nothing),
        TEST(test_start_and_end_of_the_task_end_its_watch),
        TEST(test_template_that_is_rendered_once_is_left),
        TEST(test_templates_reach_the_directory_of_the_alloc),
        TEST(test_files_of_the_alloc_are_no_files_for_templates),
        TEST(test_services_are_told_to_who_asks_for_them),
        TEST(test_services_that_others_know_cannot_be_asked_for),
        TEST(test_change_of_services_is_told_as_their_template_asks),
        TEST(test_services_alone_are_watched_whoever_asks),
        TEST(test_renderer_that_fails_fails_what_it_renders),
        TEST(test_failure_that_may_be_over_is_tried_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
