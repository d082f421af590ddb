/*
 * What a request says, and how it is answered: JSON with Nomad's headers, one line of text for
 * refusals, and answers that wait for a commit.
 */
#include "agent/api/part.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- requests --- */

bool api_wants_pretty(const struct http_exchange *exchange)
{
    const char *pretty = http_query(exchange, "pretty");

    return pretty != NULL && !text_equal(pretty, "0");
}

const char *api_query_text(const struct api_request *request, const char *name)
{
    const char *text = http_query(request->exchange, name);

    return text != NULL && text[0] != '\0' ? text : NULL;
}

bool api_query_bool(struct api_request *request, const char *name, bool *ret_value)
{
    /* What Go's strconv.ParseBool takes. */
    static const char *const yes[] = {"1", "t", "T", "true", "TRUE", "True"};
    static const char *const no[] = {"0", "f", "F", "false", "FALSE", "False"};
    const char *text = http_query(request->exchange, name);

    if (text == NULL || text[0] == '\0')
        return true;
    for (size_t i = 0; i < COUNT_OF(yes); i++) {
        if (text_equal(text, yes[i]) || text_equal(text, no[i])) {
            *ret_value = text_equal(text, yes[i]);
            return true;
        }
    }
    api_refuse(request, 400, "%s must be true or false", name);
    return false;
}

bool api_query_number(struct api_request *request, const char *name, int64_t *ret_value)
{
    const char *text = http_query(request->exchange, name);

    if (text == NULL || text[0] == '\0' || text_to_i64(text, ret_value))
        return true;
    api_refuse(request, 400, "%s must be a number", name);
    return false;
}

json_t *api_body(struct api_request *request, bool may_be_empty)
{
    return api_long_body(request, may_be_empty, API_SHORT_BODY_MAX);
}

json_t *api_long_body(struct api_request *request, bool may_be_empty, size_t bytes_max)
{
    size_t length;
    const char *bytes = http_body(request->exchange, &length);
    struct err err = {0};

    if (length > bytes_max) {
        api_refuse(request, 413, "This request may have a body of %zu bytes, it has %zu", bytes_max,
                   length);
        return NULL;
    }
    /* Go's client sends "null" where it has nothing to say. */
    bool nothing = length == 0 || (text_starts_with(bytes, "null") && length <= strlen("null\n"));
    if (may_be_empty && nothing)
        return json_object();
    json_t *body = parse_object(bytes, length, &err);
    if (body == NULL)
        api_refuse(request, 400, "%s", err.text);
    return body;
}

bool api_field_is(const json_t *body, const char *name, json_type type)
{
    const json_t *field = json_object_get(body, name);

    return field == NULL || json_is_null(field) || json_typeof(field) == type ||
           (type == JSON_TRUE && json_is_false(field));
}

void api_act(struct api_request *request, json_t *body,
             const char *(*fault_of)(const struct api_request *request, const json_t *body),
             void (*act)(struct api_request *request, const json_t *body))
{
    if (body == NULL)
        return;
    const char *fault = fault_of(request, body);
    if (fault != NULL)
        api_refuse(request, 400, "%s", fault);
    else
        act(request, body);
    json_decref(body);
}

/* --- answers --- */

const struct http_header_line api_safe_headers[API_SAFE_HEADERS] = {
    {"X-Content-Type-Options", "nosniff"},
    {"Content-Security-Policy", "default-src 'none'; sandbox; frame-ancestors 'none'"},
};

uint64_t api_index(const struct api *api)
{
    return life_index(api->parts->life, &(struct life_subject){.kind = LIFE_EVERYTHING});
}

uint64_t api_index_of(const struct api_request *request)
{
    return request->index != 0 ? request->index
                               : life_index(request->api->parts->life, &request->subject);
}

static void respond(const struct api_request *request, int status, const char *type,
                    const void *body, size_t length)
{
    char index[24];

    (void)text_format(index, sizeof(index), "%" PRIu64, api_index_of(request)); /* it fits */
    struct http_header_line headers[] = {
        {"X-Nomad-Index", index},     {"X-Nomad-KnownLeader", "true"},
        {"X-Nomad-LastContact", "0"}, api_safe_headers[0],
        api_safe_headers[1],
    };

    http_respond(request->exchange, status, type, headers, COUNT_OF(headers), body, length);
}

static void respond_json(struct api_request *request, bool pretty, json_t *body)
{
    struct writer to = {.pretty = pretty};

    put_json_new(&to, NULL, body);
    api_reply_written(request, &to);
}

void api_reply(struct api_request *request, json_t *body)
{
    respond_json(request, api_wants_pretty(request->exchange), body);
}

struct writer api_writer(const struct api_request *request)
{
    return (struct writer){.pretty = api_wants_pretty(request->exchange)};
}

void api_reply_written(struct api_request *request, struct writer *body)
{
    check(body->depth == 0);
    api_reply_bytes(request, body->bytes, body->used);
    free(body->bytes);
    body->bytes = NULL;
}

void api_reply_bytes(struct api_request *request, const char *body, size_t length)
{
    respond(request, 200, "application/json", body, length);
}

void api_reply_nothing(struct api_request *request)
{
    respond(request, 200, "application/json", "", 0);
}

void api_refuse(struct api_request *request, int status, const char *format, ...)
{
    char text[2 * ERR_TEXT_SIZE];
    va_list arguments;

    va_start(arguments, format);
    int length = vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    check(length >= 0);
    api_refuse_text(request, status, text);
}

void api_refuse_text(struct api_request *request, int status, const char *text)
{
    respond(request, status, "text/plain; charset=utf-8", text, strlen(text));
}

int api_status_of(const struct api *api, int code)
{
    if (life_degraded(api->parts->life) != NULL && code != ERR_INVALID && code != ERR_GONE)
        return 503;
    switch ((enum err_code)code) {
    case ERR_GONE:
        return 404;
    case ERR_INVALID:
    case ERR_LIMIT:
        return 400;
    case ERR_REFUSED:
    case ERR_EXISTS:
        return 409;
    case ERR_UNSUPPORTED:
        return 501;
    case ERR_AGAIN:
    case ERR_TIMEOUT:
    case ERR_CANCELED:
    case ERR_FULL:
        return 503;
    case ERR_OK:
    case ERR_CORRUPT:
    case ERR_IO:
        return 500;
    }
    return 500;
}

void api_refuse_err(struct api_request *request, const struct err *err)
{
    api_refuse(request, api_status_of(request->api, err->code), "%s",
               err->text[0] != '\0' ? err->text : err_text(err->code));
}

void api_refuse_file(struct api *api, struct http_exchange *exchange, const struct err *err)
{
    struct api_request request = {.api = api, .exchange = exchange};

    api_refuse(&request, err->code == ERR_REFUSED ? 403 : api_status_of(api, err->code), "%s",
               err->text);
}

/* --- answering later --- */

/* Whoever asked has gone; what was asked for goes on. */
static void on_deferred_closed(void *ctx)
{
    struct api_deferred *deferred = ctx;

    deferred->exchange = NULL;
}

struct api_deferred *api_defer(struct api_request *request,
                               json_t *(*make)(struct api *api, void *ctx), void *ctx)
{
    struct api_deferred *deferred = calloc(1, sizeof(*deferred));

    check(deferred != NULL);
    deferred->api = request->api;
    deferred->exchange = request->exchange;
    deferred->pretty = api_wants_pretty(request->exchange);
    deferred->waiting = 1;
    deferred->make = make;
    deferred->ctx = ctx;
    deferred->next = request->api->deferred;
    deferred->link = &request->api->deferred;
    if (deferred->next != NULL)
        deferred->next->link = &deferred->next;
    request->api->deferred = deferred;
    request->api->deferred_count++;
    http_on_close(deferred->exchange, on_deferred_closed, deferred);
    return deferred;
}

static void forget(struct api_deferred *deferred)
{
    *deferred->link = deferred->next;
    if (deferred->next != NULL)
        deferred->next->link = deferred->link;
    deferred->api->deferred_count--;
    free(deferred->ctx);
    free(deferred);
}

void api_deferred_close(struct api *api)
{
    while (api->deferred != NULL)
        forget(api->deferred);
}

static void finish(struct api_deferred *deferred)
{
    struct api_request request = {.api = deferred->api, .exchange = deferred->exchange};

    if (deferred->err.code != 0)
        api_refuse_err(&request, &deferred->err);
    else if (deferred->make == NULL)
        api_reply_nothing(&request);
    else
        respond_json(&request, deferred->pretty, deferred->make(deferred->api, deferred->ctx));
}

void api_deferred_answer(void *ctx, int code, const struct err *err)
{
    struct api_deferred *deferred = ctx;

    check(deferred->waiting > 0);
    if (code != 0 && deferred->err.code == 0) {
        if (err != NULL)
            deferred->err = *err;
        deferred->err.code = code;
    }
    if (--deferred->waiting > 0)
        return;
    if (deferred->exchange != NULL)
        finish(deferred);
    forget(deferred);
}

json_t *api_make_index(struct api *api, void *ctx)
{
    (void)ctx;
    return json_pack("{s:I}", "Index", (json_int_t)api_index(api));
}
