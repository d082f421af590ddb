/*
 * Hook csi_plugin_supervisor: what a task needs that is a storage plugin.
 *
 * Follows nomad v2.0.5 client/allocrunner/taskrunner/plugin_supervisor_hook.go.  Before each start
 * its directories are there, what an earlier process left as its socket is not, and the task has
 * them mounted, if it has a root of its own; one that has not gets the path of the socket on the
 * host.  Whether it is well is asked by others, who are told when it runs, when it has ended and
 * when it is over.
 */
#include "hooks/part.h"

#include "io/host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DIRECTORY_MODE = 0700, ORDER_SIZE = 2 * PATH_SIZE + 1024 };

static const char endpoint[] = "CSI_ENDPOINT";

/* --- what is asked of the pool: a line each, and the last two are empty without a root of its own
 * --- */

struct order {
    char text[ORDER_SIZE];
    const char *root, *directory; /* on the host */
    const char *socket;           /* as its environment tells it, "": it tells something else */
    const char *mount_dir, *base; /* in the task */
};

static bool take_apart(const char *text, struct order *order)
{
    char *at = order->text;

    if (!text_copy(order->text, sizeof(order->text), text))
        return false;
    order->root = strsep(&at, "\n");
    order->directory = strsep(&at, "\n");
    order->socket = strsep(&at, "\n");
    order->mount_dir = strsep(&at, "\n");
    order->base = at;
    return at != NULL;
}

static bool sets_endpoint(const struct task_spec *task)
{
    for (size_t i = 0; i < task->env.count; i++) {
        if (text_equal(task->env.items[i].key, endpoint))
            return true;
    }
    return false;
}

static int place(const struct hooks *hooks, const char *alloc, const struct spec_csi_plugin *plugin,
                 char root[PATH_SIZE], char directory[PATH_SIZE], struct err *err)
{
    if (hooks->plugins == NULL)
        return err_set(err, ERR_UNSUPPORTED, "this agent has no CSI plugins");
    int code = hooks->plugins->place(hooks->plugins->ctx, alloc, plugin, root, directory, err);
    if (code == 0 && (strchr(root, '\n') != NULL || strchr(directory, '\n') != NULL))
        code = err_set(err, ERR_INVALID, "the path of a plugin has a newline");
    return code;
}

int hooks_csi_plugin_begin(const struct hooks *hooks, const struct hook_run *asked,
                           char **ret_order, struct err *err)
{
    const struct spec_csi_plugin *plugin = asked->task->csi_plugin;
    bool own = hooks_driver(hooks, asked->task->driver)->isolation != ISOLATION_NONE;
    char root[PATH_SIZE], directory[PATH_SIZE];
    int code = plugin == NULL ? err_set(err, ERR_CORRUPT, "the task is no CSI plugin")
                              : place(hooks, asked->alloc->id, plugin, root, directory, err);

    if (code != 0)
        return code;
    *ret_order = malloc(ORDER_SIZE);
    check(*ret_order != NULL);
    bool fits =
        text_format(*ret_order, ORDER_SIZE, "%s\n%s\n%s%s%s\n%s\n%s", root, directory,
                    sets_endpoint(asked->task) ? "" : "unix://",
                    sets_endpoint(asked->task) ? ""
                    : own                      ? plugin->mount_dir
                                               : directory,
                    sets_endpoint(asked->task) ? "" : "/csi.sock", own ? plugin->mount_dir : "",
                    own ? plugin->stage_publish_base_dir : "");
    return fits ? 0 : err_set(err, ERR_LIMIT, "the paths of the plugin are too long");
}

int hooks_csi_plugin_removed(const struct hooks *hooks, const struct hook_run *asked,
                             char **ret_order, struct err *err)
{
    char root[PATH_SIZE] = "", directory[PATH_SIZE];

    if (hooks->plugins != NULL) /* which hears of it, whatever becomes of the directory */
        hooks->plugins->removed(hooks->plugins->ctx, asked->alloc->id, asked->task->name);
    int code = place(hooks, asked->alloc->id, NULL, root, directory, err);
    if (code != 0)
        return code;
    *ret_order = strdup(directory);
    check(*ret_order != NULL);
    return 0;
}

/* --- before each start --- */

static int add_mount(const struct hook_request *request, const char *host, const char *inside,
                     const char *propagation, struct err *err)
{
    char text[PATH_SIZE + 32];

    check(text_format(text, sizeof(text), "%s\trw\t%s", host, propagation));
    int code = results_set(request->results, TASK_HOOK_CSI_PLUGIN, RESULT_MOUNT, inside, text,
                           (uint32_t)strlen(text));
    return code == 0 ? 0 : err_set(err, code, "too many mounts with long paths");
}

/* Nobody of this task runs: whoever listened there was an earlier one. */
static int clear_socket(const char *directory, struct err *err)
{
    char path[PATH_SIZE];
    int code = path_join(path, directory, "csi.sock");

    if (code != 0)
        return err_set(err, code, "the path of the plugin's socket is too long");
    if (unlink(path) != 0 && errno != ENOENT)
        return err_os(err, err_from_errno(errno), errno, "cannot remove %s", path);
    return 0;
}

/* It is the task's: who makes a socket there is not root, as a rule, where a driver isolates. */
static int give(const struct hook_request *request, const char *directory, struct err *err)
{
    struct host_user owner;

    if (!request->privileged || *request->user == '\0')
        return 0;
    int code = host_user_find(request->user, &owner, err);
    return code == 0 ? directory_make(directory, DIRECTORY_MODE, owner.uid, owner.gid, err) : code;
}

int hooks_csi_plugin_prepare(const struct hook_request *request, struct err *err)
{
    struct order order;

    check(take_apart(request->order, &order));
    int code = directory_make_all(order.root, DIRECTORY_MODE, err);
    if (code == 0)
        code = directory_make_all(order.directory, DIRECTORY_MODE, err);
    if (code == 0)
        code = give(request, order.directory, err);
    if (code == 0)
        code = clear_socket(order.directory, err);
    if (code == 0 && *order.socket != '\0' &&
        results_set(request->results, TASK_HOOK_CSI_PLUGIN, RESULT_ENV, endpoint, order.socket,
                    (uint32_t)strlen(order.socket)) != 0)
        code = err_set(err, ERR_LIMIT, "the path of the plugin's socket is too long");
    if (code != 0 || *order.mount_dir == '\0')
        return code;
    code = add_mount(request, "/dev", "/dev", "private", err);
    if (code == 0)
        code = add_mount(request, order.directory, order.mount_dir, "bidirectional", err);
    if (code == 0)
        code = add_mount(request, order.root, order.base, "bidirectional", err);
    return code;
}

/* --- afterwards --- */

int hooks_csi_plugin_started(const struct hook_request *request, struct err *err)
{
    const struct hooks_plugins *plugins = request->hooks->plugins;

    (void)err; /* who is told does what is to be done */
    if (plugins != NULL)
        plugins->started(plugins->ctx, request->asked->alloc, request->asked->task);
    return 0;
}

int hooks_csi_plugin_ended(const struct hook_request *request, struct err *err)
{
    const struct hooks_plugins *plugins = request->hooks->plugins;

    (void)err; /* likewise */
    if (plugins != NULL)
        plugins->ended(plugins->ctx, request->alloc, request->task);
    return 0;
}

int hooks_csi_plugin_remove(const struct hook_request *request, struct err *err)
{
    return tree_remove(AT_FDCWD, request->order, err);
}
