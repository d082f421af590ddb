/*
 * The token of a task, as a file that only its user reads.
 *
 * Part of the hook task_dir, so that all that comes after it finds the file: artifacts, templates,
 * the task.  It is written before every start: a reboot has emptied `secrets`, and the task may
 * have removed it.  Follows nomad v2.0.6 client/allocrunner/taskrunner/identity_hook.go, but for
 * its mode: there root's is for everybody to read.
 */
#include "hooks/file.h"

#include <string.h>

enum { TOKEN_MODE = 0600 };

json_t *hooks_identity_order(const struct hook_run *asked)
{
    const struct spec_identity *identity = &asked->task->identity;

    return identity->file[0] == '\0'
               ? NULL
               : json_pack("{s:s, s:s}", "Path", identity->file, "Token", identity->token);
}

int hooks_token_write(const struct hook_request *request, const char *path, const char *token,
                      size_t length, int task_fd, const struct host_user *owner, struct err *err)
{
    const struct stat wanted = {.st_mode = TOKEN_MODE, .st_uid = owner->uid, .st_gid = owner->gid};
    bool gives = request->privileged;
    scoped_fd int directory = -1;
    char name[NAME_SIZE];
    int code = hooks_file_enter(task_fd, path, gives ? owner : NULL, name, &directory, err);

    return code == 0 ? hooks_file_replace(directory, name, token, length, &wanted, gives, err)
                     : code;
}

int hooks_identity_write(const struct hook_request *request, const json_t *order, int task_fd,
                         const struct host_user *owner, struct err *err)
{
    const char *token = json_string_value(json_object_get(order, "Token"));

    if (order == NULL)
        return 0;
    int code = hooks_token_write(request, json_string_value(json_object_get(order, "Path")), token,
                                 strlen(token), task_fd, owner, err);
    return code == 0 ? 0 : err_wrap(err, "failed to write the identity token");
}
