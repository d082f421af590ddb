/*
 * Requests to the Engine, and what is read of its answers.
 *
 * Paths carry no version: the Engine then speaks its own newest one, and what is used here is in
 * all of them.
 */
#include "drivers/docker/docker.h"
#include "io/scope.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LABEL_NODE "cairn.node"
#define LABEL_ALLOC "cairn.alloc_id"
#define LABEL_TASK "cairn.task_name"
#define LABEL_GENERATION "cairn.generation"
#define LABEL_NETWORK "cairn.network" /* of what shares one */

/* --- asking --- */

struct http_request *engine_ask(const struct drivers *drivers, const struct engine_ask *ask,
                                struct err *err)
{
    const char *headers[3] = {NULL};
    size_t count = 0;
    scoped_string char *body = ask->body == NULL ? NULL : json_dumps(ask->body, JSON_COMPACT);
    size_t size = strlen(ask->path) + sizeof("http://engine");
    char *url = malloc(size);

    check(url != NULL);
    check(text_format(url, size, "http://engine%s", ask->path));
    if (body != NULL)
        headers[count++] = "Content-Type: application/json";
    if (ask->header != NULL)
        headers[count++] = ask->header;
    struct http_call call = {
        .method = ask->method,
        .url = url,
        .unix_socket = drivers->config.docker.socket,
        .headers = headers,
        .body = body,
        .body_length = body == NULL ? 0 : strlen(body),
        .timeout_ms = ask->timeout_ms != 0 ? ask->timeout_ms
                      : ask->lasts         ? ENGINE_LASTS_MS
                                           : ENGINE_BOUND_MS,
        .body_bytes_max = ask->on_data != NULL ? SIZE_MAX : ENGINE_ANSWER_MAX,
        .lasts = ask->lasts,
        .secret = ask->secret,
        .on_data = ask->on_data,
        .cb = ask->cb,
        .ctx = ask->ctx,
    };
    struct http_request *request = http_start(drivers->config.loop, &call, err);
    if (body != NULL && ask->secret)
        explicit_bzero(body, strlen(body));
    free(url);
    return request;
}

char *engine_quote(const char *text)
{
    static const char digits[] = "0123456789ABCDEF";
    char *quoted = malloc(strlen(text) * 3 + 1), *to = quoted;

    check(quoted != NULL);
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0'; at++) {
        if (isalnum(*at) || strchr("-_.~", *at) != NULL) {
            *to++ = (char)*at;
            continue;
        }
        *to++ = '%';
        *to++ = digits[*at >> 4];
        *to++ = digits[*at & 15];
    }
    *to = '\0';
    return quoted;
}

/* --- reading --- */

int engine_fault(const struct http_reply *reply, struct err *err)
{
    char said[ERR_TEXT_SIZE];

    if (reply->status == 0) {
        *err = reply->error;
        err->recoverable = true;
        return err_wrap(err, "the Docker Engine does not answer");
    }
    json_t *body = json_loadb(reply->body, reply->body_length, 0, NULL);
    const char *message = json_string_value(json_object_get(body, "message"));
    bool fits = text_copy(said, sizeof(said), message == NULL ? "" : message);
    json_decref(body);
    (void)fits; /* a long one is cut */
    text_whole(said);
    text_clean(said);
    int code = reply->status == 404   ? ERR_GONE
               : reply->status == 409 ? ERR_EXISTS
               : reply->status >= 500 ? ERR_IO
                                      : ERR_REFUSED;
    if (said[0] == '\0')
        (void)err_set(err, code, "the Docker Engine answered with status %d", reply->status);
    else
        (void)err_set(err, code, "%s", said);
    err->recoverable = reply->status >= 500;
    return code;
}

bool engine_time(const char *text, size_t length, int64_t *ret_unix_ns)
{
    struct tm tm = {0};
    char copy[40];

    if (length >= sizeof(copy))
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    const char *at = strptime(copy, "%Y-%m-%dT%H:%M:%S", &tm);
    if (at == NULL)
        return false;
    int64_t ns = 0, unit = 100000000, seconds = timegm(&tm);
    if (*at == '.') {
        for (at++; isdigit((unsigned char)*at); at++, unit /= 10)
            ns += (*at - '0') * unit;
    }
    if (*at == '+' || *at == '-') { /* of an Engine elsewhere than in UTC */
        int hours = 0, minutes = 0, sign = *at == '-' ? 1 : -1;

        if (sscanf(at + 1, "%2d:%2d", &hours, &minutes) != 2)
            return false;
        seconds += (int64_t)sign * (hours * 3600 + minutes * 60);
    } else if (at[0] != 'Z' || at[1] != '\0') {
        return false;
    }
    if (seconds >= INT64_MAX / 1000000000)
        return false;
    *ret_unix_ns = seconds < 0 ? 0 : seconds * 1000000000 + ns;
    return true;
}

static int64_t time_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    int64_t unix_ns;

    return text != NULL && engine_time(text, strlen(text), &unix_ns) ? unix_ns : 0;
}

bool engine_read_state(const struct http_reply *reply, const char *node_mark,
                       const struct driver_key *key, struct container_state *ret_state)
{
    json_t *body = json_loadb(reply->body, reply->body_length, 0, NULL);
    const json_t *state = json_object_get(body, "State"), *config = json_object_get(body, "Config");
    const json_t *code = json_object_get(state, "ExitCode"), *pid = json_object_get(state, "Pid");
    const char *id = json_string_value(json_object_get(body, "Id"));
    const char *error = json_string_value(json_object_get(state, "Error"));
    const char *stop = json_string_value(json_object_get(config, "StopSignal"));
    const json_t *running = json_object_get(state, "Running");
    bool whole = id != NULL && json_is_boolean(running) && json_is_integer(code) &&
                 json_is_integer(pid) && json_is_object(config);
    struct driver_key found;

    if (whole) {
        struct container_state read = {
            .ours = container_key(json_object_get(config, "Labels"), node_mark, &found) &&
                    key_equal(&found, key),
            /* One that is paused runs; one that is dead is only half removed. */
            .runs = json_is_true(running) && !json_is_true(json_object_get(state, "Dead")),
            .was_started = time_of(state, "StartedAt") != 0,
            .oom_killed = json_is_true(json_object_get(state, "OOMKilled")),
            .terminal = json_is_true(json_object_get(config, "Tty")),
            .pid = (pid_t)json_integer_value(pid),
            .code = json_integer_value(code),
            .finished_unix_ns = time_of(state, "FinishedAt"),
            .stop_signal = stop == NULL || *stop == '\0' ? 0 : proc_signal_number(stop),
        };
        (void)text_copy(read.id, sizeof(read.id), id); /* an id has 64 digits */
        (void)text_copy(read.error, sizeof(read.error),
                        error == NULL ? "" : error); /* may be cut */
        text_clean(read.error);
        *ret_state = read;
    }
    json_decref(body);
    return whole;
}

/* --- names --- */

void container_name(const struct driver_key *key, char to[CONTAINER_NAME_SIZE])
{
    check(text_format(to, CONTAINER_NAME_SIZE, "%s-%s.%u", key->task, key->alloc, key->generation));
    for (char *at = to; *at != '\0'; at++) {
        if (!isalnum((unsigned char)*at) && (at == to || strchr("_.-", *at) == NULL))
            *at = at == to ? 't' : '_';
    }
}

json_t *container_labels(const char *node_mark, const struct driver_key *key)
{
    char generation[16];

    check(text_format(generation, sizeof(generation), "%u", key->generation));
    json_t *labels = json_pack("{s:s, s:s, s:s, s:s}", LABEL_NODE, node_mark, LABEL_ALLOC,
                               key->alloc, LABEL_TASK, key->task, LABEL_GENERATION, generation);
    check(labels != NULL);
    return labels;
}

bool container_key(const json_t *labels, const char *node_mark, struct driver_key *ret_key)
{
    const char *node = json_string_value(json_object_get(labels, LABEL_NODE));
    const char *alloc = json_string_value(json_object_get(labels, LABEL_ALLOC));
    const char *task = json_string_value(json_object_get(labels, LABEL_TASK));
    const char *generation = json_string_value(json_object_get(labels, LABEL_GENERATION));
    char name[KEY_NAME_SIZE];

    return node != NULL && alloc != NULL && task != NULL && generation != NULL &&
           text_equal(node, node_mark) &&
           text_format(name, sizeof(name), "%s.%s.%s", alloc, task, generation) &&
           key_from_name(name, ret_key);
}

void sharer_name(const struct driver_key *key, char to[SHARER_NAME_SIZE])
{
    char name[CONTAINER_NAME_SIZE];

    container_name(key, name);
    check(text_format(to, SHARER_NAME_SIZE, "%s.net", name));
}

json_t *sharer_labels(const char *node_mark, const struct driver_key *key)
{
    json_t *labels = container_labels(node_mark, key);

    check(json_object_set_new(labels, LABEL_NETWORK, json_string("")) == 0);
    return labels;
}

bool labels_are_sharers(const json_t *labels)
{
    return json_object_get(labels, LABEL_NETWORK) != NULL;
}
