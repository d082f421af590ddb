/* Policies and tokens in the small life: who makes them, what is stored, what a restart leaves. */
#include "test/server/small_life.h"

struct told {
    int count, code;
    char text[ERR_TEXT_SIZE], secret[UUID_TEXT_SIZE], accessor[UUID_TEXT_SIZE];
};

static void tell(void *ctx, int code, const struct err *err, const json_t *answer)
{
    struct told *told = ctx;

    told->count++;
    told->code = code;
    if (err != NULL)
        (void)text_copy(told->text, sizeof(told->text), err->text);
    if (answer != NULL) {
        (void)text_copy(told->secret, sizeof(told->secret),
                        json_string_value(json_object_get(answer, "SecretID")));
        (void)text_copy(told->accessor, sizeof(told->accessor),
                        json_string_value(json_object_get(answer, "AccessorID")));
    }
}

static struct acl *acl_of(struct small_life *small)
{
    return alone_acl(small->alone);
}

static struct acl_fresh draw(struct small_life *small)
{
    struct acl_fresh fresh;

    small_new_id(small, fresh.accessor);
    small_new_id(small, fresh.secret);
    return fresh;
}

static struct told create(struct small_life *small, const char *request)
{
    json_t *json = json_loads(request, 0, NULL);
    struct acl_fresh fresh = draw(small);
    struct told told = {0};

    assert_non_null(json);
    acl_create_token(acl_of(small), json, &fresh, tell, &told);
    small_settle(small);
    assert_int_equal(told.count, 1);
    json_decref(json);
    return told;
}

static struct told put_policy(struct small_life *small, const char *name, const char *rules)
{
    json_t *json = json_pack("{s:s, s:s}", "Name", name, "Rules", rules);
    struct told told = {0};

    acl_put_policy(acl_of(small), json, tell, &told);
    small_settle(small);
    assert_int_equal(told.count, 1);
    json_decref(json);
    return told;
}

static struct told bootstrap(struct small_life *small)
{
    struct acl_fresh fresh = draw(small);
    struct told told = {0};

    acl_bootstrap(acl_of(small), &fresh, NULL, NULL, tell, &told);
    small_settle(small);
    assert_int_equal(told.count, 1);
    return told;
}

static unsigned asked_again;

static bool take_again(void *ctx)
{
    (void)ctx;
    asked_again++;
    return true;
}

/* Whoever owns the data directory allows it. */
static struct told bootstrap_again(struct small_life *small, struct acl_fresh fresh)
{
    struct told told = {0};

    acl_bootstrap(acl_of(small), &fresh, take_again, NULL, tell, &told);
    small_settle(small);
    assert_int_equal(told.count, 1);
    return told;
}

/* What whoever shows SECRET may do; NULL: it is no token's. */
static const struct acl_rights *rights_of(struct small_life *small, const char *secret)
{
    const struct acl_rights *rights = NULL;

    return acl_resolve(acl_of(small), secret, &rights, NULL) == 0 ? rights : NULL;
}

static void test_nobody_may_do_anything_at_first(void **state)
{
    struct small_life *small = *state;

    assert_false(acl_sees_namespace(rights_of(small, NULL), "default"));
    assert_false(acl_allows_area(rights_of(small, ""), ACL_AGENT, ACL_READ));
    assert_null(rights_of(small, "00000000-0000-0000-0000-000000000000"));
}

static void test_the_first_token_is_made_once(void **state)
{
    struct small_life *small = *state;
    struct acl_fresh first = draw(small), second = draw(small);
    struct told told[2] = {{0}};

    acl_bootstrap(acl_of(small), &first, NULL, NULL, tell, &told[0]);
    acl_bootstrap(acl_of(small), &second, NULL, NULL, tell, &told[1]); /* before the commit */
    small_settle(small);
    assert_int_equal(told[0].code, 0);
    assert_int_equal(told[1].code, ERR_EXISTS);
    assert_true(acl_manages(rights_of(small, told[0].secret)));
    assert_null(rights_of(small, second.secret));
    small_again(small);
    assert_int_equal(bootstrap(small).code, ERR_EXISTS);
    assert_int_equal(bootstrap_again(small, draw(small)).code, 0);
    assert_int_equal(bootstrap(small).code, ERR_EXISTS);        /* once more, and no more */
    assert_true(acl_manages(rights_of(small, told[0].secret))); /* the old one stays */
}

/* Whoever brings the secret of the first token may bring the same again after a reset. */
static void test_a_secret_is_that_of_one_token(void **state)
{
    struct small_life *small = *state;
    struct acl_fresh first = draw(small), second = draw(small);
    struct told told = {0};

    acl_bootstrap(acl_of(small), &first, NULL, NULL, tell, &told);
    small_settle(small);
    assert_int_equal(told.code, 0);
    (void)text_copy(second.secret, sizeof(second.secret), first.secret); /* the same size */
    asked_again = 0;
    assert_int_equal(bootstrap_again(small, second).code, ERR_INVALID);
    assert_int_equal(asked_again, 0); /* what allows another one is still there */
    assert_true(acl_manages(rights_of(small, first.secret)));
    assert_int_equal(bootstrap(small).code, ERR_EXISTS); /* and it is not open to others */
    assert_int_equal(bootstrap_again(small, draw(small)).code, 0);
    assert_int_equal(asked_again, 1);
}

static void test_what_was_not_stored_is_no_token(void **state)
{
    struct small_life *small = *state;

    small->commit_code = ERR_FULL;
    struct told told = bootstrap(small);
    assert_true(told.code < 0);
    assert_string_equal(told.secret, "");
    assert_false(acl_is_bootstrapped(acl_of(small)));
    small->commit_code = 0;
    small->now_ms += 60000;
    small_settle(small); /* it tries again */
    assert_int_equal(bootstrap(small).code, 0);
}

static void test_a_secret_is_stored_nowhere(void **state)
{
    struct small_life *small = *state;
    struct told told = bootstrap(small);

    assert_int_equal(strlen(told.secret), UUID_TEXT_SIZE - 1);
    for (size_t i = 0; i < small->specs.count; i++)
        assert_null(strstr(small->specs.items[i].bytes, told.secret));
    assert_null(json_object_get(acl_token(acl_of(small), told.accessor), "SecretID"));
    assert_null(json_object_get(acl_token(acl_of(small), told.accessor), "cairnDigest"));
}

static void test_a_token_has_what_its_policies_grant_now(void **state)
{
    struct small_life *small = *state;
    struct told told = create(small, "{\"Type\": \"client\", \"Policies\": [\"dev\", \"ops\"]}");

    assert_int_equal(told.code, 0);
    assert_false(acl_sees_namespace(rights_of(small, told.secret), "default"));
    assert_int_equal(put_policy(small, "dev", "namespace \"default\" { policy = \"read\" }").code,
                     0);
    assert_true(acl_allows(rights_of(small, told.secret), "default", ACL_BIT(ACL_READ_JOB)));
    assert_int_equal(put_policy(small, "ops", "namespace \"default\" { policy = \"write\" }").code,
                     0);
    assert_true(acl_allows(rights_of(small, told.secret), "default", ACL_BIT(ACL_SUBMIT_JOB)));
    small_again(small);
    assert_true(acl_allows(rights_of(small, told.secret), "default", ACL_BIT(ACL_SUBMIT_JOB)));
    assert_false(acl_manages(rights_of(small, told.secret)));
    struct told gone = {0};
    acl_delete_policy(acl_of(small), "ops", tell, &gone);
    small_settle(small);
    assert_int_equal(gone.code, 0);
    assert_false(acl_allows(rights_of(small, told.secret), "default", ACL_BIT(ACL_SUBMIT_JOB)));
    assert_true(acl_allows(rights_of(small, told.secret), "default", ACL_BIT(ACL_READ_JOB)));
}

static void test_who_shows_nothing_has_the_anonymous_policy(void **state)
{
    struct small_life *small = *state;

    assert_int_equal(put_policy(small, "anonymous", "node { policy = \"read\" }").code, 0);
    assert_true(acl_allows_area(rights_of(small, NULL), ACL_NODE, ACL_READ));
    assert_null(rights_of(small, "00000000-0000-0000-0000-000000000000")); /* a wrong one: not */
}

static void test_a_token_that_has_gone_opens_nothing(void **state)
{
    struct small_life *small = *state;
    struct told told = bootstrap(small), gone = {0};

    acl_delete_token(acl_of(small), told.accessor, tell, &gone);
    small_settle(small);
    assert_int_equal(gone.code, 0);
    assert_null(rights_of(small, told.secret));
    small_again(small);
    assert_null(rights_of(small, told.secret));
}

static void test_a_token_ends_in_time(void **state)
{
    struct small_life *small = *state;
    struct told told = create(small, "{\"Type\": \"management\", \"ExpirationTTL\": \"2m\"}");

    assert_int_equal(told.code, 0);
    small->now_ms += 119000;
    assert_true(acl_manages(rights_of(small, told.secret)));
    small_again(small);
    assert_true(acl_manages(rights_of(small, told.secret)));
    small->now_ms += 2000;
    assert_null(rights_of(small, told.secret));
    assert_null(acl_token_of(acl_of(small), told.secret));
    /* The next change takes it away. */
    assert_int_equal(create(small, "{\"Type\": \"management\"}").code, 0);
    assert_null(acl_token(acl_of(small), told.accessor));
    assert_int_equal(small_specs_of(small, "secret/token/"), 1);
}

/* Nomad's client says "" where it wants none, and counts in nanoseconds where it wants one. */
static void test_an_end_is_said_in_each_way_there_is(void **state)
{
    struct small_life *small = *state;
    struct told ever = create(small, "{\"Type\": \"management\", \"ExpirationTTL\": \"\"}");
    struct told minute =
        create(small, "{\"Type\": \"management\", \"ExpirationTTL\": 60000000000}");

    assert_int_equal(ever.code, 0);
    assert_int_equal(minute.code, 0);
    small->now_ms += 61000;
    assert_non_null(rights_of(small, ever.secret));
    assert_null(rights_of(small, minute.secret));
}

static void test_a_token_changes_its_policies_and_not_its_kind(void **state)
{
    struct small_life *small = *state;
    struct told told = create(small, "{\"Type\": \"client\", \"Policies\": [\"dev\"]}"),
                changed = {0};
    json_t *request = json_pack("{s:s, s:s, s:s, s:[s]}", "AccessorID", told.accessor, "Name",
                                "robot", "Type", "client", "Policies", "ops");

    (void)put_policy(small, "ops", "node { policy = \"write\" }");
    acl_update_token(acl_of(small), request, tell, &changed);
    small_settle(small);
    assert_int_equal(changed.code, 0);
    assert_string_equal(changed.secret, "");
    assert_true(acl_allows_area(rights_of(small, told.secret), ACL_NODE, ACL_WRITE));
    small_again(small);
    assert_true(acl_allows_area(rights_of(small, told.secret), ACL_NODE, ACL_WRITE));
    json_object_set_new(request, "Type", json_string("management"));
    json_object_set_new(request, "Policies", json_array());
    acl_update_token(acl_of(small), request, tell, &changed);
    assert_int_equal(changed.code, ERR_INVALID);
    assert_string_equal(changed.text, "cannot change type of token");
    json_decref(request);
}

static void test_nonsense_is_refused(void **state)
{
    static const struct {
        const char *request, *why;
    } cases[] = {
        {"{}", "token type must be client or management"},
        {"{\"Type\": \"client\"}", "client token missing policies"},
        {"{\"Type\": \"management\", \"Policies\": [\"a\"]}", "management token cannot"},
        {"{\"Type\": \"client\", \"Policies\": [5]}", "list of names"},
        {"{\"Type\": \"client\", \"Policies\": [\"a b\"]}", "list of names"},
        {"{\"Type\": \"client\", \"Policies\": \"a\"}", "list of names"},
        {"{\"Type\": \"client\", \"Roles\": [{\"Name\": \"a\"}]}", "Roles are not available"},
        {"{\"Type\": \"management\", \"Name\": 5}", "Name must be a text"},
        {"{\"Type\": \"management\", \"ExpirationTTL\": \"25h\"}", "between 1m0s and 24h0m0s"},
        {"{\"Type\": \"management\", \"ExpirationTTL\": \"soon\"}", "must be a duration"},
        {"{\"Type\": \"management\", \"ExpirationTime\": \"2030-01-01T00:00:00Z\"}",
         "say ExpirationTTL"},
    };
    struct small_life *small = *state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct told told = create(small, cases[i].request);
        assert_int_equal(told.code, ERR_INVALID);
        assert_non_null(strstr(told.text, cases[i].why));
    }
    assert_int_equal(put_policy(small, "a/b", "node { policy = \"read\" }").code, ERR_INVALID);
    struct told told = put_policy(small, "a", "nodes { policy = \"read\" }");
    assert_int_equal(told.code, ERR_INVALID);
    assert_string_equal(told.text, "failed to parse rules: a policy has no 'nodes'");
    assert_int_equal(small->specs.count, 0);
}

static void test_what_is_damaged_grants_nothing_and_is_kept(void **state)
{
    struct small_life *small = *state;
    struct told told = bootstrap(small);
    static const char broken[] = "{\"AccessorID\": \"x\"}";

    for (size_t i = 0; i < small->specs.count; i++) {
        if (text_starts_with(small->specs.items[i].key, "secret/token/"))
            small_keep_spec(small, small->specs.items[i].key, broken, strlen(broken));
    }
    small_kill(small);
    small_begin(small);
    small_settle(small);
    assert_null(rights_of(small, told.secret));
    assert_non_null(strstr(small->said, "make it again"));
    assert_int_equal(bootstrap(small).code, ERR_EXISTS); /* it did not open the door */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SMALL_TEST(test_nobody_may_do_anything_at_first),
        SMALL_TEST(test_the_first_token_is_made_once),
        SMALL_TEST(test_a_secret_is_that_of_one_token),
        SMALL_TEST(test_what_was_not_stored_is_no_token),
        SMALL_TEST(test_a_secret_is_stored_nowhere),
        SMALL_TEST(test_a_token_has_what_its_policies_grant_now),
        SMALL_TEST(test_who_shows_nothing_has_the_anonymous_policy),
        SMALL_TEST(test_a_token_that_has_gone_opens_nothing),
        SMALL_TEST(test_a_token_ends_in_time),
        SMALL_TEST(test_an_end_is_said_in_each_way_there_is),
        SMALL_TEST(test_a_token_changes_its_policies_and_not_its_kind),
        SMALL_TEST(test_nonsense_is_refused),
        SMALL_TEST(test_what_is_damaged_grants_nothing_and_is_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
