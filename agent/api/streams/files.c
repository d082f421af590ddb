/* Files of one alloc: opening them safely, listing, and finding one's place in a log. */
#include "agent/api/streams/files.h"

#include "agent/api/format/format.h"
#include "io/host.h"
#include "io/scope.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- opening --- */

static int fail_open(const char *path, int number, struct err *err)
{
    if (number == EXDEV || number == ELOOP)
        return err_set(err, ERR_REFUSED, "Path escapes the alloc directory: %.160s", path);
    if (number == ENOENT || number == ENOTDIR)
        return err_set(err, ERR_GONE, "no such file: %.160s", path);
    return err_os(err, err_from_errno(number), number, "cannot open %.120s", path);
}

/* PATH below ROOT as a place, and ROOT as one, to compare their real names with. */
static int find(const char *root, const char *path, int *ret_root, int *ret_place, struct err *err)
{
    scoped_fd int root_fd = open(root, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (root_fd < 0)
        return err_set(err, ERR_GONE, "the alloc has no directory");
    int place = beneath_follow(root_fd, path, O_PATH);
    if (place < 0)
        return fail_open(path, -place, err);
    *ret_root = take_fd(&root_fd);
    *ret_place = place;
    return 0;
}

static bool real_name(int fd, char to[PATH_SIZE])
{
    char link[PLACE_PATH_SIZE];

    place_path(fd, link);
    ssize_t length = readlink(link, to, PATH_SIZE - 1);
    if (length <= 0)
        return false;
    to[length] = '\0';
    return true;
}

/* True if FD, a file, is below <root>/<task>/secrets, or in the root itself, where the daemon has
 * what is its own; also if that cannot be told. */
static bool is_secret(int root_fd, int fd)
{
    char root[PATH_SIZE], name[PATH_SIZE];

    if (!real_name(root_fd, root) || !real_name(fd, name) || !text_starts_with(name, root))
        return true;
    const char *inside = name + strlen(root);
    if (inside[0] != '/')
        return true;
    const char *second = strchr(inside + 1, '/');
    bool shared = strncmp(inside, "/alloc/", 7) == 0;
    return second == NULL || (!shared && text_starts_with(second, "/secrets/"));
}

int api_file_open(const char *root, const char *path, int *ret_fd, struct err *err)
{
    scoped_fd int root_fd = -1, place = -1;
    struct stat found;
    int code = find(root, path, &root_fd, &place, err);

    if (code != 0)
        return code;
    if (fstat(place, &found) != 0)
        return err_os(err, ERR_IO, errno, "cannot look at %.120s", path);
    if (!S_ISREG(found.st_mode))
        return err_set(err, ERR_INVALID, "%.160s is no file that can be read", path);
    if (is_secret(root_fd, place))
        return err_set(err, ERR_REFUSED, "Reading secret file prohibited: %.160s", path);
    int fd = place_open(place, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return fail_open(path, -fd, err);
    *ret_fd = fd;
    return 0;
}

/* --- looking --- */

static json_t *format_info(const char *name, const struct stat *found, const char *content_type)
{
    char mode[API_MODE_SIZE], time[API_TIME_SIZE];

    api_mode(mode, found->st_mode);
    api_time(time, (int64_t)found->st_mtim.tv_sec * 1000000000 + found->st_mtim.tv_nsec);
    return json_pack("{s:o, s:b, s:I, s:s, s:s, s:s}", "Name", api_text(name), "IsDir",
                     S_ISDIR(found->st_mode), "Size", (json_int_t)found->st_size, "FileMode", mode,
                     "ModTime", time, "ContentType", content_type);
}

/* Text or not, told by the beginning of the file. */
static const char *content_type_of(const char *root, const char *path)
{
    scoped_fd int fd = -1;
    char bytes[512];

    if (api_file_open(root, path, &fd, NULL) != 0)
        return "";
    ssize_t length = pread(fd, bytes, sizeof(bytes), 0);
    while (length > 0 && length > (ssize_t)sizeof(bytes) - 4 && (bytes[length - 1] & 0x80) != 0)
        length--; /* a character may be cut */
    return length >= 0 && text_is_utf8(bytes, (size_t)length) ? "text/plain; charset=utf-8"
                                                              : "application/octet-stream";
}

int api_file_stat(const char *root, const char *path, json_t **ret_info, struct err *err)
{
    scoped_fd int root_fd = -1, place = -1;
    struct stat found;
    const char *name = path + strspn(path, "/"), *last = strrchr(name, '/');
    int code = find(root, path, &root_fd, &place, err);

    if (code != 0)
        return code;
    if (fstat(place, &found) != 0)
        return err_os(err, ERR_IO, errno, "cannot look at %.120s", path);
    name = last != NULL && last[1] != '\0' ? last + 1 : name[0] == '\0' ? "." : name;
    *ret_info =
        format_info(name, &found, S_ISREG(found.st_mode) ? content_type_of(root, path) : "");
    return 0;
}

/* The directory PATH below ROOT; it owns the descriptor. */
static int open_directory(const char *root, const char *path, DIR **ret_directory, struct err *err)
{
    scoped_fd int root_fd = -1, place = -1;
    int code = find(root, path, &root_fd, &place, err);

    if (code != 0)
        return code;
    scoped_fd int fd = openat(place, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return fail_open(path, errno, err);
    *ret_directory = fdopendir(fd);
    if (*ret_directory == NULL)
        return err_os(err, ERR_IO, errno, "cannot list %.120s", path);
    (void)take_fd(&fd);
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names in DIRECTORY in order, owned by the caller; at most API_ENTRIES_MAX. */
static char **read_names(DIR *directory, size_t *ret_count)
{
    char **names = NULL;
    size_t count = 0, size = 0;
    const struct dirent *entry;

    while (count < API_ENTRIES_MAX && (entry = readdir(directory)) != NULL) {
        if (text_equal(entry->d_name, ".") || text_equal(entry->d_name, ".."))
            continue;
        if (count == size) {
            size = 2 * size + 32;
            names = realloc(names, size * sizeof(*names));
            check(names != NULL);
        }
        names[count] = strdup(entry->d_name);
        check(names[count++] != NULL);
    }
    if (count > 0)
        qsort(names, count, sizeof(*names), by_name);
    *ret_count = count;
    return names;
}

int api_file_list(const char *root, const char *path, json_t **ret_infos, struct err *err)
{
    DIR *directory;
    size_t count;
    int code = open_directory(root, path, &directory, err);

    if (code != 0)
        return code;
    char **names = read_names(directory, &count);
    json_t *infos = json_array();
    for (size_t i = 0; i < count; i++) {
        struct stat found;

        /* What went away meanwhile is not there. */
        if (fstatat(dirfd(directory), names[i], &found, AT_SYMLINK_NOFOLLOW) == 0)
            check(json_array_append_new(infos, format_info(names[i], &found, "")) == 0);
        free(names[i]);
    }
    free(names);
    (void)closedir(directory); /* only read from */
    *ret_infos = infos;
    return 0;
}

/* --- logs --- */

static const char log_directory[] = "alloc/logs";

void api_log_path(const struct api_log *log, int64_t number, char to[API_PATH_SIZE])
{
    (void)text_format(to, API_PATH_SIZE, "%s/%s.%s.%" PRId64, log_directory, log->task, log->type,
                      number); /* task names are short */
}

struct log_file {
    int64_t number, size;
};

static int by_number(const void *a, const void *b)
{
    const struct log_file *first = a, *second = b;

    return first->number < second->number ? -1 : first->number > second->number;
}

/* The log's files in order, owned by the caller. */
static int read_log(const struct api_log *log, struct log_file **ret_files, size_t *ret_count,
                    struct err *err)
{
    char prefix[API_PATH_SIZE];
    DIR *directory;
    size_t names_count, count = 0;
    int code = open_directory(log->root, log_directory, &directory, err);

    if (code != 0)
        return code;
    (void)text_format(prefix, sizeof(prefix), "%s.%s.", log->task, log->type); /* it fits */
    char **names = read_names(directory, &names_count);
    struct log_file *files = calloc(names_count + 1, sizeof(*files));
    check(files != NULL);
    for (size_t i = 0; i < names_count; i++) {
        struct stat found;
        uint64_t number;

        if (text_starts_with(names[i], prefix) && text_to_u64(names[i] + strlen(prefix), &number) &&
            number < INT64_MAX &&
            fstatat(dirfd(directory), names[i], &found, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(found.st_mode))
            files[count++] = (struct log_file){(int64_t)number, found.st_size};
        free(names[i]);
    }
    free(names);
    (void)closedir(directory); /* only read from */
    qsort(files, count, sizeof(*files), by_number);
    if (count == 0) {
        free(files);
        return err_set(err, ERR_GONE, "log entry for task \"%s\" and log type \"%s\" not found",
                       log->task, log->type);
    }
    *ret_files = files;
    *ret_count = count;
    return 0;
}

int api_log_directory(const struct api_log *log, int *ret_fd)
{
    scoped_fd int root_fd = -1;

    return find(log->root, log_directory, &root_fd, ret_fd, NULL);
}

int api_log_next(const struct api_log *log, int64_t after, int64_t *ret_number, struct err *err)
{
    struct log_file *files;
    size_t count;
    int code = read_log(log, &files, &count, err);

    if (code != 0)
        return code;
    code = ERR_GONE;
    for (size_t i = 0; i < count && code != 0; i++) {
        if (files[i].number > after) {
            *ret_number = files[i].number;
            code = 0;
        }
    }
    free(files);
    return code == 0 ? 0 : err_set(err, ERR_GONE, "there is no later log");
}

int api_log_find(const struct api_log *log, int64_t offset, bool from_end,
                 struct api_log_place *ret_place, struct err *err)
{
    struct log_file *files;
    size_t count, at = 0;
    int code = read_log(log, &files, &count, err);

    if (code != 0)
        return code;
    if (offset < 0)
        offset = 0;
    if (from_end) {
        for (at = count - 1; at > 0 && offset > files[at].size; at--)
            offset -= files[at].size;
        offset = offset < files[at].size ? files[at].size - offset : 0;
    } else {
        for (; at < count - 1 && offset >= files[at].size; at++)
            offset -= files[at].size;
        offset = offset < files[at].size ? offset : files[at].size;
    }
    *ret_place = (struct api_log_place){files[at].number, offset, files[count - 1].number};
    free(files);
    return 0;
}
