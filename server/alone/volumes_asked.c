/*
 * Volumes of storage plugins that allocs claim: whose they are, and whether they are to be had.
 *
 * The claims themselves are the volume machines of the core; nothing here counts them a second
 * time.
 */
#include "server/alone/part.h"

#include "spec/job.h"

const char *alone_volume_plugin(const struct alone *alone, const char *namespace, const char *id)
{
    (void)alone; /* no volume can be registered */
    (void)namespace;
    (void)id;
    return NULL;
}

json_t *claim_missing(const struct alone *alone, const char *namespace,
                      const struct spec_volume *volume)
{
    return alone_volume_plugin(alone, namespace, volume->source) == NULL
               ? json_sprintf("missing CSI volume(s) %s", volume->source)
               : NULL;
}

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
