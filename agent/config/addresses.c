/* Where the API listens: an address of the network, a UNIX socket, or both. */
#include "agent/config/part.h"

#include <arpa/inet.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RESOLVED_SIZE = 64 }; /* of an address, or of what stands for one */

static bool is_numeric_address(const char *text)
{
    struct in6_addr address;

    return inet_pton(AF_INET, text, &address) == 1 || inet_pton(AF_INET6, text, &address) == 1;
}

static bool is_private(const char *ip)
{
    struct in6_addr six;
    struct in_addr four;

    if (inet_pton(AF_INET6, ip, &six) == 1)
        return (six.s6_addr[0] & 0xfe) == 0xfc;
    if (inet_pton(AF_INET, ip, &four) != 1)
        return false;
    uint32_t number = ntohl(four.s_addr);
    return number >> 24 == 10 || number >> 20 == (172u << 4 | 1) ||
           number >> 16 == (192u << 8 | 168) ||
           number >> 22 == (100u << 2 | 1); /* 100.64.0.0/10: of providers, for their own */
}

static bool is_only_of_the_link(const char *ip)
{
    return text_starts_with(ip, "169.254.") || text_starts_with(ip, "fe80:");
}

/* The first address of INTERFACE; with KIND 'p' a private one, with 'P' none that is. */
static const char *find_address(const char *interface, char kind, char to[RESOLVED_SIZE])
{
    struct host_address addresses[NODE_ADDRESSES_MAX];
    size_t count = host_addresses(addresses, COUNT_OF(addresses));

    for (size_t i = 0; i < count; i++) {
        const char *ip = addresses[i].ip;

        if (!text_equal(addresses[i].interface, interface) ||
            (kind != 'i' && (is_private(ip) != (kind == 'p') || is_only_of_the_link(ip))))
            continue;
        (void)text_copy(to, RESOLVED_SIZE, ip); /* fits */
        return NULL;
    }
    return "this machine has no such address";
}

/* "localhost", and the calls of Nomad's templates that say an address of this machine (go-sockaddr
 * of HashiCorp), as addresses; what is one already stays.  NULL, or what is wrong with it. */
static const char *resolve(char text[RESOLVED_SIZE])
{
    struct host_facts facts;
    char name[RESOLVED_SIZE];
    int length = 0;

    if (text_equal(text, "localhost"))
        return text_copy(text, RESOLVED_SIZE, "127.0.0.1") ? NULL : "it does not fit";
    if (sscanf(text, "{{ GetInterfaceIP \"%32[^\"]\" }}%n", name, &length) == 1 && length > 0 &&
        text[length] == '\0')
        return find_address(name, 'i', text);
    bool is_public = text_equal(text, "{{ GetPublicIP }}");
    if (!is_public && !text_equal(text, "{{ GetPrivateIP }}"))
        return is_numeric_address(text)
                   ? NULL
                   : "an address is numeric, as 127.0.0.1 is, localhost, {{ GetPrivateIP }}, "
                     "{{ GetPublicIP }}, {{ GetInterfaceIP \"NAME\" }}, or unix:///PATH";
    if (host_read_facts("/", &facts, NULL) != 0 || facts.network_interface[0] == '\0')
        return "this machine has no network that leads elsewhere";
    return find_address(facts.network_interface, is_public ? 'P' : 'p', text);
}

/* Addresses are parted by blanks; in braces they are not. */
static size_t word_length(const char *text)
{
    const char *end = text_starts_with(text, "{{") ? strstr(text, "}}") : NULL;

    return end != NULL ? (size_t)(end + 2 - text) : strcspn(text, " \t");
}

const char *config_set_addresses(struct config *config, const char *text)
{
    static const char between[] = " \t", scheme[] = "unix://";
    char word[PATH_SIZE];

    config->has_addresses = true;
    config->http_address[0] = config->socket_path[0] = '\0';
    for (text += strspn(text, between); *text != '\0'; text += strspn(text, between)) {
        size_t length = word_length(text);
        bool local = text_starts_with(text, scheme);

        if (!text_format(word, sizeof(word), "%.*s", (int)length, text))
            return "an address is too long";
        text += length;
        if ((local ? config->socket_path : config->http_address)[0] != '\0')
            return "there is at most one numeric address, and one UNIX socket";
        if (local && word[strlen(scheme)] != '/')
            return "a UNIX socket has an absolute path: unix:///run/cairn/api.sock";
        const char *wrong = local                           ? NULL
                            : strlen(word) >= RESOLVED_SIZE ? "an address is too long"
                                                            : resolve(word);
        if (wrong != NULL)
            return wrong;
        if (!text_copy(local ? config->socket_path : config->http_address,
                       local ? sizeof(config->socket_path) : sizeof(config->http_address),
                       local ? word + strlen(scheme) : word))
            return "the path of a UNIX socket has 107 bytes at most";
    }
    return config->http_address[0] == '\0' && config->socket_path[0] == '\0' ? "it names no address"
                                                                             : NULL;
}

/* The id that TEXT is, or that of whom it names. */
static int find_owner(const struct config *config, struct http_admission *admits, struct err *err)
{
    const struct group *group;
    struct host_user user;
    uint64_t number;

    if (config->socket_user[0] != '\0') {
        if (text_to_u64(config->socket_user, &number) && number < UINT32_MAX)
            admits->uid = (uid_t)number;
        else if (host_user_find(config->socket_user, &user, err) == 0)
            admits->uid = user.uid;
        else
            return err_wrap(err, "unix_sockets.user");
    }
    if (config->socket_group[0] != '\0') {
        if (text_to_u64(config->socket_group, &number) && number < UINT32_MAX)
            admits->gid = (gid_t)number;
        else if ((group = getgrnam(config->socket_group)) != NULL)
            admits->gid = group->gr_gid;
        else
            return err_set(err, ERR_INVALID, "unix_sockets.group: there is no group \"%s\"",
                           config->socket_group);
    }
    return 0;
}

int config_admission(const struct config *config, struct http_admission *ret_admits,
                     struct err *err)
{
    struct http_admission admits = {.uid = (uid_t)-1, .gid = (gid_t)-1}; /* as they are */
    char *end;
    unsigned long mode = strtoul(config->socket_mode, &end, 8);

    if (config->socket_mode[0] == '\0' || *end != '\0' || mode > 0777 || (mode & 0600) != 0600)
        return err_set(err, ERR_INVALID,
                       "unix_sockets.mode \"%s\" is no mode of a socket, as \"0660\" is",
                       config->socket_mode);
    admits.mode = (mode_t)mode;
    admits.gives = config->socket_user[0] != '\0' || config->socket_group[0] != '\0';
    int code = find_owner(config, &admits, err);
    if (code == 0)
        *ret_admits = admits;
    return code;
}

bool config_tls(const struct config *config, struct http_tls *ret_tls)
{
    *ret_tls = (struct http_tls){
        .cert_file = config->tls_cert_file,
        .key_file = config->tls_key_file,
        .ca_file = config->tls_verifies ? config->tls_ca_file : NULL,
        .only_13 = text_equal(config->tls_min_version, "tls13"),
    };
    return config->tls_http;
}

static int check_tls(const struct config *config, struct err *err)
{
    if (!text_equal(config->tls_min_version, "tls12") &&
        !text_equal(config->tls_min_version, "tls13"))
        return err_set(err, ERR_INVALID,
                       "tls.tls_min_version is \"tls12\" or \"tls13\", not \"%s\"",
                       config->tls_min_version);
    if (config->tls_http && (config->tls_cert_file[0] == '\0' || config->tls_key_file[0] == '\0'))
        return err_set(err, ERR_INVALID, "tls.http needs a tls.cert_file and its tls.key_file");
    if (config->tls_verifies && (!config->tls_http || config->tls_ca_file[0] == '\0'))
        return err_set(err, ERR_INVALID,
                       "tls.verify_https_client needs tls.http, and a tls.ca_file that says whose "
                       "certificates clients show");
    return 0;
}

int config_finish_addresses(struct config *config, struct err *err)
{
    struct http_admission admits;
    int code = check_tls(config, err);

    if (code != 0)
        return code;
    if (config->http_address[0] != '\0' || config->has_addresses)
        (void)text_copy(config->bind_address, sizeof(config->bind_address),
                        config->http_address); /* of that size */
    if (config->bind_address[0] == '\0' && config->socket_path[0] != '\0')
        return config_admission(config, &admits, err);
    char given[RESOLVED_SIZE];

    (void)text_copy(given, sizeof(given), config->bind_address); /* of that size */
    const char *wrong = resolve(config->bind_address);
    if (wrong != NULL)
        return err_set(err, ERR_INVALID, "bind_addr \"%s\": %s", given, wrong);
    return config_admission(config, &admits, err);
}
