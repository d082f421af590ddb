/*
 * Hook task_dir: the directory of a task in that of its alloc.
 *
 * Runs before every start and asks the file system and the mount table each time, never a note of
 * its own: after a reboot the tmpfs of `secrets` is mounted again (R-29, R-65; Nomad keeps a flag
 * and did not until 2.0.5), and what is on disk stays as it is.  What must never happen is the
 * root of the alloc coming back empty, as if it had always been so.
 *
 * Modes, owners and the size of `secrets` follow nomad v1.1.2 client/allocdir/task_dir.go Build.
 * `secrets` is also nosuid and nodev here, and ends with its task instead of with its alloc.
 */
#include "hooks/directory.h"

#include "io/host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

enum { TASK_MODE = 0777, TMP_MODE = 01777, SECRETS_BYTES = 1024 * 1024 };

static int make(const struct hook_request *request, int task_fd, const char *name, mode_t mode,
                struct err *err)
{
    char shown[SPEC_NAME_SIZE + 16];

    (void)text_format(shown, sizeof(shown), "%s/%s", request->task, name); /* only shown */
    return hooks_directory_make(task_fd, name, mode, request->owner_uid, request->owner_gid, shown,
                                NULL, err);
}

static int secrets_path(const struct hook_request *request, char to[PATH_SIZE], struct err *err)
{
    if (text_format(to, PATH_SIZE, "%s/%s/%s/secrets", request->alloc_dir, request->alloc,
                    request->task))
        return 0;
    return err_set(err, ERR_LIMIT, "the path of the task directory is too long");
}

/* Mounted with no mode bits, for the tmpfs to be finished like any directory that was just made:
 * a crash in between leaves one that the next run knows to be half made. */
static int mount_secrets(const struct hook_request *request, int task_fd, struct err *err)
{
    char path[PATH_SIZE];
    struct err cause = {0};
    int code = secrets_path(request, path, err);

    if (code != 0)
        return code;
    code = mount_tmpfs(path, SECRETS_BYTES, 0, &cause);
    if (code != 0) {
        if (cause.os == 0)
            return err_set(err, code, "something else is mounted on %s/secrets", request->task);
        return err_os(err, code, cause.os, "cannot mount a tmpfs on %s/secrets", request->task);
    }
    return make(request, task_fd, "secrets", TASK_MODE, err);
}

int hooks_task_dir_build(const struct hook_request *request, struct err *err)
{
    scoped_fd int root = -1, task = -1;
    int code = hooks_open_root(request, &root, err);

    if (code == 0)
        code = hooks_directory_make(root, request->task, TASK_MODE, request->owner_uid,
                                    request->owner_gid, request->task, &task, err);
    if (code == 0)
        code = make(request, task, "local", TASK_MODE, err);
    if (code == 0)
        code = make(request, task, "tmp", TMP_MODE, err);
    if (code == 0)
        code = make(request, task, "secrets", TASK_MODE, err);
    if (code == 0 && request->privileged)
        code = mount_secrets(request, task, err);
    return code;
}

/* No secret outlives its task: not in memory and, where nothing could be mounted, not on disk. */
int hooks_task_dir_strip(const struct hook_request *request, struct err *err)
{
    char path[PATH_SIZE];
    struct err cause = {0};
    int code = secrets_path(request, path, err);

    if (code != 0)
        return code;
    if (request->privileged)
        code = mount_remove(path, &cause);
    if (code != 0) {
        code = err_os(err, code, cause.os, "cannot unmount %s/secrets", request->task);
        err->recoverable = true;
        return code;
    }
    if (unlinkat(AT_FDCWD, path, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0; /* as it always is after a tmpfs: no need to read the mount table again */
    code = tree_remove(path, err);
    if (code != 0)
        err->recoverable = true;
    return code;
}
