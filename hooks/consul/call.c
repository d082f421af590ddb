/* One call of the agent of Consul. */
#include "hooks/consul/part.h"

#include <stdlib.h>
#include <string.h>

enum {
    ANSWER_BYTES_MAX = 32 << 20, /* some ten thousand services */
    TOKEN_HEADER_SIZE = 512,
};

/* Ids have letters, digits, "-" and "_", but those of others may have anything. */
bool consul_escape(char *to, size_t size, const char *name)
{
    bool fits = true;

    for (; *name != '\0' && fits; name++) {
        char one[4];
        unsigned char c = (unsigned char)*name;
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '-' || c == '_' || c == '.';

        (void)text_format(one, sizeof(one), plain ? "%c" : "%%%02X", c); /* fits */
        fits = text_append(to, size, one);
    }
    return fits;
}

void consul_send(const struct consul_config *config, const struct consul_request *call,
                 void (*cb)(void *ctx, const struct http_reply *reply), void *ctx,
                 struct http_request **ret_request)
{
    char token_header[TOKEN_HEADER_SIZE], url[CONSUL_URL_SIZE];
    const char *headers[] = {call->token[0] == '\0' ? NULL : token_header, NULL};
    char *text = call->body == NULL ? NULL : json_dumps(call->body, JSON_COMPACT);
    struct http_call request = {
        .method = call->method,
        .url = url,
        .unix_socket = config->unix_socket,
        .trust = &config->trust,
        .headers = headers,
        .body = text,
        .body_length = text == NULL ? 0 : strlen(text),
        .timeout_ms = config->timeout_ms,
        .body_bytes_max = ANSWER_BYTES_MAX,
        .secret = call->secret,
        .cb = cb,
        .ctx = ctx,
    };
    struct err err = {0};

    check(call->body == NULL || text != NULL);
    bool fits =
        text_format(token_header, sizeof(token_header), "X-Consul-Token: %s", call->token) &&
        text_format(url, sizeof(url), "%s%s", config->url, call->path);
    *ret_request = fits ? http_start(config->loop, &request, &err) : NULL;
    explicit_bzero(token_header, sizeof(token_header));
    if (text != NULL && call->secret)
        explicit_bzero(text, strlen(text));
    free(text);
    if (*ret_request == NULL) {
        struct http_reply none = {.error = err};

        if (!fits)
            (void)err_set(&none.error, ERR_LIMIT, "the path of a call is too long");
        cb(ctx, &none);
    }
}

bool consul_failed(const struct http_reply *reply, char *to, size_t size)
{
    if (reply->status == 200)
        return false;
    if (reply->status == 0)
        (void)text_copy(to, size, reply->error.text); /* cut if too long, as below */
    else
        (void)text_format(to, size, "%d %.150s", reply->status, reply->body);
    return true;
}
