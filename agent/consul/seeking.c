#include "agent/consul/seeking.h"

#include "agent/consul/reach.h"
#include "agent/parts.h"
#include "io/log.h"
#include "server/nomad/nomad.h"

#include <stdlib.h>

#define TAG "rpc" /* of what servers of Nomad register, the place that clients ask */

struct seeking {
    struct parts *parts;
    struct consul_config consul;
    struct consul_search_config config;
    struct consul_search *search;
    bool told; /* that nothing is found */
};

static void found(void *ctx, const char (*places)[CONSUL_PLACE_SIZE], size_t count,
                  const struct err *err)
{
    struct seeking *seeking = ctx;

    _Static_assert((int)CONSUL_PLACE_SIZE == (int)NOMAD_ADDRESS_SIZE,
                   "what one finds the other asks");
    if (count == 0 && !seeking->told)
        log_warn("server", "Consul names no server error=%s", log_value(err->text));
    seeking->told = count == 0;
    nomad_found(seeking->parts->nomad, places, count);
}

struct seeking *seeking_new(struct parts *parts)
{
    if (!parts->config->consul.client_auto_join)
        return NULL;
    struct seeking *seeking = calloc(1, sizeof(*seeking));
    check(seeking != NULL);
    seeking->parts = parts;
    seeking->consul = reach_consul(parts);
    seeking->config = (struct consul_search_config){
        .consul = &seeking->consul,
        .service = parts->config->consul.server_service_name,
        .tag = TAG,
        .found = found,
        .ctx = seeking,
    };
    seeking->search = consul_search_new(&seeking->config);
    return seeking;
}

void seeking_free(struct seeking *seeking)
{
    if (seeking == NULL)
        return;
    consul_search_free(seeking->search);
    free(seeking);
}

void seeking_begin(void *seeking)
{
    consul_search_begin(((struct seeking *)seeking)->search);
}
