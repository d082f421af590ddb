/*
 * The daemon's log: one line for each thing said, to stderr or a file.
 *
 *     2026-11-21T02:10:52.123Z [INFO] agent: node registered node=3f2a91c4 servers=3
 *
 * A line is one write(2) and is bounded; control characters and bytes that are no UTF-8 are
 * written as \x1b, so that nothing from outside can end a line, forge one or reach a terminal.  A
 * log that cannot be written is no reason to stop, so failures are ignored.  Message in lower
 * case, facts behind it as key=value, text from outside as key=log_value(text).
 */
#ifndef CAIRN_IO_LOG_H
#define CAIRN_IO_LOG_H

#include "base/quote.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum log_level {
    LOG_ERROR, /* someone must act */
    LOG_WARN,  /* we went on, and say so */
    LOG_INFO,  /* life cycle */
    LOG_DEBUG, /* everything else */
    LOG_TRACE,
};

enum {
    LOG_LINE_SIZE = 2048, /* with the newline and a NUL; what is longer ends with "..." */
};

struct log_entry {
    enum log_level level;
    int64_t time_unix_ns;
    const char *room;
    const char *message; /* cleaned */
};

/* Sends lines of LEVEL and more important ones to the file PATH, appended (NULL: stderr), as text
 * or as the JSON objects that Nomad writes.  Before the first call: text from LOG_INFO on, to
 * stderr.  Ignores SIGPIPE from now on.  Returns 0, or a negative errno if PATH cannot be opened;
 * nothing is changed then. */
int log_init(enum log_level level, const char *path, bool json);
void log_set_level(enum log_level level);

/* From now on lines for standard error go to journald in the protocol of its own, at SOCKET (NULL:
 * at its place), with priority, room and the facts of a line as fields: ALLOC_ID, TASK and
 * others.  A line that it does not take goes to standard error.  False if that cannot be, nothing
 * is changed then. */
bool log_to_journald(const char *socket);

/* Opens the file again, as after a rotation; 0 or a negative errno, then the old one is kept. */
int log_reopen(void);

/* "error", "warn", "info", "debug", "trace" in any case; false if it is none of them. */
bool log_level_from_text(const char *text, enum log_level *ret_level);
const char *log_level_text(enum log_level level); /* "ERROR", ... */

struct log_listener {
    enum log_level level;
    void (*cb)(void *ctx, const struct log_entry *entry);
    void *ctx;
    struct log_listener *next, **link; /* private; link is NULL while it does not listen */
};

/* CB also gets each entry of LEVEL and more important ones, whatever goes to the file: for those
 * who watch over the API.  On the thread of log_listen only; what a CB itself logs is handed to
 * nobody.  LISTENER is zeroed before first use and borrowed until log_listen_end, which is called
 * on the same thread, and does nothing for one that does not listen. */
void log_listen(struct log_listener *listener, enum log_level level,
                void (*cb)(void *ctx, const struct log_entry *entry), void *ctx);
void log_listen_end(struct log_listener *listener);

/* True if somebody would read a line of LEVEL from this thread: worth the cost of making one. */
bool log_wants(enum log_level level);

void log_line(enum log_level level, const char *room, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#define log_error(room, ...) log_line(LOG_ERROR, room, __VA_ARGS__)
#define log_warn(room, ...) log_line(LOG_WARN, room, __VA_ARGS__)
#define log_info(room, ...) log_line(LOG_INFO, room, __VA_ARGS__)
#define log_debug(room, ...) log_line(LOG_DEBUG, room, __VA_ARGS__)

/* TEXT from outside as one word of a line. */
#define log_value(text) text_value(text)

/* ENTRY as a line of text or JSON without the newline, for listeners; returns its length. */
size_t log_format(char to[LOG_LINE_SIZE], const struct log_entry *entry, bool json);

#endif
