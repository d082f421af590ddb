/*
 * Inside agent/api/ only: files of one alloc, as outsiders may see them.
 *
 * All paths are below the alloc's directory and stay there: links that lead out, or through /proc,
 * are refused (beneath_follow of io/host.h), and nothing is opened before it is known to be a file
 * or a directory.  What lies in a task's secrets directory, or in the alloc's own beside those of
 * its tasks, is listed but never read, by whatever name it is reached.  Everything here may block:
 * for the pool.
 */
#ifndef CAIRN_AGENT_API_FILES_H
#define CAIRN_AGENT_API_FILES_H

#include "base/base.h"

#include <jansson.h>
#include <stdint.h>

enum { API_ROOT_SIZE = 512, API_PATH_SIZE = 1024, API_ENTRIES_MAX = 10000 };

/* Opens the regular file PATH below ROOT for reading; the caller owns the descriptor.  ERR_GONE: no
 * such file; ERR_REFUSED: outside, or a secret; ERR_INVALID: no regular file. */
int api_file_open(const char *root, const char *path, int *ret_fd, struct err *err);

/* {Name, IsDir, Size, FileMode, ModTime, ContentType} of PATH; of each entry of the directory. */
int api_file_stat(const char *root, const char *path, json_t **ret_info, struct err *err);
int api_file_list(const char *root, const char *path, json_t **ret_infos, struct err *err);

/* --- a task's log, which is a row of files <task>.<type>.<number> --- */

struct api_log {
    const char *root, *task, *type;
};

/* Opens the directory of the log's files (O_PATH), to watch it; the caller owns the descriptor. */
int api_log_directory(const struct api_log *log, int *ret_fd);

/* The lowest number above AFTER (-1: the lowest of all); ERR_GONE if there is none. */
int api_log_next(const struct api_log *log, int64_t after, int64_t *ret_number, struct err *err);

/* Where OFFSET is, counted over all files from the beginning, or back from the end: the file's
 * number and the offset in it; and the highest number there is. */
struct api_log_place {
    int64_t number, offset, last;
};
int api_log_find(const struct api_log *log, int64_t offset, bool from_end,
                 struct api_log_place *ret_place, struct err *err);

/* "alloc/logs/<task>.<type>.<number>" */
void api_log_path(const struct api_log *log, int64_t number, char to[API_PATH_SIZE]);

#endif
