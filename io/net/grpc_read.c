/*
 * Reads an HTTP answer as one of gRPC: status and words from the trailers, the message from the
 * body.
 *
 * An error comes without a body, its trailers being the only headers, so the last line of a name is
 * what counts wherever it stands.  What the peer says wins over what HTTP says of it (gRPC over
 * HTTP/2, "HTTP2 Transport Mapping"; grpc-go internal/transport/http_util.go).
 *
 * Invariant: GRPC_OK only with a whole message; all else has an error.
 */
#include "io/net/grpc_read.h"

#include <errno.h>
#include <nettle/base64.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

const char *grpc_status_name(int status)
{
    static const char *const names[] = {
#define X(name, value, code) [value] = #name,
        GRPC_STATUS_LIST(X)
#undef X
    };

    check(status >= 0 && status < GRPC_STATUS_COUNT);
    return names[status];
}

static int code_of(enum grpc_status status)
{
    static const int codes[] = {
#define X(name, value, code) [value] = ERR_##code,
        GRPC_STATUS_LIST(X)
#undef X
    };

    return codes[status];
}

__attribute__((format(printf, 3, 4))) static void
fail(struct grpc_reply *reply, enum grpc_status status, const char *format, ...)
{
    char text[ERR_TEXT_SIZE];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments); /* cut is fine */
    va_end(arguments);
    text_whole(text);
    check(status != GRPC_OK);
    reply->status = status;
    int code = err_set(&reply->error, code_of(status), "%s", text);
    reply->error.recoverable =
        code == ERR_AGAIN || code == ERR_TIMEOUT || code == ERR_IO || code == ERR_FULL;
}

/* The value of the last header NAME, and its length; NULL if there is none. */
static const char *last_header(const char *headers, const char *name, size_t *ret_length)
{
    const char *found = NULL;
    size_t name_length = strlen(name);

    for (const char *at = headers; *at != '\0'; at += strspn(at, "\r\n")) {
        size_t length = strcspn(at, "\r\n");

        if (length > name_length && at[name_length] == ':' &&
            strncasecmp(at, name, name_length) == 0) {
            const char *end = at + length;
            for (found = at + name_length + 1; found < end && *found == ' '; found++)
                ;
            while (end > found && end[-1] == ' ')
                end--;
            *ret_length = (size_t)(end - found);
        }
        at += length;
    }
    return found;
}

static int digit_of(char hex)
{
    const char *digits = "0123456789abcdef", *at = memchr(digits, hex | 0x20, 16);

    return at == NULL ? -1 : (int)(at - digits);
}

/* Percent-decodes into TO; what is no escape stays as it is.  What a terminal or a log could take
 * for more than text is gone. */
static void decode(char to[GRPC_DETAIL_SIZE], const char *from, size_t length)
{
    size_t used = 0;

    for (size_t i = 0; i < length && used < GRPC_DETAIL_SIZE - 1; i++) {
        bool escape = from[i] == '%' && i + 2 < length && digit_of(from[i + 1]) >= 0 &&
                      digit_of(from[i + 2]) >= 0;
        int byte = escape ? digit_of(from[i + 1]) * 16 + digit_of(from[i + 2]) : from[i];

        to[used++] = byte == 0 ? '?' : (char)byte;
        i += escape ? 2 : 0;
    }
    to[used] = '\0';
    text_whole(to);
    text_clean(to);
}

static void read_status(struct grpc_reply *reply, const char *value, size_t length)
{
    char digits[4] = "";
    uint64_t number;

    if (length < sizeof(digits))
        memcpy(digits, value, length);
    bool is_known = text_to_u64(digits, &number) && number < GRPC_STATUS_COUNT;
    reply->answered = !is_known || number != GRPC_DEADLINE_EXCEEDED;
    if (!is_known)
        fail(reply, GRPC_UNKNOWN, "its status \"%.*s\" is none of gRPC",
             (int)(length < 20 ? length : 20), value);
    else if (number != GRPC_OK)
        fail(reply, (enum grpc_status)number, "%s%s%s", grpc_status_name((int)number),
             reply->detail[0] != '\0' ? ": " : "", reply->detail);
}

/* An answer of HTTP without a status of gRPC. */
static void read_http(struct grpc_reply *reply, int http)
{
    static const struct {
        int http;
        enum grpc_status status;
    } map[] = {
        {400, GRPC_INTERNAL},      {401, GRPC_UNAUTHENTICATED}, {403, GRPC_PERMISSION_DENIED},
        {404, GRPC_UNIMPLEMENTED}, {429, GRPC_UNAVAILABLE},     {502, GRPC_UNAVAILABLE},
        {503, GRPC_UNAVAILABLE},   {504, GRPC_UNAVAILABLE},
    };
    enum grpc_status status = GRPC_UNKNOWN;

    if (http == 200) {
        fail(reply, GRPC_INTERNAL, "its answer ended without a status");
        return;
    }
    for (size_t i = 0; i < COUNT_OF(map); i++) {
        if (map[i].http == http)
            status = map[i].status;
    }
    fail(reply, status, "it answered HTTP %d without a status of gRPC", http);
}

static void read_message(struct grpc_reply *reply, const char *body, size_t length)
{
    uint32_t announced = 0;

    for (size_t i = 1; i < GRPC_PREFIX_BYTES && i < length; i++)
        announced = announced << 8 | (unsigned char)body[i];
    if (length < GRPC_PREFIX_BYTES)
        fail(reply, GRPC_INTERNAL, "it said OK without a message");
    else if (body[0] != 0)
        fail(reply, GRPC_INTERNAL, "it compressed its message, which was not asked for");
    else if (length - GRPC_PREFIX_BYTES != announced)
        fail(reply, GRPC_INTERNAL, "it announced a message of %u bytes and sent %zu", announced,
             length - GRPC_PREFIX_BYTES);
    else {
        reply->message = body + GRPC_PREFIX_BYTES;
        reply->message_length = announced;
    }
}

/* No whole answer came. */
static void read_end(struct grpc_reply *reply, const struct http2_reply *http)
{
    const char *how = http->error.text;
    int os = http->error.os;

    switch (http->end) {
    case HTTP2_UNCONNECTED:
        reply->sent = false;
        if (os == ENOENT || os == ECONNREFUSED)
            fail(reply, GRPC_UNAVAILABLE, "nobody listens on its socket");
        else
            fail(reply, GRPC_UNAVAILABLE, "its socket cannot be reached: %s", how);
        break;
    case HTTP2_BROKEN_OFF:
        fail(reply, GRPC_UNAVAILABLE, "it closed the connection in the middle of the call");
        break;
    case HTTP2_RESET:
        fail(reply, GRPC_INTERNAL, "it broke the call off: %s", how);
        break;
    case HTTP2_NOT_TAKEN:
        reply->sent = false;
        fail(reply, GRPC_UNAVAILABLE, "it takes no more calls (%s)", how);
        break;
    case HTTP2_STRANGE:
        fail(reply, GRPC_INTERNAL, "what it sends is not HTTP/2: no gRPC server listens there");
        break;
    case HTTP2_UNRULY:
        fail(reply, GRPC_INTERNAL, "it does not keep to HTTP/2: %s", how);
        break;
    case HTTP2_WHOLE:
    case HTTP2_OURS:
        fail(reply, http->error.code == ERR_LIMIT ? GRPC_RESOURCE_EXHAUSTED : GRPC_INTERNAL, "%s",
             how);
        reply->error.code = http->error.code;
        break;
    }
    reply->error.os = os;
}

/* What comes with an error besides its words, in base64, with or without its padding. */
static void read_more(struct grpc_reply *reply, struct grpc_words *words, const char *value,
                      size_t length)
{
    struct base64_decode_ctx decoding;
    size_t used = sizeof(words->more);

    while (length > 0 && value[length - 1] == '=')
        length--;
    base64_decode_init(&decoding);
    if (length <= BASE64_ENCODE_RAW_LENGTH(sizeof(words->more) - 3) &&
        base64_decode_update(&decoding, &used, words->more, length, value) == 1) {
        reply->more = words->more;
        reply->more_length = used;
    }
}

void grpc_read(const struct http2_reply *http, struct grpc_words *words,
               struct grpc_reply *ret_reply)
{
    size_t length = 0;
    const char *value;
    char *detail = words->detail;

    *ret_reply = (struct grpc_reply){.sent = true, .detail = detail};
    detail[0] = '\0';
    if (http->end != HTTP2_WHOLE) {
        read_end(ret_reply, http);
        return;
    }
    value = last_header(http->headers, "grpc-message", &length);
    if (value != NULL)
        decode(detail, value, length);
    value = last_header(http->headers, "grpc-status-details-bin", &length);
    if (value != NULL)
        read_more(ret_reply, words, value, length);
    value = last_header(http->headers, "grpc-status", &length);
    if (value == NULL)
        read_http(ret_reply, http->status);
    else
        read_status(ret_reply, value, length);
    if (ret_reply->status == GRPC_OK)
        read_message(ret_reply, http->body, http->body_length);
    check((ret_reply->status == GRPC_OK) == (ret_reply->message != NULL));
    check((ret_reply->status == GRPC_OK) == (ret_reply->error.code == 0));
}
