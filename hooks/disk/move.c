/*
 * Taking over what is here: `alloc/data`, and `local` of each task that both have.
 *
 * Each is one rename within the file system that holds all allocs, so a crash leaves it with one of
 * the two, whole, and the next attempt finds it there.  One that failed half-way may have left part
 * of the disk with the alloc before it: its successor is given both, the nearest first, and takes
 * from each what it has not found yet.  All of them have ended, but a rename of theirs may be late:
 * it is looked for twice.
 *
 * Nomad starts with an empty disk when this fails; here the alloc fails, and the data stays where
 * it is for the next one.
 */
#include "hooks/directory.h"
#include "hooks/disk/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* It may always be tried again: the data is still there. */
static int fail(struct err *err, int number, const char *doing, const char *shown)
{
    int code = err_os(err, err_from_errno(number), number, "cannot %s %s", doing, shown);

    err->recoverable = true;
    return code;
}

/* One directory, from one place to another; both are places. */
struct moving {
    int from, to;
    const char *name, *shown;
};

/* What is not there, or no directory, is not taken; what is here already stays. */
static int move(const struct moving *moving, struct err *err)
{
    struct stat status;

    if (fstatat(moving->from, moving->name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno == ENOENT)
            return 0;
    } else if (!S_ISDIR(status.st_mode) ||
               renameat(moving->from, moving->name, moving->to, moving->name) == 0 ||
               errno == ENOENT || errno == ENOTEMPTY || errno == EEXIST) {
        return 0;
    }
    return fail(err, errno, "take over", moving->shown);
}

/* Opens NAME in PARENT as a place; leaves RET_FD alone if there is no such directory. */
static int open_if_there(int parent, const char *name, int *ret_fd, struct err *err)
{
    int code = hooks_directory_open(parent, name, name, ret_fd, err);

    return code == ERR_EXISTS || (code != 0 && err->os == ENOENT) ? 0 : code;
}

static int move_data(int from_root, int to_root, struct err *err)
{
    scoped_fd int from = -1, to = -1;
    int code = open_if_there(from_root, "alloc", &from, err);

    if (code == 0 && from >= 0)
        code = hooks_directory_open(to_root, "alloc", "alloc", &to, err);
    if (code == 0 && from >= 0)
        code = move(&(struct moving){from, to, "data", "alloc/data"}, err);
    return code;
}

/* The task's own directory has no mode yet: hook task_dir finishes it. */
static int move_local(int from_root, int to_root, const char *task, struct err *err)
{
    scoped_fd int from = -1, to = -1;
    char shown[SPEC_NAME_SIZE + 16];
    int code = open_if_there(from_root, task, &from, err);

    if (code != 0 || from < 0)
        return code;
    (void)text_format(shown, sizeof(shown), "%s/local", task); /* only shown */
    if (mkdirat(to_root, task, 0) != 0 && errno != EEXIST)
        return fail(err, errno, "make", task);
    code = hooks_directory_open(to_root, task, task, &to, err);
    return code == 0 ? move(&(struct moving){from, to, "local", shown}, err) : code;
}

int disk_move(const struct hook_request *request, int from, int to, struct err *err)
{
    int code = move_data(from, to, err);

    for (const char *task = request->tasks; code == 0 && *task != '\0'; task += strlen(task) + 1)
        code = move_local(from, to, task, err);
    return code;
}

/* What there is of the alloc FROM. */
static int take(const struct hook_request *request, int root, const char *from, struct err *err)
{
    const struct hook_request other = {.alloc_dir = request->alloc_dir, .alloc = from};
    scoped_fd int source = -1;
    int code = hooks_open_root(&other, &source, err);

    if (code != 0)
        return code == ERR_GONE ? 0 : code;
    return disk_move(request, source, root, err);
}

int disk_take_over(const struct hook_request *request, int root, struct err *err)
{
    int code = 0;

    for (int look = 0; code == 0 && look < 2; look++) {
        const char *from = request->disk_from;

        for (; code == 0 && *from != '\0'; from += strlen(from) + 1)
            code = take(request, root, from, err);
    }
    return code;
}
