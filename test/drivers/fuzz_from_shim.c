/*
 * What a shim says to its daemon: each piece of the input is one packet of a shim that holds the
 * lock and answers on the socket, as a newer or a broken one would.
 */
#include "test/fuzz.h"

#include "drivers/part.h"
#include "io/loop.h"

#include <sys/socket.h>
#include <sys/un.h>

enum { PATIENCE_MS = 20 };

/* The shim of one input. */
struct fake {
    struct loop *loop;
    struct drivers *drivers;
    struct fuzz_input input;
    struct io_watch listens, client;
    int listen_fd, client_fd, lock_fd; /* -1: closed */
    bool done;
};

static void on_exit_told(void *ctx, const struct driver_key *key, const struct driver_exit *exit)
{
    (void)ctx, (void)key;
    check(memchr(exit->message, '\0', sizeof(exit->message)) != NULL);
}

static void on_done(void *ctx, const struct driver_result *result)
{
    struct fake *fake = ctx;

    check(result->outcome != DRIVER_FAILED || result->error.text[0] != '\0');
    fake->done = true;
}

static void shut(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

/* A daemon is there: says all it has to say, and dies. */
static void on_hello(struct io_watch *watch, int events)
{
    struct fake *fake = watch->ctx;
    char hello[SHIM_MESSAGE_MAX];
    const uint8_t *bytes;
    size_t length;

    (void)events;
    if (recv(fake->client_fd, hello, sizeof(hello), MSG_DONTWAIT) >= 0) {
        while (fuzz_piece(&fake->input, &bytes, &length))
            (void)send(fake->client_fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT); /* or not */
    }
    io_watch_stop(watch);
    shut(&fake->client_fd);
    shut(&fake->lock_fd);
}

static void on_connected(struct io_watch *watch, int events)
{
    struct fake *fake = watch->ctx;

    (void)events;
    if (fake->client_fd >= 0)
        return;
    fake->client_fd = accept4(fake->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fake->client_fd >= 0)
        io_watch_start(fake->loop, &fake->client, fake->client_fd, IO_READABLE, on_hello, fake);
}

static void on_too_late(struct io_timer *timer)
{
    loop_stop(timer->ctx);
}

static void turn_for(struct loop *loop, uint64_t time_ms)
{
    struct io_timer timer = {0};

    io_timer_start(loop, &timer, loop_now_ms() + time_ms, on_too_late, loop);
    loop_run(loop);
    io_timer_stop(&timer);
}

static bool stop_when_done(void *ctx)
{
    struct fake *fake = ctx;

    if (fake->done)
        loop_stop(fake->loop);
    return false;
}

static int listen_as_shim(const struct driver_key *key)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char name[TASK_SOCKET_SIZE];
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    check(text_format(name, sizeof(name), TASK_SOCKET_FORMAT, (unsigned long long)key_digest(key)));
    check(text_format(address.sun_path, sizeof(address.sun_path), "%s/shim/%s", fuzz_directory(),
                      name));
    (void)unlink(address.sun_path); /* of the input before */
    check(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    check(listen(fd, 4) == 0);
    return fd;
}

static void fake_open(struct fake *fake, const struct driver_key *key)
{
    struct err err = {0};
    enum lock_state state;
    bool begun;
    struct drivers_config config = {.loop = fake->loop,
                                    .state_dir = fuzz_directory(),
                                    .node_mark = "0badcafe",
                                    .shim_path = "/nonexistent/cairn-shim",
                                    .cgroup_mode = CGROUP_NONE,
                                    .raw_exec_enabled = true,
                                    .java = {.disabled = true},
                                    .on_exit = on_exit_told,
                                    .ctx = fake};

    fake->drivers = drivers_new(&config, &err);
    check(fake->drivers != NULL);
    check(key_lock_take(fake->drivers->shim_fd, key, true, &state, &fake->lock_fd, &begun, &err) ==
          0);
    check(state == LOCK_FREE && task_file_begin(fake->lock_fd, &err) == 0);
    fake->listen_fd = listen_as_shim(key);
    fake->client_fd = -1;
    io_watch_start(fake->loop, &fake->listens, fake->listen_fd, IO_READABLE, on_connected, fake);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct loop *loop;
    const struct driver_key key = {.alloc = "0f2a91c4-1111-4222-8333-444455556666",
                                   .task = "web",
                                   .driver = "raw_exec",
                                   .generation = 1};
    struct io_before_sleep look = {0};
    struct err err = {0};

    if (loop == NULL)
        loop = loop_new();
    struct fake fake = {.loop = loop, .input = {data, size}};
    fake_open(&fake, &key);
    driver_recover(fake.drivers, &key, on_done, &fake);
    io_before_sleep_start(loop, &look, stop_when_done, &fake);
    turn_for(loop, PATIENCE_MS);
    io_before_sleep_stop(&look);
    turn_for(loop, 1); /* what comes after the answer */
    io_watch_stop(&fake.client);
    io_watch_stop(&fake.listens);
    shut(&fake.client_fd);
    shut(&fake.listen_fd);
    shut(&fake.lock_fd);
    check(key_remove_files(fake.drivers->shim_fd, &key, &err) == 0);
    drivers_free(fake.drivers);
    return 0;
}
