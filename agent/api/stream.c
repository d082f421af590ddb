/*
 * Reading a file or a log over HTTP, piece by piece.
 *
 * Read a block on the pool, hand it over, wait for the reader when it lags, and at the end of a
 * followed file look again every 200 ms.  Nothing wakes up while nobody follows.  A stream has at
 * most one piece of work under way, and is freed when its peer and its work are both gone.
 * Follows nomad v1.1.2 client/fs_endpoint.go: frames, origins, and the step from one rotated log
 * file to the next.
 */
#include "agent/api/files.h"
#include "agent/api/part.h"

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

enum read_outcome {
    READ_DATA, /* bytes in `data`, or an event */
    READ_IDLE, /* at the end, and more may come */
    READ_END,
    READ_FAILED,
};

struct stream {
    struct api_stream place;
    struct api *api;
    struct http_exchange *exchange; /* NULL: the peer is gone */
    struct io_work work;
    struct io_timer timer;
    bool working, begun, paused;
    uint32_t looks; /* at the end, since the last heartbeat */

    /* Where it is.  While work is under way only that touches these. */
    struct api_reading what; /* a log's path changes with the file */
    int fd;
    int64_t offset;
    int64_t number, last; /* of the log's file, and of the last one wanted */
    enum read_outcome outcome;
    const char *event;
    size_t length;
    struct err err;
    char data[BLOCK_SIZE];
};

/* --- reading, on the pool --- */

static struct api_log log_of(const struct stream *stream)
{
    return (struct api_log){
        .root = stream->what.root, .task = stream->what.task, .type = stream->what.type};
}

static int open_file(struct stream *stream)
{
    struct stat found;
    int code = api_file_open(stream->what.root, stream->what.path, &stream->fd, &stream->err);

    if (code != 0 || !stream->what.from_end || stream->what.task[0] != '\0')
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

    if (stream->what.task[0] == '\0')
        return open_file(stream);
    /* A file that is rotated away between finding and opening it is looked for again. */
    for (int tries = 0;; tries++) {
        int code = api_log_find(&log, stream->offset, stream->what.from_end, &place, &stream->err);
        if (code != 0)
            return code;
        api_log_path(&log, place.number, stream->what.path);
        code = open_file(stream);
        if (code != ERR_GONE || tries == 8) {
            stream->number = place.number;
            stream->offset = place.offset;
            stream->last = stream->what.follow ? INT64_MAX : place.last;
            return code;
        }
    }
}

/* Reads a block; true unless there is nothing. */
static bool read_block(struct stream *stream)
{
    size_t wanted = sizeof(stream->data);

    if (stream->what.left >= 0 && stream->what.left < (int64_t)wanted)
        wanted = (size_t)stream->what.left;
    ssize_t length = pread(stream->fd, stream->data, wanted, stream->offset);
    if (length < 0) {
        (void)err_os(&stream->err, ERR_IO, errno, "cannot read"); /* only to be filled */
        stream->outcome = READ_FAILED;
        return true;
    }
    stream->length = (size_t)length;
    stream->offset += length;
    stream->what.left -= stream->what.left >= 0 ? length : 0;
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
        stream->outcome = stream->what.follow ? READ_IDLE : READ_END;
        return false;
    }
    if (stream->fd >= 0 && read_block(stream))
        return false;
    if (stream->fd >= 0)
        (void)close(stream->fd); /* only read from */
    stream->fd = -1;
    stream->number = next;
    stream->offset = 0;
    api_log_path(&log, next, stream->what.path);
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
    if (stream->fd < 0 && stream->what.task[0] != '\0' && stream->begun) {
        if (!step_log(stream))
            return;
    } else if (stream->fd < 0 && open_first(stream) != 0) {
        stream->outcome = READ_FAILED;
        return;
    }
    while (stream->fd >= 0 && !read_block(stream)) {
        if (stream->what.left == 0) {
            stream->outcome = READ_END;
            return;
        }
        if (stream->what.task[0] == '\0') {
            stream->outcome = READ_END;
            if (stream->what.follow)
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
    api_stream_give(&stream->place);
    if (!stream->working)
        destroy(stream);
}

static void on_drain(void *ctx)
{
    struct stream *stream = ctx;

    if (!stream->paused)
        return;
    stream->paused = false;
    api_stream_stalls(&stream->place, false);
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
        .file = stream->what.path,
        .event = stream->event,
        .data = stream->data,
        .length = stream->length,
    };

    if (stream->what.plain)
        return http_stream_write(stream->exchange, stream->data, stream->length);
    return api_frame_write(stream->exchange, &frame);
}

static void finish(struct stream *stream)
{
    http_on_close(stream->exchange, NULL, NULL);
    api_stream_give(&stream->place);
    if (stream->begun)
        http_stream_end(stream->exchange);
    else
        api_refuse_file(stream->api, stream->exchange, &stream->err);
    destroy(stream);
}

/* At the end: look again later, and now and then say that we are still here. */
static void idle(struct stream *stream)
{
    struct api_frame heartbeat = {0};

    if (!stream->what.plain && ++stream->looks % HEARTBEAT_LOOKS == 0)
        (void)api_frame_write(stream->exchange, &heartbeat); /* few bytes, seldom */
    io_timer_start(stream->api->parts->loop, &stream->timer, loop_now_ms() + LOOK_AGAIN_MS,
                   on_look_again, stream);
}

/* Until the peer has taken what is queued. */
static void pause_reading(struct stream *stream)
{
    stream->paused = true;
    api_stream_stalls(&stream->place, true);
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
        api_stream_begin(stream->exchange, stream->what.plain, on_drain, stream);
    }
    if (stream->length > 0 || (stream->event != NULL && !stream->what.plain))
        queued = write_block(stream);
    if (stream->outcome == READ_END)
        finish(stream);
    else if (stream->outcome == READ_IDLE)
        idle(stream);
    else if (queued > API_STREAM_QUEUE_MAX)
        pause_reading(stream);
    else
        go_on(stream);
}

static void go_on(struct stream *stream)
{
    stream->working = true;
    io_work_submit_ahead(stream->api->parts->loop, &stream->work, run_read, read_done, stream);
}

/* --- the door --- */

void api_stream_start(struct api_request *request, const struct api_reading *reading)
{
    struct stream *stream = malloc(sizeof(*stream));

    check(stream != NULL);
    memset(stream, 0, offsetof(struct stream, data)); /* a block is touched when it is read */
    if (!api_stream_take(request, &stream->place, reading->follow)) {
        free(stream);
        return;
    }
    stream->api = request->api;
    stream->exchange = request->exchange;
    stream->what = *reading;
    stream->offset = reading->offset;
    stream->fd = -1;
    http_on_close(stream->exchange, on_stream_closed, stream);
    go_on(stream);
}
