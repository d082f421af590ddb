/*
 * Doors: sockets besides the first one by which connections come to a server, each with a bound of
 * its own, so that whoever has one cannot take all places of the others.
 */
#include "io/net/connection.h"
#include "io/net/listen.h"

#include <stdlib.h>
#include <unistd.h>

int http_door_open(struct http_server *server, int directory_fd, const char *name,
                   const struct http_admission *admits, unsigned connections_max,
                   struct http_door **ret_door, struct err *err)
{
    int fd;
    int code = listen_unix_in(directory_fd, name, admits, &fd, err);

    if (code != 0)
        return code;
    struct http_door *door = calloc(1, sizeof(*door));
    check(door != NULL);
    check(connections_max > 0);
    door->server = server;
    door->fd = fd;
    door->connections_max = connections_max;
    door->next = server->doors;
    door->link = &server->doors;
    if (door->next != NULL)
        door->next->link = &door->next;
    server->doors = door;
    door_accept_begin(door);
    *ret_door = door;
    return 0;
}

void http_door_close(struct http_door *door)
{
    if (door == NULL)
        return;
    check(!door->server->running);
    for (struct connection *at = door->server->connections; at != NULL; at = at->next) {
        if (at->door != door)
            continue;
        at->door = NULL;
        connection_doom(at);
    }
    io_watch_stop(&door->watch);
    (void)close(door->fd); /* nothing was written to it */
    *door->link = door->next;
    if (door->next != NULL)
        door->next->link = door->link;
    free(door);
}
