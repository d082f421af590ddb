/*
 * Host networks: the addresses of this node under the names that ports of jobs ask for.
 *
 * Follows nomad v2.0.5 client/fingerprint/network.go (deriveAddressAliases): "default" is all that
 * the interface of the default route has, or the one that is configured; every other name is a
 * block of the configuration.  A node without any route gives out ports on its loopback, so that
 * what stands alone on a machine without a network still runs.
 */
#include "agent/node/node.h"

#include "io/log.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

/* --- addresses --- */

static void add(struct node *node, const char *network, const struct host_address *found,
                const char *const reserved[2])
{
    struct alone_address *address = &node->addresses[node->addresses_count];

    if (node->addresses_count == NODE_ADDRESSES_MAX) {
        log_warn("agent", "too many addresses, this one gets no ports address=%s network=%s",
                 found->ip, log_value(network));
        return;
    }
    (void)text_copy(address->network, sizeof(address->network), network); /* of that size */
    (void)text_copy(address->ip, sizeof(address->ip), found->ip);         /* an address */
    (void)text_copy(node->interfaces[node->addresses_count], sizeof(node->interfaces[0]),
                    found->interface); /* of that size */
    node->mbits[node->addresses_count] = found->mbits;
    for (size_t i = 0; i < 2; i++)
        (void)config_ports(reserved[i], &address->reserved); /* it was checked when it was read */
    node->addresses_count++;
}

static bool is_of(const struct host_network *network, const struct host_address *address)
{
    return (network->interface[0] == '\0' || text_equal(network->interface, address->interface)) &&
           (network->cidr[0] == '\0' || config_cidr_holds(network->cidr, address->ip));
}

int node_find_addresses(struct node *node, const struct config *config, struct err *err)
{
    enum { FOUND_MAX = 4 * NODE_ADDRESSES_MAX };
    const char *interface = config->network_interface[0] != '\0' ? config->network_interface
                                                                 : node->facts.network_interface;
    struct host_address found[FOUND_MAX];
    size_t count = host_addresses(found, FOUND_MAX);

    for (size_t i = 0; i < count; i++) {
        if (text_equal(found[i].interface, interface))
            add(node, "default", &found[i], (const char *const[2]){config->reserved_ports, ""});
    }
    if (node->addresses_count == 0 && config->network_interface[0] != '\0')
        return err_set(err, ERR_INVALID,
                       "client.network_interface: no interface \"%s\" with an address is here",
                       config->network_interface);
    if (node->addresses_count > 0 && config->network_interface[0] != '\0') {
        (void)text_copy(node->facts.ip_address, sizeof(node->facts.ip_address),
                        node->addresses[0].ip);
        (void)text_copy(node->facts.network_interface, sizeof(node->facts.network_interface),
                        interface); /* both of that size */
    }
    for (size_t n = 0; n < config->host_networks_count; n++) {
        const struct host_network *network = &config->host_networks[n];
        size_t before = node->addresses_count;

        for (size_t i = 0; i < count; i++) {
            if (is_of(network, &found[i]))
                add(node, network->name, &found[i],
                    (const char *const[2]){config->reserved_ports, network->reserved_ports});
        }
        if (node->addresses_count == before)
            log_warn("agent", "no address of this node is in the host_network name=%s",
                     log_value(network->name));
    }
    return 0;
}
