/*
 * The output of a container, from the Engine's log into the log files of its task.
 *
 * The Engine tells each message with its time, and goes on from a time when it is asked again.  How
 * far that was written is in the task's file (docker.h, struct log_position): after a crash of the
 * daemon nothing is missing and nothing is there twice, as long as the Engine still has it.  What
 * cannot be written stays with the Engine, and is asked for again.
 *
 * The files are those of the shim (shim/log.c): counted from 0, of bounded size, the oldest
 * deleted, changed at the end of a line if there is one, and opened each time beneath the alloc's
 * directory without a link, since tasks may change what is in it.
 */
#include "drivers/docker/docker.h"

#include "drivers/shim/numbers.h"
#include "io/scope.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
    LOG_NAME_SIZE = SPEC_NAME_SIZE + 56,
    MESSAGE_MAX = FRAME_MAX,
    NEW_SINCE_NS = 2000000000, /* messages may come out of order, by less */
    AGAIN_MS = 500,
    AGAIN_SLOWEST_MS = 10000,
    CUT_MAX = 1000, /* files that can have been begun since the last position */

    RESERVE_PART = 50, /* as shim/log.c leaves of a disk */
    RESERVE_BYTES_MAX = 64 * 1024 * 1024,
};

#define LOGS "alloc/logs"

struct bytes {
    char *items; /* owned */
    size_t used, size;
};

struct logs {
    struct container *container;
    struct http_request *request;
    struct io_timer again;
    uint64_t wait_ms;
    bool is_over; /* nothing more can be read */
    void (*on_drained)(struct container *container);

    uint64_t skip;        /* messages that were written before */
    struct frames frames; /* of the messages that come */
    struct bytes message, output[LOG_STREAMS];
    struct log_position position; /* with what waits in `output` */
};

static void add(struct bytes *to, const char *bytes, size_t length)
{
    if (to->used + length > to->size) {
        to->size = (to->used + length) * 2;
        to->items = realloc(to->items, to->size);
        check(to->items != NULL);
    }
    memcpy(to->items + to->used, bytes, length);
    to->used += length;
}

/* --- files --- */

static void file_name(const struct container *container, size_t stream, const char *number,
                      char to[LOG_NAME_SIZE])
{
    check(text_format(to, LOG_NAME_SIZE, "%s.%s.%s", container->run->key.task,
                      stream == 0 ? "stdout" : "stderr", number));
}

static int open_directory(const struct container *container)
{
    scoped_fd int alloc =
        open(container->record.alloc_dir, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

    return alloc < 0 ? -1 : beneath_open(alloc, LOGS, O_RDONLY | O_DIRECTORY, 0);
}

static int open_file(const struct container *container, int directory, size_t stream,
                     uint64_t number, int flags, struct stat *ret_status)
{
    char name[LOG_NAME_SIZE], text[24];

    check(text_format(text, sizeof(text), "%llu", (unsigned long long)number));
    file_name(container, stream, text, name);
    scoped_fd int fd = directory < 0 ? -1
                                     : beneath_open(directory, name,
                                                    O_WRONLY | O_NONBLOCK | O_NOCTTY | flags, 0644);
    if (fd < 0 || fstat(fd, ret_status) != 0 || !S_ISREG(ret_status->st_mode) ||
        ret_status->st_nlink > 1)
        return -1;
    return take_fd(&fd);
}

static bool is_disk_full(int fd)
{
    struct statvfs disk;

    if (fstatvfs(fd, &disk) != 0)
        return false;
    uint64_t total = (uint64_t)disk.f_blocks * disk.f_frsize, reserve = total / RESERVE_PART;
    uint64_t least = reserve < RESERVE_BYTES_MAX ? reserve : RESERVE_BYTES_MAX;
    return (uint64_t)disk.f_bavail * disk.f_frsize < least;
}

void logs_find_first(struct container *container)
{
    struct log_position *logs = &container->record.logs;
    scoped_fd int directory = open_directory(container);

    for (size_t i = 0; i < LOG_STREAMS; i++) {
        char prefix[LOG_NAME_SIZE];
        struct stat status = {.st_size = 0};

        file_name(container, i, "", prefix);
        (void)numbers_scan(directory, prefix, 0, &logs->number[i]); /* none: number 0 */
        scoped_fd int fd = open_file(container, directory, i, logs->number[i], 0, &status);
        logs->size[i] = fd < 0 ? 0 : (uint64_t)status.st_size;
    }
}

/* What lies beyond the position was written by a daemon that could not note it any more. */
static void cut_off(const struct container *container)
{
    const struct log_position *logs = &container->record.logs;
    scoped_fd int directory = open_directory(container);

    for (size_t i = 0; i < LOG_STREAMS; i++) {
        struct stat status;
        scoped_fd int fd = open_file(container, directory, i, logs->number[i], 0, &status);

        if (fd >= 0 && (uint64_t)status.st_size > logs->size[i])
            (void)!ftruncate(fd, (off_t)logs->size[i]); /* else a part is there twice */
        for (uint64_t number = logs->number[i] + 1; number <= logs->number[i] + CUT_MAX; number++) {
            char name[LOG_NAME_SIZE], text[24];

            check(text_format(text, sizeof(text), "%llu", (unsigned long long)number));
            file_name(container, i, text, name);
            if (directory < 0 || unlinkat(directory, name, 0) != 0)
                break;
        }
    }
}

static void delete_old(const struct container *container, int directory, size_t stream,
                       uint64_t number)
{
    uint64_t most = container->record.log_files_max, newest;
    char prefix[LOG_NAME_SIZE];

    file_name(container, stream, "", prefix);
    if (number >= most)
        (void)numbers_scan(directory, prefix, number - most + 1, &newest); /* there is one */
}

/* How many of the BYTES go into a file that has ROOM for some: up to the end of a line. */
static size_t part_of(const struct bytes *bytes, size_t from, size_t room, bool is_empty)
{
    size_t left = bytes->used - from;

    if (left <= room)
        return left;
    const char *line = memrchr(bytes->items + from, '\n', room);
    return line != NULL ? (size_t)(line - (bytes->items + from)) + 1 : is_empty ? room : 0;
}

/* Writes what waits of STREAM; false: it cannot be. */
static bool write_stream(struct logs *logs, int directory, size_t stream)
{
    const struct container *container = logs->container;
    struct log_position *position = &logs->position;
    const struct bytes *output = &logs->output[stream];
    size_t done = 0, most = container->record.log_bytes_max;

    while (done < output->used) {
        struct stat status;
        scoped_fd int fd = open_file(container, directory, stream, position->number[stream],
                                     O_APPEND | O_CREAT, &status);

        if (fd < 0 || is_disk_full(fd))
            return false;
        size_t size = (size_t)status.st_size;
        size_t part = part_of(output, done, size < most ? most - size : 0, size == 0);
        if (part > 0 && write(fd, output->items + done, part) != (ssize_t)part)
            return false;
        done += part;
        position->size[stream] = size + part;
        if (done < output->used) {
            position->number[stream]++;
            position->size[stream] = 0;
            delete_old(container, directory, stream, position->number[stream]);
        }
    }
    return true;
}

/* All that waits, then the position: in this order. */
static bool write_all(struct logs *logs)
{
    scoped_fd int directory = open_directory(logs->container);
    bool good = true, any = false;

    for (size_t i = 0; i < LOG_STREAMS && good; i++) {
        any |= logs->output[i].used > 0;
        good = logs->output[i].used == 0 || write_stream(logs, directory, i);
        logs->output[i].used = 0;
    }
    if (!good)
        return false;
    logs->container->record.logs = logs->position;
    if (any)
        container_put(logs->container);
    return true;
}

/* --- messages --- */

/* One of TIME_NS has been taken. */
static void move_on(struct log_position *position, int64_t time_ns)
{
    if (time_ns > position->newest_ns) {
        position->newest_ns = time_ns;
        position->newest_count = 1;
    } else if (time_ns == position->newest_ns) {
        position->newest_count++;
    }
    position->count += time_ns >= position->since_ns;
    position->next_count += position->next_ns != 0 && time_ns >= position->next_ns;
    if (position->next_ns != 0 && position->newest_ns - position->next_ns < NEW_SINCE_NS)
        return;
    if (position->next_ns != 0) {
        position->since_ns = position->next_ns;
        position->count = position->next_count;
    }
    position->next_ns = position->newest_ns;
    position->next_count = position->newest_count;
}

/* "<time> <what was written>"; false: it is no such thing. */
static bool take_message(struct logs *logs, size_t stream, const char *bytes, size_t length)
{
    const char *space = memchr(bytes, ' ', length < 48 ? length : 48);
    int64_t time_ns;

    if (space == NULL || !engine_time(bytes, (size_t)(space - bytes), &time_ns))
        return false;
    if (logs->skip > 0 && time_ns <= logs->position.newest_ns) {
        logs->skip--;
        return true;
    }
    logs->skip = 0; /* the Engine does not have all of them any more */
    add(&logs->output[stream], space + 1, length - (size_t)(space + 1 - bytes));
    move_on(&logs->position, time_ns);
    return true;
}

/* Of a terminal there are no frames, and one stream only. */
static bool take_lines(struct logs *logs, const char *bytes, size_t length)
{
    bool good = true;

    while (good && length > 0) {
        const char *end = memchr(bytes, '\n', length);
        size_t part = end == NULL ? length : (size_t)(end - bytes) + 1;

        if (logs->message.used + part > MESSAGE_MAX)
            return false;
        add(&logs->message, bytes, part);
        if (end != NULL) {
            good = take_message(logs, 0, logs->message.items, logs->message.used);
            logs->message.used = 0;
        }
        bytes += part;
        length -= part;
    }
    return good;
}

static bool take_frames(struct logs *logs, const char *bytes, size_t length)
{
    enum frames_found found;
    struct frame_part part;
    bool good = true;

    while (good && (found = frames_next(&logs->frames, &bytes, &length, &part)) != FRAMES_WAIT) {
        good = found == FRAMES_PART;
        if (!good)
            break;
        add(&logs->message, part.bytes, part.length);
        if (!part.is_last)
            continue;
        good = take_message(logs, part.stream, logs->message.items, logs->message.used);
        logs->message.used = 0;
    }
    return good;
}

/* --- following --- */

static void follow(struct logs *logs);

static void on_again(struct io_timer *timer)
{
    follow(timer->ctx);
}

static void again(struct logs *logs)
{
    logs->wait_ms = logs->wait_ms == 0                     ? AGAIN_MS
                    : logs->wait_ms * 2 > AGAIN_SLOWEST_MS ? AGAIN_SLOWEST_MS
                                                           : logs->wait_ms * 2;
    io_timer_start(logs->container->run->drivers->config.loop, &logs->again,
                   loop_now_ms() + logs->wait_ms, on_again, logs);
}

static bool on_bytes(void *ctx, const char *bytes, size_t length)
{
    struct logs *logs = ctx;
    bool good = logs->container->state.terminal ? take_lines(logs, bytes, length)
                                                : take_frames(logs, bytes, length);

    logs->wait_ms = 0;
    /* What was whole before something strange counts. */
    return write_all(logs) && good;
}

static void on_end(void *ctx, const struct http_reply *reply)
{
    struct logs *logs = ctx;
    struct container *container = logs->container;

    logs->request = NULL;
    if (container == NULL)
        return;
    /* 404: it is gone; 4xx, 501: this kind of log cannot be read. */
    logs->is_over = reply->status / 100 == 4 || reply->status == 501 ||
                    (reply->status == 200 && container->has_ended);
    if (!logs->is_over)
        again(logs);
    else
        logs->on_drained(container);
}

static void follow(struct logs *logs)
{
    struct container *container = logs->container;
    const struct log_position *position = &container->record.logs;
    char path[CONTAINER_NAME_SIZE + 128], since[48] = "";
    struct err err = {0};

    cut_off(container);
    logs->position = *position;
    logs->skip = position->count;
    logs->frames = (struct frames){0};
    logs->message.used = 0;
    for (size_t i = 0; i < LOG_STREAMS; i++)
        logs->output[i].used = 0;
    if (position->since_ns != 0)
        (void)text_format(since, sizeof(since), "&since=%lld.%09lld",
                          (long long)(position->since_ns / 1000000000),
                          (long long)(position->since_ns % 1000000000)); /* fits */
    check(text_format(path, sizeof(path),
                      "/containers/%s/logs?follow=1&stdout=1&stderr=1&timestamps=1%s",
                      container->name, since));
    const struct engine_ask ask = {.method = "GET",
                                   .path = path,
                                   .lasts = true,
                                   .on_data = on_bytes,
                                   .cb = on_end,
                                   .ctx = logs};
    logs->request = engine_ask(container->run->drivers, &ask, &err);
    if (logs->request == NULL)
        again(logs);
}

void logs_follow(struct container *container, void (*on_drained)(struct container *container))
{
    if (container->record.log_bytes_max == 0 || container->logs != NULL)
        return;
    container->logs = calloc(1, sizeof(*container->logs));
    check(container->logs != NULL);
    container->logs->container = container;
    container->logs->on_drained = on_drained;
    follow(container->logs);
}

bool logs_are_open(const struct container *container)
{
    return container->logs != NULL && !container->logs->is_over;
}

void logs_close(struct container *container)
{
    struct logs *logs = container->logs;

    if (logs == NULL)
        return;
    container->logs = NULL;
    logs->container = NULL; /* what comes from within the next call has nothing to do */
    io_timer_stop(&logs->again);
    if (logs->request != NULL)
        http_cancel(logs->request);
    free(logs->message.items);
    for (size_t i = 0; i < LOG_STREAMS; i++)
        free(logs->output[i].items);
    free(logs);
}
