/*
 * cairn-logs: reads the output of one task that a plugin has started, into the task's log files.
 *
 * Such a task is nobody's child of ours: its driver opens two pipes by their names and writes.  The
 * daemon may die at any time, and a pipe that nobody reads kills who writes to it; so that this
 * process reads it, which nobody's death concerns.  It has both ends open: a driver that closes its
 * own and opens it again, as one that is started anew, loses nothing.  Told that the task has
 * ended, it gives up its own end of writing, reads on until nobody else has one, for a short time,
 * and ends.
 */
#include "drivers/shim/reader.h"

#include "drivers/shim/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { LOOK_AFTER_MS = 1000, READER_USAGE = 2 };

struct reader {
    struct log_settings log;
    struct log_stream streams[READER_STREAMS];
    int signal_fd;
    char *buffer;
    uint64_t look_at_ms; /* when files are looked for under their names again, 0: nothing is new */
    uint64_t end_at_ms;  /* 0: nobody has said that no more is to come */
};

static bool open_all(struct reader *reader, char **words)
{
    static const char *const suffixes[READER_STREAMS] = {"stdout", "stderr"};
    sigset_t heard;

    reader->buffer =
        mmap(NULL, LOG_BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(sigemptyset(&heard) == 0);
    check(sigaddset(&heard, READER_END) == 0);
    check(sigprocmask(SIG_BLOCK, &heard, NULL) == 0);
    reader->signal_fd = signalfd(-1, &heard, SFD_CLOEXEC | SFD_NONBLOCK);
    if (reader->buffer == MAP_FAILED || reader->signal_fd < 0 ||
        !text_copy(reader->log.directory, sizeof(reader->log.directory), words[READER_DIRECTORY]) ||
        !text_copy(reader->log.name, sizeof(reader->log.name), words[READER_TASK]) ||
        !text_to_u64(words[READER_FILES_MAX], &reader->log.files_max) ||
        !text_to_u64(words[READER_BYTES_MAX], &reader->log.bytes_max))
        return false;
    reader->log.alloc_fd = open(words[READER_ALLOC_DIR], O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < READER_STREAMS; i++) {
        int fd = READER_FD_FIRST + i;

        (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); /* cannot fail */
        log_open(&reader->streams[i], &reader->log, suffixes[i]);
        reader->streams[i].pipe_fd = fd;
    }
    return true;
}

/* The same pipe, for reading alone: who still writes to it is seen to end. */
static void give_up_writing(struct log_stream *stream)
{
    char path[32];

    check(text_format(path, sizeof(path), "/proc/self/fd/%d", stream->pipe_fd));
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;                   /* then time ends it */
    (void)close(stream->pipe_fd); /* the other one is open */
    stream->pipe_fd = fd;
}

static void take_signal(struct reader *reader)
{
    struct signalfd_siginfo info;

    while (read(reader->signal_fd, &info, sizeof(info)) == sizeof(info))
        continue;
    if (reader->end_at_ms != 0)
        return;
    reader->end_at_ms = shim_now_ms() + DRAIN_MS;
    for (int i = 0; i < READER_STREAMS; i++)
        give_up_writing(&reader->streams[i]);
}

static void pass(struct reader *reader, struct log_stream *stream)
{
    ssize_t got = read(stream->pipe_fd, reader->buffer, LOG_BUFFER_BYTES);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        log_close(stream);
        return;
    }
    log_write(stream, &reader->log, reader->buffer, (size_t)got, shim_now_ms());
    if (reader->look_at_ms == 0)
        reader->look_at_ms = shim_now_ms() + LOOK_AFTER_MS;
}

static void look(struct reader *reader, uint64_t now_ms)
{
    (void)madvise(reader->buffer, LOG_BUFFER_BYTES, MADV_DONTNEED); /* only a saving */
    reader->look_at_ms = 0;
    for (int i = 0; i < READER_STREAMS; i++) {
        if (reader->streams[i].pipe_fd >= 0)
            log_look(&reader->streams[i], &reader->log, now_ms);
    }
}

/* The earlier of both times, as poll takes it. */
static int wait_ms(const struct reader *reader, uint64_t now_ms)
{
    uint64_t at_ms = reader->look_at_ms;

    if (at_ms == 0 || (reader->end_at_ms != 0 && reader->end_at_ms < at_ms))
        at_ms = reader->end_at_ms;
    return at_ms == 0 ? -1 : at_ms <= now_ms ? 0 : (int)(at_ms - now_ms);
}

static bool is_over(const struct reader *reader, uint64_t now_ms)
{
    return (reader->streams[0].pipe_fd < 0 && reader->streams[1].pipe_fd < 0) ||
           (reader->end_at_ms != 0 && now_ms >= reader->end_at_ms);
}

void reader_main(int count, char **words)
{
    struct reader reader = {
        .log = {.alloc_fd = -1},
        .streams = {{.pipe_fd = -1, .file_fd = -1}, {.pipe_fd = -1, .file_fd = -1}}};

    shim_withdraw();
    (void)prctl(PR_SET_NAME, READER_PROGRAM); /* cannot fail */
    if (count != READER_WORDS || !open_all(&reader, words))
        _exit(READER_USAGE);
    shim_confine();
    while (!is_over(&reader, shim_now_ms())) {
        struct pollfd fds[] = {{.fd = reader.streams[0].pipe_fd, .events = POLLIN},
                               {.fd = reader.streams[1].pipe_fd, .events = POLLIN},
                               {.fd = reader.signal_fd, .events = POLLIN}};

        if (poll(fds, COUNT_OF(fds), wait_ms(&reader, shim_now_ms())) < 0)
            continue; /* interrupted */
        for (int i = 0; i < READER_STREAMS; i++) {
            if (fds[i].revents != 0)
                pass(&reader, &reader.streams[i]);
        }
        if (fds[READER_STREAMS].revents != 0)
            take_signal(&reader);
        if (reader.look_at_ms != 0 && shim_now_ms() >= reader.look_at_ms)
            look(&reader, shim_now_ms());
    }
    for (int i = 0; i < READER_STREAMS; i++)
        log_close(&reader.streams[i]);
    _exit(0);
}
