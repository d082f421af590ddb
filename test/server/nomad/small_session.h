/*
 * A session with servers over a small life: the calls that it makes wait until a test answers them,
 * and time passes as the test says.
 */
#ifndef CAIRN_TEST_SERVER_NOMAD_SMALL_SESSION_H
#define CAIRN_TEST_SERVER_NOMAD_SMALL_SESSION_H

#include "test/server/small_life.h"

#include "server/nomad/nomad.h"

enum { CALLS_MAX = 128 };

static const char one[] = "11111111-1111-4111-8111-111111111111";
static const char two[] = "22222222-2222-4222-8222-222222222222";

/* A call that waits for its answer. */
struct waiting {
    char server[64], method[64];
    uint64_t timeout_ms;
    json_t *args;
    nomad_reply_cb *cb;
    void *ctx;
};

struct small_session {
    struct small_life *small;
    struct nomad *nomad;
    struct waiting calls[CALLS_MAX];
    size_t calls_count;
    uint64_t wake_at_ms;
    const char *node_name, *alloc_word;
    size_t servers_count;           /* of the configuration */
    unsigned seeks;                 /* for others */
    int64_t event_at, events_heard; /* of the node's only event, 0: it has none */
};

/* --- what it is handed --- */

static inline void on_call(void *ctx, const char *server, const char *method, const json_t *args,
                           uint64_t timeout_ms, nomad_reply_cb *cb, void *cb_ctx)
{
    struct small_session *session = ctx;
    struct waiting *call = &session->calls[session->calls_count];

    assert_true(session->calls_count++ < CALLS_MAX);
    assert_true(timeout_ms > 0);
    *call = (struct waiting){
        .timeout_ms = timeout_ms, .args = json_deep_copy(args), .cb = cb, .ctx = cb_ctx};
    assert_true(text_copy(call->server, sizeof(call->server), server));
    assert_true(text_copy(call->method, sizeof(call->method), method));
}

static inline void on_seek(void *ctx)
{
    ((struct small_session *)ctx)->seeks++;
}

static inline void on_arm(void *ctx, uint64_t at_ms)
{
    ((struct small_session *)ctx)->wake_at_ms = at_ms;
}

static inline uint64_t on_random(void *ctx)
{
    (void)ctx;
    return 0; /* nobody is spread */
}

static inline json_t *on_describe_node(void *ctx)
{
    return json_pack("{s:s, s:s}", "ID", "n", "Name", ((struct small_session *)ctx)->node_name);
}

static inline json_t *on_describe_alloc(void *ctx, const char *id)
{
    struct small_session *session = ctx;
    const struct alloc *alloc = core_alloc(life_core(session->small->life), id);

    return alloc == NULL ? NULL
                         : json_pack("{s:s, s:s, s:s}", "ID", id, "ClientStatus",
                                     client_status_name((enum client_status)alloc->client_status),
                                     "ClientDescription", session->alloc_word);
}

static inline json_t *on_unheard_events(void *ctx, int64_t *ret_until_unix_ns)
{
    struct small_session *session = ctx;

    *ret_until_unix_ns = session->event_at;
    return session->event_at > session->events_heard
               ? json_pack("[{s:I}]", "Timestamp", (json_int_t)session->event_at)
               : NULL;
}

static inline void on_events_heard(void *ctx, int64_t until_unix_ns)
{
    ((struct small_session *)ctx)->events_heard = until_unix_ns;
}

static inline void on_trace(void *ctx, const struct journal_event *event)
{
    nomad_note(((struct small_session *)ctx)->nomad, event);
}

static inline void begin(struct small_session *session)
{
    static const char *const servers[] = {"a:4647", "b:4647"};
    struct small_life *small = session->small;

    session->nomad = nomad_new(
        &(struct nomad_config){
            .life = small->life,
            .say = {small_line, small},
            .ctx = session,
            .call = on_call,
            .seek = on_seek,
            .arm = on_arm,
            .random = on_random,
            .region = "global",
            .node_id = "n",
            .secret = "s",
            .describe_node = on_describe_node,
            .describe_alloc = on_describe_alloc,
            .unheard_events = on_unheard_events,
            .events_heard = on_events_heard,
            .datacenter = "dc1",
            .plans = {.kill_timeout_max_ms = 30000,
                      .alloc = small_plan_alloc,
                      .task = small_plan_task,
                      .validate = small_validate},
        },
        servers, session->servers_count);
    small->trace = on_trace;
    small->trace_ctx = session;
    small->control = nomad_control(session->nomad);
    nomad_start(session->nomad);
}

static inline int open_session(void **state)
{
    struct small_session *session = calloc(1, sizeof(*session));
    void *small;

    assert_non_null(session);
    assert_int_equal(small_open(&small), 0);
    session->small = small;
    session->node_name = "node";
    session->alloc_word = "";
    session->servers_count = 2;
    session->small->joined = true;
    small_again(session->small);
    begin(session);
    *state = session;
    return 0;
}

static inline void forget_calls(struct small_session *session)
{
    for (size_t i = 0; i < session->calls_count; i++) {
        struct err err = {.code = ERR_CANCELED};
        session->calls[i].cb(session->calls[i].ctx, NULL, &err);
        json_decref(session->calls[i].args);
    }
    session->calls_count = 0;
}

static inline int close_session(void **state)
{
    struct small_session *session = *state;
    void *small = session->small;

    nomad_free(session->nomad);
    forget_calls(session);
    session->small->trace = NULL;
    free(session);
    return small_close(&small);
}

#define SESSION_TEST(function)                                                                     \
    cmocka_unit_test_setup_teardown(function, open_session, close_session)

/* --- time and answers --- */

/* Turns, and then whatever is due after MS more. */
static inline void pass(struct small_session *session, uint64_t ms)
{
    uint64_t until_ms = session->small->now_ms + ms;

    small_settle(session->small);
    nomad_settle(session->nomad);
    for (int rounds = 0; session->wake_at_ms != 0 && session->wake_at_ms <= until_ms; rounds++) {
        assert_in_range(rounds, 0, 1000);
        if (session->wake_at_ms > session->small->now_ms)
            session->small->now_ms = session->wake_at_ms;
        nomad_wake(session->nomad);
        small_settle(session->small);
        nomad_settle(session->nomad);
    }
    session->small->now_ms = until_ms;
}

/* The oldest call of METHOD that waits; NULL: there is none. */
static inline struct waiting *waits(struct small_session *session, const char *method)
{
    for (size_t i = 0; i < session->calls_count; i++) {
        if (text_equal(session->calls[i].method, method))
            return &session->calls[i];
    }
    return NULL;
}

/* What it was called with; to be freed. */
static inline json_t *take(struct small_session *session, const char *method,
                           struct waiting *ret_call)
{
    struct waiting *call = waits(session, method);

    if (call == NULL)
        fail_msg("%s was not called", method);
    *ret_call = *call;
    memmove(call, call + 1,
            (size_t)(&session->calls[session->calls_count] - (call + 1)) * sizeof(*call));
    session->calls_count--;
    return ret_call->args;
}

/* REPLY (moved); returns the arguments, to be freed. */
static inline json_t *answer(struct small_session *session, const char *method, json_t *reply)
{
    struct waiting call;
    json_t *args = take(session, method, &call);

    assert_non_null(reply);
    call.cb(call.ctx, reply, NULL);
    json_decref(reply);
    pass(session, 0);
    return args;
}

static inline void fail_call(struct small_session *session, const char *method, int code,
                             const char *text)
{
    struct waiting call;
    struct err err = {0};

    json_decref(take(session, method, &call));
    (void)err_set(&err, code, "%s", text);
    call.cb(call.ctx, NULL, &err);
    pass(session, 0);
}

static inline json_t *node_reply(int index)
{
    return json_pack("{s:I, s:i, s:s, s:[{s:s}, {s:s}]}", "HeartbeatTTL", (json_int_t)10000000000,
                     "Index", index, "LeaderRPCAddr", "a:4647", "Servers", "RPCAdvertiseAddr",
                     "a:4647", "RPCAdvertiseAddr", "b:4647");
}

/* Registered, and heard of once. */
static inline void join(struct small_session *session)
{
    pass(session, 10);
    json_decref(answer(session, "Node.Register", node_reply(1)));
    pass(session, 10);
    json_decref(answer(session, "Node.UpdateStatus", node_reply(0)));
}

/* The servers list ID with INDEX (0: nothing) under the answer's index AT. */
static inline void list(struct small_session *session, int at, const char *id, int index)
{
    json_t *allocs = json_object();

    if (index != 0)
        assert_int_equal(json_object_set_new(allocs, id, json_integer(index)), 0);
    pass(session, 10);
    json_decref(answer(session, "Node.GetClientAllocs",
                       json_pack("{s:i, s:o}", "Index", at, "Allocs", allocs)));
}

static inline json_t *alloc_json(const char *id, int index, const char *desired,
                                 const char *command)
{
    json_t *json = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:i,"
        " s:{s:s, s:s, s:s, s:s, s:i, s:[s], s:[{s:s, s:i, s:[{s:s, s:s, s:{s:s}}]}]},"
        " s:{s:{s:{s:{s:i}, s:{s:i}}}, s:{s:i}}}",
        "ID", id, "Namespace", "default", "EvalID", two, "Name", "j.g[0]", "NodeID", "n", "JobID",
        "j", "TaskGroup", "g", "DesiredStatus", desired, "ClientStatus", "pending", "CreateIndex",
        5, "ModifyIndex", index, "AllocModifyIndex", index, "Job", "ID", "j", "Name", "j",
        "Namespace", "default", "Type", "service", "Version", 0, "Datacenters", "dc1", "TaskGroups",
        "Name", "g", "Count", 1, "Tasks", "Name", "web", "Driver", "raw_exec", "Config", "command",
        command, "AllocatedResources", "Tasks", "web", "Cpu", "CpuShares", 100, "Memory",
        "MemoryMB", 64, "Shared", "DiskMB", 10);

    assert_non_null(json);
    return json;
}

static inline void give(struct small_session *session, json_t *alloc)
{
    pass(session, 10);
    json_decref(
        answer(session, "Alloc.GetAllocs", json_pack("{s:i, s:[o]}", "Index", 9, "Allocs", alloc)));
    pass(session, 10);
}

/* Joined, with ONE running. */
static inline void run_one(struct small_session *session)
{
    join(session);
    list(session, 10, one, 6);
    give(session, alloc_json(one, 6, "run", "/bin/a"));
}

static inline const struct alloc *here(const struct small_session *session, const char *id)
{
    return core_alloc(life_core(session->small->life), id);
}

static inline const char *word_of(const json_t *json, const char *name)
{
    return json_string_value(json_object_get(json, name));
}

static inline void restart(struct small_session *session)
{
    nomad_free(session->nomad);
    forget_calls(session);
    session->small->trace = NULL;
    small_kill(session->small);
    small_begin(session->small);
    begin(session);
    small_settle(session->small);
}

#endif
