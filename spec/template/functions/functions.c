/*
 * The functions that templates have: Go's own, and those of consul-template (and so of Nomad) that
 * need no more than the environment, a file, the time and their arguments.
 */
#include "spec/template/functions/part.h"

static const struct function *const tables[] = {
    template_world_functions,  template_texts_functions, template_encodings_functions,
    template_values_functions, template_print_functions,
};

static const struct {
    const char *name, *needs;
} elsewhere[] = {
    {"caLeaf", "Consul"},
    {"caRoots", "Consul"},
    {"connect", "Consul"},
    {"datacenters", "Consul"},
    {"key", "Consul"},
    {"keyExists", "Consul"},
    {"keyExistsGet", "Consul"},
    {"keyOrDefault", "Consul"},
    {"ls", "Consul"},
    {"node", "Consul"},
    {"nodes", "Consul"},
    {"nomadService", "a server"},
    {"nomadServices", "a server"},
    {"nomadVar", "a server"},
    {"nomadVarExists", "a server"},
    {"nomadVarList", "a server"},
    {"nomadVarListSafe", "a server"},
    {"partitions", "Consul"},
    {"peerings", "Consul"},
    {"pkiCert", "Vault"},
    {"safeLs", "Consul"},
    {"safeTree", "Consul"},
    {"secret", "Vault"},
    {"secrets", "Vault"},
    {"service", "Consul"},
    {"services", "Consul"},
    {"tree", "Consul"},
};

const struct function *function_find(const char *name, const char **ret_needs)
{
    *ret_needs = NULL;
    for (size_t i = 0; i < COUNT_OF(tables); i++) {
        for (const struct function *row = tables[i]; row->name != NULL; row++) {
            if (text_equal(row->name, name))
                return row;
        }
    }
    for (size_t i = 0; i < COUNT_OF(elsewhere); i++) {
        if (text_equal(elsewhere[i].name, name))
            *ret_needs = elsewhere[i].needs;
    }
    return NULL;
}
