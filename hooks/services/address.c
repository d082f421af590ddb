/*
 * Where a service is, and where its checks ask.
 *
 * Follows nomad v2.0.5 client/serviceregistration/address.go GetAddress, but for what has no label
 * of a port: Nomad's own services are registered without an address then, which helps nobody; here
 * they have the node's.
 */
#include "hooks/services/part.h"

#include <string.h>

enum { PORT_MAX = 65535 };

/* Of the group, or of the task itself. */
static const struct spec_port *find_port(const struct services_wanted *wanted)
{
    const struct spec_ports *ports = &wanted->alloc->ports;
    const struct spec_port *found = NULL;

    for (size_t i = 0; i < ports->count; i++) {
        const struct spec_port *port = &ports->items[i];

        if (!text_equal(port->label, wanted->port))
            continue;
        if (port->task[0] == '\0')
            return port;
        if (text_equal(port->task, wanted->task))
            found = port;
    }
    return found;
}

static const char *node_address(const struct hooks *hooks)
{
    const struct spec_pairs *attributes = &hooks->node->attributes;

    for (size_t i = 0; i < attributes->count; i++) {
        if (text_equal(attributes->items[i].key, "unique.network.ip-address"))
            return attributes->items[i].value;
    }
    return "";
}

/* The port is no label: a number it may be. */
static int read_number(const struct services_wanted *wanted, const char *otherwise,
                       uint16_t *ret_port, struct err *err)
{
    uint64_t number;

    if (!text_to_u64(wanted->port, &number))
        return err_set(err, ERR_INVALID, "invalid port \"%.64s\": %s", wanted->port, otherwise);
    if (number == 0 || number > PORT_MAX)
        return err_set(err, ERR_INVALID, "invalid port \"%.64s\": port must be 1 to %d",
                       wanted->port, PORT_MAX);
    *ret_port = (uint16_t)number;
    return 0;
}

/* Whatever the address is, it goes into URLs. */
static int check_address(const char *address, struct err *err)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:_-";

    return address[strspn(address, allowed)] == '\0'
               ? 0
               : err_set(err, ERR_INVALID, "\"%.64s\" is no address", address);
}

static int find_custom(const struct services_wanted *wanted, struct services_place *place,
                       struct err *err)
{
    const struct spec_port *port = find_port(wanted);

    if (wanted->mode != ADDRESS_AUTO)
        return err_set(err, ERR_INVALID,
                       "cannot use custom advertise address with \"%s\" address mode",
                       wanted->mode == ADDRESS_HOST ? "host" : "alloc");
    place->address = wanted->custom;
    if (wanted->port[0] == '\0')
        return 0;
    if (port == NULL)
        return read_number(wanted, "not a valid port mapping or numeric port", &place->port, err);
    place->port = port->value;
    return 0;
}

static int find_on_host(const struct services_wanted *wanted, struct services_place *place,
                        struct err *err)
{
    const struct spec_port *port = find_port(wanted);

    place->address = node_address(wanted->hooks);
    if (wanted->port[0] == '\0')
        return 0;
    if (port != NULL) {
        if (port->host_ip[0] != '\0')
            place->address = port->host_ip;
        place->port = port->value;
        return 0;
    }
    return read_number(wanted, "port label not found", &place->port, err);
}

/* As it is reached inside, or from other allocs: the number that it has there. */
static int find_in_alloc(const struct services_wanted *wanted, struct services_place *place,
                         struct err *err)
{
    const char *address = json_string_value(json_object_get(wanted->network, "Address"));
    bool is_known = wanted->network != NULL || !spec_has_namespace(wanted->alloc);
    const struct spec_port *port = find_port(wanted);

    if (is_known && (address == NULL || *address == '\0'))
        return err_set(err, ERR_INVALID,
                       "cannot use address_mode=\"alloc\": the group has no network of its own "
                       "with an address");
    place->address = address == NULL ? "" : address;
    if (wanted->port[0] == '\0')
        return 0;
    if (port == NULL)
        return read_number(wanted, "port label not found or is not numeric", &place->port, err);
    place->port = port->to > 0 ? (uint16_t)port->to : port->value;
    return 0;
}

int services_address(const struct services_wanted *wanted, struct services_place *ret_place,
                     struct err *err)
{
    struct services_place place = {.address = ""};
    int code;

    if (wanted->custom[0] != '\0')
        code = find_custom(wanted, &place, err);
    else if (wanted->mode == ADDRESS_ALLOC)
        code = find_in_alloc(wanted, &place, err);
    else
        code = find_on_host(wanted, &place, err);
    if (code == 0)
        code = check_address(place.address, err);
    if (code == 0)
        *ret_place = place;
    return code;
}

char *services_authority(struct arena *arena, const struct services_place *place)
{
    bool six = strchr(place->address, ':') != NULL;
    size_t size = strlen(place->address) + sizeof("[]:65535");
    char *authority = arena_new(arena, size);

    (void)text_format(authority, size, six ? "[%s]:%u" : "%s:%u", place->address,
                      place->port); /* made to fit */
    return authority;
}
