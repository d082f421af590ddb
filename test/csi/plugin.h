/* A plugin for tests: test/csi/plugin.py on a socket of its own, and a client of it. */
#ifndef CAIRN_TEST_CSI_PLUGIN_H
#define CAIRN_TEST_CSI_PLUGIN_H

#include "csi/csi.h"
#include "test/io/scratch.h"

#include <signal.h>
#include <sys/wait.h>

enum { SAID_SIZE = 8192, SKIPPED = 77 };

struct plugin_process {
    struct scratch *scratch;
    char socket[PATH_SIZE];
    const char *directory; /* of its volumes, NULL: it has none */
    pid_t pid;
    struct loop *loop;
    struct csi_client *client;
    unsigned awaited; /* loop_run ends when as many answers have come */
    void (*on_answer)(void *ctx, const struct csi_result *result); /* while it can be read */
    struct csi_result last;                                        /* without its answer */
    bool answered;
    char said[SAID_SIZE];
};

/* Runs the plugin; SKIPPED, with its last words printed, if it cannot run here. */
static inline int plugin_run(struct plugin_process *plugin)
{
    char line[512] = "";
    int pipes[2];

    assert_return_code(pipe2(pipes, O_CLOEXEC), 0);
    plugin->pid = fork();
    assert_true(plugin->pid >= 0);
    if (plugin->pid == 0) {
        (void)dup2(pipes[1], 1);
        (void)execl("/usr/bin/python3", "/usr/bin/python3", "test/csi/plugin.py", plugin->socket,
                    plugin->directory, NULL);
        _exit(127);
    }
    close(pipes[1]);
    for (size_t used = 0; used < sizeof(line) - 1 && strchr(line, '\n') == NULL;) {
        ssize_t got = read(pipes[0], line + used, sizeof(line) - 1 - used);
        if (got <= 0)
            break;
        used += (size_t)got;
    }
    close(pipes[0]);
    if (strcmp(line, "ready\n") == 0)
        return 0;
    int status = 0;
    assert_int_equal(waitpid(plugin->pid, &status, 0), plugin->pid);
    plugin->pid = 0;
    print_message("skipped: %s", line[0] != '\0' ? line : "no /usr/bin/python3\n");
    return WIFEXITED(status) && (WEXITSTATUS(status) == SKIPPED || WEXITSTATUS(status) == 127)
               ? SKIPPED
               : -1;
}

static inline void plugin_end(struct plugin_process *plugin)
{
    if (plugin->pid == 0)
        return;
    (void)kill(plugin->pid, SIGKILL); /* it may have ended */
    assert_int_equal(waitpid(plugin->pid, NULL, 0), plugin->pid);
    plugin->pid = 0;
}

/* What becomes of the next call: see plugin.py. */
static inline void plugin_next(struct plugin_process *plugin, const char *command)
{
    char path[PATH_SIZE];

    assert_true(text_format(path, sizeof(path), "%s.next", plugin->socket));
    put_file(path, command);
}

/* What the last call has asked, as JSON. */
static inline const char *plugin_heard(struct plugin_process *plugin)
{
    char path[PATH_SIZE];
    char *bytes = NULL;
    size_t length = 0;

    assert_true(text_format(path, sizeof(path), "%s.last", plugin->socket));
    if (file_read(path, sizeof(plugin->said) - 1, &bytes, &length, &plugin->scratch->err) != 0)
        return "nothing";
    memcpy(plugin->said, bytes, length + 1);
    free(bytes);
    return plugin->said;
}

static inline void plugin_answered(void *ctx, const struct csi_result *result)
{
    struct plugin_process *plugin = ctx;

    plugin->last = *result;
    plugin->last.answer = NULL;
    plugin->answered = result->answer != NULL;
    if (plugin->on_answer != NULL && result->answer != NULL)
        plugin->on_answer(plugin, result);
    assert_true(plugin->awaited > 0);
    if (--plugin->awaited == 0)
        loop_stop(plugin->loop);
}

static inline struct csi_operation *plugin_ask(struct plugin_process *plugin,
                                               struct csi_request request)
{
    struct err err = {0};
    struct csi_operation *operation =
        csi_start(plugin->client, &request, plugin_answered, plugin, &err);

    if (operation == NULL)
        fail_msg("%s", err.text);
    plugin->awaited++;
    return operation;
}

static inline void plugin_ask_and_wait(struct plugin_process *plugin, struct csi_request request)
{
    (void)plugin_ask(plugin, request);
    loop_run(plugin->loop);
    assert_int_equal(plugin->awaited, 0);
}

static inline int plugin_set_up(void **state)
{
    struct plugin_process *plugin = calloc(1, sizeof(*plugin));
    struct err err = {0};
    void *scratch;

    assert_non_null(plugin);
    (void)scratch_make(&scratch);
    plugin->scratch = scratch;
    plugin->loop = loop_new();
    assert_int_equal(path_join(plugin->socket, plugin->scratch->path, "csi.sock"), 0);
    plugin->client = csi_client_new(plugin->loop, "hp", plugin->socket, &err);
    assert_non_null(plugin->client);
    *state = plugin;
    return 0;
}

static inline int plugin_set_up_and_run(void **state)
{
    (void)plugin_set_up(state);
    return plugin_run(*state);
}

static inline int plugin_tear_down(void **state)
{
    struct plugin_process *plugin = *state;
    void *scratch = plugin->scratch;

    csi_client_free(plugin->client);
    assert_int_equal(plugin->awaited, 0);
    loop_free(plugin->loop);
    plugin_end(plugin);
    free(plugin);
    return scratch_remove(&scratch);
}

#endif
