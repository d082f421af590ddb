/* Lines of the log as entries of journald, with fields, in its native protocol. */
#ifndef CAIRN_IO_LOOP_JOURNALD_H
#define CAIRN_IO_LOOP_JOURNALD_H

#include "io/log.h"

#include <sys/un.h>

#define JOURNALD_SOCKET "/run/systemd/journal/socket"

enum { JOURNALD_ENTRY_SIZE = 2 * LOG_LINE_SIZE + 1024 };

struct journald {
    int fd; /* -1: it is not used */
    struct sockaddr_un at;
};

/* False if PATH is no address, or there is no descriptor for it. */
bool journald_open(struct journald *journald, const char *path);
void journald_close(struct journald *journald);

/* False if it was not taken.  From any thread. */
bool journald_send(const struct journald *journald, const struct log_entry *entry);

/* ENTRY as a datagram; returns its length.  Facts for which there is no room are in MESSAGE. */
size_t journald_format(char to[JOURNALD_ENTRY_SIZE], const struct log_entry *entry);

#endif
