/*
 * What texts of the configuration mean: ports, networks, cores.
 */
#include "agent/config/part.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

/* --- ports and networks --- */

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

/* --- cores --- */

const char *config_cores(const char *text, struct core_set *set)
{
    static const char fault[] = "cores are numbers from 0 to 1023 and ranges of them";
    char copy[CORES_TEXT_MAX], *rest = copy, *part;

    if (!text_copy(copy, sizeof(copy), text))
        return fault;
    while (*text != '\0' && (part = strsep(&rest, ",")) != NULL) {
        char *dash = strchr(part, '-');
        uint64_t first, last;

        if (dash != NULL)
            *dash = '\0';
        if (!text_to_u64(part, &first) || !text_to_u64(dash == NULL ? part : dash + 1, &last) ||
            last >= NODE_CORES_MAX || last < first)
            return fault;
        for (uint64_t core = first; core <= last; core++)
            core_set_add(set, (uint16_t)core);
    }
    return NULL;
}
