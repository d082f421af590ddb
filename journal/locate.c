/* Finding a journal by what people name: its directory, a data directory, or the data file. */
#include "journal/part.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define DATA_FILE "data.mdb" /* LMDB's name for it */

static bool has_journal(const char *path, const char *below, char to[JOURNAL_PATH_SIZE])
{
    char file[JOURNAL_PATH_SIZE];
    struct stat about;

    errno = 0; /* a path that is too long is no journal, not one out of reach */
    return text_format(to, JOURNAL_PATH_SIZE, "%s%s", path, below) &&
           text_format(file, sizeof(file), "%s/" DATA_FILE, to) && stat(file, &about) == 0;
}

/* The directory of the data file PATH, which was opened by this name and so is short enough. */
static int locate_file(const char *path, char ret_path[JOURNAL_PATH_SIZE], struct err *err)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;

    if (!text_equal(name, DATA_FILE))
        return err_set(err, ERR_INVALID, "%s is neither a directory nor a " DATA_FILE, path);
    if (slash == NULL)
        check(text_copy(ret_path, JOURNAL_PATH_SIZE, "."));
    else
        check(text_format(ret_path, JOURNAL_PATH_SIZE, "%.*s/", (int)(slash - path), path));
    return 0;
}

int journal_locate(const char *path, char ret_path[JOURNAL_PATH_SIZE], struct err *err)
{
    static const char *const below[] = {"", "/client/journal", "/journal"};
    char place[JOURNAL_PATH_SIZE];
    struct stat about;
    int refused = 0;

    if (stat(path, &about) != 0)
        return err_os(err, err_from_errno(errno), errno, "no journal at %s", path);
    if (!S_ISDIR(about.st_mode))
        return locate_file(path, ret_path, err);
    for (size_t i = 0; i < COUNT_OF(below); i++) {
        if (has_journal(path, below[i], place)) {
            check(text_copy(ret_path, JOURNAL_PATH_SIZE, place));
            return 0;
        }
        if (errno == EACCES)
            refused = errno;
    }
    if (refused != 0)
        return err_os(err, ERR_REFUSED, refused, "the journal in %s may not be read by this user",
                      path);
    return err_set(
        err, ERR_GONE,
        "no journal in %s, %s/client/journal or %s/journal; name its directory with -dir", path,
        path, path);
}
