/*
 * Policies and tokens over HTTP, with Nomad's routes and JSON (v2.0 command/agent/acl_endpoint.go).
 *
 * A token's secret is told once, to whom makes it, and to whom shows it.
 */
#include "agent/api/part.h"

#include "agent/api/format/values.h"
#include "agent/bootstrap.h"
#include "io/log.h"
#include "server/alone/alone.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char reset_name[] = "acl-bootstrap-reset";

static struct acl *acl_of(const struct api *api)
{
    return alone_acl(api->parts->alone);
}

/* False, and REQUEST refused, where nobody asks for tokens. */
static bool is_enabled(struct api_request *request)
{
    if (request->api->parts->config->acl_enabled)
        return true;
    api_refuse(request, 400, "ACL support disabled");
    return false;
}

/* --- as they are shown --- */

/* A new reference: POLICY as lists show it, or with its rules. */
static json_t *show_policy(const json_t *policy, bool whole)
{
    json_t *shown = json_copy((json_t *)policy);

    check(shown != NULL);
    if (!whole)
        (void)json_object_del(shown, "Rules"); /* each has some */
    check(json_object_set_new(shown, "Hash", json_null()) == 0);
    return shown;
}

/* A new reference: TOKEN, whose times are numbers, as Nomad's clients read it. */
static json_t *show_token(const json_t *token, const char *secret)
{
    json_int_t ttl = json_integer_value(json_object_get(token, "ExpirationTTL"));
    json_int_t end = json_integer_value(json_object_get(token, "cairnExpiresNs"));
    char created[API_TIME_SIZE], ends[API_TIME_SIZE], lasts[32] = "";
    json_t *shown = json_copy((json_t *)token);

    check(shown != NULL);
    api_time(created, json_integer_value(json_object_get(token, "cairnCreatedNs")));
    api_time(ends, end);
    if (ttl != 0)
        text_from_duration_ns(lasts, sizeof(lasts), ttl);
    (void)json_object_del(shown, "cairnCreatedNs"); /* each has all of these */
    (void)json_object_del(shown, "cairnExpiresNs");
    check(json_object_update_new(
              shown, json_pack("{s:s, s:o, s:s, s:n, s:s}", "CreateTime", created, "ExpirationTime",
                               end == 0 ? json_null() : json_string(ends), "ExpirationTTL", lasts,
                               "Hash", "SecretID", secret)) == 0);
    return shown;
}

/* --- reading --- */

struct listing {
    struct api_request *request;
    const json_t *own; /* the names of the policies that are shown, NULL: all */
    json_t *list;
};

/* The names of the policies of whoever asks; NULL: all may be seen. */
static const json_t *own_policies(struct api_request *request)
{
    const char *secret = api_token(request);
    const json_t *token = secret == NULL ? NULL : acl_token_of(acl_of(request->api), secret);

    return acl_manages(request->rights) ? NULL : json_object_get(token, "Policies");
}

static bool is_own(const struct api_request *request, const json_t *own, const char *name)
{
    const json_t *one;
    size_t i;

    if (acl_manages(request->rights) || text_equal(name, "anonymous"))
        return true;
    json_array_foreach(own, i, one)
    {
        if (text_equal(json_string_value(one), name))
            return true;
    }
    return false;
}

static void list_policy(void *ctx, const json_t *policy)
{
    struct listing *listing = ctx;
    const char *name = json_string_value(json_object_get(policy, "Name"));

    if (text_starts_with(name, listing->request->prefix) &&
        is_own(listing->request, listing->own, name))
        check(json_array_append_new(listing->list, show_policy(policy, false)) == 0);
}

void api_acl_policies(struct api_request *request)
{
    struct listing listing = {.request = request, .list = json_array()};

    if (!is_enabled(request)) {
        json_decref(listing.list);
        return;
    }
    listing.own = own_policies(request);
    acl_each_policy(acl_of(request->api), list_policy, &listing);
    api_reply(request, listing.list);
}

void api_acl_policy_get(struct api_request *request)
{
    if (!is_enabled(request))
        return;
    const json_t *policy = acl_policy(acl_of(request->api), request->argument);
    if (!is_own(request, own_policies(request), request->argument))
        api_refuse(request, 403, "Permission denied");
    else if (policy == NULL)
        api_refuse(request, 404, "ACL policy not found");
    else
        api_reply(request, show_policy(policy, true));
}

static void list_token(void *ctx, const json_t *token)
{
    struct listing *listing = ctx;

    if (!text_starts_with(json_string_value(json_object_get(token, "AccessorID")),
                          listing->request->prefix))
        return;
    json_t *shown = show_token(token, "");
    check(json_object_del(shown, "SecretID") == 0); /* lists have none */
    check(json_array_append_new(listing->list, shown) == 0);
}

void api_acl_tokens(struct api_request *request)
{
    struct listing listing = {.request = request, .list = json_array()};

    if (!is_enabled(request)) {
        json_decref(listing.list);
        return;
    }
    acl_each_token(acl_of(request->api), list_token, &listing);
    api_reply(request, listing.list);
}

static void reply_token(struct api_request *request, const json_t *token, const char *secret)
{
    if (token == NULL)
        api_refuse(request, 404, "ACL token not found");
    else
        api_reply(request, show_token(token, secret));
}

void api_acl_token_get(struct api_request *request)
{
    if (is_enabled(request))
        reply_token(request, acl_token(acl_of(request->api), request->argument), "");
}

/* Whoever shows a token may read it; he knows its secret. */
void api_acl_token_self(struct api_request *request)
{
    const char *secret = api_token(request);

    if (!is_enabled(request))
        return;
    if (secret == NULL)
        api_refuse(request, 403, "Permission denied");
    else
        reply_token(request, acl_token_of(acl_of(request->api), secret), secret);
}

/* --- changing --- */

struct asked {
    json_t *answer; /* what came of it, NULL: nothing */
};

static json_t *make_token(struct api *api, void *ctx)
{
    const struct asked *asked = ctx;
    const char *secret = json_string_value(json_object_get(asked->answer, "SecretID"));

    (void)api;
    json_t *shown = show_token(asked->answer, secret == NULL ? "" : secret);
    json_decref(asked->answer);
    return shown;
}

static void answered(void *ctx, int code, const struct err *err, const json_t *answer)
{
    struct api_deferred *deferred = ctx;
    struct asked *asked = deferred->ctx;

    /* Nobody makes an answer for whom has gone. */
    if (answer != NULL && asked != NULL && deferred->exchange != NULL)
        asked->answer = json_incref((json_t *)answer);
    api_deferred_answer(deferred, code, err);
}

static struct api_deferred *defer_token(struct api_request *request)
{
    struct asked *asked = calloc(1, sizeof(*asked));

    check(asked != NULL);
    return api_defer(request, make_token, asked);
}

void api_acl_policy_put(struct api_request *request)
{
    json_t *body =
        is_enabled(request) ? api_long_body(request, false, 2 * ACL_RULES_BYTES_MAX) : NULL;
    const char *name = json_string_value(json_object_get(body, "Name"));

    if (body == NULL)
        return;
    if (name != NULL && name[0] != '\0' && !text_equal(name, request->argument)) {
        api_refuse(request, 400, "ACL policy name does not match request path");
    } else {
        check(json_object_set_new(body, "Name", json_string(request->argument)) == 0);
        acl_put_policy(acl_of(request->api), body, answered, api_defer(request, NULL, NULL));
    }
    json_decref(body);
}

void api_acl_policy_delete(struct api_request *request)
{
    if (is_enabled(request))
        acl_delete_policy(acl_of(request->api), request->argument, answered,
                          api_defer(request, NULL, NULL));
}

void api_acl_token_create(struct api_request *request)
{
    json_t *body = is_enabled(request) ? api_body(request, false) : NULL;
    const char *accessor = json_string_value(json_object_get(body, "AccessorID"));
    struct acl_fresh fresh;

    if (body == NULL)
        return;
    host_draw_id(fresh.accessor);
    host_draw_id(fresh.secret);
    if (accessor != NULL && accessor[0] != '\0')
        api_refuse(request, 400, "a new token gets its AccessorID: leave it out");
    else
        acl_create_token(acl_of(request->api), body, &fresh, answered, defer_token(request));
    explicit_bzero(&fresh, sizeof(fresh));
    json_decref(body);
}

void api_acl_token_update(struct api_request *request)
{
    json_t *body = is_enabled(request) ? api_body(request, false) : NULL;
    const char *accessor = json_string_value(json_object_get(body, "AccessorID"));

    if (body == NULL)
        return;
    if (accessor == NULL || !text_equal(accessor, request->argument))
        api_refuse(request, 400, "request token does not match AccessorID");
    else
        acl_update_token(acl_of(request->api), body, answered, defer_token(request));
    json_decref(body);
}

void api_acl_token_delete(struct api_request *request)
{
    if (is_enabled(request))
        acl_delete_token(acl_of(request->api), request->argument, answered,
                         api_defer(request, NULL, NULL));
}

/* --- the first token --- */

static bool reset_path(const struct api *api, char path[PATH_SIZE])
{
    return text_format(path, PATH_SIZE, "%s/%s", api->parts->config->data_dir, reset_name);
}

/* True if whoever owns the data directory allows another first token. */
static bool may_be_reset(const struct api *api)
{
    char path[PATH_SIZE];

    return reset_path(api, path) && access(path, F_OK) == 0;
}

/* Once. */
static bool take_reset(void *ctx)
{
    char path[PATH_SIZE];

    if (!reset_path(ctx, path) || unlink(path) != 0)
        return false;
    log_warn("api", "another first token is made, as %s in the data directory allowed", reset_name);
    return true;
}

void api_acl_bootstrap(struct api_request *request)
{
    json_t *body = is_enabled(request) ? api_body(request, true) : NULL;
    const char *secret = json_string_value(json_object_get(body, "BootstrapSecret"));
    struct api *api = request->api;
    struct acl_fresh fresh;

    if (body == NULL)
        return;
    if (secret != NULL && secret[0] != '\0' && !uuid_is_valid(secret)) {
        api_refuse(request, 400, "invalid bootstrap token: it must be a UUID");
        json_decref(body);
        return;
    }
    host_draw_id(fresh.accessor);
    host_draw_id(fresh.secret);
    if (secret != NULL && secret[0] != '\0')
        (void)text_copy(fresh.secret, UUID_TEXT_SIZE, secret); /* a UUID */
    json_decref(body);
    if (bootstrap_is_configured(api->parts) && !acl_is_bootstrapped(acl_of(api)) &&
        !may_be_reset(api))
        api_refuse(request, 409,
                   "the first token is that of acl.bootstrap_secret_file, in the agent's "
                   "configuration");
    else
        acl_bootstrap(acl_of(api), &fresh, may_be_reset(api) ? take_reset : NULL, api, answered,
                      defer_token(request));
    explicit_bzero(&fresh, sizeof(fresh));
}
