/*
 * Resolving, connecting, shaking hands: each with a time, whatever is still under way when somebody
 * closes.  Addresses are tried one after the other, each with its share of the time that is left.
 * A name that is being looked up on the pool outlives who wanted it.
 */
#include "io/rpc/channel.h"

#include "io/host.h"
#include "io/scope.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
    PEM_BYTES_MAX = 1 << 20,
    HOST_SIZE = 256,
    PORT_SIZE = 8,
    NAME_OF_PEER_SIZE = HOST_SIZE + PORT_SIZE,
    ADDRESSES_MAX = 8, /* of a name that are tried */
};

static const char tls_follows = 4;

/* A name on its way through the pool. */
struct look_up {
    struct io_work work;
    struct channel *wants; /* NULL: nobody any more */
    char host[HOST_SIZE], port[PORT_SIZE];
    struct addrinfo *found;
    int failed; /* EAI_* */
};

struct channel {
    struct loop *loop;
    struct channel_calls calls;
    char peer[NAME_OF_PEER_SIZE]; /* as it was given, for texts */
    struct look_up *looks_up;
    struct addrinfo *found;
    const struct addrinfo *next; /* to be tried */
    unsigned left;               /* of them */
    struct err last;             /* what was wrong with the one before */
    uint64_t give_up_ms;
    int fd;
    struct io_watch watch;
    struct io_timer timer;
    bool up, shaking;
    gnutls_certificate_credentials_t credentials; /* NULL: no TLS */
    gnutls_session_t session;
    gnutls_typed_vdata_st wanted[2]; /* of the peer's certificate */
    unsigned wanted_count;
    char *server_name; /* owned; NULL: any */
};

/* Tells the failure; the channel may be gone afterwards. */
static void fail(struct channel *channel, const struct err *why)
{
    const struct err copy = *why;

    io_watch_stop(&channel->watch);
    io_timer_stop(&channel->timer);
    channel->calls.on_failed(channel->calls.ctx, &copy);
}

/* --- TLS --- */

static gnutls_datum_t datum_of(char *text, size_t length)
{
    return (gnutls_datum_t){.data = (unsigned char *)text, .size = (unsigned)length};
}

static int read_own(struct channel *channel, const struct rpc_tls *tls, struct err *err)
{
    scoped_string char *cert_text = NULL, *key_text = NULL;
    size_t cert_length, key_length;
    int code = file_read(tls->cert_file, PEM_BYTES_MAX, &cert_text, &cert_length, err);

    if (code == 0)
        code = file_read(tls->key_file, PEM_BYTES_MAX, &key_text, &key_length, err);
    if (code != 0)
        return err_wrap(err, "certificate");
    gnutls_datum_t cert = datum_of(cert_text, cert_length), key = datum_of(key_text, key_length);
    int failed =
        gnutls_certificate_set_x509_key_mem(channel->credentials, &cert, &key, GNUTLS_X509_FMT_PEM);
    explicit_bzero(key_text, key_length);
    return failed == 0 ? 0
                       : err_set(err, ERR_INVALID, "%s and %s are no certificate and its key: %s",
                                 tls->cert_file, tls->key_file, gnutls_strerror(failed));
}

static int read_authorities(struct channel *channel, const struct rpc_tls *tls, struct err *err)
{
    scoped_string char *text = NULL;
    size_t length;
    int code = file_read(tls->ca_file, PEM_BYTES_MAX, &text, &length, err);

    if (code != 0)
        return err_wrap(err, "certificates of authorities");
    gnutls_datum_t ca = datum_of(text, length);
    int count =
        gnutls_certificate_set_x509_trust_mem(channel->credentials, &ca, GNUTLS_X509_FMT_PEM);
    return count > 0 ? 0
                     : err_set(err, ERR_INVALID, "%s holds no certificate of an authority: %s",
                               tls->ca_file, count == 0 ? "it is empty" : gnutls_strerror(count));
}

static int prepare_tls(struct channel *channel, const struct rpc_tls *tls, struct err *err)
{
    check(gnutls_certificate_allocate_credentials(&channel->credentials) == 0);
    channel->wanted[channel->wanted_count++] = (gnutls_typed_vdata_st){
        .type = GNUTLS_DT_KEY_PURPOSE_OID, .data = (void *)(uintptr_t)GNUTLS_KP_TLS_WWW_SERVER};
    if (tls->server_name != NULL) {
        channel->server_name = strdup(tls->server_name);
        check(channel->server_name != NULL);
        channel->wanted[channel->wanted_count++] = (gnutls_typed_vdata_st){
            .type = GNUTLS_DT_DNS_HOSTNAME, .data = (unsigned char *)channel->server_name};
    }
    int code = read_own(channel, tls, err);
    return code == 0 ? read_authorities(channel, tls, err) : code;
}

/* The peer's certificate, as the library judges it; or what it says of ours. */
static int tls_error(struct channel *channel, int result, struct err *err)
{
    gnutls_datum_t text = {0};

    if (result == GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR &&
        gnutls_certificate_verification_status_print(
            gnutls_session_get_verify_cert_status(channel->session), GNUTLS_CRT_X509, &text, 0) ==
            0) {
        int length = (int)strlen((const char *)text.data);

        length -= length > 0 && text.data[length - 1] == ' '; /* behind its sentences */
        (void)err_set(err, ERR_REFUSED, "the certificate of %s: %.*s", channel->peer, length,
                      (const char *)text.data);
        gnutls_free(text.data);
        return err->code;
    }
    if (result == GNUTLS_E_FATAL_ALERT_RECEIVED || result == GNUTLS_E_WARNING_ALERT_RECEIVED)
        return err_set(err, ERR_REFUSED, "%s does not go on with TLS: %s", channel->peer,
                       gnutls_alert_get_name(gnutls_alert_get(channel->session)));
    return err_set(err, ERR_IO, "TLS with %s: %s", channel->peer, gnutls_strerror(result));
}

static void on_up(struct channel *channel)
{
    io_watch_stop(&channel->watch);
    io_timer_stop(&channel->timer);
    channel->shaking = false;
    channel->up = true;
    channel->calls.on_up(channel->calls.ctx);
}

static void on_watch(struct io_watch *watch, int events);

static void shake(struct channel *channel)
{
    struct err err = {0};
    int result = gnutls_handshake(channel->session);

    if (result == 0) {
        on_up(channel);
    } else if (gnutls_error_is_fatal(result) != 0) {
        (void)gnutls_alert_send_appropriate(channel->session, result); /* he may have gone */
        (void)tls_error(channel, result, &err);
        fail(channel, &err);
    } else {
        int wanted = gnutls_record_get_direction(channel->session) != 0 ? IO_WRITABLE : IO_READABLE;
        io_watch_start(channel->loop, &channel->watch, channel->fd, wanted, on_watch, channel);
    }
}

static void on_shaking_too_long(struct io_timer *timer)
{
    struct channel *channel = timer->ctx;
    struct err err = {0};

    (void)err_set(&err, ERR_TIMEOUT, "%s does not shake hands for TLS", channel->peer);
    fail(channel, &err);
}

static void begin_tls(struct channel *channel)
{
    struct err err = {0};

    if (send(channel->fd, &tls_follows, 1, MSG_NOSIGNAL) != 1) {
        (void)err_os(&err, ERR_IO, errno, "TLS with %s", channel->peer);
        fail(channel, &err);
        return;
    }
    check(gnutls_init(&channel->session, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL) == 0);
    check(gnutls_priority_set_direct(channel->session, "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2",
                                     NULL) == 0);
    check(gnutls_credentials_set(channel->session, GNUTLS_CRD_CERTIFICATE, channel->credentials) ==
          0);
    if (channel->server_name != NULL)
        check(gnutls_server_name_set(channel->session, GNUTLS_NAME_DNS, channel->server_name,
                                     strlen(channel->server_name)) == 0);
    gnutls_session_set_verify_cert2(channel->session, channel->wanted, channel->wanted_count, 0);
    gnutls_transport_set_int(channel->session, channel->fd);
    channel->shaking = true;
    io_timer_start(channel->loop, &channel->timer, loop_now_ms() + RPC_CONNECT_MS,
                   on_shaking_too_long, channel);
    shake(channel);
}

/* --- connecting --- */

static void try_next(struct channel *channel);

static void give_up_this(struct channel *channel)
{
    io_watch_stop(&channel->watch);
    io_timer_stop(&channel->timer);
    if (channel->fd >= 0)
        (void)close(channel->fd); /* nothing was said */
    channel->fd = -1;
    try_next(channel);
}

static void on_connecting_too_long(struct io_timer *timer)
{
    struct channel *channel = timer->ctx;

    (void)err_set(&channel->last, ERR_TIMEOUT, "%s does not answer", channel->peer);
    give_up_this(channel);
}

static void on_connected(struct channel *channel)
{
    const int on = 1;

    io_watch_stop(&channel->watch);
    io_timer_stop(&channel->timer);
    (void)setsockopt(channel->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)); /* a convenience */
    (void)setsockopt(channel->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* another one */
    if (channel->credentials == NULL)
        on_up(channel);
    else
        begin_tls(channel);
}

static void refuse_this(struct channel *channel, int number)
{
    (void)err_os(&channel->last, ERR_AGAIN, number, "%s cannot be connected to", channel->peer);
    give_up_this(channel);
}

static void on_watch(struct io_watch *watch, int events)
{
    struct channel *channel = watch->ctx;
    int number = 0;
    socklen_t size = sizeof(number);
    (void)events;

    if (channel->up)
        channel->calls.on_ready(channel->calls.ctx);
    else if (channel->shaking)
        shake(channel);
    else if (getsockopt(channel->fd, SOL_SOCKET, SO_ERROR, &number, &size) != 0 || number != 0)
        refuse_this(channel, number);
    else
        on_connected(channel);
}

/* Tries the next address, or tells that there is none; never from inside channel_open. */
static void try_next(struct channel *channel)
{
    const struct addrinfo *at = channel->next;
    uint64_t now_ms = loop_now_ms();

    if (at == NULL || channel->left == 0 || now_ms >= channel->give_up_ms) {
        fail(channel, &channel->last);
        return;
    }
    uint64_t share_ms = (channel->give_up_ms - now_ms) / channel->left--;
    channel->next = at->ai_next;
    channel->fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
    if (channel->fd < 0 ||
        (connect(channel->fd, at->ai_addr, at->ai_addrlen) != 0 && errno != EINPROGRESS)) {
        refuse_this(channel, errno);
        return;
    }
    io_timer_start(channel->loop, &channel->timer, now_ms + share_ms, on_connecting_too_long,
                   channel);
    io_watch_start(channel->loop, &channel->watch, channel->fd, IO_WRITABLE, on_watch, channel);
}

static void on_begin(struct io_timer *timer)
{
    try_next(timer->ctx);
}

static void use_addresses(struct channel *channel, struct addrinfo *found)
{
    channel->found = found;
    channel->next = found;
    for (const struct addrinfo *at = found; at != NULL && channel->left < ADDRESSES_MAX;
         at = at->ai_next)
        channel->left++;
}

/* --- names --- */

static int look_up_host(const char *host, const char *port, int flags, struct addrinfo **ret_found)
{
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV};

    return getaddrinfo(host, port, &hints, ret_found);
}

static void on_look_up(struct io_work *work)
{
    struct look_up *look_up = work->ctx;

    look_up->failed = look_up_host(look_up->host, look_up->port, 0, &look_up->found);
}

static void on_looked_up(struct io_work *work)
{
    struct look_up *look_up = work->ctx;
    struct channel *channel = look_up->wants;

    if (channel != NULL) {
        channel->looks_up = NULL;
        io_timer_stop(&channel->timer);
        if (look_up->failed == 0) {
            use_addresses(channel, look_up->found);
            look_up->found = NULL;
        } else {
            (void)err_set(&channel->last, ERR_AGAIN, "%s has no address: %s", channel->peer,
                          gai_strerror(look_up->failed));
        }
    }
    if (look_up->found != NULL)
        freeaddrinfo(look_up->found);
    free(look_up);
    if (channel != NULL)
        try_next(channel);
}

static void on_looking_up_too_long(struct io_timer *timer)
{
    struct channel *channel = timer->ctx;

    channel->looks_up->wants = NULL;
    channel->looks_up = NULL;
    (void)err_set(&channel->last, ERR_TIMEOUT, "no answer in time what the address of %s is",
                  channel->peer);
    fail(channel, &channel->last);
}

/* "host:port" or "[host]:port". */
static bool split_address(const char *address, char host[HOST_SIZE], char port[PORT_SIZE])
{
    const char *colon = strrchr(address, ':');
    uint64_t number;

    if (colon == NULL || !text_to_u64(colon + 1, &number) || number == 0 || number > UINT16_MAX ||
        !text_copy(port, PORT_SIZE, colon + 1))
        return false;
    size_t length = (size_t)(colon - address);
    bool is_bracketed = length >= 2 && address[0] == '[' && colon[-1] == ']';
    if (is_bracketed) {
        address++;
        length -= 2;
    }
    if (length == 0 || length >= HOST_SIZE ||
        (!is_bracketed && memchr(address, ':', length) != NULL))
        return false;
    return text_format(host, HOST_SIZE, "%.*s", (int)length, address);
}

static int find_host(struct channel *channel, const char *address, struct err *err)
{
    struct addrinfo *found = NULL;
    char host[HOST_SIZE], port[PORT_SIZE];

    if (!text_copy(channel->peer, sizeof(channel->peer), address) ||
        !split_address(address, host, port))
        return err_set(err, ERR_INVALID, "\"%.100s\" is no host and port", address);
    channel->give_up_ms = loop_now_ms() + RPC_CONNECT_MS;
    (void)err_set(&channel->last, ERR_TIMEOUT, "%s does not answer", channel->peer);
    if (look_up_host(host, port, AI_NUMERICHOST, &found) == 0) {
        use_addresses(channel, found);
        io_timer_start(channel->loop, &channel->timer, loop_now_ms(), on_begin, channel);
        return 0;
    }
    struct look_up *look_up = calloc(1, sizeof(*look_up));
    check(look_up != NULL);
    memcpy(look_up->host, host, sizeof(host));
    memcpy(look_up->port, port, sizeof(port));
    look_up->wants = channel;
    channel->looks_up = look_up;
    io_timer_start(channel->loop, &channel->timer, channel->give_up_ms, on_looking_up_too_long,
                   channel);
    io_work_submit(channel->loop, &look_up->work, on_look_up, on_looked_up, look_up);
    return 0;
}

/* --- the door --- */

struct channel *channel_open(struct loop *loop, const char *address, const struct rpc_tls *tls,
                             const struct channel_calls *calls, struct err *err)
{
    struct channel *channel = calloc(1, sizeof(*channel));

    check(channel != NULL);
    channel->loop = loop;
    channel->calls = *calls;
    channel->fd = -1;
    int code = tls == NULL ? 0 : prepare_tls(channel, tls, err);
    if (code == 0)
        code = find_host(channel, address, err);
    if (code == 0)
        return channel;
    channel_close(channel);
    return NULL;
}

void channel_close(struct channel *channel)
{
    if (channel == NULL)
        return;
    io_watch_stop(&channel->watch);
    io_timer_stop(&channel->timer);
    if (channel->looks_up != NULL)
        channel->looks_up->wants = NULL;
    if (channel->found != NULL)
        freeaddrinfo(channel->found);
    if (channel->up && channel->session != NULL)
        (void)gnutls_bye(channel->session, GNUTLS_SHUT_WR); /* he may have gone */
    if (channel->session != NULL)
        gnutls_deinit(channel->session);
    if (channel->credentials != NULL)
        gnutls_certificate_free_credentials(channel->credentials);
    if (channel->fd >= 0)
        (void)close(channel->fd); /* nothing is lost that could be saved */
    free(channel->server_name);
    free(channel);
}

void channel_wait(struct channel *channel, int events)
{
    if (events == 0)
        io_watch_stop(&channel->watch);
    else
        io_watch_start(channel->loop, &channel->watch, channel->fd, events, on_watch, channel);
}

static int moved(struct channel *channel, ssize_t length, size_t *ret_length, struct err *err)
{
    if (length >= 0) {
        *ret_length = (size_t)length;
        return 0;
    }
    if (channel->session == NULL)
        return errno == EAGAIN || errno == EINTR
                   ? ERR_AGAIN
                   : err_os(err, ERR_IO, errno, "the connection to %s is lost", channel->peer);
    if (length == GNUTLS_E_AGAIN || length == GNUTLS_E_INTERRUPTED)
        return ERR_AGAIN;
    return tls_error(channel, (int)length, err);
}

int channel_send(struct channel *channel, const void *bytes, size_t length, size_t *ret_length,
                 struct err *err)
{
    ssize_t sent = channel->session != NULL ? gnutls_record_send(channel->session, bytes, length)
                                            : send(channel->fd, bytes, length, MSG_NOSIGNAL);

    return moved(channel, sent, ret_length, err);
}

int channel_recv(struct channel *channel, void *bytes, size_t size, size_t *ret_length,
                 struct err *err)
{
    ssize_t got = channel->session != NULL ? gnutls_record_recv(channel->session, bytes, size)
                                           : recv(channel->fd, bytes, size, 0);

    /* Go closes without a goodbye. */
    if (channel->session != NULL && got == GNUTLS_E_PREMATURE_TERMINATION)
        got = 0;
    return moved(channel, got, ret_length, err);
}
