/*
 * The stream of events: /v1/event/stream.
 *
 * A line of JSON for each change that a commit has made, and an empty object now and then.  Follows
 * nomad v1.1.2 command/agent/event_endpoint.go and nomad/state/events.go: topics Job, Allocation,
 * Evaluation, Deployment and Node, with their payloads; a list of their changes is not kept, so
 * that a stream begins with what happens next, whatever index it asks for.  A reader that is too
 * slow is let go: he asks again, and looks at what there is.
 */
#include "agent/api/format.h"
#include "agent/api/part.h"

#include "server/alone/alone.h"

#include <stdlib.h>
#include <string.h>

enum { SECRET_SIZE = 128, HEARTBEAT_MS = 10 * 1000, FILTERS_MAX = 32, QUEUE_MAX = 1 << 20 };

enum topic {
    TOPIC_JOB,
    TOPIC_ALLOC,
    TOPIC_EVALUATION,
    TOPIC_DEPLOYMENT,
    TOPIC_NODE,
    TOPIC_COUNT,
};

static const char *const topics[TOPIC_COUNT] = {"Job", "Allocation", "Evaluation", "Deployment",
                                                "Node"};

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

/* One event; what else than its key it is found by. */
struct event {
    enum topic topic;
    const char *type, *key, *namespace;
    const char *filter_keys[2]; /* NULL: none */
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

static bool anybody_wants(const struct api *api, const struct event *event)
{
    for (const struct api_subscriber *at = api->subscribers; at != NULL; at = at->next) {
        if (wants(at, event))
            return true;
    }
    return false;
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
    free(text);
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
    if (anybody_wants(api, &event))
        tell_all(api, index, &event, payload_of_alloc(api, id, alloc));
}

/* What has been decided since the last commit. */
struct deciding {
    struct api *api;
    uint64_t index;
    bool tells_allocs; /* somebody wants to know what was placed */
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
    if (anybody_wants(api, &event))
        tell_all(api, deciding->index, &event, api_evaluation(api, evaluation));
    if (deciding->tells_allocs && evaluation->placed > 0)
        core_each_of_job(api->parts->core, evaluation->namespace, evaluation->job_id, placed, ctx);
    return true;
}

/* Nobody looks at all of them for nobody. */
static bool is_topic_wanted(const struct api *api, enum topic topic)
{
    for (const struct api_subscriber *at = api->subscribers; at != NULL; at = at->next) {
        for (size_t i = 0; i < at->filters_count; i++) {
            if (at->filters[i].topics[topic])
                return true;
        }
        if (at->filters_count == 0)
            return true;
    }
    return false;
}

static void job_changed(struct api *api, uint64_t index, const char *namespace, const char *id)
{
    const struct alone_job *job = alone_find(api->parts->alone, namespace, id);
    struct event event = {
        .topic = TOPIC_JOB, .type = "JobDeregistered", .key = id, .namespace = namespace};

    if (job == NULL) {
        if (anybody_wants(api, &event))
            tell_all(api, index, &event, json_pack("{s:s, s:s}", "ID", id, "Namespace", namespace));
        return;
    }
    if (!job->stop)
        event.type = "JobRegistered";
    if (job->job_modify_index > api->events_index && anybody_wants(api, &event))
        tell_all(api, index, &event, api_format_job(job, alone_job_status(api->parts->alone, job)));
    event = (struct event){.topic = TOPIC_DEPLOYMENT,
                           .type = "DeploymentStatusUpdate",
                           .key = alone_deployment_id(job),
                           .namespace = namespace,
                           .filter_keys = {id, NULL}};
    if (event.key[0] == '\0' || !anybody_wants(api, &event))
        return;
    json_t *deployment = alone_deployment(api->parts->alone, job);
    if (deployment != NULL && json_integer_value(json_object_get(deployment, "ModifyIndex")) >
                                  (json_int_t)api->events_index)
        tell_all(api, index, &event, json_incref(deployment));
    json_decref(deployment);
}

/* Of the node nobody says what has changed: it is compared with what it was. */
static void node_changed(struct api *api, uint64_t index)
{
    struct event event = {.topic = TOPIC_NODE,
                          .type = "NodeRegistration",
                          .key = api->parts->node.identity.id,
                          .namespace = ""};

    if (!anybody_wants(api, &event)) {
        api->node_digest = 0;
        return;
    }
    json_t *node = api_node(api, true, true);
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
    struct deciding deciding = {
        .api = api, .index = index, .tells_allocs = is_topic_wanted(api, TOPIC_ALLOC)};

    if (deciding.tells_allocs || is_topic_wanted(api, TOPIC_EVALUATION))
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

/* --- coming and going --- */

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
        life_listen(api->parts->life, NULL, NULL);
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

/* "Allocation", "Allocation:web", "*"; false: there is no such topic. */
static bool read_filter(const char *text, struct filter *filter)
{
    size_t length = strcspn(text, ":");
    const char *key = text[length] == ':' ? text + length + 1 : "";
    bool found = false;

    for (int i = 0; i < TOPIC_COUNT; i++) {
        filter->topics[i] = (length == 1 && text[0] == '*') ||
                            (strlen(topics[i]) == length && strncmp(topics[i], text, length) == 0);
        found |= filter->topics[i];
    }
    return found && text_copy(filter->key, sizeof(filter->key), text_equal(key, "*") ? "" : key);
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
                "Node and *",
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
    if (!api_query_number(request, "index", &index) || !read_filters(request, subscriber) ||
        !may_subscribe(request, subscriber) ||
        !api_stream_take(request, &subscriber->stream, true)) {
        explicit_bzero(subscriber->secret, sizeof(subscriber->secret));
        free(subscriber);
        return;
    }
    if (api->subscribers == NULL) {
        api->events_index =
            life_index(api->parts->life, &(struct life_subject){.kind = LIFE_EVERYTHING});
        life_listen(api->parts->life, on_changed, api);
    }
    subscriber->next = api->subscribers;
    subscriber->link = &api->subscribers;
    if (subscriber->next != NULL)
        subscriber->next->link = &subscriber->next;
    api->subscribers = subscriber;
    http_on_close(subscriber->exchange, on_closed, subscriber);
    api_stream_begin(subscriber->exchange, false, NULL, NULL);
    node_changed(api, api->events_index); /* what it is compared with from now on */
    subscriber->heartbeat.ctx = subscriber;
    on_heartbeat(&subscriber->heartbeat); /* at once: he sees that it has begun */
}

void api_events_close(struct api *api)
{
    while (api->subscribers != NULL) {
        struct http_exchange *exchange = api->subscribers->exchange;

        http_on_close(exchange, NULL, NULL);
        forget(api->subscribers);
        http_stream_end(exchange);
    }
}
