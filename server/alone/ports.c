/*
 * Ports of this node: which are given out, and to which alloc.
 *
 * A number is given out once on each address, static ones as asked for, others from a range.  A
 * host network gives out its first address, unlike Nomad's, which goes on with the next one: who
 * listens on all addresses, as most do, would not find a port of the second free.
 *
 * Unlike the room that an alloc has (room.c) its ports are its own until it has ended: a process
 * that is told to end still listens.  Only the alloc that takes its place inherits its static ones,
 * and is not begun before it has ended.  The numbers stand in the specification of each alloc, so
 * that a life begins with what the journal holds.
 *
 * Kept while things are posted, as room is; what is offered and not placed is given back.
 */
#include "server/alone/part.h"

#include "base/hash.h"
#include "spec/job.h"

#include <stdlib.h>
#include <string.h>

enum { WHOSE_SIZE = SPEC_NAME_SIZE + 64 };

/* One that ports are on: of the node, or one that it had when an alloc was placed. */
struct address {
    char ip[ADDRESS_SIZE];
    struct port_set taken; /* held, offered, or reserved */
};

struct held {
    uint32_t key; /* number of the address << 16 | port */
    struct holder *holder;
    struct held *next;           /* of the same holder */
    char before[UUID_TEXT_SIZE]; /* the alloc that it was inherited from, or "" */
    UT_hash_handle hh;
};

struct holder {
    char alloc[UUID_TEXT_SIZE];
    struct held *held;
    UT_hash_handle hh;
};

struct ports {
    struct address **addresses; /* in the order of the node's, then others */
    size_t count, size;
    struct held *held;
    struct holder *holders;
};

/* --- addresses --- */

static size_t address_number(struct ports *ports, const char *ip)
{
    size_t number = 0;

    while (number < ports->count && !text_equal(ports->addresses[number]->ip, ip))
        number++;
    if (number < ports->count)
        return number;
    ports->addresses =
        list_room(ports->addresses, &ports->size, number + 1, sizeof(*ports->addresses));
    struct address *address = calloc(1, sizeof(*address));
    check(address != NULL);
    (void)text_copy(address->ip, sizeof(address->ip), ip); /* it was checked to be one */
    ports->addresses[ports->count++] = address;
    return number;
}

static bool is_reserved(const struct alone *alone, const struct address *address, uint16_t port)
{
    const struct alone_node *node = &alone->config.node;

    for (size_t i = 0; i < node->addresses_count; i++) {
        if (text_equal(node->addresses[i].ip, address->ip) &&
            port_set_has(&node->addresses[i].reserved, port))
            return true;
    }
    return false;
}

void ports_begin(struct alone *alone)
{
    const struct alone_node *node = &alone->config.node;

    alone->ports = calloc(1, sizeof(*alone->ports));
    check(alone->ports != NULL);
    for (size_t i = 0; i < node->addresses_count; i++) {
        size_t number = address_number(alone->ports, node->addresses[i].ip);
        struct port_set *taken = &alone->ports->addresses[number]->taken;

        for (size_t w = 0; w < COUNT_OF(taken->bits); w++)
            taken->bits[w] |= node->addresses[i].reserved.bits[w];
    }
}

/* --- holders --- */

static struct holder *find_holder(const struct alone *alone, const char *alloc)
{
    struct holder *holder;

    HASH_FIND_STR(alone->ports->holders, alloc, holder);
    return holder;
}

static struct held *find_held(const struct ports *ports, size_t address, uint16_t port)
{
    uint32_t key = (uint32_t)address << 16 | port;
    struct held *held;

    HASH_FIND(hh, ports->held, &key, sizeof(key), held);
    return held;
}

static void free_port(struct alone *alone, size_t number, uint16_t port)
{
    struct address *address = alone->ports->addresses[number];

    if (!is_reserved(alone, address, port)) /* an alloc may be older than what reserves it */
        port_set_drop(&address->taken, port);
}

static void give_to(struct held *held, struct holder *holder)
{
    held->holder = holder;
    held->next = holder->held;
    holder->held = held;
}

void ports_release(struct alone *alone, const char *alloc)
{
    struct holder *holder = find_holder(alone, alloc);

    if (holder == NULL)
        return;
    HASH_DEL(alone->ports->holders, holder);
    for (struct held *held = holder->held, *next; held != NULL; held = next) {
        struct holder *before = held->before[0] == '\0' ? NULL : find_holder(alone, held->before);

        next = held->next;
        if (before != NULL) { /* it has not ended yet, and goes on to have it */
            held->before[0] = '\0';
            give_to(held, before);
            continue;
        }
        free_port(alone, held->key >> 16, (uint16_t)held->key);
        HASH_DEL(alone->ports->held, held);
        free(held);
    }
    free(holder);
    alone->room_freed = true;
}

void ports_end(struct alone *alone)
{
    struct holder *holder, *next;

    HASH_ITER(hh, alone->ports->holders, holder, next)
    ports_release(alone, holder->alloc);
    for (size_t i = 0; i < alone->ports->count; i++)
        free(alone->ports->addresses[i]);
    free(alone->ports->addresses);
    free(alone->ports);
}

/* The alloc that has HELD and may listen on it: one that inherited it has not begun as long as the
 * one before it has not ended. */
static const char *listener(const struct alone *alone, const struct held *held)
{
    bool waits = held->before[0] != '\0' && find_holder(alone, held->before) != NULL;

    return waits ? held->before : held->holder->alloc;
}

/* The one before it is ending, and lets HELD go to HOLDER. */
static void inherit(const struct alone *alone, struct held *held, struct holder *holder)
{
    struct held **at = &held->holder->held;
    char before[UUID_TEXT_SIZE];

    (void)text_copy(before, sizeof(before), listener(alone, held)); /* a UUID */
    while (*at != held)
        at = &(*at)->next;
    *at = held->next;
    (void)text_copy(held->before, sizeof(held->before), before); /* a UUID */
    give_to(held, holder);
}

/* True if ALLOC is not begun before the alloc BEFORE has ended. */
static bool awaits(const struct alone *alone, const char *alloc, const char *before)
{
    const struct alloc *record = core_alloc(life_core(alone->config.life), alloc);

    return record != NULL && text_equal(record->assign.previous, before);
}

/* True if both wait for the end of one alloc: then one of them is told to end, and never begins. */
static bool await_one(const struct alone *alone, const char *alloc, const char *other)
{
    const struct alloc *record = core_alloc(life_core(alone->config.life), alloc);

    return record != NULL && record->assign.previous[0] != '\0' &&
           awaits(alone, other, record->assign.previous);
}

/* Two allocs of the journal have one port: right if one waits for the end of the other. */
static void hold_second(const struct alone *alone, struct held *held, struct holder *holder,
                        const struct spec_port *port)
{
    const struct alloc *record = core_alloc(life_core(alone->config.life), holder->alloc);

    if (awaits(alone, holder->alloc, held->holder->alloc))
        inherit(alone, held, holder);
    else if (await_one(alone, holder->alloc, held->holder->alloc) && record != NULL &&
             !record->stop_wanted)
        inherit(alone, held, holder);
    else if (awaits(alone, held->holder->alloc, holder->alloc))
        (void)text_copy(held->before, sizeof(held->before), holder->alloc); /* a UUID */
    else if (!await_one(alone, holder->alloc, held->holder->alloc))
        say(&alone->config.say, SAY_ERROR, "server",
            "two allocs have one port address=%s port=%u alloc=%s and=%s", port->host_ip,
            port->value, held->holder->alloc, holder->alloc);
}

/* BEFORE: the alloc that it inherits from, or NULL. */
static void hold(struct alone *alone, const char *alloc, const struct spec_ports *given,
                 const char *before)
{
    struct ports *ports = alone->ports;
    struct holder *holder;

    if (given->count == 0)
        return;
    holder = calloc(1, sizeof(*holder));
    check(holder != NULL);
    check(find_holder(alone, alloc) == NULL);
    (void)text_copy(holder->alloc, sizeof(holder->alloc), alloc); /* a UUID */
    HASH_ADD_STR(ports->holders, alloc, holder);
    for (size_t i = 0; i < given->count; i++) {
        size_t number = address_number(ports, given->items[i].host_ip);
        uint16_t port = given->items[i].value;
        struct held *held = find_held(ports, number, port);

        if (held != NULL && before != NULL && text_equal(held->holder->alloc, before)) {
            inherit(alone, held, holder);
            continue;
        }
        if (held != NULL) {
            hold_second(alone, held, holder, &given->items[i]);
            continue;
        }
        held = calloc(1, sizeof(*held));
        check(held != NULL);
        held->key = (uint32_t)number << 16 | port;
        give_to(held, holder);
        HASH_ADD(hh, ports->held, key, sizeof(held->key), held);
        port_set_add(&ports->addresses[number]->taken, port);
    }
}

/* --- a new life --- */

/* True if what ALLOC was placed by need not be read: its job is as it was and asks for no port. */
static bool asks_for_none(const struct alone *alone, const struct alloc *alloc)
{
    const struct job *job = job_find(alone, alloc->assign.namespace, alloc->assign.job_id);
    struct spec_port ports[SPEC_PORTS_MAX];
    size_t number, count;
    const json_t *group = job == NULL || job->public.version != alloc->assign.job_version
                              ? NULL
                              : job_group(job, alloc->assign.group, &number);

    return group != NULL && jobspec_ports(group, ports, &count) && count == 0;
}

static bool hold_stored(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct alone *alone = ctx;
    const struct alloc *alloc = alloc_of(record);
    struct alloc_spec *spec;

    if (alloc->ended_unix_ns != 0 || asks_for_none(alone, alloc))
        return true;
    spec = alone_read_spec(alone, id->text);
    if (spec == NULL)
        return true; /* it ends, and failed: without it nothing of it runs on */
    hold(alone, id->text, &spec->ports, NULL);
    alloc_spec_free(spec);
    return true;
}

void ports_load(struct alone *alone)
{
    core_each(life_core(alone->config.life), MACHINE_ALLOC, hold_stored, alone);
}

/* --- offers --- */

/* The address of the host network that PORT asks for, NULL: the node has no such network. */
static const char *ip_for(const struct alone *alone, const struct spec_port *port)
{
    const struct alone_node *node = &alone->config.node;

    for (size_t i = 0; i < node->addresses_count; i++) {
        if (text_equal(node->addresses[i].network, port->host_network))
            return node->addresses[i].ip;
    }
    return NULL;
}

json_t *ports_missing(const struct alone *alone, const json_t *group)
{
    struct spec_port ports[SPEC_PORTS_MAX];
    size_t count;

    (void)jobspec_ports(group, ports, &count); /* of a job that was checked */
    for (size_t i = 0; i < count; i++) {
        if (ip_for(alone, &ports[i]) == NULL)
            return json_sprintf("missing host network \"%s\" for port \"%s\"",
                                ports[i].host_network, ports[i].label);
    }
    return NULL;
}

/* Whose PORT of the address that is NUMBER is, as a sentence goes on. */
static void say_holder(const struct alone *alone, size_t number, uint16_t port, char to[WHOSE_SIZE])
{
    const struct held *held = find_held(alone->ports, number, port);
    const char *id = held == NULL ? "" : held->holder->alloc;
    const struct alloc *alloc = held == NULL ? NULL : core_alloc(life_core(alone->config.life), id);
    bool ending = alloc != NULL && (alloc->stop_wanted || posted_to_end(alone, id));

    if (held == NULL) /* all of these fit */
        (void)text_copy(to, WHOSE_SIZE,
                        is_reserved(alone, alone->ports->addresses[number], port)
                            ? "reserved by the node's configuration"
                            : "given to another alloc of this job");
    else if (alloc == NULL)
        (void)text_format(to, WHOSE_SIZE, "held by alloc %.8s", id);
    else
        (void)text_format(to, WHOSE_SIZE, "held by alloc %.8s of job \"%s\"%s", id,
                          alloc->assign.job_id, ending ? ", which is ending" : "");
}

/* What an offer is made of. */
struct offering {
    struct alone *alone;
    const char *heir_of; /* NULL: of nobody */
    uint64_t seed;
    struct spec_ports offer;
    char *why; /* PORTS_WHY_SIZE */
};

/* True if PORT of the address may be taken as it is: it is free, or that of who is replaced. */
static bool may_take(const struct offering *offering, size_t number, uint16_t port)
{
    const struct ports *ports = offering->alone->ports;
    const struct held *held = find_held(ports, number, port);

    if (!port_set_has(&ports->addresses[number]->taken, port))
        return true;
    if (held == NULL || offering->heir_of == NULL ||
        !text_equal(held->holder->alloc, offering->heir_of))
        return false;
    for (size_t i = 0; i < offering->offer.count; i++) {
        if (offering->offer.items[i].value == port &&
            text_equal(offering->offer.items[i].host_ip, ports->addresses[number]->ip))
            return false; /* under another label already */
    }
    return true;
}

static bool offer_static(const struct offering *offering, size_t number, struct spec_port *port)
{
    char whose[WHOSE_SIZE];

    if (may_take(offering, number, port->value))
        return true;
    say_holder(offering->alone, number, port->value, whose);
    (void)text_format(offering->why, PORTS_WHY_SIZE, "network: reserved port collision %s=%u: %s",
                      port->label, port->value, whose); /* fits */
    return false;
}

static bool offer_dynamic(const struct offering *offering, size_t number, struct spec_port *port)
{
    const struct port_range *range = &offering->alone->config.node.dynamic_ports;
    const struct port_set *taken = &offering->alone->ports->addresses[number]->taken;
    uint64_t seed = hash_u64(offering->seed, offering->offer.count);

    port->value = policy_pick_port(taken, range, seed);
    port->to = port->to == -1 ? port->value : port->to;
    if (port->value != 0)
        return true;
    (void)text_format(offering->why, PORTS_WHY_SIZE,
                      "network: dynamic port selection failed: none of %u to %u is free for %s",
                      range->first, range->last, port->label); /* fits */
    return false;
}

static bool offer_port(struct offering *offering, struct spec_port *port)
{
    struct ports *ports = offering->alone->ports;
    size_t number = address_number(ports, ip_for(offering->alone, port));

    if (port->is_static ? !offer_static(offering, number, port)
                        : !offer_dynamic(offering, number, port))
        return false;
    port_set_add(&ports->addresses[number]->taken, port->value);
    port->host_ip = ports->addresses[number]->ip;
    offering->offer.items[offering->offer.count++] = *port;
    return true;
}

void ports_return(struct alone *alone, struct spec_ports *offer)
{
    for (size_t i = 0; i < offer->count; i++) {
        size_t number = address_number(alone->ports, offer->items[i].host_ip);

        if (find_held(alone->ports, number, offer->items[i].value) == NULL)
            free_port(alone, number, offer->items[i].value);
    }
    free(offer->items);
    *offer = (struct spec_ports){0};
}

bool ports_offer(struct alone *alone, const struct port_ask *ask, struct spec_ports *ret_offer,
                 char ret_why[PORTS_WHY_SIZE])
{
    struct offering offering = {
        .alone = alone, .heir_of = ask->heir_of, .seed = ask->seed, .why = ret_why};
    struct spec_port ports[SPEC_PORTS_MAX];
    size_t count;

    (void)jobspec_ports(ask->group, ports, &count); /* of a job that was checked */
    if (count == 0)
        return true;
    offering.offer.items = calloc(count, sizeof(*offering.offer.items));
    check(offering.offer.items != NULL);
    for (size_t i = 0; i < count; i++) {
        if (!offer_port(&offering, &ports[i])) {
            ports_return(alone, &offering.offer);
            return false;
        }
    }
    *ret_offer = offering.offer;
    return true;
}

const char *ports_awaited(const struct alone *alone, const struct spec_ports *offer)
{
    const char *awaited = "";

    for (size_t i = 0; i < offer->count; i++) {
        size_t number = address_number(alone->ports, offer->items[i].host_ip);
        const struct held *held = find_held(alone->ports, number, offer->items[i].value);

        if (held == NULL)
            continue;
        awaited = listener(alone, held);
        if (!text_equal(awaited, held->holder->alloc))
            break; /* that one is before all others */
    }
    return awaited;
}

void ports_keep(struct alone *alone, const char *alloc, const char *previous,
                struct spec_ports *offer)
{
    hold(alone, alloc, offer, previous);
    free(offer->items);
    *offer = (struct spec_ports){0};
}
