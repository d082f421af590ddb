/*
 * Functions that read files, and those that look at paths.
 *
 * Files are read only when the caller named a directory they may be relative to; a daemon that
 * parses what came over the network does not.  Only regular files, only so much.
 */
#include "spec/hcl/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <nettle/base64.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_BYTES_MAX = 1 << 20, FILE_PATH_SIZE = 4096 };

/* The argument, where files may be read. */
static bool path_argument(const struct hcl_call *call, json_t **ret_keep)
{
    if (call->context->options->base_directory == NULL) {
        (void)hcl_call_failed(call, "is not available here: files are read only for a job file "
                                    "given on the command line");
        return false;
    }
    return hcl_argument_text(call, 0, ret_keep);
}

/* The argument as a path below the base directory, unless it is absolute. */
static bool file_path(const struct hcl_call *call, char to[FILE_PATH_SIZE])
{
    const char *base = call->context->options->base_directory;
    json_t *keep;

    if (!path_argument(call, &keep))
        return false;
    const char *path = json_string_value(keep);
    bool fits = *path == '/' ? text_copy(to, FILE_PATH_SIZE, path)
                             : text_format(to, FILE_PATH_SIZE, "%s/%s", base, path);
    json_decref(keep);
    if (!fits)
        (void)hcl_call_failed(call, "got a path that is too long");
    return fits;
}

/* Reads all of FD, a regular file, or says why not. */
static const char *read_all(int fd, struct hcl_buffer *buffer)
{
    char part[8192];
    struct stat status;
    ssize_t got;

    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
        return "not a regular file";
    while ((got = read(fd, part, sizeof(part))) > 0) {
        hcl_buffer_add(buffer, part, (size_t)got);
        if (buffer->length > FILE_BYTES_MAX)
            return "larger than 1 MiB";
    }
    return got < 0 ? strerrordesc_np(errno) : NULL;
}

/* The bytes of the argument's file; false with the error set. */
static bool file_bytes(const struct hcl_call *call, struct hcl_buffer *buffer,
                       char path[FILE_PATH_SIZE])
{
    if (!file_path(call, path))
        return false;
    /* Not blocking: the path may name a FIFO, which is refused once it is open. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        (void)hcl_call_failed(call, "cannot open %.150s: %s", path, strerrordesc_np(errno));
        return false;
    }
    const char *reason = read_all(fd, buffer);
    (void)close(fd); /* only read */
    if (reason != NULL) {
        (void)hcl_call_failed(call, "cannot read %.150s: %s", path, reason);
        hcl_buffer_free(buffer);
    }
    return reason == NULL;
}

static json_t *run_file(const struct hcl_call *call)
{
    struct hcl_buffer buffer = {0};
    char path[FILE_PATH_SIZE];

    if (!file_bytes(call, &buffer, path))
        return NULL;
    json_t *value = hcl_buffer_take(&buffer);
    hcl_buffer_free(&buffer);
    return value != NULL ? value
                         : hcl_call_failed(call, "cannot read %.150s: not UTF-8 text", path);
}

static json_t *run_filebase64(const struct hcl_call *call)
{
    struct hcl_buffer buffer = {0};
    char path[FILE_PATH_SIZE];

    if (!file_bytes(call, &buffer, path))
        return NULL;
    size_t length = BASE64_ENCODE_RAW_LENGTH(buffer.length);
    char *encoded = malloc(length + 1);
    check(encoded != NULL);
    base64_encode_raw(encoded, buffer.length, (const uint8_t *)buffer.bytes);
    json_t *value = json_stringn(encoded, length);
    free(encoded);
    hcl_buffer_free(&buffer);
    return value;
}

static json_t *run_fileexists(const struct hcl_call *call)
{
    char path[FILE_PATH_SIZE];
    struct stat status;

    if (!file_path(call, path))
        return NULL;
    return json_boolean(stat(path, &status) == 0 && S_ISREG(status.st_mode));
}

/* These two look at the text only. */
static json_t *run_basename(const struct hcl_call *call)
{
    json_t *keep, *value;

    if (!hcl_argument_text(call, 0, &keep))
        return NULL;
    const char *text = json_string_value(keep);
    size_t end = strlen(text), start;
    while (end > 1 && text[end - 1] == '/')
        end--;
    for (start = end; start > 0 && text[start - 1] != '/';)
        start--;
    if (start == end && end > 0)
        start--; /* the root */
    value = end == 0 ? json_string(".") : json_stringn(text + start, end - start);
    json_decref(keep);
    return value;
}

static json_t *run_dirname(const struct hcl_call *call)
{
    json_t *keep, *value;

    if (!hcl_argument_text(call, 0, &keep))
        return NULL;
    const char *path = json_string_value(keep), *slash = strrchr(path, '/');
    value = slash == NULL   ? json_string(".")
            : slash == path ? json_string("/")
                            : json_stringn(path, (size_t)(slash - path));
    json_decref(keep);
    return value;
}

/* PATH, which is absolute, without "//", "." and what ".." takes back. */
static void clean(char *path)
{
    char *end = path;

    for (const char *at = path; *at != '\0';) {
        size_t length = strcspn(at + 1, "/");
        bool is_up = length == 2 && strncmp(at + 1, "..", 2) == 0;

        while (is_up && end > path && *--end != '/')
            continue;
        if (length > 0 && !is_up && !(length == 1 && at[1] == '.')) {
            memmove(end, at, length + 1);
            end += length + 1;
        }
        at += length + 1;
    }
    if (end == path)
        *end++ = '/';
    *end = '\0';
}

/* Below the working directory, as Go has it, and not below that of the job file. */
static json_t *run_abspath(const struct hcl_call *call)
{
    char path[2 * FILE_PATH_SIZE], here[FILE_PATH_SIZE];
    json_t *keep;

    if (!path_argument(call, &keep))
        return NULL;
    const char *given = json_string_value(keep);
    bool fits = *given == '/' ? text_format(path, sizeof(path), "/%s", given)
                              : getcwd(here, sizeof(here)) != NULL &&
                                    text_format(path, sizeof(path), "%s/%s", here, given);
    json_decref(keep);
    if (!fits)
        return hcl_call_failed(call, "got a path that is too long");
    clean(path);
    return json_string(path);
}

static json_t *run_pathexpand(const struct hcl_call *call)
{
    const char *home = getenv("HOME");
    char path[FILE_PATH_SIZE];
    json_t *keep;

    if (!path_argument(call, &keep))
        return NULL;
    const char *given = json_string_value(keep);
    if (*given != '~')
        return keep;
    bool own = given[1] == '\0' || given[1] == '/', is_known = home != NULL && *home == '/';
    bool fits = own && is_known && text_format(path, sizeof(path), "%s%s", home, given + 1);
    json_decref(keep);
    if (!own)
        return hcl_call_failed(call, "knows the home of nobody else");
    if (!fits)
        return hcl_call_failed(call, is_known ? "got a path that is too long" : "finds no HOME");
    clean(path);
    return json_string(path);
}

const struct hcl_function_row hcl_file_functions[] = {
    {"abspath", 1, 1, run_abspath},       {"basename", 1, 1, run_basename},
    {"dirname", 1, 1, run_dirname},       {"file", 1, 1, run_file},
    {"filebase64", 1, 1, run_filebase64}, {"fileexists", 1, 1, run_fileexists},
    {"pathexpand", 1, 1, run_pathexpand}, {NULL, 0, 0, NULL},
};
