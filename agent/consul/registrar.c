#include "agent/consul/registrar.h"

#include "agent/consul/mesh.h"
#include "agent/consul/reach.h"
#include "agent/consul/script_checks.h"
#include "agent/parts.h"
#include "agent/services/catalogue.h"
#include "io/log.h"
#include "server/nomad/nomad.h"

#include <stdlib.h>
#include <string.h>

struct registrar {
    struct parts *parts;
    struct consul_config config;
    struct consul *consul;
    struct script_checks *scripts;
};

static void service_changed(void *ctx, bool registered, const struct catalogue_entry *entry)
{
    struct registrar *registrar = ctx;
    char token[CONNECT_TOKEN_SIZE];

    if (registered) {
        bool has = hooks_service_token(registrar->parts->hooks, entry->alloc->id,
                                       entry->service->spec, token);

        consul_want(registrar->consul, entry->service->registration, has ? token : NULL);
        explicit_bzero(token, sizeof(token));
        script_checks_begin(registrar->scripts, entry->alloc->id, entry->service);
    } else {
        script_checks_end(registrar->scripts, entry->alloc->id, entry->service->id);
        consul_drop(registrar->consul, entry->service->id);
    }
}

static bool knows(void *ctx, const char *alloc)
{
    const struct registrar *registrar = ctx;

    return core_alloc(registrar->parts->core, alloc) != NULL;
}

static void found(void *ctx, const struct spec_pairs *attributes, const char *envoy)
{
    struct registrar *registrar = ctx;
    struct parts *parts = registrar->parts;

    parts->has_asked_consul = true;
    mesh_found(parts->mesh, attributes, envoy);
    if (!node_set_consul(&parts->node, attributes))
        return;
    alone_node_changed(parts->alone);
    nomad_node_changed(parts->nomad);
}

static void checked(void *ctx, const char *alloc, const char *check, enum consul_status status)
{
    struct registrar *registrar = ctx;

    catalogue_checked(registrar->parts->catalogue, alloc, check, status);
}

static bool watched(void *ctx)
{
    struct registrar *registrar = ctx;

    return catalogue_watches_consul(registrar->parts->catalogue);
}

struct registrar *registrar_new(struct parts *parts)
{
    if (!parts->config->consul.used)
        return NULL;
    struct registrar *registrar = calloc(1, sizeof(*registrar));
    check(registrar != NULL);
    registrar->parts = parts;
    registrar->config = reach_consul(parts);
    registrar->config.ctx = registrar;
    registrar->config.knows = knows;
    registrar->config.found = found;
    registrar->config.checked = checked;
    registrar->config.watched = watched;
    registrar->consul = consul_new(&registrar->config);
    registrar->scripts = script_checks_new(parts, registrar->consul);
    catalogue_listen(parts->catalogue, CATALOGUE_CONSUL, service_changed, registrar);
    return registrar;
}

void registrar_advertise(struct registrar *registrar, const char *address)
{
    if (registrar == NULL || !registrar->parts->config->consul.auto_advertise)
        return;
    const struct config *config = registrar->parts->config;
    struct http_tls tls;
    bool has_tls = config_tls(config, &tls);
    const struct consul_api api = {.address = address,
                                   .service = config->consul.client_service_name,
                                   .check_name = config->consul.client_http_check_name,
                                   .has_tls = has_tls,
                                   .asks_certificates = has_tls && tls.ca_file != NULL};
    json_t *registration = consul_api_registration(&api, registrar->config.node_id);

    if (api.asks_certificates)
        log_warn("consul", "who asks for the health of this node has to show a certificate, which "
                           "Consul has none for: it is registered without a check");
    consul_want(registrar->consul, registration, NULL);
    json_decref(registration);
}

void registrar_free(struct registrar *registrar)
{
    if (registrar == NULL)
        return;
    catalogue_listen(registrar->parts->catalogue, CATALOGUE_CONSUL, NULL, NULL);
    script_checks_free(registrar->scripts);
    consul_free(registrar->consul);
    free(registrar);
}
