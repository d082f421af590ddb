/* What servers say of tokens: what is asked, what comes of it, how long it counts, and whom it
 * serves. */
#include "base/base.h"
#include "server/acl/lent.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#define TOKEN "11111111-2222-4333-8444-555555555555"

enum { TTL_MS = 30000, ASKED_MAX = 64 };

/* Servers that answer when the test says so. */
struct peer {
    struct acl_lent *lent;
    uint64_t now_ms;
    int64_t now_unix_ns;
    struct {
        char method[32], secret[64];
        json_t *args;
        acl_lent_reply *cb;
        void *ctx;
    } asked[ASKED_MAX];
    size_t count, answered;
    int told;
    const char *looks_at; /* whoever is told looks at this one, late; NULL: at none */
    int found;            /* what comes of that */
};

static void ask(void *ctx, const char *method, json_t *args, const char *secret, acl_lent_reply *cb,
                void *cb_ctx)
{
    struct peer *peer = ctx;

    assert_true(peer->count < ASKED_MAX);
    assert_true(text_copy(peer->asked[peer->count].method, 32, method));
    (void)text_copy(peer->asked[peer->count].secret, 64, secret); /* may be cut */
    peer->asked[peer->count].args = args;
    peer->asked[peer->count].cb = cb;
    peer->asked[peer->count].ctx = cb_ctx;
    peer->count++;
}

static uint64_t now_ms(void *ctx)
{
    return ((struct peer *)ctx)->now_ms;
}

static int64_t now_unix_ns(void *ctx)
{
    return ((struct peer *)ctx)->now_unix_ns;
}

static int open_peer(void **state)
{
    struct peer *peer = calloc(1, sizeof(*peer));

    assert_non_null(peer);
    peer->now_ms = 1000000;
    peer->now_unix_ns = 1000000000;
    peer->lent = acl_lent_new(&(struct acl_lent_config){
        .ttl_ms = TTL_MS, .ctx = peer, .ask = ask, .now_ms = now_ms, .now_unix_ns = now_unix_ns});
    *state = peer;
    return 0;
}

static int close_peer(void **state)
{
    struct peer *peer = *state;

    for (size_t i = 0; i < peer->count; i++)
        json_decref(peer->asked[i].args);
    acl_lent_free(peer->lent);
    free(peer);
    return 0;
}

static void then(void *ctx)
{
    struct peer *peer = ctx;
    const struct acl_rights *rights;

    peer->told++;
    if (peer->looks_at == NULL)
        return;
    peer->now_ms += TTL_MS;
    peer->found = acl_lent_find(peer->lent, peer->looks_at, false, &rights, NULL);
}

static struct acl_lent_wait *want(struct peer *peer, const char *secret)
{
    const struct acl_rights *rights;
    struct acl_lent_wait *wait = NULL;
    struct err err = {0};

    assert_int_equal(acl_lent_find(peer->lent, secret, false, &rights, &err), ERR_AGAIN);
    assert_int_equal(acl_lent_ask(peer->lent, secret, then, peer, &wait, &err), 0);
    return wait;
}

/* The next question that waits is of METHOD, and gets REPLY, a text. */
static void answer(struct peer *peer, const char *method, const char *reply)
{
    size_t i = peer->answered++;
    json_t *json = json_loads(reply, 0, NULL);

    assert_true(i < peer->count);
    assert_string_equal(peer->asked[i].method, method);
    assert_non_null(json);
    peer->asked[i].cb(peer->asked[i].ctx, json, NULL);
    json_decref(json);
}

static void refuse(struct peer *peer, int code, const char *text)
{
    size_t i = peer->answered++;
    struct err err = {0};

    assert_true(i < peer->count);
    (void)err_set(&err, code, "%s", text);
    peer->asked[i].cb(peer->asked[i].ctx, NULL, &err);
}

static const struct acl_rights *rights_of(struct peer *peer, const char *secret)
{
    const struct acl_rights *rights = NULL;

    assert_int_equal(acl_lent_find(peer->lent, secret, false, &rights, NULL), 0);
    return rights;
}

static void assert_fault(struct peer *peer, const char *secret, int code, const char *text)
{
    const struct acl_rights *rights;
    struct err err = {0};

    assert_int_equal(acl_lent_find(peer->lent, secret, false, &rights, &err), code);
    assert_non_null(strstr(err.text, text));
}

#define READS "{\"Policies\":{\"p\":{\"Rules\":\"namespace \\\"a\\\" { policy = \\\"read\\\" }\"}}}"

static void a_token_has_what_its_policies_and_roles_grant(void **state)
{
    struct peer *peer = *state;

    (void)want(peer, TOKEN);
    assert_string_equal(json_string_value(json_object_get(peer->asked[0].args, "SecretID")), TOKEN);
    answer(peer, "ACL.ResolveToken",
           "{\"Token\":{\"Type\":\"client\",\"Policies\":[\"p\"],\"Roles\":[{\"ID\":\"r\"}]}}");
    answer(peer, "ACL.GetRolesByID", "{\"ACLRoles\":{\"r\":{\"Policies\":[{\"Name\":\"q\"}]}}}");
    assert_string_equal(peer->asked[2].secret, TOKEN);
    assert_int_equal(json_array_size(json_object_get(peer->asked[2].args, "Names")), 2);
    assert_int_equal(peer->told, 0);
    answer(peer, "ACL.GetPolicies",
           "{\"Policies\":{\"p\":{\"Rules\":\"namespace \\\"a\\\" { policy = \\\"read\\\" }\"},"
           "\"q\":{\"Rules\":\"node { policy = \\\"write\\\" }\"},\"x\":{\"Rules\":7}}}");
    assert_int_equal(peer->told, 1);
    assert_true(acl_allows(rights_of(peer, TOKEN), "a", ACL_BIT(ACL_READ_JOB)));
    assert_false(acl_allows(rights_of(peer, TOKEN), "b", ACL_BIT(ACL_READ_JOB)));
    assert_true(acl_allows_area(rights_of(peer, TOKEN), ACL_NODE, ACL_WRITE));
    assert_false(acl_manages(rights_of(peer, TOKEN)));
}

static void one_that_manages_may_do_everything(void **state)
{
    struct peer *peer = *state;

    (void)want(peer, TOKEN);
    answer(peer, "ACL.ResolveToken", "{\"Token\":{\"Type\":\"management\"}}");
    assert_true(acl_manages(rights_of(peer, TOKEN)));
    assert_int_equal(peer->count, 1);
}

static void what_is_no_token_is_nobodys(void **state)
{
    struct peer *peer = *state;

    (void)want(peer, TOKEN);
    answer(peer, "ACL.ResolveToken", "{\"Token\":null}");
    assert_fault(peer, TOKEN, ERR_GONE, "ACL token not found");
    (void)want(peer, "nonsense"); /* which no server is asked about */
    assert_int_equal(peer->count, 1);
    assert_int_equal(peer->told, 2);
    assert_fault(peer, "nonsense", ERR_GONE, "ACL token not found");
    (void)want(peer, "a.b.c");
    refuse(peer, ERR_REFUSED, "rpc error: Permission denied");
    assert_fault(peer, "a.b.c", ERR_GONE, "ACL token not found");
}

static void an_identity_has_what_servers_say_it_has(void **state)
{
    struct peer *peer = *state;

    (void)want(peer, "a.b.c");
    assert_string_equal(peer->asked[0].secret, "a.b.c");
    answer(peer, "ACL.GetClaimPolicies", READS);
    assert_true(acl_allows(rights_of(peer, "a.b.c"), "a", ACL_BIT(ACL_READ_JOB)));
}

static void who_shows_nothing_is_anonymous(void **state)
{
    struct peer *peer = *state;

    (void)want(peer, NULL);
    answer(peer, "ACL.GetPolicies", READS);
    assert_true(acl_allows(rights_of(peer, ""), "a", ACL_BIT(ACL_READ_JOB)));
    assert_true(acl_allows(rights_of(peer, NULL), "a", ACL_BIT(ACL_READ_JOB)));
}

static void a_token_ends_when_it_does(void **state)
{
    struct peer *peer = *state;

    (void)want(peer, TOKEN);
    answer(peer, "ACL.ResolveToken",
           "{\"Token\":{\"Type\":\"management\",\"ExpirationTime\":{\"$time\":9000000000}}}");
    assert_true(acl_manages(rights_of(peer, TOKEN)));
    peer->now_unix_ns = 7100000000; /* clocks differ */
    assert_fault(peer, TOKEN, ERR_GONE, "expired");
}

static void what_was_said_counts_for_a_while_and_longer_while_nobody_answers(void **state)
{
    struct peer *peer = *state;
    const struct acl_rights *rights;

    (void)want(peer, TOKEN);
    answer(peer, "ACL.ResolveToken", "{\"Token\":{\"Type\":\"management\"}}");
    peer->now_ms += TTL_MS - 1;
    assert_true(acl_manages(rights_of(peer, TOKEN)));
    peer->now_ms += 1;
    (void)want(peer, TOKEN);
    assert_int_equal(acl_lent_find(peer->lent, TOKEN, true, &rights, NULL), 0); /* of one settled */
    refuse(peer, ERR_AGAIN, "away");
    assert_true(acl_manages(rights_of(peer, TOKEN)));
    peer->now_ms += 1000;
    (void)want(peer, TOKEN);
    answer(peer, "ACL.ResolveToken", "{\"Token\":null}"); /* it was taken away meanwhile */
    assert_fault(peer, TOKEN, ERR_GONE, "not found");
}

/* He would ask again from inside the telling, and be told that, and so on. */
static void who_has_waited_need_not_be_quick(void **state)
{
    struct peer *peer = *state;

    (void)want(peer, TOKEN);
    (void)want(peer, TOKEN);
    peer->looks_at = TOKEN;
    peer->found = ERR_AGAIN;
    answer(peer, "ACL.ResolveToken", "{\"Token\":{\"Type\":\"management\"}}");
    assert_int_equal(peer->told, 2);
    assert_int_equal(peer->found, 0);
    peer->looks_at = NULL;
    (void)want(peer, TOKEN); /* all others do */
}

static void what_was_said_counts_while_nobody_answers_also_beyond_a_short_time(void **state)
{
    struct peer *peer = *state;

    acl_lent_free(peer->lent);
    peer->lent = acl_lent_new(&(struct acl_lent_config){
        .ttl_ms = 1, .ctx = peer, .ask = ask, .now_ms = now_ms, .now_unix_ns = now_unix_ns});
    (void)want(peer, TOKEN);
    answer(peer, "ACL.ResolveToken", "{\"Token\":{\"Type\":\"management\"}}");
    peer->now_ms++;
    (void)want(peer, TOKEN);
    refuse(peer, ERR_IO, "no path to region");
    peer->now_ms += 500;
    assert_non_null(rights_of(peer, TOKEN));
    peer->now_ms += 500;
    (void)want(peer, TOKEN);
}

static void a_policy_that_is_refused_takes_what_was_granted(void **state)
{
    struct peer *peer = *state;

    for (int i = 0; i < 2; i++) {
        (void)want(peer, TOKEN);
        answer(peer, "ACL.ResolveToken", "{\"Token\":{\"Type\":\"client\",\"Policies\":[\"p\"]}}");
        if (i == 0)
            answer(peer, "ACL.GetPolicies", READS);
        peer->now_ms += TTL_MS;
    }
    refuse(peer, ERR_REFUSED, "rpc error: Permission denied");
    assert_fault(peer, TOKEN, ERR_GONE, "Permission denied");
}

static void who_cannot_be_asked_is_asked_again_soon(void **state)
{
    struct peer *peer = *state;

    (void)want(peer, TOKEN);
    refuse(peer, ERR_TIMEOUT, "no answer");
    assert_fault(peer, TOKEN, ERR_TIMEOUT, "the servers cannot be asked");
    peer->now_ms += 1000;
    (void)want(peer, TOKEN);
    assert_int_equal(peer->count, 2);
}

static void a_policy_that_is_not_understood_grants_nothing(void **state)
{
    struct peer *peer = *state;

    (void)want(peer, TOKEN);
    answer(peer, "ACL.ResolveToken",
           "{\"Token\":{\"Type\":\"client\",\"Policies\":[\"p\",\"q\"]}}");
    answer(peer, "ACL.GetPolicies",
           "{\"Policies\":{\"p\":{\"Rules\":\"what is this\"},"
           "\"q\":{\"Rules\":\"node { policy = \\\"read\\\" }\"}}}");
    assert_true(acl_allows_area(rights_of(peer, TOKEN), ACL_NODE, ACL_READ));
    assert_false(acl_sees_namespace(rights_of(peer, TOKEN), "*"));
}

static void many_who_ask_the_same_ask_once_and_too_many_are_refused(void **state)
{
    struct peer *peer = *state;
    struct acl_lent_wait *wait;
    struct err err = {0};

    for (int i = 0; i < 3; i++)
        wait = want(peer, TOKEN);
    acl_lent_leave(wait); /* one of them does not wait any more */
    assert_int_equal(peer->count, 1);
    for (int i = 1; i < ACL_LENT_ASKED_MAX; i++) {
        char secret[64];

        assert_true(text_format(secret, sizeof(secret), "a.b.%d", i));
        (void)want(peer, secret);
    }
    assert_int_equal(acl_lent_ask(peer->lent, "one.too.many", then, peer, &wait, &err), ERR_LIMIT);
    (void)want(peer, TOKEN); /* which is being asked about */
    answer(peer, "ACL.ResolveToken", "{\"Token\":{\"Type\":\"management\"}}");
    assert_int_equal(peer->told, 3);
    (void)want(peer, "one.too.many");
}

static void those_that_were_not_used_for_long_make_room(void **state)
{
    struct peer *peer = *state;
    const struct acl_rights *rights;

    (void)want(peer, TOKEN);
    answer(peer, "ACL.ResolveToken", "{\"Token\":{\"Type\":\"management\"}}");
    for (int i = 0; i < ACL_LENT_MAX * 2; i++) {
        char secret[64];

        assert_true(text_format(secret, sizeof(secret), "nonsense %d", i));
        (void)want(peer, secret);
        if (i < ACL_LENT_MAX)
            assert_true(acl_manages(rights_of(peer, TOKEN))); /* it is used */
    }
    assert_int_equal(acl_lent_find(peer->lent, TOKEN, true, &rights, NULL), ERR_AGAIN);
}

#define WITH_PEER(test) cmocka_unit_test_setup_teardown(test, open_peer, close_peer)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_PEER(a_token_has_what_its_policies_and_roles_grant),
        WITH_PEER(one_that_manages_may_do_everything),
        WITH_PEER(what_is_no_token_is_nobodys),
        WITH_PEER(an_identity_has_what_servers_say_it_has),
        WITH_PEER(who_shows_nothing_is_anonymous),
        WITH_PEER(a_token_ends_when_it_does),
        WITH_PEER(what_was_said_counts_for_a_while_and_longer_while_nobody_answers),
        WITH_PEER(who_has_waited_need_not_be_quick),
        WITH_PEER(what_was_said_counts_while_nobody_answers_also_beyond_a_short_time),
        WITH_PEER(a_policy_that_is_refused_takes_what_was_granted),
        WITH_PEER(who_cannot_be_asked_is_asked_again_soon),
        WITH_PEER(a_policy_that_is_not_understood_grants_nothing),
        WITH_PEER(many_who_ask_the_same_ask_once_and_too_many_are_refused),
        WITH_PEER(those_that_were_not_used_for_long_make_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
