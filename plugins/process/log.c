/*
 * What a plugin writes to its standard error, line by line into our log.
 *
 * Plugins in Go write an object a line (hclog): its level is ours then, and its text what is said.
 * The file is cut when all of it was read and it has become long, so that it is bounded as long as
 * somebody reads it.
 */
#include "plugins/process/part.h"

#include "io/log.h"

#include <fcntl.h>
#include <jansson.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    FILE_BYTES_MAX = 1 << 20,
    READ_BYTES = 64 << 10, /* at once: what is longer, and was written meanwhile, is left out */
    LINES_AT_ONCE = 64,
    LINE_BYTES_MAX = 1024,
};

static void say(const struct log_tail *tail, const char *level_text, const char *text)
{
    enum log_level level;

    if (level_text == NULL || !log_level_from_text(level_text, &level))
        level = LOG_WARN;
    log_line(level, "plugins", "says plugin=%s text=%s", log_value(tail->name), log_value(text));
}

static void tell(struct log_tail *tail, const char *line)
{
    json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
    const char *level = json_string_value(json_object_get(object, "@level"));
    const char *text = json_string_value(json_object_get(object, "@message"));
    char said[LINE_BYTES_MAX];

    (void)text_copy(said, sizeof(said), text != NULL ? text : line); /* cut is enough */
    text_whole(said);
    text_clean(said);
    if (said[0] != '\0') {
        (void)text_copy(tail->last, sizeof(tail->last), said); /* likewise */
        say(tail, text != NULL ? level : NULL, said);
    }
    json_decref(object);
}

void log_tail_read(struct log_tail *tail)
{
    char *bytes = malloc(READ_BYTES + 1);
    struct stat status;
    size_t used = 0, lines = 0;

    check(bytes != NULL);
    if (tail->fd < 0 || fstat(tail->fd, &status) != 0) {
        free(bytes);
        return;
    }
    uint64_t length = (uint64_t)status.st_size;
    if (length < tail->offset)
        tail->offset = 0; /* it was cut */
    if (length - tail->offset > READ_BYTES)
        tail->offset = length - READ_BYTES;
    ssize_t got = pread(tail->fd, bytes, READ_BYTES, (off_t)tail->offset);
    for (char *end; got > 0 && (end = memchr(bytes + used, '\n', (size_t)got - used)) != NULL;) {
        *end = '\0';
        if (lines++ < LINES_AT_ONCE)
            tell(tail, bytes + used);
        used = (size_t)(end - bytes) + 1;
    }
    free(bytes);
    if (used == 0 && got == READ_BYTES)
        used = READ_BYTES; /* of a line that does not end */
    tail->offset += used;
    if (lines > LINES_AT_ONCE)
        log_warn("plugins", "says more than is kept plugin=%s lines=%zu", log_value(tail->name),
                 lines - LINES_AT_ONCE);
    if (tail->offset > FILE_BYTES_MAX && ftruncate(tail->fd, 0) == 0)
        tail->offset = 0;
}

static void on_change(struct io_change *change)
{
    log_tail_read(change->ctx);
}

void log_tail_start(struct loop *loop, struct log_tail *tail, const char *path, bool begin)
{
    struct stat status;

    log_tail_stop(tail);
    tail->last[0] = '\0';
    tail->fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (tail->fd < 0 || fstat(tail->fd, &status) != 0)
        return;
    tail->offset = begin ? 0 : (uint64_t)status.st_size;
    if (!io_change_start(loop, &tail->change, tail->fd, on_change, tail))
        log_warn("plugins", "what it says is not followed (fs.inotify.max_user_watches) plugin=%s",
                 log_value(tail->name));
    log_tail_read(tail);
}

void log_tail_stop(struct log_tail *tail)
{
    io_change_stop(&tail->change);
    if (tail->fd >= 0)
        (void)close(tail->fd); /* of reading alone */
    tail->fd = -1;
}
