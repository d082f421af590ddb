/* A client of a whole node on the node's own loop: any number of requests at once. */
#ifndef CAIRN_TEST_AGENT_API_QUERY_H
#define CAIRN_TEST_AGENT_API_QUERY_H

#include "io/http.h"
#include "test/agent/api/whole_node.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct query {
    struct http_request *request;
    bool answered;
    int status;
    char *body; /* with a NUL behind it */
    char headers[2048];
    size_t came; /* bytes of the body so far, if it is listened to */
    struct err error;
};

static inline void query_replied(void *ctx, const struct http_reply *reply)
{
    struct query *query = ctx;

    query->answered = true;
    query->status = reply->status;
    query->error = reply->error;
    free(query->body);
    query->body = strdup(reply->body == NULL ? "" : reply->body);
    (void)text_copy(query->headers, sizeof(query->headers),
                    reply->headers == NULL ? "" : reply->headers); /* cut if long */
}

static inline bool query_hears(void *ctx, const char *bytes, size_t length)
{
    struct query *query = ctx;
    char *longer = realloc(query->body, query->came + length + 1);

    assert_non_null(longer);
    memcpy(longer + query->came, bytes, length);
    query->came += length;
    longer[query->came] = '\0';
    query->body = longer;
    return true;
}

struct question {
    const char *method, *path, *body;
    size_t length;
    const char *const *headers;
    bool listen; /* the body grows as it comes */
};

static inline struct query *ask_with(struct whole_node *node, const struct question *question)
{
    char url[1024];
    struct query *query = calloc(1, sizeof(*query));
    struct err err = {0};

    assert_non_null(query);
    assert_true(
        text_format(url, sizeof(url), "http://%s%s", api_address(node->api), question->path));
    struct http_call call = {
        .method = question->method == NULL ? "GET" : question->method,
        .url = url,
        .headers = question->headers,
        .body = question->body,
        .body_length = question->length,
        .cb = query_replied,
        .on_data = question->listen ? query_hears : NULL,
        .ctx = query,
    };
    query->request = http_start(node->parts.loop, &call, &err);
    if (query->request == NULL)
        fail_msg("%s", err.text);
    return query;
}

static inline struct query *ask(struct whole_node *node, const char *path)
{
    return ask_with(node, &(struct question){.path = path});
}

static inline struct query *put(struct whole_node *node, const char *path, const char *body)
{
    return ask_with(node, &(struct question){
                              .method = "PUT", .path = path, .body = body, .length = strlen(body)});
}

/* --- the loop, until something is so --- */

struct until {
    struct io_before_sleep before;
    struct loop *loop;
    bool (*is_so)(void *ctx);
    void *ctx;
};

static inline bool until_look(void *ctx)
{
    struct until *until = ctx;

    if (until->is_so(until->ctx))
        loop_stop(until->loop);
    return false;
}

/* Who waits for what never comes is ended by the runner of the tests. */
static inline void run_until(struct whole_node *node, bool (*is_so)(void *ctx), void *ctx)
{
    struct until until = {.loop = node->parts.loop, .is_so = is_so, .ctx = ctx};

    if (is_so(ctx))
        return;
    io_before_sleep_start(node->parts.loop, &until.before, until_look, &until);
    loop_run(node->parts.loop);
    io_before_sleep_stop(&until.before);
}

static inline bool query_is_answered(void *ctx)
{
    return ((struct query *)ctx)->answered;
}

static inline void hear(struct whole_node *node, struct query *query)
{
    run_until(node, query_is_answered, query);
}

static inline void query_end(struct query *query)
{
    if (!query->answered)
        http_cancel(query->request);
    free(query->body);
    free(query);
}

/* Asks, and gives back the status; RET_BODY (may be NULL) is the caller's. */
static inline int talk(struct whole_node *node, const struct question *question, char **ret_body)
{
    struct query *query = ask_with(node, question);

    hear(node, query);
    int status = query->status;
    if (ret_body != NULL)
        *ret_body = strdup(query->body);
    query_end(query);
    return status;
}

static inline int status_of(struct whole_node *node, const char *method, const char *path)
{
    return talk(node, &(struct question){.method = method, .path = path}, NULL);
}

static inline int node_open(void **state)
{
    struct whole_node *node = malloc(sizeof(*node));

    assert_non_null(node);
    whole_open(node);
    *state = node;
    return 0;
}

static inline int node_close(void **state)
{
    whole_close(*state);
    free(*state);
    return 0;
}

#endif
