/* What servers say of tokens: asked, added up, remembered.  See lent.h. */
#include "server/acl/lent.h"

#include "fsm/policy.h"
#include "server/acl/part.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum {
    FAILED_MS = 1000,     /* that servers could not be asked is believed */
    SKEW_NS = 2000000000, /* clocks differ: a token ends before its time */
    ROLES_MAX = 64,       /* of a token */
    POLICIES_MAX = 256,   /* of it and its roles */
    NAME_BYTES = ACL_NAME_SIZE - 1,
};

struct token_lent;

struct acl_lent_wait {
    struct token_lent *token;
    acl_lent_then *then;
    void *ctx;
    struct acl_lent_wait *prev, *next;
};

struct token_lent {
    struct acl_lent *lent;
    char digest[DIGEST_TEXT_SIZE];
    struct acl_rights *rights; /* NULL: none are known */
    int code;                  /* else why not, 0: nobody has said anything yet */
    char why[ERR_TEXT_SIZE];
    uint64_t until_ms;    /* it is not asked about again before */
    bool telling;         /* what was said just now */
    int64_t ends_unix_ns; /* 0: never */

    bool asking;
    char *secret;  /* meanwhile; owned, wiped */
    json_t *names; /* of policies that were found so far; owned */
    int64_t will_end_ns;
    struct acl_lent_wait *waits;
    UT_hash_handle hh;
};

struct acl_lent {
    struct acl_lent_config config;
    struct token_lent *tokens; /* those that were used last are the last */
    unsigned asked;
};

/* --- what is known --- */

static struct token_lent *find(struct acl_lent *lent, const char *secret)
{
    char digest[DIGEST_TEXT_SIZE];
    struct token_lent *token;

    book_digest(secret == NULL ? "" : secret, digest);
    HASH_FIND_STR(lent->tokens, digest, token);
    return token;
}

static void token_free(struct token_lent *token)
{
    struct acl_lent_wait *wait, *next;

    DL_FOREACH_SAFE(token->waits, wait, next)
    {
        free(wait);
    }
    if (token->secret != NULL)
        explicit_bzero(token->secret, strlen(token->secret));
    free(token->secret);
    json_decref(token->names);
    acl_rights_free(token->rights);
    free(token);
}

/* The one that was used the longest ago, and is not asked about, makes room. */
static void make_room(struct acl_lent *lent)
{
    struct token_lent *token, *next;

    HASH_ITER(hh, lent->tokens, token, next)
    {
        if (HASH_COUNT(lent->tokens) < ACL_LENT_MAX)
            return;
        if (!token->asking && !token->telling) {
            HASH_DEL(lent->tokens, token);
            token_free(token);
        }
    }
}

static struct token_lent *find_or_make(struct acl_lent *lent, const char *secret)
{
    struct token_lent *token = find(lent, secret);

    if (token != NULL)
        return token;
    make_room(lent);
    token = calloc(1, sizeof(*token));
    check(token != NULL);
    token->lent = lent;
    book_digest(secret == NULL ? "" : secret, token->digest);
    HASH_ADD_STR(lent->tokens, digest, token);
    return token;
}

int acl_lent_find(struct acl_lent *lent, const char *secret, bool settled,
                  const struct acl_rights **ret_rights, struct err *err)
{
    struct token_lent *token = find(lent, secret);
    uint64_t now_ms = lent->config.now_ms(lent->config.ctx);
    bool is_known = token != NULL && (token->rights != NULL || token->code != 0);

    if (!is_known || (!settled && !token->telling && now_ms >= token->until_ms))
        return err_set(err, ERR_AGAIN, "servers have to be asked about the token");
    HASH_DEL(lent->tokens, token); /* the newest is the last */
    HASH_ADD_STR(lent->tokens, digest, token);
    if (token->rights == NULL)
        return err_set(err, token->code, "%s", token->why);
    if (token->ends_unix_ns != 0 &&
        lent->config.now_unix_ns(lent->config.ctx) + SKEW_NS >= token->ends_unix_ns)
        return err_set(err, ERR_GONE, "ACL token expired");
    *ret_rights = token->rights;
    return 0;
}

/* --- what was said --- */

/* Whoever has waited finds what was said, as old as it may be by then: he does not ask again. */
static void tell(struct token_lent *token)
{
    token->telling = true;
    while (token->waits != NULL) {
        struct acl_lent_wait *wait = token->waits;
        acl_lent_then *then = wait->then;
        void *ctx = wait->ctx;

        DL_DELETE(token->waits, wait);
        free(wait);
        then(ctx);
    }
    token->telling = false;
}

static void over(struct token_lent *token)
{
    token->asking = false;
    token->lent->asked--;
    explicit_bzero(token->secret, strlen(token->secret));
    free(token->secret);
    token->secret = NULL;
    json_decref(token->names);
    token->names = NULL;
    tell(token);
}

static void good_for(struct token_lent *token, uint64_t for_ms)
{
    token->until_ms = token->lent->config.now_ms(token->lent->config.ctx) + for_ms;
}

static void said(struct token_lent *token, struct acl_rights *rights)
{
    acl_rights_free(token->rights);
    token->rights = rights;
    token->code = 0;
    token->ends_unix_ns = token->will_end_ns;
    good_for(token, token->lent->config.ttl_ms);
    over(token);
}

/* It is no token. */
static void disowned(struct token_lent *token, const char *why)
{
    acl_rights_free(token->rights);
    token->rights = NULL;
    token->code = ERR_GONE;
    (void)text_copy(token->why, sizeof(token->why), why); /* fits */
    good_for(token, token->lent->config.ttl_ms);
    over(token);
}

/* Nobody has said anything: what was said before counts on, for a moment. */
static void failed(struct token_lent *token, const struct err *err)
{
    struct acl_lent *lent = token->lent;

    if (policy_is_denied(err->code, err->text)) {
        disowned(token, "Permission denied");
        return;
    }
    if (token->rights != NULL) {
        say(&lent->config.say, SAY_WARN, "server",
            "servers cannot be asked about a token, what they said last counts error=%s",
            err->text);
    } else {
        struct err why = *err;

        (void)err_wrap(&why, "the servers cannot be asked about the token");
        token->code = why.code == ERR_GONE || why.code == ERR_AGAIN ? ERR_IO : why.code;
        (void)text_copy(token->why, sizeof(token->why), why.text); /* of the same size */
    }
    good_for(token, FAILED_MS);
    over(token);
}

/* --- asking --- */

static void ask(struct token_lent *token, const char *method, json_t *args, acl_lent_reply *cb)
{
    const struct acl_lent_config *config = &token->lent->config;

    check(args != NULL);
    config->ask(config->ctx, method, args, token->secret, cb, token);
}

static void add_name(struct token_lent *token, const char *name)
{
    if (name != NULL && strlen(name) <= NAME_BYTES && json_array_size(token->names) < POLICIES_MAX)
        check(json_array_append_new(token->names, json_string(name)) == 0);
}

/* What the policies grant, all together.  One that cannot be read grants nothing. */
static void on_policies(void *ctx, const json_t *reply, const struct err *err)
{
    struct token_lent *token = ctx;
    json_t *policies = json_object_get(reply, "Policies"), *policy;
    struct acl_rights *sum;
    const char *name;

    if (reply == NULL) {
        failed(token, err);
        return;
    }
    sum = rights_new();
    json_object_foreach(policies, name, policy)
    {
        const json_t *rules = json_object_get(policy, "Rules");
        struct acl_rights *rights = NULL;
        struct err wrong = {0};

        if (!json_is_string(rules))
            continue;
        if (acl_read_policy(json_string_value(rules), json_string_length(rules), &rights, &wrong) !=
            0) {
            say(&token->lent->config.say, SAY_WARN, "server",
                "a policy of the servers is not understood, and grants nothing here policy=%s "
                "error=%s",
                name, wrong.text);
            continue;
        }
        rights_add(sum, rights);
        acl_rights_free(rights);
    }
    said(token, sum);
}

static void ask_policies(struct token_lent *token)
{
    if (json_array_size(token->names) == 0)
        said(token, rights_new());
    else
        ask(token, "ACL.GetPolicies",
            json_pack("{s:O, s:b}", "Names", token->names, "AllowStale", 1), on_policies);
}

static void on_roles(void *ctx, const json_t *reply, const struct err *err)
{
    struct token_lent *token = ctx;
    json_t *roles = json_object_get(reply, "ACLRoles"), *role, *policy;
    const char *id;
    size_t i;

    if (reply == NULL) {
        failed(token, err);
        return;
    }
    json_object_foreach(roles, id, role)
    {
        json_array_foreach(json_object_get(role, "Policies"), i, policy)
        {
            add_name(token, json_string_value(json_object_get(policy, "Name")));
        }
    }
    ask_policies(token);
}

static void on_token(void *ctx, const json_t *reply, const struct err *err)
{
    struct token_lent *token = ctx;
    json_t *found = json_object_get(reply, "Token"), *ids = json_array(), *item;
    const char *type = json_string_value(json_object_get(found, "Type"));
    size_t i;

    check(ids != NULL);
    token->will_end_ns =
        json_integer_value(json_object_get(json_object_get(found, "ExpirationTime"), "$time"));
    json_array_foreach(json_object_get(found, "Policies"), i, item)
    {
        add_name(token, json_string_value(item));
    }
    json_array_foreach(json_object_get(found, "Roles"), i, item)
    {
        const json_t *id = json_object_get(item, "ID");

        if (json_is_string(id) && json_array_size(ids) < ROLES_MAX)
            check(json_array_append(ids, (json_t *)id) == 0);
    }
    if (reply == NULL) {
        failed(token, err);
    } else if (type == NULL) {
        disowned(token, "ACL token not found");
    } else if (text_equal(type, "management")) {
        struct acl_rights *rights = rights_new();

        rights->manages = true;
        said(token, rights);
    } else if (json_array_size(ids) > 0) {
        ask(token, "ACL.GetRolesByID", json_pack("{s:O, s:b}", "ACLRoleIDs", ids, "AllowStale", 1),
            on_roles);
    } else {
        ask_policies(token);
    }
    json_decref(ids);
}

/* An identity of a workload: servers say at once what it may, or that it is none. */
static void on_claims(void *ctx, const json_t *reply, const struct err *err)
{
    struct token_lent *token = ctx;

    if (reply == NULL && policy_is_denied(err->code, err->text))
        disowned(token, "ACL token not found");
    else
        on_policies(ctx, reply, err);
}

static void begin(struct token_lent *token)
{
    token->names = json_array();
    token->will_end_ns = 0;
    check(token->names != NULL);
    if (token->secret[0] == '\0') {
        add_name(token, "anonymous");
        ask_policies(token);
    } else if (uuid_is_valid(token->secret)) {
        ask(token, "ACL.ResolveToken",
            json_pack("{s:s, s:b}", "SecretID", token->secret, "AllowStale", 1), on_token);
    } else {
        ask(token, "ACL.GetClaimPolicies", json_object(), on_claims);
    }
}

/* Three parts with dots between: else nothing that anybody could know. */
static bool may_be_token(const char *secret)
{
    const char *dot = strchr(secret, '.');

    return secret[0] == '\0' || uuid_is_valid(secret) ||
           (dot != NULL && strchr(dot + 1, '.') != NULL && strlen(secret) <= ACL_LENT_SECRET_MAX);
}

int acl_lent_ask(struct acl_lent *lent, const char *secret, acl_lent_then *then, void *ctx,
                 struct acl_lent_wait **ret_wait, struct err *err)
{
    struct token_lent *token = find(lent, secret);
    struct acl_lent_wait *wait;

    if ((token == NULL || !token->asking) && lent->asked == ACL_LENT_ASKED_MAX)
        return err_set(err, ERR_LIMIT, "servers are being asked about %d tokens already: try again",
                       ACL_LENT_ASKED_MAX);
    token = find_or_make(lent, secret);
    wait = calloc(1, sizeof(*wait));
    check(wait != NULL);
    *wait = (struct acl_lent_wait){.token = token, .then = then, .ctx = ctx};
    DL_APPEND(token->waits, wait);
    *ret_wait = wait;
    if (token->asking)
        return 0;
    token->asking = true;
    lent->asked++;
    token->secret = strdup(secret == NULL ? "" : secret);
    check(token->secret != NULL);
    if (may_be_token(token->secret))
        begin(token);
    else
        disowned(token, "ACL token not found");
    return 0;
}

void acl_lent_leave(struct acl_lent_wait *wait)
{
    DL_DELETE(wait->token->waits, wait);
    free(wait);
}

/* --- the house --- */

struct acl_lent *acl_lent_new(const struct acl_lent_config *config)
{
    struct acl_lent *lent = calloc(1, sizeof(*lent));

    check(lent != NULL);
    lent->config = *config;
    return lent;
}

void acl_lent_free(struct acl_lent *lent)
{
    struct token_lent *token, *next;

    if (lent == NULL)
        return;
    HASH_ITER(hh, lent->tokens, token, next)
    {
        HASH_DEL(lent->tokens, token);
        token_free(token);
    }
    free(lent);
}
