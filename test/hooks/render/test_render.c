/*
 * The hook that renders, and its watches on what templates of a running task read.  Whoever is told
 * here stops the loop.
 */
#include "test/hooks/fixture.h"

#include "fsm/policy.h"

struct wished {
    const struct spec_question *question;
    void (*news)(void *ctx);
    void *ctx;
    char *text;
};

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
    struct hooks_facts facts;
    const char *answers;       /* to questions, a JSON object; none: nobody knows */
    struct err refusal;        /* and why */
    struct wished wishes[256]; /* those that have a question */
    unsigned questions;        /* that were asked in all */
    char waits[DESCRIPTION_SIZE];
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

/* --- what others know --- */

static void *want(void *ctx, const struct spec_question *question, void (*news)(void *news_ctx),
                  void *news_ctx)
{
    size_t i = 0;

    assert_ptr_equal(ctx, &rendered);
    while (rendered.wishes[i].question != NULL)
        assert_true(++i < COUNT_OF(rendered.wishes));
    rendered.wishes[i] = (struct wished){.question = question, .news = news, .ctx = news_ctx};
    rendered.questions++;
    return &rendered.wishes[i];
}

static const char *known(void *ctx, const void *wanted, struct err *err)
{
    static const char *const kinds[] = {"services", "service", "variable", "variables"};
    struct wished *wish = &rendered.wishes[(const struct wished *)wanted - rendered.wishes];
    json_t *answers = json_loads(rendered.answers, 0, NULL);
    char key[128];

    assert_ptr_equal(ctx, &rendered);
    assert_non_null(answers);
    assert_non_null(wish->question);
    assert_string_equal(wish->question->namespace, "default");
    assert_string_equal(wish->question->asker->token, "its token");
    assert_true(
        text_format(key, sizeof(key), "%s %s", kinds[wish->question->kind], wish->question->name));
    free(wish->text);
    wish->text = json_dumps(json_object_get(answers, key), JSON_COMPACT | JSON_ENCODE_ANY);
    json_decref(answers);
    if (wish->text == NULL)
        *err = rendered.refusal;
    return wish->text;
}

static void forget(void *ctx, void *wanted)
{
    struct wished *wish = wanted;

    assert_ptr_equal(ctx, &rendered);
    free(wish->text);
    *wish = (struct wished){0};
}

/* Others know ANSWERS now, and say so. */
static void tell_answers(const char *answers)
{
    rendered.answers = answers;
    for (size_t i = 0; i < COUNT_OF(rendered.wishes); i++) {
        if (rendered.wishes[i].question != NULL)
            rendered.wishes[i].news(rendered.wishes[i].ctx);
    }
}

static unsigned count_wishes(void)
{
    unsigned count = 0;

    for (size_t i = 0; i < COUNT_OF(rendered.wishes); i++)
        count += rendered.wishes[i].question != NULL;
    return count;
}

/* The hooks are gone, and have not said so. */
static void forget_all(void)
{
    for (size_t i = 0; i < COUNT_OF(rendered.wishes); i++)
        forget(&rendered, &rendered.wishes[i]);
}

static void on_waits(void *ctx, const char *alloc, const char *task, const char *text)
{
    struct fixture *fixture = ctx;

    assert_string_equal(alloc, ALLOC_ID);
    assert_string_equal(task, "web");
    (void)text_copy(rendered.waits, sizeof(rendered.waits), text); /* same size */
    loop_stop(fixture->loop);
}

static int make(void **state)
{
    int code = fixture_make(state);
    struct fixture *fixture = *state;

    rendered = (struct rendered_task){
        .told = {.ctx = fixture, .changed = on_changed, .waits = on_waits},
        .facts = {.ctx = &rendered, .want = want, .known = known, .forget = forget},
        .answers = "{}"};
    fixture->facts = &rendered.facts;
    fixture->templates = &rendered.told;
    fixture->alloc.group = "front";
    fixture->task.identity.token = "its token";
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
    int code = fixture_remove(state);
    forget_all();
    return code;
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
    forget_all();
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

static void test_what_others_know_is_told_to_who_asks_for_it(void **state)
{
    struct fixture *fixture = *state;

    start(fixture);
    assert_int_equal(rendered.questions, 0); /* nobody does */
    ask_for_web(0);
    rendered.answers = "{\"service web\": [" WEB("8080") "," WEB("80") "]}";
    assert_int_equal(run_template(fixture, PHASE_PRESTART), 0);
    assert_int_equal(rendered.questions, 1);
    assert_says(fixture, "noop", "80,8080,"); /* in the order of their ids */
    assert_int_equal(run_template(fixture, PHASE_PRESTART), 0);
    assert_int_equal(rendered.questions, 1); /* it is known for as long as the task is there */
    assert_int_equal(run_template(fixture, PHASE_STOP), 0);
    assert_int_equal(count_wishes(), 0);
}

static void test_what_nobody_knows_here_cannot_be_asked_for(void **state)
{
    struct fixture *fixture = *state;

    fixture->facts = NULL;
    come_back(fixture);
    ask_for_web(0);
    assert_int_equal(run_template(fixture, PHASE_PRESTART), ERR_REFUSED);
    rendered.templates[0].data = "{{ nomadVar \"a\" }}";
    assert_int_equal(run_template(fixture, PHASE_PRESTART), ERR_INVALID);
    assert_non_null(strstr(fixture->text, "needs a server, which this node has not"));
}

static void test_change_of_what_others_know_is_told_as_its_template_asks(void **state)
{
    struct fixture *fixture = *state;

    ask_for_web(1);
    rendered.answers = "{\"service web\": []}";
    start(fixture);
    assert_says(fixture, "signal", "none");
    tell_answers("{\"service web\": [" WEB("80") "]}");
    await_telling(fixture, 1);
    assert_int_equal(rendered.signals, 1u << 9);
    assert_says(fixture, "signal", "80,");
    tell_answers("{\"service web\": [" WEB("80") "], \"more\": 1}");
    assert_quiet(fixture, 1, "c"); /* it says the same */
    tell_answers("{\"service web\": []}");
    await_telling(fixture, 2);
    assert_says(fixture, "signal", "none");
}

/* Nothing else keeps the watch, and what is written in a file is only known when it is read. */
static void test_what_others_know_alone_is_watched_whoever_asks(void **state)
{
    static const char asks[] = "{{ range nomadServices }}{{ .Name }}{{ end }}";
    struct fixture *fixture = *state;

    put(fixture, "asks.tpl", asks);
    rendered.templates[0] = rendered.templates[1];
    rendered.templates[0].data = "";
    rendered.templates[0].source = "local/asks.tpl";
    rendered.templates[1] = template_of(asks, "local/alone", SPEC_CHANGE_NOOP);
    fixture->task.templates_count = 2;
    rendered.answers = "{\"services \": []}";
    start(fixture);
    assert_says(fixture, "signal", "");
    rendered.answers = "{\"services \": [{\"ServiceName\": \"web\"}]}";
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
    tell_answers("{\"services \": [{\"ServiceName\": \"db\"}]}");
    await_telling(fixture, 2);
    assert_says(fixture, "alone", "db");
}

#define VARIABLE(value)                                                                            \
    "{\"variable a/b\": {\"Path\": \"a/b\", \"Items\": {\"x\": \"" value                           \
    "\"}}, \"variable c\": null}"

static void begin_start(struct fixture *fixture)
{
    const struct hook_run run = {.phase = PHASE_PRESTART,
                                 .hook = TASK_HOOK_TEMPLATE,
                                 .alloc = &fixture->alloc,
                                 .task = &fixture->task};

    fixture->answered = false;
    hook_run(fixture->hooks, &run, on_rendered, fixture);
}

static void test_start_waits_for_what_is_not_known_and_says_so(void **state)
{
    struct fixture *fixture = *state;

    rendered.templates[0].data =
        "{{ with nomadVar \"a/b\" }}{{ .x }}{{ nomadVarExists \"c\" }}{{ end }}";
    rendered.templates[1].data = "{{ with nomadVar \"d\" }}x{{ end }}{{ nomadService \"web\" }}";
    rendered.templates[2].data = "{{ (nomadVar \"e\").f }}"; /* which makes no sense by now */
    rendered.templates[2].strict = true;
    begin_start(fixture);
    while (rendered.waits[0] == '\0')
        loop_run(fixture->loop);
    assert_string_equal(rendered.waits,
                        "Missing: nomad.service(web), nomad.var.block(a/b@default.global), "
                        "nomad.var.block(d@default.global), and 1 more");
    assert_false(fixture->answered);
    tell_answers("{\"variable a/b\": null, \"variable d\": null}"); /* it is still not there */
    assert_false(fixture->answered);
    rendered.templates[0].data = ""; /* who has begun has its own */
    tell_answers("{\"variable a/b\": {\"Items\": {\"x\": \"y\"}}, \"variable c\": null,"
                 " \"variable d\": {\"Items\": {\"n\": \"\"}}, \"service web\": [],"
                 " \"variable e\": {\"Items\": {\"f\": \"g\"}}}");
    while (!fixture->answered)
        loop_run(fixture->loop);
    assert_int_equal(fixture->outcome.code, 0);
    assert_says(fixture, "noop", "yfalse");
    assert_says(fixture, "restart", "g");
}

static void test_start_ends_by_what_is_refused_for_good(void **state)
{
    struct fixture *fixture = *state;

    rendered.templates[0].data = "{{ with nomadVar \"a/b\" }}{{ .x }}{{ end }}";
    rendered.refusal = (struct err){.code = ERR_REFUSED, .text = "Permission denied"};
    assert_int_equal(run_template(fixture, PHASE_PRESTART), ERR_REFUSED);
    assert_string_equal(fixture->text, "nomad.var.block(a/b@default.global): Permission denied");
    assert_false(fixture->outcome.recoverable);
}

/* Nothing of it is written any more when the task is taken away. */
static void test_start_that_nobody_waits_for_ends_and_is_told(void **state)
{
    struct fixture *fixture = *state;

    rendered.templates[0].data = "{{ with nomadVar \"a/b\" }}{{ .x }}{{ end }}";
    for (int waits = 0; waits < 2; waits++) {
        begin_start(fixture);
        for (int i = 0; i < 20 * waits; i++)
            run_for_a_moment(fixture);
        hooks_abort(fixture->hooks, ALLOC_ID, "web");
        while (!fixture->answered)
            loop_run(fixture->loop);
        assert_int_equal(fixture->outcome.code, ERR_CANCELED);
        assert_int_equal(run_template(fixture, PHASE_STOP), 0);
        assert_int_equal(count_wishes(), 0);
    }
    begin_start(fixture);
    come_back(fixture); /* while it renders */
    begin_start(fixture);
    for (int i = 0; i < 20; i++)
        run_for_a_moment(fixture);
}

static void test_what_is_known_no_more_stays_as_it_is(void **state)
{
    struct fixture *fixture = *state;

    rendered.templates[1].data =
        "{{ with nomadVar \"a/b\" }}{{ .x }}{{ end }}{{ if nomadVarExists \"c\" }}!{{ end }}";
    rendered.answers = VARIABLE("1");
    start(fixture);
    tell_answers("{\"variable a/b\": null, \"variable c\": null}"); /* it is deleted */
    assert_quiet(fixture, 0, "c");
    assert_says(fixture, "signal", "1");
    rendered.answers = "{}"; /* the daemon comes back, and nobody answers */
    come_back(fixture);
    assert_int_equal(run_template(fixture, PHASE_POSTSTART), 0);
    for (int i = 0; i < 20; i++)
        run_for_a_moment(fixture);
    assert_int_equal(rendered.tellings, 0);
    assert_says(fixture, "signal", "1");
    tell_answers(VARIABLE("1"));
    assert_quiet(fixture, 0, "c");
    rendered.answers = "{}";
    come_back(fixture);
    assert_int_equal(run_template(fixture, PHASE_POSTSTART), 0);
    for (int i = 0; i < 20; i++)
        run_for_a_moment(fixture);
    tell_answers(VARIABLE("2")); /* it was changed meanwhile */
    await_telling(fixture, 1);
    assert_int_equal(rendered.signals, 1u << 9);
    assert_says(fixture, "signal", "2");
}

static void test_questions_of_a_task_have_a_bound(void **state)
{
    struct fixture *fixture = *state;

    rendered.templates[0].data =
        "{{ range loop 300 }}{{ nomadVarExists (print \"v\" .) }}{{ end }}";
    assert_int_equal(run_template(fixture, PHASE_PRESTART), ERR_LIMIT);
    assert_non_null(strstr(fixture->text, "ask for more than 256 things"));
    assert_int_equal(count_wishes(), 256);
    assert_int_equal(run_template(fixture, PHASE_STOP), 0);
    assert_int_equal(count_wishes(), 0);
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
        {"#!/bin/sh\nprintf 'c\\2\\0\\0\\0{}' >&3; exec sleep 1000\n", ERR_CORRUPT, "as it should",
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
        TEST(test_what_others_know_is_told_to_who_asks_for_it),
        TEST(test_what_nobody_knows_here_cannot_be_asked_for),
        TEST(test_change_of_what_others_know_is_told_as_its_template_asks),
        TEST(test_what_others_know_alone_is_watched_whoever_asks),
        TEST(test_start_waits_for_what_is_not_known_and_says_so),
        TEST(test_start_ends_by_what_is_refused_for_good),
        TEST(test_start_that_nobody_waits_for_ends_and_is_told),
        TEST(test_what_is_known_no_more_stays_as_it_is),
        TEST(test_questions_of_a_task_have_a_bound),
        TEST(test_renderer_that_fails_fails_what_it_renders),
        TEST(test_failure_that_may_be_over_is_tried_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
