/* Any answer of HTTP/2, read as one of gRPC: its status, its header lines and trailers, its body.
 */
#include "test/fuzz.h"

#include "io/net/grpc_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int statuses[] = {200, 200, 200, 0, 404, 500};
    struct fuzz_input input = {data, size};
    struct http2_reply http = {0};
    struct grpc_reply reply;
    const uint8_t *begin, *headers, *body;
    size_t begin_length, headers_length, body_length;
    struct grpc_words words;

    if (!fuzz_piece(&input, &begin, &begin_length) || begin_length == 0 ||
        !fuzz_piece(&input, &headers, &headers_length) || !fuzz_piece(&input, &body, &body_length))
        return 0;
    char *lines = malloc(headers_length + 1), *bytes = malloc(body_length);
    check(lines != NULL && (bytes != NULL || body_length == 0));
    memcpy(lines, headers, headers_length);
    lines[headers_length] = '\0';
    if (body_length > 0)
        memcpy(bytes, body, body_length); /* with its end where it is */
    http.status = statuses[begin[0] % COUNT_OF(statuses)];
    http.headers = lines;
    http.body = bytes;
    http.body_length = body_length;
    if (http.status == 0) {
        http.end = HTTP2_UNCONNECTED + begin[0] / COUNT_OF(statuses) % HTTP2_OURS;
        http.error.code = ERR_IO;
        (void)text_format(http.error.text, sizeof(http.error.text), "%s", lines);
    }
    grpc_read(&http, &words, &reply);
    check(text_is_utf8(words.detail, strlen(words.detail)));
    check(text_is_utf8(reply.error.text, strlen(reply.error.text)) || http.status == 0);
    check(implies(reply.answered, http.status != 0));
    if (reply.message != NULL)
        check((const char *)reply.message + reply.message_length == bytes + body_length);
    free(lines);
    free(bytes);
    return 0;
}
