/*
 * A connection that libcurl makes and leaves to its caller, for what follows a request by hand: a
 * WebSocket.  Whatever a call can be made by leads here, too.
 */
#include "io/http.h"
#include "io/net/curl_library.h"
#include "io/net/curl_result.h"

#include <stdlib.h>
#include <string.h>

enum {
    CONNECT_TIMEOUT_MS = 10 * 1000,
    CHUNK_SIZE = 16 << 10, /* a record of TLS */
};

/* A TLS library may ask for what it has not sent to be given again from the same place and as long
 * as it was (OpenSSL does, and refuses anything else for good): so it is kept in the chunk. */
struct http_line {
    CURL *easy;
    curl_socket_t fd;
    size_t pending; /* bytes of the chunk that were tried; 0: none */
    char chunk[CHUNK_SIZE];
};

int http_line_open(const struct http_call *call, struct http_line **ret_line, struct err *err)
{
    char said[CURL_ERROR_SIZE] = "";
    int code = curl_library_load(err);

    if (code != 0)
        return code;
    struct http_line *line = calloc(1, sizeof(*line));
    check(line != NULL);
    line->easy = curl_library.easy_init();
    check(line->easy != NULL);
    (void)curl_library.easy_setopt(line->easy, CURLOPT_URL, call->url); /* options we know exist */
    (void)curl_library.easy_setopt(line->easy, CURLOPT_PROTOCOLS_STR, "http,https");
    (void)curl_library.easy_setopt(line->easy, CURLOPT_CONNECT_ONLY, 1L);
    (void)curl_library.easy_setopt(line->easy, CURLOPT_NOSIGNAL, 1L);
    (void)curl_library.easy_setopt(line->easy, CURLOPT_PROXY, "");
    (void)curl_library.easy_setopt(line->easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    (void)curl_library.easy_setopt(line->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    (void)curl_library.easy_setopt(line->easy, CURLOPT_ERRORBUFFER, said);
    curl_library_trust(line->easy, call->trust);
    if (call->unix_socket != NULL)
        (void)curl_library.easy_setopt(line->easy, CURLOPT_UNIX_SOCKET_PATH, call->unix_socket);
    CURLcode result = curl_library.easy_perform(line->easy);
    if (result == CURLE_OK)
        result = curl_library.easy_getinfo(line->easy, CURLINFO_ACTIVESOCKET, &line->fd);
    (void)curl_library.easy_setopt(line->easy, CURLOPT_ERRORBUFFER, NULL);
    if (result != CURLE_OK) {
        http_line_close(line);
        return err_set(err, curl_result_code(result), "%s",
                       said[0] != '\0' ? said : curl_library.easy_strerror(result));
    }
    *ret_line = line;
    return 0;
}

int http_line_fd(const struct http_line *line)
{
    return line->fd;
}

static int ended(CURLcode result)
{
    return result == CURLE_OK ? 0 : result == CURLE_AGAIN ? ERR_AGAIN : ERR_IO;
}

int http_line_send(struct http_line *line, const void *bytes, size_t length, size_t *ret_length)
{
    *ret_length = 0;
    if (line->pending == 0) {
        line->pending = length < sizeof(line->chunk) ? length : sizeof(line->chunk);
        memcpy(line->chunk, bytes, line->pending);
    }
    check(length >= line->pending);
    int code = ended(curl_library.easy_send(line->easy, line->chunk, line->pending, ret_length));
    if (code != ERR_AGAIN)
        line->pending = 0;
    return code;
}

int http_line_recv(struct http_line *line, void *bytes, size_t size, size_t *ret_length)
{
    return ended(curl_library.easy_recv(line->easy, bytes, size, ret_length));
}

void http_line_close(struct http_line *line)
{
    if (line == NULL)
        return;
    curl_library.easy_cleanup(line->easy);
    free(line);
}
