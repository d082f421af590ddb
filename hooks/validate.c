/*
 * Hook validate: tasks that must not run as what they ask to run as.
 *
 * Follows nomad v1.1.2 client/allocrunner/taskrunner/validate_hook.go: the denylist counts for the
 * drivers that isolate and not for raw_exec, whose payloads are the host's own.  The name is
 * interpolated first, as it is before the driver gets it, so that ${NOMAD_META_who} is no way
 * around the list.
 */
#include "hooks/part.h"

int hooks_validate(const struct hook_request *request, struct err *err)
{
    if (!text_lists(request->hooks->user_denylist, request->user))
        return 0;
    return err_set(err, ERR_REFUSED, "running as user \"%.64s\" is disallowed", request->user);
}
