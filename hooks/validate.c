/*
 * Hook validate: tasks that must not run as what they ask to run as.
 *
 * Follows nomad v1.1.2 client/allocrunner/taskrunner/validate_hook.go: the denylist counts for the
 * drivers that isolate and not for raw_exec, whose payloads are the host's own.  The name is
 * interpolated first, as it is before the driver gets it, so that ${NOMAD_META_who} is no way
 * around the list.
 */
#include "hooks/part.h"

enum { USER_SIZE = 256 };

int hooks_validate(const struct hook_request *request, struct err *err)
{
    char user[USER_SIZE];
    int code = hooks_user(request->hooks, request->asked, user, sizeof(user), err);

    for (size_t i = 0; code == 0 && request->hooks->user_denylist[i] != NULL; i++) {
        if (text_equal(user, request->hooks->user_denylist[i]))
            code = err_set(err, ERR_REFUSED, "running as user \"%s\" is disallowed", user);
    }
    return code;
}
