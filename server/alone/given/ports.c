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

/* A port that is given out: to one alloc, and below it to those whose place it takes and that have
 * not ended yet. */
struct held {
    uint32_t key; /* number of the address << 16 | port */
    struct share *newest;
    UT_hash_handle hh;
};

struct share {
    struct held *held;
    struct holder *holder;
    struct share *older; /* of the same port */
    struct share *next;  /* of the same holder */
};

struct holder {
    char alloc[UUID_TEXT_SIZE];
    char awaited[UUID_TEXT_SIZE]; /* the alloc before whose end it is not begun, or "" */
    int64_t created_unix_ns;
    struct share *shares;
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

static void let_go(struct alone *alone, struct share *share)
{
    struct held *held = share->held;
    struct share **at = &held->newest;

    while (*at != share)
        at = &(*at)->older;
    *at = share->older;
    free(share);
    if (held->newest != NULL)
        return;
    free_port(alone, held->key >> 16, (uint16_t)held->key);
    HASH_DEL(alone->ports->held, held);
    free(held);
}

void ports_release(struct alone *alone, const char *alloc)
{
    struct holder *holder = find_holder(alone, alloc);

    if (holder == NULL)
        return;
    HASH_DEL(alone->ports->holders, holder);
    for (struct share *share = holder->shares, *next; share != NULL; share = next) {
        next = share->next;
        let_go(alone, share);
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

/* The alloc that may listen on HELD: the newest that has it, or the one that this one awaits.  Who
 * is between them is told to end, and never begins. */
static const char *listener(const struct alone *alone, const struct held *held)
{
    const struct holder *newest = held->newest->holder;

    return find_holder(alone, newest->awaited) != NULL ? newest->awaited : newest->alloc;
}

static struct held *hold(struct ports *ports, size_t number, uint16_t port)
{
    struct held *held = find_held(ports, number, port);

    if (held != NULL)
        return held;
    held = calloc(1, sizeof(*held));
    check(held != NULL);
    held->key = (uint32_t)number << 16 | port;
    HASH_ADD(hh, ports->held, key, sizeof(held->key), held);
    port_set_add(&ports->addresses[number]->taken, port);
    return held;
}

/* In whatever order they come: what an older alloc has is older. */
static void take_port(struct held *held, struct holder *holder)
{
    struct share **at = &held->newest, *share = malloc(sizeof(*share));

    check(share != NULL);
    while (*at != NULL && (*at)->holder->created_unix_ns > holder->created_unix_ns)
        at = &(*at)->older;
    *share = (struct share){.held = held, .holder = holder, .older = *at, .next = holder->shares};
    *at = holder->shares = share;
}

/* WHO is what all of it is but for its ports, which are GIVEN. */
static void take_all(struct alone *alone, const struct holder *who, const struct spec_ports *given)
{
    struct holder *holder;

    if (given->count == 0)
        return;
    check(find_holder(alone, who->alloc) == NULL);
    holder = malloc(sizeof(*holder));
    check(holder != NULL);
    *holder = *who;
    HASH_ADD_STR(alone->ports->holders, alloc, holder);
    for (size_t i = 0; i < given->count; i++) {
        size_t number = address_number(alone->ports, given->items[i].host_ip);
        take_port(hold(alone->ports, number, given->items[i].value), holder);
    }
}

static struct holder holder_of(const char *alloc, const char *awaited, int64_t created_unix_ns)
{
    struct holder holder = {.created_unix_ns = created_unix_ns};

    (void)text_copy(holder.alloc, sizeof(holder.alloc), alloc);       /* both are UUIDs */
    (void)text_copy(holder.awaited, sizeof(holder.awaited), awaited); /* or "" */
    return holder;
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
    struct holder holder =
        holder_of(id->text, alloc->assign.previous, alloc->assign.create_unix_ns);
    take_all(alone, &holder, &spec->ports);
    alloc_spec_free(spec);
    return true;
}

/* Only who is told to end has a port that another one has, too. */
static void check_held(const struct alone *alone, const struct held *held)
{
    const struct core *core = life_core(alone->config.life);

    for (const struct share *share = held->newest->older; share != NULL; share = share->older) {
        const struct alloc *alloc = core_alloc(core, share->holder->alloc);

        if (alloc == NULL || !alloc->stop_wanted)
            say(&alone->config.say, SAY_ERROR, "server",
                "two allocs have one port address=%s port=%u alloc=%s and=%s",
                alone->ports->addresses[held->key >> 16]->ip, held->key & UINT16_MAX,
                share->holder->alloc, held->newest->holder->alloc);
    }
}

void ports_load(struct alone *alone)
{
    struct held *held, *next;

    core_each(life_core(alone->config.life), MACHINE_ALLOC, hold_stored, alone);
    HASH_ITER(hh, alone->ports->held, held, next)
    check_held(alone, held);
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
    const char *id = held == NULL ? "" : held->newest->holder->alloc;
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
    const struct port_ask *ask;
    const char *awaited; /* the one that listens on what is inherited, NULL: nothing is */
    struct spec_ports offer;
    char *why; /* PORTS_WHY_SIZE */
};

/* True if ALLOC had the place that is asked for, and is ending. */
static bool makes_way(const struct offering *offering, const char *alloc)
{
    const struct gathering *gathering = offering->ask->gathering;
    const char *group = json_string_value(json_object_get(offering->ask->group, "Name"));

    for (size_t a = 0; a < gathering->count; a++) {
        const struct reconcile_alloc *one = &gathering->allocs[a];

        if (text_equal(gathering->ids[a].text, alloc))
            return text_equal(one->group, group) && one->index == offering->ask->index &&
                   (!one->live || one->stop) &&
                   core_alloc(life_core(offering->alone->config.life), alloc) != NULL;
    }
    return false;
}

/* True if PORT of the address may be taken as it is: it is free, or of who had the place before.
 * One alloc can be awaited, not two. */
static bool may_take(struct offering *offering, size_t number, uint16_t port)
{
    const struct ports *ports = offering->alone->ports;
    const struct held *held = find_held(ports, number, port);

    if (!port_set_has(&ports->addresses[number]->taken, port))
        return true;
    if (held == NULL || !makes_way(offering, held->newest->holder->alloc))
        return false;
    for (size_t i = 0; i < offering->offer.count; i++) {
        if (offering->offer.items[i].value == port &&
            text_equal(offering->offer.items[i].host_ip, ports->addresses[number]->ip))
            return false; /* under another label already */
    }
    const char *awaited = listener(offering->alone, held);
    if (offering->awaited != NULL && !text_equal(offering->awaited, awaited))
        return false;
    offering->awaited = awaited;
    return true;
}

static bool offer_static(struct offering *offering, size_t number, struct spec_port *port)
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
    uint64_t seed = hash_u64(offering->ask->seed, offering->offer.count);

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
    struct offering offering = {.alone = alone, .ask = ask, .why = ret_why};
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
    for (size_t i = 0; i < offer->count; i++) {
        size_t number = address_number(alone->ports, offer->items[i].host_ip);
        const struct held *held = find_held(alone->ports, number, offer->items[i].value);

        if (held != NULL)
            return listener(alone, held);
    }
    return "";
}

void ports_keep(struct alone *alone, const struct jobspec_placement *placement, const char *awaited,
                struct spec_ports *offer)
{
    struct holder holder = holder_of(placement->alloc_id, awaited, placement->create_time_unix_ns);

    take_all(alone, &holder, offer);
    free(offer->items);
    *offer = (struct spec_ports){0};
}
