/*
 * Files and logs over HTTP: /v1/client/fs.
 *
 * Listing and looking are one piece of work for the pool; reading is a stream (stream.c).
 * Follows nomad v1.1.2 command/agent/fs_endpoint.go.
 */
#include "agent/api/part.h"
#include "agent/api/streams/files.h"

#include "server/alone/alone.h"

#include <stdlib.h>
#include <string.h>

/* --- what all have in common --- */

/* The directory of the alloc that the request names; false after refusing it. */
static bool find_root(struct api_request *request, char root[API_ROOT_SIZE])
{
    struct machine_id id;
    struct hooks_paths paths;
    struct err err = {0};
    const struct alloc *alloc = api_alloc_of(request, request->argument, &id);

    if (alloc == NULL)
        return false;
    const char *task = alloc->assign.members_count > 0 ? alloc->assign.members[0].name : "task";
    if (hooks_paths(request->api->parts->hooks, id.text, task, &paths, &err) != 0) {
        api_refuse_err(request, &err);
        return false;
    }
    (void)text_copy(root, API_ROOT_SIZE, paths.root); /* of the same size */
    return true;
}

/* The path of the request; false after refusing it. */
static bool find_path(struct api_request *request, const char *otherwise, char path[API_PATH_SIZE])
{
    const char *given = http_query(request->exchange, "path");

    if (given == NULL || given[0] == '\0')
        given = otherwise;
    if (given == NULL) {
        api_refuse(request, 400, "must provide a file name");
        return false;
    }
    if (!text_copy(path, API_PATH_SIZE, given)) {
        api_refuse(request, 400, "the path is longer than %d bytes", API_PATH_SIZE - 1);
        return false;
    }
    return true;
}

/* --- listing and looking --- */

struct look {
    struct api_aside aside;
    int (*run)(const char *root, const char *path, json_t **ret_json, struct err *err);
    char root[API_ROOT_SIZE], path[API_PATH_SIZE];
    json_t *json;
    struct err err;
};

static void run_look(struct api_aside *aside)
{
    struct look *look = (struct look *)aside;

    (void)look->run(look->root, look->path, &look->json, &look->err); /* its error is kept */
}

static void answer_look(struct api_request *request, struct api_aside *aside)
{
    struct look *look = (struct look *)aside;

    if (look->json != NULL)
        api_reply(request, json_incref(look->json));
    else
        api_refuse_file(request->api, request->exchange, &look->err);
}

static void free_look(struct api_aside *aside)
{
    struct look *look = (struct look *)aside;

    json_decref(look->json);
    free(look);
}

static void look_at(struct api_request *request, const char *otherwise,
                    int (*run)(const char *root, const char *path, json_t **ret_json,
                               struct err *err))
{
    struct look *look = calloc(1, sizeof(*look));

    check(look != NULL);
    if (!find_root(request, look->root) || !find_path(request, otherwise, look->path)) {
        free(look);
        return;
    }
    look->aside = (struct api_aside){.run = run_look, .answer = answer_look, .free = free_look};
    look->run = run;
    api_aside_start(request, &look->aside);
}

void api_fs_list(struct api_request *request)
{
    look_at(request, "/", api_file_list);
}

void api_fs_stat(struct api_request *request)
{
    look_at(request, NULL, api_file_stat);
}

/* --- reading --- */

void api_fs_cat(struct api_request *request)
{
    struct api_reading reading = {.plain = true, .left = -1};

    if (find_root(request, reading.root) && find_path(request, NULL, reading.path))
        api_stream_start(request, &reading);
}

void api_fs_readat(struct api_request *request)
{
    struct api_reading reading = {.plain = true};

    if (!find_root(request, reading.root) || !find_path(request, NULL, reading.path) ||
        !api_query_number(request, "offset", &reading.offset) ||
        !api_query_number(request, "limit", &reading.left))
        return;
    reading.left = reading.left > 0 ? reading.left : -1;
    reading.offset = reading.offset > 0 ? reading.offset : 0;
    api_stream_start(request, &reading);
}

/* Origin, offset and follow; false after refusing the request. */
static bool read_position(struct api_request *request, struct api_reading *reading)
{
    const char *origin = http_query(request->exchange, "origin");

    if (origin != NULL && origin[0] != '\0' && !text_equal(origin, "start") &&
        !text_equal(origin, "end")) {
        api_refuse(request, 400, "origin must be start or end");
        return false;
    }
    reading->from_end = origin != NULL && text_equal(origin, "end");
    if (!api_query_bool(request, "follow", &reading->follow) ||
        !api_query_number(request, "offset", &reading->offset))
        return false;
    reading->offset = reading->offset > 0 ? reading->offset : 0;
    return true;
}

void api_fs_stream(struct api_request *request)
{
    struct api_reading reading = {.follow = true, .left = -1};

    if (find_root(request, reading.root) && find_path(request, NULL, reading.path) &&
        api_query_bool(request, "plain", &reading.plain) && read_position(request, &reading))
        api_stream_start(request, &reading);
}

/* True if the log of TASK may be read; else the request is refused. */
static bool has_log(struct api_request *request, const char *name, const char *type)
{
    if (name == NULL || name[0] == '\0') {
        api_refuse(request, 400, "must provide task name");
        return false;
    }
    if (type == NULL || (!text_equal(type, "stdout") && !text_equal(type, "stderr"))) {
        api_refuse(request, 400, "must provide log type (stdout/stderr)");
        return false;
    }
    const struct task *task = strlen(name) < SPEC_NAME_SIZE
                                  ? core_task(request->api->parts->core, request->argument, name)
                                  : NULL;
    if (task == NULL) {
        api_refuse(request, 400, "unknown task name \"%.100s\"", name);
        return false;
    }
    if (task->started_unix_ns == 0) {
        api_refuse(request, 404, "task \"%s\" not started yet. No logs available", name);
        return false;
    }
    return true;
}

void api_fs_logs(struct api_request *request)
{
    const char *name = http_query(request->exchange, "task");
    const char *type = http_query(request->exchange, "type");
    struct api_reading reading = {.left = -1};

    if (!find_root(request, reading.root) || !has_log(request, name, type) ||
        !api_query_bool(request, "plain", &reading.plain) || !read_position(request, &reading))
        return;
    (void)text_copy(reading.task, sizeof(reading.task), name); /* has_log has seen */
    (void)text_copy(reading.type, sizeof(reading.type), type); /* that they fit */
    api_stream_start(request, &reading);
}
