/*
 * Hook alloc_dir: the directory of an alloc, <alloc_dir>/<id>, from its making to its removal.
 *
 * What tasks share is everybody's to write, as in nomad v1.1.2 client/allocdir/alloc_dir.go Build;
 * but the directory above it is root's alone, and each task lets its own user in (task_dir.c), so
 * that "everybody" are the users of this alloc.  Nomad relies on ids that are hard to guess, and
 * every user reads them in /proc/self/mountinfo.
 *
 * The removal does not follow Nomad either:
 * Nomad deletes the tree even when something is still mounted in it, and so deletes what is on the
 * volume.  Here everything in it is unmounted first, each whatever became of the others,
 * and while one mount is left nothing at all is deleted (I-30); the machine insists until it works.
 */
#include "hooks/directory.h"

#include "io/host.h"

enum { ROOT_MODE = 0700, SHARED_MODE = 0777 };

int hooks_alloc_dir_build(const struct hook_request *request, struct err *err)
{
    static const char *const parts[] = {"logs", "tmp", "data"};
    scoped_fd int parent = -1, root = -1, shared = -1;
    char shown[32];

    int code = hooks_open_parent(request, &parent, err);
    if (code == 0)
        code = hooks_directory_make(parent, request->alloc, ROOT_MODE, NULL, "the alloc directory",
                                    &root, err);
    if (code == 0)
        code = hooks_directory_make(root, "alloc", SHARED_MODE, NULL, "alloc", &shared, err);
    for (size_t i = 0; code == 0 && i < COUNT_OF(parts); i++) {
        (void)text_format(shown, sizeof(shown), "alloc/%s", parts[i]); /* fits */
        code = hooks_directory_make(shared, parts[i], SHARED_MODE, NULL, shown, NULL, err);
    }
    return code;
}

struct removal {
    int parent; /* the directory of all allocs */
    int code;   /* of the first failure */
    struct err err;
};

static bool unmount(void *ctx, const char *point)
{
    struct removal *removal = ctx;
    struct err err = {0};
    int code = mount_remove(removal->parent, point, &err);

    if (code != 0 && removal->code == 0)
        removal->code = err_os(&removal->err, code, err.os, "cannot unmount %s", point);
    return true; /* the others all the same (I-24) */
}

int hooks_alloc_dir_destroy(const struct hook_request *request, struct err *err)
{
    scoped_fd int parent = -1;
    int code = hooks_open_parent(request, &parent, err);

    if (code == ERR_GONE)
        return 0;
    struct removal removal = {.parent = parent};
    if (code == 0)
        code = mount_each_below(parent, request->alloc, unmount, &removal, err);
    if (code == 0 && removal.code != 0) {
        *err = removal.err;
        code = removal.code;
    }
    if (code == 0)
        code = tree_remove(parent, request->alloc, err);
    if (code != 0)
        err->recoverable = true; /* nothing here may be given up */
    return code;
}
