/*
 * Host networks: the addresses of this node under the names that ports of jobs ask for.
 *
 * Follows nomad v2.0.5 client/fingerprint/network.go (deriveAddressAliases): "default" is all that
 * the interface of the default route has, or the one that is configured; every other name is a
 * block of the configuration.  A node without any route gives out ports on its loopback, so that
 * what stands alone on a machine without a network still runs.
 */
#include "agent/config_part.h"
#include "agent/node.h"

#include "io/log.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

/* --- texts of the configuration --- */

static const char *const port_faults[] = {"an empty port", "every port is a number from 1 to 65535",
                                          "a range ends before it begins"};

/* One port or range, of LENGTH bytes; NULL or its fault. */
static const char *take_range(const char *text, size_t length, struct port_set *set)
{
    char part[24];
    uint64_t first, last;

    if (length == 0)
        return port_faults[0];
    if (length >= sizeof(part))
        return port_faults[1];
    memcpy(part, text, length);
    part[length] = '\0';
    char *dash = strchr(part, '-');
    if (dash != NULL)
        *dash = '\0';
    if (!text_to_u64(part, &first) || !text_to_u64(dash == NULL ? part : dash + 1, &last) ||
        first == 0 || first > UINT16_MAX || last > UINT16_MAX)
        return port_faults[1];
    if (last < first)
        return port_faults[2];
    for (uint64_t port = first; port <= last; port++)
        port_set_add(set, (uint16_t)port);
    return NULL;
}

const char *config_ports(const char *text, struct port_set *set)
{
    const char *fault = NULL;

    while (*text != '\0' && fault == NULL) {
        text += strspn(text, " ");
        size_t length = strcspn(text, ","), used = length;

        while (used > 0 && text[used - 1] == ' ')
            used--;
        fault = take_range(text, used, set);
        text += length;
        if (*text == ',' && *++text == '\0' && fault == NULL)
            fault = port_faults[0];
    }
    return fault;
}

/* A network of LENGTH bytes; false: it is none. */
static bool read_network(const char *text, size_t length, int *ret_family, uint8_t bytes[16],
                         unsigned *ret_bits)
{
    char part[ADDRESS_SIZE + 8];
    uint64_t bits;

    if (length >= sizeof(part))
        return false;
    memcpy(part, text, length);
    part[length] = '\0';
    char *slash = strchr(part, '/');
    if (slash == NULL || !text_to_u64(slash + 1, &bits))
        return false;
    *slash = '\0';
    *ret_family = strchr(part, ':') != NULL ? AF_INET6 : AF_INET;
    *ret_bits = (unsigned)bits;
    return bits <= (*ret_family == AF_INET ? 32u : 128u) &&
           inet_pton(*ret_family, part, bytes) == 1;
}

const char *config_cidr_fault(const char *cidr)
{
    uint8_t bytes[16];
    unsigned bits;
    int family;

    for (const char *at = cidr; *cidr != '\0'; at++) {
        size_t length = strcspn(at, ",");

        if (!read_network(at, length, &family, bytes, &bits))
            return "that is no list of networks";
        at += length;
        if (*at == '\0')
            break;
    }
    return NULL;
}

/* As the CNI plugin host-local has it: it says no only when the first alloc is to start. */
const char *config_subnet_fault(const char *subnet, bool six)
{
    uint8_t bytes[16] = {0};
    unsigned bits;
    int family;

    if (six && *subnet == '\0')
        return NULL;
    if (!read_network(subnet, strlen(subnet), &family, bytes, &bits))
        return "that is not one network";
    if (six != (family == AF_INET6))
        return six ? "that is no network of IPv6" : "that is no network of IPv4";
    if (bits > (six ? 126u : 30u))
        return "there is no room for an alloc in it";
    for (unsigned bit = bits; bit < (six ? 128u : 32u); bit++) {
        if ((bytes[bit / 8] >> (7 - bit % 8) & 1) != 0)
            return "an address of a network ends with zeros";
    }
    return NULL;
}

static bool is_within(const uint8_t *address, const uint8_t *network, unsigned bits)
{
    unsigned rest = bits % 8;

    return memcmp(address, network, bits / 8) == 0 &&
           (rest == 0 || ((address[bits / 8] ^ network[bits / 8]) >> (8 - rest)) == 0);
}

bool config_cidr_holds(const char *cidr, const char *ip)
{
    int own = strchr(ip, ':') != NULL ? AF_INET6 : AF_INET, family;
    uint8_t address[16], network[16];
    unsigned bits;

    if (inet_pton(own, ip, address) != 1)
        return false;
    while (*cidr != '\0') {
        size_t length = strcspn(cidr, ",");

        if (read_network(cidr, length, &family, network, &bits) && family == own &&
            is_within(address, network, bits))
            return true;
        cidr += length + (cidr[length] == ',');
    }
    return false;
}

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
