/*
 * The session: the node registers, and keeps telling that it is there.
 *
 *     state        event      next         does
 *
 * A heartbeat that fails is tried again until the servers say that they do not know the node; what
 * runs here is left alone meanwhile.
 */
#include "server/nomad/part.h"

#include <string.h>

enum { NEW_MS = 10 * 1000 /* in which a node finds out what it has */ };

enum session_event {
    SESSION_DUE,      /* its time has come */
    SESSION_CHANGED,  /* so has that of telling that the node is something else */
    SESSION_FOUND,    /* there are servers that were not asked yet */
    SESSION_ACCEPTED, /* the answer is good */
    SESSION_UNKNOWN,  /* they do not know this node (NODE_TROUBLE_UNKNOWN) */
    SESSION_DENIED,
    SESSION_FAILED, /* there is no answer, or another refusal */
};

enum session_deed {
    DO_REGISTER,
    DO_BEAT,
    DO_BEAT_SOON,      /* who is known is not ready yet */
    DO_REST,           /* until the time is over that they gave */
    DO_REGISTER_AGAIN, /* later */
    DO_REGISTER_SOON,
    DO_BEAT_AGAIN, /* later */
};

static const struct session_row {
    enum session_state state;
    enum session_event event;
    enum session_state next;
    enum session_deed deed;
} rows[] = {
    {SESSION_AWAY, SESSION_DUE, SESSION_REGISTERING, DO_REGISTER},
    {SESSION_AWAY, SESSION_FOUND, SESSION_AWAY, DO_REGISTER_SOON},
    {SESSION_AWAY, SESSION_UNKNOWN, SESSION_AWAY, DO_REGISTER_SOON},
    {SESSION_REGISTERING, SESSION_ACCEPTED, SESSION_HERE, DO_BEAT_SOON},
    {SESSION_REGISTERING, SESSION_UNKNOWN, SESSION_AWAY, DO_REGISTER_AGAIN},
    {SESSION_REGISTERING, SESSION_DENIED, SESSION_AWAY, DO_REGISTER_AGAIN},
    {SESSION_REGISTERING, SESSION_FAILED, SESSION_AWAY, DO_REGISTER_AGAIN},
    {SESSION_HERE, SESSION_DUE, SESSION_BEATING, DO_BEAT},
    {SESSION_HERE, SESSION_CHANGED, SESSION_REGISTERING, DO_REGISTER},
    {SESSION_HERE, SESSION_FOUND, SESSION_HERE, DO_BEAT_SOON},
    {SESSION_HERE, SESSION_UNKNOWN, SESSION_AWAY, DO_REGISTER_SOON},
    {SESSION_BEATING, SESSION_ACCEPTED, SESSION_HERE, DO_REST},
    {SESSION_BEATING, SESSION_UNKNOWN, SESSION_AWAY, DO_REGISTER_SOON},
    {SESSION_BEATING, SESSION_DENIED, SESSION_AWAY, DO_REGISTER_AGAIN},
    {SESSION_BEATING, SESSION_FAILED, SESSION_HERE, DO_BEAT_AGAIN},
};

static void step(struct nomad *nomad, enum session_event event);

/* --- answers --- */

/* What both calls are answered with. */
static void take_answer(struct nomad *nomad, const json_t *reply)
{
    const json_t *leader = json_object_get(reply, "LeaderRPCAddr");
    json_int_t ttl_ns = json_integer_value(json_object_get(reply, "HeartbeatTTL"));

    servers_learn(nomad, json_object_get(reply, "Servers"));
    nomad->beat.heard_ms = nomad_now_ms(nomad);
    nomad->beat.ttl_ms = policy_beat_every_ms(ttl_ns);
    nomad->beat.leaderless = json_is_string(leader) && json_string_length(leader) == 0;
    allocs_heard(nomad);
    awaiting_heard(nomad);
    facts_heard(nomad);
}

/* A call has failed; what that is. */
static enum session_event failed(struct nomad *nomad, const struct err *err)
{
    static const enum session_event events[] = {
        [NODE_TROUBLE_NONE] = SESSION_FAILED,
        [NODE_TROUBLE_UNKNOWN] = SESSION_UNKNOWN,
        [NODE_TROUBLE_DENIED] = SESSION_DENIED,
    };

    nomad->tries++;
    if (nomad->config.seek != NULL && policy_seeks_servers(nomad->tries, nomad->servers_count))
        nomad->config.seek(nomad->config.ctx);
    return events[policy_node_trouble(err->code, err->text)];
}

static void registered(void *ctx, const json_t *reply, const struct err *err)
{
    struct nomad *nomad = ctx;

    if (reply == NULL) {
        step(nomad, failed(nomad, err));
        return;
    }
    if (!nomad->registered)
        say(&nomad->config.say, SAY_INFO, "server", "this node is registered server=%s",
            text_value(nomad->servers[0]));
    nomad->registered = true;
    take_answer(nomad, reply);
    step(nomad, SESSION_ACCEPTED);
}

static void beaten(void *ctx, const json_t *reply, const struct err *err)
{
    struct nomad *nomad = ctx;

    if (reply == NULL) {
        allocs_elsewhere(nomad);
        awaiting_elsewhere(nomad);
        step(nomad, failed(nomad, err));
        return;
    }
    /* They had taken it for something else than ready: what runs here is told again. */
    if (json_integer_value(json_object_get(reply, "Index")) > 0) {
        status_all(nomad);
        offers_all(nomad);
    }
    nomad->tries = 0;
    take_answer(nomad, reply);
    step(nomad, SESSION_ACCEPTED);
}

/* --- calls --- */

static json_t *described(const struct nomad *nomad, uint64_t *ret_digest)
{
    json_t *node = nomad->config.describe_node(nomad->config.ctx);

    *ret_digest = nomad_digest(node);
    check(json_object_set_new(node, "SecretID", json_string(nomad->config.secret)) == 0);
    check(json_object_set_new(node, "Status",
                              json_string(nomad->registered ? "ready" : "initializing")) == 0);
    return node;
}

static void call_register(struct nomad *nomad)
{
    json_t *args =
        json_pack("{s:o, s:n}", "Node", described(nomad, &nomad->node_told), "NodeEvent");

    check(args != NULL);
    nomad->change_at_ms = 0;
    servers_call(nomad, "Node.Register", args, true, NOMAD_CALL_MS, registered, nomad);
}

static void call_beat(struct nomad *nomad)
{
    json_t *args = json_pack("{s:s, s:s, s:n, s:i}", "NodeID", nomad->config.node_id, "Status",
                             "ready", "NodeEvent", "UpdatedAt", 0);

    check(args != NULL);
    servers_call(nomad, "Node.UpdateStatus", args, false, policy_beat_limit_ms(&nomad->beat),
                 beaten, nomad);
}

/* --- steps --- */

static void in_ms(struct nomad *nomad, uint64_t wait_ms)
{
    nomad->session_at_ms = nomad_now_ms(nomad) + wait_ms;
}

static void perform(struct nomad *nomad, enum session_deed deed)
{
    uint64_t draw = nomad->config.random(nomad->config.ctx);

    nomad->session_at_ms = 0;
    switch (deed) {
    case DO_REGISTER:
        call_register(nomad);
        break;
    case DO_BEAT:
        call_beat(nomad);
        break;
    case DO_REST:
        in_ms(nomad, nomad->beat.ttl_ms);
        break;
    case DO_BEAT_SOON:
    case DO_REGISTER_SOON:
        in_ms(nomad, 0);
        break;
    case DO_REGISTER_AGAIN:
        in_ms(nomad, policy_register_again_ms(nomad->tries, draw));
        break;
    case DO_BEAT_AGAIN:
        in_ms(nomad, policy_beat_again_ms(&nomad->beat, nomad_now_ms(nomad), draw));
        break;
    }
}

static void step(struct nomad *nomad, enum session_event event)
{
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (rows[i].state != nomad->session || rows[i].event != event)
            continue;
        nomad->session = rows[i].next;
        nomad->registered &= rows[i].next != SESSION_AWAY;
        perform(nomad, rows[i].deed);
        return;
    }
}

void registration_found(struct nomad *nomad)
{
    step(nomad, SESSION_FOUND);
}

void nomad_node_changed(struct nomad *nomad)
{
    bool is_new = nomad != NULL && nomad_now_ms(nomad) - nomad->began_ms < NEW_MS;

    if (nomad != NULL && nomad->started && nomad->change_at_ms == 0)
        nomad->change_at_ms = nomad_now_ms(nomad) +
                              policy_tell_node_ms(is_new, nomad->config.random(nomad->config.ctx));
}

/* Much of what could have changed has not. */
static bool is_other(const struct nomad *nomad)
{
    uint64_t digest;

    json_decref(described(nomad, &digest));
    return digest != nomad->node_told;
}

void registration_wake(struct nomad *nomad)
{
    uint64_t now_ms = nomad_now_ms(nomad);

    if (nomad->is_unknown)
        step(nomad, SESSION_UNKNOWN);
    nomad->is_unknown = false;
    if (nomad->session == SESSION_HERE && nomad->beats_soon)
        in_ms(nomad, 0);
    nomad->beats_soon = false;
    if (nomad->session == SESSION_HERE && nomad->change_at_ms != 0 &&
        nomad->change_at_ms <= now_ms) {
        nomad->change_at_ms = 0;
        if (is_other(nomad))
            step(nomad, SESSION_CHANGED);
    }
    if (nomad->session_at_ms != 0 && nomad->session_at_ms <= now_ms)
        step(nomad, SESSION_DUE);
}
