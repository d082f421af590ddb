/* What the hooks of this room share, and the sockets of an alloc that lead out of its network. */
#include "hooks/connect/part.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { SECRET_MODE = 0600, IMAGE_MODE = 0644 };

int connect_write_secret(const struct hook_request *request, const char *name, const void *bytes,
                         size_t length, struct err *err)
{
    scoped_fd int root = -1, task = -1, secrets = -1;
    struct stat status;
    int code = hooks_open_root(request, &root, err);

    if (code == 0)
        code = hooks_directory_open(root, request->task, request->task, &task, err);
    if (code == 0)
        code = hooks_directory_open(task, "secrets", "secrets", &secrets, err);
    if (code == 0 && fstat(secrets, &status) != 0)
        code = err_os(err, ERR_IO, errno, "cannot look at its secrets");
    if (code != 0)
        return code;
    /* Who runs in an image is nobody of the host, in a directory that only root gets to. */
    status.st_mode = request->is_image ? IMAGE_MODE : SECRET_MODE;
    return hooks_file_replace(secrets, name, bytes, length, &status, request->privileged, err);
}

bool hooks_read_token(const struct hooks *hooks, const char *alloc, const char *task,
                      char ret_token[CONNECT_TOKEN_SIZE])
{
    scoped_fd int secrets = -1, file = -1;
    struct err err;

    if (hooks_open_secrets(hooks, alloc, task, &secrets, &err) != 0)
        return false; /* nothing was made yet */
    file = beneath_open(secrets, "si_token", O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0);
    ssize_t got = file < 0 ? -1 : read(file, ret_token, CONNECT_TOKEN_SIZE - 1);
    if (got <= 0)
        return false;
    ret_token[got] = '\0';
    return true;
}

int connect_socket_path(const struct hooks *hooks, const struct hook_run *asked, const char *name,
                        char ret_path[PATH_SIZE], struct err *err)
{
    struct hooks_paths paths = {.shared = "/alloc"};
    int code = 0;

    if (hooks_driver(hooks, asked->task->driver)->isolation == ISOLATION_NONE)
        code = hooks_paths(hooks, asked->alloc->id, asked->task->name, &paths, err);
    if (code == 0 && !text_format(ret_path, PATH_SIZE, "%s/tmp/%s", paths.shared, name))
        code = err_set(err, ERR_LIMIT, "the path of %s is too long", name);
    return code;
}

bool connect_is_given(const struct task_spec *task, const char *name)
{
    for (size_t i = 0; i < task->env.count; i++) {
        if (text_equal(task->env.items[i].key, name))
            return true;
    }
    return false;
}

int connect_set(const struct hook_request *request, enum task_hook hook, const char *name,
                const char *value, struct err *err)
{
    int code = results_set(request->results, (uint8_t)hook, RESULT_ENV, name, value,
                           (uint32_t)strlen(value));

    return code == 0 ? 0 : err_set(err, code, "the variable %.80s is too long", name);
}

/* --- sockets --- */

static bool offers(const struct alloc_spec *alloc, bool native)
{
    for (size_t i = 0; i < alloc->services_count; i++) {
        const struct spec_connect *connect = alloc->services[i].connect;

        if (connect != NULL && connect->native == native)
            return true;
    }
    return false;
}

bool hooks_wants_grpc(const struct alloc_spec *alloc)
{
    return spec_has_namespace(alloc) && offers(alloc, false);
}

bool hooks_wants_http(const struct alloc_spec *alloc)
{
    return spec_has_namespace(alloc) && offers(alloc, true);
}

int hooks_open_shared_tmp(const struct hooks *hooks, const char *alloc_id, int *ret_fd,
                          struct err *err)
{
    const struct hook_request request = {
        .alloc_dir = hooks->alloc_dir, .alloc = alloc_id, .task = ""};
    scoped_fd int root = -1, shared = -1;
    int code = hooks_open_root(&request, &root, err);

    if (code == 0)
        code = hooks_directory_open(root, "alloc", "alloc", &shared, err);
    return code == 0 ? hooks_directory_open(shared, "tmp", "alloc/tmp", ret_fd, err) : code;
}
