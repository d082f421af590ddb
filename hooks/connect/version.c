/*
 * Hook envoy_version: which Envoy is in the image of a sidecar, where the image asks for that.
 *
 * Images are named by the node's metadata, connect.sidecar_image, in which
 * ${NOMAD_envoy_version} is the one that Consul prefers.
 */
#include "hooks/connect/part.h"

#include <string.h>

int hooks_envoy_version(const struct hook_request *request, struct err *err)
{
    const struct hooks_connect *connect = request->hooks->connect;
    const char *config = request->asked->task->config_json;

    if (strstr(config, "\"image\"") == NULL)
        return 0; /* it is a program of the host */
    const char *version = connect == NULL ? NULL : connect->envoy(connect->ctx);
    if (version == NULL) {
        (void)err_set(err, ERR_GONE, "Consul has not said which Envoy it is to be");
        err->recoverable = connect != NULL;
        return err->code;
    }
    return connect_set(request, TASK_HOOK_ENVOY_VERSION, "NOMAD_envoy_version", version, err);
}
