/* A connection by hand over TLS: what could not be sent goes on from wherever its owner has moved
 * it to, however much has come behind it. */
#include "io/http.h"
#include "test/io/scratch.h"

#include <arpa/inet.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { FIRST = 16 << 20, ALL = FIRST + (1 << 20) };

/* Reads nothing before it is let. */
struct reader {
    pthread_t thread;
    gnutls_certificate_credentials_t own;
    int listens, let[2];
    size_t read;
    bool as_sent;
};

static char byte_at(size_t at)
{
    return (char)(at * 31 + at / 251);
}

static void make_certificate(struct reader *reader)
{
    gnutls_x509_privkey_t key;
    gnutls_x509_crt_t own;

    assert_int_equal(gnutls_x509_privkey_init(&key), 0);
    assert_int_equal(gnutls_x509_crt_init(&own), 0);
    assert_int_equal(gnutls_x509_privkey_generate(
                         key, GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0),
                     0);
    assert_int_equal(gnutls_x509_crt_set_version(own, 3), 0);
    assert_int_equal(gnutls_x509_crt_set_serial(own, "\1", 1), 0);
    assert_int_equal(gnutls_x509_crt_set_activation_time(own, time(NULL) - 60), 0);
    assert_int_equal(gnutls_x509_crt_set_expiration_time(own, time(NULL) + 3600), 0);
    assert_int_equal(gnutls_x509_crt_set_key(own, key), 0);
    assert_int_equal(gnutls_x509_crt_sign2(own, own, key, GNUTLS_DIG_SHA256, 0), 0);
    assert_int_equal(gnutls_certificate_allocate_credentials(&reader->own), 0);
    assert_int_equal(gnutls_certificate_set_x509_key(reader->own, &own, 1, key), 0);
    gnutls_x509_crt_deinit(own);
    gnutls_x509_privkey_deinit(key);
}

static void *read_when_let(void *ctx)
{
    struct reader *reader = ctx;
    gnutls_session_t session;
    char bytes[16 << 10];
    ssize_t got;
    int fd = accept(reader->listens, NULL, NULL);

    (void)gnutls_init(&session, GNUTLS_SERVER); /* what fails here is seen as nothing read */
    (void)gnutls_set_default_priority(session);
    (void)gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, reader->own);
    gnutls_transport_set_int(session, fd);
    if (gnutls_handshake(session) == 0 && read(reader->let[0], bytes, 1) == 1) {
        reader->as_sent = true;
        while ((got = gnutls_record_recv(session, bytes, sizeof(bytes))) > 0) {
            for (ssize_t i = 0; i < got; i++)
                reader->as_sent = reader->as_sent && bytes[i] == byte_at(reader->read + (size_t)i);
            reader->read += (size_t)got;
        }
    }
    gnutls_deinit(session);
    close(fd);
    return NULL;
}

static void start_reader(struct reader *reader, char url[64])
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(at);

    make_certificate(reader);
    reader->listens = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_return_code(bind(reader->listens, (struct sockaddr *)&at, length), 0);
    assert_return_code(getsockname(reader->listens, (struct sockaddr *)&at, &length), 0);
    assert_return_code(listen(reader->listens, 1), 0);
    assert_return_code(pipe(reader->let), 0);
    (void)text_format(url, 64, "https://127.0.0.1:%u/", ntohs(at.sin_port));
    assert_int_equal(pthread_create(&reader->thread, NULL, read_when_let, reader), 0);
}

static void end_reader(struct reader *reader)
{
    assert_int_equal(pthread_join(reader->thread, NULL), 0);
    gnutls_certificate_free_credentials(reader->own);
    close(reader->listens);
    close(reader->let[0]);
    close(reader->let[1]);
}

/* Sends what it can of BYTES; the count, and the line is not to be written to if it is not all. */
static size_t send_until_full(struct http_line *line, const char *bytes, size_t length)
{
    size_t sent = 0, some;
    int code = 0;

    while (sent < length && (code = http_line_send(line, bytes + sent, length - sent, &some)) == 0)
        sent += some;
    assert_true(code == 0 || code == ERR_AGAIN);
    return sent;
}

static void test_what_was_not_sent_may_move_and_grow(void **state)
{
    static const struct http_trust anybody = {.insecure = true};
    struct reader reader = {0};
    struct http_line *line;
    struct err err = {0};
    char url[64], *first = malloc(FIRST), *all = malloc(ALL);
    (void)state;

    assert_non_null(first);
    assert_non_null(all);
    for (size_t i = 0; i < ALL; i++)
        all[i] = byte_at(i);
    memcpy(first, all, FIRST);
    start_reader(&reader, url);
    assert_int_equal(
        http_line_open(&(struct http_call){.url = url, .trust = &anybody}, &line, &err), 0);
    size_t sent = send_until_full(line, first, FIRST);
    assert_true(sent < FIRST); /* nobody has read */
    free(first);
    sent += send_until_full(line, all + sent, ALL - sent);
    assert_true(sent < ALL);
    assert_int_equal(write(reader.let[1], "x", 1), 1);
    while (sent < ALL) {
        struct pollfd at = {.fd = http_line_fd(line), .events = POLLOUT};

        assert_return_code(poll(&at, 1, -1), 0);
        sent += send_until_full(line, all + sent, ALL - sent);
    }
    http_line_close(line);
    end_reader(&reader);
    assert_int_equal(reader.read, ALL);
    assert_true(reader.as_sent);
    free(all);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_was_not_sent_may_move_and_grow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
