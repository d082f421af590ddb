/* Sessions inside TLS: a server that is who it has to be is spoken to, all others are not, and hear
 * nothing that is for the right one. */
#include "test/io/rpc/rpc_peer.h"

#include <gnutls/x509.h>
#include <time.h>

enum { PEM_SIZE = 8192 };

struct pair {
    gnutls_x509_privkey_t key;
    gnutls_x509_crt_t cert;
};

struct tls_room {
    struct rpc_room *room;
    struct scratch *scratch;
    struct pair authority, stranger, server, client;
    gnutls_certificate_credentials_t shown; /* by the server */
    char ca[PATH_SIZE], cert[PATH_SIZE], key[PATH_SIZE];
};

static struct tls_room *present; /* of the script */

/* --- certificates --- */

static void make_pair(struct pair *pair, const char *name)
{
    assert_int_equal(gnutls_x509_privkey_init(&pair->key), 0);
    assert_int_equal(gnutls_x509_crt_init(&pair->cert), 0);
    assert_int_equal(gnutls_x509_privkey_generate(pair->key, GNUTLS_PK_ECDSA,
                                                  GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1),
                                                  0),
                     0);
    assert_int_equal(gnutls_x509_crt_set_version(pair->cert, 3), 0);
    assert_int_equal(gnutls_x509_crt_set_serial(pair->cert, name, 4), 0);
    assert_int_equal(gnutls_x509_crt_set_activation_time(pair->cert, time(NULL) - 3600), 0);
    assert_int_equal(gnutls_x509_crt_set_expiration_time(pair->cert, time(NULL) + 3600), 0);
    assert_int_equal(gnutls_x509_crt_set_dn_by_oid(pair->cert, GNUTLS_OID_X520_COMMON_NAME, 0, name,
                                                   (unsigned)strlen(name)),
                     0);
    assert_int_equal(gnutls_x509_crt_set_key(pair->cert, pair->key), 0);
}

static void make_authority(struct pair *pair, const char *name)
{
    make_pair(pair, name);
    assert_int_equal(gnutls_x509_crt_set_basic_constraints(pair->cert, 1, -1), 0);
    assert_int_equal(gnutls_x509_crt_set_key_usage(pair->cert, GNUTLS_KEY_KEY_CERT_SIGN), 0);
    assert_int_equal(gnutls_x509_crt_sign2(pair->cert, pair->cert, pair->key, GNUTLS_DIG_SHA256, 0),
                     0);
}

static void make_signed(struct pair *pair, const char *name, const char *purpose,
                        const struct pair *authority)
{
    make_pair(pair, name);
    assert_int_equal(gnutls_x509_crt_set_subject_alt_name(pair->cert, GNUTLS_SAN_DNSNAME, name,
                                                          (unsigned)strlen(name), 0),
                     0);
    assert_int_equal(gnutls_x509_crt_set_key_purpose_oid(pair->cert, purpose, 0), 0);
    assert_int_equal(
        gnutls_x509_crt_sign2(pair->cert, authority->cert, authority->key, GNUTLS_DIG_SHA256, 0),
        0);
}

static void free_pair(struct pair *pair)
{
    gnutls_x509_privkey_deinit(pair->key);
    gnutls_x509_crt_deinit(pair->cert);
}

static void put_cert(char to[PATH_SIZE], struct tls_room *tls, const char *name,
                     const struct pair *pair)
{
    char pem[PEM_SIZE] = {0};
    size_t size = sizeof(pem) - 1;

    assert_int_equal(gnutls_x509_crt_export(pair->cert, GNUTLS_X509_FMT_PEM, pem, &size), 0);
    (void)text_copy(to, PATH_SIZE, at(tls->scratch, name));
    put_file(to, pem);
}

static void put_key(char to[PATH_SIZE], struct tls_room *tls, const char *name,
                    const struct pair *pair)
{
    char pem[PEM_SIZE] = {0};
    size_t size = sizeof(pem) - 1;

    assert_int_equal(gnutls_x509_privkey_export(pair->key, GNUTLS_X509_FMT_PEM, pem, &size), 0);
    (void)text_copy(to, PATH_SIZE, at(tls->scratch, name));
    put_file(to, pem);
}

static int set_up(void **state)
{
    struct tls_room *tls = calloc(1, sizeof(*tls));
    void *made;

    assert_non_null(tls);
    (void)scratch_make(&made);
    tls->scratch = made;
    (void)room_set_up(&made);
    tls->room = made;
    make_authority(&tls->authority, "authority");
    make_authority(&tls->stranger, "stranger");
    make_signed(&tls->server, "server.global.nomad", GNUTLS_KP_TLS_WWW_SERVER, &tls->authority);
    make_signed(&tls->client, "client.global.nomad", GNUTLS_KP_TLS_WWW_CLIENT, &tls->authority);
    put_cert(tls->ca, tls, "ca.pem", &tls->authority);
    put_cert(tls->cert, tls, "client.pem", &tls->client);
    put_key(tls->key, tls, "client.key", &tls->client);
    present = tls;
    *state = tls;
    return 0;
}

static int tear_down(void **state)
{
    struct tls_room *tls = *state;
    void *room = tls->room, *scratch = tls->scratch;

    (void)room_tear_down(&room);
    if (tls->shown != NULL)
        gnutls_certificate_free_credentials(tls->shown);
    free_pair(&tls->authority);
    free_pair(&tls->stranger);
    free_pair(&tls->server);
    free_pair(&tls->client);
    free(tls);
    return scratch_remove(&scratch);
}

/* --- the server --- */

static void shake_and_serve(struct rpc_peer *peer)
{
    char byte = 0;

    if (!peer_read(peer, &byte, 1) || byte != 4)
        return;
    gnutls_session_t session;
    (void)gnutls_init(&session, GNUTLS_SERVER);
    (void)gnutls_set_default_priority(session);
    (void)gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, present->shown);
    gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUIRE);
    gnutls_session_set_verify_cert(session, NULL, 0);
    gnutls_transport_set_int(session, peer->fd);
    peer->tls = session;
    int result = gnutls_handshake(session);
    (void)text_append(peer->trace, sizeof(peer->trace), result == 0 ? "hello " : "no ");
    if (result != 0) {
        (void)gnutls_alert_send_appropriate(session, result);
        (void)shutdown(peer->fd, SHUT_WR);
        while (recv(peer->fd, &byte, 1, 0) > 0)
            continue;
        return;
    }
    if (!peer_begin(peer))
        return;
    peer_serve(peer, 1);
    json_t *header = peer_call(peer, 1);
    if (header != NULL)
        peer_answer(peer, 1, header, "", json_object());
    peer_until_end(peer);
}

static void begin(struct tls_room *tls, const struct pair *server, const char *name)
{
    const struct rpc_tls files = {tls->ca, tls->cert, tls->key, name};
    struct rpc_config config = room_config(tls->room);
    struct err err = {0};

    assert_int_equal(gnutls_certificate_allocate_credentials(&tls->shown), 0);
    gnutls_x509_crt_t chain[] = {server->cert};
    assert_int_equal(gnutls_certificate_set_x509_key(tls->shown, chain, 1, server->key), 0);
    assert_int_equal(gnutls_certificate_set_x509_trust(
                         tls->shown, (gnutls_x509_crt_t[]){tls->authority.cert}, 1),
                     1);
    peer_start(&tls->room->peer, shake_and_serve);
    config.address = tls->room->peer.address;
    config.tls = &files;
    tls->room->rpc = rpc_open(&config, &err);
    if (tls->room->rpc == NULL)
        fail_msg("%s", err.text);
    (void)room_call(tls->room, "First.Call");
}

/* --- unhappy --- */

static void assert_is_refused(struct tls_room *tls, const char *word)
{
    assert_string_equal(room_wait(tls->room, 2), "try again later ended:refused ");
    if (strstr(tls->room->last.text, word) == NULL)
        fail_msg("%s", tls->room->last.text);
    assert_string_equal(room_end(tls->room), "no ");
}

static void test_a_server_with_another_name_is_not_spoken_to(void **state)
{
    struct tls_room *tls = *state;

    begin(tls, &tls->server, "server.other.nomad");
    assert_is_refused(tls, "name");
}

static void test_a_server_that_a_stranger_vouches_for_is_not_spoken_to(void **state)
{
    struct tls_room *tls = *state;
    struct pair server;

    make_signed(&server, "server.global.nomad", GNUTLS_KP_TLS_WWW_SERVER, &tls->stranger);
    begin(tls, &server, NULL);
    assert_is_refused(tls, "issuer");
    free_pair(&server);
}

static void test_a_client_is_no_server(void **state)
{
    struct tls_room *tls = *state;

    begin(tls, &tls->client, NULL);
    assert_is_refused(tls, "purpose");
}

static void test_a_server_that_does_not_know_us_says_so(void **state)
{
    struct tls_room *tls = *state;
    struct pair client;

    make_signed(&client, "client.global.nomad", GNUTLS_KP_TLS_WWW_CLIENT, &tls->stranger);
    put_cert(tls->cert, tls, "client.pem", &client);
    put_key(tls->key, tls, "client.key", &client);
    begin(tls, &tls->server, NULL);
    (void)room_wait(tls->room, 2);
    assert_true(text_ends_with(tls->room->trace, " ended:refused "));
    assert_string_equal(room_end(tls->room), "no ");
    free_pair(&client);
}

static void no_tls(struct rpc_peer *peer)
{
    char byte = 0;

    if (peer_read(peer, &byte, 1))
        (void)peer_write(peer, "\0\1\0\1\0\0\0\2\0\0\0\0 is no handshake", 28);
    while (peer_read(peer, &byte, 1))
        continue;
}

static void test_what_is_no_tls_is_no_server(void **state)
{
    struct tls_room *tls = *state;
    const struct rpc_tls files = {tls->ca, tls->cert, tls->key, NULL};
    struct err err = {0};

    peer_start(&tls->room->peer, no_tls);
    struct rpc_config config = room_config(tls->room);
    config.tls = &files;
    tls->room->rpc = rpc_open(&config, &err);
    assert_non_null(tls->room->rpc);
    assert_string_equal(room_wait(tls->room, 1), "ended:input or output failed ");
}

static void test_files_that_are_no_certificates_are_told_at_once(void **state)
{
    struct tls_room *tls = *state;
    const struct rpc_tls rows[] = {
        {tls->ca, tls->cert, "/nowhere", NULL},  {tls->ca, "/nowhere", tls->key, NULL},
        {"/nowhere", tls->cert, tls->key, NULL}, {tls->key, tls->cert, tls->key, NULL},
        {tls->ca, tls->key, tls->key, NULL},     {tls->ca, tls->ca, tls->key, NULL},
    };
    struct rpc_config config = room_config(tls->room);

    config.address = "127.0.0.1:1";
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct err err = {0};

        config.tls = &rows[i];
        assert_null(rpc_open(&config, &err));
        assert_int_equal(err.code, i < 3 ? ERR_GONE : ERR_INVALID);
    }
}

/* --- happy --- */

static void test_the_right_server_is_called(void **state)
{
    struct tls_room *tls = *state;

    begin(tls, &tls->server, "server.global.nomad");
    assert_string_equal(room_wait(tls->room, 1), "First.Call ");
    (void)room_call(tls->room, "Second.Call");
    assert_string_equal(room_wait(tls->room, 1), "First.Call reply ");
    assert_string_equal(room_end(tls->room), "hello syn(1) First.Call(1) Second.Call(1) ");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(test_a_server_with_another_name_is_not_spoken_to),
        TEST(test_a_server_that_a_stranger_vouches_for_is_not_spoken_to),
        TEST(test_a_client_is_no_server),
        TEST(test_a_server_that_does_not_know_us_says_so),
        TEST(test_what_is_no_tls_is_no_server),
        TEST(test_files_that_are_no_certificates_are_told_at_once),
        TEST(test_the_right_server_is_called),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
