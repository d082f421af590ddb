/*
 * The API's routes: what is at a path, and what of a token it needs.
 *
 * Follows the routes of nomad v1.1.2 command/agent/http.go, and what newest Nomad's endpoints ask
 * of tokens (v2.0), but that metrics are read by who may read the agent.  The more special path
 * stands first, because a job's id may contain slashes.
 */
#include "agent/api/part.h"

#include <string.h>

/* Bits of one capability, or of up to three. */
#define CAN(_1, ...) (ACL_BIT(ACL_##_1) __VA_OPT__(| CAN_MORE(__VA_ARGS__)))
#define CAN_MORE(_1, ...) (ACL_BIT(ACL_##_1) __VA_OPT__(| ACL_BIT(ACL_##__VA_ARGS__)))

#define ANYBODY                                                                                    \
    {                                                                                              \
        NEEDS_NOTHING, 0, 0, 0                                                                     \
    }
#define MANAGEMENT                                                                                 \
    {                                                                                              \
        NEEDS_MANAGEMENT, 0, 0, 0                                                                  \
    }
#define MIGRATION                                                                                  \
    {                                                                                              \
        NEEDS_MIGRATION, 0, 0, 0                                                                   \
    }
#define IN_NAMESPACE(...)                                                                          \
    {                                                                                              \
        NEEDS_NAMESPACE, CAN(__VA_ARGS__), 0, 0                                                    \
    }
#define IN_BODY(...)                                                                               \
    {                                                                                              \
        NEEDS_BODY, CAN(__VA_ARGS__), 0, 0                                                         \
    }
#define OF_ALLOC(...)                                                                              \
    {                                                                                              \
        NEEDS_ALLOC, CAN(__VA_ARGS__), 0, 0                                                        \
    }
#define OF_EVALUATION(...)                                                                         \
    {                                                                                              \
        NEEDS_EVALUATION, CAN(__VA_ARGS__), 0, 0                                                   \
    }
#define OF_DEPLOYMENT(...)                                                                         \
    {                                                                                              \
        NEEDS_DEPLOYMENT, CAN(__VA_ARGS__), 0, 0                                                   \
    }
#define OF(area, level)                                                                            \
    {                                                                                              \
        NEEDS_AREA, 0, ACL_##area, ACL_##level                                                     \
    }

/* clang-format off */
const struct api_route api_routes[] = {
    /* path                             methods            blocks           handler                what it needs */
    {"/v1/jobs",                         API_GET,           BLOCKS,          api_jobs_list,         IN_NAMESPACE(LIST_JOBS)},
    {"/v1/jobs",                         API_PUT,           BLOCKS_NOT,      api_jobs_register,     IN_BODY(SUBMIT_JOB, REGISTER_JOB)},
    {"/v1/jobs/parse",                   API_PUT,           BLOCKS_NOT,      api_jobs_parse,        IN_NAMESPACE(PARSE_JOB, SUBMIT_JOB)},
    {"/v1/validate/job",                 API_PUT,           BLOCKS_NOT,      api_validate_job,      IN_BODY(READ_JOB, SUBMIT_JOB)},
    {"/v1/job/*/allocations",            API_GET,           BLOCKS_ON_JOB,   api_job_allocations,   IN_NAMESPACE(READ_JOB)},
    {"/v1/job/*/evaluations",            API_GET,           BLOCKS_ON_JOB,   api_job_evaluations,   IN_NAMESPACE(READ_JOB)},
    {"/v1/job/*/summary",                API_GET,           BLOCKS_ON_JOB,   api_job_summary,       IN_NAMESPACE(READ_JOB)},
    {"/v1/job/*/versions",               API_GET,           BLOCKS_ON_JOB,   api_job_versions,      IN_NAMESPACE(READ_JOB)},
    {"/v1/job/*/versions/*/tag",         API_PUT_OR_DELETE, BLOCKS_NOT,      api_job_tag,           IN_NAMESPACE(SUBMIT_JOB, TAG_JOB_VERSION)},
    {"/v1/job/*/deployments",            API_GET,           BLOCKS_ON_JOB,   api_job_deployments,   IN_NAMESPACE(READ_JOB)},
    {"/v1/job/*/deployment",             API_GET,           BLOCKS_ON_JOB,   api_job_deployment,    IN_NAMESPACE(READ_JOB)},
    {"/v1/job/*/plan",                   API_PUT,           BLOCKS_NOT,      api_job_plan,          IN_BODY(SUBMIT_JOB, PLAN_JOB)},
    {"/v1/job/*/evaluate",               API_PUT,           BLOCKS_NOT,      api_job_evaluate,      IN_NAMESPACE(SUBMIT_JOB, EVALUATE_JOB)},
    {"/v1/job/*/dispatch",               API_PUT,           BLOCKS_NOT,      api_job_dispatch,      IN_NAMESPACE(DISPATCH_JOB)},
    {"/v1/job/*/revert",                 API_PUT,           BLOCKS_NOT,      api_job_revert,        IN_NAMESPACE(SUBMIT_JOB, REVERT_JOB)},
    {"/v1/job/*/stable",                 API_ANY,           BLOCKS_NOT,      api_unavailable,       ANYBODY},
    {"/v1/job/*/scale",                  API_GET,           BLOCKS_ON_JOB,   api_job_scale_status,  IN_NAMESPACE(READ_JOB, READ_JOB_SCALING)},
    {"/v1/job/*/scale",                  API_PUT,           BLOCKS_NOT,      api_job_scale,         IN_NAMESPACE(SUBMIT_JOB, SCALE_JOB)},
    {"/v1/job/*/periodic/force",         API_PUT,           BLOCKS_NOT,      api_job_force,         IN_NAMESPACE(DISPATCH_JOB, SUBMIT_JOB, FORCE_PERIODIC_JOB)},
    {"/v1/job/*/action",                 API_GET,           BLOCKS_NOT,      api_job_action,        ANYBODY},
    {"/v1/job/*/actions",                API_GET,           BLOCKS_ON_JOB,   api_job_actions,       IN_NAMESPACE(READ_JOB)},
    {"/v1/job/*/submission",             API_GET,           BLOCKS_ON_JOB,   api_job_submission,    IN_NAMESPACE(READ_JOB)},
    {"/v1/job/*",                        API_GET,           BLOCKS_ON_JOB,   api_job_get,           IN_NAMESPACE(READ_JOB)},
    {"/v1/job/*",                        API_PUT,           BLOCKS_NOT,      api_job_update,        IN_BODY(SUBMIT_JOB, REGISTER_JOB)},
    {"/v1/job/*",                        API_DELETE,        BLOCKS_NOT,      api_job_delete,        IN_NAMESPACE(SUBMIT_JOB, DEREGISTER_JOB)},
    {"/v1/allocations",                  API_GET,           BLOCKS,          api_allocs_list,       IN_NAMESPACE(READ_JOB)},
    {"/v1/allocation/*/stop",            API_PUT,           BLOCKS_NOT,      api_alloc_stop,        OF_ALLOC(ALLOC_LIFECYCLE)},
    {"/v1/allocation/*/checks",          API_GET,           BLOCKS_NOT,      api_alloc_checks,      OF_ALLOC(READ_JOB)},
    {"/v1/allocation/*/services",        API_GET,           BLOCKS,          api_alloc_services,    OF_ALLOC(READ_JOB)},
    {"/v1/allocation/*",                 API_GET,           BLOCKS_ON_ALLOC, api_alloc_get,         OF_ALLOC(READ_JOB)},
    {"/v1/evaluations",                  API_GET,           BLOCKS,          api_evals_list,        IN_NAMESPACE(READ_JOB)},
    {"/v1/evaluation/*/allocations",     API_GET,           BLOCKS_ON_EVAL,  api_eval_allocations,  OF_EVALUATION(READ_JOB)},
    {"/v1/evaluation/*",                 API_GET,           BLOCKS_ON_EVAL,  api_eval_get,          OF_EVALUATION(READ_JOB)},
    {"/v1/nodes",                        API_GET,           BLOCKS,          api_nodes_list,        OF(NODE, READ)},
    {"/v1/node/pools",                   API_ANY,           BLOCKS_NOT,      api_unavailable,       ANYBODY},
    {"/v1/node/pool/*",                  API_ANY,           BLOCKS_NOT,      api_unavailable,       ANYBODY},
    {"/v1/node/*/allocations",           API_GET,           BLOCKS,          api_node_allocations,  OF(NODE, READ)},
    {"/v1/node/*/drain",                 API_PUT,           BLOCKS_NOT,      api_node_drain,        OF(NODE, WRITE)},
    {"/v1/node/*/eligibility",           API_PUT,           BLOCKS_NOT,      api_node_eligibility,  OF(NODE, WRITE)},
    {"/v1/node/*/evaluate",              API_ANY,           BLOCKS_NOT,      api_unavailable,       ANYBODY},
    {"/v1/node/*/purge",                 API_ANY,           BLOCKS_NOT,      api_unavailable,       ANYBODY},
    {"/v1/node/*",                       API_GET,           BLOCKS,          api_node_get,          OF(NODE, READ)},
    {"/v1/client/stats",                 API_GET,           BLOCKS_NOT,      api_client_stats,      OF(NODE, READ)},
    {"/v1/client/gc",                    API_PUT_OR_GET,    BLOCKS_NOT,      api_client_gc,         OF(NODE, WRITE)},
    {"/v1/client/allocation/*/stats",    API_GET,           BLOCKS_NOT,      api_alloc_stats,       OF_ALLOC(READ_JOB)},
    {"/v1/client/allocation/*/restart",  API_PUT,           BLOCKS_NOT,      api_alloc_restart,     OF_ALLOC(ALLOC_LIFECYCLE)},
    {"/v1/client/allocation/*/signal",   API_PUT,           BLOCKS_NOT,      api_alloc_signal,      OF_ALLOC(ALLOC_LIFECYCLE)},
    {"/v1/client/allocation/*/gc",       API_PUT_OR_GET,    BLOCKS_NOT,      api_alloc_gc,          OF_ALLOC(SUBMIT_JOB, GC_ALLOCATION)},
    {"/v1/client/allocation/*/exec",     API_GET,           BLOCKS_NOT,      api_alloc_exec,        ANYBODY},
    {"/v1/client/allocation/*/snapshot", API_GET,           BLOCKS_NOT,      api_alloc_snapshot,    MIGRATION},
    {"/v1/client/allocation/*/checks",   API_GET,           BLOCKS_NOT,      api_alloc_checks,      OF_ALLOC(READ_JOB)},
    {"/v1/client/allocation/*/pause",    API_ANY,           BLOCKS_NOT,      api_unavailable,       ANYBODY},
    {"/v1/client/metadata",              API_GET,           BLOCKS_NOT,      api_metadata_get,      OF(NODE, READ)},
    {"/v1/client/metadata",              API_PUT,           BLOCKS_NOT,      api_metadata_apply,    OF(NODE, WRITE)},
    {"/v1/client/fs/ls/*",               API_GET,           BLOCKS_NOT,      api_fs_list,           OF_ALLOC(READ_FS)},
    {"/v1/client/fs/stat/*",             API_GET,           BLOCKS_NOT,      api_fs_stat,           OF_ALLOC(READ_FS)},
    {"/v1/client/fs/cat/*",              API_GET,           BLOCKS_NOT,      api_fs_cat,            OF_ALLOC(READ_FS)},
    {"/v1/client/fs/readat/*",           API_GET,           BLOCKS_NOT,      api_fs_readat,         OF_ALLOC(READ_FS)},
    {"/v1/client/fs/stream/*",           API_GET,           BLOCKS_NOT,      api_fs_stream,         OF_ALLOC(READ_FS)},
    {"/v1/client/fs/logs/*",             API_GET,           BLOCKS_NOT,      api_fs_logs,           OF_ALLOC(READ_FS, READ_LOGS)},
    {"/v1/agent/self",                   API_GET,           BLOCKS_NOT,      api_agent_self,        OF(AGENT, READ)},
    {"/v1/agent/health",                 API_GET,           BLOCKS_NOT,      api_agent_health,      ANYBODY},
    {"/v1/agent/members",                API_GET,           BLOCKS_NOT,      api_agent_members,     OF(NODE, READ)},
    {"/v1/agent/servers",                API_GET,           BLOCKS_NOT,      api_agent_servers,     OF(AGENT, READ)},
    {"/v1/agent/servers",                API_PUT,           BLOCKS_NOT,      api_agent_set_servers, OF(AGENT, WRITE)},
    {"/v1/agent/monitor",                API_GET,           BLOCKS_NOT,      api_agent_monitor,     OF(AGENT, READ)},
    {"/v1/status/leader",                API_GET,           BLOCKS_NOT,      api_status_leader,     ANYBODY},
    {"/v1/status/peers",                 API_GET,           BLOCKS_NOT,      api_status_peers,      ANYBODY},
    {"/v1/regions",                      API_GET,           BLOCKS_NOT,      api_regions,           ANYBODY},
    {"/v1/namespaces",                   API_GET,           BLOCKS,          api_namespaces,        ANYBODY},
    {"/v1/namespace/*",                  API_GET,           BLOCKS,          api_namespace_get,     ANYBODY},
    {"/v1/system/gc",                    API_PUT,           BLOCKS_NOT,      api_system_gc,         MANAGEMENT},
    {"/v1/metrics",                      API_GET,           BLOCKS_NOT,      api_metrics,           OF(AGENT, READ)},
    {"/v1/search",                       API_PUT,           BLOCKS_NOT,      api_search,            ANYBODY},
    {"/v1/deployments",                  API_GET,           BLOCKS,          api_deployments_list,  IN_NAMESPACE(READ_JOB)},
    {"/v1/deployment/allocations/*",     API_GET,           BLOCKS,          api_deployed_allocs,   OF_DEPLOYMENT(READ_JOB)},
    {"/v1/deployment/pause/*",           API_PUT,           BLOCKS_NOT,      api_deployed_pause,    OF_DEPLOYMENT(SUBMIT_JOB, PAUSE_DEPLOYMENT)},
    {"/v1/deployment/promote/*",         API_PUT,           BLOCKS_NOT,      api_deployed_promote,  OF_DEPLOYMENT(SUBMIT_JOB, PROMOTE_DEPLOYMENT)},
    {"/v1/deployment/fail/*",            API_PUT,           BLOCKS_NOT,      api_deployed_fail,     OF_DEPLOYMENT(SUBMIT_JOB, FAIL_DEPLOYMENT)},
    {"/v1/deployment/unblock/*",         API_PUT,           BLOCKS_NOT,      api_deployed_unblock,  OF_DEPLOYMENT(SUBMIT_JOB, UNBLOCK_DEPLOYMENT)},
    {"/v1/deployment/allocation-health/*", API_PUT,        BLOCKS_NOT,      api_deployed_health,   OF_DEPLOYMENT(SUBMIT_JOB, SET_ALLOC_HEALTH_DEPLOYMENT)},
    {"/v1/deployment/*",                 API_GET,           BLOCKS,          api_deployment_get,    OF_DEPLOYMENT(READ_JOB)},
    {"/v1/volumes",                      API_GET,           BLOCKS,          api_volumes_list,      IN_NAMESPACE(CSI_LIST_VOLUME, CSI_READ_VOLUME, HOST_VOLUME_READ)},
    {"/v1/volumes",                      API_PUT,           BLOCKS_NOT,      api_volume_register,   IN_BODY(CSI_WRITE_VOLUME)},
    {"/v1/volumes/external",             API_GET,           BLOCKS_NOT,      api_volumes_external,  IN_NAMESPACE(CSI_LIST_VOLUME, CSI_READ_VOLUME)},
    {"/v1/volumes/snapshot",             API_GET,           BLOCKS_NOT,      api_snapshots_list,    IN_NAMESPACE(CSI_LIST_VOLUME, CSI_READ_VOLUME)},
    {"/v1/volumes/snapshot",             API_PUT,           BLOCKS_NOT,      api_snapshot_create,   IN_NAMESPACE(CSI_WRITE_VOLUME)},
    {"/v1/volumes/snapshot",             API_DELETE,        BLOCKS_NOT,      api_snapshot_delete,   IN_NAMESPACE(CSI_WRITE_VOLUME)},
    {"/v1/volumes/claims",               API_ANY,           BLOCKS_NOT,      api_unavailable,       ANYBODY},
    {"/v1/volumes/claim/*",              API_ANY,           BLOCKS_NOT,      api_unavailable,       ANYBODY},
    {"/v1/volume/host/create",           API_PUT,           BLOCKS_NOT,      api_host_volume_create, IN_BODY(HOST_VOLUME_CREATE)},
    {"/v1/volume/host/register",         API_PUT,           BLOCKS_NOT,      api_host_volume_register, IN_BODY(HOST_VOLUME_REGISTER)},
    {"/v1/volume/host/*",                API_GET,           BLOCKS,          api_host_volume_get,   IN_NAMESPACE(HOST_VOLUME_READ)},
    {"/v1/volume/host/*",                API_DELETE,        BLOCKS_NOT,      api_host_volume_delete, IN_NAMESPACE(HOST_VOLUME_DELETE)},
    {"/v1/volume/csi/*/detach",          API_DELETE,        BLOCKS_NOT,      api_volume_detach,     IN_NAMESPACE(CSI_WRITE_VOLUME)},
    {"/v1/volume/csi/*/create",          API_PUT,           BLOCKS_NOT,      api_volume_create,     IN_BODY(CSI_WRITE_VOLUME)},
    {"/v1/volume/csi/*/delete",          API_DELETE,        BLOCKS_NOT,      api_volume_delete,     IN_NAMESPACE(CSI_WRITE_VOLUME)},
    {"/v1/volume/csi/*",                 API_GET,           BLOCKS,          api_volume_get,        IN_NAMESPACE(CSI_READ_VOLUME)},
    {"/v1/volume/csi/*",                 API_PUT,           BLOCKS_NOT,      api_volume_register,   IN_BODY(CSI_WRITE_VOLUME)},
    {"/v1/volume/csi/*",                 API_DELETE,        BLOCKS_NOT,      api_volume_forget,     IN_NAMESPACE(CSI_WRITE_VOLUME)},
    {"/v1/plugins",                      API_GET,           BLOCKS,          api_plugins_list,      OF(PLUGIN, LIST)},
    {"/v1/plugin/csi/*",                 API_GET,           BLOCKS,          api_plugin_get,        OF(PLUGIN, READ)},
    {"/v1/scaling/policies",             API_GET,           BLOCKS,          api_policies_list,     IN_NAMESPACE(LIST_SCALING_POLICIES, READ_JOB)},
    {"/v1/scaling/policy/*",             API_GET,           BLOCKS,          api_policy_get,        IN_NAMESPACE(READ_SCALING_POLICY, READ_JOB)},
    {"/v1/volume/*",                     API_ANY,           BLOCKS_NOT,      api_unavailable,       ANYBODY},
    {"/v1/event/stream",                 API_GET,           BLOCKS_NOT,      api_event_stream,      ANYBODY},
    {"/v1/acl/bootstrap",                API_PUT,           BLOCKS_NOT,      api_acl_bootstrap,     ANYBODY},
    {"/v1/acl/policies",                 API_GET,           BLOCKS_IF_TOKENS, api_acl_policies,      ANYBODY},
    {"/v1/acl/policy/*",                 API_GET,           BLOCKS_IF_TOKENS, api_acl_policy_get,    ANYBODY},
    {"/v1/acl/policy/*",                 API_PUT,           BLOCKS_NOT,      api_acl_policy_put,    MANAGEMENT},
    {"/v1/acl/policy/*",                 API_DELETE,        BLOCKS_NOT,      api_acl_policy_delete, MANAGEMENT},
    {"/v1/acl/tokens",                   API_GET,           BLOCKS_IF_TOKENS, api_acl_tokens,        MANAGEMENT},
    {"/v1/acl/token",                    API_PUT,           BLOCKS_NOT,      api_acl_token_create,  MANAGEMENT},
    {"/v1/acl/token/self",               API_GET,           BLOCKS_IF_TOKENS, api_acl_token_self,    ANYBODY},
    {"/v1/acl/token/*",                  API_GET,           BLOCKS_IF_TOKENS, api_acl_token_get,     MANAGEMENT},
    {"/v1/acl/token/*",                  API_PUT,           BLOCKS_NOT,      api_acl_token_update,  MANAGEMENT},
    {"/v1/acl/token/*",                  API_DELETE,        BLOCKS_NOT,      api_acl_token_delete,  MANAGEMENT},
    {"/v1/acl/*",                        API_ANY,           BLOCKS_NOT,      api_unavailable,       ANYBODY},
    {"/v1/operator/*",                   API_ANY,           BLOCKS_NOT,      api_unavailable,       ANYBODY},
    {"/v1/namespace",                    API_PUT,           BLOCKS_NOT,      api_unavailable,       ANYBODY},
    {"/v1/namespace/*",                  API_PUT_OR_DELETE, BLOCKS_NOT,      api_unavailable,       ANYBODY},
    {"/v1/deployment/*",                 API_PUT,           BLOCKS_NOT,      api_unavailable,       ANYBODY},
    {"/v1/agent/keyring/*",              API_ANY,           BLOCKS_NOT,      api_unavailable,       ANYBODY},
    {"/v1/agent/pprof/*",                API_ANY,           BLOCKS_NOT,      api_unavailable,       ANYBODY},
    {"/v1/system/reconcile/*",           API_ANY,           BLOCKS_NOT,      api_unavailable,       ANYBODY},
    {"/v1/quota",                        API_ANY,           BLOCKS_NOT,      api_unavailable,       ANYBODY},
    {"/v1/quota*",                       API_ANY,           BLOCKS_NOT,      api_unavailable,       ANYBODY},
    {"/v1/sentinel/*",                   API_ANY,           BLOCKS_NOT,      api_unavailable,       ANYBODY},
    {"/v1/recommendation*",              API_ANY,           BLOCKS_NOT,      api_unavailable,       ANYBODY},
    {"/v1/services",                     API_GET,           BLOCKS,          api_services_list,     IN_NAMESPACE(READ_JOB)},
    {"/v1/service/*/*",                  API_DELETE,        BLOCKS_NOT,      api_service_delete,    IN_NAMESPACE(SUBMIT_JOB, DELETE_SERVICE_REGISTRATION)},
    {"/v1/service/*",                    API_GET,           BLOCKS,          api_service_get,       IN_NAMESPACE(READ_JOB)},
    {"/v1/var*",                         API_ANY,           BLOCKS_NOT,      api_unavailable,       ANYBODY},
    {"/v1/search/fuzzy",                 API_ANY,           BLOCKS_NOT,      api_unavailable,       ANYBODY},
    {"/v1/agent/join",                   API_ANY,           BLOCKS_NOT,      api_unavailable,       ANYBODY},
    {"/v1/agent/force-leave",            API_ANY,           BLOCKS_NOT,      api_unavailable,       ANYBODY},
    {"/v1/agent/host",                   API_ANY,           BLOCKS_NOT,      api_unavailable,       ANYBODY},
};
/* clang-format on */

const size_t api_routes_count = COUNT_OF(api_routes);

/* How long the rest of PATH, of LENGTH, is before TAIL and a name, which is the last * of a pattern
 * with two; SIZE_MAX: there are none. */
static size_t before_name(const char *path, size_t length, const char *tail)
{
    size_t end = length - strlen(tail);

    if (length <= strlen(tail) || !text_ends_with(path, tail))
        return SIZE_MAX;
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    return begin == end ? SIZE_MAX : begin;
}

/* True if PATH is PATTERN; what stands for its first * is copied. */
static bool path_matches(const char *pattern, const char *path, char argument[API_ARGUMENT_SIZE])
{
    const char *star = strchr(pattern, '*'), *second = star == NULL ? NULL : strchr(star + 1, '*');
    size_t length = strlen(path);

    argument[0] = '\0';
    if (star == NULL)
        return text_equal(pattern, path);
    if (second != NULL)
        length = before_name(path, length, second + 1);
    size_t before = (size_t)(star - pattern);
    size_t after = second == NULL ? strlen(star + 1) : (size_t)(second - star - 1);
    if (length == SIZE_MAX || length <= before + after || strncmp(pattern, path, before) != 0 ||
        strncmp(path + length - after, star + 1, after) != 0)
        return false;
    length -= before + after;
    if (length >= API_ARGUMENT_SIZE)
        return false;
    memcpy(argument, path + before, length);
    argument[length] = '\0';
    return true;
}

const struct api_route *api_route_of(const char *path, uint8_t method,
                                     char argument[API_ARGUMENT_SIZE])
{
    for (size_t i = 0; i < api_routes_count; i++) {
        if ((api_routes[i].methods & method) != 0 &&
            path_matches(api_routes[i].path, path, argument))
            return &api_routes[i];
    }
    return NULL;
}

const struct api_route *api_find_route(const char *path, char ret_argument[API_ARGUMENT_SIZE])
{
    return api_route_of(path, UINT8_MAX, ret_argument);
}
