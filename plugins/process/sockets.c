/*
 * The directory where a plugin, and whatever it starts, makes sockets.
 *
 * One that ends by force leaves its own behind, and so do those that supervise tasks for it: what
 * nobody listens on any more is removed.
 */
#include "plugins/process/part.h"

#include "io/scope.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Only one that was refused has nobody: who is busy answers later. */
static bool is_dead(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    scoped_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    return fd >= 0 && text_copy(address.sun_path, sizeof(address.sun_path), path) &&
           connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0 &&
           errno == ECONNREFUSED;
}

int sockets_clear(const char *directory, bool kept, struct err *err)
{
    char path[PATH_SIZE];

    if (!kept)
        return tree_remove(AT_FDCWD, directory, err);
    DIR *listed = opendir(directory);
    if (listed == NULL)
        return errno == ENOENT
                   ? 0
                   : err_os(err, err_from_errno(errno), errno, "cannot list %s", directory);
    for (struct dirent *entry; (entry = readdir(listed)) != NULL;) {
        if (entry->d_type == DT_SOCK && path_join(path, directory, entry->d_name) == 0 &&
            is_dead(path))
            (void)unlink(path); /* one that stays is in nobody's way */
    }
    (void)closedir(listed); /* of reading alone */
    return 0;
}
