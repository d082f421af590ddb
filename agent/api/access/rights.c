/*
 * Whether a request may do what it asks for: what its route needs of its token.
 *
 * Whoever may not is told so before anything is looked for, so that nobody learns from refusals
 * what there is.
 */
#include "agent/api/part.h"

#include "server/acl/lent.h"
#include "server/alone/alone.h"

#include <string.h>
#include <strings.h>

const char *api_token(const struct api_request *request)
{
    static const char bearer[] = "Bearer ";
    const char *token = http_header(request->exchange, "x-nomad-token");
    const char *authorization = http_header(request->exchange, "authorization");

    if (token != NULL && token[0] != '\0')
        return token;
    if (authorization == NULL || strncasecmp(authorization, bearer, strlen(bearer)) != 0)
        return NULL;
    return authorization + strlen(bearer);
}

/* The namespace of what REQUEST is about; "*", which stands for any, if there is no such thing: who
 * might read one is told that there is none. */
static const char *namespace_of(const struct api_request *request, enum api_scope scope)
{
    struct alone *alone = request->api->parts->alone;
    const struct alone_evaluation *evaluation;
    const struct alone_job *job;
    const struct alloc *alloc;

    if (!uuid_is_valid(request->argument))
        return "*";
    switch (scope) {
    case NEEDS_ALLOC:
        alloc = core_alloc(request->api->parts->core, request->argument);
        return alloc == NULL ? "*" : alloc->assign.namespace;
    case NEEDS_EVALUATION:
        evaluation = alone_evaluation(alone, request->argument);
        return evaluation == NULL ? "*" : evaluation->namespace;
    case NEEDS_DEPLOYMENT:
        job = alone_job_of_deployment(alone, request->argument);
        return job == NULL ? "*" : job->namespace;
    case NEEDS_UNSAID:
    case NEEDS_NOTHING:
    case NEEDS_NAMESPACE:
    case NEEDS_BODY:
    case NEEDS_AREA:
    case NEEDS_MANAGEMENT:
    case NEEDS_MIGRATION:
        break;
    }
    unreachable("what is named by an id");
}

static bool allows(const struct api_request *request, const struct api_need *need)
{
    switch (need->scope) {
    case NEEDS_UNSAID:
    case NEEDS_MIGRATION:
        break;
    case NEEDS_NOTHING:
        return true;
    case NEEDS_NAMESPACE:
        return api_may(request, request->namespace, need->any_of);
    case NEEDS_BODY:
        return api_may(request, "*", need->any_of);
    case NEEDS_ALLOC:
    case NEEDS_EVALUATION:
    case NEEDS_DEPLOYMENT:
        return api_may(request, namespace_of(request, need->scope), need->any_of);
    case NEEDS_AREA:
        return acl_allows_area(request->rights, need->area, need->level);
    case NEEDS_MANAGEMENT:
        return acl_manages(request->rights);
    }
    unreachable("what a route needs");
}

/* What SECRET allows on a node that has its own tokens, or those of servers, whom somebody has
 * asked about it by now: api_knocks. */
static int resolve(const struct api *api, const char *secret, const struct acl_rights **ret_rights,
                   struct err *err)
{
    const struct parts *parts = api->parts;

    return parts->lent != NULL ? acl_lent_find(parts->lent, secret, true, ret_rights, err)
                               : acl_resolve(alone_acl(parts->alone), secret, ret_rights, err);
}

bool api_is_allowed(struct api_request *request)
{
    struct err err = {0};
    bool is_open = request->route->need.scope == NEEDS_NOTHING && api_token(request) == NULL;

    request->rights = &acl_everything;
    if (!request->api->parts->config->acl_enabled || http_is_guest(request->exchange))
        return true;                                     /* of a guest servers have seen to it */
    if (request->route->need.scope == NEEDS_MIGRATION) { /* whose token allows nothing else */
        request->rights = &acl_nothing;
        if (api_is_migrating(request, api_token(request)))
            return true;
        api_refuse(request, 403, "Permission denied");
        return false;
    }
    int code = resolve(request->api, api_token(request), &request->rights, &err);
    if (code != 0 && is_open) {
        request->rights = &acl_nothing;
        return true;
    }
    if (code != 0) {
        api_refuse(request, code == ERR_GONE || code == ERR_REFUSED ? 403 : 500, "%s", err.text);
        return false;
    }
    if (allows(request, &request->route->need))
        return true;
    api_refuse(request, 403, "Permission denied");
    return false;
}

const struct acl_rights *api_rights_of(const struct api *api, const char *secret)
{
    const struct acl_rights *rights = &acl_everything;

    return !api->parts->config->acl_enabled || resolve(api, secret, &rights, NULL) == 0 ? rights
                                                                                        : NULL;
}

bool api_may(const struct api_request *request, const char *namespace, uint64_t capabilities)
{
    return acl_allows(request->rights, namespace, capabilities);
}

bool api_must(struct api_request *request, const char *namespace, uint64_t capabilities)
{
    if (api_may(request, namespace, capabilities))
        return true;
    api_refuse(request, 403, "Permission denied");
    return false;
}

bool api_namespace_matches(const struct api_request *request, const char *namespace)
{
    /* Where something else was asked of the token, it is asked here whether it may read jobs. */
    uint64_t needed = request->route->need.scope == NEEDS_NAMESPACE ? request->route->need.any_of
                                                                    : ACL_BIT(ACL_READ_JOB);

    return (text_equal(request->namespace, "*") || text_equal(request->namespace, namespace)) &&
           api_may(request, namespace, needed);
}

/* True if its token allows what VOLUME of a group asks for. */
static bool may_mount(const struct api_request *request, const char *namespace,
                      const json_t *volume)
{
    const char *type = json_string_value(json_object_get(volume, "Type"));
    const char *source = json_string_value(json_object_get(volume, "Source"));
    uint64_t mounts = ACL_BIT(ACL_MOUNT_READWRITE);

    if (type != NULL && text_equal(type, "csi"))
        return api_may(request, namespace, ACL_BIT(ACL_CSI_MOUNT_VOLUME));
    if (json_is_true(json_object_get(volume, "ReadOnly")))
        mounts |= ACL_BIT(ACL_MOUNT_READONLY);
    return acl_allows_volume(request->rights, source == NULL ? "" : source, mounts);
}

static bool may_run(const struct api_request *request, const char *namespace, const json_t *group)
{
    const json_t *volumes = json_object_get(group, "Volumes"), *volume;
    const json_t *tasks = json_object_get(group, "Tasks"), *task;
    const char *name;
    size_t t;

    json_object_foreach((json_t *)volumes, name, volume)
    {
        if (!may_mount(request, namespace, volume))
            return false;
    }
    json_array_foreach(tasks, t, task)
    {
        if (json_is_object(json_object_get(task, "CSIPluginConfig")) &&
            !api_may(request, namespace, ACL_BIT(ACL_CSI_REGISTER_PLUGIN)))
            return false;
    }
    return true;
}

bool api_may_register(struct api_request *request, const json_t *job)
{
    const char *namespace = json_string_value(json_object_get(job, "Namespace"));
    const json_t *groups = json_object_get(job, "TaskGroups"), *group;
    size_t g;

    if (namespace == NULL)
    namespace = "default";
    if (!api_must(request, namespace, ACL_BIT(ACL_SUBMIT_JOB) | ACL_BIT(ACL_REGISTER_JOB)))
        return false;
    json_array_foreach(groups, g, group)
    {
        if (!may_run(request, namespace, group)) {
            api_refuse(request, 403, "Permission denied");
            return false;
        }
    }
    return true;
}
