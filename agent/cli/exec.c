/*
 * cairn alloc exec, and what others run in tasks (cli_session).
 *
 * Speaks what Nomad's clients speak (agent/api/streams/exec.c): a WebSocket with JSON in it.  On a
 * terminal ours is made to pass on every key, and is put back whatever happens.  Neither side is
 * waited for with the other's bytes in our hands: who does not take them is not read for.
 */
#include "agent/cli/cli.h"

#include "io/http.h"
#include "io/loop.h"
#include "io/websocket.h"

#include <errno.h>
#include <fcntl.h>
#include <nettle/base64.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

enum {
    READ_SIZE = 16 << 10,
    MESSAGE_MAX = 1 << 20,
    QUEUE_MAX = 64 << 10, /* bytes that the agent has not taken */
    HEAD_MAX = 16 << 10,
    ALIVE_MS = 10 * 1000,
    STATUS_LOST = 255,
};

static const struct cli_flag exec_flags[] = {
    {"task", FLAG_TEXT, "TASK", "in this one; may be left away if the alloc has only one"},
    {"job", FLAG_SWITCH, NULL, "ID is a job's: in its newest alloc that runs"},
    CLI_SESSION_FLAGS,
    {NULL, FLAG_SWITCH, NULL, NULL},
};

struct shell {
    struct cli *cli;
    struct loop *loop;
    struct http_line *line;
    struct websocket *socket;
    struct io_watch socket_watch, input_watch;
    struct io_timer alive;
    char *queue; /* of frames, owned */
    size_t queue_used, queue_size;
    bool terminal, input, input_over;
    char escape; /* 0: none */
    bool at_line_start, escaped;
    struct termios before;
    bool changed; /* our terminal */
    int status;
    bool over;
};

/* --- our terminal --- */

static void raw_terminal(struct shell *shell)
{
    struct termios raw;

    if (tcgetattr(STDIN_FILENO, &shell->before) != 0)
        return;
    raw = shell->before;
    cfmakeraw(&raw);
    shell->changed = tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
}

static void end(struct shell *shell, int status)
{
    if (shell->over)
        return;
    shell->over = true;
    shell->status = status;
    if (shell->changed)
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &shell->before); /* it is there, or nobody is */
    shell->changed = false;
    loop_stop(shell->loop);
}

/* --- to the agent --- */

static void on_socket(struct io_watch *watch, int events);
static void on_input(struct io_watch *watch, int events);

static void watch_both(struct shell *shell)
{
    io_watch_start(shell->loop, &shell->socket_watch, http_line_fd(shell->line),
                   IO_READABLE | (shell->queue_used > 0 ? IO_WRITABLE : 0), on_socket, shell);
    if (shell->input && !shell->input_over && shell->queue_used <= QUEUE_MAX)
        io_watch_start(shell->loop, &shell->input_watch, STDIN_FILENO, IO_READABLE, on_input,
                       shell);
    else
        io_watch_stop(&shell->input_watch);
}

static void on_frame(void *ctx, const void *bytes, size_t length)
{
    struct shell *shell = ctx;

    shell->queue = list_room(shell->queue, &shell->queue_size, shell->queue_used + length, 1);
    memcpy(shell->queue + shell->queue_used, bytes, length);
    shell->queue_used += length;
}

static void flush_queue(struct shell *shell)
{
    size_t sent = 0, length = 0;
    int code = 0;

    while (sent < shell->queue_used &&
           (code = http_line_send(shell->line, shell->queue + sent, shell->queue_used - sent,
                                  &length)) == 0)
        sent += length;
    if (code != 0 && code != ERR_AGAIN)
        sent = shell->queue_used; /* an agent that has gone is found out by reading */
    shell->queue_used -= sent;
    memmove(shell->queue, shell->queue + sent, shell->queue_used);
    watch_both(shell);
}

static void send_input(struct shell *shell, const char *bytes, size_t length)
{
    static const char before[] = "{\"stdin\":{\"data\":\"", behind[] = "\"}}";
    char text[sizeof(before) + BASE64_ENCODE_RAW_LENGTH(READ_SIZE) + sizeof(behind)];
    size_t used = strlen(before);

    if (length == 0)
        return;
    memcpy(text, before, used);
    base64_encode_raw(text + used, length, (const uint8_t *)bytes);
    used += BASE64_ENCODE_RAW_LENGTH(length);
    memcpy(text + used, behind, sizeof(behind));
    websocket_send(shell->socket, text, used + strlen(behind));
}

static void say(struct shell *shell, const char *text)
{
    websocket_send(shell->socket, text, strlen(text));
}

static void say_size(struct shell *shell)
{
    struct winsize size;

    if (shell->terminal && ioctl(STDIN_FILENO, TIOCGWINSZ, &size) == 0)
        say(shell,
            cli_format("{\"tty_size\":{\"height\":%u,\"width\":%u}}", size.ws_row, size.ws_col));
}

static void on_resized(void *ctx, int signal)
{
    (void)signal;
    say_size(ctx);
    flush_queue(ctx);
}

static void on_alive(struct io_timer *timer)
{
    struct shell *shell = timer->ctx;

    say(shell, "{}");
    flush_queue(shell);
    io_timer_start(shell->loop, timer, loop_now_ms() + ALIVE_MS, on_alive, shell);
}

/* Leaves the escape away that begins a line, until it is known that no dot follows it; true: one
 * does.  RET_LENGTH of what is in TO is to be sent. */
static bool find_escape(struct shell *shell, const char *bytes, size_t length, char *to,
                        size_t *ret_length)
{
    size_t used = 0;

    for (size_t i = 0; i < length; i++) {
        if (shell->escaped && bytes[i] == '.')
            return true;
        if (shell->escaped && bytes[i] != shell->escape)
            to[used++] = shell->escape; /* twice is once */
        bool begins = shell->escape != 0 && shell->at_line_start && !shell->escaped &&
                      bytes[i] == shell->escape;
        if (!begins)
            to[used++] = bytes[i];
        shell->escaped = begins;
        shell->at_line_start = bytes[i] == '\r' || bytes[i] == '\n';
    }
    *ret_length = used;
    return false;
}

static void on_input(struct io_watch *watch, int events)
{
    struct shell *shell = watch->ctx;
    char bytes[READ_SIZE / 2], kept[READ_SIZE];
    ssize_t got = read(STDIN_FILENO, bytes, sizeof(bytes));
    size_t length;
    (void)events;

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        shell->input_over = true;
        say(shell, "{\"stdin\":{\"close\":true}}");
    } else if (!shell->terminal) {
        send_input(shell, bytes, (size_t)got);
    } else if (find_escape(shell, bytes, (size_t)got, kept, &length)) {
        end(shell, STATUS_LOST);
        return;
    } else {
        send_input(shell, kept, length);
    }
    flush_queue(shell);
}

/* --- from the agent --- */

static void pass_output(struct shell *shell, const json_t *output, FILE *to)
{
    const json_t *data = json_object_get(output, "data");
    size_t length = json_string_length(data), used = BASE64_DECODE_LENGTH(length);
    struct base64_decode_ctx base64;

    if (!json_is_string(data))
        return;
    uint8_t *bytes = malloc(used + 1);
    check(bytes != NULL);
    base64_decode_init(&base64);
    bool good = base64_decode_update(&base64, &used, bytes, length, json_string_value(data)) == 1 &&
                fwrite(bytes, 1, used, to) == used && fflush(to) == 0;
    free(bytes);
    if (!good)
        end(shell, STATUS_LOST);
}

static void on_message(void *ctx, const char *bytes, size_t length)
{
    struct shell *shell = ctx;
    json_t *message = json_loadb(bytes, length, 0, NULL);

    pass_output(shell, json_object_get(message, "stdout"), stdout);
    pass_output(shell, json_object_get(message, "stderr"), stderr);
    if (json_is_true(json_object_get(message, "exited")))
        end(shell, (int)json_integer_value(
                       json_object_get(json_object_get(message, "result"), "exit_code")));
    json_decref(message);
}

/* It has ended without an exit status: it says why. */
static void lost(struct shell *shell)
{
    char reason[WEBSOCKET_REASON_SIZE];
    uint16_t status = websocket_closed_with(shell->socket, reason);

    if (shell->over)
        return;
    end(shell, STATUS_LOST);
    shell->status = cli_fail(CLI_FAILED, "%s",
                             status == 1006      ? "the connection to the agent was lost"
                             : reason[0] == '\0' ? "the agent has ended the session"
                                                 : reason);
}

/* All that has come: what was read ahead of it is told by nothing. */
static void take_all(struct shell *shell)
{
    char bytes[READ_SIZE];
    size_t got = 0;
    int code = 0;

    while (!shell->over &&
           (code = http_line_recv(shell->line, bytes, sizeof(bytes), &got)) != ERR_AGAIN) {
        if (code != 0 || got == 0 || !websocket_take(shell->socket, bytes, got)) {
            lost(shell);
            return;
        }
    }
    if (!shell->over)
        flush_queue(shell);
}

static void on_socket(struct io_watch *watch, int events)
{
    struct shell *shell = watch->ctx;

    if ((events & IO_WRITABLE) != 0)
        flush_queue(shell);
    if ((events & IO_READABLE) != 0)
        take_all(shell);
}

/* --- the connection --- */

static bool wait_for(const struct http_line *line, short events)
{
    struct pollfd at = {.fd = http_line_fd(line), .events = events};

    return poll(&at, 1, -1) >= 0 || errno == EINTR;
}

static bool send_all(struct http_line *line, const char *bytes, size_t length)
{
    while (length > 0) {
        size_t sent = 0;
        int code = http_line_send(line, bytes, length, &sent);

        if (code == ERR_IO || (code == ERR_AGAIN && !wait_for(line, POLLOUT)))
            return false;
        bytes += code == 0 ? sent : 0;
        length -= code == 0 ? sent : 0;
    }
    return true;
}

/* What has come, of SIZE bytes at most; 0: the agent has ended. */
static size_t receive(struct http_line *line, char *bytes, size_t size)
{
    size_t got = 0;
    int code;

    while ((code = http_line_recv(line, bytes, size, &got)) == ERR_AGAIN) {
        if (!wait_for(line, POLLIN))
            return 0;
    }
    return code == 0 ? got : 0;
}

/* Reads up to the empty line, which a byte at a time leaves what is behind it. */
static bool read_head(struct http_line *line, char head[HEAD_MAX])
{
    size_t used = 0;

    while (used < HEAD_MAX - 1) {
        if (receive(line, head + used, 1) == 0)
            return false;
        head[++used] = '\0';
        if (used >= 4 && memcmp(head + used - 4, "\r\n\r\n", 4) == 0)
            return true;
    }
    return false;
}

static int refused(struct http_line *line)
{
    char text[1024];

    text[receive(line, text, sizeof(text) - 1)] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return cli_fail(CLI_FAILED, "the agent refuses: %s", text);
}

static int shake_hands(const struct cli *cli, struct http_line *line, const char *host,
                       const char *path)
{
    char head[HEAD_MAX], key[WEBSOCKET_KEY_SIZE], accepted[WEBSOCKET_KEY_SIZE];

    websocket_key(key);
    check(websocket_accept(key, accepted));
    if (!text_format(head, sizeof(head),
                     "GET %s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                     "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\nUser-Agent: cairn\r\n"
                     "%s%s\r\n",
                     path, host, key, cli->token, cli->token[0] != '\0' ? "\r\n" : ""))
        return cli_fail(CLI_USAGE, "the command is too long");
    if (!send_all(line, head, strlen(head)) || !read_head(line, head))
        return cli_fail(CLI_UNREACHABLE, "the connection to the agent was lost");
    if (strncmp(head, "HTTP/1.1 101", strlen("HTTP/1.1 101")) != 0)
        return refused(line);
    if (strstr(head, accepted) == NULL)
        return cli_fail(CLI_FAILED, "%s is no agent: it does not speak as one", cli->address);
    return 0;
}

/* --- the verb --- */

static int path_of_exec(struct cli *cli, bool terminal, char path[CLI_URL_SIZE])
{
    json_t *alloc, *command = json_array();
    int status = cli_find_meant(cli, &alloc);

    if (status != 0) {
        json_decref(command);
        return status;
    }
    for (size_t i = 1; cli_argument(cli, i) != NULL; i++)
        check(json_array_append_new(command, json_string(cli_argument(cli, i))) == 0);
    char *text = json_dumps(command, JSON_COMPACT);
    check(text != NULL);
    const char *task = cli_find_task(cli, alloc, NULL);
    if (task == NULL)
        status = CLI_USAGE;
    else if (strlen(cli_path(cli, path, "/v1/client/allocation/%s/exec?task=%s&tty=%s&command=%s",
                             cli_value(alloc, "ID"), task, terminal ? "true" : "false", text)) +
                 256 >
             CLI_URL_SIZE)
        status = cli_fail(CLI_USAGE, "the command is too long: put it into a file");
    free(text);
    json_decref(command);
    json_decref(alloc);
    return status;
}

static int converse(struct shell *shell)
{
    static const int signals[] = {SIGWINCH, 0};
    const struct websocket_calls calls = {.send = on_frame, .on_message = on_message, .ctx = shell};

    shell->socket = websocket_new(true, MESSAGE_MAX, &calls);
    if (shell->terminal) {
        raw_terminal(shell);
        loop_on_signals(shell->loop, signals, on_resized, shell);
    }
    say_size(shell);
    if (!shell->input)
        say(shell, "{\"stdin\":{\"close\":true}}");
    io_timer_start(shell->loop, &shell->alive, loop_now_ms() + ALIVE_MS, on_alive, shell);
    flush_queue(shell);
    take_all(shell);
    if (!shell->over)
        loop_run(shell->loop);
    io_timer_stop(&shell->alive);
    io_watch_stop(&shell->socket_watch);
    io_watch_stop(&shell->input_watch);
    end(shell, STATUS_LOST); /* it has been ended */
    websocket_free(shell->socket);
    free(shell->queue);
    return shell->status;
}

static int read_wishes(struct cli *cli, struct shell *shell)
{
    const char *escape = cli_text(cli, "e", "~");
    bool on_terminal = isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1;

    shell->input = !text_equal(cli_text(cli, "i", "true"), "false");
    shell->terminal =
        text_equal(cli_text(cli, "t", on_terminal && shell->input ? "true" : "false"), "true");
    if (shell->terminal && !shell->input)
        return cli_fail(CLI_USAGE, "-i must be enabled if running with tty");
    if (!text_equal(escape, "none") && strlen(escape) != 1)
        return cli_fail(CLI_USAGE, "-e requires a single character, or \"none\"");
    shell->escape = text_equal(escape, "none") ? '\0' : escape[0];
    shell->at_line_start = true;
    return 0;
}

int cli_session(struct cli *cli, cli_session_path *path_of)
{
    struct shell shell = {.cli = cli};
    char path[CLI_URL_SIZE], host[256];
    int status = read_wishes(cli, &shell);

    if (status == 0)
        status = path_of(cli, shell.terminal, path);
    if (status == 0)
        status = cli_dial(cli, &shell.line, host);
    if (status == 0)
        status = shake_hands(cli, shell.line, host, path);
    shell.loop = cli->loop;
    if (status == 0)
        status = converse(&shell);
    http_line_close(shell.line); /* what was to be said has been */
    return status;
}

static int run_exec(struct cli *cli)
{
    if (cli_argument(cli, 1)[0] == '-') /* what follows the ID is the task's, whatever it is */
        return cli_fail(CLI_USAGE,
                        "flags stand before the ID, and \"%.60s\" behind it would be the command",
                        cli_argument(cli, 1));
    return cli_session(cli, path_of_exec);
}

const struct cli_verb cli_alloc_exec = {
    .group = "alloc",
    .name = "exec",
    .arguments = "ID COMMAND [ARGUMENTS]",
    .min = 2,
    .max = 255,
    .takes_command = true,
    .summary = "Run a command in a running task",
    .help =
        "  It runs as the task does: in its root, namespaces and cgroup, with its user and\n"
        "  environment. What it leaves behind ends with it. The exit status is the command's.\n\n"
        "    $ cairn alloc exec 3f2a91c4 sh\n"
        "    $ cairn alloc exec -task web -t=false 3f2a91c4 cat /etc/hosts",
    .flags = exec_flags,
    .run = run_exec,
};
