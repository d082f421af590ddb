/*
 * Functions that compute addresses of networks.
 *
 * Follows nomad v2.0.5 jobspec2/functions.go, hashicorp/go-cty-funcs' cidr and
 * apparentlymart/go-cidr.  Numbers below zero, which those take for networks outside the given one,
 * are refused, and 0.0.0.0 is divided as any other network is.
 */
#include "spec/hcl/tree.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { IPV4_BITS = 32, IPV6_BITS = 128, EXTENSION_MAX = 32, ADDRESS_SIZE = 64 };

typedef unsigned __int128 address_bits;

struct network {
    address_bits address; /* its lowest; one of IPv4 has 32 bits */
    int bits, length;     /* of an address; of its prefix, as in 10.0.0.0/8 */
};

/* --- reading and writing --- */

/* As many ones from the lowest bit on. */
static address_bits low_bits(int count)
{
    return count >= IPV6_BITS ? ~(address_bits)0 : ((address_bits)1 << count) - 1;
}

static address_bits from_bytes(const uint8_t *bytes, size_t count)
{
    address_bits address = 0;

    for (size_t i = 0; i < count; i++)
        address = address << 8 | bytes[i];
    return address;
}

/* TEXT, as in 10.0.0.0/8, without what it says of hosts. */
static bool parse_network(const char *text, struct network *ret_network)
{
    const char *slash = strchr(text, '/');
    char address[INET6_ADDRSTRLEN];
    struct network network = {0};
    uint8_t bytes[16];
    int64_t length;

    if (slash == NULL || (size_t)(slash - text) >= sizeof(address) || slash[1] < '0' ||
        slash[1] > '9' || !text_to_i64(slash + 1, &length))
        return false;
    memcpy(address, text, (size_t)(slash - text));
    address[slash - text] = '\0';
    if (inet_pton(AF_INET, address, bytes) == 1)
        network.bits = IPV4_BITS;
    else if (inet_pton(AF_INET6, address, bytes) == 1)
        network.bits = IPV6_BITS;
    if (network.bits == 0 || length > network.bits)
        return false;
    network.length = (int)length;
    network.address =
        from_bytes(bytes, (size_t)network.bits / 8) & ~low_bits(network.bits - network.length);
    *ret_network = network;
    return true;
}

static bool take_network(const struct hcl_call *call, struct network *ret_network)
{
    json_t *keep;

    if (!hcl_argument_text(call, 0, &keep))
        return false;
    bool good = parse_network(json_string_value(keep), ret_network);
    if (!good)
        (void)hcl_call_failed(call, "needs a network as in \"10.0.0.0/8\", but got \"%.60s\"",
                              json_string_value(keep));
    json_decref(keep);
    return good;
}

static void write_ipv4(char to[ADDRESS_SIZE], address_bits address)
{
    unsigned low = (unsigned)(address & 0xffffffff);

    (void)text_format(to, ADDRESS_SIZE, "%u.%u.%u.%u", low >> 24, low >> 16 & 255, low >> 8 & 255,
                      low & 255); /* it fits */
}

/* The longest of the runs of two zeros and more is left out, the first of those. */
static void write_ipv6(char to[ADDRESS_SIZE], address_bits address)
{
    int first = 8, longest = 1;
    size_t at = 0;

    for (int i = 0; i < 8; i++) {
        int zeros = 0;

        while (i + zeros < 8 && (address >> (16 * (7 - i - zeros)) & 0xffff) == 0)
            zeros++;
        if (zeros > longest) {
            first = i;
            longest = zeros;
        }
    }
    for (int i = 0; i < 8; i++) {
        if (i == first) {
            at += (size_t)snprintf(to + at, ADDRESS_SIZE - at, "::");
            i += longest - 1;
            continue;
        }
        at += (size_t)snprintf(to + at, ADDRESS_SIZE - at, "%s%x",
                               i == 0 || i == first + longest ? "" : ":",
                               (unsigned)(address >> (16 * (7 - i)) & 0xffff));
    }
}

/* True if ADDRESS is one of IPv4 in an IPv6 one, which is written without it. */
static bool is_mapped(const struct network *network, address_bits address)
{
    return network->bits == IPV6_BITS && address >> IPV4_BITS == 0xffff;
}

static json_t *address_value(const struct network *network, address_bits address)
{
    char text[ADDRESS_SIZE];

    if (network->bits == IPV4_BITS || is_mapped(network, address))
        write_ipv4(text, address);
    else
        write_ipv6(text, address);
    return json_string(text);
}

static json_t *network_value(const struct network *network)
{
    bool mapped = is_mapped(network, network->address);
    json_t *address = address_value(network, network->address);
    char text[ADDRESS_SIZE];

    (void)text_format(text, sizeof(text), "%s/%d", json_string_value(address),
                      mapped ? network->length - (IPV6_BITS - IPV4_BITS) : network->length);
    json_decref(address);
    return json_string(text);
}

/* --- functions --- */

/* cidrhost("10.0.0.0/8", 5): a negative number counts from the network's end. */
static json_t *run_cidrhost(const struct hcl_call *call)
{
    struct network network;
    int64_t number;

    if (!take_network(call, &network) || !hcl_argument_integer(call, 1, &number))
        return NULL;
    address_bits last = low_bits(network.bits - network.length);
    address_bits host = number >= 0 ? (address_bits)number : (address_bits)(-(number + 1));
    if (host > last)
        return hcl_call_failed(call, "finds no host %" PRId64 " in a prefix of %d bits", number,
                               network.length);
    return address_value(&network, network.address | (number >= 0 ? host : last - host));
}

static json_t *run_cidrnetmask(const struct hcl_call *call)
{
    struct network network;

    if (!take_network(call, &network))
        return NULL;
    return address_value(&network,
                         low_bits(network.bits) & ~low_bits(network.bits - network.length));
}

/* By how many bits argument I makes a prefix of NETWORK longer, at least LEAST. */
static bool take_extension(const struct hcl_call *call, size_t i, const struct network *network,
                           int least, int *ret_bits)
{
    int64_t bits;

    if (!hcl_argument_integer(call, i, &bits))
        return false;
    if (bits < least || bits > EXTENSION_MAX || bits > network->bits - network->length) {
        (void)hcl_call_failed(call,
                              "makes a prefix longer by %d to %d bits and up to %d, but got %d and "
                              "%" PRId64 " more",
                              least, EXTENSION_MAX, network->bits, network->length, bits);
        return false;
    }
    *ret_bits = (int)bits;
    return true;
}

/* cidrsubnet("10.0.0.0/8", 8, 2): the third of the networks whose prefix is 8 bits longer. */
static json_t *run_cidrsubnet(const struct hcl_call *call)
{
    struct network network;
    int64_t number;
    int bits;

    if (!take_network(call, &network) || !take_extension(call, 1, &network, 0, &bits) ||
        !hcl_argument_integer(call, 2, &number))
        return NULL;
    if (number < 0 || (address_bits)number > low_bits(bits))
        return hcl_call_failed(call, "finds no network %" PRId64 " in %d bits", number, bits);
    network.length += bits;
    network.address |= (address_bits)number << (network.bits - network.length);
    return network_value(&network);
}

/* The first network of NETWORK that has *USED of its addresses before it and a prefix of LENGTH
 * bits; false if there is none.  *USED is 0 again when it was the last. */
static bool place(const struct network *network, int length, bool first, address_bits *used,
                  struct network *ret_network)
{
    address_bits last = low_bits(network->bits - network->length);
    address_bits size = low_bits(network->bits - length), from = (*used + size) & ~size;

    if ((!first && *used == 0) || from < *used || from > last)
        return false;
    *ret_network = *network;
    ret_network->length = length;
    ret_network->address |= from;
    *used = from + size == last ? 0 : from + size + 1;
    return true;
}

/* cidrsubnets("10.0.0.0/8", 4, 4, 8): one behind the other, each as soon as its size allows. */
static json_t *run_cidrsubnets(const struct hcl_call *call)
{
    json_t *list = json_array();
    struct network network, one;
    address_bits used = 0;
    bool good = take_network(call, &network);
    int bits;

    check(list != NULL);
    for (size_t i = 1; good && i < call->count; i++) {
        good = take_extension(call, i, &network, 1, &bits);
        if (good && !place(&network, network.length + bits, i == 1, &used, &one)) {
            (void)hcl_call_failed(call, "has no room left for %d bits more, argument %zu", bits,
                                  i + 1);
            good = false;
        }
        if (good)
            check(json_array_append_new(list, network_value(&one)) == 0);
    }
    if (good)
        return list;
    json_decref(list);
    return NULL;
}

const struct hcl_function_row hcl_network_functions[] = {
    {"cidrhost", 2, 2, run_cidrhost},
    {"cidrnetmask", 1, 1, run_cidrnetmask},
    {"cidrsubnet", 3, 3, run_cidrsubnet},
    {"cidrsubnets", 1, SIZE_MAX, run_cidrsubnets},
    {NULL, 0, 0, NULL},
};
