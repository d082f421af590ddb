/*
 * Which hierarchies this machine has, and where in them a cgroup lies.
 */
#include "io/host/cgroup.h"

#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

bool cgroup_is_mounted(const char *path, unsigned long magic)
{
    struct statfs status;

    return statfs(path, &status) == 0 && (unsigned long)status.f_type == magic &&
           access(path, W_OK) == 0;
}

enum cgroup_mode cgroup_mode(void)
{
    if (cgroup_is_mounted(CGROUP_ROOT, CGROUP2_SUPER_MAGIC))
        return CGROUP_V2;
    if (cgroup_is_mounted(CGROUP_ROOT "/unified", CGROUP2_SUPER_MAGIC))
        return CGROUP_HYBRID;
    if (cgroup_is_mounted(CGROUP_ROOT "/freezer", CGROUP_SUPER_MAGIC))
        return CGROUP_V1;
    return CGROUP_NONE;
}

const char *cgroup_mode_name(enum cgroup_mode mode)
{
    switch (mode) {
    case CGROUP_NONE:
        return "none";
    case CGROUP_V2:
        return "v2";
    case CGROUP_HYBRID:
        return "hybrid";
    case CGROUP_V1:
        return "v1";
    }
    unreachable("a mode without a name");
}

/* --- paths --- */

const char *cgroup_root(enum cgroup_mode mode)
{
    return mode == CGROUP_V2   ? CGROUP_ROOT
           : mode == CGROUP_V1 ? CGROUP_ROOT "/freezer"
                               : CGROUP_ROOT "/unified";
}

int cgroup_path_of(enum cgroup_mode mode, const char *name, struct cgroup_path *ret_path,
                   struct err *err)
{
    if (*name == '\0' || *name == '/' || strstr(name, "..") != NULL || strchr(name, '\n') != NULL ||
        strlen(name) >= CGROUP_NAME_SIZE)
        return err_set(err, ERR_INVALID, "\"%s\" does not name a cgroup", name);

    check(text_format(ret_path->text, sizeof(ret_path->text), "%s/%s", cgroup_root(mode), name));
    return 0;
}

bool cgroup_controller_path(enum cgroup_mode mode, enum cgroup_controller controller,
                            const char *name, struct cgroup_path *ret_path)
{
    static const char *const names[CONTROLLER_COUNT] = {[CONTROLLER_MEMORY] = "memory",
                                                        [CONTROLLER_CPU] = "cpu",
                                                        [CONTROLLER_CPUACCT] = "cpuacct",
                                                        [CONTROLLER_CPUSET] = "cpuset"};

    if (mode != CGROUP_HYBRID && mode != CGROUP_V1)
        return false;
    return text_format(ret_path->text, sizeof(ret_path->text), CGROUP_ROOT "/%s/%s",
                       names[controller], name);
}

void cgroup_directory(enum cgroup_mode mode, const char *name, char *to, size_t size)
{
    struct cgroup_path path = {.text = ""};

    if (mode == CGROUP_V2 || mode == CGROUP_HYBRID)
        (void)cgroup_path_of(mode, name, &path, NULL); /* "" if it is no name */
    check(text_copy(to, size, path.text));
}
