/*
 * The HTTP client: libcurl's multi interface on our loop.
 *
 * The library's sockets are watched and its one timer armed as it asks for; when nothing is in
 * flight nothing is armed.
 *
 * Invariant: the callback of a request comes exactly once, never from inside http_start, and
 * after it the request does not exist for the caller.  While the library is on the stack
 * (`inside`) its handles cannot be added or taken away, so requests wait for the next turn then.
 */
#include "io/http.h"

#include "io/loop/guest.h"
#include "io/net/buffer.h"
#include "io/net/curl_library.h"
#include "io/net/curl_result.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
    TIMEOUT_DEFAULT_MS = 60 * 1000,
    BODY_DEFAULT_MAX = 64 << 20,
    HEADERS_MAX = 64 << 10,
    CONNECTIONS_KEPT = 16, /* idle, for the next request */
    CONNECT_TIMEOUT_MS = 10 * 1000,
};

/* --- requests --- */

struct http_client; /* two for each loop: of calls that last or not */

struct http_request {
    struct http_client *client;
    struct http_request *next, **link; /* in the client's list */
    CURL *easy;                        /* NULL until started */
    struct curl_slist *headers;
    char *method, *url, *unix_socket, *body; /* owned copies */
    size_t body_length, body_bytes_max, body_received;
    uint64_t timeout_ms;
    uint32_t redirects_max;
    const struct http_trust *trust;
    bool secret;
    bool (*on_data)(void *ctx, const char *bytes, size_t length);
    void (*cb)(void *ctx, const struct http_reply *reply);
    void *ctx;
    bool added;     /* with the library; before that it waits for the next turn */
    bool delivered; /* its callback has been called; waits for the library to let go */
    struct buffer reply_headers, reply_body;
    struct err error; /* found by us while the library ran */
};

struct http_client {
    struct loop_guest guest;
    struct loop *loop;
    CURLM *multi;
    struct io_timer timer;       /* the library's */
    struct io_before_sleep turn; /* ours: requests to start or to bury */
    unsigned inside;
    struct http_request *requests, **requests_end; /* in the order of http_start */
};

static void request_free(struct http_request *request)
{
    if (request->easy != NULL)
        curl_library.easy_cleanup(request->easy);
    curl_library.slist_free_all(request->headers);
    *request->link = request->next;
    if (request->next != NULL)
        request->next->link = request->link;
    else
        request->client->requests_end = request->link;
    buffer_close(&request->reply_headers);
    buffer_close(&request->reply_body);
    free(request->method);
    free(request->url);
    free(request->unix_socket);
    if (request->secret)
        explicit_bzero(request->body, request->body_length);
    free(request->body);
    free(request);
}

static void plan_turn(struct http_client *client);
static void client_close(struct loop_guest *guest);

/* The library is asked for nothing more for REQUEST. */
static void bury(struct http_request *request)
{
    if (request->client->inside > 0) {
        plan_turn(request->client);
        return;
    }
    if (request->added)
        (void)curl_library.multi_remove_handle(request->client->multi,
                                               request->easy); /* it is there */
    request_free(request);
}

static void deliver(struct http_request *request, int status)
{
    struct http_reply reply = {.status = status,
                               .body = buffer_text(&request->reply_body),
                               .body_length = buffer_length(&request->reply_body),
                               .headers = buffer_text(&request->reply_headers),
                               .error = request->error};

    check(!request->delivered);
    request->delivered = true;
    request->cb(request->ctx, &reply);
    bury(request);
}

/* --- while the library runs --- */

static void fail_in_callback(struct http_request *request, int code, const char *text)
{
    if (request->error.code == 0)
        (void)err_set(&request->error, code, "%s", text); /* told when the library gives up */
}

static long status_of(struct http_request *request)
{
    long status = 0;

    (void)curl_library.easy_getinfo(request->easy, CURLINFO_RESPONSE_CODE, &status); /* 0 if none */
    return status;
}

static size_t on_header(char *bytes, size_t size, size_t count, void *ctx)
{
    struct http_request *request = ctx;
    size_t length = size * count;

    if (length >= 5 && memcmp(bytes, "HTTP/", 5) == 0) {
        buffer_close(&request->reply_headers); /* an interim answer or a redirect went before */
        return length;
    }
    if (length <= 2)
        return length; /* the empty line */
    if (!buffer_append(&request->reply_headers, bytes, length, HEADERS_MAX)) {
        fail_in_callback(request, ERR_LIMIT, "the headers of the answer are too large");
        return 0;
    }
    return length;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *ctx)
{
    struct http_request *request = ctx;
    size_t length = size * count;

    if (request->delivered)
        return 0;
    if (length > request->body_bytes_max - request->body_received) {
        fail_in_callback(request, ERR_LIMIT, "the answer is too large");
        return 0;
    }
    request->body_received += length;
    if (request->on_data != NULL && status_of(request) / 100 == 2) {
        bool more = request->on_data(request->ctx, bytes, length);
        if (!more)
            fail_in_callback(request, ERR_CANCELED, "canceled");
        return more && !request->delivered ? length : 0;
    }
    if (!buffer_append(&request->reply_body, bytes, length, request->body_bytes_max)) {
        fail_in_callback(request, ERR_LIMIT, "no memory for the answer");
        return 0;
    }
    return length;
}

/* Sockets of the library are close-on-exec at birth, too. */
static curl_socket_t on_open_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *address)
{
    (void)ctx;
    (void)purpose;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static void act(struct http_client *client, curl_socket_t fd, int what);

/* One socket of the library's. */
struct wanted_socket {
    struct io_watch watch;
    struct http_client *client;
};

static void on_socket_ready(struct io_watch *watch, int events)
{
    struct wanted_socket *wanted = watch->ctx;

    act(wanted->client, watch->fd,
        ((events & IO_READABLE) != 0 ? CURL_CSELECT_IN : 0) |
            ((events & IO_WRITABLE) != 0 ? CURL_CSELECT_OUT : 0));
}

static int on_socket_wanted(CURL *easy, curl_socket_t fd, int what, void *ctx, void *socket_ctx)
{
    struct http_client *client = ctx;
    struct wanted_socket *wanted = socket_ctx;
    (void)easy;

    if (what == CURL_POLL_REMOVE) {
        if (wanted != NULL)
            io_watch_stop(&wanted->watch);
        free(wanted);
        return 0;
    }
    if (wanted == NULL) {
        wanted = calloc(1, sizeof(*wanted));
        check(wanted != NULL);
        wanted->client = client;
        (void)curl_library.multi_assign(client->multi, fd,
                                        wanted); /* fd is known: it was just named */
    }
    io_watch_start(client->loop, &wanted->watch, fd,
                   ((what & CURL_POLL_IN) != 0 ? IO_READABLE : 0) |
                       ((what & CURL_POLL_OUT) != 0 ? IO_WRITABLE : 0),
                   on_socket_ready, wanted);
    return 0;
}

static void on_timer(struct io_timer *timer)
{
    act(timer->ctx, CURL_SOCKET_TIMEOUT, 0);
}

static int on_timer_wanted(CURLM *multi, long delay_ms, void *ctx)
{
    struct http_client *client = ctx;
    (void)multi;

    if (delay_ms < 0)
        io_timer_stop(&client->timer);
    else
        io_timer_start(client->loop, &client->timer, loop_now_ms() + (uint64_t)delay_ms, on_timer,
                       client);
    return 0;
}

/* --- results --- */

static void describe(struct http_request *request, CURLcode result)
{
    struct url_shown shown = url_shown(request->url);
    long number = 0;

    if (request->error.code != 0)
        return;
    (void)err_set(&request->error, curl_result_code(result), "%s %.*s: %s", request->method,
                  shown.place_length, shown.place,
                  curl_library.easy_strerror(result)); /* only to be filled */
    (void)curl_library.easy_getinfo(request->easy, CURLINFO_OS_ERRNO, &number); /* 0 if none */
    request->error.os = (int)number;
    request->error.recoverable = request->error.code == ERR_AGAIN ||
                                 request->error.code == ERR_TIMEOUT ||
                                 request->error.code == ERR_IO;
}

static void deliver_finished(struct http_client *client)
{
    const CURLMsg *message;
    int left;

    /* Callbacks may cancel others, so the library is asked anew each time. */
    while ((message = curl_library.multi_info_read(client->multi, &left)) != NULL) {
        struct http_request *request = NULL;
        CURLcode result = message->data.result;

        if (message->msg != CURLMSG_DONE)
            continue;
        (void)curl_library.easy_getinfo(message->easy_handle, CURLINFO_PRIVATE,
                                        &request); /* was set */
        if (request->delivered) {
            bury(request);
            continue;
        }
        if (result != CURLE_OK)
            describe(request, result);
        deliver(request, result == CURLE_OK ? (int)status_of(request) : 0);
    }
}

static void act(struct http_client *client, curl_socket_t fd, int what)
{
    int running;
    long delay_ms = -1;

    client->inside++;
    (void)curl_library.multi_socket_action(client->multi, fd, what, &running); /* results follow */
    client->inside--;
    deliver_finished(client);
    /* The library does not ask again for a timer that it believes to be armed, and the clock it
     * counts on is not the one that ours ran on. */
    if (client->timer.slot == 0 &&
        curl_library.multi_timeout(client->multi, &delay_ms) == CURLM_OK && delay_ms >= 0)
        (void)on_timer_wanted(client->multi, delay_ms, client); /* always 0 */
}

/* --- starting --- */

/* True if the host of URL is this machine: no proxy can be meant. */
static bool is_loopback(const char *url)
{
    CURLU *parts = curl_library.url();
    char *host = NULL;
    bool loopback = false;

    check(parts != NULL);
    if (curl_library.url_set(parts, CURLUPART_URL, url, 0) == CURLUE_OK &&
        curl_library.url_get(parts, CURLUPART_HOST, &host, 0) == CURLUE_OK)
        loopback = strcasecmp(host, "localhost") == 0 || text_starts_with(host, "127.") ||
                   text_equal(host, "[::1]");
    curl_library.free(host);
    curl_library.url_cleanup(parts);
    return loopback;
}

static void set_body(struct http_request *request)
{
    CURL *easy = request->easy;

    if (strcasecmp(request->method, "HEAD") == 0) {
        (void)curl_library.easy_setopt(easy, CURLOPT_NOBODY, 1L); /* options we know exist */
        return;
    }
    bool sends = request->body_length > 0 || strcasecmp(request->method, "PUT") == 0 ||
                 strcasecmp(request->method, "POST") == 0;
    if (sends) {
        (void)curl_library.easy_setopt(easy, CURLOPT_POST, 1L);
        (void)curl_library.easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                                       (curl_off_t)request->body_length);
        (void)curl_library.easy_setopt(easy, CURLOPT_POSTFIELDS,
                                       request->body); /* borrowed: ours */
    }
    (void)curl_library.easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
}

/* Every option is one that the library has had since 7.85 (Debian 12 has 7.88), so that only
 * memory can be lacking; what it refuses shows as a failing request. */
static void set_options(struct http_request *request)
{
    CURL *easy = request->easy;

    (void)curl_library.easy_setopt(easy, CURLOPT_PRIVATE, request);
    (void)curl_library.easy_setopt(easy, CURLOPT_URL, request->url);
    (void)curl_library.easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    (void)curl_library.easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    (void)curl_library.easy_setopt(easy, CURLOPT_FOLLOWLOCATION,
                                   request->redirects_max > 0 ? 1L : 0L);
    (void)curl_library.easy_setopt(easy, CURLOPT_MAXREDIRS, (long)request->redirects_max);
    (void)curl_library.easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    (void)curl_library.easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    (void)curl_library.easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)request->timeout_ms);
    (void)curl_library.easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    (void)curl_library.easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
    (void)curl_library.easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    (void)curl_library.easy_setopt(easy, CURLOPT_HEADERDATA, request);
    (void)curl_library.easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    (void)curl_library.easy_setopt(easy, CURLOPT_WRITEDATA, request);
    (void)curl_library.easy_setopt(easy, CURLOPT_HTTPHEADER, request->headers);
    curl_library_trust(easy, request->trust);
    if (request->unix_socket != NULL)
        (void)curl_library.easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, request->unix_socket);
    if (request->unix_socket != NULL || is_loopback(request->url))
        (void)curl_library.easy_setopt(easy, CURLOPT_PROXY, "");
    set_body(request);
}

static void start_request(struct http_request *request)
{
    struct http_client *client = request->client;

    if (request->error.code != 0) { /* found out by http_start */
        deliver(request, 0);
        return;
    }
    request->easy = curl_library.easy_init();
    check(request->easy != NULL);
    set_options(request);
    request->added = true;
    check(curl_library.multi_add_handle(client->multi, request->easy) == CURLM_OK);
}

static bool needs_turn(const struct http_request *request)
{
    return !request->added || request->delivered;
}

static bool needs_one(const struct http_client *client)
{
    for (const struct http_request *at = client->requests; at != NULL; at = at->next) {
        if (needs_turn(at))
            return true;
    }
    return false;
}

/* Comes in the iteration in which a request is made, so that none is lost before it is sent. */
static bool on_turn(void *ctx)
{
    struct http_client *client = ctx;
    size_t count = 0; /* those that callbacks add have a turn of their own */

    for (struct http_request *at = client->requests; at != NULL; at = at->next)
        count += needs_turn(at) ? 1 : 0;
    for (; count > 0; count--) {
        struct http_request *at = client->requests;

        /* From the front each time: a callback may have ended any of them. */
        while (at != NULL && !needs_turn(at))
            at = at->next;
        if (at == NULL)
            break;
        if (at->delivered)
            bury(at);
        else
            start_request(at);
    }
    /* A UNIX socket connects at once.  What uploads over TCP begins with the library's own timer:
     * begun here, 7.88 keeps a descriptor of one that is refused (test/io/net/test_room.c). */
    if (client->guest.close != client_close)
        act(client, CURL_SOCKET_TIMEOUT, 0);
    if (needs_one(client))
        return true;
    io_before_sleep_stop(&client->turn);
    return false;
}

static void plan_turn(struct http_client *client)
{
    if (client->turn.loop == NULL)
        io_before_sleep_start(client->loop, &client->turn, on_turn, client);
}

static void client_close(struct loop_guest *guest)
{
    struct http_client *client = (struct http_client *)(void *)guest; /* its first member */

    while (client->requests != NULL) {
        if (client->requests->delivered)
            bury(client->requests);
        else
            http_cancel(client->requests);
    }
    (void)curl_library.multi_cleanup(client->multi); /* nothing is in it any more */
    io_timer_stop(&client->timer);
    io_before_sleep_stop(&client->turn);
    free(client);
}

/* What tells clients from each other: calls to a peer that hangs are in nobody's way, and who lasts
 * is waited for by none that does not. */
static void client_lasting_close(struct loop_guest *guest)
{
    client_close(guest);
}

static struct http_client *client_of(struct loop *loop, const struct http_call *call)
{
    void (*close)(struct loop_guest * guest) = call->lasts ? client_lasting_close : client_close;
    struct http_client *client = (struct http_client *)(void *)loop_guest_find(loop, close);

    if (client != NULL)
        return client;
    client = calloc(1, sizeof(*client));
    check(client != NULL);
    client->guest.close = close;
    client->loop = loop;
    client->requests_end = &client->requests;
    client->multi = curl_library.multi_init();
    check(client->multi != NULL);
    /* Options that exist, so that only memory can be lacking. */
    (void)curl_library.multi_setopt(client->multi, CURLMOPT_SOCKETFUNCTION, on_socket_wanted);
    (void)curl_library.multi_setopt(client->multi, CURLMOPT_SOCKETDATA, client);
    (void)curl_library.multi_setopt(client->multi, CURLMOPT_TIMERFUNCTION, on_timer_wanted);
    (void)curl_library.multi_setopt(client->multi, CURLMOPT_TIMERDATA, client);
    (void)curl_library.multi_setopt(client->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS,
                                    call->lasts ? (long)HTTP_LASTING_MAX
                                                : (long)HTTP_CONNECTIONS_MAX);
    (void)curl_library.multi_setopt(client->multi, CURLMOPT_MAXCONNECTS, (long)CONNECTIONS_KEPT);
    loop_guest_add(loop, &client->guest);
    return client;
}

static char *copy_text(const char *text)
{
    char *copy = text == NULL ? NULL : strdup(text);

    check(text == NULL || copy != NULL);
    return copy;
}

static void add_header(struct http_request *request, const char *line)
{
    struct curl_slist *longer = curl_library.slist_append(request->headers, line);

    check(longer != NULL);
    request->headers = longer;
}

static bool names_header(const char *line, const char *name)
{
    return strncasecmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ':';
}

/* A line break in a header, URL or method would let its author write the rest of the request. */
static bool is_one_line(const char *text)
{
    return strpbrk(text, "\r\n") == NULL;
}

static void copy_headers(struct http_request *request, const char *const *headers)
{
    bool typed = false;

    for (size_t i = 0; headers != NULL && headers[i] != NULL; i++) {
        if (!is_one_line(headers[i]) || strchr(headers[i], ':') == NULL)
            (void)err_set(&request->error, ERR_INVALID, "header %zu is malformed",
                          i + 1); /* told later */
        typed |= names_header(headers[i], "Content-Type");
        add_header(request, headers[i]);
    }
    /* The library would wait a second for a "100 Continue" before it sends a large body, and call
     * every body a form. */
    add_header(request, "Expect:");
    if (!typed)
        add_header(request, "Content-Type:");
}

struct http_request *http_start(struct loop *loop, const struct http_call *call, struct err *err)
{
    check(call->cb != NULL);
    check(call->method != NULL);
    check(call->url != NULL);
    if (curl_library_load(err) != 0)
        return NULL;

    struct http_request *request = calloc(1, sizeof(*request));
    check(request != NULL);
    request->client = client_of(loop, call);
    request->method = copy_text(call->method);
    request->url = copy_text(call->url);
    request->unix_socket = copy_text(call->unix_socket);
    request->body = malloc(call->body_length + 1);
    check(request->body != NULL);
    if (call->body_length > 0)
        memcpy(request->body, call->body, call->body_length);
    request->body_length = call->body_length;
    request->body_bytes_max = call->body_bytes_max == 0 ? BODY_DEFAULT_MAX : call->body_bytes_max;
    request->timeout_ms = call->timeout_ms == 0 ? TIMEOUT_DEFAULT_MS : call->timeout_ms;
    request->redirects_max = call->redirects_max;
    request->trust = call->trust;
    request->secret = call->secret;
    request->on_data = call->on_data;
    request->cb = call->cb;
    request->ctx = call->ctx;
    if (!is_one_line(call->url) || !is_one_line(call->method) || call->method[0] == '\0')
        (void)err_set(&request->error, ERR_INVALID, "malformed method or URL"); /* told later */
    copy_headers(request, call->headers);

    request->link = request->client->requests_end;
    *request->link = request;
    request->client->requests_end = &request->next;
    plan_turn(request->client);
    return request;
}

void http_cancel(struct http_request *request)
{
    (void)err_set(&request->error, ERR_CANCELED, "canceled"); /* only to be filled */
    deliver(request, 0);
}

bool http_reply_header(const struct http_reply *reply, const char *name, char *to, size_t size)
{
    for (const char *at = reply->headers; *at != '\0';) {
        size_t length = strcspn(at, "\r\n");

        if (names_header(at, name)) {
            const char *value = at + strlen(name) + 1;
            value += strspn(value, " \t");
            size_t value_length = (size_t)(at + length - value);
            while (value_length > 0 && strchr(" \t", value[value_length - 1]) != NULL)
                value_length--;
            if (value_length >= size)
                return false;
            memcpy(to, value, value_length);
            to[value_length] = '\0';
            return true;
        }
        at += length;
        at += strspn(at, "\r\n");
    }
    return false;
}
