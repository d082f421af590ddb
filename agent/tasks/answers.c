/* How requests of tasks end. */
#include "agent/tasks/part.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

enum { NUMBER_SIZE = 24 };

void request_forget(struct task_request *request)
{
    DL_DELETE(request->tasks->requests, request);
    request->tasks->requests_count--;
    explicit_bzero(request->token, strlen(request->token));
    free(request->token);
    free(request);
}

void request_respond(struct http_exchange *exchange, int status, const char *text)
{
    http_respond(exchange, status, "text/plain; charset=utf-8", NULL, 0, text, strlen(text));
}

struct http_exchange *request_take(struct task_request *request)
{
    struct http_exchange *exchange = request->exchange;

    if (exchange != NULL)
        http_on_close(exchange, NULL, NULL);
    request_forget(request);
    return exchange;
}

void request_refuse(struct task_request *request, int status, const char *text)
{
    struct http_exchange *exchange = request_take(request);

    if (exchange != NULL)
        request_respond(exchange, status, text);
}

void request_answer(struct task_request *request, int status, const json_t *reply,
                    const json_t *value)
{
    struct http_exchange *exchange = request_take(request);
    char *text = value == NULL ? strdup("") : json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    char index[NUMBER_SIZE], contact[NUMBER_SIZE];
    json_int_t contact_ns = json_integer_value(json_object_get(reply, "LastContact"));
    bool known = json_is_true(json_object_get(reply, "KnownLeader"));
    const struct http_header_line headers[] = {{"X-Nomad-Index", index},
                                               {"X-Nomad-LastContact", contact},
                                               {"X-Nomad-KnownLeader", known ? "true" : "false"}};

    check(text != NULL);
    (void)text_format(index, sizeof(index), "%" PRId64,
                      (int64_t)json_integer_value(json_object_get(reply, "Index"))); /* they fit */
    (void)text_format(contact, sizeof(contact), "%" PRId64, (int64_t)contact_ns / 1000000);
    if (exchange != NULL)
        http_respond(exchange, status, "application/json", headers, COUNT_OF(headers), text,
                     strlen(text));
    free(text);
}
