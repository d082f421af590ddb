/*
 * Which agent of Consul the node registers its services with, and its token.
 *
 * What is not given is what Consul's own tools take: CONSUL_HTTP_ADDR, CONSUL_HTTP_TOKEN and
 * CONSUL_HTTP_TOKEN_FILE of the daemon's environment, and the agent on this host.
 */
#include "agent/config/pairs.h"
#include "agent/config/part.h"

#include "io/host.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { TOKEN_FILE_BYTES_MAX = 4096 };

/* HOST:PORT, with nothing that would be another part of a URL. */
static bool is_authority(const char *text)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "-._:[]";

    return *text != '\0' && text[strspn(text, allowed)] == '\0';
}

static int find_address(struct config_consul *consul, struct err *err)
{
    static const char plain[] = "http://", safe[] = "https://", local[] = "unix://";
    const char *rest = consul->address;
    bool is_local = text_starts_with(rest, local), is_safe = text_starts_with(rest, safe);

    if (is_local) {
        rest += strlen(local);
        if (*rest == '/' && text_copy(consul->socket, sizeof(consul->socket), rest))
            return text_copy(consul->url, sizeof(consul->url), "http://localhost") ? 0 : ERR_LIMIT;
        return err_set(err, ERR_INVALID,
                       "consul.address: \"%.100s\" must name a socket by an absolute path of at "
                       "most %d bytes",
                       consul->address, SOCKET_PATH_SIZE - 1);
    }
    rest += is_safe ? strlen(safe) : text_starts_with(rest, plain) ? strlen(plain) : 0;
    if (!is_authority(rest))
        return err_set(err, ERR_INVALID,
                       "consul.address: \"%.100s\" is no address, as in \"127.0.0.1:8500\" or "
                       "\"unix:///run/consul.sock\"",
                       consul->address);
    (void)text_format(consul->url, sizeof(consul->url), "%s%s",
                      is_safe || consul->ssl ? safe : plain, rest); /* it has room for both */
    return 0;
}

static int check_token(const struct config_consul *consul, const char *from, struct err *err)
{
    for (const char *at = consul->token; *at != '\0'; at++) {
        if (!isgraph((unsigned char)*at))
            return err_set(err, ERR_INVALID, "%s holds no token: one line without blanks", from);
    }
    return 0;
}

static int read_token(struct config_consul *consul, struct err *err)
{
    char *text;
    size_t length;
    int code = file_read(consul->token_file, TOKEN_FILE_BYTES_MAX, &text, &length, err);

    if (code != 0)
        return err_wrap(err, "consul.token_file");
    while (length > 0 && isspace((unsigned char)text[length - 1]))
        text[--length] = '\0';
    bool fits = length > 0 && text_copy(consul->token, sizeof(consul->token), text);
    explicit_bzero(text, length);
    free(text);
    return fits ? check_token(consul, "consul.token_file", err)
                : err_set(err, ERR_INVALID,
                          "consul.token_file holds no token, or one that is "
                          "longer than %zu bytes",
                          sizeof(consul->token) - 1);
}

/* TO, if it is empty, is what the environment says of NAME. */
static int take_variable(char *to, size_t size, const char *name, struct err *err)
{
    const char *value = getenv(name);

    if (to[0] != '\0' || value == NULL || text_copy(to, size, value))
        return 0;
    return err_set(err, ERR_LIMIT, "%s is too long", name);
}

static int find_token(struct config_consul *consul, struct err *err)
{
    if (consul->token[0] != '\0' && consul->token_file[0] != '\0')
        return err_set(err, ERR_INVALID, "consul: give token or token_file, not both");
    if (consul->token[0] != '\0')
        return check_token(consul, "consul.token", err);
    int code = take_variable(consul->token_file, sizeof(consul->token_file),
                             "CONSUL_HTTP_TOKEN_FILE", err);
    if (code != 0 || consul->token_file[0] != '\0')
        return code != 0 ? code : read_token(consul, err);
    code = take_variable(consul->token, sizeof(consul->token), "CONSUL_HTTP_TOKEN", err);
    return code != 0 ? code : check_token(consul, "CONSUL_HTTP_TOKEN", err);
}

/* What of the node's metadata sidecars are made by, unless an operator says it (nomad v2.0.6
 * client/client.go setupNode). */
static void set_meta(struct config *config)
{
    static const struct spec_pair defaults[] = {
        {"connect.sidecar_image", "docker.io/envoyproxy/envoy:v${NOMAD_envoy_version}"},
        {"connect.gateway_image", "docker.io/envoyproxy/envoy:v${NOMAD_envoy_version}"},
        {"connect.log_level", "info"},
        {"connect.proxy_concurrency", "1"},
    };

    for (size_t i = 0; i < COUNT_OF(defaults); i++) {
        bool given = false;

        for (size_t j = 0; j < config->meta.count; j++)
            given |= text_equal(config->meta.items[j].key, defaults[i].key);
        if (!given)
            pairs_set(&config->meta, defaults[i].key, defaults[i].value);
    }
}

/* TO, if it is empty, is WHAT, which fits. */
static void default_to(char to[256], const char *what)
{
    if (to[0] == '\0')
        (void)text_copy(to, 256, what);
}

int config_finish_consul(struct config *config, struct err *err)
{
    struct config_consul *consul = &config->consul;
    int code;

    if (!consul->used)
        return 0;
    set_meta(config);
    default_to(consul->server_service_name, "nomad");
    default_to(consul->client_service_name, "nomad-client");
    default_to(consul->client_http_check_name, "Nomad Client HTTP Check");
    if (consul->auto_advertise && config->bind_address[0] == '\0')
        return err_set(err, ERR_INVALID,
                       "consul.auto_advertise: the API has a socket and no address that others "
                       "could be told (addresses { http = \"...\" })");
    if (consul->timeout_ms == 0)
        return err_set(err, ERR_INVALID, "consul.timeout must be longer than 0s");
    if ((consul->cert_file[0] == '\0') != (consul->key_file[0] == '\0'))
        return err_set(err, ERR_INVALID, "consul: cert_file and key_file go together");
    code = take_variable(consul->address, sizeof(consul->address), "CONSUL_HTTP_ADDR", err);
    if (code != 0)
        return code;
    if (consul->address[0] == '\0')
        (void)text_copy(consul->address, sizeof(consul->address), "127.0.0.1:8500"); /* fits */
    code = find_address(consul, err);
    return code != 0 ? code : find_token(consul, err);
}
