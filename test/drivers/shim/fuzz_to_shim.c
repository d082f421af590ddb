/*
 * What a client says to a shim: each piece of the input is one packet.
 *
 * The shim's own clients.c, without a payload: what it would do to one is only checked.
 */
#include "test/fuzz.h"

#include "drivers/shim/shim.h"

#include <sys/socket.h>

void shim_stop(struct shim *shim, int signal, uint64_t timeout_ms)
{
    (void)timeout_ms;
    shim->stop_asked = true;
    (void)signal;
}

int payload_signal(struct shim *shim, int signal)
{
    check(shim->phase == SHIM_RUNNING);
    return signal == 0 ? ERR_INVALID : 0;
}

/* Every answer is a whole message of a kind that a shim sends. */
static void read_answers(int fd)
{
    _Alignas(8) char message[SHIM_MESSAGE_MAX];
    const struct shim_head *head = (const void *)message;

    for (;;) {
        ssize_t got = recv(fd, message, sizeof(message), MSG_DONTWAIT);
        if (got <= 0)
            return;
        check((size_t)got >= sizeof(*head));
        check(head->kind >= SHIM_WELCOME && head->kind <= SHIM_EXIT);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    struct shim shim = {.phase = SHIM_RUNNING, .key_digest = 7};
    const uint8_t *bytes;
    size_t length;
    int ends[2];

    for (int i = 0; i < CLIENTS_MAX; i++)
        shim.clients[i].fd = -1;
    check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
    clients_add(&shim, ends[1]);
    while (fuzz_piece(&input, &bytes, &length) && shim.clients[0].fd >= 0) {
        if (length == 0 || send(ends[0], bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
            continue; /* nothing to receive */
        clients_receive(&shim, &shim.clients[0]);
        read_answers(ends[0]);
    }
    clients_tell_exit(&shim);
    read_answers(ends[0]);
    check(clients_any(&shim) == (shim.clients[0].protocol != 0));
    if (shim.clients[0].fd >= 0)
        (void)close(shim.clients[0].fd);
    (void)close(ends[0]);
    return 0;
}
