/*
 * What callers ask of policies and tokens.
 *
 * Words and bounds are those of Nomad's endpoint (v2.0 nomad/acl_endpoint.go,
 * nomad/structs/acl.go), but that a name is looked at in more places.
 */
#include "server/acl/part.h"

#include <stdlib.h>
#include <string.h>

static const char *text_or_null(const json_t *json, const char *name)
{
    return json_string_value(json_object_get(json, name));
}

/* The text NAME of JSON into RET_TEXT, "" if there is none. */
static int read_text(const json_t *json, const char *name, const char **ret_text, struct err *err)
{
    const json_t *value = json_object_get(json, name);

    *ret_text = json_is_string(value) ? json_string_value(value) : "";
    if (value != NULL && !json_is_null(value) && !json_is_string(value))
        return err_set(err, ERR_INVALID, "%s must be a text", name);
    return strlen(*ret_text) < ACL_TEXT_SIZE
               ? 0
               : err_set(err, ERR_INVALID, "%s too long: at most %d bytes", name,
                         ACL_TEXT_SIZE - 1);
}

static bool has_items(const json_t *json, const char *name)
{
    const json_t *value = json_object_get(json, name);

    return json_array_size(value) > 0 || json_object_size(value) > 0;
}

/* Keys of tokens and policies, of which JSON is one. */
static bool put_key(char to[JOURNAL_KEY_SIZE], const char *prefix, const char *name)
{
    return text_format(to, JOURNAL_KEY_SIZE, "%s%s", prefix, name);
}

static void stamp(const struct acl *acl, json_t *json, const json_t *before)
{
    json_int_t index = book_index(acl);
    json_t *created = json_object_get(before, "CreateIndex");

    check(json_object_set_new(json, "ModifyIndex", json_integer(index)) == 0);
    check(json_object_set(json, "CreateIndex", created) == 0 ||
          json_object_set_new(json, "CreateIndex", json_integer(index)) == 0);
}

/* True if one more commit can be asked for; else THEN has heard why not. */
static bool may_store(struct acl *acl, acl_answer *then, void *ctx)
{
    struct err err;

    if (life_check_turn(acl->config.life, 0, &err) == 0)
        return true;
    book_refuse(then, ctx, &err);
    return false;
}

/* --- policies --- */

static int read_policy(const json_t *request, json_t **ret_policy, struct err *err)
{
    const char *name = text_or_null(request, "Name"), *rules = text_or_null(request, "Rules"),
               *description;
    struct acl_rights *rights = NULL;
    struct err why;

    if (name == NULL || !policy_name_is_valid(name))
        return err_set(err, ERR_INVALID, "invalid name '%.60s': letters, digits and dashes",
                       name == NULL ? "" : name);
    if (has_items(request, "JobACL"))
        return err_set(err, ERR_INVALID,
                       "JobACL: workload identities are not available in this release");
    if (read_text(request, "Description", &description, err) < 0)
        return ERR_INVALID;
    if (rules == NULL)
        rules = "";
    if (acl_read_policy(rules, strlen(rules), &rights, &why) < 0)
        return err_set(err, ERR_INVALID, "failed to parse rules: %s", why.text);
    acl_rights_free(rights);
    *ret_policy =
        json_pack("{s:s, s:s, s:s}", "Name", name, "Description", description, "Rules", rules);
    check(*ret_policy != NULL);
    return 0;
}

void acl_put_policy(struct acl *acl, const json_t *request, acl_answer *then, void *ctx)
{
    char key[JOURNAL_KEY_SIZE];
    struct err err = {0};
    json_t *policy = NULL;

    if (read_policy(request, &policy, &err) < 0) {
        book_refuse(then, ctx, &err);
        return;
    }
    const json_t *before = acl_policy(acl, text_or_null(policy, "Name"));
    if (before == NULL && HASH_COUNT(acl->policies) >= ACL_POLICIES_MAX) {
        (void)err_set(&err, ERR_LIMIT, "there are %d policies already", ACL_POLICIES_MAX);
        json_decref(policy);
        book_refuse(then, ctx, &err);
        return;
    }
    if (!may_store(acl, then, ctx)) {
        json_decref(policy);
        return;
    }
    (void)put_key(key, "acl/policy/", text_or_null(policy, "Name")); /* it is valid */
    stamp(acl, policy, before);
    book_store(acl, key, policy, NULL, then, ctx);
}

void acl_delete_policy(struct acl *acl, const char *name, acl_answer *then, void *ctx)
{
    char key[JOURNAL_KEY_SIZE];
    struct err err = {0};

    if (acl_policy(acl, name) == NULL || !put_key(key, "acl/policy/", name)) {
        (void)err_set(&err, ERR_GONE, "ACL policy not found");
        book_refuse(then, ctx, &err);
    } else if (may_store(acl, then, ctx)) {
        book_store(acl, key, NULL, NULL, then, ctx);
    }
}

/* --- tokens --- */

static int read_policies(const json_t *request, json_t **ret_names, struct err *err)
{
    const json_t *given = json_object_get(request, "Policies"), *item;
    json_t *names = json_array();
    int code = 0;
    size_t i;

    check(names != NULL);
    if (given != NULL && !json_is_null(given) && !json_is_array(given))
        code = err_set(err, ERR_INVALID, "Policies must be a list of names");
    if (json_array_size(given) > ACL_TOKEN_POLICIES_MAX)
        code = err_set(err, ERR_INVALID, "a token has at most %d policies", ACL_TOKEN_POLICIES_MAX);
    json_array_foreach(given, i, item)
    {
        if (code == 0 && !policy_name_is_valid(json_string_value(item)))
            code = err_set(err, ERR_INVALID, "Policies must be a list of names");
        if (code == 0)
            check(json_array_append(names, (json_t *)item) == 0);
    }
    if (code != 0)
        json_decref(names);
    else
        *ret_names = names;
    return code;
}

/* How long REQUEST wants its token to last: 0, for ever. */
static int read_ttl(const struct acl *acl, const json_t *request, int64_t *ret_ns, struct err *err)
{
    int64_t min_ns = acl->config.ttl_min_ns, max_ns = acl->config.ttl_max_ns;
    char min[32], max[32];
    const json_t *ttl = json_object_get(request, "ExpirationTTL");
    const json_t *time = json_object_get(request, "ExpirationTime");
    int64_t ns = json_integer_value(ttl);

    *ret_ns = 0;
    if (json_is_string(time))
        return err_set(err, ERR_INVALID, "ExpirationTime is not taken: say ExpirationTTL");
    bool is_empty = json_is_string(ttl) && json_string_length(ttl) == 0; /* Nomad's client's none */
    if (ttl == NULL || json_is_null(ttl) || is_empty)
        return 0;
    if (json_is_string(ttl) ? !text_to_duration_ns(json_string_value(ttl), &ns)
                            : !json_is_integer(ttl))
        return err_set(err, ERR_INVALID, "ExpirationTTL must be a duration");
    *ret_ns = ns;
    if (ns == 0 || (ns >= min_ns && ns <= max_ns))
        return 0;
    text_from_duration_ns(min, sizeof(min), min_ns);
    text_from_duration_ns(max, sizeof(max), max_ns);
    return err_set(err, ERR_INVALID, "expiration time must be between %s and %s from now", min,
                   max);
}

/* The token that REQUEST describes, but for its ids and times. */
static int read_token(const json_t *request, json_t **ret_token, struct err *err)
{
    const char *name, *type;
    json_t *policies = NULL;

    if (has_items(request, "Roles"))
        return err_set(err, ERR_INVALID, "Roles are not available in this release: say Policies");
    if (read_text(request, "Name", &name, err) < 0 || read_text(request, "Type", &type, err) < 0)
        return ERR_INVALID;
    if (!text_equal(type, "client") && !text_equal(type, "management"))
        return err_set(err, ERR_INVALID, "token type must be client or management");
    if (read_policies(request, &policies, err) < 0)
        return ERR_INVALID;
    bool manages = text_equal(type, "management"), some = json_array_size(policies) > 0;
    if (manages == some) {
        json_decref(policies);
        return err_set(err, ERR_INVALID,
                       manages ? "management token cannot be associated with policies or roles"
                               : "client token missing policies or roles");
    }
    *ret_token =
        json_pack("{s:s, s:s, s:o, s:[], s:b}", "Name", name, "Type", type, "Policies", policies,
                  "Roles", "Global", json_is_true(json_object_get(request, "Global")));
    check(*ret_token != NULL);
    return 0;
}

/* Those that have ended leave with the next change. */
static void drop_expired(struct acl *acl)
{
    struct token *token, *next;
    char key[JOURNAL_KEY_SIZE];

    HASH_ITER(hh, acl->tokens, token, next)
    {
        if (!book_has_expired(acl, token))
            continue;
        (void)put_key(key, "secret/token/", token->accessor); /* it fits */
        book_store(acl, key, NULL, NULL, NULL, NULL);
    }
}

/* Stores TOKEN (moved), whose ids are FRESH, and answers with its secret. */
static void store_new(struct acl *acl, json_t *token, int64_t ttl_ns, const struct acl_fresh *fresh,
                      acl_answer *then, void *ctx)
{
    int64_t now_ns = life_unix_ns(acl->config.life);
    char key[JOURNAL_KEY_SIZE], digest[DIGEST_TEXT_SIZE];

    stamp(acl, token, NULL);
    check(json_object_update_new(token,
                                 json_pack("{s:s, s:I, s:I, s:I}", "AccessorID", fresh->accessor,
                                           "cairnCreatedNs", (json_int_t)now_ns, "cairnExpiresNs",
                                           (json_int_t)(ttl_ns == 0 ? 0 : now_ns + ttl_ns),
                                           "ExpirationTTL", (json_int_t)ttl_ns)) == 0);
    json_t *answer = json_deep_copy(token);
    check(answer != NULL);
    check(json_object_set_new(answer, "SecretID", json_string(fresh->secret)) == 0);
    book_digest(fresh->secret, digest);
    check(json_object_set_new(token, "cairnDigest", json_string(digest)) == 0);
    (void)put_key(key, "secret/token/", fresh->accessor); /* it fits */
    book_store(acl, key, token, answer, then, ctx);
}

void acl_create_token(struct acl *acl, const json_t *request, const struct acl_fresh *fresh,
                      acl_answer *then, void *ctx)
{
    struct err err = {0};
    json_t *token = NULL;
    int64_t ttl_ns = 0;
    int code = read_token(request, &token, &err);

    if (code == 0)
        code = read_ttl(acl, request, &ttl_ns, &err);
    if (code == 0 && HASH_COUNT(acl->tokens) >= ACL_TOKENS_MAX)
        code = err_set(&err, ERR_LIMIT, "there are %d tokens already", ACL_TOKENS_MAX);
    if (code != 0) {
        json_decref(token);
        book_refuse(then, ctx, &err);
    } else if (may_store(acl, then, ctx)) {
        drop_expired(acl);
        store_new(acl, token, ttl_ns, fresh, then, ctx);
    } else {
        json_decref(token);
    }
}

void acl_update_token(struct acl *acl, const json_t *request, acl_answer *then, void *ctx)
{
    const char *accessor = text_or_null(request, "AccessorID");
    const struct token *before = accessor == NULL ? NULL : book_token(acl, accessor);
    struct err err = {0};
    json_t *token = NULL;
    char key[JOURNAL_KEY_SIZE];
    int code = 0;

    if (before == NULL || book_has_expired(acl, before))
        code = err_set(&err, ERR_GONE, "ACL token not found");
    if (code == 0)
        code = read_token(request, &token, &err);
    if (code == 0 &&
        !json_equal(json_object_get(token, "Type"), json_object_get(before->json, "Type")))
        code = err_set(&err, ERR_INVALID, "cannot change type of token");
    if (code != 0) {
        json_decref(token);
        book_refuse(then, ctx, &err);
        return;
    }
    if (!may_store(acl, then, ctx)) {
        json_decref(token);
        return;
    }
    check(json_object_update_missing(token, before->json) == 0);
    stamp(acl, token, before->json);
    json_t *answer = json_deep_copy(token);
    check(json_object_set_new(token, "cairnDigest", json_string(before->digest)) == 0);
    (void)put_key(key, "secret/token/", accessor); /* it is one that is there */
    book_store(acl, key, token, answer, then, ctx);
}

void acl_delete_token(struct acl *acl, const char *accessor, acl_answer *then, void *ctx)
{
    char key[JOURNAL_KEY_SIZE];
    struct err err = {0};

    if (book_token(acl, accessor) == NULL || !put_key(key, "secret/token/", accessor)) {
        (void)err_set(&err, ERR_GONE, "ACL token not found");
        book_refuse(then, ctx, &err);
    } else if (may_store(acl, then, ctx)) {
        book_store(acl, key, NULL, NULL, then, ctx);
    }
}

/* --- the first one --- */

/* True if a first token is on its way: none of two that ask at once gets two. */
static bool is_bootstrapping(const struct acl *acl)
{
    for (const struct change *change = acl->changes; change != NULL; change = change->next) {
        if (text_equal(change->key, book_bootstrap_key) && change->json != NULL)
            return true;
    }
    return false;
}

static void refuse_another(acl_answer *then, void *ctx)
{
    struct err err = {0};

    (void)err_set(&err, ERR_EXISTS,
                  "ACL bootstrap already done: whoever owns the data directory may allow "
                  "another by an empty file acl-bootstrap-reset in it");
    book_refuse(then, ctx, &err);
}

void acl_bootstrap(struct acl *acl, const struct acl_fresh *fresh, acl_again *again,
                   void *again_ctx, acl_answer *then, void *ctx)
{
    struct err err = {0};

    if ((acl->bootstrapped && again == NULL) || is_bootstrapping(acl)) {
        refuse_another(then, ctx);
        return;
    }
    if (book_has_secret(acl, fresh->secret)) { /* the caller may have brought it */
        (void)err_set(&err, ERR_INVALID,
                      "there is a token with this secret already: bring another");
        book_refuse(then, ctx, &err);
        return;
    }
    if (!may_store(acl, then, ctx))
        return;
    if (acl->bootstrapped && !again(again_ctx)) {
        refuse_another(then, ctx);
        return;
    }
    json_t *token = json_pack("{s:s, s:s, s:[], s:[], s:b}", "Name", "Bootstrap Token", "Type",
                              "management", "Policies", "Roles", "Global", true);
    check(token != NULL);
    book_store(acl, book_bootstrap_key, json_pack("{s:I}", "Index", book_index(acl)), NULL, NULL,
               NULL);
    store_new(acl, token, 0, fresh, then, ctx);
}
