/*
 * Whose the volumes of a new alloc are.
 *
 * Servers say of a volume only which it is, and its machine wants to know its plugin before it is
 * defined.  So an alloc with such volumes is not known to the machines until a server was asked for
 * each, one after the other, while all others go on.  It waits in memory: after a crash it is
 * listed, pulled and asked for again, as one that never was here, and nothing is left of it if it
 * is not wanted any more.  What was found out goes with the alloc into the journal, and is kept for
 * no other: who registers a volume anew may do so with another plugin.
 *
 * A volume that does not exist is told at once, as the reason why the alloc has failed; servers
 * that cannot say, after a while.
 */
#include "server/nomad/part.h"

#include <string.h>

#include <utlist.h>

struct finding {
    struct nomad *nomad;
    char id[UUID_TEXT_SIZE];
    json_t *alloc;   /* as it was pulled */
    json_t *plugins; /* found so far */
    struct lacking lacking;
    uint64_t until_ms; /* node time at which it is given up */
    uint64_t at_ms;    /* node time of the next try, 0: an answer is waited for */
    bool dropped;      /* and to be forgotten when it comes */
    struct finding *prev, *next;
};

static void forget(struct finding *finding)
{
    DL_DELETE(finding->nomad->findings, finding);
    json_decref(finding->alloc);
    json_decref(finding->plugins);
    free(finding);
}

void finding_drop(struct nomad *nomad, const char *id)
{
    struct finding *finding, *next;

    DL_FOREACH_SAFE(nomad->findings, finding, next)
    {
        if (!text_equal(finding->id, id))
            continue;
        if (finding->at_ms == 0)
            finding->dropped = true;
        else
            forget(finding);
    }
}

void finding_end(struct nomad *nomad)
{
    while (nomad->findings != NULL)
        forget(nomad->findings);
}

/* --- answers --- */

static void give_up(struct finding *finding, const struct err *why)
{
    struct err err = *why;

    (void)err_wrap(&err, "volume \"%s\" (%s)", finding->lacking.name,
                   finding->lacking.volume); /* it is told below */
    place_refuse(finding->nomad, finding->id, &err);
    forget(finding);
}

static void try_in(struct finding *finding, uint64_t wait_ms)
{
    finding->at_ms = nomad_now_ms(finding->nomad) + wait_ms;
}

static void found(struct finding *finding, const json_t *volume)
{
    json_t *plugin = json_object_get(volume, "PluginID");
    struct err err = {0};

    if (json_is_string(plugin) && json_string_length(plugin) > 0 &&
        json_string_length(plugin) < PLUGIN_NAME_SIZE) {
        check(json_object_set(finding->plugins, finding->lacking.name, plugin) == 0);
        try_in(finding, 0);
        return;
    }
    if (json_is_object(volume))
        (void)err_set(&err, ERR_CORRUPT, "the servers name no plugin of it that can be here");
    else
        (void)err_set(&err, ERR_GONE, "the servers know no such volume");
    give_up(finding, &err);
}

static void answered(void *ctx, const json_t *reply, const struct err *err)
{
    struct finding *finding = ctx;
    struct nomad *nomad = finding->nomad;

    if (finding->dropped)
        forget(finding);
    else if (reply != NULL)
        found(finding, json_object_get(reply, "Volume"));
    else if (policy_claim_trouble(err->code, err->text) <= CLAIM_TROUBLE_PASSES &&
             nomad_now_ms(nomad) < finding->until_ms)
        try_in(finding, policy_ask_again_ms(nomad->config.random(nomad->config.ctx)));
    else
        give_up(finding, err);
}

/* --- questions --- */

/* Of the leader: what lags may know less than whoever has placed the alloc. */
static void ask(struct finding *finding)
{
    json_t *args = json_pack("{s:s, s:s, s:b}", "ID", finding->lacking.volume, "Namespace",
                             finding->lacking.namespace, "AllowStale", 0);

    check(args != NULL);
    finding->at_ms = 0;
    servers_call(finding->nomad, "CSIVolume.Get", args, false, NOMAD_CALL_MS, answered, finding);
}

void finding_begin(struct nomad *nomad, const json_t *alloc, const struct lacking *lacking)
{
    struct finding *finding = calloc(1, sizeof(*finding));

    check(finding != NULL);
    finding->nomad = nomad;
    finding->alloc = json_incref((json_t *)(uintptr_t)alloc);
    finding->plugins = json_object();
    check(finding->plugins != NULL);
    finding->lacking = *lacking;
    finding->until_ms = nomad_now_ms(nomad) + policy_find_volumes_ms();
    (void)text_copy(finding->id, sizeof(finding->id),
                    json_string_value(json_object_get(alloc, "ID"))); /* a UUID */
    DL_APPEND(nomad->findings, finding);
    ask(finding);
}

/* It is placed, if all is known by now. */
static void place(struct finding *finding)
{
    switch (place_alloc(finding->nomad, finding->alloc, finding->plugins, &finding->lacking)) {
    case PLACE_DONE:
        forget(finding);
        break;
    case PLACE_NO_ROOM:
        try_in(finding, 1); /* after the turn that makes room */
        break;
    case PLACE_LACKS:
        ask(finding);
        break;
    }
}

void finding_wake(struct nomad *nomad)
{
    struct finding *finding, *next;

    DL_FOREACH_SAFE(nomad->findings, finding, next)
    {
        if (finding->at_ms != 0 && finding->at_ms <= nomad_now_ms(nomad))
            place(finding);
    }
}

uint64_t finding_at_ms(const struct nomad *nomad)
{
    const struct finding *finding;
    uint64_t at_ms = 0;

    DL_FOREACH(nomad->findings, finding)
    {
        if (finding->at_ms != 0 && (at_ms == 0 || finding->at_ms < at_ms))
            at_ms = finding->at_ms;
    }
    return at_ms;
}
