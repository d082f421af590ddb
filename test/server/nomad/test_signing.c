/*
 * Identities that servers sign: what they are asked, and what of their answers is believed.
 */
#include "test/server/nomad/small_session.h"

/* What became of the last ones that were asked for. */
struct told {
    unsigned times;
    bool had, recoverable;
    char text[ERR_TEXT_SIZE], tokens[2][64];
    int64_t expires_unix_ns[2];
};

static void on_signed(void *ctx, const struct spec_signed *tokens, const struct err *err)
{
    struct told *told = ctx;

    told->times++;
    told->had = tokens != NULL;
    told->recoverable = err->recoverable;
    assert_true(text_copy(told->text, sizeof(told->text), err->text));
    for (size_t i = 0; tokens != NULL && i < COUNT_OF(told->tokens); i++) {
        assert_true(text_copy(told->tokens[i], sizeof(told->tokens[i]), tokens[i].token));
        told->expires_unix_ns[i] = tokens[i].expires_unix_ns;
    }
}

/* Of a task and of a service. */
static void ask(struct small_session *session, struct told *told)
{
    static const struct spec_bearer bearers[] = {{"aws", "web", NULL}, {"consul", "${x}", "front"}};

    *told = (struct told){0};
    nomad_sign(session->nomad, one, 7, bearers, COUNT_OF(bearers), on_signed, told);
}

/* TYPE -1: Go leaves a zero out. */
static json_t *signed_json(const char *name, const char *workload, int type, const char *token,
                           json_int_t expires)
{
    json_t *value =
        json_pack("{s:s, s:s, s:s, s:s, s:{s:I}}", "AllocID", one, "IdentityName", name,
                  "WorkloadIdentifier", workload, "JWT", token, "Expiration", "$time", expires);

    assert_non_null(value);
    if (type >= 0)
        assert_int_equal(json_object_set_new(value, "WorkloadType", json_integer(type)), 0);
    if (expires == 0)
        assert_int_equal(json_object_set_new(value, "Expiration", json_pack("{s:n}", "$time")), 0);
    return value;
}

static void test_a_call_says_whose_they_are(void **state)
{
    struct small_session *session = *state;
    struct told told;

    join(session);
    ask(session, &told);
    assert_int_equal(told.times, 0);
    json_t *args = answer(session, "Alloc.SignIdentities",
                          json_pack("{s:[o, o], s:n}", "SignedIdentities",
                                    signed_json("consul", "${x}", 1, "b.c.d", 5000000000),
                                    signed_json("aws", "web", -1, "a.b-c.d_e", 0), "Rejections"));
    const json_t *list = json_object_get(args, "Identities");
    assert_int_equal(json_array_size(list), 2);
    assert_string_equal(word_of(args, "AuthToken"), "s");
    assert_int_equal(json_integer_value(json_object_get(args, "MinQueryIndex")), 6);
    assert_true(json_is_true(json_object_get(args, "AllowStale")));
    assert_string_equal(word_of(json_array_get(list, 0), "AllocID"), one);
    assert_string_equal(word_of(json_array_get(list, 0), "IdentityName"), "aws");
    assert_string_equal(word_of(json_array_get(list, 0), "WorkloadIdentifier"), "web");
    assert_string_equal(word_of(json_array_get(list, 1), "InterpolatedWorkloadIdentifier"),
                        "front");
    for (int i = 0; i < 2; i++)
        assert_int_equal(
            json_integer_value(json_object_get(json_array_get(list, (size_t)i), "WorkloadType")),
            i);
    json_decref(args);
    assert_int_equal(told.times, 1);
    assert_true(told.had);
    assert_string_equal(told.tokens[0], "a.b-c.d_e");
    assert_int_equal(told.expires_unix_ns[0], 0);
    assert_string_equal(told.tokens[1], "b.c.d");
    assert_int_equal(told.expires_unix_ns[1], 5000000000);
}

static void test_one_that_is_refused_is_refused_for_good(void **state)
{
    struct small_session *session = *state;
    struct told told;

    join(session);
    ask(session, &told);
    json_decref(answer(session, "Alloc.SignIdentities",
                       json_pack("{s:[o], s:[{s:s, s:s}]}", "SignedIdentities",
                                 signed_json("consul", "${x}", 1, "b.c.d", 0), "Rejections",
                                 "IdentityName", "aws", "Reason", "identity not found")));
    assert_false(told.had);
    assert_false(told.recoverable);
    assert_string_equal(
        told.text, "the servers refuse to sign 1 of 2 identities: \"aws\": identity not found");
}

/* Another server may know better. */
static void test_who_gets_no_answer_may_ask_again(void **state)
{
    struct small_session *session = *state;
    struct told told;

    join(session);
    ask(session, &told);
    fail_call(session, "Alloc.SignIdentities", ERR_REFUSED, "No cluster leader");
    assert_false(told.had);
    assert_true(told.recoverable);
    assert_string_equal(told.text, "No cluster leader");
    assert_null(waits(session, "Alloc.SignIdentities")); /* whoever asks decides */
}

static void test_what_is_not_as_it_was_asked_for_is_not_taken(void **state)
{
    struct small_session *session = *state;
    static const struct {
        const char *name, *workload, *token;
        int type;
        json_int_t expires;
    } cases[] = {
        {"other", "web", "a.b.c", 0, 0},      {"aws", "other", "a.b.c", 0, 0},
        {"aws", "web", "a.b.c", 1, 0},        {"aws", "web", "", 0, 0},
        {"aws", "web", "a\r\nHost: b", 0, 0}, {"aws", "web", "a.b.c", 0, -1},
    };
    struct told told;

    join(session);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ask(session, &told);
        json_decref(answer(session, "Alloc.SignIdentities",
                           json_pack("{s:[o, o]}", "SignedIdentities",
                                     signed_json("consul", "${x}", 1, "b.c.d", 0),
                                     signed_json(cases[i].name, cases[i].workload, cases[i].type,
                                                 cases[i].token, cases[i].expires))));
        assert_int_equal(told.times, 1);
        assert_false(told.had);
        assert_true(told.recoverable);
        assert_string_equal(told.text, "the server sent no token of the identity \"aws\"");
    }
    ask(session, &told);
    json_decref(answer(session, "Alloc.SignIdentities", json_pack("{s:n}", "SignedIdentities")));
    assert_string_equal(told.text, "expected 2 signed identities but received 0");
}

static void test_who_waits_at_the_end_is_told_nothing(void **state)
{
    struct small_session *session = *state;
    struct told told;

    join(session);
    ask(session, &told);
    restart(session);
    assert_int_equal(told.times, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SESSION_TEST(test_a_call_says_whose_they_are),
        SESSION_TEST(test_one_that_is_refused_is_refused_for_good),
        SESSION_TEST(test_who_gets_no_answer_may_ask_again),
        SESSION_TEST(test_what_is_not_as_it_was_asked_for_is_not_taken),
        SESSION_TEST(test_who_waits_at_the_end_is_told_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
