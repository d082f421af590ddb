/*
 * Hook logmon: the place where the shim writes what the payload says.
 *
 * The shim writes and rotates the files itself and ends with its payload, so there is no process
 * to start or stop here, and no phase but the first.  What is left is to make the place again if
 * it is missing, and to say, before a payload runs, that its words will be lost: a payload can
 * delete alloc/logs, or put a link in its place that the shim will not follow, and a disk can turn
 * read-only.  None of that is a reason not to run: the shim counts what it loses, and goes on when
 * it can.
 */
#include "hooks/directory.h"

#include <errno.h>
#include <fcntl.h>

enum { LOGS_MODE = 0777 };

static int can_write(int place)
{
    char path[PLACE_PATH_SIZE];

    place_path(place, path);
    return faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) == 0 ? 0 : -errno;
}

int hooks_logs_prepare(const struct hook_request *request, struct err *err)
{
    scoped_fd int root = -1, shared = -1, logs = -1;
    int code = hooks_open_root(request, &root, err);

    if (code != 0)
        return code; /* without that there is nothing at all to run in */
    code = hooks_directory_open(root, "alloc", "alloc", &shared, err);
    if (code == 0)
        code = hooks_directory_make(shared, "logs", LOGS_MODE, NULL, "alloc/logs", &logs, err);
    int failed = code == 0 ? can_write(logs) : 0;
    if (failed != 0)
        code = err_os(err, err_from_errno(-failed), -failed, "cannot write to alloc/logs");
    if (code == 0)
        return 0;
    (void)err_wrap(err, "output is lost until this is mended"); /* its code does not matter */
    return HOOK_REMARK;
}
