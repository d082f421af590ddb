/*
 * TLS of the server: certificates, and the peers that speak it.
 *
 * What a peer says is decrypted here and passed on by a pair of sockets to the HTTP library, which
 * knows plain connections only: so whatever holds for those holds for these, tunnels too (the
 * library's own TLS passes on a few bytes at a time to those that are handed over).  Neither side
 * is read for while the other does not take what there is.  A client's certificate is verified in
 * the handshake, and for what clients are for; certificates are held by those who began with them,
 * so that they can be renewed meanwhile.  Tried by test/live/agent/test_tls.py.
 */
#include "io/net/connection.h"

#include "io/host.h"
#include "io/log.h"
#include "io/scope.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PEM_BYTES_MAX = 1 << 20,
    READ_SIZE = 16 << 10, /* the longest record */
    HANDSHAKE_MS = 10 * 1000,
};

struct tls {
    unsigned holders;
    gnutls_certificate_credentials_t credentials;
    gnutls_priority_t versions;
    bool verifies;
    gnutls_typed_vdata_st purpose; /* of certificates that clients show */
};

/* --- certificates --- */

void tls_release(struct tls *tls)
{
    if (tls == NULL || --tls->holders > 0)
        return;
    gnutls_certificate_free_credentials(tls->credentials);
    gnutls_priority_deinit(tls->versions);
    free(tls);
}

static gnutls_datum_t datum_of(char *text, size_t length)
{
    return (gnutls_datum_t){.data = (unsigned char *)text, .size = (unsigned)length};
}

static int read_own(const struct http_tls *files, const struct tls *tls, struct err *err)
{
    scoped_string char *cert_text = NULL, *key_text = NULL;
    size_t cert_length, key_length;
    int code = file_read(files->cert_file, PEM_BYTES_MAX, &cert_text, &cert_length, err);

    if (code == 0)
        code = file_read(files->key_file, PEM_BYTES_MAX, &key_text, &key_length, err);
    if (code != 0)
        return err_wrap(err, "certificate");
    gnutls_datum_t cert = datum_of(cert_text, cert_length), key = datum_of(key_text, key_length);
    int failed =
        gnutls_certificate_set_x509_key_mem(tls->credentials, &cert, &key, GNUTLS_X509_FMT_PEM);
    explicit_bzero(key_text, key_length);
    return failed == 0 ? 0
                       : err_set(err, ERR_INVALID, "%s and %s are no certificate and its key: %s",
                                 files->cert_file, files->key_file, gnutls_strerror(failed));
}

static int read_authorities(const struct http_tls *files, const struct tls *tls, struct err *err)
{
    char *text;
    size_t length;
    int code = file_read(files->ca_file, PEM_BYTES_MAX, &text, &length, err);

    if (code != 0)
        return err_wrap(err, "certificates of authorities");
    gnutls_datum_t ca = datum_of(text, length);
    int count = gnutls_certificate_set_x509_trust_mem(tls->credentials, &ca, GNUTLS_X509_FMT_PEM);
    free(text);
    return count > 0 ? 0
                     : err_set(err, ERR_INVALID, "%s holds no certificate of an authority: %s",
                               files->ca_file, count == 0 ? "it is empty" : gnutls_strerror(count));
}

int tls_read(const struct http_tls *files, struct tls **ret_tls, struct err *err)
{
    struct tls *tls = calloc(1, sizeof(*tls));

    check(tls != NULL);
    tls->holders = 1;
    tls->verifies = files->ca_file != NULL;
    tls->purpose = (gnutls_typed_vdata_st){.type = GNUTLS_DT_KEY_PURPOSE_OID,
                                           .data = (void *)(uintptr_t)GNUTLS_KP_TLS_WWW_CLIENT};
    check(gnutls_certificate_allocate_credentials(&tls->credentials) == 0);
    check(gnutls_priority_init(&tls->versions,
                               files->only_13 ? "NORMAL:-VERS-ALL:+VERS-TLS1.3"
                                              : "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2",
                               NULL) == 0);
    int code = read_own(files, tls, err);
    if (code == 0 && files->ca_file != NULL)
        code = read_authorities(files, tls, err);
    if (code != 0)
        tls_release(tls);
    else
        *ret_tls = tls;
    return code;
}

/* --- peers --- */

struct tls_peer {
    struct http_server *server;
    struct tls *tls; /* held */
    gnutls_session_t session;
    int fd, inner;         /* owned: the peer's socket, our end of the pair; -1: none yet */
    struct buffer in, out; /* decrypted and not passed on; the same the other way */
    bool shaking;          /* hands, still */
    struct io_watch watch, inner_watch;
    struct io_timer deadline; /* to have shaken hands; to take what there is */
    struct tls_peer *next, **link;
};

static void drop(struct tls_peer *peer)
{
    if (peer->shaking) {
        peer->server->handshakes--;
        server_run_soon(peer->server); /* a place is free: it may accept again */
    }
    io_watch_stop(&peer->watch);
    io_watch_stop(&peer->inner_watch);
    io_timer_stop(&peer->deadline);
    *peer->link = peer->next;
    if (peer->next != NULL)
        peer->next->link = peer->link;
    gnutls_deinit(peer->session);
    (void)close(peer->fd); /* nothing is lost that could be saved */
    if (peer->inner >= 0)
        (void)close(peer->inner); /* the library reads to its end */
    buffer_close(&peer->in);
    buffer_close(&peer->out);
    tls_release(peer->tls);
    free(peer);
}

static void on_deadline(struct io_timer *timer)
{
    drop(timer->ctx);
}

/* From the peer to the library; false: it has gone. */
static bool pass_in(struct tls_peer *peer)
{
    char bytes[READ_SIZE];

    for (;;) {
        while (buffer_length(&peer->in) > 0) {
            ssize_t sent = send(peer->inner, buffer_text(&peer->in), buffer_length(&peer->in),
                                MSG_NOSIGNAL | MSG_DONTWAIT);

            if (sent < 0 && errno == EINTR)
                continue;
            if (sent < 0)
                return errno == EAGAIN;
            buffer_drop(&peer->in, (size_t)sent);
        }
        ssize_t got = gnutls_record_recv(peer->session, bytes, sizeof(bytes));
        if (got == GNUTLS_E_AGAIN || got == GNUTLS_E_INTERRUPTED)
            return true;
        if (got <= 0)
            return false; /* he has said goodbye, or says what he must not, as a new handshake */
        check(buffer_append(&peer->in, bytes, (size_t)got, SIZE_MAX));
    }
}

/* The other way; false: all is said. */
static bool pass_out(struct tls_peer *peer)
{
    char bytes[READ_SIZE];

    for (;;) {
        while (buffer_length(&peer->out) > 0) {
            ssize_t sent = gnutls_record_send(peer->session, buffer_text(&peer->out),
                                              buffer_length(&peer->out));

            if (sent == GNUTLS_E_AGAIN || sent == GNUTLS_E_INTERRUPTED)
                return true;
            if (sent < 0)
                return false;
            buffer_drop(&peer->out, (size_t)sent);
        }
        ssize_t got = recv(peer->inner, bytes, sizeof(bytes), MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return true;
        if (got <= 0) {
            (void)gnutls_bye(peer->session, GNUTLS_SHUT_WR); /* he may have gone */
            return false;
        }
        check(buffer_append(&peer->out, bytes, (size_t)got, SIZE_MAX));
    }
}

static void on_peer(struct io_watch *watch, int events);
static void on_inner(struct io_watch *watch, int events);

static void watch_for(struct tls_peer *peer, struct io_watch *watch, int fd, int events,
                      void (*cb)(struct io_watch *watch, int events))
{
    if (events == 0)
        io_watch_stop(watch);
    else
        io_watch_start(peer->server->loop, watch, fd, events, cb, peer);
}

static void watch_both(struct tls_peer *peer)
{
    bool has_in = buffer_length(&peer->in) > 0, has_out = buffer_length(&peer->out) > 0;

    watch_for(peer, &peer->watch, peer->fd,
              (has_in ? 0 : IO_READABLE) | (has_out ? IO_WRITABLE : 0), on_peer);
    watch_for(peer, &peer->inner_watch, peer->inner,
              (has_out ? 0 : IO_READABLE) | (has_in ? IO_WRITABLE : 0), on_inner);
}

/* What the peer has moved or not since the last time. */
static void note_progress(struct tls_peer *peer, size_t before)
{
    size_t left = buffer_length(&peer->out);

    if (left == 0)
        io_timer_stop(&peer->deadline);
    else if (left != before)
        io_timer_start(peer->server->loop, &peer->deadline, loop_now_ms() + peer->server->idle_ms,
                       on_deadline, peer);
}

static void pass(struct tls_peer *peer)
{
    size_t before = buffer_length(&peer->out);

    if (!pass_out(peer) || !pass_in(peer)) {
        drop(peer);
        return;
    }
    note_progress(peer, before);
    watch_both(peer);
}

static void on_inner(struct io_watch *watch, int events)
{
    (void)events;
    pass(watch->ctx);
}

/* Hands are shaken: what is in it is for the library from now on. */
static void begin(struct tls_peer *peer)
{
    const struct sockaddr_storage nobody = {.ss_family = AF_UNIX};
    struct http_server *server = peer->server;
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0) {
        log_warn("io", "no connection can be taken: error=%s", log_value(strerror(errno)));
        drop(peer);
        return;
    }
    peer->shaking = false;
    server->handshakes--;
    io_timer_stop(&peer->deadline);
    peer->inner = pair[0];
    if (!server->add(server, pair[1], &nobody, sizeof(sa_family_t)))
        drop(peer);
    else
        pass(peer);
}

static void shake(struct tls_peer *peer)
{
    int result = gnutls_handshake(peer->session);

    if (result == 0) {
        begin(peer);
    } else if (gnutls_error_is_fatal(result) != 0) {
        log_debug("io", "no handshake: error=%s", log_value(gnutls_strerror(result)));
        (void)gnutls_alert_send_appropriate(peer->session, result); /* he may have gone */
        drop(peer);
    } else {
        int wanted = gnutls_record_get_direction(peer->session) != 0 ? IO_WRITABLE : IO_READABLE;
        io_watch_start(peer->server->loop, &peer->watch, peer->fd, wanted, on_peer, peer);
    }
}

static void on_peer(struct io_watch *watch, int events)
{
    struct tls_peer *peer = watch->ctx;
    (void)events;

    if (peer->shaking)
        shake(peer);
    else
        pass(peer);
}

static void set_session(struct tls_peer *peer)
{
    struct tls *tls = peer->tls;

    check(gnutls_init(&peer->session, GNUTLS_SERVER | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL) == 0);
    check(gnutls_priority_set(peer->session, tls->versions) == 0);
    check(gnutls_credentials_set(peer->session, GNUTLS_CRD_CERTIFICATE, tls->credentials) == 0);
    gnutls_transport_set_int(peer->session, peer->fd);
    if (!tls->verifies)
        return;
    gnutls_certificate_server_set_request(peer->session, GNUTLS_CERT_REQUIRE);
    gnutls_session_set_verify_cert2(peer->session, &tls->purpose, 1, 0);
}

void tls_take(struct http_server *server, int fd)
{
    struct tls_peer *peer = calloc(1, sizeof(*peer));
    const int on = 1;

    check(peer != NULL);
    peer->server = server;
    peer->tls = server->tls;
    peer->tls->holders++;
    peer->fd = fd;
    peer->inner = -1;
    peer->shaking = true;
    server->handshakes++;
    peer->next = server->peers;
    peer->link = &server->peers;
    if (peer->next != NULL)
        peer->next->link = &peer->next;
    server->peers = peer;
    set_session(peer);
    /* A stream to a machine that was switched off ends some day. */
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    io_timer_start(server->loop, &peer->deadline, loop_now_ms() + HANDSHAKE_MS, on_deadline, peer);
    shake(peer);
}

void tls_end(struct http_server *server)
{
    while (server->peers != NULL)
        drop(server->peers);
}
