/*
 * Where somebody is, as Consul's catalog says: datacenter by datacenter, from the agent's own on,
 * until there is anybody.  Follows nomad v2.0.6 client/client.go consulDiscoveryImpl.
 */
#include "hooks/consul/part.h"

#include <stdlib.h>
#include <string.h>

enum { CENTERS_MAX = 9 /* that are asked */ };

struct consul_search {
    const struct consul_search_config *config;
    bool is_busy;
    struct io_timer timer;
    struct http_request *request;
    json_t *centers; /* the nearest first; NULL: not known yet */
    size_t next;     /* of them to be asked */
    struct err err;  /* what went wrong last */
};

struct consul_search *consul_search_new(const struct consul_search_config *config)
{
    struct consul_search *search = calloc(1, sizeof(*search));

    check(search != NULL);
    search->config = config;
    return search;
}

void consul_search_free(struct consul_search *search)
{
    if (search == NULL)
        return;
    if (search->request != NULL)
        http_cancel(search->request);
    io_timer_stop(&search->timer);
    json_decref(search->centers);
    free(search);
}

static void end(struct consul_search *search, const char (*places)[CONSUL_PLACE_SIZE], size_t count)
{
    const struct consul_search_config *config = search->config;

    json_decref(search->centers);
    search->centers = NULL;
    search->is_busy = false;
    if (count == 0 && search->err.code == 0)
        (void)err_set(&search->err, ERR_GONE, "nobody offers \"%s\" with the tag \"%s\"",
                      config->service, config->tag); /* it is told below */
    config->found(config->ctx, places, count, count == 0 ? &search->err : NULL);
}

/* The list that REPLY is, a new reference; NULL: it is none, and that is kept. */
static json_t *list_in(struct consul_search *search, const struct http_reply *reply)
{
    char why[ERR_TEXT_SIZE];
    json_t *list = NULL;

    if (consul_failed(reply, why, sizeof(why))) {
        (void)err_set(&search->err, reply->status == 0 ? reply->error.code : ERR_REFUSED, "%s",
                      why); /* only to be kept */
        return NULL;
    }
    list = json_loadb(reply->body, reply->body_length, 0, NULL);
    if (json_is_array(list))
        return list;
    json_decref(list);
    (void)err_set(&search->err, ERR_CORRUPT, "its answer is no list"); /* likewise */
    return NULL;
}

/* The address of a service is its own, or that of its node. */
static bool read_place(const json_t *entry, char to[CONSUL_PLACE_SIZE])
{
    const char *host = json_string_value(json_object_get(entry, "ServiceAddress"));
    json_int_t port = json_integer_value(json_object_get(entry, "ServicePort"));

    if (host == NULL || host[0] == '\0')
        host = json_string_value(json_object_get(entry, "Address"));
    if (host == NULL || host[0] == '\0' || host[strcspn(host, " /\",[]")] != '\0' || port <= 0 ||
        port > UINT16_MAX)
        return false;
    return text_format(to, CONSUL_PLACE_SIZE, strchr(host, ':') != NULL ? "[%s]:%d" : "%s:%d", host,
                       (int)port);
}

static void ask_next(struct consul_search *search);

static void on_places(void *ctx, const struct http_reply *reply)
{
    struct consul_search *search = ctx;
    char places[CONSUL_FOUND_MAX][CONSUL_PLACE_SIZE];
    const json_t *entry;
    size_t count = 0, i;

    search->request = NULL;
    if (reply->error.code == ERR_CANCELED)
        return; /* by consul_search_free */
    json_t *list = list_in(search, reply);
    json_array_foreach(list, i, entry)
    {
        if (count < CONSUL_FOUND_MAX)
            count += read_place(entry, places[count]);
    }
    json_decref(list);
    if (count > 0)
        end(search, places, count);
    else
        ask_next(search);
}

static void ask_next(struct consul_search *search)
{
    const struct consul_search_config *config = search->config;
    char path[CONSUL_URL_SIZE / 2] = "/v1/catalog/service/";
    const char *center = json_string_value(json_array_get(search->centers, search->next));
    const struct consul_request call = {
        .method = "GET", .path = path, .token = config->consul->token};

    if (center == NULL || search->next == CENTERS_MAX) {
        end(search, NULL, 0);
        return;
    }
    search->next++;
    bool fits = consul_escape(path, sizeof(path), config->service) &&
                text_append(path, sizeof(path), "?stale&near=_agent&tag=") &&
                consul_escape(path, sizeof(path), config->tag) &&
                text_append(path, sizeof(path), "&dc=") &&
                consul_escape(path, sizeof(path), center);
    if (fits)
        consul_send(config->consul, &call, on_places, search, &search->request);
    else
        ask_next(search); /* nobody has such a name */
}

static void on_centers(void *ctx, const struct http_reply *reply)
{
    struct consul_search *search = ctx;

    search->request = NULL;
    if (reply->error.code == ERR_CANCELED)
        return; /* by consul_search_free */
    search->centers = list_in(search, reply);
    ask_next(search);
}

static void ask_centers(struct io_timer *timer)
{
    struct consul_search *search = timer->ctx;
    const struct consul_request call = {
        .method = "GET", .path = "/v1/catalog/datacenters", .token = search->config->consul->token};

    consul_send(search->config->consul, &call, on_centers, search, &search->request);
}

void consul_search_begin(struct consul_search *search)
{
    if (search->is_busy)
        return;
    search->is_busy = true;
    search->next = 0;
    search->err = (struct err){0};
    io_timer_start(search->config->consul->loop, &search->timer, loop_now_ms(), ask_centers,
                   search);
}
