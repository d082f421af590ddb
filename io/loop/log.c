/*
 * The log.  Invariant: whatever is logged, exactly one line comes out, in one write, with no
 * control character in it, and a failing log changes nothing for the caller.
 *
 * Lines may come from any thread; a listener is called on its own thread only.  A process has one
 * log, as it has one stderr: that is why this is the one part that keeps globals.
 */
#include "io/log.h"

#include "base/base.h"
#include "io/host.h"
#include "io/loop.h"
#include "io/loop/journald.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

static const char CUT[] = "...";

static struct {
    atomic_int level, fd;
    atomic_bool json;
    char path[PATH_SIZE]; /* "" is stderr */
    struct journald journald;
} log_state = {.level = LOG_INFO, .fd = STDERR_FILENO, .journald = {.fd = -1}};

static _Thread_local struct {
    struct log_listener *first;
    struct log_listener *next; /* to be told of this entry: it may go while another one is told */
    bool telling;
} listeners;

static const char *const level_texts[] = {"ERROR", "WARN", "INFO", "DEBUG", "TRACE"};

const char *log_level_text(enum log_level level)
{
    check((size_t)level < COUNT_OF(level_texts));
    return level_texts[level];
}

bool log_level_from_text(const char *text, enum log_level *ret_level)
{
    for (size_t i = 0; i < COUNT_OF(level_texts); i++) {
        if (strcasecmp(text, level_texts[i]) == 0) {
            *ret_level = (enum log_level)i;
            return true;
        }
    }
    return false;
}

/* --- where lines go --- */

static int open_file(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0640);

    return fd < 0 ? -errno : fd;
}

/* The number is exchanged under those who write: a line in flight goes to the old or the new. */
static void use_descriptor(int fd)
{
    int old = atomic_load(&log_state.fd);

    if (old == STDERR_FILENO || fd == STDERR_FILENO) {
        atomic_store(&log_state.fd, fd);
        if (old != STDERR_FILENO)
            (void)close(old); /* appended only: nothing is lost that could be told */
        return;
    }
    (void)dup3(fd, old, O_CLOEXEC); /* both numbers are ours and open: cannot fail */
    (void)close(fd);                /* its copy stays */
}

int log_init(enum log_level level, const char *path, bool json)
{
    int fd = STDERR_FILENO;

    if (path != NULL) {
        fd = open_file(path);
        if (fd < 0)
            return fd;
        if (!text_copy(log_state.path, sizeof(log_state.path), path)) {
            (void)close(fd); /* nothing was written */
            return -ENAMETOOLONG;
        }
    } else {
        log_state.path[0] = '\0';
    }
    /* A reader of stderr that goes away must not take the daemon along (I-6). */
    check(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
    journald_close(&log_state.journald);
    use_descriptor(fd);
    atomic_store(&log_state.json, json);
    log_set_level(level);
    return 0;
}

bool log_to_journald(const char *socket)
{
    check(log_state.path[0] == '\0');
    return journald_open(&log_state.journald, socket != NULL ? socket : JOURNALD_SOCKET);
}

int log_reopen(void)
{
    if (log_state.path[0] == '\0')
        return 0;
    int fd = open_file(log_state.path);
    if (fd < 0)
        return fd;
    use_descriptor(fd);
    return 0;
}

void log_set_level(enum log_level level)
{
    check((size_t)level < COUNT_OF(level_texts));
    atomic_store(&log_state.level, (int)level);
}

void log_listen(struct log_listener *listener, enum log_level level,
                void (*cb)(void *ctx, const struct log_entry *entry), void *ctx)
{
    check(cb != NULL);
    check(listener->link == NULL);
    *listener = (struct log_listener){
        .level = level, .cb = cb, .ctx = ctx, .next = listeners.first, .link = &listeners.first};
    if (listener->next != NULL)
        listener->next->link = &listener->next;
    listeners.first = listener;
}

void log_listen_end(struct log_listener *listener)
{
    if (listener->link == NULL)
        return;
    check(*listener->link == listener);
    if (listeners.next == listener)
        listeners.next = listener->next;
    *listener->link = listener->next;
    if (listener->next != NULL)
        listener->next->link = listener->link;
    listener->link = NULL;
}

static bool is_written(enum log_level level)
{
    return (int)level <= atomic_load(&log_state.level);
}

bool log_wants(enum log_level level)
{
    bool wanted = is_written(level);

    for (struct log_listener *at = listeners.first; at != NULL && !wanted; at = at->next)
        wanted = level <= at->level;
    return wanted;
}

/* --- making text harmless --- */

/* --- lines --- */

static void format_time(char *to, size_t size, int64_t unix_ns)
{
    time_t seconds = (time_t)(unix_ns / 1000000000);
    struct tm parts;
    char date[32];

    if (gmtime_r(&seconds, &parts) == NULL || strftime(date, sizeof(date), "%FT%T", &parts) == 0)
        (void)text_copy(date, sizeof(date), "0000-00-00T00:00:00"); /* fits */
    (void)text_format(to, size, "%s.%03dZ", date, (int)(unix_ns / 1000000 % 1000));
}

static size_t format_json(char to[LOG_LINE_SIZE], const struct log_entry *entry, const char *time)
{
    static const char END[] = "\"}";
    char level[8];

    (void)text_copy(level, sizeof(level), log_level_text(entry->level)); /* fits */
    for (char *at = level; *at != '\0'; at++)
        *at = (char)tolower((unsigned char)*at);
    (void)text_format(to, LOG_LINE_SIZE, /* fits but for an absurd room, which is ours */
                      "{\"@level\":\"%s\",\"@timestamp\":\"%s\",\"@module\":\"%.64s\","
                      "\"@message\":\"",
                      level, time, entry->room);
    /* The message is clean: quotes and backslashes are all that JSON wants escaped. */
    if (!text_append_clean(to, LOG_LINE_SIZE - sizeof(CUT) - sizeof(END), entry->message, "\"\\"))
        (void)text_append(to, LOG_LINE_SIZE, CUT); /* fits by the size above */
    (void)text_append(to, LOG_LINE_SIZE, END);     /* the same */
    return strlen(to);
}

size_t log_format(char to[LOG_LINE_SIZE], const struct log_entry *entry, bool json)
{
    char time[48];

    format_time(time, sizeof(time), entry->time_unix_ns);
    if (json)
        return format_json(to, entry, time);
    (void)text_format(to, LOG_LINE_SIZE, "%s [%s] %.64s: ", time, log_level_text(entry->level),
                      entry->room);
    if (!text_append_clean(to, LOG_LINE_SIZE - sizeof(CUT), entry->message, ""))
        (void)text_append(to, LOG_LINE_SIZE, CUT); /* fits by the size above */
    return strlen(to);
}

static void tell_listeners(const struct log_entry *entry)
{
    struct log_listener *listener;

    if (listeners.telling)
        return;
    listeners.telling = true;
    for (listeners.next = listeners.first; (listener = listeners.next) != NULL;) {
        listeners.next = listener->next;
        if (entry->level <= listener->level)
            listener->cb(listener->ctx, entry);
    }
    listeners.telling = false;
}

void log_line(enum log_level level, const char *room, const char *format, ...)
{
    char raw[LOG_LINE_SIZE], message[LOG_LINE_SIZE] = "", line[LOG_LINE_SIZE];
    int number = errno; /* a line in the middle of handling an error must not change it */
    va_list args;

    if (!log_wants(level))
        return;
    va_start(args, format);
    int wanted = vsnprintf(raw, sizeof(raw), format, args);
    va_end(args);
    if (wanted < 0)
        (void)text_copy(raw, sizeof(raw), "a message that could not be formatted"); /* fits */
    bool whole = wanted < (int)sizeof(raw);
    if (!text_append_clean(message, sizeof(message) - sizeof(CUT), raw, "") || !whole)
        (void)text_append(message, sizeof(message), CUT); /* fits by the size above */

    struct log_entry entry = {
        .level = level, .time_unix_ns = loop_now_unix_ns(), .room = room, .message = message};
    if (is_written(level) && !journald_send(&log_state.journald, &entry)) {
        size_t length = log_format(line, &entry, atomic_load(&log_state.json));
        if (length == sizeof(line) - 1)
            length--;
        line[length++] = '\n';
        (void)!write(atomic_load(&log_state.fd), line, length); /* no one left to tell */
    }
    tell_listeners(&entry);
    errno = number;
}
