/* Another data file in the place of a refused one (journal.h). */
#include "journal/lock.h"
#include "journal/part.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { KEPT_MAX = 1000 };

int journal_hold(const char *path, int *ret_fd, struct err *err)
{
    return lock_take(path, ret_fd, err);
}

bool journal_is_held(const char *path)
{
    return lock_is_held(path);
}

/* Gives FILE a second name that nothing has yet. */
static int keep(const char *path, const char *file, char ret_kept[JOURNAL_PATH_SIZE],
                struct err *err)
{
    for (int i = 1; i <= KEPT_MAX; i++) {
        if (!text_format(ret_kept, JOURNAL_PATH_SIZE, "%s/refused-%d.mdb", path, i))
            return err_set(err, ERR_LIMIT, "the path is too long");
        if (link(file, ret_kept) == 0)
            return 0;
        if (errno != EEXIST)
            return err_os(err, err_from_errno(errno), errno, "keep %s as %s", file, ret_kept);
    }
    return err_set(err, ERR_LIMIT, "%d refused journals are kept in %s already", KEPT_MAX, path);
}

int journal_replace(const char *path, const char *from, char ret_kept[JOURNAL_PATH_SIZE],
                    struct err *err)
{
    char place[JOURNAL_PATH_SIZE], file[JOURNAL_PATH_SIZE], readers[JOURNAL_PATH_SIZE];

    if (!text_format(place, sizeof(place), "%s/data.mdb", path) ||
        !text_format(readers, sizeof(readers), "%s/lock.mdb", path) ||
        !text_format(file, sizeof(file), "%s/data.mdb", from))
        return err_set(err, ERR_LIMIT, "the path is too long");
    int code = keep(path, place, ret_kept, err);
    if (code == 0)
        code = directory_sync(path, err);
    if (code < 0)
        return code;
    /* Whoever still reads the old file keeps the table of readers that goes with it. */
    if (unlink(readers) != 0 && errno != ENOENT)
        return err_os(err, err_from_errno(errno), errno, "remove %s", readers);
    if (rename(file, place) != 0)
        return err_os(err, err_from_errno(errno), errno, "move the journal to %s", place);
    return directory_sync(path, err);
}
