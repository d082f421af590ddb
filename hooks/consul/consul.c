/* Rounds: what the agent of Consul has is read, compared with what is wanted, and made so. */
#include "hooks/consul/part.h"

#include "base/list.h"
#include "io/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

enum {
    BEATS_MAX = 256, /* under way; another comes an interval later */
    BEAT_AGAIN_MS = 1000,
};

/* What is wanted under one id, or is not any more. */
struct want {
    char *id;    /* owned */
    char *token; /* by which it is registered, and that is undone; owned, a secret; NULL: the
                  * daemon's */
    json_t *registration; /* NULL: it is withdrawn, until the agent is known not to have it */
    bool read;            /* that was compared with what the agent has in this round */
    bool tags_new; /* its tags are others than before: they are told, whoever may override them */
    UT_hash_handle hh;
};

/* One call of a round, to be made. */
struct call {
    char *id; /* owned */
    bool registers;
};

/* What a TTL check has found, on its way. */
struct beat {
    struct consul *consul;
    char path[256];
    json_t *body;
    bool again; /* it is told for the second time */
    struct http_request *request;
    struct io_timer timer;
    struct beat *next, **link;
};

enum step { STEP_NONE, STEP_SELF, STEP_SERVICES, STEP_CHECKS, STEP_CALLS };

struct consul {
    const struct consul_config *config;
    uint64_t began_ms;
    struct want *wants; /* by id */
    struct beat *beats;
    size_t beats_count;

    enum step step;
    struct http_request *request; /* of the round; NULL: none is under way */
    struct io_timer timer;        /* of the next round */
    bool known, reached;          /* who it is; it has answered last */
    bool asks_self;               /* this round asks that, too: the agent may be a newer one */
    bool dirty;                   /* something is wanted otherwise than at the last reading */
    bool is_poll;                 /* this round only reads checks */
    bool failed;                  /* a call of this round was refused */
    unsigned failures;            /* rounds in a row */
    uint64_t sync_at_ms;          /* the next round that is more than a poll */
    json_t *services, *checks;    /* as they were read; NULL: not yet */
    struct {
        struct call *items;
        size_t count, size;
    } calls;
    size_t next_call;
};

static void begin_round(struct consul *consul);
static void next_step(struct consul *consul);

/* --- one request --- */

static void ask(struct consul *consul, const char *method, const char *path, const json_t *body,
                void (*cb)(void *ctx, const struct http_reply *reply), void *ctx,
                struct http_request **ret_request)
{
    const struct consul_request call = {
        .method = method, .path = path, .token = consul->config->token, .body = body};

    consul_send(consul->config, &call, cb, ctx, ret_request);
}

/* --- the end of a round --- */

static void due(struct io_timer *timer)
{
    begin_round(timer->ctx);
}

static void drop_calls(struct consul *consul)
{
    for (size_t i = 0; i < consul->calls.count; i++)
        free(consul->calls.items[i].id);
    consul->calls.count = consul->next_call = 0;
    list_release(&consul->calls);
}

static void forget_token(struct want *want)
{
    if (want->token != NULL)
        explicit_bzero(want->token, strlen(want->token));
    free(want->token);
    want->token = NULL;
}

static void drop_want(struct consul *consul, struct want *want)
{
    HASH_DEL(consul->wants, want);
    forget_token(want);
    json_decref(want->registration);
    free(want->id);
    free(want);
}

/* All that was to be taken away is. */
static void drop_withdrawn(struct consul *consul)
{
    struct want *want, *next;

    HASH_ITER(hh, consul->wants, want, next)
    {
        if (want->registration == NULL && want->read)
            drop_want(consul, want);
    }
}

static void end_round(struct consul *consul)
{
    const struct consul_config *config = consul->config;
    uint64_t now_ms = loop_now_ms(), after_ms;

    json_decref(consul->services);
    json_decref(consul->checks);
    consul->services = consul->checks = NULL;
    drop_calls(consul);
    if (!consul->failed && !consul->is_poll)
        drop_withdrawn(consul);
    consul->step = STEP_NONE;
    consul->failures = consul->failed ? consul->failures + 1 : 0;
    after_ms = policy_consul_after_ms(consul->failures, config->watched(config->ctx));
    if (!consul->failed && !consul->is_poll)
        consul->sync_at_ms = now_ms + policy_consul_after_ms(0, false);
    if (consul->failed)
        consul->sync_at_ms = now_ms + after_ms; /* all of it */
    else if (consul->dirty)
        after_ms = 0;
    if (now_ms + after_ms > consul->sync_at_ms)
        after_ms = consul->sync_at_ms > now_ms ? consul->sync_at_ms - now_ms : 0;
    io_timer_start(config->loop, &consul->timer, now_ms + after_ms, due, consul);
}

/* The agent cannot be asked: nothing more of this round. */
static void give_up(struct consul *consul, const char *what, const char *why)
{
    if (consul->reached || consul->failures == 0)
        log_warn("consul", "cannot be asked %s error=%s", what, log_value(why));
    consul->reached = consul->known = false;
    consul->failed = true;
    end_round(consul);
}

/* One call was refused; the others are made all the same. */
static void refuse(struct consul *consul, const char *what, const char *id, const char *why)
{
    consul->failed = true;
    if (consul->failures % 10 == 0)
        log_warn("consul", "refuses %s id=%s error=%s", what, log_value(id), log_value(why));
}

/* --- reading --- */

static void on_read(void *ctx, const struct http_reply *reply)
{
    static const char *const what[] = {
        [STEP_SELF] = "who it is",
        [STEP_SERVICES] = "for its services",
        [STEP_CHECKS] = "for its checks",
    };
    struct consul *consul = ctx;
    char why[ERR_TEXT_SIZE] = "its answer is no JSON object";
    json_t *value = NULL;

    consul->request = NULL;
    if (reply->error.code == ERR_CANCELED)
        return; /* by consul_free */
    if (!consul_failed(reply, why, sizeof(why)))
        value = json_loadb(reply->body, reply->body_length, 0, NULL);
    if (!json_is_object(value)) {
        json_decref(value);
        give_up(consul, what[consul->step], why);
        return;
    }
    if (consul->step == STEP_SERVICES)
        consul->services = value;
    else if (consul->step == STEP_CHECKS)
        consul->checks = value;
    else {
        const struct consul_config *config = consul->config;
        char values[CONSUL_ATTRIBUTES_MAX][CONSUL_ATTRIBUTE_SIZE];
        struct spec_pair pairs[CONSUL_ATTRIBUTES_MAX];
        struct spec_pairs attributes = {.items = pairs};

        consul->known = consul_read_self(value, text_starts_with(config->url, "https:"), values,
                                         pairs, &attributes.count);
        if (!consul->known) {
            json_decref(value);
            give_up(consul, what[STEP_SELF], "it says no version: it is no agent of Consul");
            return;
        }
        consul->asks_self = false;
        config->found(config->ctx, &attributes, consul_envoy_of(value));
        json_decref(value);
    }
    if (!consul->reached && consul->step == STEP_SELF)
        log_info("consul", "is there url=%s", log_value(consul->config->url));
    consul->reached = true;
    next_step(consul);
}

/* --- what is to be done --- */

static void consider(struct consul *consul, const char *id, const struct want *want,
                     const json_t *there)
{
    const struct consul_config *config = consul->config;
    char alloc[UUID_TEXT_SIZE];
    bool has_alloc = consul_alloc_of(id, alloc);
    bool is_api = text_starts_with(id, CONSUL_API_PREFIX);
    bool wanted = want != NULL && want->registration != NULL;
    struct consul_entry entry = {
        .wanted = wanted,
        .there = there != NULL,
        .same =
            wanted && there != NULL &&
            consul_is_same(want->registration, consul->services, consul->checks, want->tags_new),
        .ours = (has_alloc || is_api) && consul_is_ours(there, config->node_id),
        .known = want != NULL || is_api || (has_alloc && config->knows(config->ctx, alloc)),
        .of_another = text_ends_with(id, CONSUL_SIDECAR),
    };
    enum consul_call what = policy_consul_call(&entry, loop_now_ms() - consul->began_ms);

    if (what == CONSUL_LEAVE)
        return;
    char *copy = strdup(id);
    check(copy != NULL);
    *list_more(&consul->calls) = (struct call){copy, what == CONSUL_REGISTER};
}

static void compare(struct consul *consul)
{
    struct want *want, *next;
    const char *id;
    json_t *there;

    consul->dirty = false;
    json_object_foreach(consul->services, id, there)
    {
        HASH_FIND_STR(consul->wants, id, want);
        if (want == NULL)
            consider(consul, id, NULL, there);
    }
    HASH_ITER(hh, consul->wants, want, next)
    {
        want->read = true;
        consider(consul, want->id, want, json_object_get(consul->services, want->id));
    }
}

/* Those of others mean nothing to whoever hears them. */
static void tell_checks(struct consul *consul)
{
    const struct consul_config *config = consul->config;
    char alloc[UUID_TEXT_SIZE];
    const char *id;
    json_t *one;

    json_object_foreach(consul->checks, id, one)
    {
        const char *service = json_string_value(json_object_get(one, "ServiceID"));

        if (service != NULL && text_starts_with(id, CONSUL_CHECK_PREFIX) &&
            consul_alloc_of(service, alloc))
            config->checked(config->ctx, alloc, id + strlen(CONSUL_CHECK_PREFIX),
                            consul_status_of(one));
    }
}

/* --- doing it --- */

static void on_called(void *ctx, const struct http_reply *reply)
{
    struct consul *consul = ctx;
    const struct call *call = &consul->calls.items[consul->next_call - 1];
    struct want *want;
    char why[ERR_TEXT_SIZE];

    consul->request = NULL;
    if (reply->error.code == ERR_CANCELED)
        return; /* by consul_free */
    if (reply->status == 0) {
        give_up(consul, "to change its services", reply->error.text);
        return;
    }
    bool failed = consul_failed(reply, why, sizeof(why));
    if (failed && !call->registers && strstr(why, "Unknown service ID") != NULL)
        failed = false; /* it is gone already */
    if (failed)
        refuse(consul, call->registers ? "a registration" : "a deregistration", call->id, why);
    HASH_FIND_STR(consul->wants, call->id, want);
    if (failed && !call->registers && want != NULL)
        forget_token(want); /* which may have been given back */
    if (!failed && call->registers && want != NULL && want->read)
        want->tags_new = false;
    log_debug("consul", "%s id=%s", call->registers ? "registered" : "deregistered",
              log_value(call->id));
    next_step(consul);
}

static void make_call(struct consul *consul)
{
    const struct call *call = &consul->calls.items[consul->next_call++];
    char path[CONSUL_URL_SIZE - 128];
    struct want *want;
    json_t *body = NULL, *there = json_object_get(consul->services, call->id);

    HASH_FIND_STR(consul->wants, call->id, want);
    if (call->registers != (want != NULL && want->registration != NULL)) {
        next_step(consul); /* it has changed meanwhile: the next round is to come */
        return;
    }
    if (call->registers) {
        (void)text_format(path, sizeof(path), "/v1/agent/service/register%s",
                          there == NULL ? "" : "?replace-existing-checks=true"); /* fits */
        body = consul_merge(want->registration, there, want->tags_new);
    } else if (!text_copy(path, sizeof(path), "/v1/agent/service/deregister/") ||
               !consul_escape(path, sizeof(path), call->id)) {
        refuse(consul, "a deregistration", call->id, "its id is too long");
        next_step(consul);
        return;
    }
    const struct consul_request order = {
        .method = "PUT",
        .path = path,
        .token = want != NULL && want->token != NULL ? want->token : consul->config->token,
        .body = body};
    consul_send(consul->config, &order, on_called, consul, &consul->request);
    json_decref(body);
}

static void read_next(struct consul *consul, enum step step, const char *path)
{
    consul->step = step;
    ask(consul, "GET", path, NULL, on_read, consul, &consul->request);
}

static void next_step(struct consul *consul)
{
    if (consul->asks_self) {
        read_next(consul, STEP_SELF, "/v1/agent/self");
    } else if (consul->services == NULL && !consul->is_poll) {
        read_next(consul, STEP_SERVICES, "/v1/agent/services");
    } else if (consul->checks == NULL) {
        read_next(consul, STEP_CHECKS, "/v1/agent/checks");
    } else {
        if (consul->step != STEP_CALLS) {
            consul->step = STEP_CALLS;
            tell_checks(consul);
            if (!consul->is_poll)
                compare(consul);
        }
        if (consul->next_call < consul->calls.count)
            make_call(consul);
        else
            end_round(consul);
    }
}

static void begin_round(struct consul *consul)
{
    check(consul->step == STEP_NONE);
    consul->failed = false;
    consul->asks_self = !consul->known || loop_now_ms() >= consul->sync_at_ms;
    consul->is_poll = !consul->asks_self && !consul->dirty;
    next_step(consul);
}

static void wake(struct consul *consul)
{
    consul->dirty = true;
    if (consul->step == STEP_NONE && consul->failures == 0)
        io_timer_start(consul->config->loop, &consul->timer, loop_now_ms(), due, consul);
}

/* --- the door --- */

struct consul *consul_new(const struct consul_config *config)
{
    struct consul *consul = calloc(1, sizeof(*consul));

    check(consul != NULL);
    consul->config = config;
    consul->began_ms = loop_now_ms();
    io_timer_start(config->loop, &consul->timer, consul->began_ms, due, consul);
    return consul;
}

void consul_want(struct consul *consul, json_t *registration, const char *token)
{
    const char *id = json_string_value(json_object_get(registration, "ID"));
    struct want *want;

    check(id != NULL);
    HASH_FIND_STR(consul->wants, id, want);
    if (want == NULL) {
        want = calloc(1, sizeof(*want));
        check(want != NULL);
        want->id = strdup(id);
        check(want->id != NULL);
        HASH_ADD_KEYPTR(hh, consul->wants, want->id, strlen(want->id), want);
    } else if (want->registration != NULL &&
               !json_equal(json_object_get(want->registration, "Tags"),
                           json_object_get(registration, "Tags"))) {
        want->tags_new = true;
    }
    forget_token(want);
    if (token != NULL) {
        want->token = strdup(token);
        check(want->token != NULL);
    }
    json_incref(registration);
    json_decref(want->registration);
    want->registration = registration;
    want->read = false;
    wake(consul);
}

void consul_drop(struct consul *consul, const char *id)
{
    struct want *want;

    HASH_FIND_STR(consul->wants, id, want);
    if (want == NULL)
        return;
    json_decref(want->registration);
    want->registration = NULL;
    want->read = false;
    wake(consul);
}

bool consul_is_reached(const struct consul *consul)
{
    return consul->reached;
}

static void end_beat(struct beat *beat)
{
    io_timer_stop(&beat->timer);
    *beat->link = beat->next;
    if (beat->next != NULL)
        beat->next->link = beat->link;
    beat->consul->beats_count--;
    json_decref(beat->body);
    free(beat);
}

static void on_beat(void *ctx, const struct http_reply *reply);

static void tell_again(struct io_timer *timer)
{
    struct beat *beat = timer->ctx;

    beat->again = true;
    ask(beat->consul, "PUT", beat->path, beat->body, on_beat, beat, &beat->request);
}

/* A check that has only just begun may not be registered yet. */
static void on_beat(void *ctx, const struct http_reply *reply)
{
    struct beat *beat = ctx;

    beat->request = NULL;
    if (reply->error.code != ERR_CANCELED && reply->status != 200 && !beat->again)
        io_timer_start(beat->consul->config->loop, &beat->timer, loop_now_ms() + BEAT_AGAIN_MS,
                       tell_again, beat);
    else
        end_beat(beat);
}

void consul_beat(struct consul *consul, const char *id, enum consul_status status,
                 const char *output)
{
    static const char *const words[] = {
        [CONSUL_PASSING] = "passing",
        [CONSUL_WARNING] = "warning",
        [CONSUL_CRITICAL] = "critical",
    };
    struct beat *beat;

    if (!consul->reached || consul->beats_count == BEATS_MAX)
        return;
    beat = calloc(1, sizeof(*beat));
    check(beat != NULL);
    *beat = (struct beat){.consul = consul, .next = consul->beats, .link = &consul->beats};
    if (beat->next != NULL)
        beat->next->link = &beat->next;
    consul->beats = beat;
    consul->beats_count++;
    beat->body = json_pack("{s:s, s:s}", "Status", words[status], "Output", output);
    check(beat->body != NULL &&
          text_format(beat->path, sizeof(beat->path),
                      "/v1/agent/check/update/" CONSUL_CHECK_PREFIX "%s", id)); /* a digest */
    ask(consul, "PUT", beat->path, beat->body, on_beat, beat, &beat->request);
}

static void cut_beat(struct beat *beat)
{
    if (beat->request != NULL)
        http_cancel(beat->request);
    else
        end_beat(beat);
}

void consul_free(struct consul *consul)
{
    struct want *want, *next;

    if (consul == NULL)
        return;
    if (consul->request != NULL)
        http_cancel(consul->request);
    while (consul->beats != NULL)
        cut_beat(consul->beats);
    io_timer_stop(&consul->timer);
    json_decref(consul->services);
    json_decref(consul->checks);
    drop_calls(consul);
    HASH_ITER(hh, consul->wants, want, next)
    {
        drop_want(consul, want);
    }
    free(consul);
}
