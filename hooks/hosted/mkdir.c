/*
 * The plugin inside: a volume is a directory, called as its id.
 *
 * It comes under its name when it is as it was asked for, so that one that is there is whole,
 * whatever died meanwhile.
 */
#include "hooks/hosted/part.h"

#include "io/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const char hosted_mkdir_version[] = "0.0.1";

enum { MODE_DEFAULT = 0700, UNCHANGED = -1 };

struct parameters {
    long mode, uid, gid; /* UNCHANGED: the daemon's */
};

/* As Nomad reads them: a mode is octal. */
static bool read_number(const char *text, int base, long least, long most, long *ret)
{
    char *end;

    errno = 0;
    long number = strtol(text, &end, base);
    if (errno != 0 || end == text || *end != '\0' || number < least || number > most)
        return false;
    *ret = number;
    return true;
}

static bool read_parameters(const char *text, struct parameters *to, struct hosted_result *result)
{
    json_t *all = json_loads(text, 0, NULL), *value;
    const char *name;
    bool valid = json_is_object(all);

    *to = (struct parameters){MODE_DEFAULT, UNCHANGED, UNCHANGED};
    if (!valid)
        hosted_fail(result, ERR_INVALID, true, "the parameters are no texts by name");
    json_object_foreach(all, name, value)
    {
        const char *given = json_string_value(value) == NULL ? "" : json_string_value(value);
        bool known = true, fits = true;

        if (text_equal(name, "mode"))
            fits = read_number(given, 8, 0, 07777, &to->mode);
        else if (text_equal(name, "uid"))
            fits = read_number(given, 10, UNCHANGED, INT32_MAX, &to->uid);
        else if (text_equal(name, "gid"))
            fits = read_number(given, 10, UNCHANGED, INT32_MAX, &to->gid);
        else
            known = false;
        if (!known)
            hosted_fail(result, ERR_INVALID, true, "unknown mkdir parameter: \"%.100s\"", name);
        else if (!fits)
            hosted_fail(result, ERR_INVALID, true, "invalid value for \"%s\": \"%.100s\"", name,
                        given);
        valid = valid && known && fits;
    }
    json_decref(all);
    return valid;
}

/* Makes NAME in the directory of FD as it is to be; an unfinished one of before is gone on with. */
static bool make(int fd, const char *name, const struct parameters *parameters)
{
    if (mkdirat(fd, name, 0700) != 0 && errno != EEXIST)
        return false;
    scoped_fd int made = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    /* The owner first: a change of it takes bits off the mode. */
    return made >= 0 && fchown(made, (uid_t)parameters->uid, (gid_t)parameters->gid) == 0 &&
           fchmod(made, (mode_t)parameters->mode) == 0;
}

static void create(const struct hosted_request *request, int fd, struct hosted_result *result)
{
    const char *id = request->ask.id;
    struct parameters parameters;
    char unfinished[UUID_TEXT_SIZE + 1];
    struct stat status;

    if (fstatat(fd, id, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode))
        return;
    if (!read_parameters(request->ask.parameters, &parameters, result))
        return;
    check(text_format(unfinished, sizeof(unfinished), ".%s", id)); /* a UUID */
    if (make(fd, unfinished, &parameters) && renameat(fd, unfinished, fd, id) == 0 &&
        fsync(fd) == 0)
        return;
    hosted_fail(result, ERR_IO, true, "error creating directory: %s", strerror(errno));
    (void)unlinkat(fd, unfinished, AT_REMOVEDIR); /* as far as it came */
}

static void delete (const struct hosted_request *request, int fd, struct hosted_result *result)
{
    struct err err = {0};
    int code = tree_remove(fd, request->ask.id, &err);

    if (code < 0 && code != ERR_GONE)
        hosted_fail(result, code, true, "%s", err.text);
}

void hosted_mkdir(const struct hosted_request *request, struct hosted_result *result)
{
    struct err err = {0};

    if (!uuid_is_valid(request->ask.id) ||
        path_join(result->path, request->volumes_dir, request->ask.id) != 0) {
        hosted_fail(result, ERR_INVALID, true, "\"%.60s\" is no id of a volume", request->ask.id);
        return;
    }
    /* Who may enter a volume must know its name, as in the directory of allocs. */
    if (!request->ask.deletes && directory_make_all(request->volumes_dir, 0711, &err) != 0) {
        hosted_fail(result, err.code, true, "%s", err.text);
        return;
    }
    scoped_fd int fd = open(request->volumes_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && !(request->ask.deletes && errno == ENOENT))
        hosted_fail(result, ERR_IO, true, "cannot open %.300s: %s", request->volumes_dir,
                    strerror(errno));
    else if (fd >= 0 && request->ask.deletes)
        delete (request, fd, result);
    else if (fd >= 0)
        create(request, fd, result);
}
