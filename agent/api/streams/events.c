/*
 * The stream of events: /v1/event/stream.
 *
 * A line of JSON for each change that a commit has made, and an empty object now and then.  Follows
 * nomad v1.1.2 command/agent/event_endpoint.go and nomad/state/events.go: topics Job, Allocation,
 * Evaluation, Deployment, Node and Service, with their payloads.  The last of them are kept
 * (past.h) from the first reader's coming until some minutes after the last has gone, so that one
 * who comes back and names an index misses nothing, or is told so; who never had a reader pays for
 * none of this. A reader that is too slow is let go: he asks again.
 */
#include "agent/api/format/format.h"
#include "agent/api/part.h"
#include "agent/api/streams/past.h"
#include "agent/services/catalogue.h"

#include "server/alone/alone.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SECRET_SIZE = 128,
    HEARTBEAT_MS = 10 * 1000,
    LINGER_MS = 5 * 60 * 1000, /* after the last reader */
    FILTERS_MAX = 32,
    QUEUE_MAX = 2 * PAST_BYTES_MAX, /* all that is kept fits */
};

static const char *const topics[TOPIC_COUNT] = {"Job",        "Allocation", "Evaluation",
                                                "Deployment", "Node",       "Service"};

struct filter {
    bool topics[TOPIC_COUNT];
    char key[SPEC_NAME_SIZE]; /* "": any */
};

struct api_subscriber {
    struct api_stream stream;
    struct api *api;
    struct http_exchange *exchange;
    struct io_timer heartbeat;
    char namespace[SPEC_NAMESPACE_SIZE];
    char secret[SECRET_SIZE]; /* of its token, "": none */
    struct filter filters[FILTERS_MAX];
    size_t filters_count; /* 0: everything */
    bool slow;            /* what is queued is the last */
    struct api_subscriber *next, **link;
};

/* --- who wants to know --- */

static bool has_key(const struct event *event, const char *key)
{
    bool found = text_equal(event->key, key);

    for (size_t i = 0; i < COUNT_OF(event->filter_keys); i++)
        found |= event->filter_keys[i] != NULL && text_equal(event->filter_keys[i], key);
    return found;
}

/* A token that goes, or whose policies change, is seen at the next event. */
static bool may_see(const struct api_subscriber *subscriber, enum topic topic,
                    const char *namespace)
{
    const struct acl_rights *rights = api_rights_of(subscriber->api, subscriber->secret);

    if (rights == NULL)
        return false;
    return topic == TOPIC_NODE ? acl_allows_area(rights, ACL_NODE, ACL_READ)
                               : acl_allows(rights, namespace, ACL_BIT(ACL_READ_JOB));
}

static bool wants(const struct api_subscriber *subscriber, const struct event *event)
{
    bool wanted = subscriber->filters_count == 0;

    if (subscriber->slow ||
        (event->topic != TOPIC_NODE && !text_equal(subscriber->namespace, "*") &&
         !text_equal(subscriber->namespace, event->namespace)))
        return false;
    for (size_t i = 0; i < subscriber->filters_count && !wanted; i++) {
        const struct filter *filter = &subscriber->filters[i];

        wanted =
            filter->topics[event->topic] && (filter->key[0] == '\0' || has_key(event, filter->key));
    }
    return wanted && may_see(subscriber, event->topic, event->namespace);
}

/* --- telling --- */

static void let_go(struct io_timer *timer)
{
    struct api_subscriber *subscriber = timer->ctx;

    http_disconnect(subscriber->exchange); /* its on_close forgets it */
}

static void tell(struct api_subscriber *subscriber, const char *line, size_t length)
{
    if (http_stream_write(subscriber->exchange, line, length) <= QUEUE_MAX)
        return;
    subscriber->slow = true;
    io_timer_start(subscriber->api->parts->loop, &subscriber->heartbeat, 0, let_go, subscriber);
}

/* PAYLOAD is moved: what is under the topic's name. */
static void tell_all(struct api *api, uint64_t index, const struct event *event, json_t *payload)
{
    json_t *keys = json_array();

    for (size_t i = 0; i < COUNT_OF(event->filter_keys); i++) {
        if (event->filter_keys[i] != NULL && event->filter_keys[i][0] != '\0')
            check(json_array_append_new(keys, api_text(event->filter_keys[i])) == 0);
    }
    json_t *line =
        json_pack("{s:I, s:[{s:s, s:s, s:o, s:o, s:o, s:I, s:{s:o}}]}", "Index", (json_int_t)index,
                  "Events", "Topic", topics[event->topic], "Type", event->type, "Key",
                  api_text(event->key), "Namespace", api_text(event->namespace), "FilterKeys", keys,
                  "Index", (json_int_t)index, "Payload", topics[event->topic], payload);
    check(line != NULL);
    char *text = json_dumps(line, JSON_COMPACT);
    check(text != NULL);
    size_t length = strlen(text);
    text[length] = '\n'; /* in the place of the NUL */
    for (struct api_subscriber *at = api->subscribers; at != NULL; at = at->next) {
        if (wants(at, event))
            tell(at, text, length + 1);
    }
    past_add(api->past, index, event, text, length + 1);
    json_decref(line);
}

/* As the API shows it, but for its job, which has events of its own. */
static json_t *payload_of_alloc(struct api *api, const char *id, const struct alloc *alloc)
{
    struct writer to = {.bytes = NULL};

    api_put_alloc(&to, api, id, alloc, API_ALLOC_FULL);
    json_t *payload = json_loadb(to.bytes, to.used, 0, NULL);
    free(to.bytes);
    check(payload != NULL);
    (void)json_object_del(payload, "Job"); /* it may have none */
    return payload;
}

static void tell_alloc(struct api *api, uint64_t index, const char *id, const char *type)
{
    const struct alloc *alloc = core_alloc(api->parts->core, id);

    if (alloc == NULL)
        return; /* gone: of that Nomad tells nobody, either */
    const struct alone_job *job =
        alone_find(api->parts->alone, alloc->assign.namespace, alloc->assign.job_id);
    struct event event = {
        .topic = TOPIC_ALLOC,
        .type = type,
        .key = id,
        .namespace = alloc->assign.namespace,
        .filter_keys = {alloc->assign.job_id, job != NULL ? alone_deployment_id(job) : ""},
    };
    tell_all(api, index, &event, payload_of_alloc(api, id, alloc));
}

/* What has been decided since the last commit. */
struct deciding {
    struct api *api;
    uint64_t index;
};

/* It is placed by the commit that is told of. */
static bool is_new(const struct api *api, const char *id)
{
    const struct alloc_spec *spec = specs_find(api->parts->specs, id, NULL);

    return spec != NULL && spec->create_index > api->events_index;
}

static bool placed(void *ctx, const struct machine_id *id, const struct machine *record)
{
    const struct deciding *deciding = ctx;

    /* What Nomad's servers say of what they place. */
    if (alloc_of(record)->client_status == CLIENT_PENDING && is_new(deciding->api, id->text))
        tell_alloc(deciding->api, deciding->index, id->text, "PlanResult");
    return true;
}

static bool evaluated(void *ctx, const struct alone_evaluation *evaluation)
{
    const struct deciding *deciding = ctx;
    struct api *api = deciding->api;
    struct event event = {.topic = TOPIC_EVALUATION,
                          .type = "EvaluationUpdated",
                          .key = evaluation->id,
                          .namespace = evaluation->namespace,
                          .filter_keys = {evaluation->job_id, evaluation->deployment_id}};

    if (evaluation->index <= api->events_index || evaluation->index > deciding->index)
        return true;
    tell_all(api, deciding->index, &event, api_evaluation(api, evaluation));
    if (evaluation->placed > 0)
        core_each_of_job(api->parts->core, evaluation->namespace, evaluation->job_id, placed, ctx);
    return true;
}

/* The newest one, and before it one that has ended because of it. */
static void deployments_changed(struct api *api, uint64_t index, const struct alone_job *job)
{
    struct event event = {.topic = TOPIC_DEPLOYMENT,
                          .type = "DeploymentStatusUpdate",
                          .namespace = job->namespace,
                          .filter_keys = {job->id, NULL}};

    if (alone_deployment_id(job)[0] == '\0')
        return;
    json_t *list = api_deployments(api, job);
    for (size_t i = json_array_size(list); i > 0; i--) {
        json_t *deployment = json_array_get(list, i - 1);

        event.key = json_string_value(json_object_get(deployment, "ID"));
        if (json_integer_value(json_object_get(deployment, "ModifyIndex")) >
            (json_int_t)api->events_index)
            tell_all(api, index, &event, json_incref(deployment));
    }
    json_decref(list);
}

static void job_changed(struct api *api, uint64_t index, const char *namespace, const char *id)
{
    const struct alone_job *job = alone_find(api->parts->alone, namespace, id);
    struct event event = {
        .topic = TOPIC_JOB, .type = "JobDeregistered", .key = id, .namespace = namespace};

    if (job == NULL) {
        tell_all(api, index, &event, json_pack("{s:s, s:s}", "ID", id, "Namespace", namespace));
        return;
    }
    if (!job->stop)
        event.type = "JobRegistered";
    if (job->job_modify_index > api->events_index) {
        struct api_job_view view = {.job = job, .status = alone_job_status(api->parts->alone, job)};

        tell_all(api, index, &event, api_format_job(&view));
    }
    deployments_changed(api, index, job);
}

/* Of the node nobody says what has changed: it is compared with what it was. */
static void node_changed(struct api *api, uint64_t index)
{
    struct event event = {.topic = TOPIC_NODE,
                          .type = "NodeRegistration",
                          .key = api->parts->node.identity.id,
                          .namespace = ""};

    json_t *node = api_node(api, API_NODE_WHOLE);
    char *text = json_dumps(node, JSON_COMPACT | JSON_SORT_KEYS);
    check(text != NULL);
    uint64_t digest = hash_bytes(1, text, strlen(text));
    bool told = api->node_digest == 0 || api->node_digest == digest;
    api->node_digest = digest;
    free(text);
    if (told)
        json_decref(node);
    else
        tell_all(api, index, &event, node);
}

static void decided(struct api *api, uint64_t index)
{
    struct deciding deciding = {.api = api, .index = index};

    alone_each_evaluation(api->parts->alone, evaluated, &deciding);
}

static void on_changed(void *ctx, uint64_t index, const struct life_subject *subject)
{
    struct api *api = ctx;

    if (subject->kind == LIFE_ALLOC) {
        tell_alloc(api, index, subject->id, "AllocationUpdated");
    } else if (subject->kind == LIFE_JOB) {
        job_changed(api, index, subject->namespace, subject->id);
    } else {
        decided(api, index);
        node_changed(api, index);
        api->events_index = index;
    }
}

static void service_changed(void *ctx, bool registered, const struct catalogue_entry *entry)
{
    struct api *api = ctx;
    struct event event = {.topic = TOPIC_SERVICE,
                          .type = registered ? "ServiceRegistration" : "ServiceDeregistration",
                          .key = entry->service->id,
                          .namespace = entry->alloc->namespace,
                          .filter_keys = {entry->alloc->job_id, entry->service->name}};

    tell_all(api, api_index(api), &event, catalogue_registration(api->parts->catalogue, entry));
}

/* --- coming and going --- */

static void stop_listening(struct api *api)
{
    io_timer_stop(&api->past_linger);
    life_listen(api->parts->life, NULL, NULL);
    catalogue_listen(api->parts->catalogue, CATALOGUE_EVENTS, NULL, NULL);
    past_free(api->past);
    api->past = NULL;
}

static void on_lingered(struct io_timer *timer)
{
    stop_listening(timer->ctx);
}

/* What is kept begins here, unless it has begun before. */
static void listen_to_life(struct api *api)
{
    io_timer_stop(&api->past_linger);
    if (api->past != NULL)
        return;
    api->events_index =
        life_index(api->parts->life, &(struct life_subject){.kind = LIFE_EVERYTHING});
    api->past = past_new(api->events_index);
    life_listen(api->parts->life, on_changed, api);
    catalogue_listen(api->parts->catalogue, CATALOGUE_EVENTS, service_changed, api);
    api->node_digest = 0;
    node_changed(api, api->events_index); /* what it is compared with from now on */
}

static void forget(struct api_subscriber *subscriber)
{
    struct api *api = subscriber->api;

    io_timer_stop(&subscriber->heartbeat);
    *subscriber->link = subscriber->next;
    if (subscriber->next != NULL)
        subscriber->next->link = subscriber->link;
    api_stream_give(&subscriber->stream);
    explicit_bzero(subscriber->secret, sizeof(subscriber->secret));
    free(subscriber);
    if (api->subscribers == NULL)
        io_timer_start(api->parts->loop, &api->past_linger, loop_now_ms() + LINGER_MS, on_lingered,
                       api);
}

static void on_closed(void *ctx)
{
    forget(ctx);
}

static void on_heartbeat(struct io_timer *timer)
{
    struct api_subscriber *subscriber = timer->ctx;

    if (api_rights_of(subscriber->api, subscriber->secret) == NULL) {
        let_go(timer); /* its token is none any more */
        return;
    }
    io_timer_start(subscriber->api->parts->loop, timer, loop_now_ms() + HEARTBEAT_MS, on_heartbeat,
                   subscriber);
    tell(subscriber, "{}\n", strlen("{}\n"));
}

/* "Allocation", "Allocation:web", "*"; false: there is no such topic, or its key is missing. */
static bool read_filter(const char *text, struct filter *filter)
{
    size_t length = strcspn(text, ":");
    const char *key = text[length] == ':' ? text + length + 1 : "*";
    bool found = false;

    for (int i = 0; i < TOPIC_COUNT; i++) {
        filter->topics[i] = (length == 1 && text[0] == '*') ||
                            (strlen(topics[i]) == length && strncmp(topics[i], text, length) == 0);
        found |= filter->topics[i];
    }
    return found && key[0] != '\0' &&
           text_copy(filter->key, sizeof(filter->key), text_equal(key, "*") ? "" : key);
}

/* What the query asks for; false after refusing it. */
static bool read_filters(struct api_request *request, struct api_subscriber *subscriber)
{
    const char *text;

    for (size_t i = 0; (text = http_query_again(request->exchange, "topic", i)) != NULL; i++) {
        if (i == FILTERS_MAX) {
            api_refuse(request, 400, "more than %d topics", FILTERS_MAX);
            return false;
        }
        if (!read_filter(text, &subscriber->filters[i])) {
            api_refuse(
                request, 400,
                "unknown topic \"%.60s\": there are Job, Allocation, Evaluation, Deployment, "
                "Node, Service and *, alone or with a key as in Job:web",
                text);
            return false;
        }
        subscriber->filters_count = i + 1;
    }
    return true;
}

/* True if all of the topics that are asked for may be seen; else it is refused. */
static bool may_subscribe(struct api_request *request, const struct api_subscriber *subscriber)
{
    bool may = true;

    for (enum topic topic = 0; topic < TOPIC_COUNT; topic++) {
        bool asked = subscriber->filters_count == 0;

        for (size_t i = 0; i < subscriber->filters_count; i++)
            asked |= subscriber->filters[i].topics[topic];
        may &= !asked || may_see(subscriber, topic, subscriber->namespace);
    }
    if (!may)
        api_refuse(request, 403, "Permission denied");
    return may;
}

static void tell_again(void *ctx, const struct event *event, const char *line, size_t length)
{
    struct api_subscriber *subscriber = ctx;

    if (wants(subscriber, event))
        tell(subscriber, line, length);
}

/* What was told from INDEX on; 0: nothing.  Nomad begins with the next that it has, too, but says
 * nothing; a line without events is a heartbeat to its clients. */
static void catch_up(struct api_subscriber *subscriber, uint64_t index)
{
    struct past *past = subscriber->api->past;
    char line[64];

    if (index == 0)
        return;
    if (index <= past_gone(past)) {
        int length =
            snprintf(line, sizeof(line), "{\"MissedUpTo\":%" PRIu64 "}\n", past_gone(past));

        tell(subscriber, line, (size_t)length);
    }
    past_each(past, index, tell_again, subscriber);
}

static bool read_index(struct api_request *request, int64_t *ret_index)
{
    if (!api_query_number(request, "index", ret_index))
        return false;
    if (*ret_index < 0)
        api_refuse(request, 400, "index must not be negative");
    return *ret_index >= 0;
}

void api_event_stream(struct api_request *request)
{
    struct api *api = request->api;
    int64_t index = 0;
    struct api_subscriber *subscriber = calloc(1, sizeof(*subscriber));

    check(subscriber != NULL);
    if (!text_copy(subscriber->namespace, sizeof(subscriber->namespace), request->namespace)) {
        api_refuse(request, 400, "there is no such namespace");
        free(subscriber);
        return;
    }
    subscriber->api = api;
    subscriber->exchange = request->exchange;
    (void)text_copy(subscriber->secret, sizeof(subscriber->secret), /* a longer one is none */
                    api_token(request));
    if (!read_index(request, &index) || !read_filters(request, subscriber) ||
        !may_subscribe(request, subscriber) ||
        !api_stream_take(request, &subscriber->stream, true)) {
        explicit_bzero(subscriber->secret, sizeof(subscriber->secret));
        free(subscriber);
        return;
    }
    listen_to_life(api);
    subscriber->next = api->subscribers;
    subscriber->link = &api->subscribers;
    if (subscriber->next != NULL)
        subscriber->next->link = &subscriber->next;
    api->subscribers = subscriber;
    http_on_close(subscriber->exchange, on_closed, subscriber);
    api_stream_begin(subscriber->exchange, false, NULL, NULL);
    subscriber->heartbeat.ctx = subscriber;
    on_heartbeat(&subscriber->heartbeat); /* at once: he sees that it has begun */
    catch_up(subscriber, (uint64_t)index);
}

void api_events_close(struct api *api)
{
    while (api->subscribers != NULL) {
        struct http_exchange *exchange = api->subscribers->exchange;

        http_on_close(exchange, NULL, NULL);
        forget(api->subscribers);
        http_stream_end(exchange);
    }
    if (api->past != NULL)
        stop_listening(api);
}
