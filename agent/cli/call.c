/*
 * Talking with the agent: one HTTP call after the other on a loop of our own.
 *
 * Every failure is said in one line that tells what to do: no agent there, a refusal in the agent's
 * own words, an answer that cannot be understood.
 */
#include "agent/cli/cli.h"

#include "io/http.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    CALL_TIMEOUT_MS = 11 * 60 * 1000, /* the agent answers a blocking query within 10 min */
    BODY_MAX = 64 << 20,
    REFUSAL_MAX = 4096,
    DENIED = 403,
};

struct call {
    struct loop *loop;
    bool (*on_data)(void *ctx, const char *bytes, size_t length);
    void *ctx;
    bool stopped; /* by on_data */
    int status;
    struct err err;
    struct cli_reply reply;
};

void cli_close(struct cli *cli)
{
    if (cli->loop != NULL)
        loop_free(cli->loop);
    cli->loop = NULL;
}

/* --- paths --- */

static size_t append_escaped(char *to, size_t size, const char *text)
{
    size_t used = 0;

    for (; *text != '\0' && used + 4 < size; text++) {
        unsigned char c = (unsigned char)*text;
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     strchr("-._~", c) != NULL;

        used += (size_t)snprintf(to + used, size - used, plain ? "%c" : "%%%02X", c);
    }
    to[used] = '\0';
    return used;
}

const char *cli_path(const struct cli *cli, char to[CLI_URL_SIZE], const char *format, ...)
{
    va_list arguments;
    size_t used = 0;
    bool query = strchr(format, '?') != NULL;

    va_start(arguments, format);
    for (const char *at = format; *at != '\0' && used + 4 < CLI_URL_SIZE; at++) {
        if (at[0] == '%' && at[1] == 's') {
            used += append_escaped(to + used, CLI_URL_SIZE - used, va_arg(arguments, const char *));
            at++;
        } else {
            to[used++] = *at;
        }
    }
    va_end(arguments);
    to[used] = '\0';
    if (cli->namespace != NULL) {
        (void)text_append(to, CLI_URL_SIZE, query ? "&namespace=" : "?namespace="); /* else the */
        used = strlen(to);                                                          /* call fails */
        (void)append_escaped(to + used, CLI_URL_SIZE - used, cli->namespace);
    }
    return to;
}

bool cli_query(char path[CLI_URL_SIZE], const char *name, const char *value)
{
    const char *begin = strchr(path, '?') == NULL ? "?" : "&";
    size_t need = strlen(path) + strlen(begin) + strlen(name) + strlen("=") + 3 * strlen(value);

    if (need + 4 >= CLI_URL_SIZE)
        return false;
    (void)text_append(path, CLI_URL_SIZE, begin); /* there is room, also if all is escaped */
    (void)text_append(path, CLI_URL_SIZE, name);
    (void)text_append(path, CLI_URL_SIZE, "=");
    size_t used = strlen(path);
    (void)append_escaped(path + used, CLI_URL_SIZE - used, value);
    return true;
}

/* --- where the agent is --- */

enum { WHOLE_URL_SIZE = CLI_URL_SIZE + 256 };

/* The UNIX socket that the agent is at, NULL: none. */
static const char *socket_of(const struct cli *cli)
{
    static const char scheme[] = "unix://";

    return text_starts_with(cli->address, scheme) ? cli->address + strlen(scheme) : NULL;
}

/* Where PATH is at the agent: a URL, and the UNIX socket that leads there, NULL: none. */
static int find_agent(const struct cli *cli, const char *path, char url[WHOLE_URL_SIZE],
                      const char **ret_socket)
{
    const char *address = socket_of(cli) != NULL ? "http://localhost" : cli->address;
    size_t length = strlen(address);

    while (length > 0 && address[length - 1] == '/')
        length--;
    *ret_socket = socket_of(cli);
    if (text_format(url, WHOLE_URL_SIZE, "%s%.*s%s",
                    strstr(address, "://") == NULL ? "http://" : "", (int)length, address, path))
        return 0;
    return cli_fail(CLI_USAGE, "the address or an argument is too long");
}

static int fail_unanswered(const struct cli *cli)
{
    if (socket_of(cli) != NULL && access(socket_of(cli), W_OK) != 0 && errno == EACCES)
        return cli_fail(
            CLI_UNREACHABLE,
            "you may not connect to %s: who may is in its owner, its group and its mode",
            cli->address);
    return cli_fail(CLI_UNREACHABLE,
                    "no agent answers at %s: start one with `cairn agent -data-dir DIR`, or "
                    "name another one with -address",
                    cli->address);
}

int cli_dial(struct cli *cli, struct http_line **ret_line, char ret_host[256])
{
    char url[WHOLE_URL_SIZE];
    struct http_call call = {.url = url, .trust = &cli->trust};
    struct err err = {0};
    int status = find_agent(cli, "", url, &call.unix_socket);

    if (status != 0)
        return status;
    const char *host = strstr(url, "://") + strlen("://");
    if (!text_format(ret_host, 256, "%.*s", (int)strcspn(host, "/"), host))
        return cli_fail(CLI_USAGE, "the address is too long");
    int code = http_line_open(&call, ret_line, &err);
    if (code == ERR_AGAIN)
        return fail_unanswered(cli);
    return code == 0 ? 0 : cli_fail(CLI_UNREACHABLE, "%s: %s", cli->address, err.text);
}

/* --- one call --- */

static bool on_data(void *ctx, const char *bytes, size_t length)
{
    struct call *call = ctx;

    call->stopped = !call->on_data(call->ctx, bytes, length);
    return !call->stopped;
}

static void on_reply(void *ctx, const struct http_reply *reply)
{
    struct call *call = ctx;
    char index[24];

    call->status = reply->status;
    call->err = reply->error;
    call->reply.status = reply->status;
    call->reply.body = malloc(reply->body_length + 1);
    check(call->reply.body != NULL);
    if (reply->body_length > 0)
        memcpy(call->reply.body, reply->body, reply->body_length);
    call->reply.body[reply->body_length] = '\0';
    call->reply.length = reply->body_length;
    if (reply->status != 0 && http_reply_header(reply, "X-Nomad-Index", index, sizeof(index)))
        (void)text_to_u64(index, &call->reply.index); /* 0 if it is none */
    loop_stop(call->loop);
}

static int fail_call(const struct cli *cli, const struct call *call)
{
    size_t length = call->reply.length;

    if (call->status == 0 && call->err.code == ERR_AGAIN)
        return fail_unanswered(cli);
    if (call->status == 0 && text_starts_with(cli->address, "https://") &&
        cli->trust.cert_file == NULL && call->err.code == ERR_IO)
        return cli_fail(CLI_UNREACHABLE, "%s (agents may ask for -client-cert and -client-key)",
                        call->err.text);
    if (call->status == 0)
        return cli_fail(CLI_UNREACHABLE, "%s", call->err.text);
    while (length > 0 && call->reply.body[length - 1] == '\n')
        length--;
    if (length == 0 || call->reply.body[0] == '\0')
        return cli_fail(CLI_FAILED, "the agent at %s answered with status %d", cli->address,
                        call->status);
    return cli_fail(CLI_FAILED, "%.*s", (int)(length > REFUSAL_MAX ? REFUSAL_MAX : length),
                    call->reply.body);
}

static int run_call(struct cli *cli, const char *method, const char *path, const json_t *body,
                    struct call *call)
{
    char url[WHOLE_URL_SIZE];
    const char *unix_socket;
    char *text = body != NULL ? json_dumps(body, JSON_COMPACT) : NULL;
    const char *headers[4] = {NULL};
    size_t headers_count = 0;
    struct err err = {0};

    int status = find_agent(cli, path, url, &unix_socket);
    if (status != 0) {
        free(text);
        return status;
    }
    if (text != NULL)
        headers[headers_count++] = "Content-Type: application/json";
    if (cli->token[0] != '\0')
        headers[headers_count++] = cli->token;
    if (cli->secrets[0] != '\0')
        headers[headers_count++] = cli->secrets;
    if (cli->loop == NULL)
        cli->loop = loop_new();
    call->loop = cli->loop;
    struct http_call http = {
        .method = method,
        .url = url,
        .unix_socket = unix_socket,
        .trust = &cli->trust,
        .headers = headers,
        .body = text,
        .body_length = text != NULL ? strlen(text) : 0,
        .timeout_ms = call->on_data != NULL   ? (uint64_t)INT32_MAX
                      : cli->patience_ms != 0 ? cli->patience_ms
                                              : CALL_TIMEOUT_MS,
        .body_bytes_max = call->on_data != NULL ? SIZE_MAX / 2 : BODY_MAX,
        .on_data = call->on_data != NULL ? on_data : NULL,
        .cb = on_reply,
        .ctx = call,
    };
    struct http_request *request = http_start(cli->loop, &http, &err);
    free(text);
    if (request == NULL)
        return cli_fail(CLI_FAILED, "%s", err.text);
    loop_run(cli->loop);
    if (call->stopped || (call->status >= 200 && call->status < 300))
        return 0;
    status = fail_call(cli, call);
    cli->was_denied = cli->was_denied || call->status == DENIED;
    free(call->reply.body);
    call->reply.body = NULL;
    return status;
}

int cli_call(struct cli *cli, const char *method, const char *path, const json_t *body,
             struct cli_reply *ret_reply)
{
    struct call call = {0};
    int status = run_call(cli, method, path, body, &call);

    if (status == 0)
        *ret_reply = call.reply;
    return status;
}

int cli_stream(struct cli *cli, const char *path,
               bool (*on_bytes)(void *ctx, const char *bytes, size_t length), void *ctx)
{
    struct call call = {.on_data = on_bytes, .ctx = ctx};
    int status = run_call(cli, "GET", path, NULL, &call);

    if (status == 0)
        free(call.reply.body);
    return status;
}

/* --- JSON --- */

static int call_json(struct cli *cli, const char *method, const char *path, const json_t *body,
                     json_t **ret_json, uint64_t *ret_index)
{
    struct cli_reply reply;
    json_error_t error;
    int status = cli_call(cli, method, path, body, &reply);

    if (status != 0)
        return status;
    json_t *json = reply.length == 0
                       ? json_null()
                       : json_loadb(reply.body, reply.length, JSON_DECODE_ANY, &error);
    free(reply.body);
    if (json == NULL)
        return cli_fail(CLI_FAILED, "%s answered something that is no JSON (%s): is it an agent?",
                        cli->address, error.text);
    if (ret_index != NULL)
        *ret_index = reply.index;
    *ret_json = json;
    return 0;
}

int cli_get(struct cli *cli, const char *path, json_t **ret_json, uint64_t *ret_index)
{
    return call_json(cli, "GET", path, NULL, ret_json, ret_index);
}

int cli_put(struct cli *cli, const char *path, const json_t *body, json_t **ret_json)
{
    return call_json(cli, "PUT", path, body, ret_json, NULL);
}
