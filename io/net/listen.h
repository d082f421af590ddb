/* Listening sockets. */
#ifndef CAIRN_IO_NET_LISTEN_H
#define CAIRN_IO_NET_LISTEN_H

#include "io/http.h"

/* A non-blocking TCP socket that listens on the numeric ADDRESS; with port 0 the system chooses.
 * The caller owns it.  ERR_EXISTS if the address is in use. */
int listen_tcp(const char *address, uint16_t port, int *ret_fd, uint16_t *ret_port,
               struct err *err);

/* A non-blocking UNIX socket listening on PATH; takes the place of a socket that nobody listens on
 * any more.  ERR_EXISTS if somebody does. */
int listen_unix(const char *path, const struct http_admission *admits, int *ret_fd,
                struct err *err);

/* The same on NAME in the directory that DIRECTORY_FD is. */
int listen_unix_in(int directory_fd, const char *name, const struct http_admission *admits,
                   int *ret_fd, struct err *err);

#endif
