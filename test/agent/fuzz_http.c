/*
 * A whole daemon, with a journal of its own, and a client that sends the input as it is and waits a
 * moment for what comes.
 *
 * No driver is enabled: nothing that the input asks for is run.
 */
#include "test/fuzz.h"

#include "agent/daemon.h"
#include "io/host.h"
#include "io/log.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

enum { PATIENCE_MS = 20, INPUTS_OF_A_NODE = 2000 };

static struct loop *loop;
static struct config config;
static struct daemon *daemon_under_test;

/* One connection of ours. */
struct client {
    struct io_watch watch;
    int fd;
    size_t received;
    char begin[16]; /* of the answer */
};

/* The only program of ours that is started. */
static void find_parser(void)
{
    char here[512];
    ssize_t length = readlink("/proc/self/exe", here, sizeof(here) - 1);

    check(length > 0);
    here[length] = '\0';
    for (int i = 0; i < 3; i++)
        *strrchr(here, '/') = '\0'; /* build/<out>/test/agent/fuzz_http */
    check(text_format(config.parse_path, sizeof(config.parse_path), "%s/cairn-parse", here));
}

static void begin_node(void)
{
    struct err err = {0};
    char path[512];

    config_defaults(&config);
    check(text_copy(config.data_dir, sizeof(config.data_dir), fuzz_path(path, "node")));
    check(text_copy(config.shim_path, sizeof(config.shim_path), "/nonexistent/cairn-shim"));
    check(text_copy(config.log_level, sizeof(config.log_level), "ERROR"));
    config.http_port = 0;
    config.raw_exec_enabled = config.java_enabled = false;
    check(config_finish(&config, &err) == 0);
    find_parser();
    daemon_under_test = daemon_new(&config, loop, 0, &err);
    if (daemon_under_test == NULL) {
        (void)fprintf(stderr, "fuzz: %s\n", err.text);
        exit(2);
    }
}

static void end_node(void)
{
    struct err err = {0};

    daemon_free(daemon_under_test);
    check(tree_remove(AT_FDCWD, config.data_dir, &err) == 0);
    config_free(&config);
}

int LLVMFuzzerInitialize(int *arguments_count, char ***arguments)
{
    (void)arguments_count, (void)arguments;
    check(log_init(LOG_ERROR, "/dev/null", false) == 0);
    loop = loop_new();
    begin_node();
    check(atexit(end_node) == 0); /* its cgroups and its lock are the machine's */
    return 0;
}

static int connect_to_api(void)
{
    const char *colon = strrchr(daemon_address(daemon_under_test), ':');
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                  .sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10))};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    check(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    check(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
    return fd;
}

static void on_answer(struct io_watch *watch, int events)
{
    struct client *client = watch->ctx;
    char bytes[4096];
    ssize_t got = recv(client->fd, bytes, sizeof(bytes), 0);

    (void)events;
    if (got <= 0) {
        loop_stop(loop);
        return;
    }
    for (ssize_t i = 0; i < got && client->received < sizeof(client->begin) - 1; i++)
        client->begin[client->received++] = bytes[i];
}

static void on_patience(struct io_timer *timer)
{
    (void)timer;
    loop_stop(loop);
}

/* What the daemon begins to answer to the LENGTH bytes at TEXT; "" for nothing. */
static struct client ask(const void *text, size_t length, uint64_t patience_ms)
{
    struct client client = {.fd = connect_to_api()};
    struct io_timer patience = {0};

    (void)send(client.fd, text, length, MSG_NOSIGNAL); /* as much as it takes */
    (void)shutdown(client.fd, SHUT_WR);
    io_watch_start(loop, &client.watch, client.fd, IO_READABLE, on_answer, &client);
    io_timer_start(loop, &patience, loop_now_ms() + patience_ms, on_patience, NULL);
    loop_run(loop);
    io_timer_stop(&patience);
    io_watch_stop(&client.watch);
    (void)close(client.fd);
    return client;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char question[] = "GET /v1/agent/self HTTP/1.1\r\nHost: localhost\r\n\r\n";
    static unsigned inputs;

    struct client client = ask(data, size, PATIENCE_MS);
    check(client.received == 0 || strncmp(client.begin, "HTTP/1.", 7) == 0);
    if (++inputs % INPUTS_OF_A_NODE != 0)
        return 0;
    client = ask(question, sizeof(question) - 1, 20 * PATIENCE_MS);
    check(strncmp(client.begin, "HTTP/1.1 200", 12) == 0);
    end_node();
    begin_node();
    return 0;
}
