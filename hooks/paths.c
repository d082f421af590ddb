/* Where things of an alloc are, and what kind of drivers there are. */
#include "hooks/part.h"

#include "spec/names.h"

/* What hooks and environment must know of a driver before it is asked: Nomad's capability
 * FSIsolation, its default for user.checked_drivers, and the user that the driver falls back to
 * (v1.1.2, drivers/ and client/config/config.go). */
static const struct hooks_driver known_drivers[] = {
    {"raw_exec", ISOLATION_NONE, false, ""},    {"exec", ISOLATION_CHROOT, true, "nobody"},
    {"java", ISOLATION_CHROOT, true, "nobody"}, {"docker", ISOLATION_IMAGE, false, ""},
    {"qemu", ISOLATION_IMAGE, true, ""},
};

const struct hooks_driver *hooks_driver(const char *name)
{
    static const struct hooks_driver other = {"", ISOLATION_NONE, false, ""};

    for (size_t i = 0; i < COUNT_OF(known_drivers); i++) {
        if (text_equal(known_drivers[i].name, name))
            return &known_drivers[i];
    }
    return &other;
}

static bool put(char to[512], const char *directory, const char *name)
{
    return text_format(to, 512, "%s/%s", directory, name);
}

int hooks_paths(const struct hooks *hooks, const char *alloc_id, const char *task,
                struct hooks_paths *ret_paths, struct err *err)
{
    struct hooks_paths paths = {0};

    if (!uuid_is_valid(alloc_id))
        return err_set(err, ERR_INVALID, "an alloc's id cannot be a directory's name");
    if (task != NULL && spec_task_name_fault(task) != NULL)
        return err_set(err, ERR_INVALID, "a task's name cannot be a directory's name in its alloc");

    bool fits = put(paths.root, hooks->alloc_dir, alloc_id) &&
                put(paths.shared, paths.root, "alloc") && put(paths.logs, paths.shared, "logs");
    if (fits && task != NULL)
        fits = put(paths.task, paths.root, task) && put(paths.local, paths.task, "local") &&
               put(paths.secrets, paths.task, "secrets");
    if (!fits)
        return err_set(err, ERR_LIMIT, "the path of an alloc directory is too long");
    *ret_paths = paths;
    return 0;
}
