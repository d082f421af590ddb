/*
 * Hook connect_native: what a task that is in the mesh by itself reaches Consul by.
 *
 * Variables that the job gives it stay as they are.  Its token is no result of the hook, which the
 * journal would keep: launch.c reads it from its file.
 */
#include "hooks/connect/part.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

enum { FILE_BYTES_MAX = 256 * 1024 };

static void put(json_t *to, const struct task_spec *task, const char *name, const char *value)
{
    if (value[0] != '\0' && !connect_is_given(task, name))
        check(json_object_set_new(to, name, json_string(value)) == 0);
}

/* A file of TLS that the task gets, NAME in its secrets, and VARIABLE, which says where. */
static int put_file(const struct hooks *hooks, const struct hook_run *asked, json_t *order,
                    const char *from, const char *name, const char *variable, struct err *err)
{
    bool host = hooks_driver(hooks, asked->task->driver)->isolation == ISOLATION_NONE;
    struct hooks_paths paths = {.secrets = "/secrets"};
    char path[PATH_SIZE];
    int code = 0;

    if (from[0] == '\0' || !hooks->connect->shares_files)
        return 0;
    if (host)
        code = hooks_paths(hooks, asked->alloc->id, asked->task->name, &paths, err);
    if (code == 0)
        code = path_join(path, paths.secrets, name);
    if (code != 0)
        return code;
    check(json_object_set_new(json_object_get(order, "Files"), name, json_string(from)) == 0);
    put(json_object_get(order, "Env"), asked->task, variable, path);
    return 0;
}

static int put_address(const struct hooks *hooks, const struct hook_run *asked, json_t *env,
                       struct err *err)
{
    const struct hooks_connect *connect = hooks->connect;
    char path[PATH_SIZE], address[PATH_SIZE + 8];

    if (!hooks_wants_http(asked->alloc)) {
        put(env, asked->task, "CONSUL_HTTP_ADDR", connect->address);
        return 0;
    }
    int code = connect_socket_path(hooks, asked, HOOKS_HTTP_SOCKET, path, err);
    if (code != 0)
        return code;
    (void)text_format(address, sizeof(address), "unix://%s", path); /* fits */
    put(env, asked->task, "CONSUL_HTTP_ADDR", address);
    if (connect->ssl)
        put(env, asked->task, "CONSUL_TLS_SERVER_NAME", "localhost");
    return 0;
}

int hooks_native_begin(const struct hooks *hooks, const struct hook_run *asked, char **ret_order,
                       struct err *err)
{
    const struct hooks_connect *connect = hooks->connect;

    if (connect == NULL)
        return err_set(err, ERR_UNSUPPORTED, "this agent has no Consul");
    json_t *order = json_pack("{s:{}, s:{}}", "Env", "Files"), *env = json_object_get(order, "Env");
    int code =
        put_file(hooks, asked, order, connect->ca_file, "consul_ca_file.pem", "CONSUL_CACERT", err);

    if (code == 0)
        code = put_file(hooks, asked, order, connect->cert_file, "consul_cert_file.pem",
                        "CONSUL_CLIENT_CERT", err);
    if (code == 0)
        code = put_file(hooks, asked, order, connect->key_file, "consul_key_file.pem",
                        "CONSUL_CLIENT_KEY", err);
    if (code == 0 && connect->shares_files) {
        put(env, asked->task, "CONSUL_HTTP_SSL", connect->ssl ? "true" : "false");
        put(env, asked->task, "CONSUL_HTTP_SSL_VERIFY", connect->verifies ? "true" : "false");
    }
    if (code == 0)
        code = put_address(hooks, asked, env, err);
    if (code == 0)
        *ret_order = json_dumps(order, JSON_COMPACT);
    json_decref(order);
    check(code != 0 || *ret_order != NULL);
    return code;
}

static int copy_file(const struct hook_request *request, const char *from, const char *name,
                     struct err *err)
{
    char *bytes;
    size_t length;
    int code = file_read(from, FILE_BYTES_MAX, &bytes, &length, err);

    if (code != 0)
        return err_wrap(err, "failed to copy Consul TLS certificates");
    code = connect_write_secret(request, name, bytes, length, err);
    explicit_bzero(bytes, length);
    free(bytes);
    return code;
}

int hooks_native(const struct hook_request *request, struct err *err)
{
    json_t *order = json_loads(request->order, 0, NULL), *value;
    const char *name;
    int code = 0;

    check(order != NULL); /* hooks_native_begin has made it */
    json_object_foreach(json_object_get(order, "Files"), name, value)
    {
        if (code == 0)
            code = copy_file(request, json_string_value(value), name, err);
    }
    json_object_foreach(json_object_get(order, "Env"), name, value)
    {
        if (code == 0)
            code =
                connect_set(request, TASK_HOOK_CONNECT_NATIVE, name, json_string_value(value), err);
    }
    json_decref(order);
    return code;
}
