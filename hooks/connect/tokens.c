/* The tokens that an alloc has of Consul: which is whose, and where they are kept. */
#include "hooks/connect/part.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum {
    FILE_BYTES_MAX = (SPEC_SERVICES_MAX + SPEC_TASKS_MAX) * (TOKEN_KEY_SIZE + CONNECT_TOKEN_SIZE),
    TOKENS_MODE = 0600,
};

static const char file_name[] = ".consul_tokens"; /* no task can be called so */

/* Bounded by what was written there. */
static char *read_file(int directory, size_t *ret_length)
{
    scoped_fd int fd = beneath_open(directory, file_name, O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0);
    char *bytes = fd < 0 ? NULL : malloc(FILE_BYTES_MAX);
    ssize_t got = 0;

    check(fd < 0 || bytes != NULL);
    *ret_length = 0;
    while (fd >= 0 && *ret_length < FILE_BYTES_MAX &&
           (got = read(fd, bytes + *ret_length, FILE_BYTES_MAX - *ret_length)) > 0)
        *ret_length += (size_t)got;
    return bytes;
}

json_t *connect_tokens_read(const struct hook_request *request)
{
    scoped_fd int root = -1;
    struct err err = {0};
    json_t *tokens = NULL;
    size_t length;

    if (hooks_open_root(request, &root, &err) == 0) {
        char *bytes = read_file(root, &length);

        if (bytes != NULL) {
            tokens = json_loadb(bytes, length, 0, NULL);
            explicit_bzero(bytes, length);
            free(bytes);
        }
    }
    if (!json_is_object(tokens)) { /* nothing was had yet, or it is cut: then all is had anew */
        json_decref(tokens);
        tokens = json_object();
        check(tokens != NULL);
    }
    return tokens;
}

int connect_tokens_write(const struct hook_request *request, const json_t *tokens, struct err *err)
{
    const struct stat wanted = {.st_mode = TOKENS_MODE};
    scoped_fd int root = -1;
    int code = hooks_open_root(request, &root, err);

    if (code != 0)
        return code;
    if (json_object_size(tokens) == 0)
        return unlinkat(root, file_name, 0) == 0 || errno == ENOENT
                   ? 0
                   : err_os(err, ERR_IO, errno, "cannot remove the file of its tokens");
    char *text = json_dumps(tokens, JSON_COMPACT);
    check(text != NULL);
    code = hooks_file_replace(root, file_name, text, strlen(text), &wanted, false, err);
    explicit_bzero(text, strlen(text));
    free(text);
    return code;
}

void connect_tokens_free(json_t *tokens)
{
    const char *key;
    json_t *value;

    json_object_foreach(tokens, key, value)
        explicit_bzero((char *)(uintptr_t)json_string_value(value), json_string_length(value));
    json_decref(tokens);
}

void connect_task_key(const char *task, char ret_key[TOKEN_KEY_SIZE])
{
    check(text_format(ret_key, TOKEN_KEY_SIZE, "%s/%s", SPEC_CONSUL_IDENTITY, task));
}

bool connect_token_find(const struct hooks *hooks, const char *alloc, const char *key,
                        char ret_token[CONNECT_TOKEN_SIZE])
{
    const struct hook_request request = {.alloc_dir = hooks->alloc_dir, .alloc = alloc, .task = ""};
    json_t *tokens = connect_tokens_read(&request);
    const char *token = json_string_value(json_object_get(tokens, key));
    bool found = token != NULL && text_copy(ret_token, CONNECT_TOKEN_SIZE, token);

    connect_tokens_free(tokens);
    return found;
}

bool hooks_service_token(const struct hooks *hooks, const char *alloc_id,
                         const struct spec_service *service, char ret_token[CONNECT_TOKEN_SIZE])
{
    return service->identity[0] != '\0' &&
           connect_token_find(hooks, alloc_id, service->identity, ret_token);
}

bool hooks_task_token(const struct hooks *hooks, const char *alloc, const char *task,
                      char ret_token[CONNECT_TOKEN_SIZE])
{
    char key[TOKEN_KEY_SIZE];

    connect_task_key(task, key);
    return connect_token_find(hooks, alloc, key, ret_token);
}

/* --- the file of a task --- */

/* The order is the token. */
int hooks_consul_token_begin(const struct hooks *hooks, const struct hook_run *asked,
                             char **ret_order, struct err *err)
{
    char token[CONNECT_TOKEN_SIZE];

    if (!hooks_task_token(hooks, asked->alloc->id, asked->task->name, token))
        return err_set(err, ERR_GONE, "the task's token of Consul is lost");
    *ret_order = strdup(token);
    check(*ret_order != NULL);
    explicit_bzero(token, sizeof(token));
    return 0;
}

int hooks_consul_token_write(const struct hook_request *request, struct err *err)
{
    return connect_write_secret(request, "consul_token", request->order, strlen(request->order),
                                err);
}
