/*
 * Identities that servers sign: tokens by which tasks and services are known to others.
 *
 * All that is asked for at once is of one alloc, and is signed whole or not at all.  A server that
 * lags behind waits until it knows the alloc, as long as it would for any question; what it says
 * then it says for good.  What comes is looked at before anybody has it: as much as was asked for,
 * each for whom it was, and tokens that a header of HTTP and a variable can carry.  Follows nomad
 * v2.0.6 client/widmgr/signer.go and nomad/alloc_endpoint.go SignIdentities.
 */
#include "server/nomad/part.h"

#include "spec/json.h"
#include "spec/names.h"

#include <string.h>

enum {
    SIGNING_WAIT_MS = 10 * 1000,
    OF_TASK = 0, /* types of workloads */
    OF_SERVICE = 1,
};

struct signing {
    struct nomad *nomad;
    json_t *asked; /* the list of requests; owned */
    spec_signed_cb *cb;
    void *ctx;
    struct signing **link, *next;
};

static void end(struct signing *signing)
{
    *signing->link = signing->next;
    if (signing->next != NULL)
        signing->next->link = signing->link;
    json_decref(signing->asked);
    free(signing);
}

void signing_end(struct nomad *nomad)
{
    while (nomad->signing != NULL)
        end(nomad->signing);
}

/* --- what comes --- */

/* Go's zero values may be missing. */
static bool is_for(const json_t *request, const json_t *signed_one)
{
    return text_equal(text_of(request, "AllocID"), text_of(signed_one, "AllocID")) &&
           text_equal(text_of(request, "IdentityName"), text_of(signed_one, "IdentityName")) &&
           text_equal(text_of(request, "WorkloadIdentifier"),
                      text_of(signed_one, "WorkloadIdentifier")) &&
           json_integer_value(json_object_get(request, "WorkloadType")) ==
               json_integer_value(json_object_get(signed_one, "WorkloadType"));
}

static int take_one(const json_t *request, const json_t *list, struct spec_signed *to,
                    struct err *err)
{
    const json_t *signed_one = NULL, *item, *expires;
    size_t i;

    json_array_foreach(list, i, item)
    {
        if (signed_one == NULL && is_for(request, item))
            signed_one = item;
    }
    expires = json_object_get(json_object_get(signed_one, "Expiration"), "$time");
    *to = (struct spec_signed){.token = text_of(signed_one, "JWT"),
                               .expires_unix_ns = json_integer_value(expires)};
    if (signed_one == NULL || !spec_is_token(to->token) || to->expires_unix_ns < 0)
        return err_set(err, ERR_CORRUPT, "the server sent no token of the identity \"%.130s\"",
                       text_of(request, "IdentityName"));
    return 0;
}

enum { SHOWN_SIZE = 96 };

/* What a server says, for a line of text. */
static const char *shown(const json_t *rejection, const char *field, char to[SHOWN_SIZE])
{
    (void)text_copy(to, SHOWN_SIZE, text_of(rejection, field)); /* cut if too long */
    text_whole(to);
    return to;
}

/* All of a job's identities are its own: one that cannot be signed is none that it should have. */
static int look_for_rejections(const json_t *reply, const json_t *asked, struct err *err)
{
    const json_t *rejections = json_object_get(reply, "Rejections");
    const json_t *first = json_array_get(rejections, 0);
    char name[SHOWN_SIZE], reason[SHOWN_SIZE];

    if (json_array_size(rejections) == 0)
        return 0;
    return err_set(err, ERR_REFUSED, "the servers refuse to sign %zu of %zu identities: \"%s\": %s",
                   json_array_size(rejections), json_array_size(asked),
                   shown(first, "IdentityName", name), shown(first, "Reason", reason));
}

static int take(const json_t *reply, const json_t *asked, struct spec_signed *tokens,
                struct err *err)
{
    const json_t *list = json_object_get(reply, "SignedIdentities"), *request;
    size_t i;
    int code = look_for_rejections(reply, asked, err);

    if (code == 0 && json_array_size(list) != json_array_size(asked))
        code = err_set(err, ERR_CORRUPT, "expected %zu signed identities but received %zu",
                       json_array_size(asked), json_array_size(list));
    json_array_foreach(asked, i, request)
    {
        if (code == 0)
            code = take_one(request, list, &tokens[i], err);
    }
    return code;
}

static void signed_all(void *ctx, const json_t *reply, const struct err *err)
{
    struct signing *signing = ctx;
    struct spec_signed *tokens =
        calloc(json_array_size(signing->asked), sizeof(*tokens)); /* one at least */
    struct err why = {0};

    check(tokens != NULL);
    bool refused = reply != NULL && take(reply, signing->asked, tokens, &why) == ERR_REFUSED;
    if (reply == NULL)
        why = *err;
    why.recoverable = !refused; /* another server, or later */
    signing->cb(signing->ctx, why.code == 0 ? tokens : NULL, &why);
    free(tokens);
    end(signing);
}

/* --- what is asked --- */

static json_t *request_of(const char *alloc, const struct spec_bearer *bearer)
{
    json_t *request =
        json_pack("{s:s, s:s, s:s, s:i, s:s}", "AllocID", alloc, "IdentityName", bearer->identity,
                  "WorkloadIdentifier", bearer->workload, "WorkloadType",
                  bearer->service != NULL ? OF_SERVICE : OF_TASK, "InterpolatedWorkloadIdentifier",
                  bearer->service != NULL ? bearer->service : "");

    check(request != NULL); /* names are UTF-8 */
    return request;
}

void nomad_sign(struct nomad *nomad, const char *alloc, uint64_t index,
                const struct spec_bearer *bearers, size_t count, spec_signed_cb *cb, void *ctx)
{
    struct signing *signing = calloc(1, sizeof(*signing));

    check(signing != NULL);
    check(count > 0);
    signing->nomad = nomad;
    signing->cb = cb;
    signing->ctx = ctx;
    signing->asked = json_array();
    for (size_t i = 0; i < count; i++)
        check(json_array_append_new(signing->asked, request_of(alloc, &bearers[i])) == 0);
    signing->next = nomad->signing;
    signing->link = &nomad->signing;
    if (signing->next != NULL)
        signing->next->link = &signing->next;
    nomad->signing = signing;
    json_t *args = json_pack("{s:O, s:I, s:I, s:b}", "Identities", signing->asked, "MinQueryIndex",
                             (json_int_t)(index > 0 ? index - 1 : 0), "MaxQueryTime",
                             (json_int_t)SIGNING_WAIT_MS * 1000000, "AllowStale", 1);
    servers_call(nomad, "Alloc.SignIdentities", args, false, SIGNING_WAIT_MS + NOMAD_CALL_MS,
                 signed_all, signing);
}
