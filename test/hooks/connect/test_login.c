/* Tokens of Consul for the identities of an alloc: had once, kept through ends of the daemon, given
 * back.  Whoever is told here stops the loop. */
#include "test/hooks/fixture.h"

#include "hooks/connect/part.h"

#include <stdlib.h>

enum { MORE = 4 };

static struct {
    struct hooks_signer signer;
    struct hooks_connect connect;
    struct spec_service services[3];

    unsigned signings;
    size_t signed_count;  /* of the last */
    unsigned refusals;    /* of the next that are asked to sign, who may later */
    char logins[16][160]; /* who logged in, with what */
    unsigned logins_count;
    unsigned vain;  /* logins and logouts from now on that fail */
    bool for_good;  /* and whether they are refusals */
    unsigned holds; /* before this many logins more nobody answers any */
    hooks_derived *held;
    void *held_ctx;
    char given_back[8][64];
    unsigned given_back_count;
} world;

static void on_sign(void *ctx, const char *alloc, uint64_t index, const struct spec_bearer *bearers,
                    size_t count, spec_signed_cb *cb, void *cb_ctx)
{
    struct spec_signed tokens[8] = {{0}};
    char room[8][160];
    struct err err = {0};

    (void)ctx;
    assert_string_equal(alloc, ALLOC_ID);
    assert_int_equal(index, 7);
    assert_in_range(count, 1, COUNT_OF(tokens));
    world.signings++;
    world.signed_count = count;
    for (size_t i = 0; i < count; i++) {
        assert_true(text_format(room[i], sizeof(room[i]), "%s.%s.%s", bearers[i].identity,
                                bearers[i].workload,
                                bearers[i].service == NULL ? "" : bearers[i].service));
        tokens[i].token = room[i];
    }
    if (world.refusals > 0) {
        world.refusals--;
        (void)err_set(&err, ERR_AGAIN, "nobody listens");
        err.recoverable = true;
    }
    cb(cb_ctx, err.code == 0 ? tokens : NULL, &err);
}

static bool fails(struct err *err)
{
    if (world.vain == 0)
        return false;
    world.vain--;
    (void)err_set(err, ERR_REFUSED, "it says no");
    err->recoverable = !world.for_good;
    return true;
}

static void on_login(void *ctx, const struct hooks_login *login, hooks_derived *done,
                     void *done_ctx)
{
    struct fixture *fixture = ctx;
    struct err err = {0};
    char token[64];

    assert_in_range(world.logins_count, 0, COUNT_OF(world.logins) - 1);
    assert_true(text_format(world.logins[world.logins_count++], sizeof(world.logins[0]), "%s %s %s",
                            login->of_service ? "service" : "task", login->bearer, login->jwt));
    if (world.holds > 0 && --world.holds == 0) {
        world.held = done;
        world.held_ctx = done_ctx;
        loop_stop(fixture->loop);
        return;
    }
    bool failed = fails(&err);
    assert_true(text_format(token, sizeof(token), "token-of-%s", login->bearer));
    done(done_ctx, failed ? NULL : token, failed ? &err : NULL);
}

static void on_logout(void *ctx, const char *token, hooks_derived *done, void *done_ctx)
{
    struct err err = {0};

    (void)ctx;
    assert_in_range(world.given_back_count, 0, COUNT_OF(world.given_back) - 1);
    assert_true(
        text_copy(world.given_back[world.given_back_count++], sizeof(world.given_back[0]), token));
    done(done_ctx, NULL, fails(&err) ? &err : NULL);
}

/* A service of the group, whose name is interpolated, one of the task, and one without an identity;
 * and the task. */
static int make(void **state)
{
    int code = fixture_make(state);
    struct fixture *fixture = *state;

    memset(&world, 0, sizeof(world));
    world.signer = (struct hooks_signer){.ctx = fixture, .sign = on_sign};
    world.connect = (struct hooks_connect){
        .ctx = fixture, .address = "", .token = "", .login = on_login, .logout = on_logout};
    for (size_t i = 0; i < COUNT_OF(world.services); i++)
        world.services[i] =
            (struct spec_service){.provider = PROVIDER_CONSUL,
                                  .task = i == 1 ? "web" : "",
                                  .name = i == 0 ? "${NOMAD_GROUP_NAME}-api" : "other",
                                  .port = "80",
                                  .address = "",
                                  .identity = ""};
    world.services[0].identity = "consul-service_${NOMAD_GROUP_NAME}-api-80";
    world.services[1].identity = "consul-service_web-other-80";
    fixture->alloc.services = world.services;
    fixture->alloc.services_count = COUNT_OF(world.services);
    fixture->alloc.create_index = 7;
    fixture->task.has_consul_token = true;
    fixture->signer = &world.signer;
    fixture->connect = &world.connect;
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

static int log_in(struct fixture *fixture)
{
    return run_hook(fixture, PHASE_PRERUN, ALLOC_HOOK_CONSUL, NULL);
}

static int log_out(struct fixture *fixture)
{
    return run_hook(fixture, PHASE_POSTRUN, ALLOC_HOOK_CONSUL, NULL);
}

static bool has_file(struct fixture *fixture)
{
    return access(in_alloc(fixture, ".consul_tokens"), F_OK) == 0;
}

static void assert_service_token(struct fixture *fixture, size_t number, const char *expected)
{
    char token[CONNECT_TOKEN_SIZE] = "";
    bool has = hooks_service_token(fixture->hooks, ALLOC_ID, &world.services[number], token);

    assert_int_equal(has, expected[0] != '\0');
    assert_string_equal(token, expected);
}

static void test_each_is_had_once(void **state)
{
    struct fixture *fixture = *state;
    struct stat status;

    assert_int_equal(log_in(fixture), 0);
    assert_int_equal(world.signings, 1);
    assert_int_equal(world.logins_count, 3);
    assert_string_equal(world.logins[0],
                        "service front-api consul-service_${NOMAD_GROUP_NAME}-api-80."
                        "${NOMAD_GROUP_NAME}-api.front-api");
    assert_string_equal(world.logins[1], "service other consul-service_web-other-80.other.other");
    assert_string_equal(world.logins[2], "task web consul_default.web.");
    assert_service_token(fixture, 0, "token-of-front-api");
    assert_service_token(fixture, 1, "token-of-other");
    assert_service_token(fixture, 2, "");
    assert_return_code(lstat(in_alloc(fixture, ".consul_tokens"), &status), 0);
    assert_int_equal(status.st_mode, S_IFREG | 0600u);
    start_hooks(fixture, NULL); /* another daemon */
    assert_int_equal(log_in(fixture), 0);
    assert_int_equal(world.signings, 1);
    assert_int_equal(world.logins_count, 3);
}

static void test_the_task_has_its_own(void **state)
{
    struct fixture *fixture = *state;
    struct hooks_launch *launch;
    struct stat status;
    unsigned found = 0;

    assert_int_equal(run_hook(fixture, PHASE_PRESTART, TASK_HOOK_CONSUL, &fixture->task), ERR_GONE);
    assert_int_equal(log_in(fixture), 0);
    assert_int_equal(run_hook(fixture, PHASE_PRESTART, TASK_HOOK_CONSUL, &fixture->task), 0);
    assert_return_code(lstat(in_alloc(fixture, "web/secrets/consul_token"), &status), 0);
    assert_int_equal(status.st_mode, S_IFREG | 0600u);
    assert_int_equal(status.st_size, strlen("token-of-web"));
    assert_int_equal(hooks_prepare(fixture->hooks, &fixture->alloc, &fixture->task, NULL, 0,
                                   &launch, &fixture->scratch.err),
                     0);
    for (size_t i = 0; i < launch->env.count; i++) {
        const struct spec_pair *pair = &launch->env.items[i];

        if (text_equal(pair->key, "CONSUL_TOKEN") || text_equal(pair->key, "CONSUL_HTTP_TOKEN")) {
            assert_string_equal(pair->value, "token-of-web");
            found++;
        }
    }
    assert_int_equal(found, 2);
    hooks_launch_free(launch);
}

static void test_who_does_not_answer_is_asked_again(void **state)
{
    struct fixture *fixture = *state;

    world.refusals = 1;
    world.vain = 1;
    assert_int_equal(log_in(fixture), 0);
    assert_int_equal(world.signings, 2);
    assert_int_equal(world.logins_count, MORE);
    assert_string_equal(world.logins[0], world.logins[1]);
}

static void test_after_an_end_in_the_middle_the_rest_is_had(void **state)
{
    struct fixture *fixture = *state;

    world.holds = 2;
    ask(fixture, PHASE_PRERUN, ALLOC_HOOK_CONSUL, NULL);
    loop_run(fixture->loop); /* until the second is on its way */
    assert_false(fixture->answered);
    start_hooks(fixture, NULL);
    assert_service_token(fixture, 0, "token-of-front-api");
    assert_int_equal(log_in(fixture), 0);
    assert_int_equal(world.signed_count, 2);
    assert_int_equal(world.logins_count, MORE);
    assert_string_equal(world.logins[2], world.logins[1]);
}

/* The alloc is told to end: what is on its way is written down nowhere. */
static void test_what_comes_too_late_is_given_back(void **state)
{
    struct fixture *fixture = *state;

    world.holds = 2;
    ask(fixture, PHASE_PRERUN, ALLOC_HOOK_CONSUL, NULL);
    loop_run(fixture->loop); /* until the second is on its way */
    hooks_abort(fixture->hooks, ALLOC_ID, "");
    loop_run(fixture->loop);
    assert_outcome(fixture, ERR_CANCELED, false, "nobody waits for it any more");
    world.held(world.held_ctx, "too-late", NULL);
    assert_int_equal(world.given_back_count, 1);
    assert_string_equal(world.given_back[0], "too-late");
    assert_int_equal(world.logins_count, 2);
    assert_int_equal(log_out(fixture), 0); /* and the first */
    assert_int_equal(world.given_back_count, 2);
    assert_string_equal(world.given_back[1], "token-of-front-api");
}

static void test_what_is_refused_is_asked_for_once(void **state)
{
    struct fixture *fixture = *state;

    world.vain = 1;
    world.for_good = true;
    assert_int_equal(log_in(fixture), ERR_REFUSED);
    assert_outcome(fixture, ERR_REFUSED, false,
                   "failed to derive Consul token for service front-api: it says no");
    assert_int_equal(world.logins_count, 1);
    assert_false(has_file(fixture));
}

static void test_without_servers_or_consul_there_are_none(void **state)
{
    struct fixture *fixture = *state;

    fixture->signer = NULL;
    start_hooks(fixture, NULL);
    assert_int_equal(log_in(fixture), ERR_UNSUPPORTED);
    fixture->signer = &world.signer;
    fixture->connect = NULL;
    start_hooks(fixture, NULL);
    assert_int_equal(log_in(fixture), ERR_UNSUPPORTED);
}

static void test_all_are_given_back(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(log_out(fixture), 0); /* nothing was had */
    assert_int_equal(world.given_back_count, 0);
    assert_int_equal(log_in(fixture), 0);
    world.vain = 1; /* and then it answers */
    assert_int_equal(log_out(fixture), 0);
    assert_int_equal(world.given_back_count, MORE);
    assert_string_equal(world.given_back[0], world.given_back[1]);
    assert_string_equal(fixture->text, "");
    assert_false(has_file(fixture));
    assert_service_token(fixture, 0, "");
}

static void test_what_is_not_taken_back_is_told(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(log_in(fixture), 0);
    world.vain = 1;
    world.for_good = true;
    assert_int_equal(log_out(fixture), 0);
    assert_outcome(fixture, 0, false, "3 tokens of Consul were not given back: it says no");
    assert_true(has_file(fixture));
}

static void test_a_file_that_is_cut_is_had_anew(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(log_in(fixture), 0);
    assert_return_code(truncate(in_alloc(fixture, ".consul_tokens"), 20), 0);
    assert_service_token(fixture, 0, "");
    assert_int_equal(log_in(fixture), 0);
    assert_int_equal(world.signings, 2);
    assert_service_token(fixture, 0, "token-of-front-api");
}

static void test_hooks_may_end_while_they_wait(void **state)
{
    struct fixture *fixture = *state;

    world.holds = 1;
    ask(fixture, PHASE_PRERUN, ALLOC_HOOK_CONSUL, NULL);
    loop_run(fixture->loop);
    hooks_free(fixture->hooks); /* the sanitizers see what is left */
    fixture->hooks = NULL;
    start_hooks(fixture, NULL);
    assert_false(fixture->answered);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_each_is_had_once),
        TEST(test_the_task_has_its_own),
        TEST(test_who_does_not_answer_is_asked_again),
        TEST(test_after_an_end_in_the_middle_the_rest_is_had),
        TEST(test_what_comes_too_late_is_given_back),
        TEST(test_what_is_refused_is_asked_for_once),
        TEST(test_without_servers_or_consul_there_are_none),
        TEST(test_all_are_given_back),
        TEST(test_what_is_not_taken_back_is_told),
        TEST(test_a_file_that_is_cut_is_had_anew),
        TEST(test_hooks_may_end_while_they_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
