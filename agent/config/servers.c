/* Which servers the node takes its work from. */
#include "agent/config/part.h"

#include <string.h>

bool config_has_servers(const struct config *config)
{
    return config->servers[0] != '\0' || config->consul.client_auto_join;
}

size_t config_servers(const struct config *config, char ret_text[SERVERS_TEXT_SIZE],
                      const char *ret_servers[NOMAD_SERVERS_MAX])
{
    size_t count = 0;
    char *rest;

    memcpy(ret_text, config->servers, SERVERS_TEXT_SIZE);
    for (char *one = strtok_r(ret_text, ",", &rest); one != NULL;
         one = strtok_r(NULL, ",", &rest)) {
        if (count < NOMAD_SERVERS_MAX)
            ret_servers[count] = one;
        count++;
    }
    return count;
}

bool config_server(const char *server, char to[NOMAD_ADDRESS_SIZE])
{
    const char *first = strchr(server, ':'), *last = strrchr(server, ':');
    bool is_six = first != last || server[0] == '[', bracketed = server[0] == '[';
    bool has_port = bracketed ? strstr(server, "]:") != NULL : first != NULL && !is_six;
    uint64_t port;

    if (server[0] == '\0' || strpbrk(server, " /\"") != NULL || (bracketed && !strchr(server, ']')))
        return false;
    if (has_port)
        return text_to_u64(last + 1, &port) && port > 0 && port <= UINT16_MAX &&
               text_copy(to, NOMAD_ADDRESS_SIZE, server);
    return text_format(to, NOMAD_ADDRESS_SIZE, is_six && !bracketed ? "[%s]:4647" : "%s:4647",
                       server);
}

/* Nomad's rule (nomad/structs/node_pool.go); "all" is every node, and none is in it alone. */
static bool is_pool(const char *name)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";

    return name[0] != '\0' && name[strspn(name, letters)] == '\0' && !text_equal(name, "all");
}

static int check_pool(const struct config *config, struct err *err)
{
    if (!is_pool(config->node_pool))
        return err_set(err, ERR_INVALID,
                       "client.node_pool: \"%s\" is no pool that a node can be in: up to 128 "
                       "letters, digits, - and _, and not \"all\"",
                       config->node_pool);
    if (!config_has_servers(config) && !text_equal(config->node_pool, "default"))
        return err_set(err, ERR_INVALID,
                       "client.node_pool: pools are those of servers (client.servers); a node that "
                       "stands alone is in \"default\"");
    return 0;
}

int config_finish_servers(struct config *config, struct err *err)
{
    char text[SERVERS_TEXT_SIZE], whole[SERVERS_TEXT_SIZE] = "", one[NOMAD_ADDRESS_SIZE];
    const char *servers[NOMAD_SERVERS_MAX];
    size_t count = config_servers(config, text, servers);

    if (count > NOMAD_SERVERS_MAX)
        return err_set(err, ERR_INVALID, "client.servers: these are %zu, and %d is the most", count,
                       NOMAD_SERVERS_MAX);
    for (size_t i = 0; i < count; i++) {
        if (!config_server(servers[i], one))
            return err_set(err, ERR_INVALID,
                           "client.servers: \"%s\" is no address, as in \"10.0.0.1:4647\"",
                           servers[i]);
        if (!text_append(whole, sizeof(whole), i == 0 ? "" : ",") ||
            !text_append(whole, sizeof(whole), one))
            return err_set(err, ERR_INVALID, "client.servers: these are too many");
    }
    memcpy(config->servers, whole, sizeof(whole));
    if (config_has_servers(config) && config->bootstrap_secret_file[0] != '\0')
        return err_set(err, ERR_INVALID,
                       "acl.bootstrap_secret_file is of agents that have tokens of their own, and "
                       "this one has those of its servers");
    if (config->tls_rpc && (config->tls_ca_file[0] == '\0' || config->tls_cert_file[0] == '\0' ||
                            config->tls_key_file[0] == '\0'))
        return err_set(err, ERR_INVALID,
                       "tls.rpc needs tls.ca_file, tls.cert_file and tls.key_file");
    return check_pool(config, err);
}
