/* File systems that are mounted nowhere yet.  Also linked into the static shim. */
#include "io/host.h"

#include "io/kernel.h"
#include "io/scope.h"

#include <errno.h>

int mount_make(const char *type, const struct mount_option *options, unsigned attributes)
{
    scoped_fd int fs = fsopen(type, FSOPEN_CLOEXEC);

    if (fs < 0)
        return -errno;
    for (; options->name != NULL; options++) {
        if (options->value == NULL)
            (void)fsconfig(fs, FSCONFIG_SET_FLAG, options->name, NULL, 0); /* where it is known */
        else if (fsconfig(fs, FSCONFIG_SET_STRING, options->name, options->value, 0) != 0)
            return -errno;
    }
    if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) != 0)
        return -errno;
    int fd = fsmount(fs, FSMOUNT_CLOEXEC, attributes);
    return fd < 0 ? -errno : fd;
}
