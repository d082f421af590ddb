/*
 * Files and logs over HTTP: /v1/client/fs.
 *
 * Listing and looking are one piece of work for the pool; reading is a stream: read a block, hand
 * it over, wait for the reader when it lags, and at the end of a followed file look again every
 * 200 ms.  Nothing wakes up while nobody follows.  Follows nomad v1.1.2 client/fs_endpoint.go:
 * frames, origins, and the step from one rotated log file to the next.
 */
#include "agent/api_files.h"
#include "agent/api_part.h"

#include "agent/standalone.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    BLOCK_SIZE = 64 << 10,
    LOOK_AGAIN_MS = 200,
    HEARTBEAT_LOOKS = 5, /* an empty frame a second says that we are alive */
};

/* --- what all have in common --- */

/* The directory of the alloc that the request names; false after refusing it. */
static bool find_root(struct api_request *request, char root[API_ROOT_SIZE],
                      const struct alloc **ret_alloc)
{
    struct machine_id id;
    struct hooks_paths paths;
    struct err err = {0};
    const struct alloc *alloc = api_alloc_of(request, request->argument, &id);

    if (alloc == NULL)
        return false;
    const char *task = alloc->assign.members_count > 0 ? alloc->assign.members[0].name : "task";
    if (hooks_paths(daemon_hooks(request->api->daemon), id.text, task, &paths, &err) != 0) {
        api_refuse_err(request, &err);
        return false;
    }
    (void)text_copy(root, API_ROOT_SIZE, paths.root); /* of the same size */
    *ret_alloc = alloc;
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

static void refuse(struct api *api, struct http_exchange *exchange, const struct err *err)
{
    struct api_request request = {.api = api, .exchange = exchange};

    /* A refused path is forbidden, whatever else refusals are. */
    api_refuse(&request, err->code == ERR_REFUSED ? 403 : api_status_of(api, err->code), "%s",
               err->text);
}

/* --- listing and looking --- */

struct look {
    struct io_work work;
    struct api *api;
    struct http_exchange *exchange; /* NULL: the peer is gone */
    int (*run)(const char *root, const char *path, json_t **ret_json, struct err *err);
    char root[API_ROOT_SIZE], path[API_PATH_SIZE];
    json_t *json;
    struct err err;
};

static void run_look(struct io_work *work)
{
    struct look *look = work->ctx;

    (void)look->run(look->root, look->path, &look->json, &look->err); /* its error is kept */
}

static void look_done(struct io_work *work)
{
    struct look *look = work->ctx;
    struct api_request request = {.api = look->api, .exchange = look->exchange};

    if (look->exchange == NULL) {
        json_decref(look->json);
    } else {
        http_on_close(look->exchange, NULL, NULL);
        if (look->json != NULL)
            api_reply(&request, look->json);
        else
            refuse(look->api, look->exchange, &look->err);
    }
    free(look);
}

static void on_look_closed(void *ctx)
{
    struct look *look = ctx;

    look->exchange = NULL;
}

static void look_at(struct api_request *request, const char *otherwise,
                    int (*run)(const char *root, const char *path, json_t **ret_json,
                               struct err *err))
{
    struct look *look = calloc(1, sizeof(*look));
    const struct alloc *alloc;

    check(look != NULL);
    if (!find_root(request, look->root, &alloc) || !find_path(request, otherwise, look->path)) {
        free(look);
        return;
    }
    look->api = request->api;
    look->exchange = request->exchange;
    look->run = run;
    http_on_close(look->exchange, on_look_closed, look);
    io_work_submit(daemon_loop(look->api->daemon), &look->work, run_look, look_done, look);
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

enum read_outcome {
    READ_DATA, /* bytes in `data`, or an event */
    READ_IDLE, /* at the end, and more may come */
    READ_END,
    READ_FAILED,
};

struct stream {
    struct api *api;
    struct http_exchange *exchange; /* NULL: the peer is gone */
    struct io_work work;
    struct io_timer timer;
    bool working, begun, paused;
    uint32_t looks; /* at the end, since the last heartbeat */

    /* What to read. */
    char root[API_ROOT_SIZE], path[API_PATH_SIZE];
    char task[SPEC_NAME_SIZE], type[8]; /* a log; task is empty for other files */
    bool plain, follow, from_end;
    int64_t left; /* bytes still wanted, -1: all */

    /* Where it is.  Only the work under way touches these. */
    int fd;
    int64_t offset;
    int64_t number, last; /* of the log's file, and of the last one wanted */
    enum read_outcome outcome;
    const char *event;
    size_t length;
    struct err err;
    char data[BLOCK_SIZE];
};

static struct api_log log_of(const struct stream *stream)
{
    return (struct api_log){.root = stream->root, .task = stream->task, .type = stream->type};
}

static int open_file(struct stream *stream)
{
    struct stat found;
    int code = api_file_open(stream->root, stream->path, &stream->fd, &stream->err);

    if (code != 0 || !stream->from_end || stream->task[0] != '\0')
        return code;
    if (fstat(stream->fd, &found) != 0)
        return err_os(&stream->err, ERR_IO, errno, "cannot look at the file");
    stream->offset = stream->offset < found.st_size ? found.st_size - stream->offset : 0;
    return 0;
}

static int open_first(struct stream *stream)
{
    struct api_log log = log_of(stream);
    struct api_log_place place;

    if (stream->task[0] == '\0')
        return open_file(stream);
    /* A file that is rotated away between finding and opening it is looked for again. */
    for (int tries = 0;; tries++) {
        int code = api_log_find(&log, stream->offset, stream->from_end, &place, &stream->err);
        if (code != 0)
            return code;
        api_log_path(&log, place.number, stream->path);
        code = open_file(stream);
        if (code != ERR_GONE || tries == 8) {
            stream->number = place.number;
            stream->offset = place.offset;
            stream->last = stream->follow ? INT64_MAX : place.last;
            return code;
        }
    }
}

/* Reads a block; true unless there is nothing. */
static bool read_block(struct stream *stream)
{
    size_t wanted = sizeof(stream->data);

    if (stream->left >= 0 && stream->left < (int64_t)wanted)
        wanted = (size_t)stream->left;
    ssize_t length = pread(stream->fd, stream->data, wanted, stream->offset);
    if (length < 0) {
        (void)err_os(&stream->err, ERR_IO, errno, "cannot read"); /* only to be filled */
        stream->outcome = READ_FAILED;
        return true;
    }
    stream->length = (size_t)length;
    stream->offset += length;
    stream->left -= stream->left >= 0 ? length : 0;
    stream->outcome = READ_DATA;
    return length > 0;
}

/* At the end of one of a log's files.  A later file means that this one is complete, so it is read
 * once more before the step. */
static bool step_log(struct stream *stream)
{
    struct api_log log = log_of(stream);
    int64_t next;

    if (stream->number >= stream->last) {
        stream->outcome = READ_END;
        return false;
    }
    if (api_log_next(&log, stream->number, &next, NULL) != 0) {
        stream->outcome = stream->follow ? READ_IDLE : READ_END;
        return false;
    }
    if (stream->fd >= 0 && read_block(stream))
        return false;
    if (stream->fd >= 0)
        (void)close(stream->fd); /* only read from */
    stream->fd = -1;
    stream->number = next;
    stream->offset = 0;
    api_log_path(&log, next, stream->path);
    /* It may be gone again already: the next look finds the one after it. */
    int code = open_file(stream);
    if (code != 0 && code != ERR_GONE)
        stream->outcome = READ_FAILED;
    return code == 0 || code == ERR_GONE;
}

/* At the end of a file that is followed: has something happened to it? */
static void look_at_end(struct stream *stream)
{
    struct stat found;

    stream->outcome = READ_IDLE;
    if (fstat(stream->fd, &found) != 0)
        return;
    if (found.st_size < stream->offset) {
        stream->offset = 0;
        stream->event = "file truncated";
        stream->outcome = READ_DATA;
    } else if (found.st_nlink == 0) {
        stream->event = "file deleted";
        stream->outcome = READ_END;
    }
}

static void run_read(struct io_work *work)
{
    struct stream *stream = work->ctx;

    stream->event = NULL;
    stream->length = 0;
    if (stream->fd < 0 && stream->task[0] != '\0' && stream->begun) {
        if (!step_log(stream))
            return;
    } else if (stream->fd < 0 && open_first(stream) != 0) {
        stream->outcome = READ_FAILED;
        return;
    }
    while (stream->fd >= 0 && !read_block(stream)) {
        if (stream->left == 0) {
            stream->outcome = READ_END;
            return;
        }
        if (stream->task[0] == '\0') {
            stream->outcome = READ_END;
            if (stream->follow)
                look_at_end(stream);
            return;
        }
        if (!step_log(stream))
            return;
    }
    if (stream->fd < 0)
        stream->outcome = READ_IDLE;
}

/* --- handing over --- */

static void go_on(struct stream *stream);

static void destroy(struct stream *stream)
{
    io_timer_stop(&stream->timer);
    if (stream->fd >= 0)
        (void)close(stream->fd); /* only read from */
    free(stream);
}

static void on_stream_closed(void *ctx)
{
    struct stream *stream = ctx;

    stream->exchange = NULL;
    api_stream_give(stream->api);
    if (!stream->working)
        destroy(stream);
}

static void on_drain(void *ctx)
{
    struct stream *stream = ctx;

    if (!stream->paused)
        return;
    stream->paused = false;
    go_on(stream);
}

static void on_look_again(struct io_timer *timer)
{
    go_on(timer->ctx);
}

static size_t write_block(struct stream *stream)
{
    struct api_frame frame = {
        .offset = stream->offset,
        .file = stream->path,
        .event = stream->event,
        .data = stream->data,
        .length = stream->length,
    };

    if (stream->plain)
        return http_stream_write(stream->exchange, stream->data, stream->length);
    return api_frame_write(stream->exchange, &frame);
}

static void finish(struct stream *stream)
{
    http_on_close(stream->exchange, NULL, NULL);
    api_stream_give(stream->api);
    if (stream->begun)
        http_stream_end(stream->exchange);
    else
        refuse(stream->api, stream->exchange, &stream->err);
    destroy(stream);
}

/* At the end: look again later, and now and then say that we are still here. */
static void idle(struct stream *stream)
{
    struct api_frame heartbeat = {0};

    if (!stream->plain && ++stream->looks % HEARTBEAT_LOOKS == 0)
        (void)api_frame_write(stream->exchange, &heartbeat); /* few bytes, seldom */
    io_timer_start(daemon_loop(stream->api->daemon), &stream->timer, loop_now_ms() + LOOK_AGAIN_MS,
                   on_look_again, stream);
}

static void read_done(struct io_work *work)
{
    struct stream *stream = work->ctx;
    size_t queued = 0;

    stream->working = false;
    if (stream->exchange == NULL) {
        destroy(stream);
        return;
    }
    if (stream->outcome == READ_FAILED) {
        finish(stream);
        return;
    }
    if (!stream->begun) {
        stream->begun = true;
        http_stream_begin(stream->exchange, 200, stream->plain ? "text/plain" : "application/json",
                          on_drain, stream);
    }
    if (stream->length > 0 || (stream->event != NULL && !stream->plain))
        queued = write_block(stream);
    if (stream->outcome == READ_END)
        finish(stream);
    else if (stream->outcome == READ_IDLE)
        idle(stream);
    else if (queued > API_STREAM_QUEUE_MAX)
        stream->paused = true;
    else
        go_on(stream);
}

static void go_on(struct stream *stream)
{
    stream->working = true;
    io_work_submit(daemon_loop(stream->api->daemon), &stream->work, run_read, read_done, stream);
}

/* --- the requests --- */

/* A stream for REQUEST, not under way yet; NULL after refusing it. */
static struct stream *stream_new(struct api_request *request, const struct alloc **ret_alloc)
{
    struct stream *stream = malloc(sizeof(*stream));

    check(stream != NULL);
    memset(stream, 0, offsetof(struct stream, data)); /* a block is touched when it is read */
    stream->api = request->api;
    stream->exchange = request->exchange;
    stream->fd = -1;
    stream->left = -1;
    if (find_root(request, stream->root, ret_alloc))
        return stream;
    free(stream);
    return NULL;
}

static void start(struct api_request *request, struct stream *stream)
{
    if (!api_stream_take(request)) {
        free(stream);
        return;
    }
    http_on_close(stream->exchange, on_stream_closed, stream);
    go_on(stream);
}

void api_fs_cat(struct api_request *request)
{
    const struct alloc *alloc;
    struct stream *stream = stream_new(request, &alloc);

    if (stream == NULL)
        return;
    stream->plain = true;
    if (find_path(request, NULL, stream->path))
        start(request, stream);
    else
        free(stream);
}

void api_fs_readat(struct api_request *request)
{
    const struct alloc *alloc;
    struct stream *stream = stream_new(request, &alloc);
    int64_t limit = 0;

    if (stream == NULL)
        return;
    stream->plain = true;
    if (!find_path(request, NULL, stream->path) ||
        !api_query_number(request, "offset", &stream->offset) ||
        !api_query_number(request, "limit", &limit)) {
        free(stream);
        return;
    }
    stream->left = limit > 0 ? limit : -1;
    stream->offset = stream->offset > 0 ? stream->offset : 0;
    start(request, stream);
}

/* Origin, offset and follow; false after refusing the request. */
static bool read_position(struct api_request *request, struct stream *stream)
{
    const char *origin = http_query(request->exchange, "origin");

    if (origin != NULL && origin[0] != '\0' && !text_equal(origin, "start") &&
        !text_equal(origin, "end")) {
        api_refuse(request, 400, "origin must be start or end");
        return false;
    }
    stream->from_end = origin != NULL && text_equal(origin, "end");
    if (!api_query_bool(request, "follow", &stream->follow) ||
        !api_query_number(request, "offset", &stream->offset))
        return false;
    stream->offset = stream->offset > 0 ? stream->offset : 0;
    return true;
}

void api_fs_stream(struct api_request *request)
{
    const struct alloc *alloc;
    struct stream *stream = stream_new(request, &alloc);

    if (stream == NULL)
        return;
    stream->follow = true;
    if (find_path(request, NULL, stream->path) && read_position(request, stream))
        start(request, stream);
    else
        free(stream);
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
    const struct task *task =
        strlen(name) < SPEC_NAME_SIZE
            ? agent_task(daemon_core(request->api->daemon), request->argument, name)
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
    const struct alloc *alloc;
    struct stream *stream = stream_new(request, &alloc);

    if (stream == NULL)
        return;
    if (!has_log(request, name, type) || !api_query_bool(request, "plain", &stream->plain) ||
        !read_position(request, stream)) {
        free(stream);
        return;
    }
    (void)text_copy(stream->task, sizeof(stream->task), name); /* has_log has seen */
    (void)text_copy(stream->type, sizeof(stream->type), type); /* that they fit */
    start(request, stream);
}
