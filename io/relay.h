/*
 * Relays: whoever connects to a socket in a directory is led on to another address, byte for byte,
 * so that a network of its own may reach what listens outside of it.
 *
 * Each direction holds one piece at a time: who does not read slows down who writes, and nothing
 * grows.  Everything is called on the loop's thread.
 */
#ifndef CAIRN_IO_RELAY_H
#define CAIRN_IO_RELAY_H

#include "io/http.h"
#include "io/loop.h"

struct relay;

/* Listens on NAME in the directory that DIRECTORY_FD is, in the place of a socket that nobody
 * listens on any more, for whom ADMITS lets in; so many at once, others wait.  TARGET, copied, is
 * HOST:PORT or "unix:PATH"; one that cannot be reached closes who came.  ERR_EXISTS if somebody
 * else listens there. */
int relay_open(struct loop *loop, int directory_fd, const char *name,
               const struct http_admission *admits, const char *target, unsigned connections_max,
               struct relay **ret_relay, struct err *err);

/* Whoever connects from now on is led to TARGET. */
void relay_aim(struct relay *relay, const char *target);

/* Who has come by it is disconnected.  The name stays.  NULL is fine. */
void relay_close(struct relay *relay);

#endif
