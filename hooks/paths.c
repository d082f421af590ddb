/* Where things of an alloc are, and what kind of driver a task has. */
#include "hooks/part.h"

#include "spec/names.h"

#include <string.h>

const struct spec_driver *hooks_driver(const struct hooks *hooks, const char *name)
{
    static const struct spec_driver other = {.name = "", .isolation = ISOLATION_NONE, .user = ""};
    /* A task whose specification is lost has no name of one. */
    const struct spec_driver *driver = name == NULL ? NULL : hooks->driver(hooks->driver_ctx, name);

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

/* FIRST and PATH from there on, as one path without "." and ".."; NULL: it goes up beyond. */
static char *resolve(struct arena *arena, const char *first, const char *path)
{
    size_t length = strlen(first), size = length + strlen(path) + 2;
    char *to = arena_new(arena, size);

    memcpy(to, first, length);
    while (*path != '\0') {
        size_t part = strcspn(path, "/");

        if (part == 2 && memcmp(path, "..", 2) == 0) {
            if (length == 0)
                return NULL;
            while (length > 0 && to[length - 1] != '/')
                length--;
            length -= length > 0; /* the slash */
        } else if (part > 0 && !(part == 1 && *path == '.')) {
            if (length > 0)
                to[length++] = '/';
            memcpy(to + length, path, part);
            length += part;
        }
        path += part + (path[part] == '/');
    }
    check(length < size);
    to[length] = '\0';
    return to;
}

static const char *skip_slash(const char *path)
{
    return path + (*path == '/');
}

bool hooks_place(const struct hooks_view *view, const char *path, struct arena *arena,
                 struct hooks_place *ret_place)
{
    bool isolated = *view->task == '\0';
    const char *shared = beneath(path, view->shared);
    const char *own = isolated || shared != NULL ? NULL : beneath(path, view->task);
    const char *whole = resolve(arena, shared != NULL ? "alloc" : view->name,
                                shared != NULL ? shared
                                : own != NULL  ? own
                                               : path);

    if (whole == NULL)
        return false;
    own = beneath(whole, view->name);
    shared = beneath(own == NULL ? whole : isolated ? skip_slash(own) : "", "alloc");
    if (own == NULL && shared == NULL)
        return false;
    *ret_place = (struct hooks_place){.path = skip_slash(shared != NULL ? shared : own),
                                      .shared = shared != NULL};
    return true;
}
