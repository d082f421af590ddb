/*
 * Which server is asked: the first of a list that the configuration begins and every heartbeat's
 * answer renews.  One that does not answer goes to the end of it.
 */
#include "server/nomad/part.h"

#include <string.h>

struct asked {
    struct nomad *nomad; /* NULL: it has ended meanwhile */
    char server[NOMAD_ADDRESS_SIZE];
    const char *method;
    bool of_other; /* a refusal is his */
    nomad_reply_cb *cb;
    void *ctx;
    struct asked *next, **link;
};

static void pass_over(struct nomad *nomad, const char *server)
{
    char first[NOMAD_ADDRESS_SIZE];

    if (!text_equal(nomad->servers[0], server) || nomad->servers_count < 2)
        return; /* somebody else has seen it before */
    memcpy(first, nomad->servers[0], sizeof(first));
    memmove(nomad->servers[0], nomad->servers[1],
            (nomad->servers_count - 1) * sizeof(nomad->servers[0]));
    memcpy(nomad->servers[nomad->servers_count - 1], first, sizeof(first));
}

/* Said once, until something succeeds: a server may be away for days. */
static void fail(struct nomad *nomad, const struct asked *asked, const struct err *err)
{
    if (nomad->trouble[0] == '\0' || err->code == ERR_REFUSED)
        say(&nomad->config.say, SAY_WARN, "server", "a call fails server=%s method=%s error=%s",
            text_value(asked->server), asked->method, text_value(err->text));
    (void)text_format(nomad->trouble, sizeof(nomad->trouble), "%s: %s", asked->server,
                      err->text); /* may be cut */
    pass_over(nomad, asked->server);
}

static void succeed(struct nomad *nomad, const struct asked *asked)
{
    if (nomad->trouble[0] != '\0')
        say(&nomad->config.say, SAY_INFO, "server", "calls are answered again server=%s",
            text_value(asked->server));
    nomad->trouble[0] = '\0';
}

/* The server has answered as it should, of a volume, or of a service, an alloc or somebody's token
 * that is gone already: the rest is up to who has asked. */
static bool is_an_answer(const struct asked *asked, const struct err *err)
{
    return policy_is_withdrawn(err->code, err->text) ||
           (asked->of_other && err->code == ERR_REFUSED) ||
           (text_equal(asked->method, "Alloc.GetAlloc") &&
            policy_awaits_in_vain(err->code, err->text)) ||
           (text_starts_with(asked->method, "CSIVolume.") &&
            policy_claim_trouble(err->code, err->text) != CLAIM_TROUBLE_SERVERS);
}

static void unlink_asked(struct asked *asked)
{
    if (asked->link == NULL)
        return;
    *asked->link = asked->next;
    if (asked->next != NULL)
        asked->next->link = asked->link;
    asked->link = NULL;
}

static void on_reply(void *ctx, const json_t *reply, const struct err *err)
{
    struct asked *asked = ctx;
    struct nomad *nomad = asked->nomad;
    nomad_reply_cb *cb = asked->cb;
    void *cb_ctx = asked->ctx;

    unlink_asked(asked);
    if (nomad != NULL && reply == NULL && !is_an_answer(asked, err))
        fail(nomad, asked, err);
    else if (nomad != NULL)
        succeed(nomad, asked);
    free(asked);
    if (nomad == NULL)
        return;
    cb(cb_ctx, reply, err);
    nomad->heard(nomad);
}

/* TOKEN is whose call it is; OF_OTHER: not this node's. */
static void call(struct nomad *nomad, const char *method, json_t *args, const char *token,
                 bool of_other, uint64_t timeout_ms, nomad_reply_cb *cb, void *ctx)
{
    struct asked *asked = calloc(1, sizeof(*asked));

    check(asked != NULL);
    check(args != NULL);
    asked->nomad = nomad;
    asked->of_other = of_other;
    asked->cb = cb;
    asked->ctx = ctx;
    asked->method = method;
    asked->next = nomad->asked;
    asked->link = &nomad->asked;
    if (asked->next != NULL)
        asked->next->link = &asked->next;
    nomad->asked = asked;
    memcpy(asked->server, nomad->servers[0], sizeof(asked->server));
    check(json_object_set_new(args, "Region", json_string(nomad->config.region)) == 0);
    check(json_object_set_new(args, "AuthToken", json_stringn(token, strlen(token))) == 0);
    nomad->config.call(nomad->config.ctx, asked->server, method, args, timeout_ms, on_reply, asked);
    json_decref(args);
}

void servers_call(struct nomad *nomad, const char *method, json_t *args, bool as_stranger,
                  uint64_t timeout_ms, nomad_reply_cb *cb, void *ctx)
{
    call(nomad, method, args, as_stranger ? "" : nomad->config.secret, false, timeout_ms, cb, ctx);
}

void nomad_ask(struct nomad *nomad, const char *method, json_t *args, const char *token,
               uint64_t wait_ms, nomad_reply_cb *cb, void *ctx)
{
    call(nomad, method, args, token, true, wait_ms + NOMAD_CALL_MS, cb, ctx);
}

void servers_abandon(struct nomad *nomad, const char *method)
{
    struct asked *next;
    struct err err = {0};

    (void)err_set(&err, ERR_AGAIN, "another server is asked");
    for (struct asked *asked = nomad->asked; asked != NULL; asked = next) {
        next = asked->next;
        if (!text_equal(asked->method, method) || text_equal(asked->server, nomad->servers[0]))
            continue;
        unlink_asked(asked);
        asked->nomad = NULL; /* its answer is not looked at any more */
        asked->cb(asked->ctx, NULL, &err);
    }
}

/* --- the list --- */

static bool is_known(const struct nomad *nomad, const char *address)
{
    size_t i = 0;

    while (i < nomad->servers_count && !text_equal(nomad->servers[i], address))
        i++;
    return i < nomad->servers_count;
}

static const char *address_of(const json_t *server)
{
    const char *address = json_string_value(json_object_get(server, "RPCAdvertiseAddr"));

    return address != NULL && address[0] != '\0' && strlen(address) < NOMAD_ADDRESS_SIZE ? address
                                                                                         : NULL;
}

/* True if LIST says nothing new. */
static bool is_same(const struct nomad *nomad, const json_t *list)
{
    const json_t *server;
    size_t i, count = 0;

    json_array_foreach(list, i, server)
    {
        const char *address = address_of(server);
        if (address != NULL && !is_known(nomad, address))
            return false;
        count += address != NULL;
    }
    return count == nomad->servers_count;
}

void servers_learn(struct nomad *nomad, const json_t *list)
{
    char before[NOMAD_ADDRESS_SIZE];
    const json_t *server;
    size_t i, first = 0, count = 0;

    if (json_array_size(list) == 0 || is_same(nomad, list))
        return;
    memcpy(before, nomad->servers[0], sizeof(before));
    json_array_foreach(list, i, server)
    {
        const char *address = address_of(server);
        if (address == NULL || count == NOMAD_SERVERS_MAX)
            continue;
        if (text_equal(address, before))
            first = count;
        (void)text_copy(nomad->servers[count++], NOMAD_ADDRESS_SIZE, address); /* it fits */
    }
    nomad->servers_count = count > 0 ? count : nomad->servers_count;
    char other[NOMAD_ADDRESS_SIZE];
    memcpy(other, nomad->servers[0], sizeof(other));
    memcpy(nomad->servers[0], nomad->servers[first], sizeof(other));
    memcpy(nomad->servers[first], other, sizeof(other));
    say(&nomad->config.say, SAY_INFO, "server", "servers are known count=%zu first=%s",
        nomad->servers_count, text_value(nomad->servers[0]));
}

/* PLACE is asked next; what there is no room for is the one that was to be asked last. */
static void ask_first(struct nomad *nomad, const char *place)
{
    size_t kept =
        nomad->servers_count < NOMAD_SERVERS_MAX ? nomad->servers_count : NOMAD_SERVERS_MAX - 1;

    memmove(nomad->servers[1], nomad->servers[0], kept * sizeof(nomad->servers[0]));
    check(text_copy(nomad->servers[0], NOMAD_ADDRESS_SIZE, place));
    nomad->servers_count = kept + 1;
}

bool servers_add(struct nomad *nomad, const char (*places)[NOMAD_ADDRESS_SIZE], size_t count)
{
    bool found = false;

    for (size_t i = count; i-- > 0;) { /* the first one is asked first */
        if (is_known(nomad, places[i]))
            continue;
        ask_first(nomad, places[i]);
        found = true;
    }
    if (!found)
        return false;
    say(&nomad->config.say, SAY_INFO, "server", "servers are found count=%zu first=%s",
        nomad->servers_count, text_value(nomad->servers[0]));
    return true;
}

void servers_set(struct nomad *nomad, const char (*places)[NOMAD_ADDRESS_SIZE], size_t count)
{
    check(count > 0 && count <= NOMAD_SERVERS_MAX);
    memcpy(nomad->servers, places, count * NOMAD_ADDRESS_SIZE);
    nomad->servers_count = count;
    say(&nomad->config.say, SAY_INFO, "server", "servers are said count=%zu first=%s", count,
        text_value(nomad->servers[0]));
}

void servers_end(struct nomad *nomad)
{
    for (struct asked *asked = nomad->asked; asked != NULL; asked = asked->next) {
        asked->nomad = NULL;
        asked->link = NULL;
    }
    nomad->asked = NULL;
}
