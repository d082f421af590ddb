/*
 * Volumes of storage plugins that allocs claim: whose they are, and whether they are to be had.
 *
 * The claims themselves are the volume machines of the core; nothing here counts them a second
 * time.
 */
#include "server/alone/part.h"
#include "server/storage/part.h"
#include "spec/job.h"

#include <stdlib.h>

/* --- whether they are to be had --- */

const char *alone_volume_plugin(const struct alone *alone, const char *namespace, const char *id)
{
    const struct registered *volume = registry_find(alone->storage, namespace, id);

    return volume == NULL ? NULL : registry_text(volume->json, "PluginID");
}

/* Who has a volume, or is there to have it. */
struct holders {
    const struct alone *alone;
    const struct gathering *gathering; /* who of them is to be stopped; may be NULL */
    struct claim_list stay, all;
    char going[UUID_TEXT_SIZE]; /* one that does not stay, or "" */
};

/* One that has ended is not going: whatever keeps its claim may keep it long. */
static bool is_going(const struct holders *holders, const char *alloc)
{
    const struct gathering *gathering = holders->gathering;
    const struct alloc *record = core_alloc(life_core(holders->alone->config.life), alloc);

    if (record == NULL || record->ended_unix_ns != 0)
        return false;
    if (record->stop_wanted || posted_to_end(holders->alone, alloc))
        return true;
    for (size_t a = 0; gathering != NULL && a < gathering->count; a++) {
        if (gathering->allocs[a].stop && text_equal(gathering->ids[a].text, alloc))
            return true;
    }
    return false;
}

static bool note_holder(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct holders *holders = ctx;
    struct machine_id owner = machine_id_owner(id);
    const struct claim_terms terms = claims_terms(&volume_of(record)->define);

    if (record->state == V_GONE)
        return true;
    *list_more(&holders->all) = terms;
    if (is_going(holders, owner.text))
        (void)text_copy(holders->going, sizeof(holders->going), owner.text); /* a UUID */
    else
        *list_more(&holders->stay) = terms;
    return true;
}

static void find_holders(struct holders *holders, const struct registered *volume)
{
    struct volume_define define = registry_define(volume->json);

    core_each_of_volume(life_core(holders->alone->config.life), &define, note_holder, holders);
}

static enum claim_verdict judge(const struct registered *volume, const struct claim_list *holders,
                                const struct spec_volume *asked)
{
    struct claim_terms terms[REGISTRY_TERMS_MAX];
    size_t count = registry_terms(volume->json, terms);

    return policy_claim(terms, count, holders->items, holders->count,
                        &(struct claim_terms){.access = (uint8_t)asked->access,
                                              .attachment = (uint8_t)asked->attachment,
                                              .read_only = asked->read_only});
}

/* In Nomad's words, where it has some. */
static json_t *unfit(enum claim_verdict verdict, const char *id)
{
    switch (verdict) {
    case CLAIM_FITS:
        return NULL;
    case CLAIM_NOT_CAPABLE:
        return json_sprintf("CSI volume %s was not registered with this access mode and attachment "
                            "mode",
                            id);
    case CLAIM_OTHERWISE_ATTACHED:
        return json_sprintf("CSI volume %s is claimed with another attachment mode", id);
    case CLAIM_NOT_WRITABLE:
        return json_sprintf("CSI volume %s is unschedulable or is read-only", id);
    case CLAIM_READERS_EXHAUSTED:
        return json_sprintf("CSI volume %s is unschedulable or has exhausted its available reader "
                            "claims",
                            id);
    case CLAIM_WRITERS_EXHAUSTED:
        return json_sprintf("CSI volume %s has exhausted its available writer claims", id);
    }
    unreachable("a verdict about a claim");
}

/* True if this node has as many other volumes of PLUGIN as it may have. */
static bool is_full(const struct alone *alone, const char *plugin, int64_t volumes_max,
                    const struct registered *but)
{
    int64_t count = 0;

    if (volumes_max == 0)
        return false;
    for (const struct registered *volume = alone->storage->volumes; volume != NULL;
         volume = volume->hh.next) {
        const struct storage_claims claims = storage_claims_of(alone->storage, &volume->public);

        count += volume != but && claims.readers + claims.writers > 0 &&
                 text_equal(registry_text(volume->json, "PluginID"), plugin);
    }
    return count >= volumes_max;
}

static json_t *plugin_missing(const struct alone *alone, const struct registered *volume)
{
    const char *node = alone->config.node.known.id, *id = registry_text(volume->json, "PluginID");
    struct control_plugin plugin;

    (void)registry_plugin(alone->storage, id, &plugin);
    if (!plugin.has_node)
        return json_sprintf("CSI plugin %s is missing from client %s", id, node);
    if (!plugin.node_ready)
        return json_sprintf("CSI plugin %s is unhealthy on client %s", id, node);
    if (is_full(alone, id, plugin.volumes_max, volume))
        return json_sprintf("CSI plugin %s has the maximum number of volumes on client %s", id,
                            node);
    if (!storage_is_reachable(alone->storage, &volume->public))
        return json_string("did not meet topology requirement");
    return NULL;
}

json_t *claim_missing(const struct alone *alone, const char *namespace,
                      const struct gathering *gathering, const struct spec_volume *asked)
{
    const struct registered *volume = registry_find(alone->storage, namespace, asked->source);
    struct holders holders = {.alone = alone, .gathering = gathering};

    if (volume == NULL)
        return json_sprintf("missing CSI volume(s) %s", asked->source);
    json_t *missing = plugin_missing(alone, volume);
    if (missing != NULL)
        return missing;
    if (!storage_is_schedulable(alone->storage, &volume->public))
        return unfit(asked->read_only ? CLAIM_READERS_EXHAUSTED : CLAIM_NOT_WRITABLE,
                     asked->source);
    find_holders(&holders, volume);
    missing = unfit(judge(volume, &holders.stay, asked), asked->source);
    free(holders.stay.items);
    free(holders.all.items);
    return missing;
}

void claims_awaited(const struct alone *alone, const char *namespace, const json_t *group,
                    uint32_t index, char ret_alloc[UUID_TEXT_SIZE])
{
    struct spec_volume volumes[SPEC_VOLUMES_MAX];
    char sources[SPEC_VOLUMES_MAX][SPEC_SOURCE_SIZE];
    size_t count;

    ret_alloc[0] = '\0';
    (void)jobspec_volumes(group, index, volumes, sources, &count); /* of a job that was checked */
    for (size_t i = 0; i < count; i++) {
        struct holders holders = {.alone = alone};
        const struct registered *volume = volumes[i].type == VOLUME_CSI
                                              ? registry_find(alone->storage, namespace, sources[i])
                                              : NULL;

        if (volume == NULL)
            continue;
        find_holders(&holders, volume);
        if (judge(volume, &holders.all, &volumes[i]) != CLAIM_FITS)
            (void)text_copy(ret_alloc, UUID_TEXT_SIZE, holders.going);
        free(holders.stay.items);
        free(holders.all.items);
    }
}

/* --- whose they are --- */

void claims_find(const struct alone *alone, const char *namespace, const json_t *group,
                 uint32_t index, struct claims *ret_claims)
{
    size_t count;

    (void)jobspec_volumes(group, index, ret_claims->volumes, ret_claims->sources,
                          &count); /* of a job that was checked */
    ret_claims->count = 0;
    for (size_t i = 0; i < count; i++) {
        const struct spec_volume *volume = &ret_claims->volumes[i];
        const char *plugin = volume->type == VOLUME_CSI
                                 ? alone_volume_plugin(alone, namespace, volume->source)
                                 : NULL;

        if (plugin != NULL)
            ret_claims->plugins[ret_claims->count++] = (struct spec_pair){volume->name, plugin};
    }
}

size_t claims_count(const json_t *group)
{
    json_t *volumes = json_object_get(group, "Volumes"), *volume;
    const char *name;
    size_t count = 0;

    json_object_foreach(volumes, name, volume)
    {
        const char *type = json_string_value(json_object_get(volume, "Type"));

        count += type != NULL && text_equal(type, "csi");
    }
    return count;
}
