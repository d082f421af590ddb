/*
 * Connections to servers: one to each that is called, made when it is, kept until it ends, or until
 * another server is called when this one is none any more and nothing is under way there.
 */
#include "agent/servers/part.h"

#include "agent/services/catalogue.h"
#include "agent/world.h"
#include "io/log.h"
#include "server/acl/lent.h"

#include <stdlib.h>
#include <sys/random.h>

/* A connection to one server. */
struct link {
    struct servers *servers;
    char address[NOMAD_ADDRESS_SIZE];
    struct rpc *rpc;
    struct link *next;
};

struct servers {
    struct parts *parts;
    struct api *api;
    struct nomad *nomad;
    struct link *links;
    struct vain *vain; /* calls that could not be begun, and were not told of that yet */
    struct rpc_tls tls;
    char name[96]; /* that certificates of servers carry */
    struct servers_seek seek;
    struct storage_calls storage;
    struct rng rng;
    struct io_timer timer;
};

/* --- connections --- */

static void called(void *ctx, struct rpc_called *called, const char *method, const json_t *args)
{
    struct servers *servers = ((const struct link *)ctx)->servers;

    if (!storage_calls_begin(&servers->storage, called, method, args))
        calls_begin(servers->api, called, method, args);
}

static void opened(void *ctx, struct rpc_stream *stream, const char *method, const json_t *args)
{
    const struct link *link = ctx;

    streams_begin(link->servers->api, stream, method, args);
}

static void close_link(struct link *link)
{
    struct link **from = &link->servers->links;

    while (*from != link)
        from = &(*from)->next;
    *from = link->next;
    rpc_close(link->rpc);
    free(link);
}

static void ended(void *ctx, const struct err *why)
{
    struct link *link = ctx;
    struct nomad *nomad = link->servers->nomad;

    log_debug("server", "connection is over server=%s why=%s", log_value(link->address),
              log_value(why->text));
    close_link(link);
    nomad_connection_over(nomad);
}

static bool is_server(const struct servers *servers, const char *address)
{
    struct nomad_standing standing;

    nomad_describe(servers->nomad, &standing);
    for (size_t i = 0; i < standing.servers_count; i++) {
        if (text_equal(nomad_server(servers->nomad, i), address))
            return true;
    }
    return false;
}

/* The connection to ADDRESS; those that are of no use any more are closed on the way. */
static struct link *find_link(struct servers *servers, const char *address)
{
    struct link *found = NULL, *next;

    for (struct link *link = servers->links; link != NULL; link = next) {
        next = link->next;
        if (text_equal(link->address, address))
            found = link;
        else if (rpc_is_idle(link->rpc) && !is_server(servers, link->address))
            close_link(link);
    }
    return found;
}

/* NULL with ERR. */
static struct link *open_link(struct servers *servers, const char *address, struct err *err)
{
    struct link *link = calloc(1, sizeof(*link));
    struct rpc_config config = {
        .loop = servers->parts->loop,
        .address = address,
        .tls = servers->parts->config->tls_rpc ? &servers->tls : NULL,
        .called = called,
        .streams = streams_know,
        .opened = opened,
        .ended = ended,
        .ctx = link,
    };

    check(link != NULL);
    link->servers = servers;
    (void)text_copy(link->address, sizeof(link->address), address); /* of that size */
    link->rpc = rpc_open(&config, err);
    if (link->rpc == NULL) {
        free(link);
        return NULL;
    }
    link->next = servers->links;
    servers->links = link;
    return link;
}

/* The connection to ADDRESS, NULL with ERR. */
static struct link *link_to(struct servers *servers, const char *address, struct err *err)
{
    struct link *link = find_link(servers, address);

    return link == NULL ? open_link(servers, address, err) : link;
}

/* --- a call that could not even be begun --- */

struct vain {
    struct io_timer timer;
    nomad_reply_cb *cb;
    void *ctx;
    struct err err;
    struct vain *next, **link;
};

static void end_vain(struct vain *vain)
{
    io_timer_stop(&vain->timer);
    *vain->link = vain->next;
    if (vain->next != NULL)
        vain->next->link = vain->link;
    vain->cb(vain->ctx, NULL, &vain->err);
    free(vain);
}

static void tell_vain(struct io_timer *timer)
{
    end_vain(timer->ctx);
}

static void call(void *ctx, const char *server, const char *method, const json_t *args,
                 uint64_t timeout_ms, nomad_reply_cb *cb, void *cb_ctx)
{
    struct servers *servers = ctx;
    struct link *link = NULL;
    struct err err = {0};

    if (server[0] == '\0')
        (void)err_set(&err, ERR_AGAIN, "no server is known"); /* it is told below */
    else
        link = link_to(servers, server, &err);
    if (link != NULL) {
        (void)rpc_call(link->rpc, method, args, timeout_ms, cb, cb_ctx); /* none is canceled */
        return;
    }
    struct vain *vain = calloc(1, sizeof(*vain));
    check(vain != NULL);
    *vain = (struct vain){
        .cb = cb, .ctx = cb_ctx, .err = err, .next = servers->vain, .link = &servers->vain};
    if (vain->next != NULL)
        vain->next->link = &vain->next;
    servers->vain = vain;
    io_timer_start(servers->parts->loop, &vain->timer, loop_now_ms(), tell_vain, vain);
}

/* --- what it is handed --- */

static void due(struct io_timer *timer)
{
    struct servers *servers = timer->ctx;

    nomad_wake(servers->nomad);
}

static void arm(void *ctx, uint64_t at_ms)
{
    struct servers *servers = ctx;
    uint64_t offset_ms = servers->parts->node.identity.clock_offset_ms;

    if (at_ms == 0)
        io_timer_stop(&servers->timer);
    else
        io_timer_start(servers->parts->loop, &servers->timer,
                       at_ms > offset_ms ? at_ms - offset_ms : 0, due, servers);
}

static void seek(void *ctx)
{
    const struct servers *servers = ctx;

    servers->seek.begin(servers->seek.ctx);
}

static uint64_t draw(void *ctx)
{
    struct servers *servers = ctx;

    return rng_next(&servers->rng);
}

static json_t *describe_node(void *ctx)
{
    struct servers *servers = ctx;

    return api_describe_node(servers->api);
}

static json_t *describe_alloc(void *ctx, const char *alloc)
{
    struct servers *servers = ctx;

    return api_describe_alloc(servers->api, alloc);
}

/* --- events of the node --- */

static json_t *unheard_events(void *ctx, int64_t *ret_until_unix_ns)
{
    struct servers *servers = ctx;
    json_t *events = health_unheard(&servers->parts->health, ret_until_unix_ns);
    json_t *told = events == NULL ? NULL : api_describe_events(events);

    json_decref(events);
    return told;
}

static void events_heard(void *ctx, int64_t until_unix_ns)
{
    struct servers *servers = ctx;

    health_heard(&servers->parts->health, servers->parts->core, until_unix_ns);
}

static void events_changed(void *ctx)
{
    struct servers *servers = ctx;

    nomad_events_changed(servers->nomad);
}

static void placed(void *ctx, struct alloc_spec *spec)
{
    struct servers *servers = ctx;

    specs_placed(servers->parts->specs, spec);
}

/* --- services --- */

static void service_changed(void *ctx, bool registered, const struct catalogue_entry *entry)
{
    struct servers *servers = ctx;
    json_t *registration = catalogue_registration(servers->parts->catalogue, entry);

    nomad_offer(servers->nomad, registered, registration);
    json_decref(registration);
}

/* What is offered by those that were found running. */
static void offer_one(void *ctx, const struct catalogue_entry *entry)
{
    service_changed(ctx, true, entry);
}

/* --- birth and end --- */

static void find_tls(struct servers *servers)
{
    const struct config *config = servers->parts->config;

    (void)text_format(servers->name, sizeof(servers->name), "server.%s.nomad",
                      config->region); /* it fits */
    servers->tls =
        (struct rpc_tls){.ca_file = config->tls_ca_file,
                         .cert_file = config->tls_cert_file,
                         .key_file = config->tls_key_file,
                         .server_name = config->tls_verifies_server ? servers->name : NULL};
}

/* --- tokens --- */

static void ask_about_token(void *ctx, const char *method, json_t *args, const char *secret,
                            acl_lent_reply *cb, void *cb_ctx)
{
    struct parts *parts = ctx;

    nomad_ask(parts->nomad, method, args, secret, 0, cb, cb_ctx);
}

static uint64_t now_ms(void *ctx)
{
    (void)ctx;
    return loop_now_ms();
}

static int64_t now_unix_ns(void *ctx)
{
    (void)ctx;
    return loop_now_unix_ns();
}

/* What servers say of tokens, of a node that asks for some. */
static struct acl_lent *lend(struct parts *parts)
{
    const struct config *config = parts->config;
    uint64_t ttl_ms = config->token_ttl_ms;

    if (!config->acl_enabled)
        return NULL;
    ttl_ms = config->policy_ttl_ms < ttl_ms ? config->policy_ttl_ms : ttl_ms;
    ttl_ms = config->role_ttl_ms < ttl_ms ? config->role_ttl_ms : ttl_ms;
    return acl_lent_new(&(struct acl_lent_config){.say = world_say,
                                                  .ttl_ms = ttl_ms,
                                                  .ctx = parts,
                                                  .ask = ask_about_token,
                                                  .now_ms = now_ms,
                                                  .now_unix_ns = now_unix_ns});
}

struct servers *servers_new(struct parts *parts, struct api *api, const struct assign_plans *plans,
                            const struct servers_seek *how)
{
    char text[SERVERS_TEXT_SIZE];
    const char *addresses[NOMAD_SERVERS_MAX];
    size_t count = config_servers(parts->config, text, addresses);
    uint64_t seed = 0;

    if (!config_has_servers(parts->config))
        return NULL;
    struct servers *servers = calloc(1, sizeof(*servers));
    check(servers != NULL);
    if (getrandom(&seed, sizeof(seed), 0) < 0)
        seed = (uint64_t)loop_now_unix_ns();
    servers->parts = parts;
    servers->storage.parts = parts;
    servers->api = api;
    servers->rng = rng_init(seed);
    servers->seek = *how;
    find_tls(servers);
    struct nomad_config config = {
        .life = parts->life,
        .say = world_say,
        .ctx = servers,
        .call = call,
        .seek = servers->seek.begin == NULL ? NULL : seek,
        .arm = arm,
        .random = draw,
        .region = parts->config->region,
        .node_id = parts->node.identity.id,
        .secret = parts->node.identity.secret,
        .describe_node = describe_node,
        .describe_alloc = describe_alloc,
        .unheard_events = unheard_events,
        .events_heard = events_heard,
        .placed = placed,
        .plans = *plans,
        .datacenter = parts->node.known.datacenter,
    };
    servers->nomad = nomad_new(&config, addresses, count);
    parts->nomad = servers->nomad;
    parts->lent = lend(parts);
    nomad_start(servers->nomad);
    parts->health.changed = events_changed;
    parts->health.ctx = servers;
    catalogue_listen(parts->catalogue, CATALOGUE_SERVERS, service_changed, servers);
    catalogue_each(parts->catalogue, NULL, offer_one, servers);
    return servers;
}

void servers_free(struct servers *servers)
{
    if (servers == NULL)
        return;
    servers->parts->nomad = NULL;
    servers->parts->health.changed = NULL;
    catalogue_listen(servers->parts->catalogue, CATALOGUE_SERVERS, NULL, NULL);
    nomad_free(servers->nomad); /* hears no answer any more */
    io_timer_stop(&servers->timer);
    storage_calls_end(&servers->storage);
    while (servers->vain != NULL)
        end_vain(servers->vain);
    while (servers->links != NULL)
        close_link(servers->links);
    free(servers);
}
