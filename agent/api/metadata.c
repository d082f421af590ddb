/*
 * The node's metadata over HTTP: what it is, and what of it is set while the node runs.  Follows
 * nomad v2.0.5 client/meta_endpoint.go and command/agent/meta_endpoint.go.
 */
#include "agent/api/format/format.h"
#include "agent/api/part.h"

static json_t *make_metadata(struct api *api, void *ctx)
{
    const struct node *node = &api->parts->node;
    json_t *to = json_object();

    (void)ctx; /* the node says the rest */
    api_set(to, "Meta", api_pairs(&node->known.meta));
    api_set(to, "Dynamic", json_incref(node->meta.said));
    api_set(to, "Static", api_pairs(node->meta.configured));
    return to;
}

void api_metadata_get(struct api_request *request)
{
    if (api_is_of_this_agent(request))
        api_reply(request, make_metadata(request->api, NULL));
}

static void apply(struct api_request *request, const json_t *body)
{
    struct parts *parts = request->api->parts;
    struct err err = {0};

    if (node_meta_apply(&parts->node.meta, json_object_get(body, "Meta"), &err) != 0)
        api_refuse_err(request, &err);
    else
        life_after_commit(parts->life, api_deferred_answer,
                          api_defer(request, make_metadata, NULL));
}

void api_metadata_apply(struct api_request *request)
{
    json_t *body = api_is_of_this_agent(request) ? api_body(request, false) : NULL;

    if (body == NULL)
        return;
    if (!api_field_is(body, "NodeID", JSON_STRING))
        api_refuse(request, 400, "the NodeID must be a text");
    else if (api_names_this_node(request, json_string_value(json_object_get(body, "NodeID"))))
        apply(request, body);
    json_decref(body);
}
