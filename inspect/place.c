/* Where a journal is made: beside its place, and moved there when it is whole (part.h). */
#include "inspect/part.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

void place_remove(const char *path)
{
    static const char *const names[] = {"data.mdb", "lock.mdb", "lock"};
    char file[JOURNAL_PATH_SIZE];

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (text_format(file, sizeof(file), "%s/%s", path, names[i]))
            (void)unlink(file); /* the directory's own removal tells */
    }
    (void)rmdir(path); /* what is left in it is not ours */
}

/* TO may be an empty directory: rename puts the journal in its place. */
int place_move(const char *from, const char *to, struct err *err)
{
    char parent[JOURNAL_PATH_SIZE];

    if (rename(from, to) != 0)
        return err_os(err, err_from_errno(errno), errno, "move the journal to %s", to);
    (void)text_format(parent, sizeof(parent), "%s/..", to); /* shorter than the one used before */
    int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool synced = fd >= 0 && fsync(fd) == 0;
    int number = errno;
    if (fd >= 0)
        (void)close(fd); /* only read from */
    return synced ? 0 : err_os(err, ERR_IO, number, "sync the directory of %s", to);
}

/* Only nothing, or an empty directory, may make room for a journal. */
bool place_is_taken(const char *path)
{
    struct stat about;
    bool taken = false;

    if (lstat(path, &about) != 0)
        return false;
    DIR *directory = S_ISDIR(about.st_mode) ? opendir(path) : NULL;
    if (directory == NULL)
        return true;
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory))
        taken = taken || (!text_equal(entry->d_name, ".") && !text_equal(entry->d_name, ".."));
    (void)closedir(directory); /* only read from */
    return taken;
}
