/* The room itself, opened and closed. */
#include "drivers/part.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int open_state(struct drivers *drivers, const char *state_dir, struct err *err)
{
    char path[PATH_SIZE], shims[CGROUP_NAME_SIZE];
    int code = path_join(path, state_dir, "shim");

    if (code != 0)
        return err_set(err, code, "the state directory's path is too long");
    code = directory_make_all(path, 0700, err);
    if (code != 0)
        return code;
    drivers->shim_dir = realpath(path, NULL); /* as links in /proc name it */
    if (drivers->shim_dir == NULL)
        return err_os(err, err_from_errno(errno), errno, "cannot find %s", path);
    drivers->shim_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (drivers->shim_fd < 0)
        return err_os(err, err_from_errno(errno), errno, "cannot open %s", path);
    code = proc_boot_id(drivers->boot_id, err);
    if (code != 0)
        return code;
    code = parent_take(drivers, err);
    if (code != 0)
        return code;
    shims_cgroup(drivers, shims);
    code = cgroup_create(drivers->config.cgroup_mode, shims, err);
    if (code == 0)
        code = generations_open(drivers, err);
    return code != 0 ? code : images_open(drivers, err);
}

struct drivers *drivers_new(const struct drivers_config *config, struct err *err)
{
    struct drivers *drivers = calloc(1, sizeof(*drivers));

    check(drivers != NULL);
    check(config->on_exit != NULL);
    check(config->shim_path[0] == '/');
    drivers->config = *config;
    drivers->opened_ms = loop_now_ms();
    drivers->shim_fd = drivers->images_fd = -1;
    drivers->nursery = (struct nursery){.fd = -1, .pidfd = -1};
    check(text_copy(drivers->node_mark, sizeof(drivers->node_mark), config->node_mark));
    check(strspn(drivers->node_mark, "0123456789abcdef") == strlen(drivers->node_mark));
    (void)text_copy(drivers->cgroup_parent, CGROUP_PARENT_SIZE, CGROUP_PARENT_DEFAULT); /* fits */
    drivers->shim_path = strdup(config->shim_path);
    check(drivers->shim_path != NULL);
    calls_init(&drivers->due);
    if (open_state(drivers, config->state_dir, err) != 0) {
        drivers_free(drivers);
        return NULL;
    }
    manager_open(drivers);
    return drivers;
}

/* Calls still under way, and completions not yet delivered, are dropped. */
void drivers_free(struct drivers *drivers)
{
    char shims[CGROUP_NAME_SIZE];

    if (drivers == NULL)
        return;
    bool making = drivers->births > 0;
    sessions_close(drivers);
    strays_close(drivers);
    manager_close(drivers);
    generations_close(drivers);
    runs_close(drivers);
    loads_close(drivers);
    helpers_close(drivers);
    images_close(drivers);
    share_close(drivers);
    table_close(drivers);
    calls_drop(&drivers->due);
    io_timer_stop(&drivers->deliver);
    io_timer_stop(&drivers->begin);
    nursery_close(drivers);
    shims_cgroup(drivers, shims);
    if (!making) /* it stays while shims live in it, too */
        (void)cgroup_remove(drivers->config.cgroup_mode, shims, NULL);
    if (drivers->shim_fd >= 0)
        (void)close(drivers->shim_fd); /* only names */
    free(drivers->shim_dir);
    free(drivers->shim_path);
    free(drivers);
}
