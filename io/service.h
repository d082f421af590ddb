/*
 * This process as a service of systemd: what the manager passed to it, and what it is told.
 *
 * Variables, descriptors and datagrams as systemd documents them, without its library.  Where
 * nobody manages the process all of it is empty and does nothing.
 */
#ifndef CAIRN_IO_SERVICE_H
#define CAIRN_IO_SERVICE_H

#include "base/base.h"

#include <stdint.h>
#include <sys/un.h>

enum { SERVICE_TEXT_SIZE = 512 }; /* of one notice */

struct service {
    int notify_fd;             /* -1: nobody wants to be told */
    struct sockaddr_un notify; /* where they do */
    unsigned notify_length;
    uint64_t watchdog_ms; /* who says nothing for so long is killed; 0: nobody looks */
    int listen_fd;        /* a TCP socket that listens already, owned; -1: none was passed */
    char address[64];     /* its numeric address, and port */
    uint16_t port;
    bool logs_to_journal; /* standard error is read by journald */
};

/* Takes what the environment says out of it: nothing that this process starts is meant by it.  Call
 * it once, before there are threads.  ERR_INVALID with what is wrong in it. */
int service_open(struct service *ret_service, struct err *err);

/* One notice, "READY=1\nSTATUS=..."; a manager that does not take it within a second goes without.
 * False if it is not told. */
bool service_tell(const struct service *service, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* RELOADING=1 with the time that the manager compares it with; READY=1 ends it. */
bool service_tell_reloading(const struct service *service);

void service_close(struct service *service);

#endif
