/*
 * One instance: finding it, and where it has everything.
 *
 * They are few: a list is walked.  Paths are made of names that come from journals and jobs, so
 * that each is looked at here once more.
 */
#include "csi/plugins/part.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

struct instance *csi_instance_find(struct csi_plugins *plugins, const char *alloc, const char *task)
{
    struct instance *instance = plugins->instances;

    while (instance != NULL &&
           (!text_equal(instance->alloc, alloc) || !text_equal(instance->task, task)))
        instance = instance->next;
    return instance;
}

static bool is_directory_name(const char *name)
{
    return name[0] != '\0' && name[0] != '.' && strchr(name, '/') == NULL && strlen(name) < 256;
}

int csi_plugins_paths(const struct csi_plugins *plugins, const char *alloc, const char *plugin,
                      enum plugin_type type, struct csi_paths *ret_paths, struct err *err)
{
    const char *role = type == PLUGIN_CSI_CONTROLLER ? "controller" : "node";
    bool fits;

    if (!is_directory_name(alloc) || !is_directory_name(plugin))
        return err_set(err, ERR_INVALID,
                       "\"%.100s\" of alloc %.40s cannot be a plugin: no directory has such a name",
                       plugin, alloc);
    fits =
        text_format(ret_paths->root, PATH_SIZE, "%s/csi/%s/%s", plugins->state_dir, role, plugin) &&
        text_format(ret_paths->directory, PATH_SIZE, "%s/csi/plugins/%s", plugins->state_dir,
                    alloc) &&
        text_format(ret_paths->socket, PATH_SIZE, "%s/csi.sock", ret_paths->directory);
    return fits ? 0 : err_set(err, ERR_LIMIT, "the paths of plugin %.100s are too long", plugin);
}

/* A socket's path is short, a data directory's need not be: then it is reached through a
 * descriptor of its directory. */
int csi_instance_reach(struct instance *instance, struct err *err)
{
    char own[CSI_SOCKET_MAX + 1];

    if (instance->client != NULL)
        return 0;
    if (!text_copy(own, sizeof(own), instance->paths.socket)) {
        instance->directory_fd =
            open(instance->paths.directory, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (instance->directory_fd < 0)
            return err_os(err, ERR_IO, errno, "cannot open %s", instance->paths.directory);
        check(text_format(own, sizeof(own), "/proc/self/fd/%d/csi.sock", instance->directory_fd));
    }
    instance->client = csi_client_new(instance->plugins->config.loop, instance->plugin, own, err);
    check(instance->client != NULL); /* both fit */
    check(text_copy(instance->socket, sizeof(instance->socket), own));
    return 0;
}
