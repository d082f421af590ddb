/*
 * Services that are offered here, told to the servers, whose registry it is.
 *
 * What is offered follows from the machines; here is only what of it the servers have not heard.
 * After a restart all of it is told again, which changes nothing there; what was withdrawn while
 * nobody could tell them is withdrawn by them, as they hear that its alloc has ended.
 */
#include "server/nomad/part.h"

#include <string.h>

enum { OFFERS_MAX = 64 /* of one call */ };

struct told_offer {
    char *id;             /* owned */
    json_t *registration; /* owned; of one that is withdrawn the last */
    bool offered;
    bool dirty, flying; /* it has to be told; it is being told as it is */
    UT_hash_handle hh;
};

static void drop(struct nomad *nomad, struct told_offer *offer)
{
    HASH_DEL(nomad->offers, offer);
    json_decref(offer->registration);
    free(offer->id);
    free(offer);
}

static void offers_in(struct nomad *nomad, uint64_t wait_ms)
{
    nomad->offer_at_ms = nomad_now_ms(nomad) + wait_ms;
}

void nomad_offer(struct nomad *nomad, bool offered, const json_t *registration)
{
    const char *id = json_string_value(json_object_get(registration, "ID"));
    struct told_offer *offer;

    check(id != NULL);
    HASH_FIND_STR(nomad->offers, id, offer);
    if (offer == NULL) {
        offer = calloc(1, sizeof(*offer));
        check(offer != NULL);
        offer->id = strdup(id);
        check(offer->id != NULL);
        HASH_ADD_KEYPTR(hh, nomad->offers, offer->id, strlen(offer->id), offer);
    }
    json_decref(offer->registration);
    offer->registration = json_deep_copy(registration);
    check(offer->registration != NULL);
    offer->offered = offered;
    offer->dirty = true;
    offer->flying = false; /* what was told of it is not what is */
    if (nomad->offer_at_ms == 0)
        offers_in(nomad, policy_push_after_ms(STATUS_URGENT));
}

/* What was on its way has been heard, or has to be told again. */
static void heard(struct nomad *nomad, bool well)
{
    struct told_offer *offer, *next;

    HASH_ITER(hh, nomad->offers, offer, next)
    {
        if (!offer->flying)
            continue;
        offer->flying = false;
        offer->dirty = !well;
        if (well && !offer->offered)
            drop(nomad, offer);
    }
    nomad->offering = false;
    offers_in(nomad, well ? 0 : policy_push_again_ms(nomad->config.random(nomad->config.ctx)));
}

static void offered(void *ctx, const json_t *reply, const struct err *err)
{
    heard(ctx, reply != NULL || policy_is_withdrawn(err->code, err->text));
}

static bool offer_next(struct nomad *nomad)
{
    struct told_offer *offer, *next;
    json_t *list = json_array();

    check(list != NULL);
    HASH_ITER(hh, nomad->offers, offer, next)
    {
        if (!offer->dirty || !offer->offered || json_array_size(list) == OFFERS_MAX)
            continue;
        offer->flying = true;
        check(json_array_append(list, offer->registration) == 0);
    }
    if (json_array_size(list) == 0) {
        json_decref(list);
        return false;
    }
    servers_call(nomad, "ServiceRegistration.Upsert", json_pack("{s:o}", "Services", list), false,
                 NOMAD_CALL_MS, offered, nomad);
    return true;
}

static bool withdraw_next(struct nomad *nomad)
{
    struct told_offer *offer, *next;

    HASH_ITER(hh, nomad->offers, offer, next)
    {
        if (!offer->dirty || offer->offered)
            continue;
        offer->flying = true;
        servers_call(nomad, "ServiceRegistration.DeleteByID",
                     json_pack("{s:s, s:O}", "ID", offer->id, "Namespace",
                               json_object_get(offer->registration, "Namespace")),
                     false, NOMAD_CALL_MS, offered, nomad);
        return true;
    }
    return false;
}

void offers_wake(struct nomad *nomad)
{
    if (nomad->offer_at_ms == 0 || nomad->offer_at_ms > nomad_now_ms(nomad) || nomad->offering ||
        !nomad->synced || !nomad->registered)
        return;
    nomad->offer_at_ms = 0;
    nomad->offering = withdraw_next(nomad) || offer_next(nomad);
}

void offers_all(struct nomad *nomad)
{
    struct told_offer *offer, *next;

    HASH_ITER(hh, nomad->offers, offer, next)
    {
        offer->dirty = true;
        offer->flying = false;
    }
    if (nomad->offers != NULL && nomad->offer_at_ms == 0)
        offers_in(nomad, policy_push_after_ms(STATUS_URGENT));
}

void offers_end(struct nomad *nomad)
{
    struct told_offer *offer, *next;

    HASH_ITER(hh, nomad->offers, offer, next)
    drop(nomad, offer);
}
