/*
 * The hook that has identities signed, before a start and while the task runs.  Whoever is told
 * here stops the loop.
 */
#include "test/hooks/fixture.h"

#include "fsm/policy.h"
#include "hooks/signing.h"

#define HOUR_NS (INT64_C(3600) * 1000000000)

static struct {
    struct hooks_signer signer;
    struct hooks_templates told_to;
    struct spec_named_identity identities[3];

    /* What is asked, and how that is answered. */
    unsigned asked;
    size_t count;
    char names[SPEC_IDENTITIES_MAX][16];
    unsigned vain;         /* answers from now on that are none */
    bool for_good;         /* and whether they are refusals */
    bool holds;            /* the answer: it comes by answer_held() */
    int64_t expires_in_ns; /* from now on; 0: never */
    size_t length;         /* of a token, 0: a short one */
    spec_signed_cb *held;
    void *held_ctx;

    /* What the machine knows. */
    uint8_t results[RESULTS_BYTES_MAX];
    uint32_t results_bytes;
    unsigned tellings;
    int code;
    char text[DESCRIPTION_SIZE];
} world;

static void answer_held(void)
{
    static char room[SPEC_IDENTITIES_MAX][SPEC_TOKEN_SIZE];
    struct spec_signed tokens[SPEC_IDENTITIES_MAX];
    struct err err = {0};

    for (size_t i = 0; i < world.count; i++) {
        assert_true(text_format(room[i], sizeof(room[i]), "%s.%u", world.names[i], world.asked));
        for (size_t at = strlen(room[i]); at < world.length; at++)
            room[i][at] = 'x';
        tokens[i] = (struct spec_signed){
            room[i], world.expires_in_ns == 0 ? 0 : loop_now_unix_ns() + world.expires_in_ns};
    }
    if (world.vain > 0) {
        (void)err_set(&err, ERR_REFUSED, "they say no");
        err.recoverable = !world.for_good;
        world.vain--;
        world.held(world.held_ctx, NULL, &err);
    } else {
        world.held(world.held_ctx, tokens, &err);
    }
}

static void assert_file(struct fixture *fixture, const char *path, const char *token,
                        const char *user)
{
    struct stat status;
    char *bytes;
    size_t length;

    assert_int_equal(
        file_read(in_alloc(fixture, path), 100, &bytes, &length, &fixture->scratch.err), 0);
    assert_int_equal(length, strlen(token));
    assert_memory_equal(bytes, token, length);
    free(bytes);
    assert_return_code(lstat(in_alloc(fixture, path), &status), 0);
    assert_int_equal(status.st_mode, S_IFREG | 0600u);
    assert_int_equal(status.st_uid, user[0] == '\0' ? geteuid() : getpwnam(user)->pw_uid);
}

static void on_sign(void *ctx, const char *alloc, uint64_t index, const struct spec_bearer *bearers,
                    size_t count, spec_signed_cb *cb, void *cb_ctx)
{
    struct fixture *fixture = ctx;

    assert_string_equal(alloc, ALLOC_ID);
    assert_int_equal(index, 7);
    assert_in_range(count, 1, SPEC_IDENTITIES_MAX);
    world.asked++;
    world.count = count;
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(bearers[i].workload, "web");
        assert_null(bearers[i].service);
        assert_true(text_copy(world.names[i], sizeof(world.names[i]), bearers[i].identity));
    }
    world.held = cb;
    world.held_ctx = cb_ctx;
    if (world.holds)
        loop_stop(fixture->loop);
    else
        answer_held();
}

static void take(const struct hook_outcome *outcome)
{
    struct results results = {world.results, world.results_bytes, sizeof(world.results)};

    assert_int_equal(
        results_take(&results, TASK_HOOK_IDENTITY, outcome->results, outcome->results_bytes), 0);
    world.results_bytes = results.used;
}

static void on_changed(void *ctx, const char *alloc, const char *task,
                       const struct hook_outcome *outcome)
{
    struct fixture *fixture = ctx;

    assert_string_equal(alloc, ALLOC_ID);
    assert_string_equal(task, "web");
    assert_int_equal(outcome->hook, TASK_HOOK_IDENTITY);
    world.tellings++;
    world.code = outcome->code;
    assert_true(text_copy(world.text, sizeof(world.text), outcome->text));
    if (outcome->code == 0)
        take(outcome);
    loop_stop(fixture->loop);
}

static void on_done(void *ctx, const struct hook_outcome *outcome)
{
    struct fixture *fixture = ctx;

    fixture->answered = true;
    fixture->outcome = *outcome;
    assert_true(text_copy(fixture->text, sizeof(fixture->text), outcome->text));
    if (outcome->code == 0 && outcome->results_bytes > 0)
        take(outcome);
    loop_stop(fixture->loop);
}

static void begin(struct fixture *fixture, enum hook_phase phase)
{
    const struct hook_run run = {
        .phase = phase,
        .hook = TASK_HOOK_IDENTITY,
        .alloc = &fixture->alloc,
        .task = &fixture->task,
        .results = world.results,
        .results_bytes = world.results_bytes,
    };

    fixture->answered = false;
    hook_run(fixture->hooks, &run, on_done, fixture);
    assert_false(fixture->answered);
}

static int await(struct fixture *fixture)
{
    while (!fixture->answered)
        loop_run(fixture->loop);
    return fixture->outcome.code;
}

/* It may be told something while it does. */
static void begin_strip(struct fixture *fixture)
{
    const struct hook_run run = {.phase = PHASE_STOP,
                                 .hook = TASK_HOOK_TASK_DIR,
                                 .alloc = &fixture->alloc,
                                 .task = &fixture->task};

    fixture->answered = false;
    hook_run(fixture->hooks, &run, on_done, fixture);
}

static int strip(struct fixture *fixture)
{
    begin_strip(fixture);
    return await(fixture);
}

static int run_phase(struct fixture *fixture, enum hook_phase phase)
{
    begin(fixture, phase);
    return await(fixture);
}

static void await_telling(struct fixture *fixture, unsigned count)
{
    while (world.tellings < count)
        loop_run(fixture->loop);
    assert_int_equal(world.tellings, count);
}

static const char *result_of(enum result_kind kind, const char *key)
{
    static char text[SPEC_TOKEN_SIZE];
    struct result result;

    for (uint32_t at = 0; results_next(world.results, world.results_bytes, &at, &result);) {
        if (result.hook != TASK_HOOK_IDENTITY || result.kind != kind ||
            !text_equal(result.key, key))
            continue;
        assert_true(
            text_format(text, sizeof(text), "%.*s", (int)result.value_length, result.value));
        return text;
    }
    return "";
}

/* One that expires, in a file and a variable, of which the task is told by a signal; one in a file
 * that never does; and one that it does not see, and is restarted for. */
static int make(void **state)
{
    int code = fixture_make(state);
    struct fixture *fixture = *state;

    memset(&world, 0, sizeof(world));
    world.signer = (struct hooks_signer){.ctx = fixture, .sign = on_sign};
    world.told_to = (struct hooks_templates){.ctx = fixture, .changed = on_changed};
    world.identities[0] = (struct spec_named_identity){.name = "aws",
                                                       .env = true,
                                                       .file = "secrets/nomad_aws.jwt",
                                                       .change = SPEC_CHANGE_SIGNAL,
                                                       .signal = "SIGHUP",
                                                       .ttl_ms = 1000};
    world.identities[1] = (struct spec_named_identity){
        .name = "ever", .file = "local/in/ever", .change = SPEC_CHANGE_RESTART, .signal = ""};
    world.identities[2] = (struct spec_named_identity){
        .name = "quiet", .file = "", .change = SPEC_CHANGE_NOOP, .signal = "", .ttl_ms = 1000};
    fixture->task.identities = world.identities;
    fixture->task.identities_count = COUNT_OF(world.identities);
    fixture->alloc.create_index = 7;
    fixture->signer = &world.signer;
    fixture->templates = &world.told_to;
    start_hooks(fixture, NULL);
    assert_int_equal(build_alloc(fixture), 0);
    assert_int_equal(build_task(fixture), 0);
    return code;
}

static int end(void **state)
{
    int code = strip_task(*state);

    return fixture_remove(state) != 0 || code != 0;
}

static void test_tokens_are_there_before_the_start(void **state)
{
    struct fixture *fixture = *state;

    world.expires_in_ns = HOUR_NS;
    assert_int_equal(run_phase(fixture, PHASE_PRESTART), 0);
    assert_int_equal(world.asked, 1);
    assert_int_equal(world.count, 3);
    assert_file(fixture, "web/secrets/nomad_aws.jwt", "aws.1", "");
    assert_file(fixture, "web/local/in/ever", "ever.1", "");
    assert_string_equal(result_of(RESULT_ENV, "NOMAD_TOKEN_aws"), "aws.1");
    assert_string_equal(result_of(RESULT_ENV, "NOMAD_TOKEN_ever"), "");
    assert_string_equal(result_of(RESULT_DATA, "token/quiet"), "quiet.1");
}

static void test_files_are_the_users(void **state)
{
    struct fixture *fixture = *state;

    need_root();
    fixture->task.user = "nobody";
    assert_int_equal(build_task(fixture), 0);
    assert_int_equal(run_phase(fixture, PHASE_PRESTART), 0);
    assert_file(fixture, "web/secrets/nomad_aws.jwt", "aws.1", "nobody");
    assert_file(fixture, "web/local/in/ever", "ever.1", "nobody");
}

static void test_without_servers_there_are_none(void **state)
{
    struct fixture *fixture = *state;

    fixture->signer = NULL;
    start_hooks(fixture, NULL);
    assert_int_equal(run_phase(fixture, PHASE_PRESTART), ERR_UNSUPPORTED);
}

static void test_what_is_refused_is_asked_for_once(void **state)
{
    struct fixture *fixture = *state;

    world.vain = 1;
    world.for_good = true;
    assert_int_equal(run_phase(fixture, PHASE_PRESTART), ERR_REFUSED);
    assert_false(fixture->outcome.recoverable);
    assert_string_equal(fixture->text, "failed to fetch signed identities: they say no");
    assert_int_equal(world.asked, 1);
    assert_int_equal(access(in_alloc(fixture, "web/secrets/nomad_aws.jwt"), F_OK), -1);
}

static void test_who_is_not_answered_asks_again(void **state)
{
    struct fixture *fixture = *state;

    world.vain = 1;
    assert_int_equal(run_phase(fixture, PHASE_PRESTART), 0);
    assert_int_equal(world.asked, 2);
    assert_file(fixture, "web/secrets/nomad_aws.jwt", "aws.2", "");
}

/* Also while the servers are away. */
static void test_tokens_that_last_are_had_again(void **state)
{
    struct fixture *fixture = *state;

    world.expires_in_ns = HOUR_NS;
    assert_int_equal(run_phase(fixture, PHASE_PRESTART), 0);
    assert_return_code(unlink(in_alloc(fixture, "web/secrets/nomad_aws.jwt")), 0);
    assert_int_equal(run_phase(fixture, PHASE_PRESTART), 0);
    assert_int_equal(world.asked, 1);
    assert_file(fixture, "web/secrets/nomad_aws.jwt", "aws.1", "");
    assert_string_equal(result_of(RESULT_ENV, "NOMAD_TOKEN_aws"), "aws.1");
}

static void test_tokens_that_do_not_last_are_asked_for(void **state)
{
    struct fixture *fixture = *state;

    world.expires_in_ns = HOUR_NS / 3600; /* a second: they have expired before anybody starts */
    assert_int_equal(run_phase(fixture, PHASE_PRESTART), 0);
    assert_int_equal(run_phase(fixture, PHASE_PRESTART), 0);
    assert_int_equal(world.asked, 2);
    world.identities[2].name = "other"; /* as in a newer version of the job */
    world.expires_in_ns = HOUR_NS;
    assert_int_equal(run_phase(fixture, PHASE_PRESTART), 0);
    assert_int_equal(world.asked, 3);
    assert_int_equal(run_phase(fixture, PHASE_PRESTART), 0);
    assert_int_equal(world.asked, 3);
    world.identities[2].name = "third";
    assert_int_equal(run_phase(fixture, PHASE_PRESTART), 0);
    assert_int_equal(world.asked, 4);
}

static void test_who_ends_meanwhile_waits_for_nobody(void **state)
{
    struct fixture *fixture = *state;

    world.holds = true;
    begin(fixture, PHASE_PRESTART);
    loop_run(fixture->loop);
    assert_int_equal(world.asked, 1);
    hooks_abort(fixture->hooks, ALLOC_ID, "web");
    assert_int_equal(await(fixture), ERR_CANCELED);
    answer_held();
    assert_int_equal(access(in_alloc(fixture, "web/secrets/nomad_aws.jwt"), F_OK), -1);
}

/* Nobody is told, and nothing is left. */
static void test_hooks_may_end_while_they_wait(void **state)
{
    struct fixture *fixture = *state;

    world.holds = true;
    begin(fixture, PHASE_PRESTART);
    loop_run(fixture->loop);
    hooks_abort(fixture->hooks, ALLOC_ID, "web");
    assert_int_equal(await(fixture), ERR_CANCELED);
    begin(fixture, PHASE_PRESTART);
    loop_run(fixture->loop);
    start_hooks(fixture, NULL);
    assert_false(fixture->answered);
}

static void test_tokens_have_to_fit(void **state)
{
    struct fixture *fixture = *state;

    world.length = RESULT_VALUE_MAX + 1;
    assert_int_equal(run_phase(fixture, PHASE_PRESTART), ERR_LIMIT);
    assert_string_equal(fixture->text, "the tokens are too long");
    world.length = RESULT_VALUE_MAX - 1;
    static const uint8_t value[RESULT_VALUE_MAX];
    struct results others = {world.results, 0, sizeof(world.results)};
    for (int i = 0; i < 2; i++)
        assert_int_equal(results_set(&others, TASK_HOOK_DEVICES, RESULT_ENV, i == 0 ? "A" : "B",
                                     value, sizeof(value)),
                         0);
    world.results_bytes = others.used;
    assert_int_equal(run_phase(fixture, PHASE_PRESTART), ERR_LIMIT);
    assert_non_null(strstr(fixture->text, "what it leaves is too long: "));
}

/* --- renewing --- */

/* With tokens that have expired; newer ones are good. */
static void start(struct fixture *fixture)
{
    world.expires_in_ns = -1;
    assert_int_equal(run_phase(fixture, PHASE_PRESTART), 0);
    world.expires_in_ns = HOUR_NS;
    assert_int_equal(run_phase(fixture, PHASE_POSTSTART), 0);
}

/* The same, and their answer waits. */
static void start_and_hold(struct fixture *fixture)
{
    unsigned asked = world.asked;

    world.expires_in_ns = -1;
    world.holds = false;
    assert_int_equal(run_phase(fixture, PHASE_PRESTART), 0);
    world.expires_in_ns = HOUR_NS;
    world.holds = true;
    assert_int_equal(run_phase(fixture, PHASE_POSTSTART), 0);
    while (world.asked < asked + 2)
        loop_run(fixture->loop);
}

static void test_those_that_expire_are_renewed_and_told(void **state)
{
    struct fixture *fixture = *state;

    start(fixture);
    await_telling(fixture, 1);
    assert_int_equal(world.asked, 2);
    assert_int_equal(world.count, 2);
    assert_string_equal(world.names[1], "quiet");
    assert_int_equal(world.code, 0);
    assert_string_equal(world.text, "SIGHUP");
    assert_file(fixture, "web/secrets/nomad_aws.jwt", "aws.2", "");
    assert_file(fixture, "web/local/in/ever", "ever.1", "");
    assert_string_equal(result_of(RESULT_ENV, "NOMAD_TOKEN_aws"), "aws.2");
    assert_string_equal(result_of(RESULT_DATA, "token/quiet"), "quiet.2");
    assert_string_equal(result_of(RESULT_DATA, "token/ever"), "ever.1");
    assert_int_equal(strip(fixture), 0);
}

static void test_whose_are_renewed_is_told(void **state)
{
    struct fixture *fixture = *state;

    world.identities[0].change = world.identities[2].change = SPEC_CHANGE_RESTART;
    start(fixture);
    await_telling(fixture, 1);
    assert_string_equal(world.text, "aws, quiet");
    assert_int_equal(strip(fixture), 0);
}

static void test_those_that_are_good_are_left(void **state)
{
    struct fixture *fixture = *state;

    world.expires_in_ns = HOUR_NS;
    assert_int_equal(run_phase(fixture, PHASE_PRESTART), 0);
    assert_int_equal(run_phase(fixture, PHASE_POSTSTART), 0);
    assert_int_equal(run_phase(fixture, PHASE_POSTSTART), 0); /* as of a daemon that is back */
    world.identities[0].ttl_ms = world.identities[2].ttl_ms = 0;
    assert_int_equal(run_phase(fixture, PHASE_POSTSTART), 0);
    assert_int_equal(strip(fixture), 0);
    assert_int_equal(world.asked, 1);
    assert_int_equal(world.tellings, 0);
}

/* The daemon died between writing and telling: the task has what its machine does not know. */
static void test_a_file_that_is_another_is_renewed_at_once(void **state)
{
    struct fixture *fixture = *state;

    world.expires_in_ns = HOUR_NS;
    assert_int_equal(run_phase(fixture, PHASE_PRESTART), 0);
    assert_int_equal(file_write_durable(in_alloc(fixture, "web/secrets/nomad_aws.jwt"), "aws.9", 5,
                                        0600, &fixture->scratch.err),
                     0);
    assert_int_equal(run_phase(fixture, PHASE_POSTSTART), 0);
    await_telling(fixture, 1);
    assert_file(fixture, "web/secrets/nomad_aws.jwt", "aws.2", "");
    assert_string_equal(result_of(RESULT_ENV, "NOMAD_TOKEN_aws"), "aws.2");
    assert_int_equal(strip(fixture), 0);
}

/* It keeps what it had, and the file of that. */
static void test_one_that_fails_is_told_and_changes_nothing(void **state)
{
    struct fixture *fixture = *state;

    start_and_hold(fixture);
    world.vain = 1;
    answer_held();
    await_telling(fixture, 1);
    assert_int_equal(world.code, ERR_REFUSED);
    assert_string_equal(world.text, "error renewing workload identities: they say no");
    assert_file(fixture, "web/secrets/nomad_aws.jwt", "aws.1", "");
    assert_string_equal(result_of(RESULT_ENV, "NOMAD_TOKEN_aws"), "aws.1");
    assert_int_equal(strip(fixture), 0);
}

static void test_who_has_ended_is_told_nothing(void **state)
{
    struct fixture *fixture = *state;

    start_and_hold(fixture);
    assert_int_equal(strip(fixture), 0);
    answer_held();
    assert_int_equal(world.tellings, 0);
    assert_int_equal(build_task(fixture), 0);
    world.results_bytes = 0;
    start_and_hold(fixture); /* and whoever is asked is gone */
    start_hooks(fixture, NULL);
}

/* --- who is just writing --- */

enum { POOL = 4 };

struct gate {
    struct io_work works[POOL];
    int ends[2];
};

static void wait_at_gate(struct io_work *work)
{
    char byte;

    assert_int_equal(read(((struct gate *)work->ctx)->ends[0], &byte, 1), 1);
}

static void pass_gate(struct io_work *work)
{
    work->ctx = NULL;
}

/* Nothing is written until it is opened. */
static void close_gate(struct fixture *fixture, struct gate *gate)
{
    memset(gate, 0, sizeof(*gate));
    assert_return_code(pipe(gate->ends), 0);
    for (int i = 0; i < POOL; i++)
        io_work_submit(fixture->loop, &gate->works[i], wait_at_gate, pass_gate, gate);
}

static void open_gate(struct gate *gate)
{
    assert_int_equal(write(gate->ends[1], "four", POOL), POOL);
    assert_return_code(close(gate->ends[1]), 0);
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

/* One that writes while the task starts again has written before the start does. */
static void test_a_start_waits_for_who_writes(void **state)
{
    struct fixture *fixture = *state;

    static struct gate gate; /* works are in it */

    start_and_hold(fixture);
    world.holds = false;
    close_gate(fixture, &gate);
    answer_held(); /* and is being written */
    begin(fixture, PHASE_PRESTART);
    run_for_a_moment(fixture);
    unsigned asked = world.asked;
    open_gate(&gate);
    assert_int_equal(asked, 2);
    assert_int_equal(await(fixture), 0);
    assert_int_equal(world.asked, 3);
    assert_file(fixture, "web/secrets/nomad_aws.jwt", "aws.3", "");
    assert_int_equal(world.tellings, 0);
}

/* What came behind them would be below them, on the disk. */
static void test_secrets_are_taken_away_behind_who_writes(void **state)
{
    struct fixture *fixture = *state;
    struct stat status;
    static struct gate gate; /* works are in it */

    start_and_hold(fixture);
    close_gate(fixture, &gate);
    answer_held(); /* and is being written */
    begin_strip(fixture);
    run_for_a_moment(fixture);
    open_gate(&gate);
    assert_int_equal(await(fixture), 0);
    if (geteuid() == 0) {
        assert_int_equal(lstat(in_alloc(fixture, "web/secrets/nomad_aws.jwt"), &status), -1);
    }
    assert_int_equal(world.tellings, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_tokens_are_there_before_the_start),
        TEST(test_files_are_the_users),
        TEST(test_without_servers_there_are_none),
        TEST(test_what_is_refused_is_asked_for_once),
        TEST(test_who_is_not_answered_asks_again),
        TEST(test_tokens_that_last_are_had_again),
        TEST(test_tokens_that_do_not_last_are_asked_for),
        TEST(test_who_ends_meanwhile_waits_for_nobody),
        TEST(test_hooks_may_end_while_they_wait),
        TEST(test_tokens_have_to_fit),
        TEST(test_those_that_expire_are_renewed_and_told),
        TEST(test_whose_are_renewed_is_told),
        TEST(test_those_that_are_good_are_left),
        TEST(test_a_file_that_is_another_is_renewed_at_once),
        TEST(test_one_that_fails_is_told_and_changes_nothing),
        TEST(test_who_has_ended_is_told_nothing),
        TEST(test_a_start_waits_for_who_writes),
        TEST(test_secrets_are_taken_away_behind_who_writes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
