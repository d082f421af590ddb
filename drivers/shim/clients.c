/*
 * The shim's end of the socket.
 *
 * Everything a client sends is bounded by one packet; whoever breaks the protocol is hung up on and
 * may connect again.  A client that does not read loses its connection rather than stopping us.
 */
#include "drivers/shim/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void drop(struct client *client)
{
    if (client->fd >= 0)
        (void)close(client->fd); /* nothing was waiting in it that we could still help */
    *client = (struct client){.fd = -1};
}

static void send_to(struct client *client, void *message, size_t size, uint16_t kind,
                    uint32_t ticket)
{
    struct shim_head *head = message;

    *head = (struct shim_head){.kind = kind, .protocol = client->protocol, .ticket = ticket};
    if (client->fd >= 0 &&
        send(client->fd, message, size, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)size)
        drop(client);
}

static struct shim_state state_of(const struct shim *shim)
{
    struct shim_state state = {
        .oldest = SHIM_PROTOCOL_OLDEST,
        .newest = SHIM_PROTOCOL_NEWEST,
        .phase = (uint32_t)shim->phase,
        .key_digest = shim->key_digest,
        .shim_pid = shim->self.pid,
        .shim_ticks = shim->self.start_ticks,
        .payload_pid = shim->payload.pid,
        .payload_ticks = shim->payload.start_ticks,
        .started_unix_ns = shim->started_unix_ns,
        .log_bytes_written = shim->streams[0].bytes_written + shim->streams[1].bytes_written,
        .log_bytes_lost = shim->streams[0].bytes_lost + shim->streams[1].bytes_lost,
        .version = SHIM_VERSION,
    };

    return state;
}

static void send_state(struct shim *shim, struct client *client, uint16_t kind, uint32_t ticket)
{
    struct shim_state state = state_of(shim);

    send_to(client, &state, sizeof(state), kind, ticket);
}

static void reply(struct client *client, uint32_t ticket, int code)
{
    struct shim_reply message = {.code = code};

    send_to(client, &message, sizeof(message), SHIM_REPLY, ticket);
}

int clients_listen(struct shim *shim, struct err *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    check(text_format(shim->socket, sizeof(shim->socket), TASK_SOCKET_FORMAT,
                      (unsigned long long)shim->key_digest));
    check(text_copy(address.sun_path, sizeof(address.sun_path), shim->socket));
    bool bound = fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
    if (!bound && fd >= 0 && errno == EADDRINUSE) { /* of an attempt before us; we hold the lock */
        (void)unlink(shim->socket);
        bound = bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
    }
    if (!bound || listen(fd, CLIENTS_MAX) != 0) {
        int code = err_os(err, err_from_errno(errno), errno, "cannot listen on a socket");

        if (fd >= 0)
            (void)close(fd); /* never used */
        return code;
    }
    shim->listen_fd = fd;
    return 0;
}

/* A fifth client takes the place of the first: that one's daemon is most likely dead. */
void clients_add(struct shim *shim, int fd)
{
    struct client *client = shim->clients;

    while (client < shim->clients + CLIENTS_MAX && client->fd >= 0)
        client++;
    if (client == shim->clients + CLIENTS_MAX) {
        drop(&shim->clients[0]);
        memmove(shim->clients, shim->clients + 1, (CLIENTS_MAX - 1) * sizeof(*client));
        client--;
    }
    *client = (struct client){.fd = fd};
}

void clients_accept(struct shim *shim)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);
    int fd = accept4(shim->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0)
        return;
    /* The directory is closed to others already; a descriptor may have been passed on, though. */
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 ||
        (peer.uid != 0 && peer.uid != geteuid())) {
        (void)close(fd); /* a stranger */
        return;
    }
    clients_add(shim, fd);
}

static void welcome(struct shim *shim, struct client *client, const struct shim_hello *hello)
{
    uint16_t version = hello->newest < SHIM_PROTOCOL_NEWEST ? hello->newest : SHIM_PROTOCOL_NEWEST;

    if (version < SHIM_PROTOCOL_OLDEST || version < hello->oldest) {
        client->protocol = 0;
        send_state(shim, client, SHIM_WELCOME, hello->head.ticket);
        drop(client);
        return;
    }
    client->protocol = version;
    send_state(shim, client, SHIM_WELCOME, hello->head.ticket);
}

#if SHIM_PROTOCOL_NEWEST >= 2
/* A daemon that does not know whether its forerunner has sent it sends it again. */
static int signal_once(struct shim *shim, const struct shim_signal *signal)
{
    bool numbered = signal->once != 0 && signal->signal > 0 && signal->signal < SHIM_SIGNALS;

    if (numbered && shim->told[signal->signal] == signal->once)
        return 0;
    int code = payload_signal(shim, signal->signal);
    if (numbered && code == 0)
        shim->told[signal->signal] = signal->once;
    return code;
}
#endif

/* What a client asked for; SIZE bytes of it. */
static void answer(struct shim *shim, struct client *client, const struct shim_head *head,
                   size_t size)
{
    switch (head->kind) {
    case SHIM_HELLO:
        if (size >= sizeof(struct shim_hello)) {
            welcome(shim, client, (const void *)head);
            return;
        }
        break;
    case SHIM_STATUS:
        send_state(shim, client, SHIM_STATE, head->ticket);
        return;
    case SHIM_STOP:
        if (size >= sizeof(struct shim_stop)) {
            const struct shim_stop *stop = (const void *)head;

            shim_stop(shim, stop->signal, stop->timeout_ms);
            reply(client, head->ticket, 0);
            return;
        }
        break;
    case SHIM_BYE:
        break;
#if SHIM_PROTOCOL_NEWEST >= 2
    case SHIM_SIGNAL:
        if (size >= sizeof(struct shim_signal)) {
            const struct shim_signal *signal = (const void *)head;

            reply(client, head->ticket,
                  shim->phase == SHIM_RUNNING ? signal_once(shim, signal) : ERR_GONE);
            return;
        }
        break;
#endif
    default:
        reply(client, head->ticket, ERR_UNSUPPORTED);
        return;
    }
    drop(client);
}

void clients_receive(struct shim *shim, struct client *client)
{
    _Alignas(8) char message[SHIM_MESSAGE_MAX];
    const struct shim_head *head = (const void *)message;
    ssize_t got = recv(client->fd, message, sizeof(message), MSG_DONTWAIT);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got < (ssize_t)sizeof(*head) || (client->protocol == 0 && head->kind != SHIM_HELLO)) {
        drop(client); /* gone, or not a daemon of ours */
        return;
    }
    answer(shim, client, head, (size_t)got);
}

void clients_tell_exit(struct shim *shim)
{
    for (int i = 0; i < CLIENTS_MAX; i++) {
        struct shim_exit message = {.record = shim->exit};

        if (shim->clients[i].protocol != 0)
            send_to(&shim->clients[i], &message, sizeof(message), SHIM_EXIT, 0);
    }
}

bool clients_any(const struct shim *shim)
{
    for (int i = 0; i < CLIENTS_MAX; i++) {
        if (shim->clients[i].protocol != 0)
            return true;
    }
    return false;
}
