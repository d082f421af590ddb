/*
 * Hook task_dir: the directory of a task in that of its alloc.
 *
 * Runs before every start and asks the file system and the mount table each time, never a note of
 * its own: after a reboot the tmpfs of `secrets` is mounted again (R-29, R-65; Nomad keeps a flag
 * and did not until 2.0.5), and what is on disk stays as it is.  When the daemon comes back to a
 * task that runs, it looks, too: a mount that is gone, by hand or because the daemon is in another
 * namespace of mounts by now, is brought back from the payload's, or made anew.  What must never
 * happen is the root of the alloc coming back empty, as if it had always been so.
 *
 * All of it belongs to the user that the task runs as: others may look but not change anything, and
 * `tmp` and `secrets` are closed to them.  So is the alloc's whole directory to users of none of
 * its tasks.  Nomad gives all of it to nobody, for everybody to write, secrets too (v1.1.2
 * client/allocdir/task_dir.go Build); the names and the size of `secrets` are from there.
 * `secrets` is also nosuid and nodev here, and ends with its task instead of with its alloc.
 *
 * Who runs in an image is nobody that the host knows: there it is as in Nomad, in a directory that
 * only root gets to.
 */
#include "hooks/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum {
    TASK_MODE = 0755,
    OWN_MODE = 0700,
    IMAGE_MODE = 0777, /* of what such a task sees; nobody else gets to it */
    ROOT_MODE_WITHOUT_LISTS = 0711,
    SECRETS_BYTES = 1024 * 1024,
};

static const char payload_key[] = "Payload", identity_key[] = "Identity";

int hooks_owner(const struct hook_request *request, struct host_user *ret_owner, struct err *err)
{
    *ret_owner = (struct host_user){.uid = geteuid(), .gid = getegid()};
    if (!request->privileged || request->user[0] == '\0')
        return 0;
    return host_user_find(request->user, ret_owner, err);
}

static mode_t own_mode(const struct hook_request *request)
{
    return request->is_image ? IMAGE_MODE : OWN_MODE;
}

/* Lets the owner into the alloc's directory.  Where the file system cannot let in one user, it is
 * everybody who knows the alloc's id, as in Nomad. */
static int admit(int root_fd, const struct host_user *owner, struct err *err)
{
    if (owner->uid == geteuid())
        return 0;
    int code = directory_admit(root_fd, owner->uid, err);
    if (code == ERR_UNSUPPORTED && place_chmod(root_fd, ROOT_MODE_WITHOUT_LISTS) == 0)
        return 0;
    return code == 0 ? 0 : err_wrap(err, "the alloc directory");
}

static int make(const struct hook_request *request, int task_fd, const char *name, mode_t mode,
                const struct host_user *owner, struct err *err)
{
    char shown[SPEC_NAME_SIZE + 16];

    (void)text_format(shown, sizeof(shown), "%s/%s", request->task, name); /* only shown */
    return hooks_directory_make(task_fd, name, mode, owner, shown, NULL, err);
}

/* Whatever has the name, with all that is in it. */
static int clear_secrets(int task_fd, struct err *err)
{
    if (unlinkat(task_fd, "secrets", AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0; /* as it nearly always is: no need to read the mount table, which grows */
    return tree_remove(task_fd, "secrets", err);
}

/* A tmpfs of the task's own.  What lies below it would be readable whenever it is not there, and
 * its name is the payload's to exchange: so whatever has that name goes first, on the disk, with
 * all that is in it, and an empty directory that only root can enter carries the mount. */
static int mount_secrets(const struct hook_request *request, int task_fd,
                         const struct host_user *owner, bool *ret_was_there, struct err *err)
{
    const struct mount_tmpfs wanted = {SECRETS_BYTES, own_mode(request), owner->uid, owner->gid};
    struct err cause = {0};
    int mounted = mount_is_point(task_fd, "secrets", &cause);
    int code = mounted < 0 ? mounted : 0;

    if (mounted == 0)
        code = clear_secrets(task_fd, &cause);
    if (mounted == 0 && code == 0 && mkdirat(task_fd, "secrets", 0) != 0)
        code = err_os(&cause, err_from_errno(errno), errno, "cannot make it");
    if (code == 0)
        code = mount_tmpfs(task_fd, "secrets", &wanted, &cause);
    *ret_was_there = mounted == 1;
    if (code == 0)
        return 0;
    if (code == ERR_EXISTS && cause.os == 0)
        return err_set(err, code, "something else is mounted on %s/secrets", request->task);
    if (cause.os == 0)
        code =
            err_set(err, code, "cannot mount a tmpfs on %s/secrets: %s", request->task, cause.text);
    else
        code = err_os(err, code, cause.os, "cannot mount a tmpfs on %s/secrets", request->task);
    /* Somebody of the task's user is at work there: not for ever. */
    err->recoverable = code == ERR_AGAIN || code == ERR_EXISTS || code == ERR_FULL;
    return code;
}

/* The files that are in it before anything else: the payload and the identity. */
int hooks_task_dir_begin(const struct hooks *hooks, const struct hook_run *asked, char **ret_order,
                         struct err *err)
{
    json_t *order = json_pack("{s:o*, s:o*}", payload_key, hooks_payload_order(asked), identity_key,
                              hooks_identity_order(asked));

    (void)hooks;
    (void)err; /* nothing can go wrong */
    check(order != NULL);
    if (json_object_size(order) > 0)
        *ret_order = json_dumps(order, JSON_COMPACT);
    json_decref(order);
    return 0;
}

static int write_files(const struct hook_request *request, int task_fd,
                       const struct host_user *owner, struct err *err)
{
    json_t *order = json_loads(request->order, 0, NULL); /* NULL: there are none */
    int code =
        hooks_payload_write(request, json_object_get(order, payload_key), task_fd, owner, err);

    if (code == 0)
        code = hooks_identity_write(request, json_object_get(order, identity_key), task_fd, owner,
                                    err);
    json_decref(order);
    return code;
}

int hooks_task_dir_build(const struct hook_request *request, struct err *err)
{
    scoped_fd int root = -1, task = -1;
    struct host_user owner;
    bool was_there = true; /* without a mount it is looked at, too */
    int code = hooks_open_root(request, &root, err);

    if (code == 0)
        code = hooks_owner(request, &owner, err);
    if (code == 0)
        code = admit(root, &owner, err);
    if (code == 0)
        code = hooks_directory_make(root, request->task, request->is_image ? OWN_MODE : TASK_MODE,
                                    &owner, request->task, &task, err);
    if (code == 0)
        code =
            make(request, task, "local", request->is_image ? IMAGE_MODE : TASK_MODE, &owner, err);
    if (code == 0)
        code = make(request, task, "tmp", OWN_MODE, &owner, err);
    if (code == 0 && request->privileged)
        code = mount_secrets(request, task, &owner, &was_there, err);
    if (code == 0 && was_there) /* a new one has its owner and mode from its birth */
        code = make(request, task, "secrets", own_mode(request), &owner, err);
    if (code == 0)
        code = write_files(request, task, &owner, err);
    return code;
}

/* The secrets as the payload sees them, if it is where mounts of ours are not missed: a copy, which
 * may be brought back.  Whose they are is looked at, since the payload may have mounted others. */
static int find_seen(const struct hook_request *request, int task_fd, uid_t owner, int *ret_fd,
                     struct err *err)
{
    char link[PLACE_PATH_SIZE], above[PATH_SIZE], path[PATH_SIZE] = "/secrets";
    scoped_fd int copy = -1;
    struct statfs system;
    struct stat status;

    place_path(task_fd, link);
    ssize_t length = readlink(link, above, sizeof(above) - 1);
    if (length < 0)
        return err_os(err, err_from_errno(errno), errno, "cannot resolve its directory");
    above[length] = '\0';
    if (!request->has_own_root && path_join(path, above, "secrets") != 0)
        return err_set(err, ERR_LIMIT, "its path is too long");
    int code = mount_seen_by(&request->payload, path, &copy, err);
    if (code != 0 || copy < 0)
        return code;
    if (fstatfs(copy, &system) != 0 || fstat(copy, &status) != 0)
        return err_os(err, err_from_errno(errno), errno, "cannot look at what it sees");
    *ret_fd = system.f_type == TMPFS_MAGIC && status.st_uid == owner ? take_fd(&copy) : -1;
    return 0;
}

/* What the payload sees comes back to where its name is by now: whatever was removed here, be it
 * the directory below it, would be gone for the payload, too. */
static int mend(const struct hook_request *request, int task_fd, struct err *err)
{
    struct host_user owner;
    scoped_fd int seen = -1;
    bool was_there;
    int code = hooks_owner(request, &owner, err);

    if (code == 0)
        code = find_seen(request, task_fd, owner.uid, &seen, err);
    if (code == 0)
        code = seen >= 0 ? mount_attach(seen, task_fd, "secrets", err)
                         : mount_secrets(request, task_fd, &owner, &was_there, err);
    if (code != 0)
        return code;
    (void)err_set(err, ERR_GONE, "secrets were not mounted any more, and are again: %s",
                  seen >= 0 ? "those that the task sees" : "empty"); /* and no failure */
    return HOOK_REMARK;
}

/* The task's directory; -1 if there is none, and so nothing of ours in it. */
static int open_task(const struct hook_request *request, int *ret_fd, struct err *err)
{
    scoped_fd int root = -1;
    int code = hooks_open_root(request, &root, err);

    if (code == 0)
        code = hooks_directory_open(root, request->task, request->task, ret_fd, err);
    return code == ERR_GONE || code == ERR_EXISTS ? 0 : code;
}

int hooks_task_dir_mend(const struct hook_request *request, struct err *err)
{
    scoped_fd int task = -1;

    if (!request->privileged || !proc_is_alive(&request->payload))
        return 0; /* there never were any, or they are made before it starts again */
    int code = open_task(request, &task, err);
    if (code != 0 || task < 0)
        return code;
    int mounted = mount_is_point(task, "secrets", err);
    return mounted < 0 ? mounted : mounted == 1 ? 0 : mend(request, task, err);
}

/* No secret outlives its task: not in memory and, where nothing could be mounted, not on disk. */
static int strip(const struct hook_request *request, int task_fd, struct err *err)
{
    struct err cause = {0};

    if (request->privileged && mount_remove(task_fd, "secrets", &cause) != 0)
        return err_os(err, cause.code, cause.os, "cannot unmount %s/secrets", request->task);
    return clear_secrets(task_fd, err);
}

int hooks_task_dir_strip(const struct hook_request *request, struct err *err)
{
    scoped_fd int task = -1;
    int code = open_task(request, &task, err);

    if (code == 0 && task >= 0)
        code = strip(request, task, err);
    if (code != 0)
        err->recoverable = true;
    return code;
}

int hooks_open_secrets(const struct hooks *hooks, const char *alloc_id, const char *task,
                       int *ret_fd, struct err *err)
{
    const struct hook_request request = {
        .alloc_dir = hooks->alloc_dir, .alloc = alloc_id, .task = task};
    scoped_fd int root = -1, directory = -1;
    int code = hooks_open_root(&request, &root, err);

    if (code == 0)
        code = hooks_directory_open(root, task, task, &directory, err);
    return code == 0 ? hooks_directory_open(directory, "secrets", "secrets", ret_fd, err) : code;
}
