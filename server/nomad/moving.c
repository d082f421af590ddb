/*
 * Where the disk of an alloc is that was on another node.
 *
 * The servers know the node of the alloc, and where its API is; what that is to be shown comes with
 * each list of what is to run here (allocs.c).  Whoever asks waits until they have said all of it,
 * but not for ever: an alloc without its disk is better than none.  Nothing is kept: after a
 * restart it is asked for again.  Follows nomad v2.0.6 client/allocwatcher.
 */
#include "server/nomad/part.h"

#include "spec/json.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

struct disk_finding {
    struct nomad *nomad;
    char alloc[UUID_TEXT_SIZE], previous[UUID_TEXT_SIZE];
    char node[UUID_TEXT_SIZE]; /* "": not known yet */
    spec_disk_cb *cb;
    void *ctx;
    uint64_t until_ms; /* node time at which it is given up */
    uint64_t at_ms;    /* node time of the next question, 0: an answer is waited for */
    char trouble[ERR_TEXT_SIZE];
    struct disk_finding *prev, *next;
};

static void forget(struct disk_finding *finding)
{
    DL_DELETE(finding->nomad->disk_findings, finding);
    free(finding);
}

void moving_end(struct nomad *nomad)
{
    while (nomad->disk_findings != NULL)
        forget(nomad->disk_findings);
    json_decref(nomad->tokens);
}

void moving_learn(struct nomad *nomad, const json_t *listing)
{
    json_t *tokens = json_object_get(listing, "MigrateTokens");

    json_decref(nomad->tokens);
    nomad->tokens = json_is_object(tokens) ? json_incref(tokens) : NULL;
}

/* --- answers --- */

static void try_in(struct disk_finding *finding, uint64_t wait_ms)
{
    finding->at_ms = nomad_now_ms(finding->nomad) + wait_ms;
}

static void end(struct disk_finding *finding, const struct spec_disk_place *place,
                const struct err *err)
{
    finding->cb(finding->ctx, place, err);
    forget(finding);
}

static void give_up(struct disk_finding *finding, const char *why)
{
    struct err err = {0};

    (void)err_set(&err, ERR_GONE, "%s", why); /* only to be filled */
    end(finding, NULL, &err);
}

static void found_alloc(struct disk_finding *finding, const json_t *reply)
{
    const json_t *alloc = json_object_get(reply, "Alloc");
    const char *node = text_of(alloc, "NodeID");

    if (!json_is_object(alloc) || !uuid_is_valid(node))
        give_up(finding, "the servers know it no more");
    else if (text_equal(node, finding->nomad->config.node_id))
        give_up(finding, "it was on this node, and is gone");
    else {
        (void)text_copy(finding->node, sizeof(finding->node), node); /* a UUID */
        try_in(finding, 0);
    }
}

static void found_node(struct disk_finding *finding, const json_t *reply)
{
    const json_t *node = json_object_get(reply, "Node");
    struct spec_disk_place place = {
        .node = finding->node,
        .address = text_of(node, "HTTPAddr"),
        .tls = json_is_true(json_object_get(node, "TLSEnabled")),
        .token = text_of(finding->nomad->tokens, finding->alloc),
    };

    if (!json_is_object(node))
        give_up(finding, "the servers know its node no more");
    else if (place.address[0] == '\0')
        give_up(finding, "its node answers nobody");
    else
        end(finding, &place, NULL);
}

static void answered(void *ctx, const json_t *reply, const struct err *err)
{
    struct disk_finding *finding = ctx;
    const struct nomad_config *config = &finding->nomad->config;

    if (reply != NULL && finding->node[0] == '\0')
        found_alloc(finding, reply);
    else if (reply != NULL)
        found_node(finding, reply);
    else if (policy_awaits_in_vain(err->code, err->text))
        give_up(finding, err->text);
    else {
        (void)text_copy(finding->trouble, sizeof(finding->trouble), err->text); /* as long */
        try_in(finding, policy_await_again_ms(config->random(config->ctx)));
    }
}

/* --- questions --- */

static void ask(struct disk_finding *finding)
{
    bool of_alloc = finding->node[0] == '\0';
    json_t *args = of_alloc ? json_pack("{s:s, s:b}", "AllocID", finding->previous, "AllowStale", 1)
                            : json_pack("{s:s, s:b}", "NodeID", finding->node, "AllowStale", 1);

    check(args != NULL);
    finding->at_ms = 0;
    servers_call(finding->nomad, of_alloc ? "Alloc.GetAlloc" : "Node.GetNode", args, false,
                 NOMAD_CALL_MS, answered, finding);
}

/* Servers that do not know this node tell it nothing, and tokens are there when they have said what
 * is to run. */
static bool may_ask(const struct nomad *nomad)
{
    return nomad->registered && nomad->synced;
}

void moving_wake(struct nomad *nomad)
{
    struct disk_finding *finding, *next;
    uint64_t now_ms = nomad_now_ms(nomad);

    DL_FOREACH_SAFE(nomad->disk_findings, finding, next)
    {
        if (finding->at_ms == 0)
            continue;
        if (now_ms >= finding->until_ms)
            give_up(finding,
                    finding->trouble[0] != '\0' ? finding->trouble : "no server tells of it");
        else if (may_ask(nomad) && now_ms >= finding->at_ms)
            ask(finding);
    }
}

uint64_t moving_at_ms(const struct nomad *nomad)
{
    const struct disk_finding *finding;
    uint64_t at_ms = 0;

    DL_FOREACH(nomad->disk_findings, finding)
    {
        uint64_t next_ms = may_ask(nomad) && finding->at_ms < finding->until_ms ? finding->at_ms
                                                                                : finding->until_ms;
        if (finding->at_ms != 0 && (at_ms == 0 || next_ms < at_ms))
            at_ms = next_ms;
    }
    return at_ms;
}

void nomad_find_disk(struct nomad *nomad, const char *alloc, const char *previous, spec_disk_cb *cb,
                     void *ctx)
{
    struct disk_finding *finding = calloc(1, sizeof(*finding));

    check(finding != NULL);
    finding->nomad = nomad;
    (void)text_copy(finding->alloc, sizeof(finding->alloc), alloc); /* UUIDs */
    (void)text_copy(finding->previous, sizeof(finding->previous), previous);
    finding->cb = cb;
    finding->ctx = ctx;
    finding->until_ms = nomad_now_ms(nomad) + policy_find_disk_ms();
    try_in(finding, 0);
    DL_APPEND(nomad->disk_findings, finding);
    nomad->heard(nomad); /* to be woken for it */
}
