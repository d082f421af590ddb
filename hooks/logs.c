/*
 * Hook logmon: the place where the shim writes what the payload says.
 *
 * The shim writes and rotates the files itself and ends with its payload, so there is no process
 * to start or stop here, and no phase but the first.  What is left is to notice, before a payload
 * runs, that its words would be lost: a payload can delete alloc/logs, or put a link in its place
 * that would send the shim's writes elsewhere.
 */
#include "hooks/directory.h"

#include <errno.h>
#include <fcntl.h>

enum { LOGS_MODE = 0777 };

int hooks_logs_prepare(const struct hook_request *request, struct err *err)
{
    scoped_fd int root = -1, shared = -1;
    int code = hooks_open_root(request, &root, err);

    if (code == 0)
        code = hooks_directory_open(root, "alloc", "alloc", &shared, err);
    if (code == 0)
        code = hooks_directory_make(shared, "logs", LOGS_MODE, NULL, "alloc/logs", NULL, err);
    if (code == 0 && faccessat(shared, "logs", W_OK | X_OK, AT_EACCESS) != 0)
        code = err_os(err, err_from_errno(errno), errno, "cannot write to alloc/logs");
    return code;
}
