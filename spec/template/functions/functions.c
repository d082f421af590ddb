/*
 * The functions that templates have: Go's own, and those of consul-template (and so of Nomad) that
 * need no more than the environment, a file, the time, what is registered, variables, and their
 * arguments.
 */
#include "spec/template/functions/part.h"

static const struct function *const tables[] = {
    template_world_functions, template_services_functions,  template_texts_functions,
    template_cases_functions, template_encodings_functions, template_json_functions,
    template_maps_functions,  template_print_functions,     template_regex_functions,
    template_time_functions,  template_values_functions,    template_variables_functions,
    template_yaml_functions,
};

/* Those of consul-template, and Go, that are not here, and why. */
static const struct {
    const char *name, *why;
} elsewhere[] = {
    {"byKey", "needs Consul, which this node has not"},
    {"byMeta", "needs Consul, which this node has not"},
    {"byPort", "needs Consul, which this node has not"},
    {"byTag", "needs Consul, which this node has not"},
    {"caLeaf", "needs Consul, which this node has not"},
    {"caRoots", "needs Consul, which this node has not"},
    {"call", "calls functions that are values, which there are none of here"},
    {"connect", "needs Consul, which this node has not"},
    {"datacenters", "needs Consul, which this node has not"},
    {"explode", "needs Consul, which this node has not"},
    {"exportedServices", "needs Consul, which this node has not"},
    {"js", "is not supported: it is for programs of browsers"},
    {"key", "needs Consul, which this node has not"},
    {"keyExists", "needs Consul, which this node has not"},
    {"keyExistsGet", "needs Consul, which this node has not"},
    {"keyOrDefault", "needs Consul, which this node has not"},
    {"ls", "needs Consul, which this node has not"},
    {"node", "needs Consul, which this node has not"},
    {"nodes", "needs Consul, which this node has not"},
    {"partitions", "needs Consul, which this node has not"},
    {"peerings", "needs Consul, which this node has not"},
    {"pkiCert", "needs Vault, which this node has not"},
    {"plugin", "is not supported: it runs programs on the host"},
    {"safeLs", "needs Consul, which this node has not"},
    {"safeTree", "needs Consul, which this node has not"},
    {"scratch", "is not supported: use variables"},
    {"secret", "needs Vault, which this node has not"},
    {"secrets", "needs Vault, which this node has not"},
    {"service", "needs Consul, which this node has not"},
    {"services", "needs Consul, which this node has not"},
    {"sockaddr", "is not supported: use env and what the node says of itself"},
    {"spew_dump", "is not supported: use toJSONPretty"},
    {"spew_printf", "is not supported: use toJSONPretty"},
    {"spew_sdump", "is not supported: use toJSONPretty"},
    {"spew_sprintf", "is not supported: use toJSONPretty"},
    {"toTOML", "is not supported: use toJSON or toYAML"},
    {"tree", "needs Consul, which this node has not"},
    {"writeToFile", "is not supported: use another template block"},
};

const struct function *function_find(const char *name, bool alone, const char **ret_why)
{
    *ret_why = NULL;
    for (size_t i = 0; i < COUNT_OF(tables); i++) {
        for (const struct function *row = tables[i]; row->name != NULL; row++) {
            bool lacks_server = alone && tables[i] == template_variables_functions;

            if (!text_equal(row->name, name))
                continue;
            if (lacks_server)
                *ret_why = "needs a server, which this node has not";
            return lacks_server ? NULL : row;
        }
    }
    for (size_t i = 0; i < COUNT_OF(elsewhere); i++) {
        if (text_equal(elsewhere[i].name, name))
            *ret_why = elsewhere[i].why;
    }
    if (text_starts_with(name, "sprig_"))
        *ret_why = "is not supported: those of sprig are not here";
    return NULL;
}
