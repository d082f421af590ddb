#include "agent/consul/reach.h"

#include "agent/parts.h"

/* NULL for what is not given. */
static const char *given(const char *text)
{
    return text[0] == '\0' ? NULL : text;
}

struct consul_config reach_consul(const struct parts *parts)
{
    const struct config_consul *config = &parts->config->consul;

    return (struct consul_config){
        .loop = parts->loop,
        .url = config->url,
        .unix_socket = given(config->socket),
        .token = config->token,
        .trust = {.ca_file = given(config->ca_file),
                  .cert_file = given(config->cert_file),
                  .key_file = given(config->key_file),
                  .insecure = !config->verify_ssl},
        .timeout_ms = config->timeout_ms,
        .node_id = parts->node.identity.id,
    };
}
