/* Where things of an alloc are, and what kind of driver a task has. */
#include "hooks/part.h"

#include "spec/names.h"

#include <string.h>

const struct spec_driver *hooks_driver(const struct hooks *hooks, const char *name)
{
    static const struct spec_driver other = {.name = "", .isolation = ISOLATION_NONE, .user = ""};
    const struct spec_driver *driver = hooks->driver(name);

    return driver != NULL ? driver : &other;
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

/* PATH in DIRECTORY, from there on; NULL if it is not in it. */
static const char *beneath(const char *path, const char *directory)
{
    size_t length = strlen(directory);

    if (!text_starts_with(path, directory) || (path[length] != '/' && path[length] != '\0'))
        return NULL;
    return path + length;
}

const char *hooks_place(const char *path, const char *task, const char *shared)
{
    const char *inside = *task == '\0' ? NULL : beneath(path, task);

    if (text_goes_up(path) || beneath(path, shared) != NULL)
        return NULL;
    path = inside != NULL ? inside : path;
    return path + strspn(path, "/");
}
