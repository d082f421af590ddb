/*
 * Reading a file or a log over HTTP, piece by piece.
 *
 * Read a block on the pool, hand it over, wait for the reader when it lags.  At the end of what is
 * followed the file is watched, and of a log the directory, too, for the file that comes after it;
 * then it is read once more, since what came before the watch is told by nobody.  A stream that
 * waits holds no memory for bytes.  It has at most one piece of work under way, and is freed when
 * its peer and its work are both gone.
 * Follows nomad v1.1.2 client/fs_endpoint.go: frames, origins, and the step from one rotated log
 * file to the next.
 */
#include "agent/api/part.h"
#include "agent/api/streams/files.h"

#include "io/scope.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    BLOCK_SIZE = 64 << 10,
    CROWD_MIN = 64, /* so many streams at once have */
    CROWD_BLOCK_SIZE = 16 << 10,
    LOOK_AGAIN_MS = 200,      /* where the system watches no more files for us */
    PACE_MS = 4,              /* of looking at a file that changes all the time */
    HEARTBEAT_MS = 10 * 1000, /* an empty frame says that we are alive */
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
    struct io_timer look, heartbeat;
    struct io_change file_change, directory_change;
    bool working, begun, paused, waiting;
    bool caught_up;      /* has been at the end, and said so with a first heartbeat */
    bool changed, alone; /* since the last look; nobody tells of changes */
    uint64_t looked_at_ms;
    size_t block_size; /* of the next read */

    /* Where it is.  While work is under way only that touches these. */
    struct api_reading what; /* a log's path changes with the file */
    int fd, directory_fd;    /* -1: none; the directory's only until it is watched */
    bool watched;            /* the file that is open */
    int64_t offset;
    int64_t number, last; /* of the log's file, and of the last one wanted */
    enum read_outcome outcome;
    const char *event;
    size_t length;
    struct err err;
    char *data; /* owned; only while bytes are on their way */
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

    if (code == 0)
        stream->watched = false;
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
    if (stream->what.follow)
        (void)api_log_directory(&log, &stream->directory_fd); /* without it we look again */
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
    size_t wanted = stream->block_size;

    if (stream->data == NULL) {
        stream->data = malloc(stream->block_size);
        check(stream->data != NULL);
    }
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

/* There is no later file.  Somebody may have removed this one, and then it may have been made anew
 * under its name; true if so: it is open.  Else the outcome says whether anything can come. */
static bool open_again(struct stream *stream)
{
    struct api_log log = log_of(stream);
    struct stat found;
    scoped_fd int directory = -1;

    stream->outcome = stream->what.follow ? READ_IDLE : READ_END;
    if (!stream->what.follow ||
        (stream->fd >= 0 && (fstat(stream->fd, &found) != 0 || found.st_nlink > 0)))
        return false;
    int old = stream->fd, code = open_file(stream);
    if (code == 0) {
        if (old >= 0)
            (void)close(old); /* only read from */
        stream->offset = 0;
        return true;
    }
    /* Not kept open: as long as it is, nobody is told that its directory goes. */
    if (old >= 0)
        (void)close(old);
    stream->fd = -1;
    if (api_log_directory(&log, &directory) != 0)
        stream->outcome = READ_END; /* the alloc has been removed */
    return false;
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
    if (api_log_next(&log, stream->number, &next, NULL) != 0)
        return open_again(stream);
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

/* What the end of READ_BLOCK leaves of its memory. */
static void keep_bytes(struct stream *stream)
{
    char *kept = stream->length > 0 ? realloc(stream->data, stream->length) : NULL;

    if (kept == NULL && stream->length > 0)
        return;
    if (kept == NULL)
        free(stream->data);
    stream->data = kept;
}

static void look(struct stream *stream)
{
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

static void run_read(struct io_work *work)
{
    struct stream *stream = work->ctx;

    look(stream);
    keep_bytes(stream);
}

/* --- handing over --- */

static void go_on(struct stream *stream);

static void stop_waiting(struct stream *stream)
{
    stream->waiting = false;
    io_timer_stop(&stream->look);
    io_timer_stop(&stream->heartbeat);
}

static void destroy(struct stream *stream)
{
    stop_waiting(stream);
    io_change_stop(&stream->file_change);
    io_change_stop(&stream->directory_change);
    if (stream->fd >= 0)
        (void)close(stream->fd); /* only read from, both */
    if (stream->directory_fd >= 0)
        (void)close(stream->directory_fd);
    free(stream->data);
    free(stream);
}

static void on_stream_closed(void *ctx)
{
    struct stream *stream = ctx;

    stream->exchange = NULL;
    api_stream_give(&stream->place);
    stop_waiting(stream);
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

static void on_look_again(struct io_timer *timer)
{
    struct stream *stream = timer->ctx;

    stop_waiting(stream);
    go_on(stream);
}

static void look_after(struct stream *stream, uint64_t delay_ms)
{
    io_timer_start(stream->api->parts->loop, &stream->look, stream->looked_at_ms + delay_ms,
                   on_look_again, stream);
}

static void on_change(struct io_change *change)
{
    struct stream *stream = change->ctx;

    stream->changed = true;
    if (stream->waiting && stream->look.slot == 0)
        look_after(stream, PACE_MS);
}

static void on_heartbeat(struct io_timer *timer)
{
    struct stream *stream = timer->ctx;
    struct api_frame heartbeat = {0};

    (void)api_frame_write(stream->exchange, &heartbeat); /* few bytes, seldom */
    io_timer_start(stream->api->parts->loop, timer, loop_now_ms() + HEARTBEAT_MS, on_heartbeat,
                   stream);
}

/* Has the changes told of what is open; if that cannot be, we look again and again. */
static void watch(struct stream *stream)
{
    struct loop *loop = stream->api->parts->loop;
    bool told = stream->fd < 0 ||
                io_change_start(loop, &stream->file_change, stream->fd, on_change, stream);

    if (stream->fd < 0)
        io_change_stop(&stream->file_change);
    if (stream->directory_fd >= 0) {
        told &= io_change_start(loop, &stream->directory_change, stream->directory_fd, on_change,
                                stream);
        (void)close(stream->directory_fd); /* only looked at */
        stream->directory_fd = -1;
    } else if (stream->what.task[0] != '\0') {
        told &= stream->directory_change.entry != NULL;
    }
    stream->watched = true;
    stream->alone = !told;
}

/* At the end of what is followed. */
static void idle(struct stream *stream)
{
    if (!stream->watched) {
        watch(stream);
        go_on(stream);
        return;
    }
    stream->waiting = true;
    if (stream->changed)
        look_after(stream, PACE_MS);
    else if (stream->alone)
        look_after(stream, LOOK_AGAIN_MS);
    if (!stream->what.plain)
        io_timer_start(stream->api->parts->loop, &stream->heartbeat,
                       stream->caught_up ? loop_now_ms() + HEARTBEAT_MS : 0, on_heartbeat, stream);
    stream->caught_up = true;
}

/* Until the peer has taken what is queued. */
static void pause_reading(struct stream *stream)
{
    stream->paused = true;
    api_stream_stalls(&stream->place, true);
}

/* Bytes that may wait for one peer: the more of them there are, the less. */
static size_t queue_max(const struct api *api)
{
    size_t share = API_STREAMS_BYTES_MAX / (api->followers_count + api->reads_count + 1);

    return share < API_STREAM_QUEUE_MAX ? share : API_STREAM_QUEUE_MAX;
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
    free(stream->data);
    stream->data = NULL;
    if (stream->outcome == READ_END)
        finish(stream);
    else if (stream->outcome == READ_IDLE)
        idle(stream);
    else if (queued > queue_max(stream->api))
        pause_reading(stream);
    else
        go_on(stream);
}

static void go_on(struct stream *stream)
{
    size_t streams = stream->api->followers_count + stream->api->reads_count;

    stream->working = true;
    stream->changed = false;
    stream->looked_at_ms = loop_now_ms();
    stream->block_size = streams < CROWD_MIN ? BLOCK_SIZE : CROWD_BLOCK_SIZE;
    io_work_submit_ahead(stream->api->parts->loop, &stream->work, run_read, read_done, stream);
}

/* --- the door --- */

void api_stream_start(struct api_request *request, const struct api_reading *reading)
{
    struct stream *stream = calloc(1, sizeof(*stream));

    check(stream != NULL);
    if (!api_stream_take(request, &stream->place, reading->follow)) {
        free(stream);
        return;
    }
    stream->api = request->api;
    stream->exchange = request->exchange;
    stream->what = *reading;
    stream->offset = reading->offset;
    stream->fd = stream->directory_fd = -1;
    http_on_close(stream->exchange, on_stream_closed, stream);
    go_on(stream);
}
