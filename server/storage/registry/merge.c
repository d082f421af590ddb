/*
 * What may be changed of a volume that is registered, and what not: as nomad v2.0.5
 * nomad/structs/csi.go has it (CSIVolume.Merge).
 */
#include "server/storage/operation.h"

/* The fields of what is registered that a request may not change, and the words for that. */
static const struct {
    const char *name, *wrong;
    bool may_be_empty; /* then it is as it was */
} fixed[] = {
    {"Name", "volume name cannot be updated", true},
    {"ExternalID", "volume external ID cannot be updated", true},
    {"PluginID", "volume plugin ID cannot be updated", false},
    {"CloneID", "volume clone ID cannot be updated", true},
    {"SnapshotID", "volume snapshot ID cannot be updated", true},
};

static bool is_used_as(const json_t *capabilities, const struct storage_claims *claims)
{
    struct claim_terms terms[REGISTRY_TERMS_MAX];
    json_t *probe = json_pack("{s:O}", "RequestedCapabilities", capabilities);
    size_t count = registry_terms(probe, terms);
    bool found = claims->readers + claims->writers == 0;

    json_decref(probe);
    for (size_t i = 0; i < count; i++)
        found |= terms[i].access == claims->access && terms[i].attachment == claims->attachment;
    return found;
}

int operation_merge(struct operation *operation, const struct registered *volume)
{
    const struct storage_claims claims =
        storage_claims_of(operation->task.storage, &volume->public);
    const bool used = claims.readers + claims.writers > 0;
    json_t *to = json_deep_copy(volume->json), *from = operation->wanted, *given;
    const char *wrong = NULL;

    check(to != NULL);
    operation->volume = to;
    for (size_t i = 0; i < COUNT_OF(fixed); i++) {
        const char *text = registry_text(from, fixed[i].name);
        if (!text_equal(text, registry_text(to, fixed[i].name)) &&
            !(fixed[i].may_be_empty && text[0] == '\0'))
            wrong = fixed[i].wrong;
    }
    given = json_object_get(from, "RequestedCapabilities");
    if (!is_used_as(given, &claims))
        wrong = "volume requested capabilities update was not compatible with existing capability "
                "in use";
    check(json_object_set(to, "RequestedCapabilities", given) == 0);
    if (json_array_size(json_object_get(to, "Topologies")) > 0 &&
        !json_equal(json_object_get(to, "RequestedTopologies"),
                    json_object_get(from, "RequestedTopologies")))
        wrong = "volume topology request update was not compatible with existing topology";
    given = json_object_get(from, "MountOptions");
    if (used && (!json_equal(given, json_object_get(to, "MountOptions")) ||
                 !json_equal(json_object_get(from, "cairnMountFlags"),
                             json_object_get(to, "cairnMountFlags"))))
        wrong = "can not update mount options while volume is in use";
    check(json_object_set(to, "MountOptions", given) == 0);
    check(json_object_set(to, "cairnMountFlags", json_object_get(from, "cairnMountFlags")) == 0);
    given = json_object_get(from, "Parameters");
    if (json_object_size(given) > 0 && !json_equal(given, json_object_get(to, "Parameters")))
        wrong = "volume parameters cannot be updated";
    given = json_object_get(from, "Context");
    if (json_object_size(given) > 0)
        check(json_object_set(to, "Context", given) == 0);
    return wrong == NULL
               ? 0
               : err_set(&operation->err, ERR_INVALID, "unable to update volume: %s", wrong);
}
