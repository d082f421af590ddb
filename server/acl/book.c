/* Policies and tokens: as they are stored, and found. */
#include "server/acl/part.h"

#include "spec/json.h"

#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>

const char book_bootstrap_key[] = "acl/bootstrap";
static const char policy_prefix[] = "acl/policy/", token_prefix[] = "secret/token/";

void book_digest(const char *secret, char to[DIGEST_TEXT_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    uint8_t digest[SHA256_DIGEST_SIZE];
    struct sha256_ctx sha;

    sha256_init(&sha);
    sha256_update(&sha, strlen(secret), (const uint8_t *)secret);
    sha256_digest(&sha, sizeof(digest), digest);
    explicit_bzero(&sha, sizeof(sha));
    for (size_t i = 0; i < sizeof(digest); i++) {
        to[2 * i] = digits[digest[i] >> 4];
        to[2 * i + 1] = digits[digest[i] & 15];
    }
    to[2 * sizeof(digest)] = '\0';
}

json_int_t book_index(const struct acl *acl)
{
    return (json_int_t)life_next_index(acl->config.life);
}

/* --- what is believed --- */

bool policy_name_is_valid(const char *name)
{
    size_t length = name == NULL ? 0 : strlen(name);

    return length > 0 && length < ACL_NAME_SIZE &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") ==
               length;
}

static bool has_numbers(const json_t *json, const char *const *names)
{
    for (; *names != NULL; names++) {
        if (!json_is_integer(json_object_get(json, *names)))
            return false;
    }
    return true;
}

static const char *fault_of_token(const char *accessor, const json_t *json)
{
    static const char *const numbers[] = {"CreateIndex", "ModifyIndex", "cairnCreatedNs",
                                          "cairnExpiresNs", NULL};
    const json_t *policies = json_object_get(json, "Policies"), *policy;
    const char *type = text_of(json, "Type");
    size_t i;

    if (!uuid_is_valid(accessor) || !text_equal(text_of(json, "AccessorID"), accessor))
        return "not the token that its key names";
    if (strlen(text_of(json, "cairnDigest")) != DIGEST_TEXT_SIZE - 1)
        return "a token without a secret";
    if (!text_equal(type, "client") && !text_equal(type, "management"))
        return "a token of no type";
    if (!has_numbers(json, numbers) || !json_is_array(policies))
        return "a token without times or policies";
    json_array_foreach(policies, i, policy)
    {
        if (!json_is_string(policy))
            return "a token with a policy that has no name";
    }
    return NULL;
}

/* --- rights --- */

static void forget_rights(struct acl_rights **rights)
{
    acl_rights_free(*rights);
    *rights = NULL;
}

/* A policy has come, changed or gone: what tokens have is added up again. */
static void forget_all_rights(struct acl *acl)
{
    for (struct token *token = acl->tokens; token != NULL; token = token->hh.next)
        forget_rights(&token->rights);
    forget_rights(&acl->anonymous);
}

static void add_policy(const struct acl *acl, struct acl_rights *rights, const char *name)
{
    const struct policy *policy;

    HASH_FIND_STR(acl->policies, name, policy);
    if (policy != NULL)
        rights_add(rights, policy->rights);
}

static const struct acl_rights *rights_of(const struct acl *acl, struct token *token)
{
    const json_t *policy;
    size_t i;

    if (token->rights != NULL)
        return token->rights;
    token->rights = rights_new();
    token->rights->manages = text_equal(text_of(token->json, "Type"), "management");
    json_array_foreach(json_object_get(token->json, "Policies"), i, policy)
        add_policy(acl, token->rights, json_string_value(policy));
    return token->rights;
}

static const struct acl_rights *rights_of_nobody(struct acl *acl)
{
    if (acl->anonymous == NULL) {
        acl->anonymous = rights_new();
        add_policy(acl, acl->anonymous, "anonymous");
    }
    return acl->anonymous;
}

/* --- what is there --- */

static void drop_policy(struct acl *acl, struct policy *policy)
{
    HASH_DEL(acl->policies, policy);
    acl_rights_free(policy->rights);
    json_decref(policy->json);
    free(policy);
}

static void drop_token(struct acl *acl, struct token *token)
{
    HASH_DEL(acl->tokens, token);
    HASH_DELETE(by_digest, acl->by_digest, token);
    acl_rights_free(token->rights);
    json_decref(token->json);
    free(token);
}

static const char *apply_policy(struct acl *acl, const char *name, const json_t *json)
{
    static const char *const numbers[] = {"CreateIndex", "ModifyIndex", NULL};
    const char *rules = text_of(json, "Rules");
    struct acl_rights *rights = NULL;
    struct policy *policy;

    if (json != NULL &&
        (!policy_name_is_valid(name) || !text_equal(text_of(json, "Name"), name) ||
         !has_numbers(json, numbers) || acl_read_policy(rules, strlen(rules), &rights, NULL) < 0))
        return "not the policy that its key names";
    forget_all_rights(acl);
    HASH_FIND_STR(acl->policies, name, policy);
    if (policy != NULL)
        drop_policy(acl, policy);
    if (json == NULL)
        return NULL;
    policy = calloc(1, sizeof(*policy));
    check(policy != NULL);
    (void)text_copy(policy->name, sizeof(policy->name), name); /* it is valid */
    policy->json = json_deep_copy(json);
    policy->rights = rights;
    HASH_ADD_STR(acl->policies, name, policy);
    acl->policies_unsorted = true;
    return NULL;
}

static const char *apply_token(struct acl *acl, const char *accessor, const json_t *json)
{
    const char *fault = json == NULL ? NULL : fault_of_token(accessor, json);
    struct token *token = book_token(acl, accessor), *twin;

    if (fault != NULL)
        return fault;
    if (token != NULL)
        drop_token(acl, token);
    if (json == NULL)
        return NULL;
    token = calloc(1, sizeof(*token));
    check(token != NULL);
    (void)text_copy(token->accessor, sizeof(token->accessor), accessor); /* fit */
    (void)text_copy(token->digest, sizeof(token->digest), text_of(json, "cairnDigest"));
    HASH_FIND(by_digest, acl->by_digest, token->digest, DIGEST_TEXT_SIZE - 1, twin);
    if (twin != NULL) {
        free(token);
        return "a token with the secret of another";
    }
    token->json = json_deep_copy(json);
    check(json_object_del(token->json, "cairnDigest") == 0);
    HASH_ADD_STR(acl->tokens, accessor, token);
    HASH_ADD(by_digest, acl->by_digest, digest, DIGEST_TEXT_SIZE - 1, token);
    acl->tokens_unsorted = true;
    return NULL;
}

const char *book_apply(struct acl *acl, const char *key, const json_t *json)
{
    if (text_starts_with(key, policy_prefix))
        return apply_policy(acl, key + strlen(policy_prefix), json);
    if (text_starts_with(key, token_prefix))
        return apply_token(acl, key + strlen(token_prefix), json);
    if (!text_equal(key, book_bootstrap_key))
        return "nothing of tokens or policies";
    acl->bootstrapped = json != NULL;
    return NULL;
}

/* --- storing --- */

static void forget(struct change *change)
{
    *change->link = change->next;
    if (change->next != NULL)
        change->next->link = change->link;
    json_decref(change->json);
    json_decref(change->answer);
    free(change);
}

static void decided(void *ctx, int code, const struct err *err)
{
    struct change *change = ctx;
    json_t *answer = json_incref(change->answer);
    acl_answer *then = change->then;
    void *then_ctx = change->ctx;

    if (code == 0)
        check(book_apply(change->acl, change->key, change->json) == NULL);
    forget(change);
    if (then != NULL)
        then(then_ctx, code, err, code == 0 ? answer : NULL);
    json_decref(answer);
}

void book_store(struct acl *acl, const char *key, json_t *json, json_t *answer, acl_answer *then,
                void *ctx)
{
    struct core *core = life_core(acl->config.life);
    struct change *change = calloc(1, sizeof(*change));
    char *text = json == NULL ? NULL : json_dumps(json, JSON_COMPACT);
    struct life_subject everything = {.kind = LIFE_EVERYTHING};

    check(change != NULL);
    change->acl = acl;
    (void)text_copy(change->key, sizeof(change->key), key); /* of our own making */
    change->json = json;
    change->answer = answer;
    change->then = then;
    change->ctx = ctx;
    change->next = acl->changes;
    change->link = &acl->changes;
    if (change->next != NULL)
        change->next->link = &change->next;
    acl->changes = change;
    core_propose(core, true);
    core_spec(core, key, text, text == NULL ? 0 : strlen(text));
    core_propose(core, false);
    free(text);
    life_after_commit(acl->config.life, decided, change);
    life_changed(acl->config.life, &everything);
}

void book_refuse(acl_answer *then, void *ctx, const struct err *err)
{
    then(ctx, err->code, err, NULL);
}

/* --- reading what is stored --- */

struct disbelieved {
    char key[JOURNAL_KEY_SIZE];
    const char *why;
};

struct loading {
    struct acl *acl;
    struct disbelieved *items;
    size_t count, size;
};

static bool load_one(void *ctx, const char *key, const void *bytes, size_t length)
{
    struct loading *loading = ctx;
    json_t *json = json_loadb(bytes, length, 0, NULL);
    const char *fault = json == NULL ? "no JSON" : book_apply(loading->acl, key, json);

    json_decref(json);
    if (fault != NULL) {
        struct disbelieved *disbelieved = list_more(loading);
        (void)text_copy(disbelieved->key, sizeof(disbelieved->key), key); /* same size */
        disbelieved->why = fault;
    }
    return true;
}

int acl_load(struct acl *acl, struct err *err)
{
    struct loading loading = {.acl = acl};
    int code = life_each_spec(acl->config.life, "acl/", load_one, &loading, err);

    if (code == 0)
        code = life_each_spec(acl->config.life, token_prefix, load_one, &loading, err);
    for (size_t i = 0; i < loading.count && code == 0; i++) {
        say(&acl->config.say, SAY_ERROR, "server",
            "a stored policy or token cannot be read, and grants nothing: make it again key=%s",
            text_value(loading.items[i].key));
        code = life_spec_aside(acl->config.life, loading.items[i].key, loading.items[i].why, err);
    }
    free(loading.items);
    return code;
}

/* Nomad's. */
#define TTL_MIN_NS (60 * INT64_C(1000000000))
#define TTL_MAX_NS (86400 * INT64_C(1000000000))

struct acl *acl_new(const struct acl_config *config)
{
    struct acl *acl = calloc(1, sizeof(*acl));

    check(acl != NULL);
    acl->config = *config;
    if (acl->config.ttl_min_ns == 0)
        acl->config.ttl_min_ns = TTL_MIN_NS;
    if (acl->config.ttl_max_ns == 0)
        acl->config.ttl_max_ns = TTL_MAX_NS;
    return acl;
}

void acl_free(struct acl *acl)
{
    struct policy *policy, *next_policy;
    struct token *token, *next_token;

    if (acl == NULL)
        return;
    while (acl->changes != NULL)
        forget(acl->changes);
    HASH_ITER(hh, acl->tokens, token, next_token)
    drop_token(acl, token);
    HASH_ITER(hh, acl->policies, policy, next_policy)
    drop_policy(acl, policy);
    forget_rights(&acl->anonymous);
    free(acl);
}

/* --- looking --- */

bool acl_is_bootstrapped(const struct acl *acl)
{
    return acl->bootstrapped;
}

bool book_has_expired(const struct acl *acl, const struct token *token)
{
    json_int_t end = json_integer_value(json_object_get(token->json, "cairnExpiresNs"));

    return end != 0 && end <= (json_int_t)life_unix_ns(acl->config.life);
}

struct token *book_token(const struct acl *acl, const char *accessor)
{
    struct token *token;

    HASH_FIND_STR(acl->tokens, accessor, token);
    return token;
}

static struct token *token_of(const struct acl *acl, const char *secret)
{
    char digest[DIGEST_TEXT_SIZE];
    struct token *token;

    book_digest(secret, digest);
    HASH_FIND(by_digest, acl->by_digest, digest, DIGEST_TEXT_SIZE - 1, token);
    return token;
}

bool book_has_secret(const struct acl *acl, const char *secret)
{
    return token_of(acl, secret) != NULL;
}

int acl_resolve(struct acl *acl, const char *secret, const struct acl_rights **ret_rights,
                struct err *err)
{
    if (secret == NULL || secret[0] == '\0') {
        *ret_rights = rights_of_nobody(acl);
        return 0;
    }
    struct token *token = token_of(acl, secret);
    if (token == NULL)
        return err_set(err, ERR_GONE, "ACL token not found");
    if (book_has_expired(acl, token))
        return err_set(err, ERR_GONE, "ACL token expired");
    *ret_rights = rights_of(acl, token);
    return 0;
}

const json_t *acl_policy(const struct acl *acl, const char *name)
{
    const struct policy *policy;

    HASH_FIND_STR(acl->policies, name, policy);
    return policy == NULL ? NULL : policy->json;
}

const json_t *acl_token(const struct acl *acl, const char *accessor)
{
    const struct token *token = book_token(acl, accessor);

    return token == NULL ? NULL : token->json;
}

const json_t *acl_token_of(const struct acl *acl, const char *secret)
{
    const struct token *token = token_of(acl, secret);

    return token == NULL || book_has_expired(acl, token) ? NULL : token->json;
}

/* Lists are the same before and after a restart. */
static int by_name(const struct policy *a, const struct policy *b)
{
    return strcmp(a->name, b->name);
}

static int by_accessor(const struct token *a, const struct token *b)
{
    return strcmp(a->accessor, b->accessor);
}

void acl_each_policy(struct acl *acl, acl_each_cb *cb, void *ctx)
{
    if (acl->policies_unsorted)
        HASH_SRT(hh, acl->policies, by_name);
    acl->policies_unsorted = false;
    for (const struct policy *policy = acl->policies; policy != NULL; policy = policy->hh.next)
        cb(ctx, policy->json);
}

void acl_each_token(struct acl *acl, acl_each_cb *cb, void *ctx)
{
    if (acl->tokens_unsorted)
        HASH_SRT(hh, acl->tokens, by_accessor);
    acl->tokens_unsorted = false;
    for (const struct token *token = acl->tokens; token != NULL; token = token->hh.next) {
        if (!book_has_expired(acl, token))
            cb(ctx, token->json);
    }
}
