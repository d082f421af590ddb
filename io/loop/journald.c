/*
 * Entries for journald: the line as MESSAGE, and its facts once more as fields, to look for.
 *
 * A line has no newline in it and is clean, so that each field is one line of the datagram.  What a
 * fact is called is in our own format strings; its value may be from outside, and a quoted one ends
 * where its quotes do: no value can make another field.
 */
#include "io/loop/journald.h"

#include "base/base.h"

#include <ctype.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FACTS_MAX = 16, FACT_NAME_MAX = 32 };

/* What other programs' entries call the same, or people look for. */
static const struct {
    const char *key, *field;
} known[] = {{"alloc", "ALLOC_ID"}, {"task", "TASK"}};

static bool is_of_key(char c)
{
    return islower((unsigned char)c) || isdigit((unsigned char)c) || c == '_';
}

static void add_name(char *to, const char *key, size_t length)
{
    char field[sizeof("CAIRN_") + FACT_NAME_MAX] = "CAIRN_";
    size_t at = strlen(field);

    for (size_t i = 0; i < COUNT_OF(known); i++) {
        if (strlen(known[i].key) == length && memcmp(known[i].key, key, length) == 0) {
            (void)text_append(to, JOURNALD_ENTRY_SIZE, known[i].field); /* there is room */
            return;
        }
    }
    for (size_t i = 0; i < length; i++)
        field[at++] = (char)toupper((unsigned char)key[i]);
    field[at] = '\0';
    (void)text_append(to, JOURNALD_ENTRY_SIZE, field); /* there is room */
}

/* The value that begins at AT, without its quotes, to TO; where it ends. */
static const char *add_value(char *to, const char *at)
{
    bool quoted = *at == '"';
    size_t end = strlen(to);

    for (at += quoted; *at != '\0' && *at != (quoted ? '"' : ' '); at++) {
        if (quoted && *at == '\\' && (at[1] == '"' || at[1] == '\\'))
            at++;
        to[end++] = *at;
    }
    to[end] = '\0';
    return at + (quoted && *at == '"');
}

/* The word at AT, if it is KEY=VALUE, as a field; else it is left out.  Where the next one begins.
 */
static const char *add_fact(char to[JOURNALD_ENTRY_SIZE], const char *at, size_t *facts)
{
    size_t length = 0, room = JOURNALD_ENTRY_SIZE - strlen(to);

    while (is_of_key(at[length]))
        length++;
    /* A value takes no more than the rest of the message. */
    bool fits = room > sizeof("CAIRN_=\n") + length + strlen(at);
    if (length > 0 && length <= FACT_NAME_MAX && at[length] == '=' && *facts < FACTS_MAX && fits) {
        add_name(to, at, length);
        (void)text_append(to, JOURNALD_ENTRY_SIZE, "="); /* there is room */
        at = add_value(to, at + length + 1);
        (void)text_append(to, JOURNALD_ENTRY_SIZE, "\n"); /* the same */
        ++*facts;
    }
    at += strcspn(at, " ");
    return at + strspn(at, " ");
}

size_t journald_format(char to[JOURNALD_ENTRY_SIZE], const struct log_entry *entry)
{
    /* Those of syslog. */
    static const int priorities[] = {
        [LOG_ERROR] = 3, [LOG_WARN] = 4, [LOG_INFO] = 6, [LOG_DEBUG] = 7, [LOG_TRACE] = 7,
    };
    size_t facts = 0;

    check((size_t)entry->level < COUNT_OF(priorities));
    /* A message is shorter than a line. */
    check(text_format(to, JOURNALD_ENTRY_SIZE,
                      "PRIORITY=%d\nSYSLOG_IDENTIFIER=cairn\nCAIRN_ROOM=%.64s\nMESSAGE=%s: %s\n",
                      priorities[entry->level], entry->room, entry->room, entry->message));
    for (const char *at = entry->message; *at != '\0';)
        at = add_fact(to, at, &facts);
    return strlen(to);
}

bool journald_open(struct journald *journald, const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};

    if (!text_copy(at.sun_path, sizeof(at.sun_path), path))
        return false;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    journald_close(journald);
    *journald = (struct journald){.fd = fd, .at = at};
    return true;
}

void journald_close(struct journald *journald)
{
    if (journald->fd >= 0)
        (void)close(journald->fd); /* nothing waits in it */
    journald->fd = -1;
}

bool journald_send(const struct journald *journald, const struct log_entry *entry)
{
    char text[JOURNALD_ENTRY_SIZE];

    if (journald->fd < 0)
        return false;
    size_t length = journald_format(text, entry);
    /* Whoever logs waits for nobody: a line that finds the queue full goes the other way. */
    return sendto(journald->fd, text, length, MSG_NOSIGNAL | MSG_DONTWAIT,
                  (const struct sockaddr *)&journald->at, sizeof(journald->at)) == (ssize_t)length;
}
