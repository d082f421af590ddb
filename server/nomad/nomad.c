/* The client of Nomad's servers: its parts, and when each of them is woken. */
#include "server/nomad/part.h"

#include <string.h>

struct nomad *nomad_new(const struct nomad_config *config, const char *const *servers,
                        size_t servers_count)
{
    struct nomad *nomad = calloc(1, sizeof(*nomad));

    check(nomad != NULL);
    check(config->life != NULL);
    check(servers_count <= NOMAD_SERVERS_MAX && implies(config->seek == NULL, servers_count > 0));
    nomad->config = *config;
    for (size_t i = 0; i < servers_count; i++)
        check(text_copy(nomad->servers[i], NOMAD_ADDRESS_SIZE, servers[i]));
    nomad->servers_count = servers_count;
    claims_open(nomad);
    awaiting_open(nomad);
    return nomad;
}

void nomad_free(struct nomad *nomad)
{
    if (nomad == NULL)
        return;
    servers_end(nomad);
    claims_end(nomad);
    signing_end(nomad);
    finding_end(nomad);
    awaiting_end(nomad);
    facts_end(nomad);
    moving_end(nomad);
    allocs_end(nomad);
    mine_end(nomad);
    offers_end(nomad);
    free(nomad->pushed.items);
    free(nomad);
}

/* --- when --- */

static void earlier(uint64_t *at_ms, uint64_t other_ms)
{
    if (other_ms != 0 && (*at_ms == 0 || other_ms < *at_ms))
        *at_ms = other_ms;
}

static uint64_t deadline_ms(const struct nomad *nomad)
{
    uint64_t at_ms = nomad->session_at_ms;

    if (nomad->is_unknown || nomad->beats_soon)
        return nomad_now_ms(nomad);
    if (nomad->session == SESSION_HERE)
        earlier(&at_ms, nomad->change_at_ms);
    if (!nomad->asking)
        earlier(&at_ms, nomad->ask_at_ms);
    earlier(&at_ms, finding_at_ms(nomad));
    earlier(&at_ms, awaiting_at_ms(nomad));
    earlier(&at_ms, facts_at_ms(nomad));
    earlier(&at_ms, moving_at_ms(nomad));
    if (!nomad->pushing && nomad->synced && nomad->registered)
        earlier(&at_ms, nomad->push_at_ms);
    if (!nomad->offering && nomad->synced && nomad->registered)
        earlier(&at_ms, nomad->offer_at_ms);
    if (!nomad->telling_events && nomad->registered)
        earlier(&at_ms, nomad->event_at_ms);
    return at_ms;
}

static void arm(struct nomad *nomad)
{
    nomad->config.arm(nomad->config.ctx, nomad->started ? deadline_ms(nomad) : 0);
}

void nomad_wake(struct nomad *nomad)
{
    registration_wake(nomad);
    allocs_wake(nomad);
    finding_wake(nomad);
    awaiting_wake(nomad);
    facts_wake(nomad);
    moving_wake(nomad);
    status_wake(nomad);
    offers_wake(nomad);
    events_wake(nomad);
    arm(nomad);
}

void nomad_settle(struct nomad *nomad)
{
    if (nomad == NULL)
        return;
    memset(&nomad->posted, 0, sizeof(nomad->posted));
    awaiting_settle(nomad);
    arm(nomad);
}

void nomad_found(struct nomad *nomad, const char (*places)[NOMAD_ADDRESS_SIZE], size_t count)
{
    if (nomad->tries == 0 || !servers_add(nomad, places, count))
        return; /* who has answered meanwhile has said who they are */
    registration_found(nomad);
    arm(nomad);
}

void nomad_set_servers(struct nomad *nomad, const char (*places)[NOMAD_ADDRESS_SIZE], size_t count)
{
    servers_set(nomad, places, count);
    registration_found(nomad);
    arm(nomad);
}

void nomad_start(struct nomad *nomad)
{
    allocs_begin(nomad);
    events_begin(nomad);
    nomad->started = true;
    nomad->heard = arm;
    nomad->began_ms = nomad_now_ms(nomad);
    nomad->session_at_ms = nomad->began_ms + 1;
    arm(nomad);
}

/* --- what is seen of it --- */

void nomad_describe(const struct nomad *nomad, struct nomad_standing *ret_standing)
{
    *ret_standing = (struct nomad_standing){
        .registered = nomad->registered,
        .synced = nomad->synced,
        .server = nomad->servers[0],
        .servers_count = nomad->servers_count,
        .heard_ms = nomad->beat.heard_ms,
        .ttl_ms = nomad->beat.ttl_ms,
        .trouble = nomad->trouble,
    };
}

const char *nomad_server(const struct nomad *nomad, size_t number)
{
    check(number < nomad->servers_count);
    return nomad->servers[number];
}
