/*
 * Under which cgroup all of this node's are.
 *
 * What was started under one is looked for there and nowhere else, and what is not found there has
 * ended: so the parent is noted beside the shims, and is another one only when nothing lives under
 * the old.
 */
#include "drivers/part.h"

#include <stdlib.h>
#include <string.h>

#define PARENT_FILE "cgroup"

_Static_assert(CGROUP_PARENT_SIZE + NODE_MARK_SIZE + sizeof("-cores/") + KEY_NAME_SIZE <=
                   CGROUP_NAME_SIZE,
               "each payload's cgroup has a name");

/* What was noted; TO stays as it is if nothing was. */
static int read_parent(const char *path, char to[CGROUP_PARENT_SIZE], struct err *err)
{
    struct err why = {0};
    char *text = NULL;
    size_t length;
    int code = file_read(path, CGROUP_PARENT_SIZE, &text, &length, &why);

    if (code == ERR_GONE)
        return 0;
    if (code == 0 && (length == 0 || !text_copy(to, CGROUP_PARENT_SIZE, text)))
        code = err_set(&why, ERR_CORRUPT, "%s is damaged", path);
    free(text);
    if (code != 0 && err != NULL)
        *err = why;
    return code;
}

/* All of ours below the parent that drivers->cgroup_parent is, if nothing lives there. */
static int leave(const struct drivers *drivers, const char *wanted, struct err *err)
{
    enum cgroup_mode mode = drivers->config.cgroup_mode;
    char ours[CGROUP_NAME_SIZE];
    int code = 0;

    for (int cores = 0; code == 0 && cores < 2 && keys_cgroup(drivers, cores == 1, ours); cores++) {
        code = cgroup_populated(mode, ours, err);
        if (code == 1)
            return err_set(err, ERR_REFUSED,
                           "what runs is in the cgroup %s: end it before cgroup_parent becomes "
                           "\"%s\", or set it to \"%s\"",
                           ours, wanted, drivers->cgroup_parent);
        if (code == 0)
            code = cgroup_remove(mode, ours, err);
    }
    return code;
}

/* Whether a file of the kernel has the place of a cgroup of NAME, as `tasks` has on v1. */
static bool is_taken_by_the_kernel(const char *name)
{
    for (const char *part = name;; part++) {
        size_t length = strcspn(part, "/");
        if (strncmp(part, "cgroup.", strlen("cgroup.")) == 0 ||
            (length == strlen("tasks") && strncmp(part, "tasks", length) == 0))
            return true;
        part += length;
        if (*part == '\0')
            return false;
    }
}

int parent_take(struct drivers *drivers, struct err *err)
{
    const char *configured = drivers->config.cgroup_parent;
    const char *wanted =
        configured == NULL || *configured == '\0' ? CGROUP_PARENT_DEFAULT : configured;
    char path[PATH_SIZE];
    int code = path_join(path, drivers->config.state_dir, PARENT_FILE);

    if (strlen(wanted) >= CGROUP_PARENT_SIZE || *wanted == '/' || text_ends_with(wanted, "/") ||
        strstr(wanted, "..") != NULL || strpbrk(wanted, "\n ") != NULL ||
        is_taken_by_the_kernel(wanted))
        return err_set(err, ERR_INVALID,
                       "cgroup_parent \"%.60s\" is not the name of a cgroup, as \"cairn\" or "
                       "\"cairn.slice/node\", of at most %d bytes",
                       wanted, CGROUP_PARENT_SIZE - 1);
    if (code != 0)
        return err_set(err, code, "state_dir is too long");
    code = read_parent(path, drivers->cgroup_parent, err);
    if (code != 0 || text_equal(drivers->cgroup_parent, wanted))
        return code;
    code = leave(drivers, wanted, err);
    if (code == 0)
        code = file_write_durable(path, wanted, strlen(wanted), 0600, err);
    if (code == 0)
        (void)text_copy(drivers->cgroup_parent, CGROUP_PARENT_SIZE, wanted); /* fits, see above */
    return code;
}
